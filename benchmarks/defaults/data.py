"""The sets of the comparison of defaults: rows, labels, and which rows are labelled in each draw."""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn import datasets
from sklearn.preprocessing import StandardScaler

MAX_ROWS = 1000  # of a draw; larger sets are subsampled anew in each

# Columns with units of their own, given to every method standardised; the other sets have columns of one kind and are
# given as they are.
TABLES = ("sonar", "heart_statlog", "ionosphere", "wine", "waveform", "breast_cancer_wisc", "breast_cancer", "iris")
OTHERS = (
    "digits", "uspst", "digit1", "usps_ssl", "coil2", "coil6", "bci", "g50c", "g241c", "g241n", "text_ssl",
)  # fmt: skip
REGRESSIONS = ("diabetes", "friedman1", "friedman2", "friedman3", "prices", "wifi")


@dataclass(frozen=True)
class Draw:
    """One draw of a set: its rows, all labels, and which rows are labelled."""

    X: object
    y: np.ndarray
    labeled: np.ndarray

    @property
    def unlabeled(self):
        return np.setdiff1d(np.arange(len(self.y)), self.labeled)


def draw(name, n_labels, seed):
    """Return rows and labels drawn at random; every class has a label at least."""
    X, y = load(name, seed)
    rng = np.random.default_rng([seed, n_labels])
    rows = rng.permutation(len(y))[:MAX_ROWS]
    X, y = X[rows], y[rows]
    if name in TABLES or name in REGRESSIONS:
        X = StandardScaler().fit_transform(X)
    classes = () if name in REGRESSIONS else np.unique(y)
    while True:
        labeled = rng.choice(len(y), n_labels, replace=False)
        if len(np.setdiff1d(classes, y[labeled])) == 0:
            return Draw(X, y, np.sort(labeled))


def load(name, seed=0):
    """Return all rows and labels of a set; generated ones anew for each seed."""
    rng = np.random.default_rng(seed)
    if name in ("digits", "iris", "breast_cancer", "diabetes"):
        return getattr(datasets, f"load_{name}")(return_X_y=True)
    if name in ("friedman1", "friedman2", "friedman3"):
        noise = {"friedman1": 1.0, "friedman2": 125.0, "friedman3": 0.1}[name]
        return getattr(datasets, f"make_{name}")(MAX_ROWS, noise=noise, random_state=seed)
    if name == "prices":
        return house_prices(rng)
    if name == "wifi":
        archive = read("wifi_icdm2007")
        _, first = np.unique(archive["X"], axis=0, return_index=True)  # half of its rows repeat others
        X = archive["X"][first].astype(float)
        return np.where(X == 0, -100.0, X), archive["Y"][first, 0].astype(float)
    archive = read(name)
    if "X_data" in archive:
        parts = (archive["X_data"].astype(float), archive["X_indices"], archive["X_indptr"])
        return sparse.csr_array(parts, shape=tuple(archive["X_shape"])), archive["y"]
    return archive["X"].astype(float), archive["y"]


def read(name):
    return np.load(Path(os.environ["KERNELWEAVE_DATA"]) / f"{name}.npz", allow_pickle=False)


def house_prices(rng, n=MAX_ROWS):
    """Return a table such as California's house prices: skewed columns, places, a skewed and noisy target."""
    place = rng.uniform(0, 1, (n, 2))
    income, people = rng.lognormal(1.2, 0.5, n), rng.lognormal(7.0, 0.8, n)
    rooms, age = 2 + rng.gamma(9, 0.4, n) + 0.2 * income, rng.integers(1, 53, n)
    far = np.hypot(place[:, 0] - 0.3, place[:, 1] - 0.7)
    log_price = 0.6 * np.log(income) - 1.5 * far + 0.05 * rooms + 0.004 * age + 0.3 * np.sin(6 * place[:, 0])
    X = np.column_stack([income, age, rooms, people, rng.lognormal(1.0, 0.3, n), place])
    return X, np.exp(log_price + rng.normal(0, 0.2, n))

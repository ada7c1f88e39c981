"""The sets of the comparison: stored splits where a set has some, random draws elsewhere."""

import sys
from pathlib import Path

import numpy as np
from sklearn.preprocessing import StandardScaler

sys.path.insert(0, str(Path(__file__).parents[1] / "defaults"))
from data import TABLES, Draw, load, read

BOOK = ("digit1", "usps_ssl", "coil2", "bci", "g241c", "g241n", "text_ssl", "coil6")  # 12 splits of 100 labels
SPLIT = ("g50c", "text_macwin", "uspst")  # 10 splits of 50 labels
DRAWN = (
    "webkb_page", "webkb_link", "webkb_pagelink", "sonar", "heart_statlog", "ionosphere", "wine", "waveform",
    "breast_cancer_wisc",
)  # fmt: skip
SETS = (*BOOK, *SPLIT, *DRAWN)
N_LABELS = 50  # of sets without splits, where nothing else is asked for
MAX_ROWS = 2000  # of sets without splits; larger ones are subsampled anew in each draw


def with_labels(sets, numbers):
    """Return sets with so many labels, such as "wine @ 20"; 50 go without saying, stored splits have their own."""
    stored = [name for name in sets if name in BOOK + SPLIT]
    drawn = [name for name in sets if name not in stored]
    return stored + [name if n == N_LABELS else f"{name} @ {n}" for n in numbers for name in drawn]


def read_name(name):
    """Return the set and the number of labels that a name such as "wine @ 20" means; None: the usual number."""
    base, _, n_labels = name.partition(" @ ")
    return base, int(n_labels) if n_labels else None


def draw(name, seed):
    """Return one split of a set, such as "wine" or "wine @ 20": its rows, all labels, and which rows are labelled."""
    name, n_labels = read_name(name)
    n_labels = n_labels or N_LABELS
    X, y = load(name)
    if name in BOOK + SPLIT:
        splits = read(name)["idxLabs_100" if name in BOOK else "idxLabs"]
        return Draw(X, y, np.sort(splits[seed]))
    rng = np.random.default_rng([seed, n_labels])
    rows = rng.permutation(len(y))[:MAX_ROWS]
    X, y = X[rows], y[rows]
    X = StandardScaler().fit_transform(X) if name in TABLES else X
    while True:
        labeled = np.sort(rng.choice(len(y), n_labels, replace=False))
        if len(np.unique(y[labeled])) == len(np.unique(y)):
            return Draw(X, y, labeled)


def n_draws(name):
    """Return how many splits or draws a set has."""
    return 12 if name in BOOK else 10

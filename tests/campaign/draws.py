"""What is drawn for a random fit: an estimator, its parameters by their declared constraints, kernels, rows, labels.

A parameter is drawn from the words of its constraint, so that a new estimator or option is attacked by being public.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import kernelweave as kw
from kernelweave.parameters import READ_LATER

KEPT = {"callback", "verbose", "n_jobs", "max_time", "cache_size", "unlabeled", "scoring", "race"}  # at their defaults
# Decades of costs and weights. A step along a direction without curvature is at most 1e16 long: where a cost is above
# that, machines say MAX_ITER after 1e7 steps, which take half a minute.
COSTS = 12.0
P_CHANGED = 0.4  # of a parameter
WORDS = {
    "True or False": lambda rng: bool(rng.integers(2)),
    "a positive finite number": lambda rng: magnitude(rng, 3.0),
    "a finite number": lambda rng: float(rng.choice([-1.0, 1.0])) * magnitude(rng, 3.0),
    "a number, 0 or more": lambda rng: float(rng.choice([0.0, magnitude(rng, 3.0)])),
    "a number, 1 or more": lambda rng: float(rng.choice([1.0, 1.0 + rng.exponential()])),
    "a number between 0 and 1": lambda rng: float(rng.uniform(0.05, 0.6)),
    "a number from 0 to less than 1": lambda rng: float(rng.uniform(0.0, 0.99)),
    "a number above 0 and at most 1": lambda rng: float(rng.uniform(0.02, 1.0)),
    "a share of the rows, above 0 and at most 1": lambda rng: float(rng.uniform(0.01, 1.0)),
    "a whole number, 0 or more": lambda rng: int(rng.integers(0, 5)),
    "a whole number, 1 or more": lambda rng: int(rng.integers(1, 40)),
}
NAMED = {
    "C": lambda rng, case: "cv" if rng.random() < 0.05 else magnitude(rng, 4.0, COSTS),
    "C_unlabeled": lambda rng, case: magnitude(rng, 3.0, COSTS),
    "tol": lambda rng, case: float(10.0 ** rng.uniform(-9, -1)),
    "max_iter": lambda rng, case: int(rng.choice([1, 3, 50, 500])),
    "max_columns": lambda rng, case: int(rng.integers(1, 30)),
    "n_restarts": lambda rng, case: int(rng.integers(0, 2)),
    "n_repeats": lambda rng, case: 1,
    "random_state": lambda rng, case: int(rng.integers(1000)),
    "class_weight": lambda rng, case: [None, "balanced", {0: 1.0, 1: magnitude(rng, 3.0, COSTS)}][rng.integers(3)],
    "class_prior": lambda rng, case: ["labeled", "estimated", None, 0.3][rng.integers(4)],
    "centers": lambda rng, case: ["auto", "all", "labeled", int(rng.integers(1, 30))][rng.integers(4)],
    "kernel": lambda rng, case: draw_kernel(rng),
    "kernels": lambda rng, case: draw_kernels(rng),
    "extra_kernels": lambda rng, case: [draw_kernel(rng)],
    "Cs": lambda rng, case: int(rng.integers(2, 5)),
    "cv": lambda rng, case: 2,
    "learner": lambda rng, case: draw_learner(rng),
    "candidates": lambda rng, case: [
        kw.HarmonicClassifier() if "Classifier" in case else kw.HarmonicRegressor(),
        "SVM" if rng.integers(2) else "mean kernel SVM",
    ],
}
LEARNERS = ("LabelAwareKernelLearner", "AlignedKernelLearner", "OrderedSpectralKernelLearner")
SLOW = ("AutoKernelClassifier", "AutoKernelRegressor", "CGBoostClassifierCV")  # many fits in one: fewer of them
ESTIMATORS = [name for name in kw.__all__ if name.endswith(("Classifier", "Regressor", "OneClass", "CV", "Learner"))]
SHARES = np.array([0.1 if name in SLOW else 1.0 for name in ESTIMATORS])


@dataclass(frozen=True, eq=False)
class Fit:
    """What a case fits: ``new`` are rows to predict, of the same kind and far away."""

    model: Any
    X: Any
    y: Any
    weight: Any
    new: Any
    is_sound: bool

    def __str__(self):
        scales = np.abs(np.asarray(self.X.data if sparse.issparse(self.X) else self.X, dtype=float))
        weights = "" if self.weight is None else f", weights up to {np.max(self.weight):.2g}"
        return f"{' '.join(repr(self.model).split())} on {self.X.shape} up to {scales.max(initial=0):.2g}{weights}"


def draw_fit(rng):
    """An estimator with parameters, and rows and labels for it."""
    name = rng.choice(ESTIMATORS, p=SHARES / SHARES.sum())
    model = draw_parameters(rng, getattr(kw, name))
    n, n_features = int(rng.integers(2, 45)), int(rng.integers(1, 6))
    X = draw_rows(rng, n, n_features)
    y = draw_numbers(rng, X) if "Regressor" in name else draw_classes(rng, X)
    if "OneClass" not in name and rng.random() < (0.1 if "CGBoost" in name else 0.6):
        y = hide(rng, y)
    (other,) = rng.spawn(1)  # of its own, so that what is drawn here changes nothing else
    if other.random() < 0.05:
        X = widen(other, X)
    if "Classifier" in name and other.random() < 0.2:
        y = mark(y)
    if "Classifier" in name and name not in SLOW and other.random() < 0.03:
        model = kw.SemiSupervisedCalibration(model, cv=2, min_labels=2, random_state=0)
    is_sound = rng.random() > 0.02
    if not is_sound:
        X[rng.integers(n), rng.integers(n_features)] = rng.choice([np.nan, np.inf, -np.inf])
    weight = None
    if "sample_weight" in getattr(kw, name).fit.__code__.co_varnames and rng.random() < 0.3:
        weight = draw_weights(rng, n)
    new = np.vstack([X[rng.integers(n, size=3)], draw_like(rng, X, 4)])
    return Fit(model, *as_container(rng, X, y), weight, new, is_sound)


def draw_parameters(rng, kind):
    """An estimator of a class, about ``P_CHANGED`` of its parameters drawn; kernels and costs nearly always."""
    options = {}
    for name, constraint in kind._constraints.items():
        share = 0.9 if name in ("C", "kernels", "kernel", "candidates", "learner", "random_state") else P_CHANGED
        if name in KEPT or rng.random() > share:
            continue
        if name in NAMED:
            options[name] = NAMED[name](rng, kind.__name__)
        elif constraint is not READ_LATER:
            options[name] = draw_value(rng, constraint.words[rng.integers(len(constraint.words))])
    return kind(**options)


def draw_value(rng, words):
    """A value that some words allow."""
    if words == "None":
        return None
    return words[1:-1] if words.startswith('"') else WORDS[words](rng)


def magnitude(rng, decades, rare=150.0):
    """A positive number: mostly within so many decades of one, sometimes anywhere within ``rare`` decades."""
    return float(10.0 ** (rng.uniform(-rare, rare) if rng.random() < 0.03 else rng.uniform(-decades, decades)))


# Kernels


def draw_kernels(rng):
    """A list of up to four kernels, the default library, or one kernel."""
    if rng.random() < 0.1:
        return None
    return [draw_kernel(rng) for _ in range(rng.integers(1, 5))]


def draw_kernel(rng, depth=0):
    """A recipe, nested up to two levels; some are indefinite, some are not symmetric."""
    kinds = [
        *(kw.Linear, rbf, rbf, rbf, polynomial),
        lambda rng, depth: kw.Sigmoid(magnitude(rng, 1.0), float(rng.normal())),
        lambda rng, depth: kw.Normalized(draw_kernel(rng, depth)),
        lambda rng, depth: magnitude(rng, 8.0) * draw_kernel(rng, depth),
        lambda rng, depth: draw_kernel(rng, depth) + draw_kernel(rng, depth),
        lambda rng, depth: draw_kernel(rng, depth) * draw_kernel(rng, depth),
        lambda rng, depth: kw.Preprocessed(
            [StandardScaler(), MinMaxScaler()][rng.integers(2)], draw_kernel(rng, depth)
        ),
        lambda rng, depth: kw.OnColumns(draw_kernel(rng, depth), [0]),
        lambda rng, depth: kw.ManifoldKernel(draw_kernel(rng, depth), n_neighbors=int(rng.integers(1, 12))),
        lambda rng, depth: kw.ClusterKernel(rbf(rng, depth), n_eigenvectors=int(rng.integers(1, 8))),
        lambda rng, depth: kw.DiffusionKernel(rbf(rng, depth), n_eigenvectors=int(rng.integers(1, 8))),
        lambda rng, depth: kw.ForestKernel(int(rng.integers(2, 10))),
        lambda rng, depth: kw.FromCallable(crooked),
    ]
    kind = kinds[rng.integers(6 if depth == 2 else len(kinds))]
    return kind() if kind is kw.Linear else kind(rng, depth + 1)


def rbf(rng, depth):
    gamma = ["mean", "median", "scale", magnitude(rng, 2.0)][rng.integers(4)]
    return kw.RBF(gamma, magnitude(rng, 2.0))


def polynomial(rng, depth):
    return kw.Polynomial(int(rng.integers(1, 6)), magnitude(rng, 1.0), float(rng.choice([0.0, 1.0, 3.0])))


def crooked(A, B):
    """Neither symmetric nor positive semi-definite."""
    A, B = (rows.toarray() if sparse.issparse(rows) else rows for rows in (A, B))
    return np.tanh(A @ B.T) + A[:, :1] - 0.5 * B[:, 0]


def draw_learner(rng):
    return draw_parameters(rng, getattr(kw, LEARNERS[rng.integers(3)]))


# Rows, labels, weights


def draw_rows(rng, n, n_features):
    """Rows of one of many kinds, of any magnitude."""
    X = rng.normal(size=(n, n_features))
    X[: n // 2, 0] += 2.0
    for change in ROWS:
        if rng.random() < 0.12:
            X = change(rng, X)
    if rng.random() < 0.3:
        X = X * 10.0 ** rng.uniform(-150, 150)
    return np.ascontiguousarray(X)


def duplicate(rng, X):
    return X[rng.integers(max(1, len(X) // 3), size=len(X))]


def widen(rng, X):
    """Many more columns than rows: sums of those there are, of any magnitude."""
    factors = rng.normal(size=(X.shape[1], int(rng.integers(20, 200)))) * 10.0 ** rng.uniform(-8, 2)
    return np.ascontiguousarray(np.hstack([X, X @ factors]))


def make_constant(rng, X):
    return np.column_stack([X[:, 1:], np.full(len(X), rng.normal())])


def make_collinear(rng, X):
    return np.column_stack([X, X @ rng.normal(size=X.shape[1]), X[:, 0]])


def make_whole(rng, X):
    return np.round(X)


def make_binary(rng, X):
    return (X > 0) * 1.0


def make_heavy(rng, X):
    return X * np.abs(rng.standard_cauchy(size=(len(X), 1)))


def shift(rng, X):
    return X + 10.0 ** rng.uniform(2, 12)


def make_equal(rng, X):
    return np.tile(X[:1], (len(X), 1))


def make_uneven(rng, X):
    return X * 10.0 ** rng.uniform(-12, 12, X.shape[1])


def add_outlier(rng, X):
    X = X.copy()
    X[rng.integers(len(X))] *= 10.0 ** rng.uniform(3, 12)
    return X


def make_zero(rng, X):
    X = X.copy()
    X[rng.random(len(X)) < 0.5] = 0.0
    return X


ROWS = (
    *(duplicate, make_constant, make_collinear, make_whole, make_binary, make_heavy, shift, make_equal),
    *(make_uneven, add_outlier, make_zero),
)


def draw_like(rng, X, n):
    """Rows between those given, and one far away."""
    shares = rng.dirichlet(np.ones(len(X)), size=n)
    with np.errstate(all="ignore"):
        new = shares @ X
        new[-1] = np.clip(1e3 * X[0], -1e155, 1e155)
    return np.where(np.isfinite(new), new, 0.0)


def draw_classes(rng, X):
    """Two to four classes, of numbers or words; small ones may have a row each, or none."""
    n_classes = int(rng.integers(2, 5))
    finite = np.nan_to_num(X[:, 0] / max(np.abs(X[:, 0]).max(), 1e-300))
    order = np.argsort(np.argsort(finite + rng.normal(size=len(X)) * rng.choice([0.0, 0.3, 3.0])))
    codes = (order * n_classes // len(X)).astype(int)
    codes = rng.permutation(codes) if rng.random() < 0.1 else codes
    return codes if rng.random() < 0.6 else np.array(["b", "a", "class c", "d"], dtype=object)[codes]


def draw_numbers(rng, X):
    """Numbers, of any magnitude; sometimes one value."""
    size = max(np.abs(X[:, 0]).max(), 1e-300)
    y = np.sin(3.0 * X[:, 0] / size) + 0.1 * rng.normal(size=len(X))
    kind = rng.random()
    if kind < 0.3:
        y = y * 10.0 ** rng.uniform(-150, 150)
    elif kind < 0.4:
        y = np.full(len(X), y[0])
    elif kind < 0.5:
        y = y + 10.0 ** rng.uniform(2, 10)
    return y


def hide(rng, y):
    """Labels of which some are missing."""
    y = np.asarray(y, dtype=object if np.asarray(y).dtype == object else float).copy()
    y[rng.random(len(y)) < rng.uniform(0.1, 0.9)] = None if y.dtype == object else np.nan
    return y


def mark(y):
    """The same labels with the marker -1 of scikit-learn, where they are numbers."""
    y = np.asarray(y)
    return y if y.dtype == object else np.where(np.isnan(y), -1, y).astype(int)


def draw_weights(rng, n):
    """Weights, of any magnitude, some zero."""
    weight = rng.uniform(0.1, 2.0, n)
    if rng.random() < 0.3:
        weight[rng.random(n) < 0.3] = 0.0
    if rng.random() < 0.3:
        weight = weight * 10.0 ** rng.uniform(-6, 6, n)
    if rng.random() < 0.3:
        weight = weight * 10.0 ** rng.uniform(-COSTS, COSTS)
    return weight


def as_container(rng, X, y):
    """The rows as an array, of another precision or layout, or sparse."""
    kind = rng.integers(10)
    if kind == 0:
        return sparse.csr_array(X), y
    if kind == 1 and (not np.isfinite(X).all() or np.abs(X).max() < 1e38):
        return X.astype(np.float32), y
    if kind == 2:
        return np.asfortranarray(X), y
    return X, list(y) if kind == 3 else y

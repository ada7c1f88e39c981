"""scikit-learn's learners beside those of kernelweave, set up as their users would: costs and widths chosen by folds.

Widths are multiples of scikit-learn's ``gamma="scale"``. Boosted trees need 20 rows in a leaf by default, and would not
grow at all from 30 labels: here a leaf needs a twentieth of the labelled rows, at most 20.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.svm import SVC, SVR

from ..estimators.auto.candidates import MIN_SEARCH_ROWS, N_SEARCH_FOLDS, list_candidates
from ..kernels.scaling import PowerScaler
from ..model_selection import SemiSupervisedSplit

# Of equal scores a search takes the first: scikit-learn's defaults.
COSTS = (1.0, 10.0, 100.0, 0.1)
WIDTHS = (1.0, 0.25, 4.0)  # times gamma="scale"
EPSILONS = (0.01, 0.1)  # of SVR, in standard deviations of the numbers
N_NEIGHBORS = (5, 10)
MAX_DENSE_ROWS = 5000  # above which LabelSpreading keeps to sparse graphs
MAX_LEAF, LEAF_SHARE = 20, 20  # scikit-learn's rows in a leaf; of the labelled rows, one in so many

Grids = Callable[[list[float]], list[dict[str, Any]]]  # of parameters, for such widths
PEERS = ("logistic regression", "ridge regression")  # candidates of the estimators that are scikit-learn's own


class Spreading(LabelSpreading):
    """Label spreading in which rows that no label reaches have equal probabilities, instead of 0 / 0."""

    def predict_proba(self, X: Any) -> np.ndarray:
        with np.errstate(invalid="ignore"):
            return np.nan_to_num(super().predict_proba(X), nan=1.0 / len(self.classes_))


def list_learners(X: Any, n_labeled: int, task: str) -> list[Any]:
    """Return all learners for such rows: names of kernelweave's, then scikit-learn's as (name, estimator).

    Parameters
    ----------
    X : array or CSR of shape (n_rows, n_features)
    n_labeled : int
    task : {"classes", "numbers"}
    """
    own = [each.name for each in list_candidates(X, n_labeled, task) if each.is_certified]
    linear = [each.name for each in list_candidates(X, n_labeled, task) if each.name in PEERS]
    return [*own, *linear, *(_list_classifiers(X, n_labeled) if task == "classes" else _list_regressors(X, n_labeled))]


def _list_classifiers(X: Any, n_labeled: int) -> list[tuple[str, Any]]:
    self_training = SelfTrainingClassifier(LogisticRegression(max_iter=1000))
    learners: list[tuple[str, Any]] = [
        ("SVC", _search(SVC(), X, lambda gammas: [{"C": COSTS, "gamma": gammas}], n_labeled, "classes")),
        ("self-training", self_training if issparse(X) else make_pipeline(PowerScaler(), self_training)),
        ("random forest", RandomForestClassifier()),
    ]
    if issparse(X):  # which the others do not take
        return learners

    def graphs(gammas: list[float]) -> list[dict[str, Any]]:
        neighbors, widths = {"n_neighbors": N_NEIGHBORS}, {"kernel": ["rbf"], "gamma": gammas}
        return [neighbors, widths] if X.shape[0] <= MAX_DENSE_ROWS else [neighbors]

    spreading = Spreading(kernel="knn", max_iter=100)
    boosting = HistGradientBoostingClassifier(min_samples_leaf=_leaf_rows(n_labeled))
    learners.insert(1, ("LabelSpreading", _search(spreading, X, graphs, n_labeled, "classes", unlabeled=-1)))
    return [*learners, ("HistGradientBoosting", boosting)]


def _list_regressors(X: Any, n_labeled: int) -> list[tuple[str, Any]]:
    def grids(gammas: list[float]) -> list[dict[str, Any]]:
        return [{"C": COSTS, "gamma": gammas, "epsilon": EPSILONS}]

    learners = [("SVR", _search(SVR(), X, grids, n_labeled, "numbers")), ("random forest", RandomForestRegressor())]
    boosting = HistGradientBoostingRegressor(min_samples_leaf=_leaf_rows(n_labeled))
    return learners if issparse(X) else [*learners, ("HistGradientBoosting", boosting)]


def _search(model: Any, X: Any, grids: Grids, n_labeled: int, target: str, unlabeled: Any = None) -> Any:
    """Return a search by folds of the labelled rows, on columns as they are and standardised.

    Where labels are too few for one, columns are standardised.
    """
    scaler = None if issparse(X) else StandardScaler()
    pipeline = Pipeline([("scale", scaler), ("model", model)])
    if n_labeled < MIN_SEARCH_ROWS:
        return pipeline
    variances = {None: _variance(X)} | ({} if scaler is None else {scaler: 1.0})
    grid = [
        {"scale": [scale], **{f"model__{key}": list(values) for key, values in each.items()}}
        for scale, variance in variances.items()
        for each in grids([width / (X.shape[1] * variance) for width in WIDTHS])
    ]
    cv = SemiSupervisedSplit(N_SEARCH_FOLDS, target=target, unlabeled=unlabeled, random_state=0)
    return GridSearchCV(pipeline, grid, cv=cv)


def _variance(X: Any) -> float:
    """Return the variance of all cells, by which ``gamma="scale"`` divides."""
    variance = float(X.multiply(X).mean() - X.mean() ** 2) if issparse(X) else float(np.var(X))
    return variance or 1.0


def _leaf_rows(n_labeled: int) -> int:
    return int(np.clip(n_labeled // LEAF_SHARE, 1, MAX_LEAF))

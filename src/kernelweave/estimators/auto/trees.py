r"""Trees grown by scikit-learn on labelled rows, and kept as plain arrays: a model file holds no compiled objects.

Columns are drawn by what they hold and classes are numbered as they appear, so that neither where a column stands nor
what a class is called changes a tree.

A forest predicts the mean over trees of the class shares (or the mean number) in the leaf that a row falls into;
boosted trees a start value plus the sum of their leaves, which a softmax turns into probabilities.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.special import log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.utils import Tags
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from ...kernels.checks import are_floats, is_index, require_consistent
from ...kernels.content_order import order_columns
from ...kernels.forest import rank_values
from ...kernels.trees import Forest
from ..shared.fold_choice import number_by_appearance

N_FOREST, N_BOOSTED = 150, 60  # trees; boosted ones for each class
BOOSTING = {"n_estimators": N_BOOSTED, "max_depth": 3, "subsample": 0.7, "learning_rate": 0.1}
MIN_PROBABILITY = 1e-6  # of a class that no tree has seen in a leaf


class _Trees(BaseEstimator):
    """Trees as arrays, and the values of their leaves.

    Parameters
    ----------
    boosted : bool, default=False
        Whether trees correct one another (gradient boosting) or are averaged (random forest).
    class_weight, random_state
        As in scikit-learn.
    """

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _read(self, X: Any, *, reset: bool = False) -> Any:
        return validate_data(self, X, reset=reset, accept_sparse="csr", dtype=np.float64)

    def check_loaded(self) -> None:
        """Refuse leaves of a file whose values are missing, and nodes of columns that the rows do not have."""
        if not hasattr(self, "forest_"):
            return
        require_consistent(self, type(self.forest_) is Forest, "has no trees")
        n_outputs = len(self.start_)
        is_right = are_floats(self.start_, n_outputs) and are_floats(self.values_, self.forest_.n_nodes, n_outputs)
        require_consistent(self, is_right, "has other values than leaves")
        is_right = is_index(self.forest_.column, self.n_features_in_)
        require_consistent(self, is_right, "has nodes of columns that the rows do not have")

    def _sum_leaves(self, X: Any) -> np.ndarray:
        """Return the sums of the leaves' values, shape (n_rows, n_outputs)."""
        check_is_fitted(self, "forest_")
        # scikit-learn compares thresholds with single precision
        leaves = self.forest_.leaves(self._read(X).astype(np.float32).astype(np.float64))
        out = np.tile(self.start_, (len(leaves), 1))
        self.forest_.add_leaves(self.values_, leaves, out)
        return out


class TreesClassifier(ClassifierMixin, _Trees):
    """A random forest or boosted trees for classes, as plain arrays.

    Parameters
    ----------
    boosted : bool, default=False
    class_weight : None, "balanced" or dict, default=None
        Of the rows of each class, times their weights.
    random_state : int, RandomState or None, default=None
    """

    def __init__(self, *, boosted: bool = False, class_weight: Any = None, random_state: Any = None):
        self.boosted = boosted
        self.class_weight = class_weight
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Grow the trees on labelled rows."""
        X = self._read(X, reset=True)
        self.classes_, codes = np.unique(y, return_inverse=True)
        own = number_by_appearance(codes)
        named = codes[np.unique(own, return_index=True)[1]]  # which of `classes_` comes first, second, ...
        weight, order = self._weigh_classes(X, y, sample_weight), arrange_columns(X)
        if self.boosted:
            grown = GradientBoostingClassifier(**BOOSTING, random_state=self.random_state).fit(X[:, order], own, weight)
            n_outputs = grown.estimators_.shape[1]
            sign = (
                -1.0 if n_outputs == 1 and named[0] == 1 else 1.0
            )  # the output is that of the class that comes second
            outputs = np.zeros(1, dtype=np.intp) if n_outputs == 1 else named
            trees = [(tree.tree_, outputs[c]) for stage in grown.estimators_ for c, tree in enumerate(stage)]
            factor = sign * grown.learning_rate
            values = [_place(tree.value[:, 0, 0], c, n_outputs) * factor for tree, c in trees]
            self.start_ = _log_shares(grown.init_.class_prior_[np.argsort(named)])
        else:
            grown = RandomForestClassifier(N_FOREST, random_state=self.random_state).fit(X[:, order], own, weight)
            trees = [(tree.tree_, 0) for tree in grown.estimators_]
            shares = [tree.value[:, 0, np.argsort(named)] for tree, _ in trees]
            values = [value / value.sum(axis=1, keepdims=True) / len(shares) for value in shares]
            self.start_ = np.zeros(len(self.classes_))
        self.forest_, self.values_ = Forest.from_trees([tree for tree, _ in trees], values)
        self.forest_.place_columns(order)
        return self

    def _weigh_classes(self, X: Any, y: Any, sample_weight: Any) -> Any:
        """Return the weights of rows times those of their classes."""
        if self.class_weight is None:
            return sample_weight
        factors = compute_sample_weight(self.class_weight, y)  # "balanced" counts rows, as in scikit-learn's forest
        return _check_sample_weight(sample_weight, X, dtype=np.float64) * factors

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities of the classes, shape (n_samples, n_classes)."""
        values = self._sum_leaves(X)
        if not self.boosted:
            values = values + MIN_PROBABILITY
            return values / values.sum(axis=1, keepdims=True)
        both = np.column_stack([np.zeros(len(values)), values]) if values.shape[1] == 1 else values
        return np.exp(log_softmax(both, axis=1))

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class of each row."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


class TreesRegressor(RegressorMixin, _Trees):
    """A random forest or boosted trees for numbers, as plain arrays.

    Parameters
    ----------
    boosted : bool, default=False
    random_state : int, RandomState or None, default=None
    """

    def __init__(self, *, boosted: bool = False, random_state: Any = None):
        self.boosted = boosted
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Grow the trees on labelled rows."""
        X = self._read(X, reset=True)
        order = arrange_columns(X)
        if self.boosted:
            boosted = GradientBoostingRegressor(**BOOSTING, random_state=self.random_state)
            grown = boosted.fit(X[:, order], y, sample_weight)
            trees = [tree.tree_ for tree in grown.estimators_[:, 0]]
            factor, self.start_ = grown.learning_rate, np.ravel(grown.init_.constant_).astype(np.float64)
        else:
            forest = RandomForestRegressor(N_FOREST, min_samples_leaf=2, random_state=self.random_state)
            trees = [tree.tree_ for tree in forest.fit(X[:, order], y, sample_weight).estimators_]
            factor, self.start_ = 1.0 / len(trees), np.zeros(1)
        self.forest_, self.values_ = Forest.from_trees(trees, [factor * tree.value[:, 0] for tree in trees])
        self.forest_.place_columns(order)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted number of each row."""
        return self._sum_leaves(X)[:, 0]


def arrange_columns(X: Any) -> np.ndarray:
    """Return the numbers of the columns in the order in which trees are grown on them."""
    return order_columns(rank_values(X)[0])


def _place(values: np.ndarray, output: int, n_outputs: int) -> np.ndarray:
    """Return the values of a tree's nodes as those of one of several outputs."""
    out = np.zeros((len(values), n_outputs))
    out[:, output] = values
    return out


def _log_shares(shares: np.ndarray) -> np.ndarray:
    """Return the values that boosting starts from: log shares, of two classes their log odds."""
    logs = np.log(shares)
    return logs[1:] - logs[:1] if len(shares) == 2 else logs

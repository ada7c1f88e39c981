"""Folds of the labelled rows of positive weight: what calibration and out-of-fold predictions share."""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import utils
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing as take  # in scikit-learn's public reference, in spite of its name
from sklearn.utils.validation import has_fit_parameter

from .splits import SemiSupervisedSplit

Rows = NDArray[np.intp]
Floats = NDArray[np.float64]


def make_folds(
    cv: Any, X: Any, y: Any, groups: Any, known: NDArray[Any], kept: Rows, target: str, random_state: Any
) -> Iterator[tuple[Rows, Rows]]:
    """Training and test parts; rows of weight zero are in no training part.

    Parameters
    ----------
    cv : int, splitter or iterable of (train, test)
        An int means :class:`SemiSupervisedSplit` with so many parts.
    X, y, groups
        All rows, as the user gave them.
    known : ndarray of shape (n_kept,)
        The labels of the rows of positive weight, None or NaN where there is none.
    kept : ndarray of shape (n_kept,)
        The numbers of these rows.
    target : {"classes", "numbers"}
    random_state : int, RandomState instance or None
    """
    if isinstance(cv, numbers.Integral):
        splitter = SemiSupervisedSplit(int(cv), target=target, unlabeled=None, random_state=random_state)
        groups = None if groups is None else take(groups, kept)
        return ((kept[train], kept[test]) for train, test in splitter.split(kept, known, groups))
    pairs = check_cv(cv).split(X, y, groups)
    return ((np.asarray(train)[np.isin(train, kept)], test) for train, test in pairs)


def check_weights(estimator: Any, sample_weight: Any, n_rows: int) -> Floats:
    """The weight of each row; refuse wrong ones, and an estimator that takes none."""
    if sample_weight is None:
        return np.ones(n_rows)
    weights = utils.check_array(sample_weight, ensure_2d=False, dtype=float, input_name="sample_weight")
    if weights.shape != (n_rows,) or (weights < 0).any():
        raise ValueError(
            f"sample_weight must hold a number >= 0 for each of {n_rows} rows, got shape {weights.shape} and "
            f"smallest value {weights.min()}."
        )
    if not weights.any():
        raise ValueError("All sample weights are zero, so there is no row to learn from. Give some rows weight.")
    if not has_fit_parameter(estimator, "sample_weight"):
        raise ValueError(f"{estimator!r} has no sample_weight in fit. Leave it out or change the estimator.")
    return weights

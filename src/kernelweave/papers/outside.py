"""Outside estimators as methods of a table: ``module:Class``, fitted on the splits that the paper's methods see."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import get_tags


def outside(method: str) -> Any:
    """Return the estimator that ``module:Class`` names, made without arguments; None for a method of the paper.

    ``Class`` may be any function without arguments that returns an estimator: that is how parameters are set.

    Examples
    --------
    >>> outside("sklearn.svm:SVC"), outside("TSVM") is None
    (SVC(), True)
    """
    module, colon, name = method.partition(":")
    if not colon:
        return None
    try:
        make = importlib.import_module(module)
        for part in name.split("."):
            make = getattr(make, part)
        estimator = make()  # type: ignore[operator]
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise ValueError(
            f"--with {method!r} gives no estimator ({error}). Write module:Class, such as sklearn.svm:SVC, for "
            "something that can be imported and called without arguments."
        ) from None
    if not (hasattr(estimator, "fit") and hasattr(estimator, "predict")):
        raise ValueError(f"--with {method!r} gives a {type(estimator).__name__}, which has no fit and predict.")
    return estimator


def fit_outside(estimator: Any, X: Any, y: np.ndarray, labeled: np.ndarray) -> Any:
    """Fit on the labelled rows; a semi-supervised estimator gets all rows, with -1 for those unlabelled.

    Semi-supervised are those of ``sklearn.semi_supervised``, those with a parameter ``unlabeled``, and those with an
    attribute ``semi_supervised`` that is true. ``y`` holds no -1. Sparse rows are made :func:`acceptable`, as
    those must be that it predicts.
    """
    X = acceptable(estimator, X)
    names = estimator.get_params() if hasattr(estimator, "get_params") else {}
    known = type(estimator).__module__.startswith("sklearn.semi_supervised") or "unlabeled" in names
    if getattr(estimator, "semi_supervised", known):
        marked = np.full(len(y), -1)
        marked[labeled] = y[labeled]
        return estimator.fit(X, marked)
    return estimator.fit(X[labeled], y[labeled])


def acceptable(estimator: Any, X: Any) -> Any:
    """Return the rows, made dense where they are sparse and the estimator does not say that it takes such."""
    takes_sparse = hasattr(estimator, "__sklearn_tags__") and get_tags(estimator).input_tags.sparse
    return X.toarray() if issparse(X) and not takes_sparse else X

"""Predictions for labelled rows by models that have not seen their labels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn import utils
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.utils.metaestimators import _safe_split  # rows, and of a kernel matrix the columns of the training rows

from ..labels import Partition, TargetPartition, partition, partition_targets
from ..parameters import one_of, require
from .folds import check_weights, make_folds
from .semi_supervised import WrittenLabels, refuse_inner_marker, takes_unlabeled, write_classes, write_labels

Rows = NDArray[np.intp]
Floats = NDArray[np.float64]

N_SPLITS = 5
METHODS = one_of("auto", "predict", "predict_proba", "decision_function")


@dataclass(frozen=True, eq=False)
class OutOfFold:
    """Predictions for labelled rows by models that have not seen their labels, as :func:`out_of_fold` returns them.

    Parameters
    ----------
    rows : ndarray of shape (n_tested,)
        Numbers of the labelled rows that were in a test part, ascending.
    fold : ndarray of shape (n_tested,)
        Number of the first test part that each of them was in.
    predictions : ndarray of shape (n_tested,) or (n_tested, n_outputs)
        Classes, numbers, probabilities or decision values, as `method` says; the mean over repeats. Decision values of
        two classes are one a row, positive for the second class.
    classes : ndarray of shape (n_classes,) or None
        The classes, in the order of the columns; None for numbers.
    method : {"predict", "predict_proba", "decision_function"}
        What the models were asked for.

    See Also
    --------
    out_of_fold : Makes it.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import HarmonicRegressor
    >>> from kernelweave.model_selection import out_of_fold
    >>> X = np.arange(8.0)[:, None]
    >>> result = out_of_fold(HarmonicRegressor(), X, np.where(X[:, 0] < 6, X[:, 0], np.nan), cv=3, random_state=0)
    >>> result.rows, result.method, result.classes
    (array([0, 1, 2, 3, 4, 5]), 'predict', None)
    """

    rows: Rows
    fold: Rows
    predictions: NDArray[Any]
    classes: NDArray[Any] | None
    method: str


def out_of_fold(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    cv: Any = None,
    method: str = "auto",
    transductive: bool = True,
    sample_weight: Any = None,
    groups: Any = None,
    unlabeled: Any = "auto",
    n_jobs: int | None = None,
    random_state: Any = None,
) -> OutOfFold:
    """Predictions for each labelled row by a model that has not seen its label.

    This is scikit-learn's `cross_val_predict` for partly labelled y: labelled rows alone are tested, and an estimator
    that learns from unlabelled rows keeps them in every training part. With `transductive`, the rows of a test part
    stay there too, without their labels.

    Parameters
    ----------
    estimator : classifier or regressor
        One that takes unlabelled rows by the rule of ``kernelweave.model_selection.semi_supervised``, or a
        supervised one, which gets the labelled rows only. It is cloned.
    X : array, sparse matrix or frame of shape (n_samples, n_features)
        Labelled and unlabelled rows.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Labels, some of them missing; several columns of numbers only.
    cv : int, splitter, iterable of (train, test) or None, default=None
        An int means :class:`~kernelweave.SemiSupervisedSplit` with so many parts; None five, or as many as there are
        labelled rows or groups of them. Of other splitters, the labelled rows of the test parts are used.
    method : {"auto", "predict", "predict_proba", "decision_function"}, default="auto"
        What to ask of the models. "auto": for classes probabilities, decision values or classes, the first of these
        that the estimator has; for numbers "predict".
    transductive : bool, default=True
        Whether held-out rows stay in the training part as unlabelled rows. True estimates the errors on the unlabelled
        rows of X, False those on rows never seen; say False, too, with a splitter that has
        ``group_unlabeled="drop"``. Without effect on supervised estimators.
    sample_weight : array-like of shape (n_samples,), default=None
        For `fit`. Rows of weight zero take no part: they are neither trained on nor tested.
    groups : array-like of shape (n_samples,), default=None
        Rows of one group are held out together.
    unlabeled : "auto", None or marker, default="auto"
        What marks an unlabelled row, as in :class:`~kernelweave.SSMKClassifier`. Without effect on numbers.
    n_jobs : int or None, default=None
        Number of processes among which joblib shares the folds.
    random_state : int, RandomState instance or None, default=None
        Seeds the splitting if `cv` is an int or None; the estimator has its own.

    Returns
    -------
    OutOfFold
        Rows that are never tested, such as the only labelled row of a class, are not in it. Of a row that is tested
        repeatedly, probabilities, decision values and numbers are averaged, and of classes it gets the most frequent.

    See Also
    --------
    kernelweave.SemiSupervisedSplit : The folds.
    sklearn.model_selection.cross_val_predict : Where all rows are labelled.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import HarmonicClassifier
    >>> from kernelweave.model_selection import out_of_fold
    >>> X = np.array([[0.0], [0.1], [0.2], [0.3], [5.0], [5.1], [5.2], [5.3]])
    >>> y = ["low", "low", None, None, "high", "high", None, None]
    >>> result = out_of_fold(HarmonicClassifier(n_neighbors=3), X, y, cv=2, method="predict", random_state=0)
    >>> result.rows, result.predictions.tolist()
    (array([0, 1, 4, 5]), ['low', 'low', 'high', 'high'])
    """
    require("out_of_fold", "method", method, METHODS.holds(method), METHODS.expected)
    part = _read_labels(estimator, y, unlabeled)
    X, y, groups = utils.indexable(X, y, groups)
    weights = check_weights(estimator, sample_weight, part.n_labeled + part.n_unlabeled)
    utils.check_consistent_length(X, y, groups)
    kept, part = np.flatnonzero(weights), part.restrict(weights > 0)
    labels = write_labels(estimator, part)
    pairs = list(_split_labeled(X, y, groups, part, labels.y, kept, cv, random_state))
    sample = X if len(kept) == len(weights) else _safe_split(estimator, X, None, kept)[0]
    train = [_training_part(estimator, part, labels, *pair, transductive) for pair in pairs]
    task = _Task(estimator, sample, _choose_method(estimator, method), labels.classes)
    given = None if sample_weight is None else weights[kept]
    outputs = Parallel(n_jobs=n_jobs)(
        delayed(_predict_fold)(task, rows, y_train, None if given is None else given[rows], test)
        for (rows, y_train), (_, test) in zip(train, pairs, strict=True)
    )
    return _join(outputs, pairs, kept, part, task.method)


class FoldModel(NamedTuple):
    """A model, the labelled rows whose labels it has not seen, and these labels in the coding that it answers in."""

    model: Any
    rows: Rows
    y: NDArray[Any]


def fold_models(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    cv: Any = None,
    transductive: bool = True,
    groups: Any = None,
    unlabeled: Any = "auto",
    random_state: Any = None,
) -> Iterator[FoldModel]:
    """Fit the models whose predictions `out_of_fold` gives, one after the other.

    Parameters
    ----------
    estimator, X, y, cv, transductive, groups, unlabeled, random_state
        As in `out_of_fold`.

    Yields
    ------
    FoldModel

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import HarmonicClassifier
    >>> from kernelweave.model_selection.out_of_fold import fold_models
    >>> X = np.array([[0.0], [0.1], [0.2], [0.3], [5.0], [5.1], [5.2], [5.3]])
    >>> y = ["low", "low", None, None, "high", "high", None, None]
    >>> for model, rows, given in fold_models(HarmonicClassifier(n_neighbors=3), X, y, cv=2, random_state=0):
    ...     print(model.predict(X[rows]).tolist() == given.tolist())
    True
    True
    """
    part = _read_labels(estimator, y, unlabeled)
    X, y, groups = utils.indexable(X, y, groups)
    utils.check_consistent_length(X, y, groups)
    labels, everything = write_labels(estimator, part), np.arange(len(y))
    for train, test in _split_labeled(X, y, groups, part, labels.y, everything, cv, random_state):
        rows, y_train = _training_part(estimator, part, labels, train, test, transductive)
        X_train = X if len(rows) == len(everything) else _safe_split(estimator, X, None, rows)[0]
        yield FoldModel(clone(estimator).fit(X_train, y_train), test, labels.y[test])


@dataclass(frozen=True, eq=False)
class _Task:
    """What all folds share: the estimator, the rows, what to ask, and the classes that the estimator must learn."""

    estimator: Any
    X: Any
    method: str
    classes: NDArray[Any] | None


def _read_labels(estimator: Any, y: Any, unlabeled: Any) -> Partition | TargetPartition:
    if is_classifier(estimator):
        part = partition(y, unlabeled=unlabeled)
        refuse_inner_marker(estimator, part, unlabeled, "out_of_fold")
        return part
    if is_regressor(estimator):
        return partition_targets(y, several=True)
    raise TypeError(f"out_of_fold needs a classifier or a regressor, got {estimator!r}.")


def _choose_method(estimator: Any, method: str) -> str:
    if method != "auto":
        if not hasattr(estimator, method):
            raise ValueError(f'{estimator!r} has no {method}. Pass method="auto", or one that it has.')
        return method
    methods = ("predict_proba", "decision_function") if is_classifier(estimator) else ()
    return next((name for name in methods if hasattr(estimator, name)), "predict")


def _split_labeled(
    X: Any, y: Any, groups: Any, part: Any, known: NDArray[Any], kept: Rows, cv: Any, random_state: Any
) -> Iterator[tuple[Rows, Rows]]:
    """Training parts and the labelled rows of test parts, as numbers among the rows of positive weight."""
    is_classes = isinstance(part, Partition)
    if cv is None:
        units = part.labeled if groups is None else np.asarray(groups)[kept[part.labeled]]
        cv = max(2, min(N_SPLITS, len(set(units.tolist()))))
    if is_classes:
        known = write_classes(part).y
    elif known.ndim == 2:  # numbers are split as they come, so one column stands for all
        known = known[:, 0]
    target = "classes" if is_classes else "numbers"
    number = np.full(len(y), -1)
    number[kept] = np.arange(len(kept))
    for train, test in make_folds(cv, X, y, groups, known, kept, target, random_state):
        tested = np.intersect1d(number[test], part.labeled)
        if len(tested):
            yield number[train], tested


def _training_part(
    estimator: Any, part: Any, labels: WrittenLabels, train: Rows, test: Rows, transductive: bool
) -> tuple[Rows, NDArray[Any]]:
    """The rows of a training part and their labels, in which those of the test part are hidden."""
    if not takes_unlabeled(estimator):
        rows = np.setdiff1d(np.intersect1d(train, part.labeled), test)
        return rows, part.labels[np.searchsorted(part.labeled, rows)]
    rows = np.union1d(train, test) if transductive else np.setdiff1d(train, test)
    return rows, labels.hide(test)[rows]


def _predict_fold(task: _Task, rows: Rows, y: NDArray[Any], weights: Floats | None, test: Rows) -> Floats:
    """Outputs for a test part, one row each; of classes, a one in the column of the predicted class."""
    params = {} if weights is None else {"sample_weight": weights}
    X_train, _ = _safe_split(task.estimator, task.X, None, rows)
    X_test, _ = _safe_split(task.estimator, task.X, None, test, rows)
    model = clone(task.estimator).fit(X_train, y, **params)
    output = np.asarray(getattr(model, task.method)(X_test))
    if task.classes is None:
        return output
    if task.method == "predict":
        return np.asarray(output[:, None] == task.classes, dtype=np.float64)
    if list(model.classes_) != list(task.classes):
        raise ValueError(
            f"{task.estimator!r} learned the classes {model.classes_.tolist()} of a training part, but y has "
            f"{task.classes.tolist()}. If a training part lost a class, pass another cv, such as SemiSupervisedSplit; "
            "if one of these classes marks unlabelled rows, name it with unlabeled= of out_of_fold and of the "
            "estimator."
        )
    return output


def _join(outputs: list[Floats], pairs: list[tuple[Rows, Rows]], kept: Rows, part: Any, method: str) -> OutOfFold:
    """The mean output of each tested row; of classes, the most frequent one."""
    if not pairs:
        raise ValueError("No test part of cv holds a labelled row. Use SemiSupervisedSplit, or cv=None.")
    tests = [test for _, test in pairs]
    rows, first, inverse, times = np.unique(
        np.concatenate(tests), return_index=True, return_inverse=True, return_counts=True
    )
    total = np.zeros((len(rows), *outputs[0].shape[1:]))
    np.add.at(total, inverse, np.concatenate(outputs))
    fold = np.repeat(np.arange(len(tests)), [len(test) for test in tests])[first]
    mean = (total.T / times).T
    if isinstance(part, TargetPartition):
        return OutOfFold(kept[rows], fold, mean, None, method)
    predictions = part.classes[mean.argmax(axis=1)] if method == "predict" else mean
    return OutOfFold(kept[rows], fold, predictions, part.classes, method)

"""What estimators take and give out: classes or numbers, from the values of their expansion."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import check_consistent_length

from ...distributed.rows import bring_all
from ...labels import (
    Partition,
    TargetPartition,
    column,
    describe_markers,
    find_text_markers,
    is_unlabeled,
    labeled_values,
    partition,
    partition_targets,
)
from ...warn import warn_caller
from .base import KernelEstimator
from .sample import Sample


class KernelClassifier(ClassifierMixin, KernelEstimator):
    """A classifier whose model is an expansion with one output for two classes, and one for each class of more."""

    def decision_function(self, X: Any, split: bool = False) -> np.ndarray:
        """Return the value of the model at the rows of ``X``.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            Rows to predict.
        split : bool, default=False
            Whether to return what each kernel of the library adds. The parts sum to the whole over axis 1; the
            intercept is shared equally among the kernels in use.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Positive means ``classes_[1]`` for two classes; with ``split`` an axis of length ``n_kernels`` comes
            second.
        """
        values = self._outputs(X, split)
        return values[..., 0] if len(self.classes_) == 2 else values

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted class of each row.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        ndarray of shape (n_samples,)
            Values of ``classes_``: for two classes by the sign of the decision value, else the one with the largest.
        """
        codes = choose_classes(self._outputs(X))
        return self.classes_[codes]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy on the labelled rows of ``X``; unlabelled rows are ignored.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            Rows to predict.
        y : array-like of shape (n_samples,)
            Labels, unlabelled rows marked as for :meth:`fit`; at least one must be given.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows; all equal by default.

        Returns
        -------
        float
            The share of labelled rows whose class is predicted.
        """
        return labeled_accuracy(self.predict(X), y, sample_weight, self.unlabeled, self.classes_)


class KernelRegressor(RegressorMixin, KernelEstimator):
    """A regressor whose model is an expansion with one output for each number that a row has."""

    def predict(self, X: Any, split: bool = False) -> np.ndarray:
        """Return the predicted number of each row.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            Rows to predict.
        split : bool, default=False
            Whether to return what each kernel of the library adds. The parts sum to the whole over axis 1; the
            intercept is shared equally among the kernels in use.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            The numbers, in as many columns as ``y`` had; with ``split`` an axis of length ``n_kernels`` comes second.
        """
        values = self._outputs(X, split)
        return values[..., 0] if values.shape[-1] == 1 else values

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the coefficient of determination on the labelled rows of ``X``; unlabelled rows are ignored.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            Rows to predict.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Numbers; NaN, None and NA mark unlabelled rows. At least one must be given.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows; all equal by default.

        Returns
        -------
        float
            At most 1; 0 for a model that always predicts the mean of ``y``.
        """
        return labeled_r2(self.predict(X), y, sample_weight)


def read_all_labels(y: Any, owner: str) -> Partition:
    """Read classes of which every row must have one; -1 is a class like any other."""
    labels = refuse_unlabeled(y, owner, "SSMKClassifier")
    return _read_classes(labels, owner, "leave them out, or write None there and use SSMKClassifier")


def read_some_labels(y: Any, owner: str) -> Partition:
    """Read classes of which NaN, None and NA are none; -1 is a class like any other."""
    return _read_classes(y, owner, "write NaN or None there")


def _read_classes(y: Any, owner: str, remedy: str) -> Partition:
    """Read classes, with a warning where some look like markers of unlabelled rows, which they are not here."""
    labels = partition(y, unlabeled=None)
    if labels.n_classes > 2 and -1 in labels.classes.tolist():
        warn_caller(
            f"y holds -1 and {labels.n_classes - 1} other classes; {owner} treats -1 as a class. If it marks "
            f"unlabelled rows, {remedy}."
        )
    markers = find_text_markers(labels.classes.tolist())
    if markers:
        warn_caller(
            f"y has {describe_markers(markers)}; to {owner} all texts are classes. If unlabelled rows are meant, "
            f"{remedy}."
        )
    return labels


def read_all_numbers(y: Any, owner: str) -> TargetPartition:
    """Read numbers of which every row must have one."""
    return partition_targets(refuse_unlabeled(y, owner, "SSMKRegressor"))


def refuse_unlabeled(y: Any, owner: str, other: str) -> np.ndarray:
    """Return y as one column; refuse rows without a label, and name the estimator that makes use of them."""
    labels = column(y)  # read once: a warning about its shape is given once
    n_unlabeled = int(is_unlabeled(labels, unlabeled=None).sum())
    if n_unlabeled:
        raise ValueError(
            f"Input y contains NaN: {n_unlabeled} rows of y have no label, and {owner} learns from labelled rows only. "
            f"Leave them out, or use {other}, which uses them."
        )
    return labels


def choose_classes(values: np.ndarray) -> np.ndarray:
    """Return the code of the predicted class from outputs of shape (n_samples, n_outputs)."""
    return (values[:, 0] > 0).astype(np.intp) if values.shape[1] == 1 else values.argmax(axis=1)


def transduce_classes(values: np.ndarray, sample: Sample) -> np.ndarray:
    """Return the given label of labelled rows and the predicted one of the others, from outputs at all given rows."""
    return _insert_given(sample.partition.classes[choose_classes(values)], sample)


def transduce_numbers(values: np.ndarray, sample: Sample) -> np.ndarray:
    """Return the given number of labelled rows and the predicted one of the others, from outputs at all given rows."""
    return _insert_given(values[:, 0].copy() if values.shape[1] == 1 else values.copy(), sample)


def labeled_accuracy(predicted: np.ndarray, y: Any, sample_weight: Any, unlabeled: Any, classes: np.ndarray) -> float:
    """Return the accuracy of predictions on the labelled rows of ``y``."""
    predicted, y, sample_weight = bring_all(predicted, y, sample_weight)  # Dask may not know how many rows there are
    check_consistent_length(predicted, y, sample_weight)
    rows, given = labeled_values(y, unlabeled=unlabeled, classes=classes)
    return float(accuracy_score(given, predicted[rows], sample_weight=_read_labeled_weights(rows, sample_weight)))


def labeled_r2(predicted: np.ndarray, y: Any, sample_weight: Any) -> float:
    """Return the coefficient of determination of predictions on the labelled rows of ``y``."""
    predicted, y, sample_weight = bring_all(predicted, y, sample_weight)
    check_consistent_length(predicted, y, sample_weight)
    given = partition_targets(y, several=predicted.ndim == 2)
    weight = _read_labeled_weights(given.labeled, sample_weight)
    return float(r2_score(given.targets, predicted[given.labeled], sample_weight=weight))


def _insert_given(predicted: np.ndarray, sample: Sample) -> np.ndarray:
    predicted[sample.given.labeled] = sample.given.labels
    return predicted


def _read_labeled_weights(rows: np.ndarray, sample_weight: Any) -> np.ndarray | None:
    """Return the weights of the labelled rows that a score counts; refuse to score none."""
    if len(rows) == 0:
        raise ValueError("score needs at least one labelled row; y has none.")
    return None if sample_weight is None else np.asarray(sample_weight)[rows]

"""What estimators take and give out: classes or numbers, from the values of their expansion."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import Tags, check_consistent_length

from ..labels import Partition, TargetPartition, column, is_unlabeled, labeled_values, partition, partition_targets
from ..warn import warn_caller
from .base import KernelEstimator, Sample, is_nonnegative, require


class ClassOutputs(KernelEstimator):
    """An estimator whose outputs are the classes, or one class against the other."""

    def decision_function(self, X: Any, split: bool = False) -> np.ndarray:
        """Return the value of the model at the rows of ``X``.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
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
        """Return the predicted class of each row."""
        codes = winners(self._outputs(X, split=False))
        return self.classes_[codes]

    def _keep_labels(self, sample: Sample) -> None:
        self.classes_ = sample.partition.classes.copy()


class SupervisedClasses(ClassOutputs):
    """Classes of which every row must have one; -1 is a class like any other."""

    def _partition(self, y: Any) -> Partition:
        found = partition(refuse_unlabeled(y, type(self).__name__, "SSMKClassifier"), unlabeled=None)
        if found.n_classes > 2 and -1 in found.classes.tolist():
            warn_caller(
                f"y holds -1 beside {found.n_classes - 1} other classes; {type(self).__name__} takes it for a class "
                "like any other. If it marks unlabelled rows, leave them out or use SSMKClassifier."
            )
        return found


class SemiSupervisedLabels(ClassifierMixin):
    """Classes that some rows lack; ``unlabeled`` says how y marks these."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy on the labelled rows of ``X``; unlabelled rows are ignored."""
        predicted = self.predict(X)
        check_consistent_length(predicted, y, sample_weight)
        rows, given = labeled_values(y, unlabeled=self.unlabeled, classes=self.classes_)
        return float(accuracy_score(given, predicted[rows], sample_weight=row_weights(rows, sample_weight)))

    def _partition(self, y: Any) -> Partition:
        return partition(y, unlabeled=self.unlabeled)


class SemiSupervisedClasses(SemiSupervisedLabels, ClassOutputs):
    """Classes that some rows lack, predicted by an expansion."""

    def _keep_transduction(self, X: Any, sample: Sample) -> None:
        """Keep the given label of labelled rows, and the predicted one of the others."""
        self.transduction_ = self.predict(X)
        self.transduction_[sample.given.labeled] = sample.given.labels


class NumberOutputs(KernelEstimator):
    """An estimator whose output is a number, learned up to ``epsilon``."""

    def predict(self, X: Any, split: bool = False) -> np.ndarray:
        """Return the predicted number of each row; with ``split`` what each kernel adds, one column a kernel."""
        return self._outputs(X, split)[..., 0]

    def _check_params(self) -> None:
        super()._check_params()
        require(type(self).__name__, "epsilon", self.epsilon, is_nonnegative(self.epsilon), "a number, 0 or more")

    def _keep_labels(self, sample: Sample) -> None:
        """Numbers need no coding."""


class SupervisedNumbers(NumberOutputs):
    """Numbers of which every row must have one."""

    def _partition(self, y: Any) -> TargetPartition:
        return partition_targets(refuse_unlabeled(y, type(self).__name__, "SSMKRegressor"))


class SemiSupervisedNumbers(RegressorMixin):
    """Numbers that some rows lack."""

    _takes_several: ClassVar[bool] = False  # whether y may have several columns

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the coefficient of determination on the labelled rows of ``X``; unlabelled rows are ignored."""
        predicted = self.predict(X)
        check_consistent_length(predicted, y, sample_weight)
        given = self._partition(y)
        weight = row_weights(given.labeled, sample_weight)
        return float(r2_score(given.targets, predicted[given.labeled], sample_weight=weight))

    def _partition(self, y: Any) -> TargetPartition:
        return partition_targets(y, several=self._takes_several)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = self._takes_several
        return tags


def refuse_unlabeled(y: Any, owner: str, other: str) -> np.ndarray:
    """Return y as one column; refuse rows without a label, and name the estimator that makes use of them."""
    labels = column(y)  # read once: a warning about its shape is given once
    n_unlabeled = int(is_unlabeled(labels, unlabeled=None).sum())
    if n_unlabeled:
        raise ValueError(
            f"Input y contains NaN: {n_unlabeled} rows of y have no label, and {owner} learns from labelled rows only. "
            f"Leave them out, or use {other}, which makes use of them."
        )
    return labels


def winners(values: np.ndarray) -> np.ndarray:
    """Return the code of the predicted class from outputs of shape (n_samples, n_outputs)."""
    return (values[:, 0] > 0).astype(np.intp) if values.shape[1] == 1 else values.argmax(axis=1)


def row_weights(rows: np.ndarray, sample_weight: Any) -> np.ndarray | None:
    """Return the weights of the labelled rows that a score counts; refuse to score none."""
    if len(rows) == 0:
        raise ValueError("score needs at least one labelled row; y has none.")
    return None if sample_weight is None else np.asarray(sample_weight)[rows]

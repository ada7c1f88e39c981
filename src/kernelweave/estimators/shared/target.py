"""What labelled rows say to a learner of kernels: indicators of classes, or numbers in units of their deviation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.multiclass import type_of_target

from ...labels import Partition, TargetPartition, column, labeled_values, partition, partition_targets
from .sample import Sample


@dataclass(frozen=True, eq=False)
class Target:
    """What the labelled rows say.

    Attributes
    ----------
    rows : ndarray of shape (n_labeled,)
        Numbers of rows of the sample.
    values : ndarray of shape (n_labeled, n_columns)
        Indicators of the classes, or numbers in units of their deviation.
    weight : ndarray of shape (n_labeled,)
    deviation : ndarray of shape (n_columns,)
        The unit of numbers; ones for classes.
    names : tuple of str
        Of the columns.
    is_classes : bool
    """

    rows: np.ndarray
    values: np.ndarray
    weight: np.ndarray
    deviation: np.ndarray
    names: tuple[str, ...]
    is_classes: bool

    @property
    def fewest(self) -> int:
        """Labelled rows of the smallest class; of numbers, all labelled rows."""
        return int(np.count_nonzero(self.values, axis=0).min()) if self.is_classes else len(self.rows)

    def restrict(self, kept: np.ndarray) -> Target:
        """Return the target of some of the labelled rows, as if the others were not known; all columns stay."""
        part = replace(self, rows=self.rows[kept], values=self.values[kept], weight=self.weight[kept])
        return part if self.is_classes else _standardize(part)


def read_target(sample: Sample) -> Target:
    """Return the target of a sample; refuse numbers that are all the same."""
    labels, weight = sample.partition, sample.labeled_weight
    if isinstance(labels, Partition):
        names = tuple(map(str, labels.classes.tolist()))
        return Target(labels.labeled, labels.indicator(), weight, np.ones(labels.n_classes), names, True)
    numbers = labels.targets.reshape(labels.n_labeled, -1)
    if not np.ptp(numbers, axis=0).any():
        raise ValueError(
            "All labelled rows have the same target, with which no kernel can be aligned "
            f"(n_samples={labels.n_labeled}). Label rows with another one."
        )
    names = tuple(f"output {k}" for k in range(numbers.shape[1]))
    return _standardize(Target(labels.labeled, numbers, weight, np.ones(numbers.shape[1]), names, False))


def read_labels(y: Any, target: str, unlabeled: Any) -> Partition | TargetPartition:
    """Read classes or numbers, as ``target`` says; ``"auto"``: numbers where y is continuous or has several columns."""
    several = _has_several_columns(y)
    y = y if several else column(y)  # read once: a warning about its shape is given once
    if target == "numbers" or (target == "auto" and (several or _is_continuous(y, unlabeled))):
        return partition_targets(y, several=True)
    return partition(y, unlabeled=unlabeled)


def _has_several_columns(y: Any) -> bool:
    shape = y.shape if hasattr(y, "shape") else np.asarray(y, dtype=object).shape
    return len(shape) == 2 and shape[1] > 1


def _is_continuous(y: np.ndarray, unlabeled: Any) -> bool:
    values = labeled_values(y, unlabeled=unlabeled, regression=True)[1]
    return values.dtype.kind == "f" and type_of_target(values) == "continuous"


def weighted_deviation(values: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the weighted standard deviation of each column; zero for columns of one and the same number."""
    centered, varies = _center(values, weight)
    unit = np.where(varies, np.abs(centered).max(axis=0), 1.0)  # squares neither under- nor overflow
    return np.asarray(unit * np.sqrt(np.average(np.square(centered / unit), axis=0, weights=weight)))


def _standardize(target: Target) -> Target:
    """Centre numbers and bring them to their deviation; columns of one and the same number become zero."""
    centered, varies = _center(target.values, target.weight)
    size = np.where(varies, weighted_deviation(target.values, target.weight), 1.0)
    return replace(target, values=centered / size, deviation=target.deviation * size)


def _center(values: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers about the mean of their column, zeros where it does not vary, and which columns vary."""
    varies = values.min(axis=0) < values.max(axis=0)
    return np.where(varies, values - np.average(values, axis=0, weights=weight), 0.0), varies

"""Which estimators learn from unlabelled rows, and how labels are written for them.

An estimator takes unlabelled rows if one of these holds, in this order:

1. It is one of scikit-learn's: LabelPropagation, LabelSpreading or SelfTrainingClassifier. Classes are then whole
   numbers from 0 on, and -1 marks an unlabelled row.
2. Its class says so by the attribute ``_takes_unlabeled``; all estimators of this package do, by yes or no.
3. It has a parameter ``unlabeled``.

For the last two, None marks an unlabelled row among classes and NaN one among numbers: by the rule of
:mod:`kernelweave.labels` they always do, and -1 beside them is a class. A pipeline is asked by its last step; a search,
and a meta-estimator with the parameters ``estimator`` and ``unlabeled``, by its estimator. All others are supervised.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.semi_supervised import LabelPropagation, LabelSpreading, SelfTrainingClassifier

from ..labels import Partition, TargetPartition

TAKES_CODES = (LabelPropagation, LabelSpreading, SelfTrainingClassifier)


def takes_unlabeled(estimator: Any) -> bool:
    """Whether the estimator learns from unlabelled rows, by the rule at the top of this module.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sklearn.svm import SVC
    >>> from kernelweave import SSMKClassifier
    >>> takes_unlabeled(make_pipeline(StandardScaler(), SSMKClassifier())), takes_unlabeled(SVC())
    (True, False)
    """
    inner = innermost(estimator)
    if isinstance(inner, TAKES_CODES):
        return True
    return bool(getattr(inner, "_takes_unlabeled", "unlabeled" in _own_params(inner)))


def innermost(estimator: Any) -> Any:
    """The estimator that reads y in the end: the last step of a pipeline, the estimator of a search."""
    while True:
        if isinstance(estimator, Pipeline):
            estimator = estimator.steps[-1][1]
        elif isinstance(estimator, BaseSearchCV) or {"estimator", "unlabeled"} <= _own_params(estimator).keys():
            estimator = estimator.estimator
        else:
            return estimator


def named_markers(estimator: Any) -> list[Any]:
    """Values that the estimator, or one inside it, was told to take for the marker of unlabelled rows."""
    params = estimator.get_params() if hasattr(estimator, "get_params") else {}
    named = [value for key, value in params.items() if key.split("__")[-1] == "unlabeled"]
    return [value for value in named if np.isscalar(value) and value != "auto"]


def refuse_inner_marker(estimator: Any, part: Partition, unlabeled: Any, owner: str) -> None:
    """Refuse a marker of unlabelled rows that the estimator was told of and its `owner` was not."""
    named = named_markers(estimator)
    for marker in part.classes.tolist():
        if marker in named:
            raise ValueError(
                f"{estimator!r} takes {marker!r} for the marker of unlabelled rows, but {owner} has "
                f"unlabeled={unlabeled!r}, by which it is a class. Pass unlabeled={marker!r} to {owner} too."
            )


@dataclass(frozen=True, eq=False)
class WrittenLabels:
    """Labels in the coding that an estimator reads.

    Attributes
    ----------
    y : ndarray of shape (n_rows,) or (n_rows, n_outputs)
        Labels, and `marker` where there is none.
    marker : None, NaN or -1
    classes : ndarray of shape (n_classes,) or None
        The classes in this coding; None for numbers.
    """

    y: NDArray[Any]
    marker: Any
    classes: NDArray[Any] | None

    def hide(self, rows: NDArray[np.intp]) -> NDArray[Any]:
        """A copy of y in which some rows have no label."""
        hidden = self.y.copy()
        hidden[rows] = self.marker
        return hidden


def write_labels(estimator: Any, part: Partition | TargetPartition) -> WrittenLabels:
    """The labels of all rows in the coding that the estimator reads."""
    n_rows = part.n_labeled + part.n_unlabeled
    if isinstance(part, TargetPartition):
        numbers = np.full((n_rows, *part.targets.shape[1:]), np.nan)
        numbers[part.labeled] = part.targets
        return WrittenLabels(numbers, np.nan, None)
    if isinstance(innermost(estimator), TAKES_CODES):
        codes = np.full(n_rows, -1)
        codes[part.labeled] = part.codes
        return WrittenLabels(codes, -1, np.arange(part.n_classes))
    return write_classes(part)


def write_classes(part: Partition) -> WrittenLabels:
    """The classes of all rows, and None where there is none."""
    labels = np.full(part.n_labeled + part.n_unlabeled, None, dtype=object)
    labels[part.labeled] = part.labels
    return WrittenLabels(labels, None, part.classes)


def _own_params(estimator: Any) -> dict[str, Any]:
    return estimator.get_params(deep=False) if hasattr(estimator, "get_params") else {}

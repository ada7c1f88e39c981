"""What a page about a fitted model is made from: the model, its rows, and its errors on held-out rows.

Errors are those that an AutoKernel* model keeps, or those of five folds, in which a copy of the model is fitted anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from ..estimators.auto.leaderboard import ErrorEstimate, PairedDifference, class_error, number_error, widen_for_folds
from ..labels import partition, partition_targets
from ..model_selection import out_of_fold


@dataclass(frozen=True, eq=False)
class HeldOut:
    """What is known of predictions for held-out rows.

    Attributes
    ----------
    given, predicted : ndarray of shape (n_tested,)
    error : ErrorEstimate or None
        None where nothing could be held out.
    """

    given: np.ndarray
    predicted: np.ndarray
    error: ErrorEstimate | None


@dataclass(frozen=True, eq=False)
class FitEvidence:
    """What sections are made from.

    Attributes
    ----------
    model : estimator
        The last step of a pipeline.
    X : array or frame
        As the model sees it.
    y : array-like of shape (n_samples,)
    n_labeled, n_unlabeled : int
    held_out : HeldOut
    name_row : callable
        How a row is called on the page.
    name_label : callable
        How a label is written on the page.
    center, unit : float
        What was subtracted from numbers, and what they were divided by, before the fit. ``held_out`` and the
        properties are in the unit of the numbers as they were.
    """

    model: Any
    X: Any
    y: Any
    n_labeled: int
    n_unlabeled: int
    held_out: HeldOut
    name_row: Callable[[int], str] = str
    name_label: Callable[[Any], str] = str
    center: float = 0.0
    unit: float = 1.0

    @property
    def has_classes(self) -> bool:
        """Whether classes are learned, and not numbers."""
        return is_classifier(self.model)

    @property
    def sentences(self) -> list[str] | None:
        """What the model says of itself; None where it has no words."""
        if not hasattr(self.model, "explain"):
            return None
        text = self.model.explain() if self.has_classes else self.model.explain(unit=self.unit)
        return list(text.splitlines())

    @property
    def leaderboard(self) -> list[dict[str, Any]]:
        """The candidates of a search; none where there was no search."""
        records = getattr(self.model, "leaderboard_", [])
        return [record | {key: self.unit * record[key] for key in ("error", "standard_error")} for record in records]

    @property
    def unlabeled_helped(self) -> PairedDifference | None:
        """The error without unlabelled rows less that with them, if it is known."""
        helped = getattr(self.model, "unlabeled_helped_", None)
        return None if helped is None else helped.times(self.unit)


def read_evidence(
    model: Any, X: Any, y: Any, random_state: Any = 0, *, center: float = 0.0, unit: float = 1.0, **names: Any
) -> FitEvidence:
    """Return what a page about a fitted model is made from; models without held-out rows are fitted in folds.

    Parameters
    ----------
    model : fitted estimator
    X, y : as in the fit
    random_state : int, RandomState or None
        Of the folds.
    center, unit, **names
        As in :class:`FitEvidence`.
    """
    if is_classifier(model):
        part: Any = partition(y, unlabeled=getattr(model, "unlabeled", "auto"))
    else:
        part = partition_targets(y)
    held_out = _read_held_out(model, X, y, part, random_state)
    if not is_classifier(model):
        given, predicted = (center + unit * np.asarray(each) for each in (held_out.given, held_out.predicted))
        held_out = HeldOut(given, predicted, None if held_out.error is None else held_out.error.times(unit))
    return FitEvidence(model, X, y, part.n_labeled, part.n_unlabeled, held_out, center=center, unit=unit, **names)


def _read_held_out(model: Any, X: Any, y: Any, part: Any, random_state: Any) -> HeldOut:
    labels = np.asarray(part.labels)
    if hasattr(model, "error_"):
        given = labels[np.searchsorted(part.labeled, model.oof_rows_)]
        if is_classifier(model):
            predicted = model.classes_[model.oof_probabilities_.argmax(axis=1)]
        else:
            predicted = model.oof_predictions_
        return HeldOut(given, predicted, model.error_)
    try:
        found = out_of_fold(model, X, y, method="predict", random_state=random_state)
    except ValueError:  # too few labels for folds
        return HeldOut(labels[:0], labels[:0], None)
    given, ones = labels[np.searchsorted(part.labeled, found.rows)], np.ones(len(found.rows))
    widening = widen_for_folds(len(ones), part.n_unlabeled)
    if is_classifier(model):
        error = class_error(found.predictions != given, ones, widening)
    else:
        error = number_error(found.predictions - given, ones, widening)
    return HeldOut(given, found.predictions, error)

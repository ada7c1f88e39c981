"""What a page about a fitted model is made from: the model, its rows, and its errors on held-out rows.

Errors are those that an AutoKernel* model keeps, or those of five folds, in which a copy of the model is fitted anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from ..estimators.auto.leaderboard import ErrorEstimate, class_error, number_error, widen_for_folds
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
    """

    model: Any
    X: Any
    y: Any
    n_labeled: int
    n_unlabeled: int
    held_out: HeldOut
    name_row: Callable[[int], str] = str
    name_label: Callable[[Any], str] = str

    @property
    def has_classes(self) -> bool:
        """Whether classes are learned, and not numbers."""
        return is_classifier(self.model)


def read_evidence(model: Any, X: Any, y: Any, random_state: Any = 0, **names: Callable[[Any], str]) -> FitEvidence:
    """Return what a page about a fitted model is made from; models without held-out rows are fitted in folds.

    Parameters
    ----------
    model : fitted estimator
    X, y : as in the fit
    random_state : int, RandomState or None
        Of the folds.
    **names : callable
        ``name_row`` and ``name_label`` of :class:`FitEvidence`.
    """
    if is_classifier(model):
        part: Any = partition(y, unlabeled=getattr(model, "unlabeled", "auto"))
    else:
        part = partition_targets(y)
    held_out = _read_held_out(model, X, y, part, random_state)
    return FitEvidence(model, X, y, part.n_labeled, part.n_unlabeled, held_out, **names)


def _read_held_out(model: Any, X: Any, y: Any, part: Any, random_state: Any) -> HeldOut:
    labels = np.asarray(part.labels)
    if hasattr(model, "oof_rows_"):
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

"""Classes: errors beside those of the majority class and of SVC, probabilities calibrated on held-out rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.svm import SVC

from ..model_selection.calibration import decision_values
from ..model_selection.scaling import Choice, choose_scaling, most_probable
from .folds import N_FOLDS, HeldOut, Setup, Target, TaskResult, learn
from .learner import fit_learner
from .models import ClassModel
from .statistics import class_error, compare_errors, mcnemar_test
from .target import MIN_LABELS, count_classes, join_names, note_doubtful_classes


def label_classes(cells: np.ndarray, empty: np.ndarray, name: str, setup: Setup) -> TaskResult:
    """Learn the classes given in a target column.

    Parameters
    ----------
    cells : ndarray of str, shape (n_rows,)
        The target column.
    empty : ndarray of bool, shape (n_rows,)
        Which of the cells are to be filled.
    name : str
        Name of the column.
    setup : Setup
    """
    counts = count_classes(cells[~empty], name)
    y = cells.astype(object)
    y[empty] = None
    target = Target("classification", y, np.flatnonzero(~empty), min(N_FOLDS, *counts.values()))
    learner, held_out = learn(target, setup, _predict_fold)
    given = y[held_out.rows].astype(str)
    choice = _calibrate(held_out, given)
    classes = learner.classes_.astype(str)
    codes = most_probable(held_out.outputs["kernelweave"]) if choice is None else choice.held_out
    predictions = held_out.outputs | {"kernelweave": classes[codes]}
    errors = {method: class_error(given, predicted) for method, predicted in predictions.items()}
    p_value = mcnemar_test(predictions["kernelweave"] != given, predictions["SVC"] != given)
    probabilities = "calibrated on held-out rows"
    if choice is None:
        probabilities = f"not given: a class has fewer than {MIN_LABELS} labelled rows that were held out"
    return TaskResult(
        model=ClassModel(learner, None if choice is None else choice.scaling),
        learner=learner,
        report={
            "classes": counts,
            "errors": errors,
            "probabilities": probabilities,
            "rows_tested": len(held_out.rows),
        },
        notes=note_doubtful_classes(list(counts))
        + _note_constant_probabilities(choice, classes)
        + compare_errors(errors, "error", p_value),
    )


def _predict_fold(
    learner: Any, X: np.ndarray, y: np.ndarray, train: np.ndarray, known: np.ndarray, test: np.ndarray
) -> dict[str, np.ndarray]:
    """Return our decision values, and the classes by the majority and by SVC."""
    labels = y[known].astype(str)
    return {
        "kernelweave": decision_values(fit_learner(learner, X[train], y[train]), X[test]),
        "majority class": DummyClassifier(strategy="most_frequent").fit(X[known], labels).predict(X[test]),
        "SVC": SVC(C=10.0).fit(X[known], labels).predict(X[test]),
    }


def _calibrate(held_out: HeldOut, given: np.ndarray) -> Choice | None:
    """Return the scaling that gives probabilities; None where a class has too few rows for one."""
    _, codes, counts = np.unique(given, return_inverse=True, return_counts=True)
    if counts.min() < MIN_LABELS:
        return None
    return choose_scaling(held_out.outputs["kernelweave"], codes, np.ones(len(codes)), held_out.fold_of)


def _note_constant_probabilities(choice: Choice | None, classes: np.ndarray) -> list[str]:
    if choice is None or not choice.is_flat.any():
        return []
    names = join_names(classes[-len(choice.is_flat) :][choice.is_flat].tolist())
    return [f"On held-out rows {names} cannot be told from the other classes: the probability is constant."]

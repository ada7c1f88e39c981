"""The two tasks: labels of a target column in, a fitted model with its report and notes out.

The target of regression is standardised before it is learned, and all that is reported is in its own unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import balanced_accuracy_score, mean_absolute_error, r2_score

from ..errors import ErrorCode, KernelweaveError
from ..estimators.auto.leaderboard import class_error, number_error
from ..model_selection.scaling import MIN_SLOPE
from .encoder import MAX_NUMBER
from .learner import Setup, describe_learner, fit_learner, note_limits
from .models import ClassModel, NumberModel
from .numbers import as_numbers, find_decimal_mark, find_number_format
from .target import check_groups, count_classes, join_names, note_doubtful_classes

COVERAGE = 0.9  # of the interval given with a number
OURS = "kernelweave"  # in the record, beside the majority class or the mean
ROUNDING = 1e-9  # of an error, within which two are the same


@dataclass(frozen=True, eq=False)
class TaskResult:
    """What a task learned.

    Attributes
    ----------
    model : ClassModel or NumberModel
        Fills cells.
    report : dict
        Plain data, among them the errors on held-out rows.
    notes : list of str
        Sentences on what speaks against using the labels.
    """

    model: Any
    report: dict[str, Any]
    notes: list[str]


def label_classes(
    cells: np.ndarray, empty: np.ndarray, name: str, setup: Setup, *, probabilities: bool, coverage: float | None
) -> TaskResult:
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
    probabilities : bool
        Whether the probability of every class is appended.
    coverage : float, optional
        Of a set of classes that is appended.
    """
    y, counts = read_classes(cells, empty, name, setup.groups)
    learner = fit_learner("classification", y, setup)
    is_tested = learner.error_ is not None
    errors = _class_errors(learner, cells[learner.oof_rows_].astype(str), counts) if is_tested else {}
    report = {
        "classes": counts,
        "errors": errors,
        "probabilities": "calibrated on held-out rows" if is_tested else "not given: too few rows were held out",
        **describe_learner(learner, setup.X),
    }
    notes = [*note_doubtful_classes(list(counts)), *_note_constant_probabilities(learner)]
    notes += [*_note_useless(errors, "error"), *note_limits(learner, int((~empty).sum()))]
    return TaskResult(ClassModel(learner, probabilities, coverage), report, notes)


def read_classes(
    cells: np.ndarray, empty: np.ndarray, name: str, groups: np.ndarray | None
) -> tuple[np.ndarray, dict[str, int]]:
    """Return the classes, None in empty cells, and how many rows each has; refuse those that cannot be learned from."""
    counts = count_classes(cells[~empty], name)
    if groups is not None:
        check_groups(groups[~empty], cells[~empty])
    y = cells.astype(object)
    y[empty] = None
    return y, counts


def _class_errors(learner: Any, given: np.ndarray, counts: dict[str, int]) -> dict[str, dict[str, Any]]:
    """Return the errors on held-out rows of the learner, and of the class that is given most often."""
    predicted = learner.classes_.astype(str)[learner.oof_probabilities_.argmax(axis=1)]
    majority = np.full(len(given), max(counts, key=lambda label: counts[label]))
    errors = {}
    of_majority = class_error(majority != given, np.ones(len(given)))
    for method, labels, error in ((OURS, predicted, learner.error_), ("majority class", majority, of_majority)):
        errors[method] = {
            "error": error.value,
            "interval": [error.low, error.high],
            "balanced_error": 1.0 - float(balanced_accuracy_score(given, labels)),
        }
    return errors


def _note_constant_probabilities(learner: Any) -> list[str]:
    if learner.error_ is None:
        return []
    is_flat = np.all([member.scaling.slope <= MIN_SLOPE for member in learner.members_], axis=0)
    if not is_flat.any():
        return []
    names = join_names(learner.classes_[-len(is_flat) :][is_flat].tolist())
    return [f"On held-out rows {names} cannot be told from the other classes: the probability is constant."]


def label_numbers(
    cells: np.ndarray, empty: np.ndarray, name: str, setup: Setup, *, coverage: float | None
) -> TaskResult:
    """Learn the numbers given in a target column.

    Parameters
    ----------
    cells, empty, name, setup
        As in `label_classes`.
    coverage : float, optional
        Of the interval; 0.9 by default.
    """
    given = cells[~empty]
    numbers = read_numbers(cells, empty, name, setup.groups)
    center, unit = float(np.nanmean(numbers)), float(np.nanstd(numbers)) or 1.0
    y = (numbers - center) / unit
    learner = fit_learner("regression", y, setup)
    truth = y[learner.oof_rows_]
    errors = _number_errors(learner, truth, unit) if learner.error_ is not None else {}
    coverage = COVERAGE if coverage is None else coverage
    radius = float(np.ptp(learner.predict_interval(setup.X[:1], coverage))) * unit / 2
    report = {
        "errors": errors,
        "coverage": coverage,
        "interval_radius": radius,
        **_in_unit(describe_learner(learner, setup.X), unit),
    }
    notes = [*_note_useless(errors, "rmse"), *note_limits(learner, len(given))]
    model = NumberModel(learner, center, unit, coverage, find_number_format(given), find_decimal_mark(given))
    return TaskResult(model, report, notes)


def read_numbers(cells: np.ndarray, empty: np.ndarray, name: str, groups: np.ndarray | None) -> np.ndarray:
    """Return the numbers, NaN in empty cells; refuse other texts, a single number, and numbers that are too large."""
    given = cells[~empty]
    numbers = as_numbers(given)
    if numbers is None:
        other = next((repr(text) for text in given if as_numbers([text]) is None), "dots and commas")
        raise KernelweaveError(f"Regression needs numbers, and {name!r} holds {other} too.", ErrorCode.BAD_TARGET)
    if len(numbers) < 2:
        raise KernelweaveError(f"Only one row of {name!r} has a number; label more rows.", ErrorCode.BAD_TARGET)
    if np.abs(numbers).max() > MAX_NUMBER:
        raise KernelweaveError(
            f"The column {name!r} holds {numbers[np.abs(numbers).argmax()]:g}; numbers beyond {MAX_NUMBER:g} are too "
            "large to compute with. Correct that cell, or change the unit of the column.",
            ErrorCode.BAD_TARGET,
        )
    if groups is not None:
        check_groups(groups[~empty], None)
    y = np.full(len(cells), np.nan)
    y[~empty] = numbers
    return y


def _number_errors(learner: Any, truth: np.ndarray, unit: float) -> dict[str, dict[str, Any]]:
    """Return the errors on held-out rows of the learner, and of the mean of all given numbers, which is 0 here."""
    errors = {}
    mean = np.zeros(len(truth))
    of_mean = number_error(mean - truth, np.ones(len(truth)))
    for method, predicted, error in ((OURS, learner.oof_predictions_, learner.error_), ("mean", mean, of_mean)):
        errors[method] = {
            "rmse": unit * error.value,
            "interval": [unit * error.low, unit * error.high],
            "mean_absolute_error": unit * float(mean_absolute_error(truth, predicted)),
            "r2": float(r2_score(truth, predicted)) if len(truth) > 1 else float("nan"),
        }
    return errors


def _in_unit(report: dict[str, Any], unit: float) -> dict[str, Any]:
    """Return the report on a learner of the standardised target in the unit of the target."""
    for record in report["leaderboard"]:
        record |= {key: unit * record[key] for key in ("error", "standard_error")}
    helped = report["unlabeled_helped"]
    if helped is not None:
        helped["difference"] *= unit
        helped["interval"] = [unit * end for end in helped["interval"]]
    return report


def _note_useless(errors: dict[str, dict[str, Any]], measure: str) -> list[str]:
    """Return a sentence if the labels are no better than the simplest ones."""
    if not errors:
        return []
    (_, ours), (simplest, its_error) = ((name, error[measure]) for name, error in errors.items())
    if ours < its_error * (1 - ROUNDING):
        return []
    return [f"The labels are no better than those of the {simplest}: do not use them without a check."]

"""Numbers: errors beside those of the mean and of SVR, intervals from the residuals of held-out rows.

The target is standardised before it is learned.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.dummy import DummyRegressor
from sklearn.metrics import mean_absolute_error, root_mean_squared_error
from sklearn.svm import SVR

from ..errors import ErrorCode, KernelweaveError
from .encoder import MAX_NUMBER
from .folds import N_FOLDS, Setup, Target, TaskResult, learn
from .learner import EPSILON, fit_learner
from .models import NumberModel
from .numbers import as_numbers, find_decimal_mark, find_number_format
from .statistics import compare_errors, interval_radius, signed_rank_test


def label_numbers(cells: np.ndarray, empty: np.ndarray, name: str, setup: Setup) -> TaskResult:
    """Learn the numbers given in a target column.

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
    given = cells[~empty]
    numbers = _read_numbers(given, name)
    center, unit = float(numbers.mean()), float(numbers.std()) or 1.0
    y = np.full(len(cells), np.nan)
    y[~empty] = (numbers - center) / unit
    target = Target("regression", y, np.flatnonzero(~empty), min(N_FOLDS, len(numbers)))
    learner, held_out = learn(target, setup, _predict_fold)
    truth = unit * y[held_out.rows]
    predictions = {method: unit * outputs for method, outputs in held_out.outputs.items()}
    errors = {
        method: {
            "mean_absolute_error": float(mean_absolute_error(truth, predicted)),
            "rmse": float(root_mean_squared_error(truth, predicted)),
        }
        for method, predicted in predictions.items()
    }
    residuals, svr_residuals = (predictions[method] - truth for method in ("kernelweave", "SVR"))
    radius = interval_radius(residuals)
    return TaskResult(
        model=NumberModel(learner, center, unit, radius, find_number_format(given), find_decimal_mark(given)),
        learner=learner,
        report={
            "errors": errors,
            "interval_radius": radius if math.isfinite(radius) else None,
            "rows_tested": len(held_out.rows),
        },
        notes=compare_errors(errors, "mean_absolute_error", signed_rank_test(np.abs(residuals), np.abs(svr_residuals))),
    )


def _read_numbers(given: np.ndarray, name: str) -> np.ndarray:
    """Return the numbers; refuse other texts, a single number, and numbers that are too large."""
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
    return numbers


def _predict_fold(
    learner: Any, X: np.ndarray, y: np.ndarray, train: np.ndarray, known: np.ndarray, test: np.ndarray
) -> dict[str, np.ndarray]:
    """Return the numbers predicted by us, by the mean and by SVR."""
    return {
        "kernelweave": fit_learner(learner, X[train], y[train]).predict(X[test]),
        "mean": DummyRegressor().fit(X[known], y[known]).predict(X[test]),
        "SVR": SVR(C=10.0, epsilon=EPSILON).fit(X[known], y[known]).predict(X[test]),
    }

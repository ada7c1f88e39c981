"""Fitted models that fill cells: the text of a label, and of the columns appended for it."""

from __future__ import annotations

import re
from math import isfinite
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ..kernels.checks import are_floats, require_consistent

NUMBER_FORMAT = re.compile(r"\.[0-9]{1,3}[eEfgG]")  # that `numbers.find_number_format` returns
MIN_PROBABILITY = 1e-12  # in a logarithm


class _Fitted(BaseEstimator):
    """The last step of a pipeline whose steps were fitted one by one; fitting it again does nothing."""

    def fit(self, X: Any, y: Any = None) -> _Fitted:
        """Do nothing."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True


class ClassModel(_Fitted):
    """A fitted classifier that fills cells: the class, its probability and its margin.

    The margin is the logarithm of the probability less that of the second most probable class. Probabilities are left
    empty where no row was held out to calibrate them.

    Parameters
    ----------
    learner : AutoKernelClassifier
    probabilities : bool
        Whether the probability of every class is appended.
    coverage : float, optional
        Of a set of classes, which is appended.
    """

    def __init__(self, learner: Any, probabilities: bool, coverage: float | None):
        self.learner = learner
        self.probabilities = probabilities
        self.coverage = coverage

    def check_loaded(self) -> None:
        """Refuse a share of a file that is none."""
        require_consistent(self, self.coverage is None or 0.0 < self.coverage < 1.0, "has no coverage")

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class of each row."""
        return self.learner.predict(X)

    def fill_cells(self, X: Any, target: str) -> tuple[np.ndarray, dict[str, list[str]]]:
        """Return the texts that fill the target's cells, and those of the appended columns by name."""
        P, classes = self.learner.predict_proba(X), self.learner.classes_
        require_consistent(self, are_floats(P, len(X), len(classes)), "gives probabilities that are none")
        best = np.sort(np.log(np.maximum(P, MIN_PROBABILITY)), axis=1)[:, -2:]
        extra = {
            f"{target}_probability": self._write(P.max(axis=1)),
            f"{target}_margin": [f"{value:.4f}" for value in best[:, 1] - best[:, 0]],
        }
        if self.probabilities:
            extra |= {f"{target}_probability_{name}": self._write(P[:, k]) for k, name in enumerate(classes)}
        if self.coverage is not None:
            sets = self.learner.predict_set(X, self.coverage)
            extra[f"{target}_set"] = ["|".join(classes[chosen]) for chosen in sets]
        return classes[P.argmax(axis=1)].astype(object), extra

    def write_label(self, label: Any) -> str:
        """Return the text of a class."""
        return str(label)

    def _write(self, values: np.ndarray) -> list[str]:
        is_known = self.learner.error_ is not None
        return [f"{value:.4f}" if is_known else "" for value in values]


class NumberModel(_Fitted):
    """A fitted regressor of the standardised target that fills cells: the number and the ends of its interval.

    Parameters
    ----------
    learner : AutoKernelRegressor
    center, unit : float
        Mean and standard deviation of the given numbers.
    coverage : float
        Of the interval, which is left empty where too few rows were held out.
    number_format, decimal_mark : str
        How numbers are written.
    """

    def __init__(
        self, learner: Any, center: float, unit: float, coverage: float, number_format: str, decimal_mark: str
    ):
        self.learner = learner
        self.center = center
        self.unit = unit
        self.coverage = coverage
        self.number_format = number_format
        self.decimal_mark = decimal_mark

    def check_loaded(self) -> None:
        """Refuse numbers of a file that are none, and formats that could fill a cell with any number of digits."""
        are_numbers = all(isinstance(value, float) and isfinite(value) for value in (self.center, self.unit))
        require_consistent(self, are_numbers and self.unit > 0.0, "has no unit")
        require_consistent(self, 0.0 < self.coverage < 1.0, "has no coverage")
        is_format = NUMBER_FORMAT.fullmatch(self.number_format) is not None and self.decimal_mark in (".", ",")
        require_consistent(self, is_format, "has a number format that no column of numbers leads to")

    def predict(self, X: Any) -> np.ndarray:
        """Return the number of each row."""
        return self.center + self.unit * self.learner.predict(X)

    def fill_cells(self, X: Any, target: str) -> tuple[np.ndarray, dict[str, list[str]]]:
        """Return the texts that fill the target's cells, and those of the appended columns by name."""
        ends = self.center + self.unit * self.learner.predict_interval(X, self.coverage)
        extra = {f"{target}_{end}": self._write(ends[:, k]) for k, end in enumerate(("low", "high"))}
        return np.array(self._write(self.predict(X)), dtype=object), extra

    def write_label(self, label: float) -> str:
        """Return the text of a number of the standardised target."""
        return self._write(np.array([self.center + self.unit * label]))[0]

    def _write(self, values: np.ndarray) -> list[str]:
        """Write numbers as the given cells are written, with the same digits and the same mark; "" if infinite."""
        return [
            format(value, self.number_format).replace(".", self.decimal_mark) if np.isfinite(value) else ""
            for value in values
        ]

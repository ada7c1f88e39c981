"""Fitted models that fill cells: the text of a label, and of the columns appended for it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ..model_selection.calibration import decision_values
from ..model_selection.scaling import Scaling, log_probabilities, most_probable


class _Fitted(BaseEstimator):
    """The last step of a pipeline whose steps were fitted one by one; fitting it again does nothing."""

    def fit(self, X: Any, y: Any = None) -> _Fitted:
        """Do nothing."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True


class ClassModel(_Fitted):
    """A fitted classifier that fills cells: the class, its probability and its margin.

    Parameters
    ----------
    learner : fitted classifier
    scaling : Scaling, optional
        Without it there are no probabilities.
    """

    def __init__(self, learner: Any, scaling: Scaling | None):
        self.learner = learner
        self.scaling = scaling

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each row: the most probable one where there are probabilities."""
        return self.learner.classes_[most_probable(self.decision_function(X))]

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the logits of the classes or, without a scaling, the decision values of the learner."""
        decision = decision_values(self.learner, X)
        return decision if self.scaling is None else self.scaling(decision)

    def fill_cells(self, X: Any, target: str) -> tuple[np.ndarray, dict[str, list[str]]]:
        """Return the texts that fill the target's cells, and those of the appended columns by name."""
        decision = self.decision_function(X)
        codes = most_probable(decision)
        if decision.ndim == 1:
            margin = np.abs(decision)
        else:
            best = np.partition(decision, -2, axis=1)
            margin = best[:, -1] - best[:, -2]
        probabilities = [""] * len(codes)
        if self.scaling is not None:
            chosen = np.exp(log_probabilities(decision))[np.arange(len(codes)), codes]
            probabilities = [f"{value:.4f}" for value in chosen]
        margins = [f"{value:.4f}" for value in margin]
        extra = {f"{target}_probability": probabilities, f"{target}_margin": margins}
        return self.learner.classes_[codes].astype(object), extra


class NumberModel(_Fitted):
    """A fitted regressor of the standardised target that fills cells: the number and the ends of its interval.

    Parameters
    ----------
    learner : fitted regressor
    center, unit : float
        Mean and standard deviation of the given numbers.
    radius : float
        Half the width of the interval; NaN if it is not known.
    number_format, decimal_mark : str
        How numbers are written.
    """

    def __init__(self, learner: Any, center: float, unit: float, radius: float, number_format: str, decimal_mark: str):
        self.learner = learner
        self.center = center
        self.unit = unit
        self.radius = radius
        self.number_format = number_format
        self.decimal_mark = decimal_mark

    def predict(self, X: Any) -> np.ndarray:
        """Return the number of each row."""
        return self.center + self.unit * self.learner.predict(X)

    def fill_cells(self, X: Any, target: str) -> tuple[np.ndarray, dict[str, list[str]]]:
        """Return the texts that fill the target's cells, and those of the appended columns by name."""
        values = self.predict(X)
        ends = {"low": values - self.radius, "high": values + self.radius}
        is_known = math.isfinite(self.radius)
        extra = {f"{target}_{end}": self._write(at) if is_known else [""] * len(at) for end, at in ends.items()}
        return np.array(self._write(values), dtype=object), extra

    def _write(self, values: np.ndarray) -> list[str]:
        """Write numbers as the given cells are written: the same digits and the same mark."""
        return [format(value, self.number_format).replace(".", self.decimal_mark) for value in values]

"""Fitted models that fill cells: the text of a label, and of the columns beside it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator


class _Fitted(BaseEstimator):
    """The last step of a pipeline whose steps were fitted one by one; fitting it again does nothing."""

    def fit(self, X: Any, y: Any = None) -> _Fitted:
        """Do nothing."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True


class ClassModel(_Fitted):
    """A calibrated mixture that fills cells: the class, its probability and its margin."""

    def __init__(self, calibrated: Any, has_probabilities: bool):
        self.calibrated = calibrated
        self.has_probabilities = has_probabilities

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each row: the most probable one where there are probabilities."""
        return self._model().predict(X)

    def _model(self) -> Any:
        return self.calibrated if self.has_probabilities else self.calibrated.estimator_

    def cells(self, X: Any, target: str) -> tuple[np.ndarray, dict[str, list[str]]]:
        """Return the texts that fill the target's cells, and those of the columns beside it."""
        model = self._model()
        decision = model.decision_function(X)
        if decision.ndim == 1:
            codes, margin = (decision > 0).astype(int), np.abs(decision)
        else:
            best = np.sort(decision, axis=1)
            codes, margin = decision.argmax(axis=1), best[:, -1] - best[:, -2]
        texts = [""] * len(codes)
        if self.has_probabilities:
            chosen = self.calibrated.predict_proba(X)[np.arange(len(codes)), codes]
            texts = [f"{value:.4f}" for value in chosen]
        extra = {f"{target}_probability": texts, f"{target}_margin": [f"{value:.4f}" for value in margin]}
        return model.classes_[codes].astype(object), extra


class NumberModel(_Fitted):
    """A mixture for the standardised target that fills cells: the number and the ends of its interval."""

    def __init__(self, mixture: Any, center: float, unit: float, radius: float, form: str, mark: str):
        self.mixture = mixture
        self.center = center
        self.unit = unit
        self.radius = radius
        self.form = form
        self.mark = mark

    def predict(self, X: Any) -> np.ndarray:
        """Return the number of each row."""
        return self.center + self.unit * self.mixture.predict(X)

    def cells(self, X: Any, target: str) -> tuple[np.ndarray, dict[str, list[str]]]:
        """Return the texts that fill the target's cells, and those of the columns beside it."""
        values = self.predict(X)
        ends = {"low": values - self.radius, "high": values + self.radius}
        known = math.isfinite(self.radius)
        extra = {f"{target}_{end}": self._texts(at) if known else [""] * len(at) for end, at in ends.items()}
        return np.array(self._texts(values), dtype=object), extra

    def _texts(self, values: np.ndarray) -> list[str]:
        """Write numbers as the given cells are written: the same digits and the same mark."""
        return [format(value, self.form).replace(".", self.mark) for value in values]

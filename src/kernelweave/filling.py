"""Fitted models that fill cells: the text of a label, and of the columns beside it.

With them goes what these texts rest on: how given numbers are read and written, and how wrong labels may be.

A text is a number if it has digits, at most one decimal mark and perhaps an exponent; ``1_000``, ``nan`` and ``inf``
are none. The mark is the dot. It is the comma where texts have commas and no dots, unless every one of them could
be thousands: ``1,067`` beside ``999`` may be 1067 or 1.067, and nobody but the user knows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import binomtest, wilcoxon
from sklearn.base import BaseEstimator
from sklearn.metrics import balanced_accuracy_score

Texts = Sequence[Any] | np.ndarray

NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2}([,.' \u00a0\u202f\u2019])[0-9]{3}(?:\1[0-9]{3})*(?:[.,][0-9]+)?")
MANY_VALUES = 20  # a numeric target with more distinct values than this is a number, not a class
COVERAGE = 0.9  # of the interval given beside a number
SIGNIFICANT = 0.05  # level of the paired tests
LEAST_DIGITS = 3  # significant ones, written where the given numbers have exponents


def as_numbers(labels: Texts) -> np.ndarray | None:
    """Return texts as finite numbers, or None if one of them is not, or may be another number than it seems."""
    mark = decimal_mark(labels)
    texts = [str(text).strip() for text in labels]
    if mark == "," and all(THOUSANDS.fullmatch(text) for text in texts if "," in text):
        return None
    texts = [text.replace(mark, ".") for text in texts]
    if not all(NUMBER.fullmatch(text) for text in texts):
        return None
    numbers = np.array(texts, dtype=np.float64)
    return numbers if np.isfinite(numbers).all() else None


def with_thousands(labels: Texts) -> str | None:
    """Return the first text with a mark between thousands, if all texts are numbers but for such marks; else None."""
    texts = [str(text).strip() for text in labels]
    alike = all(NUMBER.fullmatch(text.replace(",", ".")) or THOUSANDS.fullmatch(text) for text in texts)
    if not alike or as_numbers(labels) is not None:
        return None
    return next((text for text in texts if THOUSANDS.fullmatch(text) and not NUMBER.fullmatch(text)), None)


def guess_task(labels: Texts) -> str:
    """Return ``"regression"`` where the given cells are many different numbers, else ``"classification"``."""
    numbers = as_numbers(labels)
    if numbers is None:
        return "classification"
    distinct = len(np.unique(numbers))
    fractions = np.any(numbers != np.trunc(numbers))
    many = distinct > MANY_VALUES or (fractions and distinct > MANY_VALUES / 2)
    return "regression" if many else "classification"


def decimal_mark(labels: Texts) -> str:
    """Return the comma if texts have commas and no dots, else the dot."""
    texts = [str(text) for text in labels]
    return "," if any("," in text for text in texts) and not any("." in text for text in texts) else "."


def number_form(labels: Texts) -> str:
    """Return how the numbers are written, as a format of Python.

    As many decimals as the longest has; where all have exponents, or some, as many significant digits.

    Examples
    --------
    >>> number_form(["1.5", "22.75", "3"]), number_form(["3.25e-11", "1E3"]), number_form(["0.0125", "2e-07"])
    ('.2f', '.2E', '.3g')
    """
    mark = decimal_mark(labels)
    texts = [str(text).strip() for text in labels]
    parts = [re.split("[eE]", text) for text in texts]
    if all(len(part) == 1 for part in parts):
        return f".{max(len(text.partition(mark)[2]) for text in texts)}f"
    n_digits = max(len(re.sub("[^0-9]", "", part[0]).lstrip("0")) for part in parts)
    n_digits = min(max(n_digits, LEAST_DIGITS), np.finfo(np.float64).precision + 2)
    letter = "E" if any("E" in text for text in texts) else "e"
    if all(len(part) > 1 for part in parts):
        return f".{n_digits - 1}{letter}"
    return f".{n_digits}{'g' if letter == 'e' else 'G'}"


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


def covering_radius(residuals: np.ndarray) -> float:
    """Return the radius of an interval that covers a new residual with probability ``COVERAGE``; NaN if too few."""
    sizes = np.sort(np.abs(residuals))
    rank = math.ceil(COVERAGE * (len(sizes) + 1))  # conformal: one more than there are
    return float(sizes[rank - 1]) if rank <= len(sizes) else math.nan


def wilson_interval(n_wrong: float, n_rows: int) -> tuple[float, float]:
    """Return the 95 % interval of an error rate."""
    z = 1.959964
    share = n_wrong / n_rows
    center = share + z**2 / (2 * n_rows)
    spread = z * math.sqrt(share * (1 - share) / n_rows + z**2 / (4 * n_rows**2))
    return max(0.0, (center - spread) / (1 + z**2 / n_rows)), min(1.0, (center + spread) / (1 + z**2 / n_rows))


def class_error(given: np.ndarray, predicted: np.ndarray) -> dict[str, Any]:
    """Return the share of wrong classes with its interval, and the mean of that share over the classes."""
    wrong = int((given != predicted).sum())
    return {
        "error": wrong / len(given),
        "interval": list(wilson_interval(wrong, len(given))),
        "balanced_error": 1.0 - float(balanced_accuracy_score(given, predicted)),
    }


def mcnemar(wrong: np.ndarray, other_wrong: np.ndarray) -> float:
    """Return the two-sided p-value of McNemar's exact test: do two classifiers err equally often on the same rows?

    Rows on which both are right or both are wrong say nothing; each of the others is the one's or the other's with
    probability 1/2 if neither is better.

    Parameters
    ----------
    wrong, other_wrong : ndarray of bool, shape (n_rows,)
        Where each of them is wrong.

    Examples
    --------
    >>> mcnemar(np.array([True] * 5 + [False] * 5), np.zeros(10, dtype=bool))
    0.0625
    """
    n_worse, n_better = int((wrong & ~other_wrong).sum()), int((other_wrong & ~wrong).sum())
    return float(binomtest(n_worse, n_worse + n_better).pvalue) if n_worse + n_better else 1.0


def signed_rank(errors: np.ndarray, other_errors: np.ndarray) -> float:
    """Return the two-sided p-value of Wilcoxon's signed-rank test; 1 where ranks do not speak for the other method.

    Ranks and means may disagree, when few errors are large; then nothing is clear.

    Parameters
    ----------
    errors, other_errors : ndarray of shape (n_rows,)
        Absolute errors of two methods on the same rows.

    Examples
    --------
    >>> signed_rank(np.arange(1.0, 6.0), np.zeros(5)), signed_rank(np.zeros(5), np.arange(1.0, 6.0))
    (0.0625, 1.0)
    """
    differences = errors - other_errors
    return min(1.0, 2 * float(wilcoxon(differences, alternative="greater").pvalue)) if differences.any() else 1.0

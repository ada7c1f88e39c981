"""What held-out rows say: a table of the candidates, the error of all together, and whether unlabelled rows helped."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student_t
from sklearn.semi_supervised import SelfTrainingClassifier

from ...short_text import format_number
from ..shared.records import Records
from .search import SearchResult, Trial

CONFIDENCE = 0.95
# Variance of an error by folds, relative to that of independent rows: models of the folds share most of their rows, and
# were combined by what they say of all of them. The factor was found on generated tables; of 200 tables with classes
# and 200 with numbers, 95 % and 94 % of the intervals hold the error (benchmarks/honesty).
FOLD_VARIANCE = 1.6
SQUARES_KURTOSIS = 15.0  # of the squares of normal errors


@dataclass(frozen=True)
class ErrorEstimate:
    """An error on rows that were held out, with its interval.

    Attributes
    ----------
    value : float
        Share of wrong classes, or root mean squared error.
    low, high : float
        Ends of the 95 % interval.
    n_rows : int
        How many rows were held out.
    """

    value: float
    low: float
    high: float
    n_rows: int

    def times(self, unit: float) -> ErrorEstimate:
        """Return the error of numbers that were divided by ``unit`` before they were learned."""
        return replace(self, value=unit * self.value, low=unit * self.low, high=unit * self.high)

    def __str__(self) -> str:
        value, low, high = (format_number(each, 3) for each in (self.value, self.low, self.high))
        return f"{value} (95 % interval {low} to {high}, {self.n_rows} held-out rows)"


@dataclass(frozen=True)
class PairedDifference:
    """The error without unlabelled rows less the error with them, on the same held-out rows.

    Attributes
    ----------
    difference : float
        Positive: unlabelled rows helped.
    low, high : float
        Ends of the 95 % interval.
    """

    difference: float
    low: float
    high: float

    @property
    def verdict(self) -> str:
        """What the interval says."""
        if self.low > 0:
            return "unlabelled rows helped"
        return "unlabelled rows hurt" if self.high < 0 else "no clear difference"

    def times(self, unit: float) -> PairedDifference:
        """Return the difference for numbers that were divided by ``unit`` before they were learned."""
        return PairedDifference(unit * self.difference, unit * self.low, unit * self.high)

    def __str__(self) -> str:
        values = (round(each, 6) + 0.0 for each in (self.difference, self.low, self.high))
        change, low, high = (format_number(each, 3, sign=True) for each in values)
        return f"{self.verdict}: {change} (95 % interval {low} to {high})"


def tabulate_trials(
    result: SearchResult,
    losses: dict[str, tuple[np.ndarray, np.ndarray]],
    scores: dict[str, float],
    weights: np.ndarray,
) -> Records:
    """Return a record for each candidate, the largest weight first.

    Parameters
    ----------
    result : SearchResult
    losses : dict of (losses, weights)
        Of the rows that each candidate was tested on, by name.
    scores : dict of float
        Log loss, or mean squared error relative to the variance, by name.
    weights : ndarray of shape (n_trials,)
    """
    records = Records()
    for trial, weight in zip(result.trials, weights, strict=True):
        name = trial.candidate.name
        error, standard_error = weighted_mean(*losses[name]) if name in losses else (np.nan, np.nan)
        records.append(
            {
                "candidate": name,
                "error": error,
                "standard_error": standard_error,
                "log_loss": scores.get(name, np.nan),
                "weight": float(weight),
                "seconds": round(trial.seconds, 3),
                "size": model_size(trial.fitted.model),
                "uses_unlabeled": trial.candidate.uses_unlabeled,
                "status": _name_status(trial, result.failures.get(name)),
            }
        )
    records.sort(key=lambda record: (-record["weight"], np.nan_to_num(record["error"], nan=np.inf)))
    nothing: dict[str, Any] = dict.fromkeys(("error", "standard_error", "log_loss"), np.nan)
    nothing |= {"weight": 0.0, "seconds": 0.0, "size": 0, "uses_unlabeled": False}
    for name, why in result.failures.items():
        if all(record["candidate"] != name for record in records):
            records.append({"candidate": name, **nothing, "status": f"failed: {why}"})
    records += [{"candidate": name, **nothing, "status": "no time"} for name in result.skipped]
    records += [{"candidate": name, **nothing, "status": f"left out: {why}"} for name, why in result.left_out.items()]
    return records


def _name_status(trial: Trial, failure: str | None) -> str:
    if failure is not None:
        return f"failed: {failure}"
    return "out of the race" if trial.is_out else "tested" if trial.values else "not tested"


def model_size(model: Any) -> int:
    """Return how many kernel values, leaves or coefficients a prediction is made of; 0 where that is not known.

    Of scikit-learn's machines it is the number of support vectors, of label spreading that of rows.
    """
    if hasattr(model, "n_evaluations_"):
        return int(model.n_evaluations_)
    if hasattr(model, "values_"):
        return len(model.values_)
    last = model[-1] if hasattr(model, "steps") else model
    last = last.estimator_ if isinstance(last, SelfTrainingClassifier) else last
    if hasattr(last, "support_"):
        return len(last.support_)
    if hasattr(last, "label_distributions_"):
        return len(last.label_distributions_)
    if hasattr(last, "estimators_"):
        return sum(int(tree.get_n_leaves()) for tree in np.ravel(last.estimators_) if hasattr(tree, "get_n_leaves"))
    if hasattr(last, "_predictors"):  # boosted trees on histograms have no public count of leaves
        return sum(int(tree.get_n_leaf_nodes()) for stage in last._predictors for tree in stage)
    return int(np.size(last.coef_)) if hasattr(last, "coef_") else 0


def weighted_mean(values: np.ndarray, weight: np.ndarray) -> tuple[float, float]:
    """Return a weighted mean and its standard error."""
    share = weight / weight.sum()
    mean = float(share @ values)
    n_effective = 1.0 / float(share @ share)
    distances = values - mean
    unit = max(float(np.abs(distances).max()), np.finfo(float).tiny)  # squares of large errors may overflow
    deviation = unit * np.sqrt(float(share @ np.square(distances / unit)))
    return mean, deviation / np.sqrt(max(n_effective - 1.0, 1.0))


def class_error(wrong: np.ndarray, weight: np.ndarray, widening: float = 1.0) -> ErrorEstimate:
    """Return the share of wrong classes with Wilson's interval.

    Parameters
    ----------
    wrong : ndarray of bool, shape (n_rows,)
    weight : ndarray of shape (n_rows,)
    widening : float
        What the variance of independent rows is multiplied by, as by `widen_for_folds`.
    """
    share = weight / weight.sum()
    n = 1.0 / (widening * float(share @ share))
    p, z = float(share @ wrong), float(norm.ppf(0.5 + CONFIDENCE / 2))
    middle, half = p + z**2 / (2 * n), z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    unit = 1 + z**2 / n
    low = float((middle - half) / unit) if wrong.any() else 0.0  # which rounding would miss
    high = 1.0 if wrong.all() else float((middle + half) / unit)
    return ErrorEstimate(p, low, high, len(wrong))


def number_error(residuals: np.ndarray, weight: np.ndarray, widening: float = 1.0) -> ErrorEstimate:
    r"""Return the root mean squared error, with an interval of its logarithm; ``widening`` as of classes.

    Means of squares are skewed, their logarithms hardly. The variance of the squares is known as well as that of
    normal numbers from :math:`2 n / (\kappa - 1)` of them, with :math:`\kappa` the kurtosis, so quantiles are those of
    Student's t with as many degrees of freedom.
    """
    mean, standard_error = weighted_mean(np.square(residuals), weight)
    if mean == 0.0:
        return ErrorEstimate(0.0, 0.0, 0.0, len(residuals))
    n_effective = weight.sum() ** 2 / np.square(weight).sum()
    freedom = max(2.0, 2.0 * n_effective / (SQUARES_KURTOSIS - 1.0))
    quantile = student_t.ppf(0.5 + CONFIDENCE / 2, freedom)
    factor, value = np.exp(0.5 * quantile * np.sqrt(widening) * standard_error / mean), np.sqrt(mean)
    return ErrorEstimate(float(value), float(value / factor), float(value * factor), len(residuals))


def widen_for_folds(n_tested: int, n_unlabeled: int) -> float:
    """Return how much larger the variance of the difference between a stated error and the true one is.

    The true one is that on the unlabelled rows, of which there is a finite number; without any, on all others.
    """
    return FOLD_VARIANCE + (n_tested / n_unlabeled if n_unlabeled else 0.0)


def paired_difference(without: np.ndarray, with_them: np.ndarray, weight: np.ndarray) -> PairedDifference:
    """Return the mean difference of two losses on the same rows, with its interval."""
    mean, standard_error = weighted_mean(without - with_them, weight)
    half = float(norm.ppf(0.5 + CONFIDENCE / 2)) * standard_error
    return PairedDifference(mean, mean - half, mean + half)


def paired_difference_of_classes(without: np.ndarray, with_them: np.ndarray, weight: np.ndarray) -> PairedDifference:
    """Return the same of wrong classes, to which rows of the differences 1 and -1 are added.

    Where both are wrong at the same of few rows, their errors may still differ (Bonett and Price 2012, as in
    ``inspection.intervals``).
    """
    found = paired_difference(without, with_them, weight)
    added = np.concatenate([weight, np.full(2, weight.mean())])
    wider = paired_difference(np.append(without, [1.0, 0.0]), np.append(with_them, [0.0, 1.0]), added)
    return replace(found, low=max(-1.0, float(wider.low)), high=min(1.0, float(wider.high)))


def paired_difference_of_roots(without: np.ndarray, with_them: np.ndarray, weight: np.ndarray) -> PairedDifference:
    """Return the difference of the roots of two mean squared errors; its interval is that of the mean squares."""
    squares, mean = paired_difference(without, with_them, weight), weighted_mean(with_them, weight)[0]
    ends = (squares.difference, squares.low, squares.high)
    return PairedDifference(*(float(np.sqrt(max(0.0, mean + each)) - np.sqrt(mean)) for each in ends))

"""How wrong labels may be: error rates with intervals, paired tests, and the width of intervals around numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.stats import binomtest, wilcoxon
from sklearn.metrics import balanced_accuracy_score

from ..model_selection.conformal import conformal_threshold

COVERAGE = 0.9  # of the interval given with a number
SIGNIFICANCE_LEVEL = 0.05  # of the paired tests


def interval_radius(residuals: np.ndarray) -> float:
    """Return half the width of an interval that covers a new residual with probability ``COVERAGE``; NaN if too few."""
    radius = conformal_threshold(np.abs(residuals), COVERAGE)
    return radius if math.isfinite(radius) else math.nan


def wilson_interval(n_wrong: int, n_rows: int) -> tuple[float, float]:
    """Return the 95 % interval of an error rate."""
    low, high = binomtest(n_wrong, n_rows).proportion_ci(0.95, method="wilson")
    return float(low), float(high)


def class_error(given: np.ndarray, predicted: np.ndarray) -> dict[str, Any]:
    """Return the share of wrong classes with its interval, and the mean of that share over the classes."""
    wrong = int((given != predicted).sum())
    return {
        "error": wrong / len(given),
        "interval": list(wilson_interval(wrong, len(given))),
        "balanced_error": 1.0 - float(balanced_accuracy_score(given, predicted)),
    }


def mcnemar_test(wrong: np.ndarray, other_wrong: np.ndarray) -> float:
    """Return the two-sided p-value of McNemar's exact test: do two classifiers err equally often on the same rows?

    Rows on which both are right or both are wrong say nothing; of the others, each is an error of the first with
    probability 1/2 if neither is better.

    Parameters
    ----------
    wrong, other_wrong : ndarray of bool, shape (n_rows,)
        Where each of them is wrong.

    Examples
    --------
    >>> mcnemar_test(np.array([True] * 5 + [False] * 5), np.zeros(10, dtype=bool))
    0.0625
    """
    n_worse, n_better = int((wrong & ~other_wrong).sum()), int((other_wrong & ~wrong).sum())
    return float(binomtest(n_worse, n_worse + n_better).pvalue) if n_worse + n_better else 1.0


def signed_rank_test(errors: np.ndarray, other_errors: np.ndarray) -> float:
    """Return the two-sided p-value of Wilcoxon's signed-rank test; 1 where the ranks do not favour the other method.

    Ranks and means may disagree when a few errors are large; then neither method is clearly better.

    Parameters
    ----------
    errors, other_errors : ndarray of shape (n_rows,)
        Absolute errors of two methods on the same rows.

    Examples
    --------
    >>> signed_rank_test(np.arange(1.0, 6.0), np.zeros(5)), signed_rank_test(np.zeros(5), np.arange(1.0, 6.0))
    (0.0625, 1.0)
    """
    differences = errors - other_errors
    return min(1.0, 2 * float(wilcoxon(differences, alternative="greater").pvalue)) if differences.any() else 1.0


def compare_errors(errors: Mapping[str, Mapping[str, Any]], measure: str, p_value: float) -> list[str]:
    """Return sentences on what the errors say against using the labels.

    Parameters
    ----------
    errors : mapping of method to mapping of measure to float
        Those of the learner, of the simplest method and of a peer, in this order.
    measure : str
        The measure to compare.
    p_value : float
        Of a paired test of learner and peer.
    """
    (_, ours), (simplest, its_error), (peer, peers_error) = ((name, e[measure]) for name, e in errors.items())
    notes = []
    if ours >= its_error:
        notes.append(f"The labels are no better than those of the {simplest}: do not use them without a check.")
    if peers_error < ours and p_value < SIGNIFICANCE_LEVEL:
        notes.append(f"{peer} has a clearly smaller error on these data (paired test, p = {p_value:.2g}).")
    return notes

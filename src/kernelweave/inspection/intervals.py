r"""Intervals of differences of two errors on the same held-out rows.

For the difference :math:`d_i \in [-1, 1]` of losses at row i, a row of difference 1 and one of -1 are added, as Bonett
and Price do for matched proportions: where two models agree on all of few rows, their errors may still differ. Root
mean squared errors are compared by the derivative of the root,
:math:`\sqrt{m_a} - \sqrt{m_b} \approx \frac1n \sum_i (a_i / 2\sqrt{m_a} - b_i / 2\sqrt{m_b}) + \text{const}` with
squared errors :math:`a_i, b_i` of means :math:`m_a, m_b`. Variances are multiplied by that of errors by folds
(``estimators.auto.leaderboard``).

References
----------
D. G. Bonett, R. M. Price. Adjusted Wald confidence interval for a difference of binomial proportions based on paired
data. Journal of Educational and Behavioral Statistics 37, 2012.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.stats import norm

from ..estimators.auto.leaderboard import CONFIDENCE, FOLD_VARIANCE

Z = float(norm.ppf(0.5 + CONFIDENCE / 2))
N_ADDED = 2  # rows, of differences 1 and -1 (Bonett and Price 2012)


class Difference(NamedTuple):
    """A difference of errors with the ends of its 95 % interval."""

    value: float
    low: float
    high: float


def difference_of_shares(worse: np.ndarray, better: np.ndarray) -> Difference:
    """Return the mean of ``worse - better``, losses between 0 and 1 on the same rows.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.inspection.intervals import difference_of_shares
    >>> same = difference_of_shares(np.zeros(50), np.zeros(50))
    >>> same.value, same.low < 0 < same.high
    (0.0, True)
    """
    d = np.asarray(worse, dtype=np.float64) - better
    n = len(d) + N_ADDED
    middle = float(d.sum()) / n
    variance = max((float(d @ d) + N_ADDED) / n - middle**2, 0.0)
    half = Z * math.sqrt(FOLD_VARIANCE * variance / n)
    return Difference(float(d.mean()), max(-1.0, middle - half), min(1.0, middle + half))


def difference_of_roots(worse: np.ndarray, better: np.ndarray) -> Difference:
    """Return the root of the mean of ``worse`` less that of ``better``, squared errors on the same rows."""
    first, second = math.sqrt(worse.mean()), math.sqrt(better.mean())
    d = worse / (2 * first or 1.0) - better / (2 * second or 1.0)  # a root of 0 is one of zeros
    half = Z * math.sqrt(FOLD_VARIANCE * float(d.var(ddof=1)) / len(d)) if len(d) > 1 else math.inf
    return Difference(first - second, first - second - half, first - second + half)

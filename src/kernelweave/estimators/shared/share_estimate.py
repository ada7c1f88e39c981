r"""Shares of the classes among unlabelled rows, from few labels and a regression on them that sees all rows.

With the indicators :math:`Y` of the :math:`l` labelled rows, their mean :math:`p`, kernel ridge regression :math:`f` of
:math:`Y` on these rows and its values :math:`f^{(-i)}` at each of them without its own label, let

.. math:: d = \operatorname{mean}_U f - \operatorname{mean}_L f^{(-i)} .

*Labels drawn at random.* Then :math:`d` is noise that :math:`p` has a part in, a control variate: as an estimate of the
shares of the unlabelled rows, :math:`\pi = p + \lambda d` with the slope :math:`\lambda` of :math:`Y` on
:math:`f^{(-i)}` has a variance :math:`v` below that of :math:`p`. It is shrunk to equal shares,
:math:`\pi \leftarrow (1 - \kappa) \pi + \kappa / k` with
:math:`\kappa = \min(1, (1 - 1/k)\, v / \|\pi - 1/k\|^2)`: with few labels a class, :math:`p` is mostly noise. James and
Stein have the full :math:`v`, which two classes of unequal shares would pay for.

*Labels drawn otherwise*, class by class for instance, which is taken for true where :math:`\|d\|^2` is more than
random draws make it (an F test; where all classes have equally many labels, chance has no part in these numbers).
Rows of a class are then alike in both parts, but not the shares, and :math:`d` has the mean :math:`\beta (\pi - p)`,
where :math:`\beta` is the slope of :math:`f^{(-i)}` on :math:`Y`, one number for all classes: :math:`\pi = p + \sigma
d / \beta`, with :math:`\sigma = \max(0, 1 - 2 w / \|d\|^2)` for the variance :math:`w` of :math:`d` within the
classes.

References
----------
A. Angelopoulos, S. Bates, C. Fannjiang, M. Jordan, T. Zrnic: Prediction-powered inference. Science 382, 2023.
J. Hausser, K. Strimmer: Entropy inference and the James-Stein estimator. JMLR 10, 2009.
Z. Lipton, Y.-X. Wang, A. Smola: Detecting and correcting for label shift with black box predictors. ICML 2018.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import fdtri

from ...solvers.simplex import project

TEST_LEVEL = 0.025  # at which labels are taken for drawn otherwise than at random
MAX_TIE = 1e-9  # shares of classes that differ by less are equal
MAX_STEP = 2.0  # of the shares against d: a slope beta below 1/2 says little
SHRINKAGE = 2.0  # of a shift of shares, in variances
MIN_RIDGE = 1e-6  # of the mean diagonal: the least with which the regression is well conditioned


@dataclass(frozen=True, eq=False)
class ShareEstimate:
    """Shares of the classes.

    Attributes
    ----------
    shares : ndarray of shape (n_classes,)
        Among unlabelled rows; all positive.
    labeled : ndarray of shape (n_classes,)
        Among labelled rows.
    shifted : bool
        Whether labels seem to be drawn otherwise than at random.
    """

    shares: np.ndarray
    labeled: np.ndarray
    shifted: bool


def estimate_shares(
    K: np.ndarray,
    at_unlabeled: Callable[[np.ndarray], np.ndarray],
    Y: np.ndarray,
    weight: np.ndarray,
    unlabeled_weight: np.ndarray,
    ridge: float,
) -> ShareEstimate:
    """Estimate the shares of the classes among unlabelled rows.

    Parameters
    ----------
    K : ndarray of shape (n_labeled, n_labeled)
        The kernel at the labelled rows.
    at_unlabeled : callable
        From coefficients of the labelled rows, shape (n_labeled, n_classes), to values at the unlabelled ones.
    Y : ndarray of shape (n_labeled, n_classes)
        The indicators of the classes.
    weight, unlabeled_weight : ndarray of shape (n_labeled,) and (n_unlabeled,)
        A weight is a number of rows.
    ridge : float
    """
    n_labeled, n_unlabeled, n_classes = row_count(weight), row_count(unlabeled_weight), Y.shape[1]
    share, unlabeled_share = weight / weight.sum(), unlabeled_weight / unlabeled_weight.sum()
    left_out, values = regress(K, at_unlabeled, Y, weight, ridge)
    labeled, mean = share @ Y, share @ left_out
    d = unlabeled_share @ values - mean
    distance = max(float(d @ d), np.finfo(float).tiny)
    given, predicted = Y - labeled, left_out - mean
    of_mean = squares(unlabeled_share, values - unlabeled_share @ values) / n_unlabeled
    together, size = float(share @ (given * predicted).sum(axis=1)), squares(share, predicted)
    by_class = (Y.T * share) @ left_out / labeled[:, None]
    within = squares(share, left_out - Y @ by_class) / max(1.0, n_labeled - n_classes) + of_mean
    noise = within if np.ptp(labeled) < MAX_TIE else size / max(1.0, n_labeled - 1.0) + of_mean
    shifted = distance > fdtri(1.0, max(1.0, n_labeled - 1.0), 1.0 - TEST_LEVEL) * noise
    if shifted:
        step = min(MAX_STEP, squares(share, given) / together) if together > 0.0 else 0.0
        shares = project(labeled + max(0.0, 1.0 - SHRINKAGE * within / distance) * step * d)
    else:
        slope = min(1.0, max(0.0, together / size)) if size > 0.0 else 0.0
        variance = squares(share, given - slope * predicted) * (1.0 / max(1.0, n_labeled - 1.0) + 1.0 / n_unlabeled)
        shares = shrink_to_equal(project(labeled + slope * d), variance)
    shares = np.maximum(shares, 1.0 / len(values))  # one row of each class there is
    return ShareEstimate(shares / shares.sum(), labeled, bool(shifted))


def shrink_to_equal(shares: np.ndarray, variance: float) -> np.ndarray:
    """Move shares that are known with a variance, summed over the classes, towards equal ones."""
    equal = 1.0 / len(shares)
    distance = float(np.square(shares - equal).sum())
    kappa = min(1.0, (1.0 - equal) * variance / distance) if distance > 0.0 else 0.0
    return (1.0 - kappa) * shares + kappa * equal


def regress(
    K: np.ndarray, at_unlabeled: Callable[[np.ndarray], np.ndarray], Y: np.ndarray, weight: np.ndarray, ridge: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the values of kernel ridge regression at each labelled row without it, and at the unlabelled rows."""
    n = len(K)
    means = K.mean(axis=0)
    system = np.ones((n + 1, n + 1))
    system[:n, :n] = K - means - means[:, None] + means.mean()  # coefficients that sum to zero do not see the origin
    system[-1, -1] = 0.0
    ridge = max(ridge, MIN_RIDGE * float(system.diagonal().mean()))
    system.flat[: n * (n + 1) : n + 2] += ridge / weight
    inverse = np.linalg.inv(system)[:n, :n]
    coef = inverse @ Y
    misfit, unexplained = ridge * coef / weight[:, None], ridge * inverse.diagonal() / weight
    copy = np.minimum(1.0, 1.0 / weight)  # one of so many rows is left out
    left_out = Y - misfit / (1.0 - copy + copy * unexplained)[:, None]
    return left_out, at_unlabeled(coef) + (Y - misfit - K @ coef).mean(axis=0)


def row_count(weight: np.ndarray) -> float:
    """Return how many rows weights stand for: their sum, but no fewer than as many equal ones would say as much."""
    return float(max(weight.sum(), weight.sum() ** 2 / np.square(weight).sum()))


def squares(share: np.ndarray, values: np.ndarray) -> float:
    """Return the mean squared length of rows."""
    return float(share @ np.square(values).sum(axis=1))

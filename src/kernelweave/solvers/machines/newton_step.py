r"""A Newton step whose variables stop at the bounds they meet, many at a time.

It is to minimise :math:`g^\top d + \tfrac12 d^\top H d` over moves :math:`d` with :math:`E d = 0` that stay in a box.
The minimum without the box is found first. All variables that it takes out of the box are put at their bounds,
:math:`d_S = s_S`, and the minimum over the others is found again, until it is in the box. With the Cholesky factor of
:math:`H`, what is at a bound is one more row of the constraints :math:`A d = t`,

.. math:: d = P (A^\top \lambda - g), \qquad A P A^\top \lambda = t + A P g, \qquad P = H^{-1} ,

until so many are that it costs less to factor what is left of :math:`H` anew. Variables at a bound are not let go, so
the step need not be the minimum in the box, nor lead down. :mod:`.newton_walk` meets one bound after the other and does
lead down, at the cost of two triangular systems each: too much where there are many variables.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg.lapack import dpotrs

from ..compiled_loops import Array

MAX_FACTORS = 8  # of what is left of H, after which the step is given up
MAX_MET_SHARE = 0.35  # of the variables leave the box in the first move: with more, many are not where they belong
MAX_FIXED_SHARE = 0.15  # of the variables: with more at their bounds, H is factored anew; 2 n^2 k flops against n^3 / 3


def newton_step(
    factor: Callable[[np.ndarray], np.ndarray | None],
    multiply: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray],
    cholesky: Array,
    E: Array,
    gradient: Array,
    lower: Array,
    upper: Array,
) -> tuple[np.ndarray | None, int]:
    """Return the step, and how many variables leave the box in its first move; None for the step if they are too many.

    Parameters
    ----------
    factor : callable
        ``factor(places)`` gives the lower Cholesky factor of H at some of the variables, or None.
    multiply : callable
        ``multiply(places, others, values)`` gives the rows ``places`` of the product of H with a vector that has
        ``values`` at ``others``.
    cholesky : ndarray of shape (n_variables, n_variables)
        That of all; what is above its diagonal is not looked at.
    E : ndarray of shape (n_sums, n_variables)
        Each row has ones at some of the variables; no variable is in two rows.
    gradient : ndarray of shape (n_variables,)
    lower, upper : ndarray of shape (n_variables,)
        The bounds of the moves: zero is between them.
    """
    inside, step, wanted, n_met = np.arange(len(gradient)), np.zeros(len(gradient)), np.zeros(len(E)), 0
    slope, current = gradient.copy(), cholesky
    for n_factors in range(MAX_FACTORS):
        move, n_beyond, done = _minimise(current, E[:, inside], wanted, slope[inside], lower[inside], upper[inside])
        n_met = n_beyond if n_factors == 0 else n_met
        if n_met > MAX_MET_SHARE * len(gradient):
            break
        step[inside] = move
        if done:
            return step, n_met
        met = (move == lower[inside]) | (move == upper[inside])
        fixed, inside = inside[met], inside[~met]
        left = factor(inside) if len(inside) and E[:, inside].any(axis=1).all() else None
        if left is None:
            break
        slope[inside] += multiply(inside, fixed, step[fixed])
        wanted -= E[:, fixed] @ step[fixed]
        current = left
    return None, n_met


def _minimise(
    cholesky: Array, E: Array, wanted: Array, gradient: Array, lower: Array, upper: Array
) -> tuple[np.ndarray, int, bool]:
    """Return the move, how many left the box at first, and whether it is done: many at their bounds end it before."""
    n, n_sums = len(gradient), len(E)
    solved = dpotrs(cholesky, np.vstack([gradient, E]).T, lower=1)[0]
    newton, columns = solved[:, 0], solved[:, 1:]
    fixed, targets, n_first = np.empty(0, dtype=np.intp), wanted, 0
    for k in range(n + 1):
        system = np.vstack([E @ columns, columns[fixed]])
        multipliers = _solve(system, targets + np.concatenate([E @ newton, newton[fixed]]))
        move = columns @ multipliers - newton
        move[fixed] = targets[n_sums:]
        left = np.ones(n, dtype=bool)
        left[fixed] = False
        for row, total in zip(E, wanted, strict=True):  # rounding must not add up in the sums
            move[left & (row > 0.0)] += (total - float(row @ move)) / max(np.count_nonzero(left & (row > 0.0)), 1)
        beyond = np.flatnonzero((move < lower) | (move > upper))
        n_first = len(beyond) if k == 0 else n_first
        if not len(beyond) or not np.isfinite(move).all():
            return move, n_first, True
        clipped = np.clip(move, lower, upper)
        fixed, targets = np.append(fixed, beyond), np.append(targets, clipped[beyond])
        left[beyond] = False
        if len(fixed) > MAX_FIXED_SHARE * n or not E[:, left].any(axis=1).all():
            break
        unit = np.zeros((n, len(beyond)), order="F")
        unit[beyond, np.arange(len(beyond))] = 1.0
        columns = np.hstack([columns, dpotrs(cholesky, unit, lower=1, overwrite_b=1)[0]])
    return clipped, n_first, False


def _solve(system: Array, right: Array) -> np.ndarray:
    """Return the solution of a small system; the shortest of least squares where rounding has made it singular."""
    try:
        return np.asarray(np.linalg.solve(system, right))
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(system, right, rcond=None)[0])

r"""A Newton step whose variables stop at the bounds they meet, many at a time.

It is to minimise :math:`g^\top d + \tfrac12 d^\top H d` over moves :math:`d` with :math:`E d = 0` that stay in a box.
The minimum without the box is found first. All variables that it takes out of the box are put at their bounds,
:math:`d_S = s_S`, and the minimum over the others is found again, until it is in the box; if they are many, only those
that leave it first on the straight way to the minimum, as the others may come back. With the Cholesky factor of
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

MAX_FACTORS = 20  # of what is left of H, after which the step is given up
MIN_MET_SHARE = 0.05  # of the variables: if more than that leave the box in a move, some of them may come back
# Of these: the share that leaves first is put at its bounds. On ten problems with noisy labels, of six generators, 0.6
# to 0.75 took least time: all at once overshoot and cost pair steps afterwards, few at a time cost factors.
FIRST_SHARE = 0.7
MAX_FIXED_SHARE = 0.15  # of the variables: with more at their bounds, H is factored anew; 2 n^2 k flops against n^3 / 3


def newton_step(
    factor: Callable[[np.ndarray], np.ndarray | None],
    multiply: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray],
    cholesky: Array,
    E: Array,
    gradient: Array,
    lower: Array,
    upper: Array,
) -> np.ndarray | None:
    """Return the step; None if none was found.

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
    inside, step, wanted = np.arange(len(gradient)), np.zeros(len(gradient)), np.zeros(len(E))
    slope, current = gradient.copy(), cholesky
    for _ in range(MAX_FACTORS):
        move, met, done = _minimise(current, E[:, inside], wanted, slope[inside], lower[inside], upper[inside])
        step[inside] = move
        if done:
            return step
        fixed, inside = inside[met], inside[~met]
        left = factor(inside) if len(inside) and E[:, inside].any(axis=1).all() else None
        if left is None:
            break
        slope[inside] += multiply(inside, fixed, step[fixed])
        wanted -= E[:, fixed] @ step[fixed]
        current = left
    return None


def _minimise(
    cholesky: Array, E: Array, wanted: Array, gradient: Array, lower: Array, upper: Array
) -> tuple[np.ndarray, np.ndarray, bool]:
    """Return the move, who was put at a bound, and whether it is done: many at their bounds end it before."""
    n, n_sums = len(gradient), len(E)
    solved = dpotrs(cholesky, np.vstack([gradient, E]).T, lower=1)[0]
    newton, columns = solved[:, 0], solved[:, 1:]
    fixed, targets, met = np.empty(0, dtype=np.intp), wanted, np.zeros(n, dtype=bool)
    for _ in range(n + 1):
        system = np.vstack([E @ columns, columns[fixed]])
        multipliers = _solve(system, targets + np.concatenate([E @ newton, newton[fixed]]))
        move = columns @ multipliers - newton
        move[fixed] = targets[n_sums:]
        for row, total in zip(E, wanted, strict=True):  # rounding must not add up in the sums
            move[~met & (row > 0.0)] += (total - float(row @ move)) / max(np.count_nonzero(~met & (row > 0.0)), 1)
        beyond = np.flatnonzero((move < lower) | (move > upper))
        if not len(beyond) or not np.isfinite(move).all():
            return move, met, True
        clipped = np.clip(move, lower, upper)
        if len(beyond) > MIN_MET_SHARE * n:
            shares = clipped[beyond] / move[beyond]  # of the way, at which they leave the box
            beyond = beyond[shares <= np.quantile(shares, FIRST_SHARE)]
        fixed, targets = np.append(fixed, beyond), np.append(targets, clipped[beyond])
        met[beyond] = True
        if len(fixed) > MAX_FIXED_SHARE * n or not E[:, ~met].any(axis=1).all():
            break
        unit = np.zeros((n, len(beyond)), order="F")
        unit[beyond, np.arange(len(beyond))] = 1.0
        columns = np.hstack([columns, dpotrs(cholesky, unit, lower=1, overwrite_b=1)[0]])
    return clipped, met, False


def _solve(system: Array, right: Array) -> np.ndarray:
    """Return the solution of a small system; the shortest of least squares where rounding has made it singular."""
    try:
        return np.asarray(np.linalg.solve(system, right))
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(system, right, rcond=None)[0])

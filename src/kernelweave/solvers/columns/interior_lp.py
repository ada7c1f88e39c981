r"""Dense linear programs in a box, by an interior-point method.

.. math::
    \min_x\; c^\top x \quad \text{s.t.} \quad l \le A x \le h, \quad 0 \le x \le u .

With :math:`z = A x` and its multipliers :math:`y`, :math:`p, q` of the box and :math:`r, s` of :math:`l \le z \le h`, a
point is optimal if it is feasible, :math:`c - A^\top y = p - q`, :math:`y = r - s`, and the products of all multipliers
with the distances from their bounds are zero. Newton's method aims at products that are equal and small; each step
solves a system with the matrix

.. math:: A D_x A^\top + D_z, \qquad D_x^{-1} = \frac px + \frac q{u - x}, \qquad
    D_z^{-1} = \frac r{z - l} + \frac s{h - z} ,

which is as large as there are rows. To form it is a product of dense matrices, so that a step takes the time of some
ten pivots of a sparse simplex method, and some twenty steps do for any number of rows.

What is found is rough, and in the middle of all optima rather than at a vertex: good duals to price columns with, and
a good guess of an optimal basis.

References
----------
S. Mehrotra: On the implementation of a primal-dual interior point method. SIAM J. Optimization 2, 1992.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg.blas import dsyrk, ssyrk
from scipy.linalg.lapack import dgetrf, dgetrs, dpotrf, dpotrs

NO_BOUND = 1e8  # where a bound of a row is put that there is none of, in units of the largest
MAX_STEPS = 60  # forty are many
MIN_STEP = 1e-6  # of a step that is worth its while
MIN_GAP_SHARE = 1e-3  # times the tolerance: with such a gap, the residuals will not become smaller any more
BOUNDARY_SHARE = 0.995  # of the way to the bounds
MAX_START_SHARE = 0.9  # of the way from zero to the bounds: where rows start at most
COLD_START_SHARE = 0.5  # the same, for variables that were never inside
WARM_MU_SHARE = (
    0.1  # of the mean product, for products after a point was scaled down; measured: 1 takes twice the steps
)
MIN_GAP_LEFT = 0.3  # of the gap stays, at least, if the residuals are larger
VERTEX_TOL = 1e-9  # by which a vertex may miss bounds, as HiGHS is told, and relative to its value the optimum
RIDGE = 1e-13  # of the diagonal of the matrix
# Relative gap above which the matrix is formed in single precision, which takes half the time, and the ridge that goes
# with it. Measured on five generated samples: from 0.1 on, as many steps; with 0.01, up to twice as many.
SINGLE_GAP, SINGLE_RIDGE = 0.3, 1e-6
# Share of the largest weight up to which points of a matrix in double precision are summed in single, and the share of
# the points from which on that pays. Measured on six generated samples: up to 1e-6 as many steps, from 1e-5 on more.
SMALL_WEIGHT, MIN_SMALL_SHARE = 1e-6, 0.2


@dataclass(frozen=True, eq=False)
class DenseLP:
    """A linear program whose columns are those of a matrix, with signs, and may come several times.

    Attributes
    ----------
    K : ndarray of shape (n_rows, n_points)
    sign, point : ndarray of shape (n_variables,)
        The column of ``A`` of a variable is ``sign`` times the column ``point`` of ``K``.
    cost, ceiling : ndarray of shape (n_variables,)
        Finite.
    lower, upper : ndarray of shape (n_rows,)
        Bounds of ``Ax``: zero is inside, or both are zero.
    """

    K: np.ndarray
    sign: np.ndarray
    point: np.ndarray
    cost: np.ndarray
    ceiling: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    def rows(self, x: np.ndarray) -> np.ndarray:
        """Return ``Ax``."""
        return np.asarray(self.K @ self._sum_by_point(self.sign * x))

    def columns(self, y: np.ndarray) -> np.ndarray:
        """Return ``A'y``."""
        return np.asarray(self.sign * (y @ self.K)[self.point])

    def gram(self, weights: np.ndarray, *, single: bool = False) -> np.ndarray:
        """Return ``A diag(weights) A'``, below the diagonal; perhaps formed in single precision.

        In double precision, too, the points with small weights are summed in single: what that rounds is small beside
        the others.
        """
        by_point = self._sum_by_point(weights)
        if single:
            return _single_gram(self.K, by_point)
        is_small = by_point < SMALL_WEIGHT * by_point.max()
        if np.count_nonzero(is_small) < MIN_SMALL_SHARE * len(by_point):
            return np.asarray(dsyrk(1.0, (self.K * np.sqrt(by_point)).T, trans=1, lower=1))
        M = np.asarray(dsyrk(1.0, (self.K[:, ~is_small] * np.sqrt(by_point[~is_small])).T, trans=1, lower=1))
        M += _single_gram(self.K[:, is_small], by_point[is_small])
        return M

    def _sum_by_point(self, values: np.ndarray) -> np.ndarray:
        return np.bincount(self.point, weights=values, minlength=self.K.shape[1])


def _single_gram(K: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return ``K diag(weights) K'``, below the diagonal, formed in single precision."""
    roots = np.sqrt(weights)
    largest = float(roots.max()) or 1.0  # squares up to 1 do not overflow
    W = K.astype(np.float32) * (roots / largest).astype(np.float32)
    return np.asarray(largest**2 * ssyrk(1.0, W.T, trans=1, lower=1).astype(np.float64))


@dataclass(frozen=True, eq=False)
class InteriorPoint:
    """Where the method ended.

    Attributes
    ----------
    x, below, above : ndarray of shape (n_variables,)
        The variables, and the multipliers of the lower and upper ends of the box.
    row_dual, low, high : ndarray of shape (n_rows,)
        The multipliers of the rows, as HiGHS signs them, and those of their lower and upper bounds, whose difference
        they are; zero where a row has none yet.
    free : ndarray of bool of shape (n_variables + n_rows,)
        A guess of an optimal basis: as many variables and rows as there are rows, namely those that are farthest from
        their bounds in comparison with the multipliers.
    error : float
        The largest of the relative gap and the residuals.
    n_iter : int
    """

    x: np.ndarray
    below: np.ndarray
    above: np.ndarray
    row_dual: np.ndarray
    low: np.ndarray
    high: np.ndarray
    free: np.ndarray
    error: float
    n_iter: int

    def with_rows(self, n_new: int) -> InteriorPoint:
        """Return the point of a program with more rows, which are taken for slack."""
        free = np.append(self.free, np.ones(n_new, dtype=bool))
        return self._replace_rows(lambda multipliers: np.append(multipliers, np.zeros(n_new)), free)

    def without_rows(self, rows: np.ndarray) -> InteriorPoint:
        """Return the point of a program that has lost some rows."""
        free = np.delete(self.free, len(self.x) + rows)
        return self._replace_rows(lambda multipliers: np.delete(multipliers, rows), free)

    def _replace_rows(self, change: Callable[[np.ndarray], np.ndarray], free: np.ndarray) -> InteriorPoint:
        row_dual, low, high = map(change, (self.row_dual, self.low, self.high))
        return replace(self, row_dual=row_dual, low=low, high=high, free=free)


def solve_interior_lp(
    lp: DenseLP, tol: float, start: InteriorPoint | None = None, seconds: float = np.inf
) -> InteriorPoint:
    """Solve a linear program up to the relative gap ``tol``, or as well as rounding and time allow.

    Parameters
    ----------
    lp : DenseLP
    tol : float
    start : InteriorPoint, optional
        Of a program with the same variables, that had other rows; it holds a multiplier for each of the new.
    seconds : float
    """
    begin, iterate = time.perf_counter(), _Iterate(lp, start)
    best, least = iterate, np.inf
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # such a step is not taken
        for n_iter in range(MAX_STEPS + 1):
            error = iterate.error()
            if error < least:
                best, least = copy(iterate), error
            ended = error <= tol or n_iter == MAX_STEPS or iterate.relative_gap <= MIN_GAP_SHARE * tol
            if ended or time.perf_counter() - begin > seconds or not iterate.step():
                break
        return best.point(least, n_iter)


def feasible_start(lp: DenseLP) -> InteriorPoint:
    """Return a point inside all bounds: equal variables that balance in equalities, no multipliers of rows.

    Where an equality has coefficients of one sign only, it does not hold.
    """
    x = np.ones(len(lp.cost))
    for row in np.flatnonzero(lp.lower == lp.upper):
        entries = lp.sign * lp.K[row, lp.point]
        above, below = entries[entries > 0].sum(), -entries[entries < 0].sum()
        if min(above, below) > 0.0:
            x *= np.where(entries > 0, 1.0 / above, np.where(entries < 0, 1.0 / below, 1.0))
    x *= COLD_START_SHARE / max(_find_excess(lp, lp.rows(x)), float((x / lp.ceiling).max()))
    none, free = np.zeros(len(lp.lower)), np.repeat([False, True], [len(x), len(lp.lower)])
    return InteriorPoint(x, np.zeros(len(x)), np.zeros(len(x)), none, none, none, free, np.inf, 0)


def move_inside(lp: DenseLP, inside: np.ndarray, point: InteriorPoint) -> InteriorPoint:
    """Return a point moved back towards variables that were inside all bounds, to where it is inside, too.

    Variables that are not inside, since rows have come, are first scaled down.
    """
    z = lp.rows(inside)
    excess = _find_excess(lp, z)
    if excess >= 1.0:
        inside, z = inside * (MAX_START_SHARE / excess), z * (MAX_START_SHARE / excess)
    dz, ranged = lp.rows(point.x) - z, lp.lower < lp.upper
    room = np.where(dz > 0.0, lp.upper - z, z - lp.lower)[ranged]
    length = _length(room, -np.abs(dz[ranged]))
    return replace(point, x=inside + (MAX_START_SHARE * length if length < 1.0 else 1.0) * (point.x - inside))


def step_inside(lp: DenseLP, start: InteriorPoint) -> InteriorPoint | None:
    """Return the point one step of the method further; None if rounding forbids it."""
    iterate = _Iterate(lp, start)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # such a step is not taken
        iterate.error()
        return iterate.point(iterate.error(), start.n_iter + 1) if iterate.step() else None


def _find_excess(lp: DenseLP, z: np.ndarray) -> float:
    """Return the largest value of a row in units of its bound; equalities do not count."""
    ranged = lp.lower < lp.upper
    z = z[ranged]
    return float((z / np.where(z < 0.0, lp.lower[ranged], lp.upper[ranged])).max(initial=0.0))


def vertex(lp: DenseLP, point: InteriorPoint) -> tuple[np.ndarray, np.ndarray] | None:
    """Return variables and multipliers of the rows at the vertex that a point guesses; None if it is not optimal."""
    n = len(lp.cost)
    free, tight = np.flatnonzero(point.free[:n]), np.flatnonzero(~point.free[n:])
    x = np.where(point.free[:n] | (point.x < 0.5 * lp.ceiling), 0.0, lp.ceiling)
    y = np.zeros(len(lp.lower))
    bound = np.where(point.row_dual < 0.0, lp.upper, lp.lower)
    if len(free) != len(tight) or not np.isfinite(bound[tight]).all():
        return None
    A = lp.K[np.ix_(tight, lp.point[free])] * lp.sign[free]
    if len(free):
        factor, pivots, singular = dgetrf(A)
        if singular:
            return None
        x[free] = dgetrs(factor, pivots, bound[tight] - lp.rows(x)[tight])[0]
        y[tight] = dgetrs(factor, pivots, lp.cost[free], trans=1)[0]
    prices, z, value = lp.cost - lp.columns(y), lp.rows(x), float(lp.cost @ x)
    outside = max(
        float(np.maximum(-x, x - lp.ceiling).max()), float(np.maximum(lp.lower - z, z - lp.upper).max(initial=0.0))
    )
    # For any multipliers the dual is a bound: rows at the end that their sign names, variables at that of their price.
    ends = np.where(y > 0.0, lp.lower, lp.upper)[tight]
    gap = value - float(y[tight] @ ends + np.minimum(prices, 0.0) @ lp.ceiling)
    return (x, y) if outside <= VERTEX_TOL and abs(gap) <= VERTEX_TOL * abs(value) else None


class _Iterate:
    """A point inside all bounds, with positive multipliers."""

    def __init__(self, lp: DenseLP, start: InteriorPoint | None):
        self.lp, self.c, self.u = lp, lp.cost, lp.ceiling
        finite = np.abs(np.concatenate([lp.lower, lp.upper]))
        far = NO_BOUND * float(finite[np.isfinite(finite)].max(initial=1.0))
        self.l, self.h = np.maximum(lp.lower, -far), np.minimum(lp.upper, far)
        self.ranged = self.l < self.h  # the others are equalities
        entries = np.abs(lp.K[~self.ranged]).max(initial=np.finfo(float).tiny)
        self.sizes = np.where(self.ranged, np.minimum(self.h, -self.l), entries)  # of the rows
        self.n_products = 2 * len(self.c) + 2 * int(np.count_nonzero(self.ranged))
        self.size = float(np.abs(self.c).max()) or 1.0  # of the costs
        if start is None:
            self._start_anywhere()
        else:
            self._start_inside(start)

    def _start_anywhere(self) -> None:
        """Start in the middle of the box, where rows may be far beyond their bounds."""
        self.x, self.y = 0.5 * self.u, np.zeros(len(self.l))
        z = np.clip(self.lp.rows(self.x), MAX_START_SHARE * self.l, MAX_START_SHARE * self.h)
        self.z = np.where(self.ranged, z, self.l)
        mu = (float(np.abs(self.c) @ self.x) or 1.0) / len(self.c)
        self.p, self.q = mu / self.x, mu / (self.u - self.x)
        self.r, self.s = np.where(self.ranged, mu / self._low, 0.0), np.where(self.ranged, mu / self._high, 0.0)

    def _start_inside(self, start: InteriorPoint) -> None:
        """Start at a point, scaled down where rows are beyond their bounds, with multipliers that satisfy the dual.

        Of a point that is inside, multipliers stay as they are; rows that have none get them.
        """
        self.x, self.y, z = start.x, start.row_dual, self.lp.rows(start.x)
        excess = _find_excess(self.lp, z)
        if excess >= 1.0:
            self.x, z = self.x * (MAX_START_SHARE / excess), z * (MAX_START_SHARE / excess)
        self.z, room = np.where(self.ranged, z, self.l), self.u - self.x
        if is_kept := excess < 1.0 and float(np.minimum(start.below, start.above).min()) > 0.0:
            self.p, self.q = start.below, start.above
            mu = float(self.p @ self.x + self.q @ room) / (2 * len(self.c))
        else:
            prices = self.c - self.lp.columns(self.y)
            ends = np.where(self.y > 0.0, self.lp.lower, self.lp.upper)
            bound = np.where(np.isfinite(ends), ends, 0.0) @ self.y + np.minimum(prices, 0.0) @ self.u
            mu = WARM_MU_SHARE * max(float(self.c @ self.x - bound), np.finfo(float).tiny) / self.n_products
            self.p, self.q = _split(prices, mu**2 / (self.x * room))
        low, high = _split(self.y, mu**2 / (self._low * self._high))
        known = is_kept & (np.maximum(start.low, start.high) > 0.0)
        self.r = np.where(self.ranged, np.where(known, start.low, low), 0.0)
        self.s = np.where(self.ranged, np.where(known, start.high, high), 0.0)

    @property
    def _low(self) -> np.ndarray:
        return np.where(self.ranged, self.z - self.l, 1.0)

    @property
    def _high(self) -> np.ndarray:
        return np.where(self.ranged, self.h - self.z, 1.0)

    def error(self) -> float:
        """Return the largest of the relative gap and the residuals, which it computes."""
        self.of_rows = self.lp.rows(self.x) - self.z
        self.of_x = self.c - self.lp.columns(self.y) - self.p + self.q
        self.of_z = np.where(self.ranged, self.y - self.r + self.s, 0.0)
        self.gap = float(self.p @ self.x + self.q @ (self.u - self.x) + self.r @ self._low + self.s @ self._high)
        self.relative_gap = self.gap / max(abs(float(self.c @ self.x)), np.finfo(float).tiny)
        rows = float((np.abs(self.of_rows) / self.sizes).max(initial=0.0))
        self.residual = max(rows, float(np.abs(self.of_x).max()) / self.size)
        return max(self.relative_gap, self.residual)

    def step(self) -> bool:
        """Take a step towards smaller products; False if rounding forbids it."""
        low, high, room = self._low, self._high, self.u - self.x
        D_x = 1.0 / (self.p / self.x + self.q / room)
        D_z = np.where(self.ranged, 1.0 / np.where(self.ranged, self.r / low + self.s / high, 1.0), 0.0)
        factor = self._factorize(D_x, D_z)
        if factor is None:
            return False
        weights = D_x, D_z, factor
        aim = -self.p * self.x, -self.q * room, -self.r * low, -self.s * high
        move = self._direction(weights, aim)
        primal, dual = self._lengths(move)
        dx, _, dz, dp, dq, dr, ds = move
        left = (self.p + dual * dp) @ (self.x + primal * dx) + (self.q + dual * dq) @ (room - primal * dx)
        left += (self.r + dual * dr) @ (low + primal * dz) + (self.s + dual * ds) @ (high - primal * dz)
        share = (max(0.0, float(left)) / self.gap) ** 3
        if self.residual > self.relative_gap:
            share = max(share, MIN_GAP_LEFT)  # the gap must not vanish first
        target = share * self.gap / self.n_products
        corrections = -dp * dx, dq * dx, -dr * dz, ds * dz
        on = 1.0, 1.0, self.ranged, self.ranged
        corrected = tuple(a + m * target + k for a, m, k in zip(aim, on, corrections, strict=True))
        move = self._direction(weights, corrected)
        primal, dual = (min(1.0, BOUNDARY_SHARE * length) for length in self._lengths(move))
        if not max(primal, dual) > MIN_STEP or not all(np.isfinite(part).all() for part in move):
            return False
        dx, dy, dz, dp, dq, dr, ds = move
        self.x, self.z = self.x + primal * dx, self.z + primal * dz
        self.y, self.p, self.q = self.y + dual * dy, self.p + dual * dp, self.q + dual * dq
        self.r, self.s = self.r + dual * dr, self.s + dual * ds
        return True

    def _factorize(self, D_x: np.ndarray, D_z: np.ndarray) -> np.ndarray | None:
        """Return the Cholesky factor of the matrix of a step; None if rounding forbids it."""
        for single in (True, False) if self.relative_gap > SINGLE_GAP else (False,):
            M = self.lp.gram(D_x, single=single)
            M.flat[:: len(M) + 1] = (1.0 + (SINGLE_RIDGE if single else RIDGE)) * (M.diagonal() + D_z)
            factor, failed = dpotrf(M, lower=1, overwrite_a=1, clean=0)
            if not failed:
                return np.asarray(factor)
        return None

    def _direction(self, weights: tuple[np.ndarray, ...], aim: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
        """Return the moves of x, y, z, p, q, r, s that change the products by ``aim``, to first order."""
        D_x, D_z, factor = weights
        low, high, room = self._low, self._high, self.u - self.x
        f_x = aim[0] / self.x - aim[1] / room - self.of_x
        f_z = aim[2] / low - aim[3] / high - self.of_z
        dy = dpotrs(factor, D_z * f_z - self.of_rows - self.lp.rows(D_x * f_x), lower=1)[0]
        dx, dz = D_x * (f_x + self.lp.columns(dy)), D_z * (f_z - dy)
        dp, dq = (aim[0] - self.p * dx) / self.x, (aim[1] + self.q * dx) / room
        dr, ds = (aim[2] - self.r * dz) / low, (aim[3] + self.s * dz) / high
        return dx, dy, dz, dp, dq, dr, ds

    def _lengths(self, move: tuple[np.ndarray, ...]) -> tuple[float, float]:
        """Return how far x and z, and how far the multipliers can move."""
        dx, _, dz, dp, dq, dr, ds = move
        distances = (self.x, dx), (self.u - self.x, -dx), (self._low, dz), (self._high, -dz)
        multipliers = (self.p, dp), (self.q, dq), (self.r, dr), (self.s, ds)
        return min(_length(*pair) for pair in distances), min(_length(*pair) for pair in multipliers)

    def point(self, error: float, n_iter: int) -> InteriorPoint:
        freedom = np.concatenate(
            [
                np.minimum(self.x / self.p, (self.u - self.x) / self.q),
                np.where(self.ranged, np.minimum(self._low, self._high) / np.maximum(np.abs(self.y), 1e-300), 0.0),
            ]
        )
        n_rows = len(self.l)
        free = np.zeros(len(freedom), dtype=bool)
        free[np.argpartition(-freedom, n_rows - 1)[:n_rows]] = True
        return InteriorPoint(self.x, self.p, self.q, self.y, self.r, self.s, free, error, n_iter)


def _split(differences: np.ndarray, products: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return two arrays of positive numbers with these differences and products."""
    larger = 0.5 * (np.abs(differences) + np.sqrt(differences**2 + 4.0 * products))
    smaller = products / larger
    return np.where(differences > 0.0, larger, smaller), np.where(differences > 0.0, smaller, larger)


def _length(values: np.ndarray, moves: np.ndarray) -> float:
    """Return how far positive values can move, at most 1."""
    falling = moves < 0.0
    return min(1.0, float((-values[falling] / moves[falling]).min(initial=1.0)))

r"""Sequential minimal optimisation: the quadratic programs of support vector machines, two variables at a time.

.. math::

    \min_x\; f(x) = \tfrac12 x^\top K x + p^\top x \quad \text{s.t.} \quad
    l \le x \le u, \quad \sum_{i \in G} x_i = t_G \;\text{ for each group } G .

One group holds all variables (SVM, SVR, one-class), or the classes are groups (nu-SVM), or there is no equality. Signed
duals are meant: a classifier has :math:`p = -y`, and :math:`x_i` between 0 and :math:`y_i C`.

With :math:`g = Kx + p`, a point is stationary if there is a multiplier :math:`b_G` for each group such that
:math:`g_i = b_G` inside the box, :math:`g_i \ge b_G` at the lower and :math:`g_i \le b_G` at the upper bound. For
convex :math:`f` any :math:`b` bounds the optimum :math:`f^*` from below,

.. math:: f(x) - f^* \le \sum_i \max\{(g_i - b)(x_i - l_i),\; (g_i - b)(x_i - u_i)\} ,

which is the duality gap of the SVM; the best :math:`b` is a weighted quantile of the :math:`g_i`. The solver stops when
the gap is small; for an indefinite :math:`K`, when the violation :math:`\max g_i - \min g_j` is, where :math:`x_i` can
fall and :math:`x_j` can rise.

Pairs are chosen by second-order information (Fan, Chen, Lin: Working set selection using second order information for
training SVM. JMLR, 2005). They find out which variables are at a bound, but crawl where :math:`K` is ill-conditioned;
there a Newton step on all free variables takes over, when it costs less than the pair steps it saves. No equality is an
equality with a slack variable, free in sign, that the objective does not see: two variables may still move against each
other, without which descent stalls where the top eigenvector of :math:`K` is nearly constant.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf

from .loops import Array, add, compiled, walk
from .result import Certificate, SolverResult, Status

EPS, TINY = float(np.finfo(float).eps), float(np.finfo(float).tiny)
SUM_ROUNDING = 1e-12  # a total that the box misses by less than this share is met up to rounding
HOPELESS = 1.0  # times the rounding of the objective: a smaller gap cannot be told from none
N_STALLS = 10  # looks at the gap in a row without progress, after which rounding is to blame

# How pair steps and Newton steps take turns; measured on RBF kernels and on K = ZZ', 500 to 2000 points.
CHUNK = 50  # pair steps in a row, at least; after a Newton step, as many more as take its time
PATIENCE = 64  # a Newton step after one that did not work is expected to save up to so many times its cost
STAGES = 10  # bounds that a Newton step may meet before it ends, at least
RIDGE = 1e3  # times what rounding does to the eigenvalues; less lets the null space in, and the steps go astray
DENSE = 4  # more than this part of the rows of K are gathered no faster than all of K is read
# Seconds a variable, a Newton step of any size, a cubed free variable, an entry of K; only the ratios matter.
PAIR_STEP, NEWTON_STEP, FACTORISATION, READING = 2.2e-9, 2e-4, 3e-11, 5e-10


class _Problem(NamedTuple):
    """The problem with its variables sorted by group: group k has the variables offsets[k] to offsets[k + 1]."""

    K: np.ndarray
    diagonal: np.ndarray  # of K, for each variable
    linear: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    rows: np.ndarray  # of K, for each variable
    offsets: np.ndarray
    plain: bool  # variables are rows of K
    slack: bool  # no equality
    flat: float  # curvature below this is none
    rounding: float  # negative curvature within this share of the diagonal may be rounding of K


def solve(
    K: np.ndarray,
    linear: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    *,
    total: float | None = 0.0,
    groups: np.ndarray | None = None,
    index: np.ndarray | None = None,
    start: np.ndarray | None = None,
    tol: float = 1e-3,
    max_iter: int | None = None,
) -> SolverResult:
    r"""Minimise ``1/2 x'Kx + linear'x`` over a box, with the sum of all or of groups of variables fixed.

    Parameters
    ----------
    K : ndarray of shape (n_rows, n_rows)
        Symmetric, float64 or float32. If it is indefinite, a stationary point is found.
    linear, lower, upper : ndarray of shape (n_variables,)
    total : float or None
        The sum of all variables; None for no equality. Not looked at if there are groups.
    groups : ndarray of shape (n_variables,), optional
        Group of each variable, from 0 on. The sum over each group is kept at what ``start`` gives.
    index : ndarray of shape (n_variables,), optional
        The row of ``K`` of each variable; variables may share a row. By default, variables are rows.
    start : ndarray of shape (n_variables,), optional
        Where to start; clipped to the box, then moved to the total. Needed if there are groups.
    tol : float
        Stop when the duality gap is at most ``tol`` times the absolute objective; where a step meets negative curvature
        or the box is unbounded, when the violation is at most ``tol`` times the largest entry of the gradient.
    max_iter : int, optional
        Largest number of pair steps; by default ten million, or 100 a variable if that is more.

    Returns
    -------
    SolverResult
        ``extra["multiplier"]`` is the middle of the interval of multipliers, before the optimum the one that proves
        most: an array if there are groups, else a float; 0 without equality. ``extra["gradient"]`` is ``Kx + linear``.
        ``n_iter`` counts pair steps and ``extra["n_newton"]`` Newton steps.

    Examples
    --------
    >>> points = np.array([-1.0, 1.0])
    >>> found = solve(np.outer(points, points), -points, np.array([-9.0, 0.0]), np.array([0.0, 9.0]))
    >>> found.x, found.objective
    (array([-0.5,  0.5]), -0.5)
    """
    if groups is not None and start is None:
        raise ValueError("The sum of each group is kept at what start gives, but there is no start; pass one.")
    if np.any(lower > upper):
        raise ValueError(f"{np.count_nonzero(lower > upper)} lower bounds are above their upper bounds.")
    order = np.arange(len(linear)) if groups is None else np.argsort(groups, kind="stable")
    vectors = np.array([linear, lower, upper, np.zeros(len(linear)) if start is None else start], dtype=float)
    problem, x = _prepare(K, vectors.take(order, axis=1), total, groups, (order if index is None else index[order]))
    descent = _Descent(problem, x, tol)
    status = descent.run(max(10**7, 100 * len(x)) if max_iter is None else max_iter)
    back = np.argsort(order)
    kind = "duality gap" if descent.certified else "stationarity"
    multiplier = float(descent.multiplier[0]) if groups is None else descent.multiplier
    return SolverResult(
        x=descent.x[back],
        objective=descent.objective,
        certificate=Certificate(descent.measure, descent.objective, kind),
        status=status,
        n_iter=descent.n_iter,
        extra={"multiplier": multiplier, "gradient": descent.gradient[back], "n_newton": descent.n_newton},
    )


def _prepare(
    K: Array, vectors: Array, total: float | None, groups: Array | None, rows: Array
) -> tuple[_Problem, np.ndarray]:
    """Return the problem and a feasible point near the given one; ``vectors`` and ``rows`` are sorted by group."""
    linear, lower, upper, given = vectors
    K = K if K.dtype == np.float32 else np.asarray(K, dtype=float)
    K = K.T if K.flags.f_contiguous else np.ascontiguousarray(K)  # K is symmetric
    problem = _Problem(
        K=K,
        diagonal=K.diagonal()[rows].astype(float),
        linear=linear,
        lower=lower,
        upper=upper,
        rows=rows.astype(np.int64),
        offsets=np.cumsum([0, len(rows)] if groups is None else [0, *np.bincount(groups)]),
        plain=bool(len(rows) == len(K) and (rows == np.arange(len(K))).all()),
        slack=groups is None and total is None,
        flat=EPS * max(float(np.abs(K.diagonal()).max(initial=0.0)), TINY),
        rounding=float(np.sqrt(np.finfo(K.dtype).eps)),
    )
    x = np.clip(given, lower, upper)
    for group in () if problem.slack else map(slice, problem.offsets[:-1], problem.offsets[1:]):
        wanted = float(given[group].sum()) if groups is not None else float(total or 0.0)
        _reach(wanted, x[group], linear[group], lower[group], upper[group])
    return problem, x


def _reach(total: float, x: np.ndarray, linear: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> None:
    """Move ``x`` inside the box until its sum is the total, the variables with the best linear term first."""
    missing = total - float(x.sum())
    room = np.abs((upper if missing > 0 else lower) - x)
    if abs(missing) > room.sum() + SUM_ROUNDING * (abs(total) + np.abs(x).sum()):
        raise ValueError(f"No point of the box sums to {total:g}: sums go from {lower.sum():g} to {upper.sum():g}.")
    order = np.argsort(np.copysign(1.0, missing) * linear, kind="stable")
    filled = np.concatenate([[0.0], np.cumsum(room[order])[:-1]])
    moves = np.copysign(np.clip(abs(missing) - filled, 0.0, room[order]), missing)
    x[order] = np.clip(x[order] + moves, lower[order], upper[order])


class _Descent:
    """A point on its way down, with its gradient and the measure of its quality."""

    def __init__(self, problem: _Problem, x: np.ndarray, tol: float):
        self.problem, self.x, self.tol = problem, x, tol
        self.bounded = bool(np.isfinite(problem.lower).all() and np.isfinite(problem.upper).all())
        self.convex = True
        self.n_iter = self.n_newton = 0
        self.refresh()
        self.judge()

    def run(self, max_iter: int) -> Status:
        """Descend until the measure of quality is within its target; say why it ended."""
        longest = max(CHUNK, len(self.x) // 2)
        n_steps, patience, n_stalls, best = longest, 1.0, 0, np.inf
        while self.measure > self.target:
            if self.n_iter >= max_iter:
                return Status.MAX_ITER
            measure, objective, n_iter = self.measure, self.objective, self.n_iter
            self.pair_steps(min(n_steps, max_iter - n_iter))
            self.judge()
            n_steps = longest
            if self.newton_pays(measure, self.n_iter - n_iter, patience):
                measure, between = self.measure, self.objective
                self.newton_step()
                self.judge()
                worked = self.measure < 0.5 * measure or between - self.objective > objective - between
                patience = 1.0 if worked else min(2.0 * patience + 1.0, PATIENCE)
                n_steps = min(longest, CHUNK + int(self.newton_cost()))
            # The objective is exact to the last digit long before the gap, its error being the square of the gap's.
            stalled = objective - self.objective <= self.noise and self.measure > 0.5 * best
            best = min(best, self.measure)
            n_stalls = n_stalls + 1 if stalled else 0
            if stalled or (self.measure <= self.target and self.drift() > 0.1 * self.target):
                self.refresh()
                self.judge()
                patience = 0.0
            if self.measure > self.target and (n_stalls == N_STALLS or self.measure <= HOPELESS * self.noise):
                return Status.PRECISION
        return Status.CONVERGED

    def refresh(self) -> None:
        """Compute the gradient anew, without the rounding errors of many updates."""
        support = np.flatnonzero(self.x)
        self.gradient = self.problem.linear + self.product(support, self.x[support])
        self.n_updates = 0

    def product(self, variables: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return the product of K with a vector that is zero but for some variables."""
        K, rows = self.problem.K, self.problem.rows
        if DENSE * len(variables) <= len(K):
            return np.asarray((values @ K[rows[variables]])[rows])
        sums = np.bincount(rows[variables], weights=values, minlength=len(K))
        blocks = [K] if K.dtype == float else np.array_split(K, 1 + len(K) // 256)
        return np.concatenate([block.astype(float, copy=False) @ sums for block in blocks])[rows]

    def drift(self) -> float:
        """Return how far rounding in the updates of the gradient may have moved the measure of quality."""
        reach = np.maximum(self.x - self.problem.lower, self.problem.upper - self.x).sum() if self.certified else 1.0
        return float(self.n_updates * EPS * np.abs(self.gradient).max() * reach)

    def judge(self) -> None:
        """Update the objective, the multipliers, and the measure of quality with its target."""
        problem, x, gradient = self.problem, self.x, self.gradient
        self.certified = self.convex and self.bounded  # the measure is the duality gap, else the violation
        self.objective = 0.5 * float(x @ (gradient + problem.linear))
        sizes = np.sqrt(np.abs(problem.diagonal)) * np.abs(x)
        self.noise = EPS * (abs(self.objective) + float(sizes.sum() * np.linalg.norm(sizes)))
        width = problem.upper - problem.lower
        nearly = np.where(np.isfinite(width), SUM_ROUNDING * width, 0.0)  # a last bit does not free a variable
        rising = np.where(x < problem.upper - nearly, gradient, np.inf)
        falling = np.where(x > problem.lower + nearly, gradient, -np.inf)
        slack = 0.0 if problem.slack else np.inf
        self.multiplier = np.zeros(len(problem.offsets) - 1)
        self.violation = gap = 0.0
        for k, group in enumerate(map(slice, problem.offsets[:-1], problem.offsets[1:])):
            least, most = float(rising[group].min(initial=slack)), float(falling[group].max(initial=-slack))
            self.violation = max(self.violation, most - least)
            ends = [end for end in (most, least) if np.isfinite(end)]  # both, unless all variables are at one side
            self.multiplier[k] = 0.0 if problem.slack else sum(ends) / max(1, len(ends))
            if self.certified:
                below, above = x[group] - problem.lower[group], problem.upper[group] - x[group]
                part, best = _gap(gradient[group], below, above, slack)
                gap += part
                if most > least:  # before the optimum the middle of what should be an interval may prove little
                    self.multiplier[k] = best
        self.measure = gap if self.certified else self.violation
        scale = abs(self.objective) if self.certified else float(np.abs(gradient).max(initial=0.0))
        self.target = self.tol * max(scale, TINY)

    def pair_steps(self, n_steps: int) -> None:
        """Take so many pair steps, fewer if the violation falls as far as the measure has to."""
        threshold = 0.5 * self.violation * min(1.0, self.target / self.measure)
        n_taken, convex, bounded = _pair_steps(self.problem, self.x, self.gradient, threshold, n_steps)
        if n_taken == 0 and bounded:  # the pair that gains most need not be the one that violates most
            n_taken, convex, bounded = _pair_steps(self.problem, self.x, self.gradient, 0.0, n_steps)
        if not bounded:
            raise ValueError("The objective has no minimum: the box is infinite in a direction without curvature.")
        self.convex = self.convex and convex
        self.n_iter, self.n_updates = self.n_iter + n_taken, self.n_updates + n_taken

    def newton_pays(self, before: float, n_steps: int, patience: float) -> bool:
        """Guess from the last pair steps whether those still to come cost more than a Newton step."""
        if not self.convex or self.measure <= self.target or n_steps == 0 or np.count_nonzero(self.free()) < 2:
            return False
        rate = np.log(max(before / self.measure, 1.0 + 1e-6)) / n_steps
        n_more = np.log(self.measure / max(self.target, TINY)) / rate
        return bool(n_more > patience * self.newton_cost())

    def newton_cost(self) -> float:
        """Return what a Newton step costs, in pair steps."""
        n, n_free = len(self.x), int(np.count_nonzero(self.free()))
        seconds = NEWTON_STEP + FACTORISATION * n_free**3 + READING * n_free * (4 * n_free + n)
        return seconds / (PAIR_STEP * n)

    def free(self) -> np.ndarray:
        return (self.x > self.problem.lower) & (self.x < self.problem.upper)

    def newton_step(self) -> None:
        """Minimise over the free variables, the others fixed; those that meet a bound on the way stay there."""
        problem, free = self.problem, np.flatnonzero(self.free())
        H = problem.K[np.ix_(problem.rows[free], problem.rows[free])].astype(float)
        scale = max(float(np.abs(H.diagonal()).max()), TINY)
        for ridge in (RIDGE * problem.rounding**2 * np.sqrt(len(free)), problem.rounding):
            H.flat[:: len(free) + 1] += ridge * scale
            factor, failed = dpotrf(H.T, lower=1)
            if not failed:
                break
        else:
            self.convex = False
            return
        group = np.searchsorted(problem.offsets, free, side="right")
        E = (group == np.unique(group)[:, None]).astype(float)[: 0 if problem.slack else None]
        x, gradient, lower, upper = self.x[free], self.gradient[free], problem.lower[free], problem.upper[free]
        walk(np.ascontiguousarray(factor), factor.T, E, gradient, x, lower, upper, STAGES + len(free) // 4)
        step = x - self.x[free]
        if not np.isfinite(step).all():  # no curvature at all: leave it to the pair steps
            return
        change = self.product(free, step)
        slope, curvature = float(gradient @ step), float(change[free] @ step)
        if slope + 0.5 * curvature > 0.0:  # rounding or the ridge spoiled the direction: go as far as it leads down
            share = max(0.0, -slope / curvature)
            x, change = np.clip(self.x[free] + share * step, lower, upper), share * change
        self.x[free], self.gradient = x, self.gradient + change
        self.n_newton, self.n_updates = self.n_newton + 1, self.n_updates + len(free)


def _gap(gradient: np.ndarray, below: np.ndarray, above: np.ndarray, slack: float) -> tuple[float, float]:
    """Return the duality gap of a group at its best multiplier, and that; ``below``, ``above``: room to the bounds."""
    multiplier = 0.0
    if slack and len(gradient):
        # The slope in b is the range of the variables with g_i < b less the sum of x - l: zero at a quantile.
        order = np.argsort(gradient)
        sums, wanted = np.cumsum((below + above)[order]), below.sum()
        first, last = np.searchsorted(
            sums, [(1 - SUM_ROUNDING) * wanted, (1 + SUM_ROUNDING) * wanted]
        )  # any b between will do
        ends = gradient[order[np.minimum([first, last], len(order) - 1)]]
        multiplier = float(ends.mean())
    excess = gradient - multiplier
    return float(np.maximum(excess * below, -excess * above).sum()), multiplier


# The loops work on arrays one after the other, in passes as simple as can be, because these compile to vector
# instructions. One pass that updates the gradient and tracks the best variables took twice as long.
@compiled
def _pair_steps(problem: _Problem, x: Array, gradient: Array, threshold: float, n_steps: int) -> tuple[int, bool, bool]:
    """Take pair steps until that of the best pair is at the threshold; update ``x`` and ``gradient`` in place.

    Returns how many, and whether curvature and step lengths were those of a convex problem that has a minimum.
    """
    K, diagonal, rows, lower, upper = problem.K, problem.diagonal, problem.rows, problem.lower, problem.upper
    n, convex = len(x), True
    cannot_rise, cannot_fall = np.where(x < upper, 0.0, np.inf), np.where(x > lower, 0.0, np.inf)
    rising, falling, gains, scratch = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    row_i, row_j = np.empty(n, K.dtype), np.empty(n, K.dtype)
    for n_taken in range(n_steps):
        for v in range(n):  # -g where a variable can rise, g where it can fall, else minus infinity
            rising[v] = -gradient[v] - cannot_rise[v]
            falling[v] = gradient[v] - cannot_fall[v]
        i, j, excess = _choose(problem, rising, falling, gains, row_i, scratch)
        if excess <= threshold:
            return n_taken, convex, True
        d_i, room_i = (diagonal[i], upper[i] - x[i]) if i >= 0 else (0.0, np.inf)
        d_j, room_j = (diagonal[j], x[j] - lower[j]) if j >= 0 else (0.0, np.inf)
        curvature = d_i + d_j - (2.0 * K[rows[i], rows[j]] if i >= 0 and j >= 0 else 0.0)
        convex = convex and curvature >= -problem.rounding * (abs(d_i) + abs(d_j))
        room = min(room_i, room_j)
        if curvature <= problem.flat and room == np.inf:
            return n_taken, convex, False
        step = min(excess / max(curvature, problem.flat), room)
        for v, bound, signed, at_bound in ((i, upper, step, step == room_i), (j, lower, -step, step == room_j)):
            if v >= 0:
                x[v] = bound[v] if at_bound else min(max(x[v] + signed, lower[v]), upper[v])
                cannot_rise[v] = 0.0 if x[v] < upper[v] else np.inf
                cannot_fall[v] = 0.0 if x[v] > lower[v] else np.inf
        add(gradient, _row(problem, i, row_i), step)
        add(gradient, _row(problem, j, row_j), -step)
    return n_steps, convex, True


@compiled
def _choose(
    problem: _Problem, rising: Array, falling: Array, gains: Array, buffer: Array, scratch: Array
) -> tuple[int, int, float]:
    """Return which variable should rise and which should fall (-1: the slack), and by how much their g differ."""
    diagonal, flat = problem.diagonal, problem.flat
    best, i, j, excess = 0.0, -1, -1, 0.0
    for k in range(len(problem.offsets) - 1):
        start, stop = problem.offsets[k], problem.offsets[k + 1]
        up = _argmax(rising[start:stop], scratch)
        up = -1 if up < 0 or (problem.slack and rising[start + up] < 0.0) else start + up
        if up < 0 and not problem.slack:
            continue
        g_up, d_up = (-rising[up], diagonal[up]) if up >= 0 else (0.0, 0.0)
        row = _row(problem, up, buffer)
        _gains(falling[start:stop], row[start:stop], diagonal[start:stop], g_up, d_up, flat, gains[start:stop])
        down = start + _argmax(gains[start:stop], scratch)
        gain, g_down = gains[down], falling[down]
        if problem.slack and up >= 0 and g_up * g_up / max(d_up, flat) > gain:
            down, gain, g_down = -1, g_up * g_up / max(d_up, flat), 0.0
        if gain > best:
            best, i, j, excess = gain, up, down, g_down - g_up
    return i, j, excess


@compiled
def _row(problem: _Problem, v: int, buffer: Array) -> Array:
    """Return the kernel row of a variable, with an entry for each variable; zeros for the slack."""
    row = problem.K[problem.rows[v]]
    if problem.plain and v >= 0:
        return row
    for k in range(len(buffer)):
        buffer[k] = row[problem.rows[k]] if v >= 0 else 0.0
    return buffer


@compiled
def _gains(falling: Array, row: Array, diagonal: Array, g_up: float, d_up: float, flat: float, gains: Array) -> None:
    """Set ``gains`` to twice what it gains to lower a variable as another rises, were there no box."""
    for v in range(len(gains)):
        excess = max(falling[v] - g_up, 0.0)
        gains[v] = excess * excess / max(d_up + diagonal[v] - 2.0 * row[v], flat)


@compiled
def _argmax(values: Array, scratch: Array) -> int:
    """Return the place of the largest entry, -1 if none is above minus infinity."""
    lane = len(values) // 8  # eight lanes are folded into one first
    for v in range(lane):
        a = max(max(values[v], values[v + lane]), max(values[v + 2 * lane], values[v + 3 * lane]))
        w = v + 4 * lane
        b = max(max(values[w], values[w + lane]), max(values[w + 2 * lane], values[w + 3 * lane]))
        scratch[v] = max(a, b)
    best, place = -np.inf, -1
    for v in range(lane):
        if scratch[v] > best:
            best, place = scratch[v], v
    while place >= 0 and values[place] != best:
        place += lane
    for v in range(8 * lane, len(values)):
        if values[v] > best:
            best, place = values[v], v
    return place

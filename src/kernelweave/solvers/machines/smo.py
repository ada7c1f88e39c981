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

Pair steps (:mod:`.pair_steps`) find out which variables are at a bound, but crawl where :math:`K` is ill-conditioned;
there a Newton step on all free variables takes over, when it costs less than the pair steps it saves. No equality is an
equality with a slack variable, free in sign, that the objective does not see: two variables may still move against each
other, without which descent stalls where the top eigenvector of :math:`K` is nearly constant.

Variables at a bound, with a gradient far on the right side, are left out once it pays to copy the rest of :math:`K`
(shrinking: Joachims: Making large-scale SVM learning practical. Advances in Kernel Methods, 1999). The problem of the
active variables is one of the same form and solved likewise; what is said about the solution is computed over all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotrf

from ..compiled_loops import Array, add_rows, gather, mirror
from ..result import Certificate, SolverResult, Status
from .newton_step import newton_step
from .newton_walk import walk
from .optimality import SUM_ROUNDING, find_best_multiplier, measure_gap, survey
from .pair_steps import Problem, pair_steps

EPS, TINY = float(np.finfo(float).eps), float(np.finfo(float).tiny)
MIN_GAP_ROUNDINGS = 1.0  # times the rounding of the objective: a smaller gap cannot be told from none
STALLED_RATIO = 0.9  # times the best measure so far: what is above has made none
MIN_CONSTANT = 10.0  # times the range of a linear term is a constant that costs digits
MAX_STALLS = 10  # looks at the measure in a row without progress, after which rounding is to blame

# How pair steps and Newton steps take turns; measured on RBF kernels and on K = ZZ', 500 to 5000 points.
MIN_PAIR_STEPS = 50  # pair steps in a row, at least; after a Newton step, as many more as take its time
MAX_NEWTON_SAVING = 64  # a Newton step after one that did not work is expected to save up to so many times its cost
MIN_NEWTON_STAGES = 10  # bounds that a Newton step may meet before it ends, at least
# Free variables: from so many on, a Newton step meets many bounds at a time. 26 transductive machines of 5000 rows take
# 48 s with 500, 20 s with 700 to 1000; 13 problems with noisy labels, 2000 to 4000 rows, 0.88 s, 0.91 s and 0.98 s.
MIN_MANY = 700
NEWTON_GAP = 0.03  # relative gap: above it, so many variables are not yet at the bounds where they belong
RIDGE = 1e3  # times what rounding does to the eigenvalues; less lets the null space in, and the steps go astray
SHRINKING_MARGIN = 1.0  # times the violation is far on the right side; with none, on K = ZZ' many turn out active again
MAX_ACTIVE_SHARE = 0.7  # of all variables, and of the rows of K, for the others to be left out: half of K's memory
MIN_RUN_ROWS = 16  # consecutive rows of K, on average, are read in runs
# Seconds a variable, a Newton step of any size, a cubed free variable, an entry of K, a selection; the ratios matter.
PAIR_STEP, NEWTON_STEP, FACTORISATION, READING, SHRINKING = 1.6e-9, 1e-4, 9e-12, 4e-10, 3e-4
OVERHEAD = 150  # variables: what a pair step of any size costs


@dataclass(frozen=True, kw_only=True)
class MachineResult(SolverResult):
    """The signed duals of a machine.

    Attributes
    ----------
    multiplier : float or ndarray of shape (n_groups,)
        The middle of the interval of multipliers, before the optimum the one that proves most: an array if there are
        groups, else a float; 0 without equality.
    gradient : ndarray of shape (n_variables,)
        ``Kx + linear``.
    n_newton : int
        Newton steps.
    """

    multiplier: float | np.ndarray
    gradient: np.ndarray
    n_newton: int = 0


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
    constant: float = 0.0,
    tol: float = 1e-3,
    max_iter: int | None = None,
) -> MachineResult:
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
    constant : float
        Part of the objective: its value at zero.
    tol : float
        Stop when the duality gap is at most ``tol`` times the absolute objective; where a step meets negative curvature
        or the box is unbounded, when the violation is at most ``tol`` times the largest entry of the gradient.
    max_iter : int, optional
        Largest number of pair steps; by default ten million, or 100 a variable if that is more.

    Returns
    -------
    MachineResult
        ``n_iter`` counts pair steps.

    Notes
    -----
    Takes up to half of the memory of ``K`` for the rows and columns of the active variables, if these are few enough.

    Examples
    --------
    >>> points = np.array([-1.0, 1.0])
    >>> result = solve(np.outer(points, points), -points, np.array([-9.0, 0.0]), np.array([0.0, 9.0]))
    >>> result.x, result.objective
    (array([-0.5,  0.5]), -0.5)
    """
    if groups is not None and start is None:
        raise ValueError("The sum of each group is kept at what start gives, but there is no start; pass one.")
    if np.any(lower > upper):
        raise ValueError(f"{np.count_nonzero(lower > upper)} lower bounds are above their upper bounds.")
    order = np.arange(len(linear)) if groups is None else np.argsort(groups, kind="stable")
    level = _find_constant(linear) if groups is None and total == 0.0 else 0.0
    vectors = np.array([linear - level, lower, upper, np.zeros(len(linear)) if start is None else start], dtype=float)
    problem, x = _prepare(K, vectors.take(order, axis=1), total, groups, (order if index is None else index[order]))
    descent = _Descent(problem, x, tol, constant)
    status = descent.run(max(10**7, 100 * len(x)) if max_iter is None else max_iter)
    back = np.argsort(order)
    kind = "duality gap" if descent.certified else "stationarity"
    multiplier = float(descent.multiplier[0]) + level if groups is None else descent.multiplier
    return MachineResult(
        x=descent.x[back],
        objective=descent.objective,
        certificate=Certificate(descent.measure, descent.objective, kind),
        status=status,
        n_iter=descent.n_iter,
        multiplier=multiplier,
        gradient=descent.gradient[back] + level,
        n_newton=descent.n_newton,
    )


def _find_constant(linear: np.ndarray) -> float:
    """Return what may be taken from a linear term where the sum is zero; 0 unless it is so large that it costs digits.

    Steps of pairs see differences of the gradient alone: a constant adds to the multiplier, and to rounding errors.
    """
    middle = 0.5 * (float(linear.min()) + float(linear.max()))
    return middle if abs(middle) > MIN_CONSTANT * float(np.ptp(linear)) else 0.0


def _prepare(
    K: Array, vectors: Array, total: float | None, groups: Array | None, rows: Array
) -> tuple[Problem, np.ndarray]:
    """Return the problem and a feasible point near the given one; ``vectors`` and ``rows`` are sorted by group."""
    linear, lower, upper, given = vectors
    K = K if K.dtype == np.float32 else np.asarray(K, dtype=float)
    K = K.T if K.flags.f_contiguous else np.ascontiguousarray(K)  # K is symmetric
    problem = Problem(
        K=K,
        diagonal=K.diagonal()[rows].astype(float),
        linear=linear,
        lower=lower,
        upper=upper,
        rows=rows.astype(np.int64),
        runs=_find_runs(rows),
        offsets=np.cumsum([0, len(rows)] if groups is None else [0, *np.bincount(groups)]),
        plain=bool(len(rows) == len(K) and (rows == np.arange(len(K))).all()),
        slack=groups is None and total is None,
        flat=EPS * max(float(np.abs(K.diagonal()).max(initial=0.0)), TINY),
        rounding=float(np.sqrt(np.finfo(K.dtype).eps)),
    )
    x = np.clip(given, lower, upper)
    for group in () if problem.slack else map(slice, problem.offsets[:-1], problem.offsets[1:]):
        wanted = float(given[group].sum()) if groups is not None else float(total or 0.0)
        move_to_total(wanted, x[group], linear[group], lower[group], upper[group])
    return problem, x


def _find_runs(rows: np.ndarray) -> np.ndarray:
    """Return where consecutive rows begin and end; nothing if this is no faster to read than row by row."""
    starts = np.flatnonzero(np.diff(rows, prepend=-2, append=-2) != 1)
    return starts if MIN_RUN_ROWS * len(starts) <= len(rows) else starts[:0]


def move_to_total(total: float, x: np.ndarray, linear: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> None:
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
    """A point on its way down, with its gradient and the measure of its quality.

    Parameters
    ----------
    problem : Problem
    x : ndarray of shape (n_variables,)
        Feasible; overwritten.
    tol : float
    constant : float
        Part of the objective.
    convex : bool
        False if negative curvature is known of.
    """

    def __init__(self, problem: Problem, x: np.ndarray, tol: float, constant: float = 0.0, convex: bool = True):
        self.problem, self.x, self.tol, self.constant, self.convex = problem, x, tol, constant, convex
        width = problem.upper - problem.lower
        self.bounded = bool(np.isfinite(width).all())
        self.nearly = np.where(np.isfinite(width), SUM_ROUNDING * width, 0.0)  # a last bit does not free a variable
        self.n_iter = self.n_newton = 0
        self.refresh()
        self.judge()

    def run(self, max_iter: int) -> Status:
        """Descend until the measure of quality is within its target; say why it ended."""
        longest = max(MIN_PAIR_STEPS, len(self.x) // 2)
        n_steps, patience, n_stalls, best = longest, 1.0, 0, np.inf
        since = self.measure, self.n_iter  # where the pair steps began from whose progress the rest is guessed
        while self.measure > self.target:
            if self.n_iter >= max_iter:
                return Status.MAX_ITER
            measure, objective, n_iter = self.measure, self.objective, self.n_iter
            self.pair_steps(min(n_steps, max_iter - n_iter))
            self.judge()
            if self.n_iter - n_iter >= MIN_PAIR_STEPS:  # the gap need not fall in every few steps
                since = measure, n_iter
            n_more = self.n_more(*since)
            n_steps = int(min(longest, MIN_PAIR_STEPS + n_more))
            if self.shrinking_pays(n_more):
                self.shrink(max_iter)
                self.judge()
                since = self.measure, self.n_iter
            elif self.newton_pays(n_more, patience):
                measure, between = self.measure, self.objective
                self.newton_step()
                self.judge()
                worked = self.measure < 0.5 * measure or between - self.objective > objective - between
                patience = 1.0 if worked else min(2.0 * patience + 1.0, MAX_NEWTON_SAVING)
                n_steps = min(longest, MIN_PAIR_STEPS + int(self.newton_cost()))
                since = self.measure, self.n_iter
            # The objective is exact to the last digit long before the gap, its error being the square of the gap's.
            if self.measure <= self.target and self.drift() > 0.1 * self.target:
                self.refresh()  # before it is compared: what only many updates had made good is no progress
                self.judge()
            stalled = objective - self.objective <= self.noise and self.measure > STALLED_RATIO * best
            best = min(best, self.measure)
            n_stalls = n_stalls + 1 if stalled else 0
            if stalled:
                n_steps, patience = longest, patience if n_stalls == 1 else 0.0
                self.refresh()
                self.judge()
            hopeless = n_stalls == MAX_STALLS or self.measure <= MIN_GAP_ROUNDINGS * self.noise
            if self.measure > self.target and hopeless:
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
        sums = np.zeros(len(K))
        add_rows(K, rows[variables], values[None], sums[None])
        return sums if self.problem.plain else sums[rows]

    def drift(self) -> float:
        """Return how far rounding in the updates of the gradient may have moved the measure of quality."""
        reach = np.maximum(self.x - self.problem.lower, self.problem.upper - self.x).sum() if self.certified else 1.0
        return float(self.n_updates * EPS * np.abs(self.gradient).max() * reach)

    def judge(self) -> None:
        """Update the objective, the multipliers, and the measure of quality with its target."""
        problem, x, gradient = self.problem, self.x, self.gradient
        self.certified = self.convex and self.bounded  # the measure is the duality gap, else the violation
        slack = 0.0 if problem.slack else np.inf
        self.multiplier = np.zeros(len(problem.offsets) - 1)
        self.least, self.most = self.multiplier + slack, self.multiplier - slack
        value, size, largest = survey(problem, x, gradient, self.nearly, self.least, self.most)
        self.objective = self.constant + value
        self.noise = EPS * (abs(self.objective) + size)
        self.violation = gap = 0.0
        for k, group in enumerate(map(slice, problem.offsets[:-1], problem.offsets[1:])):
            least, most = float(self.least[k]), float(self.most[k])
            self.violation = max(self.violation, most - least)
            ends = [end for end in (most, least) if np.isfinite(end)]  # both, unless all variables are at one side
            if not problem.slack:
                self.multiplier[k] = sum(ends) / max(1, len(ends))
            if self.certified:
                place = (gradient[group], x[group], problem.lower[group], problem.upper[group])
                if most > least and not problem.slack:  # the middle of what should be an interval may prove little
                    self.multiplier[k] = find_best_multiplier(*place, least, most)
                gap += measure_gap(*place, self.multiplier[k])
        self.measure = gap if self.certified else self.violation
        scale = abs(self.objective) if self.certified else largest
        self.target = self.tol * max(scale, TINY)

    def pair_steps(self, n_steps: int) -> None:
        """Take so many pair steps, fewer if the violation falls as far as the measure has to."""
        threshold = 0.5 * self.violation * min(1.0, self.target / self.measure)
        n_taken, convex, bounded = pair_steps(self.problem, self.x, self.gradient, threshold, n_steps)
        if n_taken == 0 and bounded:  # the pair that gains most need not be the one that violates most
            n_taken, convex, bounded = pair_steps(self.problem, self.x, self.gradient, 0.0, n_steps)
        if not bounded:
            raise ValueError("The objective has no minimum: the box is infinite in a direction without curvature.")
        self.convex = self.convex and convex
        self.n_iter, self.n_updates = self.n_iter + n_taken, self.n_updates + n_taken

    def n_more(self, before: float, n_before: int) -> float:
        """Guess how many more pair steps are to come; ``before`` was the measure when there were ``n_before``."""
        n_steps = self.n_iter - n_before
        if self.measure <= self.target or n_steps == 0:
            return 0.0
        rate = np.log(max(before / self.measure, 1.0 + 1e-6)) / n_steps
        return float(np.log(self.measure / max(self.target, TINY)) / rate)

    def shrinking_pays(self, n_more: float) -> bool:
        """Tell whether pair steps on the active variables save more time than it takes to set them apart."""
        n, n_more = len(self.x), min(n_more, len(self.x))  # guesses from afar are too high
        if PAIR_STEP * n * n_more < SHRINKING:
            return False
        n_active = int(np.count_nonzero(self.active()))
        seconds = SHRINKING + READING * n_active * (8 * n_active + n)
        smaller = n_active <= MAX_ACTIVE_SHARE * min(n, len(self.problem.K))
        return bool(smaller and PAIR_STEP * (n - n_active) * n_more > seconds)

    def active(self) -> np.ndarray:
        """Return which variables can move or may soon: the others are at the bound where their gradient wants them."""
        sizes, margin = np.diff(self.problem.offsets), SHRINKING_MARGIN * self.violation
        kept = (self.x > self.problem.lower) | (self.gradient <= np.repeat(self.most + margin, sizes))
        return kept & ((self.x < self.problem.upper) | (self.gradient >= np.repeat(self.least - margin, sizes)))

    def shrink(self, max_iter: int) -> None:
        """Minimise over the active variables, the others fixed; then the gradient is that of all again."""
        problem, active = self.problem, np.flatnonzero(self.active())
        K, x = np.empty((len(active), len(active)), problem.K.dtype), self.x[active]
        gather(problem.K, problem.rows[active], K)
        mirror(K)
        linear = self.gradient[active]  # less what the active variables have part in
        add_rows(K, np.flatnonzero(x), -x[x != 0.0][None], linear[None])
        part = problem._replace(
            K=K,
            diagonal=problem.diagonal[active],
            linear=linear,
            lower=problem.lower[active],
            upper=problem.upper[active],
            rows=np.arange(len(active)),
            runs=np.array([0, len(active)]),
            offsets=np.searchsorted(active, problem.offsets),
            plain=True,
        )
        constant = self.objective - 0.5 * float(x @ (linear + self.gradient[active]))
        descent = _Descent(part, x, self.tol, constant, self.convex)
        descent.run(max_iter - self.n_iter)
        self.convex = descent.convex
        self.n_iter, self.n_newton = self.n_iter + descent.n_iter, self.n_newton + descent.n_newton
        step = descent.x - self.x[active]
        moved = np.flatnonzero(step)
        self.gradient = self.gradient + self.product(active[moved], step[moved])
        self.x[active] = descent.x
        self.n_updates += len(moved)

    def newton_pays(self, n_more: float, patience: float) -> bool:
        """Tell whether the pair steps to come cost more than a Newton step."""
        n_free, wanted = int(np.count_nonzero(self.free())), patience * self.newton_cost()
        if n_free > MIN_MANY and self.certified:  # far from the optimum, many are on their way to a bound
            wanted *= max(1.0, self.measure / max(NEWTON_GAP * abs(self.objective), TINY))
        return bool(self.convex and n_free >= 2 and n_more > wanted)

    def newton_cost(self) -> float:
        """Return what a Newton step costs, in pair steps."""
        n, n_free = len(self.x), int(np.count_nonzero(self.free()))
        seconds = NEWTON_STEP + FACTORISATION * n_free**3 + READING * n_free * (12 * n_free + n)
        return seconds / (PAIR_STEP * (n + OVERHEAD))

    def free(self) -> np.ndarray:
        return (self.x > self.problem.lower) & (self.x < self.problem.upper)

    def newton_step(self) -> None:
        """Minimise over the free variables, the others fixed; those that meet a bound on the way stay there."""
        problem, free = self.problem, np.flatnonzero(self.free())
        rows, x, gradient = problem.rows[free], self.x[free], self.gradient[free]
        lower, upper = problem.lower[free], problem.upper[free]
        factor = self.factor(rows)
        if factor is None:
            self.convex = False
            return
        places, ends = np.arange(len(free)), np.searchsorted(free, problem.offsets)[:, None]
        E = ((places >= ends[:-1]) & (places < ends[1:])).astype(float)[: 0 if problem.slack else None]
        E = E[E.any(axis=1)]
        step, many = None, len(free) > MIN_MANY and self.certified
        if many:
            step = newton_step(
                lambda at: self.factor(rows[at]),
                lambda at, others, values: problem.K[np.ix_(rows[at], rows[others])] @ values,
                *(factor, E, gradient, lower - x, upper - x),
            )
        if step is None or not self.follow(free, step):  # of many, one after the other takes longer than pair steps
            walk(factor.T, E, gradient, x, lower, upper, MIN_NEWTON_STAGES + (0 if many else len(free) // 4))
            self.follow(free, x - self.x[free])

    def follow(self, free: np.ndarray, step: np.ndarray) -> bool:
        """Move the free variables along a step as far as it leads down; tell whether it does."""
        if not np.isfinite(step).all():  # no curvature at all: leave it to the pair steps
            return False
        change = self.product(free, step)
        slope, curvature = float(self.gradient[free] @ step), float(change[free] @ step)
        if slope >= 0.0:
            return False
        if slope + curvature > 0.0:  # the bounds it met, rounding or the ridge spoiled the direction
            step, change = -slope / curvature * step, -slope / curvature * change
        self.x[free] = np.clip(self.x[free] + step, self.problem.lower[free], self.problem.upper[free])
        self.gradient = self.gradient + change
        self.n_newton, self.n_updates = self.n_newton + 1, self.n_updates + len(free)
        return True

    def factor(self, rows: np.ndarray) -> np.ndarray | None:
        """Return the Cholesky factor of the rows and columns ``rows`` of K and its transpose in one; None if none."""
        H, n = np.empty((len(rows), len(rows))), len(rows)
        for ridge in (RIDGE * self.problem.rounding**2 * np.sqrt(n), self.problem.rounding):
            gather(self.problem.K, rows, H)
            H.flat[:: n + 1] += ridge * max(float(np.abs(H.diagonal()).max()), TINY)
            factor, failed = dpotrf(H.T, lower=1, clean=0, overwrite_a=1)
            if not failed:
                mirror(factor.T)
                return np.asarray(factor)
        return None

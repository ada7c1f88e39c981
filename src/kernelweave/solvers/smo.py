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

which is the duality gap of the SVM. It is piecewise linear in :math:`b`; its minimum is a weighted quantile of the
:math:`g_i`. The solver stops when the gap is small; for an indefinite :math:`K` it stops when the largest violation
:math:`\max g_i - \min g_j` is, where :math:`x_i` can fall and :math:`x_j` can rise.

Pairs are chosen by second-order information (Fan, Chen, Lin: Working set selection using second order information for
training SVM. JMLR, 2005). Pair steps find which variables are at a bound, but crawl along the valleys of an
ill-conditioned :math:`K`; there a Newton step on all free variables takes over, when it costs less than the pair steps
it saves. No equality is one equality with a slack variable, free in sign, that the objective does not see: a step of
one variable is the pair of it and the slack, and two variables may still move against each other. Without the latter,
descent stalls where the top eigenvector of :math:`K` is nearly constant.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from scipy.linalg.lapack import dpotrf

from .result import Certificate, SolverResult, Status

EPS = float(np.finfo(float).eps)
TINY = float(np.finfo(float).tiny)
SUM_ROUNDING = 1e-12  # totals that miss what the box allows by less are met up to rounding
N_STALLS = 3  # checks in a row without progress, after which rounding is blamed
MIN_STAGES = 10  # bounds that a Newton step may meet on its way, at least
INDEFINITE = 1e-8  # negative curvature beyond this share of the diagonal is no rounding
SPARSE = 4  # fewer rows than this part of K are gathered for a product; K as a whole is read faster than more
STEPS_EACH = 3  # pair steps for each
MIN_CHUNK = 50  # pair steps between two looks at the gap, at least

# What a step costs on one core, in seconds; only the ratios matter.
PAIR_STEP = 2.2e-9  # for each variable
CALL = 2e-4
FACTORISATION = 3e-11  # for each |F|^3
PASS = 5e-10  # for each entry of K that is read

# Division by zero gives infinity, as in numpy: a test for it in each loop would forbid vector instructions.
compiled = njit(cache=True, nogil=True, error_model="numpy")


@dataclass(frozen=True)
class _Problem:
    """The problem with its variables sorted by group: group k holds the variables offsets[k] to offsets[k + 1]."""

    K: np.ndarray
    linear: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    index: np.ndarray
    offsets: np.ndarray
    slack: bool  # no equality: a free variable without a kernel row takes up the sum

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Return ``Kx + linear``, one entry a variable."""
        if not x.any():
            return self.linear.copy()
        sums = np.bincount(self.index, weights=x, minlength=len(self.K))
        blocks = [self.K] if self.K.dtype == float else np.array_split(self.K, 1 + len(self.K) // 256)
        values = np.concatenate([np.asarray(block, dtype=float) @ sums for block in blocks])
        return values[self.index] + self.linear

    def segments(self) -> list[slice]:
        return [slice(a, b) for a, b in zip(self.offsets[:-1], self.offsets[1:], strict=True)]


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
        The sum of all variables; None for no such constraint. Not looked at if there are groups.
    groups : ndarray of shape (n_variables,), optional
        Group of each variable, from 0 on. The sum over each group stays what it is in ``start``.
    index : ndarray of shape (n_variables,), optional
        Row of ``K`` that belongs to each variable; variables may share rows. By default, they are the same.
    start : ndarray of shape (n_variables,), optional
        Where to start; moved into the box, then to the total. Needed if there are groups.
    tol : float
        Stop when the duality gap is at most ``tol`` times the absolute objective; for an indefinite ``K`` or an
        unbounded box, when the largest violation is at most ``tol`` times the largest gradient entry.
    max_iter : int, optional
        Largest number of pair steps; by default ten million, or 100 a variable if that is more.

    Returns
    -------
    SolverResult
        ``extra["multiplier"]`` is the middle of the interval of multipliers that fit best: a float, 0 without
        equality, an array with groups. ``extra["gradient"]`` is ``Kx + linear``. ``n_iter`` counts pair steps,
        ``extra["n_newton"]`` Newton steps.
    """
    order, problem, x = _prepare(K, linear, lower, upper, total, groups, index, start)
    limit = max(10**7, 100 * len(x)) if max_iter is None else max_iter
    state = _Descent(problem, x, tol)
    status = state.run(limit)
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    multiplier = state.multiplier if groups is not None else float(state.multiplier[0])
    return SolverResult(
        x=state.x[back],
        objective=state.objective,
        certificate=Certificate(state.measure, state.objective, "duality gap" if state.certified else "stationarity"),
        status=status,
        n_iter=state.n_iter,
        extra={"multiplier": multiplier, "gradient": state.gradient[back], "n_newton": state.n_newton},
    )


def _prepare(
    K: np.ndarray,
    linear: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    total: float | None,
    groups: np.ndarray | None,
    index: np.ndarray | None,
    start: np.ndarray | None,
) -> tuple[np.ndarray, _Problem, np.ndarray]:
    """Return the order that sorts the variables by group, the problem in this order, and a feasible point."""
    n = len(linear)
    if groups is not None and start is None:
        raise ValueError("Groups need a start, because their sums are kept at what it gives; pass start.")
    if np.any(lower > upper):
        raise ValueError("Some lower bounds are above their upper bounds; no point is between them.")
    order = np.arange(n) if groups is None else np.argsort(groups, kind="stable")
    sizes = [n] if groups is None else np.bincount(groups)
    if K.dtype != np.float32:
        K = np.asarray(K, dtype=float)
    problem = _Problem(
        K=K.T if K.flags.f_contiguous else np.ascontiguousarray(K),  # K is symmetric
        linear=np.asarray(linear, float)[order],
        lower=np.asarray(lower, float)[order],
        upper=np.asarray(upper, float)[order],
        index=(np.arange(n) if index is None else np.asarray(index, dtype=np.intp))[order],
        offsets=np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp),
        slack=groups is None and total is None,
    )
    given = np.zeros(n) if start is None else np.asarray(start, float)[order]
    x = np.clip(given, problem.lower, problem.upper)
    for segment in problem.segments() if not problem.slack else []:
        wanted = float(given[segment].sum()) if groups is not None else float(total or 0.0)
        _reach(wanted, x[segment], problem.linear[segment], problem.lower[segment], problem.upper[segment])
    return order, problem, x


def _reach(total: float, x: np.ndarray, linear: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> None:
    """Move ``x`` inside the box until its sum is the total, the variables with the best linear term first."""
    missing = total - x.sum()
    room = upper - x if missing > 0 else lower - x
    magnitude = abs(total) + float(np.abs(x).sum())
    if abs(missing) > abs(room.sum()) + SUM_ROUNDING * magnitude:
        raise ValueError(
            f"The variables cannot sum to {total:g}: their bounds allow {lower.sum():g} to {upper.sum():g}."
        )
    if missing == 0.0:
        return
    order = np.argsort(linear if missing > 0 else -linear, kind="stable")
    used = np.concatenate([[0.0], np.cumsum(np.abs(room[order]))[:-1]])
    move = np.clip(abs(missing) - used, 0.0, np.abs(room[order]))
    x[order] = np.clip(x[order] + np.sign(missing) * move, lower[order], upper[order])


class _Descent:
    """A point on its way down, with its gradient and its certificate."""

    def __init__(self, problem: _Problem, x: np.ndarray, tol: float):
        self.problem, self.x, self.tol = problem, x, tol
        n = len(x)
        self.plain = len(problem.offsets) == 2 and n == len(problem.K) and bool((problem.index == np.arange(n)).all())
        self.diagonal = problem.K.diagonal().astype(float)[problem.index]
        self.bounded = bool(np.isfinite(problem.lower).all() and np.isfinite(problem.upper).all())
        self.convex = True
        self.n_iter = self.n_newton = 0
        self.refresh()
        self.judge()

    def run(self, limit: int) -> Status:
        """Descend until the measure of quality reaches its target; say why it ended."""
        longest = max(MIN_CHUNK, len(self.x) // 2)
        n_steps, patience, n_stalls = longest, 1.0, 0
        while self.measure > self.target:
            if self.n_iter >= limit:
                return Status.MAX_ITER
            before, n_before, objective = self.measure, self.n_iter, self.objective
            moved = self.pair_steps(min(n_steps, limit - self.n_iter))
            self.judge()
            if self.measure <= self.target and self.drift() > 0.1 * self.target:
                self.refresh()
                self.judge()
            if self.measure <= self.target:
                break
            if self.convex and self.newton_pays(before, self.n_iter - n_before, patience):
                before = self.measure
                self.newton_step()
                self.judge()
                patience = 1.0 if self.measure < 0.5 * before else 2.0 * patience
                balanced = int(0.5 * self.newton_cost() / self.pair_cost())
                n_steps = min(longest, MIN_CHUNK + STEPS_EACH * self.n_violators() + balanced)
            else:
                n_steps = longest
            stalled = not moved or objective - self.objective <= EPS * abs(self.objective)
            n_stalls = n_stalls + 1 if stalled else 0
            if n_stalls == N_STALLS:
                return Status.PRECISION
            if stalled:
                self.refresh()
                self.judge()
        return Status.CONVERGED

    def refresh(self) -> None:
        """Compute the gradient anew, without the rounding errors of many updates."""
        self.gradient = self.problem.gradient(self.x)
        self.n_updates = 0

    def move(self, variables: np.ndarray, step: np.ndarray) -> None:
        """Move some variables, with the gradient."""
        problem = self.problem
        self.x[variables] = np.clip(self.x[variables] + step, problem.lower[variables], problem.upper[variables])
        if SPARSE * len(variables) > len(problem.K):
            self.refresh()
        else:
            self.gradient += (step @ problem.K[problem.index[variables]])[problem.index]
            self.n_updates += len(variables)

    def drift(self) -> float:
        """Return how far rounding in the updates of the gradient may have moved the gap."""
        reach = np.maximum(self.x - self.problem.lower, self.problem.upper - self.x).sum() if self.certified else 1.0
        return float(self.n_updates * EPS * np.abs(self.gradient).max() * reach)

    @property
    def certified(self) -> bool:
        """Whether the measure of quality is the duality gap."""
        return self.convex and self.bounded

    def judge(self) -> None:
        """Update objective, multipliers, violation, and the measure of quality with its target."""
        problem, x, gradient = self.problem, self.x, self.gradient
        self.objective = 0.5 * float(x @ (gradient + problem.linear))
        rising = np.where(x < problem.upper, gradient, np.inf)
        falling = np.where(x > problem.lower, gradient, -np.inf)
        slack = 0.0 if problem.slack else np.inf
        self.multiplier = np.zeros(len(problem.offsets) - 1)
        self.violation, self.gap = 0.0, 0.0
        for k, segment in enumerate(problem.segments()):
            least = rising[segment].min(initial=slack)
            most = falling[segment].max(initial=-slack)
            self.violation = max(self.violation, float(most - least))
            if not problem.slack:
                self.multiplier[k] = _middle(most, least)
            if self.certified:
                self.gap += self._gap(segment)
        self.measure = self.gap if self.certified else self.violation
        scale = abs(self.objective) if self.certified else float(np.abs(gradient).max(initial=0.0))
        self.target = self.tol * max(scale, TINY)

    def _gap(self, segment: slice) -> float:
        """Return the duality gap of a group, at the multiplier where it is least."""
        gradient, lower, upper = self.gradient[segment], self.problem.lower[segment], self.problem.upper[segment]
        below, above = self.x[segment] - lower, upper - self.x[segment]
        multiplier = 0.0
        if not self.problem.slack and len(gradient):
            # The slope in b is the range of all smaller g_i less the sum of x - l: zero at a weighted quantile.
            order = np.argsort(gradient)
            position = np.searchsorted(np.cumsum((below + above)[order]), below.sum())
            multiplier = gradient[order[min(position, len(order) - 1)]]
        excess = gradient - multiplier
        return float(np.maximum(excess * below, -excess * above).sum())

    def pair_steps(self, n_steps: int) -> bool:
        """Take up to so many pair steps, fewer if the violation seems small enough; False if none was possible."""
        problem = self.problem
        threshold = 0.5 * self.violation * min(1.0, self.target / self.measure)
        n_taken, convex, bounded = _pair_steps(
            problem.K,
            self.diagonal,
            problem.index,
            problem.offsets,
            problem.lower,
            problem.upper,
            self.x,
            self.gradient,
            problem.slack,
            self.plain,
            threshold,
            n_steps,
        )
        if not bounded:
            raise ValueError("The objective is unbounded below: the box is infinite where K has no curvature.")
        self.convex = self.convex and convex
        self.n_iter += n_taken
        self.n_updates += n_taken
        return bool(n_taken > 0)

    def newton_pays(self, before: float, n_steps: int, patience: float) -> bool:
        """Guess from the last pair steps whether those still to come would cost more than a Newton step."""
        if n_steps == 0 or np.count_nonzero(self.free()) < 2:
            return False
        rate = np.log(max(before / self.measure, 1.0 + 1e-6)) / n_steps
        n_more = np.log(self.measure / self.target) / rate
        return bool(n_more * self.pair_cost() > patience * self.newton_cost())

    def n_violators(self) -> int:
        """Return how many variables a multiplier in the middle would move off their bounds."""
        excess = self.gradient - np.repeat(self.multiplier, np.diff(self.problem.offsets))
        wrong = ((self.x <= self.problem.lower) & (excess < 0)) | ((self.x >= self.problem.upper) & (excess > 0))
        return int(np.count_nonzero(wrong))

    def free(self) -> np.ndarray:
        return (self.x > self.problem.lower) & (self.x < self.problem.upper)

    def newton_cost(self) -> float:
        n_free = np.count_nonzero(self.free())
        return CALL + FACTORISATION * n_free**3 + PASS * n_free * (4 * n_free + len(self.x))

    def pair_cost(self) -> float:
        return PAIR_STEP * len(self.x)

    def newton_step(self) -> None:
        """Minimise over the free variables, the others fixed; those that meet a bound on the way stay there."""
        problem = self.problem
        free = np.flatnonzero(self.free())
        rows = problem.index[free]
        H = problem.K[np.ix_(rows, rows)].astype(float)
        ridge = 10 * np.finfo(problem.K.dtype).eps * np.sqrt(len(free)) * float(self.diagonal[free].max())
        H.flat[:: len(free) + 1] += ridge
        factor, failed = dpotrf(H.T, lower=1, overwrite_a=1)
        if failed:
            self.convex = False
            return
        sums = np.unique(np.searchsorted(problem.offsets, free, side="right"), return_inverse=True)[1]
        x = self.x[free]
        n_stages = MIN_STAGES + len(free) // 4
        self.stages = _walk(
            np.ascontiguousarray(factor),
            factor.T,
            np.full(len(free), -1) if problem.slack else sums,
            self.gradient[free],
            x,
            problem.lower[free],
            problem.upper[free],
            n_stages,
        )
        step = x - self.x[free]
        before = self.gradient.copy()
        self.move(free, step)
        slope, curvature = float(before[free] @ step), float((self.gradient - before)[free] @ step)
        if slope + 0.5 * curvature > 0.0:  # the ridge or rounding spoiled the direction: go as far as it is good
            self.move(free, (max(0.0, -slope / curvature) - 1.0) * step)
        self.n_newton += 1


def _middle(low: float, high: float) -> float:
    """Return the middle of an interval of multipliers; its finite end if it has but one, 0 if none."""
    if np.isfinite(low) and np.isfinite(high):
        return 0.5 * float(low + high)
    return float(low if np.isfinite(low) else high if np.isfinite(high) else 0.0)


@compiled
def _pair_steps(
    K: np.ndarray,
    diagonal: np.ndarray,
    index: np.ndarray,
    offsets: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    x: np.ndarray,
    gradient: np.ndarray,
    slack: bool,
    plain: bool,
    threshold: float,
    n_steps: int,
) -> tuple[int, bool, bool]:
    """Take pair steps until the violation is at the threshold; update ``x`` and ``gradient`` in place.

    Variable -1 is the slack. Returns the number of steps, and whether curvature and step lengths were as they should.
    Simple loops over arrays, one after the other, because they compile to vector instructions; a search for the
    largest entry that tracks its place does not, and took twice as long.
    """
    n = len(x)
    cannot_rise = np.where(x < upper, 0.0, np.inf)
    cannot_fall = np.where(x > lower, 0.0, np.inf)
    flat = EPS * max(np.abs(diagonal).max(), TINY)
    rising, falling, gains, scratch = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    zeros = np.zeros(n, K.dtype)
    row_i, row_j = np.empty(n, K.dtype), np.empty(n, K.dtype)
    convex = True
    for iteration in range(n_steps):
        _directions(gradient, cannot_rise, cannot_fall, rising, falling)
        i = j = -1
        best, excess, violation = 0.0, 0.0, 0.0
        for k in range(len(offsets) - 1):
            group = slice(offsets[k], offsets[k + 1])
            up = _argmax(rising[group], scratch)
            if up >= 0:
                up += offsets[k]
            if up < 0 or (slack and rising[up] < 0.0):
                if not slack:
                    continue
                up = -1
            top = -rising[up] if up >= 0 else 0.0
            curvature = diagonal[up] if up >= 0 else 0.0
            row = _row(K, index, plain, up, zeros, row_i)
            _second_order(falling[group], row[group], diagonal[group], curvature, top, flat, gains[group])
            down = offsets[k] + _argmax(gains[group], scratch)
            gain = gains[down]
            if slack and up >= 0 and top * top > gain * max(curvature, flat):
                down, gain = -1, top * top / max(curvature, flat)
            if gain > best:
                best, i, j = gain, up, down
                excess = (falling[down] if down >= 0 else 0.0) - top
        if excess <= threshold:
            violation = _violation(rising, falling, offsets, slack)
            if violation <= threshold:
                return iteration, convex, True
        if best == 0.0:
            return iteration, convex, True
        cross = K[index[i], index[j]] if i >= 0 and j >= 0 else 0.0
        d_i = diagonal[i] if i >= 0 else 0.0
        d_j = diagonal[j] if j >= 0 else 0.0
        curvature = d_i + d_j - 2.0 * cross
        if curvature < -INDEFINITE * (abs(d_i) + abs(d_j)):
            convex = False
        step = excess / max(curvature, flat)
        if i >= 0:
            step = min(step, upper[i] - x[i])
        if j >= 0:
            step = min(step, x[j] - lower[j])
        if not np.isfinite(step):
            return iteration, convex, False
        moved = False
        for v, signed in ((i, step), (j, -step)):
            if v >= 0:
                old = x[v]
                bound = upper[v] if signed > 0 else lower[v]
                x[v] = bound if signed == bound - old else old + signed  # reach a bound exactly
                moved = moved or x[v] != old
                cannot_rise[v] = 0.0 if x[v] < upper[v] else np.inf
                cannot_fall[v] = 0.0 if x[v] > lower[v] else np.inf
        if not moved:
            return iteration, convex, True
        _add_rows(gradient, _row(K, index, plain, i, zeros, row_i), _row(K, index, plain, j, zeros, row_j), step)
    return n_steps, convex, True


@compiled
def _walk(L, U, sums, gradient, x, lower, upper, n_stages):
    r"""Move ``x`` towards the minimum of its Newton model, with the sums of the groups ``sums`` (-1: none) kept.

    The direction is :math:`-u = -P g`, where :math:`P` is the inverse of :math:`H = L L^\top` on the space of moves that
    keep the constraints. A constraint :math:`e` more takes :math:`w w^\top` off :math:`P`, where
    :math:`w = P e / \sqrt{e^\top P e}`. First the sums are constraints, then each variable that meets its bound.
    ``U`` is the transpose of ``L``. Returns the number of bounds that were met.
    """
    n, n_sums = len(x), sums.max() + 1
    W = np.empty((n_sums + n_stages, n))
    u = gradient.copy()
    _solve_factored(L, U, u)
    inside = np.ones(n)
    for k in range(n_sums + n_stages):
        e = np.zeros(n)
        if k < n_sums:
            e[sums == k] = 1.0
        else:
            direction = -u * inside
            for group in range(n_sums):  # rounding must not add up in the sums
                members = inside * (sums == group)
                direction -= members * ((direction * members).sum() / max(members.sum(), 1.0))
            share, blocker = 1.0, -1
            for v in range(n):
                room = upper[v] - x[v] if direction[v] > 0.0 else x[v] - lower[v]
                if room < share * abs(direction[v]):
                    share, blocker = room / abs(direction[v]), v
            for v in range(n):
                x[v] = min(max(x[v] + share * direction[v], lower[v]), upper[v])
            if blocker < 0:
                return k - n_sums
            u += share * direction  # since P H is the identity on the space of moves
            x[blocker] = upper[blocker] if direction[blocker] > 0.0 else lower[blocker]
            inside[blocker] = 0.0
            e[blocker] = 1.0
        p = e.copy()
        _solve_factored(L, U, p)
        for m in range(k):
            _add(p, W[m], -(W[m] * e).sum() if k < n_sums else -W[m, blocker])
        length = (e * p).sum()
        if length <= 0.0:  # nothing is left to move
            return k - n_sums
        W[k] = p / np.sqrt(length)
        _add(u, p, -(e * u).sum() / length)
    return n_stages


@compiled
def _solve_factored(L, U, b):
    """Solve ``L U b' = b`` in place; by rows, because adding a multiple of a row compiles to vector instructions."""
    n = len(b)
    for k in range(n):
        if b[k] != 0.0:
            b[k] /= U[k, k]
            _add(b[k + 1 :], U[k, k + 1 :], -b[k])
    for k in range(n - 1, -1, -1):
        b[k] /= L[k, k]
        _add(b[:k], L[k, :k], -b[k])


@compiled
def _add(values, row, step):
    for v in range(len(values)):
        values[v] += step * row[v]


@compiled
def _row(K, index, plain, v, zeros, buffer):
    """Return the kernel row of a variable, one entry a variable."""
    if v < 0:
        return zeros
    if plain:
        return K[index[v]]
    row = K[index[v]]
    for r in range(len(buffer)):
        buffer[r] = row[index[r]]
    return buffer


@compiled
def _directions(gradient, cannot_rise, cannot_fall, rising, falling):
    """Return -g where a variable can rise and g where it can fall, minus infinity elsewhere."""
    for v in range(len(gradient)):
        rising[v] = -gradient[v] - cannot_rise[v]
        falling[v] = gradient[v] - cannot_fall[v]


@compiled
def _second_order(falling, row, diagonal, d_i, top, flat, gains):
    """Return twice what the best step of each variable against variable i gains without the box."""
    for v in range(len(gains)):
        excess = falling[v] - top
        excess = excess if excess > 0.0 else 0.0
        curvature = d_i + diagonal[v] - 2.0 * row[v]
        curvature = curvature if curvature > flat else flat
        gains[v] = excess * excess / curvature


@compiled
def _add_rows(gradient, row_i, row_j, step):
    for v in range(len(gradient)):
        gradient[v] += step * (row_i[v] - row_j[v])


@compiled
def _argmax(values, scratch):
    """Return where the largest entry is, -1 if none is above minus infinity; folds the array in eight first."""
    lane = len(values) // 8
    for v in range(lane):
        first = _larger(_larger(values[v], values[v + lane]), _larger(values[v + 2 * lane], values[v + 3 * lane]))
        second = _larger(
            _larger(values[v + 4 * lane], values[v + 5 * lane]), _larger(values[v + 6 * lane], values[v + 7 * lane])
        )
        scratch[v] = _larger(first, second)
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


@compiled
def _larger(a, b):
    return a if a > b else b


@compiled
def _violation(rising, falling, offsets, slack):
    """Return the largest difference of gradients in a group that a pair step could still use."""
    worst = 0.0
    for k in range(len(offsets) - 1):
        floor = 0.0 if slack else -np.inf
        up, down = floor, floor
        for v in range(offsets[k], offsets[k + 1]):
            up = max(up, rising[v])
            down = max(down, falling[v])
        worst = max(worst, up + down)
    return worst

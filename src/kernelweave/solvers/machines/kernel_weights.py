r"""Multiple kernel learning: the weights of kernels with which support vector machines have the widest margin.

.. math::
    \min_w\; J(w) \quad \text{s.t.} \quad w \ge 0,\; \sum_k w_k = 1 \quad \text{or} \quad \|w\|_p \le 1,\; p > 1,

with :math:`J(w)` the optimum of one or of several machines with the kernel :math:`\sum_k w_k K_k / s_k`
(:mod:`.weighted_svm`). With the norm 1 most weights are zero; with larger norms none is, and with the largest all
are equal. Every method stops on the same certificate, a bound on :math:`J(w) - J^*`.

References
----------
A. Rakotomamonjy, F. R. Bach, S. Canu, Y. Grandvalet: SimpleMKL. JMLR 9, 2008.
M. Kloft, U. Brefeld, S. Sonnenburg, A. Zien: lp-norm multiple kernel learning. JMLR 12, 2011.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..course import Course
from ..deadline import NO_DEADLINE, Deadline, OutOfTimeError
from ..margin import DualProblem
from ..result import FitState, NotFiniteError, SolverResult, Status
from .kernel_stack import KernelStack
from .weighted_svm import Value, WeightedSVM
from .weights_gradient import GroupLassoStep, ProjectedGradientStep, ReducedGradientStep, normalise
from .weights_newton import NewtonStep

__all__ = ["METHODS", "WeightsResult", "solve_kernel_weights"]

Step = Callable[[Value], tuple[Value, str]]
STEPS: dict[str, Callable[[WeightedSVM, Callable[[Value], float]], Step]] = {
    "newton": NewtonStep,
    "projected_gradient": ProjectedGradientStep,
    "reduced_gradient": ReducedGradientStep,
    "group_lasso": GroupLassoStep,
}
METHODS = tuple(STEPS)
INNER_TOL_SHARE = 0.1  # of the gap that is left, but not less than of the tolerance: the accuracy of the machines
NEWTON_LEAVES = 0.1  # of the gap, or less: the next machines are made accurate for what will be left
MAX_MACHINE_TOL = 3e-3  # accuracy of the first machines
TOL_REDUCTION = 0.1  # times the accuracy of the machines, where a step improves neither J nor the gap
MIN_TOL_FACTOR = 1e-8  # of the accuracy asked for at first: with stalls at this, rounding is to blame
MAX_STALLS = 10  # in a row ...
MAX_INACCURATE_STALLS = 2  # ... and where machines end before they are as accurate as asked for, which is rounding too
ONE_IN, MIN_SUBSAMPLE_ROWS = 5, 100  # rows, and the least number of them, from which Newton's first weights are learned
SUBSAMPLE_TOL = 1e-2  # relative gap of these weights: rows that are left out matter more than a smaller one
SPREAD = 0.1  # share of equal weights in the start of the group-lasso updates, which cannot leave zero


@dataclass(frozen=True, kw_only=True)
class WeightsResult(SolverResult):
    """Weights of kernels, with the machines that have them.

    Attributes
    ----------
    duals : list of ndarray of shape (n_variables,)
        The signed duals of each machine.
    multipliers : list of float
        The offsets of the decision functions of the machines, with the other sign.
    forms : ndarray of shape (n_kernels,), optional
        The quadratic forms q; None where no weights were learned.
    n_solves : int
        How often each machine was trained on all points.
    products : ndarray of shape (n_points, n_problems), optional
        The products of the weighted sum of kernels with the duals, where they are known.
    """

    duals: list[np.ndarray]
    multipliers: list[float]
    forms: np.ndarray | None = None
    n_solves: int
    products: np.ndarray | None = None


def solve_kernel_weights(
    stack: KernelStack,
    problems: Sequence[DualProblem],
    *,
    ridge: float | np.ndarray = 0.0,
    norm: float = 1.0,
    method: str = "newton",
    start: np.ndarray | None = None,
    start_duals: Sequence[np.ndarray] | None = None,
    start_products: np.ndarray | None = None,
    tol: float = 1e-3,
    max_iter: int = 1000,
    callback: Callable[[FitState], object] | None = None,
    deadline: Deadline = NO_DEADLINE,
    n_threads: int = 1,
) -> WeightsResult:
    r"""Minimise J over the weights of the kernels.

    Parameters
    ----------
    stack : KernelStack
        The kernels, positive semi-definite. For a C that is learned, with the squared hinge, the identity is one.
    problems : sequence of DualProblem
        The machines, which share the weights.
    ridge : float or ndarray of shape (n_points,)
        Added to the diagonal of the combined kernel: 1/C for the squared hinge, whose box is infinite.
    norm : float
        1: the weights sum to 1. Larger, up to infinity: their norm is 1.
    method : str
        One of ``METHODS``: "newton", "projected_gradient", "reduced_gradient", "group_lasso".
        The reduced gradient is for the norm 1 only.
    start : ndarray of shape (n_kernels,), optional
        Weights to start from, brought to norm 1; by default equal ones. Newton's method, where there are many points,
        first learns those of a fifth of them.
    start_duals : sequence of ndarray, optional
        Signed duals of each machine to start from.
    start_products : ndarray of shape (n_points, n_problems), optional
        The products of these with the weighted sum of kernels at ``start``, where they are known.
    tol : float
        Stop when the duality gap is at most ``tol`` times the objective.
    max_iter : int
        Largest number of steps.
    callback : callable, optional
        Called with a `FitState` after each step; a true answer stops.
    deadline : Deadline
        The first machines are trained in any case, or an `OutOfTimeError` says that there was no time for all.
    n_threads : int
        Machines trained at the same time; without influence on the result.

    Returns
    -------
    WeightsResult
        ``x`` holds the weights; the objective is the primal value of the machines, which is J up to their own gap, and
        the certificate bounds how far it is above the optimum. A step that was not of the method asked for says so in
        ``history``.

    Examples
    --------
    >>> y = np.array([-1.0, -1.0, 1.0, 1.0])
    >>> stack = KernelStack([np.outer(y, y), np.eye(4)])
    >>> result = solve_kernel_weights(stack, [DualProblem(-y, np.minimum(0, 9 * y), np.maximum(0, 9 * y))])
    >>> result.x, result.objective
    (array([1., 0.]), 0.5)
    """
    if not norm >= 1.0:
        raise ValueError(f"norm must be at least 1; got {norm!r}. Below 1 the weights have many local optima.")
    machines = WeightedSVM(stack, problems, ridge, norm, deadline, n_threads)
    course = Course[Value](tol, max_iter, callback, patience=MAX_STALLS, deadline=deadline)
    accuracy = _Accuracy(machines, tol, NEWTON_LEAVES if method == "newton" else 1.0)
    step = STEPS[method](machines, accuracy)
    if start is None and start_duals is None and method == "newton":
        start = _learn_from_subsample(machines, max_iter)
    weights = _first_weights(start, len(stack), norm, method)
    products = start_products if start is not None and np.allclose(weights, start, rtol=1e-12, atol=0.0) else None
    value = machines.solve(weights, max(INNER_TOL_SHARE * tol, MAX_MACHINE_TOL), start_duals, products)
    if not np.isfinite(value.objective):
        raise NotFiniteError(
            "J is infinite at the first weights: the box is, and the kernels do not separate the classes. Pass a "
            "ridge, a finite box, or weights to start from that include the identity."
        )
    try:
        value = accuracy.refined(value, 0)
        while not course.ends(value.weights, value.objective, value.gap, value, n_solves=machines.n_solves):
            accuracy.follow(course.n_stalls)
            value, course.step = step(value)
            value = accuracy.refined(value, course.n_stalls)
            course.patience = MAX_STALLS if value.accurate else MAX_INACCURATE_STALLS
    except OutOfTimeError:  # in the midst of a step: what came before it counts
        if not course.history:
            course.ends(value.weights, value.objective, value.gap, value, n_solves=machines.n_solves)
        course.status = Status.MAX_TIME
    best = course.best.point
    return course.result(
        WeightsResult,
        kind="duality gap" if best.proven else "stationarity",
        duals=best.duals,
        multipliers=best.multipliers,
        forms=best.forms,
        n_solves=machines.n_solves,
        products=best.fitted,
    )


def _first_weights(start: np.ndarray | None, n_kernels: int, norm: float, method: str) -> np.ndarray:
    equal = normalise(np.ones(n_kernels), norm)
    if start is None:
        return equal
    if np.shape(start) != (n_kernels,) or not np.all(np.isfinite(start) & (start >= 0)) or not np.any(start):
        raise ValueError(f"start must hold a weight >= 0 for each of the {n_kernels} kernels, not all 0; got {start}.")
    weights = normalise(np.asarray(start, dtype=float), norm)
    return normalise((1 - SPREAD) * weights + SPREAD * equal, norm) if method == "group_lasso" else weights


def _learn_from_subsample(machines: WeightedSVM, max_iter: int) -> np.ndarray | None:
    """Return the weights learned from every so many rows, in the order of the linear terms; None where they are few.

    Each row then stands for several, so the box is wider and the ridge smaller by as much. A box without end is left
    alone: at weights without the identity J could be infinite.
    """
    problems, n_points = machines.problems, machines.stack.n_points
    linear = [np.bincount(p.rows, weights=p.linear, minlength=n_points) for p in problems]
    taking_part = np.bincount(np.concatenate([p.rows for p in problems]), minlength=n_points) > 0
    order = np.lexsort([*linear, ~taking_part])[: taking_part.sum()]
    bounded = all(np.isfinite(p.lower).all() and np.isfinite(p.upper).all() for p in problems)
    rows = np.sort(order[ONE_IN // 2 :: ONE_IN])
    if len(rows) < MIN_SUBSAMPLE_ROWS or not (bounded or np.all(machines.ridge > 0.0)):
        return None
    share = len(rows) / len(order)
    few = [p.at(rows, share) for p in problems]
    if not all(p.total is None or p.lower.sum() <= p.total <= p.upper.sum() for p in few):
        return None
    return solve_kernel_weights(
        machines.stack.at(rows),
        few,
        ridge=share * machines.ridge[rows],
        norm=machines.norm,
        tol=SUBSAMPLE_TOL,
        max_iter=max_iter,
        deadline=machines.deadline,
        n_threads=machines.n_threads,
    ).x


class _Accuracy:
    """How accurate the machines must be: less than the weights, until these no longer improve."""

    def __init__(self, machines: WeightedSVM, tol: float, leaves: float):
        self.machines, self.tol, self.leaves, self.fineness = machines, tol, leaves, 1.0

    def __call__(self, value: Value) -> float:
        """Return the relative accuracy of the machines after a value."""
        return self.fineness * max(
            INNER_TOL_SHARE * self.tol, min(MAX_MACHINE_TOL, INNER_TOL_SHARE * self.leaves * value.relative_gap)
        )

    def follow(self, n_stalls: int) -> None:
        """Ask for more where the last step improved neither J nor the gap."""
        if n_stalls:
            self.fineness = max(MIN_TOL_FACTOR, TOL_REDUCTION * self.fineness)

    def refined(self, value: Value, n_stalls: int) -> Value:
        """Return the value with more accurate machines, if it is their gap that keeps it from the tolerance."""
        target = self.tol * abs(value.objective)
        if value.gap > target >= value.outer_gap / (1.0 - INNER_TOL_SHARE):
            return self.machines.solve(value.weights, self.fineness * INNER_TOL_SHARE * self.tol, start=value.duals)
        if n_stalls > 1:
            return self.machines.solve(value.weights, self(value), start=value.duals)
        return value

r"""The value of support vector machines as a function of the weights of their kernels.

.. math::
    J(w) = \sum_c \max_{x \in B_c}\; -p_c^\top x - \tfrac12 x^\top K(w)\, x , \qquad
    K(w) = \sum_k w_k K_k / s_k + \mathrm{diag}(r) ,

where :math:`B_c` is a box, with or without a fixed sum. :math:`J` is convex in :math:`w`; with :math:`x_c` the
maximisers and :math:`q_k = \sum_c x_c^\top K_k x_c / s_k`, its gradient is :math:`-q/2`. For any feasible :math:`x_c`,

.. math:: J^* \ge \sum_c \Big(-p_c^\top x_c - \tfrac12 x_c^\top \mathrm{diag}(r)\, x_c\Big) - \tfrac12 \|q\|_* ,

as the right-hand side minimises over the weights what :math:`x_c` makes of :math:`J`; :math:`\|q\|_*` is the largest
:math:`q_k` for weights that sum to 1, and the norm dual to that of the weights otherwise. So
:math:`\tfrac12 (\|q\|_* - w^\top q)` plus the duality gap of the machines bounds :math:`J(w) - J^*`.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np

from ..compiled_loops import gather
from ..deadline import NO_DEADLINE, Deadline
from ..margin import DualProblem
from . import smo
from .box_programs import DenseKernel, FeatureKernel, solve_boxes
from .kernel_stack import MAX_DENSE_POINTS, Diagonal, KernelStack
from .proximal_newton import solve_proximal_newton

# An infinite box is closed where it does not bind. With signs as linear term, the optimum of the open box has a sum of
# absolute values of twice its value: if that of the closed box is within the box, no better point is outside.
FIRST_BOX, MAX_BOX = 1e3, 1e15
BOX_GROWTH = 4.0  # times the sum of absolute values: the next box
MAX_BOX_GAP = 0.1  # relative gap in the closed box
MAX_SLACK = 1e6  # times the gap that the machine itself may have
# Duals, multiplier, value and duality gap of a machine, and whether the gap is proven.
Solved: TypeAlias = tuple[np.ndarray, float, float, float, bool]


@dataclass(eq=False)
class Value:
    """What is known at some weights.

    Attributes
    ----------
    machines : WeightedSVM
    weights : ndarray of shape (n_kernels,)
    duals : list of ndarray of shape (n_variables,)
    multipliers : list of float
    dual : float
        Value of the duals: J is at least this.
    inner_gap : float
        J is at most ``dual + inner_gap``.
    proven : bool
        Whether the inner gap is a duality gap; False if the combined kernel is indefinite.
    accurate : bool
        Whether the machines reached the accuracy that was asked for.
    fitted : ndarray of shape (n_points, n_problems), optional
        The products of the combined kernel with the duals of each machine, where they are known at all points.
    """

    machines: WeightedSVM = field(repr=False)
    weights: np.ndarray
    duals: list[np.ndarray]
    multipliers: list[float]
    dual: float
    inner_gap: float
    proven: bool
    accurate: bool
    fitted: np.ndarray | None = None

    @cached_property
    def products(self) -> np.ndarray:
        """The products of each kernel with the duals of each machine, shape (n_kernels, n_points, n_problems).

        They are defined at points with duals that are free, or not zero.
        """
        needed = np.zeros(self.machines.stack.n_points, dtype=bool)
        for p, x in zip(self.machines.problems, self.duals, strict=True):
            needed[p.rows[(x != 0.0) | p.free(x)]] = True
        return self.machines.stack.products(self._by_rows(), at=np.flatnonzero(needed))

    @cached_property
    def forms(self) -> np.ndarray:
        """The quadratic forms q of each kernel, shape (n_kernels,)."""
        by_problem = self.products.transpose(0, 2, 1).reshape(len(self.weights), -1)
        return np.maximum(0.0, by_problem @ self._by_rows().T.ravel())

    @property
    def gradient(self) -> np.ndarray:
        """The gradient of J."""
        return -0.5 * self.forms

    @property
    def objective(self) -> float:
        """An upper bound on J, the primal value of the machines."""
        return self.dual + self.inner_gap

    @cached_property
    def outer_gap(self) -> float:
        """How far the weights can be from the best, were the machines exact."""
        return max(0.0, 0.5 * (_dual_norm(self.forms, self.machines.norm) - float(self.weights @ self.forms)))

    @property
    def gap(self) -> float:
        """Upper bound on ``objective`` less the optimum."""
        return self.outer_gap + self.inner_gap

    @property
    def relative_gap(self) -> float:
        """The gap relative to the objective."""
        return self.gap / max(abs(self.objective), float(np.finfo(float).tiny))

    def _by_rows(self) -> np.ndarray:
        n, problems = self.machines.stack.n_points, self.machines.problems
        sums = [np.bincount(p.rows, weights=x, minlength=n) for p, x in zip(problems, self.duals, strict=True)]
        return np.array(sums).T


class WeightedSVM:
    """Machines that share the weights of their kernels.

    Parameters
    ----------
    stack : KernelStack
    problems : sequence of DualProblem
    ridge : float or ndarray of shape (n_points,)
        Added to the diagonal of the combined kernel.
    norm : float
        The norm of the weights that is at most 1; with 1 they sum to 1.
    deadline : Deadline
    n_threads : int
        Machines trained at the same time.
    """

    def __init__(
        self,
        stack: KernelStack,
        problems: Sequence[DualProblem],
        ridge: float | np.ndarray = 0.0,
        norm: float = 1.0,
        deadline: Deadline = NO_DEADLINE,
        n_threads: int = 1,
    ):
        self.stack, self.problems, self.norm = stack, list(problems), norm
        self.deadline, self.n_threads = deadline, n_threads
        self.ridge = np.broadcast_to(np.asarray(ridge, dtype=float), (stack.n_points,))
        self.n_solves = 0
        # Features of many points need not become a matrix: machines are trained on these, or on that of a few points.
        self.low_rank = stack.is_low_rank and not self.ridge.any()
        self._precision = stack.dtype if all(problem.total is not None for problem in self.problems) else np.float64
        self.are_boxes = all(
            problem.total is None and np.isfinite(problem.lower).all() and np.isfinite(problem.upper).all()
            for problem in self.problems
        )
        self._boxes = np.full(len(self.problems), FIRST_BOX)
        self._slack = np.ones(len(self.problems))  # how much more gap the closed box may show than the machine has

    def kernel(self, weights: np.ndarray) -> np.ndarray:
        """Return the combined kernel; the next call may overwrite it."""
        return self.stack.combine(weights, self.ridge)

    def block(self, weights: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return the combined kernel at some rows, on and above the diagonal at least."""
        if self.low_rank:
            F = self.stack.features(weights, self._precision)[rows].astype(float, copy=False)
            return np.asarray(F @ F.T)
        K = np.empty((len(rows), len(rows)))
        gather(self.kernel(weights), rows, K)
        return K

    def solve(
        self,
        weights: np.ndarray,
        tol: float,
        start: Sequence[np.ndarray] | None = None,
        start_products: np.ndarray | None = None,
    ) -> Value:
        """Return the value at some weights, with a duality gap of the machines of at most ``tol`` times its size.

        Where the box is infinite and nothing else bounds the duals, the gap is infinite. Where the products of the
        combined kernel with the start are known, a machine that starts at its optimum costs next to nothing. When the
        time is over an `OutOfTimeError` ends all but the first machine of the first call.
        """
        K = self.stack.features(weights, self._precision) if self.low_rank else self.kernel(weights)
        diagonal = self.ridge + sum(
            weight / scale * member.values
            for weight, scale, member in zip(weights, self.stack.scales, self.stack.members, strict=True)
            if isinstance(member, Diagonal)
        )
        self.n_solves += 1
        fitted = None
        if self.are_boxes and not diagonal.any():
            solved, fitted = self._solve_together(K, tol, start, start_products)
        else:
            solved = self._solve_apart(K, diagonal, tol, start)
        duals, multipliers, values, gaps, proven = (list(column) for column in zip(*solved, strict=True))
        dual, gap = float(sum(values)), float(sum(gaps))
        accurate = gap <= tol * abs(dual)
        return Value(self, weights, duals, multipliers, dual, gap, all(proven), accurate, fitted)

    def _solve_together(
        self, K: np.ndarray, tol: float, start: Sequence[np.ndarray] | None, start_products: np.ndarray | None
    ) -> tuple[list[Solved], np.ndarray | None]:
        """Solve machines without equality; ``K`` is the combined kernel or its features.

        Returns the products of the combined kernel with the duals, too, where the machines tell them at all points.
        """
        results = solve_boxes(
            self.stack.made_of_features(K, FeatureKernel) if self.low_rank else DenseKernel(K),
            self.problems,
            starts=start,
            products=start_products,
            tol=tol,
            deadline=self.deadline,
            n_threads=self.n_threads,
        )
        solved = [(r.x, 0.0, -r.objective, r.certificate.gap, r.certificate.kind == "duality gap") for r in results]
        everywhere = all(np.bincount(p.rows, minlength=self.stack.n_points).all() for p in self.problems)
        if not everywhere or not all(proven for *_, proven in solved):
            return solved, None
        fitted = np.empty((self.stack.n_points, len(self.problems)))
        for c, (problem, result) in enumerate(zip(self.problems, results, strict=True)):
            fitted[problem.rows, c] = result.gradient - problem.linear
        return solved, fitted

    def _solve_apart(
        self, K: np.ndarray, diagonal: np.ndarray, tol: float, start: Sequence[np.ndarray] | None
    ) -> list[Solved]:
        """Solve one machine after the other, or several at the same time."""
        is_first = self.n_solves == 1

        def solve_one(c: int) -> Solved:
            if c > 0 or not is_first:
                self.deadline.check(f"all of {len(self.problems)} machines were trained")
            return self._solve_one(c, K, diagonal, tol, None if start is None else start[c])

        if self.n_threads == 1 or len(self.problems) == 1:
            return [solve_one(c) for c in range(len(self.problems))]
        with ThreadPoolExecutor(min(self.n_threads, len(self.problems))) as threads:
            return list(threads.map(solve_one, range(len(self.problems))))

    def _train(
        self,
        K: np.ndarray,
        problem: DualProblem,
        lower: np.ndarray,
        upper: np.ndarray,
        start: np.ndarray | None,
        tol: float,
    ) -> smo.MachineResult:
        """Train a machine in a box on the combined kernel, or on its features."""
        if not self.low_rank:
            return smo.solve(
                K, problem.linear, lower, upper, total=problem.total, index=problem.index, start=start, tol=tol
            )
        rows, index = np.unique(problem.rows, return_inverse=True)
        if problem.total is not None and len(rows) > MAX_DENSE_POINTS:
            return solve_proximal_newton(
                K, problem.linear, lower, upper, total=problem.total, index=problem.index, start=start, tol=tol
            )
        F = K[rows].astype(float, copy=False)
        return smo.solve(F @ F.T, problem.linear, lower, upper, total=problem.total, index=index, start=start, tol=tol)

    def _solve_one(self, c: int, K: np.ndarray, diagonal: np.ndarray, tol: float, start: np.ndarray | None) -> Solved:
        """Return duals, multiplier, value, duality gap of a machine, and whether it is proven."""
        problem = self.problems[c]
        infinite = not (np.isfinite(problem.lower).all() and np.isfinite(problem.upper).all())
        while True:
            box = self._boxes[c] if infinite else np.inf
            lower, upper = np.maximum(problem.lower, -box), np.minimum(problem.upper, box)
            asked = min(MAX_BOX_GAP, tol * self._slack[c])
            result = self._train(K, problem, lower, upper, start, asked)
            start, value = result.x, -result.objective
            reach = float(np.abs(result.x).sum())
            if reach > box and box < MAX_BOX:
                self._boxes[c] = BOX_GROWTH * reach
                continue
            if reach > box:
                gap = np.inf
            elif self.low_rank:
                gap = result.certificate.gap
            else:
                gap = _ridge_gap(result, lower, upper, diagonal[problem.rows])
            if gap > tol * abs(value) and self._slack[c] > 1.0:
                self._slack[c] = max(1.0, 0.1 * self._slack[c])
                continue
            if gap < 0.01 * tol * abs(value) and diagonal.any():
                self._slack[c] = min(10.0 * self._slack[c], MAX_SLACK)
            multiplier = float(result.multiplier)
            return result.x, multiplier, value, gap, result.certificate.kind == "duality gap"


def _dual_norm(forms: np.ndarray, norm: float) -> float:
    """Return the largest value of ``w'forms`` over all weights of norm 1."""
    largest = float(forms.max())
    if norm == 1.0 or largest == 0.0:
        return largest
    conjugate = 1.0 if np.isinf(norm) else norm / (norm - 1.0)
    return largest * float(np.linalg.norm(forms / largest, conjugate))  # powers of large numbers overflow


def _ridge_gap(result: smo.MachineResult, lower: np.ndarray, upper: np.ndarray, ridge: np.ndarray) -> float:
    r"""Return the duality gap, at the multiplier found, of a machine whose kernel is ``ridge`` on top of another.

    It is :math:`\sum_i \max_d\; (b - g_i)\, d - \tfrac12 r_i d^2` over the moves :math:`d` that the box allows: the
    loss is that of the squared hinge and its kin, and far less than without ridge if the box is wide.
    """
    slope = result.multiplier - result.gradient
    with np.errstate(divide="ignore", invalid="ignore"):
        move = np.where(ridge > 0.0, slope / ridge, np.copysign(np.inf, slope))
    move = np.clip(move, lower - result.x, upper - result.x)
    return float(np.maximum(0.0, slope * move - 0.5 * ridge * move**2).sum())

r"""Transductive support vector machines: unlabelled points push the boundary away, whichever side they are on.

.. math::
    \min_{f, w}\; \tfrac12 \sum_k \frac{s_k}{w_k} \|f_k\|^2 + \sum_{i \in L} C_i H_1(y_i g(x_i))
    + \sum_{i \in U} C^*_i \big(R_s(g(x_i)) + R_s(-g(x_i))\big)
    \quad \text{s.t.} \quad \frac{\sum_U C^*_i g(x_i)}{\sum_U C^*_i} = r ,

with :math:`g = \sum_k f_k + b`, the hinge :math:`H_s(z) = \max(0, s - z)`, the ramp :math:`R_s = H_1 - H_s`, and
weights :math:`w` of norm 1. The hinges that are subtracted are replaced by their tangents (:mod:`.dc`): with
:math:`\nu = -1` for a copy :math:`(i, Y)` of an unlabelled point that has :math:`Y g(x_i) < s`, else 0, what is left is
a machine in which each unlabelled point occurs with both signs. Its signed duals are
:math:`x = Y\alpha + C^* \nu Y`, :math:`0 \le \alpha \le C^*`: the tangents move the box. The copies share a kernel row.

The balance is eliminated: in kernels centred at the weighted mean of the unlabelled points,
:math:`f` has mean zero there, so :math:`b = r`, and what is left is a box, with linear term :math:`Y - r` instead of
:math:`Y` and no equality. In terms of :math:`x` the dual is
:math:`\max_x\; \sum (Y - r) x - \tfrac12 x^\top K x - \sum C^* \nu`; together with what the tangents leave of
:math:`-J_2`, a constant :math:`(1 - s) C^*` for each copy with :math:`\nu = -1` makes it the value of the problem.

References
----------
R. Collobert, F. Sinz, J. Weston, L. Bottou: Large scale transductive SVMs. JMLR 7, 2006.
X. Tian, G. Gasso, S. Canu: A multi-kernel framework for inductive semi-supervised learning. ESANN 2011.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from ..deadline import NO_DEADLINE, Deadline
from ..margin import DualProblem
from ..result import Certificate, FitState, SolverResult, Status
from .dc import DescentResult, descend
from .kernel_stack import KernelStack
from .kernel_weights import WeightsResult

COPIES = np.array([[1.0], [-1.0]])  # the signs of an unlabelled point
# Stages before the last only lead to a start: on 13 sets errors are the same as with tol, in four fifths of the time.
EARLY_TOLERANCE = 3.0  # times tol
# Times tol: the accuracy of the first machines of a stage, relative to their duals; the gap tells that of others, which
# is no larger. Where all machines are accurate, so is the way to a point, which with others depends on rounding.
FIRST_TOL = 100.0
TINY = float(np.finfo(float).tiny)
BOUND_ROUNDING = 1e-9  # of a bound: duals as close to it are at it
Train = Callable[
    [Sequence[DualProblem], np.ndarray | None, "list[np.ndarray] | None", np.ndarray | None, float], WeightsResult
]


@dataclass(frozen=True, eq=False)
class TransductiveMachine:
    """One machine: what it knows of the points, and what errors cost.

    Attributes
    ----------
    labeled, unlabeled : ndarray of shape (n_labeled,) and (n_unlabeled,)
        Rows of the kernels.
    signs, cost : ndarray of shape (n_labeled,)
        Labels, +1 or -1, and what a violation of their margins costs.
    cost_unlabeled : ndarray of shape (n_unlabeled,)
    mean : float or None
        The mean output on the unlabelled points; the kernels must be centred there. None: the offset is free.
    s : float
        Where the ramp ends, from 0 to less than 1.
    """

    labeled: np.ndarray
    unlabeled: np.ndarray
    signs: np.ndarray
    cost: np.ndarray
    cost_unlabeled: np.ndarray
    mean: float | None
    s: float

    def dual(self, slopes: np.ndarray | None = None) -> DualProblem:
        """Return the dual of the convex problem at some slopes of shape (2, n_unlabeled); None: labelled points only.

        The copies of unlabelled points with sign +1 come after the labelled points, then those with sign -1.
        """
        if not self.cost_unlabeled.any():  # the copies could not move
            slopes = None
        labels = self.signs if slopes is None else np.concatenate([self.signs, np.repeat([1.0, -1.0], slopes.shape[1])])
        reach, moved = self.signs * self.cost, np.zeros(len(self.signs))
        rows = self.labeled
        if slopes is not None:
            reach = np.concatenate([reach, (COPIES * self.cost_unlabeled).ravel()])
            moved = np.concatenate([moved, (COPIES * self.cost_unlabeled * slopes).ravel()])
            rows = np.concatenate([rows, self.unlabeled, self.unlabeled])
        return DualProblem(
            linear=(self.mean or 0.0) - labels,
            lower=np.minimum(0.0, reach) + moved,
            upper=np.maximum(0.0, reach) + moved,
            total=0.0 if self.mean is None else None,
            index=rows,
        )

    def slopes(self, values: np.ndarray) -> np.ndarray:
        """Return the slopes of the copies of unlabelled points, shape (2, n_unlabeled), at outputs for all rows."""
        return np.where(COPIES * values[self.unlabeled] < self.s, -1.0, 0.0)

    def stretched(self, values: np.ndarray) -> np.ndarray | None:
        """Return outputs that differ enough for points to have a say on both sides; None where they do.

        While outputs differ from their mean by less than s, ramps are flat or all points are on one side, and the
        descent would end where it starts. Differences are then taken relative to their median.
        """
        if not self.cost_unlabeled.any():
            return None
        mean = float(np.average(values[self.unlabeled], weights=self.cost_unlabeled))
        sizes = np.abs(values[self.unlabeled] - mean)
        if sizes.max() >= self.s or not sizes.any():
            return None
        return mean + (values - mean) / (np.median(sizes) or sizes.max())

    def loss(self, values: np.ndarray) -> float:
        """Return what the outputs at all rows cost."""
        errors = np.maximum(0.0, 1.0 - self.signs * values[self.labeled])
        ramps = np.clip(1.0 - COPIES * values[self.unlabeled], 0.0, 1.0 - self.s)
        return float(self.cost @ errors + (ramps @ self.cost_unlabeled).sum())

    def constant(self, slopes: np.ndarray) -> float:
        """Return what is to be added to the value of the dual."""
        return float((1.0 - self.s) * ((slopes < 0.0) @ self.cost_unlabeled).sum())


@dataclass(frozen=True, eq=False)
class TransductivePoint:
    """Machines that share the weights of their kernels, and what they cost together.

    Attributes
    ----------
    weights : ndarray of shape (n_kernels,)
    duals : list of ndarray
        Signed duals of each machine, for the variables of its dual.
    offsets : list of float
    by_rows : ndarray of shape (n_points, n_machines)
        The signed duals summed over the copies of each point.
    values : ndarray of shape (n_points, n_machines)
        Outputs.
    half_norm : float
        Half the squared norms of all machines.
    objective : float
    slopes : ndarray of shape (n_machines, 2, n_unlabeled)
    """

    weights: np.ndarray
    duals: list[np.ndarray]
    offsets: list[float]
    by_rows: np.ndarray
    values: np.ndarray
    half_norm: float
    objective: float = np.inf
    slopes: np.ndarray = field(default_factory=lambda: np.empty(0))


@dataclass(frozen=True, kw_only=True)
class TransductionResult(SolverResult):
    """Where the machines ended.

    Attributes
    ----------
    point : TransductivePoint
    n_solves : int
        How often each machine was trained.
    """

    point: TransductivePoint
    n_solves: int


def solve_transduction(
    stack: KernelStack,
    machines: Sequence[TransductiveMachine],
    train: Train,
    *,
    stages: Sequence[float] = (1.0,),
    start: Sequence[np.ndarray] | None = None,
    tol: float = 1e-3,
    max_iter: int = 100,
    callback: Callable[[FitState], object] | None = None,
    deadline: Deadline = NO_DEADLINE,
) -> TransductionResult:
    """Find a stationary point by convex problems, from the machines that labelled points alone give.

    Parameters
    ----------
    stack : KernelStack
        Centred at the unlabelled points where machines have a mean.
    machines : sequence of TransductiveMachine
        They share the weights.
    train : callable
        ``train(problems, weights, duals, products, tol)`` solves the convex machines, started at weights and duals or
        at None, accurately enough for a descent to ``tol``: a `WeightsResult` as that of
        :func:`.solve_kernel_weights`. The products are those of the weighted kernels with the duals.
    stages : sequence of float
        The unlabelled points cost these shares of what they cost, one after the other; the last is 1.
    start : sequence of ndarray of shape (n_labeled,), optional
        What violations of labelled margins cost each machine at the start, in place of its cost.
    tol : float
        Relative accuracy of the stationary point; three times as much in the stages before the last.
    max_iter : int
        Largest number of convex problems in a stage.
    callback : callable, optional
        Called with a `FitState` after each step; a true answer stops.
    deadline : Deadline
        When it is over, the last point is returned; ``train`` may raise an `OutOfTimeError`.

    Returns
    -------
    TransductionResult
        ``x`` holds the weights. Records of the history name their stage.
    """
    descent = _Descent(stack, machines, train, stages, tol, max_iter, callback, deadline)
    return descent.run(
        machines if start is None else [replace(m, cost=c) for m, c in zip(machines, start, strict=True)]
    )


class _Descent:
    """Machines on their way down, through one stage after the other.

    Parameters are those of :func:`solve_transduction`.

    Attributes
    ----------
    stage : float
        The share of their cost that unlabelled points have now.
    staged : list of TransductiveMachine
        The machines with these costs.
    tried, ahead : TransductivePoint
        The last point whose convex problem was solved, and from where to solve it again.
    stopped : Status or None
        Why the descent is to end before it is finished.
    """

    stage: float
    staged: list[TransductiveMachine]
    tried: TransductivePoint
    ahead: TransductivePoint

    def __init__(
        self,
        stack: KernelStack,
        machines: Sequence[TransductiveMachine],
        train: Train,
        stages: Sequence[float],
        tol: float,
        max_iter: int,
        callback: Callable[[FitState], object] | None,
        deadline: Deadline,
    ):
        self.stack, self.machines, self.train = stack, machines, train
        self.tol, self.max_iter, self.callback, self.deadline = tol, max_iter, callback, deadline
        self.convex = not any(machine.cost_unlabeled.any() for machine in machines)
        self.stages = stages[-1:] if self.convex else stages
        self.begun, self.n_solves = time.perf_counter(), 0
        self.stopped: Status | None = None
        self.history: list[dict[str, Any]] = []

    def run(self, first: Sequence[TransductiveMachine]) -> TransductionResult:
        """Descend from the machines that labelled points alone give, at the costs of ``first``."""
        duals = [machine.dual() for machine in first]
        _, point = self.solve(duals, None, None, None, self.tol if self.convex else FIRST_TOL * self.tol)
        reached = self.stages[0]
        for stage in self.stages:
            result = self.descend(point, stage, reached)
            point, reached = result.point, stage
            if self.stopped is not None:
                break
        status, certificate = result.status, result.certificate
        if self.stopped is not None and status is Status.CALLBACK:
            status = self.stopped
        if self.stopped is not None and (self.stage != self.stages[-1] or not np.isfinite(point.objective)):
            # nothing is known about the problem of the last stage
            point, status = _add_objective(self.machines, point), self.stopped
            certificate = Certificate(np.inf, point.objective, "stationarity")
        certificate = replace(certificate, kind="duality gap") if self.convex else certificate
        return TransductionResult(
            x=point.weights,
            objective=point.objective,
            certificate=certificate,
            status=status,
            n_iter=len(self.history),
            history=tuple(self.history),
            point=point,
            n_solves=self.n_solves,
        )

    def descend(self, point: TransductivePoint, stage: float, reached: float) -> DescentResult[TransductivePoint]:
        """Descend at one stage, from a point that was found at another."""
        self.stage = stage
        self.staged = [replace(machine, cost_unlabeled=stage * machine.cost_unlabeled) for machine in self.machines]
        stretched = any(machine.stretched(point.values[:, c]) is not None for c, machine in enumerate(self.staged))
        self.tried = begin = _add_objective(self.staged, point, stretch=True)
        self.ahead = _raise_bounds(self.stack, self.staged, begin, stage / reached)
        tol = self.tol if stage == self.stages[-1] else EARLY_TOLERANCE * self.tol
        report = partial(self.report, stretched=stretched, tol=tol)
        result = descend(self.step, begin, tol=tol, max_iter=self.max_iter, exact=self.convex, on_step=report)
        self.history += result.history
        if result.status is Status.MAX_TIME:
            self.stopped = Status.MAX_TIME
        return result

    def step(self, point: TransductivePoint, accuracy: float | None) -> tuple[TransductivePoint, float]:
        """Minimise the convex problem of a point; return where, and a lower bound on the minimum."""
        pairs = list(zip(self.staged, point.slopes, strict=True))
        constant = sum(machine.constant(slopes) for machine, slopes in pairs)
        problems = [machine.dual(slopes) for machine, slopes in pairs]
        begin = self.ahead if self.tried is point else point
        # copies of unlabelled points that the point does not have start at zero
        duals = [np.pad(x, (0, len(p.linear) - len(x))) for x, p in zip(begin.duals, problems, strict=True)]
        asked = _relate(accuracy, point.objective, constant, FIRST_TOL * self.tol)
        trained, following = self.solve(problems, begin.weights, duals, begin.values - begin.offsets, asked)
        self.tried, self.ahead = point, following
        return _add_objective(self.staged, following), trained.objective - trained.certificate.gap + constant

    def solve(
        self, problems: list[DualProblem], weights: Any, duals: Any, products: Any, accuracy: float
    ) -> tuple[WeightsResult, TransductivePoint]:
        """Train the machines once."""
        trained = self.train(problems, weights, duals, products, accuracy)
        self.n_solves += trained.n_solves
        return trained, _make_point(self.stack, self.machines, problems, trained)

    def report(self, record: dict[str, Any], stretched: bool, tol: float) -> bool:
        """Add to a record of the history what is known here, and pass it on; tell whether to stop."""
        record |= {"stage": self.stage, "n_solves": self.n_solves, "seconds": time.perf_counter() - self.begun}
        record["stretched"] = stretched and record["iteration"] == 1
        max_steps = len(self.stages) * self.max_iter
        if self.callback is not None and bool(self.callback(_make_state(record, tol, max_steps))):
            self.stopped = Status.CALLBACK
        elif self.deadline.is_over:
            self.stopped = Status.MAX_TIME
        return self.stopped is not None


def _raise_bounds(
    stack: KernelStack, machines: Sequence[TransductiveMachine], point: TransductivePoint, factor: float
) -> TransductivePoint:
    """Return duals to start from where unlabelled points cost more than before: those at a bound stay there.

    Most variables that are at a bound will be so at the next optimum. Were they left where they were, inside of the new
    box, the next machine would have to find out anew.
    """
    if factor == 1.0:
        return point
    duals, by_rows = [], np.empty_like(point.by_rows)
    for c, (machine, x) in enumerate(zip(machines, point.duals, strict=True)):
        x, n_labeled = x.copy(), len(machine.signs)
        bounds = np.tile(machine.cost_unlabeled / factor, 2)[: len(x) - n_labeled]  # none before the first step
        x[n_labeled:][np.abs(np.abs(x[n_labeled:]) - bounds) <= BOUND_ROUNDING * bounds] *= factor
        duals.append(x)
        rows = machine.dual(point.slopes[c]).rows[: len(x)]
        by_rows[:, c] = np.bincount(rows, weights=x, minlength=stack.n_points)
    values = stack.combined_product(point.weights, by_rows) + point.offsets
    return replace(point, duals=duals, by_rows=by_rows, values=values)


def _relate(accuracy: float | None, objective: float, constant: float, largest: float) -> float:
    """Return how accurate machines have to be, relative to their duals, for an accuracy relative to the objective.

    Most of the objective is the constant where most points are far from the boundary, as with many classes.
    """
    if accuracy is None or not np.isfinite(objective):
        return largest
    return min(largest, accuracy * abs(objective) / max(abs(objective - constant), TINY))


def _make_state(record: dict[str, Any], tol: float, max_steps: int) -> FitState:
    """Return what a callback sees of a record of the history."""
    return FitState(
        iteration=record["iteration"],
        objective=record["objective"],
        bound=record["objective"] - record["gap"],
        gap=record["gap"],
        target=tol,
        seconds=record["seconds"],
        phase=f"annealing at {record['stage']:.3g}",
        max_steps=max_steps,
        details={name: record[name] for name in ("stage", "n_changed", "n_solves", "stretched")},
    )


def _make_point(
    stack: KernelStack, machines: Sequence[TransductiveMachine], problems: Sequence[DualProblem], trained: WeightsResult
) -> TransductivePoint:
    """Return the point of trained machines, without its objective."""
    duals, multipliers = trained.duals, trained.multipliers
    sums = [np.bincount(p.rows, weights=x, minlength=stack.n_points) for p, x in zip(problems, duals, strict=True)]
    by_rows = np.column_stack(sums)
    values = stack.combined_product(trained.x, by_rows) if trained.products is None else trained.products
    half_norm = 0.5 * float(np.vdot(by_rows, values))
    offsets = [
        -multiplier if machine.mean is None else machine.mean
        for machine, multiplier in zip(machines, multipliers, strict=True)
    ]
    return TransductivePoint(trained.x, duals, offsets, by_rows, values + offsets, half_norm)


def _add_objective(
    machines: Sequence[TransductiveMachine], point: TransductivePoint, stretch: bool = False
) -> TransductivePoint:
    """Return the point with its objective and slopes; those of stretched outputs, and no objective, if need be."""
    objective, slopes = point.half_norm, []
    for c, machine in enumerate(machines):
        values = point.values[:, c]
        stretched = machine.stretched(values) if stretch else None
        objective += machine.loss(values) if stretched is None else np.inf
        slopes.append(machine.slopes(values if stretched is None else stretched))
    return replace(point, objective=objective, slopes=np.array(slopes))

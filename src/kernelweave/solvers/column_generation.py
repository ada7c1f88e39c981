r"""Column generation: solve on few columns, price all, add the worst, prove.

Given a master problem over a working set :math:`W`, its duals give every column :math:`j` a score
:math:`\sum_i \beta_i y_i K_{ij}`. A column whose score violates its dual constraint can improve the model; when none
does, the restricted solution is optimal for all columns (SSMK, Proposition 1). Each full scan also turns the duals
into a lower bound on the optimum, so every round knows how far from optimal it is at most.

Several problems (the one-vs-rest problems of a multi-class fit) go through the loop together: a scan reads every kernel
block once and prices it for all problems that are still open.

Adding the ``batch`` worst columns a round, rather than one as in the papers, trades a few useless columns for many
fewer rounds; columns that stay useless are dropped again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from .highs import SolverFailedError
from .masters import MasterSolution
from .result import Certificate, SolverResult, Status

BATCH = 50  # measured: 20 to 100 are within 20 % of each other
SATISFIED = 1e-10  # a column violated by less is satisfied up to rounding

Pricing = Callable[[np.ndarray], Iterable[tuple[slice, np.ndarray]]]
Fetch = Callable[[np.ndarray], np.ndarray]


class Master(Protocol):
    """What the loop asks of a restricted problem."""

    columns: np.ndarray

    def add_columns(self, columns: np.ndarray, K: np.ndarray) -> None: ...

    def drop_idle(self) -> int: ...

    def solve(self) -> MasterSolution: ...

    def violations(self, scores: np.ndarray) -> np.ndarray: ...

    def bound(self, solution: MasterSolution, worst: float) -> float: ...


@dataclass(frozen=True)
class RoundState:
    """What a callback sees after each round; sums are over the problems that are solved together.

    Attributes
    ----------
    iteration : int
    objective, bound, gap : float
        Value reached, proven lower bound, and their difference.
    relative_gap : float
        The gap relative to the objective.
    target : float
        The relative gap at which the fit stops.
    tau : float
        Largest score of a column; optimal at 1.
    n_columns : int
        Columns in the working sets.
    n_open : int
        Problems not yet solved to the tolerance.
    seconds : float
        Time since the start.
    """

    iteration: int
    objective: float
    bound: float
    gap: float
    relative_gap: float
    target: float
    tau: float
    n_columns: int
    n_open: int
    seconds: float


@dataclass
class _Problem:
    """The course of one problem through the loop."""

    master: Master
    solution: MasterSolution | None = None
    columns: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    bound: float = 0.0
    status: Status | None = None
    history: list[dict[str, Any]] = field(default_factory=list)
    candidates: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    worst: float = 0.0

    @property
    def gap(self) -> float:
        return max(0.0, _solved(self).objective - self.bound)


def generate_columns(
    masters: Sequence[Master],
    price: Pricing,
    fetch: Fetch,
    *,
    tol: float = 1e-6,
    max_columns: int | None = None,
    max_time: float | None = None,
    batch: int = BATCH,
    n_threads: int = 1,
    callback: Callable[[RoundState], object] | None = None,
) -> list[SolverResult]:
    """Solve the master problems over all columns that ``price`` walks.

    Parameters
    ----------
    masters : sequence of Master
        One for each problem, with empty working sets.
    price : callable
        ``price(V)`` with ``V`` of shape (n_points, n_open) walks all columns once and yields
        ``(columns, scores)``: a slice of flat column numbers, and their scores for each column of ``V``.
    fetch : callable
        ``fetch(columns)`` returns these columns, shape (n_points, n_columns).
    tol : float
        Stop when the duality gap is at most ``tol`` times the objective.
    max_columns : int, optional
        Largest working set of each problem.
    max_time : float, optional
        Seconds; looked at between rounds.
    batch : int
        Columns added a round.
    n_threads : int
        Masters solved at the same time. Has no influence on the result.
    callback : callable, optional
        Called after each round; a true answer stops.

    Returns
    -------
    list of SolverResult
        ``x`` holds the coefficients of the working set ``extra["columns"]``; ``extra["intercept"]`` the offset.
    """
    problems = [_Problem(master) for master in masters]
    started = time.perf_counter()
    iteration = 0
    with ThreadPoolExecutor(max(1, min(n_threads, len(masters)))) as pool:
        while open_ := [problem for problem in problems if problem.status is None]:
            iteration += 1
            for problem, solution in zip(open_, pool.map(_solve, open_), strict=True):
                if solution is None:
                    problem.status = Status.SOLVER_FAILED
                else:
                    problem.solution, problem.columns = solution, problem.master.columns
            open_ = [problem for problem in open_ if problem.status is None]
            if not open_:
                break
            _price(open_, price, batch, max(SATISFIED, 0.1 * tol))
            seconds = time.perf_counter() - started
            for problem in open_:
                _judge(problem, iteration, seconds, tol, max_columns, max_time)
            if callback is not None and callback(_state(problems, iteration, seconds, tol)):
                for problem in open_:
                    problem.status = problem.status or Status.CALLBACK
            _add_candidates([problem for problem in open_ if problem.status is None], fetch, max_columns)
    return [_result(problem) for problem in problems]


def _solve(problem: _Problem) -> MasterSolution | None:
    """Solve a restricted problem; None where the solver fails after it has solved it with fewer columns."""
    try:
        return problem.master.solve()
    except SolverFailedError:
        if problem.solution is None:
            raise
        return None


def _price(problems: Sequence[_Problem], price: Pricing, batch: int, threshold: float) -> None:
    """Scan all columns once; keep each problem's worst violators and its worst violation."""
    V = np.column_stack([_solved(problem).signed_dual for problem in problems])
    kept: list[list[tuple[np.ndarray, np.ndarray]]] = [[] for _ in problems]
    worst = np.full(len(problems), -np.inf)
    for columns, scores in price(V):
        for k, problem in enumerate(problems):
            violations = problem.master.violations(scores[:, k])
            worst[k] = max(worst[k], violations.max())
            working = problem.master.columns
            here = working[(working >= columns.start) & (working < columns.stop)]
            violations[here - columns.start] = -np.inf  # counts for the bound, cannot be added again
            kept[k].append(_largest(np.arange(columns.start, columns.stop), violations, batch, threshold))
    for problem, found, worst_violation in zip(problems, kept, worst, strict=True):
        numbers, violations = (np.concatenate(part) for part in zip(*found, strict=True))
        problem.candidates, _ = _largest(numbers, violations, batch, threshold)
        problem.worst = float(worst_violation)


def _largest(
    numbers: np.ndarray, violations: np.ndarray, batch: int, threshold: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the ``batch`` columns with the largest violations above the threshold, the worst first."""
    if len(violations) > batch:
        top = np.argpartition(violations, -batch)[-batch:]
        numbers, violations = numbers[top], violations[top]
    order = np.lexsort((numbers, -violations))
    order = order[violations[order] > threshold]
    return numbers[order], violations[order]


def _judge(
    problem: _Problem,
    iteration: int,
    seconds: float,
    tol: float,
    max_columns: int | None,
    max_time: float | None,
) -> None:
    """Update the bound, note the round, and decide whether the problem is done."""
    solution = _solved(problem)
    problem.bound = max(problem.bound, problem.master.bound(solution, problem.worst))
    n_columns = len(problem.master.columns)
    problem.history.append(
        {
            "iteration": iteration,
            "objective": solution.objective,
            "bound": problem.bound,
            "gap": problem.gap,
            "tau": 1.0 + problem.worst,
            "n_columns": n_columns,
            "n_added": 0,
            "n_dropped": 0,
            "seconds": seconds,
        }
    )
    if problem.gap <= tol * abs(solution.objective):
        problem.status = Status.CONVERGED
    elif len(problem.candidates) == 0:
        problem.status = Status.PRECISION
    elif max_columns is not None and n_columns >= max_columns:
        problem.status = Status.MAX_COLUMNS
    elif max_time is not None and seconds >= max_time:
        problem.status = Status.MAX_TIME


def _add_candidates(problems: Sequence[_Problem], fetch: Fetch, max_columns: int | None) -> None:
    """Drop idle columns, fetch those that any problem wants once, and hand them out."""
    for problem in problems:
        problem.history[-1]["n_dropped"] = problem.master.drop_idle()
        if max_columns is not None:
            room = max_columns - len(problem.master.columns)
            problem.candidates = problem.candidates[:room]
        problem.history[-1]["n_added"] = len(problem.candidates)
    if not problems:
        return
    wanted = np.unique(np.concatenate([problem.candidates for problem in problems]))
    K = fetch(wanted)
    for problem in problems:
        chosen = np.sort(problem.candidates)
        problem.master.add_columns(chosen, K[:, np.searchsorted(wanted, chosen)])


def _state(problems: Sequence[_Problem], iteration: int, seconds: float, tol: float) -> RoundState:
    objective = sum(_solved(problem).objective for problem in problems)
    gap = sum(problem.gap for problem in problems)
    return RoundState(
        iteration=iteration,
        objective=objective,
        bound=objective - gap,
        gap=gap,
        relative_gap=gap / max(abs(objective), np.finfo(float).tiny),
        target=tol,
        tau=1.0 + max(problem.worst for problem in problems),
        n_columns=sum(len(problem.master.columns) for problem in problems),
        n_open=sum(problem.status is None for problem in problems),
        seconds=seconds,
    )


def _solved(problem: _Problem) -> MasterSolution:
    assert problem.solution is not None  # every open problem is solved at the top of a round
    return problem.solution


def _result(problem: _Problem) -> SolverResult:
    solution = _solved(problem)
    assert problem.status is not None
    return SolverResult(
        x=solution.coef,
        objective=solution.objective,
        certificate=Certificate(problem.gap, solution.objective),
        status=problem.status,
        n_iter=len(problem.history),
        history=tuple(problem.history),
        extra={
            "columns": problem.columns,
            "intercept": solution.intercept,
            "signed_dual": solution.signed_dual,
        },
    )

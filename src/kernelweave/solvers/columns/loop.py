r"""Column generation: solve on few columns, price all, add the worst, prove.

Given a master problem over a working set :math:`W`, its duals give every column :math:`j` a score
:math:`\sum_i \beta_i y_i K_{ij}`. A column whose score violates its dual constraint can improve the model; when none
does, the restricted solution is optimal for all columns (SSMK, Proposition 1; CG-Boost, Theorem 3.1). Each full scan
also turns the duals into a lower bound on the optimum, so every round knows how far from optimal it is at most.

Several problems (the one-vs-rest problems of a multi-class fit) go through the loop together: a scan reads every kernel
block once and prices it for all problems that are still open.

Adding several of the worst columns a round, rather than one as in the papers, trades a few useless columns for many
fewer rounds; columns that stay useless are dropped again.

Columns may be priced in strata (CG-Boost, section 5): a round looks no further once it has found enough columns that
are nearly as bad as the worst of the last full scan. Where scans are dear, a pool keeps the values of the worst columns
of the last full scan, and rounds look no further while it has enough of them. Optimality is claimed after a full scan
only.

Where scans are cheap, rounds are single steps of a master that stays inside the constraints of all columns; only full
scans will do for it, and columns join when they come near (:class:`.LPMaster`).

Whatever stops the loop, the solution that is returned is exact on its columns, and as sparse as a vertex is, unless a
limit on the time forbids it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from ..result import Certificate, FitState, Status
from .highs import OutOfTimeError, SolverFailedError
from .masters import ColumnResult, Master, MasterSolution, solve_exactly

MIN_CANDIDATE_SHARE = 0.2  # of the columns that a round may add: with fewer it looks into the next stratum
# At least as many rounds fill a working set that has a limit, since early columns are poor choices.
MIN_FILL_ROUNDS = 10
POOL_BATCHES = 100  # columns in the pool, in rounds' worth of them
POOL_CHOOSINESS = 0.02  # of the worst violation in the last full scan; columns in the pool cost next to nothing
# Of the time of a run with a limit, for an exact solution; measured: 0.1 to 0.5, with HiGHS up to 1.7.
SETTLING_SHARE = 0.5
MAX_LOSS = 1e-9  # by so much, relative to it, the value of an exact solution may be above that of a rough one: rounding

Pricing = Callable[[np.ndarray, Any], Iterable[tuple[slice | np.ndarray, np.ndarray]]]
Fetch = Callable[[np.ndarray], np.ndarray]
Strata = Callable[[np.ndarray], Sequence[Any]]


@dataclass
class _Pool:
    """Values of the worst columns of the last full scan."""

    size: int  # at most, for each problem
    columns: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    K: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))

    def price(self, V: np.ndarray, _: Any) -> Iterable[tuple[np.ndarray, np.ndarray]]:
        yield self.columns, self.K.T @ V


@dataclass
class _Problem:
    """The course of one problem through the loop."""

    master: Master
    batch: int | None
    max_columns: int | None
    solution: MasterSolution | None = None
    best: tuple[np.ndarray, MasterSolution] | None = None
    columns: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    bound: float = -np.inf
    proven: bool = False  # whether the last scan was a full one
    status: Status | None = None
    history: list[dict[str, Any]] = field(default_factory=list)
    candidates: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    violations: np.ndarray = field(default_factory=lambda: np.empty(0))
    n_kept: int = 0  # candidates that a scan keeps
    worst: float = np.inf  # violation in the last full scan
    n_evaluated: int = 0

    @property
    def gap(self) -> float:
        assert self.best is not None
        return max(0.0, self.best[1].objective - self.bound)

    @property
    def n_wanted(self) -> int:
        wanted = self.master.batch if self.batch is None else self.batch
        return wanted if self.max_columns is None else max(1, min(wanted, self.max_columns // MIN_FILL_ROUNDS))

    def has_enough(self, choosiness: float) -> bool:
        bad = np.count_nonzero(self.violations >= choosiness * self.worst) if self.worst > 0.0 else 0
        return bool(bad >= max(1.0, MIN_CANDIDATE_SHARE * self.n_wanted))


def generate_columns(
    masters: Sequence[Master],
    price: Pricing,
    fetch: Fetch,
    *,
    strata: Strata | None = None,
    pool_size: int = 0,
    tol: float = 1e-6,
    max_columns: int | None = None,
    max_time: float | None = None,
    batch: int | None = None,
    n_threads: int = 1,
    callback: Callable[[FitState], object] | None = None,
) -> list[ColumnResult]:
    """Solve the master problems over all columns that ``price`` walks.

    Parameters
    ----------
    masters : sequence of Master
        One for each problem. Columns that they already hold are a warm start.
    price : callable
        ``price(V, stratum)`` with ``V`` of shape (n_points, n_open) walks the columns of a stratum once and yields
        ``(columns, scores)``: flat column numbers, and their scores for each column of ``V``.
    fetch : callable
        ``fetch(columns)`` returns these columns, shape (n_points, n_columns).
    strata : callable, optional
        ``strata(errors)``, with the points where some problem misses its margin, shape (n_points,), returns the strata
        in the order they are priced; together they hold every column once. By default there is one, named None.
    pool_size : int
        How many bad columns may be kept with their values from one full scan to the next; for scans that are dear.
    tol : float
        Stop when the duality gap is at most ``tol`` times the objective.
    max_columns : int, optional
        Largest working set of each problem.
    max_time : float, optional
        Seconds; looked at between rounds, and by masters that can stop. To make a rough solution exact in the end may
        take half as long again, and longer where HiGHS has begun; where that is too short, the rough one is returned.
    batch : int, optional
        Columns added a round; by default as many as the master asks for.
    n_threads : int
        Masters solved at the same time. Has no influence on the result.
    callback : callable, optional
        Called after each round; a true answer stops.

    Returns
    -------
    list of ColumnResult
    """
    problems = [_Problem(master, batch, max_columns) for master in masters]
    pool = _Pool(pool_size // len(problems)) if pool_size else None
    started = time.perf_counter()
    iteration = 0
    with ThreadPoolExecutor(max(1, min(n_threads, len(masters)))) as threads:
        while open_ := [problem for problem in problems if problem.status is None]:
            iteration += 1
            left = np.inf if max_time is None else started + max_time - time.perf_counter()
            for problem, solution in zip(open_, threads.map(partial(_solve, seconds=left), open_), strict=True):
                if isinstance(solution, Status):
                    problem.status = solution
                else:
                    problem.solution, problem.columns = solution, problem.master.columns
                    if problem.best is None or solution.objective < problem.best[1].objective:
                        problem.best = (problem.columns, solution)
            open_ = [problem for problem in open_ if problem.status is None]
            if not open_:
                break
            _scan(open_, price, strata, tol, pool)
            seconds = time.perf_counter() - started
            for problem in open_:
                _judge(problem, iteration, seconds, tol, max_columns, max_time)
            if callback is not None and callback(_make_state(problems, iteration, seconds, tol)):
                for problem in open_:
                    problem.status = problem.status or Status.CALLBACK
            still_open = [problem for problem in open_ if problem.status is None]
            if pool is not None and still_open and still_open[0].proven:
                pool.columns = np.unique(np.concatenate([problem.candidates for problem in still_open]))
                pool.K = fetch(pool.columns)
            _add_candidates(still_open, fetch, max_columns)
        _prove([problem for problem in problems if not problem.proven], price, tol)
        seconds = np.inf if max_time is None else SETTLING_SHARE * (time.perf_counter() - started)
        _settle(problems, fetch, tol, seconds, threads)
    return [_make_result(problem) for problem in problems]


def _solve(problem: _Problem, seconds: float) -> MasterSolution | Status:
    """Solve a restricted problem, the first one at any rate; a status where that fails with more columns."""
    if problem.solution is None:
        return problem.master.solve()
    try:
        return problem.master.solve(seconds)
    except OutOfTimeError:
        return Status.MAX_TIME
    except SolverFailedError:
        return Status.SOLVER_FAILED


def _scan(
    problems: Sequence[_Problem], price: Pricing, strata: Strata | None, tol: float, pool: _Pool | None = None
) -> None:
    """Price the pool, then strata, until every problem has found enough columns; after the last the scan is full."""
    V = np.column_stack([_require_solution(problem).signed_dual for problem in problems])
    if pool is not None and len(pool.columns):
        _price(problems, pool.price, V, None, tol, first=True)
        if all(problem.has_enough(POOL_CHOOSINESS) for problem in problems):
            return
    wants_all = all(np.isinf(problem.master.choosiness) for problem in problems)
    order = [None] if strata is None or wants_all else strata(_find_errors(problems))
    for problem in problems:
        problem.n_kept = 0 if pool is None else min(pool.size, POOL_BATCHES * problem.n_wanted)
    for number, stratum in enumerate(order):
        if number and all(problem.has_enough(problem.master.choosiness) for problem in problems):
            return
        _price(problems, price, V, stratum, tol, first=number == 0)
    for problem in problems:
        problem.proven = True
        problem.worst = float(problem.violations.max(initial=0.0))
        problem.bound = max(problem.bound, problem.master.bound())


def _price(
    problems: Sequence[_Problem], price: Pricing, V: np.ndarray, stratum: Any, tol: float, *, first: bool
) -> None:
    """Price one stratum for all problems; the first one begins the scan."""
    if first:
        for problem in problems:
            problem.master.start_scan()
            problem.candidates, problem.violations = np.empty(0, dtype=np.intp), np.empty(0)
            problem.n_evaluated = 0
            problem.proven = False
    for columns, scores in price(V, stratum):
        for k, problem in enumerate(problems):
            _examine(problem, columns, scores[:, k], tol)


def _find_errors(problems: Sequence[_Problem]) -> np.ndarray:
    """Return the points where some problem misses its margin."""
    errors = np.zeros(problems[0].master.rows.n_points, dtype=bool)
    for problem in problems:
        rows, solution = problem.master.rows, _require_solution(problem)
        errors[rows.point[rows.margins(solution.values) < rows.target + solution.rho]] = True
    return errors


def _examine(problem: _Problem, columns: slice | np.ndarray, scores: np.ndarray, tol: float) -> None:
    """Let the master see some scores; keep the worst violators so far, the worst first."""
    working = problem.master.columns
    if isinstance(columns, slice):
        numbers = np.arange(columns.start, columns.stop)
        known = working[(working >= columns.start) & (working < columns.stop)] - columns.start
    else:
        numbers = columns
        known = np.flatnonzero(np.isin(columns, working))
    violations = problem.master.examine(numbers, scores)
    problem.n_evaluated += len(numbers)
    violations[known] = -np.inf  # counts for the bound, cannot be added again
    problem.candidates, problem.violations = _find_largest(
        np.concatenate([problem.candidates, numbers]),
        np.concatenate([problem.violations, violations]),
        max(problem.n_kept, problem.n_wanted),
        problem.master.negligible(tol),
    )


def _find_largest(
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
    """Note the round, and decide whether the problem is done."""
    solution = _require_solution(problem)
    n_columns = len(problem.master.columns)
    problem.history.append(
        {
            "iteration": iteration,
            "objective": solution.objective,
            "bound": problem.bound,
            "gap": problem.gap,
            "tau": problem.master.tau,
            "n_columns": n_columns,
            "n_evaluated": problem.n_evaluated,
            "full_scan": problem.proven,
            "n_added": 0,
            "n_dropped": 0,
            "seconds": seconds,
        }
    )
    if _is_small(problem, tol):
        problem.status = Status.CONVERGED
    elif len(problem.candidates) == 0:
        problem.status = Status.PRECISION
    elif max_columns is not None and n_columns >= max_columns and problem.master.drop_idle(rounds=1) == 0:
        problem.status = Status.MAX_COLUMNS
    if problem.status is not None and problem.master.settle():
        problem.status = None
        problem.candidates = problem.candidates[:0]
    if problem.status is None and max_time is not None and seconds >= max_time:
        problem.status = Status.MAX_TIME


def _is_small(problem: _Problem, tol: float) -> bool:
    """Return whether the gap is within the tolerance, or nothing but rounding."""
    return problem.gap <= max(tol * abs(_require_best(problem)[1].objective), problem.master.rounding)


def _add_candidates(problems: Sequence[_Problem], fetch: Fetch, max_columns: int | None) -> None:
    """Drop idle columns, fetch those that any problem wants once, and hand them out."""
    for problem in problems:
        problem.history[-1]["n_dropped"] = problem.master.drop_idle()
        room = problem.n_wanted
        if max_columns is not None:
            room = min(room, max_columns - len(problem.master.columns))
        problem.candidates = problem.candidates[:room]
        problem.history[-1]["n_added"] = len(problem.candidates)
    problems = [problem for problem in problems if len(problem.candidates)]
    if not problems:
        return
    wanted = np.unique(np.concatenate([problem.candidates for problem in problems]))
    K = fetch(wanted)
    for problem in problems:
        chosen = np.sort(problem.candidates)
        problem.master.add_columns(chosen, K[:, np.searchsorted(wanted, chosen)])


def _prove(problems: Sequence[_Problem], price: Pricing, tol: float) -> None:
    """Scan all columns for problems that stopped after a partial scan, and note what it proves."""
    if not problems:
        return
    _scan(problems, price, None, tol)
    for problem in problems:
        record = problem.history[-1]
        record["n_evaluated"] += problem.n_evaluated
        record.update(bound=problem.bound, gap=problem.gap, tau=problem.master.tau, full_scan=True)
        if _is_small(problem, tol):
            problem.status = Status.CONVERGED


def _settle(
    problems: Sequence[_Problem], fetch: Fetch, tol: float, seconds: float, threads: ThreadPoolExecutor
) -> None:
    """Make the best solutions exact where they are rough; what was proven holds for them too.

    The exact solution on the last columns is taken or, should it be worse, that on the columns of the best; the last
    record tells of it.
    """
    end = time.perf_counter() + seconds
    rough = [problem for problem in problems if _require_best(problem)[1].exactly is not None]
    for problem, last in zip(rough, threads.map(partial(_settle_last, seconds=seconds), rough), strict=True):
        columns, best = _require_best(problem)
        if last is not None and _is_no_worse(last, best):
            problem.best = (problem.master.columns, last)
        else:
            problem.best = (columns, exact_solution(columns, best, fetch, end - time.perf_counter()))
        columns, best = _require_best(problem)
        problem.history[-1].update(objective=best.objective, gap=problem.gap, n_columns=len(columns))
        if _is_small(problem, tol):
            problem.status = Status.CONVERGED


def _settle_last(problem: _Problem, seconds: float) -> MasterSolution | None:
    if np.isfinite(seconds):
        problem.master.drop_idle(rounds=1)  # measured: halves the time, and the optimum is hardly worse
    return _attempt(partial(solve_exactly, problem.master), seconds)


def exact_solution(
    columns: np.ndarray, solution: MasterSolution, fetch: Fetch, seconds: float = np.inf
) -> MasterSolution:
    """Return the exact solution on the columns of one that may be rough; that one if there is not the time.

    Parameters
    ----------
    columns : ndarray of shape (n_working,)
    solution : MasterSolution
    fetch : callable
        As for :func:`generate_columns`.
    seconds : float
    """
    if solution.exactly is None:
        return solution
    exact = _attempt(partial(solution.exactly, columns, fetch(columns)), seconds)
    return solution if exact is None or not _is_no_worse(exact, solution) else exact


def _attempt(solve: Callable[[float], MasterSolution], seconds: float) -> MasterSolution | None:
    try:
        return solve(seconds)
    except SolverFailedError:  # or out of time
        return None


def _is_no_worse(exact: MasterSolution, rough: MasterSolution) -> bool:
    return exact.objective <= rough.objective + MAX_LOSS * abs(rough.objective)


def _make_state(problems: Sequence[_Problem], iteration: int, seconds: float, tol: float) -> FitState:
    objective = sum(_require_solution(problem).objective for problem in problems)
    gap = sum(problem.gap for problem in problems)
    return FitState(
        iteration=iteration,
        objective=objective,
        bound=objective - gap,
        gap=gap,
        target=tol,
        seconds=seconds,
        phase="columns added",
        details={
            "tau": max(problem.master.tau for problem in problems),
            "n_columns": sum(len(problem.master.columns) for problem in problems),
            "n_open": sum(problem.status is None for problem in problems),
            "solutions": tuple((problem.columns, _require_solution(problem)) for problem in problems),
        },
    )


def _require_solution(problem: _Problem) -> MasterSolution:
    assert problem.solution is not None  # every open problem is solved at the top of a round
    return problem.solution


def _require_best(problem: _Problem) -> tuple[np.ndarray, MasterSolution]:
    assert problem.best is not None  # the first round is solved at any rate
    return problem.best


def _make_result(problem: _Problem) -> ColumnResult:
    assert problem.status is not None
    columns, solution = _require_best(problem)
    return ColumnResult(
        x=solution.coef,
        objective=solution.objective,
        certificate=Certificate(problem.gap, solution.objective),
        status=problem.status,
        n_iter=len(problem.history),
        history=tuple(problem.history),
        columns=columns,
        intercept=solution.intercept,
        signed_dual=solution.signed_dual,
        rho=solution.rho,
        rounding=problem.master.rounding,
    )

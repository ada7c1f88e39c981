r"""The adapter to HiGHS: a linear program over a box that grows by rows and keeps its basis.

.. math:: \min_x\; c^\top x \quad \text{s.t.} \quad 0 \le x \le u, \quad l \le A x \le h .

New rows and moved bounds leave the old basis dual feasible, so the dual simplex goes on from where it stopped.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import highspy
import numpy as np

OPTIONS: dict[str, bool | int | float | str] = {
    "output_flag": False,
    "threads": 1,  # parallelism is over problems, never inside one: same bits for any number of jobs
    "solver": "simplex",
    "simplex_strategy": 1,  # dual
    "simplex_dual_edge_weight_strategy": 1,  # Devex: steepest edge computes all weights anew after each new row
    "simplex_scale_strategy": 0,  # rows come scaled; HiGHS's own scaling of a grown program made some of them cycle
    "presolve": "off",  # would throw the basis away
    "primal_feasibility_tolerance": 1e-9,
    "dual_feasibility_tolerance": 1e-9,
    "small_matrix_value": 1e-12,  # the default drops kernel values below 1e-9
}
M_MMAP_THRESHOLD = -3  # of malloc.h
LARGE_BLOCK = 2**20
MAX_KEPT_BYTES = 2**25  # what glibc's own, growing threshold ends at
MAX_ITERATIONS_PER_ROW = 50  # far beyond any honest solve: a sign of cycling


class SolverFailedError(RuntimeError):
    """An external solver gave up on a problem that has a solution."""


class OutOfTimeError(SolverFailedError):
    """An external solver had no time left."""


@dataclass(frozen=True)
class LPSolution:
    """An optimal vertex: the point and the multipliers of its rows (HiGHS sign: d objective / d row bound)."""

    x: np.ndarray
    row_dual: np.ndarray
    n_iter: int


class GrowingLP:
    """A linear program in a box to which rows are added between solves.

    Parameters
    ----------
    cost, upper : ndarray of shape (n_variables,)
    """

    def __init__(self, cost: np.ndarray, upper: np.ndarray):
        self._n_variables = len(cost)
        self._indices = np.arange(self._n_variables, dtype=np.int32)
        self._highs = highspy.Highs()
        self._guessed = False
        for name, value in OPTIONS.items():
            if self._highs.setOptionValue(name, value) != highspy.HighsStatus.kOk:
                raise RuntimeError(f"HiGHS does not know the option {name}={value!r}; highspy >= 1.7 is needed.")
        self._highs.addVars(self._n_variables, np.zeros(self._n_variables), np.asarray(upper, float))
        self._highs.changeColsCost(self._n_variables, self._indices, np.asarray(cost, float))

    def add_rows(self, A: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> None:
        """Add the rows ``lower <= A x <= upper``."""
        n_rows = len(A)
        with memory_given_back():
            self._highs.addRows(
                n_rows,
                np.asarray(lower, float),
                np.asarray(upper, float),
                n_rows * self._n_variables,
                np.arange(n_rows, dtype=np.int32) * self._n_variables,
                np.tile(self._indices, n_rows),
                np.ascontiguousarray(A, dtype=float).ravel(),
            )

    def set_upper(self, upper: np.ndarray) -> None:
        """Move the upper end of every variable's box."""
        n = self._n_variables
        self._highs.changeColsBounds(n, self._indices, np.zeros(n), np.asarray(upper, float))

    def set_row_bounds(self, lower: np.ndarray, upper: np.ndarray) -> None:
        """Move the bounds of the first ``len(lower)`` rows."""
        for row, (low, high) in enumerate(zip(lower.tolist(), upper.tolist(), strict=True)):
            self._highs.changeRowBounds(row, low, high)

    def delete_rows(self, rows: np.ndarray) -> None:
        """Delete rows by number; the others keep their order. Slack rows leave the basis intact."""
        self._highs.deleteRows(len(rows), rows.astype(np.int32))

    def guess_basis(self, free: np.ndarray, at_upper: np.ndarray) -> None:
        """Start the next solve from a basis that need not be one: HiGHS mends it.

        Parameters
        ----------
        free, at_upper : ndarray of bool of shape (n_variables + n_rows,)
            Which variables and rows are basic, and which of the others are at their upper bounds.
        """
        status = highspy.HighsBasisStatus
        kinds = np.where(free, 1, np.where(at_upper, 2, 0)).tolist()
        names = [(status.kLower, status.kBasic, status.kUpper)[kind] for kind in kinds]
        basis = highspy.HighsBasis()
        basis.col_status, basis.row_status = names[: self._n_variables], names[self._n_variables :]
        basis.valid = basis.alien = True
        self._highs.setBasis(basis)
        self._guessed = True

    def solve(self, seconds: float = np.inf) -> LPSolution:
        """Solve from the last basis; from scratch if that fails (HiGHS may cycle after many warm solves).

        Where rounding keeps HiGHS from its own tolerance, the feasible point that it ends with is returned: whoever
        needs to know how good it is has to measure that anyway.
        """
        self._highs.setOptionValue("time_limit", self._highs.getRunTime() + max(0.0, seconds))  # of all runs together
        limit = MAX_ITERATIONS_PER_ROW * (self._n_variables + self._highs.getNumRow()) + 1000
        self._highs.setOptionValue("simplex_iteration_limit", limit)
        if not self._run():
            self._highs.clearSolver()
            self._highs.setOptionValue("simplex_iteration_limit", 10 * limit)
            if not self._run() and not self._ended_feasible():
                status = self._highs.modelStatusToString(self._highs.getModelStatus())
                raise SolverFailedError(f"HiGHS could not solve the linear program ({status}).")
        n_iter = int(self._highs.getInfo().simplex_iteration_count)
        if self._guessed:  # a guess that is nearly singular leaves errors behind; the basis found knows nothing of it
            self._guessed = False
            basis = self._highs.getBasis()
            self._highs.clearSolver()
            self._highs.setBasis(basis)
            again = self.solve(seconds)
            return replace(again, n_iter=n_iter + again.n_iter)
        solution = self._highs.getSolution()
        return LPSolution(np.array(solution.col_value), np.array(solution.row_dual), n_iter)

    def _run(self) -> bool:
        with memory_given_back():
            self._highs.run()
        if self._highs.getModelStatus() == highspy.HighsModelStatus.kTimeLimit:
            raise OutOfTimeError("HiGHS was not given the time to solve the linear program.")
        return bool(self._highs.getModelStatus() == highspy.HighsModelStatus.kOptimal)

    def _ended_feasible(self) -> bool:
        unsure = self._highs.getModelStatus() == highspy.HighsModelStatus.kUnknown
        feasible = highspy.SolutionStatus.kSolutionStatusFeasible
        return bool(unsure and self._highs.getInfo().primal_solution_status == feasible)


@contextmanager
def memory_given_back() -> Iterator[None]:
    """Let large blocks of memory go straight back to the system when freed, where the C library is glibc.

    HiGHS allocates everything anew when the program grows, and glibc keeps the holes: without this a fit takes up to
    three times the memory. It costs 5 to 10 % of the time, which is why it holds for the solver only.
    """
    if _libc is None:
        yield
        return
    _libc.mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK)
    try:
        yield
    finally:
        _libc.malloc_trim(0)
        _libc.mallopt(M_MMAP_THRESHOLD, MAX_KEPT_BYTES)


def _find_glibc() -> ctypes.CDLL | None:
    try:
        libc = ctypes.CDLL(None)
        libc.malloc_trim, libc.mallopt  # noqa: B018 - missing in other C libraries
    except (AttributeError, OSError, TypeError):
        return None
    return libc


_libc = _find_glibc()

r"""What restricted master problems share: the learning problem on the columns of a working set :math:`W`.

A master is asked to add columns, to solve itself, and to judge the scores :math:`K_{\cdot j}^\top \beta` of all columns
that it does not hold. Both the value and the lower bound that it reports are recomputed from its solution, never taken
from a solver's word: the value is the objective at the coefficients found, the bound comes from duals that were made
feasible exactly.

The offset :math:`b` is *free* (not penalised; the duals balance, :math:`\sum_i \beta_i = 0`), *penalised* (the
coefficient of a column of ones, always in :math:`W`), or absent. Coefficients that must not be negative are those of
the kernels' columns; the offset always has either sign.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from ..margin import MarginRows
from ..result import SolverResult

ROUNDING = 1e-12  # of the largest value that the objective could have
MAX_IDLE_ROUNDS = 3  # measured: 2 to 5 halve the working set and save 10 % of the time; 1 drops too eagerly
COPY_TOL = 1e-12  # relative difference of columns that are equal but for rounding

Intercept = Literal["free", "penalized"] | None


@dataclass(frozen=True)
class MasterSolution:
    """Optimal primal and dual point of a restricted problem.

    Attributes
    ----------
    objective : float
        Objective of the whole problem at this point, all columns outside ``W`` being zero.
    coef : ndarray of shape (n_working,)
    intercept : float
    signed_dual : ndarray of shape (n_points,)
        What pricing multiplies the columns with.
    dual_value : float
        Dual objective of the restricted problem at the feasible duals.
    values : ndarray of shape (n_points,)
        The function at the points, offset included.
    rho : float
        The margin asked for, in problems that choose it.
    exactly : callable, optional
        Of a rough solution: ``exactly(columns, K, seconds)`` is the exact one on its columns, with values ``K``; raises
        `OutOfTimeError` after so many seconds.
    """

    objective: float
    coef: np.ndarray
    intercept: float
    signed_dual: np.ndarray
    dual_value: float
    values: np.ndarray
    rho: float = 0.0
    exactly: Callable[[np.ndarray, np.ndarray, float], MasterSolution] | None = None


@dataclass(frozen=True, kw_only=True)
class ColumnResult(SolverResult):
    """Coefficients of a working set of columns.

    Attributes
    ----------
    columns : ndarray of shape (n_columns,)
        The working set, to which the coefficients ``x`` belong.
    intercept : float
    signed_dual : ndarray of shape (n_points,)
    rho : float
        The margin, where the problem chooses it.
    rounding : float
        What rounding may do to the objective.
    """

    columns: np.ndarray
    intercept: float
    signed_dual: np.ndarray
    rho: float
    rounding: float


class Master(Protocol):
    """What the loop asks of a restricted problem.

    A round is ``solve``, ``start_scan``, ``examine`` for every column in as many portions as one likes, ``bound``.
    """

    @property
    def rows(self) -> MarginRows:
        """The margins that the problem asks for."""

    @property
    def columns(self) -> np.ndarray:
        """Flat numbers of the columns in the working set; a new array whenever they change."""

    @property
    def batch(self) -> int:
        """How many columns it would have a round add."""

    @property
    def choosiness(self) -> float:
        """Violation, as a share of the worst in the last full scan, from which a stratum's columns will do.

        Infinite: nothing but a full scan will do.
        """

    @property
    def rounding(self) -> float:
        """A gap that is nothing but rounding: where the optimum is zero, no gap is small beside it."""

    def negligible(self, tol: float) -> float:
        """Return the violation up to which columns do not matter for the relative gap ``tol``."""

    def add_columns(self, columns: np.ndarray, K: np.ndarray) -> None:
        """Put columns into the working set.

        Parameters
        ----------
        columns : ndarray of shape (n_new,)
            Their flat numbers, not yet in the working set.
        K : ndarray of shape (n_points, n_new)
            As they are priced: scaled, and centred if the offset is free.
        """

    def drop_idle(self, rounds: int | None = None) -> int:
        """Take columns out of the working set that have not been used for ``rounds``; return how many.

        None: as many rounds as the master thinks best.
        """

    def set_cost(self, cost: np.ndarray) -> None:
        """Give every row a new cost; the working set stays, and the next solve starts from the last solution."""

    def solve(self, seconds: float = np.inf) -> MasterSolution:
        """Solve the restricted problem from the last solution.

        A master that can stop raises `OutOfTimeError` after so many seconds; the last solution is then still there.
        """

    def settle(self) -> bool:
        """Make the next solutions as good as can be; False if the last one is, as it is with most masters."""

    def start_scan(self) -> None:
        """Forget what was examined."""

    def examine(self, columns: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Take note of the scores of these columns and return how far each violates its constraint.

        Parameters
        ----------
        columns : ndarray of shape (n_examined,)
            Flat numbers, in or outside the working set.
        scores : ndarray of shape (n_examined,)
            Their products with the signed duals of the last solution.

        Returns
        -------
        ndarray of shape (n_examined,)
            Positive where the column can improve the model.
        """

    @property
    def tau(self) -> float:
        """Largest score examined in this scan, in absolute value where coefficients may have either sign."""

    def bound(self) -> float:
        """Return a lower bound on the optimum over all columns, once each was examined exactly once in this scan."""


def solve_exactly(master: Master, seconds: float = np.inf) -> MasterSolution:
    """Solve a restricted problem until the solution is as good as can be."""
    end = time.perf_counter() + seconds
    master.settle()
    solution = master.solve(seconds)
    while master.settle():
        solution = master.solve(end - time.perf_counter())
    return solution


class WorkingSet:
    """The columns of a master: their values, and how long each has not been used.

    Parameters
    ----------
    n_points : int
    centered : bool
        Whether to subtract from each column its mean over the points.
    idle_rounds : int or None
        Rounds after which an unused column may be dropped; None: never, as in the papers.

    Attributes
    ----------
    columns : ndarray of shape (n_working,)
        Flat numbers.
    K : ndarray of shape (n_working, n_points)
        One row a column, since it grows by appending.
    means : ndarray of shape (n_working,)
        What was subtracted from the columns.
    magnitudes : ndarray of shape (n_working,)
        Largest absolute entry; one for a column of zeros.
    """

    def __init__(self, n_points: int, centered: bool, idle_rounds: int | None = MAX_IDLE_ROUNDS):
        self.centered = centered
        self.idle_rounds = idle_rounds
        self.columns = np.empty(0, dtype=np.intp)
        self.K = np.empty((0, n_points))
        self._key_weights = np.cos(np.arange(n_points))  # equal columns have equal sums, whatever the weights
        self._keys = np.empty(0)
        self.means = np.empty(0)
        self.magnitudes = np.empty(0)
        self.restart()

    def __len__(self) -> int:
        return len(self.columns)

    def restart(self) -> None:
        """Forget which columns were idle or have been dropped; the problem has changed."""
        self._idle = np.zeros(len(self), dtype=int)  # rounds since the coefficient was last used
        self._returned = np.zeros(len(self), dtype=bool)  # columns that came back after they were dropped
        self._dropped: set[int] = set()

    def append(self, columns: np.ndarray, K: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Add columns of shape (n_points, n_new); return them as rows, and their magnitudes."""
        means = K.mean(axis=0) if self.centered else np.zeros(len(columns))
        new = (K - means).T
        largest = np.abs(new).max(axis=1, initial=0.0)
        magnitudes = np.where(largest > 0, largest, 1.0)
        returned = np.array([j in self._dropped for j in columns.tolist()], dtype=bool)
        self.columns = np.concatenate([self.columns, columns])
        self.K = np.concatenate([self.K, new])
        self._keys = np.append(self._keys, new @ self._key_weights)
        self.means = np.concatenate([self.means, means])
        self.magnitudes = np.concatenate([self.magnitudes, magnitudes])
        self._idle = np.concatenate([self._idle, np.zeros(len(columns), dtype=int)])
        self._returned = np.concatenate([self._returned, returned])
        return new, magnitudes

    def find_copies(self, K: np.ndarray) -> np.ndarray:
        """Return which of some columns, shape (n_points, n_new), equal a column of the set or an earlier one."""
        new = (K - K.mean(axis=0)).T if self.centered else K.T
        keys, n = np.append(self._keys, new @ self._key_weights), len(self)
        out = np.zeros(len(new), dtype=bool)
        for j, row in enumerate(new):
            rounding = COPY_TOL * float(np.abs(row).sum())
            alike = np.flatnonzero(np.abs(keys[: n + j] - keys[n + j]) <= rounding)
            out[j] = any(np.abs((self.K[i] if i < n else new[i - n]) - row).sum() <= rounding for i in alike)
        return out

    def note_use(self, coef: np.ndarray) -> None:
        """Count for every column the rounds in which its coefficient was zero."""
        self._idle = np.where(coef != 0, 0, self._idle + 1)

    def drop_idle(self, slack: np.ndarray, rounds: int | None = None) -> np.ndarray:
        """Drop columns that are idle and whose constraint is ``slack``; return their positions.

        A column that comes back stays, so the loop ends.
        """
        if self.idle_rounds is None:
            return np.empty(0, dtype=np.intp)
        idle = self._idle >= (self.idle_rounds if rounds is None else rounds)
        out = np.flatnonzero(slack & idle & ~self._returned)
        if len(out):
            self._dropped.update(self.columns[out].tolist())
            kept = np.setdiff1d(np.arange(len(self)), out)
            self.columns, self.K, self.means = self.columns[kept], self.K[kept], self.means[kept]
            self._keys = self._keys[kept]
            self.magnitudes, self._idle = self.magnitudes[kept], self._idle[kept]
            self._returned = self._returned[kept]
        return out

r"""Restricted master problems: the learning problem on the columns of a working set :math:`W`.

Both the value and the lower bound that a master reports are recomputed from its solution, never taken from the
solver's word: the value is the objective at the coefficients found, the bound comes from duals that were clipped into
their box and balanced, so that they are feasible exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .highs import GrowingLP
from .margin import MarginRows

LARGEST_DUAL = 1e9  # in HiGHS's units, where duals of separable data are of the order of the number of columns
SHORT = 1e-6  # margins short by less are the solver's doing, not the model's
SLACK = 1e-6  # far above the solver's tolerance: such a row is not binding
IDLE_ROUNDS = 3  # measured: 2 to 5 halve the working set and save 10 % of the time; 1 drops too eagerly


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
    """

    objective: float
    coef: np.ndarray
    intercept: float
    signed_dual: np.ndarray
    dual_value: float


class LPMaster:
    r"""The 1-norm problem, held as its dual in HiGHS.

    .. math::
        \min_{\alpha, b, \xi}\; \sum_j |\alpha_j| + \sum_r c_r \xi_r
        \quad \text{s.t.} \quad s_r \Big(\sum_j K_{i_r j} \alpha_j + b\Big) + \xi_r \ge t_r,\; \xi \ge 0

    has the dual

    .. math::
        \max_\beta\; \sum_r t_r \beta_r
        \quad \text{s.t.} \quad -1 \le \sum_r \beta_r s_r K_{i_r j} \le 1,\;
        \sum_r \beta_r s_r = 0,\; 0 \le \beta_r \le c_r .

    A new column is a new ranged row of the dual (one row in place of the two variables :math:`u_j, v_j`), which leaves
    the old basis dual feasible. :math:`\alpha_j` and :math:`b` are the negative multipliers of the rows, since
    HiGHS minimises :math:`-\sum_r t_r \beta_r`.

    Since the duals balance, a constant added to a column changes no score and only moves :math:`b`; columns are
    therefore centred first (a wide kernel is nearly constant, and the offset would have to cancel it). HiGHS sees
    rows divided by their largest entry and duals multiplied by :math:`\sigma`, the largest entry of the first columns
    or one over the largest cost, so that kernels and costs of any magnitude give it numbers around one.

    Parameters
    ----------
    rows : MarginRows
        With finite positive costs.
    idle_rounds : int or None
        Rounds after which an unused column may be dropped; None: never, as in the papers.
    """

    def __init__(self, rows: MarginRows, idle_rounds: int | None = IDLE_ROUNDS):
        self.rows = rows
        self.idle_rounds = idle_rounds
        self.columns = np.empty(0, dtype=np.intp)
        self._K = np.empty((0, rows.n_points))  # centred, one row a column: grows by appending
        self._means = np.empty(0)
        self._magnitudes = np.empty(0)
        self._idle = np.empty(0, dtype=int)  # rounds since the coefficient was last used
        self._returned = np.empty(0, dtype=bool)  # columns that came back after they were dropped
        self._dropped: set[int] = set()
        self._sigma = 1.0 / float(rows.cost.max())
        self._lp = self._start()

    def add_columns(self, columns: np.ndarray, K: np.ndarray) -> None:
        """Put columns into the working set.

        Parameters
        ----------
        columns : ndarray of shape (n_new,)
            Their flat numbers, not yet in the working set.
        K : ndarray of shape (n_points, n_new)
        """
        means = K.mean(axis=0)
        K = K - means
        magnitudes = np.maximum(np.abs(K).max(axis=0, initial=0.0), np.finfo(float).tiny)
        if len(self.columns) == 0:
            self._sigma = max(float(magnitudes.max()), self._sigma)
            self._lp = self._start()
        bounds = self._sigma / magnitudes
        A = (K.T / magnitudes[:, None])[:, self.rows.point] * self.rows.sign
        self._lp.add_rows(A, -bounds, bounds)
        self.columns = np.concatenate([self.columns, columns])
        self._K = np.concatenate([self._K, K.T])
        self._means = np.concatenate([self._means, means])
        self._magnitudes = np.concatenate([self._magnitudes, magnitudes])
        self._idle = np.concatenate([self._idle, np.zeros(len(columns), dtype=int)])
        self._returned = np.concatenate([self._returned, [j in self._dropped for j in columns.tolist()]]).astype(bool)

    def drop_idle(self) -> int:
        """Take columns out of the working set that have not been used for some rounds; return how many.

        Their rows are slack, so the basis stays optimal. A column that comes back stays, so the loop ends.
        """
        if self.idle_rounds is None:
            return 0
        slack = np.abs(self._K @ self._solution.signed_dual) < 1.0 - SLACK
        out = np.flatnonzero(slack & (self._idle >= self.idle_rounds) & ~self._returned)
        if len(out):
            self._lp.delete_rows(out + 1)  # row 0 is the balance
            self._dropped.update(self.columns[out].tolist())
            kept = np.setdiff1d(np.arange(len(self.columns)), out)
            self.columns, self._K, self._means = self.columns[kept], self._K[kept], self._means[kept]
            self._magnitudes, self._idle = self._magnitudes[kept], self._idle[kept]
            self._returned = self._returned[kept]
        return len(out)

    def solve(self) -> MasterSolution:
        """Solve the restricted problem from the last basis."""
        vertex = self._lp.solve()
        # scaled duals are sigma times the true ones, scaled objective is sigma times the true one
        intercept = -float(vertex.row_dual[0])
        coef = -vertex.row_dual[1:] / self._magnitudes
        dual = self._feasible(vertex.x / self._sigma)
        self._idle = np.where(coef != 0, 0, self._idle + 1)
        coef, intercept, objective = self._lifted(coef, intercept)
        self._solution = MasterSolution(
            objective=objective,
            coef=coef,
            intercept=intercept - float(coef @ self._means),
            signed_dual=self.rows.signed(dual),
            dual_value=float(self.rows.target @ dual),
        )
        return self._solution

    def violations(self, scores: np.ndarray) -> np.ndarray:
        """Return how far each column is from its constraint |score| <= 1; positive means violated."""
        return np.abs(scores) - 1.0

    def bound(self, solution: MasterSolution, worst: float) -> float:
        """Return a lower bound on the optimum over all columns, the worst violation over them being known.

        The duals divided by ``tau = max(1, largest |score|)`` satisfy every constraint.
        """
        return max(0.0, solution.dual_value / max(1.0, 1.0 + worst))

    def _start(self) -> GrowingLP:
        rows = self.rows
        # A smaller box is a valid restriction of the dual; HiGHS would take a huge one for infinite.
        lp = GrowingLP(-rows.target, np.minimum(rows.cost * self._sigma, LARGEST_DUAL))
        lp.add_rows(rows.sign[None, :], np.zeros(1), np.zeros(1))  # sum beta s = 0: the free offset
        return lp

    def _lifted(self, coef: np.ndarray, intercept: float) -> tuple[np.ndarray, float, float]:
        """Scale the solution up by what the solver's tolerance leaves margins short, if that lowers the objective.

        Margins short by 1e-9 are charged at full cost, which may be far more than the objective itself.
        """
        f = coef @ self._K + intercept
        objective = float(np.abs(coef).sum()) + self.rows.loss(f)
        short = self.rows.target - self.rows.sign * f[self.rows.point]
        short = short[(short > 0) & (short < SHORT)]
        if len(short):
            factor = 1.0 / (1.0 - float(short.max()))
            lifted = factor * float(np.abs(coef).sum()) + self.rows.loss(factor * f)
            if lifted < objective:
                return factor * coef, factor * intercept, lifted
        return coef, intercept, objective

    def _feasible(self, dual: np.ndarray) -> np.ndarray:
        """Clip duals into their box and shrink the heavier side, so that they balance."""
        rows = self.rows
        dual = np.clip(dual, 0.0, rows.cost)
        positive, negative = dual[rows.sign > 0].sum(), dual[rows.sign < 0].sum()
        balanced = min(positive, negative)
        shrink = np.where(rows.sign > 0, balanced / max(positive, 1e-300), balanced / max(negative, 1e-300))
        return dual * shrink

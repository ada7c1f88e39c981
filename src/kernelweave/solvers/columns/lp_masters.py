r"""Restricted problems with the 1-norm, held as their duals (SSMK (9), (10); CG-Boost (4), (5)).

A new column of the problem is a new row of the dual, which leaves an old basis dual feasible. Scores are
:math:`K_{\cdot j}^\top \beta` with the signed duals :math:`\beta`; coefficients of either sign have
:math:`|\text{score}|` in place of the score.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from ..margin import MarginRows, feasible_weights, fill_box, margin_loss
from .highs import GrowingLP
from .masters import MAX_IDLE_ROUNDS, ROUNDING, Intercept, MasterSolution, WorkingSet, solve_exactly
from .restricted_lp import RestrictedLP

OFFSET_PRICE = {"free": 0.0, "penalized": 1.0, None: np.inf}  # what |b| costs
MAX_DUAL = 1e9  # in HiGHS's units, where duals of separable data are of the order of the number of columns
MARGIN_TOL = 1e-6  # margins short by less are the solver's doing, not the model's
BATCH = 50  # columns a round; measured: 20 to 100 are within 20 % of each other
GROWTH = 0.3  # of the columns in use: what a round may add as long as solutions are rough, if that is more
CHOOSINESS = 0.2  # measured: prices a third fewer columns, for a tenth more time where pricing is cheap
NEAR = 0.05  # distance from its bound at which a score's column joins, where that is done before it is violated
MIN_VIOLATION = 1e-10  # a column violated by less is satisfied up to rounding
MIN_SLACK = 1e-6  # far above the solver's tolerance: such a row is not binding


class LPMaster:
    r"""The 1-norm problem with costs.

    .. math::
        \min_{\alpha, b, \xi}\; \sum_j |\alpha_j| + \lambda |b| + \sum_r c_r \xi_r
        \quad \text{s.t.} \quad s_r \Big(\sum_j K_{i_r j} \alpha_j + b\Big) + \xi_r \ge t_r,\; \xi \ge 0

    has the dual

    .. math::
        \max_\beta\; \sum_r t_r \beta_r
        \quad \text{s.t.} \quad -1 \le \sum_r \beta_r s_r K_{i_r j} \le 1,\;
        -\lambda \le \sum_r \beta_r s_r \le \lambda,\; 0 \le \beta_r \le c_r ,

    where the price :math:`\lambda` of the offset is 0 if it is free, 1 if it is penalised and infinite if there is
    none. With :math:`\alpha \ge 0` the rows of the columns lose their lower bounds. A column is one ranged row in place
    of the two variables :math:`u_j, v_j`; :math:`\alpha_j` and :math:`b` are the negative multipliers of the rows,
    since HiGHS minimises :math:`-\sum_r t_r \beta_r`.

    If the duals balance, a constant added to a column changes no score and only moves :math:`b`; with a free offset
    columns are therefore centred first (a wide kernel is nearly constant, and the offset would have to cancel it).
    The problem is homogeneous in the targets: it is solved for targets of size one, about zero where the offset is
    free. HiGHS sees rows divided by their largest entry and duals multiplied by :math:`\sigma`, the largest entry of
    the first columns or one over the largest cost, so that kernels and costs of any magnitude give it numbers around
    one.

    Parameters
    ----------
    rows : MarginRows
        With finite positive costs.
    positive : bool
        Whether the coefficients of the columns must not be negative.
    intercept : {"free", "penalized"} or None
    idle_rounds : int or None
        Rounds after which an unused column may be dropped; None: never, and every round is solved exactly, as in the
        papers.
    scans_are_cheap : bool
        Whether a scan takes no longer than a step of the interior-point method: then there is one after each step, and
        columns join before they are violated.
    """

    def __init__(
        self,
        rows: MarginRows,
        *,
        positive: bool = False,
        intercept: Intercept = "free",
        idle_rounds: int | None = MAX_IDLE_ROUNDS,
        scans_are_cheap: bool = False,
    ):
        self.rows = rows
        self.positive = positive
        self.intercept = intercept
        ends = (rows.sign * rows.target).min(), (rows.sign * rows.target).max()
        self._middle = 0.5 * float(ends[0] + ends[1]) if intercept == "free" else 0.0
        target = rows.target - rows.sign * self._middle
        self._unit = float(np.abs(target).max()) or 1.0
        self._scaled = replace(rows, target=target / self._unit)
        self._offset_price = OFFSET_PRICE[intercept]
        self._working = WorkingSet(rows.n_points, intercept == "free", idle_rounds)
        self._copies = np.empty(0, dtype=np.intp)  # columns that equal others: near their bound whenever those are
        self._magnitude = 0.0  # of the first columns
        self._tau, self._n_used = np.inf, 0
        self._lp = RestrictedLP(
            -self._scaled.target, rows, may_be_rough=idle_rounds is not None, by_steps=scans_are_cheap
        )
        self._lp.add_rows(np.ones((1, rows.n_points)), np.zeros(1), np.zeros(1))  # row 0 is the offset's
        self._rescale()

    @property
    def columns(self) -> np.ndarray:
        return self._working.columns

    @property
    def batch(self) -> int:
        return max(BATCH, int(GROWTH * self._n_used)) if self._lp.is_rough else BATCH

    @property
    def choosiness(self) -> float:
        # Columns in memory take less time to price than to choose from.
        return np.inf if self._lp.begins_by_steps else CHOOSINESS

    @property
    def rounding(self) -> float:
        return 0.0

    def negligible(self, tol: float) -> float:
        return -NEAR if self._lp.goes_by_steps else max(MIN_VIOLATION, 0.1 * tol)

    def add_columns(self, columns: np.ndarray, K: np.ndarray) -> None:
        first = len(self._working) == 0
        if self._lp.by_steps:
            is_copy = self._working.find_copies(K)
            self._copies = np.append(self._copies, columns[is_copy])
            columns, K = columns[~is_copy], K[:, ~is_copy]
        new, magnitudes = self._working.append(columns, K)
        self._lp.add_rows(new / magnitudes[:, None], *self._limits(magnitudes))
        if first:
            self._magnitude = float(magnitudes.max(initial=0.0))
            self._rescale()

    def drop_idle(self, rounds: int | None = None) -> int:
        # Their rows are slack, so the basis stays optimal.
        scores = self._working.K @ self._solution.signed_dual
        out = self._working.drop_idle(self._sizes(scores) < 1.0 - MIN_SLACK, rounds)
        if len(out):
            self._lp.delete_rows(out + 1)
        return len(out)

    def set_cost(self, cost: np.ndarray) -> None:
        self.rows = replace(self.rows, cost=np.asarray(cost, float))
        self._scaled = replace(self._scaled, cost=self.rows.cost)
        self._working.restart()
        self._tau = np.inf
        self._rescale()

    def settle(self) -> bool:
        return self._lp.settle()

    def solve(self, seconds: float = np.inf) -> MasterSolution:
        vertex = self._lp.solve(self._tau - 1.0, seconds)
        # scaled duals are sigma times the true ones, scaled objective is sigma times the true one
        intercept = -float(vertex.row_dual[0])
        coef = -vertex.row_dual[1:] / self._working.magnitudes
        if self.positive:
            coef = np.maximum(coef, 0.0)
        dual = self._make_feasible(vertex.x / self._sigma)
        used = self._zero_unused(coef, dual) if self._lp.is_rough else coef
        self._n_used = int(np.count_nonzero(used))
        self._working.note_use(used)
        values = coef @ self._working.K + intercept
        factor, objective = self._find_lift(self._penalty(coef, intercept), values)
        back = factor * self._unit
        self._solution = MasterSolution(
            objective=self._unit * objective,
            coef=back * coef,
            intercept=back * (intercept - float(coef @ self._working.means)) + self._middle,
            signed_dual=self.rows.signed(dual),
            dual_value=self._unit * float(self._scaled.target @ dual),
            values=back * values + self._middle,
            exactly=partial(_solve_on, self.rows, self.positive, self.intercept) if self._lp.is_rough else None,
        )
        self.start_scan()
        return self._solution

    def start_scan(self) -> None:
        # A penalised offset is a column that every scan examines.
        self._tau = abs(float(self._solution.signed_dual.sum())) if self._offset_price == 1.0 else 0.0

    def examine(self, columns: np.ndarray, scores: np.ndarray) -> np.ndarray:
        sizes = self._sizes(scores)
        self._tau = max(self._tau, float(sizes.max(initial=0.0)))
        violations = sizes - 1.0
        violations[np.isin(columns, self._copies)] = -np.inf  # those they equal can join
        return violations

    @property
    def tau(self) -> float:
        return self._tau

    def bound(self) -> float:
        # The duals divided by max(1, tau) satisfy every constraint.
        return max(0.0, self._solution.dual_value / max(1.0, self._tau))

    def _sizes(self, scores: np.ndarray) -> np.ndarray:
        """What the dual bounds by 1: the scores, in absolute value where coefficients may have either sign."""
        return scores if self.positive else np.abs(scores)

    def _rescale(self) -> None:
        """Put the bounds of the duals and of their rows into HiGHS's units; a basis stays what it was."""
        self._sigma = max(self._magnitude, 1.0 / float(self.rows.cost.max()))
        # A smaller box is a valid restriction of the dual; HiGHS would take a huge one for infinite.
        ceiling = np.minimum(self.rows.cost * self._sigma, MAX_DUAL)
        lower, upper = self._limits(self._working.magnitudes)
        offset = self._offset_price * self._sigma
        self._lp.set_bounds(ceiling, np.append(-offset, lower), np.append(offset, upper))

    def _limits(self, magnitudes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of the rows of columns with these magnitudes, in HiGHS's units."""
        upper = self._sigma / magnitudes
        return np.full(len(upper), -np.inf) if self.positive else -upper, upper

    def _zero_unused(self, coef: np.ndarray, dual: np.ndarray) -> np.ndarray:
        """Return the coefficients of a rough solution, none of which is zero, with zeros where they tend to zero.

        Their products with the slack of their constraints are nearly equal: one of both is small.
        """
        slack = 1.0 - self._sizes(self._working.K @ self.rows.signed(dual))
        return np.where(np.abs(coef) * len(coef) > np.abs(coef).sum() * slack, coef, 0.0)

    def _penalty(self, coef: np.ndarray, intercept: float) -> float:
        offset = self._offset_price * abs(intercept) if intercept else 0.0
        return float(np.abs(coef).sum()) + offset

    def _find_lift(self, penalty: float, values: np.ndarray) -> tuple[float, float]:
        """Return by what to scale the solution up, for margins that the solver's tolerance leaves short.

        Margins short by 1e-9 are charged at full cost, which may be far more than the objective itself. Also returns
        the objective of the scaled solution, which stays as it is if scaling does not lower that.
        """
        objective = penalty + self._scaled.loss(values)
        slack = self._scaled.slack(values)
        short = slack[(slack > 0) & (slack < MARGIN_TOL)]
        if len(short):
            factor = 1.0 / (1.0 - float(short.max()))
            lifted = factor * penalty + self._scaled.loss(factor * values)
            if lifted < objective:
                return factor, lifted
        return 1.0, objective

    def _make_feasible(self, dual: np.ndarray) -> np.ndarray:
        """Clip duals into their box and shrink the heavier side, so that they balance up to the offset's price."""
        rows = self.rows
        dual = np.clip(dual, 0.0, rows.cost)
        positive, negative = dual[rows.sign > 0].sum(), dual[rows.sign < 0].sum()
        allowed = min(positive, negative) + self._offset_price
        shrink = [min(1.0, allowed / max(side, 1e-300)) for side in (negative, positive)]
        return dual * np.where(rows.sign > 0, shrink[1], shrink[0])


def _solve_on(
    rows: MarginRows, positive: bool, intercept: Intercept, columns: np.ndarray, K: np.ndarray, seconds: float
) -> MasterSolution:
    """Solve a problem exactly on these columns, by a master of its own: that of the fit may hold others by now."""
    master = LPMaster(rows, positive=positive, intercept=intercept)
    master.add_columns(columns, K)
    return solve_exactly(master, seconds)


class NuLPMaster:
    r"""The 1-norm problem that chooses its margin (LPBoost's own form).

    .. math::
        \max_{\alpha, b, \rho, \xi}\; \rho - \sum_r D_r \xi_r
        \quad \text{s.t.} \quad s_r \Big(\sum_j K_{i_r j} \alpha_j + b\Big) \ge \rho - \xi_r,\; \xi \ge 0,\;
        \sum_j |\alpha_j| \;(+\, |b|) \le 1 ,

    taken as the minimum of :math:`-\rho + \sum_r D_r \xi_r`. With multipliers :math:`u_r \ge 0` of the margins the
    Lagrangian is linear in :math:`\rho`, :math:`\xi` and a free :math:`b`, whence :math:`\sum_r u_r = 1`,
    :math:`u_r \le D_r` and :math:`\sum_r u_r s_r = 0`; its least value over the ball of the coefficients is minus the
    largest score. The dual is

    .. math::
        \max_{u, \gamma}\; -\gamma \quad \text{s.t.} \quad
        \Big| \sum_r u_r s_r K_{i_r j} \Big| \le \gamma, \; \sum_r u_r = 1,\; 0 \le u_r \le D_r ,

    with :math:`\sum_r u_r s_r = 0` for a free offset and :math:`|\sum_r u_r s_r| \le \gamma` for a penalised one. With
    :math:`\alpha \ge 0` scores count without their absolute value and :math:`\gamma \ge 0`. For any feasible
    :math:`u`, minus the largest score over all columns is a lower bound. HiGHS holds the dual with a row for each sign
    a coefficient may have; :math:`\alpha_j` is the difference of their multipliers.

    All signs one, :math:`\alpha \ge 0` and no offset: the one-class problem.

    Parameters
    ----------
    rows : MarginRows
        The costs are :math:`D_r = w_r / (\nu \sum w)`; the targets are not used.
    positive : bool
        Whether the coefficients of the columns must not be negative.
    intercept : {"free", "penalized"} or None
    idle_rounds : int or None
        Rounds after which an unused column may be dropped; None: never, as in the papers.

    Notes
    -----
    HiGHS sees :math:`u` divided by the largest :math:`D_r`, :math:`\gamma` divided by that and by the largest entry of
    the first columns, and rows divided by their own largest entry if it is larger.
    """

    def __init__(
        self,
        rows: MarginRows,
        *,
        positive: bool = False,
        intercept: Intercept = "free",
        idle_rounds: int | None = MAX_IDLE_ROUNDS,
    ):
        feasible_weights(rows, rows.cost, balanced=intercept == "free")  # refuses a nu that is too large
        self.rows = rows
        self.positive = positive
        self.intercept = intercept
        self._working = WorkingSet(rows.n_points, intercept == "free", idle_rounds)
        self._magnitude = 1.0  # of the first columns
        self._start_program()

    @property
    def columns(self) -> np.ndarray:
        return self._working.columns

    @property
    def batch(self) -> int:
        return BATCH

    @property
    def choosiness(self) -> float:
        return CHOOSINESS

    @property
    def rounding(self) -> float:
        return ROUNDING * float(self._working.magnitudes.max(initial=0.0))

    def negligible(self, tol: float) -> float:
        return max(MIN_VIOLATION, 0.1 * tol) * self._gamma

    def add_columns(self, columns: np.ndarray, K: np.ndarray) -> None:
        first = len(self._working) == 0
        new, magnitudes = self._working.append(columns, K)
        if first:
            self._magnitude = float(magnitudes.max(initial=0.0)) or 1.0
            self._start_program()
        self._add_rows(new, magnitudes, self.positive)

    def drop_idle(self, rounds: int | None = None) -> int:
        # Their rows are slack, so the basis stays optimal.
        sizes = self._sizes(self._working.K @ self._solution.signed_dual)
        out = self._working.drop_idle(sizes < (1.0 - MIN_SLACK) * self._gamma, rounds)
        if len(out):
            n_each = 1 if self.positive else 2
            self._lp.delete_rows(self._n_fixed + (n_each * out[:, None] + np.arange(n_each)).ravel())
        return len(out)

    def set_cost(self, cost: np.ndarray) -> None:
        rows = replace(self.rows, cost=np.asarray(cost, float))
        feasible_weights(rows, rows.cost, balanced=self.intercept == "free")
        self.rows = rows
        self._working.restart()
        largest = float(rows.cost.max())
        self._lp.set_upper(np.append(rows.cost / largest, np.inf))
        self._lp.set_row_bounds(np.array([1.0 / largest]), np.array([1.0 / largest]))

    def solve(self, seconds: float = np.inf) -> MasterSolution:
        vertex = self._lp.solve(seconds)
        coef, intercept = self._recover_primal(vertex.row_dual)
        self._working.note_use(coef)
        values = coef @ self._working.K + intercept
        objective, rho = margin_loss(self.rows, values)
        norm = float(np.abs(coef).sum()) + (abs(intercept) if self.intercept == "penalized" else 0.0)
        # The objective is homogeneous: take as much of a good model as the ball allows, nothing of a bad one.
        factor = 1.0 / norm if objective < 0 < norm else 0.0
        dual = vertex.x[:-1] * float(self.rows.cost.max())
        if len(self._working) == 0:
            dual = self.rows.cost  # any duals do; a vertex would look at few points only
        signed_dual = self.rows.signed(self._make_feasible(dual))
        self._offset_score = abs(float(signed_dual.sum())) if self.intercept == "penalized" else 0.0
        self._gamma = max(self._offset_score, self._find_largest(signed_dual))
        self._solution = MasterSolution(
            objective=factor * objective,
            coef=factor * coef,
            intercept=factor * (intercept - float(coef @ self._working.means)),
            signed_dual=signed_dual,
            dual_value=-self._gamma,
            values=factor * values,
            rho=factor * rho,
        )
        self.start_scan()
        return self._solution

    def settle(self) -> bool:
        return False

    def start_scan(self) -> None:
        self._tau = self._offset_score

    def examine(self, columns: np.ndarray, scores: np.ndarray) -> np.ndarray:
        sizes = self._sizes(scores)
        self._tau = max(self._tau, float(sizes.max(initial=0.0)))
        return sizes - self._gamma

    @property
    def tau(self) -> float:
        return self._tau

    def bound(self) -> float:
        return -self._tau

    def _sizes(self, scores: np.ndarray) -> np.ndarray:
        """What gamma bounds: the scores, in absolute value where coefficients may have either sign."""
        return scores if self.positive else np.abs(scores)

    def _find_largest(self, signed_dual: np.ndarray) -> float:
        """Largest score in the working set, at least zero."""
        return float(self._sizes(self._working.K @ signed_dual).max(initial=0.0))

    @property
    def _n_fixed(self) -> int:
        """Rows that belong to no column: sum u = 1, the balance, and those of a penalised offset."""
        return 4 if self.intercept == "penalized" else 2

    def _start_program(self) -> None:
        rows, largest = self.rows, float(self.rows.cost.max())
        n_rows = len(rows.sign)
        self._lp = GrowingLP(np.append(np.zeros(n_rows), 1.0), np.append(rows.cost / largest, np.inf))
        A = np.zeros((2, n_rows + 1))
        A[0, :-1], A[1, :-1] = 1.0, rows.sign
        imbalance = 0.0 if self.intercept == "free" else np.inf
        self._lp.add_rows(A, np.array([1.0 / largest, -imbalance]), np.array([1.0 / largest, imbalance]))
        if self.intercept == "penalized":
            self._add_rows(np.ones((1, rows.n_points)), np.ones(1), positive=False)

    def _find_heights(self, magnitudes: np.ndarray) -> np.ndarray:
        """What gamma is multiplied with in the rows of columns with these magnitudes."""
        return self._magnitude / np.maximum(magnitudes, self._magnitude)

    def _add_rows(self, new: np.ndarray, magnitudes: np.ndarray, positive: bool) -> None:
        """Add gamma - score >= 0 for each column and, next to it, gamma + score >= 0 unless ``positive``."""
        scores = (new / np.maximum(magnitudes, self._magnitude)[:, None])[:, self.rows.point] * self.rows.sign
        heights = self._find_heights(magnitudes)[:, None]
        signs = (-1.0,) if positive else (-1.0, 1.0)
        A = np.stack([np.hstack([sign * scores, heights]) for sign in signs], axis=1).reshape(-1, scores.shape[1] + 1)
        self._lp.add_rows(A, np.zeros(len(A)), np.full(len(A), np.inf))

    def _recover_primal(self, row_dual: np.ndarray) -> tuple[np.ndarray, float]:
        """Coefficients and offset (of the centred columns) from the multipliers of the rows."""
        multipliers = np.maximum(row_dual[self._n_fixed :], 0.0)
        if not self.positive:
            multipliers = multipliers[0::2] - multipliers[1::2]
        coef = self._find_heights(self._working.magnitudes) * multipliers
        if self.intercept == "penalized":
            above, below = np.maximum(row_dual[2:4], 0.0)
            return coef, float(self._find_heights(np.ones(1))[0] * (above - below))
        return coef, -self._magnitude * float(row_dual[1])  # zero where the balance is not asked for

    def _make_feasible(self, dual: np.ndarray) -> np.ndarray:
        """Clip duals into their box and move them inside it, so that they sum to one and balance as they must."""
        rows, cost, above = self.rows, self.rows.cost, self.rows.sign > 0
        dual = feasible_weights(rows, dual, balanced=self.intercept == "free")
        if self.intercept != "penalized":
            return dual
        # The offset's score is the imbalance; columns that are small beside it ask for less than HiGHS can see.
        gamma = min(1.0, self._find_largest(rows.signed(dual)))
        share = min(max(float(dual[above].sum()), 0.5 * (1.0 - gamma)), 0.5 * (1.0 + gamma))
        share = min(max(share, 1.0 - float(cost[~above].sum())), float(cost[above].sum()))  # what the box allows
        dual[above] = fill_box(dual[above], cost[above], share)
        dual[~above] = fill_box(dual[~above], cost[~above], 1.0 - share)
        return dual

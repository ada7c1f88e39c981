r"""Restricted problems with the 2-norm, solved in their duals (CG-Boost (7)-(14)).

With signed variables :math:`v_r = s_r \beta_r`, one a margin row, and the columns of the working set as the rows of
:math:`Z`, the coefficients are :math:`a = Z x` (with :math:`a \ge 0`: :math:`a = (Z x)_+`), where :math:`x_i` is the
sum of :math:`v_r` over the rows of point :math:`i`, and the dual to minimise is

.. math:: \tfrac12 \|a(x)\|^2 - \sum_r s_r t_r v_r \quad \text{s.t.} \quad v_r \text{ between } 0 \text{ and } s_r c_r,

with :math:`\sum_r v_r = 0` for a free offset; a penalised offset is one more column, of ones. The first case is a
quadratic program in a box with the Gram matrix :math:`Q = Z^\top Z` (:mod:`..machines.smo`). With :math:`a \ge 0` the
objective is quadratic in pieces: a step solves the quadratic program of the columns that are positive now, and an exact
search along it decides how far to go.

The duals price all columns. Those outside the working set take
:math:`\tfrac12 \sum_{j \notin W} \text{score}_j^2` off the dual's value: that is the gap (Proposition 4.1; positive
parts of the scores where :math:`a \ge 0`). Since zero is feasible, the duals may also be shrunk by the factor that
makes the bound largest.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import brentq

from ..machines import smo
from ..margin import MarginRows, feasible_weights, margin_loss
from .masters import ROUNDING, Intercept, MasterSolution

MAX_BATCH = 50
CHOOSINESS = 0.7  # measured: half the columns priced; with 0.5 and less models of 100 columns get worse by a point
INNER_TOL = 1e-4
MAX_STEPS = 100  # of the positive problem, which takes about ten


class _TwoNormMaster(ABC):
    """What the two problems share: the working set, and scans that add up squared scores.

    Parameters
    ----------
    rows : MarginRows
    orient : ndarray of shape (n_points,)
        Factors on the entries of every column, the column of ones of a penalised offset among them.
    positive : bool
    intercept : {"free", "penalized"} or None
    tol : float
    """

    _solution: MasterSolution

    def __init__(self, rows: MarginRows, orient: np.ndarray, positive: bool, intercept: Intercept, tol: float):
        self.rows = rows
        self.intercept = intercept
        self.columns = np.empty(0, dtype=np.intp)
        self._orient = orient
        self._dual = _Dual(orient if intercept == "penalized" else np.zeros(rows.n_points), positive, tol)

    @property
    def batch(self) -> int:
        """How many columns to add next: a tenth of the working set.

        The first columns matter most, and each changes which one is the best next.
        """
        return min(MAX_BATCH, max(1, len(self.columns) // 10))

    @property
    def rounding(self) -> float:
        return 0.0

    def negligible(self, tol: float) -> float:
        return 0.0  # at the optimum every column is used

    @property
    def choosiness(self) -> float:
        """Violation, as a share of the worst in the last full scan, from which a stratum's columns will do."""
        return CHOOSINESS

    @property
    def tau(self) -> float:
        return self._tau

    def add_columns(self, columns: np.ndarray, K: np.ndarray) -> None:
        self.columns = np.concatenate([self.columns, columns])
        self._dual.append((self._orient[:, None] * K).T)

    def drop_idle(self, rounds: int | None = None) -> int:
        return 0  # the optimum is dense

    def settle(self) -> bool:
        return False

    def start_scan(self) -> None:
        self._tau = 0.0
        self._squares = self.offset_square()

    def examine(self, columns: np.ndarray, scores: np.ndarray) -> np.ndarray:
        sizes = self._dual.sizes(scores)
        self._squares += float(sizes @ sizes)
        self._tau = max(self._tau, float(sizes.max(initial=0.0)))
        return sizes

    def bound(self) -> float:
        return self.dual_value(self._squares)

    def offset_square(self) -> float:
        """Square of the score of the column of ones, where there is one."""
        return float(self._solution.signed_dual.sum()) ** 2 if self.intercept == "penalized" else 0.0

    @abstractmethod
    def dual_value(self, squares: float) -> float:
        """Return the value of the dual, the sum of the squared scores of all columns being known."""


class QPMaster(_TwoNormMaster):
    r"""The 2-norm problem with costs.

    .. math::
        \min_{a, b, \xi}\; \tfrac12 \sum_j a_j^2 + \tfrac{\lambda}{2} b^2 + \sum_r c_r \xi_r
        \quad \text{s.t.} \quad s_r \Big(\sum_j K_{i_r j} a_j + b\Big) + \xi_r \ge t_r,\; \xi \ge 0,

    where :math:`\lambda` is 0 for a free offset and 1 for a penalised one, optionally with :math:`a \ge 0`.

    Parameters
    ----------
    rows : MarginRows
        With finite positive costs.
    positive : bool
        Whether the coefficients of the columns must not be negative.
    intercept : {"free", "penalized"} or None
    tol : float
        Relative duality gap to which the restricted problem is solved.
    """

    def __init__(
        self, rows: MarginRows, *, positive: bool = False, intercept: Intercept = "free", tol: float = INNER_TOL
    ):
        super().__init__(rows, np.ones(rows.n_points), positive, intercept, tol)
        self._index = None if np.array_equal(rows.point, np.arange(rows.n_points)) else rows.point
        self._v = np.zeros(len(rows.sign))

    def set_cost(self, cost: np.ndarray) -> None:
        """Give every row a new cost; duals at their bounds stay there if all costs change by one factor."""
        self._v = self._balance(self._v * (np.asarray(cost, float) / self.rows.cost))
        self.rows = replace(self.rows, cost=np.asarray(cost, float))

    def solve(self, seconds: float = np.inf) -> MasterSolution:
        """Solve the restricted problem from the last duals."""
        rows = self.rows
        ends = rows.sign * rows.cost
        if not self._v.any() and self._leads_down():
            self._v = self._balance(ends)  # with few columns or small costs most duals end there
        self._v, multiplier = self._dual.solve(
            linear=-rows.sign * rows.target,
            lower=np.minimum(0.0, ends),
            upper=np.maximum(0.0, ends),
            start=self._v,
            total=0.0 if self.intercept == "free" else None,
            index=self._index,
        )
        x = np.bincount(rows.point, weights=self._v, minlength=rows.n_points)
        coef = self._dual.coef(x)
        intercept = -float(multiplier) if self.intercept == "free" else float(x.sum()) * (self.intercept is not None)
        values = self._dual.values(coef) + intercept
        squares = float(coef @ coef) + (intercept**2 if self.intercept == "penalized" else 0.0)
        self._linear = float((rows.sign * rows.target) @ self._v)
        self._solution = MasterSolution(
            objective=0.5 * squares + rows.loss(values),
            coef=coef,
            intercept=intercept,
            signed_dual=x,
            dual_value=self.dual_value(squares),
            values=values,
        )
        self.start_scan()
        return self._solution

    def dual_value(self, squares: float) -> float:
        return shrunken_value(self._linear, squares)

    def _balance(self, v: np.ndarray) -> np.ndarray:
        """Return duals whose heavier side is shrunk until they sum to zero, where the offset is free."""
        if self.intercept != "free":
            return v
        above, below = max(v[v > 0].sum(), 1e-300), max(-v[v < 0].sum(), 1e-300)
        return v * np.where(v > 0, min(1.0, below / above), min(1.0, above / below))

    def _leads_down(self) -> bool:
        """Return whether the dual falls all the way from zero to the far ends of the box."""
        x = self.rows.signed(self.rows.cost)
        coef = self._dual.coef(x)
        return float(coef @ coef) + self._dual.offset_square(x) <= float(self.rows.target @ self.rows.cost)


class NuQPMaster(_TwoNormMaster):
    r"""The 2-norm problem that chooses its margin.

    .. math::
        \min_{a, b, \rho, \xi}\; \tfrac12 \sum_j a_j^2 + \tfrac{\lambda}{2} b^2 - \rho + \sum_r D_r \xi_r
        \quad \text{s.t.} \quad s_r \Big(\sum_j K_{i_r j} a_j + b\Big) \ge \rho - \xi_r,\; \xi \ge 0.

    In the Lagrangian, :math:`\rho` free gives :math:`\sum_r u_r = 1` and a free :math:`b` gives
    :math:`\sum_r s_r u_r = 0`; with both, each side has half of the weight. The dual is

    .. math::
        \max_u\; -\tfrac12 \sum_j a_j^2 - \tfrac{\lambda}{2} \Big(\sum_r s_r u_r\Big)^2, \quad
        a_j = \sum_r u_r s_r K_{i_r j}, \quad 0 \le u_r \le D_r,

    with the positive parts of :math:`a_j` where :math:`a \ge 0`. Summed over all columns it is a lower bound on the
    optimum. All signs one and no offset: the one-class problem.

    Parameters
    ----------
    rows : MarginRows
        One for each point; the costs are :math:`D_r`, the targets are not used.
    positive : bool
        Whether the coefficients of the columns must not be negative.
    intercept : {"free", "penalized"} or None
    tol : float
        Relative duality gap to which the restricted problem is solved.
    """

    def __init__(
        self, rows: MarginRows, *, positive: bool = False, intercept: Intercept = "free", tol: float = INNER_TOL
    ):
        super().__init__(rows, rows.sign, positive, intercept, tol)  # the dual is held in u
        self._u = feasible_weights(rows, rows.cost, balanced=intercept == "free")
        self._sides = (rows.sign < 0).astype(np.intp) * (intercept == "free")

    @property
    def rounding(self) -> float:
        return ROUNDING * self._dual.largest

    def set_cost(self, cost: np.ndarray) -> None:
        """Give every row a new cost."""
        self.rows = replace(self.rows, cost=np.asarray(cost, float))
        self._u = feasible_weights(self.rows, self._u, balanced=self.intercept == "free")

    def solve(self, seconds: float = np.inf) -> MasterSolution:
        """Solve the restricted problem from the last duals."""
        rows = self.rows
        zero = np.zeros(rows.n_points)
        u, multiplier = self._dual.solve(linear=zero, lower=zero, upper=rows.cost, start=self._u, groups=self._sides)
        self._u = feasible_weights(rows, u, balanced=self.intercept == "free")
        x = rows.sign * self._u
        coef = self._dual.coef(self._u)
        if self.intercept == "free":
            intercept = 0.5 * float(multiplier[1] - multiplier[0])  # they are rho - b and rho + b
        else:
            intercept = float(x.sum()) * (self.intercept is not None)
        values = rows.sign * self._dual.values(coef) + intercept
        loss, rho = margin_loss(rows, values)
        squares = float(coef @ coef) + (intercept**2 if self.intercept == "penalized" else 0.0)
        self._solution = MasterSolution(
            objective=0.5 * squares + loss,
            coef=coef,
            intercept=intercept,
            signed_dual=x,
            dual_value=self.dual_value(squares),
            values=values,
            rho=rho,
        )
        self.start_scan()
        return self._solution

    def dual_value(self, squares: float) -> float:
        return -0.5 * squares


def shrunken_value(linear: float, squares: float) -> float:
    """Return the largest value of ``factor * linear - factor**2 * squares / 2`` over factors from 0 to 1."""
    factor = 1.0 if squares <= linear else linear / squares if linear > 0.0 else 0.0  # squares may be 0
    return factor * linear - 0.5 * factor**2 * squares


class _Dual:
    r"""The problem :math:`\min_v \tfrac12 \|a(x)\|^2 + p^\top v` in a box, with :math:`a = Z x` or its positive part.

    Parameters
    ----------
    offset : ndarray of shape (n_points,)
        One more column, whose coefficient may have either sign and is not among :meth:`coef`.
    positive : bool
    tol : float
        Relative duality gap.
    """

    def __init__(self, offset: np.ndarray, positive: bool, tol: float):
        self.positive = positive
        self.tol = tol
        self._offset = offset
        self._Z = np.empty((0, len(offset)))
        self._Q = np.outer(offset, offset)  # Gram matrix of the columns that are active, the offset's among them
        self._active = np.empty(0, dtype=bool)

    def append(self, Z: np.ndarray) -> None:
        """Add columns, one a row."""
        self._Z = np.concatenate([self._Z, Z])
        self._active = np.concatenate([self._active, np.ones(len(Z), dtype=bool)])
        self._Q += Z.T @ Z

    @property
    def largest(self) -> float:
        """The largest diagonal entry of the Gram matrix, which bounds the value for weights that sum to one."""
        return float(self._Q.diagonal().max())

    def sizes(self, scores: np.ndarray) -> np.ndarray:
        """Return what of each score counts."""
        return np.maximum(scores, 0.0) if self.positive else np.abs(scores)

    def coef(self, x: np.ndarray) -> np.ndarray:
        """Return the coefficients that belong to the signed duals ``x``."""
        return np.maximum(self._Z @ x, 0.0) if self.positive else self._Z @ x

    def offset_square(self, x: np.ndarray) -> float:
        """Return the square of the offset's coefficient."""
        return float(self._offset @ x) ** 2

    def values(self, coef: np.ndarray) -> np.ndarray:
        """Return the combination of the columns at the points."""
        return coef @ self._Z

    def solve(self, **problem: Any) -> tuple[np.ndarray, Any]:
        """Return the solution and the multipliers of the sums; the arguments are those of :func:`.smo.solve`."""
        if self.positive:
            return self._solve_by_pieces(**problem)
        result = smo.solve(self._Q, tol=self.tol, **problem)
        return result.x, result.multiplier

    def _solve_by_pieces(
        self,
        *,
        linear: np.ndarray,
        lower: np.ndarray,
        upper: np.ndarray,
        start: np.ndarray,
        index: np.ndarray | None = None,
        groups: np.ndarray | None = None,
        total: float | None = None,
    ) -> tuple[np.ndarray, Any]:
        point = np.arange(len(linear)) if index is None else index
        v, value = start, np.inf
        for _ in range(MAX_STEPS):
            result = smo.solve(
                self._Q, linear, lower, upper, start=v, index=index, groups=groups, total=total, tol=0.1 * self.tol
            )
            multiplier: Any = result.multiplier  # an array if there are groups
            v = self._search(v, result.x, linear, point)
            x = self._sum_by_point(v, point)
            coef = self.coef(x)
            slope = (self.values(coef) + self._offset * (self._offset @ x))[point] + linear
            last, value = value, 0.5 * (float(coef @ coef) + self.offset_square(x)) + float(linear @ v)
            reduced = slope - (multiplier if groups is None else multiplier[groups])
            gap = float(np.maximum(reduced * (v - lower), reduced * (v - upper)).sum())
            same = self._activate(self._Z @ x >= 0.0)
            if gap <= self.tol * abs(value) or (value >= last and same):
                break  # in the second case no further step is possible at rounding
        return v, multiplier

    def _search(self, v: np.ndarray, aim: np.ndarray, linear: np.ndarray, point: np.ndarray) -> np.ndarray:
        """Return the best point between ``v`` and ``aim``: the zero of a derivative that never falls."""
        x, step = self._sum_by_point(v, point), self._sum_by_point(aim - v, point)
        scores, change = self._Z @ x, self._Z @ step
        offset, offset_change = float(self._offset @ x), float(self._offset @ step)
        constant = float(linear @ (aim - v))

        def derivative(fraction: float) -> float:
            coef = np.maximum(scores + fraction * change, 0.0)
            return float(coef @ change) + (offset + fraction * offset_change) * offset_change + constant

        if derivative(1.0) <= 0.0:
            return aim
        if derivative(0.0) >= 0.0:
            return v
        return v + brentq(derivative, 0.0, 1.0, xtol=1e-15) * (aim - v)

    def _activate(self, active: np.ndarray) -> bool:
        """Let the Gram matrix be that of these columns; return whether it is so already."""
        changed = active != self._active
        if 2 * changed.sum() > active.sum():
            Z = self._Z[active]
            self._Q = Z.T @ Z + np.outer(self._offset, self._offset)
        elif changed.any():
            Z = self._Z[changed]
            self._Q += Z.T @ (np.where(active, 1.0, -1.0)[changed, None] * Z)
        self._active = active
        return not changed.any()

    def _sum_by_point(self, v: np.ndarray, point: np.ndarray) -> np.ndarray:
        return np.bincount(point, weights=v, minlength=len(self._offset))

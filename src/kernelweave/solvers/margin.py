r"""Margin constraints as rows: one form for classification, regression and one-class problems.

Row :math:`r` asks

.. math:: s_r f(x_{i_r}) + \xi_r \ge t_r, \qquad \xi_r \ge 0, \qquad \text{at cost } c_r \xi_r .

Classification has one row a point with :math:`s = y`, :math:`t = 1`. Regression with an insensitive zone of
:math:`\varepsilon` has two: :math:`s = \pm 1`, :math:`t = \pm y - \varepsilon`. One-class problems have one with
:math:`s = 1`. The multiplier of row :math:`r` is :math:`\beta_r \in [0, c_r]`; the *signed dual* of point :math:`i` is
the sum of :math:`s_r \beta_r` over its rows. Machines are trained in the dual of these rows (:meth:`MarginRows.dual`),

.. math:: \min_v\; \tfrac12 x^\top K x - \sum_r s_r t_r v_r \quad \text{s.t.} \quad
    v_r = s_r \beta_r \text{ between } 0 \text{ and } s_r c_r, \qquad x_i = \textstyle\sum_{r: i_r = i} v_r ,

with a fixed :math:`\sum_r v_r` where there is a free offset. At the cost :math:`\tfrac12 c_r \xi_r^2` the box is open,
and :math:`\tfrac12 v_r^2 / c_r` is added.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

EPS = float(np.finfo(float).eps)
ROUNDING = 1e-12  # sums of costs that should be one are one up to this


@dataclass(frozen=True)
class MarginRows:
    """Margin constraints on the values of a function at ``n_points`` points.

    Attributes
    ----------
    sign, target, cost : ndarray of shape (n_rows,)
    point : ndarray of shape (n_rows,)
        The point each row speaks of.
    n_points : int
    """

    sign: np.ndarray
    point: np.ndarray
    target: np.ndarray
    cost: np.ndarray
    n_points: int

    def margins(self, f: np.ndarray) -> np.ndarray:
        """Return ``s_r f(x_{i_r})`` of every row for function values ``f`` at the points."""
        return self.sign * f[self.point]

    def slack(self, f: np.ndarray) -> np.ndarray:
        """Return by how much every row misses its target; zero where it does not."""
        return np.maximum(0.0, self.target - self.margins(f))

    def at(self, points: np.ndarray) -> MarginRows:
        """Return the margins at some of the points; the function is still one of all of them.

        Examples
        --------
        >>> rows = regression_rows(np.array([5.0, 6.0, 7.0]), 0.5, np.ones(3)).at(np.array([0, 2]))
        >>> rows.point.tolist(), rows.target.tolist(), rows.n_points
        ([0, 2, 0, 2], [4.5, 6.5, -5.5, -7.5], 3)
        """
        here = np.isin(self.point, points)
        return MarginRows(self.sign[here], self.point[here], self.target[here], self.cost[here], self.n_points)

    def loss(self, f: np.ndarray) -> float:
        """Return the total cost of the violated margins for function values ``f`` at the points."""
        return float(self.cost @ self.slack(f))

    def dual(self, *, squared: bool = False, at: float | None = None, total: float | None = 0.0) -> DualProblem:
        r"""Return the dual of a machine with these margins: one variable a row, :math:`s_r \beta_r`.

        Parameters
        ----------
        squared : bool
            Whether a violation costs :math:`\tfrac12 c_r \xi_r^2`: there is no box, and the machine needs the ridge
            :math:`1/c_r`.
        at : float, optional
            Close the box of squared costs where it does not bind: the optimum costs no more than the constant function
            of this value, so :math:`c_r \xi_r^2` is at most twice as much as that costs. None leaves it open.
        total : float or None
            The sum of the variables: 0 for a free offset, 1 for problems that choose their margin, None for no offset.

        Returns
        -------
        DualProblem

        Examples
        --------
        >>> problem = classification_rows(np.array([1.0, -1.0]), np.array([3.0, 4.0])).dual()
        >>> problem.linear.tolist(), problem.lower.tolist(), problem.upper.tolist()
        ([-1.0, 1.0], [0.0, -4.0], [3.0, 0.0])
        """
        ends = self.sign * (self._squared_box(at) if squared else self.cost)
        index = None if np.array_equal(self.point, np.arange(self.n_points)) else self.point
        linear = 0.0 - self.sign * self.target  # not -0
        return DualProblem(linear, np.minimum(0.0, ends), np.maximum(0.0, ends), total, index)

    def _squared_box(self, at: float | None) -> np.ndarray:
        """Return the largest dual of each row at a squared cost."""
        if at is None:
            return np.full(len(self.cost), np.inf)
        slack = self.slack(np.full(self.n_points, at))
        # where the constant meets all margins, zero is the optimum: the box is as small as can be, but not empty
        return np.asarray(np.maximum(np.sqrt(self.cost * (self.cost * slack**2).sum()), self.cost * EPS))

    def signed(self, dual: np.ndarray) -> np.ndarray:
        """Return the signed dual of every point."""
        return np.bincount(self.point, weights=self.sign * dual, minlength=self.n_points)


@dataclass(frozen=True, eq=False)
class DualProblem:
    """The dual of one machine: minimise ``1/2 x'Kx + linear'x`` over a box.

    Attributes
    ----------
    linear, lower, upper : ndarray of shape (n_variables,)
        Bounds may be infinite, as with the squared hinge; the box must hold 0 where they are.
    total : float or None
        The sum of the variables; None for no equality.
    index : ndarray of shape (n_variables,), optional
        The row of the kernels of each variable; variables may share a row. By default, variables are rows.
    """

    linear: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    total: float | None = 0.0
    index: np.ndarray | None = None

    @property
    def rows(self) -> np.ndarray:
        """The row of the kernels of each variable."""
        return np.arange(len(self.linear)) if self.index is None else self.index

    def free(self, x: np.ndarray) -> np.ndarray:
        """Return which variables are inside the box."""
        return np.asarray((x > self.lower) & (x < self.upper))

    def at(self, rows: np.ndarray, share: float) -> DualProblem:
        """Return the problem of some sorted rows that stand for all as ``share`` of them: the box is so much wider."""
        kept = np.flatnonzero(np.bincount(rows, minlength=self.rows.max() + 1)[self.rows])
        lower, upper = self.lower[kept] / share, self.upper[kept] / share
        return DualProblem(self.linear[kept], lower, upper, self.total, np.searchsorted(rows, self.rows[kept]))


def classification_rows(signs: np.ndarray, cost: np.ndarray) -> MarginRows:
    """Return the rows ``y_i f(x_i) + xi_i >= 1`` for labels ``signs`` in {-1, +1}."""
    n = len(signs)
    return MarginRows(np.asarray(signs, float), np.arange(n), np.ones(n), np.asarray(cost, float), n)


def regression_rows(targets: np.ndarray, epsilon: float, cost: np.ndarray) -> MarginRows:
    """Return the rows ``f(x_i) + xi_i >= y_i - epsilon`` and ``-f(x_i) + eta_i >= -y_i - epsilon``."""
    n = len(targets)
    return MarginRows(
        sign=np.repeat([1.0, -1.0], n),
        point=np.tile(np.arange(n), 2),
        target=np.concatenate([targets, -targets]) - epsilon,
        cost=np.tile(np.asarray(cost, float), 2),
        n_points=n,
    )


def one_class_rows(n: int, cost: np.ndarray) -> MarginRows:
    """Return the rows ``f(x_i) + xi_i >= 0``; problems that choose their margin ask for more than zero."""
    return MarginRows(np.ones(n), np.arange(n), np.zeros(n), np.asarray(cost, float), n)


def margin_loss(rows: MarginRows, f: np.ndarray) -> tuple[float, float]:
    r"""Return :math:`\min_\rho -\rho + \sum_r c_r (\rho - s_r f(x_{i_r}))_+` and the :math:`\rho` that reaches it.

    The slope in :math:`\rho` is minus one plus the cost of the margins below it, so :math:`\rho` is the first margin at
    which these costs reach one.
    """
    margins = rows.margins(f)
    order = np.argsort(margins, kind="stable")
    reached = np.searchsorted(np.cumsum(rows.cost[order]), 1.0 - ROUNDING)
    rho = float(margins[order[min(int(reached), len(order) - 1)]])
    return float(rows.cost @ np.maximum(0.0, rho - margins)) - rho, rho


def feasible_weights(rows: MarginRows, weights: np.ndarray, *, balanced: bool) -> np.ndarray:
    """Return weights near the given ones, between 0 and the costs, that sum to 1; to 1/2 on each side if ``balanced``.

    Where the costs are too small for that, the problem has no margin to choose: a ``ValueError``.
    """
    weights, above = np.clip(weights, 0.0, rows.cost), rows.sign > 0
    total = float(rows.cost.sum())
    smaller = min(float(rows.cost[above].sum()), float(rows.cost[~above].sum()))
    largest_nu = min(1.0, 2.0 * smaller / total) if balanced else 1.0
    if largest_nu * total < 1.0 - 1e-9:
        why = ", with a free offset twice the share of the lighter side: 2 min(w+, w-) / w" if balanced else ""
        raise ValueError(f"nu is too large: it is {1.0 / total:.6g} and may be at most {largest_nu:.6g}{why}.")
    if not balanced:
        return fill_box(weights, rows.cost, 1.0)
    out = np.empty(len(weights))
    for side in (above, ~above):
        out[side] = fill_box(weights[side], rows.cost[side], 0.5)
    return out


def fill_box(weights: np.ndarray, upper: np.ndarray, total: float) -> np.ndarray:
    """Return weights in the box [0, upper], as the given ones are, that sum to ``total``."""
    now = weights.sum()
    if now > total:
        return weights * (total / now)
    room = upper - weights  # filled in proportion
    return weights + room * min(1.0, (total - now) / max(room.sum(), 1e-300))

r"""Margin constraints as rows: one form for classification, regression and one-class problems.

Row :math:`r` asks

.. math:: s_r f(x_{i_r}) + \xi_r \ge t_r, \qquad \xi_r \ge 0, \qquad \text{at cost } c_r \xi_r .

Classification has one row a point with :math:`s = y`, :math:`t = 1`. Regression with an insensitive zone of
:math:`\varepsilon` has two: :math:`s = \pm 1`, :math:`t = \pm y - \varepsilon`. The multiplier of row :math:`r` is
:math:`\beta_r \in [0, c_r]`; the *signed dual* of point :math:`i` is the sum of :math:`s_r \beta_r` over its rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


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

    def loss(self, f: np.ndarray) -> float:
        """Return the total cost of the violated margins for function values ``f`` at the points."""
        return float(self.cost @ np.maximum(0.0, self.target - self.sign * f[self.point]))

    def signed(self, dual: np.ndarray) -> np.ndarray:
        """Return the signed dual of every point."""
        return np.bincount(self.point, weights=self.sign * dual, minlength=self.n_points)


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

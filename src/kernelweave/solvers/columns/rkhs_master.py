r"""The restricted problem with the generalised RKHS norm (CG-Boost section 2.3, SSMK (4)).

.. math::
    \min_{\alpha, b, \xi}\; \tfrac12 \sum_p \alpha_p^\top K_p \alpha_p + \sum_r c_r \xi_r
    \quad \text{s.t.} \quad s_r \Big(\sum_p (K_p \alpha_p)_{i_r} + b\Big) + \xi_r \ge t_r,\; \xi \ge 0 ,

with :math:`K_p` positive semi-definite and centres at the points themselves. Over all columns it is the SVM with the
kernel :math:`\sum_p K_p`. On a working set :math:`W_p` of each kernel, the incomplete Cholesky factor :math:`Z_p` with
:math:`Z_p Z_p^\top \approx K_p`, exact on the columns of :math:`W_p`, turns the norm into a 2-norm: with
:math:`L_p = (Z_p)_{W_p}` and :math:`a_p = L_p^\top \alpha_p` it is :math:`\tfrac12 \|a\|^2`, and
:math:`\sum_p Z_p a_p` are the values. So the problem is that of :mod:`.qp_masters` on the columns of the factors, which
grow by one with each column of a kernel.

A column of kernel :math:`p` at point :math:`i` can lower the dual by the square of

.. math:: \frac{(K_p x)_i - (Z_p a_p)_i}{\sqrt{(K_p)_{ii} - \|(Z_p)_i\|^2}},

the score of the factor's column that it would become. With all columns priced, :math:`\sum_p x^\top K_p x` takes the
place of the sum of squared scores in the bound: the gap is that to the SVM over all columns.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.linalg import solve_triangular

from ..margin import MarginRows
from .masters import MasterSolution
from .qp_masters import NuQPMaster, QPMaster

MIN_REMAINDER = 1e-9  # share of the diagonal: what is left of a column that the working set spans up to rounding
MAX_NEGATIVE_REMAINDER = 1e-7  # share of a quadratic form's terms: below it the form is negative by more than rounding


class NotPSDError(ValueError):
    """A kernel turned out not to be positive semi-definite.

    Attributes
    ----------
    kernel : int
        Its number.
    """

    def __init__(self, kernel: int):
        super().__init__(f"Kernel {kernel} is not symmetric and positive semi-definite.")
        self.kernel = kernel


class RKHSMaster:
    """The problem with the generalised RKHS norm, as a 2-norm problem on Cholesky factors.

    Parameters
    ----------
    inner : QPMaster or NuQPMaster
        The 2-norm problem, without columns and with coefficients of either sign.
    diagonals : ndarray of shape (n_kernels, n_points)
        Diagonals of the kernels. Column ``p * n_points + i`` is kernel ``p`` at point ``i``.
    """

    def __init__(self, inner: QPMaster | NuQPMaster, diagonals: np.ndarray):
        self._inner = inner
        self._diagonals = diagonals
        self._rest = diagonals.astype(float)  # of the diagonals, beyond what the factors explain
        self._factors = [np.empty((0, diagonals.shape[1])) for _ in diagonals]  # Z_p', one row a column
        self._members = np.empty(0, dtype=np.intp)  # the kernel of each column of the inner problem
        self.columns = np.empty(0, dtype=np.intp)

    @property
    def rows(self) -> MarginRows:
        """The margins that the problem asks for."""
        return self._inner.rows

    @property
    def batch(self) -> int:
        """How many columns to add next."""
        return self._inner.batch

    @property
    def choosiness(self) -> float:
        return self._inner.choosiness

    @property
    def rounding(self) -> float:
        return self._inner.rounding

    def negligible(self, tol: float) -> float:
        return 0.0

    @property
    def tau(self) -> float:
        return self._tau

    def add_columns(self, columns: np.ndarray, K: np.ndarray) -> None:
        kernel, point = np.divmod(columns, self._diagonals.shape[1])
        new = []
        for p, i, column in zip(kernel, point, K.T, strict=True):
            Z = self._factors[p]
            z = column - Z[:, i] @ Z
            if abs(z[i] - self._rest[p, i]) > MAX_NEGATIVE_REMAINDER * max(self._diagonals[p].max(), Z[:, i] @ Z[:, i]):
                raise NotPSDError(int(p))  # the column's own entry is not what the diagonal says
            # a column may be spanned by others that came in with the same portion
            z = z / np.sqrt(z[i]) if z[i] > MIN_REMAINDER * self._diagonals[p, i] else np.zeros(len(z))
            self._factors[p] = np.concatenate([Z, z[None]])
            self._rest[p] -= z**2
            new.append(z)
        self.columns = np.concatenate([self.columns, columns])
        self._members = np.concatenate([self._members, kernel])
        for p in np.unique(kernel):
            self._require_semidefinite(int(p))
        self._inner.add_columns(columns, np.array(new).T)

    def _require_semidefinite(self, p: int) -> None:
        r"""Refuse a kernel of which a remainder is negative by more than rounding.

        The remainder at point :math:`j` is :math:`v^\top K_p v` with :math:`v` one at :math:`j` and
        :math:`-K_{WW}^{-1} K_{Wj}` on the working set. Where columns of the set are almost spanned by others, :math:`v`
        is large, and so is the rounding of the remainder: it counts beside the terms that it is the sum of.
        """
        j = int(np.argmin(self._rest[p]))
        if self._rest[p, j] >= -MAX_NEGATIVE_REMAINDER * self._diagonals[p].max():
            return
        kept, L, points = self._take_triangle(p)
        v = solve_triangular(L, self._factors[p][kept, j], lower=True, trans="T")
        self._require_form(p, self._rest[p, j], np.append(v, 1.0), np.append(points, j))

    def _require_form(self, p: int, form: float, v: np.ndarray, points: np.ndarray) -> None:
        r"""Refuse a kernel for which :math:`v^\top K_p v`, at some points, is negative beyond its rounding.

        Of a positive semi-definite kernel the form has terms up to :math:`(\sum_i |v_i| \sqrt{(K_p)_{ii}})^2`.
        """
        size = np.abs(v) @ np.sqrt(np.maximum(self._diagonals[p, points], 0.0))
        if form < -MAX_NEGATIVE_REMAINDER * size**2:
            raise NotPSDError(p)

    def _take_triangle(self, p: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the columns of a factor that are not zero, its lower triangle at their points, and the points."""
        kept = np.flatnonzero(self._factors[p].any(axis=1))
        points = self.columns[self._members == p][kept] % self._diagonals.shape[1]
        return kept, self._factors[p][np.ix_(kept, points)].T, points

    def drop_idle(self, rounds: int | None = None) -> int:
        return 0

    def set_cost(self, cost: np.ndarray) -> None:
        """Give every row a new cost."""
        self._inner.set_cost(cost)

    def solve(self, seconds: float = np.inf) -> MasterSolution:
        """Solve the restricted problem; the coefficients are those of the kernels' columns."""
        solution = self._inner.solve(seconds)
        coef = np.zeros(len(self.columns))
        self._values = np.zeros(self._diagonals.shape)
        for p, Z in enumerate(self._factors):
            here = np.flatnonzero(self._members == p)
            if len(here):
                a = solution.coef[here]
                self._values[p] = a @ Z
                kept, L, _ = self._take_triangle(p)
                coef[here[kept]] = solve_triangular(L, a[kept], lower=True, trans="T")
        self._solution = solution
        self.start_scan()
        return replace(solution, coef=coef)

    def settle(self) -> bool:
        return False

    def start_scan(self) -> None:
        self._tau = 0.0
        self._forms = np.zeros(len(self._diagonals))

    def examine(self, columns: np.ndarray, scores: np.ndarray) -> np.ndarray:
        kernel, point = np.divmod(columns, self._diagonals.shape[1])
        np.add.at(self._forms, kernel, self._solution.signed_dual[point] * scores)
        rest = self._rest[kernel, point]
        open_ = rest > MIN_REMAINDER * self._diagonals[kernel, point]
        violations = np.zeros(len(columns))
        missing = np.abs(scores - self._values[kernel, point])
        violations[open_] = missing[open_] / np.sqrt(rest[open_])
        self._tau = max(self._tau, float(violations.max(initial=0.0)))
        return violations

    def bound(self) -> float:
        for p, form in enumerate(self._forms):
            self._require_form(p, form, self._solution.signed_dual, np.arange(self._diagonals.shape[1]))
        return self._inner.dual_value(self._inner.offset_square() + float(np.maximum(self._forms, 0.0).sum()))

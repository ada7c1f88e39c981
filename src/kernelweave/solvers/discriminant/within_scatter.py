r"""Kernel weights of binary discriminant analysis with the scatter within the classes (Kim, Magnani and Boyd).

With :math:`\phi` the features of the points, one a column, :math:`d = \mu^+ - \mu^- = \phi a` for the :math:`a` of (8).
The scatter within the classes is :math:`c_+ S^+ + c_- S^- = \phi J J^\top \phi^\top`, where :math:`J` is block-diagonal
with the blocks :math:`\sqrt{c_\pm / m_\pm}\, (I - e e^\top / m_\pm)`. The largest value of (3) over directions is (5),

.. math:: F_1 = d^\top (\phi J J^\top \phi^\top + \lambda I)^{-1} d
        = \frac1\lambda \min_z\; \|d - \phi J z\|^2 + \lambda \|z\|^2 .

(The right-hand side is ridge regression of :math:`d` on :math:`A = \phi J`; its minimum
:math:`d^\top d - d^\top A (A^\top A + \lambda I)^{-1} A^\top d` is (9), and :math:`\lambda d^\top (A A^\top + \lambda
I)^{-1} d` by the identity of Sherman, Morrison and Woodbury.) In the kernel :math:`G = \phi^\top \phi`, with
:math:`v = a - J z`,

.. math:: F_1(\theta) = \frac1\lambda \min_z\; v^\top G(\theta) v + \lambda z^\top z, \qquad
    G(\theta) = \sum_i \theta_i G_i, \quad \theta \ge 0,\; \sum_i \theta_i = 1 . \tag{10}

As a minimum of functions that are linear in :math:`\theta` it is concave, and it is to be *maximised*. At the best
:math:`z`, :math:`(J G J + \lambda I) z = J G a`, and with the Cholesky factor :math:`L` of that matrix

.. math:: \partial_i F_1 = v^\top G_i v / \lambda, \qquad
    \partial_i \partial_l F_1 = -\tfrac2\lambda (L^{-1} J G_i v)^\top (L^{-1} J G_l v) .

Where the kernels are given by features, :math:`G_i = Z_i Z_i^\top`, of a total rank r below half of the points, all of
this happens in r dimensions. With :math:`J Z_i = Q R_i` for one orthonormal :math:`Q` of r columns,
:math:`b_i = Z_i^\top a` and :math:`z = Q x`,

.. math:: (R(\theta) + \lambda I)\, x = \sum_i \theta_i R_i b_i, \quad R(\theta) = \sum_i \theta_i R_i R_i^\top, \qquad
    u_i = Z_i^\top v = b_i - R_i^\top x, \quad v^\top G_i v = u_i^\top u_i, \quad J G_i v = Q R_i u_i .

Of (3) follows :math:`c_\pm = m_\pm / m`. The :math:`J` that the paper prints has :math:`c_\pm = 1`, for which (9) is
not the maximum of (3) but of that with :math:`S^+ + S^-` in its place. Both are solved; (3) by default.

References
----------
S.-J. Kim, A. Magnani, S. Boyd: Optimal kernel selection in kernel Fisher discriminant analysis. ICML 2006.
J. Ye, J. Chen, S. Ji: Discriminant kernel and regularization parameter learning via semidefinite programming. ICML
2007, (3)-(10).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtrs

from ..deadline import NO_DEADLINE, Deadline
from ..machines.kernel_stack import Factor, KernelStack, Member
from ..result import Certificate, FitState
from .matrix_fractional import MAX_RANK_SHARE, is_beyond_precision, total_rank
from .simplex_newton import MAX_VALUE, Derivatives, DiscriminantResult, minimise_on_simplex

__all__ = ["class_difference", "solve_within_scatter", "within_center"]

EPS = float(np.finfo(float).eps)


def solve_within_scatter(
    kernels: KernelStack | Sequence[Member],
    signs: np.ndarray,
    *,
    ridge: float,
    shares: tuple[float, float] | None = None,
    start: np.ndarray | None = None,
    tol: float = 1e-6,
    max_iter: int = 100,
    callback: Callable[[FitState], object] | None = None,
    deadline: Deadline = NO_DEADLINE,
) -> DiscriminantResult:
    r"""Maximise :math:`F_1(\theta)` over the weights of kernels on the unit simplex.

    Parameters
    ----------
    kernels : KernelStack, or sequence of ndarray of shape (n_points, n_points) or Factor
        Divided by the scales of the stack. Centring them changes nothing. If all are factors of a total rank below
        half of the points, no matrix with a row and a column for each point is formed.
    signs : ndarray of shape (n_points,)
        1 and -1 for the two classes; 0 for points of neither, which have no part in it.
    ridge : float
        :math:`\lambda > 0`.
    shares : (float, float), optional
        :math:`c_+, c_-`; by default :math:`m_+/m, m_-/m`, the problem (3). (1, 1) is the paper's J.
    start, tol, max_iter, callback, deadline
        As for :func:`.solve_matrix_fractional`.

    Returns
    -------
    DiscriminantResult
        ``x`` holds the weights and the objective is :math:`F_1`; the certificate bounds how far it is *below* the
        optimum. ``dual`` is :math:`v / \lambda`, the coefficients of the best direction (7), and ``forms`` are
        :math:`v^\top G_i v / \lambda`.

    Examples
    --------
    >>> y, x = np.array([1.0, 1.0, -1.0, -1.0]), np.array([1.0, 2.0, -1.0, -2.0])
    >>> result = solve_within_scatter([np.outer(x, x), np.eye(4)], y, ridge=0.75)
    >>> result.x, result.objective  # d = 3, the scatter is 1/4
    (array([1., 0.]), 9.0)
    """
    if not (np.isfinite(ridge) and ridge > 0.0):
        raise ValueError(f"ridge must be a positive number; got {ridge!r}. It cannot be learned in this form.")
    stack = kernels if isinstance(kernels, KernelStack) else KernelStack(kernels)
    signs = np.asarray(signs, dtype=float)
    if signs.shape != (stack.n_points,) or not np.all(np.isin(signs, (-1.0, 0.0, 1.0))):
        raise ValueError(f"signs must hold 1, -1 or 0 for each of the {stack.n_points} points; got {signs}.")
    few = total_rank(stack) <= MAX_RANK_SHARE * stack.n_points
    problem = (_WithinFactors if few else _WithinScatter)(stack, signs, ridge, shares)

    def report_ratio(state: FitState) -> object:
        """Show the ratio, which is maximised, where its negative is minimised."""
        return callback is not None and callback(replace(state, objective=-state.objective, bound=-state.bound))

    result = minimise_on_simplex(
        problem, start=start, tol=tol, max_iter=max_iter, callback=report_ratio, deadline=deadline
    )
    return replace(
        result,
        objective=-result.objective,
        dual=problem.dual(result.dual),
        certificate=Certificate(result.certificate.gap, -result.objective),
        history=tuple({**record, "objective": -record["objective"]} for record in result.history),
    )


def class_difference(signs: np.ndarray) -> np.ndarray:
    """Return the vector a of (8): 1/m+ on the positive points, -1/m- on the negative ones."""
    counts = np.count_nonzero(signs > 0), np.count_nonzero(signs < 0)
    if len(signs) == 0 or not all(counts):
        raise ValueError(f"signs must hold 1 and -1; got {counts[0]} positive and {counts[1]} negative points.")
    return np.where(signs > 0, 1.0 / counts[0], np.where(signs < 0, -1.0 / counts[1], 0.0))


def within_center(signs: np.ndarray, shares: tuple[float, float] | None, X: np.ndarray) -> np.ndarray:
    """Return J X: rows less the mean of their class, times the root of the class's share by its size."""
    out = np.zeros(X.shape)
    n_labeled = np.count_nonzero(signs)
    for k, sign in enumerate((1.0, -1.0)):
        rows = np.flatnonzero(signs == sign)
        share = len(rows) / n_labeled if shares is None else shares[k]
        out[rows] = np.sqrt(share / len(rows)) * (X[rows] - X[rows].mean(axis=0))
    return out


class _WithinScatter:
    """Minus F_1, as a function of weights."""

    def __init__(self, stack: KernelStack, signs: np.ndarray, ridge: float, shares: tuple[float, float] | None):
        self.stack, self.ridge, self.signs, self.shares = stack, ridge, signs, shares
        self.a = class_difference(signs)
        self.n_weights, self.n_cholesky = len(stack), 0

    def value(self, weights: np.ndarray) -> float:
        G = self.stack.combine(weights)
        inner = self._center(np.ascontiguousarray(self._center(G).T))
        inner.flat[:: len(G) + 1] += self.ridge
        self.n_cholesky += 1
        self.factor, failed = dpotrf(inner.T, lower=1, clean=0, overwrite_a=1)
        if failed or is_beyond_precision(self.factor, self.ridge):
            return np.inf
        self.z = _solve_factored(self.factor, self._center(G @ self.a))
        self.v = self.a - self._center(self.z)
        # not a'Ga - a'GJz, which would lose what the ridge divides by; z being best, its error counts squared
        value = max(0.0, float(self.v @ G @ self.v)) / self.ridge + float(self.z @ self.z)
        self.noise = EPS * float(np.abs(self.v) @ np.sqrt(np.abs(G.diagonal()))) ** 2 / self.ridge + EPS * value
        self.last = value
        return -value if value < MAX_VALUE else np.inf

    def derivatives(self) -> Derivatives:
        products = self.stack.products(self.v[:, None])[:, :, 0]
        forms = products @ self.v / self.ridge
        solved = dtrtrs(self.factor, np.asfortranarray(self._center(products.T)), lower=1)[0]
        hessian = 2.0 / self.ridge * (solved.T @ solved)
        return Derivatives(-self.last, forms, hessian, self.noise, self.z)

    def dual(self, z: np.ndarray) -> np.ndarray:
        """Return the coefficients of the best direction."""
        return (self.a - self._center(z)) / self.ridge

    def _center(self, X: np.ndarray) -> np.ndarray:
        return within_center(self.signs, self.shares, X)


class _WithinFactors:
    """The same of kernels of a low total rank, in as many dimensions."""

    def __init__(self, stack: KernelStack, signs: np.ndarray, ridge: float, shares: tuple[float, float] | None):
        self.ridge, self.signs, self.shares = ridge, signs, shares
        self.a = class_difference(signs)
        factors = [
            member.Z / np.sqrt(scale)
            for member, scale in zip(stack.members, stack.scales, strict=True)
            if isinstance(member, Factor)
        ]
        self.b = [Z.T @ self.a for Z in factors]
        self.Q, R = np.linalg.qr(within_center(signs, shares, np.hstack(factors)))
        self.R = np.split(R, np.cumsum([Z.shape[1] for Z in factors])[:-1], axis=1)
        self.rotated = KernelStack([Factor(np.ascontiguousarray(R)) for R in self.R])
        self.pulls = np.array([R @ b for R, b in zip(self.R, self.b, strict=True)])  # J G_i a
        self.sizes = np.array([b @ b for b in self.b])
        self.n_weights, self.n_cholesky = len(stack), 0

    def value(self, weights: np.ndarray) -> float:
        inner = self.rotated.combine(weights, self.ridge)
        self.n_cholesky += 1
        self.factor, failed = dpotrf(inner.T, lower=1, clean=0)
        if failed or is_beyond_precision(self.factor, self.ridge):
            return np.inf
        self.x = _solve_factored(self.factor, weights @ self.pulls)
        self.u = [b - R.T @ self.x for R, b in zip(self.R, self.b, strict=True)]
        self.squares = np.array([u @ u for u in self.u])
        value = float(weights @ self.squares) / self.ridge + float(self.x @ self.x)
        self.noise = EPS * float(np.sqrt(weights @ self.squares * (weights @ self.sizes))) / self.ridge + EPS * value
        self.last = value
        return -value if value < MAX_VALUE else np.inf

    def derivatives(self) -> Derivatives:
        products = np.array([R @ u for R, u in zip(self.R, self.u, strict=True)])
        solved = dtrtrs(self.factor, np.asfortranarray(products.T), lower=1)[0]
        hessian = 2.0 / self.ridge * (solved.T @ solved)
        forms = self.squares / self.ridge
        return Derivatives(-self.last, forms, hessian, self.noise, self.x)

    def dual(self, x: np.ndarray) -> np.ndarray:
        """Return the coefficients of the best direction."""
        return (self.a - within_center(self.signs, self.shares, self.Q @ x)) / self.ridge


def _solve_factored(factor: np.ndarray, right: np.ndarray) -> np.ndarray:
    return np.asarray(dtrtrs(factor, dtrtrs(factor, right, lower=1)[0], lower=1, trans=1)[0])

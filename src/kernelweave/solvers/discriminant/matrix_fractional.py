r"""Kernel weights, and the ridge, of regularised kernel discriminant analysis without a semidefinite program.

.. math::
    \min_w\; F(w) = \sum_j h_j^\top M(w)^{-1} h_j \quad \text{s.t.} \quad w \ge 0,\; \sum_i w_i = 1, \qquad
    M(w) = \lambda I + \sum_{i=1}^p w_i B_i,

where :math:`B_i` is a centred kernel divided by its trace and :math:`h_j` is the centred indicator of class
:math:`j`. By Schur complements each matrix inequality of (34) is :math:`t_j \ge \lambda h_j^\top M^{-1} h_j`, so that
this *is* (34), and (16) for one column, divided by :math:`\lambda`; :math:`w_i = r_i \theta_i`. Where the ridge is
learned, (40) and (41), :math:`B_0 = I/m` joins with a weight :math:`w_0` and there is no :math:`\lambda`.

:math:`F` is smooth and convex. With :math:`M = L L^\top, Z = M^{-1} H`:

.. math:: -\partial_i F = \operatorname{tr} Z^\top B_i Z, \qquad
    \partial_i \partial_l F = 2 \operatorname{tr} (L^{-1} B_i Z)^\top (L^{-1} B_l Z) .

Conventions: :math:`e e^\top / m^2` is added to :math:`M`. Kernels and indicators are centred, so that it changes no
value, but without it :math:`M` is singular at :math:`w_0 = 0`. The ridge stays inside :math:`M`; in the paper's
scaling, :math:`I + \sum \theta_i \tilde G_i / \lambda`, a ridge of 1e-8 costs eight digits.

References
----------
J. Ye, J. Chen, S. Ji: Discriminant kernel and regularization parameter learning via semidefinite programming. ICML
2007.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.linalg.lapack import dgeqrf, dormqr, dpotrf, dtrtrs

from ..deadline import NO_DEADLINE, Deadline
from ..machines.kernel_stack import Diagonal, Factor, KernelStack, Member
from .simplex_newton import MAX_VALUE, Callback, Derivatives, DiscriminantResult, minimise_on_simplex

__all__ = ["RidgedStack", "is_beyond_precision", "class_indicator", "solve_matrix_fractional", "total_rank"]

EPS = float(np.finfo(float).eps)
MIN_RIDGE = 1e-12  # ridge beside a learned one: where rows repeat, M would be singular at w_0 = 0
MAX_RANK_SHARE = 0.5  # of the points: kernels of a smaller total rank are rotated into the space they span
BLOCK = 64  # columns that a rotation takes at a time
MAX_COLUMN_MEAN = 1e-6  # of the norm of a column of H, which its mean may be


def class_indicator(codes: np.ndarray, n_classes: int) -> np.ndarray:
    r"""Return the centred indicators of the classes, the matrix H of (25).

    Entry (i, j) is :math:`\sqrt{m/m_j} - \sqrt{m_j/m}` if sample i is of class j, and :math:`-\sqrt{m_j/m}` otherwise.
    The columns sum to zero, and one of them follows from the others: :math:`\sum_j \sqrt{m_j} h_j = 0`.

    Parameters
    ----------
    codes : ndarray of shape (n_points,)
        Class numbers from 0 to ``n_classes - 1``, each of which occurs.
    n_classes : int

    Returns
    -------
    ndarray of shape (n_points, n_classes)

    Examples
    --------
    >>> class_indicator(np.array([0, 0, 1, 1]), 2) * 2**0.5
    array([[ 1., -1.], [ 1., -1.], [-1.,  1.], [-1.,  1.]])
    """
    counts = np.bincount(codes, minlength=n_classes)
    if len(counts) != n_classes or not counts.all():
        raise ValueError(f"codes must hold each class from 0 to {n_classes - 1}; the classes occur {counts} times.")
    H = np.tile(-np.sqrt(counts / len(codes)), (len(codes), 1))
    H[np.arange(len(codes)), codes] += np.sqrt(len(codes) / counts[codes])
    return H


def solve_matrix_fractional(
    kernels: KernelStack | Sequence[Member],
    H: np.ndarray,
    *,
    ridge: float | None,
    start: np.ndarray | None = None,
    tol: float = 1e-6,
    max_iter: int = 100,
    callback: Callback | None = None,
    deadline: Deadline = NO_DEADLINE,
) -> DiscriminantResult:
    r"""Minimise :math:`\operatorname{tr} H^\top M(w)^{-1} H` over the weights of kernels on the unit simplex.

    Parameters
    ----------
    kernels : KernelStack, or sequence of ndarray of shape (n_points, n_points) or Factor
        Centred, and of trace 1 once divided by the scales of the stack. If all are factors of a total rank below half
        of the points, no matrix with a row and a column for each point is formed.
    H : ndarray of shape (n_points, n_columns)
        Columns that sum to zero, as :func:`class_indicator` makes them.
    ridge : float or None
        :math:`\lambda > 0`; or None, where it is learned.
    start : ndarray of shape (n_kernels,) or (1 + n_kernels,), optional
        Weights to start from; equal by default.
    tol : float
        Stop when the duality gap is at most ``tol`` times the objective.
    max_iter : int
        Largest number of steps.
    callback : callable, optional
        Called with a `FitState` after each step; a true answer stops.
    deadline : Deadline
        When it is over, the best point so far is returned.

    Returns
    -------
    DiscriminantResult
        ``x`` holds the weights on the unit simplex: one for each kernel, and before them :math:`w_0` of the identity
        divided by the number of points where the ridge is learned. The ridge that with the kernels' weights, divided
        by their sum, gives the same M up to a factor is :math:`w_0 / (m (1 - w_0))`. ``dual`` is
        :math:`Z = M^{-1} H`, and ``forms`` are :math:`\operatorname{tr} Z^\top B_i Z`.

    Examples
    --------
    >>> H = class_indicator(np.array([0, 0, 1, 1]), 2)
    >>> a, b = np.array([1.0, 1.0, -1.0, -1.0]), np.array([1.0, -1.0, 1.0, -1.0])
    >>> result = solve_matrix_fractional([np.outer(a, a) / 4, np.outer(b, b) / 4], H, ridge=0.5)
    >>> result.x, result.objective
    (array([1., 0.]), 2.67)
    """
    stack = RidgedStack(kernels, H, ridge)
    result = minimise_on_simplex(stack, start=start, tol=tol, max_iter=max_iter, callback=callback, deadline=deadline)
    return replace(result, dual=stack.dual(result.dual))


class RidgedStack:
    r""":math:`M(w)` and what is needed of its inverse, at one w at a time.

    Columns of H that depend on others are left out: ``H = columns @ mixing``. Where kernels are factors of a low total
    rank, everything is rotated into the space that they and H span; outside it, M is a multiple of the identity
    that nothing meets.

    Parameters
    ----------
    kernels : KernelStack, or sequence of ndarray of shape (n_points, n_points) or Factor
    H : ndarray of shape (n_points, n_columns)
    ridge : float or None
    """

    def __init__(self, kernels: KernelStack | Sequence[Member], H: np.ndarray, ridge: float | None):
        stack = kernels if isinstance(kernels, KernelStack) else KernelStack(kernels)
        _check(stack, H, ridge)
        n_points = stack.n_points
        self.learned, self.ridge = ridge is None, MIN_RIDGE if ridge is None else float(ridge)
        self.columns, self.mixing = _find_independent(H)
        self.rotation: tuple[np.ndarray, np.ndarray] | None = None
        self.shift = 1.0 / n_points**2
        if total_rank(stack) + self.columns.shape[1] <= MAX_RANK_SHARE * n_points:
            stack = self._rotate(stack)
        members, scales = stack.members, stack.scales
        if self.learned:
            members, scales = (Diagonal(np.full(stack.n_points, 1.0 / n_points)), *members), np.append(1.0, scales)
        self.stack, self.n_points = KernelStack(members, scales), n_points
        self.n_weights, self.n_cholesky = len(members), 0
        self._buffer = np.empty((stack.n_points, stack.n_points))
        self.weights = self.half = np.empty(0)  # of the last value, and L^-1 H

    def value(self, weights: np.ndarray) -> float:
        """Return the objective, or infinity where M is singular in double precision, or numbers overflow."""
        M = self.stack.combine(weights, self.ridge)
        np.add(M, self.shift, out=self._buffer)
        self.n_cholesky += 1
        self.weights = weights
        self.factor, failed = dpotrf(self._buffer.T, lower=1, clean=0, overwrite_a=1)
        rotated = self.rotation is not None and not self.learned
        if failed or (rotated and is_beyond_precision(self.factor, self.ridge)):
            return np.inf
        self.half = dtrtrs(self.factor, self.columns, lower=1)[0]
        value = float(np.vdot(self.half, self.half))
        return value if value < MAX_VALUE else np.inf

    def products(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return Z, the products of the kernels with it, shape (n_weights, n_columns, n_rows), and L^-1 times these."""
        Z = dtrtrs(self.factor, self.half, lower=1, trans=1)[0]
        products = np.ascontiguousarray(self.stack.products(Z, at=np.arange(len(Z))).transpose(0, 2, 1))
        flat = products.reshape(-1, len(Z))
        solved = dtrtrs(self.factor, flat.T, lower=1)[0].T.reshape(products.shape)
        return Z, products, solved

    def derivatives(self) -> Derivatives:
        """Return the derivatives at the weights of the last value."""
        Z, products, solved = self.products()
        forms = products.reshape(self.n_weights, -1) @ Z.T.ravel()
        solved = solved.reshape(self.n_weights, -1)
        # exact up to the square of the residual H - MZ
        objective = 2.0 * np.vdot(self.columns, Z) - self.ridge * np.vdot(Z, Z) - self.weights @ forms
        noise = 10.0 * abs(objective - np.vdot(self.half, self.half)) + EPS * objective
        return Derivatives(float(objective), forms, 2.0 * solved @ solved.T, float(noise), Z)

    def dual(self, Z: np.ndarray) -> np.ndarray:
        """Return the dual for all points and columns, not only for the independent columns."""
        if self.rotation is not None:
            reflectors, tau = self.rotation
            padded = np.zeros((self.n_points, Z.shape[1]), order="F")
            padded[: len(Z)] = Z
            Z = dormqr("L", "N", reflectors, tau, padded, lwork=BLOCK * Z.shape[1], overwrite_c=1)[0]
        return np.asarray(Z @ self.mixing)

    def _rotate(self, stack: KernelStack) -> KernelStack:
        """Return the kernels, and set the columns, in an orthonormal basis of the space they span."""
        factors = [member.Z for member in stack.members if isinstance(member, Factor)]
        ends = np.cumsum([Z.shape[1] for Z in factors])
        spanning = np.empty((stack.n_points, int(ends[-1]) + self.columns.shape[1]), order="F")
        np.concatenate([*factors, self.columns], axis=1, out=spanning)
        reflectors, tau, _, _ = dgeqrf(spanning, lwork=BLOCK * spanning.shape[1], overwrite_a=1)
        self.rotation = reflectors, tau
        *parts, self.columns = np.split(np.triu(reflectors[: spanning.shape[1]]), ends, axis=1)
        self.shift = 0.0  # the constant vector is outside
        return KernelStack([Factor(np.ascontiguousarray(T)) for T in parts], stack.scales)


def _check(stack: KernelStack, H: np.ndarray, ridge: float | None) -> None:
    if ridge is not None and not (np.isfinite(ridge) and ridge > 0.0):
        raise ValueError(f"ridge must be a positive number, or None where it is learned; got {ridge!r}.")
    if H.ndim != 2 or len(H) != stack.n_points:
        raise ValueError(f"H must have a row for each of the {stack.n_points} points; got the shape {H.shape}.")
    sums = np.abs(H.sum(axis=0))
    if np.any(sums > MAX_COLUMN_MEAN * np.sqrt(len(H)) * np.linalg.norm(H, axis=0)):
        raise ValueError(
            f"The columns of H must sum to zero; they sum to {sums}. Subtract their means, as class_indicator does."
        )


def _find_independent(H: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return columns, in Fortran's order, and a mixing whose product is H, as few as its rank."""
    U, values, V = np.linalg.svd(H, full_matrices=False)
    rank = max(1, int(np.count_nonzero(values > len(H) * EPS * values[0])))
    return np.asfortranarray(U[:, :rank] * values[:rank]), V[:rank]


def is_beyond_precision(factor: np.ndarray, smallest: float) -> bool:
    """Return whether a matrix, of a Cholesky factor and with an eigenvalue that is not in it, is singular to rounding.

    So a rotation, which never meets the ridge alone, refuses what a factorisation over all points would.
    """
    return smallest < EPS * float(np.square(factor.diagonal()).max())


def total_rank(stack: KernelStack) -> float:
    """Return the sum of the ranks of factors; infinite if a kernel is none."""
    return sum(member.Z.shape[1] if isinstance(member, Factor) else np.inf for member in stack.members)

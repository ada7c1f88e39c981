r"""Weights of base kernels whose sum is most aligned with a target kernel.

The alignment of two kernels is the cosine between them, after centring both in their feature spaces:

.. math:: \rho(K, T) = \frac{\langle K_c, T_c \rangle_F}{\|K_c\|_F \|T_c\|_F}, \qquad
    \langle K, T \rangle_F = \sum_{ij} \omega_i \omega_j K_{ij} T_{ij}, \quad
    K_c = H K H^\top,\; H = I - \mathbf 1 \omega^\top / \textstyle\sum_i \omega_i ,

where :math:`\omega` are the weights of the rows, 1 by default. Of base kernels :math:`K_i` and a target :math:`T` no
more is needed than the small Gram matrix :math:`M_{ij} = \langle K_{ic}, K_{jc} \rangle_F`, the vector
:math:`a_i = \langle K_{ic}, T_c \rangle_F` and :math:`t = \|T_c\|_F^2`, which :func:`gram` computes without forming a
kernel that is given by vectors: for :math:`K_i = b_i b_i^\top` and :math:`T = \sum_c t_c t_c^\top`,

.. math:: M_{ij} = (\bar b_i^\top \bar b_j)^2, \qquad a_i = \textstyle\sum_c (\bar b_i^\top \bar t_c)^2,

with :math:`\bar b = \operatorname{diag}(\omega)^{1/2} H b`. The weights then solve

.. math:: \max_{w \in \mathcal C,\, w \ne 0}\; \rho(w) = \frac{a^\top w}{\sqrt{t\; w^\top M w}}
    \qquad \Longleftrightarrow \qquad \min_{w \in \mathcal C}\; w^\top M w - 2 a^\top w \quad \text{up to length},

over the cone :math:`w \ge 0` (:func:`alignf`) or the smaller one of ordered weights (:func:`ordered`), which is the
image of :math:`\nu \ge 0`: non-negative least squares in both cases. Kernels are first brought to length 1, so that the
scale of a kernel changes its weight and nothing else. Where :math:`v_i = w_i \sqrt{M_{ii}}` has
:math:`v^\top \tilde M v = 1` with the unit-diagonal :math:`\tilde M`, the gradient of the alignment is
:math:`g_i = \rho_i - \rho\, (\tilde M v)_i`, with :math:`\rho_i` the alignment of kernel i alone; the certificate is
the residual :math:`\max_i |\min(v_i, -g_i)|` of its optimality conditions, in units of alignment.

References
----------
N. Cristianini, J. Shawe-Taylor, A. Elisseeff, J. Kandola: On kernel-target alignment. NIPS 2001.
X. Zhu, J. Kandola, Z. Ghahramani, J. Lafferty: Nonparametric transforms of graph kernels for semi-supervised learning.
NIPS 2004.
C. Cortes, M. Mohri, A. Rostamizadeh: Two-stage learning kernel algorithms. ICML 2010.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TypeAlias

import numpy as np

from .machines.kernel_stack import Factor
from .result import Certificate, SolverResult, Status
from .simplex import solve_definite

TOLERANCE = 1e-10  # what non-negative least squares on unit diagonals reaches also where kernels depend on each other
JITTER = 1e-13  # in the unit diagonal, for kernels that depend on each other
# Relative length, below which what is left of a vector or a kernel after centring is rounding.
MIN_RELATIVE_LENGTH = 1e-13
MIN_ALIGNMENT = 1e-14  # alignment, below which all is rounding
MAX_ENTERING = 32  # weights that may become positive at once, or as many as are positive


@dataclass(frozen=True, eq=False)
class RankOnes:
    """The kernels ``b b'`` of each column b of a matrix of shape (n_rows, n_kernels)."""

    B: np.ndarray


Block: TypeAlias = np.ndarray | Factor | RankOnes


def gram(
    blocks: Sequence[Block], target: np.ndarray, weight: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the inner products of centred base kernels with each other and with a centred target.

    Parameters
    ----------
    blocks : sequence of RankOnes, Factor or ndarray of shape (n_rows, n_rows)
        A matrix or a factor is one kernel, symmetric; :class:`RankOnes` are as many as they have columns.
    target : ndarray of shape (n_rows, n_columns)
        The target kernel is ``target @ target.T``, as of signs or of class indicators.
    weight : ndarray of shape (n_rows,), optional
        Non-negative; a row of weight 2 counts as two rows. 1 by default.

    Returns
    -------
    M : ndarray of shape (n_kernels, n_kernels)
        In the order of the blocks; rows of kernels that are constant are zero.
    a : ndarray of shape (n_kernels,)
    t : float
        Positive.

    Examples
    --------
    >>> B = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    >>> M, a, t = gram([RankOnes(B)], target=B[:, :1])
    >>> M.tolist(), a.tolist(), t
    ([[16.0, 0.0], [0.0, 16.0]], [16.0, 0.0], 16.0)
    """
    weight = np.ones(len(target)) if weight is None else np.asarray(weight, dtype=float)
    parts = _center_blocks(blocks, weight)
    goal = Factor(_center_columns(target, weight))
    t = float(_products(goal, goal)[0, 0])
    if t == 0.0:
        raise ValueError(
            "The target is the same in all rows, so that nothing is aligned with it; pass rows of two classes at least."
        )
    a = [_products(part, goal)[:, 0] for part in parts]
    start = np.cumsum([0, *map(len, a)])
    M = np.empty((start[-1], start[-1]))
    for i, first in enumerate(parts):
        for j, second in enumerate(parts[: i + 1]):
            products = _products(first, second)
            M[start[i] : start[i + 1], start[j] : start[j + 1]] = products
            M[start[j] : start[j + 1], start[i] : start[i + 1]] = products.T
    return M, np.concatenate(a), t


@dataclass(frozen=True, kw_only=True)
class AlignmentResult(SolverResult):
    """Weights of kernels, and whether any kernel has a positive alignment with the target.

    Attributes
    ----------
    aligned : bool
    """

    aligned: bool


def uniform(M: np.ndarray, a: np.ndarray, t: float) -> AlignmentResult:
    """Weigh all kernels alike, whatever their alignment.

    Parameters
    ----------
    M, a, t
        As from :func:`gram`.

    Returns
    -------
    AlignmentResult
        ``x`` sums to 1; the objective is its alignment. Nothing is optimised: the residual is 0 by convention.
    """
    return _certify_closed_form(np.ones(len(a)), M, a, t, scope="equal weights")


def align(M: np.ndarray, a: np.ndarray, t: float) -> AlignmentResult:
    """Weigh each kernel, brought to length 1, by its own alignment, as if the others were not there.

    Parameters
    ----------
    M, a, t
        As from :func:`gram`.

    Returns
    -------
    AlignmentResult
        ``x`` is non-negative and sums to 1, 0 for kernels that are zero; the objective is its alignment. Where no
        kernel has a positive alignment, weights are equal and ``aligned`` is False.
    """
    lengths, alone = _align_each(M, a, t)
    weights = np.divide(np.maximum(alone, 0.0), lengths, out=np.zeros(len(a)), where=lengths > 0.0)
    return _certify_closed_form(weights, M, a, t, scope="each kernel alone")


def alignf(
    M: np.ndarray, a: np.ndarray, t: float, *, ridge: float | np.ndarray = 0.0, tol: float = TOLERANCE
) -> AlignmentResult:
    """Maximise the alignment of the sum of kernels over non-negative weights.

    Parameters
    ----------
    M, a, t
        As from :func:`gram`.
    ridge : float or ndarray of shape (n_kernels,)
        Times the diagonal of ``M`` is added to it: draws weights of similar kernels together, and with a large one to
        those of :func:`align`.
    tol : float
        The certificate, relative to the alignment, that counts as converged.

    Returns
    -------
    AlignmentResult
        ``x`` is non-negative and sums to 1, 0 for kernels that are zero; the objective is its alignment. Where no
        kernel has a positive alignment, weights are equal and ``aligned`` is False. ``n_iter`` counts rounds.
        The certificate is that of the problem with its ridge.

    Examples
    --------
    >>> result = alignf(np.array([[1.0, 0.5], [0.5, 1.0]]), np.array([0.6, 0.6]), 1.0)
    >>> result.x.round(6).tolist(), round(result.objective, 4)
    ([0.5, 0.5], 0.6928)
    """
    result = _maximise(M + ridge * np.diag(M.diagonal()), a, t, tol)
    return _replace_weights(result, result.x, M, a, t)


def ordered(M: np.ndarray, a: np.ndarray, t: float, *, exempt: int = 1, tol: float = TOLERANCE) -> AlignmentResult:
    r"""Maximise the alignment over non-negative weights that do not increase, but for the first ones.

    The order constraint of Zhu et al. on eigenvectors from the smoothest to the roughest. The cone
    :math:`w_m \ge w_{m+1} \ge \dots \ge 0` is that of :math:`w = S \nu, \nu \ge 0` with S upper triangular, of ones:
    its generators are the sums of the first kernels, and :math:`S^\top M S` their Gram matrix.

    Parameters
    ----------
    M, a, t
        As from :func:`gram`.
    exempt : int
        So many first kernels may have any non-negative weight: those of constant eigenvectors. One that is constant on
        the rows of :func:`gram` is zero there, and has weight 0.
    tol : float
        As in :func:`alignf`.

    Returns
    -------
    AlignmentResult
        As that of :func:`alignf`; the certificate is that of :math:`\nu`. Where no generator has a positive alignment,
        weights are equal.
    """
    M_sums, a_sums = M.copy(), a.copy()
    np.cumsum(M_sums[exempt:], axis=0, out=M_sums[exempt:])
    np.cumsum(M_sums[:, exempt:], axis=1, out=M_sums[:, exempt:])
    np.cumsum(a_sums[exempt:], out=a_sums[exempt:])
    result = _maximise(M_sums, a_sums, t, tol)
    weights = result.x.copy()
    weights[exempt:] = weights[exempt:][::-1].cumsum()[::-1]
    if not result.aligned:
        weights = np.ones(len(a))
    return _replace_weights(result, weights, M, a, t)


def alignment_value(weights: np.ndarray, M: np.ndarray, a: np.ndarray, t: float) -> float:
    """Return the alignment of a weighted sum of kernels from their Gram matrix; 0 where the sum is zero."""
    square = float(weights @ M @ weights)
    return float(weights @ a) / float(np.sqrt(square) * np.sqrt(t)) if square > 0.0 else 0.0


def alignment(K: np.ndarray, T: np.ndarray, *, centered: bool = True) -> float:
    """Return the alignment of two kernel matrices, by definition.

    Parameters
    ----------
    K, T : ndarray of shape (n_rows, n_rows)
        Symmetric.
    centered : bool
        False: the cosine of the matrices as they are (Cristianini et al.).

    Returns
    -------
    float
        0 where a kernel is zero.

    Examples
    --------
    >>> round(alignment(np.eye(4), np.ones((4, 4)), centered=False), 12)
    0.5
    """
    if centered:
        ones = np.ones(len(K))
        K, T = _center_kernel(K, ones), _center_kernel(T, ones)
    sizes = float(np.linalg.norm(K)) * float(np.linalg.norm(T))
    return float(np.vdot(K, T)) / sizes if sizes > 0.0 else 0.0


def _center_blocks(blocks: Sequence[Block], weight: np.ndarray) -> list[Block]:
    """Centre all kernels and multiply their rows by the square roots of the weights; matrices in a row are stacked."""
    parts: list[Block] = []
    for are_matrices, group in groupby(enumerate(blocks), key=lambda item: isinstance(item[1], np.ndarray)):
        entries = []
        for k, block in group:
            values = _columns(block)
            if values.ndim != 2 or len(values) != len(weight) or (are_matrices and values.shape[1] != len(weight)):
                raise ValueError(
                    f"Block {k} has shape {values.shape}, but the target has {len(weight)} rows; pass a kernel matrix "
                    "of these rows, a low-rank factor in Factor, or vectors in RankOnes."
                )
            entries.append((type(block), values))
        if are_matrices:
            parts.append(np.array([_center_kernel(K, weight) for _, K in entries]))
        else:
            parts += [kind(_center_columns(B, weight)) for kind, B in entries]
    return parts


def _center_columns(B: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Subtract the weighted mean of each column; one that is constant becomes exactly zero."""
    B = np.asarray(B, dtype=float)
    root = np.sqrt(weight)[:, None]
    centered = root * (B - weight @ B / weight.sum())
    lost = np.linalg.norm(centered, axis=0) <= MIN_RELATIVE_LENGTH * np.linalg.norm(root * B, axis=0)
    centered[:, lost] = 0.0
    return centered


def _center_kernel(K: np.ndarray, weight: np.ndarray) -> np.ndarray:
    K = np.asarray(K, dtype=float)
    share, root = weight / weight.sum(), np.sqrt(weight)
    means = share @ K
    centered = root[:, None] * (K - means - means[:, None] + share @ means) * root
    # an inner product with the centre cancels as much as the kernel is larger than what is left of it
    lost = np.linalg.norm(centered) <= MIN_RELATIVE_LENGTH * np.linalg.norm(root[:, None] * K * root)
    return np.zeros_like(centered) if lost else centered


def _products(first: Block, second: Block) -> np.ndarray:
    """Inner products of the kernels of two centred blocks, shape (n_first, n_second); matrices are stacked."""
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        return first.reshape(len(first), -1) @ second.reshape(len(second), -1).T
    if isinstance(first, np.ndarray):
        return _products(second, first).T
    B = _columns(first)
    if isinstance(second, np.ndarray):
        squares = np.array([np.einsum("ij,ij->j", B, K @ B) for K in second]).T  # b'Kb
    else:
        squares = np.square(B.T @ _columns(second))
    if isinstance(first, Factor):
        squares = squares.sum(axis=0, keepdims=True)
    return squares.sum(axis=1, keepdims=True) if isinstance(second, Factor) else squares


def _columns(block: Block) -> np.ndarray:
    if isinstance(block, RankOnes):
        return block.B
    return block.Z if isinstance(block, Factor) else block


def _certify_closed_form(weights: np.ndarray, M: np.ndarray, a: np.ndarray, t: float, scope: str) -> AlignmentResult:
    aligned = bool(_align_each(M, a, t)[1].max() > 0.0)
    certificate = Certificate(0.0, 0.0, "KKT residual", scope)
    result = AlignmentResult(weights, 0.0, certificate, Status.CONVERGED, 0, aligned=aligned)
    return _replace_weights(result, weights if weights.any() else np.ones(len(a)), M, a, t)


def _replace_weights(
    result: AlignmentResult, weights: np.ndarray, M: np.ndarray, a: np.ndarray, t: float
) -> AlignmentResult:
    """Give a result these weights, to sum 1, and their alignment."""
    weights = weights / weights.sum()
    value = alignment_value(weights, M, a, t)
    return replace(result, x=weights, objective=value, certificate=replace(result.certificate, objective=value))


def _align_each(M: np.ndarray, a: np.ndarray, t: float) -> tuple[np.ndarray, np.ndarray]:
    """Length of each kernel, and its own alignment; 0 where it is zero."""
    lengths = np.sqrt(M.diagonal())
    alone = np.divide(a, lengths, out=np.zeros(len(a)), where=lengths > 0.0) / np.sqrt(t)
    alone[np.abs(alone) <= MIN_ALIGNMENT] = 0.0
    return lengths, alone


def _maximise(M: np.ndarray, a: np.ndarray, t: float, tol: float) -> AlignmentResult:
    """Maximise the alignment over non-negative weights of any length."""
    lengths, alone = _align_each(M, a, t)
    useful = np.flatnonzero(lengths > 0.0)
    if alone.max() <= 0.0:
        certificate = Certificate(0.0, 0.0, "KKT residual")
        return AlignmentResult(np.ones(len(a)), 0.0, certificate, Status.CONVERGED, 0, aligned=False)
    lengths, alone = lengths[useful], alone[useful]
    M_unit = M[np.ix_(useful, useful)] / lengths[:, None] / lengths
    v, n_rounds = _nonnegative_least_squares(M_unit, alone)
    v /= np.sqrt(v @ M_unit @ v)
    value = float(alone @ v)
    residual = float(np.abs(np.minimum(v, value * (M_unit @ v) - alone)).max())
    weights = np.zeros(len(a))
    weights[useful] = v / lengths
    certificate = Certificate(residual, value, "KKT residual")
    status = Status.CONVERGED if certificate.relative <= tol else Status.PRECISION
    return AlignmentResult(weights, value, certificate, status, n_rounds, aligned=True)


def _nonnegative_least_squares(M: np.ndarray, a: np.ndarray) -> tuple[np.ndarray, int]:
    """Minimise ``1/2 v'Mv - a'v`` over ``v >= 0``, where the diagonal of M is 1 and some a is positive.

    The active-set method of Lawson and Hanson, a block at a time: those with the largest gradients become positive
    together. Of these at least one has a positive solution, so that each round descends when those without are left
    out again, and none comes twice. On the way to a solution with negative weights, the first that meets zero leaves.
    """
    v, positive, best, n_rounds = np.zeros(len(a)), np.zeros(len(a), dtype=bool), 0.0, 0
    while True:
        gradient = np.where(positive, 0.0, a - M[:, positive] @ v[positive])
        entering = np.flatnonzero(gradient > JITTER * a.max())
        n_entering = max(MAX_ENTERING, int(np.count_nonzero(positive)))
        entering = entering[np.argsort(-gradient[entering], kind="stable")[:n_entering]]
        if not len(entering):
            return v, n_rounds
        trial, face = _minimum_on_face(M, a, v, np.union1d(np.flatnonzero(positive), entering))
        if a @ trial <= best:  # twice the descent; rounding is all that is left
            return v, n_rounds
        v, best, n_rounds = trial, float(a @ trial), n_rounds + 1
        positive[:] = False
        positive[face] = True


def _minimum_on_face(M: np.ndarray, a: np.ndarray, v: np.ndarray, face: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Walk from v to the minimum over the weights of a face; those that meet zero on the way leave it."""
    here = v[face]
    while len(face):
        target = solve_definite(M[np.ix_(face, face)], a[face], ridge=JITTER, factor=10.0)
        outside = target <= 0.0
        if not outside.any():
            here = target
            break
        shares = np.full(len(face), np.inf)
        shares[outside] = here[outside] / np.maximum(here[outside] - target[outside], np.finfo(float).tiny)
        share = float(shares.min())
        here, stays = np.maximum(0.0, here + share * (target - here)), shares > share
        here, face = here[stays], face[stays]
    v = np.zeros(len(a))
    v[face] = here
    return v, face

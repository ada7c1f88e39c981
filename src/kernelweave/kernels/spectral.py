r"""Eigenvectors of a kernel on the data, and their extension to any row.

With :math:`K` a kernel at :math:`n` rows and :math:`D` the diagonal matrix of its row sums (degrees), either of

.. math:: K = \sum_k \lambda_k v_k v_k^\top, \qquad S = D^{-1/2} K D^{-1/2} = \sum_k \lambda_k v_k v_k^\top.

Eigenvectors of :math:`S` with large :math:`\lambda_k`, that is, with small eigenvalues of the normalised Laplacian
:math:`I - S`, vary little within clusters. Off the sample [1]_

.. math:: v_k(x) = \frac{1}{\lambda_k} \sum_i \frac{k(x, x_i)}{\sqrt{d(x) \, d_i}} v_{ik}, \qquad
   d(x) = \sum_i k(x, x_i),

which at a bound row is its entry of :math:`v_k`. Without degrees it is the extension of the eigenvectors of :math:`K`.

Many rows. With landmarks :math:`A`, :math:`C = k(X, A)` and :math:`R` such that :math:`R R^\top = k(A, A)^{+}`, the
kernel is replaced by :math:`\hat K = F F^\top`, :math:`F = C R` [2]_. Its degrees are :math:`d = C \, R (F^\top 1)`,
and the eigenvectors of :math:`\hat S` are :math:`D^{-1/2} F E \Lambda^{-1/2}` with
:math:`E \Lambda E^\top = F^\top D^{-1} F`. All of it is :math:`C` times small matrices, so the extension is the same
formula at a new row. Nothing of :math:`n \times n` is formed. Of many rows, the sums over all of them in
:math:`F^\top 1` and :math:`F^\top D^{-1} F` are those over some that are drawn, times :math:`n` over their number:
time is :math:`O(n m)` for :math:`m` landmarks, and which rows were drawn matters less than which landmarks.

A Nystroem degree can come out too small, even negative, at a row far from all landmarks. Landmarks are rows, so where
the kernel is not negative :math:`d(x) \ge \sum_{a \in A} k(x, a)`, and the degree is raised to that. A row without any
similarity to the anchors is at the origin of the feature space.

References
----------
.. [1] Y. Bengio, O. Delalleau, N. Le Roux, J.-F. Paiement, P. Vincent and M. Ouimet, "Learning eigenfunctions links
   spectral embedding and kernel PCA", Neural Computation 16, 2004.
.. [2] C. Fowlkes, S. Belongie, F. Chung and J. Malik, "Spectral grouping using the Nystroem method", IEEE Transactions
   on Pattern Analysis and Machine Intelligence 26, 2004.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import linalg

from ..distributed.rows import PartitionedRows
from ..parameters import check_parameters, one_of
from .base import ALL, BoundKernel, Kernel
from .checks import is_symmetric, require_finite
from .features import FeatureMap
from .manifold import is_precomputed
from .nystroem import landmark_rows
from .sharing import whole_block

# Rows that are summed over, at least so many, and so many for each landmark. Columns of V are then orthonormal up to a
# few percent. With 5000 rows for 200 landmarks, errors on MNIST, USPS and 60,000 generated rows were those of all rows.
SUMMED_ROWS, ROWS_PER_LANDMARK = 5000, 20
MAX_STORED_BYTES = 2**30  # of kernel values at the landmarks that are kept between passes; more are computed anew
# Of kernel values, in double precision, that are worked on at a time: they stay in the processor's cache.
STRIP_BYTES, MIN_STRIP_ROWS = 2**20, 512
# An eigenvalue of k(A, A) below this share of the largest is left out: rounding e of C'C becomes e / cut in R'C'C R.
RELATIVE_CUT = 1e-7
ROUNDINGS = 10  # units in the last place of the kernel's values that are no smaller than the cut: single precision
MIN_EIGENVALUE = 1e-10  # the same for the eigenvectors asked for, of which 1 / eigenvalue enlarges rounding
SHARE_ROUNDING = 1e-12  # 0.07 of 100 rows are 7, though the product of the two is 7.000000000000001


class EigenBasis(FeatureMap):
    r"""The functions :math:`b_k(x) = \sum_a c_{ak} k(x, a)`, divided by :math:`\sqrt{d(x)}` where there are degrees.

    Parameters
    ----------
    base : BoundKernel
        Bound to the anchors.
    coef : ndarray of shape (n_anchors, n_features)
    degree : ndarray of shape (n_anchors,) or None
        The degree of a row is :math:`d(x) = \sum_a \mathrm{degree}_a k(x, a)`; None where it is not divided by.
    eigenvalues : ndarray of shape (n_features,)
        Positive, in descending order.
    """

    def __init__(self, base: BoundKernel, coef: np.ndarray, degree: np.ndarray | None, eigenvalues: np.ndarray):
        self.base = base
        self.coef = coef
        self.degree = degree
        self.eigenvalues = eigenvalues

    @property
    def n_features(self) -> int:
        """The number of eigenfunctions."""
        return int(self.coef.shape[1])

    @property
    def n_evaluations(self) -> int:
        """The number of anchors."""
        return self.base.n_rows

    def of(self, X_new: Any) -> np.ndarray:
        """Return the eigenfunctions at new rows, shape ``(n_new, n_features)``."""
        parts = [
            self.from_values(self.base.against(X_new[strip])) for strip in strips(X_new.shape[0], self.base.n_rows)
        ]
        return np.concatenate(parts) if parts else self.from_values(self.base.against(X_new))

    def from_values(self, values: np.ndarray) -> np.ndarray:
        """Return the eigenfunctions at rows with the given kernel values at the anchors, in their precision."""
        if self.degree is None:
            # The rounding of single precision is that of the values, which are multiplied by the same coefficients.
            out = values @ self.coef.astype(values.dtype, copy=False)
        else:
            products = _multiply(values, self.coef, self.degree)
            out = products[:, :-2] * _inverse_roots(values, products)[:, None]
        return out.astype(values.dtype, copy=False)


def count_vectors(n_eigenvectors: float, n_rows: int) -> int:
    """Return how many eigenvectors a number, or a share of the rows or landmarks they are computed from, means.

    Examples
    --------
    >>> from kernelweave.kernels.spectral import count_vectors
    >>> count_vectors(0.07, 100), count_vectors(0.001, 100), count_vectors(300, 100)
    (7, 1, 100)
    """
    if not isinstance(n_eigenvectors, float):
        return min(int(n_eigenvectors), n_rows)
    return min(int(np.ceil(n_eigenvectors * n_rows * (1.0 - SHARE_ROUNDING))), n_rows)


def eigenbasis(
    kernel: BoundKernel,
    X: Any,
    n_vectors: int,
    *,
    kind: str = "kernel",
    n_landmarks: int | None = None,
    landmarks: str = "kmeans",
    rng: np.random.Generator,
    recipe: Kernel | None = None,
) -> tuple[EigenBasis, np.ndarray]:
    r"""Return the leading eigenfunctions of a kernel, and their values at the rows it is bound to.

    Parameters
    ----------
    kernel : BoundKernel
        Symmetric.
    X : array or CSR of shape (n_rows, n_features)
        The rows it is bound to; landmarks are chosen among them.
    n_vectors : int
        Fewer come back where the kernel has fewer eigenvalues that are not rounding.
    kind : {"kernel", "laplacian"}, default="kernel"
        Eigenvectors of :math:`K`, or of :math:`D^{-1/2} K D^{-1/2}`: those of the smallest eigenvalues of the
        normalised Laplacian.
    n_landmarks : int, optional
        None, or as many as rows: exact, with a matrix of all rows.
    landmarks : {"kmeans", "uniform"}, default="kmeans"
        See :func:`~kernelweave.kernels.nystroem.landmark_rows`; those of a precomputed matrix, whose rows are numbers
        of rows, are drawn.
    rng : numpy.random.Generator
    recipe : Kernel, optional
        What the kernel is bound from: it tells a precomputed matrix, and names the kernel in errors.

    Returns
    -------
    basis : EigenBasis
    V : ndarray of shape (n_rows, n_features)
        With orthonormal columns (nearly so where sums are over drawn rows), of which the largest entry at a
        landmark is positive; in single precision where the kernel is.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import RBF
    >>> from kernelweave.kernels.spectral import eigenbasis
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 2))
    >>> basis, V = eigenbasis(RBF().bind(X, rng), X, 5, kind="laplacian", n_landmarks=50, rng=rng)
    >>> bool(np.allclose(V.T @ V, np.eye(5))), bool(np.allclose(basis.of(X), V))
    (True, True)
    >>> round(float(basis.eigenvalues[0]), 6)
    1.0
    """
    given = {"kind": kind, "landmarks": landmarks}
    check_parameters(
        "eigenbasis", given, {"kind": one_of("kernel", "laplacian"), "landmarks": one_of("kmeans", "uniform")}
    )
    name = "without a name" if recipe is None else str(recipe)
    if n_landmarks is None or n_landmarks >= kernel.n_rows:
        basis, V = _find_exactly(kernel, n_vectors, kind, name)
    else:
        method = "uniform" if recipe is not None and is_precomputed(recipe) else landmarks
        anchors = landmark_rows(X, n_landmarks, method, rng)
        basis, V = _find_from_landmarks(
            kernel, anchors, draw_summed(kernel.n_rows, n_landmarks, rng), n_vectors, kind, name
        )
    return basis, V


def draw_summed(n_rows: int, n_landmarks: int, rng: np.random.Generator) -> np.ndarray:
    """Return the numbers of the rows over which sums are taken, in ascending order."""
    n_summed = max(SUMMED_ROWS, ROWS_PER_LANDMARK * n_landmarks)
    if n_rows <= n_summed:
        return np.arange(n_rows)
    return np.sort(rng.choice(n_rows, n_summed, replace=False, shuffle=False))


def partitioned_eigenbasis(
    kernel: BoundKernel,
    X: PartitionedRows,
    n_vectors: int,
    *,
    kind: str,
    n_landmarks: int,
    landmarks: str,
    rng: np.random.Generator,
    name: str,
) -> EigenBasis:
    """Return the leading eigenfunctions of a kernel at partitioned rows, as :func:`eigenbasis` does from landmarks.

    Parameters
    ----------
    kernel : BoundKernel
        That can be tied to other rows.
    X : PartitionedRows
    n_vectors, kind, n_landmarks, landmarks, rng
        As for :func:`eigenbasis`; the same landmarks are drawn.
    name : str
        Of the kernel, for errors.
    """
    base = kernel.tied_to(X[landmark_rows(X, n_landmarks, landmarks, rng)])
    values, summed = base.block(ALL, ALL), X[draw_summed(len(X), n_landmarks, rng)]
    columns = _Columns(lambda strip: base.against(summed[strip]), len(summed), values, len(X))
    return _combine_landmarks(base, values, columns, n_vectors, kind, name)


def _find_exactly(kernel: BoundKernel, n_vectors: int, kind: str, name: str) -> tuple[EigenBasis, np.ndarray]:
    values = whole_block(kernel)
    dtype, K = values.dtype, _require_symmetric(values, name)
    degree, inverse = None, np.ones(len(K))
    if kind == "laplacian":
        degree, sums = np.ones(len(K)), K.sum(axis=1)
        _require_degrees(not K[sums <= 0].any(), name)
        inverse = 1.0 / np.sqrt(np.where(sums > 0, sums, 1.0))
        K *= inverse
        K *= inverse[:, None]
    eigenvalues, V = _find_leading(K, n_vectors, _bound_share(MIN_EIGENVALUE, dtype))
    V *= _find_signs(V)
    coef = inverse[:, None] * V / eigenvalues
    return EigenBasis(kernel.restrict(np.arange(len(K))), coef, degree, eigenvalues), V.astype(dtype, copy=False)


def _find_from_landmarks(
    kernel: BoundKernel, anchors: np.ndarray, summed: np.ndarray, n_vectors: int, kind: str, name: str
) -> tuple[EigenBasis, np.ndarray]:
    n_rows, values = kernel.n_rows, kernel.block(anchors, anchors)
    is_all = len(summed) == n_rows
    columns = _Columns(
        lambda strip: kernel.block(strip if is_all else summed[strip], anchors), len(summed), values, n_rows
    )
    basis = _combine_landmarks(kernel.restrict(anchors), values, columns, n_vectors, kind, name)
    V = np.empty((n_rows, basis.n_features), dtype=values.dtype)
    for strip, C in columns:
        V[summed[strip]] = basis.from_values(C)
    others = np.setdiff1d(np.arange(n_rows), summed, assume_unique=True)
    for strip in strips(len(others), len(anchors)):
        V[others[strip]] = basis.from_values(kernel.block(others[strip], anchors))
    return basis, V


def _combine_landmarks(
    base: BoundKernel, values: np.ndarray, columns: _Columns, n_vectors: int, kind: str, name: str
) -> EigenBasis:
    """Return the eigenfunctions from the kernel at the landmarks, and from sums over all rows."""
    dtype, at_landmarks = values.dtype, values.copy()
    squared, R = _find_leading(_require_symmetric(values, name), len(values), _bound_share(RELATIVE_CUT, dtype))
    R /= np.sqrt(squared)
    degree = None
    if kind == "laplacian":
        sums = columns.sums()
        require_finite(sums, name)
        degree = R @ (R.T @ sums)
    gram = columns.gram(degree, name)
    require_finite(gram, name)
    gram = R.T @ gram @ R
    eigenvalues, E = _find_leading(gram, n_vectors, _bound_share(MIN_EIGENVALUE, dtype))
    basis = EigenBasis(base, R @ (E / np.sqrt(eigenvalues)), degree, eigenvalues)
    basis.coef *= _find_signs(basis.from_values(at_landmarks))
    return basis


def _find_signs(V: np.ndarray) -> np.ndarray:
    """Return the sign of the largest entry of each column."""
    return np.where(V.max(axis=0, initial=0.0) >= -V.min(axis=0, initial=0.0), 1.0, -1.0)


def _gram_of(C: np.ndarray, degree: np.ndarray | None, name: str) -> np.ndarray:
    """Return the products of columns, each row divided by the root of its degree."""
    C = C.astype(np.float64, copy=False)
    if degree is not None:
        inverse = _inverse_roots(C, _multiply(C, np.empty((C.shape[1], 0)), degree))
        _require_degrees(not C[inverse == 0].any(), name)
        C = C * inverse[:, None]
    return C.T @ C  # the long product


def strips(n_rows: int, width: int) -> Iterator[slice]:
    """Cut rows of so many kernel values into strips that stay in the processor's cache."""
    height = max(MIN_STRIP_ROWS, STRIP_BYTES // (8 * max(1, width)))
    for start in range(0, n_rows, height):
        yield slice(start, min(start + height, n_rows))


class _Columns:
    """The kernel between rows and the anchors, strip by strip; kept from the first walk if it is small enough.

    Parameters
    ----------
    evaluate : callable
        ``evaluate(strip)`` is the kernel between a slice of the rows and the anchors.
    n_rows : int
        Rows that are walked over.
    values : ndarray of shape (n_anchors, n_anchors)
        The kernel at the anchors.
    n_total : int
        Rows that these stand for: sums are multiplied by the ratio.
    """

    def __init__(self, evaluate: Callable[[slice], np.ndarray], n_rows: int, values: np.ndarray, n_total: int):
        self.evaluate = evaluate
        self.n_rows = n_rows
        self.n_anchors = len(values)
        self.factor = n_total / max(1, n_rows)
        n_bytes = n_rows * len(values) * values.dtype.itemsize
        # One array: it takes a few large pages, where strips of their own take many small ones.
        self.kept = np.empty((n_rows, len(values)), values.dtype) if n_bytes <= MAX_STORED_BYTES else None
        self.is_filled = False

    def sums(self) -> np.ndarray:
        return self.factor * np.asarray(sum(C.sum(axis=0, dtype=np.float64) for _, C in self))

    def gram(self, degree: np.ndarray | None, name: str) -> np.ndarray:
        total = np.zeros((self.n_anchors,) * 2)
        for _, C in self:
            total += _gram_of(C, degree, name)
        total *= self.factor
        return total

    def __iter__(self) -> Iterator[tuple[slice, np.ndarray]]:
        for rows in strips(self.n_rows, self.n_anchors):
            if self.is_filled and self.kept is not None:
                yield rows, self.kept[rows]
                continue
            values = self.evaluate(rows)
            if self.kept is not None:
                self.kept[rows] = values
            yield rows, values
        self.is_filled = True


def _multiply(values: np.ndarray, coef: np.ndarray, degree: np.ndarray) -> np.ndarray:
    """Return the products of kernel values with coefficients, with the degrees of the anchors, and with ones."""
    right = np.column_stack([coef, degree, np.ones(len(degree))])
    return values.astype(np.float64, copy=False) @ right  # one product reads the values once


def _inverse_roots(values: np.ndarray, products: np.ndarray) -> np.ndarray:
    r"""Return :math:`1 / \sqrt{d(x)}` of every row; zero where the degree is not positive.

    Nothing overflows on the way, however far away a row is: the root of the smallest number is about 1e-162.
    """
    degrees, least = products[:, -2], products[:, -1]
    degrees = np.where(values.min(axis=1) >= 0, np.maximum(degrees, least), degrees)
    return 1.0 / np.sqrt(np.where(degrees > 0, degrees, np.inf))


def _find_leading(K: np.ndarray, n_vectors: int, share: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest eigenvalues, those above a share of the first, and their eigenvectors; overwrites ``K``."""
    n_rows = len(K)
    if not n_rows:  # all landmarks are at the origin
        return np.empty(0), np.empty((0, 0))
    # For a tenth of the eigenvectors of 1500 rows: 0.5 s, all take 1.2 s, Lanczos iterations 0.4 to 3.2 s.
    wanted = (max(0, n_rows - n_vectors), n_rows - 1)
    values, vectors = linalg.eigh(K.T, subset_by_index=wanted, overwrite_a=True, check_finite=False)
    values, vectors = values[::-1], vectors[:, ::-1]
    kept = values > max(share * values[0], 0.0)
    return values[kept], vectors[:, kept]


def _bound_share(share: float, dtype: Any) -> float:
    return max(share, ROUNDINGS * float(np.finfo(dtype).eps))


def _require_symmetric(values: np.ndarray, name: str) -> np.ndarray:
    """Return a kernel matrix in double precision; refuse one that is not symmetric up to rounding."""
    K = values.astype(np.float64, copy=False)
    require_finite(K.sum(), name)
    if len(K) and not is_symmetric(K, float(np.finfo(values.dtype).eps)):
        raise ValueError(f"The kernel {name} is not symmetric, so it has no eigenfunctions. Use a symmetric kernel.")
    return K


def _require_degrees(are_positive: bool, name: str) -> None:
    if not are_positive:
        raise ValueError(
            f"The kernel {name} has row sums that are not positive, so the normalised Laplacian is not "
            "defined. Use a kernel without negative values, such as RBF()."
        )

r"""Explicit features of a kernel, spanned by some of the rows it is bound to.

Among candidate rows (all, or landmarks drawn at random) a Cholesky factorisation with pivots picks *anchors* :math:`A`
and gives a triangular :math:`R` with :math:`R R^\top = k(A, A)`; the other candidates add less than rounding. The
features

.. math:: z(x) = R^{-1} k(A, x), \qquad z(x)^\top z(y) = k(x, A) \, k(A, A)^{-1} \, k(A, y),

are the kernel itself where :math:`x` or :math:`y` is a candidate, and its Nystroem approximation [1]_ elsewhere. Their
number is the numerical rank of the kernel: that of the columns for a linear one, a few hundred for smooth kernels of
few columns.

References
----------
.. [1] C. Williams and M. Seeger, "Using the Nystroem method to speed up kernel machines", NIPS 2000.
.. [2] K. Zhang, I. Tsang and J. Kwok, "Improved Nystroem low-rank approximation and error analysis", ICML 2008.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import linalg, sparse
from scipy.linalg.lapack import dpstrf
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise_distances_chunked

from .bandwidth import squared_norms
from .base import BoundKernel, Kernel, batches
from .checks import require_finite
from .sharing import whole_block

# A row of whose k(x, x) the anchors before it leave a smaller share t is no anchor. A kernel value is then off by at
# most t between two such rows, and by sqrt(t) against a new row far from all. Measured on Gaussian kernels of two to
# three columns: 1e-7 against new rows, while t = 1e-10 gives 1e-6 and t = 1e-14 costs a tenth more anchors.
TOLERANCE = 1e-12
ROUNDINGS = 100  # units in the last place of the kernel's values that are no smaller than t: single precision
# Rows that are clustered, at least so many, and so many for each landmark; and steps of k-means from rows at random.
# With 5000 rows and 10 steps, landmarks are nearer to the rows by 1 % (the mean of eight sets), and the error of the
# Nystroem approximation is smaller by 1 %, in more than twice the time.
CLUSTERED_ROWS, CLUSTER_SIZE, KMEANS_STEPS = 2000, 20, 5
NEARLY = 1e-6  # of a distance, or its square: what rounding can make of equal ones
EPS = float(np.finfo(np.float64).eps)
MAX_REMAINDER = 1e-9  # times the number of rows: what may be left over of a kernel that is evaluated with rounding


class AnchorFeatures:
    r"""The map :math:`z(x) = R^{-1} k(A, x)`, whose inner products are the kernel on the span of its anchors.

    Parameters
    ----------
    base : BoundKernel
        Bound to the anchors.
    root : ndarray of shape (n_anchors, n_anchors)
        Lower triangular :math:`R` with :math:`R R^\top = k(A, A)`.
    tolerance : float or None
        The share of ``k(x, x)`` that is rounding, where the anchors span all bound rows. None where they are landmarks.
    """

    def __init__(self, base: BoundKernel, root: np.ndarray, tolerance: float | None):
        self.base = base
        self.root = root
        self.tolerance = tolerance

    def of(self, X_new: Any) -> np.ndarray:
        """Return the features of new rows, shape ``(n_new, n_anchors)``."""
        return self.from_values(self.base.against(X_new))

    def from_values(self, values: np.ndarray) -> np.ndarray:
        """Return the features of rows with the given kernel values at the anchors."""
        return solve_lower(self.root, values.T.astype(np.float64, copy=False)).T

    def outside(self, X_new: Any, Z_new: np.ndarray) -> np.ndarray:
        """Return the part of ``k(x, x)`` that the anchors do not span; nothing where landmarks are the kernel."""
        if self.tolerance is None:
            return np.zeros(len(Z_new))
        whole = self.base.diag_against(X_new).astype(np.float64)
        rest = whole - np.einsum("ij,ij->i", Z_new, Z_new)
        return np.where(rest > self.tolerance * whole, rest, 0.0)


def anchored(
    kernel: BoundKernel, recipe: Kernel, n_candidates: int, rng: np.random.Generator
) -> tuple[AnchorFeatures, np.ndarray]:
    """Return features of a positive semi-definite kernel, and their values at all rows.

    Parameters
    ----------
    kernel : BoundKernel
    recipe : Kernel
        What the kernel is called in errors.
    n_candidates : int
        As many as rows: all; fewer: drawn without replacement.
    rng : numpy.random.Generator

    Returns
    -------
    features : AnchorFeatures
    Z : ndarray of shape (n_rows, n_anchors)
    """
    is_exact = n_candidates == kernel.n_rows
    rows = np.arange(kernel.n_rows) if is_exact else _draw_rows(kernel.n_rows, n_candidates, rng)
    K = whole_block(kernel) if is_exact else kernel.block(rows, rows)
    tolerance = max(TOLERANCE, ROUNDINGS * float(np.finfo(K.dtype).eps), 2 * len(K) * EPS)
    K = K.astype(np.float64, copy=False)
    # Pivots are taken on cosines, so that a few long rows do not hide the others.
    lengths = _divide_by_lengths(K, recipe)
    L, order = _pivoted_cholesky(K, recipe, tolerance, rng)
    picked = order[: L.shape[1]]
    root = np.asfortranarray(lengths[picked, None] * L[picked])
    anchors = rows[picked]
    features = AnchorFeatures(kernel.restrict(anchors), root, tolerance if is_exact else None)
    if is_exact:
        L *= lengths[:, None]
        return features, L
    Z = np.empty((kernel.n_rows, len(anchors)))
    for part in batches(kernel.n_rows, 2 * len(anchors)):
        Z[part] = features.from_values(kernel.block(np.arange(part.start, part.stop), anchors))
    return features, Z


def landmark_rows(X: Any, n_landmarks: int, method: str, rng: np.random.Generator) -> np.ndarray:
    """Return the numbers of rows that stand for all others, sorted and distinct.

    Parameters
    ----------
    X : array or CSR of shape (n_rows, n_features)
    n_landmarks : int
        As many as rows, or more: all.
    method : {"kmeans", "uniform"}
        The rows nearest to the centres of k-means on a bounded subsample, which spread over the data [2]_, or rows
        drawn without replacement. Where values are missing there are no distances, and rows are drawn.
    rng : numpy.random.Generator

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels.nystroem import landmark_rows
    >>> X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    >>> landmark_rows(X, 2, "kmeans", np.random.default_rng(0))
    array([1, 4])
    """
    n_rows = X.shape[0]
    if n_landmarks >= n_rows:
        return np.arange(n_rows)
    if method == "uniform":
        return _draw_rows(n_rows, n_landmarks, rng)
    sampled = _draw_rows(n_rows, min(n_rows, max(CLUSTERED_ROWS, CLUSTER_SIZE * n_landmarks)), rng)
    points = X[sampled]
    if not np.isfinite(points.data if sparse.issparse(points) else points).all():
        return _draw_rows(n_rows, n_landmarks, rng)
    cluster = _rows_near_means if isinstance(points, np.ndarray) else _sparse_rows_near_means
    nearest = np.unique(cluster(points, n_landmarks, rng))
    others = np.setdiff1d(np.arange(len(sampled)), nearest)
    more = rng.choice(others, n_landmarks - len(nearest), replace=False)  # centres that share their nearest row
    return np.sort(sampled[np.concatenate([nearest, more])])


def _rows_near_means(points: np.ndarray, n_means: int, rng: np.random.Generator) -> np.ndarray:
    """Return the row that is nearest to each centre of k-means, some of them several times.

    The nearest centre of a row is the one of largest ``x.c - |c|^2 / 2``, which is one product with extended rows.
    Centres without a row go to the rows that are farthest from theirs.
    """
    rows = np.ones((len(points), points.shape[1] + 1), dtype=points.dtype)
    np.subtract(points, points.mean(axis=0, dtype=np.float64), out=rows[:, :-1], casting="same_kind")
    halves = 0.5 * squared_norms(rows[:, :-1])
    means = rows[rng.choice(len(rows), n_means, replace=False)]
    scores = np.empty((len(rows), n_means), dtype=rows.dtype)
    for _ in range(KMEANS_STEPS):
        means[:, -1] = -0.5 * squared_norms(means[:, :-1])
        np.matmul(rows, means.T, out=scores)
        nearest = scores.argmax(axis=1)
        counts = np.bincount(nearest, minlength=n_means)
        kept, bare = np.flatnonzero(counts), np.flatnonzero(counts == 0)
        members = rows.take(np.argsort(nearest, kind="stable"), axis=0)
        starts = np.cumsum(counts[kept]) - counts[kept]
        means[kept] = np.add.reduceat(members, starts, axis=0) / counts[kept, None]
        if len(bare):
            halved_squares = halves - scores[np.arange(len(rows)), nearest]
            means[bare, :-1] = rows[np.argsort(-halved_squares, kind="stable")[: len(bare)], :-1]
    means[:, -1] = 1.0
    rows[:, -1] = -halves
    halved_squares = 0.5 * squared_norms(means[:, :-1])[:, None] - means @ rows.T
    return _find_first_nearest(halved_squares, 0, rounding=float(8 * np.finfo(rows.dtype).eps * halves.max()))


def _sparse_rows_near_means(points: Any, n_means: int, rng: np.random.Generator) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows than landmarks: some are drawn then
        seed = int(rng.integers(2**31))
        means = KMeans(n_means, init="random", n_init=1, max_iter=KMEANS_STEPS, random_state=seed).fit(points)
    found = pairwise_distances_chunked(means.cluster_centers_, points, reduce_func=_find_first_nearest)
    return np.concatenate(list(found))


def _find_first_nearest(squares: np.ndarray, start: int, rounding: float = 0.0) -> np.ndarray:
    """Return the first of the nearest points: both rows of a pair are as near to its centre, up to rounding."""
    least = squares.min(axis=1, keepdims=True)
    return np.asarray((squares <= (1.0 + NEARLY) * least + rounding).argmax(axis=1))


def _draw_rows(n_rows: int, n_drawn: int, rng: np.random.Generator) -> np.ndarray:
    """Return row numbers drawn without replacement, sorted."""
    return np.sort(rng.choice(n_rows, n_drawn, replace=False))


def _divide_by_lengths(K: np.ndarray, recipe: Kernel) -> np.ndarray:
    """Divide ``K`` by the lengths of its rows, in place, and return them; rows without length become zero."""
    squared = np.diag(K).copy()
    if not np.isfinite(K.sum()):  # cheaper than to look at every value
        require_finite(K, str(recipe))
    largest = np.abs(squared).max()
    lengths = np.sqrt(np.maximum(squared, 0.0))
    # |k(x, z)|^2 is at most k(x, x) k(z, z), which is rounding here.
    at_none = np.abs(K[lengths == 0]).max(initial=0.0)
    if squared.min() < -len(K) * MAX_REMAINDER * largest or at_none > np.sqrt(len(K) * MAX_REMAINDER) * largest:
        raise _make_indefinite_error(recipe)
    with np.errstate(divide="ignore"):
        inverse = np.where(lengths > 0, 1.0 / lengths, 0.0)
    K *= inverse[:, None]
    K *= inverse
    return lengths


def _pivoted_cholesky(
    K: np.ndarray, recipe: Kernel, tolerance: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return ``L`` with ``K = L L'`` up to the tolerance, and the rows in the order of their pivots; overwrites ``K``.

    What is left over of a positive semi-definite matrix has a diagonal from zero to the tolerance, so entries up to it,
    and takes a vector of signs to entries up to ``n_rows`` times it. More is refused.
    """
    probe = rng.choice([-1.0, 1.0], size=len(K))
    image, diagonal = K @ probe, np.diag(K).copy()
    factor, order, rank, info = dpstrf(K.T, tol=tolerance, lower=1, overwrite_a=1)
    order = np.asarray(order, dtype=np.intp) - 1
    L = np.empty((len(K), int(rank) if info else len(K)))
    L[order] = np.tril(factor[:, : L.shape[1]])
    left_over = np.abs(image - L @ (L.T @ probe)).max()
    too_much = (np.einsum("ij,ij->i", L, L) - diagonal).max()
    if max(left_over, too_much) > len(K) * max(MAX_REMAINDER, 10 * tolerance):
        raise _make_indefinite_error(recipe)
    return L, order


def _make_indefinite_error(recipe: Kernel) -> ValueError:
    return ValueError(
        f"{recipe} has no features: its matrix is not symmetric positive semi-definite, so it is not an inner "
        "product. Use the kernel itself (mixtures take indefinite kernels), or another base."
    )


def solve_lower(root: np.ndarray, B: np.ndarray, *, transposed: bool = False) -> np.ndarray:
    """Return the solution of a lower triangular system, or of its transpose."""
    if not root.size:
        return np.zeros(B.shape)
    return linalg.solve_triangular(root, B, lower=True, trans=int(transposed), check_finite=False)

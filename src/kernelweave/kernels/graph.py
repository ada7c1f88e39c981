r"""Graphs of nearest neighbours, and their Laplacians: what the unlabelled rows say about the shape of the data.

Rows :math:`i` and :math:`j` are joined where one is among the ``n_neighbors`` nearest of the other (symmetrised by OR).
With :math:`d_{ij}` the length of an edge its weight is one of

============= ==================================================================================================
"gaussian"    :math:`\exp(-d_{ij}^2 / (2 t^2))`, :math:`t` the mean length of the edges
"self_tuning" :math:`\exp(-d_{ij}^2 / (t_i t_j))`, :math:`t_i` the distance of row :math:`i` to its last neighbour [1]_
"binary"      1
============= ==================================================================================================

None of them depends on the unit that rows are measured in. Equal rows are joined with weight 1. The Laplacian is
:math:`D - W`, or :math:`I - D^{-1/2} W D^{-1/2}`, with :math:`D` the row sums of :math:`W`; a row without edges, or
whose weights are too small for a number, has a zero row in it: nothing pulls at it. Everything is sparse.

Squared distances cancel where rows are far from zero against their distances, which an origin among them does not
change: dense rows are centred, and sparse ones moved in the columns that make them so (``bandwidth.py``).

References
----------
.. [1] L. Zelnik-Manor and P. Perona, "Self-tuning spectral clustering", NIPS 2004.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.neighbors import NearestNeighbors

from .bandwidth import far_columns, shift_columns
from .base import ALL, BoundKernel, batches
from .near_rows import find_near_rows
from .sharing import kept_block

METRICS = ("euclidean", "cosine")
EDGE_WEIGHTS = ("gaussian", "binary", "self_tuning")
MAX_EXACT_ROWS = 100_000  # above, the neighbours are approximate; those of sparse rows if pynndescent is installed
CACHE_BYTES = 2**22  # of the columns that the Laplacian is applied to at a time: twice as fast as all at n = 20,000


def neighbor_graph(
    X: Any,
    n_neighbors: int,
    metric: str = "euclidean",
    edge_weights: str = "gaussian",
    rng: np.random.Generator | None = None,
) -> sparse.csr_array:
    """Return the symmetric matrix of edge weights between the rows of ``X``.

    Parameters
    ----------
    X : array or CSR of shape (n_rows, n_features)
        Finite.
    n_neighbors : int
        Cut at ``n_rows - 1``. Among rows equally far away the search decides, in the same way every time; a sparse and
        a dense matrix may give it different last digits.
    metric : {"euclidean", "cosine"}, default="euclidean"
        ``"cosine"`` is the chord between rows of length one, sqrt(2 - 2 cos); a row of zeros stays at the origin.
    edge_weights : {"gaussian", "binary", "self_tuning"}, default="gaussian"
    rng : numpy.random.Generator, optional
        Used only above ``MAX_EXACT_ROWS`` rows, where neighbours are approximate; those of sparse rows if pynndescent
        is installed.

    Returns
    -------
    csr_array of shape (n_rows, n_rows)
        Symmetric, with an empty diagonal and no stored zeros.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels.graph import neighbor_graph
    >>> neighbor_graph(np.array([[0.0], [1.0], [3.0]]), 1, edge_weights="binary").toarray()
    array([[0., 1., 0.],
           [1., 0., 1.],
           [0., 1., 0.]])
    """
    points = _move_near_zero(_rescale(_scale_rows_to_unit(X) if metric == "cosine" else X))
    neighbors = _find_nearest(points, min(int(n_neighbors), X.shape[0] - 1), rng)
    first, second, place = _list_edges(neighbors)
    return _weigh_edges(first, second, _measure_edges(points, first, second), place, edge_weights)


def kernel_neighbor_graph(kernel: BoundKernel, n_neighbors: int, edge_weights: str = "gaussian") -> sparse.csr_array:
    r"""Return the graph of the bound rows in the kernel's feature space.

    There :math:`d^2(x, z) = k(x, x) + k(z, z) - 2 k(x, z)`. All pairs are evaluated, in blocks that the working memory
    bounds; distances that cancellation leaves no digit of are zero.

    Parameters
    ----------
    kernel : BoundKernel
    n_neighbors : int
    edge_weights : {"gaussian", "binary", "self_tuning"}, default="gaussian"
    """
    n_rows, diagonal = kernel.n_rows, kernel.diag().astype(np.float64)
    n_neighbors = min(int(n_neighbors), n_rows - 1)
    unit = float(np.abs(diagonal).max(initial=0.0)) or 1.0
    neighbors, lengths = np.empty((n_rows, n_neighbors), dtype=np.intp), np.empty((n_rows, n_neighbors))
    kept = kept_block(kernel)
    for rows in batches(n_rows, 4 * n_rows):  # the block, its distances, and the order of them
        values = kernel.block(np.arange(rows.start, rows.stop), ALL) if kept is None else kept[rows]
        rounding = 8 * np.finfo(values.dtype).eps * (np.abs(diagonal[rows, None]) + np.abs(diagonal)) / unit
        squared = diagonal[rows, None] / unit + diagonal / unit - 2.0 * (values / unit)
        squared[squared <= rounding] = 0.0
        squared[np.arange(len(squared)), np.arange(rows.start, rows.stop)] = np.inf  # not a neighbour of itself
        nearest = np.argpartition(squared, max(0, n_neighbors - 1), axis=1)[:, :n_neighbors]
        neighbors[rows], lengths[rows] = nearest, np.sqrt(np.take_along_axis(squared, nearest, axis=1))
    first, second, place = _list_edges(neighbors)
    shortest = np.full(len(first), np.inf)  # both ends may have found an edge, with different last bits
    np.minimum.at(shortest, place, lengths)
    return _weigh_edges(first, second, shortest, place, edge_weights)


def feature_neighbor_graph(
    Z: np.ndarray, n_neighbors: int, edge_weights: str, rng: np.random.Generator
) -> sparse.csr_array:
    """Return the graph of near rows of features, whose inner products are a kernel: approximate, in memory as ``Z`` is.

    Parameters
    ----------
    Z : ndarray of shape (n_rows, n_features)
    n_neighbors : int
    edge_weights : {"gaussian", "binary", "self_tuning"}
    rng : numpy.random.Generator
    """
    neighbors = find_near_rows(Z, min(int(n_neighbors), len(Z) - 1), rng)
    first, second, place = _list_edges(neighbors)
    return _weigh_edges(first, second, _measure_edges(Z, first, second), place, edge_weights)


def laplacian(W: sparse.csr_array, normalized: bool = True) -> sparse.csr_array:
    r"""Return :math:`I - D^{-1/2} W D^{-1/2}`, or :math:`D - W`; positive semi-definite.

    Parameters
    ----------
    W : csr_array of shape (n_rows, n_rows)
        Symmetric and non-negative, with an empty diagonal.
    normalized : bool, default=True

    Examples
    --------
    >>> from scipy import sparse
    >>> from kernelweave.kernels.graph import laplacian
    >>> laplacian(sparse.csr_array([[0.0, 2.0], [2.0, 0.0]])).toarray()
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    degree = np.asarray(W.sum(axis=1), dtype=np.float64).ravel()
    if not normalized:
        return sparse.csr_array(sparse.diags_array(degree) - W)
    connected = degree > 0
    with np.errstate(divide="ignore"):
        inverse = np.where(connected, 1.0 / np.sqrt(degree), 0.0)
    scaled = sparse.csr_array(W, copy=True)
    scaled.data *= np.repeat(inverse, np.diff(scaled.indptr))
    scaled.data *= inverse[scaled.indices]
    return sparse.csr_array(sparse.diags_array(connected.astype(np.float64)) - scaled)


def power_form(L: sparse.csr_array, Z: np.ndarray, degree: int) -> np.ndarray:
    r"""Return :math:`Z^\top L^p Z`, symmetric, without forming :math:`L^p`.

    With :math:`Y = L^{\lfloor p / 2 \rfloor} Z` it is :math:`Y^\top Y` or :math:`Y^\top L Y`. ``Y`` is the only copy of
    ``Z``: products with the Laplacian go through a few columns at a time.

    Parameters
    ----------
    L : csr_array of shape (n_rows, n_rows)
        Symmetric.
    Z : ndarray of shape (n_rows, n_columns)
    degree : int
        Not negative.
    """
    n_rows, n_columns = Z.shape
    width = max(16, CACHE_BYTES // (8 * n_rows))
    blocks = [slice(start, start + width) for start in range(0, n_columns, width)]
    Y = Z
    if degree >= 2:
        Y = np.empty(Z.shape)
        for columns in blocks:
            part = np.ascontiguousarray(Z[:, columns])
            for _ in range(degree // 2):
                part = L @ part
            Y[:, columns] = part
    if degree % 2 == 0:
        return Y.T @ Y
    out = np.zeros((n_columns, n_columns))
    for columns in blocks:  # above the diagonal, and what of the block is below it
        out[: columns.stop, columns] = Y[:, : columns.stop].T @ (L @ np.ascontiguousarray(Y[:, columns]))
    return np.triu(out) + np.triu(out, 1).T


def _scale_rows_to_unit(X: Any) -> Any:
    """Return the rows divided by their lengths, without overflow on the way; zeros stay."""
    for norm in (np.inf, 2):
        if sparse.issparse(X):
            X = sparse.csr_array(X, dtype=np.float64, copy=True)
            size = sparse.linalg.norm(X, ord=norm, axis=1) if X.nnz else np.zeros(X.shape[0])
            X.data /= np.repeat(np.where(size > 0, size, 1.0), np.diff(X.indptr))
        else:
            size = np.linalg.norm(X.astype(np.float64, copy=False), ord=norm, axis=1, keepdims=True)
            X = X / np.where(size > 0, size, 1.0)
    return X


def _rescale(X: Any) -> Any:
    """Return the rows in a unit in which squares neither overflow nor vanish; dense ones centred."""
    if sparse.issparse(X):
        X = sparse.csr_array(X, dtype=np.float64, copy=True)
        X.data /= _find_largest(X.data)
        return X
    X = X / np.float64(_find_largest(X))
    X -= X.mean(axis=0)  # distances of rows far from zero would cancel
    X /= _find_largest(X)
    return X


def _move_near_zero(points: Any) -> Any:
    """Return rescaled rows, of sparse ones with the columns moved that are far from zero; others stay as they are."""
    if not sparse.issparse(points):
        return points
    columns, origin = far_columns(points)
    return _rescale(shift_columns(points, columns, origin)) if len(columns) else points


def _find_largest(values: np.ndarray) -> float:
    return float(max(values.max(initial=0.0), -values.min(initial=0.0))) or 1.0


def _find_nearest(points: Any, n_neighbors: int, rng: np.random.Generator | None) -> np.ndarray:
    """Return the numbers of the nearest other rows, nearest first; -1 where the search found none."""
    n_rows = points.shape[0]
    if n_neighbors < 1:
        return np.empty((n_rows, 0), dtype=np.intp)
    if n_rows > MAX_EXACT_ROWS and not sparse.issparse(points):
        return find_near_rows(points, n_neighbors, np.random.default_rng(0) if rng is None else rng)
    if n_rows > MAX_EXACT_ROWS and (neighbors := _find_nearest_approximately(points, n_neighbors, rng)) is not None:
        return neighbors
    search = NearestNeighbors(n_neighbors=n_neighbors).fit(points)
    return search.kneighbors(return_distance=False)  # without rows: each row's neighbours other than itself


def _find_nearest_approximately(points: Any, n_neighbors: int, rng: np.random.Generator | None) -> np.ndarray | None:
    try:
        pynndescent = import_module("pynndescent")
    except ImportError:
        return None
    rng = np.random.default_rng(0) if rng is None else rng
    search = pynndescent.NNDescent(
        points, metric="euclidean", n_neighbors=n_neighbors + 1, random_state=int(rng.integers(2**31))
    )
    neighbors = np.asarray(search.neighbor_graph[0])
    # Among equal rows a row need not find itself first, or at all: then its last neighbour is one too many.
    other = neighbors != np.arange(len(neighbors))[:, None]
    other[other.all(axis=1), -1] = False
    return neighbors[other].reshape(len(neighbors), n_neighbors)


def _list_edges(neighbors: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return both ends of every edge, each edge once, and the edge that each entry of ``neighbors`` is."""
    n_rows = len(neighbors)
    start = np.repeat(np.arange(n_rows, dtype=np.int64), neighbors.shape[1])
    end = np.where(neighbors.ravel() >= 0, neighbors.ravel(), start)  # a neighbour that was not found: a loop
    pairs, place = np.unique(np.minimum(start, end) * n_rows + np.maximum(start, end), return_inverse=True)
    return pairs // n_rows, pairs % n_rows, place.reshape(neighbors.shape)


def _measure_edges(points: Any, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the lengths of the edges from differences: exactly zero between equal rows."""
    out = np.empty(len(first))
    for part in batches(len(first), 4 * points.shape[1]):
        step = points[first[part]] - points[second[part]]
        if sparse.issparse(step):
            out[part] = np.sqrt(np.asarray(step.multiply(step).sum(axis=1)).ravel())
        else:
            out[part] = np.sqrt(np.einsum("ij,ij->i", step, step))
    return out


def _weigh_edges(
    first: np.ndarray, second: np.ndarray, lengths: np.ndarray, place: np.ndarray, edge_weights: str
) -> sparse.csr_array:
    """Return the symmetric matrix of the edges' weights."""
    n_rows = len(place)
    if edge_weights == "binary":
        values = np.ones(len(lengths))
    else:
        if edge_weights == "gaussian":
            mean = lengths.sum() / max(1, np.count_nonzero(first != second))
            left = right = np.full(len(lengths), np.sqrt(2.0) * mean)
        else:
            last = lengths[place].max(axis=1, initial=0.0)
            left, right = last[first], last[second]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
            # Two quotients, since the product of two small lengths may vanish; edges without length have weight one.
            values = np.where(lengths > 0, np.exp(-(lengths / left) * (lengths / right)), 1.0)
    kept = (first != second) & (values > 0)
    rows, cols, values = first[kept], second[kept], values[kept]
    W = sparse.coo_array((np.tile(values, 2), (np.r_[rows, cols], np.r_[cols, rows])), shape=(n_rows, n_rows))
    return W.tocsr()

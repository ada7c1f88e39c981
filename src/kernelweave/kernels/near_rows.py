r"""Nearest neighbours of many rows, approximately: leaves of random trees, then neighbours of neighbours.

A tree halves the rows again and again at the median of a projection on a random direction; rows that are near each
other share a leaf more often than not [1]_. The neighbours of a row are the nearest of those that share a leaf with it
in one of several trees. Rows that are neighbours of its neighbours and nearer take their place [2]_. All of it is
sorting and products of small matrices, in blocks that the working memory bounds. Distances are computed in single
precision, so neighbours whose distances agree to seven digits may change places.

References
----------
.. [1] S. Dasgupta and Y. Freund, "Random projection trees and low dimensional manifolds", STOC 2008.
.. [2] W. Dong, C. Moses and K. Li, "Efficient k-nearest neighbor graph construction for generic similarity measures",
   WWW 2011.
"""

from __future__ import annotations

import numpy as np

from .base import batches

N_TREES = 16
LEAF_SIZE = 128  # rows in a leaf, at most twice as many as needed to hold the neighbours
N_PASSES = 1  # over the neighbours of neighbours
MAX_VIA = 10  # nearest neighbours whose neighbours are looked at


def find_near_rows(points: np.ndarray, n_neighbors: int, rng: np.random.Generator) -> np.ndarray:
    """Return the numbers of near other rows, nearest first.

    Parameters
    ----------
    points : ndarray of shape (n_rows, n_features)
        Of about the size 1, near the origin.
    n_neighbors : int
        Less than the number of rows.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of shape (n_rows, n_neighbors)
        -1 where none was found.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels.near_rows import find_near_rows
    >>> find_near_rows(np.array([[0.0], [0.1], [0.3], [0.7]]), 1, np.random.default_rng(0))[:, 0].tolist()
    [1, 0, 1, 2]
    """
    points = np.ascontiguousarray(points, dtype=np.float32)
    found = np.full((len(points), n_neighbors), -1, dtype=np.int32)
    squares = np.full(found.shape, np.inf, dtype=np.float32)
    for _ in range(N_TREES):
        leaves = _grow_leaves(points, max(LEAF_SIZE, 4 * (n_neighbors + 1)), rng)
        width = leaves.shape[1]
        for part in batches(len(leaves), 3 * width * (width + points.shape[1])):
            _search_leaves(points, leaves[part], found, squares)
    for _ in range(N_PASSES):
        _search_neighbors(points, found, squares)
    found[np.isinf(squares)] = -1
    order = np.argsort(squares, axis=1, kind="stable")
    return np.take_along_axis(found, order, axis=1).astype(np.intp)


def _grow_leaves(points: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Return the rows of each leaf of a tree, shape (n_leaves, n_rows_each); some rows are in two, so that all fit."""
    n_rows, n_features = points.shape
    depth = max(0, int(np.ceil(np.log2(n_rows / size))))
    missing = -n_rows % 2**depth
    nodes = np.concatenate([np.arange(n_rows), rng.choice(n_rows, missing, replace=False)]).astype(np.int32)
    nodes = rng.permutation(nodes).reshape(1, -1)
    for _ in range(depth):
        n_nodes, width = nodes.shape
        directions = rng.normal(size=(n_nodes, n_features)).astype(np.float32)
        halves = np.empty((2 * n_nodes, width // 2), dtype=np.int32)
        for part in batches(n_nodes, width * (n_features + 4)):
            here = nodes[part]
            values = np.matmul(points[here], directions[part, :, None])[:, :, 0]
            order = np.argpartition(values, width // 2, axis=1)
            halves[2 * part.start : 2 * part.stop] = np.take_along_axis(here, order, axis=1).reshape(-1, width // 2)
        nodes = halves
    return nodes


def _search_leaves(points: np.ndarray, leaves: np.ndarray, found: np.ndarray, squares: np.ndarray) -> None:
    """Look for nearer rows in the same leaf."""
    width = leaves.shape[1]
    n_neighbors = min(found.shape[1], width - 1)
    if n_neighbors < 1:
        return
    inside = points[leaves]
    inside = inside - inside.mean(axis=1, keepdims=True)  # squares of far rows would cancel
    norms = np.einsum("nwd,nwd->nw", inside, inside)
    distances = norms[:, :, None] + norms[:, None, :] - 2.0 * np.matmul(inside, inside.transpose(0, 2, 1))
    distances[leaves[:, :, None] == leaves[:, None, :]] = np.inf
    nearest = np.argpartition(distances, n_neighbors - 1, axis=2)[:, :, :n_neighbors]
    values = np.maximum(np.take_along_axis(distances, nearest, axis=2), 0.0).reshape(-1, n_neighbors)
    names = np.take_along_axis(np.broadcast_to(leaves[:, None, :], distances.shape), nearest, axis=2)
    _merge(leaves.ravel(), names.reshape(-1, n_neighbors), values, found, squares)


def _search_neighbors(points: np.ndarray, found: np.ndarray, squares: np.ndarray) -> None:
    """Look for nearer rows among the neighbours of neighbours."""
    n_rows, n_neighbors = found.shape
    via = min(n_neighbors, MAX_VIA)
    nearest = np.argpartition(squares, via - 1, axis=1)[:, :via]
    links = np.take_along_axis(found, nearest, axis=1)
    for part in batches(n_rows, via * via * (points.shape[1] + 6)):
        names = links[links[part]].reshape(-1, via * via)
        steps = points[names] - points[part, None, :]
        values = np.einsum("nwd,nwd->nw", steps, steps)
        values[(names == np.arange(part.start, part.stop)[:, None]) | (names < 0)] = np.inf
        _merge(np.arange(part.start, part.stop), names, values, found, squares)


def _merge(rows: np.ndarray, names: np.ndarray, values: np.ndarray, found: np.ndarray, squares: np.ndarray) -> None:
    """Keep the nearest of what was found before and now, each once; a row occurs once or twice among ``rows``."""
    names = np.concatenate([found[rows], names], axis=1)
    values = np.concatenate([squares[rows], values], axis=1)
    order = np.argsort(names, axis=1, kind="stable")
    names, values = np.take_along_axis(names, order, axis=1), np.take_along_axis(values, order, axis=1)
    values[:, 1:][names[:, 1:] == names[:, :-1]] = np.inf
    nearest = np.argpartition(values, found.shape[1] - 1, axis=1)[:, : found.shape[1]]
    found[rows] = np.take_along_axis(names, nearest, axis=1)
    squares[rows] = np.take_along_axis(values, nearest, axis=1)

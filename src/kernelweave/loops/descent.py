"""Rows on their way down trees: the loop of forests."""

from __future__ import annotations

import numpy as np

from .compiling import compiled_later

STRIP_ROWS = 128  # whose places stay in the processor's cache while they go down one tree after the other
MAX_PLACES = 2**15  # places of rows in trees that numpy moves at a time: likewise


@compiled_later
def descend(
    X: np.ndarray,
    roots: np.ndarray,
    depths: np.ndarray,
    column: np.ndarray,
    threshold: np.ndarray,
    child: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write the number of the leaf of every row in each tree.

    A row at node ``i`` goes to node ``child[i]``, or to the one after it if it is above the threshold. A leaf is its
    own child, and nothing is above its threshold.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
    roots, depths : ndarray of shape (n_trees,)
        The first node of each tree, and the most steps that lead to a leaf.
    column, threshold, child : ndarray of shape (n_nodes,)
    out : ndarray of shape (n_rows, n_trees)
    """
    node = np.empty(STRIP_ROWS, dtype=np.int32)
    for start in range(0, len(X), STRIP_ROWS):
        n_rows = min(STRIP_ROWS, len(X) - start)
        for t in range(len(roots)):
            for i in range(n_rows):
                node[i] = roots[t]
            for _ in range(depths[t]):  # step by step, all rows: one row after the other, each step would wait
                for i in range(n_rows):
                    k = node[i]
                    node[i] = child[k] + (X[start + i, column[k]] > threshold[k])
            for i in range(n_rows):
                out[start + i, t] = node[i]


@descend.in_numpy
def _descend_with_numpy(
    X: np.ndarray,
    roots: np.ndarray,
    depths: np.ndarray,
    column: np.ndarray,
    threshold: np.ndarray,
    child: np.ndarray,
    out: np.ndarray,
) -> None:
    """Move all rows down some trees at a time."""
    n_rows = len(X)
    values, rows, stride = np.ascontiguousarray(X.T).ravel(), np.arange(n_rows), np.intp(n_rows)
    width = max(1, MAX_PLACES // max(1, n_rows))
    for start in range(0, len(roots), width):
        trees = slice(start, start + width)
        node = np.repeat(roots[trees, None], n_rows, axis=1)
        for _ in range(int(depths[trees].max())):
            above = values.take(column.take(node) * stride + rows) > threshold.take(node)
            node = child.take(node) + above
        out[:, trees] = node.T

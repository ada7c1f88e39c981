"""Loops of forests: rows on their way down trees, and the leaves that pairs of rows have in common."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from .compiling import compiled_later

STRIP_ROWS = 128  # whose places stay in the processor's cache while they go down one tree after the other
# Pairs whose counts stay in the processor's cache, and rows: more of them use the leaves of a tree while these do.
COUNTED_PAIRS, MIN_COUNTED_ROWS, MAX_COUNTED_ROWS = 2**18, 16, 1024
MAX_STRIP_VALUES = 2**22  # of a block whose leaves scipy counts at a time
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


@compiled_later
def count_common(left: np.ndarray, starts: np.ndarray, members: np.ndarray, out: np.ndarray) -> None:
    """Write in how many trees rows of two lists are in one leaf.

    Parameters
    ----------
    left : ndarray of shape (n_left, n_trees)
        Numbers of the leaves of the first list, which are numbered through all trees.
    starts : ndarray of shape (n_nodes + 1,)
        Where the rows of each leaf begin in ``members``.
    members : ndarray of shape (n_right * n_trees,)
        Numbers of the rows of the second list, leaf by leaf.
    out : ndarray of shape (n_left, n_right)
    """
    height = min(MAX_COUNTED_ROWS, max(MIN_COUNTED_ROWS, COUNTED_PAIRS // max(1, out.shape[1])))
    counts = np.zeros((height, out.shape[1]), dtype=np.int32)
    for start in range(0, len(left), height):
        n_rows = min(height, len(left) - start)
        for t in range(left.shape[1]):  # the members of one tree lie together
            for i in range(n_rows):
                leaf = left[start + i, t]
                for place in range(starts[leaf], starts[leaf + 1]):
                    counts[i, members[place]] += 1
        for i in range(n_rows):
            for j in range(out.shape[1]):
                out[start + i, j] = counts[i, j]
                counts[i, j] = 0


@count_common.in_numpy
def _count_with_scipy(left: np.ndarray, starts: np.ndarray, members: np.ndarray, out: np.ndarray) -> None:
    """Multiply indicators of leaves, some rows at a time."""
    right = sparse.csr_array((np.ones_like(members), members, starts), shape=(len(starts) - 1, out.shape[1]))
    height = max(1, MAX_STRIP_VALUES // max(1, out.shape[1]))
    for start in range(0, len(left), height):
        leaf = left[start : start + height]
        ends = np.arange(0, leaf.size + 1, leaf.shape[1], dtype=starts.dtype)
        indicators = sparse.csr_array(
            (np.ones(leaf.size, dtype=members.dtype), leaf.ravel(), ends), shape=(len(leaf), right.shape[0])
        )
        out[start : start + height] = (indicators @ right).toarray()

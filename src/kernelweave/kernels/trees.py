"""Trees as plain arrays of nodes: which leaf of each tree a row falls into."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ..loops.descent import descend
from .base import batches
from .checks import are_floats, is_index, require_consistent

MAX_COLUMNS = 2**31  # that a node can name
STRIP_ROWS = 2048  # whose leaves stay in the processor's cache while their values are added up


class Forest:
    """Trees as arrays of nodes, which are numbered through all trees.

    A row at node ``i`` goes to node ``child[i]``, or to the one after it if it is above the threshold. A leaf is its
    own child, and nothing is above its threshold.

    Parameters
    ----------
    roots : ndarray of shape (n_trees,)
        The first node of each tree.
    depths : ndarray of shape (n_trees,)
        Cuts on the longest way down.
    column : ndarray of shape (n_nodes,)
        Which column decides; 0 at leaves.
    threshold : ndarray of shape (n_nodes,)
        Infinite at leaves.
    child : ndarray of shape (n_nodes,)
    """

    def __init__(
        self, roots: np.ndarray, depths: np.ndarray, column: np.ndarray, threshold: np.ndarray, child: np.ndarray
    ):
        self.roots = roots
        self.depths = depths
        self.column = column
        self.threshold = threshold
        self.child = child

    @classmethod
    def from_trees(cls, trees: Sequence[Any], values: Sequence[np.ndarray]) -> tuple[Forest, np.ndarray]:
        """Return scikit-learn's trees as arrays, and the values of their nodes in the order of these.

        Parameters
        ----------
        trees : sequence of scikit-learn's trees
        values : sequence of ndarray of shape (n_nodes, n_outputs)
            Of the nodes of each tree.
        """
        parts = [convert_tree(tree) for tree in trees]
        in_order = [value[part.order] for value, part in zip(values, parts, strict=True)]
        return join_trees(parts), np.concatenate(in_order)

    def place_columns(self, order: np.ndarray) -> None:
        """Name columns by where they stand in the data; they were grown on them in an ``order``."""
        self.column = np.where(np.isfinite(self.threshold), order[self.column], 0).astype(np.int32)

    def check_loaded(self) -> None:
        """Refuse arrays of a file that are no trees."""
        n_nodes, n_trees = len(self.threshold), len(self.roots)
        are_nodes = (
            is_index(self.child, n_nodes)
            and is_index(self.roots, n_nodes)
            and are_floats(self.threshold, n_nodes, is_finite=False)
        )
        require_consistent(self, are_nodes and len(self.child) == n_nodes, "has nodes that point outside of it")
        leads_on = ~np.isposinf(self.threshold)  # rows may go to the node after the child
        require_consistent(self, bool(np.all(self.child[leads_on] < n_nodes - 1)), "has nodes that point outside of it")
        is_right = is_index(self.depths, n_nodes + 1) and len(self.depths) == n_trees
        require_consistent(self, is_right, "has trees that are deeper than they have nodes")
        is_right = is_index(self.column, MAX_COLUMNS) and len(self.column) == n_nodes
        require_consistent(self, is_right, "has nodes without a column")

    @property
    def n_trees(self) -> int:
        """How many trees there are."""
        return len(self.roots)

    @property
    def n_nodes(self) -> int:
        """How many nodes all trees have."""
        return len(self.child)

    def leaves(self, X: Any) -> np.ndarray:
        """Return the number of the leaf of every row in each tree, shape ``(n_rows, n_trees)``."""
        if self.n_nodes and self.column.max() >= X.shape[1]:  # compiled code would read beyond the rows
            raise ValueError(f"The trees ask for column {self.column.max()} of rows with {X.shape[1]} columns.")
        out = np.empty((X.shape[0], self.n_trees), dtype=np.int32)
        for rows in batches(X.shape[0], X.shape[1] + self.n_trees):
            part = X[rows]
            part = np.ascontiguousarray(part.toarray() if sparse.issparse(part) else part, dtype=np.float64)
            descend(part, self.roots, self.depths, self.column, self.threshold, self.child, out[rows])
        return out

    def add_leaves(self, values: np.ndarray, leaves: np.ndarray, out: np.ndarray) -> None:
        """Add to each row the values of its leaves.

        Parameters
        ----------
        values : ndarray of shape (n_nodes, n_outputs)
        leaves : ndarray of shape (n_rows, n_trees)
        out : ndarray of shape (n_rows, n_outputs)
        """
        for start in range(0, len(leaves), STRIP_ROWS):
            rows = slice(start, start + STRIP_ROWS)
            for numbers in np.ascontiguousarray(leaves[rows].T):
                out[rows] += values.take(numbers, axis=0)


class Tree(NamedTuple):
    """A tree, its nodes level by level, siblings side by side; ``order`` are their numbers in scikit-learn's."""

    depth: int
    column: np.ndarray
    threshold: np.ndarray
    child: np.ndarray
    order: np.ndarray


def convert_tree(tree: Any) -> Tree:
    """Return the arrays of scikit-learn's tree."""
    left, right = tree.children_left, tree.children_right
    levels = [np.zeros(1, dtype=np.intp)]
    while len(parents := levels[-1][left[levels[-1]] >= 0]):
        levels.append(np.column_stack([left[parents], right[parents]]).ravel())
    order = np.concatenate(levels)
    place = np.empty(len(order), dtype=np.int32)
    place[order] = np.arange(len(order))
    is_inner = left[order] >= 0
    column = np.where(is_inner, tree.feature[order], 0).astype(np.int32)
    threshold = np.where(is_inner, tree.threshold[order], np.inf)
    child = np.where(is_inner, place[left[order]], place[order])
    return Tree(len(levels) - 1, column, threshold, child, order)


def join_trees(trees: Sequence[Tree]) -> Forest:
    """Number the nodes through all trees."""
    sizes = np.array([len(tree.child) for tree in trees])
    roots = (np.cumsum(sizes) - sizes).astype(np.int32)
    below = np.concatenate([tree.child for tree in trees]) + np.repeat(roots, sizes)
    columns, thresholds = (np.concatenate([getattr(tree, name) for tree in trees]) for name in ("column", "threshold"))
    return Forest(roots, np.array([tree.depth for tree in trees]), columns, thresholds, below)

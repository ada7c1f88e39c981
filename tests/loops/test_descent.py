import numpy as np
import pytest

from kernelweave import ForestKernel
from kernelweave.loops import descent
from kernelweave.loops.descent import count_common, descend


def grown(n_columns=3, n_trees=7, n_rows=60):
    X = np.random.default_rng(0).normal(size=(n_rows, n_columns))
    return ForestKernel(n_trees, min_samples_leaf=2).bind(X, np.random.default_rng(1)).forest


def leaf_of(forest, tree, x):
    """Where one row ends in one tree, step by step."""
    node = int(forest.roots[tree])
    while forest.child[node] != node:
        node = int(forest.child[node]) + int(x[forest.column[node]] > forest.threshold[node])
    return node


def leaves(forest, X):
    out = np.full((len(X), forest.n_trees), -1, dtype=np.int32)
    descend(X, forest.roots, forest.depths, forest.column, forest.threshold, forest.child, out)
    return out


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("n_rows", [0, 1, 25])
def test_every_row_ends_where_it_ends_step_by_step(n_rows, monkeypatch):
    monkeypatch.setattr(descent, "MAX_PLACES", 40)
    forest, X = grown(), 2.0 * np.random.default_rng(2).normal(size=(n_rows, 3))
    X[n_rows // 2 :, 0] = np.nan  # is above nothing
    X[:1, 1] = np.inf
    expected = [[leaf_of(forest, t, x) for t in range(forest.n_trees)] for x in X]
    np.testing.assert_array_equal(leaves(forest, X), np.reshape(expected, (n_rows, forest.n_trees)))


@pytest.mark.usefixtures("form")
def test_trees_that_lead_in_a_circle_come_to_an_end():
    circle = np.array([1, 0, 2])  # of a damaged file
    out = np.empty((2, 1), dtype=np.int32)
    nodes = np.zeros(3, dtype=np.int32), np.array([np.inf, np.inf, np.inf]), circle.astype(np.int32)
    descend(np.zeros((2, 1)), np.zeros(1, dtype=np.int32), np.array([5]), *nodes, out)
    assert set(out.ravel()) <= {0, 1}


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("n_left, n_right", [(0, 3), (1, 1), (40, 50), (70, 7)])
def test_common_leaves_are_those_that_a_comparison_finds(n_left, n_right, monkeypatch):
    monkeypatch.setattr(descent, "MAX_STRIP_VALUES", 60)
    rng, n_trees = np.random.default_rng(0), 5
    left, right = (6 * np.arange(n_trees) + rng.integers(6, size=(n, n_trees)) for n in (n_left, n_right))
    order = np.argsort(right.ravel(), kind="stable")
    starts = np.searchsorted(right.ravel()[order], np.arange(6 * n_trees + 1)).astype(np.int32)
    out = np.full((n_left, n_right), np.nan)
    count_common(left.astype(np.int32), starts, (order // n_trees).astype(np.int32), out)
    np.testing.assert_array_equal(out, (left[:, None] == right[None]).sum(axis=2))

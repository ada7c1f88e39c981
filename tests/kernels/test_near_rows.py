import numpy as np
import pytest
from scipy.spatial import cKDTree
from sklearn import config_context

from kernelweave.kernels import near_rows
from kernelweave.kernels.near_rows import find_near_rows


def exact(points, n_neighbors):
    """The nearest other rows; points differ."""
    return cKDTree(points).query(points, k=n_neighbors + 1)[1][:, 1:]


def test_in_one_leaf_the_search_is_exact():
    points = np.random.default_rng(0).normal(size=(100, 3))
    found = find_near_rows(points, 5, np.random.default_rng(1))
    np.testing.assert_array_equal(found, exact(points, 5))


@pytest.mark.parametrize("n_neighbors", [1, 10])
def test_most_neighbors_are_found_among_several_leaves(n_neighbors):
    points = np.random.default_rng(0).normal(size=(3001, 6))
    found = find_near_rows(points, n_neighbors, np.random.default_rng(1))
    shared = np.mean([len(np.intersect1d(*pair)) for pair in zip(found, exact(points, n_neighbors), strict=True)])
    assert shared > 0.97 * n_neighbors
    lengths = np.linalg.norm(points[found] - points[:, None], axis=2)
    assert np.all(np.diff(lengths, axis=1) > -1e-6)  # nearest first, in single precision
    assert np.all(found != np.arange(3001)[:, None])
    assert all(len(set(row)) == n_neighbors for row in found.tolist())


def test_the_same_seed_finds_the_same_whatever_the_blocks():
    points = np.random.default_rng(0).normal(size=(1500, 4))
    found = find_near_rows(points, 7, np.random.default_rng(1))
    np.testing.assert_array_equal(find_near_rows(points, 7, np.random.default_rng(1)), found)
    with config_context(working_memory=1):
        other = find_near_rows(points, 7, np.random.default_rng(1))
    assert np.mean(other == found) > 0.999  # products of other shapes round differently


def test_equal_rows_are_neighbors_of_each_other():
    points = np.repeat(np.random.default_rng(0).normal(size=(200, 3)), 5, axis=0)
    found = find_near_rows(points, 4, np.random.default_rng(0))
    assert np.mean(found // 5 == np.arange(1000)[:, None] // 5) > 0.95  # halves cut through some groups


def test_more_neighbors_than_a_leaf_holds_make_larger_leaves(monkeypatch):
    monkeypatch.setattr(near_rows, "LEAF_SIZE", 2)
    points = np.random.default_rng(0).normal(size=(400, 2))
    found = find_near_rows(points, 12, np.random.default_rng(0))
    assert found.min() >= 0


def test_what_is_not_found_is_said(monkeypatch):
    monkeypatch.setattr(near_rows, "N_TREES", 0)
    assert np.all(find_near_rows(np.zeros((5, 2)), 2, np.random.default_rng(0)) == -1)

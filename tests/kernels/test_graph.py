import sys
import types
import warnings

import numpy as np
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.spatial.distance import cdist

from kernelweave import RBF, FromCallable, Linear, ManifoldKernel
from kernelweave.kernels import graph, manifold
from kernelweave.kernels.base import ALL
from kernelweave.kernels.graph import (
    EDGE_WEIGHTS,
    feature_neighbor_graph,
    kernel_neighbor_graph,
    laplacian,
    neighbor_graph,
    power_form,
)

N_ROWS = 40
CONTAINERS = [np.asarray, np.asfortranarray, sparse.csr_matrix, sparse.csr_array]


@pytest.fixture(name="X")
def sample():
    X = np.random.default_rng(0).normal(size=(N_ROWS, 5))
    X[np.abs(X) < 0.2] = 0.0
    return X


def naive(distances, n_neighbors, weights):
    """The definition, row by row."""
    n_rows = len(distances)
    distances = distances + np.diag(np.full(n_rows, np.inf))
    is_edge, last = np.zeros((n_rows, n_rows), dtype=bool), np.zeros(n_rows)
    for i in range(n_rows):
        nearest = np.argsort(distances[i])[:n_neighbors]
        is_edge[i, nearest] = True
        last[i] = distances[i, nearest[-1]]
    is_edge |= is_edge.T
    if weights == "binary":
        return is_edge.astype(float)
    squared = 2 * distances[is_edge].mean() ** 2 if weights == "gaussian" else np.outer(last, last)
    return np.where(is_edge, np.exp(-(distances**2) / squared), 0.0)


def bound_to(kernel, X):
    return kernel.bind(X, np.random.default_rng(0))


# The graph


@pytest.mark.parametrize("weights", EDGE_WEIGHTS)
@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("n_neighbors", [1, 4, N_ROWS - 1])
def test_a_graph_is_its_definition(weights, container, n_neighbors, X):
    W = neighbor_graph(container(X), n_neighbors, edge_weights=weights)
    assert isinstance(W, sparse.csr_array)
    np.testing.assert_allclose(W.toarray(), naive(cdist(X, X), n_neighbors, weights), rtol=1e-10)


@pytest.mark.parametrize("weights", EDGE_WEIGHTS)
@pytest.mark.parametrize("container", CONTAINERS)
def test_the_cosine_metric_is_the_chord_of_unit_rows(weights, container, X):
    chords = np.sqrt(2 * cdist(X, X, "cosine"))
    np.fill_diagonal(chords, 0.0)
    W = neighbor_graph(container(X), 4, metric="cosine", edge_weights=weights)
    np.testing.assert_allclose(W.toarray(), naive(chords, 4, weights), rtol=1e-7)  # 1 - cos cancels in the oracle


@pytest.mark.parametrize("container", CONTAINERS)
def test_a_row_of_zeros_sits_at_the_origin_of_the_cosine_metric(container, X):
    X[3] = 0.0
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    unit = X / np.where(lengths > 0, lengths, 1.0)
    n_others = N_ROWS - 1  # all, since the origin is equally far from all
    W = neighbor_graph(container(X), n_others, metric="cosine")
    np.testing.assert_allclose(W.toarray(), naive(cdist(unit, unit), n_others, "gaussian"), rtol=1e-10)


@pytest.mark.parametrize("weights", EDGE_WEIGHTS)
def test_distances_of_a_kernel_are_those_of_its_feature_space(weights, X):
    W = kernel_neighbor_graph(bound_to(Linear(), X), 4, weights)
    np.testing.assert_allclose(W.toarray(), naive(cdist(X, X), 4, weights), rtol=1e-7)  # squares cancel
    chord = np.sqrt(np.maximum(0, 2 - 2 * np.exp(-0.5 * cdist(X, X, "sqeuclidean"))))
    W = kernel_neighbor_graph(bound_to(RBF(0.5), X), 4, weights)
    np.testing.assert_allclose(W.toarray(), naive(chord, 4, weights), rtol=1e-7)


def test_distances_of_a_kernel_are_computed_by_blocks(X):
    heights = []

    def watched(A, B):
        heights.append(len(A))
        return A @ B.T

    bound = bound_to(FromCallable(watched), X)
    whole = kernel_neighbor_graph(bound, 4)
    heights.clear()
    with sklearn.config_context(working_memory=8 * 4 * 4 * N_ROWS * 7 / 2**20):  # 7 rows
        parts = kernel_neighbor_graph(bound, 4)
    assert max(heights) == 7
    np.testing.assert_allclose(parts.toarray(), whole.toarray(), rtol=1e-12)


@pytest.mark.parametrize("n_rows", [1, 2, 3])
@pytest.mark.parametrize("weights", EDGE_WEIGHTS)
@pytest.mark.filterwarnings("error")
def test_more_neighbours_than_rows_join_all(n_rows, weights, X):
    for W in (
        neighbor_graph(X[:n_rows], 10, edge_weights=weights),
        neighbor_graph(sparse.csr_array(X[:n_rows]), 10, edge_weights=weights),
        kernel_neighbor_graph(bound_to(Linear(), X[:n_rows]), 10, weights),
    ):
        np.testing.assert_array_equal(W.toarray() > 0, ~np.eye(n_rows, dtype=bool))


def assert_is_a_graph(W):
    assert np.isfinite(W.data).all()
    assert (W.data > 0).all()
    assert W.data.max(initial=0.0) <= 1.0
    assert not W.diagonal().any()
    assert abs(W - W.T).max() == 0


@pytest.mark.parametrize("weights", EDGE_WEIGHTS)
@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.filterwarnings("error")
def test_equal_rows_are_joined_with_weight_one(weights, container, X):
    X[5:17] = X[4]  # more copies than neighbours: a row is then not its own first neighbour
    graphs = [
        neighbor_graph(container(X), 3, edge_weights=weights),
        kernel_neighbor_graph(bound_to(RBF(), X), 3, weights),
    ]
    for W in graphs:
        assert_is_a_graph(W)
        inside = W.toarray()[4:17, 4:17]
        assert set(np.unique(inside)) == {0.0, 1.0}
        assert ((inside > 0).sum(axis=1) >= 3).all()


@pytest.mark.parametrize("weights", EDGE_WEIGHTS)
@pytest.mark.parametrize("value", [0.0, 1.0, 1e-200, 1e200])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.filterwarnings("error")
def test_rows_that_are_all_equal_are_joined_with_weight_one(weights, value, metric, container):
    W = neighbor_graph(container(np.full((9, 2), value)), 3, metric=metric, edge_weights=weights)
    assert_is_a_graph(W)
    assert (W.data == 1.0).all()
    assert (W.sum(axis=1) >= 3).all()


@pytest.mark.parametrize("unit", [1e-300, 1e-150, 1e-8, 1e8, 1e150, 1e300])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("weights", EDGE_WEIGHTS)
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.filterwarnings("error")
def test_the_unit_of_the_rows_does_not_matter(unit, metric, weights, container, X):
    expected = neighbor_graph(X, 5, metric=metric, edge_weights=weights)
    found = neighbor_graph(container(unit * X), 5, metric=metric, edge_weights=weights)
    np.testing.assert_allclose(found.toarray(), expected.toarray(), rtol=1e-10)


@pytest.mark.parametrize("container", CONTAINERS)
def test_rows_far_from_the_origin_keep_their_distances(container, X):
    expected = neighbor_graph(X, 5)
    np.testing.assert_allclose(neighbor_graph(container(X + 1e8), 5).toarray(), expected.toarray(), rtol=1e-5)


@pytest.mark.parametrize("weights", EDGE_WEIGHTS)
@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("origin", [{3: 1e8}, {3: -1e8}, {0: 1e4, 3: 1e8}], ids=repr)
@pytest.mark.parametrize("unit", [1e-150, 1.0, 1e150])
@pytest.mark.filterwarnings("error")
def test_columns_far_from_zero_do_not_change_the_graph(weights, container, origin, unit, X):
    X[:, list(origin)] += list(origin.values())
    W = neighbor_graph(container(unit * X), 5, edge_weights=weights)
    # The unit rounds values of 1e8 by 1e-8.
    np.testing.assert_allclose(W.toarray(), naive(cdist(X, X), 5, weights), rtol=1e-5)


def test_a_row_without_the_column_that_is_far_from_zero_is_far_from_the_others(X):
    X[:, 3] += 1e8
    X[[7, 9], 3] = 0.0
    W = neighbor_graph(sparse.csr_array(X), 1, edge_weights="binary")
    np.testing.assert_array_equal(W.toarray(), naive(cdist(X, X), 1, "binary"))


def test_sparse_rows_near_zero_stay_as_they_are(X):
    for ordinary in (X, X != 0.0, np.column_stack([X, np.ones(N_ROWS)])):
        points = graph._rescale(sparse.csr_array(ordinary))
        assert graph._move_near_zero(points) is points


@pytest.mark.parametrize("container", CONTAINERS)
def test_angles_of_rows_far_from_zero_are_seen_from_zero(container, X):
    X[:, 3] += 30.0
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    W = neighbor_graph(container(X), 4, metric="cosine")
    np.testing.assert_allclose(W.toarray(), naive(cdist(unit, unit), 4, "gaussian"), rtol=1e-10)


@pytest.mark.parametrize("container", CONTAINERS)
def test_small_angles_are_told_apart(container, X):
    X[:, 3] = 1e5
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    W = neighbor_graph(container(X), 4, metric="cosine")
    np.testing.assert_allclose(W.toarray(), naive(cdist(unit, unit), 4, "gaussian"), rtol=1e-8)


def test_single_precision_is_computed_in_double(X):
    expected = neighbor_graph(X.astype(np.float32).astype(np.float64), 5)
    found = neighbor_graph(X.astype(np.float32), 5)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found.toarray(), expected.toarray(), rtol=1e-12)


@pytest.mark.filterwarnings("error")
def test_an_outlier_whose_weights_vanish_is_isolated():
    X = np.vstack([np.random.default_rng(0).normal(size=(2000, 2)), [[1e5, 0.0]]])
    W = neighbor_graph(X, 3)
    assert_is_a_graph(W)
    assert W[[2000]].nnz == 0
    for normalized in (True, False):
        L = laplacian(W, normalized)
        assert not L[[2000]].toarray().any()
        assert np.isfinite(L.data).all()


@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(1, 5), st.sampled_from(EDGE_WEIGHTS))
def test_any_sample_gives_a_graph_and_a_positive_semi_definite_laplacian(seed, n_rows, n_neighbors, weights):
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, size=(n_rows, 2)) * 10.0 ** rng.integers(-120, 120, size=(n_rows, 1))
    for metric in ("euclidean", "cosine"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            W = neighbor_graph(X, n_neighbors, metric=metric, edge_weights=weights)
        assert_is_a_graph(W)
        for normalized in (True, False):
            values = np.linalg.eigvalsh(laplacian(W, normalized).toarray())
            assert values[0] >= -1e-13 * max(1.0, values[-1])


def test_the_same_sample_gives_the_same_bits(X):
    first, second = (neighbor_graph(X.round(), 5) for _ in range(2))  # with ties
    np.testing.assert_array_equal(first.toarray(), second.toarray())


# Approximate neighbours


@pytest.fixture(name="searches")
def fake_pynndescent(monkeypatch):
    """A search that finds the nearest rows, itself among them but not always first; the last row finds nothing."""
    searches = []

    class NNDescent:
        def __init__(self, data, metric, n_neighbors, random_state):
            searches.append(random_state)
            assert metric == "euclidean"
            found = np.argsort(cdist(data.toarray(), data.toarray()), axis=1)[:, :n_neighbors]
            found[0] = np.roll(found[0], 2)  # does not find itself first
            found[-1] = -1
            self.neighbor_graph = (found, None)

    monkeypatch.setitem(sys.modules, "pynndescent", types.SimpleNamespace(NNDescent=NNDescent))
    monkeypatch.setattr(graph, "MAX_EXACT_ROWS", N_ROWS - 1)
    return searches


@pytest.mark.parametrize("weights", EDGE_WEIGHTS)
def test_many_sparse_rows_are_searched_approximately_where_that_is_installed(weights, searches, X):
    rows = sparse.csr_array(X)
    found = neighbor_graph(rows, 4, edge_weights=weights, rng=np.random.default_rng(0))
    assert searches == [int(np.random.default_rng(0).integers(2**31))]
    neighbor_graph(rows[:-1], 4, edge_weights=weights)
    assert len(searches) == 1
    assert_is_a_graph(found)
    is_edge = naive(cdist(X, X), 4, "binary") > 0
    np.testing.assert_array_equal(found.toarray()[:-1, :-1] > 0, is_edge[:-1, :-1])


# Compiles for a minute where pynndescent is first used. It is not among the requirements of the tests, but of all.
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_the_approximate_search_finds_nearly_all_neighbors(form, monkeypatch):
    if form is sparse.csr_array:
        pytest.importorskip("pynndescent", reason="needs the extra ann")
    X = form(np.random.default_rng(0).normal(size=(500, 3)))
    exact = neighbor_graph(X, 5, edge_weights="binary")
    monkeypatch.setattr(graph, "MAX_EXACT_ROWS", 499)
    found = neighbor_graph(X, 5, edge_weights="binary", rng=np.random.default_rng(1))
    assert_is_a_graph(found)
    assert exact.multiply(found).sum() > 0.9 * exact.sum()  # above 0.98 for 1500 rows in five dimensions


def test_without_it_the_search_among_sparse_rows_is_exact(monkeypatch, X):
    rows = sparse.csr_array(X)
    expected = neighbor_graph(rows, 4)
    monkeypatch.setitem(sys.modules, "pynndescent", None)
    monkeypatch.setattr(graph, "MAX_EXACT_ROWS", 10)
    np.testing.assert_array_equal(neighbor_graph(rows, 4).toarray(), expected.toarray())


def test_near_rows_of_features_are_joined_as_those_of_their_kernel(X):
    found = feature_neighbor_graph(X, 4, "gaussian", np.random.default_rng(0))
    kernel = Linear().bind(X, np.random.default_rng(0))
    expected = kernel_neighbor_graph(kernel, 4, "gaussian")  # all rows are in one leaf: nothing is missed
    np.testing.assert_allclose(found.toarray(), expected.toarray(), atol=1e-6)  # the lengths cancel in the latter


def test_many_rows_find_their_neighbors_in_feature_space_by_landmarks(monkeypatch):
    X = np.random.default_rng(0).normal(size=(300, 2))
    kernel = ManifoldKernel(RBF(), metric="kernel", n_landmarks=60)
    exact = kernel.bind(X, np.random.default_rng(1)).block(ALL, ALL)
    monkeypatch.setattr(manifold, "MAX_PAIRED_ROWS", 299)
    monkeypatch.setattr(manifold, "kernel_neighbor_graph", None)  # no pairs are evaluated
    found = kernel.bind(X, np.random.default_rng(1)).block(ALL, ALL)
    # sixty landmarks span a smooth kernel of two columns nearly; one leaf or two miss few neighbours
    assert np.abs(found - exact).max() < 0.2 * np.abs(exact).max()


# The Laplacian and its powers


@pytest.mark.parametrize("normalized", [True, False])
def test_a_laplacian_is_the_sum_over_the_edges(normalized, X):
    W = neighbor_graph(X, 4)
    L, degree = laplacian(W, normalized), W.sum(axis=1)
    assert isinstance(L, sparse.csr_array)
    f = np.random.default_rng(1).normal(size=N_ROWS)
    g = f / np.sqrt(degree) if normalized else f
    expected = 0.5 * (W.toarray() * (g[:, None] - g) ** 2).sum()
    assert f @ L @ f == pytest.approx(expected, rel=1e-12)
    assert np.abs(L @ (np.sqrt(degree) if normalized else np.ones(N_ROWS))).max() < 1e-14 * N_ROWS


@pytest.mark.parametrize("degree", range(7))
@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("cache_bytes", [1, 2**30])
def test_a_power_form_is_that_of_the_dense_power(degree, normalized, cache_bytes, monkeypatch, X):
    monkeypatch.setattr(graph, "CACHE_BYTES", cache_bytes)
    L = laplacian(neighbor_graph(X, 4), normalized)
    Z = np.random.default_rng(1).normal(size=(N_ROWS, 35))
    before = Z.copy()
    found = power_form(L, Z, degree)
    expected = Z.T @ np.linalg.matrix_power(L.toarray(), degree) @ Z
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_array_equal(Z, before)


def test_a_power_form_takes_transposed_features_and_none(X):
    L = laplacian(neighbor_graph(X, 4))
    Z = np.random.default_rng(1).normal(size=(6, N_ROWS)).T
    np.testing.assert_allclose(power_form(L, Z, 3), power_form(L, Z.copy(), 3), rtol=1e-12)
    assert power_form(L, np.empty((N_ROWS, 0)), 3).shape == (0, 0)

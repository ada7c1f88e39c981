import numpy as np
import pytest
from checks.rounding import assert_same_but_for_rounding
from scipy import sparse

from kernelweave import RBF, FromCallable
from kernelweave.estimators.graph_means import KernelMeans, NeighborMeans
from kernelweave.kernels.graph import neighbor_graph

FAR = 1e6


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    return rng.normal(size=(60, 3)), rng.normal(size=(60, 2))


def neighbor_means(X, weights, n_neighbors=5, metric="euclidean"):
    means = NeighborMeans(X, n_neighbors, metric, weights)
    means.learn_lengths(neighbor_graph(means.points, n_neighbors, edge_weights=weights))
    return means


@pytest.mark.parametrize("weights", ["gaussian", "binary", "self_tuning"])
def test_means_over_neighbours_are_means(weights, rows):
    X, values = rows
    found = neighbor_means(X, weights).means(X + 0.01, values)
    assert np.all((found >= values.min(axis=0)) & (found <= values.max(axis=0)))
    np.testing.assert_allclose(neighbor_means(X, weights).means(X, np.ones_like(values)), 1.0)


def test_edges_to_new_rows_weigh_as_those_of_the_graph(rows):
    X = rows[0]
    W = neighbor_graph(X, 5)
    means = neighbor_means(X, "gaussian")
    distances = np.linalg.norm(X[:, None] - X, axis=2)
    first, second = W.nonzero()
    edge = 17
    length = distances[first[edge], second[edge]] / means.size
    assert np.exp(-np.square(length) / (2 * means.unit**2)) == pytest.approx(W[first[edge], second[edge]], rel=1e-6)


@pytest.mark.parametrize("weights", ["gaussian", "self_tuning"])
def test_far_from_all_rows_it_is_the_value_of_the_nearest(weights, rows):
    X, values = rows
    new = np.array([[FAR, 0.0, 0.0]])
    nearest = X[:, 0].argmax()
    np.testing.assert_allclose(neighbor_means(X, "gaussian").means(new, values)[0], values[nearest])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_the_unit_is_the_mean_length_of_edges_also_where_rows_repeat(container, rows):
    X, values = np.repeat(rows[0][:20], 3, axis=0), rows[1]
    means = neighbor_means(container(X), "gaussian")
    first, second = neighbor_graph(X, 5).nonzero()
    lengths = np.linalg.norm(X[first] - X[second], axis=1)
    assert (lengths == 0.0).any()
    assert means.unit * means.size == pytest.approx(lengths.mean(), rel=1e-12)
    assert np.isfinite(means.means(container(X), values)).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("weights", ["gaussian", "self_tuning"])
def test_where_edges_have_no_length_the_nearest_rows_alone_count(weights):
    X = np.zeros((400, 1))
    X[0] = 1.0  # its edges are too long against the mean to have a weight
    means = neighbor_means(X, weights)
    values = np.eye(2)[[0] + 399 * [1]]
    np.testing.assert_array_equal(
        means.means(np.array([[1.0], [0.9], [0.0], [0.1], [-9.0]]), values).argmax(axis=1), [0, 0, 1, 1, 1]
    )
    np.testing.assert_allclose(means.means(X[:2], values), values[:2])


def test_edges_that_are_nothing_against_the_mean_all_count():
    X = np.r_[np.arange(60.0), 1e14][:, None]  # all weights round to one
    means = neighbor_means(X, "gaussian", n_neighbors=3)
    values = np.arange(61.0)[:, None]
    np.testing.assert_allclose(means.means(X[1:2], values), [[1.0]])


def test_sparse_rows_give_the_means_of_dense_ones(rows):
    X, values = rows
    dense = neighbor_means(X, "gaussian", metric="cosine").means(X[:5], values)
    thin = neighbor_means(sparse.csr_array(X), "gaussian", metric="cosine").means(sparse.csr_array(X[:5]), values)
    np.testing.assert_allclose(dense, thin, atol=1e-8)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("n_columns", [3, 21])  # with a tree of neighbours, and without
def test_means_around_sparse_rows_are_those_around_dense_ones(metric, n_columns, rows):
    X, values = np.tile(rows[0] + 5.0, n_columns // 3), rows[1]
    new = X[:5] + 0.1
    means = neighbor_means(X, "gaussian", metric=metric)
    assert_same_but_for_rounding(means.means(sparse.csr_array(new), values), means.means(new, values))


def test_means_by_a_kernel_are_weighted_by_it(rows):
    X, values = rows
    kernel = RBF(0.5).bind(X, np.random.default_rng(0))
    K = kernel.against(X[:4] + 0.1)
    np.testing.assert_allclose(
        KernelMeans(kernel).means(X[:4] + 0.1, values), K @ values / K.sum(axis=1, keepdims=True), rtol=1e-12
    )
    new = np.array([[FAR, 0.0, 0.0]])
    np.testing.assert_allclose(KernelMeans(kernel).means(new, values)[0], values[X[:, 0].argmax()])


@pytest.mark.parametrize("size", [1e-124, 1e124])
def test_values_of_any_size_have_means_at_rows_in_single_precision(size, rows):
    X, values = rows
    single = X.astype(np.float32)
    means = KernelMeans(RBF(1.0).bind(single, np.random.default_rng(0)))
    np.testing.assert_allclose(means.means(single, size * values), size * means.means(single, values), rtol=1e-6)
    assert not means.means(single, 0.0 * values).any()


def test_a_row_like_no_other_has_the_mean_of_all(rows):
    X, values = rows
    kernel = FromCallable(zero_far_away).bind(X, np.random.default_rng(0))
    np.testing.assert_allclose(KernelMeans(kernel).means(np.full((1, 3), FAR), values)[0], values.mean(axis=0))


def zero_far_away(A, B):
    return np.exp(-np.linalg.norm(A[:, None] - B, axis=2))


@pytest.mark.parametrize("weights", ["gaussian", "self_tuning"])
def test_sparse_rows_far_from_zero_have_the_neighbours_of_dense_ones(weights, rows):
    X, values = rows
    X = X + np.array([0.0, 1e8, 0.0])
    dense = neighbor_means(X, weights).means(X[:5] + 0.1, values)
    thin = neighbor_means(sparse.csr_array(X), weights).means(sparse.csr_array(X[:5] + 0.1), values)
    np.testing.assert_allclose(dense, thin, atol=1e-4)


@pytest.mark.parametrize("make", [lambda X: neighbor_means(X, "gaussian"), lambda X: KernelMeans(RBF().bind(X, None))])
def test_shares_of_rows_make_up_the_means(make, rows):
    X, values = rows
    means = make(X)
    numbers, weights = means.shares(X + 0.1)
    assert numbers.shape == weights.shape
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.einsum("ij,ijc->ic", weights, values[numbers]), means.means(X + 0.1, values))


def test_rows_that_are_similar_to_none_share_equally(rows):
    X = rows[0]
    numbers, weights = KernelMeans(FromCallable(lambda A, B: np.zeros((len(A), len(B)))).bind(X, None)).shares(X[:2])
    np.testing.assert_array_equal(numbers, np.tile(np.arange(60), (2, 1)))
    np.testing.assert_allclose(weights, 1 / 60)

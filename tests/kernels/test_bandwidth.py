import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist, pdist

from kernelweave.kernels import bandwidth
from kernelweave.kernels.bandwidth import geometric_grid, reference_gamma, squared_distances

REFERENCES = ["mean", "median", "scale"]


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(40, 3)) * [1.0, 5.0, 0.1] + 7.0


def gamma(reference, X, sample_weight=None, seed=0):
    return reference_gamma(reference, X, np.random.default_rng(seed), sample_weight)


def test_mean_is_one_over_the_mean_squared_distance_over_all_pairs(X):
    assert gamma("mean", X) == pytest.approx(1 / cdist(X, X, "sqeuclidean").mean(), rel=1e-12)


def test_median_is_one_over_the_median_squared_distance(X):
    assert gamma("median", X[:10]) == pytest.approx(1 / np.sort(pdist(X[:10], "sqeuclidean"))[22], rel=1e-9)


def test_scale_is_that_of_scikit_learn(X):
    assert gamma("scale", X) == pytest.approx(1 / (X.shape[1] * X.var()), rel=1e-12)


@pytest.mark.parametrize("reference", REFERENCES)
@pytest.mark.parametrize("container", [sparse.csr_matrix, sparse.csr_array])
def test_sparse_data_have_the_same_bandwidth(reference, container, X):
    assert gamma(reference, container(X)) == pytest.approx(gamma(reference, X), rel=1e-8)


@pytest.mark.parametrize("reference", ["mean", "scale"])
def test_a_weight_of_two_is_a_row_given_twice(reference, X):
    weight = np.ones(40)
    weight[:9] = 2
    assert gamma(reference, X, weight) == pytest.approx(gamma(reference, np.vstack([X, X[:9]])), rel=1e-12)


def test_weighted_median_ignores_rows_of_weight_zero(X):
    weight = np.r_[np.ones(20), np.zeros(20)]
    assert gamma("median", X, weight) == pytest.approx(gamma("median", X[:20]), rel=1e-12)


def test_median_of_many_rows_is_close_and_seeded(X, monkeypatch):
    many = np.random.default_rng(1).normal(size=(3000, 2))
    assert gamma("median", many, seed=3) == gamma("median", many, seed=3)
    whole = 1 / np.median(pdist(many, "sqeuclidean"))
    assert gamma("median", many) == pytest.approx(whole, rel=0.03)


@pytest.mark.parametrize("reference", REFERENCES)
def test_equal_rows_have_bandwidth_one(reference):
    assert gamma(reference, np.full((5, 2), 3.0)) == 1.0
    assert gamma(reference, np.full((1, 2), 3.0)) == 1.0


def test_the_mean_is_the_same_whatever_the_block_of_rows(X, monkeypatch):
    whole = gamma("mean", X)
    monkeypatch.setattr(bandwidth, "ROW_BLOCK", 7)
    assert gamma("mean", X) == pytest.approx(whole, rel=1e-13)


def test_geometric_grid_has_equal_ratios():
    assert geometric_grid(0.5, 4, 4) == (0.5, 1.0, 2.0, 4.0)
    with pytest.raises(ValueError, match="0 < low <= high"):
        geometric_grid(0, 1, 3)


@pytest.mark.parametrize("dtype, tolerance", [(np.float64, 1e-9), (np.float32, 1e-3)])
def test_distances_survive_a_far_origin(dtype, tolerance):
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(20, 3)) + 1e4, rng.normal(size=(30, 3)) + 1e4
    A, B = A.astype(dtype), B.astype(dtype)
    expected = cdist(A.astype(float), B.astype(float), "sqeuclidean")
    found = squared_distances(A, B)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * expected.max())

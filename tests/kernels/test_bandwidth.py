import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist, pdist

from kernelweave.kernels import bandwidth
from kernelweave.kernels.bandwidth import geometric_grid, reference_gamma, squared_distances

REFERENCES = ["mean", "median", "scale"]


@pytest.fixture(name="X")
def sample():
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


@pytest.mark.parametrize("reference", REFERENCES)
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_rounding_of_equal_rows_is_no_scale(reference, container):
    assert gamma(reference, container(np.full((7, 3), 0.1))) == 1.0


def test_the_median_is_over_pairs_of_rows_that_differ(X):
    many_copies = np.vstack([np.tile(X[0], (60, 1)), X[:10]])
    copies = cdist(many_copies, many_copies, "sqeuclidean")[np.triu_indices(70, k=1)]
    expected = np.sort(copies[copies > 0])[(np.sum(copies > 0) - 1) // 2]
    assert gamma("median", many_copies) == pytest.approx(1 / expected, rel=1e-9)


@pytest.mark.parametrize("reference", REFERENCES)
def test_single_precision_has_the_same_bandwidth_far_from_the_origin(reference, X):
    far = (X + 1e4).astype(np.float32)
    assert gamma(reference, far) == pytest.approx(gamma(reference, far.astype(float)), rel=1e-8)


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


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_single_precision_is_rounded_once(container):
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(20, 3)) - 3e3, rng.normal(size=(20, 3)) + 3e3]).astype(np.float32)
    found = squared_distances(container(X), container(X))
    assert found.dtype == np.float32
    assert np.abs(np.diag(found)).max() < 1e-3
    np.testing.assert_allclose(found, cdist(X.astype(float), X.astype(float), "sqeuclidean"), rtol=1e-6, atol=1e-3)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_no_rows_have_no_distances(container, X):
    assert squared_distances(container(X[:0]), container(X)).shape == (0, 40)
    assert squared_distances(container(X), container(X[:0])).shape == (40, 0)

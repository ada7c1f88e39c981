import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist, pdist

from kernelweave.kernels import bandwidth
from kernelweave.kernels.bandwidth import far_columns, reference_gamma, rows_differ, shift_columns, squared_distances

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


@pytest.mark.parametrize("reference", REFERENCES)
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1e-160, 1e155, 1e200, 1e300])
@pytest.mark.filterwarnings("error")
def test_a_unit_in_which_squares_leave_the_range_is_named(reference, container, scale, X):
    size = "small" if scale < 1 else "large"
    with pytest.raises(ValueError, match=f"values up to .*e.*; squared .* are too {size} .* Rescale the features"):
        gamma(reference, container(X * scale))
    X = X * scale
    assert gamma(reference, container(X / np.abs(X).max())) > 0.0  # what it advises


@pytest.mark.parametrize("reference", REFERENCES)
@pytest.mark.parametrize("scale", [1e-140, 1e-100, 1e100, 1e140])
def test_the_bandwidth_goes_with_the_unit_as_far_as_squares_do(reference, scale, X):
    assert gamma(reference, X * scale) * scale**2 == pytest.approx(gamma(reference, X), rel=1e-9)


@pytest.mark.parametrize("reference", REFERENCES)
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("value", [0.0, 1e-320, 1e-200, 1e200, 1e300])
@pytest.mark.filterwarnings("error")
def test_equal_rows_have_bandwidth_one_in_any_unit(reference, container, value):
    X = container(np.full((7, 3), value))
    assert gamma(reference, X) == 1.0
    assert not rows_differ(X)


def offset(n_rows, seed=0, share=0.5):
    """Rows with zeros, and one column without that is far from zero."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n_rows, 6)) < share, rng.normal(size=(n_rows, 6)), 0.0)
    X[:, 3] = 1e8 + rng.normal(size=n_rows)
    return X


BOTH_SPARSE = (sparse.csr_array, sparse.csr_array)


@pytest.mark.parametrize(
    "containers", [BOTH_SPARSE, (sparse.csr_matrix, sparse.csr_array), (np.asarray, sparse.csr_array)]
)
@pytest.mark.parametrize("n_rows", [(20, 30), (30, 20), (1, 30), (30, 1), (1, 1)])
def test_sparse_distances_survive_a_column_far_from_zero(containers, n_rows):
    A, B = offset(n_rows[0], 1), offset(n_rows[1], 2)
    expected = cdist(A, B, "sqeuclidean")
    for first, second in (containers, containers[::-1]):
        np.testing.assert_allclose(squared_distances(first(A), second(B)), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n_zeros", [2, 10, 20])
@pytest.mark.parametrize("n_rows", [(20, 30), (30, 20)])
def test_a_column_far_from_zero_may_have_zeros_among_new_rows(n_rows, n_zeros):
    A, B = offset(n_rows[0], 1), offset(n_rows[1], 2)
    A[:n_zeros, 3] = 0.0
    expected = cdist(A, B, "sqeuclidean")
    found = squared_distances(sparse.csr_array(A), sparse.csr_array(B))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("reference", REFERENCES)
def test_sparse_rows_have_the_bandwidth_of_dense_ones_far_from_zero(reference):
    X = offset(40)
    assert gamma(reference, sparse.csr_array(X)) == pytest.approx(gamma(reference, X), rel=1e-8)


def test_sparse_rows_without_such_a_column_stay_as_they_are():
    X = sparse.csr_array(offset(50))
    columns, origin = far_columns(X)
    assert columns.tolist() == [3]
    assert origin == pytest.approx([1e8])
    X = np.where(np.random.default_rng(0).random((50, 6)) < 0.8, 1.0, 0.0)  # words
    for ordinary in (X, np.column_stack([X, np.ones(50)]), X[:, :0], np.zeros((50, 3))):
        assert len(far_columns(sparse.csr_array(ordinary))[0]) == 0


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_distances_whose_squares_overflow_are_infinite(container):
    A, B = np.array([[1e160, 0.0], [3e160, 1.0], [1.0, 2.0]]), np.array([[0.0, 1.0], [3e160, 1.0]])
    found = squared_distances(container(A), container(B))
    assert not np.isnan(found).any()
    np.testing.assert_array_equal(np.isinf(found), [[True, True], [True, False], [False, True]])


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


@pytest.mark.parametrize("columns", [[3], [-1], [0, 10**9], [0.0]])
def test_columns_that_sparse_rows_do_not_have_are_not_shifted(X, columns):
    rows = sparse.csr_array(X)
    np.testing.assert_allclose(shift_columns(rows, np.array([1]), np.ones(1)).toarray(), X - [0.0, 1.0, 0.0])
    with pytest.raises(ValueError, match="none of the 3 that the rows have"):
        shift_columns(rows, np.array(columns), np.ones(len(columns)))

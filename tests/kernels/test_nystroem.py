import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.kernel_approximation import Nystroem

from kernelweave import RBF, ForestKernel, FromCallable, Linear, Normalized, OnColumns, Polynomial, Precomputed, Sigmoid
from kernelweave.kernels import nystroem
from kernelweave.kernels.nystroem import TOLERANCE, anchored, landmark_rows

WHOLE = slice(None)
N_ROWS = 50
KERNELS = [
    Linear(),
    Polynomial(3),
    RBF(),
    RBF(multiple=0.01),
    Normalized(Polynomial(2)),
    2.0 * Linear() + RBF(),
    OnColumns(RBF(), [0]),
    ForestKernel(20),
]


@pytest.fixture(name="X")
def sample():
    return np.random.default_rng(0).normal(size=(N_ROWS, 4))


@pytest.fixture(name="X_new")
def new_sample():
    return np.random.default_rng(1).normal(size=(7, 4))


def features_of(kernel, X, n_candidates=N_ROWS, seed=0):
    bound = kernel.bind(X, np.random.default_rng(0))
    return bound, *anchored(bound, kernel, n_candidates, np.random.default_rng(seed))


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_features_of_all_rows_are_the_kernel(kernel, X, X_new):
    bound, features, Z = features_of(kernel, X)
    K = bound.block(WHOLE, WHOLE)
    size = max(K.max(), bound.diag_against(X_new).max())
    np.testing.assert_allclose(Z @ Z.T, K, rtol=0, atol=2 * TOLERANCE * size)
    np.testing.assert_allclose(features.of(X), Z, rtol=0, atol=1e-7 * np.sqrt(size))
    Z_new = features.of(X_new)
    np.testing.assert_allclose(Z_new @ Z.T, bound.against(X_new), rtol=0, atol=np.sqrt(TOLERANCE) * size)
    own = (Z_new**2).sum(axis=1) + features.outside(X_new, Z_new)
    np.testing.assert_allclose(own, bound.diag_against(X_new), rtol=2 * TOLERANCE)
    np.testing.assert_array_equal(features.outside(X, features.of(X)), 0.0)


@pytest.mark.parametrize("kernel, rank", [(Linear(), 4), (Polynomial(1), 5), (Polynomial(2), 15), (RBF(), N_ROWS)])
def test_there_are_as_many_anchors_as_the_rank(kernel, rank, X):
    _, features, Z = features_of(kernel, X)
    assert Z.shape == (N_ROWS, rank)
    assert features.base.n_rows == rank


def test_duplicated_rows_are_anchors_once(X):
    _, features, Z = features_of(RBF(), np.vstack([X, X[:20], X[:5]]), N_ROWS + 25)
    assert features.base.n_rows == N_ROWS
    np.testing.assert_allclose(Z[:20], Z[N_ROWS : N_ROWS + 20], rtol=0, atol=1e-7)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_features_of_landmarks_are_the_nystroem_approximation(kernel, X, X_new):
    bound, features, Z = features_of(kernel, X, 15)
    anchors = features.base.block(WHOLE, WHOLE)
    left, right = features.base.against(X), features.base.against(X_new)
    solved = np.linalg.solve(anchors, left.T)
    size = bound.diag().max()
    np.testing.assert_allclose(Z @ Z.T, left @ solved, rtol=0, atol=1e-6 * size)  # the oracle's rounding
    Z_new = features.of(X_new)
    np.testing.assert_array_equal(features.outside(X_new, Z_new), 0.0)
    size = max(size, bound.diag_against(X_new).max())
    np.testing.assert_allclose(Z_new @ Z.T, right @ solved, rtol=0, atol=1e-6 * size)


def test_the_approximation_is_as_good_as_that_of_scikit_learn(X):
    X = np.random.default_rng(0).normal(size=(400, 3))
    K = RBF(0.3).bind(X, np.random.default_rng(0)).block(WHOLE, WHOLE)
    errors = []
    for seed in range(5):
        _, _, Z = features_of(RBF(0.3), X, 60, seed)
        theirs = Nystroem(gamma=0.3, n_components=60, random_state=seed).fit_transform(X)
        errors.append([np.linalg.norm(K - Z @ Z.T), np.linalg.norm(K - theirs @ theirs.T)])
    ours, theirs = np.median(errors, axis=0)
    assert ours < 3 * theirs  # both are random


def test_landmarks_come_from_the_generator_and_blocks_do_not_matter(X):
    _, first, Z = features_of(RBF(), X, 12, seed=0)
    _, again, _ = features_of(RBF(), X, 12, seed=0)
    _, other, _ = features_of(RBF(), X, 12, seed=1)
    np.testing.assert_array_equal(first.base.X, again.base.X)
    assert not np.array_equal(first.base.X, other.base.X)
    with sklearn.config_context(working_memory=8 * 24 * 4 * 7 / 2**20):  # 7 rows
        np.testing.assert_allclose(features_of(RBF(), X, 12, seed=0)[2], Z, rtol=1e-10, atol=1e-12)


def test_one_long_row_does_not_hide_the_others(X):
    X[0] *= 1e7
    bound, _, Z = features_of(Linear(), X)
    K = bound.block(WHOLE, WHOLE)
    np.testing.assert_allclose((Z @ Z.T)[1:, 1:], K[1:, 1:], rtol=0, atol=1e-10 * K[1:, 1:].max())


@pytest.mark.filterwarnings("error")
def test_rows_without_length_have_no_features(X):
    X[3] = 0.0
    assert not features_of(Linear(), X)[2][3].any()
    bound, features, Z = features_of(Linear(), np.zeros((N_ROWS, 4)))
    assert Z.shape == (N_ROWS, 0)
    assert features.of(X).shape == (N_ROWS, 0)
    np.testing.assert_array_equal(features.outside(X, features.of(X)), bound.diag_against(X))


def test_single_precision_has_fewer_anchors_than_noise_would_make(X):
    K = (X @ X.T).astype(np.float32)
    _, _, Z = features_of(Precomputed(K), np.arange(N_ROWS)[:, None])
    assert Z.shape == (N_ROWS, 4)
    assert Z.dtype == np.float64


def test_sparse_rows_have_the_features_of_dense_ones(X, X_new):
    _, dense, Z = features_of(RBF(), X)
    _, other, Z_sparse = features_of(RBF(), sparse.csr_array(X))
    np.testing.assert_allclose(Z_sparse @ Z_sparse.T, Z @ Z.T, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(other.of(sparse.csr_array(X_new)) @ Z_sparse.T, dense.of(X_new) @ Z.T, atol=1e-10)


@pytest.mark.parametrize(
    "kernel",
    [
        Sigmoid(),
        Sigmoid(coef0=-1.0),
        FromCallable(lambda A, B: -(A @ B.T)),
        FromCallable(lambda A, B: A @ B[:, ::-1].T),
        FromCallable(lambda A, B: A[:, :2] @ B[:, 1:3].T + 9.0),
        FromCallable(lambda A, B: A @ B.T - 1e-3),
    ],
    ids=repr,
)
@pytest.mark.parametrize("n_candidates", [N_ROWS, 30])
def test_a_kernel_that_is_not_positive_semi_definite_is_refused(kernel, n_candidates, X):
    with pytest.raises(ValueError, match="has no features: its matrix is not symmetric positive semi-definite"):
        features_of(kernel, X, n_candidates)


def test_an_indefinite_matrix_is_refused_by_name():
    K = np.array([[0.0, 1.0], [1.0, 0.0]])
    with pytest.raises(ValueError, match=r"^Precomputed\(<2 x 2 matrix>\) has no features"):
        features_of(Precomputed(K), np.arange(2)[:, None], 2)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_values_that_are_not_finite_are_refused(X):
    with pytest.raises(ValueError, match=r"^The kernel Polynomial\(degree=100\) gave values that are not finite"):
        features_of(Polynomial(100), 1e6 * X)


# Landmarks


@pytest.mark.parametrize("method", ["kmeans", "uniform"])
@pytest.mark.parametrize("container", [np.array, sparse.csr_array, sparse.csr_matrix, lambda X: X.astype(np.float32)])
@pytest.mark.filterwarnings("error")
def test_landmarks_are_distinct_rows_from_the_generator(method, container, X):
    first, again, other = (landmark_rows(container(X), 12, method, np.random.default_rng(seed)) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    assert len(np.unique(first)) == len(first) == 12
    np.testing.assert_array_equal(first, np.sort(first))
    assert first.min() >= 0
    assert first.max() < N_ROWS


@pytest.mark.parametrize("method", ["kmeans", "uniform"])
@pytest.mark.parametrize("n_landmarks", [N_ROWS, 10 * N_ROWS])
def test_as_many_landmarks_as_rows_are_all_rows(method, n_landmarks, X):
    np.testing.assert_array_equal(landmark_rows(X, n_landmarks, method, np.random.default_rng(0)), np.arange(N_ROWS))


@pytest.mark.parametrize("seed", range(3))
def test_landmarks_by_kmeans_are_nearer_to_the_rows_than_drawn_ones(seed):
    rng = np.random.default_rng(seed)
    centers = 10.0 * rng.normal(size=(8, 3))
    X = np.repeat(centers, 50, axis=0) + 0.1 * rng.normal(size=(400, 3))

    def spread(method):
        rows = landmark_rows(X, 40, method, np.random.default_rng(seed))
        return np.square(X[:, None] - X[rows]).sum(axis=2).min(axis=1).mean()

    assert spread("kmeans") < spread("uniform")


@pytest.mark.filterwarnings("error")
def test_where_rows_are_equal_landmarks_are_filled_up(X):
    X[5:] = X[:5].repeat(9, axis=0)
    rows = landmark_rows(X, 12, "kmeans", np.random.default_rng(0))
    assert len(np.unique(rows)) == 12
    assert len(np.unique(X[rows], axis=0)) == 5


def test_rows_with_missing_values_are_drawn(X):
    X[3, 1] = np.nan
    found, expected = (landmark_rows(X, 12, method, np.random.default_rng(0)) for method in ("kmeans", "uniform"))
    assert len(np.unique(found)) == len(expected)


def test_of_many_rows_a_sample_is_clustered(monkeypatch, X):
    clustered = []

    def spy(points, *arguments):
        clustered.append(len(points))
        return near_means(points, *arguments)

    near_means = nystroem._rows_near_means
    monkeypatch.setattr(nystroem, "_rows_near_means", spy)
    monkeypatch.setattr(nystroem, "CLUSTERED_ROWS", 20)
    monkeypatch.setattr(nystroem, "CLUSTER_SIZE", 3)
    for n_landmarks in (2, 10):
        landmark_rows(X, n_landmarks, "kmeans", np.random.default_rng(0))
    assert clustered == [20, 30]

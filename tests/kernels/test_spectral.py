import re
import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from kernelweave import RBF, ForestKernel, FromCallable, Linear, OnColumns, Polynomial, Precomputed
from kernelweave.kernels import spectral
from kernelweave.kernels.spectral import EigenBasis, count_vectors, eigenbasis

WHOLE = slice(None)
N_ROWS = 60
KINDS = ["kernel", "laplacian"]
KERNELS = [
    RBF(),
    RBF(multiple=10.0),
    RBF("median", 0.1),
    Polynomial(2),
    OnColumns(RBF(), [0, 2]),
    2.0 * RBF() + RBF(3.0),
    ForestKernel(20),
]


@pytest.fixture(name="X")
def sample():
    return np.random.default_rng(0).normal(size=(N_ROWS, 3)) * np.array([3.0, 2.0, 1.0])


@pytest.fixture(name="X_new")
def new_sample():
    return np.random.default_rng(1).normal(size=(11, 3))


def basis_of(kernel, X, n_vectors=6, seed=0, **options):
    bound = kernel.bind(X, np.random.default_rng(0))
    return bound, *eigenbasis(bound, X, n_vectors, rng=np.random.default_rng(seed), recipe=kernel, **options)


def dense(K, kind):
    """All eigenvalues, descending, and eigenvectors of the matrix or of what is left of it after its degrees."""
    root = np.sqrt(K.sum(axis=1)) if kind == "laplacian" else np.ones(len(K))
    values, vectors = np.linalg.eigh(K / np.outer(root, root))
    return values[::-1], vectors[:, ::-1]


def nystroem(bound, anchors):
    C = bound.block(WHOLE, anchors)
    return C @ np.linalg.pinv(C[anchors], rcond=1e-12, hermitian=True) @ C.T


def assert_are_eigenvectors(V, eigenvalues, K, kind, tolerance):
    """Equal eigenvalues, and the same line wherever an eigenvalue is apart from the others."""
    values, vectors = dense(K, kind)
    n_vectors = V.shape[1]
    np.testing.assert_allclose(eigenvalues, values[:n_vectors], rtol=0, atol=tolerance * values[0])
    np.testing.assert_allclose(V.T @ V, np.eye(n_vectors), rtol=0, atol=tolerance)
    gaps = np.minimum(np.diff(values[:n_vectors], prepend=np.inf) * -1, np.diff(values[: n_vectors + 1]) * -1)
    apart = gaps > 1e-3 * values[0]
    assert apart.sum() >= 2
    cosines = np.abs((V * vectors[:, :n_vectors]).sum(axis=0))
    np.testing.assert_allclose(cosines[apart], 1.0, rtol=0, atol=tolerance)


# Exact


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("kind", KINDS)
def test_the_vectors_are_those_of_the_dense_matrix(kernel, kind, X):
    bound, basis, V = basis_of(kernel, X, kind=kind)
    assert isinstance(basis, EigenBasis)
    assert V.shape == (N_ROWS, basis.n_features)
    assert_are_eigenvectors(V, basis.eigenvalues, bound.block(WHOLE, WHOLE), kind, 1e-10)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_landmarks", [None, 25])
def test_the_functions_at_bound_rows_are_the_vectors(kernel, kind, n_landmarks, X):
    _, basis, V = basis_of(kernel, X, kind=kind, n_landmarks=n_landmarks)
    np.testing.assert_allclose(basis.of(X), V, rtol=0, atol=1e-8)
    at_landmarks = basis.from_values(basis.base.block(WHOLE, WHOLE))
    assert np.all(at_landmarks.max(axis=0) >= -at_landmarks.min(axis=0))  # the sign
    assert np.all(np.diff(basis.eigenvalues) <= 0)
    assert basis.n_evaluations == (n_landmarks or N_ROWS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_row_is_a_weighted_mean_over_the_rows(kind, X, X_new):
    bound, basis, V = basis_of(RBF(), X, kind=kind)
    K, K_new = bound.block(WHOLE, WHOLE), bound.against(X_new)
    if kind == "laplacian":
        K_new = K_new / np.sqrt(np.outer(K_new.sum(axis=1), K.sum(axis=1)))
    np.testing.assert_allclose(basis.of(X_new), K_new @ V / basis.eigenvalues, rtol=0, atol=1e-10)


def test_the_first_vector_of_the_laplacian_is_the_root_of_the_degrees(X):
    for n_landmarks in (None, 20):
        bound, basis, V = basis_of(RBF(), X, kind="laplacian", n_landmarks=n_landmarks)
        anchors = np.arange(N_ROWS)
        if n_landmarks:
            anchors = np.flatnonzero((X[:, None] == basis.base.X).all(axis=2).any(axis=1))
        degrees = nystroem(bound, anchors).sum(axis=1)
        assert basis.eigenvalues[0] == pytest.approx(1.0, abs=1e-9)
        np.testing.assert_allclose(V[:, 0], np.sqrt(degrees / degrees.sum()), rtol=0, atol=1e-8)


@pytest.mark.parametrize("n_landmarks", [None, 20])
@pytest.mark.parametrize("kind", KINDS)
def test_eigenvalues_that_are_rounding_are_dropped(n_landmarks, kind, X):
    kernel = Linear() if kind == "kernel" else Polynomial(1, coef0=100.0)
    rank = 3 if kind == "kernel" else 4
    _, basis, V = basis_of(kernel, X, 10, kind=kind, n_landmarks=n_landmarks)
    assert V.shape == (N_ROWS, rank)
    assert basis.eigenvalues.shape == (rank,)
    _, basis, V = basis_of(Linear(), np.zeros((N_ROWS, 3)), kind=kind, n_landmarks=n_landmarks)
    assert V.shape == (N_ROWS, 0)
    assert basis.of(X).shape == (N_ROWS, 0)


# Landmarks


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("landmarks", ["kmeans", "uniform"])
def test_with_landmarks_they_are_those_of_the_nystroem_matrix(kernel, kind, landmarks, X):
    _, basis, V = basis_of(kernel, X, kind=kind, n_landmarks=30, landmarks=landmarks)
    values = basis.base.against(X)
    K = values @ np.linalg.pinv(basis.base.block(WHOLE, WHOLE), rcond=spectral.RELATIVE_CUT, hermitian=True) @ values.T
    assert K.sum(axis=1).min() > 0
    assert_are_eigenvectors(V, basis.eigenvalues, K, kind, 1e-6)  # the oracle's rounding, of the inverse


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("kind", KINDS)
def test_all_rows_as_landmarks_give_the_exact_vectors(kernel, kind, X):
    bound = kernel.bind(X, np.random.default_rng(0))
    basis, V = spectral._find_from_landmarks(bound, np.arange(N_ROWS), np.arange(N_ROWS), 6, kind, "it")
    assert_are_eigenvectors(V, basis.eigenvalues, bound.block(WHOLE, WHOLE), kind, 1e-8)
    exact = basis_of(kernel, X, kind=kind, n_landmarks=10 * N_ROWS)[1]
    assert exact.n_features == basis.n_features
    np.testing.assert_allclose(basis.eigenvalues, exact.eigenvalues, rtol=1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_strips_and_what_is_kept_do_not_matter(kind, X, monkeypatch):
    _, _, expected = basis_of(RBF(), X, kind=kind, n_landmarks=20)
    monkeypatch.setattr(spectral, "STRIP_BYTES", 8 * 20 * 7)
    monkeypatch.setattr(spectral, "MIN_STRIP_ROWS", 1)
    _, _, strips = basis_of(RBF(), X, kind=kind, n_landmarks=20)
    monkeypatch.setattr(spectral, "MAX_STORED_BYTES", 0)
    _, _, anew = basis_of(RBF(), X, kind=kind, n_landmarks=20)
    np.testing.assert_allclose(strips, expected, rtol=0, atol=1e-10)
    np.testing.assert_allclose(anew, strips, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_the_kernel_is_read_once_where_its_columns_are_kept(kind, X, monkeypatch):
    bound, calls = RBF().bind(X, np.random.default_rng(0)), []
    monkeypatch.setattr(type(bound), "block", lambda self, rows, cols: calls.append(rows) or _block(self, rows, cols))
    eigenbasis(bound, X, 4, kind=kind, n_landmarks=20, rng=np.random.default_rng(0))
    assert [rows for rows in calls if isinstance(rows, slice)] == [slice(0, N_ROWS)]


def _block(bound, rows, cols):
    return bound.formula.evaluate(bound.X[rows], bound.X[cols])


def test_landmarks_never_take_a_matrix_of_all_rows():
    n_rows, n_landmarks = 6000, 100
    X = np.random.default_rng(0).normal(size=(n_rows, 5))
    tracemalloc.start()
    try:
        basis_of(RBF(), X, 10, kind="laplacian", n_landmarks=n_landmarks)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * n_rows * n_landmarks * 10  # the kept columns are a tenth of that, a matrix of all rows six times


def test_landmarks_come_from_the_generator(X):
    first, again, other = (basis_of(RBF(), X, n_landmarks=12, seed=seed)[1] for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.coef, again.coef)
    assert not np.array_equal(first.base.X, other.base.X)


def test_landmarks_of_a_matrix_are_drawn(X):
    K = RBF().bind(X, np.random.default_rng(0)).block(WHOLE, WHOLE)
    rows = np.arange(N_ROWS)[:, None]
    for n_landmarks in (None, 20):
        _, basis, V = basis_of(Precomputed(K), rows, kind="laplacian", n_landmarks=n_landmarks)
        _, _, expected = basis_of(RBF(), X, kind="laplacian", n_landmarks=n_landmarks, landmarks="uniform")
        np.testing.assert_allclose(V, expected, rtol=0, atol=1e-8)
        np.testing.assert_allclose(basis.of(rows[:5]), V[:5], rtol=0, atol=1e-8)


# Containers and precision


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_landmarks", [None, 25])
@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csr_matrix, np.asfortranarray])
def test_every_container_gives_the_same(kind, n_landmarks, container, X, X_new):
    _, basis, V = basis_of(RBF(0.1), X, kind=kind, n_landmarks=n_landmarks, landmarks="uniform")
    _, other, V_other = basis_of(RBF(0.1), container(X), kind=kind, n_landmarks=n_landmarks, landmarks="uniform")
    np.testing.assert_allclose(V_other, V, rtol=0, atol=1e-8)
    np.testing.assert_allclose(other.of(container(X_new)), basis.of(X_new), rtol=0, atol=1e-8)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_landmarks", [None, 25])
def test_single_precision_is_kept(kind, n_landmarks, X, X_new):
    X, X_new = X.astype(np.float32), X_new.astype(np.float32)
    kernel, options = RBF(multiple=5.0), {"kind": kind, "n_landmarks": n_landmarks, "landmarks": "uniform"}
    _, single, V = basis_of(kernel, X, **options)
    _, double, expected = basis_of(kernel, X.astype(np.float64), **options)
    assert V.dtype == single.of(X_new).dtype == np.float32
    np.testing.assert_allclose(V, expected, rtol=0, atol=1e-4)
    np.testing.assert_allclose(single.of(X), V, rtol=0, atol=1e-5)
    np.testing.assert_allclose(single.of(X_new), double.of(X_new.astype(np.float64)), rtol=0, atol=1e-4)


# Rows that are special


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_landmarks", [None, 20])
@pytest.mark.filterwarnings("error")
def test_rows_far_from_everything_have_finite_features(kind, n_landmarks, X):
    _, basis, _ = basis_of(RBF(1.0), X, kind=kind, n_landmarks=n_landmarks)
    far = X[:1] + np.array([[0.0], [10.0], [20.0], [25.0], [27.0], [1e6]]) * np.array([1.0, 0.0, 0.0])
    features = basis.of(far)
    assert np.isfinite(features).all()
    np.testing.assert_array_equal(features[-1], 0.0)
    assert basis.base.against(far)[4].max() < 1e-200
    assert np.abs(features[:5]).max() < 10


def test_a_tiny_kernel_has_the_vectors_of_a_multiple(X, X_new):
    _, basis, V = basis_of(RBF(), X, kind="laplacian")
    _, tiny, V_tiny = basis_of(1e-300 * RBF(), X, kind="laplacian")
    np.testing.assert_allclose(V_tiny, V, rtol=0, atol=1e-10)
    np.testing.assert_allclose(tiny.of(X_new), basis.of(X_new), rtol=0, atol=1e-10)


@pytest.mark.filterwarnings("error")
def test_an_outlier_that_no_landmark_sees_is_at_the_origin(X):
    X[7] = 1e6
    anchors = np.setdiff1d(np.arange(0, N_ROWS, 2), [7])
    bound = RBF(0.3).bind(X, np.random.default_rng(0))
    basis, V = spectral._find_from_landmarks(bound, anchors, np.arange(bound.n_rows), 6, "laplacian", "it")
    np.testing.assert_array_equal(V[7], 0.0)
    np.testing.assert_allclose(V.T @ V, np.eye(6), rtol=0, atol=1e-9)
    assert basis.eigenvalues[0] == pytest.approx(1.0, abs=1e-9)


@pytest.mark.filterwarnings("error")
def test_degrees_that_the_landmarks_misjudge_are_raised_to_what_they_have_at_the_landmarks():
    n_raised = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(300, 2)) * rng.gamma(1.0, 3.0, size=(300, 1))  # rows further and further out
        bound = RBF(1.0).bind(X, rng)
        basis, V = spectral._find_from_landmarks(bound, np.arange(10), np.arange(bound.n_rows), 5, "laplacian", "it")
        C = basis.base.against(X)
        plain, least = C @ basis.degree, C.sum(axis=1)
        n_raised += np.count_nonzero(plain < (1 - 1e-6) * least)
        root = np.sqrt(np.maximum(np.maximum(plain, least), 1e-250))
        S = nystroem(bound, np.arange(10)) / np.outer(root, root)
        np.testing.assert_allclose(basis.eigenvalues, np.linalg.eigvalsh(S)[:-6:-1], rtol=1e-8)
        np.testing.assert_allclose(S @ V, V * basis.eigenvalues, rtol=0, atol=1e-8)
    assert n_raised > 0


@pytest.mark.parametrize("n_landmarks", [None, 20])
def test_equal_rows_have_equal_features(n_landmarks, X):
    X[10:30] = X[5]
    for kind in KINDS:
        _, _, V = basis_of(RBF(), X, kind=kind, n_landmarks=n_landmarks)
        np.testing.assert_allclose(V[10:30], np.tile(V[5], (20, 1)), rtol=0, atol=1e-8)


# Bad input


@pytest.mark.parametrize("n_landmarks", [None, 20])
def test_degrees_that_are_not_positive_are_refused(n_landmarks, X):
    with pytest.raises(ValueError, match=r"^The kernel Linear\(\) has row sums that are not positive"):
        basis_of(Linear(), X, kind="laplacian", n_landmarks=n_landmarks)
    assert basis_of(Linear(), X, kind="kernel", n_landmarks=n_landmarks)[1].n_features == 3


@pytest.mark.parametrize("n_landmarks", [None, 20])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_symmetric_kernel_is_refused(n_landmarks, kind, X):
    with pytest.raises(ValueError, match=r"The kernel .* is not symmetric, so it has no eigenf"):
        basis_of(FromCallable(lambda A, B: np.exp(A @ np.roll(B, 1, axis=1).T)), X, kind=kind, n_landmarks=n_landmarks)


@pytest.mark.parametrize("n_landmarks", [None, 20])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_values_that_are_not_finite_are_refused(n_landmarks, kind, X):
    with pytest.raises(ValueError, match=r"^The kernel Polynomial\(degree=100\) gave values that are not finite"):
        basis_of(Polynomial(100), 1e6 * X, kind=kind, n_landmarks=n_landmarks)
    K = np.ones((N_ROWS, N_ROWS))
    K[-1, -1] = np.nan
    bound = Precomputed(K).bind(np.arange(N_ROWS)[:, None], np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"^The kernel without a name gave values that are not finite"):
        eigenbasis(bound, X, 4, kind=kind, rng=np.random.default_rng(0))


@pytest.mark.parametrize("n_landmarks", [None, 20])
@pytest.mark.parametrize(
    "wrong, allowed",
    [
        ({"kind": "laplacien"}, '"kernel" or "laplacian"'),
        ({"kind": None}, '"kernel" or "laplacian"'),
        ({"landmarks": "k-means"}, '"kmeans" or "uniform"'),
        ({"landmarks": np.arange(3)}, '"kmeans" or "uniform"'),
    ],
    ids=repr,
)
def test_other_parameters_are_refused_by_name(n_landmarks, wrong, allowed, X):
    ((name, value),) = wrong.items()
    sentence = f"eigenbasis got {name}={value!r}; expected {allowed}."
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        basis_of(RBF(), X, n_landmarks=n_landmarks, **wrong)


@pytest.mark.parametrize(
    "asked, n_rows, expected",
    [(0, 50, 0), (7, 50, 7), (70, 50, 50), (0.1, 50, 5), (0.1, 51, 6), (0.07, 100, 7), (1.0, 50, 50), (1e-9, 50, 1)],
)
def test_a_share_of_the_rows_is_rounded_up(asked, n_rows, expected):
    assert count_vectors(asked, n_rows) == expected


@pytest.mark.parametrize("kind", ["kernel", "laplacian"])
def test_sums_over_drawn_rows_stand_for_those_over_all(kind, monkeypatch):
    """A mean over s of n rows is off by about 1 / sqrt(s): here some percent, and 20 % is six times that."""
    X = np.random.default_rng(0).normal(size=(3000, 2))
    bound = RBF().bind(X, np.random.default_rng(0))
    options = {"kind": kind, "n_landmarks": 40}
    _, exact = eigenbasis(bound, X, 4, rng=np.random.default_rng(1), **options)
    monkeypatch.setattr(spectral, "SUMMED_ROWS", 1000)
    basis, V = eigenbasis(bound, X, 4, rng=np.random.default_rng(1), **options)
    np.testing.assert_allclose(V.T @ V, np.eye(4), atol=0.2)
    cosines = np.linalg.svd(np.linalg.qr(exact)[0].T @ np.linalg.qr(V)[0], compute_uv=False)
    assert cosines.min() > 0.98  # they span the same functions
    np.testing.assert_allclose(basis.of(X), V, rtol=0, atol=1e-8)

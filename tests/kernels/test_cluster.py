import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import expm
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.preprocessing import StandardScaler

from kernelweave import (
    RBF,
    KernelLibrary,
    LapSVMClassifier,
    Linear,
    ManifoldKernel,
    MKLClassifier,
    Normalized,
    OnColumns,
    Polynomial,
    Precomputed,
    Preprocessed,
    SSMKClassifier,
)
from kernelweave.kernels import manifold
from kernelweave.kernels.cluster import ClusterKernel, DiffusionKernel
from kernelweave.kernels.features import BoundFeatures

WHOLE = slice(None)
N_ROWS = 60
BASES = [RBF(), RBF(multiple=10.0), Polynomial(2), OnColumns(RBF(), [0, 2]), Preprocessed(StandardScaler(), RBF())]
RECIPES = [
    ClusterKernel(RBF()),
    ClusterKernel(RBF(), "step", 5),
    ClusterKernel(RBF(), "polynomial", degree=3),
    DiffusionKernel(RBF()),
    DiffusionKernel(RBF(), 10.0, 0.5),
]
TRANSFERS = [
    (ClusterKernel(RBF(), n_eigenvectors=1.0), lambda S: S),
    (ClusterKernel(RBF(), "polynomial", 1.0, degree=3), lambda S: S @ S @ S),
    (DiffusionKernel(RBF(), 5.0, 1.0), lambda S: expm(5.0 * (S - np.eye(len(S))))),
    (DiffusionKernel(RBF(), 0.0, 1.0), lambda S: np.eye(len(S))),
]


@pytest.fixture(name="X")
def sample():
    return np.random.default_rng(0).normal(size=(N_ROWS, 3))


@pytest.fixture(name="X_new")
def new_sample():
    return np.random.default_rng(1).normal(size=(11, 3))


@pytest.fixture(name="moons", scope="module")
def two_moons():
    X, classes = make_moons(300, noise=0.05, random_state=0)
    y = np.full(200, -1)
    y[:6] = classes[:6]
    return X[:200], y, X, classes


def bound_to(kernel, X, seed=0, sample_weight=None):
    return kernel.bind(X, np.random.default_rng(seed), sample_weight)


def normalized(K):
    root = np.sqrt(K.sum(axis=1))
    return K / np.outer(root, root)


# What the kernels are


@pytest.mark.parametrize("kernel, function", TRANSFERS, ids=lambda value: repr(value) if value in RECIPES else "")
def test_with_all_eigenvectors_the_kernel_is_a_function_of_the_matrix(kernel, function, X):
    kernel = kernel.replace(base=RBF(multiple=30.0))  # a full spectrum
    S = normalized(bound_to(kernel.base, X).block(WHOLE, WHOLE))
    expected = function(S)
    found = bound_to(kernel, X).block(WHOLE, WHOLE)
    np.testing.assert_allclose(found, expected / np.diag(expected).mean(), rtol=0, atol=1e-10)


@pytest.mark.parametrize("base", BASES, ids=repr)
@pytest.mark.parametrize("transform, power", [("linear", 1), ("step", 0), ("polynomial", 4)])
def test_few_eigenvectors_are_the_leading_ones(base, transform, power, X):
    kernel = ClusterKernel(base, transform, 4, degree=4)
    values, vectors = np.linalg.eigh(normalized(bound_to(base, X).block(WHOLE, WHOLE)))
    assert values[-4] > 1.001 * values[-5]
    expected = vectors[:, -4:] * values[-4:] ** power @ vectors[:, -4:].T
    found = bound_to(kernel, X)
    assert found.rank == 4
    np.testing.assert_allclose(found.block(WHOLE, WHOLE), expected * N_ROWS / np.trace(expected), rtol=0, atol=1e-9)


@pytest.mark.parametrize("kernel", RECIPES, ids=repr)
@pytest.mark.parametrize("base", BASES, ids=repr)
@pytest.mark.parametrize("n_landmarks", ["auto", 25])
def test_the_kernel_is_positive_semi_definite_with_a_mean_diagonal_of_one(kernel, base, n_landmarks, X, X_new):
    kernel = kernel.replace(base=base, n_landmarks=n_landmarks)
    assert kernel.is_psd
    bound = bound_to(kernel, X)
    assert isinstance(bound, BoundFeatures)
    K = bound.block(WHOLE, WHOLE)
    np.testing.assert_array_equal(K, K.T)
    assert np.linalg.eigvalsh(K)[0] >= -1e-12 * np.trace(K)
    assert bound.diag().mean() == pytest.approx(1.0)
    np.testing.assert_allclose(bound.against(X), K, rtol=0, atol=1e-7)  # bound rows that come again are themselves
    both = np.vstack([X[:5], X_new])
    np.testing.assert_allclose(bound.against(both, np.arange(5))[:5], K[:5, :5], rtol=0, atol=1e-7)
    assert bound.diag_against(X_new).shape == (11,)
    Z = bound.factor()
    np.testing.assert_allclose(Z @ Z.T, K, rtol=0, atol=1e-12)


def test_rows_of_one_cluster_are_equal_after_a_long_time(X):
    X[:20] += 100.0
    for kernel in (DiffusionKernel(RBF(0.2), 1e5), ClusterKernel(RBF(0.2), "step", 2)):
        K = bound_to(Normalized(kernel), X).block(WHOLE, WHOLE)
        same = (np.arange(N_ROWS) < 20)[:, None] == (np.arange(N_ROWS) < 20)
        np.testing.assert_allclose(K, same, rtol=0, atol=1e-8)


@pytest.mark.parametrize("kernel", [DiffusionKernel(RBF(), 1e12), ClusterKernel(RBF(), "polynomial", degree=10**9)])
@pytest.mark.parametrize("n_landmarks", [None, 25])
def test_in_the_long_run_one_eigenvector_is_left(kernel, n_landmarks, X):
    bound = bound_to(kernel.replace(n_landmarks=n_landmarks), X)
    assert bound.rank == 1
    assert bound.diag().mean() == pytest.approx(1.0)


def test_a_kernel_without_values_is_none(X):
    bound = bound_to(ClusterKernel(Linear()), np.zeros_like(X))
    assert bound.rank == 0
    assert not bound.against(X).any()


def test_normalized_is_the_last_step_of_the_paper(X):
    kernel = ClusterKernel(RBF(), "step", 5)
    L = bound_to(kernel, X).block(WHOLE, WHOLE)
    root = np.sqrt(np.diag(L))
    np.testing.assert_allclose(bound_to(Normalized(kernel), X).block(WHOLE, WHOLE), L / np.outer(root, root), rtol=1e-9)


def test_the_values_do_not_depend_on_the_number_of_rows(X):
    kernel = ClusterKernel(RBF(0.5), n_eigenvectors=5)
    once, thrice = bound_to(kernel, X), bound_to(kernel, np.tile(X, (3, 1)))
    np.testing.assert_allclose(thrice.block(WHOLE, WHOLE)[:N_ROWS, :N_ROWS], once.block(WHOLE, WHOLE), atol=1e-9)


def test_sample_weights_weigh_base_and_diagonal(X):
    weight = np.random.default_rng(3).uniform(0.5, 2.0, N_ROWS)
    kernel = ClusterKernel(RBF(), n_eigenvectors=5)
    weighted = bound_to(kernel, X, sample_weight=weight)
    assert np.average(weighted.diag(), weights=weight) == pytest.approx(1.0)
    gamma = RBF().bind(X, np.random.default_rng(0), weight).formula.gamma
    plain = bound_to(kernel.replace(base__gamma=gamma), X).block(WHOLE, WHOLE)
    plain /= np.average(np.diag(plain), weights=weight)
    np.testing.assert_allclose(weighted.block(WHOLE, WHOLE), plain, rtol=0, atol=1e-10)


@pytest.mark.parametrize("n_eigenvectors, n_landmarks, n_kept", [(0.1, 200, 20), (0.1, 60, 6), (0.5, 5, 3), (7, 60, 7)])
def test_a_share_is_one_of_the_rows_or_landmarks(n_eigenvectors, n_landmarks, n_kept):
    assert ClusterKernel(RBF(), n_eigenvectors=n_eigenvectors).n_vectors(n_landmarks) == n_kept


# Landmarks, containers, precision


def test_above_a_number_of_rows_there_are_landmarks(monkeypatch, X):
    monkeypatch.setattr(manifold, "MAX_EXACT_ROWS", N_ROWS - 1)
    monkeypatch.setattr(manifold, "N_LANDMARKS", 12)
    first, again, other = (bound_to(ClusterKernel(RBF()), X, seed) for seed in (0, 0, 1))
    assert first.n_evaluations == 12
    np.testing.assert_array_equal(first.Z, again.Z)
    assert not np.array_equal(first.features.base.X, other.features.base.X)
    assert bound_to(ClusterKernel(RBF()), X[:-1]).n_evaluations == N_ROWS - 1


def test_landmarks_come_near_the_exact_kernel():
    X = np.random.default_rng(0).normal(size=(400, 2))
    exact, near = (bound_to(ClusterKernel(RBF(), n_eigenvectors=8, n_landmarks=n), X) for n in (None, 80))
    K = exact.block(WHOLE, WHOLE)
    assert np.linalg.norm(near.block(WHOLE, WHOLE) - K) < 0.01 * np.linalg.norm(K)


@pytest.mark.parametrize("kernel", RECIPES, ids=repr)
def test_every_container_gives_the_same_kernel(kernel, X, X_new):
    dense, other = bound_to(kernel, X), bound_to(kernel, sparse.csr_array(X))
    np.testing.assert_allclose(other.block(WHOLE, WHOLE), dense.block(WHOLE, WHOLE), rtol=0, atol=1e-7)
    np.testing.assert_allclose(other.against(sparse.csr_array(X_new)), dense.against(X_new), rtol=0, atol=1e-7)


@pytest.mark.parametrize("n_landmarks", [None, 30])
def test_single_precision_is_kept(n_landmarks, X, X_new):
    kernel = ClusterKernel(RBF(multiple=5.0), n_eigenvectors=5, n_landmarks=n_landmarks)
    single, double = bound_to(kernel, X.astype(np.float32)), bound_to(kernel, X.astype(np.float32).astype(np.float64))
    assert single.Z.dtype == single.block(WHOLE, WHOLE).dtype == np.float32
    assert single.against(X_new.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(single.against(X.astype(np.float32)), single.block(WHOLE, WHOLE), rtol=0, atol=1e-4)
    if n_landmarks is None:  # the rounding of rows may lead k-means to other landmarks
        np.testing.assert_allclose(single.block(WHOLE, WHOLE), double.block(WHOLE, WHOLE), rtol=0, atol=1e-4)


@pytest.mark.parametrize("n_landmarks", [None, 30])
def test_a_matrix_may_be_the_base(n_landmarks, X, X_new):
    inner = bound_to(RBF(), X)
    K = np.vstack([inner.block(WHOLE, WHOLE), inner.against(X_new)])
    rows = np.arange(len(K))[:, None]
    bound = bound_to(ClusterKernel(Precomputed(K), n_eigenvectors=5, n_landmarks=n_landmarks), rows[:N_ROWS])
    np.testing.assert_allclose(bound.against(rows[:N_ROWS]), bound.block(WHOLE, WHOLE), rtol=0, atol=1e-8)
    if n_landmarks is None:
        expected = bound_to(ClusterKernel(RBF(), n_eigenvectors=5), X).against(X_new)
        np.testing.assert_allclose(bound.against(rows[N_ROWS:]), expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("n_landmarks", [None, 20])
def test_what_missing_values_mean_is_said_by_the_base(n_landmarks, X):
    X[7, [0, 2]] = np.nan
    kernel = ClusterKernel(OnColumns(RBF(), [0, 2], missing="center"), n_eigenvectors=5, n_landmarks=n_landmarks)
    assert kernel.allows_missing
    assert not ClusterKernel(RBF()).allows_missing
    bound = bound_to(kernel, X)
    np.testing.assert_allclose(bound.against(X), bound.block(WHOLE, WHOLE), rtol=0, atol=1e-8)


# In libraries and models


def test_kernels_of_one_library_share_their_eigenvectors(X):
    recipes = [
        ClusterKernel(RBF(), n_eigenvectors=8),
        ClusterKernel(RBF(), "step", 3),
        ClusterKernel(RBF(2.0)),
        ClusterKernel(RBF(), n_landmarks=20),
    ]
    together = KernelLibrary(recipes).bind(X, np.random.default_rng(0)).kernels
    assert together[0].features is together[1].features
    assert together[0].Z is together[1].Z
    assert len({id(kernel.features) for kernel in together}) == 3
    for recipe, kernel in zip(recipes[:3], together, strict=False):
        alone = bound_to(recipe, X)
        assert kernel.rank == alone.rank
        np.testing.assert_allclose(kernel.block(WHOLE, WHOLE), alone.block(WHOLE, WHOLE), rtol=0, atol=1e-8)


@pytest.mark.parametrize(
    "model",
    [
        SSMKClassifier([ClusterKernel(RBF(multiple=50.0), "step", 4), RBF()]),
        SSMKClassifier([DiffusionKernel(RBF(multiple=50.0), 1e3), Linear()]),
        LapSVMClassifier(ClusterKernel(RBF(multiple=50.0))),
        SSMKClassifier(Normalized(ClusterKernel(RBF(multiple=50.0), "step", 4))),
        SSMKClassifier(ManifoldKernel(ClusterKernel(RBF(multiple=50.0), "polynomial", 20, degree=8), ratio=10.0)),
        SSMKClassifier(OnColumns(ClusterKernel(RBF(multiple=50.0), "step", 4), [0, 1])),
        SSMKClassifier(ClusterKernel(RBF(multiple=50.0), "step", 4, n_landmarks=100)),
    ],
    ids=repr,
)
def test_clusters_say_which_moon_a_row_is_of(model, moons):
    X, y, X_all, classes = moons
    assert np.mean(clone(model).fit(X, y).predict(X_all) == classes) > 0.95
    assert np.mean(SSMKClassifier(RBF(multiple=50.0)).fit(X, y).predict(X_all) == classes) < 0.9


@pytest.mark.parametrize("kernel", [ClusterKernel(RBF(multiple=50.0)), DiffusionKernel(RBF(multiple=50.0), 100.0)])
def test_a_learned_combination_prefers_the_kernel_that_knows_the_moons(kernel, moons):
    X, _, X_all, classes = moons
    model = MKLClassifier([kernel, Linear()], weighting="learned").fit(X, classes[:200])
    assert model.weights_[0] > 0.5
    assert np.mean(model.predict(X_all) == classes) > 0.95


def test_a_model_evaluates_the_anchors_once(moons):
    X, y, X_all, _ = moons
    base = RBF(multiple=50.0)
    kernels = [ClusterKernel(base, "step", n, n_landmarks=50) for n in (2, 4, 8)]
    model = SSMKClassifier(kernels, column_scale="norm").fit(X, y)
    assert model.n_evaluations_ == 50
    assert model.decision_function(X_all).shape == (300,)


def test_diagnosis_finds_them_positive_semi_definite(X):
    for report in KernelLibrary(RECIPES).diagnose(X):
        assert report.is_psd
        assert report.mean_diagonal == pytest.approx(1.0)


# Recipes


@pytest.mark.parametrize("kernel", RECIPES, ids=repr)
def test_recipes_are_values(kernel):
    assert eval(repr(kernel)) == kernel
    assert hash(eval(repr(kernel))) == hash(kernel)
    changed = kernel.replace(base__multiple=3.0)
    assert changed != kernel
    assert changed.base == RBF(multiple=3.0)
    assert kernel.get_params()["base__gamma"] == "mean"
    assert clone(kernel) is kernel


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: ClusterKernel("rbf"), "ClusterKernel takes a kernel such as RBF"),
        (lambda: ClusterKernel(RBF(), "cubic"), 'got transform=.*; expected "linear", "step" or "poly'),
        (lambda: ClusterKernel(RBF(), degree=0), "ClusterKernel got degree=0; expected a whole number, 1 or more"),
        (
            lambda: ClusterKernel(RBF(), n_eigenvectors=0),
            "got n_eigenvectors=0; expected a whole number, 1 or more, or a share",
        ),
        (
            lambda: ClusterKernel(RBF(), n_eigenvectors=1.5),
            r"n_eigenvectors=1.5; .* a share of the rows, above 0 and at most 1",
        ),
        (lambda: ClusterKernel(RBF(), n_eigenvectors=True), "n_eigenvectors=True"),
        (lambda: ClusterKernel(RBF(), n_eigenvectors="all"), "n_eigenvectors='all'"),
        (lambda: ClusterKernel(RBF(), n_landmarks=0), 'n_landmarks=0; expected "auto", None'),
        (lambda: DiffusionKernel(RBF(), -1.0), "DiffusionKernel got time=-1.0; expected a number, 0 or more"),
        (lambda: DiffusionKernel(RBF(), np.inf), "time=inf"),
        (lambda: DiffusionKernel(RBF(), "long"), "time='long'"),
        (
            lambda: DiffusionKernel(Linear()).bind(np.eye(2) - 0.5, np.random.default_rng(0)),
            "row sums that are not positive",
        ),
    ],
)
def test_bad_parameters_are_refused(make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make()

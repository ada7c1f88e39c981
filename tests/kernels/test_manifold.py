import tracemalloc

import numpy as np
import pytest
import sklearn
from checks.rounding import assert_same_but_for_rounding
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.preprocessing import StandardScaler

from kernelweave import (
    RBF,
    FromCallable,
    KernelLibrary,
    Linear,
    ManifoldKernel,
    Normalized,
    OnColumns,
    Polynomial,
    Precomputed,
    Preprocessed,
    Sigmoid,
    manifold_family,
)
from kernelweave.kernels import manifold
from kernelweave.kernels.base import BoundKernel
from kernelweave.kernels.graph import kernel_neighbor_graph, laplacian, neighbor_graph
from kernelweave.kernels.nystroem import TOLERANCE

WHOLE = slice(None)
N_ROWS, N_NEW = 50, 7
BASES = [
    RBF(),
    RBF(multiple=8.0),
    Linear(),
    Polynomial(3),
    Normalized(Polynomial(2)),
    2.0 * Linear() + RBF(0.1),
    Preprocessed(StandardScaler(), RBF()),
    OnColumns(RBF(), [0, 2]),
]
EPS = np.finfo(float).eps


@pytest.fixture(name="X")
def sample():
    return np.random.default_rng(0).normal(size=(N_ROWS, 4))


@pytest.fixture(name="X_new")
def new_sample():
    return np.random.default_rng(1).normal(size=(N_NEW, 4))


def bound_to(kernel, X, seed=0, sample_weight=None):
    return kernel.bind(X, np.random.default_rng(seed), sample_weight)


def naive(kernel, K, K_new, own, M):
    """The deformed kernel between bound rows, between new and bound rows, and at new rows, as printed in the paper."""
    r = kernel.ratio / np.diag(K).mean()
    solved = np.linalg.solve(np.eye(len(K)) + r * K @ M, np.hstack([K, K_new.T]))
    inner, outer = solved[:, : len(K)], solved[:, len(K) :]
    # The condition of I + r K M is about r times the norms of K and M: so many digits the naive formula loses.
    rounding = 100 * EPS * (1 + r * np.linalg.norm(K, 2) * np.linalg.norm(M, 2))
    off = K_new - K_new @ (r * M) @ inner
    return inner, off, own - np.einsum("ij,ij->j", K_new.T, (r * M) @ outer), rounding


def power_of_laplacian(kernel, W):
    L = laplacian(W, kernel.laplacian == "normalized").toarray()
    return np.linalg.matrix_power(L, kernel.degree)


def assert_equals_the_formula(bound, expected, X_new):
    inner, off, own, rounding = expected
    size = bound.features.base.diag_against(X_new).max()
    # Rows that are no anchors lack a share t of their k(x, x): K is off by t among them, by sqrt(t) against new rows.
    t = 0.0 if bound.Z.shape == inner.shape else TOLERANCE
    size *= np.array([N_ROWS * t, N_ROWS * t, np.sqrt(t), TOLERANCE + np.sqrt(t)])
    np.testing.assert_array_less(
        [
            np.abs(bound.block(WHOLE, WHOLE) - inner).max(),
            np.abs(bound.diag() - np.diag(inner)).max(),
            np.abs(bound.against(X_new) - off).max(),
            np.abs(bound.diag_against(X_new) - own).max(),
        ],
        rounding * np.abs(own).max() + size,
    )


# The deformed kernel


@pytest.mark.parametrize("base", BASES, ids=repr)
@pytest.mark.parametrize("form", ["normalized", "unnormalized"])
@pytest.mark.parametrize("degree", [1, 2, 5])
@pytest.mark.parametrize("ratio", [1e-2, 1.0, 1e4])
def test_the_kernel_is_the_formula_of_the_paper_on_and_off_the_sample(base, form, degree, ratio, X, X_new):
    kernel = ManifoldKernel(base, 5, degree, ratio, laplacian=form)
    inner = bound_to(base, X)
    K, K_new, own = inner.block(WHOLE, WHOLE), inner.against(X_new), inner.diag_against(X_new)
    M = power_of_laplacian(kernel, neighbor_graph(X, 5))
    assert_equals_the_formula(bound_to(kernel, X), naive(kernel, K, K_new, own, M), X_new)


@pytest.mark.parametrize("weights", ["gaussian", "binary", "self_tuning"])
@pytest.mark.parametrize("metric", ["euclidean", "cosine", "kernel"])
def test_every_graph_deforms(weights, metric, X, X_new):
    kernel = ManifoldKernel(RBF(0.5), 4, ratio=10.0, metric=metric, edge_weights=weights)
    inner = bound_to(RBF(0.5), X)
    W = kernel_neighbor_graph(inner, 4, weights) if metric == "kernel" else neighbor_graph(X, 4, metric, weights)
    K, K_new, own = inner.block(WHOLE, WHOLE), inner.against(X_new), inner.diag_against(X_new)
    expected = naive(kernel, K, K_new, own, power_of_laplacian(kernel, W))
    assert_equals_the_formula(bound_to(kernel, X), expected, X_new)


@pytest.mark.parametrize("base", [*BASES, FromCallable(np.inner)], ids=repr)
@pytest.mark.parametrize("n_landmarks", [None, 20])
@pytest.mark.parametrize("ratio", [1.0, 1e6])
def test_the_matrix_is_symmetric_positive_semi_definite_and_below_the_base(base, n_landmarks, ratio, X):
    K = bound_to(ManifoldKernel(base, 5, ratio=ratio, n_landmarks=n_landmarks), X).block(WHOLE, WHOLE)
    np.testing.assert_array_equal(K, K.T)
    values = np.linalg.eigvalsh(K)
    assert values[0] >= -1e-14 * N_ROWS * values[-1]
    whole = bound_to(base, X).block(WHOLE, WHOLE)
    assert np.linalg.eigvalsh(whole - K)[0] >= -1e-9 * np.linalg.norm(whole, 2)


@pytest.mark.parametrize("n_landmarks", [None, 20])
def test_blocks_of_any_shape_agree(n_landmarks, X, X_new):
    bound = bound_to(ManifoldKernel(RBF(), 5, n_landmarks=n_landmarks), X)
    K = bound.block(WHOLE, WHOLE)
    rows, cols = np.array([3, 0, 49, 3]), np.array([7, 3])
    for block, expected in [
        (bound.block(rows, cols), K[np.ix_(rows, cols)]),
        (bound.block(cols, rows), K[np.ix_(cols, rows)]),
        (bound.block(rows, WHOLE), K[rows]),
        (bound.block(slice(2, 9), rows), K[2:9][:, rows]),
        (bound.against(X), K),
        (bound.against(X[rows], cols), K[np.ix_(rows, cols)]),
        (bound.against(X_new, rows), bound.against(X_new)[:, rows]),
        (bound.block(rows[:0], cols), K[:0][:, cols]),
    ]:
        np.testing.assert_allclose(block, expected, rtol=1e-10, atol=1e-13)


def test_without_a_ratio_the_base_is_left(X, X_new):
    bound = bound_to(ManifoldKernel(RBF("median"), ratio=0.0), X)
    base = bound_to(RBF("median"), X)
    assert type(bound) is type(base)
    np.testing.assert_array_equal(bound.against(X_new), base.against(X_new))


def test_a_small_ratio_is_near_the_base(X, X_new):
    bound, base = bound_to(ManifoldKernel(RBF(), ratio=1e-12), X), bound_to(RBF(), X)
    np.testing.assert_allclose(bound.against(X_new), base.against(X_new), atol=1e-10)
    np.testing.assert_allclose(bound.diag_against(X_new), 1.0, atol=1e-10)


@pytest.mark.parametrize("base", [RBF(), RBF("median"), Normalized(Linear()), Linear(), 3.0 * Linear()], ids=repr)
@pytest.mark.parametrize("unit", [1e-8, 1e8])
def test_the_unit_of_the_features_changes_the_size_only(base, unit, X, X_new):
    kernel = Normalized(ManifoldKernel(base, 5, ratio=100.0))
    one, other = bound_to(kernel, X), bound_to(kernel, unit * X)
    np.testing.assert_allclose(other.block(WHOLE, WHOLE), one.block(WHOLE, WHOLE), rtol=0, atol=1e-9)
    np.testing.assert_allclose(other.against(unit * X_new), one.against(X_new), rtol=0, atol=1e-9)


def test_a_multiple_of_the_base_is_a_multiple_of_the_kernel(X, X_new):
    one, other = (bound_to(ManifoldKernel(base, 5), X) for base in (RBF(), 7.0 * RBF()))
    np.testing.assert_allclose(other.against(X_new), 7.0 * one.against(X_new), rtol=1e-10)


def test_sample_weights_weigh_the_mean_of_the_diagonal(X, X_new):
    weight = np.random.default_rng(3).uniform(0.5, 2.0, N_ROWS)
    scale = np.average((X**2).sum(axis=1), weights=weight) / (X**2).sum(axis=1).mean()
    weighted = bound_to(ManifoldKernel(Linear(), 5, ratio=scale), X, sample_weight=weight)
    expected = bound_to(ManifoldKernel(Linear(), 5), X)
    np.testing.assert_allclose(weighted.against(X_new), expected.against(X_new), rtol=1e-10)


# Rows that are special


@pytest.mark.parametrize("base", [RBF(), Linear(), RBF(multiple=50.0)], ids=repr)
@pytest.mark.parametrize("n_landmarks", [None, 30])
@pytest.mark.filterwarnings("error")
def test_duplicated_rows_have_equal_rows_in_the_matrix(base, n_landmarks, X):
    X[10:30] = X[5]
    K = bound_to(ManifoldKernel(base, 5, edge_weights="binary", n_landmarks=n_landmarks, degree=1), X).against(X)
    assert np.isfinite(K).all()
    np.testing.assert_allclose(K[10:30], np.tile(K[5], (20, 1)), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("value", [0.0, 1.0])
@pytest.mark.parametrize("base", [RBF(), Linear(), Polynomial()], ids=repr)
@pytest.mark.parametrize("n_rows", [1, 2, 9])
@pytest.mark.filterwarnings("error")
def test_equal_rows_and_rows_of_zeros_bind(value, base, n_rows):
    X = np.full((n_rows, 2), value)
    bound = bound_to(ManifoldKernel(base, 3), X)
    whole = bound_to(base, X).block(WHOLE, WHOLE)
    # Constant functions cost nothing on a regular graph: the kernel is as before, where all rows are joined alike.
    assert bound.block(WHOLE, WHOLE).shape == whole.shape
    if n_rows < 9:
        np.testing.assert_allclose(bound.block(WHOLE, WHOLE), whole, rtol=1e-10)
    assert np.isfinite(bound.diag()).all()
    assert np.isfinite(bound.against(np.eye(2))).all()
    other, coef = bound.fold(np.ones((n_rows, 1)))
    expected = bound.against(np.eye(2)).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(other.against(np.eye(2)) @ coef, expected, rtol=1e-10)


def test_an_isolated_row_keeps_its_own_kernel():
    X = np.vstack([np.random.default_rng(0).normal(size=(2000, 2)), [[1e5, 0.0]]])
    assert neighbor_graph(X, 3)[[2000]].nnz == 0
    bound = bound_to(ManifoldKernel(RBF(1.0), 3, ratio=100.0, n_landmarks=None), X[1000:])
    row = bound.block(np.array([1000]), WHOLE)[0]
    assert row[1000] == pytest.approx(1.0)
    assert np.abs(row[:1000]).max() < 1e-12


@pytest.mark.parametrize("container", [np.asfortranarray, sparse.csr_matrix, sparse.csr_array])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("n_landmarks", [None, 20])
def test_every_container_gives_the_same_kernel(container, metric, n_landmarks, X, X_new):
    kernel = ManifoldKernel(RBF(0.3), 5, metric=metric, n_landmarks=n_landmarks)
    dense, other = bound_to(kernel, X), bound_to(kernel, container(X))
    np.testing.assert_allclose(other.block(WHOLE, WHOLE), dense.block(WHOLE, WHOLE), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(other.against(container(X_new)), dense.against(X_new), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("container", [sparse.csr_matrix, sparse.csr_array])
@pytest.mark.parametrize("n_landmarks", [None, 20])
def test_sparse_rows_with_a_column_far_from_zero_have_the_kernel_of_dense_ones(container, n_landmarks, X, X_new):
    kernel, far = ManifoldKernel(RBF(), 5, ratio=10.0, n_landmarks=n_landmarks), np.array([0.0, 1e8, 0.0, 0.0])
    dense, other = bound_to(kernel, X + far), bound_to(kernel, container(X + far))
    np.testing.assert_allclose(other.block(WHOLE, WHOLE), dense.block(WHOLE, WHOLE), rtol=0, atol=1e-8)
    np.testing.assert_allclose(other.against(container(X + far)), other.block(WHOLE, WHOLE), rtol=0, atol=1e-8)
    expected = dense.against(X_new + far)
    for rows in (WHOLE, slice(2, 3)):  # new rows are seen from where the bound ones are, however few they are
        np.testing.assert_allclose(other.against(container(X_new[rows] + far)), expected[rows], rtol=0, atol=1e-8)


def test_single_precision_is_computed_in_double(X, X_new):
    X, X_new = X.astype(np.float32), X_new.astype(np.float32)
    kernel = ManifoldKernel(RBF(multiple=0.1), 5)
    found, expected = bound_to(kernel, X), bound_to(kernel, X.astype(np.float64))
    np.testing.assert_allclose(found.block(WHOLE, WHOLE), expected.block(WHOLE, WHOLE), rtol=1e-10)
    np.testing.assert_allclose(found.against(X_new), expected.against(X_new.astype(np.float64)), rtol=1e-10)


@given(st.integers(0, 2**32 - 1), st.integers(1, 15), st.sampled_from([None, 1, 5]), st.sampled_from([1e-3, 1.0, 1e5]))
def test_any_sample_gives_a_positive_semi_definite_kernel(seed, n_rows, n_landmarks, ratio):
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, size=(n_rows, 2)) * 10.0 ** rng.integers(-3, 4)
    for base in (RBF(), Linear(), Normalized(Polynomial(2))):
        for metric in ("euclidean", "cosine", "kernel"):
            kernel = ManifoldKernel(base, 3, 2, ratio, metric, "self_tuning", n_landmarks=n_landmarks)
            bound = bound_to(kernel, X, seed)
            values = np.linalg.eigvalsh(bound.block(WHOLE, WHOLE))
            assert values[0] >= -1e-12 * max(values[-1], 1e-300)
            size = np.abs(bound_to(base, X).diag()).max()
            np.testing.assert_allclose(bound.against(X), bound.block(WHOLE, WHOLE), rtol=0, atol=1e-9 * size)


# Low rank


def test_a_base_of_low_rank_has_few_anchors(X):
    bound = bound_to(ManifoldKernel(Linear(), 5), X)
    Z = bound.factor()
    assert Z.shape == (N_ROWS, 4)
    np.testing.assert_allclose(Z @ Z.T, bound.block(WHOLE, WHOLE), rtol=1e-10, atol=1e-12)
    assert bound_to(ManifoldKernel(RBF(multiple=8.0), 5), X).factor() is None


@pytest.mark.parametrize("base", [RBF(), Polynomial(3), RBF(multiple=0.05)], ids=repr)
@pytest.mark.parametrize("ratio", [1.0, 1e3])
def test_landmarks_deform_the_nystroem_kernel(base, ratio, X, X_new):
    kernel = ManifoldKernel(base, 5, ratio=ratio, n_landmarks=15)
    bound, inner = bound_to(kernel, X), bound_to(base, X)
    anchors = np.flatnonzero((X[:, None] == bound.features.base.X).all(axis=2).any(axis=1))
    assert len(anchors) <= 15
    inverse = np.linalg.pinv(inner.block(anchors, anchors), rcond=1e-13, hermitian=True)
    left, right = inner.block(WHOLE, anchors), inner.against(X_new, anchors)
    K, K_new, own = left @ inverse @ left.T, right @ inverse @ left.T, np.diag(right @ inverse @ right.T)
    # The ratio is relative to the base, whatever the landmarks.
    scaled = kernel.replace(ratio=ratio * np.diag(K).mean() / inner.diag().mean())
    expected = naive(scaled, K, K_new, own, power_of_laplacian(kernel, neighbor_graph(X, 5)))
    atol = max(expected[3], 1e-6)  # of the inverse
    for found, value in zip((bound.block(WHOLE, WHOLE), bound.against(X_new)), expected, strict=False):
        np.testing.assert_allclose(found, value, rtol=0, atol=atol * np.abs(value).max())
    np.testing.assert_allclose(bound.diag_against(X_new), expected[2], rtol=0, atol=atol * np.abs(expected[2]).max())
    np.testing.assert_allclose(bound.diag(), np.diag(expected[0]), rtol=0, atol=atol * np.abs(expected[0]).max())


@pytest.mark.parametrize("n_landmarks", [N_ROWS, 10 * N_ROWS, "auto"])
def test_as_many_landmarks_as_rows_are_exact(n_landmarks, X, X_new):
    exact = bound_to(ManifoldKernel(RBF(), 5, n_landmarks=None), X)
    found = bound_to(ManifoldKernel(RBF(), 5, n_landmarks=n_landmarks), X)
    np.testing.assert_array_equal(found.against(X_new), exact.against(X_new))
    np.testing.assert_array_equal(found.diag_against(X_new), exact.diag_against(X_new))


def test_above_a_number_of_rows_landmarks_are_drawn_from_the_generator(monkeypatch, X):
    monkeypatch.setattr(manifold, "MAX_EXACT_ROWS", N_ROWS - 1)
    monkeypatch.setattr(manifold, "N_LANDMARKS", 12)
    kernel = ManifoldKernel(RBF(), 5)
    first, again, other = (bound_to(kernel, X, seed) for seed in (0, 0, 1))
    assert first.Z.shape == (N_ROWS, 12)
    np.testing.assert_array_equal(first.Z, again.Z)
    assert not np.array_equal(first.features.base.X, other.features.base.X)
    assert bound_to(kernel, X[:-1]).Z.shape == (N_ROWS - 1, N_ROWS - 1)


def test_landmarks_never_take_a_matrix_of_all_rows():
    n_rows, n_landmarks = 6000, 200
    X = np.random.default_rng(0).normal(size=(n_rows, 5))
    library = KernelLibrary(manifold_family(n_neighbors=(10,), n_landmarks=n_landmarks, ratios=(1.0, 100.0)))
    with sklearn.config_context(working_memory=16):
        tracemalloc.start()
        try:
            bound = library.bind(X, np.random.default_rng(0))
            next(bound.scores(np.ones((50, 1)), np.arange(50)))
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert len({id(kernel.Z) for kernel in bound.kernels}) == 1
    assert peak < 8 * n_rows * n_landmarks * 5  # Z is one fifth of that, a matrix of all rows six times


# Libraries, expansions and wrappers

FAMILY = [
    *manifold_family([RBF(), Linear()], ratios=(1.0, 50.0), n_neighbors=(3, 6), degrees=(1, 2), n_landmarks=None),
    ManifoldKernel(RBF(), 3, metric="cosine", n_landmarks=None),
    ManifoldKernel(RBF(), 3, metric="kernel", n_landmarks=None),
    ManifoldKernel(Linear(), 3, metric="kernel", n_landmarks=None),
    ManifoldKernel(RBF(), 3, edge_weights="binary", n_landmarks=None),
    ManifoldKernel(RBF(), 3, laplacian="unnormalized", n_landmarks=None),
    ManifoldKernel(RBF(), 3, ratio=0.0),
]


def test_a_family_in_a_library_is_each_of_its_kernels_alone(X, X_new):
    kernels = [Sigmoid(), *FAMILY[:5], RBF(), *FAMILY[5:]]
    together = KernelLibrary(kernels).bind(X, np.random.default_rng(0)).kernels
    for kernel, bound in zip(kernels, together, strict=True):
        alone = bound_to(kernel, X)
        assert_same_but_for_rounding(bound.block(WHOLE, WHOLE), alone.block(WHOLE, WHOLE))
        assert_same_but_for_rounding(bound.against(X_new), alone.against(X_new))


def test_a_family_computes_bases_graphs_and_forms_once(monkeypatch, X):
    calls = {"base": 0, "neighbor_graph": 0, "kernel_neighbor_graph": 0, "power_form": 0}

    def counted(name, function):
        def call(*args):
            calls[name] += 1
            return function(*args)

        return call

    for name in list(calls)[1:]:
        monkeypatch.setattr(manifold, name, counted(name, getattr(manifold, name)))
    monkeypatch.setattr(manifold, "anchored", counted("base", manifold.anchored))
    bound = KernelLibrary(FAMILY).bind(X, np.random.default_rng(0)).kernels
    # Graphs: 3 and 6 neighbours, cosine, binary; of kernels, that of each base.
    assert calls == {"base": 2, "neighbor_graph": 4, "kernel_neighbor_graph": 2, "power_form": 2 * 4 + 5}
    assert len({id(kernel.Z) for kernel in bound[:-1]}) == 2
    assert bound[0].features is bound[7].features is not bound[8].features


def test_random_landmarks_are_shared_and_do_not_depend_on_other_kernels(X):
    family = manifold_family(RBF(), ratios=(1.0, 10.0), n_neighbors=(4,), degrees=(2,), n_landmarks=10)
    library = KernelLibrary([*family, Linear()]).bind(X, np.random.default_rng(0)).kernels
    again = KernelLibrary(family).bind(X, np.random.default_rng(0)).kernels
    assert library[0].Z is library[1].Z
    np.testing.assert_array_equal(library[0].Z, again[0].Z)


@pytest.mark.parametrize("n_landmarks", [None, 20])
def test_restricting_and_folding_keep_the_function(n_landmarks, X, X_new):
    bound = bound_to(ManifoldKernel(RBF(), 5, n_landmarks=n_landmarks), X)
    rows, coef = np.array([4, 49, 7]), np.random.default_rng(2).normal(size=(3, 2))
    small = bound.restrict(rows)
    assert isinstance(small, BoundKernel)
    assert small.n_rows == 3
    np.testing.assert_allclose(small.diag(), small.block(WHOLE, WHOLE).diagonal(), rtol=1e-14)
    np.testing.assert_allclose(small.against(X_new), bound.against(X_new)[:, rows], rtol=1e-10)
    other, folded = small.fold(coef)
    assert other is bound.features.base
    assert folded.shape == (other.n_rows, 2)
    np.testing.assert_allclose(other.against(X_new) @ folded, bound.against(X_new)[:, rows] @ coef, rtol=1e-9)


@pytest.mark.parametrize(
    "wrap",
    [lambda kernel: OnColumns(kernel, [3, 0, 1]), lambda kernel: Preprocessed(StandardScaler(), kernel)],
    ids=["OnColumns", "Preprocessed"],
)
def test_wrapped_kernels_fold_too(wrap, X, X_new):
    bound = bound_to(wrap(ManifoldKernel(RBF(), 5)), X)
    assert bound_to(wrap(RBF()), X).fold(np.ones((N_ROWS, 1))) is None
    coef = np.random.default_rng(2).normal(size=(N_ROWS, 2))
    other, folded = bound.fold(coef)
    np.testing.assert_allclose(other.against(X_new) @ folded, bound.against(X_new) @ coef, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(bound.against(X), bound.block(WHOLE, WHOLE), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("missing", [False, True])
def test_deformation_on_a_source_is_that_of_its_columns(missing, X, X_new):
    kernel = ManifoldKernel(RBF(), 5)
    wrapped = OnColumns(kernel, [0, 2], missing="center" if missing else "error")
    alone = bound_to(kernel, X[:, [0, 2]])
    np.testing.assert_allclose(bound_to(wrapped, X).against(X_new), alone.against(X_new[:, [0, 2]]), rtol=1e-10)


def test_columns_of_the_base_are_found_by_name(X, X_new):
    kernels = [ManifoldKernel(OnColumns(RBF(), columns), 5) for columns in (["a", "c"], [0, 2])]
    bound = KernelLibrary(kernels).bind(X, np.random.default_rng(0), feature_names=["a", "b", "c", "d"]).kernels
    np.testing.assert_array_equal(bound[0].against(X_new), bound[1].against(X_new))


def test_missing_rows_are_placed_by_the_base_where_it_measures_distances(X):
    X[[3, 8], :2] = np.nan
    base = OnColumns(RBF(), [0, 1], missing="center") + OnColumns(Linear(), [2, 3])
    assert ManifoldKernel(base, metric="kernel").allows_missing
    assert not ManifoldKernel(base).allows_missing
    assert np.isfinite(bound_to(ManifoldKernel(base, 5, metric="kernel"), X).against(X)).all()
    with pytest.raises(ValueError, match=r"ManifoldKernel\(.* found missing values"):
        bound_to(ManifoldKernel(base, 5), X)


def test_a_precomputed_matrix_is_deformed_by_its_own_distances(X, X_new):
    K = X @ X.T
    joined = np.vstack([K, X_new @ X.T])
    bound = bound_to(ManifoldKernel(Precomputed(joined), 5, metric="kernel"), np.arange(N_ROWS)[:, None])
    expected = bound_to(ManifoldKernel(Linear(), 5), X)
    np.testing.assert_allclose(bound.block(WHOLE, WHOLE), expected.block(WHOLE, WHOLE), rtol=1e-6, atol=1e-8)
    new = N_ROWS + np.arange(N_NEW)[:, None]
    np.testing.assert_allclose(bound.against(new), expected.against(X_new), rtol=1e-6, atol=1e-8)


# What is refused


@pytest.mark.parametrize("n_landmarks", [None, 30])
def test_an_indefinite_base_is_refused_by_name(n_landmarks, X):
    with pytest.raises(ValueError, match=r"^Sigmoid\(\) has no features: .* not symmetric positive semi-definite"):
        bound_to(ManifoldKernel(Sigmoid(), 5, n_landmarks=n_landmarks), X)


def test_a_deformation_beyond_double_precision_is_refused(X):
    with pytest.raises(ValueError, match=r"ratio=1e\+308.* too strong for double precision"):  # it overflows
        bound_to(ManifoldKernel(RBF(), 5, degree=5, ratio=1e308, laplacian="unnormalized"), X)


@pytest.mark.parametrize("base", [Precomputed(np.eye(3)), OnColumns(Precomputed(np.eye(3)), [0]) + RBF()], ids=repr)
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_distances_between_row_numbers_are_refused(base, metric):
    with pytest.raises(ValueError, match=r'X holds row numbers.* Pass metric="kernel"'):
        ManifoldKernel(base, metric=metric)


@pytest.mark.parametrize(
    "wrong",
    [
        {"n_neighbors": 0},
        {"n_neighbors": 2.5},
        {"degree": 0},
        {"degree": True},
        {"ratio": -1.0},
        {"ratio": np.inf},
        {"ratio": "1"},
        {"metric": "manhattan"},
        {"edge_weights": "none"},
        {"laplacian": True},
        {"n_landmarks": 0},
        {"n_landmarks": "all"},
    ],
    ids=repr,
)
def test_other_parameters_are_refused_by_name(wrong):
    (name,) = wrong
    with pytest.raises(ValueError, match=f"ManifoldKernel got {name}=.*; expected"):
        ManifoldKernel(RBF(), **wrong)


def test_a_family_is_the_product_of_its_lists():
    family = manifold_family([RBF(), Linear()], ratios=(1.0, 9.0), metric="cosine")
    assert len(family) == 2 * 2 * 2 * 2
    assert family[:2] == [ManifoldKernel(RBF(), 20, 2, ratio, metric="cosine") for ratio in (1.0, 9.0)]
    assert manifold_family() == manifold_family(RBF())
    assert manifold_family(RBF(), 10.0, 6, 1) == [ManifoldKernel(RBF(), 6, 1, 10.0)]
    assert family[0].replace(base__gamma=0.5).base == RBF(0.5)
    assert [kernel.is_psd for kernel in (family[0], ManifoldKernel(Sigmoid()))] == [True, False]

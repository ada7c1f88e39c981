import pickle

import numpy as np
import pytest
import sklearn
from checks.rounding import assert_same_but_for_rounding
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
    Preprocessed,
    SSMKClassifier,
    manifold_family,
)
from kernelweave.kernels import expansion as expansions
from kernelweave.kernels.base import BoundKernel
from kernelweave.kernels.expansion import CombinedKernel, KernelExpansion

WHOLE = slice(None)
KERNELS = [
    Linear(),
    Polynomial(),
    RBF("median"),
    Normalized(Polynomial(3)),
    OnColumns(RBF(), [0, 2], source="lab"),
    Preprocessed(StandardScaler(), RBF()),
]
N_ROWS = 40
ROW_NUMBERS = 100 + 2 * np.arange(N_ROWS)


@pytest.fixture(name="X")
def sample():
    return np.random.default_rng(0).normal(size=(N_ROWS, 3))


@pytest.fixture(name="X_new")
def new_sample():
    return np.random.default_rng(1).normal(size=(11, 3))


@pytest.fixture(name="library")
def bound_library(X):
    return KernelLibrary(KERNELS).bind(X, np.random.default_rng(0))


# CombinedKernel

WEIGHTS = np.array([0.5, 0.0, 2.0, 0.0, 1.0, 0.25])


def test_a_combined_kernel_is_the_weighted_sum(library, X_new):
    combined = CombinedKernel(library.kernels, WEIGHTS)
    assert isinstance(combined, BoundKernel)
    assert combined.n_rows == N_ROWS

    def total(evaluate):
        return sum(weight * evaluate(kernel) for weight, kernel in zip(WEIGHTS, library.kernels, strict=True))

    rows, cols = np.array([3, 1]), np.array([0, 39, 7])
    for evaluate in (
        lambda kernel: kernel.block(rows, cols),
        lambda kernel: kernel.block(WHOLE, WHOLE),
        lambda kernel: kernel.against(X_new, cols),
        lambda kernel: kernel.diag(),
        lambda kernel: kernel.diag_against(X_new),
        lambda kernel: kernel.restrict(rows).against(X_new),
    ):
        np.testing.assert_allclose(evaluate(combined), total(evaluate), rtol=1e-12, atol=1e-14)


def test_kernels_of_weight_zero_are_left_out(library, X_new):
    assert len(CombinedKernel(library.kernels, WEIGHTS).terms) == 4
    nothing = CombinedKernel(library.kernels, np.zeros(6))
    assert not nothing.against(X_new).any()
    assert nothing.against(X_new).shape == (11, N_ROWS)


@pytest.mark.parametrize(
    "wrong", [[1.0, -0.1, 0, 0, 0, 0], [1.0], [], [[1.0] * 6], [np.nan, 1, 1, 1, 1, 1], [np.inf, 1, 1, 1, 1, 1]]
)
def test_other_weights_are_refused(wrong, library):
    with pytest.raises(ValueError, match="Kernel weights must be 6 non-negative numbers; got"):
        CombinedKernel(library.kernels, np.array(wrong))


# KernelExpansion

COLUMNS = np.array([5, 130, 3, 81, 239, 82, 165])  # kernels 0, 3, 0, 2, 5, 2, 4
COEF = np.random.default_rng(2).normal(size=(7, 2))
INTERCEPT = np.array([0.5, -1.0])


@pytest.fixture(name="expansion")
def small_expansion(library):
    return KernelExpansion.from_columns(library, COLUMNS, COEF, INTERCEPT, ROW_NUMBERS)


def dense(library, X_new):
    """All columns at the new rows, shape (n_new, n_kernels, n_rows)."""
    return np.stack([kernel.against(X_new) for kernel in library.kernels], axis=1)


def test_an_expansion_is_the_sum_of_its_columns(library, expansion, X_new):
    K = dense(library, X_new).reshape(11, -1)
    np.testing.assert_allclose(expansion(X_new), K[:, COLUMNS] @ COEF + INTERCEPT, rtol=1e-10, atol=1e-12)


def test_a_composite_model_is_an_expansion(library, X_new):
    alpha = np.random.default_rng(3).normal(size=(N_ROWS, 1))
    active = np.flatnonzero(WEIGHTS)
    columns = (active[:, None] * N_ROWS + np.arange(N_ROWS)).ravel()
    coef = (WEIGHTS[active, None] * alpha[:, 0]).reshape(-1, 1)
    expansion = KernelExpansion.from_columns(library, columns, coef, np.zeros(1), ROW_NUMBERS)
    expected = library.combined(WEIGHTS).against(X_new) @ alpha
    np.testing.assert_allclose(expansion(X_new), expected, rtol=1e-10, atol=1e-12)


def test_the_parts_of_an_expansion_sum_to_the_whole(library, expansion, X_new):
    parts = expansion.split(X_new)
    assert parts.shape == (11, 6, 2)
    np.testing.assert_allclose(parts.sum(axis=1), expansion(X_new), rtol=1e-10, atol=1e-12)
    kernel, center = library.split(COLUMNS)
    coef = np.zeros((6, N_ROWS, 2))
    coef[kernel, center] = COEF
    expected = np.einsum("npi,pio->npo", dense(library, X_new), coef)
    expected[:, [0, 2, 3, 4, 5]] += INTERCEPT / 5  # shared among the active kernels
    np.testing.assert_allclose(parts, expected, rtol=1e-10, atol=1e-12)


def test_groups_are_the_active_kernels_with_their_centres_in_order(library, expansion):
    assert [group.kernel for group in expansion.groups] == [0, 2, 3, 4, 5]
    assert [group.name for group in expansion.groups] == [library.entries[p].name for p in (0, 2, 3, 4, 5)]
    assert [group.source for group in expansion.groups] == ["all columns"] * 3 + ["lab", "all columns"]
    centers = [[106, 110], [102, 104], [120], [110], [178]]
    assert [group.centers.tolist() for group in expansion.groups] == centers
    np.testing.assert_array_equal(expansion.groups[0].coef, COEF[[2, 0]])
    assert expansion.n_evaluations == 7
    assert expansion.n_kernels == 6


@pytest.mark.parametrize("n_rows", [1, 6, 1000])
def test_blocks_of_rows_do_not_change_what_is_predicted(n_rows, expansion, X_new):
    whole, parts = expansion(X_new), expansion.split(X_new)
    with sklearn.config_context(working_memory=8 * 5 * n_rows / 2**20):
        np.testing.assert_allclose(expansion(X_new), whole, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(expansion.split(X_new), parts, rtol=1e-12, atol=1e-14)


def test_a_block_of_new_rows_stays_within_the_working_memory(X):
    heights = []

    def watched(A, B):
        heights.append(len(A))
        return A @ B.T

    library = KernelLibrary([FromCallable(watched)]).bind(X, np.random.default_rng(0))
    expansion = KernelExpansion.from_columns(library, np.array([7, 9]), np.ones((2, 1)), np.zeros(1), ROW_NUMBERS)
    with sklearn.config_context(working_memory=8 * (2 + 3) * 16 / 2**20):  # 16 rows, of 2 centres and 3 features
        expansion(X)
    assert sum(heights) == N_ROWS
    assert max(heights) <= 16


@pytest.mark.parametrize("container", [np.asfortranarray, sparse.csr_matrix, sparse.csr_array, np.float32])
def test_new_rows_come_in_every_container(container, X, X_new):
    X, X_new = X.round(), X_new.round()  # whole numbers have no rounding in single precision
    library = KernelLibrary(KERNELS[:5])
    dense, other = (library.bind(Z, np.random.default_rng(0)) for Z in (X, container(X)))
    expected = KernelExpansion.from_columns(dense, COLUMNS[:4], COEF[:4], INTERCEPT, ROW_NUMBERS)(X_new)
    found = KernelExpansion.from_columns(other, COLUMNS[:4], COEF[:4], INTERCEPT, ROW_NUMBERS)(container(X_new))
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


def test_an_expansion_keeps_only_its_centres(X_new):
    many = np.random.default_rng(4).normal(size=(20_000, 3))
    library = KernelLibrary([RBF(0.5), Normalized(Linear()), Linear() + RBF(), OnColumns(RBF(), [1])]).bind(
        many, np.random.default_rng(0)
    )
    columns = 20_000 * np.arange(4) + 17
    expansion = KernelExpansion.from_columns(library, columns, np.ones((4, 1)), np.zeros(1), np.arange(20_000))
    stored = pickle.dumps(expansion)
    assert len(stored) < 10_000  # the sample has 480,000 bytes
    assert_same_but_for_rounding(pickle.loads(stored)(X_new), expansion(X_new))


@pytest.mark.parametrize("none", [np.array([], dtype=int), np.array([])])
def test_without_an_active_column_the_intercept_is_left(none, library, X_new):
    expansion = KernelExpansion.from_columns(library, none, np.empty((0, 2)), INTERCEPT, ROW_NUMBERS)
    np.testing.assert_array_equal(expansion(X_new), np.tile(INTERCEPT, (11, 1)))
    np.testing.assert_allclose(expansion.split(X_new).sum(axis=1), expansion(X_new), rtol=1e-12)
    assert expansion.n_evaluations == 0
    assert expansion.groups == ()


def test_no_new_rows_have_no_values(expansion, X_new):
    assert expansion(X_new[:0]).shape == (0, 2)
    assert expansion.split(X_new[:0]).shape == (0, 6, 2)


def test_large_values_in_single_precision_are_finite():
    X = np.full((200, 1), 1e18, dtype=np.float32)
    library = KernelLibrary([Linear()]).bind(X, np.random.default_rng(0))
    expansion = KernelExpansion.from_columns(library, np.arange(200), np.ones((200, 1)), np.zeros(1), np.arange(200))
    np.testing.assert_allclose(expansion(X), 2e38, rtol=1e-5)  # the whole block would sum to 4e40


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_kernel_that_overflows_on_new_rows_is_named(X):
    library = KernelLibrary([Linear(), Polynomial(degree=100)]).bind(X, np.random.default_rng(0))
    expansion = KernelExpansion.from_columns(library, np.array([3, 45]), np.ones((2, 1)), np.zeros(1), ROW_NUMBERS)
    with pytest.raises(ValueError, match=r"The kernel Polynomial\(degree=100\) gave values that are not finite .* new"):
        expansion(1e6 * X)


# Folded kernels


def test_an_expansion_evaluates_a_common_base_once_at_its_anchors(X, X_new):
    calls = []

    def watched(A, B):
        calls.append((len(A), len(B)))
        return np.exp(-np.square(A[:, None] - B).sum(axis=2))

    base = FromCallable(watched)
    library = KernelLibrary([RBF(1.0), *manifold_family(base, n_neighbors=(3, 6)), ManifoldKernel(RBF(), 3)]).bind(
        X, np.random.default_rng(0)
    )
    columns = np.array([3, 7, 40, 79, 100, 140, 210])
    coef = np.random.default_rng(2).normal(size=(7, 2))
    expansion = KernelExpansion.from_columns(library, columns, coef, np.zeros(2), ROW_NUMBERS)
    calls.clear()
    found = expansion(X_new)
    assert calls == [(11, N_ROWS)]
    assert expansion.n_evaluations == 2 + N_ROWS + N_ROWS
    whole = np.hstack([kernel.against(X_new) for kernel in library.kernels])
    np.testing.assert_allclose(found, whole[:, columns] @ coef, rtol=1e-9, atol=1e-12)
    parts = expansion.split(X_new)
    assert [group.kernel for group in expansion.groups] == [0, 1, 2, 3, 5]
    assert [group.centers.tolist() for group in expansion.groups] == [[106, 114], [100, 178], [140], [140], [120]]
    np.testing.assert_array_equal(expansion.groups[1].coef, coef[2:4])
    for group in expansion.groups:
        alone = library.kernels[group.kernel].against(X_new, (group.centers - 100) // 2) @ group.coef
        np.testing.assert_allclose(parts[:, group.kernel], alone, rtol=1e-9, atol=1e-12)


def test_a_model_of_folded_kernels_does_not_keep_the_features_of_all_rows():
    X = np.random.default_rng(0).normal(size=(3000, 5))
    y = np.full(3000, -1)
    y[:40] = X[:40, 0] > 0
    model = SSMKClassifier(ManifoldKernel(RBF(), n_landmarks=30)).fit(X, y)
    assert model.n_evaluations_ == 30
    assert len(pickle.dumps(model.expansion_)) < 8 * 3000 * 3  # the features alone have ten times as many bytes


def test_a_folded_group_knows_what_its_centres_add(X, X_new):
    library = KernelLibrary([RBF(1.0), ManifoldKernel(RBF(), 3)]).bind(X, np.random.default_rng(0))
    coef = np.random.default_rng(2).normal(size=(3, 2))
    columns = np.array([3, N_ROWS + 4, N_ROWS + 9])
    expansion = KernelExpansion.from_columns(library, columns, coef, np.zeros(2), ROW_NUMBERS)
    for _, group, values in expansion.walk(X_new):
        expected = library.kernels[group.kernel].against(X_new, (group.centers - 100) // 2)
        assert group.knows_centers
        np.testing.assert_allclose(group.at_centers(values), expected, atol=1e-9)
    assert [group.fold is None for group in expansion.groups] == [True, False]


def test_what_is_folded_is_kept_up_to_a_number_of_values(X, monkeypatch):
    monkeypatch.setattr(expansions, "MAX_FOLD_VALUES", 3 * N_ROWS)
    library = KernelLibrary([ManifoldKernel(RBF(), 3), ManifoldKernel(RBF(), 6)]).bind(X, np.random.default_rng(0))
    columns = np.array([1, 2, N_ROWS + 4, N_ROWS + 9])
    expansion = KernelExpansion.from_columns(library, columns, np.ones((4, 1)), np.zeros(1), ROW_NUMBERS)
    assert [group.knows_centers for group in expansion.groups] == [True, False]


def test_an_expansion_and_its_groups_print_a_line(library):
    expansion = KernelExpansion.from_columns(library, COLUMNS, COEF, INTERCEPT, ROW_NUMBERS)
    n_centers = len(np.unique(np.concatenate([group.centers for group in expansion.groups])))
    assert repr(expansion) == (
        f"<KernelExpansion: 5 of {len(library.kernels)} kernels, {n_centers} centres, 2 outputs, "
        f"{expansion.n_evaluations} kernel values a row>"
    )
    assert repr(expansion.groups[3]).endswith("of 'lab'>")

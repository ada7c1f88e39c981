import numpy as np
import pytest
import sklearn
from scipy import sparse

from kernelweave import (
    RBF,
    DiffusionKernel,
    FromCallable,
    KernelLibrary,
    Linear,
    ManifoldKernel,
    Normalized,
    OnColumns,
    Polynomial,
    Precomputed,
    Sigmoid,
)
from kernelweave.kernels.base import BoundKernel


def skewed(A, B):
    return A @ np.triu(np.ones((A.shape[1],) * 2)) @ B.T


KERNELS = [Linear(), RBF("median"), Sigmoid(0.5), FromCallable(skewed), Normalized(Polynomial(3))]
N_ROWS = 23
N_COLUMNS = len(KERNELS) * N_ROWS
ROWS = np.array([4, 0, 19, 7, 7, 22, 3])
N_FEATURES = 3


@pytest.fixture(name="X")
def sample():
    return np.random.default_rng(0).normal(size=(N_ROWS, N_FEATURES))


@pytest.fixture(name="K")
def dense(X):
    """All columns side by side, formed at once."""
    blocks = [kernel.bind(X, np.random.default_rng(0)).block(slice(None), slice(None)) for kernel in KERNELS]
    return np.hstack(blocks)


def bound_to(kernels, X, seed=0, **options):
    return KernelLibrary(kernels).bind(X, np.random.default_rng(seed), **options)


def room_for(n_columns):
    """Working memory for the values of this many columns, hence for blocks of fewer columns."""
    return sklearn.config_context(working_memory=8 * len(ROWS) * n_columns / 2**20)


def gathered(walk, n_columns=N_COLUMNS):
    """What a walk with two vectors yields, put in place; every column must come once."""
    out, times = np.full((n_columns, 2), np.nan), np.zeros(n_columns)
    for columns, values in walk:
        out[columns] = values
        times[columns] += 1
    assert np.all(times == 1)
    return out


# Reductions


def test_columns_are_kernel_after_kernel(X, K):
    bound = bound_to(KERNELS, X)
    assert (bound.n_rows, bound.n_columns) == (N_ROWS, N_COLUMNS)
    columns = np.array([0, 114, 30, 31, 30, 90, 22])
    np.testing.assert_array_equal(bound.split(columns), np.divmod(columns, N_ROWS))
    np.testing.assert_allclose(bound.columns(columns), K[:, columns], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(bound.columns(columns, ROWS), K[ROWS][:, columns], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(bound.columns(columns, slice(2, 9)), K[2:9, columns], rtol=1e-12, atol=1e-14)
    assert bound.columns(np.array([], dtype=int), ROWS).shape == (len(ROWS), 0)
    assert bound.columns(columns, np.array([], dtype=int)).shape == (0, len(columns))


@pytest.mark.parametrize("n_columns, n_blocks", [(1, N_COLUMNS), (40, None), (1000, len(KERNELS))])
@pytest.mark.parametrize("order", [None, [4, 0, 2, 1, 3]])
def test_scores_are_the_product_with_all_columns(n_columns, n_blocks, order, X, K):
    V = np.random.default_rng(1).normal(size=(len(ROWS), 2))
    with room_for(n_columns):
        blocks = list(bound_to(KERNELS, X).scores(V, ROWS, order))
    np.testing.assert_allclose(gathered(blocks), K[ROWS].T @ V, rtol=1e-10, atol=1e-12)
    assert len(blocks) == n_blocks or (n_blocks is None and len(KERNELS) < len(blocks) < N_COLUMNS)
    assert max(len(scores) for _, scores in blocks) <= n_columns
    visited = list(dict.fromkeys(columns.start // N_ROWS for columns, _ in blocks))
    assert visited == (order or [0, 1, 2, 3, 4])


@pytest.mark.parametrize("centered", [False, True])
@pytest.mark.parametrize("n_columns", [1, 40, 1000])
def test_column_sizes_are_weighted_moments(centered, n_columns, X, K):
    weight = np.random.default_rng(1).uniform(0.1, 3.0, size=len(ROWS))
    bound = bound_to(KERNELS, X)
    with room_for(n_columns):
        found = (bound.column_deviations if centered else bound.column_norms)(weight, ROWS)
    moved = K[ROWS] - (np.average(K[ROWS], axis=0, weights=weight) if centered else 0.0)
    np.testing.assert_allclose(found, np.sqrt(np.average(moved**2, axis=0, weights=weight)), rtol=1e-10)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale", [1e-150, 1e150])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_column_sizes_neither_overflow_nor_underflow(scale, dtype, X):
    weight = np.ones(len(ROWS))
    plain, scaled = (bound_to([kernel], X.astype(dtype)) for kernel in (Linear(), scale * Linear()))
    for size in ("column_norms", "column_deviations"):
        expected = scale * getattr(plain, size)(weight, ROWS)
        np.testing.assert_allclose(getattr(scaled, size)(weight, ROWS), expected, rtol=1e-5)


def constant(A, B):
    return np.full((A.shape[0], B.shape[0]), 0.1)


@pytest.mark.parametrize("seed", range(5))
def test_a_constant_column_does_not_deviate_and_a_zero_column_has_no_size(seed, X):
    weight = np.random.default_rng(seed).uniform(0.1, 3.0, size=len(ROWS))
    assert not bound_to([FromCallable(constant)], X).column_deviations(weight, ROWS).any()
    assert not bound_to([Linear()], np.zeros_like(X)).column_norms(weight, ROWS).any()


@pytest.mark.parametrize("kernel", [ManifoldKernel(RBF(), 7, ratio=100.0), DiffusionKernel(RBF())], ids=repr)
@pytest.mark.parametrize("seed", range(5))
def test_columns_do_not_deviate_at_equal_rows_whatever_rounding_leaves(seed, kernel, X):
    X[:10] = 0.3
    found = bound_to([kernel], X).column_deviations(
        np.random.default_rng(seed).uniform(0.1, 3.0, size=10), np.arange(10)
    )
    assert not found.any()


@pytest.mark.parametrize("n_columns", [1, 20, 100, 1000])
def test_quadratic_forms_inner_products_and_combinations_equal_the_dense_ones(n_columns, X, K):
    bound = bound_to(KERNELS, X)
    whole = [K[np.ix_(ROWS, p * N_ROWS + ROWS)] for p in range(len(KERNELS))]
    V = np.random.default_rng(1).normal(size=(len(ROWS), 2))
    weights = np.array([0.5, 0.0, 2.0, 1.0, 3.0])
    with room_for(n_columns):
        np.testing.assert_allclose(bound.quadratic_forms(V, ROWS), [np.trace(V.T @ Kp @ V) for Kp in whole], rtol=1e-10)
        inner = [[np.sum(Kp * Kq) for Kq in whole] for Kp in whole]
        np.testing.assert_allclose(bound.frobenius(ROWS), inner, rtol=1e-10, atol=1e-12)
    combined = sum(weight * Kp for weight, Kp in zip(weights, whole, strict=True))
    np.testing.assert_allclose(bound.combine(weights, ROWS, ROWS), combined, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(bound.combined(weights).block(ROWS, ROWS), combined, rtol=1e-10, atol=1e-12)


def reductions(bound, rows):
    """Everything that is computed from some rows of a library."""
    V = np.random.default_rng(1).normal(size=(len(np.arange(N_ROWS)[rows]), 2))
    yield gathered(bound.scores(V, rows), bound.n_columns)
    yield bound.column_norms(V[:, 0] ** 2, rows)
    yield bound.column_deviations(V[:, 0] ** 2, rows)
    yield bound.quadratic_forms(V, rows)
    yield bound.frobenius(rows)
    yield bound.columns(np.arange(0, bound.n_columns, 4), rows)


@pytest.mark.parametrize("same", [lambda rows: list(rows), lambda rows: np.isin(np.arange(N_ROWS), rows)])
def test_rows_may_be_a_list_or_a_mask(same, X):
    rows, bound = np.array([1, 2, 5, 11]), bound_to(KERNELS, X)
    with room_for(20):
        for found, expected in zip(reductions(bound, same(rows)), reductions(bound, rows), strict=True):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("container", [np.asfortranarray, sparse.csr_matrix, sparse.csr_array])
def test_every_reduction_takes_every_container(container, X):
    kernels = [Linear(), RBF("median"), OnColumns(Polynomial(), [2, 0]), Normalized(Sigmoid(0.5))]
    dense, other = bound_to(kernels, X), bound_to(kernels, container(X))
    for found, expected in zip(reductions(other, ROWS), reductions(dense, ROWS), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10)


def test_blocks_in_single_precision_are_reduced_in_double(X, monkeypatch):
    monkeypatch.setattr("kernelweave.kernels.bound_library.STRIP_BYTES", 8 * len(ROWS) * 3)  # several strips a block
    bound = bound_to([Linear(), Polynomial(), RBF(0.5), Sigmoid()], X.astype(np.float32))
    K = bound.columns(np.arange(bound.n_columns), ROWS)  # single-precision values in double
    V = np.random.default_rng(1).normal(size=(len(ROWS), 2))
    assert bound.kernels[0].block(ROWS, ROWS).dtype == np.float32
    # Rounding of the products to single precision would show at 1e-8.
    np.testing.assert_allclose(gathered(bound.scores(V, ROWS), bound.n_columns), K.T @ V, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(bound.column_norms(np.ones(7), ROWS), np.sqrt(np.mean(K**2, axis=0)), rtol=1e-12)
    whole = [K[:, p * N_ROWS + ROWS] for p in range(4)]
    # Linear kernels may round a block of columns otherwise than a block of other columns: 1e-6 in single precision.
    np.testing.assert_allclose(bound.quadratic_forms(V, ROWS), [np.trace(V.T @ Kp @ V) for Kp in whole], rtol=1e-5)


# Cache


class Counting(BoundKernel):
    """A bound kernel that counts how often it is evaluated."""

    def __init__(self, kernel):
        self.kernel, self.n_rows, self.n_calls = kernel, kernel.n_rows, 0

    def block(self, rows, cols):
        self.n_calls += 1
        return self.kernel.block(rows, cols)

    def against(self, X_new, cols=slice(None)):
        return self.kernel.against(X_new, cols)

    def diag(self):
        return self.kernel.diag()

    def diag_against(self, X_new):
        return self.kernel.diag_against(X_new)

    def restrict(self, rows):
        return self.kernel.restrict(rows)


def counted(X, cache_size=0.0, dtype=np.float64):
    bound = bound_to(KERNELS, X.astype(dtype), cache_size=cache_size)
    bound.kernels = tuple(Counting(kernel) for kernel in bound.kernels)
    return bound, lambda: sum(kernel.n_calls for kernel in bound.kernels)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("is_small", [True, False])
@pytest.mark.parametrize("centered", [False, True])
def test_columns_between_walks_are_computed_ones_and_come_from_the_cache(centered, is_small, dtype, X, monkeypatch):
    if not is_small:
        monkeypatch.setattr("kernelweave.kernels.bound_library.MAX_SMALL_BYTES", 0)
    X = X.astype(dtype)
    bound, n_calls = counted(X, cache_size=1.0, dtype=dtype)
    V = np.random.default_rng(1).normal(size=(len(ROWS), 2))
    columns = np.array([100, 3, 70, 25, 50, 22, 0, 113])  # of all kernels
    expected = bound.columns(columns, ROWS)
    expected = expected - expected.mean(axis=0) if centered else expected
    with room_for(40):
        gathered(bound.scores(V, ROWS, centered=centered))
        n_walked = n_calls()
        found = bound.walked_columns(columns, ROWS, centered=centered)
        n_computed = n_calls() - n_walked
        without_cache = counted(X, dtype=dtype)[0].walked_columns(columns, ROWS, centered=centered)
    np.testing.assert_allclose(found, without_cache, atol=1e-12)
    np.testing.assert_allclose(found, expected, atol=1e-5 if dtype == np.float32 else 1e-12)
    if dtype == np.float64:
        assert n_computed == (0 if is_small else len(KERNELS))


@pytest.mark.parametrize("part", ["none", "some", "all"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_cache_saves_evaluations_and_changes_no_bit(part, dtype, X):
    V = np.random.default_rng(1).normal(size=(len(ROWS), 2))
    without, n_blocks = counted(X, dtype=dtype)
    n_values = {"none": 0, "some": len(ROWS) * N_COLUMNS // 2, "all": len(ROWS) * N_COLUMNS}[part]
    with_cache, n_calls = counted(X, cache_size=8 * n_values / 2**20, dtype=dtype)
    with room_for(40):
        expected = gathered(without.scores(V, ROWS))
        np.testing.assert_array_equal(gathered(with_cache.scores(V, ROWS)), expected)
        first = n_calls()
        assert first == n_blocks() > len(KERNELS)
        np.testing.assert_array_equal(gathered(with_cache.scores(V, ROWS, [3, 1, 0, 2, 4])), expected)
        again = n_calls() - first
        assert {"none": again == first, "some": 0 < again < first, "all": again == 0}[part]
        norms = without.column_deviations(np.ones(len(ROWS)), ROWS)
        np.testing.assert_array_equal(with_cache.column_deviations(np.ones(len(ROWS)), ROWS), norms)


def test_the_cache_forgets_other_rows(X):
    bound, _ = counted(X, cache_size=1.0)
    plain, _ = counted(X)
    V = np.random.default_rng(1).normal(size=(len(ROWS), 2))
    for rows in (ROWS, ROWS[::-1], ROWS + 1 - 1, np.arange(7)):
        np.testing.assert_array_equal(gathered(bound.scores(V, rows)), gathered(plain.scores(V, rows)))


def test_the_working_memory_may_change_between_walks(X):
    bound, plain = counted(X, cache_size=1.0)[0], counted(X)[0]
    V = np.random.default_rng(1).normal(size=(len(ROWS), 2))
    for n_columns in (1000, 40, 50, 1000):
        with room_for(n_columns):
            np.testing.assert_array_equal(gathered(bound.scores(V, ROWS)), gathered(plain.scores(V, ROWS)))


# Values that are not finite


def divided_by_zero(A, B):
    return np.where(np.arange(B.shape[0]) == 0, np.inf, 1.0) * np.ones((A.shape[0], 1))


NOT_FINITE = [
    ("FromCallable(divided_by_zero)", FromCallable(divided_by_zero)),
    ("Polynomial(degree=300)", Polynomial(degree=300)),
    ("table", OnColumns(Precomputed(np.full((N_ROWS, N_ROWS), np.nan)), [3])),
]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name, kernel", NOT_FINITE, ids=[name for name, _ in NOT_FINITE])
@pytest.mark.parametrize(
    "reduction",
    [
        lambda bound: list(bound.scores(np.ones((7, 1)), ROWS)),
        lambda bound: bound.column_norms(np.ones(7), ROWS),
        lambda bound: bound.column_deviations(np.ones(7), ROWS),
        lambda bound: bound.quadratic_forms(np.ones((7, 1)), ROWS),
        lambda bound: bound.frobenius(ROWS),
    ],
    ids=["scores", "column_norms", "column_deviations", "quadratic_forms", "frobenius"],
)
def test_a_kernel_with_values_that_are_not_finite_is_named(name, kernel, reduction, X):
    X = np.column_stack([1e3 * X, np.arange(N_ROWS)])
    named = (name, kernel) if name == "table" else kernel
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the message is compared
        reduction(bound_to([Linear(), named, RBF()], X))
    assert str(caught.value).startswith(f"The kernel {name} gave values that are not finite (NaN or inf). Check")


# Columns at some centres


AT = np.array([0, 3, 7, 22])


@pytest.fixture(params=[False, True], ids=["whole blocks", "columns alone"])
def alone(request, monkeypatch):
    """Whether columns are computed alone, as in a library that is too large to read whole blocks of."""
    if request.param:
        monkeypatch.setattr("kernelweave.kernels.bound_library.MAX_SMALL_BYTES", 0)
    return request.param


def at_centers(walk):
    """Columns and scores of a walk, in the order they came."""
    columns, scores = zip(*walk, strict=True)
    return np.concatenate(columns), np.concatenate(scores)


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("centered", [False, True])
@pytest.mark.parametrize("n_columns", [1, 40, 1000])
def test_scores_at_some_centers_are_those_of_a_full_walk(n_columns, centered, X):
    V = np.random.default_rng(1).normal(size=(len(ROWS), 2))
    bound = bound_to(KERNELS, X)
    whole = gathered(bound.scores(V, ROWS, centered=centered))
    with room_for(n_columns):
        columns, scores = at_centers(bound.scores(V, ROWS, [3, 1], centers=AT, centered=centered))
    np.testing.assert_array_equal(columns, np.concatenate([3 * N_ROWS + AT, N_ROWS + AT]))
    # Blocks of other columns may be rounded otherwise: a few units in the last place of sums of seven terms.
    np.testing.assert_allclose(scores, whole[columns], rtol=1e-12, atol=1e-13)


@pytest.mark.usefixtures("alone")
def test_centers_in_two_parts_are_all_columns_once(X):
    V = np.random.default_rng(1).normal(size=(len(ROWS), 2))
    bound = bound_to(KERNELS, X)
    parts = [bound.scores(V, ROWS, centers=part) for part in (AT, np.setdiff1d(np.arange(N_ROWS), AT))]
    both = gathered(block for walk in parts for block in walk)
    np.testing.assert_allclose(both, gathered(bound.scores(V, ROWS)), rtol=1e-12, atol=1e-13)


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_filled_cache_changes_no_bit_of_the_scores_at_centers(dtype, X):
    V = np.random.default_rng(1).normal(size=(len(ROWS), 2))
    with_cache, plain = counted(X, cache_size=1.0, dtype=dtype)[0], counted(X, dtype=dtype)[0]
    list(with_cache.scores(V, ROWS))
    for centered in (False, True):
        found = at_centers(with_cache.scores(V, ROWS, centers=AT, centered=centered))
        expected = at_centers(plain.scores(V, ROWS, centers=AT, centered=centered))
        np.testing.assert_array_equal(found[1], expected[1])


def test_centering_changes_nothing_where_the_vectors_sum_to_zero(X):
    V = np.random.default_rng(1).normal(size=(len(ROWS), 2))
    V -= V.mean(axis=0)
    bound = bound_to(KERNELS, X)
    centered, plain = (gathered(bound.scores(V, ROWS, centered=centered)) for centered in (True, False))
    np.testing.assert_allclose(centered, plain, rtol=1e-10, atol=1e-11)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_kernel_that_is_not_finite_at_a_center_is_named(X):
    X = 1e3 * X
    walk = bound_to([Linear(), Polynomial(degree=300)], X).scores(np.ones((7, 1)), ROWS, centers=AT)
    with pytest.raises(ValueError, match=r"The kernel Polynomial\(degree=300\) gave values that are not finite"):
        list(walk)


def test_columns_alone_cost_only_themselves(alone, X):
    bound, n_calls = counted(X)
    V = np.ones((len(ROWS), 1))
    with room_for(8):  # blocks of at most one column
        list(bound.scores(V, ROWS, [0], centers=AT))
    assert n_calls() == (len(AT) if alone else N_ROWS)


def test_a_library_is_small_by_the_bytes_of_its_columns(X, monkeypatch):
    bound = bound_to(KERNELS, X)
    monkeypatch.setattr("kernelweave.kernels.bound_library.MAX_SMALL_BYTES", 8 * 7 * N_COLUMNS)
    assert bound.is_small(7)
    assert not bound.is_small(8)


def test_the_order_of_the_library_is_known_to_the_bound_one(X):
    library = KernelLibrary([RBF(), Linear(), Sigmoid()], priority=["Sigmoid()"])
    assert library.bind(X, np.random.default_rng(0)).order == library.order == (2, 1, 0)

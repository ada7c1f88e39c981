import pickle

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelweave import (
    RBF,
    FromCallable,
    KernelLibrary,
    Linear,
    Normalized,
    OnColumns,
    Polynomial,
    Precomputed,
    Preprocessed,
    Sigmoid,
    rbf_family,
)
from kernelweave.kernels.base import BoundKernel
from kernelweave.kernels.library import Entry, as_library, default_library


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


# Recipes


def test_a_kernel_without_a_name_is_named_by_its_repr_and_names_are_unique():
    library = KernelLibrary([Linear(), ("narrow", RBF(multiple=4.0)), Linear(), RBF(), Linear()])
    assert library.names == ("Linear()", "narrow", "Linear() #2", "RBF()", "Linear() #3")


@pytest.mark.parametrize(
    "kernels, names",
    [
        ([Linear(), ("Linear()", RBF())], ("Linear() #2", "Linear()")),
        ([Linear(), ("Linear() #2", RBF()), Linear()], ("Linear()", "Linear() #2", "Linear() #3")),
    ],
)
def test_a_given_name_is_never_changed(kernels, names):
    assert KernelLibrary(kernels).names == names


@pytest.mark.parametrize(
    "kernels",
    [
        [("a", Linear()), ("b", RBF())],
        {"a": Linear(), "b": RBF()},
        (("a", Linear()), {"b": RBF()}),
        [[("a", Linear())], [[("b", RBF())]]],
        [KernelLibrary([("a", Linear())]), ("b", RBF())],
    ],
)
def test_pairs_mappings_and_nested_lists_say_the_same(kernels):
    assert KernelLibrary(kernels) == KernelLibrary([("a", Linear()), ("b", RBF())])


def test_nested_sequences_are_flattened_in_order():
    library = KernelLibrary([Linear(), rbf_family(), KernelLibrary([Linear()])])
    assert [entry.kernel for entry in library.entries] == [Linear(), *rbf_family(), Linear()]
    assert len(library) == 6
    assert library.names[-1] == "Linear() #2"


@pytest.mark.parametrize("empty", [[], {}, (), [[], ()]])
def test_an_empty_library_is_refused(empty):
    with pytest.raises(ValueError, match=r"The kernel library is empty\. Give at least one kernel, or None for"):
        KernelLibrary(empty)


@pytest.mark.parametrize("wrong", ["rbf", 3, None, RBF, np.eye(2), [Linear(), "rbf"], [np.dot], [("a",)]])
def test_what_is_no_kernel_is_refused_with_the_remedy(wrong):
    with pytest.raises(TypeError, match=r"(?s)got .* of type .* Wrap a function as FromCallable\(f\), a matrix as"):
        KernelLibrary(wrong)


@pytest.mark.parametrize("wrong", [{"a": "rbf"}, [("a", None)]])
def test_a_named_entry_that_is_no_kernel_is_named(wrong):
    with pytest.raises(TypeError, match=r"The library's entry 'a' is .*; expected a kernel"):
        KernelLibrary(wrong)


@pytest.mark.parametrize("names", [["a", "a"], ["a__b", "c"], ["kernels", "c"]])
def test_a_name_that_parameters_could_not_be_reached_by_is_refused(names):
    with pytest.raises(ValueError, match="Kernel names must be unique, without '__' and other than 'kernels'; got"):
        KernelLibrary([(name, Linear()) for name in names])


def test_parameters_of_kernels_are_reached_by_name():
    library = KernelLibrary([("narrow", Normalized(RBF(multiple=4.0))), Linear()])
    assert library.get_params(deep=False) == {"kernels": [(entry.name, entry.kernel) for entry in library.entries]}
    assert library.get_params()["narrow__kernel__multiple"] == 4.0
    assert library.replace(narrow__kernel__multiple=8.0).entries[0] == Entry("narrow", Normalized(RBF(multiple=8.0)))
    assert library.replace(narrow=Linear()).names == ("narrow", "Linear()")
    assert library.replace(**library.get_params(deep=False)) == library
    assert library.replace(kernels=[("a", RBF())], a__gamma=2.0) == KernelLibrary([("a", RBF(2.0))])
    assert library.get_params()["narrow__kernel__multiple"] == 4.0  # the library itself never changes
    with pytest.raises(ValueError, match=r"The library has no kernel 'wide'; it has 'narrow', 'Linear\(\)'"):
        library.replace(wide__gamma=1.0)


def test_a_name_taken_from_the_repr_follows_the_kernel():
    library = KernelLibrary([RBF(), RBF(), ("mine", RBF())])
    changed = library.replace(**{"RBF() #2__gamma": 2.0, "mine__gamma": 2.0})
    assert changed.names == ("RBF()", "RBF(gamma=2.0)", "mine")


@pytest.mark.parametrize(
    "library",
    [
        default_library(),
        KernelLibrary([Linear(), Linear(), ("narrow", RBF(multiple=4.0))]),
        KernelLibrary([2.0 * (Linear() + RBF()), OnColumns(RBF(), "a*", missing="center", source="A")]),
        KernelLibrary([Preprocessed(make_pipeline(StandardScaler(), RBFSampler(n_components=7)), Linear() * RBF())]),
    ],
)
def test_repr_evaluates_to_an_equal_library(library):
    from sklearn.pipeline import Pipeline  # noqa: F401 - named by the repr

    again = eval(repr(library))
    assert again == library
    assert hash(again) == hash(library)
    assert not any("\n" in name for name in library.names)


def test_the_default_library_is_linear_quadratic_and_a_family_of_rbf_kernels():
    kernels = [entry.kernel for entry in default_library().entries]
    assert kernels == [Linear(), Polynomial(), *rbf_family()]
    assert as_library(None) == default_library()


def test_whatever_a_user_passes_becomes_a_library():
    library = KernelLibrary([RBF()])
    assert as_library(library) is library
    assert as_library(RBF()) == as_library([RBF()]) == library
    with pytest.raises(TypeError, match="A kernel library holds kernels such as"):
        as_library("rbf")


def test_clone_shares_the_library_and_pickling_keeps_it():
    library = default_library()
    assert clone(library) is library
    assert pickle.loads(pickle.dumps(library)) == library


def test_missing_values_are_allowed_if_one_kernel_gives_them_a_meaning():
    center = OnColumns(RBF(), [0], missing="center")
    assert KernelLibrary([Linear(), 2.0 * Normalized(center)]).allows_missing
    assert not KernelLibrary([Linear(), OnColumns(RBF(), [0])]).allows_missing


# Randomness


RANDOM = Preprocessed(RBFSampler(n_components=3), Linear())


def test_equal_seeds_give_equal_bits(X):
    one, two = (bound_to([Linear(), RANDOM, RANDOM + RANDOM], X, seed=5) for _ in range(2))
    np.testing.assert_array_equal(one.columns(np.arange(3 * N_ROWS)), two.columns(np.arange(3 * N_ROWS)))


def test_each_kernel_draws_for_itself(X):
    bound = bound_to([RANDOM, RANDOM], X)
    first, second = (kernel.block(slice(None), slice(None)) for kernel in bound.kernels)
    assert not np.allclose(first, second)
    beside = bound_to([Linear(), RANDOM, RANDOM], X)  # other neighbours, which draw more or less, do not disturb it
    np.testing.assert_array_equal(beside.columns(N_ROWS + np.arange(N_ROWS)), second)


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
    monkeypatch.setattr("kernelweave.kernels.library.STRIP_BYTES", 8 * len(ROWS) * 3)  # several strips a block
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

import pickle
import re
from functools import partial

import numpy as np
import pytest
from checks.rounding import assert_same_but_for_rounding
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel, sigmoid_kernel
from sklearn.utils.extmath import safe_sparse_dot

from kernelweave import (
    RBF,
    FromCallable,
    KernelLibrary,
    Linear,
    OnColumns,
    Polynomial,
    Precomputed,
    Sigmoid,
    rbf_family,
)

WHOLE = slice(None)


def inner_plus_one(A, B):
    return safe_sparse_dot(A, B.T, dense_output=True) + 1.0


# Our recipe, and the function of scikit-learn that it must equal.
FORMULAS = [
    (Linear(), linear_kernel),
    (Polynomial(), partial(polynomial_kernel, degree=2, gamma=1.0, coef0=1.0)),
    (Polynomial(1, coef0=0.0), linear_kernel),
    (Polynomial(5, gamma=0.5, coef0=2.0), partial(polynomial_kernel, degree=5, gamma=0.5, coef0=2.0)),
    (RBF(0.3), partial(rbf_kernel, gamma=0.3)),
    (RBF(0.3, multiple=4.0), partial(rbf_kernel, gamma=1.2)),
    (Sigmoid(), partial(sigmoid_kernel, gamma=1.0, coef0=0.0)),
    (Sigmoid(0.1, coef0=-0.5), partial(sigmoid_kernel, gamma=0.1, coef0=-0.5)),
    (FromCallable(inner_plus_one), partial(polynomial_kernel, degree=1, gamma=1.0, coef0=1.0)),
]


def read_only(X):
    X = X.copy()
    X.setflags(write=False)
    return X


def every_other_column(X):
    return np.repeat(X, 2, axis=1)[:, ::2]


CONTAINERS = [
    np.asarray,
    np.asfortranarray,
    every_other_column,
    read_only,
    sparse.csr_matrix,
    sparse.csr_array,
    sparse.coo_array,
    sparse.csc_matrix,
]


@pytest.fixture(name="X")
def sample():
    X = np.random.default_rng(0).normal(size=(30, 4))
    X[np.abs(X) < 0.5] = 0.0
    return X


@pytest.fixture(name="X_new")
def new_sample():
    return np.random.default_rng(1).normal(size=(7, 4))


def bound_to(kernel, X):
    return kernel.bind(X, np.random.default_rng(0))


every_formula = pytest.mark.parametrize(
    "kernel, expected", FORMULAS, ids=lambda value: repr(value) if hasattr(value, "bind") else ""
)


@every_formula
@pytest.mark.parametrize("container", CONTAINERS)
def test_a_formula_equals_that_of_scikit_learn_in_every_container(kernel, expected, container, X, X_new):
    bound = bound_to(kernel, container(X))
    rows, cols = np.array([3, 0, 29]), np.array([1, 3, 20, 20])
    np.testing.assert_allclose(bound.block(WHOLE, WHOLE), expected(X, X), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(bound.block(rows, cols), expected(X[rows], X[cols]), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(bound.against(container(X_new), cols), expected(X_new, X[cols]), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(bound.diag(), np.diag(expected(X, X)), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(
        bound.diag_against(container(X_new)), np.diag(expected(X_new, X_new)), rtol=1e-10, atol=1e-12
    )


@every_formula
@pytest.mark.parametrize("bound_in, new_in", [(np.asarray, sparse.csr_array), (sparse.csr_matrix, np.asarray)])
def test_new_rows_may_come_in_another_container(kernel, expected, bound_in, new_in, X, X_new):
    found = bound_to(kernel, bound_in(X)).against(new_in(X_new))
    assert isinstance(found, np.ndarray)
    np.testing.assert_allclose(found, expected(X_new, X), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("degree", range(1, 9))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_polynomial_of_any_degree_equals_numpy_power(degree, dtype, X, X_new):
    kernel = Polynomial(degree, gamma=0.7, coef0=-0.3)
    bound = bound_to(kernel, X.astype(dtype))
    inner = np.asarray(0.7 * X_new @ X.T - 0.3)
    rtol = 2e-6 * degree if dtype == np.float32 else 1e-14 * (degree + 4)  # rounding of the base, times the degree
    atol = np.abs(inner).max() ** degree * rtol  # inner products near zero are sums that cancel
    np.testing.assert_allclose(bound.against(X_new.astype(dtype)), np.power(inner, degree), rtol=rtol, atol=atol)
    own = np.power(0.7 * (X**2).sum(axis=1) - 0.3, degree)
    np.testing.assert_allclose(bound.diag(), own, rtol=rtol, atol=own.max() * rtol)
    before = X_new.copy()
    bound.against(X_new)
    np.testing.assert_array_equal(X_new, before)  # powers are taken in place, but never in the caller's


@every_formula
@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.uint8, bool])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_whole_numbers_are_numbers(kernel, expected, dtype, container):
    X = np.random.default_rng(0).integers(0, 100, size=(6, 3)).astype(dtype)
    bound = bound_to(kernel, container(X))
    expected = expected(X.astype(float), X.astype(float))
    np.testing.assert_allclose(bound.block(WHOLE, WHOLE), expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(bound.against(container(X)), expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(bound.diag(), np.diag(expected), rtol=1e-10, atol=1e-12)


@every_formula
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_single_precision_is_as_good_as_single_precision(kernel, expected, container, X, X_new):
    single = container(X.astype(np.float32))
    found = bound_to(kernel, single).against(container(X_new.astype(np.float32)))
    expected = expected(X_new, X)
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6 * np.abs(expected).max())


@every_formula
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix, sparse.csr_array])
def test_no_rows_give_an_empty_block(kernel, expected, container, X):
    bound, none = bound_to(kernel, container(X)), np.array([], dtype=int)
    assert bound.block(none, WHOLE).shape == (0, 30)
    assert bound.block(np.arange(3), none).shape == (3, 0)
    assert bound.against(container(X[:0])).shape == (0, 30)
    assert bound.restrict(none).against(container(X)).shape == (30, 0)


@every_formula
def test_one_row_is_a_sample(kernel, expected, X):
    np.testing.assert_allclose(
        bound_to(kernel, X[:1]).block(WHOLE, WHOLE), expected(X[:1], X[:1]), rtol=1e-10, atol=1e-12
    )


@every_formula
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_missing_values_are_refused_with_the_remedy(kernel, expected, container, X):
    gap = X.copy()
    gap[2, 1] = np.nan
    with pytest.raises(ValueError, match=r"found missing values \(NaN\) in X. Impute them first"):
        bound_to(kernel, container(gap))
    bound = bound_to(kernel, container(X))
    for evaluate in (bound.against, bound.diag_against):
        with pytest.raises(ValueError, match="found missing values"):
            evaluate(container(gap))


@every_formula
def test_a_bound_kernel_survives_pickling(kernel, expected, X, X_new):
    bound = bound_to(kernel, X)
    assert_same_but_for_rounding(pickle.loads(pickle.dumps(bound)).against(X_new), bound.against(X_new))


@pytest.mark.parametrize("kernel", [Linear(), Polynomial(), RBF(), RBF(0.3), Sigmoid()], ids=repr)
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix, sparse.csr_array])
def test_float32_stays_float32(kernel, container, X):
    bound = bound_to(kernel, container(X.astype(np.float32)))
    assert bound.block(WHOLE, WHOLE).dtype == np.float32
    assert bound.against(container(X.astype(np.float32))).dtype == np.float32
    assert bound.diag().dtype == np.float32


@pytest.mark.parametrize("size", [1e-5, 1e4])
def test_high_powers_do_not_leave_the_range_of_single_precision(size, X):
    found = bound_to(Polynomial(5, coef0=0.0), (size * X).astype(np.float32)).block(WHOLE, WHOLE)
    expected = polynomial_kernel(X, degree=5, gamma=1.0, coef0=0.0) * size**10
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * expected.max())


@pytest.mark.parametrize("move", ["far from the origin", "two far clusters", "one outlier"])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_rbf_in_single_precision_survives_data(move, container, X):
    if move == "far from the origin":
        X = X + 1000.0
    elif move == "two far clusters":
        X = X + np.where(np.arange(30) < 15, -1000.0, 1000.0)[:, None]
    else:
        X[0] = 3e4
    X = X.astype(np.float32)
    found = bound_to(RBF(0.5), container(X)).block(WHOLE, WHOLE)
    assert found.dtype == np.float32
    # Single precision places a row at 1000 to 6e-5, and squared distances below 100 to 1e-5 of themselves.
    np.testing.assert_allclose(found, rbf_kernel(X.astype(float), gamma=0.5), rtol=0, atol=2e-5)


@pytest.mark.parametrize("multiple", [0.5, 1.0, 4.0])
def test_a_reference_bandwidth_is_fixed_by_the_bound_rows(multiple, X, X_new):
    gamma = multiple / cdist(X, X, "sqeuclidean").mean()
    found = bound_to(RBF("mean", multiple), X).against(X_new)
    np.testing.assert_allclose(found, rbf_kernel(X_new, X, gamma=gamma), rtol=1e-10, atol=1e-12)


def test_rbf_family_has_one_kernel_for_each_multiple():
    assert rbf_family((0.5, 2), reference="median") == (RBF("median", 0.5), RBF("median", 2.0))
    assert rbf_family((1.0, 3.0), reference=0.1) == (RBF(0.1), RBF(0.1, 3.0))
    assert len({repr(kernel) for kernel in rbf_family()}) == 4


@pytest.mark.parametrize(
    "make, message",
    [
        (
            lambda: RBF("mode"),
            'RBF got gamma=\'mode\'; expected a positive finite number, "mean", "median" or "scale".',
        ),
        (lambda: RBF(0.0), "RBF got gamma=0.0; expected a positive finite number,"),
        (lambda: RBF(-1), "RBF got gamma=-1; expected a positive finite number,"),
        (lambda: RBF(np.nan), "RBF got gamma=nan; expected a positive finite number,"),
        (lambda: RBF(None), "RBF got gamma=None; expected a positive finite number,"),
        (lambda: RBF(True), "RBF got gamma=True; expected a positive finite number,"),
        (lambda: RBF(multiple=0.0), "RBF got multiple=0.0; expected a positive finite number."),
        (lambda: rbf_family((1.0, -1.0)), "RBF got multiple=-1.0; expected a positive finite number."),
        (lambda: Polynomial(0), "Polynomial got degree=0; expected a whole number, 1 or more."),
        (lambda: Polynomial(2.5), "Polynomial got degree=2.5; expected a whole number, 1 or more."),
        (lambda: Polynomial(True), "Polynomial got degree=True; expected a whole number, 1 or more."),
        (lambda: Polynomial(gamma=0), "Polynomial got gamma=0; expected a positive finite number."),
        (lambda: Polynomial(coef0=np.inf), "Polynomial got coef0=inf; expected a finite number."),
        (lambda: Sigmoid(gamma="scale"), "Sigmoid got gamma='scale'; expected a finite number."),
        (lambda: Sigmoid(coef0=np.nan), "Sigmoid got coef0=nan; expected a finite number."),
    ],
)
def test_a_wrong_parameter_is_refused_in_one_sentence(make, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        make()


def skewed(A, B):
    return A @ np.triu(np.ones((4, 4))) @ B.T


def test_a_function_need_not_be_symmetric(X, X_new):
    bound = bound_to(FromCallable(skewed), X)
    np.testing.assert_allclose(bound.block(np.arange(3), np.arange(5)), skewed(X[:3], X[:5]), rtol=1e-12)
    np.testing.assert_allclose(bound.against(X_new), skewed(X_new, X), rtol=1e-12)


def test_a_function_may_return_a_sparse_matrix(X):
    found = bound_to(FromCallable(lambda A, B: sparse.csr_array(A @ B.T)), X).block(WHOLE, WHOLE)
    np.testing.assert_allclose(found, X @ X.T, rtol=1e-12)


@pytest.mark.parametrize("wrong", [lambda A, B: 1.0, lambda A, B: A.sum(axis=1), lambda A, B: np.ones((2, 9))])
def test_a_function_that_returns_the_wrong_shape_is_named(wrong, X):
    with pytest.raises(ValueError, match=r"<lambda> returned shape \(.*\) for 3 and 5 rows; expected \(3, 5\)"):
        bound_to(FromCallable(wrong), X).block(np.arange(3), np.arange(5))


def test_what_is_no_function_is_refused():
    with pytest.raises(TypeError, match=r"FromCallable takes a function f\(A, B\); got 'rbf'"):
        FromCallable("rbf")
    with pytest.raises(TypeError, match=r"FromCallable takes a function f\(A, B\); got RBF\(\)"):
        FromCallable(RBF())  # each block would have a width of its own


def holes(A, B):
    return np.full((A.shape[0], B.shape[0]), np.nan)


def test_a_function_that_returns_nan_is_named_by_the_library(X):
    bound = KernelLibrary([Linear(), FromCallable(holes)]).bind(X, np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"The kernel FromCallable\(holes\) gave values that are not finite"):
        list(bound.scores(np.ones((3, 1)), np.arange(3)))


@pytest.fixture(name="K")
def matrix():
    Z = np.random.default_rng(2).normal(size=(12, 3))
    return Z @ Z[:9].T


def row_numbers(*numbers):
    return np.array(numbers)[:, None]


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array, partial(np.asarray, dtype=float)])
def test_a_matrix_is_looked_up_by_row_number(container, K):
    bound = bound_to(Precomputed(K), container(row_numbers(5, 0, 7, 1)))
    np.testing.assert_array_equal(bound.block(np.array([0, 3]), WHOLE), K[[5, 1]][:, [5, 0, 7, 1]])
    np.testing.assert_array_equal(bound.diag(), K[[5, 0, 7, 1], [5, 0, 7, 1]])
    np.testing.assert_array_equal(
        bound.restrict(np.array([2])).against(container(row_numbers(3, 4))), K[[3, 4]][:, [7]]
    )


def test_rows_beyond_the_columns_are_new_samples(K):
    bound = bound_to(Precomputed(K), row_numbers(*range(9)))
    np.testing.assert_array_equal(bound.against(row_numbers(9, 11)), K[[9, 11]])
    with pytest.raises(ValueError, match="takes whole numbers from 0 to 8 here"):
        bound_to(Precomputed(K), row_numbers(0, 9)).block(WHOLE, WHOLE)
    with pytest.raises(ValueError, match="takes whole numbers from 0 to 8 here"):
        bound.diag_against(row_numbers(9))


@pytest.mark.parametrize(
    "dtype, expected", [(np.float32, np.float32), (np.float64, np.float64), (np.int32, np.float64)]
)
def test_values_of_a_matrix_are_floats(dtype, expected, K):
    block = bound_to(Precomputed(K.astype(dtype)), row_numbers(0, 1)).block(WHOLE, WHOLE)
    assert block.dtype == expected
    np.testing.assert_array_equal(block, K.astype(dtype)[:2, :2])


def test_a_memory_map_is_neither_read_whole_nor_copied(tmp_path, K):
    np.save(tmp_path / "K.npy", K)
    mapped = np.load(tmp_path / "K.npy", mmap_mode="r")
    kernel = Precomputed(mapped)
    bound = bound_to(clone(kernel), row_numbers(*range(9)))
    assert bound.formula.K is mapped
    block = bound.block(np.arange(2), np.arange(9))
    assert not isinstance(block, np.memmap)
    np.testing.assert_array_equal(block, K[:2])


def test_clone_and_library_share_the_matrix(K):
    kernel = Precomputed(K)
    assert clone(kernel).K is K
    assert clone(KernelLibrary([kernel])).entries[0].kernel.K is K
    assert clone(OnColumns(kernel, [0])).kernel.K is K


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("wrong", [[0, 12], [-1, 0], [0.5, 1.0], [0.0, np.inf]])
def test_a_wrong_row_number_is_refused(wrong, K):
    bound = bound_to(Precomputed(K), row_numbers(*range(9)))
    with pytest.raises(ValueError, match=r"takes whole numbers from 0 to 11 here\. X holds row numbers, not features"):
        bound.against(row_numbers(*wrong))


def test_several_columns_are_no_row_numbers(K):
    with pytest.raises(ValueError, match=r"needs X to be one column of row numbers; got 2 columns. Pass np.arange"):
        bound_to(Precomputed(K), np.zeros((3, 2))).block(WHOLE, WHOLE)


@pytest.mark.parametrize("wrong", [np.ones(3), np.ones((2, 3)), np.array([["a"]]), [[1 + 1j]], sparse.eye_array(3)])
def test_what_is_no_kernel_matrix_is_refused(wrong):
    with pytest.raises(ValueError, match="takes a numeric matrix with at least as many rows as columns; got shape"):
        Precomputed(wrong)


def test_a_matrix_stands_beside_other_features(K, X):
    beside = np.column_stack([X[:9], np.arange(9)])
    library = KernelLibrary([OnColumns(RBF(0.5), slice(0, 4)), OnColumns(Precomputed(K), [-1])])
    bound = library.bind(beside, np.random.default_rng(0))
    found = bound.columns(np.arange(18))
    np.testing.assert_allclose(found, np.hstack([rbf_kernel(X[:9], gamma=0.5), K[:9]]), rtol=1e-12)


def test_a_matrix_is_shown_by_its_shape(K):
    assert repr(Precomputed(K)) == "Precomputed(<12 x 9 matrix>)"


def test_the_linear_kernel_of_few_columns_has_its_rows_as_factor(X):
    assert bound_to(Linear(), X).factor() is X
    assert bound_to(Linear(), X[:8]).factor() is None  # no smaller than the kernel
    assert bound_to(Linear(), sparse.csr_array(X)).factor() is None
    assert all(bound_to(kernel, X).factor() is None for kernel, _ in FORMULAS if kernel != Linear())


@pytest.mark.parametrize("container", CONTAINERS)
def test_logarithms_of_the_gaussian_kernel_are_those_of_its_values(container, X, X_new):
    bound, some = bound_to(RBF(0.5), container(X)), np.array([3, 0, 29])
    found = bound.log_against(container(X_new))
    np.testing.assert_allclose(found, np.log(rbf_kernel(X_new, X, gamma=0.5)), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(bound.log_against(container(X_new), some), found[:, some], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(bound.restrict(some).log_against(container(X_new)), found[:, some], rtol=1e-10)


def test_logarithms_do_not_underflow(X, X_new):
    bound = bound_to(RBF(1e6), X)
    assert not bound.against(1e3 + X_new).any()
    np.testing.assert_allclose(bound.log_against(1e3 + X_new), -1e6 * cdist(1e3 + X_new, X, "sqeuclidean"), rtol=1e-9)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dtype, gamma", [(np.float32, 1e90), (np.float64, 1e306)])
def test_logarithms_that_a_precision_does_not_hold_are_its_smallest_number(dtype, gamma, X):
    rows = (1e3 * X).astype(dtype)
    bound = bound_to(RBF(gamma), rows)
    assert not bound.block(WHOLE, WHOLE)[cdist(X, X) > 0.0].any()
    found = bound.log_against(rows)
    assert np.isfinite(found).all()
    assert found.min() == np.finfo(dtype).min


@every_formula
def test_only_the_gaussian_kernel_knows_its_logarithms(kernel, expected, X, X_new):
    assert (bound_to(kernel, X).log_against(X_new) is not None) == isinstance(kernel, RBF)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale", [1e-30, 1e-20, 1e15, 1e19, 1e30])
def test_single_precision_has_the_gaussian_kernel_in_any_unit(scale, X):
    expected = bound_to(RBF(), X).block(WHOLE, WHOLE)
    found = bound_to(RBF(), (X * scale).astype(np.float32)).block(WHOLE, WHOLE)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("dtype, scale", [(np.float64, 1e-200), (np.float64, 1e-150), (np.float32, 1e-20)])
def test_products_that_vanish_are_no_linear_kernel(container, dtype, scale, X):
    with pytest.raises(ValueError, match=r"values up to .* their products are too small .* Rescale the features"):
        bound_to(Linear(), container((X * scale).astype(dtype)))
    for equal in (0.0, scale):  # constant features are no information in any unit
        assert bound_to(Linear(), container(np.full((4, 2), equal, dtype=dtype))).block(WHOLE, WHOLE).shape == (4, 4)

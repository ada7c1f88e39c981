import pickle

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from kernelweave import RBF, FromCallable, Linear, ManifoldKernel, OnColumns, Preprocessed, Sigmoid
from kernelweave.kernels.algebra import Product, Scaled, Sum
from kernelweave.kernels.expansion import CombinedKernel

WHOLE = slice(None)


def product_of_sums(A, B):
    return np.outer(A.sum(axis=1), B.sum(axis=1))


@pytest.fixture(name="X")
def sample():
    return np.random.default_rng(0).normal(size=(30, 4))


def bound_to(kernel, X):
    return kernel.bind(X, np.random.default_rng(0))


def test_sum_product_and_multiple_are_what_they_say(X):
    a, b = bound_to(Linear(), X), bound_to(RBF(0.3), X)
    A, B = (bound.block(slice(None), slice(None)) for bound in (a, b))
    for kernel, expected in [
        (Linear() + RBF(0.3), A + B),
        (Linear() * RBF(0.3), A * B),
        (3.0 * Linear(), 3 * A),
        (2.0 * (Linear() + 0.5 * RBF(0.3)), 2 * A + B),
    ]:
        np.testing.assert_allclose(bound_to(kernel, X).block(slice(None), slice(None)), expected, rtol=1e-12)


def test_sums_flatten():
    assert (Linear() + RBF()) + Sigmoid() == Linear() + (RBF() + Sigmoid())
    assert isinstance(Linear() + RBF(), Sum)
    assert isinstance(Linear() * RBF(), Product)
    assert isinstance(2 * Linear(), Scaled)


def test_the_sum_of_a_list_is_the_sum_of_its_kernels():
    assert sum([Linear(), 2.0 * RBF(), Sigmoid()]) == Linear() + 2.0 * RBF() + Sigmoid()
    assert sum([RBF()]) == RBF()
    assert sum([Linear(), RBF()], start=Sigmoid()) == Sigmoid() + Linear() + RBF()
    assert np.float64(0.0) + RBF() == RBF()


@pytest.mark.parametrize("other", [1, -1.0, "", None, np.zeros(2), np.nan])
def test_only_nothing_may_be_added_from_the_left(other):
    with pytest.raises(TypeError):
        other + Linear()


@pytest.mark.parametrize("factor", [0.0, -1.0, np.nan, np.inf])
def test_only_positive_multiples_are_kernels(factor):
    with pytest.raises(ValueError, match="only a positive finite number"):
        factor * Linear()


@pytest.mark.parametrize("other", [1.0, "x", None])
def test_adding_something_else_is_a_type_error(other):
    with pytest.raises(TypeError):
        Linear() + other


def test_terms_can_be_replaced_as_a_whole_and_stay_flat():
    kernel = Linear() + RBF()
    assert kernel.replace(terms=(RBF(), Sigmoid())) == RBF() + Sigmoid()
    assert kernel.replace(terms=(RBF(), Sigmoid()), term0__gamma=2.0) == RBF(2.0) + Sigmoid()
    assert kernel.replace(term0=Linear() + Sigmoid()) == Linear() + Sigmoid() + RBF()


def test_an_array_times_a_recipe_is_a_type_error():
    with pytest.raises(TypeError):
        np.ones(2) * Linear()


@pytest.mark.parametrize("factor", [1e-50, 1e-20, 1e20, 1e50])
def test_a_factor_beyond_single_precision_is_kept(factor, X):
    bound = bound_to(factor * Linear(), X.astype(np.float32))
    np.testing.assert_allclose(bound.block(slice(0, 5), slice(None)), factor * (X[:5] @ X.T), rtol=1e-4, atol=factor)


@pytest.mark.parametrize("kernel", [Linear() + FromCallable(product_of_sums), FromCallable(product_of_sums) + Linear()])
def test_a_sum_of_single_and_double_precision_is_double(kernel, X):
    block = bound_to(kernel, X.astype(np.float32)).block(slice(None), slice(None))
    assert block.dtype == np.float64


def test_compact_kernels_have_the_columns_of_some_rows_in_a_part_of_the_memory():
    X = np.random.default_rng(0).normal(size=(80, 4))
    new, rows = np.random.default_rng(1).normal(size=(9, 4)), np.arange(3, 80, 9)
    recipes = [ManifoldKernel(RBF(), 5, ratio=r) for r in (1.0, 10.0)]
    terms = ManifoldKernel.bind_together(recipes, X, [np.random.default_rng(0)] * 2)
    whole = CombinedKernel([*terms, RBF().bind(X, np.random.default_rng(0))], np.array([0.5, 2.0, 1.0]))
    compact = whole.compact(rows)
    np.testing.assert_allclose(compact.block(WHOLE, WHOLE), whole.block(rows, rows), rtol=1e-9, atol=1e-12)
    # the coefficients of the base are large where its rows are alike, and cancel: as for features of new rows
    np.testing.assert_allclose(compact.against(new), whole.against(new)[:, rows], rtol=0, atol=1e-6)
    some = np.array([2, 0])
    np.testing.assert_allclose(compact.restrict(some).against(new), compact.against(new)[:, some], rtol=1e-12)
    np.testing.assert_allclose(compact.diag(), compact.block(WHOLE, WHOLE).diagonal(), rtol=1e-12)
    assert len(compact.terms) == 2  # deformations of one base are one
    assert len(pickle.dumps(compact)) < len(pickle.dumps(whole.restrict(rows))) / 3
    with pytest.raises(NotImplementedError, match="not its values at new rows"):
        compact.terms[1].diag_against(new)
    coef = np.random.default_rng(2).normal(size=(len(rows), 2))
    base, folded = compact.terms[1].fold(coef)
    np.testing.assert_allclose(base.against(new) @ folded, compact.terms[1].against(new) @ coef, rtol=1e-7, atol=1e-9)
    assert terms[0].compact(np.arange(70)).n_rows == 70  # of most rows nothing is gained


def test_wrapped_kernels_are_compact_where_they_are():
    X = np.random.default_rng(0).normal(size=(60, 4))
    new, rows = np.random.default_rng(1).normal(size=(5, 4)), np.arange(0, 60, 10)
    for recipe in (
        Preprocessed(StandardScaler(), ManifoldKernel(RBF(), 5)),
        OnColumns(ManifoldKernel(RBF(), 5), [0, 2]),
    ):
        bound = recipe.bind(X, np.random.default_rng(0))
        np.testing.assert_allclose(bound.compact(rows).against(new), bound.against(new)[:, rows], rtol=0, atol=1e-6)

import numpy as np
import pandas as pd
import pytest
from checks.rounding import assert_same_but_for_rounding
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import RBFSampler
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, OneHotEncoder, SplineTransformer, StandardScaler
from sklearn.svm import SVC

from kernelweave import (
    RBF,
    ForestKernel,
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
)


def product_of_sums(A, B):
    return np.outer(A.sum(axis=1), B.sum(axis=1))


RECIPES = [
    Linear(),
    Polynomial(degree=3, gamma=0.5),
    RBF(),
    RBF("median", multiple=2.0),
    RBF(0.3),
    Sigmoid(gamma=0.1, coef0=0.5),
    Normalized(Polynomial(5, coef0=0.0)),
    OnColumns(RBF(), [0, 2]),
    OnColumns(Linear(), slice(1, None), source="tail"),
    Preprocessed(StandardScaler(), RBF()),
    ForestKernel(20),
    ForestKernel(20, min_samples_leaf=2, max_depth=3),
    ManifoldKernel(RBF(), 5, ratio=10.0),
    ManifoldKernel(ForestKernel(20), 5, metric="kernel"),
    ManifoldKernel(Linear(), 4, 1, metric="cosine", n_landmarks=None),
    ManifoldKernel(Polynomial(), edge_weights="binary", n_landmarks=12),
    Normalized(ManifoldKernel(RBF(), laplacian="unnormalized")),
    Linear() + RBF(),
    2.5 * Linear() + 0.5 * (RBF() * Polynomial()),
    (Linear() + RBF()) * Linear(),
    2.0 * (Linear() + RBF()),
]
EVERY_KERNEL = [*RECIPES, FromCallable(product_of_sums)]


@pytest.fixture(name="X")
def sample():
    return np.random.default_rng(0).normal(size=(30, 4))


def bound_to(kernel, X):
    return kernel.bind(X, np.random.default_rng(0))


@pytest.mark.parametrize("kernel", RECIPES, ids=repr)
def test_repr_evaluates_to_an_equal_recipe(kernel):
    again = eval(repr(kernel))
    assert again == kernel
    assert hash(again) == hash(kernel)


@pytest.mark.parametrize("kernel", EVERY_KERNEL, ids=repr)
def test_training_rows_as_new_rows_give_the_training_block(kernel, X):
    bound = bound_to(kernel, X)
    rows, cols = np.array([3, 0, 7]), np.array([1, 3, 20, 29])
    np.testing.assert_allclose(bound.against(X[rows], cols), bound.block(rows, cols), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(
        bound.block(slice(0, 5), slice(10, 30)), bound.against(X)[:5, 10:], rtol=1e-10, atol=1e-12
    )


@pytest.mark.parametrize("kernel", EVERY_KERNEL, ids=repr)
def test_diagonal_is_the_diagonal(kernel, X):
    bound = bound_to(kernel, X)
    whole = bound.block(slice(None), slice(None))
    np.testing.assert_allclose(bound.diag(), np.diag(whole), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(bound.diag_against(X[4:9]), np.diag(whole)[4:9], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kernel", EVERY_KERNEL, ids=repr)
@pytest.mark.parametrize("rows", [slice(None), slice(3, 20), np.array([5, 0, 29])], ids=["all", "slice", "numbers"])
def test_products_are_those_of_the_matrix(rows, kernel, X):
    bound, V = bound_to(kernel, X), np.random.default_rng(1).normal(size=(30, 2))
    V[::3] = 0.0
    for working_memory in (1024, 1e-3):
        with config_context(working_memory=working_memory):
            found = bound.products(V, rows)
        expected = bound.block(slice(None), slice(None)) @ V
        assert_same_but_for_rounding(found, expected[rows])


@pytest.mark.parametrize("kernel", EVERY_KERNEL, ids=repr)
def test_restricting_keeps_what_was_learned_from_all_rows(kernel, X):
    bound = bound_to(kernel, X)
    rows = np.array([2, 11, 5])
    X_new = np.random.default_rng(1).normal(size=(6, 4))
    np.testing.assert_allclose(bound.restrict(rows).against(X_new), bound.against(X_new, rows), rtol=1e-12)


@pytest.mark.parametrize("kernel", EVERY_KERNEL, ids=repr)
def test_a_block_may_be_overwritten_without_harm(kernel, X):
    bound = bound_to(kernel, X)
    before = bound.block(slice(0, 4), slice(0, 4)).copy()
    bound.block(slice(0, 4), slice(0, 4))[:] = np.nan
    np.testing.assert_array_equal(bound.block(slice(0, 4), slice(0, 4)), before)


@pytest.mark.parametrize("kernel", EVERY_KERNEL, ids=repr)
def test_a_call_gives_the_matrix_of_the_kernel_bound_to_the_last_rows(kernel, X):
    X_new = np.random.default_rng(1).normal(size=(6, 4))
    bound = bound_to(kernel, X)
    np.testing.assert_allclose(kernel(X), bound.block(slice(None), slice(None)), rtol=1e-12)
    np.testing.assert_allclose(kernel(X_new, X), bound.against(X_new), rtol=1e-12)


@pytest.mark.parametrize("container", [np.ndarray.tolist, sparse.csr_array, pd.DataFrame, np.asfortranarray])
def test_a_call_takes_any_container(container, X):
    for found in (RBF(0.3)(container(X)), RBF(0.3)(container(X), container(X)), RBF(0.3)(X, container(X))):
        np.testing.assert_allclose(found, rbf_kernel(X, gamma=0.3), rtol=1e-12)
    assert RBF()(X.astype(np.float32)).dtype == np.float32


def test_a_call_knows_columns_by_name(X):
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    kernel = OnColumns(RBF(0.3), ["b", "d"])
    np.testing.assert_allclose(kernel(frame), rbf_kernel(X[:, [1, 3]], gamma=0.3), rtol=1e-12)
    np.testing.assert_allclose(kernel(X[:5], frame), kernel(frame)[:5], rtol=1e-12)
    with pytest.raises(ValueError, match=r"different columns: 4 columns \(d, c, b, ...\) and 4 columns \(a, b, c,"):
        kernel(frame[["d", "c", "b", "a"]], frame)
    with pytest.raises(ValueError, match=r"RBF\(\) was called with rows of different columns: 3 columns and 4 columns"):
        RBF()(X[:, :3], X)


@pytest.mark.parametrize("kernel", [RBF(), Preprocessed(StandardScaler(), RBF()), ManifoldKernel(RBF())], ids=repr)
def test_a_kernel_is_what_scikit_learn_calls_a_kernel(kernel, X):
    y = (X[:, 0] > 0).astype(int)
    X_new = 10.0 + 3.0 * np.random.default_rng(1).normal(size=(6, 4))  # other widths and scales than those of X
    called = SVC(kernel=kernel).fit(X, y).decision_function(X_new)
    precomputed = SVC(kernel="precomputed").fit(kernel(X), y)
    np.testing.assert_allclose(called, precomputed.decision_function(kernel(X_new, X)), rtol=1e-10, atol=1e-12)


def test_a_call_draws_with_its_seed():
    X = np.random.default_rng(0).normal(size=(60, 3))
    kernel = ManifoldKernel(RBF(multiple=10.0), n_landmarks=10)
    np.testing.assert_array_equal(kernel(X), kernel(X))
    np.testing.assert_array_equal(kernel(X, random_state=5), kernel(X, random_state=5))
    assert np.abs(kernel(X) - kernel(X, random_state=5)).max() > 1e-3


@pytest.mark.parametrize(
    "kernel, X, message",
    [(RBF(), [[np.nan], [1.0]], "contains NaN"), (RBF(), [1.0, 2.0], "Expected 2D array"), (RBF(), [["a"]], "float")],
)
def test_a_call_refuses_rows_that_are_none(kernel, X, message):
    with pytest.raises(ValueError, match=message):
        kernel(X)


def test_a_call_takes_missing_values_where_the_recipe_gives_them_a_meaning():
    X = np.array([[0.0, 1.0], [np.nan, 2.0], [3.0, 3.0]])
    K = OnColumns(Linear(), [0], missing="center")(X)
    np.testing.assert_allclose(K, np.outer([0.0, 1.5, 3.0], [0.0, 1.5, 3.0]), rtol=1e-12)


@pytest.mark.parametrize("kernel", EVERY_KERNEL, ids=repr)
def test_recipes_cannot_be_changed(kernel):
    with pytest.raises(AttributeError):
        kernel.gamma = 3.0


@pytest.mark.parametrize("kernel", EVERY_KERNEL, ids=repr)
def test_clone_shares_the_recipe(kernel):
    assert clone(kernel) is kernel


def test_parameters_reach_into_nested_recipes():
    kernel = Normalized(OnColumns(RBF(), [0])) + 2.0 * Polynomial()
    assert kernel.get_params()["term0__kernel__kernel__gamma"] == "mean"
    changed = kernel.replace(term0__kernel__kernel__gamma=0.5, term1__kernel__degree=3)
    assert changed == Normalized(OnColumns(RBF(0.5), [0])) + 2.0 * Polynomial(degree=3)
    assert kernel.get_params()["term0__kernel__kernel__gamma"] == "mean"


def test_parameters_reach_into_transformers():
    kernel = Preprocessed(StandardScaler(), RBF())
    changed = kernel.replace(transformer__with_mean=False)
    assert changed == Preprocessed(StandardScaler(with_mean=False), RBF())
    assert kernel != changed
    assert kernel.replace(transformer=MinMaxScaler(), transformer__clip=True).transformer.clip


@pytest.mark.parametrize(
    "one, other",
    [
        (RBF(1), RBF(1.0)),
        (RBF(np.float64(0.3)), RBF(0.3)),
        (OnColumns(RBF(), np.array([0, 2])), OnColumns(RBF(), [0, 2])),
        (Preprocessed(SimpleImputer(), RBF()), Preprocessed(SimpleImputer(missing_values=float("nan")), RBF())),
    ],
    ids=repr,
)
def test_equal_recipes_have_equal_hashes(one, other):
    assert one == other
    assert hash(one) == hash(other)


@pytest.mark.parametrize(
    "transformer",
    [
        OneHotEncoder(categories=[np.array(["a", "b"], dtype=object), np.array([0, 1], dtype=object)]),
        FunctionTransformer(np.multiply, kw_args={"x2": np.arange(5.0)}),
        ColumnTransformer([("some", StandardScaler(), pd.Index(["a", "b"]))]),
        make_pipeline(SplineTransformer(knots=np.arange(8.0).reshape(4, 2))),
        RBFSampler(random_state=np.random.RandomState(0)),
    ],
    ids=lambda transformer: type(transformer).__name__,
)
def test_recipes_with_the_same_transformer_are_equal_whatever_its_parameters(transformer):
    recipe = Preprocessed(transformer, RBF())
    for same in (recipe.replace(kernel__gamma="mean"), recipe.replace(kernel=RBF())):
        assert same == recipe
        assert hash(same) == hash(recipe)
    if "random_state" not in transformer.get_params():
        assert Preprocessed(transformer, RBF()) == recipe == Preprocessed(clone(transformer), RBF())


def test_arrays_with_other_values_make_another_recipe():
    one, other = (Preprocessed(FunctionTransformer(kw_args={"x2": np.arange(n)}), Linear()) for n in (2, 3))
    shifted = Preprocessed(FunctionTransformer(kw_args={"x2": np.arange(2) + 1}), Linear())
    renamed = Preprocessed(FunctionTransformer(kw_args={"x1": np.arange(2)}), Linear())
    assert one not in (other, shifted, renamed)


def test_a_number_of_numpy_reads_like_any_other():
    assert repr(RBF(np.float64(0.3))) == "RBF(gamma=0.3)"
    assert repr(Polynomial(degree=np.int64(3))) == "Polynomial(degree=3)"
    assert np.float64(2.0) * Linear() == 2.0 * Linear()


@pytest.mark.parametrize("wrong", ["rbf", RBF, np.eye(2), None], ids=["name", "class", "matrix", "None"])
@pytest.mark.parametrize(
    "wrap", [Normalized, lambda kernel: OnColumns(kernel, [0]), lambda kernel: Preprocessed(StandardScaler(), kernel)]
)
def test_wrapping_something_else_is_refused_with_the_remedy(wrap, wrong):
    with pytest.raises(TypeError, match=r"(?s)takes a kernel such as RBF\(\); got .* Wrap a function"):
        wrap(wrong)


def test_an_unknown_parameter_is_named():
    with pytest.raises(ValueError, match="RBF has no parameter 'width'; it has gamma, multiple"):
        RBF().replace(width=3)


@pytest.mark.parametrize("kernel", [RBF(gamma=2.0), Normalized(RBF(gamma=2.0)), RBF(gamma=2.0) + Linear()], ids=repr)
def test_a_parameter_of_a_parameter_that_has_none_is_refused_as_such(kernel):
    nested = next(name for name in kernel.get_params() if name.endswith("gamma"))
    message = "RBF got 'gamma__x', but its gamma is 2.0, which has no parameters of its own. Set 'gamma'"
    with pytest.raises(ValueError, match=message):
        kernel.replace(**{f"{nested}__x": 1})


def test_recipes_with_different_matrices_differ():
    K = np.eye(3)
    assert Precomputed(K) == Precomputed(K)
    assert Precomputed(K) != Precomputed(2 * K)
    assert KernelLibrary([RBF()]) != KernelLibrary([RBF(1.0)])


def test_what_is_made_of_positive_semi_definite_kernels_is_known_to_be_so():
    for kernel in (2.0 * Linear() + RBF(), Linear() * RBF(), Normalized(Polynomial(3)), OnColumns(RBF(), [0])):
        assert kernel.is_psd
    for kernel in (
        Sigmoid(),
        Linear() + Sigmoid(),
        Polynomial(2, coef0=-1.0),
        FromCallable(min),
        Normalized(Sigmoid()),
    ):
        assert not kernel.is_psd

import pickle

import numpy as np
import pytest
import sklearn
from checks.rounding import assert_same_but_for_rounding
from scipy import sparse
from sklearn.base import clone
from sklearn.svm import SVC

from kernelweave import (
    RBF,
    ClusterKernel,
    ForestKernel,
    KernelLibrary,
    LapSVMClassifier,
    Linear,
    ManifoldKernel,
    MKLClassifier,
    Normalized,
    OnColumns,
    Preprocessed,
    SSMKClassifier,
    load,
    save,
)
from kernelweave.kernels import forest
from kernelweave.kernels.forest import BoundForest
from kernelweave.kernels.graph import kernel_neighbor_graph
from kernelweave.loops import descent

WHOLE = slice(None)
N_ROWS = 120
TRANSFORMS = {
    "huge": lambda X: 1e300 * X,
    "tiny": lambda X: 1e-300 * X,
    "subnormal": lambda X: np.rint(100 * X) * 5e-324,
    "far from zero": lambda X: 1e9 + X,
    "skewed": lambda X: np.exp(5.0 * X),
    "the largest numbers": lambda X: 1.7e308 * (X / np.abs(X).max()),
    "neighbouring numbers": lambda X: 1.0 + np.rint(100 * X) * 2.0**-52,
    "whole numbers": lambda X: np.rint(100 * X).astype(int),
    "several scales": lambda X: X * 10.0 ** np.array([-200, -100, 0, 200]),
}


@pytest.fixture(name="X")
def sample():
    """Normal columns, a discrete one, and one of which most values are zero."""
    X = np.random.default_rng(0).normal(size=(N_ROWS, 4)).round(2)
    X[:, 2] = np.rint(X[:, 2])
    X[: N_ROWS // 2, 3] = 0.0
    return X


@pytest.fixture(name="X_new")
def new_sample():
    return 2.0 * np.random.default_rng(1).normal(size=(11, 4))


def bound_to(kernel, X, seed=0, sample_weight=None):
    return kernel.bind(X, np.random.default_rng(seed), sample_weight)


def matrix(kernel, X, **how):
    return bound_to(kernel, X, **how).block(WHOLE, WHOLE)


def leaf_of(grown, tree, x):
    """Where one row ends in one tree, step by step."""
    node = int(grown.roots[tree])
    while grown.child[node] != node:
        node = int(grown.child[node]) + int(x[grown.column[node]] > grown.threshold[node])
    return node


# What the kernel is


def test_a_value_is_the_share_of_trees_in_which_rows_end_in_one_leaf(X, X_new):
    bound = bound_to(ForestKernel(20), X)
    ends, new_ends = (np.array([[leaf_of(bound.forest, t, x) for t in range(20)] for x in A]) for A in (X, X_new))
    np.testing.assert_array_equal(bound.leaf, ends)
    expected = (ends[:, None] == ends).mean(axis=2)
    np.testing.assert_allclose(bound.block(WHOLE, WHOLE), expected, rtol=1e-15)
    some = np.array([7, 3, 3, 100])
    np.testing.assert_allclose(bound.block(some, slice(2, 9)), expected[some][:, 2:9], rtol=1e-15)
    np.testing.assert_allclose(bound.against(X_new), (new_ends[:, None] == ends).mean(axis=2), rtol=1e-15)
    np.testing.assert_allclose(bound.against(X_new, some), (new_ends[:, None] == ends[some]).mean(axis=2), rtol=1e-15)


@pytest.mark.parametrize("n_constant", [0, 3])
def test_with_one_cut_it_is_one_minus_the_mean_difference_of_rank_values(n_constant):
    n_rows, n_trees = 15, 2000
    rng = np.random.default_rng(2)
    X = np.exp(rng.normal(size=(n_rows, 3)))
    X[:, 2] = np.rint(X[:, 2])
    ranks = np.column_stack([np.unique(column, return_inverse=True)[1] for column in X.T])
    ranges = ranks.max(axis=0)
    k = 1.0 - (np.abs(ranks[:, None] - ranks) / ranges).mean(axis=2)
    X = np.column_stack([X, np.full((n_rows, n_constant), 7.0)])  # columns that cannot be cut are not drawn
    found = matrix(ForestKernel(n_trees, 1, 1), X)
    np.testing.assert_array_less(np.abs(found - k), 5.0 * np.sqrt(k * (1.0 - k) / n_trees) + 1e-12)


def test_forests_vary_as_means_over_trees_do(X):
    found = np.array([matrix(ForestKernel(50), X, seed=seed) for seed in range(60)])
    k = found.mean(axis=0)
    # Values of one forest go up and down together: of 60 forests the ratio is 1 +- 0.15.
    assert found.var(axis=0, ddof=1).mean() == pytest.approx(np.mean(k * (1.0 - k)) / 50, rel=0.6)


@pytest.mark.parametrize("kernel", [ForestKernel(50), ForestKernel(30, 1), ForestKernel(30, 20, 2)], ids=repr)
def test_the_matrix_is_positive_semi_definite_with_ones_on_the_diagonal(kernel, X, X_new):
    assert kernel.is_psd
    bound = bound_to(kernel, X)
    K = bound.block(WHOLE, WHOLE)
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_array_equal(np.diag(K), 1.0)
    np.testing.assert_array_equal(bound.diag(), np.ones(N_ROWS))
    np.testing.assert_array_equal(bound.diag_against(X_new), np.ones(11))
    assert np.linalg.eigvalsh(K)[0] > -1e-12 * N_ROWS


@pytest.mark.parametrize("n_least", [1, 5, 30, 61])
def test_every_leaf_holds_so_many_rows(n_least, X):
    leaf = bound_to(ForestKernel(40, n_least), X).leaf
    assert np.unique(leaf, return_counts=True)[1].min() >= n_least
    assert (len(np.unique(leaf)) > 40) == (2 * n_least < N_ROWS)


@pytest.mark.parametrize("depth", [1, 3])
def test_no_way_down_is_longer_than_the_depth(depth, X):
    grown = bound_to(ForestKernel(40, 1, depth), X).forest
    assert grown.depths.max() == depth
    assert grown.n_nodes <= 40 * (2 ** (depth + 1) - 1)


def test_the_first_trees_of_a_larger_forest_are_those_of_a_smaller_one(X):
    np.testing.assert_array_equal(bound_to(ForestKernel(30), X).leaf[:, :10], bound_to(ForestKernel(10), X).leaf)


def test_the_same_seed_gives_the_same_trees_and_another_others(X):
    first, again, other = (bound_to(ForestKernel(10), X, seed=seed).leaf for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


# Weights


def test_with_weights_a_leaf_holds_the_weight_of_so_many_usual_rows(X):
    weight = np.random.default_rng(3).uniform(0.1, 3.0, N_ROWS)
    for scale in (1.0, 1e-6):
        leaf = bound_to(ForestKernel(40, 5), X, sample_weight=scale * weight).leaf
        held = np.bincount(leaf.ravel(), np.repeat(weight, 40))
        assert held[held > 0].min() >= 5 * weight.mean() * (1 - 1e-6)
    assert np.unique(leaf, return_counts=True)[1].min() < 5  # heavy rows


def test_equal_weights_are_none_and_few_rows_are_not_cut(X):
    np.testing.assert_array_equal(
        bound_to(ForestKernel(10), X, sample_weight=np.full(N_ROWS, 0.3)).leaf, bound_to(ForestKernel(10), X).leaf
    )
    weight = np.linspace(1.0, 2.0, 9)
    np.testing.assert_array_equal(matrix(ForestKernel(10, 5), X[:9], sample_weight=weight), np.ones((9, 9)))


# Scales, containers, precision


@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_increasing_transforms_of_columns_change_nothing(transform, container, X):
    X[:, 1] = np.arange(N_ROWS) / 100  # all distinct, after rounding too
    bound, expected = bound_to(ForestKernel(50), container(transform(X))), matrix(ForestKernel(50), X)
    np.testing.assert_allclose(bound.block(WHOLE, WHOLE), expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(bound.against(container(transform(X))), expected, rtol=0, atol=1e-12)


def test_new_values_between_two_bound_ones_go_to_either_side_in_proportion():
    X = np.array([[0.0], [1.0]])
    bound = bound_to(ForestKernel(1000, 1), X)
    new = np.array([[-5.0], [0.25], [0.75], [9.0]])
    share = np.array([1.0, 0.75, 0.25, 0.0])
    deviation = np.sqrt(share * (1.0 - share) / 1000)
    assert (np.abs(bound.against(new) - np.column_stack([share, 1.0 - share])) <= 5.0 * deviation[:, None]).all()


@pytest.mark.parametrize("bound_in", [np.asfortranarray, sparse.csr_array, sparse.csr_matrix, sparse.csc_array])
@pytest.mark.parametrize("new_in", [np.asarray, sparse.csr_array])
def test_any_container_may_hold_the_rows(bound_in, new_in, X, X_new):
    bound, expected = bound_to(ForestKernel(20), bound_in(X)), bound_to(ForestKernel(20), X)
    np.testing.assert_allclose(bound.block(WHOLE, WHOLE), expected.block(WHOLE, WHOLE), rtol=0, atol=1e-12)
    np.testing.assert_allclose(bound.against(new_in(X)), expected.block(WHOLE, WHOLE), rtol=0, atol=1e-12)
    np.testing.assert_allclose(bound.against(new_in(X_new)), expected.against(X_new), rtol=0, atol=1e-12)


def test_zeros_may_be_stored_and_entries_repeated(X):
    stored = sparse.csr_array(X)
    stored.data[::7] = 0.0
    halves = (np.repeat(stored.data / 2, 2), np.repeat(stored.indices, 2), 2 * stored.indptr)
    expected = matrix(ForestKernel(20), stored.toarray())
    for given in (stored, sparse.csr_array(halves, shape=X.shape)):
        bound = bound_to(ForestKernel(20), given)
        np.testing.assert_allclose(bound.block(WHOLE, WHOLE), expected, rtol=0, atol=1e-12)
        np.testing.assert_allclose(bound.against(given), expected, rtol=0, atol=1e-12)


def test_single_precision_is_kept(X, X_new):
    single, double = bound_to(ForestKernel(20), X.astype(np.float32)), bound_to(ForestKernel(20), X)
    for found in (single.block(WHOLE, WHOLE), single.against(X), single.diag(), single.diag_against(X_new)):
        assert found.dtype == np.float32
    np.testing.assert_allclose(single.block(WHOLE, WHOLE), double.block(WHOLE, WHOLE), rtol=0, atol=1e-7)
    np.testing.assert_array_equal(single.against(X.astype(np.float32)), single.block(WHOLE, WHOLE))


def test_neither_working_memory_nor_strips_matter(monkeypatch, X, X_new):
    expected = bound_to(ForestKernel(20), X).against(X_new)
    monkeypatch.setattr(descent, "MAX_STRIP_VALUES", 100)
    monkeypatch.setattr(descent, "MAX_PLACES", 30)
    with sklearn.config_context(working_memory=1e-3):
        np.testing.assert_allclose(bound_to(ForestKernel(20), X).against(X_new), expected, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_trees", [3, 300])
def test_both_ways_to_count_leaves_give_the_same_bits(n_trees, dtype, monkeypatch, X, X_new):
    bound = bound_to(ForestKernel(n_trees), X.astype(dtype))
    some = np.arange(0, N_ROWS, 3)
    monkeypatch.setattr(forest, "COMPARED_VALUES", 5 * N_ROWS)
    blocks = []
    for least in (np.inf, 0):  # pairs
        monkeypatch.setattr(forest, "MIN_COMPARED_PAIRS", least)
        monkeypatch.setattr(forest, "MIN_COMPARED_SHARE", 0.0)
        blocks.append([bound.block(WHOLE, WHOLE), bound.block(some, WHOLE), bound.against(X_new, some)])
    for products, comparison in zip(*blocks, strict=True):
        np.testing.assert_array_equal(comparison, products)
        assert comparison.dtype == products.dtype == dtype


def test_blocks_without_rows_or_columns_are_empty(X):
    bound = bound_to(ForestKernel(5), X)
    none = np.empty(0, dtype=int)
    assert bound.block(none, WHOLE).shape == (0, N_ROWS)
    assert bound.block(WHOLE, none).shape == (N_ROWS, 0)
    assert bound.against(X[:0]).shape == (0, N_ROWS)


@pytest.mark.parametrize("rows", [np.ones((7, 2)), np.zeros((1, 3)), sparse.csr_array((6, 2))], ids=["7", "1", "empty"])
def test_rows_that_do_not_differ_are_alike(rows):
    bound = bound_to(ForestKernel(5, 1), rows)
    np.testing.assert_array_equal(bound.against(rows), 1.0)


# Explicit features


def test_the_factor_are_the_leaves_where_they_are_few(X):
    bound = bound_to(ForestKernel(4, 10, 2), X)
    assert bound.rank == len(np.unique(bound.leaf)) <= 16
    Z = bound.factor()
    assert Z.shape == (N_ROWS, bound.rank)
    np.testing.assert_allclose(Z @ Z.T, bound.block(WHOLE, WHOLE), rtol=1e-12)
    many = bound_to(ForestKernel(100), X)
    assert many.rank is None
    assert many.factor() is None


def test_leaves_that_there_are_not_are_refused(X):
    bound = bound_to(ForestKernel(5), X)
    for wrong in (-1, bound.forest.n_nodes):
        leaf = bound.leaf.copy()
        leaf[3, 2] = wrong
        with pytest.raises(ValueError, match="rows in leaves that its trees do not have: the model is damaged"):
            BoundForest(bound.forest, leaf, "float64").block(WHOLE, slice(0, 5))


# In libraries and models


def test_a_library_reduces_it_to_what_its_matrix_gives(X):
    library = KernelLibrary([ForestKernel(30), RBF()]).bind(X, np.random.default_rng(0))
    rows, V = np.arange(0, N_ROWS, 3), np.random.default_rng(1).normal(size=(N_ROWS // 3, 2))
    K = library.kernels[0].block(WHOLE, WHOLE)
    with sklearn.config_context(working_memory=0.05):
        scores = np.concatenate([part for _, part in library.scores(V, rows, [0])])
        np.testing.assert_allclose(scores, K[rows].T @ V, rtol=0, atol=1e-12)
        forms, products = library.quadratic_forms(V, rows), library.frobenius(rows)
    np.testing.assert_allclose(forms[0], np.vdot(V, K[np.ix_(rows, rows)] @ V), rtol=1e-10)
    np.testing.assert_allclose(products[0, 0], np.square(K[np.ix_(rows, rows)]).sum(), rtol=1e-12)


def test_its_graph_joins_rows_that_share_most_leaves(X):
    bound = bound_to(ForestKernel(100), X)
    joined = kernel_neighbor_graph(bound, 4, "binary").toarray() > 0
    K = bound.block(WHOLE, WHOLE)
    np.fill_diagonal(K, -1.0)
    fourth = np.sort(K, axis=1)[:, -4]
    assert joined[fourth[:, None] < K - 1e-9].all()
    assert (K[joined] >= np.minimum(fourth[:, None], fourth)[joined] - 1e-9).all()


@pytest.mark.parametrize(
    "kernel",
    [
        ManifoldKernel(ForestKernel(50), 5, metric="kernel"),
        ManifoldKernel(ForestKernel(50), 5, n_landmarks=30),
        ClusterKernel(ForestKernel(50)),
        Normalized(ForestKernel(50)),
        OnColumns(ForestKernel(50), [0, 2]),
        ForestKernel(50) * RBF() + 0.5 * ForestKernel(20),
    ],
    ids=repr,
)
def test_it_may_be_part_of_any_other(kernel, X, X_new):
    bound = bound_to(kernel, X)
    K = bound.block(WHOLE, WHOLE)
    assert np.linalg.eigvalsh(K)[0] > -1e-9 * np.trace(K)
    np.testing.assert_allclose(bound.against(X), K, rtol=0, atol=1e-7)
    assert np.isfinite(bound.against(X_new)).all()


def skewed_table(seed):
    """Columns on many scales, of which two decide by their ranks."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(300, 4))
    classes = (Z[:, 0] + Z[:, 1] > 0).astype(int)
    return np.exp(3.0 * Z) * 10.0 ** np.array([-8, 6, 0, 3]), classes


def test_it_knows_what_the_scales_of_columns_hide():
    X, classes = skewed_table(0)
    accuracy = [
        SVC(kernel="precomputed", C=10.0).fit(K[:60, :60], classes[:60]).score(K[60:, :60], classes[60:])
        for K in (ForestKernel(200)(X), RBF()(X))
    ]
    assert accuracy[0] > 0.85 > accuracy[1] + 0.1


@pytest.mark.parametrize(
    "model",
    [
        SSMKClassifier([RBF(), ForestKernel(60), ManifoldKernel(ForestKernel(40), 5, metric="kernel")]),
        MKLClassifier([RBF(), ForestKernel(60), OnColumns(ForestKernel(30), [0, 1])]),
        LapSVMClassifier(ForestKernel(60)),
    ],
    ids=lambda model: type(model).__name__,
)
def test_models_use_it_and_are_saved_without_objects_of_another_library(model, tmp_path):
    pytest.importorskip("skops")
    X, classes = skewed_table(1)
    y = np.where(np.arange(300) < 60, classes.astype(float), np.nan)
    n_rows = 60 if isinstance(model, MKLClassifier) else 300  # labelled ones only
    model = clone(model).set_params(random_state=0).fit(X[:n_rows], y[:n_rows])
    assert np.mean(model.predict(X[60:]) == classes[60:]) > 0.75
    path = tmp_path / "model.skops"
    save(model, path)
    assert_same_but_for_rounding(load(path).decision_function(X), model.decision_function(X))
    assert b"sklearn.tree" not in path.read_bytes()
    again = pickle.loads(pickle.dumps(model))
    assert_same_but_for_rounding(again.decision_function(X), model.decision_function(X))


def test_diagnosis_finds_it_positive_semi_definite(X):
    (report,) = KernelLibrary([ForestKernel(50)]).diagnose(X)
    assert report.is_psd
    assert report.mean_diagonal == pytest.approx(1.0)


# Recipes


def test_recipes_are_values():
    kernel = ForestKernel(100, max_depth=3)
    assert repr(kernel) == "ForestKernel(n_trees=100, max_depth=3)"
    assert eval(repr(kernel)) == kernel
    assert kernel.replace(min_samples_leaf=2) == ForestKernel(100, 2, 3)
    assert Preprocessed(sklearn.preprocessing.StandardScaler(), kernel).replace(kernel__n_trees=7).kernel.n_trees == 7
    assert kernel.cost > Linear().cost


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: ForestKernel(0), "ForestKernel got n_trees=0; expected a whole number, 1 or more"),
        (lambda: ForestKernel(min_samples_leaf=0.1), "min_samples_leaf=0.1; expected a whole number, 1 or more"),
        (lambda: ForestKernel(max_depth=0), "max_depth=0; expected None or a whole number, 1 or more"),
        (lambda: bound_to(ForestKernel(), np.array([[np.nan]])), r"ForestKernel\(\) found missing values"),
        (lambda: bound_to(ForestKernel(2), np.eye(3)).against(np.full((2, 3), np.nan)), "found missing values"),
    ],
)
def test_what_makes_no_forest_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()

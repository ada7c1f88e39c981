import gc
import threading
import weakref

import numpy as np
import pytest
from scipy import sparse
from sklearn.preprocessing import StandardScaler

from kernelweave import (
    RBF,
    ClusterKernel,
    ForestKernel,
    KernelLibrary,
    Linear,
    ManifoldKernel,
    Normalized,
    OnColumns,
    Polynomial,
    Preprocessed,
)
from kernelweave.kernels import forest, graph, manifold, sharing
from kernelweave.kernels.sharing import bind_once, is_shared, kept_block, once, shared_bindings, whole_block

ALL = slice(None)
FOREST = ForestKernel(20)
DETERMINISTIC = [
    Linear(),
    Polynomial(3),
    RBF(),
    Normalized(Polynomial()),
    2.0 * RBF() + Linear(),
    RBF() * Linear(),
    OnColumns(RBF(), [0, 2]),
    OnColumns(RBF(), [0, 1], missing="center"),
    Preprocessed(StandardScaler(), RBF()),
    ManifoldKernel(RBF(), 5, ratio=10.0),
    ManifoldKernel(RBF(), 5, degree=1, metric="kernel"),
    ManifoldKernel(RBF(), ratio=0.0),
    ClusterKernel(RBF(multiple=4.0)),
]


@pytest.fixture(name="X")
def sample():
    return np.random.default_rng(0).normal(size=(30, 4))


def bound_to(kernel, X, seed=0, sample_weight=None):
    return KernelLibrary([kernel]).bind(X, np.random.default_rng(seed), sample_weight).kernels[0]


def counter(monkeypatch, module, name):
    """How often a function of a module was called since."""
    calls, function = [], getattr(module, name)
    monkeypatch.setattr(module, name, lambda *args, **how: calls.append(name) or function(*args, **how))
    return calls


# What is shared


def test_an_equal_recipe_at_the_same_rows_is_the_same_bound_kernel(X):
    with shared_bindings(0):
        for kernel in (*DETERMINISTIC, FOREST):
            assert bound_to(kernel, X, 1) is bound_to(kernel.replace(), X, 2)


@pytest.mark.parametrize(
    ("kernel", "find"),
    [
        (RBF() + FOREST, lambda bound: bound.terms[1]),
        (FOREST * Linear(), lambda bound: bound.terms[0]),
        (3.0 * FOREST, lambda bound: bound.terms[0]),
        (Normalized(FOREST), lambda bound: bound.kernel),
        (ManifoldKernel(FOREST, ratio=0.0), lambda bound: bound),
    ],
    ids=lambda value: None if callable(value) and not hasattr(value, "bind") else repr(value),
)
def test_a_nested_recipe_is_the_one_that_is_bound_alone(kernel, find, X):
    with shared_bindings(0):
        assert find(bound_to(kernel, X)) is bound_to(FOREST, X)


def test_one_forest_is_grown_for_all_kernels_that_hold_it(monkeypatch, X):
    grown = counter(monkeypatch, forest, "_grow")
    total = RBF() + FOREST
    kernels = [FOREST, total, *(ManifoldKernel(total, n, metric="kernel") for n in (3, 5)), ClusterKernel(total)]
    with shared_bindings(0):
        KernelLibrary(kernels).bind(X, np.random.default_rng(0))
        KernelLibrary(kernels[::-1]).bind(X, np.random.default_rng(1))
    assert len(grown) == 1


def test_kernels_on_equal_transformers_and_columns_see_the_same_rows(X):
    with shared_bindings(0):
        scaled = [bound_to(Preprocessed(StandardScaler(), kernel), X) for kernel in (RBF(), RBF() + Linear())]
        assert scaled[0].kernel is scaled[1].kernel.terms[0]
        assert bound_to(Preprocessed(StandardScaler(with_mean=False), RBF()), X).kernel is not scaled[0].kernel
        picked = [bound_to(OnColumns(kernel, [0, 3]), X) for kernel in (RBF(), RBF() + Linear())]
        assert picked[0].kernel is picked[1].kernel.terms[0]


def test_deformed_kernels_of_several_libraries_share_anchors_and_graphs(monkeypatch, X):
    anchors, graphs = counter(monkeypatch, manifold, "anchored"), counter(monkeypatch, manifold, "neighbor_graph")
    roots = counter(monkeypatch, manifold.linalg, "cholesky")
    with shared_bindings(0):
        first = bound_to(ManifoldKernel(RBF(), 5, degree=1), X)
        other = bound_to(ManifoldKernel(RBF(), 5, degree=2), X)
        bound_to(ManifoldKernel(RBF(), 7), X)
        assert (len(anchors), len(graphs), len(roots)) == (1, 2, 3)
        bound_to(ManifoldKernel(RBF(), 7), X)
    assert (len(anchors), len(graphs), len(roots)) == (1, 2, 3)
    assert first.Z is other.Z
    assert first.features is other.features


@pytest.mark.parametrize("kernel", DETERMINISTIC, ids=repr)
def test_sharing_changes_no_value_of_what_is_not_drawn(kernel, X):
    X_new, cols = np.random.default_rng(1).normal(size=(5, 4)), np.array([4, 0, 7])
    apart = bound_to(kernel, X)
    with shared_bindings(0):
        shared = bound_to(kernel, X)
        blocks = shared.block(ALL, ALL), shared.block(cols, ALL), shared.against(X_new, cols), shared.diag()
    expected = apart.block(ALL, ALL), apart.block(cols, ALL), apart.against(X_new, cols), apart.diag()
    for found, value in zip(blocks, expected, strict=True):
        np.testing.assert_allclose(found, value, rtol=1e-9, atol=1e-11)


def test_leaves_in_common_are_counted_once_and_to_the_same_bits(monkeypatch, X):
    bound = bound_to(FOREST, X)
    expected, counts = bound.block(ALL, ALL), counter(monkeypatch, forest.BoundForest, "_count_shares")
    rows = np.array([3, 1, 29])
    with shared_bindings(0):
        np.testing.assert_array_equal(bound.block(rows, slice(0, 7)), expected[rows, :7])
        np.testing.assert_array_equal(bound.block(ALL, ALL), expected)
    assert len(counts) == 1


@pytest.mark.parametrize("kernel", [FOREST, ManifoldKernel(RBF(), 5), RBF()], ids=repr)
def test_blocks_may_be_overwritten_without_harm(kernel, X):
    with shared_bindings(0):
        bound = bound_to(kernel, X)
        before = bound.block(ALL, ALL).copy()
        for make in (lambda: bound.block(ALL, ALL), lambda: whole_block(bound)):
            make()[:] = np.nan
            np.testing.assert_allclose(make(), before, rtol=1e-12)


# What is not confused


def test_other_rows_are_never_taken_for_the_same(X):
    others = [X.copy(), X[:, ::-1], X[::-1], X[:29], X[:, :3], np.asfortranarray(X), X.astype(np.float32)]
    with shared_bindings(0):
        kernels = [bound_to(RBF(), rows) for rows in (X, *others)]
    assert len({id(kernel) for kernel in kernels}) == len(kernels)


def test_the_memory_of_rows_that_are_gone_is_not_taken_for_theirs():
    with shared_bindings(0):
        for seed in range(20):  # each array is freed by its maker before the next one is made
            rows = np.random.default_rng(seed).normal(size=(30, 4))
            gamma = float(bound_to(RBF(), rows).formula.gamma)
            assert gamma == pytest.approx(float(RBF().bind(rows, np.random.default_rng(0)).formula.gamma))
            del rows


def test_sparse_rows_are_the_same_if_their_three_arrays_are(X):
    rows = sparse.csr_array(X)
    again = sparse.csr_array((rows.data, rows.indices, rows.indptr), shape=rows.shape)
    with shared_bindings(0):
        assert bound_to(Linear(), rows) is bound_to(Linear(), again)
        assert bound_to(Linear(), rows) is not bound_to(Linear(), rows.copy())


def test_kernels_of_other_weights_are_others(X):
    weights = [None, np.ones(30), np.arange(1.0, 31.0)]
    with shared_bindings(0):
        first, again = ([bound_to(RBF(), X, sample_weight=w) for w in weights] for _ in range(2))
        assert bound_to(RBF(), X, sample_weight=np.ones(30)) is first[1]
    assert len(set(map(id, first))) == 3
    assert list(map(id, first)) == list(map(id, again))


def test_recipes_that_differ_are_bound_apart(X):
    with shared_bindings(0):
        kernels = [bound_to(kernel, X) for kernel in (RBF(), RBF(multiple=2.0), ForestKernel(20), ForestKernel(21))]
    assert len(set(map(id, kernels))) == 4


# What is drawn


def test_draws_depend_on_the_seed_and_the_recipe_alone(X):
    def leaves(seed, *before):
        with shared_bindings(seed):
            for k, kernel in enumerate(before):
                bound_to(kernel, X, k)
            return bound_to(FOREST, X, 5).leaf

    np.testing.assert_array_equal(leaves(0), leaves(0, RBF() + FOREST))
    np.testing.assert_array_equal(leaves(0), leaves(0, ManifoldKernel(FOREST, metric="kernel"), RBF()))
    assert leaves(0).shape != leaves(1).shape or (leaves(0) != leaves(1)).any()


def test_without_a_context_draws_are_those_of_the_generator(X):
    assert not is_shared()
    one, other = (bound_to(FOREST, X, 3) for _ in range(2))
    assert one is not other
    np.testing.assert_array_equal(one.leaf, other.leaf)
    np.testing.assert_array_equal(one.leaf, FOREST.bind(X, np.random.default_rng(3).spawn(1)[0]).leaf)
    assert once("a draw", X, lambda rng: rng.random(), np.random.default_rng(7)) == np.random.default_rng(7).random()


# Where a context ends


def test_nothing_is_left_after_a_context_even_if_it_failed(X):
    bound = []

    def fail():
        with shared_bindings(0):
            bound.append(weakref.ref(bound_to(FOREST, X)))
            assert bound[0]() is not None
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        fail()
    assert not is_shared()
    gc.collect()
    assert bound[0]() is None


def test_what_failed_is_made_again(X):
    with shared_bindings(0):
        with pytest.raises(ZeroDivisionError):
            once("a quotient", X, lambda _: 1 / 0)
        assert once("a quotient", X, lambda _: 2) == 2
        assert once("a quotient", X, lambda _: 3) == 2


def test_contexts_do_not_see_each_other(X):
    with shared_bindings(0):
        outer = bound_to(FOREST, X)
        with shared_bindings(0):
            assert bound_to(FOREST, X) is not outer
        assert bound_to(FOREST, X) is outer
    with shared_bindings(0):
        assert bound_to(FOREST, X) is not outer


def test_threads_do_not_see_each_other(X):
    found = {}

    def bind(name):
        found[name, "before"] = is_shared()
        with shared_bindings(0):
            found[name] = bound_to(FOREST, X)

    with shared_bindings(0):
        threads = [threading.Thread(target=bind, args=(name,)) for name in "ab"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({id(found["a"]), id(found["b"]), id(bound_to(FOREST, X))}) == 3
    assert not found["a", "before"]
    assert not found["b", "before"]


def test_what_is_made_of_a_bound_kernel_goes_with_it(X):
    with shared_bindings(0):
        bound = RBF().bind(X, np.random.default_rng(0))
        kept = weakref.ref(kept_block(bound))
        assert kept() is kept_block(bound)
        del bound
        gc.collect()
        assert kept() is None


def test_large_matrices_are_not_kept(monkeypatch, X):
    with shared_bindings(0):
        monkeypatch.setattr(sharing, "MAX_KEPT_BYTES", 4 * 8 * 30**2)  # four matrices of these rows
        kernels = [bind_once(RBF(float(k + 1)), X, np.random.default_rng(0)) for k in range(5)]
        assert [kept_block(kernel) is not None for kernel in kernels] == [True] * 4 + [False]
        assert kept_block(kernels[0]) is not None
        np.testing.assert_array_equal(whole_block(kernels[4]), kernels[4].block(ALL, ALL))
        monkeypatch.setattr(sharing, "MAX_KEPT_SHARE", 0.2)
        graph.kernel_neighbor_graph(kernels[4], 3)
    assert kept_block(kernels[0]) is None


def test_a_part_of_a_deformed_kernel_takes_what_is_kept_of_the_whole():
    rng = np.random.default_rng(0)
    X, rows, kernel = rng.normal(size=(60, 3)), np.array([3, 5, 50]), ManifoldKernel(RBF(), ratio=10.0)
    alone = kernel.bind(X, rng)
    coef = rng.normal(size=(3, 2))
    with shared_bindings(0):
        bound = bind_once(kernel, X, rng)
        before, _ = bound.restrict(rows), bound.diag()  # the first part is made when nothing is kept
        for part in (before, bound.restrict(rows)):
            np.testing.assert_allclose(part.block(ALL, ALL), alone.block(rows, rows), rtol=1e-9)
            np.testing.assert_allclose(part.fold(coef)[1], alone.restrict(rows).fold(coef)[1], rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(bound.block(rows, ALL), alone.block(rows, ALL), rtol=1e-9)
        np.testing.assert_allclose(bound.products(np.ones((60, 1))), alone.products(np.ones((60, 1))), rtol=1e-9)
        np.testing.assert_allclose(bound.diag(), alone.diag(), rtol=1e-9)

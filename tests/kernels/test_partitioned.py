"""Kernels at partitioned rows learn what they learn in memory, and answer with the columns that decide."""

import numpy as np
import pytest
from checks.partitions import as_array, problem

from kernelweave import (
    RBF,
    ForestKernel,
    KernelLibrary,
    Linear,
    ManifoldKernel,
    Normalized,
    OnColumns,
    Polynomial,
    Preprocessed,
)
from kernelweave.distributed.rows import PartitionedRows, inspect_blocks, read_blocks
from kernelweave.kernels import partitioned as module
from kernelweave.kernels.bound_library import column_sizes
from kernelweave.kernels.partitioned import PartitionedLibrary, bind_partitioned, draw_rows, fit_formula
from kernelweave.kernels.scaling import ColumnScaler

X = 3.0 + problem(300)[0]
FORMULAS = {
    "linear": Linear(),
    "mean": RBF(),
    "median": RBF("median", multiple=2.0),
    "scale": RBF("scale"),
    "sum": RBF() + 2.0 * Polynomial(),
    "product": RBF() * Linear(),
    "normalized": Normalized(Polynomial(degree=3)),
    "columns": OnColumns(RBF(), [0, 2]),
}


def rows_of(values=X, n_partitions=7):
    blocks, _ = read_blocks(as_array(values, n_partitions), np.asarray)
    return PartitionedRows(blocks, inspect_blocks(blocks, len), values.shape[1], values.dtype)


@pytest.mark.parametrize("n_partitions", [1, 7, 64])
@pytest.mark.parametrize("name", FORMULAS)
def test_widths_are_those_of_all_rows(name, n_partitions, monkeypatch):
    monkeypatch.setattr(module, "MAX_BOUND_ROWS", 40)
    library = KernelLibrary([FORMULAS[name]])
    [bound] = bind_partitioned(library, rows_of(n_partitions=n_partitions), np.random.default_rng(0))
    expected = library.bind(X, np.random.default_rng(0)).kernels[0]
    np.testing.assert_allclose(bound.tied_to(X[:9]).against(X), expected.against(X, np.arange(9)), rtol=1e-12)


@pytest.mark.parametrize("kernel", [ForestKernel(n_trees=5), Preprocessed(ColumnScaler(), RBF())], ids=repr)
def test_what_is_more_than_widths_is_learned_from_drawn_rows(kernel, monkeypatch):
    rows = rows_of()
    assert fit_formula(kernel, rows, np.random.default_rng(0)) is None
    [bound] = bind_partitioned(KernelLibrary([kernel]), rows, np.random.default_rng(0))
    expected = KernelLibrary([kernel]).bind(X, np.random.default_rng(0)).kernels[0]  # all rows are drawn
    np.testing.assert_allclose(bound.tied_to(X[:9]).against(X), expected.against(X, np.arange(9)), rtol=1e-12)
    monkeypatch.setattr(module, "MAX_BOUND_ROWS", 40)
    drawn = draw_rows(rows_of())
    assert drawn.shape == (40, X.shape[1])
    np.testing.assert_array_equal(drawn, draw_rows(rows_of(n_partitions=3)))


def test_kernels_that_follow_a_graph_are_refused():
    with pytest.raises(ValueError, match=r"follows a graph of all rows, of which there are 300 in partitions"):
        bind_partitioned(KernelLibrary([ManifoldKernel(RBF())]), rows_of(), np.random.default_rng(0))


def library_of(n_partitions, n_known=25):
    library = KernelLibrary([Linear(), RBF(), RBF(multiple=4.0)])
    kernels = bind_partitioned(library, rows_of(n_partitions=n_partitions), np.random.default_rng(0))
    at_known = [kernel.tied_to(X[:n_known]) for kernel in kernels]
    everywhere = library.bind(X, np.random.default_rng(0))
    rows = rows_of(n_partitions=n_partitions)
    return PartitionedLibrary(at_known, library.entries, library.order, rows), everywhere, np.arange(n_known)


@pytest.mark.parametrize("n_partitions", [1, 7, 64])
@pytest.mark.parametrize("centered", [False, True])
def test_sizes_and_best_scores_are_those_of_all_columns(n_partitions, centered, monkeypatch):
    monkeypatch.setattr(module, "MAX_BEST", 20)
    bound, everywhere, known = library_of(n_partitions)
    rng = np.random.default_rng(1)
    share, V = rng.dirichlet(np.ones(25)), rng.normal(size=(25, 2))
    expected = (everywhere.column_deviations if centered else everywhere.column_norms)(share, known)
    rounding, largest = bound.largest_sizes(share, centered=centered)
    np.testing.assert_allclose(largest, expected.reshape(3, -1).max(axis=1))
    squares = bound.mean_squares(share, rounding, np.ones(3), centered=centered)
    np.testing.assert_allclose(squares, np.square(expected.reshape(3, -1)).mean(axis=1))
    scale = module.ColumnScale(share, centered, rounding, np.full(3, 1e-3))
    columns, scores = bound.best_scores(V, scale, centered=centered, signed=False)
    every = np.concatenate([part for _, part in everywhere.scores(V, known, centered=centered)])
    every /= np.maximum(expected, 1e-3)[:, None]
    np.testing.assert_allclose(scores, every[columns], atol=1e-9)
    for k in range(2):
        best = np.argsort(-np.abs(every[:, k]))[:20]
        assert set(best) <= set(columns.tolist())


def test_columns_are_evaluated_at_the_rows_in_memory_and_rows_are_fetched_once():
    bound, everywhere, known = library_of(7)
    columns = np.array([3, 310, 299, 899])
    np.testing.assert_allclose(bound.values(columns), everywhere.columns(columns, known))
    bound.rows = None  # nothing is asked for again
    np.testing.assert_allclose(bound.values(columns[:2]), everywhere.columns(columns[:2], known))
    expected = everywhere.kernels[0].block(np.arange(5), np.array([2]))
    np.testing.assert_allclose(bound.at(X[:5]).columns(np.array([2])), expected)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_values_of_several_kernels_at_once_are_those_of_each(dtype):
    rows, others = X[:40].astype(dtype), X[40:60].astype(dtype)
    recipes = [RBF(0.1), Linear(), RBF(0.2), RBF(1e-30), Polynomial()]
    kernels = [recipe.bind(rows, np.random.default_rng(0)) for recipe in recipes]
    kernels.append(RBF(0.3).bind(others, np.random.default_rng(0)))  # tied to other rows
    scratch = module.Scratch()
    for part in (X[60:100].astype(dtype), X[100:130].astype(dtype)):
        for kernel, values in zip(kernels, module.evaluate_all(kernels, part, scratch), strict=True):
            assert values.dtype == kernel.against(part).dtype
            np.testing.assert_allclose(values, kernel.against(part), rtol=10 * np.finfo(dtype).eps)


def test_columns_have_the_scores_of_the_scan_that_named_them_in_single_precision():
    # a certificate compares the scores of all columns with those of the working set, whose values are fetched
    single = X.astype(np.float32)
    kernels = bind_partitioned(
        KernelLibrary([Linear(), RBF(0.37), RBF(1.3)]), rows_of(single), np.random.default_rng(0)
    )
    at_known = [kernel.tied_to(single[:25]) for kernel in kernels]
    bound = PartitionedLibrary(at_known, [], range(3), rows_of(single))
    V = np.random.default_rng(0).normal(size=(bound.kernels[0].n_rows, 1))
    columns, scores = bound.best_scores(V, None, centered=False, signed=False)
    values = bound.values(columns).astype(float)
    # each value is rounded once; a few may be rounded the other way
    np.testing.assert_allclose(scores, values.T @ V, atol=1e-9 * np.abs(V).sum())


@pytest.mark.parametrize("unit", [1e-200, 1.0, 1e200])
@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_sizes_of_rows_neither_overflow_nor_lose_their_digits(unit, shift):
    values, share = (X[:7, :3] + shift) * unit, np.array([0.2, 0.3, 0.5])
    found = module._row_sizes(values, share, values @ share, module.Scratch())
    np.testing.assert_allclose(found, column_sizes(values.T, share, centered=True)[0], rtol=1e-12)
    found = module._row_sizes(values, share, 0.0, module.Scratch())
    np.testing.assert_allclose(found, column_sizes(values.T, share, centered=False)[0], rtol=1e-12)

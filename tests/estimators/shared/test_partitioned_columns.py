"""Columns at partitioned rows are those in memory: scales, scores that decide, values, the model they make."""

import numpy as np
import pytest
from checks.fit_order import in_order
from checks.partitions import as_array, problem

from kernelweave import RBF, KernelLibrary, Linear
from kernelweave.estimators.shared import partitioned_columns, scaled_columns
from kernelweave.estimators.shared.centers import choose_centers
from kernelweave.estimators.shared.formulation import Formulation
from kernelweave.estimators.shared.partitioned import LabelRule, read_partitioned
from kernelweave.estimators.shared.sample import Rows, bind, read_as_given
from kernelweave.estimators.ssmk import bind_everywhere
from kernelweave.labels import partition

X, y = in_order(*problem(150, 20)[:2])
LIBRARY = KernelLibrary([Linear(), RBF()])
FLOATS = ("float64", "float32")


def both(column_scale, intercept):
    formulation = Formulation(intercept=intercept)
    sample = read_as_given(Rows(X), partition(y))
    centers = choose_centers("all", sample, np.random.default_rng(0))
    bound = bind(LIBRARY, sample, np.random.default_rng(0))
    in_memory = scaled_columns.ScaledColumns(bound, centers, formulation, column_scale)
    given = read_partitioned("a test", as_array(X, 7), as_array(y, 7), None, None, LabelRule(), FLOATS)
    elsewhere, _ = bind_everywhere({"kernels": LIBRARY}, given, np.random.default_rng(0))
    columns = partitioned_columns.PartitionedColumns(elsewhere.bound, elsewhere.centers, formulation, column_scale)
    return in_memory, columns


@pytest.mark.parametrize("column_scale", ["std", "norm", None])
@pytest.mark.parametrize("intercept", ["free", None])
def test_columns_are_those_in_memory(column_scale, intercept):
    in_memory, columns = both(column_scale, intercept)
    numbers = np.arange(0, 300, 7)
    np.testing.assert_allclose(columns.scales(numbers), in_memory.scales(numbers))
    np.testing.assert_allclose(columns.fetch(numbers), in_memory.fetch(numbers), atol=1e-12)
    np.testing.assert_allclose(columns.means(numbers), in_memory.means(numbers), atol=1e-12)
    V = np.random.default_rng(1).normal(size=(20, 2))
    every = np.concatenate([scores for _, scores in in_memory.price(V, None)])
    [(found, scores)] = columns.price(V, None)
    np.testing.assert_allclose(scores, every[found], atol=1e-9)
    coef = np.random.default_rng(2).normal(size=(len(numbers), 1))
    np.testing.assert_allclose(columns.penalties(numbers, coef), in_memory.penalties(numbers, coef))
    models = [each.expand(numbers, coef, np.zeros(1)) for each in (columns, in_memory)]
    np.testing.assert_allclose(models[0](X), models[1](X), atol=1e-9)
    assert [group.centers.tolist() for group in models[0].groups] == [g.centers.tolist() for g in models[1].groups]
    np.testing.assert_array_equal(columns.candidates.compute(), np.arange(150))

"""Columns of a mixture in memory: what is priced, fetched and scaled is one and the same."""

import numpy as np
import pytest

from kernelweave import RBF, KernelLibrary, Linear
from kernelweave.estimators.shared.centers import choose_centers
from kernelweave.estimators.shared.formulation import Formulation
from kernelweave.estimators.shared.sample import Rows, bind, read_as_given
from kernelweave.estimators.shared.scaled_columns import ScaledColumns
from kernelweave.labels import partition


@pytest.mark.parametrize("intercept", ["free", None])
def test_scores_are_products_with_the_columns_fetched(intercept):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), np.where(np.arange(40) < 12, np.arange(40) % 2, -1)
    sample = read_as_given(Rows(X), partition(y))
    centers = choose_centers(25, sample, np.random.default_rng(0))
    bound = bind(KernelLibrary([Linear(), RBF()]), centers.sample, rng)
    columns = ScaledColumns(bound, centers, Formulation(intercept=intercept), "std")
    V = rng.normal(size=(12, 2))
    numbers = np.arange(bound.n_columns)
    priced = np.concatenate([scores for _, scores in columns.price(V, None)])
    np.testing.assert_allclose(priced, columns.fetch(numbers).T @ V, atol=1e-9)
    assert np.isfinite(columns.scales(numbers)).sum() == 2 * 25
    assert len(columns.candidates) == 25
    np.testing.assert_allclose(columns.fetch(numbers).mean(axis=0) if intercept else 0.0, 0.0, atol=1e-12)


@pytest.mark.parametrize("column_scale", ["std", None])
@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_kernels_that_come_twice_are_priced_once_where_that_changes_nothing(penalty, column_scale):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), np.arange(40) % 2
    sample = read_as_given(Rows(X), partition(y))
    centers = choose_centers("all", sample, np.random.default_rng(0))
    bound = bind(KernelLibrary([Linear(), RBF(), RBF(multiple=2.0), RBF(), Linear()]), centers.sample, rng)
    columns = ScaledColumns(bound, centers, Formulation(penalty=penalty), column_scale)
    expected = [0, 1, 2] if penalty == "l1" and column_scale else [0, 1, 2, 3, 4]
    assert columns.order == expected
    V = rng.normal(size=(40, 1))
    walks = [[None], columns.strata(np.arange(40) < 20)]
    for strata in walks:
        parts = [np.arange(200)[part] for stratum in strata for part, _ in columns.price(V, stratum)]
        numbers = np.sort(np.concatenate(parts))
        np.testing.assert_array_equal(numbers, np.concatenate([40 * p + np.arange(40) for p in expected]))

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

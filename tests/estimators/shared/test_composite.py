import numpy as np
import pytest

from kernelweave import RBF, KernelLibrary, Linear, OnColumns, Precomputed
from kernelweave.estimators.shared.composite import (
    composite_expansion,
    duals_by_row,
    require_definite,
    weights_by_kernel,
)
from kernelweave.estimators.shared.sample import Rows, read_as_given
from kernelweave.labels import partition_targets
from kernelweave.solvers.machines.kernel_stack import KernelStack

X = np.random.default_rng(0).normal(size=(12, 3))


@pytest.fixture
def bound():
    return KernelLibrary([Linear(), RBF(0.5)]).bind(X, np.random.default_rng(0))


@pytest.mark.parametrize("n_sets", [1, 2])
def test_the_expansion_is_the_weighted_sum_of_kernels_at_the_rows_in_use(bound, n_sets):
    rng = np.random.default_rng(1)
    used, coef, intercept = rng.uniform(size=(n_sets, 2)), rng.normal(size=(12, 2)), np.array([1.0, -2.0])
    coef[::3] = 0.0
    expansion = composite_expansion(used, coef, intercept, bound, np.arange(100, 112))
    blocks = [kernel.block(slice(None), slice(None)) for kernel in bound.kernels]
    by_output = np.broadcast_to(used, (2, 2))
    for c in range(2):
        combined = sum(w * K for w, K in zip(by_output[c], blocks, strict=True))
        np.testing.assert_allclose(expansion(X)[:, c], combined @ coef[:, c] + intercept[c], rtol=1e-12)
    assert all((group.centers % 3 != 1).all() and (group.centers >= 100).all() for group in expansion.groups)


def test_kernels_of_weight_zero_and_models_without_duals_are_left_out(bound):
    used = np.array([[0.0, 1.0]])
    assert [
        group.kernel for group in composite_expansion(used, np.ones((12, 1)), np.zeros(1), bound, np.arange(12)).groups
    ] == [1]
    empty = composite_expansion(used, np.zeros((12, 1)), np.array([3.0]), bound, np.arange(12))
    np.testing.assert_array_equal(empty(X), np.full((12, 1), 3.0))


def test_weights_are_told_by_kernel_and_summed_by_source():
    sides = [
        OnColumns(RBF(), [0], source="left"),
        OnColumns(Linear(), [1], source="left"),
        OnColumns(RBF(), [2], source="right"),
    ]
    entries = KernelLibrary(sides).entries
    one = weights_by_kernel(np.array([[0.2, 0.3, 0.5]]), entries)
    np.testing.assert_array_equal(one.weights, [0.2, 0.3, 0.5])
    assert one.source_weights == pytest.approx({"left": 0.5, "right": 0.5})
    several = weights_by_kernel(np.array([[0.2, 0.3, 0.5], [0.4, 0.1, 0.5]]), entries)
    assert several.weights.shape == (2, 3)
    assert [record["weight"] for record in several.kernel_weights] == pytest.approx([0.3, 0.2, 0.5])


def test_duals_are_those_of_the_rows_as_they_were_given():
    sample = read_as_given(Rows(X[:4]), partition_targets([1.0, 2.0, 3.0, 4.0]), [1.0, 0.0, 1.0, 1.0])
    duals = duals_by_row(np.array([[0.5], [0.0], [-0.5]]), sample)
    np.testing.assert_array_equal(duals.dual_coef[:, 0], [0.5, 0.0, 0.0, -0.5])
    np.testing.assert_array_equal(duals.support, [0, 3])


def test_an_indefinite_sum_is_refused_though_no_step_met_it():
    K = np.eye(6) - 0.5
    rows = np.arange(6)[:, None]
    bound = KernelLibrary([Precomputed(K - 2.0 * np.diag([1.0, 0, 0, 0, 0, 0]))]).bind(rows, np.random.default_rng(0))
    stack = KernelStack([bound.kernels[0].block(slice(None), slice(None))], [1.0])
    with pytest.raises(
        ValueError, match="The combined kernel is not positive semi-definite, as MKLClassifier requires"
    ):
        require_definite("MKLClassifier", np.ones((1, 1)), stack, bound, 1e-16)
    require_definite("MKLClassifier", np.zeros((1, 1)), stack, bound, 1e-16)  # without weight it does no harm
    with pytest.raises(ValueError, match="SSMKRegressor"):
        require_definite("MKLRegressor", np.zeros((1, 1)), stack, bound, 1e-16, proven=False)

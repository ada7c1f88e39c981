from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from kernelweave.solvers.machines.kernel_stack import KernelStack
from kernelweave.solvers.machines.weighted_svm import WeightedSVM
from kernelweave.solvers.machines.weights_gradient import (
    GroupLassoStep,
    ProjectedGradientStep,
    ReducedGradientStep,
    _reduced_gradient,
    normalise,
    shorten,
)
from kernelweave.solvers.margin import DualProblem


def machines(seed=0, C=2.0, n=40, norm=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    problem = DualProblem(-y, np.minimum(0.0, C * y), np.maximum(0.0, C * y))
    members = [rbf_kernel(X[:, columns]) for columns in ([0], [1], [0, 1], [2, 3])]
    return WeightedSVM(KernelStack(members), [problem], norm=norm)


@pytest.mark.parametrize("norm", [1.0, 1.5, 3.0])
@pytest.mark.parametrize("seed", range(3))
def test_group_lasso_updates_never_rise(seed, norm):
    svm = machines(seed, norm=norm)
    step, value = GroupLassoStep(svm, lambda value: 1e-10), svm.solve(normalise(np.ones(4), norm), 1e-10)
    for _ in range(10):
        before, (value, name) = value.dual, step(value)
        assert value.dual <= before * (1 + 1e-9)
        assert np.linalg.norm(value.weights, norm) == pytest.approx(1.0)
    assert name == "group lasso"


@pytest.mark.parametrize("seed", range(3))
def test_reduced_gradient_steps_never_rise_and_stay_on_the_simplex(seed):
    svm = machines(seed)
    step, value = ReducedGradientStep(svm, lambda value: 1e-10), svm.solve(np.full(4, 0.25), 1e-10)
    for _ in range(5):
        before, (value, name) = value.dual, step(value)
        assert value.dual <= before * (1 + 1e-9)
        assert value.weights.min() >= 0.0
        assert value.weights.sum() == pytest.approx(1.0)
    assert name == "reduced gradient"


@pytest.mark.parametrize("seed", range(3))
def test_golden_section_finds_the_lowest_point_of_a_step_to_a_tenth(seed):
    svm = machines(seed)
    value, end = (svm.solve(np.array(w), 1e-10) for w in ([0.4, 0.1, 0.4, 0.1], [0.0, 0.5, 0.0, 0.5]))
    step, n_before = end.weights - value.weights, svm.n_solves
    found = ReducedGradientStep(svm, lambda value: 1e-10)._search(value, end, step, 1e-10)
    assert svm.n_solves - n_before < 30
    shares = np.linspace(0.0, 1.0, 101)
    best = shares[np.argmin([svm.solve(value.weights + share * step, 1e-10).dual for share in shares])]
    assert found.weights[1] == pytest.approx(0.1 + 0.4 * best, abs=0.4 * 0.11)
    assert found.dual <= min(value.dual, end.dual)


def test_a_path_ends_where_the_weight_that_takes_up_the_rest_is_gone():
    svm = machines(1)
    value = svm.solve(np.array([0.2, 0.3, 0.2, 0.3]), 1e-10)
    value.__dict__["forms"] = np.array([9.0, 1.0, 8.0, 2.0])  # J falls along all of the first piece
    n_before, (found, _) = svm.n_solves, ReducedGradientStep(svm, lambda value: 1e-10)(value)
    assert found.dual < value.dual
    assert svm.n_solves - n_before < 25


def test_the_reduced_gradient_keeps_the_sum_and_points_downhill():
    svm = machines(3)
    value = svm.solve(np.array([0.5, 0.0, 0.4, 0.1]), 1e-8)
    direction = _reduced_gradient(value, 0)
    assert direction.sum() == pytest.approx(0.0, abs=1e-12)
    assert direction @ value.gradient < 0.0
    assert direction[1] >= 0.0  # a weight of zero does not fall


@pytest.mark.parametrize("norm", [1.0, 2.0, np.inf])
def test_projected_gradient_steps_reach_a_fixed_point(norm):
    svm = machines(4, norm=norm)
    step, value = ProjectedGradientStep(svm, lambda value: 1e-10), svm.solve(normalise(np.ones(4), norm), 1e-10)
    for _ in range(100):
        value, name = step(value)
        if value.relative_gap < 1e-6:
            break
    assert value.relative_gap < 1e-6
    assert name == "projected gradient"


def test_a_step_is_cut_at_the_minimum_of_its_parabola():
    assert shorten(change=1.0, slope=-1.0) == pytest.approx(0.25)  # -t + 2 t^2
    assert shorten(change=-0.9, slope=-1.0) == 0.5
    assert shorten(change=1e9, slope=-1.0) == 0.1


def test_normalised_weights_are_not_negative():
    assert normalise(np.array([3.0, -1e-17, 1.0]), 1.0) == pytest.approx([0.75, 0.0, 0.25])
    assert normalise(np.array([3.0, 4.0]), 2.0) == pytest.approx([0.6, 0.8])


@pytest.mark.parametrize("size", [1e-300, 1.0, 1e250])
def test_equal_slopes_of_any_size_leave_the_weights_where_they_are(size):
    svm = machines(n=10)
    weights = np.full(4, 0.25)
    value = SimpleNamespace(weights=weights, gradient=np.full(4, -size))
    step = ProjectedGradientStep(svm, lambda value: 1e-3)
    with np.errstate(all="raise", under="ignore"):
        np.testing.assert_allclose(step._project(weights - step._step_size(value) * value.gradient), weights)


def test_group_lasso_leaves_the_weights_of_a_zero_function_where_they_are():
    problem = DualProblem(np.zeros(6), np.zeros(6), np.ones(6))
    svm = WeightedSVM(KernelStack([np.eye(6), np.ones((6, 6))]), [problem], norm=2.0)
    weights = normalise(np.array([3.0, 1.0]), 2.0)
    with np.errstate(all="raise", under="ignore"):
        value, _ = GroupLassoStep(svm, lambda value: 1e-3)(svm.solve(weights, 1e-3))
    np.testing.assert_array_equal(value.weights, weights)

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from kernelweave.solvers import simplex
from kernelweave.solvers.machines import weights_newton
from kernelweave.solvers.machines.kernel_stack import KernelStack
from kernelweave.solvers.machines.kernel_weights import solve_kernel_weights
from kernelweave.solvers.machines.weighted_svm import WeightedSVM
from kernelweave.solvers.machines.weights_newton import NewtonStep, _Model
from kernelweave.solvers.margin import DualProblem
from kernelweave.solvers.result import Status

WEIGHTS = np.array([0.5, 0.2, 0.3])


def machines(seed=0, C=2.0, total=0.0, n=40, ridge=0.0, last=1.0):
    """A machine on three kernels, the last one times a factor."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    ends = np.where(y > 0, C, -C)
    problem = DualProblem(-y, np.minimum(0.0, ends), np.maximum(0.0, ends), total=total)
    kernels = [rbf_kernel(X, gamma=0.1), rbf_kernel(X, gamma=0.5), last * rbf_kernel(X, gamma=2.0)]
    return WeightedSVM(KernelStack(kernels), [problem], ridge)


@pytest.mark.parametrize("total", [0.0, None])
@pytest.mark.parametrize("C, ridge", [(2.0, 0.0), (np.inf, 0.3)])
def test_the_hessian_is_that_of_finite_differences(C, ridge, total):
    svm, h = machines(C=C, ridge=ridge, total=total), 1e-6
    hessian = _Model(svm, svm.solve(WEIGHTS, 1e-13)).hessian
    for k, unit in enumerate(np.eye(3)):
        change = svm.solve(WEIGHTS + h * unit, 1e-13).gradient - svm.solve(WEIGHTS - h * unit, 1e-13).gradient
        assert hessian[k] == pytest.approx(change / (2 * h), rel=1e-3, abs=1e-3 * np.abs(hessian).max())


@pytest.mark.parametrize("total", [0.0, None])
def test_the_model_predicts_the_duals(total):
    svm, step = machines(1, total=total), 1e-3 * np.array([1.0, 1.0, -2.0])
    value = svm.solve(WEIGHTS, 1e-12)
    predicted = _Model(svm, value).duals(WEIGHTS + step)[0]
    moved = svm.solve(WEIGHTS + step, 1e-12).duals[0]
    assert np.abs(predicted - moved).max() < 0.05 * np.abs(value.duals[0] - moved).max()


def test_without_free_support_vectors_the_model_is_flat():
    y = np.array([1.0, -1.0])
    problem = DualProblem(-y, np.array([0.0, -0.1]), np.array([0.1, 0.0]))
    svm = WeightedSVM(KernelStack([np.eye(2), 2 * np.eye(2)]), [problem])
    model = _Model(svm, svm.solve(np.full(2, 0.5), 1e-6))
    assert not model.hessian.any()
    assert model.target(1.0) == pytest.approx([0.0, 1.0])


def test_near_the_optimum_the_gap_falls_faster_than_by_a_factor():
    svm = machines(2)
    step, value = NewtonStep(svm, lambda value: 1e-13), svm.solve(np.full(3, 1 / 3), 1e-13)
    gaps = []
    for _ in range(8):
        value, name = step(value)
        assert name == "newton"
        gaps.append(value.relative_gap)
        if gaps[-1] < 1e-9:
            break
    assert gaps[-1] < 1e-9
    assert gaps[-1] < 1e-2 * gaps[-2] < 1e-4 * gaps[0]


def test_a_step_that_does_not_descend_gives_way_to_the_gradient_and_is_recorded(monkeypatch):
    svm = machines(3)
    stack, problems = svm.stack, svm.problems
    best = solve_kernel_weights(stack, problems, tol=1e-8)
    worst = np.eye(3)[np.argmin(best.forms)]
    monkeypatch.setattr(simplex, "minimise_quadratic", lambda H, c: worst)
    found = solve_kernel_weights(stack, problems, tol=1e-5)
    assert found.status is Status.CONVERGED
    assert found.objective == pytest.approx(best.objective, rel=1e-5)
    assert "projected gradient" in {record["step"] for record in found.history}


@pytest.mark.filterwarnings("error")
def test_where_the_hessian_overflows_the_gradient_takes_over():
    svm = machines(5, last=1e180)  # which has no weight yet
    value = svm.solve(np.array([0.5, 0.5, 0.0]), 1e-6)
    found, name = NewtonStep(svm, lambda value: 1e-6)(value)
    assert name == "projected gradient"
    assert found.dual <= value.dual


def test_too_long_a_step_is_shortened(monkeypatch):
    svm = machines(4)
    value = svm.solve(np.full(3, 1 / 3), 1e-10)
    step = NewtonStep(svm, lambda value: 1e-10)
    target = np.eye(3)[np.argmax(value.forms)]
    monkeypatch.setattr(weights_newton._Model, "target", lambda model, norm: target)
    found, name = step(value)
    assert found.dual < value.dual
    assert name == "newton"

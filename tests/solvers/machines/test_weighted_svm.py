import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from kernelweave.solvers.machines import smo
from kernelweave.solvers.machines.kernel_stack import Diagonal, KernelStack
from kernelweave.solvers.machines.weighted_svm import FIRST_BOX, WeightedSVM
from kernelweave.solvers.margin import DualProblem

SCALES = np.array([1.0, 2.0, 0.5])


def machines(seed=0, C=2.0, n=30, **keywords):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    problems = []
    for column in range(2):
        y = np.where(X[:, column] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
        ends = np.where(y > 0, C, -C)
        problems.append(DualProblem(-y, np.minimum(0.0, ends), np.maximum(0.0, ends)))
    return WeightedSVM(KernelStack([rbf_kernel(X, gamma=g) for g in (0.1, 0.5, 2.0)], SCALES), problems, **keywords)


WEIGHTS = np.array([0.5, 0.2, 0.3])


@pytest.mark.parametrize("C, ridge", [(2.0, 0.0), (np.inf, 0.3)])
def test_the_gradient_is_that_of_finite_differences(C, ridge):
    svm = machines(C=C, ridge=ridge)
    gradient, h = svm.solve(WEIGHTS, 1e-12).gradient, 1e-5
    for k, unit in enumerate(np.eye(3)):
        change = svm.solve(WEIGHTS + h * unit, 1e-12).dual - svm.solve(WEIGHTS - h * unit, 1e-12).dual
        assert gradient[k] == pytest.approx(change / (2 * h), rel=1e-5)


def test_the_value_is_the_sum_of_those_of_the_machines():
    svm = machines(ridge=np.linspace(0.0, 1.0, 30))
    value = svm.solve(WEIGHTS, 1e-10)
    K = np.tensordot(WEIGHTS / SCALES, svm.stack.members, 1) + np.diag(np.linspace(0.0, 1.0, 30))
    alone = [smo.solve(K, p.linear, p.lower, p.upper, tol=1e-10) for p in svm.problems]
    assert value.dual == pytest.approx(-sum(one.objective for one in alone), rel=1e-9)
    assert value.multipliers == pytest.approx([one.multiplier for one in alone], abs=1e-4)
    assert value.products.shape == (3, 30, 2)
    X = np.array(value.duals).T
    assert value.forms == pytest.approx(np.einsum("ic,kic->k", X, svm.stack.products(X)))
    assert svm.n_solves == 1


def test_boxes_over_all_points_tell_the_products_of_the_combined_kernel():
    svm, some = machines(), np.arange(1, 30)
    boxes = [DualProblem(p.linear, p.lower, p.upper, total=None) for p in svm.problems]
    value = WeightedSVM(svm.stack, boxes).solve(WEIGHTS, 1e-8)
    products = svm.stack.combine(WEIGHTS) @ np.array(value.duals).T
    np.testing.assert_allclose(value.fitted, products, atol=1e-12)
    few = [DualProblem(p.linear[some], p.lower[some], p.upper[some], None, some) for p in boxes]
    assert WeightedSVM(svm.stack, few).solve(WEIGHTS, 1e-8).fitted is None  # nothing is known of the first point
    assert svm.solve(WEIGHTS, 1e-8).fitted is None  # machines with an offset


@pytest.mark.parametrize("ridge", [0.0, 0.5])
@pytest.mark.parametrize("tol", [1e-1, 1e-2, 1e-4])
@pytest.mark.parametrize("C", [2.0, np.inf])
def test_the_inner_gap_bounds_what_the_machines_miss(C, ridge, tol):
    if np.isinf(C) and not ridge:
        ridge = 1e-3  # the value is infinite where the classes overlap
    svm = machines(1, C=C, ridge=ridge)
    value, best = svm.solve(WEIGHTS, tol), svm.solve(WEIGHTS, 1e-12)
    assert value.accurate
    assert value.proven
    assert value.inner_gap <= tol * value.dual
    assert value.dual <= best.dual * (1 + 1e-10) <= value.objective * (1 + 1e-10)


def test_with_a_ridge_the_gap_is_that_of_the_squared_hinge():
    svm = machines(2, C=np.inf, ridge=0.25)
    value = svm.solve(WEIGHTS, 1e-2)
    gap = 0.0
    for x, offset, problem in zip(value.duals, value.multipliers, svm.problems, strict=True):
        y, K = -problem.linear, np.tensordot(WEIGHTS / SCALES, svm.stack.members, 1)
        loss = 0.5 / 0.25 * (np.maximum(0.0, 1.0 - y * (K @ x - offset)) ** 2).sum()  # C/2 xi^2 with C = 1/ridge
        gap += 0.5 * x @ K @ x + loss - (y @ x - 0.5 * x @ K @ x - 0.5 * 0.25 * x @ x)
    assert value.inner_gap == pytest.approx(gap, rel=1e-6)


def test_an_infinite_box_is_opened_until_it_does_not_bind():
    svm, weights = machines(3, C=np.inf, ridge=1e-8), 1e-4 * WEIGHTS  # the smaller the kernel, the larger the duals
    value = svm.solve(weights, 1e-6)
    assert np.abs(np.concatenate(value.duals)).max() > FIRST_BOX
    assert value.accurate
    K = svm.kernel(weights)
    for x, offset, problem in zip(value.duals, value.multipliers, svm.problems, strict=True):
        margins = (K @ x - offset) * -problem.linear
        assert margins[x != 0] == pytest.approx(1.0, abs=1e-2)


def test_machines_trained_many_times_at_one_place_still_end():
    svm = machines(C=np.inf, ridge=0.3)
    value = svm.solve(WEIGHTS, 1e-3)
    for _ in range(400):  # each start is better than asked for
        value = svm.solve(WEIGHTS, 1e-3, start=value.duals)
    assert svm.solve(np.array([0.0, 0.0, 1.0]), 1e-10).inner_gap <= 1e-10 * value.dual


def test_an_infinite_value_is_no_value():
    stack = KernelStack([np.zeros((4, 4)), Diagonal(np.ones(4))])
    y = np.array([1.0, 1.0, -1.0, -1.0])
    bounds = np.where(y > 0, 0.0, -np.inf), np.where(y > 0, np.inf, 0.0)
    svm = WeightedSVM(stack, [DualProblem(-y, *bounds)])
    assert svm.solve(np.array([1.0, 0.0]), 1e-3).objective == np.inf
    assert svm.solve(np.array([0.5, 0.5]), 1e-3).objective == pytest.approx(4.0, rel=1e-3)


@pytest.mark.parametrize("norm", [1.0, 1.001, 2.0, np.inf])
def test_the_outer_gap_vanishes_at_no_weights_but_the_best(norm):
    svm = machines(4, norm=norm)
    value = svm.solve(WEIGHTS / np.linalg.norm(WEIGHTS, norm), 1e-10)
    q = value.forms
    best = {1.0: q.max(), 2.0: np.sqrt(q @ q), np.inf: q.sum()}.get(norm, q.max() * (1 + 1e-3))
    assert value.outer_gap == pytest.approx(0.5 * (best - value.weights @ q), rel=5e-3)
    assert value.gap == value.outer_gap + value.inner_gap
    assert value.relative_gap == pytest.approx(value.gap / value.objective)


def test_a_problem_of_fewer_rows_that_stand_for_copies_has_the_same_value():
    svm = machines(3, n=20)
    copies = np.repeat(np.arange(20), 3)  # each row three times
    stack = svm.stack.at(copies)
    many = [DualProblem(p.linear[copies], p.lower[copies], p.upper[copies], index=np.arange(60)) for p in svm.problems]
    rows = np.arange(1, 60, 3)
    few = [p.at(rows, 1 / 3) for p in many]
    assert few[0].rows == pytest.approx(np.arange(20))
    whole, part = WeightedSVM(stack, many, ridge=0.3), WeightedSVM(stack.at(rows), few, ridge=0.1)
    assert part.solve(WEIGHTS, 1e-10).dual == pytest.approx(whole.solve(WEIGHTS, 1e-10).dual, rel=1e-8)

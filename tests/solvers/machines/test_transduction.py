import numpy as np
import pytest
from checks.transduction import convex_problem, hinge, ramp, virtual_sample_dual
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel

from kernelweave.solvers.machines import transduction
from kernelweave.solvers.machines.kernel_stack import Factor, KernelStack
from kernelweave.solvers.machines.kernel_weights import solve_kernel_weights
from kernelweave.solvers.machines.transduction import TransductiveMachine, solve_transduction
from kernelweave.solvers.result import Status

ACCURATE = 1e-9
MEANS = [None, 0.0, 0.3]


def sample(seed=0, n=30, n_labeled=10):
    """Rows, labels of the first of them, and costs that differ."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    truth = np.where(X[:, 0] + 0.3 * rng.normal(size=n) > 0, 1.0, -1.0)
    truth[:2] = [1.0, -1.0]
    X[:, 0] += truth
    return X, truth[:n_labeled], rng.uniform(0.5, 2.0, size=n_labeled), rng.uniform(0.2, 1.5, size=n - n_labeled)


def machine_of(y, cost, cost_unlabeled, mean, s=0.4):
    n_labeled, n = len(y), len(y) + len(cost_unlabeled)
    return TransductiveMachine(np.arange(n_labeled), np.arange(n_labeled, n), y, cost, cost_unlabeled, mean, s)


def centered(K, cost_unlabeled):
    """The kernel with its origin at the weighted mean of the unlabelled rows."""
    share = np.r_[np.zeros(len(K) - len(cost_unlabeled)), cost_unlabeled / cost_unlabeled.sum()]
    means = K @ share
    return K - means - means[:, None] + share @ means


def stack_for(kernels, cost_unlabeled, mean):
    return KernelStack([K if mean is None else centered(K, cost_unlabeled) for K in kernels])


def train(stack, problems, weights=None, duals=None, products=None, tol=ACCURATE):
    return solve_kernel_weights(stack, problems, start=weights, start_duals=duals, start_products=products, tol=tol)


def solve(stack, machines, accuracy=ACCURATE, **options):
    """Descend with convex machines of some accuracy."""

    def train_at_least(problems, weights, duals, products, tol):
        return train(stack, problems, weights, duals, products, min(accuracy, tol))

    return solve_transduction(stack, machines, train_at_least, **options)


def problem_of(machine, kernels, slopes):
    """The printed convex problem of a machine."""
    return convex_problem(kernels, machine.signs, machine.cost, machine.cost_unlabeled, slopes, machine.s, machine.mean)


def printed_objective(machine, values, half_norm):
    """Problem (2), from outputs at all rows."""
    labeled, unlabeled = values[machine.labeled], values[machine.unlabeled]
    ramps = ramp(unlabeled, machine.s) + ramp(-unlabeled, machine.s)
    return half_norm + machine.cost @ hinge(machine.signs * labeled) + machine.cost_unlabeled @ ramps


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("seed", range(3))
def test_a_step_solves_the_printed_problem_for_any_slopes(seed, mean):
    X, y, cost, cost_unlabeled = sample(seed)
    K = rbf_kernel(X, gamma=0.3)
    machine = machine_of(y, cost, cost_unlabeled, mean)
    slopes = -np.random.default_rng(seed).integers(0, 2, size=(2, len(cost_unlabeled))).astype(float)
    stack = stack_for([K], cost_unlabeled, mean)
    dual = machine.dual(slopes)
    found = train(stack, [dual])
    value, g = problem_of(machine, [K], slopes)
    assert found.objective + machine.constant(slopes) == pytest.approx(value, rel=1e-7)
    point = transduction._make_point(stack, [machine], [dual], found)
    # The problem is strongly convex in f with modulus 1 and the diagonal of K is 1 (2 if centred): the root of the gap.
    np.testing.assert_allclose(point.values[:, 0], g, atol=3e-4)


@pytest.mark.parametrize("mean", MEANS)
def test_a_step_with_several_kernels_learns_the_best_weights(mean):
    X, y, cost, cost_unlabeled = sample(4)
    kernels = [rbf_kernel(X, gamma=0.1), rbf_kernel(X, gamma=1.0), linear_kernel(X) / 3]
    machine = machine_of(y, cost, cost_unlabeled, mean)
    slopes = -np.random.default_rng(4).integers(0, 2, size=(2, len(cost_unlabeled))).astype(float)
    found = train(stack_for(kernels, cost_unlabeled, mean), [machine.dual(slopes)])
    value, _ = problem_of(machine, kernels, slopes)
    assert found.objective + machine.constant(slopes) == pytest.approx(value, rel=1e-7)
    assert found.x.sum() == pytest.approx(1.0)
    assert found.x.min() >= 0


@pytest.mark.parametrize("mean", [0.0, 0.3, -0.7])
@pytest.mark.parametrize("seed", range(2))
def test_a_centred_kernel_without_offset_is_the_virtual_sample_of_collobert(seed, mean):
    X, y, cost, cost_unlabeled = sample(seed)
    K = rbf_kernel(X, gamma=0.3)
    slopes = -np.random.default_rng(seed).integers(0, 2, size=(2, len(cost_unlabeled))).astype(float)
    machine = machine_of(y, cost, cost_unlabeled, mean)
    found = train(stack_for([K], cost_unlabeled, mean), [machine.dual(slopes)])
    expected = virtual_sample_dual(K, y, cost, cost_unlabeled, slopes, machine.s, mean)
    assert found.objective + machine.constant(slopes) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("s", [0.0, 0.4, 0.9])
@pytest.mark.parametrize("mean", MEANS)
def test_the_objective_is_that_of_the_printed_problem(mean, s):
    X, y, cost, cost_unlabeled = sample(5)
    K = rbf_kernel(X, gamma=0.3)
    machine = machine_of(y, cost, cost_unlabeled, mean, s)
    stack = stack_for([K], cost_unlabeled, mean)
    result = solve(stack, [machine], tol=1e-6)
    point = result.point
    half_norm = 0.5 * point.by_rows[:, 0] @ stack.combine(np.ones(1)) @ point.by_rows[:, 0]
    expected = printed_objective(machine, point.values[:, 0], half_norm)
    assert result.objective == pytest.approx(expected, rel=1e-12)
    if mean is not None:
        assert np.average(point.values[machine.unlabeled, 0], weights=cost_unlabeled) == pytest.approx(mean, abs=1e-9)


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("seed", range(3))
def test_the_certificate_bounds_the_distance_from_the_minimum_of_the_own_convex_problem(seed, mean):
    X, y, cost, cost_unlabeled = sample(seed)
    K = rbf_kernel(X, gamma=0.3)
    machine = machine_of(y, cost, cost_unlabeled, mean)
    stack = stack_for([K], cost_unlabeled, mean)
    result = solve(stack, [machine], accuracy=1e-4, tol=1e-4)
    assert result.status is Status.CONVERGED
    assert result.certificate.kind == "stationarity"
    assert result.certificate.relative <= 1e-4
    point = result.point
    slopes = machine.slopes(point.values[:, 0])
    np.testing.assert_array_equal(point.slopes[0], slopes)
    minimum, _ = problem_of(machine, [K], slopes)
    assert result.objective - minimum <= result.certificate.gap + 1e-8 * result.objective
    assert result.objective - minimum >= -1e-8 * result.objective  # it touches the objective from above


@pytest.mark.parametrize("mean", MEANS)
def test_the_objective_falls_within_each_stage(mean):
    X, y, cost, cost_unlabeled = sample(6)
    kernels = [rbf_kernel(X, gamma=0.3), linear_kernel(X) / 3]
    machine = machine_of(y, cost, cost_unlabeled, mean)
    stack = stack_for(kernels, cost_unlabeled, mean)
    result = solve(stack, [machine], stages=(0.1, 0.5, 1.0), tol=1e-7)
    assert [*dict.fromkeys(record["stage"] for record in result.history)] == [0.1, 0.5, 1.0]
    for stage in (0.1, 0.5, 1.0):
        course = [record["objective"] for record in result.history if record["stage"] == stage]
        assert np.all(np.diff(course) <= ACCURATE * course[0])
    assert result.n_iter == len(result.history)
    assert result.n_solves == result.history[-1]["n_solves"] >= result.n_iter


def test_machines_that_share_weights_solve_one_problem():
    X, y, cost, cost_unlabeled = sample(7)
    kernels = [rbf_kernel(X, gamma=0.3), linear_kernel(X) / 3]
    machines = [machine_of(signs, cost, cost_unlabeled, mean) for signs, mean in ((y, 0.2), (-y, -0.2))]
    stack = stack_for(kernels, cost_unlabeled, 0.2)
    both = solve(stack, machines, tol=1e-7)
    one = solve(stack, machines[:1], tol=1e-7)
    # the second is the first with other signs, so the weights are the same and all costs twice
    assert both.objective == pytest.approx(2 * one.objective, rel=1e-6)
    np.testing.assert_allclose(both.x, one.x, atol=1e-3)
    np.testing.assert_allclose(both.point.values[:, 0], -both.point.values[:, 1], atol=1e-3)


def test_without_cost_of_unlabelled_points_the_problem_is_convex_and_solved_once():
    X, y, cost, cost_unlabeled = sample(8)
    K = rbf_kernel(X, gamma=0.3)
    machine = machine_of(y, cost, 0 * cost_unlabeled, None)
    result = solve(KernelStack([K]), [machine], stages=(0.5, 1.0), tol=1e-6)
    alone = train(KernelStack([K[:10, :10].copy()]), [machine_of(y, cost, np.empty(0), None).dual()])
    assert result.certificate.kind == "duality gap"
    assert result.objective == pytest.approx(alone.objective, rel=1e-6)
    assert {record["stage"] for record in result.history} == {1.0}


def test_factors_and_matrices_give_the_same_point():
    X, y, cost, cost_unlabeled = sample(9)
    machine = machine_of(y, cost, cost_unlabeled, None)
    dense = solve(KernelStack([linear_kernel(X)]), [machine], tol=1e-7)
    low_rank = solve(KernelStack([Factor(X)]), [machine], tol=1e-7)
    assert dense.objective == pytest.approx(low_rank.objective, rel=1e-7)


# The duals of copies


def test_the_copies_of_a_point_share_its_row_and_the_slopes_move_their_boxes():
    machine = machine_of(np.array([1.0, -1.0]), np.array([2.0, 3.0]), np.array([5.0]), None)
    dual = machine.dual(np.array([[0.0], [-1.0]]))
    assert dual.rows.tolist() == [0, 1, 2, 2]
    assert dual.linear.tolist() == [-1.0, 1.0, -1.0, 1.0]
    assert dual.lower.tolist() == [0.0, -3.0, 0.0, 0.0]  # copy -1: [-5, 0] + 5
    assert dual.upper.tolist() == [2.0, 0.0, 5.0, 5.0]
    assert dual.total == 0.0
    assert machine_of(np.array([1.0, -1.0]), np.ones(2), np.ones(1), 0.25).dual().total is None
    assert machine.dual().rows.tolist() == [0, 1]


def test_slopes_are_those_of_hinges_below_their_end():
    machine = machine_of(np.array([1.0]), np.ones(1), np.ones(5), None, s=0.4)
    values = np.array([9.0, -1.0, -0.4, 0.0, 0.4, 1.0])
    assert machine.slopes(values).tolist() == [[-1, -1, -1, 0, 0], [0, 0, -1, -1, -1]]


# Flat ramps


@pytest.mark.parametrize("outputs", [[0.1, -0.2, 0.3], [1e-9, 0.0, 0.0], [-1e-300, 1e-300, 0.0]], ids=str)
def test_outputs_within_the_flat_part_are_stretched_beyond_it(outputs):
    machine = machine_of(np.array([1.0]), np.ones(1), np.ones(3), None)
    stretched = machine.stretched(np.array([0.0, *outputs]))
    assert np.abs(stretched[1:] - np.mean(outputs)).max() >= machine.s
    np.testing.assert_array_equal(np.sign(stretched[1:] - np.mean(outputs)), np.sign(outputs - np.mean(outputs)))


def test_outputs_are_stretched_about_their_mean():
    # With small costs outputs are the mean that the balance asks for, and next to nothing beside it.
    machine = machine_of(np.array([1.0]), np.ones(1), np.ones(4), 0.2)
    stretched = machine.stretched(0.2 + 0.01 * np.array([0.0, 1.0, 2.0, -1.0, -2.0]))
    slopes = machine.slopes(stretched)
    assert (slopes[0] < slopes[1]).any()
    assert (slopes[0] > slopes[1]).any()


@pytest.mark.parametrize("outputs", [[0.1, -0.2, 0.9], [0.0, 0.0, 0.0], [0.9, 0.0, 0.0]], ids=str)
def test_outputs_beyond_the_flat_part_or_without_a_sign_stay(outputs):
    machine = machine_of(np.array([1.0]), np.ones(1), np.ones(3), None)
    assert machine.stretched(np.array([0.0, *outputs])) is None


@pytest.mark.parametrize("stages", [(1.0,), (0.25, 1.0)], ids=str)
@pytest.mark.parametrize("share", [0.01, 1.0])
def test_a_stretched_start_is_left_for_a_point_with_an_objective(share, stages):
    X, y, cost, cost_unlabeled = sample(10)
    K = rbf_kernel(X, gamma=0.3)
    machine = machine_of(y, 0.01 * cost, share * cost_unlabeled, 0.0)
    result = solve(stack_for([K], cost_unlabeled, 0.0), [machine], stages=stages, tol=1e-5)
    point = result.point
    assert result.history[0]["stretched"]
    assert result.objective == pytest.approx(printed_objective(machine, point.values[:, 0], point.half_norm))
    assert all(np.isfinite(record["objective"]) for record in result.history)


# How it ends


def test_the_limit_is_a_status():
    X, y, cost, cost_unlabeled = sample(12)
    machine = machine_of(y, cost, cost_unlabeled, 0.3)
    stack = stack_for([rbf_kernel(X, gamma=0.3)], cost_unlabeled, 0.3)
    whole = solve(stack, [machine], tol=1e-9)
    result = solve(stack, [machine], tol=1e-9, max_iter=1)
    assert result.status is Status.MAX_ITER
    assert result.n_iter == 1 < whole.n_iter
    assert result.objective >= whole.objective


def stopped(after):
    """A descent in four stages that a callback ends, its machine, and what the callback saw."""
    X, y, cost, cost_unlabeled = sample(12)
    machine = machine_of(y, cost, cost_unlabeled, 0.0)
    stack = stack_for([rbf_kernel(X)], cost_unlabeled, 0.0)
    seen = []

    def callback(state):
        seen.append(state)
        return len(seen) == after

    result = solve(stack, [machine], stages=(0.1, 0.2, 0.5, 1.0), tol=1e-12, callback=callback)
    return result, machine, seen


def test_a_callback_ends_all_stages():
    result, _, seen = stopped(3)
    assert len(seen) == result.n_iter == 3
    assert result.status is Status.CALLBACK


def test_a_callback_that_stops_where_a_stage_ends_stops_the_others():
    result, _, seen = stopped(1)  # here the first stage ends by itself after one step
    assert len(seen) == 1
    assert result.status is Status.CALLBACK


def test_a_descent_ended_by_a_callback_has_the_objective_of_the_whole_problem():
    result, machine, _ = stopped(3)
    point = result.point
    assert result.objective == pytest.approx(printed_objective(machine, point.values[:, 0], point.half_norm))


def test_another_start_may_end_elsewhere_but_solves_the_same_problem():
    X, y, cost, cost_unlabeled = sample(13)
    machine = machine_of(y, cost, cost_unlabeled, 0.0)
    stack = stack_for([rbf_kernel(X)], cost_unlabeled, 0.0)
    start = [cost * np.random.default_rng(0).exponential(size=len(cost))]
    result = solve(stack, [machine], start=start, tol=1e-6)
    point = result.point
    assert result.objective == pytest.approx(printed_objective(machine, point.values[:, 0], point.half_norm))
    np.testing.assert_array_equal(machine.cost, cost)


def test_inputs_are_not_overwritten():
    X, y, cost, cost_unlabeled = sample(14)
    arrays = [rbf_kernel(X), y, cost, cost_unlabeled]
    for array in arrays:
        array.setflags(write=False)
    solve(KernelStack([arrays[0]]), [machine_of(*arrays[1:], None)], stages=(0.5, 1.0), tol=1e-4)

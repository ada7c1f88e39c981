import numpy as np
import pytest

from kernelweave.solvers.deadline import Deadline, OutOfTimeError
from kernelweave.solvers.machines import box_programs, kernel_stack, smo, weighted_svm
from kernelweave.solvers.machines.box_programs import DenseKernel, FeatureKernel, solve_boxes
from kernelweave.solvers.machines.kernel_stack import Factor, KernelStack
from kernelweave.solvers.machines.kernel_weights import solve_kernel_weights
from kernelweave.solvers.machines.weighted_svm import WeightedSVM
from kernelweave.solvers.margin import DualProblem
from kernelweave.solvers.result import Status


def problem(seed, n=80, n_features=6, scale=1.0):
    """Features, and a box that is moved for some variables, two of which share a row."""
    rng = np.random.default_rng(seed)
    Z = scale * rng.normal(size=(n, n_features)) * np.exp(-np.arange(n_features))
    rows = np.concatenate([np.arange(n), np.arange(n // 2)])
    signs = np.where(rng.random(len(rows)) < 0.5, 1.0, -1.0)
    moved = np.where(rng.random(len(rows)) < 0.3, -signs, 0.0)
    reach = signs * rng.uniform(0.1, 3.0, len(rows))
    return Z, -signs + 0.2, np.minimum(0.0, reach) + moved, np.maximum(0.0, reach) + moved, rows


def solve_low_rank(Z, linear, lower, upper, *, index=None, start=None, kernel=FeatureKernel, **options):
    """The only problem of a kernel ``ZZ'``."""
    shared = kernel(Z) if kernel is FeatureKernel else kernel(Z @ Z.T)
    return solve_boxes(shared, [DualProblem(linear, lower, upper, None, index)], starts=[start], **options)[0]


def gap(Z, linear, lower, upper, rows, x):
    """The duality gap, recomputed."""
    g = Z[rows] @ (Z[rows].T @ x) + linear
    return float(np.sum(np.where(g > 0, g * (x - lower), g * (x - upper))))


@pytest.mark.parametrize("small", [10_000, 20], ids=["small problem", "sweeps"])
@pytest.mark.parametrize("kernel", [FeatureKernel, DenseKernel])
@pytest.mark.parametrize("seed", range(6))
def test_it_reaches_the_optimum_of_smo_on_the_kernel_matrix(monkeypatch, seed, kernel, small):
    monkeypatch.setattr(box_programs, "MAX_DENSE_VARIABLES", small)
    Z, linear, lower, upper, rows = problem(seed, scale=10.0 ** (seed % 3 - 1))
    found = solve_low_rank(Z, linear, lower, upper, index=rows, tol=1e-8, kernel=kernel)
    oracle = smo.solve(Z @ Z.T, linear, lower, upper, total=None, index=rows, tol=1e-10)
    assert found.status is Status.CONVERGED
    assert found.objective == pytest.approx(oracle.objective, rel=1e-7)
    assert found.certificate.gap == pytest.approx(gap(Z, linear, lower, upper, rows, found.x), abs=1e-9)
    assert found.objective - oracle.objective <= found.certificate.gap + 1e-9 * abs(oracle.objective)
    assert np.all((lower <= found.x) & (found.x <= upper))
    np.testing.assert_allclose(found.gradient, Z[rows] @ (Z[rows].T @ found.x) + linear, atol=1e-9)


@pytest.mark.parametrize("kernel", [FeatureKernel, DenseKernel])
@pytest.mark.parametrize("scale", [1e70, 1e85, 1e100])
def test_rounds_that_gain_nothing_end_early(scale, kernel):
    Z, linear, lower, upper, rows = problem(0, scale=scale)  # steps are 1e-140 long, or shorter
    found = solve_low_rank(Z, linear, lower, upper, index=rows, tol=1e-8, kernel=kernel)
    assert found.status is Status.PRECISION
    assert found.n_iter < box_programs.PATIENCE * box_programs.MAX_STALLS  # which are rounds without progress, too


def test_variables_are_rows_unless_said_otherwise():
    Z, linear, lower, upper, _ = problem(1)
    n = len(Z)
    found = solve_low_rank(Z, linear[:n], lower[:n], upper[:n], tol=1e-8)
    oracle = smo.solve(Z @ Z.T, linear[:n], lower[:n], upper[:n], total=None, tol=1e-10)
    assert found.objective == pytest.approx(oracle.objective, rel=1e-7)


def test_a_start_at_the_optimum_ends_at_once():
    Z, linear, lower, upper, rows = problem(2)
    first = solve_low_rank(Z, linear, lower, upper, index=rows, tol=1e-6)
    again = solve_low_rank(Z, linear, lower, upper, index=rows, tol=1e-6, start=first.x)
    assert again.n_iter == 0
    np.testing.assert_array_equal(again.x, first.x)


def test_the_limit_is_a_status_with_an_honest_gap():
    Z, linear, lower, upper, rows = problem(3)
    found = solve_low_rank(Z, linear, lower, upper, index=rows, tol=1e-12, max_rounds=0)
    assert found.status is Status.MAX_ITER
    assert found.certificate.gap == pytest.approx(gap(Z, linear, lower, upper, rows, found.x))


@pytest.mark.parametrize("small", [10_000, 1], ids=["small problem", "sweeps"])
def test_rows_without_features_and_variables_without_room_are_no_trouble(monkeypatch, small):
    monkeypatch.setattr(box_programs, "MAX_DENSE_VARIABLES", small)
    Z = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    found = solve_low_rank(
        Z, np.array([-1.0, -1.0, 1.0]), np.array([0.0, 0.5, -1.0]), np.array([2.0, 0.5, 0.0]), tol=1e-9
    )
    np.testing.assert_allclose(found.x, [2.0, 0.5, -0.25], atol=1e-6)


def test_a_tolerance_below_rounding_ends():
    Z, linear, lower, upper, rows = problem(4, scale=1e3)
    found = solve_low_rank(Z, linear, lower, upper, index=rows, tol=1e-30, max_rounds=500)
    assert found.status in (Status.PRECISION, Status.CONVERGED)


def test_in_terms_of_moves_the_problem_of_smo_is_the_same_with_its_value_as_constant():
    Z, linear, lower, upper, rows = problem(5)
    K = Z @ Z.T
    whole = smo.solve(K, linear, lower, upper, total=None, index=rows, tol=1e-9)
    x = np.clip(np.random.default_rng(0).normal(size=len(rows)), lower, upper)
    gradient = K[np.ix_(rows, rows)] @ x + linear
    options = {"total": None, "index": rows, "constant": 0.5 * x @ (gradient + linear)}
    moved = smo.solve(K, gradient, lower - x, upper - x, tol=1e-9, **options)
    assert moved.objective == pytest.approx(whole.objective, rel=1e-8)
    # accuracy is relative to the whole objective, not to what is gained
    options["constant"] = whole.objective
    again = smo.solve(K, whole.gradient, lower - whole.x, upper - whole.x, tol=1e-3, **options)
    assert again.n_iter == 0


# Several problems


def several(seed, n_problems=5):
    """Features, and boxes and linear terms that differ."""
    Z, linear, lower, upper, rows = problem(seed)
    rng = np.random.default_rng(seed)
    scales = rng.uniform(0.2, 2.0, n_problems)
    signs = np.where(rng.random((n_problems, len(rows))) < 0.7, 1.0, -1.0)
    boxes = [np.sort([s * k * lower, s * k * upper], axis=0) for s, k in zip(signs, scales, strict=True)]
    return Z, [DualProblem(s * linear, *box, None, rows) for s, box in zip(signs, boxes, strict=True)]


@pytest.mark.parametrize("kernel", [FeatureKernel, DenseKernel])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_problems_that_share_a_kernel_reach_the_optima_that_they_reach_alone(kernel, n_threads):
    Z, problems = several(5)
    shared = kernel(Z) if kernel is FeatureKernel else kernel(Z @ Z.T)
    found = solve_boxes(shared, problems, tol=1e-8, n_threads=n_threads)
    for p, result in zip(problems, found, strict=True):
        oracle = smo.solve(Z @ Z.T, p.linear, p.lower, p.upper, total=None, index=p.rows, tol=1e-10)
        assert result.status is Status.CONVERGED
        assert result.objective == pytest.approx(oracle.objective, rel=1e-7)
        assert result.certificate.gap == pytest.approx(gap(Z, p.linear, p.lower, p.upper, p.rows, result.x), abs=1e-9)


def test_what_is_at_its_optimum_costs_no_product_where_that_is_known():
    Z, problems = several(6)
    first = solve_boxes(DenseKernel(Z @ Z.T), problems, tol=1e-8)
    starts = [result.x for result in first]
    sums = np.column_stack([np.bincount(p.rows, x, len(Z)) for p, x in zip(problems, starts, strict=True)])

    class Counted(DenseKernel):
        n_vectors = 0

        def products(self, X):
            self.n_vectors += X.shape[1]
            return super().products(X)

    kernel = Counted(Z @ Z.T)
    again = solve_boxes(kernel, problems, starts=starts, products=kernel.K @ sums, tol=1e-7)
    assert kernel.n_vectors == 0
    assert [result.n_iter for result in again] == [0] * len(problems)
    starts[2] = np.zeros(len(starts[2]))  # one of them is not
    moved = kernel.K @ sums
    moved[:, 2] = 0.0
    again = solve_boxes(kernel, problems, starts=starts, products=moved, tol=1e-7)
    assert 0 < again[2].n_iter <= kernel.n_vectors <= again[2].n_iter + 1  # one more where the start is not zero
    assert again[2].objective == pytest.approx(first[2].objective, rel=1e-6)


def test_features_form_the_matrix_once_as_many_entries_were_asked_for(monkeypatch):
    Z, problems = several(6)
    kernel = FeatureKernel(Z)
    kernel.note(len(Z) ** 2 - 1)
    assert kernel.K is None
    kernel.note(1)
    np.testing.assert_allclose(kernel.K, Z @ Z.T, atol=1e-12)
    monkeypatch.setattr(box_programs, "MAX_DENSE_VARIABLES", 1)  # no sweeps: it is there
    monkeypatch.setattr(box_programs, "_sweep", None)
    for p, result in zip(problems, solve_boxes(kernel, problems, tol=1e-8), strict=True):
        oracle = smo.solve(Z @ Z.T, p.linear, p.lower, p.upper, total=None, index=p.rows, tol=1e-10)
        assert result.objective == pytest.approx(oracle.objective, rel=1e-7)
        assert result.certificate.gap == pytest.approx(gap(Z, p.linear, p.lower, p.upper, p.rows, result.x), abs=1e-9)


def test_features_form_no_matrix_that_is_too_large(monkeypatch):
    monkeypatch.setattr(box_programs, "MAX_KEPT_ENTRIES", 80**2 - 1)
    Z, problems = several(6)
    kernel = FeatureKernel(Z)
    solve_boxes(kernel, problems, tol=1e-8)
    assert kernel.n_computed > 80**2
    assert kernel.K is None


def test_a_deadline_leaves_one_step_and_then_says_that_it_is_over():
    Z, problems = several(7)
    over = Deadline(1e-9)
    with pytest.raises(OutOfTimeError, match="before all of 5 machines were trained"):
        solve_boxes(FeatureKernel(Z), problems, tol=1e-8, deadline=over)


def test_an_indefinite_matrix_is_left_to_smo():
    Z, linear, lower, upper, rows = problem(8)
    K = Z @ Z.T - 0.5 * np.eye(len(Z))
    found = solve_boxes(DenseKernel(K), [DualProblem(linear, lower, upper, None, rows)], tol=1e-6)[0]
    assert found.certificate.kind == "stationarity"


# Through the weights of kernels


def stack_and_problems(seed, n=60):
    rng = np.random.default_rng(seed)
    members = [Factor(rng.normal(size=(n, k))) for k in (3, 5, 2)]
    signs = [np.where(rng.random(n) < 0.5, 1.0, -1.0) for _ in range(2)]
    problems = [DualProblem(0.1 - y, np.minimum(0.0, 2 * y), np.maximum(0.0, 2 * y), total=None) for y in signs]
    return KernelStack(members, [1.0, 4.0, 0.5]), problems


@pytest.mark.parametrize("norm", [1.0, 2.0])
def test_machines_on_features_are_machines_on_their_kernels(monkeypatch, norm):
    stack, problems = stack_and_problems(0)
    dense = solve_kernel_weights(stack, problems, norm=norm, tol=1e-7)
    monkeypatch.setattr(kernel_stack, "MAX_DENSE_POINTS", 10)
    stack, problems = stack_and_problems(0)
    assert WeightedSVM(stack, problems, 0.0, norm).low_rank
    monkeypatch.setattr(KernelStack, "combine", None)  # no matrix of all points is formed
    found = solve_kernel_weights(stack, problems, norm=norm, tol=1e-7)
    assert found.objective == pytest.approx(dense.objective, rel=1e-6)
    assert found.certificate.relative <= 1e-7


def test_a_ridge_or_a_dense_kernel_needs_the_matrix(monkeypatch):
    monkeypatch.setattr(kernel_stack, "MAX_DENSE_POINTS", 10)
    stack, problems = stack_and_problems(1)
    assert not WeightedSVM(stack, problems, ridge=0.1).low_rank
    assert not WeightedSVM(KernelStack([*stack.members, np.eye(60)]), problems).low_rank


@pytest.mark.parametrize("norm", [1.0, 2.0])
def test_an_equality_over_many_points_needs_no_matrix(monkeypatch, norm):
    def tied():
        stack, problems = stack_and_problems(3)
        return stack, [DualProblem(p.linear, p.lower, p.upper, total=0.0) for p in problems]

    dense = solve_kernel_weights(*tied(), norm=norm, tol=1e-7)
    for module in (kernel_stack, weighted_svm):
        monkeypatch.setattr(module, "MAX_DENSE_POINTS", 10)
    monkeypatch.setattr(KernelStack, "combine", None)
    found = solve_kernel_weights(*tied(), norm=norm, tol=1e-7)
    assert found.certificate.relative <= 1e-7
    assert found.objective == pytest.approx(dense.objective, rel=1e-6)
    np.testing.assert_allclose(found.multipliers, dense.multipliers, atol=1e-3)


def test_an_equality_over_few_points_needs_the_matrix_of_these(monkeypatch):
    def tied():
        stack, problems = stack_and_problems(2)
        here = np.arange(0, 60, 3)
        return stack, [DualProblem(p.linear[here], p.lower[here], p.upper[here], 0.0, here) for p in problems]

    dense = solve_kernel_weights(*tied(), tol=1e-7)
    monkeypatch.setattr(kernel_stack, "MAX_DENSE_POINTS", 30)
    stack, problems = tied()
    assert WeightedSVM(stack, problems).low_rank
    monkeypatch.setattr(KernelStack, "combine", None)
    found = solve_kernel_weights(stack, problems, tol=1e-7)
    assert found.objective == pytest.approx(dense.objective, rel=1e-6)
    np.testing.assert_allclose(found.multipliers, dense.multipliers, atol=1e-3)

import numpy as np
import pytest
from sklearn.datasets import make_friedman1
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel

from kernelweave.solvers.machines import kernel_weights, smo
from kernelweave.solvers.machines.kernel_stack import Diagonal, Factor, KernelStack
from kernelweave.solvers.machines.kernel_weights import solve_kernel_weights
from kernelweave.solvers.margin import DualProblem
from kernelweave.solvers.result import Status

# Clarabel says so where it does not reach its own tolerance; the tests allow it 1e-6.
pytestmark = pytest.mark.filterwarnings("ignore:Solution may be inaccurate")

METHODS = list(kernel_weights.STEPS)
SLOW = {"group_lasso": 1e-4, "reduced_gradient": 1e-5}  # relative gaps that the methods of the literature reach in time


def classification(C, y):
    """The dual of a support vector classifier with signed duals; infinite C: the box of the squared hinge."""
    ends = np.where(y > 0, C, -C)
    return DualProblem(-y, np.minimum(0.0, ends), np.maximum(0.0, ends))


def regression(C, targets, epsilon):
    """The dual of a support vector regressor: two variables a point that share its row."""
    n = len(targets)
    linear = np.concatenate([epsilon - targets, -epsilon - targets])
    return DualProblem(linear, np.repeat([0.0, -C], n), np.repeat([C, 0.0], n), index=np.tile(np.arange(n), 2))


def kernels(seed=0, n=40):
    """Kernels of trace n, on informative and on useless columns, with labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    y = np.where(np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.3 * rng.normal(size=n) > 0, 1.0, -1.0)
    members = [rbf_kernel(X[:, :2], gamma=g) for g in (0.1, 0.5, 2.0)]
    members += [rbf_kernel(X[:, 2:]), linear_kernel(X[:, :2]), polynomial_kernel(X, degree=2)]
    return members, np.array([np.trace(K) / n for K in members]), y


def optimum(members, scales, problems, ridge=0.0, norm=1.0):
    r"""The optimum by a conic solver, which maximises :math:`-p'x - 1/2 r |x|^2 - 1/2 ||q(x)||_*` over the duals."""
    cp = pytest.importorskip("cvxpy")
    roots = []
    for K, scale in zip(members, scales, strict=True):
        values, vectors = np.linalg.eigh(K / scale)
        roots.append((vectors * np.sqrt(np.maximum(values, 0.0))).T)
    total, forms, constraints = 0.0, [0.0] * len(members), []
    for problem in problems:
        x = cp.Variable(len(problem.linear))
        by_row = np.zeros((len(members[0]), len(problem.linear)))
        by_row[problem.rows, np.arange(len(problem.linear))] = 1.0
        total += problem.linear @ x + 0.5 * ridge * cp.sum_squares(by_row @ x)
        forms = [form + cp.sum_squares((R @ by_row) @ x) for form, R in zip(forms, roots, strict=True)]
        if problem.total is not None:
            constraints += [cp.sum(x) == problem.total]
        low, high = np.isfinite(problem.lower), np.isfinite(problem.upper)
        constraints += [x[low] >= problem.lower[low], x[high] <= problem.upper[high]]
    largest = cp.max(cp.hstack(forms)) if norm == 1.0 else cp.norm(cp.hstack(forms), norm / (norm - 1.0))
    return -cp.Problem(cp.Minimize(total + 0.5 * largest), constraints).solve(solver="CLARABEL")


def agrees(found, best, tol):
    """Whether the objective is at the optimum, up to its certificate and the conic solver's accuracy."""
    assert found.status is Status.CONVERGED
    assert found.certificate.relative <= tol
    assert -1e-6 * abs(best) <= found.objective - best <= found.certificate.gap + 1e-6 * abs(best)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("C", [0.3, 10.0])
def test_every_method_reaches_the_optimum_of_a_conic_solver(method, C):
    members, scales, y = kernels()
    problem = classification(C, y)
    tol = SLOW.get(method, 1e-7)
    found = solve_kernel_weights(KernelStack(members, scales), [problem], method=method, tol=tol, max_iter=5000)
    agrees(found, optimum(members, scales, [problem]), tol)
    assert found.x.min() >= 0.0
    assert found.x.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("method", [m for m in METHODS if m != "reduced_gradient"])
@pytest.mark.parametrize("norm", [1.2, 2.0, 4.0])
def test_larger_norms_reach_the_optimum_of_a_conic_solver(method, norm):
    members, scales, y = kernels(1)
    problem = classification(5.0, y)
    tol = 1e-5 if method == "group_lasso" else 1e-7
    found = solve_kernel_weights(KernelStack(members, scales), [problem], norm=norm, method=method, tol=tol)
    agrees(found, optimum(members, scales, [problem], norm=norm), tol)
    assert found.x.min() >= 0.0
    assert np.linalg.norm(found.x, norm) == pytest.approx(1.0)


@pytest.mark.parametrize("method", METHODS)
def test_the_squared_hinge_has_an_infinite_box_and_a_ridge(method):
    members, scales, y = kernels(2)
    problem, tol = classification(np.inf, y), SLOW.get(method, 1e-7)
    found = solve_kernel_weights(
        KernelStack(members, scales), [problem], ridge=0.1, method=method, tol=tol, max_iter=5000
    )
    agrees(found, optimum(members, scales, [problem], ridge=0.1), tol)


@pytest.mark.parametrize("C", [1e-2, 1.0, 1e3])
def test_an_infinite_box_and_one_that_does_not_bind_are_the_same_problem(C):
    members, scales, y = kernels(3)
    stack = KernelStack(members, scales)
    wide = classification(2.0 * C * len(y), y)
    infinite = solve_kernel_weights(stack, [classification(np.inf, y)], ridge=1 / C, tol=1e-8)
    finite = solve_kernel_weights(stack, [wide], ridge=1 / C, tol=1e-8)
    assert infinite.status is finite.status is Status.CONVERGED
    assert infinite.objective == pytest.approx(finite.objective, rel=1e-7)
    assert infinite.x == pytest.approx(finite.x, abs=1e-3)


@pytest.mark.parametrize("method", METHODS)
def test_an_identity_among_the_kernels_learns_the_ridge(method):
    members, scales, y = kernels(4)
    n, problem, tol = len(y), classification(np.inf, y), SLOW.get(method, 1e-6)
    stack = KernelStack([*members, Diagonal(np.ones(n))], np.append(scales, 1.0))
    found = solve_kernel_weights(stack, [problem], method=method, tol=tol, max_iter=5000)
    agrees(found, optimum([*members, np.eye(n)], np.append(scales, 1.0), [problem]), tol)


def test_a_learned_ridge_is_as_good_as_the_same_ridge_given():
    members, scales, y = kernels(5)
    problem = classification(np.inf, y)
    learned = solve_kernel_weights(
        KernelStack([*members, Diagonal(np.ones(len(y)))], np.append(scales, 1.0)), [problem], tol=1e-8
    )
    share = learned.x[-1]
    assert 0.0 < share < 1.0
    given = solve_kernel_weights(KernelStack(members, scales), [problem], ridge=share / (1 - share), tol=1e-8)
    # J is homogeneous: with all kernels and the ridge divided by 1 - share, it is multiplied by 1 - share.
    assert given.objective * 1 / (1 - share) == pytest.approx(learned.objective, rel=1e-6)
    assert given.x == pytest.approx(learned.x[:-1] / (1 - share), abs=1e-3)


def test_separable_data_may_leave_nothing_to_the_identity():
    y = np.repeat([1.0, -1.0], 10)
    stack = KernelStack([np.outer(y, y), Diagonal(np.ones(20))])
    found = solve_kernel_weights(stack, [classification(np.inf, y)], tol=1e-6)
    assert found.status is Status.CONVERGED
    assert found.x == pytest.approx([1.0, 0.0], abs=1e-4)
    assert found.objective == pytest.approx(0.5, rel=1e-5)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("norm", [1.0, 2.0])
def test_several_machines_share_their_weights(method, norm):
    if method == "reduced_gradient" and norm > 1.0:
        pytest.skip("the reduced gradient is for the norm 1")
    members, scales, y = kernels(6)
    others = [np.where(np.arange(len(y)) % 3 == k, 1.0, -1.0) for k in range(2)]
    problems, tol = [classification(3.0, signs) for signs in (y, *others)], SLOW.get(method, 1e-6)
    found = solve_kernel_weights(
        KernelStack(members, scales), problems, norm=norm, method=method, tol=tol, max_iter=5000
    )
    agrees(found, optimum(members, scales, problems, norm=norm), tol)
    assert [len(x) for x in found.duals] == [40, 40, 40]
    assert len(found.multipliers) == 3


@pytest.mark.parametrize("norm", [1.0, 2.0])
@pytest.mark.parametrize("C, ridge", [(2.0, 0.0), (np.inf, 0.5)])
def test_a_regressor_has_two_variables_a_row(C, ridge, norm):
    X, targets = make_friedman1(30, random_state=0)
    targets = (targets - targets.mean()) / targets.std()
    members = [rbf_kernel(X, gamma=g) for g in (0.1, 1.0)] + [linear_kernel(X)]
    scales, problem = np.array([1.0, 1.0, 3.0]), regression(C, targets, 0.1)
    found = solve_kernel_weights(KernelStack(members, scales), [problem], ridge=ridge, norm=norm, tol=1e-7)
    agrees(found, optimum(members, scales, [problem], ridge=ridge, norm=norm), 1e-7)


def test_without_equality_there_is_no_multiplier():
    members, scales, y = kernels(7)
    problem = classification(5.0, y)
    problem = DualProblem(problem.linear, problem.lower, problem.upper, total=None)
    found = solve_kernel_weights(KernelStack(members, scales), [problem], tol=1e-7)
    agrees(found, optimum(members, scales, [problem]), 1e-7)
    assert found.multipliers == [0.0]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("tol", [0.3, 1e-1, 1e-2])
def test_the_certificate_bounds_the_true_error_and_can_be_recomputed(method, tol):
    members, scales, y = kernels(8)
    problem, stack = classification(10.0, y), KernelStack(members, scales)
    best = solve_kernel_weights(stack, [problem], tol=1e-9).objective
    found = solve_kernel_weights(stack, [problem], method=method, tol=tol, max_iter=5000)
    assert found.status is Status.CONVERGED
    assert 0.0 <= found.objective - best <= found.certificate.gap <= tol * found.objective
    x = found.duals[0]
    forms = np.array([x @ K @ x / s for K, s in zip(members, scales, strict=True)])
    f = np.tensordot(found.x / scales, members, 1) @ x
    hinge = np.maximum(0.0, 1.0 - y * (f - found.multipliers[0])).sum()
    assert found.forms == pytest.approx(forms)
    assert found.objective == pytest.approx(0.5 * f @ x + 10.0 * hinge)  # the primal value
    assert found.certificate.gap == pytest.approx(found.objective - (y @ x - 0.5 * forms.max()))


@pytest.mark.parametrize("method", METHODS)
def test_one_kernel_is_a_support_vector_machine(method):
    members, scales, y = kernels(9)
    problem = classification(10.0, y)
    found = solve_kernel_weights(KernelStack(members[:1], scales[:1]), [problem], method=method, tol=1e-6)
    machine = smo.solve(members[0] / scales[0], problem.linear, problem.lower, problem.upper, tol=1e-9)
    assert found.x == pytest.approx([1.0])
    assert found.objective == pytest.approx(-machine.objective, rel=1e-6)
    assert found.multipliers[0] == pytest.approx(machine.multiplier, abs=1e-3)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("norm", [1.0, 2.0])
def test_duplicated_and_zero_kernels_do_no_harm(method, norm):
    if method == "reduced_gradient" and norm > 1.0:
        pytest.skip("the reduced gradient is for the norm 1")
    members, scales, y = kernels(10)
    problem, tol = classification(2.0, y), SLOW.get(method, 1e-6)
    copies = [*members, *members[:3], np.zeros((40, 40))]
    copied = np.concatenate([scales, scales[:3], [1.0]])
    found = solve_kernel_weights(
        KernelStack(copies, copied), [problem], norm=norm, method=method, tol=tol, max_iter=5000
    )
    agrees(found, optimum(copies, copied, [problem], norm=norm), tol)
    if norm == 1.0:
        once = solve_kernel_weights(KernelStack(members, scales), [problem], tol=1e-8)
        assert found.objective == pytest.approx(once.objective, rel=2 * tol)


def test_kernels_that_are_all_zero_have_the_value_of_the_box():
    y = np.array([1.0, -1.0, 1.0, -1.0])
    found = solve_kernel_weights(KernelStack([np.zeros((4, 4))] * 2), [classification(3.0, y)])
    assert found.status is Status.CONVERGED
    assert found.objective == pytest.approx(12.0)


def test_norms_near_one_tend_to_the_norm_one():
    members, scales, y = kernels(11)
    stack, problem = KernelStack(members, scales), classification(10.0, y)
    sparse = solve_kernel_weights(stack, [problem], tol=1e-8)
    distances = []
    for norm in (1.3, 1.1, 1.01, 1.001):
        found = solve_kernel_weights(stack, [problem], norm=norm, tol=1e-8)
        assert found.status is Status.CONVERGED
        distances.append(np.abs(found.x - sparse.x).max())
    assert distances == sorted(distances, reverse=True)
    assert distances[-1] < 1e-2
    assert found.objective == pytest.approx(sparse.objective, rel=1e-2)


@pytest.mark.parametrize("norm", [1000.0, np.inf])
def test_large_norms_tend_to_equal_weights(norm):
    members, scales, y = kernels(12)
    found = solve_kernel_weights(KernelStack(members, scales), [classification(10.0, y)], norm=norm, tol=1e-6)
    assert found.status is Status.CONVERGED
    assert found.x == pytest.approx(np.ones(len(members)), rel=1e-2)


@pytest.mark.parametrize("method", METHODS)
def test_a_start_near_the_optimum_saves_machines(method):
    members, scales, y = kernels(13)
    stack, problem = KernelStack(members, scales), [classification(10.0, y)]
    best = solve_kernel_weights(stack, problem, tol=1e-8)
    cold = solve_kernel_weights(stack, problem, method=method, tol=1e-3, max_iter=5000)
    warm = solve_kernel_weights(stack, problem, method=method, tol=1e-3, start=7.0 * best.x, max_iter=5000)
    assert warm.status is Status.CONVERGED
    assert warm.objective == pytest.approx(best.objective, rel=1e-3)
    assert warm.n_solves < cold.n_solves


def test_the_same_problem_gives_the_same_bits_and_nothing_is_overwritten():
    members, scales, y = kernels(14)
    problem = classification(10.0, y)
    start = np.full(len(members), 0.5)
    arrays = [*members, scales, problem.linear, problem.lower, problem.upper, start]
    copies = [array.copy() for array in arrays]
    for array in arrays:
        array.flags.writeable = False
    first, second = (
        solve_kernel_weights(KernelStack(members, scales), [problem], start=start, tol=1e-6) for _ in range(2)
    )
    assert np.array_equal(first.x, second.x)
    assert np.array_equal(first.duals, second.duals)
    assert all(np.array_equal(array, copy) for array, copy in zip(arrays, copies, strict=True))


def test_single_precision_kernels_give_nearly_the_same_weights():
    members, scales, y = kernels(15)
    problem = classification(10.0, y)
    exact = solve_kernel_weights(KernelStack(members, scales), [problem], tol=1e-6)
    rounded = solve_kernel_weights(KernelStack([K.astype(np.float32) for K in members], scales), [problem], tol=1e-6)
    assert rounded.objective == pytest.approx(exact.objective, rel=1e-5)
    assert rounded.x == pytest.approx(exact.x, abs=1e-3)


def test_low_rank_members_are_their_dense_forms():
    members, scales, y = kernels(16)
    problem, Z = classification(10.0, y), np.random.default_rng(0).normal(size=(40, 5)) + y[:, None]
    dense = solve_kernel_weights(KernelStack([*members, Z @ Z.T], [*scales, 5.0]), [problem], tol=1e-7)
    factor = solve_kernel_weights(KernelStack([*members, Factor(Z)], [*scales, 5.0]), [problem], tol=1e-7)
    assert dense.x[-1] > 0.1
    assert factor.x == pytest.approx(dense.x, abs=1e-3)
    assert factor.objective == pytest.approx(dense.objective, rel=2e-7)  # the sum of both gaps


def test_the_history_says_how_each_value_was_reached():
    members, scales, y = kernels(17)
    states = []
    found = solve_kernel_weights(
        KernelStack(members, scales), [classification(10.0, y)], tol=1e-6, callback=states.append
    )
    assert len(found.history) == len(states) == found.n_iter + 1
    assert [record["step"] for record in found.history][:2] == ["start", "newton"]
    assert found.history[-1]["relative_gap"] == pytest.approx(found.certificate.relative)
    assert found.history[-1]["n_solves"] == states[-1].details["n_solves"] == found.n_solves
    assert states[-1].details["weights"] == pytest.approx(found.x)


def test_the_callback_and_the_limit_stop_with_an_honest_certificate():
    members, scales, y = kernels(18)
    stack, problem = KernelStack(members, scales), [classification(10.0, y)]
    best = solve_kernel_weights(stack, problem, tol=1e-9).objective
    stopped = solve_kernel_weights(stack, problem, tol=1e-6, callback=lambda state: state.iteration == 1)
    limited = solve_kernel_weights(stack, problem, tol=1e-6, max_iter=1)
    assert stopped.status is Status.CALLBACK
    assert limited.status is Status.MAX_ITER
    for found in (stopped, limited):
        assert found.n_iter == 1
        assert 0.0 <= found.objective - best <= found.certificate.gap


def test_a_tolerance_of_zero_ends_at_rounding():
    members, scales, y = kernels(19)
    found = solve_kernel_weights(KernelStack(members, scales), [classification(1.0, y)], tol=0.0, max_iter=100)
    assert found.status is Status.PRECISION
    assert found.certificate.relative < 1e-9


def test_an_indefinite_kernel_gets_no_duality_gap():
    _, _, y = kernels(20)
    A = np.random.default_rng(0).normal(size=(40, 40))
    found = solve_kernel_weights(KernelStack([A + A.T]), [classification(5.0, y)], max_iter=3)
    assert found.certificate.kind == "stationarity"


def test_an_infinite_value_at_the_first_weights_is_refused():
    stack = KernelStack([np.zeros((4, 4)), Diagonal(np.ones(4))])
    problem = classification(np.inf, np.array([1.0, 1.0, -1.0, -1.0]))
    with pytest.raises(ValueError, match=r"J is infinite at the first weights: .* Pass a ridge"):
        solve_kernel_weights(stack, [problem], start=np.array([1.0, 0.0]))
    found = solve_kernel_weights(stack, [problem], tol=1e-6)  # equal weights: the optimum is the identity alone
    assert found.x == pytest.approx([0.0, 1.0])
    assert found.objective == pytest.approx(2.0)


def test_arguments_that_make_no_sense_are_refused():
    members, scales, y = kernels(21)
    stack, problem = KernelStack(members, scales), [classification(10.0, y)]
    with pytest.raises(ValueError, match=r"norm must be at least 1; got 0.5"):
        solve_kernel_weights(stack, problem, norm=0.5)
    with pytest.raises(ValueError, match=r"The reduced gradient is for weights that sum to 1 .* got norm 2"):
        solve_kernel_weights(stack, problem, norm=2.0, method="reduced_gradient")
    with pytest.raises(ValueError, match="start must hold a weight >= 0 for each of the 6 kernels"):
        solve_kernel_weights(stack, problem, start=np.zeros(6))


N_MANY = kernel_weights.ONE_IN * kernel_weights.MIN_SUBSAMPLE_ROWS + 7  # rows enough for a start from fewer


def equal(members):
    return np.ones(len(members))


@pytest.mark.parametrize("norm", [1.0, 2.0])
@pytest.mark.parametrize("C, ridge", [(10.0, 0.0), (np.inf, 0.1)])
def test_first_weights_from_fewer_rows_lead_to_the_same_optimum_in_fewer_steps(C, ridge, norm):
    members, scales, y = kernels(4, N_MANY)
    stack, problem = KernelStack(members, scales), classification(C, y)
    from_equal = solve_kernel_weights(stack, [problem], ridge=ridge, norm=norm, start=equal(members))
    from_few = solve_kernel_weights(stack, [problem], ridge=ridge, norm=norm)
    assert from_few.status is Status.CONVERGED
    assert from_few.history[0]["objective"] < from_equal.history[0]["objective"]
    assert from_few.n_solves <= from_equal.n_solves
    both = [
        solve_kernel_weights(stack, [problem], ridge=ridge, norm=norm, start=s, tol=1e-8)
        for s in (None, equal(members))
    ]
    assert both[0].objective == pytest.approx(both[1].objective, rel=1e-7)


def test_first_weights_from_fewer_rows_of_several_machines_with_shared_rows():
    members, scales, y = kernels(5, N_MANY)
    targets = np.random.default_rng(0).normal(size=N_MANY) + y
    problems, stack = [classification(3.0, y), regression(2.0, targets, 0.1)], KernelStack(members, scales)
    found = solve_kernel_weights(stack, problems, tol=1e-7)
    assert found.history[0]["n_active"] < len(members)
    assert found.objective == pytest.approx(
        solve_kernel_weights(stack, problems, tol=1e-7, start=equal(members)).objective, rel=1e-6
    )


@pytest.mark.parametrize("n_rare", [1, 2, 3])
def test_a_class_that_fewer_rows_may_miss_does_no_harm(n_rare):
    members, scales, y = kernels(6, N_MANY)
    y = np.where(np.arange(N_MANY) < n_rare, 1.0, -1.0)
    found = solve_kernel_weights(KernelStack(members, scales), [classification(5.0, y)], tol=1e-6)
    again = solve_kernel_weights(KernelStack(members, scales), [classification(5.0, y)], tol=1e-6, start=equal(members))
    assert found.status is Status.CONVERGED
    assert found.objective == pytest.approx(again.objective, rel=2e-6)


def test_all_weights_start_equal_where_fewer_rows_could_mislead():
    members, scales, y = kernels(7, N_MANY)
    given = {"linear": -y, "lower": np.minimum(0.0, y), "upper": np.maximum(0.0, y)}
    few_take_part = DualProblem(*(v[:50] for v in given.values()), index=np.arange(50))
    all_at_the_end = DualProblem(**given, total=float(np.sum(y > 0)))  # no room for fewer rows with a wider box
    for stack, problem in (
        (KernelStack(members, scales), few_take_part),
        (KernelStack([*members, Diagonal(np.ones(N_MANY))]), classification(np.inf, y)),
    ):
        assert solve_kernel_weights(stack, [problem]).history[0]["n_active"] == len(stack)
    found = solve_kernel_weights(KernelStack(members, scales), [all_at_the_end], tol=1e-6)
    assert found.duals[0] == pytest.approx(given["upper"], abs=1e-9)


@pytest.mark.parametrize("total", [None, 0.0])
def test_kernels_of_which_rounding_leaves_nothing_end_soon(total):
    """No machine is as accurate as asked for, whatever the weights: a second look brings nothing."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=40) > 0, 1.0, -1.0)
    problem = DualProblem(-y, np.minimum(0.0, 0.1 * y), np.maximum(0.0, 0.1 * y), total=total)
    result = solve_kernel_weights(KernelStack([rbf_kernel(X, gamma=0.5), 1e120 * X @ X.T]), [problem], tol=1e-6)
    assert result.status is Status.PRECISION
    assert result.n_solves < 40

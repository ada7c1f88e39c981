import itertools
import os
import subprocess
import sys

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC, SVR, NuSVC, OneClassSVM

from kernelweave.solvers.machines import smo
from kernelweave.solvers.machines.smo import solve
from kernelweave.solvers.result import Status


def points(seed, n=60, n_features=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features))
    y = np.where(X[:, 0] + 0.7 * rng.normal(size=n) > 0.3, 1.0, -1.0)
    return X, y


def svm(y, C):
    """Linear term and box of a support vector classifier with signed duals."""
    return -y, np.minimum(0.0, C * y), np.maximum(0.0, C * y)


def random_problem(seed, n=5):
    """A strictly convex problem in a box around a point, with a total that the box allows."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, n))
    middle, half = rng.normal(size=n), rng.uniform(0.05, 1.5, size=n)
    return A @ A.T + 0.1 * np.eye(n), rng.normal(size=n), middle - half, middle + half, middle


def objective(K, linear, x, index=None):
    rows = np.arange(len(x)) if index is None else index
    return 0.5 * x @ K[np.ix_(rows, rows)] @ x + linear @ x


def violation(K, linear, lower, upper, x, multiplier, index=None):
    """Largest violation of the optimality conditions at a multiplier, recomputed from the problem alone."""
    rows = np.arange(len(x)) if index is None else index
    excess = K[np.ix_(rows, rows)] @ x + linear - multiplier
    return max(np.where(x < upper, -excess, 0.0).max(), np.where(x > lower, excess, 0.0).max())


def enumerate_active_sets(K, linear, lower, upper, constraints, sums):
    """The optimum of a strictly convex problem: of all ways to put variables at their bounds, the best feasible one."""
    n, best, best_x = len(linear), np.inf, None
    for places in itertools.product((-1, 0, 1), repeat=n):
        places = np.array(places)
        free = np.flatnonzero(places == 0)
        x = np.where(places < 0, lower, upper)
        x[free] = 0.0
        A = constraints[:, free]
        system = np.block([[K[np.ix_(free, free)], A.T], [A, np.zeros((len(A), len(A)))]])
        right = np.concatenate([-(linear + K @ x)[free], sums - constraints @ x])
        x[free] = np.linalg.lstsq(system, right, rcond=None)[0][: len(free)]
        feasible = np.all(x >= lower - 1e-9) and np.all(x <= upper + 1e-9)
        if feasible and np.allclose(constraints @ x, sums, atol=1e-9) and objective(K, linear, x) < best:
            best, best_x = objective(K, linear, x), x
    return best, best_x


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
def test_a_classifier_has_the_objective_and_offset_of_libsvm(seed, C):
    X, y = points(seed)
    K = rbf_kernel(X)
    found = solve(K, *svm(y, C), tol=1e-9)
    peer = SVC(kernel="precomputed", C=C, tol=1e-6).fit(K, y)
    x = np.zeros(len(y))
    x[peer.support_] = peer.dual_coef_[0]
    assert found.status is Status.CONVERGED
    assert found.objective == pytest.approx(objective(K, -y, x), rel=1e-6)
    assert -found.multiplier == pytest.approx(peer.intercept_[0], abs=1e-3)


@pytest.mark.parametrize("nu", [0.2, 0.5])
def test_a_nu_classifier_has_the_objective_of_libsvm(nu):
    X, y = points(1)
    K = rbf_kernel(X)
    signs = np.where(y > 0, 0, 1)
    start = y * nu * len(y) / 2 / np.bincount(signs)[signs]  # each class has half of nu n
    found = solve(K, *(np.zeros(len(y)), *svm(y, 1.0)[1:]), groups=signs, start=start, tol=1e-9)
    peer = NuSVC(kernel="precomputed", nu=nu, tol=1e-7).fit(K, y)
    x = np.zeros(len(y))
    x[peer.support_] = peer.dual_coef_[0] * nu * len(y) / np.abs(peer.dual_coef_).sum()  # LIBSVM divides by the margin
    assert found.objective == pytest.approx(objective(K, 0 * y, x), rel=1e-6)
    assert np.bincount(signs, weights=found.x) == pytest.approx([nu * len(y) / 2, -nu * len(y) / 2])
    assert found.multiplier.shape == (2,)
    assert violation(K, 0 * y, *svm(y, 1.0)[1:], found.x, found.multiplier[signs]) < 1e-5


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_a_regressor_whose_copies_share_rows_has_the_objective_of_libsvm(C):
    X, _ = points(2)
    targets = np.sin(X[:, 0]) + 0.1 * X[:, 1]
    K, n, epsilon = rbf_kernel(X), len(X), 0.1
    linear = np.concatenate([epsilon - targets, -epsilon - targets])
    lower, upper = np.repeat([0.0, -C], n), np.repeat([C, 0.0], n)
    index = np.tile(np.arange(n), 2)
    found = solve(K, linear, lower, upper, index=index, tol=1e-9)
    peer = SVR(kernel="precomputed", C=C, epsilon=epsilon, tol=1e-7).fit(K, targets)
    dual = np.zeros(n)
    dual[peer.support_] = peer.dual_coef_[0]
    expected = 0.5 * dual @ K @ dual - targets @ dual + epsilon * np.abs(dual).sum()
    assert found.objective == pytest.approx(expected, rel=1e-6)
    assert -found.multiplier == pytest.approx(peer.intercept_[0], abs=1e-3)
    assert violation(K, linear, lower, upper, found.x, found.multiplier, index) < 1e-5


@pytest.mark.parametrize("nu", [0.05, 0.5])
def test_a_one_class_machine_has_the_objective_of_libsvm(nu):
    X, _ = points(3)
    K, n = rbf_kernel(X), len(X)
    found = solve(K, np.zeros(n), np.zeros(n), np.ones(n), total=nu * n, tol=1e-9)
    peer = OneClassSVM(kernel="precomputed", nu=nu, tol=1e-7).fit(K)
    x = np.zeros(n)
    x[peer.support_] = peer.dual_coef_[0]
    assert found.x.sum() == pytest.approx(nu * n)
    assert found.objective == pytest.approx(objective(K, 0 * x, x), rel=1e-6)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("form", ["total", "none", "groups"])
def test_any_box_gives_the_optimum_over_all_active_sets(seed, form):
    K, linear, lower, upper, middle = random_problem(seed)
    groups = np.array([0, 1, 0, 1, 1])
    constraints, keywords = {
        "total": (np.ones((1, 5)), {"total": middle.sum()}),
        "none": (np.ones((0, 5)), {"total": None}),
        "groups": ((groups == np.arange(2)[:, None]).astype(float), {"groups": groups, "start": middle}),
    }[form]
    found = solve(K, linear, lower, upper, tol=1e-12, **keywords)
    best, x = enumerate_active_sets(K, linear, lower, upper, constraints, constraints @ middle)
    assert found.objective == pytest.approx(best, rel=1e-10)
    assert found.x == pytest.approx(x, abs=1e-5)
    multiplier = found.multiplier
    assert violation(K, linear, lower, upper, found.x, multiplier[groups] if form == "groups" else multiplier) < 1e-5


@pytest.mark.parametrize("total", [0.0, None])
@pytest.mark.parametrize("C", [1e-8, 1e-2, 1.0, 1e3, 1e8])
@pytest.mark.parametrize("magnitude", [1e-12, 1.0, 1e12])
def test_any_scale_is_solved_as_well(magnitude, C, total):
    X, y = points(4, n=40)
    K = rbf_kernel(X)
    found = solve(K * magnitude, *svm(y, C), total=total, tol=1e-6)
    # With K -> m K and C -> C / m the solution becomes x / m and the objective 1 / m of what it was.
    expected = solve(K, *svm(y, min(C * magnitude, 1e4)), total=total, tol=1e-9)  # no margin is violated at 1e4
    assert found.objective * magnitude == pytest.approx(expected.objective, rel=1e-6)
    assert found.certificate.kind == "duality gap"
    assert abs(found.x.sum()) <= 1e-9 * np.abs(found.x).sum() or total is None
    # The gap is the rounding error of the gradient, 1e-15 or so, times C: no more than 1e-6 of the objective unless
    # the box is 1e7 times as large as the solution.
    assert found.status is Status.CONVERGED or (C * magnitude > 1e7 and found.status is Status.PRECISION)


@pytest.mark.parametrize("tol", [0.5, 1e-1, 1e-2, 1e-3])
@pytest.mark.parametrize("total", [0.0, None])
def test_the_certificate_bounds_the_true_error(tol, total):
    X, y = points(5)
    K = rbf_kernel(X, gamma=0.1)
    linear, lower, upper = svm(y, 10.0)
    optimum = solve(K, linear, lower, upper, total=total, tol=1e-12).objective
    found = solve(K, linear, lower, upper, total=total, tol=tol)
    assert found.certificate.relative <= tol
    assert -1e-12 <= found.objective - optimum <= found.certificate.gap
    assert found.objective == pytest.approx(objective(K, linear, found.x), rel=1e-12)
    assert found.gradient == pytest.approx(K @ found.x + linear, abs=1e-10)


def test_the_gap_is_that_of_the_primal_classifier():
    X, y = points(6)
    K, C = rbf_kernel(X), 3.0
    found = solve(K, *svm(y, C), tol=1e-2)
    f = K @ found.x
    # The hinge loss is piecewise linear in the offset, with kinks at y_i - f_i.
    losses = [C * np.maximum(0.0, 1.0 - y * (f + offset)).sum() for offset in y - f]
    primal = 0.5 * found.x @ f + min(losses)
    assert found.certificate.gap == pytest.approx(primal + found.objective, rel=1e-9)


def test_without_a_free_variable_the_multiplier_is_in_the_middle_of_its_interval():
    # f = 1/2 x'x - y'x with |x_i| <= 0.1: all variables end at their outer bounds, with gradients -0.9 and 0.9.
    y = np.array([1.0, 1.0, -1.0, -1.0])
    found = solve(np.eye(4), np.array([-1.0, -1.5, 1.0, 2.0]), *svm(y, 0.1)[1:])
    assert found.x == pytest.approx(0.1 * y)
    assert found.multiplier == pytest.approx((-0.9 + 0.9) / 2)


def test_with_all_variables_at_one_side_the_multiplier_is_the_end_of_its_ray():
    found = solve(np.eye(3), np.array([1.0, 2.0, 3.0]), np.zeros(3), np.ones(3), total=3.0)
    assert found.x == pytest.approx(np.ones(3))
    assert found.multiplier == pytest.approx(4.0)  # the largest gradient


@pytest.mark.parametrize("total", [0.0, None])
def test_duplicated_rows_do_no_harm(total):
    X, y = points(7, n=30)
    K = rbf_kernel(X)
    once = solve(K, *svm(y, 2.0), total=total, tol=1e-9)
    twice = np.tile(np.arange(30), 2)
    copies = solve(K[np.ix_(twice, twice)], *svm(y[twice], 1.0), total=total, tol=1e-9)
    shared = solve(K, *svm(y[twice], 1.0), total=total, index=twice, tol=1e-9)
    assert copies.objective == pytest.approx(once.objective, rel=1e-8)
    assert shared.objective == pytest.approx(once.objective, rel=1e-8)


@pytest.mark.parametrize("total", [0.0, None])
@pytest.mark.parametrize("rank", [0, 1, 3])
def test_rank_deficient_kernels_are_solved(rank, total):
    X, y = points(8, n=80)
    Z = X[:, :rank]
    linear, lower, upper = svm(y, 1.0)
    found = solve(Z @ Z.T, linear, lower, upper, total=total, tol=1e-8)
    assert found.status is Status.CONVERGED
    assert violation(Z @ Z.T, linear, lower, upper, found.x, found.multiplier) < 1e-5


@pytest.mark.parametrize("total", [0.0, None])
@pytest.mark.parametrize("seed", range(3))
def test_an_indefinite_kernel_ends_in_a_stationary_point(seed, total):
    rng = np.random.default_rng(seed)
    K = rng.normal(size=(50, 50))
    K = K + K.T
    _, y = points(seed, n=50)
    linear, lower, upper = svm(y, 5.0)
    found = solve(K, linear, lower, upper, total=total, tol=1e-6)
    assert found.certificate.kind == "stationarity"
    assert found.status is Status.CONVERGED
    scale = np.abs(K @ found.x + linear).max()
    assert violation(K, linear, lower, upper, found.x, found.multiplier) <= 1e-6 * scale


@pytest.mark.parametrize("total", [0.0, None])
def test_a_start_at_the_optimum_takes_no_step(total):
    X, y = points(9)
    problem = (rbf_kernel(X), *svm(y, 1.0))
    cold = solve(*problem, total=total, tol=1e-8)
    warm = solve(*problem, total=total, tol=1e-8, start=cold.x)
    assert warm.n_iter == 0
    assert warm.x == pytest.approx(cold.x)


def test_a_start_outside_the_box_or_off_the_total_is_repaired():
    X, y = points(10)
    problem = (rbf_kernel(X), *svm(y, 1.0))
    start = np.random.default_rng(0).normal(scale=10.0, size=len(y))
    found = solve(*problem, start=start, tol=1e-9)
    assert found.objective == pytest.approx(solve(*problem, tol=1e-9).objective, rel=1e-8)
    assert found.x.sum() == pytest.approx(0.0, abs=1e-12)
    assert np.all((found.x >= problem[2]) & (found.x <= problem[3]))


def test_a_group_keeps_the_sum_of_a_start_outside_the_box():
    groups = np.array([0, 0, 0, 1])
    found = solve(np.eye(4), np.zeros(4), np.zeros(4), np.ones(4), groups=groups, start=np.array([2.0, 0, 0, 0.5]))
    assert found.x == pytest.approx([2 / 3, 2 / 3, 2 / 3, 0.5], rel=1e-2)


def test_a_box_without_zero_is_entered():
    found = solve(np.eye(3), np.zeros(3), np.full(3, 1.0), np.full(3, 4.0), total=6.0, tol=1e-12)
    assert found.x == pytest.approx([2.0, 2.0, 2.0])


@pytest.mark.parametrize("total", [-0.5, 3.5])
def test_a_total_that_the_box_does_not_allow_is_refused(total):
    with pytest.raises(ValueError, match=r"No point of the box sums to .*: sums go from 0 to 3"):
        solve(np.eye(3), np.zeros(3), np.zeros(3), np.ones(3), total=total)


def test_crossed_bounds_and_groups_without_start_are_refused():
    with pytest.raises(ValueError, match="1 lower bounds are above"):
        solve(np.eye(2), np.zeros(2), np.array([0.0, 2.0]), np.ones(2))
    with pytest.raises(ValueError, match="there is no start"):
        solve(np.eye(2), np.zeros(2), np.zeros(2), np.ones(2), groups=np.array([0, 1]))


def test_an_unbounded_problem_is_refused():
    with pytest.raises(ValueError, match="has no minimum"):
        solve(np.zeros((2, 2)), np.array([1.0, -1.0]), np.zeros(2), np.full(2, np.inf), total=None)


def test_an_infinite_box_is_solved_up_to_stationarity():
    K, linear, *_ = random_problem(0)
    found = solve(K, linear, np.full(5, -np.inf), np.full(5, np.inf), total=None, tol=1e-10)
    assert found.certificate.kind == "stationarity"
    assert found.x == pytest.approx(np.linalg.solve(K, -linear), rel=1e-6)


@pytest.mark.parametrize("total", [0.6, None])
def test_a_box_that_is_a_point_is_its_own_solution(total):
    x = np.array([0.1, 0.2, 0.3])
    found = solve(np.eye(3), np.ones(3), x, x, total=total)
    assert found.x == pytest.approx(x)
    assert found.certificate.gap == 0.0
    assert found.multiplier == 0.0
    assert found.n_iter == 0


def test_one_variable_is_solved():
    K, one = np.array([[2.0]]), np.ones(1)
    assert solve(K, -one, 0 * one, one, total=None, tol=1e-12).x == pytest.approx([0.5])
    assert solve(K, -one, 0 * one, one, total=0.25).x == pytest.approx([0.25])


def test_the_limit_on_pair_steps_is_kept_and_said():
    X, y = points(11)
    found = solve(rbf_kernel(X), *svm(y, 100.0), tol=1e-9, max_iter=7)
    assert found.status is Status.MAX_ITER
    assert found.n_iter == 7
    assert found.certificate.relative > 1e-9


def test_a_tolerance_of_zero_ends_at_rounding():
    X, y = points(12)
    found = solve(rbf_kernel(X), *svm(y, 1.0), tol=0.0)
    assert found.status in (Status.PRECISION, Status.CONVERGED)
    assert found.certificate.relative < 1e-13


@pytest.mark.parametrize("total", [0.0, None])
def test_newton_steps_reach_accuracies_that_pair_steps_crawl_to(total):
    X, y = points(13, n=200)
    Z = rbf_kernel(X, gamma=0.05)
    K = Z @ Z.T  # the top eigenvalue carries nearly the whole trace
    found = solve(K, *svm(y, 100.0), total=total, tol=1e-10)
    assert found.status is Status.CONVERGED
    assert found.n_newton > 0
    assert found.n_iter < 20_000
    assert violation(K, *svm(y, 100.0), found.x, found.multiplier) < 1e-4


def test_single_precision_gives_the_solution_of_the_rounded_kernel():
    X, y = points(14)
    K = rbf_kernel(X).astype(np.float32)
    found = solve(K, *svm(y, 10.0), tol=1e-9)
    exact = solve(K.astype(float), *svm(y, 10.0), tol=1e-9)
    assert found.objective == pytest.approx(exact.objective, rel=1e-8)
    assert found.x.dtype == np.float64


def test_the_memory_layout_of_the_kernel_does_not_matter():
    X, y = points(15)
    K = rbf_kernel(X)
    K = 0.5 * (K + K.T)
    spread = np.zeros((120, 120))
    spread[::2, ::2] = K
    expected = solve(K, *svm(y, 1.0)).x
    for other in (np.asfortranarray(K), spread[::2, ::2]):
        assert np.array_equal(solve(other, *svm(y, 1.0)).x, expected)


def test_inputs_are_not_overwritten():
    X, y = points(16)
    signs = np.where(y > 0, 0, 1)
    arrays = [rbf_kernel(X), *svm(y, 1.0), signs, np.arange(len(y)), 0.3 * y]
    copies = [array.copy() for array in arrays]
    for array in arrays:
        array.flags.writeable = False
    K, linear, lower, upper, groups, index, start = arrays
    solve(K, linear, lower, upper, groups=groups, index=index, start=start, tol=1e-9)
    solve(K, linear, lower, upper, total=None, tol=1e-9)
    for array, copy in zip(arrays, copies, strict=True):
        assert np.array_equal(array, copy)


def test_the_loops_run_uncompiled():
    code = """
import numpy as np
from kernelweave.solvers.machines import smo
Z = np.random.default_rng(0).normal(size=(12, 12))
y = np.where(np.arange(12) < 6, 1.0, -1.0)
for keywords in ({}, {"total": None}, {"groups": (y > 0).astype(int), "start": 0.5 * y}):
    smo.NEWTON_STEP = smo.SHRINKING = 0.0
    found = smo.solve(Z @ Z.T, -y, np.minimum(0, 9 * y), np.maximum(0, 9 * y), tol=1e-9, **keywords)
    assert found.status.converged and found.certificate.relative < 1e-9
assert not hasattr(smo.gather.compiled, "py_func")
"""
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)


def test_a_multiplier_that_any_value_between_two_serves_is_their_middle():
    # All variables at a bound but for the last bit of one: the gap is flat between -1 and 1.
    K, y = 1e-3 * np.eye(4), np.array([1.0, 1.0, -1.0, -1.0])
    start = 0.01 * y
    start[0] = np.nextafter(start[0], 0.0)
    found = solve(K, -y, np.minimum(0, 0.01 * y), np.maximum(0, 0.01 * y), start=start, tol=1e-3)
    assert abs(found.multiplier) < 1e-3


@pytest.fixture
def shrinks(monkeypatch):
    """Let active variables be set apart as often as can be; return how many there were each time."""
    sizes, shrink = [], smo._Descent.shrink

    def counted(descent, max_iter):
        sizes.append(int(np.count_nonzero(descent.active())))
        shrink(descent, max_iter)

    for name, value in {"SHRINKING": 0.0, "READING": 0.0, "MAX_ACTIVE_SHARE": 0.95, "MIN_PAIR_STEPS": 5}.items():
        monkeypatch.setattr(smo, name, value)
    monkeypatch.setattr(smo._Descent, "shrink", counted)
    return sizes


def shrinking_forms():
    """Problems of every form, of which about half of the variables end at a bound."""
    X, y = points(17, n=120)
    K, signs = rbf_kernel(X), np.where(y > 0, 0, 1)
    twice = np.tile(np.arange(120), 2)
    targets = np.concatenate([0.1 - X[:, 0], -0.1 - X[:, 0]])
    return {
        "total": (K, *svm(y, 1.0), {}),
        "none": (K, *svm(y, 1.0), {"total": None}),
        "groups": (K, 0 * y, *svm(y, 1.0)[1:], {"groups": signs, "start": 18.0 * y / np.bincount(signs)[signs]}),
        "index": (K, targets, np.repeat([0.0, -1.0], 120), np.repeat([1.0, 0.0], 120), {"index": twice}),
        "warm": (K, *svm(y, 1.0), {"start": 0.3 * y}),
        "single": (K.astype(np.float32), *svm(y, 1.0), {}),
    }


@pytest.mark.parametrize("margin", [1.0, 0.0, -np.inf])
@pytest.mark.parametrize("form", shrinking_forms())
def test_a_shrunken_run_reaches_the_optimum(form, margin, shrinks, monkeypatch):
    K, linear, lower, upper, keywords = shrinking_forms()[form]
    monkeypatch.setattr(smo, "MAX_ACTIVE_SHARE", 0.0)
    expected = solve(K, linear, lower, upper, tol=1e-10, **keywords)
    assert not shrinks
    monkeypatch.setattr(smo, "MAX_ACTIVE_SHARE", 0.95)
    monkeypatch.setattr(
        smo, "SHRINKING_MARGIN", margin
    )  # at minus infinity, all at a bound are left out, whether right or not
    found = solve(K, linear, lower, upper, tol=1e-10, **keywords)
    assert 0 < min(shrinks) <= max(shrinks) < len(linear)
    assert found.status is Status.CONVERGED
    assert found.objective == pytest.approx(expected.objective, rel=1e-9)
    multiplier = found.multiplier
    multiplier = multiplier[keywords["groups"]] if "groups" in keywords else multiplier
    assert violation(K.astype(float), linear, lower, upper, found.x, multiplier, keywords.get("index")) < 1e-4


@pytest.mark.parametrize("tol", [1e-3, 1e-5, 1e-7])
@pytest.mark.parametrize("margin", [1.0, -np.inf])
def test_the_certificate_of_a_shrunken_run_is_over_all_variables(tol, margin, shrinks, monkeypatch):
    monkeypatch.setattr(smo, "SHRINKING_MARGIN", margin)
    K, linear, lower, upper, _ = shrinking_forms()["total"]
    found = solve(K, linear, lower, upper, tol=tol)
    assert shrinks
    gradient = K @ found.x + linear
    assert found.gradient == pytest.approx(gradient, abs=1e-10)
    # The gap is piecewise linear in the multiplier, with kinks at the gradients.
    excess = gradient - gradient[:, None]
    gaps = np.maximum(excess * (found.x - lower), excess * (found.x - upper)).sum(axis=1)
    assert found.certificate.gap == pytest.approx(gaps.min(), rel=1e-6, abs=1e-12)
    assert found.certificate.relative <= tol
    assert found.objective == pytest.approx(objective(K, linear, found.x), rel=1e-12)


@pytest.mark.parametrize("total", [0.0, None])
def test_a_shrunken_run_on_an_indefinite_kernel_ends_in_a_stationary_point(total, shrinks):
    X, y = points(5, n=120)
    A = np.random.default_rng(5).normal(size=(120, 120))
    K = rbf_kernel(X) + 0.1 * (A + A.T)
    linear, lower, upper = svm(y, 5.0)
    found = solve(K, linear, lower, upper, total=total, tol=1e-6)
    assert shrinks
    assert found.certificate.kind == "stationarity"
    assert found.status is Status.CONVERGED
    scale = np.abs(K @ found.x + linear).max()
    assert violation(K, linear, lower, upper, found.x, found.multiplier) <= 1e-6 * scale


def test_the_limit_on_pair_steps_is_kept_by_a_shrunken_run(shrinks):
    K, linear, lower, upper, _ = shrinking_forms()["total"]
    found = solve(K, linear, lower, upper, tol=1e-12, max_iter=130)
    assert shrinks
    assert found.status is Status.MAX_ITER
    assert found.n_iter == 130


@pytest.mark.parametrize("total", [0.0, None])
def test_the_order_of_variables_that_share_rows_does_not_matter(total):
    K, linear, lower, upper, keywords = shrinking_forms()["index"]
    inorder = solve(K, linear, lower, upper, total=total, tol=1e-10, **keywords)
    order = np.random.default_rng(0).permutation(240)
    arrays = (array[order] for array in (linear, lower, upper))
    mixed = solve(K, *arrays, total=total, tol=1e-10, index=keywords["index"][order])
    assert mixed.objective == pytest.approx(inorder.objective, rel=1e-9)
    assert mixed.gradient == pytest.approx(inorder.gradient[order], abs=1e-4)

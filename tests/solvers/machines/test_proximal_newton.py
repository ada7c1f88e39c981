import numpy as np
import pytest

from kernelweave.solvers.machines import smo
from kernelweave.solvers.machines.proximal_newton import best_offset, solve_proximal_newton
from kernelweave.solvers.result import Status


def problem(seed, n=150, n_features=8, scale=1.0, C=1.0):
    """Features, and the box of a machine on noisy labels whose bounds are moved for some variables."""
    rng = np.random.default_rng(seed)
    Z = scale * rng.normal(size=(n, n_features)) * np.exp(-0.3 * np.arange(n_features))
    signs = np.sign(Z[:, 0] + 0.5 * scale * rng.normal(size=n))
    moved = np.where(rng.random(n) < 0.2, -0.3 * C * signs, 0.0)
    reach = signs * C * rng.uniform(0.1, 2.0, n)
    return Z, -signs, np.minimum(0.0, reach) + moved, np.maximum(0.0, reach) + moved


def primal(Z, linear, lower, upper, total, v, b):
    """The value of the dual in the features, which bounds the optimum from below when negated."""
    a = Z @ v + linear + b
    return 0.5 * v @ v + total * b + np.maximum(-lower * a, -upper * a).sum()


@pytest.mark.parametrize("C", [0.1, 10.0, 1e3])
@pytest.mark.parametrize("seed", range(4))
def test_it_reaches_the_optimum_of_smo_on_the_kernel_matrix(seed, C):
    Z, linear, lower, upper = problem(seed, scale=10.0 ** (seed % 3 - 1), C=C)
    total = 0.1 * float(upper.sum())
    found = solve_proximal_newton(Z, linear, lower, upper, total=total, tol=1e-7)
    oracle = smo.solve(Z @ Z.T, linear, lower, upper, total=total, tol=1e-9)
    assert found.status is Status.CONVERGED
    assert found.certificate.relative <= 1e-7
    assert found.objective == pytest.approx(oracle.objective, rel=2e-7)  # the gaps of both
    assert found.objective - oracle.objective <= found.certificate.gap + 1e-9 * abs(oracle.objective)
    assert np.all((lower <= found.x) & (found.x <= upper))
    assert found.x.sum() == pytest.approx(total, abs=1e-9 * np.abs(found.x).sum())


@pytest.mark.parametrize("max_rounds", [0, 1, 2])
def test_the_limit_is_a_status_and_the_gap_is_proven_by_the_point_of_the_dual(max_rounds):
    Z, linear, lower, upper = problem(1)
    found = solve_proximal_newton(Z, linear, lower, upper, tol=1e-14, max_rounds=max_rounds)
    assert found.status is Status.MAX_ITER
    v = np.linalg.lstsq(Z, found.gradient - linear, rcond=None)[0]  # the gradient is Z v + linear
    bound = found.objective + primal(Z, linear, lower, upper, 0.0, v, -found.multiplier)
    assert found.certificate.gap == pytest.approx(bound, rel=1e-8)
    optimum = smo.solve(Z @ Z.T, linear, lower, upper, total=0.0, tol=1e-10).objective
    assert found.objective - optimum <= found.certificate.gap


def test_variables_may_share_a_row():
    Z, linear, lower, upper = problem(2)
    rows = np.random.default_rng(0).integers(40, size=len(Z))
    found = solve_proximal_newton(Z[:40], linear, lower, upper, index=rows, tol=1e-7)
    oracle = smo.solve(Z[:40] @ Z[:40].T, linear, lower, upper, total=0.0, index=rows, tol=1e-9)
    assert found.objective == pytest.approx(oracle.objective, rel=2e-7)


def test_a_start_at_the_optimum_ends_at_once_and_one_outside_the_box_is_clipped():
    Z, linear, lower, upper = problem(3)
    first = solve_proximal_newton(Z, linear, lower, upper, tol=1e-6)
    again = solve_proximal_newton(Z, linear, lower, upper, tol=1e-3, start=first.x)
    assert again.n_iter == 0
    far = solve_proximal_newton(Z, linear, lower, upper, tol=1e-6, start=first.x + 100.0)
    assert far.objective == pytest.approx(first.objective, rel=2e-6)


def test_single_precision_reaches_what_it_can():
    Z, linear, lower, upper = problem(4, C=10.0)
    exact = solve_proximal_newton(Z, linear, lower, upper, tol=1e-6)
    found = solve_proximal_newton(Z.astype(np.float32), linear, lower, upper, tol=1e-4)
    assert found.status is Status.CONVERGED
    assert found.objective == pytest.approx(exact.objective, rel=1e-4 + 1e-5)  # the gap, and rounding of Z
    limit = solve_proximal_newton(Z.astype(np.float32), linear, lower, upper, tol=1e-14)
    assert limit.status is Status.PRECISION


def test_few_variables_stay_inside_the_box():
    Z, linear, lower, upper = problem(5, n=2000, n_features=5)
    found = solve_proximal_newton(Z, linear, lower, upper, tol=1e-2)
    assert np.count_nonzero((found.x > lower) & (found.x < upper)) <= 10


@pytest.mark.parametrize("seed", range(5))
def test_the_offset_is_the_one_with_the_smallest_gap(seed):
    rng = np.random.default_rng(seed)
    gradient, x = rng.normal(size=30), rng.uniform(-1.0, 1.0, 30)
    lower, upper = x - rng.uniform(0.0, 1.0, 30), x + rng.uniform(0.0, 1.0, 30)
    offset, gap = best_offset(gradient, x, lower, upper)
    others = np.append(-gradient, offset)
    gaps = [np.maximum((gradient + b) * (x - lower), (gradient + b) * (x - upper)).sum() for b in others]
    assert gap == pytest.approx(gaps[-1])
    assert gap <= min(gaps) + 1e-12  # the kinks are where a minimum is


def test_rows_without_features_and_variables_without_room_are_no_trouble():
    Z = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0], [0.0, 0.0]])
    lower, upper = np.array([0.0, 0.5, -1.0, 0.0]), np.array([2.0, 0.5, 0.0, 0.0])
    linear = np.array([-1.0, -1.0, 1.0, 5.0])
    found = solve_proximal_newton(Z, linear, lower, upper, total=0.0, tol=1e-9)
    oracle = smo.solve(Z @ Z.T, linear, lower, upper, total=0.0, tol=1e-10)
    assert found.objective == pytest.approx(oracle.objective, rel=1e-7)
    np.testing.assert_allclose(found.x, oracle.x, atol=1e-6)

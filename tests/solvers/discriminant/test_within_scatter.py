import numpy as np
import pytest
from checks.discriminant import center, sample
from oracles.reference import within_discriminant_sdp
from scipy.optimize import minimize

from kernelweave.solvers.discriminant.within_scatter import (
    _WithinFactors,
    _WithinScatter,
    class_difference,
    solve_within_scatter,
    within_center,
)
from kernelweave.solvers.machines.kernel_stack import Factor, KernelStack
from kernelweave.solvers.result import Status

SHARES = [None, (1.0, 1.0)]  # of (3), and of the paper's J


def problem(seed, m=20, n_kernels=4):
    codes, kernels = sample(seed, m, 2, n_kernels)
    return [K / np.trace(K) for K in kernels], np.where(codes == 1, 1.0, -1.0)


def ratio(kernels, signs, ridge, shares, weights):
    """The largest value of (3), in explicit features."""
    values, vectors = np.linalg.eigh(sum(w * K for w, K in zip(weights, kernels, strict=True)))
    features = vectors * np.sqrt(np.maximum(values, 0.0))
    classes = [features[signs == sign] for sign in (1.0, -1.0)]
    shares = shares or [len(part) / len(signs) for part in classes]
    scatter = sum(share * np.cov(part.T, bias=True) for share, part in zip(shares, classes, strict=True))
    difference = classes[0].mean(axis=0) - classes[1].mean(axis=0)
    return difference @ np.linalg.solve(scatter + ridge * np.eye(len(scatter)), difference)


# The semidefinite program of Kim et al.


def check_against_the_sdp(seed, m, ridge, shares):
    pytest.importorskip("cvxpy")
    kernels, signs = problem(seed, m, n_kernels=2 + seed % 5)
    J = within_center(signs, shares, np.eye(m))
    oracle = within_discriminant_sdp(kernels, class_difference(signs), J, ridge)
    found = solve_within_scatter(kernels, signs, ridge=ridge, shares=shares)
    assert found.status is Status.CONVERGED
    assert found.objective == pytest.approx(oracle.objective, rel=1e-6)
    assert ratio(kernels, signs, ridge, shares, found.x) == pytest.approx(oracle.objective, rel=1e-6)
    slack = 1e-7 * oracle.objective
    assert -slack <= oracle.objective - found.objective <= found.certificate.gap + slack
    assert ratio(kernels, signs, ridge, shares, oracle.weights) == pytest.approx(oracle.objective, rel=1e-6)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("shares", SHARES)
def test_the_optimum_is_that_of_the_sdp(seed, shares):
    check_against_the_sdp(seed, 15 + 2 * seed, 10.0 ** (-3 + seed / 2), shares)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5, 30))
def test_the_optimum_is_that_of_the_sdp_on_more_problems(seed):
    check_against_the_sdp(seed, 15 + seed % 26, 10.0 ** np.random.default_rng(seed).uniform(-3, 0), SHARES[seed % 2])


def test_at_a_tiny_ridge_it_beats_a_general_solver():
    kernels, signs = problem(3, m=30)  # where the semidefinite solvers fail, as the paper says of its own
    found = solve_within_scatter(kernels, signs, ridge=1e-8)
    assert found.status is Status.CONVERGED
    assert found.objective == pytest.approx(ratio(kernels, signs, 1e-8, None, found.x), rel=1e-5)
    general = minimize(
        lambda w: -ratio(kernels, signs, 1e-8, None, np.abs(w) / np.abs(w).sum()) / found.objective,
        np.full(4, 0.25),
        method="Nelder-Mead",
        options={"maxiter": 600},
    )
    assert -general.fun <= 1.0 + found.certificate.relative + 1e-6


# Derivatives and identities


@pytest.mark.parametrize("shares", SHARES)
def test_gradient_and_hessian_are_those_of_finite_differences(shares):
    kernels, signs = problem(1)
    function, h = _WithinScatter(KernelStack(kernels), signs, 0.01, shares), 1e-5
    w = np.random.default_rng(0).dirichlet(np.ones(4))

    def at(weights):
        return function.value(weights), function.derivatives()

    value, here = at(w)
    assert -value == pytest.approx(ratio(kernels, signs, 0.01, shares, w), rel=1e-9)
    for i, unit_vector in enumerate(np.eye(4)):
        above, below = at(w + h * unit_vector), at(w - h * unit_vector)
        assert -here.forms[i] == pytest.approx((above[0] - below[0]) / (2 * h), rel=1e-5)
        change = (below[1].forms - above[1].forms) / (2 * h)
        np.testing.assert_allclose(here.hessian[i], change, rtol=1e-4, atol=1e-6 * np.abs(here.hessian).max())


def test_the_optimum_is_equation_9_and_the_dual_equation_7():
    kernels, signs = problem(2)
    a, J = class_difference(signs), within_center(signs, (1.0, 1.0), np.eye(20))
    found = solve_within_scatter(kernels, signs, ridge=0.05, shares=(1.0, 1.0))
    G = sum(w * K for w, K in zip(found.x, kernels, strict=True))
    alpha = (np.eye(20) - J @ np.linalg.solve(0.05 * np.eye(20) + J @ G @ J, J @ G)) @ a / 0.05  # (7)
    np.testing.assert_allclose(found.dual, alpha, rtol=1e-7, atol=1e-7)
    assert found.objective == pytest.approx(a @ G @ alpha, rel=1e-9)  # (9)


def test_the_printed_matrix_is_that_of_shares_one():
    signs = np.array([1.0, -1.0, 1.0, -1.0, -1.0])
    J = within_center(signs, (1.0, 1.0), np.eye(5))
    for sign in (1.0, -1.0):
        rows = np.flatnonzero(signs == sign)
        block = (np.eye(len(rows)) - 1 / len(rows)) / np.sqrt(len(rows))
        np.testing.assert_allclose(J[np.ix_(rows, rows)], block)
    np.testing.assert_allclose(J[np.ix_(signs > 0, signs < 0)], 0.0)


def test_with_equal_classes_the_printed_matrix_is_that_of_3_with_half_the_ridge():
    kernels, _ = problem(4)
    signs = np.resize([1.0, -1.0], 20)  # S+ + S- is twice the scatter of (3)
    printed = solve_within_scatter(kernels, signs, ridge=0.02, shares=(1.0, 1.0), tol=1e-10)
    weighted = solve_within_scatter(kernels, signs, ridge=0.01, tol=1e-10)
    assert printed.objective == pytest.approx(weighted.objective / 2, rel=1e-9)


def test_centring_the_kernels_changes_nothing():
    kernels, signs = problem(5)
    raw = solve_within_scatter(kernels, signs, ridge=0.01, tol=1e-10)
    centred = solve_within_scatter([center(K) for K in kernels], signs, ridge=0.01, tol=1e-10)
    assert centred.objective == pytest.approx(raw.objective, rel=1e-9)
    np.testing.assert_allclose(centred.x, raw.x, atol=1e-5)


def test_points_of_neither_class_have_no_part_in_it():
    kernels, signs = problem(6)
    signs[-4:] = 0.0
    found = solve_within_scatter(kernels, signs, ridge=0.01, tol=1e-10)
    fewer = solve_within_scatter(
        [np.ascontiguousarray(K[:16, :16]) for K in kernels], signs[:16], ridge=0.01, tol=1e-10
    )
    assert found.objective == pytest.approx(fewer.objective, rel=1e-9)
    np.testing.assert_allclose(found.x, fewer.x, atol=1e-6)
    np.testing.assert_allclose(found.dual[-4:], 0.0)


def test_the_certificate_bounds_the_error_at_every_step_and_the_history_rises():
    kernels, signs = problem(7, m=40, n_kernels=6)
    best = solve_within_scatter(kernels, signs, ridge=1e-3, tol=1e-11).objective
    for n_steps in range(4):
        found = solve_within_scatter(kernels, signs, ridge=1e-3, max_iter=n_steps)
        assert -1e-9 * best <= best - found.objective <= found.certificate.gap + 1e-9 * best
    values = [record["objective"] for record in found.history]
    assert values == sorted(values)


def factors(seed, m=60, ranks=(3, 5, 2)):
    rng = np.random.default_rng(seed)
    signs = np.where(np.arange(m) % 3 == 0, 1.0, -1.0)
    signs[-m // 10 :] = 0.0
    parts = [rng.normal(size=(m, rank)) + np.outer(signs, rng.normal(size=rank)) for rank in ranks]
    return [Z / np.linalg.norm(Z) for Z in parts], signs


@pytest.mark.parametrize("shares", SHARES)
@pytest.mark.parametrize("ridge", [1e-8, 0.01, 10.0])
def test_factors_of_low_rank_are_the_kernels_they_stand_for(ridge, shares):
    parts, signs = factors(11)
    parts[1] = np.hstack([parts[1], parts[1]])  # columns may depend on each other
    scales = np.array([2.0, 0.5, 1.0])
    options = {"ridge": ridge, "shares": shares, "tol": 1e-10}
    low = solve_within_scatter(KernelStack([Factor(Z) for Z in parts], scales), signs, **options)
    dense = solve_within_scatter(KernelStack([Z @ Z.T for Z in parts], scales), signs, **options)
    assert low.status is Status.CONVERGED
    assert low.objective == pytest.approx(dense.objective, rel=1e-7)
    np.testing.assert_allclose(low.x, dense.x, atol=1e-4)
    np.testing.assert_allclose(low.forms, dense.forms, rtol=1e-4)
    G = sum(w * Z @ Z.T / s for w, Z, s in zip(low.x, parts, scales, strict=True))
    projected = G @ dense.dual  # at a tiny ridge the dual itself is large where kernels do not see it
    np.testing.assert_allclose(G @ low.dual, projected, atol=1e-4 * np.abs(projected).max())


@pytest.mark.parametrize("shares", SHARES)
def test_gradient_and_hessian_of_factors_are_those_of_kernels(shares):
    parts, signs = factors(12)
    w = np.random.default_rng(0).dirichlet(np.ones(3))
    low = _WithinFactors(KernelStack([Factor(Z) for Z in parts]), signs, 0.01, shares)
    dense = _WithinScatter(KernelStack([Z @ Z.T for Z in parts]), signs, 0.01, shares)
    assert low.value(w) == pytest.approx(dense.value(w), rel=1e-10)
    here, there = low.derivatives(), dense.derivatives()
    np.testing.assert_allclose(here.forms, there.forms, rtol=1e-9)
    np.testing.assert_allclose(here.hessian, there.hessian, rtol=1e-8)


def test_factors_form_no_matrix_of_all_points():
    parts, signs = factors(13, m=200_000, ranks=(2, 2))  # such a matrix would take 320 GB
    found = solve_within_scatter([Factor(Z) for Z in parts], signs, ridge=1e-6)
    assert found.status is Status.CONVERGED
    assert found.dual.shape == signs.shape


@pytest.mark.parametrize("ridge", [1e-20, 1e-100, 1e-300])
def test_a_ridge_below_rounding_is_refused(ridge):
    parts, signs = factors(14)
    for stack in ([Factor(Z) for Z in parts], [Z @ Z.T for Z in parts], [np.eye(60)]):
        with pytest.raises(ValueError, match="the ridge is too small beside them"):
            solve_within_scatter(stack, signs, ridge=ridge)
    tight = np.where(signs > 0, 1.0, 0.0)[:, None]  # no scatter within: the objective is 1 by the ridge
    for kernel in (Factor(tight), tight @ tight.T):
        assert solve_within_scatter([kernel], np.where(signs > 0, 1.0, -1.0), ridge=1e-100).objective == pytest.approx(
            1e100
        )
        with pytest.raises(ValueError, match="Pass a larger ridge"):
            solve_within_scatter([kernel], np.where(signs > 0, 1.0, -1.0), ridge=1e-300)


def test_factors_duplicates_zero_and_single_kernels():
    rng = np.random.default_rng(8)
    kernels, signs = problem(8)
    Z = rng.normal(size=(20, 3))
    dense = solve_within_scatter([*kernels, Z @ Z.T], signs, ridge=0.1)
    assert solve_within_scatter([*kernels, Factor(Z)], signs, ridge=0.1).objective == pytest.approx(
        dense.objective, rel=1e-6
    )
    doubled = solve_within_scatter([*kernels, *kernels, np.zeros((20, 20))], signs, ridge=0.1)
    assert doubled.objective == pytest.approx(solve_within_scatter(kernels, signs, ridge=0.1).objective, rel=2e-6)
    single = solve_within_scatter(kernels[:1], signs, ridge=0.1)
    assert (single.n_iter, single.x) == (0, pytest.approx([1.0]))


# The course and its inputs


def test_it_stops_at_max_iter_and_when_the_callback_says_so():
    kernels, signs = problem(9, m=40, n_kernels=6)
    assert solve_within_scatter(kernels, signs, ridge=1e-4, max_iter=1).status is Status.MAX_ITER
    seen = []
    stopped = solve_within_scatter(kernels, signs, ridge=1e-4, callback=lambda state: seen.append(state) or True)
    assert stopped.status is Status.CALLBACK
    assert seen[0].objective == stopped.objective > 0


def test_inputs_that_do_not_fit_are_refused():
    kernels, signs = problem(10)
    with pytest.raises(ValueError, match="ridge must be a positive number"):
        solve_within_scatter(kernels, signs, ridge=0.0)
    with pytest.raises(ValueError, match="1, -1 or 0 for each of the 20 points"):
        solve_within_scatter(kernels, signs[1:], ridge=1.0)
    with pytest.raises(ValueError, match="1, -1 or 0"):
        solve_within_scatter(kernels, 2 * signs, ridge=1.0)
    with pytest.raises(ValueError, match="got 20 positive and 0 negative"):
        solve_within_scatter(kernels, np.ones(20), ridge=1.0)

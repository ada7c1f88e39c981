import numpy as np
import pytest
from checks.discriminant import drawn, problem, scatter, traces
from oracles.reference import joint_discriminant_sdp

from kernelweave.solvers.discriminant import joint_lmi
from kernelweave.solvers.discriminant.joint_lmi import _centre, _Point, solve_joint_lmi
from kernelweave.solvers.discriminant.matrix_fractional import RidgedStack, class_indicator, solve_matrix_fractional
from kernelweave.solvers.machines.kernel_stack import Factor
from kernelweave.solvers.result import Status

RIDGES = [None, 0.03]


def bounded(S, accuracy=1e-10):
    """min 1't with Diag(t) >= S, up to the accuracy."""
    mu = accuracy * np.trace(S) / len(S)
    return _centre(S, mu).t.sum()


# The semidefinite program of the paper


def check_against_the_sdp(kernels, H, ridge, *, divided=False):
    pytest.importorskip("cvxpy")
    oracle = joint_discriminant_sdp(kernels, H, ridge, divided=divided)
    optimum = oracle.objective / (1.0 if ridge is None or divided else ridge)
    found = solve_joint_lmi(kernels, H, ridge=ridge, tol=5e-7)
    assert found.status is Status.CONVERGED
    assert found.objective == pytest.approx(optimum, rel=1e-6)
    # Clarabel's constraints hold up to 1e-7 where the ridge is tiny, and by as much its optimum is too low: what counts
    # for the certificate is the value of its weights.
    both = found.x, oracle.weights * traces(kernels, ridge)
    own, theirs = (bounded(scatter(kernels, H, ridge, weights / weights.sum())) for weights in both)
    assert own == pytest.approx(optimum, rel=1e-6)
    assert theirs == pytest.approx(optimum, rel=1e-6)
    assert found.objective >= own * (1 - 1e-8)
    assert found.objective - found.certificate.gap <= theirs * (1 + 1e-8)


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 5])
def test_the_optimum_is_that_of_the_sdp(seed):
    check_against_the_sdp(*drawn(seed, largest=25))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 35))
def test_the_optimum_is_that_of_the_sdp_on_more_problems(seed):
    check_against_the_sdp(*drawn(seed))


def test_the_optimum_at_a_tiny_ridge_is_that_of_the_sdp_divided_by_it():
    check_against_the_sdp(*problem(4, m=18), 1e-8, divided=True)


# Derivatives


@pytest.mark.parametrize("ridge", RIDGES)
def test_gradient_and_hessian_are_those_of_finite_differences(ridge):
    kernels, H = problem(1)
    stack, h = RidgedStack(kernels, H, ridge), 1e-5
    w, mu = np.random.default_rng(0).dirichlet(np.full(stack.n_weights, 5.0)), 1.0

    def at(weights):
        point = _Point(stack, weights, stack.value(weights))
        centre = point.centre(mu)
        derivatives = point.derivatives(centre)
        return centre.value / mu, *derivatives

    _, gradient, hessian = at(w)
    for i, unit_vector in enumerate(np.eye(len(w))):
        above, below = at(w + h * unit_vector), at(w - h * unit_vector)
        assert gradient[i] == pytest.approx((above[0] - below[0]) / (2 * h), rel=1e-4)
        change = (above[1] - below[1]) / (2 * h)
        np.testing.assert_allclose(hessian[i], change, rtol=1e-3, atol=1e-5 * np.abs(hessian).max())


def test_the_best_bounds_of_a_diagonal_matrix_are_its_entries():
    S = np.diag([1.0, 3.0, 0.5])
    assert bounded(S) == pytest.approx(4.5, rel=1e-9)


def test_the_best_bounds_of_a_matrix_of_rank_one():
    v = np.array([1.0, -2.0, 0.5])  # (sum |v|)^2, as X = sign(v) sign(v)' and t = |v| sum |v| meet
    assert bounded(np.outer(v, v)) == pytest.approx(3.5**2, rel=1e-9)


# Properties of the optimum


@pytest.mark.parametrize("ridge", [*RIDGES, 1e-8])
def test_the_bounds_hold_and_the_certificate_bounds_the_error_at_every_step(ridge):
    kernels, H = problem(3, m=40, k=4, n_kernels=6)
    best = solve_joint_lmi(kernels, H, ridge=ridge, tol=1e-9).objective
    for n_steps in range(0, 15, 2):
        found = solve_joint_lmi(kernels, H, ridge=ridge, max_iter=n_steps)
        S = scatter(kernels, H, ridge, found.x)
        assert np.linalg.eigvalsh(np.diag(found.bounds) - S).min() > -1e-8 * found.objective
        assert found.exact == pytest.approx(np.trace(S), rel=1e-6)
        assert found.objective == pytest.approx(found.bounds.sum())
        assert -1e-8 * best <= found.objective - best <= found.certificate.gap + 1e-8 * best
        assert found.certificate.kind == "duality gap"


def test_the_joint_optimum_is_above_the_exact_one():
    kernels, H = problem(5, m=30)
    exact = solve_matrix_fractional(kernels, H, ridge=None)
    joint = solve_joint_lmi(kernels, H, ridge=None)
    assert joint.objective > joint.exact * (1 - 1e-9)
    assert joint.exact >= exact.objective - exact.certificate.gap


@pytest.mark.parametrize("ridge", RIDGES)
def test_of_one_column_it_is_the_exact_problem(ridge):
    kernels, H = problem(6, k=2)
    exact = solve_matrix_fractional(kernels, H[:, :1], ridge=ridge, tol=1e-9)
    joint = solve_joint_lmi(kernels, H[:, :1], ridge=ridge, tol=1e-9)
    assert joint.objective == pytest.approx(exact.objective, rel=1e-8)


@pytest.mark.parametrize("ridge", RIDGES)
def test_of_two_classes_it_has_the_exact_weights(ridge):
    kernels, H = problem(7, k=2)  # S = vv', so its optimum is (sum |v|)^2 / |v|^2 times the exact one
    exact = solve_matrix_fractional(kernels, H, ridge=ridge, tol=1e-10)
    joint = solve_joint_lmi(kernels, H, ridge=ridge, tol=1e-9)
    lengths = np.linalg.norm(H, axis=0)
    factor = lengths.sum() ** 2 / (lengths**2).sum()
    assert joint.objective == pytest.approx(factor * exact.objective, rel=1e-8)
    np.testing.assert_allclose(joint.x, exact.x, atol=1e-3)


@pytest.mark.parametrize("ridge", RIDGES)
def test_the_order_of_kernels_does_not_matter(ridge):
    kernels, H = problem(8, m=24, n_kernels=5)
    order = np.array([3, 0, 4, 2, 1])
    found = solve_joint_lmi(kernels, H, ridge=ridge, tol=1e-9)
    again = solve_joint_lmi([kernels[i] for i in order], H[:, ::-1], ridge=ridge, tol=1e-9)
    assert again.objective == pytest.approx(found.objective, rel=1e-8)
    np.testing.assert_allclose(again.x[ridge is None :], found.x[ridge is None :][order], atol=1e-3)


@pytest.mark.parametrize("ridge", RIDGES)
def test_factors_are_the_kernels_they_stand_for(ridge):
    rng = np.random.default_rng(9)
    H = class_indicator(np.arange(50) % 3, 3)
    parts = [rng.normal(size=(50, 3)) + 2.0 * H @ rng.normal(size=(3, 3)) for _ in range(3)]
    parts = [Z / np.linalg.norm(Z) for Z in (Z - Z.mean(axis=0) for Z in parts)]
    low = solve_joint_lmi([Factor(Z) for Z in parts], H, ridge=ridge, tol=1e-8)
    dense = solve_joint_lmi([Z @ Z.T for Z in parts], H, ridge=ridge, tol=1e-8)
    assert low.objective == pytest.approx(dense.objective, rel=1e-7)
    assert low.dual.shape == H.shape


def test_duplicated_zero_and_single_kernels():
    kernels, H = problem(10)
    found = solve_joint_lmi(kernels, H, ridge=0.01)
    more = solve_joint_lmi([*kernels, kernels[0], np.zeros_like(kernels[0])], H, ridge=0.01)
    assert more.status is Status.CONVERGED
    assert more.objective == pytest.approx(found.objective, rel=2e-6)
    single = solve_joint_lmi(kernels[:1], H, ridge=0.01)
    assert single.x == pytest.approx([1.0])
    assert single.objective == pytest.approx(bounded(scatter(kernels[:1], H, 0.01, [1.0])), rel=1e-6)


@pytest.mark.parametrize("ridge", [1e-10, 1e4])
def test_tiny_and_huge_ridges(ridge):
    kernels, H = problem(11, m=30)
    found = solve_joint_lmi(kernels, H, ridge=ridge)
    assert found.status is Status.CONVERGED
    assert found.x.sum() == pytest.approx(1.0)


def test_a_matrix_that_is_not_definite_is_refused():
    _, H = problem(11)
    with pytest.raises(ValueError, match="not positive definite in double precision"):
        solve_joint_lmi([np.full((20, 20), np.nan)], H, ridge=1.0)


# The course


def test_it_stops_at_max_iter_and_when_the_callback_says_so():
    kernels, H = problem(12)
    found = solve_joint_lmi(kernels, H, ridge=0.01, max_iter=2)
    assert (found.status, found.n_iter) == (Status.MAX_ITER, 2)
    states = []
    stopped = solve_joint_lmi(kernels, H, ridge=0.01, callback=lambda state: states.append(state) or len(states) == 3)
    assert (stopped.status, stopped.n_iter) == (Status.CALLBACK, 2)
    assert [record["objective"] for record in stopped.history] == [state.objective for state in states]


def test_it_starts_anywhere():
    kernels, H = problem(13, m=30)
    cold = solve_joint_lmi(kernels, H, ridge=0.01)
    vertex = solve_joint_lmi(kernels, H, ridge=0.01, start=np.array([1.0, 0.0, 0.0, 0.0]))
    assert vertex.objective == pytest.approx(cold.objective, rel=2e-6)
    assert cold.n_iter <= 25


def test_a_step_that_nothing_shortens_enough_is_reported(monkeypatch):
    kernels, H = problem(14)
    monkeypatch.setattr(joint_lmi, "_search", lambda *args: None)
    found = solve_joint_lmi(kernels, H, ridge=0.01)
    assert (found.status, found.n_iter) == (Status.PRECISION, 0)


@pytest.mark.parametrize("ridge", RIDGES)
def test_a_tolerance_out_of_reach_is_given_up_before_long(ridge, monkeypatch):
    kernels, H = problem(3, m=40, k=4, n_kernels=6)
    near, inner = solve_joint_lmi(kernels, H, ridge=ridge, tol=1e-8), []
    monkeypatch.setattr(
        joint_lmi, "_descend", lambda *args, descend=joint_lmi._descend: inner.append(descend(*args)) or inner[-1]
    )
    found = solve_joint_lmi(kernels, H, ridge=ridge, tol=1e-14)
    assert found.status is Status.PRECISION
    assert found.certificate.relative <= 1e-8
    assert found.n_iter <= near.n_iter + 2 * joint_lmi.MAX_STALLS
    assert (
        sum(n_steps for _, n_steps in inner) <= 100 * found.n_cholesky
    )  # steps in t; rounding does not make them many

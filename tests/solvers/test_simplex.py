import numpy as np
import pytest
from scipy.optimize import minimize

from kernelweave.solvers.simplex import (
    minimise_quadratic,
    minimise_quadratic_in_ball,
    project,
    project_on_ball,
    solve_definite,
)


def simplex_violation(H, c, w):
    """How far a point of the simplex is from optimal: the gradient's slope to the best vertex."""
    gradient = H @ w + c
    return gradient @ w - gradient.min()


def quadratic(seed, n, rank):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(rank, n))
    return A.T @ A, rng.normal(size=n)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("weighted", [False, True])
def test_the_projection_satisfies_its_variational_inequality(seed, weighted):
    rng = np.random.default_rng(seed)
    point, r = rng.normal(size=8), rng.uniform(0.2, 3.0, size=8) if weighted else np.ones(8)
    w = project(point, r if weighted else None)
    assert w.min() >= 0.0
    assert r @ w == pytest.approx(1.0)
    # (point - w)'(v - w) <= 0 for all v of the simplex, that is, for its vertices e_k / r_k.
    assert np.max((point - w) / r) - (point - w) @ w <= 1e-12


def test_a_point_of_the_simplex_is_its_own_projection():
    assert project(np.array([0.2, 0.0, 0.8])) == pytest.approx([0.2, 0.0, 0.8])
    assert project(np.array([5.0])) == pytest.approx([1.0])
    assert project(np.full(4, -1e9)) == pytest.approx(np.full(4, 0.25))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("sign", [-1.0, 1.0])
@pytest.mark.parametrize("size", [2.0**30, 2.0**52, 1e17, 1e100, 1e300])
def test_far_away_points_have_a_projection_too(size, sign):
    assert project(np.array([sign * size])).tolist() == [1.0]
    assert project(np.full(4, sign * size)) == pytest.approx(np.full(4, 0.25))
    assert project(np.array([0.0, sign * size, 0.0])) == pytest.approx([0.0, 1.0, 0.0] if sign > 0 else [0.5, 0.0, 0.5])
    r = np.array([1.0, 2.0, 0.5])  # along r the projection stays the same
    expected = project(np.array([0.25, 0.5, 0.0]), r)
    if size < 2.0**53:
        assert project(np.array([0.25, 0.5, 0.0]) + sign * size * r, r) == pytest.approx(expected, abs=size * 4e-16)
    assert project(sign * size * r, r) == pytest.approx(r / (r @ r))


@pytest.mark.parametrize("p", [1.05, 1.5, 2.0, 3.0, 50.0, np.inf])
@pytest.mark.parametrize("seed", range(3))
def test_the_projection_on_a_ball_is_the_nearest_of_its_points(p, seed):
    rng = np.random.default_rng(seed)
    point = 2.0 * rng.normal(size=6)
    w = project_on_ball(point, p)
    assert w.min() >= 0.0
    assert np.linalg.norm(w, p) <= 1.0 + 1e-12
    # The largest value of a linear function over the ball is the dual norm of its positive part.
    slope = np.maximum(point - w, 0.0)
    assert np.linalg.norm(slope, 1.0 if np.isinf(p) else p / (p - 1.0)) - (point - w) @ w <= 1e-10


def test_inside_the_ball_only_signs_matter():
    assert project_on_ball(np.array([0.3, -0.2, 0.1]), 3.0) == pytest.approx([0.3, 0.0, 0.1])


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("n, rank", [(1, 1), (4, 4), (30, 30), (30, 5), (60, 0), (200, 40)])
def test_the_quadratic_program_satisfies_its_optimality_conditions(seed, n, rank):
    H, c = quadratic(seed, n, rank)
    w = minimise_quadratic(H, c)
    assert w.min() >= 0.0
    assert w.sum() == pytest.approx(1.0)
    assert simplex_violation(H, c, w) <= 1e-9 * max(1.0, np.abs(H).max())


@pytest.mark.parametrize("magnitude", [1e-12, 1e12])
def test_the_quadratic_program_does_not_depend_on_its_scale(magnitude):
    H, c = quadratic(0, 12, 12)
    assert minimise_quadratic(magnitude * H, magnitude * c) == pytest.approx(minimise_quadratic(H, c))


def test_equal_columns_share_their_weight_without_harm():
    H, c = quadratic(1, 5, 5)
    copies = np.array([0, 1, 2, 3, 4, 0, 1, 2, 3, 4])
    once, twice = minimise_quadratic(H, c), minimise_quadratic(H[np.ix_(copies, copies)], c[copies])
    assert twice[:5] + twice[5:] == pytest.approx(once, abs=1e-6)


def test_nearly_equal_columns_are_solved():
    rng = np.random.default_rng(2)
    A = rng.normal(size=(20, 1)) + 1e-9 * rng.normal(size=(20, 40))
    H, c = A.T @ A, -0.1 * rng.uniform(size=40)
    assert simplex_violation(H, c, minimise_quadratic(H, c)) <= 1e-7


@pytest.mark.parametrize("p", [1.1, 2.0, 4.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_quadratic_program_in_a_ball_has_the_optimum_of_a_general_solver(p, seed):
    H, c = quadratic(seed, 6, 4)

    def objective(v):
        return 0.5 * v @ H @ v + c @ v

    w = minimise_quadratic_in_ball(H, c, p)
    peer = minimize(
        objective,
        np.full(6, 0.1),
        jac=lambda v: H @ v + c,
        bounds=[(0.0, 1.0)] * 6,
        constraints={"type": "ineq", "fun": lambda v: 1.0 - (v**p).sum(), "jac": lambda v: -p * v ** (p - 1.0)},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert w.min() >= 0.0
    assert np.linalg.norm(w, p) <= 1.0
    # For p = 1.1 the peer may give up a little outside the ball, where values are lower: its multiple inside counts.
    size = max(1.0, np.abs(H).max())
    assert objective(w) <= objective(peer.x / max(1.0, np.linalg.norm(peer.x, p))) + 1e-7 * size
    # The dual norm bounds how much lower any point of the ball can be.
    gradient = H @ w + c
    best = -np.linalg.norm(np.maximum(-gradient, 0.0), p / (p - 1.0))
    assert gradient @ w - best <= 1e-7 * size


@pytest.mark.parametrize("columns", [(), (3,)])
def test_a_definite_system_is_solved_as_it_is(columns):
    rng = np.random.default_rng(0)
    Z, right = rng.normal(size=(5, 7)), rng.normal(size=(5, *columns))
    A = Z @ Z.T
    np.testing.assert_allclose(A @ solve_definite(A, right), right, atol=1e-12)
    ridged = solve_definite(A, right, ridge=0.5)
    np.testing.assert_allclose((A + 0.5 * np.eye(5)) @ ridged, right, atol=1e-12)


def test_a_matrix_that_rounding_made_indefinite_gets_a_ridge():
    z = np.random.default_rng(1).normal(size=6)
    A = np.outer(z, z) - 1e-15 * np.eye(6)
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.cholesky(A)
    assert A @ solve_definite(A, A @ z) == pytest.approx(A @ z, rel=1e-10)


@pytest.mark.parametrize("A", [-np.eye(3), np.diag([1.0, -1.0, 1.0]), np.zeros((3, 3))])
def test_a_matrix_that_is_not_definite_is_refused(A):
    with pytest.raises(np.linalg.LinAlgError, match="far from it"):
        solve_definite(A, np.ones(3))

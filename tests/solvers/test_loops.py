import numpy as np
import pytest

from kernelweave.solvers.loops import add, solve_factored, walk


def factored(seed, n=12):
    A = np.random.default_rng(seed).normal(size=(n, n))
    H = A @ A.T + np.eye(n)
    L = np.linalg.cholesky(H)
    return H, L, np.ascontiguousarray(L.T)


def test_a_vector_is_added_in_place():
    values = np.ones(3)
    add(values, np.arange(3.0), 2.0)
    np.testing.assert_array_equal(values, [1.0, 3.0, 5.0])


def test_factors_solve_the_system():
    H, L, U = factored(0)
    b = np.arange(12.0)
    x = b.copy()
    solve_factored(L, U, x)
    np.testing.assert_allclose(H @ x, b, atol=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_far_from_the_bounds_the_walk_ends_at_the_constrained_minimum(seed):
    H, L, U = factored(seed)
    rng = np.random.default_rng(seed)
    x0, gradient, E = rng.normal(size=12), rng.normal(size=12), np.ones((1, 12))
    x = x0.copy()
    walk(L, U, E, gradient, x, np.full(12, -1e6), np.full(12, 1e6), 5)
    assert x.sum() == pytest.approx(x0.sum())
    slope = gradient + H @ (x - x0)
    np.testing.assert_allclose(slope, slope.mean(), atol=1e-9)  # equal on all variables: their sum is kept


@pytest.mark.parametrize("seed", range(3))
def test_the_walk_stays_in_the_box_and_goes_down(seed):
    H, L, U = factored(seed)
    rng = np.random.default_rng(seed)
    lower, upper = np.full(12, -0.1), np.full(12, 0.1)
    x0, gradient = rng.uniform(-0.1, 0.1, 12), 5.0 * rng.normal(size=12)
    x = x0.copy()
    walk(L, U, np.empty((0, 12)), gradient, x, lower, upper, 20)
    step = x - x0
    assert np.all((x >= lower) & (x <= upper))
    assert gradient @ step + 0.5 * step @ H @ step < 0.0

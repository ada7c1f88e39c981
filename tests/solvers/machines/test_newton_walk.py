import numpy as np
import pytest

from kernelweave.solvers.machines.newton_walk import walk

pytestmark = pytest.mark.usefixtures("form")


def factored(seed, n=12):
    A = np.random.default_rng(seed).normal(size=(n, n))
    H = A @ A.T + np.eye(n)
    L = np.linalg.cholesky(H)
    return H, np.tril(L) + np.tril(L, -1).T


@pytest.mark.parametrize("seed", range(3))
def test_far_from_the_bounds_the_walk_ends_at_the_constrained_minimum(seed):
    H, factor = factored(seed)
    rng = np.random.default_rng(seed)
    x0, gradient, E = rng.normal(size=12), rng.normal(size=12), np.ones((1, 12))
    x = x0.copy()
    walk(factor, E, gradient, x, np.full(12, -1e6), np.full(12, 1e6), 5)
    assert x.sum() == pytest.approx(x0.sum())
    slope = gradient + H @ (x - x0)
    np.testing.assert_allclose(slope, slope.mean(), atol=1e-9)  # equal on all variables: their sum is kept


@pytest.mark.parametrize("seed", range(3))
def test_the_walk_stays_in_the_box_and_goes_down(seed):
    H, factor = factored(seed)
    rng = np.random.default_rng(seed)
    lower, upper = np.full(12, -0.1), np.full(12, 0.1)
    x0, gradient = rng.uniform(-0.1, 0.1, 12), 5.0 * rng.normal(size=12)
    x = x0.copy()
    walk(factor, np.empty((0, 12)), gradient, x, lower, upper, 20)
    step = x - x0
    assert np.all((x >= lower) & (x <= upper))
    assert gradient @ step + 0.5 * step @ H @ step < 0.0


def test_variables_that_meet_a_bound_stay_there():
    H, factor = factored(3)
    x, gradient = np.zeros(12), np.linspace(-9.0, 9.0, 12)
    lower, upper = np.full(12, -0.2), np.full(12, 0.2)
    walk(factor, np.ones((1, 12)), gradient, x, lower, upper, 30)
    slope, free = gradient + H @ x, (x > lower) & (x < upper)
    assert 0 < np.count_nonzero(free) < 12
    assert x.sum() == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(slope[free], slope[free].mean(), atol=1e-9)

"""Problems of machines whose parts are of very different sizes: rounding is met early, and said."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from kernelweave.solvers.machines.smo import solve
from kernelweave.solvers.result import Status


@pytest.mark.parametrize("constant", [1e5, -1e8])
def test_a_constant_in_the_linear_term_changes_the_multiplier_alone(constant):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 4))
    y = np.where(X[:, 0] + 0.7 * rng.normal(size=60) > 0.3, 1.0, -1.0)
    K, linear = rbf_kernel(X, gamma=0.5), rng.normal(size=60) - y
    lower, upper = np.minimum(0.0, 100.0 * y), np.maximum(0.0, 100.0 * y)
    plain = solve(K, linear, lower, upper, tol=1e-7)
    moved = solve(K, constant + linear, lower, upper, tol=1e-7)
    # The linear term itself is known to a rounding of the constant, which costs move the objective by.
    rounding = 4.0 * np.finfo(float).eps * abs(constant) * np.abs(upper - lower).sum()
    assert moved.status is Status.CONVERGED
    assert moved.n_iter <= 2 * plain.n_iter
    assert moved.objective == pytest.approx(plain.objective, rel=2e-7, abs=rounding)
    assert moved.multiplier - constant == pytest.approx(plain.multiplier, abs=1e-3)
    np.testing.assert_allclose(moved.gradient - constant, plain.gradient, atol=1e-2)


@pytest.mark.parametrize("seed", range(6))
def test_a_box_that_is_far_too_large_for_its_gradient_ends_at_rounding(seed):
    # A rounding of the gradient times the width of the box is above the tolerance; to look again does not change it.
    rng = np.random.default_rng(seed)
    A, linear = rng.normal(size=(8, 8)), 1e-30 * rng.normal(size=8)
    lower, upper = np.repeat([0.0, -1.0], 8), np.repeat([1.0, 0.0], 8)  # two copies of each row, as in regression
    index = np.tile(np.arange(8), 2)
    found = solve(A @ A.T + np.eye(8), linear[index], lower, upper, index=index, max_iter=10_000)
    assert found.status in (Status.CONVERGED, Status.PRECISION)

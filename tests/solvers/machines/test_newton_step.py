import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from kernelweave.solvers.machines import newton_step as module
from kernelweave.solvers.machines import smo
from kernelweave.solvers.machines.newton_step import newton_step


def problem(seed, n=40, half=1.0):
    """A convex model of a problem with two sums, at a point inside the box; what newton_step takes, and H."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, n))
    H = A @ A.T + np.eye(n)
    E = np.zeros((2, n))
    E[0, : n // 2] = E[1, n // 2 :] = 1.0
    x = rng.uniform(-half, half, n)
    return H, E, H @ (rng.normal(size=n) * 0.8), -half - x, half - x


def take(H, E, gradient, lower, upper):
    """The step, and the sizes of what was factored."""
    sizes = []

    def factor(places):
        sizes.append(len(places))
        return np.asfortranarray(np.linalg.cholesky(H[np.ix_(places, places)]))

    def multiply(places, others, values):
        return H[np.ix_(places, others)] @ values

    return newton_step(factor, multiply, factor(np.arange(len(H))), E, gradient, lower, upper), sizes


@pytest.mark.parametrize("seed", range(3))
def test_far_from_the_bounds_the_step_ends_at_the_constrained_minimum(seed):
    H, E, gradient, lower, upper = problem(seed)
    step, sizes = take(H, E, gradient, 1e6 * lower, 1e6 * upper)
    slope = gradient + H @ step
    # Equal on all variables of a sum, up to rounding times the condition of H, about 1e3.
    for row in E.astype(bool):
        np.testing.assert_allclose(slope[row], slope[row].mean(), atol=1e-9)
    assert E @ step == pytest.approx(0.0, abs=1e-11)
    assert sizes == [40]


@pytest.mark.parametrize("first", [0.1, 0.7, 1.0])
@pytest.mark.parametrize("max_fixed", [0.0, 0.05, 1.0])
@pytest.mark.parametrize("seed", range(6))
def test_the_others_are_at_their_minimum_given_those_that_met_a_bound(seed, max_fixed, first, monkeypatch):
    monkeypatch.setattr(module, "MAX_FIXED_SHARE", max_fixed)
    monkeypatch.setattr(module, "FIRST_SHARE", first)
    monkeypatch.setattr(module, "MAX_FACTORS", 40)
    H, E, gradient, lower, upper = problem(seed, half=2.0)
    step, sizes = take(H, E, gradient, lower, upper)
    met = (step == lower) | (step == upper)
    assert 0 < np.count_nonzero(met) < 40
    assert np.all((step >= lower) & (step <= upper))
    assert E @ step == pytest.approx(0.0, abs=1e-11)
    slope = gradient + H @ step
    for row in E.astype(bool):
        left = row & ~met
        np.testing.assert_allclose(slope[left], slope[left].mean(), atol=1e-8)
    assert len(sizes) == 1 or max_fixed < 1.0  # one more factor, or one more row of the constraints: the same step


@pytest.mark.parametrize("max_fixed", [0.0, 0.1])
def test_factoring_anew_changes_nothing(max_fixed, monkeypatch):
    monkeypatch.setattr(module, "FIRST_SHARE", 1.0)
    arguments = problem(1, half=2.0)
    monkeypatch.setattr(module, "MAX_FIXED_SHARE", 1.0)
    whole, _ = take(*arguments)
    monkeypatch.setattr(module, "MAX_FIXED_SHARE", max_fixed)
    parts, sizes = take(*arguments)
    assert len(sizes) > 1
    assert sizes == sorted(sizes, reverse=True)
    np.testing.assert_allclose(parts, whole, atol=1e-9)


@pytest.mark.parametrize("first", [0.1, 0.7, 1.0])
def test_variables_that_do_not_see_each_other_reach_the_minimum_in_the_box(first, monkeypatch):
    monkeypatch.setattr(module, "FIRST_SHARE", first)
    monkeypatch.setattr(module, "MAX_FACTORS", 40)
    rng = np.random.default_rng(0)
    gradient, half = rng.normal(size=40), np.full(40, 0.2)
    step, _ = take(np.eye(40), np.zeros((0, 40)), gradient, -half, half)
    np.testing.assert_allclose(step, np.clip(-gradient, -half, half), atol=1e-15)


def test_after_too_many_factors_there_is_no_step(monkeypatch):
    monkeypatch.setattr(module, "MAX_FIXED_SHARE", 0.0)
    monkeypatch.setattr(module, "MAX_FACTORS", 1)
    step, _ = take(*problem(0, half=2.0))
    assert step is None


def test_where_no_variable_is_left_to_keep_a_sum_there_is_no_step():
    step, _ = take(np.eye(2), np.ones((1, 2)), np.array([1.0, -3.0]), np.full(2, -0.1), np.full(2, 0.1))
    assert step is None


def test_a_step_without_sums_takes_the_bounds_into_account():
    gradient, half = np.array([3.0, -0.2, 0.1, 0.0]), np.full(4, 1.0)
    step, _ = take(np.eye(4), np.zeros((0, 4)), gradient, -half, half)
    assert step == pytest.approx([-1.0, 0.2, -0.1, 0.0])


@pytest.mark.parametrize("form", ["total", "none", "groups", "index"])
def test_machines_that_take_such_steps_reach_the_optimum(form, monkeypatch):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(150, 3))
    y = np.where((X[:, 0] > 0.0) ^ (rng.random(150) < 0.1), 1.0, -1.0)
    K, lower, upper = rbf_kernel(X), np.minimum(0.0, 10.0 * y), np.maximum(0.0, 10.0 * y)
    signs = (y > 0).astype(int)
    problem, keywords = {
        "total": ((-y, lower, upper), {}),
        "none": ((-y, lower, upper), {"total": None}),
        "groups": ((0.0 * y, lower, upper), {"groups": signs, "start": 200.0 * y / np.bincount(signs)[signs]}),
        "index": (tuple(np.tile(a, 2) for a in (-y, lower, upper)), {"index": np.tile(np.arange(150), 2)}),
    }[form]
    expected = smo.solve(K, *problem, tol=1e-9, **keywords)
    taken = []

    def counted(*arguments):
        taken.append(newton_step(*arguments))
        return taken[-1]

    for name, value in {"MIN_MANY": 1, "NEWTON_STEP": 0.0, "newton_step": counted}.items():
        monkeypatch.setattr(smo, name, value)
    found = smo.solve(K, *problem, tol=1e-9, **keywords)
    assert found.status.converged
    assert found.objective == pytest.approx(expected.objective, rel=2e-9)
    assert any(step is not None for step in taken)

import numpy as np
import pytest

from kernelweave.solvers.machines.optimality import find_best_multiplier, measure_gap, survey
from kernelweave.solvers.machines.pair_steps import Problem

pytestmark = pytest.mark.usefixtures("form")


def place(seed, n=30):
    """Gradient, point, and box; some variables are at their bounds."""
    rng = np.random.default_rng(seed)
    lower, upper = -rng.uniform(0.1, 2.0, size=n), rng.uniform(0.1, 2.0, size=n)
    return rng.normal(size=n), np.clip(rng.normal(size=n), lower, upper), lower, upper


@pytest.mark.parametrize("seed", range(5))
def test_the_gap_is_what_the_box_allows_along_the_gradient(seed):
    gradient, x, lower, upper = place(seed)
    best = np.where(gradient > 0.3, lower, upper)  # minimises the linear model
    assert measure_gap(gradient, x, lower, upper, 0.3) == pytest.approx((gradient - 0.3) @ (x - best))


@pytest.mark.parametrize("seed", range(5))
def test_no_multiplier_has_a_smaller_gap(seed):
    gradient, x, lower, upper = place(seed)
    most, least = gradient[x > lower].max(), gradient[x < upper].min()
    found = find_best_multiplier(gradient, x, lower, upper, least, most)
    gap = measure_gap(gradient, x, lower, upper, found)
    others = [measure_gap(gradient, x, lower, upper, b) for b in [*gradient, *np.linspace(least, most, 50)]]
    assert gap <= min(others) * (1.0 + 1e-12)


def test_between_two_multipliers_that_serve_alike_is_their_middle():
    gradient, lower, upper = np.array([-1.0, -1.0, 1.0, 1.0]), np.zeros(4), np.ones(4)
    x = np.array([1.0, 1.0, 0.0, 0.0])
    assert find_best_multiplier(gradient, x, lower, upper, -1.0, 1.0) == 0.0


@pytest.mark.parametrize("sizes", [(30,), (12, 18), (0, 30)])
def test_the_survey_is_what_its_formulas_say(sizes):
    gradient, x, lower, upper = place(1)
    rng = np.random.default_rng(2)
    A = rng.normal(size=(30, 5))
    offsets = np.cumsum([0, *sizes])
    problem = Problem(
        K=A @ A.T,
        diagonal=(A**2).sum(axis=1),
        linear=rng.normal(size=30),
        lower=lower,
        upper=upper,
        rows=np.arange(30),
        runs=np.array([0, 30]),
        offsets=offsets,
        plain=True,
        slack=False,
        flat=1e-15,
        rounding=1e-8,
    )
    least, most = np.full(len(sizes), np.inf), np.full(len(sizes), -np.inf)
    value, size, largest = survey(problem, x, gradient, np.zeros(30), least, most)
    assert value == pytest.approx(0.5 * x @ (gradient + problem.linear))
    assert size == pytest.approx((np.abs(x) @ np.sqrt(problem.diagonal)) * np.sqrt(problem.diagonal @ x**2))
    assert largest == np.abs(gradient).max()
    for k, group in enumerate(map(slice, offsets[:-1], offsets[1:])):
        assert least[k] == gradient[group][x[group] < upper[group]].min(initial=np.inf)
        assert most[k] == gradient[group][x[group] > lower[group]].max(initial=-np.inf)

import numpy as np
import pytest

from kernelweave.solvers.machines import pair_steps as module
from kernelweave.solvers.machines.pair_steps import Problem, pair_steps

pytestmark = pytest.mark.usefixtures("form")


def problem(seed, n=23, *, slack=False, sizes=None, index=None, runs=(), dtype=float):
    """A random convex problem with some variables at their bounds; returns it with a point."""
    rng = np.random.default_rng(seed)
    rows = np.arange(n) if index is None else np.asarray(index)
    Z = rng.normal(size=(rows.max() + 1, 6))
    K = (Z @ Z.T).astype(dtype)
    x = np.clip(rng.normal(size=len(rows)), -1.0, 1.0)
    return Problem(
        K=K,
        diagonal=K.diagonal()[rows].astype(float),
        linear=rng.normal(size=len(rows)),
        lower=np.full(len(rows), -1.0),
        upper=np.ones(len(rows)),
        rows=rows,
        runs=np.asarray(runs, dtype=np.int64),
        offsets=np.cumsum([0, len(rows)] if sizes is None else [0, *sizes]),
        plain=index is None,
        slack=slack,
        flat=1e-15,
        rounding=1e-8,
    ), x


def gradient_of(problem, x):
    return problem.K.astype(float)[np.ix_(problem.rows, problem.rows)] @ x + problem.linear


def best_steps(problem, x):
    """The points after the step of the best pair; many, as the variables of the last step may tie in their gradient."""
    g, points = gradient_of(problem, x), []
    for start, stop in zip(problem.offsets[:-1], problem.offsets[1:], strict=True):
        group = np.arange(start, stop)
        up, down = group[x[group] < problem.upper[group]], group[x[group] > problem.lower[group]]
        least = g[up].min()
        lowest = [None] if problem.slack and least > 0.0 else up[g[up] <= least + 1e-9]
        slack = [None] if problem.slack and least <= 0.0 else []
        points.append([max((step(problem, x, g, i, j) for j in [*down, *slack]), key=lambda s: s[0]) for i in lowest])
    worst = max(min(gain for gain, _ in group) for group in points)
    return [point for group in points for gain, point in group if gain >= worst]


def step(problem, x, g, i, j):
    """Gain, were there no box, and the point after variable i rises as j falls."""
    move, room = np.zeros(len(x)), np.inf
    for v, sign in ((i, 1.0), (j, -1.0)):
        if v is not None:
            move[v] += sign
            room = min(room, problem.upper[v] - x[v] if sign > 0 else x[v] - problem.lower[v])
    slope = -g @ move
    curvature = max(move @ problem.K[np.ix_(problem.rows, problem.rows)] @ move, problem.flat)
    return max(slope, 0.0) ** 2 / curvature, x + min(slope / curvature, room) * move


FORMS = {
    "one group": {},
    "two groups": {"sizes": (11, 12)},
    "no equality": {"slack": True},
    "shared rows": {"index": np.concatenate([np.arange(12), np.arange(1, 12)])},
    "shared rows, in runs": {"index": np.concatenate([np.arange(12), np.arange(1, 12)]), "runs": (0, 12, 23)},
    "shared rows, no equality": {"index": np.arange(23) // 2, "slack": True},
}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("form", FORMS)
def test_steps_are_those_of_the_best_pairs(form, seed):
    given, x = problem(seed, **FORMS[form])
    gradient = gradient_of(given, x)
    for _ in range(10):
        expected = best_steps(given, x)
        assert pair_steps(given, x, gradient, 0.0, 1) == (1, True, True)
        assert min(np.abs(x - point).max() for point in expected) < 1e-9
    np.testing.assert_allclose(gradient, gradient_of(given, x), atol=1e-10)


@pytest.mark.parametrize("form", FORMS)
def test_many_steps_in_a_row_are_the_same_as_one_at_a_time(form):
    given, x = problem(7, **FORMS[form])
    other, gradient = x.copy(), gradient_of(given, x)
    slowly = gradient.copy()
    assert pair_steps(given, x, gradient, 0.0, 12)[0] == 12
    for _ in range(12):
        pair_steps(given, other, slowly, 0.0, 1)
    assert np.array_equal(x, other)
    assert np.array_equal(gradient, slowly)


def test_steps_end_at_the_threshold():
    given, x = problem(0)
    gradient = gradient_of(given, x)
    n_taken, *_ = pair_steps(given, x, gradient, 0.1, 10_000)
    assert 0 < n_taken < 10_000
    assert pair_steps(given, x, gradient, 0.1, 10)[0] == 0


def test_the_gradient_of_a_single_precision_kernel_does_not_drift():
    given, x = problem(1, dtype=np.float32)
    gradient = gradient_of(given, x)
    pair_steps(given, x, gradient, 0.0, 500)
    np.testing.assert_allclose(gradient, gradient_of(given, x), atol=1e-11)


def test_without_curvature_variables_at_a_bound_are_not_chosen():
    given, x = problem(2)
    # The gains are infinite, also of variables that cannot fall: those have the largest gradients here.
    given = given._replace(K=np.zeros((23, 23)), diagonal=np.zeros(23), linear=np.linspace(1.0, 0.0, 23), flat=5e-324)
    x = np.where(np.arange(23) < 12, -1.0, 0.5)
    assert pair_steps(given, x, given.linear.copy(), 0.0, 1) == (1, True, True)
    assert np.count_nonzero(x[:12] + 1.0) == 0
    assert x.min() == -1.0
    assert x.max() == 1.0


def test_a_direction_without_bound_or_curvature_is_told():
    given, x = problem(3)
    infinite = np.full(23, np.inf)
    given = given._replace(K=np.zeros((23, 23)), diagonal=np.zeros(23), lower=-infinite, upper=infinite)
    assert pair_steps(given, x, given.linear.copy(), 0.0, 5) == (0, True, False)


def test_negative_curvature_is_told():
    given, x = problem(4)
    given = given._replace(K=-given.K, diagonal=-given.diagonal)
    assert not pair_steps(given, x, gradient_of(given, x), 0.0, 5)[1]


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 64, 100])
def test_the_largest_entry_that_is_not_barred_is_found(n):
    rng = np.random.default_rng(n)
    values, barred = rng.normal(size=n), np.where(rng.random(n) < 0.5, np.inf, 0.0)
    for sign in (1.0, -1.0):
        place = module._argmax(values, sign, barred, np.empty(n))
        expected = sign * values - barred
        if np.isfinite(expected).any():
            assert place == np.argmax(expected)
        else:
            assert place == -1


@pytest.mark.parametrize("n", [5, 24, 100])
def test_of_equal_entries_the_first_is_found(n):
    rng = np.random.default_rng(n)
    for _ in range(50):
        values = rng.integers(3, size=n).astype(float)
        assert module._argmax(values, 1.0, np.zeros(n), np.empty(n)) == np.argmax(values)

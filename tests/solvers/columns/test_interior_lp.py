from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog

from kernelweave.solvers.columns.interior_lp import (
    SMALL_WEIGHT,
    DenseLP,
    feasible_start,
    move_inside,
    solve_interior_lp,
    step_inside,
    vertex,
)

KINDS = ["two-sided", "one-sided", "equality", "no bounds"]


def program(seed, kind="equality", n_rows=12, n_points=40, C=2.0, twice=False):
    """A program like the duals of 1-norm machines; ``twice``: two variables a point, of either sign."""
    rng = np.random.default_rng(seed)
    K = np.vstack([np.ones(n_points), rng.normal(size=(n_rows, n_points))])
    point = np.tile(np.arange(n_points), 2 if twice else 1)
    sign = np.repeat([1.0, -1.0], n_points) if twice else rng.choice([-1.0, 1.0], n_points)
    cost = 0.3 - sign * rng.normal(size=n_points)[point] if twice else -np.ones(n_points)
    upper = np.append(0.0 if kind == "equality" else np.inf if kind == "no bounds" else 1.0, np.ones(n_rows))
    lower = np.where(np.arange(n_rows + 1) > 0, -np.inf, -upper) if kind == "one-sided" else -upper
    return DenseLP(K, sign, point, cost, np.full(len(point), C), lower, upper)


def dense(lp):
    return lp.K[:, lp.point] * lp.sign


def optimum(lp):
    A = dense(lp)
    rows = [(A[i], lp.upper[i]) for i in range(len(A)) if np.isfinite(lp.upper[i])]
    rows += [(-A[i], -lp.lower[i]) for i in range(len(A)) if np.isfinite(lp.lower[i])]
    box = np.column_stack([np.zeros(len(lp.cost)), lp.ceiling])
    return linprog(lp.cost, [row for row, _ in rows], [bound for _, bound in rows], bounds=box, method="highs").fun


@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("C", [0.01, 2.0, 1e4])
def test_the_optimum_is_that_of_highs_up_to_the_gap(kind, twice, C):
    lp = program(0, kind, C=C, twice=twice)
    best = optimum(lp)
    for tol in (1e-1, 1e-4, 1e-7 * max(1.0, C)):
        found = solve_interior_lp(lp, tol)
        assert found.error <= tol
        assert lp.cost @ found.x == pytest.approx(best, rel=3 * tol)
        assert np.all((found.x > 0) & (found.x < lp.ceiling))
        z = dense(lp) @ found.x
        assert np.all((z >= lp.lower - 2 * tol * (1 + np.abs(z))) & (z <= lp.upper + 2 * tol * (1 + np.abs(z))))


@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_the_vertex_nearby_is_optimal(seed, kind, twice):
    lp = program(seed, kind, twice=twice)
    x, y = vertex(lp, solve_interior_lp(lp, 1e-7))
    assert lp.cost @ x == pytest.approx(optimum(lp), rel=1e-10)
    assert np.all((x >= -1e-9) & (x <= lp.ceiling + 1e-9))
    prices = lp.cost - dense(lp).T @ y  # strong duality, with the multipliers of the box
    bounds = np.where(y > 0, lp.lower, lp.upper)[y != 0]
    assert bounds @ y[y != 0] + np.minimum(prices, 0.0) @ lp.ceiling == pytest.approx(lp.cost @ x, rel=1e-9)


def test_a_rough_guess_of_the_vertex_is_refused():
    lp = program(1)
    found = [vertex(lp, solve_interior_lp(lp, tol)) for tol in (0.5, 1e-7)]
    assert found[0] is None
    assert found[1] is not None


def test_equal_rows_have_no_vertex_of_their_own():
    lp = program(2)
    lp = DenseLP(
        np.vstack([lp.K, lp.K[1:]]),
        lp.sign,
        lp.point,
        lp.cost,
        lp.ceiling,
        *[np.append(bound, bound[1:]) for bound in (lp.lower, lp.upper)],
    )
    found = solve_interior_lp(lp, 1e-6)
    assert found.error <= 1e-6
    assert lp.cost @ found.x == pytest.approx(optimum(lp), rel=1e-5)
    answer = vertex(lp, found)
    assert answer is None or lp.cost @ answer[0] == pytest.approx(optimum(lp), rel=1e-9)


def test_a_point_is_a_start_for_a_program_with_other_rows():
    whole = program(3, n_rows=30, n_points=200)
    part = DenseLP(whole.K[:21], whole.sign, whole.point, whole.cost, whole.ceiling, whole.lower[:21], whole.upper[:21])
    start = solve_interior_lp(part, 1e-2).with_rows(10)
    assert start.row_dual.shape == (31,)
    assert start.free[-10:].all()
    found = solve_interior_lp(whole, 1e-3, start)
    assert found.error <= 1e-3
    assert whole.cost @ found.x == pytest.approx(optimum(whole), rel=3e-3)
    again = solve_interior_lp(part, 1e-6, found.without_rows(np.arange(21, 31)))
    assert again.error <= 1e-6
    assert whole.cost @ again.x == pytest.approx(optimum(part), rel=3e-6)


def test_time_that_is_up_ends_it():
    found = solve_interior_lp(program(4), 1e-9, seconds=-1.0)
    assert found.error > 1e-9
    assert found.n_iter == 0


@pytest.mark.parametrize("C", [2.0, 1e12])
def test_what_rounding_forbids_is_not_claimed(C):
    lp = program(5, C=C)
    found = solve_interior_lp(lp, 1e-30)
    assert found.error > 1e-30
    assert np.isfinite(found.x).all()
    assert C > 2.0 or lp.cost @ found.x == pytest.approx(optimum(lp), rel=1e-6)  # the best on the way


def is_inside(lp, x):
    z, ranged = dense(lp) @ x, lp.lower < lp.upper
    return np.all((x > 0) & (x < lp.ceiling)) and np.all((z > lp.lower) & (z < lp.upper) | ~ranged)


@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_steps_from_a_feasible_start_stay_inside_and_end_at_the_optimum(kind, twice):
    lp = program(6, kind, twice=twice)
    point = feasible_start(lp)
    assert is_inside(lp, point.x)
    assert np.allclose((dense(lp) @ point.x)[lp.lower == lp.upper], 0.0, atol=1e-12)
    while point.error > 1e-7:
        point = step_inside(lp, move_inside(lp, point.x, point))
        assert is_inside(lp, point.x)
        assert point.n_iter < 60
    assert lp.cost @ point.x == pytest.approx(optimum(lp), rel=3e-7)


def test_a_point_moves_back_until_it_is_inside_new_rows():
    lp = program(7, n_rows=30, n_points=200)
    part = DenseLP(lp.K[:11], lp.sign, lp.point, lp.cost, lp.ceiling, lp.lower[:11], lp.upper[:11])
    first = solve_interior_lp(part, 1e-1, feasible_start(part))
    found = solve_interior_lp(part, 1e-6, first).with_rows(20)
    assert not is_inside(lp, found.x)
    center = feasible_start(lp)
    moved = move_inside(lp, center.x, found)
    assert is_inside(lp, moved.x)
    assert lp.cost @ moved.x < lp.cost @ center.x
    assert is_inside(lp, move_inside(lp, found.x, found).x)  # nothing was inside: scaled down


def test_a_step_that_rounding_forbids_is_none():
    lp = program(8)
    point = feasible_start(lp)
    assert step_inside(lp, replace(point, x=np.full(len(point.x), np.nan))) is None


@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("size", [1.0, 1e100])
def test_the_matrix_in_single_precision_is_that_in_double_up_to_rounding(size, twice):
    lp = program(0, twice=twice)
    weights = size * np.geomspace(1e-60, 1.0, len(lp.cost))
    exact, rounded = (np.tril(lp.gram(weights, single=single)) for single in (False, True))
    # Each entry is a sum of products of entries of two rows, of numbers rounded to 24 bits.
    lengths = np.sqrt(np.diag(exact))
    np.testing.assert_array_less(np.abs(exact - rounded), 1e-5 * np.outer(lengths, lengths))


@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("size", [1.0, 1e100])
@pytest.mark.parametrize("smallest", [1e-60, 1e-3])
def test_points_of_small_weight_may_be_summed_in_single_precision(smallest, size, twice):
    lp = program(0, twice=twice)
    weights = size * np.geomspace(smallest, 1.0, len(lp.cost))
    A = dense(lp)
    # Of products of such weights two factors and the sum are rounded to 24 bits, of the others to 53.
    rounding = len(weights) * (2.0**-21 * SMALL_WEIGHT + 2.0**-50) * size * np.abs(A).max() ** 2
    np.testing.assert_allclose(np.tril(lp.gram(weights)), np.tril((A * weights) @ A.T), rtol=0.0, atol=rounding)


def test_where_the_matrix_in_single_precision_has_no_factor_that_in_double_is_taken(monkeypatch):
    honest = DenseLP.gram
    monkeypatch.setattr(DenseLP, "gram", lambda lp, D, *, single=False: -honest(lp, D) if single else honest(lp, D))
    lp = program(2)
    found = solve_interior_lp(lp, 1e-7)
    assert found.error <= 1e-7
    assert lp.cost @ found.x == pytest.approx(optimum(lp), rel=1e-6)

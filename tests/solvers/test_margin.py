from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from kernelweave.solvers.machines import smo
from kernelweave.solvers.margin import (
    MarginRows,
    classification_rows,
    feasible_weights,
    fill_box,
    margin_loss,
    one_class_rows,
    regression_rows,
)


def test_classification_loss_is_the_weighted_hinge_loss():
    y, f, cost = np.array([1.0, -1.0, 1.0]), np.array([2.0, 0.5, 0.25]), np.array([1.0, 2.0, 4.0])
    assert classification_rows(y, cost).loss(f) == 0.0 + 2.0 * 1.5 + 4.0 * 0.75


def test_signed_duals_are_summed_by_point():
    two_rows_a_point = MarginRows(
        sign=np.array([1.0, 1.0, -1.0, -1.0]),
        point=np.array([0, 1, 0, 1]),
        target=np.zeros(4),
        cost=np.ones(4),
        n_points=2,
    )
    np.testing.assert_array_equal(two_rows_a_point.signed(np.array([3.0, 0.0, 1.0, 2.0])), [2.0, -2.0])


def test_regression_loss_is_the_insensitive_loss():
    targets, f = np.array([1.0, 2.0, 3.0]), np.array([1.05, 1.5, 4.0])
    rows = regression_rows(targets, 0.1, np.array([1.0, 2.0, 3.0]))
    assert np.isclose(rows.loss(f), 2.0 * 0.4 + 3.0 * 0.9)


def test_one_class_asks_every_value_to_be_positive():
    rows = one_class_rows(3, np.array([1.0, 2.0, 4.0]))
    f = np.array([1.0, -0.5, -2.0])
    np.testing.assert_array_equal(rows.margins(f), f)
    np.testing.assert_array_equal(rows.slack(f), [0.0, 0.5, 2.0])
    assert rows.loss(f) == 9.0


@pytest.mark.parametrize("seed", range(10))
def test_the_margin_loss_is_the_least_over_all_margins(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 12))
    rows = classification_rows(rng.choice([-1.0, 1.0], n), rng.uniform(0.5, 1.0, n))
    f = rng.normal(size=n)

    def value(rho):
        return rows.cost @ np.maximum(0.0, rho - rows.sign * f) - rho

    least, rho = margin_loss(rows, f)
    assert least == pytest.approx(value(rho))
    assert least == pytest.approx(minimize_scalar(value, bounds=(-5, 5), options={"xatol": 1e-10}).fun, abs=1e-8)


def test_the_margin_is_a_quantile_of_the_values():
    rows = one_class_rows(10, np.full(10, 1 / (0.3 * 10)))
    assert margin_loss(rows, np.arange(10.0))[1] == 2.0  # three of ten values are at most 2


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_feasible_weights_are_feasible_and_near(seed, balanced):
    rng = np.random.default_rng(seed)
    signs = np.where(np.arange(12) < 5, 1.0, -1.0)
    rows = classification_rows(signs, rng.uniform(0.2, 0.4, 12))
    exact = feasible_weights(rows, rng.uniform(0.0, 0.4, 12), balanced=balanced)
    np.testing.assert_allclose(feasible_weights(rows, exact, balanced=balanced), exact, atol=1e-15)
    near = feasible_weights(rows, exact + 1e-9 * rng.normal(size=12), balanced=balanced)
    np.testing.assert_allclose(near, exact, atol=1e-7)
    assert np.all((near >= 0) & (near <= rows.cost))
    assert near.sum() == pytest.approx(1.0, abs=1e-15)
    assert not balanced or near @ signs == pytest.approx(0.0, abs=1e-15)


def test_costs_too_small_for_weights_are_refused():
    rows = classification_rows(np.array([1.0, -1.0, -1.0, -1.0]), np.full(4, 0.4))
    assert feasible_weights(rows, rows.cost, balanced=False).sum() == pytest.approx(1.0)
    with pytest.raises(ValueError, match=r"nu is too large: it is 0\.625 and may be at most 0\.5, with a free offset"):
        feasible_weights(rows, rows.cost, balanced=True)
    with pytest.raises(ValueError, match=r"nu is too large: it is 1\.25 and may be at most 1\."):
        feasible_weights(replace(rows, cost=rows.cost / 2), rows.cost, balanced=False)


@pytest.mark.parametrize("total", [0.0, 0.5, 1.7, 3.0])
def test_weights_are_filled_up_or_shrunk_to_their_total_inside_their_box(total):
    upper = np.array([0.5, 1.5, 1.0])
    weights = fill_box(np.array([0.5, 0.25, 0.0]), upper, total)
    assert weights.sum() == pytest.approx(total)
    assert np.all((weights >= 0) & (weights <= upper))


def same(problem, linear, lower, upper, total=0.0, index=None):
    for found, expected in ((problem.linear, linear), (problem.lower, lower), (problem.upper, upper)):
        np.testing.assert_array_equal(found, expected)
    assert not np.any(np.signbit(problem.linear) & (problem.linear == 0.0))
    assert problem.total == total
    np.testing.assert_array_equal(problem.rows, np.arange(len(linear)) if index is None else index)
    assert (problem.index is None) == (index is None)


def drawn(seed, n=20):
    rng = np.random.default_rng(seed)
    return np.where(rng.random(n) < 0.4, 1.0, -1.0), rng.normal(size=n), rng.uniform(0.1, 9.0, size=n)


@pytest.mark.parametrize("seed", range(3))
def test_the_dual_of_classification_is_that_of_the_support_vector_machine(seed):
    y, _, cost = drawn(seed)
    rows = classification_rows(y, cost)
    same(rows.dual(), -y, np.minimum(0.0, y * cost), np.maximum(0.0, y * cost))
    assert rows.dual(total=None).total is None


@pytest.mark.parametrize("seed", range(3))
def test_the_dual_of_the_squared_hinge_is_open_or_closed_where_it_does_not_bind(seed):
    y, _, cost = drawn(seed)
    rows = classification_rows(y, cost)
    same(rows.dual(squared=True), -y, np.where(y > 0, 0.0, -np.inf), np.where(y > 0, np.inf, 0.0))
    box = np.sqrt(cost * cost.sum())  # f = 0 costs sum(C) / 2
    same(rows.dual(squared=True, at=0.0), -y, np.minimum(0.0, y * box), np.maximum(0.0, y * box))


@pytest.mark.parametrize("seed", range(3))
def test_the_dual_of_regression_has_two_variables_a_point(seed):
    _, y, cost = drawn(seed)
    epsilon, zero, index = 0.1, np.zeros(len(y)), np.tile(np.arange(len(y)), 2)
    y[:2] = epsilon, -epsilon
    linear = np.concatenate([epsilon - y, -epsilon - y])
    rows = regression_rows(y, epsilon, cost)
    same(rows.dual(), linear, np.concatenate([zero, -cost]), np.concatenate([cost, zero]), index=index)
    closed, middle = rows.dual(squared=True, at=float(np.median(y))), np.median(y)
    box = np.sqrt(cost * (cost @ np.square(np.maximum(np.abs(y - middle) - epsilon, 0.0))))
    np.testing.assert_allclose(closed.upper, np.concatenate([box, zero]), rtol=1e-13)
    np.testing.assert_allclose(closed.lower, np.concatenate([zero, -box]), rtol=1e-13)


def test_a_constant_that_meets_all_margins_leaves_a_box_that_is_not_empty():
    rows = regression_rows(np.full(4, 2.0), 0.5, np.ones(4))
    problem = rows.dual(squared=True, at=2.0)
    assert np.all(problem.lower < problem.upper)
    assert np.abs(problem.upper - problem.lower).max() < 1e-15


@pytest.mark.parametrize(
    "rows, at",
    [(classification_rows(*drawn(7)[::2]), 0.0), (regression_rows(drawn(8)[1], 0.1, drawn(8)[2]), 0.2)],
)
def test_the_optimum_of_squared_costs_is_inside_the_closed_box(rows, at):
    K = np.exp(-np.square(np.subtract.outer(np.arange(20.0), np.arange(20.0))))
    point = rows.point
    Q = K[np.ix_(point, point)] + np.diag(1.0 / rows.cost)
    closed = rows.dual(squared=True, at=at)
    wide = [np.clip(bound, -1e4, 1e4) for bound in (rows.dual(squared=True).lower, rows.dual(squared=True).upper)]
    optimum = smo.solve(Q, closed.linear, *wide, tol=1e-9)
    inside = smo.solve(Q, closed.linear, closed.lower, closed.upper, tol=1e-9)
    assert inside.objective == pytest.approx(optimum.objective, rel=1e-8)
    assert np.all((optimum.x >= closed.lower) & (optimum.x <= closed.upper))


def test_the_dual_of_one_class_problems_chooses_the_margin():
    rows = one_class_rows(5, np.full(5, 0.4))
    same(rows.dual(total=1.0), np.zeros(5), np.zeros(5), np.full(5, 0.4), total=1.0)


def test_margins_at_some_points_cost_what_these_do():
    rng = np.random.default_rng(5)
    f, targets, cost = rng.normal(size=(3, 12))
    rows, points = regression_rows(targets, 0.1, np.abs(cost)), rng.permutation(12)
    assert rows.at(points[:5]).loss(f) + rows.at(points[5:]).loss(f) == pytest.approx(rows.loss(f))
    assert rows.at(points[:5]).signed(np.ones(10)).tolist() == [0.0] * 12

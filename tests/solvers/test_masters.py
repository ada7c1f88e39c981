import numpy as np
import pytest
from checks.kkt import assert_lp_optimal

from kernelweave.solvers.margin import classification_rows
from kernelweave.solvers.masters import LPMaster
from kernelweave.solvers.reference import full_lp


def problem(seed, n_points=25, n_columns=40, C=1.0):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n_points) < 0.4, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return rng.normal(size=(n_points, n_columns)), classification_rows(y, C * rng.uniform(0.5, 2, n_points))


@pytest.mark.parametrize("seed", range(6))
def test_all_columns_give_the_optimum_of_the_full_problem(seed):
    K, rows = problem(seed, C=10.0 ** (seed % 3 - 1))
    master = LPMaster(rows)
    master.add_columns(np.arange(40), K)
    found = master.solve()
    assert found.objective == pytest.approx(full_lp(K, rows).objective, rel=1e-9)
    assert found.dual_value == pytest.approx(found.objective, rel=1e-9)
    assert_lp_optimal(K, rows.sign, rows.cost, found.coef, found.intercept, found.signed_dual, tol=1e-8)


def test_without_columns_the_offset_pays_for_the_smaller_side():
    _, rows = problem(0)
    costs = [rows.cost[rows.sign == side].sum() for side in (-1, 1)]
    assert LPMaster(rows).solve().objective == pytest.approx(2 * min(costs))


def test_columns_may_come_in_any_portions():
    K, rows = problem(1)
    master = LPMaster(rows)
    for start in range(0, 40, 7):
        master.add_columns(np.arange(start, min(start + 7, 40)), K[:, start : start + 7])
        master.solve()
    assert master.solve().objective == pytest.approx(full_lp(K, rows).objective, rel=1e-9)


@pytest.mark.parametrize("magnitude", [1e-10, 1e-5, 1e5, 1e10])
def test_kernels_of_any_magnitude_are_solved_as_well(magnitude):
    K, rows = problem(2)
    scaled = classification_rows(rows.sign, rows.cost / magnitude)
    master = LPMaster(scaled)
    master.add_columns(np.arange(40), K * magnitude)
    found = master.solve()
    assert found.objective * magnitude == pytest.approx(full_lp(K, rows).objective, rel=1e-8)
    assert found.dual_value == pytest.approx(found.objective, rel=1e-8)


def test_nearly_constant_columns_do_not_spoil_the_solution():
    K, rows = problem(3)
    master = LPMaster(rows)
    master.add_columns(np.arange(40), K + 1e6)
    found = master.solve()
    assert found.objective == pytest.approx(full_lp(K, rows).objective, rel=1e-6)


def test_reported_duals_are_feasible_exactly():
    K, rows = problem(4)
    master = LPMaster(rows)
    master.add_columns(np.arange(40), K)
    dual = master.solve().signed_dual * rows.sign
    assert np.all((dual >= 0) & (dual <= rows.cost))
    assert abs(dual @ rows.sign) <= 1e-14 * dual.sum()


@pytest.mark.parametrize("n_known", [1, 5, 20])
def test_the_bound_of_a_restricted_problem_is_below_the_optimum(n_known):
    K, rows = problem(5)
    master = LPMaster(rows)
    master.add_columns(np.arange(n_known), K[:, :n_known])
    found = master.solve()
    worst = master.violations(K.T @ found.signed_dual).max()
    optimum = full_lp(K, rows).objective
    assert master.bound(found, worst) <= optimum * (1 + 1e-9) <= found.objective * (1 + 2e-9)


def test_a_column_of_zeros_does_nothing():
    K, rows = problem(6)
    K[:, 3] = 0.0
    master = LPMaster(rows)
    master.add_columns(np.arange(40), K)
    assert master.solve().objective == pytest.approx(full_lp(K, rows).objective, rel=1e-9)

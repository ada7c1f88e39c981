import numpy as np
import pytest
from scipy.optimize import linprog

from kernelweave.solvers.columns import highs
from kernelweave.solvers.columns.highs import GrowingLP, OutOfTimeError, SolverFailedError


def random_rows(seed, n_rows=12, n_variables=8):
    rng = np.random.default_rng(seed)
    return rng.normal(size=n_variables), rng.normal(size=(n_rows, n_variables)), rng.uniform(0.1, 1, size=n_rows)


@pytest.mark.parametrize("seed", range(5))
def test_rows_added_one_by_one_give_the_optimum_of_all_rows(seed):
    cost, A, bound = random_rows(seed)
    lp = GrowingLP(cost, np.full(len(cost), 2.0))
    for row, limit in zip(A, bound, strict=True):
        lp.add_rows(row[None, :], np.array([-limit]), np.array([limit]))
        found = lp.solve()
    whole = linprog(cost, A_ub=np.vstack([A, -A]), b_ub=np.r_[bound, bound], bounds=(0, 2.0))
    assert cost @ found.x == pytest.approx(whole.fun, abs=1e-8)
    assert np.all(np.abs(A @ found.x) <= bound + 1e-8)


@pytest.mark.parametrize("right", [True, False])
def test_a_guess_of_the_basis_saves_steps_if_it_is_right(right):
    cost, A, bound = random_rows(2, n_rows=40, n_variables=60)
    programs = [GrowingLP(cost, np.full(len(cost), 2.0)) for _ in range(2)]
    for lp in programs:
        lp.add_rows(A, -bound, bound)
    cold = programs[0].solve()
    x, z = cold.x, A @ cold.x
    free = np.append((x > 1e-9) & (x < 2.0 - 1e-9), np.abs(z) < bound - 1e-9)
    programs[1].guess_basis(free if right else ~free, np.append(x > 1.0, cold.row_dual < 0.0))
    warm = programs[1].solve()
    assert warm.x == pytest.approx(x, abs=1e-8)
    assert cold.n_iter > 10
    assert warm.n_iter == 0 or not right


def test_without_time_it_says_so_and_goes_on_later():
    cost, A, bound = random_rows(1)
    lp = GrowingLP(cost, np.full(len(cost), 2.0))
    lp.add_rows(A, -bound, bound)
    with pytest.raises(OutOfTimeError, match="time"):
        lp.solve(seconds=0.0)
    again = GrowingLP(cost, np.full(len(cost), 2.0))
    again.add_rows(A, -bound, bound)
    assert lp.solve(seconds=60.0).x == pytest.approx(again.solve().x)


def test_multipliers_are_the_change_of_the_objective_with_a_bound():
    cost, A, bound = random_rows(0)

    def value(limits):
        lp = GrowingLP(cost, np.full(len(cost), 2.0))
        lp.add_rows(A, -limits, limits)
        found = lp.solve()
        return cost @ found.x, found.row_dual, A @ found.x

    base, duals, activity = value(bound)
    row = int(np.abs(duals).argmax())
    step = 1e-5
    shifted, _, _ = value(bound + step * (np.arange(len(bound)) == row))
    assert (shifted - base) / step == pytest.approx(-abs(duals[row]), rel=1e-4)
    assert abs(activity[row]) == pytest.approx(bound[row])


@pytest.mark.parametrize("seed", range(3))
def test_moved_bounds_give_the_optimum_of_the_moved_program(seed):
    cost, A, bound = random_rows(seed)
    lp = GrowingLP(cost, np.full(len(cost), 2.0))
    lp.add_rows(A, -bound, bound)
    for factor in (0.5, 3.0, 1.0):
        lp.solve()
        upper, moved = np.full(len(cost), 2.0 * factor), bound.copy()
        moved[:4] *= factor
        lp.set_upper(upper)
        lp.set_row_bounds(-moved[:4], moved[:4])
        whole = linprog(cost, A_ub=np.vstack([A, -A]), b_ub=np.r_[moved, moved], bounds=(0, 2.0 * factor))
        assert cost @ lp.solve().x == pytest.approx(whole.fun, abs=1e-8)


def test_a_program_whose_bounds_are_scaled_is_solved_without_a_step():
    cost, A, bound = random_rows(2)
    lp = GrowingLP(cost, np.full(len(cost), 2.0))
    lp.add_rows(A, -bound, bound)
    before = lp.solve()
    lp.set_upper(np.full(len(cost), 20.0))
    lp.set_row_bounds(-10 * bound, 10 * bound)
    after = lp.solve()
    assert after.n_iter == 0
    np.testing.assert_allclose(after.x, 10 * before.x)


def test_a_failed_warm_solve_is_repeated_from_scratch(monkeypatch):
    cost, A, bound = random_rows(1)
    lp = GrowingLP(cost, np.full(len(cost), 2.0))
    lp.add_rows(A, -bound, bound)
    runs = []
    honest = GrowingLP._run
    monkeypatch.setattr(GrowingLP, "_run", lambda self: bool(runs.append(1) or (len(runs) > 1 and honest(self))))
    assert lp.solve().x.shape == cost.shape
    assert len(runs) == 2


def test_a_feasible_point_is_returned_where_rounding_hides_that_it_is_optimal(monkeypatch):
    cost, A, bound = random_rows(3)
    lp = GrowingLP(cost, np.full(len(cost), 2.0))
    lp.add_rows(A, -bound, bound)
    optimal = lp.solve()
    honest = GrowingLP._run
    monkeypatch.setattr(GrowingLP, "_run", lambda self: honest(self) and False)
    with pytest.raises(SolverFailedError):
        lp.solve()
    monkeypatch.setattr(GrowingLP, "_ended_feasible", lambda self: True)
    np.testing.assert_allclose(lp.solve().x, optimal.x)


def test_an_unsolvable_program_is_a_clear_error():
    lp = GrowingLP(np.ones(1), np.ones(1))
    lp.add_rows(np.ones((1, 1)), np.array([5.0]), np.array([6.0]))  # x = 5 is outside the box
    with pytest.raises(SolverFailedError, match=r"could not solve.*Infeasible"):
        lp.solve()


def test_an_option_that_this_version_lacks_is_named(monkeypatch):
    monkeypatch.setitem(highs.OPTIONS, "no_such_option", 1)
    with pytest.raises(RuntimeError, match="no_such_option"):
        GrowingLP(np.ones(1), np.ones(1))

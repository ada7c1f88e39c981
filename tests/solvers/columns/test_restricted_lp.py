from dataclasses import replace

import numpy as np
import pytest
from oracles.reference import full_lp

from kernelweave.solvers.columns import interior_lp, restricted_lp
from kernelweave.solvers.columns.highs import OutOfTimeError, SolverFailedError
from kernelweave.solvers.columns.loop import generate_columns
from kernelweave.solvers.columns.lp_masters import LPMaster
from kernelweave.solvers.columns.restricted_lp import RestrictedLP
from kernelweave.solvers.margin import classification_rows, regression_rows
from kernelweave.solvers.result import Status


def restricted(seed=0, n_rows=15, n_points=60, **options):
    """A program with rows of random entries, and all that went into it."""
    rng = np.random.default_rng(seed)
    rows = classification_rows(rng.choice([-1.0, 1.0], n_points), np.full(n_points, 2.0))
    lp = RestrictedLP(-np.ones(n_points), rows, **options)
    lp.add_rows(np.ones((1, n_points)), np.zeros(1), np.zeros(1))
    K = rng.normal(size=(n_rows, n_points))
    lp.add_rows(K, np.full(n_rows, -1.0), np.ones(n_rows))
    return lp, K


@pytest.fixture
def many(monkeypatch):
    monkeypatch.setattr(restricted_lp, "MIN_ROUGH_VARIABLES", 2)


def settled(lp):
    """Solve until solutions are exact."""
    while lp.settle():
        found = lp.solve()
    return found


def best(seed=0, **options):
    """The value of the program, by the simplex method alone."""
    lp, _ = restricted(seed, may_be_rough=False, **options)
    assert not lp.is_rough
    return -lp.solve().x.sum()


def test_few_variables_are_left_to_the_simplex_method():
    lp, _ = restricted()
    assert not lp.is_rough
    assert not lp.settle()


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("seed", range(3))
def test_solutions_are_rough_until_they_have_to_be_exact(seed):
    lp, _ = restricted(seed)
    rough = lp.solve(violation=5.0)
    assert lp.is_rough
    assert -rough.x.sum() == pytest.approx(best(seed), rel=0.5)
    assert -rough.x.sum() != pytest.approx(best(seed), rel=1e-6)
    finer = lp.solve(violation=0.01)
    assert -finer.x.sum() == pytest.approx(best(seed), rel=2e-3)
    assert lp.settle()
    assert lp.is_rough  # a better one first
    assert -lp.solve(violation=5.0).x.sum() == pytest.approx(best(seed), rel=1e-4)
    assert lp.settle()
    assert not lp.settle()
    assert -lp.solve().x.sum() == pytest.approx(best(seed), rel=1e-10)
    assert not lp.is_rough


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("exact", [False, True])
def test_rows_come_and_go(exact):
    lp, _ = restricted(n_rows=5)
    lp.solve(violation=3.0)
    if exact:
        settled(lp)
    lp.add_rows(restricted(n_rows=15)[1][5:], np.full(10, -1.0), np.ones(10))
    lp.solve(violation=0.5)
    while lp.settle():
        lp.solve()
    both = RestrictedLP(lp.cost, classification_rows(lp.sign, lp.ceiling), may_be_rough=False)
    both.add_rows(lp.K, lp.lower, lp.upper)
    value = both.solve().x.sum()
    assert lp.solve().x.sum() == pytest.approx(value, rel=1e-9)
    slack = np.flatnonzero(np.abs(lp.K @ (lp.sign * lp.solve().x)) < 0.5)[1:]
    assert len(slack)
    lp.delete_rows(slack)
    assert len(lp.K) == 16 - len(slack)
    assert lp.solve().x.sum() == pytest.approx(value, rel=1e-9)


@pytest.mark.usefixtures("many")
def test_new_bounds_begin_anew():
    lp, _ = restricted()
    settled(lp)
    lp.set_bounds(np.full(60, 0.1), lp.lower, lp.upper)
    assert lp.is_rough
    exact, _ = restricted(may_be_rough=False)
    exact.set_bounds(np.full(60, 0.1), exact.lower, exact.upper)
    assert settled(lp).x.sum() == pytest.approx(exact.solve().x.sum(), rel=1e-9)
    lp.set_bounds(np.full(60, 1e9), lp.lower, lp.upper)
    assert not lp.is_rough  # too wide a box
    exact.set_bounds(np.full(60, 1e9), exact.lower, exact.upper)
    assert lp.solve().x.sum() == pytest.approx(exact.solve().x.sum(), rel=1e-9)


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("fails", ["solve_interior_lp", "vertex"])
def test_where_the_interior_fails_the_simplex_method_takes_over(monkeypatch, fails):
    honest = interior_lp.solve_interior_lp
    replaced = {"vertex": lambda *_: None, "solve_interior_lp": lambda *given: honest(given[0], 1e-30, None, -1.0)}
    monkeypatch.setattr(interior_lp, fails, replaced[fails])
    lp, _ = restricted()
    found = settled(lp) if fails == "vertex" else lp.solve()
    assert -found.x.sum() == pytest.approx(best(), rel=1e-9)
    assert not lp.is_rough


@pytest.mark.usefixtures("many")
def test_where_both_fail_the_rough_solution_is_better_than_none(monkeypatch):
    def fails(*_):
        raise SolverFailedError("HiGHS could not solve the linear program (Unknown).")

    expected = best()
    monkeypatch.setattr(interior_lp, "vertex", lambda *_: None)
    monkeypatch.setattr(restricted_lp.GrowingLP, "solve", fails)
    lp, _ = restricted()
    assert -settled(lp).x.sum() == pytest.approx(expected, rel=1e-6)
    monkeypatch.setattr(restricted_lp, "GUESS_GAP", 0.0)
    with pytest.raises(SolverFailedError):
        lp.solve()


@pytest.mark.usefixtures("many")
def test_time_is_kept():
    lp, _ = restricted()
    with pytest.raises(OutOfTimeError, match="not the time"):
        lp.solve(seconds=0.0)
    assert lp.is_rough


@pytest.mark.usefixtures("many")
def test_without_time_the_simplex_method_does_not_begin(monkeypatch):
    lp, _ = restricted()
    honest = interior_lp.solve_interior_lp
    monkeypatch.setattr(interior_lp, "solve_interior_lp", lambda *given: honest(*given[:3]))  # ends in time
    monkeypatch.setattr(interior_lp, "vertex", lambda *_: None)
    monkeypatch.setattr(restricted_lp, "GrowingLP", None)
    lp.settle()
    lp.solve()
    lp.settle()
    with pytest.raises(OutOfTimeError, match="not the time"):
        lp.solve(seconds=0.0)


def learning_problem(seed, kind="classes", C=2.0, n_points=60):
    rng = np.random.default_rng(seed)
    y = rng.choice([-1.0, 1.0], n_points)
    K = rng.normal(size=(n_points, 300)) + 0.3 * y[:, None]
    costs = np.full(n_points, C)
    return K, classification_rows(y, costs) if kind == "classes" else regression_rows(y + K[:, 0], 0.1, costs)


def by_steps(K, rows, master=None, **options):
    master = LPMaster(rows, scans_are_cheap=True, **options) if master is None else master
    (result,) = generate_columns([master], lambda V, _: [(slice(0, 300), K.T @ V)], lambda J: K[:, J], tol=1e-8)
    return master, result


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("options", [{}, {"positive": True}, {"intercept": "penalized"}, {"intercept": None}])
@pytest.mark.parametrize("kind", ["classes", "numbers"])
@pytest.mark.parametrize("C", [0.05, 2.0, 1e3])
def test_a_scan_after_each_step_leads_to_the_full_lp_optimum(C, kind, options):
    K, rows = learning_problem(0, kind, C)
    _, result = by_steps(K, rows, **options)
    assert result.status is Status.CONVERGED
    assert result.objective == pytest.approx(full_lp(K, rows, **options).objective, rel=1e-8)


@pytest.mark.usefixtures("many")
def test_steps_that_go_on_take_fewer_than_programs_solved_one_by_one(monkeypatch):
    counts = {"step": 0}
    honest = interior_lp._Iterate.step

    def step(self):
        counts["step"] += 1
        return honest(self)

    monkeypatch.setattr(interior_lp._Iterate, "step", step)
    K, rows = learning_problem(1, C=100.0)
    by_steps(K, rows)
    together, counts["step"] = counts["step"], 0
    generate_columns([LPMaster(rows)], lambda V, _: [(slice(0, 300), K.T @ V)], lambda J: K[:, J], tol=1e-8)
    assert together < counts["step"]


@pytest.mark.usefixtures("many")
def test_wider_boxes_begin_where_the_last_one_was_far_from_its_bounds():
    K, rows = learning_problem(2, C=0.02)
    master, _ = by_steps(K, rows)
    n_rounds = []
    for C in (0.05, 0.2, 1e3, 1e4, 0.1):
        cost = np.full(60, C)
        master.set_cost(cost)
        _, result = by_steps(K, rows, master)
        n_rounds.append(result.n_iter)
        again = replace(rows, cost=cost)
        assert result.status is Status.CONVERGED
        assert result.objective == pytest.approx(full_lp(K, again).objective, rel=1e-8)
    _, alone = by_steps(K, replace(rows, cost=np.full(60, 0.2)))
    assert n_rounds[1] < alone.n_iter
    assert n_rounds[3] == 1  # no dual was at its end: the optimum is known


@pytest.mark.usefixtures("many")
def test_where_no_step_is_possible_the_program_is_solved_as_it_is(monkeypatch):
    monkeypatch.setattr(interior_lp, "step_inside", lambda *_: None)
    K, rows = learning_problem(3)
    _, result = by_steps(K, rows)
    assert result.objective == pytest.approx(full_lp(K, rows).objective, rel=1e-8)


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("seed", range(3))
def test_a_vertex_found_between_steps_is_exact_and_steps_go_on_with_new_rows(seed):
    lp, K = restricted(seed, by_steps=True)
    for _ in range(60):
        found = lp.solve()
        if not lp.is_rough:
            break
    assert -found.x.sum() == pytest.approx(best(seed), rel=1e-9)
    assert lp.solve() is found
    assert not lp.settle()
    lp.add_rows(K[:1] + K[1:2], np.full(1, -0.1), np.full(1, 0.1))
    assert lp.goes_by_steps
    new = settled(lp).x
    assert -new.sum() > -found.x.sum()
    np.testing.assert_array_less(np.abs(K @ (lp.sign * new)), 1.0 + 1e-8)
    assert abs((K[0] + K[1]) @ (lp.sign * new)) <= 0.1 + 1e-8


@pytest.mark.usefixtures("many")
def test_copies_of_columns_do_not_join():
    K, rows = learning_problem(4)
    K[:, 150:] = K[:, :150]
    _, result = by_steps(K, rows)
    assert result.status is Status.CONVERGED
    assert result.objective == pytest.approx(full_lp(K[:, :150], rows).objective, rel=1e-8)
    assert len(np.unique(result.columns % 150)) == len(result.columns)

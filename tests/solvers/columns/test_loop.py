import time
from itertools import pairwise

import numpy as np
import pytest
from checks.kkt import assert_lp_optimal
from oracles.reference import full_lp, full_nu_lp

from kernelweave.solvers.columns import loop, restricted_lp
from kernelweave.solvers.columns.highs import OutOfTimeError, SolverFailedError
from kernelweave.solvers.columns.loop import generate_columns
from kernelweave.solvers.columns.lp_masters import LPMaster, NuLPMaster
from kernelweave.solvers.columns.qp_masters import QPMaster
from kernelweave.solvers.margin import classification_rows
from kernelweave.solvers.result import Status


def problem(seed, n_points=40, n_columns=300, C=2.0):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n_points) < 0.5, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return rng.normal(size=(n_points, n_columns)) + 0.3 * y[:, None], classification_rows(y, np.full(n_points, C))


def by_blocks(K, width=64):
    """Pricing that walks a dense matrix in blocks."""

    def price(V, stratum):
        if stratum is not None:
            yield stratum, K[:, stratum].T @ V
            return
        for start in range(0, K.shape[1], width):
            stop = min(start + width, K.shape[1])
            yield slice(start, stop), K[:, start:stop].T @ V

    return price


def solve(K, *problems, **options):
    return generate_columns([LPMaster(rows) for rows in problems], by_blocks(K), lambda J: K[:, J], **options)


def coef_of(result):
    return np.bincount(result.columns, result.x, minlength=300)  # of all columns


def thirds(errors):
    """Strata of every third column."""
    return [np.arange(first, 300, 3) for first in range(3)]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("batch", [1, 7, 50])
def test_column_generation_reaches_the_full_lp_optimum(seed, batch):
    K, rows = problem(seed)
    (result,) = solve(K, rows, tol=1e-9, batch=batch)
    assert result.status is Status.CONVERGED
    assert result.objective == pytest.approx(full_lp(K, rows).objective, rel=1e-8)
    assert_lp_optimal(K, rows.sign, rows.cost, coef_of(result), result.intercept, result.signed_dual)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("max_columns", [None, 10])
def test_rough_solutions_on_the_way_leave_the_end_as_it_is(seed, max_columns, monkeypatch):
    K, rows = problem(seed)
    (exact,) = solve(K, rows, max_columns=max_columns)
    monkeypatch.setattr(restricted_lp, "MIN_ROUGH_VARIABLES", 2)
    (result,) = solve(K, rows, max_columns=max_columns)
    assert result.status is exact.status
    if max_columns is None:
        assert result.objective == pytest.approx(exact.objective, rel=1e-9)
        assert np.count_nonzero(result.x) == np.count_nonzero(exact.x)
    else:  # other columns may have been chosen, but the best is made of them
        again = LPMaster(rows, idle_rounds=None)
        again.add_columns(result.columns, K[:, result.columns])
        assert result.objective == pytest.approx(again.solve().objective, rel=1e-9)


@pytest.mark.parametrize("rough", [False, True])
@pytest.mark.parametrize("tol", [0.5, 0.1, 1e-2, 1e-4])
def test_the_certificate_covers_the_distance_to_the_optimum(tol, rough, monkeypatch):
    monkeypatch.setattr(restricted_lp, "MIN_ROUGH_VARIABLES", 2 if rough else 10**6)
    K, rows = problem(7)
    (result,) = solve(K, rows, tol=tol, batch=3)
    optimum = full_lp(K, rows).objective
    assert -1e-9 * optimum <= result.objective - optimum <= result.certificate.gap + 1e-9 * optimum
    assert result.certificate.relative <= tol


def test_each_round_lowers_the_objective_and_raises_the_bound():
    K, rows = problem(8)
    (result,) = solve(K, rows, batch=5)
    objectives = [record["objective"] for record in result.history]
    bounds = [record["bound"] for record in result.history]
    assert all(b <= a * (1 + 1e-9) for a, b in pairwise(objectives))
    assert all(b >= a for a, b in pairwise(bounds))
    added, dropped = (sum(record[key] for record in result.history) for key in ("n_added", "n_dropped"))
    assert result.history[-1]["n_columns"] == added - dropped == len(result.x)


def test_problems_solved_together_are_solved_as_alone():
    K, first = problem(9)
    second = classification_rows(np.where(np.arange(40) % 3 == 0, 1.0, -1.0), first.cost)
    for alone, shared in zip([solve(K, first)[0], solve(K, second)[0]], solve(K, first, second), strict=True):
        assert alone.objective == pytest.approx(shared.objective, rel=1e-10)  # products with one vector, and with two
        np.testing.assert_allclose(coef_of(alone), coef_of(shared), rtol=0.0, atol=1e-9)


@pytest.mark.parametrize("n_threads", [2, 5])
def test_the_number_of_threads_changes_no_bit(n_threads):
    K, first = problem(10)
    others = [classification_rows(np.where(np.arange(40) % k == 0, 1.0, -1.0), first.cost) for k in (2, 3, 5)]
    for one, many in zip(solve(K, *others), solve(K, *others, n_threads=n_threads), strict=True):
        np.testing.assert_array_equal(one.x, many.x)
        np.testing.assert_array_equal(one.columns, many.columns)


def test_columns_fetched_for_several_problems_are_fetched_once():
    K, first = problem(11)
    asked = []

    def fetch(J):
        asked.append(J)
        return K[:, J]

    result, _ = generate_columns([LPMaster(first), LPMaster(first)], by_blocks(K), fetch)
    assert len(asked) == result.n_iter - 1  # one fetch a round, none after the last
    assert all(len(np.unique(J)) == len(J) for J in asked)


def test_max_columns_is_kept_and_said():
    K, rows = problem(12)
    (result,) = solve(K, rows, max_columns=7, batch=5)
    assert result.status is Status.MAX_COLUMNS
    assert len(result.x) == 7
    optimum = full_lp(K, rows).objective
    assert result.objective - result.certificate.gap <= optimum <= result.objective


def test_max_time_stops_after_the_round_and_says_so():
    K, rows = problem(13)
    (result,) = solve(K, rows, max_time=1e-9, batch=1)
    assert result.status is Status.MAX_TIME
    assert result.n_iter == 1
    assert result.certificate.gap > 0


def test_a_callback_sees_every_round_and_may_stop():
    K, rows = problem(14)
    seen = []
    (result,) = solve(K, rows, batch=1, callback=lambda state: seen.append(state) or state.iteration == 3)
    assert result.status is Status.CALLBACK
    assert [state.iteration for state in seen] == [1, 2, 3]
    assert seen[-1].objective == result.objective
    assert seen[-1].gap == pytest.approx(result.certificate.gap)


def test_a_tolerance_below_rounding_is_said_to_be_so():
    K, rows = problem(15)
    (result,) = solve(K, rows, tol=1e-300)
    assert (result.status is Status.CONVERGED) == (result.certificate.gap == 0.0)
    assert result.certificate.relative < 1e-9


@pytest.mark.parametrize(
    "error, status", [(SolverFailedError, Status.SOLVER_FAILED), (OutOfTimeError, Status.MAX_TIME)]
)
def test_a_solver_that_fails_leaves_the_last_solution_with_its_certificate(monkeypatch, error, status):
    K, rows = problem(18)
    honest = LPMaster.solve

    def fails_later(master, *_):
        if len(master.columns) > 20:
            raise error("no more")
        return honest(master)

    monkeypatch.setattr(LPMaster, "solve", fails_later)
    (result,) = solve(K, rows, batch=10)
    assert result.status is status
    assert len(result.x) == len(result.columns) <= 20
    assert 0 <= result.objective - full_lp(K, rows).objective <= result.certificate.gap


def test_a_linear_program_ends_with_the_time():
    K, rows = problem(18, n_points=60)
    (result,) = solve(K, rows, batch=10, max_time=0.0)
    assert result.status is Status.MAX_TIME
    assert 0 <= result.objective - full_lp(K, rows).objective <= result.certificate.gap
    left = []

    class Late(LPMaster):
        def solve(self, seconds=np.inf):
            left.append(seconds)
            return super().solve(seconds if len(left) < 3 else 0.0)

    (result,) = generate_columns([Late(rows)], by_blocks(K), lambda J: K[:, J], tol=1e-9, batch=10, max_time=1e3)
    assert result.status is Status.MAX_TIME
    assert len(left) == 3
    assert left[0] == np.inf  # the first one is solved at any rate
    assert 0 < left[2] <= left[1] <= 1e3
    assert 0 <= result.objective - full_lp(K, rows).objective <= result.certificate.gap


def test_idle_columns_are_dropped_without_losing_the_optimum():
    K, rows = problem(17, n_points=80, n_columns=1000)
    optimum = full_lp(K, rows).objective
    for idle_rounds in (1, 2, 3):
        master = LPMaster(rows, idle_rounds=idle_rounds)
        (result,) = generate_columns([master], by_blocks(K), lambda J: K[:, J], tol=1e-9, batch=20)
        assert sum(record["n_dropped"] for record in result.history) > 0
        assert result.objective == pytest.approx(optimum, rel=1e-8)


def test_columns_that_are_copies_of_each_other_do_no_harm():
    K, rows = problem(16, n_columns=60)
    doubled = np.hstack([K, K, K])
    (result,) = solve(doubled, rows, tol=1e-9)
    assert result.objective == pytest.approx(full_lp(K, rows).objective, rel=1e-8)


# Strata


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("batch", [1, 7, None])
def test_strata_lead_to_the_same_optimum(seed, batch):
    K, rows = problem(seed)
    (result,) = solve(K, rows, tol=1e-9, batch=batch, strata=thirds)
    assert result.status is Status.CONVERGED
    assert result.objective == pytest.approx(full_lp(K, rows).objective, rel=1e-8)


@pytest.mark.parametrize("master, optimum", [(LPMaster, full_lp), (NuLPMaster, full_nu_lp)])
def test_strata_serve_problems_that_choose_their_margin_too(master, optimum):
    K, rows = problem(3, C=0.2)
    (result,) = generate_columns([master(rows)], by_blocks(K), lambda J: K[:, J], strata=thirds, tol=1e-9)
    assert result.objective == pytest.approx(optimum(K, rows).objective, rel=1e-8)


def test_optimality_is_claimed_after_a_full_scan_only():
    K, rows = problem(4)
    (result,) = solve(K, rows, batch=3, strata=thirds)
    scans = [record["full_scan"] for record in result.history]
    assert scans[-1]
    assert not all(scans)
    for record in result.history:
        assert record["n_evaluated"] == 300 if record["full_scan"] else record["n_evaluated"] in (100, 200)


def test_a_partial_scan_proves_nothing_new():
    K, rows = problem(5)
    (result,) = solve(K, rows, batch=3, strata=thirds)
    optimum = full_lp(K, rows).objective
    for before, record in pairwise(result.history):
        if not record["full_scan"]:
            assert record["bound"] == before["bound"]
        assert record["bound"] <= optimum * (1 + 1e-9)


def test_the_first_scan_is_full_since_nothing_is_known_of_the_worst_column():
    K, rows = problem(6)
    (result,) = solve(K, rows, strata=thirds)
    assert result.history[0]["full_scan"]


def test_strata_are_priced_in_order_until_there_is_enough():
    K, rows = problem(7)
    asked = []

    def price(V, stratum):
        asked.append(stratum[0])
        yield from by_blocks(K)(V, stratum)

    generate_columns([LPMaster(rows)], price, lambda J: K[:, J], strata=thirds, batch=3)
    assert asked[:4] == [0, 1, 2, 0]
    assert set(pairwise(asked)) <= {(0, 1), (1, 2), (2, 0), (0, 0), (1, 0)}
    assert asked[-3:] == [0, 1, 2]


def test_strata_are_told_the_points_that_miss_their_margin():
    K, rows = problem(8)
    told = []

    def strata(errors):
        told.append(errors)
        return thirds(errors)

    states = []
    solve(K, rows, batch=5, strata=strata, callback=lambda state: bool(states.append(state)))
    assert len(told) == len(states)
    for errors, state in zip(told, states, strict=True):
        _, solution = state.details["solutions"][0]
        np.testing.assert_array_equal(errors, rows.sign * solution.values < 1.0)


def test_points_that_any_problem_misses_are_told():
    K, first = problem(9)
    second = classification_rows(np.where(np.arange(40) % 3 == 0, 1.0, -1.0), first.cost)
    told = []
    states = []
    solve(
        K,
        first,
        second,
        strata=lambda errors: told.append(errors) or thirds(errors),
        callback=lambda s: states.append(s),
    )
    for rows, (_, solution) in zip((first, second), states[0].details["solutions"], strict=True):
        assert told[0][rows.sign * solution.values < 1.0].all()


@pytest.mark.parametrize(
    "stop", [{"max_columns": 9}, {"max_time": 1e-9}, {"callback": lambda state: state.iteration == 4}]
)
def test_whatever_stops_the_loop_a_full_scan_proves_the_result(stop):
    K, rows = problem(10)
    (result,) = solve(K, rows, batch=3, strata=thirds, **stop)
    optimum = full_lp(K, rows).objective
    assert not result.status.converged
    assert result.history[-1]["full_scan"]
    assert result.history[-1]["gap"] == result.certificate.gap
    assert result.history[-1]["n_evaluated"] >= 300
    assert result.objective - result.certificate.gap <= optimum * (1 + 1e-9)
    assert result.certificate.gap < result.objective


def test_the_proof_at_the_end_prices_all_columns_at_once():
    K, rows = problem(11)
    asked = []

    def price(V, stratum):
        asked.append(stratum)
        yield from by_blocks(K)(V, stratum)

    (result,) = generate_columns(
        [LPMaster(rows)],
        price,
        lambda J: K[:, J],
        strata=thirds,
        batch=3,
        callback=lambda state: asked[-1][0] != 2,  # stops after the first partial scan
    )
    assert asked[-1] is None
    n_strata = len(asked[:-1]) - 3 * (result.n_iter - 1)  # of the partial scan
    assert 1 <= n_strata <= 2
    assert result.history[-1]["n_evaluated"] == 100 * n_strata + 300


def test_without_strata_every_round_evaluates_every_column():
    K, rows = problem(12)
    (result,) = solve(K, rows, batch=5)
    assert {record["n_evaluated"] for record in result.history} == {300}
    assert all(record["full_scan"] for record in result.history)


def test_each_round_is_recorded_with_what_it_did():
    K, rows = problem(13)
    (result,) = solve(K, rows, batch=5, strata=thirds)
    assert [record["iteration"] for record in result.history] == list(range(1, result.n_iter + 1))
    for before, record in pairwise(result.history):
        assert record["n_columns"] == before["n_columns"] + before["n_added"] - before["n_dropped"]
        assert record["seconds"] >= before["seconds"]
        assert before["n_added"] <= 5
    for record in result.history:
        assert record["gap"] == max(0.0, record["objective"] - record["bound"])
        assert record["tau"] > 0


def test_problems_in_strata_are_solved_together_to_their_own_optima():
    K, first = problem(14)
    second = classification_rows(np.where(np.arange(40) % 3 == 0, 1.0, -1.0), first.cost)
    for rows, result in zip((first, second), solve(K, first, second, strata=thirds, tol=1e-9), strict=True):
        assert result.objective == pytest.approx(full_lp(K, rows).objective, rel=1e-8)


def test_columns_that_masters_hold_are_a_warm_start():
    K, rows = problem(15)
    master = LPMaster(rows)
    (cold,) = generate_columns([master], by_blocks(K), lambda J: K[:, J])
    master.set_cost(1.1 * rows.cost)
    (warm,) = generate_columns([master], by_blocks(K), lambda J: K[:, J])
    assert warm.n_iter < cold.n_iter
    dearer = classification_rows(rows.sign, 1.1 * rows.cost)
    assert warm.objective == pytest.approx(full_lp(K, dearer).objective, rel=1e-6)


@pytest.mark.parametrize("strata", [None, thirds])
def test_the_gap_of_the_2_norm_is_half_the_squared_scores_outside(strata):
    # Proposition 4.1: before the duals are shrunk, which can only raise the bound.
    K, rows = problem(16)
    master = QPMaster(rows, tol=1e-10)
    (result,) = generate_columns([master], by_blocks(K), lambda J: K[:, J], strata=strata, tol=0.2)
    scores = K.T @ result.signed_dual
    outside = np.setdiff1d(np.arange(300), result.columns)
    proposition = 0.5 * scores[outside] @ scores[outside]
    assert result.certificate.gap <= proposition + 1e-8 * result.objective
    assert result.certificate.relative <= 0.2


def test_a_master_that_asks_for_few_columns_gets_few():
    K, rows = problem(17)
    (result,) = generate_columns([QPMaster(rows)], by_blocks(K), lambda J: K[:, J], tol=0.05)
    for record in result.history[:-1]:
        assert record["n_added"] == min(50, max(1, record["n_columns"] // 10))


@pytest.mark.parametrize("n_problems", [1, 2])
def test_a_pool_of_bad_columns_saves_scans_and_changes_no_optimum(n_problems):
    problems = [problem(seed, n_columns=3000)[1] for seed in range(n_problems)]
    K = problem(0, n_columns=3000)[0]
    without = solve(K, *problems, tol=1e-8, batch=5)
    with_pool = solve(K, *problems, tol=1e-8, batch=5, pool_size=400)
    for plain, pooled, rows in zip(without, with_pool, problems, strict=True):
        assert pooled.status is Status.CONVERGED
        assert pooled.objective == pytest.approx(full_lp(K, rows).objective, rel=1e-7)
        assert pooled.history[-1]["full_scan"]
        n_scans = [sum(record["full_scan"] for record in result.history) for result in (plain, pooled)]
        assert n_scans[1] < n_scans[0]


def test_the_best_solution_is_returned_not_the_last():
    K, rows = problem(3)
    master = QPMaster(rows, tol=0.5)  # so loose that values go up and down
    (result,) = generate_columns([master], by_blocks(K), lambda J: K[:, J], tol=1e-9, max_columns=100)
    assert result.objective == min(record["objective"] for record in result.history)


# Rough solutions, and what becomes of them


@pytest.fixture
def many(monkeypatch):
    monkeypatch.setattr(restricted_lp, "MIN_ROUGH_VARIABLES", 2)
    monkeypatch.setattr(loop, "SETTLING_SHARE", 1e3)  # slow computers have the time, too


STOPS = {
    "callback": {"callback": lambda state: state.iteration == 5},
    "max_time": {"max_time": 0.1, "callback": lambda state: time.sleep(0.03)},
    "max_columns": {"max_columns": 45},
    "tol": {"tol": 0.3},
}


def assert_exact(K, rows, result):
    """What is returned is a vertex of the program of its columns, with its own value and a true certificate."""
    columns = result.columns
    exact = full_lp(K[:, columns], rows)
    assert result.objective == pytest.approx(exact.objective, rel=1e-9)
    assert np.count_nonzero(result.x) == np.count_nonzero(np.abs(exact.coef) > 1e-9)
    value = np.abs(result.x).sum() + rows.loss(K[:, columns] @ result.x + result.intercept)
    assert result.objective == pytest.approx(value, rel=1e-9)
    optimum = full_lp(K, rows).objective
    assert optimum * (1 - 1e-9) <= result.objective <= optimum * (1 + 1e-9) + result.certificate.gap
    record = result.history[-1]
    returned = result.objective, result.certificate.gap, len(columns)
    assert (record["objective"], record["gap"], record["n_columns"]) == returned


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("strata", [None, thirds])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("stop", STOPS)
def test_whatever_stops_the_loop_the_result_is_exact_on_its_columns(stop, seed, strata):
    K, rows = problem(seed, n_points=60, C=0.5)
    seen = []
    stops = STOPS[stop].get("callback", lambda state: False)
    options = {"batch": 10, "strata": strata} | STOPS[stop]
    (result,) = solve(K, rows, **(options | {"callback": lambda state: seen.append(state) or stops(state)}))
    assert_exact(K, rows, result)
    assert result.objective <= min(state.objective for state in seen) * (1 + 1e-9)
    assert result.objective - result.certificate.gap >= seen[-1].bound - 1e-9


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("recovers", [True, False])
def test_a_rough_solution_is_made_exact_when_the_next_one_fails_if_that_does_not(recovers):
    K, rows = problem(0, n_points=60, C=0.5)
    calls = []

    class Late(LPMaster):
        def solve(self, seconds=np.inf):
            calls.append(seconds)
            if len(calls) == 5 or (len(calls) > 5 and not recovers):
                raise OutOfTimeError("no more")
            return super().solve(seconds)

    (result,) = generate_columns([Late(rows)], by_blocks(K), lambda J: K[:, J], batch=10, max_time=1e3)
    assert result.status is Status.MAX_TIME
    assert result.n_iter == 4
    assert_exact(K, rows, result)


def test_without_the_time_to_make_it_exact_a_rough_solution_is_returned_as_it_is(many, monkeypatch):
    monkeypatch.setattr(loop, "SETTLING_SHARE", 0.0)
    K, rows = problem(0, n_points=60, C=0.5)
    seen = []
    (result,) = solve(K, rows, batch=10, max_time=1e3, callback=lambda s: seen.append(s) or s.iteration == 4)
    assert result.objective == min(state.objective for state in seen)
    assert 0 <= result.objective - full_lp(K, rows).objective <= result.certificate.gap

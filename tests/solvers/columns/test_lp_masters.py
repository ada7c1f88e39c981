from dataclasses import replace

import numpy as np
import pytest
from checks.kkt import assert_lp_optimal
from oracles.reference import full_lp, full_nu_lp

from kernelweave.solvers.columns import restricted_lp
from kernelweave.solvers.columns.lp_masters import LPMaster, NuLPMaster
from kernelweave.solvers.margin import classification_rows, one_class_rows, regression_rows

INTERCEPTS = ["free", "penalized", None]
FORMS = [{"positive": positive, "intercept": intercept} for positive in (False, True) for intercept in INTERCEPTS]
KINDS = ["classification", "regression", "one-class"]
CASES = [(kind, form) for kind in KINDS for form in FORMS]
# With a free offset the margin of one class could be raised without end.
NU_CASES = [(kind, form) for kind, form in CASES if (kind, form["intercept"]) != ("one-class", "free")]


def problem(seed, kind="classification", n_points=25, n_columns=40, C=1.0):
    """A random matrix, which is no kernel's, and rows with unequal costs."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n_points) < 0.4, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    K, cost = rng.normal(size=(n_points, n_columns)), C * rng.uniform(0.5, 2, n_points)
    if kind == "regression":
        return K, regression_rows(rng.normal(size=n_points), 0.1, cost)
    if kind == "one-class":  # a target of zero would ask for nothing
        return K, replace(one_class_rows(n_points, cost), target=np.ones(n_points))
    return K, classification_rows(y, cost)


def nu_problem(seed, kind="classification", nu=0.3, **options):
    K, rows = problem(seed, kind, **options)
    return K, with_nu(rows, nu)


def with_nu(rows, nu):
    return replace(rows, cost=rows.cost / (nu * rows.cost.sum()))


def solved(master, K, portion=None):
    """Solve with all columns, added in portions."""
    n_columns = K.shape[1]
    for start in range(0, n_columns, portion or n_columns):
        chosen = np.arange(start, min(start + (portion or n_columns), n_columns))
        master.add_columns(chosen, K[:, chosen])
        found = master.solve()
    return found


def scan(master, K, found, width=17):
    """Examine all columns in portions; return the violations."""
    scores = K.T @ found.signed_dual
    numbers = np.arange(K.shape[1])
    master.start_scan()
    parts = [slice(start, start + width) for start in range(0, len(numbers), width)]
    return np.concatenate([master.examine(numbers[part], scores[part]) for part in parts])


# The problem with costs


@pytest.mark.parametrize("kind, form", CASES)
@pytest.mark.parametrize("seed", range(3))
def test_rough_solutions_bound_the_optimum_and_exact_ones_follow(seed, kind, form, monkeypatch):
    monkeypatch.setattr(restricted_lp, "MIN_ROUGH_VARIABLES", 2)
    K, rows = problem(seed, kind, C=10.0 ** (seed - 1))
    best = full_lp(K, rows, **form).objective
    master = LPMaster(rows, **form)
    rough = solved(master, K, portion=10)
    scan(master, K, rough)
    assert master.bound() <= best * (1 + 1e-9)
    assert rough.objective >= best * (1 - 1e-9)
    while master.settle():
        master.solve()
    assert master.solve().objective == pytest.approx(best, rel=1e-9)


def test_columns_that_rough_solutions_do_not_use_are_dropped(monkeypatch):
    monkeypatch.setattr(restricted_lp, "MIN_ROUGH_VARIABLES", 2)
    K, rows = problem(3, n_points=60, n_columns=100)
    best = full_lp(K, rows).objective
    master = LPMaster(rows, idle_rounds=1)
    solved(master, K)
    scan(master, K, master.solve())
    found = master.solve()  # finer, as nothing violates any more
    assert master.drop_idle() > 10
    while master.settle():
        master.solve()
    assert master.solve().objective == pytest.approx(best, rel=1e-6)
    assert found.objective == pytest.approx(best, rel=0.1)


@pytest.mark.parametrize("kind, form", CASES)
@pytest.mark.parametrize("seed", range(3))
def test_all_columns_give_the_optimum_of_the_full_problem(seed, kind, form):
    K, rows = problem(seed, kind, C=10.0 ** (seed - 1))
    master = LPMaster(rows, **form)
    found = solved(master, K)
    assert found.objective == pytest.approx(full_lp(K, rows, **form).objective, rel=1e-9)
    assert found.dual_value == pytest.approx(found.objective, rel=1e-9)
    scan(master, K, found)
    assert master.tau <= 1 + 1e-8
    assert master.bound() == pytest.approx(found.objective, rel=1e-8)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["classification", "one-class"])
def test_the_solution_satisfies_the_optimality_conditions(kind, form):
    K, rows = problem(10, kind)
    found = solved(LPMaster(rows, **form), K)
    assert_lp_optimal(
        K,
        rows.sign,
        rows.cost,
        found.coef,
        found.intercept,
        found.signed_dual,
        target=rows.target,
        positive=form["positive"],
        offset=form["intercept"],
        tol=1e-8,
    )


@pytest.mark.parametrize("kind, form", CASES)
def test_value_and_objective_are_those_of_the_coefficients(kind, form):
    K, rows = problem(11, kind)
    found = solved(LPMaster(rows, **form), K)
    f = K @ found.coef + found.intercept
    penalty = np.abs(found.coef).sum() + (abs(found.intercept) if form["intercept"] == "penalized" else 0.0)
    np.testing.assert_allclose(found.values, f, atol=1e-12)
    assert found.objective == pytest.approx(penalty + rows.loss(f), rel=1e-12)
    assert not form["positive"] or found.coef.min() >= 0
    assert form["intercept"] is not None or found.intercept == 0


def test_positive_binds_the_coefficients_but_never_the_offset():
    K, rows = problem(12)
    found = solved(
        LPMaster(classification_rows(-np.abs(rows.sign), rows.cost), positive=True, intercept="penalized"), K
    )
    assert found.intercept == pytest.approx(-1.0)


def test_without_columns_the_offset_pays_for_the_smaller_side():
    _, rows = problem(0)
    costs = [rows.cost[rows.sign == side].sum() for side in (-1, 1)]
    assert LPMaster(rows).solve().objective == pytest.approx(2 * min(costs))


def test_without_columns_a_penalised_offset_pays_for_itself_too():
    _, rows = problem(0)
    costs = [rows.cost[rows.sign == side].sum() for side in (-1, 1)]
    assert LPMaster(rows, intercept="penalized").solve().objective == pytest.approx(2 * min(costs) + 1)


def test_without_columns_and_offset_every_margin_is_missed():
    _, rows = problem(0)
    found = LPMaster(rows, intercept=None).solve()
    assert found.objective == pytest.approx(rows.cost.sum())
    np.testing.assert_array_equal(found.values, 0.0)


@pytest.mark.parametrize("form", FORMS)
def test_columns_may_come_in_any_portions(form):
    K, rows = problem(1)
    found = solved(LPMaster(rows, **form), K, portion=7)
    assert found.objective == pytest.approx(full_lp(K, rows, **form).objective, rel=1e-9)


@pytest.mark.parametrize("form", [form for form in FORMS if form["intercept"] != "penalized"])
@pytest.mark.parametrize("magnitude", [1e-10, 1e-5, 1e5, 1e10])
def test_kernels_of_any_magnitude_are_solved_as_well(magnitude, form):
    K, rows = problem(2)
    found = solved(LPMaster(classification_rows(rows.sign, rows.cost / magnitude), **form), K * magnitude)
    assert found.objective * magnitude == pytest.approx(full_lp(K, rows, **form).objective, rel=1e-8)
    assert found.dual_value == pytest.approx(found.objective, rel=1e-8)


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("magnitude", [1e-10, 1e-5, 1e5, 1e10])
def test_kernels_of_any_magnitude_are_proven_optimal_beside_a_penalised_offset(magnitude, positive):
    K, rows = problem(2)
    rows = classification_rows(rows.sign, rows.cost / magnitude)
    master = LPMaster(rows, positive=positive, intercept="penalized")
    found = solved(master, K * magnitude)
    scan(master, K * magnitude, found)
    assert master.bound() == pytest.approx(found.objective, rel=1e-8)


def test_nearly_constant_columns_do_not_spoil_the_solution():
    K, rows = problem(3)
    found = solved(LPMaster(rows), K + 1e6)
    assert found.objective == pytest.approx(full_lp(K, rows).objective, rel=1e-6)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
def test_reported_duals_are_feasible_exactly(C, form):
    K, rows = problem(4, C=C)
    dual = solved(LPMaster(rows, **form), K).signed_dual * rows.sign
    assert np.all((dual >= 0) & (dual <= rows.cost))
    allowed = {"free": 0.0, "penalized": 1.0, None: np.inf}[form["intercept"]]
    assert abs(dual @ rows.sign) <= allowed + 1e-14 * dual.sum()


@pytest.mark.parametrize("kind, form", CASES)
@pytest.mark.parametrize("n_known", [1, 5, 20])
def test_the_bound_of_a_restricted_problem_is_below_the_optimum(n_known, kind, form):
    K, rows = problem(5, kind)
    master = LPMaster(rows, **form)
    found = solved(master, K[:, :n_known])
    violations = scan(master, K, found)
    offset = abs(found.signed_dual.sum()) if form["intercept"] == "penalized" else 0.0
    assert master.tau == pytest.approx(max(0.0, 1 + violations.max(), offset))
    optimum = full_lp(K, rows, **form).objective
    assert master.bound() <= optimum * (1 + 1e-9) <= found.objective * (1 + 2e-9)


def test_a_new_solution_forgets_the_old_scan():
    K, rows = problem(6)
    master = LPMaster(rows)
    scan(master, K, master.solve())
    assert master.tau > 1
    master.solve()
    assert master.tau == 0.0


def test_a_column_of_zeros_does_nothing():
    K, rows = problem(6)
    K[:, 3] = 0.0
    assert solved(LPMaster(rows), K).objective == pytest.approx(full_lp(K, rows).objective, rel=1e-9)
    zeros = LPMaster(rows)
    assert solved(zeros, np.zeros((25, 3))).objective == pytest.approx(LPMaster(rows).solve().objective)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["classification", "regression"])
def test_a_path_over_costs_finds_what_a_fresh_problem_finds(kind, form):
    K, rows = problem(7, kind)
    master = LPMaster(rows, **form)
    solved(master, K)
    for C in [1e-2, 0.1, 3.0, 1e2, 1e4, 1.0, 1e-3, 1e-6]:  # up, then down
        master.set_cost(C * rows.cost)
        found = master.solve()
        fresh = solved(LPMaster(replace(rows, cost=C * rows.cost), **form), K)
        assert found.objective == pytest.approx(fresh.objective, rel=1e-9)
        assert found.dual_value == pytest.approx(fresh.objective, rel=1e-8)


def test_a_new_cost_keeps_the_working_set_and_starts_from_its_basis():
    K, rows = problem(8, n_points=60, n_columns=100)
    master = LPMaster(rows)
    solved(master, K)
    master.set_cost(1.1 * rows.cost)
    np.testing.assert_array_equal(master.columns, np.arange(100))
    steps = master._lp.solve().n_iter
    cold = LPMaster(replace(rows, cost=1.1 * rows.cost))
    cold.add_columns(np.arange(100), K)
    assert steps < cold._lp.solve().n_iter / 2


@pytest.mark.parametrize("master_of", [LPMaster, NuLPMaster])
@pytest.mark.parametrize("form", FORMS)
def test_dropping_idle_columns_leaves_the_solution_as_it_is(master_of, form):
    K, rows = nu_problem(9, n_points=30, n_columns=80)
    if master_of is LPMaster:
        rows = replace(rows, cost=10 * rows.cost)
    master = master_of(rows, **form, idle_rounds=1)
    before = solved(master, K)
    n_dropped = master.drop_idle()
    assert n_dropped > 0
    assert len(master.columns) == 80 - n_dropped
    after = master.solve()
    assert after.objective == pytest.approx(before.objective, rel=1e-9)
    again = np.setdiff1d(np.arange(80), master.columns)
    master.add_columns(again, K[:, again])
    assert master.solve().objective == pytest.approx(before.objective, rel=1e-9)
    assert master.drop_idle() == 0  # what came back stays


# The problem that chooses its margin


@pytest.mark.parametrize("kind, form", NU_CASES)
@pytest.mark.parametrize("seed, nu", [(0, 0.05), (1, 0.3), (2, 0.6)])
def test_all_columns_give_the_optimum_of_the_full_margin_problem(seed, nu, kind, form):
    K, rows = nu_problem(seed, kind, nu)
    master = NuLPMaster(rows, **form)
    found = solved(master, K)
    optimum = full_nu_lp(K, rows, **form).objective
    assert found.objective == pytest.approx(optimum, rel=1e-8, abs=1e-12)
    scan(master, K, found)
    assert master.bound() == pytest.approx(optimum, rel=1e-8, abs=1e-12)
    assert master.bound() <= found.objective + 1e-14  # rounding


@pytest.mark.parametrize("kind, form", NU_CASES)
def test_the_margin_solution_is_feasible_and_its_value_recomputed(kind, form):
    K, rows = nu_problem(11, kind)
    found = solved(NuLPMaster(rows, **form), K)
    norm = np.abs(found.coef).sum() + (abs(found.intercept) if form["intercept"] == "penalized" else 0.0)
    assert norm <= 1 + 1e-14
    assert not form["positive"] or found.coef.min() >= 0
    f = K @ found.coef + found.intercept
    np.testing.assert_allclose(found.values, f, atol=1e-13)
    slack = np.maximum(0.0, found.rho - rows.sign * f[rows.point])
    assert found.objective == pytest.approx(rows.cost @ slack - found.rho, rel=1e-12)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("nu", [0.02, 0.3, 0.62])
def test_reported_weights_are_feasible_exactly(nu, form):
    K, rows = nu_problem(4, nu=nu)
    master = NuLPMaster(rows, **form)
    for found in (master.solve(), solved(master, K)):
        weights = found.signed_dual * rows.sign
        assert np.all((weights >= 0) & (weights <= rows.cost))
        assert weights.sum() == pytest.approx(1.0, abs=1e-14)
        if form["intercept"] == "free":
            assert weights @ rows.sign == pytest.approx(0.0, abs=1e-14)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("n_known", [0, 1, 5, 20])
def test_the_bound_of_a_restricted_margin_problem_is_below_the_optimum(n_known, form):
    K, rows = nu_problem(5)
    master = NuLPMaster(rows, **form)
    found = solved(master, K[:, :n_known]) if n_known else master.solve()
    violations = scan(master, K, found)
    optimum = full_nu_lp(K, rows, **form).objective
    assert master.bound() <= optimum + 1e-12 <= found.objective + 2e-12
    assert master.bound() == -master.tau
    # what violates is what widens the gap
    assert max(0.0, violations.max()) == pytest.approx(found.dual_value - master.bound(), abs=1e-14)


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_without_columns_the_weights_spread_over_all_points(intercept):
    _, rows = nu_problem(6)
    found = NuLPMaster(rows, intercept=intercept).solve()
    assert np.all(np.abs(found.signed_dual) > 0)
    assert found.objective == found.rho == 0.0
    assert found.dual_value == pytest.approx(0.0, abs=1e-15)
    np.testing.assert_array_equal(found.values, 0.0)


def test_without_columns_a_penalised_offset_wins_what_the_lighter_side_cannot_balance():
    _, rows = problem(6)
    lighter = min(rows.cost[rows.sign == side].sum() for side in (-1, 1)) / rows.cost.sum()
    nu = (1 + 2 * lighter) / 2  # above 2 lighter: no balance
    found = NuLPMaster(with_nu(rows, nu), intercept="penalized").solve()
    assert found.objective == pytest.approx(-(1 - 2 * lighter / nu))
    assert found.dual_value == pytest.approx(found.objective)
    assert abs(found.intercept) == 1.0


@pytest.mark.parametrize("form", [form for form in FORMS if form["intercept"] != "penalized"])
@pytest.mark.parametrize("magnitude", [1e-10, 1e-5, 1e5, 1e10])
def test_margins_scale_with_the_kernel(magnitude, form):
    K, rows = nu_problem(2)
    master = NuLPMaster(rows, **form)
    found = solved(master, K * magnitude, portion=11)
    scan(master, K * magnitude, found)
    optimum = full_nu_lp(K, rows, **form).objective
    assert found.objective / magnitude == pytest.approx(optimum, rel=1e-9)
    assert master.bound() / magnitude == pytest.approx(optimum, rel=1e-9)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(5))
def test_columns_of_unlike_magnitudes_are_solved_as_well(seed, form):
    K, rows = nu_problem(seed)
    K = K * 10.0 ** np.random.default_rng(seed).uniform(-4, 4, K.shape[1])
    master = NuLPMaster(rows, **form)
    found = solved(master, K, portion=3)
    scan(master, K, found)
    assert master.bound() == pytest.approx(found.objective, rel=1e-8)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(3))
def test_wide_kernels_are_solved_although_few_columns_give_no_margin(seed, form):
    # Weights that make 50 scores zero are not unique, and columns are nearly collinear: HiGHS has cycled on these.
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(120, 5))
    X[:, 1:] *= 10.0 ** rng.uniform(-2, 2, 4)
    rows = with_nu(classification_rows(np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0), rng.uniform(0.5, 2, 120)), 0.02)
    distance = ((X[:, None] - X) ** 2).sum(axis=2)
    K = np.hstack([np.exp(-gamma * distance / distance.mean()) for gamma in (0.01, 1.0, 100.0)] + [X @ X.T])
    K = K / np.sqrt((K**2).mean(axis=0))
    master = NuLPMaster(rows, **form)
    for _ in range(40):
        found = master.solve()
        violations = scan(master, K, found)
        violations[master.columns] = 0.0
        master.drop_idle()
        worst = np.argsort(-violations)[:50]
        worst = worst[violations[worst] > 1e-10]
        if len(worst) == 0:
            break
        master.add_columns(worst, K[:, worst])
    # relative to columns of size one, since the margin itself may be zero
    assert found.objective - master.bound() <= 1e-8
    assert found.objective == pytest.approx(full_nu_lp(K, rows, **form).objective, abs=1e-8)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("nu", [0.1, 0.25, 0.5])
@pytest.mark.parametrize("seed", range(3))
def test_nu_bounds_the_margin_errors_from_above_and_the_support_from_below(seed, nu, form):
    K, rows = nu_problem(seed, nu=nu, n_points=60)
    found = solved(NuLPMaster(rows, **form), K)
    margins = rows.sign * (K @ found.coef + found.intercept)
    share = rows.cost / rows.cost.sum()
    assert share[margins < found.rho - 1e-9].sum() <= nu + 1e-12
    assert share[margins <= found.rho + 1e-9].sum() >= nu - 1e-12
    assert share[found.signed_dual != 0].sum() >= nu - 1e-12


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(3))
def test_the_margin_solution_divided_by_its_margin_solves_the_problem_with_costs(seed, form):
    K, rows = nu_problem(seed)
    K = K + 0.5 * rows.sign[:, None]
    found = solved(NuLPMaster(rows, **form), K)
    assert found.rho > 0 > found.objective
    # |scores| <= gamma = -objective: weights and costs divided by gamma are the other problem's
    costs = replace(rows, cost=rows.cost / -found.objective)
    assert_lp_optimal(
        K,
        costs.sign,
        costs.cost,
        found.coef / found.rho,
        found.intercept / found.rho,
        found.signed_dual / -found.objective,
        positive=form["positive"],
        offset=form["intercept"],
        tol=1e-8,
    )
    f = (K @ found.coef + found.intercept) / found.rho
    penalty = np.abs(found.coef).sum() + (abs(found.intercept) if form["intercept"] == "penalized" else 0.0)
    value = penalty / found.rho + costs.loss(f)
    assert value == pytest.approx(full_lp(K, costs, **form).objective, rel=1e-8)


@pytest.mark.parametrize("form", FORMS)
def test_a_path_over_nu_finds_what_a_fresh_problem_finds(form):
    K, rows = problem(7)
    master = NuLPMaster(with_nu(rows, 0.3), **form)
    solved(master, K)
    for nu in [0.4, 0.6, 0.2, 0.05, 0.01]:
        master.set_cost(with_nu(rows, nu).cost)
        found = master.solve()
        optimum = full_nu_lp(K, with_nu(rows, nu), **form).objective
        assert found.objective == pytest.approx(optimum, rel=1e-9)
        assert found.dual_value == pytest.approx(optimum, rel=1e-8)


def test_a_nu_that_a_free_offset_makes_impossible_is_refused():
    _, rows = problem(0)
    largest = 2 * min(rows.cost[rows.sign == side].sum() for side in (-1, 1)) / rows.cost.sum()
    NuLPMaster(with_nu(rows, largest)).solve()
    with pytest.raises(ValueError, match=rf"nu is too large.*{largest:.4g}.*free offset.*2 min\(w\+, w-\) / w"):
        NuLPMaster(with_nu(rows, 1.01 * largest))
    NuLPMaster(with_nu(rows, 1.01 * largest), intercept="penalized").solve()
    with pytest.raises(ValueError, match="nu is too large"):
        NuLPMaster(with_nu(one_class_rows(5, np.ones(5)), 0.1))
    master = NuLPMaster(with_nu(rows, largest))
    with pytest.raises(ValueError, match="nu is too large"):
        master.set_cost(with_nu(rows, 1.01 * largest).cost)


@pytest.mark.parametrize("intercept", ["penalized", None])
def test_a_nu_above_one_is_refused(intercept):
    _, rows = problem(0)
    NuLPMaster(with_nu(rows, 1.0), intercept=intercept).solve()
    with pytest.raises(ValueError, match=r"nu is too large: it is 1\.1 and may be at most 1\."):
        NuLPMaster(with_nu(rows, 1.1), intercept=intercept)


def test_at_nu_one_the_one_class_margin_is_the_best_mean():
    K, rows = nu_problem(1, "one-class", nu=1.0)
    found = solved(NuLPMaster(rows, positive=True, intercept=None), K)
    assert -found.objective == pytest.approx((rows.cost @ K).max())

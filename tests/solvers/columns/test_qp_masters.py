from itertools import product

import numpy as np
import pytest
from oracles.reference import full_nu_qp, full_qp

from kernelweave.solvers.columns.qp_masters import MAX_BATCH, NuQPMaster, QPMaster, shrunken_value
from kernelweave.solvers.margin import classification_rows, margin_loss, one_class_rows, regression_rows

N_POINTS, N_COLUMNS = 25, 40
TIGHT = 1e-9
FORMS = [
    {"positive": positive, "intercept": intercept}
    for positive, intercept in product([False, True], ["free", "penalized", None])
]
every_form = pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form['positive']}-{form['intercept']}")


def columns_and_signs(seed):
    rng = np.random.default_rng(seed)
    signs = np.where(rng.random(N_POINTS) < 0.5, 1.0, -1.0)
    signs[:2] = 1.0, -1.0
    return rng, rng.normal(size=(N_POINTS, N_COLUMNS)) + 0.2 * signs[:, None], signs


def cost_problem(seed, kind, C=1.0):
    rng, K, signs = columns_and_signs(seed)
    cost = C * rng.uniform(0.2, 2.0, size=N_POINTS)
    if kind == "classification":
        return K, classification_rows(signs, cost)
    return K, regression_rows(K[:, 0] + 0.5 * rng.normal(size=N_POINTS), 0.1, cost)


def margin_problem(seed, kind, nu=0.5):
    rng, K, signs = columns_and_signs(seed)
    weight = rng.uniform(0.8, 1.2, size=N_POINTS)
    cost = weight / (nu * weight.sum())
    if kind == "classification":
        return K + 0.5 * signs[:, None], classification_rows(signs, cost)  # so that there is a margin with few columns
    return np.abs(K), one_class_rows(N_POINTS, cost)


def solved(master, K, columns=None):
    columns = np.arange(K.shape[1]) if columns is None else columns
    master.add_columns(columns, K[:, columns])
    return master.solve()


def scanned(master, K, solution):
    """Show a master every column in portions and return its bound."""
    master.start_scan()
    for part in np.array_split(np.arange(K.shape[1]), 7):
        master.examine(part, K[:, part].T @ solution.signed_dual)
    return master.bound()


# The whole problem


@every_form
@pytest.mark.parametrize("kind", ["classification", "regression"])
@pytest.mark.parametrize("seed", range(2))
def test_with_all_columns_the_optimum_is_that_of_the_dense_problem(seed, kind, form):
    pytest.importorskip("cvxpy")
    K, rows = cost_problem(seed, kind)
    found = solved(QPMaster(rows, tol=TIGHT, **form), K)
    expected = full_qp(K, rows, **form)
    assert found.objective == pytest.approx(expected.objective, rel=1e-7)
    # Strong convexity of the norm: the coefficients differ by the root of twice the gap.
    np.testing.assert_allclose(found.coef, expected.coef, atol=np.sqrt(2e-7 * expected.objective))


@pytest.mark.parametrize(
    "kind, form",
    # With an offset the one-class problem has no solution.
    [("classification", form) for form in FORMS] + [("one class", f) for f in FORMS if f["intercept"] is None],
)
@pytest.mark.parametrize("seed", range(2))
def test_with_all_columns_the_chosen_margin_is_that_of_the_dense_problem(seed, kind, form):
    pytest.importorskip("cvxpy")
    K, rows = margin_problem(seed, kind)
    found = solved(NuQPMaster(rows, tol=TIGHT, **form), K)
    expected = full_nu_qp(K, rows, **form)
    assert found.objective == pytest.approx(expected.objective, rel=1e-6)
    np.testing.assert_allclose(found.coef, expected.coef, atol=np.sqrt(2e-6 * abs(expected.objective)))


@every_form
@pytest.mark.parametrize("make, problem", [(QPMaster, cost_problem), (NuQPMaster, margin_problem)])
def test_value_and_objective_are_those_of_the_coefficients(make, problem, form):
    K, rows = problem(3, "classification")
    found = solved(make(rows, **form), K)
    f = K @ found.coef + found.intercept
    np.testing.assert_allclose(found.values, f, atol=1e-12)
    squares = found.coef @ found.coef + (found.intercept**2 if form["intercept"] == "penalized" else 0.0)
    loss = rows.loss(f) if make is QPMaster else margin_loss(rows, f)[0]
    assert found.objective == pytest.approx(0.5 * squares + loss, rel=1e-12)
    assert not form["positive"] or found.coef.min() >= 0
    assert form["intercept"] is not None or found.intercept == 0


@every_form
@pytest.mark.parametrize("make, problem", [(QPMaster, cost_problem), (NuQPMaster, margin_problem)])
def test_reported_duals_are_feasible_and_give_the_coefficients(make, problem, form):
    K, rows = problem(4, "classification")
    found = solved(make(rows, **form), K)
    dual = rows.sign * found.signed_dual
    assert np.all((dual >= -1e-15) & (dual <= rows.cost * (1 + 1e-12)))
    if form["intercept"] == "free":
        assert found.signed_dual.sum() == pytest.approx(0.0, abs=1e-12 * dual.sum())
    if make is NuQPMaster:
        assert dual.sum() == pytest.approx(1.0, rel=1e-12)
    scores = K.T @ found.signed_dual
    np.testing.assert_allclose(found.coef, np.maximum(scores, 0.0) if form["positive"] else scores, atol=1e-12)


@every_form
def test_the_restricted_gap_is_within_the_tolerance(form):
    for tol in (1e-2, 1e-4, 1e-8):
        K, rows = cost_problem(5, "classification")
        found = solved(QPMaster(rows, tol=tol, **form), K)
        assert -1e-12 <= found.objective - found.dual_value <= 1.1 * tol * found.objective


def test_without_columns_the_offset_pays_for_the_smaller_side():
    _, rows = cost_problem(6, "classification")
    costs = [rows.cost[rows.sign == side].sum() for side in (-1, 1)]
    assert QPMaster(rows, tol=TIGHT).solve().objective == pytest.approx(2 * min(costs))
    assert QPMaster(rows, intercept=None, tol=TIGHT).solve().objective == pytest.approx(rows.cost.sum())


def test_one_column_and_one_point_is_solved_by_hand():
    # min a^2/2 + c (1 - k a)+: a = min(1/k, c k)
    for k, c in [(2.0, 10.0), (2.0, 0.1), (-3.0, 0.2)]:
        master = QPMaster(classification_rows(np.ones(1), np.array([c])), intercept=None, tol=1e-12)
        found = solved(master, np.array([[k]]))
        assert found.coef[0] == pytest.approx(np.sign(k) * min(1 / abs(k), c * abs(k)))


def test_a_positive_problem_leaves_a_column_of_the_wrong_sign_alone():
    rows = classification_rows(np.ones(3), np.ones(3))
    found = solved(QPMaster(rows, positive=True, intercept=None), np.array([[-1.0], [-2.0], [-1.0]]))
    np.testing.assert_array_equal(found.coef, 0.0)
    assert found.objective == pytest.approx(3.0)


# Certificates


@every_form
@pytest.mark.parametrize("kind", ["classification", "regression"])
def test_the_gap_is_half_the_squared_scores_outside_and_the_masters_own(kind, form):
    # Proposition 4.1, before shrinking: P - (P_W's dual value) is the master's own gap, the rest are other columns.
    K, rows = cost_problem(7, kind)
    master = QPMaster(rows, tol=1e-6, **form)
    found = solved(master, K, np.arange(0, N_COLUMNS, 2))
    bound = scanned(master, K, found)
    scores = K.T @ found.signed_dual
    sizes = np.maximum(scores, 0.0) if form["positive"] else scores
    outside = 0.5 * np.sum(sizes[1::2] ** 2)
    own = found.objective - found.dual_value
    assert found.objective - bound <= outside + own + 1e-12 * found.objective
    linear = found.dual_value + 0.5 * (np.sum(sizes[::2] ** 2) + master.offset_square())
    squares = np.sum(sizes**2) + master.offset_square()
    if squares <= linear:  # nothing to gain by shrinking
        assert found.objective - bound == pytest.approx(outside + own, rel=1e-9)
    assert bound == pytest.approx(shrunken_value(linear, squares), rel=1e-9)


def test_the_proposition_is_exact_where_shrinking_gains_nothing():
    # A column that is nearly balanced by the duals adds little: squares stay below the linear term.
    K, rows = cost_problem(8, "classification", C=0.01)
    master = QPMaster(rows, tol=1e-8)
    found = solved(master, K, np.arange(5))
    scores = K.T @ found.signed_dual
    gap = found.objective - scanned(master, K, found)
    own = found.objective - found.dual_value
    assert gap == pytest.approx(0.5 * np.sum(scores[5:] ** 2) + own, rel=1e-8)
    assert gap > own


@every_form
@pytest.mark.parametrize("n_working", [0, 1, 5, 39])
def test_the_bound_lies_below_the_optimum_over_all_columns(n_working, form):
    pytest.importorskip("cvxpy")
    K, rows = cost_problem(9, "classification")
    optimum = full_qp(K, rows, **form).objective
    master = QPMaster(rows, **form)
    found = solved(master, K, np.arange(n_working))
    assert scanned(master, K, found) <= optimum * (1 + 1e-9) <= found.objective * (1 + 2e-9)


@every_form
@pytest.mark.parametrize("n_working", [1, 5, 39])
def test_the_bound_of_a_chosen_margin_lies_below_the_optimum(n_working, form):
    pytest.importorskip("cvxpy")
    K, rows = margin_problem(10, "classification")
    optimum = full_nu_qp(K, rows, **form).objective
    master = NuQPMaster(rows, **form)
    found = solved(master, K, np.arange(n_working))
    assert scanned(master, K, found) <= optimum + 1e-9 * abs(optimum)
    assert found.objective >= optimum - 1e-9 * abs(optimum)


def test_shrinking_takes_the_best_factor():
    factors = np.linspace(0, 1, 10001)
    for linear, squares in [(1.0, 0.5), (1.0, 1.0), (1.0, 4.0), (-1.0, 2.0), (-1.0, 0.0), (0.0, 0.0), (2.0, 1e9)]:
        best = np.max(factors * linear - 0.5 * factors**2 * squares)
        assert shrunken_value(linear, squares) >= best - 1e-12
        assert shrunken_value(linear, squares) == pytest.approx(best, abs=1e-4)


def test_tau_is_the_largest_score():
    K, rows = cost_problem(11, "classification")
    master = QPMaster(rows)
    found = solved(master, K, np.arange(5))
    scanned(master, K, found)
    assert master.tau == pytest.approx(np.abs(K.T @ found.signed_dual).max())
    positive = QPMaster(rows, positive=True)
    found = solved(positive, K, np.arange(5))
    scanned(positive, K, found)
    assert positive.tau == pytest.approx((K.T @ found.signed_dual).max())


# Growing and changing


@every_form
def test_columns_may_come_in_any_portions(form):
    K, rows = cost_problem(12, "classification")
    at_once = solved(QPMaster(rows, tol=TIGHT, **form), K).objective
    master = QPMaster(rows, tol=TIGHT, **form)
    for part in np.array_split(np.arange(N_COLUMNS), 9):
        found = solved(master, K, part)
    assert found.objective == pytest.approx(at_once, rel=1e-8)


@every_form
@pytest.mark.parametrize("make, problem", [(QPMaster, cost_problem), (NuQPMaster, margin_problem)])
@pytest.mark.parametrize("factor", [0.95, 1.3, 1e3])
def test_new_costs_give_the_problem_with_these_costs(factor, make, problem, form):
    K, rows = problem(13, "classification")
    cost = factor * rows.cost * np.random.default_rng(0).uniform(1.0, 1.1, N_POINTS)
    warm = make(rows, tol=TIGHT, **form)
    solved(warm, K)
    warm.set_cost(cost)
    cold = solved(make(classification_rows(rows.sign, cost), tol=TIGHT, **form), K)
    assert warm.solve().objective == pytest.approx(cold.objective, rel=1e-7)


def test_a_portion_is_a_tenth_of_the_working_set():
    _, rows = cost_problem(14, "classification")
    master = QPMaster(rows)
    assert master.batch == 1
    master.add_columns(np.arange(200), np.zeros((N_POINTS, 200)))
    assert master.batch == 20
    master.add_columns(np.arange(200, 2000), np.zeros((N_POINTS, 1800)))
    assert master.batch == MAX_BATCH


def test_no_column_is_dropped_since_the_optimum_is_dense():
    K, rows = cost_problem(15, "classification")
    master = QPMaster(rows)
    solved(master, K)
    assert master.drop_idle() == 0
    assert len(master.columns) == N_COLUMNS


@pytest.mark.parametrize("magnitude", [1e-6, 1e-3, 1e3, 1e6])
def test_kernels_of_any_magnitude_are_solved_as_well(magnitude):
    # a = a' / m turns the problem with columns m K and costs c / m^2 into that with K and c.
    K, rows = cost_problem(16, "classification")
    expected = solved(QPMaster(rows, tol=1e-8), K).objective
    scaled = QPMaster(classification_rows(rows.sign, rows.cost / magnitude**2), tol=1e-8)
    assert solved(scaled, magnitude * K).objective * magnitude**2 == pytest.approx(expected, rel=1e-7)


@every_form
@pytest.mark.parametrize("C", [1e-8, 1e-3, 1e3, 1e8])
def test_costs_of_any_magnitude_are_solved_with_an_honest_bound(C, form):
    K, rows = cost_problem(17, "classification", C=C)
    master = QPMaster(rows, tol=1e-6, **form)
    found = solved(master, K)
    gap = found.objective - scanned(master, K, found)
    assert gap >= -1e-9 * found.objective
    assert gap <= 1e-5 * found.objective


def test_duplicated_columns_share_a_coefficient():
    K, rows = cost_problem(18, "classification")
    found = solved(QPMaster(rows, tol=TIGHT), np.hstack([K, K]))
    np.testing.assert_allclose(found.coef[:N_COLUMNS], found.coef[N_COLUMNS:], atol=1e-12)


def test_a_nu_that_leaves_no_margin_is_refused():
    signs = np.where(np.arange(20) < 2, 1.0, -1.0)
    cost = np.full(20, 1 / (0.5 * 20))
    with pytest.raises(ValueError, match="nu is too large"):
        NuQPMaster(classification_rows(signs, cost))
    NuQPMaster(classification_rows(signs, cost), intercept=None)
    with pytest.raises(ValueError, match="nu is too large"):
        NuQPMaster(classification_rows(signs, 0.4 * cost), intercept=None)

import sys

import numpy as np
import pytest
from oracles.reference import (
    discriminant_sdp,
    full_lp,
    full_nu_lp,
    full_nu_qp,
    full_qp,
    full_rkhs,
    joint_discriminant_sdp,
    within_discriminant_sdp,
)
from sklearn.svm import SVC, NuSVC, OneClassSVM

from kernelweave.solvers.margin import classification_rows, one_class_rows, regression_rows

INTERCEPTS = ["free", "penalized", None]


def problem(seed, n_points=20, n_columns=30, C=0.5):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n_points) % 2 == 0, 1.0, -1.0)
    return rng.normal(size=(n_points, n_columns)) + 0.3 * y[:, None], classification_rows(y, np.full(n_points, C))


def value(K, rows, found, penalty):
    return penalty + rows.loss(K @ found.coef + found.intercept)


# Linear programs


def test_two_points_on_a_line_are_separated_with_slope_one():
    K = np.array([[1.0], [-1.0]])
    solution = full_lp(K, classification_rows(np.array([1.0, -1.0]), np.array([10.0, 10.0])))
    assert solution.objective == pytest.approx(1.0)
    assert solution.coef == pytest.approx([1.0])
    assert solution.intercept == pytest.approx(0.0)


def test_a_small_cost_buys_no_coefficient():
    K = np.array([[1.0], [-1.0]])
    solution = full_lp(K, classification_rows(np.array([1.0, -1.0]), np.array([0.1, 0.1])))
    assert solution.objective == pytest.approx(0.2)
    assert solution.coef == pytest.approx([0.0])


def test_a_positive_coefficient_cannot_turn_a_column_around():
    K = np.array([[-1.0], [1.0]])
    rows = classification_rows(np.array([1.0, -1.0]), np.array([10.0, 10.0]))
    assert full_lp(K, rows, intercept=None).coef == pytest.approx([-1.0])
    assert full_lp(K, rows, positive=True, intercept=None).objective == pytest.approx(20.0)


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("intercept, offset", [("free", -3.0), ("penalized", -3.0), (None, 0.0)])
def test_a_constant_is_met_by_the_offset_of_either_sign(intercept, offset, positive):
    rows = regression_rows(np.full(4, -3.0), 0.0, np.full(4, 5.0))
    solution = full_lp(np.zeros((4, 2)), rows, positive=positive, intercept=intercept)
    assert solution.intercept == pytest.approx(offset)
    assert solution.objective == pytest.approx({"free": 0.0, "penalized": 3.0, None: 60.0}[intercept])


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("positive", [False, True])
def test_linear_solutions_have_the_value_they_say(positive, intercept):
    K, rows = problem(0)
    found = full_lp(K, rows, positive=positive, intercept=intercept)
    penalty = np.abs(found.coef).sum() + (abs(found.intercept) if intercept == "penalized" else 0.0)
    assert found.objective == pytest.approx(value(K, rows, found, penalty))
    assert not positive or found.coef.min() >= 0


def test_a_time_limit_is_an_error_that_says_so():
    K, rows = problem(1, n_points=200, n_columns=400)
    with pytest.raises(TimeoutError, match="longer than 1e-09 s"):
        full_lp(K, rows, time_limit=1e-9)


def test_the_largest_margin_of_two_points_on_a_line_is_their_distance_to_the_middle():
    K = np.array([[3.0], [-1.0]])
    rows = classification_rows(np.array([1.0, -1.0]), np.full(2, 10.0))  # nu = 0.05: no errors
    free = full_nu_lp(K, rows)
    assert (free.rho, free.objective) == (pytest.approx(2.0), pytest.approx(-2.0))
    assert free.intercept == pytest.approx(-1.0)
    assert full_nu_lp(K, rows, intercept=None).rho == pytest.approx(1.0)


def test_a_penalised_offset_shares_the_ball_with_the_coefficients():
    K = np.array([[3.0], [-0.5]])
    rows = classification_rows(np.array([1.0, -1.0]), np.full(2, 10.0))
    solution = full_nu_lp(K, rows, intercept="penalized")
    # 3a + b = a/2 - b and a - b = 1
    assert (solution.coef[0], solution.intercept) == (pytest.approx(4 / 9), pytest.approx(-5 / 9))
    assert solution.rho == pytest.approx(7 / 9)


def test_one_class_by_mean_at_nu_one():
    K = np.random.default_rng(0).uniform(size=(8, 5))
    found = full_nu_lp(K, one_class_rows(8, np.full(8, 1 / 8)), positive=True, intercept=None)
    assert -found.objective == pytest.approx(K.mean(axis=0).max())


def test_a_margin_without_end_is_an_error():
    with pytest.raises(RuntimeError, match="stopped"):
        full_nu_lp(np.zeros((3, 1)), one_class_rows(3, np.ones(3)))


# Quadratic programs: the kernel of all columns is K K', which other packages take


@pytest.fixture(autouse=True)
def _cvxpy(request):
    if "qp" in request.node.name or "rkhs" in request.node.name:
        pytest.importorskip("cvxpy")


def dual_value(Q, machine, y):
    """Value of the SVM dual at the solution of scikit-learn."""
    x = np.zeros(len(y))
    x[machine.support_] = machine.dual_coef_[0]
    return y @ x - 0.5 * x @ Q @ x


@pytest.mark.parametrize("seed", range(3))
def test_the_full_qp_is_the_support_vector_machine_of_all_columns(seed):
    K, rows = problem(seed)
    Q = K @ K.T
    machine = SVC(C=0.5, kernel="precomputed", tol=1e-10).fit(Q, rows.sign)
    found = full_qp(K, rows)
    assert found.objective == pytest.approx(dual_value(Q, machine, rows.sign), rel=1e-8)
    assert found.objective == pytest.approx(value(K, rows, found, 0.5 * found.coef @ found.coef), rel=1e-8)
    np.testing.assert_allclose(K @ found.coef + found.intercept, machine.decision_function(Q), atol=1e-5)


@pytest.mark.parametrize("positive", [False, True])
def test_a_penalised_offset_of_the_full_qp_is_one_more_column(positive):
    K, rows = problem(3)
    found = full_qp(K, rows, positive=positive, intercept="penalized")
    signed = np.column_stack([K, np.ones(20)] + [-np.ones(20)] * positive)
    column = full_qp(signed, rows, positive=positive, intercept=None)
    assert found.objective == pytest.approx(column.objective, rel=1e-8)
    np.testing.assert_allclose(found.coef, column.coef[:30], atol=1e-5)


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_positive_coefficients_of_the_full_qp_are_the_positive_scores(intercept):
    K, rows = problem(4)
    found = full_qp(K, rows, positive=True, intercept=intercept)
    assert found.coef.min() >= -1e-9
    chosen = found.coef > 1e-6
    alone = full_qp(K[:, chosen], rows, intercept=intercept)  # without the columns at zero none is negative
    assert alone.objective == pytest.approx(found.objective, rel=1e-7)
    np.testing.assert_allclose(alone.coef, found.coef[chosen], atol=1e-4)


def test_the_full_qp_of_a_regression_is_the_support_vector_regression():
    rng = np.random.default_rng(5)
    K, targets = rng.normal(size=(15, 4)), rng.normal(size=15)
    rows = regression_rows(targets, 0.2, np.full(15, 0.7))
    found = full_qp(K, rows)
    assert found.objective == pytest.approx(value(K, rows, found, 0.5 * found.coef @ found.coef), rel=1e-8)
    step = 1e-4 * rng.normal(size=(50, 4))
    nearby = [0.5 * c @ c + rows.loss(K @ c + found.intercept) for c in found.coef + step]
    assert min(nearby) >= found.objective


@pytest.mark.parametrize("nu", [0.2, 0.5])
def test_the_full_nu_qp_is_the_nu_machine(nu):
    K, rows = problem(6)
    Q = K @ K.T
    found = full_nu_qp(K, classification_rows(rows.sign, np.full(20, 1 / (nu * 20))))
    machine = NuSVC(nu=nu, kernel="precomputed", tol=1e-10).fit(Q, rows.sign)
    # NuSVC divides its solution by rho
    np.testing.assert_allclose((K @ found.coef + found.intercept) / found.rho, machine.decision_function(Q), atol=1e-4)


@pytest.mark.parametrize("nu", [0.2, 0.5])
def test_the_full_nu_qp_of_one_class_is_the_one_class_machine(nu):
    K, _ = problem(7)
    found = full_nu_qp(K, one_class_rows(20, np.full(20, 1 / (nu * 20))), intercept=None)
    machine = OneClassSVM(nu=nu, kernel="precomputed", tol=1e-10).fit(K @ K.T)
    # its weights sum to nu n, ours to one
    np.testing.assert_allclose(K @ found.coef - found.rho, machine.decision_function(K @ K.T) / (nu * 20), atol=1e-5)


@pytest.mark.parametrize("positive", [False, True])
def test_the_full_nu_qp_divided_by_its_margin_is_the_full_qp(positive):
    K, rows = problem(8)
    rows = classification_rows(rows.sign, np.full(20, 1 / (0.4 * 20)))
    found = full_nu_qp(K, rows, positive=positive, intercept="penalized")
    assert found.rho > 0
    costs = full_qp(K, classification_rows(rows.sign, rows.cost / found.rho), positive=positive, intercept="penalized")
    np.testing.assert_allclose(found.coef / found.rho, costs.coef, atol=1e-4)
    assert found.intercept / found.rho == pytest.approx(costs.intercept, abs=1e-4)


def test_one_kernel_in_full_rkhs_is_the_support_vector_machine():
    rng = np.random.default_rng(9)
    X = rng.normal(size=(20, 3))
    G = X @ X.T  # of rank 3
    rows = classification_rows(np.where(X[:, 0] + 0.5 * rng.normal(size=20) > 0, 1.0, -1.0), np.full(20, 0.5))
    machine = SVC(C=0.5, kernel="precomputed", tol=1e-10).fit(G, rows.sign)
    found = full_rkhs([G], [G], rows)
    assert found.objective == pytest.approx(dual_value(G, machine, rows.sign), rel=1e-8)


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_several_kernels_in_full_rkhs_are_the_machine_of_their_sum(intercept):
    rng = np.random.default_rng(10)
    X = rng.normal(size=(15, 2))
    rows = classification_rows(np.where(X[:, 0] > 0.2, 1.0, -1.0), np.full(15, 2.0))
    grams = [X @ X.T, np.exp(-((X[:, None] - X) ** 2).sum(axis=2)), (1 + X @ X.T) ** 2]
    apart = full_rkhs(grams, grams, rows, intercept=intercept)
    together = full_rkhs([sum(grams)], [sum(grams)], rows, intercept=intercept)
    assert apart.coef.shape == (45,)
    assert apart.objective == pytest.approx(together.objective, rel=1e-7)


def test_a_missing_cvxpy_is_named_with_its_extra(monkeypatch):
    K, rows = problem(11)
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    with pytest.raises(ImportError, match=r"kernelweave\[test\]"):
        full_qp(K, rows)


# Semidefinite programs of discriminant analysis: with one kernel nothing is left to choose


def discriminant(seed, m=10, k=3):
    rng = np.random.default_rng(seed)
    P = np.eye(m) - 1 / m
    X = P @ rng.normal(size=(m, m - 1))
    H = P @ np.eye(k)[np.arange(m) % k]
    return X @ X.T, H


@pytest.mark.parametrize("divided", [False, True])
@pytest.mark.parametrize("k", [1, 3])
def test_the_discriminant_sdp_of_one_kernel_is_its_schur_complement(k, divided):
    pytest.importorskip("cvxpy")
    G, H = discriminant(0, k=3)
    H = H[:, :k]
    found = discriminant_sdp([G], H, 0.1, divided=divided)
    assert found.weights == pytest.approx([1 / np.trace(G)])  # sum theta_i trace_i = 1
    value = np.trace(H.T @ np.linalg.solve(np.eye(10) + G / np.trace(G) / 0.1, H))
    assert found.objective == pytest.approx(value / (0.1 if divided else 1.0), rel=1e-8)


@pytest.mark.parametrize("solver", ["exact", "joint"])
def test_the_discriminant_sdp_that_learns_its_ridge_is_the_best_on_a_line(solver):
    pytest.importorskip("cvxpy")
    G, H = discriminant(1)
    H = H[:, :1]  # so that both are the same
    found = (discriminant_sdp if solver == "exact" else joint_discriminant_sdp)([G], H, None)
    assert found.weights @ [10.0, np.trace(G)] == pytest.approx(1.0)

    def value(w):
        return (H.T @ np.linalg.solve(w / 10 * np.eye(10) + (1 - w) * G / np.trace(G), H)).item()

    assert found.objective == pytest.approx(value(10 * found.weights[0]), rel=1e-7)
    assert found.objective <= min(value(w) for w in np.linspace(0.01, 1, 300)) * (1 + 1e-8)


@pytest.mark.parametrize("divided", [False, True])
def test_the_joint_discriminant_sdp_bounds_a_matrix_of_rank_one(divided):
    pytest.importorskip("cvxpy")
    G, H = discriminant(2)
    H = np.outer(H[:, 0], [1.0, -2.0, 0.5])
    found = joint_discriminant_sdp([G], H, 0.1, divided=divided)
    one = discriminant_sdp([G], H[:, :1], 0.1, divided=divided)
    assert found.objective == pytest.approx(3.5**2 * one.objective, rel=1e-7)  # (sum |v|)^2


def test_the_within_discriminant_sdp_of_one_kernel_is_equation_9():
    pytest.importorskip("cvxpy")
    G, _ = discriminant(3)
    a = np.repeat([0.2, -0.2], 5)
    J = np.kron(np.eye(2), (np.eye(5) - 1 / 5) / np.sqrt(5))
    found = within_discriminant_sdp([G], a, J, 0.5)
    inverse = np.linalg.inv(0.5 * np.eye(10) + J @ G @ J)
    assert found.objective == pytest.approx(a @ G @ (np.eye(10) - J @ inverse @ J @ G) @ a / 0.5, rel=1e-7)
    assert found.weights == pytest.approx([1.0])

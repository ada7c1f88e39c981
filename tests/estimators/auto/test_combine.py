"""Weights of members: the optimum of a general solver, certificates that cover the difference, KKT conditions."""

import numpy as np
import pytest
from scipy.optimize import minimize

from kernelweave import AutoKernelClassifier, AutoKernelRegressor
from kernelweave.estimators.auto import combine
from kernelweave.estimators.auto.combine import (
    PRIOR_ROWS,
    STACK_TOL,
    drop_small,
    keep_prior,
    stack_classes,
    stack_numbers,
    take_best,
)
from kernelweave.solvers.result import Status

SEEDS = range(4)


def classes_problem(seed, n_members=4, n_rows=25):
    """Probabilities of the true classes, weights of rows, and a prior."""
    rng = np.random.default_rng(seed)
    likelihood = rng.uniform(0.05, 0.95, size=(n_members, n_rows))
    return likelihood, rng.uniform(0.2, 2.0, size=n_rows), rng.dirichlet(np.full(n_members, 3.0))


def numbers_problem(seed, n_members=4, n_rows=25):
    rng = np.random.default_rng(seed)
    targets = rng.normal(size=n_rows)
    predictions = targets + rng.normal(size=(n_members, n_rows)) * rng.uniform(0.3, 1.0, size=(n_members, 1))
    return predictions, targets, rng.uniform(0.2, 2.0, size=n_rows), rng.dirichlet(np.full(n_members, 3.0))


def minimise_over_simplex(objective, n_weights):
    """A slow oracle: sequential quadratic programs with numerical gradients, from the middle of the simplex."""
    found = minimize(
        objective,
        np.full(n_weights, 1.0 / n_weights),
        method="SLSQP",
        bounds=[(1e-9, 1.0)] * n_weights,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1.0},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    return float(objective(found.x / found.x.sum()))


def minus_log_posterior(w, likelihood, weight, prior, prior_rows=PRIOR_ROWS):
    return -(weight @ np.log(w @ likelihood) + prior_rows * prior @ np.log(w))


def ridged_squares(w, predictions, targets, weight, prior):
    errors = predictions - targets
    variance = (np.square(errors) @ weight).min() / weight.sum()
    return weight @ np.square(w @ predictions - targets) + PRIOR_ROWS * variance * np.square(w - prior).sum()


# Classes


@pytest.mark.parametrize("seed", SEEDS)
def test_weights_of_classifiers_reach_the_optimum_of_a_general_solver(seed):
    problem = classes_problem(seed)
    result = stack_classes(*problem)
    assert result.status is Status.CONVERGED
    assert result.objective == pytest.approx(minus_log_posterior(result.x, *problem), rel=1e-12)
    optimum = minimise_over_simplex(lambda w: minus_log_posterior(w, *problem), 4)
    # The oracle may itself be above the optimum, by its own tolerance.
    assert result.objective - optimum <= result.certificate.gap + 1e-8
    assert result.certificate.gap <= STACK_TOL * abs(result.objective)
    assert result.certificate.objective == result.objective


@pytest.mark.parametrize("seed", SEEDS)
def test_the_gradient_is_nearly_equal_for_all_members(seed):
    likelihood, weight, prior = classes_problem(seed)
    w = stack_classes(likelihood, weight, prior).x
    gradient = likelihood @ (weight / (w @ likelihood)) + PRIOR_ROWS * prior / w
    assert w.sum() == pytest.approx(1.0)
    assert (w > 0).all()  # the prior is a barrier
    # KKT on the interior of the simplex: one multiplier, which is the total weight. The gap bounds the largest entry
    # from above; the others follow since their weighted mean is the multiplier.
    np.testing.assert_allclose(gradient, weight.sum() + PRIOR_ROWS, rtol=1e-3)


@pytest.mark.parametrize("estimator, symbol", [(AutoKernelClassifier, r"\alpha"), (AutoKernelRegressor, r"\rho")])
def test_the_documents_state_what_the_prior_is_worth(estimator, symbol):
    assert f"{symbol} = {PRIOR_ROWS:g}`" in estimator.__doc__


def test_without_rows_the_weights_are_the_prior():
    prior = np.array([0.5, 0.3, 0.2])
    result = stack_classes(np.empty((3, 0)), np.empty(0), prior)
    np.testing.assert_allclose(result.x, prior)
    assert result.certificate.gap == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(keep_prior(prior).x, prior)


def test_members_that_say_the_same_keep_the_ratio_of_the_prior():
    row = np.random.default_rng(0).uniform(0.1, 0.9, size=12)
    prior = np.array([0.6, 0.3, 0.1])
    np.testing.assert_allclose(stack_classes(np.tile(row, (3, 1)), np.ones(12), prior).x, prior, rtol=1e-9)


def test_a_row_of_weight_two_is_two_rows():
    likelihood, weight, prior = classes_problem(0)
    twice = stack_classes(likelihood, 2.0 * weight, prior)
    repeated = stack_classes(np.hstack([likelihood, likelihood]), np.concatenate([weight, weight]), prior)
    np.testing.assert_allclose(twice.x, repeated.x, rtol=1e-9)


def test_at_the_limit_of_steps_the_objective_and_the_gap_are_those_of_the_weights(monkeypatch):
    monkeypatch.setattr(combine, "MAX_STEPS", 2)
    problem = classes_problem(0)
    result = stack_classes(*problem)
    assert result.status is Status.MAX_ITER
    assert result.n_iter == 2
    assert result.objective == pytest.approx(minus_log_posterior(result.x, *problem), rel=1e-12)
    optimum = minimise_over_simplex(lambda w: minus_log_posterior(w, *problem), 4)
    assert STACK_TOL < result.objective - optimum <= result.certificate.gap


# Numbers


@pytest.mark.parametrize("seed", SEEDS)
def test_weights_of_regressors_reach_the_optimum_of_a_general_solver(seed):
    problem = numbers_problem(seed)
    result = stack_numbers(*problem)
    assert result.objective == pytest.approx(ridged_squares(result.x, *problem), rel=1e-10)
    optimum = minimise_over_simplex(lambda w: ridged_squares(w, *problem), 4)
    assert result.objective - optimum <= result.certificate.gap + 1e-8 * optimum
    assert result.certificate.gap <= 1e-8 * optimum  # the active-set method is exact but for its tiny ridge
    assert result.status is Status.CONVERGED


@pytest.mark.parametrize("seed", SEEDS)
def test_weights_of_regressors_satisfy_the_kkt_conditions(seed):
    predictions, targets, weight, prior = numbers_problem(seed, n_members=6)
    predictions[4:] += [[30.0], [31.0]]  # one of them, at most, corrects the mean of the others
    w = stack_numbers(predictions, targets, weight, prior).x
    errors = predictions - targets
    variance = (np.square(errors) @ weight).min() / weight.sum()
    gradient = 2 * (errors * weight) @ (w @ errors) + 2 * PRIOR_ROWS * variance * (w - prior)
    positive = w > 0
    assert not positive[4:].all()
    np.testing.assert_allclose(gradient[positive], gradient[positive].mean(), rtol=1e-6)
    assert (gradient[~positive] >= gradient[positive].mean() - 1e-6 * abs(gradient).max()).all()


def test_a_member_without_an_error_gets_all_weight():
    targets = np.arange(6.0)
    predictions = np.array([targets, targets + 1.0, targets - 1.0])
    result = stack_numbers(predictions, targets, np.ones(6), np.full(3, 1 / 3))
    assert result.objective == pytest.approx(0.0, abs=1e-9)
    np.testing.assert_allclose(result.x @ predictions, targets, atol=1e-6)  # or the mean of the other two


def test_without_rows_the_weights_of_regressors_are_the_prior():
    prior = np.array([0.7, 0.3])
    result = stack_numbers(np.empty((2, 0)), np.empty(0), np.empty(0), prior)
    np.testing.assert_allclose(result.x, prior, rtol=1e-6)


# One member, and small ones


def test_the_best_member_is_that_of_the_smallest_weighted_loss_and_the_first_of_equals():
    losses = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 0.0]])
    np.testing.assert_array_equal(take_best(losses, np.array([1.0, 1.0])).x, [1, 0, 0])
    result = take_best(losses, np.array([5.0, 1.0]))
    np.testing.assert_array_equal(result.x, [0, 1, 0])
    assert result.objective == 2.0
    assert result.certificate.gap == 0.0


def test_small_weights_are_dropped_and_the_others_keep_their_ratio():
    np.testing.assert_allclose(drop_small(np.array([0.6, 0.38, 0.02]), 0.03), [0.6 / 0.98, 0.38 / 0.98, 0.0])
    many = np.full(50, 0.02)
    np.testing.assert_allclose(drop_small(many, 0.03), many)  # the largest is never dropped

import numpy as np
import pytest
from oracles.reference import full_lp
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernelweave import RBF, KernelLibrary, Linear, Polynomial, SemiSupervisedSplit, Sigmoid, SSMKRegressor
from kernelweave.solvers.margin import regression_rows


@parametrize_with_checks([SSMKRegressor()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def partly_known(seed=0, n=80, n_known=30):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    truth = np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.05 * rng.normal(size=n)
    return X, np.where(np.arange(n) < n_known, truth, np.nan), truth


@pytest.mark.parametrize("seed", range(8))
def test_the_objective_is_the_optimum_of_the_full_problem(seed):
    X, y, _ = partly_known(seed)
    kernels = [Linear(), Polynomial(), RBF(), Sigmoid()][seed % 3 :]
    C, epsilon = 10.0 ** (seed % 3 - 1), [0.0, 0.1][seed % 2]
    model = SSMKRegressor(kernels, C=C, epsilon=epsilon, column_scale=None, tol=1e-8).fit(X, y)
    bound = KernelLibrary(kernels).bind(X, np.random.default_rng(0))
    K = bound.columns(np.arange(bound.n_columns), np.arange(30))
    optimum = full_lp(K, regression_rows(y[:30], epsilon, np.full(30, C))).objective
    assert model.objective_ == pytest.approx(optimum, rel=1e-6)
    assert abs(model.objective_ - optimum) <= model.certificate_.gap + 1e-9 * optimum


def test_unknown_numbers_are_filled_in():
    X, y, truth = partly_known(1, n=200, n_known=100)
    model = SSMKRegressor(epsilon=0.05).fit(X, y)
    np.testing.assert_array_equal(model.transduction_[:100], y[:100])
    assert np.abs(model.transduction_[100:] - truth[100:]).mean() < 0.25
    assert model.score(X, y) == pytest.approx(model.score(X[:100], y[:100]), rel=1e-12)


def test_the_parts_by_kernel_sum_to_the_whole():
    X, y, _ = partly_known(2)
    model = SSMKRegressor([Linear(), RBF()]).fit(X, y)
    np.testing.assert_allclose(model.predict(X, split=True).sum(axis=1), model.predict(X), atol=1e-10)


def test_minus_one_is_a_number():
    X, y, _ = partly_known(3)
    y = np.where(np.isnan(y), np.nan, np.where(y > 0, 2.0, -1.0))
    assert SSMKRegressor().fit(X, y).status_.converged


def test_a_constant_target_is_the_offset():
    X, _, _ = partly_known(4)
    model = SSMKRegressor().fit(X, np.full(80, 7.0))
    assert model.n_columns_ == 0
    np.testing.assert_allclose(model.predict(X), 7.0, atol=0.1 + 1e-9)


def test_cross_validation_and_grids_work_on_partly_known_numbers():
    X, y, _ = partly_known(5)
    cv = SemiSupervisedSplit(3, random_state=0)
    assert cross_val_score(SSMKRegressor(), X, y, cv=cv).shape == (3,)
    search = GridSearchCV(SSMKRegressor(RBF()), {"kernels__multiple": [0.5, 2.0], "epsilon": [0.01, 0.1]}, cv=cv)
    assert search.fit(X, y).best_score_ < 1.0


@pytest.mark.parametrize(
    "options, y, message",
    [
        ({"epsilon": -0.1}, None, "epsilon=-0.1; expected a number, 0 or more"),
        ({"centers": 0}, None, "centers=0"),
        ({}, np.full(80, np.nan), "label"),
        ({}, np.array(["a", "b"] * 40), "a regressor needs numbers"),
        ({}, np.full(80, np.inf), "inf"),
    ],
)
def test_bad_input_gives_one_clear_sentence(options, y, message):
    X, known, _ = partly_known(6)
    with pytest.raises(ValueError, match=message):
        SSMKRegressor(**options).fit(X, known if y is None else y)

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import cross_val_score

from kernelweave import RBF, CGBoostRegressor, Linear, SSMKRegressor


@pytest.mark.parametrize("estimator", [CGBoostRegressor, SSMKRegressor])
def test_noisy_numbers_are_learned_about_as_well_as_by_ridge_regression(estimator):
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:200], y[:200]
    ridge = cross_val_score(RidgeCV(np.logspace(-3, 3, 7)), X, y, cv=2).mean()
    assert cross_val_score(estimator(), X, y, cv=2).mean() > ridge - 0.1


@pytest.mark.parametrize("penalty", ["l1", "rkhs"])
def test_the_zone_that_is_not_given_is_a_tenth_of_the_weighted_deviation(penalty):
    rng = np.random.default_rng(0)
    X, weight = rng.normal(size=(30, 2)), rng.integers(1, 4, size=30)
    y = 50.0 * X[:, 0] + rng.normal(size=30)
    options = {"kernels": [RBF(), Linear()], "C": 1.0, "penalty": penalty, "tol": 1e-6}
    auto = CGBoostRegressor(**options).fit(X, y, weight)
    given = CGBoostRegressor(epsilon=0.1 * np.repeat(y, weight).std(), **options).fit(X, y, weight)
    assert auto.objective_ == pytest.approx(given.objective_, rel=1e-5)


def test_a_constant_target_is_learned_exactly():
    X = np.random.default_rng(1).normal(size=(50, 2))
    model = CGBoostRegressor().fit(X, np.full(50, 7.0))
    assert model.n_columns_ == 0
    np.testing.assert_allclose(model.predict(X), 7.0, rtol=1e-9)


def test_models_of_a_path_know_their_costs():
    X = np.random.default_rng(2).normal(size=(30, 2))
    models = CGBoostRegressor([RBF()]).fit_path(X, X[:, 0] ** 2, [0.1, 1.0])
    assert [(model.C, model.C_, model.cv_results_) for model in models] == [(0.1, 0.1, {}), (1.0, 1.0, {})]

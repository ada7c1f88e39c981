import numpy as np
import pytest
from oracles.reference import full_lp

from kernelweave import RBF, KernelLibrary, Linear, Polynomial, Sigmoid, SSMKRegressor
from kernelweave.solvers.margin import regression_rows


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
    model = SSMKRegressor(kernels, C=C, epsilon=epsilon, column_scale=None, centers="all", tol=1e-8).fit(X, y)
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


def test_a_constant_target_is_the_offset():
    X, _, _ = partly_known(4)
    model = SSMKRegressor().fit(X, np.full(80, 7.0))
    assert model.n_columns_ == 0
    np.testing.assert_allclose(model.predict(X), 7.0, atol=0.1 + 1e-9)


@pytest.mark.parametrize(
    "options, message",
    [({"epsilon": -0.1}, "epsilon=-0.1; expected a number, 0 or more"), ({"centers": 0}, "centers=0")],
)
def test_bad_parameters_give_one_clear_sentence(options, message):
    X, y, _ = partly_known(6)
    with pytest.raises(ValueError, match=message):
        SSMKRegressor(**options).fit(X, y)


@pytest.mark.parametrize("n_known, n_centers", [(30, 30), (39, 39), (40, 80)])
def test_few_numbers_have_no_columns_of_unlabelled_rows_unless_asked_for(n_known, n_centers):
    X, y, _ = partly_known(2, n_known=n_known)
    model = SSMKRegressor([RBF()], C=1.0).fit(X, y)
    assert f"x {n_centers} centres" in model.certificate_.scope
    assert SSMKRegressor([RBF()], C=1.0, centers="all").fit(X, y).certificate_.scope == "1 kernel x 80 centres"

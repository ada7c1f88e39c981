"""The certificate holds for the model that predicts, whatever the scales of data, costs and kernels."""

import warnings

import numpy as np
import pytest
from oracles.reference import full_lp
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning

from kernelweave import RBF, KernelLibrary, Linear, Polynomial, Sigmoid, SSMKClassifier
from kernelweave.solvers.margin import classification_rows
from kernelweave.solvers.result import Status

LIBRARIES = [[Linear(), RBF()], [RBF(1e-3), Polynomial(3)], [Sigmoid(), RBF(50.0)]]


def problem(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(50, 3))
    y = np.where(np.arange(50) < 25, X[:, 0] + 0.5 * rng.normal(size=50) > 0, np.nan)
    y[:2] = 0, 1
    return X, y, 10 ** rng.uniform(-6, 8), 10 ** rng.uniform(-3, 3, 50) if seed % 2 else np.ones(50)


def recomputed(model, X, y, cost):
    """Objective of the printed problem from coefficients and predictions alone."""
    labeled = ~np.isnan(y)
    loss = cost[labeled] @ np.maximum(0, 1 - (2 * y[labeled] - 1) * model.decision_function(X[labeled]))
    return sum(np.abs(group.coef).sum() for group in model.expansion_.groups) + loss


@pytest.mark.parametrize("seed", range(12))
def test_costs_and_weights_over_many_magnitudes(seed):
    X, y, C, weight = problem(seed)
    kernels = LIBRARIES[seed % 3]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = SSMKClassifier(kernels, C=C, column_scale=None).fit(X, y, sample_weight=weight)
    bound = KernelLibrary(kernels).bind(X, np.random.default_rng(0), weight)
    K = bound.columns(np.arange(bound.n_columns), np.arange(25))
    # Two computations of a margin differ by some units in the last place of its terms, which the cost multiplies.
    terms = sum(np.abs(group.coef).sum() for group in model.expansion_.groups) * np.abs(K).max()
    rounding = 8 * np.finfo(float).eps * (C * weight[:25]).sum() * max(1.0, terms)
    assert model.objective_ == pytest.approx(recomputed(model, X, y, C * weight), rel=1e-12, abs=rounding)
    optimum = full_lp(K, classification_rows(2 * y[:25] - 1, C * weight[:25])).objective
    assert model.objective_ - model.certificate_.gap <= optimum * (1 + 1e-6)
    assert model.certificate_.relative < 1e-3


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("column_scale", ["std", "norm"])
def test_scaled_columns_always_converge(seed, column_scale):
    X, y, C, weight = problem(seed)
    model = SSMKClassifier(LIBRARIES[seed % 3], C=min(C, 1e4), column_scale=column_scale)
    assert model.fit(X, y, sample_weight=weight).status_.converged


@pytest.mark.parametrize("C", [1e-12, 1e-3, 10.0, 1e4])
def test_raw_features_converge_with_the_default_scale(C):
    X, truth = load_breast_cancer(return_X_y=True)
    y = np.where(np.random.default_rng(0).random(len(X)) < 0.1, truth, np.nan)
    assert SSMKClassifier(C=C).fit(X, y).status_.converged


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("seed", range(4))
def test_what_rounding_of_raw_features_leaves_at_a_huge_cost_is_certified(seed):
    X, truth = load_breast_cancer(return_X_y=True)
    y = np.where(np.random.default_rng(seed).random(len(X)) < 0.1, truth, np.nan)
    # Margins of values up to 1e7 are exact to 1e-9 or so, which C multiplies: 1e-6 is reached on some processors only.
    model = SSMKClassifier(C=1e6).fit(X, y)
    assert model.status_ in (Status.CONVERGED, Status.PRECISION)
    assert model.certificate_.relative <= 1e-5


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounding_noise_is_not_learned(dtype):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    X[150] *= 1e5  # one outlier makes every other pair of rows close: kernels are constant up to rounding
    y = np.where(np.arange(200) < 60, rng.integers(0, 2, 200), -1)
    y[:2] = 0, 1
    model = SSMKClassifier([RBF(multiple=0.01)]).fit(X.astype(dtype), y)
    new = rng.normal(size=(300, 5))
    agree = (model.decision_function(new) > 0) == (model.decision_function(new.astype(np.float32)) > 0)
    assert agree.mean() > 0.99


def test_the_warning_speaks_of_the_worst_class():
    X, truth = load_iris(return_X_y=True)
    with pytest.warns(
        ConvergenceWarning, match=r"Certified relative gap: .*tolerance: 1.00e-06. Raise max_columns"
    ) as seen:
        SSMKClassifier(max_columns=3).fit(X, truth)
    text = str(seen[0].message)
    assert float(text.split("gap: ")[1].split(",")[0]) > 1e-6

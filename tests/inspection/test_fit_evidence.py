"""What pages are made from: errors on held-out rows, kept by the model or found by folds."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

from kernelweave import (
    RBF,
    AutoKernelClassifier,
    AutoKernelRegressor,
    HarmonicClassifier,
    LeaderboardDisplay,
    MKLRegressor,
    RKDAClassifier,
    SemiSupervisedCalibration,
)
from kernelweave.inspection.fit_evidence import read_evidence


def rows():
    X, y = load_iris(return_X_y=True)
    return X, np.where(np.arange(150) % 4 == 0, y, -1)


def test_a_combination_has_its_own_held_out_rows():
    X, y = rows()
    model = AutoKernelClassifier(["SVM", "RKDA"], random_state=0).fit(X, y)
    found = read_evidence(model, X, y)
    np.testing.assert_array_equal(found.held_out.given, y[model.oof_rows_])
    assert np.mean(found.held_out.given != found.held_out.predicted) == pytest.approx(model.error_.value)
    assert (found.n_labeled, found.n_unlabeled, found.has_classes) == (38, 112, True)


def test_a_single_model_is_judged_by_folds():
    X, y = rows()
    found = read_evidence(RKDAClassifier([RBF()]).fit(X, y), X, y)
    assert found.held_out.error.n_rows == 38
    assert found.held_out.error.value < 0.2


@pytest.mark.parametrize("make", [lambda: MKLRegressor([RBF()]), lambda: AutoKernelRegressor(["SVM"], random_state=0)])
def test_numbers_have_a_root_mean_squared_error(make):
    X, _ = rows()
    y = np.where(np.arange(150) % 3 == 0, X[:, 0], np.nan)
    found = read_evidence(make().fit(X[:, 1:], y), X[:, 1:], y)
    residuals = found.held_out.predicted - found.held_out.given
    assert found.held_out.error.value == pytest.approx(np.sqrt(np.mean(residuals**2)))
    assert not found.has_classes


def test_too_few_labels_tell_nothing():
    X, _ = rows()
    few = np.full(150, -1)
    few[[0, 50, 100]] = [0, 1, 2]
    assert read_evidence(RKDAClassifier([RBF()]).fit(X, few), X, few).held_out.error is None


def test_a_calibration_is_judged_by_folds():
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = np.where(np.arange(40) < 30, X[:, 0] > 0, None)
    fit = read_evidence(SemiSupervisedCalibration(HarmonicClassifier(), random_state=0).fit(X, y), X, y)
    assert fit.held_out.error.n_rows == 30
    assert fit.held_out.error.value < 0.3


def test_standardised_numbers_are_given_in_their_unit():
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = np.where(np.arange(40) < 30, X[:, 0], np.nan)
    model = AutoKernelRegressor(["SVM", "harmonic"], random_state=0).fit(X, y)
    fit, plain = read_evidence(model, X, y, center=100.0, unit=10.0), read_evidence(model, X, y)
    np.testing.assert_allclose(fit.held_out.given, 100.0 + 10.0 * plain.held_out.given)
    assert fit.held_out.error == plain.held_out.error.times(10.0)
    assert fit.leaderboard[0]["error"] == 10.0 * plain.leaderboard[0]["error"] == 10.0 * model.leaderboard_[0]["error"]
    assert fit.unlabeled_helped == model.unlabeled_helped_.times(10.0)
    assert str(fit.held_out.error) in fit.sentences[0]
    lead = LeaderboardDisplay.from_estimator(model, unit=10.0)
    np.testing.assert_allclose(lead.errors, [record["error"] for record in fit.leaderboard])
    assert lead.mixture[0] == pytest.approx(fit.held_out.error.value)

"""Callers inside scikit-learn to whom unlabelled rows are a class are noticed, and no others."""

import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from checks.partly_labeled import NearestMean
from common.estimators import cases, labeled_sample
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from kernelweave import (
    RBF,
    CGBoostClassifier,
    HarmonicClassifier,
    HarmonicRegressor,
    LabelAwareKernelLearner,
    SemiSupervisedCalibration,
    SemiSupervisedSplit,
    labeled_scorer,
)
from kernelweave.model_selection import guards

FOLDS = StratifiedKFold(2)
WRONG = "Test parts of this cross-validation hold unlabelled rows"
MODEL = HarmonicClassifier(n_neighbors=5)


def takes_minus_one(case):
    return "unlabeled" in case.parameters


def marked_sample(case, marker=-1):
    """Every third row is unlabelled, so that every part has such rows."""
    X, y = labeled_sample(case, n=60, n_classes=3)
    return X, np.where(np.arange(60) % 3 == 2, marker, y)


@cases("classes", where=takes_minus_one)
def test_every_classifier_refuses_to_be_calibrated_with_unlabelled_rows_as_a_class(case):
    X, y = marked_sample(case)
    for ensemble in (True, False):
        with pytest.raises(ValueError, match=r"SemiSupervisedCalibration in its place.*pass the labelled rows only"):
            CalibratedClassifierCV(case.model(), cv=FOLDS, ensemble=ensemble).fit(X, y)
    CalibratedClassifierCV(case.model(), cv=FOLDS).fit(X[y >= 0], y[y >= 0])


@cases("classes", where=takes_minus_one)
def test_every_classifier_warns_of_scores_that_count_unlabelled_rows(case):
    X, y = marked_sample(case)
    with pytest.warns(UserWarning, match=WRONG) as caught:
        cross_val_score(case.model(), X, y, cv=FOLDS, scoring="accuracy", error_score="raise")
    assert {warning.filename for warning in caught if WRONG in str(warning.message)} == {__file__}
    assert len({str(warning.message) for warning in caught if WRONG in str(warning.message)}) == 1  # shown once


@cases("classes", where=takes_minus_one)
def test_every_classifier_is_silent_where_scores_leave_unlabelled_rows_out(case):
    X, y = marked_sample(case)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", WRONG)
        cross_val_score(case.model(), X, y, cv=FOLDS, error_score="raise")
        cross_val_score(case.model(), X, y, cv=FOLDS, scoring=labeled_scorer("accuracy"), error_score="raise")
        cross_val_score(
            case.model(), X, y, cv=SemiSupervisedSplit(2, random_state=0), scoring="accuracy", error_score="raise"
        )


@pytest.fixture
def rows(data):
    X, _, truth = data
    return X, np.where(np.arange(60) % 3 == 2, -1, truth + 1)


@pytest.mark.parametrize("scoring", [
    "accuracy",
    make_scorer(accuracy_score),
    lambda model, X, y: accuracy_score(y, model.predict(X)),
    ["accuracy", "balanced_accuracy"],
    {"right": labeled_scorer(), "wrong": "accuracy"},
])  # fmt: skip
def test_scorers_of_every_kind_are_noticed(rows, scoring):
    with pytest.warns(UserWarning, match=WRONG):
        cross_validate(MODEL, *rows, cv=FOLDS, scoring=scoring)
    with pytest.warns(UserWarning, match=WRONG):
        GridSearchCV(MODEL, {"n_neighbors": [3, 5]}, cv=FOLDS, scoring=scoring, refit=False).fit(*rows)


@pytest.mark.parametrize("model", [
    make_pipeline(StandardScaler(), MODEL),
    GridSearchCV(MODEL, {}, cv=SemiSupervisedSplit(2)),
    SemiSupervisedCalibration(MODEL, min_labels=2),
])  # fmt: skip
def test_estimators_around_ours_are_noticed_by_their_scorer(rows, model):
    with pytest.warns(UserWarning, match=WRONG):
        cross_val_score(model, *rows, cv=FOLDS, scoring="accuracy", error_score="raise")
    with warnings.catch_warnings():
        warnings.filterwarnings("error", WRONG)
        cross_val_score(model, *rows, cv=FOLDS, error_score="raise")


def test_the_score_of_scikit_learn_is_noticed_inside_pipelines_and_searches(rows):
    learner = make_pipeline(LabelAwareKernelLearner(RBF()), LinearSVC())
    search = GridSearchCV(MODEL, {}, cv=SemiSupervisedSplit(2), scoring="accuracy")
    for model in (learner, search):
        with pytest.warns(UserWarning, match=WRONG):
            cross_val_score(model, *rows, cv=FOLDS, error_score="raise")


@pytest.mark.filterwarnings("ignore:A column-vector y")
def test_markers_of_other_kinds_and_learning_curves_are_noticed(rows):
    X, y = rows
    texts = np.array(["", "a", "b", "?"])[y]
    named = HarmonicClassifier(n_neighbors=5, unlabeled="?")
    with pytest.warns(UserWarning, match=WRONG):
        cross_val_score(named, X, texts, cv=FOLDS, scoring="accuracy")
    with pytest.raises(ValueError, match="SemiSupervisedCalibration"):
        CalibratedClassifierCV(named, cv=FOLDS).fit(X, texts)
    with pytest.warns(UserWarning, match=WRONG):
        cross_val_score(MODEL, X, y[:, None], cv=list(FOLDS.split(X, y)), scoring="accuracy")
    with pytest.warns(UserWarning, match=WRONG):
        learning_curve(MODEL, X, y, cv=FOLDS, scoring="accuracy", train_sizes=[1.0])


def test_a_test_part_with_all_unlabelled_rows_is_noticed(data):
    X, _, truth = data
    y = np.where(np.arange(60) < 40, truth + 1, -1)
    with pytest.warns(UserWarning, match=WRONG):
        cross_val_score(MODEL, X, y, cv=KFold(3), scoring="accuracy", error_score="raise")


def test_minus_one_is_a_class_to_estimators_that_need_every_label(data):
    X, _, _ = data
    y = np.arange(60) // 20 - 1  # unshuffled: each training part lacks a class
    with warnings.catch_warnings():
        warnings.filterwarnings("error", WRONG)
        for model in (CGBoostClassifier(RBF()), OneVsRestClassifier(MODEL)):
            cross_val_score(model, X, y, cv=KFold(3), scoring="accuracy", error_score="raise")


@pytest.mark.filterwarnings("ignore:Scoring failed")
def test_numbers_are_noticed_too(rows):
    X, y = rows
    with pytest.warns(UserWarning, match=WRONG):
        cross_val_score(HarmonicRegressor(n_neighbors=5), X, np.where(y < 0, np.nan, X[:, 0]), cv=2, scoring="r2")


def test_fits_in_processes_are_noticed(rows):
    with pytest.raises(ValueError, match="SemiSupervisedCalibration"):
        CalibratedClassifierCV(MODEL, cv=FOLDS, n_jobs=2).fit(*rows)


def test_predictions_and_complete_labels_pass_in_silence(rows):
    X, y = rows
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cross_val_predict(MODEL, X, y, cv=FOLDS)
        cross_val_score(MODEL, X, np.arange(60) % 2, cv=FOLDS, scoring="accuracy")
        guards.check_callers(3, np.array([0, 1]))


def test_unlabelled_rows_that_cross_val_predict_would_number_as_a_class_are_refused():
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.where(np.arange(60) < 40, np.arange(60) % 2, -1)
    X[:, 0] += 3.0 * (np.arange(60) % 2)
    for model in (MODEL, make_pipeline(StandardScaler(), MODEL), SemiSupervisedCalibration(MODEL)):
        with pytest.raises(ValueError, match=r"cross_val_predict takes the unlabelled rows.*out_of_fold in its place"):
            cross_val_predict(model, X, y, cv=FOLDS, method="predict_proba")
        assert cross_val_predict(model, X[:40], y[:40], cv=FOLDS, method="predict_proba").shape[0] == 40


def test_minus_one_that_is_a_class_may_be_numbered():
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 3 - 1
    assert cross_val_predict(NearestMean(), X, y, cv=FOLDS, method="decision_function").shape == (60, 3)
    model = HarmonicClassifier(n_neighbors=5, unlabeled=None)
    assert cross_val_predict(model, X, y, cv=FOLDS, method="predict_proba").shape == (60, 3)


class HidesHalf(NearestMean):
    """Knows all labels, and hides some of them from the estimator inside."""

    def fit(self, X, y):
        MODEL.fit(X, np.where(np.arange(len(y)) % 4 < 2, None, y))
        return super().fit(X, y)


def test_an_estimator_that_hides_labels_of_complete_y_passes(data):
    X, _, truth = data
    with warnings.catch_warnings():
        warnings.filterwarnings("error", WRONG)
        cross_val_score(HidesHalf(), X, truth, cv=FOLDS, scoring="accuracy", error_score="raise")
    CalibratedClassifierCV(HidesHalf(), cv=FOLDS).fit(X, truth)


@pytest.mark.parametrize("local", [{}, {"y": None}, {"y": [b"x"], "scorer": len, "test": [0]}, {"y": 3, "test": 1}])
def test_frames_of_another_version_are_passed_over(monkeypatch, local):
    for file, name in ((guards.CALIBRATION, "fit"), (guards.VALIDATION, "_fit_and_score")):
        code = SimpleNamespace(co_filename=file, co_name=name)
        frame = SimpleNamespace(f_code=code, f_locals={"estimator": object(), **local}, f_back=None)
        monkeypatch.setattr(sys, "_getframe", lambda depth, frame=frame: frame)
        guards.check_callers(3, np.array([0, 1]))

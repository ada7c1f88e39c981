"""Predictions for labelled rows by models that have not seen their labels."""

import numpy as np
import pandas as pd
import pytest
from checks.partly_labeled import MeanRegressor, NearestMean, Recorder
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading
from sklearn.svm import SVC

from kernelweave import RBF, HarmonicRegressor, SemiSupervisedCalibration, SSMKClassifier, SSMKRegressor
from kernelweave.model_selection import SemiSupervisedSplit, out_of_fold
from kernelweave.model_selection.out_of_fold import fold_models

FOLDS = SemiSupervisedSplit(3, random_state=0)


@pytest.fixture
def numbers(data):
    X, y, _ = data
    return X, np.where(y == -1, np.nan, X[:, 0] + X[:, 1] ** 2)


@pytest.mark.parametrize("transductive", [True, False])
def test_models_see_all_rows_but_the_labels_of_the_test_part(coded, data, transductive):
    X, y = coded
    result = out_of_fold(SSMKClassifier(RBF()), X, y, cv=FOLDS, transductive=transductive)
    assert result.method == "decision_function"
    assert_array_equal(result.rows, np.arange(24))
    known = np.array([None] * 60, dtype=object)
    known[:24] = result.classes[data[2][:24]]
    for fold, (train, test) in enumerate(FOLDS.split(X, known)):
        assert_array_equal(result.fold[test], fold)
        hidden = known.copy()
        hidden[test] = None
        rows = np.arange(60) if transductive else train
        expected = SSMKClassifier(RBF()).fit(X[rows], hidden[rows]).decision_function(X[test])
        assert_allclose(result.predictions[test], expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function"])
def test_supervised_estimators_are_cross_validated_on_the_labelled_rows_alone(coded, data, method):
    X, y = coded
    result = out_of_fold(LogisticRegression(), X, y, cv=3, method=method, random_state=0)
    labels = result.classes[data[2][:24]]
    folds = list(FOLDS.split(X[:24], labels))
    expected = cross_val_predict(LogisticRegression(), X[:24], labels, cv=folds, method=method)
    assert_array_equal(result.predictions, expected)


def test_a_prediction_does_not_depend_on_the_label_of_its_row(data):
    X, y, _ = data
    pairs = list(FOLDS.split(X, y))
    before = out_of_fold(LabelSpreading(), X, y, cv=pairs)
    changed = y.copy()
    changed[pairs[0][1][0]] = 1 - changed[pairs[0][1][0]]
    after = out_of_fold(LabelSpreading(), X, changed, cv=pairs)
    assert_array_equal(before.predictions[before.fold == 0], after.predictions[after.fold == 0])


def test_hidden_labels_leave_minus_one_a_class(data):
    X, y, truth = data
    coded = np.where(y == -1, None, 2 * truth - 1)  # classes -1 and 1
    result = out_of_fold(Recorder(), X, coded, cv=FOLDS, method="predict")
    assert_array_equal(result.classes, [-1, 1])
    assert set(result.predictions) == {-1, 1}
    complete = out_of_fold(Recorder(), X, np.arange(60) % 3 - 1, cv=3, unlabeled=None, random_state=0)
    assert_array_equal(complete.classes, [-1, 0, 1])
    assert_array_equal(complete.rows, np.arange(60))


def test_estimators_of_scikit_learn_that_read_codes_give_the_labels_of_the_user(data):
    X, y, truth = data
    names = np.where(y == -1, None, np.array(["no", "yes"])[truth].astype(object))
    result = out_of_fold(make_pipeline(StandardScaler(), LabelSpreading()), X, names, cv=FOLDS, method="predict")
    assert set(result.predictions) == {"no", "yes"}
    model = make_pipeline(StandardScaler(), LabelSpreading())
    codes = out_of_fold(model, X, y, cv=FOLDS, method="predict").predictions
    assert_array_equal(result.classes[codes], result.predictions)


def test_decision_values_of_repeats_are_averaged_and_classes_are_voted_on(data):
    X, y, _ = data
    cv = SemiSupervisedSplit(3, n_repeats=3, random_state=0)
    pairs = list(cv.split(X, y))
    single = [out_of_fold(NearestMean(), X, y, cv=pairs[i : i + 3]).predictions for i in (0, 3, 6)]
    result = out_of_fold(NearestMean(), X, y, cv=cv)
    assert_allclose(result.predictions, np.mean(single, axis=0))
    assert_array_equal(np.unique(result.fold), [0, 1, 2])
    votes = out_of_fold(NearestMean(), X, y, cv=cv, method="predict").predictions
    assert_array_equal(votes, (np.array(single) > 0).sum(axis=0) >= 2)


@pytest.mark.parametrize("model", [SSMKRegressor(RBF()), HarmonicRegressor(n_neighbors=5), LinearRegression()])
def test_numbers_are_predicted(numbers, model):
    X, y = numbers
    result = out_of_fold(model, X, y, cv=3, random_state=0)
    assert result.classes is None
    assert result.method == "predict"
    train, test = next(SemiSupervisedSplit(3, target="numbers", random_state=0).split(X, y))
    hidden = np.where(np.isin(np.arange(60), test), np.nan, y)
    rows = train[train < 24] if isinstance(model, LinearRegression) else np.arange(60)
    assert_allclose(result.predictions[test], clone(model).fit(X[rows], hidden[rows]).predict(X[test]), rtol=1e-6)


def test_rows_may_have_several_numbers(numbers):
    X, y = numbers
    both = np.column_stack([y, -2 * y])
    result = out_of_fold(LinearRegression(), X, both, cv=3, random_state=0)
    one = out_of_fold(LinearRegression(), X, y, cv=3, random_state=0)
    assert_allclose(result.predictions, np.column_stack([one.predictions, -2 * one.predictions]))


def test_frames_and_sparse_rows_give_the_predictions_of_arrays(data):
    X, y, _ = data
    expected = out_of_fold(SSMKClassifier(RBF()), X, y, cv=FOLDS).predictions
    for rows in (pd.DataFrame(X, columns=["a", "b"]), csr_matrix(X)):
        found = out_of_fold(SSMKClassifier(RBF()), rows, y, cv=FOLDS).predictions
        assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_a_kernel_matrix_is_cut_to_the_columns_of_the_training_rows(data):
    X, y, _ = data
    expected = out_of_fold(SVC(kernel="rbf", gamma=0.5), X, y, cv=FOLDS).predictions
    found = out_of_fold(SVC(kernel="precomputed"), rbf_kernel(X, gamma=0.5), y, cv=FOLDS).predictions
    assert_allclose(found, expected)


def test_rows_of_weight_zero_are_as_good_as_left_out(data):
    X, y, _ = data
    weights = np.where(np.isin(np.arange(60), [1, 7, 30, 31]), 0.0, 1.0 + np.arange(60) % 3)
    kept = np.flatnonzero(weights)
    result = out_of_fold(Recorder(), X, y, cv=3, sample_weight=weights, random_state=0)
    alone = out_of_fold(Recorder(), X[kept], y[kept], cv=3, sample_weight=weights[kept], random_state=0)
    assert_array_equal(result.rows, kept[alone.rows])
    assert_array_equal(result.predictions, alone.predictions)


def test_groups_are_held_out_together(data):
    X, y, _ = data
    groups = np.arange(60) // 4
    result = out_of_fold(NearestMean(), X, y, groups=groups, random_state=0)
    assert len(np.unique(result.fold)) == 5
    assert all(len(np.unique(result.fold[groups[result.rows] == g])) == 1 for g in range(6))


def test_a_splitter_that_knows_nothing_of_labels_tests_labelled_rows_only(data):
    X, y, _ = data
    result = out_of_fold(Recorder(), X, y, cv=KFold(4, shuffle=True, random_state=0))
    assert_array_equal(result.rows, np.arange(24))


def test_few_labels_make_fewer_folds(data):
    X, _, truth = data
    y = np.where(np.arange(60) < 4, truth, -1)
    assert_array_equal(np.unique(out_of_fold(NearestMean(), X, y, random_state=0).fold), np.arange(4))


def test_searches_and_calibration_keep_unlabelled_rows(data):
    X, y, _ = data
    search = GridSearchCV(Recorder(), {"power": [1.0, 2.0]}, cv=SemiSupervisedSplit(2, random_state=0),
                          scoring=lambda model, X, y: float(model.n_rows_seen_ > 40))  # fmt: skip
    assert out_of_fold(search, X, y, cv=FOLDS).predictions.shape == (24,)
    calibrated = SemiSupervisedCalibration(SSMKClassifier(RBF()), min_labels=2, cv=2, random_state=0)
    result = out_of_fold(calibrated, X, y, cv=FOLDS)
    assert result.method == "predict_proba"
    assert_allclose(result.predictions.sum(axis=1), 1.0)


def test_processes_change_nothing(data):
    X, y, _ = data
    expected = out_of_fold(LabelSpreading(), X, y, cv=FOLDS)
    found = out_of_fold(LabelSpreading(), X, y, cv=FOLDS, n_jobs=2)
    assert_array_equal(found.predictions, expected.predictions)


def test_wrong_questions_are_refused(data):
    X, y, _ = data
    with pytest.raises(ValueError, match='method="auto"'):
        out_of_fold(NearestMean(), X, y, method="predict_proba")
    with pytest.raises(ValueError, match="out_of_fold got method='transform'; expected"):
        out_of_fold(NearestMean(), X, y, method="transform")
    with pytest.raises(TypeError, match="needs a classifier or a regressor"):
        out_of_fold(PCA(), X, y)
    with pytest.raises(ValueError, match="No test part"):
        out_of_fold(NearestMean(), X, y, cv=[(np.arange(24), np.arange(30, 60))])
    with pytest.raises(ValueError, match="training part lost a class"):
        out_of_fold(LogisticRegression(), X, np.where(np.arange(60) < 24, np.arange(60) % 3, -1),
                    cv=[(np.setdiff1d(np.arange(60), np.arange(0, 60, 3)), np.arange(0, 24, 3))])  # fmt: skip
    with pytest.raises(ValueError, match="to out_of_fold too"):
        out_of_fold(SSMKClassifier(unlabeled="?"), X, np.array(["a", "b", "?"])[y], unlabeled=None)
    with pytest.raises(ValueError, match="has no sample_weight"):
        out_of_fold(MeanRegressor(), X, X[:, 0], sample_weight=np.ones(60))


@pytest.mark.parametrize("estimator", [LabelSpreading(), LogisticRegression()], ids=lambda each: type(each).__name__)
def test_the_models_of_the_folds_are_those_whose_predictions_are_given(estimator, data):
    X, y, _ = data
    expected = out_of_fold(estimator, X, y, cv=FOLDS)
    seen = []
    for model, rows, given in fold_models(estimator, X, y, cv=FOLDS):
        places = np.searchsorted(expected.rows, rows)
        assert_allclose(model.predict_proba(X[rows]), expected.predictions[places])
        assert_array_equal(expected.classes[np.searchsorted(model.classes_, given)], y[rows])
        seen += rows.tolist()
    assert sorted(seen) == expected.rows.tolist()

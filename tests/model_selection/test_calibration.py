"""Calibration on partly labelled rows."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from campaign.interrupts import Bytecodes, interrupt
from checks.partly_labeled import NearestMean
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, softmax
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernelweave import Linear, SSMKClassifier
from kernelweave.model_selection import SemiSupervisedCalibration as Calibrated
from kernelweave.model_selection import SemiSupervisedSplit as Split
from kernelweave.model_selection.scaling import Scaling, choose_scaling, most_probable


class FirstColumn(NearestMean):
    """The decision value is given, as the first column of X."""

    def decision_function(self, X):
        return np.asarray(X)[:, 0]


@pytest.mark.filterwarnings("ignore:On held-out rows")
@parametrize_with_checks([Calibrated(LogisticRegression(), min_labels=2)])
def test_a_calibrated_classifier_passes_scikit_learns_checks(estimator, check):
    check(estimator)


def test_the_sigmoid_that_made_the_labels_is_found():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20000, 1))
    y = (rng.random(20000) < expit(2 * X[:, 0] - 1)).astype(int)
    model = Calibrated(FirstColumn(), random_state=0).fit(X, y)
    assert not model.keeps_classes_  # the threshold is at 0.5
    grid = np.linspace(-2, 2, 41)[:, None]  # beyond, values are compressed
    # asymptotic standard errors of probabilities are below 0.005; the compressed 4 % of the rows add as much
    assert_allclose(model.predict_proba(grid)[:, 1], expit(2 * grid[:, 0] - 1), atol=0.025)


@pytest.mark.parametrize("is_fitted", [False, True])
def test_a_fit_that_is_interrupted_leaves_the_estimator_as_it_was(is_fitted, data):
    X, y, _ = data
    model = Calibrated(NearestMean(), cv=2, random_state=0)
    with Bytecodes() as whole:
        Calibrated(NearestMean(), cv=2, random_state=0).fit(X, y)
    if is_fitted:
        model.fit(X, y)
    before = dict(vars(model))
    for at in [*range(1, whole.n_codes, whole.n_codes // 5), *range(whole.n_codes - 100, whole.n_codes - 1, 7)]:
        assert interrupt(lambda: model.fit(X[:, :1], y), at) == "interrupted"
        assert vars(model).keys() == before.keys()
        assert all(vars(model)[name] is value for name, value in before.items())


def test_names_of_columns_are_those_of_the_last_fit(data):
    X, y, _ = data
    model = Calibrated(LogisticRegression()).fit(pd.DataFrame(X[:24], columns=["a", "b"]), y[:24])
    assert model.feature_names_in_.tolist() == ["a", "b"]
    assert not hasattr(model.fit(X[:24], y[:24]), "feature_names_in_")


def test_decision_values_are_out_of_fold_and_averaged_over_repeats(data):
    X, y, _ = data
    cv = Split(4, n_repeats=2, random_state=5)
    model = Calibrated(NearestMean(), cv=cv).fit(X, y)
    expected = np.zeros(24)
    for train, test in cv.split(X, y):
        expected[test] += NearestMean().fit(X[train], y[train]).decision_function(X[test]) / 2
    assert_array_equal(model.oof_rows_, np.arange(24))
    assert_allclose(model.oof_decision_, expected)
    assert model.estimator_.n_rows_seen_ == 60
    scaling = Scaling(model.center_, model.unit_, model.slope_, model.offset_)
    assert_allclose(model.decision_function(X), scaling(NearestMean().fit(X, y).decision_function(X)))


@pytest.mark.parametrize("n_folds", [3, 8])
def test_the_scaling_is_chosen_by_the_parts_in_which_rows_were_first_tested(n_folds, data):
    X, y, _ = data
    cv = list(Split(n_folds, n_repeats=2, random_state=5).split(X, y))
    model = Calibrated(NearestMean(), cv=cv).fit(X, y)
    parts = np.empty(24, dtype=int)
    for fold, (_, test) in enumerate(cv[:n_folds]):
        parts[test] = fold % 5  # at most five, whatever the number of folds
    choice = choose_scaling(model.oof_decision_, y[:24], np.ones(24), parts)
    assert model.keeps_classes_ == choice.keeps_classes
    assert_allclose(model.slope_, choice.scaling.slope)
    assert_array_equal(model.oof_classes_, choice.held_out)


def test_calibration_takes_every_coding_and_agrees_with_itself(coded, data):
    X, y = coded
    model = Calibrated(NearestMean(), random_state=0).fit(X, y)
    plain = Calibrated(NearestMean(), random_state=0).fit(X, data[1])
    assert_allclose(model.predict_proba(X), plain.predict_proba(X))
    assert_array_equal(model.predict(X), model.classes_[model.predict_proba(X).argmax(axis=1)])
    assert_array_equal(np.argsort(model.decision_function(X)), np.argsort(model.estimator_.decision_function(X)))
    assert model.score(X, y) == np.mean(plain.predict(X[:24]) == data[1][:24])
    assert 0 <= model.score(X, y, sample_weight=np.arange(60)) <= 1
    assert cross_val_score(model, X, y, cv=Split(2, random_state=0), error_score="raise").min() > 0.5
    grid = {"estimator__power": [1.0, 2.0]}
    search = GridSearchCV(model, grid, cv=Split(2, random_state=0), scoring="neg_log_loss")
    assert np.isfinite(search.fit(X, y).best_score_)


@pytest.mark.parametrize(
    "model", [LabelSpreading(gamma=1), SelfTrainingClassifier(LogisticRegression()), NearestMean()]
)
def test_probabilities_of_three_classes_sum_to_one_even_far_away(model):
    rng = np.random.default_rng(0)
    truth = np.arange(90) % 3
    X = rng.normal(size=(90, 2)) + 3 * np.eye(3)[truth][:, :2]
    y = np.where(np.arange(90) < 45, truth, -1)
    assert cross_val_score(model, X, y, cv=Split(5, random_state=0)).mean() > 0.7
    calibrated = Calibrated(model, random_state=0).fit(X, y)
    assert calibrated.slope_.shape == calibrated.offset_.shape == (3,)
    assert np.mean(calibrated.predict(X) == truth) > 0.7
    for scale in (1, 1e3) if hasattr(model, "decision_function") else (1,):
        assert_allclose(calibrated.predict_proba(scale * X).sum(axis=1), 1)


class Given(NearestMean):
    """The decision values are given, as the columns of X."""

    def decision_function(self, X):
        return np.asarray(X)


def three_methods_agree(model, X):
    found, z = model.predict_proba(X), model.decision_function(X)
    assert_array_equal(model.predict(X), model.classes_[found.argmax(axis=1)])
    assert_allclose(found.sum(axis=1), 1)
    if z.ndim == 2:
        assert_array_equal(np.argsort(z, axis=1), np.argsort(found, axis=1))
        assert_allclose(found, softmax(z, axis=1))
    else:
        assert_allclose(found, np.column_stack([expit(-z), expit(z)]))


@pytest.mark.parametrize("n_classes", [2, 5])
def test_the_three_methods_agree_and_the_estimators_classes_are_kept_where_they_are_right(n_classes):
    rng = np.random.default_rng(0)
    y = np.arange(200) % n_classes
    X = rng.normal(size=(200, n_classes)) + 1.5 * (np.eye(n_classes)[y] - 0.5)
    estimator, X = (FirstColumn(), X[:, 1:]) if n_classes == 2 else (Given(), X)
    X_new = np.vstack([X, 300 * X])
    model = Calibrated(estimator, random_state=0).fit(X, y)
    assert model.keeps_classes_
    three_methods_agree(model, X_new)
    assert_array_equal(model.predict(X_new), most_probable(estimator.fit(X, y).decision_function(X_new)))
    assert_array_equal(model.oof_classes_, most_probable(model.oof_decision_))
    shift = 4 * np.arange(X.shape[1])[::-1] + 4  # an estimator whose thresholds are wrong
    moved = Calibrated(estimator, random_state=0).fit(X + shift, y)
    assert not moved.keeps_classes_
    three_methods_agree(moved, X_new + shift)
    assert np.mean(moved.predict(X + shift) == y) > np.mean(model.predict(X) == y) - 0.05
    assert np.mean(moved.oof_classes_ == y) > np.mean(most_probable(moved.oof_decision_) == y) + 0.1


class SometimesWild(Given):
    """Decision values of which a few, different ones in every fit, are far from the others."""

    def fit(self, X, y, sample_weight=None):
        self.factor_ = 300.0 * (1 + len(y) % 3)
        return super().fit(X, y, sample_weight)

    def decision_function(self, X):
        values = np.array(X)
        values[np.abs(values[:, 0]) > 2.2, 0] *= self.factor_
        return values


def test_wild_out_of_fold_values_do_not_spoil_the_predicted_classes():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        y = np.arange(520) % 4
        X = rng.normal(size=(520, 4)) + 1.2 * (np.eye(4)[y] - 0.5)
        partly = np.where(np.arange(520) < 120, y, -1)
        model = Calibrated(SometimesWild(), random_state=0).fit(X, partly)
        assert np.abs(model.oof_decision_).max() > 300
        plain = np.mean(model.estimator_.decision_function(X[120:]).argmax(axis=1) != y[120:])
        assert np.mean(model.predict(X[120:]) != y[120:]) < plain + 0.02
        assert 0.15 < np.mean(model.predict(X[120:]) == 0) < 0.35
        three_methods_agree(model, X)


@pytest.mark.parametrize("n_classes", [3, 8])
def test_where_the_probabilities_are_known_those_of_many_classes_come_near_them(n_classes):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, n_classes))
    known = softmax(3 * X, axis=1)
    y = (known.cumsum(axis=1) > rng.random((4000, 1))).argmax(axis=1)
    found = Calibrated(Given(), random_state=0).fit(X, y).predict_proba(X)
    sure = found.max(axis=1)
    right = known[np.arange(4000), found.argmax(axis=1)]  # how often the choice is right, without the noise of labels
    assert abs(sure.mean() - right.mean()) < 0.01
    for low in (0.4, 0.6, 0.8):
        rows = (sure >= low) & (sure < low + 0.2)
        assert abs(sure[rows].mean() - right[rows].mean()) < 0.02
    # compressed values, 4 % of each column, are all that remains
    assert np.mean(np.sum(known * np.log(known / found), axis=1)) < 0.02


@pytest.mark.parametrize("n_members", [2, 5, 100])
@pytest.mark.parametrize("n_classes", [3, 10])
def test_folds_without_an_error_do_not_make_the_probabilities_certain(n_members, n_classes):
    y = np.repeat(np.arange(n_classes), n_members)
    X = 1e3 * np.eye(n_classes)[y]
    model = Calibrated(Given(), min_labels=2, random_state=0).fit(X, y)
    largest = model.predict_proba(X).max(axis=1)
    assert_allclose(largest, largest[0])
    # as if, of all rows with one more, between a tenth and two were wrong
    assert 0.1 / (len(y) + 1) < 1 - largest[0] < 2 / (len(y) + 1)


def test_the_order_of_rows_and_the_names_of_classes_do_not_matter():
    rng = np.random.default_rng(0)
    truth = np.arange(90) % 3
    X = rng.normal(size=(90, 2)) + 2 * np.eye(3)[truth][:, :2]
    y = np.where(np.arange(90) < 60, truth, -1)
    weights = rng.uniform(0.5, 2, 90)
    folds = list(Split(4, random_state=0).split(X, y))
    expected = Calibrated(NearestMean(), cv=folds).fit(X, y, sample_weight=weights)
    order, place, names = rng.permutation(90), np.empty(90, dtype=int), np.array(["b", "c", "a", None])
    place[order] = np.arange(90)
    model = Calibrated(NearestMean(), cv=[(place[train], place[test]) for train, test in folds])
    model.fit(X[order], names[y][order], sample_weight=weights[order])
    assert model.keeps_classes_ == expected.keeps_classes_
    assert_allclose(model.predict_proba(X)[:, [1, 2, 0]], expected.predict_proba(X), rtol=1e-5)


def test_decision_values_that_point_the_wrong_way_give_the_share_of_the_class_and_a_warning():
    X, y = np.linspace(1, -1, 40)[:, None], np.repeat([0, 1, None], [10, 20, 10])
    with pytest.warns(UserWarning, match=r"no better than chance for the classes \[1\]"):
        model = Calibrated(FirstColumn()).fit(X, y)
    assert model.slope_ == 0
    # 20 of 30 rows, and soft targets and the prior of log(21/11) draw little
    assert_allclose(model.predict_proba(X)[:, 1], 2 / 3, atol=0.02)
    assert (model.predict(X) == 1).all()


def test_a_row_of_weight_zero_is_left_out_and_groups_reach_the_splitter(data):
    X, y, _ = data
    keep = np.arange(60) % 5 != 0
    model = Calibrated(NearestMean(), random_state=0)
    weighted = model.fit(X, y, sample_weight=keep.astype(float), groups=np.arange(60) % 7).predict_proba(X)
    assert_array_equal(model.oof_rows_, np.flatnonzero(keep & (y != -1)))
    assert model.estimator_.n_rows_seen_ == keep.sum()
    cut = model.fit(X[keep], y[keep], groups=(np.arange(60) % 7)[keep])
    assert_allclose(cut.predict_proba(X), weighted)
    with pytest.raises(ValueError, match="there are 3"):
        model.fit(X, y, groups=np.arange(60) % 3)


@pytest.mark.parametrize("make", [scipy.sparse.coo_array, scipy.sparse.csr_matrix, pd.DataFrame, pl.DataFrame])
def test_sparse_matrices_and_frames_are_cut_by_rows(make, data):
    X, _, truth = data
    expected = Calibrated(LogisticRegression(), random_state=0).fit(X, truth)
    frame = make(X) if make is not pd.DataFrame else make(X, columns=["a", "b"])
    model = Calibrated(LogisticRegression(), random_state=0).fit(frame, truth)
    assert_allclose(model.predict_proba(frame), expected.predict_proba(X), rtol=1e-4)
    assert model.n_features_in_ == 2


class OnlyPredict(NearestMean):
    decision_function = property()


class NotFinite(NearestMean):
    def decision_function(self, X):
        return np.full(len(X), np.nan)


BAD_CALIBRATIONS = {
    "few labels": ({"min_labels": 13}, {}, "class 0 has 12. Label more, or lower min_labels"),
    "min_labels": ({"min_labels": 1}, {}, "min_labels == 1, must be >= 2"),
    "supervised": ({"estimator": SVC()}, {}, r"learned the classes \[-1, 0, 1\], but y has \[0, 1\]"),
    "untested class": ({"cv": [(np.arange(1, 60), [0])]}, {}, "No test part of cv holds a labelled row of class 1"),
    "nothing tested": ({"cv": [(np.arange(24), np.arange(24, 60))]}, {}, "No test part of cv"),
    "too many parts": ({"cv": 25}, {}, "n_splits=25 test parts need"),
    "not finite": ({"estimator": NotFinite()}, {}, r"shape \(5,\), 5 of them not finite"),
    "no decision": ({"estimator": OnlyPredict()}, {}, "neither decision_function nor predict_proba"),
    "negative weight": ({}, {"sample_weight": np.r_[-1, np.ones(59)]}, "smallest value -1.0"),
    "weights": ({}, {"sample_weight": np.ones(59)}, r"each of 60 rows, got shape \(59,\)"),
    "no weight": ({}, {"sample_weight": np.zeros(60)}, "All sample weights are zero"),
    "one class": ({}, {"sample_weight": np.arange(60.0) % 2}, r"positive weight\) there is only one class"),
    "unweighted": ({"estimator": LabelSpreading()}, {"sample_weight": np.ones(60)}, "has no sample_weight in fit"),
}


@pytest.mark.parametrize(("options", "fit_params", "message"), BAD_CALIBRATIONS.values(), ids=BAD_CALIBRATIONS)
def test_bad_calibrations_are_refused_with_a_sentence(options, fit_params, message, data):
    X, y, _ = data
    model = Calibrated(**{"estimator": NearestMean(), **options})
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(X, y, **fit_params)


@pytest.mark.parametrize("n_unlabeled", [2, 20])
@pytest.mark.parametrize("wrap", [lambda model: model, make_pipeline], ids=["alone", "in a pipeline"])
def test_a_marker_that_only_the_inner_estimator_knows_is_named_with_the_outer_parameter(wrap, n_unlabeled, data):
    X, _, truth = data
    y = np.where(np.arange(60) < 60 - n_unlabeled, truth, 255)
    inner = wrap(SSMKClassifier(Linear(), unlabeled=255))
    with pytest.raises(ValueError, match=r"SemiSupervisedCalibration has unlabeled='auto'.* Pass unlabeled=255 to"):
        Calibrated(inner).fit(X, y)
    assert_array_equal(Calibrated(inner, unlabeled=255, random_state=0).fit(X, y).classes_, [0, 1])
    with pytest.raises(ValueError, match="name the marker to the estimator"):
        Calibrated(wrap(SSMKClassifier(Linear())), unlabeled=255).fit(X, y)
    # -1 is a class to the outer one, and none to the inner one
    with pytest.raises(ValueError, match="unlabeled= of SemiSupervisedCalibration"):
        Calibrated(
            inner.set_params(**{key: "auto" for key in inner.get_params() if key.endswith("unlabeled")}),
            unlabeled=None,
            min_labels=2,
        ).fit(X, np.where(y == 255, -1, y))


def test_minus_one_is_a_class_where_no_row_is_unlabelled():
    X = np.random.default_rng(0).normal(size=(30, 2)) + np.arange(30)[:, None] % 3
    model = Calibrated(LogisticRegression(), unlabeled=None, random_state=0)
    model.fit(X, np.arange(30) % 3 - 1)
    assert_array_equal(model.classes_, [-1, 0, 1])
    assert len(model.oof_rows_) == 30

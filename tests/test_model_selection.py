"""Splits, scores and calibration on partly labelled rows."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, get_scorer, make_scorer
from sklearn.model_selection import GridSearchCV, KFold, StratifiedGroupKFold, cross_val_score, cross_validate
from sklearn.neighbors import KNeighborsClassifier
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernelweave.labels import is_unlabeled, partition, partition_targets
from kernelweave.model_selection import SemiSupervisedSplit as Split
from kernelweave.model_selection import SigmoidCalibratedClassifier as Calibrated
from kernelweave.model_selection import _fit_sigmoid, labeled_scorer


class NearestMean(ClassifierMixin, BaseEstimator):
    """A classifier that takes partly labelled y: nearest class mean; remembers how many rows it saw."""

    def __init__(self, power=2.0):
        self.power = power

    def fit(self, X, y, sample_weight=None):
        part = partition(y)
        weights = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight)
        members = part.indicator() * weights[part.labeled, None]
        self.means_ = members.T @ np.asarray(X)[part.labeled] / members.sum(axis=0)[:, None]
        self.classes_ = part.classes
        self.n_rows_seen_ = len(y)
        return self

    def _nearness(self, X):
        return -(np.abs(np.asarray(X)[:, None] - self.means_).sum(axis=2) ** self.power)

    def decision_function(self, X):
        nearness = self._nearness(X)
        return nearness[:, 1] - nearness[:, 0] if len(self.classes_) == 2 else nearness

    def predict(self, X):
        return self.classes_[self._nearness(X).argmax(axis=1)]


class MeanRegressor(RegressorMixin, BaseEstimator):
    def fit(self, X, y):
        self.mean_ = partition_targets(y).targets.mean()
        return self

    def predict(self, X):
        return np.full(len(X), self.mean_)


class FirstColumn(NearestMean):
    """The decision value is given, as the first column of X."""

    def decision_function(self, X):
        return np.asarray(X)[:, 0]


@pytest.fixture
def data():
    """60 rows of two overlapping classes, 24 of them labelled."""
    rng = np.random.default_rng(3)
    truth = np.arange(60) % 2
    X = rng.normal(size=(60, 2)) + 1.2 * truth[:, None]
    y = np.where(np.arange(60) < 24, truth, -1)
    return X, y, truth


CODINGS = {
    "-1": lambda y: y,
    "NaN": lambda y: np.where(y == -1, np.nan, y),
    "None": lambda y: np.array([None if v == -1 else "ab"[v] for v in y], dtype=object),
    "list": lambda y: [None if v == -1 else bool(v) for v in y],
    "pandas": lambda y: pd.Series(y, dtype="Int64").mask(y == -1),
    "polars": lambda y: pl.Series([None if v == -1 else "ab"[v] for v in y]),
}


@pytest.fixture(params=CODINGS.values(), ids=CODINGS)
def coded(request, data):
    X, y, _ = data
    return X, request.param(y)


@given(
    counts=st.lists(st.integers(2, 12), min_size=2, max_size=4),
    n_unlabeled=st.integers(0, 9),
    n_splits=st.integers(2, 4),
    seed=st.integers(0, 9),
)
def test_labelled_rows_are_tested_once_and_unlabelled_rows_always_train(counts, n_unlabeled, n_splits, seed):
    y = np.random.default_rng(seed).permutation(np.repeat([-1, *range(len(counts))], [n_unlabeled, *counts]))
    tests = []
    for train, test in Split(n_splits, random_state=seed).split(y, y):
        assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(len(y)))
        assert set(y[train]) == set(y)
        tests.append(test)
    assert_array_equal(np.sort(np.concatenate(tests)), np.flatnonzero(y != -1))
    in_part = np.array([[len(test), *np.bincount(y[test], minlength=len(counts))] for test in tests])
    assert np.ptp(in_part, axis=0).max() <= 1


def test_without_strata_a_training_part_that_lost_a_class_is_still_refused():
    y = np.array([0] * 30 + [1, 1])
    with pytest.raises(ValueError, match=r"lost class 1: .* \(2\)"):
        # each time, both rows of class 1 are in one part with probability 15/31
        [list(Split(2, stratify=False, random_state=seed).split(y, y)) for seed in range(30)]


def test_every_coding_and_container_is_split_alike(data, coded):
    X, y = coded
    expected = Split(4, random_state=0).split(X, data[1])
    for pair, pair_too in zip(expected, Split(4, random_state=0).split(X, y), strict=True):
        assert [part.tolist() for part in pair] == [part.tolist() for part in pair_too]


@pytest.mark.filterwarnings("error")
def test_classes_smaller_than_n_splits_are_enough_without_a_warning():
    y = np.array([0, 0, 0, 1, 1, 1, 2, 2, -1])
    splits = list(Split(5, random_state=0).split(y, y))
    assert [set(y[train]) for train, _ in splits] == [{-1, 0, 1, 2}] * 5


def test_the_same_seed_gives_the_same_splits_and_repeats_differ(data):
    X, y, _ = data

    def test_parts(splitter):
        return [test.tolist() for _, test in splitter.split(X, y)]

    splitter = Split(3, n_repeats=2, random_state=1)
    first = test_parts(splitter)
    assert first == test_parts(splitter) != test_parts(Split(3, n_repeats=2, random_state=2))
    assert len(first) == splitter.get_n_splits() == 6
    assert first[:3] != first[3:]
    assert sorted(np.concatenate(first[:3])) == sorted(np.concatenate(first[3:])) == list(range(24))
    shared = Split(3, random_state=np.random.RandomState(0))
    assert test_parts(shared) != test_parts(shared)


def test_continuous_targets_are_split_without_strata_and_whole_numbers_can_be_said_to_be_such():
    y = np.array([0.5, 1.5, 2.0, np.nan, 4.0, 7.5, np.nan, 9.1])
    sizes = [(len(test), {3, 6} <= set(train)) for train, test in Split(3, random_state=0).split(y, y)]
    assert sizes == [(2, True)] * 3
    y = np.array([-1, 0, 3, 8, 13, 21])
    with pytest.raises(ValueError, match="lost class 0"):
        list(Split(3, random_state=0).split(y, y))
    tests = [test for _, test in Split(3, target="numbers", random_state=0).split(y, y)]
    assert_array_equal(np.sort(np.concatenate(tests)), np.arange(6))


def test_groups_are_never_in_both_parts_and_unlabelled_rows_of_held_out_groups_follow_the_choice(data):
    X, y, _ = data
    groups = np.arange(60) // 2 % 6
    for choice in ("keep", "drop"):
        splitter = Split(3, group_unlabeled=choice, n_repeats=2, random_state=0)
        tests = []
        for train, test in splitter.split(X, y, groups):
            assert not np.isin(groups[train[y[train] != -1]], groups[test]).any()
            of_held_out = np.isin(groups, groups[test]) & (y == -1)
            assert set(np.isin(np.flatnonzero(of_held_out), train)) == {choice == "keep"}
            assert np.isin(np.flatnonzero(~of_held_out & (y == -1)), train).all()
            tests.append(test)
        assert_array_equal(np.sort(np.concatenate(tests[:3])), np.flatnonzero(y != -1))


@given(st.lists(st.integers(0, 7), min_size=12, max_size=60), st.integers(0, 5))
def test_no_test_part_of_groups_is_empty(groups, seed):
    y, groups = np.linspace(0.5, 1, len(groups)), np.array([*groups, 0, 1, 2])[3:]
    splits = list(Split(3, random_state=seed).split(y, y, groups))
    assert all(len(test) for _, test in splits)


def test_groups_spread_classes_about_as_evenly_as_scikit_learn():
    def unevenness(splitter, y, groups):
        shares = [np.bincount(y[test], minlength=3) / np.bincount(y) for _, test in splitter.split(y, y, groups)]
        return np.std(shares)

    ours, theirs = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        groups = rng.integers(0, 30, 200)
        y = (rng.integers(0, 3, 200) + groups) % 3
        ours.append(unevenness(Split(4, random_state=seed), y, groups))
        theirs.append(unevenness(StratifiedGroupKFold(4, shuffle=True, random_state=seed), y, groups))
    assert np.mean(ours) < 1.1 * np.mean(theirs)


def test_groups_may_be_strings_or_minus_one_and_regression_has_groups_too():
    y = np.array([0.1, 0.2, np.nan, 0.4, 0.5, 0.6])
    for groups in (["a", "a", "b", "b", "c", "c"], np.array([-1, -1, 0, 0, 1, 1])):
        for train, test in Split(3, group_unlabeled="drop", random_state=0).split(y, y, groups):
            assert not set(np.array(groups)[train]) & set(np.array(groups)[test])


def test_the_repr_of_a_splitter_can_be_evaluated():
    splitter = Split(4, n_repeats=2, stratify=False, unlabeled="?", group_unlabeled="drop")
    assert vars(eval(repr(splitter), {"SemiSupervisedSplit": Split})) == vars(splitter)


Y = np.array([0, 0, 1, 1, 2, -1])
BAD_SPLITS = {
    "one part": (lambda: Split(1), "n_splits == 1, must be >= 2"),
    "half a part": (lambda: Split(2.5), "n_splits must be an instance of"),
    "no repeat": (lambda: Split(n_repeats=0), "n_repeats == 0, must be >= 1"),
    "target": (lambda: Split(target="y"), "target must be one of 'auto', 'classes', 'numbers'"),
    "choice": (lambda: Split(group_unlabeled="x"), "group_unlabeled must be one of 'keep'"),
    "few rows": (lambda: list(Split(6).split(Y, Y)), "y has 5 labelled rows of 6"),
    "no label": (lambda: list(Split(2).split(Y, [None] * 6)), "y has 0 labelled rows of 6"),
    "lost class": (lambda: list(Split(2).split(Y, Y)), r"lost class 2: .* \(1\)"),
    "lost group": (lambda: list(Split(2).split(Y, Y, [0, 0, 1, 1, 1, 1])), "lost class"),
    "few groups": (lambda: list(Split(3).split(Y, Y, [0, 0, 1, 1, 1, 2])), "there are 2"),
    "no group": (lambda: list(Split(2).split(Y, Y, [0, 0, 1, 1, None, 2])), "no value in 1 of 6"),
    "mixed groups": (lambda: list(Split(2).split(Y, Y, [0, 0, "a", 1, 1, 2])), "groups mixes"),
    "no y": (lambda: list(Split(2).split(Y)), "target y is None"),
    "lengths": (lambda: list(Split(2).split(Y[1:], [0, 0, 1, 1, 1, -1])), "inconsistent numbers"),
    "continuous strings": (lambda: list(Split(2).split(Y, ["a", 1] * 3)), "types int, str"),
}


@pytest.mark.parametrize(("act", "message"), BAD_SPLITS.values(), ids=BAD_SPLITS)
def test_bad_splits_are_refused_with_a_sentence(act, message):
    with pytest.raises((ValueError, TypeError), match=message):
        act()


def test_cross_validation_and_grid_search_take_partly_labelled_y(coded):
    X, y = coded
    cv = Split(3, random_state=0)
    assert cross_val_score(NearestMean(), X, y, cv=cv, error_score="raise").min() > 0.5
    fits = cross_validate(NearestMean(), X, y, cv=cv, return_estimator=True, error_score="raise")
    assert [fit.n_rows_seen_ for fit in fits["estimator"]] == [60 - 8] * 3
    search = GridSearchCV(NearestMean(), {"power": [0.5, 1.0]}, cv=cv, error_score="raise").fit(X, y)
    assert search.best_estimator_.n_rows_seen_ == 60
    assert search.n_splits_ == 3


def test_groups_reach_the_splitter_with_and_without_metadata_routing(data):
    X, y, _ = data
    groups = np.arange(60) // 2 % 6
    cv = Split(3, random_state=0)
    expected = cross_val_score(NearestMean(), X, y, cv=cv, scoring="accuracy", groups=groups)
    search = GridSearchCV(NearestMean(), {"power": [2.0]}, cv=cv).fit(X, y, groups=groups)
    assert search.best_score_ == pytest.approx(expected.mean())
    with config_context(enable_metadata_routing=True):
        assert cv.get_metadata_routing().split.requests == {"groups": True}
        routed = cross_val_score(NearestMean(), X, y, cv=cv, scoring="accuracy", params={"groups": groups})
        cv.set_split_request(groups=False)
        assert cv.get_metadata_routing().split.requests == {"groups": False}
    assert_array_equal(routed, expected)


def test_regression_is_cross_validated_with_nan_targets():
    y = np.where(np.arange(20) % 3 == 0, np.nan, np.linspace(0.5, 3, 20))
    error = "neg_mean_absolute_error"
    for cv, scoring in [(Split(3, random_state=0), error), (KFold(3), labeled_scorer(error))]:
        scores = cross_val_score(MeanRegressor(), y[:, None], y, cv=cv, scoring=scoring, error_score="raise")
        assert np.isfinite(scores).all()


def share_correct(estimator, X, y):
    return float(np.mean(estimator.predict(X) == y))


SCORINGS = [
    ("accuracy", share_correct),
    (accuracy_score, share_correct),
    (make_scorer(accuracy_score), share_correct),
    (share_correct, share_correct),
    (None, share_correct),
    ("roc_auc", get_scorer("roc_auc")),
]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("scoring", "plain"), SCORINGS)
def test_a_labeled_scorer_is_the_plain_one_on_the_labelled_rows(scoring, plain, data, coded):
    X, y = coded
    model = NearestMean().fit(X, y)
    rows = np.flatnonzero(~is_unlabeled(y))
    scorer = pickle.loads(pickle.dumps(labeled_scorer(scoring)))
    assert scorer(model, X, y) == plain(model, X[rows], model.classes_[data[1][rows]])
    assert repr(scorer).startswith("labeled_scorer(")


@pytest.mark.filterwarnings("error")
def test_minus_one_and_one_class_in_a_fold_are_not_two_classes(data):
    X, y, _ = data
    model = NearestMean().fit(X, y)
    assert labeled_scorer("accuracy")(model, X[y != 0], y[y != 0]) == np.mean(model.predict(X[y == 1]) == 1)
    cv = KFold(5, shuffle=True, random_state=0)
    assert cross_val_score(NearestMean(), X, y, cv=cv, scoring=labeled_scorer("accuracy")).min() > 0.4
    assert cross_val_score(NearestMean(), X, y, cv=cv).max() < 0.7  # the trap: unlabelled rows are all wrong


def test_minus_one_is_scored_where_it_is_a_class_or_a_number():
    X, y = np.array([[0.0], [1.0], [0.2]]), np.array([-1, 1, 1])
    model = KNeighborsClassifier(1).fit(X, [-1, 1, -1])
    assert labeled_scorer("accuracy")(model, X, y) == pytest.approx(2 / 3)
    regressor = MeanRegressor().fit(X, [0, 0, 0])
    assert labeled_scorer("neg_mean_absolute_error")(regressor, X, np.array([-1, 0, 5])) == -2.0
    assert labeled_scorer("accuracy", unlabeled=1)(model, X, y) == 1.0


def test_weights_and_other_entries_a_row_are_cut_to_the_labelled_rows(data):
    X, y, _ = data
    model, weights = NearestMean().fit(X, y), np.arange(60.0)
    rows, labeled = np.arange(60), y != -1
    expected = accuracy_score(y[labeled], model.predict(X[labeled]), sample_weight=weights[labeled])
    assert labeled_scorer("accuracy")(model, X, y, sample_weight=weights) == expected
    assert labeled_scorer("accuracy")(model, X.tolist(), y.tolist(), sample_weight=list(weights)) == expected

    def count(estimator, X, y, cost, name):
        return len(cost) + len(X) + len(y) + len(name)

    assert labeled_scorer(count)(model, X, y, cost=weights, name="ab") == 3 * 24 + 2
    with config_context(enable_metadata_routing=True):
        scorer = labeled_scorer("accuracy").set_score_request(sample_weight=True)
        model = NearestMean().set_fit_request(sample_weight=False)
        routed = cross_val_score(model, X, y, cv=[(rows, rows)], scoring=scorer, params={"sample_weight": weights})
    assert routed == [expected]


def test_bad_scoring_is_refused_with_a_sentence(data):
    X, y, _ = data
    with pytest.raises(ValueError, match="no labelled row to score: all 3 rows"):
        labeled_scorer("accuracy")(NearestMean().fit(X, y), X[-3:], y[-3:])
    with pytest.raises(TypeError, match="scoring must be a scorer name, a scorer, a metric or None, got"):
        labeled_scorer(["accuracy", "roc_auc"])
    with pytest.raises(ValueError, match="'accurate' is not a valid scoring value"):
        labeled_scorer("accurate")


@pytest.mark.filterwarnings("ignore:On held-out rows")
@parametrize_with_checks([Calibrated(LogisticRegression(), min_labels=2)])
def test_a_calibrated_classifier_passes_scikit_learns_checks(estimator, check):
    check(estimator)


@settings(max_examples=40)
@given(st.integers(0, 1000))
def test_the_sigmoid_is_the_optimum_of_logistic_regression_on_soft_targets(seed):
    rng = np.random.default_rng(seed)
    decision = rng.normal(size=40) * 10 ** rng.uniform(-3, 3)
    positive = np.arange(40) % 3 == 0
    weights = rng.integers(1, 4, 40).astype(float)
    slope, offset = _fit_sigmoid(decision, positive, weights)
    repeats = weights.astype(int)  # a weight counts as so many rows
    again = _fit_sigmoid(decision.repeat(repeats), positive.repeat(repeats), np.ones(repeats.sum()))
    assert_allclose(again, (slope, offset), rtol=1e-5, atol=1e-7)
    n_in, n_out = weights[positive].sum(), weights[~positive].sum()
    target = np.where(positive, (n_in + 1) / (n_in + 2), 1 / (n_out + 2))
    residual = weights * (expit(slope * decision + offset) - target)
    # the derivatives by offset and slope, relative to their size if nothing cancelled
    assert abs(residual.sum()) < 1e-6 * weights.sum()
    by_slope = residual @ decision / (weights @ np.abs(decision))
    assert abs(by_slope) < 1e-6 if slope > 0 else by_slope >= -1e-9
    assert slope >= 0


def test_the_sigmoid_that_made_the_labels_is_found():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20000, 1))
    y = (rng.random(20000) < expit(2 * X[:, 0] - 1)).astype(int)
    model = Calibrated(FirstColumn(), random_state=0).fit(X, y)
    # asymptotic standard errors, from the Fisher information at the truth, are below 0.03; four of them
    assert_allclose([model.slope_[0], model.offset_[0]], [2, -1], atol=0.12)
    assert_allclose(model.predict_proba(X)[:, 1], expit(model.slope_ * X[:, 0] + model.offset_))


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
    z = model.slope_ * NearestMean().fit(X, y).decision_function(X) + model.offset_
    assert_allclose(model.decision_function(X), z)


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


def test_decision_values_that_point_the_wrong_way_give_the_share_of_the_class_and_a_warning():
    X, y = np.linspace(1, -1, 40)[:, None], np.repeat([0, 1, None], [10, 20, 10])
    with pytest.warns(UserWarning, match=r"no better than chance for the classes \[1\]"):
        model = Calibrated(FirstColumn()).fit(X, y)
    assert model.slope_ == 0
    share = (10 * (1 / 12) + 20 * (21 / 22)) / 30  # the mean of Platt's targets
    assert_allclose(model.predict_proba(X)[:, 1], share)
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

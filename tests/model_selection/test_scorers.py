"""Scores of partly labelled rows."""

import pickle

import numpy as np
import pytest
from checks.partly_labeled import MeanRegressor, NearestMean
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.metrics import accuracy_score, get_scorer, make_scorer
from sklearn.model_selection import KFold, cross_val_score, cross_validate
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from kernelweave.labels import is_unlabeled
from kernelweave.model_selection import labeled_scorer


def share_correct(estimator, X, y):
    return float(np.mean(estimator.predict(X) == y))


def weighted_share(estimator, X, y, sample_weight=None):
    return float(np.average(estimator.predict(X) == y, weights=sample_weight))


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


@pytest.fixture
def routed(data):
    """Scores that cross-validation over all rows gives with routed weights, and those by hand."""
    X, y, _ = data
    model, weights, labeled = NearestMean().fit(X, y), np.arange(60.0), y != -1
    right, rows = (model.predict(X) == y)[labeled], np.arange(60)

    def score(model, scoring, name="sample_weight"):
        options = {"cv": [(rows, rows)], "scoring": scoring, "params": {name: weights}, "error_score": "raise"}
        return cross_validate(model, X, y, **options)

    with config_context(enable_metadata_routing=True):
        yield score, np.average(right, weights=weights[labeled]), right.mean()


@pytest.mark.filterwarnings("error")
def test_without_scoring_the_weights_go_where_the_estimators_own_score_request_says(routed):
    score, weighted, plain = routed
    model = NearestMean().set_fit_request(sample_weight=False)
    assert weighted != plain
    for request, expected in ((True, weighted), (False, plain)):
        asked = clone(model).set_score_request(sample_weight=request)
        assert score(asked, labeled_scorer())["test_score"] == [expected]
        if request:  # scikit-learn's pipelines refuse weights that a last step does not want, whatever the scorer
            assert score(make_pipeline(asked), labeled_scorer())["test_score"] == [expected]
        several = {"ours": labeled_scorer(), "accuracy": labeled_scorer("accuracy").set_score_request()}
        scores = score(asked, several)
        assert (scores["test_ours"], scores["test_accuracy"]) == ([expected], [plain])
    for unset in (model, make_pipeline(model)):
        with pytest.raises(UnsetMetadataPassedError, match=r"not requested for NearestMean.score"):
            score(unset, labeled_scorer())


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scoring", [None, "accuracy", accuracy_score, make_scorer(accuracy_score), weighted_share])
def test_a_labeled_scorer_may_request_metadata_itself_whatever_it_scores_with(scoring, routed):
    score, weighted, _ = routed
    model = NearestMean().set_fit_request(sample_weight=False)
    for name, request in (("sample_weight", True), ("importance", "importance")):
        scorer = labeled_scorer(scoring).set_score_request(sample_weight=request)
        if name == "importance":
            model.set_score_request(sample_weight="importance")  # what the scorer says comes first
        assert score(model, pickle.loads(pickle.dumps(scorer)), name)["test_score"] == [weighted]


def test_a_name_that_only_the_estimator_knows_is_warned_of(routed):
    score, _, _ = routed
    model = NearestMean().set_fit_request(sample_weight="importance").set_score_request(sample_weight="importance")
    with pytest.warns(UserWarning, match=r"labeled_scorer\(\).set_score_request\(sample_weight='importance'\)"):
        score(model, labeled_scorer(), "importance")


def test_requests_leave_the_users_scorer_alone_and_need_routing(data):
    X, y, _ = data
    mine = make_scorer(accuracy_score)
    with config_context(enable_metadata_routing=True):
        labeled_scorer(mine).set_score_request(sample_weight=True)
        assert mine.get_metadata_routing().score.requests.get("sample_weight") is None
        theirs = labeled_scorer(mine.set_score_request(sample_weight="importance"))
        assert theirs.get_metadata_routing().score.requests == {"sample_weight": "importance"}
        # called by hand, the weights are meant
        model = NearestMean().fit(X, y)
        weights = np.arange(60.0)
        expected = labeled_scorer("accuracy")(model, X, y, sample_weight=weights)
        assert labeled_scorer()(model, X, y, sample_weight=weights) == expected
    for scoring in (None, "accuracy", share_correct):
        with pytest.raises(RuntimeError, match=r"set_config\(enable_metadata_routing=True\)"):
            labeled_scorer(scoring).set_score_request(sample_weight=True)


def test_bad_scoring_is_refused_with_a_sentence(data):
    X, y, _ = data
    with pytest.raises(ValueError, match="no labelled row to score: all 3 rows"):
        labeled_scorer("accuracy")(NearestMean().fit(X, y), X[-3:], y[-3:])
    with pytest.raises(TypeError, match="scoring must be a scorer name, a scorer, a metric or None, got"):
        labeled_scorer(["accuracy", "roc_auc"])
    with pytest.raises(ValueError, match="'accurate' is not a valid scoring value"):
        labeled_scorer("accurate")

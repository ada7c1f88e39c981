"""Candidates: which there are, what a list of them means, and what they keep in the folds."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from kernelweave import RBF, HarmonicClassifier, Linear, MKLClassifier, RKDAClassifier, SSMKClassifier, TSVMClassifier
from kernelweave.estimators.auto import trees
from kernelweave.estimators.auto.candidates import (
    CHOICES,
    MIN_SEARCH_ROWS,
    configure,
    final_model,
    fix_choices,
    leave_out,
    list_candidates,
    log_score,
    read_candidates,
)

X = np.random.default_rng(0).normal(size=(36, 3)) * [1.0, 5.0, 0.1]
CLASSES = (X[:, 0] + X[:, 1] / 5 > 0).astype(int)
TASKS = {"classes": CLASSES, "numbers": X[:, 0] + 0.1 * X[:, 1]}
EVERY = [(task, each.name) for task in TASKS for each in list_candidates(X, 36, task)]
THIN = sparse.csr_array(X)


def find(task, name, rows=X, n_labeled=36):
    return read_candidates([name], rows, n_labeled, task, "Test")[0]


@pytest.mark.parametrize("task", TASKS)
def test_names_occur_once_and_kernels_are_the_models_with_a_certificate(task):
    everything = read_candidates("all", X, 36, task, "Test")
    names = [each.name for each in everything]
    assert len(set(names)) == len(names)
    kernels = read_candidates("kernels", X, 36, task, "Test")
    assert [each.name for each in kernels] == [each.name for each in everything if each.is_certified]
    assert {"random forest", "gradient boosting"} <= set(names) - {each.name for each in kernels}
    assert any(each.uses_unlabeled for each in kernels)
    assert not all(each.uses_unlabeled for each in kernels)


def test_views_of_dense_rows_are_no_candidates_for_sparse_ones():
    dense, thin = ({each.name for each in list_candidates(rows, 36, "classes")} for rows in (X, THIN))
    assert dense - thin == {"LapSVM, one view", "cluster kernel"}
    assert thin <= dense


def test_linear_models_search_for_their_cost_where_rows_are_enough():
    assert isinstance(find("classes", "logistic regression").estimator[-1], GridSearchCV)
    few = find("classes", "logistic regression", n_labeled=MIN_SEARCH_ROWS - 1).estimator
    assert not isinstance(few[-1], GridSearchCV)


def test_a_list_may_hold_names_estimators_and_pairs():
    found = read_candidates(["RKDA", SVC(), ("mine", SVC(C=3.0)), ("second", "RKDA")], X, 36, "classes", "Test")
    assert [each.name for each in found] == ["RKDA", "SVC", "mine", "second"]
    assert found[3].is_certified
    assert not found[1].is_certified
    assert found[2].estimator.C == 3.0
    semi = read_candidates([SSMKClassifier(), SVC()], X, 36, "classes", "Test")
    assert [each.uses_unlabeled for each in semi] == [True, False]


@pytest.mark.parametrize(
    "given, error, message",
    [
        ("some", ValueError, r"Test got candidates='some'; expected \"all\", \"kernels\", or a list"),
        ([], ValueError, r"Test got candidates=\[\]; expected"),
        (None, ValueError, "Test got candidates=None; expected"),
        (["SVC"], ValueError, "Test has no candidate 'SVC'; it has 'MKL', "),
        ([Ridge()], TypeError, r"Test takes classifiers and the names of its own candidates; got Ridge\(\)"),
        ([SVC], TypeError, "Test takes classifiers"),
        ([3], TypeError, "Test takes classifiers .*; got 3"),
        ([SVC(), SVC(C=2.0)], ValueError, "Test got several candidates called 'SVC'; pass .name, estimator. pairs"),
    ],
)
def test_a_list_that_makes_no_sense_is_refused(given, error, message):
    with pytest.raises(error, match=message):
        read_candidates(given, X, 36, "classes", "Test")


def test_a_classifier_is_no_regressor():
    with pytest.raises(TypeError, match="Test takes regressors"):
        read_candidates([SVC()], X, 36, "numbers", "Test")


def test_log_score_is_the_mean_logarithm_at_the_best_temperature_where_a_class_does_not_occur_too():
    model = LogisticRegression().fit(X, np.arange(36) % 3)
    logs, y = model.predict_log_proba(X), np.zeros(36, dtype=int) + 2
    by_slope = [np.log(np.exp(s * logs)[:, 2] / np.exp(s * logs).sum(axis=1)).mean() for s in 2.0 ** np.arange(-4, 5)]
    assert log_score(model, X, y) == pytest.approx(max(by_slope))


def test_linear_models_keep_a_unit_that_columns_share():
    pixels = np.random.default_rng(0).integers(0, 17, size=(36, 12)).astype(float)
    names = [
        type(read_candidates([name], rows, 36, task, "Test")[0].estimator[0]).__name__
        for name, task in (("logistic regression", "classes"), ("ridge regression", "numbers"))
        for rows in (pixels * np.linspace(0.5, 1.0, 12), pixels * 10.0 ** np.arange(12))
    ]
    assert names == ["BlockScaler", "PowerScaler"] * 2


# What is set from outside


def test_options_fill_what_is_left_open_and_nothing_else():
    given = SVC(random_state=7)
    found = configure(given, random_state=1, class_weight="balanced", kernels=None)
    assert (found.random_state, found.class_weight) == (7, "balanced")
    assert given.class_weight is None  # a copy


def test_options_reach_into_pipelines_and_searches():
    search = GridSearchCV(make_pipeline(StandardScaler(), SVC()), {"svc__C": [1.0, 2.0]})
    found = configure(search, random_state=3, class_weight={0: 2.0})
    assert found.estimator[-1].random_state == 3
    assert found.estimator[-1].class_weight == {0: 2.0}


def test_kernels_are_those_of_candidates_that_have_none():
    library = [RBF(), Linear()]
    assert configure(MKLClassifier(), kernels=library).kernels is library
    assert configure(MKLClassifier(Linear()), kernels=library).kernels == Linear()
    assert configure(HarmonicClassifier(), kernels=library).get_params() == HarmonicClassifier().get_params()


def test_a_prior_of_classes_takes_the_place_of_any_other():
    prior = {0: 0.3, 1: 0.7}
    assert configure(TSVMClassifier(), class_prior=prior).class_prior == prior
    assert configure(TSVMClassifier()).class_prior == TSVMClassifier().class_prior


def test_the_marker_of_unlabelled_rows_is_handed_on_where_it_is_left_open():
    assert configure(SSMKClassifier(), unlabeled=None).unlabeled is None
    assert configure(SSMKClassifier(), unlabeled="?").unlabeled == "?"
    assert configure(SSMKClassifier(), unlabeled="auto").unlabeled == "auto"
    assert configure(SSMKClassifier(unlabeled="x"), unlabeled=None).unlabeled == "x"
    assert configure(SSMKClassifier()).unlabeled == "auto"


# What is fitted in the folds


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("task, name", EVERY)
def test_a_candidate_fits_tiny_data_and_its_choices_are_fixed(task, name, monkeypatch):
    monkeypatch.setattr(trees, "N_FOREST", 10)
    y = TASKS[task]
    fitted = configure(find(task, name).estimator, random_state=0).fit(X, y)
    fixed = fix_choices(fitted, fewest=5)
    assert not isinstance(fixed, GridSearchCV)
    for choice in CHOICES:  # "cv", "auto" and the like are no longer there where the fit has chosen
        if hasattr(fitted, f"{choice}_"):
            assert not isinstance(fixed.get_params()[choice], str) or choice == "weighting"
    again = clone(fixed).fit(X, y)
    model = final_model(fitted)
    assert type(again) is type(model)
    assert (
        np.mean(again.predict(X) == model.predict(X)) > 0.9
        or np.corrcoef(again.predict(X), model.predict(X))[0, 1] > 0.95
    )


def test_a_search_is_fixed_at_its_best_setting():
    search = GridSearchCV(SVC(), {"C": [0.01, 10.0]}, cv=3).fit(X, CLASSES)
    fixed = fix_choices(search, fewest=5)
    assert isinstance(fixed, SVC)
    assert search.best_params_["C"] == fixed.C
    assert not hasattr(fixed, "classes_")
    assert final_model(search) is search.best_estimator_


def test_what_a_model_did_not_choose_stays_as_it_was_given():
    given = RandomForestClassifier(7, random_state=0)
    assert fix_choices(clone(given).fit(X, CLASSES), 5).get_params() == given.get_params()
    rkda = RKDAClassifier(Linear(), ridge=0.1).fit(X, CLASSES)
    assert fix_choices(rkda, 5).ridge == 0.1


def test_of_many_classes_those_are_left_out_that_would_take_too_long():
    known = list_candidates(X, 36, "classes")
    few, nothing = leave_out(known, 200)
    assert few == known
    assert nothing == {}
    many, left = leave_out(known, 1000)
    assert {each.name for each in many} == {"harmonic", "RKDA", "logistic regression"}
    assert set(left) == {each.name for each in known} - {each.name for each in many}
    assert set(left.values()) == {"it would take too long with 1000 classes"}
    named = [each for each in known if each.name == "TSVM"]  # who names one gets it
    assert leave_out(named, 1000) == (named, {})
    numbers = list_candidates(X, 36, "numbers")
    assert leave_out(numbers, 0) == (numbers, {})

"""Trials: hidden labels are hidden, weights arrive, folds keep classes and hold equal rows out together."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import AdaBoostClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading

from kernelweave.estimators.auto.candidates import Candidate
from kernelweave.estimators.auto.trials import (
    MAX_NESTED_LABELS,
    N_FOLDS,
    average_repeats,
    count_fewest,
    fit_candidate,
    fit_hidden,
    group_equal_rows,
    hold_out,
    make_folds,
    outputs,
    weight_arguments,
)
from kernelweave.estimators.shared.sample import Rows, read_as_given
from kernelweave.labels import partition, partition_targets

SEEN = []


class Spy(ClassifierMixin, BaseEstimator):
    """Writes down what it is fitted to; takes labelled rows only."""

    def fit(self, X, y, sample_weight=None):
        SEEN.append((np.asarray(X), np.asarray(y, dtype=object), sample_weight))
        warnings.warn("nobody hears this", stacklevel=1)
        known = [label for label in np.asarray(y, dtype=object) if label is not None]
        self.classes_ = np.unique(np.array(known))
        return self

    def decision_function(self, X):
        return X[:, 0]


class SemiSpy(Spy):
    """Takes unlabelled rows."""

    _takes_unlabeled = True


@pytest.fixture(autouse=True)
def nothing_seen():
    SEEN.clear()


def sample_of(y, X=None, weight=None):
    X = np.column_stack([np.arange(len(y)), np.zeros(len(y))]) * 1.0 if X is None else X
    return read_as_given(Rows(X), partition(y), weight)


def numbers_of(y):
    return read_as_given(Rows(np.arange(len(y) * 2.0).reshape(-1, 2)), partition_targets(y))


LABELS = np.array([None, "a", "b", "a", None, "b", "a", "b", None, "a"], dtype=object)
HELD = np.array([2, 4])  # places among the labelled rows: rows 3 and 6
HIDDEN = [3, 6]


def test_held_out_rows_are_there_without_a_label_where_unlabelled_rows_are_taken():
    sample = sample_of(LABELS)
    fitted = fit_candidate(Candidate("spy", SemiSpy()), SemiSpy(), sample, weighted=False)
    found = hold_out(fitted, sample, HELD, weighted=False)
    (_, everything, _), (X, y, weight) = SEEN
    np.testing.assert_array_equal(everything, LABELS)
    np.testing.assert_array_equal(X, sample.X)
    expected = LABELS.copy()
    expected[HIDDEN] = None
    np.testing.assert_array_equal(y, expected)
    assert weight is None
    np.testing.assert_array_equal(found, sample.X[HIDDEN, 0])


def test_held_out_and_unlabelled_rows_are_absent_where_labels_are_needed():
    sample = sample_of(LABELS)
    fitted = fit_candidate(Candidate("spy", Spy()), Spy(), sample, weighted=False)
    hold_out(fitted, sample, HELD, weighted=False)
    (everything, _, _), (X, y, _) = SEEN
    labeled = [i for i, label in enumerate(LABELS) if label is not None]
    np.testing.assert_array_equal(everything[:, 0], labeled)
    kept = [i for i in labeled if i not in HIDDEN]
    np.testing.assert_array_equal(X[:, 0], kept)
    np.testing.assert_array_equal(y, LABELS[kept])


def test_models_that_read_codes_get_codes():
    rng = np.random.default_rng(0)
    sample = sample_of(LABELS, rng.normal(size=(10, 2)))
    model = fit_hidden(LabelSpreading(), sample, sample.partition.labeled[HELD], weighted=False)
    np.testing.assert_array_equal(model.classes_, [0, 1])
    assert outputs(model, sample.X).shape == (10,)


def test_fits_say_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit_hidden(Spy(), sample_of(LABELS), np.empty(0, dtype=int), weighted=False)


def test_numbers_are_hidden_too():
    sample = numbers_of(np.array([1.0, np.nan, 2.0, 3.0, 5.0]))
    model = fit_hidden(Ridge(), sample, np.array([3]), weighted=False)
    expected = Ridge().fit(sample.X[[0, 2, 4]], [1.0, 2.0, 5.0])
    np.testing.assert_allclose(outputs(model, sample.X), expected.predict(sample.X))


# Weights


def test_weights_of_the_rows_that_are_fitted_arrive():
    weight = np.arange(1.0, 11.0)
    sample = sample_of(LABELS, weight=weight)
    fit_hidden(SemiSpy(), sample, np.array(HIDDEN), weighted=True)
    np.testing.assert_array_equal(SEEN[-1][2], weight)
    fit_hidden(Spy(), sample, np.array(HIDDEN), weighted=True)
    np.testing.assert_array_equal(SEEN[-1][2], SEEN[-1][0][:, 0] + 1)


def test_weights_arrive_in_the_last_step_of_a_pipeline_and_in_a_search():
    weight = np.arange(1.0, 11.0)
    X = np.random.default_rng(0).normal(size=(10, 2))
    y = np.arange(10) % 2
    sample = sample_of(y, X, weight)
    nothing = np.empty(0, dtype=int)
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    plain = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y, logisticregression__sample_weight=weight)
    found = fit_hidden(pipeline, sample, nothing, weighted=True)
    np.testing.assert_allclose(found[-1].coef_, plain[-1].coef_)
    search = GridSearchCV(make_pipeline(StandardScaler(), LogisticRegression()), {"logisticregression__C": [1.0]}, cv=2)
    found = fit_hidden(search, sample, nothing, weighted=True)
    np.testing.assert_allclose(found.best_estimator_[-1].coef_, plain[-1].coef_)
    unweighted = fit_hidden(make_pipeline(StandardScaler(), LogisticRegression()), sample, nothing, weighted=False)
    assert not np.allclose(unweighted[-1].coef_, plain[-1].coef_)


@pytest.mark.parametrize(
    "estimator, expected",
    [
        (LogisticRegression(), ["sample_weight"]),
        (KNeighborsClassifier(), []),
        (make_pipeline(StandardScaler(), GaussianNB()), ["gaussiannb__sample_weight"]),
        (make_pipeline(StandardScaler(), KNeighborsClassifier()), []),
        (GridSearchCV(GaussianNB(), {}), ["sample_weight"]),
        (GridSearchCV(KNeighborsClassifier(), {}), []),
        (AdaBoostClassifier(), ["sample_weight"]),  # whose estimator is None
        (AdaBoostClassifier(make_pipeline(GaussianNB())), ["sample_weight"]),  # which weighs rows by itself
    ],
    ids=repr,
)
def test_weights_are_passed_by_the_name_that_is_taken(estimator, expected):
    assert list(weight_arguments(estimator, np.ones(3))) == expected
    assert weight_arguments(estimator, None) == {}


# What is chosen anew


def test_few_labels_have_their_settings_chosen_anew_in_each_fold():
    search = GridSearchCV(GaussianNB(), {"var_smoothing": [1e-9, 1e-3]}, cv=2)
    rng = np.random.default_rng(0)
    for n, is_nested in ((MAX_NESTED_LABELS, True), (MAX_NESTED_LABELS + 1, False)):
        sample = sample_of(np.arange(n) % 2, rng.normal(size=(n, 2)))
        fitted = fit_candidate(Candidate("search", search), search, sample, weighted=False)
        assert isinstance(fitted.fixed, GridSearchCV) is is_nested
        assert isinstance(fitted.model, GaussianNB)


# Folds


def rng():
    return np.random.default_rng(0)


def test_every_labelled_row_is_held_out_once_and_every_class_stays_in_training():
    y = np.where(np.arange(60) % 3 == 0, None, np.array(["a", "b", "c", "c"], dtype=object)[np.arange(60) % 4])
    sample = sample_of(y)
    codes = sample.partition.codes
    folds = make_folds(sample, None, rng())
    assert len(folds) == N_FOLDS
    np.testing.assert_array_equal(np.sort(np.concatenate(folds)), np.arange(len(codes)))
    for held in folds:
        assert set(np.delete(codes, held)) == {0, 1, 2}


def test_the_only_row_of_a_class_is_never_held_out():
    sample = sample_of(["a"] * 10 + ["b"] * 10 + ["c"])
    held = np.concatenate(make_folds(sample, None, rng()))
    assert 20 not in held
    assert len(held) == 20


def test_folds_of_labels_without_information_state_the_error_of_guessing():
    # Whoever guesses the most frequent class of the other folds is wrong in half of the rows. Where every fold has the
    # shares of all labels, the guess fits the fold: the error is that of the smaller share, 0.41 on average.
    errors = []
    for seed in range(150):
        codes = np.random.default_rng(seed).integers(0, 2, 20)
        folds = make_folds(sample_of(codes), None, np.random.default_rng(seed))
        for held in folds:
            n = np.bincount(np.delete(codes, held))
            errors.append(0.5 if n[0] == n[1] else np.mean(codes[held] != n.argmax()))
    assert abs(np.mean(errors) - 0.5) < 4 * np.std(errors) / np.sqrt(len(errors))


@pytest.mark.parametrize("n_each", [2, 3, 4, 12])
def test_every_fold_leaves_labels_of_each_class(n_each):
    y = np.repeat(np.arange(5), n_each)
    for seed in range(20):
        for held in make_folds(sample_of(y), None, np.random.default_rng(seed)):
            assert np.bincount(np.delete(y, held)).min() >= min(n_each - 1, 2)


def test_other_draws_deal_rows_anew():
    sample = sample_of(np.arange(40) % 2)
    stream = rng()
    first, second = (make_folds(sample, None, stream) for _ in range(2))
    assert any(set(a) != set(b) for a, b in zip(first, second, strict=True))


def test_groups_are_held_out_whole():
    groups = np.arange(40) % 8
    sample = sample_of(np.arange(40) // 4 % 2)
    folds = make_folds(sample, groups, rng())
    held_in = [set(groups[held]) for held in folds]
    assert sum(len(each) for each in held_in) == len(set().union(*held_in))
    np.testing.assert_array_equal(np.sort(np.concatenate(folds)), np.arange(40))


def test_there_are_fewer_folds_where_few_groups_can_be_held_out():
    groups = np.repeat(np.arange(5), 8)
    y = np.where(groups == 4, 2, np.arange(40) % 2)  # the last group holds all of a class
    folds = make_folds(sample_of(y), groups, rng())
    assert len(folds) == 4
    assert sorted(set(groups[np.concatenate(folds)])) == [0, 1, 2, 3]


def test_one_group_cannot_be_held_out():
    assert make_folds(sample_of(np.arange(20) % 2), np.zeros(20, dtype=int), rng()) == []


def test_few_labels_have_no_folds():
    assert make_folds(sample_of(["a", "b", None, "a"]), None, rng()) == []
    assert make_folds(sample_of(["a", "b", "c", "d", "e"]), None, rng()) == []  # nothing can be held out


def test_equal_rows_are_held_out_together_where_many_are_equal():
    distinct = np.random.default_rng(0).normal(size=(25, 2))
    X = np.vstack([distinct, distinct])
    y = np.tile(np.arange(25) % 2, 2)
    for held in make_folds(sample_of(y, X), None, rng()):
        assert all((i + 25) % 50 in held for i in held)


def test_rows_are_not_grouped_where_hardly_any_or_almost_all_are_equal():
    X = np.random.default_rng(0).normal(size=(50, 2))
    assert group_equal_rows(X, np.arange(50)) is None
    assert group_equal_rows(np.repeat(X[:5], 10, axis=0), np.arange(50)) is None
    assert group_equal_rows(sparse.csr_array(X), np.arange(50)) is None


def test_equal_rows_have_one_group_and_unlabelled_rows_one_each():
    distinct = np.random.default_rng(0).normal(size=(30, 2))
    X = np.vstack([distinct, distinct, distinct])
    groups = group_equal_rows(X, np.arange(60))
    np.testing.assert_array_equal(groups[:30], groups[30:60])
    assert len(set(groups)) == 60


def test_numbers_are_dealt_to_folds():
    y = np.where(np.arange(30) % 3 == 0, np.nan, np.arange(30.0))
    folds = make_folds(numbers_of(y), None, rng())
    np.testing.assert_array_equal(np.sort(np.concatenate(folds)), np.arange(20))


def test_the_smallest_class_is_counted():
    assert count_fewest(partition([0, 0, 1, None])) == 1
    assert count_fewest(partition_targets([1.0, 2.0, np.nan])) == 2


def test_repeats_are_averaged_row_by_row():
    values = [
        (np.array([0, 3]), np.array([1.0, 2.0])),
        (np.array([1]), np.array([5.0])),
        (np.array([3, 1]), np.array([4.0, 6.0])),
    ]
    means, places = average_repeats(values, 5)
    assert places.tolist() == [0, 1, 3]
    assert means.tolist() == [1.0, 5.5, 3.0]
    wide = [(held, np.column_stack([found, -found])) for held, found in values]
    np.testing.assert_array_equal(average_repeats(wide, 5)[0], [[1, -1], [5.5, -5.5], [3, -3]])

"""How labels may be written, and which rows have none."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from common.estimators import assert_close, cases, fitted, fitted_fully, labeled_sample, outputs, sample
from sklearn.exceptions import DataConversionWarning

SAME = 1e-9  # the same numbers, whatever the labels are called
NAMES = np.array(["no", "yes"])
# From codes 0 and 1, with -1 for rows without a label, to what a user may write.
COMPLETE = {
    "strings": lambda codes: NAMES[codes],
    "objects": lambda codes: NAMES.astype(object)[codes],
    "booleans": lambda codes: codes == 1,
    "floats": lambda codes: codes + 3.0,
    "a list": lambda codes: codes.tolist(),
    "pandas": lambda codes: pd.Series(codes, index=range(100, 100 + len(codes))),
    "pandas categories": lambda codes: pd.Series(NAMES[codes]).astype("category"),
    "polars": lambda codes: pl.Series(codes),
}
PARTLY = {
    "strings and None": lambda codes: np.where(codes < 0, None, NAMES[codes]),
    "NaN": lambda codes: np.where(codes < 0, np.nan, codes),
    "pandas NA": lambda codes: pd.Series(codes).astype("Int64").mask(codes < 0),
    "pandas strings": lambda codes: pd.Series(NAMES[codes]).astype("string").mask(codes < 0),
    "pandas categories": lambda codes: pd.Series(NAMES[codes]).astype("category").mask(codes < 0),
    "booleans and None": lambda codes: [None if code < 0 else code == 1 for code in codes.tolist()],
    "polars null": lambda codes: pl.Series([None if code < 0 else code for code in codes.tolist()]),
    "a list with -1": lambda codes: codes.tolist(),
    "a float -1": lambda codes: codes.astype(float),
}


def takes_unlabeled(case):
    return not case.needs_labels


def codes_of(y):
    return np.where(np.isnan(y), -1, np.nan_to_num(y)).astype(int)


@cases("classes", "features")
@pytest.mark.parametrize("form", COMPLETE)
def test_labels_of_any_kind_give_the_same_model(case, form):
    X, codes = labeled_sample(case)
    expected, model = fitted_fully(case), case.model().fit(X, COMPLETE[form](codes))
    assert_close(outputs(model, X), outputs(expected, X), SAME)
    if case.task == "classes":
        classes = np.unique(np.asarray(COMPLETE[form](codes))).tolist()
        assert model.classes_.tolist() == classes
        assert [classes.index(label) for label in model.predict(X).tolist()] == expected.predict(X).tolist()
        assert model.score(X, COMPLETE[form](codes)) == expected.score(X, codes)


@cases("classes", "features", where=takes_unlabeled)
@pytest.mark.parametrize("form", PARTLY)
def test_rows_without_a_label_may_be_marked_in_any_way(case, form):
    X, y = sample(case)
    labels = PARTLY[form](codes_of(y))
    model, expected = case.model().fit(X, labels), fitted(case)
    assert_close(outputs(model, X), outputs(expected, X), SAME)
    if case.task == "classes":
        assert model.score(X, labels) == expected.score(X, y)
        codes = {label: code for code, label in enumerate(model.classes_.tolist())}
        assert [codes[label] for label in model.transduction_.tolist()] == expected.transduction_.tolist()


@cases("classes", "features", where=takes_unlabeled)
def test_a_marker_may_be_named(case):
    X, y = sample(case)
    codes = codes_of(y)
    model = case.model(unlabeled="?").fit(X, np.where(codes < 0, "?", NAMES[codes]))
    assert_close(outputs(model, X), outputs(fitted(case), X), SAME)


@cases("numbers", where=takes_unlabeled)
def test_unknown_numbers_are_missing_ones_and_minus_one_is_a_number(case):
    X, y = sample(case)
    for labels in (np.where(np.isnan(y), None, y), pd.Series(y).astype("Float64"), y.tolist(), y[:, None][:, 0]):
        assert_close(case.model().fit(X, labels).predict(X), fitted(case).predict(X), SAME)
    whole = np.where(np.isnan(y), np.nan, np.where(y > 0, 2.0, -1.0))
    model = case.model().fit(X, whole)
    np.testing.assert_array_equal(model.transduction_[:24], whole[:24])


@cases("classes", "numbers", where=takes_unlabeled)
def test_transduction_is_the_given_label_or_the_predicted_one(case):
    X, y = sample(case)
    model = fitted(case)
    known = ~np.isnan(y)
    np.testing.assert_array_equal(model.transduction_[known], y[known])
    if "Harmonic" in case.name:  # which does not predict its own rows: they have their value in the graph
        assert np.isfinite(model.transduction_).all()
    elif case.task == "classes":
        np.testing.assert_array_equal(model.transduction_[~known], model.predict(X)[~known])
    else:
        assert_close(model.transduction_[~known], model.predict(X)[~known], 1e-10)


@cases("classes", "numbers", where=takes_unlabeled)
def test_a_fully_labelled_y_is_learned_as_it_is(case):
    X, y = labeled_sample(case)
    model = fitted_fully(case)
    np.testing.assert_array_equal(model.transduction_, y)
    assert model.score(X, y) > 0.6


@cases("classes", variants=True)
def test_three_classes_are_told_apart(case):
    if getattr(case.estimator, "scatter", None) == "within":
        pytest.skip("is for two classes")
    rng = np.random.default_rng(0)
    truth = np.arange(45) % 3
    X = rng.normal(size=(45, 3)) + 6.0 * np.eye(3)[truth]
    y = truth if case.needs_labels else np.where(np.arange(45) < 24, truth, -1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of equally many labels a class
        model = case.model().fit(X, y)
    assert outputs(model, X).shape == (45, 3)
    np.testing.assert_array_equal(model.classes_, [0, 1, 2])
    np.testing.assert_array_equal(model.predict(X), outputs(model, X).argmax(axis=1))
    assert np.mean(model.predict(X) == truth) > 0.9


@cases("classes")
def test_of_two_classes_the_second_has_the_positive_values(case):
    X, _ = sample(case)
    model = fitted(case)
    if hasattr(model, "decision_function"):
        assert model.decision_function(X).shape == (40,)
        np.testing.assert_array_equal(model.predict(X), model.decision_function(X) > 0)
    else:
        np.testing.assert_array_equal(model.predict(X), model.predict_proba(X).argmax(axis=1))


# -1


@cases("classes", "features", where=takes_unlabeled)
def test_minus_one_beside_one_class_is_a_class_and_said_at_the_line_that_passed_it(case):
    X, codes = labeled_sample(case)
    with pytest.warns(UserWarning, match="y holds only -1 and 1") as caught:
        model = case.model().fit(X, 2 * codes - 1)
    assert [warning.filename for warning in caught] == [__file__]
    assert_close(outputs(model, X), outputs(fitted_fully(case), X), SAME)


@cases("classes", where=lambda case: case.needs_labels)
def test_minus_one_is_a_class_like_any_other_where_all_rows_have_labels(case):
    X, codes = labeled_sample(case)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = case.model().fit(X, 2 * codes - 1)
    assert model.classes_.tolist() == [-1, 1]
    assert_close(outputs(model, X), outputs(fitted(case), X), SAME)
    X, codes = labeled_sample(case, n_classes=3)
    remedy = "(write NaN or None there|use SSMKClassifier)"
    with pytest.warns(UserWarning, match=f"-1 and 2 other classes; {case.name} .* {remedy}") as caught:
        model = case.model().fit(X, codes - 1)
    assert [warning.filename for warning in caught] == [__file__]
    assert model.classes_.tolist() == [-1, 0, 1]


@cases("classes", "features", where=takes_unlabeled)
def test_minus_one_is_a_class_where_missing_labels_occur(case):
    X, y = sample(case)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "The labelled rows have equally many")
        model = case.model().fit(X, 2 * y - 1)
    assert_close(outputs(model, X), outputs(fitted(case), X), SAME)
    if case.task == "classes":
        assert model.classes_.tolist() == [-1, 1]


# Labels that are refused or need a word


@cases("classes", "numbers", where=lambda case: case.refuses_unlabeled)
@pytest.mark.parametrize("form", [list, np.array, pd.Series, lambda y: np.array(y, dtype=object)[:, None]])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
def test_rows_without_a_label_are_refused_with_the_estimator_that_takes_them(case, form):
    X, _ = sample(case)
    other = "SSMKClassifier" if case.task == "classes" else "SSMKRegressor"
    for y, n_unlabeled in (([1.0, None] * 20, 20), ([None] * 40, 40), ([0.0, 1.0, np.nan, 0.0] * 10, 10)):
        model = case.model()
        with pytest.raises(
            ValueError, match=rf"Input y contains NaN: {n_unlabeled} rows .* {case.name} .* use {other}"
        ):
            model.fit(X, form(y))
        assert not hasattr(model, "library_")


@cases("classes", "numbers", "features")
def test_a_column_of_labels_is_taken_and_said_once_at_the_line_that_passed_it(case):
    X, y = labeled_sample(case)
    with pytest.warns(DataConversionWarning, match="column-vector y") as caught:
        column = case.model().fit(X, y[:, None])
    assert [warning.filename for warning in caught] == [__file__]
    assert_close(outputs(column, X), outputs(fitted_fully(case), X), SAME)

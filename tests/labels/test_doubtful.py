"""Warnings about labels that may not mean what the rule reads."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from checks.partly_labeled import NearestMean
from numpy.testing import assert_array_equal

from kernelweave import MKLClassifier, SSMKClassifier
from kernelweave.labels import MISSING, NO_LABEL, find_text_markers, is_unlabeled, labeled_values, partition


def warnings_of(y, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        partition(y, **options)
    return [str(warning.message) for warning in caught]


CONTAINERS = {
    "list": list,
    "array": np.array,
    "objects": lambda y: np.array(y, dtype=object),
    "pandas": pd.Series,
    "pandas string": lambda y: pd.Series(y, dtype="string"),
    "pandas category": lambda y: pd.Series(y, dtype="category"),
    "polars": pl.Series,
}


@pytest.mark.parametrize("make", CONTAINERS.values(), ids=CONTAINERS)
@pytest.mark.parametrize("text", ["nan", "", "?", "NA", "None", "unknown", " N/A ", "Unlabelled", "NaT", "<NA>"])
def test_a_text_that_usually_stands_for_a_missing_label_is_a_class_with_a_warning_of_the_ways_out(text, make):
    y = make(["cat", text, "dog", "cat", text])
    with pytest.warns(UserWarning, match="usually stands for a missing label") as caught:
        part = partition(y)
    assert sorted(part.classes.tolist()) == sorted(["cat", "dog", text])
    assert [warning.filename for warning in caught] == [__file__]
    message = str(caught[0].message)
    assert f"y has the class {text!r}" in message
    assert f"unlabeled={text!r}" in message
    assert "unlabeled=None" in message


def test_the_ways_out_of_the_warning_about_texts_work():
    y = ["cat", "?", "dog", "cat", "?"]
    for marked, options in ((y, {"unlabeled": "?"}), ([None if text == "?" else text for text in y], {})):
        assert not warnings_of(marked, **options)
        assert_array_equal(partition(marked, **options).unlabeled, [1, 4])
    assert not warnings_of(y, unlabeled=None)
    assert partition(y, unlabeled=None).classes.tolist() == ["?", "cat", "dog"]


def test_several_such_texts_are_named_together():
    (message,) = warnings_of(["a", "b", "?", "NA", None])
    assert "the classes '?', 'NA', texts that usually stand" in message
    assert "unlabeled='" not in message  # one marker can be named, not two


def test_ordinary_texts_give_no_warning():
    for y in (["+", "-", "+", "-"], ["no", "yes"], ["negative", "none of these"], ["nano", "inform"], [True, False]):
        assert not warnings_of(y)
    assert find_text_markers(["+", "-", "?"]) == ["?"]
    assert find_text_markers(["-", "x"]) == ["-"]
    assert find_text_markers([3, None, float("nan"), "a"]) == []
    assert set(MISSING) < set(NO_LABEL)
    assert [text for text in NO_LABEL if text != text.lower().strip()] == []


LOST = {
    "thirds": [-1, 0, 1] * 10,
    "few": [-1] * 3 + [0] * 20 + [1] * 20,
    "floats": [-1.0, 0.0, 1.0] * 3,
    "as frequent as the largest class": [-1] * 6 + [0] * 6 + [1] * 2,
    "ratings": [-2, -1, 0, 1, 2] * 4,
    "other negative": [-1, -3, 5] * 4,
}


@pytest.mark.parametrize("make", [np.array, list, pd.Series, pl.Series])
@pytest.mark.parametrize("y", LOST.values(), ids=LOST)
def test_minus_one_that_looks_like_a_class_is_unlabelled_with_a_warning_of_both_ways_out(y, make):
    with pytest.warns(UserWarning, match="y holds -1 beside classes such as") as caught:
        part = partition(make(y))
    assert part.n_unlabeled == y.count(-1)
    assert -1 not in part.classes.tolist()
    assert [warning.filename for warning in caught] == [__file__]
    message = str(caught[0].message)
    assert "unlabeled=None" in message
    assert "unlabeled=-1" in message


def test_the_ways_out_of_the_warning_about_minus_one_work():
    y = np.array(LOST["thirds"])
    assert not warnings_of(y, unlabeled=None)
    assert partition(y, unlabeled=None).classes.tolist() == [-1, 0, 1]
    for marked, options in ((y, {"unlabeled": -1}), (np.where(y == -1, np.nan, y), {})):
        assert not warnings_of(marked, **options)
        assert partition(marked, **options).n_unlabeled == 10


ORDINARY = {
    "most rows": [-1] * 40 + [0] * 5 + [1] * 5,
    "more rows than of any class": [-1] * 11 + [0] * 10 + [1] * 10,
    "three classes": [-1, 0, 1, 2] * 5,
    "one to three": [-1] * 2 + [1, 2, 3] * 5,
    "NaN": [np.nan, 0, 1] * 5,
    "minus one a class": [np.nan, -1, 0, 1] * 5,
    "strings": ["a", -1, "b", "a"],
    "booleans": [True, -1, False, True],
    "fully labelled": [0, 1] * 5,
    "negative, most rows": [-1] * 9 + [-2, 3, -2, 3],
}


@pytest.mark.parametrize("y", ORDINARY.values(), ids=ORDINARY)
def test_ordinary_partly_labelled_rows_give_no_warning(y):
    assert not warnings_of(y)


def test_only_a_partition_warns_not_what_is_asked_beside_it():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for y in (["a", "?", "b"], [-1, 0, 1]):
            is_unlabeled(y)
            labeled_values(y)


def test_a_fit_warns_once_at_the_line_that_called_it():
    X = np.random.default_rng(0).normal(size=(30, 2))
    for y in (np.array(["a", "b", "?"] * 10), np.array([-1, 0, 1] * 10)):
        for model in (NearestMean(), SSMKClassifier()):
            with pytest.warns(UserWarning, match="unlabeled=None") as caught:
                model.fit(X, y)
            doubts = [warning for warning in caught if "unlabeled=None" in str(warning.message)]
            assert len(doubts) == 1
        assert doubts[0].filename == __file__


def test_a_supervised_estimator_warns_too_and_names_a_way_that_it_has():
    X = np.random.default_rng(0).normal(size=(30, 2))
    with pytest.warns(UserWarning, match=r"y has the class '\?', .*; to MKLClassifier all texts are classes") as caught:
        model = MKLClassifier().fit(X, np.array(["a", "b", "?"] * 10))
    assert model.classes_.tolist() == ["?", "a", "b"]
    assert "If unlabelled rows are meant, write NaN or None there." in str(caught[0].message)

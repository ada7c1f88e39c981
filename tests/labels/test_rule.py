"""The rule for unlabelled rows, line by line."""

import datetime
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.exceptions import DataConversionWarning

from kernelweave.labels import factorize, is_unlabeled, labeled_values, partition, partition_targets

NAN, NA, NAT = float("nan"), pd.NA, pd.NaT
A_DAY, ANOTHER_DAY = datetime.datetime(2024, 5, 1), datetime.datetime(2024, 5, 2)


def silent_mask(y, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return is_unlabeled(y, **options).astype(int).tolist()


# Line 1: NaN, None and NA are always unlabelled, whatever holds them.
MISSING = {
    "floats": np.array([0.0, np.nan, 1.0]),
    "half floats": np.array([0, np.nan, 1], dtype=np.float16),
    "list with NaN": [0, NAN, 1],
    "list with None": [0, None, 1],
    "tuple with NA": (0, NA, 1),
    "list with NaT": [A_DAY, NAT, ANOTHER_DAY],
    "list with Decimal": [Decimal(0), Decimal("nan"), Decimal(1)],
    "objects with None": np.array([0, None, 1], dtype=object),
    "objects with NaN": np.array([0, np.nan, 1], dtype=object),
    "dates": np.array(["2024-05-01", "NaT", "2024-05-02"], dtype="datetime64[D]"),
    "masked array": np.ma.masked_array([0, 7, 1], mask=[False, True, False]),
    "list of strings with None": ["a", None, "b"],
    "list of strings with NaN": ["a", NAN, "b"],
    "strings with None": np.array(["a", None, "b"], dtype=object),
    "strings with NA": np.array(["a", NA, "b"], dtype=object),
    "booleans with None": [True, None, False],
    "pandas float": pd.Series([0, np.nan, 1]),
    "pandas Int64": pd.Series([0, None, 1], dtype="Int64"),
    "pandas boolean": pd.Series([True, None, False], dtype="boolean"),
    "pandas object": pd.Series([0, NA, 1], dtype=object),
    "pandas object strings": pd.Series(["a", None, "b"], dtype=object),
    "pandas str": pd.Series(["a", None, "b"]),
    "pandas string": pd.Series(["a", None, "b"], dtype="string"),
    "pandas category": pd.Series(["a", None, "b"], dtype="category"),
    "pandas category of integers": pd.Series([0, None, 1], dtype="Int64").astype("category"),
    "pandas Arrow": pd.Series([0, None, 1], dtype="int64[pyarrow]"),
    "pandas dates": pd.Series(pd.to_datetime(["2024-05-01", None, "2024-05-02"])),
    "pandas Index": pd.Index(["a", None, "b"]),
    "polars integers": pl.Series([0, None, 1]),
    "polars floats with null": pl.Series([0.0, None, 1.0]),
    "polars floats with NaN": pl.Series([0.0, NAN, 1.0]),
    "polars strings": pl.Series(["a", None, "b"]),
    "polars categorical": pl.Series(["a", None, "b"], dtype=pl.Categorical),
    "polars booleans": pl.Series([True, None, False]),
    "Arrow integers": pa.array([0, None, 1]),
    "Arrow strings": pa.array(["a", None, "b"]),
}
if hasattr(np, "dtypes") and hasattr(np.dtypes, "StringDType"):  # NumPy 2
    MISSING["NumPy strings"] = np.array(["a", None, "b"], dtype=np.dtypes.StringDType(na_object=None))


@pytest.mark.parametrize("y", MISSING.values(), ids=MISSING)
def test_nan_none_and_na_are_always_unlabelled(y):
    for unlabeled in ("auto", None, np.nan, "?", -1):
        assert silent_mask(y, unlabeled=unlabeled) == [0, 1, 0]
    part = partition(y)
    assert_array_equal(part.labeled, [0, 2])
    assert part.n_classes == 2


@pytest.mark.parametrize(
    "name",
    [
        *("list with None", "list with NaN", "tuple with NA", "objects with None", "masked array"),
        *("pandas Int64", "pandas category of integers", "pandas Arrow", "polars integers", "Arrow integers"),
    ],
)
def test_integers_beside_missing_values_stay_integers(name):
    assert labeled_values(MISSING[name])[1].dtype.kind == "i"


INTEGER_LIKE = {
    "list": list,
    "int64": np.array,
    "int8": lambda y: np.array(y, dtype=np.int8),
    "whole floats": lambda y: np.array(y, dtype=float),
    "float32": lambda y: np.array(y, dtype=np.float32),
    "object": lambda y: np.array(y, dtype=object),
    "pandas": pd.Series,
    "pandas Int64": lambda y: pd.Series(y, dtype="Int64"),
    "pandas category": lambda y: pd.Series(y, dtype="category"),
    "polars": pl.Series,
}


@pytest.mark.parametrize("make", INTEGER_LIKE.values(), ids=INTEGER_LIKE)
def test_minus_one_is_unlabelled_beside_two_other_classes(make):
    y = make([2, -1, 0, 2, -1])
    assert silent_mask(y) == [0, 1, 0, 0, 1]
    part = partition(y)
    assert_array_equal(part.classes, [0, 2])
    assert_array_equal(part.codes, [1, 0, 1])


def test_minus_one_beside_strings_in_an_object_array_is_unlabelled_as_in_scikit_learn():
    assert silent_mask(["cat", -1, "dog"]) == [0, 1, 0]
    assert partition(np.array(["cat", -1, "dog"], dtype=object)).classes.tolist() == ["cat", "dog"]
    assert silent_mask([True, -1, False]) == [0, 1, 0]
    assert partition([True, -1, False]).classes.dtype == bool


@pytest.mark.parametrize("make", INTEGER_LIKE.values(), ids=INTEGER_LIKE)
def test_minus_one_and_one_other_value_are_two_classes_with_a_warning_of_both_ways_out(make):
    with pytest.warns(UserWarning, match="only -1 and 1") as caught:
        part = partition(make([-1, 1, 1, -1]))
    assert_array_equal(part.classes, [-1, 1])
    assert part.n_unlabeled == 0
    (message,) = [str(warning.message) for warning in caught]
    assert caught[0].filename == __file__
    assert "unlabeled=None" in message
    assert "unlabeled=-1" in message


def test_the_ways_out_that_the_warning_names_work():
    assert silent_mask([-1, 1, 1], unlabeled=None) == [0, 0, 0]
    assert silent_mask([0, 1, 1]) == [0, 0, 0]
    assert silent_mask([-1, 1, 1], unlabeled=-1) == [1, 0, 0]
    assert silent_mask([NAN, 1, 1]) == [1, 0, 0]


@pytest.mark.parametrize("missing", [NAN, None, NA])
def test_minus_one_is_a_class_where_another_marker_occurs(missing):
    for y in ([-1, 1, missing], [-1, 0, 1, missing], np.array([-1, 0, missing], dtype=object)):
        assert silent_mask(y) == [0] * (len(y) - 1) + [1]
        assert partition(y).classes[0] == -1


def test_minus_one_is_a_number_where_y_is_continuous():
    assert silent_mask([-1.0, 0.5, 2.0]) == [0, 0, 0]
    assert_array_equal(partition_targets([-1, 0, 3, None]).targets, [-1, 0, 3])


@pytest.mark.parametrize("y", [np.array(["-1", "a", "b"]), ["-1", "a", "b"], pd.Series(["-1", "a", "b"])])
def test_the_string_minus_one_is_a_class_unless_it_is_named(y):
    assert silent_mask(y) == [0, 0, 0]
    assert silent_mask(y, unlabeled="-1") == [1, 0, 0]


@pytest.mark.parametrize(
    ("y", "marker", "expected"),
    [
        (np.array(["?", "a", "b"]), "?", [1, 0, 0]),
        (["", "a", "b"], "", [1, 0, 0]),
        (["?", "a", None], "?", [1, 0, 1]),
        (pd.Series(["?", "a", NA], dtype="string"), "?", [1, 0, 1]),
        (pl.Series(["?", "a", None]), "?", [1, 0, 1]),
        (np.array([9, -1, 1]), 9, [1, 0, 0]),
        (np.array([9.0, -1.0, np.nan]), 9, [1, 0, 1]),
        (np.array([9, -1, 1]), 9.0, [1, 0, 0]),
        (np.array([9, 0, 1], dtype=np.uint8), -1, [0, 0, 0]),
        ([9, "a", "b"], 9, [1, 0, 0]),
        (np.array([-1, 1, 1]), -1, [1, 0, 0]),
        (np.array([True, False, True]), 1, [0, 0, 0]),
        (np.array([True, False, True]), True, [1, 0, 1]),
        (np.array([0, 1, 2]), "?", [0, 0, 0]),
        (np.array(["a", "b", "c"]), -1, [0, 0, 0]),
        (np.array([-1, 0, 1]), None, [0, 0, 0]),
        (np.array([-1, 0, 1]), NA, [0, 0, 0]),
    ],
)
def test_a_named_marker_and_missing_values_are_unlabelled_and_nothing_else(y, marker, expected):
    assert silent_mask(y, unlabeled=marker) == expected


@pytest.mark.parametrize(
    ("y", "classes", "expected"),
    [
        ([-1, 1, 1], [0, 1], [1, 0, 0]),
        ([-1, 1, 1], [-1, 1], [0, 0, 0]),
        ([-1, 0, 1], [-1, 0, 1], [0, 0, 0]),
        ([-1, -1, -1], [-1, 1], [0, 0, 0]),
        ([-1.0, 1.0, np.nan], [0, 1], [1, 0, 1]),
        ([-1, 5, 1], [0, 1], [1, 0, 0]),
        (["a", -1, "b"], np.array(["a", "b"]), [0, 1, 0]),
        ([True, None, False], np.array([False, True]), [0, 1, 0]),
    ],
)
def test_classes_of_a_fitted_estimator_settle_what_minus_one_is_without_a_warning(y, classes, expected):
    assert silent_mask(y, classes=classes) == expected


@pytest.mark.parametrize(
    "y", [np.array([3, 1, 3]), np.array([3.0, 1.0, 3.0]), np.array(["b", "a", "b"]), np.array([True, False, True])]
)
def test_classes_come_back_sorted_and_as_they_came(y):
    part = partition(y)
    assert part.classes.dtype == y.dtype
    assert_array_equal(part.classes, np.unique(y))
    assert_array_equal(part.classes[part.codes], y)


@pytest.mark.parametrize(
    "y", [np.array([[0.0], [np.nan], [1.0]]), [["a"], [None], ["b"]], pd.DataFrame({"y": ["a", None, "b"]})]
)
def test_a_column_is_flattened_with_scikit_learns_warning(y):
    with pytest.warns(DataConversionWarning, match="column-vector y") as caught:
        assert_array_equal(partition(y).labeled, [0, 2])
    assert [warning.filename for warning in caught] == [__file__]


BAD = {
    "None": (None, "requires y to be passed, but the target y is None"),
    "a string": ("abc", "should be a 1d array"),
    "a number": (3, "should be a 1d array"),
    "a set": ({0, 1}, "should be a 1d array"),
    "two columns": ([[0, 1], [1, 0]], r"shape \(2, 2\)"),
    "ragged": ([[0], [1, 2]], "type list"),
    "sparse": (scipy.sparse.csr_array([[0, 1]]), "sparse matrix"),
    "infinite": ([0.0, 1.0, np.inf], "Input y contains infinity"),
    "infinite beside None": ([0, None, float("-inf")], "Input y contains infinity"),
    "complex": (np.array([1j, 2, 0]), "Complex data not supported"),
    "complex objects": ([1j, None, 0], "type complex"),
    "bytes": (np.array([b"a", b"b"]), r"y.astype\(str\)"),
    "bytes objects": ([b"a", None, b"b"], "Convert bytes to strings"),
    "structured": (np.zeros(3, dtype=[("a", int)]), "structured array"),
    "empty": ([], "no labelled row: all 0 rows"),
    "all NaN": ([NAN, NAN], "no labelled row: all 2 rows"),
    "all None": ([None, NA, NAT], "no labelled row: all 3 rows"),
    "all minus one": (np.array([-1, -1]), "no labelled row"),
    "one class": (np.ones(4), r"only one class, \[1.0\] \(4 rows\)"),
    "one class and NaN": (["a", None, "a"], r"only one class, \['a'\]"),
    "one string and -1": (["a", -1, "a"], r"only one class, \['a'\]"),
    "numbers and strings": ([1, "a", None], "types int, str, which cannot be sorted"),
    "continuous": ([0.5, 1.0, np.nan], "Unknown label type: continuous. y holds 0.5"),
    "continuous beside None": ([0, None, 1.25], "y holds 1.25.*Use a regressor"),
}


@pytest.mark.parametrize(("y", "message"), BAD.values(), ids=BAD)
def test_bad_labels_are_refused_with_a_sentence(y, message):
    with pytest.raises(ValueError, match=message) as caught:
        partition(y)
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize("unlabeled", [["?"], (-1,), np.array(-1), {"a": 1}, b"?"])
def test_a_marker_that_is_not_one_value_is_refused(unlabeled):
    with pytest.raises(TypeError, match="the value that marks unlabelled rows, got"):
        partition([0, 1, 2], unlabeled=unlabeled)


@pytest.mark.parametrize(
    "y",
    [
        np.array([1.5, np.nan, 2.0], dtype=np.float32),
        [1.5, None, 2],
        [Decimal("1.5"), None, Decimal(2)],
        pd.Series([1.5, None, 2.0], dtype="Float64"),
        pl.Series([1.5, None, 2.0]),
    ],
)
def test_targets_are_floats_and_missing_ones_are_unlabelled(y):
    part = partition_targets(y)
    assert part.targets.dtype == np.float64
    assert_array_equal(part.targets, [1.5, 2.0])
    assert_array_equal(part.labeled, [0, 2])
    assert_array_equal(part.unlabeled, [1])


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (["a", "b"], "y holds 'a', but a regressor needs numbers"),
        ([1.0, None, "b"], "y holds 'b'"),
        ([1.0, np.inf], "Input y contains infinity"),
        ([None, NAN], "no labelled row"),
        ([[1.0, 2.0], [3.0, 4.0]], "1d array"),
        (np.array([1j]), "Complex data not supported"),
        (None, "target y is None"),
    ],
)
def test_bad_targets_are_refused_with_a_sentence(y, message):
    with pytest.raises(ValueError, match=message):
        partition_targets(y)


SPANS = {
    "array": np.array([1, "NaT", 2], dtype="timedelta64[D]"),
    "list": [datetime.timedelta(1), None, datetime.timedelta(2)],
    "list of NumPy's": [np.timedelta64(1, "D"), None, np.timedelta64(48, "h")],
    "pandas": pd.Series(pd.to_timedelta([1, None, 2], unit="D")),
    "pandas Arrow": pd.Series(pd.to_timedelta([1, None, 2], unit="D")).astype("duration[s][pyarrow]"),
    "polars": pl.Series([datetime.timedelta(1), None, datetime.timedelta(2)]),
    "Arrow": pa.array([datetime.timedelta(1), None, datetime.timedelta(2)]),
}


@pytest.mark.parametrize("y", SPANS.values(), ids=SPANS)
def test_spans_of_time_are_classes_and_no_targets_until_they_are_counted_as_advised(y):
    assert_array_equal(partition(y).codes, [0, 1])  # as dates are
    for several in (False, True):
        with pytest.raises(ValueError, match=r"y holds .*timedelta.*, but a regressor needs numbers\. Convert"):
            partition_targets(y, several=several)
    seconds = np.asarray(y, "timedelta64[ns]") / np.timedelta64(1, "s")
    assert_array_equal(partition_targets(seconds).targets, [86_400.0, 172_800.0])


def test_a_span_of_time_beside_a_number_is_no_target():
    for other in (1, 1.5):
        with pytest.raises(ValueError, match="Convert y to numbers of seconds"):
            partition_targets([other, np.timedelta64(1, "D"), np.timedelta64(2, "D")])


SEVERAL = {
    "array": np.array([[1.5, -1.0], [NAN, NAN], [2.0, 3.0]]),
    "list": [[1.5, -1], [None, NAN], [2, 3]],
    "pandas": pd.DataFrame({"a": [1.5, None, 2.0], "b": pd.array([-1, None, 3], dtype="Int64")}),
    "polars": pl.DataFrame({"a": [1.5, None, 2.0], "b": [-1, None, 3]}),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_a_row_may_have_several_targets_or_none(name):
    part = partition_targets(SEVERAL[name], several=True)
    assert part.targets.dtype == np.float64
    assert_array_equal(part.targets, [[1.5, -1.0], [2.0, 3.0]])
    assert_array_equal(part.labeled, [0, 2])
    assert_array_equal(part.unlabeled, [1])
    kept = part.restrict([False, True, True])
    assert_array_equal(kept.targets, [[2.0, 3.0]])
    assert_array_equal(kept.labeled, [1])


def test_where_several_targets_are_allowed_one_is_read_as_ever():
    for y in ([1.5, None, 2.0], np.array([-1, 0, 3])):
        one, plain = partition_targets(y, several=True), partition_targets(y)
        assert_array_equal(one.targets, plain.targets)
        assert_array_equal(one.labeled, plain.labeled)
    with pytest.warns(DataConversionWarning):
        assert partition_targets(np.ones((3, 1)), several=True).targets.shape == (3,)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([[1.0, 2.0], [3.0, None]], "1 rows of y, the first of them row 1, have only some of their targets"),
        ([[1.0, "b"], [3.0, 2.0]], "column 1 of y holds 'b', but a regressor needs numbers"),
        ([[1.0, np.inf], [3.0, 2.0]], "Input column 1 of y contains infinity"),
        ([[None, NAN], [None, None]], "no labelled row"),
        ([[[1.0, 2.0]], [[3.0, 4.0]]], "1d array"),
        (None, "target y is None"),
    ],
)
def test_several_bad_targets_are_refused_with_a_sentence(y, message):
    with pytest.raises(ValueError, match=message):
        partition_targets(y, several=True)


def test_regression_reads_auto_as_missing_values_only():
    rows, values = labeled_values([-1, 0, 2, None], regression=True)
    assert_array_equal(rows, [0, 1, 2])
    assert_array_equal(labeled_values([-1, 0, 2], regression=True)[1], [-1, 0, 2])
    assert_array_equal(labeled_values([9, 0, 2], regression=True, unlabeled=9)[0], [1, 2])
    assert values.dtype.kind == "i"


@given(st.lists(st.sampled_from(["a", "b", "c", None, NAN, NA]), min_size=1))
def test_a_partition_puts_y_together_again(y):
    present = [value for value in y if isinstance(value, str)]
    if len(set(present)) < 2:
        with pytest.raises(ValueError, match="labelled row"):
            partition(y)
        return
    part = partition(y)
    assert_array_equal(np.sort(np.concatenate([part.labeled, part.unlabeled])), np.arange(len(y)))
    assert part.classes[part.codes].tolist() == present == [y[row] for row in part.labeled]


@given(st.lists(st.integers(-2, 2), min_size=1))
def test_all_numeric_containers_are_read_alike(y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        masks = [is_unlabeled(make(y)) for make in INTEGER_LIKE.values()]
    for mask in masks[1:]:
        assert_array_equal(mask, masks[0])
    others = set(y) - {-1}
    if len(others) != 1:
        assert_array_equal(masks[0], np.array(y) == -1)
    else:
        assert not masks[0].any()


def test_labels_of_two_types_are_refused_with_advice_that_can_be_followed():
    with pytest.raises(
        ValueError, match=r"types int, str, .* marks the unlabelled rows of y, name it with unlabeled=\.$"
    ):
        partition([0, "a", "b"])
    # supervised estimators have no such parameter
    with pytest.raises(ValueError, match=r"types int, str, .* leave these rows out, or write None there and use"):
        partition([-1, "a", "b"], unlabeled=None)


@given(st.lists(st.text(max_size=2)))
def test_factorize_agrees_with_numpy_unique(values):
    array = np.empty(len(values), dtype=object)
    array[:] = values
    distinct, codes = factorize(array)
    assert distinct.tolist() == sorted(set(values))
    assert distinct[codes].tolist() == values

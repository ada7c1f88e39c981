"""Numbers against another reader of them, Python's decimal, and the same in features and in targets."""

import math
from decimal import Decimal, InvalidOperation

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from kernelweave.labeling import cells
from kernelweave.labeling.numbers import (
    INTEGER_TYPES,
    are_codes,
    as_numbers,
    find_decimal_mark,
    find_number_format,
    find_thousands,
    parse_numbers,
    widen_type,
)
from kernelweave.labeling.target import guess_task


def soup(alphabet, n=3000, longest=7):
    rng, letters = np.random.default_rng(0), np.array(list(alphabet))
    return ["".join(rng.choice(letters, size)) for size in rng.integers(1, longest, n)]


def by_decimal(text):
    """The double nearest to the text, where pandas before 3 may be off by one bit; NaN if it is no finite number."""
    try:
        value = math.nan if "_" in text else float(Decimal(text))  # 1_000 is Python's alone
    except InvalidOperation:
        return math.nan
    return value if math.isfinite(value) else math.nan


@pytest.mark.parametrize("alphabet", ["0123456789", "01239+-.", "0123e+-.", "019 .e\t", "01_x,eE.", "infaINFA+-"])
def test_texts_are_the_numbers_that_decimal_reads(alphabet):
    texts = soup(alphabet)
    assert_array_equal(parse_numbers(texts), [by_decimal(text) for text in texts])
    one_by_one = [parse_numbers([text])[0] for text in texts]
    assert_array_equal(parse_numbers(texts), one_by_one)  # whatever else is in the column


def test_long_digits_take_no_longer_than_their_length():
    """A pattern with two ways to cut digits would try each of 10^12 pairs of cuts."""
    digits = "9" * 10**6
    assert np.isnan(parse_numbers([digits + "x", "." + digits + "x", digits + "." + digits + "x", "x"])).all()
    series = pd.Series(["0" * 5000 + "9007199254740993", "1", "2"], dtype=object)
    assert cells.share_inexact(series, cells.read_numbers(series)) == 1 / 3


def test_a_text_other_than_a_number_changes_no_other_number():
    rng = np.random.default_rng(0)
    texts = [str(v) for v in rng.normal(size=500) * 10.0 ** rng.integers(-300, 300, 500)]
    expected = np.array(texts, dtype=np.float64)
    for others in ([], [""], ["x"], ["1\u00a0"]):
        assert_array_equal(parse_numbers([*texts, *others])[:500], expected)
    with_commas = [text.replace(".", ",") for text in texts]
    assert_array_equal(parse_numbers(with_commas, ","), expected)
    assert_array_equal(parse_numbers([*with_commas, "1.5"], ","), [*expected, math.nan])
    assert as_numbers([*with_commas, "1.5"]) is None


COLUMNS = [
    (["1", "-2.5", "1e3"], [1.0, -2.5, 1000.0]),
    (["3,5", "12,75", "4"], [3.5, 12.75, 4.0]),
    (["3,5", "1,067"], [3.5, 1.067]),  # 3,5 cannot be thousands
    (["0,125", "2,250"], [0.125, 2.25]),
    (["1234,567", "2"], [1234.567, 2.0]),
    (["1,5e3", "2E-1"], [1500.0, 0.2]),
    ([" 3.5", ".5", "5.", "+1E-3"], [3.5, 0.5, 5.0, 0.001]),
    (["999", "1,067"], None),
    (["999", " 1,067 "], None),
    (["1,234,567", "1,5"], None),
    (["999.50", "1,067.25"], None),
    (["1.067,50", "12,75"], None),
    (["1 067", "999"], None),
    (["1'067", "999"], None),
    (["3,5", "2.5"], None),
    (["26_0", "1_1"], None),
    (["1e999", "1"], None),
    (["0x10", "1"], None),
    (["5 mm", "6 mm"], None),
    (["1", "x"], None),
]


@pytest.mark.parametrize("texts, numbers", COLUMNS)
def test_a_column_of_numbers_is_the_same_in_the_target_and_in_the_features(texts, numbers):
    as_target = as_numbers(texts)
    values = cells.read_numbers(pd.Series(texts, dtype=object))
    if values is None:  # commas, or no numbers: a column of text is read by its levels
        levels, codes = cells.factorize_texts(pd.Series(texts, dtype=object))
        kind, form, _ = cells.find_kind(levels, np.bincount(codes[codes >= 0]))
        if kind == "numeric" and len(form) < 2:  # thousands and units are read in features only
            values = cells.read_column(pd.Series(texts, dtype=object), "x", kind, form, "")[0]
    for found in (as_target, values):
        assert (found is None) if numbers is None else (found.tolist() == numbers)


@pytest.mark.parametrize("texts", [["1", "inf"], ["1", "nan"], ["1", ""], ["1", "NA"]])
def test_a_missing_value_is_none_in_a_feature_and_no_number_in_the_target(texts):
    assert as_numbers(texts) is None
    assert_array_equal(cells.read_numbers(pd.Series(texts, dtype=object)), [1.0, math.nan])


CODES = [
    (["01", "12"], True), ([" 01", "12 "], True), (["10", "12"], False), (["0", "1"], False), (["01", "2"], False),
    (["01", "1a"], False), ([], False),
]  # fmt: skip


@pytest.mark.parametrize("texts, expected", CODES)
def test_codes_are_digits_of_equal_width_some_of_which_begin_with_zero(texts, expected):
    assert are_codes(texts) is expected
    series = pd.Series([*texts, ""], dtype=object)
    values = cells.read_numbers(series)
    assert values is None or cells.holds_codes(series, values) is expected


def test_codes_are_classes_as_they_are_levels():
    codes = [f"{7 * i:04d}" for i in range(40)]
    assert guess_task(codes) == "classification"
    assert guess_task([code.lstrip("0") or "0" for code in codes]) == "regression"
    assert cells.find_kind(codes, np.ones(40, dtype=int))[0] == "text"


@pytest.mark.parametrize(
    "labels, first",
    [
        (["999", "1,067", "2,001"], "1,067"),
        (["1,234,567", "1,5"], "1,234,567"),
        (["999.50", "1,067.25"], "1,067.25"),
        (["1.067,50", "12,75"], "1.067,50"),
        (["1 067", "999"], "1 067"),
        (["1'067", "999"], "1'067"),
        (["3,5", "1,067"], None),
        (["1.067", "999"], None),
        (["1,067", "red"], None),
        (["26_0"], None),
    ],
)
def test_marks_between_thousands_are_seen(labels, first):
    assert find_thousands(labels) == first


@pytest.mark.parametrize(
    "labels, form",
    [
        (["1", "22"], ".0f"),
        (["1,5", "22,75"], ".2f"),
        (["0.00000000003"], ".11f"),
        (["3e-11", "2e-11"], ".2e"),
        (["3.2e-11", "2.1234E-11"], ".4E"),
        (["0.00012", "3.25e-05"], ".3g"),
        (["1.2345678901234567890e5"], ".16e"),
    ],
)
def test_the_form_of_numbers_is_that_of_the_column(labels, form):
    assert find_number_format(labels) == form
    mark = find_decimal_mark(labels)
    value = as_numbers(labels)[0]
    assert as_numbers([format(value, form).replace(".", mark)])[0] == pytest.approx(value, rel=1e-2)


@pytest.mark.parametrize("dtype", INTEGER_TYPES)
def test_a_widened_type_is_the_smallest_that_holds_old_and_new_numbers(dtype):
    kept = np.array([0, 3], dtype)
    assert widen_type(kept, [np.iinfo(dtype).min, np.iinfo(dtype).max]) == dtype
    for new in (-1, 2**7, 2**8, 2**31, -(2**31) - 1, 2**63):
        wide = np.iinfo(widen_type(kept, [new]))
        assert wide.min <= new <= wide.max
        holding = [t for t in INTEGER_TYPES if np.iinfo(t).min <= new <= np.iinfo(t).max]
        assert wide.bits == max(min(np.iinfo(t).bits for t in holding), np.iinfo(dtype).bits)
    with pytest.raises(ValueError, match=r"no type holds -1 and 1\.84467e\+19"):
        widen_type(kept, [-1, 2**64 - 1])

"""Cells against another reader of numbers, Python's decimal, and cell by cell."""

import math
from datetime import date
from decimal import Decimal, InvalidOperation

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kernelweave.labeling import cells


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
    assert_array_equal(cells.as_numbers(texts), [by_decimal(text) for text in texts])
    one_by_one = [cells.as_numbers([text])[0] for text in texts]
    assert_array_equal(cells.as_numbers(texts), one_by_one)  # whatever else is in the column


def test_a_text_other_than_a_number_changes_no_bit_of_the_numbers():
    rng = np.random.default_rng(0)
    texts = [str(v) for v in rng.normal(size=500) * 10.0 ** rng.integers(-300, 300, 500)]
    expected = np.array(texts, dtype=np.float64)
    for others in ([], [""], ["x"], ["1\u00a0"]):
        assert_array_equal(cells.as_numbers([*texts, *others])[:500], expected)
    with_commas = [text.replace(".", ",") for text in texts]
    assert_array_equal(cells.as_numbers(with_commas, ","), expected)
    assert np.isnan(cells.as_numbers([*with_commas, "1.5"], ",")).all()


@pytest.mark.parametrize("dtype", ["object", "str", "string", "category"])
def test_a_column_is_of_numbers_if_every_cell_is_one_or_missing(dtype):
    texts = [*map(str, range(2 * cells.HEAD)), " NA ", "-", "inf", None]
    expected = np.r_[np.arange(2.0 * cells.HEAD), [np.nan] * 4]
    found = cells.numbers(pd.Series(texts, dtype=dtype))
    if dtype == "category":  # read by its levels
        assert found is None
    else:
        assert_array_equal(found, expected)
    assert_array_equal(cells.read(pd.Series(texts, dtype=dtype), "x", "numeric", "", ""), expected)
    for row in (5, cells.HEAD + 5):
        for text in ("5 mm", "1e400", "infinity"):
            changed = pd.Series([*texts[:row], text, *texts[row + 1 :]], dtype=dtype)
            assert cells.numbers(changed) is None


@pytest.mark.parametrize("column", [[True, False], ["1", 2], [Decimal(1)], [pd.Timestamp("2024-01-31")]])
def test_what_is_neither_text_nor_numbers_is_no_column_of_numbers(column):
    assert cells.numbers(pd.Series(column)) is None
    assert cells.numbers(pd.Series(column, dtype=object)) is None


def test_levels_give_the_column_back():
    series = pd.Series([" a", "b", "a ", None, "NA", 1, 1.5, "1"], dtype=object)
    levels, codes = cells.texts_and_codes(series)
    assert levels == ["a", "b", "1", "1.5"]
    assert_array_equal(codes, [0, 1, 0, -1, -1, 2, 3, 2])


@pytest.mark.parametrize("texts, expected", [
    (["01", "12"], True), ([" 01", "12 "], True), (["10", "12"], False), (["0", "1"], False), (["01", "2"], False),
    (["01", "1a"], False), ([], False),
])  # fmt: skip
def test_padded_are_digits_of_one_width_some_of_which_begin_with_zero(texts, expected):
    assert cells.zero_padded(texts) is expected
    series = pd.Series([*texts, ""], dtype=object)
    values = cells.numbers(series)
    assert values is None or cells.are_padded(series, values) is expected


def test_whole_numbers_that_no_double_holds_are_counted():
    near_2_to = [2**k + v for k in (50, 53, 54, 60, 63, 80) for v in range(40)]  # 2^53 + 1 becomes 2^53
    texts = [*map(str, near_2_to), *(f"-{n}" for n in near_2_to), "1e20", "100000000000000000000", f"{2**70 + 1}.0", ""]
    lost = [text.lstrip("-").isdigit() and Decimal(float(text)) != Decimal(text) for text in texts]
    series = pd.Series(texts, dtype=object)
    assert cells.share_not_held(series, cells.numbers(series)) == sum(lost) / (len(texts) - 1)
    assert 0 < sum(lost) < len(texts)


@pytest.mark.parametrize("form", [form for form in cells.DATE_FORMS if "%H" not in form])
def test_days_are_those_of_the_calendar_for_all_years(form):
    years = [1000, 1676, 1677, 1678, 1969, 1970, 2024, 2261, 2262, 2263, 9999]
    dates = [date(year, month, day) for year in years for month, day in ((1, 1), (2, 28), (12, 31))]
    texts = [when.strftime("%Y-%m-%d" if form == "ISO8601" else form) for when in dates]
    found = cells.as_days([*texts, "9999-31-31", "31/31/9999"], form)
    assert_array_equal(found[:-2], [(when - date(1970, 1, 1)).days for when in dates])
    assert np.isnan(found[-2:]).all()


def test_instants_with_a_zone_are_days_of_utc():
    found = cells.as_days(["9999-12-30T23:00:00-02:00", "2024-01-31T01:00:00+02:00"], "ISO8601")
    expected = [
        (date(9999, 12, 31) - date(1970, 1, 1)).days + 1 / 24,
        (date(2024, 1, 31) - date(1970, 1, 1)).days - 1 / 24,
    ]
    assert_allclose(found, expected, rtol=1e-15)


WITH_SIGNS = {
    "unit": ["12.3 mm", "37.2°C", "5mg/dl", "-1e5 m", ".5 g", "12 345 km", "3,5 Jahre"],
    "percent sign": ["45%", "+4,5 %"],
    "currency sign": ["€1,034.20", "-$5", "1 034,20 €", "EUR 12", "7 CHF"],
    "comparison sign": ["<0.1", ">= 5", "≤3", "~ 7 mm"],
    "marks between thousands": ["1,034.20", "1.034.200", "1'000.5"],
}
WITHOUT = ["A12", "12 Main Street", "10:30", "2024-01-31", "1-2", "1.2.3", "555 123 456", "007", "%", "<", "USD", "x"]


@pytest.mark.parametrize("sign, text", [(sign, text) for sign, texts in WITH_SIGNS.items() for text in texts])
def test_what_is_beside_a_number_is_named(sign, text):
    found = cells.numbers_with_signs(["1.5", text], np.array([9, 1]))
    assert found.startswith((f"numbers with a {sign}, such as", f"numbers with {sign}, such as"))
    assert f"{text!r}: write " in found
    assert ("no marks between thousands" in found) == (text == "€1,034.20")


@pytest.mark.parametrize("text", WITHOUT)
def test_codes_dates_and_words_are_not_numbers_with_signs(text):
    assert cells.numbers_with_signs([text], np.array([1])) == ""


def test_signs_are_named_where_most_cells_are_numbers_and_units_are_few():
    assert cells.numbers_with_signs(["5 mm", "unknown"], np.array([9, 1])) != ""
    assert cells.numbers_with_signs(["5 mm", "unknown"], np.array([8, 2])) == ""
    assert cells.numbers_with_signs(["12a", "12b", "7c"], np.ones(3, dtype=int)) != ""
    assert cells.numbers_with_signs(["12a", "12b", "7c", "9d"], np.ones(4, dtype=int)) == ""  # numbers of houses

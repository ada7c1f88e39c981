"""The cells of a column, typed or as text."""

from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kernelweave.labeling import cells


@pytest.mark.parametrize("dtype", ["object", "str", "string", "category"])
def test_a_column_is_of_numbers_if_every_cell_is_one_or_missing(dtype):
    texts = [*map(str, range(2 * cells.N_HEAD)), " NA ", "-", "inf", None]
    expected = np.r_[np.arange(2.0 * cells.N_HEAD), [np.nan] * 4]
    found = cells.read_numbers(pd.Series(texts, dtype=dtype))
    if dtype == "category":  # read by its levels
        assert found is None
    else:
        assert_array_equal(found, expected)
    assert_array_equal(cells.read_column(pd.Series(texts, dtype=dtype), "x", "numeric", "", ""), expected)
    for row in (5, cells.N_HEAD + 5):
        for text in ("5 mm", "1e400", "infinity"):
            changed = pd.Series([*texts[:row], text, *texts[row + 1 :]], dtype=dtype)
            assert cells.read_numbers(changed) is None


@pytest.mark.parametrize("column", [[True, False], ["1", 2], [Decimal(1)], [pd.Timestamp("2024-01-31")]])
def test_what_is_neither_text_nor_numbers_is_no_column_of_numbers(column):
    assert cells.read_numbers(pd.Series(column)) is None
    assert cells.read_numbers(pd.Series(column, dtype=object)) is None


@pytest.mark.parametrize("new", [["3", "4"], ["1,234", "5,678"], ["1,5", "12"]])
def test_the_decimal_mark_is_that_of_the_column_learned_from(new):
    """A new table may have no comma in that column, or only commas that could stand between thousands."""
    kind, form, _ = cells.find_kind(["1,5", "2,25", "3"])
    assert (kind, form) == ("numeric", ",")
    expected = [float(text.replace(",", ".")) for text in new]
    assert_array_equal(cells.read_column(pd.Series(new), "x", kind, form, ""), expected)


def test_levels_give_the_column_back():
    series = pd.Series([" a", "b", "a ", None, "NA", 1, 1.5, "1"], dtype=object)
    levels, codes = cells.factorize_texts(series)
    assert levels == ["a", "b", "1", "1.5"]
    assert_array_equal(codes, [0, 1, 0, -1, -1, 2, 3, 2])


def test_whole_numbers_that_no_double_holds_are_counted():
    near_2_to = [2**k + v for k in (50, 53, 54, 60, 63, 80) for v in range(40)]  # 2^53 + 1 becomes 2^53
    texts = [*map(str, near_2_to), *(f"-{n}" for n in near_2_to), "1e20", "100000000000000000000", f"{2**70 + 1}.0", ""]
    lost = [text.lstrip("-").isdigit() and Decimal(float(text)) != Decimal(text) for text in texts]
    series = pd.Series(texts, dtype=object)
    assert cells.share_inexact(series, cells.read_numbers(series)) == sum(lost) / (len(texts) - 1)
    assert 0 < sum(lost) < len(texts)


@pytest.mark.parametrize("form", [form for form in cells.DATE_FORMS if "%H" not in form])
def test_days_are_those_of_the_calendar_for_all_years(form):
    years = [1000, 1676, 1677, 1678, 1969, 1970, 2024, 2261, 2262, 2263, 9999]
    dates = [date(year, month, day) for year in years for month, day in ((1, 1), (2, 28), (12, 31))]
    texts = [when.strftime("%Y-%m-%d" if form == "ISO8601" else form) for when in dates]
    found = cells.parse_days([*texts, "9999-31-31", "31/31/9999"], form)
    assert_array_equal(found[:-2], [(when - date(1970, 1, 1)).days for when in dates])
    assert np.isnan(found[-2:]).all()


def test_instants_with_a_zone_are_days_of_utc():
    found = cells.parse_days(["9999-12-30T23:00:00-02:00", "2024-01-31T01:00:00+02:00"], "ISO8601")
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
    "marks between thousands": ["1,034.20", "1.034.200", "1'000.5", "1’000"],
}
WITHOUT = ["A12", "12 Main Street", "10:30", "2024-01-31", "1-2", "1.2.3", "555 123 456", "007", "%", "<", "USD", "x"]


@pytest.mark.parametrize("sign, text", [(sign, text) for sign, texts in WITH_SIGNS.items() for text in texts])
def test_what_is_beside_a_number_is_named(sign, text):
    found = cells.describe_signs(["1.5", text], np.array([9, 1]))
    assert found.startswith((f"numbers with a {sign}, such as", f"numbers with {sign}, such as"))
    assert f"{text!r}: write " in found
    assert ("no marks between thousands" in found) == (text == "€1,034.20")


@pytest.mark.parametrize("text", WITHOUT)
def test_codes_dates_and_words_are_not_numbers_with_signs(text):
    assert cells.describe_signs([text], np.array([1])) == ""


def test_signs_are_named_where_most_cells_are_numbers_and_units_are_few():
    assert cells.describe_signs(["5 mm", "unknown"], np.array([9, 1])) != ""
    assert cells.describe_signs(["5 mm", "unknown"], np.array([8, 2])) == ""
    assert cells.describe_signs(["12a", "12b", "7c"], np.ones(3, dtype=int)) != ""
    assert cells.describe_signs(["12a", "12b", "7c", "9d"], np.ones(4, dtype=int)) == ""  # numbers of houses

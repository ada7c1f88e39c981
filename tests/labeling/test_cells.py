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
    assert_array_equal(cells.read_column(pd.Series(texts, dtype=dtype), "x", "numeric", "", "")[0], expected)
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
    kind, form, _ = cells.find_kind(["1,5", "2,25", "3"], np.ones(3, dtype=int))
    assert (kind, form) == ("numeric", ",")
    expected = [float(text.replace(",", ".")) for text in new]
    assert_array_equal(cells.read_column(pd.Series(new), "x", kind, form, "")[0], expected)


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


NUMBERS = [str(v / 8) for v in range(20)]
STRAY = ["#N/A", "#DIV/0!", ".", "-", "unknown", "n/a", "(3.5)", "oops", "1,5 or 2", "<0.1"]


@pytest.mark.parametrize("stray", STRAY)
def test_one_stray_cell_among_numbers_is_a_gap_and_is_named(stray):
    series = pd.Series([*NUMBERS, stray], dtype=object)
    levels, codes = cells.factorize_texts(series)
    reading = cells.find_kind(levels, np.bincount(codes[codes >= 0]))
    assert (reading.kind, reading.form) == ("numeric", "")
    values, gaps = cells.read_column(series, "x", "numeric", "", "")
    assert_array_equal(values, [*map(float, NUMBERS), np.nan])
    assert gaps == ({} if stray in ("-", "n/a") else {stray: 1})  # these two are missing values anywhere


@pytest.mark.parametrize(
    "cells_of_column, kind, form, gaps",
    [
        ([*(f"{v:.3f}" for v in range(1, 30)), "bad"], "numeric", "", ["bad"]),  # three digits are no thousands
        (["$38,364", "$999", "$1,200", "$7", "$8", "free"], "numeric", ".,$", ["free"]),
        (["12 kg", "7.5 kg", "8 kg", "9 kg", "10 kg", "11"], "numeric", ".-kg", ["11"]),
        (["95.6%", "4%"], "numeric", ".-%", []),
        (["1.234,56", "12,5"], "numeric", ",.", []),
        (["2024-01-31", "2023-02-28", "2023-03-01", "2022-01-01", "soon", "unk"], "date", "ISO8601", ["soon", "unk"]),
        (["31/01/2024", "01/02/2024", "03/04/2024", "05/06/2024"], "date", "%d/%m/%Y", []),
        (["09:30", "23:59", "00:01", "12:00", "noon"], "time of day", "", ["noon"]),
        (["9:30", "36:15", "2 h 5 min", "1:00"], "duration", "h:m", []),
        (["59:30", "1:02:10", "45:00"], "duration", "m:s", []),
        (["2 days", "1 day", "5 days", "7 days", "3 days"], "duration", "h:m", []),
        (["2 days", "1 day", "5 days", "0", "7 days"], "duration", "h:m", []),
        (["2 days", "4 days", "5 days"], "numeric", ".-days", []),
        (["$1,200.50", "($38,364.00)", "$7"], "numeric", ".,$", []),
        (["1.5", "\u22122.5", "\u22120.5"], "numeric", "", []),
        (["red", "green", "unknown"], "text", "", []),
        (["5 mm", "6 kg", "7 s"], "text", "", []),
        (["01067", "50667", "10115", "99084", "SW1A"], "text", "", []),
        (["unknown", "#N/A"], "text", "", []),
    ],
)  # fmt: skip
def test_what_people_write_is_read_where_cells_agree(cells_of_column, kind, form, gaps):
    reading = cells.find_kind(cells_of_column, np.ones(len(cells_of_column), dtype=int))
    assert (reading.kind, reading.form) == (kind, form)
    unread = [] if reading.values is None else np.array(cells_of_column)[np.isnan(reading.values)]
    assert list(unread) == gaps


def test_stray_cells_are_gaps_while_they_are_few():
    def kind(n_other):
        return cells.find_kind(["1.5", "2.5", "bad"], np.array([50, 50 - n_other, n_other])).kind

    assert [kind(n) for n in (1, 5, 6, 30)] == ["numeric", "numeric", "text", "text"]
    assert cells.find_kind(["1.5", "2.5", "unknown"], np.array([2, 1, 60])).kind == "numeric"
    assert cells.find_kind(["1.5", "bad"], np.array([3, 1])).kind == "text"


WORDS = [f"not yet {k:c}{m:c}" for k in range(97, 107) for m in range(97, 103)]  # 60 of them
REMARKS = [f"see note {k}" for k in range(60)]
DATES = [f"20{k // 28:02d}-{k // 3 % 12 + 1:02d}-{k % 28 + 1:02d}" for k in range(2000)]
TIMES = [f"{k // 60 % 24:02d}:{k % 60:02d}" for k in range(1440)]


@pytest.mark.parametrize("odd", [WORDS, REMARKS])
@pytest.mark.parametrize(
    "texts, n_each, kind",
    [
        ([f"{k / 8}" for k in range(2000)], 1, "numeric"),
        ([f"${k / 8:.2f}" for k in range(2000)], 1, "numeric"),
        (["1", "2", "3"], 700, "numeric"),  # fewer texts than those that are odd
        (DATES, 1, "date"),
        (TIMES, 1, "time of day"),
    ],
)
def test_what_a_column_is_does_not_depend_on_where_its_odd_cells_are(texts, n_each, kind, odd):
    levels, counts = [*odd, *texts], np.r_[np.ones(60, dtype=int), np.full(len(texts), n_each)]
    first = cells.find_kind(levels, counts)
    last = cells.find_kind(levels[::-1], counts[::-1])
    assert (first.kind, first.form) == (last.kind, last.form)
    assert first.kind == kind
    assert_array_equal(first.values, last.values[::-1])
    assert np.isnan(first.values).sum() == 60


def test_a_new_table_is_read_in_the_form_that_was_learned_and_another_one_is_refused():
    def read(texts, form):
        return cells.read_column(pd.Series(texts, dtype=object), "x", "numeric", form, "")[0].tolist()

    assert read(["$1,000", "$5"], ".,$") == [1000.0, 5.0]
    assert read(["1.234", "5"], ",.") == [1234.0, 5.0]
    assert read(["1234.5", "5"], ".,") == [1234.5, 5.0]
    assert cells.read_column(pd.Series([1.5, 2.0]), "x", "numeric", ".-kg", "")[0].tolist() == [1.5, 2.0]
    assert np.isnan(read(["unknown", "#N/A"], "")).all()
    with pytest.raises(ValueError, match=r"Column 'x' was numeric \(in kg\) .* and here it holds '5'"):
        read(["5", "6"], ".-kg")
    with pytest.raises(
        ValueError, match="reads the column 'x' as 'colour', which this version of kernelweave does not"
    ):
        cells.read_column(pd.Series(["red"]), "x", "colour", "", "")

"""Numbers with marks, currencies and units: read where cells agree, and advised on where they do not."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from kernelweave.labeling.number_forms import describe_form, describe_signs, find_number_form, parse_form, unit_of

FORMS = [
    (["1", "2.5"], "", [1, 2.5]),
    (["1,5", "2,25"], ",", [1.5, 2.25]),
    (["$38,364", "-$5", "$1,234,567.50"], ".,$", [38364, -5, 1234567.5]),
    (["($1,200.50)", "$7", "(5 $)"], ".,$", [-1200.5, 7, -5]),
    (["\u22122.5 kg", "3 kg"], ".-kg", [-2.5, 3]),
    (["€38.364", "€5"], ",.€", [38364, 5]),  # amounts have two decimals, not three
    (["38.364,50 €", "7 €"], ",.€", [38364.5, 7]),
    (["EUR 12.50", "EUR 7"], ".-EUR", [12.5, 7]),
    (["12 kg", "7.25kg", "+.5 kg"], ".-kg", [12, 7.25, 0.5]),
    (["3,5 Jahre", "4 Jahre"], ",-Jahre", [3.5, 4]),
    (["95.6%", "4 %"], ".-%", [95.6, 4]),
    (["-1e5 m", "2 m"], ".-m", [-1e5, 2]),
    (["1.234,56", "12,5"], ",.", [1234.56, 12.5]),
    (["1,234.56", "999.5"], ".,", [1234.56, 999.5]),
    (["1,234,567", "999"], ".,", [1234567, 999]),
    (["1.234.567", "1.234"], ",.", [1234567, 1234]),
    (["1'234.5", "7"], ".'", [1234.5, 7]),
    (["1\u202f234,5", "7"], ",\u202f", [1234.5, 7]),
    (["1 234", "7", "1 234 567"], ". ", [1234, 7, 1234567]),
]


@pytest.mark.parametrize("texts, form, numbers", FORMS)
def test_numbers_are_read_where_cells_agree(texts, form, numbers):
    assert find_number_form(texts, np.ones(len(texts), dtype=int)) == form
    assert_array_equal(parse_form(texts, form), numbers)


@pytest.mark.parametrize(
    "texts",
    [
        ["999", "1,067"],  # thousands or decimals
        ["1,067 kg", "2,500 kg"],
        ["555 123 456", "555 123 457"],  # telephone numbers
        ["0012X", "0100X"],  # codes
        ["red", "green"],
        ["9" * 100_000],
        ["1 " * 50_000],
    ],
)
def test_where_two_readings_are_left_or_none_there_is_no_form(texts):
    assert find_number_form(texts, np.ones(len(texts), dtype=int)) is None


DECIMALS = [f"{1 + k % 9}.{101 + 7 * k}" for k in range(99)]
WITH_COMMA = [text.replace(".", ",") for text in DECIMALS]
BELOW_ONE = [f"0,{text[2:]}" for text in DECIMALS]


@pytest.mark.parametrize(
    "texts, form, gaps",
    [
        *(([*DECIMALS, odd], "", [odd]) for odd in ("12,5", "1,234", "1.234,5", "1.234.567", "1.2.3")),
        ([*DECIMALS[:60], *map(str, range(30)), "5,00"], "", ["5,00"]),
        ([*(f"{text} kg" for text in DECIMALS), "12,5 kg"], ".-kg", ["12,5 kg"]),
        ([*(f"{text}%" for text in DECIMALS), "12,5%"], ".-%", ["12,5%"]),
        *(([*BELOW_ONE, odd], ",", [odd]) for odd in ("1.5", "1.234")),
        ([*WITH_COMMA, "0,500", "12.75"], ",", ["12.75"]),
        ([*DECIMALS, "1,234.5"], ".,", []),  # changes no other cell
        ([*BELOW_ONE, "1.234,5"], ",.", []),
        ([*DECIMALS, "1.234.567", "12.345.678"], ",.", []),  # several cells can be nothing but thousands
        ([*WITH_COMMA, "1,234,567", "12,345,678"], ".,", []),
        ([*DECIMALS, "1.234.567", "1,234,567"], "", ["1.234.567", "1,234,567"]),
        ([*WITH_COMMA, "1,234,567"], ".,", []),  # without it nothing decides
        ([*(f"${text}" for text in WITH_COMMA), "$1.5"], ".,$", []),  # amounts have two decimals, not three
    ],
)  # fmt: skip
def test_a_few_odd_cells_do_not_turn_decimals_into_thousands(texts, form, gaps):
    for counts in (np.ones(len(texts), dtype=int), np.full(len(texts), 3)):
        assert find_number_form(texts, counts) == form
    assert [text for text, value in zip(texts, parse_form(texts, form), strict=True) if np.isnan(value)] == gaps


def test_an_odd_cell_does_not_decide_between_thousands_and_decimals():
    once = np.ones(100, dtype=int)
    assert find_number_form(WITH_COMMA, once[1:]) is None
    assert find_number_form([*WITH_COMMA, "1.5"], once) is None
    many = [*WITH_COMMA[:80], *(f"{k}.5" for k in range(20))]
    assert find_number_form(many, once) == ".,"


def test_a_form_is_found_behind_any_number_of_other_texts():
    levels = [*(f"word {k}" for k in range(1500)), *(f"${k}" for k in range(1500))]
    counts = np.r_[np.ones(1500, dtype=int), np.full(1500, 100)]
    assert find_number_form(levels, counts) == find_number_form(levels[::-1], counts[::-1]) == ".-$"
    signed = [*(f"word {k}" for k in range(1500)), *(f"<{k}" for k in range(1500))]
    assert describe_signs(signed, counts) == describe_signs(signed[::-1], counts[::-1]) != ""


def test_the_unit_is_that_of_most_cells_and_others_are_no_numbers_of_this_form():
    form = find_number_form(["12 kg", "7 kg", "500 g", "5"], np.array([5, 5, 1, 1]))
    assert (form, unit_of(form)) == (".-kg", "kg")
    assert_array_equal(parse_form(["12 kg", "500 g", "5", "$5 kg", "--5 kg", "1,2 kg"], form), [12, *[np.nan] * 5])


@pytest.mark.parametrize("texts, form", [(["5%", "0", "12.5%", "0.0", "0"], ".-%"), (["0", "0", "0", "$5"], ".-$")])
def test_a_zero_needs_no_unit(texts, form):
    assert find_number_form(texts, np.ones(len(texts), dtype=int)) == form
    expected = [float(text.strip("$%")) for text in texts]
    assert_array_equal(parse_form(texts, form), expected)
    assert np.isnan(parse_form(["5", "0 kg", "-", "00"], form)[:3]).all()
    assert find_number_form(["0", "0"], np.ones(2, dtype=int)) == ""


def test_of_two_units_with_as_many_cells_each_the_plain_one_is_taken_in_any_order():
    for texts in (["7", "5 kg"], ["5 kg", "7"]):
        assert find_number_form(texts, np.ones(2, dtype=int)) == ""


def test_a_form_is_described_in_words():
    assert describe_form(",.€") == "in €, '.' between thousands, decimal comma"
    assert describe_form(".-kg") == "in kg"
    assert describe_form("") == ""


WITH_SIGNS = {
    "unit in some cells": ["12.3 mm", "37.2°C", "5mg/dl", "-1e5 m", ".5 g", "12 345 km", "3,5 Jahre"],
    "percent sign in some cells": ["45%", "+4,5 %"],
    "currency sign in some cells": ["€1,034.20", "-$5", "1 034,20 €", "EUR 12", "7 CHF"],
    "comparison sign": ["<0.1", ">= 5", "≤3", "~ 7 mm"],
    "marks between thousands": ["1.034.200", "1'000.5", "1’000"],
}
WITHOUT = ["A12", "12 Main Street", "10:30", "2024-01-31", "1-2", "1.2.3", "555 123 456", "007", "%", "<", "USD", "x"]


@pytest.mark.parametrize("sign, text", [(sign, text) for sign, texts in WITH_SIGNS.items() for text in texts])
def test_what_is_beside_a_number_is_named(sign, text):
    found = describe_signs(["1.5", text], np.array([9, 1]))
    assert found.startswith((f"numbers with a {sign}, such as", f"numbers with {sign}, such as"))
    assert f"{text!r}: write " in found


@pytest.mark.parametrize("text", WITHOUT)
def test_codes_dates_and_words_are_not_numbers_with_signs(text):
    assert describe_signs([text], np.array([1])) == ""


def test_signs_are_named_where_most_cells_are_numbers_and_units_are_few():
    assert describe_signs(["5 mm", "unknown"], np.array([9, 1])) != ""
    assert describe_signs(["5 mm", "unknown"], np.array([8, 2])) == ""
    assert describe_signs(["12a", "12b", "7c"], np.ones(3, dtype=int)) != ""
    assert describe_signs(["12a", "12b", "7c", "9d"], np.ones(4, dtype=int)) == ""  # numbers of houses


def test_three_decimals_are_not_called_thousands():
    assert describe_signs(["1.234", "2.345", "x"], np.array([9, 9, 1])) == ""
    assert "may separate thousands or decimals" in describe_signs(["1,234", "2,345"], np.array([9, 9]))

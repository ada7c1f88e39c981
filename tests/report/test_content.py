"""Plain data of a page: cells are short, records become lines."""

import numpy as np
import pytest

from kernelweave.report.content import MAX_CHARACTERS, MAX_NARROW, MAX_SHORT, Share, Table, format_cell, tabulate


def test_a_long_cell_is_cut():
    assert len(format_cell("x" * 1000)) == MAX_CHARACTERS


@pytest.mark.parametrize(
    "cell, text",
    [(np.nan, "–"), (1e-12, "1e-12"), (123456.0, "123500"), (1.5e9, "1.5e+09"), (7, "7"), (False, "no"), (None, "")],
)
def test_cells_are_short(cell, text):
    assert format_cell(cell) == text


def test_records_become_lines_with_python_numbers():
    table = tabulate("c", [{"a": np.float64(0.5), "b": np.bool_(True)}, {"a": 2}], {"a": "A", "b": "B"})
    assert table.head == ("A", "B")
    assert table.lines == ((0.5, True), (2, None))


def test_shares_are_numbers_that_are_shown_as_percentages():
    table = tabulate("c", [{"a": 0.0366, "b": 1}, {"a": np.nan, "b": 2}], {"a": "A", "b": "B"}, shares=("a",))
    assert table.shown == (("3.7 %", "1"), ("–", "2"))
    assert table.is_number == (True, True)
    assert isinstance(table.lines[0][0], Share)


def test_long_texts_many_columns_and_many_lines_are_told_to_the_page():
    table = Table("c", ("a", "b", "c"), (("a" * 30, "short", 1.0), ("a", "b", 2.0)))
    assert table.is_wordy == (True, False, False)
    assert (table.is_wide, table.is_short) == (False, True)
    assert Table("c", ("a",) * (MAX_NARROW + 1), ()).is_wide
    assert not Table("c", ("a",), (("a",),) * (MAX_SHORT + 1)).is_short


def test_numbers_of_a_column_have_the_same_decimals_unless_their_sizes_differ_much():
    lines = (("a", 1.4712, 1e-5, None), ("b", 2.5, 2.5, True), ("c", float("nan"), 3.0, 4.0))
    table = Table("numbers", ("name", "error", "gap", "mixed"), lines)
    assert table.shown == (("a", "1.471", "1e-05", ""), ("b", "2.500", "2.5", "yes"), ("c", "–", "3", "4"))
    assert Table("none", ("name",), ()).shown == ()

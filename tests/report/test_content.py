"""Plain data of a page: cells are short, records become lines."""

import numpy as np
import pytest

from kernelweave.report.content import MAX_CHARACTERS, format_cell, tabulate


def test_a_long_cell_is_cut():
    assert len(format_cell("x" * 1000)) == MAX_CHARACTERS


@pytest.mark.parametrize(
    "cell, text",
    [(np.nan, "–"), (1e-12, "1e-12"), (123456.0, "123456"), (1.5e9, "1.5e+09"), (7, "7"), (False, "no"), (None, "")],
)
def test_cells_are_short(cell, text):
    assert format_cell(cell) == text


def test_records_become_lines_with_python_numbers():
    table = tabulate("c", [{"a": np.float64(0.5), "b": np.bool_(True)}, {"a": 2}], {"a": "A", "b": "B"})
    assert table.head == ("A", "B")
    assert table.lines == ((0.5, True), (2, None))

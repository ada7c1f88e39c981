"""Tables that a fit keeps: a list of records, or numbers by name, which a notebook shows as a table.

They are a list and a dict like any other, so that whatever reads, compares, pickles or saves these goes on to do so.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from ...short_text import cut_text

MAX_SHOWN = 40  # rows of a table in a notebook; of more the first and the last are shown
MAX_TEXT = 80  # characters of a cell
MAX_TITLE = 500  # characters of a cell that the pointer is on
DIGITS = 4


class Records(list[dict[str, Any]]):
    """A list of dicts, one for each row of a table.

    Examples
    --------
    >>> from kernelweave.estimators.shared.records import Records
    >>> records = Records([{"name": "narrow", "weight": 0.25}, {"name": "wide", "weight": 0.75}])
    >>> records[0]["name"], records.to_frame().shape
    ('narrow', (2, 2))
    """

    def to_frame(self) -> Any:
        """Return the table as a pandas frame, one column for each key."""
        return make_frame(self)

    def _repr_html_(self) -> str:
        return html_table(self)


class NamedNumbers(dict[str, float]):
    """A dict of numbers by name: a table of two columns.

    Examples
    --------
    >>> from kernelweave.estimators.shared.records import NamedNumbers
    >>> NamedNumbers({"genes": 0.75, "clinic": 0.25}).to_frame()
         name   weight
    0   genes     0.75
    1  clinic     0.25
    """

    def to_frame(self) -> Any:
        """Return the table as a pandas frame with the columns ``name`` and ``weight``."""
        return make_frame(self._rows())

    def _repr_html_(self) -> str:
        return html_table(self._rows())

    def _rows(self) -> list[dict[str, Any]]:
        return [{"name": name, "weight": value} for name, value in self.items()]


def make_frame(records: Iterable[Mapping[str, Any]]) -> Any:
    """Return records as a pandas frame; where pandas is missing, say how to install it."""
    try:
        import pandas as pd
    except ImportError:
        raise ImportError("Frames need pandas: pip install pandas, or 'kernelweave[cli]'") from None
    return pd.DataFrame(list(records))


def html_table(records: Sequence[Mapping[str, Any]], *, classes: str = "kernelweave-table") -> str:
    """Return records as a table of HTML; all that comes from outside is escaped, long tables are cut in the middle."""
    columns = list(dict.fromkeys(key for record in records for key in record))
    rows = [_write_row(record, columns) for record in _cut(records)]
    if len(records) > MAX_SHOWN:
        left_out = len(records) - MAX_SHOWN
        note = f'<tr><td colspan="{len(columns)}">… {left_out:,} more rows …</td></tr>'
        rows.insert(MAX_SHOWN // 2, note)
    head = "".join(
        f'<th scope="col"{_align(next((r[column] for r in records if column in r), ""))}>{escape(str(column))}</th>'
        for column in columns
    )
    return f'<table class="{classes}"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table>'


def _cut(records: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    if len(records) <= MAX_SHOWN:
        return list(records)
    half = MAX_SHOWN // 2
    return [*records[:half], *records[len(records) - half :]]


def _write_row(record: Mapping[str, Any], columns: Sequence[str]) -> str:
    cells = []
    for column in columns:
        value = record.get(column, "")
        shown = format_cell(value)
        whole = f' title="{escape(cut_text(str(value), MAX_TITLE))}"' if "…" in shown else ""
        cells.append(f"<td{_align(value)}{whole}>{escape(shown)}</td>")
    return f"<tr>{''.join(cells)}</tr>"


def format_cell(value: Any) -> str:
    """Return a value as a short text on one line: numbers with few digits, long texts without their middle."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return f"{value:.{DIGITS}g}"
    return cut_text(str(value), MAX_TEXT)


def _align(value: Any) -> str:
    is_number = isinstance(value, numbers.Number) and not isinstance(value, bool)
    return f' style="text-align: {"right" if is_number else "left"}"'

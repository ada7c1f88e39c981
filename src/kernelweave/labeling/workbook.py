"""An Excel workbook (.xlsx): its first sheet is read as a text table, and the copy is CSV."""

from __future__ import annotations

import csv
import io
import warnings
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError

from ..errors import ErrorCode, KernelweaveError
from ..estimators.shared.memory import free_memory
from ..files import reason
from ..short_text import cut_text
from .archives import BROKEN_ZIP, UNPACKED_SHARE, require_room
from .base import require_package
from .numbers import looks_like_formula
from .text_table import TextTable

# What openpyxl raises where a part of a workbook is missing, cut short or not what it should be.
FAILURES = (*BROKEN_ZIP, ParseError, TypeError, IndexError, AttributeError)
MAX_ROWS = 2**20  # of a sheet, by the format
CELL_BYTES = 10  # of an empty cell of a table: a comma, and the place where it ends
ERROR = "e"  # openpyxl's type of cells such as #N/A


def read_workbook(path: Path, raw: bytes) -> TextTable:
    """Read the first sheet of a workbook: the values of its cells as text, of formulas the values last worked out.

    Sheets that are charts do not count. Empty rows and columns around the table are left out. A note says that the copy
    is CSV.
    """
    openpyxl = require_package("openpyxl")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of extensions of the format, which hold no cells
            worksheets, charts = _open_sheets(openpyxl, raw)
            if charts and not worksheets:
                raise KernelweaveError(f"'{path}' has no sheet with cells, only charts.", ErrorCode.EMPTY)
            sheets = [*(sheet.title for sheet in worksheets), *charts]
            rows, n_errors = _read_rows(path, worksheets[0])
    except KernelweaveError:
        raise
    except FAILURES as error:
        raise KernelweaveError(f"'{path}' is a broken workbook: {reason(error)}.", ErrorCode.NOT_A_TABLE) from None
    if not rows:
        raise KernelweaveError(f"The first sheet of '{path}', {sheets[0]!r}, is empty.", ErrorCode.EMPTY)
    kept = sorted(set().union(*rows))
    require_room(path, CELL_BYTES * len(rows) * len(kept))
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows([row.get(j, "") for j in kept] for row in rows)
    notes = [f"'{path}' is a workbook: its first sheet, {sheets[0]!r}, is read, and a copy is CSV."]
    if len(sheets) > 1:
        notes.append(f"Other sheets of '{path}' are not read: {', '.join(map(repr, sheets[1:5]))}.")
    if n_errors:
        notes.append(f"{n_errors} cell{'s' * (n_errors > 1)} of '{path}' with an error such as #N/A: read as empty.")
    if formulas := [cell for row in rows for _, cell in sorted(row.items()) if looks_like_formula(cell)]:
        notes.append(
            f"{len(formulas)} cells of '{path}' are texts such as {cut_text(formulas[0])!r}, which spreadsheets take "
            "for formulas in a CSV file: import a copy as text."
        )
    table = TextTable.parse(path, text.getvalue().encode(), delimiter=",")
    return replace(table, remarks=tuple(notes))


def _open_sheets(openpyxl: Any, raw: bytes) -> tuple[list[Any], list[str]]:
    """Return the sheets with cells, and the names of those that are charts, which are not read.

    openpyxl fails on charts that are empty.
    """
    charts: list[str] = []
    reader = openpyxl.reader.excel.ExcelReader(io.BytesIO(raw), read_only=True, data_only=True, keep_links=False)
    reader.read_chartsheet = lambda sheet, relation: charts.append(sheet.name)
    reader.read()
    return reader.wb.worksheets, charts


def _read_rows(path: Path, sheet: Any) -> tuple[list[dict[int, str]], int]:
    """Return the texts of each row with a cell, by column, and how many cells hold an error.

    Rows and columns are as far from the first as a file says, so that those between, which are empty, are counted.
    """
    sheet.reset_dimensions()  # what the file says about its size may be wrong
    rows, n_errors, n_places, room = [], 0, 0, UNPACKED_SHARE * free_memory()
    for number, cells in enumerate(sheet.iter_rows()):
        if number == MAX_ROWS:
            raise ValueError(f"its first sheet has more than {MAX_ROWS:,} rows")
        n_places += len(cells)
        require_room(path, CELL_BYTES * n_places, room)
        given = [(j, cell) for j, cell in enumerate(cells) if cell.value is not None]
        n_errors += sum(cell.data_type == ERROR for _, cell in given)
        texts = {j: text for j, cell in given if (text := _as_text(cell))}
        rows += [texts] if texts else []
    return rows, n_errors


def _as_text(cell: Any) -> str:
    """Return a cell as people write it in a CSV file."""
    value = cell.value
    if cell.data_type == ERROR:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int | float):
        return str(int(value) if int(value) == value else value)
    if isinstance(value, datetime):
        is_day = (value.hour, value.minute, value.second, value.microsecond) == (0, 0, 0, 0)
        return value.date().isoformat() if is_day else value.isoformat(sep=" ")
    return value.isoformat() if isinstance(value, date) else str(value)

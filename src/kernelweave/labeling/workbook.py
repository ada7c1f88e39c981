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
from ..files import reason
from ..short_text import cut_text
from .archives import BROKEN_ZIP
from .base import require_package
from .numbers import looks_like_formula
from .text_table import TextTable

# What openpyxl raises where a part of a workbook is missing, cut short or not what it should be.
FAILURES = (*BROKEN_ZIP, ParseError, TypeError, IndexError, AttributeError)


def read_workbook(path: Path, raw: bytes) -> TextTable:
    """Read the first sheet of a workbook: the values of its cells as text, of formulas the values last worked out.

    Empty rows and columns around the table are left out. A note says that the copy is CSV.
    """
    pandas = require_package("pandas")
    require_package("openpyxl")
    try:
        with warnings.catch_warnings(), pandas.ExcelFile(io.BytesIO(raw), engine="openpyxl") as book:
            warnings.simplefilter("ignore")  # of extensions of the format, which hold no cells
            sheets = [str(name) for name in book.sheet_names]
            cells = book.parse(0, header=None, dtype=object, keep_default_na=False, na_filter=False)
    except FAILURES as error:
        raise KernelweaveError(f"'{path}' is a broken workbook: {reason(error)}.", ErrorCode.NOT_A_TABLE) from None
    rows = [[_as_text(cell) for cell in row] for row in cells.itertuples(index=False)]
    rows = [row for row in rows if any(row)]
    if not rows:
        raise KernelweaveError(f"The first sheet of '{path}', {sheets[0]!r}, is empty.", ErrorCode.EMPTY)
    kept = [j for j in range(len(rows[0])) if any(row[j] for row in rows)]
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows([[row[j] for j in kept] for row in rows])
    notes = [f"'{path}' is a workbook: its first sheet, {sheets[0]!r}, is read, and a copy is CSV."]
    if len(sheets) > 1:
        notes.append(f"Other sheets of '{path}' are not read: {', '.join(map(repr, sheets[1:5]))}.")
    if n_errors := sum(
        cell != cell for row in cells.itertuples(index=False) for cell in row
    ):  # NaN: a cell with an error
        notes.append(f"{n_errors} cell{'s' * (n_errors > 1)} of '{path}' with an error such as #N/A: read as empty.")
    if formulas := [cell for row in rows for cell in row if looks_like_formula(cell)]:
        notes.append(
            f"{len(formulas)} cells of '{path}' are texts such as {cut_text(formulas[0])!r}, which spreadsheets take "
            "for formulas in a CSV file: import a copy as text."
        )
    table = TextTable.parse(path, text.getvalue().encode(), delimiter=",")
    return replace(table, remarks=tuple(notes))


def _as_text(cell: Any) -> str:
    """Return a cell as people write it in a CSV file."""
    if cell is None or cell != cell:  # NaN
        return ""
    if isinstance(cell, bool):
        return str(cell).upper()
    if isinstance(cell, datetime):
        is_day = (cell.hour, cell.minute, cell.second, cell.microsecond) == (0, 0, 0, 0)
        return cell.date().isoformat() if is_day else cell.isoformat(sep=" ")
    return cell.isoformat() if isinstance(cell, date) else str(cell)

r"""A table on disk, read so that a copy can differ from it in the filled cells and the appended columns only.

The copy never goes through parsed values. A cell is empty if its text is blank, or a null of Parquet; ``NA`` is a text.
The text of a number in Parquet is the shortest that stands for it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..errors import ErrorCode, KernelweaveError
from ..files import Source, StrPath, Writer, check_output, reason, write_all
from .archives import GZIP, ZIP, find_kind, unpack
from .arrays import ArraysTable
from .base import Extra, Table, Values
from .parquet import ParquetTable
from .text_table import TextTable
from .workbook import read_workbook

STANDARD, STANDARD_INPUT = "-", Path("standard input")

__all__ = ["STANDARD", "Table", "fill_copy", "is_empty", "read_table", "write_filled"]


def read_table(path: StrPath) -> Table:
    """The table in a file, or in standard input for ``-``, told apart by its content.

    It is CSV or TSV with a header row, plain or in a gzip archive; Parquet; a workbook (.xlsx); or arrays (.npz).

    The delimiter is whichever of comma, semicolon, tab and bar cuts the first megabyte into the most regular rows; a
    name that ends in ``.tsv`` or ``.tab`` forces the tab. Where there is no table, a KernelweaveError says why.
    """
    path = Path(path)
    try:
        raw = sys.stdin.buffer.read() if str(path) == STANDARD else path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a path with a null character
        kinds: dict[type, ErrorCode] = {
            FileNotFoundError: ErrorCode.NOT_FOUND,
            IsADirectoryError: ErrorCode.NOT_A_TABLE,
        }
        code = kinds.get(type(error), ErrorCode.UNREADABLE)
        raise KernelweaveError(f"'{path}' cannot be read: {reason(error)}.", code) from None
    path = STANDARD_INPUT if str(path) == STANDARD else path
    if raw.startswith(b"PAR1") and raw.endswith(b"PAR1") and len(raw) > 8:
        return ParquetTable.parse(path, raw)
    if raw.startswith(ZIP):
        return (read_workbook if find_kind(path, raw) == "workbook" else ArraysTable.parse)(path, raw)
    if raw.startswith(GZIP):
        return replace(TextTable.parse(path, unpack(path, raw)), is_packed=True)
    return TextTable.parse(path, raw)


def is_empty(table: Table, name: str, unlabeled: str | None = None) -> NDArray[np.bool_]:
    """Which cells of a column are blank, or have the text `unlabeled` if that is given; shape (n_rows,).

    Blanks around either text do not count.
    """
    markers = {"", (unlabeled or "").strip()}
    texts = table.column(name).tolist()
    blank = {text for text in set(texts) if text.strip() in markers}
    return np.fromiter(map(blank.__contains__, texts), dtype=bool, count=len(texts))


def write_filled(
    table: Table,
    target: str,
    values: Values,
    extra: Extra,
    out: StrPath,
    unlabeled: str | None = None,
    *,
    beside: Sequence[tuple[StrPath, bytes]] = (),
    like: Sequence[Source] = (),
) -> None:
    r"""Write a copy of the table in which empty cells of one column are filled and columns are appended.

    Parameters
    ----------
    table, target : Table, str
        The table, and the column to fill.
    values : sequence of str or None, of length n_rows
        The new text of the row's cell; None leaves it as it is. A cell that is not empty must stay.
    extra : mapping of str to sequence of str, each of length n_rows
        The appended columns. Their names must be new. In Parquet they are numbers where all their texts are.
    out : path
        Never the file that the table was read from.
    unlabeled : str or None, as in `is_empty`
    beside : sequence of (path, bytes)
        Further files that take their places together with the copy.
    like : sequence of paths, or of numbers of open files
        Further tables: nobody may do more with the outputs than with each of them.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "in.csv").write_bytes(b'id;kind\r\n007;"NA"\r\n008;\r\n')
    >>> table = read_table(folder / "in.csv")
    >>> write_filled(table, "kind", [None, "a;b"], {"margin": ["", "1.50"]}, folder / "out.csv")
    >>> (folder / "out.csv").read_bytes()
    b'id;kind;margin\r\n007;"NA";\r\n008;"a;b";1.50\r\n'
    """
    check_output(out, table.path)
    write_all([(out, fill_copy(table, target, values, extra, unlabeled)), *beside], like=[table.path, *like])


def fill_copy(table: Table, target: str, values: Values, extra: Extra, unlabeled: str | None = None) -> Writer:
    """What writes such a copy to an open file; parameters as in `write_filled`."""
    for row, (value, empty) in enumerate(zip(values, is_empty(table, target, unlabeled), strict=True)):
        if value is not None and not empty:
            raise ValueError(f"row {row} of column '{target}' is not empty, so it must not be filled")
    if clash := [name for name in extra if name in table.names]:
        raise KernelweaveError(
            f"'{table.path}' already has a column '{clash[0]}'; it would appear twice.", ErrorCode.BAD_NAMES
        )
    return table.prepare_copy(target, values, extra)

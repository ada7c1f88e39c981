"""The tables of a command, read and joined, and the record of how a run can be repeated."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ..errors import ErrorCode, KernelweaveError
from ..labeling.base import expand_names
from ..labeling.joining import join_tables, make_sources
from ..labeling.problem import ReadingOptions
from ..labeling.table import STANDARD, Table, is_empty, read_table
from .streams import as_text

PACKAGES = ("kernelweave", "numpy", "scipy", "scikit-learn", "highspy", "pandas")

Options = TypeVar("Options", bound=ReadingOptions)


@dataclass(frozen=True, eq=False)
class Given:
    """What a command was given: the table with the target, all columns as a frame, and which cells are empty.

    ``options`` are those of the user, with a source for each table where there are several.
    """

    table: Table
    frame: Any
    cells: np.ndarray
    empty: np.ndarray
    options: Any
    notes: list[str]

    def take(self, rows: np.ndarray) -> Given:
        """Return the same with some of the rows of frame and cells, by their numbers."""
        if len(rows) == len(self.cells):
            return self
        return replace(self, frame=self.frame.iloc[rows], cells=self.cells[rows], empty=self.empty[rows])


def read_given(paths: Sequence[Path], options: Options, unlabeled: str | None) -> Given:
    """Read tables, and refuse columns that they do not have."""
    tables = read_tables(paths, options.id_columns)
    first, notes = tables[0], [note for table in tables for note in table.notes]
    check_columns(first, options)
    frame = first.frame()
    if len(tables) > 1:
        joined = join_tables(first, tables[1:], options.id_columns[0])
        frame, notes = joined.frame, notes + joined.notes
    options = replace(options, ignore=expand_names(options.ignore, list(frame.columns), first.path))
    if len(tables) > 1 and not options.sources:
        options = replace(options, sources=make_sources(joined, options))
    empty = is_empty(first, options.target, unlabeled)
    return Given(first, frame, first.column(options.target), empty, options, notes)


def check_columns(table: Table, options: ReadingOptions) -> None:
    """Refuse columns that a table does not have."""
    for name in (options.target, *options.id_columns, *([options.group] if options.group else [])):
        table.position(name)


def read_tables(paths: Sequence[Path], id_columns: Sequence[str]) -> list[Table]:
    """Read one table, or several that have the same column of identifiers."""
    if len(paths) > 1 and len(id_columns) != 1:
        raise KernelweaveError(
            f"{len(paths)} tables are joined on one column, and {len(id_columns)} are named: give --id COLUMN once. If "
            "they are parts of one table, name their folder, or put the pattern in quotes.",
            ErrorCode.BAD_OPTION,
        )
    if [str(path) for path in paths].count(STANDARD) > 1:
        raise KernelweaveError("Standard input, -, is one table; name it once.", ErrorCode.BAD_OPTION)
    tables = [read_table(path) for path in paths]
    for table in tables[1:]:
        table.position(id_columns[0])
    return tables


def describe_run(paths: Sequence[Path], options: ReadingOptions, unlabeled: str | None) -> dict[str, Any]:
    """Return what is needed to repeat a run."""
    return {
        "table": as_text(paths[0].name),
        **({"joined": [as_text(path.name) for path in paths[1:]]} if len(paths) > 1 else {}),
        "date": str(datetime.now(UTC).date()),
        "versions": {"python": ".".join(map(str, sys.version_info[:3])), **{name: version(name) for name in PACKAGES}},
        "options": asdict(options) | {"unlabeled": unlabeled},
    }


def number_rows(report: dict[str, Any], table: Table) -> dict[str, Any]:
    """Return the report with rows counted as in the file: the header of a text is row 1, and others have none."""
    first = 2 if table.format == "csv" else 1
    lists = {
        key: [{**record, "row": record["row"] + first} for record in report[key]]
        for key in ("suspects", "next")
        if key in report
    }
    return report | lists

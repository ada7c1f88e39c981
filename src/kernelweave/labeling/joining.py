"""Several tables about the same things, joined on a column of identifiers; each table is a source of its own.

The rows are those of the first table, which has the target. Of another table each identifier has at most one row; where
it has none, its cells are missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import ErrorCode, KernelweaveError
from .base import Table, list_names
from .columns import plan_columns
from .problem import ReadingOptions
from .target import strip_texts


@dataclass(frozen=True, eq=False)
class Joined:
    """A frame of all columns, those of each table by the name of its file, and sentences on rows that do not meet."""

    frame: Any
    columns: dict[str, list[str]]
    notes: list[str]


def join_tables(first: Table, others: Sequence[Table], id_column: str) -> Joined:
    """Join tables on a column of identifiers; blanks around these do not count.

    A name that an earlier table has already is preceded by that of the file: ``blood.value``.

    Parameters
    ----------
    first : Table
    others : sequence of Table
    id_column : str
    """
    frame = first.frame()
    ids = strip_texts(first.column(id_column)).tolist()
    columns = {first.path.name.partition(".")[0]: list(first.names)}
    notes = []
    for table in others:
        source = _find_name(table.path.name.partition(".")[0], columns)
        other = table.frame([name for name in table.names if name != id_column])
        other.index = strip_texts(table.column(id_column)).tolist()
        if not other.index.is_unique:
            twice = other.index[other.index.duplicated()][0]
            raise KernelweaveError(
                f"'{table.path}' has more than one row whose {id_column!r} is {twice!r}; a table that is joined needs "
                "one row for each.",
                ErrorCode.BAD_OPTION,
            )
        n_found = sum(identity in other.index for identity in ids)
        if not n_found:
            raise KernelweaveError(
                f"No {id_column!r} of '{first.path}' is in '{table.path}': {list_names(ids, 3)} here, "
                f"{list_names(list(other.index), 3)} there. Name the column of identifiers with --id.",
                ErrorCode.BAD_OPTION,
            )
        if n_found < len(ids):
            notes.append(
                f"{len(ids) - n_found} of {len(ids)} rows are not in '{table.path}': its cells are missing there."
            )
        other = other.reindex(ids).rename(
            columns={name: _find_name(f"{source}.{name}", frame.columns) for name in other if name in frame.columns}
        )
        columns[source] = list(other.columns)
        other.index = frame.index
        frame = frame.join(other)
    return Joined(frame, columns, notes)


def make_sources(joined: Joined, options: ReadingOptions) -> dict[str, list[str]]:
    """Return the columns of each table that can be learned from, as sources."""
    plan = plan_columns(
        joined.frame, target=options.target, id_columns=options.id_columns, ignore=options.ignore, group=options.group
    )
    used = {column.name for column in plan.used}
    found = {source: [name for name in names if name in used] for source, names in joined.columns.items()}
    return {source: names for source, names in found.items() if names}


def _find_name(name: str, taken: Any) -> str:
    """Return a name that is not taken yet."""
    free, number = name, 2
    while free in taken:
        free, number = f"{name}_{number}", number + 1
    return free

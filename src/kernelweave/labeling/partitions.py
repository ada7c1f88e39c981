"""A table in many Parquet files: which files these are, and whether they have the same columns.

Files are read in batches of rows, so that memory does not grow with their size.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ErrorCode, KernelweaveError
from ..files import reason
from .base import check_header, list_names, require_package
from .parquet import ParquetTable
from .table import is_empty

BATCH_ROWS = 50_000
ENDINGS = (".parquet", ".pq")  # of the files that count in a folder
HIDDEN = ("_", ".")  # with which names begin that are not data, as for Spark and Dask


@dataclass(frozen=True)
class Summary:
    """What one file has: columns with their types, rows, and rows with a label."""

    schema: Any  # pyarrow.Schema
    n_rows: int
    n_labeled: int


def names_many_files(path: Path) -> bool:
    """Return whether a path is a folder, or a pattern such as ``rows/*.parquet``."""
    return path.is_dir() or (glob.has_magic(str(path)) and not path.exists())


def find_folder(named: Path) -> Path:
    """Return the folder that is named or, of a pattern, the one before the first part with a wildcard."""
    if named.is_dir():
        return named
    n_plain = next(k for k, part in enumerate(named.parts) if glob.has_magic(part))
    return Path(*named.parts[:n_plain])


def find_files(named: Path, outside: Path) -> list[str]:
    """Return the files of a table by their names in the folder, sorted.

    Parameters
    ----------
    named : Path
        A folder, whose files are searched at any depth, or a pattern.
    outside : Path
        The folder of the copies, which are not a part of the table.
    """
    folder = find_folder(named)
    if named.is_dir():
        paths = [path for path in named.rglob("*") if path.suffix.lower() in ENDINGS]
        paths = [path for path in paths if not any(part.startswith(HIDDEN) for part in path.relative_to(folder).parts)]
    else:
        paths = [Path(path) for path in glob.glob(str(named), recursive=True)]
    copies = outside.resolve()
    paths = [path for path in paths if path.is_file() and copies not in path.resolve().parents]
    if paths:
        return sorted(path.relative_to(folder).as_posix() for path in paths)
    if named.is_dir():
        raise KernelweaveError(f"'{named}' is a folder without Parquet files.", ErrorCode.NOT_A_TABLE)
    raise KernelweaveError(f"'{named}' matches no file.", ErrorCode.NOT_FOUND)


def inspect_file(path: str, target: str, unlabeled: str | None) -> Summary:
    """Return what a file has, and read no column of it but the target."""
    with open_parquet(path) as file:
        schema = file.schema_arrow
        check_header(Path(path), schema.names, n_rows=1)  # a file of many may have no rows
        ParquetTable.of_arrow(Path(path), schema.empty_table()).position(target)
        n_labeled = sum(int((~find_empty(path, rows, target, unlabeled)).sum()) for rows in read_rows(file, [target]))
        return Summary(schema, file.metadata.num_rows, n_labeled)


@contextmanager
def open_parquet(path: str) -> Iterator[Any]:
    """Give a Parquet file to read; one that cannot be read, or is not Parquet, is refused by its name."""
    pa, parquet = require_package("pyarrow"), require_package("pyarrow.parquet")
    try:
        with parquet.ParquetFile(path) as file:
            yield file
    except FileNotFoundError:
        raise KernelweaveError(
            f"'{path}' is not there. If this is a worker on another computer, it needs the same folders.",
            ErrorCode.NOT_FOUND,
        ) from None
    except pa.ArrowInvalid as error:
        raise KernelweaveError(
            f"'{path}' is not a Parquet file, or a broken one: {reason(error)}. A table in many files is read from "
            "Parquet only.",
            ErrorCode.NOT_A_TABLE,
        ) from None
    except OSError as error:
        raise KernelweaveError(f"'{path}' cannot be read: {reason(error)}.", ErrorCode.UNREADABLE) from None


def read_rows(
    file: Any, columns: Sequence[str] | None = None, row_groups: Sequence[int] | None = None
) -> Iterator[Any]:
    """Yield the rows of an open file as Arrow tables, a batch at a time."""
    pa = require_package("pyarrow")
    for batch in file.iter_batches(BATCH_ROWS, row_groups=row_groups, columns=columns):
        yield pa.Table.from_batches([batch])


def find_empty(path: str, rows: Any, target: str, unlabeled: str | None) -> np.ndarray:
    """Return which rows have no label; ndarray of bool."""
    return is_empty(ParquetTable.of_arrow(Path(path), rows), target, unlabeled)


def unite_schemas(names: Sequence[str], schemas: Sequence[Any]) -> Any:
    """Return the schema to which the rows of all files can be converted; refuse the first file that differs.

    Columns may be in any order. A column without a value in one file has the type of the others, and whole numbers
    become real ones where some file has these.
    """
    pa = require_package("pyarrow")
    united = schemas[0].remove_metadata()
    for name, schema in zip(names, schemas, strict=True):
        _check_names(names[0], united.names, name, schema.names)
        for field in schema.remove_metadata():
            known = united.field(field.name)
            try:
                (new,) = pa.unify_schemas([pa.schema([known]), pa.schema([field])], promote_options="permissive")
            except pa.ArrowTypeError:
                raise KernelweaveError(
                    f"The column {field.name!r} of '{name}' has the type {field.type}; in the files before it, it has "
                    f"the type {known.type}. Give files whose columns have the same types.",
                    ErrorCode.FILES_DIFFER,
                ) from None
            if new != known:
                united = united.set(united.get_field_index(field.name), new)
    return united


def _check_names(first: str, expected: list[str], name: str, names: list[str]) -> None:
    lacking, more = [each for each in expected if each not in names], [each for each in names if each not in expected]
    if lacking or more:
        what = f"it lacks {list_names(lacking)}" if lacking else f"it has {list_names(more)} as well"
        raise KernelweaveError(
            f"'{name}' has other columns than '{first}': {what}. Give files with the same columns.",
            ErrorCode.FILES_DIFFER,
        )


def convert_rows(path: str, rows: Any, schema: Any) -> Any:
    """Return rows of a file with the columns and types of all files."""
    pa = require_package("pyarrow")
    try:
        return rows.select(schema.names).cast(schema)
    except pa.ArrowInvalid as error:
        raise KernelweaveError(
            f"The types of '{path}' cannot be those of the other files: {reason(error)}.", ErrorCode.FILES_DIFFER
        ) from None


def describe_files(folder: Path, names: Sequence[str]) -> dict[str, list[int]]:
    """Return size and time of change of each file, by which a changed one is recognised."""
    stats = {name: os.stat(folder / name) for name in names}
    return {name: [stat.st_size, stat.st_mtime_ns] for name, stat in stats.items()}

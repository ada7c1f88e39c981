"""Copies of Parquet files in which a saved model fills the empty cells, one file at a time, in bounded memory.

All copies have the same appended columns of the same types, those that were found when the model was learned.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import KernelweaveError
from ..files import atomic_write
from ..persistence import load_with_about
from .base import require_package
from .job import fill_by_blocks, spread
from .parquet import ParquetTable, read_cells
from .partitions import convert_rows, find_empty, open_parquet, read_rows
from .problem import encode


@dataclass(frozen=True)
class FileCopy:
    """A file, its copy, and the file of the model with the sum of its bytes."""

    source: str
    out: str
    model: str
    digest: str


@dataclass(frozen=True, eq=False)
class Filler:
    """A model that fills cells of any rows with the columns and types of `schema`."""

    pipeline: Any
    target: str
    unlabeled: str | None
    schema: Any
    appended: Mapping[str, tuple[str, str]]  # name that the model gives -> name in the copy, type

    def fill(self, path: str, rows: Any) -> Any:
        """Return rows of a file, an Arrow table, with filled cells and appended columns."""
        empty = find_empty(path, rows, self.target, self.unlabeled)
        texts: Any = []
        extra: dict[str, list[str]] = {}
        if empty.any():
            unlabeled_rows = convert_rows(path, rows.filter(require_package("pyarrow").array(empty)), self.schema)
            X = encode(self.pipeline[0], ParquetTable.of_arrow(Path(path), unlabeled_rows).frame())
            texts, extra = fill_by_blocks(self.pipeline[-1], X, self.target, lambda n_done: None)
        j = rows.column_names.index(self.target)
        # In a file without labels the column may have no type.
        field = rows.schema.field(j).with_type(self.schema.field(self.target).type)
        table = ParquetTable.of_arrow(Path(path), rows.set_column(j, field, rows.column(j).cast(field.type)))
        filled = table.fill(self.target, spread(texts, empty, None).tolist())
        for name, (new_name, kind) in self.appended.items():
            cells = [text or None for text in spread(extra.get(name, []), empty, "")]
            filled = filled.append_column(new_name, require_package("pyarrow").array(cells, "string").cast(kind))
        return filled


def describe_copies(schema: Any, extra: Mapping[str, Any], names: Mapping[str, str], target: str) -> dict[str, Any]:
    """Return what a saved model must know to fill copies, as plain data.

    Parameters
    ----------
    schema : pyarrow.Schema
        Of the rows that were learned from.
    extra : mapping of str to sequence of str
        Columns that the model appended to these rows.
    names : mapping of str to str
        Their names in the copies.
    target : str
    """
    kinds = {name: str(read_cells(texts).type) for name, texts in extra.items()}
    kinds |= {name: "string" for name in kinds if name == f"{target}_set"}  # some sets of numbers are not numbers
    return {
        "schema": base64.b64encode(schema.serialize()).decode(),
        "appended": {name: [names[name], kind] for name, kind in kinds.items()},
    }


def fill_file(copy: FileCopy) -> int:
    """Write the copy of a file, whole or not at all; return its number of rows."""
    filler = _load_filler(copy.model, copy.digest)
    os.makedirs(os.path.dirname(copy.out), exist_ok=True)
    with open_parquet(copy.source) as file:
        try:
            atomic_write(copy.out, lambda out: _write(filler, copy.source, file, out), like=[copy.source])
        except KernelweaveError as error:
            sentence = str(error) if copy.source in str(error) else f"In '{copy.source}': {error}"
            raise KernelweaveError(sentence, error.code) from None
        return int(file.metadata.num_rows)


@lru_cache(maxsize=1)
def _load_filler(model: str, digest: str) -> Filler:
    """Load a model once for all files of a run; another model has another digest."""
    pipeline, about = load_with_about(model)
    pa = require_package("pyarrow")
    schema = pa.ipc.read_schema(pa.BufferReader(base64.b64decode(about["schema"])))
    appended = {name: (new_name, kind) for name, (new_name, kind) in about["appended"].items()}
    return Filler(pipeline, about["target"], about["unlabeled"], schema, appended)


def _write(filler: Filler, path: str, file: Any, out: BinaryIO) -> None:
    """Write the filled rows with the compression and the row groups of the file."""
    pa, parquet = require_package("pyarrow"), require_package("pyarrow.parquet")
    metadata = file.metadata
    has_cells = metadata.num_row_groups > 0 and metadata.num_columns > 0
    compression = metadata.row_group(0).column(0).compression if has_cells else "SNAPPY"
    schema = filler.fill(path, file.schema_arrow.empty_table()).schema
    with parquet.ParquetWriter(out, schema, compression=compression.replace("UNCOMPRESSED", "NONE")) as writer:
        for k in range(metadata.num_row_groups):
            parts = [filler.fill(path, rows) for rows in read_rows(file, row_groups=[k])]
            if parts:
                group = pa.concat_tables(parts).unify_dictionaries()
                writer.write_table(group, row_group_size=group.num_rows)

"""A Parquet file: types, metadata, compression and row groups of the copy are its own."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ErrorCode, KernelweaveError
from ..files import Writer, reason
from .archives import require_room
from .base import Extra, Table, Texts, Values, check_header, require_package
from .numbers import widen_type

UNREADABLE = (ValueError, TypeError, KeyError, OverflowError, NotImplementedError, OSError)  # and pyarrow's, of these
PANDAS = b"pandas"  # key of the metadata that pandas writes
VALUE_BYTES = 1  # at least, of a value: a billion equal ones are a few bytes of a file


@dataclass(frozen=True, eq=False, repr=False)
class ParquetTable(Table):
    """A Parquet file as the Arrow table in it, and how that was stored."""

    format = "parquet"
    arrow: Any  # pyarrow.Table
    options: dict[str, Any]

    @classmethod
    def parse(cls, path: Path, raw: bytes) -> ParquetTable:
        pa, parquet = require_package("pyarrow"), require_package("pyarrow.parquet")
        try:
            file = parquet.ParquetFile(pa.BufferReader(raw))
            require_room(path, VALUE_BYTES * file.metadata.num_rows * file.metadata.num_columns)
            arrow = file.read()
        except (pa.ArrowException, OSError) as error:
            raise KernelweaveError(
                f"'{path}' is a broken Parquet file: {reason(error)}.", ErrorCode.NOT_A_TABLE
            ) from None
        check_header(path, arrow.column_names, arrow.num_rows)
        group = file.metadata.row_group(0)
        options = {
            "compression": group.column(0).compression.replace("UNCOMPRESSED", "NONE"),
            "row_group_size": group.num_rows,
        }
        return cls(path, arrow.column_names, arrow.num_rows, arrow, options)

    @classmethod
    def of_arrow(cls, path: Path, arrow: Any) -> ParquetTable:
        """Some rows of the file at a path, read already."""
        return cls(path, arrow.column_names, arrow.num_rows, arrow, {})

    def column(self, name: str) -> Texts:
        cells = self.arrow.column(self.position(name))
        missing = (None, "nan") if str(cells.type) in ("float", "double") else (None,)  # NaN is no number
        with self._reading(name):
            cells.validate(full=True)
            with contextlib.suppress(NotImplementedError, ValueError):  # lists and bytes have no text of their own
                cells = cells.cast("string")
            values = cells.to_pylist()
        texts = np.empty(self.n_rows, dtype=object)
        texts[:] = ["" if cell in missing else str(cell) for cell in values]
        return texts

    def frame(self, names: Sequence[str] | None = None) -> Any:
        require_package("pandas")
        names = self.names if names is None else list(names)
        for name in names:
            with self._reading(name):
                self.arrow.column(self.position(name)).validate(full=True)
        # Otherwise what pandas noted down as its index would be no column of the frame; it may be damaged, too.
        arrow = self.arrow.select(names).replace_schema_metadata(None)
        try:
            return arrow.to_pandas(ignore_metadata=True)
        except UNREADABLE:
            for name in names:
                with self._reading(name):
                    arrow.select([name]).to_pandas(ignore_metadata=True)
            raise

    @contextlib.contextmanager
    def _reading(self, name: str) -> Iterator[None]:
        """Name the column whose values Python does not have: texts that are not UTF-8, years of six digits."""
        try:
            yield
        except UNREADABLE as error:
            kind = self.arrow.schema.field(self.position(name)).type
            why = f"Column {name!r} of '{self.path}', of type {kind}, cannot be read: {reason(error)}"
            raise KernelweaveError(f"{why}. Write it as text, or remove it.", ErrorCode.UNSUPPORTED) from None

    def prepare_copy(self, target: str, values: Values, extra: Extra) -> Writer:
        arrow = self._widened(target, values).fill(target, values)
        for name, texts in extra.items():
            arrow = arrow.append_column(name, read_cells(texts))
        return lambda file: require_package("pyarrow.parquet").write_table(arrow, file, **self.options)

    def _widened(self, target: str, values: Values) -> ParquetTable:
        """Return the table with a column of integers in a type that holds the values, too, if there is one."""
        j, pa = self.position(target), require_package("pyarrow")
        cells = self.arrow.column(j)
        if not pa.types.is_integer(cells.type):
            return self
        kept = cells.filter(pa.array([value is None for value in values])).drop_null().to_numpy()
        with contextlib.suppress(ValueError):  # `fill` says what is wrong
            dtype = widen_type(kept, [int(value) for value in values if value is not None])
            field = self.arrow.schema.field(j).with_type(pa.from_numpy_dtype(dtype))
            if field.type != cells.type:
                arrow = self.arrow.set_column(j, field, cells.cast(field.type))
                return replace(self, arrow=_note_type(arrow, target, dtype.name))
        return self

    def fill(self, target: str, values: Values) -> Any:
        """The Arrow table with the cells of one column filled; None leaves a cell as it is."""
        j = self.position(target)
        field = self.arrow.schema.field(j)
        try:
            return self.arrow.set_column(j, field, _fill(self.arrow.column(j).combine_chunks(), values))
        except (ValueError, NotImplementedError) as error:
            message = (
                f"Column '{target}' of '{self.path}' has the type {field.type} and cannot be filled: {reason(error)}."
            )
            raise KernelweaveError(message, ErrorCode.UNSUPPORTED) from None


def read_cells(texts: Sequence[str]) -> Any:
    """The cells of an appended column: numbers if all texts are, null where they are empty."""
    cells = require_package("pyarrow").array([text or None for text in texts], "string")
    with contextlib.suppress(ValueError):
        cells = cells.cast("float64")
    return cells


def _note_type(arrow: Any, name: str, kind: str) -> Any:
    """Return a table whose metadata, if pandas wrote them, have another type of integers for one column."""
    metadata = dict(arrow.schema.metadata or {})
    with contextlib.suppress(ValueError, TypeError, KeyError, AttributeError):  # they may be damaged
        noted = json.loads(metadata[PANDAS])
        for column in noted["columns"]:
            if column["field_name"] == name:
                is_nullable = column["numpy_type"][:1].isupper()  # Int8 beside int8
                nullable = kind.replace("int", "Int").replace("u", "U")
                column |= {"pandas_type": kind, "numpy_type": nullable if is_nullable else kind}
        return arrow.replace_schema_metadata(metadata | {PANDAS: json.dumps(noted)})
    return arrow


def _fill(cells: Any, values: Values) -> Any:
    pa, compute = require_package("pyarrow"), require_package("pyarrow.compute")
    mask = pa.array([value is not None for value in values])
    if pa.types.is_integer(cells.type):
        values = [value if value is None else str(int(value)) for value in values]  # "-0" is no number without a sign
    texts = pa.array(list(values), "string")
    if not pa.types.is_dictionary(cells.type):
        return compute.if_else(mask, texts.cast(cells.type), cells)
    # The categories keep their order; new ones come after them.
    inserts = texts.cast(cells.type.value_type)
    new = inserts.filter(compute.invert(compute.is_in(inserts, cells.dictionary))).unique().drop_null()
    categories = pa.concat_arrays([cells.dictionary, new])
    codes = compute.if_else(mask, compute.index_in(inserts, categories), cells.indices).cast(cells.type.index_type)
    return pa.DictionaryArray.from_arrays(codes, categories, ordered=cells.type.ordered)

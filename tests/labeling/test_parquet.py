"""The copy of a Parquet file keeps all but the filled cells."""

import os

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kernelweave.errors import ErrorCode, KernelweaveError
from kernelweave.labeling import archives
from kernelweave.labeling.table import is_empty, read_table, write_filled

PARQUET = {
    "string": (pa.array(["a", None, "", "NA"]), ["a", "x", "y", "NA"]),
    "large string": (pa.array(["a", None, "", "NA"], pa.large_string()), ["a", "x", "y", "NA"]),
    "int": (pa.array([1, None, None, 2**62 + 1]), [1, 5, 6, 2**62 + 1]),
    "int8": (pa.array([1, None, None, 7], pa.int8()), [1, 5, 6, 7]),
    "float": (pa.array([1.5, None, None, float("inf")]), [1.5, 5.0, 0.1, float("inf")]),
    "bool": (pa.array([True, None, None, False]), [True, True, False, False]),
    "category": (
        pa.DictionaryArray.from_arrays(pa.array([2, None, None, 0], pa.int8()), ["c", "b", "a"]),
        list("abcc"),
    ),
    "new category": (pa.array(["a", None, None, "b"]).dictionary_encode(), ["a", "z", "b", "b"]),
}


@pytest.mark.parametrize("kind", PARQUET)
@pytest.mark.parametrize("compression", ["none", "zstd", "snappy"])
def test_parquet_keeps_types_metadata_and_every_other_cell(tmp_path, kind, compression):
    column, expected = PARQUET[kind]
    others = {
        "id": pa.array(["007", None, "", "1"]),
        "list": pa.array([[1], None, [], [2, 3]]),
        "bytes": pa.array([b"\xff"] * 4),
    }
    field = pa.field("y", column.type, metadata={"unit": "cm"})
    schema = pa.schema(
        [("id", pa.string()), field, ("list", others["list"].type), ("bytes", pa.binary())], {"made": "by us"}
    )
    before = pa.table([others["id"], column, others["list"], others["bytes"]], schema=schema)
    path, out = tmp_path / "in.parquet", tmp_path / "out.parquet"
    pq.write_table(before, path, row_group_size=3, compression=compression)
    table = read_table(path)
    assert (table.format, table.names, table.n_rows) == ("parquet", schema.names, 4)
    empty = is_empty(table, "y")
    assert empty.tolist() == [False, True, True, False]
    texts = [str(value) if hole else None for value, hole in zip(expected, empty, strict=True)]
    write_filled(table, "y", texts, {"p": ["", "0.5", "1", ""], "why": ["", "so", "2", ""]}, out)
    after = pq.read_table(out)
    assert after.schema.metadata == pq.read_table(path).schema.metadata
    assert after.select(schema.names).schema.equals(pq.read_table(path).schema, check_metadata=True)
    assert after["y"].to_pylist() == expected
    assert after.drop_columns(["y", "p", "why"]).equals(before.drop_columns(["y"]))
    assert (after["p"].to_pylist(), after["p"].type) == ([None, 0.5, 1.0, None], pa.float64())
    assert after["why"].to_pylist() == [None, "so", "2", None]
    assert [pq.ParquetFile(out).metadata.row_group(i).num_rows for i in range(2)] == [3, 1]
    assert list(table.frame().columns) == schema.names
    assert table.frame(["y"])["y"].isna().sum() == column.null_count
    if kind == "category":
        assert after["y"].combine_chunks().dictionary.to_pylist() == ["c", "b", "a"]


def test_a_parquet_cell_takes_only_what_its_type_can_hold(tmp_path):
    pq.write_table(pa.table({"y": [1, None, -1], "z": [[1], None, []]}), tmp_path / "in.parquet")
    table = read_table(tmp_path / "in.parquet")
    assert is_empty(table, "y", "-1").tolist() == [False, True, True]
    for name, text, message in [("y", "2.5", "has the type int64"), ("z", "1", "has the type list")]:
        with pytest.raises(KernelweaveError, match=message) as caught:
            write_filled(table, name, [None, text, None], {}, tmp_path / "out.parquet")
        assert caught.value.code is ErrorCode.UNSUPPORTED
    assert os.listdir(tmp_path) == ["in.parquet"]


@pytest.mark.parametrize(
    "kind, text, expected",
    [("uint8", "-107", "int8"), ("uint8", "300", "int16"), ("int8", "128", "uint8"), ("uint64", "-0", "uint64")],
)
def test_a_number_beyond_the_type_of_a_column_of_integers_widens_it(tmp_path, kind, text, expected):
    field = pa.field("y", getattr(pa, kind)(), metadata={"unit": "cm"})
    pq.write_table(pa.table([pa.array([100, None, 3], field.type)], schema=pa.schema([field])), tmp_path / "in.parquet")
    write_filled(read_table(tmp_path / "in.parquet"), "y", [None, text, None], {}, tmp_path / "out.parquet")
    filled = pq.read_table(tmp_path / "out.parquet")
    assert filled["y"].to_pylist() == [100, int(text), 3]
    assert str(filled.schema.field("y").type) == expected
    assert filled.schema.field("y").metadata[b"unit"] == b"cm"


@pytest.mark.parametrize("kind, wide", [("UInt8", "Int16"), ("Int8", "Int16"), ("UInt16", "UInt16")])
def test_pandas_reads_a_widened_column_of_its_own_with_the_wider_type(tmp_path, kind, wide):
    pd.DataFrame({"y": pd.array([100, None, 3], kind), "x": [1, 2, 3]}).to_parquet(tmp_path / "in.parquet")
    write_filled(read_table(tmp_path / "in.parquet"), "y", [None, "300", None], {}, tmp_path / "out.parquet")
    filled = pd.read_parquet(tmp_path / "out.parquet")
    assert (str(filled["y"].dtype), filled["y"].tolist()) == (wide, [100, 300, 3])


def test_a_column_is_widened_beside_damaged_notes_of_pandas(tmp_path):
    made = pa.table({"y": pa.array([1, None], pa.int8())}).replace_schema_metadata({"pandas": b"{"})
    pq.write_table(made, tmp_path / "in.parquet")
    write_filled(read_table(tmp_path / "in.parquet"), "y", [None, "300"], {}, tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet")["y"].to_pylist() == [1, 300]


def test_an_index_of_pandas_is_a_column_and_comes_back_as_an_index(tmp_path):
    frame = pd.DataFrame(
        {"y": pd.Categorical(["b", None, "a"], ["b", "a"], ordered=True)}, index=pd.Index([5, 6, 7], name="key")
    )
    frame.to_parquet(tmp_path / "in.parquet")
    table = read_table(tmp_path / "in.parquet")
    assert list(table.frame().columns) == table.names == ["y", "key"]
    write_filled(table, "y", [None, "a", None], {}, tmp_path / "out.parquet")
    frame.loc[6, "y"] = "a"
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "out.parquet"), frame)


@pytest.mark.parametrize(
    "columns, code",
    [(["x", "x"], ErrorCode.BAD_NAMES), (["x", ""], ErrorCode.BAD_NAMES), (["x", "y"], ErrorCode.NO_ROWS)],
)
def test_a_parquet_file_needs_names_and_rows(tmp_path, columns, code):
    rows = 0 if code is ErrorCode.NO_ROWS else 2
    pq.write_table(pa.table([pa.array([1] * rows, pa.int64())] * 2, names=columns), tmp_path / "in.parquet")
    with pytest.raises(KernelweaveError) as caught:
        read_table(tmp_path / "in.parquet")
    assert caught.value.code is code


def test_equal_values_in_few_bytes_are_refused_where_the_memory_does_not_hold_them(tmp_path, monkeypatch):
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"x": pa.nulls(10**6, pa.int8()), "y": pa.nulls(10**6, pa.int8())}), path)
    assert path.stat().st_size < 10_000
    assert read_table(path).n_rows == 10**6
    monkeypatch.setattr(archives, "free_memory", lambda: 10**6)
    with pytest.raises(KernelweaveError, match=r"in\.parquet' holds more than the memory here: .*\.$") as caught:
        read_table(path)
    assert caught.value.code is ErrorCode.UNSUPPORTED


NOT_UTF_8 = pa.Array.from_buffers(
    pa.string(), 4, [None, pa.array(range(5), pa.int32()).buffers()[1], pa.py_buffer(b"\xff\xfe" * 2)]
)


@pytest.mark.parametrize(
    "cells",
    [
        NOT_UTF_8,
        NOT_UTF_8.dictionary_encode(),
        pa.array([2**30 + i for i in range(4)], pa.date32()),
        pa.array([2**59 - 2**59 % 86_400_000] * 4, pa.date64()),
        pa.array(range(4), pa.timestamp("us", tz="No/Where")),
        pa.array(range(4), pa.time64("ns")),
    ],
    ids=lambda cells: str(cells.type)[:20],
)
def test_a_column_that_python_does_not_have_is_named_where_it_is_read(tmp_path, cells):
    y = pa.array(["a", None, "b", None])
    pq.write_table(pa.table({"x": pa.array(range(4)), "z": cells, "y": y}), tmp_path / "in.parquet")
    table = read_table(tmp_path / "in.parquet")
    assert table.frame(["x", "y"]).shape == (4, 2)
    with pytest.raises(
        KernelweaveError, match=r"Column 'z' of '.*in\.parquet', of type .* cannot be read: .*\."
    ) as caught:
        table.frame()
    assert caught.value.code is ErrorCode.UNSUPPORTED


def test_texts_of_dates_of_any_year_are_read_and_others_that_python_does_not_have_are_refused(tmp_path):
    years = pa.array([2**30, None], pa.date32())
    pq.write_table(pa.table({"z": years, "y": NOT_UTF_8[:2]}), tmp_path / "in.parquet")
    table = read_table(tmp_path / "in.parquet")
    assert table.column("z")[1] == ""
    with pytest.raises(KernelweaveError, match=r"Column 'y' of '.*in\.parquet', of type string, cannot be read: "):
        table.column("y")


def test_damaged_notes_of_pandas_are_not_read(tmp_path):
    made = pa.table({"x": pa.array(range(4)), "y": pa.array(["a", None, "b", None])})
    pq.write_table(made.replace_schema_metadata({"pandas": b"{"}), tmp_path / "in.parquet")
    assert list(read_table(tmp_path / "in.parquet").frame()) == ["x", "y"]


@pytest.mark.parametrize("name", ["\0", "x\0"])
def test_a_name_that_numpy_would_cut_is_refused(tmp_path, name):
    pq.write_table(pa.table({"x": [1, 2], name: [3, 4], "y": ["a", None]}), tmp_path / "in.parquet")
    with pytest.raises(
        KernelweaveError, match=r"The name of column 2 of '.*in\.parquet' ends in the character NUL"
    ) as caught:
        read_table(tmp_path / "in.parquet")
    assert caught.value.code is ErrorCode.BAD_NAMES

"""Which files a table is made of, and whether they belong together."""

import pickle
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from checks.many_files import CUTS, make_frame, write_files

from kernelweave.errors import ErrorCode, KernelweaveError
from kernelweave.labeling import partitions
from kernelweave.labeling.partitions import (
    convert_rows,
    describe_files,
    find_files,
    find_folder,
    inspect_file,
    names_many_files,
    open_parquet,
    read_rows,
    unite_schemas,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_files(tmp_path_factory.mktemp("rows"), make_frame())


def test_a_folder_and_a_pattern_name_many_files_and_a_file_does_not(folder, tmp_path):
    assert names_many_files(folder)
    assert names_many_files(folder / "*.parquet")
    assert not names_many_files(folder / "a.parquet")
    (tmp_path / "x[1].csv").write_text("a\n1\n")
    assert not names_many_files(tmp_path / "x[1].csv")


def test_files_are_found_in_order_and_by_their_names_in_the_folder(folder, tmp_path):
    assert find_folder(folder) == find_folder(folder / "*" / "e.parquet") == folder
    assert find_folder(Path("*.parquet")) == Path()
    assert find_files(folder, tmp_path) == sorted(CUTS)
    assert find_files(folder / "*.parquet", tmp_path) == sorted(set(CUTS) - {"d/e.parquet"})
    assert find_files(folder / "**" / "e.parquet", tmp_path) == ["d/e.parquet"]
    assert find_files(folder / "*" / "*.parquet", tmp_path) == ["d/e.parquet"]


def test_copies_hidden_files_and_other_files_are_no_part_of_a_folder(tmp_path):
    for name in ("a.parquet", "_model.parquet", ".b.parquet", "_spark/c.parquet", "notes.txt", "out/a.parquet"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert find_files(tmp_path, tmp_path / "out") == ["a.parquet"]


def test_a_pattern_without_files_and_a_folder_without_files_are_refused(tmp_path):
    with pytest.raises(KernelweaveError, match=r"x\*' matches no file") as caught:
        find_files(tmp_path / "x*", tmp_path / "out")
    assert caught.value.code is ErrorCode.NOT_FOUND
    with pytest.raises(KernelweaveError, match="is a folder without Parquet files") as caught:
        find_files(tmp_path, tmp_path / "out")
    assert caught.value.code is ErrorCode.NOT_A_TABLE


def test_a_file_is_summed_up_in_batches(folder, monkeypatch):
    monkeypatch.setattr(partitions, "BATCH_ROWS", 7)
    summaries = [inspect_file(str(folder / name), "y", None) for name in CUTS]
    assert [each.n_rows for each in summaries] == [50, 0, 1, 29, 40]
    assert [each.n_labeled for each in summaries] == [45, 0, 0, 0, 0]
    assert inspect_file(str(folder / "a.parquet"), "y", "yes").n_labeled < 45
    assert pickle.loads(pickle.dumps(summaries[0])) == summaries[0]
    with open_parquet(str(folder / "a.parquet")) as file:
        assert [rows.num_rows for rows in read_rows(file)] == [7] * 7 + [1]


@pytest.mark.parametrize(
    "content, code, words",
    [
        (b"a,y\n1,2\n", ErrorCode.NOT_A_TABLE, "is not a Parquet file, or a broken one"),
        (b"", ErrorCode.NOT_A_TABLE, "is not a Parquet file, or a broken one"),
        (b"PAR1 nonsense PAR1", ErrorCode.NOT_A_TABLE, "is not a Parquet file, or a broken one"),
        (None, ErrorCode.NOT_FOUND, "is not there. If this is a worker on another computer, it needs the same folders"),
    ],
)
def test_what_is_not_parquet_is_refused_by_its_name(tmp_path, content, code, words):
    path = tmp_path / "x.parquet"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(KernelweaveError, match=f"'{path}' {words}") as caught:
        inspect_file(str(path), "y", None)
    assert caught.value.code is code


def test_a_file_without_the_target_is_refused(folder):
    with pytest.raises(KernelweaveError, match=r"a\.parquet' has no column 'z'; it has 'u', 'v'"):
        inspect_file(str(folder / "a.parquet"), "z", None)


def schema(**types):
    return pa.schema(list(types.items()))


def test_types_of_files_are_united():
    united = unite_schemas(
        ["a", "b", "c"],
        [
            schema(x=pa.int64(), y=pa.null(), z=pa.string()),
            schema(y=pa.string(), x=pa.float64(), z=pa.string()),
            schema(z=pa.large_string(), y=pa.null(), x=pa.int8()),
        ],
    )
    assert united == schema(x=pa.float64(), y=pa.string(), z=pa.large_string())


@pytest.mark.parametrize(
    "other, words",
    [
        ({"x": pa.int64()}, "'b' has other columns than 'a': it lacks 'y'. Give files with the same columns"),
        (
            {"x": pa.int64(), "y": pa.string(), "z": pa.null()},
            "'b' has other columns than 'a': it has 'z' as well. Give",
        ),
        (
            {"x": pa.string(), "y": pa.string()},
            "The column 'x' of 'b' has the type string; in the files before it, it has the type int64. Give",
        ),
    ],
)
def test_the_first_file_that_differs_is_named(other, words):
    first = schema(x=pa.int64(), y=pa.string())
    with pytest.raises(KernelweaveError, match=words) as caught:
        unite_schemas(["a", "b", "c"], [first, schema(**other), schema(q=pa.int64())])
    assert caught.value.code is ErrorCode.FILES_DIFFER


def test_rows_get_the_columns_and_types_of_all_files():
    rows = pa.table({"y": pa.nulls(2), "x": pa.array([1, 2])})
    assert convert_rows("a", rows, schema(x=pa.float64(), y=pa.string())).to_pydict() == {
        "x": [1.0, 2.0],
        "y": [None, None],
    }
    with pytest.raises(KernelweaveError, match="The types of 'a' cannot be those of the other files"):
        convert_rows("a", pa.table({"x": [2**53 + 1]}), schema(x=pa.float64()))


def test_a_changed_file_is_recognised(tmp_path):
    pq.write_table(pa.table({"x": [1]}), tmp_path / "a.parquet")
    before = describe_files(tmp_path, ["a.parquet"])
    pq.write_table(pa.table({"x": [1, 2, 3]}), tmp_path / "a.parquet")
    assert before != describe_files(Path(tmp_path), ["a.parquet"])

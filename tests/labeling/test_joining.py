import pandas as pd
import pytest

from kernelweave.errors import ErrorCode, KernelweaveError
from kernelweave.labeling.joining import join_tables, make_sources
from kernelweave.labeling.problem import ReadingOptions
from kernelweave.labeling.table import read_table

FIRST = "sample,age,y\n a ,30,up\nb,40,\nc,50,down\na,35,\n"


def tables(folder, *texts):
    for name, text in zip(("first", "blood", "genes"), texts, strict=False):
        (folder / f"{name}.csv").write_text(text)
    return [read_table(folder / f"{name}.csv") for name, _ in zip(("first", "blood", "genes"), texts, strict=False)]


def test_rows_are_those_of_the_first_table_and_missing_ones_are_said(tmp_path):
    first, other = tables(tmp_path, FIRST, "value,sample\n7,c\n8, a\n9,z\n")
    joined = join_tables(first, [other], "sample")
    assert list(joined.frame) == ["sample", "age", "y", "value"]
    assert joined.frame["value"].tolist()[:1] == ["8"]
    assert joined.frame["value"].isna().tolist() == [False, True, False, False]
    assert joined.frame["value"].tolist()[3] == "8"  # a row of the first table may occur twice
    assert joined.columns == {"first": ["sample", "age", "y"], "blood": ["value"]}
    assert joined.notes == [f"1 of 4 rows are not in '{other.path}': its cells are missing there."]


def test_names_that_are_taken_are_preceded_by_the_name_of_the_file(tmp_path):
    first, *others = tables(tmp_path, FIRST, "sample,age\na,1\nb,2\nc,3\n", "sample,age\na,4\nb,5\nc,6\n")
    joined = join_tables(first, others, "sample")
    assert list(joined.frame) == ["sample", "age", "y", "blood.age", "genes.age"]
    assert joined.frame["genes.age"].tolist() == ["4", "5", "6", "4"]
    assert joined.notes == []


def test_each_table_with_a_column_to_learn_from_is_a_source(tmp_path):
    rows = "".join(f"s{i},{i * i % 7}.5,same\n" for i in range(20))
    labels = "".join(f"s{i},{'ab'[i % 2]}\n" for i in range(20))
    first, *others = tables(tmp_path, "sample,y\n" + labels, "sample,x,constant\n" + rows)
    options = ReadingOptions("y", id_columns=("sample",))
    assert make_sources(join_tables(first, others, "sample"), options) == {"blood": ["x"]}


def test_a_table_of_types_is_joined_to_one_of_texts(tmp_path):
    (first,) = tables(tmp_path, FIRST)
    pd.DataFrame({"sample": ["c", "a"], "x": [1.5, 2.5]}).to_parquet(tmp_path / "typed.parquet")
    joined = join_tables(first, [read_table(tmp_path / "typed.parquet")], "sample")
    assert joined.frame["x"].tolist()[::2] == [2.5, 1.5]
    assert joined.frame["x"].isna().tolist() == [False, True, False, False]


@pytest.mark.parametrize(
    "other, words",
    [
        ("sample,x\na,1\na,2\n", "more than one row whose 'sample' is 'a'"),
        ("sample,x\nq,1\nr,2\n", "No 'sample' of .* is in .*: 'a', 'b', 'c', ... .4 in all. here, 'q', 'r' there"),
    ],
)
def test_tables_that_do_not_fit_are_refused(tmp_path, other, words):
    first, second = tables(tmp_path, FIRST, other)
    with pytest.raises(KernelweaveError, match=words) as caught:
        join_tables(first, [second], "sample")
    assert caught.value.code is ErrorCode.BAD_OPTION

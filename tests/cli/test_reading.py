from pathlib import Path

import pytest
from checks.command import rows, write

from kernelweave.cli.reading import describe_run, number_rows, read_given, read_tables
from kernelweave.errors import ErrorCode, KernelweaveError
from kernelweave.labeling.problem import ReadingOptions
from kernelweave.labeling.table import read_table


def test_one_table_is_read_as_it_is(tmp_path):
    path = write(tmp_path / "in.csv", rows())
    given = read_given([path], ReadingOptions("y"), None)
    assert list(given.frame) == ["id", "x", "z", "kind", "y"]
    assert given.empty.sum() == 30
    assert given.options == ReadingOptions("y")
    assert given.notes == []


def test_each_of_several_tables_is_a_source_unless_sources_are_given(tmp_path):
    left = write(tmp_path / "left.csv", [[row[0], row[1], row[4]] for row in rows()], ("id", "x", "y"))
    right = write(tmp_path / "right.csv", [[row[0], *row[2:4]] for row in rows()[::-1]], ("id", "z", "kind"))
    options = ReadingOptions("y", id_columns=("id",))
    given = read_given([left, right], options, None)
    assert given.options.sources == {"left": ["x"], "right": ["z", "kind"]}
    assert given.frame["z"].tolist() == [row[2] for row in rows()]
    named = ReadingOptions("y", id_columns=("id",), sources={"all": ["x", "z"]})
    assert read_given([left, right], named, None).options.sources == {"all": ["x", "z"]}


@pytest.mark.parametrize("options", [{"ignore": ("no",)}, {"group": "no"}, {"id_columns": ("no",)}])
def test_columns_that_are_not_there_are_refused_by_name(tmp_path, options):
    path = write(tmp_path / "in.csv", rows())
    with pytest.raises(KernelweaveError, match="no column 'no'") as caught:
        read_given([path], ReadingOptions("y", **options), None)
    assert caught.value.code is ErrorCode.NO_SUCH_COLUMN


def test_columns_of_all_tables_can_be_ignored_by_lists_and_patterns(tmp_path):
    left = write(tmp_path / "left.csv", [[row[0], row[1], row[4]] for row in rows()], ("id", "x", "y"))
    right = write(tmp_path / "right.csv", [[row[0], *row[2:4]] for row in rows()], ("id", "z", "kind"))
    options = ReadingOptions("y", id_columns=("id",), ignore=("x,ki*",))
    given = read_given([left, right], options, None)
    assert given.options.ignore == ("x", "kind")
    assert given.options.sources == {"right": ["z"]}
    with pytest.raises(KernelweaveError, match=r"no column 'kinds'; .* Did you mean 'kind'\?"):
        read_given([left, right], ReadingOptions("y", id_columns=("id",), ignore=("kinds",)), None)


def test_several_tables_need_one_identifier():
    with pytest.raises(KernelweaveError, match="2 tables are joined on one column, and 0 are named"):
        read_tables([Path("a.csv"), Path("b.csv")], ())


def test_the_record_names_all_tables():
    record = describe_run([Path("a/b.csv"), Path("c.csv")], ReadingOptions("y"), "?")
    assert (record["table"], record["joined"]) == ("b.csv", ["c.csv"])
    assert record["options"]["unlabeled"] == "?"
    assert "joined" not in describe_run([Path("b.csv")], ReadingOptions("y"), None)
    assert "kernelweave" in record["versions"]


def test_rows_are_counted_as_in_the_file(tmp_path):
    table = read_table(write(tmp_path / "in.csv", rows()))
    assert number_rows({"next": [{"row": 0}], "a": 1}, table) == {"next": [{"row": 2}], "a": 1}

import io
import sys
import zipfile
from datetime import datetime

import pytest

from kernelweave.errors import ErrorCode, KernelweaveError
from kernelweave.labeling.table import read_table, write_filled


def book(path, *sheets):
    openpyxl = pytest.importorskip("openpyxl")
    made = openpyxl.Workbook()
    for number, rows in enumerate(sheets):
        sheet = made.active if number == 0 else made.create_sheet(f"more {number}")
        for row in rows:
            sheet.append(row)
    made.save(path)
    return path


ROWS = [
    ["id", "size", "day", "ok", "note", "y"],
    ["007", 1.5, datetime(2024, 5, 1), True, "a,b", "up"],
    ["008", 3.0, datetime(2024, 5, 2, 10, 30), False, None, None],
]


def test_cells_are_read_as_people_write_them_and_the_copy_is_csv(tmp_path):
    table = read_table(book(tmp_path / "in.xlsx", ROWS))
    assert table.names == ROWS[0]
    assert [table.column(name)[0] for name in table.names] == ["007", "1.5", "2024-05-01", "TRUE", "a,b", "up"]
    assert [table.column(name)[1] for name in table.names] == ["008", "3", "2024-05-02 10:30:00", "FALSE", "", ""]
    assert "is a workbook: its first sheet, 'Sheet', is read, and a copy is CSV." in table.notes[0]
    write_filled(table, "y", [None, "down"], {}, tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text().splitlines()[2] == "008,3,2024-05-02 10:30:00,FALSE,,down"


def test_texts_that_look_like_formulas_are_kept_and_said_and_formulas_are_their_values(tmp_path):
    path = book(tmp_path / "in.xlsx", [["x", "note", "y"], [-1.5, "plain", "=a"], [2, "+49 30", None]])
    openpyxl = pytest.importorskip("openpyxl")
    made = openpyxl.load_workbook(path)
    made.active["C2"].data_type = "s"  # a text, not a formula
    made.active["B3"].data_type = "s"
    made.active["A3"] = "=1+1"  # a formula whose value was never worked out
    made.save(path)
    table = read_table(path)
    assert table.column("y").tolist() == ["=a", ""]
    assert table.column("x").tolist() == ["-1.5", ""]
    assert "2 cells of" in table.notes[1]
    assert "which spreadsheets take for formulas in a CSV file: import a copy as text." in table.notes[1]
    write_filled(table, "y", [None, "=a"], {}, tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text().splitlines() == ["x,note,y", "-1.5,plain,=a", ",+49 30,=a"]


def test_rows_and_columns_without_a_cell_are_left_out_and_other_sheets_are_named(tmp_path):
    empty = [None] * 3
    rows = [empty, [None, "x", "y"], [None, 1, "a"], empty, [None, 2, None], empty]
    table = read_table(book(tmp_path / "in.xlsx", rows, [["other"]]))
    assert (table.names, table.n_rows) == (["x", "y"], 2)
    assert table.notes[1].endswith("are not read: 'more 1'.")


@pytest.mark.parametrize(
    "rows, code",
    [([], ErrorCode.EMPTY), ([["x", "y"]], ErrorCode.NO_ROWS), ([["x", "x"], [1, 2]], ErrorCode.BAD_NAMES)],
)
def test_a_sheet_that_is_no_table_is_one_sentence(tmp_path, rows, code):
    with pytest.raises(KernelweaveError) as caught:
        read_table(book(tmp_path / "in.xlsx", rows))
    assert caught.value.code is code


def test_a_broken_workbook_is_one_sentence(tmp_path):
    pytest.importorskip("openpyxl")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("xl/workbook.xml", "<nothing")
    (tmp_path / "in.xlsx").write_bytes(buffer.getvalue())
    with pytest.raises(KernelweaveError, match=r"in\.xlsx' is a broken workbook: .*\.$") as caught:
        read_table(tmp_path / "in.xlsx")
    assert caught.value.code is ErrorCode.NOT_A_TABLE


def test_without_openpyxl_the_extra_is_named(tmp_path, monkeypatch):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("xl/workbook.xml", "")
    (tmp_path / "in.xlsx").write_bytes(buffer.getvalue())
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(
        KernelweaveError, match=r"This needs openpyxl; install it with `pip install 'kernelweave\[cli\]'`"
    ):
        read_table(tmp_path / "in.xlsx")


def test_cells_with_errors_are_empty_and_are_counted(tmp_path):
    rows = [("x", "y"), (1.5, "a"), ("#N/A", "b"), ("#DIV/0!", "a"), (2, None)]
    table = read_table(book(tmp_path / "in.xlsx", rows))
    assert list(table.column("x")) == ["1.5", "", "", "2"]
    assert table.notes[1].startswith("2 cells of ")
    assert table.notes[1].endswith("with an error such as #N/A: read as empty.")

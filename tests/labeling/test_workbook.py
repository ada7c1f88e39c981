import io
import sys
import zipfile
from datetime import datetime

import pytest

from kernelweave.errors import ErrorCode, KernelweaveError
from kernelweave.labeling import archives, workbook
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


def with_chart(path, is_empty):
    """A workbook whose first sheet is a chart, with or without a diagram."""
    openpyxl = pytest.importorskip("openpyxl")
    made = openpyxl.load_workbook(book(path, ROWS))
    sheet = made.create_chartsheet("diagram", 0)
    if not is_empty:
        chart = openpyxl.chart.BarChart()
        chart.add_data(openpyxl.chart.Reference(made["Sheet"], min_col=2, min_row=1, max_row=3))
        sheet.add_chart(chart)
    made.active = 0
    made.save(path)
    return made


@pytest.mark.parametrize("is_empty", [True, False])
def test_a_first_sheet_that_is_a_chart_is_passed_over(is_empty, tmp_path):
    with_chart(tmp_path / "in.xlsx", is_empty)
    table = read_table(tmp_path / "in.xlsx")
    assert (table.names, table.n_rows) == (ROWS[0], 2)
    assert "its first sheet, 'Sheet', is read" in table.notes[0]
    assert table.notes[1].endswith("are not read: 'diagram'.")


def test_a_workbook_of_charts_is_one_sentence(tmp_path):
    made = with_chart(tmp_path / "in.xlsx", is_empty=True)
    made.remove(made["Sheet"])
    made.save(tmp_path / "in.xlsx")
    with pytest.raises(KernelweaveError, match=r"in\.xlsx' has no sheet with cells, only charts\.$") as caught:
        read_table(tmp_path / "in.xlsx")
    assert caught.value.code is ErrorCode.EMPTY


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


SHEET = (
    '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>{}</sheetData></worksheet>'
)


def crafted(path, *cells):
    """A workbook whose first sheet has cells at some places, such as "B7", and nothing else."""
    written = book(path.with_name("plain.xlsx"), [["x"]])
    places = [(int("".join(filter(str.isdigit, place))), place) for place in cells]
    rows = "".join(f'<row r="{n}"><c r="{place}" t="inlineStr"><is><t>v</t></is></c></row>' for n, place in places)
    with zipfile.ZipFile(written) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, SHEET.format(rows) if name == "xl/worksheets/sheet1.xml" else old.read(name))
    return path


def test_cells_far_from_each_other_take_no_memory_for_those_between(tmp_path):
    # As many places as the format has: a list of all would take 137 GB.
    table = read_table(crafted(tmp_path / "in.xlsx", "XFD1", "XFD1048576"))
    assert (table.names, table.n_rows, table.column("v").tolist()) == (["v"], 1, ["v"])


def test_a_row_beyond_the_last_of_the_format_is_refused(tmp_path):
    with pytest.raises(KernelweaveError, match=r"is a broken workbook: its first sheet has more than 1,048,576 rows\."):
        read_table(crafted(tmp_path / "in.xlsx", "A1", "A1000000000"))


def test_rows_of_more_places_than_the_memory_has_are_refused(tmp_path, monkeypatch):
    path = crafted(tmp_path / "in.xlsx", *(f"XFD{n}" for n in range(1, 40)))
    monkeypatch.setattr(workbook, "free_memory", lambda: 2**24)
    with pytest.raises(KernelweaveError, match=r"in\.xlsx' holds more than the memory here: .*\.$") as caught:
        read_table(path)
    assert caught.value.code is ErrorCode.UNSUPPORTED


def test_a_table_of_more_cells_than_the_memory_has_is_refused(tmp_path, monkeypatch):
    path = crafted(tmp_path / "in.xlsx", *(f"{chr(65 + n)}{n + 1}" for n in range(26)))
    monkeypatch.setattr(archives, "free_memory", lambda: 4 * 26 * 26 * workbook.CELL_BYTES - 1)
    monkeypatch.setattr("kernelweave.labeling.table.find_kind", lambda path, raw: "workbook")
    with pytest.raises(KernelweaveError, match="holds more than the memory here"):
        read_table(path)

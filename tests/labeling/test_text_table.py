"""Cells are cut where Python's csv cuts them."""

import csv
import io

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernelweave.labeling import text_table
from kernelweave.labeling.table import read_table, write_filled


@settings(max_examples=1000, deadline=None, suppress_health_check=list(HealthCheck))  # whatever the clock says
@given(st.text('a",\r\n', max_size=14))
def test_cells_are_cut_where_pythons_csv_cuts_them_in_whatever_text(text):
    body = text.encode()
    lines = text_table._scan(body, ",")
    if lines.open_quote is not None:
        return
    firsts = np.cumsum(lines.n_cells) - lines.n_cells
    found = []
    for start, end, first, n_cells in zip(lines.starts, lines.ends, firsts, lines.n_cells, strict=True):
        ends = lines.stops[first : first + n_cells]
        row = list(text_table._read_texts(body, "utf-8", np.append(start, ends[:-1] + 1), ends))
        found += [row] if end > start else []
    assert found == [row for row in csv.reader(io.StringIO(text, newline="")) if row]


def test_a_blank_line_is_a_row_between_the_rows_of_a_single_column_and_nowhere_else(tmp_path):
    path, out = tmp_path / "in.csv", tmp_path / "out.csv"
    path.write_bytes(b"\ny\na\n\nb\n\n")
    table = read_table(path)
    assert list(table.column("y")) == ["a", "", "b"]
    write_filled(table, "y", [None, "c", None], {"p": ["", "1", ""]}, out)
    assert out.read_bytes() == b"\ny,p\na,\nc,1\nb,\n\n"
    path.write_bytes(b"x,y\n\n1,a\n\n2,b\n\n")
    assert read_table(path).n_rows == 2


@pytest.mark.parametrize("rows", [b";\n", b';"007"\n', b';\n;"007"\n;a,b\n'])
def test_a_comma_before_a_closing_quote_is_no_delimiter(tmp_path, rows):
    (tmp_path / "in.csv").write_bytes(b'h;"h,"\n' + rows)
    table = read_table(tmp_path / "in.csv")
    assert (table.delimiter, table.names, table.n_rows) == (";", ["h", "h,"], rows.count(b"\n"))


def test_a_frame_has_the_texts_as_they_are(tmp_path):
    path = tmp_path / "in.csv"
    path.write_bytes(b'x,y\n1,\n2,""\n3,NA\n4,None\n5,nan\n6, \n7,?\n')
    frame = read_table(path).frame()
    assert frame.dtypes.tolist() == [object, object]
    assert frame["y"].tolist() == ["", "", "NA", "None", "nan", " ", "?"]


@pytest.mark.parametrize(
    "name, content, delimiter, encoding, line_end",
    [
        ("a.csv", b"x,y\r\n1,2\n", ",", "utf-8", "\r\n"),
        ("a.csv", b"x;y\n1,5;2,5\n1,0;2\n", ";", "utf-8", "\n"),
        ("a.txt", b"x|y\r1|2", "|", "utf-8", "\r"),
        ("a.tsv", b"x,z\ty\n1,2\t3", "\t", "utf-8", "\n"),
        ("a.csv", b"x,y\n\xe9,\x93a\x94\n", ",", "cp1252", "\n"),
        ("a.csv", b"x,y\n\xe9,\x81\n", ",", "latin-1", "\n"),
        ("a.csv", b"\xef\xbb\xbfx,y\n1,2\n", ",", "utf-8-sig", "\n"),
        ("a.csv", b"x,y\n" + b"1;2,3;4\n" * 300_000, ",", "utf-8", "\n"),
    ],
)
def test_delimiter_encoding_and_line_end_are_found(tmp_path, name, content, delimiter, encoding, line_end):
    (tmp_path / name).write_bytes(content)
    table = read_table(tmp_path / name)
    assert (table.delimiter, table.encoding, table.line_end, table.format) == (delimiter, encoding, line_end, "csv")


@pytest.mark.parametrize("first", ["sep=;", '"sep=;"', "SEP=;"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_first_line_that_names_the_delimiter_is_no_row_and_stays(tmp_path, first, encoding):
    content = f"{first}\r\na;b,c\r\n1;2,5\r\n\r\n3;\r\n"
    (tmp_path / "in.csv").write_bytes(content.encode(encoding))
    table = read_table(tmp_path / "in.csv")
    assert (table.names, table.n_rows, table.delimiter) == (["a", "b,c"], 2, ";")
    write_filled(table, "b,c", [None, "x"], {}, tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_bytes() == content.replace("3;", "3;x").encode(encoding)


def test_what_looks_like_such_a_line_only_in_part_is_a_header(tmp_path):
    (tmp_path / "in.csv").write_text("sep=,b\n1,2\n")
    assert read_table(tmp_path / "in.csv").names == ["sep=", "b"]
    (tmp_path / "in.csv").write_text("sep=;\n\n")
    with pytest.raises(ValueError, match="is empty"):
        read_table(tmp_path / "in.csv")
    (tmp_path / "in.csv").write_text("sep=;\na;b\n1;2;3\n")
    with pytest.raises(ValueError, match=r"Line 3 of .* has 3 cells"):
        read_table(tmp_path / "in.csv")

"""Nothing but the filled cells and the appended columns may change."""

import csv
import io
import os
import resource
import signal
import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernelweave.errors import ErrorCode, KernelweaveError
from kernelweave.labeling.table import is_empty, read_table, write_filled

ODD = ["", "", "007", "1.10", "1e5", "NA", "None", "nan", " ", " x ", "a,b", "a;b", "a\tb", "a|b", "two\nlines", "\r\n"]
ODD += ['say "hi"', '"', '""', '5" pipe', "'", "\\", "\\N", "é", "ü", "\u2028", "漢字", "😀", "=1+1", "#", "-", "True"]
MARKS = {"utf-8": b"", "latin-1": b"", "utf-8-sig": b"", "utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}
# 100 examples of about 30 ms; the clock of a busy machine is no reason to fail.
many = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))


def quote(text):
    return '"' + text.replace('"', '""') + '"'


def needs_quotes(text, delimiter):
    return any(special in text for special in (delimiter, '"', "\n", "\r"))


def cells(encoding):
    """Text, and whether to quote it if it need not be."""
    letters = st.text(st.characters(exclude_categories=("Cs", "Cc"), codec=encoding.removesuffix("-sig")), max_size=6)
    odd = [text for text in ODD if text.encode(encoding, "ignore").decode(encoding) == text]
    return st.tuples(st.sampled_from(odd) | letters, st.booleans())


class Drawn:
    """A table drawn cell by cell: `raw` as in the file, header first, each line followed by its `ends`."""

    def __init__(self, data):
        self.encoding = data.draw(st.sampled_from(list(MARKS)))
        n_columns, n_rows = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 6))
        self.delimiter = data.draw(st.sampled_from(",;\t|")) if n_columns > 1 else ","
        self.names = data.draw(
            st.lists(cells("ascii").map(lambda c: "h" + c[0]), min_size=n_columns, max_size=n_columns, unique=True)
        )
        drawn = [[data.draw(cells(self.encoding)) for _ in self.names] for _ in range(n_rows)]
        self.texts = [[text for text, _ in row] for row in drawn]
        # Header cells are quoted if they hold any delimiter: which one is meant would be anyone's guess.
        self.raw = [[quote(name) if any(d in name for d in ',;\t|"\r\n') else name for name in self.names]]
        self.raw += [[self.written(*cell, alone=n_columns == 1) for cell in row] for row in drawn]
        blank = [] if n_columns == 1 else ["\n\n", "\r\r\n"]
        usual = data.draw(st.sampled_from(["\n", "\r\n", "\r"]))
        self.ends = [data.draw(st.sampled_from([usual] * 5 + ["\n", "\r\n", "\r", *blank])) for _ in self.raw]
        self.ends[-1] = data.draw(st.sampled_from(["", usual, "\n\n\n", "\r\n\r\n"]))

    def written(self, text, quoted, alone):
        stray = '"' in text and not text.startswith('"') and not any(s in text for s in self.delimiter + "\r\n")
        needed = needs_quotes(text, self.delimiter) and not stray
        return quote(text) if quoted or needed or (alone and not text) else text

    def file(self, raw=None):
        lines = [self.delimiter.join(row) + end for row, end in zip(raw or self.raw, self.ends, strict=True)]
        return MARKS[self.encoding] + "".join(lines).encode(self.encoding)


def read_by_csv(path, table):
    text = path.read_bytes().decode(table.encoding).removeprefix("\ufeff")
    return [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=table.delimiter) if row]


@many
@given(st.data())
def test_only_the_filled_cells_and_the_appended_columns_change(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("drawn", numbered=True)
    drawn = Drawn(data)
    path, out = folder / "in.csv", folder / "out.csv"
    path.write_bytes(drawn.file())
    table = read_table(path)
    assert table.n_rows == len(drawn.texts)
    assert table.delimiter == drawn.delimiter
    before = read_by_csv(path, table)
    assert [table.names, *zip(*(table.column(name) for name in table.names), strict=True)] == [
        row if i == 0 else tuple(row) for i, row in enumerate(before)
    ]
    if drawn.encoding != "latin-1":  # bytes of Latin-1 may happen to be UTF-8
        assert before == [drawn.names, *drawn.texts]

    write_filled(table, table.names[0], [None] * table.n_rows, {}, out)
    assert out.read_bytes() == path.read_bytes()

    j = data.draw(st.integers(0, len(drawn.names) - 1))
    fills = [data.draw(cells("ascii"))[0] if not row[j].strip() else None for row in drawn.texts]
    fills = [text if text is None or data.draw(st.booleans()) else None for text in fills]
    extra = {name: [data.draw(cells("ascii"))[0] for _ in fills] for name in ("new", "p;q,r")}
    write_filled(table, table.names[j], fills, extra, out)
    after = [
        [*row, *new] for row, new in zip(before, zip(*([n, *c] for n, c in extra.items()), strict=True), strict=True)
    ]
    raw = [list(row) for row in drawn.raw]
    for i, text in enumerate(fills, 1):
        if text is not None:
            after[i][j] = text
            quoted = raw[i][j].startswith('"') or needs_quotes(text, drawn.delimiter)
            raw[i][j] = quote(text) if quoted else text
    assert read_by_csv(out, table) == after
    for row, cells_after in zip(raw, after, strict=True):
        row += [quote(text) if needs_quotes(text, drawn.delimiter) else text for text in cells_after[-2:]]
    assert out.read_bytes() == drawn.file(raw)
    assert sorted(os.listdir(folder)) == ["in.csv", "out.csv"]


def test_only_a_blank_text_is_empty_unless_another_is_named(tmp_path):
    path = tmp_path / "in.csv"
    path.write_bytes(b'x,y\n1,\n2,""\n3,NA\n4,None\n5,nan\n6, \n7,?\n')
    assert is_empty(read_table(path), "y").tolist() == [True, True] + [False] * 3 + [True, False]
    assert is_empty(read_table(path), "y", "?").tolist() == [True, True] + [False] * 3 + [True] * 2
    path.write_bytes(b"x,y\n1,NA\n2, NA \n3,na\n4,N A\n5,\n")
    for unlabeled in ("NA", "NA "):  # blanks around a text do not count
        assert is_empty(read_table(path), "y", unlabeled).tolist() == [True, True, False, False, True]
    assert is_empty(read_table(path), "y", " ").tolist() == [False] * 4 + [True]


def test_a_cell_that_is_not_empty_is_never_filled(tmp_path):
    path = tmp_path / "in.csv"
    path.write_bytes(b"x,y\n1,\n2,?\n")
    table = read_table(path)
    with pytest.raises(ValueError, match="row 1 of column 'y' is not empty"):
        write_filled(table, "y", [None, "a"], {}, tmp_path / "out.csv")
    with pytest.raises(ValueError, match="longer"):
        write_filled(table, "y", [None], {}, tmp_path / "out.csv")
    with pytest.raises(ValueError, match="shorter"):
        write_filled(table, "y", [None, None], {"p": ["1"]}, tmp_path / "out.csv")
    assert os.listdir(tmp_path) == ["in.csv"]
    write_filled(table, "y", [None, "a"], {}, tmp_path / "out.csv", unlabeled="?")
    assert (tmp_path / "out.csv").read_bytes() == b"x,y\n1,\n2,a\n"


BROKEN = {
    "empty": (b"", ErrorCode.EMPTY, "is empty"),
    "blank lines": (b"\r\n\n", ErrorCode.EMPTY, "is empty"),
    "mark only": (b"\xef\xbb\xbf", ErrorCode.EMPTY, "is empty"),
    "header only": (b"x,y\n", ErrorCode.NO_ROWS, "no rows"),
    "short row": (b'x,y\n"1\r\n",2\r3\n', ErrorCode.RAGGED, r"Line 4 of .* has 1 cell, but the header has 2"),
    "long row": (b"x,y\n1,2\n\n3,4,5\n", ErrorCode.RAGGED, r"Line 4 of .* has 3 cells, but the header has 2"),
    "same name twice": (b"x,y,x\n1,2,3\n", ErrorCode.BAD_NAMES, "more than one column 'x'"),
    "no name": (b"x,,z\n1,2,3\n", ErrorCode.BAD_NAMES, "Column 2 of .* has no name"),
    "open quote": (b'x,y\n1,2\n"3,4\n5,6\n', ErrorCode.NOT_A_TABLE, "opens in line 3 of .* never closed"),
    "zeros": (b"x,y\n1,\0\n", ErrorCode.NOT_A_TABLE, "neither text nor Parquet"),
    "noise": (bytes(range(1, 256)) * 9, ErrorCode.NOT_A_TABLE, "neither text nor Parquet"),
    "workbook": (b"PK\x03\x04\x14\0\x06\0", ErrorCode.NOT_A_TABLE, "Excel workbook"),
    "gzip": (b"\x1f\x8b\x08\0\0", ErrorCode.NOT_A_TABLE, "gzip"),
    "half of a Parquet file": (b"PAR1\x15\0\x15", ErrorCode.NOT_A_TABLE, "broken Parquet"),
    "no Parquet between the marks": (b"PAR1\x15\0\x15PAR1", ErrorCode.NOT_A_TABLE, "broken Parquet"),
    "broken UTF-8": (b"\xef\xbb\xbfx,y\n\xff,2\n", ErrorCode.UNDECODABLE, "utf-8-sig"),
    "broken UTF-16": (b"\xff\xfex\0,\0y\0\n\0\0\xd8", ErrorCode.UNDECODABLE, "utf-16-le"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_table_gets_one_sentence(tmp_path, kind):
    content, code, message = BROKEN[kind]
    (tmp_path / "in.csv").write_bytes(content)
    with pytest.raises(KernelweaveError, match=message) as caught:
        read_table(tmp_path / "in.csv")
    assert caught.value.code is code
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


def test_what_is_no_readable_file_gets_one_sentence(tmp_path, monkeypatch):
    def code_of(path):
        with pytest.raises(KernelweaveError, match=r"cannot be read: [\w ]+\.$") as caught:
            read_table(path)
        return caught.value.code

    (tmp_path / "in.csv").write_bytes(b"x,y\n1,2\n")
    assert code_of(tmp_path / "none.csv") is ErrorCode.NOT_FOUND
    assert code_of(tmp_path) is ErrorCode.NOT_A_TABLE
    assert code_of(tmp_path / "in.csv" / "none") is ErrorCode.UNREADABLE
    assert code_of("a\0b") is ErrorCode.UNREADABLE

    def refuse(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.read_bytes", refuse)  # root may read everything
    assert code_of(tmp_path / "in.csv") is ErrorCode.UNREADABLE


def small(folder, content=b"x,y\n\xe9,\n"):
    (folder / "in.csv").write_bytes(content)
    return read_table(folder / "in.csv")


def test_outputs_that_cannot_be_are_refused_and_nothing_is_left(tmp_path, monkeypatch):
    table = small(tmp_path)
    (tmp_path / "link.csv").symlink_to("in.csv")
    os.link(tmp_path / "in.csv", tmp_path / "hard.csv")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    before = sorted(os.listdir(tmp_path))

    def code_of(out, value=None, extra=None):
        with pytest.raises(KernelweaveError) as caught:
            write_filled(table, "y", [value], extra or {}, tmp_path / out)
        assert sorted(os.listdir(tmp_path)) == before
        assert (tmp_path / "in.csv").read_bytes() == b"x,y\n\xe9,\n"
        return caught.value.code

    for same in ("in.csv", "link.csv", "hard.csv", "folder/../in.csv"):
        assert code_of(same) is ErrorCode.SAME_FILE
    for wrong in ("folder", "none/out.csv", "pipe", "in.csv/out.csv", "n" * 300):
        assert code_of(wrong) is ErrorCode.NOT_WRITABLE
    assert code_of("out.csv", value="漢") is ErrorCode.UNENCODABLE
    assert code_of("out.csv", extra={"漢": [""]}) is ErrorCode.UNENCODABLE
    assert code_of("out.csv", extra={"x": [""]}) is ErrorCode.BAD_NAMES
    with monkeypatch.context() as patch:
        patch.setattr(os, "access", lambda path, mode: False)
        (tmp_path / "old.csv").write_bytes(b"")
        before.append("old.csv")
        before.sort()
        assert code_of("old.csv") is ErrorCode.NOT_WRITABLE

    def refuse(dir):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    assert code_of("out.csv") is ErrorCode.NOT_WRITABLE


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_full_disk_is_said_and_nothing_is_left(tmp_path, kind):
    frame = pd.DataFrame({"x": np.random.default_rng(0).normal(size=3000), "y": [None, "a", "b"] * 1000})
    path = tmp_path / f"in.{kind}"
    frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
    table = read_table(path)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))  # Python ignores the signal and gets an error
    try:
        with pytest.raises(KernelweaveError, match="cannot be written: File too large") as caught:
            write_filled(table, "y", [None] * 3000, {}, tmp_path / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert caught.value.code is ErrorCode.NO_SPACE
    assert os.listdir(tmp_path) == [path.name]


def test_a_kill_at_any_moment_leaves_no_output_or_the_whole(tmp_path):
    content = b"x,y\n" + b"".join(b"%d,\n" % i for i in range(30_000))  # more than one piece
    table = small(tmp_path, content)
    out, whole = tmp_path / "out.csv", content.replace(b",\n", b",a,0.5\n").replace(b"x,y\n", b"x,y,p\n")
    seen, duration = set(), 0.0
    for moment in [None, "fsync", "replace", *np.linspace(0.0, 1.3, 40)]:
        start = time.monotonic()
        child = os.fork()
        if not child:
            if isinstance(moment, str):
                setattr(os, moment, lambda *args: signal.raise_signal(signal.SIGKILL))
            try:
                write_filled(table, "y", ["a"] * table.n_rows, {"p": ["0.5"] * table.n_rows}, out)
            finally:
                os._exit(0)
        if isinstance(moment, float):
            time.sleep(moment * duration)
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        duration = duration or time.monotonic() - start
        assert not out.exists() or out.read_bytes() == whole
        assert len(list(tmp_path.glob(".out.csv.*.part"))) <= 1  # each run removes what the one before has left
        seen.add((moment if isinstance(moment, str) else "", out.exists()))
        out.unlink(missing_ok=True)
    assert seen == {("fsync", False), ("replace", False), ("", True), ("", False)}
    (tmp_path / ".out.csv.0123abcd.part").write_bytes(b"stale")
    (tmp_path / ".out.csv.mine.part").write_bytes(b"someone else's")
    write_filled(table, "y", ["a"] * table.n_rows, {"p": ["0.5"] * table.n_rows}, out)
    assert sorted(os.listdir(tmp_path)) == [".out.csv.mine.part", "in.csv", "out.csv"]

"""Kinds of broken input: each is one sentence and an exit code, without a traceback, and no file is changed."""

import gzip
import io
import re
import zipfile
from importlib.metadata import version

import numpy as np
import pytest
from checks.command import rows, run, write

from kernelweave.cli.errors import EXIT_CODES
from kernelweave.errors import ErrorCode
from kernelweave.persistence import load_with_about
from kernelweave.persistence.archive import make_compact
from kernelweave.persistence.seal import FORMAT, add_seal

LABEL = ("label", "in.csv", "--target", "y")
COMPARE, EXPLAIN = ("compare", *LABEL[1:]), ("explain", *LABEL[1:])
NUMBERS = b"x,y\n" + b"".join(b"%d.5,%d.25\n" % (i * i % 37, i * 7 % 31) for i in range(30)) + b"2.5,\n"


def zipped(**contents):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in contents.items():
            archive.writestr(name.replace("__", "/").replace("_xml", ".xml"), content)
    return buffer.getvalue()


def arrays(**given):
    buffer = io.BytesIO()
    np.savez(buffer, **given)
    return buffer.getvalue()


def of(name, *options, command="label"):
    """The words of a command on a table of another name."""
    return (command, name, "--target", "y", *options)


# What the files hold (bytes: in.csv), the words of the command, the kind of error, and what the sentence says.
BROKEN = {
    "no such file": (None, ("label", "none.csv", "--target", "y"), ErrorCode.NOT_FOUND, "none.csv"),
    "a folder": (None, ("label", ".", "--target", "y", "-o", "o.csv"), ErrorCode.NOT_A_TABLE, "folder|irectory"),
    "an empty file": (b"", LABEL, ErrorCode.EMPTY, "empty"),
    "a header only": (b"x,y\n", LABEL, ErrorCode.NO_ROWS, "no rows|only a header|row"),
    "a ragged row": (b"x,y\n1,a\n1,2,3\n2,\n", LABEL, ErrorCode.RAGGED, "Line 3"),
    "a workbook": (b"PK\x03\x04" + bytes(99), LABEL, ErrorCode.NOT_A_TABLE, "workbook"),
    "binary noise": (bytes(range(256)) * 9, LABEL, ErrorCode.NOT_A_TABLE, "not a table|table"),
    "a name twice": (b"x,x,y\n1,2,a\n1,2,\n", LABEL, ErrorCode.BAD_NAMES, "x"),
    "a cut Parquet file": (b"PAR1" + bytes(50), LABEL, ErrorCode.NOT_A_TABLE, "Parquet"),
    "no such column": (
        None,
        ("label", "in.csv", "--target", "nope"),
        ErrorCode.NO_SUCH_COLUMN,
        "no column 'nope'; it has",
    ),
    "no such ignored column": (None, (*LABEL, "--ignore", "nope"), ErrorCode.NO_SUCH_COLUMN, "no column 'nope'"),
    "no such group": (None, (*LABEL, "--group", "nope"), ErrorCode.NO_SUCH_COLUMN, "no column 'nope'"),
    "no empty cell": (b"x,y\n1,a\n2,b\n", LABEL, ErrorCode.BAD_TARGET, "no empty cell"),
    "no label": (b"x,y\n1,\n2,\n", LABEL, ErrorCode.BAD_TARGET, "label some rows"),
    "one class": (b"x,y\n1,a\n2,a\n3,\n", LABEL, ErrorCode.BAD_TARGET, "two classes"),
    "one row of a class": (b"x,y\n1.5,a\n2.1,a\n3.7,b\n4.2,\n", LABEL, ErrorCode.BAD_TARGET, "only one labelled row"),
    "counts": (b"x,y\n1.5,3\n2.1,3\n3.7,12\n4.2,\n", LABEL, ErrorCode.BAD_TARGET, "use --task regression"),
    "amounts": (b"x,y\n1.5,3 mg\n2.1,4 mg\n3.7,7 mg\n4.2,\n", LABEL, ErrorCode.BAD_TARGET, "amounts with a unit"),
    "one number": (
        b"x,y\n1.5,3\n4.2,\n",
        (*LABEL, "--task", "regression"),
        ErrorCode.BAD_TARGET,
        "Only one row of 'y'",
    ),
    "no feature": (b"x,y\n1,a\n1,a\n1,b\n1,b\n1,\n", LABEL, ErrorCode.NO_FEATURES, "No column is left"),
    "regression on words": (None, (*LABEL, "--task", "regression"), ErrorCode.BAD_TARGET, "needs numbers"),
    "an unknown task": (None, (*LABEL, "--task", "guess"), ErrorCode.BAD_OPTION, "not one of auto"),
    "an unknown scale": (None, (*LABEL, "--scale", "big"), ErrorCode.BAD_OPTION, "not one of auto"),
    "a source without columns": (None, (*LABEL, "--source", "genes"), ErrorCode.BAD_OPTION, "NAME=COLUMNS"),
    "a source of unknown columns": (None, (*LABEL, "--source", "g=gene_*"), ErrorCode.BAD_SOURCE, "gene_"),
    "no name for the output": (
        None,
        (*LABEL, "-o", ""),
        ErrorCode.NOT_WRITABLE,
        r"'\.' cannot be written: it is not a",
    ),
    "the folder itself as output": (None, (*LABEL, "-o", "."), ErrorCode.NOT_WRITABLE, "it is not a file"),
    "the root as output": (None, (*LABEL, "-o", "/"), ErrorCode.NOT_WRITABLE, "'/' cannot be written: it is not a"),
    "a seed beyond 32 bits": (
        None,
        (*LABEL, "--seed", str(2**32)),
        ErrorCode.BAD_OPTION,
        r"--seed 4294967296 is too large; give a whole number from 0 to 4294967295\.$",
    ),
    "the input as output": (None, (*LABEL, "-o", "in.csv"), ErrorCode.SAME_FILE, "'in.csv' is the input itself"),
    "an output folder that is not there": (None, (*LABEL, "-o", "no/out.csv"), ErrorCode.NOT_WRITABLE, "no folder"),
    "an output folder without files": (
        None,
        (*LABEL, "-o", "/proc/o.csv"),
        ErrorCode.NOT_WRITABLE,
        "can be made|no folder",
    ),
    "a folder as output": (None, (*LABEL, "-o", "sub"), ErrorCode.NOT_WRITABLE, "cannot be written"),
    "a model that cannot be written": (None, (*LABEL, "--model", "no/m.skops"), ErrorCode.NOT_WRITABLE, "no folder"),
    "numbers with thousands": (
        b"x;y\n" + b"".join(b"%d.5;%s\n" % (i * i % 37, f"{950 + 9 * i:,}".encode()) for i in range(30)) + b"2.5;\n",
        LABEL,
        ErrorCode.BAD_TARGET,
        "'1,004'.*--task classification",
    ),
    "a spelled-out missing label": (b"x,y\n1,a\n2,b\n3,NA\n", LABEL, ErrorCode.BAD_TARGET, "--unlabeled NA"),
    "a number that is too large": (
        b"x,y\n1.5,a\n2.1,a\n1.7976931348623157e308,b\n4.2,b\n3.3,\n",
        LABEL,
        ErrorCode.BAD_FEATURES,
        "'x' holds 1.79769e",
    ),
    "the target as a source": (None, (*LABEL, "--source", "a=x,y"), ErrorCode.BAD_SOURCE, "names the target 'y'"),
    "a source with nothing left": (None, (*LABEL, "--source", "a=id"), ErrorCode.BAD_SOURCE, "No column of source 'a'"),
    "CSV as Parquet": (None, (*LABEL, "-o", "out.parquet"), ErrorCode.BAD_OPTION, "ends in .parquet, but .* is text"),
    "commas as tabs": (None, (*LABEL, "-o", "out.tsv"), ErrorCode.BAD_OPTION, "ends in .tsv"),
    "CSV as gzip": (None, (*LABEL, "-o", "out.csv.gz"), ErrorCode.BAD_OPTION, "ends in .gz"),
    "a folder without an output": (
        None,
        ("label", ".", "--target", "y"),
        ErrorCode.BAD_OPTION,
        "name a folder for them with -o",
    ),
    "a pipe without an output": (
        None,
        ("label", "/dev/null", "--target", "y"),
        ErrorCode.BAD_OPTION,
        "name the copy with -o",
    ),
    "no such model": (
        None,
        ("predict", "none.skops", "in.csv"),
        ErrorCode.BAD_MODEL,
        "'none.skops' cannot be read: No such",
    ),
    "a model that is none": (
        None,
        ("predict", "in.csv", "in.csv", "-o", "o.csv"),
        ErrorCode.BAD_MODEL,
        "not a model file",
    ),
    "one group": (
        b"x,g,y\n1.5,c,a\n2.1,c,a\n3.7,c,b\n4.2,c,b\n4.4,d,\n",
        (*LABEL, "--group", "g"),
        ErrorCode.BAD_GROUPS,
        "group",
    ),
    # Files of other kinds
    "a cut archive": (
        {"t.csv.gz": gzip.compress(b"x,y\n1,a\n" * 99)[:-30]},
        of("t.csv.gz"),
        ErrorCode.NOT_A_TABLE,
        "broken gzip",
    ),
    "an archive in an archive": (
        {"t.csv.gz": gzip.compress(gzip.compress(b"x,y\n", mtime=0))},
        of("t.csv.gz"),
        ErrorCode.NOT_A_TABLE,
        "archive within an archive|neither text",
    ),
    "an empty archive": ({"t.csv.gz": gzip.compress(b"")}, of("t.csv.gz"), ErrorCode.EMPTY, "is empty"),
    "a broken workbook": (
        {"t.xlsx": zipped(xl__workbook_xml="<nothing")},
        of("t.xlsx"),
        (ErrorCode.NOT_A_TABLE, ErrorCode.UNSUPPORTED),  # the latter without openpyxl
        "broken workbook|needs openpyxl",
    ),
    "a workbook of the old kind": (
        {"t.xls": b"\xd0\xcf\x11\xe0" + bytes(600)},
        of("t.xls"),
        ErrorCode.NOT_A_TABLE,
        r"old kind \(.xls\)",
    ),
    "an OpenDocument table": ({"t.ods": zipped(mimetype="x")}, of("t.ods"), ErrorCode.NOT_A_TABLE, "OpenDocument"),
    "a zip archive": ({"t.zip": zipped(readme="x")}, of("t.zip"), ErrorCode.NOT_A_TABLE, "a zip archive; unpack"),
    "a bzip2 archive": (
        {"t.bz2": b"BZh91AY" + bytes(99)},
        of("t.bz2"),
        ErrorCode.NOT_A_TABLE,
        "a bzip2 archive; unpack",
    ),
    "a PDF document": ({"t.pdf": b"%PDF-1.7" + bytes(99)}, of("t.pdf"), ErrorCode.NOT_A_TABLE, "a PDF document"),
    "a database": ({"t.db": b"SQLite format 3\0" + bytes(99)}, of("t.db"), ErrorCode.NOT_A_TABLE, "a SQLite database"),
    "arrays without X": ({"t.npz": arrays(Z=np.ones((3, 2)))}, of("t.npz"), ErrorCode.NOT_A_TABLE, "needs an array X"),
    "X of one dimension": ({"t.npz": arrays(X=np.ones(3))}, of("t.npz"), ErrorCode.NOT_A_TABLE, "two dimensions"),
    "y of another length": (
        {"t.npz": arrays(X=np.ones((3, 2)), y=np.ones(2))},
        of("t.npz"),
        ErrorCode.NOT_A_TABLE,
        r"y has the shape \(2,\), but X has 3 rows",
    ),
    "arrays of objects": (
        {"t.npz": arrays(X=np.ones((2, 2)), y=np.array([None, "a"], dtype=object))},
        of("t.npz"),
        ErrorCode.NOT_A_TABLE,
        "Python objects",
    ),
    "arrays without y": ({"t.npz": arrays(X=np.ones((3, 2)))}, of("t.npz"), ErrorCode.NO_SUCH_COLUMN, "no column 'y'"),
    "blank lines": (b"\n\r\n\n", LABEL, ErrorCode.EMPTY, "empty"),
    "an open quote": (b'x,y\n1,a\n"2,b\n3,\n', LABEL, ErrorCode.NOT_A_TABLE, "opens in line 3 .* never closed"),
    "a column without a name": (b"x,,y\n1,2,a\n", LABEL, ErrorCode.BAD_NAMES, "Column 2 .* has no name"),
    "a wrong byte-order mark": (b"\xff\xfex\0,\0y\0\n\0\0\xd8", LABEL, ErrorCode.UNDECODABLE, "utf-16-le"),
    "escapes in the names": (
        b"\x1b[2J,y\x9b\n1,a\n",
        LABEL,
        ErrorCode.NO_SUCH_COLUMN,
        r"no column 'y'; it has '\\x1b\[2J'",
    ),
    # Outputs
    "CSV as a workbook": (None, (*LABEL, "-o", "out.xlsx"), ErrorCode.BAD_OPTION, "ends in .xlsx, but the copy"),
    "CSV as arrays": (None, (*LABEL, "-o", "out.npz"), ErrorCode.BAD_OPTION, "ends in .npz, but the copy"),
    "an archive as CSV": (
        {"t.csv.gz": gzip.compress(b"x,y\n1,a\n2,\n")},
        of("t.csv.gz", "-o", "out.csv"),
        ErrorCode.BAD_OPTION,
        "text in a gzip archive",
    ),
    "arrays on standard output": (
        {"t.npz": arrays(X=np.ones((3, 2)), y=np.array([1.0, 0.0, np.nan]))},
        of("t.npz", "-o", "-"),
        ErrorCode.BAD_OPTION,
        "arrays of numpy, which is not printed",
    ),
    "a report and a copy on standard output": (
        None,
        (*LABEL, "-o", "-", "--json"),
        ErrorCode.BAD_OPTION,
        "--json and the copy",
    ),
    # Several tables
    "two tables without an identifier": (
        {"b.csv": b"id,w\n1,2\n"},
        ("label", "in.csv", "b.csv", "--target", "y"),
        ErrorCode.BAD_OPTION,
        "2 tables are joined on one column, and 0 are named",
    ),
    "two tables and two identifiers": (
        {"b.csv": b"id,w\n1,2\n"},
        ("label", "in.csv", "b.csv", "--target", "y", "--id", "id", "--id", "x"),
        ErrorCode.BAD_OPTION,
        "and 2 are named",
    ),
    "a second table without the identifier": (
        {"b.csv": b"name,w\n1,2\n"},
        ("label", "in.csv", "b.csv", "--target", "y", "--id", "id"),
        ErrorCode.NO_SUCH_COLUMN,
        "'b.csv' has no column 'id'",
    ),
    "identifiers that do not meet": (
        {"b.csv": b"id,w\nz,2\n"},
        ("compare", "in.csv", "b.csv", "--target", "y", "--id", "id"),
        ErrorCode.BAD_OPTION,
        "No 'id' of 'in.csv' is in 'b.csv'",
    ),
    "an identifier twice": (
        {"b.csv": b"id,w\n001,2\n001,3\n"},
        ("explain", "in.csv", "b.csv", "--target", "y", "--id", "id"),
        ErrorCode.BAD_OPTION,
        "more than one row whose 'id' is '001'",
    ),
    "the second table as output": (
        {"b.csv": b"id,w\n001,2\n"},
        ("label", "in.csv", "b.csv", "--target", "y", "--id", "id", "-o", "b.csv"),
        ErrorCode.SAME_FILE,
        "is the input itself",
    ),
    "standard input twice": (
        None,
        ("label", "-", "-", "--target", "y", "--id", "id", "-o", "o.csv"),
        ErrorCode.BAD_OPTION,
        "name it once",
    ),
    # Words of the command
    "no target": (None, ("label", "in.csv"), ErrorCode.BAD_OPTION, "Missing option '--target'.*See: kernelweave label"),
    "no table": (None, ("compare", "--target", "y"), ErrorCode.BAD_OPTION, "Missing argument.*kernelweave compare"),
    "an unknown option": (None, (*LABEL, "--targets", "y"), ErrorCode.BAD_OPTION, "No such option.*--targets"),
    "an unknown command": (None, ("lable", "in.csv"), ErrorCode.BAD_OPTION, "No such command 'lable'"),
    "a seed that is no number": (None, (*LABEL, "--seed", "x"), ErrorCode.BAD_OPTION, "'--seed'.* valid integer"),
    "a time that is no number": (
        None,
        (*COMPARE, "--time-limit", "soon"),
        ErrorCode.BAD_OPTION,
        "'--time-limit'.* valid ",
    ),
    "an option of info": (None, ("info", "--all"), ErrorCode.BAD_OPTION, "No such option.*--all"),
    "an unknown paper": (None, ("papers", "run", "nature"), ErrorCode.BAD_OPTION, "no paper 'nature'"),
    "escapes in an option": (None, (*LABEL, "--\x1b[31m"), ErrorCode.BAD_OPTION, r"No such option.*\\x1b"),
    # compare and explain
    "no such file to compare": (None, of("none.csv", command="compare"), ErrorCode.NOT_FOUND, "none.csv"),
    "no such column to compare": (
        None,
        ("compare", "in.csv", "--target", "n"),
        ErrorCode.NO_SUCH_COLUMN,
        "no column 'n'",
    ),
    "an unknown learner to compare": (
        None,
        (*COMPARE, "--learner", "SVN"),
        ErrorCode.BAD_OPTION,
        "'SVN' is not a learner for",
    ),
    "no label to compare by": (b"x,y\n1,\n2,\n", COMPARE, ErrorCode.BAD_TARGET, "label some rows"),
    "one class to compare by": (b"x,y\n1,a\n2,a\n3,\n", COMPARE, ErrorCode.BAD_TARGET, "two classes"),
    "a negative seed": (None, (*COMPARE, "--seed", "-1"), ErrorCode.BAD_OPTION, "--seed -1 is negative"),
    "no time to compare": (None, (*COMPARE, "--time-limit", "0"), ErrorCode.BAD_OPTION, "not a positive number"),
    "an unknown task to compare": (None, (*COMPARE, "--task", "rank"), ErrorCode.BAD_OPTION, "not one of auto"),
    "an unknown learner to explain": (
        None,
        (*EXPLAIN, "--learner", "SVN"),
        ErrorCode.BAD_OPTION,
        "'SVN' is not a learner for",
    ),
    "a negative number of columns": (
        None,
        (*EXPLAIN, "--columns", "-1"),
        ErrorCode.BAD_OPTION,
        "--columns -1 is negative",
    ),
    "numbers to label next": (NUMBERS, (*EXPLAIN, "--next", "3"), ErrorCode.BAD_OPTION, "--next is for classes"),
    "nothing to explain by": (b"x,y\n1,a\n1,a\n1,b\n1,b\n1,\n", EXPLAIN, ErrorCode.NO_FEATURES, "No column is left"),
    "an unknown scale to explain": (None, (*EXPLAIN, "--scale", "big"), ErrorCode.BAD_OPTION, "not one of auto"),
}


def test_there_are_at_least_sixty_kinds():
    assert len(BROKEN) >= 60


@pytest.mark.parametrize("case", BROKEN, ids=str)
def test_broken_input_gives_one_sentence_and_leaves_the_folder_as_it_was(case, tmp_path, monkeypatch, capsys):
    content, arguments, code, sentence = BROKEN[case]
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "in.csv", rows())
    (tmp_path / "sub").mkdir()
    for name, held in (
        content if isinstance(content, dict) else {} if content is None else {"in.csv": content}
    ).items():
        (tmp_path / name).write_bytes(held)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    assert run(*arguments) in [EXIT_CODES[kind] for kind in (code if isinstance(code, tuple) else (code,))]
    printed = capsys.readouterr()
    lines = [line for line in printed.err.splitlines() if line.startswith("kernelweave: ")]
    assert len(lines) == 1
    assert re.search(sentence, lines[0])
    assert not {"\x1b", "\x9b"} & set(printed.err + printed.out)
    assert "Traceback" not in printed.err
    assert printed.out == ""
    after = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    assert after == before
    assert list((tmp_path / "sub").iterdir()) == []


@pytest.mark.parametrize("what", ["target", "class"])
def test_a_crafted_model_with_half_a_character_in_a_name_is_one_sentence(what, tmp_path, monkeypatch, capsys):
    skops, pandas = pytest.importorskip("skops.io"), pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    table = write(tmp_path / "in.csv", rows())
    assert run("label", table, "--target", "y", "--learner", "harmonic", "--model", "m.skops") == 0
    model, about = load_with_about("m.skops")
    if what == "class":
        learner = model[-1].learner
        for part in (learner, *(each for each in vars(learner).values() if hasattr(each, "classes_"))):
            part.classes_ = np.array(["\udcff", "b"], dtype=object)
    about = {**about, "target": "\udcff" if what == "target" else "y"}
    content = {"format": FORMAT, "about": about, "versions": {"scikit-learn": version("scikit-learn")}, "model": model}
    (tmp_path / "m.skops").write_bytes(add_seal(make_compact(skops.dumps(content))))
    pandas.read_csv(table, dtype=str).drop(columns="y").to_parquet(tmp_path / "new.parquet")
    capsys.readouterr()
    assert run("predict", "m.skops", "new.parquet") == EXIT_CODES[ErrorCode.BAD_MODEL]
    (sentence,) = capsys.readouterr().err.splitlines()
    assert sentence.startswith("kernelweave: The model in 'm.skops' cannot be used ('utf-8' codec can't encode")
    assert not (tmp_path / "new.predicted.parquet").exists()

"""Tables that were spoiled: filled in, or refused in one sentence, with nothing half written and nothing that acts."""

import contextlib
import csv
import io
import os
import tempfile
import zipfile
from functools import cache
from pathlib import Path

import numpy as np
import openpyxl
import pandas as pd
from campaign.models import call
from openpyxl.utils.exceptions import IllegalCharacterError

from kernelweave.cli.errors import EXIT_CODES, NOT_POSSIBLE
from kernelweave.cli.harmless import ACTING
from kernelweave.labeling.table import is_empty, read_table

CODES = {0, NOT_POSSIBLE, *EXIT_CODES.values()}
CELLS = (
    *("", " ", "NA", "#N/A", "#DIV/0!", "?", "-", ".", "nan", "inf", "-inf", "1e400", "1e-400", "1,234.5", "1.234,5"),
    *("$3", "12 kg", "95 %", "(3.5)", "0x1F", "1_000", "٣٤", "½", "2024-02-30", "31.12.1999", "12:61", "3 h 5 min"),
    *("TRUE", "None", "null", "=cmd|'/c calc'!A1", "+1", "@sum", "\x1b[2J", "\x9b31m", "\x00", "a\nb", 'a"b', "a,b"),
    *("\ufeff", "\u202e", "é", "\udcff", "x" * 3000, "9" * 400, "1" + "0" * 50, "-0", "1e308", "١", "\u2028", "<b>"),
)
LEARNERS = ("harmonic", "harmonic", "SVM", "logistic regression")
ENCODINGS = ("utf-8", "utf-8", "utf-8-sig", "utf-16", "latin-1", "cp1252", "cp437")
KINDS = ("csv", "csv", "parquet", "xlsx")
COPIES = {"csv": "csv", "parquet": "parquet", "xlsx": "csv"}  # of these kinds


@cache
def folder():
    return Path(tempfile.mkdtemp(prefix="campaign-"))


def run(number):
    """Draw a table, spoil it, and have the command fill it in."""
    rng = np.random.default_rng([3, number])
    kind = KINDS[number % len(KINDS)]
    for path in folder().iterdir():
        path.unlink()
    source = folder() / f"in.{kind}"
    whole = draw_frame(rng)
    frame, (other,) = spoil_cells(rng, whole.copy()), rng.spawn(1)
    WRITERS[kind](rng, frame, source)
    if rng.random() < 0.3:
        spoil_bytes(rng, source)
    words = ["label", "in." + kind, "--target", "y", "--learner", LEARNERS[rng.integers(len(LEARNERS))]]
    for option, share in (("--quiet", 0.8), ("--json", 0.2), ("--probabilities", 0.1)):
        words += [option] * (rng.random() < share)
    words += ["--id", "id"] * (rng.random() < 0.3) + ["--coverage", "0.9"] * (rng.random() < 0.2)
    words += ["--task", str(rng.choice(["classification", "regression"]))] * (rng.random() < 0.1)
    outputs = [f"in.labeled.{COPIES[kind]}", f"in.labeled.{COPIES[kind]}.json"]
    if other.random() < 0.2:
        outputs, words = [*outputs, "m.skops"], [*words, "--model", "m.skops"]
    code, errors, complaints = attack(words, outputs)
    if not code:
        complaints += judge_copy(source, folder() / outputs[0])
    if not code and "m.skops" in outputs:  # other cells of the same table are spoiled
        new = folder() / f"new.{kind}"
        WRITERS[kind](other, spoil_cells(other, whole), new)
        _, said, found = attack(["predict", "m.skops", new.name], [f"new.predicted.{COPIES[kind]}"])
        complaints, errors = complaints + found, errors + said * bool(found)
    about = {"about": " ".join(words), "ended": f"{kind} refused" if code else f"{kind} filled"}
    about |= {"said": errors.strip()[-200:]} if code else {}
    return about | ({"defect": "; ".join(complaints) + f"\n{errors}"[-800:]} if complaints else {})


def attack(words, outputs):
    """Run the command in the folder; return its exit code, what it said, and what is wrong with how it ended."""
    before = {path.name: path.read_bytes() for path in folder().iterdir()}
    with in_folder(folder()):
        code, (errors, printed) = call(*words)
    return code, errors, list(judge(code, errors, printed, before, outputs))


@contextlib.contextmanager
def in_folder(path):
    before = os.getcwd()
    os.chdir(path)
    try:
        yield
    finally:
        os.chdir(before)


def judge(code, errors, printed, before, outputs):
    """What is wrong with how the command ended."""
    if code not in CODES:
        yield f"exit code {code}"
    others = [line for line in errors.splitlines() if not line.startswith("note: ")]
    if len(others) != (code != 0) or not all(line.startswith("kernelweave: ") for line in others):
        yield f"{len(others)} lines beside notes"
    if ACTING.search((errors + printed).replace("\n", "")):
        yield "what is printed acts on a terminal"
    after = {path.name: path.read_bytes() for path in folder().iterdir()}
    new = set(after) - set(before)
    if any(after.get(name) != content for name, content in before.items()):
        yield "the table was changed"
    if code and (new or printed):
        yield f"failed, but there are {sorted(new)} and {len(printed)} characters are printed"
    if not code and new != set(outputs):
        yield f"wrote {sorted(new)}"


def judge_copy(source, copy):
    """What is lost of a table in its copy: every given cell is there as it was, and every empty one of the target is
    filled."""
    old, new = read_table(source), read_table(copy)
    empty = is_empty(old, "y", None)
    if new.names[: len(old.names)] != old.names or new.n_rows != old.n_rows:
        yield f"{old.n_rows} rows of {old.names} became {new.n_rows} of {new.names}"
        return
    for name in old.names:
        kept = ~empty if name == "y" else slice(None)
        if list(old.column(name)[kept]) != list(new.column(name)[kept]):
            yield f"cells of {name!r} are others in the copy"
    if is_empty(new, "y", None).any():
        yield "the target has empty cells"


# Tables


def draw_frame(rng):
    """A small table: numbers, categories, text, dates, a target of which some cells are empty."""
    n = int(rng.integers(12, 60))
    x = rng.normal(size=n)
    frame = pd.DataFrame({"id": [f"{i:03d}" for i in range(n)], "x": np.round(x, 3).astype(str)})
    extra = {
        "kind": rng.choice(["red", "blue", "NA"], n),
        "when": [f"2024-{i % 12 + 1:02d}-{i % 28 + 1:02d}" for i in range(n)],
        "text": [" ".join(rng.choice(["old", "new", "large", "small"], 4)) for _ in range(n)],
        "z": np.round(10.0 ** rng.uniform(-3, 3, n), 4).astype(str),
        "on": rng.choice(["yes", "no"], n),
        "same": ["1"] * n,
    }
    for name in rng.choice(list(extra), size=rng.integers(0, 5), replace=False):
        frame[name] = extra[name]
    truth = np.where(x > 0.2, "b", "a") if rng.random() < 0.7 else (100.5 + np.round(10 * x, 2)).astype(str)
    frame["y"] = np.where(rng.random(n) < rng.uniform(0.4, 0.9), truth, "")
    return frame.astype(object)


def spoil_cells(rng, frame):
    """Put awkward texts into some cells and names."""
    if rng.random() < 0.3:
        return frame
    n_columns = frame.shape[1] - (rng.random() < 0.8)  # mostly without the target
    for _ in range(rng.integers(1, 8)):
        frame.iat[rng.integers(len(frame)), rng.integers(n_columns)] = CELLS[rng.integers(len(CELLS))]
    if rng.random() < 0.2:
        column = rng.integers(n_columns)
        frame.iloc[:, column] = rng.choice(CELLS, len(frame))
    if rng.random() < 0.2:
        names = list(frame)
        names[rng.integers(n_columns)] = CELLS[rng.integers(len(CELLS))]
        frame.columns = pd.Index(names, dtype=object)  # pandas would have texts in UTF-8
    return frame


def write_csv(rng, frame, path):
    """Text of some dialect and encoding; sometimes ragged, sometimes with lines before or after."""
    text = io.StringIO()
    delimiter = [",", ",", ";", "\t", "|"][rng.integers(5)]
    quoting = [csv.QUOTE_MINIMAL, csv.QUOTE_ALL][rng.integers(2)]
    writer = csv.writer(text, delimiter=delimiter, quoting=quoting, lineterminator=["\n", "\r\n"][rng.integers(2)])
    writer.writerows([list(frame), *frame.to_numpy().tolist()])
    lines = text.getvalue()
    if rng.random() < 0.1:
        lines += delimiter.join("xyz") + "\n"
    if rng.random() < 0.05:
        lines = f"sep={delimiter}\n" + lines
    if rng.random() < 0.05:
        lines = "\n# note\n" + lines
    path.write_bytes(lines.encode(ENCODINGS[rng.integers(len(ENCODINGS))], "replace"))


def write_parquet(rng, frame, path):
    """Columns of several types, if their cells allow it."""
    frame = frame.map(lambda cell: cell.encode("utf-8", "replace").decode() if isinstance(cell, str) else cell)
    frame.columns = [name.encode("utf-8", "replace").decode() for name in frame]
    frame["y" if "y" in frame else frame.columns[-1]] = frame.iloc[:, -1].replace("", None)
    for name in dict.fromkeys(frame):
        kind = ["float64", "float32", "category", "int64", "datetime64[ns]", "bool", "string"][rng.integers(7)]
        with contextlib.suppress(ValueError, TypeError, AttributeError, OverflowError):
            if rng.random() < 0.5:
                frame[name] = frame[name].astype(kind)
    with contextlib.suppress(ValueError, TypeError):  # a name twice, say
        frame.to_parquet(path, index=bool(rng.integers(2)), compression=[None, "snappy", "gzip"][rng.integers(3)])
        return
    path.write_bytes(b"PAR1")


def write_book(rng, frame, path):
    """A workbook: numbers as numbers, formulas, an empty sheet before or after, empty rows."""
    book = openpyxl.Workbook()
    sheet = book.active
    if rng.random() < 0.1:
        sheet.append([])
    for row in [list(frame), *frame.to_numpy().tolist()]:
        for attempt in (row, [str(cell).encode("ascii", "ignore").decode().strip("\x00\x1b") for cell in row]):
            try:
                sheet.append([as_number(cell) if rng.random() < 0.7 else cell for cell in attempt])
                break
            except (ValueError, IllegalCharacterError):  # what a workbook cannot hold
                continue
    if rng.random() < 0.1:
        book.create_sheet("other").append(["a", 1])
    content = io.BytesIO()
    book.save(content)
    with zipfile.ZipFile(content) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            if name != "docProps/core.xml":  # which has the time, as entries have
                new.writestr(zipfile.ZipInfo(name), old.read(name), zipfile.ZIP_DEFLATED)


def as_number(cell):
    try:
        return float(cell)
    except ValueError:
        return cell or None


def spoil_bytes(rng, path):
    """Change, cut, repeat or insert bytes."""
    data = bytearray(path.read_bytes())
    for _ in range(rng.integers(1, 6)):
        place = int(rng.integers(max(1, len(data))))
        kind = rng.integers(5)
        if kind == 0 and data:
            data[place] = int(rng.integers(256))
        elif kind == 1:
            del data[place : place + int(rng.integers(1, 20))]
        elif kind == 2:
            data[place:place] = data[place : place + int(rng.integers(1, 50))]
        elif kind == 3:
            data[place:place] = rng.bytes(int(rng.integers(1, 5)))
        elif rng.random() < 0.2:
            del data[place:]
    path.write_bytes(bytes(data))


WRITERS = {"csv": write_csv, "parquet": write_parquet, "xlsx": write_book}

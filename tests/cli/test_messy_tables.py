"""Tables as people have them, from the cells to the filled copy, the record and a saved model."""

import json

import numpy as np
import pytest
from checks.command import read, run, write

HEADER = ("x", "price", "weight", "share", "amount", "start", "took", "name", "y")
N = 60


def messy_rows(seed=0):
    rng = np.random.default_rng(seed)
    x, size = rng.normal(size=N), rng.uniform(5, 60, N)
    lines = [
        [
            f"{x[i]:.3f}",
            f"${1000 * size[i]:,.0f}",
            f"{size[i]:.1f} kg",
            f"{size[i]:.1f}%",
            f"{1000 * size[i]:,.2f}".translate(str.maketrans(",.", ".,")),
            f"{int(size[i]) % 24:02d}:30",
            f"{int(size[i])} min" if i % 2 else f"1 h {int(size[i])} min",
            f"{['ford', 'toyota'][i % 2]} {chr(97 + i % 7) * 3} {i}",
            ("a" if x[i] + 4 * (i % 2) > 2 else "b") if i < 30 else "",
        ]
        for i in range(N)
    ]
    for row, column, text in ((5, 0, "(3.5)"), (7, 0, "#N/A"), (9, 2, "unknown"), (11, 5, "noon"), (40, 1, ".")):
        lines[row][column] = text
    return lines


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    folder = tmp_path_factory.mktemp("messy")
    table = write(folder / "in.csv", messy_rows(), HEADER, delimiter=";")
    table.write_bytes(b"sep=;\r\n" + table.read_bytes())
    files = ["-o", folder / "out.csv", "--model", folder / "m.skops"]
    assert run("label", table, "--target", "y", "--learner", "logistic regression", "--quiet", *files) == 0
    return folder


def test_every_column_is_read_and_gaps_are_in_the_record(done):
    record = json.loads((done / "out.csv.json").read_text())
    kinds = dict.fromkeys(HEADER[:5], "numeric") | {"start": "time of day", "took": "duration", "name": "text"}
    assert record["columns"]["used"] == kinds
    assert record["columns"]["gaps"] == {
        "x": {"(3.5)": 1, "#N/A": 1}, "price": {".": 1}, "weight": {"unknown": 1}, "start": {"noon": 1},
    }  # fmt: skip
    assert record["columns"]["written"]["amount"] == "'.' between thousands, decimal comma"
    (note,) = [note for note in record["warnings"] if "gaps" in note]
    assert note.startswith("Cells that cannot be read are gaps: '(3.5)' and '#N/A' in 'x'; '.' in 'price'")


def test_gaps_are_printed_and_a_saved_model_reads_new_tables_alike(done, capsys):
    new = write(done / "new.csv", [row[:-1] for row in messy_rows(1)], HEADER[:-1], delimiter=";")
    assert run("predict", done / "m.skops", new, "-o", done / "predicted.csv") == 0
    assert "note: Cells that cannot be read are gaps: '(3.5)' and '#N/A' in 'x'" in capsys.readouterr().err
    assert run("predict", done / "m.skops", done / "in.csv", "-o", done / "again.csv") == 0
    again, filled = ([line[8] for line in read(done / name, ";")[2:]] for name in ("again.csv", "out.csv"))
    assert again == filled


def test_a_table_in_other_forms_is_refused_with_the_form_that_was_learned(done, capsys):
    lines = [[row[0], row[1].replace("$", "€"), *row[2:-1]] for row in messy_rows(1)]
    new = write(done / "euro.csv", lines, HEADER[:-1])
    assert run("predict", done / "m.skops", new, "-o", done / "not.csv") == 3
    assert "'price' was numeric (in $, ',' between thousands) in the table" in capsys.readouterr().err

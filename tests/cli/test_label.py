import csv
import json
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

from kernelweave.cli.errors import EXIT_CODES, INTERRUPTED
from kernelweave.cli.main import main
from kernelweave.errors import ErrorCode

N = 60


def rows(n=N, n_labeled=30, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    kind = rng.choice(["a", "b"], n)
    label = np.where(x[:, 0] + (kind == "a") > 0.5, "NA", "None")  # classes with awkward names
    return [
        [f"{i:03d}", f"{x[i, 0]:.3f}", f"{x[i, 1]:.2f}", kind[i], label[i] if i < n_labeled else ""] for i in range(n)
    ]


def write(path, body, header=("id", "x", "z", "kind", "y"), delimiter=","):
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=delimiter).writerows([header, *body])
    return path


@pytest.fixture
def table(tmp_path):
    return write(tmp_path / "in.csv", rows())


def run(*arguments):
    """Run the command in this process, by default with a learner that is quick; return its exit code."""
    quick = ["--learner", "SVM"] if arguments[0] == "label" and "--learner" not in arguments else []
    sys.argv = ["kernelweave", *map(str, arguments), *quick]
    try:
        main()
    except SystemExit as stop:
        return stop.code or 0
    return 0


@pytest.fixture(autouse=True)
def keep_argv(monkeypatch):
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setattr(signal, "signal", lambda *_: None)


def read(path, delimiter=","):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.reader(file, delimiter=delimiter))


def test_label_fills_the_empty_cells_only(table, capsys):
    assert run("label", table, "--target", "y") == 0
    before, after = read(table), read(table.with_name("in.labeled.csv"))
    assert after[0] == [*before[0], "y_probability", "y_margin"]
    for old, new in zip(before[1:], after[1:], strict=True):
        assert new[:4] == old[:4]
        assert new[4] == old[4] or (old[4] == "" and new[4] in ("NA", "None"))
        assert (new[5] == "") == (old[4] != "")
    shown = capsys.readouterr().out
    for word in ("30 rows labelled", "SVM", "majority class", "certificate of SVM: within", "left out: id"):
        assert word in shown


def test_the_record_repeats_the_run(table, tmp_path, capsys):
    assert run("label", table, "--target", "y", "-o", tmp_path / "a.csv", "--seed", 7, "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    record = json.loads((tmp_path / "a.csv.json").read_text())
    assert printed == record
    assert {"versions", "options", "columns", "errors", "leaderboard", "members", "best_certified"} <= set(record)
    seed = record["options"]["seed"]
    assert run("label", table, "--target", record["options"]["target"], "-o", tmp_path / "b.csv", "--seed", seed) == 0
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


def test_a_saved_model_labels_another_table(table, tmp_path, capsys):
    pytest.importorskip("skops")
    assert run("label", table, "--target", "y", "--model", tmp_path / "m.skops") == 0
    other = write(tmp_path / "other.csv", [row[:4] for row in rows(seed=1)], header=("id", "x", "z", "kind"))
    assert run("predict", tmp_path / "m.skops", other) == 0
    after = read(tmp_path / "other.predicted.csv")
    assert after[0][-3:] == ["y", "y_probability", "y_margin"]
    truth = [row[4] for row in rows(n_labeled=N, seed=1)]
    assert np.mean([row[4] == label for row, label in zip(after[1:], truth, strict=True)]) > 0.75
    assert run("predict", tmp_path / "m.skops", table, "-o", tmp_path / "again.csv") == 0
    filled = [row[:5] for row in read(table.with_name("in.labeled.csv"))]
    assert [row[:5] for row in read(tmp_path / "again.csv")] == filled


def test_another_marker_another_delimiter_and_taken_names(tmp_path):
    body = [[*row[:4], row[4] or "?", "p"] for row in rows()]
    path = write(tmp_path / "in.tsv", body, ("id", "x", "z", "kind", "y", "y_probability"), delimiter="\t")
    assert run("label", path, "--target", "y", "--unlabeled", "?") == 0
    after = read(tmp_path / "in.labeled.tsv", "\t")
    assert after[0][-2:] == ["y_probability_2", "y_margin"]
    assert all(row[4] != "?" for row in after)


def test_a_first_column_without_a_name_is_a_row_label(tmp_path, capsys):
    body = [[str(i), *row] for i, row in enumerate(rows())]
    path = write(tmp_path / "in.csv", body, ("", "id", "x", "z", "kind", "y"))
    assert run("label", path, "--target", "y") == 0
    assert "left out: the first column (ID-like" in capsys.readouterr().out


def test_sources_groups_and_regression(tmp_path, capsys):
    body = [[*row[:4], f"{float(row[1]) * 10 + 3:.2f}" if i < 30 else ""] for i, row in enumerate(rows())]
    path = write(tmp_path / "in.csv", body)
    options = ["--source", "left=x,kind", "--source", "right=z", "--group", "id"]
    assert run("label", path, "--target", "y", *options) == 0
    assert "regression (guessed)" in capsys.readouterr().out
    assert read(tmp_path / "in.labeled.csv")[0][-2:] == ["y_low", "y_high"]
    assert run("label", path, "--target", "y", "--next", 3) == EXIT_CODES[ErrorCode.BAD_OPTION]
    assert "--next is for classes, and 'y' holds numbers" in capsys.readouterr().err


def test_probabilities_sets_suspects_and_rows_to_label_are_given_on_request(table, capsys):
    options = ["--probabilities", "--coverage", "0.8", "--suspects", 2, "--next", 3, "--id", "id"]
    assert run("label", table, "--target", "y", *options) == 0
    after = read(table.with_name("in.labeled.csv"))
    assert after[0][5:] == ["y_probability", "y_margin", "y_probability_NA", "y_probability_None", "y_set"]
    for row in after[31:]:
        assert float(row[7]) + float(row[8]) == pytest.approx(1.0, abs=1e-3)
        assert row[4] in row[9].split("|")
    record = json.loads(table.with_name("in.labeled.csv.json").read_text())
    for each in record["suspects"] + record["next"]:
        assert after[each["row"] - 1][0] == each["id"]["id"]  # the header is row 1
    shown = capsys.readouterr().out
    assert "given labels that the model contradicts most, by row of the file:" in shown
    assert "rows of the file that are worth labelling next:" in shown
    assert max(len(line) for line in shown.splitlines() if not line.startswith("written to")) <= 80


def test_several_learners_are_shown_in_a_table(table, capsys):
    assert run("label", table, "--target", "y", "--learner", "auto", "--time-limit", "2") == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in ("harmonic", "logistic regression", "LapSVM, one view", "weight"))
    assert max(len(line) for line in shown.splitlines() if not line.startswith("written to")) <= 80
    assert "\x1b" not in shown


LABEL = ("label", "in.csv", "--target", "y")
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
        "name the copy with -o",
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
}


@pytest.mark.parametrize("case", BROKEN, ids=str)
def test_broken_input_gives_one_sentence_and_leaves_the_folder_as_it_was(case, table, tmp_path, monkeypatch, capsys):
    content, arguments, code, sentence = BROKEN[case]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    if content is not None:
        table.write_bytes(content)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    assert run(*arguments) == EXIT_CODES[code]
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("kernelweave: ")]
    assert len(lines) == 1
    assert __import__("re").search(sentence, lines[0])
    after = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    assert after == before
    assert list((tmp_path / "sub").iterdir()) == []


def test_a_full_disk_leaves_nothing_behind(table, tmp_path, monkeypatch, capsys):
    def no_space(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    assert run("label", table, "--target", "y") == EXIT_CODES[ErrorCode.NO_SPACE]
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]
    assert "space" in capsys.readouterr().err


@pytest.mark.parametrize("nth", [1, 2, 3])
def test_a_full_disk_keeps_what_an_earlier_run_wrote(nth, table, tmp_path, monkeypatch, capsys):
    pytest.importorskip("skops")
    outputs = [tmp_path / name for name in ("out.csv", "out.csv.json", "m.skops")]
    for path in outputs:
        path.write_bytes(b"earlier")
    calls = []

    def no_space(descriptor):
        calls.append(descriptor)
        if len(calls) == nth:  # each of the three files in its turn
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    assert (
        run("label", table, "--target", "y", "-o", outputs[0], "--model", outputs[2]) == EXIT_CODES[ErrorCode.NO_SPACE]
    )
    assert [path.read_bytes() for path in outputs] == [b"earlier"] * 3
    assert sorted(tmp_path.iterdir()) == sorted([table, *outputs])


def test_without_skops_a_model_is_refused_before_the_table_is_read(table, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "skops.io", None)
    assert run("label", table, "--target", "y", "--model", tmp_path / "m.skops") == EXIT_CODES[ErrorCode.BAD_OPTION]
    said = capsys.readouterr().err
    assert "pip install 'kernelweave[io]'" in said
    assert "reading the table" not in said


def test_parquet_keeps_its_kind_and_the_digits_of_small_numbers(tmp_path, capsys):
    x = np.random.default_rng(0).normal(size=60)
    frame = pd.DataFrame({"x": x, "y": np.where(np.arange(60) < 40, 3.2e-11 * (x + 5), np.nan)})
    frame.to_parquet(tmp_path / "in.parquet")
    assert (
        run("label", tmp_path / "in.parquet", "--target", "y", "-o", tmp_path / "out.csv")
        == EXIT_CODES[ErrorCode.BAD_OPTION]
    )
    assert "ends in .csv, but the copy of" in capsys.readouterr().err
    assert run("label", tmp_path / "in.parquet", "--target", "y") == 0
    after = pd.read_parquet(tmp_path / "in.labeled.parquet")
    np.testing.assert_allclose(after["y"], 3.2e-11 * (x + 5), rtol=0.2)


def test_names_with_brackets_are_printed_as_they_are(table, capsys):
    sources = ["--source", "[/b]=x", "--source", "[red]=z,id"]
    assert run("label", table, "--target", "y", *sources, "--learner", "RKDA") == 0
    shown = capsys.readouterr().out
    assert "[/b]" in shown
    assert "Column 'id' of source '[red]' is left out" in shown


def test_json_is_strict(tmp_path, capsys):
    body = [[*row[:4], f"{float(row[1]) * 10 + 3:.2f}" if i < 8 else ""] for i, row in enumerate(rows())]
    path = write(tmp_path / "in.csv", body)

    def refuse(text):
        raise AssertionError(f"{text} is not JSON")

    assert run("label", path, "--target", "y", "--task", "regression", "--json") == 0
    printed = json.loads(capsys.readouterr().out, parse_constant=refuse)
    assert printed["interval_radius"] is None
    json.loads((tmp_path / "in.labeled.csv.json").read_text(), parse_constant=refuse)


def test_blank_cells_of_the_target_are_filled(tmp_path):
    path = write(tmp_path / "in.csv", [[*row[:4], row[4] or "  "] for row in rows()])
    assert run("label", path, "--target", "y") == 0
    assert {row[4] for row in read(tmp_path / "in.labeled.csv")[1:]} == {"NA", "None"}


def test_blanks_around_labels_stay_in_given_cells_and_are_in_no_other(tmp_path, capsys):
    body = [[*row[:4], (f"{row[4]} " if i % 3 == 0 else row[4]) if i < 30 else " ? "] for i, row in enumerate(rows())]
    path = write(tmp_path / "in.csv", body)
    assert run("label", path, "--target", "y", "--unlabeled", "?") == 0
    after = [row[4] for row in read(tmp_path / "in.labeled.csv")[1:]]
    assert after[:30] == [row[4] for row in body[:30]]
    assert set(after[30:]) == {"NA", "None"}


@pytest.mark.parametrize("as_json", [False, True])
def test_a_note_on_the_time_names_the_option(as_json, table, capsys):
    options = ["--time-limit", "0.001", "--learner", "SSMK", *["--json"] * as_json]
    assert run("label", table, "--target", "y", *options) == 0
    printed = capsys.readouterr()
    remedy = "Raise --time-limit, or accept this gap."
    assert (remedy in printed.err) is as_json  # standard output is for programs then
    assert remedy in " ".join(printed.out.split())  # in lines of the terminal's width
    assert "max_time" not in printed.err + printed.out


def test_a_table_may_come_through_a_pipe_if_the_output_is_named(table, tmp_path):
    options = ["--target", "y", "-o", "out.csv", "--learner", "harmonic"]
    command = [sys.executable, "-m", "kernelweave", "label", "/dev/stdin", *options]
    done = subprocess.run(command, input=table.read_bytes(), cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0
    assert len(read(tmp_path / "out.csv")) == N + 1


def test_predict_refuses_a_number_that_is_too_large(table, tmp_path, capsys):
    pytest.importorskip("skops")
    assert run("label", table, "--target", "y", "--model", tmp_path / "m.skops") == 0
    for cell, sentence in (("1e308", "'x' holds 1e+308"), ("1e149", "'x' has values too large for kernels")):
        other = write(tmp_path / "other.csv", [["1", cell, "0.5", "a"]], header=("id", "x", "z", "kind"))
        assert run("predict", tmp_path / "m.skops", other) == EXIT_CODES[ErrorCode.BAD_FEATURES]
        assert sentence in capsys.readouterr().err
    assert not (tmp_path / "other.predicted.csv").exists()


def start(table, out):
    options = ["--target", "y", "-o", str(out), "--learner", "LapSVM"]
    command = [sys.executable, "-m", "kernelweave", "label", str(table), *options]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def test_ctrl_c_leaves_nothing_behind(tmp_path):
    table = write(tmp_path / "in.csv", rows(n=3000, n_labeled=400))
    process = start(table, tmp_path / "out.csv")
    for line in process.stderr:
        if b"cross-validating" in line:
            break
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == INTERRUPTED
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]


@pytest.mark.slow
def test_a_kill_leaves_no_output_or_the_whole_one(table, tmp_path):
    process = start(table, tmp_path / "whole.csv")
    began = time.perf_counter()
    assert process.wait() == 0
    took = time.perf_counter() - began
    whole = (tmp_path / "whole.csv").read_bytes()
    chance = random.Random(0)
    for i in range(8):
        out = tmp_path / f"out{i}.csv"
        process = start(table, out)
        time.sleep(took * chance.uniform(0.5, 1.05))
        process.kill()
        process.wait()
        assert not out.exists() or out.read_bytes() == whole


@pytest.mark.parametrize(
    "options, sentence",
    [
        (("-o", "q.csv", "--model", "q.csv"), "named twice"),
        (("-o", "q.csv", "--model", "q.csv.json"), "named twice"),
        (("--time-limit", "0"), "--time-limit 0 is not a positive number"),
        (("--time-limit", "nan"), "--time-limit nan is not a positive number"),
        (("--seed", "-1"), "--seed -1 is negative"),
        (("--suspects", "-1"), "--suspects -1 is negative"),
        (("--next", "-2"), "--next -2 is negative"),
        (("--coverage", "1"), "--coverage 1 is not a share between 0 and 1"),
        (("--coverage", "nan"), "--coverage nan is not a share between 0 and 1"),
        (("--learner", "nope"), "--learner 'nope' is not a learner for classification; choose one of 'auto', 'MKL'"),
    ],
)
def test_options_that_contradict_are_refused(options, sentence, table, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(*LABEL, *options) in (EXIT_CODES[ErrorCode.BAD_OPTION], EXIT_CODES[ErrorCode.SAME_FILE])
    assert sentence in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]

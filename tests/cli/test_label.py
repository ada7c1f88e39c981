import contextlib
import gzip
import io
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pandas as pd
import pytest
from checks.command import N, read, rows, run, write

from kernelweave import SSMKClassifier, save
from kernelweave.cli import label as label_module
from kernelweave.cli.errors import EXIT_CODES, INTERRUPTED
from kernelweave.errors import ErrorCode


@pytest.fixture
def table(tmp_path):
    return write(tmp_path / "in.csv", rows())


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


def test_predict_out_of_time_says_so_and_writes_nothing(table, tmp_path, capsys):
    pytest.importorskip("skops")
    assert run("label", table, "--target", "y", "--learner", "harmonic", "--model", tmp_path / "m.skops") == 0
    other = tmp_path / "other.csv"
    other.write_bytes(table.read_bytes())
    before = sorted(tmp_path.iterdir())
    predict = ("predict", tmp_path / "m.skops", other, "--time-limit")
    assert run(*predict, "1e-9") == EXIT_CODES[ErrorCode.OUT_OF_TIME]
    said = capsys.readouterr().err
    assert re.search(r"The time limit of 1e-09 s was reached after 0 of \d+ rows; nothing was written\. Raise", said)
    assert sorted(tmp_path.iterdir()) == before
    assert run(*predict, "-1") == EXIT_CODES[ErrorCode.BAD_OPTION]
    assert run(*predict, "1000", "--quiet") == 0
    assert len(read(tmp_path / "other.predicted.csv")) == N + 1


def test_predict_refuses_a_number_that_is_too_large(table, tmp_path, capsys):
    pytest.importorskip("skops")
    assert run("label", table, "--target", "y", "--model", tmp_path / "m.skops") == 0
    for cell, sentence in (("1e308", "'x' holds 1e+308"), ("1e149", "'x' has values too large for kernels")):
        other = write(tmp_path / "other.csv", [["1", cell, "0.5", "a"]], header=("id", "x", "z", "kind"))
        assert run("predict", tmp_path / "m.skops", other) == EXIT_CODES[ErrorCode.BAD_FEATURES]
        assert sentence in capsys.readouterr().err
    assert not (tmp_path / "other.predicted.csv").exists()


# Other kinds of tables


def test_an_archive_stays_an_archive(table, tmp_path):
    packed = tmp_path / "in.csv.gz"
    packed.write_bytes(gzip.compress(table.read_bytes()))
    assert run("label", packed, "--target", "y") == 0
    assert run("label", table, "--target", "y") == 0
    assert (
        gzip.decompress((tmp_path / "in.labeled.csv.gz").read_bytes()) == table.with_name("in.labeled.csv").read_bytes()
    )


def test_a_workbook_is_read_and_the_copy_is_csv(tmp_path, capsys):
    pytest.importorskip("openpyxl")
    frame = pd.DataFrame(rows(), columns=["id", "x", "z", "kind", "y"]).replace("", None)
    frame.astype({"x": float, "z": float}).to_excel(tmp_path / "in.xlsx", index=False)
    before = (tmp_path / "in.xlsx").read_bytes()
    assert run("label", tmp_path / "in.xlsx", "--target", "y") == 0
    assert "and a copy is CSV" in " ".join(capsys.readouterr().out.split())
    after = read(tmp_path / "in.labeled.csv")
    assert [row[0] for row in after[1:]] == [row[0] for row in rows()]
    assert {row[4] for row in after[1:]} == {"NA", "None"}
    assert (tmp_path / "in.xlsx").read_bytes() == before
    assert run("label", tmp_path / "in.xlsx", "--target", "y", "-o", tmp_path / "out.xlsx") == 2
    assert "since a workbook is not written. Give the output the ending .csv" in capsys.readouterr().err


def test_arrays_of_numpy_are_filled(tmp_path):
    x = np.random.default_rng(0).normal(size=(60, 2))
    y = np.where(np.arange(60) < 40, x[:, 0] > 0, np.nan)
    np.savez(tmp_path / "in.npz", X=x, y=y)
    assert run("label", tmp_path / "in.npz", "--target", "y", "--suspects", "1") == 0
    with np.load(tmp_path / "in.labeled.npz") as copy:
        assert np.mean(copy["y"] == (x[:, 0] > 0)) > 0.8
        assert np.isfinite(copy["y_probability"]).sum() == 20
    record = json.loads((tmp_path / "in.labeled.npz.json").read_text())
    assert 1 <= record["suspects"][0]["row"] <= 40  # there is no header


class Bytes(io.StringIO):
    """A stream of texts with the bytes beneath."""

    def __init__(self, content=b""):
        super().__init__()
        self.buffer = io.BytesIO(content)


def test_a_table_is_read_from_standard_input_and_the_copy_printed(table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    streams = Bytes(table.read_bytes()), Bytes(), io.StringIO()
    with monkeypatch.context() as patch:
        for name, stream in zip(("stdin", "stdout", "stderr"), streams, strict=True):
            patch.setattr(sys, name, stream)
        assert run("label", "-", "--target", "y") == 0
    assert run("label", table, "--target", "y", "-o", "file.csv") == 0
    assert streams[1].buffer.getvalue() == (tmp_path / "file.csv").read_bytes()
    assert streams[1].getvalue() == ""
    assert "30 rows labelled from 30 given labels" in streams[2].getvalue()  # the report
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file.csv", "file.csv.json", "in.csv"]


def test_several_tables_are_joined_and_the_first_is_copied(tmp_path, capsys):
    pytest.importorskip("skops")
    left = write(tmp_path / "left.csv", [[row[0], row[1], row[4]] for row in rows()], ("id", "x", "y"))
    right = write(tmp_path / "right.csv", [[row[0], *row[2:4]] for row in rows()[5:][::-1]], ("id", "z", "kind"))
    options = ["--target", "y", "--id", "id", "--learner", "RKDA", "--model", tmp_path / "m.skops", "--json"]
    assert run("label", left, right, *options) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["joined"] == ["right.csv"]
    assert record["options"]["sources"] == {"left": ["x"], "right": ["z", "kind"]}
    assert any("5 of 60 rows are not in" in note for note in record["warnings"])
    after = read(tmp_path / "left.labeled.csv")
    assert after[0] == ["id", "x", "y", "y_probability", "y_margin"]
    out = tmp_path / "again.csv"
    assert run("predict", tmp_path / "m.skops", left, right, "--id", "id", "-o", out, "--json") == 0
    assert json.loads(capsys.readouterr().out)["rows_filled"] == 30
    assert [row[:3] for row in read(out)] == [row[:3] for row in after]


def test_escapes_in_names_and_cells_act_nowhere_and_are_kept_in_the_copy(tmp_path, capsys):
    evil, mark = "\x1b]0;mine\x07", "\x9b31m"  # a title, and a colour by C1
    body = [[*row[:3], {"a": "=cmd()", "b": row[3]}[row[3]], row[4] and f"{mark}{row[4]}"] for row in rows()]
    path = write(tmp_path / "in.csv", body, ("id", "x", f"z{evil}", "<script>", "y"))
    for options in (["--suspects", "2", "--source", f"{evil}=x"], ["--json", "-o", tmp_path / "b.csv"]):
        assert run("label", path, "--target", "y", *options) == 0
        printed = capsys.readouterr()
        assert not {"\x1b", "\x07", "\x9b"} & set(printed.out + printed.err)
    assert list(json.loads(printed.out)["classes"]) == [f"{mark}NA", f"{mark}None"]
    after = read(tmp_path / "in.labeled.csv")
    assert [row[:4] for row in after[1:]] == [row[:4] for row in body]
    assert {row[4] for row in after[1:]} == {f"{mark}NA", f"{mark}None"}


def start(table, out, stderr=subprocess.DEVNULL):
    options = ["--target", "y", "-o", str(out), "--learner", "LapSVM"]
    command = [sys.executable, "-m", "kernelweave", "label", str(table), *options]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=stderr)


@pytest.mark.skipif(sys.platform == "win32", reason="progress is shown on a terminal only")
def test_ctrl_c_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    table = write(tmp_path / "in.csv", rows(n=3000, n_labeled=400))
    ours, its = os.openpty()
    process = start(table, tmp_path / "out.csv", its)
    os.close(its)
    shown = b""
    while b"cross-validating" not in shown:
        shown += os.read(ours, 4096)
    process.send_signal(signal.SIGINT)
    with contextlib.suppress(OSError):  # the end of what is shown
        while os.read(ours, 4096):
            pass
    assert process.wait(60) == INTERRUPTED
    os.close(ours)
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


def test_outputs_are_as_secret_as_the_table(tmp_path):
    table = write(tmp_path / "in.csv", rows())
    table.chmod(0o600)
    model = tmp_path / "m.skops"
    assert run("label", table, "--target", "y", "--model", model, "--json") == 0
    assert run("predict", model, table, "--json") == 0
    made = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir() if path != table}
    names = {"in.labeled.csv", "in.labeled.csv.json", "m.skops", "in.predicted.csv"}
    assert made == dict.fromkeys(names, 0o600)


def test_predict_says_why_it_does_not_use_a_model_that_was_saved_in_python(tmp_path, capsys):
    table = write(tmp_path / "in.csv", rows())
    X = np.random.default_rng(0).normal(size=(30, 2))
    save(SSMKClassifier().fit(X, X[:, 0] > 0), tmp_path / "m.skops")
    assert run("predict", tmp_path / "m.skops", table) == EXIT_CODES[ErrorCode.BAD_MODEL]
    (sentence,) = capsys.readouterr().err.splitlines()
    assert "was saved in Python: it holds a SSMKClassifier, which knows no columns of a table" in sentence
    assert "kernelweave.load" in sentence
    assert not (tmp_path / "in.predicted.csv").exists()


def test_what_differs_in_new_rows_is_in_the_report_of_predict(tmp_path, capsys):
    table = write(tmp_path / "in.csv", [[*row[:4], row[4].replace("NA", "=cmd()")] for row in rows()])
    assert run("label", table, "--target", "y", "--model", tmp_path / "m.skops", "--json") == 0
    body = [[row[0], "", f"{1000 * float(row[2]):.1f}", "c", ""] for row in rows()]
    other = write(tmp_path / "other.csv", body)
    capsys.readouterr()
    assert run("predict", tmp_path / "m.skops", other, "--json") == 0
    shown = capsys.readouterr()
    notes = json.loads(shown.out)["warnings"]
    assert [note for note in notes if "are blank: 'x'" in note]
    assert [note for note in notes if "In column 'z'" in note and "same unit?" in note]
    assert [note for note in notes if "In column 'kind', 60 of 60 cells" in note and "such as 'c'" in note]
    assert all(f"note: {note}" in shown.err for note in notes)
    assert run("predict", tmp_path / "m.skops", table, "--json") == 0
    (note,) = json.loads(capsys.readouterr().out)["warnings"]
    assert "take cells such as '=cmd()' for formulas" in note


def test_cells_that_are_gaps_in_the_whole_table_are_gaps_in_the_rows_to_fill(table, tmp_path, capsys):
    assert run("label", table, "--target", "y", "--model", tmp_path / "m.skops", "--json") == 0
    body = [[*row[:4], "NA"] for row in rows()[3:]] + [[*row[:2], "?!", row[3], ""] for row in rows()[:3]]  # 5 %
    other = write(tmp_path / "other.csv", body)
    capsys.readouterr()
    assert run("predict", tmp_path / "m.skops", other, "--json") == 0
    notes = json.loads(capsys.readouterr().out)["warnings"]
    assert "Cells that cannot be read are gaps: '?!' (3 times) in 'z'." in notes
    assert any("are blank: 'z'" in note for note in notes)


def test_the_copy_of_a_run_is_not_learned_from_as_if_it_were_data(tmp_path, capsys):
    table = write(tmp_path / "in.csv", rows())
    assert run("label", table, "--target", "y", "--json") == 0
    header, *body = read(tmp_path / "in.labeled.csv")
    again = write(
        tmp_path / "again.csv", [[*row[:4], "" if k % 3 else row[4], *row[5:]] for k, row in enumerate(body)], header
    )
    capsys.readouterr()
    assert run("label", again, "--target", "y", "--json") == 0
    columns = json.loads(capsys.readouterr().out)["columns"]
    assert not {"y_probability", "y_margin"} & set(columns["used"])
    assert columns["left_out"]["y_margin"] == "appended with the labels of an earlier run"


def test_notes_and_warnings_are_in_the_record_and_in_the_report(tmp_path, capsys, monkeypatch):
    table = write(tmp_path / "in.csv", rows())
    real = label_module.fill_labels

    def warned(*arguments):
        warnings.warn("A word of caution.", stacklevel=1)
        return real(*arguments)

    monkeypatch.setattr(label_module, "fill_labels", warned)
    assert run("label", table, "--target", "y") == 0
    shown = capsys.readouterr()
    assert shown.out.count("A word of caution.") == 1
    assert "A word of caution." not in shown.err
    record = json.loads((tmp_path / "in.labeled.csv.json").read_text(encoding="utf-8"))
    assert record["warnings"][-1] == "A word of caution."

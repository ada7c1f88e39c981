import json

import pytest
from checks.command import rows, run, write

from kernelweave.cli.compare import show_comparison

FEW = [word for name in ("harmonic", "SVM", "logistic regression") for word in ("--learner", name)]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return write(tmp_path_factory.mktemp("compare") / "in.csv", rows())


@pytest.fixture(scope="module")
def report(table):
    import contextlib
    import io

    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        assert run("compare", table, "--target", "y", "--json", *FEW) == 0
    return json.loads(out.getvalue())


def test_all_named_learners_are_compared_on_all_labelled_rows(report):
    names = [record["learner"] for record in report["learners"]]
    assert set(names) == {"harmonic", "SVM", "logistic regression", "all, combined", "majority class"}
    assert {record["rows"] for record in report["learners"]} == {30}
    assert report["complete"]
    assert (report["rows"], report["rows_labeled"], report["rows_tested"]) == (60, 30, 30)
    assert "did the unlabelled rows help?" in report["advice"]
    assert {"versions", "options", "columns", "unlabeled_helped", "warnings"} <= set(report)


@pytest.mark.parametrize("width", [80, 200])
def test_the_table_fits_the_terminal_and_ends_with_advice(width, report, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", str(width))
    show_comparison(report)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= width
    shown = "\n".join(lines)
    assert "\x1b" not in shown
    assert [line for line in lines if line.startswith("harmonic +")]
    assert [line for line in lines if line.startswith("logistic regression *")]
    assert "the best" in shown
    assert shown.index("advice: ") > shown.index("columns used")
    assert " ".join(shown.split()).endswith(report["advice"])


def test_foreign_names_are_harmless_in_the_terminal(report, capsys):
    evil = "[red]\x1b[31m"
    columns = {"used": {evil: "numeric"}, "left_out": {evil: evil}}
    show_comparison(report | {"columns": columns, "warnings": [evil]})
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert shown.count("[red]\\x1b[31m") == 4


def test_no_file_is_written_and_time_that_is_too_short_is_said(table, capsys):
    before = sorted(table.parent.iterdir())
    assert run("compare", table, "--target", "y", "--time-limit", "0.001", *FEW) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "The time limit binds, so that not all learners were compared" in shown or "nothing is known" in shown
    assert sorted(table.parent.iterdir()) == before


def test_numbers_groups_and_sources_are_compared(tmp_path, capsys):
    body = [[*row[:4], f"{float(row[1]) * 10 + 3:.2f}" if i < 30 else ""] for i, row in enumerate(rows())]
    path = write(tmp_path / "in.csv", body)
    options = ["--learner", "ridge regression", "--learner", "harmonic", "--group", "id", "--source", "a=x,kind"]
    assert run("compare", path, "--target", "y", "--json", *options) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["task"] == "regression"
    assert report["best"] == "ridge regression"
    assert report["learners"][-1]["learner"] == "mean"
    show_comparison(report)
    assert "root mean squared errors" in capsys.readouterr().out


def test_a_learner_that_fails_is_a_note(report, capsys):
    broken = {**report["learners"][0], "learner": "broken", "status": "failed: no reason", "error": float("nan")}
    show_comparison(report | {"learners": [*report["learners"], broken]})
    assert "failed" in capsys.readouterr().out

import contextlib
import io
import json

import numpy as np
import pytest
from checks.command import rows, run, write
from sklearn.dummy import DummyRegressor

from kernelweave import AutoKernelRegressor
from kernelweave.cli.explain import _choose_explained, _take_promising, show_explanation
from kernelweave.estimators.auto.members import Member
from kernelweave.inspection.mixture import MixtureRegressor


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return write(tmp_path_factory.mktemp("explain") / "in.csv", rows(n=90, n_labeled=60))


@pytest.fixture(scope="module")
def report(table):
    out = io.StringIO()
    sources = ["--source", "first=x,kind", "--source", "second=z"]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        assert run("explain", table, "--target", "y", "--id", "id", "--json", "--suspects", 2, *sources) == 0
    return json.loads(out.getvalue())


def test_the_columns_and_sources_that_decide_come_first(report):
    names = {kind: [r["name"] for r in report["importance"] if r["kind"] == kind] for kind in ("source", "column")}
    assert names["source"][0] == "first"
    assert set(names["column"]) == {"x", "z", "kind"}
    assert names["column"][0] == "x"
    first = report["importance"][0]
    assert 0 < first["low"] <= first["importance"] <= first["high"]
    assert report["explained"] == "SVM"


def test_doubtful_labels_and_rows_to_label_are_named_by_row_and_identifier(report, table):
    lines = table.read_text().splitlines()
    assert len(report["suspects"]) == 2
    assert len(report["next"]) == 5
    for record in report["suspects"] + report["next"]:
        assert lines[record["row"] - 1].split(",")[0] == record["id"]["id"]  # the header is row 1


@pytest.mark.parametrize("width", [80, 200])
def test_the_explanation_fits_the_terminal(width, report, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", str(width))
    show_explanation(report, 2)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= width
    shown = "\n".join(lines)
    for text in (
        "sources, by how much",
        "columns, by how much",
        "1 more columns",
        "contradicts",
        "labelling next",
        "yes",
    ):
        assert text in shown
    assert "\x1b" not in shown


def test_foreign_names_are_harmless_in_the_terminal(report, capsys):
    evil = "\x1b[2J[red]"
    importance = [record | {"name": evil} for record in report["importance"]]
    show_explanation(report | {"importance": importance, "warnings": [evil]}, 10)
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "\\x1b[2J[red]" in shown


def test_numbers_are_explained_in_their_own_unit_and_no_file_is_written(tmp_path, capsys):
    body = [[*row[:4], f"{float(row[1]) * 1000 + 3:.2f}" if i < 40 else ""] for i, row in enumerate(rows())]
    path = write(tmp_path / "in.csv", body)
    assert run("explain", path, "--target", "y", "--learner", "ridge regression", "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["task"] == "regression"
    assert report["importance"][0]["name"] == "x"
    assert 300 < report["importance"][0]["importance"] < 3000
    assert "next" not in report
    assert [file.name for file in tmp_path.iterdir()] == ["in.csv"]
    show_explanation(report, 10)
    assert "root mean squared error" in " ".join(capsys.readouterr().out.split())


def test_a_table_without_empty_cells_is_explained(tmp_path, capsys):
    path = write(tmp_path / "in.csv", rows(n_labeled=60))
    assert run("explain", path, "--target", "y", "--learner", "harmonic", "--time-limit", "30") == 0
    shown = capsys.readouterr().out
    assert "harmonic, learned from" in shown
    assert "labelling next" not in shown


def test_of_a_wide_table_the_columns_that_go_with_the_labels_are_tried():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 300))
    labels = np.where(X[:, 250] > 0, "a", "b")
    columns = {f"g{j}": [j] for j in range(300)}
    kept = _take_promising(columns, X, labels.astype(object), "classification")
    assert len(kept) == 100
    assert next(iter(kept)) == "g250"
    assert next(iter(_take_promising(columns, X, X[:, 250], "regression"))) == "g250"


def test_columns_are_weighed_for_all_learners_unless_time_is_short():
    members = [Member("SVM", DummyRegressor(), 0.4), Member("harmonic", DummyRegressor(strategy="median"), 0.6)]
    learner = AutoKernelRegressor()
    learner.members_, learner.transduction_, learner._labeled_rows = members, np.zeros(9), np.arange(9)
    seconds = [{"candidate": member.name, "seconds": 2.0} for member in members]
    for limit in (None, 40.0):  # five folds of four seconds are half of 40
        name, estimator, notes = _choose_explained(learner, seconds, limit)
        assert (name, notes) == ("the mixture of 2 learners", [])
        assert isinstance(estimator, MixtureRegressor)
    name, estimator, notes = _choose_explained(learner, seconds, 39.0)
    assert (name, estimator.strategy) == ("harmonic", "median")
    assert "weighed for the one with the largest weight, harmonic. Raise --time-limit." in notes[0]
    learner.members_ = members[:1]
    assert _choose_explained(learner, seconds, 0.0)[::2] == ("SVM", [])

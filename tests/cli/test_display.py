import json
import sys
import warnings
from pathlib import Path

import pytest

from kernelweave.cli.display import (
    as_json,
    describe_bound,
    describe_certificate,
    describe_help,
    open_console,
    show_columns,
    show_report,
    show_stages,
    write_columns,
)

NAN = float("nan")


def test_json_has_no_nan_and_no_infinity():
    def refuse(text):
        raise AssertionError(f"{text} is not JSON")

    nested = {"a": [float("nan"), (1.5, float("inf"))], "b": {"c": -float("inf"), "d": 2}}
    assert json.loads(as_json(nested), parse_constant=refuse) == {"a": [None, [1.5, None]], "b": {"c": None, "d": 2}}


@pytest.mark.parametrize(
    "objective, gap, words",
    [
        (10.0, 0.0, "within 0.0e+00 of the optimum (relative)"),
        (0.0, 0.0, "within 0.0e+00 of the optimum (relative)"),
        (10.0, 2.0, "within 2.5e-01 of the optimum (relative)"),  # it is 8 at least
        (10.0, 6.0, "no useful bound"),
        (10.0, 10.0, "no useful bound"),
        (10.0, float("inf"), "no useful bound"),
    ],
)
def test_the_certificate_is_relative_to_the_optimum(objective, gap, words):
    assert words in describe_bound(objective, gap)


def test_without_a_terminal_there_are_notes_and_no_stages(capsys):
    before = warnings.showwarning
    with show_stages() as on_stage:
        on_stage("reading the table", 0.0)
        warnings.warn("A [word] of caution.", stacklevel=1)
        on_stage("writing", 0.98)
    assert capsys.readouterr() == ("", "note: A [word] of caution.\n")
    assert warnings.showwarning is before


def test_notes_that_a_report_takes_are_not_printed_and_others_are_even_after_an_error(capsys):
    def work():
        with show_stages() as on_stage:
            for _ in range(2):
                warnings.warn("In the report.", stacklevel=1)
            assert on_stage.take_notes() == ["In the report."]
            on_stage.add_note("Not in it.")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    assert capsys.readouterr() == ("", "note: Not in it.\n")


@pytest.mark.parametrize("is_quiet", [False, True])
def test_long_work_prints_lines_without_a_terminal(is_quiet, capsys):
    with show_stages(is_quiet=is_quiet, seconds_between_lines=60.0) as on_stage:
        for n_done in range(3):
            on_stage("labelling", n_done / 2, f"{n_done} of 2")
    lines = [] if is_quiet else ["  0%  labelling: 0 of 2", "100%  labelling: 2 of 2"]
    assert capsys.readouterr().err.splitlines() == lines


@pytest.mark.parametrize("is_quiet", [False, True])
def test_stages_are_shown_on_a_terminal_unless_it_shall_be_quiet(is_quiet, monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with show_stages(is_quiet=is_quiet) as on_stage:
        on_stage("reading a\x9bJ", 0.0)
    said = capsys.readouterr().err
    assert ("reading a\\x9bJ" in said) is not is_quiet  # names in tables do not act on the terminal
    assert "\x9b" not in said


def certificate(kind="duality gap", gap=0.0, converged=True):
    status = "Reached." if converged else "Stopped early."
    return {
        "kind": kind,
        "gap": gap,
        "relative": gap / 10,
        "objective": 10.0,
        "converged": converged,
        "status": status,
    }


def test_a_certificate_says_why_a_fit_stopped_only_if_it_stopped_early():
    assert describe_certificate(certificate()) == "within 0.0e+00 of the optimum (relative)"
    assert describe_certificate(certificate(gap=6.0, converged=False)).endswith("value reached). Stopped early.")
    assert describe_certificate(certificate("stationarity", 1.0)) == "stationarity 1.0e-01 (relative to the objective)"


@pytest.mark.parametrize(
    "verdict, task, sentence",
    [
        ("unlabelled rows helped", "classification", "Unlabelled rows helped: without them the error changes by +2.0"),
        ("unlabelled rows hurt", "regression", "Unlabelled rows hurt: without them the root mean squared error"),
        ("no clear difference", "classification", "Whether unlabelled rows helped is not clear: without them"),
    ],
)
def test_one_sentence_says_what_unlabelled_rows_did(verdict, task, sentence):
    helped = {"verdict": verdict, "difference": 0.02, "interval": [-0.01, 0.05]}
    assert describe_help(helped, task).startswith(sentence)


def record(name, error, status="tested", weight=0.0, **more):
    known = {"standard_error": error / 10, "seconds": 1.25, "uses_unlabeled": True, "log_loss": 0.1, "size": 3}
    return {"candidate": name, "error": error, "weight": weight, "status": status, **known, **more}


def test_the_report_fits_a_terminal_and_shows_what_failed(capsys, tmp_path):
    nan = float("nan")
    report = {
        "rows_filled": 12345,
        "rows_labeled": 100,
        "rows_tested": 40,
        "task": "classification",
        "task_was": "guessed",
        "classes": {f"class {k}": k for k in range(15)},
        "leaderboard": [
            record("LapSVM, one view", 0.021, weight=0.97),
            record("[b]mine", 0.5, "out of the race"),
            record("slow", nan, "no time", seconds=0.0),
            record("broken", nan, "failed: there was a reason", seconds=0.0),
        ],
        "errors": {
            "kernelweave": {"error": 0.02, "interval": [0.01, 0.05], "balanced_error": 0.03},
            "majority class": {"error": 0.4, "interval": [0.3, 0.5], "balanced_error": 0.5},
        },
        "unlabeled_helped": None,
        "warnings": ["A [word] of caution."],
        "members": [{"candidate": "LapSVM, one view", "weight": 1.0, "certificate": certificate()}],
        "best_certified": {
            "candidate": "MKL",
            "kernels": [{"name": "RBF()", "source": "[/b]", "share": 1.0}, {"name": "x", "source": "", "share": 0.0}],
            "certificate": certificate(),
        },
        "suspects": [{"row": 3, "id": {"code [b]": "r1"}, "given": "[i]a", "suggested": "b", "score": 1.0}],
        "next": [],
        "columns": {"used": {"a": "numeric"}, "left_out": {"": "ID-like"}},
    }
    show_report(report, Path("out.csv"), "out.csv.json", Path("m.skops"))
    lines = capsys.readouterr().out.splitlines()
    shown = "\n".join(lines)
    assert max(map(len, lines)) <= 80
    for text in ("12,345 rows", "2.1% ± 0.2%", "97%", "[b]mine", "no time", "failed", "on 40 of 100 labelled rows"):
        assert text in shown
    for text in (
        "prediction",
        "A [word] of caution.",
        "kernels of MKL:",
        "[/b]",
        "code [b]",
        "[i]a",
        "the first column",
    ):
        assert text in shown
    assert shown.count("certificate of") == 2
    assert "worth labelling" not in shown


def test_of_many_columns_left_out_the_first_are_shown_with_their_reasons(capsys):
    show_columns(open_console(), {"used": {"a": "numeric"}, "left_out": {f"c{k}": "constant" for k in range(25)}})
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "left out: c0 (constant)"
    assert lines[-1] == "left out as well: 5 more columns (--json lists them)"
    assert len(lines) == 22


def test_a_report_goes_to_standard_error_where_the_copy_is_printed(capsys):
    open_console(stderr=True).print("a word")
    assert capsys.readouterr() == ("", "a word\n")


def test_errors_of_numbers_have_the_same_decimals_in_a_column(capsys):
    def error(value):
        return {"rmse": value, "interval": [value - 0.1, value + 0.5], "mean_absolute_error": value / 2, "r2": 0.5}

    report = {
        "rows_filled": 1, "rows_labeled": 9, "rows_tested": 9, "task": "regression", "task_was": "given",
        "leaderboard": [record("SVM", 1.4712), record("MKL", 1.49), record("mean", 2.7), record("x", NAN, "late")],
        "errors": {"kernelweave": error(1.4712), "mean": error(2.7)}, "unlabeled_helped": None, "warnings": [],
        "members": [], "best_certified": None, "columns": {"used": {}, "left_out": {}},
    }  # fmt: skip
    show_report(report, None, "copy.json", None)
    shown = capsys.readouterr().err
    for text in ("1.471 ± 0.15 ", "1.490 ± 0.15 ", "2.700 ± 0.27 ", " late ", "2.700", "2.600 – 3.200", "1.350"):
        assert text in shown


def test_numbers_of_several_keys_are_written_alike():
    records = [{"a": 0.5, "b": 0.125}, {"a": float("nan"), "b": 0.25}]
    assert write_columns(records, ("a", "b"), False, sign=True) == [["+0.500", "+0.125"], ["–", "+0.250"]]
    assert write_columns(records, ("a", "b"), True) == [["50.0", "12.5"], ["–", "25.0"]]

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from checks.browser import needs_chromium, opened
from checks.tiny_paper import PAPER, TABLE

import kernelweave.papers
from kernelweave.cli.main import main
from kernelweave.papers.runner import plan, read_records, record_key

ROOT = Path(__file__).parents[2]
PAPERS = kernelweave.papers.PAPERS
N_ITEMS = 13  # tables and figures of the five papers, as tests/papers/test_published.py names them


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    broken = replace(PAPER, name="broken", items=(replace(TABLE, methods=("one", "broken")),))
    killed = replace(PAPER, name="killed", items=(replace(TABLE, methods=("one", "killed")),))
    papers = {paper.name: paper for paper in (PAPER, broken, killed)}
    monkeypatch.setattr(kernelweave.papers, "PAPERS", papers, raising=False)
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setattr(signal, "signal", lambda *_: None)


def run(*arguments):
    """Run `kernelweave papers` in this process; return its exit code."""
    sys.argv = ["kernelweave", "papers", *map(str, arguments)]
    try:
        main()
    except SystemExit as stop:
        return stop.code or 0
    return 0


def test_list_names_every_item_and_its_cells(capsys):
    assert run("list") == 0
    shown = capsys.readouterr().out
    assert re.search(r"tiny\s+table 1\s+Noise.*12", shown)
    assert re.search(r"tiny\s+figure 1\s+A curve\s+2", shown)


def test_run_then_report(tmp_path, capsys):
    assert run("run", "tiny", "--jobs", 1, "-o", tmp_path / "out") == 0
    said = capsys.readouterr()
    assert "14 of 14 cells are in" in said.out
    assert said.err == ""  # no progress where there is no terminal
    assert run("report", tmp_path / "out", "--markdown", tmp_path / "reproduction.md") == 0
    assert "than printed; written to" in capsys.readouterr().out
    shown = (tmp_path / "out" / "report.html").read_text()
    assert "A tiny paper" in shown
    assert "There are no records of broken, killed" in shown
    assert "A tiny paper" in (tmp_path / "reproduction.md").read_text()
    assert run("report", tmp_path / "out", "-o", tmp_path / "page.html") == 0
    assert (tmp_path / "page.html").read_text() == (tmp_path / "out" / "report.html").read_text()


@pytest.mark.parametrize("option", ["--quiet", None])
def test_cells_are_counted_on_a_terminal(option, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    assert run("run", "tiny", "--jobs", 1, "-o", tmp_path, *([option] if option else [])) == 0
    assert ("14 of 14 cells" in capsys.readouterr().err) is (option is None)


def test_a_run_out_of_time_keeps_what_is_finished_and_continues(tmp_path, capsys):
    limited = ("run", "tiny", "--jobs", "1", "-o", str(tmp_path), "--json")
    assert run(*limited, "--time-limit", "1e-9") == 0
    first = json.loads(capsys.readouterr().out)
    assert not first["complete"]
    assert 0 < first["computed"] < first["cells"]
    assert run(*limited) == 0
    second = json.loads(capsys.readouterr().out)
    assert second["complete"]
    assert second["computed"] == second["cells"] == first["cells"]
    assert run("report", tmp_path, "--json") == 0
    assert sum(json.loads(capsys.readouterr().out)["counts"].values()) > 0
    assert run("list", "--json") == 0
    assert {item["paper"] for item in json.loads(capsys.readouterr().out)["items"]} == {"tiny", "broken", "killed"}


def test_a_part_of_a_paper_with_an_outside_estimator(tmp_path):
    name = "sklearn.neighbors:KNeighborsClassifier"
    assert run("run", "tiny", "--table", 1, "--trials", 1, "--fast", "--jobs", 1, "--with", name, "-o", tmp_path) == 0
    records = read_records(tmp_path / "tiny.jsonl")
    assert {(r["item"], r["method"]) for r in records} == {("table 1", m) for m in ("one", "two", name)}
    assert len(records) == 6
    assert all(record["fast"] for record in records)
    assert run("report", tmp_path) == 0
    assert name in (tmp_path / "report.html").read_text()


def test_cells_that_fail_are_said_and_shown(tmp_path, capsys):
    assert run("run", "broken", "--jobs", 1, "-o", tmp_path) == 5
    said = capsys.readouterr()
    assert "6 of 12 cells are in" in said.out
    assert said.err.splitlines()[-1].startswith(
        "kernelweave: 6 of 12 cells failed, the first at broken table 1, a, broken, trial 0: ZeroDivisionError"
    )


def test_a_killed_worker_is_one_sentence(tmp_path, capsys):
    assert run("run", "killed", "--jobs", 2, "-o", tmp_path) == 5
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith("kernelweave: A process was killed, perhaps because memory ran out")


@pytest.mark.parametrize(
    "arguments, code, words",
    [
        (("run", "no-such"), 2, "There is no paper 'no-such'; there are tiny, broken, killed and all."),
        (("run", "tiny", "--table", 3), 2, "There is no table 3; there are tiny: table 1 and figure 1."),
        (("run", "tiny", "--table", 1, "--figure", 1), 2, "--table and --figure are both given"),
        (("run", "tiny", "--trials", 0), 2, "--trials 0"),
        (("run", "tiny", "--jobs", 0), 2, "--jobs 0"),
        (("run", "tiny", "--with", "SVC"), 2, "--with 'SVC' is not module:Class"),
        (("run", "tiny", "--with", "sklearn.svm:SVM"), 2, "--with 'sklearn.svm:SVM' gives no estimator"),
        (
            ("run", "tiny", "--figure", 1, "--with", "sklearn.svm:SVC"),
            2,
            "--with is given, but nothing that is chosen compares other estimators; these do: tiny table 1.",
        ),
        (("run", "tiny", "-o", __file__), 2, "is not a folder"),
        (("report", "nowhere"), 4, "'nowhere' has no records of a run; make some with kernelweave papers run all"),
    ],
)
def test_errors_are_one_sentence(arguments, code, words, capsys):
    assert run(*arguments) == code
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert said[0].startswith("kernelweave: ")
    assert words in said[0]


def test_a_report_without_its_packages_says_what_to_install(tmp_path, capsys, monkeypatch):
    monkeypatch.delitem(sys.modules, "kernelweave.report.page", raising=False)
    monkeypatch.delattr("kernelweave.report.page", raising=False)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert run("report", tmp_path) == 2
    assert "The report needs jinja2: pip install 'kernelweave[report]'" in capsys.readouterr().err


def test_an_interrupted_run_says_how_to_go_on(tmp_path):
    script = (
        "import kernelweave.papers, checks.tiny_paper as tiny\n"
        "kernelweave.papers.PAPERS = {'tiny': tiny.PAPER}\n"
        "from kernelweave.cli.main import main\nmain()"
    )
    path = os.pathsep.join([str(ROOT / "tests"), str(ROOT / "src")])
    environment = os.environ | {"PYTHONPATH": path, "TINY_PAUSE": "0.3"}
    command = [sys.executable, "-c", script, "papers", "run", "tiny", "--jobs", "1", "-o", str(tmp_path)]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not read_records(tmp_path / "tiny.jsonl"):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said.splitlines()[-1] == (
        f"kernelweave: Interrupted; finished cells are kept in '{tmp_path}'. Run the same command to continue."
    )
    assert 1 <= len(read_records(tmp_path / "tiny.jsonl")) < 14


def test_the_committed_records_are_whole_and_the_committed_page_is_made_of_them(tmp_path, monkeypatch):
    monkeypatch.setattr(kernelweave.papers, "PAPERS", PAPERS)
    docs = ROOT / "docs"
    made = {name: tmp_path / name for name in ("page.html", "page.md")}
    assert run("report", docs / "reproduction", "-o", made["page.html"], "--markdown", made["page.md"]) == 0
    page, markdown = (path.read_text(encoding="utf-8") for path in made.values())
    # What the page warns of: records of other settings, cells and trials that lack, cells worse without a reason.
    assert re.findall(r"^(?:> |- failed: ).*", markdown, re.MULTILINE) == []
    assert re.findall(r'<p class="caution">.*', page) == []
    assert shows_every_number(page)
    again = "kernelweave papers report docs/reproduction -o /tmp/report.html --markdown docs/reproduction.md"
    assert markdown == (docs / "reproduction.md").read_text(encoding="utf-8"), f"make it again: {again}"


@pytest.mark.parametrize("name", PAPERS)
def test_every_cell_has_one_committed_record_of_the_present_definition(name):
    records = read_records(ROOT / "docs" / "reproduction" / f"{name}.jsonl")
    assert sorted(map(record_key, records)) == sorted(task.key for task in plan([PAPERS[name]]))
    assert not any("error" in record for record in records)
    assert {record["data"] for record in records} == {"original"}


@pytest.fixture(scope="module")
def fast_run(tmp_path_factory):
    """The report of a fast run of all papers, as a user makes it."""
    folder = tmp_path_factory.mktemp("fast")
    command = [sys.executable, "-m", "kernelweave", "papers"]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    subprocess.run([*command, "run", "all", "--fast", "-o", str(folder)], env=environment, check=True, timeout=900)
    subprocess.run([*command, "report", str(folder)], env=environment, check=True, timeout=120)
    return folder / "report.html"


def shows_every_number(page):
    return page.count("<article") == N_ITEMS and not re.search(r'class="gap"', page)


@pytest.mark.slow
def test_the_report_of_a_fast_run_of_all_papers_shows_every_number(fast_run):
    assert shows_every_number(fast_run.read_text(encoding="utf-8"))


@pytest.mark.slow
@pytest.mark.browser
@needs_chromium
def test_the_report_of_a_fast_run_opens_without_a_word(fast_run, tmp_path):
    dom, said = opened(fast_run, tmp_path / "profile", "--dump-dom")
    assert said == []
    assert shows_every_number(dom)

"""The README tells the truth: its Python runs, its first screen has the commands, its table all models."""

import inspect
import json
import re
import runpy
from pathlib import Path

import pytest
from checks.auto_means import mean_error
from sklearn.base import BaseEstimator

import kernelweave

ROOT = Path(__file__).parents[1]
FIRST_SCREEN = 40
LEARNERS = {  # the first class of a row, and its name in benchmarks/auto
    "AutoKernelClassifier": "Auto",
    "LearnedKernelClassifier": "LearnedKernel",
    "TSVMClassifier": "TSVM",
    "TSVMMKLClassifier": "TSVM-MKL",
    "LapSVMClassifier": "LapSVM",
    "MKLClassifier": "MKL",
    "SSMKClassifier": "SSMK",
    "RKDAClassifier": "RKDA",
    "HarmonicClassifier": "harmonic",
    "CGBoostClassifier": "CG-Boost",
}


@pytest.fixture(scope="module")
def readme():
    return (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_python_blocks_run_one_after_the_other(readme, tmp_path, monkeypatch):
    blocks = runpy.run_path(str(ROOT / ".ci" / "readme_example.py"))["python_blocks"](readme)
    assert blocks
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "readme"}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), namespace)


@pytest.mark.parametrize("command", ["make demo", "make test"])
def test_the_first_screen_has_the_command(readme, command):
    first_screen = "\n".join(readme.splitlines()[:FIRST_SCREEN])
    assert re.search(rf"{command}(?![\w-])", first_screen)


def test_every_estimator_is_in_the_table_of_papers(readme):
    public = (getattr(kernelweave, name) for name in kernelweave.__all__)
    estimators = {thing.__name__ for thing in public if inspect.isclass(thing) and issubclass(thing, BaseEstimator)}
    assert estimators
    assert estimators <= classes_in_the_table(readme)


def test_which_learner_comes_before_the_papers_and_leads_with_the_best_by_default(readme):
    assert readme.index("| learner | good at |") < readme.index("| paper | class | equation |")
    errors = [float(row[4].strip("*")) for row in learner_rows(readme)]
    assert errors == sorted(errors)


def test_numbers_of_which_learner_are_those_of_the_benchmark(readme):
    seconds = json.loads((ROOT / "benchmarks" / "auto" / "timing.json").read_text(encoding="utf-8"))
    seconds = seconds["alone"] | {"Auto": seconds["search"]}
    rows = learner_rows(readme)
    assert len(rows) == len(LEARNERS)
    for row in rows:
        method = LEARNERS[re.match(r"`(\w+)`", row[0])[1]]
        assert row[4].strip("*") == f"{mean_error(method):.1f}", method
        assert float(row[5]) == pytest.approx(seconds[method], abs=0.5 * 10.0 ** -len(row[5].partition(".")[2])), method


def test_no_link_of_the_readme_needs_the_repository(readme):
    """A package index shows the README without the files beside it, and there is no public address to link to yet.

    So files are named in code font, not linked. When there is an address, links to it are absolute.
    """
    targets = re.findall(r"\]\(([^)]+)\)|<(?:a|img)[^>]+(?:href|src)=\"([^\"]+)\"", readme)
    assert all("".join(target).startswith(("https://", "#")) for target in targets)


def learner_rows(text):
    """Cells of the rows of the table of learners."""
    table = text.partition("| learner | good at |")[2].partition("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def classes_in_the_table(text):
    """Names in backticks in the column "class" of the table "paper | class | equation"."""
    rows = [line.strip("| ").split("|") for line in text.splitlines() if line.startswith("|")]
    header = [[cell.strip().lower() for cell in row] for row in rows].index(["paper", "class", "equation"])
    return {name for row in rows[header + 2 :] if len(row) == 3 for name in re.findall(r"`(\w+)`", row[1])}

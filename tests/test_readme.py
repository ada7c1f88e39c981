"""The README tells the truth: its Python runs, its first screen has the commands, its table all models."""

import inspect
import re
import runpy
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

import kernelweave

ROOT = Path(__file__).parents[1]
FIRST_SCREEN = 40


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


def classes_in_the_table(text):
    """Names in backticks in the column "class" of the table "paper | class | equation"."""
    rows = [line.strip("| ").split("|") for line in text.splitlines() if line.startswith("|")]
    header = [[cell.strip().lower() for cell in row] for row in rows].index(["paper", "class", "equation"])
    return {name for row in rows[header + 2 :] if len(row) == 3 for name in re.findall(r"`(\w+)`", row[1])}

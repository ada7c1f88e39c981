"""The code that the documentation prints runs: blocks of every page, and three programs that pass mypy --strict."""

import os
import runpy
import subprocess
import sys

import matplotlib as mpl
import pytest
from docs.pages import DOCS, ROOT, python_blocks, sources

pytestmark = pytest.mark.docs

PAGES = [page for page in sources() if python_blocks(page)]
SCRIPTS = sorted((DOCS / "scripts").glob("*.py"))
# These two have no types of their own; what they return is Any, as for every user of them.
UNTYPED = "[mypy]\nstrict = true\n[mypy-sklearn.*,pandas.*]\nignore_missing_imports = true\n"


@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_of_a_page_run_one_after_the_other(page, tmp_path, monkeypatch):
    mpl.use("Agg")
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "page"}
    for block in python_blocks(page):
        exec(compile(block, f"docs/{page}.md", "exec"), namespace)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_program_runs(script, capsys):
    runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out


def test_the_programs_pass_strict_type_checks(tmp_path):
    (tmp_path / "mypy.ini").write_text(UNTYPED, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "--cache-dir", "cache", *map(str, SCRIPTS)]
    environment = {**os.environ, "MYPYPATH": str(ROOT / "src")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_programs_are_the_three_of_the_pages():
    assert [script.stem for script in SCRIPTS] == ["grid_search", "served_model", "several_sources"]

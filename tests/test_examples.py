"""The examples of the gallery run without a warning, and draw something."""

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import kernelweave

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("plot_*.py"))
TITLE = re.compile(r"\n(?P<title>.+)\n(?P<line>=+)\n\n\S")
# A process of its own for each example: pictures, warnings and a million rows go with it.
RUN = """
import json, runpy, sys, warnings
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    runpy.run_path(sys.argv[1], run_name="__main__")
drawn = [figure for figure in map(plt.figure, plt.get_fignums()) if any(ax.has_data() for ax in figure.axes)]
noise = [f"{each.filename}:{each.lineno}: {each.category.__name__}: {each.message}" for each in caught]
print(json.dumps({"figures": len(plt.get_fignums()), "with data": len(drawn), "warnings": noise}))
"""


def test_there_is_a_gallery():
    assert len(EXAMPLES) >= 12


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_begins_with_a_title_and_a_paragraph_and_explains_its_blocks(path):
    source = path.read_text(encoding="utf-8")
    found = TITLE.match(ast.get_docstring(ast.parse(source), clean=False))
    assert found, "the docstring begins with a title underlined by ="
    assert len(found["line"]) == len(found["title"])
    blocks = source.split("\n# %%\n")[1:]
    assert blocks
    assert all(block.startswith("# ") for block in blocks), "every block begins with words"


@pytest.mark.gallery
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_draws_without_a_warning(path, tmp_path):
    environment = os.environ | {"PYTHONPATH": str(Path(kernelweave.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(path)], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout.splitlines()[-1])
    assert report["figures"] == report["with data"] > 0
    assert report["warnings"] == []
    assert list(tmp_path.iterdir()) == [], "an example leaves no files behind"

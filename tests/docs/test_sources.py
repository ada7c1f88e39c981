"""What can be said of the documentation without building it: all names, all pages, all results are there."""

import re

import pytest
from checks.auto_means import mean_error
from docs.pages import DOCS, ROOT, sources, text

import kernelweave
from kernelweave import datasets, model_selection


def public_names():
    """Every name that a user may import, as the reference writes it."""
    modules = ((datasets, "datasets."), (model_selection, "model_selection."))
    nested = [prefix + name for module, prefix in modules for name in module.__all__ if name not in kernelweave.__all__]
    return [*kernelweave.__all__, *nested, "datasets.load"]


def listed_names():
    blocks = re.findall(r"autosummary::\n.*?\n\n(.*?)```", text("api/index"), re.DOTALL)
    return [name for block in blocks for name in block.split()]


def test_the_reference_lists_every_public_name_once():
    assert sorted(listed_names()) == sorted(set(public_names()))


def test_every_page_is_in_a_table_of_contents():
    contents = {"index"}
    for page in sources():
        folder = page.rpartition("/")[0]
        for block in re.findall(r"```\{toctree\}\n(.*?)```", text(page), re.DOTALL):
            entries = [line for line in block.split("\n") if line and not line.startswith(":")]
            contents |= {f"{folder}/{entry}" if folder else entry for entry in entries}
    assert set(sources()) <= contents


def test_every_benchmark_is_on_the_page_of_benchmarks():
    written = {file.relative_to(ROOT).as_posix() for file in (ROOT / "benchmarks").glob("*/*.md")}
    assert written == set(re.findall(r"\{include\} \.\./(benchmarks/\S+)", text("benchmarks")))


@pytest.mark.parametrize("chapter", [page for page in sources() if page.startswith("guide/") and page != "guide/index"])
def test_a_chapter_has_mathematics_code_pitfalls_and_a_picture(chapter):
    page = text(chapter)
    assert "```python" in page
    assert "$$" in page or re.search(r"\$[^$]+\$", page)
    assert "## Pitfalls" in page
    picture = re.search(r"\{image\} \.\./figures/drawn/(\w+)\.svg\n:alt: \S", page)
    assert picture
    assert (DOCS / "figures" / f"{picture[1]}.py").exists()


@pytest.mark.parametrize(
    "title, ending, n_means",
    [("Classes: error in %, after", "Classifier", 6), ("Numbers: rmse / standard deviation, after", "Regressor", 3)],
)
def test_the_tables_of_kinds_of_data_repeat_the_results(title, ending, n_means):
    """Rows of `docs/which_learner.md` are those of benchmarks/defaults, with the names of classes."""
    results = (ROOT / "benchmarks" / "defaults" / "results.md").read_text(encoding="utf-8")
    part = results.split(f"## {title}\n")[1].split("\n## ")[0]
    means = {row[0]: row[1:-1] for row in cells(part) if len(row) == n_means + 2}
    shown = [row for row in cells(text("which_learner")) if len(row) == n_means + 1 and row[0] != "learner"]
    assert len(shown) >= 6
    for name, *values in shown:
        assert [value.strip("*") for value in values] == means[name.replace("`", "").removesuffix(ending)], name


def test_numbers_of_the_guide_are_those_of_the_results():
    """The means that the chapters quote most often."""
    for method, page in (
        ("Auto", "guide/auto"),
        ("LearnedKernel", "guide/kernel_design"),
        ("SSMK", "guide/mixtures"),
        ("stacking (scikit-learn)", "coming_from"),
        ("LabelSpreading", "coming_from"),
    ):
        assert f"{mean_error(method):.1f}" in text(page)


def cells(page):
    """Cells of each row of the tables of a page."""
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in page.split("\n") if line.startswith("| ")]

"""Where the pages of the documentation are, as sources and as built."""

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
HTML = DOCS / "_build" / "html"
find_blocks = runpy.run_path(str(ROOT / ".ci" / "readme_example.py"))["python_blocks"]
GENERATED = {"_build", "api/generated", "gallery", "figures/drawn"}


def sources():
    """Path in docs/ of every page that is written by hand, without its ending."""
    found = (file.relative_to(DOCS).with_suffix("").as_posix() for file in DOCS.rglob("*.md"))
    return sorted(name for name in found if not any(name.startswith(f"{folder}/") for folder in GENERATED))


def text(name):
    return (DOCS / f"{name}.md").read_text(encoding="utf-8")


def python_blocks(name):
    """Code of each fenced ``python`` block of a page, with the page's line numbers."""
    return find_blocks(text(name))

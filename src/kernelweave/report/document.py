"""A page about a model: one HTML file that needs nothing else.

All texts are escaped, and control characters made visible; only drawings, which are SVG elements made here, are taken
as they are. There is no script in it: a page shows in light and dark, on a phone and on paper by its style alone.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from .content import Document


def render_document(document: Document) -> str:
    """Return the page as HTML.

    Examples
    --------
    >>> from kernelweave.report.content import Document, Section
    >>> from kernelweave.report.document import render_document
    >>> page = Document("Labels", "Two rows.", (), (), (Section("A & B", ("<b>",)),), "")
    >>> "A &amp; B" in render_document(page), "&lt;b&gt;" in render_document(page)
    (True, True)
    """
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, finalize=_show_controls)
    source = (files(__package__) / "document.html.jinja").read_text(encoding="utf-8")
    return environment.from_string(source).render(document=document)


def _show_controls(value: Any) -> Any:
    """Return a text without characters that cannot be printed, such as the beginnings of escape sequences."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return "".join(letter if letter.isprintable() or letter == "\n" else ascii(letter)[1:-1] for letter in value)

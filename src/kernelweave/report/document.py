"""A page about a model: one HTML file that needs nothing else.

All texts are escaped; only drawings, which are SVG elements made here, are taken as they are. There is no script in it:
a page shows in light and dark, on a phone and on paper by its style alone.
"""

from __future__ import annotations

from importlib.resources import files

from jinja2 import Environment

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
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    source = (files(__package__) / "document.html.jinja").read_text(encoding="utf-8")
    return environment.from_string(source).render(document=document)

"""Drawings for a page: what is drawn on axes becomes an SVG element."""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Callable
from html import escape

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .style import styled

INCHES = (6.4, 4.0)
TITLE_WIDTH = 56  # characters of a line above a drawing


def draw_svg(draw: Callable[[Axes], object], prefix: str, label: str, size: tuple[float, float] = INCHES) -> str:
    """Return a drawing as an SVG element whose background is that of the page.

    Parameters
    ----------
    draw : callable
        ``draw(ax)`` draws.
    prefix : str
        What its ids begin with, so that a page may hold many.
    label : str
        Says what is seen to those who cannot see it.
    size : (float, float)
        In inches.
    """
    with styled(), mpl.rc_context({"axes.facecolor": "none"}):
        figure = Figure(figsize=size, layout="constrained")
        figure.patch.set_alpha(0.0)
        draw(figure.add_subplot())
        for ax in figure.axes:
            ax.set_title(textwrap.fill(ax.get_title(loc="left"), TITLE_WIDTH), loc="left")
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return embed_svg(text.getvalue(), prefix, label)


def embed_svg(svg: str, prefix: str, label: str) -> str:
    """Return the bare element: without the XML head, with ids of its own and a name for those who cannot see it."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
    svg = re.sub(r'(url\(#|href="#)', rf"\g<1>{prefix}-", svg)
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    return svg.replace("<svg", f'<svg role="img" aria-label="{escape(label, quote=True)}"', 1)

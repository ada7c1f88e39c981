"""One clean look for all drawings: colours, markers, texts that are safe to draw, and axes to draw on.

Colours are those of Okabe and Ito, which colour-blind readers can tell apart; markers, dashes and hatches differ as
well, so that a grey print can be read. Settings of matplotlib are changed while something is drawn, never for good.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.transforms import offset_copy

BLACK = "#000000"
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", BLACK)
CLASS_COLORS = (*COLORS, "#F0E442")  # the yellow last: it needs an edge on white paper
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("-", "--", "-.", ":")
HATCHES = ("", "///", "...", "xxx", "\\\\\\", "+++", "|||", "---")
GREY = "#8c8c8c"
STYLE: Any = {
    "font.family": "sans-serif",
    "font.size": 10,
    "text.usetex": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#888888",
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "grid.color": "#808080",
    "grid.alpha": 0.2,
    "grid.linewidth": 0.8,
    "hatch.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "lines.linewidth": 1.8,
    "lines.markersize": 5,
    "svg.fonttype": "none",  # text stays text: it can be read aloud and searched
    "svg.hashsalt": "kernelweave",
}
NAME_WIDTH = 32  # characters of a name beside an axis
LEGEND_POINTS = 38  # from an axis to a legend below its label


def styled() -> AbstractContextManager[None]:
    """Return the context within which drawings have the common look; the user's settings come back after it."""
    return mpl.rc_context(STYLE)


def class_look(k: int) -> dict[str, Any]:
    """Return colour and marker of class number ``k``; 56 classes have pairs of their own.

    Examples
    --------
    >>> class_look(0) == class_look(8), class_look(0) == class_look(56)
    (False, True)
    """
    color = CLASS_COLORS[k % len(CLASS_COLORS)]
    return {"color": ink() if color == BLACK else color, "marker": MARKERS[k % len(MARKERS)]}


def ink() -> Any:
    """Return the colour of texts, by the user's settings: black, or white on dark paper."""
    return mpl.rcParams["text.color"]


def paper() -> Any:
    """Return the colour behind a drawing, by the user's settings."""
    return mpl.rcParams["axes.facecolor"]


def plain(text: Any) -> str:
    r"""Return a text on one line that matplotlib draws as it is: no mathematics, no control characters.

    Examples
    --------
    >>> plain("cost_$ of $x"), plain("two\nlines"), plain("\x1b[31m")
    ('cost_\\$ of \\$x', 'two lines', '\\x1b[31m')
    """
    words = " ".join(str(text).split())
    shown = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in words)
    return shown.replace("$", r"\$")


def shorten(names: Sequence[Any], width: int = NAME_WIDTH) -> list[str]:
    """Return names as they are drawn: those too long lose their middle, and stay different from one another.

    Examples
    --------
    >>> shorten(["short", "a name of many words 1", "a name of other words 1"], 12)
    ['short', 'a name…ords 1', 'a name…ords 1 #2']
    """
    shown: list[str] = []
    seen: Counter[str] = Counter()
    for name in names:
        text = " ".join(str(name).split())
        if len(text) > width + 1:
            text = f"{text[: width // 2]}…{text[-(width - width // 2) :]}"
            seen[text] += 1
            text = text if seen[text] == 1 else f"{text} #{seen[text]}"
        shown.append(plain(text))
    return shown


def panels(
    ax: Any, n_panels: int, size: tuple[float, float], *, owner: str, **layout: Any
) -> tuple[Figure, np.ndarray]:
    """Return the figure and the axes to draw on.

    Parameters
    ----------
    ax : None, Axes or sequence of Axes
        None: a new figure. One Axes for several panels gives its place to them.
    n_panels : int
    size : (float, float)
        Inches of a new figure.
    owner : str
        Who draws, for errors.
    **layout
        Of the grid, such as ``nrows``, ``sharex`` and ``height_ratios``; one column by default.

    Returns
    -------
    figure : Figure
    axes : ndarray of Axes, shape (n_panels,)
    """
    layout = {"nrows": n_panels} | layout
    if ax is None:
        import matplotlib.pyplot as plt  # shows the figure in a notebook; pages do without

        figure, axes = plt.subplots(figsize=size, layout="constrained", squeeze=False, **layout)
        return figure, axes.ravel()
    given = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
    if len(given) == 1 and n_panels > 1 and given[0].get_subplotspec() is not None:
        shared = {name: layout.pop(name) for name in ("sharex", "sharey") if name in layout}
        columns = layout.pop("ncols", 1)
        grid = given[0].get_subplotspec().subgridspec(layout.pop("nrows"), columns, **layout)
        given[0].set_axis_off()
        return given[0].figure, grid.subplots(squeeze=False, **shared).ravel()
    if len(given) != n_panels:
        raise ValueError(
            f"{owner}.plot got {len(given)} axes; expected {n_panels}, or one made by subplots. Pass ax=None for "
            "a new figure."
        )
    return given[0].figure, given


def place_legend(ax: Axes, handles: Sequence[Any], names: Sequence[str], **place: Any) -> Legend | None:
    """Put a legend with exactly these names, of which some may begin with an underscore."""
    if not handles:
        return None
    legend = ax.legend(handles, [str(k) for k in range(len(handles))], **place)
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set_text(name)
    return legend


def legend_below(ax: Axes, handles: Sequence[Any], names: Sequence[str], n_columns: int = 2) -> Legend | None:
    """Put a legend under the label of the horizontal axis."""
    figure: Any = ax.figure
    under = offset_copy(ax.transAxes, fig=figure, y=-LEGEND_POINTS, units="points")
    place = {"loc": "upper left", "bbox_to_anchor": (0.0, 0.0), "bbox_transform": under, "borderaxespad": 0.0}
    return place_legend(ax, handles, names, ncols=n_columns, **place)

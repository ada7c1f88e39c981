"""A drawing of what training rows add to one prediction: bars, cut by source. Plain data in, axes out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from .style import COLORS, GREY, HATCHES, ink, legend_below, panels, plain, shorten, styled

MAX_SOURCES = 6  # that have a colour of their own
INCHES_A_BAR, INCHES_AROUND, WIDTH = 0.3, 1.5, 6.4
ROOM = 0.14  # on either side of the bars, of their range: for the numbers at their ends


def draw_influence(
    ax: Any,
    rows: Sequence[str],
    parts: Sequence[Sequence[float]],
    sources: Sequence[str],
    others: Sequence[tuple[str, float]],
    *,
    label: str = "contribution",
    title: str = "",
    owner: str = "draw_influence",
) -> tuple[Figure, Axes]:
    """Draw a bar for each training row, cut by source, and bars for what is not one of them.

    Parameters
    ----------
    ax : None or Axes
        The legend is below: ``layout="constrained"`` of a figure makes room for it.
    rows : sequence of str
        Names of the training rows, the first on top.
    parts : sequence of shape (n_rows, n_sources)
        What each row adds.
    sources : sequence of str
    others : sequence of (str, float)
        Names and values of further bars, drawn in grey below.
    label : str
        Of the axis of the numbers.
    title : str
    owner : str
        Who draws, for errors.

    Returns
    -------
    figure : Figure
    ax : Axes
    """
    n_bars = len(rows) + len(others)
    sources, parts = merge_sources(sources, parts)
    with styled():
        figure, axes = panels(ax, 1, (WIDTH, INCHES_AROUND + INCHES_A_BAR * n_bars), owner=owner)
        ends = [_stack(axes[0], place, part) for place, part in enumerate(parts)]
        for place, (_, value) in enumerate(others, start=len(rows)):
            axes[0].barh(place, value, height=0.7, color=GREY)
            ends.append((min(value, 0.0), max(value, 0.0)))
        axes[0].axvline(0.0, color=ink(), linewidth=0.8)
        axes[0].set_yticks(range(n_bars), shorten([*rows, *(name for name, _ in others)]))
        axes[0].set_ylim(n_bars - 0.5, -0.5)
        axes[0].tick_params(axis="y", length=0)
        axes[0].grid(visible=False, axis="y")
        _write_totals(axes[0], [*map(sum, parts), *(value for _, value in others)], ends)
        axes[0].set_title(plain(title))
        axes[0].set_xlabel(plain(label))
        if len(sources) > 1:
            handles = [Patch(facecolor=COLORS[s], hatch=HATCHES[s], edgecolor="white") for s in range(len(sources))]
            legend_below(axes[0], handles, shorten(sources), min(3, len(sources)))
    return figure, axes[0]


def merge_sources(sources: Sequence[str], parts: Sequence[Sequence[float]]) -> tuple[list[str], list[list[float]]]:
    """Return sources of which there are few enough to have colours: the smallest ones become one."""
    if len(sources) <= MAX_SOURCES:
        return list(sources), [list(part) for part in parts]
    size = [sum(abs(part[s]) for part in parts) for s in range(len(sources))]
    kept = sorted(sorted(range(len(sources)), key=lambda s: -size[s])[: MAX_SOURCES - 1])
    merged = [[*(part[s] for s in kept), sum(v for s, v in enumerate(part) if s not in kept)] for part in parts]
    return [*(sources[s] for s in kept), f"{len(sources) - len(kept)} other sources"], merged


def _stack(ax: Axes, place: int, part: Sequence[float]) -> tuple[float, float]:
    """Draw the parts of one bar, positive ones to the right and negative ones to the left; return its ends."""
    low = high = 0.0
    for s, value in enumerate(part):
        left = high if value >= 0 else low
        k = int(value < 0) if len(part) == 1 else s  # without sources, colours say for or against
        look: dict[str, Any] = {"color": COLORS[k], "hatch": HATCHES[k]}
        ax.barh(place, value, left=left, height=0.7, edgecolor="white", linewidth=0.4, **look)
        low, high = min(low, low + value), max(high, high + value)
    return low, high


def _write_totals(ax: Axes, totals: Sequence[float], ends: Sequence[tuple[float, float]]) -> None:
    """Write the sum of each bar at the end that it points to."""
    low, high = min(0.0, *(end[0] for end in ends)), max(0.0, *(end[1] for end in ends))
    room = ROOM * ((high - low) or 1.0)
    ax.set_xlim(low - room * (low < 0), high + room)
    for place, (total, end) in enumerate(zip(totals, ends, strict=True)):
        right = total >= 0
        at, shift = ((end[1], place), (3, 0)) if right else ((end[0], place), (-3, 0))
        look: dict[str, Any] = {"ha": "left" if right else "right", "va": "center", "fontsize": 8, "color": ink()}
        ax.annotate(f"{total:.2g}", at, xytext=shift, textcoords="offset points", **look)

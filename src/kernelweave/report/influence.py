"""A drawing of what training rows add to one prediction: bars, cut by source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.legend import Legend
from matplotlib.patches import Patch
from matplotlib.transforms import ScaledTranslation

from .style import COLORS

HATCHES = ("", "///", "...", "xxx", "\\\\\\", "++", "")  # so that sources differ in print too
GREY = "#999999"
MAX_SOURCES = 6  # that have a colour of their own
MAX_NAME = 28  # characters
INCHES_A_BAR, INCHES_AROUND, WIDTH = 0.32, 1.7, 6.4
LEGEND_OFFSET = -32  # points: below the numbers and the name of the axis
ROOM = 0.14  # on either side of the bars, of their range: for the numbers at their ends


def draw_influence(
    rows: Sequence[str],
    parts: Sequence[Sequence[float]],
    sources: Sequence[str],
    others: Sequence[tuple[str, float]],
    title: str,
    label: str,
    ax: Axes | None = None,
) -> Axes:
    """Draw a bar for each training row, cut by source, and bars for what is not one of them.

    Parameters
    ----------
    rows : sequence of str
        Names of the training rows, the first on top.
    parts : sequence of shape (n_rows, n_sources)
        What each row adds.
    sources : sequence of str
    others : sequence of (str, float)
        Names and values of further bars, drawn in grey below.
    title : str
    label : str
        Of the axis of the numbers.
    ax : Axes, optional
        By default those of a new figure. The legend is below them: ``layout="constrained"`` makes room for it.
    """
    n_bars, is_new = len(rows) + len(others), ax is None
    if ax is None:
        _, ax = plt.subplots(figsize=(WIDTH, INCHES_AROUND + INCHES_A_BAR * n_bars), layout="constrained")
    sources, parts = merge_sources(sources, parts)
    totals = [sum(part) for part in parts] + [value for _, value in others]
    ends = []
    for place, part in enumerate(parts):
        ends.append(_stack(ax, place, part))
    for place, (_, value) in enumerate(others, start=len(rows)):
        ax.barh(place, value, height=0.7, color=GREY)
        ends.append((min(value, 0.0), max(value, 0.0)))
    ax.axvline(0.0, color="black", linewidth=0.8)
    ax.set_yticks(range(n_bars), [plain(shorten(name)) for name in (*rows, *(name for name, _ in others))])
    ax.set_ylim(n_bars - 0.5, -0.5)
    _write_totals(ax, totals, ends)
    ax.set_title(plain(title), loc="left", fontsize="medium")
    ax.set_xlabel(plain(label))
    ax.grid(visible=True, axis="x", color="#e6e6e6", linewidth=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    if len(sources) > 1:
        _add_legend(ax, sources, is_new)
    return ax


def merge_sources(sources: Sequence[str], parts: Sequence[Sequence[float]]) -> tuple[list[str], list[list[float]]]:
    """Return sources of which there are few enough to have colours: the smallest ones become one."""
    if len(sources) <= MAX_SOURCES:
        return list(sources), [list(part) for part in parts]
    size = [sum(abs(part[s]) for part in parts) for s in range(len(sources))]
    kept = sorted(sorted(range(len(sources)), key=lambda s: -size[s])[: MAX_SOURCES - 1])
    merged = [[*(part[s] for s in kept), sum(v for s, v in enumerate(part) if s not in kept)] for part in parts]
    return [*(sources[s] for s in kept), f"{len(sources) - len(kept)} other sources"], merged


def shorten(name: str) -> str:
    """Return a name on one line, its middle left out where it is long."""
    line = " ".join(str(name).split())
    return line if len(line) <= MAX_NAME else f"{line[: MAX_NAME - 9]}…{line[-8:]}"


def plain(text: str) -> str:
    """Return a text that matplotlib draws as it is: dollar signs begin no formula."""
    return text.replace("$", r"\$")


def _stack(ax: Axes, place: int, part: Sequence[float]) -> tuple[float, float]:
    """Draw the parts of one bar, positive ones to the right and negative ones to the left; return its ends."""
    low = high = 0.0
    for s, value in enumerate(part):
        left = high if value >= 0 else low
        look: dict[str, Any] = {"color": COLORS[s % len(COLORS)], "hatch": HATCHES[s % len(HATCHES)]}
        if len(part) == 1 and value < 0:  # without sources, colours say for or against
            look = {"color": COLORS[1], "hatch": HATCHES[1]}
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
        ax.annotate(
            f"{total:.2g}",
            (end[1] if right else end[0], place),
            xytext=(3 if right else -3, 0),
            textcoords="offset points",
            ha="left" if right else "right",
            va="center",
            fontsize="small",
        )


def _add_legend(ax: Axes, sources: Sequence[str], is_new: bool) -> None:
    """Name the sources below the axes; names that begin with an underscore are not dropped."""
    handles = [Patch(facecolor=COLORS[s], hatch=HATCHES[s], edgecolor="white") for s in range(len(sources))]
    labels = [str(s) for s in range(len(sources))]
    look: dict[str, Any] = {"ncols": min(3, len(sources)), "frameon": False, "fontsize": "small"}
    legend: Legend
    if is_new:
        legend = ax.figure.legend(handles, labels, loc="outside lower left", **look)
    else:
        below = ax.transAxes + ScaledTranslation(0.0, LEGEND_OFFSET / 72, ax.figure.dpi_scale_trans)
        legend = ax.legend(handles, labels, loc="upper left", bbox_to_anchor=(0, 0), bbox_transform=below, **look)
    for text, name in zip(legend.get_texts(), sources, strict=True):
        text.set_text(plain(shorten(name)))

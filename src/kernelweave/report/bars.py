"""Drawings of shares and errors by name: kernels and sources, learners, columns. Plain data in, axes out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, PercentFormatter

from .style import (
    COLORS,
    GREY,
    HATCHES,
    class_look,
    ink,
    legend_below,
    panels,
    paper,
    place_legend,
    plain,
    shorten,
    styled,
)

BAR_INCHES = 0.27  # height that a name needs
MAX_LEGEND = 8  # names in a legend; more are drawn without names
NOTE_WIDTH = 40  # characters in the place of an error
ROOM_FOR_NUMBERS = 1.18  # of the longest bar


def draw_kernel_weights(
    ax: Any,
    names: Sequence[str],
    shares: np.ndarray,
    sources: Sequence[str],
    *,
    class_shares: np.ndarray | None = None,
    class_names: Sequence[Any] = (),
    n_kernels: int = 15,
    title: str = "",
    owner: str = "draw_kernel_weights",
) -> tuple[Figure, np.ndarray]:
    """Draw the shares of kernels as bars, the largest first, and those of sources where there are several.

    Parameters
    ----------
    ax : None, Axes or sequence of Axes
    names, sources : sequence of str, length n_kernels
    shares : ndarray of shape (n_kernels,)
    class_shares : ndarray of shape (n_classes, n_kernels), optional
        Drawn as one marker a class.
    class_names : sequence
    n_kernels : int
        Bars at most; the others are summed into one more.
    title : str
    owner : str
        Who draws, for errors.

    Returns
    -------
    figure : Figure
    axes : ndarray of Axes, shape (1,) or (2,)
    """
    by_source: dict[str, float] = {}
    for source, share in zip(sources, shares, strict=True):
        by_source[source] = by_source.get(source, 0.0) + float(share)
    ranked = sorted(by_source, key=lambda source: -by_source[source])
    looks = {source: _source_look(k, len(ranked)) for k, source in enumerate(ranked)}
    order = np.argsort(-np.asarray(shares), kind="stable")
    shown, rest = order[:n_kernels], order[n_kernels:]
    heights = [len(shown) + bool(len(rest)), min(len(ranked), n_kernels + 1)]
    n_panels = 2 if len(ranked) > 1 else 1
    wide = class_shares is not None and len(class_shares) <= MAX_LEGEND  # room for their names
    size = (8.2 if wide else 6.4, 1.2 + 0.5 * (n_panels - 1) + BAR_INCHES * sum(heights[:n_panels]))
    with styled():
        figure, axes = panels(ax, n_panels, size, owner=owner, height_ratios=heights[:n_panels])
        bars = [(names[p], float(shares[p]), looks[sources[p]]) for p in shown]
        if len(rest):
            bars.append((f"{len(rest)} other kernels", float(np.sum(shares[rest])), {"color": "#c8c8c8"}))
        _draw_bars(axes[0], bars, aside=class_shares is not None)
        if class_shares is not None:
            _mark_classes(axes[0], class_shares[:, shown], class_names)
        axes[0].set_title(plain(title))
        if n_panels == 2:
            bars = [(source, by_source[source], looks[source]) for source in ranked[:n_kernels]]
            if len(ranked) > n_kernels:
                left = sum(by_source[source] for source in ranked[n_kernels:])
                bars.append((f"{len(ranked) - n_kernels} other sources", left, {"color": "#c8c8c8"}))
            _draw_bars(axes[1], bars)
            axes[1].set_title("by source")
        axes[-1].set_xlabel("share")
    return figure, axes


def _source_look(k: int, n_sources: int) -> dict[str, Any]:
    """Return colour and hatch of the source with the k-th largest share; those beyond the palette are grey."""
    if k >= len(COLORS):
        return {"color": GREY}
    return {"color": COLORS[k], "hatch": HATCHES[k] if n_sources > 1 else ""}


def _draw_bars(ax: Axes, bars: Sequence[tuple[str, float, dict[str, Any]]], aside: bool = False) -> None:
    """Draw one bar a line, the first at the top, each with its number at the end, or ``aside`` at the right."""
    for place, (_, share, look) in enumerate(bars):
        ax.barh(place, share, height=0.7, edgecolor="white", linewidth=0.0, **look)
        where: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "ha": "right"} if aside else {}
        at, shift = ((1.0, place), -2) if aside else ((share, place), 3)
        text = f"{share:.1%}"
        ax.annotate(
            text, at, xytext=(shift, 0), textcoords="offset points", va="center", fontsize=8, color=ink(), **where
        )
    _name_places(ax, [name for name, _, _ in bars])
    longest = max((share for _, share, _ in bars), default=0.0)
    ax.set_xlim(0.0, ROOM_FOR_NUMBERS * longest if longest > 0 else 1.0)
    ax.xaxis.set_major_formatter(PercentFormatter(1.0))
    ax.xaxis.set_major_locator(MaxNLocator(6))


def _name_places(ax: Axes, names: Sequence[str]) -> None:
    """Write names beside the lines 0, 1, ..., the first at the top."""
    ax.set_yticks(range(len(names)), shorten(names))
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.grid(visible=False, axis="y")


def _mark_classes(ax: Axes, class_shares: np.ndarray, class_names: Sequence[Any]) -> None:
    """Draw the share of each class on the bars; classes beyond a legend are small dots without a name."""
    places = np.arange(class_shares.shape[1])
    few = len(class_shares) <= MAX_LEGEND
    handles = []
    for k, shares in enumerate(class_shares):
        look: dict[str, Any] = class_look(k) if few else {"color": ink(), "marker": "."}
        edge: dict[str, Any] = {"markeredgecolor": ink(), "markeredgewidth": 0.7} if few else {"alpha": 0.6}
        handles += ax.plot(shares, places, linestyle="none", clip_on=False, zorder=3, **look, **edge)
    names = shorten(class_names, 20)
    if not few:
        handles, names = handles[:1], [f"each of {len(class_shares)} classes"]
    ax.set_xlim(0.0, ROOM_FOR_NUMBERS * max(ax.get_xlim()[1] / ROOM_FOR_NUMBERS, float(class_shares.max(initial=0.0))))
    place_legend(ax, handles, names, loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0)


def draw_leaderboard(
    ax: Any,
    names: Sequence[str],
    errors: np.ndarray,
    lows: np.ndarray,
    highs: np.ndarray,
    weights: np.ndarray,
    *,
    notes: Sequence[str] = (),
    mixture: tuple[float, float, float] | None = None,
    x_label: str = "error",
    n_candidates: int = 20,
    title: str = "",
    owner: str = "draw_leaderboard",
) -> tuple[Figure, np.ndarray]:
    """Draw errors of candidates with intervals, the mixture as a line with its own, and the weights.

    Parameters
    ----------
    ax : None, Axes or sequence of two Axes
    names : sequence of str, length n_candidates
    errors, lows, highs, weights : ndarray of shape (n_candidates,)
        NaN for candidates without an error.
    notes : sequence of str
        What is written in the place of an error that is not known, one for each candidate.
    mixture : (float, float, float), optional
        Error of the mixture, and the ends of its interval.
    x_label : str
    n_candidates : int
        Lines at most, the first of them; a note says how many are not shown.
    title : str
    owner : str
        Who draws, for errors.

    Returns
    -------
    figure : Figure
    axes : ndarray of Axes, shape (2,)
        Errors and weights.
    """
    shown = slice(n_candidates)
    size = (7.2, 1.5 + BAR_INCHES * len(names[shown]))
    with styled():
        figure, axes = panels(ax, 2, size, owner=owner, nrows=1, ncols=2, sharey=True, width_ratios=[3, 1])
        _name_places(axes[0], names[shown])
        handles, labels = _draw_errors(axes[0], errors[shown], lows[shown], highs[shown], notes, mixture, "candidate")
        axes[0].set_xlabel(plain(x_label))
        axes[0].set_title(plain(title))
        _draw_weights(axes[1], weights[shown])
        if len(names) > n_candidates:
            handles.append(Patch(alpha=0.0))
            labels.append(f"{len(names) - n_candidates} more not shown")
        legend_below(axes[0], handles, labels)
    return figure, axes


def draw_intervals(
    ax: Any,
    names: Sequence[str],
    values: np.ndarray,
    lows: np.ndarray,
    highs: np.ndarray,
    *,
    what: str,
    x_label: str,
    owner: str = "draw_intervals",
) -> tuple[Figure, np.ndarray]:
    """Draw numbers with intervals, one name a line, and a line at zero where an interval reaches it from above.

    Parameters
    ----------
    ax : None or Axes
    names : sequence of str, length n_names
    values, lows, highs : ndarray of shape (n_names,)
    what : str
        What a name is, for the legend.
    x_label : str
    owner : str
        Who draws, for errors.

    Returns
    -------
    figure : Figure
    axes : ndarray of Axes, shape (1,)
    """
    with styled():
        figure, axes = panels(ax, 1, (6.4, 1.2 + BAR_INCHES * len(names)), owner=owner)
        _name_places(axes[0], names)
        handles, labels = _draw_errors(axes[0], values, lows, highs, (), None, what)
        if np.min(lows, initial=0.0) < 0:
            axes[0].axvline(0.0, color=ink(), linewidth=0.8)
        axes[0].set_xlabel(plain(x_label))
        legend_below(axes[0], handles, labels)
    return figure, axes


def _draw_errors(
    ax: Axes,
    errors: np.ndarray,
    lows: np.ndarray,
    highs: np.ndarray,
    notes: Sequence[str],
    mixture: tuple[float, float, float] | None,
    what: str,
) -> tuple[list[Any], list[str]]:
    """Draw errors of ``what`` with intervals; return handles and labels of a legend."""
    handles: list[Any] = []
    labels: list[str] = []
    known = np.isfinite(errors)
    places = np.arange(len(errors))
    if mixture is not None:
        value, low, high = mixture
        ax.axvspan(low, high, color=COLORS[1], alpha=0.15, linewidth=0)
        handles.append(ax.axvline(value, color=COLORS[1], linestyle="--"))
        labels.append("mixture, 95 % interval")
    if known.any():
        arms = np.abs(np.vstack([errors - lows, highs - errors])[:, known])
        handles.append(ax.errorbar(errors[known], places[known], xerr=arms, fmt="o", color=COLORS[0], capsize=2.5))
        labels.append(f"{what}, 95 % interval")
    white = {"facecolor": paper(), "edgecolor": "none", "pad": 1.0}
    for place in places[~known]:
        note = shorten([notes[place]], NOTE_WIDTH)[0] if len(notes) else ""
        where: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "va": "center"}
        ax.annotate(note, (0.02, place), fontsize=8, style="italic", color=ink(), bbox=white, **where)
    ax.xaxis.set_major_locator(MaxNLocator(5))
    return handles, labels


def _draw_weights(ax: Axes, weights: np.ndarray) -> None:
    """Draw weights as bars with their numbers, beside names that another panel has."""
    ax.barh(range(len(weights)), weights, height=0.7, color=COLORS[0])
    for place, weight in enumerate(weights):
        shift: dict[str, Any] = {"xytext": (3, 0), "textcoords": "offset points"}
        ax.annotate(f"{weight:.2f}", (weight, place), va="center", fontsize=8, color=ink(), **shift)
    ax.set_xlim(0.0, 1.15 * ROOM_FOR_NUMBERS * (float(np.max(weights, initial=0.0)) or 1.0))
    ax.set_xlabel("weight")
    ax.xaxis.set_major_locator(MaxNLocator(3))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.tick_params(axis="y", length=0, labelleft=False)
    ax.grid(visible=False, axis="y")

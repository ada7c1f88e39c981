"""Drawings of curves: the course of a fit, a path over costs, reliability of probabilities. Plain data in, axes out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullFormatter

from .style import COLORS, GREY, class_look, ink, legend_below, panels, paper, place_legend, plain, shorten, styled

LEAST_GAP = 1e-16  # where a gap of zero is drawn on a logarithmic axis
MAX_LEGEND = 8  # problems with a line of their own look; more are thin and grey
WIDE_RANGE = 100.0  # ratio of positive values above which an axis is logarithmic
LEAST_RANGE = 0.005  # of values, in both directions: less is rounding
STAGE: dict[str, Any] = {"color": GREY, "linewidth": 0.9, "linestyle": ":"}
OUTSIDE: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "borderaxespad": 0.0}


def draw_certificate(
    ax: Any,
    problems: Sequence[tuple[Any, np.ndarray, np.ndarray, np.ndarray | None, np.ndarray]],
    *,
    stages: Sequence[int] = (),
    tol: float | None = None,
    gap_label: str = "relative gap",
    title: str = "",
    owner: str = "draw_certificate",
) -> tuple[Figure, np.ndarray]:
    """Draw objective and bound, summed over the problems, and below the gap of each on a logarithmic axis.

    Parameters
    ----------
    ax : None, Axes or sequence of two Axes
    problems : sequence of (name, steps, objectives, bounds, relative gaps)
        Arrays of one length each; bounds may be None.
    stages : sequence of int
        Steps at which a new stage begins.
    tol : float, optional
    gap_label, title : str
    owner : str
        Who draws, for errors.

    Returns
    -------
    figure : Figure
    axes : ndarray of Axes, shape (2,)
        Objective, gap.
    """
    with styled():
        figure, axes = panels(ax, 2, (6.4, 5.0), owner=owner, sharex=True, height_ratios=[1, 1])
        _draw_objective(axes[0], problems, stages)
        _draw_gaps(axes[1], problems, tol)
        axes[0].set_title(plain(title))
        axes[1].set_ylabel(gap_label)
        axes[1].set_xlabel("step")
        axes[1].xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        for step in stages:
            axes[1].axvline(step - 0.5, **STAGE)
        figure.align_ylabels(list(axes))
    return figure, axes


def _draw_objective(ax: Axes, problems: Sequence[tuple[Any, ...]], stages: Sequence[int]) -> None:
    steps = np.unique(np.concatenate([steps for _, steps, *_ in problems]))
    objective = sum(_carry(steps, mine, values) for _, mine, values, _, _ in problems)
    handles = ax.plot(steps, objective, color=COLORS[0], marker="o", markersize=4)
    names = ["objective" if len(problems) == 1 else f"objective, sum of {len(problems)} problems"]
    drawn = [objective]
    if all(bound is not None for *_, bound, _ in problems):
        bound = sum(_carry(steps, mine, values) for _, mine, _, values, _ in problems)
        handles += ax.plot(
            steps, bound, color=COLORS[1], linestyle="--", marker="s", markersize=6, markerfacecolor="none"
        )
        names.append("proven bound")
        drawn.append(bound)
    ends = np.concatenate(drawn)
    if ends.min() > 0 and ends.max() > WIDE_RANGE * ends.min():
        ax.set_yscale("log")
    else:
        _widen(ax, ends)
    lines = [ax.axvline(step - 0.5, **STAGE) for step in stages]
    if lines:
        handles, names = [*handles, lines[0]], [*names, "new stage"]
    ax.set_ylabel("objective")
    place_legend(ax, handles, names, loc="best")


def _widen(ax: Axes, values: np.ndarray) -> None:
    """Show at least a hundredth of the values, so that rounding does not look like progress, and whole numbers."""
    middle, half = (values.max() + values.min()) / 2, (values.max() - values.min()) / 2
    if half < LEAST_RANGE * abs(middle):
        ax.set_ylim(middle - LEAST_RANGE * abs(middle), middle + LEAST_RANGE * abs(middle))
    ax.ticklabel_format(axis="y", useOffset=False)


def _carry(steps: np.ndarray, mine: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the values at all steps: before a problem's first step its first value, after its last the last."""
    last = np.clip(np.searchsorted(mine, steps, side="right") - 1, 0, None)
    return values[last]


def _draw_gaps(ax: Axes, problems: Sequence[tuple[Any, ...]], tol: float | None) -> None:
    few = len(problems) <= MAX_LEGEND
    handles, names = [], shorten([name for name, *_ in problems], 20)
    for k, (_, steps, _, _, gaps) in enumerate(problems):
        look: dict[str, Any] = class_look(k) if few else {"color": GREY, "linewidth": 0.8, "marker": ".", "alpha": 0.7}
        edge: dict[str, Any] = {"markeredgecolor": ink(), "markeredgewidth": 0.4} if few else {}
        drawn = np.where(np.isfinite(gaps), np.maximum(gaps, LEAST_GAP), np.nan)
        handles += ax.plot(steps, drawn, **look, **edge)
    if not few:
        handles, names = handles[:1], [f"each of {len(problems)} problems"]
    elif len(problems) == 1:
        handles, names = [], []
    if tol is not None:
        handles.append(ax.axhline(tol, color=ink(), linestyle="--", linewidth=1.0))
        names.append(f"tolerance {tol:.3g}")
    ax.set_yscale("log")
    legend = place_legend(ax, handles, names, **(OUTSIDE if len(handles) > 2 else {"loc": "best"}))
    if legend is not None and few and len(problems) > 1:
        legend.set_title("problem")


def draw_path(
    ax: Any,
    Cs: np.ndarray,
    series: Sequence[tuple[str, np.ndarray, np.ndarray | None, bool]],
    *,
    chosen: float | None = None,
    tol: float | None = None,
    title: str = "",
    owner: str = "draw_path",
) -> tuple[Figure, np.ndarray]:
    """Draw one panel for each series against C on a logarithmic axis.

    Parameters
    ----------
    ax : None, Axes or sequence of Axes
    Cs : ndarray of shape (n_Cs,)
    series : sequence of (label, values, standard errors or None, whether the axis is logarithmic)
        Values that are NaN are left out.
    chosen : float, optional
        The C that is marked.
    tol : float, optional
        A line in the last panel, if that is logarithmic.
    title : str
    owner : str
        Who draws, for errors.

    Returns
    -------
    figure : Figure
    axes : ndarray of Axes, shape (n_series,)
    """
    with styled():
        figure, axes = panels(ax, len(series), (6.4, 1.2 + 1.7 * len(series)), owner=owner, sharex=True)
        for k, (panel, (label, values, errors, is_log)) in enumerate(zip(axes, series, strict=True)):
            known = np.isfinite(values)
            look: dict[str, Any] = {"color": COLORS[k % len(COLORS)], "marker": "os^"[k % 3]}
            if is_log:
                panel.plot(Cs[known], np.maximum(values[known], LEAST_GAP), **look)
                panel.set_yscale("log")
                if tol is not None:
                    line = panel.axhline(tol, color=ink(), linestyle="--", linewidth=1.0)
                    place_legend(panel, [line], [f"tolerance {tol:.3g}"], loc="best")
            else:
                arms = None if errors is None else np.nan_to_num(errors[known])
                panel.errorbar(Cs[known], values[known], yerr=arms, capsize=2.5, elinewidth=1.0, **look)
            panel.set_ylabel(label)
            if chosen is not None:
                panel.axvline(chosen, color=GREY, linestyle=":", linewidth=1.5)
        axes[0].set_title(plain(title))
        axes[-1].set_xscale("log")
        axes[-1].set_xlabel("C")
        if len(Cs) == 1:
            axes[-1].xaxis.set_minor_formatter(NullFormatter())
        if chosen is not None:
            axes[0].set_title(f"dotted: chosen, C = {chosen:.3g}", loc="right", fontsize=9, color=ink())
        figure.align_ylabels(list(axes))
    return figure, axes


def draw_reliability(
    ax: Any,
    predicted: np.ndarray,
    observed: np.ndarray,
    lows: np.ndarray,
    highs: np.ndarray,
    counts: np.ndarray,
    edges: np.ndarray,
    *,
    x_label: str = "predicted probability",
    y_label: str = "observed share",
    title: str = "",
    owner: str = "draw_reliability",
) -> tuple[Figure, np.ndarray]:
    """Draw observed shares against predicted probabilities with intervals, and below how many rows each bin has.

    Parameters
    ----------
    ax : None, Axes or sequence of two Axes
    predicted, observed, lows, highs, counts : ndarray of shape (n_bins,)
        Mean probability, share and the ends of its interval, number of rows; NaN where a bin is empty.
    edges : ndarray of shape (n_bins + 1,)
    x_label, y_label, title : str
    owner : str
        Who draws, for errors.

    Returns
    -------
    figure : Figure
    axes : ndarray of Axes, shape (2,)
    """
    with styled():
        figure, axes = panels(ax, 2, (5.2, 5.6), owner=owner, sharex=True, height_ratios=[3, 1])
        curve, below = axes
        ideal = curve.plot([0, 1], [0, 1], color=GREY, linestyle="--", linewidth=1.0)
        known = counts > 0
        arms = np.abs(np.vstack([observed - lows, highs - observed])[:, known])
        points = curve.errorbar(
            predicted[known], observed[known], yerr=arms, marker="o", linewidth=1.0, color=COLORS[0], capsize=2.5
        )
        curve.set_ylim(-0.02, 1.02)
        curve.set_xlim(-0.02, 1.02)
        curve.set_ylabel(plain(y_label))
        curve.set_title(plain(title))
        below.bar(edges[:-1], counts, width=np.diff(edges), align="edge", color=COLORS[0], edgecolor=paper())
        below.set_ylabel("rows")
        below.yaxis.set_major_locator(MaxNLocator(3, integer=True))
        below.set_xlabel(plain(x_label))
        legend_below(below, [*ideal, points], ["perfect", "observed, 95 % interval"])
        figure.align_ylabels(list(axes))
    return figure, axes

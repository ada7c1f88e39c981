"""Drawings of rows in the plane: given and filled-in labels, the least certain, centres. Plain data in, axes out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from .style import class_look, ink, panels, paper, place_legend, plain, shorten, styled

MAX_NAMED = 24  # classes in the legend, those with the most rows
LEGEND_COLUMN = 14  # names in one column of the legend
GIVEN_SIZE, FILLED_SIZE, CENTER_SIZE = 42.0, 14.0, 110.0  # areas in square points
MANY_POINTS = 1000  # above, filled-in rows are smaller
NUMBER_COLORS = "cividis"  # the same for colour-blind readers, and rising in grey


def draw_map(
    ax: Any,
    points: np.ndarray,
    values: np.ndarray,
    is_labeled: np.ndarray,
    *,
    classes: Sequence[Any] | None = None,
    is_doubtful: np.ndarray | None = None,
    is_center: np.ndarray | None = None,
    doubtful_label: str = "least certain",
    center_label: str = "centre",
    x_label: str = "",
    y_label: str = "",
    title: str = "",
    owner: str = "draw_map",
) -> tuple[Figure, np.ndarray]:
    """Draw rows as points: labelled ones large with a dark edge, filled-in ones small, the least certain hollow.

    Parameters
    ----------
    ax : None or Axes
    points : ndarray of shape (n_rows, 2)
    values : ndarray of shape (n_rows,)
        Number of the class of each row, given or filled in; numbers where ``classes`` is None.
    is_labeled, is_doubtful, is_center : ndarray of bool, shape (n_rows,)
    classes : sequence, optional
    doubtful_label, center_label, x_label, y_label, title : str
    owner : str
        Who draws, for errors.

    Returns
    -------
    figure : Figure
    axes : ndarray of Axes, shape (1,)
    """
    nobody = np.zeros(len(points), dtype=bool)
    is_doubtful = nobody if is_doubtful is None or classes is None else is_doubtful & ~is_labeled
    is_center = nobody if is_center is None else is_center
    kinds = [("filled in", ~is_labeled & ~is_doubtful), ("doubtful", is_doubtful), ("given", is_labeled)]
    handles, names = ([], []) if classes is None else _legend_of_classes(values, classes)
    present = {name: bool(rows.any()) for name, rows in [*kinds, ("centre", is_center)]}
    more = _legend_of_kinds(present, {"doubtful": doubtful_label, "centre": center_label})
    handles, names = handles + more[0], names + more[1]
    n_columns = 1 + (len(names) - 1) // LEGEND_COLUMN
    with styled():
        figure, axes = panels(ax, 1, (5.6 + 2.0 * n_columns, 5.2), owner=owner)
        plane = axes[0]
        shrink = 1.0 if len(points) <= MANY_POINTS else MANY_POINTS / len(points)
        sizes = {"filled in": FILLED_SIZE * max(0.4, shrink), "doubtful": FILLED_SIZE * 1.4, "given": GIVEN_SIZE}
        for kind, rows in kinds:
            if not rows.any():
                continue
            if classes is None:
                _draw_numbers(plane, points, values, rows, kind, sizes[kind])
            else:
                _draw_classes(plane, points, values, rows, kind, sizes[kind])
        if is_center.any():
            look: dict[str, Any] = {"s": CENTER_SIZE, "marker": "+", "linewidths": 0.9, "color": ink(), "zorder": 1.8}
            plane.scatter(*points[is_center].T, label="centre", **look)  # behind the points, whose colours stay seen
        if classes is None and len(points):
            figure.colorbar(plane.collections[0], ax=plane, shrink=0.8, location="left", label="value")
        place_legend(
            plane, handles, names, loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0, ncols=n_columns
        )
        plane.set_xlabel(plain(x_label))
        plane.set_ylabel(plain(y_label))
        plane.set_title(plain(title))
        plane.grid(visible=False)
        plane.tick_params(labelbottom=False, labelleft=False, length=0)  # only distances mean something
    return figure, axes


def _draw_classes(ax: Axes, points: np.ndarray, codes: np.ndarray, rows: np.ndarray, kind: str, size: float) -> None:
    for k in np.unique(codes[rows]):
        mine, look = rows & (codes == k), class_look(int(k))
        ax.scatter(*points[mine].T, marker=look["marker"], label=kind, **_fill(kind, look["color"], size))


def _draw_numbers(ax: Axes, points: np.ndarray, values: np.ndarray, rows: np.ndarray, kind: str, size: float) -> None:
    x, y = points[rows].T
    low, high = float(values.min()), float(values.max())
    look = _fill(kind, None, size)
    ax.scatter(x, y, c=values[rows], cmap=NUMBER_COLORS, vmin=low, vmax=high, label=kind, **look)


def _fill(kind: str, color: str | None, size: float) -> dict[str, Any]:
    """Return how a row of a kind is drawn in a colour; a yellow point, too, has an edge."""
    if kind == "doubtful":
        return {"facecolors": paper(), "edgecolors": color, "linewidths": 1.2, "s": size, "zorder": 3}
    own = {} if color is None else {"facecolors": color}
    if kind == "given":
        return {**own, "edgecolors": ink(), "linewidths": 1.0, "s": size, "zorder": 4}
    return {**own, "edgecolors": ink(), "linewidths": 0.25, "s": size, "alpha": 0.65, "zorder": 2}


def _legend_of_kinds(present: dict[str, bool], labels: dict[str, str]) -> tuple[list[Any], list[str]]:
    grey: dict[str, Any] = {"linestyle": "none", "marker": "o", "color": "#9a9a9a"}
    looks: dict[str, dict[str, Any]] = {
        "given": {**grey, "markersize": 6.5, "markeredgecolor": ink()},
        "filled in": {**grey, "markersize": 3.7, "markeredgecolor": ink(), "markeredgewidth": 0.25},
        "doubtful": {**grey, "markersize": 4.4, "markerfacecolor": paper(), "markeredgecolor": ink()},
        "centre": {"linestyle": "none", "marker": "+", "markersize": 9, "markeredgewidth": 0.9, "color": ink()},
    }
    shown = [name for name in looks if present[name]]
    return [Line2D([], [], **looks[name]) for name in shown], [plain(labels.get(name, name)) for name in shown]


def _legend_of_classes(codes: np.ndarray, classes: Sequence[Any]) -> tuple[list[Any], list[str]]:
    counts = np.bincount(codes, minlength=len(classes))
    named = np.sort(np.argsort(-counts, kind="stable")[:MAX_NAMED])
    handles = [
        Line2D([], [], linestyle="none", markersize=6, markeredgecolor=ink(), markeredgewidth=0.4, **class_look(int(k)))
        for k in named
    ]
    names = shorten([classes[k] for k in named], 20)
    if len(classes) > len(named):
        handles.append(Line2D([], [], linestyle="none"))
        names.append(f"and {len(classes) - len(named)} other classes")
    return handles, names

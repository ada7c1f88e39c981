"""Drawings of what papers compare, as SVG to be put into a page."""

from __future__ import annotations

import io
from collections.abc import Sequence
from math import nan
from statistics import fmean, stdev
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator, ScalarFormatter

from .drawing import embed_svg
from .style import COLORS, DASHES, MARKERS, styled

INCHES = (5.6, 3.7)


def draw(item: dict[str, Any], panel: dict[str, Any], records: Sequence[dict[str, Any]], prefix: str) -> str:
    """Return one panel as an SVG element whose ids begin with ``prefix``, so that a page may hold many.

    Parameters
    ----------
    item, panel : dict
        As the description of the paper has them.
    records : sequence of dict
        Of this item; those with an error are left out.
    prefix : str
    """
    done = [record for record in records if "error" not in record]
    with styled():
        figure = Figure(figsize=INCHES, layout="constrained")
        axes = figure.add_subplot()
        _draw_series(axes, item, panel, done)
        axes.set(title=panel["title"], xlabel=panel["x_label"], ylabel=panel["y_label"])
        if "y" in panel["log"]:
            axes.set_yscale("log")
        if "x" in panel["log"]:
            axes.set_xscale("log")
            if panel["x"] is None:
                _name_places(axes, panel["rows"] or item["rows"])
        if len(axes.get_legend_handles_labels()[1]) > 1:
            if panel["style"] in ("bars", "links"):  # these leave no room inside
                figure.legend(loc="outside lower center", ncols=2)
            else:
                axes.legend()
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return embed_svg(text.getvalue(), prefix, f"{item['name']}: {panel['title']}")


def series(item: dict[str, Any], panel: dict[str, Any], records: Sequence[dict[str, Any]]) -> dict[str, list[Any]]:
    """Return what a panel shows: for each name of a line the points (x, y) of its curves, one curve a trial.

    Where rows are places on the axis there is one curve, whose points are (row, mean, standard error).
    """
    rows = panel["rows"] or item["rows"]
    drawn: dict[str, list[Any]] = {}
    known = dict.fromkeys([*item["methods"], *(record["method"] for record in records)])
    for method in panel["methods"] or known:
        mine = [r for r in records if r["method"] == method and r["row"] in rows and "error" not in r]
        if panel["x"] is None:
            points = [(row, *_mean(mine, row, panel["y"])) for row in rows]
            points = [point for point in points if point[1] is not None]
            if points:
                drawn[method] = [points]
        else:
            for row in rows:
                curves = [r["values"] for r in mine if r["row"] == row and panel["y"] in r["values"]]
                if curves:
                    many = len({r["row"] for r in records if r["row"] in rows}) > 1
                    name = f"{row}: {method}" if many else method
                    drawn[name] = [list(zip(v[panel["x"]], v[panel["y"]], strict=True)) for v in curves]
    return drawn


def _draw_series(axes: Axes, item: dict[str, Any], panel: dict[str, Any], records: Sequence[dict[str, Any]]) -> None:
    if panel["style"] == "links":
        _draw_links(axes, item, panel, records)
        return
    shown = series(item, panel, records)
    for k, (name, curves) in enumerate(shown.items()):
        look: dict[str, Any] = {"color": COLORS[k % len(COLORS)], "marker": MARKERS[k % len(MARKERS)]}
        dash = DASHES[k % len(DASHES)]
        if panel["style"] == "bars":
            rows = panel["rows"] or item["rows"]
            width = 0.8 / len(shown)
            places = [rows.index(row) + (k - (len(shown) - 1) / 2) * width for row, *_ in curves[0]]
            heights, errors = [point[1] for point in curves[0]], [point[2] for point in curves[0]]
            axes.bar(places, heights, width * 0.9, yerr=errors, label=name, color=look["color"], ecolor="#555555")
            axes.set_xticks(range(len(rows)), rows)
            axes.grid(visible=False, axis="x")
        elif panel["x"] is None:
            x, y, e = zip(*((float(row), mean, error) for row, mean, error in curves[0]), strict=True)
            axes.errorbar(x, y, yerr=e, label=name, linestyle=dash, capsize=2, **look)
        else:
            for trial, curve in enumerate(curves):
                x, y = zip(*curve, strict=True)
                more: dict[str, Any] = {"label": name} if trial == 0 else {"alpha": 0.35}
                if panel["style"] == "points":
                    axes.plot(x, y, linestyle="none", **look, **more)
                else:
                    axes.plot(x, y, linestyle=dash, color=look["color"], **more)


def _draw_links(axes: Axes, item: dict[str, Any], panel: dict[str, Any], records: Sequence[dict[str, Any]]) -> None:
    """Join estimated points to true ones; one method a panel is readable, the first trial is shown."""
    rows, methods = panel["rows"] or item["rows"], panel["methods"] or item["methods"]
    mine = (r["values"] for r in records if r["row"] in rows and r["method"] in methods)
    first = next((values for values in mine if panel["y"] in values), None)
    if first is None:
        return
    x, y = first[panel["x"]], first[panel["y"]]
    to_x, to_y = (first[name] for name in panel["to"])
    pairs = ((x, to_x), (y, to_y))
    ends = ([value for pair in zip(here, there, strict=True) for value in (*pair, nan)] for here, there in pairs)
    axes.plot(*ends, color="#999999", linewidth=0.6)  # one path with gaps, not thousands
    axes.plot(to_x, to_y, "o", color=COLORS[1], markersize=3, markerfacecolor="none", label="true")
    axes.plot(x, y, ".", color=COLORS[0], markersize=3, label="estimated")


def _mean(records: Sequence[dict[str, Any]], row: str, name: str) -> tuple[float | None, float]:
    values = [r["values"][name] for r in records if r["row"] == row and r["values"].get(name) is not None]
    if not values:
        return None, 0.0
    return fmean(values), stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0


def _name_places(axes: Axes, rows: Sequence[str]) -> None:
    """Name the rows on a logarithmic axis, but those too close to the one before."""
    places = sorted(float(row) for row in rows)
    apart = (places[-1] / places[0]) ** 0.08
    named = places[:1]
    for place in places[1:]:
        if place >= apart * named[-1]:
            named.append(place)
    axes.xaxis.set_major_locator(FixedLocator(named))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(ScalarFormatter())

"""What the command shows: its progress, and the report for people or as JSON."""

from __future__ import annotations

import json
import math
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table as Grid

from ..estimators.shared.progress import Show, show_progress


@contextmanager
def show_stages() -> Iterator[Show]:
    """Show the stages of the work, and warnings as notes between them."""
    with warnings.catch_warnings(), show_progress(keep_bar=False, estimate=True) as show:
        # The name is looked up for each warning: beneath a bar, standard error prints above it.
        warnings.showwarning = lambda message, *_, **__: print_note(str(message))
        yield show


def print_note(text: str) -> None:
    """Print a note on standard error."""
    print(f"note: {text}", file=sys.stderr, flush=True)


def as_json(report: dict[str, Any], escaped: bool = False) -> str:
    """Return the report as JSON, which has no NaN and no infinity: they are null."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(part) for key, part in value.items()}
        if isinstance(value, list | tuple):
            return [plain(part) for part in value]
        return None if isinstance(value, float) and not math.isfinite(value) else value

    return json.dumps(plain(report), indent=1, ensure_ascii=escaped, allow_nan=False)


def show_report(report: dict[str, Any], out: Path, model: Path | None) -> None:
    """Print the report for people."""
    console = Console(highlight=False)
    console.print(
        f"[bold]{report['rows_filled']:,}[/] rows labelled from {report['rows_labeled']:,} given labels: "
        f"{report['task']} ({report['task_was']})"
    )
    if "classes" in report:
        shown = ", ".join(f"{name} {count}" for name, count in list(report["classes"].items())[:12])
        console.print(f"given labels: {shown}{', …' if len(report['classes']) > 12 else ''}", markup=False)
    _show_errors(console, report)
    for warning in report["warnings"]:
        console.print(f"[bold]note:[/] {escape(warning)}")
    if "probabilities" in report:
        console.print(f"probabilities: {report['probabilities']}", markup=False)
    _show_kernels(console, report)
    _show_columns(console, report["columns"])
    console.print(f"written to {out}, record in {out.name}.json", markup=False, soft_wrap=True)
    if model is not None:
        console.print(f"model saved to {model}", markup=False, soft_wrap=True)


def _show_errors(console: Console, report: dict[str, Any]) -> None:
    tested, labeled = report["rows_tested"], report["rows_labeled"]
    rows = f"{tested:,} of the {labeled:,}" if tested < labeled else "the"
    grid = Grid(title=f"cross-validated on {rows} labelled rows", title_justify="left", title_style="")
    grid.add_column("")
    if report["task"] == "classification":
        for name in ("error", "95 % interval", "balanced error"):
            grid.add_column(name, justify="right")
        for name, e in report["errors"].items():
            low, high = e["interval"]
            grid.add_row(name, f"{e['error']:.1%}", f"{low:.1%} – {high:.1%}", f"{e['balanced_error']:.1%}")
    else:
        for name in ("mean absolute error", "root mean square error"):
            grid.add_column(name, justify="right")
        for name, e in report["errors"].items():
            grid.add_row(name, f"{e['mean_absolute_error']:.4g}", f"{e['rmse']:.4g}")
    console.print(grid)


def _show_kernels(console: Console, report: dict[str, Any]) -> None:
    grid = Grid(title="kernels chosen", title_justify="left", title_style="")
    for name, side in (("kernel", "left"), ("source", "left"), ("basis functions", "right"), ("share", "right")):
        grid.add_column(name, justify=side)  # type: ignore[arg-type]
    for usage in report["kernels"]:
        if usage["columns"]:
            grid.add_row(escape(usage["name"]), escape(usage["source"]), str(usage["columns"]), f"{usage['share']:.0%}")
    console.print(grid)
    certificate = report["certificate"]
    centers = "all rows as centres"
    if certificate["candidates"] < certificate["rows"]:
        n_centers, n_rows = certificate["candidates"], certificate["rows"]
        centers = f"{n_centers:,} of {n_rows:,} rows as centres (labelled rows and a random sample)"
    bound = describe_bound(certificate["objective"], certificate["gap"])
    console.print(f"certificate: {bound}, with {centers}. {certificate['status']}", markup=False)


def describe_bound(objective: float, gap: float) -> str:
    """Return how far the objective may be above the optimum, which is at least the objective less the gap."""
    bound = objective - gap
    excess = 0.0 if gap <= 0 else gap / bound if bound > 0 else math.inf
    if excess >= 1.0:
        return "no useful bound (the optimum may be less than half of the value reached)"
    return f"within {excess:.1e} of the optimum (relative)"


def _show_columns(console: Console, columns: dict[str, Any]) -> None:
    used, left_out = columns["used"], columns["left_out"]
    shown = ", ".join(f"{name} ({kind})" for name, kind in list(used.items())[:10])
    console.print(f"{len(used)} columns used: {shown}{', …' if len(used) > 10 else ''}", markup=False)
    for name, why in left_out.items():
        console.print(f"left out: {name or 'the first column'} ({why})", markup=False)

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
from .harmless import harmless, harmless_json
from .streams import can_show

MAX_LEFT_OUT = 20  # columns that are shown with their reason


@contextmanager
def show_stages(*, is_quiet: bool = False, time_limit: float | None = None) -> Iterator[Show]:
    """Show the stages of the work on a terminal, with the time that is left; and warnings as notes between them.

    Parameters
    ----------
    is_quiet : bool
        Whether only the notes are shown.
    time_limit : float, optional
        Seconds that the work may take.
    """
    bar = show_progress(bar=not is_quiet, keep_bar=False, lines=False, limit=time_limit)
    with warnings.catch_warnings(), bar as show:
        # The name is looked up for each warning: beneath a bar, standard error prints above it.
        warnings.showwarning = lambda message, *_, **__: print_note(str(message))
        yield lambda title, share, *figures: show(harmless(title), share, *figures)  # columns have names, too


def print_note(text: str) -> None:
    """Print a note on standard error."""
    print(f"note: {harmless(text)}", file=sys.stderr, flush=True)


def open_console(stderr: bool = False) -> Console:
    """Return a console that leaves texts as they are; without a terminal, or with NO_COLOR, it has no colours."""
    return Console(highlight=False, emoji=False, stderr=stderr)


def print_json(report: dict[str, Any]) -> None:
    """Print a report as JSON, and its warnings as notes."""
    for note in report.get("warnings", ()):
        print_note(note)
    print(text if can_show(text := as_json(report)) else as_json(report, escaped=True))


def as_json(report: dict[str, Any], escaped: bool = False) -> str:
    """Return the report as JSON, which has no NaN and no infinity: they are null."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(part) for key, part in value.items()}
        if isinstance(value, list | tuple):
            return [plain(part) for part in value]
        return None if isinstance(value, float) and not math.isfinite(value) else value

    return harmless_json(json.dumps(plain(report), indent=1, ensure_ascii=escaped, allow_nan=False))


def show_report(report: dict[str, Any], out: Path | None, model: Path | None) -> None:
    """Print the report for people; where the copy went to standard output (``None``), on standard error."""
    report, console = harmless(report), open_console(stderr=out is None)
    console.print(
        f"[bold]{report['rows_filled']:,}[/] rows labelled from {report['rows_labeled']:,} given labels: "
        f"{report['task']} ({report['task_was']})"
    )
    if "classes" in report:
        shown = ", ".join(f"{name} {count}" for name, count in list(report["classes"].items())[:12])
        console.print(f"given labels: {shown}{', …' if len(report['classes']) > 12 else ''}", markup=False)
    _show_candidates(console, report)
    _show_errors(console, report)
    if report["unlabeled_helped"] is not None:
        console.print(describe_help(report["unlabeled_helped"], report["task"]), markup=False)
    show_notes(console, report["warnings"])
    if "probabilities" in report:
        console.print(f"probabilities: {report['probabilities']}", markup=False)
    _show_certificates(console, report)
    show_rows(console, report)
    show_columns(console, report["columns"])
    if out is not None:
        console.print(harmless(f"written to {out}, record in {out.name}.json"), markup=False, soft_wrap=True)
    if model is not None:
        console.print(harmless(f"model saved to {model}"), markup=False, soft_wrap=True)


def make_grid(lines: bool = True, **columns: str) -> Grid:
    """Return an empty table; ``columns`` are headings, "_" for a blank, and the sides to which cells are aligned."""
    grid = Grid() if lines else Grid(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name, side in columns.items():
        grid.add_column(name.replace("_", " ").strip(), justify=side, overflow="fold")  # type: ignore[arg-type]
    return grid


def _show_candidates(console: Console, report: dict[str, Any]) -> None:
    console.print("learners, by their weight in the prediction:")
    grid = make_grid(
        learner="left",
        error="right",
        weight="right",
        uses_unlabelled_rows="left",
        seconds="right",
    )
    for record in report["leaderboard"]:
        was_tried = record["status"] in ("tested", "not tested", "out of the race")
        grid.add_row(
            escape(record["candidate"]),
            _describe_error(record, report["task"]),
            f"{record['weight']:.0%}" if record["weight"] else "",
            ("yes" if record["uses_unlabeled"] else "no") if was_tried else "",
            f"{record['seconds']:.1f}" if was_tried else "",
        )
    console.print(grid)


def _describe_error(record: dict[str, Any], task: str) -> str:
    """Return the error of a candidate with its standard error, or why there is none."""
    if not math.isfinite(record["error"]):
        return "failed" if record["status"].startswith("failed") else str(record["status"])
    if task == "classification":
        return f"{record['error']:.1%} ± {record['standard_error']:.1%}"
    return f"{record['error']:.4g} ± {record['standard_error']:.2g}"


def _show_errors(console: Console, report: dict[str, Any]) -> None:
    if not report["errors"]:
        return
    tested, labeled = report["rows_tested"], report["rows_labeled"]
    console.print(f"on {tested:,} of {labeled:,} labelled rows, held out from training:")
    names = {"kernelweave": "prediction"}
    if report["task"] == "classification":
        grid = make_grid(_="left", error="right", interval="right", balanced_error="right")
        for name, e in report["errors"].items():
            low, high = e["interval"]
            interval = f"{low:.1%} – {high:.1%}"
            grid.add_row(names.get(name, name), f"{e['error']:.1%}", interval, f"{e['balanced_error']:.1%}")
    else:
        grid = make_grid(_="left", root_mean_square_error="right", interval="right", mean_absolute_error="right")
        for name, e in report["errors"].items():
            low, high = e["interval"]
            interval = f"{low:.4g} – {high:.4g}"
            grid.add_row(names.get(name, name), f"{e['rmse']:.4g}", interval, f"{e['mean_absolute_error']:.4g}")
    grid.columns[2].header = "95 % interval"
    console.print(grid)


def describe_help(helped: dict[str, Any], task: str) -> str:
    """Return a sentence on what unlabelled rows did to the error."""
    values = (helped["difference"], *helped["interval"])
    if task == "classification":
        what, (difference, low, high) = "error", (f"{100 * value:+.1f}" for value in values)
        unit = " points"
    else:
        what, (difference, low, high) = "mean squared error", (f"{value:+.3g}" for value in values)
        unit = ""
    verdict = helped["verdict"][0].upper() + helped["verdict"][1:]
    if helped["verdict"] == "no clear difference":
        verdict = "Whether unlabelled rows helped is not clear"
    return f"{verdict}: without them the {what} changes by {difference}{unit} (95 % interval {low} to {high})."


def _show_certificates(console: Console, report: dict[str, Any]) -> None:
    shown: dict[str, dict[str, Any]] = {}
    for member in [*report["members"], report["best_certified"]]:
        if member is not None and member["certificate"] is not None:
            shown.setdefault(member["candidate"], member["certificate"])
    for name, certificate in shown.items():
        console.print(f"certificate of {name}: {describe_certificate(certificate)}", markup=False)
    best = report["best_certified"]
    kernels = [kernel for kernel in best["kernels"] if kernel["share"] > 0] if best else []
    if not kernels:
        return
    console.print(f"kernels of {best['candidate']}:", markup=False)
    grid = make_grid(kernel="left", source="left", share="right")
    for kernel in kernels:
        grid.add_row(escape(kernel["name"]), escape(kernel["source"]), f"{kernel['share']:.0%}")
    console.print(grid)


def describe_certificate(certificate: dict[str, Any]) -> str:
    """Return what a certificate proves and, where that is less than was asked for, why the fit stopped."""
    kind = certificate["kind"]
    bound = describe_bound(certificate["objective"], certificate["gap"])
    if kind != "duality gap":
        bound = f"{kind} {certificate['relative']:.1e} (relative to the objective)"
    return bound if certificate["converged"] else f"{bound}. {certificate['status']}"


def describe_bound(objective: float, gap: float) -> str:
    """Return how far the objective may be above the optimum, which is at least the objective less the gap."""
    bound = objective - gap
    excess = 0.0 if gap <= 0 else gap / bound if bound > 0 else math.inf
    if excess >= 1.0:
        return "no useful bound (the optimum may be less than half of the value reached)"
    return f"within {excess:.1e} of the optimum (relative)"


def show_rows(console: Console, report: dict[str, Any]) -> None:
    """Show given labels that are doubtful, and rows worth labelling."""
    for key, title, columns in (
        ("suspects", "given labels that the model contradicts most, by row of the file:", ("given", "suggested")),
        ("next", "rows of the file that are worth labelling next:", ("guess",)),
    ):
        records = report.get(key)
        if not records:
            continue
        ids = list(records[0].get("id", {}))
        console.print(title)
        grid = make_grid(row="right")
        for name in (*ids, *columns):
            grid.add_column(escape(name), overflow="fold")
        for record in records:
            cells = (*(record["id"][name] for name in ids), *(record[name] for name in columns))
            grid.add_row(str(record["row"]), *map(escape, cells))
        console.print(grid)


def show_notes(console: Console, notes: list[str]) -> None:
    """Show sentences that a user should read."""
    for note in notes:
        console.print(f"[bold]note:[/] {escape(note)}")


def show_columns(console: Console, columns: dict[str, Any]) -> None:
    """Show which columns are learned from, and why others are not."""
    used, left_out = columns["used"], columns["left_out"]
    shown = ", ".join(f"{name} ({kind})" for name, kind in list(used.items())[:10])
    console.print(f"{len(used)} columns used: {shown}{', …' if len(used) > 10 else ''}", markup=False)
    for name, why in list(left_out.items())[:MAX_LEFT_OUT]:
        console.print(f"left out: {name or 'the first column'} ({why})", markup=False)
    if len(left_out) > MAX_LEFT_OUT:
        console.print(f"left out as well: {len(left_out) - MAX_LEFT_OUT} more columns (--json lists them)")

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
from ..short_text import format_number, format_numbers
from .harmless import harmless, harmless_json, shorten
from .streams import can_show

MAX_LEFT_OUT = 20  # columns that are shown with their reason


class Stages:
    """Shows the stages of the work, and keeps the warnings of it.

    Parameters
    ----------
    show : callable
        ``show(title, share, detail, seconds_left)``.
    """

    def __init__(self, show: Show):
        self._show = show
        self._notes: list[str] = []

    def __call__(self, title: str, share: float, detail: str = "", seconds_left: float | None = None) -> None:
        """Show what comes next; columns have names, too."""
        self._show(harmless(title), share, harmless(detail), seconds_left)

    def add_note(self, message: Warning | str, *_: Any, **__: Any) -> None:
        """Keep a warning, once."""
        if (text := str(message)) not in self._notes:
            self._notes.append(text)

    def take_notes(self) -> list[str]:
        """Return the warnings since the last call, for a report; those that nobody takes are printed at the end."""
        notes, self._notes = self._notes, []
        return notes


@contextmanager
def show_stages(
    *, is_quiet: bool = False, time_limit: float | None = None, seconds_between_lines: float | None = None
) -> Iterator[Stages]:
    """Show the stages of the work on a terminal, with the time that is left; warnings become notes.

    Parameters
    ----------
    is_quiet : bool
        Whether only the notes are shown.
    time_limit : float, optional
        Seconds that the work may take.
    seconds_between_lines : float, optional
        For work of hours: where there is no terminal, lines are printed, so many seconds apart.
    """
    bar = show_progress(
        bar=not is_quiet,
        keep_bar=False,
        lines=not is_quiet and seconds_between_lines is not None,
        seconds_between_lines=seconds_between_lines or 0.0,
        limit=time_limit,
    )
    with warnings.catch_warnings(), bar as show:
        stages = Stages(show)
        warnings.showwarning = stages.add_note
        try:
            yield stages
        finally:
            for note in stages.take_notes():
                print_note(note)  # beneath a bar, standard error prints above it


def print_note(text: str) -> None:
    """Print a note on standard error."""
    print(f"note: {harmless(shorten(text))}", file=sys.stderr, flush=True)


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


def show_report(report: dict[str, Any], out: Path | None, record_name: str, model: Path | None) -> None:
    """Print the report for people; where the copy went to standard output (``None``), on standard error."""
    report, console = harmless(report), open_console(stderr=out is None)
    console.print(
        f"[bold]{report['rows_filled']:,}[/] rows labelled from {report['rows_labeled']:,} given labels: "
        f"{report['task']} ({report['task_was']})"
    )
    if "files" in report:
        rows = f"{report['rows_learned']:,} of {report['rows']:,} rows"
        console.print(f"learned from {rows} in {report['files']:,} files")
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
        console.print(harmless(f"written to {out}, record in {record_name}"), markup=False, soft_wrap=True)
    if model is not None:
        console.print(harmless(f"model saved to {model}"), markup=False, soft_wrap=True)


def make_grid(lines: bool = True, **columns: str) -> Grid:
    """Return an empty table; ``columns`` are headings, "_" for a blank, and the sides to which cells are aligned."""
    grid = Grid() if lines else Grid(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for name, side in columns.items():
        grid.add_column(name.replace("_", " ").strip(), justify=side, overflow="fold")  # type: ignore[arg-type]
    return grid


def write_columns(
    records: list[dict[str, Any]], keys: tuple[str, ...], is_share: bool, sign: bool = False
) -> list[list[str]]:
    """Return the numbers under these keys of each record, all with the same decimals; of shares percentages."""
    values = [record[key] for record in records for key in keys]
    if is_share:
        plus = "+" if sign else ""
        texts = [f"{100 * value:{plus}.1f}" if math.isfinite(value) else "–" for value in values]
    else:
        texts = format_numbers(values, 3, sign)
    return [texts[start : start + len(keys)] for start in range(0, len(texts), len(keys))]


def _show_candidates(console: Console, report: dict[str, Any]) -> None:
    console.print("learners, by their weight in the prediction:")
    grid = make_grid(
        learner="left",
        error="right",
        weight="right",
        uses_unlabelled_rows="left",
        seconds="right",
    )
    errors = _describe_errors(report["leaderboard"], report["task"])
    for record, error in zip(report["leaderboard"], errors, strict=True):
        was_tried = record["status"] in ("tested", "not tested", "out of the race")
        grid.add_row(
            escape(record["candidate"]),
            error,
            f"{record['weight']:.0%}" if record["weight"] else "",
            ("yes" if record["uses_unlabeled"] else "no") if was_tried else "",
            f"{record['seconds']:.1f}" if was_tried else "",
        )
    console.print(grid)


def _describe_errors(records: list[dict[str, Any]], task: str) -> list[str]:
    """Return the error of each candidate with its standard error, or why there is none."""
    columns = []
    for key, digits in (("error", 4), ("standard_error", 2)):
        values = [record[key] if math.isfinite(record["error"]) else math.nan for record in records]
        is_share = task == "classification"
        columns.append([f"{value:.1%}" for value in values] if is_share else format_numbers(values, digits))
    return [
        f"{error} ± {spread}" if math.isfinite(record["error"]) else str(record["status"]).partition(":")[0]
        for record, error, spread in zip(records, *columns, strict=True)
    ]


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
        grid = make_grid(
            _="left", root_mean_squared_error="right", interval="right", mean_absolute_error="right", R2="right"
        )
        for (name, e), *errors in zip(report["errors"].items(), *_write_errors(report["errors"]), strict=True):
            grid.add_row(names.get(name, name), *errors, f"{round(e['r2'], 2) + 0.0:.2f}")
    grid.columns[2].header = "95 % interval"
    console.print(grid)


def _write_errors(errors: dict[str, dict[str, Any]]) -> tuple[list[str], list[str], list[str]]:
    """Return the columns of root mean squared errors, of their intervals and of mean absolute errors."""
    numbers = [(e["rmse"], *e["interval"], e["mean_absolute_error"]) for e in errors.values()]
    rmse, low, high, absolute = map(format_numbers, zip(*numbers, strict=True))
    return rmse, [" – ".join(ends) for ends in zip(low, high, strict=True)], absolute


def describe_help(helped: dict[str, Any], task: str) -> str:
    """Return a sentence on what unlabelled rows did to the error."""
    values = (helped["difference"], *helped["interval"])
    if task == "classification":
        what, (difference, low, high) = "error", (f"{100 * value:+.1f}" for value in values)
        unit = " points"
    else:
        what, unit = "root mean squared error", ""
        difference, low, high = (format_number(value, 3, sign=True) for value in values)
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


def describe_used(columns: dict[str, Any]) -> dict[str, str]:
    """Return what each column that is learned from is, and how its numbers are written where that is not plain."""
    written = columns.get("written", {})
    return {name: ", ".join(filter(None, (kind, written.get(name)))) for name, kind in columns["used"].items()}


def show_columns(console: Console, columns: dict[str, Any]) -> None:
    """Show which columns are learned from, and why others are not."""
    used, left_out = describe_used(columns), columns["left_out"]
    shown = ", ".join(f"{name} ({kind})" for name, kind in list(used.items())[:10])
    console.print(f"{len(used)} columns used: {shown}{', …' if len(used) > 10 else ''}", markup=False)
    for name, why in list(left_out.items())[:MAX_LEFT_OUT]:
        console.print(f"left out: {name or 'the first column'} ({why})", markup=False)
    if len(left_out) > MAX_LEFT_OUT:
        console.print(f"left out as well: {len(left_out) - MAX_LEFT_OUT} more columns (--json lists them)")

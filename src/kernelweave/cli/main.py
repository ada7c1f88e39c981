"""The command ``kernelweave``: fill in the missing labels of a table, and use a saved model on another.

Its part ``kernelweave papers`` is in ``papers``.
"""

from __future__ import annotations

import json
import math
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

# Exit codes below 10 are the command's own; those of tables and outputs are Fault and OutputFault. The last two are
# those that a shell gives a command which Ctrl-C or the end of its reader has stopped.
NOT_POSSIBLE, BAD_OPTION, NO_MODEL, INTERRUPTED, NO_READER = 3, 2, 4, 130, 141

# While modules are imported there is nothing to clean up, and an exception in the midst of a compiled one could become
# any other: Ctrl-C ends the process.
_can_be_interrupted = (
    threading.current_thread() is threading.main_thread()
    and signal.getsignal(signal.SIGINT) is signal.default_int_handler
)
if _can_be_interrupted:
    signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
try:
    import numpy as np
    import typer
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.table import Table as Grid

    from ..files import OutputError, OutputFault, check_output, is_full, reason, write_all
    from ..labeling.errors import Fault, TableError
    from ..labeling.job import Labeling, LabelingOptions, encode, fill_labels, in_options
    from ..labeling.table import Table, is_empty, read_table, write_filled
    from ..labeling.target import LabelingError, require_empty
    from ..persistence import load_with_about, packed, require_skops
    from .papers import PapersError
    from .papers import app as papers
    from .streams import as_text, can_show, guarded, work_is_done
except ImportError as missing:  # pragma: no cover - tested in a process of its own
    if str(missing.name).partition(".")[0] not in ("typer", "rich"):
        raise
    sys.exit(f"The command kernelweave needs {missing.name}: pip install 'kernelweave[cli]'")
finally:
    if _can_be_interrupted:
        signal.signal(signal.SIGINT, signal.default_int_handler)

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)
app.add_typer(papers, name="papers")

# What the name of an output promises; the copy is of the table's own kind, so another promise is refused.
KINDS = {".csv": "text", ".tsv": "text with tabs", ".tab": "text with tabs", ".parquet": "Parquet", ".pq": "Parquet"}
OTHER_KINDS = (".xlsx", ".xls", ".ods", ".json", ".feather", ".arrow", ".gz", ".bz2", ".xz", ".zip", ".zst")


class CommandError(Exception):
    """One sentence for the user, with an exit code."""

    def __init__(self, code: int, message: str):
        super().__init__(message)
        self.code = code


def main() -> None:
    """Run the command; whatever goes wrong is one sentence and an exit code of its own."""
    signal.signal(signal.SIGTERM, _interrupt)
    with guarded() as output:
        try:
            _run()
        except SystemExit as stop:
            if stop.code:
                raise
        sys.stdout.flush()
        if isinstance(output.failure, BrokenPipeError):
            sys.exit(0 if output.work_is_done else NO_READER)
        if output.failure is not None:
            rest = "; the files are written" if output.work_is_done else ""
            _fail(int(OutputFault.NO_SPACE), f"The report cannot be printed: {reason(output.failure)}{rest}.")


def _run() -> None:
    try:
        app()
    except SystemExit as stop:  # typer turns Ctrl-C into an exit without a word
        if stop.code != INTERRUPTED:
            raise
        _fail(INTERRUPTED, "Interrupted; nothing was written.")
    except (TableError, OutputError, CommandError, PapersError) as error:
        _fail(int(error.code), str(error))
    except LabelingError as error:
        _fail(NOT_POSSIBLE, str(error))
    except KeyboardInterrupt:
        _fail(INTERRUPTED, "Interrupted; nothing was written.")
    except MemoryError:
        _fail(NOT_POSSIBLE, "There is not enough memory for this table; leave columns out with --ignore.")
    except OSError as error:  # a folder for temporary files, say
        where = "" if error.filename is None else f" ('{error.filename}')"
        code = int(OutputFault.NO_SPACE) if is_full(error) else NOT_POSSIBLE
        _fail(code, f"The system refused: {reason(error)}{where}.")


@app.callback()
def about() -> None:
    """Learn from few labels and many unlabelled rows with kernels that choose and mix themselves."""


@app.command()
def label(
    table: Annotated[Path, typer.Argument(help="CSV, TSV or Parquet file with a header row.")],
    target: Annotated[str, typer.Option(help="Column whose empty cells are filled in.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Where the copy goes (default: TABLE.labeled.csv).")
    ] = None,
    task: Annotated[str, typer.Option(help="auto, classification or regression.")] = "auto",
    unlabeled: Annotated[str | None, typer.Option(help="Text that marks an unlabelled cell, beside empty.")] = None,
    id_column: Annotated[list[str] | None, typer.Option("--id", help="Column that names rows; not a feature.")] = None,
    ignore: Annotated[list[str] | None, typer.Option(help="Column to leave out.")] = None,
    group: Annotated[str | None, typer.Option(help="Column whose groups are held out whole.")] = None,
    source: Annotated[
        list[str] | None, typer.Option(help="NAME=COLUMNS: one family of kernels for these (a,b or gene_*).")
    ] = None,
    scale: Annotated[str, typer.Option(help="auto, block, column or none.")] = "auto",
    model: Annotated[Path | None, typer.Option(help="Save the model here, for `kernelweave predict`.")] = None,
    time_limit: Annotated[float | None, typer.Option(help="About how many seconds to learn for.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of everything drawn at random.")] = 0,
    json_: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Fill in the empty cells of one column of TABLE, and say how good the labels are."""
    target = as_text(target)
    unlabeled, group = (None if word is None else as_text(word) for word in (unlabeled, group))
    id_column, ignore, source = ([as_text(word) for word in words or ()] for words in (id_column, ignore, source))
    _require(task, ("auto", "classification", "regression"), "--task")
    _require(scale, ("auto", "block", "column", "none"), "--scale")
    out = output or _beside(table, "labeled")
    record = out.with_name(out.name + ".json")
    outputs = [out, record, *([model] if model else [])]
    for path in outputs:
        check_output(path, table)
    _require_distinct(outputs)
    if time_limit is not None and not 0 < time_limit < math.inf:
        raise CommandError(BAD_OPTION, f"--time-limit {time_limit:g} is not a positive number of seconds.")
    if model is not None:
        _require_skops()
    if seed < 0:
        raise CommandError(BAD_OPTION, f"--seed {seed} is negative; any whole number from 0 on will do.")
    options = LabelingOptions(
        target=target,
        task=task,
        id_columns=tuple(id_column),
        ignore=tuple(ignore),
        group=group,
        sources=_sources(source),
        scale=scale,
        seed=seed,
        time_limit=time_limit,
    )
    with _stages() as stage:
        stage("reading the table", 0.0)
        data = read_table(table)
        _require_kind(data, out)
        _require_columns(data, [target, *options.id_columns, *options.ignore, *([group] if group else [])])
        empty = is_empty(data, target, unlabeled)
        done = fill_labels(data.frame(), data.column(target), empty, options, stage)
        stage("writing", 0.98)
        extra = _free_names(done.extra, data.names)
        report = _record(data, options, unlabeled, done, extra)
        files = [(record, (_json(report) + "\n").encode("utf-8", "backslashreplace"))]  # JSON has the same escapes
        if model is not None:
            files.append((model, packed(done.model, target=target, task=done.report["task"], unlabeled=unlabeled)))
        write_all(files, lambda: write_filled(data, target, done.values.tolist(), extra, out, unlabeled))
    work_is_done()
    if json_:
        print(text if can_show(text := _json(report)) else _json(report, escaped=True))
    else:
        _show(report, out, model)


@app.command()
def predict(
    model: Annotated[Path, typer.Argument(help="File that `kernelweave label --model` wrote.")],
    table: Annotated[Path, typer.Argument(help="CSV, TSV or Parquet file with the same feature columns.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Where the copy goes (default: TABLE.predicted.csv).")
    ] = None,
) -> None:
    """Fill in the target column of another TABLE (or append it) with a saved model."""
    out = output or _beside(table, "predicted")
    _require_distinct([model, out])
    check_output(out, table)
    _require_skops()
    try:
        pipeline, about_model = load_with_about(model)
    except OSError as error:
        raise CommandError(NO_MODEL, f"'{model}' cannot be read: {reason(error)}.") from None
    except ValueError as error:
        raise CommandError(NO_MODEL, str(error)) from None
    with _stages() as stage:
        stage("reading the table", 0.0)
        data = read_table(table)
        _require_kind(data, out)
        target = str(about_model["target"])
        given = target in data.names
        unlabeled = about_model.get("unlabeled")
        empty = np.ones(data.n_rows, dtype=bool)
        if given:
            empty = is_empty(data, target, unlabeled)
            require_empty(data.column(target), empty, target)
        stage("predicting", 0.3)
        filled, beside = pipeline[-1].cells(encode(pipeline[0], data.frame())[empty], target)
        columns = beside if given else {target: filled, **beside}
        extra = {name: _spread(texts, empty, "") for name, texts in columns.items()}
        values = _spread(filled, empty, None) if given else np.full(data.n_rows, None, dtype=object)
        stage("writing", 0.9)
        names = _free_names(extra, data.names)
        write_filled(
            data, target if given else data.names[0], values.tolist(), names, out, unlabeled if given else None
        )
    work_is_done()
    print(f"{int(empty.sum())} of {data.n_rows} rows labelled; written to {out}")


def _spread(texts: Any, where: np.ndarray, elsewhere: str | None) -> np.ndarray:
    out = np.full(len(where), elsewhere, dtype=object)
    out[where] = texts
    return out


def _sources(texts: Sequence[str]) -> dict[str, list[str]]:
    sources: dict[str, list[str]] = {}
    for text in texts:
        name, separator, columns = text.partition("=")
        if not (name and separator and columns):
            raise CommandError(BAD_OPTION, f"--source {text!r} is not NAME=COLUMNS, such as genes=gene_* or lab=a,b.")
        sources.setdefault(name, []).extend(columns.split(","))
    return sources


def _require_distinct(paths: Sequence[Path]) -> None:
    seen: set[str] = set()
    for path in paths:
        if (real := os.path.realpath(path)) in seen:
            raise OutputError(
                OutputFault.SAME_FILE, f"'{path}' is named twice; a file is never overwritten by another output."
            )
        seen.add(real)


def _beside(table: Path, what: str) -> Path:
    """Return where the copy goes if nobody says."""
    folder = table.absolute().parent
    if (table.exists() and not table.is_file()) or {Path("/dev"), Path("/proc")} & {folder, *folder.parents}:
        raise CommandError(BAD_OPTION, f"'{table}' is not a file that a copy can lie beside; name the copy with -o.")
    return table.with_name(f"{table.stem}.{what}{table.suffix}")


def _require_kind(data: Table, out: Path) -> None:
    """Refuse an output whose name promises another kind of file than the table is."""
    suffix = out.suffix.lower()
    kind = "Parquet" if data.format == "parquet" else "text"
    if getattr(data, "delimiter", "") == "\t":
        kind = "text with tabs"
    if suffix != data.path.suffix.lower() and (suffix in OTHER_KINDS or KINDS.get(suffix, kind) != kind):
        raise CommandError(
            BAD_OPTION,
            f"The output '{out}' ends in {suffix}, but the copy of '{data.path}' is {kind} as the table is, so that no "
            "cell changes. Give it the ending of the table.",
        )


def _require_skops() -> None:
    try:
        require_skops()
    except ImportError as error:
        raise CommandError(BAD_OPTION, str(error)) from None


def _require(value: str, allowed: tuple[str, ...], option: str) -> None:
    if value not in allowed:
        raise CommandError(BAD_OPTION, f"{option} {value!r} is not one of {', '.join(allowed)}.")


def _require_columns(data: Table, names: list[str]) -> None:
    for name in names:
        if name not in data.names:
            shown = ", ".join(repr(known) for known in data.names[:8]) + (", …" if len(data.names) > 8 else "")
            raise TableError(Fault.NO_SUCH_COLUMN, f"The table has no column {name!r}; it has {shown}.")


def _free_names(extra: dict[str, Any], taken: list[str]) -> dict[str, Any]:
    """Give appended columns names that the table does not have yet."""
    free: dict[str, Any] = {}
    for name, texts in extra.items():
        new, number = name, 2
        while new in taken or new in free:
            new, number = f"{name}_{number}", number + 1
        free[new] = texts
    return free


def _record(
    data: Table, options: LabelingOptions, unlabeled: str | None, done: Labeling, extra: dict[str, Any]
) -> dict[str, Any]:
    """Return all that is needed to repeat the run to the same output."""
    packages = ("kernelweave", "numpy", "scipy", "scikit-learn", "highspy", "pandas")
    chosen = {name: getattr(options, name) for name in options.__dataclass_fields__}
    return {
        "table": as_text(data.path.name),
        "date": str(datetime.now(UTC).date()),
        "versions": {"python": ".".join(map(str, sys.version_info[:3])), **{name: version(name) for name in packages}},
        "options": chosen | {"unlabeled": unlabeled},
        "appended": list(extra),
        **done.report,
    }


def _json(report: dict[str, Any], escaped: bool = False) -> str:
    """Return the report as JSON, which has no NaN and no infinity: they are null."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(part) for key, part in value.items()}
        if isinstance(value, list | tuple):
            return [plain(part) for part in value]
        return None if isinstance(value, float) and not math.isfinite(value) else value

    return json.dumps(plain(report), indent=1, ensure_ascii=escaped, allow_nan=False)


def _show(report: dict[str, Any], out: Path, model: Path | None) -> None:
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
    part = f"{tested:,} of the {labeled:,}" if tested < labeled else "the"
    grid = Grid(title=f"cross-validated on {part} labelled rows", title_justify="left", title_style="")
    grid.add_column("")
    if report["task"] == "classification":
        for name in ("error", "95 % interval", "balanced error"):
            grid.add_column(name, justify="right")
        for name, e in report["errors"].items():
            low, high = e["interval"]
            grid.add_row(name, f"{e['error']:.1%}", f"{low:.1%} – {high:.1%}", f"{e['balanced_error']:.1%}")
    else:
        for name in ("mean absolute error", "root mean square"):
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
    proof = report["certificate"]
    covered = "all rows as centres"
    if proof["candidates"] < proof["rows"]:
        covered = f"{proof['candidates']:,} of {proof['rows']:,} rows as centres (labelled ones and a random part)"
    console.print(f"certificate: {_proved(proof)}, over {covered}. {proof['status']}", markup=False)


def _proved(proof: dict[str, Any]) -> str:
    """Return what a gap says about the optimum, which lies between the objective less the gap and the objective."""
    bound = proof["objective"] - proof["gap"]
    excess = 0.0 if proof["gap"] <= 0 else proof["gap"] / bound if bound > 0 else math.inf
    if excess >= 1.0:
        return "no useful bound was proved (the optimum may be less than half of what was reached)"
    return f"at most {excess:.1e} of the optimum above it"


def _show_columns(console: Console, columns: dict[str, Any]) -> None:
    used, left_out = columns["used"], columns["left_out"]
    shown = ", ".join(f"{name} ({kind})" for name, kind in list(used.items())[:10])
    console.print(f"{len(used)} columns used: {shown}{', …' if len(used) > 10 else ''}", markup=False)
    for name, why in left_out.items():
        console.print(f"left out: {name or 'the first column'} ({why})", markup=False)


@contextmanager
def _stages() -> Iterator[Callable[[str, float], None]]:
    """Show what happens: a bar on a terminal, a line each elsewhere; warnings become lines too."""
    err = Console(stderr=True, highlight=False)
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: err.print(f"note: {in_options(str(message))}", markup=False)
        if not err.is_terminal:
            yield lambda what, share: err.print(f"{share:4.0%}  {what}", markup=False)
            return
        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
        with Progress(*columns, console=err, transient=True) as bar:
            task = bar.add_task("", total=1.0)
            yield lambda what, share: bar.update(task, description=what, completed=share)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _fail(code: int, sentence: str) -> None:
    """Say the sentence and exit; after Ctrl-C without waiting for anything."""
    print(f"kernelweave: {sentence}", file=sys.stderr, flush=True)
    os._exit(code) if code == INTERRUPTED else sys.exit(code)

"""``kernelweave label`` and ``kernelweave predict``: fill in the missing labels of a table, or use a saved model."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ..errors import ErrorCode, KernelweaveError
from ..files import check_output, reason, write_all
from ..labeling.job import Labeling, LabelingOptions, encode, fill_labels, spread
from ..labeling.table import Table, is_empty, read_table, write_filled
from ..labeling.target import require_empty_cells
from ..persistence import load_with_about, pack, require_skops
from .display import as_json, print_note, show_report, show_stages
from .streams import as_text, can_show, mark_work_done

# Kinds of files by their ending. The copy is of the same kind as the table, so other endings are refused.
KINDS = {".csv": "text", ".tsv": "text with tabs", ".tab": "text with tabs", ".parquet": "Parquet", ".pq": "Parquet"}
OTHER_KINDS = (".xlsx", ".xls", ".ods", ".json", ".feather", ".arrow", ".gz", ".bz2", ".xz", ".zip", ".zst")


def label(
    table: Annotated[Path, typer.Argument(help="CSV, TSV or Parquet file with a header row.")],
    target: Annotated[str, typer.Option(help="Column whose empty cells are filled in.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Output file (default: TABLE.labeled.csv).")
    ] = None,
    task: Annotated[str, typer.Option(help="auto, classification or regression.")] = "auto",
    unlabeled: Annotated[
        str | None, typer.Option(help="Text that marks an unlabelled cell, as an empty one does.")
    ] = None,
    id_column: Annotated[
        list[str] | None, typer.Option("--id", help="Column that identifies rows; not a feature.")
    ] = None,
    ignore: Annotated[list[str] | None, typer.Option(help="Column to leave out.")] = None,
    group: Annotated[
        str | None, typer.Option(help="Column of groups; cross-validation holds out whole groups.")
    ] = None,
    source: Annotated[
        list[str] | None, typer.Option(help="NAME=COLUMNS (a,b or gene_*): columns with kernels of their own.")
    ] = None,
    scale: Annotated[str, typer.Option(help="Scaling of numbers: auto, block, column or none.")] = "auto",
    learner: Annotated[
        str, typer.Option(help="auto tries several and combines them; or one of them: SSMK, MKL, LapSVM, ...")
    ] = "auto",
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="Append the probability of every class.")
    ] = False,
    coverage: Annotated[
        float | None,
        typer.Option(
            help="Append a set of classes that holds the true one with this probability; numbers: of the interval."
        ),
    ] = None,
    suspects: Annotated[int, typer.Option(help="Number of doubtful given labels to list.")] = 0,
    next_: Annotated[int, typer.Option("--next", help="Number of rows to suggest for labelling next.")] = 0,
    model: Annotated[Path | None, typer.Option(help="Save the model to this file, for `kernelweave predict`.")] = None,
    time_limit: Annotated[float | None, typer.Option(help="Approximate time for learning, in seconds.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the random numbers.")] = 0,
    json_: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Fill in the empty cells of one column of TABLE, and report how accurate the labels are."""
    target = as_text(target)
    unlabeled, group = (None if word is None else as_text(word) for word in (unlabeled, group))
    id_column, ignore, source = ([as_text(word) for word in words or ()] for words in (id_column, ignore, source))
    _check_choice(task, ("auto", "classification", "regression"), "--task")
    _check_choice(scale, ("auto", "block", "column", "none"), "--scale")
    out = output or _name_copy(table, "labeled")
    record = out.with_name(out.name + ".json")
    _check_outputs([out, record, *([model] if model else [])], table)
    if model is not None:
        _check_skops()
    options = LabelingOptions(
        target=target,
        task=task,
        id_columns=tuple(id_column),
        ignore=tuple(ignore),
        group=group,
        sources=_parse_sources(source),
        scale=scale,
        seed=seed,
        time_limit=time_limit,
        learner=as_text(learner),
        probabilities=probabilities,
        coverage=coverage,
        suspects=suspects,
        next=next_,
    )
    _check_numbers(options)
    with show_stages() as on_stage:
        on_stage("reading the table", 0.0)
        data = read_table(table)
        _check_ending(data, out)
        for name in (target, *options.id_columns, *options.ignore, *([group] if group else [])):
            data.position(name)
        empty = is_empty(data, target, unlabeled)
        labeling = fill_labels(data.frame(), data.column(target), empty, options, on_stage)
        on_stage("writing", 0.98)
        extra = _rename_taken(labeling.extra, data.names)
        report = _make_record(data, options, unlabeled, labeling, extra)
        files = [(record, (as_json(report) + "\n").encode("utf-8", "backslashreplace"))]  # JSON has the same escapes
        if model is not None:
            files.append(
                (model, pack(labeling.model, target=target, task=labeling.report["task"], unlabeled=unlabeled))
            )
        write_all(files, lambda: write_filled(data, target, labeling.values.tolist(), extra, out, unlabeled))
    mark_work_done()
    if json_:
        for note in report["warnings"]:
            print_note(note)
        print(text if can_show(text := as_json(report)) else as_json(report, escaped=True))
    else:
        show_report(report, out, model)


def predict(
    model: Annotated[Path, typer.Argument(help="File that `kernelweave label --model` wrote.")],
    table: Annotated[Path, typer.Argument(help="CSV, TSV or Parquet file with the same feature columns.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Output file (default: TABLE.predicted.csv).")
    ] = None,
) -> None:
    """Fill in the target column of another TABLE (or append it) with a saved model."""
    out = output or _name_copy(table, "predicted")
    _check_outputs([out], table, model)
    _check_skops()
    try:
        pipeline, about_model = load_with_about(model)
    except OSError as error:
        raise KernelweaveError(f"'{model}' cannot be read: {reason(error)}.", ErrorCode.BAD_MODEL) from None
    except ValueError as error:
        raise KernelweaveError(str(error), ErrorCode.BAD_MODEL) from None
    with show_stages() as on_stage:
        on_stage("reading the table", 0.0)
        data = read_table(table)
        _check_ending(data, out)
        target = str(about_model["target"])
        given = target in data.names
        unlabeled = about_model.get("unlabeled")
        empty = np.ones(data.n_rows, dtype=bool)
        if given:
            empty = is_empty(data, target, unlabeled)
            require_empty_cells(data.column(target), empty, target)
        on_stage("predicting", 0.3)
        filled, appended = pipeline[-1].fill_cells(encode(pipeline[0], data.frame())[empty], target)
        columns = appended if given else {target: filled, **appended}
        extra = {name: spread(texts, empty, "") for name, texts in columns.items()}
        values = spread(filled, empty, None) if given else np.full(data.n_rows, None, dtype=object)
        on_stage("writing", 0.9)
        names = _rename_taken(extra, data.names)
        write_filled(
            data, target if given else data.names[0], values.tolist(), names, out, unlabeled if given else None
        )
    mark_work_done()
    print(f"{int(empty.sum())} of {data.n_rows} rows labelled; written to {out}")


def _check_numbers(options: LabelingOptions) -> None:
    """Refuse numbers that options cannot have."""
    limit, coverage = options.time_limit, options.coverage
    if limit is not None and not 0 < limit < math.inf:
        raise KernelweaveError(f"--time-limit {limit:g} is not a positive number of seconds.", ErrorCode.BAD_OPTION)
    if coverage is not None and not 0 < coverage < 1:
        raise KernelweaveError(
            f"--coverage {coverage:g} is not a share between 0 and 1, such as 0.9.", ErrorCode.BAD_OPTION
        )
    for option, number in (("--seed", options.seed), ("--suspects", options.suspects), ("--next", options.next)):
        if number < 0:
            raise KernelweaveError(
                f"{option} {number} is negative; give a whole number, 0 or more.", ErrorCode.BAD_OPTION
            )


def _parse_sources(texts: Sequence[str]) -> dict[str, list[str]]:
    sources: dict[str, list[str]] = {}
    for text in texts:
        name, separator, columns = text.partition("=")
        if not (name and separator and columns):
            raise KernelweaveError(
                f"--source {text!r} is not NAME=COLUMNS, such as genes=gene_* or lab=a,b.", ErrorCode.BAD_OPTION
            )
        sources.setdefault(name, []).extend(columns.split(","))
    return sources


def _check_outputs(outputs: Sequence[Path], *inputs: Path) -> None:
    """Refuse outputs that cannot be written, that are inputs, or that are the same file."""
    for path in outputs:
        for source in inputs:
            check_output(path, source)
    if len({os.path.realpath(path) for path in outputs}) < len(outputs):
        raise KernelweaveError(
            f"A file is named twice among the outputs {', '.join(map(str, outputs))}; give each its own name.",
            ErrorCode.SAME_FILE,
        )


def _name_copy(table: Path, what: str) -> Path:
    """Return the name of the copy where no other is given."""
    folder = table.absolute().parent
    if (table.exists() and not table.is_file()) or {Path("/dev"), Path("/proc")} & {folder, *folder.parents}:
        raise KernelweaveError(
            f"'{table}' is not an ordinary file, so the copy has no default name; name the copy with -o.",
            ErrorCode.BAD_OPTION,
        )
    return table.with_name(f"{table.stem}.{what}{table.suffix}")


def _check_ending(data: Table, out: Path) -> None:
    """Refuse an output whose ending is that of another kind of file."""
    suffix = out.suffix.lower()
    kind = "Parquet" if data.format == "parquet" else "text"
    if getattr(data, "delimiter", "") == "\t":
        kind = "text with tabs"
    if suffix != data.path.suffix.lower() and (suffix in OTHER_KINDS or KINDS.get(suffix, kind) != kind):
        raise KernelweaveError(
            f"The output '{out}' ends in {suffix}, but the copy of '{data.path}' is {kind}, like the table itself, so "
            "that no cell changes. Give the output the ending of the table.",
            ErrorCode.BAD_OPTION,
        )


def _check_skops() -> None:
    try:
        require_skops()
    except ImportError as error:
        raise KernelweaveError(str(error), ErrorCode.BAD_OPTION) from None


def _check_choice(value: str, allowed: tuple[str, ...], option: str) -> None:
    if value not in allowed:
        raise KernelweaveError(f"{option} {value!r} is not one of {', '.join(allowed)}.", ErrorCode.BAD_OPTION)


def _rename_taken(extra: dict[str, Any], taken: list[str]) -> dict[str, Any]:
    """Give appended columns names that the table does not have yet."""
    free: dict[str, Any] = {}
    for name, texts in extra.items():
        new, number = name, 2
        while new in taken or new in free:
            new, number = f"{name}_{number}", number + 1
        free[new] = texts
    return free


def _make_record(
    data: Table, options: LabelingOptions, unlabeled: str | None, labeling: Labeling, extra: dict[str, Any]
) -> dict[str, Any]:
    """Return what is needed to repeat the run with the same output."""
    packages = ("kernelweave", "numpy", "scipy", "scikit-learn", "highspy", "pandas")
    return {
        "table": as_text(data.path.name),
        "date": str(datetime.now(UTC).date()),
        "versions": {"python": ".".join(map(str, sys.version_info[:3])), **{name: version(name) for name in packages}},
        "options": asdict(options) | {"unlabeled": unlabeled},
        "appended": list(extra),
        **_number_rows(labeling.report, data),
    }


def _number_rows(report: dict[str, Any], data: Table) -> dict[str, Any]:
    """Return the report with rows counted as in the file: the header of a text is row 1, and Parquet has none."""
    first = 1 if data.format == "parquet" else 2
    lists = {
        key: [{**record, "row": record["row"] + first} for record in report[key]]
        for key in ("suspects", "next")
        if key in report
    }
    return report | lists

"""``kernelweave label`` and ``kernelweave predict``: fill in the missing labels of a table, or use a saved model."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from sklearn.pipeline import Pipeline

from ..errors import ErrorCode, KernelweaveError
from ..estimators.shared.progress import Show
from ..files import reason, write_all
from ..labeling.base import ending
from ..labeling.job import LabelingOptions, fill_by_blocks, fill_labels, spread
from ..labeling.joining import join_tables
from ..labeling.learner import Clock
from ..labeling.new_rows import note_new_rows
from ..labeling.partitions import names_many_files
from ..labeling.problem import encode_noting
from ..labeling.table import STANDARD, Table, fill_copy, is_empty, write_filled
from ..labeling.target import note_formulas, require_empty_cells
from ..persistence import load_with_about
from . import options as asked
from .display import Stages, print_json, print_note, show_report, show_stages
from .harmless import harmless
from .options import OUTPUT, option
from .outputs import (
    WORKBOOKS,
    check_outputs,
    check_skops,
    make_files,
    make_record,
    name_copy,
    name_sources,
    rename_taken,
)
from .page import check_packages, name_page
from .partitions import FilesJob, label_files, show_files
from .reading import number_rows, read_given, read_tables
from .streams import as_text, mark_work_done

# Kinds of files by their ending. The copy is of the same kind as the table, so other endings are refused.
KINDS = {
    ".csv": "text",
    ".tsv": "text with tabs",
    ".tab": "text with tabs",
    ".parquet": "Parquet",
    ".pq": "Parquet",
    ".npz": "arrays of numpy",
}
OTHER_KINDS = (".xlsx", ".xlsm", ".xls", ".ods", ".json", ".feather", ".arrow", ".bz2", ".xz", ".zip", ".zst")
MAX_REASON = 200  # characters of what a damaged model says

Filled = tuple[Table, str, list[Any], dict[str, Any]]  # table, target, its cells, appended columns
Output = Annotated[
    Path | None, option("Copy, by default beside TABLE; - prints it.", OUTPUT, "-o", "--output", metavar="FILE")
]


def label(
    tables: asked.Tables,
    target: asked.Target,
    unlabeled: asked.Unlabeled = None,
    id_column: asked.Ids = None,
    ignore: asked.Ignore = None,
    group: asked.Group = None,
    source: asked.Source = None,
    scale: asked.Scale = "auto",
    task: asked.Task = "auto",
    learner: asked.Learner = "auto",
    time_limit: asked.TimeLimit = None,
    seed: asked.Seed = 0,
    output: Output = None,
    probabilities: Annotated[bool, option("Append the probability of every class.", OUTPUT, "--probabilities")] = False,
    coverage: Annotated[
        float | None, option("Append sets or intervals with the truth.", OUTPUT, metavar="SHARE")
    ] = None,
    suspects: asked.Suspects = 0,
    next_: asked.Next = 0,
    model: Annotated[Path | None, option("Save the model for `kernelweave predict`.", OUTPUT, metavar="FILE")] = None,
    report_file: asked.Report = None,
    cluster: asked.Cluster = None,
    workers: asked.Workers = None,
    quiet: asked.Quiet = False,
    json_: asked.Json = False,
) -> None:
    """Fill in the empty cells of one column, and report how accurate the labels are.

    Example: kernelweave label patients.csv --target outcome
    """
    unlabeled = asked.read_word(unlabeled)
    if report_file is not None:
        check_packages()
    options = asked.read_options(
        LabelingOptions,
        target=target,
        id_column=id_column,
        ignore=ignore,
        group=group,
        source=source,
        scale=scale,
        task=task,
        time_limit=time_limit,
        seed=seed,
        learner=as_text(learner),
        probabilities=probabilities,
        coverage=coverage,
        suspects=suspects,
        next=next_,
    )
    _check_numbers(options)
    asked.check_workers(tables, cluster, workers)
    if names_many_files(tables[0]):
        job = FilesJob(tables, output, options, unlabeled, model, report_file, cluster, workers)
        show_files(job, label_files(job, is_quiet=quiet or json_), json_)
        return
    out = output or name_copy(tables[0], "labeled")
    record = out.parent / f"{out.name}.json"  # a folder, which has no name, is refused below
    is_printed = str(out) == STANDARD
    _refuse_two_prints(is_printed, json_)
    check_outputs([*([] if is_printed else [out, record]), *filter(None, (model, report_file))], *tables)
    if model is not None:
        check_skops()
    with show_stages(is_quiet=quiet or json_, time_limit=time_limit) as on_stage:
        on_stage("reading the table", 0.0)
        given = read_given(tables, options, unlabeled)
        _check_ending(given.table, out)
        labeling = fill_labels(given.frame, given.cells, given.empty, given.options, on_stage)
        on_stage("writing", 0.98)
        extra = rename_taken(labeling.extra, given.table.names)
        report = make_record(tables, given, unlabeled, number_rows(labeling.report, given.table), extra)
        report["warnings"] += on_stage.take_notes()
        paths = (None if is_printed else record, model, report_file)
        files = make_files(given, labeling, report, {"unlabeled": unlabeled}, paths)
        filled = (given.table, options.target, labeling.values.tolist(), extra)
        copy = _write_copy(filled, unlabeled, None if is_printed else out, files, tables)
    _finish_copy(copy, is_printed, given.table)
    if json_:
        print_json(report)
    else:
        show_report(report, None if is_printed else out, record.name, model)
    name_page(report_file)


def predict(
    model: Annotated[Path, typer.Argument(help="File that `kernelweave label --model` wrote.", metavar="MODEL")],
    tables: asked.Tables,
    id_column: asked.Ids = None,
    time_limit: Annotated[
        float | None, option("Stop after about so long, without writing.", OUTPUT, metavar="SECONDS")
    ] = None,
    output: Output = None,
    quiet: asked.Quiet = False,
    json_: asked.Json = False,
) -> None:
    """Fill in the target column of another table (or append it) with a saved model.

    Example: kernelweave predict outcome.skops new_patients.csv
    """
    clock = Clock(time_limit)
    asked.check_limit(time_limit)
    out = output or name_copy(tables[0], "predicted")
    is_printed = str(out) == STANDARD
    _refuse_two_prints(is_printed, json_)
    check_outputs([] if is_printed else [out], *tables, model)
    with show_stages(is_quiet=quiet or json_, time_limit=time_limit) as on_stage:
        on_stage("reading the model", 0.0)
        pipeline, about_model = _load_model(model)
        target, unlabeled = about_model["target"], about_model.get("unlabeled")
        on_stage("reading the table", 0.1)
        data, frame = _read_joined(tables, asked.read_words(id_column), on_stage)
        _check_ending(data, out)
        given = target in data.names
        empty = np.ones(data.n_rows, dtype=bool)
        if given:
            empty = is_empty(data, target, unlabeled)
            require_empty_cells(data.column(target), empty, target)
        with _refuse_damaged(model):
            X, about_cells = _encode_rows(pipeline[0], frame, empty)
            notes = on_stage.take_notes() + about_cells
            on_rows = partial(_report_rows, clock, len(X), on_stage)
            filled, appended = fill_by_blocks(pipeline[-1], X, target, on_rows)
            labels = sorted(set(filled.tolist()))
            "".join([target, *labels, *appended]).encode()  # no file can hold halves of characters
            notes += note_formulas(labels)
        columns: dict[str, Any] = appended if given else {target: filled, **appended}
        extra = {name: spread(texts, empty, "") for name, texts in columns.items()}
        values = spread(filled, empty, None) if given else np.full(data.n_rows, None, dtype=object)
        on_stage("writing", 0.9)
        names = rename_taken(extra, data.names)
        copied = (data, target if given else data.names[0], values.tolist(), names)
        copy = _write_copy(copied, unlabeled if given else None, None if is_printed else out, [], tables)
    _finish_copy(copy, is_printed, data)
    if json_:
        report = {"table": as_text(tables[0].name), "target": target, "rows": data.n_rows, "appended": list(names)}
        print_json(report | {"rows_filled": int(empty.sum()), "output": as_text(str(out)), "warnings": notes})
        return
    for note in notes:
        print_note(note)
    if not is_printed:
        print(harmless(f"{int(empty.sum())} of {data.n_rows} rows labelled; written to {out}"))


def _load_model(path: Path) -> tuple[Any, dict[str, Any]]:
    """Return a saved model, and what was saved about it; refuse one that does not fill cells of a table."""
    check_skops()
    try:
        model, about = load_with_about(path)
    except OSError as error:
        raise KernelweaveError(f"'{path}' cannot be read: {reason(error)}.", ErrorCode.BAD_MODEL) from None
    except ValueError as error:
        raise KernelweaveError(str(error), ErrorCode.BAD_MODEL) from None
    with _refuse_damaged(path):
        is_of_table = isinstance(model, Pipeline) and len(model.steps) == 2 and hasattr(model[-1], "fill_cells")
        is_of_table &= isinstance(about.get("target"), str) and isinstance(about.get("unlabeled"), str | None)
    if not is_of_table:
        raise KernelweaveError(
            f"'{path}' was saved in Python: it holds a {type(model).__name__}, which knows no columns of a table. Use "
            "it with kernelweave.load in Python, or save a model with kernelweave label --model.",
            ErrorCode.BAD_MODEL,
        )
    return model, about


@contextmanager
def _refuse_damaged(path: Path) -> Iterator[None]:
    """Turn whatever a model raises into one sentence: its file was written by other means than ours."""
    try:
        yield
    except (KernelweaveError, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001 - crafted arrays fail anywhere
        raise KernelweaveError(
            f"The model in '{path}' cannot be used ({reason(error)[:MAX_REASON]}): its file is damaged or was changed. "
            "Copy it again from its source, or learn it again.",
            ErrorCode.BAD_MODEL,
        ) from None


def _read_joined(paths: Sequence[Path], ids: list[str], stages: Stages) -> tuple[Table, Any]:
    """Return the first table, and the columns of all as a frame; keep the notes about them."""
    data, *others = tables = read_tables(paths, ids)
    joined = join_tables(data, others, ids[0]) if others else None
    for note in [*(note for table in tables for note in table.notes), *(joined.notes if joined else ())]:
        stages.add_note(note)
    return data, data.frame() if joined is None else joined.frame


def _encode_rows(encoder: Pipeline, frame: Any, empty: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Return the features of the rows to fill, and notes on their cells, all of which are read with the whole table."""
    features, cells, notes = encode_noting(encoder, frame)
    return features[empty], notes + note_new_rows(encoder, cells[empty])


def _report_rows(clock: Clock, n_rows: int, on_stage: Show, n_done: int) -> None:
    """Show how many rows are predicted; end the command when the time is over."""
    if clock.limit is not None and clock.elapsed > clock.limit:
        raise KernelweaveError(
            f"The time limit of {clock.limit:g} s was reached after {n_done:,} of {n_rows:,} rows; nothing was "
            "written. Raise --time-limit, or split the table.",
            ErrorCode.OUT_OF_TIME,
        )
    on_stage("predicting", 0.3 + 0.6 * n_done / max(n_rows, 1), f"{n_done:,} of {n_rows:,} rows")


def _refuse_two_prints(is_printed: bool, json_: bool) -> None:
    if is_printed and json_:
        raise KernelweaveError(
            "--json and the copy would both go to standard output; name the copy with -o.", ErrorCode.BAD_OPTION
        )


def _write_copy(
    filled: Filled, unlabeled: str | None, out: Path | None, files: list[tuple[Path, bytes]], like: Sequence[Path]
) -> bytes:
    """Write the copy and the files beside it, all or none, as secret as the tables; without ``out`` return the copy."""
    if out is not None:
        write_filled(*filled, out, unlabeled, beside=files, like=name_sources(like))
        return b""
    copy = io.BytesIO()
    fill_copy(*filled, unlabeled)(copy)
    write_all(files, name_sources(like))
    return copy.getvalue()


def _check_numbers(options: LabelingOptions) -> None:
    """Refuse numbers that options cannot have."""
    if options.coverage is not None and not 0 < options.coverage < 1:
        raise KernelweaveError(
            f"--coverage {options.coverage:g} is not a share between 0 and 1, such as 0.9.", ErrorCode.BAD_OPTION
        )
    asked.check_counts(suspects=options.suspects, next=options.next)


def _check_ending(data: Table, out: Path) -> None:
    """Refuse an output whose ending is that of another kind of file."""
    kind = {"parquet": "Parquet", "npz": "arrays of numpy"}.get(data.format, "text")
    if str(out) == STANDARD:
        if kind != "text":
            raise KernelweaveError(
                f"The copy of '{data.path}' is {kind}, which is not printed; name a file with -o.", ErrorCode.BAD_OPTION
            )
        return
    if getattr(data, "delimiter", "") == "\t":
        kind = "text with tabs"
    is_packed, suffix, is_book = getattr(data, "is_packed", False), out.suffix.lower(), _is_workbook(data)
    if (suffix, ending(out)) == (data.path.suffix.lower(), ending(data.path)) and not is_book:
        return
    if (suffix == ".gz") != is_packed or ending(out) in OTHER_KINDS or KINDS.get(ending(out), kind) != kind:
        like = "since a workbook is not written" if is_book else "like the table itself, so that no cell changes"
        remedy = "ending .csv" if is_book else "ending of the table"
        packed = " in a gzip archive" if is_packed else ""
        raise KernelweaveError(
            f"The output '{out}' ends in {suffix or 'nothing'}, but the copy of '{data.path}' is {kind}{packed}, "
            f"{like}. Give the output the {remedy}.",
            ErrorCode.BAD_OPTION,
        )


def _is_workbook(data: Table) -> bool:
    return data.format == "csv" and data.path.suffix.lower() in WORKBOOKS


def _finish_copy(content: bytes, is_printed: bool, data: Table) -> None:
    """Print a copy on standard output, in the encoding of the table; one in a file is finished.

    A terminal gets it as text on which no cell acts.
    """
    if not is_printed:
        mark_work_done()
    elif sys.stdout.isatty():
        text = content.decode(getattr(data, "encoding", "utf-8"), "backslashreplace")
        for line in text.removeprefix("\ufeff").replace("\r\n", "\n").removesuffix("\n").split("\n"):
            print("\t".join(map(harmless, line.split("\t"))))
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.flush()

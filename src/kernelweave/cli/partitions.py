"""``kernelweave label`` on a table in many Parquet files: learn once from some rows, then fill file by file.

The folder of the copies holds, beside them, the model, the record and what the run was asked for; the last of these is
written when the model is. So a run that ended early goes on with the files that have no copy yet.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..distributed.cluster import Cluster, open_cluster, run_each
from ..errors import ErrorCode, KernelweaveError
from ..files import check_output, reason, write_all
from ..labeling.base import expand_names, require_package
from ..labeling.file_copies import FileCopy, describe_copies, fill_file
from ..labeling.job import LabelingOptions, fill_labels
from ..labeling.learner import Clock
from ..labeling.parquet import ParquetTable
from ..labeling.partitions import (
    Summary,
    describe_files,
    find_files,
    find_folder,
    inspect_file,
    unite_schemas,
)
from ..labeling.sampling import Sample, choose_rows, take_rows
from ..labeling.table import STANDARD, is_empty
from .display import Stages, as_json, print_json, show_report, show_stages
from .harmless import harmless
from .outputs import check_outputs, check_skops, make_files, make_record, rename_taken
from .page import name_page
from .reading import Given, check_columns
from .streams import mark_work_done

# Names that readers of folders of Parquet files pass over.
MODEL, RECORD, RUN = "_model.skops", "_record.json", "_run.json"
SHARE_READING = 0.1  # of the time until the model is learned
SECONDS_BETWEEN_LINES = 60.0  # of progress where there is no terminal: such runs may take hours

OnFiles = Callable[[int, int], object]  # number of files that are done, and of all


@dataclass(frozen=True, eq=False)
class FilesJob:
    """What the command was asked for."""

    tables: Sequence[Path]
    output: Path | None
    options: LabelingOptions
    unlabeled: str | None
    model: Path | None
    page: Path | None
    cluster: str | None
    workers: int | None

    @property
    def out(self) -> Path:
        """The folder of the copies."""
        if self.output is None or str(self.output) == STANDARD:
            raise KernelweaveError(
                f"'{self.tables[0]}' names many files, which have many copies: name a folder for them with -o.",
                ErrorCode.BAD_OPTION,
            )
        return self.output

    @property
    def outputs(self) -> list[Path]:
        """Model and page where they are asked for, beside what the folder of the copies holds anyway."""
        is_default = self.model is not None and os.path.realpath(self.model) == os.path.realpath(self.out / MODEL)
        return [path for path in (None if is_default else self.model, self.page) if path is not None]

    def describe(self, folder: Path, names: Sequence[str]) -> dict[str, Any]:
        """Return what a run depends on, as plain data."""
        options = asdict(self.options) | {
            "unlabeled": self.unlabeled,
            "model": None if self.model is None else str(self.model),
            "report": None if self.page is None else str(self.page),
        }
        described: dict[str, Any] = json.loads(as_json({"options": options, "files": describe_files(folder, names)}))
        return described


def label_files(job: FilesJob, is_quiet: bool) -> dict[str, Any] | None:
    """Write a copy of each file; return the report, or None where the model was learned by an earlier run."""
    folder = find_folder(job.tables[0])
    _check(job, folder)
    names = find_files(job.tables[0], job.out)
    _check_files(job, folder, names)
    asked = job.describe(folder, names)
    is_begun = _is_begun(job.out, asked, names)
    show = partial(show_stages, is_quiet=is_quiet, seconds_between_lines=SECONDS_BETWEEN_LINES)
    report = None
    with _counting_copies(job.out, names), open_cluster(job.cluster, job.workers) as cluster:
        if not is_begun:
            with show(time_limit=job.options.time_limit) as on_stage:
                report = _learn(job, folder, names, asked, cluster, on_stage)
        with show() as on_stage:
            _fill_files(job.out, folder, names, cluster, on_stage)
    mark_work_done()
    return report


def show_files(job: FilesJob, report: dict[str, Any] | None, json_: bool) -> None:
    """Print the report, or where that of an earlier run is."""
    if json_:
        print_json(report or json.loads((job.out / RECORD).read_text(encoding="utf-8")))
    elif report is None:
        print(harmless(f"all files are labelled with the model of the earlier run; its record is {job.out / RECORD}"))
    else:
        show_report(report, job.out, RECORD, job.out / MODEL)
    name_page(job.page)


def _check(job: FilesJob, folder: Path) -> None:
    """Refuse what would fail after the long work."""
    if len(job.tables) > 1:
        raise KernelweaveError(
            f"'{job.tables[0]}' names many files, which cannot be joined with other tables; name it alone.",
            ErrorCode.BAD_OPTION,
        )
    check_skops()
    out = job.out
    if out.is_dir() and os.path.samefile(out, folder):
        raise KernelweaveError(
            f"The folder '{out}' holds the files themselves, which are never overwritten; name another one with -o.",
            ErrorCode.SAME_FILE,
        )
    if out.exists() and not out.is_dir():
        raise KernelweaveError(f"'{out}' is a file; name a folder for the copies with -o.", ErrorCode.NOT_WRITABLE)
    check_output(out / RUN if out.is_dir() else out)
    if out.is_dir() and out.resolve() in folder.resolve().parents:
        raise KernelweaveError(
            f"The folder '{out}' holds the folder of the files, '{folder}'; name another one for the copies with -o.",
            ErrorCode.SAME_FILE,
        )
    check_outputs(job.outputs, job.tables[0])


def _check_files(job: FilesJob, folder: Path, names: Sequence[str]) -> None:
    """Refuse a model or a page in the place of a file, of its copy, or of what is kept beside the copies."""
    named = {os.path.realpath(path): path for path in job.outputs}
    for name in (*names, MODEL, RECORD, RUN):
        if same := named.get(os.path.realpath(job.out / name)):
            raise KernelweaveError(
                f"The output '{same}' has the name of a file that the run itself writes to '{job.out}'; give it "
                "another one.",
                ErrorCode.SAME_FILE,
            )
    given = [path for path in named if os.path.exists(path)]  # usually none: then the files are not visited
    for name in names if given else ():
        if source := next((path for path in given if os.path.samefile(path, folder / name)), None):
            raise KernelweaveError(
                f"The output '{named[source]}' is the input itself, which is never overwritten.", ErrorCode.SAME_FILE
            )


def _is_begun(out: Path, asked: dict[str, Any], names: Sequence[str]) -> bool:
    """Return whether the folder holds the beginning of this run; refuse that of another, and files of other origin."""
    remedy = f"Name another folder with -o, or delete '{out}'."
    try:
        before = dict(json.loads((out / RUN).read_text(encoding="utf-8")))
        digest = _digest(out / MODEL)
        (out / RECORD).stat()
    except FileNotFoundError:
        if present := [name for name in names if (out / name).exists()]:
            message = f"'{out / present[0]}' exists, and there is no record that this command wrote it. {remedy}"
            raise KernelweaveError(message, ErrorCode.SAME_FILE) from None
        return False
    except (OSError, ValueError, TypeError) as error:
        message = f"'{out / RUN}' cannot be read: {reason(error)}. {remedy}"
        raise KernelweaveError(message, ErrorCode.UNREADABLE) from None
    if difference := next(_differences(before, asked | {"digest": digest}), None):
        raise KernelweaveError(f"'{out}' holds the copies of another run: {difference}. {remedy}", ErrorCode.SAME_FILE)
    return True


def _differences(before: dict[str, Any], now: dict[str, Any]) -> Iterator[str]:
    """Yield in words what a run was asked for, and is not now."""
    for kind, what in (("options", "option"), ("files", "file")):
        old, new = before.get(kind, {}), now[kind]
        for name in dict.fromkeys([*old, *new]):
            if name not in new:
                yield f"the {what} '{name}' is missing now"
            elif name not in old:
                yield f"the {what} '{name}' is new"
            elif old[name] != new[name]:
                change = f"was {old[name]!r} and is {new[name]!r}" if kind == "options" else "was changed since"
                yield f"the {what} '{name}' {change}"
    if before.get("digest") != now["digest"]:
        yield "its model was changed since"


def _learn(
    job: FilesJob, folder: Path, names: Sequence[str], asked: dict[str, Any], cluster: Cluster | None, on_stage: Stages
) -> dict[str, Any]:
    """Learn from a sample of the rows; write model and record, and return the latter."""
    options, out = job.options, job.out

    def on_files(part: int, n_done: int, n_files: int) -> None:
        share = SHARE_READING * (part + n_done / n_files) / 2
        on_stage("reading the files", share, f"{n_done:,} of {n_files:,}")

    paths = [os.path.abspath(folder / name) for name in names]
    inspect = partial(inspect_file, target=options.target, unlabeled=job.unlabeled)
    summaries = _run_all(cluster, inspect, paths, partial(on_files, 0))
    schema = unite_schemas(names, [each.schema for each in summaries])
    choices = choose_rows(paths, summaries, options.seed)
    take = partial(take_rows, target=options.target, unlabeled=job.unlabeled, schema=schema)
    samples = _run_all(cluster, take, choices, partial(on_files, 1))
    given, places = _join_samples(job, names, samples, sum(each.n_labeled for each in summaries))
    labeling = fill_labels(
        given.frame,
        given.cells,
        given.empty,
        given.options,
        lambda title, share, *figures: on_stage(title, SHARE_READING + (1 - SHARE_READING) * share, *figures),
    )
    extra = rename_taken(labeling.extra, given.table.names)
    report = _describe_all(_name_rows(labeling.report, places), summaries)
    record = make_record(job.tables, given, job.unlabeled, report, extra)
    record["warnings"] += on_stage.take_notes()
    new_names = dict(zip(labeling.extra, extra, strict=True))
    about = describe_copies(schema, labeling.extra, new_names, options.target) | {"unlabeled": job.unlabeled}
    files = make_files(given, labeling, record, about, (out / RECORD, out / MODEL, job.page))
    contents = dict(files)
    if job.model in job.outputs:
        files.append((job.model, contents[out / MODEL]))
    begun = asked | {"digest": hashlib.sha256(contents[out / MODEL]).hexdigest()}
    out.mkdir(exist_ok=True)
    files.append((out / RUN, (as_json(begun) + "\n").encode("utf-8", "backslashreplace")))
    write_all(files, like=paths)
    return record


def _run_all(
    cluster: Cluster | None,
    function: Callable[[Any], Any],
    items: Sequence[Any],
    on_files: Callable[[int, int], object],
) -> list[Any]:
    """Return the function's results in the order of the items."""
    results: dict[int, Any] = {}
    on_files(0, len(items))
    for number, result in run_each(cluster, function, items):
        results[number] = result
        on_files(len(results), len(items))
    return [results[number] for number in range(len(items))]


def _join_samples(
    job: FilesJob, names: Sequence[str], samples: Sequence[Sample], n_labeled: int
) -> tuple[Given, list[tuple[str, int]]]:
    """Return the rows to learn from as one table, and for each of them its file and its number there."""
    options = job.options
    rows = require_package("pyarrow").concat_tables([each.rows for each in samples]).unify_dictionaries()
    table = ParquetTable.of_arrow(job.tables[0], rows)
    check_columns(table, options)
    options = replace(options, ignore=expand_names(options.ignore, table.names, table.path))
    empty = is_empty(table, options.target, job.unlabeled)
    places = [(name, int(number)) for name, each in zip(names, samples, strict=True) for number in each.numbers]
    n_used = int((~empty).sum())
    notes = [f"Learned from {n_used:,} of {n_labeled:,} labelled rows, drawn at random."] if n_used < n_labeled else []
    return Given(table, table.frame(), table.column(options.target), empty, options, notes), places


def _describe_all(report: dict[str, Any], summaries: Sequence[Summary]) -> dict[str, Any]:
    """Return the report with the numbers of rows of all files."""
    n_rows, n_labeled = (int(np.sum([getattr(each, name) for each in summaries])) for name in ("n_rows", "n_labeled"))
    return report | {
        "files": len(summaries),
        "rows": n_rows,
        "rows_learned": report["rows"],
        "rows_labeled": n_labeled,
        "rows_filled": n_rows - n_labeled,
    }


def _name_rows(report: dict[str, Any], places: Sequence[tuple[str, int]]) -> dict[str, Any]:
    """Return the report with the file of each listed row, and its number there, from 1 on."""

    def name_row(record: dict[str, Any]) -> dict[str, Any]:
        file, number = places[record["row"]]
        return record | {"row": number + 1, "id": {"file": file, **record.get("id", {})}}

    lists = {key: [name_row(each) for each in report[key]] for key in ("suspects", "next") if key in report}
    return report | lists


def _fill_files(out: Path, folder: Path, names: Sequence[str], cluster: Cluster | None, on_stage: Stages) -> None:
    """Write the copies that are not there yet."""
    model, digest = os.path.abspath(out / MODEL), _digest(out / MODEL)
    left = [name for name in names if not (out / name).exists()]
    copies = [FileCopy(os.path.abspath(folder / name), os.path.abspath(out / name), model, digest) for name in left]
    n_before = n_done = len(names) - len(left)
    clock = Clock(None)

    def show_done(seconds_left: float | None = None) -> None:
        share = n_done / len(names)
        on_stage("labelling the files", share, f"{n_done:,} of {len(names):,}", seconds_left)

    show_done()
    for _ in run_each(cluster, fill_file, copies):
        n_done += 1
        show_done(clock.elapsed / (n_done - n_before) * (len(names) - n_done))  # files of an earlier run took none


@contextmanager
def _counting_copies(out: Path, names: Sequence[str]) -> Iterator[None]:
    """Let what ends the work once the model is there say how many files are labelled, by workers in the end, too."""
    try:
        yield
    except (KeyboardInterrupt, KernelweaveError) as error:
        if not (out / RUN).exists():
            raise
        n_there = sum((out / name).exists() for name in names)
        rest = f"{n_there:,} of {len(names):,} files are labelled; the same command goes on with the others."
        if isinstance(error, KeyboardInterrupt):
            raise KernelweaveError(f"Interrupted: {rest}", ErrorCode.INTERRUPTED) from None
        raise KernelweaveError(f"{error} {rest}", error.code) from None


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()

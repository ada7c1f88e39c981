"""``kernelweave explain``: which columns and sources decide, which labels are doubtful, which rows to label next."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Annotated, Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from sklearn.base import clone
from sklearn.feature_selection import f_classif, r_regression

from ..errors import ErrorCode, KernelweaveError
from ..files import atomic_write
from ..inspection.importance import ColumnImportance, column_importance
from ..inspection.mixture import freeze_mixture
from ..labeling.encoder import column_positions, source_positions
from ..labeling.job import LabelingOptions, learn_labels, list_rows, spread
from ..labeling.problem import Problem, read_problem
from ..labeling.tasks import read_classes, read_numbers
from ..model_selection.out_of_fold import N_SPLITS
from ..short_text import format_number
from . import options as asked
from .display import (
    make_grid,
    open_console,
    print_json,
    show_columns,
    show_notes,
    show_rows,
    show_stages,
    write_columns,
)
from .harmless import harmless
from .options import OUTPUT, option
from .outputs import name_sources
from .page import check_page, learned_page, name_page
from .reading import describe_run, number_rows, read_given
from .streams import as_text, mark_work_done

LEARNING_SHARE = 0.5  # of the time limit; the rest is for columns
FITTING_SHARE = 0.5  # of the time for columns, in which all learners must be fitted in the folds
MAX_COLUMNS = 100  # of a wide table, those that go with the labels most by themselves
N_ROWS = 5  # suspects, and rows to label next


def explain(
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
    columns: Annotated[int, option("How many columns to list; 10 by default.", OUTPUT, metavar="N")] = 10,
    suspects: Annotated[int, option("How many doubtful labels to list; 5 by default.", OUTPUT, metavar="N")] = N_ROWS,
    next_: Annotated[
        int | None, option("How many rows to label next; 5 by default.", OUTPUT, "--next", metavar="N")
    ] = None,
    report_file: asked.Report = None,
    quiet: asked.Quiet = False,
    json_: asked.Json = False,
) -> None:
    """Say which sources and columns decide, which labels are doubtful, which rows to label next.

    A column counts by how much the error on held-out rows rises when its cells are those of other rows. No file is
    written but --report.

    Example: kernelweave explain patients.csv --target outcome --id patient
    """
    asked.check_counts(columns=columns, suspects=suspects, next=next_ or 0)
    unlabeled = asked.read_word(unlabeled)
    check_page(report_file, *tables)
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
        suspects=suspects,
        next=next_ or 0,
    )
    with show_stages(is_quiet=quiet or json_, time_limit=time_limit) as on_stage:
        on_stage("reading the table", 0.0)
        given = read_given(tables, options, unlabeled)
        options = given.options
        learning = replace(options, time_limit=None if time_limit is None else LEARNING_SHARE * time_limit)
        problem = read_problem(given.frame, given.cells, given.empty, learning, _slow_down(on_stage))
        if next_ is None and problem.task == "classification":
            options = replace(options, next=N_ROWS)
        result = learn_labels(problem, options)
        values = np.full(len(given.empty), None, dtype=object)
        if given.empty.any():
            texts, _ = result.model.fill_cells(problem.setup.X[given.empty], options.target)
            values = spread(texts, given.empty, None)
        rows = list_rows(given.frame, problem, values, result.model, options, np.arange(len(values)))
        left = None if time_limit is None else max(0.0, time_limit - problem.setup.clock.elapsed)
        name, estimator, why = _choose_explained(result.model.learner, result.report["leaderboard"], left)
        importance, notes = _weigh_columns(problem, options, estimator, left, on_stage)
        notes += on_stage.take_notes()
    report = describe_run(tables, options, unlabeled) | problem.describe(options) | result.report
    report |= number_rows(rows, given.table) | {
        "explained": name,
        "importance": importance.records,
        "explained_error": [importance.error.value, importance.error.low, importance.error.high],
        "seconds": round(problem.setup.clock.elapsed, 2),
    }
    if problem.task == "regression":
        unit = float(np.nanstd(read_numbers(problem.cells, problem.empty, options.target, None))) or 1.0
        report |= _in_unit(report, unit)
    report["warnings"] = [*given.notes, *problem.notes, *result.notes, *why, *notes]
    if report_file is not None:
        atomic_write(report_file, learned_page(given, problem.setup.X, result.model, report), like=name_sources(tables))
    mark_work_done()
    print_json(report) if json_ else show_explanation(report, columns)
    name_page(report_file)


def _slow_down(on_stage: Any) -> Any:
    """Return what shows the stages of learning as half of the work."""
    return lambda text, share: on_stage(text, LEARNING_SHARE * share)


def _choose_explained(
    learner: Any, leaderboard: list[dict[str, Any]], max_time: float | None
) -> tuple[str, Any, list[str]]:
    """Return what columns are weighed for, its name, and a note if time allows for one learner of the mixture only."""
    if len(learner.members_) == 1:
        return learner.members_[0].name, clone(learner.members_[0].model), []
    seconds = {record["candidate"]: record["seconds"] for record in leaderboard}
    expected = N_SPLITS * sum(seconds[member.name] for member in learner.members_)
    if max_time is None or expected <= FITTING_SHARE * max_time:
        return f"the mixture of {len(learner.members_)} learners", freeze_mixture(learner), []
    largest = max(learner.members_, key=lambda member: member.weight)
    note = (
        f"There was no time to weigh columns for all {len(learner.members_)} learners, so that they are weighed for "
        f"the one with the largest weight, {largest.name}. Raise --time-limit."
    )
    return largest.name, clone(largest.model), [note]


def _weigh_columns(
    problem: Problem, options: LabelingOptions, estimator: Any, max_time: float | None, on_stage: Any
) -> tuple[ColumnImportance, list[str]]:
    """Return what an estimator needs, and notes on columns that were not tried."""
    setup, notes = problem.setup, []
    if problem.task == "classification":
        y, _ = read_classes(problem.cells, problem.empty, options.target, setup.groups)
    else:
        y = read_numbers(problem.cells, problem.empty, options.target, setup.groups)
        y = (y - np.nanmean(y)) / (float(np.nanstd(y)) or 1.0)
    columns = column_positions(problem.encoder)
    if len(columns) > MAX_COLUMNS:
        notes.append(
            f"Of {len(columns):,} columns the {MAX_COLUMNS} that go with the labels most by themselves were tried."
        )
        columns = _take_promising(columns, setup.X[~problem.empty], y[~problem.empty], problem.task)
    sources = {
        name or "other columns": where for name, where in source_positions(problem.encoder, problem.plan).items()
    }
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of fits in the folds
            found = column_importance(
                estimator,
                setup.X,
                y,
                columns=columns,
                sources=sources if len(sources) > 1 else None,
                groups=setup.groups,
                unlabeled=None,
                max_time=max_time,
                callback=lambda text, share: on_stage(
                    f"trying {text}" if text in columns or text in sources else text, 0.5 + share / 2
                ),
                random_state=setup.seed,
            )
    except (ValueError, ArithmeticError, RuntimeError) as error:
        raise KernelweaveError(f"{error} Try another --learner, or label more rows.", ErrorCode.BAD_TARGET) from None
    if found.not_tried:
        notes.append(f"There was no time for {len(found.not_tried)} columns. Raise --time-limit to try them.")
    return found, notes


def _take_promising(columns: dict[str, list[int]], X: np.ndarray, y: np.ndarray, task: str) -> dict[str, list[int]]:
    """Return the columns whose numbers differ most between classes, or go with the numbers."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # constants
        # F of a correlation of 1 is negative after rounding.
        scores = f_classif(X, y.astype(str))[0] if task == "classification" else np.abs(r_regression(X, y))
    best = {name: float(np.nan_to_num(scores[where], nan=0.0).max()) for name, where in columns.items()}
    kept = sorted(columns, key=lambda name: -best[name])[:MAX_COLUMNS]
    return {name: columns[name] for name in kept}


def _in_unit(report: dict[str, Any], unit: float) -> dict[str, Any]:
    """Return the rises of errors of a standardised target in the unit of the target."""
    scaled = [
        record | {key: unit * record[key] for key in ("importance", "low", "high")} for record in report["importance"]
    ]
    return {"importance": scaled, "explained_error": [unit * value for value in report["explained_error"]]}


def show_explanation(report: dict[str, Any], n_columns: int) -> None:
    """Print an explanation for people."""
    report, console = harmless(report), open_console()
    is_classes = report["task"] == "classification"
    value, low, high = (_write(number, is_classes) for number in report["explained_error"])
    console.print(
        f"[bold]{escape(report['explained'])}[/], learned from {report['rows_labeled']:,} labels: "
        f"error of held-out rows {value} (95 % interval {low} to {high})"
    )
    for kind, what, n in (("source", "sources", None), ("column", "columns", n_columns)):
        records = [record for record in report["importance"] if record["kind"] == kind]
        if records and n != 0:
            _show_importance(console, records, what, n, is_classes)
    show_rows(console, report)
    show_notes(console, report["warnings"])
    show_columns(console, report["columns"])


def _show_importance(
    console: Console, records: list[dict[str, Any]], what: str, n_shown: int | None, is_classes: bool
) -> None:
    unit = "points" if is_classes else "root mean squared error"
    console.print(f"{what}, by how much the error rises when they are shuffled ({unit}):")
    grid = make_grid(_="left", rise="right", interval="right", needed="left")
    grid.columns[0].header, grid.columns[2].header = what[:-1], "95 % interval"
    shown = records[:n_shown]
    numbers = write_columns(shown, ("importance", "low", "high"), is_classes, sign=True)
    for record, (rise, low, high) in zip(shown, numbers, strict=True):
        needed = "yes" if record["low"] > 0 else "no" if record["high"] < 0 else "not clear"
        grid.add_row(escape(record["name"]), rise, f"{low} to {high}", needed)
    console.print(grid)
    if n_shown is not None and len(records) > n_shown:
        console.print(f"{len(records) - n_shown} more columns: --columns {len(records)} shows them")


def _write(number: float, is_classes: bool) -> str:
    return f"{number:.1%}" if is_classes else format_number(number)

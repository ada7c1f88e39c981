"""Fill in the missing labels of a table, and say how good they are.

Features are encoded without labels, on all rows. Learners are tried on them: labelled rows are predicted by models that
have not seen their labels, which gives the error, its interval, the weights of learners and the calibration of
probabilities; where time is short, some of them. What was found best fills the empty cells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from ..errors import ErrorCode, KernelweaveError
from .columns import Column, ColumnPlan, plan_columns
from .encoder import make_encoder
from .learner import AUTO, Clock, OnStage, Setup, make_library
from .target import find_task, require_empty_cells, strip_texts
from .tasks import TaskResult, label_classes, label_numbers

MAX_FEATURE = 1e70  # whose inner products can be squared
MAX_COLUMNS_NAMED = 5  # left-out columns in a message


@dataclass(frozen=True)
class LabelingOptions:
    """What a user may choose; only the target has no default."""

    target: str
    task: str = "auto"
    id_columns: Sequence[str] = ()
    ignore: Sequence[str] = ()
    group: str | None = None
    sources: Mapping[str, Sequence[str]] = field(default_factory=dict)
    scale: str = "auto"
    seed: int = 0
    time_limit: float | None = None
    learner: str = AUTO
    probabilities: bool = False
    coverage: float | None = None
    suspects: int = 0
    next: int = 0


@dataclass(frozen=True)
class Labeling:
    """Filled labels and the report about them.

    Attributes
    ----------
    values : ndarray of shape (n_rows,)
        For each row of the table the text of an empty target cell, None where the cell was given.
    extra : dict of ndarray
        Texts of the appended columns, by name; "" where the cell was given.
    report : dict
        Plain data: rows, errors, kernels, certificate, columns.
    model : Pipeline
        From a raw frame to predictions.
    """

    values: np.ndarray
    extra: dict[str, np.ndarray]
    report: dict[str, Any]
    model: Pipeline


def fill_labels(
    frame: Any, cells: np.ndarray, empty: np.ndarray, options: LabelingOptions, on_stage: OnStage
) -> Labeling:
    """Learn from all rows of a table and fill in the empty cells of its target column.

    Parameters
    ----------
    frame : pandas.DataFrame
    cells : ndarray of str, shape (n_rows,)
        The target column as text; blanks around a text do not count.
    empty : ndarray of bool, shape (n_rows,)
        Which of the cells are empty.
    options : LabelingOptions
    on_stage : callable
        ``on_stage(text, share)`` shows what comes next and which share of the whole is done.
    """
    clock = Clock(options.time_limit)
    require_empty_cells(cells, empty, options.target)
    if empty.all():
        raise KernelweaveError(f"No row of {options.target!r} has a label; label some rows.", ErrorCode.BAD_TARGET)
    cells = strip_texts(cells)
    task = find_task(cells[~empty], options.task, options.target)
    on_stage("reading the columns", 0.0)
    plan = _plan_features(frame, options)
    notes = _check_sources(plan, options)
    encoder = make_encoder(plan).fit(frame)
    X = encode(encoder, frame)
    groups = None if options.group is None else strip_texts(frame[options.group])
    library = make_library(encoder, plan, X)
    setup = Setup(X, groups, library, options.learner, options.seed, clock, on_stage)
    result = _learn(task, cells, empty, options, setup)
    on_stage("filling in the labels", 0.95)
    texts, extra = result.model.fill_cells(X[empty], options.target)
    values = spread(texts, empty, None)
    return Labeling(
        values=values,
        extra={name: spread(column, empty, "") for name, column in extra.items()},
        report={
            "task": task,
            "task_was": "guessed" if options.task == "auto" else "given",
            "rows": len(cells),
            "rows_labeled": int((~empty).sum()),
            "rows_filled": int(empty.sum()),
            "columns": _describe_columns(plan, options.target),
            **result.report,
            **_list_rows(frame, cells, values, result.model, options),
            "warnings": notes + result.notes,
            "seconds": round(clock.elapsed, 2),
        },
        model=Pipeline([("encode", encoder), ("model", result.model)]),
    )


def _learn(task: str, cells: np.ndarray, empty: np.ndarray, options: LabelingOptions, setup: Setup) -> TaskResult:
    """Learn classes or numbers; refuse options of the one that are given for the other."""
    if task == "classification":
        appended: dict[str, Any] = {"probabilities": options.probabilities, "coverage": options.coverage}
        return label_classes(cells, empty, options.target, setup, **appended)
    for option, given in (("--probabilities", options.probabilities), ("--next", options.next)):
        if given:
            raise KernelweaveError(
                f"{option} is for classes, and {options.target!r} holds numbers. Leave it out, or use --task "
                "classification if the numbers are classes.",
                ErrorCode.BAD_OPTION,
            )
    return label_numbers(cells, empty, options.target, setup, coverage=options.coverage)


def encode(encoder: Pipeline, frame: Any) -> np.ndarray:
    """Return the features of a table as a matrix, by a fitted encoder; refuse numbers too large for kernels."""
    X = np.asarray(encoder.transform(frame), dtype=np.float64)
    too_large = np.flatnonzero(~(np.abs(X).max(axis=0) <= MAX_FEATURE))
    if len(too_large):
        name = str(encoder.get_feature_names_out()[too_large[0]]).partition("__")[2]
        raise KernelweaveError(
            f"The column {name!r} has values too large for kernels. Correct or empty those cells, or learn without the "
            "column.",
            ErrorCode.BAD_FEATURES,
        )
    return X


def spread(texts: Sequence[str] | np.ndarray, rows: np.ndarray, elsewhere: str | None) -> np.ndarray:
    """Return an array with the texts at the rows of a mask, and one value in all others."""
    column = np.full(len(rows), elsewhere, dtype=object)
    column[rows] = texts
    return column


def _plan_features(frame: Any, options: LabelingOptions) -> ColumnPlan:
    """Return what is done with each column; refuse a table without a column to learn from."""
    plan = plan_columns(
        frame,
        target=options.target,
        id_columns=options.id_columns,
        ignore=options.ignore,
        group=options.group,
        sources=dict(options.sources) or None,
        scale=options.scale,
    )
    if not plan.used:
        message = f"No column is left to learn from: {_list_reasons(plan.left_out)}."
        raise KernelweaveError(message, ErrorCode.NO_FEATURES)
    return plan


def _check_sources(plan: ColumnPlan, options: LabelingOptions) -> list[str]:
    """Refuse a source with the target in it, or with nothing left; return a sentence on each column left out of one."""
    notes = []
    for source, names in options.sources.items():
        if options.target in names:
            raise KernelweaveError(
                f"Source {source!r} names the target {options.target!r}, which is not a feature. Remove it from the "
                "source.",
                ErrorCode.BAD_SOURCE,
            )
        left_out = [column for column in plan.left_out if column.source == source]
        if all(column.source != source for column in plan.used):
            message = f"No column of source {source!r} is left to learn from: {_list_reasons(left_out)}. Name others."
            raise KernelweaveError(message, ErrorCode.BAD_SOURCE)
        notes += [
            f"Column {column.name!r} of source {source!r} is left out: {column.reason}."
            for column in left_out
            if column.name in names  # a pattern means whatever there is to learn from
        ]
    return notes


def _list_reasons(columns: Sequence[Column]) -> str:
    return "; ".join(f"{column.name} ({column.reason})" for column in columns[:MAX_COLUMNS_NAMED])


def _describe_columns(plan: ColumnPlan, target: str) -> dict[str, dict[str, str]]:
    left_out = {column.name: column.reason for column in plan.left_out if column.name != target}
    return {"used": {column.name: column.kind for column in plan.used}, "left_out": left_out}


def _list_rows(
    frame: Any, cells: np.ndarray, values: np.ndarray, model: Any, options: LabelingOptions
) -> dict[str, list[dict[str, Any]]]:
    """Return the rows whose given label is contradicted, and those worth labelling, as far as they are asked for."""

    def name_row(row: int) -> dict[str, Any]:
        identity = {name: str(frame[name].iloc[row]) for name in options.id_columns}
        return {"row": row} | ({"id": identity} if identity else {})

    lists: dict[str, list[dict[str, Any]]] = {}
    if options.suspects:
        lists["suspects"] = [
            name_row(each["row"])
            | {"given": cells[each["row"]], "suggested": model.write_label(each["suggested"]), "score": each["score"]}
            for each in model.learner.suspect_labels(options.suspects)
        ]
    if options.next:
        rows = model.learner.label_next(options.next).tolist()
        lists["next"] = [name_row(row) | {"guess": values[row]} for row in rows]
    return lists

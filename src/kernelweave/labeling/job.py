"""Fill in the missing labels of a table, and say how good they are.

Features are encoded without labels, on all rows. Learners are tried on them: labelled rows are predicted by models that
have not seen their labels, which gives the error, its interval, the weights of learners and the calibration of
probabilities; where time is short, some of them. What was found best fills the empty cells. Of a large table the
learners see the labelled rows and some of the others, drawn at random.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from ..errors import ErrorCode, KernelweaveError
from .base import list_names
from .learner import OnStage
from .problem import Problem, ReadingOptions, read_problem
from .sampling import choose_learned
from .target import require_empty_cells
from .tasks import TaskResult, label_classes, label_numbers

MIN_EXPECTED = 3.0  # cells of a class, of which there are none by chance in 5 % of all tables
BLOCK_ROWS = 10_000  # that a model predicts at a time: fractions of a second up to seconds


@dataclass(frozen=True)
class LabelingOptions(ReadingOptions):
    """What a user may choose; only the target has no default."""

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
    learned : ndarray of shape (n_learned,)
        Numbers of the rows that were learned from.
    """

    values: np.ndarray
    extra: dict[str, np.ndarray]
    report: dict[str, Any]
    model: Pipeline
    learned: np.ndarray


def fill_labels(
    frame: Any, cells: np.ndarray, empty: np.ndarray, options: LabelingOptions, on_stage: OnStage
) -> Labeling:
    """Learn from all rows of a table and fill in the empty cells of its target column.

    Parameters
    ----------
    frame, cells, empty, on_stage
        As in :func:`~kernelweave.labeling.problem.read_problem`; some cell must be empty.
    options : LabelingOptions
    """
    require_empty_cells(cells, empty, options.target)
    problem = read_problem(frame, cells, empty, options, on_stage)
    learned = choose_learned(empty, options.seed)
    seen = problem.take(learned)
    result = learn_labels(seen, options)

    def on_rows(n_done: int) -> None:
        on_stage("filling in the labels", 0.95 + 0.03 * n_done / len(empty))

    texts, extra = fill_by_blocks(result.model, problem.setup.X[empty], options.target, on_rows)
    values = spread(texts, empty, None)
    return Labeling(
        values=values,
        extra={name: spread(column, empty, "") for name, column in extra.items()},
        report={
            **problem.describe(options),
            "rows_filled": int(empty.sum()),
            **result.report,
            **list_rows(frame, problem, values, result.model, options, learned),
            "warnings": [
                *problem.notes,
                *note_sample(seen.empty, empty),
                *result.notes,
                *note_unused_classes(result.report, texts),
            ],
            "seconds": round(problem.setup.clock.elapsed, 2),
        },
        model=Pipeline([("encode", problem.encoder), ("model", result.model)]),
        learned=learned,
    )


def note_sample(seen: np.ndarray, empty: np.ndarray) -> list[str]:
    """Return a sentence on the rows that learners have seen, if these are not all.

    Parameters
    ----------
    seen, empty : ndarray of bool
        Which of these rows, and which of all, have no label.
    """
    if len(seen) == len(empty):
        return []
    n_used, n_labeled = int((~seen).sum()), int((~empty).sum())
    which = "all" if n_used == n_labeled else f"{n_used:,} of"
    return [f"Learned from {len(seen):,} of {len(empty):,} rows, drawn at random: {which} {n_labeled:,} labelled ones."]


def note_unused_classes(report: dict[str, Any], texts: Sequence[str] | np.ndarray) -> list[str]:
    """Return a sentence on classes that no empty cell is filled with.

    Parameters
    ----------
    report : dict
        With the given ``classes``, if the target has classes.
    texts : sequence of str
        What the cells are filled with.
    """
    counts = report.get("classes", {})
    rate = len(texts) / max(1, sum(counts.values()))  # expected cells for each given label
    unused = sorted(name for name in set(counts) - set(texts) if rate * counts[name] >= MIN_EXPECTED)
    if not unused:
        return []
    kind = "class" if len(unused) == 1 else "classes"
    return [f"No empty cell is filled with the {kind} {list_names(unused)}: are there none, or are they not learned?"]


def learn_labels(problem: Problem, options: LabelingOptions) -> TaskResult:
    """Learn classes or numbers; refuse options of the one that are given for the other."""
    arguments = (problem.cells, problem.empty, options.target, problem.setup)
    if problem.task == "classification":
        appended: dict[str, Any] = {"probabilities": options.probabilities, "coverage": options.coverage}
        return label_classes(*arguments, **appended)
    for option, given in (("--probabilities", options.probabilities), ("--next", options.next)):
        if given:
            raise KernelweaveError(
                f"{option} is for classes, and {options.target!r} holds numbers. Leave it out, or use --task "
                "classification if the numbers are classes.",
                ErrorCode.BAD_OPTION,
            )
    return label_numbers(*arguments, coverage=options.coverage)


def fill_by_blocks(
    model: Any, X: np.ndarray, target: str, on_rows: Callable[[int], object]
) -> tuple[np.ndarray, dict[str, list[str]]]:
    """Return the texts that fill the cells of all rows, and those of the appended columns by name.

    Parameters
    ----------
    model : ClassModel or NumberModel
    X : ndarray of shape (n_rows, n_features)
    target : str
    on_rows : callable
        ``on_rows(n_done)`` before each block of rows.
    """
    texts: list[np.ndarray] = []
    columns: dict[str, list[str]] = {}
    for start in range(0, len(X), BLOCK_ROWS):
        on_rows(start)
        filled, extra = model.fill_cells(X[start : start + BLOCK_ROWS], target)
        texts.append(filled)
        for name, column in extra.items():
            columns.setdefault(name, []).extend(column)
    return np.concatenate(texts), columns


def spread(texts: Sequence[str] | np.ndarray, rows: np.ndarray, elsewhere: str | None) -> np.ndarray:
    """Return an array with the texts at the rows of a mask, and one value in all others."""
    column = np.full(len(rows), elsewhere, dtype=object)
    column[rows] = texts
    return column


def list_rows(
    frame: Any, problem: Problem, values: np.ndarray, model: Any, options: LabelingOptions, learned: np.ndarray
) -> dict[str, list[dict[str, Any]]]:
    """Return the rows whose given label is contradicted, and those worth labelling, as far as they are asked for.

    ``learned`` are the numbers of the rows that the learner has seen.
    """

    def name_row(row: int) -> dict[str, Any]:
        identity = {name: str(frame[name].iloc[row]) for name in options.id_columns}
        return {"row": row} | ({"id": identity} if identity else {})

    lists: dict[str, list[dict[str, Any]]] = {}
    if options.suspects:
        lists["suspects"] = [
            name_row(int(learned[each["row"]]))
            | {
                "given": problem.cells[learned[each["row"]]],
                "suggested": model.write_label(each["suggested"]),
                "score": each["score"],
            }
            for each in model.learner.suspect_labels(options.suspects)
        ]
    if options.next:
        rows = learned[model.learner.label_next(options.next)].tolist()
        lists["next"] = [name_row(row) | {"guess": values[row]} for row in rows]
    return lists

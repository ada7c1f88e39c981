"""A table as a problem to learn: what options and cells say of the task, the features, the groups and the kernels.

Features are encoded without labels, on all rows; labels decide only which columns of text are used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from ..errors import ErrorCode, KernelweaveError
from .columns import Column, ColumnPlan, plan_columns
from .encoder import column_positions, make_encoder
from .gaps import describe_gaps, shorten_gaps
from .learner import AUTO, Clock, OnStage, Setup, make_library
from .numbers import find_decimal_mark, find_number_format, parse_numbers
from .target import find_task, strip_texts
from .text_choice import choose_texts, find_helpful

MAX_FEATURE = 1e70  # whose inner products can be squared
NUMBERED = "(?:_[0-9]+)?"  # what an appended column is called by besides, if its name was taken
MIN_INSIDE = 0.5  # share of given numbers in the intervals of an earlier run, whatever coverage that promised
ROUNDED_ENDS = 1.5  # units of the last digit by which widths of intervals differ at most: one, and what doubles lose
MAX_COLUMNS_NAMED = 5  # left-out columns in a message


@dataclass(frozen=True)
class ReadingOptions:
    """How a table is read and learned from; only the target has no default."""

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


@dataclass(frozen=True, eq=False)
class Problem:
    """What is learned from a table.

    Attributes
    ----------
    task : {"classification", "regression"}
    cells : ndarray of str, shape (n_rows,)
        The target column, without blanks around the texts.
    empty : ndarray of bool, shape (n_rows,)
        Which of the cells have no label.
    plan : ColumnPlan
    encoder : Pipeline
        From a frame to features; fitted.
    setup : Setup
        Features, groups, kernels and options of the learners.
    notes : list of str
        Sentences on cells that are gaps, and on columns that a source names and that are left out.
    """

    task: str
    cells: np.ndarray
    empty: np.ndarray
    plan: ColumnPlan
    encoder: Pipeline
    setup: Setup
    notes: list[str]

    def take(self, rows: np.ndarray) -> Problem:
        """Return the same problem with some of the rows, by their numbers; encoder and kernels are those of all."""
        groups = None if self.setup.groups is None else self.setup.groups[rows]
        setup = replace(self.setup, X=self.setup.X[rows], groups=groups)
        return replace(self, cells=self.cells[rows], empty=self.empty[rows], setup=setup)

    def describe(self, options: ReadingOptions) -> dict[str, Any]:
        """Return what is known before anything is learned, as plain data."""
        left_out = {column.name: column.reason for column in self.plan.left_out if column.name != options.target}
        return {
            "task": self.task,
            "task_was": "guessed" if options.task == "auto" else "given",
            "rows": len(self.cells),
            "rows_labeled": int((~self.empty).sum()),
            "columns": {
                "used": {column.name: column.kind for column in self.plan.used},
                "written": {column.name: words for column in self.plan.used if (words := column.written)},
                "gaps": {column.name: shorten_gaps(column.gaps) for column in self.plan.used if column.gaps},
                "left_out": left_out,
            },
        }


def read_problem(
    frame: Any, cells: np.ndarray, empty: np.ndarray, options: ReadingOptions, on_stage: OnStage
) -> Problem:
    """Read a table as a problem; what cannot be learned from is refused.

    Parameters
    ----------
    frame : pandas.DataFrame
    cells : ndarray of str, shape (n_rows,)
        The target column as text; blanks around a text do not count.
    empty : ndarray of bool, shape (n_rows,)
        Which of the cells are empty.
    options : ReadingOptions
    on_stage : callable
        ``on_stage(text, share)`` shows what comes next and which share of the whole is done.
    """
    clock = Clock(options.time_limit)
    if empty.all():
        raise KernelweaveError(f"No row of {options.target!r} has a label; label some rows.", ErrorCode.BAD_TARGET)
    cells = strip_texts(cells)
    task = find_task(cells[~empty], options.task, options.target)
    on_stage("reading the columns", 0.0)
    plan = _plan_features(frame, empty, options)
    groups = None if options.group is None else strip_texts(frame[options.group])
    plan, encoder, X = _fit_encoder(plan, frame, (task, cells, empty, groups), options.seed)
    notes = _check_sources(plan, options) + describe_gaps({column.name: column.gaps for column in plan.used})
    library = make_library(encoder, plan, X)
    setup = Setup(X, groups, library, options.learner, options.seed, clock, on_stage)
    return Problem(task, cells, empty, plan, encoder, setup, notes)


def _fit_encoder(plan: ColumnPlan, frame: Any, given: Any, seed: int) -> tuple[ColumnPlan, Pipeline, np.ndarray]:
    """Return the plan with the columns of text that help, the encoder that carries it out, and the features."""
    encoder, X = _fit_features(plan, frame)
    names = [column.name for column in plan.used if column.kind == "text"]
    if not names:
        return plan, encoder, X
    task, cells, empty, groups = given
    positions = column_positions(encoder)
    labeled = np.flatnonzero(~empty)
    helpful: list[str] | None = []
    if len(names) < len(plan.used):
        texts = {name: positions[name] for name in names}
        helpful = find_helpful(
            X[labeled], texts, cells[labeled], task, None if groups is None else groups[labeled], seed
        )
    chosen = choose_texts(plan, helpful)
    if len(chosen.used) < len(plan.used):
        encoder, X = _fit_features(chosen, frame)
    return chosen, encoder, X


def _fit_features(plan: ColumnPlan, frame: Any) -> tuple[Pipeline, np.ndarray]:
    """Return the encoder that carries out a plan, fitted, and the features; cells are read once."""
    encoder = make_encoder(plan)
    return encoder, _check_features(encoder, encoder.fit_transform(frame))


def encode(encoder: Pipeline, frame: Any) -> np.ndarray:
    """Return the features of a table as a matrix, by a fitted encoder; refuse numbers too large for kernels."""
    return encode_noting(encoder, frame)[0]


def encode_noting(encoder: Pipeline, frame: Any) -> tuple[np.ndarray, Any, list[str]]:
    """Return the same, the frame of cells as they were read, and sentences on those that could not be read."""
    cells, gaps = encoder[0].read(frame)
    return _check_features(encoder, encoder[1].transform(cells)), cells, describe_gaps(gaps)


def _check_features(encoder: Pipeline, features: Any) -> np.ndarray:
    X = np.asarray(features, dtype=np.float64)
    too_large = np.flatnonzero(~(np.abs(X).max(axis=0) <= MAX_FEATURE))
    if len(too_large):
        name = str(encoder.get_feature_names_out()[too_large[0]]).partition("__")[2]
        raise KernelweaveError(
            f"The column {name!r} has values too large for kernels. Correct or empty those cells, or learn without the "
            "column.",
            ErrorCode.BAD_FEATURES,
        )
    return X


def _plan_features(frame: Any, empty: np.ndarray, options: ReadingOptions) -> ColumnPlan:
    """Return what is done with each column; refuse a table without a column to learn from."""
    plan = plan_columns(
        frame,
        target=options.target,
        id_columns=options.id_columns,
        ignore=options.ignore,
        group=options.group,
        appended=find_appended(frame, options.target, empty),
        sources=dict(options.sources) or None,
        scale=options.scale,
    )
    if not plan.used:
        message = f"No column is left to learn from: {_list_reasons(plan.left_out)}."
        raise KernelweaveError(message, ErrorCode.NO_FEATURES)
    return plan


def find_appended(frame: Any, target: str, empty: np.ndarray) -> list[str]:
    """Return the columns that an earlier run appended with its labels: to learn from them is to learn from itself.

    A name that was taken has a number at its end. ``low`` and ``high`` are such columns where both are blank in the
    same rows, those with a given number, or where they are intervals of equal width around most of the given numbers;
    and so are ``probability`` and ``margin`` of another column than the target, which that run may have learned from
    the target. Sets are such columns beside a margin that is blank in the same rows.

    Parameters
    ----------
    frame : pandas.DataFrame
    target : str
    empty : ndarray of bool, shape (n_rows,)
        In which rows the target has no label.
    """
    names = [str(name) for name in frame.columns]
    others: dict[str, list[str]] = {}
    for name, pair in _find_pairs(names, "probability", "margin"):
        if name != target and name in names and _are_blank_together(frame, pair):
            others.setdefault(name, []).append(pair[1])
    appended = _find_of_classes(frame, names, target)
    for name, margins in others.items():
        found = _find_of_classes(frame, names, name)
        appended += [other for other in found if any(_are_blank_together(frame, (other, one)) for one in margins)]
    for name, pair in _find_pairs(names, "low", "high"):
        if name == target and (_are_blank_together(frame, pair) or _are_intervals(frame, pair, target, empty)):
            appended += pair
    return list(dict.fromkeys(appended))


def _find_pairs(names: Sequence[str], first: str, second: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield a name, and the columns called by it, two words and the same number, if any."""
    known, ends = set(names), re.compile(rf"(.+)_{second}({NUMBERED})", re.DOTALL)
    for name in names:
        if (match := ends.fullmatch(name)) and (other := f"{match[1]}_{first}{match[2]}") in known:
            yield match[1], (other, name)


def _find_of_classes(frame: Any, names: Sequence[str], target: str) -> list[str]:
    """Return the columns called like probabilities, margins and sets of a target."""
    stem = re.escape(target)
    ours = re.compile(rf"{stem}_(?:probability(?:_.*)?|margin{NUMBERED})", re.DOTALL)
    margin, a_set = (re.compile(rf"{stem}_{word}{NUMBERED}") for word in ("margin", "set"))
    margins = [name for name in names if margin.fullmatch(name)]
    sets = [name for name in names if a_set.fullmatch(name)]
    alike = [name for name in sets if any(_share_blanks(frame, (name, other)) for other in margins)]
    return [name for name in names if ours.fullmatch(name)] + alike


def _are_blank_together(frame: Any, pair: Sequence[str]) -> bool:
    """Return whether two columns are blank in the same rows, and in some."""
    return _share_blanks(frame, pair) and bool(_find_blank(frame, pair[0]).any())


def _share_blanks(frame: Any, pair: Sequence[str]) -> bool:
    return bool(np.array_equal(_find_blank(frame, pair[0]), _find_blank(frame, pair[1])))


def _find_blank(frame: Any, name: str) -> np.ndarray:
    return np.asarray(frame[name].isna().to_numpy() | [str(cell).strip() == "" for cell in frame[name]], dtype=bool)


def _are_intervals(frame: Any, pair: Sequence[str], target: str, empty: np.ndarray) -> bool:
    """Return whether two columns are the ends of intervals of equal width, up to rounding, with most given numbers."""
    texts = [strip_texts(frame[name]).tolist() for name in (*pair, target)]
    ends = [*texts[0], *texts[1]]
    low, high = np.split(parse_numbers(ends, find_decimal_mark(ends)), 2)
    if np.isnan(low + high).any():
        return False
    number_format = find_number_format(ends)
    unit = 10.0 ** -int(number_format[1:-1])  # of the last digit
    if not number_format.endswith("f"):
        unit *= 10 * np.abs([low, high]).max()
    numbers = parse_numbers(texts[2], find_decimal_mark(texts[2]))[~empty]
    is_inside = (low[~empty] <= numbers) & (numbers <= high[~empty])
    return bool(np.ptp(high - low) <= ROUNDED_ENDS * unit and np.mean(is_inside) > MIN_INSIDE)


def _check_sources(plan: ColumnPlan, options: ReadingOptions) -> list[str]:
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

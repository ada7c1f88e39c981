"""Options that several commands share, and the checks of their values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from ..errors import ErrorCode, KernelweaveError
from ..labeling.base import list_parts
from ..labeling.partitions import names_many_files
from ..labeling.problem import ReadingOptions
from .streams import as_text

Options = TypeVar("Options", bound=ReadingOptions)

COLUMNS, LEARNING, OUTPUT = "Columns", "Learning", "Output"
TASKS, SCALES = ("auto", "classification", "regression"), ("auto", "block", "column", "none")
MAX_SEED = 2**32 - 1  # of numpy's RandomState, which scikit-learn uses


def option(text: str, panel: str, *names: str, metavar: str | None = None) -> Any:
    """Return an option in one of the panels of the help, whose text says what the default is."""
    return typer.Option(*names, help=text, rich_help_panel=panel, metavar=metavar, show_default=False)


Tables = Annotated[
    list[Path],
    typer.Argument(help="CSV, TSV (also .gz), Parquet, .xlsx, .npz; - reads standard input.", metavar="TABLE"),
]
Target = Annotated[str, option("Column with the labels; empty cells have none.", COLUMNS, metavar="COLUMN")]
Unlabeled = Annotated[
    str | None, option("Text that marks unlabelled cells, beside empty ones.", COLUMNS, metavar="TEXT")
]
Ids = Annotated[
    list[str] | None, option("Identifies rows; several tables are joined on it.", COLUMNS, "--id", metavar="COLUMN")
]
Ignore = Annotated[list[str] | None, option("Columns (a,b or lab_*) to leave out.", COLUMNS, metavar="COLUMNS")]
Group = Annotated[str | None, option("Cross-validation holds out whole groups.", COLUMNS, metavar="COLUMN")]
Source = Annotated[
    list[str] | None, option("Columns (a,b or gene_*) with own kernels.", COLUMNS, metavar="NAME=COLUMNS")
]
Scale = Annotated[str, option("Of numbers: auto, block, column or none.", COLUMNS, metavar="HOW")]
Task = Annotated[str, option("auto, classification or regression.", LEARNING, metavar="TASK")]
Learner = Annotated[str, option("auto combines several; or one: SSMK, MKL, LapSVM, ...", LEARNING, metavar="NAME")]
TimeLimit = Annotated[float | None, option("Approximate time for learning.", LEARNING, metavar="SECONDS")]
Seed = Annotated[int, option("Of random numbers; 0 by default.", LEARNING, metavar="NUMBER")]
Quiet = Annotated[bool, option("Show no progress.", OUTPUT, "--quiet")]
Json = Annotated[bool, option("Print the report as JSON.", OUTPUT, "--json")]
Report = Annotated[Path | None, option("Write a page to look at (HTML).", OUTPUT, "--report", metavar="FILE")]
Suspects = Annotated[int, option("List so many doubtful given labels.", OUTPUT, metavar="N")]
Next = Annotated[int, option("List so many rows worth labelling next.", OUTPUT, "--next", metavar="N")]
Cluster = Annotated[str | None, option("Label a folder's files by a Dask cluster.", OUTPUT, "--cluster", metavar="URL")]
Workers = Annotated[int | None, option("Label a folder's files by N processes.", OUTPUT, "--workers", metavar="N")]


def read_words(words: Sequence[str] | None) -> list[str]:
    """Return the texts of an option that may be given several times."""
    return [as_text(word) for word in words or ()]


def read_word(word: str | None) -> str | None:
    """Return the text of an option; None where it is not given."""
    return None if word is None else as_text(word)


def check_choice(value: str, allowed: tuple[str, ...], option: str) -> None:
    """Refuse a word that is not one of those allowed."""
    if value not in allowed:
        raise KernelweaveError(f"{option} {value!r} is not one of {', '.join(allowed)}.", ErrorCode.BAD_OPTION)


def check_limit(seconds: float | None) -> None:
    """Refuse a time limit that is none."""
    if seconds is not None and not 0 < seconds < math.inf:
        raise KernelweaveError(f"--time-limit {seconds:g} is not a positive number of seconds.", ErrorCode.BAD_OPTION)


def check_counts(**numbers: int) -> None:
    """Refuse negative numbers."""
    for name, number in numbers.items():
        if number < 0:
            raise KernelweaveError(
                f"--{name} {number} is negative; give a whole number, 0 or more.", ErrorCode.BAD_OPTION
            )


def check_seed(seed: int) -> None:
    """Refuse a seed that generators of random numbers do not take."""
    check_counts(seed=seed)
    if seed > MAX_SEED:
        raise KernelweaveError(
            f"--seed {seed} is too large; give a whole number from 0 to {MAX_SEED}.", ErrorCode.BAD_OPTION
        )


def check_workers(tables: Sequence[Path], cluster: str | None, workers: int | None) -> None:
    """Refuse workers where there is nothing to share out, and two kinds of them."""
    if cluster is None and workers is None:
        return
    name = "--cluster" if workers is None else "--workers"
    if len(tables) > 1 or not names_many_files(tables[0]):
        raise KernelweaveError(
            f"{name} is for a table in many Parquet files: name their folder, or a pattern in quotes, such as "
            "'rows/*.parquet'.",
            ErrorCode.BAD_OPTION,
        )
    if cluster is not None and workers is not None:
        raise KernelweaveError("--cluster and --workers exclude each other; give one of them.", ErrorCode.BAD_OPTION)
    if workers is not None and workers < 1:
        raise KernelweaveError(f"--workers {workers} is less than 1.", ErrorCode.BAD_OPTION)


def read_options(
    kind: type[Options],
    *,
    target: str,
    id_column: Sequence[str] | None,
    ignore: Sequence[str] | None,
    group: str | None,
    source: Sequence[str] | None,
    scale: str,
    task: str,
    time_limit: float | None,
    seed: int,
    **more: Any,
) -> Options:
    """Return how a table is read and learned from; refuse values that options cannot have."""
    check_choice(task, TASKS, "--task")
    check_choice(scale, SCALES, "--scale")
    check_limit(time_limit)
    check_seed(seed)
    return kind(
        target=as_text(target),
        task=task,
        id_columns=tuple(read_words(id_column)),
        ignore=tuple(read_words(ignore)),
        group=read_word(group),
        sources=parse_sources(read_words(source)),
        scale=scale,
        seed=seed,
        time_limit=time_limit,
        **more,
    )


def parse_sources(texts: Sequence[str]) -> dict[str, list[str]]:
    """Return the columns of each source, from texts such as ``genes=gene_*``."""
    sources: dict[str, list[str]] = {}
    for text in texts:
        name, separator, columns = text.partition("=")
        parts = list_parts(columns)
        if not (name and separator and parts):
            raise KernelweaveError(
                f"--source {text!r} is not NAME=COLUMNS, such as genes=gene_* or lab=a,b.", ErrorCode.BAD_OPTION
            )
        sources.setdefault(name, []).extend(parts)
    return sources

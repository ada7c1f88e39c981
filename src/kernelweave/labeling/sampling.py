"""The rows of a large table that a learner sees: labelled ones and a random sample of the others.

Of many files, rows are drawn by their number among all labelled, or all unlabelled, rows of all files: the sample is
the same however the rows are cut into files, and whoever reads them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .base import require_package
from .partitions import Summary, convert_rows, find_empty, open_parquet, read_rows

# On two cores, with 200 labels and 10 columns, ``auto`` needs 75 s for 5,000 rows, 180 s for 10,000 and 350 s for
# 20,000, with the same error.
MAX_ROWS = 10_000
MAX_WHOLE_ROWS = 20_000  # of a table in one file, up to which a learner sees all
MIN_UNLABELED = 1_000  # of them, however many labels there are


@dataclass(frozen=True, eq=False)
class Choice:
    """Rows of one file, as numbers among its labelled and among its unlabelled rows."""

    path: str
    labeled: np.ndarray
    unlabeled: np.ndarray


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows of one file or of all: an Arrow table, and the number of each row in its file."""

    rows: Any
    numbers: np.ndarray


def choose_learned(empty: np.ndarray, seed: int) -> np.ndarray:
    """Return the numbers of the rows of one table that a learner sees, in ascending order; all of up to MAX_WHOLE_ROWS.

    Parameters
    ----------
    empty : ndarray of bool, shape (n_rows,)
        Which rows have no label.
    seed : int
    """
    if len(empty) <= MAX_WHOLE_ROWS:
        return np.arange(len(empty))
    unlabeled, labeled = np.flatnonzero(empty), np.flatnonzero(~empty)
    rng = np.random.default_rng(seed)
    n_chosen = min(len(labeled), MAX_ROWS - min(len(unlabeled), MIN_UNLABELED))
    (chosen,), (others,) = (
        _draw(rng, np.array([len(rows)]), limit)
        for rows, limit in ((labeled, n_chosen), (unlabeled, MAX_ROWS - n_chosen))
    )
    return np.sort(np.concatenate([labeled[chosen], unlabeled[others]]))


def choose_rows(paths: Sequence[str], summaries: Sequence[Summary], seed: int) -> list[Choice]:
    """Draw all labelled rows and a sample of the others, at most MAX_ROWS; of very many labels a sample as well."""
    n_labeled = np.array([each.n_labeled for each in summaries])
    n_unlabeled = np.array([each.n_rows for each in summaries]) - n_labeled
    rng = np.random.default_rng(seed)
    n_chosen = min(int(n_labeled.sum()), MAX_ROWS - min(int(n_unlabeled.sum()), MIN_UNLABELED))
    labeled = _draw(rng, n_labeled, n_chosen)
    unlabeled = _draw(rng, n_unlabeled, MAX_ROWS - n_chosen)
    return [Choice(*each) for each in zip(paths, labeled, unlabeled, strict=True)]


def _draw(rng: np.random.Generator, counts: np.ndarray, limit: int) -> list[np.ndarray]:
    """Draw among as many rows as the counts of all files make; return the numbers in each file, sorted."""
    ends = np.cumsum(counts)
    total = int(ends[-1])
    drawn = np.arange(total) if total <= limit else np.sort(rng.choice(total, limit, replace=False, shuffle=False))
    parts = np.split(drawn, np.searchsorted(drawn, ends[:-1]))
    return [part - start for part, start in zip(parts, ends - counts, strict=True)]


def take_rows(choice: Choice, target: str, unlabeled: str | None, schema: Any) -> Sample:
    """Return the chosen rows of a file, in its order, with the types of `schema`."""
    pa = require_package("pyarrow")
    parts, numbers = [schema.empty_table()], [np.empty(0, dtype=np.intp)]
    n_read = n_empty = 0
    if not len(choice.labeled) + len(choice.unlabeled):
        return Sample(parts[0], numbers[0])
    with open_parquet(choice.path) as file:
        for rows in read_rows(file):
            empty = find_empty(choice.path, rows, target, unlabeled)
            is_chosen = _is_among(empty, n_empty, choice.unlabeled)
            is_chosen |= _is_among(~empty, n_read - n_empty, choice.labeled)
            parts.append(convert_rows(choice.path, rows.filter(pa.array(is_chosen)), schema))
            numbers.append(n_read + np.flatnonzero(is_chosen))
            n_read, n_empty = n_read + len(empty), n_empty + int(empty.sum())
    return Sample(pa.concat_tables(parts), np.concatenate(numbers))


def _is_among(mask: np.ndarray, n_before: int, chosen: np.ndarray) -> np.ndarray:
    """Return which rows of a mask have a chosen number, counted within the mask."""
    return mask & np.isin(n_before + np.cumsum(mask) - 1, chosen)

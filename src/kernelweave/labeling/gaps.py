"""Cells among numbers, dates or times that are none: what they say of the column, and how they are named to the user.

Texts that usually stand for nothing, such as ``#N/A`` or ``unknown``, are gaps wherever a column is of numbers. Any
other text is a gap while such cells are few: a single one, or 5 %, and at most one for four cells that can be read.
Where there are more, the column is not of numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ..labels import MISSING
from ..short_text import cut_text
from .numbers import Floats, find_decimal_mark, parse_numbers

__all__ = [
    "are_gaps",
    "count_gaps",
    "count_rare_words",
    "describe_gaps",
    "describe_others",
    "is_gap_word",
    "shorten_gaps",
]

# In lower case; spreadsheets write errors in the language of the program.
WORDS = frozenset({
    "#n/a", "#na", "#nv", "#div/0!", "#value!", "#wert!", "#valeur!", "#ref!", "#bezug!", "#name?", "#num!", "#zahl!",
    "#null!", "#error!", "#spill!", "#calc!", ".", "..", "...", "--", "---", "–", "—", "unknown", "unk", "unbekannt",
    "missing", "(missing)", "(null)", "(none)", "nil", "n.a.", "n.a", "n.d.", "n/d", "nd", "k.a.", "k. a.", "tbd",
    "not available", "not applicable", "not known", "no data", "no value", "keine angabe", "undefined", "error",
    "(empty)", "(blank)",
})  # fmt: skip
MAX_SHARE = 0.05  # of cells that are other texts, unless it is a single one
MIN_RATIO = 4  # cells that can be read for each of these
MAX_RECORDED = 20  # texts of a column
MAX_COLUMNS, MAX_TEXTS, MAX_CHARACTERS = 5, 3, 30  # that a note names


def is_gap_word(text: str) -> bool:
    """Return whether a text usually stands for no value."""
    return text.lower() in WORDS


def are_gaps(levels: Sequence[str], counts: NDArray[np.intp], values: Floats) -> bool:
    """Return whether the cells that cannot be read as numbers are gaps in a column of numbers.

    Parameters
    ----------
    levels : sequence of str
        Distinct texts of a column, none of them missing.
    counts : ndarray of int, shape (n_levels,)
        How many cells have each of them.
    values : ndarray of float, shape (n_levels,)
        The number that each stands for; NaN if it is none.
    """
    is_other = np.isnan(values)
    for k in np.flatnonzero(is_other).tolist():
        is_other[k] = not is_gap_word(levels[k])
    n_read, n_other = int(counts[~np.isnan(values)].sum()), int(counts[is_other].sum())
    return n_other <= max(1, MAX_SHARE * (n_read + n_other)) and MIN_RATIO * n_other <= n_read


def count_gaps(levels: Sequence[str], counts: NDArray[np.intp], values: Floats) -> dict[str, int]:
    """Return the texts that are gaps with their numbers of cells, the most frequent first."""
    found = {levels[k]: int(counts[k]) for k in np.flatnonzero(np.isnan(values)).tolist()}
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def describe_others(levels: Sequence[str], counts: NDArray[np.intp]) -> str:
    """Return how many cells are numbers and what the others are like, if most are numbers; else "".

    Examples
    --------
    >>> describe_others(["1.5", "2.5", "(3.5)"], np.ones(3, dtype=int))
    "numbers in 2 of 3 cells, others such as '(3.5)': write these as numbers, or empty them"
    """
    is_other = np.isnan(parse_numbers(levels, find_decimal_mark(levels)))
    n_read, n_cells = int(counts[~is_other].sum()), int(counts.sum())
    if not is_other.any() or n_read <= n_cells / 2:
        return ""
    example = cut_text(levels[int(is_other.argmax())], MAX_CHARACTERS)
    return (
        f"numbers in {n_read:,} of {n_cells:,} cells, others such as {example!r}: write these as numbers, or empty them"
    )


def count_rare_words(cells: Iterable[object], n_rows: int) -> dict[str, int]:
    """Return the texts for missing values, such as ``n/a``, among cells without a number, where they are few.

    What stands in more than 5 % of the rows is the table's way to leave a cell empty, and no surprise.
    """
    words = Counter(text for cell in cells if isinstance(cell, str) and (text := cell.strip()).lower() in MISSING)
    del words[""]
    return dict(words.most_common()) if words.total() <= MAX_SHARE * n_rows else {}


def shorten_gaps(texts: Mapping[str, int]) -> dict[str, int]:
    """Return the most frequent of the texts that are gaps, long ones cut, for a record."""
    return {cut_text(text): count for text, count in list(texts.items())[:MAX_RECORDED]}


def describe_gaps(gaps: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Return a sentence on cells that are gaps, by column and text; nothing if there are none.

    Examples
    --------
    >>> describe_gaps({"age": {"#N/A": 3, "(3.5)": 1}})
    ["Cells that cannot be read are gaps: '#N/A' (3 times) and '(3.5)' in 'age'."]
    """
    described = [f"{_list_texts(texts)} in {cut_text(name, 60)!r}" for name, texts in gaps.items() if texts]
    if not described:
        return []
    more = f"; and in {len(described) - MAX_COLUMNS} more columns" if len(described) > MAX_COLUMNS else ""
    return [f"Cells that cannot be read are gaps: {'; '.join(described[:MAX_COLUMNS])}{more}."]


def _list_texts(texts: Mapping[str, int]) -> str:
    shown = [
        f"{cut_text(text, MAX_CHARACTERS)!r}{f' ({count:,} times)' if count > 1 else ''}"
        for text, count in list(texts.items())[:MAX_TEXTS]
    ]
    if len(texts) > MAX_TEXTS:
        shown.append(f"{len(texts) - MAX_TEXTS} other texts")
    return f"{', '.join(shown[:-1])} and {shown[-1]}" if len(shown) > 1 else shown[0]

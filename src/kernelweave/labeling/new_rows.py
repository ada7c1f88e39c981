"""How new rows differ from those that a model was learned from: what speaks against its labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder

from ..short_text import cut_text
from .base import list_names
from .cells import MISSING_LEVEL

MAX_ROWS = 10_000  # that are looked at
MAX_UNSEEN_SHARE = 0.5  # of the cells of a column of categories
MAX_FAR_SHARE = 0.05  # of the numbers of a column
FAR = 1.0  # ranges of the learned numbers beyond their ends


def note_new_rows(encoder: Pipeline, frame: Any) -> list[str]:
    """Return sentences on columns that are blank, of other categories, or of numbers far outside of those learned.

    Parameters
    ----------
    encoder : Pipeline
        Fitted, from a frame to features; its first step reads the cells.
    frame : pandas.DataFrame
        The new rows, of which the first are looked at.
    """
    reader, transformer = encoder[0], encoder[1]
    read = reader.transform(frame.head(MAX_ROWS))
    levels = _find_levels(transformer)
    blank = [name for name in read if _is_blank(read[name].to_numpy())]
    notes = []
    if blank and len(read):
        notes.append(f"These columns, which the model uses, are blank: {list_names(blank)}. Its labels are less sure.")
    for name in read.columns.difference(blank, sort=False):
        values = read[name].to_numpy()
        if name in levels:
            notes += _note_unseen(name, values, levels[name])
        elif name in reader.ranges_:
            notes += _note_far(name, values, *reader.ranges_[name])
    return notes


def _find_levels(transformer: Any) -> dict[str, set[str]]:
    """Return the categories that were seen, by the name of their column."""
    levels: dict[str, set[str]] = {}
    for _, part, columns in transformer.transformers_:
        first = part[0] if isinstance(part, Pipeline) else part
        if isinstance(first, OneHotEncoder):
            levels |= {name: set(seen.tolist()) for name, seen in zip(columns, first.categories_, strict=True)}
    return levels


def _is_blank(values: np.ndarray) -> bool:
    if values.dtype == np.float64:
        return bool(np.isnan(values).all())
    return bool((values == MISSING_LEVEL).all())


def _note_unseen(name: str, values: np.ndarray, seen: set[str]) -> list[str]:
    present = [value for value in values if value != MISSING_LEVEL]
    unseen = [value for value in present if value not in seen]
    if len(unseen) <= MAX_UNSEEN_SHARE * len(present):
        return []
    return [
        f"In column {name!r}, {len(unseen):,} of {len(present):,} cells hold categories that were not seen in "
        f"learning, such as {cut_text(min(unseen))!r}: is it the same column?"
    ]


def _note_far(name: str, values: np.ndarray, low: float, high: float) -> list[str]:
    present = values[~np.isnan(values)]
    reach = FAR * (high - low)
    far = present[(present < low - reach) | (present > high + reach)]
    if len(far) <= MAX_FAR_SHARE * len(present):
        return []
    return [
        f"In column {name!r}, {len(far):,} of {len(present):,} numbers lie far outside of what was learned ({low:g} to "
        f"{high:g}), such as {far[0]:g}: is it the same unit?"
    ]

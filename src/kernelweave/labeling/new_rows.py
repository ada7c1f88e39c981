"""How new rows differ from those that a model was learned from: what speaks against its labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder

from ..short_text import cut_text
from .base import list_names
from .cells import MISSING_LEVEL
from .clock import DAY
from .columns import KINDS
from .text_features import TextEncoder

MAX_ROWS = 10_000  # that are looked at
MAX_UNSEEN_SHARE = 0.5  # of the cells of a column of categories, or of the words of a column of text
MAX_FAR_SHARE = 0.05  # of the numbers of a column
FAR = 1.0  # ranges of the learned numbers beyond their ends


def note_new_rows(encoder: Pipeline, cells: Any) -> list[str]:
    """Return sentences on columns that are blank, of other categories or words, or of numbers far from those learned.

    Parameters
    ----------
    encoder : Pipeline
        Fitted, from a frame to features; its first step reads the cells.
    cells : pandas.DataFrame
        The new rows as that step reads them; of many, those at even distances are looked at.
    """
    reader = encoder[0]
    blank = [name for name in cells if _are_blank(cells[name].to_numpy()).all()]
    notes = []
    if blank and len(cells):
        notes.append(f"These columns, which the model uses, are blank: {list_names(blank)}. Its labels are less sure.")
    seen = _find_seen(encoder[1])
    recipes = {recipe["name"]: recipe for recipe in reader.recipes}
    rows = np.linspace(0, len(cells) - 1, min(len(cells), MAX_ROWS)).astype(int)
    for name in cells.columns.difference(blank, sort=False):
        values = cells[name].to_numpy()[rows]
        present = values[~_are_blank(values)]
        if isinstance(seen.get(name), TextEncoder):
            notes += _note_other_words(name, present, seen[name])
        elif name in seen:
            notes += _note_other_levels(name, present, seen[name])
        elif name in reader.ranges_:
            notes += _note_far(recipes[name], present, *reader.ranges_[name])
    return notes


def _are_blank(values: np.ndarray) -> np.ndarray:
    if values.dtype == np.float64:
        return np.isnan(values)
    return (values == MISSING_LEVEL) | (values == "")  # of a category; of a text


def _find_seen(transformer: Any) -> dict[str, Any]:
    """Return the categories that were seen, or the encoder that knows the words, by the name of their column."""
    seen: dict[str, Any] = {}
    for _, part, columns in transformer.transformers_:
        first = part[0] if isinstance(part, Pipeline) else part
        if isinstance(first, OneHotEncoder):
            seen |= {name: set(levels.tolist()) for name, levels in zip(columns, first.categories_, strict=True)}
        if isinstance(first, TextEncoder):
            seen |= dict.fromkeys(columns, first)
    return seen


def _note_other_words(name: str, present: np.ndarray, encoder: TextEncoder) -> list[str]:
    """Return a note if most words are new; where learned ones fill most places of the encoder, this cannot be told."""
    unseen, n_words = encoder.find_unseen(present.tolist())
    if len(unseen) <= MAX_UNSEEN_SHARE * n_words:
        return []
    return [
        f"In column {name!r}, {len(unseen):,} of {n_words:,} words were not seen in learning, such as "
        f"{cut_text(min(unseen))!r}: is it the same column?"
    ]


def _note_other_levels(name: str, present: np.ndarray, seen: set[str]) -> list[str]:
    unseen = [value for value in present if value not in seen]
    if len(unseen) <= MAX_UNSEEN_SHARE * len(present):
        return []
    return [
        f"In column {name!r}, {len(unseen):,} of {len(present):,} cells hold categories that were not seen in "
        f"learning, such as {cut_text(min(unseen))!r}: is it the same column?"
    ]


def _note_far(recipe: Mapping[str, str], present: np.ndarray, low: float, high: float) -> list[str]:
    reach = FAR * (high - low)
    far = present[(present < low - reach) | (present > high + reach)]
    if len(far) <= MAX_FAR_SHARE * len(present):
        return []
    first, last, example = (_write_value(recipe, value) for value in (low, high, far[0]))
    remedy = "column" if recipe["kind"] in ("date", "time of day") else "unit"
    return [
        f"In column {recipe['name']!r}, {len(far):,} of {len(present):,} {KINDS[recipe['kind']]} lie far outside of "
        f"what was learned ({first} to {last}), such as {example}: is it the same {remedy}?"
    ]


def _write_value(recipe: Mapping[str, str], value: float) -> str:
    """Return a number of a column as a user would write it."""
    if recipe["kind"] == "date":
        return str(np.datetime64(recipe["origin"], "s") + np.timedelta64(round(value * DAY), "s"))[:10]
    if recipe["kind"] == "time of day":
        return str(np.datetime64(round(value), "s"))[11:16]
    return f"{value:g} s" if recipe["kind"] == "duration" else f"{value:g}"

"""The scikit-learn pipeline that carries out a plan of columns.

How parts weigh: two columns of a block count as one standardised column, since columns of one unit are redundant; all
levels of a categorical column together count as one; all axes of a text as four.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder

from ..errors import ErrorCode, KernelweaveError
from ..kernels.checks import require_consistent
from ..kernels.scaling import BlockScaler, ColumnScaler
from ..short_text import suggest_names
from . import cells
from .base import list_names
from .clock import DAY
from .columns import ColumnPlan, min_level_rows
from .text_features import TextEncoder

__all__ = ["MAX_NUMBER", "TableReader", "column_positions", "make_encoder", "source_positions"]

Floats = NDArray[np.float64]

BLOCK_VARIANCE = 0.5  # of one column of a block
MIN_LEVEL_VARIANCE = 0.1  # assumed of a categorical column: a level on 1 % of the rows is not 10 units away
MAX_LEVELS = 30
TEXT_VARIANCE = 4.0  # of all axes of a text together
MAX_FORM = 40  # characters of a date format or a date
MAX_NUMBER = 1e150  # whose square is a double


def make_encoder(plan: ColumnPlan) -> Pipeline:
    """The pipeline, not yet fitted, that carries out a plan: frame in, float64 matrix without gaps out.

    It finds columns by name: their order is free, further ones are ignored, a missing one is an error. A level that was
    not seen in `fit` counts as a rare one. Output columns are called ``number0__age``, ``block1__pixel_3``,
    ``flag2__smoker``, ``missing3__missingindicator_age``, ``time4__start_sine``, ``text5__remark_0``,
    ``level6__city_Bonn``.
    """
    if not plan.used:
        why = "; ".join(f"{column.name!r}: {column.reason}" for column in plan.left_out)
        raise KernelweaveError(f"No column is left to learn from ({why}).", ErrorCode.NO_FEATURES)
    scaled = plan.scale != "none"
    parts: list[tuple[str, Any, list[str]]] = []

    def add(part: str, columns: list[str], fill: Any, scaler: Any) -> None:
        parts.append((f"{part}{len(parts)}", make_pipeline(fill, *([scaler] if scaled else [])), columns))

    impute = SimpleImputer(strategy="median", keep_empty_features=True)
    groups: dict[tuple[str, str], list[str]] = {}  # of a source: a block or, under "", columns scaled each by itself
    flags: dict[str, list[str]] = {}
    gaps: dict[str, list[str]] = {}
    for column in plan.used:
        if column.block or column.kind in ("numeric", "date", "duration"):
            groups.setdefault((column.source, column.block), []).append(column.name)
        elif column.kind == "boolean":
            flags.setdefault(column.source, []).append(column.name)
        if column.indicator:
            gaps.setdefault(column.source, []).append(column.name)
    for (_, block), members in groups.items():
        scaler = BlockScaler(variance=BLOCK_VARIANCE * len(members)) if block else ColumnScaler()
        add("block" if block else "number", members, impute, scaler)
    flag = ColumnScaler(min_variance=MIN_LEVEL_VARIANCE / 2)  # 0/1 varies half as much as 01/10
    for members in flags.values():
        add("flag", members, impute, flag)
    for members in gaps.values():
        add("missing", members, MissingIndicator(features="all"), flag)
    for column in plan.used:
        if column.kind == "time of day":
            parts.append((f"time{len(parts)}", DayCircle(), [column.name]))
        if column.kind == "text":
            add("text", [column.name], TextEncoder(), BlockScaler(variance=TEXT_VARIANCE))
        if column.kind == "categorical":
            levels = OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=min_level_rows(plan.n_rows),
                                   max_categories=MAX_LEVELS, sparse_output=False)  # fmt: skip
            add("level", [column.name], levels, BlockScaler(variance=1.0, min_variance=MIN_LEVEL_VARIANCE))
    recipes = [{key: getattr(column, key) for key in ("name", "kind", "form", "origin")} for column in plan.used]
    return Pipeline([("read", TableReader(recipes)), ("encode", ColumnTransformer(parts))])


def source_positions(encoder: Pipeline, plan: ColumnPlan) -> dict[str, list[int]]:
    """The output columns of each source, to build ``OnColumns(kernel, positions)`` with, from a fitted encoder.

    Sources come in the order of the table; columns of no source are under "".
    """
    source_of, encode = {column.name: column.source for column in plan.used}, encoder.named_steps["encode"]
    positions: dict[str, list[int]] = {source: [] for source in source_of.values()}
    for part, _, columns in encode.transformers_:
        if part != "remainder":
            where = encode.output_indices_[part]
            positions[source_of[columns[0]]].extend(range(where.start, where.stop))
    return positions


def column_positions(encoder: Pipeline) -> dict[str, list[int]]:
    """The output columns that each column of the table becomes: itself, where it is missing, its levels."""
    encode = encoder.named_steps["encode"]
    positions: dict[str, list[int]] = {}
    for part, _, columns in encode.transformers_:
        if part == "remainder":
            continue
        where = range(*encode.output_indices_[part].indices(encode.output_indices_[part].stop))
        is_one = len(columns) == 1  # the levels of a category are a part of their own
        for k, name in enumerate(columns):
            positions.setdefault(name, []).extend(where if is_one else [where[k]])
    return positions


class DayCircle(TransformerMixin, BaseEstimator):
    """Times of day as points of a circle, in which 23:59 is near 00:01; its centre where they are missing.

    Both coordinates together vary as much as one standardised column, if times are spread over the day.
    """

    def fit(self, frame: Any, y: Any = None) -> DayCircle:
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def transform(self, frame: Any) -> Floats:
        angles = 2 * np.pi / DAY * np.asarray(frame, dtype=np.float64)
        return np.nan_to_num(np.hstack([np.sin(angles), np.cos(angles)]))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        return np.array([f"{name}_{end}" for end in ("sine", "cosine") for name in input_features], dtype=object)


class TableReader(TransformerMixin, BaseEstimator):
    """Cells read by `recipes` (dicts of name, kind, form and origin) as numbers, NaN where missing, or as levels."""

    def __init__(self, recipes: Sequence[Mapping[str, str]]) -> None:
        self.recipes = recipes

    def check_loaded(self) -> None:
        """Refuse recipes of a file that are none, or whose forms are longer than any that cells are written in."""
        keys = {"name", "kind", "form", "origin"}
        are_texts = all(
            set(recipe) == keys and all(isinstance(text, str) for text in recipe.values()) for recipe in self.recipes
        )
        is_right = are_texts and all(len(recipe[key]) <= MAX_FORM for recipe in self.recipes for key in keys - {"name"})
        require_consistent(self, is_right, "has no recipes for columns")

    def fit(self, frame: Any, y: Any = None) -> TableReader:
        absent = [recipe["name"] for recipe in self.recipes if recipe["name"] not in frame.columns]
        if absent:
            raise KernelweaveError(
                f"The table lacks the column{'s' * (len(absent) > 1)} {list_names(absent)}; it has "
                f"{list_names(list(frame.columns))}. Give a table with all columns that the model was learned from."
                f"{suggest_names(absent, frame.columns)}",
                ErrorCode.BAD_FEATURES,
            )
        return self

    def fit_transform(self, frame: Any, y: Any = None, **_: Any) -> Any:
        """Read the columns, and keep where their numbers lie."""
        read = self.fit(frame).transform(frame)
        numbers = {name: column[np.isfinite(column)] for name, column in read.items() if column.dtype == np.float64}
        self.ranges_ = {
            name: [float(values.min()), float(values.max())] for name, values in numbers.items() if len(values)
        }
        return read

    def transform(self, frame: Any) -> Any:
        return self.read(frame)[0]

    def read(self, frame: Any) -> tuple[Any, dict[str, dict[str, int]]]:
        """The cells as numbers or levels, and the texts of each column that are read as gaps."""
        import pandas as pd

        self.fit(frame)
        cells_and_gaps = {recipe["name"]: cells.read_column(frame[recipe["name"]], **recipe) for recipe in self.recipes}
        read = {name: column for name, (column, _) in cells_and_gaps.items()}
        for name, column in read.items():
            if column.dtype == np.float64 and len(large := column[np.abs(column) > MAX_NUMBER]):
                raise KernelweaveError(
                    f"Column {name!r} holds {large[0]:g}; numbers beyond {MAX_NUMBER:g} are too large to compute with. "
                    "Correct or empty such cells, change the unit of the column, or leave it out.",
                    ErrorCode.BAD_FEATURES,
                )
        gaps = {name: texts for name, (_, texts) in cells_and_gaps.items() if texts}
        return pd.DataFrame(read, index=frame.index, copy=False), gaps

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        return np.array([recipe["name"] for recipe in self.recipes], dtype=object)

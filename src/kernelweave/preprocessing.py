"""From a table of cells to a matrix for kernels: what each column is, what is done with it, and why.

`plan_columns` reads a frame (text cells as in a CSV file, or typed columns as in Parquet) and gives every column a
kind and a sentence; `make_encoder` turns the plan into a scikit-learn pipeline. The target is never read.

**What a column is.** Blanks around a cell do not count; the markers in `MISSING` and non-finite numbers are missing
values. The first line that applies decides:

1. named as target, identifier, ignored or group, without a value, or with a single value: left out;
2. true/false, yes/no, t/f, y/n: boolean;
3. every cell a number (a decimal comma counts if no cell has a dot and not all could be thousands as in 1,234):
   numeric, unless all are digits of one width and some begin with 0 (zip codes), which makes them text (5.);
   ID-like, hence left out, are whole numbers, distinct on 99 % of the rows, that run in one direction, fill a
   regular range in any order (shuffled row numbers), or are called id, index, row...; a measurement is none of these;
4. every cell a date in one of `DATE_FORMS`: days since the earliest; left out if day and month can be exchanged;
5. text: distinct on 95 % of the rows: ID-like if it has no blanks, else free text; more than max(20, 5 % of the rows)
   distinct values, or long ones: free text; otherwise categorical: one column a level, "missing" being a level,
   levels on fewer than max(3, 1 % of the rows) merged. If all are that rare the column is left out.
Missing numbers become the median, with an indicator column where more than 5 % are missing.

**How columns are scaled** (``scale="auto"``). At least 10 numeric columns with names equal but for their digits (or all
those without such a family) whose ranges lie, 9 in 10 of them, within a factor of 4 of their median are columns of one
unit, such as pixels or spectra, and get one common shift and factor: standardising pixels blows up the empty border
(SVC on 80 of the digits: 13.8 % error, 9.6 % as a block). Every other column is standardised (wine: 2.2 %, as one
block 32 %). A column whose range exceeds 10 times the median is standardised by itself, so it cannot drown its block.
Between parts: two columns of a block count like one standardised column, since columns of one unit repeat each other;
all levels of a categorical variable together count like one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

__all__ = ["BlockScaler", "Column", "ColumnPlan", "TableReader", "make_encoder", "plan_columns", "source_positions"]

Floats = NDArray[np.float64]

MISSING = ("", "na", "n/a", "nan", "<na>", "nat", "null", "none", "?", "-", "inf", "+inf", "-inf")  # in lower case
BOOLEANS = ({"true": 1.0, "false": 0.0}, {"yes": 1.0, "no": 0.0}, {"t": 1.0, "f": 0.0}, {"y": 1.0, "n": 0.0})
DAYS = ("%Y/%m/%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%d %b %Y", "%d %B %Y", "%d-%b-%Y",
        "%b %d, %Y", "%B %d, %Y")  # fmt: skip
DATE_FORMS = ("ISO8601", *(day + time for day in DAYS for time in ("", " %H:%M", " %H:%M:%S")))
ID_NAME = re.compile(r"(.*[_\s.-])?(id|ids|uuid|guid|index|idx|row|row_?num(ber)?|unnamed: \d+)|\w*[a-z]I[Dd]")
MISSING_LEVEL = "(missing)"

INDICATOR_SHARE = 0.05  # of missing cells, above which their absence is a column of its own
N_FOR_ORDER = 8  # fewer whole numbers are in order by chance: 2/8! = 5e-5
BLOCK_MIN_COLUMNS, BLOCK_FACTOR, BLOCK_SHARE, BLOCK_OUTLIER = 10, 4.0, 0.9, 10.0
BLOCK_VARIANCE = 0.5  # of one column of a block; module docstring, "Between parts"
LEVEL_VARIANCE = 0.1  # least variance taken for granted: a level on 1 % of the rows is not 10 units away
MAX_LEVELS = 30
SECONDS = 86_400  # of a day
LARGEST = 1e150  # number whose square is one
SCALES = ("auto", "block", "column", "none")


@dataclass(frozen=True)
class Column:
    """What is done with one column of the table, and why, in words for the user."""

    name: str
    kind: str  # "numeric", "boolean", "date", "categorical" or "left out"
    reason: str
    source: str = ""  # "": none
    block: str = ""  # that it is scaled with; "": scaled by itself
    form: str = ""  # of the cells: a date format, or "," for a decimal comma
    origin: str = ""  # the date that is day 0
    indicator: bool = False  # whether a further column tells where it is missing


@dataclass(frozen=True)
class ColumnPlan:
    """What is done with every column, in the order of the table: the frozen result of `plan_columns`."""

    columns: tuple[Column, ...]
    scale: str  # as asked for
    n_rows: int

    @property
    def used(self) -> tuple[Column, ...]:
        """The columns that are learned from."""
        return tuple(column for column in self.columns if column.kind != "left out")

    @property
    def left_out(self) -> tuple[Column, ...]:
        """The other columns, each with its reason."""
        return tuple(column for column in self.columns if column.kind == "left out")

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain data, fit for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> ColumnPlan:
        """The plan that `to_dict` wrote."""
        return cls(tuple(Column(**column) for column in plain["columns"]), plain["scale"], plain["n_rows"])


def plan_columns(
    frame: Any,
    *,
    target: str,
    id_columns: Iterable[str] = (),
    ignore: Iterable[str] = (),
    group: str | None = None,
    keep: Iterable[str] = (),
    sources: Mapping[str, Sequence[str]] | None = None,
    scale: str = "auto",
) -> ColumnPlan:
    """A kind, a scaling and a reason for each column of a table, by the rules at the top of this module.

    Parameters
    ----------
    frame : pandas.DataFrame
        The table, labelled and unlabelled rows together.
    target, group, id_columns, ignore : str, and iterables of str
        Columns to leave out: what to predict, what cross-validation groups by, identifiers, others. They are not read.
    keep : iterable of str
        Columns to use even if they look like an identifier or free text.
    sources : mapping of str to sequence of str, optional
        For each source the names of its columns, or patterns such as ``gene_*``. Blocks do not cross sources.
    scale : {"auto", "block", "column", "none"}
        "auto": see the top of this module; "block": all numeric columns of a source have one unit; "column": each is
        standardised; "none": numbers stay as they are.

    Examples
    --------
    >>> import pandas as pd
    >>> from kernelweave.preprocessing import make_encoder, plan_columns
    >>> frame = pd.DataFrame({"row": list("12345"), "length": ["1.5", "2.5", "", "1.1", "0.7"], "y": list("ab  a")})
    >>> plan = plan_columns(frame, target="y")
    >>> [(column.name, column.kind) for column in plan.columns]
    [('row', 'left out'), ('length', 'numeric'), ('y', 'left out')]
    >>> make_encoder(plan).fit_transform(frame).shape
    (5, 2)
    """
    if scale not in SCALES:
        raise ValueError(f"scale must be one of {', '.join(SCALES)}; got {scale!r}.")
    names = list(frame.columns)
    for name in frame.columns[frame.columns.duplicated()]:
        raise ValueError(f"The table has more than one column called {name!r}. Rename them.")
    named = {target: "the target"}
    for words, chosen in (("named as an identifier", id_columns), ("ignored on request", ignore),
                          ("the groups of cross-validation", () if group is None else (group,))):  # fmt: skip
        named.update({name: words for name in chosen if name != target})
    keep = set(keep)
    absent = [name for name in (*named, *keep) if name not in names]
    if absent:
        raise ValueError(f"The table has no column {_listed(absent)}; it has {_listed(names)}.")
    source_of = _sources(names, sources or {})
    columns, ranges = [], {}
    for name in names:
        if name in named:
            column = Column(name, "left out", named[name])
        else:
            column, ranges[name] = _describe(name, frame[name], forced=name in keep)
        columns.append(replace(column, source=source_of[name]))
    block_of = _blocks(columns, ranges, scale)
    return ColumnPlan(tuple(replace(c, block=block_of.get(c.name, "")) for c in columns), scale, len(frame))


def make_encoder(plan: ColumnPlan) -> Pipeline:
    """The pipeline, not yet fitted, that carries out a plan: frame in, float64 matrix without gaps out.

    It finds columns by name: their order is free, further ones are ignored, a missing one is an error. A level that was
    not seen in `fit` counts as a rare one. Output columns are called ``number0__age``, ``block1__pixel_3``,
    ``flag2__smoker``, ``level3__city_Bonn``, ``missing4__age``.
    """
    if not plan.used:
        why = "; ".join(f"{column.name!r}: {column.reason}" for column in plan.left_out)
        raise ValueError(f"No column is left to learn from ({why}). Name columns to use with keep.")
    scaled = plan.scale != "none"
    parts: list[tuple[str, Any, list[str]]] = []

    def add(part: str, columns: list[str], *steps: Any) -> None:
        parts.append((f"{part}{len(parts)}", make_pipeline(*steps), columns))

    impute = SimpleImputer(strategy="median", keep_empty_features=True)
    groups: dict[tuple[str, str], list[str]] = {}  # a block or, under "", the columns scaled each by itself
    for column in plan.used:
        if column.block or column.kind in ("numeric", "date"):
            groups.setdefault((column.source, column.block), []).append(column.name)
    for (_, block), members in groups.items():
        scaler = BlockScaler(variance=BLOCK_VARIANCE * len(members)) if block else StandardScaler()
        add("block" if block else "number", members, impute, *([scaler] if scaled else []))
    flag = [BlockScaler(variance=1.0, least=LEVEL_VARIANCE / 2)] if scaled else []  # 0/1 varies half as much as 01/10
    for column in plan.used:
        if column.kind == "categorical":
            levels = OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=_rare(plan.n_rows),
                                   max_categories=MAX_LEVELS, sparse_output=False)  # fmt: skip
            add("level", [column.name], levels, *([BlockScaler(variance=1.0, least=LEVEL_VARIANCE)] if scaled else []))
        elif column.kind == "boolean" and not column.block:
            add("flag", [column.name], impute, *flag)
        if column.indicator:
            add("missing", [column.name], MissingIndicator(features="all"), *flag)
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


class TableReader(TransformerMixin, BaseEstimator):
    """Cells read by `recipes` (dicts of name, kind, form and origin) as numbers, NaN where missing, or as levels."""

    def __init__(self, recipes: Sequence[Mapping[str, str]]) -> None:
        self.recipes = recipes

    def fit(self, frame: Any, y: Any = None) -> TableReader:
        absent = [recipe["name"] for recipe in self.recipes if recipe["name"] not in frame.columns]
        if absent:
            has = f"it has {_listed(list(frame.columns))}. Pass a table with all columns that the encoder was made for."
            raise ValueError(f"The table lacks the column{'s' * (len(absent) > 1)} {_listed(absent)}; {has}")
        return self

    def transform(self, frame: Any) -> Any:
        import pandas as pd

        self.fit(frame)
        read = {recipe["name"]: _read(frame[recipe["name"]], **recipe) for recipe in self.recipes}
        for name, cells in read.items():
            if cells.dtype == np.float64 and len(large := cells[np.abs(cells) > LARGEST]):
                why = f"numbers beyond {LARGEST:g} cannot be squared. Correct or empty such cells"
                raise ValueError(f"Column {name!r} holds {large[0]:g}; {why}, change its unit, or leave it out.")
        return pd.DataFrame(read, index=frame.index, copy=False)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        return np.array([recipe["name"] for recipe in self.recipes], dtype=object)


class BlockScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Columns of one unit, with one shift and one factor for all, such that their variances add up to `variance`.

    Variances that add up to less than `least` count as `least`, which keeps rare values from being blown up.
    """

    def __init__(self, variance: float = 1.0, least: float = 0.0) -> None:
        self.variance = variance
        self.least = least

    def fit(self, X: ArrayLike, y: Any = None) -> BlockScaler:
        X = np.asarray(X, dtype=np.float64)
        self.n_features_in_, self.mean_ = X.shape[1], float(X.mean())
        spread = max(float(X.var(axis=0).sum()), self.least)
        self.scale_ = math.sqrt(spread / self.variance) if spread > 0 else 1.0
        return self

    def transform(self, X: ArrayLike) -> Floats:
        return (np.asarray(X, dtype=np.float64) - self.mean_) / self.scale_


def _describe(name: str, series: Any, forced: bool) -> tuple[Column, float]:
    """The column by the lines of the module docstring, and its range if it is numeric."""

    def out(reason: str) -> tuple[Column, float]:
        return Column(name, "left out", reason), math.nan

    kind, form, values = "numeric", "", _numbers(series)
    if values is None or (hasattr(series, "str") and _zero_padded(series[~np.isnan(values)])):
        try:
            codes, levels = _levels(series)
        except TypeError:  # unhashable
            return out("cells that are lists or the like")
        kind, form, found = _kind_of_levels(levels)
        values = np.append(np.arange(len(levels)) if found is None else found, np.nan)[codes]
    present = values[~np.isnan(values)]
    n_distinct, share_missing = len(np.unique(present)), 1 - len(present) / max(1, len(values))
    if n_distinct == 0:
        return out("no value in any row")
    if n_distinct == 1 and share_missing > INDICATOR_SHARE and len(values) - len(present) >= _rare(len(values)):
        return Column(name, "categorical", "one value or none"), math.nan
    if n_distinct == 1 or kind == "ambiguous":
        return out("constant" if n_distinct == 1 else "dates whose day and month cannot be told apart")
    if kind == "text":
        counts = np.bincount(codes[codes >= 0], minlength=len(levels))
        objection, about = _objection_to_text(levels, counts, len(series))
        if objection and not forced:
            return out(f"{objection} ({about})")
        return Column(name, "categorical", about), math.nan
    if kind == "numeric" and not forced and (objection := _objection_to_numbers(name, present)):
        return out(objection)
    reason = {"numeric": "numbers", "date": "dates", "boolean": "two values"}[kind]
    reason += f", {100 * share_missing:.2g} % missing" if share_missing else ""
    origin = str(np.datetime64(math.floor(present.min() * SECONDS), "s")) if kind == "date" else ""
    indicator = share_missing > INDICATOR_SHARE
    return Column(name, kind, reason, form=form, origin=origin, indicator=indicator), float(np.ptp(present))


def _numbers(series: Any) -> Floats | None:
    """The column as float64 if it is numeric, or text in which every cell is a number or missing; else None."""
    import pandas as pd

    kinds = pd.api.types
    if kinds.is_numeric_dtype(series.dtype) and not kinds.is_bool_dtype(series.dtype):
        return _finite(series)
    if not (isinstance(series.dtype, pd.StringDtype) or kinds.infer_dtype(series) == "string"):
        return None
    for part in (series[:1000], series):  # most text shows at the top what it is
        values = _as_numbers(part, "")
        strange = pd.Series(part[np.isnan(values)].unique(), dtype=object).dropna()
        if not strange.str.strip().str.lower().isin(MISSING).all():
            return None
    return values


def _zero_padded(text: Any) -> bool:
    """Whether all are digits of one width and some begin with 0."""
    text = text.str.strip()
    alike = len(text) > 0 and bool((text.str.len() == max(2, len(text.iloc[0]))).all())
    return alike and bool(text.str.isdigit().all() and text.str.startswith("0").any())


def _finite(series: Any) -> Floats:
    """A numeric column as float64, NaN where it is missing or infinite."""
    values = series.to_numpy(dtype=np.float64, na_value=np.nan, copy=True)
    values[np.isinf(values)] = np.nan
    return values


def _levels(series: Any) -> tuple[NDArray[np.intp], Any]:
    """Distinct stripped texts of a column, and for each row the number of its text, -1 where it is missing."""
    import pandas as pd

    codes, found = pd.factorize(series)
    text = pd.Series(found).astype(object).astype(str).str.strip()
    numbers, levels = pd.factorize(text.where(~text.str.lower().isin(MISSING)))
    return np.append(numbers, -1)[codes], pd.Series(levels, dtype=text.dtype)


def _kind_of_levels(levels: Any) -> tuple[str, str, Floats | None]:
    """The kind of a text column, how its cells are to be read, and the number that each level stands for."""
    for words in BOOLEANS if 0 < len(levels) <= 4 else ():
        found = levels.str.lower().map(words).to_numpy(dtype=np.float64)
        if not np.isnan(found).any():
            return "boolean", "", found
    if not levels[:50].str.contains(r"\d").all() or _zero_padded(levels):
        return "text", "", None

    def readable(read: Callable[[Any, str], Floats], forms: Iterable[str]) -> list[tuple[str, Floats]]:
        forms = [form for form in forms if not np.isnan(read(levels[:50], form)).any()]
        return [(form, values) for form in forms if not np.isnan(values := read(levels, form)).any()]

    for form, values in readable(_as_numbers, ("", ",")):
        return "numeric", form, values
    dates = readable(_as_days, DATE_FORMS)
    if any((days != dates[0][1]).any() for _, days in dates):
        return "ambiguous", "", None
    return ("date", *dates[0]) if dates else ("text", "", None)


def _as_numbers(levels: Any, form: str) -> Floats:
    """The number that each text stands for; NaN if it is none."""
    import pandas as pd

    if form == ",":
        commas = levels[levels.str.contains(",", regex=False)]
        if levels.str.contains(".", regex=False).any() or commas.str.fullmatch(r"[+-]?[1-9]\d{0,2},\d{3}").all():
            return np.full(len(levels), np.nan)
        levels = levels.str.replace(",", ".", n=1, regex=False)
    return _finite(pd.to_numeric(levels, errors="coerce"))


def _as_days(levels: Any, form: str) -> Floats:
    """Days since 1970 that each text stands for; NaN if it is not a date of that form."""
    import pandas as pd

    dates = pd.to_datetime(levels, format=form, errors="coerce", utc=True).dt.tz_localize(None)
    instants = dates.to_numpy().astype("datetime64[us]")  # in nanoseconds the year 9999 would not fit
    return np.where(np.isnat(instants), np.nan, instants.astype(np.int64) / (1e6 * SECONDS))


def _objection_to_numbers(name: str, present: Floats) -> str:
    """Why these numbers identify a row rather than describe it; "" if they do not."""
    n = len(present)
    if n < 5 or (present != np.floor(present)).any() or np.abs(present).max() >= 2.0**62:
        return ""
    distinct, steps = np.unique(present).astype(np.int64), np.diff(present)
    if len(distinct) < 0.99 * n:
        return ""
    if n >= N_FOR_ORDER and ((steps >= 0).all() or (steps <= 0).all()):
        return "ID-like: whole numbers that count through the rows"
    spacing = int(np.gcd.reduce(np.diff(distinct)))
    if (distinct[-1] - distinct[0]) // spacing < 1.05 * n:
        return "ID-like: the numbers of a regular range, one for each row"
    if ID_NAME.fullmatch(name) or ID_NAME.fullmatch(name.lower()):
        return "ID-like: by its name, and another whole number in each row"
    return ""


def _rare(n_rows: int) -> int:
    """Levels on fewer rows are merged."""
    return max(3, math.ceil(0.01 * n_rows))


def _objection_to_text(levels: Any, counts: NDArray[np.intp], n_rows: int) -> tuple[str, str]:
    """Why this text is of no use, "" if it is, and a description."""
    n, n_present, least = len(levels), int(counts.sum()), _rare(n_rows)
    n_rare = int((counts < least).sum())
    about = f"{n} distinct values"
    numbers = ~np.isnan(_as_numbers(levels, ""))
    share = counts[numbers].sum() / n_present
    if not numbers.all() and share >= 0.95:
        about += f"; {100 * share:.3g} % of the cells are numbers, but not {levels[~numbers].iloc[0]!r:.30}"
    blanks = levels.str.contains(r"\s", regex=True).mean() > 0.05
    if n_present >= 5 and n >= 0.95 * n_present:
        return ("free text" if blanks else "ID-like: codes, one for each row"), about
    if n > max(20, 0.05 * n_rows) or (n > 10 and np.average(levels.str.len(), weights=counts) > 50):
        return ("free text" if blanks else "too many levels"), about
    if n_rare == n:
        return f"no value on {least} rows or more", about
    return "", about + (f", {n_rare} rare ones merged" if n_rare > 1 else "")


def _sources(names: Sequence[str], sources: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The source of each column, "" if none claims it."""
    source_of = dict.fromkeys(names, "")
    for source, patterns in sources.items():
        for pattern in patterns:
            claimed = [pattern] if pattern in source_of else [name for name in names if fnmatchcase(name, pattern)]
            if not claimed:
                raise ValueError(f"Source {source!r}: no column is called {pattern!r}; there are {_listed(names)}.")
            for name in claimed:
                if source_of[name] not in ("", source):
                    raise ValueError(f"Column {name!r} is claimed by the sources {source_of[name]!r} and {source!r}.")
                source_of[name] = source
    return source_of


def _blocks(columns: Sequence[Column], ranges: Mapping[str, float], scale: str) -> dict[str, str]:
    """The block of each column that has one."""
    if scale in ("column", "none"):
        return {}
    families: dict[tuple[str, str], list[str]] = {}
    for column in columns:
        if column.kind in ("numeric", "boolean"):
            stem = "all numbers" if scale == "block" else re.sub(r"[\d.]+", "*", column.name)
            families.setdefault((column.source, stem), []).append(column.name)
    if scale == "block":
        return {name: stem for (_, stem), members in families.items() for name in members}
    for source, stem in list(families):
        if len(families[source, stem]) < BLOCK_MIN_COLUMNS:
            families.setdefault((source, ""), []).extend(families.pop((source, stem)))
    block_of = {}
    for (_, stem), members in families.items():
        spans = np.array([ranges[name] for name in members])
        middle = np.median(spans)
        near = (spans / BLOCK_FACTOR <= middle) & (spans >= middle / BLOCK_FACTOR)
        if len(members) >= BLOCK_MIN_COLUMNS and near.mean() >= BLOCK_SHARE:
            block_of.update({name: stem or "numbers" for name in members if ranges[name] / BLOCK_OUTLIER <= middle})
    return block_of


def _read(series: Any, name: str, kind: str, form: str, origin: str) -> Any:
    """The cells of one column as float64 with NaN or, if it is categorical, as text."""
    if kind in ("numeric", "boolean") and (numbers := _numbers(series)) is not None:
        return numbers
    codes, levels = _levels(series)
    if kind == "categorical":
        return np.append(levels.to_numpy(dtype=object), MISSING_LEVEL)[codes]
    if kind == "boolean":
        words = {word: value for pair in (*BOOLEANS, {"1": 1.0, "0": 0.0}) for word, value in pair.items()}
        found = levels.str.lower().map(words).to_numpy(dtype=np.float64)
    else:
        found = _as_days(levels, form) if kind == "date" else _as_numbers(levels, form)
    if np.isnan(found).any():
        now = f"but now holds {levels[np.isnan(found)].iloc[0]!r:.40}. Correct that cell or empty it."
        raise ValueError(f"Column {name!r} was read as {kind} when the encoder was made, {now}")
    if kind == "date":
        found = found - np.datetime64(origin, "s").astype(np.int64) / SECONDS
    return np.append(found, np.nan)[codes]


def _listed(names: Sequence[Any], limit: int = 8) -> str:
    shown = ", ".join(repr(name) for name in names[:limit])
    return shown if len(names) <= limit else f"{shown}, ... ({len(names)} in all)"

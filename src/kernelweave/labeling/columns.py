"""What each column of a table is, how it is used, and why.

`plan_columns` reads a frame (text cells as in a CSV file, or typed columns as in Parquet) and gives every column a
kind and a sentence. The target is never read.

**What a column is.** The first line that applies decides; ``cells`` says what a missing value and a number are:

1. named as target, identifier, ignored or group, without a value, or with a single value: left out;
2. true/false, yes/no, t/f, y/n: boolean;
3. every cell a number but for a few gaps (see ``gaps``), all written in one form, which may have a decimal comma,
   marks between thousands, a currency or a unit (see ``number_forms``): numeric, unless all are digits of one width
   and some begin with 0 (zip codes), which makes them text (6.);
   ID-like, hence left out, are whole numbers of which a tenth or more have digits that doubles do not hold, and those,
   distinct on 99 % of the rows, that fill a regular range in any order (row numbers, shuffled or not), or are called
   id, index, row...; a measurement is none of these, also where the table is sorted by it, and what has a unit is one.
   Left out as well are numbers whose standard deviation is below 4 units in the last place of the largest: the rounding
   of each is then 0.5 % of their variance or more;
4. every cell a date in one of `cells.DATE_FORMS`: days since the earliest; left out if day and month can be exchanged;
5. every cell a time of day, which becomes a point of a circle, or a duration, in seconds (see ``clock``);
6. text: distinct on 95 % of the rows: ID-like if it has no blanks, else free text; more than max(20, 5 % of the rows)
   distinct values, or long ones: free text. Free text is used if it helps (see ``text_choice``). All else is
   categorical: one column a level, "missing" being a level, levels on fewer than max(3, 1 % of the rows) merged; if
   all are that rare the column is left out. The reason says so if text is numbers but for signs or units in some cells;
   such columns are left out.
Missing numbers become the median, with an indicator column where more than 5 % are missing.

**How columns are scaled** (``scale="auto"``). At least 10 numeric columns with names equal but for their digits (or all
those without such a family) whose ranges lie, 9 in 10 of them, within a factor of 4 of their median are columns of one
unit, such as pixels or spectra, and get one common shift and factor: standardising pixels enlarges the empty border
(SVC on 80 of the digits: 13.8 % error, 9.6 % as a block). Every other column is standardised (wine: 2.2 %, as one
block 32 %). A column whose range exceeds 10 times the median is standardised by itself, so that it does not dominate
its block; so is one whose centre is 100 such ranges from those of the others: the common shift would leave it so far
from zero that squared distances lose their digits.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import ErrorCode, KernelweaveError
from ..short_text import suggest_names
from . import cells
from .base import list_names, match_names, no_such_column
from .clock import DAY
from .gaps import count_gaps, count_rare_words, describe_others
from .number_forms import describe_form, describe_signs, unit_of
from .numbers import Floats

__all__ = ["Column", "ColumnPlan", "min_level_rows", "plan_columns"]

ID_NAME = re.compile(r"(.*[_\s.-])?(id|ids|uuid|guid|index|idx|row|row_?num(ber)?|unnamed: \d+)|\w*[a-z]I[Dd]")
MAX_SHARE_IMPUTED = 0.05  # of missing cells, above which a further column tells where they are
MIN_SHARE_INEXACT = 0.1  # of whole numbers that doubles do not hold; among codes just above 2^53 it is a half
MIN_STD_ULPS = 4.0  # standard deviation in units in the last place; below it numbers differ by rounding only
# Of a block: columns; ratio of a range to the median range, and the share of columns within it; and, in median ranges,
# the range and the distance from the common centre beyond which a column is standardised by itself.
MIN_BLOCK_COLUMNS, MAX_RANGE_RATIO, MIN_SHARE_ALIKE, MAX_BLOCK_RANGE, MAX_BLOCK_SHIFT = 10, 4.0, 0.9, 10.0, 100.0
KINDS = {
    "numeric": "numbers",
    "boolean": "two values",
    "date": "dates",
    "time of day": "times of day",
    "duration": "durations",
}
FREE_TEXT = ("free text", "too many distinct texts")
MAX_TEXTS = 20  # columns of text, each of which takes up to a second
SCALES = ("auto", "block", "column", "none")


@dataclass(frozen=True)
class Column:
    """How one column of the table is used, and why, in words for the user."""

    name: str
    kind: str  # one of `KINDS`, "categorical", "text" or "left out"
    reason: str
    source: str = ""  # "": none
    block: str = ""  # that it is scaled with; "": scaled by itself
    form: str = ""  # of the cells: a date format, or how numbers or durations are written
    origin: str = ""  # the date that is day 0
    indicator: bool = False  # whether a further column tells where it is missing
    gaps: dict[str, int] = field(default_factory=dict)  # texts that are read as missing numbers, and how many cells

    @property
    def written(self) -> str:
        """How its numbers are written, in words; "" if plainly."""
        return describe_form(self.form) if self.kind == "numeric" else ""


@dataclass(frozen=True)
class ColumnPlan:
    """How every column is used, in the order of the table: the frozen result of `plan_columns`."""

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
    appended: Iterable[str] = (),
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
    appended : iterable of str
        Columns to leave out because an earlier run made them from its labels.
    sources : mapping of str to sequence of str, optional
        For each source the names of its columns, or patterns such as ``gene_*``. Blocks do not cross sources.
    scale : {"auto", "block", "column", "none"}
        "auto": see the top of this module; "block": all numeric columns of a source have one unit; "column": each is
        standardised; "none": numbers stay as they are.

    Examples
    --------
    >>> import pandas as pd
    >>> from kernelweave.labeling.columns import plan_columns
    >>> from kernelweave.labeling.encoder import make_encoder
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
        raise KernelweaveError(f"The table has more than one column {name!r}; rename all but one.", ErrorCode.BAD_NAMES)
    named = {target: "the target"}
    for words, chosen in (("appended with the labels of an earlier run", appended),
                          ("named as an identifier", id_columns), ("ignored on request", ignore),
                          ("the groups of cross-validation", () if group is None else (group,))):  # fmt: skip
        named.update({name: words for name in chosen if name != target})
    keep = set(keep)
    absent = [name for name in (*named, *keep) if name not in names]
    if absent:
        raise no_such_column("The table", absent, names)
    source_of = _assign_sources(names, sources or {})
    columns, spreads = [], {}
    for name in names:
        if name in named:
            column = Column(name, "left out", named[name])
        else:
            column, spreads[name] = _describe_column(name, frame[name], forced=name in keep)
        columns.append(replace(column, source=source_of[name]))
    texts = [k for k, column in enumerate(columns) if column.kind == "text"]
    for k in sorted(texts, key=names.__getitem__)[MAX_TEXTS:]:  # whatever the order of the columns
        reason = f"{columns[k].reason}: only {MAX_TEXTS} columns of text are tested, the first by name"
        columns[k] = replace(columns[k], kind="left out", reason=reason)
    block_of = _assign_blocks(columns, spreads, scale)
    return ColumnPlan(tuple(replace(c, block=block_of.get(c.name, "")) for c in columns), scale, len(frame))


class Spread(NamedTuple):
    """Where the numbers of a column lie."""

    center: float = math.nan
    range: float = math.nan


def _describe_column(name: str, series: Any, forced: bool) -> tuple[Column, Spread]:
    """The column by the lines of the module docstring, and where its numbers lie if it has any."""

    def leave_out(reason: str) -> tuple[Column, Spread]:
        return Column(name, "left out", reason), Spread()

    kind, form, gaps, values = "numeric", "", {}, cells.read_numbers(series)
    if values is None or cells.holds_codes(series, values):
        try:
            levels, codes = cells.factorize_texts(series)
        except TypeError:  # unhashable
            return leave_out("cells are lists or other objects")
        counts = np.bincount(codes[codes >= 0], minlength=len(levels))
        kind, form, numbers = cells.find_kind(levels, counts)
        gaps = {} if numbers is None else count_gaps(levels, counts, numbers)
        values = np.append(np.arange(len(levels)) if numbers is None else numbers, np.nan)[codes]
    present = values[~np.isnan(values)]
    distinct, share_missing = np.unique(present), 1 - len(present) / max(1, len(values))
    n_distinct = len(distinct)
    if n_distinct == 0:
        return leave_out("no value in any row")
    lost = cells.share_inexact(series, values) if kind == "numeric" and not forced else 0.0
    if lost >= MIN_SHARE_INEXACT and series[~np.isnan(values)].nunique() > 1:
        return leave_out("ID-like: whole numbers with more digits than a double can hold")
    if (
        n_distinct == 1
        and share_missing > MAX_SHARE_IMPUTED
        and len(values) - len(present) >= min_level_rows(len(values))
    ):
        return Column(name, "categorical", "one value, or missing"), Spread()
    if n_distinct == 1 or kind == "ambiguous":
        return leave_out("constant" if n_distinct == 1 else "ambiguous dates: day and month cannot be told apart")
    if kind == "text":
        objection, about = _find_objection_to_text(levels, counts, len(series))
        if objection in FREE_TEXT:
            return Column(name, "text", f"{objection} ({about})"), Spread()
        if objection and not forced:
            return leave_out(f"{objection} ({about})")
        return Column(name, "categorical", about), Spread()
    if kind == "numeric" and not (forced or unit_of(form)) and (objection := _find_objection_to_numbers(name, present)):
        return leave_out(objection)
    gaps = gaps | count_rare_words(series[np.isnan(values)], len(values))
    origin = str(np.datetime64(math.floor(present.min() * DAY), "s")) if kind == "date" else ""
    is_rare = share_missing <= MAX_SHARE_IMPUTED
    column = Column(name, kind, KINDS[kind], form=form, origin=origin, indicator=not is_rare, gaps=gaps)
    reason = f"{column.reason} ({column.written})" if column.written else column.reason
    reason += f", {100 * share_missing:.2g} % missing" if share_missing else ""
    return replace(column, reason=reason), Spread(float(distinct[n_distinct // 2]), float(np.ptp(distinct)))


def _find_objection_to_numbers(name: str, present: Floats) -> str:
    """Why these numbers do not describe a row; "" if they do."""
    mantissas = np.ldexp(present, -int(np.frexp(np.abs(present).max())[1]))  # within [-1, 1], and as exact
    if (mantissas - mantissas[0]).std() < MIN_STD_ULPS * 2.0**-53:
        return f"constant up to the rounding of numbers near {present[0]:.3g}"
    n = len(present)
    if n < 5 or (present != np.floor(present)).any() or np.abs(present).max() >= 2.0**62:
        return ""
    distinct = np.unique(present).astype(np.int64)
    if len(distinct) < 0.99 * n:
        return ""
    spacing = int(np.gcd.reduce(np.diff(distinct)))
    if (distinct[-1] - distinct[0]) // spacing < 1.05 * n:
        return "ID-like: whole numbers of a regular range, one per row"
    if ID_NAME.fullmatch(name) or ID_NAME.fullmatch(name.lower()):
        return "ID-like: by its name, with a different whole number in each row"
    return ""


def min_level_rows(n_rows: int) -> int:
    """Return the number of rows below which levels are merged."""
    return max(3, math.ceil(0.01 * n_rows))


def _find_objection_to_text(levels: Sequence[str], counts: NDArray[np.intp], n_rows: int) -> tuple[str, str]:
    """Why this text is not used, "" if it is, and a description of it."""
    n, n_present, min_rows = len(levels), int(counts.sum()), min_level_rows(n_rows)
    n_rare = int((counts < min_rows).sum())
    about = f"{n} distinct values"
    blanks = sum(re.search(r"\s", level) is not None for level in levels) > 0.05 * n
    objection = ""
    if n_present >= 5 and n >= 0.95 * n_present:
        objection = "free text" if blanks else "ID-like: a different code in each row"
    elif n > max(20, 0.05 * n_rows) or (n > 10 and np.average([*map(len, levels)], weights=counts) > 50):
        objection = "free text" if blanks else "too many distinct texts"
    elif n_rare == n:
        objection = f"no value occurs in {min_rows} rows or more"
    if objection in FREE_TEXT:
        return describe_signs(levels, counts) or objection, about
    if objection:
        return describe_signs(levels, counts) or describe_others(levels, counts) or objection, about
    return "", about + (f", {n_rare} rare values merged" if n_rare > 1 else "")


def _assign_sources(names: Sequence[str], sources: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The source of each column, "" if it is in none."""
    source_of = dict.fromkeys(names, "")
    for source, patterns in sources.items():
        for pattern in patterns:
            matching = match_names(pattern, names)
            if not matching:
                message = (
                    f"Source {source!r} names {pattern!r}, which the table does not have; it has {list_names(names)}."
                    f"{suggest_names([pattern], names)}"
                )
                raise KernelweaveError(message, ErrorCode.BAD_SOURCE)
            for name in matching:
                if source_of[name] not in ("", source):
                    message = (
                        f"Column {name!r} is in two sources, {source_of[name]!r} and {source!r}; name it in one only."
                    )
                    raise KernelweaveError(message, ErrorCode.BAD_SOURCE)
                source_of[name] = source
    return source_of


def _assign_blocks(columns: Sequence[Column], spreads: Mapping[str, Spread], scale: str) -> dict[str, str]:
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
        if len(families[source, stem]) < MIN_BLOCK_COLUMNS:
            families.setdefault((source, ""), []).extend(families.pop((source, stem)))
    block_of = {}
    for (_, stem), members in families.items():
        centers, spans = np.array([spreads[name] for name in members]).T
        middle = np.median(spans)
        near = (spans / MAX_RANGE_RATIO <= middle) & (spans >= middle / MAX_RANGE_RATIO)
        if len(members) >= MIN_BLOCK_COLUMNS and near.mean() >= MIN_SHARE_ALIKE:
            fits = (spans / MAX_BLOCK_RANGE <= middle) & (
                np.abs(centers - np.median(centers)) / MAX_BLOCK_SHIFT <= middle
            )
            block_of.update({name: stem or "numbers" for name, fit in zip(members, fits, strict=True) if fit})
    return block_of

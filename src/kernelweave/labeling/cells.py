r"""The cells of one column as numbers, days or levels, whether they are text as in a CSV file or typed as in Parquet.

Blanks around a cell do not count; the texts in `kernelweave.labels.MISSING` and non-finite numbers are missing values.
``numbers`` says what a number is.

A double holds every whole number up to :math:`2^{53}`; of those in :math:`[2^{52+k}, 2^{53+k})`, the multiples of
:math:`2^k` only. A measurement of that size has zeros at its end and is most often held; the number of a SIM card or a
hash is not, and two of them may become one. `share_inexact` tells these apart.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ErrorCode, KernelweaveError
from ..labels import MISSING
from .numbers import GROUPED_DIGITS, Floats, are_codes, find_decimal_mark, parse_numbers

__all__ = [
    "describe_signs",
    "factorize_texts",
    "find_kind",
    "holds_codes",
    "parse_days",
    "read_column",
    "read_numbers",
    "share_inexact",
]

BOOLEANS = ({"true": 1.0, "false": 0.0}, {"yes": 1.0, "no": 0.0}, {"t": 1.0, "f": 0.0}, {"y": 1.0, "n": 0.0})
DAYS = ("%Y/%m/%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%d %b %Y", "%d %B %Y", "%d-%b-%Y",
        "%b %d, %Y", "%B %d, %Y")  # fmt: skip
DATE_FORMS = ("ISO8601", *(day + time for day in DAYS for time in ("", " %H:%M", " %H:%M:%S")))
YEAR = re.compile(r"\d{4}")  # all these forms have one; to look for it is faster than to try 34 forms
MISSING_LEVEL = "(missing)"
SECONDS_PER_DAY = 86_400
NANOSECOND_YEARS = (1678, 2261)  # first and last whole year within 2**63 nanoseconds of 1970
N_HEAD, N_FEW = 1000, 50  # first cells or levels, which are read before all others: most text shows there what it is
MAX_EXACT = 2.0**53  # up to which doubles hold every whole number; the first they do not hold is rounded to it

CURRENCIES = ("€", "$", "£", "¥", "₹", "EUR", "USD", "GBP", "CHF", "JPY")
SIGNED = re.compile(
    rf"""(?P<comparison>[<>]=?|[≤≥~≈])?\s*[+-]?
    (?P<currency>{"|".join(map(re.escape, CURRENCIES))})?\s*[+-]?
    (?:(?P<thousands>{GROUPED_DIGITS})|\d+)?(?:[.,]\d+)?(?<=\d)(?:[eE][+-]?\d+)?
    \s*(?P<unit>(?:[^\W\d_]|[%‰°€$£¥₹])[^\s,;:]{{0,11}})?""",
    re.VERBOSE,
)
MIN_SHARE_SIGNED = 0.9  # of the cells that are numbers but for signs
MAX_UNITS = 3  # codes have more different endings than measurements


def read_numbers(series: Any) -> Floats | None:
    """The column as float64 if it is numeric, or text in which every cell is a number or missing; else None."""
    import pandas as pd

    kinds = pd.api.types
    if kinds.is_numeric_dtype(series.dtype) and not kinds.is_bool_dtype(series.dtype):
        values = series.to_numpy(dtype=np.float64, na_value=np.nan, copy=True)
        values[np.isinf(values)] = np.nan
        return values
    texts = _read_texts(series)
    if texts is None:
        return None
    for part in (texts[:N_HEAD], texts) if len(texts) > N_HEAD else (texts,):
        values = parse_numbers(part)
        if not all(_is_missing(text) for text in {part[row] for row in np.flatnonzero(np.isnan(values))}):
            return None
    return values


def _read_texts(series: Any) -> list[str] | None:
    """The cells if all are text or missing, which becomes ""; else None."""
    import pandas as pd

    if series.dtype != object and pd.api.types.infer_dtype(series) != "string":
        return None
    cells: list[Any] = series.tolist()
    if set(map(type, cells)) == {str}:
        return cells
    if pd.api.types.infer_dtype(series) != "string":
        return None
    return [cell if isinstance(cell, str) else "" for cell in cells]


def _is_missing(text: str) -> bool:
    return text.strip().lower() in MISSING


def parse_days(texts: Sequence[str], form: str) -> Floats:
    """Days since 1970 that each text stands for; NaN if it is not a date of that form."""
    import pandas as pd

    dates = pd.to_datetime(pd.Series(texts, dtype=object), format=form, errors="coerce", utc=True).dt.tz_localize(None)
    instants = dates.to_numpy().astype("datetime64[us]")  # in nanoseconds the year 9999 would not fit
    if dates.dt.unit == "ns":  # as always before pandas 3
        for row in np.flatnonzero(np.isnat(instants)).tolist():
            instants[row] = _parse_far_date(texts[row], form)
    return np.where(np.isnat(instants), np.nan, instants.astype(np.int64) / (1e6 * SECONDS_PER_DAY))


def _parse_far_date(text: str, form: str) -> np.datetime64:
    """The instant that a text of that form stands for, if nanoseconds since 1970 do not reach its year; else NaT."""
    try:
        date = datetime.fromisoformat(text) if form == "ISO8601" else datetime.strptime(text, form)
        date = date.astimezone(UTC) if date.tzinfo else date
    except (ValueError, OverflowError):
        return np.datetime64("NaT", "us")
    beyond = not NANOSECOND_YEARS[0] <= date.year <= NANOSECOND_YEARS[1]
    return np.datetime64(date.replace(tzinfo=None) if beyond else "NaT", "us")


def holds_codes(series: Any, values: Floats) -> bool:
    """Whether the cells of a column are text in which digits are codes, but for those that are missing."""
    texts = _read_texts(series)
    return texts is not None and are_codes([texts[row] for row in np.flatnonzero(~np.isnan(values))])


def share_inexact(series: Any, values: Floats) -> float:
    """Share of the present `values` that stand for a whole number of the column which no double equals."""
    rows = np.flatnonzero(np.abs(values) >= MAX_EXACT)  # 2^53 + 1 is rounded to 2^53
    if not len(rows):
        return 0.0
    texts = (str(cell).strip().lstrip("+-") for cell in series.iloc[rows])
    n_lost = sum(text.isdigit() and int(text) != abs(int(values[row])) for text, row in zip(texts, rows, strict=True))
    return n_lost / int((~np.isnan(values)).sum())


def factorize_texts(series: Any) -> tuple[list[str], NDArray[np.intp]]:
    """Distinct stripped texts of a column, its levels, and for each row the number of its text, -1 where missing."""
    import pandas as pd

    cell_codes, cells = pd.factorize(series)
    levels: dict[str, int] = {}
    level_codes = []
    for cell in pd.Series(cells).astype(object):
        text = str(cell).strip()
        level_codes.append(-1 if _is_missing(text) else levels.setdefault(text, len(levels)))
    return list(levels), np.array([*level_codes, -1], dtype=np.intp)[cell_codes]


def find_kind(levels: Sequence[str]) -> tuple[str, str, Floats | None]:
    """The kind of a text column, how its cells are to be read, and the number that each level stands for."""
    for words in BOOLEANS if 0 < len(levels) <= 4 else ():
        if all(level.lower() in words for level in levels):
            return "boolean", "", np.array([words[level.lower()] for level in levels])
    few = levels[:N_FEW]
    if not all(re.search(r"\d", level) for level in few) or are_codes(levels):
        return "text", "", None
    for mark, values in _read_by_forms(levels, parse_numbers, [find_decimal_mark(levels)]):
        return "numeric", mark.strip("."), values
    dates = _read_by_forms(levels, parse_days, DATE_FORMS if all(YEAR.search(level) for level in few) else ())
    if any((days != dates[0][1]).any() for _, days in dates):
        return "ambiguous", "", None
    return ("date", *dates[0]) if dates else ("text", "", None)


def _read_by_forms(
    levels: Sequence[str], parse: Callable[[Sequence[str], str], Floats], forms: Iterable[str]
) -> list[tuple[str, Floats]]:
    """Those of the forms in which all levels can be read, with the numbers that they stand for."""
    forms = [form for form in forms if not np.isnan(parse(levels[:N_FEW], form)).any()]
    return [(form, values) for form in forms if not np.isnan(values := parse(levels, form)).any()]


def read_column(series: Any, name: str, kind: str, form: str, origin: str) -> Any:
    """The cells of a column whose kind is known as float64 with NaN or, if it is categorical, as text."""
    if kind in ("numeric", "boolean") and (values := read_numbers(series)) is not None:
        return values
    levels, codes = factorize_texts(series)
    if kind == "categorical":
        return np.array([*levels, MISSING_LEVEL], dtype=object)[codes]
    if kind == "boolean":
        words = {word: value for pair in (*BOOLEANS, {"1": 1.0, "0": 0.0}) for word, value in pair.items()}
        values = np.array([words.get(level.lower(), math.nan) for level in levels])
    else:
        values = parse_days(levels, form) if kind == "date" else parse_numbers(levels, form or ".")
    if np.isnan(values).any():
        wrong = levels[int(np.isnan(values).argmax())]
        raise KernelweaveError(
            f"Column {name!r} was {kind} in the table that was learned from, and here it holds {wrong!r:.40}. Correct "
            "that cell or empty it.",
            ErrorCode.BAD_FEATURES,
        )
    if kind == "date":
        values = values - np.datetime64(origin, "s").astype(np.int64) / SECONDS_PER_DAY
    return np.append(values, np.nan)[codes]


def describe_signs(levels: Sequence[str], counts: NDArray[np.intp]) -> str:
    """What keeps text from being numbers, and what to do, if most cells are numbers but for signs; else ""."""
    levels, counts = levels[:N_HEAD], counts[:N_HEAD]
    matches = [SIGNED.fullmatch(level) for level in levels]
    units = {match["unit"] for match in matches if match} - {None}
    if (
        len(units) > MAX_UNITS
        or counts[[match is not None for match in matches]].sum() < MIN_SHARE_SIGNED * counts.sum()
    ):
        return ""
    for level, match in zip(levels, matches, strict=True):
        if match and (remark := _describe_sign(match)):
            return remark.format(f"such as {level!r:.30}")
    return ""


def _describe_sign(match: re.Match[str]) -> str:
    """Name what is written with the number and where to put it, "" if nothing is; {} stands for the example."""
    has_marks = re.search(r"[.,'\u2019]", match["thousands"] or "")  # blanks may be those of a telephone number
    if match["comparison"]:
        remark = "numbers with a comparison sign, {}: write the number alone"
    elif match["currency"] or match["unit"] in CURRENCIES:
        remark = "numbers with a currency sign, {}: write the currency in the header"
    elif match["unit"]:
        sign = "percent sign" if match["unit"] == "%" else "unit"
        remark = f"numbers with a {sign}, {{}}: write the {sign.split()[-1]} in the header"
    else:
        return "numbers with marks between thousands, {}: write them without" if has_marks else ""
    return remark + (", and no marks between thousands" if has_marks else "")

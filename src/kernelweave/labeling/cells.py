r"""The cells of one column as numbers, days or levels, whether they are text as in a CSV file or typed as in Parquet.

Blanks around a cell do not count; the markers in `MISSING` and non-finite numbers are missing values. A number is
``[+-] digits [. digits] [e [+-] digits]`` in ASCII and no more: Python's ``1_000`` and ``infinity`` are text.

A double holds every whole number up to :math:`2^{53}`; of those in :math:`[2^{52+k}, 2^{53+k})`, the multiples of
:math:`2^k` only. A measurement of that size has zeros at its end and is most often held; the number of a SIM card or a
hash is not, and two of them may become one. `share_not_held` tells these apart.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ErrorCode, KernelweaveError

__all__ = [
    "MISSING",
    "are_padded",
    "as_days",
    "as_numbers",
    "kind_of_levels",
    "numbers",
    "numbers_with_signs",
    "read",
    "share_not_held",
    "texts_and_codes",
    "zero_padded",
]

Floats = NDArray[np.float64]

MISSING = ("", "na", "n/a", "nan", "<na>", "nat", "null", "none", "?", "-", "inf", "+inf", "-inf")  # in lower case
BOOLEANS = ({"true": 1.0, "false": 0.0}, {"yes": 1.0, "no": 0.0}, {"t": 1.0, "f": 0.0}, {"y": 1.0, "n": 0.0})
DAYS = ("%Y/%m/%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%d %b %Y", "%d %B %Y", "%d-%b-%Y",
        "%b %d, %Y", "%B %d, %Y")  # fmt: skip
DATE_FORMS = ("ISO8601", *(day + time for day in DAYS for time in ("", " %H:%M", " %H:%M:%S")))
YEAR = re.compile(r"\d{4}")  # which all these have; it is seen sooner than 34 forms are tried
MISSING_LEVEL = "(missing)"
SECONDS = 86_400  # of a day
NANOSECOND_YEARS = (1678, 2261)  # first and last whole year within 2**63 nanoseconds of 1970
HEAD = 1000  # cells that show what most text is
EXACT = 2.0**53  # up to which doubles hold every whole number; the first they do not hold is rounded to it

PLAIN = frozenset("0123456789+-.eE \t")  # where a text has no others, what `float` reads is a number as defined above
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}", re.ASCII)
CURRENCIES = ("€", "$", "£", "¥", "₹", "EUR", "USD", "GBP", "CHF", "JPY")
SIGNED = re.compile(
    rf"""(?P<comparison>[<>]=?|[≤≥~≈])?\s*[+-]?
    (?P<currency>{"|".join(map(re.escape, CURRENCIES))})?\s*[+-]?
    (?:(?P<thousands>[1-9]\d{{0,2}}(?:[,.'\s]\d{{3}})+)|\d+)?(?:[.,]\d+)?(?<=\d)(?:[eE][+-]?\d+)?
    \s*(?P<unit>(?:[^\W\d_]|[%‰°€$£¥₹])[^\s,;:]{{0,11}})?""",
    re.VERBOSE,
)
MOST, MAX_UNITS = 0.9, 3  # share of the cells that are numbers beside their signs; codes have many endings


def numbers(series: Any) -> Floats | None:
    """The column as float64 if it is numeric, or text in which every cell is a number or missing; else None."""
    import pandas as pd

    kinds = pd.api.types
    if kinds.is_numeric_dtype(series.dtype) and not kinds.is_bool_dtype(series.dtype):
        return _finite(series.to_numpy(dtype=np.float64, na_value=np.nan, copy=True))
    texts = _texts(series)
    if texts is None:
        return None
    for part in (texts[:HEAD], texts) if len(texts) > HEAD else (texts,):
        values = as_numbers(part)
        if not all(_is_missing(text) for text in {part[row] for row in np.flatnonzero(np.isnan(values))}):
            return None
    return values


def _texts(series: Any) -> list[str] | None:
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


def as_numbers(texts: Sequence[str], form: str = "") -> Floats:
    """The number that each text stands for, with a decimal comma if `form` is one; NaN if it is none."""
    if form == ",":
        with_comma = [text for text in texts if "," in text]
        if any("." in text for text in texts) or all(THOUSANDS.fullmatch(text) for text in with_comma):
            return np.full(len(texts), np.nan)
        texts = [text.replace(",", ".", 1) for text in texts]
    if PLAIN.issuperset("".join(texts)):
        with suppress(ValueError):
            return _finite(np.fromiter(map(float, texts), np.float64, len(texts)))
    stripped = (text.strip() for text in texts)
    found = (float(text) if NUMBER.fullmatch(text) else math.nan for text in stripped)
    return _finite(np.fromiter(found, np.float64, len(texts)))


def _finite(values: Floats) -> Floats:
    values[np.isinf(values)] = np.nan
    return values


def as_days(texts: Sequence[str], form: str) -> Floats:
    """Days since 1970 that each text stands for; NaN if it is not a date of that form."""
    import pandas as pd

    dates = pd.to_datetime(pd.Series(texts, dtype=object), format=form, errors="coerce", utc=True).dt.tz_localize(None)
    instants = dates.to_numpy().astype("datetime64[us]")  # in nanoseconds the year 9999 would not fit
    if dates.dt.unit == "ns":  # as always before pandas 3
        for row in np.flatnonzero(np.isnat(instants)).tolist():
            instants[row] = _instant_beyond_nanoseconds(texts[row], form)
    return np.where(np.isnat(instants), np.nan, instants.astype(np.int64) / (1e6 * SECONDS))


def _instant_beyond_nanoseconds(text: str, form: str) -> np.datetime64:
    """The instant that a text of that form stands for, if nanoseconds since 1970 do not reach its year; else NaT."""
    try:
        date = datetime.fromisoformat(text) if form == "ISO8601" else datetime.strptime(text, form)
        date = date.astimezone(UTC) if date.tzinfo else date
    except (ValueError, OverflowError):
        return np.datetime64("NaT", "us")
    beyond = not NANOSECOND_YEARS[0] <= date.year <= NANOSECOND_YEARS[1]
    return np.datetime64(date.replace(tzinfo=None) if beyond else "NaT", "us")


def are_padded(series: Any, values: Floats) -> bool:
    """Whether the cells of a column are text that is `zero_padded`, but for those that are missing."""
    texts = _texts(series)
    return texts is not None and zero_padded([texts[row] for row in np.flatnonzero(~np.isnan(values))])


def zero_padded(texts: Sequence[str]) -> bool:
    """Whether all are digits of one width and some begin with 0."""
    width = max(2, len(texts[0].strip())) if texts else 0
    alike = width > 0 and all(len(text) == width and text.isdigit() for text in map(str.strip, texts))
    return alike and any(text.strip().startswith("0") for text in texts)


def share_not_held(series: Any, values: Floats) -> float:
    """Share of the present `values` that stand for a whole number of the column which no double equals."""
    rows = np.flatnonzero(np.abs(values) >= EXACT)  # 2^53 + 1 is rounded to 2^53
    if not len(rows):
        return 0.0
    texts = (str(cell).strip().lstrip("+-") for cell in series.iloc[rows])
    n_lost = sum(text.isdigit() and int(text) != abs(int(values[row])) for text, row in zip(texts, rows, strict=True))
    return n_lost / int((~np.isnan(values)).sum())


def texts_and_codes(series: Any) -> tuple[list[str], NDArray[np.intp]]:
    """Distinct stripped texts of a column, its levels, and for each row the number of its text, -1 where missing."""
    import pandas as pd

    codes, found = pd.factorize(series)
    position: dict[str, int] = {}
    of_found = []
    for cell in pd.Series(found).astype(object):
        text = str(cell).strip()
        of_found.append(-1 if _is_missing(text) else position.setdefault(text, len(position)))
    return list(position), np.array([*of_found, -1], dtype=np.intp)[codes]


def kind_of_levels(levels: Sequence[str]) -> tuple[str, str, Floats | None]:
    """The kind of a text column, how its cells are to be read, and the number that each level stands for."""
    for words in BOOLEANS if 0 < len(levels) <= 4 else ():
        if all(level.lower() in words for level in levels):
            return "boolean", "", np.array([words[level.lower()] for level in levels])
    if not all(re.search(r"\d", level) for level in levels[:50]) or zero_padded(levels):
        return "text", "", None

    def readable(read: Callable[[Sequence[str], str], Floats], forms: Iterable[str]) -> list[tuple[str, Floats]]:
        forms = [form for form in forms if not np.isnan(read(levels[:50], form)).any()]
        return [(form, values) for form in forms if not np.isnan(values := read(levels, form)).any()]

    for form, values in readable(as_numbers, ("", ",")):
        return "numeric", form, values
    dates = readable(as_days, DATE_FORMS if all(YEAR.search(level) for level in levels[:50]) else ())
    if any((days != dates[0][1]).any() for _, days in dates):
        return "ambiguous", "", None
    return ("date", *dates[0]) if dates else ("text", "", None)


def read(series: Any, name: str, kind: str, form: str, origin: str) -> Any:
    """The cells of a column whose kind is known as float64 with NaN or, if it is categorical, as text."""
    if kind in ("numeric", "boolean") and (values := numbers(series)) is not None:
        return values
    levels, codes = texts_and_codes(series)
    if kind == "categorical":
        return np.array([*levels, MISSING_LEVEL], dtype=object)[codes]
    if kind == "boolean":
        words = {word: value for pair in (*BOOLEANS, {"1": 1.0, "0": 0.0}) for word, value in pair.items()}
        found = np.array([words.get(level.lower(), math.nan) for level in levels])
    else:
        found = as_days(levels, form) if kind == "date" else as_numbers(levels, form)
    if np.isnan(found).any():
        wrong = levels[int(np.isnan(found).argmax())]
        raise KernelweaveError(
            f"Column {name!r} was {kind} in the table that was learned from, and here it holds {wrong!r:.40}. Correct "
            "that cell or empty it.",
            ErrorCode.BAD_FEATURES,
        )
    if kind == "date":
        found = found - np.datetime64(origin, "s").astype(np.int64) / SECONDS
    return np.append(found, np.nan)[codes]


def numbers_with_signs(levels: Sequence[str], counts: NDArray[np.intp]) -> str:
    """What keeps text from being numbers, and what to do, if most cells are numbers but for signs; else ""."""
    levels, counts = levels[:HEAD], counts[:HEAD]
    found = [SIGNED.fullmatch(level) for level in levels]
    units = {match["unit"] for match in found if match} - {None}
    if len(units) > MAX_UNITS or counts[[match is not None for match in found]].sum() < MOST * counts.sum():
        return ""
    for level, match in zip(levels, found, strict=True):
        if match and (remark := _remark(match)):
            return remark.format(f"such as {level!r:.30}")
    return ""


def _remark(match: re.Match[str]) -> str:
    """What is beside the number and where it belongs, "" if nothing is; {} stands for the example."""
    has_marks = re.search(r"[.,']", match["thousands"] or "")  # blanks may be those of a telephone number
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

r"""The cells of one column as numbers, days, times or levels, be they text as in a CSV file or typed as in Parquet.

Blanks around a cell do not count; the texts in `kernelweave.labels.MISSING` and non-finite numbers are missing values.
``numbers`` says what a number is, ``number_forms`` how else numbers are written, ``clock`` what times and durations
are, and ``gaps`` which other texts may stand in a column of numbers.

A double holds every whole number up to :math:`2^{53}`; of those in :math:`[2^{52+k}, 2^{53+k})`, the multiples of
:math:`2^k` only. A measurement of that size has zeros at its end and is most often held; the number of a SIM card or a
hash is not, and two of them may become one. `share_inexact` tells these apart.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import ErrorCode, KernelweaveError
from ..labels import MISSING
from . import clock
from .gaps import are_gaps, count_gaps, is_gap_word
from .levels import sample_levels
from .number_forms import describe_form, find_number_form, parse_form, unit_of
from .numbers import Floats, are_codes, parse_numbers

__all__ = [
    "Reading",
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
NANOSECOND_YEARS = (1678, 2261)  # first and last whole year within 2**63 nanoseconds of 1970
N_HEAD = 1000  # first cells, which are read before all others: most text shows there that it is no number
N_FEW = 50  # cells that stand for all of them
MIN_SHARE_READ = 0.5  # of these few, below which a column is not one of numbers or dates with gaps
MAX_EXACT = 2.0**53  # up to which doubles hold every whole number; the first they do not hold is rounded to it


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
    return np.where(np.isnat(instants), np.nan, instants.astype(np.int64) / (1e6 * clock.DAY))


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
    return texts is not None and are_codes(texts[row] for row in np.flatnonzero(~np.isnan(values)))


def share_inexact(series: Any, values: Floats) -> float:
    """Share of the present `values` that stand for a whole number of the column which no double equals."""
    rows = np.flatnonzero(np.abs(values) >= MAX_EXACT)  # 2^53 + 1 is rounded to 2^53
    if not len(rows):
        return 0.0
    texts = (str(cell).strip().lstrip("+-0") for cell in series.iloc[rows])  # int() reads up to 4300 digits
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


class Reading(NamedTuple):
    """What the levels of a column are.

    Attributes
    ----------
    kind : {"boolean", "numeric", "date", "time of day", "duration", "ambiguous", "text"}
    form : str
        How the cells are written: a form of numbers, dates or durations.
    values : ndarray of float, shape (n_levels,), or None
        The number that each level stands for, NaN where it is a gap; None for text.
    """

    kind: str
    form: str = ""
    values: Floats | None = None


def find_kind(levels: Sequence[str], counts: NDArray[np.intp]) -> Reading:
    """Return what a column of text is, by its levels and the numbers of cells that have them."""
    for words in BOOLEANS if 0 < len(levels) <= 4 else ():
        if all(level.lower() in words for level in levels):
            return Reading("boolean", "", np.array([words[level.lower()] for level in levels]))
    few = _choose_few(levels, counts)
    if not few or sum(re.search(r"\d", level) is not None for level in few) < MIN_SHARE_READ * len(few):
        return Reading("text")
    form = find_number_form(levels, counts)
    if form is not None and are_gaps(levels, counts, values := parse_form(levels, form)):
        spans = clock.parse_durations(levels, clock.DURATION_FORMS[False])
        if unit_of(form) and counts[np.isnan(spans)].sum() < counts[np.isnan(values)].sum():
            return Reading("duration", clock.DURATION_FORMS[False], spans)  # as "1 day" beside "2 days"
        is_code = are_codes(levels[k] for k in np.flatnonzero(~np.isnan(values)).tolist())
        return Reading("text") if is_code else Reading("numeric", form, values)
    has_year = sum(YEAR.search(level) is not None for level in few) >= MIN_SHARE_READ * len(few)
    dates = _read_by_forms(levels, counts, few, parse_days, DATE_FORMS if has_year else ())
    if any(not np.array_equal(days, dates[0][1], equal_nan=True) for _, days in dates):
        return Reading("ambiguous")
    if dates:
        return Reading("date", *dates[0])
    times = _read_by_forms(levels, counts, few, clock.parse_times, [""])
    form = clock.DURATION_FORMS[any(level.count(":") == 2 for level in levels)]
    durations = _read_by_forms(levels, counts, few, clock.parse_durations, [form])
    if times and (not durations or np.isnan(times[0][1]).sum() <= np.isnan(durations[0][1]).sum()):
        return Reading("time of day", *times[0])
    return Reading("duration", *durations[0]) if durations else Reading("text")


def _choose_few(levels: Sequence[str], counts: NDArray[np.intp]) -> list[str]:
    """Return the texts of a few cells that stand for all, gap words left out, whatever the order of the rows."""
    kept = [k for k, level in enumerate(levels) if not is_gap_word(level)]
    few, n_cells = sample_levels([levels[k] for k in kept], counts[kept], N_FEW)
    return [level for level, n in zip(few, n_cells.tolist(), strict=True) for _ in range(n)]


def _read_by_forms(
    levels: Sequence[str],
    counts: NDArray[np.intp],
    few: Sequence[str],
    parse: Callable[[Sequence[str], str], Floats],
    forms: Iterable[str],
) -> list[tuple[str, Floats]]:
    """Those of the forms in which most cells can be read, all but gaps, with the numbers that they stand for.

    A form in which half of the `few` cells cannot be read is not tried on the others.
    """
    forms = [form for form in forms if (~np.isnan(parse(few, form))).mean() >= MIN_SHARE_READ]
    read = [(form, parse(levels, form)) for form in forms]
    read = [(form, values) for form, values in read if are_gaps(levels, counts, values)]
    n_unread = [int(counts[np.isnan(values)].sum()) for _, values in read]
    return [each for each, n in zip(read, n_unread, strict=True) if n == min(n_unread)]


def read_column(series: Any, name: str, kind: str, form: str, origin: str) -> tuple[Any, dict[str, int]]:
    """The cells of a column whose kind is known, and the texts in it that are gaps with their numbers of cells.

    The cells are float64 with NaN, or text where the column is categorical (`MISSING_LEVEL` where it is missing) or
    text ("" where it is missing).
    """
    if kind in ("numeric", "boolean") and _is_plain(series, form) and (values := read_numbers(series)) is not None:
        return values, {}
    levels, codes = factorize_texts(series)
    if kind in ("categorical", "text"):
        return np.array([*levels, MISSING_LEVEL if kind == "categorical" else ""], dtype=object)[codes], {}
    counts = np.bincount(codes[codes >= 0], minlength=len(levels))
    if kind == "boolean":
        words = {word: value for pair in (*BOOLEANS, {"1": 1.0, "0": 0.0}) for word, value in pair.items()}
        values = np.array([words.get(level.lower(), math.nan) for level in levels])
    elif kind in PARSERS:
        values = PARSERS[kind](levels, form)
    else:
        message = (
            f"The model reads the column {name!r} as {kind!r:.40}, which this version of kernelweave does not know."
        )
        raise KernelweaveError(message, ErrorCode.BAD_MODEL)
    if len(levels) and not are_gaps(levels, counts, values):
        wrong = next(text for text in count_gaps(levels, counts, values) if not is_gap_word(text))
        how = f" ({describe_form(form)})" if kind == "numeric" and form else ""
        raise KernelweaveError(
            f"Column {name!r} was {kind}{how} in the table that was learned from, and here it holds {wrong!r:.40}. "
            "Correct that cell or empty it.",
            ErrorCode.BAD_FEATURES,
        )
    if kind == "date":
        values = values - np.datetime64(origin, "s").astype(np.int64) / clock.DAY
    return np.append(values, np.nan)[codes], count_gaps(levels, counts, values)


def _is_plain(series: Any, form: str) -> bool:
    """Whether plain numbers of a column are what the form means: typed ones always, and texts unless they mislead."""
    import pandas as pd

    return len(form) < 2 or form == f".{form[1]}" or pd.api.types.is_numeric_dtype(series.dtype)


PARSERS: dict[str, Callable[[Sequence[str], str], Floats]] = {
    "numeric": parse_form,
    "date": parse_days,
    "time of day": clock.parse_times,
    "duration": clock.parse_durations,
}

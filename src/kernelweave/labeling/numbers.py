"""Numbers written as text: what counts as one, in the target and in every other column, and how to write more of them.

A number is ``[+-] digits [mark digits] [e [+-] digits]`` in ASCII digits, with or without blanks around it; the sign
may be the minus of typesetters (U+2212); ``1_000``, ``nan``, ``inf`` and what exceeds a double are none. The mark
belongs to the column, not to the cell: it is the comma where texts have commas and no dots, unless every one of these
commas may stand between thousands (``1,067`` beside ``999`` is 1067 or 1.067, and only the user knows); else it is the
dot. Digits of equal width, some of which begin with 0, are codes such as zip codes, not numbers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

TYPESET_MINUS = "\u2212"
PLAIN = frozenset("0123456789+-.eE \t")  # where a text has no others, `float` reads what is defined above
# "++" takes no digit back: a cell of many digits costs no more than to read it once.
NUMBER = re.compile(r"[+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?")
GROUPED_DIGITS = r"[1-9][0-9]{0,2}(?P<mark>[,.' \u00a0\u202f\u2019])[0-9]{3}(?:(?P=mark)[0-9]{3})*"
THOUSANDS = re.compile(rf"[+-]?{GROUPED_DIGITS}(?:[.,][0-9]+)?")
MAX_DECIMALS = 340  # the smallest double has 324, and 17 significant digits
FLOAT_TYPES = ("float32", "float64")
INTEGER_TYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
MIN_DIGITS = 3  # significant ones, written where the given numbers have exponents


def find_decimal_mark(texts: Iterable[str]) -> str:
    """Return the decimal mark of a column, "," or "."."""
    texts = list(texts)
    with_comma = [text for text in texts if "," in text]
    if not with_comma or any("." in text for text in texts):
        return "."
    return "." if all(THOUSANDS.fullmatch(text.strip()) for text in with_comma) else ","


def parse_numbers(texts: Sequence[str], mark: str = ".") -> Floats:
    """Return the number that each text stands for, NaN where it is none; ndarray of shape (n_texts,)."""
    if mark == ",":
        texts = ["" if "." in text else text.replace(",", ".", 1) for text in texts]
    values = None
    if PLAIN.issuperset("".join(texts)):
        with suppress(ValueError):
            values = np.fromiter(map(float, texts), np.float64, len(texts))
    if values is None:
        stripped = (text.strip().replace(TYPESET_MINUS, "-") for text in texts)
        numbers = (float(text) if NUMBER.fullmatch(text) else math.nan for text in stripped)
        values = np.fromiter(numbers, np.float64, len(texts))
    values[np.isinf(values)] = np.nan
    return values


def as_numbers(texts: Iterable[str]) -> Floats | None:
    """Return the numbers that the texts of a column stand for; None if one of them is no number.

    Examples
    --------
    >>> as_numbers(["3,5", "12,75", "4"])
    array([ 3.5 , 12.75,  4.  ])
    >>> as_numbers(["999", "1,067"]) is None
    True
    """
    texts = list(texts)
    values = parse_numbers(texts, find_decimal_mark(texts))
    return None if np.isnan(values).any() else values


def are_codes(texts: Iterable[str]) -> bool:
    """Return whether all texts are digits of equal width and some begin with 0."""
    width, begins_with_zero = 0, False
    for text in map(str.strip, texts):
        width = width or max(2, len(text))
        if len(text) != width or not text.isdigit():  # most columns of numbers end here, with their first cell
            return False
        begins_with_zero = begins_with_zero or text.startswith("0")
    return begins_with_zero


def find_thousands(texts: Iterable[str]) -> str | None:
    """Return the first text with marks between thousands, if all are numbers but for such marks; else None."""
    texts = [text.strip() for text in texts]
    alike = all(NUMBER.fullmatch(text.replace(",", ".")) or THOUSANDS.fullmatch(text) for text in texts)
    if not alike or as_numbers(texts) is not None:
        return None
    return next((text for text in texts if THOUSANDS.fullmatch(text) and not NUMBER.fullmatch(text)), None)


def find_number_format(texts: Iterable[str]) -> str:
    """Return how numbers are written, as a format of Python.

    As many decimals as the longest has; where all have exponents, or some, as many significant digits.

    Examples
    --------
    >>> find_number_format(["1.5", "22.75", "3"]), find_number_format(["3.25e-11", "1E3"])
    ('.2f', '.2E')
    >>> find_number_format(["0.0125", "2e-07"])
    '.3g'
    """
    texts = [text.strip() for text in texts]
    mark = find_decimal_mark(texts)
    parts = [re.split("[eE]", text) for text in texts]
    if all(len(part) == 1 for part in parts):
        return f".{min(max(len(text.partition(mark)[2]) for text in texts), MAX_DECIMALS)}f"
    n_digits = max(len(re.sub("[^0-9]", "", part[0]).lstrip("0")) for part in parts)
    n_digits = min(max(n_digits, MIN_DIGITS), np.finfo(np.float64).precision + 2)
    letter = "E" if any("E" in text for text in texts) else "e"
    if all(len(part) > 1 for part in parts):
        return f".{n_digits - 1}{letter}"
    return f".{n_digits}{'g' if letter == 'e' else 'G'}"


def widen_type(kept: np.ndarray, new: Sequence[int] | Sequence[float]) -> np.dtype:
    """Return the type of an array or, if its range does not hold all new numbers too, the smallest type that does.

    Raises
    ------
    ValueError
        Where no type of the same kind, integers or floats, holds all.

    Examples
    --------
    >>> [str(widen_type(np.array([0, 200], np.uint8), new)) for new in ([255], [300], [-1])]
    ['uint8', 'int16', 'int16']
    """
    is_float = kept.dtype.kind == "f"
    ends = list(new) if is_float else [*new, *map(int, kept)]  # whatever floats hold, larger ones do
    for dtype in (kept.dtype, *map(np.dtype, FLOAT_TYPES if is_float else INTEGER_TYPES)):
        low, high = _find_range(dtype)
        if dtype.itemsize >= kept.dtype.itemsize and low <= min(ends) and max(ends) <= high:
            return dtype
    raise ValueError(f"no type holds {min(ends):g} and {max(ends):g}")


def _find_range(dtype: np.dtype) -> tuple[float, float]:
    if dtype.kind == "f":
        high = float(np.finfo(dtype).max)
        return -high, high
    return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)


def looks_like_formula(text: str) -> bool:
    """Return whether a spreadsheet program would take a cell of a text file for a formula.

    Examples
    --------
    >>> [text for text in ("=cmd()", "-1,5", "+49 30", "@SUM(A1)", "-", "a=b") if looks_like_formula(text)]
    ['=cmd()', '+49 30', '@SUM(A1)']
    """
    return len(text) > 1 and text[0] in "=+-@\t\r" and as_numbers([text]) is None

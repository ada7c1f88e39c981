"""Numbers that are given as texts: how they are read, and how others are written like them.

A text is a number if it has digits, at most one decimal mark and perhaps an exponent; ``1_000``, ``nan`` and ``inf``
are none. The mark is the dot. It is the comma where texts have commas and no dots, unless every one of them could
be thousands: ``1,067`` beside ``999`` may be 1067 or 1.067, and nobody but the user knows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

Texts = Sequence[Any] | np.ndarray

NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2}([,.' \u00a0\u202f\u2019])[0-9]{3}(?:\1[0-9]{3})*(?:[.,][0-9]+)?")
LEAST_DIGITS = 3  # significant ones, written where the given numbers have exponents


def as_numbers(labels: Texts) -> np.ndarray | None:
    """Return texts as finite numbers, or None if one of them is not, or may be another number than it seems."""
    mark = decimal_mark(labels)
    texts = [str(text).strip() for text in labels]
    if mark == "," and all(THOUSANDS.fullmatch(text) for text in texts if "," in text):
        return None
    texts = [text.replace(mark, ".") for text in texts]
    if not all(NUMBER.fullmatch(text) for text in texts):
        return None
    numbers = np.array(texts, dtype=np.float64)
    return numbers if np.isfinite(numbers).all() else None


def with_thousands(labels: Texts) -> str | None:
    """Return the first text with a mark between thousands, if all texts are numbers but for such marks; else None."""
    texts = [str(text).strip() for text in labels]
    alike = all(NUMBER.fullmatch(text.replace(",", ".")) or THOUSANDS.fullmatch(text) for text in texts)
    if not alike or as_numbers(labels) is not None:
        return None
    return next((text for text in texts if THOUSANDS.fullmatch(text) and not NUMBER.fullmatch(text)), None)


def decimal_mark(labels: Texts) -> str:
    """Return the comma if texts have commas and no dots, else the dot."""
    texts = [str(text) for text in labels]
    return "," if any("," in text for text in texts) and not any("." in text for text in texts) else "."


def number_form(labels: Texts) -> str:
    """Return how the numbers are written, as a format of Python.

    As many decimals as the longest has; where all have exponents, or some, as many significant digits.

    Examples
    --------
    >>> number_form(["1.5", "22.75", "3"]), number_form(["3.25e-11", "1E3"]), number_form(["0.0125", "2e-07"])
    ('.2f', '.2E', '.3g')
    """
    mark = decimal_mark(labels)
    texts = [str(text).strip() for text in labels]
    parts = [re.split("[eE]", text) for text in texts]
    if all(len(part) == 1 for part in parts):
        return f".{max(len(text.partition(mark)[2]) for text in texts)}f"
    n_digits = max(len(re.sub("[^0-9]", "", part[0]).lstrip("0")) for part in parts)
    n_digits = min(max(n_digits, LEAST_DIGITS), np.finfo(np.float64).precision + 2)
    letter = "E" if any("E" in text for text in texts) else "e"
    if all(len(part) > 1 for part in parts):
        return f".{n_digits - 1}{letter}"
    return f".{n_digits}{'g' if letter == 'e' else 'G'}"

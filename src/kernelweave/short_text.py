"""Short texts for people: numbers of few digits; recipes and lists of columns that would fill pages, on one line.

The ``repr`` of a recipe evaluates to an equal recipe, however many columns it names. ``str``, what notebooks show, and
messages use the same text in which long lists are cut.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from itertools import islice
from typing import Any

MAX_LISTED = 6  # items of a list that are all shown; of more the first three
MAX_LENGTH = 200  # characters of a line
MAX_COMPARED, MIN_SIMILARITY = 5000, 0.7  # names that a wrong one is compared with; 1: the same letters
MIN_PLAIN, MAX_PLAIN = 1e-4, 1e9  # numbers between are written without an exponent

_is_short: ContextVar[bool] = ContextVar("_is_short", default=False)


def short_repr(thing: Any) -> str:
    """Return the ``repr`` on one line, with long lists of columns cut where a recipe names them."""
    with short_lists():
        return cut_text(repr(thing))


@contextmanager
def short_lists() -> Iterator[None]:
    """Have recipes cut long lists of columns in their ``repr``."""
    token = _is_short.set(True)
    try:
        yield
    finally:
        _is_short.reset(token)


def format_items(items: Sequence[Any]) -> str:
    """Return a list as its ``repr``; cut where a short text is being made."""
    return list_some(items) if _is_short.get() else repr(list(items))


def list_some(items: Sequence[Any], write: Callable[[Any], str] = repr) -> str:
    """Return a list of which, if it is long, the first three items and the number of all are shown."""
    if len(items) <= MAX_LISTED:
        return f"[{', '.join(map(write, items))}]"
    return f"[{', '.join(map(write, items[:3]))}, … ({len(items):,})]"


def name_some(names: Iterable[Any]) -> str:
    """Return names in quotes, without brackets; of many the first three, and how many there are."""
    return list_some([cut_text(str(name)) for name in names])[1:-1]


def suggest_names(wrong: Iterable[Any], names: Iterable[Any]) -> str:
    """Return a sentence, preceded by a blank, with the names that look like the wrong ones; "" if none does.

    Examples
    --------
    >>> suggest_names(["Outcom"], ["age", "outcome"]), suggest_names(["x"], ["age", "outcome"])
    (" Did you mean 'outcome'?", '')
    >>> suggest_names(["outcome"], ["age", "outcome "])
    " Did you mean 'outcome '?"
    """
    known = {str(name).casefold().strip(): str(name) for name in islice(names, MAX_COMPARED)}
    found: dict[str, None] = {}
    for name in list(wrong)[:MAX_LISTED]:
        for match in get_close_matches(str(name)[:MAX_LENGTH].casefold().strip(), known, n=2, cutoff=MIN_SIMILARITY):
            found[known[match]] = None
    limit = MAX_LENGTH // 4
    shown = " or ".join(repr(name if len(name) <= limit else cut_text(name, limit)) for name in list(found)[:3])
    return f" Did you mean {shown}?" if found else ""


def cut_text(text: str, length: int = MAX_LENGTH) -> str:
    """Return a text on one line; of a long one the beginning and the end."""
    line = " ".join(text.split())
    if len(line) <= length:
        return line
    tail = 2 * length // 5  # parameters, in which recipes differ, stand at the end
    return f"{line[: length - tail - 3]} … {line[-tail:]}"


def count_of(n: int, noun: str) -> str:
    """Return a number of things in words.

    Examples
    --------
    >>> count_of(1, "kernel"), count_of(30000, "kernel")
    ('1 kernel', '30,000 kernels')
    """
    return f"{n:,} {noun}{'s' * (n != 1)}"


def format_number(value: float, digits: int = 4, sign: bool = False) -> str:
    """Return a number rounded to so many digits, without an exponent where it is large but not huge; – for NaN.

    Examples
    --------
    >>> format_number(29193.4), format_number(1670.2, 3), format_number(0.123456, 3, sign=True), format_number(3e12)
    ('29190', '1670', '+0.123', '3e+12')
    """
    if value != value:
        return "–"
    rounded, plus = float(f"{value:.{digits - 1}e}"), "+" if sign else ""
    is_large = 10**digits <= abs(rounded) < MAX_PLAIN
    return f"{rounded:{plus}.0f}" if is_large else f"{rounded:{plus}.{digits}g}"


def format_numbers(values: Sequence[float], digits: int = 4, sign: bool = False) -> list[str]:
    """Return the numbers of one column, all with the same decimals: at most those that half of them need.

    Examples
    --------
    >>> format_numbers([1.4712, 1.49, 2.7]), format_numbers([29193.4, 512.0]), format_numbers([2.0, float("nan")])
    (['1.471', '1.490', '2.700'], ['29190', '512'], ['2', '–'])
    """
    texts = [format_number(value, digits, sign) for value in values]
    sizes = sorted(abs(value) for value in values if math.isfinite(value) and value)
    typical = sizes[(len(sizes) - 1) // 2] if sizes else 0.0
    if typical < MIN_PLAIN or sizes[-1] >= MAX_PLAIN:
        return texts
    needed = digits - 1 - math.floor(math.log10(typical))
    decimals = max(0, min(needed, max(len(text.partition(".")[2]) for text in texts)))
    plus = "+" if sign else ""
    return [
        # Without decimals numbers are rounded to so many digits; adding 0 makes -0 a 0.
        f"{round(value if decimals else float(text), decimals) + 0.0:{plus}.{decimals}f}"
        if math.isfinite(value)
        else text
        for value, text in zip(values, texts, strict=True)
    ]

r"""Numbers as people write them: with marks between thousands, a currency sign, a percent sign or a unit.

A form says how the numbers of one column are written: the decimal mark, the mark between thousands or ``-`` for none,
and the unit, such as ``.,$``, ``,.€``, ``.-kg`` or ``.-%``; the empty text stands for ``.-`` and ``,`` for ``,-``. The
unit stands behind the number; a currency on either side, which is the same for all cells. The unit is that of most
cells; a plain ``0`` has any unit. The marks are those with which most cells can be read; where two ways of reading them
are left, a currency decides for thousands (amounts have two decimals, not three), and elsewhere only the user knows:
there is no form. An amount with its currency in parentheses, ``($1,200)``, is negative.

A few odd cells, such as ``12,5`` among ``1.234`` and ``5.678``, do not make thousands of decimals: where a decimal mark
alone reads all but gaps (see ``gaps``), only cells that it takes marks between thousands to read, such as
``1.234.567`` or ``1.234,5``, say that there are such marks, and a single one does so only if the other cells mean the
same with them, or nothing without.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .gaps import are_gaps
from .levels import sample_levels
from .numbers import GROUPED_DIGITS, TYPESET_MINUS, Floats, are_codes, parse_numbers

__all__ = ["CURRENCIES", "describe_form", "describe_signs", "find_number_form", "parse_form", "unit_of"]

CURRENCIES = ("€", "$", "£", "¥", "₹", "EUR", "USD", "GBP", "CHF", "JPY")
CURRENCY = "|".join(map(re.escape, CURRENCIES))
MAX_LENGTH = 64  # of a text that may be a number: no pattern takes long
UNIT = r"(?:[^\W\d_]|[%‰°€$£¥₹])[^\s,;:]{0,11}"
WITH_UNIT = re.compile(
    rf"""(?P<sign>[+-]?)(?P<prefix>{CURRENCY})?\s*
    (?P<number>[+-]?[.,]?[0-9](?:[0-9.,'\u2019\ \u00a0\u202f]*[0-9.,])?(?:[eE][+-]?[0-9]+)?)\s*(?P<suffix>{UNIT})?""",
    re.VERBOSE,
)
ZERO = re.compile(r"[+-]?0++(?:[.,]0*+)?")
NO_MARK = "-"
BLANKS = " \u00a0\u202f"
# Decimal mark, and mark between thousands; the first way that reads most cells is taken.
MARKS = ((".", ""), (",", ""), (".", ","), (",", "."), (".", "'"), (",", "'"), (".", "\u2019"),
         (",", "\u2019"), *((decimal, blank) for blank in BLANKS for decimal in ".,"))  # fmt: skip
SIGNED = re.compile(
    rf"""(?P<comparison>[<>]=?|[≤≥~≈])?\s*+[+-]?
    (?P<currency>{CURRENCY})?\s*+[+-]?
    (?:(?P<thousands>{GROUPED_DIGITS})|\d++)?(?:[.,]\d++)?(?<=\d)(?:[eE][+-]?\d++)?\s*+(?P<unit>{UNIT})?""",
    re.VERBOSE,
)
MIN_GROUPED = 2  # texts that only marks between thousands explain: a single one may be a slip
MIN_SHARE_SIGNED = 0.9  # of the cells that are numbers but for signs
MAX_UNITS = 3  # codes have more different endings than measurements
N_SAMPLE = 1000  # cells that are looked at for advice, and before all others


def find_number_form(levels: Sequence[str], counts: NDArray[np.intp]) -> str | None:
    """Return the form in which most cells of a column are numbers; None where there is none, or two.

    Parameters
    ----------
    levels : sequence of str
        The distinct texts of the column.
    counts : ndarray of int, shape (n_levels,)
        How many cells have each of them.

    Examples
    --------
    >>> import numpy as np
    >>> once = np.ones(2, dtype=int)
    >>> [find_number_form(texts, once) for texts in (["$38,364", "$999"], ["12 kg", "7 kg"], ["1.234,56", "0,5"])]
    ['.,$', '.-kg', ',.']
    >>> find_number_form(["999", "1,067"], once) is None
    True
    """
    if len(levels) > N_SAMPLE:
        few, n_cells = sample_levels(levels, counts, N_SAMPLE)
        if not any(map(_split, few)):
            return None
        form = _find_form(few, n_cells)
        if form is not None and not np.isnan(parse_form(levels, form)).any():
            return form  # of all levels together no other form could read more
    return _find_form(levels, counts)


def _find_form(levels: Sequence[str], counts: NDArray[np.intp]) -> str | None:
    parts = [_split(level) for level in levels]
    votes: dict[str, int] = {}
    for part, count in zip(parts, counts.tolist(), strict=True):
        if part is not None:
            n_votes = 0 if _is_plain_zero(part) else count
            votes[part[1]] = votes.get(part[1], 0) + n_votes
    if not votes:
        return None
    unit = max(votes, key=lambda each: (votes[each], not each, each))  # the order of the cells does not matter
    agreeing = [k for k, part in enumerate(parts) if part is not None and part[1] == unit]
    numbers, weights = [parts[k][0] for k in agreeing], counts[agreeing]  # type: ignore[index]
    if unit and are_codes(numbers):
        return None
    marks = _find_marks(numbers, weights, unit)
    if marks is None:
        return None
    decimal, thousands = marks
    return f"{decimal}{thousands or NO_MARK}{unit}" if thousands or unit else decimal.strip(".")


def _find_marks(numbers: Sequence[str], weights: NDArray[np.intp], unit: str) -> tuple[str, str] | None:
    """Return the marks with which the numbers are written, whatever a few odd ones say; None if that is not decided."""
    plain = [_read_marks(numbers, decimal, "") for decimal in ".,"]
    values = min(plain, key=lambda values: weights[np.isnan(values)].sum())
    if not are_gaps(numbers, weights, values):
        return _rank_marks(numbers, weights, unit)
    is_usual = ~np.isnan(values)
    is_grouped = np.isnan(plain[0]) & np.isnan(plain[1])
    marks = _rank_marks(*_take(numbers, weights, is_usual | is_grouped), unit)
    if marks is not None:
        read = _read_marks(numbers, *marks)
        n_grouped = int((is_grouped & ~np.isnan(read)).sum())
        if n_grouped >= MIN_GROUPED or np.array_equal(read[is_usual], values[is_usual]):
            return marks
    return _rank_marks(*_take(numbers, weights, is_usual), unit) or marks


def _take(
    numbers: Sequence[str], weights: NDArray[np.intp], kept: NDArray[np.bool_]
) -> tuple[list[str], NDArray[np.intp]]:
    return [numbers[k] for k in np.flatnonzero(kept).tolist()], weights[kept]


def _rank_marks(numbers: Sequence[str], weights: NDArray[np.intp], unit: str) -> tuple[str, str] | None:
    """Return the marks with which most numbers can be read; None if that does not decide."""
    used = set("".join(numbers))
    found: list[tuple[int, tuple[str, str], Floats]] = []
    for decimal, thousands in MARKS:
        if (thousands or decimal) not in used and (decimal, thousands) != MARKS[0]:
            continue
        values = _read_marks(numbers, decimal, thousands)
        found.append((int(weights[np.isnan(values)].sum()), (decimal, thousands), values))
    fewest = min(n_unread for n_unread, _, _ in found)
    best = [(marks, values) for n_unread, marks, values in found if n_unread == fewest]
    if best[0][0] == (".", "") and not (unit in CURRENCIES and _are_grouped(numbers, ".")):
        return best[0][0]
    if all(np.array_equal(values, best[0][1], equal_nan=True) for _, values in best):
        return None if best[0][0][1] == " " and not _is_amount(numbers, unit) else best[0][0]
    grouped = [marks for marks, _ in best if marks[1]]
    return grouped[0] if unit in CURRENCIES and len(grouped) == 1 else None


def _are_grouped(numbers: Sequence[str], mark: str) -> bool:
    """Return whether all numbers with this mark have three digits behind it, and some have it."""
    marked = [number for number in numbers if mark in number]
    return bool(marked) and all(re.fullmatch(rf"[+-]?{GROUPED_DIGITS}", number) for number in marked)


def _is_amount(numbers: Sequence[str], unit: str) -> bool:
    """Return whether digits in groups are amounts and no telephone numbers: these have neither unit nor decimals."""
    return bool(unit) or len({number.count(" ") for number in numbers}) > 1 or any(set(".,") & set(n) for n in numbers)


def parse_form(levels: Sequence[str], form: str) -> Floats:
    """Return the number that each text stands for; NaN where it is none of that form.

    Examples
    --------
    >>> parse_form(["$38,364", "-$5.50", "5", "$1,2"], ".,$")
    array([ 3.8364e+04, -5.5000e+00,         nan,         nan])
    """
    if len(form) < 2:
        return parse_numbers(levels, form or ".")
    decimal, thousands, unit = form[0], form[1].strip(NO_MARK), form[2:]
    parts = [_split(level) for level in levels]
    of_unit = (part is not None and (part[1] == unit or _is_plain_zero(part)) for part in parts)
    numbers = [part[0] if is_of_unit else "" for part, is_of_unit in zip(parts, of_unit, strict=True)]  # type: ignore[index]
    return _read_marks(numbers, decimal, thousands)


def _is_plain_zero(part: tuple[str, str]) -> bool:
    return not part[1] and ZERO.fullmatch(part[0]) is not None


def _split(level: str) -> tuple[str, str] | None:
    """Return the number, with its sign, and the unit of a text; None if it is not a number with a unit."""
    if len(level) > MAX_LENGTH:
        return None
    if level[:1] == "(" and level[-1:] == ")":
        amount = _split(level[1:-1])  # accountants' way of writing a negative amount
        is_amount = amount is not None and amount[1] in CURRENCIES and amount[0][0] not in "+-"
        return (f"-{amount[0]}", amount[1]) if amount is not None and is_amount else None
    match = WITH_UNIT.fullmatch(level.replace(TYPESET_MINUS, "-"))
    if match is None or (match["prefix"] and match["suffix"]):
        return None
    number = match["number"]
    if match["sign"] and number[0] in "+-":
        return None
    return match["sign"] + number, match["prefix"] or match["suffix"] or ""


def _read_marks(numbers: Sequence[str], decimal: str, thousands: str) -> Floats:
    """Return the numbers of texts with such marks; NaN where the digits are not in groups of three."""
    if thousands:
        t, d = re.escape(thousands), re.escape(decimal)
        pattern = re.compile(rf"[+-]?(?:[1-9][0-9]{{0,2}}(?:{t}[0-9]{{3}})+|[0-9]{{1,3}})(?:{d}[0-9]*)?")
        numbers = [number.replace(thousands, "") if pattern.fullmatch(number) else "" for number in numbers]
    return parse_numbers(numbers, decimal)


def unit_of(form: str) -> str:
    """Return the unit of a form; "" if it has none."""
    return form[2:]


def describe_form(form: str) -> str:
    """Return how numbers of this form are written, in words; "" for plain ones.

    Examples
    --------
    >>> describe_form(".,$"), describe_form(","), describe_form("")
    ("in $, ',' between thousands", 'decimal comma', '')
    """
    words = [f"in {form[2:]}"] if form[2:] else []
    if form[1:2].strip(NO_MARK):
        words.append(f"{form[1]!r} between thousands")
    if form[:1] == ",":
        words.append("decimal comma")
    return ", ".join(words)


def describe_signs(levels: Sequence[str], counts: NDArray[np.intp]) -> str:
    """Return what keeps text from being numbers, and what to do, if most cells are numbers but for signs; else ""."""
    levels, counts = sample_levels(levels, counts, N_SAMPLE)
    matches = [SIGNED.fullmatch(level) if len(level) <= MAX_LENGTH else None for level in levels]
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
    if match["comparison"]:
        return "numbers with a comparison sign, {}: write the number alone"
    if match["currency"] or match["unit"] in CURRENCIES:
        return "numbers with a currency sign in some cells, {}: write it in all of them, or in the header"
    if match["unit"]:
        sign = "percent sign" if match["unit"] == "%" else "unit"
        return f"numbers with a {sign} in some cells, {{}}: write the same in all of them, or in the header"
    thousands = match["thousands"] or ""
    if "," in thousands:
        return "numbers whose comma may separate thousands or decimals, {}: write thousands without a mark"
    # A single dot before three digits is a decimal mark, and blanks may be those of a telephone number.
    has_marks = re.search(r"['\u2019]", thousands) or thousands.count(".") > 1
    return "numbers with marks between thousands, {}: write them without" if has_marks else ""

"""What a page about a model shows, as plain data: facts, cautions, and sections of texts, drawings and tables."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..short_text import format_number, format_numbers

Cell = str | float | int | bool | None
MAX_LINES = 200  # of a table: what is longer is cut, with a line that says so
MAX_CHARACTERS = 200  # of a cell
MAX_RATIO = 1000.0  # of numbers in a column that are shown with the same decimals
MIN_WORDY = 24  # characters of a cell, above which its column is given some width
MAX_NARROW = 10  # columns of a table that is printed in letters of the usual size
MAX_SHORT = 25  # lines of a table that is printed on one page


class Share(float):
    """A number that is shown as a percentage."""


@dataclass(frozen=True)
class Fact:
    """A number at the top of a page, in words or digits, and what it is."""

    value: str
    name: str
    note: str = ""


@dataclass(frozen=True)
class Table:
    """Lines of cells under a head; the first cell names the line.

    Attributes
    ----------
    caption : str
    head : tuple of str
    lines : tuple of tuples
        Texts, numbers (four digits are shown), shares (as percentages), True and False (yes and no), None (nothing).
    """

    caption: str
    head: tuple[str, ...]
    lines: tuple[tuple[Cell, ...], ...]

    @property
    def shown(self) -> tuple[tuple[str, ...], ...]:
        """The cells of the first lines as text."""
        columns = zip(*self.lines[:MAX_LINES], strict=True)
        return tuple(zip(*map(_format_column, columns), strict=True))

    @property
    def n_hidden(self) -> int:
        """How many lines are not shown."""
        return max(0, len(self.lines) - MAX_LINES)

    @property
    def is_number(self) -> tuple[bool, ...]:
        """Which columns hold numbers."""
        columns = zip(*self.lines, strict=True) if self.lines else ((),) * len(self.head)
        return tuple(
            any(is_number(cell) for cell in column) and all(cell is None or is_number(cell) for cell in column)
            for column in columns
        )

    @property
    def is_wordy(self) -> tuple[bool, ...]:
        """Which columns hold texts that need some width to be read."""
        columns = zip(*self.lines, strict=True) if self.lines else ((),) * len(self.head)
        return tuple(any(isinstance(cell, str) and len(cell) > MIN_WORDY for cell in column) for column in columns)

    @property
    def is_wide(self) -> bool:
        """Whether it needs small letters to fit on paper."""
        return len(self.head) > MAX_NARROW

    @property
    def is_short(self) -> bool:
        """Whether it fits on a page of paper."""
        return len(self.lines) <= MAX_SHORT


@dataclass(frozen=True)
class Section:
    """A part of a page.

    Attributes
    ----------
    title : str
    texts : tuple of str
        Paragraphs.
    drawings : tuple of str
        SVG elements.
    tables : tuple of Table
    code : str
        A command or program, shown as it is.
    """

    title: str
    texts: tuple[str, ...] = ()
    drawings: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    code: str = ""

    @property
    def anchor(self) -> str:
        """What a link to it names."""
        return re.sub(r"\W+", "-", self.title.lower()).strip("-")


@dataclass(frozen=True)
class Document:
    """All that a page shows."""

    title: str
    lead: str
    facts: tuple[Fact, ...]
    cautions: tuple[str, ...]
    sections: tuple[Section, ...]
    footer: str


def format_cell(cell: Cell) -> str:
    """Return a cell as text.

    Examples
    --------
    >>> [format_cell(cell) for cell in (0.123456, 3, True, None, "text", float("nan"), 12345.678)]
    ['0.1235', '3', 'yes', '', 'text', '–', '12350']
    >>> format_cell(Share(0.0366))
    '3.7 %'
    """
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, float):
        return f"{100 * cell:.1f} %" if isinstance(cell, Share) and cell == cell else format_number(cell)
    text = str(cell)
    return text if len(text) <= MAX_CHARACTERS else f"{text[: MAX_CHARACTERS - 1]}…"


def _format_column(cells: Sequence[Cell]) -> list[str]:
    """Return the cells of a column as text: numbers of about the same size have the same decimals."""
    numbers = [cell for cell in cells if isinstance(cell, float) and not isinstance(cell, Share)]
    sizes = [abs(number) for number in numbers if number and math.isfinite(number)]
    is_alike = bool(sizes) and max(sizes) <= MAX_RATIO * min(sizes)
    written = iter(format_numbers(numbers) if is_alike else map(format_number, numbers))
    return [
        next(written) if isinstance(cell, float) and not isinstance(cell, Share) else format_cell(cell)
        for cell in cells
    ]


def is_number(cell: Any) -> bool:
    """Return whether a cell is set flush right."""
    return isinstance(cell, float | int) and not isinstance(cell, bool)


def tabulate(
    caption: str, records: Sequence[dict[str, Any]], names: dict[str, str], shares: Sequence[str] = ()
) -> Table:
    """Return a table of records.

    Parameters
    ----------
    caption : str
    records : sequence of dict
    names : dict
        The fields that are shown, and what their columns are called.
    shares : sequence of str
        The fields that are shown as percentages.
    """
    lines = tuple(tuple(_plain(record.get(key), key in shares) for key in names) for record in records)
    return Table(caption, tuple(names.values()), lines)


def _plain(value: Any, is_share: bool) -> Cell:
    """Return a value as a cell; numpy's scalars become Python's."""
    value = value.item() if hasattr(value, "item") and getattr(value, "ndim", 0) == 0 else value
    if is_share and is_number(value):
        return Share(value)
    return value if value is None or isinstance(value, str | float | int | bool) else str(value)

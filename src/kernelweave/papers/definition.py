"""What a paper's table or figure is: names, settings, and one function that computes one cell.

A :class:`Paper` has items. An :class:`Item` is a table or a figure: rows (data sets, or places on an axis) by methods,
each repeated over trials. One of these is a :class:`Cell`; the item's ``run(cell, fast)`` returns its values: a number
for each :class:`Measure`, and lists of numbers for the curves that a :class:`Panel` draws. A value may be None where a
method has no such number. The key ``"data"``, if there is one, is ``"original"`` or ``"generated"``. Nothing here
knows how cells are run in parallel, kept or shown.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from importlib.resources import files
from typing import Any, Literal


@dataclass(frozen=True)
class Cell:
    """One number of a table, or one curve of a figure: a row and a method in one trial.

    Examples
    --------
    >>> cell = Cell("cg-boost", "table 1", "MNIST odd/even", "L, 1-norm", 0)
    >>> other = Cell("cg-boost", "table 1", "MNIST odd/even", "Q, 1-norm", 0)
    >>> cell.seed("paper", "trial") == other.seed("paper", "trial"), cell.seed() == other.seed()
    (True, False)
    """

    paper: str
    item: str
    row: str
    method: str
    trial: int

    def seed(self, *names: str) -> int:
        """Return a seed made of the fields named (all if none is): cells that agree in them share it."""
        chosen = {name: value for name, value in asdict(self).items() if not names or name in names}
        return int(hashlib.sha256(json.dumps(chosen, sort_keys=True).encode()).hexdigest()[:8], 16)


@dataclass(frozen=True)
class Measure:
    """A number that a table prints: its name in the cells' values, and which way is better.

    ``better=None``: it is shown and not judged, as seconds on another machine are. ``digits``: as many as are printed.
    """

    name: str
    unit: str = ""
    better: Literal["lower", "higher"] | None = None
    digits: int = 1


@dataclass(frozen=True)
class Panel:
    """A drawing: which values of the cells go where.

    ``x=None``: the rows are the places on the axis, numbers for lines and names for bars, and a point is the mean over
    trials. Otherwise ``x`` and ``y`` name lists in the values, and each trial is a curve. Style ``"links"`` joins
    the points (x, y) to those that ``to`` names. ``rows``, ``methods``: those that belong to the panel, by default all.
    """

    title: str
    x_label: str
    y_label: str
    y: str
    x: str | None = None
    style: Literal["line", "points", "bars", "links"] = "line"
    rows: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    to: tuple[str, str] | None = None
    log: Literal["", "x", "y", "xy"] = ""


@dataclass(frozen=True)
class Item:
    """A table or a figure.

    Attributes
    ----------
    kind, number
        As ``--table 1`` and ``--figure 1`` name it.
    rows, methods : tuple of str
        The first and the second name of the cells; pairs in ``absent`` do not exist.
    measures, panels
        What is tabulated, and what is drawn.
    run : callable
        ``run(cell, fast) -> dict``; a function of a module, so that it can be sent to another process. It draws at
        random from ``cell.seed(...)`` only. Where ``outside`` is true it also takes a method written ``module:Class``.
    trials, fast_trials : int
        How many, in a whole and in a fast run.
    protocol : str
        What is done, in sentences.
    settings, fast_settings : mapping
        The grids and constants that ``run`` uses, and those that it uses instead in a fast run. A record that was made
        with others is computed anew.
    own : tuple of str
        Methods of this library that the paper does not have.
    why : mapping
        From (row, method) to a sentence that says why our number is worse than the printed one; ``"*"`` stands for any.
    notes : tuple of str
        Where the item departs from the paper: programs nobody has, data that differ, damaged numbers.
    version : int
        Raised when ``run`` changes its results with the same settings.
    method_versions : mapping
        The same for single methods, such as those that rest on defaults; 1 where none is given.
    """

    kind: Literal["table", "figure"]
    number: int
    caption: str
    rows: tuple[str, ...]
    methods: tuple[str, ...]
    measures: tuple[Measure, ...]
    run: Callable[[Cell, bool], dict[str, Any]]
    trials: int
    protocol: str
    settings: Mapping[str, Any]
    fast_settings: Mapping[str, Any]
    fast_trials: int = 1
    panels: tuple[Panel, ...] = ()
    absent: frozenset[tuple[str, str]] = frozenset()
    own: tuple[str, ...] = ()
    why: Mapping[tuple[str, str], str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    outside: bool = False
    version: int = 1
    method_versions: Mapping[str, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """``"table 1"``, as cells and records have it."""
        return f"{self.kind} {self.number}"

    def digest(self, fast: bool, method: str = "") -> str:
        """Return a short hash of all that decides the values of a method's cells, apart from their names.

        Numbers count to 12 digits, so that the hash of a computed grid is the same on every processor.
        """
        used = dict(self.settings) | (dict(self.fast_settings) if fast else {})
        parts = [self.version, fast, _rounded(used)]
        if method in self.method_versions:
            parts.append(self.method_versions[method])
        text = json.dumps(parts, sort_keys=True, default=repr)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def cells(self, paper: str, trials: int, outside: tuple[str, ...] = ()) -> Iterator[Cell]:
        """Yield the cells trial by trial, so that a run that is stopped early has something of everything."""
        methods = self.methods + (outside if self.outside else ())
        for trial in range(trials):
            for row in self.rows:
                for method in methods:
                    if (row, method) not in self.absent:
                        yield Cell(paper, self.name, row, method, trial)


def _rounded(value: Any) -> Any:
    """Return a setting with 12 digits of each number: NumPy's powers differ in the last bit between processors."""
    if isinstance(value, Mapping):
        return {key: _rounded(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(inner) for inner in value]
    return float(f"{value:.12g}") if isinstance(value, float) else value


@dataclass(frozen=True)
class Paper:
    """A paper: its name on the command line, what it is, and the items that are reproduced."""

    name: str
    title: str
    reference: str
    items: tuple[Item, ...]

    def published(self) -> dict[str, Any]:
        """Return the printed numbers: ``{item: {"trials": ..., "rows": {row: {method: {measure: number}}}}}``.

        A number is a value, or a list of value and standard deviation where both are printed.
        """
        file = files(__package__) / "published" / f"{self.name}.json"
        items: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))["items"]
        return items

    def describe(self) -> dict[str, Any]:
        """Return the definition and the printed numbers as plain dictionaries and lists, for the report."""
        published = self.published()
        items = []
        for item in self.items:
            plain = {name: getattr(item, name) for name in ("kind", "number", "name", "caption", "protocol", "trials")}
            plain |= {name: getattr(item, name) for name in ("rows", "methods", "own", "notes", "fast_trials")}
            for kind in ("settings", "fast_settings"):
                plain[kind] = {key: readable(value) for key, value in getattr(item, kind).items()}
            plain["measures"] = [asdict(measure) for measure in item.measures]
            plain["panels"] = [asdict(panel) for panel in item.panels]
            plain["absent"] = sorted(item.absent)
            plain["why"] = [[row, method, text] for (row, method), text in item.why.items()]
            plain["published"] = published.get(item.name, {})
            items.append(plain)
        described = {"name": self.name, "title": self.title, "reference": self.reference, "items": items}
        plain_copy: dict[str, Any] = json.loads(json.dumps(described))  # tuples become lists
        return plain_copy


def readable(value: Any) -> str:
    """Return a setting as a reader wants it: short numbers, lists without brackets.

    Examples
    --------
    >>> readable((0.1, 1.0, 10)), readable("none"), readable({"L": 1e-4})
    ('0.1, 1, 10', 'none', 'L: 0.0001')
    """
    if isinstance(value, Mapping):
        return "; ".join(f"{key}: {readable(inner)}" for key, inner in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(readable(inner) for inner in value)
    return f"{value:g}" if isinstance(value, float) else str(value)

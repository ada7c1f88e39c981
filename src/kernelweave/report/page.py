"""One page from the records of a run: a self-contained HTML file, or Markdown for a repository.

Both show a count of verdicts, what is missing or lacks a reason, and for each item its numbers beside the printed ones,
the reasons, and in a fold the protocol, the settings and the warnings. HTML has the drawings; Markdown has of them some
points of the curves of the first trial.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape as html_escape
from importlib.resources import files
from typing import Any

from jinja2 import Environment

from .figures import draw, series
from .tables import VERDICTS, Compared, ItemTable, join

SIGNS = {"better": "✓", "equal": "=", "worse": "✗", "": ""}
N_POINTS = 8  # of a curve, in Markdown


@dataclass(frozen=True)
class Grid:
    """Numbers in lines and columns; ``judged`` if verdicts are meant."""

    title: str
    head: tuple[str, ...]
    lines: tuple[tuple[str, tuple[Compared | None, ...]], ...]
    judged: bool


@dataclass(frozen=True)
class ItemView:
    """What a page shows of an item."""

    title: str
    anchor: str
    table: ItemTable
    grids: tuple[Grid, ...]
    drawings: tuple[str, ...]
    records: tuple[dict[str, Any], ...] = field(repr=False)

    @property
    def item(self) -> dict[str, Any]:
        """The description of the item."""
        return self.table.item

    @property
    def to_explain(self) -> list[Compared]:
        """Cells that are worse than printed; a fast run owes no reasons."""
        return [] if self.table.fast else self.table.worse

    @property
    def made(self) -> str:
        """How many trials stand behind the numbers, and of what kind, in words."""
        counts = sorted({n for n in self.table.n_done.values() if n})
        total = self.table.n_trials if self.table.partial else None
        words = [_trials(counts, total) if counts else "no trial yet"]
        words += ["fast run"] if self.table.fast else []
        words += ["generated data"] if self.table.generated else []
        return ", ".join(words)


@dataclass(frozen=True)
class Page:
    """All that both forms of the page show."""

    papers: tuple[tuple[dict[str, Any], tuple[ItemView, ...]], ...]
    counts: dict[str, int]
    unexplained: tuple[tuple[ItemView, Compared], ...]
    missing: tuple[tuple[ItemView, int], ...]
    partial: tuple[ItemView, ...]
    without: tuple[str, ...]
    fast: bool
    generated: bool
    dates: str
    versions: tuple[str, ...]
    n_others: int


def build(
    sections: Sequence[dict[str, Any]],
    records: Sequence[dict[str, Any]],
    n_others: int = 0,
    without: Sequence[str] = (),
) -> Page:
    """Join descriptions and records to a page.

    Parameters
    ----------
    sections : sequence of dict
        Descriptions of the papers.
    records : sequence of dict
        One for each cell.
    n_others : int
        Records that were left out, since they were made with other settings.
    without : sequence of str
        Names of papers that have no records, and no section.
    """
    papers = []
    for section in sections:
        views = []
        for item in section["items"]:
            mine = [r for r in records if (r["paper"], r["item"]) == (section["name"], item["name"])]
            views.append(_view(section, item, mine))
        papers.append((section, tuple(views)))
    every = [view for _, views in papers for view in views]
    dates = sorted({record["date"] for record in records})
    return Page(
        papers=tuple(papers),
        counts={verdict: sum(view.table.count(verdict) for view in every) for verdict in VERDICTS},
        unexplained=tuple((view, cell) for view in every for cell in view.to_explain if not cell.why),
        missing=tuple((view, view.table.n_missing) for view in every if view.table.n_missing),
        partial=tuple(view for view in every if view.table.partial),
        without=tuple(without),
        fast=any(view.table.fast for view in every),
        generated=any(view.table.generated for view in every),
        dates=" to ".join(dict.fromkeys([*dates[:1], *dates[-1:]])),
        versions=tuple(dict.fromkeys(", ".join(f"{k} {v}" for k, v in r["versions"].items()) for r in records)),
        n_others=n_others,
    )


def html(page: Page) -> str:
    """Return the page as HTML that needs nothing else."""
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"number": number, "signed": signed}
    environment.globals |= {"SIGNS": SIGNS, "digits": digits}
    source = (files(__package__) / "page.html.jinja").read_text(encoding="utf-8")
    return environment.from_string(source).render(page=page, cautions=warnings_of(page))


def markdown(page: Page) -> str:
    """Return the page as Markdown."""
    return "\n".join(_markdown_lines(page)) + "\n"


def number(value: float | None, n_digits: int) -> str:
    """Return a number with the digits that are printed; a dash for none.

    Examples
    --------
    >>> number(13.456, 1), number(None, 1), number(0.00119, 5)
    ('13.5', '–', '0.00119')
    """
    return "–" if value is None else f"{value:.{n_digits}f}"


def signed(value: float, n_digits: int) -> str:
    """Return a number with its sign, a true minus.

    Examples
    --------
    >>> signed(-5.25, 1), signed(0.3, 1)
    ('−5.2', '+0.3')
    """
    return f"{value:+.{n_digits}f}".replace("-", "−")


def digits(view: ItemView, cell: Compared) -> int:
    """Return how many digits the measure of a cell is shown with."""
    return next(int(m["digits"]) for m in view.item["measures"] if m["name"] == cell.measure)


def _view(section: dict[str, Any], item: dict[str, Any], records: Sequence[dict[str, Any]]) -> ItemView:
    table = join(item, records)
    anchor = re.sub(r"\W+", "-", f"{section['name']}-{item['name']}")
    drawings = tuple(draw(item, panel, records, f"{anchor}-{k}") for k, panel in enumerate(item["panels"]))
    title = f"{item['kind'].capitalize()} {item['number']}"
    return ItemView(title, anchor, table, tuple(_grids(table)), drawings, tuple(records))


def _grids(table: ItemTable) -> Iterator[Grid]:
    """Yield the numbers of an item: one row is a grid of methods by measures, several are a grid for each measure."""
    item = table.item
    if len(item["rows"]) == 1:
        row = item["rows"][0]
        cells = {(c.method, c.measure): c for c in table.cells.values()}
        names = [measure["name"] for measure in item["measures"]]
        heads = tuple(_head(measure) for measure in item["measures"])
        lines = tuple((method, tuple(cells.get((method, name)) for name in names)) for method in table.methods)
        yield Grid(row, heads, lines, judged=True)
        return
    for measure in sorted(item["measures"], key=lambda measure: measure["better"] is None):
        mine = {(c.row, c.method): c for c in table.cells.values() if c.measure == measure["name"]}
        shown = {key for key, cell in mine.items() if cell.status != "none"}
        methods = [method for method in table.methods if any((row, method) in shown for row in item["rows"])]
        rows = [row for row in item["rows"] if any((row, method) in shown for method in methods)]
        lines = tuple((row, tuple(mine.get((row, method)) for method in methods)) for row in rows)
        if lines:
            yield Grid(_head(measure), tuple(methods), lines, judged=measure["better"] is not None)


def _head(measure: dict[str, Any]) -> str:
    arrow = {"lower": " ↓", "higher": " ↑", None: ""}[measure["better"]]
    unit = f" ({measure['unit']})" if measure["unit"] else ""
    return f"{measure['name']}{unit}{arrow}"


def _markdown_lines(page: Page) -> Iterator[str]:
    yield "# Reproduction of the papers' tables and figures\n"
    yield "Made by `kernelweave papers report`; do not edit by hand.\n"
    counts = " · ".join(f"{SIGNS[name]} {page.counts[name]} {name}" for name in VERDICTS)
    yield f"**{counts}** than printed (equal: within one standard error).\n"
    yield from (f"> {_plain(text)}\n" for text in warnings_of(page))
    yield "Each cell: our mean (standard deviation), then the printed number, the verdict and the difference. ↓ lower"
    yield "is better, ↑ higher is better; numbers without an arrow are not judged. \\* marks methods that are not the"
    yield "paper's.\n"
    for section, views in page.papers:
        yield f"- [{section['title']}](#{_slug(section['title'])})"
        for view in views:
            yield f"  - {view.title}: {view.item['caption']}"
    for section, views in page.papers:
        yield f"\n## {section['title']}\n"
        yield f"{section['reference']} Run: `kernelweave papers run {section['name']}`"
        for view in views:
            yield from _markdown_item(view)
    yield "\n## Versions\n"
    yield _plain(f"Computed on {page.dates or 'no day yet'} with " + "; ".join(page.versions or ("nothing",)) + ".")


def _markdown_item(view: ItemView) -> Iterator[str]:
    yield f"\n### {view.title}: {view.item['caption']}\n"
    yield f"{view.made}.\n"
    for grid in view.grids:
        yield f"**{grid.title}**\n"
        yield "| | " + " | ".join(_star(view, name) for name in grid.head) + " |"
        yield "|---" * (len(grid.head) + 1) + "|"
        for label, cells in grid.lines:
            yield f"| {_star(view, label)} | " + " | ".join(_markdown_cell(view, cell) for cell in cells) + " |"
        yield ""
    for panel in view.item["panels"]:
        if panel["x"] is not None and panel["style"] != "links":
            yield f"**{panel['title']}**: {panel['y_label']} against {panel['x_label']}, first trial\n"
            for name, curves in series(view.item, panel, view.records).items():
                step = max(1, -(-len(curves[0]) // N_POINTS))
                points = dict.fromkeys([*curves[0][::step], curves[0][-1]])
                yield f"- {_plain(name)}: " + ", ".join(f"({x:g}, {y:.4g})" for x, y in points)
            yield ""
    for cell in view.to_explain:
        yield f"- ✗ {_plain(f'{cell.row}, {cell.method}')}, {cell.measure}: {cell.why or 'unexplained'}"
    for text in view.table.errors:
        yield f"- failed: {_plain(text)}"
    yield "\n<details><summary>Protocol and settings</summary>\n"
    yield view.item["protocol"] + "\n"
    for name, value in view.item["settings"].items():
        yield f"- {name}: {value}"
    if view.table.fast:
        yield "\nIn this fast run:\n"
        yield from (f"- {name}: {value}" for name, value in view.item["fast_settings"].items())
    for note in [*view.item["notes"], *filter(None, [view.item["published"].get("note")])]:
        yield f"\n{note}"
    if view.table.warnings:
        yield "\nWarnings while computing:\n"
        yield from (f"- {_plain(text)}" for text in view.table.warnings)
    yield "\n</details>"


def warnings_of(page: Page) -> list[str]:
    """Return what a reader must know before the numbers, a sentence each."""
    warnings = []
    if page.fast:
        warnings.append("This is a fast run: few trials, small samples and short grids. It shows that everything runs.")
    if page.generated:
        warnings.append("Some data were not at hand and were generated: those numbers are not compared.")
    if page.without:
        warnings.append(f"There are no records of {', '.join(page.without)}: what is not computed is not shown.")
    for view, n in page.missing:
        warnings.append(f"No number yet for {n} of {len(view.table.n_done)} pairs of row and method in {_where(view)}.")
    for view in page.partial:
        some, n_pairs = view.table.partial, len(view.table.n_done)
        warnings.append(
            f"Only {_trials(some, view.table.n_trials)} for {len(some)} of {n_pairs} pairs of row and method in "
            f"{_where(view)}."
        )
    for view, cell in page.unexplained:
        warnings.append(
            f"Unexplained: {_where(view)}, {cell.row}, {cell.method}, {cell.measure} is worse than printed."
        )
    if page.n_others:
        warnings.append(f"{page.n_others} records were made with other settings and are left out.")
    return warnings


def _trials(counts: Sequence[int], total: int | None = None) -> str:
    """Return numbers of trials, sorted, in words, such as ``2 to 5 of 30 trials``."""
    many = f"{counts[0]}" if counts[0] == counts[-1] else f"{counts[0]} to {counts[-1]}"
    return f"{many}{f' of {total}' if total else ''} trial{'' if (total or counts[-1]) == 1 else 's'}"


def _where(view: ItemView) -> str:
    return view.anchor.replace("-", " ")


def _star(view: ItemView, name: str) -> str:
    own = name in view.item["own"] or (name in view.table.methods and name not in view.item["methods"])
    return f"{_plain(name)} \\*" if own else _plain(name)


def _plain(text: str) -> str:
    r"""Return a text of a record in one line of Markdown that means these characters: no HTML, no link, no column.

    Examples
    --------
    >>> _plain("<script>alert(1)</script> | [a](b)\n `c`")
    '&lt;script&gt;alert(1)&lt;/script&gt; \\| \\[a\\](b) \\`c\\`'
    """
    line = " ".join(str(text).split())
    return re.sub(r"[\\`|\[\]]", r"\\\g<0>", html_escape(line, quote=False))


def _markdown_cell(view: ItemView, cell: Compared | None) -> str:
    if cell is None or cell.status == "none":
        return ""
    n = digits(view, cell)
    if cell.status != "done":
        return cell.status if cell.printed is None else f"{cell.status}; printed {number(cell.printed, n)}"
    assert cell.mean is not None
    text = f"**{number(cell.mean, n)}**" + (f" ({number(cell.sd, n)})" if cell.sd is not None else "")
    if view.table.lacking(cell):
        text += f" {_trials([cell.trials], view.table.n_trials)}"
    if cell.printed is None:
        return text
    sd = f" ({number(cell.printed_sd, n)})" if cell.printed_sd is not None else ""
    judged = (
        f"; {SIGNS[cell.verdict]} {signed(cell.difference, n)}" if cell.difference is not None and cell.verdict else ""
    )
    return f"{text}; {number(cell.printed, n)}{sd}{judged}"


def _slug(title: str) -> str:
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")

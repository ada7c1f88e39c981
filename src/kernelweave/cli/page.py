"""The pages of ``--report``: what a command learned, as one HTML file."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ErrorCode, KernelweaveError
from ..files import check_output
from ..inspection.comparison import SIMPLEST
from ..inspection.fit_evidence import read_evidence
from ..inspection.model_report import make_page, render_page
from ..labeling.tasks import read_classes, read_numbers
from ..report.content import Fact, Section, Share, Table, format_cell, tabulate
from ..short_text import format_number
from .display import describe_used, print_note
from .reading import Given

IMPORTANCE = {"name": "name", "importance": "rise of the error", "low": "from", "high": "to"}
N_DRAWN = 20  # columns, the most important ones
ERRORS = ("error", "low", "high", "difference", "difference_low", "difference_high")
LEARNERS = {
    "learner": "learner",
    "error": "error",
    "low": "from",
    "high": "to",
    "difference": "more than the best",
    "difference_low": "from",
    "difference_high": "to",
    "seconds": "seconds",
    "size": "size",
    "status": "status",
}


def check_packages() -> None:
    """Refuse a report before the work if what makes it is not installed."""
    try:
        import jinja2  # noqa: F401

        from ..report import drawing  # noqa: F401
    except ImportError as missing:
        raise KernelweaveError(
            f"--report needs {missing.name}: pip install 'kernelweave[report]'", ErrorCode.BAD_OPTION
        ) from None


def check_page(file: Path | None, *tables: Path) -> None:
    """Refuse a page that cannot be made or written, before the work."""
    if file is not None:
        check_packages()
        for table in tables:
            check_output(file, table)


def name_page(file: Path | None) -> None:
    """Say where the page is, beside what is printed for people or programs."""
    if file is not None:
        print_note(f"The page to look at is {file}.")


def learned_page(given: Given, X: np.ndarray, model: Any, report: dict[str, Any]) -> bytes:
    """Return the page about the labels of a table, and about the model that fills them in.

    Parameters
    ----------
    given : Given
    X : ndarray of shape (n_rows, n_features)
        The encoded rows.
    model : ClassModel or NumberModel
    report : dict
        What the command prints, with the importance of columns if it is known.
    """
    target, has_classes = given.options.target, report["task"] == "classification"
    lead = f"{report['table']}: {report['rows']:,} rows, of which {report['rows_labeled']:,} have a label."
    scale: dict[str, float] = {}
    if has_classes:
        y, _ = read_classes(given.cells, given.empty, target, None)
    else:
        y = (read_numbers(given.cells, given.empty, target, None) - model.center) / model.unit
        scale = {"center": model.center, "unit": model.unit}
        lead += f" Errors are in the unit of {target}, whose standard deviation is {format_number(model.unit)}."
    fit = read_evidence(model.learner, X, y, **scale, name_row=_row_namer(given), name_label=model.write_label)
    more = {
        "cautions": report["warnings"],
        "first": _importance_sections(report),
        "sections": [_columns_section(report)],
    }
    page = make_page(fit, f"{target}: what was learned", lead, **more, code=repeat_command())
    return page.encode("utf-8", "backslashreplace")


def compared_page(report: dict[str, Any]) -> bytes:
    """Return the page about a comparison of learners."""
    is_classes, n_labeled = report["task"] == "classification", report["rows_labeled"]
    unit = "shares of wrong classes" if is_classes else "root mean squared errors"
    shares = ERRORS if is_classes else ()
    table = tabulate("All learners under the same folds, the best first", report["learners"], LEARNERS, shares)
    tested = [each for each in report["learners"] if each["rows"]]
    drawings = _draw_intervals(tested, ("learner", "error", "low", "high"), "learner", "error", is_classes)
    best = next((each for each in report["learners"] if each["learner"] == report["best"]), None)
    advice = f"{report['advice'][:1].upper()}{report['advice'][1:]}"
    facts = []
    if best is not None:
        simplest = next(each for each in report["learners"] if each["learner"] in SIMPLEST.values())
        error, usual = (format_cell((Share if is_classes else float)(each["error"])) for each in (best, simplest))
        facts.append(Fact(str(best["learner"]), "has the smallest error", f"{error} on held-out rows"))
        facts.append(Fact(usual, f"error of the {simplest['learner']}", "to compare with"))
    page = render_page(
        title=f"{report['options']['target']}: learners compared",
        lead=f"{report['table']}: {n_labeled:,} rows with a label, {report['rows'] - n_labeled:,} without.",
        facts=tuple(facts),
        cautions=tuple(report["warnings"]),
        sections=(
            Section("Learners", (advice, f"Errors are {unit}, on held-out rows."), drawings, (table,)),
            _columns_section(report),
            Section("How to repeat it", code=repeat_command()),
        ),
    )
    return page.encode("utf-8", "backslashreplace")


def repeat_command() -> str:
    """Return the command line that was given."""
    return shlex.join(["kernelweave", *sys.argv[1:]])


def _row_namer(given: Given) -> Any:
    """Return how rows are called: by their identifiers if there are some, and by their number in the file."""
    first = 1 if given.table.format == "parquet" else 2

    def name_row(row: int) -> str:
        identity = [str(given.frame[name].iloc[row]) for name in given.options.id_columns]
        number = int(given.frame.index[row]) + first  # some rows of a large table are learned from
        return f"{', '.join(identity)} (row {number})" if identity else str(number)

    return name_row


def _importance_sections(report: dict[str, Any]) -> list[Section]:
    records = report.get("importance", [])
    if not records:
        return []
    is_classes = report["task"] == "classification"
    shares = tuple(IMPORTANCE) if is_classes else ()
    by_kind = {kind: [each for each in records if each["kind"] == kind] for kind in ("source", "column")}
    tables = tuple(
        tabulate(f"{kind.capitalize()}s, the most important first", found, IMPORTANCE, shares)
        for kind, found in by_kind.items()
        if found
    )
    shown = [*by_kind["source"], *by_kind["column"][:N_DRAWN]]
    fields = ("name", "importance", "low", "high")
    drawings = _draw_intervals(shown, fields, "source or column", "rise of the error", is_classes)
    text = (
        f"By how much the error of {report['explained']} on held-out rows rises when the cells of a column are those "
        "of other rows, with a 95 % interval."
    )
    return [Section("Which columns decide", (text,), drawings, tables)]


def _draw_intervals(
    records: list[dict[str, Any]], fields: tuple[str, str, str, str], what: str, x_label: str, is_classes: bool
) -> tuple[str, ...]:
    """Return a drawing of numbers with intervals; nothing where there are none."""
    from ..report.bars import BAR_INCHES, draw_intervals
    from ..report.drawing import draw_svg

    if not records:
        return ()
    name, *numbers = fields
    scale = 100.0 if is_classes else 1.0
    values, lows, highs = (scale * np.array([float(each[key]) for each in records]) for key in numbers)
    names, label = [str(each[name]) for each in records], f"{x_label}, %" if is_classes else x_label

    def plot(ax: Any) -> Any:
        return draw_intervals(ax, names, values, lows, highs, what=what, x_label=label)

    return (draw_svg(plot, "intervals", f"{x_label} by {what}", (6.4, 1.2 + BAR_INCHES * len(records))),)


def _columns_section(report: dict[str, Any]) -> Section:
    used, left_out = describe_used(report["columns"]), report["columns"]["left_out"]
    tables = [Table("Used", ("column", "read as"), tuple(used.items()))]
    tables += [Table("Left out", ("column", "why"), tuple(left_out.items()))] if left_out else []
    return Section("Columns", (), (), tuple(tables))

"""``kernelweave compare``: all learners, ours and scikit-learn's, on the user's own table under the same folds."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from rich.markup import escape

from ..errors import ErrorCode, KernelweaveError
from ..files import atomic_write
from ..inspection.comparison import SIMPLEST, Comparison, compare_learners
from ..inspection.peers import list_learners
from ..labeling.problem import Problem, ReadingOptions, read_problem
from ..labeling.tasks import read_classes, read_numbers
from ..short_text import suggest_names
from . import options as asked
from .display import make_grid, open_console, print_json, show_columns, show_notes, show_stages, write_columns
from .harmless import harmless
from .options import LEARNING, option
from .outputs import name_sources
from .page import check_page, compared_page, name_page
from .reading import describe_run, read_given
from .streams import mark_work_done


def compare(
    tables: asked.Tables,
    target: asked.Target,
    unlabeled: asked.Unlabeled = None,
    id_column: asked.Ids = None,
    ignore: asked.Ignore = None,
    group: asked.Group = None,
    source: asked.Source = None,
    scale: asked.Scale = "auto",
    task: asked.Task = "auto",
    learner: Annotated[
        list[str] | None, option("Compare this one only; may be given several times.", LEARNING, metavar="NAME")
    ] = None,
    time_limit: asked.TimeLimit = None,
    seed: asked.Seed = 0,
    report_file: asked.Report = None,
    quiet: asked.Quiet = False,
    json_: asked.Json = False,
) -> None:
    """Compare all learners, and scikit-learn's, on the labelled rows of a table.

    All have the same folds; a held-out row stays in training as an unlabelled one. No file is written but --report.

    Example: kernelweave compare patients.csv --target outcome --time-limit 60
    """
    unlabeled = asked.read_word(unlabeled)
    check_page(report_file, *tables)
    options = asked.read_options(
        ReadingOptions,
        target=target,
        id_column=id_column,
        ignore=ignore,
        group=group,
        source=source,
        scale=scale,
        task=task,
        time_limit=time_limit,
        seed=seed,
    )
    with show_stages(is_quiet=quiet or json_, time_limit=time_limit) as on_stage:
        on_stage("reading the table", 0.0)
        given = read_given(tables, options, unlabeled)
        problem = read_problem(given.frame, given.cells, given.empty, given.options, on_stage)
        found = _compare(problem, options.target, asked.read_words(learner))
        notes = on_stage.take_notes()
    report = describe_run(tables, given.options, unlabeled) | problem.describe(given.options)
    report |= _describe(found) | {"seconds": round(problem.setup.clock.elapsed, 2)}
    report["warnings"] = [*given.notes, *problem.notes, *_note_limits(found), *notes]
    if report_file is not None:
        atomic_write(report_file, compared_page(report), like=name_sources(tables))
    mark_work_done()
    print_json(report) if json_ else show_comparison(report)
    name_page(report_file)


def _compare(problem: Problem, target: str, names: list[str]) -> Comparison:
    setup = problem.setup
    kind = "classes" if problem.task == "classification" else "numbers"
    read: Any = (lambda *given: read_classes(*given)[0]) if kind == "classes" else read_numbers
    y = read(problem.cells, problem.empty, target, setup.groups)
    learners = _find_learners(list_learners(setup.X, int((~problem.empty).sum()), kind), names, problem.task)
    n_steps = 2 * len(learners)

    def on_step(state: Any) -> None:
        setup.on_stage(state.phase, 0.05 + 0.9 * min(1.0, state.iteration / n_steps))

    try:
        found = compare_learners(
            setup.X,
            y,
            task=kind,
            learners=learners,
            kernels=setup.library,
            groups=setup.groups,
            unlabeled=None,
            max_time=setup.clock.left,
            callback=on_step,
            random_state=setup.seed,
        )
    except ValueError as error:
        raise KernelweaveError(f"{error} Label more rows.", ErrorCode.BAD_TARGET) from None
    if found.status.name == "SEARCH_STOPPED":  # Ctrl-C: half a comparison would mislead
        raise KeyboardInterrupt
    return found


def _find_learners(learners: list[Any], names: list[str], task: str) -> list[Any]:
    """Return the learners of these names, in the order of all; all of them where none is named."""
    known = {(each if isinstance(each, str) else each[0]).casefold(): each for each in learners}
    for name in names:
        if name.casefold() not in known:
            names_known = [each if isinstance(each, str) else each[0] for each in learners]
            raise KernelweaveError(
                f"--learner {name!r} is not a learner for {task}; choose from {', '.join(map(repr, names_known))}."
                f"{suggest_names([name], names_known)}",
                ErrorCode.BAD_OPTION,
            )
    wanted = {name.casefold() for name in names}
    return [each for key, each in known.items() if key in wanted or not wanted]


def _describe(found: Comparison) -> dict[str, Any]:
    helped = found.unlabeled_helped
    verdict = {} if helped is None else {**asdict(helped), "verdict": helped.verdict}
    return {
        "learners": found.records,
        "best": found.best,
        "rows_tested": max((record["rows"] for record in found.records), default=0),
        "complete": found.is_complete,
        "unlabeled_helped": verdict or None,
        "advice": found.advice,
    }


def _note_limits(found: Comparison) -> list[str]:
    """Return sentences on what time or failures kept from being compared."""
    notes = []
    if not found.best:
        notes.append("Too few labelled rows could be held out: nothing is known about the errors.")
    elif not found.is_complete:
        most = max(record["rows"] for record in found.records)
        fewer = [record["learner"] for record in found.records if 0 < record["rows"] < most]
        never = [record["learner"] for record in found.records if not record["rows"] and record["status"] == "no time"]
        late = f"not tested: {', '.join(never)}" if never else ""
        part = f"on fewer rows than the others: {', '.join(fewer)}" if fewer else ""
        notes.append(
            f"The time limit binds, so that not all learners were compared on all rows "
            f"({'; '.join(filter(None, (late, part))) or 'some folds are missing'}). Raise --time-limit."
        )
    for record in found.records:
        if record["status"].startswith("failed: "):
            why = " ".join(record["status"].partition(": ")[2].split())  # estimators are written in several lines
            notes.append(f"{record['learner']} could not be fitted: {why}")
    return notes


def show_comparison(report: dict[str, Any]) -> None:
    """Print a comparison for people."""
    report, console = harmless(report), open_console()
    is_classes = report["task"] == "classification"
    console.print(
        f"[bold]{report['rows_tested']:,}[/] of {report['rows_labeled']:,} labelled rows held out, "
        f"{report['rows'] - report['rows_labeled']:,} rows without a label: {report['task']} ({report['task_was']})"
    )
    measure = "wrong classes in %" if is_classes else "root mean squared errors"
    console.print(f"{measure}, 95 % intervals; + unlabelled rows, * scikit-learn:")
    sides = {"error": "right", "interval": "right", "worse_than_best": "right", "seconds": "right", "size": "right"}
    grid = make_grid(lines=False, learner="left", **sides)
    grid.columns[0].no_wrap = True
    shown = [record for record in report["learners"] if record["status"] != "no time"]  # a note names the others
    for record, cells in zip(shown, _write_cells(shown, is_classes, report["best"]), strict=True):
        marks = "+" * record["uses_unlabeled"] + "*" * (record["package"] == "scikit-learn")
        name = f"{escape(record['learner'])} {marks}".strip()
        name = f"[bold]{name}[/]" if record["learner"] == report["best"] else name
        cost = [f"{record['seconds']:.1f}", f"{record['size']:,}" if record["size"] else ""]
        is_free = record["learner"] in SIMPLEST.values()
        grid.add_row(name, *cells, *(["", ""] if is_free else cost))
    console.print(grid)
    show_notes(console, report["warnings"])
    show_columns(console, report["columns"])
    console.print(f"[bold]advice:[/] {escape(report['advice'])}")


def _write_cells(records: list[dict[str, Any]], is_classes: bool, best: str) -> list[list[str]]:
    """Return error, interval, and difference to the best with its interval, of each learner."""
    errors = write_columns(records, ("error", "low", "high"), is_classes)
    differences = write_columns(records, ("difference", "difference_low", "difference_high"), is_classes)
    lines = []
    for record, (error, low, high), (difference, first, last) in zip(records, errors, differences, strict=True):
        gap = "the best" if record["learner"] == best else f"{difference} ({first}, {last})"
        why = "failed" if record["status"].startswith("failed") else record["status"]
        is_known = "–" not in (error, low, high, difference, first, last)
        lines.append([error, f"{low} – {high}", gap] if is_known else [why, "", ""])
    return lines

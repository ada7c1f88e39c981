"""``kernelweave papers``: compute the papers' tables and figures again, and compare them with the printed ones."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from joblib import cpu_count
from rich.table import Table as Lines

from ..errors import ErrorCode, KernelweaveError
from ..files import atomic_write, reason
from .display import open_console, print_json, show_stages
from .harmless import harmless
from .options import check_limit
from .streams import as_text, mark_work_done

if TYPE_CHECKING:
    from ..papers.definition import Paper
    from ..papers.runner import Progress, Record, Task

FOLDER = Path("reproduction")

app = typer.Typer(
    name="papers",
    no_args_is_help=True,
    add_completion=False,
    help="Reproduce the papers' tables and figures.\n\nExample: kernelweave papers run all --fast",
)


Json = Annotated[bool, typer.Option("--json", help="Print what is said as JSON.")]


class _TimeOverError(Exception):
    """The time limit of a run is reached; finished cells are kept."""


@app.command("list")
def list_papers(json_: Json = False) -> None:
    """List the papers with their tables and figures.

    Example: kernelweave papers list
    """
    from ..papers import PAPERS

    items = [
        {
            "paper": paper.name,
            "item": item.name,
            "what": item.caption,
            "cells": sum(1 for _ in item.cells(paper.name, item.trials)),
        }
        for paper in PAPERS.values()
        for item in paper.items
    ]
    if json_:
        print_json({"items": items})
        return
    lines = Lines("paper", "item", "what", "cells", box=None, header_style="bold")
    for record in items:
        lines.add_row(*(harmless(str(value)) for value in record.values()))
    open_console().print(lines)


@app.command()
def run(
    paper: Annotated[str, typer.Argument(help="Name of a paper, or all.")],
    table: Annotated[int | None, typer.Option(help="Only the table of this number.")] = None,
    figure: Annotated[int | None, typer.Option(help="Only the figure of this number.")] = None,
    trials: Annotated[int | None, typer.Option(help="Trials of each cell (default: the paper's).")] = None,
    fast: Annotated[bool, typer.Option("--fast", help="Small samples and few trials: takes minutes.")] = False,
    jobs: Annotated[
        int | None, typer.Option(help="Number of processes (default: one per core); does not change values.")
    ] = None,
    with_: Annotated[
        list[str] | None,
        typer.Option("--with", help="module:Class of a scikit-learn estimator, compared on the same splits."),
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option(help="Stop after about so long; finished cells are kept.", metavar="SECONDS")
    ] = None,
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder of the records.")] = FOLDER,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
    json_: Json = False,
) -> None:
    """Compute the cells of PAPER that have no record in the folder yet; a run that was stopped continues.

    Example: kernelweave papers run rkda --fast
    """
    papers = _find_papers(paper)
    check_limit(time_limit)
    _check_counts(trials=trials, jobs=jobs)
    _check_outside(with_ or ())
    tasks = _plan(papers, _find_item(table, figure), trials, fast, with_ or ())
    if output.exists() and not output.is_dir():
        raise KernelweaveError(f"'{output}' is not a folder; name another one with -o.", ErrorCode.BAD_OPTION)
    records, is_over = _execute(tasks, output, jobs or cpu_count(), time_limit, is_quiet=quiet or json_)
    mark_work_done()
    _summarize(tasks, records, output, is_over, json_)


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="Folder of the records.")] = FOLDER,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="The page (default: report.html in the folder).")
    ] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write Markdown to this file, too.")] = None,
    json_: Json = False,
) -> None:
    """Write one self-contained HTML page that compares the records with the printed numbers.

    Example: kernelweave papers report reproduction
    """
    from ..papers import PAPERS, runner

    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # it reports folders that it does not need
    try:
        from ..report import page as pages
    except ImportError as missing:
        raise KernelweaveError(
            f"The report needs {missing.name}: pip install 'kernelweave[report]'", ErrorCode.BAD_OPTION
        ) from None
    papers = [paper for paper in PAPERS.values() if (folder / f"{paper.name}.jsonl").exists()]
    records, n_others = runner.current_records(papers, folder)
    if not records:
        raise KernelweaveError(
            f"'{folder}' has no records of a run; make some with kernelweave papers run all --fast -o {folder}",
            ErrorCode.NO_RECORDS,
        )
    without = [name for name in PAPERS if not (folder / f"{name}.jsonl").exists()]
    page = pages.build([paper.describe() for paper in papers], records, n_others, without)
    written = [(output or folder / "report.html", pages.html)]
    if markdown is not None:
        written.append((markdown, pages.markdown))
    for path, write in written:
        text = "\n".join(map(harmless, write(page).split("\n")))  # records may be of others
        atomic_write(path, text.encode("utf-8", "replace"))  # names of files need not be UTF-8
    mark_work_done()
    if json_:
        print_json({"counts": dict(page.counts), "written": [as_text(str(path)) for path, _ in written]})
        return
    counts = ", ".join(f"{count} {verdict}" for verdict, count in page.counts.items())
    print(harmless(f"{counts} than printed; written to {' and '.join(str(path) for path, _ in written)}"))


def _find_papers(name: str) -> list[Paper]:
    from ..papers import PAPERS

    if name == "all":
        return list(PAPERS.values())
    if name not in PAPERS:
        raise KernelweaveError(
            f"There is no paper {name!r}; there are {', '.join(PAPERS)} and all.", ErrorCode.BAD_OPTION
        )
    return [PAPERS[name]]


def _find_item(table: int | None, figure: int | None) -> tuple[str | None, int | None]:
    if table is not None and figure is not None:
        raise KernelweaveError(
            "--table and --figure are both given; give one of them, or none for all.", ErrorCode.BAD_OPTION
        )
    if table is not None:
        return "table", table
    return ("figure", figure) if figure is not None else (None, None)


def _list_comparisons(papers: list[Paper]) -> str:
    """Return which items of the papers compare other estimators."""
    names = [f"{paper.name} {item.name}" for paper in papers for item in paper.items if item.outside]
    return f"these do: {', '.join(names)}" if names else f"no item of {papers[0].name} does"


def _check_counts(**numbers: int | None) -> None:
    """Refuse numbers of trials and processes below 1."""
    for name, number in numbers.items():
        if number is not None and number < 1:
            raise KernelweaveError(f"--{name} {number} is not a whole number of 1 or more.", ErrorCode.BAD_OPTION)


def _check_outside(names: Sequence[str]) -> None:
    """Refuse names of estimators that cannot be imported."""
    from ..papers.outside import outside

    for name in names:
        try:
            given = outside(name)
        except ValueError as error:
            raise KernelweaveError(str(error), ErrorCode.BAD_OPTION) from None
        if given is None:
            raise KernelweaveError(
                f"--with {name!r} is not module:Class, such as sklearn.svm:SVC.", ErrorCode.BAD_OPTION
            )


def _plan(
    papers: list[Paper], item: tuple[str | None, int | None], trials: int | None, fast: bool, outside: Sequence[str]
) -> list[Task]:
    """Return the cells that are asked for; refuse an item that there is not, and --with where nothing is compared."""
    from ..papers import runner

    kind, number = item
    tasks = runner.plan(papers, kind=kind, number=number, trials=trials, fast=fast, outside=outside)
    if not tasks:
        known = ", ".join(f"{p.name}: {' and '.join(item.name for item in p.items)}" for p in papers)
        raise KernelweaveError(f"There is no {kind} {number}; there are {known}.", ErrorCode.BAD_OPTION)
    if outside and not any(task.item.outside for task in tasks):
        raise KernelweaveError(
            f"--with is given, but nothing that is chosen compares other estimators; {_list_comparisons(papers)}.",
            ErrorCode.BAD_OPTION,
        )
    return tasks


def _execute(
    tasks: list[Task], folder: Path, n_jobs: int, time_limit: float | None, *, is_quiet: bool
) -> tuple[list[Record], bool]:
    """Compute cells; return the records of all, or of those that were finished when the time was over."""
    from ..papers import runner

    try:
        with _show_cells(time_limit, is_quiet) as watch:
            return runner.execute(tasks, folder, n_jobs=n_jobs, watch=watch), False
    except _TimeOverError:
        names = dict.fromkeys(task.cell.paper for task in tasks)
        kept = [runner.find_finished(runner.read_records(folder / f"{name}.jsonl")) for name in names]
        wanted = {task.key for task in tasks}
        return [record for found in kept for key, record in found.items() if key in wanted], True
    except KeyboardInterrupt:
        raise KernelweaveError(
            f"Interrupted; finished cells are kept in '{folder}'. Run the same command to continue.",
            ErrorCode.INTERRUPTED,
        ) from None
    except BrokenProcessPool:
        raise KernelweaveError(
            f"A process was killed, perhaps because memory ran out; finished cells are kept in '{folder}'. Run the "
            "same command with fewer --jobs to continue.",
            ErrorCode.FAILED_CELLS,
        ) from None
    except OSError as error:
        raise KernelweaveError(
            f"The records cannot be written to '{folder}': {reason(error)}.", ErrorCode.BAD_OPTION
        ) from None


def _summarize(tasks: list[Task], records: list[Record], folder: Path, is_over: bool, json_: bool) -> None:
    """Say how many cells are computed and what comes next; fail where some could not be computed."""
    failed = [record for record in records if "error" in record]
    n_good, following = len(records) - len(failed), f"kernelweave papers report {folder}"
    if is_over:
        following = "run the same command to continue, since the time was over"
    if json_:
        about = {"cells": len(tasks), "computed": n_good, "failed": len(failed)}
        print_json({**about, "folder": as_text(str(folder)), "complete": not is_over})
    else:
        print(harmless(f"{n_good} of {len(tasks)} cells are in '{folder}'; next: {following}"))
    if failed:
        first = failed[0]
        where = f"{first['paper']} {first['item']}, {first['row']}, {first['method']}, trial {first['trial']}"
        raise KernelweaveError(
            f"{len(failed)} of {len(records)} cells failed, the first at {where}: {first['error']}. Run the same "
            "command to try them again.",
            ErrorCode.FAILED_CELLS,
        )


@contextmanager
def _show_cells(time_limit: float | None, is_quiet: bool) -> Iterator[Callable[[Progress], None]]:
    """Show how many cells are computed and how long the others will take; end the run when the time is over."""
    started = time.perf_counter()
    with show_stages(is_quiet=is_quiet, time_limit=time_limit) as show:
        show("computing cells", 0.0)

        def watch(state: Progress) -> None:
            title = f"{state.record['paper']} {state.record['item']}"
            detail = f"{state.n_done} of {state.n_total} cells"
            show(title, state.n_done / state.n_total, detail, state.remaining)
            is_late = time_limit is not None and time.perf_counter() - started > time_limit
            if is_late and state.n_done < state.n_total:
                raise _TimeOverError

        yield watch

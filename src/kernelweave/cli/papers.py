"""``kernelweave papers``: compute the papers' tables and figures again, and compare them with the printed ones."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from joblib import cpu_count
from rich.table import Table as Lines

from ..errors import ErrorCode, KernelweaveError
from ..estimators.shared.progress import show_progress
from ..files import atomic_write, reason
from .display import open_console, print_json
from .harmless import harmless
from .options import check_limit
from .streams import as_text, mark_work_done

if TYPE_CHECKING:
    from ..papers.definition import Paper
    from ..papers.runner import Progress

FOLDER = Path("reproduction")
SECONDS_BETWEEN_LINES = 10.0  # where there is no terminal

app = typer.Typer(
    no_args_is_help=True, help="Reproduce the papers' tables and figures.\n\nExample: kernelweave papers run all --fast"
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
        lines.add_row(*map(str, record.values()))
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
    json_: Json = False,
) -> None:
    """Compute the cells of PAPER that have no record in the folder yet; a run that was stopped continues.

    Example: kernelweave papers run rkda --fast
    """
    from ..papers import runner
    from ..papers.outside import outside

    papers = _find_papers(paper)
    check_limit(time_limit)
    kind, number = _find_item(table, figure)
    if trials is not None and trials < 1:
        raise KernelweaveError(f"--trials {trials} is not a whole number of 1 or more.", ErrorCode.BAD_OPTION)
    if jobs is not None and jobs < 1:
        raise KernelweaveError(f"--jobs {jobs} is not a whole number of 1 or more.", ErrorCode.BAD_OPTION)
    for name in with_ or ():
        try:
            given = outside(name)
        except ValueError as error:
            raise KernelweaveError(str(error), ErrorCode.BAD_OPTION) from None
        if given is None:
            raise KernelweaveError(
                f"--with {name!r} is not module:Class, such as sklearn.svm:SVC.", ErrorCode.BAD_OPTION
            )
    tasks = runner.plan(papers, kind=kind, number=number, trials=trials, fast=fast, outside=with_ or ())
    if not tasks:
        known = ", ".join(f"{p.name}: {' and '.join(item.name for item in p.items)}" for p in papers)
        raise KernelweaveError(f"There is no {kind} {number}; there are {known}.", ErrorCode.BAD_OPTION)
    if with_ and not any(task.item.outside for task in tasks):
        raise KernelweaveError(
            f"--with is given, but nothing that is chosen compares other estimators; {_list_comparisons(papers)}.",
            ErrorCode.BAD_OPTION,
        )
    if output.exists() and not output.is_dir():
        raise KernelweaveError(f"'{output}' is not a folder; name another one with -o.", ErrorCode.BAD_OPTION)
    is_over = False
    try:
        with _show_cells(time_limit) as watch:
            records = runner.execute(tasks, output, n_jobs=jobs or cpu_count(), watch=watch)
    except _TimeOverError:
        wanted, is_over = {task.key for task in tasks}, True
        kept = [runner.find_finished(runner.read_records(output / f"{each.name}.jsonl")) for each in papers]
        records = [record for found in kept for key, record in found.items() if key in wanted]
    except KeyboardInterrupt:
        raise KernelweaveError(
            f"Interrupted; finished cells are kept in '{output}'. Run the same command to continue.",
            ErrorCode.INTERRUPTED,
        ) from None
    except BrokenProcessPool:
        raise KernelweaveError(
            f"A process was killed, perhaps because memory ran out; finished cells are kept in '{output}'. Run the "
            "same command with fewer --jobs to continue.",
            ErrorCode.FAILED_CELLS,
        ) from None
    except OSError as error:
        raise KernelweaveError(
            f"The records cannot be written to '{output}': {reason(error)}.", ErrorCode.BAD_OPTION
        ) from None
    failed = [record for record in records if "error" in record]
    mark_work_done()
    n_good, following = len(records) - len(failed), f"kernelweave papers report {output}"
    if is_over:
        following = "run the same command to continue, since the time was over"
    if json_:
        about = {"cells": len(tasks), "computed": n_good, "failed": len(failed)}
        print_json({**about, "folder": as_text(str(output)), "complete": not is_over})
    else:
        print(harmless(f"{n_good} of {len(tasks)} cells are in '{output}'; next: {following}"))
    if failed:
        first = failed[0]
        where = f"{first['paper']} {first['item']}, {first['row']}, {first['method']}, trial {first['trial']}"
        raise KernelweaveError(
            f"{len(failed)} of {len(records)} cells failed, the first at {where}: {first['error']}. Run the same "
            "command to try them again.",
            ErrorCode.FAILED_CELLS,
        )


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
        atomic_write(path, write(page).encode("utf-8", "replace"))  # names of files need not be UTF-8
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


@contextmanager
def _show_cells(time_limit: float | None) -> Iterator[Callable[[Progress], None]]:
    """Show how many cells are computed and how long the others will take; end the run when the time is over."""
    started = time.perf_counter()
    with show_progress(keep_bar=False, seconds_between_lines=SECONDS_BETWEEN_LINES) as show:

        def watch(state: Progress) -> None:
            detail = f"{state.n_done} of {state.n_total} cells, {_describe_remaining(state)}"
            show(f"{state.record['paper']} {state.record['item']}", state.n_done / state.n_total, detail)
            is_late = time_limit is not None and time.perf_counter() - started > time_limit
            if is_late and state.n_done < state.n_total:
                raise _TimeOverError

        yield watch


def _describe_remaining(state: Progress) -> str:
    if state.remaining is None:
        return "remaining time unknown"
    minutes, seconds = divmod(round(state.remaining), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02} left"

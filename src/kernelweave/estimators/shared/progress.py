"""What a person sees while something long runs: a progress bar on a terminal, plain lines elsewhere.

Fits with ``verbose``, the command that labels a table and the one that reproduces papers all show their progress here.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from ...solvers.result import FitState

SECONDS_BETWEEN_LINES = 1.0  # of a fit with verbose=1, where there is no terminal


class Show(Protocol):
    """Shows what is being done, which share of the whole is finished, and figures about it."""

    def __call__(self, title: str, share: float, detail: str = "") -> None: ...


def announce(text: str) -> None:
    """Print what a fit is about to do."""
    if sys.stderr is not None:  # else print would take standard output
        print(text, file=sys.stderr, flush=True)


@contextmanager
def progress(
    verbose: int, title: str, callback: Callable[[FitState], object] | None
) -> Iterator[Callable[[FitState], object] | None]:
    """Give a hook for the solver that shows progress and passes the user's callback on.

    Progress is measured in orders of magnitude: from the first relative gap down to the one asked for.
    """
    if not verbose:
        yield callback
        return
    first_gap: float | None = None
    seconds = SECONDS_BETWEEN_LINES if verbose == 1 else 0.0
    with show_progress(bar=verbose == 1, seconds_between_lines=seconds) as show:

        def hook(state: FitState) -> bool:
            nonlocal first_gap
            first_gap = state.relative_gap if first_gap is None else first_gap
            show(
                title,
                fraction_done(first_gap, state.relative_gap, state.target),
                f"round {state.iteration}, {state.details['n_columns']} columns, objective {state.objective:.6g}, "
                f"relative gap {state.relative_gap:.2e}, {state.seconds:.1f} s",
            )
            return bool(callback(state)) if callback is not None else False

        yield hook


def fraction_done(first_gap: float, gap: float, target: float) -> float:
    """Return how many of the orders of magnitude between the first gap and the target are done, in [0, 1]."""
    if gap <= target:
        return 1.0
    whole = math.log(max(first_gap, gap) / max(target, 1e-300))
    return max(0.0, min(1.0, math.log(max(first_gap, gap) / gap) / whole)) if whole > 0 else 0.0


@contextmanager
def show_progress(
    *, bar: bool = True, keep_bar: bool = True, estimate: bool = False, seconds_between_lines: float = 0.0
) -> Iterator[Show]:
    """Give a function that shows progress on standard error: ``show(title, share, detail)``.

    Parameters
    ----------
    bar : bool
        Whether to show a bar on a terminal; without rich, or elsewhere, there are lines.
    keep_bar : bool
        Whether the bar stays when all is done.
    estimate : bool
        Whether to show the remaining time as well, estimated from the shares.
    seconds_between_lines : float
        No line is printed earlier after another one, unless all is done.
    """
    if sys.stderr is None:  # closed, or a program without a console
        yield lambda title, share, detail="": None
        return
    rich_bar = _make_bar(keep_bar, estimate) if bar and sys.stderr.isatty() else None
    if rich_bar is None:
        yield _make_line_printer(seconds_between_lines)
        return
    with rich_bar:
        task = rich_bar.add_task("", total=1.0, detail="")

        def show(title: str, share: float, detail: str = "") -> None:
            rich_bar.update(task, description=title, completed=share, detail=detail)

        yield show


def _make_bar(keep: bool, estimate: bool) -> Any:
    """Return a progress bar of rich, or None where rich is not installed."""
    try:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    except ImportError:
        return None
    texts = [TextColumn(f"{{task.{field}}}", markup=False) for field in ("description", "fields[detail]")]
    times = [TimeElapsedColumn(), *([TimeRemainingColumn()] if estimate else [])]
    console = Console(stderr=True, highlight=False)
    return Progress(texts[0], BarColumn(), texts[1], *times, console=console, transient=not keep)


def _make_line_printer(seconds_between_lines: float) -> Show:
    last = -math.inf

    def show(title: str, share: float, detail: str = "") -> None:
        nonlocal last
        now = time.monotonic()
        if share >= 1.0 or now - last >= seconds_between_lines:
            last = now
            print(f"{share:4.0%}  {title}{': ' if detail else ''}{detail}", file=sys.stderr, flush=True)

    return show

"""What a person sees while something long runs: a bar on a terminal, plain lines elsewhere, and the time that is left.

Fits with ``verbose``, the commands that learn from tables and the one that reproduces papers all show their progress
here.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from ...parameters import JOBS, NONE, POSITIVE, VERBOSE
from ...solvers.result import FitState

LIMIT_CONSTRAINTS = {"max_time": NONE | POSITIVE, "n_jobs": JOBS, "verbose": VERBOSE}  # of every estimator
SECONDS_BETWEEN_LINES = 1.0  # of a fit with verbose=1, where there is no terminal
MIN_SECONDS, MIN_SHARE = 1.0, 0.01  # of the work, before which nothing is said of the time that is left
BAR_WIDTH = 14  # leaves 40 of 80 columns to the text

Hook = Callable[[FitState], object]


class Show(Protocol):
    """Shows what is being done, which share of the whole is finished, and figures about it.

    ``seconds_left`` is for work that knows better than its share how long it will take.
    """

    def __call__(self, title: str, share: float, detail: str = "", seconds_left: float | None = None) -> None: ...


@dataclass
class RemainingTime:
    """The time that is left, estimated from the share that is done; written as a text, it counts down.

    Parameters
    ----------
    limit : float, optional
        Seconds that the whole may take: never more is left than the rest of them.
    """

    limit: float | None = None
    _started: float = field(default_factory=lambda: time.monotonic())
    _end: float | None = None  # when all will be done

    def update(self, share: float, seconds_left: float | None = None) -> None:
        """Take note of a share, or of how long the rest will take."""
        now = time.monotonic()
        elapsed = now - self._started
        if seconds_left is None and elapsed >= MIN_SECONDS and share >= MIN_SHARE:
            seconds_left = elapsed * (1.0 - share) / share
        self._end = None if seconds_left is None or share >= 1.0 else now + seconds_left

    @property
    def seconds(self) -> float | None:
        """Seconds that are left; None where that is not known, as when the estimate was too short."""
        if self._end is None:
            return None
        ends = [self._end] if self.limit is None else [self._end, self._started + self.limit]
        seconds = min(ends) - time.monotonic()
        return seconds if seconds > 0.0 else None

    def __str__(self) -> str:
        seconds = self.seconds
        if seconds is None:
            return ""
        minutes, whole = divmod(math.ceil(seconds), 60)
        return f"{minutes // 60}:{minutes % 60:02}:{whole:02} left"


def announce(text: str) -> None:
    """Print what a fit is about to do."""
    if sys.stderr is not None:  # else print would take standard output
        print(text, file=sys.stderr, flush=True)


@contextmanager
def follow_fit(
    verbose: int,
    title: str,
    callback: Hook | None,
    describe: Callable[[FitState], str],
    *,
    measure: Callable[[FitState], float] | None = None,
    max_time: float | None = None,
) -> Iterator[Hook | None]:
    """Give a hook for the solvers of a fit that shows progress and passes the user's callback on.

    Parameters
    ----------
    verbose : int
        0: nothing is shown; 1: a bar, or a line now and then; 2: a line for each step.
    title : str
    callback : callable, optional
    describe : callable
        Returns the figures that are shown of a state.
    measure : callable, optional
        Returns the share of a problem that is done; by default in orders of magnitude, from the first relative gap
        down to the one asked for.
    max_time : float, optional
        Seconds that the fit may take.
    """
    if not verbose:
        yield callback
        return
    measure, done = measure or _GapShare(), 0.0
    seconds = SECONDS_BETWEEN_LINES if verbose == 1 else 0.0
    with show_progress(title, bar=verbose == 1, seconds_between_lines=seconds, limit=max_time) as show:

        def hook(state: FitState) -> bool:
            nonlocal done
            done = max(done, (state.problem + measure(state)) / state.n_problems)
            show(title, done, f"{describe(state)}, {state.seconds:.1f} s")
            return bool(callback(state)) if callback is not None else False

        yield hook


def number_problem(hook: Hook | None, problem: int, n_problems: int) -> Hook | None:
    """Return the hook of one of several problems that are solved one after the other."""
    if hook is None:
        return None
    return lambda state: hook(replace(state, problem=problem, n_problems=n_problems))


class _GapShare:
    """The share of each problem that is done, from its first gap on."""

    def __init__(self) -> None:
        self.first: dict[int, float] = {}

    def __call__(self, state: FitState) -> float:
        first = self.first.setdefault(state.problem, state.relative_gap)
        return fraction_done(first, state.relative_gap, state.target)


def fraction_done(first_gap: float, gap: float, target: float) -> float:
    """Return how many of the orders of magnitude between the first gap and the target are done, in [0, 1]."""
    if gap <= target:
        return 1.0
    whole = math.log(max(first_gap, gap) / max(target, 1e-300))
    return max(0.0, min(1.0, math.log(max(first_gap, gap) / gap) / whole)) if whole > 0 else 0.0


@contextmanager
def show_progress(
    title: str = "",
    *,
    bar: bool = True,
    keep_bar: bool = True,
    lines: bool = True,
    seconds_between_lines: float = 0.0,
    limit: float | None = None,
) -> Iterator[Show]:
    """Give a function that shows progress on standard error: ``show(title, share, detail)``.

    Parameters
    ----------
    title : str
        What a bar says before the first step.
    bar : bool
        Whether to show a bar on a terminal.
    keep_bar : bool
        Whether the bar stays when all is done.
    lines : bool
        Whether to print lines where no bar is shown: without rich, or elsewhere.
    seconds_between_lines : float
        No line is printed earlier after another one, unless all is done.
    limit : float, optional
        Seconds that the whole may take.
    """
    rich_bar = _make_bar(keep_bar) if bar and sys.stderr is not None and sys.stderr.isatty() else None
    left = RemainingTime(limit)
    if rich_bar is None:  # standard error may be closed, as in a program without a console
        yield _make_line_printer(seconds_between_lines, left) if lines and sys.stderr is not None else _show_nothing
        return
    with rich_bar:
        task = rich_bar.add_task(title, total=1.0, left=left)

        def show(title: str, share: float, detail: str = "", seconds_left: float | None = None) -> None:
            left.update(share, seconds_left)
            rich_bar.update(task, description=_join(title, detail), completed=share)

        yield show
        show(rich_bar.tasks[task].description, 1.0)


def _show_nothing(title: str, share: float, detail: str = "", seconds_left: float | None = None) -> None:
    """Show nothing."""


def _make_bar(keep: bool) -> Any:
    """Return a progress bar of rich, or None where rich is not installed."""
    try:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
        from rich.table import Column
    except ImportError:
        return None

    return Progress(
        BarColumn(BAR_WIDTH),
        TextColumn("{task.percentage:>3.0f}%"),
        TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1)),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}", markup=False, table_column=Column(no_wrap=True)),
        console=Console(stderr=True, highlight=False),
        transient=not keep,
        expand=True,
    )


def _make_line_printer(seconds_between_lines: float, left: RemainingTime) -> Show:
    last = -math.inf

    def show(title: str, share: float, detail: str = "", seconds_left: float | None = None) -> None:
        nonlocal last
        left.update(share, seconds_left)
        now = time.monotonic()
        if share >= 1.0 or now - last >= seconds_between_lines:
            last = now
            figures = ", ".join(filter(None, (detail, str(left))))
            print(f"{share:4.0%}  {_join(title, figures)}", file=sys.stderr, flush=True)

    return show


def _join(title: str, detail: str) -> str:
    return f"{title}: {detail}" if detail else title

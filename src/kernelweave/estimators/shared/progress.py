"""What a person sees while a fit runs: a progress bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ...solvers.result import FitState

LINE_EVERY = 10  # rounds between two plain lines at verbose=1


def announce(text: str) -> None:
    """Say what a fit is about to do."""
    if sys.stderr is not None:  # else print would take standard output
        print(text, file=sys.stderr, flush=True)


@contextmanager
def progress(
    verbose: int, title: str, callback: Callable[[FitState], object] | None
) -> Iterator[Callable[[FitState], object] | None]:
    """Give a hook for the solver that shows progress and passes the user's callback on.

    The bar is measured in orders of magnitude: from the first relative gap down to the one asked for.
    """
    if not verbose or sys.stderr is None:  # closed, or a program without a console
        yield callback
        return
    display = _make_display(verbose, title)

    def hook(state: FitState) -> bool:
        display.update(state)
        return bool(callback(state)) if callback is not None else False

    try:
        yield hook
    finally:
        display.close()


def _make_display(verbose: int, title: str) -> Any:
    if verbose == 1 and sys.stderr.isatty():
        try:
            return _Bar(title)
        except ImportError:
            pass  # rich is optional: lines say the same
    return _Lines(title, 1 if verbose > 1 else LINE_EVERY)


def fraction_done(first_gap: float, gap: float, target: float) -> float:
    """Return how many of the orders of magnitude between the first gap and the target are done, in [0, 1]."""
    if gap <= target:
        return 1.0
    whole = math.log(max(first_gap, gap) / max(target, 1e-300))
    return max(0.0, min(1.0, math.log(max(first_gap, gap) / gap) / whole)) if whole > 0 else 0.0


class _Lines:
    def __init__(self, title: str, every: int):
        self.title, self.every = title, every

    def update(self, state: FitState) -> None:
        if state.details["n_open"] == 0 or state.iteration % self.every == 1 or self.every == 1:
            print(
                f"{self.title}: round {state.iteration}, {state.details['n_columns']} columns, "
                f"objective {state.objective:.6g}, relative gap {state.relative_gap:.2e}, {state.seconds:.1f} s",
                file=sys.stderr,
                flush=True,
            )

    def close(self) -> None: ...


class _Bar:
    def __init__(self, title: str):
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("gap {task.fields[gap]}, {task.fields[columns]} columns"),
            TimeElapsedColumn(),
            console=Console(stderr=True),
        )
        self.task = self.progress.add_task(title, total=1.0, gap="1", columns=0)
        self.first_gap: float | None = None
        self.progress.start()

    def update(self, state: FitState) -> None:
        if self.first_gap is None:
            self.first_gap = state.relative_gap
        self.progress.update(
            self.task,
            completed=fraction_done(self.first_gap, state.relative_gap, state.target),
            gap=f"{state.relative_gap:.1e}",
            columns=state.details["n_columns"],
        )

    def close(self) -> None:
        self.progress.stop()

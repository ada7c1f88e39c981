"""What classifier and regressor share: their parameters, the run of a search, and what is said of it."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from ...distributed.rows import PartitionedRows
from ...kernels.library import KernelLibrary
from ...labels import Partition
from ...model_selection.scaling import Scaling
from ...parameters import BOOLEAN, CALLBACK, COUNT, JOBS, NONE, POSITIVE, READ_LATER, VERBOSE, one_of, read_options
from ...short_text import format_number
from ...solvers.result import FitState, SolverResult, Status
from ..shared.callbacks import open_search
from ..shared.memory import require_search_memory
from ..shared.progress import show_progress
from ..shared.sample import Sample
from .candidates import leave_out, read_candidates
from .frames import Columns, place_library
from .leaderboard import ErrorEstimate, PairedDifference
from .members import Member
from .search import SearchOptions, SearchResult, Trial, try_candidates
from .trials import N_FOLDS, make_folds

AUTO_CONSTRAINTS = {
    "candidates": READ_LATER,
    "kernels": READ_LATER,
    "combine": one_of("stack", "best"),
    "n_repeats": COUNT,
    "race": BOOLEAN,
    "max_time": NONE | POSITIVE,
    "n_jobs": JOBS,
    "callback": CALLBACK,
    "verbose": VERBOSE,
    "random_state": READ_LATER,
}
MIN_WEIGHT = 0.03  # of a member that is kept; larger bounds cost accuracy, smaller ones time


@dataclass(frozen=True, eq=False)
class AutoOptions:
    """How a search is run, as the parameters say.

    ``task`` is ``"classes"`` or ``"numbers"``; ``configured`` is set on every candidate that has such a parameter;
    ``columns`` are the names of columns that the user's candidates may use.
    """

    owner: str
    task: str
    candidates: Any
    combine: str
    n_repeats: int
    max_time: float | None
    n_jobs: int | None
    callback: Callable[[FitState], object] | None
    verbose: int
    configured: dict[str, Any]
    columns: Columns | None = None
    race: bool = True


@dataclass(frozen=True, eq=False)
class TestedRows:
    """The labelled rows that were held out.

    Attributes
    ----------
    places : ndarray of shape (n_tested,)
        Among the labelled rows.
    parts : ndarray of shape (n_tested,)
        Which of them were held out together, in the first repeat.
    weight : ndarray of shape (n_tested,)
    """

    places: np.ndarray
    parts: np.ndarray
    weight: np.ndarray


def read_auto_options(
    owner: str, task: str, params: Mapping[str, Any], configured: dict[str, Any], columns: Columns | None
) -> AutoOptions:
    """Return the options that parameters mean."""
    return read_options(AutoOptions, params, owner=owner, task=task, configured=configured, columns=columns)


def read_kernels(kernels: Any, sample: Sample) -> KernelLibrary | None:
    """Return the library that a parameter means; columns by position, since candidates see rows without names."""
    if kernels is None:
        return None
    names = sample.rows.feature_names
    return place_library(kernels, None if names is None else names.tolist(), sample.rows.X.shape[1])


def read_groups(groups: Any, sample: Sample) -> np.ndarray | None:
    """Return the number of the group of each row that takes part; None where no groups were given."""
    if groups is None:
        return None
    values = np.asarray(groups)
    if values.shape != (sample.n_given,):
        raise ValueError(f"groups must hold a value for each of {sample.n_given} rows; got shape {values.shape}.")
    return np.unique(values, return_inverse=True)[1][sample.kept]


def run_search(
    sample: Sample,
    groups: np.ndarray | None,
    options: AutoOptions,
    losses: Callable[[np.ndarray, np.ndarray], np.ndarray],
    weigh: Callable[[Sequence[Trial]], np.ndarray],
    rng: np.random.Generator,
    *,
    weighted: bool,
) -> SearchResult:
    """Try all candidates.

    Parameters
    ----------
    sample : Sample
    groups : ndarray of shape (n_rows,), optional
    options : AutoOptions
    losses, weigh : callable
        As in :class:`~kernelweave.estimators.auto.search.SearchOptions`.
    rng : numpy.random.Generator
    weighted : bool
        Whether the user gave weights.
    """
    n_labeled = sample.partition.n_labeled
    candidates = read_candidates(options.candidates, sample.X, n_labeled, options.task, options.owner, options.columns)
    n_classes = sample.partition.n_classes if isinstance(sample.partition, Partition) else 0
    if not isinstance(sample.rows.X, PartitionedRows):
        require_search_memory(options.owner, sample, max(1, n_classes))
    candidates, left_out = leave_out(candidates, n_classes)
    repeats = [folds for _ in range(options.n_repeats) if (folds := make_folds(sample, groups, rng))]
    n_fits = len(candidates) * (1 + sum(map(len, repeats)))
    callback, open_task = open_search(options.callback, n_fits)
    started = time.perf_counter()
    is_bar, lines = options.verbose == 1, options.verbose > 0
    with show_progress(options.owner, bar=is_bar, lines=lines, limit=options.max_time) as show:

        def on_step(text: str, share: float) -> bool:
            show(options.owner, share, text)
            if callback is None:
                return False
            seconds = time.perf_counter() - started
            return bool(callback(replace(unknown, iteration=next(steps), seconds=seconds, phase=text)))

        steps, nan = itertools.count(), float("nan")
        unknown = FitState(iteration=0, objective=nan, bound=nan, gap=nan, target=0.0, seconds=0.0, phase="")
        limits: dict[str, Any] = {"max_time": options.max_time, "n_jobs": options.n_jobs, "race": options.race}
        search = SearchOptions(
            options.configured, weighted, losses, weigh, **limits, on_step=on_step, open_task=open_task
        )
        with threadpool_limits(1, user_api="blas"):  # matrices are small and many: threads would wait for one another
            found = try_candidates(candidates, sample, repeats, int(rng.integers(2**31)), search)
        show(options.owner, 1.0, f"{len(found.trials)} candidates tried")
    return replace(found, left_out=left_out)


def in_the_running(trials: Sequence[Trial], n_labeled: int) -> list[int]:
    """Return the numbers of the trials that are compared: those in the race that held out most rows."""
    tested = [0 if t.is_out or not t.values else len(t.average(n_labeled)[1]) for t in trials]
    most = max(tested)
    return [k for k, n in enumerate(tested) if n == most and most > 0]


def find_tested(trials: Sequence[Trial], sample: Sample, weight: np.ndarray) -> TestedRows:
    """Return the rows that trials in the running held out; the parts are those of the first repeat.

    ``weight`` says how much labelled rows count.
    """
    n_labeled = sample.partition.n_labeled
    part_of = np.full(n_labeled, -1)
    for part, (held, _) in enumerate(trials[0].values if trials else ()):
        new = held[part_of[held] < 0]
        part_of[new] = part % N_FOLDS
    places = np.flatnonzero(part_of >= 0)
    return TestedRows(places, part_of[places], weight[places])


def sort_rows(rows: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers of rows in ascending order, and their values."""
    order = np.argsort(rows)
    return rows[order], values[order]


def make_member(trial: Trial, weight: float, scaling: Scaling | None = None) -> Member:
    """Return the model of a trial as a member of a combination."""
    return Member(trial.candidate.name, trial.fitted.model, float(weight), scaling, trial.candidate.columns)


def search_status(found: SearchResult, weights: SolverResult) -> Status:
    """Return why the search ended."""
    if found.is_interrupted:
        return Status.SEARCH_STOPPED
    return Status.SEARCH_TIME if found.is_late else weights.status


def describe(
    members: Sequence[Member],
    error: ErrorEstimate | None,
    helped: PairedDifference | None,
    leaderboard: Sequence[dict[str, Any]],
    what: str,
    status: Status,
) -> str:
    """Return sentences about a fit."""
    lines = [] if status.converged else [status.value]
    if error is None and status.converged:
        lines.append("There are too few labels to hold rows out: nothing is known about the error.")
    elif error is None:
        lines.append("Too few rows were held out: nothing is known about the error.")
    else:
        lines.append(f"{what} of held-out rows: {error}.")
    ordered = sorted(members, key=lambda member: -member.weight)
    shares = ", ".join(f"{member.name} {member.weight:.0%}" for member in ordered)
    models = "1 model" if len(ordered) == 1 else f"{len(ordered)} models"
    lines.append(f"The prediction is a mixture of {models}: {shares}.")
    skipped = [record["candidate"] for record in leaderboard if record["status"] == "no time"]
    if skipped:
        lines.append(f"Not tried: {', '.join(skipped)}.")
    without = [record for record in leaderboard if record["status"].startswith("left out")]
    if without:
        why = without[0]["status"].partition(": ")[2]
        lines.append(f"Left out: {', '.join(record['candidate'] for record in without)}; {why}.")
    failed = [record for record in leaderboard if record["status"].startswith("failed")]
    lines += [f"{record['candidate']} {record['status']}" for record in failed]
    tested = [record for record in leaderboard if np.isfinite(record["error"])]
    if tested:
        best = min(tested, key=lambda record: record["error"])
        lines.append(f"Smallest error of a single candidate: {best['candidate']}, {format_number(best['error'], 3)}.")
    if helped is not None:
        lines.append(f"Did unlabelled rows help? {str(helped)[0].upper()}{str(helped)[1:]}.")
    certified = [member for member in ordered if hasattr(member.model, "certificate_")]
    lines += [f"{member.name}: {member.model.certificate_}." for member in certified]
    return "\n".join(lines)

"""The search: every candidate is fitted and held-out rows are predicted, as far as time allows.

It has stages. First each candidate is fitted to all labels and predicts two folds; then those that are clearly worse
than the best are out of the race, and the others predict the remaining folds. The best of those that use unlabelled
rows, and of those that do not, stay in any case: else nothing could be said of whether unlabelled rows helped.
Without a race all candidates predict all folds.
Folds are repeated, with rows dealt anew, for the candidates that weigh more than equal weights would: which rows were
held out together changes the labels through these. More than two repeats end when the weights have settled.
Where no time limit binds, what is found depends on the seed alone, not on ``n_jobs``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from ...kernels.sharing import shared_bindings
from ...solvers.deadline import OutOfTimeError
from ..shared.callbacks import OpenTask, no_task
from ..shared.fold_choice import clearly_better
from ..shared.sample import Sample
from .candidates import Candidate, configure
from .trials import FAILURES, Fitted, Fold, average_repeats, fit_candidate, hold_out

N_RACING_FOLDS = 2
RACING_DEVIATIONS = 2.0  # standard errors by which a candidate out of the race is worse than the best
TIME_SHARE = 0.9  # of the limit; the rest is for predictions
FIT_SHARE = 1 / 3  # of the time that is left, which a candidate that can stop early may take for its first fit
MIN_FIRST_SECONDS = 1.0  # for a fit that had no time for a model, as long as there is no other
FOLD_SHARE = 0.5  # of the time of a fit to all labels that a fit in a fold is expected to take
MIN_FIT_SHARE = 0.05  # of the limit; a candidate that is left less than that to stop in is not begun
MIN_COST = 0.1  # of a candidate, up to which what is done once takes most of its time
MAX_FREE_SHARE = 0.5  # of what a fit may take, above which it may have left something out
MIN_SECONDS = 1e-3  # for a fit when the time is over
MAX_MOVED = 0.1  # sum of the changes of weights by a repeat, below which they have settled


@dataclass(frozen=True, eq=False)
class Trial:
    """What is known of a candidate.

    Attributes
    ----------
    fitted : Fitted
    values : tuple of (held, outputs)
        Of each fold: places of the held-out rows among the labelled ones, and outputs there.
    seconds : float
        Of all fits.
    is_out : bool
        Whether it was clearly worse than the best after the first folds.
    """

    fitted: Fitted
    values: tuple[tuple[np.ndarray, np.ndarray], ...] = ()
    seconds: float = 0.0
    is_out: bool = False

    @property
    def candidate(self) -> Candidate:
        """Which candidate it is."""
        return self.fitted.candidate

    def average(self, n_labeled: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean outputs of the rows that were held out, and their places among the labelled ones."""
        return average_repeats(self.values, n_labeled)


@dataclass(frozen=True, eq=False)
class SearchOptions:
    """How candidates are tried.

    Attributes
    ----------
    configured : dict
        Set on every candidate that has such a parameter.
    weighted : bool
        Whether rows have weights.
    losses : callable
        ``losses(outputs, held)`` of held-out rows, by their places among the labelled ones.
    weigh : callable
        ``weigh(trials)`` are the weights of candidates.
    max_time, n_jobs, race
        As the parameters of the estimators.
    on_step : callable
        ``on_step(text, share)`` before each step, with the share of the work that is done; a true answer stops.
    open_task : callable
        ``open_task(name)(estimator)`` is a context in which a fit of this name is made.
    """

    configured: dict[str, Any]
    weighted: bool
    losses: Callable[[np.ndarray, np.ndarray], np.ndarray]
    weigh: Callable[[Sequence[Trial]], np.ndarray]
    max_time: float | None = None
    n_jobs: int | None = None
    race: bool = True
    on_step: Callable[[str, float], bool] = lambda text, share: False
    open_task: OpenTask = no_task


@dataclass
class Clock:
    """Seconds since the start, and how long candidates take relative to what was expected."""

    limit: float | None
    started: float = field(default_factory=time.perf_counter)
    notes: list[tuple[float, float]] = field(default_factory=list)  # cost and seconds of each candidate

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self.started

    @property
    def seconds_per_fit(self) -> float | None:
        """Seconds that the next candidate may take; None where there is no limit."""
        return None if self.limit is None else max(MIN_SECONDS, FIT_SHARE * (TIME_SHARE * self.limit - self.elapsed))

    @property
    def seconds_to_stop(self) -> float | None:
        """Seconds after which a candidate that can stop does so; None where that is not worth it, or without limit."""
        seconds = self.seconds_per_fit
        return seconds if seconds is not None and seconds >= MIN_FIT_SHARE * (self.limit or 0.0) else None

    def seconds_for(self, n_folds: int) -> float | None:
        """Return the seconds that each fit in so many folds may take; None where there is no limit."""
        if self.limit is None:
            return None
        return max(MIN_SECONDS, (TIME_SHARE * self.limit - self.elapsed) / max(n_folds, 1))

    def allows(self, seconds: float) -> bool:
        """Return whether so many seconds are left."""
        return self.limit is None or self.elapsed + seconds <= TIME_SHARE * self.limit

    def note(self, cost: float, seconds: float) -> None:
        """Remember how long a candidate took."""
        self.notes.append((cost, seconds))

    def expect(self, cost: float) -> float:
        """Return the seconds that a candidate of such a cost may take, from the dearest ones tried so far.

        What cheap ones took, and the first, is mostly not in proportion to their cost: trees to grow, code to compile.
        As long as there are no others, a candidate is expected to take no longer than these.
        """
        rates = [(noted, seconds / noted) for noted, seconds in self.notes[1:] if noted > MIN_COST]
        if not rates:
            return max((seconds for _, seconds in self.notes), default=0.0)
        dearest = max(noted for noted, _ in rates)
        return max(rate for noted, rate in rates if 2 * noted > dearest) * cost


@dataclass(frozen=True, eq=False)
class SearchResult:
    """Trials in the order of candidates; why others failed or were left out; and for what there was no time."""

    trials: list[Trial]
    failures: dict[str, str]
    skipped: list[str]
    is_interrupted: bool = False
    is_late: bool = False  # whether candidates or folds were left out for want of time
    left_out: dict[str, str] = field(default_factory=dict)


class _InterruptedError(Exception):
    """The callback, or the user, ended the search."""


def try_candidates(
    candidates: Sequence[Candidate],
    sample: Sample,
    repeats: Sequence[Sequence[Fold]],
    seed: int,
    options: SearchOptions,
) -> SearchResult:
    """Fit candidates to all labels, and predict held-out rows.

    An interrupt ends the search: what is finished is returned, if there is something.

    Parameters
    ----------
    candidates : sequence of Candidate
    sample : Sample
    repeats : sequence of sequences of Fold
        Empty where no rows can be held out.
    seed : int
    options : SearchOptions
    """
    state = _Search(list(candidates), sample, repeats, seed, options, Clock(options.max_time))
    interrupted = False
    with shared_bindings(seed):
        try:
            if options.n_jobs in (None, 1) or options.max_time is not None:
                state.start()
            else:
                state.start_in_parallel()
            if options.race:
                state.trials = end_race(state.trials, options.losses)
            if repeats:
                state.finish_folds(repeats[0][N_RACING_FOLDS:], 0.5, 0.8 if len(repeats) > 1 else 1.0)
            before = options.weigh(state.trials) if len(repeats) > 1 else np.empty(0)
            heavy = find_heavy(before)
            for k, folds in enumerate(repeats[1:]):
                first, last = (0.8 + 0.2 * (k + end) / len(repeats[1:]) for end in (0, 1))
                state.finish_folds(folds, first, last, among=heavy)
                if k + 2 < len(repeats):
                    after = options.weigh(state.trials)
                    if np.abs(after - before).sum() <= MAX_MOVED:
                        break
                    before = after
        except (KeyboardInterrupt, _InterruptedError):
            if not state.trials:
                raise
            interrupted = True
    return state.result(interrupted)


@dataclass
class _Search:
    """A search in progress."""

    candidates: list[Candidate]
    sample: Sample
    repeats: Sequence[Sequence[Fold]]
    seed: int
    options: SearchOptions
    clock: Clock
    trials: list[Trial] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
    is_late: bool = False
    is_stopped: bool = False

    @property
    def first_folds(self) -> Sequence[Fold]:
        return self.repeats[0][:N_RACING_FOLDS] if self.repeats else []

    def start(self) -> None:
        """Fit candidates and predict the first folds.

        Where time is limited, the cheapest that there is time for comes next: one that was passed over is tried once
        others have shown that it takes less than expected.
        """
        limited = self.options.max_time is not None
        waiting = sorted(self.candidates, key=lambda each: each.cost) if limited else list(self.candidates)
        while waiting:
            k = next((k for k, each in enumerate(waiting) if self._has_time(each)), None)
            if k is None:
                break
            self._report(f"trying {waiting[k].name}", 0.5 * (1 - len(waiting) / len(self.candidates)))
            self._try(waiting.pop(k))
        self.skipped += [each.name for each in waiting]
        self.is_late = self.is_late or bool(waiting)

    def _has_time(self, candidate: Candidate) -> bool:
        """Return whether a candidate is expected to be ready in time; the first one is tried in any case."""
        expected, seconds = self.clock.expect(candidate.cost), self.clock.seconds_to_stop
        if seconds is not None and can_stop(candidate.estimator):
            expected = min(expected, seconds)
        return not self.trials or self.clock.allows((1.0 + N_RACING_FOLDS * FOLD_SHARE) * expected)

    def _try(self, candidate: Candidate) -> None:
        """Fit a candidate and predict the first folds; remember why there is no trial of it, if so."""
        started, limit = self.clock.elapsed, self.clock.seconds_per_fit
        try:
            trial = self._start_trial(candidate)
            seconds = self.clock.elapsed - started
            if limit is None or not can_stop(candidate.estimator) or seconds <= MAX_FREE_SHARE * limit:
                self.clock.note(candidate.cost, seconds)
            if self.clock.allows(len(self.first_folds) * FOLD_SHARE * trial.fitted.seconds):
                trial = self._add_folds(trial, self.first_folds, None if limit is None else FOLD_SHARE * limit)
            else:
                self.is_late = True
            self.trials.append(trial)
        except OutOfTimeError as error:
            self.is_late = True
            if self.trials:
                self.skipped.append(candidate.name)
            else:
                self.failures[candidate.name] = str(error)
        except FAILURES as error:
            self.failures[candidate.name] = str(error)

    def start_in_parallel(self) -> None:
        """Do the same in several processes; kernels are bound once in each of them.

        Outcomes come in any order, so that an interrupt loses only what is not finished; they are kept in the order of
        the candidates, since a race between equals depends on it.
        """
        quiet = replace(self.options, losses=_nothing, weigh=_nothing, on_step=_nothing)  # these stay here
        settings = [replace(quiet, open_task=self._open_first_tasks(each)) for each in self.candidates]
        outcomes: dict[int, Trial | str] = {}
        try:
            for k, outcome in _run_unordered(
                self.options.n_jobs,
                (
                    delayed(_try_alone)(k, each, self.sample, self.first_folds, self.seed, settings[k])
                    for k, each in enumerate(self.candidates)
                ),
            ):
                outcomes[k] = outcome
        finally:
            for k, outcome in sorted(outcomes.items()):
                if isinstance(outcome, Trial):
                    self.trials.append(outcome)
                else:
                    self.failures[self.candidates[k].name] = outcome

    def _open_first_tasks(self, candidate: Candidate) -> OpenTask:
        """Return the tasks of the first fits of a candidate, by their names, so that they can be sent."""
        names = [_name_fit(candidate), *(_name_fit(candidate, k) for k in range(len(self.first_folds)))]
        return {name: self.options.open_task(name) for name in names}.__getitem__

    def finish_folds(
        self, folds: Sequence[Fold], first: float, last: float, among: Sequence[int] | None = None
    ) -> None:
        """Predict further folds with the candidates in the race, as far as time allows; from one share to another.

        ``among`` are the numbers of the trials to go on with; all by default.
        """
        for k, trial in enumerate(self.trials):
            expected = len(folds) * FOLD_SHARE * trial.fitted.seconds
            if trial.is_out or not folds or not trial.values or (among is not None and k not in among):
                continue
            if not self.clock.allows(expected):
                self.is_late = True
                continue
            self._report(f"cross-validating {trial.candidate.name}", first + (last - first) * k / len(self.trials))
            try:
                self.trials[k] = self._add_folds(trial, folds)
            except FAILURES as error:
                self.failures[trial.candidate.name] = str(error)
                self.trials[k] = replace(trial, is_out=True)

    def _start_trial(self, candidate: Candidate) -> Trial:
        """Fit a candidate; as long as there is no other, one for which there was no time gets a second more."""
        seconds = self.clock.seconds_per_fit
        try:
            return start_trial(candidate, self.sample, self.seed, self.options, seconds)
        except OutOfTimeError:
            if self.trials or seconds is None or seconds >= MIN_FIRST_SECONDS:
                raise
        return start_trial(candidate, self.sample, self.seed, self.options, MIN_FIRST_SECONDS)

    def _add_folds(self, trial: Trial, folds: Sequence[Fold], limit: float | None = None) -> Trial:
        """Predict the rows of some folds, each within a limit; if there is no time, the trial stays what it was."""
        seconds = self.clock.seconds_for(len(folds))
        if seconds is not None and limit is not None:
            seconds = min(seconds, limit)
        try:
            return add_folds(trial, self.sample, folds, self.options, seconds)
        except OutOfTimeError:
            self.is_late = True
            return trial

    def result(self, interrupted: bool) -> SearchResult:
        """Return the trials in the order of candidates; refuse a search without any."""
        if not self.trials:
            name, why = next(iter(self.failures.items()))
            raise ValueError(f"No candidate could be fitted. {name}: {why}")
        place = {each.name: k for k, each in enumerate(self.candidates)}
        in_order = sorted(self.trials, key=lambda trial: place[trial.candidate.name])
        return SearchResult(in_order, self.failures, self.skipped, interrupted, self.is_late)

    def _report(self, text: str, share: float) -> None:
        """Say what comes next; who says stop is asked no more, and obeyed once there is a trial."""
        self.is_stopped = self.is_stopped or self.options.on_step(text, share)
        if self.is_stopped and self.trials:
            raise _InterruptedError


def find_heavy(weights: np.ndarray) -> list[int]:
    """Return the numbers of the trials that weigh more than all in the mixture would with equal weights.

    Examples
    --------
    >>> import numpy as np
    >>> find_heavy(np.array([0.5, 0.1, 0.4, 0.0]))
    [0, 2]
    """
    equal = 1.0 / max(1, int(np.count_nonzero(weights)))
    heavy = np.flatnonzero(weights > equal)
    return (heavy if len(heavy) else np.flatnonzero(weights)).tolist()


def can_stop(estimator: Any) -> bool:
    """Return whether an estimator takes the limit that a search sets for it."""
    return estimator.get_params(deep=False).get("max_time", 0.0) is None


def start_trial(
    candidate: Candidate, sample: Sample, seed: int, options: SearchOptions, max_time: float | None = None
) -> Trial:
    """Fit a candidate to all labels; one that can stop early does so after ``max_time`` seconds."""
    estimator = configure(candidate.estimator, random_state=seed, max_time=max_time, **options.configured)
    around = options.open_task(_name_fit(candidate))
    fitted = fit_candidate(candidate, estimator, sample, options.weighted, around)
    return Trial(fitted, seconds=fitted.seconds)


def add_folds(
    trial: Trial, sample: Sample, folds: Sequence[Fold], options: SearchOptions, max_time: float | None = None
) -> Trial:
    """Predict the rows of some folds, each within ``max_time`` seconds if the estimator can stop early."""
    started = time.perf_counter()
    values = []
    for k, held in enumerate(folds, start=len(trial.values)):
        around = options.open_task(_name_fit(trial.candidate, k))
        values.append((held, hold_out(trial.fitted, sample, held, options.weighted, around, max_time)))
    seconds = trial.seconds + time.perf_counter() - started
    return replace(trial, values=(*trial.values, *values), seconds=seconds)


def _name_fit(candidate: Candidate, fold: int | None = None) -> str:
    """Return the name of the fit of a candidate to all labels, or in a fold."""
    return f"{candidate.name}, {'all labels' if fold is None else f'fold {fold + 1}'}"


def end_race(trials: Sequence[Trial], losses: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> list[Trial]:
    """Mark the trials that are clearly worse than the best on the first folds.

    Those without a fold stay, and so does the best of each kind, with and without unlabelled rows.
    """
    first = {k: trial.values[:N_RACING_FOLDS] for k, trial in enumerate(trials) if len(trial.values) >= N_RACING_FOLDS}
    lost = {k: np.concatenate([losses(found, held) for held, found in values]) for k, values in first.items()}
    if len(lost) < 2:
        return list(trials)
    sums = {k: float(each.sum()) for k, each in lost.items()}
    kinds = [[k for k in lost if trials[k].candidate.uses_unlabeled is kind] for kind in (False, True)]
    stay = [min(kind, key=sums.__getitem__) for kind in kinds if kind]
    best = lost[min(stay, key=sums.__getitem__)]
    is_worse = {k: k not in stay and clearly_better(best, each, RACING_DEVIATIONS) for k, each in lost.items()}
    return [replace(trial, is_out=is_worse.get(k, False)) for k, trial in enumerate(trials)]


def find_best_certified(trials: Sequence[Trial], scores: dict[str, float]) -> Any:
    """Return the model with a certificate that has the smallest score; None where no candidate has one."""
    certified = [trial for trial in trials if trial.candidate.is_certified]
    if not certified:
        return None
    in_race = [trial for trial in certified if not trial.is_out]  # scores of the others are of fewer rows
    return min(in_race or certified, key=lambda trial: scores.get(trial.candidate.name, np.inf)).fitted.model


def _run_unordered(n_jobs: int | None, tasks: Iterable[Any]) -> Iterable[Any]:
    """Run tasks in several processes, and give out what each returns as soon as it is there."""
    try:
        parallel = Parallel(n_jobs, return_as="generator_unordered", batch_size=1)
    except ValueError:  # a backend of the user's that returns all at once
        parallel = Parallel(n_jobs)
    return parallel(tasks)  # type: ignore[no-any-return]


def _try_alone(
    k: int, candidate: Candidate, sample: Sample, folds: Sequence[Fold], seed: int, options: SearchOptions
) -> tuple[int, Trial | str]:
    """Try candidate number k in a process of its own; return the number, and why it failed, if it did."""
    with shared_bindings(seed):
        try:
            return k, add_folds(start_trial(candidate, sample, seed, options), sample, folds, options)
        except FAILURES as error:
            return k, str(error)


def _nothing(*given: Any) -> Any:
    """Stand for a function that is not sent to other processes."""

"""Cross-validation under a time limit: one loop over the folds, which both tasks share, and the last fit.

A fit has a first round that no limit shortens, so the longest fold so far is what the next one is expected to take. The
first fold is always computed, and so are others until each class has been held out.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from ..errors import ErrorCode, KernelweaveError
from ..kernels.library import KernelLibrary
from ..model_selection import SemiSupervisedSplit
from .learner import fit_learner, make_learner

N_FOLDS = 5
MIN_FIT_SECONDS = 1e-3  # for a fit when the time is over: it does one round
MAX_SHARE_DISTINCT = 0.95  # of the labelled rows, above which hardly any are equal
MIN_DISTINCT = 4 * N_FOLDS + 1  # labelled rows, below which folds of equal rows would be too coarse

Fold = tuple[np.ndarray, np.ndarray]  # training rows, held-out rows
OnStage = Callable[[str, float], None]


@dataclass(frozen=True)
class Clock:
    """Seconds since the start, and what a fit may take of those that are left."""

    limit: float | None
    started: float = field(default_factory=time.perf_counter)

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self.started

    def seconds_per_fit(self, n_fits: int) -> float | None:
        """Return the seconds that each of ``n_fits`` fits may take; half of the rest is for all else."""
        return None if self.limit is None else max(MIN_FIT_SECONDS, 0.5 * (self.limit - self.elapsed) / n_fits)

    def allows(self, seconds: float) -> bool:
        """Return whether so many seconds are left."""
        return self.limit is None or self.elapsed + seconds <= self.limit


@dataclass(frozen=True, eq=False)
class Target:
    """The labels to learn from.

    Attributes
    ----------
    task : {"classification", "regression"}
    y : ndarray of shape (n_rows,)
        Classes as str and None, or standardised numbers and NaN.
    labeled : ndarray of shape (n_labeled,)
        Rows with a label.
    n_folds : int
        Most folds that the labels allow.
    """

    task: str
    y: np.ndarray
    labeled: np.ndarray
    n_folds: int


@dataclass(frozen=True, eq=False)
class Setup:
    """What both tasks learn with; ``on_stage(text, share)`` shows what comes next and the share that is done."""

    X: np.ndarray
    groups: np.ndarray | None
    library: KernelLibrary | None
    seed: int
    clock: Clock
    on_stage: OnStage


@dataclass(frozen=True, eq=False)
class TaskResult:
    """What a task learned.

    Attributes
    ----------
    model : ClassModel or NumberModel
        Fills cells.
    learner : estimator
        Fitted on all rows.
    report : dict
        Plain data, among them the errors on held-out rows.
    notes : list of str
        Sentences on what speaks against using the labels.
    """

    model: Any
    learner: Any
    report: dict[str, Any]
    notes: list[str]


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Outputs of several methods for rows whose label they have not seen.

    Attributes
    ----------
    rows : ndarray of shape (n_tested,)
        In increasing order.
    fold_of : ndarray of shape (n_tested,)
        The fold in which each of them was held out.
    outputs : dict of ndarray of shape (n_tested, ...)
        By method.
    """

    rows: np.ndarray
    fold_of: np.ndarray
    outputs: dict[str, np.ndarray]


def learn(target: Target, setup: Setup, predict: Callable[..., dict[str, np.ndarray]]) -> tuple[Any, HeldOut]:
    """Return the learner fitted on all rows, and what it and simple methods give for held-out rows.

    Parameters
    ----------
    target : Target
    setup : Setup
    predict : callable
        ``predict(learner, X, y, train, known, test)`` fits on the rows ``train``, of which ``known`` have a label, and
        returns the outputs of each method for the rows ``test``.
    """
    X, y = setup.X, target.y
    folds = split_labeled(X, target, setup.groups, setup.seed)
    n_fits = len(folds) + 1
    max_time = setup.clock.seconds_per_fit(n_fits + 1)  # the last fit, on more rows, counts twice
    learner = make_learner(target.task, setup.library, setup.seed, max_time)

    def predict_fold(number: int, train: np.ndarray, test: np.ndarray) -> dict[str, np.ndarray]:
        setup.on_stage(f"cross-validating, fold {number} of {len(folds)}", 0.1 + 0.8 * (number - 1) / n_fits)
        return predict(learner, X, y, train, np.intersect1d(train, target.labeled), test)

    held_out = cross_validate(folds, predict_fold, y if target.task == "classification" else None, setup.clock)
    setup.on_stage("fitting on all rows", 0.1 + 0.8 * len(folds) / n_fits)
    return fit_learner(learner, X, y), held_out


def split_labeled(X: np.ndarray, target: Target, groups: np.ndarray | None, seed: int) -> list[Fold]:
    """Return folds of the labelled rows that hold out whole groups or, where many rows are equal, all equal ones."""
    kind = "classes" if target.task == "classification" else "numbers"
    split = partial(_split, len(X), target.y, kind, seed)
    if groups is None:
        equal_rows = group_equal_rows(X, target.labeled)
        if equal_rows is not None:
            with suppress(ValueError):  # all rows of a class may be equal: then they cannot be held out together
                return split(target.n_folds, equal_rows)
        return split(target.n_folds, None)
    n_groups = len(np.unique(groups[target.labeled]))
    if n_groups < 2:
        raise KernelweaveError(
            f"All labelled rows are in the group '{groups[target.labeled[0]]}', and cross-validation holds out whole "
            "groups. Label rows of at least two groups, or leave out --group.",
            ErrorCode.BAD_GROUPS,
        )
    try:
        return split(min(target.n_folds, n_groups), groups)
    except ValueError as error:  # a class that is in one group only
        raise KernelweaveError(str(error), ErrorCode.BAD_GROUPS) from None


def _split(n_rows: int, y: np.ndarray, kind: str, seed: int, n_folds: int, groups: np.ndarray | None) -> list[Fold]:
    splitter = SemiSupervisedSplit(n_folds, target=kind, random_state=seed)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "[0-9]+ labelled rows are trained on and not tested")
        try:
            return list(splitter.split(np.empty(n_rows), y, groups))
        except UserWarning as warning:  # a class that is not held out has no error that could be reported
            raise ValueError(str(warning)) from None


def group_equal_rows(X: np.ndarray, labeled: np.ndarray) -> np.ndarray | None:
    """Return groups that keep equal labelled rows together; None if hardly any are equal, or too few are distinct."""
    _, group_of = np.unique(X[labeled], axis=0, return_inverse=True)
    n_distinct = group_of.max() + 1
    if n_distinct > MAX_SHARE_DISTINCT * len(labeled) or n_distinct < MIN_DISTINCT:
        return None
    groups = np.full(len(X), -1)
    groups[labeled] = group_of.ravel()
    return groups


def cross_validate(
    folds: Sequence[Fold],
    predict: Callable[[int, np.ndarray, np.ndarray], dict[str, np.ndarray]],
    classes: np.ndarray | None,
    clock: Clock,
) -> HeldOut:
    """Predict the held-out rows fold by fold while there is time for another fold and for the last fit.

    Parameters
    ----------
    folds : sequence of (training rows, held-out rows)
    predict : callable
        ``predict(number, train, test)`` returns the outputs of each method for the rows ``test``; numbers start at 1.
    classes : ndarray of shape (n_rows,), optional
        Class of each row; folds are computed until each class has been held out, whatever the time.
    clock : Clock
    """
    rows: list[np.ndarray] = []
    outputs: list[dict[str, np.ndarray]] = []
    missing = set() if classes is None else {classes[row] for _, test in folds for row in test}
    longest = 0.0
    for number, (train, test) in enumerate(folds, 1):
        if rows and not missing and not clock.allows(2 * longest):
            break
        started = clock.elapsed
        outputs.append(predict(number, train, test))
        rows.append(test)
        missing -= set() if classes is None else set(classes[test])
        longest = max(longest, clock.elapsed - started)
    all_rows = np.concatenate(rows)
    order = np.argsort(all_rows)
    fold_of = np.repeat(np.arange(len(rows)), [len(test) for test in rows])[order]
    joined = {name: np.concatenate([output[name] for output in outputs])[order] for name in outputs[0]}
    return HeldOut(all_rows[order], fold_of, joined)

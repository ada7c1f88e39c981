"""Trials of candidates: one fit to all labels, and fits to which the labels of some rows are hidden.

A held-out row stays among the rows as an unlabelled one, which is what filling in labels means; learners that take no
unlabelled rows get the labelled ones. Rows are the same in every fit, so all that kernels learn from rows alone is
bound once (:func:`~kernelweave.kernels.sharing.shared_bindings`).
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from ...labels import Partition, TargetPartition
from ...model_selection import SemiSupervisedSplit
from ...model_selection.calibration import decision_values
from ...model_selection.semi_supervised import takes_unlabeled, write_labels
from ..shared.callbacks import Around
from ..shared.sample import Sample
from .candidates import MIN_LEFT_OUT, Candidate, final_model, fix_choices
from .frames import Columns, name_rows

N_FOLDS = 5
MAX_NESTED_LABELS = 50  # up to which folds choose settings anew
MAX_SHARE_DISTINCT = 0.95  # of the labelled rows, above which hardly any are equal
MIN_DISTINCT = 4 * N_FOLDS + 1  # labelled rows, below which folds of equal rows would be too coarse
MAX_DEALS = 50  # of rows to folds at random, until every class keeps enough labels in all of them
# Of a candidate: the others go on. Models refuse sparse rows by a TypeError, eigensolvers give up by a RuntimeError.
FAILURES = (ValueError, TypeError, ArithmeticError, MemoryError, RuntimeError, np.linalg.LinAlgError)

Fold = np.ndarray  # numbers of the labelled rows that are held out


@dataclass(frozen=True, eq=False)
class Fitted:
    """A candidate that was fitted to all labels.

    Attributes
    ----------
    candidate : Candidate
    model : estimator
        Predicts.
    fixed : estimator
        Not fitted; what is fitted in the folds.
    seconds : float
    """

    candidate: Candidate
    model: Any
    fixed: Any
    seconds: float


def fit_candidate(
    candidate: Candidate, estimator: Any, sample: Sample, weighted: bool, around: Around = nullcontext
) -> Fitted:
    """Fit an estimator to all labels.

    Where labels are few, folds choose anew what the estimator leaves open: choices that have seen the held-out labels
    would make errors look smaller (by 3 points on average with 30 labels, by nothing with 80).
    """
    started = time.perf_counter()
    fixed = clone(estimator)
    found = fit_hidden(estimator, sample, np.empty(0, dtype=np.intp), weighted, candidate.columns, around)
    if sample.partition.n_labeled > MAX_NESTED_LABELS:
        fixed = fix_choices(found, count_fewest(sample.partition))
    return Fitted(candidate, final_model(found), fixed, time.perf_counter() - started)


def hold_out(
    fitted: Fitted,
    sample: Sample,
    held: np.ndarray,
    weighted: bool,
    around: Around = nullcontext,
    max_time: float | None = None,
) -> np.ndarray:
    """Return the outputs at labelled rows, by their places among these, of a model to which they are unlabelled."""
    rows, columns = sample.partition.labeled[held], fitted.candidate.columns
    estimator = clone(fitted.fixed)
    if max_time is not None and "max_time" in estimator.get_params(deep=False):
        estimator.set_params(max_time=max_time)
    found = fit_hidden(estimator, sample, rows, weighted, columns, around)
    return outputs(found, sample.X[rows], columns)


def fit_hidden(
    estimator: Any,
    sample: Sample,
    hidden: np.ndarray,
    weighted: bool,
    columns: Columns | None = None,
    around: Around = nullcontext,
) -> Any:
    """Fit an estimator, which is changed by it, to all rows but without the labels of some; no word is printed.

    Parameters
    ----------
    estimator : estimator
    sample : Sample
    hidden : ndarray
        Numbers of rows.
    weighted : bool
        Whether rows have weights; learners that take none do without.
    columns : Columns, optional
        The frame that the estimator is fitted to.
    around : callable
        ``around(estimator)`` is a context in which it is fitted.
    """
    written = write_labels(estimator, sample.partition)
    if takes_unlabeled(estimator):
        rows, y = np.arange(sample.n_rows), written.hide(hidden)
    else:
        rows = np.setdiff1d(sample.partition.labeled, hidden)
        y = sample.partition.labels[np.searchsorted(sample.partition.labeled, rows)]
    X = name_rows(sample.X if len(rows) == sample.n_rows else sample.X[rows], columns)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with around(estimator):
            return estimator.fit(X, y, **weight_arguments(estimator, sample.weight[rows] if weighted else None))


def weight_arguments(estimator: Any, weight: np.ndarray | None) -> dict[str, np.ndarray]:
    """Return the arguments that give weights to an estimator, if there are any and it takes them."""
    if weight is None:
        return {}
    inner, prefix = estimator.estimator if isinstance(estimator, BaseSearchCV) else estimator, ""
    if isinstance(inner, Pipeline):
        prefix, inner = f"{inner.steps[-1][0]}__", inner.steps[-1][1]
    inner = inner.estimator if isinstance(inner, BaseSearchCV) else inner
    return {f"{prefix}sample_weight": weight} if has_fit_parameter(inner, "sample_weight") else {}


def outputs(model: Any, X: Any, columns: Columns | None = None) -> np.ndarray:
    """Return decision values of a classifier, predictions of a regressor; ``columns`` are those it was fitted to."""
    X = name_rows(X, columns)
    return decision_values(model, X) if hasattr(model, "classes_") else np.asarray(model.predict(X), dtype=np.float64)


def make_folds(sample: Sample, groups: np.ndarray | None, rng: np.random.Generator) -> list[Fold]:
    """Return the labelled rows, by their places among these, that are held out together; none where there are too few.

    Whole groups are held out or, where many rows are equal, all equal ones. Rows without which a class would be lost
    are in no fold, so that there may be fewer folds than groups.
    """
    part, seed = sample.partition, int(rng.integers(2**31))
    fewest = count_fewest(part)
    if part.n_labeled < 4 or fewest < 1:
        return []
    for together in [group_equal_rows(sample.X, part.labeled), None] if groups is None else [groups]:
        n_units = part.n_labeled if together is None else len(np.unique(together[part.labeled]))
        for n_folds in range(min(N_FOLDS, n_units), 1, -1):
            with suppress(ValueError):
                return _split(sample, n_folds, together, seed)
    return []


def group_equal_rows(X: Any, labeled: np.ndarray) -> np.ndarray | None:
    """Return groups that keep equal labelled rows together; None if hardly any are equal, or too few are distinct."""
    rows = X[labeled]
    if not isinstance(rows, np.ndarray):
        return None
    _, group_of = np.unique(rows, axis=0, return_inverse=True)
    n_distinct = int(group_of.max()) + 1
    if n_distinct > MAX_SHARE_DISTINCT * len(labeled) or n_distinct < MIN_DISTINCT:
        return None
    groups = np.arange(X.shape[0]) + n_distinct
    groups[labeled] = group_of.ravel()
    return groups


def _split(sample: Sample, n_folds: int, groups: np.ndarray | None, seed: int) -> list[Fold]:
    """Deal rows at random, where every class keeps labels enough; else with equal shares of the classes.

    Equal shares make errors look too small: a class that has more labels than is its due is learned as more frequent,
    and would be tested as more frequent. On generated tables with 30 labels the difference is 5 points of error
    (``benchmarks/honesty``). Rows that are dealt at random know nothing of the others, and the mean error over all
    draws is that of models which have seen the labels of the other folds.
    """
    part = sample.partition
    if not isinstance(part, Partition):
        return _deal(sample, n_folds, groups, seed, stratify=False)
    counts = np.bincount(part.codes)
    fewest_kept = np.minimum(counts - 1, MIN_LEFT_OUT - 1)
    for k in range(MAX_DEALS):
        folds = _deal(sample, n_folds, groups, seed + k, stratify=False)
        held = [np.bincount(part.codes[fold], minlength=len(counts)) for fold in folds]
        if all((counts - each >= fewest_kept).all() for each in held):
            return folds
    return _deal(sample, n_folds, groups, seed, stratify=True)


def _deal(sample: Sample, n_folds: int, groups: np.ndarray | None, seed: int, *, stratify: bool) -> list[Fold]:
    part = sample.partition
    target = "classes" if isinstance(part, Partition) else "numbers"
    splitter = SemiSupervisedSplit(n_folds, stratify=stratify, target=target, unlabeled=None, random_state=seed)
    y = write_labels(None, part).y
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tests = [test for _, test in splitter.split(np.empty(sample.n_rows), y, groups)]
    return [np.searchsorted(part.labeled, test) for test in tests if len(test)]


def count_fewest(part: Partition | TargetPartition) -> int:
    """Return the number of labelled rows of the smallest class; of numbers, that of all."""
    return int(np.bincount(part.codes).min()) if isinstance(part, Partition) else part.n_labeled


def average_repeats(values: Sequence[tuple[np.ndarray, np.ndarray]], n_labeled: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean of the outputs of each labelled row over all folds that held it out, and which rows there are."""
    first = values[0][1]
    total, times = np.zeros((n_labeled, *first.shape[1:])), np.zeros(n_labeled)
    for held, found in values:
        total[held] += found
        times[held] += 1
    tested = np.flatnonzero(times)
    return (total[tested].T / times[tested]).T, tested

"""From held-out rows to a combination of classifiers: scalings, weights, and probabilities without own labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...model_selection.scaling import Choice, Scaling
from ...solvers.result import SolverResult
from ..shared.sample import Sample
from .combine import drop_small, keep_prior, stack_classes, take_best
from .leaderboard import PairedDifference, paired_difference_of_classes
from .members import guess_scaling, is_testable, multiply_classes, scale_out_of_fold, shift_logits
from .run import MIN_WEIGHT, TestedRows, find_tested, in_the_running
from .search import Trial
from .trials import outputs


@dataclass(frozen=True, eq=False)
class ClassCombination:
    """A combination of classifiers.

    Attributes
    ----------
    weights : ndarray of shape (n_trials,)
        Small ones are zero.
    scalings : dict of int to Scaling
        Of the trials with a weight, by their number.
    result : SolverResult
        Of the problem of the weights.
    tested : TestedRows
        None of them where there were too few.
    codes : ndarray of shape (n_tested,)
    logs : dict of int to ndarray of shape (n_tested, n_classes)
        Log probabilities by each trial in the running.
    probabilities : ndarray of shape (n_tested, n_classes)
        Of the combination, by scalings and weights to which the rows of the same part are unknown, with the shares of
        the classes that the user gave.
    row_weight : ndarray of shape (n_labeled,)
        How much labelled rows count in an error: rows of a class that is more frequent among unlabelled rows than
        among these count for more.
    factors : ndarray of shape (n_classes,)
        Shares of the classes that the user gave over those of the labelled rows; 1 where none were given.
    """

    weights: np.ndarray
    scalings: dict[int, Scaling]
    result: SolverResult
    tested: TestedRows
    codes: np.ndarray
    logs: dict[int, np.ndarray]
    probabilities: np.ndarray
    row_weight: np.ndarray
    factors: np.ndarray

    @property
    def tested_weight(self) -> np.ndarray:
        """How much held-out rows count in an error, shape (n_tested,)."""
        return np.asarray(self.row_weight[self.tested.places])


def combine_classifiers(
    trials: Sequence[Trial],
    sample: Sample,
    weight: np.ndarray,
    combine: str,
    shares: np.ndarray | None = None,
    known: dict[Any, tuple[Choice, np.ndarray]] | None = None,
) -> ClassCombination:
    """Fit scalings and weights to held-out rows.

    Parameters
    ----------
    trials : sequence of Trial
    sample : Sample
    weight : ndarray of shape (n_labeled,)
        How much labelled rows count.
    combine : {"stack", "best"}
    shares : ndarray of shape (n_classes,), optional
        Of the classes among unlabelled rows, where the user gave them.
    known : dict, optional
        Scalings that were fitted before, by the name of the candidate and its number of folds; new ones are added.
    """
    part, known = sample.partition, {} if known is None else known
    factors = _find_factors(sample, shares)
    counts = weight * factors[part.codes]
    running = in_the_running(trials, part.n_labeled)
    tested = find_tested([trials[k] for k in running], sample, weight)
    codes = part.codes[tested.places]
    if not running or not is_testable(codes):
        return _combine_untested(trials, sample, counts, factors)
    choices, logs = {}, {}
    for k in running:
        key = trials[k].candidate.name, len(trials[k].values), len(tested.places)
        if key in known:
            choices[k], logs[k] = known[key]
            continue
        decision, _ = trials[k].average(part.n_labeled)
        shift = shift_logits(factors) if _knows_shares(trials[k], factors) else None
        choices[k], logs[k] = known[key] = scale_out_of_fold(decision, codes, tested.weight, tested.parts, shift)
    result = weigh_likelihoods(logs, codes, tested.weight, combine)
    weights = np.zeros(len(trials))
    weights[running] = drop_small(result.x, MIN_WEIGHT)
    scalings = {k: choices[k].scaling for k in running if weights[k] > 0}
    mixed = mix_out_of_fold(logs, codes, tested, combine, factors)
    return ClassCombination(weights, scalings, result, tested, codes, logs, mixed, counts, factors)


def _find_factors(sample: Sample, shares: np.ndarray | None) -> np.ndarray:
    if shares is None:
        return np.ones(sample.partition.n_classes)
    known = np.bincount(sample.partition.codes, weights=sample.labeled_weight)
    return np.asarray(shares * known.sum() / known)


def _knows_shares(trial: Trial, factors: np.ndarray) -> bool:
    """Return whether a candidate was told of shares of the classes that are not those of the labelled rows."""
    names = {key.rpartition("__")[2] for key in trial.fitted.fixed.get_params()} if np.any(factors != 1.0) else ()
    return "class_prior" in names


def weigh_likelihoods(logs: dict[int, np.ndarray], codes: np.ndarray, weight: np.ndarray, combine: str) -> SolverResult:
    """Return the weights of trials, in their order, from log probabilities of held-out rows."""
    log_likelihood = np.array([each[np.arange(len(codes)), codes] for each in logs.values()])
    if combine == "best" or len(logs) == 1:
        return take_best(-log_likelihood, weight)
    return stack_classes(np.exp(log_likelihood), weight, np.full(len(logs), 1.0 / len(logs)))


def mix_out_of_fold(
    logs: dict[int, np.ndarray], codes: np.ndarray, tested: TestedRows, combine: str, factors: np.ndarray
) -> np.ndarray:
    """Return probabilities of rows, times factors of the classes, by weights that were found without their part."""
    stacked = np.exp(np.array(list(logs.values())))
    mixed = np.empty(stacked.shape[1:])
    for part in np.unique(tested.parts):
        test = tested.parts == part
        others = {k: each[~test] for k, each in logs.items()}
        weights = weigh_likelihoods(others, codes[~test], tested.weight[~test], combine).x
        mixed[test] = np.tensordot(weights, stacked[:, test], axes=1)
    return multiply_classes(mixed, factors)


def compare_supervised(combination: ClassCombination, trials: Sequence[Trial], combine: str) -> PairedDifference | None:
    """Return the error of a combination of learners that use labelled rows only, less that of all learners.

    None where one of both kinds was not tested.
    """
    supervised = {k: each for k, each in combination.logs.items() if not trials[k].candidate.uses_unlabeled}
    if not supervised or len(supervised) == len(combination.logs):
        return None
    codes, tested = combination.codes, combination.tested
    without = mix_out_of_fold(supervised, codes, tested, combine, combination.factors).argmax(axis=1) != codes
    with_them = combination.probabilities.argmax(axis=1) != codes
    return paired_difference_of_classes(without.astype(float), with_them.astype(float), combination.tested_weight)


def _combine_untested(
    trials: Sequence[Trial], sample: Sample, row_weight: np.ndarray, factors: np.ndarray
) -> ClassCombination:
    """Give all trials the same weight, and scalings by the spread of their outputs."""
    weights = np.full(len(trials), 1.0 / len(trials))
    shifts = [shift_logits(factors) if _knows_shares(trial, factors) else None for trial in trials]
    found = [outputs(trial.fitted.model, sample.X, trial.candidate.columns) for trial in trials]
    scalings = {k: guess_scaling(*each) for k, each in enumerate(zip(found, shifts, strict=True))}
    nothing = np.empty(0, dtype=np.intp)
    tested = TestedRows(nothing, nothing, np.empty(0))
    empty = np.empty((0, sample.partition.n_classes))
    return ClassCombination(weights, scalings, keep_prior(weights), tested, nothing, {}, empty, row_weight, factors)

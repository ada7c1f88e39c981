"""From held-out rows to a combination of regressors: weights, and predictions that no row's number entered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...solvers.result import SolverResult
from ..shared.sample import Sample
from .combine import drop_small, keep_prior, stack_numbers, take_best
from .leaderboard import PairedDifference, paired_difference_of_roots
from .members import MIN_TESTED
from .run import MIN_WEIGHT, TestedRows, find_tested, in_the_running
from .search import Trial


@dataclass(frozen=True, eq=False)
class NumberCombination:
    """A combination of regressors.

    Attributes
    ----------
    weights : ndarray of shape (n_trials,)
        Small ones are zero.
    result : SolverResult
        Of the problem of the weights.
    tested : TestedRows
        None of them where there were too few.
    targets : ndarray of shape (n_tested,)
    outputs : dict of int to ndarray of shape (n_tested,)
        Of each trial in the running.
    predictions : ndarray of shape (n_tested,)
        Of the combination, by weights to which the rows of the same part are unknown.
    """

    weights: np.ndarray
    result: SolverResult
    tested: TestedRows
    targets: np.ndarray
    outputs: dict[int, np.ndarray]
    predictions: np.ndarray


def combine_regressors(trials: Sequence[Trial], sample: Sample, combine: str) -> NumberCombination:
    """Fit weights to held-out rows.

    Parameters
    ----------
    trials : sequence of Trial
    sample : Sample
    combine : {"stack", "best"}
    """
    part = sample.partition
    running = in_the_running(trials, part.n_labeled)
    tested = find_tested([trials[k] for k in running], sample, sample.labeled_weight)
    targets = part.targets[tested.places]
    if len(targets) < MIN_TESTED or np.ptp(targets) == 0:
        return _combine_untested(trials)
    outputs = {k: trials[k].average(part.n_labeled)[0] for k in running}
    result = weigh_outputs(outputs, targets, tested.weight, combine)
    weights = np.zeros(len(trials))
    weights[running] = drop_small(result.x, MIN_WEIGHT)
    return NumberCombination(
        weights, result, tested, targets, outputs, mix_out_of_fold(outputs, targets, tested, combine)
    )


def weigh_outputs(
    outputs: dict[int, np.ndarray], targets: np.ndarray, weight: np.ndarray, combine: str
) -> SolverResult:
    """Return the weights of trials, in their order, from outputs at held-out rows."""
    stacked = np.array(list(outputs.values()))
    if combine == "best" or len(stacked) == 1:
        return take_best(np.square(stacked - targets), weight)
    return stack_numbers(stacked, targets, weight, np.full(len(stacked), 1.0 / len(stacked)))


def mix_out_of_fold(
    outputs: dict[int, np.ndarray], targets: np.ndarray, tested: TestedRows, combine: str
) -> np.ndarray:
    """Return predictions of rows by weights that were found without their part."""
    stacked, mixed = np.array(list(outputs.values())), np.empty(len(targets))
    for part in np.unique(tested.parts):
        test = tested.parts == part
        others = {k: each[~test] for k, each in outputs.items()}
        mixed[test] = weigh_outputs(others, targets[~test], tested.weight[~test], combine).x @ stacked[:, test]
    return mixed


def compare_supervised(
    combination: NumberCombination, trials: Sequence[Trial], combine: str
) -> PairedDifference | None:
    """Return the root mean squared error of learners that use labelled rows only, combined, less that of all.

    None where one of both kinds was not tested.
    """
    supervised = {k: each for k, each in combination.outputs.items() if not trials[k].candidate.uses_unlabeled}
    if not supervised or len(supervised) == len(combination.outputs):
        return None
    targets, tested = combination.targets, combination.tested
    without = np.square(mix_out_of_fold(supervised, targets, tested, combine) - targets)
    return paired_difference_of_roots(without, np.square(combination.predictions - targets), tested.weight)


def _combine_untested(trials: Sequence[Trial]) -> NumberCombination:
    """Give all trials the same weight."""
    weights, nothing = np.full(len(trials), 1.0 / len(trials)), np.empty(0, dtype=np.intp)
    tested = TestedRows(nothing, nothing, np.empty(0))
    return NumberCombination(weights, keep_prior(weights), tested, np.empty(0), {}, np.empty(0))

"""From held-out decision values to a mixture: weights, scalings, and probabilities without own labels."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.ensemble import RandomForestClassifier

from kernelweave import TSVMClassifier
from kernelweave.estimators.auto import class_weights
from kernelweave.estimators.auto.candidates import Candidate
from kernelweave.estimators.auto.class_weights import (
    combine_classifiers,
    compare_supervised,
    mix_out_of_fold,
    weigh_likelihoods,
)
from kernelweave.estimators.auto.combine import stack_classes
from kernelweave.estimators.auto.run import MIN_WEIGHT
from kernelweave.estimators.auto.search import Trial
from kernelweave.estimators.auto.trials import N_FOLDS, Fitted
from kernelweave.estimators.shared.sample import Rows, read_as_given
from kernelweave.labels import partition

N_ROWS = 40
PARTS = np.arange(N_ROWS) % N_FOLDS


class Fixed:
    """A model whose decision values are the first column."""

    classes_ = np.array([0, 1])

    def decision_function(self, X):
        return X[:, 0]


def sample_of(codes):
    return read_as_given(Rows(np.column_stack([2.0 * codes - 1.0, np.ones(len(codes))])), partition(codes))


def trial(name, decision, *, uses_unlabeled=False, is_out=False, n_folds=N_FOLDS):
    folds = [np.flatnonzero(PARTS[: len(decision)] == k) for k in range(n_folds)]
    candidate = Candidate(name, None, uses_unlabeled=uses_unlabeled)
    return Trial(Fitted(candidate, Fixed(), None, 1.0), tuple((held, decision[held]) for held in folds), 1.0, is_out)


@pytest.fixture(name="problem")
def two_learners_and_noise():
    rng = np.random.default_rng(0)
    codes = np.arange(N_ROWS) // 2 % 2
    signs = 2.0 * codes - 1.0
    good, fair = signs + 0.7 * rng.normal(size=N_ROWS), signs + 2.0 * rng.normal(size=N_ROWS)
    trials = [trial("good", good, uses_unlabeled=True), trial("fair", fair), trial("noise", rng.normal(size=N_ROWS))]
    return sample_of(codes), trials, codes


def test_weights_are_those_of_the_likelihoods_of_held_out_rows(problem):
    sample, trials, codes = problem
    found = combine_classifiers(trials, sample, np.ones(N_ROWS), "stack")
    likelihood = np.exp([found.logs[k][np.arange(N_ROWS), codes] for k in range(3)])
    expected = stack_classes(likelihood, np.ones(N_ROWS), np.full(3, 1 / 3))
    np.testing.assert_allclose(found.result.x, expected.x)
    assert found.weights.sum() == pytest.approx(1.0)
    assert found.weights.argmax() == 0
    assert not ((found.weights > 0) & (found.weights < MIN_WEIGHT)).any()
    assert set(found.scalings) == set(np.flatnonzero(found.weights))
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1.0)
    np.testing.assert_array_equal(found.tested.places, np.arange(N_ROWS))


def test_scalings_that_are_known_are_not_fitted_again(problem, monkeypatch):
    sample, trials, _ = problem
    known = {}
    first = combine_classifiers(trials, sample, np.ones(N_ROWS), "stack", None, known)
    assert len(known) == 3
    monkeypatch.setattr(class_weights, "scale_out_of_fold", None)
    again = combine_classifiers(trials, sample, np.ones(N_ROWS), "stack", None, known)
    np.testing.assert_array_equal(again.probabilities, first.probabilities)


def test_the_best_alone_has_all_weight(problem):
    sample, trials, _ = problem
    found = combine_classifiers(trials, sample, np.ones(N_ROWS), "best")
    np.testing.assert_array_equal(found.weights, [1, 0, 0])
    np.testing.assert_allclose(found.probabilities, np.exp(found.logs[0]))


def test_probabilities_of_a_part_do_not_depend_on_its_labels(problem):
    sample, trials, codes = problem
    found = combine_classifiers(trials, sample, np.ones(N_ROWS), "stack")
    own = found.tested.parts == 2
    changed = np.where(own, 1 - codes, codes)
    mixed = mix_out_of_fold(found.logs, changed, found.tested, "stack", np.ones(2))
    np.testing.assert_allclose(mixed[own], found.probabilities[own])
    assert not np.allclose(mixed[~own], found.probabilities[~own])


def test_trials_out_of_the_race_and_with_fewer_folds_have_no_weight(problem):
    sample, trials, _ = problem
    decision = trials[0].average(N_ROWS)[0]
    others = [trial("out", decision, is_out=True), trial("cut short", decision, n_folds=2)]
    found = combine_classifiers([*others, *trials[1:]], sample, np.ones(N_ROWS), "stack")
    np.testing.assert_array_equal(found.weights[:2], 0.0)
    assert set(found.logs) == {2, 3}


def test_few_held_out_rows_leave_equal_weights_and_thresholds():
    codes = np.array([0, 1, 0, 1, 0])
    sample = sample_of(codes)
    trials = [trial("a", np.zeros(5)), trial("b", np.ones(5))]
    found = combine_classifiers(trials, sample, np.ones(5), "stack")
    np.testing.assert_array_equal(found.weights, [0.5, 0.5])
    assert len(found.tested.places) == len(found.codes) == len(found.probabilities) == 0
    assert compare_supervised(found, trials, "stack") is None
    for scaling in found.scalings.values():
        np.testing.assert_array_equal(scaling(sample.X[:, 0]) > 0, codes == 1)


def test_shares_that_a_trial_was_told_of_are_taken_out_before_and_put_back_after_the_mixture():
    codes = np.arange(N_ROWS) % 2
    noise = norm.ppf((np.random.default_rng(0).permutation(N_ROWS // 2) + 0.5) / (N_ROWS // 2))
    log_odds = 2.0 * (2 * codes - 1) + 2.0 * np.repeat(noise, 2)  # of two normal classes of the same size
    shares = np.array([0.8, 0.2])
    shift = np.log(shares[1] / shares[0])
    told, plain = trial("told", log_odds + shift), trial("plain", log_odds)
    told = replace(told, fitted=replace(told.fitted, fixed=TSVMClassifier()))
    plain = replace(plain, fitted=replace(plain.fitted, fixed=RandomForestClassifier()))
    found = [combine_classifiers([one], sample_of(codes), np.ones(N_ROWS), "stack", shares) for one in (told, plain)]
    for combination in found:
        np.testing.assert_allclose(combination.factors, shares / 0.5)
        np.testing.assert_allclose(combination.tested_weight, (shares / 0.5)[codes])
    threshold = found[0].scalings[0](np.array([0.0])) + shift
    np.testing.assert_allclose(threshold, 0.0, atol=1e-12)  # that of the model that was told
    # Nearly those of a trial that was not told; slopes differ a little. To count shares twice would move 0.5 to 0.2.
    np.testing.assert_allclose(found[0].probabilities, found[1].probabilities, atol=0.15)
    assert found[0].probabilities[:, 1].mean() < 0.4


def test_one_trial_needs_no_weights():
    logs = {3: np.log(np.array([[0.2, 0.8], [0.6, 0.4]]))}
    np.testing.assert_array_equal(weigh_likelihoods(logs, np.array([1, 0]), np.ones(2), "stack").x, [1.0])


def test_learners_of_labelled_rows_are_compared_with_all(problem):
    sample, trials, codes = problem
    found = combine_classifiers(trials, sample, np.ones(N_ROWS), "stack")
    supervised = {k: found.logs[k] for k in (1, 2)}
    without = mix_out_of_fold(supervised, codes, found.tested, "stack", np.ones(2)).argmax(axis=1) != codes
    with_them = found.probabilities.argmax(axis=1) != codes
    compared = compare_supervised(found, trials, "stack")
    assert compared.difference == pytest.approx(without.mean() - with_them.mean())
    assert compared.difference > 0
    nothing_else = combine_classifiers(trials[1:], sample, np.ones(N_ROWS), "stack")
    assert compare_supervised(nothing_else, trials[1:], "stack") is None

"""From held-out predictions to a weighted mean, and predictions that no row's number entered."""

import numpy as np
import pytest

from kernelweave.estimators.auto.candidates import Candidate
from kernelweave.estimators.auto.combine import stack_numbers
from kernelweave.estimators.auto.number_weights import combine_regressors, compare_supervised, mix_out_of_fold
from kernelweave.estimators.auto.search import Trial
from kernelweave.estimators.auto.trials import N_FOLDS, Fitted
from kernelweave.estimators.shared.sample import Rows, read_as_given
from kernelweave.labels import partition_targets

N_ROWS = 40
PARTS = np.arange(N_ROWS) % N_FOLDS


def trial(name, predictions, uses_unlabeled=False, is_out=False):
    values = tuple((held, predictions[held]) for held in (np.flatnonzero(k == PARTS) for k in range(N_FOLDS)))
    return Trial(Fitted(Candidate(name, None, uses_unlabeled=uses_unlabeled), None, None, 1.0), values, 1.0, is_out)


@pytest.fixture(name="problem")
def three_regressors():
    rng = np.random.default_rng(0)
    targets = rng.normal(size=N_ROWS)
    sample = read_as_given(Rows(np.ones((N_ROWS, 1))), partition_targets(targets))
    trials = [
        trial("good", targets + 0.2 * rng.normal(size=N_ROWS), uses_unlabeled=True),
        trial("fair", targets + 0.5 * rng.normal(size=N_ROWS)),
        trial("noise", rng.normal(size=N_ROWS)),
    ]
    return sample, trials, targets


def test_weights_are_those_of_the_squared_errors_of_held_out_rows(problem):
    sample, trials, targets = problem
    found = combine_regressors(trials, sample, "stack")
    stacked = np.array([each.average(N_ROWS)[0] for each in trials])
    expected = stack_numbers(stacked, targets, np.ones(N_ROWS), np.full(3, 1 / 3))
    np.testing.assert_allclose(found.result.x, expected.x)
    assert found.weights.sum() == pytest.approx(1.0)
    assert found.weights.argmax() == 0


def test_predictions_of_a_part_do_not_depend_on_its_numbers(problem):
    sample, trials, targets = problem
    found = combine_regressors(trials, sample, "stack")
    own = found.tested.parts == 1
    changed = np.where(own, targets + 5.0, targets)
    mixed = mix_out_of_fold(found.outputs, changed, found.tested, "stack")
    np.testing.assert_allclose(mixed[own], found.predictions[own])
    assert not np.allclose(mixed[~own], found.predictions[~own])


def test_the_best_alone_has_all_weight(problem):
    sample, trials, _ = problem
    np.testing.assert_array_equal(combine_regressors(trials, sample, "best").weights, [1, 0, 0])


def test_who_is_out_of_the_race_has_no_weight(problem):
    sample, trials, targets = problem
    found = combine_regressors([trial("out", targets, is_out=True), *trials], sample, "stack")
    assert found.weights[0] == 0.0
    assert set(found.outputs) == {1, 2, 3}


def test_few_or_equal_numbers_leave_equal_weights(problem):
    _, trials, _ = problem
    equal = read_as_given(Rows(np.ones((N_ROWS, 1))), partition_targets(np.ones(N_ROWS)))
    found = combine_regressors(trials, equal, "stack")
    np.testing.assert_allclose(found.weights, 1 / 3)
    assert len(found.predictions) == 0
    assert compare_supervised(found, trials, "stack") is None


def test_learners_of_labelled_rows_are_compared_with_all(problem):
    sample, trials, targets = problem
    found = combine_regressors(trials, sample, "stack")
    supervised = {k: found.outputs[k] for k in (1, 2)}
    without, with_all = (
        np.sqrt(np.mean(np.square(predicted - targets)))
        for predicted in (mix_out_of_fold(supervised, targets, found.tested, "stack"), found.predictions)
    )
    compared = compare_supervised(found, trials, "stack")
    assert compared.difference == pytest.approx(without - with_all)
    assert compared.verdict == "unlabelled rows helped"
    assert compare_supervised(combine_regressors(trials[1:], sample, "stack"), trials[1:], "stack") is None

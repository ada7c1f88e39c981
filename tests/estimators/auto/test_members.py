"""Members: probabilities without own labels, guessed scalings, mixtures."""

import numpy as np
import pytest
from scipy.special import softmax

from kernelweave.estimators.auto.members import (
    MIN_TESTED,
    UNTESTED_SLOPE,
    Member,
    guess_scaling,
    is_testable,
    mix_numbers,
    mix_probabilities,
    scale_out_of_fold,
)
from kernelweave.model_selection.scaling import Scaling, fit_temperature_scaling, log_probabilities, most_probable


class Fixed:
    """A model whose outputs are columns of X."""

    def __init__(self, columns, n_classes=0):
        self.columns = columns
        if n_classes:
            self.classes_ = np.arange(n_classes)

    def decision_function(self, X):
        return X[:, self.columns]

    predict = decision_function


def plain(n_columns):
    """Logits are the decision values, as long as these are within the part that is left unchanged."""
    return Scaling(np.zeros(n_columns), np.ones(n_columns), np.ones(n_columns), np.zeros(n_columns))


def held_out(n_classes, n=40, seed=0):
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % n_classes
    decision = rng.normal(size=(n, n_classes)) + 1.5 * np.eye(n_classes)[codes]
    return (decision[:, 1] - decision[:, 0] if n_classes == 2 else decision), codes, np.ones(n), np.arange(n) // 4 % 5


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_of_a_part_do_not_depend_on_its_labels(n_classes):
    decision, codes, weight, parts = held_out(n_classes)
    _, logs = scale_out_of_fold(decision, codes, weight, parts)
    for part in range(5):
        own = parts == part
        changed = codes.copy()
        changed[own] = (changed[own] + 1) % n_classes
        choice, other = scale_out_of_fold(decision, changed, weight, parts)
        if choice.keeps_classes:  # the kind of scaling is chosen once, from all rows
            np.testing.assert_allclose(other[own], logs[own], rtol=1e-9)
        assert not np.allclose(other[~own], logs[~own])


def test_rows_of_one_part_are_scaled_by_what_the_others_say():
    decision, codes, weight, parts = held_out(2)
    choice, logs = scale_out_of_fold(decision, codes, weight, parts)
    np.testing.assert_allclose(np.exp(logs).sum(axis=1), 1.0)
    np.testing.assert_array_equal(logs.argmax(axis=1), most_probable(decision))  # temperature scaling keeps classes
    assert choice.keeps_classes
    for part in range(5):
        own = parts == part
        scaling = fit_temperature_scaling(decision[~own], codes[~own], weight[~own])
        np.testing.assert_allclose(logs[own], log_probabilities(scaling(decision[own])))


def test_a_class_that_was_never_held_out_has_a_probability_all_the_same():
    decision, codes, weight, parts = held_out(3)
    codes = np.where(codes == 2, 0, codes)
    choice, logs = scale_out_of_fold(decision, codes, weight, parts)
    assert choice.keeps_classes
    assert logs.shape == (40, 3)
    assert np.isfinite(logs).all()


def test_enough_rows_of_two_classes_can_be_tested():
    assert is_testable(np.arange(MIN_TESTED) % 2)
    assert not is_testable(np.arange(MIN_TESTED - 1) % 2)
    assert not is_testable(np.zeros(100, dtype=int))


@pytest.mark.parametrize("shape", [(30,), (30, 3)])
def test_a_guessed_scaling_keeps_the_class_of_every_row(shape):
    decision = 100.0 * np.random.default_rng(0).standard_cauchy(size=shape)
    logits = guess_scaling(decision)(decision)
    np.testing.assert_array_equal(most_probable(logits), most_probable(decision))
    assert np.abs(logits).max() <= 2.0 * UNTESTED_SLOPE  # values are bounded by two units


def test_a_guessed_scaling_gives_the_usual_value_the_stated_probability():
    decision = np.array([-2.0, -1.0, 1.0, 2.0, 1.5, -1.5])  # the median of the sizes is 1.5
    probability = np.exp(log_probabilities(guess_scaling(decision)(np.array([1.5]))))[0, 1]
    assert probability == pytest.approx(1 / (1 + np.exp(-UNTESTED_SLOPE / 2)))


def test_a_guessed_scaling_of_equal_outputs_is_finite():
    for decision in (np.zeros(5), np.ones(5), np.zeros((5, 3)), np.eye(3)):
        logits = guess_scaling(decision)(decision)
        assert np.isfinite(logits).all()


def test_a_mixture_is_the_weighted_mean_of_the_members_probabilities():
    X = np.random.default_rng(0).uniform(-1, 1, size=(10, 6))
    members = [
        Member("a", Fixed([0, 1, 2], 3), 0.7, plain(3)),
        Member("b", Fixed([3, 4, 5], 3), 0.3, plain(3)),
    ]
    expected = 0.7 * softmax(X[:, :3], axis=1) + 0.3 * softmax(X[:, 3:], axis=1)
    found = mix_probabilities(members, np.ones(3), X)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)


def test_factors_of_classes_are_those_of_the_odds():
    X = np.random.default_rng(0).uniform(-1, 1, size=(10, 1))
    member = Member("a", Fixed(0, 2), 1.0, plain(1))
    plainly, shifted = (mix_probabilities([member], factors, X) for factors in (np.ones(2), np.array([1.0, 3.0])))
    np.testing.assert_allclose(shifted.sum(axis=1), 1.0)
    np.testing.assert_allclose(shifted[:, 1] / shifted[:, 0], 3.0 * plainly[:, 1] / plainly[:, 0])


def test_numbers_are_the_weighted_mean():
    X = np.arange(8.0).reshape(4, 2)
    members = [Member("a", Fixed(0), 0.25), Member("b", Fixed(1), 0.75)]
    np.testing.assert_allclose(mix_numbers(members, X), 0.25 * X[:, 0] + 0.75 * X[:, 1])

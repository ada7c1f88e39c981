"""Labels that predictions contradict."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax
from sklearn.datasets import load_digits

from kernelweave import LapSVMClassifier
from kernelweave.model_selection import out_of_fold
from kernelweave.model_selection.suspects import rank_suspect_numbers, rank_suspects


def draw(seed, n=4000, k=4):
    """Probabilities of rows, classes drawn from them, and the generator."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(k, 0.3), size=n)
    truth = (P.cumsum(axis=1) < rng.random(n)[:, None]).sum(axis=1)
    return P, truth, rng


def test_scores_of_calibrated_probabilities_are_the_chances_of_a_wrong_label():
    # the label is an independent guess: it is wrong with probability 1 - p, so the mean of the scores estimates the
    # share of wrong labels; each is a 0/1 variable, and five standard errors of their mean are at most 2.5 / sqrt(n)
    P, truth, rng = draw(0)
    labels = rng.integers(0, 4, len(truth))
    scores = rank_suspects(P, labels).scores
    for low in (0.0, 0.25, 0.5, 0.75):
        some = (scores >= low) & (scores <= low + 0.25)
        assert abs((labels != truth)[some].mean() - scores[some].mean()) < 2.5 / np.sqrt(some.sum())


def test_no_other_order_finds_more_wrong_labels_in_expectation():
    # the chances of being wrong are the scores, so the largest scores have the largest sum (exchange argument)
    P, _, rng = draw(1, n=200)
    labels = rng.integers(0, 4, 200)
    found = rank_suspects(P, labels)
    chances = 1 - P[np.arange(200), labels]
    for n in (1, 10, 50):
        assert chances[found.order[:n]].sum() == pytest.approx(np.sort(chances)[::-1][:n].sum())


def test_suggestions_are_the_most_probable_other_classes():
    P, _, rng = draw(2, n=100)
    labels = rng.integers(0, 4, 100)
    found = rank_suspects(P, labels)
    assert (found.suggestions != labels).all()
    others = np.where(np.eye(4, dtype=bool)[labels], -1, P)
    assert_array_equal(found.suggestions, others.argmax(axis=1))


def test_weights_are_costs_and_ties_go_to_the_more_probable_other_class():
    P = np.array([[0.5, 0.25, 0.25], [0.5, 0.5, 0.0], [0.9, 0.1, 0.0]])
    codes = np.zeros(3, dtype=int)
    assert_array_equal(rank_suspects(P, codes).order, [1, 0, 2])
    assert_array_equal(rank_suspects(P, codes, np.array([1.0, 1.0, 20.0])).order, [2, 1, 0])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_changed_labels_of_digits_come_first(seed):
    X, truth = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    labeled = rng.choice(len(X), 100, replace=False)
    wrong = rng.choice(labeled, 20, replace=False)
    y = np.full(len(X), -1)
    y[labeled] = truth[labeled]
    y[wrong] = (truth[wrong] + rng.integers(1, 10, 20)) % 10
    result = out_of_fold(LapSVMClassifier(random_state=0), X / 16, y, random_state=seed)
    order = rank_suspects(softmax(3 * result.predictions, axis=1), y[result.rows]).order
    assert np.isin(result.rows[order[:25]], wrong).sum() >= 15


def test_numbers_are_ranked_by_residuals_in_units_of_their_spread():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=2001)
    found = rank_suspect_numbers(np.zeros(2001), 3.0 * noise)
    # the median of |z| is 0.674 with the standard error 0.5 / (0.636 sqrt(n)), 0.636 being its density there: 2.6 %
    assert_allclose(found.scores, np.abs(noise), rtol=0.08)
    assert_array_equal(found.order[:20], np.argsort(-np.abs(noise))[:20])
    by_row = rank_suspect_numbers(np.zeros(3), np.array([1.0, 2.0, 3.0]), np.array([0.1, 1.0, 3.0]))
    assert_allclose(by_row.scores, [10.0, 2.0, 1.0])


def test_a_single_wrong_number_among_exact_predictions_is_first():
    found = rank_suspect_numbers(np.zeros(5), np.array([0.0, 0.0, 1e-9, 0.0, 0.0]))
    assert_array_equal(found.scores, [0, 0, np.inf, 0, 0])
    assert found.order[0] == 2

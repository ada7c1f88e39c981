"""Rows that are worth labelling next."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_matrix
from scipy.special import softmax
from sklearn.datasets import load_digits

from kernelweave import LapSVMClassifier
from kernelweave.model_selection.label_next import CANDIDATES, choose_rows_to_label, margin_uncertainty


@pytest.fixture
def sample():
    """Ten tight clusters of 30 rows; in each the first rows are the most uncertain."""
    rng = np.random.default_rng(0)
    points = np.repeat(np.arange(10.0), 30)[:, None] * [1.0, -1.0] + 0.01 * rng.normal(size=(300, 2))
    p = 0.5 + 0.4 * (np.arange(300) % 30) / 30
    return np.column_stack([p, 1 - p]), points


def test_uncertainty_is_one_less_the_margin_of_the_two_largest():
    P = np.array([[0.2, 0.5, 0.3], [1.0, 0.0, 0.0], [0.5, 0.0, 0.5]])
    assert_allclose(margin_uncertainty(P), [0.8, 0.0, 1.0])


def test_each_of_ten_rows_comes_from_another_of_ten_clusters(sample):
    chosen = choose_rows_to_label(*sample, 10, random_state=0)
    assert_array_equal(np.sort(chosen // 30), np.arange(10))
    uncertain = np.argsort(-margin_uncertainty(sample[0]), kind="stable")[: CANDIDATES * 10]
    assert np.isin(chosen, uncertain).all()
    assert (np.diff(margin_uncertainty(sample[0])[chosen]) <= 0).all()


@pytest.mark.parametrize("n_rows", [1, 3, 299, 300, 1000])
def test_rows_are_chosen_once_and_labelled_ones_never(sample, n_rows):
    labeled = np.arange(0, 300, 7)
    chosen = choose_rows_to_label(*sample, n_rows, labeled=labeled, random_state=0)
    assert len(chosen) == len(set(chosen.tolist())) == min(n_rows, 300 - len(labeled))
    assert not np.isin(chosen, labeled).any()


def test_frames_and_sparse_rows_give_the_choice_of_arrays(sample):
    P, points = sample
    expected = choose_rows_to_label(P, points, 5, random_state=0)
    for same in (pd.DataFrame(points, columns=["a", "b"]), csr_matrix(points)):
        assert_array_equal(np.sort(choose_rows_to_label(P, same, 5, random_state=0)), np.sort(expected))


@pytest.mark.filterwarnings("error")
def test_equal_rows_and_sure_models_are_no_obstacle():
    chosen = choose_rows_to_label(np.tile([1.0, 0.0], (50, 1)), np.zeros((50, 2)), 4, random_state=0)
    assert len(set(chosen.tolist())) == 4


def test_a_wrong_number_of_rows_is_refused(sample):
    with pytest.raises(ValueError, match="choose_rows_to_label got n_rows=0; expected a whole number, 1 or more"):
        choose_rows_to_label(*sample, 0)


@pytest.mark.slow
def test_chosen_labels_of_digits_leave_at_most_60_percent_of_the_errors_of_random_ones():
    X, truth = load_digits(return_X_y=True)
    errors = np.array([compare_with_random_labels(X / 16, truth, seed) for seed in range(4)])
    chosen, random = errors.mean(axis=0)
    assert chosen <= 0.6 * random


def compare_with_random_labels(X, truth, seed):
    """Errors on rows set aside, with 20 random labels and 40 that were chosen in batches of 10, or drawn."""
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(X))
    pool, test = rows[:1297], rows[1297:]

    def fit(labeled):
        y = np.full(len(pool), -1)
        y[labeled] = truth[pool[labeled]]
        return LapSVMClassifier(random_state=0).fit(X[pool], y)

    labeled = rng.choice(len(pool), 20, replace=False)
    drawn = np.append(labeled, rng.choice(np.setdiff1d(np.arange(len(pool)), labeled), 40, replace=False))
    for _ in range(4):
        probabilities = softmax(3 * fit(labeled).decision_function(X[pool]), axis=1)
        labeled = np.append(
            labeled, choose_rows_to_label(probabilities, X[pool], 10, labeled=labeled, random_state=seed)
        )
    return [np.mean(fit(rows).predict(X[test]) != truth[test]) for rows in (labeled, drawn)]

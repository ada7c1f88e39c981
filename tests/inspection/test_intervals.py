import numpy as np
import pytest

from kernelweave.inspection.intervals import difference_of_roots, difference_of_shares


def test_equal_predictions_of_few_rows_leave_room_for_a_difference():
    few, many = (difference_of_shares(np.zeros(n), np.zeros(n)) for n in (10, 1000))
    assert few.value == many.value == 0.0
    assert few.low == -few.high
    assert few.high > 10 * many.high > 0


def test_one_row_in_three_that_only_one_gets_wrong_is_a_clear_difference():
    worse = np.arange(90) % 3 == 0
    found = difference_of_shares(worse, np.zeros(90))
    assert found.value == pytest.approx(1 / 3)
    assert 0 < found.low < found.value < found.high < 1
    turned = difference_of_shares(np.zeros(90), worse)
    assert tuple(turned) == pytest.approx((-found.value, -found.high, -found.low))


def test_the_interval_of_shares_covers_the_true_difference_as_often_as_it_says():
    rng = np.random.default_rng(0)
    covered = []
    for _ in range(400):  # two models of error 0.2 and 0.3, wrong on the same rows as far as possible
        u = rng.random(60)
        found = difference_of_shares(u < 0.3, (u < 0.2).astype(float))
        covered.append(found.low <= 0.1 <= found.high)
    assert np.mean(covered) > 0.95  # rows are independent here, and the interval is made for folds


def test_roots_of_mean_squares_are_compared_in_their_own_unit():
    rng = np.random.default_rng(0)
    errors = rng.normal(size=(2, 4000)) * [[3.0], [1.0]]
    found = difference_of_roots(*np.square(errors))
    assert found.value == pytest.approx(2.0, abs=0.1)
    assert found.low < 2.0 < found.high
    assert found.high - found.low < 0.4
    scaled = difference_of_roots(*np.square(10 * errors))
    assert tuple(scaled) == pytest.approx(tuple(10 * value for value in found))


def test_perfect_predictions_have_roots_too():
    assert difference_of_roots(np.zeros(5), np.zeros(5)) == (0.0, 0.0, 0.0)
    assert difference_of_roots(np.ones(1), np.zeros(1)).high == np.inf

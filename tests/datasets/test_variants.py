"""Sets that are made of a stored one: their rows are the rows they say."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.utils import Bunch

from kernelweave.datasets import load
from kernelweave.datasets.records import STORED
from kernelweave.datasets.variants import VARIANTS


def digits():
    y = np.arange(40) % 10
    return Bunch(data=np.arange(80.0).reshape(40, 2), target=y, is_test=np.arange(40) >= 30)


def derived(name, bunch):
    return VARIANTS[name].derive(bunch)


def test_names_are_new_and_what_they_are_made_of_is_stored():
    assert not VARIANTS.keys() & STORED.keys()
    assert {record.of for record in VARIANTS.values()} <= STORED.keys()


@pytest.mark.parametrize("a, b", [(3, 8), (4, 9), (5, 6), (2, 7)])
def test_a_pair_is_of_training_rows_with_the_second_digit_positive(a, b):
    out = derived(f"usps_{a}v{b}", digits())
    assert_array_equal(out.data[:, 0] / 2, [row for row in range(30) if row % 10 in (a, b)])
    assert_array_equal(out.target, [1 if row % 10 == b else -1 for row in range(30) if row % 10 in (a, b)])


def test_odd_against_even_is_of_the_test_rows():
    out = derived("usps_odd_even", digits())
    assert_array_equal(out.data[:, 0] / 2, np.arange(30, 40))
    assert_array_equal(out.target, [-1, 1] * 5)


def test_the_first_digits_keep_their_classes_and_test_rows():
    out = derived("usps_3_classes", digits())
    assert_array_equal(out.target, [0, 1, 2] * 4)
    assert_array_equal(out.is_test, [False] * 9 + [True] * 3)


def test_odd_against_even_of_mnist_keeps_all_rows_and_their_positions():
    bunch = Bunch(data=np.zeros((3, 2)), target=np.array([4, 7, 0]), train_index=np.array([9, 8, 7]))
    out = derived("mnist_odd_even", bunch)
    assert_array_equal(out.target, [-1, 1, -1])
    assert_array_equal(out.train_index, [9, 8, 7])
    assert_array_equal(bunch.target, [4, 7, 0])


def test_of_equal_rows_the_first_stays_in_its_place():
    X = np.array([[5, 0], [1, 1], [5, 0], [0, 9], [1, 1]])
    bunch = Bunch(data=X, target=np.arange(10.0).reshape(5, 2), is_test=np.array([0, 0, 1, 1, 1], dtype=bool))
    out = derived("wifi_icdm2007_distinct", bunch)
    assert_array_equal(out.data, X[[0, 1, 3]])
    assert_array_equal(out.target, bunch.target[[0, 1, 3]])
    assert_array_equal(out.is_test, [False, False, True])


@pytest.mark.data
def test_the_column_that_is_left_out_of_ionosphere_is_the_constant_one():
    whole, without = load("ionosphere").data, load("ionosphere_33").data
    assert_array_equal(np.flatnonzero(np.ptp(whole, axis=0) == 0), [1])
    assert_array_equal(without, whole[:, np.ptp(whole, axis=0) > 0])


@pytest.mark.data
def test_distinct_rows_of_wifi_are_distinct_and_all_there():
    whole, distinct = load("wifi_icdm2007"), load("wifi_icdm2007_distinct")
    rows = set(map(tuple, distinct.data))
    assert len(rows) == len(distinct.data)
    assert rows == set(map(tuple, whole.data))
    assert np.sum(~distinct.is_test) == 440

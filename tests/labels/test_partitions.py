"""Partitions of the rows: what they say, and what is left of them when rows are left out."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from kernelweave.labels import partition, partition_targets


def test_signs_and_indicator_say_the_class_of_each_labelled_row():
    part = partition(["b", None, "a", "c", "b"])
    assert (part.n_labeled, part.n_unlabeled, part.n_classes) == (4, 1, 3)
    assert_array_equal(part.signs(1), [1.0, -1.0, -1.0, 1.0])
    assert_array_equal(part.indicator(), [[0, 1, 0], [1, 0, 0], [0, 0, 1], [0, 1, 0]])
    for k in range(3):
        assert_array_equal(part.signs(k), 2 * part.indicator()[:, k] - 1)
    for k in (-1, 3):
        with pytest.raises(IndexError, match="from 0 to 2"):
            part.signs(k)


def test_the_arrays_of_a_partition_cannot_be_written_to_and_y_still_can():
    y = np.array([0.5, np.nan, 1.5])
    for part in (partition([0, 1, None]), partition_targets(y)):
        for name in ("labeled", "unlabeled"):
            with pytest.raises(ValueError, match="read-only"):
                getattr(part, name)[:1] = 0
    with pytest.raises(AttributeError):
        part.labeled = y
    y[0] = 2.0
    assert partition_targets(y).targets[0] == 2.0


def test_a_partition_can_be_pickled():
    part = pickle.loads(pickle.dumps(partition(["a", None, "b"])))
    assert part.classes.tolist() == ["a", "b"]


def test_a_restricted_partition_keeps_what_minus_one_means():
    y = np.array([0, -1, 1, 2, -1, 1])
    keep = np.array([True, False, True, False, True, True])
    part = partition(y).restrict(keep)
    assert_array_equal(part.classes, [0, 1])
    assert_array_equal(part.labeled, [0, 1, 3])
    assert_array_equal(part.unlabeled, [2])
    assert_array_equal(part.classes[part.codes], y[keep][part.labeled])
    with pytest.raises(ValueError, match=r"only one class, \[1\]"):
        partition(y).restrict(y != 0).restrict(np.array([False, True, False, True, True]))
    targets = partition_targets([1.0, None, 3.0]).restrict([False, True, True])
    assert_array_equal(targets.targets, [3.0])
    assert_array_equal(targets.labeled, [1])


@pytest.mark.parametrize("keep", [[0, 1], [True, False], np.ones((3, 1), dtype=bool)])
def test_a_restriction_that_is_no_mask_is_refused(keep):
    with pytest.raises(ValueError, match="boolean mask over all 3 rows"):
        partition([0, 1, None]).restrict(keep)

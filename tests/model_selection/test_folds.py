"""Folds of the labelled rows of positive weight."""

import numpy as np
import pytest
from checks.partly_labeled import MeanRegressor, NearestMean
from numpy.testing import assert_array_equal
from sklearn.model_selection import KFold

from kernelweave.model_selection.folds import check_weights, make_folds

Y = np.array([0, 1] * 6 + [-1] * 4)
KEPT = np.setdiff1d(np.arange(16), [0, 3, 13])
KNOWN = np.where(Y == -1, None, Y.astype(object))[KEPT]


@pytest.mark.parametrize("cv", [3, KFold(3), list(KFold(3).split(Y))], ids=["int", "splitter", "pairs"])
def test_rows_of_weight_zero_are_in_no_training_part(cv):
    folds = list(make_folds(cv, Y[:, None], Y, None, KNOWN, KEPT, "classes", 0))
    assert len(folds) == 3
    for train, test in folds:
        assert np.isin(train, KEPT).all()
        assert not np.isin(train, test).any()


def test_a_number_of_folds_holds_out_labelled_rows_and_whole_groups():
    groups = np.arange(16) // 4
    folds = list(make_folds(2, Y[:, None], Y, groups, KNOWN, KEPT, "classes", 0))
    assert_array_equal(np.sort(np.concatenate([test for _, test in folds])), KEPT[KEPT < 12])
    assert all(len(np.intersect1d(groups[test], groups[train])) == 0 for train, test in folds)


def test_weights_are_checked():
    assert_array_equal(check_weights(MeanRegressor(), None, 3), np.ones(3))
    assert_array_equal(check_weights(NearestMean(), [0, 2, 1], 3), [0.0, 2.0, 1.0])
    for weights, message in [([1, 1], "for each of 3 rows"), ([-1, 1, 1], "smallest"), ([0, 0, 0], "All sample")]:
        with pytest.raises(ValueError, match=message):
            check_weights(NearestMean(), weights, 3)
    with pytest.raises(ValueError, match="has no sample_weight in fit"):
        check_weights(MeanRegressor(), np.ones(3), 3)

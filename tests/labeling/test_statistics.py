import math

import numpy as np
import pytest
from scipy.stats import norm, wilcoxon

from kernelweave.labeling.statistics import (
    SIGNIFICANT,
    class_error,
    covering_radius,
    mcnemar,
    signed_rank,
    wilson_interval,
)


@pytest.mark.parametrize("wrong, rows", [(0, 10), (3, 50), (50, 50)])
def test_the_interval_is_wilsons(wrong, rows):
    interval = wilson_interval(wrong, rows)
    assert 0.0 <= interval[0] <= wrong / rows <= interval[1] <= 1.0
    for rate in interval:  # a rate at either end is rejected at the very level of the normal test, or is 0 or 1
        deviation, spread = abs(wrong / rows - rate), math.sqrt(rate * (1 - rate) / rows)
        assert deviation == pytest.approx(norm.ppf(0.975) * spread, abs=1e-7)


def test_the_radius_covers_the_wanted_share():
    assert covering_radius(np.arange(1.0, 100.0)) == 90.0
    assert np.isnan(covering_radius(np.ones(5)))


def test_the_balanced_error_is_the_mean_over_classes():
    error = class_error(np.array(["a", "a", "a", "b"]), np.array(["a", "a", "b", "a"]))
    assert error["error"] == 0.5
    assert error["balanced_error"] == pytest.approx((1 / 3 + 1) / 2)
    assert error["interval"] == list(wilson_interval(2, 4))


def test_mcnemar_counts_the_rows_on_which_two_disagree_and_no_others():
    ours, other = np.zeros((2, 40), dtype=bool)
    ours[:9], other[8:11] = True, True  # 8 rows are wrong for us alone, 2 for the other alone
    expected = 2 * sum(math.comb(10, k) for k in range(3)) / 2**10
    assert mcnemar(ours, other) == pytest.approx(expected)
    assert mcnemar(other, ours) == pytest.approx(expected)
    assert mcnemar(ours, ours) == 1.0


@pytest.mark.parametrize("n_rows, n_worse, significant", [(5, 5, False), (6, 6, True), (20, 14, False), (20, 15, True)])
def test_a_few_rows_are_not_clear(n_rows, n_worse, significant):
    ours = np.arange(n_rows) < n_worse
    assert (mcnemar(ours, ~ours) < 0.05) is significant


def test_signed_ranks_speak_for_the_other_method_only():
    rng = np.random.default_rng(0)
    large, small = rng.exponential(size=(2, 60)) * [[2.0], [1.0]]
    assert signed_rank(large, small) == pytest.approx(wilcoxon(large, small).pvalue)
    assert signed_rank(small, large) == 1.0
    assert signed_rank(small, small) == 1.0
    outlier = np.append(np.full(30, 1.0), 1e3)  # its mean is larger, its ranks are smaller
    assert signed_rank(outlier, np.append(np.full(30, 1.1), 1.0)) == 1.0


def test_equal_methods_are_told_apart_at_the_level_of_the_test():
    rng = np.random.default_rng(0)
    found = [mcnemar(*(rng.random((2, 60)) < 0.2)) < SIGNIFICANT for _ in range(400)]
    assert np.mean(found) < 0.05 + 2 * math.sqrt(0.05 * 0.95 / 400)  # the test is exact: at most 5 %

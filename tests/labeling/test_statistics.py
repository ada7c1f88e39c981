import math

import numpy as np
import pytest
from scipy.stats import norm, wilcoxon

from kernelweave.labeling.statistics import (
    SIGNIFICANCE_LEVEL,
    class_error,
    compare_errors,
    interval_radius,
    mcnemar_test,
    signed_rank_test,
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
    assert interval_radius(np.arange(1.0, 100.0)) == 90.0
    assert np.isnan(interval_radius(np.ones(5)))


def test_the_balanced_error_is_the_mean_over_classes():
    error = class_error(np.array(["a", "a", "a", "b"]), np.array(["a", "a", "b", "a"]))
    assert error["error"] == 0.5
    assert error["balanced_error"] == pytest.approx((1 / 3 + 1) / 2)
    assert error["interval"] == list(wilson_interval(2, 4))


def test_mcnemar_counts_the_rows_on_which_two_disagree_and_no_others():
    ours, other = np.zeros((2, 40), dtype=bool)
    ours[:9], other[8:11] = True, True  # 8 rows are wrong for us alone, 2 for the other alone
    expected = 2 * sum(math.comb(10, k) for k in range(3)) / 2**10
    assert mcnemar_test(ours, other) == pytest.approx(expected)
    assert mcnemar_test(other, ours) == pytest.approx(expected)
    assert mcnemar_test(ours, ours) == 1.0


@pytest.mark.parametrize("n_rows, n_worse, significant", [(5, 5, False), (6, 6, True), (20, 14, False), (20, 15, True)])
def test_a_few_rows_are_not_clear(n_rows, n_worse, significant):
    ours = np.arange(n_rows) < n_worse
    assert (mcnemar_test(ours, ~ours) < 0.05) is significant


def test_signed_ranks_speak_for_the_other_method_only():
    rng = np.random.default_rng(0)
    large, small = rng.exponential(size=(2, 60)) * [[2.0], [1.0]]
    assert signed_rank_test(large, small) == pytest.approx(wilcoxon(large, small).pvalue)
    assert signed_rank_test(small, large) == 1.0
    assert signed_rank_test(small, small) == 1.0
    outlier = np.append(np.full(30, 1.0), 1e3)  # its mean is larger, its ranks are smaller
    assert signed_rank_test(outlier, np.append(np.full(30, 1.1), 1.0)) == 1.0


def test_equal_methods_are_told_apart_at_the_level_of_the_test():
    rng = np.random.default_rng(0)
    found = [mcnemar_test(*(rng.random((2, 60)) < 0.2)) < SIGNIFICANCE_LEVEL for _ in range(400)]
    assert np.mean(found) < 0.05 + 2 * math.sqrt(0.05 * 0.95 / 400)  # the test is exact: at most 5 %


@pytest.mark.parametrize("peer, p_value, clearly", [(0.1, 0.01, True), (0.1, 0.2, False), (0.13, 0.01, False)])
def test_another_error_is_clearly_smaller_only_if_it_is_and_chance_is_unlikely(peer, p_value, clearly):
    errors = {name: {"rmse": error} for name, error in {"kernelweave": 0.12, "mean": 0.5, "SVR": peer}.items()}
    notes = compare_errors(errors, "rmse", p_value)
    assert notes == (["SVR has a clearly smaller error on these data (paired test, p = 0.01)."] if clearly else [])


@pytest.mark.parametrize("error, noted", [(0.49, False), (0.5, True), (0.6, True)])
def test_labels_no_better_than_the_simplest_methods_are_noted(error, noted):
    errors = {
        name: {"error": value} for name, value in {"kernelweave": error, "majority class": 0.5, "SVC": 0.7}.items()
    }
    notes = compare_errors(errors, "error", 1.0)
    assert [("no better than those of the majority class" in note) for note in notes] == [True] * noted

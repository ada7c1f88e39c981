"""Sets and intervals cover the truth as often as they say."""

import math

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from kernelweave.model_selection.conformal import (
    class_sets,
    conformal_threshold,
    number_intervals,
    weighted_threshold,
)

N_DRAWS = 4000


def standard_errors(expected, n=N_DRAWS, count=5):
    """What a share of so many independent draws may differ from its expectation."""
    return count * math.sqrt(expected * (1 - expected) / n)


@pytest.mark.parametrize("n, coverage", [(9, 0.9), (19, 0.9), (25, 0.8), (50, 0.95), (100, 0.5)])
def test_a_new_score_is_covered_with_the_probability_of_its_rank(n, coverage):
    # distinct exchangeable scores: the rank of the last is uniform, so it is covered with probability r / (n + 1)
    rng = np.random.default_rng(n)
    draws = rng.standard_cauchy((N_DRAWS, n + 1))
    covered = np.mean([draw[-1] <= conformal_threshold(draw[:-1], coverage) for draw in draws])
    expected = math.ceil(coverage * (n + 1) - 1e-9) / (n + 1)
    assert coverage - 1e-9 <= expected < coverage + 1 / (n + 1)
    assert abs(covered - expected) < standard_errors(expected)


@pytest.mark.parametrize("n", range(1, 400, 7))
def test_the_rank_is_not_moved_by_rounding(n):
    scores = np.random.default_rng(n).permutation(np.arange(1, n + 1.0))
    for percent in (7, 50, 80, 90, 95, 99):
        rank = -(-percent * (n + 1) // 100)
        assert conformal_threshold(scores, percent / 100) == (rank if rank <= n else math.inf)


def draw_classes(rng, n, k=4, wrong=0.0):
    """Probabilities that a model gives, and classes drawn from the true ones; `wrong` mixes the model's with noise."""
    true = rng.dirichlet(np.full(k, 0.5), size=n)
    codes = (true.cumsum(axis=1) < rng.random(n)[:, None]).sum(axis=1).clip(max=k - 1)
    return (1 - wrong) * true + wrong * rng.dirichlet(np.ones(k), size=n), codes


@pytest.mark.parametrize("wrong", [0.0, 0.5, 1.0], ids=["true", "biased", "useless"])
def test_sets_of_classes_cover_whatever_the_model(wrong):
    rng = np.random.default_rng(1)
    covered, n = [], 30
    for _ in range(N_DRAWS):
        P, codes = draw_classes(rng, n + 1, wrong=wrong)
        covered.append(class_sets(P[n:], P[:n], codes[:n], 0.8)[0, codes[n]])
    assert np.mean(covered) > 0.8 - standard_errors(0.8)
    # the only excess beyond the rank is that of sets that were empty: none here where many classes are allowed
    if wrong == 1.0:
        assert np.mean(covered) < 25 / 31 + standard_errors(0.8)


@pytest.mark.parametrize("n, coverage", [(9, 0.9), (8, 0.9), (25, 0.8), (100, 0.5)])
def test_scores_that_count_alike_have_the_threshold_of_their_rank(n, coverage):
    scores = np.random.default_rng(n).normal(size=n)
    for count in (1.0, 0.3, 7.0):
        assert weighted_threshold(scores, np.full(n, count), count, coverage) == conformal_threshold(scores, coverage)


def test_sets_cover_where_classes_have_other_shares_than_among_the_known_rows():
    rng = np.random.default_rng(5)
    known_shares, shares = np.array([0.5, 0.5]), np.array([0.9, 0.1])
    covered = {"with ratios": [], "without": []}
    for _ in range(N_DRAWS):
        codes = np.append(rng.random(40) < known_shares[1], rng.random() < shares[1]).astype(int)
        scores = rng.exponential(np.where(codes == 0, 1.0, 0.1))  # the class that is frequent now is the hard one
        P = np.column_stack([np.exp(-scores), 1 - np.exp(-scores)])
        P[codes == 1] = P[codes == 1, ::-1]
        for name, ratios in {"with ratios": shares / known_shares, "without": None}.items():
            covered[name].append(class_sets(P[40:], P[:40], codes[:40], 0.8, ratios)[0, codes[40]])
    assert np.mean(covered["with ratios"]) > 0.8 - standard_errors(0.8)
    assert np.mean(covered["without"]) < 0.8 - standard_errors(0.8)


def test_sets_by_true_probabilities_have_the_fewest_classes():
    # Sadinle et al. 2019, theorem 1: at equal coverage no other rule has fewer classes in the mean; sets of a model
    # that is partly noise are larger
    rng = np.random.default_rng(2)
    sizes = []
    for wrong in (0.0, 0.3, 0.7, 1.0):
        P, codes = draw_classes(rng, 20000, wrong=wrong)
        sets = class_sets(P[10000:], P[:10000], codes[:10000], 0.9)
        assert abs(sets[np.arange(10000), codes[10000:]].mean() - 0.9) < 2 * standard_errors(0.9, 10000)
        sizes.append(sets.sum(axis=1).mean())
    assert (np.diff(sizes) > 0).all()


def test_sets_are_never_empty_and_grow_with_coverage():
    P, codes = draw_classes(np.random.default_rng(3), 300)
    smaller = class_sets(P[200:], P[:200], codes[:200], 0.05)
    assert_array_equal(smaller.sum(axis=1) >= 1, True)
    assert smaller[np.arange(100), P[200:].argmax(axis=1)].all()
    for coverage in (0.3, 0.6, 0.9, 0.99):
        sets = class_sets(P[200:], P[:200], codes[:200], coverage)
        assert (sets >= smaller).all()
        smaller = sets


def test_too_few_rows_give_all_classes_and_infinite_intervals():
    P, codes = draw_classes(np.random.default_rng(4), 12)
    assert class_sets(P, P[:8], codes[:8], 0.9).all()
    assert not class_sets(P, P[:9], codes[:9], 0.9).all()
    assert_array_equal(number_intervals(np.zeros(2), np.ones(8), 0.9), [[-np.inf, np.inf]] * 2)
    assert_array_equal(number_intervals(np.zeros(2), np.empty(0), 0.5), [[-np.inf, np.inf]] * 2)


def test_intervals_cover_numbers_and_are_as_wide_as_the_noise():
    rng = np.random.default_rng(5)
    covered, n = [], 39
    for _ in range(N_DRAWS):
        noise = rng.normal(size=n + 1)
        low, high = number_intervals(np.array([3.0]), noise[:n], 0.9)[0]
        covered.append(low <= 3.0 + noise[n] <= high)
    assert abs(np.mean(covered) - 0.9) < standard_errors(0.9)  # 36 of 40 ranks
    low, high = number_intervals(np.zeros(1), rng.normal(size=100_000), 0.9)[0]
    assert high == -low == pytest.approx(1.645, abs=0.02)  # the 95 % quantile of the normal distribution


@pytest.mark.parametrize("coverage", [0, 1, -0.1, 90, None, "high", math.nan])
def test_a_coverage_that_is_no_probability_is_refused(coverage):
    with pytest.raises(ValueError, match=r"coverage=.*expected a number above 0 and below 1"):
        conformal_threshold(np.ones(5), coverage)

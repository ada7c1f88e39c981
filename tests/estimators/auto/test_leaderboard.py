"""Intervals of errors, paired differences, and the table of all candidates."""

import numpy as np
import pytest
from scipy.stats import binomtest, norm, ttest_rel
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.svm import SVC

from kernelweave import RKDAClassifier
from kernelweave.estimators.auto.candidates import Candidate
from kernelweave.estimators.auto.leaderboard import (
    ErrorEstimate,
    PairedDifference,
    class_error,
    model_size,
    number_error,
    paired_difference,
    paired_difference_of_classes,
    paired_difference_of_roots,
    tabulate_trials,
    weighted_mean,
    widen_for_folds,
)
from kernelweave.estimators.auto.search import SearchResult, Trial
from kernelweave.estimators.auto.trees import TreesRegressor
from kernelweave.estimators.auto.trials import Fitted


@pytest.mark.parametrize("n_wrong, n", [(0, 10), (1, 10), (7, 20), (10, 10), (30, 200)])
def test_the_interval_of_an_error_is_that_of_wilson(n_wrong, n):
    found = class_error(np.arange(n) < n_wrong, np.ones(n))
    expected = binomtest(n_wrong, n).proportion_ci(0.95, method="wilson")
    assert found.n_rows == n
    assert found.value == pytest.approx(n_wrong / n)
    assert found.low == pytest.approx(expected.low, abs=1e-12)
    assert found.high == pytest.approx(expected.high, abs=1e-12)


def test_no_error_and_errors_only_have_exact_ends():
    assert class_error(np.zeros(5, dtype=bool), np.ones(5)).low == 0.0
    assert class_error(np.ones(5, dtype=bool), np.ones(5)).high == 1.0


def test_weights_change_the_error_and_equal_ones_do_not_change_the_interval():
    wrong = np.array([True, False, False, False])
    assert class_error(wrong, np.array([3.0, 1.0, 1.0, 1.0])).value == 0.5
    assert class_error(wrong, np.full(4, 7.0)) == class_error(wrong, np.ones(4))
    unequal, equal = class_error(wrong, np.array([1.0, 1.0, 1.0, 97.0])), class_error(wrong, np.ones(4))
    assert unequal.high - unequal.low > equal.high - equal.low  # one row has nearly all weight


def test_a_mean_has_the_usual_standard_error():
    values = np.random.default_rng(0).normal(size=30)
    mean, standard_error = weighted_mean(values, np.full(30, 2.0))
    assert mean == pytest.approx(values.mean())
    assert standard_error == pytest.approx(values.std(ddof=1) / np.sqrt(30))
    assert weighted_mean(np.array([3.0]), np.ones(1)) == (3.0, 0.0)
    large = weighted_mean(1e200 * values, np.ones(30))  # whose squares overflow
    np.testing.assert_allclose(large, (1e200 * mean, 1e200 * standard_error))


def test_the_error_of_numbers_is_the_root_of_the_mean_square():
    residuals = np.random.default_rng(0).normal(size=50)
    found, thousandfold = number_error(residuals, np.ones(50)), number_error(1e3 * residuals, np.full(50, 7.0))
    assert found.value == pytest.approx(np.sqrt(np.mean(residuals**2)))
    assert found.high / found.value == pytest.approx(found.value / found.low)
    assert thousandfold.value == pytest.approx(1e3 * found.value)
    assert (thousandfold.low, thousandfold.high) == pytest.approx((1e3 * found.low, 1e3 * found.high))
    assert number_error(np.zeros(3), np.ones(3)) == ErrorEstimate(0.0, 0.0, 0.0, 3)
    assert np.isfinite(number_error(np.array([0.0, 10.0]), np.ones(2)).high)


@pytest.mark.parametrize("n_rows", [8, 30, 100])
@pytest.mark.parametrize("draw, truth", [("normal", 1.0), ("laplace", np.sqrt(2.0)), ("uniform", np.sqrt(1 / 3))])
def test_the_interval_of_the_error_of_numbers_holds_the_true_one(n_rows, draw, truth):
    rng, n_draws = np.random.default_rng(0), 400
    residuals = getattr(rng, draw)(size=(n_draws, n_rows))
    found = [number_error(each, np.ones(n_rows)) for each in residuals]
    held = np.mean([each.low <= truth <= each.high for each in found])
    assert held >= 0.95 - 3.0 * np.sqrt(0.95 * 0.05 / n_draws)


def test_a_paired_difference_has_the_standard_error_of_a_paired_test():
    rng = np.random.default_rng(0)
    without, with_them = rng.normal(1.0, 1.0, size=40), rng.normal(size=40)
    found = paired_difference(without, with_them, np.ones(40))
    assert found.difference == pytest.approx(np.mean(without - with_them))
    standard_error = found.difference / ttest_rel(without, with_them).statistic
    assert found.high - found.difference == pytest.approx(norm.ppf(0.975) * standard_error)
    assert found.difference - found.low == pytest.approx(norm.ppf(0.975) * standard_error)


def test_classes_that_are_wrong_at_the_same_few_rows_may_still_differ():
    same = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    found = paired_difference_of_classes(same, same, np.ones(6))
    assert found.difference == 0.0
    half = norm.ppf(0.975) * np.sqrt(2 / 8 / 7)  # eight rows, two of which differ
    assert found.high == pytest.approx(half)
    assert found.low == pytest.approx(-half)
    sure = paired_difference_of_classes(np.ones(400), np.zeros(400), np.ones(400))
    assert sure.difference == pytest.approx(1.0)
    assert 0.97 < sure.low < sure.high <= 1.0


def test_a_difference_of_roots_has_the_unit_of_the_numbers():
    rng = np.random.default_rng(0)
    without, with_them = np.square(rng.normal(0.0, 2.0, size=40)), np.square(rng.normal(size=40))
    found, squares = (f(without, with_them, np.ones(40)) for f in (paired_difference_of_roots, paired_difference))
    assert found.difference == pytest.approx(np.sqrt(without.mean()) - np.sqrt(with_them.mean()))
    assert (found.low > 0) == (squares.low > 0)
    assert found.low < found.difference < found.high
    larger = paired_difference_of_roots(100 * without, 100 * with_them, np.ones(40))
    assert (larger.low, larger.high) == pytest.approx((found.times(10.0).low, found.times(10.0).high))
    assert paired_difference_of_roots(np.zeros(3), np.ones(3), np.ones(3)).low == -1.0


def test_an_error_of_standardised_numbers_is_given_in_their_unit():
    assert ErrorEstimate(0.5, 0.25, 1.0, 9).times(60_000.0) == ErrorEstimate(30_000.0, 15_000.0, 60_000.0, 9)
    text = str(ErrorEstimate(29_193.0, 17_003.0, 37_611.0, 9))
    assert text == "29200 (95 % interval 17000 to 37600, 9 held-out rows)"


@pytest.mark.parametrize(
    "low, high, verdict",
    [
        (0.1, 0.3, "unlabelled rows helped"),
        (-0.3, -0.1, "unlabelled rows hurt"),
        (-0.1, 0.3, "no clear difference"),
        (0.0, 0.0, "no clear difference"),
    ],
)
def test_the_verdict_is_what_the_interval_says(low, high, verdict):
    assert PairedDifference((low + high) / 2, low, high).verdict == verdict
    assert str(PairedDifference((low + high) / 2, low, high)).startswith(verdict)


TESTED = ((np.arange(2), np.zeros(2)),)


def trial(name, values=TESTED, is_out=False):
    return Trial(Fitted(Candidate(name, None), None, None, 1.0), values, 1.0, is_out)


def test_the_table_has_every_candidate_once_the_largest_weight_first():
    trials = [trial("a"), trial("b"), trial("slow", ()), trial("bad", is_out=True), trial("broken", is_out=True)]
    result = SearchResult(trials, {"broken": "a fold failed", "never": "no"}, ["late"])
    losses = {name: (np.array([float(name == "a"), 0.0]), np.ones(2)) for name in ("a", "b", "bad", "broken")}
    table = tabulate_trials(result, losses, {"a": 0.3, "b": 0.2}, np.array([0.2, 0.8, 0.0, 0.0, 0.0]))
    assert [record["candidate"] for record in table[:2]] == ["b", "a"]
    assert {record["candidate"]: record["status"] for record in table} == {
        "a": "tested",
        "b": "tested",
        "slow": "not tested",
        "bad": "out of the race",
        "broken": "failed: a fold failed",
        "never": "failed: no",
        "late": "no time",
    }
    assert all(record.keys() == table[0].keys() for record in table)
    by_name = {record["candidate"]: record for record in table}
    assert by_name["a"]["error"] == 0.5
    assert np.isnan(by_name["slow"]["error"])
    assert np.isnan(by_name["late"]["log_loss"])
    assert sum(record["weight"] for record in table) == 1.0


def test_the_size_of_a_model_is_what_a_prediction_is_made_of():
    X = np.random.default_rng(0).normal(size=(20, 3))
    y = (X[:, 0] > 0).astype(int)
    assert model_size(make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)) == 3
    trees = TreesRegressor(boosted=True, random_state=0).fit(X, X[:, 0])
    assert model_size(trees) == len(trees.values_)
    rkda = RKDAClassifier().fit(X, y)
    assert model_size(rkda) == getattr(rkda, "n_evaluations_", 0)
    assert model_size(object()) == 0
    machine = SVC().fit(X, y)
    assert model_size(make_pipeline(machine)) == len(machine.support_vectors_)
    assert model_size(LabelSpreading().fit(X, y)) == len(X)
    codes = np.where(np.arange(20) < 15, y, -1)
    assert model_size(SelfTrainingClassifier(LogisticRegression()).fit(X, codes)) == 3
    forest = RandomForestClassifier(3, random_state=0).fit(X, y)
    assert model_size(forest) == sum(tree.get_n_leaves() for tree in forest.estimators_)
    assert model_size(HistGradientBoostingClassifier(max_iter=2, max_leaf_nodes=2, min_samples_leaf=2).fit(X, y)) == 4


def test_an_interval_by_folds_is_that_of_fewer_rows():
    wrong = np.arange(60) < 12
    widened, fewer = class_error(wrong, np.ones(60), widening=1.5), class_error(wrong[::3], np.ones(20))
    plain = class_error(wrong, np.ones(60))
    assert widened.value == plain.value
    assert fewer.low < widened.low < plain.low < plain.high < widened.high < fewer.high
    assert widen_for_folds(60, 0) < widen_for_folds(60, 600) < widen_for_folds(60, 60)

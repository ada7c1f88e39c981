from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.tree import DecisionTreeClassifier

from kernelweave import compare_learners
from kernelweave.estimators.auto.leaderboard import PairedDifference
from kernelweave.inspection.comparison import COMBINED, _rank_error

LEARNERS = ["SVM", "harmonic", ("stump", DecisionTreeClassifier(max_depth=1)), ("linear", LogisticRegression())]


def rings(n=100, n_labeled=60):
    rng = np.random.default_rng(0)
    angle, inside = rng.uniform(0, 2 * np.pi, n), np.arange(n) % 2
    X = np.column_stack([np.cos(angle), np.sin(angle)]) * (1 + 1.5 * inside)[:, None] + 0.1 * rng.normal(size=(n, 2))
    return X, np.where(np.arange(n) < n_labeled, np.array(["in", "out"], dtype=object)[inside], None)


@pytest.fixture(scope="module")
def found():
    return compare_learners(*rings(), learners=LEARNERS, random_state=0)


def test_all_learners_are_tested_on_all_labelled_rows_however_bad_they_are(found):
    assert {record["learner"] for record in found.records} == {
        "SVM", "harmonic", "stump", "linear", COMBINED, "majority class",
    }  # fmt: skip
    assert {record["rows"] for record in found.records} == {60}
    assert {record["status"] for record in found.records} == {"tested"}
    assert found.is_complete
    assert (found.n_labeled, found.n_unlabeled) == (60, 40)


def test_records_are_in_the_order_of_errors_with_intervals_around_them(found):
    errors = [_rank_error(record["error"]) for record in found.records]
    assert errors == sorted(errors)
    for record in found.records:
        assert record["low"] <= record["error"] <= record["high"]
        assert record["difference_low"] <= record["difference"] <= record["difference_high"]


def test_errors_that_differ_by_rounding_are_ties_whatever_their_unit():
    assert 0.1 + 0.2 != 0.3
    for unit in (1e-9, 1.0, 1e9):
        assert _rank_error(unit * (0.1 + 0.2)) == _rank_error(unit * 0.3)
        assert _rank_error(unit * 0.3) < _rank_error(unit * 0.3001) < _rank_error(float("nan"))


def test_differences_are_to_the_best_learner(found):
    by_name = {record["learner"]: record for record in found.records}
    best = by_name[found.best]
    assert found.best in ("SVM", "harmonic")
    assert (best["difference"], best["difference_low"], best["difference_high"]) == (0, 0, 0)
    for record in found.records:
        assert record["difference"] == pytest.approx(record["error"] - best["error"])
    assert by_name["linear"]["difference_low"] > 0  # a line does not tell rings apart
    assert by_name["majority class"]["error"] == pytest.approx(0.5)


def test_packages_time_and_size_are_told(found):
    by_name = {record["learner"]: record for record in found.records}
    assert [by_name[name]["package"] for name in ("SVM", "harmonic", "stump", "linear")] == [
        "kernelweave", "kernelweave", "scikit-learn", "scikit-learn",
    ]  # fmt: skip
    assert [by_name[name]["uses_unlabeled"] for name in ("SVM", "harmonic", "linear")] == [False, True, False]
    assert by_name["linear"]["size"] == 2
    assert all(record["seconds"] > 0 for record in found.records if record["package"])


def test_the_records_are_a_frame_in_one_call(found):
    frame = found.to_frame()
    assert frame["learner"].tolist() == [record["learner"] for record in found.records]


def test_advice_is_one_sentence_with_a_learner_and_a_word_on_unlabelled_rows(found):
    assert found.advice.startswith(f"take {found.best} (error ")
    assert "did the unlabelled rows help?" in found.advice
    assert found.advice.endswith(".")
    assert found.advice.count(". ") == 0


@pytest.mark.parametrize(
    "helped, words",
    [
        (PairedDifference(0.1, 0.05, 0.15), "yes (without them the error changes by +10.0 points, 95 % interval +5.0"),
        (PairedDifference(-0.1, -0.15, -0.05), "no, they hurt (without them"),
        (PairedDifference(0.0, -0.1, 0.1), "not clear (without them"),
        (None, "that was not tested."),
    ],
)
def test_what_unlabelled_rows_did_is_said(helped, words, found):
    assert f"help? {words}" in replace(found, unlabeled_helped=helped).advice


def test_a_table_without_unlabelled_rows_says_so(found):
    assert replace(found, n_unlabeled=0).advice.endswith("help? there are none in this table.")


def change(found, **records):
    changed = [record | records.get(record["learner"].replace(" ", "_"), {}) for record in found.records]
    return replace(found, records=changed)


def test_where_nothing_beats_the_majority_the_advice_is_to_label_more(found):
    hopeless = change(found, majority_class={"difference_low": -0.1})
    assert hopeless.advice.startswith("label more rows: no learner is clearly better than the majority class;")
    assert replace(found, best="").advice.startswith("label more rows, or allow more time")


def test_a_clear_winner_and_a_better_mixture_are_named(found):
    others = {name: {"difference_low": 0.1} for name in ("SVM", "harmonic", "stump", "linear")}
    assert "which is clearly better than all others" in change(found, **others).advice
    mixed = [
        record | ({"difference_high": -0.01, "error": 0.02} if record["learner"] == COMBINED else {})
        for record in found.records
    ]
    assert replace(found, records=mixed).advice.startswith("combine them, as `kernelweave label` does (error 2.0%)")


def test_of_several_as_good_the_fastest_is_named_only_if_it_is_faster_than_the_best(found):
    names = [each for each in ("SVM", "harmonic", "stump", "linear") if each != found.best]
    as_good = {name: {"difference_low": -0.1, "seconds": 2.0 + k} for k, name in enumerate(names)}
    slow, fast = (change(found, **as_good, **{found.best: {"seconds": seconds}}).advice for seconds in (5.0, 1.0))
    assert f"; 3 others are not clearly worse, {names[0]} the fastest of them; " in slow
    assert "; 3 others are not clearly worse, and none of them is faster; " in fast


def test_numbers_are_compared_in_their_own_unit():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = np.where(np.arange(60) < 40, 1000 + 500 * X[:, 0] + 10 * rng.normal(size=60), np.nan)
    found = compare_learners(X, y, task="numbers", learners=["harmonic", ("ridge", Ridge())], random_state=0)
    by_name = {record["learner"]: record for record in found.records}
    assert found.best == "ridge"
    assert 5 < by_name["ridge"]["error"] < 60
    assert by_name["mean"]["error"] == pytest.approx(np.std(y[:40]), rel=1e-6)
    assert "mean squared error changes by" in found.advice


def test_a_learner_that_fails_is_listed_with_its_reason_and_the_others_go_on():
    class Broken(LogisticRegression):
        def fit(self, X, y):
            raise ValueError("it does not like these rows")

    found = compare_learners(*rings(), learners=["harmonic", ("broken", Broken())], random_state=0)
    by_name = {record["learner"]: record for record in found.records}
    assert by_name["broken"]["status"] == "failed: it does not like these rows"
    assert np.isnan(by_name["broken"]["error"])
    assert found.best == "harmonic"


def test_where_time_is_over_the_comparison_says_that_it_is_not_complete():
    found = compare_learners(*rings(), learners=LEARNERS, max_time=1e-9, random_state=0)
    assert not found.is_complete
    assert sum(record["status"] == "no time" for record in found.records) == 3


def test_who_was_tested_on_fewer_rows_comes_after_the_others_and_is_not_the_best():
    class Lazy(LogisticRegression):
        """Fails after two folds."""

        n_fits = 0

        def fit(self, X, y):
            type(self).n_fits += 1
            if type(self).n_fits > 3:
                raise ValueError("it is tired")
            return super().fit(X, y)

    found = compare_learners(*rings(), learners=["harmonic", ("lazy", Lazy())], random_state=0)
    assert found.best == "harmonic"
    last = found.records[-1]
    assert (last["learner"], last["status"]) == ("lazy", "failed: it is tired")
    assert 0 < last["rows"] < 60
    assert last["difference_low"] <= last["difference"] <= last["difference_high"]


def test_frames_are_compared_as_arrays_are(found):
    X, y = rings()
    named = compare_learners(pd.DataFrame(X, columns=["a", "b"]), y, learners=LEARNERS, random_state=0)
    assert {r["learner"]: r["error"] for r in named.records} == pytest.approx(
        {r["learner"]: r["error"] for r in found.records}
    )
    assert named.best == found.best


def test_another_task_is_refused():
    with pytest.raises(ValueError, match="task"):
        compare_learners(*rings(), task="ranks")

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from kernelweave import (
    RBF,
    CGBoostClassifier,
    LabelAwareKernelLearner,
    LapSVMClassifier,
    LearnedKernelClassifier,
    LearnedKernelRegressor,
    MKLClassifier,
    MKLRegressor,
    SemiSupervisedSplit,
    SSMKClassifier,
    SSMKRegressor,
    TSVMClassifier,
)
from kernelweave.estimators.shared import fold_choice
from kernelweave.estimators.shared.fold_choice import (
    choose_candidate,
    clearly_better,
    split_labeled,
    tabulate_losses,
    warn_not_compared,
)
from kernelweave.solvers.deadline import Deadline


def test_every_row_is_held_out_once_in_each_repeat():
    codes = np.repeat([0, 1, 2], [20, 7, 2])
    folds = split_labeled(codes, len(codes), np.random.default_rng(0), 3)
    held = np.concatenate([held for _, held in folds])
    assert (np.bincount(held, minlength=29) == 3).all()
    for kept, held in folds:
        assert len(np.intersect1d(kept, held)) == 0
        assert set(codes[kept]) == {0, 1, 2}


def test_the_only_row_of_a_class_is_never_held_out():
    codes = np.array([0, 0, 0, 1, 1, 1, 2])
    folds = split_labeled(codes, 7, np.random.default_rng(0))
    assert folds
    assert all(6 in kept and 6 not in held for kept, held in folds)


def test_classes_without_a_second_row_have_no_folds():
    assert split_labeled(np.array([0, 1]), 2, np.random.default_rng(0)) == []


def test_numbers_are_dealt_evenly():
    folds = split_labeled(None, 12, np.random.default_rng(0))
    assert sorted(len(held) for _, held in folds) == [2, 2, 2, 3, 3]


def test_of_many_rows_some_take_part(monkeypatch):
    monkeypatch.setattr(fold_choice, "MAX_CHOICE_ROWS", 50)
    folds = split_labeled(None, 1000, np.random.default_rng(0))
    assert {len(kept) + len(held) for kept, held in folds} == {50}
    folds = split_labeled(None, 1000, np.random.default_rng(0), max_rows=100)
    assert {len(kept) + len(held) for kept, held in folds} == {100}


@pytest.mark.parametrize("seed", range(5))
def test_of_many_rows_two_of_each_class_take_part(seed):
    codes = np.random.default_rng(seed).permutation(np.repeat([0, 1, 2, 3], [600, 300, 3, 1]))
    folds = split_labeled(codes, len(codes), np.random.default_rng(seed), max_rows=60)
    for kept, held in folds:
        counts = np.bincount(codes[np.concatenate([kept, held])], minlength=4)
        assert counts.sum() == 60
        assert counts[2] >= 2
        assert counts[3] == 1
    assert len(folds) == 5


@pytest.mark.parametrize("n_folds", [2, 3, 5])
@pytest.mark.parametrize("codes", [None, np.repeat([0, 1, 2], [9, 5, 6])])
def test_rows_are_dealt_as_the_public_splitter_deals_them(codes, n_folds):
    y = np.arange(20.0) if codes is None else codes
    splitter = SemiSupervisedSplit(n_folds, target="numbers" if codes is None else "classes", random_state=3)
    folds = split_labeled(codes, 20, np.random.RandomState(3), n_folds=n_folds)
    for (kept, held), (train, test) in zip(folds, splitter.split(y, y), strict=True):
        np.testing.assert_array_equal(kept, train)
        np.testing.assert_array_equal(held, test)


@pytest.mark.parametrize("n_better, chosen", [(0, 0), (1, 0), (2, 1), (10, 1)])
def test_another_candidate_must_be_better_by_more_than_a_standard_error(n_better, chosen):
    losses = np.ones((2, 20))
    losses[1, :n_better] = 0.0  # n errors less: the difference is n, its standard error the root of n
    assert choose_candidate(losses) == chosen


def test_of_equal_candidates_the_default_is_taken():
    losses = np.ones((3, 20))
    losses[2, :10] = 2.0
    assert [choose_candidate(losses, default) for default in range(3)] == [0, 1, 0]


def test_one_error_less_is_not_clearly_better():
    wrong = np.zeros(20, dtype=bool)
    other = wrong.copy()
    other[0] = True
    assert not clearly_better(wrong, other)
    other[:2] = True
    assert clearly_better(wrong, other)
    assert not clearly_better(other, wrong)
    other[1] = False
    assert clearly_better(wrong, other, 0.5)
    assert not clearly_better(wrong, wrong, 0.5)


@pytest.mark.parametrize("seed", range(5))
def test_of_errors_the_standard_error_is_that_of_a_sign_test(seed):
    first, second = np.random.default_rng(seed).random((2, 30)) < [[0.2], [0.35]]
    fewer, more = np.sum(second & ~first), np.sum(first & ~second)
    assert clearly_better(first, second) == (fewer - more > np.sqrt(fewer + more))


def test_one_row_alone_is_never_clear_whatever_its_weight():
    losses, others = np.ones((2, 20))
    others[0] = 100.0
    assert not clearly_better(losses, others)


def test_scores_are_means_over_the_weight_of_held_out_rows():
    rng = np.random.default_rng(0)
    losses, weight, folds = rng.random((2, 12)), rng.random(12), split_labeled(None, 12, rng)
    weighted = np.hstack([weight[held] * losses[:, held] for _, held in folds])
    table = tabulate_losses([{"C": 1.0}, {"C": 2.0}], weighted, weight, folds, perfect_score=1.0)
    for k, (_, held) in enumerate(folds):
        expected = 1 - np.average(losses[:, held], axis=1, weights=weight[held])
        np.testing.assert_allclose(table[f"split{k}_test_score"], expected)
    np.testing.assert_allclose(table["mean_test_score"], 1 - losses @ weight / weight.sum())


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("unit", [1e-200, 1.0, 1e200])
def test_what_is_clearly_better_does_not_depend_on_the_unit(unit):
    losses = unit * np.array([1.0, 2.0, 1.5])
    assert clearly_better(losses, 2.0 * losses)
    assert not clearly_better(losses, losses + unit * np.array([1.0, -1.0, 0.1]))
    assert not clearly_better(losses, losses)
    assert not clearly_better(np.array([1.0, np.inf]), np.array([np.inf, 1.0]))


# Choices for which there was no time

LEARNER, PAIR = LabelAwareKernelLearner(RBF()), [RBF(), RBF(multiple=2.0)]
OPEN = {
    "MKL": (MKLClassifier(PAIR), "C and weighting", "C=10 and weighting=uniform were", "C and weighting"),
    "SVM": (MKLClassifier(RBF()), "C", "C=10 was", "C"),
    "weighting": (MKLClassifier(PAIR, C=1.0, weighting="auto"), "weighting", "weighting=uniform was", "weighting"),
    "numbers": (MKLRegressor(RBF()), "C", "C=5 was", "C"),
    "LapSVM": (LapSVMClassifier(RBF(), C=1.0, ratio="cv"), "ratio", "ratio=100 was", "ratio"),
    "learner": (
        LearnedKernelClassifier([LEARNER, LEARNER]),
        "C and learner", "C=10 and the first learner were", "C and learner",
    ),
    "learned numbers": (LearnedKernelRegressor(LEARNER), "C", "C=5 was", "C"),
    "SSMK": (SSMKClassifier(RBF()), "C", "C=1.29 was", "C"),
    "mixture of numbers": (SSMKRegressor(RBF()), "C", "C=0.129 was", "C"),
    "CG-Boost": (CGBoostClassifier(RBF(), penalty="l2"), "C", "C=10 was", "C"),
    "TSVM": (TSVMClassifier(RBF(), C="cv", safe=False), "C", "C=10 was", "C"),
}  # fmt: skip


@pytest.fixture(name="no_time")
def choices_without_time(monkeypatch):
    monkeypatch.setattr(Deadline, "part", lambda self, share: Deadline(0.0))


def table(is_numbers, n=80, n_labeled=60):
    X = np.random.default_rng(0).normal(size=(n, 2))
    y = np.where(np.arange(n_labeled) < n_labeled // 2, 0.0, 1.0)
    X[:n_labeled, 0] += 4 * y
    return X, np.append(y, np.full(n - n_labeled, np.nan)) if is_numbers else np.append(y, [-1] * (n - n_labeled))


@pytest.mark.parametrize("name", OPEN)
def test_what_was_taken_without_a_comparison_is_said_once(name, no_time, recwarn):
    model, compared, taken, given = OPEN[name]
    X, y = table(hasattr(model, "epsilon"))
    rows = slice(60) if name == "CG-Boost" else slice(None)
    model.set_params(max_time=1e6).fit(X[rows], y[rows])
    (message,) = [str(each.message) for each in recwarn if each.category is ConvergenceWarning]
    assert message == (
        f"Half of max_time was over before {compared} {'were' if ' and ' in compared else 'was'} compared on held-out "
        f"rows: {taken} taken. Raise max_time, or give {given}."
    )
    assert model.status_.converged
    assert len(model.cv_results_) == 0


def test_unlabelled_rows_that_were_left_out_for_want_of_time_are_said(no_time, recwarn):
    X, y = table(False)
    TSVMClassifier(RBF(), C=1.0, ramp=0.4, safe=True, max_time=1e6).fit(X, y)
    (message,) = [str(each.message) for each in recwarn if each.category is ConvergenceWarning]
    assert message == (
        "Half of max_time was over before the use of unlabelled rows was compared on held-out rows: unlabelled rows "
        "were left out. Raise max_time, or set safe=False."
    )


@pytest.mark.parametrize("name", OPEN)
def test_choices_in_time_are_no_reason_to_warn(name, recwarn):
    model = OPEN[name][0]
    X, y = table(hasattr(model, "epsilon"))
    rows = slice(60) if name == "CG-Boost" else slice(None)
    model.set_params(max_time=1e6).fit(X[rows], y[rows])
    assert not [each for each in recwarn if each.category is ConvergenceWarning]
    assert len(model.cv_results_) > 0


def test_costs_of_several_outputs_are_listed():
    with pytest.warns(
        ConvergenceWarning, match=r"held-out rows: C=\[10, 0\.123\] was taken\. Raise max_time, or give C\."
    ):
        warn_not_compared({"C": np.array([10.0, 0.12345])})

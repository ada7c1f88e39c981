"""What classifier and regressor share: groups, kernels, rows that were held out, reasons to end, and sentences."""

import numpy as np
import pandas as pd
import pytest

from kernelweave import RBF, KernelLibrary, Linear, OnColumns, RKDAClassifier
from kernelweave.estimators.auto.candidates import Candidate
from kernelweave.estimators.auto.combine import keep_prior
from kernelweave.estimators.auto.leaderboard import ErrorEstimate, PairedDifference
from kernelweave.estimators.auto.members import Member
from kernelweave.estimators.auto.run import (
    AutoOptions,
    describe,
    find_tested,
    in_the_running,
    read_groups,
    read_kernels,
    run_search,
    search_status,
)
from kernelweave.estimators.auto.search import SearchResult, Trial
from kernelweave.estimators.auto.trials import Fitted
from kernelweave.estimators.shared.sample import Rows, read_as_given
from kernelweave.labels import partition
from kernelweave.solvers.result import Status

X = np.random.default_rng(0).normal(size=(12, 3))
Y = np.arange(12) % 2


def sample_of(weight=None, names=None):
    return read_as_given(Rows(X, names), partition(Y), weight)


def test_groups_are_numbers_of_the_rows_that_take_part():
    weight = np.ones(12)
    weight[0] = 0.0
    names = list("aabbccddeeff")
    np.testing.assert_array_equal(read_groups(names, sample_of(weight)), [0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5])
    np.testing.assert_array_equal(read_groups(pd.Series(names), sample_of()), np.repeat(np.arange(6), 2))
    assert read_groups(None, sample_of()) is None
    with pytest.raises(ValueError, match=r"groups must hold a value for each of 12 rows; got shape \(3,\)"):
        read_groups([1, 2, 3], sample_of())


def test_kernels_name_columns_by_position_and_keep_their_names():
    sample = sample_of(names=np.array(["a", "b", "c"], dtype=object))
    library = KernelLibrary([("mine", OnColumns(RBF(), ["a", "c"])), Linear()], priority=["mine"])
    found = read_kernels(library, sample)
    assert found.names == library.names
    assert found.priority == library.priority
    assert found.entries[0].kernel.columns == (0, 2)
    assert found.entries[0].kernel.source == library.entries[0].kernel.source
    assert read_kernels(None, sample) is None
    with pytest.raises(ValueError, match=r"OnColumns names the columns \['z'\] which X does not have"):
        read_kernels(OnColumns(RBF(), ["z"]), sample)


def trial(folds, is_out=False):
    values = tuple((np.array(held), np.zeros(len(held))) for held in folds)
    return Trial(Fitted(Candidate("a", None), None, None, 1.0), values, 1.0, is_out)


def test_the_trials_that_held_out_most_rows_are_compared():
    whole, half = trial([[0, 1], [2, 3]]), trial([[0, 1]])
    assert in_the_running([whole, half, trial([]), trial([[0, 1], [2, 3]], is_out=True), whole], 12) == [0, 4]
    assert in_the_running([half, half], 12) == [0, 1]
    assert in_the_running([trial([]), trial([[0]], is_out=True)], 12) == []


def test_parts_are_those_of_the_first_repeat():
    repeated = trial([[0, 5], [1, 4], [2], [3], [7], [0, 1], [2, 3], [4, 5], [7], [9]])
    tested = find_tested([repeated], sample_of(), np.arange(12.0))
    np.testing.assert_array_equal(tested.places, [0, 1, 2, 3, 4, 5, 7, 9])
    np.testing.assert_array_equal(tested.parts, [0, 1, 2, 3, 1, 0, 4, 4])  # row 9 was held out in the second only
    np.testing.assert_array_equal(tested.weight, [0, 1, 2, 3, 4, 5, 7, 9])
    assert len(find_tested([], sample_of(), np.ones(12)).places) == 0


@pytest.mark.parametrize(
    "interrupted, late, status",
    [(False, False, Status.CONVERGED), (False, True, Status.SEARCH_TIME), (True, True, Status.SEARCH_STOPPED)],
)
def test_the_status_says_why_the_search_ended(interrupted, late, status):
    found = SearchResult([], {}, [], is_interrupted=interrupted, is_late=late)
    assert search_status(found, keep_prior(np.ones(1))) is status


def test_a_callback_is_told_steps_in_order_with_their_phase():
    seen = []
    options = AutoOptions(
        "Test", "classes", [("RKDA", RKDAClassifier(Linear()))], "stack", 1, None, None, seen.append, 0, {}
    )

    def losses(values, held):
        return np.zeros(len(held))

    def weigh(trials):
        return np.ones(len(trials))

    found = run_search(sample_of(), None, options, losses, weigh, np.random.default_rng(0), weighted=False)
    assert [state.phase for state in seen] == ["trying RKDA", "cross-validating RKDA"]
    assert [state.iteration for state in seen] == [0, 1]
    assert len(found.trials[0].values) == 5


def test_a_fit_is_told_in_plain_words():
    members = [Member("small", object(), 0.25), Member("large", object(), 0.75)]
    table = [
        {"candidate": "large", "error": 0.1, "status": "tested"},
        {"candidate": "broken", "error": np.nan, "status": "failed: it broke"},
    ]
    error, helped = ErrorEstimate(0.12, 0.05, 0.2, 50), PairedDifference(0.1, 0.05, 0.15)
    text = describe(members, error, helped, table, "Error", Status.CONVERGED)
    assert text.splitlines() == [
        "Error of held-out rows: 0.12 (95 % interval 0.05 to 0.2, 50 held-out rows).",
        "The prediction is a mixture of 2 models: large 75%, small 25%.",
        "broken failed: it broke",
        "Smallest error of a single candidate: large, 0.1.",
        "Did unlabelled rows help? Unlabelled rows helped: +0.1 (95 % interval +0.05 to +0.15).",
    ]


def test_what_is_not_known_is_said_or_left_out():
    text = describe([Member("only", object(), 1.0)], None, None, [], "Error", Status.CONVERGED)
    assert text.splitlines() == [
        "There are too few labels to hold rows out: nothing is known about the error.",
        "The prediction is a mixture of 1 model: only 100%.",
    ]


def test_what_was_left_out_for_want_of_time_is_said_and_not_blamed_on_the_labels():
    table = [{"candidate": name, "error": np.nan, "status": "no time"} for name in ("MKL", "SSMK")]
    text = describe([Member("only", object(), 1.0)], None, None, table, "Error", Status.SEARCH_TIME)
    assert text.splitlines() == [
        "Candidates or folds were left out for want of time; raise max_time to try them.",
        "Too few rows were held out: nothing is known about the error.",
        "The prediction is a mixture of 1 model: only 100%.",
        "Not tried: MKL, SSMK.",
    ]

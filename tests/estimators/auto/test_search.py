"""The search: limits, races, failures, interrupts, and repeats until weights have settled."""

from types import SimpleNamespace

import numpy as np
import pytest
from joblib import parallel_config, register_parallel_backend
from joblib._parallel_backends import ThreadingBackend
from sklearn.base import BaseEstimator, ClassifierMixin

from kernelweave import HarmonicClassifier, RKDAClassifier
from kernelweave.estimators.auto import search, trials
from kernelweave.estimators.auto.candidates import Candidate
from kernelweave.estimators.auto.search import (
    MAX_MOVED,
    MIN_COST,
    N_RACING_FOLDS,
    TIME_SHARE,
    Clock,
    SearchOptions,
    Trial,
    end_race,
    find_best_certified,
    try_candidates,
)
from kernelweave.estimators.auto.trials import Fitted, make_folds
from kernelweave.estimators.shared.sample import Rows, read_as_given
from kernelweave.labels import partition

N_ROWS = 40
TRUTH = np.arange(N_ROWS) % 2
NOW = [0.0]  # a clock that only fits move
FITS = []


class Guess(ClassifierMixin, BaseEstimator):
    """Knows the share of right answers that it is told, and takes the time that it is told."""

    def __init__(self, accuracy=1.0, seconds=1.0, fails_at=None, error=ValueError, name="guess"):
        self.accuracy = accuracy
        self.seconds = seconds
        self.fails_at = fails_at
        self.error = error
        self.name = name

    def fit(self, X, y):
        FITS.append(self.name)
        NOW[0] += self.seconds
        if self.fails_at is not None and FITS.count(self.name) > self.fails_at:
            raise self.error("it broke")
        self.classes_ = np.array([0, 1])
        return self

    def decision_function(self, X):
        row = X[:, 0].astype(int)
        is_right = (7 * row) % N_ROWS < self.accuracy * N_ROWS
        return np.where(is_right, 1.0, -1.0) * (2 * TRUTH[row] - 1)


@pytest.fixture(autouse=True)
def fake_clock(monkeypatch):
    NOW[0] = 0.0
    FITS.clear()
    for module in (search, trials):
        monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: NOW[0]))
    monkeypatch.setattr(search, "Clock", lambda limit: Clock(limit, started=0.0))


@pytest.fixture(name="sample")
def labelled_rows():
    return read_as_given(Rows(np.column_stack([np.arange(N_ROWS), np.ones(N_ROWS)]) * 1.0), partition(TRUTH))


class Stopping(Guess):
    """Stops by itself when its time is over."""

    def __init__(self, accuracy=1.0, seconds=1.0, fails_at=None, error=ValueError, name="guess", max_time=None):
        super().__init__(accuracy, seconds, fails_at, error, name)
        self.max_time = max_time

    def fit(self, X, y):
        super().fit(X, y)
        if self.max_time is not None:
            NOW[0] -= max(0.0, self.seconds - self.max_time)
        return self


def candidate(name, cost=1.0, kind=Guess, **options):
    return Candidate(name, kind(name=name, **options), cost)


def losses(values, held):
    return ((values > 0).astype(int) != TRUTH[held]).astype(float)


def equal_weights(found):
    return np.full(len(found), 1.0 / len(found))


def run(sample, candidates, n_repeats=1, weigh=equal_weights, **options):
    rng = np.random.default_rng(0)
    repeats = [make_folds(sample, None, rng) for _ in range(n_repeats)]
    return try_candidates(candidates, sample, repeats, 0, SearchOptions({}, False, losses, weigh, **options))


def names(found):
    return [trial.candidate.name for trial in found]


def test_every_candidate_is_fitted_to_all_labels_and_in_every_fold(sample):
    found = run(sample, [candidate("a"), candidate("b", accuracy=0.9)])
    assert names(found.trials) == ["a", "b"]
    assert FITS.count("a") == FITS.count("b") == 6
    for trial in found.trials:
        outputs, places = trial.average(N_ROWS)
        np.testing.assert_array_equal(places, np.arange(N_ROWS))
        np.testing.assert_array_equal(outputs, trial.fitted.model.decision_function(sample.X))
        assert trial.seconds == 6.0
    assert (found.failures, found.skipped, found.is_interrupted, found.is_late) == ({}, [], False, False)


# Races


def trial_of(losses_by_fold, is_out=False, name="a", estimator=None, uses_unlabeled=False):
    values = tuple((np.arange(len(each)), np.asarray(each, dtype=float)) for each in losses_by_fold)
    return Trial(Fitted(Candidate(name, estimator, 1.0, uses_unlabeled), name, None, 1.0), values, 1.0, is_out)


def test_what_is_clearly_worse_than_the_best_is_out_and_nothing_else():
    best = trial_of([[0.0] * 10, [0.0] * 10])
    four_worse = trial_of([[1.0] * 2 + [0.0] * 8] * 2)  # 4 rows: 4 is not above 2 deviations, which are sqrt(4)
    five_worse = trial_of([[1.0] * 3 + [0.0] * 7, [1.0] * 2 + [0.0] * 8])  # 5 > 2 sqrt(5)
    untested = trial_of([])
    found = end_race([best, four_worse, five_worse, untested], lambda found, held: found)
    assert [trial.is_out for trial in found] == [False, False, True, False]


def test_the_best_with_and_the_best_without_unlabelled_rows_stay():
    graph = trial_of([[0.0] * 10] * 2, uses_unlabeled=True)
    better, worse = trial_of([[0.8] * 10] * 2), trial_of([[1.0] * 10] * 2)
    found = end_race([worse, graph, better], lambda found, held: found)
    assert [trial.is_out for trial in found] == [True, False, False]


def test_one_candidate_has_no_race():
    assert not end_race([trial_of([[1.0] * 9] * 2), trial_of([])], lambda found, held: found)[0].is_out


def test_who_is_out_of_the_race_has_no_further_folds(sample):
    found = run(sample, [candidate("good"), candidate("bad", accuracy=0.2)])
    assert [trial.is_out for trial in found.trials] == [False, True]
    assert len(found.trials[1].values) == N_RACING_FOLDS
    assert FITS.count("bad") == 1 + N_RACING_FOLDS


def test_without_a_race_all_candidates_predict_all_rows(sample):
    found = run(sample, [candidate("good"), candidate("bad", accuracy=0.2)], race=False)
    assert [trial.is_out for trial in found.trials] == [False, False]
    assert [len(trial.average(N_ROWS)[1]) for trial in found.trials] == [N_ROWS, N_ROWS]


# Failures


@pytest.mark.parametrize("error", [ValueError, TypeError, RuntimeError, ZeroDivisionError, np.linalg.LinAlgError])
def test_a_candidate_that_fails_does_not_end_the_search(sample, error):
    found = run(sample, [candidate("broken", fails_at=0, error=error), candidate("good")])
    assert names(found.trials) == ["good"]
    assert found.failures == {"broken": "it broke"}


def test_a_candidate_that_fails_in_a_later_fold_is_out_and_its_failure_is_kept(sample):
    found = run(sample, [candidate("late", fails_at=1 + N_RACING_FOLDS), candidate("good")])
    assert [trial.is_out for trial in found.trials] == [True, False]
    assert found.failures == {"late": "it broke"}


def test_where_all_fail_one_error_names_the_first(sample):
    with pytest.raises(ValueError, match=r"^No candidate could be fitted. one: it broke$"):
        run(sample, [candidate("one", fails_at=0), candidate("two", fails_at=0)])


def test_what_is_no_failure_of_a_candidate_is_raised(sample):
    with pytest.raises(AssertionError, match="it broke"):
        run(sample, [candidate("a"), candidate("b", fails_at=0, error=AssertionError)])


# Time


def test_the_clock_keeps_a_share_for_predictions():
    clock = Clock(10.0, started=0.0)
    assert clock.allows(TIME_SHARE * 10.0)
    NOW[0] = 5.0
    assert clock.elapsed == 5.0
    assert clock.allows(TIME_SHARE * 10.0 - 5.0)
    assert not clock.allows(5.0)
    assert Clock(None).allows(1e9)


def test_the_clock_expects_what_the_dearest_candidates_took_for_their_cost():
    clock = Clock(10.0, started=0.0)
    assert clock.expect(1.0) == 0.0
    clock.note(0.1, 5.0)  # mostly compiling
    assert clock.expect(0.1) == 5.0
    clock.note(1.0, 4.0)  # a forest
    clock.note(2.0, 1.0)
    assert clock.expect(8.0) == 4.0
    clock.note(2.0, 6.0)
    assert clock.expect(1.0) == 3.0


def test_the_clock_extrapolates_from_no_first_fit_and_from_no_cost_at_the_floor():
    clock = Clock(10.0, started=0.0)
    clock.note(1.0, 4.0)  # with all that is done once
    assert clock.expect(5.0) == 4.0
    clock = Clock(10.0, started=0.0)
    for seconds in (0.3, 0.4, 0.1):
        clock.note(MIN_COST, seconds)
    assert clock.expect(5.0) == 0.4
    clock.note(0.5, 1.0)
    assert clock.expect(5.0) == 10.0


def test_a_slow_first_fit_is_no_reason_to_leave_out_the_others(sample):
    first = candidate("first", cost=0.1, seconds=0.4)
    others = [candidate(name, cost=cost, seconds=0.05) for name, cost in (("a", 0.1), ("b", 0.5), ("c", 4.0))]
    found = run(sample, [first, *others], max_time=4.5)
    assert names(found.trials) == ["first", "a", "b", "c"]
    assert (found.skipped, found.is_late) == ([], False)


def test_a_candidate_that_was_passed_over_is_tried_once_others_were_faster_than_expected(sample):
    tried = [candidate("a", cost=0.1, seconds=0.1), candidate("b", cost=0.5, seconds=2.0), candidate("late")]
    fast = candidate("fast", cost=2.0, seconds=0.1, kind=Stopping)
    found = run(sample, [*tried, fast], max_time=12.0)
    assert FITS.index("fast") < FITS.index("late")
    assert found.skipped == []


def test_a_candidate_that_can_stop_is_tried_however_dear_it_is(sample):
    tried = [candidate(name, cost=cost) for name, cost in (("a", 0.5), ("b", 1.0), ("dear", 99.0))]
    stops = candidate("stops", cost=99.0, seconds=99.0, kind=Stopping)
    found = run(sample, [*tried, stops], max_time=30.0)
    assert names(found.trials) == ["a", "b", "stops"]
    assert found.skipped == ["dear"]  # a fit that was stopped does not say how long one takes
    assert NOW[0] <= 30.0


def test_the_last_seconds_are_for_folds_and_not_for_fits_that_stop_at_once(sample):
    tried = [candidate("a"), candidate("b"), *(candidate(f"s{k}", 9.0, Stopping, seconds=99.0) for k in range(5))]
    found = run(sample, tried, max_time=30.0)
    assert "s4" in found.skipped
    assert len(found.trials[0].values) == 5
    assert NOW[0] <= 30.0


def test_where_time_is_limited_cheap_candidates_come_first_and_dear_ones_are_left_out(sample):
    candidates = [candidate("dear", cost=50.0), candidate("cheap", cost=1.0), candidate("middle", cost=2.0)]
    found = run(sample, candidates, max_time=40.0)
    assert FITS[0] == "cheap"
    assert names(found.trials) == ["cheap", "middle"]
    assert found.skipped == ["dear"]
    assert found.is_late
    assert "dear" not in FITS
    assert NOW[0] <= 40.0


def test_one_candidate_is_fitted_whatever_the_limit(sample):
    found = run(sample, [candidate("a"), candidate("b")], max_time=1e-9)
    assert names(found.trials) == ["a"]
    assert found.trials[0].values == ()
    assert found.skipped == ["b"]
    assert found.is_late


def test_folds_that_would_take_too_long_are_left_out_and_said(sample):
    found = run(sample, [candidate("a", seconds=10.0)], max_time=35.0)  # a fit, and two folds of half its time
    assert len(found.trials[0].values) == N_RACING_FOLDS
    assert found.skipped == []
    assert found.is_late


# Repeats


def test_repeats_end_where_weights_have_settled(sample):
    run(sample, [candidate("a"), candidate("b")], n_repeats=4)
    assert FITS.count("a") == 1 + 2 * 5


def test_the_candidates_that_weigh_most_are_repeated_and_the_others_keep_their_first_folds(sample):
    found = run(
        sample, [candidate(name) for name in "abc"], n_repeats=2, weigh=lambda found: np.array([0.45, 0.15, 0.4])
    )
    assert [FITS.count(name) for name in "abc"] == [1 + 10, 1 + 5, 1 + 10]
    assert [len(trial.average(N_ROWS)[1]) for trial in found.trials] == [N_ROWS] * 3  # all are still compared


def test_repeats_go_on_while_weights_move(sample):
    moving = iter([[0.5, 0.5], [0.9, 0.1], [0.9, 0.1], [0.9 - MAX_MOVED / 4, 0.1 + MAX_MOVED / 4]])
    run(sample, [candidate("a"), candidate("b")], n_repeats=4, weigh=lambda found: np.array(next(moving)))
    assert FITS.count("a") == 1 + 3 * 5


# Interrupts


def test_an_interrupt_in_the_third_candidate_leaves_the_first_two(sample):
    third = candidate("third", fails_at=0, error=KeyboardInterrupt)
    found = run(sample, [candidate("first"), candidate("second"), third, candidate("fourth")])
    assert names(found.trials) == ["first", "second"]
    assert found.is_interrupted
    assert all(len(trial.values) == N_RACING_FOLDS for trial in found.trials)


def test_an_interrupt_before_any_candidate_is_finished_is_raised(sample):
    with pytest.raises(KeyboardInterrupt):
        run(sample, [candidate("first", fails_at=1, error=KeyboardInterrupt), candidate("second")])


def test_an_interrupt_in_a_later_fold_leaves_what_is_finished(sample):
    found = run(sample, [candidate("a"), candidate("b", fails_at=3, error=KeyboardInterrupt)])
    assert [len(trial.values) for trial in found.trials] == [5, N_RACING_FOLDS]
    assert found.is_interrupted


def test_a_callback_stops_the_search_once_there_is_a_trial(sample):
    steps = []

    def stop(text, share):
        steps.append((text, share))
        return True

    found = run(sample, [candidate("a"), candidate("b")], on_step=stop)
    assert names(found.trials) == ["a"]
    assert found.is_interrupted
    assert steps == [("trying a", 0.0)]  # who says stop is asked no more


def test_steps_are_told_with_a_growing_share_of_the_work(sample):
    steps = []
    run(sample, [candidate("a"), candidate("b")], on_step=lambda text, share: steps.append((text, share)))
    assert [text for text, _ in steps] == ["trying a", "trying b", "cross-validating a", "cross-validating b"]
    shares = [share for _, share in steps]
    assert shares == sorted(shares)
    assert 0.0 <= shares[0] < shares[-1] < 1.0


# Parallel


def test_other_processes_find_the_same(monkeypatch):
    monkeypatch.undo()  # processes have clocks of their own
    X = np.random.default_rng(0).normal(size=(N_ROWS, 3))
    sample = read_as_given(Rows(X), partition((X[:, 0] > 0).astype(int)))
    candidates = [Candidate("RKDA", RKDAClassifier()), Candidate("harmonic", HarmonicClassifier())]
    alone, together = (run(sample, candidates, n_jobs=n) for n in (None, 2))
    assert names(alone.trials) == names(together.trials)
    for one, other in zip(alone.trials, together.trials, strict=True):
        np.testing.assert_array_equal(one.average(N_ROWS)[0], other.average(N_ROWS)[0])


def deliver(monkeypatch, order, error=None):
    """Let tasks of other processes be done here, in this order, and then raise an error."""

    def run_unordered(n_jobs, tasks):
        listed = list(tasks)
        for k in order:
            function, args, options = listed[k]
            yield function(*args, **options)
        if error is not None:
            raise error

    monkeypatch.setattr(search, "_run_unordered", run_unordered)


def test_an_interrupt_of_other_processes_leaves_what_is_finished(sample, monkeypatch):
    deliver(monkeypatch, [3, 1], KeyboardInterrupt)
    tried = [candidate("a"), candidate("broken", fails_at=0), candidate("c"), candidate("d")]
    found = run(sample, tried, n_jobs=2)
    assert names(found.trials) == ["d"]
    assert found.failures == {"broken": "it broke"}
    assert found.is_interrupted
    deliver(monkeypatch, [1], KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        run(sample, tried, n_jobs=2)


def test_who_of_equals_stays_in_the_race_does_not_depend_on_who_is_finished_first(sample, monkeypatch):
    tried = [candidate("bad", accuracy=0.2), candidate("a", accuracy=0.2), candidate("good")]
    alone = run(sample, tried)
    deliver(monkeypatch, [2, 1, 0])
    together = run(sample, tried, n_jobs=2)
    assert names(together.trials) == names(alone.trials)
    assert [trial.is_out for trial in together.trials] == [trial.is_out for trial in alone.trials]


def test_a_backend_that_returns_all_at_once_serves_too(sample):
    class Threads(ThreadingBackend):
        supports_return_generator = False

    register_parallel_backend("all at once", Threads)
    with parallel_config("all at once"):
        assert names(run(sample, [candidate("a"), candidate("b")], n_jobs=2).trials) == ["a", "b"]


# The best single model


def test_the_best_certified_model_has_the_smallest_score_of_those_in_the_race():
    tried = [
        trial_of([], name="forest"),
        trial_of([], name="out", is_out=True, estimator=RKDAClassifier()),
        trial_of([], name="a", estimator=RKDAClassifier()),
        trial_of([], name="b", estimator=RKDAClassifier()),
    ]
    scores = {"forest": 0.1, "out": 0.2, "a": 0.4, "b": 0.3}
    assert find_best_certified(tried, scores) == "b"
    assert find_best_certified(tried[:2], scores) == "out"
    assert find_best_certified(tried[:1], scores) is None
    assert find_best_certified(tried[2:], {}) == "a"

import sys

import numpy as np
import pytest

from kernelweave import Linear, SSMKClassifier, rbf_family
from kernelweave.estimators.shared import progress as shown
from kernelweave.estimators.shared.progress import (
    RemainingTime,
    follow_fit,
    fraction_done,
    number_problem,
    show_progress,
)
from kernelweave.solvers.result import FitState


def state(iteration, gap, n_open=1):
    return FitState(
        iteration=iteration,
        objective=1.0,
        bound=1.0 - gap,
        gap=gap,
        target=1e-6,
        seconds=0.1,
        phase="columns added",
        details={"n_columns": 5, "n_open": n_open},
    )


def describe(state):
    return f"round {state.iteration}"


class FakeTime:
    """Stands for the module time."""

    def __init__(self, step=0.0):
        self.now, self.step = 0.0, step

    def monotonic(self):
        self.now += self.step
        return self.now


@pytest.fixture
def data():
    X = np.random.default_rng(0).normal(size=(40, 2))
    return X, np.where(np.arange(40) < 20, (X[:, 0] > 0) * 1.0, np.nan)


def test_progress_counts_orders_of_magnitude():
    assert fraction_done(1.0, 1.0, 1e-6) == 0.0
    assert fraction_done(1.0, 1e-3, 1e-6) == pytest.approx(0.5)
    assert fraction_done(1.0, 1e-9, 1e-6) == 1.0
    assert fraction_done(0.1, 0.5, 1e-6) == 0.0  # a gap may grow: the bar does not go below zero
    assert fraction_done(1e-8, 0.0, 1e-6) == 1.0


def test_a_line_for_each_round(data, capsys):
    model = SSMKClassifier([*rbf_family(), Linear()], verbose=2).fit(*data)
    lines = capsys.readouterr().err.splitlines()
    assert "5 kernels x 40 centres; one pass over all columns takes about" in lines[0]
    assert len(lines) == 1 + model.n_iter_
    assert "relative gap" in lines[1]


def test_a_line_now_and_then_where_there_is_no_terminal(capsys, monkeypatch):
    clock = FakeTime()
    monkeypatch.setattr(shown, "time", clock)
    with follow_fit(1, "fit", None, describe) as hook:
        for i in range(1, 10):
            clock.now += 0.3  # four rounds in 1.2 s
            hook(state(i, 1.0 / i))
        hook(state(10, 1e-9, n_open=0))
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(": ")[1].split(",")[0] for line in lines] == ["round 1", "round 5", "round 9", "round 10"]


@pytest.mark.parametrize("terminal", [False, True])
def test_one_display_for_all_long_work(terminal, monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    monkeypatch.setenv("TERM", "xterm")
    with show_progress() as show:
        show("reading [b]", 0.0)
        show("computing", 0.5, "3 of 6 cells")
        show("computing", 1.0, "6 of 6 cells")
    printed = capsys.readouterr()
    assert printed.out == ""
    if terminal:
        assert "computing" in printed.err
        assert "6 of 6 cells" in printed.err
    else:
        assert printed.err.splitlines() == [
            "  0%  reading [b]",
            " 50%  computing: 3 of 6 cells",
            "100%  computing: 6 of 6 cells",
        ]


def test_what_is_printed_under_a_bar_stays_readable(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with show_progress(keep_bar=False) as show:
        show("computing", 0.5)
        print("note: a [word]", file=sys.stderr)
    assert "note: a [word]\n" in capsys.readouterr().err


def test_a_bar_on_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with follow_fit(1, "a fit", None, describe) as hook:
        hook(state(1, 1.0))
        hook(state(2, 1e-9))
    assert "a fit" in capsys.readouterr().err


def test_without_rich_the_terminal_gets_lines(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setitem(sys.modules, "rich.console", None)
    with follow_fit(1, "fit", None, describe) as hook:
        hook(state(1, 1.0))
    assert "round 1" in capsys.readouterr().err


def test_the_users_callback_is_passed_on():
    with follow_fit(0, "fit", lambda s: s.iteration == 2, describe) as hook:
        assert hook(state(1, 1.0)) is False
        assert hook(state(2, 1.0)) is True


@pytest.mark.parametrize("limit, expected", [(None, "0:01:30 left"), (60.0, "0:00:50 left"), (1000.0, "0:01:30 left")])
def test_the_remaining_time_follows_the_share_and_never_exceeds_the_limit(limit, expected, monkeypatch):
    clock = FakeTime()
    monkeypatch.setattr(shown, "time", clock)
    left = RemainingTime(limit, _started=0.0)
    assert str(left) == ""
    clock.now = 10.0
    left.update(0.1)
    assert str(left) == expected
    clock.now = 12.0  # it counts down between two steps
    assert left.seconds == pytest.approx(min(90.0, (limit or 1e9) - 10.0) - 2.0)
    clock.now = 500.0
    assert str(left) == ""  # it took longer than was thought
    left.update(1.0)
    assert str(left) == ""


def test_nothing_is_said_of_the_time_before_something_is_known(monkeypatch):
    clock = FakeTime()
    monkeypatch.setattr(shown, "time", clock)
    left = RemainingTime()
    clock.now = 0.5
    left.update(0.3)
    assert left.seconds is None  # too early
    clock.now = 50.0
    left.update(0.0)
    assert left.seconds is None  # nothing is done
    left.update(0.0, seconds_left=3700.4)
    assert str(left) == "1:01:41 left"


def test_lines_tell_the_time_that_is_left(monkeypatch, capsys):
    clock = FakeTime()
    monkeypatch.setattr(shown, "time", clock)
    with show_progress(limit=20.0) as show:
        clock.now = 5.0
        show("computing", 0.5, "3 of 6 cells")
        show("computing", 0.5)
        show("computing", 0.1)
    assert capsys.readouterr().err.splitlines() == [
        " 50%  computing: 3 of 6 cells, 0:00:05 left",
        " 50%  computing: 0:00:05 left",
        " 10%  computing: 0:00:15 left",
    ]


def test_without_lines_nothing_is_printed_where_there_is_no_terminal(capsys):
    with show_progress(lines=False) as show:
        show("computing", 0.5)
    assert capsys.readouterr() == ("", "")


def test_problems_count_alike_and_the_bar_does_not_go_back(capsys):
    with follow_fit(2, "fit", None, describe) as hook:
        for k, gap in ((0, 1.0), (0, 1e-9), (1, 1.0), (1, 1e-3), (1, 0.5)):
            number_problem(hook, k, 2)(state(1, gap))
    assert [line[:4] for line in capsys.readouterr().err.splitlines()] == ["  0%", " 50%", " 50%", " 75%", " 75%"]
    assert number_problem(None, 0, 2) is None

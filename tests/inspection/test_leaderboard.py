from itertools import pairwise

import numpy as np
import pytest
from common.estimators import ESTIMATORS, fitted
from matplotlib.patches import Rectangle
from scipy.stats import binomtest

from kernelweave import LeaderboardDisplay


def points(ax):
    (container,) = ax.containers
    return container.lines[0]


def intervals(ax):
    (arms,) = ax.containers[0].lines[2]
    return np.array([segment[:, 0] for segment in arms.get_segments()])


def test_errors_weights_and_the_mixture_are_those_of_the_search(auto):
    display = LeaderboardDisplay.from_estimator(auto)
    errors, weights = display.axes_
    board = auto.leaderboard_
    assert points(errors).get_xdata().tolist() == [record["error"] for record in board]
    np.testing.assert_allclose([bar.get_width() for bar in weights.patches], [record["weight"] for record in board])
    assert "one_\\$ of \\$" in [label.get_text() for label in errors.get_yticklabels()]
    line = next(line for line in errors.get_lines() if line.get_linestyle() == "--")
    assert line.get_xdata()[0] == auto.error_.value
    band = next(patch for patch in errors.patches if isinstance(patch, Rectangle))
    assert (band.get_x(), band.get_x() + band.get_width()) == pytest.approx((auto.error_.low, auto.error_.high))
    assert errors.get_xlabel() == "share of wrong classes"
    assert display.data_["candidate"].tolist() == [record["candidate"] for record in board]


def test_intervals_of_shares_are_wilsons_even_where_nothing_is_wrong(auto):
    display = LeaderboardDisplay.from_estimator(auto)
    n = len(auto.oof_rows_)
    for (low, high), error in zip(intervals(display.ax_), display.errors, strict=True):
        expected = binomtest(round(error * n), n).proportion_ci(method="wilson")
        assert (low, high) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_numbers_have_intervals_of_their_standard_errors_which_end_at_zero():
    model = fitted(next(case for case in ESTIMATORS if case.name == "AutoKernelRegressor"))
    display = LeaderboardDisplay.from_estimator(model)
    assert display.ax_.get_xlabel() == "root mean squared error"
    half = 1.959964 * display.standard_errors
    expected = np.column_stack([np.maximum(0, display.errors - half), display.errors + half])
    np.testing.assert_allclose(intervals(display.ax_), expected, rtol=1e-6)


def test_candidates_without_an_error_have_a_note_in_its_place():
    display = LeaderboardDisplay(
        ["good", "late", "bad"],
        [0.1, np.nan, np.nan],
        [0.01, np.nan, np.nan],
        [1.0, 0.0, 0.0],
        statuses=["tested", "no time", "failed: $x_1$ is " + "very " * 40 + "wrong"],
    ).plot()
    notes = {text.xy[1]: text.get_text() for text in display.ax_.texts}
    assert notes[1] == "no time"
    assert notes[2].startswith(r"failed: \$x_1\$")
    assert len(notes[2]) < 50
    assert len(points(display.ax_).get_xdata()) == 1
    display.figure_.canvas.draw()


def test_a_search_without_an_error_is_drawn():
    display = LeaderboardDisplay(["a"], [np.nan], [np.nan], [0.0], statuses=["not tested"]).plot()
    assert display.axes_[1].get_xlim()[1] > 1.0
    display.figure_.canvas.draw()


def test_of_many_candidates_the_first_are_drawn_and_the_others_counted():
    display = LeaderboardDisplay(list("abcdefgh"), np.arange(8), np.ones(8), np.ones(8)).plot(n_candidates=3)
    assert len(points(display.ax_).get_xdata()) == 3
    assert "5 more not shown" in [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert len(display.data_) == 8


def test_names_do_not_overlap():
    names = [f"a candidate with a long name, and $ and _, number {k}" for k in range(20)]
    display = LeaderboardDisplay(names, np.ones(20), np.ones(20), np.ones(20)).plot()
    display.figure_.canvas.draw()
    boxes = [label.get_window_extent() for label in display.ax_.get_yticklabels()]
    assert all(not first.overlaps(second) for first, second in pairwise(boxes))
    assert all(box.x0 >= 0 for box in boxes)


def test_numbers_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"LeaderboardDisplay got 1 candidates"):
        LeaderboardDisplay(["a"], [1.0, 2.0], [1.0], [1.0])
    with pytest.raises(ValueError, match=r"LeaderboardDisplay.plot got n_candidates=0"):
        LeaderboardDisplay(["a"], [1.0], [1.0], [1.0]).plot(n_candidates=0)

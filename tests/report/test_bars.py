"""What is drawn of fitted models is tested beside the Displays, in tests/inspection."""

import numpy as np
from matplotlib.figure import Figure

from kernelweave.report.bars import draw_intervals, draw_kernel_weights, draw_leaderboard


def test_kernels_are_drawn_on_a_figure_without_a_window():
    figure = Figure(figsize=(5, 4), layout="constrained")
    ax = figure.add_subplot()
    drawn, axes = draw_kernel_weights(ax, ["a", "b"], np.array([0.25, 0.75]), ["s", "t"], title="weights")
    assert drawn is figure
    assert [label.get_text() for label in axes[0].get_yticklabels()] == ["b", "a"]
    assert [text.get_text() for text in axes[0].texts] == ["75.0%", "25.0%"]
    assert axes[0].get_ylim()[0] > axes[0].get_ylim()[1]  # the first at the top


def test_sources_beyond_the_palette_are_grey():
    names = [f"k{k}" for k in range(12)]
    figure = Figure()
    _, axes = draw_kernel_weights(figure.add_subplot(), names, np.linspace(1, 0.1, 12), names)
    colors = [bar.get_facecolor() for bar in axes[1].patches]
    assert len(set(colors)) == 8
    assert len(set(colors[7:])) == 1


def test_shares_of_zero_leave_an_axis_to_read():
    _, axes = draw_kernel_weights(Figure().add_subplot(), ["a"], np.zeros(1), ["s"])
    assert axes[0].get_xlim() == (0.0, 1.0)


def test_candidates_are_drawn_on_a_figure_without_a_window():
    figure = Figure()
    given = figure.subplots(1, 2)
    values = np.array([0.1, 0.2])
    drawn, axes = draw_leaderboard(given, ["a", "b"], values, values - 0.05, values + 0.05, np.array([0.75, 0.25]))
    assert drawn is figure
    assert axes[0].containers[0].lines[0].get_ydata().tolist() == [0, 1]
    assert [text.get_text() for text in axes[1].texts] == ["0.75", "0.25"]


def test_intervals_have_one_name_a_line_and_a_line_at_zero_if_they_reach_it():
    values, half = np.array([3.0, 1.0]), np.array([1.0, 2.0])
    look = {"what": "column", "x_label": "rise"}
    _, axes = draw_intervals(Figure().add_subplot(), ["a", "b"], values, values - half, values + half, **look)
    assert [label.get_text() for label in axes[0].get_yticklabels()] == ["a", "b"]
    assert axes[0].containers[0].lines[0].get_xdata().tolist() == [3.0, 1.0]
    assert [line.get_xdata() for line in axes[0].lines if list(line.get_xdata()) == [0.0, 0.0]]
    assert axes[0].get_xlabel() == "rise"
    _, axes = draw_intervals(Figure().add_subplot(), ["a"], values[:1], values[:1], values[:1], **look)
    assert not [line for line in axes[0].lines if list(line.get_xdata()) == [0.0, 0.0]]

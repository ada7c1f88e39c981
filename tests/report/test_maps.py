"""What is drawn of fitted models is tested beside the Displays, in tests/inspection."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from kernelweave.report.maps import draw_map

POINTS = np.random.default_rng(0).normal(size=(12, 2))
CODES = np.arange(12) % 3
GIVEN = np.arange(12) < 4


def test_a_map_is_drawn_on_a_figure_without_a_window():
    figure = Figure()
    drawn, axes = draw_map(
        figure.add_subplot(), POINTS, CODES, GIVEN, classes="abc", x_label="x", y_label="y", title="t"
    )
    assert drawn is figure
    assert sum(len(part.get_offsets()) for part in axes[0].collections) == 12
    assert [text.get_text() for text in axes[0].get_legend().get_texts()] == ["a", "b", "c", "given", "filled in"]


def test_labelled_rows_are_larger_and_have_a_dark_edge():
    _, axes = draw_map(Figure().add_subplot(), POINTS, CODES, GIVEN, classes="abc")
    sizes = {part.get_label(): part.get_sizes()[0] for part in axes[0].collections}
    assert sizes["given"] > 2 * sizes["filled in"]
    edges = {tuple(part.get_edgecolor()[0]) for part in axes[0].collections if part.get_label() == "given"}
    assert edges == {(0.0, 0.0, 0.0, 1.0)}


def test_a_given_label_is_never_doubtful():
    _, axes = draw_map(Figure().add_subplot(), POINTS, CODES, GIVEN, classes="abc", is_doubtful=np.ones(12, dtype=bool))
    doubtful = [part for part in axes[0].collections if part.get_label() == "doubtful"]
    assert sum(len(part.get_offsets()) for part in doubtful) == 8


@pytest.mark.parametrize("n_given", [0, 12])
def test_numbers_are_drawn_on_one_scale(n_given):
    values = np.linspace(-1, 5, 12)
    figure, axes = draw_map(Figure().add_subplot(), POINTS, values, np.arange(12) < n_given)
    assert axes[0].collections[0].get_clim() == (-1.0, 5.0)
    assert len(figure.axes) == 2

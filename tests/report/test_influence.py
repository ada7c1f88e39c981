"""A drawing of what training rows add to a prediction: artists and data."""

import io

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_hex

from kernelweave.report.influence import draw_influence, merge_sources
from kernelweave.report.style import COLORS, GREY, plain

mpl.use("Agg")
PARTS = [[2.0, -1.0], [-0.5, -1.5]]
OTHERS = [("(other rows)", 0.25), ("(intercept)", -1.0)]


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def draw(parts=PARTS, sources=("left", "right"), rows=("row 7", "row 9"), ax=None):
    return draw_influence(ax, rows, parts, sources, OTHERS, title="Title")[1]


def spans(ax):
    """Place, beginning, end and colour of each bar."""
    return [
        (round(p.get_y() + p.get_height() / 2), p.get_x(), p.get_x() + p.get_width(), to_hex(p.get_facecolor()).upper())
        for p in ax.patches
    ]


def test_parts_are_stacked_to_either_side_of_zero():
    assert spans(draw()) == [
        (0, 0.0, 2.0, COLORS[0]),
        (0, 0.0, -1.0, COLORS[1]),
        (1, 0.0, -0.5, COLORS[0]),
        (1, -0.5, -2.0, COLORS[1]),
        (2, 0.0, 0.25, GREY.upper()),
        (3, 0.0, -1.0, GREY.upper()),
    ]


def test_the_first_row_is_on_top_and_sums_stand_at_the_ends():
    ax = draw()
    assert ax.get_ylim() == (3.5, -0.5)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["row 7", "row 9", "(other rows)", "(intercept)"]
    assert [(text.get_text(), text.xy) for text in ax.texts] == [
        ("1", (2.0, 0)),
        ("-2", (-2.0, 1)),
        ("0.25", (0.25, 2)),
        ("-1", (-1.0, 3)),
    ]
    low, high = ax.get_xlim()
    assert low < -2.0
    assert high > 2.0


def test_of_one_source_colours_say_for_or_against_and_there_is_no_legend():
    ax = draw(parts=[[2.0], [-1.0]], sources=("all",))
    assert [span[3] for span in spans(ax)[:2]] == [COLORS[0], COLORS[1]]
    assert ax.get_legend() is None


def test_sources_differ_in_hatches_too():
    hatches = [patch.get_hatch() for patch in draw().patches[:2]]
    assert len(set(hatches)) == 2


def test_many_sources_become_a_few():
    sources, parts = merge_sources([f"s{k}" for k in range(9)], [[float(k) for k in range(9)]])
    assert sources == ["s4", "s5", "s6", "s7", "s8", "4 other sources"]
    assert parts == [[4.0, 5.0, 6.0, 7.0, 8.0, 6.0]]
    legend = draw(parts=[list(range(9))], sources=[f"s{k}" for k in range(9)], rows=["row 1"]).get_legend()
    assert [text.get_text() for text in legend.get_texts()] == sources


def test_names_are_short_and_no_formulas():
    names = ("$\\frac{$", "_hidden")
    rows = ["$a_b$", "x" * 500]
    _, ax = draw_influence(None, rows, PARTS, names, OTHERS, title="$t", label="$\\bad{")
    ax.figure.savefig(io.BytesIO(), format="png")  # would raise on a formula that is none
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [plain(name) for name in names]
    assert len(ax.get_yticklabels()[1].get_text()) < 40


def test_axes_that_are_given_keep_their_figure():
    figure, ax = plt.subplots(layout="constrained")
    assert draw(ax=ax) is ax
    figure.canvas.draw()
    legend = ax.get_legend().get_window_extent()
    assert legend.y1 <= ax.get_window_extent().y0
    assert legend.y0 >= 0
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["left", "right"]


def test_nothing_and_zeros_are_drawn():
    assert len(draw_influence(None, [], [], ("a",), OTHERS)[1].patches) == 2
    _, ax = draw_influence(None, ["row 1"], [[0.0]], ("a",), [("rest", 0.0)])
    assert np.isfinite(ax.get_xlim()).all()


def test_a_new_figure_grows_with_its_bars():
    rows = [f"row {k}" for k in range(30)]
    tall = draw(parts=[[1.0, 1.0]] * 30, rows=rows).figure.get_size_inches()
    assert tall[1] > draw().figure.get_size_inches()[1] + 5

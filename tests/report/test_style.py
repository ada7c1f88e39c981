import warnings

import matplotlib as mpl
import pytest

mpl.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.cbook import is_math_text

from kernelweave.report.style import class_look, ink, legend_below, panels, paper, place_legend, plain, shorten, styled


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


AWKWARD = ["$x$", "a_b", "$", "$$", r"\$", r"\alpha $\frac$", "100 % $5 and $6", "x^2_{", "<script>", "ok"]


@pytest.mark.parametrize("name", AWKWARD)
def test_a_name_is_drawn_as_it_is_written(name):
    assert not is_math_text(plain(name))
    assert plain(name).replace(r"\$", "$") == name  # as matplotlib does with texts that are no mathematics


@pytest.mark.parametrize("name", ["a\nb", "a\tb", " a  b "])
def test_a_name_is_one_line(name):
    assert plain(name) == "a b"


@pytest.mark.parametrize("letter", ["\x1b", "\x00", "\u202e", "\ufeff"])
def test_letters_that_cannot_be_seen_are_written_out(letter):
    assert plain(f"a{letter}b") == f"a{ascii(letter)[1:-1]}b"


def test_names_that_are_too_long_lose_their_middle_and_stay_different():
    names = [f"{'a' * 30}{k}{'z' * 30}" for k in range(3)]
    short = shorten(names, 20)
    assert len(set(short)) == 3
    assert all(len(name) <= 24 for name in short)
    assert shorten(["short", 7], 20) == ["short", "7"]


def test_56_classes_have_looks_of_their_own_and_8_have_colours():
    assert len({tuple(class_look(k).values()) for k in range(56)}) == 56
    assert len({class_look(k)["color"] for k in range(8)}) == 8


def test_settings_are_changed_within_the_context_only():
    before = dict(mpl.rcParams)
    with styled():
        assert mpl.rcParams["legend.frameon"] is False
    assert dict(mpl.rcParams) == before


def test_on_dark_paper_what_is_black_becomes_white():
    assert {class_look(6)["color"], ink()} == {"black"}
    with plt.style.context("dark_background"), styled():
        assert {class_look(6)["color"], ink()} == {"white"}
        assert paper() == "black"


def test_panels_are_new_given_or_in_the_place_of_one():
    figure, axes = panels(None, 2, (4, 3), owner="D")
    assert len(axes) == len(figure.axes) == 2
    figure, ax = plt.subplots()
    assert panels(ax, 1, (4, 3), owner="D")[1].tolist() == [ax]
    _, inside = panels(ax, 3, (4, 3), owner="D", sharex=True, height_ratios=[2, 1, 1])
    assert len(inside) == 3
    assert not ax.axison
    figure, given = plt.subplots(1, 2)
    assert panels(given, 2, (4, 3), owner="D", nrows=1, ncols=2)[1].tolist() == given.tolist()


def test_the_wrong_number_of_axes_is_refused():
    with pytest.raises(ValueError, match=r"D.plot got 3 axes; expected 2, or one made by subplots"):
        panels(plt.subplots(3)[1], 2, (4, 3), owner="D")
    with pytest.raises(ValueError, match=r"D.plot got 1 axes; expected 2"):
        panels(plt.figure().add_axes((0, 0, 1, 1)), 2, (4, 3), owner="D")


def test_a_legend_has_names_that_begin_with_an_underscore():
    _, ax = plt.subplots()
    handles = [*ax.plot([1]), *ax.plot([2])]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        legend = place_legend(ax, handles, ["_hidden", "b"])
    assert [text.get_text() for text in legend.get_texts()] == ["_hidden", "b"]
    assert place_legend(ax, [], []) is None


def test_a_legend_below_is_below_the_label_of_the_axis():
    with styled():
        figure, (ax,) = panels(None, 1, (4, 3), owner="D")
        ax.set_xlabel("label")
        legend = legend_below(ax, ax.plot([1]), ["a"])
        figure.canvas.draw()
    assert legend.get_window_extent().y1 <= ax.xaxis.label.get_window_extent().y0
    assert legend.get_window_extent().y0 >= 0

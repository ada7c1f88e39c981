from itertools import pairwise

import numpy as np
import pytest
from common.estimators import ESTIMATORS, case_id, fitted
from matplotlib import pyplot as plt

from kernelweave import RBF, KernelLibrary, KernelWeightsDisplay, MKLClassifier, OnColumns

FAMILIES = ["SSMKClassifier", "MKLRegressor", "TSVMMKLClassifier", "LearnedKernelClassifier", "AlignedKernelLearner"]


def widths(ax):
    return [bar.get_width() for bar in ax.patches]


def names(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


@pytest.mark.parametrize("case", [case for case in ESTIMATORS if case.name in FAMILIES], ids=case_id)
def test_bars_are_the_shares_of_the_model_the_largest_first(case):
    model = fitted(case)
    display = KernelWeightsDisplay.from_estimator(model)
    if hasattr(model, "kernel_usage_"):
        expected = [record["share"] for record in model.kernel_usage_]
    else:
        expected = model.weights_ / model.weights_.sum()
    np.testing.assert_allclose(display.shares, expected)
    np.testing.assert_allclose(widths(display.ax_), np.sort(expected)[::-1])
    assert display.ax_.get_title(loc="left") == type(model).__name__
    assert display.data_["share"].tolist() == display.shares.tolist()


def test_sources_are_summed_in_a_second_panel_with_the_colours_of_their_kernels():
    display = KernelWeightsDisplay(["a", "b", "c"], [0.2, 0.5, 0.3], sources=["one", "two", "one"]).plot()
    kernels, sources = display.axes_
    assert names(kernels) == ["b", "c", "a"]
    assert names(sources) == ["one", "two"]
    np.testing.assert_allclose(widths(sources), [0.5, 0.5])
    colors = {name: bar.get_facecolor() for name, bar in zip(names(sources), sources.patches, strict=True)}
    assert [bar.get_facecolor() for bar in kernels.patches] == [colors["two"], colors["one"], colors["one"]]
    assert len({bar.get_hatch() for bar in sources.patches}) == 2  # so that a grey print can be read


def test_of_300_kernels_the_largest_have_bars_and_the_others_one_together():
    shares = np.random.default_rng(0).dirichlet(np.ones(300))
    display = KernelWeightsDisplay([f"kernel {k}" for k in range(300)], shares).plot(n_kernels=10)
    largest = np.sort(shares)[::-1][:10]
    np.testing.assert_allclose(widths(display.ax_), [*largest, 1 - largest.sum()])
    assert names(display.ax_)[-1] == "290 other kernels"
    assert len(display.data_) == 300


def test_one_kernel_is_one_bar():
    display = KernelWeightsDisplay(["RBF()"], [1.0]).plot()
    assert widths(display.ax_) == [1.0]
    assert names(display.ax_) == ["RBF()"]
    assert len(display.axes_) == 1


def test_long_names_and_mathematics_neither_overlap_nor_become_mathematics():
    awkward = [f"OnColumns(RBF(multiple={k}.0), ['cost_$_{k}$', 'x^2'])" for k in range(12)]
    display = KernelWeightsDisplay(awkward, np.full(12, 1 / 12)).plot()
    display.figure_.canvas.draw()
    boxes = [label.get_window_extent() for label in display.ax_.get_yticklabels()]
    assert all(not first.overlaps(second) for first, second in pairwise(boxes))
    assert all(box.x0 >= 0 for box in boxes)
    drawn = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert len(set(drawn)) == 12
    assert all(r"\$" in text for text in drawn)
    assert display.data_["kernel"].tolist() == awkward


def test_weights_of_classes_are_marks_on_the_bars(flowers):
    X, species, _ = flowers
    library = KernelLibrary({"petals": OnColumns(RBF(), [2, 3]), "sepals": OnColumns(RBF(), [0, 1])})
    model = MKLClassifier(library, C=1.0, weighting="learned", norm=2, share_weights=False).fit(X, species)
    display = KernelWeightsDisplay.from_estimator(model)
    order = np.argsort(-display.shares)
    marks = [line.get_xdata() for line in display.ax_.get_lines()]
    np.testing.assert_allclose(marks, (model.weights_ / model.weights_.sum(axis=1, keepdims=True))[:, order])
    legend = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert legend == ["setosa", "versicolor", "virginica"]
    assert {"share: setosa", "weight"} <= set(display.data_.columns)


def test_twenty_classes_are_dots_with_one_name():
    shares = np.random.default_rng(0).dirichlet(np.ones(3), 20)
    display = KernelWeightsDisplay(["a", "b", "c"], shares.mean(axis=0), class_shares=shares).plot()
    assert len(display.ax_.get_lines()) == 20
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["each of 20 classes"]


def test_it_draws_on_axes_that_are_given():
    figure, ax = plt.subplots()
    display = KernelWeightsDisplay(["a", "b"], [0.5, 0.5]).plot(ax)
    assert display.ax_ is ax
    assert display.figure_ is figure
    two = KernelWeightsDisplay(["a", "b"], [0.5, 0.5], sources=["x", "y"])
    assert len(two.plot(plt.subplots()[1]).axes_) == 2  # one place is shared
    with pytest.raises(ValueError, match=r"KernelWeightsDisplay.plot got 3 axes; expected 2"):
        two.plot(plt.subplots(3)[1])


def test_a_combination_shows_a_model_inside_it(auto):
    display = KernelWeightsDisplay.from_estimator(auto)
    assert display.ax_.get_title(loc="left").endswith("Classifier (in AutoKernelClassifier)")
    assert display.names == ["RBF()"]


@pytest.mark.parametrize("given", [([], []), (["a"], [0.5, 0.5])])
def test_numbers_that_do_not_fit_are_refused(given):
    with pytest.raises(ValueError, match=r"KernelWeightsDisplay got . names, shares of shape"):
        KernelWeightsDisplay(*given)


def test_a_wrong_number_of_bars_is_refused():
    with pytest.raises(
        ValueError, match=r"KernelWeightsDisplay.plot got n_kernels=0; expected a whole number, 1 or more"
    ):
        KernelWeightsDisplay(["a"], [1.0]).plot(n_kernels=0)

"""Which training rows a prediction rests on: the display, and its numbers."""

import sys

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

from kernelweave import (
    RBF,
    AutoKernelClassifier,
    CGBoostOneClass,
    HarmonicRegressor,
    InfluenceDisplay,
    KernelLibrary,
    Linear,
    MKLClassifier,
    MKLRegressor,
    OnColumns,
    SSMKClassifier,
    explain,
)

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(40, 4)), columns=list("abcd"))
Y = np.digitize(X["a"] + X["c"], [-0.5, 0.5])
SIDES = KernelLibrary(
    {"near": OnColumns(RBF(), ["a", "b"], source="$left_1$"), "line": OnColumns(Linear(), ["c", "d"], source="_right")}
)


@pytest.fixture(scope="module")
def model():
    return MKLClassifier(SIDES, C=1.0, weighting="uniform").fit(X, Y)


def bars(display):
    """The lengths of the bars, summed by place."""
    found: dict[int, float] = {}
    for patch in display.ax_.patches:
        place = round(patch.get_y() + patch.get_height() / 2)
        found[place] = found.get(place, 0.0) + patch.get_width()
    return [found[place] for place in sorted(found)]


def test_what_is_drawn_is_the_explanation(model):
    display = InfluenceDisplay.from_estimator(model, X, 3, n=6)
    found = explain(model, X.iloc[[3]], n_training_rows=6)
    k = int(found.decision[0].argmax())
    expected = [*found.by_training_row[0, :, :, k].sum(axis=1), found.rest[0, :, k].sum(), found.intercept[k]]
    np.testing.assert_allclose(bars(display), expected)
    np.testing.assert_allclose(display.data_["contribution"], expected)
    assert sum(expected) == pytest.approx(model.decision_function(X.iloc[[3]])[0, k])
    labels = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert labels == [*(f"row {row}" for row in found.training_rows[0, :, k]), "(other rows)", "(intercept)"]
    assert f"decision value {found.decision[0, k]:.3g}" in display.ax_.get_title(loc="left")
    assert display.ax_.get_xlabel() == f"contribution to the decision value; positive speaks for {model.classes_[k]}"


def test_numbers_are_a_frame_with_a_column_for_each_source(model):
    frame = InfluenceDisplay.from_estimator(model, X, 0, n=4).data_
    assert list(frame.columns) == ["training_row", "contribution", "from $left_1$", "from _right"]
    rows = frame.iloc[:4]
    np.testing.assert_allclose(rows["from $left_1$"] + rows["from _right"], rows["contribution"])


def test_sources_are_named_as_they_are(model):
    display = InfluenceDisplay.from_estimator(model, X, 0)
    legend = display.ax_.get_legend()
    assert [text.get_text() for text in legend.get_texts()] == [r"\$left_1\$", "_right"]
    display.figure_.canvas.draw()  # would raise on a formula that is none


def test_an_explanation_is_drawn_as_its_estimator(model):
    found = explain(model, X, n_training_rows=8)
    fresh = InfluenceDisplay.from_estimator(model, X, 5, n=4)
    kept = InfluenceDisplay.from_explanation(found, 5, n=4)
    pd.testing.assert_frame_equal(fresh.data_, kept.data_)


def test_another_class_can_be_asked_for(model):
    display = InfluenceDisplay.from_estimator(model, X, 3, output=2)
    assert display.output == "2"
    assert display.data_["contribution"].sum() == pytest.approx(model.decision_function(X.iloc[[3]])[0, 2])
    with pytest.raises(ValueError, match="no output 9; it has 0, 1, 2"):
        InfluenceDisplay.from_estimator(model, X, 3, output=9)


def test_axes_may_be_given_and_rows_named(model):
    figure, ax = plt.subplots()
    names = [f"patient {k}" for k in range(40)]
    display = InfluenceDisplay.from_estimator(model, X, 3, ax=ax, names=names, n=2)
    assert display.ax_ is ax
    assert display.figure_ is figure
    assert ax.get_yticklabels()[0].get_text() == f"patient {display.training_rows[0]}"
    again = display.plot()
    assert again is display
    assert display.ax_ is not ax


def test_of_a_combination_the_heaviest_member_is_shown():
    model = AutoKernelClassifier(["harmonic", "logistic regression"], random_state=0).fit(X, Y)
    found = explain(model, X.iloc[:1])
    display = InfluenceDisplay.from_estimator(model, X)
    share = found.shares[0, found.members.index("harmonic")]
    assert f"harmonic ({share:.0%} of the prediction)" in display.ax_.get_title(loc="left")
    assert display.data_["contribution"].sum() == pytest.approx(found.explanations["harmonic"].decision.max())
    assert display.ax_.get_xlabel() == f"contribution to the probability of {display.output}"


def test_numbers_and_inliers_are_called_what_they_are():
    numbers = InfluenceDisplay.from_estimator(MKLRegressor(RBF(), C=1.0, weighting="uniform").fit(X, X["a"]), X)
    assert numbers.ax_.get_xlabel() == "contribution to the prediction"
    several = HarmonicRegressor().fit(X, X[["a", "b"]])
    display = InfluenceDisplay.from_estimator(several, X, 2, output=1)
    assert display.ax_.get_xlabel() == "contribution to the prediction of output 1"
    assert display.data_["contribution"].sum() == pytest.approx(several.predict(X)[2, 1])
    display = InfluenceDisplay.from_estimator(CGBoostOneClass(RBF()).fit(X), X)
    assert display.ax_.get_xlabel().endswith("positive speaks for inlier")


def test_training_rows_that_add_nothing_have_no_bar():
    model = SSMKClassifier(RBF()).fit(X, np.where(Y == 2, 1, 0))
    display = InfluenceDisplay.from_estimator(model, X, 0, n=100)
    assert len(display.training_rows) == len(model.expansion_.groups[0].centers)
    assert len(display.data_) == len(display.training_rows) + 2


def test_a_row_that_there_is_not_is_refused(model):
    with pytest.raises(ValueError, match="There is no row 40 among the 40 explained; expected 0 to 39"):
        InfluenceDisplay.from_estimator(model, X, 40)


def test_without_matplotlib_it_says_what_to_install(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "kernelweave.report.influence", None)  # as if what it imports were missing
    with pytest.raises(ImportError, match=r"InfluenceDisplay.plot needs .*kernelweave\[report\]"):
        InfluenceDisplay.from_estimator(model, X, 0)

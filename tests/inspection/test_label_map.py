import numpy as np
import pandas as pd
import pytest
from common.estimators import ESTIMATORS, fitted, sample
from matplotlib.colors import to_hex
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelweave import RBF, AutoKernelRegressor, LabelMapDisplay, Linear, OnColumns, RKDAClassifier, SSMKClassifier
from kernelweave.inspection.label_map import choose_rows
from kernelweave.report.style import CLASS_COLORS

CASES = {case.name: case for case in ESTIMATORS}


@pytest.fixture(scope="module")
def model(flowers):
    X, _, y = flowers
    return SSMKClassifier(RBF(), C=10.0).fit(X, y)


@pytest.fixture
def display(model, flowers):
    X, _, y = flowers
    return LabelMapDisplay.from_estimator(model, X, y)


def drawn(ax, kind):
    """Points of a kind: those that are given, filled in, doubtful, or centres."""
    parts = [part.get_offsets() for part in ax.collections if part.get_label() == kind]
    return np.concatenate([np.empty((0, 2)), *parts])


def same_points(found, expected):
    np.testing.assert_allclose(found[np.lexsort(found.T)], expected[np.lexsort(expected.T)])


def test_every_row_is_drawn_once_as_what_it_is(display, flowers):
    given = np.array([label is not None for label in flowers[2]])
    doubtful = display.is_doubtful
    same_points(drawn(display.ax_, "given"), display.points[given])
    same_points(drawn(display.ax_, "doubtful"), display.points[doubtful])
    same_points(drawn(display.ax_, "filled in"), display.points[~given & ~doubtful])
    assert not (given & doubtful).any()


def test_labels_are_those_given_and_those_filled_in(display, model, flowers):
    np.testing.assert_array_equal(display.labels, model.transduction_)
    legend = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert legend == ["setosa", "versicolor", "virginica", "given", "filled in", "least certain 10%", "centre"]


def test_classes_have_colours_and_markers_of_their_own(display):
    filled = [part for part in display.ax_.collections if part.get_label() == "filled in"]
    assert [to_hex(part.get_facecolor()[0]).upper() for part in filled] == list(CLASS_COLORS[:3])
    assert len({part.get_paths()[0].vertices.tobytes() for part in filled}) == 3
    hollow = [part for part in display.ax_.collections if part.get_label() == "doubtful"]
    assert {to_hex(part.get_facecolor()[0]) for part in hollow} == {"#ffffff"}


def test_the_doubtful_rows_are_the_tenth_of_least_margin(display, model, flowers):
    X, _, y = flowers
    unlabeled = np.array([label is None for label in y])
    values = np.sort(model.decision_function(X), axis=1)
    margin = values[:, -1] - values[:, -2]
    assert display.is_doubtful.sum() == int(0.1 * unlabeled.sum())
    others = unlabeled & ~display.is_doubtful
    assert margin[display.is_doubtful].max() <= margin[others].min()


def test_crosses_are_the_centres_of_the_model(display, model):
    centers = np.unique(np.concatenate([group.centers for group in model.expansion_.groups]))
    assert np.flatnonzero(display.is_center).tolist() == centers.tolist()
    same_points(drawn(display.ax_, "centre"), display.points[centers])


def test_the_frame_has_a_line_for_each_row(display, flowers):
    frame = display.data_
    assert len(frame) == 150
    assert frame["given"].sum() == 50
    assert frame.columns.tolist() == ["row", "x", "y", "label", "given", "certainty", "doubtful", "center"]
    assert np.corrcoef(frame["x"], flowers[0][:, 2])[0, 1] ** 2 > 0.5  # what separates the species


def test_of_many_rows_some_are_drawn_with_the_labelled_ones_first(model, flowers):
    X, _, y = flowers
    display = LabelMapDisplay.from_estimator(model, X, y, max_rows=120)
    assert len(display.points) == 120
    assert display.is_labeled.sum() == 50
    again = LabelMapDisplay.from_estimator(model, X, y, max_rows=120)
    np.testing.assert_array_equal(display.points, again.points)
    assert "120 of 150 rows" in display.ax_.get_title(loc="left")


def test_at_most_half_of_the_rows_that_are_drawn_come_first():
    rows = choose_rows(1000, np.arange(200), 100, 0)
    assert len(set(rows)) == 100
    assert (np.diff(rows) > 0).all()
    assert 50 <= (rows < 200).sum() < 75
    assert choose_rows(50, np.arange(3), 100, 0).tolist() == list(range(50))


def test_a_combination_has_the_map_of_its_best_model_and_labels_of_its_own(auto, flowers):
    X, _, y = flowers
    display = LabelMapDisplay.from_estimator(auto, X, y)
    np.testing.assert_array_equal(display.labels, auto.transduction_)
    ordered = np.sort(auto.label_distributions_, axis=1)
    np.testing.assert_allclose(display.certainty, ordered[:, -1] - ordered[:, -2])
    assert "Classifier (in AutoKernelClassifier): rows by the learned kernel" in display.ax_.get_title(loc="left")


def test_a_combination_of_models_of_labelled_rows_is_mapped_by_a_default_kernel_in_the_unit_of_the_numbers():
    X = np.random.default_rng(0).normal(size=(40, 3))
    y = np.where(np.arange(40) < 20, X[:, 0], np.nan)
    model = AutoKernelRegressor(["CG-Boost"], kernels=[RBF()], random_state=0).fit(X, y)
    display = LabelMapDisplay.from_estimator(model, X, y, center=100.0, unit=10.0)
    assert display.ax_.get_title(loc="left").startswith("AutoKernelRegressor: rows by")
    np.testing.assert_allclose(display.labels[:20], 100.0 + 10.0 * X[:20, 0])


def test_a_pipeline_is_mapped_as_its_model_sees_the_rows(flowers):
    X, _, y = flowers
    pipeline = make_pipeline(StandardScaler(), RKDAClassifier(RBF())).fit(X, y)
    scaled = StandardScaler().fit_transform(X)
    alone = LabelMapDisplay.from_estimator(clone(pipeline[-1]).fit(scaled, y), scaled, y)
    display = LabelMapDisplay.from_estimator(pipeline, X, y)
    np.testing.assert_allclose(display.points, alone.points)
    np.testing.assert_array_equal(display.labels, alone.labels)


def test_numbers_are_colours_of_a_scale():
    case = CASES["MKLRegressor"]
    X, y = sample(case)
    y = np.where(np.arange(40) < 20, y, np.nan)
    model = fitted(case)
    display = LabelMapDisplay.from_estimator(model, X, y)
    assert display.classes is None
    assert len(drawn(display.ax_, "given")) == 20
    assert len(display.figure_.axes) == 2  # the map and its scale
    values = np.concatenate([part.get_array() for part in display.ax_.collections if part.get_array() is not None])
    np.testing.assert_allclose(np.sort(values), np.sort(display.labels))


def test_without_labels_every_row_is_predicted():
    case = CASES["CGBoostClassifier"]
    X, _ = sample(case)
    display = LabelMapDisplay.from_estimator(fitted(case), X)
    assert not display.is_labeled.any()
    np.testing.assert_array_equal(display.labels, fitted(case).predict(X))


def test_a_detector_of_outliers_has_two_classes():
    case = CASES["CGBoostOneClass"]
    X, _ = sample(case)
    display = LabelMapDisplay.from_estimator(fitted(case), X)
    assert display.classes == [-1, 1]
    np.testing.assert_array_equal(display.labels, fitted(case).predict(X))


def test_a_kernel_learner_that_predicts_nothing_is_refused():
    case = CASES["AlignedKernelLearner"]
    with pytest.raises(TypeError, match="got AlignedKernelLearner, which predicts no labels"):
        LabelMapDisplay.from_estimator(fitted(case), *sample(case))


def test_frames_and_sparse_rows_have_the_map_of_the_same_array(flowers):
    X, _, y = flowers
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    library = [OnColumns(RBF(), ["c", "d"]), Linear()]
    by_name = LabelMapDisplay.from_estimator(RKDAClassifier(library).fit(frame, y), frame, y)
    library = [OnColumns(RBF(), [2, 3]), Linear()]
    by_place = LabelMapDisplay.from_estimator(RKDAClassifier(library).fit(X, y), X, y)
    np.testing.assert_allclose(by_name.points, by_place.points, atol=1e-8)
    rows = csr_array(X)
    by_place = LabelMapDisplay.from_estimator(RKDAClassifier(library).fit(rows, y), rows, y)
    np.testing.assert_allclose(by_name.points, by_place.points, atol=1e-6)


def test_twenty_classes_with_awkward_names_all_have_their_own_look():
    names = ["_a", "$b$", *(f"a class with a rather long name, number {k}" for k in range(18))]
    points = np.random.default_rng(0).normal(size=(200, 2))
    labels = np.array(names)[np.arange(200) % 20]
    display = LabelMapDisplay(points, labels, np.arange(200) < 40, classes=names).plot()
    display.figure_.canvas.draw()
    legend = display.ax_.get_legend()
    texts = [text.get_text() for text in legend.get_texts()]
    assert texts[:2] == ["_a", r"\$b\$"]
    assert len(set(texts)) == len(texts)
    looks = {(line.get_color(), line.get_marker()) for line in legend.get_lines()[:20]}
    assert len(looks) == 20
    boxes = [text.get_window_extent() for text in legend.get_texts()]
    assert not any(a.overlaps(b) for k, a in enumerate(boxes) for b in boxes[:k])
    assert legend.get_window_extent().x1 <= display.figure_.bbox.x1 + 1


def test_of_very_many_classes_the_largest_are_named():
    display = LabelMapDisplay(np.zeros((80, 2)), np.arange(80) % 40, np.ones(80), classes=range(40)).plot()
    assert "and 16 other classes" in [text.get_text() for text in display.ax_.get_legend().get_texts()]


def test_other_rows_than_those_of_the_fit_are_refused(model, flowers):
    X, _, y = flowers
    with pytest.raises(
        ValueError, match=r"got 20 rows, but SSMKClassifier was fitted to 150\. Pass the rows of the fit"
    ):
        LabelMapDisplay.from_estimator(model, X[:20], y[:20])


@pytest.mark.parametrize(
    "option, sentence", [({"doubtful": 2}, "a number from 0 to 1"), ({"max_rows": 1}, "2 or more")]
)
def test_wrong_options_are_refused(model, flowers, option, sentence):
    with pytest.raises(ValueError, match=sentence):
        LabelMapDisplay.from_estimator(model, flowers[0], **option)


def test_numbers_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"LabelMapDisplay got points of shape \(3, 1\) and labels of shape \(3,\)"):
        LabelMapDisplay(np.zeros((3, 1)), [0, 1, 1], [True] * 3)
    with pytest.raises(ValueError, match="got the label 'c', which is none of the classes"):
        LabelMapDisplay(np.zeros((1, 2)), ["c"], [True], classes=["a", "b"]).plot()

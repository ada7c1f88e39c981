import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.calibration import calibration_curve
from sklearn.svm import SVC

from kernelweave import LapSVMClassifier, ReliabilityDisplay, SemiSupervisedCalibration

RNG = np.random.default_rng(0)
P = RNG.random(300)
Y = (RNG.random(300) < P).astype(int)


def curve(ax):
    return ax.containers[0].lines[0]


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_the_curve_is_that_of_scikit_learn(strategy):
    display = ReliabilityDisplay.from_predictions(Y, P, n_bins=7, strategy=strategy)
    true, predicted = calibration_curve(Y, P, n_bins=7, strategy=strategy)
    np.testing.assert_allclose(curve(display.ax_).get_xdata(), predicted)
    np.testing.assert_allclose(curve(display.ax_).get_ydata(), true)
    np.testing.assert_allclose([bar.get_height() for bar in display.axes_[1].patches], display.counts)
    assert display.counts.sum() == 300


def test_intervals_are_binomial():
    display = ReliabilityDisplay.from_predictions(Y, P, n_bins=5)
    (arms,) = display.ax_.containers[0].lines[2]
    for segment, n, share in zip(arms.get_segments(), display.counts, display.prob_true, strict=True):
        expected = binomtest(round(share * n), int(n)).proportion_ci(method="wilson")
        np.testing.assert_allclose(segment[:, 1], [expected.low, expected.high], atol=1e-9)


def test_empty_bins_have_no_point_but_a_line_in_the_frame():
    display = ReliabilityDisplay.from_predictions([0, 1], [0.05, 0.95], n_bins=10)
    assert len(curve(display.ax_).get_xdata()) == 2
    assert display.data_.shape == (10, 7)
    assert display.data_["observed"].isna().sum() == 8
    assert display.data_["rows"].sum() == 2


def test_of_three_classes_it_is_the_predicted_one_or_the_one_asked_for():
    y = np.array(["a", "b", "c", "c"])
    p = np.array([[0.6, 0.3, 0.1], [0.6, 0.2, 0.2], [0.1, 0.1, 0.8], [0.3, 0.3, 0.4]])
    display = ReliabilityDisplay.from_predictions(y, p, n_bins=2)
    assert display.counts.tolist() == [1, 3]
    np.testing.assert_allclose(display.prob_pred, [0.4, 2 / 3])
    np.testing.assert_allclose(display.prob_true, [1.0, 2 / 3])
    assert display.ax_.get_ylabel() == "share of right predictions"
    display = ReliabilityDisplay.from_predictions(y, p, n_bins=1, pos_label="c")
    np.testing.assert_allclose([display.prob_pred[0], display.prob_true[0]], [0.375, 0.5])
    assert display.axes_[1].get_xlabel() == "predicted probability of class c"


def test_unlabelled_rows_are_left_out():
    with_gaps = np.concatenate([Y.astype(float), [np.nan] * 5])
    display = ReliabilityDisplay.from_predictions(with_gaps, np.concatenate([P, np.full(5, 0.5)]))
    assert display.counts.sum() == 300


def test_a_combination_has_its_held_out_rows(auto, flowers):
    X, names, y = flowers
    display = ReliabilityDisplay.from_estimator(auto)
    assert display.counts.sum() == len(auto.oof_rows_)
    right = auto.classes_[auto.oof_probabilities_.argmax(axis=1)] == names[auto.oof_rows_]
    assert np.nansum(display.counts * display.prob_true) == pytest.approx(right.sum())
    hidden = np.array([label is None for label in y])
    display = ReliabilityDisplay.from_estimator(auto, X[hidden], names[hidden], pos_label="virginica", n_bins=4)
    assert display.counts.sum() == hidden.sum()
    assert display.ax_.get_ylabel() == "observed share of class virginica"


def test_a_calibration_has_its_held_out_rows(flowers):
    X, names, y = flowers
    model = SemiSupervisedCalibration(LapSVMClassifier(), random_state=0).fit(X, y)
    display = ReliabilityDisplay.from_estimator(model)
    assert display.counts.sum() == len(model.oof_rows_)
    right = model.classes_[model.oof_probabilities_.argmax(axis=1)] == names[model.oof_rows_]
    assert np.nansum(display.counts * display.prob_true) == pytest.approx(right.sum())
    assert f"{len(model.oof_rows_)} held-out rows" in display.axes_[0].get_title(loc="left")


def test_a_class_called_by_mathematics_is_text():
    display = ReliabilityDisplay.from_predictions(np.array(["$a$", "_b"] * 5), np.linspace(0, 1, 10), pos_label="$a$")
    display.figure_.canvas.draw()
    assert display.axes_[1].get_xlabel() == r"predicted probability of class \$a\$"


def test_estimators_without_what_is_needed_are_refused(auto, flowers):
    X, names, _ = flowers
    machine = SVC().fit(X, names)
    with pytest.raises(TypeError, match=r"got SVC, which has no predict_proba\. Put it into SemiSupervisedCalibration"):
        ReliabilityDisplay.from_estimator(machine, X, names)
    with pytest.raises(ValueError, match="got one of X and y; pass both"):
        ReliabilityDisplay.from_estimator(auto, X)
    with pytest.raises(ValueError, match=r"which keeps no probabilities of held-out rows\. Pass X and y"):
        ReliabilityDisplay.from_estimator(auto.members_[0].model)


WRONG = [
    ({"y_prob": [0.1, 7.0]}, r"probabilities from 0.1 to 7; expected numbers from 0 to 1"),
    ({"y_prob": np.ones((2, 3)) / 3}, r"of shape \(2, 3\) for 2 classes"),
    ({"pos_label": 5}, r"got pos_label=5; expected one of \[0, 1\]"),
    ({"n_bins": 0}, "got n_bins=0; expected a whole number, 1 or more"),
    ({"strategy": "best"}, 'got strategy=\'best\'; expected "uniform" or "quantile"'),
    ({"y_true": [np.nan, np.nan], "classes": [0, 1]}, "got no row with a known class"),
]


@pytest.mark.parametrize("change, sentence", WRONG)
def test_what_cannot_be_drawn_is_refused(change, sentence):
    with pytest.raises(ValueError, match=sentence):
        ReliabilityDisplay.from_predictions(**({"y_true": [0, 1], "y_prob": [0.1, 0.7]} | change))


def test_numbers_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="ReliabilityDisplay got 2 edges and values of the shapes"):
        ReliabilityDisplay([0.5, 0.6], [0.5, 0.6], [1, 1], [0.0, 1.0])

import numpy as np
import pytest
from common.estimators import ESTIMATORS, fitted
from sklearn.datasets import make_moons
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from kernelweave import RBF, CGBoostClassifier, CGBoostClassifierCV, PathDisplay, SSMKClassifier, cg_boost_path

X, Y = make_moons(80, noise=0.25, random_state=0)
COSTS = [0.1, 1.0, 10.0]


@pytest.fixture(scope="module")
def model():
    return CGBoostClassifierCV(RBF(), Cs=COSTS, cv=3).fit(X, Y)


def curve(ax):
    return next(line for line in ax.get_lines() if line.get_marker() in ("o", "s", "^"))


def test_scores_have_standard_errors_and_the_chosen_cost_is_marked(model):
    display = PathDisplay.from_estimator(model)
    score, size, gap = display.axes_
    np.testing.assert_allclose(curve(score).get_xdata(), COSTS)
    np.testing.assert_allclose(curve(score).get_ydata(), model.cv_results_["mean_test_score"])
    folds = np.array([model.cv_results_[f"split{k}_test_score"] for k in range(3)])
    expected = folds.std(axis=0, ddof=1) / np.sqrt(3)
    (arms,) = score.containers[0].lines[2]
    drawn = [np.ptp(segment[:, 1]) / 2 for segment in arms.get_segments()]
    np.testing.assert_allclose(drawn, expected, atol=1e-12)
    for panel in display.axes_:
        assert any(line.get_linestyle() == ":" and line.get_xdata()[0] == model.C_ for line in panel.get_lines())
    assert score.get_title(loc="right") == f"dotted: chosen, C = {model.C_:.3g}"
    assert gap.get_yscale() == "log"
    assert gap.get_xscale() == "log"
    assert [panel.get_ylabel() for panel in display.axes_] == ["score", "basis functions", "relative gap"]
    assert curve(size).get_ydata().tolist() == model.path_.n_columns.tolist()


def test_sizes_and_gaps_end_at_the_chosen_cost(model):
    display = PathDisplay.from_estimator(model)
    beyond = display.Cs > model.C_
    assert np.isnan(display.n_columns[beyond]).all()
    assert np.isfinite(display.n_columns[~beyond]).all()
    assert display.data_.shape == (3, 5)


def test_a_path_has_the_scores_of_its_validation_rows():
    path = cg_boost_path(X[:60], Y[:60], Cs=COSTS, estimator=CGBoostClassifier(RBF()), X_val=X[60:], y_val=Y[60:])
    display = PathDisplay.from_path(path)
    assert curve(display.ax_).get_ydata().tolist() == path.validation_scores.tolist()
    assert display.chosen == path.best.C
    np.testing.assert_allclose(curve(display.axes_[2]).get_ydata(), np.maximum(path.relative_gaps, 1e-16))
    alone = cg_boost_path(X, Y, Cs=[1.0], estimator=CGBoostClassifier(RBF(), penalty="l2"))
    display = PathDisplay.from_path(alone)
    assert len(display.axes_) == 2
    assert display.tol == 0.1
    display.figure_.canvas.draw()


def test_costs_that_folds_compared_are_drawn_with_their_scores():
    model = SSMKClassifier(RBF()).fit(X, np.where(np.arange(80) < 40, Y, -1))
    display = PathDisplay.from_estimator(model)
    assert len(display.axes_) == 1
    assert display.chosen == model.C_
    np.testing.assert_allclose(np.sort(display.scores), np.sort(model.cv_results_["mean_test_score"]))


def test_of_several_settings_of_a_cost_the_best_is_drawn():
    model = GridSearchCV(SVC(), {"C": [1.0]})
    model.best_params_ = {"C": 1.0}
    model.cv_results_ = {
        "param_C": np.array([1.0, 1.0, 10.0]),
        "mean_test_score": np.array([0.5, 0.75, 0.25]),
        "std_test_score": np.array([0.1, 0.2, 0.3]),
        **{f"split{k}_test_score": np.zeros(3) for k in range(5)},
    }
    display = PathDisplay.from_estimator(model)
    assert display.chosen == 1.0
    assert display.scores.tolist() == [0.75, 0.25]
    np.testing.assert_allclose(display.standard_errors, [0.1, 0.15])


def test_values_are_put_in_the_order_of_their_costs():
    display = PathDisplay([10.0, 1.0], scores=[0.9, 0.8]).plot()
    assert curve(display.ax_).get_xdata().tolist() == [1.0, 10.0]
    assert curve(display.ax_).get_ydata().tolist() == [0.8, 0.9]


def test_a_model_that_compared_no_costs_is_refused():
    case = next(case for case in ESTIMATORS if case.name == "SSMKClassifier")
    with pytest.raises(ValueError, match=r"got SSMKClassifier, whose cv_results_ compare no costs C\. Fit it"):
        PathDisplay.from_estimator(fitted(case))


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ValueError, match="PathDisplay got nothing to draw"):
        PathDisplay([1.0])
    with pytest.raises(ValueError, match=r"PathDisplay got scores of shape \(2,\); expected one for each of 1 Cs"):
        PathDisplay([1.0], scores=[0.5, 0.6])

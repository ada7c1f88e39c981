import numpy as np
import pytest
from common.estimators import ESTIMATORS, VARIANTS, fitted

from kernelweave import CertificateDisplay
from kernelweave.inspection.displays import search_model

CASES = {case.name: case for case in ESTIMATORS}
WITHIN = next(case for case in VARIANTS if getattr(case.estimator, "scatter", None) == "within")
OWN_WEIGHTS = next(case for case in VARIANTS if getattr(case.estimator, "share_weights", True) is False)


def lines(ax):
    """Lines with a point for each step: neither the tolerance nor stages."""
    return [line for line in ax.get_lines() if line.get_marker() not in ("None", None, "")]


def test_one_problem_has_its_objective_its_bound_and_its_gap():
    model = fitted(CASES["SSMKClassifier"])
    display = CertificateDisplay.from_estimator(model)
    objective, bound = lines(display.axes_[0])
    (gap,) = lines(display.axes_[1])
    history = model.history_
    np.testing.assert_allclose(objective.get_ydata(), [record["objective"] for record in history])
    np.testing.assert_allclose(bound.get_ydata(), [record["bound"] for record in history])
    relative = [record["gap"] / abs(record["objective"]) for record in history]
    np.testing.assert_allclose(gap.get_ydata(), np.maximum(relative, 1e-16))
    assert display.axes_[1].get_yscale() == "log"
    tolerance = [line for line in display.axes_[1].get_lines() if line not in lines(display.axes_[1])]
    assert [line.get_ydata()[0] for line in tolerance] == [model.tol]
    assert display.ax_ is display.axes_[0]


def test_several_problems_are_summed_and_each_has_its_gap():
    model = fitted(CASES["SSMKClassifier"], n_classes=3)
    display = CertificateDisplay.from_estimator(model)
    objective, bound = lines(display.axes_[0])
    # at the end all problems are solved, and what is drawn is what the certificate says
    assert objective.get_ydata()[-1] == pytest.approx(model.certificate_.objective)
    assert bound.get_ydata()[-1] == pytest.approx(model.certificate_.objective, rel=1e-6)
    # at the start it is the sum of what the problems began with
    starts = [record["objective"] for record in model.history_ if record["iteration"] == 1]
    assert objective.get_ydata()[0] == pytest.approx(sum(starts))
    assert len(lines(display.axes_[1])) == 3
    texts = [text.get_text() for text in display.axes_[1].get_legend().get_texts()]
    assert texts[:3] == ["0.0", "1.0", "2.0"]
    assert texts[3].startswith("tolerance")
    assert (np.diff(objective.get_ydata()) <= 1e-9).all()


def test_problems_that_are_not_named_begin_with_their_first_step():
    model = fitted(OWN_WEIGHTS, n_classes=3)
    assert "class" not in model.history_[0]
    display = CertificateDisplay.from_estimator(model)
    assert list(dict.fromkeys(display.problems)) == model.classes_.tolist()
    assert len(lines(display.axes_[1])) == 3


def test_a_ratio_that_is_maximised_has_its_bound_above():
    display = CertificateDisplay.from_estimator(fitted(WITHIN))
    assert (display.bounds >= display.objectives).all()


def test_a_transductive_fit_has_stages_and_no_bound():
    model = fitted(CASES["TSVMClassifier"])
    display = CertificateDisplay.from_estimator(model)
    assert display.bounds is None
    assert len(lines(display.axes_[0])) == 1
    n_stages = len({record["stage"] for record in model.history_})
    assert len(display.axes_[0].get_lines()) == 1 + n_stages - 1
    assert display.axes_[1].get_ylabel() == "distance from stationarity"
    assert "bound" not in display.data_.columns


def test_a_tolerance_that_was_left_open_is_that_of_the_penalty():
    assert CertificateDisplay.from_estimator(fitted(CASES["CGBoostClassifier"])).tol == 1e-6


@pytest.mark.parametrize("name", ["HarmonicClassifier", "LearnedKernelClassifier"])
def test_without_a_history_the_certificate_is_the_only_point(name):
    model = fitted(CASES[name])
    display = CertificateDisplay.from_estimator(model)
    assert display.objectives.tolist() == [model.certificate_.objective]
    assert display.gaps.tolist() == [model.certificate_.gap]
    assert len(lines(display.axes_[1])[0].get_ydata()) == 1


def test_a_combination_shows_a_model_inside_it(auto):
    display = CertificateDisplay.from_estimator(auto)
    assert len(display.gaps) == len(search_model(auto, ("history_",)).history_)


def test_twenty_problems_are_thin_lines_with_one_name_and_a_gap_of_zero_is_drawn():
    gaps = np.tile([1.0, 0.0], 20)
    display = CertificateDisplay(np.ones(40), gaps, problems=np.repeat(np.arange(20), 2), tol=1e-3).plot()
    drawn = lines(display.axes_[1])
    assert len(drawn) == 20
    assert {line.get_color() for line in drawn} == {drawn[0].get_color()}
    assert drawn[0].get_ydata().tolist() == [1.0, 1e-16]
    assert [text.get_text() for text in display.axes_[1].get_legend().get_texts()] == [
        "each of 20 problems",
        "tolerance 0.001",
    ]
    assert display.data_["gap"].tolist() == gaps.tolist()


def test_a_single_point_does_not_fill_the_panel_with_rounding():
    display = CertificateDisplay([50.0], [1e-9], bounds=[50.0 - 1e-9]).plot()
    low, high = display.ax_.get_ylim()
    assert high - low >= 0.01 * 50.0 * (1 - 1e-9)


def test_values_of_many_magnitudes_are_drawn_on_a_logarithmic_axis():
    assert CertificateDisplay([1e6, 10.0], [1e6, 1.0]).plot().ax_.get_yscale() == "log"
    assert CertificateDisplay([0.0, -10.0], [5.0, 1.0]).plot().ax_.get_yscale() == "linear"


def test_names_of_classes_are_no_mathematics():
    problems = ["_a", "_a", "$b$", "$b$"]
    display = CertificateDisplay([2.0, 1.0] * 2, [1.0, 0.1] * 2, problems=problems).plot()
    display.figure_.canvas.draw()
    assert [text.get_text() for text in display.axes_[1].get_legend().get_texts()] == ["_a", r"\$b\$"]


def test_records_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="CertificateDisplay got 2 objectives, 1 gaps and 2 problems"):
        CertificateDisplay([1.0, 2.0], [1.0])


def test_where_the_objective_is_zero_no_relative_gap_is_drawn():
    model = fitted(CASES["CGBoostOneClass"])
    assert model.history_[0]["objective"] == 0.0
    display = CertificateDisplay.from_estimator(model)
    assert np.isinf(display.relative_gaps[0])
    assert np.isnan(lines(display.axes_[1])[0].get_ydata()[0])
    assert display.axes_[1].get_ylim()[1] < 1e3

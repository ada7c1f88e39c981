import numpy as np
import pandas as pd
import pytest
from checks.partial_tables import fill, numeric, table
from sklearn.datasets import load_wine

from kernelweave.errors import KernelweaveError
from kernelweave.labeling.tasks import ROUNDING


def test_too_few_labels_to_hold_out_give_labels_without_probabilities():
    frame, _, _, truth = table()
    few = np.zeros(90, dtype=bool)
    for label in ("yes", "no"):
        few[np.flatnonzero(truth == label)[:3]] = True
    done = fill(frame, np.where(few, truth, "").astype(object), ~few, probabilities=True)
    for name in ("y_probability", "y_probability_yes"):
        assert (done.extra[name] == "").all()
    assert "not given" in done.report["probabilities"]
    assert done.report["errors"] == {}
    assert any("to know the error: label more rows" in note for note in done.report["warnings"])


def test_the_report_compares_with_the_majority():
    frame, cells, empty, _ = table()
    report = fill(frame, cells, empty).report
    assert set(report["errors"]) == {"kernelweave", "majority class"}
    errors = report["errors"]["kernelweave"]
    assert errors["interval"][0] <= errors["error"] <= errors["interval"][1]
    assert errors["error"] < report["errors"]["majority class"]["error"]
    most = max(report["classes"].values())
    assert report["errors"]["majority class"]["error"] == pytest.approx(1 - most / 45)
    assert report["members"][0]["certificate"]["relative"] <= 1e-3
    assert (report["rows"], report["rows_labeled"], report["rows_filled"], report["rows_tested"]) == (90, 45, 45, 45)


def test_the_printed_interval_is_the_one_that_the_learner_states():
    frame, cells, empty, _ = table()
    done = fill(frame, cells, empty, learner="harmonic")
    stated, printed = done.model[-1].learner.error_, done.report["errors"]["kernelweave"]
    assert (printed["error"], *printed["interval"]) == (stated.value, stated.low, stated.high)


def test_the_error_of_one_learner_is_that_of_its_held_out_rows():
    frame, cells, empty, _ = table()
    report = fill(frame, cells, empty, learner="harmonic").report
    (record,) = report["leaderboard"]
    assert record["error"] == pytest.approx(report["errors"]["kernelweave"]["error"])
    assert record["weight"] == 1.0
    assert report["unlabeled_helped"] is None


def test_several_learners_are_tried_and_the_stacked_ones_fill():
    frame, cells, empty, truth = table()
    done = fill(frame, cells, empty, learner="auto", time_limit=3.0)
    assert len(done.report["leaderboard"]) == 10
    assert sum(member["weight"] for member in done.report["members"]) == pytest.approx(1.0)
    assert np.mean(done.values[empty] == truth[empty]) > 0.8


def test_raw_wine_is_learned_as_well_as_scaled_wine():
    data = load_wine(as_frame=True)
    rng = np.random.default_rng(0)
    empty = rng.random(178) < 0.7
    cells = np.where(empty, "", data.target.astype(str)).astype(object)
    frame = data.data.astype(str).assign(y=cells)
    done = fill(frame, cells, empty, task="classification", learner="RKDA")
    assert np.mean(done.values[empty] == data.target[empty].astype(str)) > 0.93


def test_labels_that_are_no_better_than_guessing_are_said_to_be_so():
    frame, _, empty, _ = table()
    n_noted = 0
    for seed in range(4):  # some draws of noise look like an order
        rng = np.random.default_rng(seed)
        noise = np.where(empty, "", rng.choice(["p", "p", "p", "q"], 90)).astype(object)
        frame = pd.DataFrame({"noise": rng.normal(size=90).astype(str), "y": noise}, dtype=object)
        report = fill(frame, noise, empty).report
        errors = report["errors"]
        is_better = errors["kernelweave"]["error"] < errors["majority class"]["error"] * (1 - ROUNDING)
        is_noted = any("no better than those of the majority class" in warning for warning in report["warnings"])
        assert is_noted is not is_better
        n_noted += is_noted
    assert n_noted


def test_classes_that_look_like_thousands_are_classes():
    frame, cells, empty, truth = table()
    cells = np.where(empty, "", np.where(truth == "yes", "1,067", "999")).astype(object)
    assert fill(frame.assign(y=cells), cells, empty).report["classes"].keys() == {"1,067", "999"}


def test_codes_with_underscores_are_classes():
    frame, cells, empty, truth = table()
    codes = np.array([f"{i % 3 + 20}_{int(t == 'yes')}" for i, t in enumerate(truth)], dtype=object)
    cells = np.where(empty, "", codes).astype(object)
    done = fill(frame.assign(y=cells), cells, empty)
    assert done.report["task"] == "classification"
    assert set(done.values[empty]) <= set(codes)


def test_classes_that_look_like_one_are_noted():
    frame, cells, empty, _ = table()
    other = np.where((np.arange(90) % 2 == 0) & (cells == "yes"), "Yes", cells).astype(object)
    notes = fill(frame.assign(y=other), other, empty).report["warnings"]
    assert any("'Yes' and 'yes' differ only in case" in note for note in notes)


def test_a_class_that_looks_like_a_missing_value_is_noted():
    frame, cells, empty, _ = table()
    renamed = np.where(cells == "no", "None", cells).astype(object)
    assert any("--unlabeled None" in note for note in fill(frame, renamed, empty).report["warnings"])
    assert not any("--unlabeled" in note for note in fill(frame, cells, empty).report["warnings"])


def test_equal_rows_are_held_out_together_and_a_class_that_cannot_be_told_is_noted():
    rng = np.random.default_rng(1)
    values = np.repeat(rng.normal(size=40), 4)
    cells = np.repeat(rng.choice(["p", "q"], 40), 4).astype(object)  # labels without a cause, four copies each
    values, cells = np.append(values, [0.1, 0.2]), np.append(cells, ["", ""])
    frame = pd.DataFrame({"x": values.astype(str), "y": cells}, dtype=object)
    report = fill(frame, cells, cells == "").report
    assert report["errors"]["kernelweave"]["error"] > 0.25
    assert (
        "On held-out rows 'q' cannot be told from the other classes: the probability is constant."
        in (report["warnings"])
    )


def test_numbers_are_filled_with_an_interval_that_covers():
    rng = np.random.default_rng(1)
    x = rng.uniform(-3, 3, size=400)
    y = 1000 * np.sin(x) + 50 * rng.normal(size=400)
    empty = np.arange(400) % 2 == 0
    cells = np.where(empty, "", [f"{value:.1f}" for value in y]).astype(object)
    frame = pd.DataFrame({"x": x.astype(str), "y": cells}, dtype=object)
    done = fill(frame, cells, empty)
    assert done.report["task"] == "regression"
    low, high = (done.extra[f"y_{end}"][empty].astype(float) for end in ("low", "high"))
    assert 0.8 < np.mean((low <= y[empty]) & (y[empty] <= high)) < 0.98
    assert done.report["interval_radius"] == pytest.approx((high - low)[0] / 2, abs=0.1)
    assert done.report["errors"]["kernelweave"]["rmse"] < 0.2 * done.report["errors"]["mean"]["rmse"]
    assert done.report["leaderboard"][0]["error"] == pytest.approx(done.report["errors"]["kernelweave"]["rmse"])
    stated, printed = done.model[-1].learner.error_, done.report["errors"]["kernelweave"]
    unit = printed["rmse"] / stated.value
    np.testing.assert_allclose(printed["interval"], [unit * stated.low, unit * stated.high])
    again = done.model.predict(pd.DataFrame({"x": x.astype(str)}))
    np.testing.assert_allclose(again[empty], done.values[empty].astype(float), atol=0.051)  # one decimal, as given
    half = fill(frame, cells, empty, coverage=0.5)
    assert half.report["interval_radius"] < done.report["interval_radius"]


def test_what_is_reported_of_numbers_has_their_unit():
    frame, cells, empty, _ = numeric(lambda v: f"{v:.2f}")
    thousandfold = np.array([text and f"{1000 * float(text):.0f}" for text in cells], dtype=object)
    options = {"learner": "auto", "time_limit": 1e-3}
    small, large = fill(frame, cells, empty, **options), fill(frame, thousandfold, empty, **options)
    for key in ("error", "standard_error"):
        tested = [done.report["leaderboard"][0][key] for done in (small, large)]
        assert np.isnan(tested).all() or tested[1] == pytest.approx(1000 * tested[0], rel=1e-3)


def test_regression_on_words_is_refused():
    frame, cells, empty, _ = table()
    with pytest.raises(KernelweaveError, match="Regression needs numbers"):
        fill(frame, cells, empty, task="regression")


def test_a_decimal_comma_is_kept():
    rng = np.random.default_rng(0)
    x = rng.normal(size=80)
    empty = np.arange(80) >= 60
    cells = np.where(empty, "", [f"{3 * value + 10:.2f}".replace(".", ",") for value in x]).astype(object)
    done = fill(pd.DataFrame({"x": x.astype(str), "y": cells}, dtype=object), cells, empty)
    assert done.report["task"] == "regression"
    assert all(len(text.partition(",")[2]) == 2 for text in done.values[empty])


@pytest.mark.parametrize(
    "write", [lambda v: f"{300 * v:,.0f}", lambda v: f"{300 * v:,.2f}", lambda v: f"{1e5 * v:,.0f}"]
)
def test_thousands_in_the_target_are_refused_and_the_way_out_named(write):
    frame, cells, empty, _ = numeric(write)
    with pytest.raises(KernelweaveError, match=r"may separate thousands or decimals.*--task classification"):
        fill(frame, cells, empty)


@pytest.mark.parametrize(
    "write", [lambda v: f"{v * 1e-11:.3e}", lambda v: f"{v * 1e-13:.17f}", lambda v: f"{v * 1e12:.4E}"]
)
def test_small_and_large_numbers_keep_their_digits(write):
    frame, cells, empty, truth = numeric(write)
    done = fill(frame, cells, empty, learner="ridge regression")
    assert done.report["task"] == "regression"
    filled = done.values[empty].astype(float)
    expected = np.array([float(write(value)) for value in truth[empty]])
    np.testing.assert_allclose(filled, expected, rtol=0.1)
    assert len(set(filled)) >= len(filled) - 2  # of 20 numbers with four digits two may be equal
    assert all(("e" in text.lower()) == ("e" in cells[0].lower()) for text in done.values[empty])


def test_numbers_too_large_to_be_squared_are_refused():
    frame, cells, empty, _ = numeric(lambda v: f"{v * 1e200:.3e}")
    with pytest.raises(KernelweaveError, match=r"'y' holds .*e\+201; numbers beyond 1e\+150"):
        fill(frame, cells, empty)


def test_a_spelled_out_missing_number_names_the_option():
    frame, cells, empty, _ = numeric(lambda v: f"{v:.2f}")
    spelled = np.where(empty, "n/a", cells).astype(object)
    with pytest.raises(KernelweaveError, match=r"no empty cell, .*If 'n/a' marks an unlabelled row, .*--unlabeled n/a"):
        fill(frame, spelled, np.zeros_like(empty))
    half = np.where(np.arange(80) < 5, "NA", cells).astype(object)
    for task in ("auto", "regression"):
        with pytest.raises(KernelweaveError, match=r"numbers and other texts. If 'NA' marks .*--unlabeled NA"):
            fill(frame, half, empty, task=task)


@pytest.mark.parametrize("group", [None, "g"])
def test_one_number_is_not_enough_and_two_are(group):
    frame, cells, empty, _ = numeric(lambda v: f"{v:.2f}", n=20, n_labeled=2)
    frame = frame.assign(g=[f"c{i % 4}" for i in range(20)])
    assert fill(frame, cells, empty, task="regression", group=group).report["rows_labeled"] == 2
    cells[1], empty[1] = "", True
    with pytest.raises(KernelweaveError, match="Only one row of 'y' has a number; label more rows"):
        fill(frame, cells, empty, task="regression", group=group)


def test_a_mix_of_dots_and_commas_is_refused_as_numbers():
    frame, cells, empty, _ = numeric(lambda v: f"{v:.2f}")
    cells[:5] = [text.replace(".", ",") for text in cells[:5]]
    with pytest.raises(KernelweaveError, match="Regression needs numbers, and 'y' holds dots and commas too"):
        fill(frame, cells, empty, task="regression")


def test_a_radius_that_is_not_known_is_infinite_and_its_cells_are_empty():
    frame, cells, empty, _ = numeric(lambda v: f"{v:.2f}", n=40, n_labeled=8)
    done = fill(frame, cells, empty, task="regression")
    assert done.report["interval_radius"] == np.inf
    assert set(done.extra["y_low"]) == {""}

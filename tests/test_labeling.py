import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest
from sklearn.datasets import load_wine

from kernelweave.labeling import (
    LabelingError,
    LabelingOptions,
    _Classes,
    as_numbers,
    covering_radius,
    fill_labels,
    guess_task,
    wilson_interval,
)


def silent(what, share):
    pass


def table(n=90, n_labeled=45, seed=0):
    """A frame of text cells, its target column and which of its cells are empty."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=n), rng.normal(size=n)
    kind = rng.choice(["red", "blue"], n)
    truth = np.where(a + (kind == "red") > 0.5, "yes", "no").astype(object)
    empty = np.arange(n) >= n_labeled
    cells = np.where(empty, "", truth).astype(object)
    frame = pd.DataFrame({"a": a.astype(str), "b": b.astype(str), "kind": kind, "y": cells}, dtype=object)
    return frame, cells, empty, truth


def fill(frame, cells, empty, stage=silent, **options):
    return fill_labels(frame, cells, empty, LabelingOptions(**({"target": "y"} | options)), stage)


def test_empty_cells_are_filled_and_the_others_left_alone():
    frame, cells, empty, truth = table()
    done = fill(frame, cells, empty)
    assert all(value is None for value in done.values[~empty])
    assert np.mean(done.values[empty] == truth[empty]) > 0.8
    assert list(done.extra) == ["y_probability", "y_margin"]
    probabilities = done.extra["y_probability"][empty].astype(float)
    assert ((probabilities > 0) & (probabilities <= 1)).all()
    assert (done.extra["y_margin"][~empty] == "").all()


def test_the_report_compares_with_the_majority_and_with_svc():
    frame, cells, empty, _ = table()
    report = fill(frame, cells, empty).report
    assert set(report["errors"]) == {"kernelweave", "majority class", "SVC"}
    errors = report["errors"]["kernelweave"]
    assert errors["interval"][0] <= errors["error"] <= errors["interval"][1]
    assert errors["error"] < report["errors"]["majority class"]["error"]
    assert report["certificate"]["relative"] <= 1e-6
    assert (report["rows"], report["rows_labeled"], report["rows_filled"]) == (90, 45, 45)
    assert sum(usage["columns"] for usage in report["kernels"]) == report["basis_functions"]


def test_a_row_number_changes_no_label():
    frame, cells, empty, _ = table()
    plain = fill(frame, cells, empty)
    numbered = fill(frame.assign(row=[str(i) for i in range(90)]), cells, empty)
    np.testing.assert_array_equal(plain.values, numbered.values)
    assert "row" in numbered.report["columns"]["left_out"]


def test_the_same_seed_gives_the_same_cells():
    frame, cells, empty, _ = table()
    first, second = fill(frame, cells, empty, seed=3), fill(frame, cells, empty, seed=3)
    np.testing.assert_array_equal(first.values, second.values)
    for name in first.extra:
        np.testing.assert_array_equal(first.extra[name], second.extra[name])


def test_the_model_fills_new_rows_as_it_filled_these():
    frame, cells, empty, _ = table()
    done = fill(frame, cells, empty)
    np.testing.assert_array_equal(done.model.predict(frame[empty]), done.values[empty])


def test_few_labels_a_class_give_labels_without_probabilities():
    frame, _, _, truth = table()
    few = np.zeros(90, dtype=bool)
    for label in ("yes", "no"):
        few[np.flatnonzero(truth == label)[:4]] = True
    done = fill(frame, np.where(few, truth, "").astype(object), ~few)
    assert (done.extra["y_probability"] == "").all()
    assert "fewer than 5" in done.report["probabilities"]


def test_numbers_are_filled_with_an_interval_that_covers():
    rng = np.random.default_rng(1)
    x = rng.uniform(-3, 3, size=400)
    y = 1000 * np.sin(x) + 50 * rng.normal(size=400)
    empty = np.arange(400) % 2 == 0
    cells = np.where(empty, "", [f"{value:.1f}" for value in y]).astype(object)
    done = fill(pd.DataFrame({"x": x.astype(str), "y": cells}, dtype=object), cells, empty)
    assert done.report["task"] == "regression"
    low, high = (done.extra[f"y_{end}"][empty].astype(float) for end in ("low", "high"))
    assert 0.8 < np.mean((low <= y[empty]) & (y[empty] <= high)) < 0.98
    assert done.report["errors"]["kernelweave"]["rmse"] < 0.2 * done.report["errors"]["mean"]["rmse"]
    again = done.model.predict(pd.DataFrame({"x": x.astype(str)}))
    np.testing.assert_allclose(again[empty], done.values[empty].astype(float), atol=0.051)  # one decimal, as given


def test_groups_are_held_out_whole():
    frame, cells, empty, _ = table(n=90)
    frame = frame.assign(clinic=[f"c{i % 6}" for i in range(90)])
    report = fill(frame, cells, empty, group="clinic").report
    assert "clinic" in report["columns"]["left_out"]
    one = frame.assign(clinic="c")
    with pytest.raises(LabelingError, match="two groups"):
        fill(one, cells, empty, group="clinic")


def test_each_source_has_a_family_of_kernels():
    frame, cells, empty, _ = table()
    report = fill(frame, cells, empty, sources={"left": ["a", "kind"], "right": ["b"]}).report
    assert {usage["source"] for usage in report["kernels"]} == {"left", "right", "all columns"}  # these are deformed


def test_raw_wine_is_learned_as_well_as_scaled_wine():
    data = load_wine(as_frame=True)
    rng = np.random.default_rng(0)
    empty = rng.random(178) < 0.7
    cells = np.where(empty, "", data.target.astype(str)).astype(object)
    frame = data.data.astype(str).assign(y=cells)
    done = fill(frame, cells, empty, task="classification")
    assert np.mean(done.values[empty] == data.target[empty].astype(str)) > 0.93


def test_a_time_limit_is_kept_and_said():
    frame, cells, empty, _ = table()
    report = fill(frame, cells, empty, time_limit=60.0).report
    assert report["certificate"]["status"]


def test_stages_are_told_in_order():
    frame, cells, empty, _ = table()
    told = []
    fill(frame, cells, empty, stage=lambda what, share: told.append((what, share)))
    shares = [share for _, share in told]
    assert shares == sorted(shares)
    assert any("part 5 of 5" in what for what, _ in told)


@pytest.mark.parametrize(
    "labels, task",
    [
        (["a", "b"], "classification"),
        (["0", "1", "2"], "classification"),
        ([str(i) for i in range(30)], "regression"),
        ([f"{i / 7:.3f}" for i in range(15)], "regression"),
        (["1.5", "2.5"], "classification"),
        (["nan", "1"] * 20, "classification"),
        ([str(i) for i in range(30)] + ["x"], "classification"),
    ],
)
def test_the_task_is_guessed_from_the_target(labels, task):
    assert guess_task(np.array(labels, dtype=object)) == task


def test_numbers_are_read_from_texts():
    np.testing.assert_array_equal(as_numbers(np.array(["1", "-2.5", "1e3"], dtype=object)), [1, -2.5, 1000])
    assert as_numbers(np.array(["1", "inf"], dtype=object)) is None


@pytest.mark.parametrize("wrong, rows", [(0, 10), (3, 50), (50, 50)])
def test_the_interval_is_wilsons(wrong, rows):
    expected = binomtest(wrong, rows).proportion_ci(method="wilson")
    np.testing.assert_allclose(wilson_interval(wrong, rows), expected, atol=1e-6)


def test_the_radius_covers_the_wanted_share():
    assert covering_radius(np.arange(1.0, 100.0)) == 90.0
    assert np.isnan(covering_radius(np.ones(5)))


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda cells, empty: (np.where(empty, "x", cells), np.zeros_like(empty)), "no empty cell"),
        (lambda cells, empty: (np.full(90, ""), np.ones_like(empty)), "is empty: label some rows"),
        (lambda cells, empty: (np.where(empty, "", "yes"), empty), "at least two classes"),
        (lambda cells, empty: (np.where(np.arange(90) == 3, "odd one", cells), empty), "only one labelled row"),
    ],
)
def test_a_target_that_cannot_be_learned_is_refused(change, message):
    frame, cells, empty, _ = table()
    cells, empty = change(cells, empty)
    with pytest.raises(LabelingError, match=message):
        fill(frame, cells.astype(object), empty)


def test_no_column_to_learn_from_is_refused():
    frame, cells, empty, _ = table()
    with pytest.raises(LabelingError, match="No column is left to learn from"):
        fill(frame, cells, empty, ignore=["a", "b", "kind"])


def test_regression_on_words_is_refused():
    frame, cells, empty, _ = table()
    with pytest.raises(LabelingError, match="Regression needs numbers"):
        fill(frame, cells, empty, task="regression")


def test_labels_that_are_no_better_than_guessing_are_said_to_be_so():
    rng = np.random.default_rng(0)
    frame, cells, empty, _ = table()
    frame = pd.DataFrame({"noise": rng.normal(size=90).astype(str), "y": cells}, dtype=object)
    noise = np.where(empty, "", rng.choice(["p", "p", "p", "q"], 90)).astype(object)
    report = fill(frame.assign(y=noise), noise, empty).report
    worse = report["errors"]["kernelweave"]["error"] >= report["errors"]["majority class"]["error"]
    assert worse
    assert any("no better than those of the majority class" in warning for warning in report["warnings"])


@pytest.mark.parametrize("svc, clearly", [(0.03, True), (0.10, False)])
def test_another_error_is_clearly_smaller_only_outside_our_interval(svc, clearly):
    work = object.__new__(_Classes)
    work.errors = {
        "kernelweave": {"error": 0.12, "interval": [0.08, 0.2]},
        "majority class": {"error": 0.5},
        "SVC": {"error": svc},
    }
    assert any("clearly smaller" in warning for warning in work.warnings()) is clearly


def test_equal_rows_are_held_out_together():
    rng = np.random.default_rng(0)
    values = np.repeat(rng.normal(size=40), 4)
    cells = np.repeat(rng.choice(["p", "q"], 40), 4).astype(object)  # labels without a cause, four copies each
    values, cells = np.append(values, [0.1, 0.2]), np.append(cells, ["", ""])
    report = fill(pd.DataFrame({"x": values.astype(str), "y": cells}, dtype=object), cells, cells == "").report
    assert report["errors"]["kernelweave"]["error"] > 0.25


def test_a_decimal_comma_is_kept():
    rng = np.random.default_rng(0)
    x = rng.normal(size=80)
    empty = np.arange(80) >= 60
    cells = np.where(empty, "", [f"{3 * value + 10:.2f}".replace(".", ",") for value in x]).astype(object)
    done = fill(pd.DataFrame({"x": x.astype(str), "y": cells}, dtype=object), cells, empty)
    assert done.report["task"] == "regression"
    assert all(len(text.partition(",")[2]) == 2 for text in done.values[empty])

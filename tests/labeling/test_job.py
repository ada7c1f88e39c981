import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine
from sklearn.exceptions import ConvergenceWarning

from kernelweave.errors import KernelweaveError
from kernelweave.labeling.job import LabelingOptions, _Clock, _Folds, _Numbers, fill_labels, in_options


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
    with pytest.raises(KernelweaveError, match="two groups"):
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
    with pytest.raises(KernelweaveError, match=message):
        fill(frame, cells.astype(object), empty)


def test_no_column_to_learn_from_is_refused():
    frame, cells, empty, _ = table()
    with pytest.raises(KernelweaveError, match="No column is left to learn from"):
        fill(frame, cells, empty, ignore=["a", "b", "kind"])


def test_regression_on_words_is_refused():
    frame, cells, empty, _ = table()
    with pytest.raises(KernelweaveError, match="Regression needs numbers"):
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


@pytest.mark.parametrize("other, chance, clearly", [(0.1, 0.01, True), (0.1, 0.2, False), (0.13, 0.01, False)])
def test_another_error_is_clearly_smaller_only_if_it_is_and_chance_is_unlikely(other, chance, clearly):
    work = object.__new__(_Numbers)
    work.errors = {
        name: {"mean_absolute_error": error} for name, error in {"kernelweave": 0.12, "mean": 0.5, "SVR": other}.items()
    }
    work.chance = chance
    assert any("SVR has a clearly smaller error" in warning for warning in work.warnings()) is clearly


def test_the_error_of_svc_is_not_said_to_be_clearly_smaller_where_two_rows_differ():
    frame, cells, empty, _ = table()
    report = fill(frame, cells, empty).report
    ours, svc = (report["errors"][name]["error"] for name in ("kernelweave", "SVC"))
    assert abs(ours - svc) * 45 <= 5  # fewer than 6 rows are never significant
    assert not any("clearly smaller" in warning for warning in report["warnings"])


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


def numeric(write, n=80, n_labeled=60, seed=0):
    """A frame with one feature, and a target that is a linear function of it, written by ``write``."""
    x = np.random.default_rng(seed).normal(size=n)
    empty = np.arange(n) >= n_labeled
    truth = 3 * x + 10
    cells = np.where(empty, "", [write(value) for value in truth]).astype(object)
    return pd.DataFrame({"x": x.astype(str), "y": cells}, dtype=object), cells, empty, truth


@pytest.mark.parametrize(
    "write", [lambda v: f"{300 * v:,.0f}", lambda v: f"{300 * v:,.2f}", lambda v: f"{1e5 * v:,.0f}"]
)
def test_thousands_in_the_target_are_refused_and_the_way_out_named(write):
    frame, cells, empty, _ = numeric(write)
    with pytest.raises(KernelweaveError, match=r"between thousands or before decimals.*--task classification"):
        fill(frame, cells, empty)


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


@pytest.mark.parametrize(
    "write", [lambda v: f"{v * 1e-11:.3e}", lambda v: f"{v * 1e-13:.17f}", lambda v: f"{v * 1e12:.4E}"]
)
def test_small_and_large_numbers_keep_their_digits(write):
    frame, cells, empty, truth = numeric(write)
    done = fill(frame, cells, empty)
    assert done.report["task"] == "regression"
    filled = done.values[empty].astype(float)
    expected = np.array([float(write(value)) for value in truth[empty]])
    np.testing.assert_allclose(filled, expected, rtol=0.1)
    assert len(set(filled)) == len(filled)
    assert all(("e" in text.lower()) == ("e" in cells[0].lower()) for text in done.values[empty])


def test_numbers_too_large_to_be_squared_are_refused():
    frame, cells, empty, _ = numeric(lambda v: f"{v * 1e200:.3e}")
    with pytest.raises(KernelweaveError, match=r"'y' holds .*e\+201; numbers beyond 1e\+150"):
        fill(frame, cells, empty)


@pytest.mark.parametrize("scale", ["auto", "block", "none"])
@pytest.mark.parametrize("value", ["1.7976931348623157e308", "1e200"])
def test_a_feature_too_large_to_be_squared_is_named(value, scale):
    frame, cells, empty, _ = table()
    frame.loc[3, "b"] = value
    with pytest.raises(KernelweaveError, match=r"'b' holds .*Correct or empty such cells"):
        fill(frame, cells, empty, scale=scale)


def test_a_feature_too_large_for_kernels_is_named():
    frame, cells, empty, _ = table()
    frame.loc[3, "b"] = "1e120"
    assert fill(frame, cells, empty).report["rows_filled"] == 45  # standardised it is harmless
    with pytest.raises(KernelweaveError, match="column 'b' has values too large for kernels"):
        fill(frame, cells, empty, scale="none")


def test_a_spelled_out_missing_number_names_the_option():
    frame, cells, empty, _ = numeric(lambda v: f"{v:.2f}")
    spelled = np.where(empty, "n/a", cells).astype(object)
    with pytest.raises(
        KernelweaveError, match=r"no empty cell: .*if 'n/a' marks a row without a label, .*--unlabeled n/a"
    ):
        fill(frame, spelled, np.zeros_like(empty))
    half = np.where(np.arange(80) < 5, "NA", cells).astype(object)
    for task in ("auto", "regression"):
        with pytest.raises(KernelweaveError, match=r"numbers and other texts: if 'NA' marks .*--unlabeled NA"):
            fill(frame, half, empty, task=task)


def test_blanks_around_labels_and_groups_do_not_count():
    frame, cells, empty, _ = table()
    plain = fill(frame.assign(g=[f"c{i % 6}" for i in range(90)]), cells, empty, group="g")
    blank = np.array([f"{text} " if i % 2 and text else text for i, text in enumerate(cells)], dtype=object)
    groups = [f"c{i % 6}" + " " * (i % 4) for i in range(90)]
    done = fill(frame.assign(y=blank, g=groups), blank, empty, group="g")
    assert done.report["classes"].keys() == {"yes", "no"}
    np.testing.assert_array_equal(done.values, plain.values)
    assert done.report["errors"] == plain.report["errors"]


def test_classes_that_look_like_one_are_told():
    frame, cells, empty, _ = table()
    other = np.where((np.arange(90) % 2 == 0) & (cells == "yes"), "Yes", cells).astype(object)
    notes = fill(frame.assign(y=other), other, empty).report["warnings"]
    assert any("'Yes' and 'yes' differ only in case" in note for note in notes)


@pytest.mark.parametrize("group", [None, "g"])
def test_one_number_is_not_enough_and_two_are(group):
    frame, cells, empty, _ = numeric(lambda v: f"{v:.2f}", n=20, n_labeled=2)
    frame = frame.assign(g=[f"c{i % 4}" for i in range(20)])
    assert fill(frame, cells, empty, task="regression", group=group).report["rows_labeled"] == 2
    cells[1], empty[1] = "", True
    with pytest.raises(KernelweaveError, match="Only one row of 'y' has a number; label more rows"):
        fill(frame, cells, empty, task="regression", group=group)


def test_the_estimators_parameters_are_called_as_the_command_calls_them():
    frame, cells, empty, _ = table()
    with pytest.warns(ConvergenceWarning, match="max_time") as caught:
        report = fill(frame, cells, empty, time_limit=1e-6).report
    words = [report["certificate"]["status"], *(in_options(str(warning.message)) for warning in caught)]
    assert all("Stopped at --time-limit before" in text for text in words if "Stopped" in text)
    assert any("Raise --time-limit, or accept" in text for text in words)
    assert not any("max_time" in text or "tol," in text for text in words)


def test_a_class_that_looks_like_a_missing_value_is_told():
    frame, cells, empty, _ = table()
    renamed = np.where(cells == "no", "None", cells).astype(object)
    assert any("--unlabeled None" in note for note in fill(frame, renamed, empty).report["warnings"])
    assert not any("--unlabeled" in note for note in fill(frame, cells, empty).report["warnings"])


def test_a_mix_of_dots_and_commas_is_refused_as_numbers():
    frame, cells, empty, _ = numeric(lambda v: f"{v:.2f}")
    cells[:5] = [text.replace(".", ",") for text in cells[:5]]
    with pytest.raises(KernelweaveError, match="Regression needs numbers, and 'y' holds dots and commas too"):
        fill(frame, cells, empty, task="regression")


def test_a_radius_that_is_not_known_is_none():
    frame, cells, empty, _ = numeric(lambda v: f"{v:.2f}", n=40, n_labeled=8)
    done = fill(frame, cells, empty, task="regression")
    assert done.report["interval_radius"] is None
    assert set(done.extra["y_low"]) == {""}


def test_a_column_that_a_source_loses_is_told():
    frame, cells, empty, _ = table()
    frame = frame.assign(id=[str(i) for i in range(90)])
    report = fill(frame, cells, empty, sources={"left": ["a", "id"], "right": ["b"]}).report
    assert any("Source 'left' does without 'id', left out as ID-like" in note for note in report["warnings"])
    with pytest.raises(KernelweaveError, match="No column of source 'left' is left to learn from: id \\(ID-like"):
        fill(frame, cells, empty, sources={"left": ["id"], "right": ["b"]})
    with pytest.raises(KernelweaveError, match="Source 'left' names the target 'y'"):
        fill(frame, cells, empty, sources={"left": ["y", "a"]})
    fill(frame, cells, empty, sources={"all": ["*"]})  # a pattern means what there is to learn from


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_without_time_one_part_is_tested_and_said_so(task):
    frame, cells, empty, _ = table() if task == "classification" else numeric(lambda v: f"{v:.2f}")
    told = []
    report = fill(frame, cells, empty, task=task, time_limit=1e-6, stage=lambda what, _: told.append(what)).report
    assert report["rows_tested"] == (~empty).sum() // 5
    assert sum("cross-validating" in what for what in told) == 1
    assert "fitting on all rows" in told
    assert fill(frame, cells, empty, task=task).report["rows_tested"] == (~empty).sum()


def test_parts_are_handed_out_until_each_class_is_tested():
    y = np.array(["a", "a", "b", "b", None, None], dtype=object)
    parts = [(np.array([2, 3]), np.array([0])), (np.array([0]), np.array([2])), (np.array([0]), np.array([3]))]
    folds = _Folds(parts, y, _Clock(1e-9))
    assert list(folds.split()) == parts[:2]
    assert folds.is_over
    assert folds.tested(np.array([0, 1, 2, 3])).tolist() == [0, 2]

import numpy as np
import pandas as pd
from checks.partial_tables import fill, table
from sklearn.datasets import load_wine


def test_few_labels_a_class_give_labels_without_probabilities():
    frame, _, _, truth = table()
    few = np.zeros(90, dtype=bool)
    for label in ("yes", "no"):
        few[np.flatnonzero(truth == label)[:4]] = True
    done = fill(frame, np.where(few, truth, "").astype(object), ~few)
    assert (done.extra["y_probability"] == "").all()
    assert "fewer than 5" in done.report["probabilities"]


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


def test_raw_wine_is_learned_as_well_as_scaled_wine():
    data = load_wine(as_frame=True)
    rng = np.random.default_rng(0)
    empty = rng.random(178) < 0.7
    cells = np.where(empty, "", data.target.astype(str)).astype(object)
    frame = data.data.astype(str).assign(y=cells)
    done = fill(frame, cells, empty, task="classification")
    assert np.mean(done.values[empty] == data.target[empty].astype(str)) > 0.93


def test_labels_that_are_no_better_than_guessing_are_said_to_be_so():
    rng = np.random.default_rng(0)
    frame, cells, empty, _ = table()
    frame = pd.DataFrame({"noise": rng.normal(size=90).astype(str), "y": cells}, dtype=object)
    noise = np.where(empty, "", rng.choice(["p", "p", "p", "q"], 90)).astype(object)
    report = fill(frame.assign(y=noise), noise, empty).report
    worse = report["errors"]["kernelweave"]["error"] >= report["errors"]["majority class"]["error"]
    assert worse
    assert any("no better than those of the majority class" in warning for warning in report["warnings"])


def test_the_error_of_svc_is_not_said_to_be_clearly_smaller_where_two_rows_differ():
    frame, cells, empty, _ = table()
    report = fill(frame, cells, empty).report
    ours, svc = (report["errors"][name]["error"] for name in ("kernelweave", "SVC"))
    assert abs(ours - svc) * 45 <= 5  # fewer than 6 rows are never significant
    assert not any("clearly smaller" in warning for warning in report["warnings"])


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


def test_a_class_that_the_model_cannot_tell_is_noted():
    rng = np.random.default_rng(1)
    values = np.repeat(rng.normal(size=40), 4)
    cells = np.repeat(rng.choice(["p", "q"], 40), 4).astype(object)  # labels without a cause, four copies each
    values, cells = np.append(values, [0.1, 0.2]), np.append(cells, ["", ""])
    notes = fill(pd.DataFrame({"x": values.astype(str), "y": cells}, dtype=object), cells, cells == "").report[
        "warnings"
    ]
    assert "On held-out rows 'q' cannot be told from the other classes: the probability is constant." in notes

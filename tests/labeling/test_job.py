from functools import cache

import numpy as np
import pytest
from checks.partial_tables import fill, numeric, table

from kernelweave.errors import ErrorCode, KernelweaveError
from kernelweave.labeling import job
from kernelweave.labeling.job import fill_by_blocks


def test_empty_cells_are_filled_and_the_others_left_alone():
    frame, cells, empty, truth = table()
    done = fill(frame, cells, empty)
    assert all(value is None for value in done.values[~empty])
    assert np.mean(done.values[empty] == truth[empty]) > 0.8
    assert list(done.extra) == ["y_probability", "y_margin"]
    probabilities = done.extra["y_probability"][empty].astype(float)
    assert ((probabilities > 0) & (probabilities <= 1)).all()
    assert (done.extra["y_margin"][~empty] == "").all()


def test_a_saved_model_predicts_block_by_block(monkeypatch):
    class Model:
        def fill_cells(self, X, target):
            return np.array([f"{target}{row}" for (row,) in X], dtype=object), {"size": [str(len(X))] * len(X)}

    monkeypatch.setattr(job, "BLOCK_ROWS", 3)
    done = []
    texts, extra = fill_by_blocks(Model(), np.arange(7)[:, None], "y", done.append)
    assert texts.tolist() == [f"y{row}" for row in range(7)]
    assert extra == {"size": ["3"] * 6 + ["1"]}
    assert done == [0, 3, 6]


def test_a_row_number_changes_no_label():
    frame, cells, empty, _ = table()
    plain = fill(frame, cells, empty)
    numbered = fill(frame.assign(row=[str(i) for i in range(90)]), cells, empty)
    np.testing.assert_array_equal(plain.values, numbered.values)
    assert "row" in numbered.report["columns"]["left_out"]


@cache
def mixed_table():
    """Columns of all kinds: numbers, two values, levels, many levels, dates, times of day, durations, text; filled."""
    frame, cells, empty, truth = table()
    rng, is_yes = np.random.default_rng(1), truth == "yes"
    frame["flag"] = np.where(rng.random(90) < 0.5, "t", "f")
    frame["city"] = [f"c{k}" for k in rng.integers(0, 25, 90)]
    frame["day"] = [f"2024-{k % 12 + 1:02d}-{k % 28 + 1:02d}" for k in rng.permutation(90)]
    frame["at"] = [f"{k % 24:02d}:{k % 60:02d}" for k in rng.permutation(90)]
    frame["for"] = [f"{k % 9} h {k % 50} min" for k in rng.permutation(90)]
    words = np.where(
        is_yes[:, None], rng.choice(["good", "well", "fine"], (90, 4)), rng.choice(["bad", "ill"], (90, 4))
    )
    frame["remark"] = [" ".join([*line, f"no. {k}"]) for k, line in zip(rng.permutation(90), words, strict=True)]
    frame.loc[::7, "b"] = "#N/A"
    return frame, cells, empty, fill(frame, cells, empty)


@pytest.mark.parametrize("change", ["rows", "columns", "names"])
def test_the_order_of_rows_and_columns_and_the_names_of_classes_change_no_label(change):
    frame, cells, empty, expected = mixed_table()
    assert set(expected.report["columns"]["used"]) == set(frame) - {"y", "city"}  # which says nothing of y
    rows = np.random.default_rng(2).permutation(90) if change == "rows" else np.arange(90)
    columns = list(frame)[:: -1 if change == "columns" else 1]
    names = {"yes": "a", "no": "b"} if change == "names" else {"yes": "yes", "no": "no"}  # in the opposite order
    given = np.array([names.get(text, "") for text in cells[rows]], dtype=object)
    found = fill(frame[columns].iloc[rows].reset_index(drop=True).assign(y=given), given, empty[rows])
    place = np.argsort(rows)[empty]
    margins = [texts.astype(float) for texts in (found.extra["y_margin"][place], expected.extra["y_margin"][empty])]
    np.testing.assert_allclose(*margins, atol=5e-3)  # machines stop at a gap
    is_clear = margins[1] > 1e-2
    assert is_clear.mean() > 0.9
    assert ([names[text] for text in expected.values[empty]] == found.values[place])[is_clear].all()


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


def test_enough_time_changes_nothing():
    frame, cells, empty, _ = table()
    limited, free = fill(frame, cells, empty, time_limit=1e6), fill(frame, cells, empty)
    assert limited.report["rows_tested"] == 45
    assert limited.report["members"] == free.report["members"]
    np.testing.assert_array_equal(limited.values, free.values)


def test_stages_come_in_order():
    frame, cells, empty, _ = table()
    stages = []
    fill(frame, cells, empty, lambda text, share: stages.append((text, share)))
    shares = [share for _, share in stages]
    assert shares == sorted(shares)
    assert {"trying SVM", "cross-validating SVM", "filling in the labels"} <= {text for text, _ in stages}


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda cells, empty: (np.where(empty, "x", cells), np.zeros_like(empty)), "no empty cell"),
        (lambda cells, empty: (np.full(90, ""), np.ones_like(empty)), "No row of 'y' has a label"),
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


def test_blanks_around_labels_and_groups_do_not_count():
    frame, cells, empty, _ = table()
    plain = fill(frame.assign(g=[f"c{i % 6}" for i in range(90)]), cells, empty, group="g")
    blank = np.array([f"{text} " if i % 2 and text else text for i, text in enumerate(cells)], dtype=object)
    groups = [f"c{i % 6}" + " " * (i % 4) for i in range(90)]
    done = fill(frame.assign(y=blank, g=groups), blank, empty, group="g")
    assert done.report["classes"].keys() == {"yes", "no"}
    np.testing.assert_array_equal(done.values, plain.values)
    assert done.report["errors"] == plain.report["errors"]


def test_groups_are_held_out_whole():
    frame, cells, empty, _ = table(n=90)
    frame = frame.assign(clinic=[f"c{i % 6}" for i in range(90)])
    report = fill(frame, cells, empty, group="clinic").report
    assert "clinic" in report["columns"]["left_out"]
    with pytest.raises(KernelweaveError, match=r"All labelled rows are in the group 'c'.*two groups") as caught:
        fill(frame.assign(clinic="c"), cells, empty, group="clinic")
    assert caught.value.code is ErrorCode.BAD_GROUPS


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_without_time_the_cells_are_filled_and_what_is_missing_is_said(task):
    frame, cells, empty, _ = table() if task == "classification" else numeric(lambda v: f"{v:.2f}")
    done = fill(frame, cells, empty, task=task, time_limit=1e-6, learner="auto")
    assert all(done.values[empty])
    assert done.report["rows_tested"] < (~empty).sum()
    assert any("There was no time for" in note for note in done.report["warnings"])


def test_given_labels_that_are_wrong_are_listed_with_what_identifies_them():
    frame, cells, empty, truth = table()
    wrong = int(np.argmax(frame["a"].astype(float)[:45]))  # far on the side of "yes"
    assert truth[wrong] == "yes"
    cells[wrong] = "no"
    frame = frame.assign(y=cells, code=[f"r{i}" for i in range(90)])
    report = fill(frame, cells, empty, suspects=2, next=3, id_columns=["code"]).report
    first = report["suspects"][0]
    assert (first["row"], first["id"], first["given"], first["suggested"]) == (
        wrong,
        {"code": f"r{wrong}"},
        "no",
        "yes",
    )
    assert len(report["suspects"]) == 2
    assert len(report["next"]) == 3
    assert all(empty[record["row"]] and record["guess"] in ("yes", "no") for record in report["next"])


def test_suspect_numbers_are_written_as_the_given_ones_are():
    frame, cells, empty, truth = numeric(lambda v: f"{v:.2f}")
    cells[7] = "99.00"
    first = fill(frame.assign(y=cells), cells, empty, suspects=1).report["suspects"][0]
    assert (first["row"], first["given"]) == (7, "99.00")
    assert len(first["suggested"].partition(".")[2]) == 2
    assert abs(float(first["suggested"]) - truth[7]) < 20


@pytest.mark.parametrize("option", [{"probabilities": True}, {"next": 3}])
def test_options_for_classes_are_refused_for_numbers(option):
    frame, cells, empty, _ = numeric(lambda v: f"{v:.2f}")
    with pytest.raises(KernelweaveError, match=f"--{next(iter(option))} is for classes, .*--task") as caught:
        fill(frame, cells, empty, **option)
    assert caught.value.code is ErrorCode.BAD_OPTION


def test_a_column_that_a_source_loses_is_noted():
    frame, cells, empty, _ = table()
    frame = frame.assign(id=[str(i) for i in range(90)])
    report = fill(frame, cells, empty, sources={"left": ["a", "id"], "right": ["b"]}).report
    assert any("Column 'id' of source 'left' is left out: ID-like" in note for note in report["warnings"])
    with pytest.raises(KernelweaveError, match="No column of source 'left' is left to learn from: id \\(ID-like"):
        fill(frame, cells, empty, sources={"left": ["id"], "right": ["b"]})
    with pytest.raises(KernelweaveError, match="Source 'left' names the target 'y'"):
        fill(frame, cells, empty, sources={"left": ["y", "a"]})
    fill(frame, cells, empty, sources={"all": ["*"]})  # a pattern means what there is to learn from


@pytest.mark.parametrize(
    "counts, texts, expected",
    [
        ({"a": 10, "b": 10}, ["a"] * 20, "class 'b'"),
        ({"a": 10, "b": 10, "c": 10}, ["a"] * 20, "classes 'b', 'c'"),
        ({"a": 10, "b": 10}, ["a"] * 19 + ["b"], ""),
        ({"a": 10, "b": 10}, ["a"] * 5, ""),  # none of five is no wonder
        ({}, ["1.5"] * 100, ""),
    ],
)
def test_classes_that_no_cell_is_filled_with_are_noted(counts, texts, expected):
    notes = job.note_unused_classes({"classes": counts} if counts else {}, texts)
    assert len(notes) == bool(expected)
    assert not notes or f"No empty cell is filled with the {expected}:" in notes[0]


def test_a_large_table_is_learned_from_a_sample_and_filled_whole(monkeypatch):
    monkeypatch.setattr("kernelweave.labeling.sampling.MAX_WHOLE_ROWS", 80)
    monkeypatch.setattr("kernelweave.labeling.sampling.MAX_ROWS", 70)
    monkeypatch.setattr("kernelweave.labeling.sampling.MIN_UNLABELED", 10)
    frame, cells, empty, truth = table()
    done = fill(frame, cells, empty, suspects=3, next=3)
    assert len(done.learned) == 70
    assert all(value is not None for value in done.values[empty])
    assert np.mean(done.values[empty] == truth[empty]) > 0.8
    assert done.report["rows"] == 90
    assert any(
        note.startswith("Learned from 70 of 90 rows, drawn at random: all 45 labelled")
        for note in done.report["warnings"]
    )
    assert all(cells[each["row"]] == each["given"] for each in done.report["suspects"])
    assert all(empty[each["row"]] for each in done.report["next"])

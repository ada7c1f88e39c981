import numpy as np
import pandas as pd
import pytest
from checks.partial_tables import fill, numeric, table

from kernelweave.errors import ErrorCode, KernelweaveError
from kernelweave.labeling.folds import Clock, Target, cross_validate, group_equal_rows, split_labeled


def test_groups_are_held_out_whole():
    frame, cells, empty, _ = table(n=90)
    frame = frame.assign(clinic=[f"c{i % 6}" for i in range(90)])
    report = fill(frame, cells, empty, group="clinic").report
    assert "clinic" in report["columns"]["left_out"]
    one = frame.assign(clinic="c")
    with pytest.raises(KernelweaveError, match=r"All labelled rows are in the group 'c'.*two groups") as caught:
        fill(one, cells, empty, group="clinic")
    assert caught.value.code is ErrorCode.BAD_GROUPS


def test_a_class_in_one_group_only_is_refused():
    y = np.array(["a", "b", "a", "b", "c", "c", None], dtype=object)
    groups = np.array(["g", "g", "h", "h", "h", "h", "h"], dtype=object)
    with pytest.raises(KernelweaveError, match=r"all labels of a class.*'c'.*in other groups") as caught:
        split_labeled(np.zeros((7, 1)), Target("classification", y, np.arange(6), 2), groups, 0)
    assert caught.value.code is ErrorCode.BAD_GROUPS
    groups = np.array(["g", "g", "h", "h", "i", "i", "i"], dtype=object)
    with pytest.raises(KernelweaveError, match=r"those of the classes \['c'\].*in other groups") as caught:
        split_labeled(np.zeros((7, 1)), Target("classification", y, np.arange(6), 2), groups, 0)
    assert caught.value.code is ErrorCode.BAD_GROUPS


def test_equal_rows_are_held_out_together():
    rng = np.random.default_rng(0)
    values = np.repeat(rng.normal(size=40), 4)
    cells = np.repeat(rng.choice(["p", "q"], 40), 4).astype(object)  # labels without a cause, four copies each
    values, cells = np.append(values, [0.1, 0.2]), np.append(cells, ["", ""])
    report = fill(pd.DataFrame({"x": values.astype(str), "y": cells}, dtype=object), cells, cells == "").report
    assert report["errors"]["kernelweave"]["error"] > 0.25


def test_equal_rows_are_held_out_together_unless_a_class_would_be_lost():
    """All rows of class c are equal: held out together, nothing would be left to learn the class from."""
    X = np.r_[
        np.repeat(np.random.default_rng(0).normal(size=(40, 2)), 2, axis=0), np.full((6, 2), 9.0), np.ones((3, 2))
    ]
    y = np.array([*("a" if row[0] > 0 else "b" for row in X[:80]), *"cccccc", None, None, None], dtype=object)
    folds = split_labeled(X, Target("classification", y, np.arange(86), 5), None, 0)
    assert all(set(y[train]) == {"a", "b", "c", None} for train, _ in folds)
    without = split_labeled(X, Target("classification", np.where(y == "c", None, y), np.arange(80), 5), None, 0)
    assert all(not {tuple(row) for row in X[test]} & {tuple(row) for row in X[train]} for train, test in without)


def test_rows_are_grouped_where_some_are_equal_and_enough_are_distinct():
    X = np.arange(60.0)[:, None]
    labeled = np.arange(50)
    assert group_equal_rows(X, labeled) is None
    assert group_equal_rows(X // 10, labeled) is None  # 5 distinct rows
    groups = group_equal_rows(X // 2, labeled)
    np.testing.assert_array_equal(groups, [*np.repeat(np.arange(25), 2), *[-1] * 10])


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_without_time_one_fold_is_computed_and_said_so(task):
    frame, cells, empty, _ = table() if task == "classification" else numeric(lambda v: f"{v:.2f}")
    stages = []
    report = fill(frame, cells, empty, lambda text, _: stages.append(text), task=task, time_limit=1e-6).report
    assert report["rows_tested"] == (~empty).sum() // 5
    assert sum("cross-validating" in text for text in stages) == 1
    assert "fitting on all rows" in stages
    assert fill(frame, cells, empty, task=task).report["rows_tested"] == (~empty).sum()


def test_folds_are_computed_until_each_class_is_held_out():
    y = np.array(["a", "a", "b", "b", None, None], dtype=object)
    folds = [(np.array([2, 3]), np.array([1])), (np.array([0]), np.array([2])), (np.array([0]), np.array([3]))]
    computed = []

    def predict(number, train, test):
        computed.append((number, train.tolist(), test.tolist()))
        return {"one": 10.0 * test, "two": np.column_stack([test, -test])}

    held_out = cross_validate(folds, predict, y, Clock(1e-9))
    assert computed == [(1, [2, 3], [1]), (2, [0], [2])]
    assert held_out.rows.tolist() == [1, 2]
    held_out = cross_validate(folds[::-1], predict, y, Clock(None))
    assert held_out.rows.tolist() == [1, 2, 3]  # in order, whatever the order of the folds
    assert held_out.outputs["one"].tolist() == [10.0, 20.0, 30.0]
    assert held_out.outputs["two"].tolist() == [[1, -1], [2, -2], [3, -3]]
    assert cross_validate(folds, predict, None, Clock(1e-9)).rows.tolist() == [1]


def test_a_clock_shares_out_half_of_the_time_that_is_left():
    assert Clock(None).seconds_per_fit(5) is None
    assert Clock(None).allows(1e9)
    clock = Clock(1000.0)
    assert 0 < clock.seconds_per_fit(5) <= 100.0
    assert clock.allows(1.0)
    assert not clock.allows(1001.0)
    assert 0 < Clock(1e-9).seconds_per_fit(5) < 0.01

"""Text is used where it helps on held-out rows, and said to be left out where it does not."""

import numpy as np
import pandas as pd
import pytest

from kernelweave.labeling.columns import Column, ColumnPlan
from kernelweave.labeling.problem import ReadingOptions, read_problem
from kernelweave.labeling.text_choice import MAX_DIRECTIONS, MAX_LABELED, choose_texts, find_helpful

N = 120
BRANDS = ["toyota corolla", "toyota corona", "honda civic", "ford pinto", "ford galaxie", "chevrolet nova"]


def plan_of(**kinds):
    columns = tuple(Column(name, kind, "free text" if kind == "text" else "numbers") for name, kind in kinds.items())
    return ColumnPlan(columns, "auto", N)


def test_text_that_helps_stays_and_other_text_is_left_out_with_the_reason():
    plan = plan_of(x="numeric", good="text", bad="text")
    chosen = choose_texts(plan, ["good"])
    assert [column.kind for column in chosen.columns] == ["numeric", "text", "left out"]
    assert chosen.columns[1].reason == "free text, which lowers the error on held-out rows"
    assert chosen.columns[2].reason == "free text: it does not help on held-out rows"
    untested = choose_texts(plan, None)
    assert [column.kind for column in untested.columns] == ["numeric", "left out", "left out"]
    assert untested.columns[1].reason == "free text: too few labels to test whether it helps"


def test_text_is_not_left_out_where_nothing_else_is_left():
    assert choose_texts(plan_of(a="text", b="text"), []) == plan_of(a="text", b="text")
    columns = (Column("x", "numeric", "", source="lab"), Column("t", "text", "", source="remarks"))
    assert choose_texts(ColumnPlan(columns, "auto", N), []).columns == columns


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("in_groups", [False, True])
def test_columns_that_go_with_the_labels_are_found(task, in_groups):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 5))
    signal = X[:, 0] + 2 * X[:, 1]
    labels = np.where(signal > 0, "a", "b") if task == "classification" else signal.astype(str)
    groups = np.arange(N) // 4 if in_groups else None
    assert find_helpful(X, {"good": [1], "noise": [2, 3]}, labels, task, groups, 0) == ["good"]


def test_many_rows_and_columns_are_tested_on_some_of_them():
    rng = np.random.default_rng(0)
    n = MAX_LABELED + 100
    X = np.hstack([rng.normal(size=(n, 1)), 0.01 * rng.normal(size=(n, MAX_DIRECTIONS + 5))])
    assert find_helpful(X, {"good": [0]}, np.where(X[:, 0] > 0, "a", "b"), "classification", None, 0) == ["good"]


@pytest.mark.parametrize("labels", [["a", "b"] * 3, ["a"] * 30, ["a"] * 30 + ["b"]])
def test_with_too_few_labels_nothing_is_known(labels):
    X = np.zeros((len(labels), 2))
    assert find_helpful(X, {"t": [1]}, labels, "classification", None, 0) is None
    assert find_helpful(X, {"t": [1]}, labels, "regression", None, 0) is None
    assert find_helpful(np.zeros((20, 2)), {"t": [1]}, ["a", "b"] * 10, "classification", np.zeros(20), 0) is None


def test_a_name_decides_where_numbers_do_not():
    rng = np.random.default_rng(0)
    kind = rng.integers(0, len(BRANDS), N)
    names = [f"{BRANDS[k]} {rng.integers(70, 99)} {rng.integers(0, 99)}" for k in kind]
    remarks = [f"note {rng.integers(10**6)} by {rng.integers(10**6)}" for _ in range(N)]
    frame = pd.DataFrame({"x": rng.normal(size=N).astype(str), "name": names, "remark": remarks, "y": ""})
    cells = np.array(["Japan" if k < 3 else "USA" for k in kind], dtype=object)
    empty = np.arange(N) >= 60
    problem = read_problem(frame, np.where(empty, "", cells), empty, ReadingOptions("y"), lambda text, share: None)
    assert problem.describe(ReadingOptions("y"))["columns"]["used"] == {"x": "numeric", "name": "text"}
    assert "does not help" in problem.plan.left_out[0].reason
    assert problem.setup.X.shape[0] == N

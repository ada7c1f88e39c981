"""Explanations as plain arrays with names, and tables of them."""

from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from kernelweave.inspection.explanation import CombinedExplanation, Explanation, read_row

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def explanation():
    by_row = np.array([[[[3.0, 0.0], [0.5, 0.0]], [[-1.0, 2.0], [0.0, 0.0]]]])  # row, training row, source, output
    by_source = np.array([[[2.5, 2.0], [0.5, 1.0]]])
    return Explanation(
        outputs=np.array(["a", HOSTILE], dtype=object),
        decision=np.array([[4.0, 2.0]]),
        intercept=np.array([1.0, -1.0]),
        kernels=("wide", "narrow", "line"),
        kernel_sources=("left", "left", HOSTILE),
        by_kernel=np.array([[[1.5, 1.0], [1.0, 1.0], [0.5, 1.0]]]),
        sources=("left", HOSTILE),
        by_source=by_source,
        training_rows=np.array([[[7, 9], [9, 7]]]),
        by_training_row=by_row,
        rest=by_source - by_row.sum(axis=1),
    )


@pytest.fixture
def combined(explanation):
    return CombinedExplanation(
        outputs=np.array(["a", "b"], dtype=object),
        decision=np.array([[0.7, 0.3]]),
        members=("first", "second"),
        weights=np.array([0.6, 0.4]),
        by_member=np.array([[[0.3, 0.3], [0.4, 0.0]]]),
        shares=np.array([[0.3 / 0.7, 0.4 / 0.7]]),
        explanations={"second": explanation},
        refused={"first": "no sum"},
    )


@pytest.mark.parametrize("by", ["kernel", "source", "training_row"])
def test_the_lines_of_a_frame_sum_to_the_decision_values(explanation, by):
    frame = explanation.to_frame(by)
    assert list(frame.columns) == ["row", "output", by, *(["source"] if by == "kernel" else []), "contribution"]
    sums = frame.groupby(["row", "output"], sort=False)["contribution"].sum()
    np.testing.assert_allclose(sums.to_numpy(), explanation.decision.ravel())


def test_frames_name_kernels_sources_and_rows(explanation):
    assert explanation.to_frame()["kernel"].tolist()[:4] == ["wide", "narrow", "line", "(intercept)"]
    assert explanation.to_frame("source")["source"].tolist()[:3] == ["left", HOSTILE, "(intercept)"]
    rows = explanation.to_frame("training_row")["training_row"].tolist()
    assert rows[:4] == [7, 9, "(other rows)", "(intercept)"]
    with pytest.raises(ValueError, match="to_frame got by='column'; expected \"kernel\""):
        explanation.to_frame("column")


def test_rows_lists_what_adds_most_to_the_largest_output(explanation):
    assert explanation.rows(0) == [
        {"row": 7, "contribution": 3.5, "from left": 3.0, f"from {HOSTILE}": 0.5},
        {"row": 9, "contribution": -1.0, "from left": -1.0, f"from {HOSTILE}": 0.0},
    ]
    assert [record["row"] for record in explanation.rows(0, n=1)] == [7]
    assert explanation.rows(-1, output="a") == explanation.rows(0)
    assert explanation.rows(0).to_frame().shape == (2, 4)


def test_rows_that_add_nothing_are_left_out(explanation):
    assert [record["row"] for record in explanation.rows(0, output=HOSTILE)] == [7]


def test_of_one_source_rows_name_none(explanation):
    alone = replace(explanation, sources=("all",), by_training_row=explanation.by_training_row[:, :, :1])
    assert alone.rows(0)[0] == {"row": 7, "contribution": 3.0}


def test_wrong_rows_and_outputs_are_refused(explanation, combined):
    for found in (explanation, combined):
        for i in (1, -2, 0.0, True, None):
            with pytest.raises(ValueError, match=r"There is no row .* among the 1 explained; expected 0 to 0"):
                found.rows(i)
    with pytest.raises(ValueError, match="no output 'c'; it has 'a', "):
        explanation.rows(0, output="c")
    assert read_row(np.int64(-1), 3) == 2


def test_explanations_cannot_be_changed_and_are_short(explanation, combined):
    with pytest.raises(FrozenInstanceError):
        explanation.decision = None
    assert repr(explanation) == "<Explanation of 1 row and 2 outputs: 3 kernels, 2 sources, 2 training rows for each>"
    assert repr(combined) == "<CombinedExplanation of 1 row: 2 members, of which 1 explained>"


def test_tables_of_notebooks_are_escaped(explanation, combined):
    for found in (explanation, combined, replace(combined, members=(HOSTILE, "second"))):
        assert "<table" in found._repr_html_()
        assert "<script" not in found._repr_html_()


def test_combinations_name_the_member(combined):
    assert combined.heaviest(0) == "second"
    assert combined.rows(0, n=1)[0]["member"] == "second"
    frame = combined.to_frame()
    assert list(frame.columns) == ["row", "output", "member", "contribution"]
    np.testing.assert_allclose(frame.groupby("output", sort=False)["contribution"].sum(), [0.7, 0.3])
    assert combined.to_frame("source").columns.tolist() == ["member", "row", "output", "source", "contribution"]


def test_a_combination_without_sums_says_why(combined):
    with pytest.raises(ValueError, match=r"No member of this combination is a sum over training rows. first: no sum"):
        replace(combined, explanations={}).rows(0)

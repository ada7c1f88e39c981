import numpy as np
import pandas as pd
import pytest
from checks.partial_tables import table

from kernelweave.errors import ErrorCode, KernelweaveError
from kernelweave.labeling.problem import ReadingOptions, encode, encode_noting, find_appended, read_problem


def read(frame, cells, empty, **options):
    return read_problem(frame, cells, empty, ReadingOptions("y", **options), lambda text, share: None)


def test_a_table_without_an_empty_cell_is_a_problem_too():
    frame, _, _, truth = table()
    problem = read(frame, truth.astype(object), np.zeros(90, dtype=bool))
    assert problem.task == "classification"
    about = problem.describe(ReadingOptions("y"))
    assert (about["rows"], about["rows_labeled"], about["task_was"]) == (90, 90, "guessed")
    assert set(about["columns"]["used"]) == {column.name for column in problem.plan.used}


def test_features_are_those_of_all_rows_and_no_label_is_among_them():
    frame, cells, empty, _ = table()
    problem, other = read(frame, cells, empty), read(frame, cells[::-1], empty[::-1])
    np.testing.assert_array_equal(problem.setup.X, other.setup.X)
    np.testing.assert_array_equal(problem.setup.X, encode(problem.encoder, frame))
    assert len(problem.setup.X) == 90


def test_cells_and_features_are_read_once_and_gaps_are_noted():
    frame, cells, empty, _ = table()
    problem = read(frame, cells, empty)
    name = next(column.name for column in problem.plan.used if column.kind == "numeric")
    frame[name] = ["?!", *frame[name].astype(str)[1:]]
    X, read_cells, notes = encode_noting(problem.encoder, frame)
    np.testing.assert_array_equal(X, encode(problem.encoder, frame))
    np.testing.assert_array_equal(X, problem.encoder[1].transform(read_cells))
    assert notes == [f"Cells that cannot be read are gaps: '?!' in {name!r}."]


def test_without_a_label_there_is_nothing_to_learn():
    frame, cells, _, _ = table()
    with pytest.raises(KernelweaveError, match="No row of 'y' has a label") as caught:
        read(frame, cells, np.ones(90, dtype=bool))
    assert caught.value.code is ErrorCode.BAD_TARGET


def test_a_source_with_the_target_in_it_is_refused_and_columns_left_out_of_one_are_said():
    frame, cells, empty, _ = table()
    frame = frame.assign(constant="1", y=cells)
    used = read(frame, cells, empty).plan.used[0].name
    with pytest.raises(KernelweaveError, match="names the target 'y'"):
        read(frame, cells, empty, sources={"a": ["y"]})
    problem = read(frame, cells, empty, sources={"a": [used, "constant"]})
    assert problem.notes == ["Column 'constant' of source 'a' is left out: constant."]


@pytest.mark.parametrize(
    "columns, expected",
    [
        ({"y_probability": ["", "0.9"], "y_margin": ["", "1"]}, ["y_probability", "y_margin"]),
        ({"y_probability_yes": ["", "0.9"], "y_probability_2": ["", ""]}, ["y_probability_yes", "y_probability_2"]),
        ({"y_margin_2": ["", "1"], "y_set": ["", "a|b"]}, ["y_margin_2", "y_set"]),
        ({"y_low": ["", "1"], "y_high": ["", "2"]}, ["y_low", "y_high"]),
        ({"y_low": [float("nan"), 1.0], "y_high": [float("nan"), 2.0]}, ["y_low", "y_high"]),
        ({"x_probability": ["", "0.9"], "x_margin": ["", "1"]}, ["x_probability", "x_margin"]),  # with another target
        (
            {"x_margin": ["", "1"], "x_probability": ["", "1"], "x_probability_2": ["", "0"], "x_set": ["", "2"]},
            ["x_margin", "x_probability", "x_probability_2", "x_set"],
        ),
        ({"y_margin": ["", "1"], "y_set": ["", "a"], "y_set_2": ["", "a|b"]}, ["y_margin", "y_set", "y_set_2"]),
        ({"y_margin_3": ["2", "1"], "y_set_2": ["a", "a|b"]}, ["y_margin_3", "y_set_2"]),  # of predict
        ({"y_low_2": ["", "1"], "y_high_2": ["", "2"]}, ["y_low_2", "y_high_2"]),
        ({"x_probability_2": ["", "0.9"], "x_margin_2": ["", "1"]}, ["x_probability_2", "x_margin_2"]),
        ({"x_probability_2": ["", "0.9"], "x_margin_3": ["", "1"]}, []),
        (
            {
                "x_probability": ["", "0.9"],
                "x_margin": ["", "1"],
                "x_probability_a": ["0.1", "0.2"],
                "x_set": ["a", ""],
            },
            ["x_probability", "x_margin"],
        ),
        ({"x_probability": ["0.1", "0.9"], "x_margin": ["3", "1"]}, []),
        ({"y_margin": ["", "1"], "y_set": ["a", ""]}, ["y_margin"]),
        ({"y_low_2": ["", "1"], "y_high_3": ["", "2"]}, []),
        ({"y_low": ["1", "1"], "y_high": ["2", "2"]}, []),  # of the user's own
        ({"y_low": ["", "1"], "y_high": ["2", ""]}, []),
        ({"y_set": ["", "a"], "margin": ["", "1"], "x_margin": ["", "2"], "y_margins": ["", "3"]}, []),
    ],
)
def test_columns_that_an_earlier_run_appended_are_found(columns, expected):
    assert (
        find_appended(pd.DataFrame({"x": ["1", "2"], "y": ["a", ""], **columns}), "y", np.array([False, True]))
        == expected
    )


def intervals(low, high, y):
    """A table with such ends and numbers, of which the last two are not known."""
    empty = np.arange(len(y)) >= len(y) - 2
    return find_appended(pd.DataFrame({"y_low_2": low, "y_high_2": high, "y": y}), "y", empty)


def test_intervals_of_equal_width_around_most_given_numbers_are_those_of_an_earlier_run():
    y = np.round(np.random.default_rng(0).normal(size=30), 2)
    y[:9] += 7  # corrected by the user, to the worse of the model
    predicted = np.where(np.arange(30) < 9, y - 7, y)
    low, high = np.round(predicted - 0.333, 2), np.round(predicted + 0.333, 2)
    ours = ["y_low_2", "y_high_2"]
    for write in (lambda v: v, lambda v: [f"{x:.2f}" for x in v], lambda v: [f"{x:.2f}".replace(".", ",") for x in v]):
        assert intervals(write(low), write(high), write(y)) == ours
    assert intervals([f"{1e9 * x:.2e}" for x in low], [f"{1e9 * x:.2e}" for x in high], [f"{1e9 * x:.2e}" for x in y])
    assert intervals(low, high, [*map(str, y[:-2]), "?", "-999"]) == ours


def test_ends_that_a_user_gave_are_learned_from():
    rng = np.random.default_rng(0)
    y = np.round(rng.normal(size=30), 2)
    assert intervals(y - 1, y + np.round(1 + rng.random(30), 2), y) == []  # the widths differ
    assert intervals(y + 1, y + 2, y) == []  # the numbers are elsewhere
    assert intervals([*map(str, y - 1)], ["none", *map(str, y[1:] + 1)], y) == []

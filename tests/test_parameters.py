from dataclasses import dataclass

import numpy as np
import pytest

from kernelweave.parameters import (
    AT_LEAST_ONE,
    BOOLEAN,
    CALLBACK,
    COUNT,
    FINITE,
    JOBS,
    NON_NEGATIVE,
    NONE,
    POSITIVE,
    READ_LATER,
    SHARE,
    SHARE_OF_ROWS,
    VERBOSE,
    WHOLE,
    Constraint,
    check_parameters,
    one_of,
    read_options,
)

NAN = float("nan")
ALLOWED = [
    (POSITIVE, [1, 0.5, np.float32(2), np.int64(3)], [0, -1, NAN, float("inf"), True, "1", None, 10**400]),
    (NON_NEGATIVE, [0, 0.0, 2], [-1, NAN, float("inf"), True, "0", None, 10**400]),
    (AT_LEAST_ONE, [1, 1.5, float("inf")], [0.9, NAN, "1", None, True, 10**400]),
    (SHARE, [0.5, np.float64(0.1)], [0, 1, NAN, "0.5", None, 10**400]),
    (SHARE_OF_ROWS, [0.5, 1.0, np.float64(0.1)], [0.0, 1, 1.5, NAN, None]),
    (FINITE, [-1, 0.5], [NAN, float("inf"), True, "1", 10**400]),
    (COUNT, [1, np.int32(7)], [0, -1, 1.0, True, "1", None]),
    (WHOLE, [0, 1, np.int32(7)], [-1, 1.0, True, "1", None]),
    (BOOLEAN, [True, np.bool_(False)], [0, 1, None, "True"]),
    (CALLBACK, [None, print], [1, "print"]),
    (VERBOSE, [0, 1, True, 2], [None, 1.0, "1"]),
    (JOBS, [None, 1, -1], [0, 1.0, "all"]),
    (one_of("a", "b"), ["a", np.str_("b")], [None, "c", 1, ["a"], np.array(["a", "b"])]),
    (one_of("a", None), ["a", None], ["None", 0, False]),
    (NONE | POSITIVE | one_of("auto"), [None, 3, "auto"], [0, "none"]),
    (READ_LATER, [object()], []),
]


@pytest.mark.parametrize("constraint, right, wrong", ALLOWED, ids=[constraint.expected for constraint, _, _ in ALLOWED])
def test_a_constraint_allows_what_it_says(constraint, right, wrong):
    assert all(constraint.holds(value) for value in right)
    assert not any(constraint.holds(value) for value in wrong)


@pytest.mark.parametrize("value", [list(range(100_000)), "x" * 100_000, {"a": ["b"] * 9_999}, "two\nlines"])
def test_a_wrong_value_is_shown_on_one_short_line(value):
    with pytest.raises(ValueError, match=r"^Model got n=.*; expected a whole number, 1 or more\.$") as refused:
        check_parameters("Model", {"n": value}, {"n": COUNT})
    assert len(str(refused.value)) < 300


def test_alternatives_are_one_list_of_words():
    assert (one_of(None, "auto") | COUNT).expected == 'None, "auto" or a whole number, 1 or more'
    assert one_of("a", "b", None).expected == '"a", "b" or None'
    assert one_of("a").expected == '"a"'
    assert (NONE | POSITIVE).expected == "None or a positive finite number"
    assert (COUNT | one_of("auto")).expected == 'a whole number, 1 or more, or "auto"'


def test_the_first_wrong_parameter_is_named_with_what_came_and_what_was_expected():
    constraints = {"C": POSITIVE, "loss": one_of("hinge"), "never": Constraint(lambda value: False, ("nothing",))}
    with pytest.raises(ValueError, match=r'^Model got loss=3; expected "hinge"\.$'):
        check_parameters("Model", {"never": 0, "C": 1.0, "loss": 3}, constraints)


def test_options_take_the_parameters_that_they_name_and_what_is_given_beside():
    @dataclass(frozen=True)
    class Options:
        owner: str
        tol: float
        max_iter: int = 7

    options = read_options(Options, {"tol": 0.1, "kernels": None}, owner="Model")
    assert options == Options("Model", 0.1, 7)
    assert read_options(Options, {"tol": 0.1, "max_iter": 3}, owner="Model", tol=0.5) == Options("Model", 0.5, 3)

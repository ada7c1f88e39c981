"""Texts of any length cost time in proportion to it: patterns that take characters back would cost its square.

For 20,000 characters the square is seconds, and the proportion less than a millisecond: the bound lies far from both.
"""

import importlib
import pkgutil
import re
import time

import numpy as np
import pandas as pd
import pytest

import kernelweave
from kernelweave.labeling import cells, columns, number_forms, numbers

SHORT, LONG = 5_000, 20_000
MIN_SECONDS, MAX_RATIO = 0.02, 8.0  # a proportion is 4, a square 16
HOSTILE = {
    "digits": lambda n: "1" * n + "x",
    "a whole number": lambda n: "1" * n,
    "zeros": lambda n: "0" * n + "9007199254740993",
    "decimals": lambda n: "1." + "1" * n + "x",
    "exponents": lambda n: "1e" * n,
    "an exponent": lambda n: "1e" + "1" * n + "x",
    "thousands": lambda n: "1" + ".234" * n + "x",
    "commas": lambda n: "1," * n,
    "dots": lambda n: "." * n,
    "signs": lambda n: "-" * n + "1",
    "blanks": lambda n: "<" + " " * n + "$" + " \t" * n + "x",
    "blanks before a unit": lambda n: "5" + " " * n + "\x01",
    "years": lambda n: "2020" * n,
    "identifiers": lambda n: "id_" * n + "x",
    "letters": lambda n: "a" * n + "Ix",
    "names of pandas": lambda n: "unnamed: " * n + "1" * n + "x",
    "quotes": lambda n: '"' * n + "x",
    "brackets": lambda n: "<a" * n + "[" * n,
}
READERS = {
    "as_numbers": lambda text: numbers.as_numbers([text] * 3),
    "find_thousands": lambda text: numbers.find_thousands([text] * 3),
    "find_number_format": lambda text: numbers.find_number_format([text] * 3),
    "looks_like_formula": lambda text: numbers.looks_like_formula("=" + text),
    "find_kind": lambda text: cells.find_kind([text, text + "1", text + "2"], np.ones(3, dtype=np.intp)),
    "describe_signs": lambda text: number_forms.describe_signs([text], np.ones(1, dtype=np.intp)),
    "plan_columns": lambda text: columns.plan_columns(
        pd.DataFrame({text: [text, text + "1", text + "2", text] * 3, "y": list("ab  ") * 3}), target="y"
    ),
}


def measure(call):
    """The shortest of three times: others may use the processor, too."""
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
        if seconds[-1] < MIN_SECONDS:
            break
    return min(seconds)


def check_growth(call, make):
    long = measure(lambda: call(make(LONG)))
    if long > MIN_SECONDS:
        assert long < MAX_RATIO * max(MIN_SECONDS, measure(lambda: call(make(SHORT))))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("make", HOSTILE.values(), ids=HOSTILE)
def test_a_cell_of_any_length_is_read_in_proportion_to_it(make):
    for read in READERS.values():
        check_growth(read, make)


def list_patterns():
    """All patterns that modules of the package hold under a name."""
    found = {}
    for module in pkgutil.walk_packages(kernelweave.__path__, "kernelweave."):
        if module.name.endswith("__main__"):
            continue
        for name, value in vars(importlib.import_module(module.name)).items():
            if isinstance(value, re.Pattern):
                found[f"{module.name}.{name}"] = value
    return found


def test_every_pattern_reads_a_text_in_proportion_to_its_length():
    patterns = list_patterns()
    assert {"kernelweave.labeling.numbers.NUMBER", "kernelweave.labeling.number_forms.SIGNED"} <= patterns.keys()
    for pattern in patterns.values():
        for make in HOSTILE.values():
            as_text = make if isinstance(pattern.pattern, str) else lambda n, make=make: make(n).encode()
            check_growth(pattern.fullmatch, as_text)


def test_a_number_of_many_digits_is_none_or_a_number_and_not_an_error():
    frame = pd.DataFrame({"x": ["0" * 5000 + "9007199254740993", "1", "2", "3"] * 3, "y": list("ab  ") * 3})
    assert [column.name for column in columns.plan_columns(frame, target="y").columns] == ["x", "y"]
    assert numbers.as_numbers(["1" * 50_000]) is None  # beyond a double
    assert numbers.as_numbers(["0." + "1" * 50_000]) == pytest.approx([1 / 9])


def test_numbers_are_written_with_no_more_decimals_than_doubles_have():
    assert numbers.find_number_format(["0." + "1" * 1_000_000]) == ".340f"

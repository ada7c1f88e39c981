"""Every rule for columns by example and counter-example."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from kernelweave.labeling.columns import MAX_TEXTS, plan_columns
from kernelweave.labeling.encoder import make_encoder

N = 60
RNG = np.random.default_rng(0)
SHUFFLED = RNG.permutation(N)
NOISE = RNG.normal(size=N)
SIM = 89490200000000000000


def texts(values):
    return [str(value) for value in values]


def described(cells, name="x", **options):
    return plan_columns(pd.DataFrame({name: list(cells), "y": ""}), target="y", **options).columns[0]


def cycle(*cells, n=N):
    return [cells[i % len(cells)] for i in range(n)]


KINDS = {
    "decimals": (texts(NOISE), "numeric", "numbers"),
    "sorted decimals are no counter": (texts(np.sort(NOISE)), "numeric", "numbers"),
    "a regular grid of decimals": (texts(np.arange(N) / 8 + 0.0625), "numeric", "numbers"),
    "exponents, signs and blanks": (cycle("1e3", " -2.5", "+4 "), "numeric", "numbers"),
    "zeros and ones": (cycle("0", "1", "1"), "numeric", "numbers"),
    "distinct whole measurements": (texts(1000 + 7 * SHUFFLED**2), "numeric", "numbers"),
    "sorted whole measurements": (texts(1000 + 7 * np.arange(N) ** 2), "numeric", "numbers"),
    "falling whole measurements": (texts(9000 - 2 * np.arange(N) ** 2), "numeric", "numbers"),
    "ordered whole numbers that repeat": (texts(np.arange(N) // 3), "numeric", "numbers"),
    "missing markers": (cycle("1.5", "NA", "n/a", "NaN", "null", "None", "?", "-", "", "2"), "numeric", "80 % missing"),
    "infinities are missing": (cycle("1", "2", "inf", "-inf"), "numeric", "50 % missing"),
    "decimal comma": (cycle("1,5", "2,25", "3"), "numeric", "numbers"),
    "decimal comma after zero": (cycle("0,125", "2,250", "3,500"), "numeric", "numbers"),
    "thousands or decimals": (cycle("1,234", "2,345", "3,456"), "categorical", "3 distinct"),
    "comma and dot": (cycle("1,5", "2.5"), "categorical", "2 distinct"),
    "underscores are no digits": (cycle("1_000", "2_000"), "categorical", "2 distinct"),
    "true and false": (cycle("True", "false", "TRUE"), "boolean", "two values"),
    "yes and no with gaps": (cycle("yes", "no", ""), "boolean", "33 % missing"),
    "y and n": (cycle("y", "n"), "boolean", "two values"),
    "yes and false are not a pair": (cycle("yes", "false"), "categorical", "2 distinct"),
    "ISO dates": (cycle("2024-01-31", "2023-02-28"), "date", "dates"),
    "ISO times": (cycle("2024-01-31T10:00:00Z", "2023-02-28 11:00"), "date", "dates"),
    "the end of time": (cycle("9999-12-31", "2024-01-31", "0001-01-01"), "date", "dates"),
    "dates with dots": (cycle("01.02.2024", "05.06.2023 "), "date", "dates"),
    "dates with names": (cycle("3 May 2024", "12 Apr 2023"), "date", "dates"),
    "day first": (cycle("31/01/2024", "01/02/2024"), "date", "dates"),
    "month first": (cycle("01/31/2024", "01/02/2024"), "date", "dates"),
    "day or month first": (cycle("01/02/2024", "03/04/2024"), "left out", "day and month cannot be told apart"),
    "not all are dates": (cycle("2024-01-31", "2024-02-31"), "categorical", "2 distinct"),
    "levels": (cycle("red", "green", "blue"), "categorical", "3 distinct"),
    "words that pandas takes for dates": (cycle("now", "today"), "categorical", "2 distinct"),
    "long answers, few of them": (cycle("I agree with all of this " * 4, "I do not agree " * 6), "categorical", "2"),
    "one value or none": (cycle("x", ""), "categorical", "one value, or missing"),
    "one number or none": (cycle("7", "", ""), "categorical", "one value, or missing"),
    "padded codes": (cycle("01067", "50667", "10115"), "categorical", "3 distinct"),
    "padded, but of several widths": (cycle("007", "12", "1234"), "numeric", "numbers"),
    "padded codes, one a row": ([f"{v:05}" for v in 100 + 7 * SHUFFLED], "left out", "ID-like: a different code"),
    "row numbers": (texts(range(N)), "left out", "ID-like: whole numbers of a regular range"),
    "row numbers with gaps in both senses": (["", *texts(range(3 * N, 6, -3))[1:N]], "left out", "ID-like"),
    "shuffled row numbers": (texts(SHUFFLED + 1), "left out", "ID-like: whole numbers of a regular range"),
    "shuffled tens": (texts(10 * SHUFFLED), "left out", "ID-like: whole numbers of a regular range"),
    "codes": ([f"A-{v:x}" for v in 1000 + 7 * SHUFFLED], "left out", "ID-like: a different code in each row"),
    "names": ([f"Person Number {v}" for v in SHUFFLED], "text", "free text (60 distinct values)"),
    "repeated remarks": (cycle(*(f"remark no {v}" for v in range(30))), "text", "free text (30 distinct values)"),
    "many levels": (cycle(*(f"L{v}" for v in range(30))), "text", "too many distinct texts (30 distinct values)"),
    "long text": (cycle(*(f"{v} " + "word " * 20 for v in range(12))), "text", "free text"),
    "text of no letters": (cycle(*("! " * v + "?" * (30 - v) for v in range(30))), "text", "free text"),
    "all levels rare": (cycle(*(f"L{v}" for v in range(20)), n=38), "left out", "no value occurs in 3 rows"),
    "one bad cell": (["oops", *texts(NOISE[1:])], "numeric", "numbers, 1.7 % missing"),
    "a few errors of a spreadsheet": (["#N/A", "#DIV/0!", *texts(NOISE[2:])], "numeric", "numbers, 3.3 % missing"),
    "three decimals and a bad cell": (["x", *(f"{v:.3f}" for v in 5 + NOISE[1:])], "numeric", "numbers, 1.7 % missing"),
    "many bad cells": (["ab ba", "b c", *["x y"] * 4, *texts(NOISE[6:])], "text", "free text (57 distinct"),
    "many brackets": (
        [f"({v})" if v % 3 == 0 else f"{v}.5" for v in SHUFFLED],
        "left out",
        "numbers in 40 of 60 cells, others such as '(",
    ),
    "many other words": (
        [f"oops{v}" if v % 6 == 0 else f"{v}.5" for v in SHUFFLED],
        "left out",
        "numbers in 50 of 60 cells, others such as 'oops",
    ),
    "numbers with a unit": ([f"{v} mm" for v in SHUFFLED], "numeric", "numbers (in mm)"),
    "numbers with a currency": ([f"€{v + 0.5:,}" for v in 100 * SHUFFLED], "numeric", "numbers (in €, ',' between"),
    "numbers with a percent sign": ([f"{v}%" for v in SHUFFLED], "numeric", "numbers (in %)"),
    "a unit in some cells": (
        [f"{v}{' mm' * (v % 2)}" for v in SHUFFLED],
        "left out",
        "with a unit in some cells, such as '",
    ),
    "a cell below the limit": (["<0.1", *texts(NOISE[1:])], "numeric", "numbers, 1.7 % missing"),
    "many below the limit": (
        ["<0.1" if k % 5 == 0 else str(v) for k, v in enumerate(NOISE)],
        "left out",
        "comparison sign, such as '<0.1': write the number",
    ),
    "thousands, or decimals": (
        [f"{v:,}" for v in 1000 + 7 * SHUFFLED],
        "left out",
        "numbers whose comma may separate thousands or decimals, such as '1,",
    ),
    "thousands": ([f"{v:,}" for v in 500 * SHUFFLED**2], "numeric", "numbers (',' between thousands)"),
    "doses": (cycle("10 mg", "20 mg"), "numeric", "numbers (in mg)"),
    "times of day": (cycle("09:30", "23:59", "00:01"), "time of day", "times of day"),
    "durations": (cycle("9:30", "36:15", "2 h 5 min"), "duration", "durations"),
    "SIM cards": (
        texts(SIM + int(v) for v in RNG.integers(0, 10**6, N)),
        "left out",
        "more digits than a double can hold",
    ),
    "SIM cards, two rows each": (texts(SIM + int(v) // 2 for v in SHUFFLED), "left out", "more digits than a double"),
    "codes above 2^53": (
        texts(2**53 + 7 * int(v) ** 2 for v in SHUFFLED),
        "left out",
        "more digits than a double can hold",
    ),
    "codes that are one double": (
        texts(10**30 + int(v) for v in SHUFFLED),
        "left out",
        "more digits than a double can hold",
    ),
    "one such code": (cycle(str(SIM + 1)), "left out", "constant"),
    "large whole measurements": (texts(int(v) ** 2 * 10**17 for v in SHUFFLED), "numeric", "numbers"),
    "one absurd cell": ([str(10**20 + 1), *texts(SHUFFLED[1:] ** 2)], "numeric", "numbers"),
    "large decimals": (texts(1e20 * NOISE), "numeric", "numbers"),
    "far from zero, yet told apart": ([f"{1e9 + v / 1e5:.8f}" for v in NOISE], "numeric", "numbers"),
    "far from zero, and rounded": (
        [f"{1e17 + v:.1f}" for v in 8 * NOISE],
        "left out",
        "rounding of numbers near 1e+17",
    ),
    "sums of tenths": (
        cycle("0.3", "0.30000000000000004"),
        "left out",
        "constant up to the rounding of numbers near 0.3",
    ),
    "constant": (cycle("5"), "left out", "constant"),
    "constant but for a gap": (["", *cycle("5")], "left out", "constant"),
    "only markers": (cycle("", "NA", "?"), "left out", "no value"),
    "lists": ([[1]] * N, "left out", "lists"),
}


@pytest.mark.parametrize("cells, kind, reason", KINDS.values(), ids=KINDS.keys())
@pytest.mark.parametrize("dtype", ["object", None])
def test_a_column_is_what_its_cells_say(cells, kind, reason, dtype):
    frame = pd.DataFrame({"x": pd.Series(cells, dtype=dtype), "y": ""})
    column = plan_columns(frame, target="y").columns[0]
    assert (column.kind, reason in column.reason) == (kind, True), column
    if kind != "left out":
        encoded = make_encoder(plan_columns(frame, target="y")).fit_transform(frame)
        assert encoded.dtype == np.float64
        assert np.isfinite(encoded).all()


def test_of_very_many_columns_of_text_the_first_by_name_are_used_in_any_order_of_columns():
    remarks = [f"remark no {v}" for v in SHUFFLED]
    frame = pd.DataFrame({f"t{k:02}": remarks for k in range(MAX_TEXTS + 2)} | {"y": ""})
    for names in (frame.columns, frame.columns[::-1], RNG.permutation(frame.columns)):
        plan = plan_columns(frame[names], target="y")
        assert {column.name for column in plan.used} == {f"t{k:02}" for k in range(MAX_TEXTS)}
        last = next(column for column in plan.columns if column.name == f"t{MAX_TEXTS}")
        assert last.reason.endswith(f": only {MAX_TEXTS} columns of text are tested, the first by name")


@pytest.mark.parametrize("name, kind", [("id", "left out"), ("patient_id", "left out"), ("userId", "left out"),
                                        ("Index", "left out"), ("price", "numeric"), ("grid", "numeric")])  # fmt: skip
def test_a_name_tells_scattered_numbers_from_identifiers(name, kind):
    cells = texts(1000 + 7 * SHUFFLED**2)
    assert described(cells, name).kind == kind
    assert described(cells, name, keep=[name]).kind == "numeric"


@pytest.mark.parametrize("dtype, kind", [("int64", "left out"), ("uint64", "left out"), ("Int64", "left out"),
                                         ("float64", "numeric")])  # fmt: skip
def test_typed_codes_are_known_while_their_digits_are(dtype, kind):
    cells = pd.Series([2**60 + int(v) for v in RNG.integers(0, 10**6, N)]).astype(dtype)
    if dtype == "Int64":
        cells[3] = pd.NA
    frame = pd.DataFrame({"x": cells, "y": ""})
    column = plan_columns(frame, target="y").columns[0]
    assert column.kind == kind, column
    assert "more digits" in column.reason or kind == "numeric"
    kept = plan_columns(frame, target="y", keep=["x"])
    assert_allclose(make_encoder(kept).fit_transform(frame).std(axis=0), 1)


def test_named_columns_are_left_out_and_the_target_is_not_read():
    frame = pd.DataFrame({"a": texts(NOISE), "b": texts(NOISE), "c": texts(NOISE), "y": [[1]] * N, "d": texts(NOISE)})
    plan = plan_columns(frame, target="y", id_columns=["a"], ignore=["b"], group="c")
    assert [column.name for column in plan.used] == ["d"]
    assert [column.reason for column in plan.left_out] == [
        "named as an identifier",
        "ignored on request",
        "the groups of cross-validation",
        "the target",
    ]


@pytest.mark.parametrize("options, message", [
    ({"target": "z"}, "no column 'z'; it has 'x', 'y'"),
    ({"target": "y", "ignore": ["w"]}, "no column 'w'"),
    ({"target": "y", "scale": "rows"}, "scale must be one of auto"),
    ({"target": "y", "sources": {"s": ["gene_*"]}}, "names 'gene_\\*', which the table does not have"),
    ({"target": "y", "sources": {"s": ["x"], "t": ["*"]}}, "is in two sources, 's' and 't'"),
])  # fmt: skip
def test_wrong_names_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        plan_columns(pd.DataFrame({"x": texts(NOISE), "y": ""}), **options)


def test_repeated_names_and_tables_without_a_use_are_refused():
    with pytest.raises(ValueError, match="more than one column 'x'"):
        plan_columns(pd.DataFrame([["1", "2", "3"]], columns=["x", "x", "y"]), target="y")
    with pytest.raises(ValueError, match=r"No column is left to learn from .*'x': constant"):
        make_encoder(plan_columns(pd.DataFrame({"x": cycle("1"), "y": ""}), target="y"))


def wide_frame(n_columns, factors=1.0, name="p{}", seed=0):
    values = np.random.default_rng(seed).uniform(size=(N, n_columns)) * factors
    return pd.DataFrame({name.format(j): texts(values[:, j]) for j in range(n_columns)}).assign(y="")


def blocks(frame, **options):
    return [column.block for column in plan_columns(frame, target="y", **options).used]


def test_columns_of_one_unit_make_a_block():
    assert blocks(wide_frame(12)) == ["p*"] * 12
    assert blocks(wide_frame(12, name="{}.5")) == ["*"] * 12
    assert blocks(wide_frame(9)) == [""] * 9  # too few
    assert blocks(wide_frame(12, 10.0 ** np.arange(12))) == [""] * 12  # of many units
    assert blocks(wide_frame(12, scale_of_last := np.r_[np.ones(11), 1e4])) == ["p*"] * 11 + [""]
    assert blocks(wide_frame(12, scale_of_last), scale="block") == ["all numbers"] * 12
    assert blocks(wide_frame(12), scale="column") == blocks(wide_frame(12), scale="none") == [""] * 12
    unlike = wide_frame(12).rename(columns={f"p{j}": "abcdefghijkl"[j] for j in range(12)})
    assert blocks(unlike) == ["numbers"] * 12


def test_a_column_far_from_the_others_is_not_of_their_block():
    frame = wide_frame(12)
    away = {"p3": texts(1e9 + frame["p3"].astype(float)), "p5": texts(-1e3 - frame["p5"].astype(float))}
    expected = ["p*"] * 12
    expected[3] = expected[5] = ""
    assert blocks(frame.assign(**away)) == expected
    together = frame.assign(**{f"p{j}": texts(1e9 + frame[f"p{j}"].astype(float)) for j in range(12)})
    assert blocks(together) == ["p*"] * 12

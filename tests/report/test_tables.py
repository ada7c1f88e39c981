import math
import random
from statistics import fmean, stdev

import pytest
from checks.tiny_paper import PAPER

from kernelweave.report.tables import compare, join, judge, reason, standard_error

ITEM = PAPER.describe()["items"][0]
ERROR = ITEM["measures"][0]


def record(value=None, row="a", method="one", trial=0, **more):
    values = {} if value is None else {"values": {"error": value}}
    named = {"paper": "tiny", "item": "table 1", "row": row, "method": method, "trial": trial, "fast": False}
    return named | {"data": "original"} | values | more


def test_mean_deviation_and_difference():
    values = [11.0, 12.5, 13.0]
    cell = compare(ITEM, ERROR, "a", "one", [record(v, trial=k) for k, v in enumerate(values)])
    assert (cell.mean, cell.sd, cell.trials) == (fmean(values), stdev(values), 3)
    assert (cell.printed, cell.printed_sd) == (12.0, 0.1)
    assert cell.difference == pytest.approx(fmean(values) - 12.0)
    assert cell.verdict == "equal"


@pytest.mark.parametrize("value, verdict", [(11.5, "better"), (12.04, "equal"), (11.96, "equal"), (12.5, "worse")])
def test_the_verdict_of_one_trial_rests_on_the_printed_deviation_and_digits(value, verdict):
    assert compare(ITEM, ERROR, "a", "one", [record(value)]).verdict == verdict  # 0.1 / sqrt(4) = 0.05


def test_the_standard_error_is_that_of_a_difference_of_means():
    rng = random.Random(0)
    differences = []
    for _ in range(4000):
        ours, theirs = ([rng.gauss(0, sd) for _ in range(n)] for sd, n in ((3.0, 9), (4.0, 16)))
        differences.append(fmean(ours) - fmean(theirs))
    assert stdev(differences) == pytest.approx(standard_error(3.0, 9, 4.0, 16), rel=0.05)
    assert standard_error(3.0, 9, 4.0, None) == 1.0
    assert standard_error(None, 1, None, 30) == 0.0


def test_the_verdict_is_that_of_the_mirror_image():
    for difference in (-2.0, -0.5, 0.0, 0.5, 2.0):
        assert judge(difference, 1.0, "lower") == judge(-difference, 1.0, "higher")
    assert judge(1.0, 1.0, "lower") == "equal"
    assert judge(math.nextafter(0.1 + 0.2, 1) - 0.2, 0.1, "lower") == "equal"  # rounding is no difference


def test_the_most_special_reason_is_given():
    why = [["*", "*", "any"], ["*", "two", "method"], ["a", "*", "row"], ["a", "two", "both"]]
    assert reason(why, "a", "two") == "both"
    assert reason(why, "b", "two") == "method"
    assert reason(why, "a", "one") == "row"
    assert reason(why, "b", "one") == "any"
    assert reason([], "b", "one") == ""


def test_only_worse_cells_have_a_reason():
    assert compare(ITEM, ERROR, "a", "two", [record(50.0, method="two")]).why == "It is only noise."
    assert compare(ITEM, ERROR, "a", "two", [record(1.0, method="two")]).why == ""


def test_what_is_not_judged():
    time = ITEM["measures"][1]
    judged = compare(ITEM, ERROR, "a", "one", [record(50.0)], generated=True)
    assert (judged.verdict, judged.difference) == ("", 38.0)
    assert compare(ITEM, time, "a", "one", [record(50.0)]).status == "none"
    own = compare(ITEM, ERROR, "b", "two", [record(50.0, row="b", method="two")])
    assert (own.status, own.printed, own.verdict) == ("done", None, "")


def test_missing_failed_and_absent_cells_are_told_apart():
    records = [record(10.0), record(None, method="two", error="ValueError: no"), record(3.0, method="m:C")]
    table = join(ITEM, records)
    status = {(row, method): cell.status for (row, method, name), cell in table.cells.items() if name == "error"}
    assert status == {
        ("a", "one"): "done",
        ("a", "two"): "failed",
        ("a", "m:C"): "done",
        ("b", "one"): "missing",
        ("b", "two"): "missing",
    }
    assert table.n_missing == 3
    assert table.methods == ("one", "two", "m:C")
    assert table.errors == ("a, two, trial 0: ValueError: no",)
    assert (table.count("better"), table.count("worse")) == (1, 0)


def test_a_trial_that_failed_leaves_the_others():
    table = join(ITEM, [record(10.0), record(None, trial=1, error="E"), record(14.0, trial=2)])
    assert table.cells["a", "one", "error"].trials == 2
    assert table.n_missing == 3


def test_trials_are_counted_against_those_of_the_item():
    records = [record(10.0, trial=k) for k in range(3)] + [record(10.0, method="two")]
    table = join(ITEM, records)
    assert (table.n_trials, table.partial, table.n_missing) == (3, [1], 2)
    assert table.n_done == {("a", "one"): 3, ("a", "two"): 1, ("b", "one"): 0, ("b", "two"): 0}
    assert not table.lacking(table.cells["a", "one", "error"])
    assert table.lacking(table.cells["a", "two", "error"])
    fast = join(ITEM, [record(10.0, fast=True)])
    assert (fast.n_trials, fast.partial) == (1, [])


def test_fast_generated_and_warned_are_seen():
    table = join(
        ITEM, [record(1.0, fast=True, data="generated", warnings=["w", "w2"]), record(2.0, trial=1, warnings=["w"])]
    )
    assert (table.fast, table.generated, table.warnings) == (True, True, ("w", "w2"))

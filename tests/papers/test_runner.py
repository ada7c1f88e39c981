import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from checks.tiny_paper import PAPER, TABLE

from kernelweave.papers.runner import (
    append_record,
    compute,
    current_records,
    execute,
    make_plain,
    plan,
    read_records,
)

N_CELLS = 2 * 2 * 3 + 2
ROOT = Path(__file__).parents[2]


def with_table(**changes):
    return replace(PAPER, items=(replace(TABLE, **changes), *PAPER.items[1:]))


def timeless(records):
    """The records without what a clock or a calendar says, in one order."""
    kept = [{k: v for k, v in record.items() if k not in ("seconds", "date")} for record in records]
    return sorted(kept, key=lambda record: json.dumps(record, sort_keys=True))


def test_every_cell_is_one_line(tmp_path):
    seen = []
    records = execute(plan([PAPER]), tmp_path, watch=seen.append)
    lines = (tmp_path / "tiny.jsonl").read_text().splitlines()
    assert len(lines) == len(records) == len(seen) == N_CELLS
    assert timeless(map(json.loads, lines)) == timeless(records)
    assert [state.n_done for state in seen] == list(range(1, N_CELLS + 1))
    assert seen[-1].remaining == 0
    assert all(state.remaining >= 0 for state in seen)
    assert records[0]["values"]["none"] is None
    assert records[0]["data"] == "original"
    names = {"paper", "item", "row", "method", "trial", "fast", "definition", "data", "values", "seconds"}
    assert records[0].keys() == names | {"date", "versions"}


def test_a_second_run_computes_nothing(tmp_path):
    first = execute(plan([PAPER]), tmp_path)
    seen = []
    again = execute(plan([PAPER]), tmp_path, watch=seen.append)
    assert again == first
    assert seen == []


def test_the_number_of_jobs_has_no_influence(tmp_path):
    alone, together = (execute(plan([PAPER]), tmp_path / str(jobs), n_jobs=jobs) for jobs in (1, 2))
    assert [timeless([a]) for a in alone] == [timeless([b]) for b in together]


def test_more_trials_keep_the_records_of_fewer(tmp_path):
    few = execute(plan([PAPER], trials=1), tmp_path)
    seen = []
    more = execute(plan([PAPER], trials=2), tmp_path, watch=seen.append)
    assert len(seen) == len(more) - len(few) == len(few)
    assert timeless(few) == timeless([record for record in more if record["trial"] == 0])


def test_a_plan_can_be_one_item():
    assert {task.cell.item for task in plan([PAPER], kind="figure", number=1)} == {"figure 1"}
    assert plan([PAPER], kind="table", number=7) == []
    assert {task.cell.trial for task in plan([PAPER], fast=True)} == {0}


def test_a_torn_last_line_is_ignored_and_cut_off(tmp_path):
    file = tmp_path / "tiny.jsonl"
    whole = execute(plan([PAPER]), tmp_path)
    raw = file.read_bytes()
    length = len(raw) - raw[:-1].rfind(b"\n") - 1  # of the last line; cut off its newline, a part, all but one byte
    for cut in (1, 2, 50, length - 1):
        file.write_bytes(raw[:-cut])
        assert len(read_records(file)) == N_CELLS - 1
        again = execute(plan([PAPER]), tmp_path)
        assert timeless(again) == timeless(whole)
        assert timeless(read_records(file)) == timeless(whole)
        assert all(json.loads(line) for line in file.read_bytes().splitlines())


def test_lines_that_are_no_records_do_no_harm(tmp_path):
    file = tmp_path / "tiny.jsonl"
    file.write_bytes(b'{"paper": \n[1]\n{}\n\xff\xfe\n\n')
    assert read_records(file) == []
    assert len(execute(plan([PAPER]), tmp_path)) == len(read_records(file)) == N_CELLS


def test_names_of_files_that_are_not_unicode_are_kept(tmp_path):
    record = execute(plan([PAPER], kind="figure", number=1), tmp_path)[0] | {"error": "no file 'caf\udce9 ☃'"}
    append_record(tmp_path / "other.jsonl", record)
    assert read_records(tmp_path / "other.jsonl") == [record]


def test_of_two_records_of_a_cell_the_last_counts(tmp_path):
    record = execute(plan([PAPER]), tmp_path)[0]
    append_record(tmp_path / "tiny.jsonl", record | {"values": {"error": 77.0}})
    assert execute(plan([PAPER]), tmp_path)[0]["values"] == {"error": 77.0}
    records, _ = current_records([PAPER], tmp_path)
    assert len(records) == N_CELLS
    assert sum(r["values"].get("error") == 77.0 for r in records) == 1


def test_other_settings_are_computed_anew_and_left_out_of_the_report(tmp_path):
    execute(plan([PAPER]), tmp_path)
    other, seen = with_table(settings={"mean": 11.0}), []
    execute(plan([other]), tmp_path, watch=seen.append)
    assert [state.record["item"] for state in seen] == ["table 1"] * 12
    records, n_others = current_records([other], tmp_path)
    assert (len(records), n_others) == (N_CELLS, 12)


def test_records_of_a_fast_run_stand_aside_for_those_of_a_whole_run(tmp_path):
    execute(plan([PAPER], kind="figure", number=1), tmp_path)
    execute(plan([PAPER], fast=True), tmp_path)
    records, n_others = current_records([PAPER], tmp_path)
    assert {(r["item"], r["fast"]) for r in records} == {("figure 1", False), ("table 1", True)}
    assert n_others == 0


def test_a_cell_that_fails_is_a_record_and_is_tried_again(tmp_path):
    paper = with_table(methods=("one", "broken"), trials=1)
    records = execute(plan([paper]), tmp_path)
    failed = [record for record in records if "error" in record]
    assert [record["error"] for record in failed] == ["ZeroDivisionError: this method always fails"] * 2
    assert len(records) == 6
    seen = []
    execute(plan([paper]), tmp_path, watch=seen.append)
    assert [state.record["method"] for state in seen] == ["broken"] * 2
    mended = with_table(methods=("one", "broken"), trials=1, run=lambda cell, fast: {"error": 1.0})
    assert not any("error" in record for record in execute(plan([mended]), tmp_path))
    assert not any("error" in record for record in current_records([mended], tmp_path)[0])


def test_warnings_of_a_cell_are_kept_once():
    def noisy(cell, fast):
        for _ in range(3):
            np.log(np.zeros(1))
        return {"error": 1.0}

    (task, *_) = plan([with_table(run=noisy)])
    assert compute(task)["warnings"] == ["divide by zero encountered in log"]


def test_an_outside_estimator_sees_the_same_splits(tmp_path):
    names = ("sklearn.neighbors:KNeighborsClassifier", "sklearn.tree:DecisionTreeClassifier")
    records = execute(plan([PAPER], outside=names, trials=1), tmp_path)
    assert [r["method"] for r in records if r["item"] == "table 1"] == ["one", "two", *names] * 2
    assert all(0 <= r["values"]["error"] <= 100 for r in records if ":" in r["method"])


def test_an_interrupt_leaves_the_finished_lines(tmp_path):
    def stop(state):
        if state.n_done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        execute(plan([PAPER]), tmp_path, watch=stop)
    assert len(read_records(tmp_path / "tiny.jsonl")) == 3


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_run_that_is_killed_at_random_ends_as_an_undisturbed_one(tmp_path, jobs):
    path = os.pathsep.join([str(ROOT / "tests"), str(ROOT / "src")])
    environment = os.environ | {"PYTHONPATH": path, "TINY_PAUSE": "0.05"}
    command = [sys.executable, "-m", "checks.tiny_paper", str(tmp_path / "killed"), str(jobs)]
    rng, file = random.Random(jobs), tmp_path / "killed" / "tiny.jsonl"
    for goal in (2, 7):
        process = subprocess.Popen(command, env=environment, start_new_session=True)
        while process.poll() is None and len(read_records(file)) < goal:
            time.sleep(0.005)
        time.sleep(rng.uniform(0, 0.06))
        os.killpg(process.pid, signal.SIGKILL)
        assert process.wait() in (-signal.SIGKILL, 0)
    assert goal <= len(read_records(file)) <= N_CELLS
    with file.open("ab") as tail:  # a kill in the middle of a line
        tail.write(b'{"paper": "tiny", "item": "tab')
    subprocess.run(command, env=environment, check=True, timeout=120)
    assert timeless(read_records(file)) == timeless(execute(plan([PAPER]), tmp_path / "calm"))


@pytest.mark.parametrize(
    "value, expected",
    [
        (np.float32(0.5), 0.5),
        (np.array([1, 2]), [1, 2]),
        ({"a": (np.int64(3), float("inf"))}, {"a": [3, None]}),
        ("text", "text"),
        (None, None),
        (True, True),
    ],
)
def test_values_become_plain(value, expected):
    assert make_plain(value) == expected
    json.dumps(make_plain(value), allow_nan=False)

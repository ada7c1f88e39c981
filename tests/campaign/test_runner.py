"""The runner of the campaign: what it says of cases that crash, hang or fail, and where it goes on."""

import json
import sys

import pytest
from campaign import runner
from campaign.runner import Budget, Part, Worker, list_open, read_records, run_campaign
from campaign.table import make_table

# Cases that end in every way; the numbers are those of `run`.
PROGRAM = """
import ctypes, os
from campaign.runner import Part, serve
def run(number):
    if number == 1:
        ctypes.string_at(0)
    if number == 2:
        while True:
            pass
    if number == 3:
        1 / 0
    if number == 4:
        os._exit(7)
    print("this goes nowhere")
    return {"ended": "well", "about": str(number)}
serve(Part("made up", 6, run, 0.3, "nothing"))
"""
PART = Part("made up", 6, None, 0.3, "nothing")


@pytest.fixture(autouse=True)
def program(monkeypatch):
    monkeypatch.setattr(Worker, "command", lambda self: [sys.executable, "-c", PROGRAM])


def test_every_end_is_a_record_and_the_next_run_goes_on(tmp_path, monkeypatch, capsys):
    run_campaign([PART], tmp_path, Budget(60.0, n_cases=4))
    run_campaign([PART], tmp_path, Budget(60.0))
    records = read_records(tmp_path)
    assert [records["made up", number]["ended"] for number in range(6)] == [
        *("well", "crash", "hang", "failed", "crash", "well")
    ]
    assert "Segmentation fault" in records["made up", 1]["defect"]
    assert "in run" in records["made up", 2]["defect"]  # where it was
    assert "more than 0.3 s" in records["made up", 2]["defect"]
    assert "ZeroDivisionError" in records["made up", 3]["defect"]
    assert "ended by itself: 7" in records["made up", 4]["defect"]
    assert list_open(PART, records) == []
    assert "made up:3 ZeroDivisionError: division by zero" in capsys.readouterr().out
    monkeypatch.setattr(runner, "digest_source", lambda: "another")
    assert list_open(PART, records) == [1, 2, 3, 4]  # what failed is tried again once the library has changed
    table = make_table([PART], records)
    assert "| made up: nothing | 6 | 6 | 6 | well 2, crash 2, hang 1, failed 1 | 4 |" in table


def test_a_torn_line_is_cut_off_and_its_case_runs_again(tmp_path):
    whole = json.dumps({"part": "made up", "case": 0, "source": "x", "ended": "well"})
    (tmp_path / "results.jsonl").write_text(f'{whole}\n{{"part": "made up", "case": 5, "sour')
    assert list_open(PART, read_records(tmp_path)) == [1, 2, 3, 4, 5]
    run_campaign([Part("made up", 1, None, 0.3, "")], tmp_path, Budget(60.0))
    run_campaign([Part("made up", 6, None, 0.3, "")], tmp_path, Budget(0.0))
    assert set(read_records(tmp_path)) == {("made up", 0)}

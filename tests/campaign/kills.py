"""Runs that are killed: what they leave is whole, outputs are old or new together, and a second run completes."""

import os
import signal
import subprocess
import sys
import time
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd
from campaign.apart import FILES, Kill, count_calls, hidden, new_folder, run_apart, run_command
from checks.many_files import CUTS, read_files
from checks.tiny_paper import PAPER

from kernelweave import load
from kernelweave.papers.runner import execute, plan, read_records

LEARNER = ("--target", "y", "--learner", "harmonic", "--quiet")
LABEL = ("label", "in.csv", *LEARNER, "-o", "copy.csv", "--model", "m.skops")
OUTPUTS = ("copy.csv", "copy.csv.json", "m.skops")
FOLDER = ("label", "rows", *LEARNER, "-o", "out")
RENAMES = 40  # calls of the process that renames, about
SECONDS = 12.0  # of a run with workers


def run(number):
    """One kill: of a run over a table, over many files, of cells of a paper, or of a run with workers."""
    rng = np.random.default_rng([4, number])
    with new_folder():
        if number % 20 == 19:
            return kill_workers(rng)
        return (kill_label, kill_label, kill_files, kill_papers)[number % 4](rng)


def draw_kill(rng, name, task):
    """A kill anywhere in a run, or while it writes."""
    within = FILES if rng.random() < 0.6 and name != "papers" else ""  # which appends lines
    return Kill(int(rng.integers(1, count(name, task, within) + 1)), within, only="first")


@cache
def count(name, task, within):
    return count_calls(task, within=within, only="first")


def kill_label(rng):
    """Of copy, record and model some are there from an earlier run."""
    expected_copy()
    task = run_command(*LABEL)
    with new_folder():
        kill = draw_kill(rng, "label", task)
    if rng.random() < 0.3:
        kill = Kill(int(rng.integers(1, RENAMES)), only="second")
    for name in OUTPUTS[: [0, 1, 3, 3][rng.integers(4)]]:
        Path(name).write_bytes(b"old")
    before = sorted(name for name in OUTPUTS if Path(name).exists())
    code, said = run_apart(task, kill.start)
    contents = {name: Path(name).read_bytes() for name in OUTPUTS if Path(name).exists()}
    new = sorted(name for name, content in contents.items() if content != b"old")
    old = sorted(set(contents) - set(new))
    complaints = []
    if old and new:
        complaints.append(f"{old} are old, {new} are new")
    if kill.only == "first" and (new or old) not in ([], sorted(OUTPUTS), before):
        complaints.append(f"left {new or old} of {before}")
    complaints += judge_outputs(new)
    if code == 0 and new != sorted(OUTPUTS):
        complaints.append(f"succeeded with {new}: {said}")
    again, said = run_apart(task)
    complaints += judge_outputs(OUTPUTS) if again == 0 else [f"the second run failed: {said}"]
    complaints += [f"left {name}" for name in hidden(".")]
    about = f"kill {kill.at} within {kill.within or 'all'} of the {kill.only} process, {before} are there"
    return describe(about, "killed" if code < 0 else "ended before", complaints)


def judge_outputs(names):
    """What is wrong with outputs of a whole run."""
    for name in names:
        if not Path(name).exists():
            yield f"there is no {name}"
        elif name == "copy.csv" and Path(name).read_bytes() != expected_copy():
            yield "the copy is another one"
        elif name == "m.skops":
            load(name)


@cache
def expected_copy():
    with new_folder():
        assert run_command(*LABEL)() == 0  # in this process, so that its children have all modules and compiled loops
        return Path("copy.csv").read_bytes()


def kill_files(rng):
    """What is there of many files is whole, and the second run goes on."""
    expected_files()
    task = run_command(*FOLDER)
    with new_folder():
        kill = draw_kill(rng, "files", task)
    code, _ = run_apart(task, kill.start)
    about = f"kill {kill.at} within {kill.within or 'all'}"
    return describe(about, "killed" if code < 0 else "ended before", [*judge_files(), *finish_files(task)])


def judge_files():
    """Whether each copy that is there is whole."""
    for path in Path("out").rglob("*.parquet"):
        if not path.name.startswith(".") and pd.read_parquet(path)["y"].isna().any():
            yield f"{path} is not filled in"


def finish_files(task):
    """What is wrong after a second run."""
    code, said = run_apart(task)
    if code:
        yield f"the second run failed: {said}"
        return
    try:
        pd.testing.assert_frame_equal(read_files(Path("out"), CUTS), expected_files(), rtol=0, atol=2e-4)
    except AssertionError as error:
        yield f"other labels: {error}"
    yield from (f"left {name}" for name in hidden("out"))


@cache
def expected_files():
    with new_folder():
        assert run_command(*FOLDER)() == 0  # in this process, too
        return read_files(Path("out"), CUTS)


def kill_papers(rng):
    """Records are whole lines, and a second run computes what is left; the values are those of a whole run."""
    expected_values()
    n_jobs = 2 if rng.random() < 0.1 else 1
    task = partial(run_papers, n_jobs)
    kill = draw_kill(rng, "papers", partial(run_papers, 1, "counted"))
    code, _ = run_apart(task, kill.start)
    kept = read_records(Path("papers", "tiny.jsonl"))
    complaints = []
    if run_apart(task)[0]:
        complaints.append("the second run failed")
    records = read_records(Path("papers", "tiny.jsonl"))
    if len(records) != len(plan([PAPER])) or records[: len(kept)] != kept:
        complaints.append(f"{len(records)} records, {len(kept)} of them before")
    if values(records) != expected_values():
        complaints.append("other values")
    return describe(f"kill {kill.at}, {n_jobs} jobs", "killed" if code < 0 else "ended before", complaints)


def run_papers(n_jobs, folder="papers"):
    execute(plan([PAPER]), Path(folder), n_jobs=n_jobs)
    return 0


@cache
def expected_values():
    with new_folder():
        run_papers(1)
        return values(read_records(Path("papers", "tiny.jsonl")))


def values(records):
    names = ("item", "row", "method", "trial")
    return {tuple(record[name] for name in names): str(record["values"]) for record in records}


def kill_workers(rng):
    """A run on two workers of Dask, of which a process is killed: the command itself, or one of its children."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    line = [sys.executable, "-m", "kernelweave", *FOLDER, "--workers", "2"]
    process = subprocess.Popen(line, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(rng.uniform(1.0, SECONDS))
    children = list_children(process.pid)
    own = rng.random() < 0.5 or not children
    victim = process.pid if own else children[rng.integers(len(children))]
    killed = process.poll() is None
    if killed:
        os.kill(victim, signal.SIGKILL)
    code = process.wait()
    complaints = [*judge_files()]
    end = time.monotonic() + 60.0
    while any(Path("/proc", str(child)).exists() for child in children) and time.monotonic() < end:
        time.sleep(0.2)
    alive = [child for child in children if Path("/proc", str(child)).exists()]
    if alive:
        complaints.append(f"{len(alive)} processes go on without the command")
        for child in alive:
            os.kill(child, signal.SIGKILL)
    if not own and killed and code not in (0, 25):
        complaints.append(f"exit code {code} after a worker was lost")
    complaints += finish_files(run_command(*FOLDER))
    return describe("the command" if own else "a child", "killed" if killed else "ended before", complaints)


def list_children(pid):
    """The processes that one has started, and theirs."""
    try:
        children = [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
    return [*children, *(grandchild for child in children for grandchild in list_children(child))]


def describe(about, ended, complaints):
    return {"about": about, "ended": ended} | ({"defect": "; ".join(complaints)} if complaints else {})

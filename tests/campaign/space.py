"""Disks that are full, quotas and few open files: one sentence, and what was there is there as it was."""

import contextlib
import os
import resource
import subprocess
import tempfile
from functools import cache, partial
from pathlib import Path

import numpy as np
from campaign.apart import hidden, new_folder, run_apart, run_command
from campaign.kills import (
    FOLDER,
    LABEL,
    LEARNER,
    OUTPUTS,
    describe,
    expected_copy,
    judge_files,
    judge_outputs,
    run_papers,
)
from checks.command import run as run_words
from checks.tiny_paper import PAPER

from kernelweave import RBF, HarmonicClassifier, load, save
from kernelweave.cli.errors import EXIT_CODES, NOT_POSSIBLE
from kernelweave.errors import ErrorCode
from kernelweave.papers.runner import plan, read_records

NO_SPACE = EXIT_CODES[ErrorCode.NO_SPACE]
PAGE = 4096  # bytes that a small disk gives at a time


def run(number):
    """One limit on one kind of run."""
    rng = np.random.default_rng([5, number])
    expected_copy()  # so that children have all modules and compiled loops
    kinds = (limit_label, limit_files, limit_papers, limit_save, fill_stream, limit_open_files)
    with new_folder() as folder:
        return kinds[number % len(kinds)](rng, folder)


@contextlib.contextmanager
def limit(rng, folder, largest):
    """Give what a child is to do first, so that files there have little space: a quota, or a disk that is full."""
    n_bytes = int(rng.integers(0, largest))
    if rng.random() < 0.5 and can_mount():
        size = max(PAGE, n_bytes)
        mount(folder, size)
        try:
            yield lambda: None, f"a disk of {size} bytes"
        finally:
            os.chdir("/")
            subprocess.run(["umount", "-l", str(folder)], check=True)
            os.chdir(folder)
    else:
        limits = (n_bytes, resource.getrlimit(resource.RLIMIT_FSIZE)[1])
        yield partial(resource.setrlimit, resource.RLIMIT_FSIZE, limits), f"files of {n_bytes} bytes"


def mount(folder, size):
    """Put a small disk in the place of a folder; what was there is copied, and leaves so many bytes free."""
    links = {path.name: os.readlink(path) for path in Path(folder).iterdir() if path.is_symlink()}
    files = {path.name: path.read_bytes() for path in Path(folder).iterdir() if not path.is_symlink()}
    size += sum(PAGE * (1 + len(content) // PAGE) for content in files.values())
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "campaign", str(folder)], check=True)
    os.chdir(folder)
    for name, target in links.items():
        os.symlink(target, name)
    for name, content in files.items():
        Path(name).write_bytes(content)


@cache
def can_mount():
    """Whether this user can mount a small disk."""
    with tempfile.TemporaryDirectory() as folder:
        line = ["mount", "-t", "tmpfs", "-o", "size=4096", "campaign", folder]
        try:
            if subprocess.run(line, capture_output=True).returncode:
                return False
        except OSError:
            return False
        subprocess.run(["umount", folder], check=True)
    return True


def judge_sentence(code, said, codes=(NO_SPACE,)):
    """What is wrong with how a command failed."""
    sentences = [line for line in said.splitlines() if not line.startswith("note: ")]
    if code and (code not in codes or len(sentences) != 1 or not sentences[0].startswith("kernelweave: ")):
        yield f"exit code {code}: {said}"
    if not code and sentences:
        yield f"succeeded, but said {said}"


def limit_label(rng, folder):
    """Copy, record and model of a table."""
    old = OUTPUTS[: [0, 3][rng.integers(2)]]
    for name in old:
        Path(name).write_bytes(b"old")
    with limit(rng, folder, 60_000) as (prepare, about):
        code, said = run_apart(run_command(*LABEL), prepare)
        complaints = [*judge_sentence(code, said), *(f"left {name}" for name in hidden("."))]
        if code:
            kept = [name for name in OUTPUTS if Path(name).exists() and Path(name).read_bytes() == b"old"]
            there = [name for name in OUTPUTS if Path(name).exists()]
            complaints += (
                [] if tuple(kept) == tuple(there) == old else [f"{old} were there, {there} are, {kept} as before"]
            )
        else:
            complaints += judge_outputs(OUTPUTS)
    return describe(about, "label refused" if code else "label fits", complaints)


def limit_files(rng, folder):
    """Copies of many files: those that are there are whole."""
    with limit(rng, folder, 120_000) as (prepare, about):
        code, said = run_apart(run_command(*FOLDER), prepare)
        complaints = [*judge_sentence(code, said), *judge_files(), *(f"left {name}" for name in hidden("."))]
    return describe(about, "files refused" if code else "files fit", complaints)


def limit_papers(rng, folder):
    """Records of a paper: whole lines, and a run with space goes on."""
    with limit(rng, folder, 6000) as (prepare, about):
        code, _ = run_apart(partial(run_papers, 1), prepare)
        kept = read_records(Path("papers", "tiny.jsonl"))
        content = Path("papers", "tiny.jsonl").read_bytes() if kept else b""
    complaints = []
    os.makedirs("papers", exist_ok=True)
    Path("papers", "tiny.jsonl").write_bytes(content)  # on a disk with space
    again, said = run_apart(partial(run_papers, 1))
    if again or len(read_records(Path("papers", "tiny.jsonl"))) != len(plan([PAPER])):
        complaints.append(f"the second run failed: {said}")
    return describe(about, "papers refused" if code else "papers fit", complaints)


def limit_save(rng, folder):
    """`save` of a model."""
    X = rng.normal(size=(30, 2))
    model = HarmonicClassifier(kernel=RBF()).fit(X, X[:, 0] > 0)
    Path("m.skops").write_bytes(b"old")

    def task():
        save(model, "m.skops")
        return 0

    with limit(rng, folder, 15_000) as (prepare, about):
        code, said = run_apart(task, prepare)
        complaints = [f"left {name}" for name in hidden(".")]
        if code and (Path("m.skops").read_bytes() != b"old" or "cannot be written: " not in said):
            complaints.append(f"not as before: {said}")
        if not code:
            load("m.skops")
    return describe(about, "save refused" if code else "save fits", complaints)


def fill_stream(rng, folder):
    """Standard output or standard error is a full device; the files are written."""
    number, words = int(rng.integers(1, 3)), (*LABEL[:2], *LEARNER[:-1], *LABEL[-4:])
    words = (*words, "--json") if rng.random() < 0.5 else words

    def prepare():
        os.dup2(os.open("/dev/full", os.O_WRONLY), number)

    code, said = run_apart(lambda: run_words(*words), prepare)
    complaints = judge_sentence(code, said)
    if number == 1 and code != NO_SPACE:
        complaints = [*complaints, f"nothing could be printed, and the exit code is {code}"]
    complaints = [*complaints, *judge_outputs(OUTPUTS), *(f"left {name}" for name in hidden("."))]
    return describe(f"stream {number}", "stream full", complaints)


def limit_open_files(rng, folder):
    """Few files may be open."""
    used = len(os.listdir("/proc/self/fd"))
    limits = (used + int(rng.integers(0, 12)), resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    code, said = run_apart(run_command(*LABEL), partial(resource.setrlimit, resource.RLIMIT_NOFILE, limits))
    codes = {NO_SPACE, NOT_POSSIBLE, *(EXIT_CODES[kind] for kind in (ErrorCode.NOT_WRITABLE, ErrorCode.UNREADABLE))}
    complaints = [*judge_sentence(code, said, codes), *(f"left {name}" for name in hidden("."))]
    there = [name for name in OUTPUTS if Path(name).exists()]
    if there and (code or len(there) < 3):
        complaints.append(f"exit code {code}, but there are {there}")
    return describe(
        f"{limits[0] - used} more files", "open files refused" if code else "open files suffice", complaints
    )

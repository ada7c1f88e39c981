"""Run the tests as they would run on other processors.

OpenBLAS and numpy choose their loops by the processor, and can be told to choose those of an older one. Each run is
pytest in a process of its own; at the end there is one table: core type, threads, tests that passed and failed.

    python .ci/processors.py                                 every core type that this processor can play
    python .ci/processors.py --cores "Haswell" --threads 1   some of them
    python .ci/processors.py --other tests/kernels           one other than its own, chosen by the commit

Arguments that are left go to pytest. The exit code is 0 if every run passed.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path

# Core types of OpenBLAS, and the features, in numpy's words, without which their loops are illegal instructions.
NEEDS = {
    "Prescott": {"SSE3"},
    "Nehalem": {"SSE42"},
    "Sandybridge": {"AVX"},
    "Haswell": {"AVX2", "FMA3"},
    "Zen": {"AVX2", "FMA3"},
    "SkylakeX": {"AVX512_SKX"},
}
OWN = "own"  # what the libraries choose themselves
BASELINE = "baseline"  # numpy without the loops that it chooses by the processor; OpenBLAS as it chooses itself
PYTEST = ["-n", "auto", "--maxprocesses=8", "-q"]


@dataclass(frozen=True)
class Run:
    """One run of the tests."""

    core: str
    threads: int
    passed: int
    failed: tuple[str, ...]
    code: int


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cores", default="", help=f"of {', '.join([*NEEDS, OWN, BASELINE])}; all that run by default")
    parser.add_argument("--threads", default="1 2", help="numbers of threads of OpenBLAS")
    parser.add_argument("--other", action="store_true", help="one other core type, chosen by the commit; one thread")
    options, rest = parser.parse_known_args(arguments)
    features, dispatched = numpy_features()
    if options.other:
        cores, reasons = playable(features, played)
        others = [core for core in cores if core != OWN]
        chosen = [(choose(others, commit()), 1)] if others else []
    else:
        cores, reasons = playable(features, played, options.cores.split())
        threads = [int(number) for number in options.threads.split()]
        chosen = [(core, number) for core in cores for number in (threads[:1] if core == BASELINE else threads)]
    print(*reasons, sep="\n", flush=True)
    if not chosen:
        print("There is no other core type to play.")
        return int(bool(options.cores.split()))  # those that were named did not run
    runs = [run(core, number, dispatched, rest) for core, number in chosen]
    print(table(runs))
    return int(any(found.code for found in runs))


def numpy_features() -> tuple[set[str], list[str]]:
    """Return the features of this processor, and those of them that numpy has loops for beyond its baseline."""
    try:
        from numpy._core import _multiarray_umath as umath
    except ImportError:  # before numpy 2
        from numpy.core import _multiarray_umath as umath
    features = {name for name, there in umath.__cpu_features__.items() if there}
    return features, [name for name in umath.__cpu_dispatch__ if name in features]


def played(core: str) -> str | None:
    """Return the core type whose loops OpenBLAS uses when told to play one; None if numpy has no such OpenBLAS."""
    command = [sys.executable, "-c", "import numpy"]
    done = subprocess.run(
        command, env=environment(core, 1, []) | {"OPENBLAS_VERBOSE": "2"}, capture_output=True, text=True
    )
    said = re.findall(r"^Core: (\S+)", done.stderr + done.stdout, flags=re.MULTILINE)
    return said[-1] if said else None


def playable(features, played, named=(), machine=None) -> tuple[list[str], list[str]]:
    """Return the core types to run, and a sentence for each that is left out."""
    own = played(OWN)
    if (machine or platform.machine()).lower() not in ("x86_64", "amd64", "i686") or own is None:
        return [OWN], [
            "OpenBLAS has no core types to play here (no x86 processor, or another BLAS): only its own runs."
        ]
    cores, reasons, seen = [], [f"The own core type of this processor is {own}."], {own}
    for core in named or [*NEEDS, OWN, BASELINE]:
        if core in (OWN, BASELINE):
            cores.append(core)
        elif core not in NEEDS:
            raise SystemExit(f"There is no core type {core}; there are {', '.join([*NEEDS, OWN, BASELINE])}.")
        elif not NEEDS[core] <= features:
            reasons.append(f"{core} is left out: this processor lacks {', '.join(sorted(NEEDS[core] - features))}.")
        elif not named and (same := played(core)) in seen:
            reasons.append(f"{core} is left out: OpenBLAS plays {same} for it, which is another run.")
        else:
            cores.append(core)
            seen.add(played(core))
    return cores, reasons


def commit() -> str:
    """Return the hash of the commit; empty where there is no git."""
    try:
        done = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def choose(cores: list[str], commit: str) -> str:
    """Return one of the core types, the same for the same commit; the first without one."""
    return cores[int(commit or "0", 16) % len(cores)]


def environment(core: str, threads: int, dispatched: list[str]) -> dict[str, str]:
    """Return the variables of a run."""
    ours = {"OPENBLAS_NUM_THREADS": str(threads), "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    if core == BASELINE:
        ours["NPY_DISABLE_CPU_FEATURES"] = " ".join(dispatched)
    elif core != OWN:
        ours["OPENBLAS_CORETYPE"] = core
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in ("OPENBLAS_CORETYPE", "NPY_DISABLE_CPU_FEATURES")
    }
    return kept | ours


def run(core: str, threads: int, dispatched: list[str], arguments: list[str]) -> Run:
    """Run pytest."""
    print(f"\nThe tests with the core type {core}, {threads} of OpenBLAS's threads:", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.xml"
        command = [sys.executable, "-m", "pytest", *PYTEST, f"--junitxml={report}", *arguments]
        code = subprocess.run(command, env=environment(core, threads, dispatched)).returncode
        try:
            passed, failed = outcomes(report.read_text(encoding="utf-8"))
        except (OSError, ET.ParseError):  # pytest was killed
            passed, failed = 0, []
    return Run(core, threads, passed, tuple(failed or ([f"pytest ended with {code}"] if code else [])), code)


def outcomes(report: str) -> tuple[int, list[str]]:
    """Return the number of tests that passed, and the names of those that failed, of a report in JUnit's form."""
    passed, failed = 0, []
    for case in ET.fromstring(report).iter("testcase"):
        kinds = {child.tag for child in case}
        if kinds & {"failure", "error"}:
            failed.append(f"{case.get('classname')}::{case.get('name')}")
        elif "skipped" not in kinds:
            passed += 1
    return passed, list(dict.fromkeys(failed))


def table(runs: list[Run]) -> str:
    """Return a line for each run."""
    lines = [f"{'core type':<12} {'threads':>7} {'passed':>7} {'failed':>7}  failed tests"]
    for found in runs:
        names = ", ".join(found.failed)
        lines.append(f"{found.core:<12} {found.threads:>7} {found.passed:>7} {len(found.failed):>7}  {names}".rstrip())
    return "\n" + "\n".join(lines)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

"""Runs the cases of a campaign in a process that may crash or hang; keeps one line of JSON a case, and goes on there.

A case is decided by its part and its number alone. A process of its own takes numbers and gives results; where it is
killed, or needs longer than the part allows, that is the result, with the place where it was.
"""

import contextlib
import faulthandler
import hashlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import kernelweave
from kernelweave.papers.runner import append_record

MEMORY = 6 * 2**30  # bytes of addresses that a case may use
SOURCE = Path(kernelweave.__file__).parent
TESTS = Path(__file__).parents[1]


@dataclass(frozen=True)
class Part:
    """A part of the campaign.

    Attributes
    ----------
    name : str
    n_cases : int
        The count to reach.
    run : callable
        ``run(number)`` returns a dict: ``ended`` is a word for how the case ended; ``defect``, if there is one, says
        what is wrong; ``about`` says what was drawn. What it raises is a defect.
    seconds : float
        After so many seconds of the processor, or ten times as many of the clock, a case counts as hanging.
    what : str
        What it attacks, for the table.
    """

    name: str
    n_cases: int
    run: Callable[[int], dict]
    seconds: float
    what: str


@dataclass(frozen=True)
class Budget:
    """What a run may take: seconds in all, new cases of each part (None: all), processes."""

    seconds: float
    n_cases: int | None = None
    n_jobs: int = 1


def run_campaign(parts, folder, budget):
    """Run the cases that are left, the parts one after the other; each has an equal share of the time that is left."""
    folder.mkdir(exist_ok=True)
    end = time.monotonic() + budget.seconds
    for position, part in enumerate(parts):
        left = end - time.monotonic()
        if left > 0:
            _run_part(part, folder, time.monotonic() + left / (len(parts) - position), budget)


def _run_part(part, folder, end, budget):
    numbers = iter(list_open(part, read_records(folder))[: budget.n_cases])
    lock = threading.Lock()

    def work():
        with Worker(part, folder) as worker:
            while time.monotonic() < end:
                with lock:
                    number = next(numbers, None)
                if number is None:
                    return
                record = {"part": part.name, "case": number, "source": digest_source()} | worker.run(number)
                with lock:
                    append_record(folder / "results.jsonl", record)
                    if "defect" in record:
                        print(f"{part.name}:{number} {record['defect'].splitlines()[-1][:200]}", flush=True)

    threads = [threading.Thread(target=work) for _ in range(budget.n_jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def list_open(part, records):
    """The numbers of the cases to run: first those that failed on another source, then those that were not run yet."""
    failed = [
        number
        for (name, number), record in records.items()
        if name == part.name and "defect" in record and record["source"] != digest_source()
    ]
    return sorted(failed) + [number for number in range(part.n_cases) if (part.name, number) not in records]


def read_records(folder):
    """The last record of each case, by part and number; torn lines are left out."""
    path = folder / "results.jsonl"
    records = {}
    for line in path.read_bytes().split(b"\n")[:-1] if path.exists() else ():
        with contextlib.suppress(ValueError):
            record = json.loads(line)
            records[record["part"], record["case"]] = record
    return records


@cache
def digest_source():
    """What tells one state of the library from another."""
    digest = hashlib.sha256()
    for file in sorted(SOURCE.rglob("*.py")):
        digest.update(file.relative_to(SOURCE).as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:12]


class Worker:
    """A process that runs cases of one part; another one takes its place where it ends."""

    def __init__(self, part, folder):
        self.part, self.folder, self.process = part, folder, None

    def __enter__(self):
        return self

    def __exit__(self, *given):
        self._stop()

    def run(self, number):
        """The result of a case, also where the process does not survive it."""
        if self.process is None:
            self._start()
        self.trace.seek(0)
        self.trace.truncate()
        backstop = threading.Timer(10 * self.part.seconds, self.process.send_signal, [signal.SIGPROF])
        backstop.start()
        try:
            self.process.stdin.write(f"{number}\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            backstop.cancel()
        if line:
            return json.loads(line)
        code = self.process.wait()
        self.trace.seek(0)
        where = self.trace.read()[-4000:]
        self._stop()
        is_late = code == -signal.SIGPROF
        return {
            "ended": "hang" if is_late else "crash",
            "defect": f"{where}\n" + (f"more than {self.part.seconds:g} s" if is_late else f"ended by itself: {code}"),
        }

    def command(self):
        """What to run: a program that serves the part."""
        return [sys.executable, "-m", "campaign", "--serve", self.part.name]

    def _start(self):
        self.trace = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115
        path = os.pathsep.join([str(TESTS), str(SOURCE.parent), *filter(None, sys.path)])
        self.process = subprocess.Popen(
            self.command(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.trace,
            text=True,
            env=os.environ | {"PYTHONPATH": path},
        )

    def _stop(self):
        if self.process is not None:
            self.process.stdin.close()
            self.process.stdout.close()
            self.process.wait()
            self.trace.close()
            self.process = None


def serve(part):
    """Run the cases whose numbers come from standard input; what they print themselves goes nowhere."""
    results = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    trace = os.fdopen(os.dup(2), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    faulthandler.enable(trace)
    faulthandler.register(signal.SIGPROF, trace, chain=True)  # says where it is, and ends the process
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    for line in sys.stdin:
        signal.setitimer(signal.ITIMER_PROF, part.seconds)
        result = timed(part.run, int(line))
        signal.setitimer(signal.ITIMER_PROF, 0)
        results.write(json.dumps(result, default=str) + "\n")


def timed(run, number):
    """The result of a case, with the seconds of the processor that it took, those of its child processes included."""
    before = _seconds()
    try:
        result = run(number)
    except BaseException:  # noqa: BLE001 - a case never ends the campaign
        result = {"ended": "failed", "defect": traceback.format_exc()[-4000:]}
    return result | {"seconds": round(_seconds() - before, 3)}


def _seconds():
    return sum(
        usage.ru_utime + usage.ru_stime
        for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )

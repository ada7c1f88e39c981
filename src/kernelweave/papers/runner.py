"""Run the cells of tables and figures, keep each as a line of JSON, and go on where an earlier run stopped.

``FOLDER/<paper>.jsonl`` holds one record a line, written by the parent process as soon as a cell is finished. A line is
whole or it does not count: what a killed run left half-written is cut off before the next line is added. Of several
records of a cell the last counts, and only if it was made with the present settings. A record with an error does not
count as done. A cell draws from a seed made of its own name, on one thread: the number of jobs cannot change a value.
"""

from __future__ import annotations

import json
import math
import os
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import ThreadpoolController

from .definition import Cell, Item, Paper

Record = dict[str, Any]
PACKAGES = ("kernelweave", "numpy", "scipy", "scikit-learn", "highspy", "numba")


@dataclass(frozen=True)
class Task:
    """A cell to be computed, with the function that computes it and the hash of its settings."""

    cell: Cell
    item: Item
    fast: bool

    @property
    def key(self) -> tuple[Any, ...]:
        """What a record must carry to count for this cell."""
        return (*asdict(self.cell).values(), self.fast, self.item.digest(self.fast, self.cell.method))


@dataclass(frozen=True)
class Progress:
    """What a watcher is told after each cell: ``remaining`` is in seconds, None before anything is known."""

    n_done: int
    n_total: int
    record: Record
    remaining: float | None


def plan(
    papers: Iterable[Paper],
    *,
    kind: str | None = None,
    number: int | None = None,
    trials: int | None = None,
    fast: bool = False,
    outside: Sequence[str] = (),
) -> list[Task]:
    """Return the cells of all items, or of the item of a kind and number, as tasks."""
    tasks = []
    for paper in papers:
        for item in paper.items:
            if kind is None or (item.kind, item.number) == (kind, number):
                n_trials = trials or (item.fast_trials if fast else item.trials)
                tasks += [Task(cell, item, fast) for cell in item.cells(paper.name, n_trials, tuple(outside))]
    return tasks


def execute(
    tasks: Sequence[Task],
    folder: Path,
    *,
    n_jobs: int = 1,
    watch: Callable[[Progress], None] | None = None,
) -> list[Record]:
    """Compute the tasks that have no record yet in ``folder``; return the records of all of them.

    Parameters
    ----------
    tasks : sequence of Task
    folder : Path
        Is made if it does not exist.
    n_jobs : int
        Processes; has no influence on the values.
    watch : callable, optional
        ``watch(progress)`` after each finished cell.
    """
    folder.mkdir(parents=True, exist_ok=True)
    records: dict[tuple[Any, ...], Record] = {}
    for name in dict.fromkeys(task.cell.paper for task in tasks):
        records |= find_finished(read_records(folder / f"{name}.jsonl"))
    open_tasks = [task for task in tasks if task.key not in records]
    clock = _Clock([(task, records[task.key]) for task in tasks if task.key in records], open_tasks, n_jobs)
    about = versions()
    # Small batches: a cell is kept as soon as it is done. The generator hands them over as they come.
    computed = Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1, pre_dispatch="2*n_jobs")(
        delayed(_compute_numbered)(number, task) for number, task in enumerate(open_tasks)
    )
    with closing(computed):  # an interrupt ends the workers
        for number, outcome in computed:
            task = open_tasks[number]
            record = _name(task) | outcome | {"date": str(datetime.now(UTC).date()), "versions": about}
            append_record(folder / f"{task.cell.paper}.jsonl", record)
            records[task.key] = record
            remaining = clock.remaining_after(task, record)
            if watch is not None:
                watch(Progress(len(tasks) - clock.n_open, len(tasks), record, remaining))
    return [records[task.key] for task in tasks]


def read_records(path: Path) -> list[Record]:
    """Return the whole records of a file, in order; what has no newline yet, is torn or no record is left out."""
    if not path.exists():
        return []
    records = []
    for line in path.read_bytes().split(b"\n")[:-1]:
        try:
            record = json.loads(line)
        except ValueError:  # torn by a kill
            continue
        if isinstance(record, dict) and {"paper", "item", "row", "method", "trial", "definition"} <= record.keys():
            records.append(record)
    return records


def append_record(path: Path, record: Record) -> None:
    """Add a line to the file, at once; cut off a torn line before it."""
    # Names of files in messages need not be UTF-8; what stands for their bytes is escaped as in JSON.
    line = (json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n").encode("utf-8", "backslashreplace")
    with path.open("ab+") as file:
        end = file.seek(0, os.SEEK_END)
        if end and _last_byte(file, end) != b"\n":
            file.truncate(_after_last_newline(file, end))
        file.write(line)
        file.flush()


def find_finished(records: Iterable[Record]) -> dict[tuple[Any, ...], Record]:
    """Return the last record of each cell and hash of settings, those with an error left out."""
    last = {record_key(record): record for record in records}
    return {key: record for key, record in last.items() if "error" not in record}


def current_records(papers: Iterable[Paper], folder: Path) -> tuple[list[Record], int]:
    """Return the last record of each cell that was made with the present settings, and how many others there are.

    Where an item has records of a whole run, those of a fast run are left out. Records with an error are kept.
    """
    kept: list[Record] = []
    n_others = 0
    for paper in papers:
        last = {record_key(record): record for record in read_records(folder / f"{paper.name}.jsonl")}
        items = {item.name: item for item in paper.items}
        present = [
            r
            for r in last.values()
            if r["item"] in items and items[r["item"]].digest(r["fast"], r["method"]) == r["definition"]
        ]
        whole = {record["item"] for record in present if not record["fast"]}
        n_others += len(last) - len(present)
        kept += [record for record in present if record["item"] not in whole or not record["fast"]]
    return kept, n_others


def record_key(record: Record) -> tuple[Any, ...]:
    """Return what :attr:`Task.key` is for the task of this record."""
    return tuple(record.get(name) for name in ("paper", "item", "row", "method", "trial", "fast", "definition"))


def versions() -> dict[str, str]:
    """Return the versions of what the numbers depend on."""
    installed = {}
    for name in PACKAGES:
        try:
            installed[name] = version(name)
        except PackageNotFoundError:  # run from a source tree that is not installed
            installed[name] = "not installed"
    return installed


@cache
def thread_pools() -> ThreadpoolController:
    """Return the thread pools of this process, looked for once: while that lasts, Ctrl-C would be lost."""
    import scipy.linalg  # noqa: F401 - brings a pool of its own
    import sklearn  # noqa: F401 - likewise

    return ThreadpoolController()


def compute(task: Task) -> Record:
    """Compute one cell: its values and seconds, or the error that it met; warnings are kept, once each."""
    start = time.perf_counter()
    outcome: Record = {}
    with thread_pools().limit(limits=1), warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            values = make_plain(task.item.run(task.cell, task.fast))
            outcome = {"data": values.pop("data", "original"), "values": values}
        except Exception as error:  # noqa: BLE001 - whatever fails in one cell must not stop the others; it is shown
            outcome = {"error": f"{type(error).__name__}: {error}"}
    texts = dict.fromkeys(str(warning.message)[:300] for warning in seen)
    return outcome | ({"warnings": list(texts)} if texts else {}) | {"seconds": round(time.perf_counter() - start, 3)}


def make_plain(value: Any) -> Any:
    """Return numbers as JSON has them: no NumPy types, None for what is not finite."""
    if isinstance(value, dict):
        return {str(key): make_plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [make_plain(inner) for inner in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _compute_numbered(number: int, task: Task) -> tuple[int, Record]:
    return number, compute(task)


def _name(task: Task) -> Record:
    return asdict(task.cell) | {"fast": task.fast, "definition": task.item.digest(task.fast, task.cell.method)}


def _last_byte(file: Any, end: int) -> bytes:
    file.seek(end - 1)
    last: bytes = file.read(1)
    return last


def _after_last_newline(file: Any, end: int) -> int:
    file.seek(0)
    return int(file.read(end).rfind(b"\n")) + 1


class _Clock:
    """Remaining time: each open cell counts as the finished ones of its item and method do, or else of its item."""

    def __init__(self, known: Sequence[tuple[Task, Record]], open_tasks: Sequence[Task], n_jobs: int):
        self.open = {task.key: task for task in open_tasks}
        self.n_jobs = n_jobs if n_jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + n_jobs)
        self.seconds: dict[tuple[str, ...], list[float]] = {}
        for task, record in known:
            self._add(task, record)

    @property
    def n_open(self) -> int:
        return len(self.open)

    def remaining_after(self, task: Task, record: Record) -> float | None:
        self._add(task, record)
        self.open.pop(task.key, None)
        means = {kind: sum(times) / len(times) for kind, times in self.seconds.items()}
        guesses = [self._guess(other, means) for other in self.open.values()]
        return sum(guesses) / self.n_jobs if means else None

    def _add(self, task: Task, record: Record) -> None:
        for kind in self._list_kinds(task):
            self.seconds.setdefault(kind, []).append(record["seconds"])

    def _guess(self, task: Task, means: dict[tuple[str, ...], float]) -> float:
        return next(means[kind] for kind in self._list_kinds(task) if kind in means)

    @staticmethod
    def _list_kinds(task: Task) -> list[tuple[str, ...]]:
        cell = task.cell
        name = (cell.paper, cell.item, cell.row, cell.method)
        return [name, (*name[:2], cell.method), name[:2], ()]

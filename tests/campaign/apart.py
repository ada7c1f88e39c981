"""Tasks in a process of their own that has all modules already, and that may be killed at one of its own calls."""

import contextlib
import io
import json
import os
import signal
import sys
import tempfile
from functools import cache
from pathlib import Path

from checks.command import rows as table_rows
from checks.command import run, write
from checks.many_files import make_frame, write_files

import kernelweave

PACKAGE = str(Path(kernelweave.__file__).parent)
FILES = str(Path(PACKAGE) / "files.py")
FAILED = 70  # exit code of a task that raised


@cache
def sources():
    """A folder with the tables that all runs read."""
    folder = Path(tempfile.mkdtemp(prefix="campaign-"))
    write(folder / "in.csv", table_rows(n_labeled=40))
    write_files(folder / "rows", make_frame())
    return folder


@contextlib.contextmanager
def new_folder():
    """An empty folder as the current one, with links to the tables."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory(prefix="campaign-") as folder:
        os.chdir(folder)
        for name in ("in.csv", "rows"):
            os.symlink(sources() / name, name)
        try:
            yield Path(folder)
        finally:
            os.chdir(before)


def run_apart(task, prepare=lambda: None):
    """Run a task in a child process, and wait for all that it started; return its exit code and what it said.

    The code is negative where a signal ended it. ``prepare`` is called in the child before.
    """
    said_out, said_in = os.pipe()  # closed once the child and all its children have ended
    child = os.fork()
    if child == 0:  # pragma: no cover - in another process
        os.close(said_out)
        code = FAILED
        try:
            errors = io.StringIO()
            with contextlib.redirect_stderr(errors):
                prepare()
                code = task()
                sys.setprofile(None)
        except BaseException as error:  # noqa: BLE001 - said to the parent
            sys.setprofile(None)
            print(f"{type(error).__name__}: {error}", file=errors)
        finally:
            os.write(said_in, json.dumps(errors.getvalue()[-3000:]).encode())
            os._exit(code)
    os.close(said_in)
    with open(said_out, "rb") as stream:
        said = stream.read()
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), json.loads(said) if said else ""


def run_command(*words):
    """A task: the command with these words; what it prints is thrown away."""

    def task():
        with contextlib.redirect_stdout(io.StringIO()):
            return run(*words)

    return task


class Kill:
    """Counts calls of functions of this package, those of the system in `files` included; kills the process at one.

    ``only`` says of which process calls count: the first one, the one that renames files for it, or both (None).
    """

    def __init__(self, at=None, within="", only=None):
        self.n_calls, self.at, self.within, self.only = 0, at, within, only

    def start(self):
        self.process = os.getpid()
        sys.setprofile(self)

    def __call__(self, frame, event, argument):
        name = frame.f_code.co_filename
        counts = event == "call" and name.startswith(self.within or PACKAGE)
        if not counts and not (event == "c_call" and name == FILES):
            return
        is_first = os.getpid() == self.process
        if self.only is not None and is_first != (self.only == "first"):
            return
        self.n_calls += 1
        if self.n_calls == self.at:
            os.kill(os.getpid(), signal.SIGKILL)


def count_calls(task, **options):
    """How many calls a run has, as `Kill` counts them."""
    reader, writer = os.pipe()
    kill = Kill(**options)

    def report():
        code = task()
        os.write(writer, f"{kill.n_calls}\n".encode())
        return code

    code, said = run_apart(report, kill.start)
    os.close(writer)
    with open(reader) as stream:
        count = stream.read()
    assert code == 0, said
    return int(count)


def hidden(folder):
    """Files that an unfinished run leaves."""
    return sorted(path.name for path in Path(folder).rglob(".*") if path.name.endswith((".part", ".old")))

"""The command ``kernelweave``: its parts, and how every failure becomes one sentence and an exit code."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import version
from types import FrameType
from typing import Annotated, Any

from .errors import EXIT_CODES, INTERRUPTED, NO_READER, describe_failure
from .streams import guard_streams, open_closed_streams

# Where each command is, and its line in the list of all; its module is imported when it is called.
COMMANDS = {
    "label": ("label", "Fill in the empty cells of one column, and report how accurate the labels are."),
    "compare": ("compare", "Compare all learners, and scikit-learn's, on the labelled rows of a table."),
    "explain": (
        "explain",
        "Say which sources and columns decide, which labels are doubtful, which rows to label next.",
    ),
    "predict": ("label", "Fill in the target column of another table (or append it) with a saved model."),
    "info": ("info", "Say which versions are installed, what is missing, and what the computer offers."),
    "papers": ("papers", "Reproduce the papers' tables and figures."),
}


@contextmanager
def _importing() -> Iterator[None]:
    """Have Ctrl-C end the process while modules are imported, and say in one sentence if the extra is missing.

    There is nothing to clean up yet, and an exception in the midst of a compiled module could become any other.
    """
    numbers = (signal.SIGINT, signal.SIGTERM) if threading.current_thread() is threading.main_thread() else ()
    before = {number: signal.getsignal(number) for number in numbers}
    before = {number: handler for number, handler in before.items() if callable(handler)}  # others end the process
    for number in before:
        signal.signal(number, lambda *_: os._exit(INTERRUPTED))
    try:
        yield
    except ImportError as missing:  # pragma: no cover - tested in a process of its own
        if str(missing.name).partition(".")[0] not in ("typer", "rich"):
            raise
        sys.exit(f"The command kernelweave needs {missing.name}: pip install 'kernelweave[cli]'")
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


open_closed_streams()
with _importing():
    import typer
    from typer.core import TyperCommand, TyperGroup

    from ..errors import ErrorCode, KernelweaveError
    from ..files import reason
    from .harmless import harmless, shorten

UsageError: type[Exception] = typer.BadParameter.__mro__[1]  # of click, or of the copy of it that newer typers hold


class Commands(TyperGroup):
    """The commands by name; each is imported when it is asked for."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands: Any = dict.fromkeys(COMMANDS)  # for the list of names, and "did you mean"
        self.is_listing = False

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self.is_listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self.is_listing = False

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command; to list them all, what stands for it."""
        if cmd_name not in COMMANDS:
            return None
        home, summary = COMMANDS[cmd_name]
        if self.is_listing:
            return TyperCommand(cmd_name, help=summary)
        with _importing():
            module = import_module(f".{home}", __package__)
        if hasattr(module, "app"):
            return typer.main.get_group(module.app)
        single = typer.Typer(add_completion=False)
        single.command(cmd_name)(getattr(module, cmd_name))
        return typer.main.get_command(single)


app = typer.Typer(cls=Commands, no_args_is_help=True, pretty_exceptions_enable=False)


def main() -> None:
    """Run the command; whatever goes wrong is one sentence and an exit code of its own."""
    signal.signal(signal.SIGTERM, _interrupt)
    with guard_streams() as output:
        try:
            _run()
        except SystemExit as stop:
            if stop.code:
                raise
        sys.stdout.flush()
        if isinstance(output.failure, BrokenPipeError):
            sys.exit(0 if output.work_is_done else NO_READER)
        if output.failure is not None:
            rest = "; the files are written" if output.work_is_done else ""
            _fail(EXIT_CODES[ErrorCode.NO_SPACE], f"The report cannot be printed: {reason(output.failure)}{rest}.")


def _run() -> None:
    try:
        code = app(prog_name="kernelweave", standalone_mode=False)
    except UsageError as error:
        _refuse(error)
    except SystemExit as stop:
        code = stop.code
    except (KernelweaveError, KeyboardInterrupt, MemoryError, OSError) as error:
        _fail(*describe_failure(error))
    else:
        if code == INTERRUPTED:  # typer turns Ctrl-C into an exit without a word
            _fail(*describe_failure(KeyboardInterrupt()))
        if isinstance(code, int) and code:
            sys.exit(code)


def _refuse(error: Any) -> None:
    """Say in one sentence what is wrong with the words of the command; without any, the help is shown instead."""
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        if help_text := error.format_message():  # with rich it is printed already
            print(*map(harmless, help_text.split("\n")), sep="\n", file=sys.stderr)
        sys.exit(error.exit_code)
    path = "kernelweave" if context is None else context.command_path
    sentence = error.format_message().strip().rstrip(".")
    stop = "" if sentence.endswith("?") else "."
    _fail(EXIT_CODES[ErrorCode.BAD_OPTION], f"{sentence}{stop} See: {path} --help")


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"kernelweave {version('kernelweave')}")
        raise typer.Exit


@app.callback()
def about(
    version_: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Learn from few labels and many unlabelled rows with kernels that choose and mix themselves.

    Example: kernelweave label patients.csv --target outcome
    """


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _fail(code: int, sentence: str) -> None:
    """Say the sentence and exit; after Ctrl-C without waiting for anything."""
    print(f"kernelweave: {harmless(shorten(sentence))}", file=sys.stderr, flush=True)
    os._exit(code) if code == INTERRUPTED else sys.exit(code)

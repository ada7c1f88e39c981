"""The command ``kernelweave``: its parts, and how every failure becomes one sentence and an exit code."""

from __future__ import annotations

import os
import signal
import sys
import threading
from importlib.metadata import version
from types import FrameType
from typing import Annotated, Any

from .errors import EXIT_CODES, INTERRUPTED, NO_READER, describe_failure
from .streams import guard_streams, open_closed_streams

open_closed_streams()
# While modules are imported there is nothing to clean up, and an exception in the midst of a compiled one could become
# any other: Ctrl-C ends the process.
_can_be_interrupted = (
    threading.current_thread() is threading.main_thread()
    and signal.getsignal(signal.SIGINT) is signal.default_int_handler
)
if _can_be_interrupted:
    signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
try:
    import typer

    from ..errors import ErrorCode, KernelweaveError
    from ..files import reason
    from .compare import compare
    from .explain import explain
    from .harmless import harmless
    from .info import info
    from .label import label, predict
    from .papers import app as papers
except ImportError as missing:  # pragma: no cover - tested in a process of its own
    if str(missing.name).partition(".")[0] not in ("typer", "rich"):
        raise
    sys.exit(f"The command kernelweave needs {missing.name}: pip install 'kernelweave[cli]'")
finally:
    if _can_be_interrupted:
        signal.signal(signal.SIGINT, signal.default_int_handler)

UsageError: type[Exception] = typer.BadParameter.__mro__[1]  # of click, or of the copy of it that newer typers hold

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)
for command in (label, compare, explain, predict, info):
    app.command()(command)
app.add_typer(papers, name="papers")


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
            print(help_text, file=sys.stderr)
        sys.exit(error.exit_code)
    path = "kernelweave" if context is None else context.command_path
    sentence = error.format_message().strip().rstrip(".")
    _fail(EXIT_CODES[ErrorCode.BAD_OPTION], f"{sentence}. See: {path} --help")


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
    print(f"kernelweave: {harmless(sentence)}", file=sys.stderr, flush=True)
    os._exit(code) if code == INTERRUPTED else sys.exit(code)

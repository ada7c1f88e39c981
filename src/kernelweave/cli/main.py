"""The command ``kernelweave``: its parts, and how every failure becomes one sentence and an exit code."""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType

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
    from .label import label, predict
    from .papers import app as papers
except ImportError as missing:  # pragma: no cover - tested in a process of its own
    if str(missing.name).partition(".")[0] not in ("typer", "rich"):
        raise
    sys.exit(f"The command kernelweave needs {missing.name}: pip install 'kernelweave[cli]'")
finally:
    if _can_be_interrupted:
        signal.signal(signal.SIGINT, signal.default_int_handler)

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)
app.command()(label)
app.command()(predict)
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
        app()
    except SystemExit as stop:  # typer turns Ctrl-C into an exit without a word
        if stop.code != INTERRUPTED:
            raise
        _fail(*describe_failure(KeyboardInterrupt()))
    except (KernelweaveError, KeyboardInterrupt, MemoryError, OSError) as error:
        _fail(*describe_failure(error))


@app.callback()
def about() -> None:
    """Learn from few labels and many unlabelled rows with kernels that choose and mix themselves."""


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _fail(code: int, sentence: str) -> None:
    """Say the sentence and exit; after Ctrl-C without waiting for anything."""
    print(f"kernelweave: {sentence}", file=sys.stderr, flush=True)
    os._exit(code) if code == INTERRUPTED else sys.exit(code)

"""The standard streams of the command: what is printed never stops the work, whatever the streams are.

A stream may be in any encoding, closed, full, or a pipe whose reader has gone. While :func:`guard_streams` lasts,
characters that a stream cannot show are replaced, and a stream that fails discards what follows. The failure of
standard output is kept for the exit code.

Arguments of the command are in the encoding of the system, too: :func:`as_text` reads those that are not.
"""

from __future__ import annotations

import codecs
import io
import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

REPLACEMENTS = {"…": "...", "–": "-"}  # of the command's own words; other characters become question marks
ERROR_HANDLER = "kernelweave.replace"


class Output(io.RawIOBase):
    """The bytes of a stream; after the first failure they are discarded."""

    def __init__(self, raw: Any = None) -> None:
        self.raw = raw
        self.failure: OSError | None = None
        self.work_is_done = False  # all files were written before this was printed

    def write(self, data: Any) -> int:
        if self.failure is None:
            try:
                while (written := self.raw.write(data)) is None:  # a pipe that does not block, and is full
                    select.select([], [self.raw], [])
                return int(written)
            except OSError as error:
                self.failure = error
        return len(data)

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return int(self.raw.fileno())

    def isatty(self) -> bool:
        return bool(self.raw.isatty())


@contextmanager
def guard_streams() -> Iterator[Output]:
    """Guard standard output and standard error; give the former, to be asked for its failure after a flush.

    Streams that a program has put in the place of its own are left alone.
    """
    open_closed_streams()
    codecs.register_error(ERROR_HANDLER, _replace_characters)
    before = sys.stdout, sys.stderr
    output = Output()
    if sys.stdout is sys.__stdout__:
        sys.stdout, output = _guard(sys.stdout)
    if sys.stderr is sys.__stderr__:
        sys.stderr, _ = _guard(sys.stderr)
    try:
        yield output
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        sys.stdout, sys.stderr = before


def mark_work_done() -> None:
    """Note that all files are written: if the reader of standard output leaves now, the command has not failed."""
    output = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    if isinstance(output, Output):
        output.work_is_done = True


def can_show(text: str) -> bool:
    """Return whether standard output can show a text without replacing a character."""
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def as_text(word: str) -> str:
    r"""Return a word of the command line as UTF-8 has it, if it is not in the encoding of the system.

    Python keeps bytes that it cannot decode as surrogates; where ``LANG=C`` these are all that are not ASCII.

    Examples
    --------
    >>> as_text("plain"), as_text("caf\udcc3\udca9")
    ('plain', 'café')
    """
    with suppress(UnicodeError):
        if not word.isascii() and any("\udc80" <= character <= "\udcff" for character in word):
            return os.fsencode(word).decode()
    return word


def open_closed_streams() -> None:
    """Open the null device in the place of closed streams; else the next file would get what is printed to them.

    Some modules cannot even be imported without them, numpy 2.0 among these.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - as long as the process


def _guard(stream: Any) -> tuple[TextIO, Output]:
    with suppress(OSError):
        stream.flush()
    output = Output(getattr(stream.buffer, "raw", stream.buffer))  # with python -u there is no buffer
    guarded_stream = io.TextIOWrapper(
        io.BufferedWriter(output),
        encoding=stream.encoding,
        errors=ERROR_HANDLER,
        line_buffering=stream.line_buffering or stream.write_through,
    )
    return guarded_stream, output


def _replace_characters(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(REPLACEMENTS.get(character, "?") for character in error.object[error.start : error.end]), error.end

"""The ways in which a table or an output can fail: an exit code for each, and one sentence."""

from __future__ import annotations

import errno
from enum import IntEnum

# The exit code of each way to fail, from 10 on. New ones come last: scripts know these numbers.
Fault = IntEnum(
    "Fault",
    "NOT_FOUND UNREADABLE NOT_A_TABLE EMPTY NO_ROWS RAGGED BAD_NAMES UNDECODABLE NO_SUCH_COLUMN UNSUPPORTED "
    "UNENCODABLE NOT_WRITABLE NO_SPACE SAME_FILE",
    start=10,
)


class TableError(Exception):
    """One sentence on what is wrong with a table or an output, and the exit code that says which kind it is."""

    def __init__(self, code: Fault, message: str) -> None:
        super().__init__(message)
        self.code = code


def reason(error: Exception) -> str:
    """Return why a file could not be read or written, without its name: the system's words, or the error's first line.

    Examples
    --------
    >>> reason(FileNotFoundError(2, "No such file or directory", "in.csv"))
    'No such file or directory'
    """
    return (getattr(error, "strerror", None) or str(error)).strip().split("\n")[0].rstrip(".")


def is_full(error: OSError) -> bool:
    """Return whether a disk, a quota or the size that a file may have is used up."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

"""How the command fails: one sentence for the user, and an exit code."""

from __future__ import annotations

from ..errors import ErrorCode, KernelweaveError
from ..files import is_full, reason

NOT_POSSIBLE = 3  # the table or the computer does not allow it
INTERRUPTED, NO_READER = 130, 141  # those that a shell gives a command stopped by Ctrl-C, or by the end of its reader
# Scripts know these numbers; the next free one is 27.
EXIT_CODES = {
    ErrorCode.BAD_OPTION: 2,
    ErrorCode.BAD_TARGET: NOT_POSSIBLE,
    ErrorCode.NO_FEATURES: NOT_POSSIBLE,
    ErrorCode.BAD_FEATURES: NOT_POSSIBLE,
    ErrorCode.BAD_SOURCE: NOT_POSSIBLE,
    ErrorCode.BAD_GROUPS: NOT_POSSIBLE,
    ErrorCode.BAD_MODEL: 4,
    ErrorCode.NO_RECORDS: 4,
    ErrorCode.FAILED_CELLS: 5,
    ErrorCode.NOT_FOUND: 10,
    ErrorCode.UNREADABLE: 11,
    ErrorCode.NOT_A_TABLE: 12,
    ErrorCode.EMPTY: 13,
    ErrorCode.NO_ROWS: 14,
    ErrorCode.RAGGED: 15,
    ErrorCode.BAD_NAMES: 16,
    ErrorCode.UNDECODABLE: 17,
    ErrorCode.NO_SUCH_COLUMN: 18,
    ErrorCode.UNSUPPORTED: 19,
    ErrorCode.UNENCODABLE: 20,
    ErrorCode.NOT_WRITABLE: 21,
    ErrorCode.NO_SPACE: 22,
    ErrorCode.SAME_FILE: 23,
    ErrorCode.OUT_OF_TIME: 24,
    ErrorCode.NO_CLUSTER: 25,
    ErrorCode.FILES_DIFFER: 26,
    ErrorCode.INTERRUPTED: INTERRUPTED,
}


def describe_failure(error: KernelweaveError | KeyboardInterrupt | MemoryError | OSError) -> tuple[int, str]:
    """Return the exit code and the sentence of an error that the command does not survive."""
    if isinstance(error, KernelweaveError):
        return EXIT_CODES[error.code], str(error)
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED, "Interrupted; nothing was written."
    if isinstance(error, MemoryError):
        return NOT_POSSIBLE, "There is not enough memory for this table; use fewer of its rows or columns."
    where = "" if error.filename is None else f" ('{error.filename}')"  # a folder for temporary files, say
    code = EXIT_CODES[ErrorCode.NO_SPACE] if is_full(error) else NOT_POSSIBLE
    return code, f"The operating system reports an error: {reason(error)}{where}."

"""The ways in which a table can fail to be read or filled: an exit code for each, and one sentence."""

from __future__ import annotations

from enum import IntEnum

# The exit code of each way to fail. Scripts know these numbers; 21 to 23 are those of outputs, the next free one is 24.
Fault = IntEnum(
    "Fault",
    "NOT_FOUND UNREADABLE NOT_A_TABLE EMPTY NO_ROWS RAGGED BAD_NAMES UNDECODABLE NO_SUCH_COLUMN UNSUPPORTED "
    "UNENCODABLE",
    start=10,
)


class TableError(Exception):
    """One sentence on what is wrong with a table, and the exit code that says which kind of fault it is."""

    def __init__(self, code: Fault, message: str) -> None:
        super().__init__(message)
        self.code = code

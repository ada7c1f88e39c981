"""One error for what a user can correct in a file, a table or an option; its code says which kind it is."""

from __future__ import annotations

from enum import Enum


class ErrorCode(Enum):
    """What went wrong, as a sentence; ``cli.errors`` gives each kind its exit code."""

    BAD_OPTION = "An option of the command is wrong, or contradicts another one."

    NOT_FOUND = "There is no such table."
    UNREADABLE = "The table cannot be read."
    NOT_A_TABLE = "The file is not a table."
    EMPTY = "The file is empty."
    NO_ROWS = "The table has a header and no rows."
    RAGGED = "A row has more or fewer cells than the header."
    BAD_NAMES = "Column names are missing or repeated."
    UNDECODABLE = "The file is not in the encoding that it declares."
    NO_SUCH_COLUMN = "The table has no such column."
    UNSUPPORTED = "The table needs a package that is not installed, or a column has a type that cannot be filled."
    FILES_DIFFER = "The files of one table have different columns."
    UNENCODABLE = "A label has a character that the encoding of the table does not have."

    BAD_TARGET = "The given labels cannot be learned from."
    NO_FEATURES = "No column is left to learn from."
    BAD_FEATURES = "A feature column is missing, or one of its cells cannot be read or is too large."
    BAD_SOURCE = "A source names columns that it cannot have."
    BAD_GROUPS = "Groups cannot be held out."

    NOT_WRITABLE = "An output cannot be written."
    NO_SPACE = "There is no space for an output."
    SAME_FILE = "An output would overwrite the input or another output."

    NO_CLUSTER = "The cluster does not answer, was lost, or its workers fail."
    BAD_MODEL = "The file is not a model that can be loaded."
    NO_RECORDS = "There are no records of an earlier run."
    FAILED_CELLS = "Cells of a paper's table could not be computed."
    OUT_OF_TIME = "The time limit was reached before the work was done."
    INTERRUPTED = "The user stopped the command."


class KernelweaveError(ValueError):
    """One sentence for the user: what is wrong and what to do about it.

    Parameters
    ----------
    message : str
    code : ErrorCode
    """

    def __init__(self, message: str, code: ErrorCode) -> None:
        super().__init__(message)
        self.code = code

    def __reduce__(self) -> tuple[type[KernelweaveError], tuple[str, ErrorCode]]:
        return type(self), (str(self), self.code)  # it may come from another process

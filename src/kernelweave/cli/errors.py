"""How the command fails: one sentence for the user, and an exit code."""

from __future__ import annotations

# Exit codes below 10 are the command's own; those of tables and outputs are Fault and OutputFault. The last two are
# those that a shell gives a command which Ctrl-C or the end of its reader has stopped.
BAD_OPTION, NOT_POSSIBLE, NO_MODEL, INTERRUPTED, NO_READER = 2, 3, 4, 130, 141
NO_RECORDS, FAILED_CELLS = 4, 5  # of ``kernelweave papers``


class CommandError(Exception):
    """One sentence for the user, with an exit code."""

    def __init__(self, code: int, message: str):
        super().__init__(message)
        self.code = code

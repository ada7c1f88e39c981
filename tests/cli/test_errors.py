import errno

import pytest

from kernelweave.cli.errors import EXIT_CODES, INTERRUPTED, NO_READER, NOT_POSSIBLE, describe_failure
from kernelweave.errors import ErrorCode, KernelweaveError

# Scripts compare with these numbers, so they are written down a second time.
NUMBERS = {
    2: ["BAD_OPTION"],
    3: ["BAD_TARGET", "NO_FEATURES", "BAD_FEATURES", "BAD_SOURCE", "BAD_GROUPS"],
    4: ["BAD_MODEL", "NO_RECORDS"],
    5: ["FAILED_CELLS"],
    10: ["NOT_FOUND"],
    11: ["UNREADABLE"],
    12: ["NOT_A_TABLE"],
    13: ["EMPTY"],
    14: ["NO_ROWS"],
    15: ["RAGGED"],
    16: ["BAD_NAMES"],
    17: ["UNDECODABLE"],
    18: ["NO_SUCH_COLUMN"],
    19: ["UNSUPPORTED"],
    20: ["UNENCODABLE"],
    21: ["NOT_WRITABLE"],
    22: ["NO_SPACE"],
    23: ["SAME_FILE"],
    24: ["OUT_OF_TIME"],
    25: ["NO_CLUSTER"],
    26: ["FILES_DIFFER"],
    130: ["INTERRUPTED"],
}


def test_every_code_has_the_exit_code_that_scripts_know():
    assert {code.name: number for code, number in EXIT_CODES.items()} == {
        name: number for number, names in NUMBERS.items() for name in names
    }
    assert set(EXIT_CODES) == set(ErrorCode)
    assert NO_READER not in EXIT_CODES.values()


@pytest.mark.parametrize(
    "error, code, sentence",
    [
        (KernelweaveError("--seed -1 is negative.", ErrorCode.BAD_OPTION), 2, "--seed -1 is negative."),
        (KeyboardInterrupt(), INTERRUPTED, "Interrupted; nothing was written."),
        (MemoryError(), NOT_POSSIBLE, "There is not enough memory for this table; use fewer of its rows or columns."),
        (
            PermissionError(errno.EACCES, "Permission denied", "/tmp/x"),
            NOT_POSSIBLE,
            "The operating system reports an error: Permission denied ('/tmp/x').",
        ),
        (
            OSError(errno.ENOSPC, "No space left on device"),
            EXIT_CODES[ErrorCode.NO_SPACE],
            "The operating system reports an error: No space left on device.",
        ),
    ],
)
def test_a_failure_is_an_exit_code_and_a_sentence(error, code, sentence):
    assert describe_failure(error) == (code, sentence)

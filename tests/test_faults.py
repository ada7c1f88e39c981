import errno

import pytest

from kernelweave.faults import Fault, TableError, is_full, reason


def test_every_fault_has_its_own_exit_code():
    assert sorted(int(code) for code in Fault) == list(range(10, 24))


def test_an_error_is_its_sentence_and_its_code():
    error = TableError(Fault.EMPTY, "'in.csv' is empty.")
    assert (str(error), error.code) == ("'in.csv' is empty.", Fault.EMPTY)


def test_a_reason_is_one_line_without_a_full_stop_and_without_the_files_name():
    assert reason(PermissionError(13, "Permission denied", "in.csv")) == "Permission denied"
    assert reason(ValueError("embedded null byte.\nmore")) == "embedded null byte"


@pytest.mark.parametrize("code", ["ENOSPC", "EDQUOT", "EFBIG"])
def test_disks_quotas_and_files_can_be_full(code):
    assert is_full(OSError(getattr(errno, code), "no more"))
    assert not is_full(OSError(errno.EACCES, "Permission denied"))
    assert not is_full(OSError("no number"))

from kernelweave.files import OutputFault
from kernelweave.labeling.errors import Fault, TableError


def test_every_fault_has_its_own_exit_code():
    assert sorted(int(code) for code in (*Fault, *OutputFault)) == list(range(10, 24))


def test_an_error_is_its_sentence_and_its_code():
    error = TableError(Fault.EMPTY, "'in.csv' is empty.")
    assert (str(error), error.code) == ("'in.csv' is empty.", Fault.EMPTY)

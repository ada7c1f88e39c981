from kernelweave.cli import errors
from kernelweave.cli.errors import BAD_OPTION, CommandError
from kernelweave.files import OutputFault
from kernelweave.labeling.errors import Fault


def test_an_error_is_its_sentence_and_its_code():
    error = CommandError(BAD_OPTION, "--seed -1 is negative.")
    assert (str(error), error.code) == ("--seed -1 is negative.", BAD_OPTION)


def test_exit_codes_of_the_command_are_none_of_a_table_or_an_output():
    own = {value for name, value in vars(errors).items() if name.isupper()}
    assert len(own) >= 6
    assert not own & {int(code) for code in (*Fault, *OutputFault)}

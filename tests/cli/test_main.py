import os
import subprocess
import sys

import pytest

from kernelweave.cli.errors import EXIT_CODES, INTERRUPTED, NO_READER
from kernelweave.errors import ErrorCode


def test_without_typer_the_command_says_how_to_install_it():
    code = "import sys; sys.modules['typer'] = None; import kernelweave.cli.main"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.strip() == "The command kernelweave needs typer: pip install 'kernelweave[cli]'"


def test_ctrl_c_while_modules_are_imported_ends_without_a_traceback():
    code = "import os, signal, sys; sys.modules['numpy'] = Trap(); import kernelweave.cli.main"
    trap = "class Trap:\n def __getattr__(self, name): os.kill(os.getpid(), signal.SIGINT)\n"
    done = subprocess.run([sys.executable, "-c", trap + code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (INTERRUPTED, "")


def test_importing_the_command_leaves_ctrl_c_as_it_was():
    code = "import kernelweave.cli.main, signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
@pytest.mark.parametrize("arguments", [("papers", "list"), ("--help",)])
def test_a_full_standard_output_is_one_sentence(arguments):
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "kernelweave", *arguments]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == EXIT_CODES[ErrorCode.NO_SPACE]
    assert done.stderr == "kernelweave: The report cannot be printed: No space left on device.\n"


@pytest.mark.parametrize("arguments", [("papers", "list"), ("--help",)])
def test_a_pipe_that_nobody_reads_ends_the_command_as_it_ends_others(arguments):
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "kernelweave", *arguments]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (NO_READER, b"")

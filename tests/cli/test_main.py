import os
import re
import subprocess
import sys
from contextlib import suppress

import pytest
from checks.command import run

from kernelweave import __version__
from kernelweave.cli.errors import EXIT_CODES, INTERRUPTED, NO_READER
from kernelweave.cli.main import COMMANDS, Commands
from kernelweave.errors import ErrorCode


def test_without_typer_the_command_says_how_to_install_it():
    code = "import sys; sys.modules['typer'] = None; import kernelweave.cli.main"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.strip() == "The command kernelweave needs typer: pip install 'kernelweave[cli]'"


def test_ctrl_c_while_modules_are_imported_ends_without_a_traceback():
    code = "import os, signal, sys; sys.modules['numpy'] = Trap(); sys.argv[1:] = ['info']\n"
    code += "from kernelweave.cli.main import main; main()"
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


@pytest.mark.parametrize("command", ["", *COMMANDS, "papers list", "papers run", "papers report"])
def test_help_fits_a_screen_and_has_an_example(command, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    assert run(*command.split(), "--help") == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 50
    assert max(map(len, lines)) <= 80
    example = next(line for line in lines if "Example: kernelweave" in line)
    assert f"kernelweave {command}".strip() in example
    assert not [line for line in lines if "\x1b" in line]


def test_help_is_read_on_wide_terminals_too(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "200")
    assert run("label", "--help") == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 200


def test_the_version_is_printed(capsys):
    assert run("--version") == 0
    assert capsys.readouterr().out == f"kernelweave {__version__}\n"


def test_the_version_costs_no_import_of_what_commands_need():
    code = (
        "import sys; sys.argv[1:] = ['--version']\nfrom kernelweave.cli.main import main; main()\n"
        "print(sorted({'sklearn', 'numba', 'pandas', 'scipy', 'numpy', 'kernelweave.cli.label'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"kernelweave {__version__}\n[]\n"


def test_the_list_of_commands_costs_no_import_of_what_they_need():
    code = (
        "import sys; sys.argv[1:] = ['--help']\nfrom kernelweave.cli.main import main; main()\n"
        "print(sorted({'sklearn', 'numba', 'pandas', 'scipy', 'numpy', 'kernelweave.cli.label'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("[]\n")
    assert all(name in done.stdout for name in COMMANDS)


def test_every_command_has_the_name_by_which_it_is_called_and_begins_its_help_as_the_list_does():
    for name, (_, summary) in COMMANDS.items():
        command = Commands().get_command(None, name)
        assert command.name == name
        assert " ".join(command.help.split()).startswith(summary)
    assert Commands().get_command(None, "labels") is None


def test_a_word_that_is_nearly_a_command_is_understood(capsys):
    assert run("labl") == EXIT_CODES[ErrorCode.BAD_OPTION]
    sentence = "kernelweave: No such command 'labl'. Did you mean 'label'? See: kernelweave --help\n"
    assert capsys.readouterr().err == sentence


@pytest.mark.parametrize("arguments", [(), ("papers",)])
def test_without_a_word_the_help_is_shown_once(arguments, capsys):
    assert run(*arguments) == EXIT_CODES[ErrorCode.BAD_OPTION]
    printed = capsys.readouterr()
    assert (printed.out + printed.err).count("Usage:") == 1


def test_the_shell_completes_commands_and_options():
    variables = {"_KERNELWEAVE_COMPLETE": "complete_bash", "COMP_WORDS": "kernelweave label --ti", "COMP_CWORD": "2"}
    command = [sys.executable, "-m", "kernelweave"]
    done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, check=False)
    assert "--time-limit" in done.stdout.split()


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
def test_a_terminal_without_colours_gets_none():
    terminal, end = os.openpty()
    kept = {key: value for key, value in os.environ.items() if key not in ("FORCE_COLOR", "COLUMNS")}
    variables = kept | {"TERM": "xterm-256color", "NO_COLOR": "1"}
    process = subprocess.Popen([sys.executable, "-m", "kernelweave", "--help"], env=variables, stdout=end, stderr=end)
    os.close(end)
    shown = b""
    with suppress(OSError):  # how Linux says that the other end is closed
        while chunk := os.read(terminal, 4096):
            shown += chunk
    os.close(terminal)
    assert process.wait() == 0
    assert b"Usage" in shown
    assert b"\x1b[" in shown  # it was taken for a terminal: there is bold
    assert not re.search(rb"\x1b\[(\d;)*[349]\d", shown)

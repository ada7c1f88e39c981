import ast
import io
import json
import re
import sys
from pathlib import Path

import pytest
from checks.command import run, write
from checks.model_files import forge

import kernelweave.cli
from kernelweave.cli.display import as_json, print_note
from kernelweave.cli.harmless import ACTING, MAX_SENTENCE, harmless, harmless_json, shorten

ATTACKS = {
    "colour": "\x1b[31mred",
    "clear": "\x1b[2J\x1b[H",
    "title": "\x1b]0;mine\x07",
    "link": "\x1b]8;;http://example.org\x1b\\here",
    "C1": "\x9b31m\x9d0;mine\x9c",
    "line ends": "a\rb\nc\x0bd\x85e\u2028f",
    "backspace": "safe\b\b\b\bevil",
    "direction": "abc\u202egpj.exe\u2066x\u2069\u200f",
    "delete": "a\x7fb",
}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_what_would_act_on_a_terminal_is_shown_instead(attack):
    shown = harmless(attack)
    assert not ACTING.search(shown)
    assert re.sub(r"\\(x..|u....|[nrt])", "", shown) == ACTING.sub("", attack)  # nothing else is changed


@pytest.mark.parametrize("text", ["plain", "größe, β <x> [b]", "東京☃", "=cmd()", "<script>alert(1)</script>", "a b"])
def test_all_else_is_left_as_it_is(text):
    assert harmless(text) == text


def test_names_and_lists_within_a_report_are_made_harmless_too():
    assert harmless({"\x1b": ["\x9b", ("\n", 1.5)], "b": None}) == {"\\x1b": ["\\x9b", ["\\n", 1.5]], "b": None}


@pytest.mark.parametrize("escaped", [False, True])
@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_json_means_the_same_without_a_character_that_acts(attack, escaped):
    text = as_json({attack: [attack]}, escaped=escaped)
    assert not ACTING.search(text.replace("\n", ""))
    assert json.loads(text) == {attack: [attack]}
    assert json.loads(harmless_json(text)) == {attack: [attack]}


def test_a_note_is_one_line(capsys):
    print_note("a\x1b[31m\nb")
    assert capsys.readouterr().err == "note: a\\x1b[31m\\nb\n"


# Functions that print what is theirs: the version and headings, and bytes of a stream.
OWN = {"main._show_version", "display.make_grid", "streams.write"}
PRINTING = {"print", "echo", "secho", "add_row", "add_column", "write", "rule", "log"}
ESCAPING = {"harmless", "as_json"}


def called(node):
    """The last word of what a call calls."""
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def list_functions():
    """The functions of the command by module and name: their nodes, with all that they call."""
    functions = {}
    for file in sorted((Path(kernelweave.cli.__file__).parent).glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
                functions[f"{file.stem}.{node.name}"] = (node, names)
    return functions


def prints_foreign(node):
    """Whether a function prints anything but constants."""
    prints = [each for each in ast.walk(node) if isinstance(each, ast.Call) and called(each) in PRINTING]
    return any(not isinstance(value, ast.Constant) for each in prints for value in (*each.args, *each.keywords))


def test_every_print_of_the_command_escapes_what_is_not_its_own():
    functions = list_functions()

    def is_escaped(name):
        node, names = functions[name]
        if names & ESCAPING:
            return True
        takes_console = any(argument.arg in ("console", "grid") for argument in node.args.args)
        callers = [other for other, (_, used) in functions.items() if node.name in used and other != name]
        return takes_console and bool(callers) and all(is_escaped(caller) for caller in callers)

    printing = {name for name, (node, _) in functions.items() if prints_foreign(node)}
    assert len(printing) > 15  # the search finds them
    assert {name for name in printing if not is_escaped(name)} == OWN


HOSTILE = "n\x1b]52;c;bXk=\x07\x9b2Jm"  # what would write to the clipboard, and clear the screen
FILLER = "a text of some length, as others are " * 5  # a file with many control characters is no table
ROWS = [
    [f"r{i}", f"{i * 37 % 19}.5", FILLER, "" if i > 30 else f"a{HOSTILE}" if i * 37 % 19 > 9 else "b"]
    for i in range(40)
]


@pytest.mark.parametrize("json_", [[], ["--json"]], ids=["people", "json"])
@pytest.mark.parametrize(
    "words",
    [
        ["label", "in.csv", "--target", HOSTILE, "--suspects", "3", "--next", "3", "--id", f"id{HOSTILE}"],
        ["label", "in.csv", "--target", "nope" + HOSTILE],
        ["label", f"no{HOSTILE}.csv", "--target", "y"],
        ["label", "in.csv", "--target", HOSTILE, "--learner", HOSTILE],
        ["label", "in.csv", "--target", HOSTILE, "--source", HOSTILE],
        ["label", "in.csv", "--target", HOSTILE, f"--{HOSTILE}"],
        ["label", "in.csv", "--target", HOSTILE, "-o", f"no{HOSTILE}/out.csv"],
        ["predict", f"no{HOSTILE}.skops", "in.csv"],
        ["predict", "bad.skops", "in.csv"],
        ["papers", "run", HOSTILE],
        ["papers", "report", HOSTILE],
    ],
    ids=lambda words: " ".join(words).replace(HOSTILE, "*")[:60],
)
def test_nothing_foreign_acts_on_a_terminal(words, json_, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "in.csv", ROWS, header=(f"id{HOSTILE}", f"x{HOSTILE}", f"k{HOSTILE}", HOSTILE))
    forge(tmp_path / "bad.skops", {HOSTILE: HOSTILE})
    assert (run(*words, *json_) == 0) is ("--suspects" in words)
    shown = "".join(capfd.readouterr())
    assert shown
    assert not ACTING.search(shown.replace("\n", ""))


class Terminal(io.TextIOWrapper):
    def isatty(self):
        return True


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "cp1252"])
def test_a_copy_that_is_printed_acts_on_no_terminal_and_is_as_it_was_elsewhere(encoding, tmp_path, monkeypatch):
    table = tmp_path / "in.csv"
    lines = ["\t".join(cells) for cells in [("id", f"x{HOSTILE}", "é", "y"), *(map(str, row) for row in ROWS)]]
    table.write_bytes("\r\n".join(lines).replace("\x9b", "\x9b" if "utf" in encoding else "").encode(encoding))
    shown = {}
    for kind in (io.TextIOWrapper, Terminal):
        stream = kind(io.BytesIO(), encoding="utf-8", newline="\n")
        monkeypatch.setattr(sys, "stdout", stream)
        assert run("label", table, "--target", "y", "--learner", "harmonic", "-o", "-") == 0
        shown[kind] = stream.buffer.getvalue()
    copy, text = shown[io.TextIOWrapper], shown[Terminal].decode()
    assert copy.startswith(table.read_bytes().partition(b"\r\n" if encoding != "utf-16" else b"\r\0\n")[0])
    assert not ACTING.search(text.replace("\n", "").replace("\t", ""))
    assert text.splitlines() == [
        "\t".join(map(harmless, line.split("\t"))) for line in copy.decode(encoding).removesuffix("\r\n").split("\r\n")
    ]


def test_a_sentence_that_would_fill_pages_keeps_its_beginning_and_its_end():
    assert shorten("short") == "short"
    cut = shorten("begin" + "x" * 10**6 + "end")
    assert cut.startswith("begin")
    assert cut.endswith("end")
    assert len(cut) < MAX_SENTENCE + 5


@pytest.mark.parametrize(
    "header, target", [(["n", "n", "y"], "y"), (["n", "m", "y"], "z"), (["n", "y"], "n"), (["n", "m", "y"], "y")]
)
def test_names_of_any_length_are_said_in_part(header, target, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    names = [name * 100_000 if name in "nm" else name for name in header]
    write(tmp_path / "in.csv", [[str(i * 37 % 19 + 0.5)] * (len(names) - 1) + [""] for i in range(9)], header=names)
    assert run("label", "in.csv", "--target", target * 100_000 if target == "n" else target) != 0
    shown = capfd.readouterr().err
    assert shown.count("\n") == 1
    assert len(shown) < 5000

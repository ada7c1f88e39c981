import json
import re

import pytest

from kernelweave.cli.display import as_json, print_note
from kernelweave.cli.harmless import ACTING, harmless, harmless_json

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

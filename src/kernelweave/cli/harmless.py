r"""Texts of others, made harmless: a name or a cell is shown as it is, but cannot act on a terminal.

Control characters (C0 with line ends and tabs, DEL, C1), which begin the escape sequences of terminals, and characters
that turn the direction of writing or end a line become visible: ``\x1b[31m`` is shown as these six characters.
"""

from __future__ import annotations

import re
from typing import Any

# C0, DEL and C1; separators of lines and paragraphs; marks, embeddings, overrides and isolates of direction.
ACTING = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]")

MAX_SENTENCE = 4000  # characters of an error or a note: a name may have any number


def harmless(value: Any) -> Any:
    r"""Return a text, or plain data with all texts in it, without characters that act on a terminal.

    Examples
    --------
    >>> harmless({"na\x1b[2Jme": ["a\nb", 3]})
    {'na\\x1b[2Jme': ['a\\nb', 3]}
    """
    if isinstance(value, str):
        return ACTING.sub(lambda match: match[0].encode("unicode_escape").decode(), value)
    if isinstance(value, dict):
        return {harmless(key): harmless(part) for key, part in value.items()}
    return [harmless(part) for part in value] if isinstance(value, list | tuple) else value


def harmless_json(text: str) -> str:
    r"""Return JSON in which such characters are written by their numbers, and mean the same.

    Examples
    --------
    >>> harmless_json('{"a": "\x9b"}')
    '{"a": "\\u009b"}'
    """
    return ACTING.sub(lambda match: match[0] if match[0] == "\n" else f"\\u{ord(match[0]):04x}", text)


def shorten(sentence: str) -> str:
    """Return a sentence; of one that would fill pages the beginning and the end."""
    if len(sentence) <= MAX_SENTENCE:
        return sentence
    return f"{sentence[: 3 * MAX_SENTENCE // 4]} … {sentence[-MAX_SENTENCE // 4 :]}"

"""The labels given in a target column: what can be learned from them, and what is doubtful about them.

Blanks around a text do not count. Texts that differ otherwise are different classes; where two look like one, or one
looks like a missing label, a note says so. Labels that cannot be learned from are refused, with a way out.
"""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from ..errors import ErrorCode, KernelweaveError
from ..labels import NO_LABEL, find_text_markers
from ..short_text import cut_text
from .numbers import are_codes, as_numbers, find_thousands, looks_like_formula

MAX_CLASS_VALUES = 20  # a target with more distinct numbers is regression (half of it where some have decimals)
MAX_GROUPS_NAMED = 3  # groups of similar classes in a note


def strip_texts(cells: Sequence[Any] | np.ndarray) -> np.ndarray:
    """Return the texts without the blanks around them; ndarray of object, shape (n_rows,)."""
    texts = np.empty(len(cells), dtype=object)
    texts[:] = [str(cell).strip() for cell in cells]
    return texts


def require_empty_cells(cells: np.ndarray, empty: np.ndarray, target: str) -> None:
    """Refuse a target column without an empty cell."""
    if not empty.any():
        remedy = "".join(f" {_capitalized(words)}." for words in _suggest_marker(cells))
        message = f"The column {target!r} has no empty cell, so there is nothing to fill in.{remedy}"
        raise KernelweaveError(message, ErrorCode.BAD_TARGET)


def find_task(labels: np.ndarray, task: str, target: str) -> str:
    """Return the task that the user chose or, for ``"auto"``, the one that the labels suggest.

    Numbers that may be others than they seem, and numbers beside a text for a missing label, are refused.

    Parameters
    ----------
    labels : ndarray of str, shape (n_labeled,)
    task : {"auto", "classification", "regression"}
    target : str
        Name of the column.
    """
    if task == "classification":
        return task
    example = find_thousands(labels)
    if example and (task == "regression" or len(set(labels)) > MAX_CLASS_VALUES / 2):
        raise KernelweaveError(
            f"The column {target!r} holds {example!r}, whose mark may separate thousands or decimals. Write thousands "
            "without a mark, or use --task classification if these are classes.",
            ErrorCode.BAD_TARGET,
        )
    numbers = [text for text in labels if text.lower() not in NO_LABEL]
    is_mixed = 0 < len(numbers) < len(labels) and as_numbers(numbers) is not None
    if is_mixed and "regression" in (task, guess_task(numbers)):
        raise KernelweaveError(
            f"The column {target!r} holds numbers and other texts. {_capitalized(_suggest_marker(labels)[0])}. If all "
            "of them are classes, use --task classification.",
            ErrorCode.BAD_TARGET,
        )
    return guess_task(labels) if task == "auto" else task


def guess_task(labels: Sequence[str] | np.ndarray) -> str:
    """Return ``"regression"`` where the labels are many different numbers, else ``"classification"``."""
    numbers = as_numbers(labels)
    if numbers is None or are_codes(labels):
        return "classification"
    n_distinct = len(np.unique(numbers))
    has_decimals = np.any(numbers != np.trunc(numbers))
    many = n_distinct > MAX_CLASS_VALUES or (has_decimals and n_distinct > MAX_CLASS_VALUES / 2)
    return "regression" if many else "classification"


def count_classes(labels: np.ndarray, target: str) -> dict[str, int]:
    """Return how many rows each class has; refuse a single class, or a class of a single row."""
    classes, counts = np.unique(labels.astype(str), return_counts=True)
    if len(classes) < 2:
        message = f"All labels of {target!r} are '{classes[0]}'; at least two classes are needed."
        raise KernelweaveError(message, ErrorCode.BAD_TARGET)
    if counts.min() >= 2:
        return dict(zip(classes.tolist(), counts.tolist(), strict=True))
    single = str(classes[counts.argmin()])
    have_digits = all(any(letter.isdigit() for letter in text) for text in classes)
    similar = [group for group in _group_similar(classes.tolist()) if single in group]
    remedy = "Label more rows, or empty that cell."
    if as_numbers(classes) is not None:
        remedy = "If these numbers are counts or amounts, use --task regression; if not, label more rows."
    elif len(classes) > len(labels) / 2 and have_digits:
        raise KernelweaveError(
            f"The column {target!r} holds {len(classes)} different texts in {len(labels)} labelled rows, such as "
            f"'{classes[0]}'. They look like dates or amounts with a unit, which are not read as numbers: write "
            "amounts without the unit, and dates as a number of days. If they are classes, each needs at least 2 rows.",
            ErrorCode.BAD_TARGET,
        )
    elif similar:
        remedy = f"If {join_names(similar[0])} are the same class, spell them alike; if not, label more rows."
    raise KernelweaveError(
        f"The class '{single}' of {target!r} has only one labelled row; every class needs at least 2. {remedy}",
        ErrorCode.BAD_TARGET,
    )


def check_groups(groups: np.ndarray, classes: np.ndarray | None) -> None:
    """Refuse groups of labelled rows that cannot be held out whole: a single one, or one with all rows of a class.

    Parameters
    ----------
    groups : ndarray of str, shape (n_labeled,)
    classes : ndarray of str, shape (n_labeled,), or None for numbers
    """
    if len(set(groups)) < 2:
        raise KernelweaveError(
            f"All labelled rows are in the group '{groups[0]}', and cross-validation holds out whole groups. Label "
            "rows of at least two groups, or leave out --group.",
            ErrorCode.BAD_GROUPS,
        )
    for name in sorted(set(classes)) if classes is not None else ():
        (first, *others) = set(groups[classes == name])
        if not others:
            raise KernelweaveError(
                f"All labelled rows of the class '{name}' are in the group '{first}', and cross-validation holds out "
                "whole groups. Label rows of this class in other groups, or leave out --group.",
                ErrorCode.BAD_GROUPS,
            )


def note_doubtful_classes(classes: Sequence[str]) -> list[str]:
    """Return sentences on classes that look like a missing label, like one another, or like a formula.

    Examples
    --------
    >>> note_doubtful_classes(["no", "yes", "Yes"])
    ["The classes 'Yes' and 'yes' differ only in case: if they are the same, spell them alike."]
    """
    notes = [f"A class looks like a missing label: {words}." for words in _suggest_marker(classes)]
    groups = [f"{join_names(group)} differ only in {aspect}" for group, aspect in _group_similar(classes).items()]
    if groups:
        more = ", …" if len(groups) > MAX_GROUPS_NAMED else ""
        shown = "; ".join(groups[:MAX_GROUPS_NAMED])
        notes.append(f"The classes {shown}{more}: if they are the same, spell them alike.")
    return notes + note_formulas(classes)


def note_formulas(texts: Sequence[str]) -> list[str]:
    """Return a sentence on texts for cells that a spreadsheet program would take for formulas.

    Examples
    --------
    >>> note_formulas(["yes", "no"])
    []
    """
    formulas = [text for text in texts if looks_like_formula(text)]
    return [
        f"Spreadsheet programs take cells such as {cut_text(text)!r} for formulas: it is filled in as it was given, so "
        "import the copy as text."
        for text in formulas[:1]
    ]


def join_names(texts: Sequence[str]) -> str:
    """Return the texts in quotes, as a list in a sentence."""
    *first, last = map(repr, texts)
    return f"{', '.join(first)} and {last}" if first else last


def _group_similar(classes: Sequence[str]) -> dict[tuple[str, ...], str]:
    """Return the groups of classes that differ only in case, or in how a number is written, each with that word."""

    def read_number(text: str) -> float | None:
        value = as_numbers([text])
        return None if value is None else float(value[0])

    similar: dict[tuple[str, ...], str] = {}
    aspects: dict[str, Callable[[str], Hashable]] = {"case": str.casefold, "how a number is written": read_number}
    for aspect, key in aspects.items():
        groups = defaultdict(list)
        for text in sorted(classes):
            if key(text) is not None:
                groups[key(text)].append(text)
        for group in groups.values():
            if len(group) > 1:
                similar.setdefault(tuple(group), aspect)
    return similar


def _suggest_marker(labels: Sequence[str] | np.ndarray) -> list[str]:
    """Return what to do about the first text that usually stands for no label, if there is one.

    ``-1`` does so beside two or more others, as in scikit-learn; beside one other it is the second class.
    """
    texts = list(dict.fromkeys(str(text).strip() for text in labels))
    markers = find_text_markers(texts) or [text for text in texts if text == "-1" and len(texts) > 2]
    return [
        f"if {text!r} marks an unlabelled row, empty such cells or run `kernelweave label` with --unlabeled "
        f"{shlex.quote(text)}"
        for text in markers[:1]
    ]


def _capitalized(words: str) -> str:
    return words[0].upper() + words[1:]

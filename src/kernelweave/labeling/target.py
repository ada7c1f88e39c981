"""The texts given in a target column: what is doubtful about them, said before or beside the labels learned from them.

Blanks around a text do not count. Whatever else differs is another class; where two look like one, or one looks like
the absence of a label, a note says so. Texts that cannot be learned from are refused, with the way out.
"""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from ..errors import ErrorCode, KernelweaveError
from .cells import MISSING
from .numbers import are_codes, as_numbers, find_thousands

MANY_VALUES = 20  # a numeric target with more distinct values than this is a number, not a class
MIN_LABELS = 5  # of each class, below which no probability is given
NO_LABEL = (*MISSING, "unknown", "unlabeled", "unlabelled")  # in lower case
N_NAMED = 3  # pairs of similar classes in a note


def stripped(cells: Sequence[Any] | np.ndarray) -> np.ndarray:
    """Return the texts without the blanks around them; ndarray of object, shape (n_rows,)."""
    texts = np.empty(len(cells), dtype=object)
    texts[:] = [str(cell).strip() for cell in cells]
    return texts


def require_empty(cells: np.ndarray, empty: np.ndarray, target: str) -> None:
    """Refuse a target column without an empty cell."""
    if not empty.any():
        remedy = "".join(f"; {words}" for words in _as_unlabeled(cells))
        raise KernelweaveError(
            f"The column {target!r} has no empty cell: there is nothing to fill in{remedy}.", ErrorCode.BAD_TARGET
        )


def check_spelling(labels: np.ndarray, task: str, target: str) -> None:
    """Refuse numbers that nobody can read with certainty, and numbers among which a missing one is spelled out.

    Parameters
    ----------
    labels : ndarray of str, shape (n_labeled,)
    task : str
        ``"auto"``, ``"regression"`` or ``"classification"``: classes may be spelled in any way.
    target : str
        The column's name.
    """
    if task == "classification":
        return
    doubtful = find_thousands(labels)
    if doubtful and (task == "regression" or len(set(labels)) > MANY_VALUES / 2):
        raise KernelweaveError(
            f"The column {target!r} holds {doubtful!r}, whose mark may stand between thousands or before "
            "decimals. Write thousands without a mark, or say --task classification if these are classes.",
            ErrorCode.BAD_TARGET,
        )
    numbers = [text for text in labels if text.lower() not in NO_LABEL]
    if not 0 < len(numbers) < len(labels) or as_numbers(numbers) is None:
        return
    if "regression" in (task, guess_task(numbers)):
        raise KernelweaveError(
            f"The column {target!r} holds numbers and other texts: {_as_unlabeled(labels)[0]}; or say "
            "--task classification if all are classes.",
            ErrorCode.BAD_TARGET,
        )


def guess_task(labels: Sequence[str] | np.ndarray) -> str:
    """Return ``"regression"`` where the given cells are many different numbers, else ``"classification"``."""
    numbers = as_numbers(labels)
    if numbers is None or are_codes(labels):
        return "classification"
    distinct = len(np.unique(numbers))
    fractions = np.any(numbers != np.trunc(numbers))
    many = distinct > MANY_VALUES or (fractions and distinct > MANY_VALUES / 2)
    return "regression" if many else "classification"


def count_classes(labels: np.ndarray, target: str) -> dict[str, int]:
    """Return how many rows each class has; refuse a single class, or a class of a single row."""
    classes, counts = np.unique(labels.astype(str), return_counts=True)
    if len(classes) < 2:
        raise KernelweaveError(
            f"All given cells of {target!r} are '{classes[0]}'; at least two classes are needed.", ErrorCode.BAD_TARGET
        )
    if counts.min() >= 2:
        return dict(zip(classes.tolist(), counts.tolist(), strict=True))
    single = str(classes[counts.argmin()])
    remedy = "Label more rows, or empty that cell."
    if as_numbers(classes) is not None:
        remedy = "If these numbers are counts or amounts, say --task regression; else label more rows."
    elif len(classes) > len(labels) / 2 and all(any(letter.isdigit() for letter in text) for text in classes):
        raise KernelweaveError(
            f"The column {target!r} holds {len(classes)} different texts in {len(labels)} labelled rows, such as "
            f"'{classes[0]}'. They look like amounts with a unit, or dates, which are not read as numbers: write plain "
            "ones, for dates the days since one of them. If they are classes, every class needs at least 2 rows.",
            ErrorCode.BAD_TARGET,
        )
    elif twins := [group for group in _similar(classes.tolist()) if single in group]:
        remedy = f"If {_listed(twins[0])} are one class, write them alike; else label more rows, or empty that cell."
    raise KernelweaveError(
        f"The class '{single}' of {target!r} has only one labelled row; every class needs at least 2 ({MIN_LABELS} for "
        f"probabilities). {remedy}",
        ErrorCode.BAD_TARGET,
    )


def doubts(classes: Sequence[str]) -> list[str]:
    """Return a sentence on a class that looks like the absence of a label, and one on classes that look like one.

    Examples
    --------
    >>> doubts(["no", "yes", "Yes"])
    ["The classes 'Yes' and 'yes' differ only in case: if they are one, write them alike."]
    """
    found = [f"A class looks like a missing value: {words}." for words in _as_unlabeled(classes)]
    pairs = [f"{_listed(group)} differ only in {how}" for group, how in _similar(classes).items()]
    if pairs:
        more = ", …" if len(pairs) > N_NAMED else ""
        found.append(f"The classes {'; '.join(pairs[:N_NAMED])}{more}: if they are one, write them alike.")
    return found


def _similar(classes: Sequence[str]) -> dict[tuple[str, ...], str]:
    """Return the groups of classes that differ only in case, or in how a number is written, each with that word."""

    def number(text: str) -> float | None:
        value = as_numbers([text])
        return None if value is None else float(value[0])

    found: dict[tuple[str, ...], str] = {}
    ways: dict[str, Callable[[str], Hashable]] = {"case": str.casefold, "how a number is written": number}
    for how, key in ways.items():
        groups = defaultdict(list)
        for text in sorted(classes):
            if key(text) is not None:
                groups[key(text)].append(text)
        for group in groups.values():
            if len(group) > 1:
                found.setdefault(tuple(group), how)
    return found


def _listed(texts: Sequence[str]) -> str:
    return ", ".join(map(repr, texts[:-1])) + f" and {texts[-1]!r}"


def _as_unlabeled(labels: Sequence[str] | np.ndarray) -> list[str]:
    """Return what to do about the first text that usually stands for no label, if there is one.

    ``-1`` does so beside two or more others, as in scikit-learn; beside one other it is the second class.
    """
    texts = dict.fromkeys(str(text).strip() for text in labels)
    found = [text for text in texts if text.lower() in NO_LABEL or (text == "-1" and len(texts) > 2)][:1]
    option = "empty such cells or let `kernelweave label` have --unlabeled"
    return [f"if {text!r} marks a row without a label, {option} {shlex.quote(text)}" for text in found]

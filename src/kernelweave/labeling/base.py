"""What every table has, whatever file it is from: column names, the text of each cell, and a way to write a copy."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..errors import ErrorCode, KernelweaveError
from ..files import Writer
from ..short_text import MAX_LENGTH, cut_text, suggest_names

Texts = NDArray[np.object_]  # of str
Values = Sequence[str | None]
Extra = Mapping[str, Sequence[str]]


@dataclass(frozen=True, eq=False, repr=False)
class Table(ABC):
    """What tables of all kinds share: column names, and the text of every cell."""

    format: ClassVar[str]
    path: Path
    names: list[str]
    n_rows: int

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on what is not read, or not written as it was."""
        return ()

    @abstractmethod
    def column(self, name: str) -> Texts:
        """Text of the column's cells, without quotes, "" where empty; ndarray of shape (n_rows,), dtype object."""

    @abstractmethod
    def frame(self, names: Sequence[str] | None = None) -> Any:
        """The columns, or those named, as a pandas frame: from text all str objects, from Parquet as typed there."""

    @abstractmethod
    def prepare_copy(self, target: str, values: Values, extra: Extra) -> Writer:
        """What writes the copy to an open file; values that cannot be written are refused before."""

    def position(self, name: str) -> int:
        """Number of the column called `name`."""
        if name not in self.names:
            raise no_such_column(f"'{self.path}'", [name], self.names)
        return self.names.index(name)


def check_header(path: Path, names: list[str], n_rows: int) -> None:
    """Refuse a table with nameless columns, with names that numpy cuts, with equal names, or without rows."""
    if (nameless := [j for j, name in enumerate(names, 1) if not name.strip()]) and nameless != [1]:  # 1: row labels
        raise KernelweaveError(
            f"Column {nameless[0]} of '{path}' has no name in the header; give it one.", ErrorCode.BAD_NAMES
        )
    if cut := [j for j, name in enumerate(names, 1) if name.endswith("\0")]:
        raise KernelweaveError(
            f"The name of column {cut[0]} of '{path}' ends in the character NUL, which numpy cuts off; rename it.",
            ErrorCode.BAD_NAMES,
        )
    if len(set(names)) < len(names):
        twice = next(name for j, name in enumerate(names) if name in names[:j])
        raise KernelweaveError(
            f"'{path}' has more than one column {list_names([twice])}; rename all but one.", ErrorCode.BAD_NAMES
        )
    if not n_rows:
        raise KernelweaveError(f"'{path}' has column names but no rows.", ErrorCode.NO_ROWS)


def match_names(pattern: str, names: Sequence[str]) -> list[str]:
    """Return the name itself, or those that match a pattern such as ``gene_*``."""
    return [pattern] if pattern in names else [name for name in names if fnmatchcase(name, pattern)]


def expand_names(words: Sequence[str], names: Sequence[str], path: Path) -> tuple[str, ...]:
    """Return the columns that words name: a name, a pattern such as ``gene_*``, or several of them as in ``a,b``."""
    found: dict[str, None] = {}
    for word in words:
        for part in [word] if word in names else list_parts(word) or [word]:
            part = part if part in names else part.strip()
            matching = match_names(part, names)
            if not matching:
                raise no_such_column(f"'{path}'", [part], names)
            found.update(dict.fromkeys(matching))
    return tuple(found)


def list_parts(word: str) -> list[str]:
    """Return the texts between the commas of a word; blank ones, as after a last comma, do not count.

    Examples
    --------
    >>> list_parts("a,b,")
    ['a', 'b']
    """
    return [part for part in word.split(",") if part.strip()]


def no_such_column(where: str, absent: Sequence[str], names: Sequence[str]) -> KernelweaveError:
    """Return the error for columns that a table does not have, with those that it has and those that may be meant."""
    message = f"{where} has no column {list_names(absent)}; it has {list_names(names)}.{suggest_names(absent, names)}"
    return KernelweaveError(message, ErrorCode.NO_SUCH_COLUMN)


def list_names(names: Sequence[Any], limit: int = 8) -> str:
    """Return the names in quotes, the first few of many, for a message."""
    shown = ", ".join(text if len(text) <= MAX_LENGTH else cut_text(text) for text in map(repr, names[:limit]))
    return shown if len(names) <= limit else f"{shown}, ... ({len(names)} in all)"


def ending(path: Path) -> str:
    """Return the ending of a file's name, in small letters; that of an archive is the one before ``.gz``."""
    suffix = path.suffix.lower()
    return Path(path.stem).suffix.lower() if suffix == ".gz" else suffix


def require_package(module: str) -> Any:
    """Import a module of the extra ``cli``, or say how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        message = f"This needs {module.partition('.')[0]}; install it with `pip install 'kernelweave[cli]'`."
        raise KernelweaveError(message, ErrorCode.UNSUPPORTED) from None

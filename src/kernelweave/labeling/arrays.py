"""Arrays of numpy in one file (.npz): ``X``, ``y`` and, optionally, ``feature_names``.

The columns are those of ``X``, called by ``feature_names`` or x0, x1, ..., and ``y``. In ``y`` an empty text or NaN is
an empty cell; bytes are texts in UTF-8. The copy holds the same arrays with ``y`` filled in, as texts where it was
bytes, and one more for each appended column.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tokenize import TokenError
from typing import Any, BinaryIO

import numpy as np

from ..errors import ErrorCode, KernelweaveError
from ..files import Writer, reason
from .archives import BROKEN_ZIP
from .base import Extra, Table, Texts, Values, check_header, require_package
from .numbers import widen_type

TARGET, NAMES = "y", "feature_names"
FAILURES = (*BROKEN_ZIP, TypeError, SyntaxError, TokenError)  # the last ones of headers that are none
TRUTHS = ("True", "False")
FIRST_HALF, LAST_HALF, LAST_CHARACTER = 0xD800, 0xDFFF, 0x10FFFF  # code points of Unicode; halves are surrogates


@dataclass(frozen=True, eq=False, repr=False)
class ArraysTable(Table):
    """The arrays of a file."""

    format = "npz"
    arrays: dict[str, np.ndarray]

    @classmethod
    def parse(cls, path: Path, raw: bytes) -> ArraysTable:
        try:
            with np.load(io.BytesIO(raw), allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            arrays |= {name: _read_texts(name, arrays[name]) for name in (TARGET, NAMES) if name in arrays}
        except FAILURES as error:
            why = reason(error)
            if "pickle" in why:
                why = "it holds Python objects; write texts and numbers as arrays of str and float"
            raise KernelweaveError(f"'{path}' cannot be read: {why}.", ErrorCode.NOT_A_TABLE) from None
        X = arrays.get("X")
        if X is None or X.ndim != 2 or X.dtype.kind not in "fiub":
            found = ", ".join(f"{name} of shape {array.shape}, {array.dtype}" for name, array in arrays.items())
            raise KernelweaveError(
                f"'{path}' needs an array X of two dimensions, of numbers; it has {found or 'nothing'}.",
                ErrorCode.NOT_A_TABLE,
            )
        for name, n, what in ((TARGET, X.shape[0], "rows"), (NAMES, X.shape[1], "columns")):
            if name in arrays and arrays[name].shape != (n,):
                raise KernelweaveError(
                    f"In '{path}', {name} has the shape {arrays[name].shape}, but X has {n} {what}.",
                    ErrorCode.NOT_A_TABLE,
                )
        features = arrays.get(NAMES, np.array([f"x{j}" for j in range(X.shape[1])]))
        names = [*map(str, features), *([TARGET] if TARGET in arrays else [])]
        check_header(path, names, len(X))
        return cls(path, names, len(X), arrays)

    def column(self, name: str) -> Texts:
        values = self._values(name)
        texts = np.empty(self.n_rows, dtype=object)
        if values.dtype.kind == "f":
            is_whole = bool(np.all(values[np.isfinite(values)] % 1 == 0))
            texts[:] = [
                "" if np.isnan(value) else f"{value:.0f}" if is_whole else repr(float(value)) for value in values
            ]
        else:
            texts[:] = [str(value) for value in values]
        return texts

    def frame(self, names: Sequence[str] | None = None) -> Any:
        columns = {name: self._values(name) for name in (self.names if names is None else names)}
        return require_package("pandas").DataFrame(columns)

    def prepare_copy(self, target: str, values: Values, extra: Extra) -> Writer:
        arrays = dict(self.arrays)
        if any(value is not None for value in values):
            if target != TARGET:
                raise KernelweaveError(
                    f"Of '{self.path}' only y can be filled, not {target!r}; put the labels in y.",
                    ErrorCode.UNSUPPORTED,
                )
            arrays[TARGET] = self._fill(values)
        for name, texts in extra.items():
            if name in self.arrays:
                raise KernelweaveError(f"'{self.path}' already has an array {name!r}; rename it.", ErrorCode.BAD_NAMES)
            arrays[name] = _read_appended(texts)

        def write(file: BinaryIO) -> None:
            np.savez(file, **arrays)  # type: ignore[arg-type]

        return write

    def _values(self, name: str) -> np.ndarray:
        j = self.position(name)
        return self.arrays[TARGET] if j == self.arrays["X"].shape[1] else self.arrays["X"][:, j]

    def _fill(self, values: Values) -> np.ndarray:
        given = self.arrays[TARGET]
        rows = np.array([value is not None for value in values])
        try:
            new = _parse([value for value in values if value is not None], given[~rows])
        except ValueError as error:
            raise KernelweaveError(
                f"y of '{self.path}' has the type {given.dtype} and cannot be filled: {reason(error)}.",
                ErrorCode.UNSUPPORTED,
            ) from None
        filled = np.empty(given.shape, new.dtype)
        filled[rows], filled[~rows] = new, given[~rows]
        return filled


def _read_texts(name: str, array: np.ndarray) -> np.ndarray:
    """Return an array of texts or numbers, bytes as texts; refuse records, and texts that are not Unicode."""
    if array.dtype.kind == "V":
        raise ValueError(f"{name} holds records ({array.dtype}); write it as an array of texts or numbers")
    if array.dtype.kind == "S":
        try:
            return np.char.decode(array, "utf-8")
        except UnicodeDecodeError:
            raise ValueError(f"{name} holds bytes that are not UTF-8; write it as an array of str") from None
    if array.dtype.kind == "U":
        _require_unicode(name, array)
    return array


def _require_unicode(name: str, texts: np.ndarray) -> None:
    """Refuse texts with halves of characters, which nothing can write, or with numbers that are no character."""
    codes = np.frombuffer(texts.astype(texts.dtype.newbyteorder("=")).tobytes(), np.uint32)
    if ((codes >= FIRST_HALF) & (codes <= LAST_HALF) | (codes > LAST_CHARACTER)).any():
        raise ValueError(f"{name} holds texts that are not Unicode")


def _read_appended(texts: Sequence[str]) -> np.ndarray:
    """Return texts as numbers, NaN where there is none, if all are; else as texts."""
    try:
        return np.array([float(text) if text else np.nan for text in texts])
    except ValueError:
        return np.array([str(text) for text in texts])


def _parse(texts: Sequence[str], kept: np.ndarray) -> np.ndarray:
    """Return the values that texts stand for, in the type of those that are kept or in a wider one that holds both."""
    dtype = kept.dtype
    if dtype.kind == "U":
        return np.array(texts, dtype=np.promote_types(dtype, np.array(texts, dtype=str).dtype))
    if dtype.kind == "b":  # numpy takes each text for True
        if other := [text for text in texts if text not in TRUTHS]:
            raise ValueError(f"{other[0]!r} is not one of {', '.join(TRUTHS)}")
        return np.array([text == "True" for text in texts])
    if dtype.kind in "iuf":
        numbers = list(map(float if dtype.kind == "f" else int, texts))
        return np.array(numbers, dtype=widen_type(kept, numbers))
    return np.array(texts, dtype=str).astype(dtype)

"""Predictions of Dask collections: lazy, block by block, with the methods that predict arrays.

A method is tried on one made-up row first: it tells the shape and the type of its answers, and refuses columns that do
not fit before anything is computed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import numpy as np

from .rows import is_partitioned, read_blocks


def lazy_on_blocks(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let a method ``(self, X, ...)`` of an estimator answer for a Dask collection with a lazy Dask array."""

    @wraps(method)
    def call(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_partitioned(X):
            return method(self, X, *args, **kwargs)
        return map_rows(partial(_answer, self, method.__name__, args, kwargs), X)

    return call


def lazy_after_fit(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let a method ``fit_transform(self, X, y)`` answer for a Dask collection as ``transform`` does after ``fit``."""

    @wraps(method)
    def call(self: Any, X: Any, y: Any = None, **kwargs: Any) -> Any:
        return self.fit(X, y, **kwargs).transform(X) if is_partitioned(X) else method(self, X, y, **kwargs)

    return call


def map_rows(function: Callable[[Any], Any], X: Any) -> Any:
    """Return the lazy Dask array of ``function(block)``, cut as the array or frame of the rows is.

    Parameters
    ----------
    function : callable
        Returns an array with one entry, or row, for each row of the block.
    X : dask.array.Array or dask.dataframe.DataFrame
    """
    from dask import array

    example = np.asarray(function(_make_row(X)))
    answers, lengths = read_blocks(X, partial(_apply, function, example[:0]), keep_cuts=True)
    blocks = [
        array.from_delayed(answer, (length, *example.shape[1:]), dtype=example.dtype)
        for answer, length in zip(answers, lengths, strict=True)
    ]
    return array.concatenate(blocks, allow_unknown_chunksizes=True)


def _make_row(X: Any) -> Any:
    """Return one row such as X has: zeros, or what Dask makes up for a frame."""
    if hasattr(X, "chunks"):
        if X.ndim != 2:
            raise ValueError(f"Expected rows of a 2D Dask array; got {X.ndim} dimension{'s' * (X.ndim != 1)}.")
        return np.zeros((1, X.shape[1]), dtype=X.dtype)
    return X._meta_nonempty.iloc[:1]


def _apply(function: Callable[[Any], Any], empty: np.ndarray, block: Any) -> np.ndarray:
    """Answer for a block, which may be sparse; one without rows has no answers."""
    return np.asarray(function(block), dtype=empty.dtype) if block.shape[0] else empty


def _answer(owner: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], block: Any) -> Any:
    return getattr(owner, name)(block, *args, **kwargs)

"""Rows that live elsewhere: the blocks of a Dask array or frame, and what is computed where they are.

Work goes to the blocks. What comes back is the result of a reduction, combined pairwise on the way, or rows that are
asked for by number; nothing as long as the rows themselves. Blocks are visited in the order of the rows, so that a
reduction does not depend on who computes which. Whoever has a Dask client runs it there; without one, Dask's threads
do.
"""

from __future__ import annotations

from asyncio import CancelledError as TaskCancelledError
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")

FAN_IN = 8  # results that are combined at a time
LOST = ("CommClosedError", "ClosedClientError")  # of distributed, which threads do without
NO_ANSWER = "Timed out trying to connect"  # of distributed, too: an OSError of no other type
EXTRA = "Rows in Dask collections need Dask: pip install 'kernelweave[dask]'."


def is_partitioned(X: Any) -> bool:
    """Return whether these are rows of a Dask array, frame or series; Dask is not imported for it."""
    return type(X).__module__.partition(".")[0] == "dask"


def without_partitioned(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values that are no Dask collections."""
    return {name: each for name, each in values.items() if type(each).__module__.partition(".")[0] != "dask"}


class PartitionedRows:
    """Rows in blocks, each of which may be in another process.

    Parameters
    ----------
    blocks : sequence of Delayed
        Arrays of shape (length, n_columns), or (length,) of labels.
    lengths : sequence of int
        Rows of each block; some may have none.
    n_columns : int or None
        None where rows are single values.
    dtype : numpy.dtype
    """

    def __init__(self, blocks: Sequence[Any], lengths: Sequence[int], n_columns: int | None, dtype: Any):
        self.lengths = np.asarray(lengths, dtype=np.int64)
        self.starts = np.concatenate([[0], np.cumsum(self.lengths)])[: len(self.lengths)]
        self.blocks = list(blocks)
        self.dtype = np.dtype(dtype)
        n_rows = int(self.lengths.sum())
        self.shape: tuple[int, ...] = (n_rows,) if n_columns is None else (n_rows, n_columns)
        self._known: dict[Any, Any] = {}

    def __len__(self) -> int:
        return self.shape[0]

    @cached_property
    def _filled(self) -> np.ndarray:
        """The numbers of the blocks that have rows."""
        return np.flatnonzero(self.lengths)

    def once(self, what: Any, make: Callable[[], T]) -> T:
        """Return what ``make()`` returned the first time that ``what`` was asked for."""
        if what not in self._known:
            self._known[what] = make()
        return self._known[what]

    def __getitem__(self, numbers: Any) -> np.ndarray:
        """Return rows by their numbers, in the order asked for."""
        numbers = np.asarray(numbers, dtype=np.int64)
        distinct, back = np.unique(numbers, return_inverse=True)
        if len(distinct) == 0:
            return np.empty((0, *self.shape[1:]), dtype=self.dtype)
        place = np.searchsorted(self.starts, distinct, side="right") - 1
        delayed = _delayed()
        parts = [delayed(_take_rows)(self.blocks[k], distinct[place == k] - self.starts[k]) for k in np.unique(place)]
        return np.concatenate(compute(parts))[back]

    def reduce(self, function: Callable[..., T], combine: Callable[[T, T], T], *args: Any) -> T:
        """Return ``function(block, first_row, *args)`` of all blocks, combined pairwise in the order of the rows.

        Parameters
        ----------
        function : callable
            Runs where the block is.
        combine : callable
            ``combine(left, right)`` of two results; associative.
        *args
            What every block is told; sent once.
        """
        return _combine_tree(self._visit(function, args), combine)

    def map(self, function: Callable[..., Any], shape: tuple[int, ...], dtype: Any, *args: Any) -> Any:
        """Return the lazy Dask array of ``function(block, first_row, *args)``, of rows of this shape."""
        from dask import array

        if not len(self._filled):
            return array.zeros((0, *shape), dtype=dtype)
        parts = [
            array.from_delayed(part, (int(self.lengths[k]), *shape), dtype=dtype)
            for k, part in zip(self._filled, self._visit(function, args), strict=True)
        ]
        return array.concatenate(parts)

    def convert(self, function: Callable[[Any], np.ndarray], n_columns: int, dtype: Any) -> PartitionedRows:
        """Return the rows that ``function(block)`` makes of each block, computed whenever they are needed."""
        call = _delayed()(function)
        return PartitionedRows([call(block) for block in self.blocks], self.lengths.tolist(), n_columns, dtype)

    def numbers(self) -> Any:
        """Return the lazy Dask array of the numbers of the rows."""
        from dask import array

        return array.arange(len(self), chunks=(tuple(self.lengths[self._filled].tolist()),), dtype=np.int64)

    def spread(self, numbers: np.ndarray, values: np.ndarray) -> Any:
        """Return the lazy Dask array that has ``values`` at the rows ``numbers`` (ascending) and zeros elsewhere."""
        from dask import array

        delayed, tail, parts = _delayed(), values.shape[1:], []
        for k in self._filled:
            first, length = int(self.starts[k]), int(self.lengths[k])
            here = slice(*np.searchsorted(numbers, [first, first + length]))
            part = delayed(_place_values)(length, numbers[here] - first, values[here])
            parts.append(array.from_delayed(part, (length, *tail), dtype=values.dtype))
        return array.concatenate(parts)

    def _visit(self, function: Callable[..., Any], args: Sequence[Any]) -> list[Any]:
        delayed = _delayed()
        shared = delayed(_Arguments(tuple(args)), traverse=False)
        call = delayed(_Visit(function), pure=False)
        return [call(self.blocks[k], int(self.starts[k]), shared) for k in self._filled]


class _Arguments:
    """What every block is told, sent to each worker once.

    Dask sends an object of its own kind whole, but a tuple part by part: kernels that share their rows would no longer
    do so where they arrive, and distances would be computed for each of them.
    """

    def __init__(self, values: tuple[Any, ...]):
        self.values = values


class _Visit:
    """The function of a block, its first row and what every block is told."""

    def __init__(self, function: Callable[..., Any]):
        self.function = function
        self.__name__ = getattr(function, "__name__", type(function).__name__)  # by which Dask names its tasks

    def __call__(self, block: Any, first: int, told: _Arguments) -> Any:
        return self.function(block, first, *told.values)


def read_blocks(X: Any, convert: Callable[[Any], Any], keep_cuts: bool = False) -> tuple[list[Any], list[float]]:
    """Return the blocks of rows of a Dask collection, converted where they are, and their lengths; NaN if unknown.

    Dask joins small partitions of Parquet files of which few columns are taken, unless ``keep_cuts``.
    """
    if hasattr(X, "chunks") and X.ndim == 2 and len(X.chunks[1]) > 1:
        X = X.rechunk({1: -1})
    is_frame = hasattr(X, "simplify") and not hasattr(X, "chunks")
    parts = X.simplify().to_delayed(optimize_graph=False) if keep_cuts and is_frame else X.to_delayed()
    parts = list(parts.ravel()) if isinstance(parts, np.ndarray) else list(parts)
    lengths = list(X.chunks[0]) if hasattr(X, "chunks") else [np.nan] * len(parts)
    call = _delayed()(convert, pure=False, traverse=False)  # sent once
    return [call(part) for part in parts], lengths


def inspect_blocks(blocks: Sequence[Any], function: Callable[[Any], T]) -> list[T]:
    """Return ``function(block)`` of each block: something small."""
    call = _delayed()
    return list(compute([call(function)(block) for block in blocks]))


def join_rows(first: np.ndarray, others: PartitionedRows) -> PartitionedRows:
    """Return rows in memory followed by partitioned ones."""
    own = _delayed()(np.asarray(first, dtype=others.dtype), traverse=False)
    n_columns = others.shape[1] if len(others.shape) > 1 else None
    return PartitionedRows([own, *others.blocks], [len(first), *others.lengths], n_columns, others.dtype)


def compute(parts: Sequence[Any]) -> list[Any]:
    """Return the values of delayed objects; say in one sentence where a cluster failed."""
    from dask.base import compute as run

    return list(_guard(run, *parts))


def bring_all(*values: Any) -> list[Any]:
    """Return values with Dask collections among them computed.

    One after the other: computed with frames, arrays came back in another order (Dask 2026.8).
    """
    return [compute([value])[0] if is_partitioned(value) else value for value in values]


def _delayed() -> Any:
    try:
        from dask.delayed import delayed
    except ImportError as error:
        raise ImportError(EXTRA) from error
    return delayed


def _guard(run: Callable[..., T], *args: Any) -> T:
    try:
        return run(*args)
    except (TaskCancelledError, Exception) as error:
        if _is_lost(error):
            raise ConnectionError(
                f"The Dask cluster was lost during the computation ({type(error).__name__}: {error}). Nothing was "
                "kept; start the cluster again and repeat the call."
            ) from error
        if type(error).__name__ != "KilledWorker":
            raise
        raise MemoryError(
            f"Workers of the Dask cluster died again and again on one block: {error} They may lack memory: use smaller "
            "partitions, or give workers more."
        ) from error


def _is_lost(error: BaseException) -> bool:
    """Return whether an error says that the scheduler is lost; any other is about the user's files or functions."""
    if isinstance(error, CancelledError | TaskCancelledError | ConnectionError | TimeoutError):
        return True
    if any(base.__name__ in LOST for base in type(error).__mro__):
        return True
    return type(error) is OSError and str(error).startswith(NO_ANSWER)


def _combine_tree(parts: list[Any], combine: Callable[[T, T], T]) -> T:
    delayed = _delayed()
    while len(parts) > 1:
        groups = [parts[i : i + FAN_IN] for i in range(0, len(parts), FAN_IN)]
        parts = [delayed(_combine_all)(combine, group) if len(group) > 1 else group[0] for group in groups]
    return compute(parts)[0]


def _take_rows(block: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    return block[numbers]


def _combine_all(combine: Callable[[Any, Any], Any], parts: Sequence[Any]) -> Any:
    total = parts[0]
    for part in parts[1:]:
        total = combine(total, part)
    return total


def _place_values(length: int, numbers: np.ndarray, values: np.ndarray) -> np.ndarray:
    out = np.zeros((length, *values.shape[1:]), dtype=values.dtype)
    out[numbers] = values
    return out

r"""A library of kernels tied to a sample, and the reductions of it that solvers ask for.

A :class:`KernelLibrary` of :math:`P` recipes bound to :math:`n` rows offers :math:`d = P n` basis functions: column
:math:`j = p n + i` is kernel :math:`p` centred at row :math:`i`. The matrix of all columns,
:math:`K = [K_1 \; K_2 \; \dots \; K_P]`, is never formed. :class:`BoundLibrary` walks it in blocks of columns that
scikit-learn's ``working_memory`` bounds, and reduces each block at once:

================= ==================================== ==================================
``scores``        :math:`K^\top V`                     pricing of columns
``column_norms``  weighted rms, and deviation, of      scaling of columns
                  every column
``quadratic_forms`` :math:`\sum_c V_c^\top K_p V_c`    gradients of kernel weights
``frobenius``     :math:`\langle K_p, K_q \rangle`     alignment
================= ==================================== ==================================
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn import get_config

from .base import ALL, BLOCK_SHARE, BoundKernel, Rows, count
from .checks import require_finite
from .expansion import CombinedKernel

# Times the precision of the largest value: columns that deviate by less are constant up to rounding.
CONSTANT_ROUNDINGS = 1000.0
MAX_SMALL_BYTES = 500 * 2**20  # of all columns: below it whole blocks are read, since they may well be in the cache
STRIP_BYTES = 2**20  # a strip of a block that stays in the processor's cache while it is reduced


class BoundLibrary:
    """A library tied to a sample: ``len(kernels) * n_rows`` columns that are computed when asked for.

    Parameters
    ----------
    kernels : sequence of BoundKernel
    entries : sequence of Entry
        Their names and sources.
    order : sequence of int
        The kernels in the order of stratified pricing.
    n_features : int
    cache_size : float
        Megabytes.
    """

    def __init__(
        self,
        kernels: Sequence[BoundKernel],
        entries: Sequence[Any],
        order: Sequence[int],
        *,
        n_features: int = 0,
        cache_size: float = 0.0,
    ):
        self.kernels = tuple(kernels)
        self.n_features = n_features
        self.entries = tuple(entries)
        self.order = tuple(order)
        self.n_rows = self.kernels[0].n_rows
        self._cache = _BlockCache(int(cache_size * 2**20))

    def restrict(self, rows: np.ndarray) -> BoundLibrary:
        """Return the library at some rows, with everything that the kernels learned from all."""
        kernels = [kernel.restrict(rows) for kernel in self.kernels]
        return BoundLibrary(kernels, self.entries, self.order, n_features=self.n_features)

    def select(self, places: Sequence[int]) -> BoundLibrary:
        """Return the library of some of the kernels."""
        kernels, entries = [self.kernels[p] for p in places], [self.entries[p] for p in places]
        order = [places.index(p) for p in self.order if p in places]
        return BoundLibrary(kernels, entries, order, n_features=self.n_features)

    @property
    def n_columns(self) -> int:
        """Number of basis functions, kernels times rows."""
        return len(self.kernels) * self.n_rows

    def is_small(self, n_selected: int) -> bool:
        """Return whether all columns at so many rows could be kept in memory."""
        return 8 * n_selected * self.n_columns <= MAX_SMALL_BYTES

    def pool_size(self, n_selected: int) -> int:
        """Return how many columns a solver may keep between walks: none where all are kept, else a block's worth."""
        if self.is_small(n_selected):
            return 0
        return max(1, int(BLOCK_SHARE * get_config()["working_memory"] * 2**20 / (8 * n_selected)))

    def scan_seconds(self, rows: np.ndarray) -> float:
        """Return about how long one walk over all columns at ``rows`` takes, from one block of each kernel."""
        rows = self._row_numbers(rows)
        seconds = 0.0
        for kernel in self.kernels:
            part = next(self._cut_columns(len(rows), self.n_rows))
            started = time.perf_counter()
            kernel.block(rows, part)
            seconds += (time.perf_counter() - started) * self.n_rows / (part.stop - part.start)
        return seconds

    def split(self, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the kernel and the centre of each flat column number."""
        kernel, center = np.divmod(columns, self.n_rows)
        return kernel, center

    def columns(self, columns: np.ndarray, rows: Rows = ALL) -> np.ndarray:
        """Return the columns with the given flat numbers at some rows, shape ``(n_rows, n_columns)``."""
        rows = rows if isinstance(rows, slice) else self._row_numbers(rows)
        out = np.empty((count(rows, self.n_rows), len(columns)))
        kernel, center = self.split(np.asarray(columns))
        for p in np.unique(kernel):
            here = kernel == p
            out[:, here] = self.kernels[p].block(rows, center[here])
        return out

    def walked_columns(self, columns: np.ndarray, rows: np.ndarray, *, centered: bool = False) -> np.ndarray:
        """Return columns between walks over ``rows``, perhaps centred, shape ``(n_selected, n_columns)``.

        Where the library is small they are taken from whole blocks, which the cache may hold: some kernels take as long
        for a few columns as for a block. Those in single precision are computed alone, and centred in double.
        """
        rows, columns = self._row_numbers(rows), np.asarray(columns)
        out, is_left = np.empty((len(rows), len(columns))), np.ones(len(columns), dtype=bool)
        if self.is_small(len(rows)) and len(columns):
            for part, block in self._walk(rows, np.unique(self.split(columns)[0]).tolist(), centered=centered):
                here = (columns >= part.start) & (columns < part.stop)
                if block.dtype == np.float64:
                    out[:, here] = block[:, columns[here] - part.start]
                    is_left[here] = False
                del block
        if is_left.any():
            values = self.columns(columns[is_left], rows)
            out[:, is_left] = values - values.mean(axis=0) if centered else values
        return out

    def scores(
        self,
        V: np.ndarray,
        rows: np.ndarray,
        order: Sequence[int] | None = None,
        *,
        centers: np.ndarray | None = None,
        centered: bool = False,
    ) -> Iterator[tuple[slice | np.ndarray, np.ndarray]]:
        r"""Walk columns and give :math:`K_{rows}^\top V`, block by block.

        Parameters
        ----------
        V : ndarray of shape (n_selected, n_vectors)
        rows : ndarray of shape (n_selected,)
        order : sequence of int, optional
            Kernels in the order they are visited; all in library order by default.
        centers : ndarray of shape (n_centers,), optional
            Rows whose columns are visited; all by default.
        centered : bool, default=False
            Whether each column is centred over ``rows`` first. Where the columns of ``V`` sum to zero this changes
            nothing but rounding: wide kernels are nearly constant, and the constant would cancel.

        Yields
        ------
        columns : slice or ndarray
            Flat numbers of the columns of this block; an array where ``centers`` are given.
        scores : ndarray of shape (n_block_columns, n_vectors)
        """
        if centers is None:
            walk: Iterator[tuple[Any, np.ndarray]] = self._walk(rows, order, centered=centered)
        else:
            walk = self._walk_at(centers, rows, order, centered=centered)
        for columns, block in walk:
            scores = _reduce_strips(block, lambda strip: strip.T @ V)
            del block  # so that one block at a time is in memory
            first = columns.start if isinstance(columns, slice) else int(columns[0])
            require_finite(scores, self.entries[first // self.n_rows].name)
            yield columns, scores

    def column_norms(self, weight: np.ndarray, rows: np.ndarray) -> np.ndarray:
        r"""Return the weighted rms :math:`\sqrt{\sum_i w_i K_{ij}^2 / \sum_i w_i}` of every column over ``rows``."""
        return self._column_sizes(weight, rows, centered=False)

    def column_deviations(self, weight: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return the weighted standard deviation of every column over ``rows``."""
        return self._column_sizes(weight, rows, centered=True)

    def _column_sizes(self, weight: np.ndarray, rows: np.ndarray, *, centered: bool) -> np.ndarray:
        share, sizes = weight / weight.sum(), np.empty(self.n_columns)
        rounding = np.zeros(len(self.kernels))  # that of sums, of features, goes with the kernel's largest values
        for columns, block in self._walk(rows):
            p = columns.start // self.n_rows
            sizes[columns], constant = column_sizes(block, share, centered=centered)
            require_finite(constant, self.entries[p].name)
            rounding[p] = max(rounding[p], constant)
            del block
        return np.where(sizes <= np.repeat(rounding, self.n_rows), 0.0, sizes) if centered else sizes

    def quadratic_forms(self, V: np.ndarray, rows: np.ndarray) -> np.ndarray:
        r"""Return :math:`\sum_c V_c^\top K_p V_c` for every kernel, with ``K_p`` at ``rows`` and ``rows``."""
        rows = self._row_numbers(rows)
        out = np.zeros(len(self.kernels))
        for p, kernel in enumerate(self.kernels):
            for part in self._cut_columns(len(rows), len(rows)):
                out[p] += np.vdot(V[part], _reduce_strips(kernel.block(rows, rows[part]), lambda strip: strip.T @ V))
            require_finite(out[p], self.entries[p].name)
        return out

    def frobenius(self, rows: np.ndarray) -> np.ndarray:
        r"""Return the matrix of inner products :math:`\langle K_p, K_q \rangle` at ``rows`` and ``rows``."""
        rows = self._row_numbers(rows)
        out = np.zeros((len(self.kernels),) * 2)
        for part in self._cut_columns(len(rows) * len(self.kernels), len(rows)):
            blocks = [kernel.block(rows, rows[part]).astype(np.float64, copy=False).ravel() for kernel in self.kernels]
            for p, left in enumerate(blocks):
                for q in range(p, len(blocks)):
                    out[p, q] += left @ blocks[q]
        for p, squared in enumerate(np.diag(out)):
            require_finite(squared, self.entries[p].name)
        return out + np.triu(out, 1).T

    def combine(self, weights: np.ndarray, rows: Rows, cols: Rows) -> np.ndarray:
        r"""Return :math:`\sum_p w_p K_p` at some rows and columns."""
        return self.combined(weights).block(rows, cols)

    def combined(self, weights: np.ndarray) -> CombinedKernel:
        """Return the weighted sum of the kernels as one bound kernel."""
        return CombinedKernel(self.kernels, weights)

    def _walk(
        self, rows: np.ndarray, order: Sequence[int] | None = None, *, centered: bool = False
    ) -> Iterator[tuple[slice, np.ndarray]]:
        """Give every block of columns at ``rows``, perhaps centred; from the cache where it holds it."""
        rows = self._row_numbers(rows)
        self._cache.attend(rows)
        for p in range(len(self.kernels)) if order is None else order:
            for part in self._cut_columns(len(rows), self.n_rows):
                # The working memory, hence the width, may change between walks.
                key = (p, part.start, part.stop, centered)
                block = self._cache.get(key)
                if block is None:
                    plain = self._cache.pop((*key[:3], False)) if centered else None
                    block = self.kernels[p].block(rows, part) if plain is None else plain
                    del plain
                    block = _center(block) if centered else block
                    self._cache.put(key, block)
                yield slice(p * self.n_rows + part.start, p * self.n_rows + part.stop), block
                del block

    def _walk_at(
        self, centers: np.ndarray, rows: np.ndarray, order: Sequence[int] | None, *, centered: bool = False
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Give blocks of the columns at ``centers`` (sorted).

        Columns are taken from whole blocks where the library is small, else computed alone. The choice must not depend
        on what the cache holds, since a column's last bits depend on the block it was computed in.
        """
        rows = self._row_numbers(rows)
        if not self.is_small(len(rows)):
            for p in range(len(self.kernels)) if order is None else order:
                for part in self._cut_columns(len(rows), len(centers)):
                    block = self.kernels[p].block(rows, centers[part])
                    yield p * self.n_rows + centers[part], _center(block) if centered else block
            return
        for columns, block in self._walk(rows, order, centered=centered):
            p, first = divmod(columns.start, self.n_rows)
            here = centers[np.searchsorted(centers, first) : np.searchsorted(centers, first + block.shape[1])]
            if len(here):
                yield p * self.n_rows + here, block[:, here - first]
            del block

    def _cut_columns(self, height: int, n_columns: int) -> Iterator[slice]:
        """Cut columns into parts whose block, with what computing it takes, fits the working memory."""
        n_bytes = BLOCK_SHARE * get_config()["working_memory"] * 2**20
        width = max(1, int(n_bytes / (8 * (height + self.n_features + 1))))
        for start in range(0, n_columns, width):
            yield slice(start, min(start + width, n_columns))

    def _row_numbers(self, rows: Any) -> np.ndarray:
        """Return row numbers from what may be a mask or a list."""
        return np.arange(self.n_rows)[rows]


class _BlockCache:
    """Keeps the first blocks of a walk up to a number of bytes, for one set of rows at a time.

    Walks are cyclic, so evicting the oldest block would always evict the next one needed: blocks that do not
    fit are simply computed again.
    """

    def __init__(self, n_bytes: int):
        self.n_bytes = n_bytes
        self.used = 0
        self.rows: np.ndarray | None = None
        self.blocks: dict[tuple[int, int, int, bool], np.ndarray] = {}

    def attend(self, rows: np.ndarray) -> None:
        if self.rows is None or not np.array_equal(self.rows, rows):
            self.rows, self.blocks, self.used = np.array(rows), {}, 0

    def get(self, key: tuple[int, int, int, bool]) -> np.ndarray | None:
        return self.blocks.get(key)

    def pop(self, key: tuple[int, int, int, bool]) -> np.ndarray | None:
        """Take a block out, which makes room for another form of it."""
        block = self.blocks.pop(key, None)
        self.used -= 0 if block is None else block.nbytes
        return block

    def put(self, key: tuple[int, int, int, bool], block: np.ndarray) -> None:
        if self.used + block.nbytes <= self.n_bytes:
            self.blocks[key] = block
            self.used += block.nbytes


def column_sizes(K: np.ndarray, share: np.ndarray, *, centered: bool) -> tuple[np.ndarray, float]:
    """Return the sizes of columns, and the size up to which they are constant but for rounding.

    Parameters
    ----------
    K : ndarray of shape (n_rows, n_columns)
    share : ndarray of shape (n_rows,)
        Weights that sum to 1.
    centered : bool
        Whether a size is a standard deviation, or a root of a mean square.
    """
    means, high, low = np.zeros(K.shape[1]), np.full(K.shape[1], -np.inf), np.full(K.shape[1], np.inf)
    sizes = np.zeros(K.shape[1])
    with np.errstate(invalid="ignore"):  # infinite values are refused by their largest
        for rows in _row_strips(K):
            strip = K[rows]
            np.maximum(high, strip.max(axis=0), out=high)
            np.minimum(low, strip.min(axis=0), out=low)
        largest = np.maximum(high, -low)
        divisor = np.where(largest > 0, largest, 1.0)  # squares of numbers up to 1 cannot overflow
        for rows in _row_strips(K) if centered else ():
            means += share[rows] @ (K[rows] / divisor)
        for rows in _row_strips(K):
            values = K[rows] / divisor
            values -= means
            sizes += share[rows] @ np.square(values, out=values)
        sizes = largest * np.sqrt(sizes)
    return sizes, size_of_rounding(float(largest.max(initial=0.0)), K.dtype)


def size_of_rounding(largest: float, dtype: Any) -> float:
    """Return the size up to which columns of values up to ``largest`` are constant but for rounding."""
    return CONSTANT_ROUNDINGS * float(np.finfo(dtype).eps) * largest


def _reduce_strips(block: np.ndarray, reduce: Any) -> np.ndarray:
    """Reduce a block in double precision without a double-precision copy of the whole."""
    if block.dtype == np.float64:
        return reduce(block)
    return np.concatenate([reduce(block[:, strip].astype(np.float64)) for strip in _strip_slices(block)])


def _center(block: np.ndarray) -> np.ndarray:
    """Subtract from columns their means, in place; differences in double precision are rounded once."""
    means = block.mean(axis=0, dtype=np.float64)
    for rows in _row_strips(block):
        strip = block[rows]
        strip[...] = strip - means
    return block


def _row_strips(block: np.ndarray) -> Iterator[slice]:
    """Cut rows, which lie together in memory, into strips that stay in the processor's cache."""
    height = max(1, STRIP_BYTES // (8 * max(1, block.shape[1])))
    for start in range(0, block.shape[0], height):
        yield slice(start, min(start + height, block.shape[0]))


def _strip_slices(block: np.ndarray) -> Iterator[slice]:
    width = max(1, STRIP_BYTES // (8 * max(1, block.shape[0])))
    for start in range(0, block.shape[1], width):
        yield slice(start, min(start + width, block.shape[1]))

r"""An order of rows, and of columns, that their content alone decides.

Whatever is drawn or dealt by position (folds, landmarks, starts of k-means, trees) is drawn from rows in this order, so
that the order in which a user happens to give rows and columns changes nothing.

Values are rounded to whole numbers :math:`q_{ij}` of a small part of their column's deviation and scattered by a hash
:math:`h` with :math:`h(0) = 0`. All sums are modulo :math:`2^{64}`, exact in any order:

.. math:: c_j = \sum_i h(q_{ij}), \quad r_i = \sum_j h(q_{ij} c_j), \quad
    c'_j = \sum_i h(q_{ij} r_i), \quad r'_i = \sum_j h(q_{ij} c'_j) ,

with odd multipliers in the place of :math:`c, r, c'`. Rows are sorted by :math:`r'`. Equal rows stay in the order in
which they were given, and so do rows that differ by less than the rounding: to exchange them changes next to nothing.
Zeros count for nothing, so sparse and dense rows have the same order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .base import batches

STRIP_VALUES = 2**15  # of dense rows that are hashed at a time: with what is made of them they stay in the cache
FOLDED_ROWS = 16  # that are reduced side by side
KEPT_VALUES = 2**22  # of which what is made of them is kept for the next walk
Keys = NDArray[np.uint64]

CELLS_PER_DEVIATION = 12  # as a power of two: far above the rounding of a mean, and fine enough to tell rows apart
SHIFT = 0.381966  # of cells, whose borders would otherwise lie at round numbers
# Deviations that are powers of two, as those of flags, are common: the factor keeps them away from the next power.
OFF_POWERS = 0.739085
MIN_DEVIATION = 2.0**-30  # of the largest value, below which differences are rounding
MISSING = 2.0**50 + 1.0  # the cell of a missing value
FACTOR = np.uint64(0x9E3779B97F4A7C15)
FACTOR_2 = np.uint64(0xBF58476D1CE4E5B9)
HALF, ONE = np.uint64(32), np.uint64(1)


def order_rows(X: Any) -> NDArray[np.intp]:
    """Return the numbers of the rows in the order of their content.

    Parameters
    ----------
    X : array or CSR of shape (n_rows, n_columns)
        Numbers; they may be missing.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels.content_order import order_rows
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> rows, columns = np.random.default_rng(1).permutation(50), [2, 0, 1]
    >>> moved = X[rows][:, columns]
    >>> bool(np.array_equal(moved[order_rows(moved)], X[order_rows(X)][:, columns]))
    True
    """
    return np.argsort(_find_row_keys(X), kind="stable")


def order_columns(ranks: Any) -> NDArray[np.intp]:
    """Return the numbers of columns in the order of their content, row by row: rows must be in an order of their own.

    Parameters
    ----------
    ranks : array or CSC of shape (n_rows, n_columns)
        Whole numbers, of which differences alone count.
    """
    n_rows, n_columns = ranks.shape
    factors = _make_odd(_hash(np.arange(1, n_rows + 1, dtype=np.uint64), ONE))
    if not sparse.issparse(ranks):
        keys, lowest = np.zeros(n_columns, dtype=np.uint64), ranks.min(axis=0)
        for part in batches(n_rows, 4 * n_columns):
            keys += (_hash_numbers(ranks[part] - lowest) * factors[part, None]).sum(axis=0)
        return np.argsort(keys, kind="stable")
    lowest = ranks.min(axis=0).toarray().ravel()
    column_of = np.repeat(np.arange(n_columns), np.diff(ranks.indptr))
    zero, factor = _hash_numbers(-lowest), factors[ranks.indices]
    keys = zero * factors.sum()  # as if all were zero; then those that are not
    np.add.at(keys, column_of, (_hash_numbers(ranks.data - lowest[column_of]) - zero[column_of]) * factor)
    return np.argsort(keys, kind="stable")


def _hash_numbers(values: NDArray[Any]) -> Keys:
    return _hash(np.array(values + 0.0, dtype=np.float64, order="C").view(np.uint64), ONE)


def _find_row_keys(X: Any) -> Keys:
    if not sparse.issparse(X):
        return _find_dense_keys(np.asarray(X))
    values = X.tocsr()
    scale = _scale_columns(values)
    rows, columns = (np.ones(n, dtype=np.uint64) for n in X.shape)
    for _ in range(2):
        columns = _make_odd(_sum_hashes(values, scale, rows, np.ones(X.shape[1], dtype=np.uint64))[1])
        rows = _make_odd(_sum_hashes(values, scale, np.ones(X.shape[0], dtype=np.uint64), columns)[0])
    return rows


def _find_dense_keys(X: NDArray[Any]) -> Keys:
    """Return the keys of dense rows in three walks: the sums r_i of some rows and their share of c' need one."""
    walk = _Walk(X, _scale_columns(X))
    first, second = np.zeros(X.shape[1], dtype=np.uint64), np.zeros(X.shape[1], dtype=np.uint64)
    for _, mixed in walk:
        first += _reduce_rows(np.add, _finish(mixed, ONE))
    factors = _stack(_make_odd(first), X.shape)
    for _, mixed in walk:
        rows = _make_odd(np.einsum("ij->i", _finish(mixed, factors[: len(mixed)])))
        second += _reduce_rows(np.add, _finish(mixed, rows[:, None]))
    factors, keys = _stack(_make_odd(second), X.shape), np.empty(len(X), dtype=np.uint64)
    for part, mixed in walk:
        keys[part] = np.einsum("ij->i", _finish(mixed, factors[: len(mixed)]))
    return _make_odd(keys)


class _Walk:
    """The mixed numbers of the cells of dense rows, strip by strip; kept from the first walk where they are few."""

    def __init__(self, X: NDArray[Any], scale: NDArray[np.float64]):
        self.X = X
        self.scale = _stack(scale, X.shape)
        self.kept = np.empty(X.shape, dtype=np.uint64) if X.size <= KEPT_VALUES else None
        self.is_filled = False

    def __iter__(self) -> Iterator[tuple[slice, Keys]]:
        for part in _strips(self.X.shape):
            if self.is_filled and self.kept is not None:
                yield part, self.kept[part]
                continue
            rows = self.X[part]
            mixed = _mix(_find_cells(rows, self.scale[: len(rows)]))
            if self.kept is not None:
                self.kept[part] = mixed
            yield part, mixed
        self.is_filled = True


def _strips(shape: tuple[int, ...]) -> Iterator[slice]:
    height = _strip_height(shape)
    return (slice(start, start + height) for start in range(0, shape[0], height))


def _strip_height(shape: tuple[int, ...]) -> int:
    return max(1, min(shape[0], STRIP_VALUES // max(1, shape[1])))


def _stack(row: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Return a row as often as a strip has rows: numpy goes through short rows one by one otherwise."""
    return np.tile(row, (_strip_height(shape), 1))


def _reduce_rows(function: np.ufunc, values: NDArray[Any]) -> NDArray[Any]:
    """Return the reduction of each column, side by side for some rows at a time: short rows are slow."""
    n_folded = len(values) - len(values) % FOLDED_ROWS
    if not n_folded:
        return np.asarray(function.reduce(values, axis=0))
    wide = function.reduce(values[:n_folded].reshape(-1, FOLDED_ROWS * values.shape[1]), axis=0)
    left = np.concatenate([wide.reshape(FOLDED_ROWS, -1), values[n_folded:]])
    return np.asarray(function.reduce(left, axis=0))


def _scale_columns(X: Any) -> NDArray[np.float64]:
    """Return what the values of each column are multiplied by, powers of two: the numbers of cells."""
    largest = np.zeros(X.shape[1])
    if sparse.issparse(X):
        largest = np.abs(X).max(axis=0).toarray().ravel() if X.shape[0] else largest
    else:
        for part in _strips(X.shape):
            np.fmax(largest, _reduce_rows(np.fmax, X[part]), out=largest)
            np.fmax(largest, -_reduce_rows(np.fmin, X[part]).astype(np.float64), out=largest)
    exponent = np.frexp(np.nan_to_num(largest))[1]
    unit = np.ldexp(1.0, -exponent.astype(np.int64).clip(-1000, 1000))
    n_rows = max(1, X.shape[0])
    if sparse.issparse(X):
        scaled = np.nan_to_num(X.data * unit[X.indices])
        mean = np.bincount(X.indices, scaled, minlength=X.shape[1]) / n_rows
        spread = np.square(scaled - mean[X.indices]) - np.square(mean[X.indices])
        square = np.bincount(X.indices, spread, minlength=X.shape[1]) / n_rows + np.square(mean)
    else:
        total, square, origin = (np.zeros(X.shape[1]) for _ in range(3))
        units = _stack(unit, X.shape)
        for part in _strips(X.shape):
            scaled = X[part] * units[: len(X[part])]
            sums = _reduce_rows(np.add, scaled)
            if not np.isfinite(sums).all():
                np.nan_to_num(scaled, copy=False)
                sums = _reduce_rows(np.add, scaled)
            if not part.start:  # the mean of the first rows is not far from that of all, against the deviation
                origin = sums / len(scaled)
                origins = _stack(origin, X.shape)
            total += sums
            scaled -= origins[: len(scaled)]
            square += np.einsum("ij,ij->j", scaled, scaled)
        square = square / n_rows - np.square(total / n_rows - origin)
    deviation = np.maximum(np.sqrt(np.maximum(square, 0.0)) * OFF_POWERS, MIN_DEVIATION)
    return unit * np.ldexp(1.0, CELLS_PER_DEVIATION - np.frexp(deviation)[1])


def _sum_hashes(X: Any, scale: NDArray[np.float64], rows: Keys, columns: Keys) -> tuple[Keys, Keys]:
    """Return the sums over columns and over rows of the hashes of sparse cells times a factor of row and column."""
    row_of = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    hashed = _hash(_find_cells(X.data, scale[X.indices]), rows[row_of] * columns[X.indices])
    by_row, by_column = np.zeros(X.shape[0], dtype=np.uint64), np.zeros(X.shape[1], dtype=np.uint64)
    np.add.at(by_row, row_of, hashed)
    np.add.at(by_column, X.indices, hashed)
    return by_row, by_column


def _find_cells(values: Any, scale: NDArray[np.float64]) -> Keys:
    """Return the numbers of the cells that values lie in, as bits, in a new array; those of zeros are zero."""
    cells = np.multiply(values, scale, order="C")
    cells += SHIFT  # nothing becomes a negative zero
    np.floor(cells, out=cells)
    if np.isnan(cells.sum()):
        np.copyto(cells, MISSING, where=np.isnan(cells))
    return cells.view(np.uint64)


def _hash(bits: Keys, factors: Keys | np.uint64) -> Keys:
    """Return hashes of whole numbers times odd factors; zero stays zero. Overwrites the numbers."""
    return _finish(_mix(bits), factors)


def _mix(bits: Keys) -> Keys:
    """Return what hashes of numbers need of them before they are multiplied, in their place."""
    bits ^= bits >> HALF
    bits *= FACTOR
    bits ^= bits >> HALF
    return bits


def _finish(mixed: Keys, factors: Keys | np.uint64) -> Keys:
    hashed = mixed * factors
    hashed ^= hashed >> HALF
    hashed *= FACTOR_2
    hashed ^= hashed >> HALF
    return hashed


def _make_odd(keys: Keys) -> Keys:
    return keys | np.uint64(1)

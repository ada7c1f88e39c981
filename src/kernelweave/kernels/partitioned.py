r"""Kernels at partitioned rows: recipes that learn from all rows, and reductions that run where the rows are.

A recipe that is a *formula* in two rows (a pointwise kernel, sums, products and multiples of such, normalised, on some
columns) learns its widths from sums over all blocks, exactly. A recipe that learns more from its rows (a transformer, a
forest) learns it from rows drawn at random, all of them where there are no more than ``MAX_BOUND_ROWS``. Either can be
tied to any rows then: labelled ones, landmarks, the rows of a block. Kernels that cannot (graphs) are refused.

Column :math:`j = p n + i` is kernel :math:`p` centred at row :math:`i`, as in
:class:`~kernelweave.kernels.bound_library.BoundLibrary`. A block prices the columns of its rows against the labelled
rows, which are few, and answers with the columns of the largest scores: all that the bound of a linear program and the
choice of new columns depend on.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn import get_config

from ..distributed.rows import PartitionedRows
from .algebra import Product, Scaled, Sum
from .bandwidth import squared_distances
from .base import BLOCK_SHARE, BoundKernel, Kernel
from .bound_library import BoundLibrary, column_sizes, size_of_rounding
from .checks import require_finite
from .library import Entry, KernelLibrary
from .pointwise import RBF, BoundPointwise, Linear, PointwiseKernel
from .wrappers import Normalized, OnColumns

MAX_BOUND_ROWS = 20_000  # rows that transformers and forests learn from
SEED = 0  # of the draw of these rows
STRIP_BYTES = 2**20  # of kernel values, in double precision, that a block works on at a time: cache
TINY_SQUARE = 1e-280  # far from underflow
MIN_REMAINDER = 1e-3  # of a mean square less the square of a mean, with no more than three digits lost
MAX_KNOWN_ROWS = 50_000  # centres that are kept in memory while a mixture is fitted
MAX_BEST = 5000  # columns of large scores that a scan brings back for each problem: what a pool of them holds


def draw_rows(rows: PartitionedRows) -> np.ndarray:
    """Return the rows that recipes learn from beside widths: drawn without replacement, all if they are few."""
    n_rows = len(rows)
    if n_rows <= MAX_BOUND_ROWS:
        return rows[np.arange(n_rows)]
    numbers = np.random.default_rng(SEED).choice(n_rows, MAX_BOUND_ROWS, replace=False)
    return rows.once("drawn rows", lambda: rows[np.sort(numbers)])


def bind_partitioned(
    library: KernelLibrary, rows: PartitionedRows, rng: np.random.Generator, feature_names: Sequence[str] | None = None
) -> list[BoundKernel]:
    """Return the kernels of a library, with all that they learn from the rows; tied to drawn rows.

    Parameters
    ----------
    library : KernelLibrary
    rows : PartitionedRows
    rng : numpy.random.Generator
        Each recipe draws from a stream of its own, that of a library bound in memory.
    feature_names : sequence of str, optional
    """
    drawn, bound = draw_rows(rows), []
    for entry, stream in zip(library.entries, rng.spawn(len(library.entries)), strict=True):
        recipe = entry.kernel.resolve(feature_names, rows.shape[1])
        formula = fit_formula(recipe, rows, stream)
        kernel = (recipe if formula is None else formula).bind(drawn, stream)
        try:
            kernel.tied_to(drawn[:1])
        except NotImplementedError:
            raise ValueError(
                f"The kernel {entry.name} follows a graph of all rows, of which there are {len(rows):,} in partitions. "
                'Leave it out, or draw rows: SSMKClassifier(centers="auto") and AutoKernelClassifier() do.'
            ) from None
        bound.append(kernel)
    return bound


def fit_formula(recipe: Kernel, rows: PartitionedRows, rng: np.random.Generator) -> Kernel | None:
    """Return a recipe that is a formula with its widths as numbers; None where it learns more than widths."""
    if isinstance(recipe, PointwiseKernel):
        return recipe.fitted(rows, rng, None)
    if isinstance(recipe, Sum | Product):
        streams = rng.spawn(len(recipe.terms))
        terms = [fit_formula(term, rows, stream) for term, stream in zip(recipe.terms, streams, strict=True)]
        return None if any(term is None for term in terms) else type(recipe)(tuple(t for t in terms if t is not None))
    inner = rows
    if isinstance(recipe, OnColumns):
        if recipe.missing != "error":
            return None
        columns = list(recipe.columns)
        inner = rows.once(("columns", *columns), lambda: rows.convert(_ColumnsOf(columns), len(columns), rows.dtype))
    elif not isinstance(recipe, Scaled | Normalized):
        return None
    kernel = fit_formula(recipe.kernel, inner, rng)
    return None if kernel is None else recipe.replace(kernel=kernel)


class _ColumnsOf:
    """The function that takes some columns of a block."""

    def __init__(self, columns: Sequence[int]):
        self.columns = list(columns)

    def __call__(self, block: np.ndarray) -> np.ndarray:
        return block[:, self.columns]


class PartitionedLibrary:
    """A library at partitioned rows, seen from a few rows in memory (the labelled ones).

    Parameters
    ----------
    kernels : sequence of BoundKernel
        Tied to the rows in memory.
    entries : sequence of Entry
    order : sequence of int
        As in a :class:`BoundLibrary`.
    rows : PartitionedRows
        Each of which is the centre of one column for each kernel.
    """

    def __init__(
        self, kernels: Sequence[BoundKernel], entries: Sequence[Entry], order: Sequence[int], rows: PartitionedRows
    ):
        self.kernels = tuple(kernels)
        self.entries = tuple(entries)
        self.order = tuple(order)
        self.rows = rows
        self.n_rows = len(rows)
        self._known = np.empty(0, dtype=np.int64), np.empty((0, rows.shape[1]), dtype=rows.dtype)

    def pool_size(self, n_selected: int) -> int:
        """Return how many columns a solver may keep between scans, which are dear."""
        return max(1, int(BLOCK_SHARE * get_config()["working_memory"] * 2**20 / (8 * n_selected)))

    def scan_seconds(self, rows: np.ndarray) -> float:
        """Return about how long one scan takes one worker, from a strip of each kernel."""
        X, started = self.rows[np.arange(min(self.n_rows, 1000))], time.perf_counter()
        for kernel in self.kernels:
            kernel.against(X)
        return (time.perf_counter() - started) * self.n_rows / len(X)

    def at(self, X: np.ndarray, cache_size: float = 0.0) -> BoundLibrary:
        """Return the library tied to rows in memory."""
        kernels = [kernel.tied_to(X) for kernel in self.kernels]
        return BoundLibrary(kernels, self.entries, self.order, n_features=X.shape[1], cache_size=cache_size)

    def values(self, columns: np.ndarray) -> np.ndarray:
        """Return columns with the given flat numbers at the rows in memory, shape (n_memory, n_columns)."""
        kernel, center = np.divmod(columns, self.n_rows)
        distinct, place = np.unique(center, return_inverse=True)
        X, out = self.rows_at(distinct), np.empty((self.kernels[0].n_rows, len(columns)))
        for p in np.unique(kernel):
            here = kernel == p
            out[:, here] = self.kernels[p].against(X[place[here]]).T
        return out

    def rows_at(self, numbers: np.ndarray) -> np.ndarray:
        """Return rows by their numbers, sorted and distinct; those asked for before are in memory."""
        known, X = self._known
        new = np.setdiff1d(numbers, known, assume_unique=True)
        if len(new):
            if len(known) + len(new) > MAX_KNOWN_ROWS:
                known, X, new = known[:0], X[:0], numbers
            order = np.argsort(np.concatenate([known, new]))
            known, X = np.concatenate([known, new])[order], np.concatenate([X, self.rows[new]])[order]
            self._known = known, X
        return X[np.searchsorted(known, numbers)]

    def largest_sizes(self, share: np.ndarray, *, centered: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return for each kernel the size up to which columns are constant but for rounding, and the largest size.

        Parameters
        ----------
        share : ndarray of shape (n_memory,)
            Weights of the rows in memory, that sum to 1.
        centered : bool
            Whether a size is a standard deviation, or a root of a mean square.
        """
        return self.rows.reduce(find_largest_sizes, _combine_largest, self.kernels, share, centered)

    def mean_squares(self, share: np.ndarray, least: np.ndarray, unit: np.ndarray, *, centered: bool) -> np.ndarray:
        """Return for each kernel the mean square of the sizes above ``least``, in a unit."""
        return self.rows.reduce(sum_squared_sizes, np.add, self.kernels, share, least, unit, centered) / self.n_rows

    def best_scores(
        self, V: np.ndarray, scale: ColumnScale | None, *, centered: bool, signed: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the scaled columns of the largest scores, and their scores.

        Parameters
        ----------
        V : ndarray of shape (n_memory, n_problems)
        scale : ColumnScale, optional
            What columns are divided by; None: nothing.
        centered, signed : bool
            Whether columns are centred over the rows in memory; whether the largest scores count, or the largest
            absolute values.
        """
        args = (self.kernels, V, self.n_rows, scale, centered, signed)
        columns, scores = self.rows.reduce(price_block, _Best(signed), *args)
        require_finite(scores, "library")
        return columns, scores


@dataclass(frozen=True, eq=False)
class ColumnScale:
    """What columns are divided by: their sizes, at least ``floor``; columns of a size up to ``least`` say nothing.

    Parameters
    ----------
    share : ndarray of shape (n_memory,)
        Weights of the rows in memory, that sum to 1.
    centered : bool
        Whether a size is a standard deviation, or a root of a mean square.
    least, floor : ndarray of shape (n_kernels,)
    """

    share: np.ndarray
    centered: bool
    least: np.ndarray
    floor: np.ndarray

    def divisors(self, sizes: np.ndarray, kernel: Any) -> np.ndarray:
        """Return what columns of these sizes, of one kernel or one each, are divided by."""
        return np.where(sizes > self.least[kernel], np.maximum(sizes, self.floor[kernel]), np.inf)


def find_largest_sizes(
    block: np.ndarray, first: int, kernels: Sequence[BoundKernel], share: np.ndarray, centered: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return for each kernel which sizes of the columns at a block's rows are rounding, and the largest size."""
    rounding, largest = np.zeros(len(kernels)), np.zeros(len(kernels))
    for p, sizes, constant in _measure_strips(block, kernels, share, centered):
        rounding[p] = max(rounding[p], constant)
        largest[p] = max(largest[p], sizes.max())
    return rounding, largest


def sum_squared_sizes(
    block: np.ndarray,
    first: int,
    kernels: Sequence[BoundKernel],
    share: np.ndarray,
    least: np.ndarray,
    unit: np.ndarray,
    centered: bool,
) -> np.ndarray:
    """Return for each kernel the sum of squares of the sizes above ``least`` at a block's rows, in a unit."""
    sums = np.zeros(len(kernels))
    for p, sizes, _ in _measure_strips(block, kernels, share, centered):
        sums[p] += np.square(np.where(sizes > least[p], sizes, 0.0) / unit[p]).sum()
    return sums


def price_block(
    block: np.ndarray,
    first: int,
    kernels: Sequence[BoundKernel],
    V: np.ndarray,
    n_rows: int,
    scale: ColumnScale | None,
    centered: bool,
    signed: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns at a block's rows with the largest scores, by their flat numbers, and these scores.

    Sizes are computed anew in each pass, from values that are in the cache: a worker keeps nothing between passes.
    """
    scores, scratch = np.empty((len(kernels), len(block), V.shape[1])), Scratch()
    share = np.zeros(len(V)) if scale is None else scale.share
    weights = np.column_stack([V, share])
    for strip in _strips(len(block), len(V)):
        for p, values in enumerate(evaluate_all(kernels, block[strip], scratch)):
            values = scratch.copy("doubles", values, np.float64)
            if scale is not None and not scale.centered:
                divisors = scale.divisors(_row_sizes(values, share, 0.0, scratch), p)
            if centered:
                values -= values.mean(axis=1, keepdims=True)
            products = values @ weights
            if scale is not None and scale.centered:
                divisors = scale.divisors(_row_sizes(values, share, products[:, -1], scratch), p)
            scores[p, strip] = products[:, :-1] if scale is None else products[:, :-1] / divisors[:, None]
    best, keep = None, _Best(signed)
    for p in range(len(kernels)):
        found = (p * n_rows + first + np.arange(len(block)), scores[p])
        best = keep.select(*found) if best is None else keep(best, found)
    assert best is not None  # a library has a kernel
    return best


def _measure_strips(
    block: np.ndarray, kernels: Sequence[BoundKernel], share: np.ndarray, centered: bool
) -> Iterator[tuple[int, np.ndarray, float]]:
    """Give kernels, sizes of their columns at some rows, and the size up to which these are rounding."""
    scratch = Scratch()
    for strip in _strips(len(block), len(share)):
        for p, values in enumerate(evaluate_all(kernels, block[strip], scratch)):
            rounding = size_of_rounding(float(max(values.max(), -values.min())), values.dtype)
            values, means = scratch.copy("doubles", values, np.float64), 0.0
            if centered:
                values -= values.mean(axis=1, keepdims=True)
                means = values @ share
            yield p, _row_sizes(values, share, means, scratch), rounding


def _row_sizes(values: np.ndarray, share: np.ndarray, means: np.ndarray | float, scratch: Scratch) -> np.ndarray:
    """Return the weighted root mean square of each row less its mean: zero, or what its weighted mean is."""
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.square(values, out=scratch.take("squares", values.shape, np.float64)) @ share
        variances = squares - np.square(means)
    # squares that overflow or underflow, and differences that rounding may decide
    extreme = ~((variances > TINY_SQUARE) & (variances < np.inf) & (variances > MIN_REMAINDER * squares))
    sizes = np.sqrt(np.where(extreme, 0.0, variances))
    if extreme.any():
        sizes[extreme] = column_sizes(values[extreme].T, share, centered=not np.isscalar(means))[0]
    return sizes


def evaluate_all(kernels: Sequence[BoundKernel], X: np.ndarray, scratch: Scratch) -> Iterator[np.ndarray]:
    """Give the values of each kernel between rows and those it is tied to, each until the next one.

    Gaussian kernels share the distances.
    """
    squares: dict[int, np.ndarray] = {}
    for kernel in kernels:
        formula = kernel.formula if isinstance(kernel, BoundPointwise) else None
        if not isinstance(formula, Linear) and not (isinstance(formula, RBF) and formula.keeps_single):
            yield kernel.against(X)
            continue
        assert isinstance(kernel, BoundPointwise)  # which has a formula
        tied, shape, dtype = id(kernel.X), (len(X), kernel.n_rows), np.result_type(X.dtype, kernel.X.dtype, np.float32)
        doubles = (X.astype(np.float64, copy=False), kernel.X.astype(np.float64, copy=False))
        if isinstance(formula, Linear):
            products = np.dot(doubles[0], doubles[1].T, out=scratch.take("products", shape, np.float64))
            yield scratch.copy("values", products, dtype)
            continue
        if tied not in squares:
            squares[tied] = squared_distances(*doubles, work=scratch.take(f"squares {tied}", shape, np.float64))
        # rounded once, as by the formula: columns that are fetched have the scores of the scan
        exponents = np.multiply(squares[tied], -float(formula.gamma), out=scratch.take("exponents", shape, np.float64))
        values = exponents if dtype == np.float64 else scratch.copy("values", exponents, dtype)
        yield np.exp(values, out=values)


class Scratch:
    """Arrays that are used again: new ones of a megabyte, for every strip, cost more than what is computed in them.

    (Workers of Dask give memory back as soon as they can, so that each new array has to be mapped anew.)
    """

    def __init__(self) -> None:
        self._arrays: dict[str, np.ndarray] = {}

    def take(self, name: str, shape: tuple[int, int], dtype: Any) -> np.ndarray:
        """Return an array for a purpose; its values are those of the last use."""
        kept = self._arrays.get(name)
        if kept is None or kept.shape[0] < shape[0] or kept.shape[1] != shape[1] or kept.dtype != dtype:
            kept = self._arrays[name] = np.empty(shape, dtype)
        return kept[: shape[0]]

    def copy(self, name: str, values: np.ndarray, dtype: Any) -> np.ndarray:
        """Return a copy of values in an array for a purpose."""
        out = self.take(name, values.shape, dtype)
        out[...] = values
        return out


class _Best:
    """Keeps, for each problem, the columns of the largest scores."""

    def __init__(self, signed: bool):
        self.signed = signed

    def __call__(
        self, left: tuple[np.ndarray, np.ndarray], right: tuple[np.ndarray, np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        return self.select(np.concatenate([left[0], right[0]]), np.concatenate([left[1], right[1]]))

    def select(self, columns: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if len(columns) <= MAX_BEST:
            return columns, scores
        size = scores if self.signed else np.abs(scores)
        top = np.argpartition(size, -MAX_BEST, axis=0)[-MAX_BEST:]
        kept = np.unique(top)
        return columns[kept], scores[kept]


def _strips(n_rows: int, width: int) -> list[slice]:
    height = max(1, STRIP_BYTES // (8 * max(1, width)))
    return [slice(start, min(start + height, n_rows)) for start in range(0, n_rows, height)]


def _combine_largest(
    left: tuple[np.ndarray, np.ndarray], right: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    return np.maximum(left[0], right[0]), np.maximum(left[1], right[1])

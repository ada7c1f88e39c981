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
from typing import Any

import numpy as np
from sklearn import get_config

from ..distributed.rows import PartitionedRows, reduce_kept
from .algebra import Product, Scaled, Sum
from .bandwidth import squared_distances
from .base import BLOCK_SHARE, BoundKernel, Kernel
from .bound_library import BoundLibrary, column_sizes
from .checks import require_finite
from .library import Entry, KernelLibrary
from .pointwise import RBF, BoundPointwise, Linear, PointwiseKernel
from .wrappers import Normalized, OnColumns

MAX_BOUND_ROWS = 20_000  # rows that transformers and forests learn from
SEED = 0  # of the draw of these rows
STRIP_BYTES = 2**20  # of kernel values, in double precision, that a block works on at a time: cache
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

    def measure(self, share: np.ndarray, *, centered: bool) -> list[Any]:
        """Compute the sizes of all columns, and leave them where their rows are.

        Parameters
        ----------
        share : ndarray of shape (n_memory,)
            Weights of the rows in memory, that sum to 1.
        centered : bool
            Whether a size is a standard deviation, or a root of a mean square.
        """
        return self.rows.keep(measure_block, self.kernels, share, centered)

    def largest(self, sizes: list[Any]) -> tuple[np.ndarray, np.ndarray]:
        """Return for each kernel the size up to which columns are constant but for rounding, and the largest size."""
        return reduce_kept(sizes, _largest_sizes, _combine_largest)

    def mean_squares(self, sizes: list[Any], least: np.ndarray, unit: np.ndarray) -> np.ndarray:
        """Return for each kernel the mean square of the sizes above ``least``, in a unit."""
        return reduce_kept(sizes, _square_sizes, np.add, least, unit) / self.n_rows

    def best_scores(
        self,
        V: np.ndarray,
        sizes: list[Any] | None,
        least: np.ndarray,
        floor: np.ndarray,
        *,
        centered: bool,
        signed: bool,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the scaled columns of the largest scores, and their scores.

        Parameters
        ----------
        V : ndarray of shape (n_memory, n_problems)
        sizes : list, optional
            Of :meth:`measure`: what columns are divided by; None: nothing.
        least, floor : ndarray of shape (n_kernels,)
            Columns of a size up to ``least`` say nothing; the scale of others is at least ``floor``.
        centered, signed : bool
            Whether columns are centred over the rows in memory; whether the largest scores count, or the largest
            absolute values.
        """
        args = (self.kernels, V, self.n_rows, least, floor, centered, signed)
        function = price_block if sizes is not None else price_plain_block
        columns, scores = self.rows.reduce(function, _Best(signed), *args, state=sizes)
        require_finite(scores, "library")
        return columns, scores


def measure_block(
    block: np.ndarray, first: int, kernels: Sequence[BoundKernel], share: np.ndarray, centered: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return the sizes of the columns at a block's rows, shape (n_kernels, n_rows), and which sizes are rounding."""
    sizes, rounding, scratch = np.empty((len(kernels), len(block))), np.zeros(len(kernels)), Scratch()
    for strip in _strips(len(block), len(share)):
        for p, values in enumerate(evaluate_all(kernels, block[strip], scratch)):
            sizes[p, strip], constant = column_sizes(values.T, share, centered=centered)
            rounding[p] = max(rounding[p], constant)
    return sizes, rounding


def price_block(
    block: np.ndarray,
    first: int,
    measured: tuple[np.ndarray, np.ndarray] | None,
    kernels: Sequence[BoundKernel],
    V: np.ndarray,
    n_rows: int,
    least: np.ndarray,
    floor: np.ndarray,
    centered: bool,
    signed: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns at a block's rows with the largest scores, by their flat numbers, and these scores."""
    scores, scratch = np.empty((len(kernels), len(block), V.shape[1])), Scratch()
    for strip in _strips(len(block), len(V)):
        for p, values in enumerate(evaluate_all(kernels, block[strip], scratch)):
            values = scratch.copy("doubles", values, np.float64)
            if centered:
                values -= values.mean(axis=1, keepdims=True)
            scores[p, strip] = values @ V
    best, keep = None, _Best(signed)
    for p in range(len(kernels)):
        if measured is not None:
            sizes = measured[0][p]
            scores[p] /= np.where(sizes > least[p], np.maximum(sizes, floor[p]), np.inf)[:, None]
        found = (p * n_rows + first + np.arange(len(block)), scores[p])
        best = keep.select(*found) if best is None else keep(best, found)
    assert best is not None  # a library has a kernel
    return best


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
            exact = squared_distances(*doubles, work=scratch.take(f"squares {tied}", shape, np.float64))
            squares[tied] = exact if dtype == np.float64 else scratch.copy(f"rounded squares {tied}", exact, dtype)
        factor = dtype.type(-float(formula.gamma))
        values = np.multiply(squares[tied], factor, out=scratch.take("values", shape, dtype))
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


def price_plain_block(block: np.ndarray, first: int, *args: Any) -> tuple[np.ndarray, np.ndarray]:
    """Price columns that are not scaled."""
    return price_block(block, first, None, *args)


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


def _largest_sizes(measured: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    return measured[1], measured[0].max(axis=1)


def _combine_largest(
    left: tuple[np.ndarray, np.ndarray], right: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    return np.maximum(left[0], right[0]), np.maximum(left[1], right[1])


def _square_sizes(measured: tuple[np.ndarray, np.ndarray], least: np.ndarray, unit: np.ndarray) -> np.ndarray:
    sizes = np.where(measured[0] > least[:, None], measured[0], 0.0)
    return np.square(sizes / unit[:, None]).sum(axis=1)

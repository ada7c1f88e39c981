r"""A library of kernels, and the reductions of it that solvers ask for.

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

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn import get_config
from sklearn.utils import check_array

from .base import ALL, BoundKernel, Kernel, Rows, _by_head, count
from .diagnosis import KernelDiagnosis, diagnose
from .learned import CombinedKernel
from .pointwise import Linear, Polynomial, rbf_family

BLOCK_SHARE = 0.25  # of the working memory: sums, products and normalised kernels take several blocks at a time
CONSTANT = 1000.0  # times machine precision: columns that deviate by less are constant up to rounding
STRIP_BYTES = 2**20  # a strip of a block that stays in the processor's cache while it is reduced


@dataclass(frozen=True)
class Entry:
    """One kernel of a library, with its unique name and the source of data it looks at."""

    name: str
    kernel: Kernel

    @property
    def source(self) -> str:
        """The source of data the kernel looks at."""
        return self.kernel.source

    @property
    def is_named_by_repr(self) -> bool:
        """Whether the name is what the library calls a kernel that was given none."""
        return re.fullmatch(re.escape(_name_by_repr(self.kernel)) + r"( #\d+)?", self.name) is not None


class KernelLibrary:
    """An ordered list of recipes, each with a unique name.

    Parameters
    ----------
    kernels : sequence of Kernel or (name, Kernel) pairs, or mapping from names to kernels
        A kernel without a name is named by its ``repr``. Nested sequences are flattened, so that
        ``[Linear(), rbf_family()]`` is a library of five.

    Attributes
    ----------
    entries : tuple of Entry

    Examples
    --------
    >>> from kernelweave import KernelLibrary, Linear, RBF
    >>> library = KernelLibrary([Linear(), ("narrow", RBF(multiple=4.0))])
    >>> library.names
    ('Linear()', 'narrow')
    >>> library.replace(narrow__multiple=8.0)
    KernelLibrary([Linear(), ('narrow', RBF(multiple=8.0))])
    """

    def __init__(self, kernels: Sequence[Any] | Mapping[str, Kernel]):
        self.entries = tuple(_named(list(_flattened(kernels))))
        if not self.entries:
            raise ValueError("The kernel library is empty. Give at least one kernel, or None for the default library.")

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in library order."""
        return tuple(entry.name for entry in self.entries)

    @property
    def allows_missing(self) -> bool:
        """Whether some kernel says what a missing value means."""
        return any(entry.kernel.allows_missing for entry in self.entries)

    def bind(
        self,
        X: Any,
        rng: np.random.Generator,
        sample_weight: np.ndarray | None = None,
        *,
        feature_names: Sequence[str] | None = None,
        cache_size: float = 0.0,
    ) -> BoundLibrary:
        """Tie every recipe to the rows of ``X``; each draws from its own stream of ``rng``.

        Parameters
        ----------
        X : array or CSR of shape (n_rows, n_features)
        rng : numpy.random.Generator
        sample_weight : ndarray of shape (n_rows,), optional
        feature_names : sequence of str, optional
            Names of the columns, which :class:`OnColumns` may refer to.
        cache_size : float, default=0
            Megabytes of kernel values kept between walks.
        """
        streams = rng.spawn(len(self.entries))
        bound = [
            entry.kernel.resolve(feature_names, X.shape[1]).bind(X, stream, sample_weight)
            for entry, stream in zip(self.entries, streams, strict=True)
        ]
        return BoundLibrary(bound, self.entries, n_features=X.shape[1], cache_size=cache_size)

    def diagnose(self, X: Any, *, max_rows: int = 2000, random_state: int | None = 0) -> list[KernelDiagnosis]:
        """Report symmetry, smallest eigenvalue, mean diagonal and redundancy of every kernel on ``X``.

        Above ``max_rows`` rows a random subsample is examined.

        Examples
        --------
        >>> import numpy as np
        >>> from kernelweave import KernelLibrary, Linear, Sigmoid
        >>> X = np.random.default_rng(0).normal(size=(50, 3))
        >>> for report in KernelLibrary([Linear(), Sigmoid()]).diagnose(X):
        ...     print(report.name, report.is_psd)
        Linear() True
        Sigmoid() False
        """
        names = [str(name) for name in X.columns] if hasattr(X, "columns") else None
        finite: Any = "allow-nan" if self.allows_missing else True
        X = check_array(X, accept_sparse="csr", dtype=np.float64, ensure_all_finite=finite)
        rng = np.random.default_rng(random_state)
        if X.shape[0] > max_rows:
            X = X[np.sort(rng.choice(X.shape[0], max_rows, replace=False))]
        return diagnose(self.bind(X, rng, feature_names=names), rng)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the kernels, and under ``name__parameter`` those of each."""
        params: dict[str, Any] = {"kernels": [(entry.name, entry.kernel) for entry in self.entries]}
        if deep:
            for entry in self.entries:
                params[entry.name] = entry.kernel
                nested = entry.kernel.get_params()
                params.update({f"{entry.name}__{key}": value for key, value in nested.items()})
        return params

    def replace(self, **params: Any) -> Self:
        """Return a library with some kernels, or parameters of kernels, changed.

        A kernel that is named by its ``repr`` is named by its new ``repr``.
        """
        if "kernels" in params:
            return type(self)(params.pop("kernels")).replace(**params)
        changed = _by_head(params)
        for name in changed:
            if name not in self.names:
                raise ValueError(f"The library has no kernel {name!r}; it has {', '.join(map(repr, self.names))}.")
        kernels: list[Any] = []
        for entry in self.entries:
            changes = changed.get(entry.name, {})
            kernel = changes.pop("", entry.kernel)
            kernel = kernel.replace(**changes) if changes else kernel
            kernels.append(kernel if entry.name in changed and entry.is_named_by_repr else (entry.name, kernel))
        return type(self)(kernels)

    def __sklearn_clone__(self) -> Self:
        return self  # immutable

    def __len__(self) -> int:
        return len(self.entries)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KernelLibrary) and self.entries == other.entries

    def __hash__(self) -> int:
        return hash(self.entries)

    def __repr__(self) -> str:
        shown = [
            repr(entry.kernel) if entry.name == _name_by_repr(entry.kernel) else repr((entry.name, entry.kernel))
            for entry in self.entries
        ]
        return f"KernelLibrary([{', '.join(shown)}])"


def default_library() -> KernelLibrary:
    """Return the library that ``kernels=None`` means."""
    return KernelLibrary([Linear(), Polynomial(), *rbf_family()])


def as_library(kernels: Any) -> KernelLibrary:
    """Return a library from what a user may pass as ``kernels``."""
    if kernels is None:
        return default_library()
    if isinstance(kernels, KernelLibrary):
        return kernels
    return KernelLibrary([kernels] if isinstance(kernels, Kernel) else kernels)


class BoundLibrary:
    """A library tied to a sample: ``len(kernels) * n_rows`` columns that are computed when asked for."""

    def __init__(
        self,
        kernels: Sequence[BoundKernel],
        entries: Sequence[Entry],
        *,
        n_features: int = 0,
        cache_size: float = 0.0,
    ):
        self.kernels = tuple(kernels)
        self.n_features = n_features
        self.entries = tuple(entries)
        self.n_rows = self.kernels[0].n_rows
        self._cache = _BlockCache(int(cache_size * 2**20))

    @property
    def n_columns(self) -> int:
        """Number of basis functions, kernels times rows."""
        return len(self.kernels) * self.n_rows

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

    def scores(
        self, V: np.ndarray, rows: np.ndarray, order: Sequence[int] | None = None, *, centered: bool = False
    ) -> Iterator[tuple[slice, np.ndarray]]:
        r"""Walk all columns and give :math:`K_{rows}^\top V`, block by block.

        Parameters
        ----------
        V : ndarray of shape (n_selected, n_vectors)
        rows : ndarray of shape (n_selected,)
        order : sequence of int, optional
            Kernels in the order they are visited; library order by default.
        centered : bool, default=False
            Whether each column is centred over ``rows`` first. Where the columns of ``V`` sum to zero this changes
            nothing but rounding: wide kernels are nearly constant, and the constant would cancel.

        Yields
        ------
        columns : slice
            Flat numbers of the columns of this block.
        scores : ndarray of shape (n_block_columns, n_vectors)
        """
        for columns, block in self._walk(rows, order):
            if centered:
                scores = np.concatenate([_centered(block[:, strip]).T @ V for strip in _strip_slices(block)])
            else:
                scores = _strips(block, lambda strip: strip.T @ V)
            del block  # so that one block at a time is in memory
            self._refuse_not_finite(scores, columns.start // self.n_rows)
            yield columns, scores

    def column_norms(self, weight: np.ndarray, rows: np.ndarray) -> np.ndarray:
        r"""Return the weighted rms :math:`\sqrt{\sum_i w_i K_{ij}^2 / \sum_i w_i}` of every column over ``rows``."""
        return self._column_sizes(weight, rows, centered=False)

    def column_deviations(self, weight: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return the weighted standard deviation of every column over ``rows``."""
        return self._column_sizes(weight, rows, centered=True)

    def _column_sizes(self, weight: np.ndarray, rows: np.ndarray, *, centered: bool) -> np.ndarray:
        out = np.empty(self.n_columns)
        share = weight / weight.sum()
        for columns, block in self._walk(rows):
            rounding = (CONSTANT * np.finfo(block.dtype).eps) ** 2 if centered else 0.0
            largest = np.maximum(block.max(axis=0), -block.min(axis=0)).astype(np.float64)  # no copy of the block
            self._refuse_not_finite(largest, columns.start // self.n_rows)
            unit = np.where(largest > 0, largest, 1.0)  # squares of numbers up to 1 cannot overflow
            squares = np.empty(len(unit))
            for strip in _strip_slices(block):
                values = block[:, strip] / unit[strip]
                if centered:
                    values -= share @ values
                squares[strip] = share @ np.square(values, out=values)
            squares[squares <= rounding] = 0.0  # a constant column deviates by rounding only
            out[columns] = largest * np.sqrt(squares)
            del block
        return out

    def quadratic_forms(self, V: np.ndarray, rows: np.ndarray) -> np.ndarray:
        r"""Return :math:`\sum_c V_c^\top K_p V_c` for every kernel, with ``K_p`` at ``rows`` and ``rows``."""
        rows = self._row_numbers(rows)
        out = np.zeros(len(self.kernels))
        for p, kernel in enumerate(self.kernels):
            for part in self._parts(len(rows), len(rows)):
                out[p] += np.vdot(V[part], _strips(kernel.block(rows, rows[part]), lambda strip: strip.T @ V))
            self._refuse_not_finite(out[p], p)
        return out

    def frobenius(self, rows: np.ndarray) -> np.ndarray:
        r"""Return the matrix of inner products :math:`\langle K_p, K_q \rangle` at ``rows`` and ``rows``."""
        rows = self._row_numbers(rows)
        out = np.zeros((len(self.kernels),) * 2)
        for part in self._parts(len(rows) * len(self.kernels), len(rows)):
            blocks = [kernel.block(rows, rows[part]).astype(np.float64, copy=False).ravel() for kernel in self.kernels]
            for p, left in enumerate(blocks):
                for q in range(p, len(blocks)):
                    out[p, q] += left @ blocks[q]
        for p, squared in enumerate(np.diag(out)):
            self._refuse_not_finite(squared, p)
        return out + np.triu(out, 1).T

    def combine(self, weights: np.ndarray, rows: Rows, cols: Rows) -> np.ndarray:
        r"""Return :math:`\sum_p w_p K_p` at some rows and columns."""
        return self.combined(weights).block(rows, cols)

    def combined(self, weights: np.ndarray) -> CombinedKernel:
        """Return the weighted sum of the kernels as one bound kernel."""
        return CombinedKernel(self.kernels, weights)

    def _walk(self, rows: np.ndarray, order: Sequence[int] | None = None) -> Iterator[tuple[slice, np.ndarray]]:
        """Give every block of columns at ``rows``; from the cache where it holds it."""
        rows = self._row_numbers(rows)
        self._cache.attend(rows)
        for p in range(len(self.kernels)) if order is None else order:
            for part in self._parts(len(rows), self.n_rows):
                key = (p, part.start, part.stop)  # the working memory, hence the width, may change between walks
                block = self._cache.get(key)
                if block is None:
                    block = self.kernels[p].block(rows, part)
                    self._cache.put(key, block)
                yield slice(p * self.n_rows + part.start, p * self.n_rows + part.stop), block
                del block

    def _parts(self, height: int, n_columns: int) -> Iterator[slice]:
        """Cut columns into parts whose block, with what computing it takes, fits the working memory."""
        n_bytes = BLOCK_SHARE * get_config()["working_memory"] * 2**20
        width = max(1, int(n_bytes / (8 * (height + self.n_features + 1))))
        for start in range(0, n_columns, width):
            yield slice(start, min(start + width, n_columns))

    def _row_numbers(self, rows: Any) -> np.ndarray:
        """Return row numbers from what may be a mask or a list."""
        return np.arange(self.n_rows)[rows]

    def _refuse_not_finite(self, values: np.ndarray | float, kernel: int) -> None:
        if not np.isfinite(values).all():
            raise ValueError(
                f"The kernel {self.entries[kernel].name} gave values that are not finite (NaN or inf). Check the "
                "function or matrix it is made from, or scale the features: large values overflow in polynomials."
            )


class _BlockCache:
    """Keeps the first blocks of a walk up to a number of bytes, for one set of rows at a time.

    Walks are cyclic, so evicting the oldest block would always evict the next one needed: blocks that do not
    fit are simply computed again.
    """

    def __init__(self, n_bytes: int):
        self.n_bytes = n_bytes
        self.used = 0
        self.rows: np.ndarray | None = None
        self.blocks: dict[tuple[int, int, int], np.ndarray] = {}

    def attend(self, rows: np.ndarray) -> None:
        if self.rows is None or not np.array_equal(self.rows, rows):
            self.rows, self.blocks, self.used = np.array(rows), {}, 0

    def get(self, key: tuple[int, int, int]) -> np.ndarray | None:
        return self.blocks.get(key)

    def put(self, key: tuple[int, int, int], block: np.ndarray) -> None:
        if self.used + block.nbytes <= self.n_bytes:
            self.blocks[key] = block
            self.used += block.nbytes


def _strips(block: np.ndarray, reduce: Any) -> np.ndarray:
    """Reduce a block in double precision without a double-precision copy of the whole."""
    if block.dtype == np.float64:
        return reduce(block)
    return np.concatenate([reduce(block[:, strip].astype(np.float64)) for strip in _strip_slices(block)])


def _centered(strip: np.ndarray) -> np.ndarray:
    """Return columns minus their means, in double precision."""
    return strip - strip.mean(axis=0, dtype=np.float64)


def _strip_slices(block: np.ndarray) -> Iterator[slice]:
    width = max(1, STRIP_BYTES // (8 * max(1, block.shape[0])))
    for start in range(0, block.shape[1], width):
        yield slice(start, min(start + width, block.shape[1]))


def _flattened(kernels: Any) -> Iterator[tuple[str | None, Kernel]]:
    if isinstance(kernels, KernelLibrary):
        for entry in kernels.entries:
            yield None if entry.is_named_by_repr else entry.name, entry.kernel
    elif isinstance(kernels, Kernel):
        yield None, kernels
    elif isinstance(kernels, Mapping):
        yield from _flattened(list(kernels.items()))
    elif isinstance(kernels, tuple) and len(kernels) == 2 and isinstance(kernels[0], str):
        if not isinstance(kernels[1], Kernel):
            raise TypeError(f"The library's entry {kernels[0]!r} is {kernels[1]!r}; expected a kernel.")
        yield kernels[0], kernels[1]
    elif isinstance(kernels, Sequence) and not isinstance(kernels, str):
        for item in kernels:
            yield from _flattened(item)
    else:
        raise TypeError(
            f"A kernel library holds kernels such as Linear() or RBF(); got {kernels!r} of type "
            f"{type(kernels).__name__}. Wrap a function as FromCallable(f), a matrix as Precomputed(K)."
        )


def _named(pairs: list[tuple[str | None, Kernel]]) -> Iterator[Entry]:
    given = [name for name, _ in pairs if name is not None]
    wrong = sorted({name for name in given if given.count(name) > 1 or "__" in name or name == "kernels"})
    if wrong:
        raise ValueError(f"Kernel names must be unique, without '__' and other than 'kernels'; got {wrong}.")
    taken = set(given)
    for name, kernel in pairs:
        entry = Entry(_free(_name_by_repr(kernel), taken) if name is None else name, kernel)
        taken.add(entry.name)
        yield entry


def _name_by_repr(kernel: Kernel) -> str:
    """Return the representation on one line, without the ``__`` that separates names from parameters."""
    return " ".join(repr(kernel).split()).replace("__", "_")


def _free(name: str, taken: set[str]) -> str:
    numbered = (f"{name} #{number}" for number in itertools.count(2))
    return name if name not in taken else next(other for other in numbered if other not in taken)

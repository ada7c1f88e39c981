"""Bindings that several fits share: inside ``shared_bindings`` what depends on rows alone is computed once.

Fits of other labels, costs or methods on the same rows bind the same recipes again and again: widths, powers, forests,
neighbour graphs, features of anchors, eigenvectors. Within the context an equal recipe that is tied to the same rows,
alone or nested in another one, is the same bound kernel.

The same rows are the same *memory* (address, shape, strides and type of the array, or of the three arrays of a CSR
matrix) with equal sample weights; the context keeps the rows alive, so that no address is used twice, and they must not
be changed in it. scikit-learn's validation leaves an array of float64 where it is, and copies frames and other types.
What a thread shares, other threads do not see.

Whatever is drawn at random comes from a stream that depends on the seed of the context and on the recipe alone: which
estimator comes first, and its ``random_state``, make no difference. Without a context nothing is kept, and everything
draws from the generator that is handed down.
"""

from __future__ import annotations

import hashlib
import threading
import weakref
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import numpy as np
from scipy import sparse

from .base import ALL, BoundKernel, Kernel

MAX_KEPT_BYTES = 2**29  # of the matrices that a context keeps, beside what bound kernels keep themselves
MAX_KEPT_SHARE = 0.25  # of it for one matrix: 4096 rows

T = TypeVar("T")


@contextmanager
def shared_bindings(seed: int) -> Iterator[None]:
    """Let all fits within the context share what they compute from the same rows.

    Parameters
    ----------
    seed : int
        Of whatever kernels draw at random; not negative.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import RBF, ForestKernel
    >>> from kernelweave.kernels.library import KernelLibrary
    >>> from kernelweave.kernels.sharing import shared_bindings
    >>> X, rng = np.random.default_rng(0).normal(size=(30, 2)), np.random.default_rng(1)
    >>> with shared_bindings(seed=0):
    ...     alone = KernelLibrary([ForestKernel()]).bind(X, rng).kernels[0]
    ...     nested = KernelLibrary([RBF() + ForestKernel()]).bind(X, rng).kernels[0]
    >>> nested.terms[1] is alone
    True
    """
    token = _ACTIVE.set(_Bindings(seed))
    try:
        yield
    finally:
        _ACTIVE.reset(token)


def once(
    what: Hashable,
    of: Any,
    make: Callable[[Any], T],
    rng: np.random.Generator | None = None,
    sample_weight: np.ndarray | None = None,
) -> T:
    """Return ``make(rng)``; within a context the result of the first call, which draws from a stream of its own.

    Parameters
    ----------
    what : hashable
        What is made: equal for equal things, with a ``repr`` that is the same in every run.
    of : array, CSR or BoundKernel
        What it is made of: rows, or a bound kernel, with which it is forgotten.
    make : callable
        Makes it, from a generator. It must not change what was made before.
    rng : numpy.random.Generator, optional
        What it draws from without a context; None where nothing is drawn.
    sample_weight : ndarray of shape (n_rows,), optional
        Weights that it depends on.
    """
    bindings = _find_active()
    if bindings is None:
        return make(rng)
    kept, key = bindings.place(what, of, sample_weight)
    if key not in kept:
        kept[key] = make(bindings.stream(what))
    return kept[key]


def bind_once(kernel: Kernel, X: Any, rng: np.random.Generator, sample_weight: np.ndarray | None = None) -> BoundKernel:
    """Tie a recipe to rows; within a context, the same bound kernel for an equal recipe and the same rows."""
    return once(kernel, X, lambda stream: kernel.bind(X, stream, sample_weight), rng, sample_weight)


def bind_together_once(
    kernels: Sequence[Kernel],
    X: Any,
    rngs: Sequence[np.random.Generator],
    sample_weight: np.ndarray | None = None,
) -> list[BoundKernel]:
    """Tie recipes of one class to rows; within a context only those that are not yet tied to them."""
    kind, bindings = type(kernels[0]), _find_active()
    if bindings is None:
        return kind.bind_together(kernels, X, rngs, sample_weight)
    kept = bindings.place(kind, X, sample_weight)[0]
    places = {kernel: bindings.place(kernel, X, sample_weight)[1] for kernel in kernels}
    missing = [kernel for kernel, place in places.items() if place not in kept]
    if missing:
        bound = kind.bind_together(missing, X, [bindings.stream(kernel) for kernel in missing], sample_weight)
        kept.update(zip([places[kernel] for kernel in missing], bound, strict=True))
    return [kept[places[kernel]] for kernel in kernels]


def whole_block(kernel: BoundKernel) -> np.ndarray:
    """Return a bound kernel at all rows, a new array; within a context it is evaluated once if it is not too large."""
    kept = kept_block(kernel)
    return kernel.block(ALL, ALL) if kept is None else kept.copy()


def kept_block(kernel: BoundKernel) -> np.ndarray | None:
    """Return a bound kernel at all rows, not to be changed, where a context keeps it; None where none does."""
    return kept_array("block", kernel, kernel.n_rows**2, lambda: kernel.block(ALL, ALL))


def whole_factor(kernel: BoundKernel) -> np.ndarray | None:
    """Return the factor of a bound kernel, not to be changed; within a context it is computed once, likewise."""
    if kernel.rank is None:
        return kernel.factor()
    kept = kept_array("factor", kernel, kernel.n_rows * kernel.rank, kernel.factor)
    return kernel.factor() if kept is None else kept


def kept_array(
    what: str, kernel: BoundKernel, n_values: int, make: Callable[[], np.ndarray | None]
) -> np.ndarray | None:
    """Return an array that belongs to a bound kernel, not to be changed, where a context has room to keep it."""
    bindings = _find_active()
    if bindings is None or not bindings.has_room(what, kernel, n_values):
        return None
    return once(what, kernel, lambda _: make())


def keep_part(what: str, kernel: BoundKernel, part: BoundKernel, select: Callable[[np.ndarray], np.ndarray]) -> None:
    """Keep for a part of a bound kernel what is selected from an array of the whole, if a context keeps that."""
    bindings = _find_active()
    if bindings is not None:
        kept, key = bindings.place(what, kernel, None)
        if key in kept:
            once(what, part, lambda _: select(kept[key]))


def is_shared() -> bool:
    """Return whether bindings are shared here."""
    return _find_active() is not None


class _Bindings:
    """What is kept in a context, by what it is and what it is made of.

    Of bound kernels, of which fits make many that live for a moment, things are kept as long as these live.
    """

    def __init__(self, seed: int):
        self.seed = seed
        self.thread = threading.get_ident()
        self._of_rows: dict[Hashable, Any] = {}
        self._of_kernels: weakref.WeakKeyDictionary[BoundKernel, dict[Hashable, Any]] = weakref.WeakKeyDictionary()
        self._alive: dict[Hashable, Any] = {}  # rows, by their memory
        self._weights: dict[bytes, int] = {}

    def place(self, what: Hashable, of: Any, sample_weight: np.ndarray | None) -> tuple[dict[Hashable, Any], Hashable]:
        """Return where a thing is kept, and under which key."""
        weight = None
        if sample_weight is not None:
            values = np.ascontiguousarray(sample_weight, dtype=np.float64).tobytes()
            weight = self._weights.setdefault(values, len(self._weights))
        if isinstance(of, BoundKernel):
            return self._of_kernels.setdefault(of, {}), (what, weight)
        memory = _find_memory(of)
        self._alive.setdefault(memory, of)
        return self._of_rows, (what, memory, weight)

    def stream(self, what: Hashable) -> np.random.Generator:
        """Return the generator that a thing draws from."""
        digest = hashlib.sha256(repr(what).encode()).digest()
        return np.random.default_rng([self.seed, *np.frombuffer(digest, dtype="<u4").tolist()])

    def has_room(self, what: str, kernel: BoundKernel, n_values: int) -> bool:
        """Return whether an array of a bound kernel is kept, or may be kept beside those of others that live."""
        kept, key = self.place(what, kernel, None)
        arrays = [each for values in self._of_kernels.values() for each in values.values()]
        n_bytes = sum(each.nbytes for each in arrays if isinstance(each, np.ndarray))
        return key in kept or 8 * n_values <= min(MAX_KEPT_SHARE * MAX_KEPT_BYTES, MAX_KEPT_BYTES - n_bytes)


_ACTIVE: ContextVar[_Bindings | None] = ContextVar("shared bindings", default=None)


def _find_active() -> _Bindings | None:
    """Return the bindings of this thread; a new thread may begin with a copy of the variables of another."""
    bindings = _ACTIVE.get()
    return None if bindings is None or bindings.thread != threading.get_ident() else bindings


def _find_memory(X: Any) -> Hashable:
    """Return where the numbers of rows are: equal for two objects only if these are the same rows."""
    parts = (X.data, X.indices, X.indptr) if sparse.issparse(X) else (np.asarray(X),)
    return (X.shape, *((part.ctypes.data, part.shape, part.strides, part.dtype.str) for part in parts))

"""A library of kernels: an ordered list of recipes with names, which binds to a sample as one thing."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from .base import BoundKernel, Kernel, _group_by_head
from .bound_library import BoundLibrary
from .column_names import read_rows
from .diagnosis import KernelDiagnosis, diagnose
from .sharing import bind_together_once
from .short_text import MAX_LENGTH, cut_text, list_some, name_some, short_repr

MAX_REPR = 2000  # characters, up to which the ``repr`` of a library can be evaluated; a longer one is a description


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
        A kernel without a name is named by its ``repr``, or its ``str`` where that is long. Nested sequences are
        flattened, so that ``[Linear(), rbf_family()]`` is a library of five.
    priority : sequence of str, optional
        Names of kernels whose columns stratified pricing looks at first, in this order; the others follow, cheapest
        kernels first.

    Attributes
    ----------
    entries : tuple of Entry
        The kernels in the order given, each with ``name``, ``kernel`` and ``source``.

    See Also
    --------
    rbf_family : RBF kernels of several widths.
    manifold_family : Kernels that follow the unlabelled rows.
    table_library : Kernels for the columns of a table.
    one_kernel_per_group : The same kernels for each of several sources.

    Examples
    --------
    >>> from kernelweave import KernelLibrary, Linear, RBF
    >>> library = KernelLibrary([Linear(), ("narrow", RBF(multiple=4.0))])
    >>> library.names
    ('Linear()', 'narrow')
    >>> library.replace(narrow__multiple=8.0)
    KernelLibrary([Linear(), ('narrow', RBF(multiple=8.0))])
    """

    def __init__(self, kernels: Sequence[Any] | Mapping[str, Kernel], *, priority: Sequence[str] | None = None):
        self.entries = tuple(_name_entries(list(_flatten(kernels))))
        if not self.entries:
            raise ValueError("The kernel library is empty. Give at least one kernel, or None for the default library.")
        self.priority = () if priority is None else tuple(priority)
        unknown = [name for name in self.priority if name not in self.names]
        if unknown or len(set(self.priority)) < len(self.priority):
            raise ValueError(
                f"priority must name kernels of the library, each once; got {list_some(self.priority)}, the library "
                f"has {name_some(self.names)}."
            )

    @property
    def order(self) -> tuple[int, ...]:
        """Numbers of the kernels in the order of stratified pricing: by priority, then by cost."""
        first = [self.names.index(name) for name in self.priority]
        rest = [p for p in range(len(self.entries)) if p not in first]
        return (*first, *sorted(rest, key=lambda p: self.entries[p].kernel.cost))

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

        Recipes of one kind are tied together, so that they may share what they have in common.

        Parameters
        ----------
        X : array or CSR of shape (n_rows, n_features)
            The rows, labelled and unlabelled.
        rng : numpy.random.Generator
            Source of whatever kernels draw at random.
        sample_weight : ndarray of shape (n_rows,), optional
            Weights of the rows in bandwidths, centres and mean diagonals; all equal by default.
        feature_names : sequence of str, optional
            Names of the columns, which :class:`OnColumns` may refer to.
        cache_size : float, default=0
            Megabytes of kernel values kept between passes over the data.

        Returns
        -------
        BoundLibrary
            The kernels at these rows, read by blocks.
        """
        streams = rng.spawn(len(self.entries))
        recipes = [entry.kernel.resolve(feature_names, X.shape[1]) for entry in self.entries]
        bound: dict[int, BoundKernel] = {}
        for kind in dict.fromkeys(type(recipe) for recipe in recipes):
            here = [p for p, recipe in enumerate(recipes) if type(recipe) is kind]
            together = bind_together_once([recipes[p] for p in here], X, [streams[p] for p in here], sample_weight)
            bound.update(zip(here, together, strict=True))
        kernels = [bound[p] for p in range(len(recipes))]
        return BoundLibrary(kernels, self.entries, self.order, n_features=X.shape[1], cache_size=cache_size)

    def diagnose(self, X: Any, *, max_rows: int = 2000, random_state: int | None = 0) -> list[KernelDiagnosis]:
        """Report symmetry, smallest eigenvalue, mean diagonal and redundancy of every kernel on ``X``.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            Rows to bind the kernels to.
        max_rows : int, default=2000
            Largest number of rows to examine; of more, a random subsample is.
        random_state : int, default=0
            Seed of the subsample and of whatever kernels draw at random.

        Returns
        -------
        list of KernelDiagnosis
            One for each kernel, in library order.

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
        X, names = read_rows(X, allows_missing=self.allows_missing, dtypes=[np.float64])
        rng = np.random.default_rng(random_state)
        if X.shape[0] > max_rows:
            X = X[np.sort(rng.choice(X.shape[0], max_rows, replace=False))]
        return diagnose(self.bind(X, rng, feature_names=names), rng)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the kernels, and under ``name__parameter`` the parameters of each.

        Parameters
        ----------
        deep : bool, default=True
            Whether to list each kernel by its name, with its parameters.

        Returns
        -------
        dict
            Values by name; ``"kernels"`` is the list of pairs of name and kernel.
        """
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

        Parameters
        ----------
        **params : dict
            New values by name, with the names of :meth:`get_params`.

        Returns
        -------
        KernelLibrary
            The library itself does not change.
        """
        if "kernels" in params:
            return type(self)(params.pop("kernels"), priority=self.priority).replace(**params)
        changed = _group_by_head(params)
        for name in changed:
            if name not in self.names:
                raise ValueError(f"The library has no kernel {cut_text(name)!r}; it has {name_some(self.names)}.")
        kernels: list[Any] = []
        for entry in self.entries:
            changes = changed.get(entry.name, {})
            kernel = changes.pop("", entry.kernel)
            kernel = kernel.replace(**changes) if changes else kernel
            kernels.append(kernel if entry.name in changed and entry.is_named_by_repr else (entry.name, kernel))
        changed_library = type(self)(kernels)
        renamed = dict(zip(self.names, changed_library.names, strict=True))
        return type(self)(kernels, priority=[renamed[name] for name in self.priority])

    def __sklearn_clone__(self) -> Self:
        return self  # immutable

    def __len__(self) -> int:
        return len(self.entries)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KernelLibrary) and (self.entries, self.priority) == (other.entries, other.priority)

    def __hash__(self) -> int:
        return hash((self.entries, self.priority))

    def __repr__(self) -> str:
        shown = [
            repr(entry.kernel) if entry.name == _name_by_repr(entry.kernel) else repr((entry.name, entry.kernel))
            for entry in self.entries
        ]
        priority = f", priority={list(self.priority)}" if self.priority else ""
        text = f"KernelLibrary([{', '.join(shown)}]{priority})"
        return text if len(text) <= MAX_REPR else f"<{self}>"

    def __str__(self) -> str:
        return cut_text(f"KernelLibrary of {len(self)} kernel{'s' * (len(self) > 1)}: {', '.join(self.names)}")

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        text = repr(self)
        printer.text(text if len(text) <= MAX_LENGTH else str(self))


def _flatten(kernels: Any) -> Iterator[tuple[str | None, Kernel]]:
    if isinstance(kernels, KernelLibrary):
        for entry in kernels.entries:
            yield None if entry.is_named_by_repr else entry.name, entry.kernel
    elif isinstance(kernels, Kernel):
        yield None, kernels
    elif isinstance(kernels, Mapping):
        yield from _flatten(list(kernels.items()))
    elif isinstance(kernels, tuple) and len(kernels) == 2 and isinstance(kernels[0], str):
        if not isinstance(kernels[1], Kernel):
            raise TypeError(f"The library's entry {kernels[0]!r} is {short_repr(kernels[1])}; expected a kernel.")
        yield kernels[0], kernels[1]
    elif isinstance(kernels, Sequence) and not isinstance(kernels, str):
        for item in kernels:
            yield from _flatten(item)
    else:
        raise TypeError(
            f"A kernel library holds kernels such as Linear() or RBF(); got {short_repr(kernels)} of type "
            f"{type(kernels).__name__}. Wrap a function as FromCallable(f), a matrix as Precomputed(K)."
        )


def _name_entries(pairs: list[tuple[str | None, Kernel]]) -> Iterator[Entry]:
    given = [name for name, _ in pairs if name is not None]
    wrong = sorted({name for name in given if given.count(name) > 1 or "__" in name or name == "kernels"})
    if wrong:
        raise ValueError(f"Kernel names must be unique, without '__' and other than 'kernels'; got {wrong}.")
    taken = set(given)
    for name, kernel in pairs:
        entry = Entry(_find_free_name(_name_by_repr(kernel), taken) if name is None else name, kernel)
        taken.add(entry.name)
        yield entry


def _name_by_repr(kernel: Kernel) -> str:
    """Return the representation on one line, short, without the ``__`` that separates names from parameters."""
    text = " ".join(repr(kernel).split())
    return (text if len(text) <= MAX_LENGTH else str(kernel)).replace("__", "_")


def _find_free_name(name: str, taken: set[str]) -> str:
    numbered = (f"{name} #{number}" for number in itertools.count(2))
    return name if name not in taken else next(other for other in numbered if other not in taken)

"""Recipes and bound kernels.

A :class:`Kernel` is a recipe: an immutable description such as ``RBF(gamma="mean")``. It knows no data.
``kernel.bind(X, rng)`` ties it to a sample and gives a :class:`BoundKernel`, in which everything that depends on
the sample (bandwidths, fitted transformers, the centre of a feature space) has become a number. Training and
prediction therefore cannot disagree about it. ``bind`` never sees ``y``.

``kernel(X)`` and ``kernel(X, Z)`` bind and evaluate in one step, for a look at a matrix.
"""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np
from sklearn import get_config
from sklearn.base import clone

from ..short_text import short_repr
from .column_names import read_rows

Rows = np.ndarray | slice
ALL = slice(None)
FLOATS = (np.float64, np.float32)
BLOCK_SHARE = 0.25  # of the working memory: sums, products and normalised kernels take several blocks at a time


class Kernel(ABC):
    """A recipe for a kernel: immutable, comparable, with an evaluable ``repr``; ``str`` is short.

    Subclasses are frozen dataclasses whose fields are their parameters. ``get_params`` lists them as
    scikit-learn does (``kernel__gamma`` reaches into a nested recipe), and :meth:`replace` returns a changed
    copy where scikit-learn's ``set_params`` would change in place.
    """

    own_cost: ClassVar[float] = 1.0  # nanoseconds a value, beyond the inner product of two rows; measured
    keeps_psd: ClassVar[bool] = False  # known to be positive semi-definite if the recipes it is made of are
    __array_ufunc__ = None  # an array times a recipe is a mistake, not an array of recipes

    @abstractmethod
    def bind(self, X: Any, rng: np.random.Generator, sample_weight: np.ndarray | None = None) -> BoundKernel:
        """Tie the recipe to the rows of ``X``; whatever is drawn at random is drawn from ``rng``.

        Column names are not known here: call :meth:`resolve` first where the recipe may hold some.

        Parameters
        ----------
        X : array or CSR of shape (n_rows, n_features)
            The rows, labelled and unlabelled.
        rng : numpy.random.Generator
            Source of whatever the kernel draws at random.
        sample_weight : ndarray of shape (n_rows,), optional
            Weights of the rows in bandwidths, centres and mean diagonals; all equal by default.

        Returns
        -------
        BoundKernel
            The kernel at these rows and any new ones, with ``block``, ``against`` and ``diag``.
        """

    @classmethod
    def bind_together(
        cls,
        kernels: Sequence[Any],
        X: Any,
        rngs: Sequence[np.random.Generator],
        sample_weight: np.ndarray | None = None,
    ) -> list[BoundKernel]:
        """Tie several recipes of this class to the same rows; a class whose recipes can share work overrides it.

        Parameters
        ----------
        kernels : sequence of Kernel
            Instances of this class.
        X : array or CSR of shape (n_rows, n_features)
            The rows, labelled and unlabelled.
        rngs : sequence of numpy.random.Generator
            One for each recipe.
        sample_weight : ndarray of shape (n_rows,), optional
            As for :meth:`bind`.

        Returns
        -------
        list of BoundKernel
            In the order of ``kernels``.
        """
        return [kernel.bind(X, rng, sample_weight) for kernel, rng in zip(kernels, rngs, strict=True)]

    def __call__(self, X: Any, Z: Any = None, *, random_state: int | None = 0) -> np.ndarray:
        """Return the matrix of the kernel between the rows of ``X`` and those of ``Z``, by default ``X``.

        All that depends on a sample is taken from ``Z``, that from ``X`` if there is no ``Z``: ``kernel(X)`` is the
        matrix to train with and ``kernel(X_new, X)`` the one to predict with. In this order scikit-learn calls a
        kernel, too, as in ``SVC(kernel=RBF())``.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows of the matrix.
        Z : array, sparse matrix or frame of shape (n_bound, n_features), optional
            The rows that the kernel is bound to.
        random_state : int, default=0
            Seed of whatever the kernel draws at random.

        Returns
        -------
        ndarray of shape (n_rows, n_bound)
            The kernel values.

        Examples
        --------
        >>> import numpy as np
        >>> from kernelweave import RBF
        >>> X = np.array([[0.0], [1.0], [2.0]])
        >>> RBF(gamma=1.0)(X).round(2)
        array([[1.  , 0.37, 0.02],
               [0.37, 1.  , 0.37],
               [0.02, 0.37, 1.  ]])
        >>> RBF()(X[:1], X).round(2)  # gamma is 1 over the mean squared distance of the second argument's rows
        array([[1.  , 0.47, 0.05]])
        """
        rows, names = read_rows(X, allows_missing=self.allows_missing, dtypes=FLOATS)
        sample, sample_names = rows, names
        if Z is not None:
            sample, sample_names = read_rows(Z, allows_missing=self.allows_missing, dtypes=FLOATS)
            if rows.shape[1] != sample.shape[1] or (names and sample_names and names != sample_names):
                raise ValueError(
                    f"{self} was called with rows of different columns: {_describe_columns(rows, names)} and "
                    f"{_describe_columns(sample, sample_names)}. Pass the same columns, in the same order."
                )
        kernel = self.resolve(sample_names, sample.shape[1])
        bound = kernel.bind(sample, np.random.default_rng(random_state))
        return bound.block(ALL, ALL) if Z is None else bound.against(rows)

    def resolve(self, feature_names: Sequence[str] | None, n_features: int) -> Kernel:
        """Return the recipe with column names replaced by positions (only :class:`OnColumns` has any).

        Parameters
        ----------
        feature_names : sequence of str or None
            Names of the columns of ``X``; None if they have none.
        n_features : int
            Number of columns of ``X``.

        Returns
        -------
        Kernel
            The recipe to bind; the recipe itself where it names no columns.
        """
        resolved = {
            name: child.resolve(feature_names, n_features)
            for name, child in self._children().items()
            if isinstance(child, Kernel)
        }
        return self.replace(**resolved) if resolved else self

    @property
    def source(self) -> str:
        """Which part of the data the kernel looks at; ``"all columns"`` unless a nested recipe says otherwise."""
        sources = {child.source for child in self._children().values() if isinstance(child, Kernel)}
        return sources.pop() if len(sources) == 1 else "all columns"

    @property
    def is_psd(self) -> bool:
        """Whether it is known to be positive semi-definite on any data."""
        return self.keeps_psd and all(child.is_psd for child in self._children().values() if isinstance(child, Kernel))

    @property
    def cost(self) -> float:
        """What a value costs to compute, in nanoseconds beyond the inner product of two rows.

        A constant of the recipe, not a clock: the order of pricing must be the same in every run.
        """
        return self.own_cost + sum(child.cost for child in self._children().values() if isinstance(child, Kernel))

    @property
    def allows_missing(self) -> bool:
        """Whether the recipe itself says what a missing value means."""
        nested = [child for child in self._children().values() if isinstance(child, Kernel)]
        return any(child.allows_missing for child in nested)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, those of nested recipes under ``name__parameter``.

        Parameters
        ----------
        deep : bool, default=True
            Whether to list the parameters of nested recipes, too.

        Returns
        -------
        dict
            Values by name.
        """
        params = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        if deep:
            for name, child in self._children().items():
                params[name] = child
                params.update({f"{name}__{key}": value for key, value in child.get_params().items()})
        return params

    def replace(self, **params: Any) -> Self:
        """Return a copy with some parameters changed; ``kernel__gamma=…`` reaches into a nested recipe.

        Parameters
        ----------
        **params : dict
            New values by name, with the names of :meth:`get_params`.

        Returns
        -------
        Kernel
            Of the same class. The recipe itself does not change.
        """
        own = self.get_params(deep=False)
        children = self._children()
        for name, changes in _group_by_head(params).items():
            if name in children:
                children[name] = _change_child(children[name], changes)
            elif name in own and list(changes) == [""]:
                own[name] = changes[""]
            elif name in own:
                raise ValueError(
                    f"{type(self).__name__} got {f'{name}__{max(changes)}'!r}, but its {name} is "
                    f"{short_repr(own[name])}, which has no parameters of its own. Set {name!r} itself."
                )
            else:
                raise ValueError(
                    f"{type(self).__name__} has no parameter {name!r}; it has {', '.join(self.get_params())}."
                )
        return self._rebuild(own, children)

    def walk(self) -> Iterator[Kernel]:
        """Give the recipe, and all that are nested in it.

        Yields
        ------
        Kernel
            The recipe itself first.
        """
        yield self
        for child in self._children().values():
            if isinstance(child, Kernel):
                yield from child.walk()

    def _children(self) -> dict[str, Any]:
        """Return the nested objects that have parameters of their own, by the name users reach them with."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return {name: value for name, value in values.items() if _has_params(value)}

    def _rebuild(self, own: dict[str, Any], children: dict[str, Any]) -> Self:
        return type(self)(**(own | children))

    def __sklearn_clone__(self) -> Self:
        return self  # immutable: sharing is safe, and a precomputed matrix is never copied

    def __add__(self, other: object) -> Kernel:
        if not isinstance(other, Kernel):
            return NotImplemented
        from .algebra import Sum  # which is made of recipes itself

        return Sum((self, other))

    def __radd__(self, other: object) -> Kernel:
        return self if isinstance(other, numbers.Real) and other == 0 else NotImplemented  # where sum() begins

    def __mul__(self, other: object) -> Kernel:
        from .algebra import Product, Scaled

        if isinstance(other, Kernel):
            return Product((self, other))
        if isinstance(other, numbers.Real):
            return Scaled(self, float(other))
        return NotImplemented

    def __rmul__(self, other: object) -> Kernel:
        return self.__mul__(other)

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        mine, theirs = self.get_params(deep=False), other.get_params(deep=False)  # type: ignore[attr-defined]
        return all(_is_same(mine[name], theirs[name]) for name in mine)

    def __hash__(self) -> int:
        return hash((type(self).__name__, *map(_make_hashable, self.get_params(deep=False).values())))

    def __repr__(self) -> str:
        shown = []
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if field.default is MISSING:
                shown.append(_format_value(value))
            elif not _is_same(value, field.default):
                shown.append(f"{field.name}={_format_value(value)}")
        return f"{type(self).__name__}({', '.join(shown)})"

    def __str__(self) -> str:
        return short_repr(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))


class BoundKernel(ABC):
    """A kernel tied to a sample of ``n_rows`` rows: ``K[i, j]`` is the value at rows ``i`` and ``j``.

    Index arguments are integer arrays (no masks) or slices of row numbers of the bound sample.
    """

    n_rows: int

    @abstractmethod
    def block(self, rows: Rows, cols: Rows) -> np.ndarray:
        """Return ``K[rows][:, cols]``, a new array that the caller may overwrite."""

    @abstractmethod
    def against(self, X_new: Any, cols: Rows = ALL) -> np.ndarray:
        """Return the kernel between new rows and the bound rows ``cols``, shape ``(n_new, n_cols)``."""

    def log_against(self, X_new: Any, cols: Rows = ALL) -> np.ndarray | None:
        """Return the logarithms of :meth:`against` where they are known without underflow; None where they are not."""
        return None

    @abstractmethod
    def diag(self) -> np.ndarray:
        """Return the diagonal of ``K``."""

    def products(self, V: np.ndarray, rows: Rows = ALL) -> np.ndarray:
        """Return ``K[rows] @ V`` in double precision, without all of ``K`` in memory.

        Parameters
        ----------
        V : ndarray of shape (n_rows, n_vectors)
            Columns of ``K`` at which all vectors are zero are not evaluated.
        rows : ndarray or slice, optional
            All by default.
        """
        used, numbers = np.flatnonzero(V.any(axis=1)), np.arange(self.n_rows)[rows]
        out = np.empty((len(numbers), V.shape[1]))
        for part in batches(len(numbers), len(used)):
            out[part] = self.block(numbers[part], used) @ V[used]
        return out

    def products_against(self, X_new: Any, V: np.ndarray) -> np.ndarray:
        """Return ``against(X_new) @ V`` in double precision, without all values in memory."""
        out = np.empty((X_new.shape[0], V.shape[1]))
        for rows in batches(len(out), max(self.n_rows, self.n_evaluations) + X_new.shape[1]):
            out[rows] = self.against(X_new[rows]) @ V
        return out

    @property
    def rank(self) -> int | None:
        """Columns of :meth:`factor`; None where there is none."""
        return None

    def factor(self) -> np.ndarray | None:
        """Return ``Z`` with ``K = Z Z'`` where that is smaller than ``K``; None where there is none."""
        return None

    def fold(self, coef: np.ndarray) -> tuple[BoundKernel, np.ndarray] | None:
        """Return a cheaper kernel, and its coefficients, that sum to the same function; None where there is none.

        Parameters
        ----------
        coef : ndarray of shape (n_rows, n_outputs)

        Returns
        -------
        (BoundKernel, ndarray) or None
            ``other`` and ``folded`` with ``against(X) @ coef == other.against(X) @ folded`` for all ``X``. Kernels that
            may be folded into the same one return the same object.
        """
        return None

    @abstractmethod
    def diag_against(self, X_new: Any) -> np.ndarray:
        """Return the kernel of each new row with itself."""

    @property
    def n_evaluations(self) -> int:
        """Kernel values that :meth:`against` computes for one new row."""
        return self.n_rows

    @abstractmethod
    def restrict(self, rows: np.ndarray) -> BoundKernel:
        """Return the same kernel, with everything learned from the sample, that keeps only ``rows``."""

    def compact(self, rows: np.ndarray) -> BoundKernel:
        """Return the same as :meth:`restrict`, without what only other rows need: smaller to keep, cheaper to evaluate.

        Values of new rows with themselves may then not be known.
        """
        return self.restrict(rows)

    def tied_to(self, X: Any) -> BoundKernel:
        """Return the same kernel, with everything learned from the sample, at other rows of data in place of the bound.

        Kernels whose values between new rows are not known are refused: those that deform others along a graph.
        """
        raise NotImplementedError(f"{type(self).__name__} is known between the rows of its sample only.")


@dataclass(frozen=True, eq=False)
class Comparable:
    """A parameter of a recipe as a key: equal to others as recipes compare them, unlike objects of scikit-learn."""

    value: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Comparable) and _is_same(self.value, other.value)

    def __hash__(self) -> int:
        return hash(_make_hashable(self.value))


def count(rows: Rows, n_rows: int) -> int:
    """Return how many rows an index argument names."""
    return len(range(*rows.indices(n_rows))) if isinstance(rows, slice) else len(rows)


def batches(n_items: int, width: int) -> Iterator[slice]:
    """Cut items of ``width`` numbers each into parts that fit a share of the working memory."""
    size = max(1, int(BLOCK_SHARE * get_config()["working_memory"] * 2**20 / (8 * max(1, width))))
    for start in range(0, n_items, size):
        yield slice(start, min(start + size, n_items))


def require_kernel(owner: str, kernel: Any) -> None:
    """Refuse what is not a recipe where one is expected."""
    if not isinstance(kernel, Kernel):
        raise TypeError(
            f"{owner} takes a kernel such as RBF(); got {short_repr(kernel)} of type {type(kernel).__name__}. Wrap a "
            "function as FromCallable(f), a matrix as Precomputed(K)."
        )


def _describe_columns(X: Any, names: list[str] | None) -> str:
    shown = "" if names is None else f" ({', '.join(names[:3])}{', ...' if len(names) > 3 else ''})"
    return f"{X.shape[1]} columns{shown}"


def _has_params(value: Any) -> bool:
    return hasattr(value, "get_params") and not isinstance(value, type)


def _group_by_head(params: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Group ``{"a__b": 1, "a": 2}`` by what stands before the first double underscore."""
    grouped: dict[str, dict[str, Any]] = {}
    for key, value in params.items():
        head, _, tail = key.partition("__")
        grouped.setdefault(head, {})[tail] = value
    return grouped


def _change_child(child: Any, changes: dict[str, Any]) -> Any:
    child = changes.pop("", child)  # first the whole, then its parts
    if not changes:
        return child
    return child.replace(**changes) if hasattr(child, "replace") else clone(child).set_params(**changes)


def _is_same(a: Any, b: Any, entries: bool = False) -> bool:
    """Return whether two parameters are equal; ``entries``: of a transformer, whose arrays are small and copied."""
    if a is b or (isinstance(a, float) and isinstance(b, float) and a != a and b != b):
        return True
    if type(a) is not type(b):
        return bool(isinstance(a, numbers.Number) and isinstance(b, numbers.Number) and a == b)
    if hasattr(a, "__array__") and not isinstance(a, np.generic):  # matrices are shared, not compared entry by entry
        return entries and np.asarray(a).dtype == np.asarray(b).dtype and np.array_equal(a, b)
    if isinstance(a, Kernel):
        return a == b
    if _has_params(a):
        mine, theirs = a.get_params(), b.get_params()
        return _is_same(mine, theirs, entries=True)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_is_same(a[key], b[key], entries) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(_is_same(x, z, entries) for x, z in zip(a, b, strict=True))
    return bool(a == b)


def _make_hashable(value: Any) -> Any:
    """Return something that is equal for equal parameters: numbers whatever their type, nested objects coarsely."""
    if isinstance(value, list | tuple):
        return tuple(map(_make_hashable, value))
    return value if isinstance(value, str | numbers.Number | Kernel) else type(value).__name__


def _format_value(value: Any) -> str:
    if isinstance(value, np.generic):
        value = value.item()
    return getattr(value, "__name__", None) or repr(value)

"""Recipes that wrap another recipe: normalised, on some columns, after a transformer.

Every preprocessing of a kernel is itself a kernel, so that it is fitted on the training rows in ``bind``, saved with
the model and applied to new rows without a second thought.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import clone

from ..parameters import check_parameters, one_of
from ..short_text import format_items, short_repr
from .base import ALL, BoundKernel, Comparable, Kernel, Rows, _is_same, batches, require_kernel
from .column_names import find_positions, name_columns
from .sharing import bind_once, once

MAX_CENTER_ROWS = 1000  # a centre of mass is averaged over at most this many rows


@dataclass(frozen=True, eq=False, repr=False)
class Normalized(Kernel):
    r"""The cosine of a kernel, :math:`k(x, z) / \sqrt{k(x, x)\, k(z, z)}`; zero where a row has no length.

    Parameters
    ----------
    kernel : Kernel
        The kernel to divide; its values at equal rows must not be negative.

    See Also
    --------
    Preprocessed : Scales the columns, not the kernel.

    Examples
    --------
    >>> from kernelweave import Normalized, Polynomial
    >>> Normalized(Polynomial(degree=5, coef0=0.0))  # the fifth power of the cosine
    Normalized(Polynomial(degree=5, coef0=0.0))
    """

    keeps_psd = True

    kernel: Kernel

    def __post_init__(self) -> None:
        require_kernel("Normalized", self.kernel)

    def bind(self, X: Any, rng: np.random.Generator, sample_weight: np.ndarray | None = None) -> BoundKernel:
        bound = bind_once(self.kernel, X, rng, sample_weight)
        return BoundNormalized(bound, _inverse_lengths(bound.diag(), self.kernel), self.kernel)


class BoundNormalized(BoundKernel):
    """A bound kernel, made from ``recipe``, divided by the lengths of its rows."""

    def __init__(self, kernel: BoundKernel, inverse_lengths: np.ndarray, recipe: Kernel):
        self.kernel = kernel
        self.inverse_lengths = inverse_lengths
        self.recipe = recipe
        self.n_rows = kernel.n_rows

    def block(self, rows: Rows, cols: Rows) -> np.ndarray:
        return self._divide(self.kernel.block(rows, cols), self.inverse_lengths[rows], cols)

    def against(self, X_new: Any, cols: Rows = ALL) -> np.ndarray:
        lengths = _inverse_lengths(self.kernel.diag_against(X_new), self.recipe)
        return self._divide(self.kernel.against(X_new, cols), lengths, cols)

    def products(self, V: np.ndarray, rows: Rows = ALL) -> np.ndarray:
        lengths = self.inverse_lengths[:, None]
        return lengths[rows] * self.kernel.products(lengths * V, rows)

    def diag(self) -> np.ndarray:
        return (self.inverse_lengths > 0).astype(self.inverse_lengths.dtype)

    def diag_against(self, X_new: Any) -> np.ndarray:
        return (self.kernel.diag_against(X_new) > 0).astype(self.inverse_lengths.dtype)

    def restrict(self, rows: np.ndarray) -> BoundKernel:
        return BoundNormalized(self.kernel.restrict(rows), self.inverse_lengths[rows], self.recipe)

    def tied_to(self, X: Any) -> BoundKernel:
        kernel = self.kernel.tied_to(X)
        return BoundNormalized(kernel, _inverse_lengths(kernel.diag(), self.recipe), self.recipe)

    def _divide(self, values: np.ndarray, lengths: np.ndarray, cols: Rows) -> np.ndarray:
        values *= lengths[:, None]
        values *= self.inverse_lengths[cols][None, :]
        return values


@dataclass(frozen=True, eq=False, repr=False)
class Preprocessed(Kernel):
    """A kernel on the output of a scikit-learn transformer that is fitted on the training rows, without ``y``.

    Parameters
    ----------
    transformer : scikit-learn transformer
        An unfitted copy is kept, so that later changes to it do not affect the kernel.
    kernel : Kernel
        The kernel of the output. Columns that it names by position are those of the output.

    See Also
    --------
    OnColumns : A kernel on some of the columns, before or after the transformer.
    table_library : Kernels on standardised and on power-transformed columns.

    Examples
    --------
    >>> from sklearn.preprocessing import StandardScaler
    >>> from kernelweave import RBF, Preprocessed
    >>> Preprocessed(StandardScaler(), RBF())
    Preprocessed(StandardScaler(), RBF())
    """

    keeps_psd = True

    transformer: Any
    kernel: Kernel

    def __post_init__(self) -> None:
        require_kernel("Preprocessed", self.kernel)
        if isinstance(self.transformer, type) or not hasattr(self.transformer, "get_params"):
            raise TypeError(
                f"Preprocessed takes a scikit-learn transformer such as StandardScaler(); got {self.transformer!r}. "
                "Wrap a function as FunctionTransformer(f)."
            )
        object.__setattr__(self, "transformer", clone(self.transformer))

    @property
    def allows_missing(self) -> bool:
        """Whether the transformer takes missing values; what it leaves of them, the kernel refuses."""
        tags = getattr(self.transformer, "__sklearn_tags__", None)
        return tags is not None and bool(tags().input_tags.allow_nan)

    def bind(self, X: Any, rng: np.random.Generator, sample_weight: np.ndarray | None = None) -> BoundKernel:
        return self.bind_together([self], X, [rng], sample_weight)[0]

    @classmethod
    def bind_together(
        cls,
        kernels: Sequence[Preprocessed],
        X: Any,
        rngs: Sequence[np.random.Generator],
        sample_weight: np.ndarray | None = None,
    ) -> list[BoundKernel]:
        # A transformer that they have in common, and that draws nothing at random, is fitted once.
        bound: list[BoundKernel] = []
        fitted: list[tuple[Any, Any, Any]] = []  # recipe, fitted, output
        for kernel, rng in zip(kernels, rngs, strict=True):
            known = next((each for each in fitted if _is_same(each[0], kernel.transformer)), None)
            if known is None:
                what = ("transformed rows", Comparable(kernel.transformer))
                known = (kernel.transformer, *once(what, X, partial(kernel._transform_rows, X), rng))
                if not _unseeded(kernel.transformer):
                    fitted.append(known)
            bound.append(BoundPreprocessed(known[1], bind_once(kernel.kernel, known[2], rng, sample_weight)))
        return bound

    def _transform_rows(self, X: Any, rng: np.random.Generator) -> tuple[Any, Any]:
        """Return a clone of the transformer, fitted on ``X``, and what it gives."""
        transformer = clone(self.transformer)
        transformer.set_params(**{key: int(rng.integers(2**31)) for key in _unseeded(transformer)})
        try:
            return transformer, _as_matrix(transformer.fit(X).transform(X), self.transformer)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"{self} could not fit its transformer: {error} A transformer in Preprocessed sees an array without "
                "column names, and no y; pick columns with OnColumns(Preprocessed(...), columns)."
            ) from error

    def resolve(self, feature_names: Sequence[str] | None, n_features: int) -> Kernel:
        return self  # the columns of the inner recipe are those of the transformer's output

    def _rebuild(self, own: dict[str, Any], children: dict[str, Any]) -> Self:
        rebuilt = super()._rebuild(own, children)
        if children["transformer"] is self.transformer:  # already a copy; two of one may differ, say in a RandomState
            object.__setattr__(rebuilt, "transformer", self.transformer)
        return rebuilt


class _BoundInner(BoundKernel):
    """A bound kernel that new rows reach in another form: at the bound rows it is that kernel."""

    kernel: BoundKernel

    def block(self, rows: Rows, cols: Rows) -> np.ndarray:
        return self.kernel.block(rows, cols)

    def against(self, X_new: Any, cols: Rows = ALL) -> np.ndarray:
        return self.kernel.against(self._transform(X_new), cols)

    def diag_against(self, X_new: Any) -> np.ndarray:
        return self.kernel.diag_against(self._transform(X_new))

    def products(self, V: np.ndarray, rows: Rows = ALL) -> np.ndarray:
        return self.kernel.products(V, rows)

    def products_against(self, X_new: Any, V: np.ndarray) -> np.ndarray:
        out = np.empty((X_new.shape[0], V.shape[1]))
        for rows in batches(len(out), X_new.shape[1]):
            out[rows] = self.kernel.products_against(self._transform(X_new[rows]), V)
        return out

    def diag(self) -> np.ndarray:
        return self.kernel.diag()

    @property
    def rank(self) -> int | None:
        return self.kernel.rank

    def factor(self) -> np.ndarray | None:
        return self.kernel.factor()

    def fold(self, coef: np.ndarray) -> tuple[BoundKernel, np.ndarray] | None:
        folded = self.kernel.fold(coef)
        return None if folded is None else (self._around(folded[0]), folded[1])

    def restrict(self, rows: np.ndarray) -> BoundKernel:
        return self._around(self.kernel.restrict(rows))

    def compact(self, rows: np.ndarray) -> BoundKernel:
        return self._around(self.kernel.compact(rows))

    def tied_to(self, X: Any) -> BoundKernel:
        return self._around(self.kernel.tied_to(self._transform(X)))

    @abstractmethod
    def _transform(self, X_new: Any) -> Any:
        """Return new rows in that form."""

    def _around(self, kernel: BoundKernel) -> BoundKernel:
        """Return the same around another kernel."""
        other = copy(self)
        other.kernel, other.n_rows = kernel, kernel.n_rows
        return other


class BoundPreprocessed(_BoundInner):
    """A fitted transformer and the kernel bound to its output."""

    def __init__(self, transformer: Any, kernel: BoundKernel):
        self.transformer = transformer
        self.kernel = kernel
        self.n_rows = kernel.n_rows

    def _transform(self, X_new: Any) -> Any:
        return _as_matrix(self.transformer.transform(X_new), self.transformer)


@dataclass(frozen=True, eq=False, repr=False)
class OnColumns(Kernel):
    """A kernel that uses only some columns of ``X``: one source among several.

    Parameters
    ----------
    kernel : Kernel
        The kernel of these columns; it knows no others.
    columns : list of str or int, str, slice
        Column names (of the frame given to ``fit``) or positions. A name that ends in ``*`` means every column with
        that prefix: ``"gene_*"``. A slice of names includes its last one, as in pandas.
    missing : {"error", "center"}, default="error"
        How to treat a row in which *all* these columns are NaN. ``"center"`` puts it at the mean of the kernel's
        feature space, where it says nothing about the label; a positive semi-definite kernel stays so. Rows in which
        only some of the columns are NaN raise an error: impute them.
    source : str, default=""
        Name of the source in reports; ``""``: the columns.

    See Also
    --------
    one_kernel_per_group : The same kernels for each of several sources.
    Preprocessed : A kernel on transformed columns.

    Examples
    --------
    >>> from kernelweave import RBF, OnColumns
    >>> OnColumns(RBF(), "gene_*", missing="center")
    OnColumns(RBF(), 'gene_*', missing='center')
    """

    keeps_psd = True

    kernel: Kernel
    columns: Any
    missing: str = "error"
    source: str = ""  # type: ignore[assignment]

    def __post_init__(self) -> None:
        require_kernel("OnColumns", self.kernel)
        check_parameters("OnColumns", vars(self), {"missing": one_of("error", "center")})
        if not isinstance(self.columns, str | slice):
            object.__setattr__(self, "columns", tuple(np.ravel(np.asarray(self.columns, dtype=object)).tolist()))
            if any(isinstance(column, bool) for column in self.columns):
                raise ValueError("OnColumns got a mask as columns; pass the positions np.flatnonzero(mask) instead.")
        if not self.source:
            object.__setattr__(self, "source", name_columns(self.columns))

    @property
    def allows_missing(self) -> bool:
        """Whether missing rows have a meaning here."""
        return self.missing == "center" or self.kernel.allows_missing

    def resolve(self, feature_names: Sequence[str] | None, n_features: int) -> Kernel:
        positions = find_positions(self.columns, feature_names, n_features)
        names = None if feature_names is None else [feature_names[i] for i in positions]
        kernel = self.kernel.resolve(names, len(positions))
        return self.replace(kernel=kernel, columns=positions, source=self.source)

    def replace(self, **params: Any) -> Self:
        # A source named after its columns follows them.
        if "columns" in params and self.source == name_columns(self.columns):
            params.setdefault("source", "")
        return super().replace(**params)

    def bind(self, X: Any, rng: np.random.Generator, sample_weight: np.ndarray | None = None) -> BoundKernel:
        positions = find_positions(self.columns, None, X.shape[1])
        selector: Any = list(positions)
        if positions == tuple(range(positions[0], positions[0] + len(positions))):
            selector = slice(positions[0], positions[-1] + 1)  # a view, not a copy
        part = once(("columns", positions), X, lambda _: X[:, selector])
        if self.missing == "error":
            return BoundOnColumns(bind_once(self.kernel, part, rng, sample_weight), selector)
        present = _find_present(part)
        if not present.any():
            raise ValueError(f"No row has values in the columns {self.source} of OnColumns; drop this kernel.")
        weight = np.ones(X.shape[0]) if sample_weight is None else sample_weight
        if not present.all():
            part, weight = once("present rows", part, lambda _: part[present]), weight[present]
        inner = bind_once(self.kernel, part, rng, None if sample_weight is None else weight)
        center, center_weight = _center_of_mass(weight, rng)
        return BoundWithMissing(inner, selector, _number_present(present), center, center_weight)

    def __repr__(self) -> str:
        columns = format_items(self.columns) if isinstance(self.columns, tuple) else repr(self.columns)
        missing = "" if self.missing == "error" else f", missing={self.missing!r}"
        source = "" if self.source == name_columns(self.columns) else f", source={self.source!r}"
        return f"OnColumns({self.kernel!r}, {columns}{missing}{source})"


class BoundOnColumns(_BoundInner):
    """A kernel bound to some columns."""

    def __init__(self, kernel: BoundKernel, columns: Any):
        self.kernel = kernel
        self.columns = columns
        self.n_rows = kernel.n_rows

    def _transform(self, X_new: Any) -> Any:
        return X_new[:, self.columns]


class BoundWithMissing(BoundKernel):
    r"""A kernel in which some rows are missing and sit at the centre of mass :math:`\bar\phi = \sum_c a_c \phi(x_c)`.

    ``kernel`` is bound to the rows that are present; ``places[i]`` is the place of row ``i`` among them, -1 where
    it is missing. ``center`` and ``center_weight`` are the places and weights of the rows that are averaged.
    """

    def __init__(
        self,
        kernel: BoundKernel,
        columns: Any,
        places: np.ndarray,
        center: np.ndarray,
        center_weight: np.ndarray,
    ):
        self.kernel = kernel
        self.columns = columns
        self.places = places
        self.center = center
        self.center_weight = center_weight
        self.n_rows = len(places)

    def block(self, rows: Rows, cols: Rows) -> np.ndarray:
        return self._assemble(self.places[rows], self.places[cols], self.kernel.block)

    def against(self, X_new: Any, cols: Rows = ALL) -> np.ndarray:
        part, places = self._transform_new(X_new)
        return self._assemble(places, self.places[cols], lambda rows, cols: self.kernel.against(part[rows], cols))

    def diag(self) -> np.ndarray:
        return self._diagonal(self.places, self.kernel.diag())

    def diag_against(self, X_new: Any) -> np.ndarray:
        part, places = self._transform_new(X_new)
        return self._diagonal(places, self.kernel.diag_against(part) if part.shape[0] else np.empty(0))

    def restrict(self, rows: np.ndarray) -> BoundKernel:
        places = self.places[rows]
        kept = np.concatenate([self.center, places[places >= 0]])
        new_places = np.full(len(places), -1)
        new_places[places >= 0] = np.arange(len(self.center), len(kept))
        center = np.arange(len(self.center))
        return BoundWithMissing(self.kernel.restrict(kept), self.columns, new_places, center, self.center_weight)

    def _assemble(self, rows: np.ndarray, cols: np.ndarray, evaluate: Any) -> np.ndarray:
        row_here, col_here = rows >= 0, cols >= 0
        if row_here.all() and col_here.all():
            return evaluate(rows, cols)
        out = np.empty((len(rows), len(cols)))
        weight = self.center_weight
        if row_here.any() and col_here.any():
            out[np.ix_(row_here, col_here)] = evaluate(rows[row_here], cols[col_here])
        if not row_here.all() and col_here.any():
            out[np.ix_(~row_here, col_here)] = weight @ self.kernel.block(self.center, cols[col_here])
        if row_here.any() and not col_here.all():
            out[np.ix_(row_here, ~col_here)] = (evaluate(rows[row_here], self.center) @ weight)[:, None]
        if not row_here.all() and not col_here.all():
            out[np.ix_(~row_here, ~col_here)] = self._center_squared
        return out

    def _diagonal(self, places: np.ndarray, present: np.ndarray) -> np.ndarray:
        out = np.empty(len(places))
        out[places >= 0] = present[places[places >= 0]]
        if (places < 0).any():
            out[places < 0] = self._center_squared
        return out

    @cached_property
    def _center_squared(self) -> float:
        K, weight = self.kernel.block(self.center, self.center), self.center_weight
        squared = float(weight @ K @ weight)
        # Of a centre at the origin rounding is left, of either sign, which Normalized would blow up to length one.
        rounding = 16 * np.finfo(K.dtype).eps * float(weight @ np.abs(np.diag(K)))
        return squared if abs(squared) > rounding else 0.0

    def _transform_new(self, X_new: Any) -> tuple[Any, np.ndarray]:
        part = X_new[:, self.columns]
        present = _find_present(part)
        return part if present.all() else part[present], _number_present(present)


def _inverse_lengths(squared: np.ndarray, kernel: object) -> np.ndarray:
    if np.any(squared < 0):
        raise ValueError(
            f"{short_repr(kernel)} cannot be normalised: k(x, x) is negative for {int(np.sum(squared < 0))} rows "
            f"(smallest {squared.min():.3g}). Use it without Normalized; mixtures take indefinite kernels."
        )
    with np.errstate(divide="ignore"):
        return np.where(squared > 0, 1.0 / np.sqrt(squared), 0.0).astype(squared.dtype)


def _unseeded(transformer: Any) -> list[str]:
    """Return the parameters of a transformer that say it draws at random, without a seed."""
    params = transformer.get_params()
    return [key for key in sorted(params) if key.split("__")[-1] == "random_state" and params[key] is None]


def _as_matrix(X: Any, transformer: object) -> Any:
    if sparse.issparse(X):
        return X.tocsr()
    X = np.asarray(X)
    if X.ndim != 2 or X.dtype.kind not in "fiub":
        raise ValueError(
            f"The transformer {transformer!r} of Preprocessed gave shape {X.shape} and type {X.dtype}; a kernel "
            "needs a numeric matrix."
        )
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)


def _find_present(part: Any) -> np.ndarray:
    if sparse.issparse(part):
        stored = part.tocoo()
        n_missing = np.bincount(stored.row[np.isnan(stored.data)], minlength=part.shape[0])
    else:
        n_missing = np.isnan(part).sum(axis=1)
    partly = np.flatnonzero((n_missing > 0) & (n_missing < part.shape[1]))
    if len(partly):
        raise ValueError(
            f'OnColumns(missing="center") found rows in which only some of its {part.shape[1]} columns are NaN '
            f"({len(partly)} rows, the first is row {partly[0]}). Impute these values first; a row may only lack "
            "the whole source."
        )
    return n_missing == 0


def _number_present(present: np.ndarray) -> np.ndarray:
    return np.where(present, np.cumsum(present) - 1, -1)


def _center_of_mass(weight: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    share = weight / weight.sum()
    if len(weight) <= MAX_CENTER_ROWS:
        return np.arange(len(weight)), share
    # Equidistant marks on the line of shares in random order: every row is drawn in proportion to its share, a heavy
    # one several times, and equal rows at most once.
    order = rng.permutation(len(weight))
    marks = (np.arange(MAX_CENTER_ROWS) + rng.random()) / MAX_CENTER_ROWS
    places = np.searchsorted(np.cumsum(share[order])[:-1], marks, side="right")
    drawn, times = np.unique(order[places], return_counts=True)
    return drawn, times / MAX_CENTER_ROWS

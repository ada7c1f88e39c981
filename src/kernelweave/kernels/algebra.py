"""The algebra of recipes: ``a + b``, ``a * b`` and ``2.0 * a`` are recipes.

Sums, elementwise products and positive multiples of positive semi-definite kernels are positive semi-definite.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from .base import ALL, BoundKernel, Kernel, Rows, require_kernel
from .sharing import bind_once

MAX_SINGLE_FACTOR = 1e15  # a factor up to this, or down to its inverse, leaves single precision room on both sides


@dataclass(frozen=True, eq=False, repr=False)
class Scaled(Kernel):
    """A positive multiple of a kernel, written ``2.0 * kernel``.

    Examples
    --------
    >>> from kernelweave import Linear
    >>> 2.0 * Linear()
    2.0 * Linear()
    """

    keeps_psd = True

    kernel: Kernel
    factor: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.factor) and self.factor > 0):
            raise ValueError(
                f"A kernel was multiplied by {self.factor!r}; only a positive finite number keeps it a kernel. "
                "For a difference of kernels, put both into the library: a mixture chooses the signs."
            )

    def bind(self, X: Any, rng: np.random.Generator, sample_weight: np.ndarray | None = None) -> BoundKernel:
        """Bind the kernel and keep the factor."""
        return BoundSum((bind_once(self.kernel, X, rng, sample_weight),), (self.factor,))

    def __repr__(self) -> str:
        shown = f"({self.kernel!r})" if isinstance(self.kernel, Product) else _format_factor(self.kernel)
        return f"{float(self.factor)!r} * {shown}"


@dataclass(frozen=True, eq=False, repr=False)
class _Composite(Kernel):
    """A recipe made of several; users reach the parts as ``term0__gamma``, ``term1__gamma``, …"""

    terms: tuple[Kernel, ...]

    def __post_init__(self) -> None:
        for term in self.terms:
            require_kernel(type(self).__name__, term)
        flat = [inner for term in self.terms for inner in _terms(term, type(self))]
        object.__setattr__(self, "terms", tuple(flat))

    def replace(self, **params: Any) -> Self:
        """Return a copy with some terms, or parameters of terms, changed."""
        if "terms" in params:
            return type(self)(params.pop("terms")).replace(**params)
        return super().replace(**params)

    def _children(self) -> dict[str, Any]:
        return {f"term{i}": term for i, term in enumerate(self.terms)}

    def _rebuild(self, own: dict[str, Any], children: dict[str, Any]) -> Self:
        return type(self)(tuple(children.values()))

    def _bind_terms(
        self, X: Any, rng: np.random.Generator, sample_weight: np.ndarray | None
    ) -> tuple[BoundKernel, ...]:
        streams = rng.spawn(len(self.terms))
        return tuple(
            bind_once(term, X, stream, sample_weight) for term, stream in zip(self.terms, streams, strict=True)
        )


@dataclass(frozen=True, eq=False, repr=False)
class Sum(_Composite):
    """A sum of kernels, written ``a + b``: one kernel, not a mixture.

    Examples
    --------
    >>> from kernelweave import Linear, Polynomial
    >>> Linear() + Polynomial(degree=3)
    Linear() + Polynomial(degree=3)
    """

    keeps_psd = True

    def bind(self, X: Any, rng: np.random.Generator, sample_weight: np.ndarray | None = None) -> BoundKernel:
        """Bind each term."""
        bound = self._bind_terms(X, rng, sample_weight)
        return BoundSum(bound, (1.0,) * len(bound))

    def __repr__(self) -> str:
        return " + ".join(repr(term) for term in self.terms)


@dataclass(frozen=True, eq=False, repr=False)
class Product(_Composite):
    """An elementwise product of kernels, written ``a * b``."""

    keeps_psd = True

    def bind(self, X: Any, rng: np.random.Generator, sample_weight: np.ndarray | None = None) -> BoundKernel:
        """Bind each factor."""
        return BoundProduct(self._bind_terms(X, rng, sample_weight))

    def __repr__(self) -> str:
        return " * ".join(_format_factor(term) for term in self.terms)


class BoundSum(BoundKernel):
    """The weighted sum ``sum_p w_p K_p`` of bound kernels, with fixed weights."""

    def __init__(self, terms: Sequence[BoundKernel], weights: Sequence[float] | np.ndarray):
        self.terms = tuple(terms)
        self.weights = tuple(float(weight) for weight in weights)
        self.n_rows = self.terms[0].n_rows

    def block(self, rows: Rows, cols: Rows) -> np.ndarray:
        """Return the weighted sum of the terms' blocks."""
        return self._sum_parts(term.block(rows, cols) for term in self.terms)

    def against(self, X_new: Any, cols: Rows = ALL) -> np.ndarray:
        """Return the weighted sum of the terms against new rows."""
        return self._sum_parts(term.against(X_new, cols) for term in self.terms)

    def diag(self) -> np.ndarray:
        """Return the weighted sum of the diagonals."""
        return self._sum_parts(term.diag() for term in self.terms)

    def products(self, V: np.ndarray, rows: Rows = ALL) -> np.ndarray:
        """Return the weighted sum of the terms' products."""
        return self._sum_parts(term.products(V, rows) for term in self.terms)

    def products_against(self, X_new: Any, V: np.ndarray) -> np.ndarray:
        """Return the weighted sum of the terms' products."""
        return self._sum_parts(term.products_against(X_new, V) for term in self.terms)

    def diag_against(self, X_new: Any) -> np.ndarray:
        """Return the weighted sum of the terms at each new row."""
        return self._sum_parts(term.diag_against(X_new) for term in self.terms)

    def restrict(self, rows: np.ndarray) -> BoundKernel:
        """Restrict every term."""
        return BoundSum([term.restrict(rows) for term in self.terms], self.weights)

    def compact(self, rows: np.ndarray) -> BoundKernel:
        """Make every term compact; columns of one base become one term."""
        from .manifold import BoundColumns  # which is made of what is here

        terms, weights = [], []
        columns: dict[int, BoundColumns] = {}
        for term, weight in zip(self.terms, self.weights, strict=True):
            part = term.compact(rows)
            if not isinstance(part, BoundColumns):
                terms.append(part)
                weights.append(weight)
            elif (known := columns.get(id(part.base))) is None:
                columns[id(part.base)] = BoundColumns(part.base, weight * part.coef, weight * part.K)
            else:
                known.coef += weight * part.coef
                known.K += weight * part.K
        return BoundSum([*terms, *columns.values()], [*weights, *(1.0 for _ in columns)])

    def tied_to(self, X: Any) -> BoundKernel:
        """Tie every term to other rows."""
        return BoundSum([term.tied_to(X) for term in self.terms], self.weights)

    def _sum_parts(self, parts: Any) -> np.ndarray:
        total = None
        for part, weight in zip(parts, self.weights, strict=True):
            if weight != 1.0:
                if not 1 / MAX_SINGLE_FACTOR <= weight <= MAX_SINGLE_FACTOR:
                    part = part.astype(np.float64, copy=False)
                part *= weight
            if total is None:
                total = part
            elif total.dtype == part.dtype:
                total += part
            else:
                total = total + part  # in the wider of the two types
        assert total is not None  # there is at least one term
        return total


class BoundProduct(BoundKernel):
    """The elementwise product of bound kernels."""

    def __init__(self, terms: Sequence[BoundKernel]):
        self.terms = tuple(terms)
        self.n_rows = self.terms[0].n_rows

    def block(self, rows: Rows, cols: Rows) -> np.ndarray:
        """Return the product of the factors' blocks."""
        return math.prod((term.block(rows, cols) for term in self.terms[1:]), start=self.terms[0].block(rows, cols))

    def against(self, X_new: Any, cols: Rows = ALL) -> np.ndarray:
        """Return the product of the factors against new rows."""
        first = self.terms[0].against(X_new, cols)
        return math.prod((term.against(X_new, cols) for term in self.terms[1:]), start=first)

    def diag(self) -> np.ndarray:
        """Return the product of the diagonals."""
        return math.prod((term.diag() for term in self.terms[1:]), start=self.terms[0].diag())

    def diag_against(self, X_new: Any) -> np.ndarray:
        """Return the product of the factors at each new row."""
        first = self.terms[0].diag_against(X_new)
        return math.prod((term.diag_against(X_new) for term in self.terms[1:]), start=first)

    def restrict(self, rows: np.ndarray) -> BoundKernel:
        """Restrict every factor."""
        return BoundProduct([term.restrict(rows) for term in self.terms])

    def tied_to(self, X: Any) -> BoundKernel:
        """Tie every factor to other rows."""
        return BoundProduct([term.tied_to(X) for term in self.terms])


def _terms(kernel: Kernel, kind: type[_Composite]) -> tuple[Kernel, ...]:
    return kernel.terms if isinstance(kernel, kind) else (kernel,)


def _format_factor(kernel: Kernel) -> str:
    return f"({kernel!r})" if isinstance(kernel, Sum | Scaled) else repr(kernel)

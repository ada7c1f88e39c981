r"""Kernels that are a formula in two rows of the data.

The formulas are scikit-learn's: linear :math:`x^\top z`, polynomial :math:`(\gamma x^\top z + c_0)^d`, Gaussian
:math:`\exp(-\gamma \lVert x - z \rVert^2)`, sigmoid :math:`\tanh(\gamma x^\top z + c_0)` (not positive semi-definite).
A formula whose parameter refers to the sample (``gamma="mean"``) is first *fitted*: the reference becomes a number.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ..parameters import COUNT, FINITE, POSITIVE, Constraint, check_parameters, one_of
from .bandwidth import (
    UNIT_ADVICE,
    exponents_by_strips,
    extend_rows,
    inner_products,
    is_reference,
    largest_value,
    reference_gamma,
    reference_names,
    rows_differ,
    squared_distances,
    squared_norms,
)
from .base import ALL, BoundKernel, Kernel, Rows
from .checks import as_floats

# Squared distances in single precision, within a factor of 1e13 of 1 / gamma, keep their digits.
MAX_SINGLE_SQUARE = 1e25


class PointwiseKernel(Kernel):
    """A recipe that is a formula in two rows of ``X``."""

    def bind(self, X: Any, rng: np.random.Generator, sample_weight: np.ndarray | None = None) -> BoundKernel:
        X = as_floats(X, self)
        return BoundPointwise(X, self.fitted(X, rng, sample_weight))

    def fitted(self, X: Any, rng: np.random.Generator, sample_weight: np.ndarray | None) -> PointwiseKernel:
        """Return the recipe with every reference to the sample replaced by its value.

        Parameters
        ----------
        X, rng, sample_weight : array or CSR, numpy.random.Generator, ndarray or None
            As for :meth:`bind`.

        Returns
        -------
        PointwiseKernel
            Of the same class, with numbers only.
        """
        return self

    @abstractmethod
    def evaluate(self, A: Any, B: Any) -> np.ndarray:
        """Return the kernel between the rows of ``A`` and those of ``B``.

        Parameters
        ----------
        A, B : arrays or CSR of shapes (n_rows, n_features) and (n_columns, n_features)
            The rows that belong to the rows and to the columns of the matrix.

        Returns
        -------
        ndarray of shape (n_rows, n_columns)
            A new array that the caller may overwrite.
        """

    @abstractmethod
    def evaluate_diag(self, A: Any) -> np.ndarray:
        """Return the kernel of each row of ``A`` with itself.

        Parameters
        ----------
        A : array or CSR of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            The diagonal of the matrix that :meth:`evaluate` returns for ``A`` and ``A``.
        """


class BoundPointwise(BoundKernel):
    """A fitted formula and the rows it is tied to."""

    def __init__(self, X: Any, formula: PointwiseKernel):
        self.X = X
        self.formula = formula
        self.n_rows = X.shape[0]

    def block(self, rows: Rows, cols: Rows) -> np.ndarray:
        return self.formula.evaluate(self.X[rows], self.X[cols])

    def against(self, X_new: Any, cols: Rows = ALL) -> np.ndarray:
        return self.formula.evaluate(as_floats(X_new, self.formula), self.X[cols])

    def log_against(self, X_new: Any, cols: Rows = ALL) -> np.ndarray | None:
        if not isinstance(self.formula, RBF):
            return None
        return self.formula.logarithms(as_floats(X_new, self.formula), self.X[cols])

    def diag(self) -> np.ndarray:
        return self.formula.evaluate_diag(self.X)

    def diag_against(self, X_new: Any) -> np.ndarray:
        return self.formula.evaluate_diag(as_floats(X_new, self.formula))

    @property
    def rank(self) -> int | None:
        small = (
            isinstance(self.formula, Linear) and isinstance(self.X, np.ndarray) and 2 * self.X.shape[1] < self.n_rows
        )
        return int(self.X.shape[1]) if small else None

    def factor(self) -> np.ndarray | None:
        return None if self.rank is None else self.X

    def restrict(self, rows: np.ndarray) -> BoundKernel:
        return BoundPointwise(self.X[rows], self.formula)

    def tied_to(self, X: Any) -> BoundKernel:
        return BoundPointwise(as_floats(X, self.formula), self.formula)


@dataclass(frozen=True, eq=False, repr=False)
class Linear(PointwiseKernel):
    r"""The linear kernel :math:`x^\top z`.

    See Also
    --------
    Polynomial : Powers of the inner product.

    Examples
    --------
    >>> from kernelweave import Linear
    >>> Linear()
    Linear()
    """

    own_cost = 0.5
    keeps_psd = True

    def fitted(self, X: Any, rng: np.random.Generator, sample_weight: np.ndarray | None) -> Linear:
        largest, limits = largest_value(X), np.finfo(X.dtype)
        if largest < math.sqrt(limits.tiny / limits.eps) and rows_differ(X):
            raise ValueError(
                f"X has values up to {largest:.1e} in size; their products are too small for floating point. "
                f"{UNIT_ADVICE}"
            )
        return self

    def evaluate(self, A: Any, B: Any) -> np.ndarray:
        return inner_products(A, B)

    def evaluate_diag(self, A: Any) -> np.ndarray:
        return squared_norms(A)


@dataclass(frozen=True, eq=False, repr=False)
class Polynomial(PointwiseKernel):
    r"""The polynomial kernel :math:`(\gamma x^\top z + c_0)^d`.

    Parameters
    ----------
    degree : int, default=2
        The power :math:`d`, at least 1.
    gamma : float, default=1.0
        The factor :math:`\gamma` on the inner product; positive.
    coef0 : float, default=1.0
        The constant :math:`c_0`. Non-negative values keep the kernel positive semi-definite.

    See Also
    --------
    Normalized : Divides a polynomial by the lengths of the rows.

    Examples
    --------
    >>> from kernelweave import Polynomial
    >>> Polynomial(degree=5, coef0=0.0)
    Polynomial(degree=5, coef0=0.0)
    """

    own_cost = 2.0

    degree: int = 2
    gamma: float = 1.0
    coef0: float = 1.0

    def __post_init__(self) -> None:
        check_parameters("Polynomial", vars(self), {"degree": COUNT, "gamma": POSITIVE, "coef0": FINITE})

    @property
    def is_psd(self) -> bool:
        return self.coef0 >= 0

    def evaluate(self, A: Any, B: Any) -> np.ndarray:
        return self._raise_to_power(inner_products(A, B))

    def evaluate_diag(self, A: Any) -> np.ndarray:
        return self._raise_to_power(squared_norms(A))

    def _raise_to_power(self, inner: np.ndarray) -> np.ndarray:
        if self.degree > 2:
            inner = inner.astype(np.float64, copy=False)  # high powers leave the range of single precision
        inner *= self.gamma
        inner += self.coef0
        return _integer_power(inner, int(self.degree))


def _integer_power(base: np.ndarray, degree: int) -> np.ndarray:
    """Return a power by repeated squaring, in place of ``base``: several times faster than ``numpy.power``."""
    result = base.copy() if degree % 2 and degree > 1 else None
    while degree > 1:
        np.square(base, out=base)
        degree //= 2
        if degree % 2 and degree > 1:
            result = base.copy() if result is None else np.multiply(result, base, out=result)
    return base if result is None else np.multiply(base, result, out=base)


@dataclass(frozen=True, eq=False, repr=False)
class RBF(PointwiseKernel):
    r"""The Gaussian kernel :math:`\exp(-\gamma \lVert x - z \rVert^2)`.

    Parameters
    ----------
    gamma : float or {"mean", "median", "scale"}, default="mean"
        The bandwidth, or the rule that computes it in ``fit``: one over the mean (median) squared distance between
        rows, or scikit-learn's ``"scale"``.
    multiple : float, default=1.0
        Factor on ``gamma``. 4 makes the kernel half as wide as its reference.

    See Also
    --------
    rbf_family : RBF kernels of several widths.
    ForestKernel : A kernel that does not depend on the scale of the columns.

    Examples
    --------
    >>> from kernelweave import RBF
    >>> RBF(multiple=4.0)
    RBF(multiple=4.0)
    """

    own_cost = 10.0
    keeps_psd = True

    gamma: float | str = "mean"
    multiple: float = 1.0

    def __post_init__(self) -> None:
        reference = Constraint(is_reference, one_of(*reference_names()).words)
        check_parameters("RBF", vars(self), {"gamma": POSITIVE | reference, "multiple": POSITIVE})

    def fitted(self, X: Any, rng: np.random.Generator, sample_weight: np.ndarray | None) -> RBF:
        gamma = self.gamma
        if isinstance(gamma, str):
            gamma = reference_gamma(gamma, X, rng, sample_weight)
        return RBF(gamma * self.multiple)

    def evaluate(self, A: Any, B: Any) -> np.ndarray:
        return self._by_strips(A, B, is_log=False)

    def logarithms(self, A: Any, B: Any) -> np.ndarray:
        r"""Return :math:`-\gamma \lVert x - z \rVert^2`, the logarithms of the values.

        Parameters
        ----------
        A, B : arrays or CSR of shapes (n_rows, n_features) and (n_columns, n_features)
            The rows that belong to the rows and to the columns of the matrix.

        Returns
        -------
        ndarray of shape (n_rows, n_columns)
            The logarithms, also where the values underflow.
        """
        return self._by_strips(A, B, is_log=True)

    def _by_strips(self, A: Any, B: Any, *, is_log: bool) -> np.ndarray:
        """Return the values or their logarithms; of dense rows in strips that stay in the processor's cache."""
        gamma, dtype = float(self.gamma), np.result_type(A.dtype, B.dtype, np.float32)
        if not self.keeps_single:
            A, B = A.astype(np.float64, copy=False), B.astype(np.float64, copy=False)
        pair = extend_rows(A, B) if self.keeps_single and min(A.shape[0], B.shape[0]) else None
        if pair is not None:
            return exponents_by_strips(*pair, -gamma, dtype, is_log=is_log)
        with np.errstate(over="ignore"):  # not -inf, whose differences are no numbers
            values = np.maximum(squared_distances(A, B) * -gamma, np.finfo(dtype).min).astype(dtype, copy=False)
        return values if is_log else np.exp(values, out=values)

    @property
    def keeps_single(self) -> bool:
        """Whether squared distances in single precision keep their digits beside ``gamma``, which is a number."""
        return 1.0 / MAX_SINGLE_SQUARE < float(self.gamma) < MAX_SINGLE_SQUARE

    def evaluate_diag(self, A: Any) -> np.ndarray:
        return np.ones(A.shape[0], dtype=A.dtype)


def rbf_family(multiples: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0), reference: float | str = "mean") -> tuple[RBF, ...]:
    """Return one RBF recipe for each multiple of a reference bandwidth.

    Parameters
    ----------
    multiples : tuple of float, default=(0.5, 1.0, 2.0, 4.0)
        The ``multiple`` of each recipe; larger is narrower.
    reference : float or {"mean", "median", "scale"}, default="mean"
        The ``gamma`` of all recipes, as in :class:`RBF`.

    Returns
    -------
    tuple of RBF
        In the order of ``multiples``.

    See Also
    --------
    RBF : One of them.
    manifold_family : Kernels that follow the unlabelled rows, for several graphs.

    Examples
    --------
    >>> from kernelweave import rbf_family
    >>> rbf_family((1.0, 4.0))
    (RBF(), RBF(multiple=4.0))
    """
    return tuple(RBF(reference, float(multiple)) for multiple in multiples)


@dataclass(frozen=True, eq=False, repr=False)
class Sigmoid(PointwiseKernel):
    r"""The sigmoid kernel :math:`\tanh(\gamma x^\top z + c_0)`; in general indefinite.

    Parameters
    ----------
    gamma : float, default=1.0
        The factor :math:`\gamma` on the inner product.
    coef0 : float, default=0.0
        The constant :math:`c_0`.

    See Also
    --------
    KernelLibrary.diagnose : Says whether a kernel is positive semi-definite on given rows.

    Examples
    --------
    >>> from kernelweave import Sigmoid
    >>> Sigmoid(gamma=0.1)
    Sigmoid(gamma=0.1)
    """

    own_cost = 20.0

    gamma: float = 1.0
    coef0: float = 0.0

    def __post_init__(self) -> None:
        check_parameters("Sigmoid", vars(self), {"gamma": FINITE, "coef0": FINITE})

    def evaluate(self, A: Any, B: Any) -> np.ndarray:
        return self._squash(inner_products(A, B))

    def evaluate_diag(self, A: Any) -> np.ndarray:
        return self._squash(squared_norms(A))

    def _squash(self, inner: np.ndarray) -> np.ndarray:
        inner *= self.gamma
        inner += self.coef0
        return np.tanh(inner, out=inner)


@dataclass(frozen=True, eq=False, repr=False)
class FromCallable(PointwiseKernel):
    """A kernel given as a function ``f(A, B)`` that returns the matrix between the rows of ``A`` and ``B``.

    It does not have to be positive semi-definite or symmetric. A function defined at the top level of a module can be
    pickled; a lambda cannot.

    Parameters
    ----------
    f : callable
        Takes two arrays or CSR matrices with the same columns, and returns one value for each pair of rows.

    See Also
    --------
    Precomputed : A kernel given as a matrix.

    Examples
    --------
    >>> from sklearn.metrics.pairwise import laplacian_kernel
    >>> from kernelweave import FromCallable
    >>> FromCallable(laplacian_kernel)
    FromCallable(laplacian_kernel)
    """

    own_cost = 100.0

    f: Callable[[Any, Any], Any]

    def __post_init__(self) -> None:
        if not callable(self.f) or isinstance(self.f, Kernel):  # called, a recipe is bound to each block anew
            raise TypeError(f"FromCallable takes a function f(A, B); got {self.f!r}.")

    def evaluate(self, A: Any, B: Any) -> np.ndarray:
        values = self.f(A, B)
        values = values.toarray() if sparse.issparse(values) else values
        values = np.array(values, dtype=np.float64)  # a copy: the caller may overwrite it
        if values.shape != (A.shape[0], B.shape[0]):
            raise ValueError(
                f"The kernel function {_name_function(self.f)} returned shape {values.shape} for {A.shape[0]} and "
                f"{B.shape[0]} rows; expected ({A.shape[0]}, {B.shape[0]}). It must return a whole matrix: for a "
                "function of two single rows use sklearn.metrics.pairwise_kernels(A, B, metric=f)."
            )
        return values

    def evaluate_diag(self, A: Any) -> np.ndarray:
        return np.array([self.evaluate(A[i : i + 1], A[i : i + 1])[0, 0] for i in range(A.shape[0])])


@dataclass(frozen=True, eq=False, repr=False)
class Precomputed(PointwiseKernel):
    """A kernel given as a matrix; ``X`` is then one column of row numbers into it.

    Cross-validation slices the row numbers and never the matrix, and ``clone`` shares it. The matrix may be a
    memory map. It may have more rows than columns: the additional rows are new samples, with values only against the
    training samples.

    Parameters
    ----------
    K : array of shape (n_rows, n_columns)
        Training samples come first, with their values against each other; ``n_rows >= n_columns``.

    See Also
    --------
    OnColumns : Takes the row numbers from one column among others.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import Precomputed, SSMKClassifier
    >>> Z = np.random.default_rng(0).normal(size=(20, 2))
    >>> rows = np.arange(20)[:, None]
    >>> model = SSMKClassifier([Precomputed(Z @ Z.T)]).fit(rows, Z[:, 0] > 0)
    >>> model.predict(rows[:3]).shape
    (3,)
    """

    own_cost = 0.1

    K: Any

    def __post_init__(self) -> None:
        K = np.asanyarray(self.K)
        if K.ndim != 2 or K.dtype.kind not in "fiub" or K.shape[0] < K.shape[1]:
            raise ValueError(
                f"Precomputed takes a numeric matrix with at least as many rows as columns; got shape {K.shape} "
                f"and type {K.dtype}. Rows are samples (training samples first), columns are training samples."
            )
        object.__setattr__(self, "K", K)

    def evaluate(self, A: Any, B: Any) -> np.ndarray:
        rows, cols = self._read_numbers(A, self.K.shape[0]), self._read_numbers(B, self.K.shape[1])
        dtype = np.float32 if self.K.dtype == np.float32 else np.float64
        return np.asarray(self.K[np.ix_(rows, cols)], dtype=dtype)

    def evaluate_diag(self, A: Any) -> np.ndarray:
        numbers_ = self._read_numbers(A, self.K.shape[1])
        return np.asarray(self.K[numbers_, numbers_], dtype=np.float64)

    def _read_numbers(self, X: Any, limit: int) -> np.ndarray:
        column = np.asarray(X.toarray() if sparse.issparse(X) else X)
        if column.shape[1] != 1:
            raise ValueError(
                f"Precomputed needs X to be one column of row numbers; got {column.shape[1]} columns. Pass "
                "np.arange(n)[:, None] as X, or wrap it as OnColumns(Precomputed(K), [position])."
            )
        with np.errstate(invalid="ignore"):  # inf is refused below
            indices = column[:, 0].astype(np.intp)
        if np.any(indices != column[:, 0]) or np.any((indices < 0) | (indices >= limit)):
            raise ValueError(
                f"Precomputed got row numbers from {column.min()} to {column.max()}; its matrix of shape "
                f"{self.K.shape} takes whole numbers from 0 to {limit - 1} here. X holds row numbers, not features."
            )
        return indices

    def __repr__(self) -> str:
        return f"Precomputed(<{self.K.shape[0]} x {self.K.shape[1]} matrix>)"


def _name_function(f: Any) -> str:
    return getattr(f, "__name__", repr(f))

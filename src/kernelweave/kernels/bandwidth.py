r"""How wide is an RBF kernel: reference bandwidths and families around them.

``gamma`` in :math:`\exp(-\gamma \lVert x - z \rVert^2)` is given as a number or by a reference:

========== ============================================================================================
"mean"     one over the (weighted) mean squared distance over all pairs of rows
"median"   one over the (weighted) median squared distance over pairs of rows that differ
"scale"    one over (number of columns times the variance of all entries), as in scikit-learn's ``SVC``
========== ============================================================================================

The mean needs no pair of rows, since :math:`\mathrm{mean}_{ij} \lVert x_i - x_j \rVert^2` is twice the sum of the
columns' variances. The median is taken on a seeded subsample above ``MAX_MEDIAN_ROWS`` rows.

Squared distances are :math:`|a|^2 + |b|^2 - 2 a^\top b`, which cancels where rows are far from zero against their
distances. Hence dense rows are moved to a common origin first, and of sparse ones the columns that make them so: a mean
that is large against the spread leaves room for few zeros, so that few entries join.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.sparsefuncs import mean_variance_axis

from ..distributed.rows import PartitionedRows
from .checks import is_index

# Scalers of scikit-learn take columns of such values for constant ones.
UNIT_ADVICE = "Rescale the features, for example to X / numpy.abs(X).max(), before any other scaling."
ROW_BLOCK = 8192  # rows read at a time
MAX_MEDIAN_ROWS = 2000  # 2 million pairs: the median is then known to about 0.1 %
EPS = float(np.finfo(np.float64).eps)
MIN_SQUARE = float(np.finfo(np.float64).tiny) / EPS  # of squares that keep their digits
MAX_SQUARE = 1e-4 * float(np.finfo(np.float64).max)  # of squares, where some are larger than the mean
MAX_PLAIN_SQUARE = 1e250  # of squares that may be multiplied by a bandwidth before they cancel
STRIP_BYTES, MIN_STRIP_ROWS = 2**20, 256  # of distances, in double precision, that are worked on at a time
MIN_STORED_SHARE = 0.9  # share of the rows in which a column far from zero is stored, at least
# Squared mean of a column against its variance, and of such columns against the others: up to here a squared distance
# loses four digits at most.
FAR = 100.0


def reference_gamma(reference: str, X: Any, rng: np.random.Generator, sample_weight: np.ndarray | None = None) -> float:
    """Return the bandwidth that ``reference`` names for the rows of ``X``.

    A sample whose rows are all equal has no scale; its bandwidth is 1. Rows that differ, in a unit in which squared
    distances vanish or overflow, are refused.

    Parameters
    ----------
    reference : {"mean", "median", "scale"}
    X : array or CSR of shape (n_rows, n_features)
    rng : numpy.random.Generator
    sample_weight : ndarray of shape (n_rows,), optional

    Returns
    -------
    float
        Positive and finite.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        squared = _REFERENCES[reference](X, rng, sample_weight)
    if MIN_SQUARE <= squared <= MAX_SQUARE:
        return 1.0 / squared
    largest = largest_value(X) or 1.0
    if _REFERENCES[reference](_divide_by_unit(X, largest), np.random.default_rng(0), sample_weight) <= 0.0:
        return 1.0
    kind = "small" if largest < 1.0 else "large"
    raise ValueError(
        f"X has values up to {largest:.1e} in size; squared distances are too {kind} for floating point, so no "
        f"bandwidth can be computed from them. {UNIT_ADVICE}"
    )


def is_reference(gamma: object) -> bool:
    """Return whether ``gamma`` is the name of a reference bandwidth."""
    return isinstance(gamma, str) and gamma in _REFERENCES


def reference_names() -> Sequence[str]:
    """Return the names that ``gamma`` may have."""
    return tuple(_REFERENCES)


def _mean_squared_distance(X: Any, rng: np.random.Generator, sample_weight: np.ndarray | None) -> float:
    return 2.0 * float(_measure_columns(X, sample_weight)[1].sum())


def _median_squared_distance(X: Any, rng: np.random.Generator, sample_weight: np.ndarray | None) -> float:
    n_rows = X.shape[0]
    if n_rows < 2:
        return 0.0
    kept = (
        np.arange(n_rows) if n_rows <= MAX_MEDIAN_ROWS else np.sort(rng.choice(n_rows, MAX_MEDIAN_ROWS, replace=False))
    )
    sub, _ = _move_rows(*2 * (X[kept].astype(np.float64),))
    weight = np.ones(len(kept)) if sample_weight is None else np.asarray(sample_weight)[kept]
    first, second = np.triu_indices(len(kept), k=1)
    distances = squared_distances(sub, sub)[first, second]
    norms = squared_norms(sub)
    differ = distances > 4 * EPS * X.shape[1] * (norms[first] + norms[second])  # equal rows leave rounding
    distances, pair_weight = distances[differ], (weight[first] * weight[second])[differ]
    if not pair_weight.any():
        return 0.0
    order = np.argsort(distances)
    below = np.cumsum(pair_weight[order])
    return float(distances[order][np.searchsorted(below, 0.5 * below[-1])])


def _variance_times_columns(X: Any, rng: np.random.Generator, sample_weight: np.ndarray | None) -> float:
    means, variances = _measure_columns(X, sample_weight)
    return X.shape[1] * float(variances.mean() + means.var())  # within plus between the columns


_REFERENCES: dict[str, Callable[[Any, np.random.Generator, np.ndarray | None], float]] = {
    "mean": _mean_squared_distance,
    "median": _median_squared_distance,
    "scale": _variance_times_columns,
}


def squared_distances(A: Any, B: Any, work: np.ndarray | None = None) -> np.ndarray:
    """Return the squared Euclidean distances between the rows of ``A`` and those of ``B``.

    Single precision is computed in double and rounded once, as in :func:`inner_products`. Of dense rows, distances may
    be computed in ``work``, an array of doubles of their shape.
    """
    dtype = np.result_type(A.dtype, B.dtype, np.float32)
    if min(A.shape[0], B.shape[0]) == 0:
        return np.empty((A.shape[0], B.shape[0]), dtype=dtype)
    if (pair := extend_rows(A, B)) is not None:
        left, right = pair
        out = np.dot(left, right.T, out=work)
        np.maximum(out, 0, out=out)
        with np.errstate(over="ignore"):
            return out.astype(dtype, copy=False)
    A, B = _move_rows(A.astype(np.float64, copy=False), B.astype(np.float64, copy=False))
    size, norms_A, norms_B = 1.0, squared_norms(A), squared_norms(B)
    if not np.isfinite(max(norms_A.max(), norms_B.max())):  # inf - inf is no distance
        size = max(largest_value(A), largest_value(B))
        A, B = _divide_by_unit(A, size), _divide_by_unit(B, size)
        norms_A, norms_B = squared_norms(A), squared_norms(B)
    out = inner_products(A, B)
    out *= -2
    out += norms_A[:, None]
    out += norms_B[None, :]
    np.maximum(out, 0, out=out)
    with np.errstate(over="ignore"):
        out = out if size == 1.0 else out * size * size
        return out.astype(dtype, copy=False)


def extend_rows(A: Any, B: Any) -> tuple[np.ndarray, np.ndarray] | None:
    r"""Return rows whose inner products are the squared distances between rows of ``A`` and of ``B``, up to rounding.

    With both moved to a common origin, they are :math:`(a, |a|^2, 1)` and :math:`(-2 b, 1, |b|^2)`: one product in
    place of a product and four walks over its result. None where rows are sparse or their norms are huge.
    """
    if sparse.issparse(A) or sparse.issparse(B):
        return None
    origin = (A if A.shape[0] <= B.shape[0] else B).mean(axis=0, dtype=np.float64)
    left, right = np.empty((A.shape[0], A.shape[1] + 2)), np.empty((B.shape[0], B.shape[1] + 2))
    with np.errstate(over="ignore", invalid="ignore"):
        for X, out in ((A, left), (B, right)):
            np.subtract(X, origin, out=out[:, :-2])
        left[:, -2], right[:, -1] = squared_norms(left[:, :-2]), squared_norms(right[:, :-2])
    if not max(left[:, -2].max(), right[:, -1].max()) < MAX_PLAIN_SQUARE:
        return None
    left[:, -1], right[:, -2] = 1.0, 1.0
    right[:, :-2] *= -2.0
    return left, right


def exponents_by_strips(
    left: np.ndarray, right: np.ndarray, factor: float, dtype: np.dtype, *, is_log: bool
) -> np.ndarray:
    """Return squared distances times a negative factor, or their exponentials, in strips that stay in the cache.

    Parameters
    ----------
    left, right : ndarray
        Of `extend_rows`; the second is overwritten.
    factor : float
    dtype : dtype
        In which values are returned; they are computed in double and rounded once.
    is_log : bool
        Whether exponents are returned, not their exponentials.
    """
    right *= factor
    values = np.empty((len(left), len(right)), dtype=dtype)
    height = min(max(MIN_STRIP_ROWS, STRIP_BYTES // (8 * len(right))), len(left))
    scratch = None if dtype == np.float64 else np.empty((height, len(right)))
    for start in range(0, len(left), height):
        strip = values[start : start + height]
        exact = np.dot(left[start : start + height], right.T, out=strip if scratch is None else scratch[: len(strip)])
        if scratch is not None:
            with np.errstate(over="ignore"):
                strip[...] = exact
        np.minimum(strip, 0, out=strip)
        if not is_log:
            np.exp(strip, out=strip)
    return values


def _move_rows(A: Any, B: Any) -> tuple[Any, Any]:
    """Return rows, at least one of each, whose norms are not large against their distances."""
    if not sparse.issparse(A) and not sparse.issparse(B):
        origin = (A if A.shape[0] <= B.shape[0] else B).mean(axis=0)
        return A - origin, B - origin
    stored = [X for X in (B, A) if sparse.issparse(X)]
    for X in sorted(stored, key=lambda X: -X.shape[0]):
        columns, origin = far_columns(X)
        if len(columns):
            return shift_columns(A, columns, origin), shift_columns(B, columns, origin)
    return A, B


def far_columns(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns of a CSR whose values are far from zero and outweigh the others, and the means of the values.

    Such a column has hardly a zero, lest the rows differ by as much as its values.
    """
    count = np.bincount(X.indices, minlength=X.shape[1])
    columns = np.flatnonzero(count >= MIN_STORED_SHARE * X.shape[0])
    if not len(columns):
        return columns, np.empty(0)
    with np.errstate(over="ignore", invalid="ignore"):
        means = np.bincount(X.indices, X.data, X.shape[1]) / np.maximum(count, 1)
        deviations = np.bincount(X.indices, np.square(X.data - means[X.indices]), X.shape[1])
        squares = np.bincount(X.indices, np.square(X.data), X.shape[1])
        far = columns[np.square(means[columns]) > FAR * deviations[columns] / count[columns]]
        outweigh = np.square(means[far]).sum() * X.shape[0] > FAR * np.delete(squares, far).sum()
    far = far if outweigh else far[:0]
    return far, means[far]


def shift_columns(X: Any, columns: np.ndarray, origin: np.ndarray) -> Any:
    """Return the rows with a number subtracted from each of some columns."""
    if not sparse.issparse(X):
        X = X.copy()
        X[:, columns] -= origin
        return X
    if not is_index(columns, X.shape[1]):  # scipy would follow them anywhere
        raise ValueError(f"Columns to shift are none of the {X.shape[1]} that the rows have: the model is damaged.")
    n_rows, n_columns = X.shape[0], len(columns)
    starts = np.arange(0, n_rows * n_columns + 1, n_columns)
    return sparse.csr_array(X) - sparse.csr_array(
        (np.tile(origin, n_rows), np.tile(columns, n_rows), starts), shape=X.shape
    )


def inner_products(A: Any, B: Any) -> np.ndarray:
    """Return the dense matrix of inner products between the rows of ``A`` and those of ``B``.

    Single precision is computed in double and rounded once: a value then does not depend on the block it is computed
    in, so that a column is the same when it is priced and when it is used.
    """
    dtype = np.result_type(A.dtype, B.dtype, np.float32)
    A, B = A.astype(np.float64, copy=False), B.astype(np.float64, copy=False)
    with np.errstate(over="ignore"):  # what is infinite then is refused where it matters
        return np.asarray(safe_sparse_dot(A, B.T, dense_output=True)).astype(dtype, copy=False)


def _measure_columns(X: Any, sample_weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns' weighted means and variances, reading dense data by blocks of rows."""
    if isinstance(X, PartitionedRows):
        means, variances = X.once("means and variances", lambda: _measure_partitions(X))
        return means, _without_rounding(means, variances)
    weight = np.ones(X.shape[0]) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if sparse.issparse(X):
        means, variances = mean_variance_axis(X.astype(np.float64), axis=0, weights=weight)
    else:
        total = weight.sum()
        blocks = [slice(start, start + ROW_BLOCK) for start in range(0, X.shape[0], ROW_BLOCK)]
        means = sum(weight[rows] @ X[rows].astype(np.float64) for rows in blocks) / total
        variances = sum(weight[rows] @ (X[rows] - means) ** 2 for rows in blocks) / total
    return means, _without_rounding(means, variances)


def _without_rounding(means: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """Return variances without what rounding leaves of constant columns."""
    return np.where(variances <= (100 * EPS * means) ** 2, 0.0, variances)


def _measure_partitions(X: PartitionedRows) -> tuple[np.ndarray, np.ndarray]:
    means = X.reduce(_sum_rows, np.add) / len(X)
    return means, X.reduce(_sum_squares, np.add, means) / len(X)


def _sum_rows(block: np.ndarray, first: int) -> np.ndarray:
    return block.sum(axis=0, dtype=np.float64)


def _sum_squares(block: np.ndarray, first: int, means: np.ndarray) -> np.ndarray:
    strips = range(0, len(block), ROW_BLOCK)
    return np.sum([np.square(block[start : start + ROW_BLOCK] - means).sum(axis=0) for start in strips], axis=0)


def _find_largest(block: np.ndarray, first: int) -> float:
    return largest_value(block)


def rows_differ(X: Any) -> bool:
    """Return whether rows differ by more than rounding, in whatever unit they are measured."""
    largest = largest_value(X)
    return largest > 0.0 and bool(_measure_columns(_divide_by_unit(X, largest), None)[1].any())


def _divide_by_unit(X: Any, unit: float) -> Any:
    """Return the values divided by a unit; SciPy would multiply by its inverse, which may overflow."""
    if isinstance(X, PartitionedRows):
        return X.convert(partial(_divide_by_unit, unit=unit), X.shape[1], np.float64)
    X = X.astype(np.float64)
    values = X.data if sparse.issparse(X) else X
    values /= unit
    return X


def largest_value(X: Any) -> float:
    """Return the largest absolute value of an array or CSR; zero where there is none."""
    if isinstance(X, PartitionedRows):
        return X.once("largest value", lambda: X.reduce(_find_largest, max))
    values = X.data if sparse.issparse(X) else X
    return float(max(values.max(initial=0.0), -values.min(initial=0.0)))


def squared_norms(X: Any) -> np.ndarray:
    """Return the squared Euclidean norms of the rows."""
    if sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return np.asarray(np.einsum("ij,ij->i", X, X))

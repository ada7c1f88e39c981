r"""How wide is an RBF kernel: reference bandwidths and families around them.

``gamma`` in :math:`\exp(-\gamma \lVert x - z \rVert^2)` is given as a number or by a reference:

========== ============================================================================================
"mean"     one over the (weighted) mean squared distance over all pairs of rows
"median"   one over the (weighted) median squared distance over pairs of rows that differ
"scale"    one over (number of columns times the variance of all entries), as in scikit-learn's ``SVC``
========== ============================================================================================

The mean needs no pair of rows, since :math:`\mathrm{mean}_{ij} \lVert x_i - x_j \rVert^2` is twice the sum of the
columns' variances. The median is taken on a seeded subsample above ``SUBSAMPLE`` rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.sparsefuncs import mean_variance_axis

ROW_BLOCK = 8192  # rows read at a time
SUBSAMPLE = 2000  # 2 million pairs: the median is then known to about 0.1 %
EPS = float(np.finfo(np.float64).eps)


def reference_gamma(reference: str, X: Any, rng: np.random.Generator, sample_weight: np.ndarray | None = None) -> float:
    """Return the bandwidth that ``reference`` names for the rows of ``X``.

    A sample whose rows are all equal has no scale; its bandwidth is 1.

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
    squared = _REFERENCES[reference](X, rng, sample_weight)
    return 1.0 / squared if np.isfinite(squared) and squared > 0 else 1.0


def geometric_grid(low: float, high: float, n_points: int) -> tuple[float, ...]:
    """Return ``n_points`` multiples from ``low`` to ``high`` in equal ratios.

    Examples
    --------
    >>> geometric_grid(0.25, 4, 5)
    (0.25, 0.5, 1.0, 2.0, 4.0)
    """
    if not 0 < low <= high or n_points < 1:
        raise ValueError(f"A geometric grid needs 0 < low <= high and n_points >= 1; got {low}, {high}, {n_points}.")
    return tuple(float(f"{value:.12g}") for value in np.geomspace(low, high, n_points))


def is_reference(gamma: object) -> bool:
    """Return whether ``gamma`` is the name of a reference bandwidth."""
    return isinstance(gamma, str) and gamma in _REFERENCES


def reference_names() -> Sequence[str]:
    """Return the names that ``gamma`` may have."""
    return tuple(_REFERENCES)


def _mean_squared_distance(X: Any, rng: np.random.Generator, sample_weight: np.ndarray | None) -> float:
    return 2.0 * float(_means_and_variances(X, sample_weight)[1].sum())


def _median_squared_distance(X: Any, rng: np.random.Generator, sample_weight: np.ndarray | None) -> float:
    n_rows = X.shape[0]
    if n_rows < 2:
        return 0.0
    kept = np.arange(n_rows) if n_rows <= SUBSAMPLE else np.sort(rng.choice(n_rows, SUBSAMPLE, replace=False))
    sub = _centered(X[kept].astype(np.float64))
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
    means, variances = _means_and_variances(X, sample_weight)
    return X.shape[1] * float(variances.mean() + means.var())  # within plus between the columns


_REFERENCES: dict[str, Callable[[Any, np.random.Generator, np.ndarray | None], float]] = {
    "mean": _mean_squared_distance,
    "median": _median_squared_distance,
    "scale": _variance_times_columns,
}


def squared_distances(A: Any, B: Any) -> np.ndarray:
    """Return the squared Euclidean distances between the rows of ``A`` and those of ``B``.

    Dense rows are moved to a common origin first, so that the expansion |a|^2 + |b|^2 - 2 a.b does not cancel for
    data far from zero. Single precision is computed in double and rounded once, as in :func:`inner_products`.
    """
    dtype = np.result_type(A.dtype, B.dtype, np.float32)
    A, B = A.astype(np.float64, copy=False), B.astype(np.float64, copy=False)
    if not (sparse.issparse(A) or sparse.issparse(B)) and min(A.shape[0], B.shape[0]) > 0:
        origin = (A if A.shape[0] <= B.shape[0] else B).mean(axis=0)
        A, B = A - origin, B - origin
    out = inner_products(A, B)
    out *= -2
    out += squared_norms(A)[:, None]
    out += squared_norms(B)[None, :]
    return np.maximum(out, 0, out=out).astype(dtype, copy=False)


def inner_products(A: Any, B: Any) -> np.ndarray:
    """Return the dense matrix of inner products between the rows of ``A`` and those of ``B``.

    Single precision is computed in double and rounded once: a value then does not depend on the block it is computed
    in, so that a column is the same when it is priced and when it is used.
    """
    dtype = np.result_type(A.dtype, B.dtype, np.float32)
    A, B = A.astype(np.float64, copy=False), B.astype(np.float64, copy=False)
    return np.asarray(safe_sparse_dot(A, B.T, dense_output=True)).astype(dtype, copy=False)


def _means_and_variances(X: Any, sample_weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns' weighted means and variances, reading dense data by blocks of rows."""
    weight = np.ones(X.shape[0]) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if sparse.issparse(X):
        means, variances = mean_variance_axis(X.astype(np.float64), axis=0, weights=weight)
    else:
        total = weight.sum()
        blocks = [slice(start, start + ROW_BLOCK) for start in range(0, X.shape[0], ROW_BLOCK)]
        means = sum(weight[rows] @ X[rows].astype(np.float64) for rows in blocks) / total
        variances = sum(weight[rows] @ (X[rows] - means) ** 2 for rows in blocks) / total
    constant = variances <= (100 * EPS * means) ** 2  # what rounding leaves of a constant column
    return means, np.where(constant, 0.0, variances)


def _centered(X: Any) -> Any:
    return X if sparse.issparse(X) else X - X.mean(axis=0)


def squared_norms(X: Any) -> np.ndarray:
    """Return the squared Euclidean norms of the rows."""
    if sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return np.asarray(np.einsum("ij,ij->i", X, X))

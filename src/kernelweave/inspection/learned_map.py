r"""Coordinates in the plane of rows, by the kernel that a model has learned.

Each model has explicit features :math:`z(x)`, and the coordinates are the first two principal components of them:

- a kernel learner has its own, which its ``transform`` gives;
- a sum of kernels :math:`K = \sum_p w_p K_p` has those of Nystroem's method, :math:`z(x) = \Lambda^{-1/2} U^\top
  K(L, x)` with :math:`K(L, L) = U \Lambda U^\top` at landmarks :math:`L`;
- a mixture :math:`f = \sum_j \alpha_j \phi_j` with the 1-norm of its coefficients is the machine with the kernel
  :math:`\sum_j |\alpha_j| \phi_j \phi_j^\top`, since :math:`\sum_j |\alpha_j| = \min_{\eta \ge 0} \tfrac12 \sum_j
  (\alpha_j^2 / \eta_j + \eta_j)` at :math:`\eta = |\alpha|`. Its features are its columns, of unit deviation, times
  the roots of their coefficients.

Kernels are bound to all rows, as in the fit, with the seed of the model (0 where it has none) and without sample
weights; values are computed for some rows and landmarks only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from scipy import linalg
from scipy.sparse import issparse
from sklearn.impute import SimpleImputer

from ..estimators.shared.base import random_generator
from ..kernels.base import Kernel
from ..kernels.bound_library import BoundLibrary
from ..kernels.column_names import read_rows
from ..kernels.library import KernelLibrary
from ..kernels.pointwise import RBF
from ..kernels.tables import is_table, table_kernel

MAX_LANDMARKS = 300
MAX_COLUMNS = 500  # of a mixture, those with the largest parts
MIN_EIGENVALUE = 1e-10  # relative to the largest: smaller ones are rounding


@dataclass(frozen=True, eq=False)
class RowMap:
    """Rows in the plane.

    Attributes
    ----------
    points : ndarray of shape (n_rows, 2)
    explained : ndarray of shape (2,)
        Shares of the variance of the features.
    kernel : str
        What the map is made of, in words.
    """

    points: np.ndarray
    explained: np.ndarray
    kernel: str


def map_rows(model: Any, X: Any, rows: np.ndarray) -> RowMap:
    """Return coordinates of some rows by the kernel of a model; the same for the same model and rows.

    Parameters
    ----------
    model : fitted estimator
    X : array, sparse matrix or frame of shape (n_samples, n_features)
        The rows of the fit, in their order.
    rows : ndarray of shape (n_rows,)
        Numbers of the rows that get coordinates.
    """
    X, names = read_rows(X, allows_missing=True, dtypes=[np.float64])
    if hasattr(model, "learner_"):
        return RowMap(*principal_plane(model.learner_.transform(X[rows])), "the learned kernel")
    groups = model.expansion_.groups if hasattr(model, "expansion_") else ()
    if not groups:
        kernel, X, name = _default_kernel(X)
        bound = KernelLibrary([kernel]).bind(X, np.random.default_rng(0))
        return RowMap(*principal_plane(landmark_features(bound, np.ones(1), rows)), name)
    seed = model.random_state if isinstance(model.random_state, Integral) else 0
    bound = model.library_.bind(X, random_generator(seed), feature_names=names)
    if hasattr(model, "kernel_usage_"):
        return RowMap(*principal_plane(mixture_features(bound, groups, rows)), "the model's basis functions")
    features = landmark_features(bound, kernel_weights(bound, groups), rows)
    return RowMap(*principal_plane(features), "the learned kernel")


def _default_kernel(X: Any) -> tuple[Kernel, Any, str]:
    """Return a kernel for rows of which no model has learned one, the rows without missing values, and its name."""
    if not issparse(X) and np.isnan(X).any():
        X = SimpleImputer(keep_empty_features=True).fit_transform(X)
    return (table_kernel(X), X, "the default kernel for tables") if is_table(X) else (RBF(), X, "RBF()")


def mixture_features(bound: BoundLibrary, groups: Sequence[Any], rows: np.ndarray) -> np.ndarray:
    """Return the columns of a mixture at some rows, of unit deviation, times the roots of what they add."""
    columns = np.concatenate([group.kernel * bound.n_rows + group.centers for group in groups])
    sizes = np.abs(np.concatenate([group.coef for group in groups])).sum(axis=1)
    largest = np.sort(np.argsort(-sizes, kind="stable")[:MAX_COLUMNS])
    values = bound.columns(columns[largest], rows)
    deviations = values.std(axis=0)
    deviations[deviations == 0] = 1.0
    return values * np.sqrt(sizes[largest] / deviations)


def kernel_weights(bound: BoundLibrary, groups: Sequence[Any]) -> np.ndarray:
    """Return what multiplies each kernel of a sum, up to a common factor.

    All kernels of a composite model have the same coefficients, times their factors.
    """
    weights = np.zeros(len(bound.kernels))
    for group in groups:
        weights[group.kernel] = float(np.linalg.norm(group.coef))
    return weights / weights.max()


def landmark_features(bound: BoundLibrary, weights: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return Nystroem's features of a sum of kernels at some rows, by landmarks spread evenly among them."""
    landmarks = rows[np.unique(np.linspace(0, len(rows) - 1, min(MAX_LANDMARKS, len(rows))).astype(int))]
    K = bound.combine(weights, rows, landmarks).astype(np.float64, copy=False)
    at = np.searchsorted(rows, landmarks)
    values, vectors = linalg.eigh((K[at] + K[at].T) / 2)
    kept = values > MIN_EIGENVALUE * max(float(values.max()), 1e-300)
    return K @ (vectors[:, kept] / np.sqrt(values[kept]))


def principal_plane(features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first two principal components of features, and their shares of the variance.

    The sign of each is such that its entry furthest from zero is positive.
    """
    Z = np.asarray(features, dtype=np.float64)
    Z = Z - Z.mean(axis=0)
    points, explained = np.zeros((len(Z), 2)), np.zeros(2)
    total = float(np.square(Z).sum())
    if total == 0:
        return points, explained
    n_found = min(2, Z.shape[1])
    values, vectors = linalg.eigh(Z.T @ Z, subset_by_index=[Z.shape[1] - n_found, Z.shape[1] - 1])
    for k in range(n_found):
        component = Z @ vectors[:, n_found - 1 - k]
        points[:, k] = component * np.sign(component[np.argmax(np.abs(component))])
        explained[k] = max(0.0, float(values[n_found - 1 - k])) / total
    return points, explained

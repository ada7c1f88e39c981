r"""Kernels given by explicit features: :math:`k(x, y) = \sum_j w_j z_j(x) z_j(y)` with weights :math:`w_j \ge 0`.

Eigenfunctions, label-aware functions and other finite bases give such kernels. Everything is linear in the number of
rows: what a model sums up, :math:`\sum_i \alpha_i k(x, x_i) = z(x)^\top W Z^\top \alpha`, is one coefficient for each
feature, so that a prediction evaluates the features once and forgets the rows. Kernels that differ in their weights
only share features and coefficients.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np

from .bandwidth import inner_products
from .base import ALL, BoundKernel, Rows, batches


class FeatureMap(ABC):
    """Functions of a row of the data."""

    @property
    @abstractmethod
    def n_features(self) -> int:
        """How many functions there are."""

    @abstractmethod
    def of(self, X_new: Any) -> np.ndarray:
        """Return the features of new rows, shape ``(n_new, n_features)``."""

    @property
    def n_evaluations(self) -> int:
        """Kernel values that the features of one new row cost; as many as features unless a map says otherwise."""
        return self.n_features

    @cached_property
    def units(self) -> BoundUnits:
        """The unit vectors of the feature space: one object, so that what kernels share is evaluated once."""
        return BoundUnits(self, np.arange(self.n_features))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "units"}  # a file may hold no cycle


class BoundUnits(BoundKernel):
    """The inner product with unit vectors of a feature space: against new rows it is their features.

    Parameters
    ----------
    features : FeatureMap
    numbers : ndarray of shape (n_units,)
        Which of the features the unit vectors are.
    """

    def __init__(self, features: FeatureMap, numbers: np.ndarray):
        self.features = features
        self.numbers = numbers
        self.n_rows = len(numbers)

    def block(self, rows: Rows, cols: Rows) -> np.ndarray:
        """Return 1 where both unit vectors are the same, else 0."""
        return (self.numbers[rows][:, None] == self.numbers[cols]).astype(np.float64)

    def against(self, X_new: Any, cols: Rows = ALL) -> np.ndarray:
        """Return the features of new rows."""
        return self.features.of(X_new)[:, self.numbers[cols]]

    def diag(self) -> np.ndarray:
        """Return ones."""
        return np.ones(self.n_rows)

    def diag_against(self, X_new: Any) -> np.ndarray:
        """Return the squared lengths of the features of new rows."""
        return _squared_lengths(self.features.of(X_new), np.ones(self.features.n_features))

    @property
    def n_evaluations(self) -> int:
        """Kernel values that the features of one new row cost."""
        return self.features.n_evaluations

    def restrict(self, rows: np.ndarray) -> BoundKernel:
        """Keep some unit vectors."""
        return BoundUnits(self.features, self.numbers[rows])


class BoundFeatures(BoundKernel):
    r"""The kernel :math:`K = Z \, \mathrm{diag}(w) \, Z^\top` of explicit features.

    Single precision is computed in double and rounded once.

    Parameters
    ----------
    features : FeatureMap
        Shared by all kernels that weigh the same features.
    Z : ndarray of shape (n_rows, n_features)
        The features of the bound rows; shared likewise.
    weights : ndarray of shape (n_features,)
        Non-negative.
    """

    def __init__(self, features: FeatureMap, Z: np.ndarray, weights: np.ndarray):
        weights = np.asarray(weights, dtype=np.float64)
        if weights.shape != Z.shape[1:] or not np.all(np.isfinite(weights) & (weights >= 0)):
            raise ValueError(f"The weights of features must be {Z.shape[1]} non-negative numbers; got {weights}.")
        self.features = features
        self.Z = Z
        self.weights = weights
        self.n_rows = len(Z)

    def block(self, rows: Rows, cols: Rows) -> np.ndarray:
        """Return weighted inner products of features; exactly symmetric where rows and columns are the same."""
        left = self._weigh_features(self.Z[rows])
        same = rows is cols or np.array_equal(np.arange(self.n_rows)[rows], np.arange(self.n_rows)[cols])
        return self._multiply(left, left if same else self._weigh_features(self.Z[cols]))

    def against(self, X_new: Any, cols: Rows = ALL) -> np.ndarray:
        """Return weighted inner products of the features of new rows and of bound rows."""
        return self._multiply(self._weigh_features(self.features.of(X_new)), self._weigh_features(self.Z[cols]))

    def products(self, V: np.ndarray, rows: Rows = ALL) -> np.ndarray:
        """Multiply by the features one after the other."""
        return self.Z[rows] @ (self.weights[:, None] * (self.Z.T @ V))

    def diag(self) -> np.ndarray:
        """Return the weighted squared lengths of the features."""
        return _squared_lengths(self.Z, self.weights)

    def diag_against(self, X_new: Any) -> np.ndarray:
        """Return the weighted squared lengths of the features of new rows."""
        return _squared_lengths(self.features.of(X_new), self.weights)

    @property
    def rank(self) -> int | None:
        """The number of positive weights where it is below that of the rows."""
        n_positive = int(np.count_nonzero(self.weights))
        return n_positive if n_positive < self.n_rows else None

    def factor(self) -> np.ndarray | None:
        """Return the features of positive weight times the roots of their weights, where they are fewer than rows."""
        return None if self.rank is None else self._weigh_features(self.Z).astype(self.Z.dtype, copy=False)

    def fold(self, coef: np.ndarray) -> tuple[BoundKernel, np.ndarray]:
        """Return the unit vectors of the feature space, and one coefficient for each feature."""
        return self.features.units, self.weights[:, None] * (self.Z.T @ coef)

    @property
    def n_evaluations(self) -> int:
        """Kernel values that the features of one new row cost."""
        return self.features.n_evaluations

    def restrict(self, rows: np.ndarray) -> BoundKernel:
        """Keep the features of some rows."""
        return BoundFeatures(self.features, self.Z[rows], self.weights)

    def _weigh_features(self, Z: np.ndarray) -> np.ndarray:
        """Return the features of positive weight times the roots of their weights, in double precision."""
        positive = self.weights > 0
        return (Z if positive.all() else Z[:, positive]) * np.sqrt(self.weights[positive])

    def _multiply(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return inner_products(left, right).astype(self.Z.dtype, copy=False)


def _squared_lengths(Z: np.ndarray, weights: np.ndarray) -> np.ndarray:
    out = np.empty(len(Z), dtype=Z.dtype)
    for rows in batches(len(Z), 2 * Z.shape[1]):
        out[rows] = np.square(Z[rows], dtype=np.float64) @ weights
    return out

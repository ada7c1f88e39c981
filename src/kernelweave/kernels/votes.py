r"""Known values spread over all rows by a kernel, as features of new rows.

With values :math:`Y_j` and weights :math:`p_j` at some rows :math:`x_j`, and a kernel without negative values,

.. math:: u(x) = \sum_j p_j k(x, x_j) Y_j \Big/ \sum_j p_j k(x, x_j),

the estimate of Nadaraya and Watson; or the sum itself, without the denominator. A Gaussian kernel underflows far from
all :math:`x_j`. Since numerator and denominator may share any factor, its largest logarithm is subtracted first: far
away, :math:`u` is the value at the nearest row, never 0/0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .base import BoundKernel
from .features import FeatureMap

STRIP_BYTES = 2**20  # of kernel values that stay in the processor's cache while they are counted


class VoteFeatures(FeatureMap):
    """The map :math:`u`.

    Parameters
    ----------
    base : BoundKernel
        Bound to the rows that vote.
    values : ndarray of shape (n_voters, n_features)
        :math:`p_j Y_j`.
    weights : ndarray of shape (n_voters,) or None
        :math:`p_j`; None where votes are not divided by their sum.
    """

    def __init__(self, base: BoundKernel, values: np.ndarray, weights: np.ndarray | None):
        self.base = base
        self.values = values
        self.weights = weights

    @property
    def n_features(self) -> int:
        """Columns of the values."""
        return self.values.shape[1]

    @property
    def n_evaluations(self) -> int:
        """Kernel values that one new row costs."""
        return self.base.n_rows

    def of(self, X_new: Any) -> np.ndarray:
        """Return the votes for new rows, shape ``(n_new, n_features)``."""
        dtype = X_new.dtype if X_new.dtype == np.float32 else np.float64
        out = np.empty((X_new.shape[0], self.n_features), dtype=dtype)
        height = max(1, STRIP_BYTES // (8 * self.base.n_rows))
        for start in range(0, X_new.shape[0], height):
            rows = slice(start, start + height)
            shares = self.shares(X_new[rows])
            out[rows] = shares @ self.values if self.weights is None else self._mean(shares)
        return out

    def shares(self, X_new: Any, without_own: bool = False) -> np.ndarray:
        """Return the kernel between new rows and voters, up to a factor of each row where that is divided out.

        Parameters
        ----------
        X_new : array or CSR of shape (n_new, n_columns)
        without_own : bool, default=False
            Whether the rows are the voters, who must not vote for themselves.
        """
        logs = None if self.weights is None else self.base.log_against(X_new)
        values = self.base.against(X_new) if logs is None else logs
        if without_own:
            np.fill_diagonal(values, 0.0 if logs is None else -np.inf)
        if logs is not None:
            largest = values.max(axis=1, keepdims=True)
            values -= np.where(np.isfinite(largest), largest, 0.0)  # infinite where there is no other voter
            np.exp(values, out=values)
        elif self.weights is not None and values.min(initial=0.0) < 0:
            raise ValueError(
                f"Votes need a kernel without negative values; this one has values down to {values.min():.3g}. Use a "
                'Gaussian kernel such as RBF(), or normalization="class".'
            )
        return values

    def _mean(self, shares: np.ndarray) -> np.ndarray:
        assert self.weights is not None
        right = np.column_stack([self.values, self.weights])
        sums = shares @ right.astype(shares.dtype, copy=False)  # terms of one sign: nothing cancels
        votes, total = sums[:, :-1], sums[:, -1]
        with np.errstate(divide="ignore", invalid="ignore"):
            votes /= total[:, None]
        # what is not finite stays so, for others to refuse
        return np.where(total[:, None] == 0, self.values.sum(axis=0) / self.weights.sum(), votes)

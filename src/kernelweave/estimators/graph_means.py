"""Functions on the rows of a graph, extended to new rows: weighted means over neighbours, or over all rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import normalize

from ..kernels.bandwidth import far_columns, shift_columns
from ..kernels.base import BoundKernel, batches
from ..kernels.scaling import PowerScaler
from ..kernels.votes import VoteFeatures

MIN_LENGTH = 1e-140  # a unit of lengths that are zero: all but the nearest rows are too far, and squares stay in range


class NeighborMeans:
    """Means of a function on rows over the nearest neighbours of new rows, weighted as edges of the graph are.

    Weights are relative to that of the nearest one, so that far from all rows it is the value of the nearest.
    """

    moved = origin = np.empty(0)  # columns of sparse rows that are far from zero, and where they begin

    def __init__(self, X: Any, n_neighbors: int, metric: str, edge_weights: str):
        self.metric, self.edge_weights = metric, edge_weights
        self.size, self.center = 1.0, 0.0  # a unit and an origin that keep squares of distances in range and exact
        self.scaler = PowerScaler().fit(X) if metric == "power" else None
        if metric == "euclidean" and not sparse.issparse(X):
            self.size = float(np.abs(X).max()) or 1.0
            self.center = (X.astype(np.float64) / self.size).mean(axis=0)
        elif metric == "euclidean":
            self.size = float(abs(X).max()) or 1.0
            self.moved, self.origin = far_columns(X.astype(np.float64) / self.size)
        self.points = self._place_rows(X)
        self.n_neighbors = min(int(n_neighbors), X.shape[0])
        self._built: NearestNeighbors | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_built": None}  # safe files hold no search trees

    @property
    def search(self) -> NearestNeighbors:
        """The search for neighbours among the rows, built when it is first needed."""
        if self._built is None:
            self._built = NearestNeighbors(n_neighbors=self.n_neighbors).fit(self.points)
        return self._built

    def learn_lengths(self, W: sparse.csr_array) -> None:
        """Find the unit of edge lengths that the weights were computed with."""
        self.unit, self.reach = 1.0, np.ones(self.points.shape[0])
        if self.edge_weights == "self_tuning" and len(self.reach) > 1:
            n_neighbors = min(self.n_neighbors, len(self.reach) - 1)
            self.reach = self.search.kneighbors(n_neighbors=n_neighbors)[0][:, -1]
            self.reach[self.reach == 0.0] = MIN_LENGTH
        if self.edge_weights == "gaussian":
            self.unit = self._measure_mean_length(W)

    def _measure_mean_length(self, W: sparse.csr_array) -> float:
        """Return the mean length of the edges, which their Gaussian weights tell."""
        logarithms = -np.log(W.data)
        if (logarithms > 0.0).any():  # edges between equal rows have none and tell nothing
            edge = int(np.where(logarithms > 0.0, np.abs(logarithms - 0.5), np.inf).argmin())  # not short, not faint
            return float(self._measure_edges(W, edge, edge + 1)[0] / np.sqrt(2.0 * logarithms[edge]))
        # Edges of weight one have no length, or one that is nothing against the mean.
        parts = (self._measure_edges(W, part.start, part.stop) for part in batches(W.nnz, 4 * self.points.shape[1]))
        return 1.0 if any(lengths.any() for lengths in parts) else MIN_LENGTH

    def _measure_edges(self, W: sparse.csr_array, start: int, stop: int) -> np.ndarray:
        """Return the lengths of some edges, in the order that they are stored."""
        first = np.searchsorted(W.indptr, np.arange(start, stop), side="right") - 1
        step = self.points[first] - self.points[W.indices[start:stop]]
        return sparse.linalg.norm(step, axis=1) if sparse.issparse(step) else np.linalg.norm(step, axis=1)

    def means(self, X: Any, values: np.ndarray) -> np.ndarray:
        """Return the means around the rows of ``X``, shape (n_new, n_columns)."""
        out = np.empty((X.shape[0], values.shape[1]))
        for rows in batches(X.shape[0], self.n_neighbors * (values.shape[1] + 4) + X.shape[1]):
            neighbors, weights = self.shares(X[rows])
            out[rows] = np.einsum("ij,ijc->ic", weights, values[neighbors])
        return out

    def shares(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the neighbours of the rows of ``X`` and their weights in the mean, both (n_new, n_neighbors)."""
        new = X.toarray() if sparse.issparse(X) and not sparse.issparse(self.points) else X
        distances, neighbors = self.search.kneighbors(self._place_rows(new))  # placed as the rows were
        weights = self._weigh(distances, neighbors)
        return neighbors, weights / weights.sum(axis=1, keepdims=True)

    def _place_rows(self, X: Any) -> Any:
        X = X.astype(np.float64)
        if self.scaler is not None:
            return self.scaler.transform(X)
        if self.metric == "cosine":
            return normalize(normalize(X, norm="max"))  # first the largest entry, lest squares overflow
        X = X / self.size - self.center if not sparse.issparse(X) else X / self.size
        return shift_columns(X, self.moved, self.origin) if len(self.moved) else X

    def _weigh(self, distances: np.ndarray, neighbors: np.ndarray) -> np.ndarray:
        if self.edge_weights == "binary":
            return np.ones(distances.shape)
        left = right = np.sqrt(2.0) * self.unit
        if self.edge_weights == "self_tuning":
            left, right = distances[:, -1:], self.reach[neighbors]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            exponents = np.where(distances > 0.0, (distances / left) * (distances / right), 0.0)
        exponents = np.minimum(exponents, np.finfo(float).max)
        return np.exp(exponents.min(axis=1, keepdims=True) - exponents)


class KernelMeans:
    """Means of a function on rows, weighted by a kernel without negative values between these and new rows."""

    def __init__(self, kernel: BoundKernel):
        self.kernel = kernel

    def means(self, X: Any, values: np.ndarray) -> np.ndarray:
        """Return the means around the rows of ``X``, shape (n_new, n_columns)."""
        unit = np.abs(values).max(axis=0)
        unit[unit == 0] = 1.0  # rows in single precision give votes in single precision, which has a smaller range
        votes = VoteFeatures(self.kernel, values / unit, np.ones(len(values))).of(X)
        return unit * votes.astype(np.float64, copy=False)

    def shares(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return all rows and their weights in the mean, both (n_new, n_rows)."""
        n_rows = self.kernel.n_rows
        values = VoteFeatures(self.kernel, np.empty((n_rows, 0)), np.ones(n_rows)).shares(X).astype(np.float64)
        total = values.sum(axis=1, keepdims=True)
        weights = np.divide(values, total, out=np.full_like(values, 1.0 / n_rows), where=total != 0)
        return np.broadcast_to(np.arange(n_rows), weights.shape), weights

r"""A stack of kernels over the same points: their weighted sum, and their products with vectors.

.. math:: K(w) = \sum_k w_k K_k / s_k, \qquad K_k x / s_k .

What costs is to read the stack, so each of these reads it once, no further than the weights and the vectors need:
kernels without weight are skipped, of symmetric kernels half is read, and of the rows those where ``x`` is not zero.
Nothing of the size of the stack is formed, and no kernel is copied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np

from ...loops.compiling import compiled_later
from ..compiled_loops import Array, add_rows, add_symmetric_rows, gather, mirror

BLOCK_ROWS = 64  # of the sum at a time, so that they stay in the cache while the kernels pass by
MAX_DENSE_POINTS = 4000  # points, above which kernels that are given by features are used through these alone
CONVERTED_ROWS = 4096  # of features in single precision that are converted at a time
MIN_SYMMETRIC_ENTRIES = 100_000  # from so many entries of a kernel on, reading half of them is faster
MAX_ROWWISE_VECTORS = 3  # up to so many are multiplied row by row; with more, a dense product is faster


@dataclass(frozen=True, eq=False)
class Diagonal:
    """The kernel that is zero but for a diagonal with these values, shape (n_points,); with ones, the identity."""

    values: np.ndarray


@dataclass(frozen=True, eq=False)
class Factor:
    """The kernel ``Z Z'`` of a factor of shape (n_points, rank)."""

    Z: np.ndarray


T = TypeVar("T")
Member: TypeAlias = np.ndarray | Factor | Diagonal


class KernelStack:
    """Kernels, divided by their scales.

    Parameters
    ----------
    members : sequence of ndarray of shape (n_points, n_points), Factor or Diagonal
        Symmetric and positive semi-definite, float64 or float32; kept as they are, and not to be changed.
    scales : array-like of shape (n_kernels,), optional
        What each kernel is divided by; 1 by default.
    """

    def __init__(self, members: Sequence[Member], scales: Sequence[float] | np.ndarray | None = None):
        if not members:
            raise ValueError("A stack of kernels needs at least one kernel; members is empty.")
        self.members = tuple(members)
        self.scales = np.ones(len(members)) if scales is None else np.asarray(scales, dtype=float)
        self.n_points = len(_get_entries(members[0]))
        self._check()
        dense = [(k, member) for k, member in enumerate(self.members) if isinstance(member, np.ndarray)]
        self._dense = {k: K.T if K.flags.f_contiguous else K for k, K in dense}  # the rows of a symmetric K
        self._sum: np.ndarray | None = None
        self._features: np.ndarray | None = None
        self._made: tuple[np.ndarray, Any] | None = None
        self._summed = np.empty(0)  # the weights and the ridge of the sum, or the weights of the features

    def __len__(self) -> int:
        return len(self.members)

    @property
    def nbytes(self) -> int:
        """Bytes of all kernels, and of their sum."""
        return sum(_get_entries(member).nbytes for member in self.members) + 8 * self.n_points**2

    def diagonals(self) -> np.ndarray:
        """Return the diagonals of the scaled kernels, shape (n_kernels, n_points)."""
        return np.array(
            [_get_diagonal(member) / scale for member, scale in zip(self.members, self.scales, strict=True)]
        )

    def at(self, rows: np.ndarray) -> KernelStack:
        """Return the stack over some of the points; the scales stay as they are."""
        return KernelStack([self._restrict_member(k, rows) for k in range(len(self))], self.scales)

    def combine(self, weights: np.ndarray, ridge: float | np.ndarray = 0.0) -> np.ndarray:
        """Return the weighted sum of the scaled kernels, plus ``ridge`` in the diagonal.

        Parameters
        ----------
        weights : ndarray of shape (n_kernels,)
        ridge : float or ndarray of shape (n_points,)

        Returns
        -------
        ndarray of shape (n_points, n_points)
            Float64. A call with other weights overwrites it; one with the same gives it back.
        """
        key = np.append(weights, np.broadcast_to(ridge, self.n_points))
        if self._sum is not None and np.array_equal(key, self._summed):
            return self._sum
        if self._sum is None:
            self._sum = np.empty((self.n_points, self.n_points))
        self._summed = key
        factors = weights / self.scales
        quartets = self._group_by_four(factors)
        low_rank = [
            (member.Z, f) for member, f in zip(self.members, factors, strict=True) if isinstance(member, Factor)
        ]
        for start in range(0, self.n_points, BLOCK_ROWS):
            stop = min(start + BLOCK_ROWS, self.n_points)
            self._sum[start:stop, :stop] = 0.0
            for (A, B, C, D), four in quartets:
                _add_four(self._sum, A, B, C, D, four, start, stop)
            for Z, factor in low_rank:
                if factor != 0.0:
                    self._sum[start:stop, :stop] += (factor * Z[start:stop].astype(float, copy=False)) @ Z[:stop].T
        mirror(self._sum.T)  # what is below the diagonal is copied above it
        self._sum.flat[:: self.n_points + 1] += ridge
        for member, factor in zip(self.members, factors, strict=True):
            if isinstance(member, Diagonal):
                self._sum.flat[:: self.n_points + 1] += factor * member.values
        return self._sum

    @property
    def dtype(self) -> np.dtype:
        """The precision of the kernels; that of the most accurate one."""
        return np.result_type(*(_get_entries(member).dtype for member in self.members))

    @property
    def is_low_rank(self) -> bool:
        """Whether all kernels are given by features, and so many points that no matrix of theirs should be formed."""
        return self.n_points > MAX_DENSE_POINTS and all(isinstance(member, Factor) for member in self.members)

    def features(self, weights: np.ndarray, dtype: Any = np.float64) -> np.ndarray:
        """Return ``F`` with ``F F'`` the weighted sum of scaled kernels, where all are given by features.

        A call with other weights forgets it; one with the same, and the same type, gives it back.
        """
        if self._features is None or self._features.dtype != dtype or not np.array_equal(weights, self._summed):
            self._features = self._made = None  # so that there is one at a time
            factors = np.sqrt(weights / self.scales)
            active = [(factor, _get_entries(self.members[k])) for k, factor in enumerate(factors) if factor > 0.0]
            self._features = np.empty((self.n_points, sum(Z.shape[1] for _, Z in active)), dtype)
            start = 0
            for factor, Z in active:
                np.multiply(self._features.dtype.type(factor), Z, out=self._features[:, start : start + Z.shape[1]])
                start += Z.shape[1]
            self._summed = weights.copy()
        return self._features

    def made_of_features(self, F: np.ndarray, make: Callable[[np.ndarray], T]) -> T:
        """Return what is made of the features that :meth:`features` gave last, made once as long as they are kept."""
        if self._made is None or self._made[0] is not F:
            self._made = (F, make(F))
        made: T = self._made[1]
        return made

    def combined_product(self, weights: np.ndarray, X: np.ndarray) -> np.ndarray:
        """Return the product of the weighted sum of scaled kernels with ``X`` of shape (n_points, n_vectors)."""
        if not self.is_low_rank:
            return self.combine(weights) @ X
        return np.einsum("k,kic->ic", weights, self.products(X))

    def products(self, X: np.ndarray, at: np.ndarray | None = None) -> np.ndarray:
        """Return the products of each scaled kernel with the columns of ``X``.

        Parameters
        ----------
        X : ndarray of shape (n_points, n_vectors)
        at : ndarray, optional
            The rows of the products that are needed, sorted; all where ``X`` is not zero are among them. The others are
            undefined then, and less is read.

        Returns
        -------
        ndarray of shape (n_kernels, n_points, n_vectors)
        """
        out = np.zeros((len(self), X.shape[1], self.n_points))
        rows = np.flatnonzero(X.any(axis=1))
        by_half = at is not None and len(at) * self.n_points >= MIN_SYMMETRIC_ENTRIES
        whole, values = np.ascontiguousarray(X.T, dtype=float), np.ascontiguousarray(X[rows].T, dtype=float)
        for k, member in enumerate(self.members):
            if isinstance(member, Factor):
                _add_factor_product(member.Z, X, out[k])
                out[k] /= self.scales[k]
            elif isinstance(member, Diagonal):
                out[k] = X.T * member.values / self.scales[k]
            elif X.shape[1] <= MAX_ROWWISE_VECTORS and by_half:
                add_symmetric_rows(self._dense[k], at, whole / self.scales[k], out[k])
            elif X.shape[1] <= MAX_ROWWISE_VECTORS:
                add_rows(self._dense[k], rows, values / self.scales[k], out[k])
            else:
                for start in range(0, self.n_points, BLOCK_ROWS):
                    block = self._dense[k][start : start + BLOCK_ROWS].astype(float, copy=False)
                    out[k, :, start : start + BLOCK_ROWS] = (block @ X).T / self.scales[k]
        return out.transpose(0, 2, 1)

    def _restrict_member(self, k: int, rows: np.ndarray) -> Member:
        member = self.members[k]
        if isinstance(member, np.ndarray):
            block = np.empty((len(rows), len(rows)), member.dtype)
            gather(self._dense[k], rows, block)
            mirror(block)
            return block
        return Factor(member.Z[rows]) if isinstance(member, Factor) else Diagonal(member.values[rows])

    def _group_by_four(self, factors: np.ndarray) -> list[tuple[list[np.ndarray], np.ndarray]]:
        """Return the dense kernels with a weight in fours of one kind: so the sum is read and written less often."""
        kinds: dict[object, list[int]] = {}
        for k, K in self._dense.items():
            if factors[k] != 0.0:
                kinds.setdefault((K.dtype, K.flags.c_contiguous, K.flags.writeable), []).append(k)
        quartets = []
        for members in kinds.values():
            for start in range(0, len(members), 4):
                four = members[start : start + 4]
                kernels = [self._dense[k] for k in four] + [self._dense[four[0]]] * (4 - len(four))
                quartets.append((kernels, np.append(factors[four], np.zeros(4 - len(four)))))
        return quartets

    def _check(self) -> None:
        if self.scales.shape != (len(self),) or not np.all(self.scales > 0):
            raise ValueError(
                f"scales must hold a positive number for each of the {len(self)} kernels; got {self.scales}."
            )
        for k, member in enumerate(self.members):
            shape = _get_entries(member).shape
            expected = {Diagonal: (self.n_points,), Factor: (self.n_points, shape[-1])}
            if shape != expected.get(type(member), (self.n_points, self.n_points)):
                raise ValueError(
                    f"Kernel {k} has shape {shape}, but the stack is over {self.n_points} points; wrap a low-rank "
                    "factor in Factor and a diagonal in Diagonal."
                )


def _add_factor_product(Z: np.ndarray, X: np.ndarray, out: np.ndarray) -> None:
    """Add the transposed product of ``Z Z'`` with ``X``, in double precision without a copy of ``Z`` in it."""
    parts = [slice(start, start + CONVERTED_ROWS) for start in range(0, len(Z), CONVERTED_ROWS)]
    if Z.dtype == np.float64:
        parts = [slice(None)]
    left = sum((X[part].T @ Z[part].astype(float, copy=False) for part in parts), np.zeros((X.shape[1], Z.shape[1])))
    for part in parts:
        out[:, part] += left @ Z[part].astype(float, copy=False).T


def _get_entries(member: Member) -> np.ndarray:
    if isinstance(member, Factor):
        return member.Z
    return member.values if isinstance(member, Diagonal) else member


def _get_diagonal(member: Member) -> np.ndarray:
    if isinstance(member, Factor):
        return np.einsum("ij,ij->i", member.Z, member.Z, dtype=float)
    return np.asarray(member.values if isinstance(member, Diagonal) else member.diagonal(), dtype=float)


@compiled_later
def _add_four(out: Array, A: Array, B: Array, C: Array, D: Array, weights: Array, start: int, stop: int) -> None:
    """Add four weighted kernels to rows of ``out``, up to the diagonal."""
    a, b, c, d = weights[0], weights[1], weights[2], weights[3]
    for i in range(start, stop):
        row, row_a, row_b, row_c, row_d = out[i], A[i], B[i], C[i], D[i]
        for j in range(i + 1):
            row[j] += a * row_a[j] + b * row_b[j] + c * row_c[j] + d * row_d[j]


@_add_four.in_numpy
def _add_four_arrays(out: Array, A: Array, B: Array, C: Array, D: Array, weights: Array, start: int, stop: int) -> None:
    a, b, c, d = (weight * K[start:stop, :stop] for weight, K in zip(weights, (A, B, C, D), strict=True))
    out[start:stop, :stop] += a + b + c + d

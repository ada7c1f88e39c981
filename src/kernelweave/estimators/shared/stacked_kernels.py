"""The kernels of a library at the rows of a fit, all on one scale, as solvers of composite models want them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ...kernels.base import BoundKernel
from ...kernels.bound_library import BoundLibrary
from ...kernels.checks import remedy, require_finite, require_symmetric
from ...kernels.sharing import once, whole_block, whole_factor
from ...solvers.machines.kernel_stack import Factor, Member

MIN_VARIATION = 1e-12  # of the mean diagonal: a kernel that varies by less says nothing
MIN_KEPT_VARIATION = 1e-10  # of it: where the origin is so far away, little is left of the variation after rounding
MAX_EQUAL_DIFFERENCE = 1e-14  # of it: diagonals that differ by less are equal
EPS = float(np.finfo(float).eps)


@dataclass
class StackedKernels:
    """Kernels and what they are divided by.

    Attributes
    ----------
    members : list of ndarray, Factor
        At the rows asked for.
    scales : ndarray of shape (n_kernels,)
    rounding : float
        The relative precision of the values.
    origin : ndarray of shape (n_rows,), optional
        The weight of each row in the mean where the origin of every feature space is; None: where the kernels have it.
    """

    members: list[Member]
    scales: np.ndarray
    rounding: float = EPS
    origin: np.ndarray | None = None

    def center(self, share: np.ndarray) -> None:
        """Move the origin of every feature space to a mean of its rows, in place; what is centred can be so anew.

        What rounding leaves of a constant kernel becomes zero.

        Parameters
        ----------
        share : ndarray of shape (n_rows,)
            The weight of each row in the mean; they sum to 1.
        """
        self.origin = share
        least = max(MIN_VARIATION, 10.0 * self.rounding)
        for k, member in enumerate(self.members):
            if isinstance(member, Factor):
                Z = member.Z - (share @ member.Z).astype(member.Z.dtype)
                self.members[k] = Factor(Z)
                if np.square(Z).sum(axis=1).max() <= least * np.square(member.Z).sum(axis=1).max():
                    Z[...] = 0.0
            elif isinstance(member, np.ndarray):
                size, mean = np.abs(member.diagonal()).max(), member @ share.astype(member.dtype)
                member -= mean
                member -= (mean - float(share @ mean))[:, None]
                if np.abs(member.diagonal()).max() <= least * size:
                    member[...] = 0.0


def stack_kernels(
    bound: BoundLibrary,
    share: np.ndarray,
    *,
    owner: str,
    scale: str | None,
    dtype: str,
    rows: np.ndarray | None = None,
    among: np.ndarray | None = None,
) -> StackedKernels:
    """Return the kernels of a library at some rows, and their scales over all.

    Parameters
    ----------
    bound : BoundLibrary
    share : ndarray of shape (n_rows,)
        The weight of each row in the scales; they sum to 1.
    owner : str
        Who asks, for messages.
    scale : {"trace", "variance"} or None
        The mean diagonal of the centred kernel, the rms entry of it, or 1.
    dtype : str
        In which the kernels are kept.
    rows : ndarray, optional
        All by default.
    among : ndarray, optional
        The rows of the library that all this is about: ``share`` and ``rows`` speak of them, and kernels are computed
        nowhere else. All by default.
    """
    everything = slice(None) if among is None else among
    by_means = rows is not None and among is None and scale != "variance"  # nothing of all pairs of rows is needed
    members: list[Member] = []
    scales = np.ones(len(bound.kernels))
    precision = np.finfo(dtype)
    rounding = float(precision.eps)
    smallest = float(precision.tiny) / rounding  # smaller numbers lose digits
    largest = np.inf if dtype == "float64" else float(precision.max) * rounding  # sums of larger ones overflow
    for p, kernel in enumerate(bound.kernels):
        name = bound.entries[p].name
        Z, K = _read_values(kernel.restrict(rows) if by_means and rows is not None else kernel, among)
        if by_means:
            diagonal, means = once("diagonal and means", kernel, partial(_find_means, kernel, share), None, share)
        else:
            diagonal = K.diagonal() if Z is None else np.einsum("ij,ij->i", Z, Z)
            means = K @ share if Z is None else Z @ (share @ Z)
        require_finite(means, name)  # every entry has a share in them
        if Z is None:
            require_symmetric(K, name, owner)
        spread = float(share @ diagonal - share @ means)
        if scale == "variance":
            block = kernel.block(everything, everything) - means - means[:, None] + share @ means
            unit = float(np.abs(block).max()) or 1.0
            scales[p] = unit * np.sqrt(share @ np.square(block / unit) @ share)
        elif scale == "trace":
            scales[p] = spread
        size = abs(float(share @ diagonal))
        if 0.0 < size < smallest or size > largest:
            raise ValueError(
                f"The kernel {name} has values of about {size:.1e}, too {'small' if size < 1.0 else 'large'} to "
                f"compute with as {dtype}. Scale the features, with a StandardScaler for instance."
            )
        if spread < -MIN_KEPT_VARIATION * size:
            raise ValueError(
                f"The kernel {name} is not positive semi-definite, as {owner} requires: the variance of its rows "
                f"is negative. {remedy(owner)}"
            )
        if spread <= MIN_KEPT_VARIATION * size and np.ptp(diagonal) > MAX_EQUAL_DIFFERENCE * size:
            raise ValueError(
                f"The kernel {name} varies by only {max(spread, 0.0) / size:.0e} of its values, most of it lost to "
                "rounding: the rows are much farther from the origin than from each other. Centre "
                "the columns, as StandardScaler does."
            )
        if spread <= MIN_VARIATION * size:
            scales[p] = 1.0  # the offset absorbs a constant kernel, whatever its scale
        rounding = max(rounding, float(np.finfo((K if Z is None else Z).dtype).eps))
        kept = None if by_means else rows
        if Z is not None:
            members.append(Factor(np.ascontiguousarray(Z if kept is None else Z[kept], dtype=dtype)))
        else:
            members.append(np.ascontiguousarray(K if kept is None else K[np.ix_(kept, kept)], dtype=dtype))
    return StackedKernels(members, scales, rounding)


def _read_values(kernel: BoundKernel, rows: np.ndarray | None) -> tuple[np.ndarray | None, np.ndarray]:
    """Return a kernel at some rows, all by default, as a factor and an empty matrix, or as none and the matrix."""
    Z = whole_factor(kernel)
    if Z is not None:
        return Z if rows is None else Z[rows], np.empty((0, 0))
    return None, whole_block(kernel) if rows is None else kernel.block(rows, rows)


def _find_means(kernel: BoundKernel, share: np.ndarray, _: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the diagonal of a kernel, and its weighted mean over the rows at each row."""
    return kernel.diag().astype(np.float64, copy=False), kernel.products(share[:, None])[:, 0]


def multiply_mean(stacked: StackedKernels, rows: np.ndarray, columns: np.ndarray, coef: np.ndarray) -> np.ndarray:
    """Return the mean of the scaled kernels at some rows and columns, times coefficients of the columns."""
    total = np.zeros((len(rows), coef.shape[1]))
    for member, scale in zip(stacked.members, stacked.scales, strict=True):
        if isinstance(member, Factor):
            total += member.Z[rows] @ (member.Z[columns].T @ coef) / scale
        elif isinstance(member, np.ndarray):
            total += member[np.ix_(rows, columns)] @ coef / scale
    return total / len(stacked.members)

"""The kernels of a library at the rows of a fit, all on one scale, as solvers of composite models want them."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotrf

from ..kernels.bound_library import BoundLibrary
from ..solvers.machines.kernel_stack import LARGE, Factor, Member

CONSTANT = 1e-12  # of the mean diagonal: a kernel that varies by less says nothing
LOST = 1e-10  # of it: where the origin is so far away, little is left of the variation after rounding
EQUAL = 1e-14  # of it: diagonals that differ by less are equal
ASYMMETRY = 1e-8  # of the largest entry
NEGATIVE, ROUNDINGS = 1e-9, 10.0  # of the trace, and times the precision: eigenvalues above minus this may be rounding
EPS = float(np.finfo(float).eps)
SMALLEST = float(np.finfo(float).tiny) / EPS  # smaller numbers lose digits
STRIP = 64  # rows
MEMORY_SHARE = 0.8  # of the machine's memory that a stack may take


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
    """

    members: list[Member]
    scales: np.ndarray
    rounding: float = EPS

    def center(self, share: np.ndarray) -> None:
        """Move the origin of every feature space to a mean of its rows, in place; what is centred can be so anew.

        What rounding leaves of a constant kernel becomes zero.

        Parameters
        ----------
        share : ndarray of shape (n_rows,)
            The weight of each row in the mean; they sum to 1.
        """
        least = max(CONSTANT, 10.0 * self.rounding)
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
    """
    everything = slice(None)
    members: list[Member] = []
    scales = np.ones(len(bound.kernels))
    rounding = float(np.finfo(dtype).eps)
    for p, kernel in enumerate(bound.kernels):
        name, Z = bound.entries[p].name, kernel.factor()
        K = np.empty((0, 0)) if Z is not None else kernel.block(everything, everything)
        diagonal = K.diagonal() if Z is None else np.einsum("ij,ij->i", Z, Z)
        means = K @ share if Z is None else Z @ (share @ Z)
        _check_finite(means, name)  # every entry has a share in them
        if Z is None:
            _check_symmetric(K, name, owner)
        spread = float(share @ diagonal - share @ means)
        if scale == "variance":
            block = kernel.block(everything, everything) - means - means[:, None] + share @ means
            largest = float(np.abs(block).max()) or 1.0
            scales[p] = largest * np.sqrt(share @ np.square(block / largest) @ share)
        elif scale == "trace":
            scales[p] = spread
        size = abs(float(share @ diagonal))
        if 0.0 < size < SMALLEST:
            raise ValueError(
                f"The kernel {name} has values of about {size:.1e}, too small to compute with. Scale the features, "
                "with a StandardScaler for instance."
            )
        if spread < -LOST * size:
            raise ValueError(
                f"The kernel {name} is not positive semi-definite, as {owner} requires: about their centre, its rows "
                f"have a negative variance. Leave it out, or use {any_kernel(owner)}."
            )
        if spread <= LOST * size and np.ptp(diagonal) > EQUAL * size:
            raise ValueError(
                f"The kernel {name} varies by {max(spread, 0.0) / size:.0e} of its values, and rounding leaves little "
                "of that: the rows are far from the origin against their distances. Subtract a typical value from "
                "the columns, as StandardScaler does."
            )
        if spread <= CONSTANT * size:
            scales[p] = 1.0  # the offset absorbs a constant kernel, whatever its scale
        rounding = max(rounding, float(np.finfo((K if Z is None else Z).dtype).eps))
        if Z is not None:
            members.append(Factor(np.ascontiguousarray(Z if rows is None else Z[rows], dtype=dtype)))
        else:
            members.append(np.ascontiguousarray(K if rows is None else K[np.ix_(rows, rows)], dtype=dtype))
    return StackedKernels(members, scales, rounding)


def require_memory(
    owner: str, bound: BoundLibrary, n_rows: int, dtype: str, advice: str, by_features: bool = False
) -> None:
    """Refuse a fit whose kernels, at so many rows, and what is computed with them would not fit into the memory.

    ``by_features``: whether the fit forms no matrix of all rows where kernels are given by features.
    """
    ranks = [kernel.rank for kernel in bound.kernels]
    n_values = sum(n_rows * (n_rows if rank is None else rank) for rank in ranks)
    low_rank = by_features and n_rows > LARGE and None not in ranks
    n_bytes = n_values * np.dtype(dtype).itemsize + (8 * n_values if low_rank else 24 * n_rows**2)
    require_room(
        n_bytes,
        f"{owner} keeps {len(ranks)} kernels of {n_rows:,} rows in memory",
        f'Use fewer kernels or rows, dtype="float32", or {advice}.',
    )


def require_room(n_bytes: float, what: str, advice: str) -> None:
    """Refuse what would not fit into the memory of this machine."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not known on this system
        return
    if n_bytes > MEMORY_SHARE * memory:
        raise MemoryError(f"{what}, about {n_bytes / 2**30:.1f} GB of the {memory / 2**30:.1f} GB here. {advice}")


def any_kernel(owner: str) -> str:
    """Return the words for estimators of the owner's kind that take any kernel."""
    kind = "Regressor" if owner.endswith("Regressor") else "Classifier"
    return f"CGBoost{kind} or SSMK{kind}, which take any kernel"


def is_definite(K: np.ndarray, rounding: float = EPS) -> bool:
    """Return whether a kernel is positive semi-definite about its centre, up to the rounding of its values."""
    means = K.mean(axis=0)
    centered = K - means - means[:, None] + means.mean()
    trace = max(float(np.trace(centered)), np.finfo(float).tiny)
    centered.flat[:: len(K) + 1] += max(NEGATIVE, ROUNDINGS * rounding) * trace
    return int(dpotrf(centered, lower=1, overwrite_a=1)[1]) == 0


def _check_finite(values: np.ndarray, name: str) -> None:
    if not np.isfinite(values).all():
        raise ValueError(
            f"The kernel {name} gave values that are not finite (NaN or inf). Check the function or matrix it is "
            "made from, or scale the features: large values overflow in polynomials."
        )


def _check_symmetric(K: np.ndarray, name: str, owner: str) -> None:
    differs = largest = 0.0
    for start in range(0, len(K), STRIP):  # strips stay in the processor's cache
        rows = K[start : start + STRIP, : start + STRIP]
        differs = max(differs, float(np.abs(rows - K[: start + STRIP, start : start + STRIP].T).max()))
        largest = max(largest, float(np.abs(rows).max()))
    if differs > ASYMMETRY * largest:
        raise ValueError(
            f"The kernel {name} is not symmetric, and {owner} needs symmetric, positive semi-definite kernels. "
            f"Leave it out, or use {any_kernel(owner)}."
        )

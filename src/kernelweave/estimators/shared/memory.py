"""Refusals of what would not fit into the memory of this machine, before anything large is formed."""

from __future__ import annotations

import os

import numpy as np

from ...kernels.bound_library import BoundLibrary
from ...solvers.machines.kernel_stack import MAX_DENSE_POINTS

MEMORY_SHARE = 0.8  # of the machine's memory that a fit may take


def require_stack_memory(
    owner: str, bound: BoundLibrary, n_rows: int, dtype: str, advice: str, by_features: bool = False
) -> None:
    """Refuse a fit whose kernels, at so many rows, and what is computed with them would not fit into the memory.

    ``by_features``: whether the fit forms no matrix of all rows where kernels are given by features.
    """
    ranks = [kernel.rank for kernel in bound.kernels]
    n_values = sum(n_rows * (n_rows if rank is None else rank) for rank in ranks)
    low_rank = by_features and n_rows > MAX_DENSE_POINTS and None not in ranks
    n_bytes = n_values * np.dtype(dtype).itemsize + (8 * n_values if low_rank else 24 * n_rows**2)
    require_memory(
        n_bytes,
        f"{owner} keeps {len(ranks)} kernels of {n_rows:,} rows in memory",
        f'Use fewer kernels or rows, dtype="float32", or {advice}.',
    )


def require_memory(n_bytes: float, what: str, advice: str) -> None:
    """Refuse what would not fit into the memory of this machine."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not known on this system
        return
    if n_bytes > MEMORY_SHARE * memory:
        raise MemoryError(f"{what}, about {n_bytes / 2**30:.1f} GB of the {memory / 2**30:.1f} GB here. {advice}")

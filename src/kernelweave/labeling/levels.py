"""A small part of the distinct texts of a column that stands for all of its cells, whatever the order of the rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["sample_levels"]


def sample_levels(levels: Sequence[str], counts: NDArray[np.intp], n_cells: int) -> tuple[list[str], NDArray[np.intp]]:
    """Return the texts of cells at even distances among the sorted ones, and how many of these cells have each text.

    Texts that begin alike take the same share of the sample as of the column, up to one cell.

    Parameters
    ----------
    levels : sequence of str
        The distinct texts of the column.
    counts : ndarray of int, shape (n_levels,)
        How many cells have each of them.
    n_cells : int
        The size of the sample; columns of no more cells are returned whole.

    Examples
    --------
    >>> sample_levels(["b", "a", "d"], np.array([6, 2, 2]), 5)
    (['a', 'b', 'd'], array([1, 3, 1]))
    """
    order = np.array(sorted(range(len(levels)), key=levels.__getitem__), dtype=np.intp)
    ends = np.cumsum(counts[order])
    total = int(ends[-1]) if len(ends) else 0
    n_cells = min(n_cells, total)
    cells = (2 * np.arange(n_cells) + 1) * total // (2 * max(n_cells, 1))  # the middles of n_cells equal parts
    picks, n_picked = np.unique(np.searchsorted(ends, cells, side="right"), return_counts=True)
    return [levels[k] for k in order[picks].tolist()], n_picked

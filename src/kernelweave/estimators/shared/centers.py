"""Which rows may be centres of basis functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...parameters import is_count
from ...short_text import short_repr
from .partitioned import PartitionedSample
from .sample import Sample

MAX_AUTO_CENTERS = 20_000  # more rows than this rarely help, and cost time in proportion


@dataclass(frozen=True, eq=False)
class Centers:
    """The rows that a mixture needs: the labelled ones and those that may be centres.

    Attributes
    ----------
    sample : Sample
    is_center : ndarray of shape (n_rows,)
        Which rows of the sample may be centres.
    scope : str
        The centres in words.
    """

    sample: Sample
    is_center: np.ndarray
    scope: str


def choose_centers(centers: Any, sample: Sample, rng: np.random.Generator, *, every_row: bool = False) -> Centers:
    """Keep the rows that a fit needs: the labelled ones and those that may be centres.

    Parameters
    ----------
    centers : {"auto", "all", "labeled"}, int or array-like
        ``"all"``: every row. ``"labeled"``: labelled rows only. A number: labelled rows, and others drawn at random up
        to that many in all. ``"auto"``: every row up to 20,000 of them, else that number. An array: row numbers, or a
        mask over the rows.
    sample : Sample
    rng : numpy.random.Generator
    every_row : bool, default=False
        Whether the norm is that of the RKHS, which needs a centre at every labelled row and none elsewhere.
    """
    n_rows = sample.n_rows
    is_labeled = np.zeros(n_rows, dtype=bool)
    is_labeled[sample.partition.labeled] = True
    if isinstance(centers, str) and centers in ("auto", "all", "labeled"):
        is_center = is_labeled if centers == "labeled" else np.ones(n_rows, dtype=bool)
        if centers == "auto" and n_rows > MAX_AUTO_CENTERS and not every_row:
            is_center = _draw(is_labeled, MAX_AUTO_CENTERS, rng)
    elif is_count(centers):
        is_center = _draw(is_labeled, int(centers), rng)
    else:
        is_center = _read_mask(centers, sample.n_given)[sample.kept]
    if not is_center.any():
        raise ValueError(f"centers={short_repr(centers)} leaves no row of positive weight that may be a centre.")
    if every_row and not np.array_equal(is_center, is_labeled):
        raise ValueError('penalty="rkhs" needs a centre at every labelled row and none elsewhere: centers="all".')
    count = int(is_center.sum())
    keep = is_center | is_labeled
    return Centers(sample.restrict(keep), is_center[keep], _describe(count, n_rows))


def gather_centers(centers: Any, sample: PartitionedSample, rng: np.random.Generator) -> Centers | None:
    """Bring the rows of a partitioned sample to memory that a fit needs; None where all of too many may be centres.

    Parameters are those of :func:`choose_centers`, and the same rows are drawn.
    """
    n_rows, labeled = sample.n_rows, sample.labeled
    if isinstance(centers, str) and centers == "all" and n_rows > MAX_AUTO_CENTERS:
        return None
    if isinstance(centers, str) and centers == "labeled":
        chosen = labeled
    elif isinstance(centers, str) and centers in ("auto", "all") and n_rows <= MAX_AUTO_CENTERS:
        chosen = np.arange(n_rows)
    elif is_count(centers) or (isinstance(centers, str) and centers == "auto"):
        n_centers = MAX_AUTO_CENTERS if isinstance(centers, str) else int(centers)
        if len(labeled) >= n_centers:
            order = sample.find_order()
            chosen = rng.choice(order[np.isin(order, labeled)], n_centers, replace=False)
        else:
            chosen = np.concatenate([labeled, sample.draw_unlabeled(n_centers - len(labeled), rng)])
    else:
        chosen = np.flatnonzero(_read_mask(centers, n_rows))
    gathered = sample.gather(chosen)
    return Centers(gathered, np.isin(gathered.kept, chosen), _describe(len(chosen), n_rows))


def _describe(count: int, n_rows: int) -> str:
    scope = f"{count:,} centre{'s' * (count > 1)}"
    return scope if count == n_rows else f"{scope} of {n_rows:,} rows"


def _draw(is_labeled: np.ndarray, n_centers: int, rng: np.random.Generator) -> np.ndarray:
    """Return the labelled rows and a random part of the others, or a part of the labelled ones if they are many."""
    first, others = np.flatnonzero(is_labeled), np.flatnonzero(~is_labeled)
    chosen = np.zeros(len(is_labeled), dtype=bool)
    if len(first) >= n_centers:
        chosen[rng.choice(first, n_centers, replace=False)] = True
        return chosen
    chosen[first] = True
    chosen[rng.choice(others, min(n_centers - len(first), len(others)), replace=False)] = True
    return chosen


def _read_mask(centers: Any, n_rows: int) -> np.ndarray:
    """Return a mask from row numbers or a mask."""
    try:
        given = np.asarray(centers)
    except ValueError:  # ragged
        given = np.empty(0)
    mask = np.zeros(n_rows, dtype=bool)
    if given.dtype == bool and given.shape == (n_rows,):
        return given
    whole = given.dtype.kind in "iu" and given.ndim == 1 and len(given) > 0
    if not whole or given.min() < 0 or given.max() >= n_rows:
        raise ValueError(
            f'centers={short_repr(centers)}; expected "auto", "all", "labeled", a number of centres, row numbers from '
            f"0 to {n_rows - 1}, or a mask over the {n_rows} rows."
        )
    mask[given] = True
    return mask

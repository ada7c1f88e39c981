"""The columns of a mixture at partitioned rows: measured and priced where the rows are.

The interface is that of :class:`~kernelweave.estimators.shared.scaled_columns.ScaledColumns`. A scan brings
back the columns of the largest scores, on which the bound of a problem with the 1-norm depends alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...kernels.bound_library import column_sizes
from ...kernels.expansion import KernelExpansion
from ...kernels.partitioned import ColumnScale, PartitionedLibrary
from .centers import Centers
from .formulation import MIN_DEVIATION, Formulation


class PartitionedColumns:
    """Columns of a library at partitioned rows, every one of which may be a centre.

    Parameters
    ----------
    bound : PartitionedLibrary
        Seen from the labelled rows.
    centers : Centers
        Of the labelled rows alone.
    formulation : Formulation
        With the 1-norm.
    column_scale : {"std", "norm"} or None
    """

    def __init__(self, bound: PartitionedLibrary, centers: Centers, formulation: Formulation, column_scale: str | None):
        self.bound, self.centers, self.formulation = bound, centers, formulation
        weight = centers.sample.labeled_weight
        self.share = weight / weight.sum()
        self.scale = None if column_scale is None else self._find_scale(column_scale)

    def _find_scale(self, column_scale: str) -> ColumnScale:
        """Find what is rounding, and what scales are at least: a share of what is usual for their kernel."""
        none = np.zeros(len(self.bound.kernels))
        if column_scale != "std":
            return ColumnScale(self.share, False, none, none)
        centered = self.formulation.centered
        rounding, largest = self.bound.largest_sizes(self.share, centered=centered)
        least = rounding if centered else none
        unit = np.ldexp(1.0, np.frexp(np.where(largest > least, largest, 0.0))[1])
        usual = self.bound.mean_squares(self.share, least, unit, centered=centered)
        return ColumnScale(self.share, centered, least, MIN_DEVIATION * unit * np.sqrt(usual))

    @property
    def candidates(self) -> Any:
        """The numbers of the rows that may be centres, all: a lazy Dask array."""
        return self.bound.rows.numbers()

    def scales(self, columns: np.ndarray) -> np.ndarray:
        """Return what these columns are divided by."""
        return self._scales_of(self.bound.values(columns), columns)

    def price(self, V: np.ndarray, stratum: Any) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Give the columns of the largest scores, which decide."""
        form = self.formulation
        yield self.bound.best_scores(V, self.scale, centered=form.centered, signed=form.positive)

    def fetch(self, columns: np.ndarray) -> np.ndarray:
        """Return scaled columns, shape (n_labeled, n_columns)."""
        K = self.bound.values(columns)
        return (K - K.mean(axis=0) if self.formulation.centered else K) / self._scales_of(K, columns)

    def means(self, columns: np.ndarray) -> np.ndarray:
        """Return what the problems subtract from these columns."""
        if not self.formulation.centered:
            return np.zeros(len(columns))
        return self.bound.values(columns).mean(axis=0)

    def expand(self, columns: np.ndarray, coef: np.ndarray, intercept: np.ndarray) -> KernelExpansion:
        """Return the model that these columns make with coefficients of the columns as they are."""
        kernel, center = np.divmod(columns, self.bound.n_rows)
        distinct, place = np.unique(center, return_inverse=True)
        at_centers = self.bound.at(self.bound.rows_at(distinct))
        return KernelExpansion.from_columns(at_centers, kernel * len(distinct) + place, coef, intercept, distinct)

    def penalties(self, columns: np.ndarray, coef: np.ndarray) -> np.ndarray:
        """Return what each kernel's coefficients, of the scaled columns, add to the norm."""
        kernel, out = columns // self.bound.n_rows, np.zeros((len(self.bound.kernels), coef.shape[1]))
        np.add.at(out, kernel, np.abs(coef))
        return out

    def _scales_of(self, K: np.ndarray, columns: np.ndarray) -> np.ndarray:
        if self.scale is None or not len(columns):
            return np.ones(len(columns))
        sizes = column_sizes(K, self.share, centered=self.scale.centered)[0]
        return self.scale.divisors(sizes, columns // self.bound.n_rows)

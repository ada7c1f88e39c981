"""The columns of a mixture as its problems see them: divided by their scales, and centred if the offset is free."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np

from ...kernels.bound_library import BoundLibrary
from ...kernels.expansion import KernelExpansion
from .centers import Centers
from .formulation import Formulation, diagonals

COPY_TOL = 1e-12  # relative difference of columns that are equal but for rounding


class ScaledColumns:
    """Columns of a library that is tied to rows in memory.

    Parameters
    ----------
    bound : BoundLibrary
        Tied to the rows of ``centers.sample``.
    centers : Centers
    formulation : Formulation
    column_scale : {"std", "norm"} or None

    Attributes
    ----------
    scale : ndarray of shape (n_columns,)
        What columns are divided by; infinite for those that take no part.
    order : list of int
        The kernels that are priced. With the 1-norm, one that equals an earlier one changes nothing; such are looked
        for where all columns are in memory and have scales to compare.
    """

    def __init__(self, bound: BoundLibrary, centers: Centers, formulation: Formulation, column_scale: str | None):
        self.bound, self.centers, self.formulation = bound, centers, formulation
        self.labeled = centers.sample.partition.labeled
        scale = formulation.scales(bound, self.labeled, centers.sample.weight, column_scale)
        self.scale = np.where(np.tile(centers.is_center, len(bound.kernels)), scale, np.inf)
        looks_for_copies = formulation.penalty == "l1" and column_scale and bound.is_small(len(self.labeled))
        copies = self._find_copies() if looks_for_copies else set()
        self.order = [p for p in range(len(bound.kernels)) if p not in copies]

    @property
    def candidates(self) -> Any:
        """What the user calls the rows that may be centres."""
        return np.sort(self.centers.sample.kept[self.centers.is_center])

    @property
    def scaled_diagonals(self) -> np.ndarray:
        """The diagonals of the scaled kernels at the labelled rows, shape (n_kernels, n_labeled)."""
        return diagonals(self.bound, self.labeled) / self.scale[:: self.bound.n_rows, None]

    def scales(self, columns: np.ndarray) -> np.ndarray:
        """Return what these columns are divided by."""
        return self.scale[columns]

    def price(self, V: np.ndarray, stratum: Any) -> Iterator[tuple[slice | np.ndarray, np.ndarray]]:
        """Walk the scores of the scaled columns of a stratum."""
        order, rows = (self.order, None) if stratum is None else stratum
        centered = self.formulation.centered
        for columns, scores in self.bound.scores(V, self.labeled, order, centers=rows, centered=centered):
            yield columns, scores / self.scale[columns, None]

    def fetch(self, columns: np.ndarray) -> np.ndarray:
        """Return scaled columns, shape (n_labeled, n_columns)."""
        K = self.bound.walked_columns(columns, self.labeled, centered=self.formulation.centered)
        K /= self.scale[columns]
        return K

    def means(self, columns: np.ndarray) -> np.ndarray:
        """Return what the problems subtract from these columns."""
        if not self.formulation.centered:
            return np.zeros(len(columns))
        return self.bound.columns(columns, self.labeled).mean(axis=0)

    def strata(self, errors: np.ndarray) -> list[tuple[list[int], np.ndarray]]:
        """Return the strata of pricing: columns at rows that miss their margin first, cheapest kernels first."""
        at_errors = np.zeros(self.bound.n_rows, dtype=bool)
        at_errors[self.labeled[errors]] = True
        parts = [np.flatnonzero(at_errors), np.flatnonzero(~at_errors)]
        return [([p], rows) for rows in parts if len(rows) for p in self.bound.order if p in self.order]

    def expand(self, columns: np.ndarray, coef: np.ndarray, intercept: np.ndarray) -> KernelExpansion:
        """Return the model that these columns make with coefficients of the columns as they are."""
        return KernelExpansion.from_columns(self.bound, columns, coef, intercept, self.centers.sample.kept)

    def penalties(self, columns: np.ndarray, coef: np.ndarray) -> np.ndarray:
        """Return what each kernel's coefficients, of the scaled columns, add to the norm."""
        return self.formulation.penalties(self.bound, columns, coef, self.scale[columns])

    def _find_copies(self) -> set[int]:
        """Return the kernels whose columns all equal those of an earlier one, up to rounding.

        Kernels whose scales are equal are compared by their products with one vector.
        """
        scales, copies = self.scale.reshape(len(self.bound.kernels), -1), set[int]()
        v = np.cos(np.arange(len(self.labeled)))[:, None]  # equal columns have equal sums, whatever the weights
        sums: dict[int, np.ndarray] = {}
        for p, q in combinations(range(len(scales)), 2):
            if {p, q} & copies or not np.allclose(scales[p], scales[q], rtol=COPY_TOL, atol=0.0):
                continue
            for k in {p, q} - set(sums):
                sums[k] = np.concatenate([part for _, part in self.bound.scores(v, self.labeled, [k])])[:, 0]
            if np.allclose(sums[p], sums[q], rtol=COPY_TOL, atol=0.0):
                copies.add(q)
        return copies

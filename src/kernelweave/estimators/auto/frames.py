"""Rows with names, for candidates of the user's that choose columns by name.

A search reads a frame once, as an array that all candidates share. Kernels that name columns get positions in their
place; to any other estimator of the user's the rows are given as a frame of the same library again.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone

from ...kernels.base import Kernel
from ...kernels.defaults import as_library
from ...kernels.library import KernelLibrary
from ..shared.base import RECIPES, KernelEstimator
from ..shared.sample import Rows

LIBRARIES = ("pandas", "polars")


@dataclass(frozen=True)
class Columns:
    """The names of columns, and the library of frames that they come from.

    Attributes
    ----------
    names : tuple of str
    library : {"pandas", "polars"}

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.estimators.auto.frames import Columns
    >>> list(Columns(("length", "width"), "pandas").name(np.zeros((3, 2))).columns)
    ['length', 'width']
    """

    names: tuple[str, ...]
    library: str

    def name(self, X: Any) -> Any:
        """Return rows as a frame; a pandas frame has the memory of the array."""
        frame, X = import_module(self.library).DataFrame, X.toarray() if issparse(X) else X
        return frame(X, columns=list(self.names)) if self.library == "pandas" else frame(X, schema=list(self.names))


def read_columns(X: Any, rows: Rows) -> Columns | None:
    """Return the columns of what the user gave, which was read as ``rows``; None where candidates see arrays."""
    library = type(X).__module__.partition(".")[0]
    if rows.feature_names is None or library not in LIBRARIES or issparse(rows.X):
        return None
    return Columns(tuple(rows.feature_names.tolist()), library)


def name_rows(X: Any, columns: Columns | None) -> Any:
    """Return rows as a frame where they have names."""
    return X if columns is None else columns.name(X)


def copy_with_names(model: Any, names: np.ndarray | None) -> Any:
    """Return a copy of a model of ours that was fitted to an array and is to predict frames; None of None."""
    copied = copy.deepcopy(model)
    if copied is not None and names is not None:
        copied.feature_names_in_ = names
        copied._kept = (*copied._kept, "feature_names_in_")  # another fit forgets them
    return copied


def place_columns(estimator: KernelEstimator, columns: Columns) -> Any:
    """Return a copy of an estimator of ours whose kernels have positions in the place of the names of columns."""
    copied, names = clone(estimator), list(columns.names)
    for key, value in copied.get_params().items():
        *outer, name = key.split("__")
        if name in RECIPES and value is not None and not set(outer) & set(RECIPES):  # recipes hold recipes
            placed = (
                value.resolve(names, len(names))
                if isinstance(value, Kernel)
                else place_library(value, names, len(names))
            )
            copied.set_params(**{key: placed})
    return copied


def place_library(kernels: Any, names: list[str] | None, n_features: int) -> KernelLibrary:
    """Return the library that a parameter means, with positions in the place of the names of columns."""
    library = as_library(kernels)
    resolved = [(entry.name, entry.kernel.resolve(names, n_features)) for entry in library.entries]
    return KernelLibrary(resolved, priority=library.priority)

r"""Views of a table: kernels that compare its columns on several scales, and the rule that tells what is a table.

Columns of a table are in units of their own, skewed, discrete. No single scale suits them all, so a library for tables
holds several *views*, each of them a kernel that scales the columns by itself:

- standardised columns: linear and Gaussian kernel;
- skewed columns after a power that makes them symmetric (:class:`~kernelweave.kernels.scaling.PowerScaler`): linear and
  Gaussian kernel; left out where no column is skewed, since it would repeat the first view;
- a forest kernel, which knows the order of the values only, and finds the columns that go together.

**What is a table.** Dense rows whose columns do not share a unit. Columns share a unit, as pixels and spectra do, where
at least ten have more than two values, and nine in ten of their ranges lie within a factor of four of the median range:
a common unit is information which scaling each column by itself destroys (digits, 100 labels: 8 % error as they are,
14 % standardised). So do ten or more columns that are all flags. But columns that are all centred at zero with
deviations within a factor of two, or that all have one and the same range, have been scaled by somebody; what their
units were is not known, and they count as a table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.sparse import issparse

from .algebra import Sum
from .base import Kernel
from .column_names import find_positions
from .forest import ForestKernel
from .library import KernelLibrary
from .pointwise import RBF, Linear
from .scaling import ColumnScaler, PowerScaler, skewed_columns
from .wrappers import OnColumns, Preprocessed

MIN_UNIT_COLUMNS, MAX_RANGE_FACTOR, MIN_UNIT_SHARE = 10, 4.0, 0.9
MAX_MEAN = 4.0  # standard errors that the mean of a standardised column is from zero
MAX_DEVIATION_FACTOR = 2.0  # that the deviations of such columns differ by among few rows
SAME = 1e-6  # relative difference of ranges that are equal


def is_table(X: Any) -> bool:
    """Return whether each column seems to have its own unit; see the top of this module.

    Parameters
    ----------
    X : array or CSR of shape (n_rows, n_features)

    Examples
    --------
    >>> from sklearn.datasets import load_digits, load_wine
    >>> from kernelweave.kernels.tables import is_table
    >>> is_table(load_wine().data), is_table(load_digits().data)
    (True, False)
    """
    if issparse(X):
        return False
    X = np.asarray(X, dtype=np.float64)
    low, high = X.min(axis=0), X.max(axis=0)
    flags = ((low == X) | (high == X)).all(axis=0)  # constant columns, too
    if flags.all():
        return len(flags) < MIN_UNIT_COLUMNS
    X, ranges = X[:, ~flags], (high - low)[~flags]
    if len(ranges) < MIN_UNIT_COLUMNS or _are_scaled(X):
        return True
    middle = np.median(ranges)
    near = (ranges <= MAX_RANGE_FACTOR * middle) & (ranges >= middle / MAX_RANGE_FACTOR)
    return bool(near.mean() < MIN_UNIT_SHARE)


def _are_scaled(X: np.ndarray) -> bool:
    """Return whether columns look standardised, or brought to one range, perhaps together with other rows."""
    ranges = np.ptp(X, axis=0)
    if np.ptp(ranges) <= SAME * ranges.max():
        return True
    shifted = X - X[0]
    deviations = shifted.std(axis=0)
    centered = np.abs(shifted.mean(axis=0) + X[0]) <= MAX_MEAN * deviations / np.sqrt(len(X))
    middle = np.median(deviations)
    near = (deviations <= MAX_DEVIATION_FACTOR * middle) & (deviations >= middle / MAX_DEVIATION_FACTOR)
    return bool((centered & near).mean() >= MIN_UNIT_SHARE)


def table_library(X: Any, *, sources: Mapping[str, Any] | None = None, scaled: bool = False) -> KernelLibrary:
    """Return a library of views of the columns of a table, one set for each source.

    It is the default of the learners of kernel mixtures and sums where ``X`` is dense and its columns do not share a
    unit, as those of most tables.

    Parameters
    ----------
    X : array or frame of shape (n_rows, n_features)
        Labelled and unlabelled rows; used only to find skewed columns. Text and categories must be one-hot encoded
        before.
    sources : mapping, optional
        From the name of each source to its columns, as :class:`OnColumns` takes them.
    scaled : bool, default=False
        Whether columns have been scaled on purpose and must not be rescaled.

    Returns
    -------
    KernelLibrary
        For each source a linear and a Gaussian kernel of standardised columns, both again after a power transform
        where some columns are skewed, and a forest kernel.

    See Also
    --------
    one_kernel_per_group : Kernels of one's own for each source.
    ForestKernel : The last of the views.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from kernelweave import MKLClassifier, table_library
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> table_library(X).names
    ('linear', 'RBF', 'power linear', 'power RBF', 'forest')
    >>> library = table_library(X, sources={"acids": ["alcohol", "malic_acid"], "colour": ["color_intensity", "hue"]})
    >>> MKLClassifier(library, random_state=0).fit(X, y).score(X, y) > 0.9
    True
    """
    names = [str(name) for name in X.columns] if hasattr(X, "columns") else None
    values = np.asarray(X, dtype=np.float64)
    if sources is None:
        return KernelLibrary(list(views(values, scaled).items()))
    entries = []
    for source, columns in sources.items():
        positions = find_positions(OnColumns(Linear(), columns).columns, names, values.shape[1])
        for name, kernel in views(values[:, list(positions)], scaled).items():
            entries.append((f"{source}: {name}", OnColumns(kernel, columns, source=source)))
    return KernelLibrary(entries)


def table_kernel(X: Any, scaled: bool = False) -> Kernel:
    """Return one kernel for a table: the sum of its views that tell near rows from far ones, each of unit diagonal."""
    return Sum(tuple(kernel for name, kernel in views(np.asarray(X), scaled).items() if "linear" not in name))


def views(X: np.ndarray, scaled: bool = False) -> dict[str, Kernel]:
    """Return the views of some columns, by name; ``scaled``: of columns that are to be taken as they are."""
    plain: dict[str, Kernel] = {"linear": Linear(), "RBF": RBF()}
    powers: dict[str, Kernel] = {}
    if len(skewed_columns(ColumnScaler().fit(X).transform(X))):
        scaler = PowerScaler(keep_scale=scaled)
        powers = {f"power {name}": Preprocessed(scaler, kernel) for name, kernel in plain.items()}
    if not scaled:
        plain = {name: Preprocessed(ColumnScaler(), kernel) for name, kernel in plain.items()}
    return plain | powers | {"forest": ForestKernel()}

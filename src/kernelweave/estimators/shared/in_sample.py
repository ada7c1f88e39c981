r"""The values of a model at the rows it was fitted to, from kernels that are tied to them.

A deformed kernel is dense in its base, so that an expansion evaluates the base between all rows. Tied to its rows, it
knows their features: the same values, up to rounding, cost no kernel evaluation.
"""

from __future__ import annotations

import numpy as np

from ...kernels.base import ALL, Rows
from ...kernels.bound_library import BoundLibrary
from ...kernels.checks import require_finite
from ...kernels.expansion import KernelExpansion
from .sample import Sample


def outputs_at_given(expansion: KernelExpansion, bound: BoundLibrary, sample: Sample) -> np.ndarray:
    """Return the outputs at all rows given, shape (n_given, n_outputs).

    Parameters
    ----------
    expansion : KernelExpansion
        Of kernels of the library; its centres are named by their numbers among the rows given.
    bound : BoundLibrary
        Tied to rows of the sample. Where these are not all that were given, the expansion is evaluated.
    sample : Sample
    """
    if bound.n_rows != sample.n_given:
        return expansion(sample.rows.X)
    return outputs_at_rows(expansion, bound, sample)


def outputs_at_rows(expansion: KernelExpansion, bound: BoundLibrary, sample: Sample, rows: Rows = ALL) -> np.ndarray:
    """Return the outputs at rows of a sample, all by default, whose kernels are tied to all of them."""
    out = np.tile(expansion.intercept, (len(np.arange(sample.n_rows)[rows]), 1))
    for group in expansion.groups:
        coef = np.zeros((sample.n_rows, out.shape[1]))
        coef[np.searchsorted(sample.kept, group.centers)] = group.coef
        values = bound.kernels[group.kernel].products(coef, rows)
        require_finite(values, group.name)
        out += values
    return out

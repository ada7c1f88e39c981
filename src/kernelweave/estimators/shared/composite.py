r"""What models of one weighted sum of kernels share: their expansion, their weights by kernel and source, their duals.

A composite model is :math:`f(x) = \sum_p w_p \sum_j a_j K_p(x, x_j) + b`: the expansion with the coefficients
:math:`w_p a_j`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...kernels.bound_library import BoundLibrary
from ...kernels.checks import is_semidefinite_about_its_center, remedy
from ...kernels.expansion import KernelExpansion
from ...kernels.library import Entry
from ...solvers.machines.kernel_stack import KernelStack
from .records import NamedNumbers, Records
from .sample import Sample


@dataclass(frozen=True, eq=False)
class KernelWeights:
    """Learned weights of kernels; fields as the attributes of the estimators.

    Attributes
    ----------
    weights : ndarray of shape (n_kernels,) or (n_sets, n_kernels)
    kernel_weights : Records
        Name, source and weight (the mean over the sets) of each kernel.
    source_weights : NamedNumbers
        Their sums by source.
    """

    weights: np.ndarray
    kernel_weights: Records
    source_weights: NamedNumbers


@dataclass(frozen=True, eq=False)
class Duals:
    """Signed duals of each row given, and which rows have some; fields as the attributes of the estimators."""

    dual_coef: np.ndarray
    support: np.ndarray


def weights_by_kernel(weights: np.ndarray, entries: Sequence[Entry]) -> KernelWeights:
    """Return weights of shape (n_sets, n_kernels) with the names and sources of their kernels."""
    records, by_source = Records(), NamedNumbers()
    for entry, weight in zip(entries, weights.mean(axis=0), strict=True):
        records.append({"name": entry.name, "source": entry.source, "weight": float(weight)})
        by_source[entry.source] = by_source.get(entry.source, 0.0) + float(weight)
    return KernelWeights(weights[0] if len(weights) == 1 else weights, records, by_source)


def duals_by_row(x: np.ndarray, sample: Sample) -> Duals:
    """Return the signed duals of a sample's rows, shape (n_rows, n_outputs), as those of all rows given."""
    return Duals(sample.spread(x), np.sort(sample.kept[x.any(axis=1)]))


def composite_expansion(
    used: np.ndarray, coef: np.ndarray, intercept: np.ndarray, bound: BoundLibrary, row_numbers: np.ndarray
) -> KernelExpansion:
    """Return the model that predicts.

    Parameters
    ----------
    used : ndarray of shape (1 or n_outputs, n_kernels)
        What multiplies each kernel.
    coef : ndarray of shape (n_rows, n_outputs)
        What multiplies its columns.
    intercept : ndarray of shape (n_outputs,)
    bound : BoundLibrary
    row_numbers : ndarray of shape (n_rows,)
        What the user calls its rows.
    """
    n_rows, n_outputs = coef.shape
    by_output = np.broadcast_to(used, (n_outputs, used.shape[1]))
    support = np.flatnonzero(coef.any(axis=1))
    active = np.flatnonzero(used.any(axis=0))
    columns = np.concatenate([np.empty(0, dtype=np.intp), *(p * n_rows + support for p in active)])
    values = np.concatenate([np.zeros((0, n_outputs)), *(coef[support] * by_output[:, p] for p in active)])
    return KernelExpansion.from_columns(bound, columns, values, intercept, row_numbers)


def require_definite(
    owner: str, weights: np.ndarray, stack: KernelStack, bound: BoundLibrary, rounding: float, proven: bool = True
) -> None:
    """Refuse combined kernels that are not positive semi-definite: the solver need not have met that.

    Parameters
    ----------
    owner : str
        Who requires it.
    weights : ndarray of shape (n_sets, n_kernels)
    stack : KernelStack
    bound : BoundLibrary
    rounding : float
        The relative precision of the kernels' values.
    proven : bool
        Whether every solution has a duality gap, which indefinite kernels have not.
    """
    doubtful = [p for p, entry in enumerate(bound.entries) if not entry.kernel.is_psd]
    if proven and all(
        not w[doubtful].any() or is_semidefinite_about_its_center(stack.combine(w), rounding) for w in weights
    ):
        return
    raise ValueError(
        f"The combined kernel is not positive semi-definite, as {owner} requires. KernelLibrary(...).diagnose(X) shows "
        f"which kernel is not. {remedy(owner)}"
    )

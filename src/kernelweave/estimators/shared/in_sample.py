r"""The values of a model at the rows it was fitted to, from kernels that are tied to them.

A deformed kernel is dense in its base, so that an expansion evaluates the base between all rows. Tied to its rows, it
knows their features: the same values, up to rounding, cost no kernel evaluation.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ...distributed.rows import PartitionedRows
from ...kernels.base import ALL, Rows
from ...kernels.bound_library import BoundLibrary
from ...kernels.checks import require_finite
from ...kernels.expansion import KernelExpansion
from .outputs import choose_classes, transduce_classes, transduce_numbers
from .sample import Sample


def outputs_at_given(expansion: KernelExpansion, bound: Any, sample: Sample) -> np.ndarray:
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
    return np.asarray(sample.spread(outputs_at_rows(expansion, bound, sample)))


def transduce(expansion: KernelExpansion, sample: Sample, outputs: Callable[[], np.ndarray]) -> Any:
    """Return the given label, or number, of labelled rows and the predicted one of the others, for all rows given.

    Parameters
    ----------
    expansion : KernelExpansion
    sample : Sample
        Where its rows are partitioned, the labels are a lazy Dask array.
    outputs : callable
        Returns the outputs at all rows given where these are in memory.
    """
    classes = getattr(sample.partition, "classes", None)
    if isinstance(sample.rows.X, PartitionedRows):
        labels = sample.given.labels
        return fill_given(sample, partial(_label_rows, expansion, classes, labels.ndim == 1), labels)
    return (transduce_numbers if classes is None else transduce_classes)(outputs(), sample)


def _label_rows(expansion: KernelExpansion, classes: np.ndarray | None, is_single: bool, X: Any) -> np.ndarray:
    values = expansion(X)
    if classes is not None:
        return classes[choose_classes(values)]
    return values[:, 0] if is_single else values


def fill_given(sample: Sample, predict: Callable[[Any], np.ndarray], values: np.ndarray) -> Any:
    """Return values of all rows given: those of labelled rows, and what ``predict`` says of the others.

    Parameters
    ----------
    sample : Sample
        Where its rows are partitioned, the values are a lazy Dask array.
    predict : callable
        Of an array of rows; runs where the rows are.
    values : ndarray of shape (n_labeled, ...)
        Of the labelled rows given.
    """
    given, X = sample.given, sample.rows.X
    if isinstance(X, PartitionedRows):
        return X.map(_fill_block, values.shape[1:], values.dtype, predict, given.labeled, values)
    out = np.zeros((sample.n_given, *values.shape[1:]), dtype=values.dtype)
    out[given.labeled] = values
    if given.n_unlabeled:
        out[given.unlabeled] = predict(X[given.unlabeled])
    return out


def _fill_block(
    block: np.ndarray, first: int, predict: Callable[[Any], np.ndarray], labeled: np.ndarray, values: np.ndarray
) -> np.ndarray:
    out = np.asarray(predict(block), dtype=values.dtype)
    here = slice(*np.searchsorted(labeled, [first, first + len(block)]))
    out[labeled[here] - first] = values[here]
    return out


def outputs_at_rows(expansion: KernelExpansion, bound: BoundLibrary, sample: Sample, rows: Rows = ALL) -> np.ndarray:
    """Return the outputs at rows of a sample, all by default, whose kernels are tied to all of them."""
    out = np.tile(expansion.intercept, (len(np.arange(sample.n_rows)[rows]), 1))
    place = np.zeros(sample.n_given, dtype=np.intp)
    place[sample.kept] = np.arange(sample.n_rows)
    for group in expansion.groups:
        coef = np.zeros((sample.n_rows, out.shape[1]))
        coef[place[group.centers]] = group.coef
        values = bound.kernels[group.kernel].products(coef, rows)
        require_finite(values, group.name)
        out += values
    return out

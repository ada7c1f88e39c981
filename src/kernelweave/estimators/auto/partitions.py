"""What a search says of partitioned rows: the mixture labels them block by block, where they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...distributed.rows import PartitionedRows
from ..shared.sample import Sample
from .trust import map_rows


def label_given(sample: Sample, distributions: Any, classes: np.ndarray) -> Any:
    """Return the given labels of labelled rows, and the most probable class of the others, from all probabilities."""
    if isinstance(sample.rows.X, PartitionedRows):  # labelled rows have a probability of 1 for their class
        return distributions.map_blocks(_choose_labels, classes, drop_axis=1, dtype=classes.dtype)
    labels = _choose_labels(distributions, classes)
    labels[sample.given.labeled] = sample.given.labels
    return labels


def _choose_labels(distributions: np.ndarray, classes: np.ndarray) -> np.ndarray:
    return classes[distributions.argmax(axis=1)]


def open_rows(sample: Sample, mix: Callable[[Any], np.ndarray]) -> dict[str, Any]:
    """Return what a model keeps to choose rows to label: which are labelled, their places, probabilities of drawn ones.

    Rows are chosen among all; of partitioned ones among those in memory.
    """
    if isinstance(sample.rows.X, PartitionedRows):
        known = np.isin(sample.kept, sample.given.labeled)
        return {"_is_labeled": known, "_points": map_rows(sample.X, seed=0), "_drawn_chances": mix(sample.X)}
    known = np.isin(np.arange(sample.n_given), sample.given.labeled)
    return {"_is_labeled": known, "_points": map_rows(sample.rows.X, seed=0), "_drawn_chances": None}

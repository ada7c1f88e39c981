"""The rows of a problem, split into labelled and unlabelled ones; :mod:`kernelweave.labels.rule` does the splitting."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Rows = NDArray[np.intp]
Mask = NDArray[np.bool_]


class _Rows:
    """What both partitions share: two disjoint sets of row numbers, and arrays that cannot be written to."""

    labeled: Rows
    unlabeled: Rows

    def __post_init__(self) -> None:
        for field in fields(self):  # type: ignore[arg-type]
            frozen = np.asarray(getattr(self, field.name)).view()
            frozen.flags.writeable = False
            object.__setattr__(self, field.name, frozen)

    @property
    def n_labeled(self) -> int:
        """Number of labelled rows."""
        return len(self.labeled)

    @property
    def n_unlabeled(self) -> int:
        """Number of unlabelled rows."""
        return len(self.unlabeled)

    def _renumber(self, keep: ArrayLike) -> tuple[Mask, Rows, Rows]:
        """Which labelled rows stay, and the new numbers of the labelled and unlabelled rows that stay."""
        mask = np.asarray(keep)
        n_rows = self.n_labeled + self.n_unlabeled
        if mask.dtype != bool or mask.shape != (n_rows,):
            raise ValueError(
                f"keep must be a boolean mask over all {n_rows} rows, got dtype {mask.dtype} and shape "
                f"{mask.shape}. For row numbers write numpy.isin(numpy.arange({n_rows}), numbers)."
            )
        new_number = np.cumsum(mask) - 1
        stays = mask[self.labeled]
        return stays, new_number[self.labeled[stays]], new_number[self.unlabeled[mask[self.unlabeled]]]

    def _move(self, order: Rows) -> tuple[Rows, Rows, Rows]:
        """Which labelled row comes first, second, ... in another order of all rows, and the new numbers of both."""
        new_number = np.empty(len(order), dtype=np.intp)
        new_number[order] = np.arange(len(order))
        moved = new_number[self.labeled]
        first = np.argsort(moved)
        return first, moved[first], np.sort(new_number[self.unlabeled])


@dataclass(frozen=True, eq=False)
class Partition(_Rows):
    """The rows of a classification problem, split into labelled and unlabelled ones.

    Attributes
    ----------
    labeled : ndarray of shape (n_labeled,)
        Numbers of the labelled rows, ascending.
    unlabeled : ndarray of shape (n_unlabeled,)
        Numbers of the unlabelled rows, ascending.
    classes : ndarray of shape (n_classes,)
        The classes, sorted, in the user's coding; at least two.
    codes : ndarray of shape (n_labeled,)
        The class number of each labelled row: ``classes[codes]`` are the labels.

    Examples
    --------
    >>> from kernelweave.labels import partition
    >>> part = partition(["cat", None, "dog", "cat"])
    >>> part.labeled, part.unlabeled
    (array([0, 2, 3]), array([1]))
    >>> part.signs(0)
    array([ 1., -1.,  1.])
    """

    labeled: Rows
    unlabeled: Rows
    classes: NDArray[Any]
    codes: Rows

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @property
    def labels(self) -> NDArray[Any]:
        """The label of each labelled row, in the user's coding."""
        return self.classes[self.codes]

    def signs(self, k: int) -> NDArray[np.float64]:
        """+1 for the labelled rows of class number `k`, -1 for the other labelled rows."""
        if not 0 <= k < self.n_classes:
            raise IndexError(f"k must be a class number from 0 to {self.n_classes - 1}, got {k}.")
        return np.where(self.codes == k, 1.0, -1.0)

    def one_vs_rest(self) -> list[NDArray[np.float64]]:
        """The signs of each problem: one for two classes, +1 for the second; else one for each class."""
        return [self.signs(k) for k in ([1] if self.n_classes == 2 else range(self.n_classes))]

    def indicator(self) -> NDArray[np.float64]:
        """The 0/1 matrix of shape (n_labeled, n_classes) that has a one where a row is of a class."""
        return np.eye(self.n_classes)[self.codes]

    def restrict(self, keep: ArrayLike) -> Partition:
        """The partition of the rows in the mask `keep`, renumbered; classes without a row are left out.

        Leaving out rows after partitioning, and not before, keeps the meaning of -1 from changing with the
        rows that happen to remain.
        """
        stays, labeled, unlabeled = self._renumber(keep)
        present, codes = np.unique(self.codes[stays], return_inverse=True)
        classes = self.classes[present]
        refuse_fewer_than_two(classes, len(labeled), "the rows that are kept (those of positive weight)")
        return Partition(labeled, unlabeled, classes, codes)

    def reorder(self, order: Rows) -> Partition:
        """The partition of the same rows in another order: `order` are their old numbers."""
        first, labeled, unlabeled = self._move(order)
        return Partition(labeled, unlabeled, self.classes, self.codes[first])


@dataclass(frozen=True, eq=False)
class TargetPartition(_Rows):
    """The rows of a regression problem, split into labelled and unlabelled ones.

    Attributes
    ----------
    labeled : ndarray of shape (n_labeled,)
        Numbers of the rows with a target, ascending.
    unlabeled : ndarray of shape (n_unlabeled,)
        Numbers of the rows without, ascending.
    targets : ndarray of shape (n_labeled,) or (n_labeled, n_outputs)
        The targets of the labelled rows, float64.
    """

    labeled: Rows
    unlabeled: Rows
    targets: NDArray[np.float64]

    @property
    def labels(self) -> NDArray[np.float64]:
        """The number of each labelled row."""
        return self.targets

    def restrict(self, keep: ArrayLike) -> TargetPartition:
        """The partition of the rows in the mask `keep`, renumbered."""
        stays, labeled, unlabeled = self._renumber(keep)
        refuse_no_label(len(labeled), len(labeled) + len(unlabeled))
        return TargetPartition(labeled, unlabeled, self.targets[stays])

    def reorder(self, order: Rows) -> TargetPartition:
        """The partition of the same rows in another order: `order` are their old numbers."""
        first, labeled, unlabeled = self._move(order)
        return TargetPartition(labeled, unlabeled, self.targets[first])


def refuse_no_label(n_labeled: int, n_rows: int) -> None:
    """Refuse y without a labelled row."""
    if n_labeled == 0:
        raise ValueError(
            f"y holds no labelled row: all {n_rows} rows are unlabelled. Label some of them; NaN, None, NA, "
            "and the marker that unlabeled= names (in classification -1, if it is 'auto'), mean unlabelled."
        )


def refuse_fewer_than_two(classes: NDArray[Any], n_labeled: int, where: str) -> None:
    """Refuse labelled rows of a single class, or of none."""
    if len(classes) < 2:
        classes_in_words = f"only one class, {classes.tolist()} ({n_labeled} rows)" if len(classes) else "no class"
        raise ValueError(
            f"A classifier needs labelled rows of at least two classes, but in {where} there is {classes_in_words}. "
            "Label rows of another class."
        )

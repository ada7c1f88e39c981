"""The table of the sets that are made of a stored one: pairs of digits, odd against even, rows without repeats."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from .records import DIGITS, STORED, WIFI_TERMS, WIFI_UNITS, Dataset

__all__ = ["VARIANTS", "Variant"]

Derive = Callable[[Bunch], Bunch]
PAIRS = {(3, 8): (658, 542), (4, 9): (652, 644), (5, 6): (556, 664), (2, 7): (731, 645)}  # counts in the training rows
N_FIRST = (3, 6, 8)
PER_ROW = ("data", "target", "is_test", "train_index")


@dataclass(frozen=True, kw_only=True)
class Variant(Dataset):
    """A set that is made of a stored one.

    Attributes
    ----------
    of : str
        Name of the stored set.
    derive : callable
        Makes the one from the other; both are Bunches with ``data``, ``target`` and what else has a value a row.
    """

    of: str
    derive: Derive = field(repr=False)


def _take_rows(bunch: Bunch, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Bunch:
    return Bunch(**{key: bunch[key][rows] for key in PER_ROW if key in bunch})


def _take_pair(first: int, second: int) -> Derive:
    def derive(bunch: Bunch) -> Bunch:
        out = _take_rows(bunch, np.isin(bunch.target, (first, second)) & ~bunch.is_test)
        return Bunch(data=out.data, target=np.where(out.target == second, 1, -1))

    return derive


def _take_first_classes(n_classes: int) -> Derive:
    return lambda bunch: _take_rows(bunch, bunch.target < n_classes)


def _make_odd_even(bunch: Bunch) -> Bunch:
    return Bunch(**{**bunch, "target": np.where(bunch.target % 2 == 1, 1, -1)})


def _make_odd_even_test(bunch: Bunch) -> Bunch:
    out = _make_odd_even(_take_rows(bunch, bunch.is_test))
    return Bunch(data=out.data, target=out.target)


def _drop_column_1(bunch: Bunch) -> Bunch:
    return Bunch(**{**bunch, "data": np.delete(bunch.data, 1, axis=1)})


def _drop_repeated_rows(bunch: Bunch) -> Bunch:
    _, first = np.unique(bunch.data, axis=0, return_index=True)
    return _take_rows(bunch, np.sort(first))


_USPS, _MNIST, _WIFI = STORED["usps_full"], STORED["mnist14k"], STORED["wifi_icdm2007"]
_VARIANTS = (
    *(
        Variant(
            name=f"usps_{a}v{b}",
            of="usps_full",
            derive=_take_pair(a, b),
            n_rows=sum(counts),
            n_columns=256,
            class_counts=counts,
            target_names=(str(a), str(b)),
            origin=f"The digits {a} (-1) and {b} (+1) of the training rows of usps_full, as in the label-aware paper.",
        )
        for (a, b), counts in PAIRS.items()
    ),
    Variant(
        name="usps_odd_even",
        of="usps_full",
        derive=_make_odd_even_test,
        n_rows=2007,
        n_columns=256,
        class_counts=(1093, 914),
        target_names=("even", "odd"),
        origin="The test rows of usps_full, even digits (-1) against odd ones (+1), as in the label-aware paper.",
    ),
    *(
        Variant(
            name=f"usps_{n_classes}_classes",
            of="usps_full",
            derive=_take_first_classes(n_classes),
            n_rows=sum(_USPS.class_counts[:n_classes]),
            n_columns=256,
            class_counts=_USPS.class_counts[:n_classes],
            target_names=DIGITS[:n_classes],
            origin=f"The digits 0 to {n_classes - 1} of usps_full, of which the RKDA paper draws 100 a class.",
            note="That the paper means these digits is our reading. is_test marks the test rows.",
        )
        for n_classes in N_FIRST
    ),
    Variant(
        name="mnist_odd_even",
        of="mnist14k",
        derive=_make_odd_even,
        n_rows=14000,
        n_columns=784,
        class_counts=(sum(_MNIST.class_counts[0::2]), sum(_MNIST.class_counts[1::2])),
        target_names=("even", "odd"),
        origin="mnist14k, even digits (-1) against odd ones (+1), as in the papers on CG-Boost and SSMK.",
        note=_MNIST.note,
    ),
    Variant(
        name="ionosphere_33",
        of="ionosphere",
        derive=_drop_column_1,
        n_rows=351,
        n_columns=33,
        class_counts=(126, 225),
        target_names=("bad", "good"),
        origin="ionosphere without its constant column.",
    ),
    Variant(
        name="wifi_icdm2007_distinct",
        of="wifi_icdm2007",
        derive=_drop_repeated_rows,
        n_rows=1385,
        n_columns=101,
        target_names=_WIFI.target_names,
        origin="wifi_icdm2007, of rows with equal signals the first only.",
        note=f"{WIFI_UNITS} is_test marks the 945 test rows; 440 are for training. {WIFI_TERMS}",
    ),
)
VARIANTS = {record.name: record for record in _VARIANTS}

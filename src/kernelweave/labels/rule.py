"""From y as the user writes it to a Partition: which rows are labelled, and with what.

Nobody else knows what "unlabelled" looks like. The rule for ``unlabeled="auto"``:

1. NaN, None, pandas NA and NaT, and a polars or Arrow null always mean "unlabelled". In regression nothing
   else does.
2. Where none of these occurs, the integer -1 means "unlabelled", as in scikit-learn, if at least two other
   classes remain. A float y whose values are all whole numbers counts as integer.
3. Where y holds just -1 and one other number, both are classes, and a warning names the ways out.
4. Where one of line 1 occurs, -1 is a class like any other.

A warning says so where the rule may well be wrong: where -1 is unlabelled by line 2 but looks like a class, and
where a class is a text that usually stands for a missing label, such as "?" or "nan".

``unlabeled=marker`` names another marker: that value, and those of line 1, mean "unlabelled"; everything else
is a class. Hence ``unlabeled=None`` says that -1 is a class. The string "-1" is a marker only if it is named.

When rows are scored, the classes that the estimator was fitted on are known, and settle what -1 is: a class
if, and only if, it is one of them.
"""

from __future__ import annotations

import datetime
import numbers
import sys
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.exceptions import DataConversionWarning

from ..warn import warn_caller
from .doubtful import warn_of_lost_class, warn_of_text_markers
from .partitions import Partition, TargetPartition, refuse_fewer_than_two, refuse_no_label

Rows = NDArray[np.intp]
Mask = NDArray[np.bool_]

# What a label cannot be: a row has one label, and scikit-learn does not take bytes or complex numbers either.
NOT_A_LABEL = (bytes, complex, np.complexfloating, list, tuple, set, dict, np.ndarray)
SPANS = (np.timedelta64, datetime.timedelta)  # of time; to NumPy they are whole numbers, of whatever unit


def partition(y: Any, *, unlabeled: Any = "auto") -> Partition:
    """Split the rows of a classification target into labelled and unlabelled ones.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Labels: numbers, strings or booleans; NumPy arrays, lists, pandas and polars Series.
    unlabeled : "auto", None or a scalar
        What marks an unlabelled row, in addition to NaN, None and NA, which always do. "auto": the rule at the top of
        this module. None: nothing else, so that -1 is a class. Anything else: that value.

    Returns
    -------
    Partition
        With at least two classes.

    Examples
    --------
    >>> from kernelweave.labels import partition
    >>> partition([0, 1, -1, -1]).unlabeled
    array([2, 3])
    >>> partition(["a", "?", "b"], unlabeled="?").classes.tolist()
    ['a', 'b']
    """
    mask, values, n_marked = _read_labels(y, unlabeled)
    refuse_no_label(len(values), len(mask))
    if values.dtype.kind == "f" and not _is_whole(values):
        example = float(values[values != np.trunc(values)][0])
        raise ValueError(
            f"Unknown label type: continuous. y holds {example!r}, but a classifier needs classes: whole "
            "numbers, strings or booleans. Use a regressor, or bin y into classes, for example with numpy.digitize."
        )
    classes, codes = factorize(values, unlabeled=unlabeled)
    refuse_fewer_than_two(classes, len(values), "y")
    if _is_auto(unlabeled):
        warn_of_text_markers(classes)
        warn_of_lost_class(classes, np.bincount(codes), n_marked)
    return Partition(np.flatnonzero(~mask), np.flatnonzero(mask), classes, codes)


def partition_targets(y: Any, *, several: bool = False) -> TargetPartition:
    """Split the rows of a regression target into labelled and unlabelled (NaN, None, NA) ones.

    Parameters
    ----------
    y : array-like of shape (n_samples,), or (n_samples, n_outputs) with `several`
        Targets: numbers, and NaN, None or NA where the target is not known. Here -1 is a number.
    several : bool, default=False
        Whether a row may have several targets. It is unlabelled where all are missing; a row that lacks only some is an
        error.

    Returns
    -------
    TargetPartition
        With at least one labelled row.
    """
    columns = _split_columns(y) if several else None
    mask, values = _read_targets(y, "y") if columns is None else _join_columns(columns)
    refuse_no_label(len(values), len(mask))
    return TargetPartition(np.flatnonzero(~mask), np.flatnonzero(mask), values)


def is_unlabeled(y: Any, *, unlabeled: Any = "auto", classes: ArrayLike | None = None) -> Mask:
    """Mask of shape (n_samples,) of the unlabelled rows of y, by the rule at the top of this module.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Labels or targets.
    unlabeled : "auto", None or a scalar
        As in :func:`partition`.
    classes : array-like, default=None
        The classes of the fitted estimator, when rows are scored; they settle whether -1 is a class.
    """
    return _read_labels(y, unlabeled, classes)[0]


def labeled_values(
    y: Any,
    *,
    unlabeled: Any = "auto",
    classes: ArrayLike | None = None,
    regression: bool = False,
    name: str = "y",
) -> tuple[Rows, NDArray[Any]]:
    """Numbers of the labelled rows and their labels, free of markers and in the user's coding; maybe none.

    The labels are such as scikit-learn's metrics take: integers that had to share an object array with None
    are integers again. With `regression`, "auto" means NaN, None and NA only. `name` is what messages call y.
    The other parameters are those of :func:`is_unlabeled`.
    """
    mask, values, _ = _read_labels(y, None if regression and _is_auto(unlabeled) else unlabeled, classes, name)
    return np.flatnonzero(~mask), values


def factorize(values: NDArray[Any], name: str = "y", unlabeled: Any = "auto") -> tuple[NDArray[Any], Rows]:
    """The distinct values, sorted, and the number among them of each value; messages advise as `unlabeled` allows."""
    if values.dtype != object:
        distinct, codes = np.unique(values, return_inverse=True)
        return distinct, codes.astype(np.intp, copy=False)
    try:
        ordered = sorted(set(values))
    except TypeError:
        kinds = ", ".join(sorted({type(value).__name__ for value in values}))
        way = "leave these rows out, or write None there and use SSMKClassifier, which learns from them"
        way = way if unlabeled is None else "name it with unlabeled="
        raise ValueError(
            f"{name} mixes values of the types {kinds}, which cannot be sorted. Convert them to one "
            f"type, or, if one of them marks the unlabelled rows of y, {way}."
        ) from None
    number = {value: k for k, value in enumerate(ordered)}
    codes = np.fromiter(map(number.__getitem__, values), dtype=np.intp, count=len(values))
    return _object_array(ordered), codes


def column(y: Any, name: str = "y") -> NDArray[Any]:
    """y as a one-dimensional array that has lost nothing; one column of shape (n_samples, 1) with a warning."""
    if y is None:
        raise ValueError(
            f"Learning requires {name} to be passed, but the target {name} is None. Pass one label per row, "
            "and NaN or None where it is not known."
        )
    values = np.empty(0) if issparse(y) else _as_array(y)
    if values.ndim == 2 and values.shape[1] == 1:
        warn_caller(
            f"A column-vector {name} was passed when a 1d array was expected. Please change the shape of {name} to "
            "(n_samples,), for example using ravel().",
            DataConversionWarning,
        )
        return values[:, 0]
    if values.ndim != 1 or issparse(y):
        what = "a sparse matrix" if issparse(y) else f"an array of shape {values.shape}"
        raise ValueError(
            f"{name} should be a 1d array, got {what} instead. Pass one label per row; for several outputs fit "
            "one estimator per column."
        )
    return values


def _split_columns(y: Any) -> list[NDArray[Any]] | None:
    """The columns of y where it has two or more."""
    values = np.empty(0) if y is None or issparse(y) else _as_array(y)
    return list(values.T) if values.ndim == 2 and values.shape[1] > 1 else None


def _join_columns(columns: list[NDArray[Any]]) -> tuple[Mask, NDArray[np.float64]]:
    """The mask of the rows without any target, and the targets of the others, shape (n_labeled, n_outputs)."""
    masks, values = zip(*(_read_targets(column, f"column {k} of y") for k, column in enumerate(columns)), strict=True)
    partial = np.flatnonzero(np.any(masks, axis=0) & ~np.all(masks, axis=0))
    if len(partial):
        raise ValueError(
            f"{len(partial)} rows of y, the first of them row {partial[0]}, have only some of their targets; a row "
            "must have all or none. Fit one estimator per column, or set all targets of these rows to NaN."
        )
    return masks[0], np.column_stack(values)


def _read_targets(y: Any, name: str) -> tuple[Mask, NDArray[np.float64]]:
    """The mask of the rows without a target, and the targets of the others."""
    mask, values, _ = _read_labels(y, unlabeled=None, name=name)
    # an object array may still hold numbers, such as Decimal
    doubtful: Any = [] if values.dtype.kind in "biuf" else values
    stranger = next((v for v in doubtful if isinstance(v, SPANS) or not isinstance(v, numbers.Number)), None)
    if stranger is not None:
        way = "Convert y to floats, with NaN where a target is not known, or use a classifier."
        if isinstance(stranger, SPANS):
            way = "Convert y to numbers of seconds: numpy.asarray(y, 'timedelta64[ns]') / numpy.timedelta64(1, 's')."
        raise ValueError(f"{name} holds {stranger!r}, but a regressor needs numbers. {way}")
    return mask, values.astype(np.float64)


def _read_labels(
    y: Any, unlabeled: Any, classes: ArrayLike | None = None, name: str = "y"
) -> tuple[Mask, NDArray[Any], int]:
    """The mask of the unlabelled rows, the labels of the others, and how many rows a marker made unlabelled."""
    mask, present = _read_values(y, name)
    marked = _find_marked(present, bool(mask.any()), unlabeled, classes)
    if not marked.any():
        return mask, present, 0
    mask[~mask] = marked
    labels = present[~marked]
    return mask, _tidy(labels, name) if labels.dtype == object else labels, int(marked.sum())


def _find_marked(present: NDArray[Any], any_missing: bool, unlabeled: Any, classes: ArrayLike | None) -> Mask:
    """Which of the values that are not missing mark an unlabelled row: lines 2 to 4 of the rule."""
    nothing = np.zeros(len(present), dtype=bool)
    if not _is_auto(unlabeled):
        if hasattr(unlabeled, "__len__") and not isinstance(unlabeled, str):
            raise TypeError(
                f"unlabeled must be 'auto', None or the value that marks unlabelled rows, got {unlabeled!r}."
            )
        return nothing if _is_missing(unlabeled) else _is_equal(present, unlabeled)
    if classes is not None:
        return nothing if _is_equal(np.asarray(classes), -1).any() else _is_equal(present, -1)
    if any_missing or (present.dtype.kind == "f" and not _is_whole(present)):
        return nothing
    minus_one = _is_equal(present, -1)
    others = present[~minus_one]
    # beside strings -1 cannot be a class: it is scikit-learn's marker in an object array
    if minus_one.all() or not minus_one.any() or (others != others[0]).any() or isinstance(others[0], str):
        return minus_one
    warn_caller(
        f"y holds only -1 and {others[0]}: both are read as classes, and no row as unlabelled. If two "
        "classes are meant, pass unlabeled=None, or code them as 0 and 1. If -1 marks unlabelled "
        "rows, pass unlabeled=-1, or write NaN or None there; rows of a second class are then needed."
    )
    return nothing


def _is_auto(unlabeled: Any) -> bool:
    return isinstance(unlabeled, str) and unlabeled == "auto"


def _is_equal(values: NDArray[Any], marker: Any) -> Mask:
    """Elementwise equality; values of another kind differ, and True is not 1."""
    if values.dtype != object:
        kinds = {values.dtype.kind, np.asarray(marker).dtype.kind}
        if len(kinds) > 1 and not kinds <= set("iuf"):
            return np.zeros(len(values), dtype=bool)
    return np.asarray(values == marker, dtype=bool)


def _is_whole(values: NDArray[Any]) -> bool:
    return bool(np.all(values == np.trunc(values)))


def _read_values(y: Any, name: str) -> tuple[Mask, NDArray[Any]]:
    """The mask of the missing values (line 1 of the rule), and the values that are there."""
    values = column(y, name)
    kind = values.dtype.kind
    if kind == "O":
        missing = np.fromiter(map(_is_missing, values), dtype=bool, count=len(values))
    elif kind in "fmM":
        missing = np.isnan(values)
    elif kind in "biuU":
        missing = np.zeros(len(values), dtype=bool)
    elif kind == "c":
        raise ValueError(f"Complex data not supported: {name} has dtype {values.dtype}. Pass real numbers.")
    else:
        raise ValueError(
            f"{name} has dtype {values.dtype}, but labels are numbers, strings or booleans. Convert bytes "
            f"with {name}.astype(str); pass a single column of a structured array."
        )
    present = values[~missing] if missing.any() else values
    if kind == "O":
        present = _tidy(present, name)
    if present.dtype.kind == "f" and not np.isfinite(present).all():
        raise ValueError(
            f"Input {name} contains infinity or a value too large for {present.dtype!r}. Write NaN where a "
            "value is not known, and leave out or clip what is too large."
        )
    return missing, present


def _as_array(y: Any) -> NDArray[Any]:
    """y as an array that has lost nothing: no None turned into text, no integer turned into a float."""
    if isinstance(y, np.ma.MaskedArray):
        values = np.ma.getdata(y).astype(object)
        values[np.ma.getmaskarray(y)] = None
        return values
    if isinstance(y, np.ndarray):
        return y.astype(object) if y.dtype.kind == "T" else np.asarray(y)
    if not hasattr(y, "__array__"):  # lists: NumPy would turn ["a", nan] into text and [1, nan] into floats
        return np.array(y, dtype=object)
    values = np.asarray(y)
    to_list = next((getattr(y, name) for name in ("to_list", "to_pylist", "tolist") if hasattr(y, name)), None)
    if values.dtype.kind != "f" or values.ndim != 1 or to_list is None or not np.isnan(values).any():
        return values
    if isinstance(getattr(y, "dtype", None), np.dtype):
        return values
    return _object_array(to_list())  # integers with NA in pandas, polars or Arrow: floats only for NumPy


def _tidy(values: NDArray[Any], name: str) -> NDArray[Any]:
    """An object array without missing values as numbers or booleans, where it holds nothing else."""
    types = set(map(type, values))
    for each in types:
        if issubclass(each, NOT_A_LABEL):
            raise ValueError(
                f"{name} holds a value of type {each.__name__}, but labels are numbers, strings or booleans. "
                "Convert bytes to strings; pass one label per row, and for several outputs fit one estimator per "
                "column."
            )
    boolean = {each: issubclass(each, (bool, np.bool_)) for each in types}
    number = {each: issubclass(each, numbers.Real) and not boolean[each] for each in types}
    if types and (all(boolean.values()) or all(number.values())):
        return np.array(values.tolist())
    return values


def _is_missing(value: Any) -> bool:
    if value is None:
        return True
    if isinstance(value, (str, *NOT_A_LABEL)):
        return False
    pandas = sys.modules.get("pandas")  # whoever holds an NA has imported pandas
    if pandas is not None and value is pandas.NA:
        return True
    return bool(value != value)  # NaN and NaT differ from themselves


def _object_array(values: list[Any]) -> NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array

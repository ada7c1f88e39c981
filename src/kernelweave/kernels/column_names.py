"""Which columns of ``X`` are meant: by name, by the beginning of a name, by position, or by a slice of either."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

from sklearn.utils import check_array

from ..short_text import list_some, short_repr, suggest_names


def read_rows(X: Any, *, allows_missing: bool, dtypes: Sequence[Any]) -> tuple[Any, list[str] | None]:
    """Return checked rows as an array or CSR of one of some types, and the names of their columns; None without names.

    Outside of estimators, which have scikit-learn check their rows.
    """
    names = [str(name) for name in X.columns] if hasattr(X, "columns") else None
    finite: Any = "allow-nan" if allows_missing else True
    return check_array(X, accept_sparse="csr", dtype=list(dtypes), ensure_all_finite=finite), names


def name_columns(columns: Any) -> str:
    """Return what a source is called that is made of these columns."""
    if isinstance(columns, str):
        return columns
    if isinstance(columns, slice):
        stop, step = ("" if end is None else end for end in (columns.stop, columns.step))
        return f"columns {columns.start or 0}:{stop}" + (f":{step}" if step else "")
    shown = ", ".join(str(column) for column in columns[:3])
    return shown if len(columns) <= 3 else f"{shown}, … ({len(columns)})"


def find_positions(columns: Any, feature_names: Sequence[str] | None, n_features: int) -> tuple[int, ...]:
    """Return the positions of columns that are given by name, pattern, position or slice, each once.

    Parameters
    ----------
    columns : str, slice or sequence of str or int
        A name that ends in ``*`` means every column that starts so; a slice of names includes its last one.
    feature_names : sequence of str, optional
        None where columns have no names.
    n_features : int
    """
    if isinstance(columns, slice):
        positions = list(_find_range(columns, feature_names, n_features))
    else:
        positions, unknown = [], []
        for column in (columns,) if isinstance(columns, str) else columns:
            here = _find_position(column, feature_names, n_features)
            positions.extend(here)
            unknown.extend([] if here else [column])
        if unknown:
            raise ValueError(_describe_unknown(unknown, feature_names, n_features))
    if not positions:
        raise ValueError(f"OnColumns names no column of X: got {short_repr(columns)}, X has {n_features} columns.")
    return tuple(dict.fromkeys(positions))


def _find_range(columns: slice, feature_names: Sequence[str] | None, n_features: int) -> range:
    """Return the positions of a slice; an end that is a name is part of it."""
    names = [] if feature_names is None else list(feature_names)
    given = [end for end in (columns.start, columns.stop) if end is not None]
    named = [end for end in given if not isinstance(end, numbers.Integral)]
    if unknown := [end for end in named if end not in names]:
        raise ValueError(_describe_unknown(unknown, feature_names, n_features))
    step = 1 if columns.step is None else columns.step
    whole = isinstance(step, numbers.Integral) and step != 0
    if not whole or (named and (step < 0 or len(named) < len(given))):
        raise ValueError(
            f"OnColumns got {columns!r} as columns; expected a slice from name to name or from position to position, "
            "with a whole number of columns as its step, positive between names."
        )
    if not named:
        return range(*columns.indices(n_features))
    start = 0 if columns.start is None else names.index(columns.start)
    stop = n_features if columns.stop is None else names.index(columns.stop) + 1
    return range(start, stop, int(step))


def _find_position(column: Any, feature_names: Sequence[str] | None, n_features: int) -> list[int]:
    if isinstance(column, numbers.Integral):
        position = int(column)
        return [position % n_features] if -n_features <= position < n_features else []
    names = [] if feature_names is None else list(feature_names)
    if column in names:
        return [names.index(column)]
    if isinstance(column, str) and column.endswith("*"):
        return [i for i, name in enumerate(names) if name.startswith(column[:-1])]
    return []


def _describe_unknown(unknown: list[Any], feature_names: Sequence[str] | None, n_features: int) -> str:
    if feature_names is None:
        has = f"{n_features} columns without names"
        by_position = all(isinstance(column, numbers.Integral) for column in unknown)
        remedy = "Pass a frame with these columns to fit, or name columns by position."
        remedy = f"Positions go from 0 to {n_features - 1}." if by_position else remedy
    else:
        shown = ", ".join(repr(name) for name in list(feature_names)[:2])
        has = f"{shown}{', ...' if n_features > 2 else ''} ({n_features} in all)"
        remedy = "Pass the frame the estimator was built for, or name columns by position."
        remedy += suggest_names(unknown, feature_names)
    return f"OnColumns names the columns {list_some(unknown)} which X does not have; it has {has}. {remedy}"

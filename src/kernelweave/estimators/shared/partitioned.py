"""Partitioned rows at the border of a fit: Dask collections are checked where they are, and labels come to the caller.

What a fit keeps in memory are the labelled rows and rows that it draws by their numbers; so the same rows in other
partitions, or in memory, give the same fit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import _get_feature_names

from ...distributed.rows import PartitionedRows, compute, inspect_blocks, is_partitioned, join_rows, read_blocks
from ...kernels.content_order import order_rows
from ...kernels.partitioned import MAX_BOUND_ROWS, SEED
from ...labels import Partition, TargetPartition, column, is_unlabeled, partition, partition_targets, refuse_no_label
from .sample import Rows, Sample

MAX_LABELED = 1_000_000  # rows whose labels, and features, come to the caller
MAX_SEARCH_ROWS = 10_000  # that a search sees of many rows: twice as many took twice as long, for nothing
MAX_DISTINCT = 10_000  # values of y, markers among them


@dataclass(frozen=True, eq=False)
class GivenLabels:
    """The labelled rows by their numbers among all rows, and their labels; as a `Partition` that names no others."""

    labeled: np.ndarray
    labels: np.ndarray
    n_unlabeled: int


@dataclass(frozen=True, eq=False)
class PartitionedSample:
    """Rows in partitions, of which some are labelled.

    Attributes
    ----------
    rows : Rows
        Whose ``X`` are `PartitionedRows`.
    labeled : ndarray of shape (n_labeled,)
        Numbers of the labelled rows, ascending.
    partition : Partition or TargetPartition
        Of the labelled rows alone, in this order.
    """

    rows: Rows
    labeled: np.ndarray
    partition: Partition | TargetPartition

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return int(self.rows.X.shape[0])

    @property
    def is_ordered(self) -> bool:
        """Whether rows are so few that they are fitted in the order of their content, as those in memory."""
        return self.n_rows <= MAX_BOUND_ROWS

    def find_order(self) -> np.ndarray:
        """Return the numbers of all rows in the order in which they are fitted."""
        return order_rows(self.rows.X[np.arange(self.n_rows)]) if self.is_ordered else np.arange(self.n_rows)

    def gather(self, others: np.ndarray) -> Sample:
        """Return the labelled rows, and other rows by their numbers, as a sample in memory."""
        numbers = np.union1d(self.labeled, others)
        is_labeled = np.isin(numbers, self.labeled)
        labeled, unlabeled = np.flatnonzero(is_labeled), np.flatnonzero(~is_labeled)
        if isinstance(self.partition, Partition):
            classes: Any = Partition(labeled, unlabeled, self.partition.classes, self.partition.codes)
        else:
            classes = TargetPartition(labeled, unlabeled, self.partition.targets)
        given = GivenLabels(self.labeled, self.partition.labels, self.n_rows - len(self.labeled))
        sample = Sample(self.rows.X[numbers], np.ones(len(numbers)), classes, numbers, self.rows, given)
        if not self.is_ordered:
            return sample
        is_whole = len(numbers) == self.n_rows
        return sample.reorder(order_rows(sample.X) if is_whole else np.argsort(np.argsort(self.find_order())[numbers]))

    def draw_unlabeled(self, n_drawn: int, rng: np.random.Generator) -> np.ndarray:
        """Return the numbers of unlabelled rows, drawn without replacement."""
        n_unlabeled = self.n_rows - len(self.labeled)
        ranks = rng.choice(n_unlabeled, min(n_drawn, n_unlabeled), replace=False)
        if self.is_ordered:
            order = self.find_order()
            return order[~np.isin(order, self.labeled)][ranks]
        # The unlabelled row of rank r comes after as many labelled rows as have at most r unlabelled ones before.
        return ranks + np.searchsorted(self.labeled - np.arange(len(self.labeled)), ranks, side="right")


def bring_to_memory(given: Sample | PartitionedSample) -> tuple[Sample, PartitionedSample | None]:
    """Return rows in memory, and the partitioned ones where these are too many: then the first are labelled ones."""
    if isinstance(given, Sample):
        return given, None
    if given.n_rows <= MAX_BOUND_ROWS:
        return given.gather(np.arange(given.n_rows)), None
    return given.gather(given.labeled), given


def draw_to_memory(given: Sample | PartitionedSample) -> Sample:
    """Return rows in memory; of many rows the labelled ones, and others drawn at random.

    Of rows in memory and of the same ones in partitions, the same are drawn.
    """
    if given.n_rows <= MAX_BOUND_ROWS:
        return given if isinstance(given, Sample) else given.gather(np.arange(given.n_rows))
    n_others = max(0, MAX_SEARCH_ROWS - given.partition.n_labeled)
    rng = np.random.default_rng(SEED)
    if not isinstance(given, Sample):
        return given.gather(given.draw_unlabeled(n_others, rng))
    labels = given.partition
    drawn = rng.choice(labels.n_unlabeled, min(n_others, labels.n_unlabeled), replace=False)
    keep = np.zeros(given.n_rows, dtype=bool)
    keep[labels.labeled] = True
    keep[labels.unlabeled[drawn]] = True
    return given.restrict(keep)


@dataclass(frozen=True)
class LabelRule:
    """How the labels of partitioned rows are read.

    Attributes
    ----------
    target : {"classes", "numbers", "auto"}
        ``"auto"``: numbers where they are continuous or have several columns.
    unlabeled : "auto", None or marker
        Of classes, as in :func:`kernelweave.labels.partition`.
    several : bool
        Whether numbers may have several columns.
    """

    target: str = "classes"
    unlabeled: Any = "auto"
    several: bool = False

    def read(self, labels: np.ndarray, numbers: bool) -> Partition | TargetPartition:
        """Return the partition of labelled rows alone."""
        return partition_targets(labels, several=self.several) if numbers else partition(labels, unlabeled=None)


def read_partitioned(
    owner: str, X: Any, y: Any, sample_weight: Any, X_unlabeled: Any, rule: LabelRule, dtypes: tuple[str, ...]
) -> PartitionedSample:
    """Check partitioned rows and read their labels.

    Parameters
    ----------
    owner : str
        The estimator, for messages.
    X : Dask array or frame; an array in memory where ``X_unlabeled`` is given
    y : aligned Dask array or series; an array in memory where ``X_unlabeled`` is given
    sample_weight : None
        Others are refused.
    X_unlabeled : Dask array or frame, optional
        Rows without labels, which follow those of ``X``.
    rule : LabelRule
    dtypes : tuple of str
        The types of numbers that are taken as they come; others become the first.
    """
    if sample_weight is not None:
        raise ValueError(
            f"{owner} takes no sample_weight with rows in Dask collections. Leave it out, or draw rows by their "
            "weights first."
        )
    if X_unlabeled is not None:
        if is_partitioned(X) or is_partitioned(y):
            raise TypeError(
                "With X_unlabeled, X and y are the labelled rows in memory; got Dask collections. Pass X and y alone "
                "if they hold labelled and unlabelled rows."
            )
        return _with_labeled_rows(owner, X, y, read_rows(X_unlabeled, dtypes), rule)
    if not is_partitioned(y):
        raise TypeError(
            f"X is a Dask collection, but y is of type {type(y).__name__}. Pass y as an aligned Dask array or series, "
            "or the labelled rows alone: fit(X_labeled, y, X_unlabeled=X)."
        )
    rows = read_rows(X, dtypes)
    _check_shape(y.shape, len(rows.X), rule)
    given = _read_column(y, rows.X)
    numbers, marked = _find_markers(given.reduce(_find_distinct, _join_distinct), rule)
    found = given.reduce(_take_labels, _join_labels, marked)
    labeled, labels = (np.empty(0, dtype=np.int64), np.empty(0)) if found is None else found
    refuse_no_label(len(labeled), len(rows.X))
    _refuse_many(owner, len(labeled))
    return PartitionedSample(rows, labeled, rule.read(labels, numbers))


def read_rows(X: Any, dtypes: tuple[str, ...]) -> Rows:
    """Return the rows of a Dask array or frame, checked where they are."""
    if X.ndim != 2:
        raise ValueError(f"X must have rows and columns; got a Dask array of {X.ndim} dimensions.")
    names = _get_feature_names(X._meta)  # of a frame, by the rules of scikit-learn
    n_columns = int(X.shape[1])
    blocks, _ = read_blocks(X, partial(_as_floats, n_columns=n_columns))
    checked = inspect_blocks(blocks, _check_block)
    n_bad, lengths = sum(bad for _, bad, _ in checked), [length for length, _, _ in checked]
    if n_bad:
        raise ValueError(
            f"Input X contains NaN or infinity in {n_bad:,} values of its partitions. Impute or drop these rows first, "
            "for example with X.map_partitions or X.map_blocks."
        )
    if not sum(lengths):
        raise ValueError("X has no rows: all its partitions are empty.")
    found = {name for length, _, name in checked if length}
    dtype = found.pop() if len(found) == 1 else "float64"
    rows = PartitionedRows(blocks, lengths, n_columns, dtype)
    if found or dtype not in dtypes:
        rows = rows.convert(_as_double, n_columns, np.float64)
    return Rows(rows, names, dtypes)


def collect_rows(X: Any, owner: str) -> Any:
    """Bring all rows of a Dask collection, which are labelled, to memory; refuse very many."""
    blocks, _ = read_blocks(X, len)
    _refuse_many(owner, sum(inspect_blocks(blocks, int)))
    return compute([X])[0]


def _with_labeled_rows(owner: str, X: Any, y: Any, others: Rows, rule: LabelRule) -> PartitionedSample:
    names, expected = _get_feature_names(X), others.feature_names
    if names is not None and expected is not None and names.tolist() != expected.tolist():
        raise ValueError(
            f"X has the columns {names.tolist()[:5]} and X_unlabeled {expected.tolist()[:5]}; both need the same, in "
            "the same order."
        )
    own = _as_numbers(X.toarray() if issparse(X) else X)
    if own.ndim != 2:
        raise ValueError(f"X must have rows and columns; got an array of shape {own.shape}.")
    if own.shape[1] != others.X.shape[1]:
        raise ValueError(f"X has {own.shape[1]} columns and X_unlabeled {others.X.shape[1]}; both need the same.")
    if len(own) and _check_block(own)[1]:
        raise ValueError("Input X contains NaN or infinity. Impute or drop these rows first.")
    if len(own) != len(y):
        raise ValueError(f"X has {len(own)} rows but y has {len(y)}; they must have the same length.")
    labels = np.asarray(y, dtype=None if hasattr(y, "dtype") else object)
    _check_shape(labels.shape, len(own), rule)
    labels = _as_column(labels)
    numbers, marked = _find_markers(_find_distinct(labels, 0), rule)
    found = _take_labels(labels, 0, marked)
    labeled, values = (np.empty(0, dtype=np.int64), np.empty(0)) if found is None else found
    refuse_no_label(len(labeled), len(own))
    _refuse_many(owner, len(labeled))
    rows = replace(others, X=join_rows(own, others.X), feature_names=expected if names is None else names)
    return PartitionedSample(rows, labeled, rule.read(values, numbers))


def _check_shape(shape: tuple[Any, ...], n_rows: int, rule: LabelRule) -> None:
    """Say of y with columns what is said of it in memory: a warning of one, an error of several where none may be."""
    may_be_wide = rule.several and rule.target != "classes"
    if len(shape) != 1 and not (may_be_wide and len(shape) == 2 and shape[1] > 1):
        column(np.broadcast_to(0.0, (n_rows, *shape[1:]) if shape else ()))


def _read_column(y: Any, rows: PartitionedRows) -> PartitionedRows:
    """Return y, whose rows are those of X in the same order; its partitions may be others.

    Dask joins partitions of Parquet files of which few columns are taken: y is cut otherwise than the X beside it.
    """
    blocks, _ = read_blocks(y, _as_column)
    lengths = inspect_blocks(blocks, len)
    if sum(lengths) != len(rows):
        raise ValueError(
            f"X has {len(rows)} rows but y has {sum(lengths)}; they must have the same length. Take both from one "
            "frame or array."
        )
    return PartitionedRows(blocks, lengths, None, object)


def _find_markers(summary: tuple[list[Any] | None, bool, bool], rule: LabelRule) -> tuple[bool, list[Any]]:
    """Return whether y holds numbers, and the values that mark unlabelled rows beside those that are missing."""
    values, any_missing, is_wide = summary
    is_open = rule.target == "auto"
    if rule.target == "numbers" or (is_open and (is_wide or values is None or any(map(_is_fraction, values)))):
        return True, []
    if values is None:
        raise ValueError(
            f"y has more than {MAX_DISTINCT:,} distinct values. A classifier needs classes; use a regressor, or bin y "
            "into classes."
        )
    example = np.empty(len(values) + any_missing, dtype=object)
    example[: len(values)] = values
    mask = is_unlabeled(example, unlabeled=rule.unlabeled)[: len(values)]
    return False, [value for value, is_marker in zip(values, mask, strict=True) if is_marker]


def _is_fraction(value: Any) -> bool:
    return isinstance(value, float) and value != int(value)


def _refuse_many(owner: str, n_labeled: int) -> None:
    if n_labeled > MAX_LABELED:
        raise ValueError(
            f"{n_labeled:,} rows are labelled; {owner} keeps labelled rows in memory, and takes up to {MAX_LABELED:,} "
            "of them from Dask collections. Draw some of them, and pass the others as unlabelled."
        )


def _as_floats(block: Any, n_columns: int) -> np.ndarray:
    if issparse(block):
        raise TypeError(
            "X has partitions of sparse rows; a fit of Dask collections keeps rows as dense arrays. Pass "
            "X.map_blocks(lambda block: block.toarray()) where these fit in memory, or all rows as one sparse matrix."
        )
    values = _as_numbers(block)
    if values.ndim != 2 or values.shape[1] != n_columns:
        raise ValueError(f"A partition of X has the shape {values.shape}; expected {n_columns} columns.")
    return values


def _as_numbers(block: Any) -> np.ndarray:
    """Return an array or a frame as real numbers in single or double precision, with NaN where they are missing."""
    values = block.to_numpy() if hasattr(block, "to_numpy") else np.asarray(block)
    if values.dtype.kind in "cmM":
        raise ValueError(f"X holds values of the type {values.dtype}; pass real numbers.")
    if values.dtype.kind not in "biuf":
        if values.dtype.kind == "O" and hasattr(block, "isna"):  # NA, which has no number
            values = np.where(block.isna(), np.nan, values)
        try:
            values = values.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"X holds values that are not numbers: {error}. Encode them first.") from None
    return values if values.dtype in (np.float32, np.float64) else values.astype(np.float64)


def _as_column(block: Any) -> np.ndarray:
    """Return labels as an array, one column of shape (n_rows, 1) as one dimension."""
    values = np.asarray(block)
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values


def _as_double(block: np.ndarray) -> np.ndarray:
    return block.astype(np.float64, copy=False)


def _check_block(block: np.ndarray) -> tuple[int, int, str]:
    """Return how many rows a block has, how many of its values are not finite, and their type."""
    if np.isfinite(block.sum(dtype=np.float64)):
        return len(block), 0, block.dtype.name
    return len(block), int(block.size - np.isfinite(block).sum()), block.dtype.name


def _find_distinct(block: np.ndarray, first: int) -> tuple[list[Any] | None, bool, bool]:
    """Return the distinct values of a block, None if too many; whether some are missing; whether y has columns."""
    is_wide = block.ndim == 2 and block.shape[1] > 1
    first_column = block if block.ndim == 1 else block[:, 0]
    missing = is_unlabeled(first_column, unlabeled=None)
    present = first_column[~missing]
    distinct = np.unique(present).tolist() if present.dtype != object else list(dict.fromkeys(present.tolist()))
    return (distinct if len(distinct) <= MAX_DISTINCT else None), bool(missing.any()), is_wide


def _join_distinct(left: Any, right: Any) -> tuple[list[Any] | None, bool, bool]:
    joined = None
    if left[0] is not None and right[0] is not None:
        joined = list(dict.fromkeys([*left[0], *right[0]]))
        joined = joined if len(joined) <= MAX_DISTINCT else None
    return joined, left[1] or right[1], left[2] or right[2]


def _take_labels(block: np.ndarray, first: int, marked: list[Any]) -> tuple[np.ndarray, np.ndarray] | None:
    missing = is_unlabeled(block if block.ndim == 1 else block[:, 0], unlabeled=None)
    if len(marked):
        missing |= np.isin(block, marked) if block.dtype != object else np.array([value in marked for value in block])
    rows = np.flatnonzero(~missing)
    return (first + rows, block[rows]) if len(rows) else None


def _join_labels(left: Any, right: Any) -> Any:
    if left is None or right is None:
        return left if right is None else right
    return np.concatenate([left[0], right[0]]), np.concatenate([left[1], right[1]])

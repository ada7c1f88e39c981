"""What a fit reads: rows that were checked, their weights, and which of them are labelled with what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import issparse
from sklearn.utils.validation import _check_sample_weight

from ...distributed.rows import PartitionedRows
from ...kernels.bound_library import BoundLibrary
from ...kernels.content_order import order_rows
from ...kernels.library import KernelLibrary
from ...kernels.partitioned import MAX_BOUND_ROWS
from ...kernels.sharing import once
from ...labels import Partition
from ...model_selection.guards import check_callers
from ...parameters import is_positive, require
from ...short_text import cut_text, short_repr
from ...warn import warn_caller

MAX_ORDERED_ROWS = MAX_BOUND_ROWS  # that are put in an order of their own; of more, kernels are bound to drawn ones
MAX_DEVIATION_RATIO = 20.0  # of the deviation of a column to that of most, above which scales hardly match


@dataclass(frozen=True)
class Rows:
    """Rows of features that were checked, and what is to be known of their columns.

    Attributes
    ----------
    X : array or CSR of shape (n_rows, n_features)
    feature_names : ndarray of shape (n_features,) or None
        Names of the columns, where they have some.
    dtypes : tuple of str
        The types of numbers that are taken as they come; others become the first.
    takes_missing : bool
        Whether missing values were allowed.
    """

    X: Any
    feature_names: np.ndarray | None = None
    dtypes: tuple[str, ...] = ("float64", "float32")
    takes_missing: bool = False


@dataclass(frozen=True)
class Sample:
    """The rows that take part in a fit: those of positive weight.

    Attributes
    ----------
    X : array or CSR of shape (n_rows, n_features)
    weight : ndarray of shape (n_rows,)
    partition : Partition or TargetPartition
        Which of them are labelled, and with what.
    kept : ndarray of shape (n_rows,)
        Number of each row among those that the user gave; in any order.
    rows : Rows
        All that the user gave.
    given : Partition or TargetPartition
        Of all of these.
    """

    X: Any
    weight: np.ndarray
    partition: Any
    kept: np.ndarray
    rows: Rows
    given: Any

    @property
    def n_given(self) -> int:
        """How many rows the user gave."""
        return int(self.rows.X.shape[0])

    @property
    def n_rows(self) -> int:
        """How many rows take part."""
        return len(self.kept)

    @property
    def labeled_weight(self) -> np.ndarray:
        """The weights of the labelled rows."""
        return np.asarray(self.weight[self.partition.labeled])

    @property
    def share(self) -> np.ndarray:
        """The weight of each row in a mean over all."""
        return np.asarray(self.weight / self.weight.sum())

    def restrict(self, keep: np.ndarray) -> Sample:
        """Return the sample of the rows in the boolean mask ``keep``."""
        if keep.all():
            return self
        kept = self.partition.restrict(keep)
        return replace(self, X=self.X[keep], weight=self.weight[keep], partition=kept, kept=self.kept[keep])

    def reorder(self, order: np.ndarray, X: Any = None) -> Sample:
        """Return the sample of the same rows in another order; ``X``: these rows, where they are known."""
        if np.array_equal(order, np.arange(len(order))):
            return self
        X, part = self.X[order] if X is None else X, self.partition.reorder(order)
        return replace(self, X=X, weight=self.weight[order], partition=part, kept=self.kept[order])

    def spread(self, values: np.ndarray) -> Any:
        """Return values of the rows that take part as values of all rows given; zero at the others.

        Where rows are partitioned these are a lazy Dask array.
        """
        if isinstance(self.rows.X, PartitionedRows):
            order = np.argsort(self.kept)
            return self.rows.X.spread(self.kept[order], values[order])
        out = np.zeros((self.n_given, *values.shape[1:]))
        out[self.kept] = values
        return out


def read_sample(rows: Rows, partition: Any, sample_weight: Any = None) -> Sample:
    """Return the rows of positive weight with their labels, in an order that their content decides.

    What is drawn or dealt among them does then not depend on the order in which they were given.
    """
    sample = read_as_given(rows, partition, sample_weight)
    if sample.n_rows > MAX_ORDERED_ROWS:
        return sample
    # Within shared bindings the same rows are the same array in every fit, by which they are known.
    return sample.reorder(*once("rows in order", sample.X, lambda _: _sort_rows(sample.X)))


def _sort_rows(X: Any) -> tuple[np.ndarray, Any]:
    order = order_rows(X)
    return order, X[order]


def read_as_given(rows: Rows, partition: Any, sample_weight: Any = None) -> Sample:
    """Return the rows of positive weight, with their labels; notice callers to whom unlabelled rows are a class."""
    check_callers(partition.n_unlabeled, partition.classes if isinstance(partition, Partition) else None)
    weight = _check_sample_weight(sample_weight, rows.X, dtype=np.float64, ensure_non_negative=True)
    n_rows, n_labels = rows.X.shape[0], partition.n_labeled + partition.n_unlabeled
    if n_labels != n_rows:
        raise ValueError(f"X has {n_rows} rows but y has {n_labels}; they must have the same length.")
    if not weight.any():
        raise ValueError("All sample weights are zero; some labelled rows need a positive weight.")
    return Sample(rows.X, weight, partition, np.arange(n_rows), rows, partition).restrict(weight > 0)


def join_unlabeled(rows: Rows, partition: Any, sample_weight: Any, others: Rows) -> Sample:
    """Return the sample of rows with their labels, followed by others without; the weight of these is 1."""
    n_rows, n_others = rows.X.shape[0], others.X.shape[0]
    if issparse(rows.X) or issparse(others.X):
        parts = [each if issparse(each) else sparse.csr_array(each) for each in (rows.X, others.X)]
        X = sparse.vstack(parts, format="csr")
    else:
        X = np.concatenate([rows.X, others.X])
    unlabeled = np.concatenate([partition.unlabeled, np.arange(n_rows, n_rows + n_others)])
    weight = None
    if sample_weight is not None:
        weight = np.concatenate([_check_sample_weight(sample_weight, rows.X, dtype=np.float64), np.ones(n_others)])
    return read_sample(replace(rows, X=X), replace(partition, unlabeled=unlabeled), weight)


def bind(library: KernelLibrary, sample: Sample, rng: np.random.Generator, cache_size: float = 0.0) -> BoundLibrary:
    """Tie the kernels of a library to the rows of a sample."""
    names = None if sample.rows.feature_names is None else sample.rows.feature_names.tolist()
    return library.bind(sample.X, rng, sample.weight, feature_names=names, cache_size=cache_size)


def warn_of_different_scales(X: Any) -> None:
    """Warn where a few columns have far larger deviations than most, so that kernels see these only."""
    if issparse(X):
        return
    deviations = np.nanstd(X, axis=0)
    deviations = deviations[deviations > 0]
    if len(deviations) and deviations.max() > MAX_DEVIATION_RATIO * np.median(deviations):
        warn_caller(
            f"The columns of X are on different scales: standard deviations from {deviations.min():.2g} to "
            f"{deviations.max():.2g}. The large ones dominate the kernels; use StandardScaler or MinMaxScaler first."
        )


def keep_labeled(bound: BoundLibrary, sample: Sample) -> tuple[BoundLibrary, Sample]:
    """Return kernels and sample at the labelled rows alone, for learners that the others say nothing more to."""
    rows = sample.partition.labeled
    if len(rows) == sample.n_rows:
        return bound, sample
    return bound.restrict(rows), sample.restrict(np.isin(np.arange(sample.n_rows), rows))


def class_weights(class_weight: Any, partition: Partition, weight: np.ndarray) -> np.ndarray:
    """Return the factor of each labelled row that ``class_weight`` asks for (``None``, ``"balanced"`` or a dict)."""
    if class_weight is None:
        return np.ones(partition.n_labeled)
    if isinstance(class_weight, Mapping):
        classes = partition.classes.tolist()
        for label, value in class_weight.items():
            if not is_positive(value):
                raise ValueError(
                    f"class_weight gives {label!r} the weight {short_repr(value)}; expected a positive number."
                )
        unknown = [label for label in class_weight if label not in classes]
        bare = [label for label in classes if label not in class_weight]
        if unknown and bare:  # as in scikit-learn: a fold may lack a class, but this looks like a wrong name
            raise ValueError(
                f"class_weight names the class {unknown[0]!r}; y has {classes}, of which {bare} have no weight. Name "
                "classes as y does, or give each class of y a weight."
            )
        by_class = np.array([float(class_weight.get(label, 1.0)) for label in classes])
    elif isinstance(class_weight, str) and class_weight == "balanced":
        totals = np.bincount(partition.codes, weights=weight, minlength=partition.n_classes)
        by_class = totals.sum() / (partition.n_classes * totals)
    else:
        raise ValueError(
            f'class_weight={short_repr(class_weight)}; expected None, "balanced" or a dict of class weights.'
        )
    return by_class[partition.codes]


def class_shares(
    owner: str, class_prior: Any, partition: Partition, from_data: tuple[str, ...] = ("labeled",)
) -> np.ndarray | None:
    """Return the shares of the classes that ``class_prior`` gives; None where the data give them or no one.

    ``from_data`` are the words by which the data may be asked for them.
    """
    if class_prior is None or (isinstance(class_prior, str) and class_prior in from_data):
        return None
    classes = partition.classes.tolist()
    if isinstance(class_prior, Mapping):
        unknown = [label for label in class_prior if label not in classes]
        missing = [label for label in classes if label not in class_prior]
        if unknown or len(missing) > (partition.n_classes == 2):
            expected = f"a share for each of the classes {cut_text(str(classes))}"
            require(owner, "class_prior", class_prior, False, expected)
        given = [class_prior.get(label) for label in classes]
        holds = all(share is None or is_positive(share) for share in given)
        require(owner, "class_prior", class_prior, holds, "shares")
        rest = 1.0 - sum(float(share) for share in given if share is not None)
        shares = np.array([rest if share is None else float(share) for share in given])
    else:
        holds = is_positive(class_prior) and class_prior < 1 and partition.n_classes == 2
        words = ", ".join(f'"{word}"' for word in from_data)
        expected = "None, the share of classes_[1] where there are two classes, or {class: share}"
        require(owner, "class_prior", class_prior, holds, f"{words}, {expected}")
        shares = np.array([1.0 - float(class_prior), float(class_prior)])
    if not (np.all(shares > 0) and abs(shares.sum() - 1.0) < 1e-6):
        raise ValueError(f"{owner} got class_prior={class_prior!r}; shares must be above 0 and sum to 1.")
    return shares

"""What the estimators share: the border, one-vs-rest over labelled rows, prediction from an expansion, one warning."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from ..kernels.learned import KernelExpansion
from ..kernels.library import BoundLibrary, KernelLibrary, as_library
from ..labels import Partition, labeled_values, partition
from ..solvers.result import Certificate, SolverResult, Status


@dataclass(frozen=True)
class Sample:
    """Validated training data without its zero-weight rows.

    Attributes
    ----------
    X : array or CSR of shape (n_rows, n_features)
    weight : ndarray of shape (n_rows,)
    kept : ndarray of shape (n_rows,)
        Number of each row in the data as the user gave them.
    n_given : int
        How many rows the user gave.
    partition : Partition
    """

    X: Any
    weight: np.ndarray
    kept: np.ndarray
    n_given: int
    partition: Partition


class KernelEstimator(BaseEstimator):
    """An estimator whose ``kernels`` parameter holds recipes.

    Recipes are immutable, so ``set_params(kernels__rbf__gamma=…)`` puts a changed copy in their place: recipes shared
    between estimators never change under one's feet.
    """

    def set_params(self, **params: Any) -> Self:
        """Set parameters, those of nested recipes by ``kernels__name__parameter``."""
        own = self.get_params(deep=False)
        changes: dict[str, dict[str, Any]] = {}
        rest: dict[str, Any] = {}
        for key, value in params.items():
            head, _, tail = key.partition("__")
            if tail and head in own and hasattr(params.get(head, own[head]), "replace"):
                changes.setdefault(head, {})[tail] = value
            else:
                rest[key] = value
        super().set_params(**rest)
        for head, nested in changes.items():
            setattr(self, head, getattr(self, head).replace(**nested))
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        try:
            tags.input_tags.allow_nan = as_library(self.kernels).allows_missing
        except (TypeError, ValueError):  # a wrong `kernels` is reported by fit, not by a look at the tags
            tags.input_tags.allow_nan = False
        return tags

    def _check_rows(self, X: Any, library: KernelLibrary, *, reset: bool) -> Any:
        finite: Any = "allow-nan" if library.allows_missing else True
        return validate_data(
            self, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_all_finite=finite
        )

    def _bind(self, library: KernelLibrary, sample: Sample) -> BoundLibrary:
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        return library.bind(
            sample.X,
            np.random.default_rng(seed),
            sample.weight,
            feature_names=getattr(self, "feature_names_in_", None),
            cache_size=self.cache_size,
        )


class MixtureClassifier(ClassifierMixin, KernelEstimator):
    """A classifier that is a :class:`~kernelweave.kernels.learned.KernelExpansion`, one output a problem."""

    def decision_function(self, X: Any, split: bool = False) -> np.ndarray:
        """Return the value of the mixture at the rows of ``X``.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
        split : bool, default=False
            Whether to return what each kernel of the library adds. The parts sum to the whole over axis 1; the
            intercept is shared equally among the kernels in use.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Positive means ``classes_[1]`` for two classes; with ``split`` an axis of length ``n_kernels`` comes
            second.
        """
        check_is_fitted(self)
        X = self._check_rows(X, self.library_, reset=False)
        values = self.expansion_.split(X) if split else self.expansion_(X)
        return values[..., 0] if len(self.classes_) == 2 else values

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted class of each row."""
        values = self.decision_function(X)
        codes = (values > 0).astype(np.intp) if values.ndim == 1 else values.argmax(axis=1)
        return self.classes_[codes]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy on the labelled rows of ``X``; unlabelled rows are ignored."""
        check_is_fitted(self)
        rows, y_true = labeled_values(y, unlabeled=self.unlabeled, classes=self.classes_)
        if len(rows) == 0:
            raise ValueError("score needs at least one labelled row; y has none.")
        weight = None if sample_weight is None else np.asarray(sample_weight)[rows]
        return float(accuracy_score(y_true, self.predict(X)[rows], sample_weight=weight))

    def _check_fit(self, X: Any, y: Any, sample_weight: Any, library: KernelLibrary) -> Sample:
        """Validate the data, find out which rows are labelled, drop rows of weight zero."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        X = self._check_rows(X, library, reset=True)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        found = partition(y, unlabeled=self.unlabeled)
        n_labels = found.n_labeled + found.n_unlabeled
        if n_labels != X.shape[0]:
            raise ValueError(f"X has {X.shape[0]} rows but y has {n_labels}; they must be equally long.")
        keep = weight > 0
        if not keep.any():
            raise ValueError("All sample weights are zero; at least two labelled rows of different classes need one.")
        if keep.all():
            return Sample(X, weight, np.arange(n_labels), n_labels, found)
        return Sample(X[keep], weight[keep], np.flatnonzero(keep), n_labels, found.restrict(keep))

    def _costs(self, sample: Sample) -> np.ndarray:
        """Return the cost of each labelled row: C times its weight times its class's weight."""
        weight = sample.weight[sample.partition.labeled]
        return self.C * weight * class_weights(self.class_weight, sample.partition, weight)

    def _keep(self, results: Sequence[SolverResult], found: Partition) -> None:
        """Keep what the solver said, for one problem or for one problem a class."""
        self.n_iter_ = max(result.n_iter for result in results)
        objectives = np.array([result.objective for result in results])
        self.objective_ = float(objectives[0]) if len(results) == 1 else objectives
        self.certificate_ = Certificate(
            sum(result.certificate.gap for result in results), float(objectives.sum()), results[0].certificate.kind
        )
        self.status_ = next((r.status for r in results if not r.status.converged), Status.CONVERGED)
        if len(results) == 1:
            self.history_ = [dict(record) for record in results[0].history]
        else:
            self.history_ = [
                {"class": label} | record
                for label, result in zip(found.classes.tolist(), results, strict=True)
                for record in result.history
            ]
        if self.status_ not in (Status.CONVERGED, Status.CALLBACK):
            warnings.warn(
                f"{self.status_.value} Certified relative gap: {self.certificate_.relative:.2e}, asked for: "
                f"{self.tol:.2e}. Raise max_columns, max_time or tol, or accept the certified gap.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _transduce(self, X: Any, y: Any) -> np.ndarray:
        """Return the given labels where there are some, the predicted ones elsewhere."""
        rows, given = labeled_values(y, unlabeled=self.unlabeled, classes=self.classes_)
        out = self.predict(X)
        out[rows] = given
        return out


def class_weights(class_weight: Any, found: Partition, weight: np.ndarray) -> np.ndarray:
    """Return the factor of each labelled row that ``class_weight`` asks for (``None``, ``"balanced"`` or a dict)."""
    if class_weight is None:
        return np.ones(found.n_labeled)
    if isinstance(class_weight, Mapping):
        by_class = np.ones(found.n_classes)
        for label, value in class_weight.items():
            here = np.flatnonzero([known == label for known in found.classes.tolist()])
            if not len(here):
                raise ValueError(f"class_weight names the class {label!r}; y has {found.classes.tolist()}.")
            if not is_positive(value):
                raise ValueError(f"class_weight gives {label!r} the weight {value!r}; expected a positive number.")
            by_class[here] = value
    elif isinstance(class_weight, str) and class_weight == "balanced":
        totals = np.bincount(found.codes, weights=weight, minlength=found.n_classes)
        by_class = totals.sum() / (found.n_classes * totals)
    else:
        raise ValueError(f'class_weight={class_weight!r}; expected None, "balanced" or a dict of class weights.')
    return by_class[found.codes]


def kernel_usage(expansion: KernelExpansion, library: BoundLibrary, penalties: np.ndarray) -> list[dict[str, Any]]:
    """Return one record a kernel: name, source, columns in use and share of the penalised 1-norm.

    Parameters
    ----------
    penalties : ndarray of shape (n_kernels,)
        The part of the 1-norm that each kernel's coefficients make up.
    """
    n_columns = np.zeros(len(library.kernels), dtype=int)
    for group in expansion.groups:
        n_columns[group.kernel] = len(group.centers)
    total = penalties.sum()
    return [
        {
            "name": entry.name,
            "source": entry.source,
            "columns": int(n_columns[p]),
            "share": float(penalties[p] / total) if total > 0 else 0.0,
        }
        for p, entry in enumerate(library.entries)
    ]


def require(owner: str, name: str, value: Any, holds: bool, expected: str) -> None:
    """Refuse a parameter with one sentence."""
    if not holds:
        raise ValueError(f"{owner} got {name}={value!r}; expected {expected}.")


def is_positive(value: Any) -> bool:
    """Return whether a parameter is a positive finite number."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool) and 0 < float(value) < np.inf


def is_count(value: Any) -> bool:
    """Return whether a parameter is a whole number, 1 or more."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool) and int(value) >= 1

"""What every estimator shares: parameters that are recipes, the border where data are checked, class weights."""

from __future__ import annotations

import numbers
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from ..kernels.base import Kernel
from ..kernels.bound_library import BoundLibrary
from ..kernels.defaults import as_library
from ..kernels.library import KernelLibrary
from ..labels import Partition
from ..solvers.result import Status

RECIPES = ("kernels", "kernel", "extra_kernels")  # parameters that hold recipes
OF_COLUMNS = {"n_features_in_", "feature_names_in_"}  # what checking the data keeps, before there is a model


@dataclass(frozen=True)
class Sample:
    """Validated training data: the rows that take part in a fit.

    Attributes
    ----------
    X : array or CSR of shape (n_rows, n_features)
    weight : ndarray of shape (n_rows,)
    kept : ndarray of shape (n_rows,)
        Number of each row in the data as the user gave them.
    n_given : int
        How many rows the user gave.
    given : Partition or TargetPartition
        Of all the rows that the user gave.
    partition : Partition or TargetPartition
    """

    X: Any
    weight: np.ndarray
    kept: np.ndarray
    n_given: int
    given: Any
    partition: Any

    def restrict(self, keep: np.ndarray) -> Sample:
        """Return the sample of the rows in the boolean mask ``keep``."""
        if keep.all():
            return self
        kept = self.partition.restrict(keep)
        return Sample(self.X[keep], self.weight[keep], self.kept[keep], self.n_given, self.given, kept)


class KernelEstimator(BaseEstimator):
    """An estimator whose ``kernels`` parameter holds recipes.

    Recipes are immutable, so ``set_params(kernels__rbf__gamma=…)`` puts a changed copy in their place: recipes shared
    between estimators never change under one's feet.
    """

    @property
    def status_(self) -> Status:
        """Why the solver stopped (kept by name, since safe files hold no enumerations)."""
        check_is_fitted(self)
        return Status[self._status_name]

    def set_params(self, **params: Any) -> Self:
        """Set parameters, those of nested recipes by ``kernels__name__parameter``."""
        own = self.get_params(deep=False)
        changes: dict[str, dict[str, Any]] = {}
        rest: dict[str, Any] = {}
        for key, value in params.items():
            head, _, tail = key.partition("__")
            if tail and head in own and head in RECIPES:
                recipe = params.get(head, own[head])
                if not isinstance(recipe, Kernel | KernelLibrary):
                    raise ValueError(
                        f"{key} cannot be set, since {head} is {recipe!r}. Give {head} as a kernel or as "
                        "KernelLibrary([...]), whose parts have names."
                    )
                changes.setdefault(head, {})[tail] = value
            else:
                rest[key] = value
        super().set_params(**rest)
        for head, nested in changes.items():
            setattr(self, head, getattr(self, head).replace(**nested))
        return self

    def __sklearn_is_fitted__(self) -> bool:
        """Say whether there is a model: the data of a fit that was interrupted leave their columns only."""
        return any(name.endswith("_") and not name.startswith("__") for name in vars(self).keys() - OF_COLUMNS)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        try:
            tags.input_tags.allow_nan = self._library().allows_missing
        except (TypeError, ValueError):  # a wrong `kernels` is reported by fit, not by a look at the tags
            tags.input_tags.allow_nan = False
        return tags

    def _library(self) -> KernelLibrary:
        return as_library(self.kernels)

    def _library_for(self, sample: Sample) -> KernelLibrary:
        """Return the library for some data; where the default depends on them, estimators say how."""
        return self._library()

    def _check_rows(self, X: Any, library: KernelLibrary, *, reset: bool) -> Any:
        finite: Any = "allow-nan" if library.allows_missing else True
        return validate_data(
            self, X, reset=reset, accept_sparse="csr", dtype=self._precisions(), ensure_all_finite=finite
        )

    def _precisions(self) -> list[Any]:
        """Return the types of numbers that are taken as they come; others become the first."""
        return [np.float64, np.float32]

    def _outputs(self, X: Any, split: bool) -> np.ndarray:
        """Return the expansion at the rows of ``X``: (n_samples, n_outputs), or one axis more with ``split``."""
        check_is_fitted(self)
        X = self._check_rows(X, self.library_, reset=False)
        return self.expansion_.split(X) if split else self.expansion_(X)

    def _rng(self) -> np.random.Generator:
        return np.random.default_rng(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _bind(self, library: KernelLibrary, sample: Sample, rng: np.random.Generator) -> BoundLibrary:
        return library.bind(
            sample.X,
            rng,
            sample.weight,
            feature_names=getattr(self, "feature_names_in_", None),
            cache_size=getattr(self, "cache_size", 0.0),
        )

    def _check_fit(self, X: Any, y: Any, sample_weight: Any, library: KernelLibrary) -> Sample:
        """Validate the data, find out which rows are labelled, drop rows of weight zero."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        X = self._check_rows(X, library, reset=True)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        found = self._partition(y)
        n_rows = found.n_labeled + found.n_unlabeled
        if n_rows != X.shape[0]:
            raise ValueError(f"X has {X.shape[0]} rows but y has {n_rows}; they must be equally long.")
        if not weight.any():
            raise ValueError("All sample weights are zero; labelled rows need a positive one.")
        return Sample(X, weight, np.arange(n_rows), n_rows, found, found).restrict(weight > 0)

    def _check_params(self) -> None:
        """Refuse wrong parameters; estimators extend it."""

    @abstractmethod
    def _partition(self, y: Any) -> Any:
        """Read y: which rows are labelled, and with what."""


def class_weights(class_weight: Any, found: Partition, weight: np.ndarray) -> np.ndarray:
    """Return the factor of each labelled row that ``class_weight`` asks for (``None``, ``"balanced"`` or a dict)."""
    if class_weight is None:
        return np.ones(found.n_labeled)
    if isinstance(class_weight, Mapping):
        classes = found.classes.tolist()
        for label, value in class_weight.items():
            if not is_positive(value):
                raise ValueError(f"class_weight gives {label!r} the weight {value!r}; expected a positive number.")
        unknown = [label for label in class_weight if label not in classes]
        bare = [label for label in classes if label not in class_weight]
        if unknown and bare:  # as in scikit-learn: a fold may lack a class, but this looks like a wrong name
            raise ValueError(
                f"class_weight names the class {unknown[0]!r}; y has {classes}, of which {bare} have no weight. Name "
                "classes as y does, or give each class of y a weight."
            )
        by_class = np.array([float(class_weight.get(label, 1.0)) for label in classes])
    elif isinstance(class_weight, str) and class_weight == "balanced":
        totals = np.bincount(found.codes, weights=weight, minlength=found.n_classes)
        by_class = totals.sum() / (found.n_classes * totals)
    else:
        raise ValueError(f'class_weight={class_weight!r}; expected None, "balanced" or a dict of class weights.')
    return by_class[found.codes]


def class_shares(owner: str, class_prior: Any, found: Partition) -> np.ndarray | None:
    """Return the shares of the classes that ``class_prior`` gives; None where the labels give them or no one."""
    if class_prior is None or (isinstance(class_prior, str) and class_prior == "labeled"):
        return None
    classes = found.classes.tolist()
    if isinstance(class_prior, Mapping):
        unknown = [label for label in class_prior if label not in classes]
        missing = [label for label in classes if label not in class_prior]
        if unknown or len(missing) > (found.n_classes == 2):
            raise ValueError(
                f"{owner} got class_prior={class_prior!r}; expected a share for each of the classes {classes}."
            )
        given = [class_prior.get(label) for label in classes]
        holds = all(share is None or is_positive(share) for share in given)
        require(owner, "class_prior", class_prior, holds, "shares")
        rest = 1.0 - sum(float(share) for share in given if share is not None)
        shares = np.array([rest if share is None else float(share) for share in given])
    else:
        holds = is_positive(class_prior) and class_prior < 1 and found.n_classes == 2
        expected = '"labeled", None, the share of classes_[1] where there are two classes, or {class: share}'
        require(owner, "class_prior", class_prior, holds, expected)
        shares = np.array([1.0 - float(class_prior), float(class_prior)])
    if not (np.all(shares > 0) and abs(shares.sum() - 1.0) < 1e-6):
        raise ValueError(f"{owner} got class_prior={class_prior!r}; shares must be above 0 and sum to 1.")
    return shares


def require(owner: str, name: str, value: Any, holds: bool, expected: str) -> None:
    """Refuse a parameter with one sentence."""
    if not holds:
        raise ValueError(f"{owner} got {name}={value!r}; expected {expected}.")


def is_positive(value: Any) -> bool:
    """Return whether a parameter is a positive finite number."""
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        return False
    try:
        return 0 < float(value) < np.inf
    except OverflowError:
        return False


def is_nonnegative(value: Any, kind: Any = numbers.Real) -> bool:
    """Return whether a parameter is a finite number of a kind, 0 or more."""
    return isinstance(value, kind) and not isinstance(value, bool | np.bool_) and 0 <= float(value) < np.inf


def is_count(value: Any) -> bool:
    """Return whether a parameter is a whole number, 1 or more."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool) and int(value) >= 1

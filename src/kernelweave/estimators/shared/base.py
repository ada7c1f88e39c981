"""The border between scikit-learn and the fits: parameters that are recipes, checked rows, a model kept in one step."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ...distributed.lazy import lazy_after_fit, lazy_on_blocks
from ...distributed.rows import is_partitioned, without_partitioned
from ...kernels.base import Kernel
from ...kernels.defaults import allows_missing
from ...kernels.library import KernelLibrary
from ...parameters import Constraint, check_parameters
from ...short_text import short_lists, short_repr
from ...solvers.result import Status
from .callbacks import CallbackSupport, with_tasks
from .fit_html import describe_fit
from .partitioned import LabelRule, PartitionedSample, collect_rows, read_partitioned
from .sample import Rows, Sample, join_unlabeled, read_sample

RECIPES = ("kernels", "kernel", "extra_kernels")  # parameters that hold recipes
FLOATS = ("float64", "float32")
T = TypeVar("T")
LAZY_METHODS = (  # answer for Dask collections block by block
    *("predict", "predict_proba", "predict_log_proba", "predict_set", "predict_interval"),
    *("decision_function", "score_samples", "transform"),
)


class KernelEstimator(BaseEstimator, CallbackSupport):
    """An estimator whose ``kernels`` parameter holds recipes.

    Recipes are immutable, so ``set_params(kernels__rbf__gamma=…)`` puts a changed copy in their place: recipes shared
    between estimators never change under one's feet.
    """

    _constraints: ClassVar[Mapping[str, Constraint]] = {}  # of every parameter, by name
    _takes_unlabeled: ClassVar[bool] = True  # whether fit reads rows without a label; model_selection asks
    _gathers_partitions: ClassVar[bool] = False  # whether the rows of a Dask collection, all labelled, come to memory

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "fit" in cls.__dict__:
            cls.fit = with_tasks(cls.fit)
        for name in LAZY_METHODS:
            if name in cls.__dict__:
                setattr(cls, name, lazy_on_blocks(cls.__dict__[name]))

    @property
    def status_(self) -> Status:
        """Why the solver stopped (kept by name, since safe files hold no enumerations)."""
        check_is_fitted(self)
        return Status[self._status_name]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, those of nested recipes under ``kernels__name__parameter``.

        The kernels of a list have the names that a :class:`KernelLibrary` gives them.

        Parameters
        ----------
        deep : bool, default=True
            Whether to list the parameters of nested recipes and estimators, too.

        Returns
        -------
        dict
            Values by name.
        """
        params = super().get_params(deep)
        for name in RECIPES if deep else ():
            recipe = params.get(name)
            library = _name_kernels(name, recipe)
            if library is not recipe:
                params.update({f"{name}__{key}": value for key, value in library.get_params().items()})
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters, those of nested recipes by ``kernels__name__parameter``.

        A list of kernels of which one is changed becomes a :class:`KernelLibrary`.

        Parameters
        ----------
        **params : dict
            New values by name, with the names of :meth:`get_params`.

        Returns
        -------
        self
            The estimator.
        """
        own = self.get_params(deep=False)
        changes: dict[str, dict[str, Any]] = {}
        rest: dict[str, Any] = {}
        for key, value in params.items():
            head, _, tail = key.partition("__")
            if tail and head in own and head in RECIPES:
                recipe = params.get(head, own[head])
                if not isinstance(_name_kernels(head, recipe), Kernel | KernelLibrary):
                    expected = "a kernel" if head == "kernel" else "a kernel, a list of kernels or a KernelLibrary"
                    raise ValueError(
                        f"{key} cannot be set, since {head} is {short_repr(recipe)}. Give {head} as {expected}."
                    )
                changes.setdefault(head, {})[tail] = value
            else:
                rest[key] = value
        super().set_params(**rest)
        for head, nested in changes.items():
            setattr(self, head, _name_kernels(head, getattr(self, head)).replace(**nested))
        return self

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        with short_lists():
            return super().__repr__(N_CHAR_MAX)

    def _repr_html_inner(self) -> str:
        return super()._repr_html_inner() + self._describe_fit()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] += self._describe_fit()
        return bundle

    def _get_params_html(self, deep: bool = True, *args: Any, **kwargs: Any) -> Any:
        # Nested parameters are named after kernels, hence by users; scikit-learn 1.7 writes these names as they are.
        return super()._get_params_html(False, *args, **kwargs)

    def _describe_fit(self) -> str:
        """Return what stands below scikit-learn's diagram; nothing before a fit."""
        return describe_fit(vars(self), self.status_) if self.__sklearn_is_fitted__() else ""

    def __getstate__(self) -> dict[str, Any]:
        # Lazy results stay with the process that has the Dask collections: workers, copies and files do without.
        return without_partitioned(super().__getstate__())

    def __sklearn_is_fitted__(self) -> bool:
        return "_kept" in vars(self)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        try:
            fitted = self.__sklearn_is_fitted__()
            tags.input_tags.allow_nan = self._takes_missing if fitted else self._allows_missing()
        except (TypeError, ValueError):  # a wrong `kernels` is reported by fit, not by a look at the tags
            tags.input_tags.allow_nan = False
        return tags

    def _allows_missing(self) -> bool:
        """Return whether the recipes say what a missing value means."""
        return allows_missing(*find_recipes(self._parameters()))

    def _check_parameters(self) -> None:
        """Refuse parameters that their constraints do not allow."""
        check_parameters(type(self).__name__, self._parameters(), self._constraints)

    def _parameters(self) -> dict[str, Any]:
        """Return the value of every declared parameter, those too that a subclass fixes.

        In a fit with callbacks of scikit-learn, ``callback`` calls them, too.
        """
        params = {name: getattr(self, name) for name in self._constraints}
        tasks = vars(self).get("_fit_tasks")
        return params if tasks is None else params | tasks.as_parameter()

    def _rng(self) -> np.random.Generator:
        return random_generator(self.random_state)

    def _read_rows(self, X: Any, dtypes: tuple[str, ...] = FLOATS, like: Rows | None = None) -> Rows:
        """Check the rows of a fit; nothing is written to the estimator before there is a model.

        ``like`` are rows that were read before, whose columns ``X`` must have.
        """
        if is_partitioned(X) and self._gathers_partitions:
            X = collect_rows(X, type(self).__name__)
        elif is_partitioned(X):
            raise TypeError(
                f"{type(self).__name__} needs all rows in memory, and X is a Dask collection. Use SSMKClassifier, "
                "LearnedKernelClassifier or AutoKernelClassifier (or the regressors), which learn from partitions, or "
                "fit some of the rows; predictions of Dask collections work with every estimator."
            )
        scratch = copy.copy(self)
        if like is not None:
            others = {name: value for name, value in vars(self).items() if name != "feature_names_in_"}
            scratch.__dict__ = others | {"n_features_in_": int(like.X.shape[1])}
            if like.feature_names is not None:
                scratch.feature_names_in_ = like.feature_names
        missing = self._allows_missing()
        X = _check_rows(scratch, X, dtypes, missing=missing, reset=like is None)
        return Rows(X, vars(scratch).get("feature_names_in_"), dtypes, missing)

    def _read_sample(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        X_unlabeled: Any,
        read_labels: Callable[[Any], Any],
        rule: LabelRule,
        dtypes: tuple[str, ...] = FLOATS,
    ) -> Sample | PartitionedSample:
        """Check rows and labels of a fit; in partitions where X, or the unlabelled rows beside it, are so.

        ``read_labels`` reads labels in memory, ``rule`` says how those of partitions are read.
        """
        if is_partitioned(X) or is_partitioned(X_unlabeled):
            return read_partitioned(type(self).__name__, X, y, sample_weight, X_unlabeled, rule, dtypes)
        rows, labels = self._read_rows(X, dtypes), read_labels(y)
        if X_unlabeled is not None:
            others = self._read_rows(X_unlabeled, rows.dtypes, like=rows)
            return join_unlabeled(rows, labels, sample_weight, others)
        return read_sample(rows, labels, sample_weight)

    def _read_new_rows(self, X: Any) -> Any:
        """Check rows against those of the fit."""
        check_is_fitted(self)
        return _check_rows(self, X, self._dtypes, missing=self._takes_missing, reset=False)

    def _outputs(self, X: Any, split: bool = False) -> np.ndarray:
        """Return the expansion at the rows of ``X``: (n_samples, n_outputs), or one axis more with ``split``."""
        X = self._read_new_rows(X)
        return self.expansion_.split(X) if split else self.expansion_(X)

    def _keep(self, sample: Sample, library: KernelLibrary | None, *results: Any, **attributes: Any) -> Self:
        """Keep a model in one step, so that a fit that is interrupted leaves the estimator as it was.

        Parameters
        ----------
        sample : Sample
            What it was fitted to.
        library : KernelLibrary or None
            The kernels it was offered; None where it is made of other models.
        *results : dataclass instances
            Each field ``name`` is kept as ``name_``; a status by its name; those with the metadata ``kept=False`` not.
        **attributes
            What else is kept, under the names given.
        """
        rows = sample.rows
        fitted: dict[str, Any] = {
            **({} if library is None else {"library_": library}),
            "n_features_in_": int(rows.X.shape[1]),
            "_dtypes": rows.dtypes,
            "_takes_missing": rows.takes_missing,
        }
        if rows.feature_names is not None:
            fitted["feature_names_in_"] = rows.feature_names
        for result in results:
            for field in fields(result):
                value = getattr(result, field.name)
                if isinstance(value, Status):
                    fitted["_status_name"] = value.name
                elif field.metadata.get("kept", True):
                    fitted[f"{field.name}_"] = value
        fitted |= attributes
        earlier = vars(self).get("_kept", ())  # what users and subclasses keep beside it is theirs
        others = {name: value for name, value in vars(self).items() if name not in earlier}
        self.__dict__ = others | fitted | {"_kept": tuple(fitted)}
        return self


def lazy_transformer(cls: type[T]) -> type[T]:
    """Let a transformer stay lazy for Dask collections: what ``set_output`` names is for rows in memory.

    A decorator: what it puts around ``transform`` must be outside of scikit-learn's containers, which would compute all
    rows, and these come after ``__init_subclass__``.
    """
    kind: Any = cls
    kind.transform = lazy_on_blocks(kind.transform)
    kind.fit_transform = lazy_after_fit(kind.fit_transform)
    return cls


def random_generator(random_state: Any) -> np.random.Generator:
    """Return the generator that a parameter ``random_state`` means."""
    return np.random.default_rng(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def find_recipes(params: Mapping[str, Any]) -> list[Any]:
    """Return the parameters that hold recipes."""
    return [params[name] for name in RECIPES if name in params]


def _name_kernels(parameter: str, recipe: Any) -> Any:
    """Return the library that a list of kernels means, if the parameter takes one; anything else as it is."""
    if parameter == "kernel" or not isinstance(recipe, list | tuple | dict):
        return recipe
    try:
        return KernelLibrary(recipe)
    except (TypeError, ValueError):  # reported by fit
        return recipe


def _check_rows(estimator: BaseEstimator, X: Any, dtypes: tuple[str, ...], *, missing: bool, reset: bool) -> Any:
    finite: Any = "allow-nan" if missing else True
    return validate_data(estimator, X, reset=reset, accept_sparse="csr", dtype=list(dtypes), ensure_all_finite=finite)

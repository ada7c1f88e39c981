"""Paths over C: each fit starts from the working set and the solution of the last one."""

from __future__ import annotations

import copy
import inspect
import numbers
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, indexable

from ..solvers.columns.loop import RoundState
from .base import is_count, is_positive, require
from .cg_boost import CGBoostClassifier, CGBoostRegressor
from .mixture import require_jobs

PATH_RANGE = (1e-2, 1e3)  # of C, relative to columns of unit deviation


@dataclass(frozen=True)
class CGBoostPath:
    """Models along a path over C.

    Attributes
    ----------
    Cs : ndarray of shape (n_Cs,)
        Ascending.
    models : tuple of estimators
        Fitted, one for each C.
    n_columns : ndarray of shape (n_Cs,)
        Basis functions.
    objectives : ndarray of shape (n_Cs,)
        Values of the problems, summed over the classes.
    relative_gaps : ndarray of shape (n_Cs,)
        Certified.
    n_iter : ndarray of shape (n_Cs,)
        Rounds.
    validation_scores : ndarray of shape (n_Cs,) or None
        On the validation rows, if there were any.
    """

    Cs: np.ndarray
    models: tuple[Any, ...]
    n_columns: np.ndarray
    objectives: np.ndarray
    relative_gaps: np.ndarray
    n_iter: np.ndarray
    validation_scores: np.ndarray | None = None

    @property
    def best(self) -> Any:
        """The model with the best validation score; of several the one with the smallest C."""
        if self.validation_scores is None:
            raise ValueError("The path has no validation scores; give cg_boost_path X_val and y_val.")
        return self.models[int(np.argmax(self.validation_scores))]


def cg_boost_path(
    X: Any,
    y: Any,
    *,
    Cs: int | Sequence[float] | np.ndarray = 10,
    estimator: CGBoostClassifier | CGBoostRegressor | None = None,
    sample_weight: Any = None,
    X_val: Any = None,
    y_val: Any = None,
) -> CGBoostPath:
    """Fit CG-Boost for a range of C, each from the solution for the last one.

    The kernels are bound once, kernel blocks stay in the cache, and the working set of one C is where the next begins;
    each model has its own certificate, as if it had been fitted alone.

    Parameters
    ----------
    X : array, sparse matrix or frame of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    Cs : int or sequence of float, default=10
        The values, in any order, or how many between 0.01 and 1000.
    estimator : CGBoostClassifier or CGBoostRegressor, optional
        Everything but C; by default ``CGBoostClassifier()``. It is not changed.
    sample_weight : array-like of shape (n_samples,), optional
    X_val, y_val : as X and y, optional
        Rows on which each model is scored.

    Returns
    -------
    CGBoostPath

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from kernelweave import cg_boost_path
    >>> X, y = make_moons(150, noise=0.2, random_state=0)
    >>> path = cg_boost_path(X[:100], y[:100], Cs=[0.1, 1.0, 10.0], X_val=X[100:], y_val=y[100:])
    >>> bool((path.relative_gaps <= 1e-6).all()), path.best in path.models
    (True, True)
    """
    base = clone(CGBoostClassifier() if estimator is None else estimator)
    if not isinstance(base, CGBoostClassifier | CGBoostRegressor):
        raise TypeError(f"cg_boost_path takes a CGBoostClassifier or CGBoostRegressor; got {base!r}.")
    if getattr(base, "nu", None) is not None or base.validation_fraction is not None:
        raise ValueError("A path over C needs an estimator with nu=None and validation_fraction=None.")
    if (X_val is None) != (y_val is None):
        raise ValueError("cg_boost_path needs X_val and y_val together; one of them is missing.")
    values = path_values("cg_boost_path", Cs)
    base.set_params(C=float(values[0]))
    task = base._prepare(X, y, sample_weight)
    if X_val is not None:
        base._check_validation(X_val, y_val, task.library, task.sample.partition)
    unit_costs = [rows.cost / base.C for rows in task.problems]
    models = []
    for C in values:
        task.problems = [replace(rows, cost=C * cost) for rows, cost in zip(task.problems, unit_costs, strict=True)]
        if base.max_columns is not None:  # a working set that is full would never change again
            task.masters = base._masters(task)
        for master, rows in zip(task.masters, task.problems, strict=True):
            master.set_cost(rows.cost)
        model = copy.copy(base).set_params(C=float(C))
        model._learn(task)
        models.append(model)
    scores = None if X_val is None else np.array([model.score(X_val, y_val) for model in models])
    return CGBoostPath(
        Cs=values,
        models=tuple(models),
        n_columns=np.array([model.n_columns_ for model in models]),
        objectives=np.array([np.sum(model.objective_) for model in models]),
        relative_gaps=np.array([model.certificate_.relative for model in models]),
        n_iter=np.array([model.n_iter_ for model in models]),
        validation_scores=scores,
    )


class CGBoostClassifierCV(CGBoostClassifier):
    r"""Classify with a mixture of kernels whose C is chosen by cross-validation along warm-started paths.

    The problem is that of :class:`CGBoostClassifier`. In each fold a path over ``Cs`` is followed from the smallest up,
    each fit from the solution of the last; the C with the best mean score (of several the smallest) is the end of a
    last path over all rows, whose model is kept.

    Parameters
    ----------
    kernels : None, Kernel, list of Kernel or KernelLibrary, default=None
        The library, as in :class:`CGBoostClassifier`.
    Cs : int or sequence of float, default=10
        The values of C, or how many between 0.01 and 1000.
    cv : int, cross-validation generator or None, default=None
        As in scikit-learn; None means 5 stratified folds.
    scoring : str or callable, optional
        As in scikit-learn, but one score; accuracy by default.
    penalty, positive, intercept, pricing, column_scale, centers, max_columns, max_time, tol
        As in :class:`CGBoostClassifier`.
    class_weight, cache_size, callback, verbose, random_state
        As in :class:`CGBoostClassifier`.
    n_jobs : int, optional
        Folds at the same time. Has no influence on the result.

    Attributes
    ----------
    C_ : float
        The value chosen.
    Cs_ : ndarray of shape (n_Cs,)
        Ascending.
    scores_ : ndarray of shape (n_folds, n_Cs)
    path_ : CGBoostPath
        The path over all rows, up to ``C_``.
    classes_, expansion_, intercept_, kernel_usage_, n_columns_, n_evaluations_, objective_, certificate_, status_
        Of the model at ``C_``, as in :class:`CGBoostClassifier`.
    history_, n_iter_, dual_, candidates_, library_, n_features_in_, feature_names_in_
        Of the model at ``C_``, as in :class:`CGBoostClassifier`.

    References
    ----------
    J. Bi, T. Zhang, K. P. Bennett. Column-generation boosting methods for mixture of kernels. KDD 2004.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from kernelweave import CGBoostClassifierCV
    >>> X, y = make_moons(150, noise=0.2, random_state=0)
    >>> model = CGBoostClassifierCV(Cs=[0.1, 1.0, 10.0], cv=3).fit(X, y)
    >>> model.C_ in (0.1, 1.0, 10.0), model.score(X, y) > 0.9
    (True, True)
    """

    def __init__(
        self,
        kernels: Any = None,
        *,
        Cs: int | Sequence[float] | np.ndarray = 10,
        cv: Any = None,
        scoring: Any = None,
        penalty: str = "l1",
        positive: bool = False,
        intercept: str | None = "free",
        pricing: str = "stratified",
        column_scale: str | None = "std",
        centers: Any = "auto",
        max_columns: int | None = None,
        max_time: float | None = None,
        tol: float | None = None,
        class_weight: Any = None,
        cache_size: float = 500.0,
        n_jobs: int | None = None,
        callback: Callable[[RoundState], object] | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ):
        self.kernels = kernels
        self.Cs = Cs
        self.cv = cv
        self.scoring = scoring
        self.penalty = penalty
        self.positive = positive
        self.intercept = intercept
        self.pricing = pricing
        self.column_scale = column_scale
        self.centers = centers
        self.max_columns = max_columns
        self.max_time = max_time
        self.tol = tol
        self.class_weight = class_weight
        self.cache_size = cache_size
        self.n_jobs = n_jobs
        self.callback = callback
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:  # type: ignore[override]
        """Choose C and learn the mixture.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self
        """
        values = path_values(type(self).__name__, self.Cs)
        own = ("Cs", "cv", "scoring")
        shared = {name: value for name, value in self.get_params(deep=False).items() if name not in own}
        base = CGBoostClassifier(**(shared | {"n_jobs": None}))
        base._check_params()
        require_jobs(type(self).__name__, self.n_jobs)
        one = self.scoring is None or isinstance(self.scoring, str) or callable(self.scoring)
        require(type(self).__name__, "scoring", self.scoring, one, "one scorer: its name, a callable or None")
        checked = self._check_fit(X, y, sample_weight, self._library())
        (X,) = indexable(X)  # some sparse formats have no rows to take
        labels, weight = checked.given.labels, np.zeros(checked.n_given)
        weight[checked.kept] = checked.weight
        scorer = check_scoring(base, scoring=self.scoring)
        splits = list(check_cv(self.cv, labels, classifier=True).split(np.zeros(len(labels)), labels))
        scores = Parallel(n_jobs=self.n_jobs)(
            delayed(_fold_scores)(base, X, labels, weight, train, test, values, scorer) for train, test in splits
        )
        self.scores_ = np.array(scores)
        best = int(np.argmax(self.scores_.mean(axis=0)))
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always", ConvergenceWarning)
            self.path_ = cg_boost_path(X, y, Cs=values[: best + 1], estimator=base, sample_weight=weight)
        if seen and not self.path_.models[-1].status_.converged:
            warnings.warn(seen[-1].message, stacklevel=2)  # what other models of the path lack does not matter
        self.Cs_, self.C_ = values, float(values[best])
        for name, value in vars(self.path_.models[-1]).items():
            if name.endswith("_") or name.startswith("_"):
                setattr(self, name, value)
        return self


def _fold_scores(
    base: CGBoostClassifier,
    X: Any,
    labels: np.ndarray,
    weight: np.ndarray,
    train: np.ndarray,
    test: np.ndarray,
    Cs: np.ndarray,
    scorer: Callable[..., float],
) -> list[float]:
    """Follow a path over the training rows of a fold and score its models on the others."""
    train, test = train[weight[train] > 0], test[weight[test] > 0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # said once, of the model that is kept
        path = cg_boost_path(
            _safe_indexing(X, train), labels[train], Cs=Cs, estimator=base, sample_weight=weight[train]
        )
    parameters = inspect.signature(scorer).parameters.values()
    takes_weight = any(p.name == "sample_weight" or p.kind is p.VAR_KEYWORD for p in parameters)
    held = {"sample_weight": weight[test]} if takes_weight else {}
    X_test = _safe_indexing(X, test)
    scores = [scorer(model, X_test, labels[test], **held) for model in path.models]
    if not isinstance(scores[0], numbers.Real):
        raise ValueError(f"scoring={scorer!r} gave {scores[0]!r}; expected one number, by which the best C is chosen.")
    return [float(score) for score in scores]


def path_values(owner: str, Cs: Any) -> np.ndarray:
    """Return the values of C in ascending order, without repetitions."""
    if is_count(Cs):
        return np.geomspace(*PATH_RANGE, int(Cs)) if Cs > 1 else np.array([10.0])
    given = np.atleast_1d(np.asarray(Cs, dtype=object))
    right = given.ndim == 1 and len(given) > 0 and all(is_positive(C) for C in given)
    require(owner, "Cs", Cs, right, "a whole number >= 1 or positive numbers")
    return np.unique(given.astype(float))

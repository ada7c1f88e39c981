"""The learners that are tried: those of kernelweave with nothing set, on several views, and scikit-learn's best known.

A candidate is an estimator under a name. What it leaves open (``C="cv"``) it chooses by itself from all labelled rows;
in the folds it is fitted with these choices, which `fix_choices` reads off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse
from scipy.special import log_softmax
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline

from ...kernels.base import Kernel
from ...kernels.cluster import ClusterKernel
from ...kernels.pointwise import RBF, Linear
from ...kernels.scaling import BlockScaler, ColumnScaler, PowerScaler
from ...kernels.tables import is_table
from ...kernels.wrappers import Preprocessed
from ...model_selection import SemiSupervisedSplit
from ...model_selection.semi_supervised import takes_unlabeled
from ...parameters import require
from ...short_text import short_repr
from ..cg_boost import CGBoostClassifier
from ..cg_boost_regressor import CGBoostRegressor
from ..harmonic import HarmonicClassifier, HarmonicRegressor
from ..lapsvm import LapSVMClassifier
from ..learned_kernel_svm import LearnedKernelClassifier, LearnedKernelRegressor
from ..mkl import MKLClassifier, MKLRegressor
from ..rkda import RKDAClassifier
from ..shared.base import KernelEstimator
from ..ssmk import SSMKClassifier, SSMKRegressor
from ..tsvm import TSVMClassifier, TSVMMKLClassifier
from .frames import Columns, place_columns
from .trees import TreesClassifier, TreesRegressor

COSTS = tuple(np.logspace(-3, 2, 6))  # of logistic regression
RIDGES = tuple(np.logspace(-3, 3, 7))
N_SEARCH_FOLDS = 3
MIN_SEARCH_ROWS = 10  # labelled rows, below which linear models take a middle cost
CHOICES = ("C", "ratio", "weighting", "ramp")  # parameters that estimators choose by folds and keep as C_, ratio_, ...
OPEN = {"unlabeled": "auto"}  # what stands for "not set"; None in other parameters
MAX_CLASSES = 200  # of most candidates: 1000 classes of 3 labels would take hours, and forests 6 GB
FOR_MANY_CLASSES = ("harmonic", "RKDA", "logistic regression")  # which solve one problem for all classes
MIN_PROBABILITY = 1e-6  # in a logarithm
SLOPES = tuple(2.0 ** np.arange(-4, 5))  # inverse temperatures
MIN_LEFT_OUT = 3  # labelled rows of a class, of which a fold leaves the two that leave_one_out=True needs
CANDIDATES = '"all", "kernels", or a list of names and estimators'
NARROW = 10.0  # times the usual width of a cluster kernel's base: clusters must be resolved


@dataclass(frozen=True)
class Candidate:
    """A learner under a name.

    Attributes
    ----------
    name : str
    estimator : estimator
        Not fitted.
    cost : float
        About how long a fit takes, relative to MKL (``benchmarks/auto``); cheap ones come first where time is limited.
    uses_unlabeled : bool
        Whether unlabelled rows tell it more than the scales of columns and kernels.
    columns : Columns or None
        The frame that it is fitted to; None: an array.
    max_classes : float
        Of more classes a search leaves it out: where it trains a machine for each of them, in folds of its own too, or
        keeps a number for each in every leaf.
    """

    name: str
    estimator: Any
    cost: float = 1.0
    uses_unlabeled: bool = False
    columns: Columns | None = None
    max_classes: float = np.inf

    @property
    def is_certified(self) -> bool:
        """Whether it is a model of kernelweave, with a certificate."""
        return isinstance(self.estimator, KernelEstimator)


def read_candidates(
    given: Any, X: Any, n_labeled: int, task: str, owner: str, columns: Columns | None = None
) -> list[Candidate]:
    """Return the candidates that a parameter means, for such rows.

    Parameters
    ----------
    given : "all", "kernels", or a list of names, estimators and (name, estimator)
    X : array or CSR of shape (n_rows, n_features)
    n_labeled : int
    task : {"classes", "numbers"}
    owner : str
        Who asks, for messages.
    columns : Columns, optional
        The names of the columns, which estimators in a list may use.
    """
    known = {each.name: each for each in list_candidates(X, n_labeled, task)}
    if isinstance(given, str):
        require(owner, "candidates", given, given in ("all", "kernels"), CANDIDATES)
        return [each for each in known.values() if given == "all" or each.is_certified]
    require(owner, "candidates", given, isinstance(given, list | tuple) and len(given) > 0, CANDIDATES)
    return _name_candidates([_read_candidate(each, known, task, owner, columns) for each in given], owner)


def list_candidates(X: Any, n_labeled: int, task: str) -> list[Candidate]:
    """Return all candidates for such rows: first those of kernelweave, then scikit-learn's."""
    return _list_classifiers(X, n_labeled) if task == "classes" else _list_regressors(X, n_labeled)


def _list_classifiers(X: Any, n_labeled: int) -> list[Candidate]:
    candidates = [
        Candidate("MKL", MKLClassifier(), 1.0),
        Candidate("LapSVM", LapSVMClassifier(), 4.0, True),
        Candidate("LearnedKernel", LearnedKernelClassifier(), 8.0, True),
        Candidate("TSVM", TSVMClassifier(), 4.0, True),
        Candidate("TSVM-MKL", TSVMMKLClassifier(), 12.0, True),
        Candidate("SSMK", SSMKClassifier(), 8.0, True),
        Candidate("CG-Boost", CGBoostClassifier(), 1.0),
        Candidate("harmonic", HarmonicClassifier(), 0.1, True),
        Candidate("RKDA", RKDAClassifier(), 0.1),
        Candidate("SVM", MKLClassifier(single_view(X)), 0.1),
    ]
    if not issparse(X):
        view = single_view(X)
        candidates += [
            Candidate("LapSVM, one view", LapSVMClassifier(view, metric="kernel"), 2.0, True),
            Candidate("cluster kernel", MKLClassifier(ClusterKernel(single_view(X, NARROW))), 1.0, True),
        ]
    candidates += [
        Candidate(
            "logistic regression", _search_cost(X, n_labeled, LogisticRegression(max_iter=1000), "C", COSTS), 0.5
        ),
        Candidate("random forest", TreesClassifier(), 1.0),
        Candidate("gradient boosting", TreesClassifier(boosted=True), 0.5),
    ]
    return [each if each.name in FOR_MANY_CLASSES else replace(each, max_classes=MAX_CLASSES) for each in candidates]


def leave_out(candidates: Sequence[Candidate], n_classes: int) -> tuple[list[Candidate], dict[str, str]]:
    """Return the candidates for so many classes, and why the others are left out; all, if there would be none.

    Parameters
    ----------
    candidates : sequence of Candidate
    n_classes : int
        0 for numbers.
    """
    kept = [each for each in candidates if n_classes <= each.max_classes]
    if not kept:
        return list(candidates), {}
    why = f"it would take too long with {n_classes} classes"
    return kept, {each.name: why for each in candidates if n_classes > each.max_classes}


def _list_regressors(X: Any, n_labeled: int) -> list[Candidate]:
    return [
        Candidate("MKL", MKLRegressor(), 1.0),
        Candidate("LearnedKernel", LearnedKernelRegressor(), 4.0, True),
        Candidate("SSMK", SSMKRegressor(), 5.0, True),
        Candidate("CG-Boost", CGBoostRegressor(), 1.0),
        Candidate("harmonic", HarmonicRegressor(), 0.1, True),
        Candidate("SVM", MKLRegressor(single_view(X)), 0.2),
        Candidate("ridge regression", _search_cost(X, n_labeled, Ridge(), "alpha", RIDGES), 0.2),
        Candidate("random forest", TreesRegressor(), 1.0),
        Candidate("gradient boosting", TreesRegressor(boosted=True), 0.3),
    ]


def single_view(X: Any, multiple: float = 1.0) -> Kernel:
    """Return one plain kernel: linear for sparse rows, else RBF on standardised columns."""
    return Linear() if issparse(X) else Preprocessed(ColumnScaler(), RBF(multiple=multiple))


def _search_cost(X: Any, n_labeled: int, model: Any, parameter: str, grid: Sequence[float]) -> Any:
    """Return a linear model, its cost chosen by folds of the labelled rows.

    Columns of a table are scaled after powers. Those that share a unit keep it: with 50 labels the error of logistic
    regression on images is 24 % then, and 25 % after powers.
    """
    if n_labeled >= MIN_SEARCH_ROWS:
        target, scoring = ("classes", log_score) if is_classifier(model) else ("numbers", "neg_mean_squared_error")
        cv = SemiSupervisedSplit(N_SEARCH_FOLDS, target=target, unlabeled=None, random_state=0)
        model = GridSearchCV(model, {parameter: list(grid)}, scoring=scoring, cv=cv)
    if issparse(X):
        return make_pipeline(model)
    return make_pipeline(PowerScaler() if is_table(X) else BlockScaler(), model)


def log_score(model: Any, X: Any, y: Any) -> float:
    """Return the mean logarithm of the probability of the given classes, at the best of several temperatures.

    Outputs of a candidate are scaled anew: how sure it is of itself must not decide on its cost. (On 17 sets of 30
    labels the error of logistic regression is 22.3 % with a temperature and 23.3 % without.) The given classes need not
    be all that there are.
    """
    logs = np.log(np.maximum(model.predict_proba(X), MIN_PROBABILITY))
    codes = np.searchsorted(model.classes_, y)
    scaled = (log_softmax(slope * logs, axis=1)[np.arange(len(codes)), codes] for slope in SLOPES)
    return max(float(each.mean()) for each in scaled)


def _read_candidate(
    given: Any, known: dict[str, Candidate], task: str, owner: str, columns: Columns | None
) -> Candidate:
    name, estimator = given if isinstance(given, tuple) and len(given) == 2 else (None, given)
    if isinstance(estimator, str):
        if estimator not in known:
            raise ValueError(f"{owner} has no candidate {estimator!r}; it has {', '.join(map(repr, known))}.")
        return known[estimator] if name is None else replace(known[estimator], name=str(name))
    is_right = is_classifier if task == "classes" else is_regressor
    if not isinstance(estimator, BaseEstimator) or not is_right(estimator):
        kind = "classifiers" if task == "classes" else "regressors"
        raise TypeError(f"{owner} takes {kind} and the names of its own candidates; got {short_repr(estimator)}.")
    name = type(estimator).__name__ if name is None else str(name)
    uses_unlabeled = takes_unlabeled(estimator)
    if columns is not None and isinstance(estimator, KernelEstimator):  # which shares what is computed from an array
        return Candidate(name, place_columns(estimator, columns), uses_unlabeled=uses_unlabeled)
    return Candidate(name, estimator, uses_unlabeled=uses_unlabeled, columns=columns)


def _name_candidates(candidates: list[Candidate], owner: str) -> list[Candidate]:
    """Refuse names that occur twice."""
    names = [each.name for each in candidates]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"{owner} got several candidates called {twice[0]!r}; pass (name, estimator) pairs.")
    return candidates


def configure(estimator: Any, **options: Any) -> Any:
    """Return a copy of an estimator with options that are not None, where it, or a step of it, leaves them at None.

    ``class_prior`` takes the place of any other, ``unlabeled`` that of ``"auto"``.
    """
    copied = clone(estimator)
    for key, value in copied.get_params().items():
        name = key.rpartition("__")[2]
        left = OPEN.get(name)
        is_open = name == "class_prior" or (isinstance(value, type(left)) and value == left)
        if is_open and options.get(name, left) != left:
            copied.set_params(**{key: options[name]})
    return copied


def fix_choices(fitted: Any, fewest: int) -> Any:
    """Return a copy of a fitted estimator, not fitted, in which what it chose by folds is given.

    ``fewest`` is the number of labelled rows of the smallest class, or of all rows with a number.
    """
    if isinstance(fitted, Pipeline | GridSearchCV):
        return clone(final_model(fitted))
    fixed, params = clone(fitted), fitted.get_params(deep=False)
    if "learner" in params and hasattr(fitted, "learner_"):
        learner = clone(fitted.learner_)
        if fewest < MIN_LEFT_OUT and "leave_one_out" in learner.get_params():
            learner.set_params(leave_one_out=False)
        fixed.set_params(learner=learner)
    for name in CHOICES:
        if isinstance(params.get(name), str) and hasattr(fitted, f"{name}_"):
            fixed.set_params(**{name: getattr(fitted, f"{name}_")})
    return fixed


def final_model(fitted: Any) -> Any:
    """Return what predicts: in the place of a search its best model."""
    if isinstance(fitted, Pipeline):
        *first, (name, last) = fitted.steps
        return Pipeline([*first, (name, final_model(last))])
    return fitted.best_estimator_ if isinstance(fitted, GridSearchCV) else fitted

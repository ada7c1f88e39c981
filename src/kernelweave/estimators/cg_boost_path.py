"""Paths over C: each fit starts from the working set and the solution of the last one."""

from __future__ import annotations

import copy
import inspect
import numbers
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.base import ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, indexable

from ..labels import partition
from ..parameters import READ_LATER, Constraint, is_count, is_positive, require
from ..solvers.deadline import Deadline
from ..solvers.result import FitState, Status
from ..warn import warn_caller
from .cg_boost import CGBoostClassifier
from .cg_boost_regressor import CGBoostRegressor
from .shared.cg_boost import CG_BOOST_CONSTRAINTS, bind_columns, cg_boost_options, follow_path, precisions
from .shared.cv_results import tabulate_scores
from .shared.early_stopping import require_validation
from .shared.fold_choice import TIME_SHARE
from .shared.mixture import REMEDIES, MixtureFit
from .shared.mixture_choice import CostChoice, cost_grid, cost_unit
from .shared.outcome import warn_unless_converged
from .shared.outputs import KernelClassifier, read_all_labels
from .shared.problems import ClassProblem, class_problem
from .shared.sample import Sample, read_sample

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
        The training rows.
    y : array-like of shape (n_samples,)
        Labels or numbers; every row must have one.
    Cs : int or sequence of float, default=10
        The values, in any order, or how many between 0.01 and 1000.
    estimator : CGBoostClassifier or CGBoostRegressor, optional
        Everything but C; by default ``CGBoostClassifier()``. It is not changed.
    sample_weight : array-like of shape (n_samples,), optional
        Rows of weight zero are ignored altogether.
    X_val, y_val : as X and y, optional
        Rows on which each model is scored.

    Returns
    -------
    CGBoostPath
        The fitted ``models`` with their ``Cs``, sizes, objectives, gaps and validation scores; ``best`` is the model
        with the best validation score.

    See Also
    --------
    CGBoostClassifierCV : Chooses C along such a path.
    PathDisplay : Draws a path.

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
    require_validation("cg_boost_path", X_val, y_val)
    values = path_values("cg_boost_path", Cs)
    return tabulate_path(values, base.fit_path(X, y, values, sample_weight, X_val=X_val, y_val=y_val), X_val, y_val)


def tabulate_path(Cs: np.ndarray, models: Sequence[Any], X_val: Any = None, y_val: Any = None) -> CGBoostPath:
    """Return fitted models, one for each cost, with what they reached."""
    return CGBoostPath(
        Cs=Cs,
        models=tuple(models),
        n_columns=np.array([model.n_columns_ for model in models]),
        objectives=np.array([np.sum(model.objective_) for model in models]),
        relative_gaps=np.array([model.certificate_.relative for model in models]),
        n_iter=np.array([model.n_iter_ for model in models]),
        validation_scores=None if X_val is None else np.array([model.score(X_val, y_val) for model in models]),
    )


class CGBoostClassifierCV(KernelClassifier):
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
    penalty : {"l1", "l2", "rkhs"}, default="l1"
        Norm of the coefficients; this and what follows as in :class:`CGBoostClassifier`.
    positive : bool, default=False
        Whether the coefficients of the kernels must not be negative.
    intercept : {"free", "penalized"} or None, default="free"
        Whether the offset is free, penalised or absent.
    pricing : {"stratified", "full"}, default="stratified"
        Which columns a round looks at.
    column_scale : {"std", "norm"} or None, default="std"
        What each column is divided by.
    centers : {"auto", "all"}, int or array-like, default="auto"
        Which rows may be centres.
    max_columns : int, optional
        Largest number of columns in the working set.
    max_time : float, optional
        Seconds that the whole fit may take: half of them is for the folds, of which each has its share. What there is
        no time for is left out: large values of C, folds, and models of ``path_`` before the last, which is fitted in
        any case. A warning then says what was compared, and the status is ``MAX_TIME``. Where folds do not reach the
        default ``C`` of :class:`CGBoostClassifier`, the value nearest to that is taken.
    tol : float, optional
        Relative duality gap to reach; by default 1e-6 with l1, 0.1 with l2 and 0.01 with rkhs.
    class_weight : None, "balanced" or dict, default=None
        Factors on ``C`` by class.
    cache_size : float, default=500
        Megabytes of kernel values kept between rounds.
    n_jobs : int, optional
        Folds fitted at the same time. Has no influence on the result.
    callback : callable, optional
        ``callback(state)`` after each round, with a :class:`FitState`; a true answer stops the fit.
    verbose : int, default=0
        1 shows progress, 2 prints a line for each round.
    random_state : int, RandomState or None, default=None
        Seed of drawn centres and of what kernels draw at random.

    Attributes
    ----------
    C_ : float
        The value chosen.
    Cs_ : ndarray of shape (n_Cs,)
        Ascending.
    cv_results_ : dict
        Scores in the folds for each C, ascending, as in scikit-learn's ``GridSearchCV``.
    path_ : CGBoostPath
        The path over all rows, up to ``C_``.
    classes_, expansion_, intercept_, kernel_usage_, n_columns_, n_evaluations_, objective_, certificate_, status_
        Of the model at ``C_``, as in :class:`CGBoostClassifier`.
    history_, n_iter_, dual_coef_, candidates_, library_, n_features_in_, feature_names_in_
        Of the model at ``C_``, as in :class:`CGBoostClassifier`.

    See Also
    --------
    CGBoostClassifier : Takes C as given, or chooses it by folds of its own.
    PathDisplay : Draws the mean score of each C.

    Notes
    -----
    ``SemiSupervisedCalibration(CGBoostClassifierCV())`` has ``predict_proba``, calibrated on held-out rows.

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

    _takes_unlabeled = False
    _gathers_partitions = True
    _constraints = CG_BOOST_CONSTRAINTS | {
        "Cs": READ_LATER,
        "cv": READ_LATER,
        "scoring": Constraint(
            lambda value: value is None or isinstance(value, str) or callable(value),
            ("one scorer: its name, a callable or None",),
        ),
        "class_weight": READ_LATER,
    }
    score = ClassifierMixin.score  # every row has a label

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
        callback: Callable[[FitState], object] | None = None,
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose C and learn the mixture.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            The training rows.
        y : array-like of shape (n_samples,)
            Labels; every row must have one, and -1 is a class like any other.
        sample_weight : array-like of shape (n_samples,), optional
            Rows of weight zero are ignored altogether.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._check_parameters()
        owner, values = type(self).__name__, path_values(type(self).__name__, self.Cs)
        own = ("Cs", "cv", "scoring", "n_jobs")  # the number of jobs is that of folds
        given = self._parameters()
        base = CGBoostClassifier(**{name: getattr(self, name) for name in given if name not in own})
        params = base.get_params(deep=False)
        options = cg_boost_options(owner, params | {"callback": given["callback"]})  # folds are not followed
        sample = read_sample(self._read_rows(X, precisions(self.penalty)), read_all_labels(y, owner), sample_weight)
        scorer, rng = check_scoring(base, scoring=self.scoring), self._rng()
        (X,) = indexable(X)  # some sparse formats have no rows to take
        splits = split_rows(self.cv, sample)
        limit = FoldLimit(options.deadline.part(TIME_SHARE), min(1.0, effective_n_jobs(self.n_jobs) / len(splits)))
        by_fold = Parallel(n_jobs=self.n_jobs)(
            delayed(score_fold)(owner, params, sample, X, train, test, values, scorer, copy.deepcopy(rng), limit)
            for train, test in splits
        )
        problem, columns = class_problem(sample, self.class_weight), bind_columns(owner, params, sample, rng)
        scores, best = compared_by_all(by_fold), find_default(self.penalty, problem, values)
        if scores.shape[1] > best:
            best = int(np.argmax(scores.mean(axis=0)))
        else:  # too few to choose from
            scores = np.empty((0, 0))
        fits = follow_path(columns, problem, values[: best + 1], options, needs_last=True)
        is_short = scores.shape != (len(splits), len(values)) or len(fits) <= best
        fit = replace(fits[best], status=Status.MAX_TIME) if is_short else fits[best]
        if is_short:
            warn_of_time(fits[best], options.tol, float(values[best]), scores.shape, (len(splits), len(values)))
        else:
            warn_unless_converged(fit.results, options.tol, REMEDIES)  # what others of the path lack does not matter
        models = [
            copy.copy(base)
            .set_params(C=float(values[k]))
            .keep_fit(sample, columns.library, each, CostChoice(float(values[k]), {}))
            for k, each in fits.items()
        ]
        candidates = [{"C": float(C)} for C in values[: scores.shape[1]]]
        return self._keep(
            sample,
            columns.library,
            fit,
            classes_=sample.partition.classes.copy(),
            cv_results_=tabulate_scores(candidates, scores.T) if scores.size else {},
            path_=tabulate_path(values[list(fits)], models),
            Cs_=values,
            C_=float(values[best]),
        )


def split_rows(cv: Any, sample: Sample) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return training and test rows; parts of a given number are dealt in the order of the sample, not of the user."""
    labels = sample.given.labels
    if not (cv is None or isinstance(cv, numbers.Integral)):
        return list(check_cv(cv, labels, classifier=True).split(np.zeros(len(labels)), labels))
    left_out = np.setdiff1d(np.arange(sample.n_given), sample.kept)  # of weight zero
    rows = np.concatenate([sample.kept, left_out])
    folds = check_cv(cv, labels, classifier=True).split(np.zeros(len(rows)), labels[rows])
    return [(np.sort(rows[train]), np.sort(rows[test])) for train, test in folds]


@dataclass(frozen=True)
class FoldLimit:
    """When all folds have to end, and the share of that time that each may take."""

    deadline: Deadline
    share: float

    def start(self) -> Deadline:
        """Return the deadline of a fold that begins now."""
        if self.deadline.seconds is None:
            return self.deadline
        return Deadline(min(self.share * self.deadline.seconds, self.deadline.left))


def score_fold(
    owner: str,
    params: Mapping[str, Any],
    sample: Sample,
    X: Any,
    train: np.ndarray,
    test: np.ndarray,
    Cs: np.ndarray,
    scorer: Callable[..., float],
    rng: np.random.Generator,
    limit: FoldLimit,
) -> list[float]:
    """Follow a path over the training rows of a fold and score its models on the others.

    Parameters
    ----------
    owner : str
        Whose fit it is.
    params : mapping
        Of the estimator that is scored.
    sample : Sample
    X : array, sparse matrix or frame of shape (n_samples, n_features)
        The rows as they were given: what scorers see.
    train, test : ndarray
        Row numbers.
    Cs : ndarray of shape (n_Cs,)
    scorer : callable
        ``scorer(model, X, y)``, or also with ``sample_weight``.
    rng : numpy.random.Generator
    limit : FoldLimit
        Costs for which there is no time have no score.
    """
    deadline = limit.start()
    if deadline.is_over:
        return []
    labels, weight = sample.given.labels, sample.spread(sample.weight)
    train, test = train[weight[train] > 0], test[weight[test] > 0]
    rows = replace(sample.rows, X=sample.rows.X[train])
    fold = read_sample(rows, partition(labels[train], unlabeled=None), weight[train])
    problem, columns = class_problem(fold, params["class_weight"]), bind_columns(owner, params, fold, rng)
    options = replace(cg_boost_options(owner, params), deadline=deadline)
    fits = follow_path(columns, problem, Cs, options)
    parameters = inspect.signature(scorer).parameters.values()
    takes_weight = any(p.name == "sample_weight" or p.kind is p.VAR_KEYWORD for p in parameters)
    held = {"sample_weight": weight[test]} if takes_weight else {}
    X_test = _safe_indexing(X, test)
    scores: list[float] = []
    for k, fit in fits.items():
        model = CGBoostClassifier(**params).set_params(C=float(Cs[k]))
        model.keep_fit(fold, columns.library, fit, CostChoice(float(Cs[k]), {}))
        score = scorer(model, X_test, labels[test], **held)
        if not isinstance(score, numbers.Real):
            raise ValueError(f"scoring={scorer!r} gave {score!r}; expected one number, by which the best C is chosen.")
        scores.append(float(score))
    return scores


def compared_by_all(by_fold: Sequence[Sequence[float]]) -> np.ndarray:
    """Return the scores of the costs that were reached in all folds but those without any, (n_folds, n_costs)."""
    reached = [scores for scores in by_fold if len(scores)]
    n_costs = min(map(len, reached), default=0)
    return np.array([scores[:n_costs] for scores in reached], dtype=float).reshape(len(reached), n_costs)


def find_default(penalty: Any, problem: ClassProblem, Cs: np.ndarray) -> int:
    """Return the place of the cost that is nearest to what :class:`CGBoostClassifier` takes without folds."""
    grid, default = cost_grid(penalty, problem)
    return int(np.abs(np.log(Cs / (cost_unit(penalty, problem) * grid[default]))).argmin())


def warn_of_time(fit: MixtureFit, tol: float, C: float, reached: tuple[int, ...], asked: tuple[int, int]) -> None:
    """Warn that not all folds and costs, whose numbers are given, were compared, or not all of a path was fitted."""
    text = (
        f"all was compared: C={C:g} was chosen by {reached[1]} of {asked[1]} costs on {reached[0]} of {asked[0]} folds."
    )
    if reached == asked:
        text = f"all of the path to C={C:g} was followed."
    elif not reached[1]:
        text = f"costs up to the default were compared: C={C:g}, which is nearest to it, was taken."
    if not fit.status.converged:
        text += f" Certified relative gap: {fit.certificate.relative:.2e}, tolerance: {tol:.2e}."
    remedy = "Raise max_time, or give fewer Cs or folds."
    warn_caller(f"Stopped at max_time before {text} {remedy}", ConvergenceWarning)


def path_values(owner: str, Cs: Any) -> np.ndarray:
    """Return the values of C in ascending order, without repetitions."""
    if is_count(Cs):
        return np.geomspace(*PATH_RANGE, int(Cs)) if Cs > 1 else np.array([10.0])
    given = np.atleast_1d(np.asarray(Cs, dtype=object))
    right = given.ndim == 1 and len(given) > 0 and all(is_positive(C) for C in given)
    require(owner, "Cs", Cs, right, "a whole number >= 1 or positive numbers")
    return np.unique(given.astype(float))

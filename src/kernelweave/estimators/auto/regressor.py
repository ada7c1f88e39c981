r"""The regressor that tries many learners and combines them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from ...labels import partition_targets
from ...model_selection.conformal import number_intervals
from ...model_selection.suspects import rank_suspect_numbers
from ...parameters import POSITIVE, is_positive, require
from ...solvers.result import Certificate, FitState, Status
from ..shared.base import KernelEstimator
from ..shared.in_sample import fill_given
from ..shared.outputs import KernelRegressor
from ..shared.partitioned import LabelRule, draw_to_memory
from ..shared.records import Records
from ..shared.sample import Sample
from .frames import copy_with_names, read_columns
from .leaderboard import ErrorEstimate, PairedDifference, number_error, tabulate_trials, widen_for_folds
from .members import Member, mix_numbers
from .number_weights import NumberCombination, combine_regressors, compare_supervised
from .run import (
    AUTO_CONSTRAINTS,
    AutoOptions,
    describe,
    make_member,
    read_auto_options,
    read_groups,
    read_kernels,
    run_search,
    search_status,
    sort_rows,
)
from .search import SearchResult, Trial, find_best_certified
from .trust import list_suspects


class AutoKernelRegressor(RegressorMixin, KernelEstimator):
    r"""Predict numbers with a mean of many learners, weighted by how well they predict rows they have not seen.

    As in :class:`AutoKernelClassifier`, each candidate is fitted to all rows and to rows of which some labels are
    hidden. With its predictions :math:`f_m` of held-out rows, the weights solve

    .. math:: \min_w \; \sum_{i \in L} v_i \Big(y_i - \sum_m w_m f_m(x_i)\Big)^2
        + \rho s^2 \sum_m \Big(w_m - \frac1M\Big)^2 \quad \text{s.t.} \quad w \ge 0, \; \textstyle\sum_m w_m = 1 ,

    with :math:`v_i` the weights of labelled rows :math:`L`, :math:`M` the number of candidates, :math:`s^2` the
    smallest mean squared error of one, and :math:`\rho = 2`, so that equal weights are worth two rows.

    Parameters
    ----------
    candidates : "all", "kernels" or list, default="all"
        What is tried, as in :class:`AutoKernelClassifier`; ``"all"`` adds ridge regression, a random forest and
        gradient boosting.
    kernels : None, Kernel, list of Kernel or KernelLibrary, default=None
        The library of the candidates that take several kernels and have none of their own, such as one of several
        sources (:func:`table_library`, :func:`one_kernel_per_group`). None: their defaults.
    combine : {"stack", "best"}, default="stack"
        ``"stack"``: the mean. ``"best"``: the candidate with the smallest squared error on held-out rows.
    n_repeats : int, default=1
        How often rows are dealt to five folds at most; this and what follows as in :class:`AutoKernelClassifier`.
    race : bool, default=True
        Whether candidates that are clearly worse than the best after two folds are left out of the others.
    max_time : float, optional
        Seconds; None: no limit.
    n_jobs : int, optional
        Candidates that are fitted at the same time; used where there is no ``max_time``.
    callback : callable, optional
        ``callback(state)`` before each step, with a :class:`FitState`; a true return value ends the search.
    verbose : int, default=0
        1 shows progress.
    random_state : int, RandomState or None, default=None
        Seed of folds, and of whatever candidates draw at random.

    Attributes
    ----------
    members_, best_estimator_, status_, n_iter_, objective_, certificate_, n_features_in_, feature_names_in_
        As in :class:`AutoKernelClassifier`.
    leaderboard_ : list of dict, with a method ``to_frame``
        As in :class:`AutoKernelClassifier`; ``error`` is the root mean squared error, ``log_loss`` the mean squared
        error in units of the variance.
    error_ : ErrorEstimate or None
        Root mean squared error of held-out rows, with a 95 % interval.
    unlabeled_helped_ : PairedDifference or None
        Root mean squared error of a mean of learners that use labelled rows only, less that of all.
    transduction_ : ndarray of shape (n_samples,)
        The given number on labelled rows, the predicted one on the others.
    oof_rows_, oof_predictions_ : ndarray of shape (n_tested,)
        The labelled rows that were held out, and their predictions.
    candidate_predictions_ : dict of (rows, numbers)
        As in :class:`AutoKernelClassifier`.

    See Also
    --------
    AutoKernelClassifier : The same for classes.
    LeaderboardDisplay : Draws the candidates and their errors.
    compare_learners : Compares learners without combining them.

    References
    ----------
    L. Breiman. Stacked regressions. Machine Learning 24, 1996.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import AutoKernelRegressor
    >>> X = np.linspace(0, 6, 120)[:, None]
    >>> y = np.where(np.arange(120) % 4 == 0, np.sin(X[:, 0]), np.nan)  # 30 numbers are known
    >>> model = AutoKernelRegressor(["MKL", "harmonic", "ridge regression"], random_state=0).fit(X, y)
    >>> model.score(X, np.sin(X[:, 0])) > 0.95
    True
    """

    _constraints = AUTO_CONSTRAINTS
    score = KernelRegressor.score

    def __init__(
        self,
        candidates: Any = "all",
        *,
        kernels: Any = None,
        combine: str = "stack",
        n_repeats: int = 1,
        race: bool = True,
        max_time: float | None = None,
        n_jobs: int | None = None,
        callback: Callable[[FitState], object] | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ):
        self.candidates = candidates
        self.kernels = kernels
        self.combine = combine
        self.n_repeats = n_repeats
        self.race = race
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.callback = callback
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, X_unlabeled: Any = None) -> Self:
        """Try the candidates, and combine them.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            Labelled and unlabelled rows; also a Dask array or frame. Of more than 20,000 rows, candidates see the
            labelled ones and others drawn at random, 10,000 in all.
        y : array-like of shape (n_samples,)
            Numbers; NaN, None and NA mark unlabelled rows.
        sample_weight : array-like of shape (n_samples,), optional
            Rows of weight zero are ignored altogether. Candidates that take no weights do without.
        groups : array-like of shape (n_samples,), optional
            Rows of one group are held out together.
        X_unlabeled : array, sparse matrix, frame or Dask collection, optional
            More rows, without labels; in the results they follow those of ``X``.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._check_parameters()
        rule, dtypes = LabelRule("numbers"), ("float64",)
        sample = draw_to_memory(self._read_sample(X, y, sample_weight, X_unlabeled, partition_targets, rule, dtypes))
        configured = {"kernels": read_kernels(self.kernels, sample)}
        columns = read_columns(X, sample.rows)
        options = read_auto_options(type(self).__name__, "numbers", self._parameters(), configured, columns)
        found, combination = search_regressors(
            sample, read_groups(groups, sample), options, self._rng(), sample_weight is not None
        )
        fit = summarize_numbers(found, combination, sample, options.combine)
        given = sample.given.labels[np.searchsorted(sample.given.labeled, fit.oof_rows)]
        return self._keep(
            sample,
            None,
            fit,
            _oof_targets=given,
            _sample_rows=sample.kept,
            _labeled_rows=sample.kept[sample.partition.labeled],
        )

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted number of each row.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        ndarray of shape (n_samples,)
            Weighted means over the members.
        """
        X = self._read_new_rows(X)
        return mix_numbers(self.members_, X)

    def predict_interval(self, X: Any, coverage: float = 0.9) -> np.ndarray:
        """Return the ends of an interval that holds the true number with a probability of ``coverage``.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            Rows to predict.
        coverage : float, default=0.9
            Between 0 and 1.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Infinite where too few rows were held out for such a coverage.
        """
        return number_intervals(self.predict(X), self.oof_predictions_ - self._oof_targets, coverage)

    def suspect_labels(self, n: int | None = None) -> list[dict[str, Any]]:
        """Return given numbers that predictions of held-out rows contradict, the most doubtful first.

        Parameters
        ----------
        n : int, optional
            How many; all that were held out by default.

        Returns
        -------
        list of dict
            ``row``, ``given``, ``suggested`` (the prediction), ``score`` (residual in units of the usual one).
        """
        check_is_fitted(self)
        if not len(self.oof_rows_):
            return []
        suspects = rank_suspect_numbers(self.oof_predictions_, self._oof_targets)
        return list_suspects(suspects, self.oof_rows_, self._oof_targets, self.oof_predictions_, n)

    def refit_single(self) -> Any:
        """Return the best single model with a certificate, fitted to all rows.

        Returns
        -------
        estimator or None
            A copy of ``best_estimator_`` with the names of the columns; None where no candidate has a certificate.
        """
        check_is_fitted(self)
        return copy_with_names(self.best_estimator_, vars(self).get("feature_names_in_"))

    def explain(self, *, unit: float = 1.0) -> str:
        """Return what was learned, in plain words.

        Parameters
        ----------
        unit : float, default=1.0
            What numbers were divided by before the fit, if they were: errors are given times this.

        Returns
        -------
        str
            A few sentences: the members, the error on held-out rows, and whether unlabelled rows helped.
        """
        check_is_fitted(self)
        require("explain", "unit", unit, is_positive(unit), POSITIVE.expected)
        error = None if self.error_ is None else self.error_.times(unit)
        helped = None if self.unlabeled_helped_ is None else self.unlabeled_helped_.times(unit)
        leaderboard = [record | {"error": unit * record["error"]} for record in self.leaderboard_]
        return describe(self.members_, error, helped, leaderboard, "Root mean squared error", self.status_)


@dataclass(frozen=True, eq=False, kw_only=True)
class AutoNumbers:
    """A field `name` is kept as the attribute `name_`."""

    members: list[Member]
    leaderboard: Records
    error: ErrorEstimate | None
    unlabeled_helped: PairedDifference | None
    transduction: np.ndarray
    oof_rows: np.ndarray
    oof_predictions: np.ndarray
    candidate_predictions: dict[str, tuple[np.ndarray, np.ndarray]]
    best_estimator: Any
    objective: float
    certificate: Certificate
    status: Status
    n_iter: int


def search_regressors(
    sample: Sample, groups: np.ndarray | None, options: AutoOptions, rng: np.random.Generator, weighted: bool
) -> tuple[SearchResult, NumberCombination]:
    """Try the candidates, and combine them."""
    targets, weight = sample.partition.targets, sample.labeled_weight

    def losses(values: np.ndarray, held: np.ndarray) -> np.ndarray:
        return weight[held] * np.square(values - targets[held])

    def combine(trials: Sequence[Trial]) -> NumberCombination:
        return combine_regressors(trials, sample, options.combine)

    found = run_search(sample, groups, options, losses, lambda trials: combine(trials).weights, rng, weighted=weighted)
    return found, combine(found.trials)


def summarize_numbers(found: SearchResult, combination: NumberCombination, sample: Sample, combine: str) -> AutoNumbers:
    """Return all that is known after a search."""
    trials, tested, labels = found.trials, combination.tested, sample.partition
    members = [
        make_member(trial, weight) for trial, weight in zip(trials, combination.weights, strict=True) if weight > 0
    ]
    residuals = combination.predictions - combination.targets
    losses, scores = judge_trials(found, labels.targets, sample.labeled_weight)
    transduction = fill_given(sample, partial(mix_numbers, members), sample.given.labels)
    leaderboard = tabulate_trials(found, losses, scores, combination.weights)
    for record in leaderboard:  # from mean squares to their roots; the deviation of a root by its derivative
        root = np.sqrt(record["error"])
        record["standard_error"] *= 0.0 if root == 0 else 1 / (2 * root)
        record["error"] = root
    rows, predictions = sort_rows(sample.kept[labels.labeled[tested.places]], combination.predictions)
    widening = widen_for_folds(len(residuals), sample.given.n_unlabeled)
    return AutoNumbers(
        members=members,
        leaderboard=leaderboard,
        error=number_error(residuals, tested.weight, widening) if len(residuals) else None,
        unlabeled_helped=compare_supervised(combination, trials, combine),
        transduction=transduction,
        oof_rows=rows,
        oof_predictions=predictions,
        candidate_predictions={
            trial.candidate.name: sort_rows(sample.kept[labels.labeled[places]], predictions)
            for trial in trials
            if trial.values
            for predictions, places in [trial.average(labels.n_labeled)]
        },
        best_estimator=find_best_certified(trials, scores),
        objective=combination.result.objective,
        certificate=combination.result.certificate,
        status=search_status(found, combination.result),
        n_iter=combination.result.n_iter,
    )


def judge_trials(
    found: SearchResult, targets: np.ndarray, weight: np.ndarray
) -> tuple[dict[str, tuple[np.ndarray, np.ndarray]], dict[str, float]]:
    """Return squared errors of held-out rows, with weights, and their mean in units of the variance; both by name."""
    losses, scores = {}, {}
    variance = float(np.var(targets)) or 1.0
    for trial in found.trials:
        if trial.values:
            predictions, places = trial.average(len(targets))
            squares = np.square(predictions - targets[places])
            losses[trial.candidate.name] = squares, weight[places]
            scores[trial.candidate.name] = float(np.average(squares, weights=weight[places])) / variance
    return losses, scores

r"""The classifier that tries many learners and combines them."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from ...labels import partition
from ...model_selection.conformal import class_sets
from ...model_selection.label_next import choose_rows_to_label
from ...model_selection.scaling import most_probable
from ...model_selection.suspects import rank_suspects
from ...parameters import READ_LATER, is_nonnegative, require
from ...solvers.result import Certificate, FitState, Status
from ..shared.base import KernelEstimator
from ..shared.in_sample import fill_given
from ..shared.outputs import KernelClassifier
from ..shared.partitioned import LabelRule, draw_to_memory
from ..shared.records import Records
from ..shared.sample import Sample, class_shares, class_weights
from .class_weights import ClassCombination, combine_classifiers, compare_supervised
from .frames import copy_with_names, read_columns
from .leaderboard import ErrorEstimate, PairedDifference, class_error, tabulate_trials, widen_for_folds
from .members import Member, mix_probabilities
from .partitions import label_given, open_rows
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

MIN_PROBABILITY = 1e-12  # in a logarithm


class AutoKernelClassifier(ClassifierMixin, KernelEstimator):
    r"""Classify with a mixture of many learners, weighted by how well they predict rows they have not seen.

    Every candidate is fitted to all rows, and again with the labels of some rows hidden: a held-out row stays as an
    unlabelled one. Its decision values there say how they become probabilities :math:`p_m`, and the weights maximise

    .. math:: \sum_{i \in L} v_i \log \sum_m w_m\, p_m(y_i \mid x_i) + \frac{\alpha}{M} \sum_m \log w_m
        \quad \text{s.t.} \quad w \ge 0, \; \textstyle\sum_m w_m = 1 ,

    with :math:`v_i` the weights of labelled rows :math:`L`, :math:`M` the number of candidates, and :math:`\alpha = 2`
    rows that equal weights are worth. The prediction is the most probable class of :math:`\sum_m w_m p_m(x)`.

    Parameters
    ----------
    candidates : "all", "kernels" or list, default="all"
        ``"kernels"``: the learners of kernelweave, each with its defaults. ``"all"``: also scikit-learn's logistic
        regression, random forest and gradient boosting, on labelled rows. A list holds names of these, estimators, or
        pairs of a name and an estimator; where ``X`` is a frame, estimators may name its columns.
    kernels : None, Kernel, list of Kernel or KernelLibrary, default=None
        The library of the candidates that take several kernels and have none of their own, such as one of several
        sources (:func:`table_library`, :func:`one_kernel_per_group`). None: their defaults.
    combine : {"stack", "best"}, default="stack"
        ``"stack"``: the mixture. ``"best"``: the candidate with the smallest log loss on held-out rows.
    n_repeats : int, default=1
        How often rows are dealt to five folds at most; after the first time for the candidates with the largest
        weights, and fewer times where these have settled. With 2, fewer labels change with another seed; the error
        is not lower (``benchmarks/stability``).
    race : bool, default=True
        Whether candidates that are clearly worse than the best after two folds are left out of the others. False
        compares all of them on the same rows, and takes longer.
    max_time : float, optional
        Seconds. Cheap candidates come first, and those that would take too long are left out. None: no limit.
    class_prior : None, float or dict, default=None
        Shares of the classes among unlabelled rows, where they are known: that of ``classes_[1]``, or {class: share}.
        None: those of the labelled rows. All candidates are tested in all folds where shares are given.
    class_weight : None, "balanced" or dict, default=None
        Weights of classes, in the candidates that take them and in the weights of the mixture.
    unlabeled : "auto", None or marker, default="auto"
        What marks an unlabelled row in ``y``, as in :class:`SSMKClassifier`.
    n_jobs : int, optional
        Candidates that are fitted at the same time; used where there is no ``max_time``.
    callback : callable, optional
        ``callback(state)`` before each step, with a :class:`FitState` whose ``phase`` says what comes next; a true
        return value ends the search once a candidate was tried, and what was tried so far is combined. Steps in other
        processes (``n_jobs``) are not told.
    verbose : int, default=0
        1 shows a progress bar on a terminal and lines elsewhere, 2 lines.
    random_state : int, RandomState or None, default=None
        Seed of folds, and of whatever candidates draw at random.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    members_ : list of Member
        Name, fitted model, weight and scaling of each model in the mixture.
    class_factors_ : ndarray of shape (n_classes,)
        What the probability of each class is multiplied by: its share in ``class_prior`` over that among the labels.
    leaderboard_ : list of dict, with a method ``to_frame``
        All candidates, the largest weight first: error and log loss on held-out rows, standard error, weight, seconds,
        size (kernel values, leaves or coefficients of a prediction), whether unlabelled rows are used, status.
    error_ : ErrorEstimate or None
        Share of wrong classes among held-out rows, which count by ``sample_weight``, ``class_weight`` and
        ``class_prior`` (so that classes have the given shares), with a 95 % interval; scalings and weights were found
        without the rows of the same fold. None where there were too few labels to hold some out.
    unlabeled_helped_ : PairedDifference or None
        The error of a mixture of learners that use labelled rows only, less ``error_``, with a 95 % interval.
    transduction_ : ndarray of shape (n_samples,)
        The given label on labelled rows, the predicted one on the others.
    label_distributions_ : ndarray of shape (n_samples, n_classes)
        Probabilities of the classes; those of labelled rows are 0 and 1.
    oof_rows_ : ndarray of shape (n_tested,)
        The labelled rows that were held out.
    oof_probabilities_ : ndarray of shape (n_tested, n_classes)
        Of the mixture, without having seen their labels; with the shares of ``class_prior``.
    candidate_predictions_ : dict of (rows, classes)
        For each candidate, by name, the rows that it held out and the classes that it alone predicts there.
    best_estimator_ : estimator or None
        The best single model with a certificate, fitted to all rows.
    objective_, certificate_ : float and Certificate
        Of the problem of the weights, minimised. Members have certificates of their own (``members_[k].model``).
    status_ : Status
        Why the search stopped.
    n_iter_ : int
        Steps over the weights.
    n_features_in_ : int
        Number of columns of ``X``.
    feature_names_in_ : ndarray of shape (n_features,)
        Only if ``X`` had names.

    See Also
    --------
    AutoKernelRegressor : The same for numbers.
    LeaderboardDisplay : Draws the candidates and their errors.
    compare_learners : Compares learners without combining them.

    Notes
    -----
    Where fewer than eight rows can be held out, all candidates have the same weight, and ``error_`` is None. A class
    with one label is never held out. Where many rows are equal, equal ones are held out together. An interrupt (Ctrl-C)
    ends the search, once a candidate was tried: the model is made of what was tried so far, and ``status_`` says so.

    References
    ----------
    L. Breiman. Stacked regressions. Machine Learning 24, 1996.

    P. Smyth, D. Wolpert. Linearly combining density estimators via stacking. Machine Learning 36, 1999.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave import AutoKernelClassifier
    >>> X, species = load_iris(return_X_y=True)
    >>> y = np.where(np.arange(150) % 5 == 0, species, -1)  # 30 labels, 120 unlabelled rows
    >>> model = AutoKernelClassifier(["MKL", "LapSVM", "logistic regression"], random_state=0).fit(X, y)
    >>> bool(np.mean(model.transduction_ == species) > 0.85), model.predict_proba(X[:2]).shape
    (True, (2, 3))
    """

    _constraints = AUTO_CONSTRAINTS | dict.fromkeys(("class_prior", "class_weight", "unlabeled"), READ_LATER)
    score = KernelClassifier.score

    def __init__(
        self,
        candidates: Any = "all",
        *,
        kernels: Any = None,
        combine: str = "stack",
        n_repeats: int = 1,
        race: bool = True,
        max_time: float | None = None,
        class_prior: Any = None,
        class_weight: Any = None,
        unlabeled: Any = "auto",
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
        self.class_prior = class_prior
        self.class_weight = class_weight
        self.unlabeled = unlabeled
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
            Labels; NaN, None and NA mark unlabelled rows, as does what ``unlabeled`` says.
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
        owner = type(self).__name__
        read, rule = partial(partition, unlabeled=self.unlabeled), LabelRule("classes", self.unlabeled)
        given = self._read_sample(X, y, sample_weight, X_unlabeled, read, rule, ("float64",))
        sample = draw_to_memory(given)
        shares = class_shares(owner, self.class_prior, sample.partition, ())
        factors = class_weights(self.class_weight, sample.partition, sample.labeled_weight)
        first = np.unique(sample.partition.codes, return_index=True)[1]  # labelled row of each class
        configured = {
            "kernels": read_kernels(self.kernels, sample),
            # "balanced" by all labelled rows, in the folds too
            "class_weight": None if self.class_weight is None else _by_class(factors[first], sample),
            "class_prior": None if shares is None else _by_class(shares, sample),
            "unlabeled": self.unlabeled,
        }
        options = read_auto_options(owner, "classes", self._parameters(), configured, read_columns(X, sample.rows))
        found, combination = search_classifiers(
            sample, read_groups(groups, sample), options, factors, self._rng(), sample_weight is not None, shares
        )
        fit = summarize_classes(found, combination, sample, options.combine)
        given = sample.given.labels[np.searchsorted(sample.given.labeled, fit.oof_rows)]
        return self._keep(
            sample,
            None,
            fit,
            _oof_codes=np.searchsorted(fit.classes, given),
            _sample_rows=sample.kept,
            _labeled_rows=sample.kept[sample.partition.labeled],
            **open_rows(sample, partial(mix_probabilities, fit.members, fit.class_factors)),
        )

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities of the classes.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Rows sum to 1.
        """
        X = self._read_new_rows(X)
        return mix_probabilities(self.members_, self.class_factors_, X)

    def decision_function(self, X: Any) -> np.ndarray:
        """Return log odds of ``classes_[1]`` for two classes, else log probabilities.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Probabilities below 1e-12 count as 1e-12.
        """
        logs = np.log(np.maximum(self.predict_proba(X), MIN_PROBABILITY))
        return logs[:, 1] - logs[:, 0] if logs.shape[1] == 2 else logs

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class of each row.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        ndarray of shape (n_samples,)
            Values of ``classes_``.
        """
        codes = self.predict_proba(X).argmax(axis=1)
        return self.classes_[codes]

    def predict_set(self, X: Any, coverage: float = 0.9) -> np.ndarray:
        """Return which classes are in a set that holds the true one with a probability of ``coverage``.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            Rows to predict.
        coverage : float, default=0.9
            Between 0 and 1.

        Returns
        -------
        ndarray of bool, shape (n_samples, n_classes)
            All classes where too few rows were held out for such a coverage.
        """
        known = self.oof_probabilities_, self._oof_codes
        return class_sets(self.predict_proba(X), *known, coverage, self.class_factors_)

    def suspect_labels(self, n: int | None = None) -> list[dict[str, Any]]:
        """Return given labels that predictions of held-out rows contradict, the most doubtful first.

        Parameters
        ----------
        n : int, optional
            How many; all that were held out by default.

        Returns
        -------
        list of dict
            ``row``, ``given``, ``suggested`` (the most probable other class), ``score`` (larger is more doubtful).
        """
        check_is_fitted(self)
        suspects = rank_suspects(self.oof_probabilities_, self._oof_codes)
        suggested = self.classes_[suspects.suggestions.astype(np.intp)]
        return list_suspects(suspects, self.oof_rows_, self.classes_[self._oof_codes], suggested, n)

    def label_next(self, n: int = 10) -> np.ndarray:
        """Return the numbers of unlabelled rows that are worth labelling: uncertain ones, far from one another.

        Parameters
        ----------
        n : int, default=10
            How many.

        Returns
        -------
        ndarray of shape (n,)
            Row numbers; all unlabelled rows, where there are fewer. Of a Dask collection, rows that the search saw.
        """
        check_is_fitted(self)
        labeled = np.flatnonzero(self._is_labeled)
        require("label_next", "n", n, is_nonnegative(n, numbers.Integral), "a whole number, 0 or more")
        n = min(n, len(self._is_labeled) - len(labeled))
        if n == 0:
            return np.empty(0, dtype=np.intp)
        chances = self.label_distributions_ if self._drawn_chances is None else self._drawn_chances
        chosen = choose_rows_to_label(chances, self._points, n, labeled=labeled, random_state=0)
        return chosen if self._drawn_chances is None else self._sample_rows[chosen]

    def refit_single(self) -> Any:
        """Return the best single model with a certificate, fitted to all rows.

        Returns
        -------
        estimator or None
            A copy of ``best_estimator_`` with the names of the columns; None where no candidate has a certificate.
        """
        check_is_fitted(self)
        return copy_with_names(self.best_estimator_, vars(self).get("feature_names_in_"))

    def explain(self) -> str:
        """Return what was learned, in plain words.

        Returns
        -------
        str
            A few sentences: the members, the error on held-out rows, and whether unlabelled rows helped.
        """
        check_is_fitted(self)
        what, helped = "Share of wrong classes", self.unlabeled_helped_
        return describe(self.members_, self.error_, helped, self.leaderboard_, what, self.status_)


@dataclass(frozen=True, eq=False, kw_only=True)
class AutoClasses:
    """A field `name` is kept as the attribute `name_`."""

    classes: np.ndarray
    members: list[Member]
    class_factors: np.ndarray
    leaderboard: Records
    error: ErrorEstimate | None
    unlabeled_helped: PairedDifference | None
    transduction: np.ndarray
    label_distributions: np.ndarray
    oof_rows: np.ndarray
    oof_probabilities: np.ndarray
    candidate_predictions: dict[str, tuple[np.ndarray, np.ndarray]]
    best_estimator: Any
    objective: float
    certificate: Certificate
    status: Status
    n_iter: int


def _by_class(values: np.ndarray, sample: Sample) -> dict[Any, float]:
    """Return values of the classes by their labels."""
    return dict(zip(sample.partition.classes.tolist(), values.tolist(), strict=True))


def search_classifiers(
    sample: Sample,
    groups: np.ndarray | None,
    options: AutoOptions,
    factors: np.ndarray,
    rng: np.random.Generator,
    weighted: bool,
    shares: np.ndarray | None = None,
) -> tuple[SearchResult, ClassCombination]:
    """Try the candidates, and combine them; ``factors`` are those of labelled rows by the weights of their classes.

    Where ``shares`` of the classes are given, some candidates have their thresholds by these and some by the labelled
    rows: errors before any scaling cannot be compared, and none is out of the race.
    """
    labels, weight = sample.partition, sample.labeled_weight * factors
    known: dict[Any, Any] = {}  # scalings

    def losses(values: np.ndarray, held: np.ndarray) -> np.ndarray:
        if shares is not None:
            return np.zeros(len(held))
        return weight[held] * (most_probable(values) != labels.codes[held])

    def combine(trials: Sequence[Trial]) -> ClassCombination:
        return combine_classifiers(trials, sample, weight, options.combine, shares, known)

    found = run_search(sample, groups, options, losses, lambda trials: combine(trials).weights, rng, weighted=weighted)
    return found, combine(found.trials)


def summarize_classes(found: SearchResult, combination: ClassCombination, sample: Sample, combine: str) -> AutoClasses:
    """Return all that is known after a search."""
    trials, tested, labels = found.trials, combination.tested, sample.partition
    members = [make_member(trials[k], combination.weights[k], scaling) for k, scaling in combination.scalings.items()]
    wrong = combination.probabilities.argmax(axis=1) != combination.codes
    mix = partial(mix_probabilities, members, combination.factors)
    # A class all of whose rows have weight zero is none of them.
    distributions = fill_given(sample, mix, (sample.given.labels[:, None] == labels.classes).astype(np.float64))
    losses, scores = judge_trials(found, combination, labels.codes)
    transduction = label_given(sample, distributions, labels.classes)
    rows, probabilities = sort_rows(sample.kept[labels.labeled[tested.places]], combination.probabilities)
    widening = widen_for_folds(len(wrong), sample.given.n_unlabeled)
    return AutoClasses(
        classes=labels.classes.copy(),
        members=members,
        class_factors=combination.factors,
        leaderboard=tabulate_trials(found, losses, scores, combination.weights),
        error=class_error(wrong, combination.tested_weight, widening) if len(wrong) else None,
        unlabeled_helped=compare_supervised(combination, trials, combine),
        transduction=transduction,
        label_distributions=distributions,
        oof_rows=rows,
        oof_probabilities=probabilities,
        candidate_predictions={
            trial.candidate.name: sort_rows(
                sample.kept[labels.labeled[places]], labels.classes[most_probable(decision)]
            )
            for trial in trials
            if trial.values
            for decision, places in [trial.average(labels.n_labeled)]
        },
        best_estimator=find_best_certified(trials, scores),
        objective=combination.result.objective,
        certificate=combination.result.certificate,
        status=search_status(found, combination.result),
        n_iter=combination.result.n_iter,
    )


def judge_trials(
    found: SearchResult, combination: ClassCombination, codes: np.ndarray
) -> tuple[dict[str, tuple[np.ndarray, np.ndarray]], dict[str, float]]:
    """Return which held-out rows each candidate got wrong, with their weights, and its log loss; both by name."""
    losses, scores = {}, {}
    for k, trial in enumerate(found.trials):
        if not trial.values:
            continue
        decision, places = trial.average(len(codes))
        wrong = (most_probable(decision) != codes[places]).astype(float)
        if k in combination.logs:
            logs = combination.logs[k]
            wrong = ((logs + np.log(combination.factors)).argmax(axis=1) != combination.codes).astype(float)
            own = logs[np.arange(len(logs)), combination.codes]
            scores[trial.candidate.name] = -float(np.average(own, weights=combination.tested.weight))
        losses[trial.candidate.name] = wrong, combination.row_weight[places]
    return losses, scores

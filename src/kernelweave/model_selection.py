"""Choosing and calibrating models when most rows have no label (:mod:`kernelweave.labels` says which).

:class:`SemiSupervisedSplit` splits the labelled rows only. :func:`labeled_scorer` leaves unlabelled
rows out of a score. :class:`SigmoidCalibratedClassifier` turns decision values into probabilities.
"""

from __future__ import annotations

import inspect
import numbers
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logit, softmax
from sklearn import utils
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone, is_regressor
from sklearn.metrics import check_scoring, get_scorer, make_scorer
from sklearn.model_selection import BaseCrossValidator, check_cv
from sklearn.utils import _safe_indexing as take  # in scikit-learn's public reference, in spite of its name
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from .labels import Partition, factorize, labeled_values, partition

__all__ = ["SemiSupervisedSplit", "SigmoidCalibratedClassifier", "labeled_scorer"]

Rows = NDArray[np.intp]
Floats = NDArray[np.float64]

# Probabilities become log-odds of at most 14: a row that is sure and wrong must not rule the sigmoid.
CLIP_PROBABILITY = 1e-6


class SemiSupervisedSplit(BaseCrossValidator):
    """K-fold cross-validation of the labelled rows that keeps unlabelled ones in every training part.

    Each labelled row is in one test part a repeat, an unlabelled row in none. Without groups, sizes of test
    parts differ by one row at most, and so do the numbers of rows of a class in them. A training part that
    lost a class is refused.

    Parameters
    ----------
    n_splits, n_repeats : int, default=5 and 1
        Number of test parts, and of repeats with another shuffle.
    stratify : bool, default=True
        Whether to spread classes evenly. Without effect on numbers (regression).
    target : {"auto", "classes", "numbers"}, default="auto"
        What y holds. "auto": numbers if the labelled y is continuous in scikit-learn's sense, otherwise
        classes. Say "numbers" if a regression target holds whole numbers only: -1 is then one of them.
    unlabeled : "auto", None or a scalar, default="auto"
        What marks an unlabelled row, as in :func:`kernelweave.labels.partition`.
    group_unlabeled : {"keep", "drop"}, default="keep"
        Whether unlabelled rows of held-out groups stay in the training part. "keep" estimates the error on
        groups whose rows were there without labels, "drop" that on groups never seen.
    random_state : int, RandomState instance or None, default=None
        Seeds the shuffle; an int gives the same splits in every call.

    Notes
    -----
    ``StratifiedKFold`` refuses few labels that are enough: a class may have fewer rows than `n_splits`.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.model_selection import SemiSupervisedSplit
    >>> y = np.array([0, 1, 0, 1, -1, -1])
    >>> for train, test in SemiSupervisedSplit(2, random_state=0).split(y, y):
    ...     print(y[test], np.sort(y[train]))
    [0 1] [-1 -1  0  1]
    [0 1] [-1 -1  0  1]
    """

    __metadata_request__split = {"groups": True}  # as in GroupKFold: routed groups arrive unasked

    def __init__(
        self, n_splits: int = 5, *, n_repeats: int = 1, stratify: bool = True, target: str = "auto",
        unlabeled: Any = "auto", group_unlabeled: str = "keep", random_state: Any = None
    ) -> None:  # fmt: skip
        # checked here, as in scikit-learn's splitters, which have no fit
        self.n_splits = utils.check_scalar(n_splits, "n_splits", numbers.Integral, min_val=2)
        self.n_repeats = utils.check_scalar(n_repeats, "n_repeats", numbers.Integral, min_val=1)
        self.stratify = stratify
        self.target = _one_of(target, "target", "auto", "classes", "numbers")
        self.unlabeled = unlabeled
        self.group_unlabeled = _one_of(group_unlabeled, "group_unlabeled", "keep", "drop")
        self.random_state = random_state

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Number of (train, test) pairs; the arguments are not looked at."""
        return self.n_splits * self.n_repeats

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Rows, Rows]]:
        """Row numbers of the training and the test part of each split; of X only the length matters.

        No group is in both parts, but for the unlabelled rows that ``group_unlabeled="keep"`` keeps.
        """
        labeled, classes, codes = self._read(y)
        utils.check_consistent_length(X, y, groups)
        strata = codes if self.stratify else np.zeros_like(codes)
        group_of = None if groups is None else _group_numbers(groups)
        rng = utils.check_random_state(self.random_state)
        for _ in range(self.n_repeats):
            if group_of is None:
                fold_of = _deal_rows(strata, self.n_splits, rng)
            else:
                fold_of = _deal_groups(strata, group_of[labeled], self.n_splits, rng)
            for fold in range(self.n_splits):
                tested = fold_of == fold
                _refuse_lost_class(classes, codes, tested)
                kept = np.ones(len(y), dtype=bool)
                kept[labeled[tested]] = False
                if group_of is not None and self.group_unlabeled == "drop":
                    kept &= ~np.isin(group_of, group_of[labeled[tested]])
                yield np.flatnonzero(kept), labeled[tested]

    def _read(self, y: Any) -> tuple[Rows, NDArray[Any], Rows]:
        """The labelled rows, the classes (none where y holds numbers), and the class number of each row."""
        labeled, values = labeled_values(y, unlabeled=self.unlabeled, regression=self.target == "numbers")
        if len(labeled) < self.n_splits:
            raise ValueError(
                f"n_splits={self.n_splits} test parts need as many labelled rows, but y has {len(labeled)} "
                f"labelled rows of {len(y)}. Label more rows or use fewer n_splits."
            )
        continuous = values.dtype.kind == "f" and type_of_target(values) == "continuous"
        if self.target == "numbers" or (self.target == "auto" and continuous):
            return labeled, values[:0], np.zeros(len(labeled), dtype=np.intp)
        return labeled, *factorize(values)


def _deal_rows(strata: Rows, n_splits: int, rng: np.random.RandomState) -> Rows:
    """A fold for each row: the shuffled rows, sorted by stratum, are dealt like cards."""
    order = rng.permutation(len(strata))
    fold_of = np.empty(len(strata), dtype=np.intp)
    fold_of[order[np.argsort(strata[order], kind="stable")]] = np.arange(len(strata)) % n_splits
    return fold_of


def _deal_groups(strata: Rows, groups: Rows, n_splits: int, rng: np.random.RandomState) -> Rows:
    """A fold for each row, one for all rows of a group: large groups first, each where it overlaps least.

    A group with class shares g goes to the fold with the smallest s.g, s being the class shares it holds: this
    adds least to the sum of all squared shares. Ties go to the smallest fold, so none stays empty.
    """
    _, group_of, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    if len(sizes) < n_splits:
        raise ValueError(
            f"n_splits={n_splits} test parts need as many groups with labelled rows, but there are "
            f"{len(sizes)}. Use fewer n_splits or finer groups."
        )
    share = np.zeros((len(sizes), strata.max() + 1))
    np.add.at(share, (group_of, strata), 1.0)
    share /= share.sum(axis=0)
    held, n_rows = np.zeros((n_splits, share.shape[1])), np.zeros(n_splits)
    fold_of_group = np.empty(len(sizes), dtype=np.intp)
    order = rng.permutation(len(sizes))
    for group in order[np.argsort(-sizes[order], kind="stable")]:
        fold = np.lexsort((n_rows, held @ share[group]))[0]
        fold_of_group[group] = fold
        held[fold] += share[group]
        n_rows[fold] += sizes[group]
    return fold_of_group[group_of]


def _group_numbers(groups: Any) -> Rows:
    rows, values = labeled_values(groups, unlabeled=None, name="groups")
    if len(rows) < len(groups):
        raise ValueError(
            f"groups has no value in {len(groups) - len(rows)} of {len(groups)} rows. Give each row a group; a "
            "row on its own is a group of one."
        )
    return factorize(values, name="groups")[1]


def _refuse_lost_class(classes: NDArray[Any], codes: Rows, tested: NDArray[np.bool_]) -> None:
    lost = np.setdiff1d(codes[tested], codes[~tested])
    if len(classes) and len(lost):
        raise ValueError(
            f"A training part lost class {classes[lost].tolist()[0]!r}: one test part holds all its labelled "
            f"rows ({np.sum(codes == lost[0])}). Label more rows of it, in other groups if there are groups, "
            "or leave the class out."
        )


def _one_of(value: Any, name: str, *choices: Any) -> Any:
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}.")
    return value


def labeled_scorer(scoring: str | Callable[..., Any] | None = None, *, unlabeled: Any = "auto") -> Any:
    """A scorer that leaves out the unlabelled rows before it scores.

    Parameters
    ----------
    scoring : str, callable or None, default=None
        A scorer name of scikit-learn; a scorer ``(estimator, X, y)``; a metric whose first argument is called
        ``y_true``, for what `predict` returns; or None for the estimator's own ``score``.
    unlabeled : "auto", None or a scalar, default="auto"
        What marks an unlabelled row. "auto": NaN, None and NA; and -1, if the fitted classifier does not have
        it among its `classes_`.

    Returns
    -------
    scorer : callable ``(estimator, X, y, **params)``
        For ``scoring=`` in cross_val_score, GridSearchCV and the like. Of `params`, sample_weight and whatever
        else has one entry a row is cut to the labelled rows.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> from kernelweave.model_selection import labeled_scorer
    >>> model = DummyClassifier(strategy="constant", constant=1).fit([[0], [0]], [0, 1])
    >>> labeled_scorer("accuracy")(model, [[0], [0], [0]], [1, -1, -1])
    1.0
    """
    if scoring is not None and not isinstance(scoring, str) and not callable(scoring):
        raise TypeError(
            f"scoring must be a scorer name, a scorer, a metric or None, got {scoring!r}. For several scores "
            "pass a dictionary to scikit-learn: scoring={'name': labeled_scorer(...), ...}."
        )
    if isinstance(scoring, str):
        scoring = get_scorer(scoring)
    elif scoring is not None and next(iter(inspect.signature(scoring).parameters), None) == "y_true":
        scoring = make_scorer(scoring)
    return _LabeledScorer(scoring, unlabeled)


class _LabeledScorer:
    """What :func:`labeled_scorer` returns; a class, so that it can be pickled and takes routed metadata."""

    def __init__(self, scorer: Any, unlabeled: Any) -> None:
        self.scorer = scorer
        self.unlabeled = unlabeled

    def __call__(self, estimator: Any, X: Any, y: Any, **params: Any) -> Any:
        classes = getattr(estimator, "classes_", None)
        regression = classes is None and is_regressor(estimator)
        rows, values = labeled_values(y, unlabeled=self.unlabeled, classes=classes, regression=regression)
        if len(rows) == 0:
            raise ValueError(
                f"There is no labelled row to score: all {len(y)} rows are unlabelled. Score rows whose labels "
                "are known; the test parts of SemiSupervisedSplit hold such rows only."
            )
        for name, value in params.items():
            if np.shape(value)[:1] == (len(y),):
                params[name] = take(value, rows)
        scorer = check_scoring(estimator, scoring=self.scorer)
        return scorer(estimator, take(utils.indexable(X)[0], rows), values, **params)

    def __repr__(self) -> str:
        return f"labeled_scorer({self.scorer!r}, unlabeled={self.unlabeled!r})"

    def get_metadata_routing(self) -> Any:
        return get_routing_for_object(self.scorer)

    def set_score_request(self, **requests: Any) -> _LabeledScorer:
        self.scorer.set_score_request(**requests)
        return self


class SigmoidCalibratedClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    r"""Class probabilities from a classifier's decision values, learned from partly labelled rows.

    The estimator is fitted on the training parts of a cross-validation; its decision values :math:`f_i` on the
    labelled rows of the test parts decide slope a and offset b of Platt's sigmoid,

    .. math::
        \min_{a \ge 0,\, b} \; \sum_i w_i \left[ \log(1 + e^{z_i}) - t_i z_i \right], \quad z_i = a f_i + b,

    with weights :math:`w_i`, targets :math:`t_i = (N_+ + 1)/(N_+ + 2)` in the class and :math:`1/(N_- + 2)`
    outside, :math:`N_\pm` the total weight in and outside it. The estimator is then fitted on all rows: the
    probability is :math:`1/(1 + e^{-(a f(x) + b)})`, divided by the sum over classes if they are more than two.

    Parameters
    ----------
    estimator : classifier
        With `decision_function` (one column a class, if there are more than two), or with `predict_proba`,
        whose log-odds are then calibrated. One that learns the marker of unlabelled rows as a class, as
        scikit-learn's supervised classifiers do with -1, is refused.
    cv : int, splitter, iterable of (train, test) or None, default=None
        An int means :class:`SemiSupervisedSplit` with so many parts; None five, or as many as the smallest
        class has labelled rows. Decision values of a row that is tested repeatedly are averaged.
    min_labels : int, default=5
        Fewest labelled rows a class, at least 2: below, a sigmoid is guesswork, and `fit` refuses.
    unlabeled : "auto", None or a scalar, default="auto"
        What marks an unlabelled row, as in :func:`kernelweave.labels.partition`.
    random_state : int, RandomState instance or None, default=None
        Seeds the splitting; the estimator has its own.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    estimator_ : the estimator, fitted on all rows
    slope_, offset_ : ndarray of shape (n_classes,); for two classes (1,), the sigmoid of ``classes_[1]``
    oof_rows_ : ndarray of shape (n_tested,), the labelled rows that were in a test part
    oof_decision_ : ndarray of shape (n_tested,) or (n_tested, n_classes), their decision values

    Notes
    -----
    `decision_function` gives z, the calibrated log-odds, and `predict` the most probable class, so that the
    three methods never contradict one another. For two classes this moves the estimator's threshold but keeps
    its ranking, as a is never negative. Where out-of-fold values point the wrong way the best a is 0: the
    probability is then the share of the class, and `fit` warns. A sample weight counts as so many rows.

    References
    ----------
    J. Platt, Probabilistic outputs for support vector machines, Advances in Large Margin Classifiers, 1999.
    """

    def __init__(
        self, estimator: Any, *, cv: Any = None, min_labels: int = 5, unlabeled: Any = "auto",
        random_state: Any = None
    ) -> None:  # fmt: skip
        self.estimator = estimator
        self.cv = cv
        self.min_labels = min_labels
        self.unlabeled = unlabeled
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, sample_weight: Any = None, groups: Any = None) -> SigmoidCalibratedClassifier:
        """Fit the sigmoids to out-of-fold decision values, and the estimator on all rows."""
        part = partition(y, unlabeled=self.unlabeled)
        X, y, groups = utils.indexable(X, y, groups)
        y = np.ravel(y) if np.ndim(y) == 2 else y
        weights = _checked_weights(self.estimator, sample_weight, len(y))
        part, kept = part.restrict(weights > 0), np.flatnonzero(weights)
        fit = partial(_fitted, self.estimator, X, y, None if sample_weight is None else weights, part.classes)

        labeled = kept[part.labeled]
        tested, decision = _out_of_fold(fit, X, labeled, part, self._folds(X, y, groups, part, kept))
        rows = labeled[tested]
        self.slope_, self.offset_ = _fit_sigmoids(decision, part.codes[tested], weights[rows], part.classes)
        self.oof_rows_, self.oof_decision_ = rows, decision
        self.classes_ = part.classes
        self.estimator_ = fit(kept)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        return self

    def decision_function(self, X: Any) -> Floats:
        """Calibrated log-odds of shape (n_samples,) for two classes, otherwise (n_samples, n_classes)."""
        check_is_fitted(self, "estimator_")
        return _decision(self.estimator_, X) * self.slope_ + self.offset_

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of shape (n_samples, n_classes); rows sum to one."""
        z = self.decision_function(X)
        if z.ndim == 1:
            return np.column_stack([expit(-z), expit(z)])
        return softmax(log_expit(z), axis=1)  # all sigmoids of a row may underflow; their ratios do not

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row."""
        z = self.decision_function(X)
        return self.classes_[(z > 0).astype(np.intp) if z.ndim == 1 else z.argmax(axis=1)]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy on the labelled rows."""
        check_is_fitted(self, "estimator_")
        utils.check_consistent_length(X, y, sample_weight)
        params = {} if sample_weight is None else {"sample_weight": sample_weight}
        return float(labeled_scorer("accuracy", unlabeled=self.unlabeled)(self, X, y, **params))

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), utils.get_tags(self.estimator)
        tags.input_tags = inner.input_tags
        if inner.classifier_tags is not None:
            tags.classifier_tags.multi_class = inner.classifier_tags.multi_class
        return tags

    def _folds(self, X: Any, y: Any, groups: Any, part: Partition, kept: Rows) -> Iterator[tuple[Rows, Rows]]:
        """Test parts, and training parts without the rows of weight zero."""
        utils.check_scalar(self.min_labels, "min_labels", numbers.Integral, min_val=2)
        counts = np.bincount(part.codes)
        if counts.min() < self.min_labels:
            raise ValueError(
                f"Calibration needs min_labels={self.min_labels} labelled rows a class, but class "
                f"{part.classes.tolist()[counts.argmin()]!r} has {counts.min()}. Label more, or lower min_labels."
            )
        n_splits = min(5, counts.min()) if self.cv is None else self.cv
        if isinstance(n_splits, numbers.Integral):
            cv = SemiSupervisedSplit(int(n_splits), target="classes", random_state=self.random_state)
            known = np.full(len(kept), None, dtype=object)
            known[part.labeled] = part.classes[part.codes]
            groups = None if groups is None else take(groups, kept)
            return ((kept[train], kept[test]) for train, test in cv.split(kept, known, groups))
        pairs = check_cv(self.cv).split(X, y, groups)
        return ((np.asarray(train)[np.isin(train, kept)], test) for train, test in pairs)


def _out_of_fold(fit: Any, X: Any, labeled: Rows, part: Partition, pairs: Any) -> tuple[Rows, Floats]:
    """Which of the labelled rows were tested (positions in `labeled`), and their mean decision values."""
    values, where = [], [np.empty(0, dtype=np.intp)]
    for train, test in pairs:
        scored = np.flatnonzero(np.isin(labeled, test))
        if len(scored):
            values.append(_decision(fit(train), take(X, labeled[scored])))
            where.append(scored)
    tested, inverse, times = np.unique(np.concatenate(where), return_inverse=True, return_counts=True)
    untested = np.setdiff1d(part.codes, part.codes[tested])
    if len(untested):
        raise ValueError(
            f"No test part of cv holds a labelled row of class {part.classes.tolist()[untested[0]]!r}, so its "
            "sigmoid cannot be fitted. Use SemiSupervisedSplit, or cv=None."
        )
    total = np.zeros((len(tested), *values[0].shape[1:]))
    np.add.at(total, inverse, np.concatenate(values))
    return tested, (total.T / times).T


def _checked_weights(estimator: Any, sample_weight: Any, n_rows: int) -> Floats:
    if sample_weight is None:
        return np.ones(n_rows)
    weights = utils.check_array(sample_weight, ensure_2d=False, dtype=float, input_name="sample_weight")
    if weights.shape != (n_rows,) or (weights < 0).any():
        raise ValueError(
            f"sample_weight must hold a number >= 0 for each of {n_rows} rows, got shape {weights.shape} and "
            f"smallest value {weights.min()}."
        )
    if not weights.any():
        raise ValueError("All sample weights are zero, so there is no row to learn from. Give some rows weight.")
    if not has_fit_parameter(estimator, "sample_weight"):
        raise ValueError(f"{estimator!r} has no sample_weight in fit. Leave it out or change the estimator.")
    return weights


def _fitted(estimator: Any, X: Any, y: Any, weights: Any, classes: NDArray[Any], rows: Rows) -> Any:
    """A clone of the estimator, fitted on some rows, which has learned the classes of the labelled rows."""
    params = {} if weights is None else {"sample_weight": weights[rows]}
    fitted = clone(estimator).fit(take(X, rows), take(y, rows), **params)
    if list(fitted.classes_) != list(classes):
        raise ValueError(
            f"{estimator!r} learned the classes {fitted.classes_.tolist()}, but y has {classes.tolist()}. If "
            "it takes the marker of unlabelled rows for a class, pass the labelled rows only; if a training "
            "part lost a class, pass another cv."
        )
    return fitted


def _decision(estimator: Any, X: Any) -> Floats:
    """Decision values of shape (n_samples,) for two classes, otherwise (n_samples, n_classes)."""
    n_classes = len(estimator.classes_)
    if hasattr(estimator, "decision_function"):
        values = np.asarray(estimator.decision_function(X), dtype=np.float64)
    elif hasattr(estimator, "predict_proba"):
        values = logit(np.clip(estimator.predict_proba(X), CLIP_PROBABILITY, 1 - CLIP_PROBABILITY))
        values = values[:, 1] if n_classes == 2 else values
    else:
        raise TypeError(f"{estimator!r} has neither decision_function nor predict_proba to calibrate.")
    if values.shape[1:] != (() if n_classes == 2 else (n_classes,)) or not np.isfinite(values).all():
        raise ValueError(
            f"{estimator!r} gave decision values of shape {values.shape}, {np.sum(~np.isfinite(values))} of "
            f"them not finite. Needed: a finite one a row for two classes, else one a class ({n_classes})."
        )
    return values


def _fit_sigmoids(decision: Floats, codes: Rows, weights: Floats, classes: NDArray[Any]) -> tuple[Floats, Floats]:
    """Slopes and offsets, one for each column of decision values; two classes have one column."""
    columns = decision.reshape(len(codes), -1)
    members = np.arange(len(classes))[-columns.shape[1] :]  # of two classes the second
    fits = [_fit_sigmoid(columns[:, c], codes == k, weights) for c, k in enumerate(members)]
    flat = [classes.tolist()[k] for k, (slope, _) in zip(members, fits, strict=True) if slope == 0]
    if flat:
        warnings.warn(
            f"On held-out rows the decision values are no better than chance for the classes {flat}, whose "
            "probabilities are therefore constant. Give the estimator more labels, or tune it.",
            UserWarning,
            stacklevel=3,
        )
    return tuple(np.array(fits).T)


def _fit_sigmoid(decision: Floats, positive: NDArray[np.bool_], weights: Floats) -> tuple[float, float]:
    """Slope >= 0 and offset of Platt's sigmoid."""
    n_in, n_out = weights[positive].sum(), weights[~positive].sum()
    target = np.where(positive, (n_in + 1) / (n_in + 2), 1 / (n_out + 2))
    center = np.average(decision, weights=weights)
    spread = np.sqrt(np.average((decision - center) ** 2, weights=weights)) or 1.0
    standard = (decision - center) / spread

    def mean_loss(theta: Floats) -> tuple[float, Floats]:
        z = theta[0] * standard + theta[1]
        residual = weights * (expit(z) - target) / weights.sum()
        loss = weights @ (np.logaddexp(0, z) - target * z) / weights.sum()
        return loss, np.array([residual @ standard, residual.sum()])

    start = np.array([0.0, logit(np.average(target, weights=weights))])  # the optimum for a = 0
    options = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 1000}
    bounds = [(0, None), (None, None)]
    slope, offset = minimize(mean_loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
    return slope / spread, offset - slope * center / spread

"""Class probabilities from out-of-fold decision values.

A sigmoid a class, fitted to tell the class from the rest, is right about that question alone. Divided by their sum, the
sigmoids of k classes are too timid: what they leave to the k - 1 other classes adds up, and Platt's soft targets leave
something to each of them. One temperature, fitted to the labels of the same out-of-fold rows, takes this back.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize
from scipy.special import expit, log_expit, log_softmax, logit, softmax
from sklearn import utils
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing as take  # in scikit-learn's public reference, in spite of its name
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from ..labels import Partition, partition
from ..warn import warn_caller
from .scorers import labeled_scorer
from .splits import SemiSupervisedSplit

Rows = NDArray[np.intp]
Floats = NDArray[np.float64]

# Probabilities become log-odds of at most 14: a row that is sure and wrong must not rule the sigmoid.
CLIP_PROBABILITY = 1e-6

# How many rows the prior of the temperature weighs; without it, folds without an error would give T = 0. Mean log loss
# on ten data sets of 3-10 classes, 12-300 labels and four estimators differs by about 1 % between 3 and 12 rows.
PRIOR_ROWS = 5.0


class SemiSupervisedCalibration(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    r"""Class probabilities from a classifier's decision values, learned from partly labelled rows.

    The estimator is fitted on the training parts of a cross-validation; its decision values :math:`f_i` on the
    labelled rows of the test parts decide slope a and offset b of Platt's sigmoid,

    .. math::
        \min_{a \ge 0,\, b} \; \sum_i w_i \left[ \log(1 + e^{z_i}) - t_i z_i \right], \quad z_i = a f_i + b,

    with weights :math:`w_i`, targets :math:`t_i = (N_+ + 1)/(N_+ + 2)` in the class and :math:`1/(N_- + 2)`
    outside, :math:`N_\pm` the total weight in and outside it. The estimator is then fitted on all rows: of two
    classes, the second has probability :math:`\sigma(z) = 1/(1 + e^{-z})` with :math:`z = a f(x) + b`. More than two
    have a sigmoid each, which share one temperature :math:`T`,

    .. math::
        p_k(x) = \frac{\sigma(z_k)^{1/T}}{\sum_j \sigma(z_j)^{1/T}}, \qquad \min_{T > 0} \;
        -\sum_i w_i \log p_{y_i}(x_i) + 5 \left( \frac{1}{T} - 1 + \log T \right),

    the sum being over the out-of-fold rows. The last term is a prior for :math:`T = 1`, mere division by the sum;
    it weighs about as much as five rows, so that few labels change little and folds without an error do not give
    probabilities of 0 and 1.

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
    temperature_ : float, T; 1 for two classes
    oof_rows_ : ndarray of shape (n_tested,), the labelled rows that were in a test part
    oof_decision_ : ndarray of shape (n_tested,) or (n_tested, n_classes), their decision values

    Notes
    -----
    `decision_function` gives z, the calibrated log-odds (of each class against the rest, if there are more than
    two), and `predict` the most probable class, so that the three methods never contradict one another: the
    temperature changes how sure probabilities are, not their order. For two classes calibration moves the
    estimator's threshold but keeps its ranking, as a is never negative. Where out-of-fold values point the wrong
    way the best a is 0: the probability is then the share of the class, and `fit` warns. A sample weight counts as
    so many rows.

    References
    ----------
    J. Platt, Probabilistic outputs for support vector machines, Advances in Large Margin Classifiers, 1999.
    C. Guo, G. Pleiss, Y. Sun, K. Weinberger, On calibration of modern neural networks, ICML, 2017 (temperature).
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

    def fit(self, X: Any, y: Any, *, sample_weight: Any = None, groups: Any = None) -> SemiSupervisedCalibration:
        """Fit sigmoids and temperature to out-of-fold decision values, and the estimator on all rows."""
        part = partition(y, unlabeled=self.unlabeled)
        self._refuse_inner_marker(part)
        X, y, groups = utils.indexable(X, y, groups)
        y = np.ravel(y) if np.ndim(y) == 2 else y
        weights = _check_weights(self.estimator, sample_weight, len(y))
        part, kept = part.restrict(weights > 0), np.flatnonzero(weights)
        fit = partial(_fit_clone, self.estimator, X, y, None if sample_weight is None else weights, part.classes)

        labeled = kept[part.labeled]
        tested, decision = _decide_out_of_fold(fit, X, labeled, part, self._make_folds(X, y, groups, part, kept))
        rows = labeled[tested]
        codes = part.codes[tested]
        sigmoids = fit_sigmoids(decision, codes, weights[rows])
        _warn_of_chance(sigmoids, part.classes)
        self.slope_, self.offset_, self.temperature_ = sigmoids.slope, sigmoids.offset, sigmoids.temperature
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
        return self._sigmoids().log_odds(decision_values(self.estimator_, X))

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of shape (n_samples, n_classes); rows sum to one."""
        z = self.decision_function(X)
        return self._sigmoids().probabilities(z)

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row."""
        codes = most_probable(self.decision_function(X))
        return self.classes_[codes]

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

    def _sigmoids(self) -> Sigmoids:
        return Sigmoids(self.slope_, self.offset_, self.temperature_)

    def _refuse_inner_marker(self, part: Partition) -> None:
        """Refuse a marker of unlabelled rows that the estimator was told of and this one was not."""
        params = self.estimator.get_params() if hasattr(self.estimator, "get_params") else {}
        named = [value for key, value in params.items() if key.split("__")[-1] == "unlabeled"]
        named = [value for value in named if np.isscalar(value) and value != "auto"]
        for marker in part.classes.tolist():
            if marker in named:
                raise ValueError(
                    f"{self.estimator!r} takes {marker!r} for the marker of unlabelled rows, but "
                    f"SemiSupervisedCalibration has unlabeled={self.unlabeled!r}, by which it is a class. Pass "
                    f"unlabeled={marker!r} to SemiSupervisedCalibration too."
                )

    def _make_folds(self, X: Any, y: Any, groups: Any, part: Partition, kept: Rows) -> Iterator[tuple[Rows, Rows]]:
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


@dataclass(frozen=True, eq=False)
class Sigmoids:
    """What turns decision values into probabilities.

    Attributes
    ----------
    slope, offset : ndarray of shape (n_classes,); for two classes (1,), the sigmoid of the second
    temperature : float, 1 for two classes
    """

    slope: Floats
    offset: Floats
    temperature: float

    def log_odds(self, decision: Floats) -> Floats:
        """Calibrated log-odds z, of the shape of the decision values."""
        return decision * self.slope + self.offset

    def probabilities(self, z: Floats) -> Floats:
        """Probabilities of shape (n_samples, n_classes) from log-odds; rows sum to one."""
        if z.ndim == 1:
            return np.column_stack([expit(-z), expit(z)])
        # all sigmoids of a row may underflow; their ratios do not
        return softmax(log_expit(z) / self.temperature, axis=1)


def fit_sigmoids(decision: Floats, codes: Rows, weights: Floats) -> Sigmoids:
    """Fit a sigmoid for each column of out-of-fold decision values, and their temperature.

    Parameters
    ----------
    decision : ndarray of shape (n_rows,) or (n_rows, n_classes)
    codes : ndarray of shape (n_rows,)
        Number of each row's class.
    weights : ndarray of shape (n_rows,)
    """
    columns = decision.reshape(len(codes), -1)
    members = [1] if decision.ndim == 1 else range(columns.shape[1])  # of two classes the second
    fits = [_fit_sigmoid(column, codes == k, weights) for column, k in zip(columns.T, members, strict=True)]
    slope, offset = np.array(fits).T
    temperature = 1.0 if decision.ndim == 1 else _fit_temperature(decision * slope + offset, codes, weights)
    return Sigmoids(slope, offset, temperature)


def most_probable(z: Floats) -> Rows:
    """Number of the most probable class of each row, from log-odds or decision values."""
    return (z > 0).astype(np.intp) if z.ndim == 1 else z.argmax(axis=1)


def _warn_of_chance(sigmoids: Sigmoids, classes: NDArray[Any]) -> None:
    flat = classes[-len(sigmoids.slope) :][sigmoids.slope == 0].tolist()
    if flat:
        warn_caller(
            f"On held-out rows the decision values are no better than chance for the classes {flat}, whose "
            "probabilities are therefore constant. Give the estimator more labels, or tune it."
        )


def _decide_out_of_fold(fit: Any, X: Any, labeled: Rows, part: Partition, pairs: Any) -> tuple[Rows, Floats]:
    """Which of the labelled rows were tested (positions in `labeled`), and their mean decision values."""
    values, where = [], [np.empty(0, dtype=np.intp)]
    for train, test in pairs:
        scored = np.flatnonzero(np.isin(labeled, test))
        if len(scored):
            values.append(decision_values(fit(train), take(X, labeled[scored])))
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


def _check_weights(estimator: Any, sample_weight: Any, n_rows: int) -> Floats:
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


def _fit_clone(estimator: Any, X: Any, y: Any, weights: Any, classes: NDArray[Any], rows: Rows) -> Any:
    """A clone of the estimator, fitted on some rows, which has learned the classes of the labelled rows."""
    params = {} if weights is None else {"sample_weight": weights[rows]}
    fitted = clone(estimator).fit(take(X, rows), take(y, rows), **params)
    if list(fitted.classes_) != list(classes):
        raise ValueError(
            f"{estimator!r} learned the classes {fitted.classes_.tolist()}, but y has {classes.tolist()}. If "
            "it takes the marker of unlabelled rows for a class, name the marker to the estimator, or pass the "
            "labelled rows only; if one of these classes is a marker, name it with unlabeled= of "
            "SemiSupervisedCalibration; if a training part lost a class, pass another cv."
        )
    return fitted


def decision_values(estimator: Any, X: Any) -> Floats:
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


def _fit_temperature(z: Floats, codes: Rows, weights: Floats) -> float:
    """The temperature of the sigmoids of z: the problem is convex in 1/T, and this is the root of its derivative."""
    logs = log_softmax(log_expit(z), axis=1)
    own = logs[np.arange(len(codes)), codes]

    def derivative(inverse: float) -> float:
        expected = np.sum(softmax(inverse * logs, axis=1) * logs, axis=1)
        return float(weights @ (expected - own) + PRIOR_ROWS * (1 - 1 / inverse))

    # `expected` is at most the row's maximum and at least that less log(n_classes)/inverse: this brackets the root
    lowest = PRIOR_ROWS / (PRIOR_ROWS + weights @ (logs.max(axis=1) - own))
    highest = 1 + weights.sum() * np.log(logs.shape[1]) / PRIOR_ROWS
    return 1 / brentq(derivative, lowest / 2, 2 * highest)

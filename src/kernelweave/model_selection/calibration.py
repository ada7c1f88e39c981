"""Class probabilities from out-of-fold decision values; ``scaling`` has the mathematics."""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit
from sklearn import utils
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import _safe_indexing as take  # in scikit-learn's public reference, in spite of its name
from sklearn.utils.validation import check_is_fitted

from ..distributed.lazy import lazy_on_blocks
from ..labels import Partition, partition
from ..warn import warn_caller
from .folds import check_weights, make_folds
from .scaling import Choice, Scaling, choose_scaling, log_probabilities, most_probable, scale_held_out
from .scorers import labeled_scorer
from .semi_supervised import refuse_inner_marker, write_classes

Rows = NDArray[np.intp]
Floats = NDArray[np.float64]

# Probabilities become log-odds of at most 14.
CLIP_PROBABILITY = 1e-6

OF_ESTIMATOR = ("n_features_in_", "feature_names_in_")  # kept if it has them
MAX_PARTS = 5  # in which the ways of scaling are compared, whatever the number of folds


class SemiSupervisedCalibration(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    r"""Class probabilities from a classifier's decision values, learned from partly labelled rows.

    The estimator is fitted on the training parts of a cross-validation; its decision values on the labelled rows of
    the test parts say how decision values become probabilities. The estimator is then fitted on all rows, and

    .. math::
        p_k(x) = \frac{e^{z_k}}{\sum_j e^{z_j}}, \qquad z_k = a_k\, g\Big(\frac{f_k(x) - c_k}{s_k}\Big) + b_k,

    for two classes with :math:`z_0 = 0` and the only decision value in :math:`z_1`. c and s are the middle and the
    distance of quartiles of the decision values, and the increasing function g leaves values near c as they are and
    bounds the others: a few wild values, of folds or of new rows, do not rule the probabilities. There are two ways
    to fit the rest, by least log loss on the out-of-fold rows:

    - *temperature scaling*: one c, s and slope a > 0 for all classes, and b such that the most probable class is the
      one that the estimator itself predicts, by its largest decision value (of two classes: by its sign);
    - *vector scaling*: c, s, a >= 0 and b for each class, the slopes drawn to their mean and the offsets to those that
      the shares of the classes give, so that few rows change little. It moves the estimator's thresholds.

    Vector scaling is used only where it is no worse on out-of-fold rows left out of its fit, in errors and in log
    loss, and clearly better in one of them.

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
        Fewest labelled rows a class, at least 2: below, a probability is guesswork, and `fit` refuses.
    unlabeled : "auto", None or marker, default="auto"
        What marks an unlabelled row, as in :class:`~kernelweave.SSMKClassifier`.
    random_state : int, RandomState instance or None, default=None
        Seeds the splitting; the estimator has its own.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    estimator_ : classifier
        The estimator, fitted on all rows.
    center_, unit_, slope_, offset_ : ndarray of shape (n_classes,)
        The numbers c, s, a and b; for two classes of shape (1,), those of ``classes_[1]``.
    keeps_classes_ : bool
        Whether the predicted classes are those of the estimator (temperature scaling).
    oof_rows_ : ndarray of shape (n_tested,)
        The labelled rows that were in a test part.
    oof_decision_ : ndarray of shape (n_tested,) or (n_tested, n_classes)
        Their decision values.
    oof_given_ : ndarray of shape (n_tested,)
        The classes that were given.
    oof_classes_ : ndarray of shape (n_tested,)
        The classes that they get if scaling is fitted to the other parts.
    oof_probabilities_ : ndarray of shape (n_tested, n_classes)
        Their probabilities if scaling is fitted to the other parts.
    n_features_in_ : int
        Number of columns of ``X``; only if the estimator has it.
    feature_names_in_ : ndarray of shape (n_features,)
        Only if the estimator has it.

    See Also
    --------
    ReliabilityDisplay : Draws observed shares against predicted probabilities.
    AutoKernelClassifier : Has calibrated probabilities of its own.
    sklearn.calibration.CalibratedClassifierCV : Where all rows are labelled.

    Notes
    -----
    `decision_function` gives z and `predict` the most probable class, so that the three methods never contradict one
    another. z_k is non-decreasing in the decision value of its class, so rows keep their order. Where out-of-fold
    values point the wrong way a slope is 0 or next to it, and `fit` warns. A sample weight counts as so many rows.
    ``kernelweave.model_selection.scaling`` has the problems that are solved.

    References
    ----------
    J. Platt, Probabilistic outputs for support vector machines, Advances in Large Margin Classifiers, 1999.

    C. Guo, G. Pleiss, Y. Sun, K. Weinberger, On calibration of modern neural networks, ICML, 2017.

    Examples
    --------
    It stands wherever scikit-learn asks for probabilities. Cross-validation of partly labelled rows is that of
    :func:`kernelweave.model_selection.out_of_fold`, or has ``cv=SemiSupervisedSplit()``.

    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.inspection import permutation_importance
    >>> from sklearn.model_selection import cross_val_score
    >>> from kernelweave import LapSVMClassifier, SemiSupervisedCalibration, SemiSupervisedSplit
    >>> X, moon = make_moons(120, noise=0.2, random_state=0)
    >>> y = np.where(np.arange(120) < 40, moon, -1)  # 40 labels, 80 unlabelled rows
    >>> model = SemiSupervisedCalibration(LapSVMClassifier(), random_state=0).fit(X, y)
    >>> model.predict_proba(X[:2]).shape
    (2, 2)
    >>> loss = -cross_val_score(model, X, y, cv=SemiSupervisedSplit(2, random_state=0), scoring="neg_log_loss")
    >>> importance = permutation_importance(model, X[40:], moon[40:], scoring="roc_auc", n_repeats=2, random_state=0)
    >>> bool(loss.mean() < 1.0), bool(importance.importances_mean.min() > 0.05)
    (True, True)
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
        """Fit the scaling to out-of-fold decision values, and the estimator on all rows.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            Labelled and unlabelled rows.
        y : array-like of shape (n_samples,)
            Labels; NaN, None and NA mark unlabelled rows, as does what ``unlabeled`` says.
        sample_weight : array-like of shape (n_samples,), optional
            Passed to the estimator; a weight counts as so many rows of the scaling, and rows of weight zero are ignored
            altogether.
        groups : array-like of shape (n_samples,), optional
            Rows of one group are held out together.

        Returns
        -------
        self
            The fitted estimator.
        """
        part = partition(y, unlabeled=self.unlabeled)
        refuse_inner_marker(self.estimator, part, self.unlabeled, "SemiSupervisedCalibration")
        X, y, groups = utils.indexable(X, y, groups)
        y = np.ravel(y) if np.ndim(y) == 2 else y
        weights = check_weights(self.estimator, sample_weight, len(y))
        part, kept = part.restrict(weights > 0), np.flatnonzero(weights)
        fit = partial(_fit_clone, self.estimator, X, y, None if sample_weight is None else weights, part.classes)

        labeled = kept[part.labeled]
        folds = self._make_folds(X, y, groups, part, kept)
        tested, decision, fold_of = _decide_out_of_fold(fit, X, labeled, part, folds)
        rows = labeled[tested]
        held_out = decision, part.codes[tested], weights[rows], fold_of % MAX_PARTS
        choice = choose_scaling(*held_out)
        _warn_if_flat(choice, part.classes)
        estimator, scaling = fit(kept), choice.scaling
        fitted = {
            "center_": scaling.center,
            "unit_": scaling.unit,
            "slope_": scaling.slope,
            "offset_": scaling.offset,
            "keeps_classes_": choice.keeps_classes,
            "oof_rows_": rows,
            "oof_decision_": decision,
            "oof_given_": part.classes[part.codes[tested]],
            "oof_classes_": part.classes[choice.held_out],
            "oof_probabilities_": scale_held_out(choice, *held_out),
            "classes_": part.classes,
            "estimator_": estimator,
        }
        fitted |= {name: getattr(estimator, name) for name in OF_ESTIMATOR if hasattr(estimator, name)}
        others = {name: value for name, value in vars(self).items() if name not in OF_ESTIMATOR}
        self.__dict__ = others | fitted  # in one step: a fit that is interrupted leaves it as it was
        return self

    @lazy_on_blocks
    def decision_function(self, X: Any) -> Floats:
        """Return the scaled decision values z.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes the log odds of ``classes_[1]``; else log probabilities up to a constant of the row.
        """
        check_is_fitted(self, "estimator_")
        scaling = Scaling(self.center_, self.unit_, self.slope_, self.offset_)
        return scaling(decision_values(self.estimator_, X))

    @lazy_on_blocks
    def predict_proba(self, X: Any) -> Floats:
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
        return np.exp(log_probabilities(self.decision_function(X)))

    @lazy_on_blocks
    def predict(self, X: Any) -> NDArray[Any]:
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
        codes = most_probable(self.decision_function(X))
        return self.classes_[codes]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy on the labelled rows of ``X``; unlabelled rows are ignored.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            Rows to predict.
        y : array-like of shape (n_samples,)
            Labels, unlabelled rows marked as for :meth:`fit`; at least one must be given.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows; all equal by default.

        Returns
        -------
        float
            The share of labelled rows whose class is predicted.
        """
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
        known = write_classes(part).y
        return make_folds(n_splits, X, y, groups, known, kept, "classes", self.random_state)


def _decide_out_of_fold(fit: Any, X: Any, labeled: Rows, part: Partition, pairs: Any) -> tuple[Rows, Floats, Rows]:
    """Which labelled rows were tested (positions in `labeled`), their mean decision values, their first test part."""
    values, where, folds = [], [np.empty(0, dtype=np.intp)], [np.empty(0, dtype=np.intp)]
    for fold, (train, test) in enumerate(pairs):
        scored = np.flatnonzero(np.isin(labeled, test))
        if len(scored):
            values.append(decision_values(fit(train), take(X, labeled[scored])))
            where.append(scored)
            folds.append(np.full(len(scored), fold))
    tested, first, inverse, times = np.unique(
        np.concatenate(where), return_index=True, return_inverse=True, return_counts=True
    )
    untested = np.setdiff1d(part.codes, part.codes[tested])
    if len(untested):
        raise ValueError(
            f"No test part of cv holds a labelled row of class {part.classes.tolist()[untested[0]]!r}, so its "
            "probabilities cannot be calibrated. Use SemiSupervisedSplit, or cv=None; with groups, label rows of the "
            "class in several groups."
        )
    total = np.zeros((len(tested), *values[0].shape[1:]))
    np.add.at(total, inverse, np.concatenate(values))
    return tested, (total.T / times).T, np.concatenate(folds)[first]


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


def _warn_if_flat(choice: Choice, classes: NDArray[Any]) -> None:
    flat = classes[-len(choice.is_flat) :][choice.is_flat].tolist()  # of two classes the second
    if flat:
        warn_caller(
            f"On held-out rows the decision values are no better than chance for the classes {flat}, whose "
            "probabilities are therefore constant. Give the estimator more labels, or tune it."
        )

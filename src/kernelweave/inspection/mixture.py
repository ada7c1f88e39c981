"""The mixture of a search as one estimator, which can be fitted to other labels without a new search.

Its members are fitted anew; their weights, and how decision values become probabilities, stay as the search found them
on held-out rows. In folds it says what the mixture does with labels that its members have not seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone, is_classifier
from sklearn.utils.validation import check_is_fitted

from ..estimators.auto.candidates import fix_choices
from ..estimators.auto.frames import name_rows
from ..estimators.auto.members import Member, mix_numbers, mix_probabilities
from ..estimators.auto.trials import MAX_NESTED_LABELS
from ..labels import partition, partition_targets
from ..model_selection.semi_supervised import takes_unlabeled, write_labels


class _Mixture(BaseEstimator):
    """What mixtures of classes and of numbers share."""

    _takes_unlabeled = True
    members: Sequence[Member]

    def _refit(self, X: Any, part: Any) -> None:
        fitted = []
        for member in self.members:
            model = clone(member.model)
            rows, y = part.labeled, part.labels
            if takes_unlabeled(model):
                rows, y = np.arange(X.shape[0]), write_labels(model, part).y
            fitted.append(replace(member, model=model.fit(name_rows(X[rows], member.columns), y)))
        self.members_ = fitted


class MixtureClassifier(ClassifierMixin, _Mixture):
    """A mixture of classifiers with the weights and scalings of ``members``.

    Parameters
    ----------
    members : sequence of Member
        As in ``members_`` of an :class:`AutoKernelClassifier`.
    class_factors : ndarray of shape (n_classes,)
        As in its ``class_factors_``.
    """

    def __init__(self, members: Sequence[Member], class_factors: np.ndarray):
        self.members = members
        self.class_factors = class_factors

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the members; None marks an unlabelled row."""
        part = partition(y, unlabeled=None)
        self._refit(X, part)
        self.classes_ = part.classes
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class of each row."""
        check_is_fitted(self)
        return self.classes_[mix_probabilities(self.members_, self.class_factors, X).argmax(axis=1)]


class MixtureRegressor(RegressorMixin, _Mixture):
    """A weighted mean of regressors, with the weights of ``members``.

    Parameters
    ----------
    members : sequence of Member
        As in ``members_`` of an :class:`AutoKernelRegressor`.
    """

    def __init__(self, members: Sequence[Member]):
        self.members = members

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the members; NaN marks an unlabelled row."""
        self._refit(X, partition_targets(y))
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the number of each row."""
        check_is_fitted(self)
        return mix_numbers(self.members_, X)


def freeze_mixture(model: Any) -> MixtureClassifier | MixtureRegressor:
    """Return the mixture of a fitted :class:`AutoKernelClassifier` or :class:`AutoKernelRegressor`, not fitted.

    As in the search, members choose their settings anew where labels are few, and keep them where there are more.

    Parameters
    ----------
    model : AutoKernelClassifier or AutoKernelRegressor

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import AutoKernelClassifier
    >>> from kernelweave.inspection.mixture import freeze_mixture
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> y = np.where(np.arange(60) < 30, X[:, 0] > 0, None)
    >>> model = AutoKernelClassifier(["SVM", "harmonic"], random_state=0).fit(X, y)
    >>> again = freeze_mixture(model).fit(X, y)
    >>> bool((again.predict(X) == model.predict(X)).all())
    True
    """
    given = model.transduction_[model._labeled_rows]
    members = model.members_
    if len(given) > MAX_NESTED_LABELS:
        fewest = int(np.unique(given, return_counts=True)[1].min()) if is_classifier(model) else len(given)
        members = [replace(member, model=fix_choices(member.model, fewest)) for member in members]
    return MixtureClassifier(members, model.class_factors_) if is_classifier(model) else MixtureRegressor(members)

"""Estimators that take partly labelled y, simple enough to see through."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from kernelweave.labels import partition, partition_targets


class NearestMean(ClassifierMixin, BaseEstimator):
    """A classifier that takes partly labelled y: nearest class mean; remembers how many rows it saw."""

    def __init__(self, power=2.0):
        self.power = power

    def fit(self, X, y, sample_weight=None):
        part = partition(y)
        weights = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight)
        members = part.indicator() * weights[part.labeled, None]
        self.means_ = members.T @ np.asarray(X)[part.labeled] / members.sum(axis=0)[:, None]
        self.classes_ = part.classes
        self.n_rows_seen_ = len(y)
        return self

    def _nearness(self, X):
        return -(np.abs(np.asarray(X)[:, None] - self.means_).sum(axis=2) ** self.power)

    def decision_function(self, X):
        nearness = self._nearness(X)
        return nearness[:, 1] - nearness[:, 0] if len(self.classes_) == 2 else nearness

    def predict(self, X):
        return self.classes_[self._nearness(X).argmax(axis=1)]


class MeanRegressor(RegressorMixin, BaseEstimator):
    def fit(self, X, y):
        self.mean_ = partition_targets(y).targets.mean()
        return self

    def predict(self, X):
        return np.full(len(X), self.mean_)


class Recorder(NearestMean):
    """Keeps what `fit` was given, and says that it takes unlabelled rows."""

    _takes_unlabeled = True

    def fit(self, X, y, sample_weight=None):
        self.X_, self.y_, self.weights_ = np.asarray(X), y, sample_weight
        return super().fit(X, y, sample_weight)

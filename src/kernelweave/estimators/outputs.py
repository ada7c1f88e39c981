"""What mixtures give out: classes or numbers, from the values of their expansion."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from .base import Sample, require
from .mixture import MixtureEstimator


class ClassOutputs(MixtureEstimator):
    """A mixture whose outputs are the classes, or one class against the other."""

    def decision_function(self, X: Any, split: bool = False) -> np.ndarray:
        """Return the value of the mixture at the rows of ``X``.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
        split : bool, default=False
            Whether to return what each kernel of the library adds. The parts sum to the whole over axis 1; the
            intercept is shared equally among the kernels in use.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Positive means ``classes_[1]`` for two classes; with ``split`` an axis of length ``n_kernels`` comes
            second.
        """
        values = self._outputs(X, split)
        return values[..., 0] if len(self.classes_) == 2 else values

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted class of each row."""
        codes = winners(self._outputs(X, split=False))
        return self.classes_[codes]

    def _keep_labels(self, sample: Sample) -> None:
        self.classes_ = sample.partition.classes.copy()


class NumberOutputs(MixtureEstimator):
    """A mixture whose output is a number, learned up to ``epsilon``."""

    def predict(self, X: Any, split: bool = False) -> np.ndarray:
        """Return the predicted number of each row; with ``split`` what each kernel adds, one column a kernel."""
        return self._outputs(X, split)[..., 0]

    def _check_params(self) -> None:
        super()._check_params()
        holds = isinstance(self.epsilon, numbers.Real) and 0 <= float(self.epsilon) < np.inf
        require(type(self).__name__, "epsilon", self.epsilon, holds, "a number, 0 or more")

    def _keep_labels(self, sample: Sample) -> None:
        """Numbers need no coding."""


def winners(values: np.ndarray) -> np.ndarray:
    """Return the code of the predicted class from outputs of shape (n_samples, n_outputs)."""
    return (values[:, 0] > 0).astype(np.intp) if values.shape[1] == 1 else values.argmax(axis=1)

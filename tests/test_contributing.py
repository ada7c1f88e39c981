"""The estimator that CONTRIBUTING.md shows as an example is one."""

import re
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernelweave import RBF, SemiSupervisedSplit

PAGE = Path(__file__).parents[1] / "CONTRIBUTING.md"
contributed = types.ModuleType("contributed")
sys.modules["contributed"] = contributed  # as pickling wants it
exec(re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[1], vars(contributed))
LeastSquaresClassifier = contributed.LeastSquaresClassifier


@parametrize_with_checks([LeastSquaresClassifier()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_it_is_kernel_ridge_regression_on_signs():
    X, y = load_iris(return_X_y=True)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(X))
    model = LeastSquaresClassifier(RBF(0.5), ridge=0.1).fit(X, y, sample_weight=weight)
    peer = KernelRidge(alpha=0.1, kernel="rbf", gamma=0.5).fit(X, 2.0 * np.eye(3)[y] - 1.0, sample_weight=weight)
    np.testing.assert_allclose(model.decision_function(X), peer.predict(X), atol=1e-8)
    assert model.certificate_.gap < 1e-8


def test_it_fills_in_labels_and_is_tuned():
    X, y = load_iris(return_X_y=True)
    hidden = np.where(np.arange(len(y)) % 5 == 0, y, -1)
    search = GridSearchCV(
        LeastSquaresClassifier(), {"ridge": [0.1, 1.0]}, cv=SemiSupervisedSplit(3, random_state=0)
    ).fit(X, hidden)
    assert np.mean(search.best_estimator_.transduction_ == y) > 0.9
    with pytest.raises(ValueError, match="LeastSquaresClassifier got ridge=0; expected a positive finite number"):
        LeastSquaresClassifier(ridge=0).fit(X, y)

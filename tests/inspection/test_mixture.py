"""The mixture of a search, fitted anew: the same weights, members that see other labels."""

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor

from kernelweave import AutoKernelClassifier, AutoKernelRegressor, column_importance
from kernelweave.inspection.mixture import freeze_mixture
from kernelweave.model_selection.out_of_fold import fold_models

CANDIDATES = ["SVM", "harmonic", "logistic regression"]


def table(n=90, n_labeled=60):
    X = np.random.default_rng(0).normal(size=(n, 3))
    return X, X[:, 0] + 0.3 * X[:, 1], np.arange(n) < n_labeled


@pytest.fixture(scope="module")
def classes():
    X, value, is_labeled = table()
    y = np.where(is_labeled, np.where(value > 0, "up", "down"), None)
    return X, y, AutoKernelClassifier(CANDIDATES, combine="stack", random_state=0).fit(X, y)


@pytest.fixture(scope="module")
def numbers():
    X, value, is_labeled = table(n_labeled=30)
    y = np.where(is_labeled, value, np.nan)
    return X, y, AutoKernelRegressor(["SVM", "harmonic"], combine="stack", random_state=0).fit(X, y)


def test_fitted_to_the_same_labels_it_predicts_what_the_search_predicts(classes, numbers):
    X, y, model = classes
    again = freeze_mixture(model).fit(X, y)
    assert is_classifier(again)
    assert np.mean(again.predict(X) == model.predict(X)) > 0.97
    X, y, model = numbers
    again = freeze_mixture(model).fit(X, y)
    assert is_regressor(again)
    np.testing.assert_allclose(again.predict(X), model.predict(X), atol=1e-3)


def test_members_keep_their_weights_and_see_no_held_out_label(classes):
    X, y, model = classes
    folds = list(fold_models(freeze_mixture(model), X, y, unlabeled=None, cv=3, random_state=0))
    assert sorted(np.concatenate([fold.rows for fold in folds])) == list(range(60))
    for fold in folds:
        assert [each.weight for each in fold.model.members_] == [each.weight for each in model.members_]
        hidden = y.copy()
        hidden[fold.rows] = None
        alone = clone(fold.model).fit(X, hidden)
        assert np.mean(alone.predict(X) == fold.model.predict(X)) > 0.97


def test_columns_are_weighed_for_the_whole_mixture(classes, numbers):
    for X, y, model in (classes, numbers):
        found = column_importance(freeze_mixture(model), X, y, unlabeled=None, random_state=0)
        assert found.records[0]["name"] == "x0"
        assert found.records[0]["low"] > 0
        assert found.records[-1]["low"] < 0.05

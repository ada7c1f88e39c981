"""Weights of rows and of classes."""

import numpy as np
import pytest
from common.estimators import assert_close, cases, fitted, having, labeled_sample, outputs, sample


def has_no_folds(case):
    """Folds are drawn from all rows, whatever they weigh."""
    return case.takes_weights and "cv" not in case.parameters


@cases(variants=True, where=has_no_folds)
def test_a_row_of_weight_zero_is_no_row(case):
    X, y = sample(case)
    weight = np.ones(40)
    weight[[5, 9, 25, 39]] = 0.0
    kept = weight > 0
    model = case.model().fit(X, y, sample_weight=weight)
    expected = case.model().fit(X[kept], y[kept])
    assert_close(outputs(model, X), outputs(expected, X), 1e-9)
    for name in ("dual_coef_", "scalings_"):
        if hasattr(model, name):
            assert not getattr(model, name)[~kept].any()
    if hasattr(model, "transduction_"):
        assert len(model.transduction_) == 40
        np.testing.assert_array_equal(model.transduction_[[5, 9]], y[[5, 9]])
    if hasattr(model, "candidates_"):
        assert not np.isin(np.flatnonzero(~kept), model.candidates_).any()


@cases(variants=True, where=lambda case: case.takes_weights)
def test_weights_of_one_are_no_weights(case):
    X, y = sample(case)
    model = case.model().fit(X, y, sample_weight=np.ones(40))
    assert_close(outputs(model, X), outputs(fitted(case), X), 1e-9)


def has_a_fixed_cost(case):
    """Not one that is learned or chosen; a ridge that is learned counts the rows, and so do weights of models."""
    if case.combines_models:
        return False
    return has_no_folds(case) and not isinstance(getattr(case.estimator, "C", None), str) and case.name[:4] != "RKDA"


@cases(variants=True, where=has_a_fixed_cost)
def test_equal_weights_are_a_factor_on_the_cost(case):
    X, y = sample(case)
    weighted = case.exact_model().fit(X, y, sample_weight=np.full(40, 2.0))
    dearer = case.exact_model(**({"C": 2.0 * case.estimator.C} if "C" in case.parameters else {})).fit(X, y)
    assert_close(outputs(weighted, X), outputs(dearer, X), case.close)


@cases(where=having("class_weight"), variants=True)
def test_balanced_classes_weigh_the_same(case):
    X, y = labeled_sample(case)
    rows = np.flatnonzero((y == 0) | (np.arange(40) % 3 == 0))
    X, y = X[rows], y[rows]
    factors = dict(enumerate(len(y) / (2 * np.bincount(y))))
    balanced = case.exact_model(class_weight="balanced").fit(X, y)
    by_hand = case.exact_model(class_weight=factors).fit(X, y)
    assert balanced.objective_ == pytest.approx(by_hand.objective_, rel=1e-6)
    assert_close(outputs(balanced, X), outputs(by_hand, X), case.close)
    plain = case.exact_model().fit(X, y)
    assert np.mean(balanced.predict(X) == 1) >= np.mean(plain.predict(X) == 1)

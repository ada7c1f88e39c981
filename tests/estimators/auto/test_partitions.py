"""A search on Dask collections: labelled rows and drawn ones decide, all rows are labelled where they are."""

import numpy as np
import pytest
from checks.partitions import as_array, as_frame, problem

from kernelweave import AutoKernelClassifier, AutoKernelRegressor
from kernelweave.estimators.shared import partitioned, sample

X, y, numbers = problem(150, 40)
KERNELS = ["MKL", "LapSVM", "logistic regression"]


def test_a_search_of_few_rows_is_the_one_in_memory():
    model = AutoKernelClassifier(KERNELS, random_state=0).fit(as_array(X, 7), as_array(y, 7))
    expected = AutoKernelClassifier(KERNELS, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.transduction_.compute(), expected.transduction_)
    np.testing.assert_allclose(model.label_distributions_.compute(), expected.label_distributions_, atol=1e-6)
    np.testing.assert_array_equal(model.oof_rows_, expected.oof_rows_)
    np.testing.assert_array_equal(model.label_next(5), expected.label_next(5))
    np.testing.assert_allclose(model.predict_proba(as_array(X, 3)).compute(), expected.predict_proba(X), atol=1e-6)
    assert model.predict_set(as_array(X, 3)).compute().dtype == bool


def test_many_rows_are_labeled_by_a_search_of_some(monkeypatch):
    monkeypatch.setattr(partitioned, "MAX_BOUND_ROWS", 120)
    monkeypatch.setattr(sample, "MAX_ORDERED_ROWS", 120)
    monkeypatch.setattr(partitioned, "MAX_SEARCH_ROWS", 80)
    frame = as_frame(X, np.where(y < 0, None, np.where(y == 0, "no", "yes")), 7)
    features = frame[["x0", "x1", "x2", "x3"]]
    model = AutoKernelClassifier(["MKL", "logistic regression"], random_state=0).fit(features, frame["y"])
    labels = model.transduction_.compute()
    assert len(labels) == 150
    np.testing.assert_array_equal(labels[y >= 0], np.where(y == 0, "no", "yes")[y >= 0])
    np.testing.assert_array_equal(labels[y < 0], model.predict(features).compute()[y < 0])
    assert np.all(y[model.label_next(5)] < 0)
    assert np.all(y[model.oof_rows_] >= 0)
    expected = AutoKernelClassifier(["MKL", "logistic regression"], random_state=0).fit(X, y)  # of as many rows
    np.testing.assert_array_equal(np.array(["no", "yes"])[expected.transduction_], labels)
    np.testing.assert_allclose(expected.label_distributions_, model.label_distributions_.compute(), atol=1e-6)
    assert np.all(y[expected.label_next(5)] < 0)


def test_numbers_of_many_rows_in_memory_are_filled_in_by_a_search_of_some(monkeypatch):
    monkeypatch.setattr(partitioned, "MAX_BOUND_ROWS", 120)
    monkeypatch.setattr(partitioned, "MAX_SEARCH_ROWS", 80)
    model = AutoKernelRegressor(["MKL", "ridge regression"], random_state=0).fit(X, numbers)
    known = ~np.isnan(numbers)
    assert len(model._sample_rows) == 80
    np.testing.assert_array_equal(model.transduction_[known], numbers[known])
    np.testing.assert_allclose(model.transduction_[~known], model.predict(X[~known]), rtol=1e-9)


def test_numbers_are_filled_in():
    model = AutoKernelRegressor(["MKL", "ridge regression"], random_state=0).fit(as_array(X, 7), as_array(numbers, 7))
    expected = AutoKernelRegressor(["MKL", "ridge regression"], random_state=0).fit(X, numbers)
    np.testing.assert_allclose(model.transduction_.compute(), expected.transduction_, rtol=1e-6)
    intervals = model.predict_interval(as_array(X, 3), coverage=0.8).compute()
    np.testing.assert_allclose(intervals, expected.predict_interval(X, coverage=0.8), rtol=1e-6)


def test_groups_of_partitioned_rows_are_refused():
    with pytest.raises(ValueError, match="groups"):
        AutoKernelClassifier(KERNELS).fit(as_array(X, 7), as_array(y, 7), groups=np.arange(10))

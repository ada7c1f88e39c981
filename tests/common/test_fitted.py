"""What a fitted model keeps: how good it is and how it came about, its parts, its features."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from common.estimators import assert_close, cases, fitted, outputs, sample
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.validation import check_is_fitted

from kernelweave import KernelLibrary
from kernelweave.solvers.result import Certificate, Status

KINDS = ("duality gap", "stationarity", "KKT residual")


@cases(variants=True)
def test_a_model_has_a_certificate_that_belongs_to_its_objective(case):
    model = fitted(case)
    assert isinstance(model.certificate_, Certificate)
    assert model.certificate_.kind in KINDS
    if model.certificate_.kind != "KKT residual":  # which is relative to the size of the values
        assert np.sum(model.objective_) == pytest.approx(model.certificate_.objective)
    assert 0.0 <= model.certificate_.gap < np.inf
    assert model.status_ is Status.CONVERGED
    assert model.n_iter_ >= 1
    tol = getattr(model, "tol", None)
    if tol is not None and model.certificate_.kind != "KKT residual":
        assert model.certificate_.relative <= tol


@cases()
def test_a_model_that_converged_says_nothing(case):
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        case.model().fit(*sample(case))


@cases(variants=True)
def test_the_library_and_the_columns_are_kept(case):
    X, y = sample(case)
    model = fitted(case)
    assert case.combines_models or isinstance(model.library_, KernelLibrary)
    assert model.n_features_in_ == 3
    if case.task == "classes":
        np.testing.assert_array_equal(model.classes_, [0, 1])
    with pytest.raises(NotFittedError):
        check_is_fitted(case.model())
    with pytest.raises(NotFittedError):
        case.model().status_  # noqa: B018
    assert outputs(model, X).shape[0] == len(y)


@cases(where=lambda case: "callback" in case.parameters and not case.combines_models)
def test_history_has_a_record_for_each_iteration(case):
    model = fitted(case)
    assert len(model.history_) >= model.n_iter_ >= 1
    for record in model.history_:
        assert {"iteration", "objective", "gap", "seconds"} <= set(record)
    assert [record["iteration"] for record in model.history_[:2]] in ([0, 1], [1, 2], [1], [0], [1, 1])
    assert model.history_[-1]["objective"] == pytest.approx(model.objective_, rel=1e-6)


@cases("classes", "numbers", "one class", variants=True, where=lambda case: case.has_expansion)
def test_what_each_kernel_adds_sums_to_the_whole(case):
    X, _ = sample(case)
    model = fitted(case)
    if case.task == "one class":
        parts, whole = model.expansion_.split(X)[..., 0], model.score_samples(X)
    else:
        give = model.predict if case.task == "numbers" else model.decision_function
        parts, whole = give(X, split=True), give(X)
    assert parts.shape == (40, model.expansion_.n_kernels)
    assert_close(parts.sum(axis=1), whole, 1e-9)
    assert model.n_evaluations_ > 0


@cases("classes", variants=True, where=lambda case: case.has_expansion)
def test_of_several_classes_the_parts_sum_as_well(case):
    X, _ = sample(case)
    model = fitted(case, n_classes=3)
    parts = model.decision_function(X, split=True)
    assert parts.shape == (40, model.expansion_.n_kernels, 3)
    assert_close(parts.sum(axis=1), model.decision_function(X), 1e-9)


@cases(where=lambda case: case.has_expansion or case.name == "RKDAClassifier")
def test_kernels_are_told_with_their_share(case):
    model = fitted(case)
    if hasattr(model, "kernel_usage_"):
        assert [record["name"] for record in model.kernel_usage_] == list(model.library_.names)
        assert sum(record["columns"] for record in model.kernel_usage_) == model.n_columns_
        assert sum(record["share"] for record in model.kernel_usage_) == pytest.approx(1.0)
    else:
        assert (model.weights_ >= 0).all()
    if hasattr(model, "kernel_weights_"):
        assert [record["name"] for record in model.kernel_weights_] == list(model.library_.names)
        np.testing.assert_allclose([record["weight"] for record in model.kernel_weights_], model.weights_)
        assert sum(model.source_weights_.values()) == pytest.approx(model.weights_.sum())


# Features


def is_transformer(case):
    return hasattr(case.estimator, "transform")


@cases(where=is_transformer, variants=True)
def test_features_have_names(case):
    X, y = sample(case)
    model = fitted(case)
    prefix = "rkda" if case.name == "RKDAClassifier" else case.name.lower()
    n_features = model.transform(X).shape[1]
    assert list(model.get_feature_names_out()) == [f"{prefix}{k}" for k in range(n_features)]
    assert_close(case.model().fit_transform(X, y), model.transform(X), 1e-9)


@cases(where=is_transformer)
@pytest.mark.parametrize("package, frame", [("pandas", pd.DataFrame), ("polars", pl.DataFrame)])
def test_features_may_be_frames(case, package, frame):
    X, y = sample(case)
    model = case.model().set_output(transform=package).fit(X, y)
    features = model.transform(X)
    assert isinstance(features, frame)
    assert list(features.columns) == list(model.get_feature_names_out())
    assert_close(features.to_numpy(), fitted(case).transform(X), 1e-9)
    if case.task == "classes":
        np.testing.assert_array_equal(model.predict(X), fitted(case).predict(X))

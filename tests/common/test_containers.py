"""Arrays, sparse matrices and frames, in double and in single precision, give the same model."""

from functools import cache, partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from common.estimators import assert_close, cases, fitted, fitted_exact, outputs, sample
from scipy import sparse
from sklearn.metrics.pairwise import rbf_kernel

from kernelweave import RBF, OnColumns, Precomputed

FRAMES = {
    "pandas": lambda X: pd.DataFrame(X, columns=list("abc")),
    "polars": lambda X: pl.DataFrame(X, schema=list("abc")),
}
FORMATS = {"csc matrix": sparse.csc_matrix, "coo array": sparse.coo_array}


@cases(variants=True, where=lambda case: case.estimator.get_params().get("kernels", case) is not None)
def test_sparse_rows_give_the_model_of_dense_ones(case):
    X, y = sample(case)
    dense, thin = fitted_exact(case), case.exact_model().fit(sparse.csr_array(X), y)
    assert_close(outputs(thin, sparse.csr_array(X)), outputs(dense, X), case.close)
    assert_close(outputs(thin, X), outputs(dense, X), case.close)


@cases()
@pytest.mark.parametrize("container", FORMATS)
def test_sparse_rows_may_have_any_format_and_many_zeros(case, container):
    X, y = sample(case)
    X = np.where(np.abs(X) > 0.3, X, 0.0)
    make = FORMATS[container]
    model, expected = case.exact_model().fit(make(X), y), exact_with_zeros(case)
    assert_close(outputs(model, make(X)), outputs(expected, X), case.close)


@cache
def exact_with_zeros(case):
    X, y = sample(case)
    return case.exact_model().fit(np.where(np.abs(X) > 0.3, X, 0.0), y)


@cases()
@pytest.mark.parametrize("package", FRAMES)
def test_frames_give_the_model_of_arrays(case, package):
    X, y = sample(case)
    frame = FRAMES[package](X)
    model = case.exact_model().fit(frame, y)
    # Frames are kept by columns, so that products round elsewhere.
    assert_close(outputs(model, frame), outputs(fitted_exact(case), X), case.close)
    assert model.feature_names_in_.tolist() == list("abc")
    with pytest.raises(ValueError, match="feature names should match"):
        outputs(model, frame[["b", "a", "c"]])


@cases()
@pytest.mark.parametrize("package", FRAMES)
def test_kernels_may_name_columns(case, package):
    X, y = sample(case)
    frame = FRAMES[package](X)
    named = case.with_kernel(OnColumns(RBF(0.5), ["a", "c"])).fit(frame, y)
    numbered = case.with_kernel(OnColumns(RBF(0.5), [0, 2])).fit(X, y)
    assert_close(outputs(named, frame), outputs(numbered, X), case.close)


@cases(variants=True)
def test_single_precision_is_taken(case):
    X, y = sample(case)
    kept = {"dtype": "float32"} if "dtype" in case.parameters else {}
    model = case.model(**kept).fit(X.astype(np.float32), y)
    found, expected = outputs(model, X.astype(np.float32)), outputs(fitted(case), X)
    if case.task == "classes":  # both are near the optimum, and at another point
        assert np.mean(model.predict(X) == fitted(case).predict(X)) >= 0.9
    assert np.corrcoef(found.ravel(), expected.ravel())[0, 1] > 0.95
    if case.task == "features":
        assert model.transform(X.astype(np.float32)).dtype == np.float32
    is_convex = fitted(case).certificate_.kind != "stationarity"  # else single precision may lead to another point
    assert model.objective_ == pytest.approx(fitted(case).objective_, rel=0.02 if is_convex else 0.1)


@cases()
def test_a_precomputed_kernel_takes_row_numbers(case):
    X, y = sample(case)
    rows, K = np.arange(len(X))[:, None], rbf_kernel(X, gamma=0.5)
    before = K.copy()
    graph = {"metric": "kernel"} if case.name == "LapSVMClassifier" else {}
    given = case.with_kernel(Precomputed(K), **graph).fit(rows, y)
    computed = case.with_kernel(RBF(0.5), **graph).fit(X, y)
    found, expected = outputs(given, rows), outputs(computed, X)
    if case.combines_models:  # rows are dealt to folds by their content, which is another one
        assert np.corrcoef(found, expected)[0, 1] > 0.95
    else:
        assert_close(found, expected, case.close)
    np.testing.assert_array_equal(K, before)


@cases()
def test_the_working_memory_does_not_matter(case):
    X, y = sample(case)
    with sklearn.config_context(working_memory=1e-3):
        small = case.exact_model().fit(X, y)
        found = outputs(small, X)
    assert_close(found, outputs(fitted_exact(case), X), case.close)


@cases(variants=True)
def test_new_rows_are_predicted_each_by_itself(case):
    X, _ = sample(case)
    model = fitted(case)
    order = np.random.default_rng(0).permutation(len(X))[:7]
    give = model.transform if case.task == "features" else partial(outputs, model)
    assert_close(give(X[order]), give(X)[order], 1e-9)  # the blocks of a product differ in the last digits
    assert np.isfinite(outputs(model, 1e3 * X)).all()

"""Dask collections: predictions are lazy and those of arrays, and fits learn from them or say who does."""

import dask.array as da
import numpy as np
import pytest
from checks.partitions import as_array
from common.estimators import assert_close, cases, fitted, fitted_exact, sample

from kernelweave.estimators.shared.base import LAZY_METHODS

LEARNS = ("SSMK", "CGBoost", "AutoKernel", "LearnedKernel", "KernelLearner")


@cases(variants=True)
def test_predictions_of_partitions_are_those_of_rows_in_memory(case):
    X, _ = sample(case)
    model = fitted(case)
    for name in LAZY_METHODS:
        if not hasattr(model, name):
            continue
        lazy = getattr(model, name)(as_array(X, 3))
        assert isinstance(lazy, da.Array)
        expected = np.asarray(getattr(model, name)(X))
        assert lazy.dtype == expected.dtype
        if expected.dtype.kind == "f":
            assert_close(lazy.compute(), expected, 1e-9)
        else:
            np.testing.assert_array_equal(lazy.compute(), expected)


@cases()
def test_fits_of_partitions_are_those_of_rows_in_memory_or_name_an_alternative(case):
    X, y = sample(case)
    model = case.exact_model()
    if any(part in case.name for part in LEARNS):
        model.fit(as_array(X, 3), None if y is None else as_array(np.asarray(y), 3))
        name = "transform" if hasattr(model, "transform") else "predict"
        found, expected = (np.asarray(getattr(each, name)(X)) for each in (model, fitted_exact(case)))
        if expected.dtype.kind == "f":
            assert_close(found, expected, case.close)
        else:
            np.testing.assert_array_equal(found, expected)
    else:
        with pytest.raises(TypeError, match=r"needs all rows in memory, and X is a Dask collection. Use SSMK"):
            model.fit(as_array(X, 3), as_array(np.asarray(y), 3))


@cases()
def test_columns_that_do_not_fit_are_refused_before_anything_is_computed(case):
    X, _ = sample(case)
    name = "transform" if hasattr(case.estimator, "transform") else "predict"
    with pytest.raises(ValueError, match="features"):
        getattr(fitted(case), name)(as_array(X[:, :2], 3))

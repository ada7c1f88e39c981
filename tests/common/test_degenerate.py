"""Rows that say nothing, that repeat, that are few, and features of any magnitude."""

import numpy as np
import pytest
from common.estimators import assert_close, cases, fitted_exact, outputs, sample

from kernelweave import RBF

pytestmark = pytest.mark.filterwarnings(
    "ignore:No base kernel is aligned", "ignore:The learned ridge", "ignore:The labelled rows have equally many"
)


@cases(variants=True)
def test_equal_rows_leave_one_output(case):
    X = np.ones((30, 3))
    y = (np.arange(30) < 10) * 1.0
    model = case.model().fit(X, y)
    found = outputs(model, X)
    assert np.isfinite(found).all()
    assert np.ptp(found, axis=0).max() < 1e-9
    # RKDA takes the classes for equally large, and a graph has a few neighbours of equal rows, whichever.
    if case.task == "classes" and not case.name.startswith(("RKDA", "Harmonic")):
        assert set(model.predict(X)) == {0.0}  # the larger class
    assert np.isfinite(model.objective_).all()


@cases(variants=True)
def test_a_constant_column_and_repeated_rows_do_no_harm(case):
    X, y = sample(case)
    X = np.column_stack([np.vstack([X, X]), np.full(80, 3.0)])
    model = case.model().fit(X, np.concatenate([y, y]))
    assert model.status_.converged
    found = outputs(model, X)
    assert_close(found[40:], found[:40], 1e-9)


@cases("classes", "numbers", "one class", variants=True, where=lambda case: "cv" not in case.parameters)
def test_few_rows_are_enough(case):
    X = np.array([[0.0, 1.0], [3.0, 0.0]])
    y = ["a", "b"] if case.task == "classes" else [1.0, 2.0]
    model = case.model().fit(X, y)
    if case.task == "classes":
        assert model.predict(X).tolist() == y
    assert np.isfinite(model.objective_)


@cases("classes")
def test_one_row_a_class_is_learned(case):
    X = np.eye(3) * 3.0
    if "cv" in case.parameters:
        X, y = np.repeat(X, 2, axis=0), np.repeat(np.arange(3), 2)
    else:
        y = np.arange(3)
    np.testing.assert_array_equal(case.model().fit(X, y).predict(X), y)


def has_no_scale(case):
    """All kernels are of no fixed scale, and their values within double precision."""
    kernels = case.estimator.get_params().get("kernels", RBF())
    return (
        "Polynomial" not in repr(kernels)
        and kernels is not None
        and case.estimator.get_params().get("dtype") != "float32"
        and case.name[:3] + str(getattr(case.estimator, "penalty", "")) not in ("CGBl2", "CGBrkhs")  # as with l1
    )


@cases(variants=True, where=has_no_scale)
@pytest.mark.parametrize("size", [2.0**-332, 2.0**332])  # 1e-100 and 1e100, by which no draw of rows changes either
def test_the_scale_of_features_does_not_matter(case, size):
    X, y = sample(case)
    plain, scaled = fitted_exact(case), case.exact_model().fit(size * X, y)
    assert_close(outputs(scaled, size * X), outputs(plain, X), case.close)

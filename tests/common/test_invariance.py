"""The order of rows and columns and the names of classes change nothing, nor does a seed where nothing is drawn.

Fits take rows in the order of their content, draw columns of trees by what they hold, and deal classes to folds as they
appear. So nothing changes where something is drawn, either: the same rows are.
"""

from functools import cache

import numpy as np
import pytest
from common.estimators import assert_close, cases, outputs, sample

NAMES = np.array(["walnut", "oak", "ash"])  # in the opposite order
ROWS, COLUMNS = np.random.default_rng(5).permutation(40), np.array([2, 0, 1])


@cache
def fit_reference(case, drawn, n_classes):
    X, y = sample(case, n_classes=n_classes)
    return fit(case, X, y, drawn)


def fit(case, X, y, drawn, **options):
    return case.exact_model(**(case.draws if drawn else {}), **options).fit(X, y)


def check_same(case, rows, columns, is_renamed, drawn=True, n_classes=2):
    """Fit the same rows in another order, of other columns and of classes with other names; predict all alike."""
    X, y = sample(case, n_classes=n_classes)
    expected = fit_reference(case, drawn, n_classes)
    given = name_classes(y) if is_renamed else y
    found = fit(case, X[rows][:, columns], given[rows], drawn)
    values = outputs(found, X[:, columns])
    if is_renamed:
        assert found.classes_.tolist() == sorted(NAMES[:n_classes])
        values = values[:, ::-1] if values.ndim == 2 else -values
    assert_close(values, outputs(expected, X), case.close)
    if case.task == "classes":
        known = found.predict(X[:, columns])
        clear = np.abs(outputs(expected, X)) > case.close
        same = known == (NAMES[expected.predict(X).astype(int)] if is_renamed else expected.predict(X))
        assert (same | ~clear).all() if clear.ndim == 1 else same.all()
    if hasattr(expected, "transduction_") and not is_renamed:
        assert_close(found.transduction_, expected.transduction_[rows], case.close)


def name_classes(y):
    return np.array([None if np.isnan(each) else NAMES[int(each)] for each in y], dtype=object)


@cases()
def test_neither_order_nor_names_change_anything(case):
    check_same(case, ROWS, COLUMNS, case.task == "classes")


@pytest.mark.slow
@pytest.mark.parametrize("drawn", [False, True], ids=["exact", "drawn"])
@pytest.mark.parametrize("change", ["rows", "columns"])
@cases(variants=True)
def test_no_order_changes_anything_by_itself(case, change, drawn):
    rows, columns = (ROWS, slice(None)) if change == "rows" else (slice(None), COLUMNS)
    check_same(case, rows, columns, False, drawn)


@pytest.mark.slow
@pytest.mark.parametrize("drawn", [False, True], ids=["exact", "drawn"])
@pytest.mark.parametrize("n_classes", [2, 3])
@cases("classes", variants=True, where=lambda case: case.estimator.get_params().get("scatter") != "within")  # for two
def test_the_names_of_classes_change_nothing(case, n_classes, drawn):
    check_same(case, slice(None), slice(None), True, drawn, n_classes)


def draws_nothing(case):
    """Models of models hold out rows, as do choices; default libraries hold forests and landmarks."""
    named = case.estimator.get_params()
    if {"cv", "auto"} & {str(named.get(name)) for name in ("C", "ratio", "ramp", "weighting")}:
        return False
    is_default = case.kernel is not None and named[case.kernel] is None and not case.name.startswith("Harmonic")
    return not (case.combines_models or is_default or named.get("n_landmarks") or case.kernel is None)


@cases(variants=True, where=draws_nothing)
def test_another_seed_changes_nothing_where_nothing_is_drawn(case):
    X, y = sample(case)
    found = fit(case, X, y, False).set_params(random_state=1).fit(X, y)
    assert_close(outputs(found, X), outputs(fit_reference(case, False, 2), X), case.close)

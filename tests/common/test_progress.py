"""Callbacks, limits, and what is printed while a fit runs."""

import re
import sys
import warnings

import numpy as np
import pytest
from common.estimators import ESTIMATORS, cases, having, outputs, sample
from sklearn.exceptions import ConvergenceWarning

from kernelweave.solvers.result import FitState, Status

pytestmark = pytest.mark.filterwarnings("ignore:The labelled rows have equally many")


@cases(where=having("callback"))
def test_a_callback_sees_steps_and_stops_the_fit(case):
    X, y = sample(case, n_classes=3)
    seen = []
    model = case.model(callback=lambda state: seen.append(state) or True)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)  # who stops a fit knows it
        model.fit(X, y)
    assert model.status_ is (Status.SEARCH_STOPPED if case.combines_models else Status.CALLBACK)
    assert not model.status_.converged
    assert np.isfinite(outputs(model, X)).all()
    assert model.certificate_.gap >= 0.0
    for state in seen:
        assert isinstance(state, FitState)
        assert state.iteration in (0, 1)
        if case.combines_models:  # whose objective is known at the end
            continue
        assert np.isfinite(state.objective)
        assert state.gap >= 0.0
        assert state.target > 0.0
        assert state.problem < state.n_problems
    if "cv" not in case.parameters:  # whose folds are fits of their own
        assert len(seen) <= seen[0].n_problems  # who says stop is asked no more


@cases(where=having("callback"))
def test_a_callback_that_says_nothing_changes_nothing(case):
    X, y = sample(case)
    seen = []
    model = case.model(callback=seen.append).fit(X, y)
    assert seen
    assert model.status_ is Status.CONVERGED
    np.testing.assert_array_equal(outputs(model, X), outputs(case.model().fit(X, y), X))


@cases()
def test_fits_are_silent_by_default(case, capsys):
    case.model().fit(*sample(case))
    assert capsys.readouterr() == ("", "")


@cases(where=having("verbose"), variants=True)
def test_progress_is_printed_line_by_line(case, capsys):
    model = case.model(verbose=2).fit(*sample(case))
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    pattern = case.line.format(name=case.name)
    assert [line for line in lines if not re.fullmatch(pattern, line)] == []
    assert len(lines) >= (2 if case.combines_models else model.n_iter_)


@cases(where=having("verbose"))
@pytest.mark.parametrize("verbose", [1, 2])
def test_nothing_is_printed_where_standard_error_is_closed(case, verbose, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stderr", None)
    case.model(verbose=verbose).fit(*sample(case))
    assert capsys.readouterr().out == ""


LIMITS = [pytest.param(case, limit, id=f"{case.name}-{limit}") for case in ESTIMATORS for limit in case.limits]


@pytest.mark.parametrize("case, limit", LIMITS)
def test_a_limit_warns_with_the_number_and_a_remedy_at_the_line_that_called(case, limit):
    options, status = case.limits[limit]
    X, y = sample(case, n_classes=3)
    model = case.model(**options)
    name = {Status.MAX_ITER: "max_iter", Status.MAX_COLUMNS: "max_columns", Status.MAX_TIME: "max_time"}[status]
    measure = r"((Certified relative gap|Relative distance from stationarity): \S+|No useful bound .*)"
    with pytest.warns(ConvergenceWarning, match=rf"Stopped at {name} .* {measure}, tolerance: .* [A-Z]") as caught:
        model.fit(X, y)
    assert [warning.filename for warning in caught] == [__file__]
    assert model.status_ is status
    assert np.isfinite(outputs(model, X)).all()

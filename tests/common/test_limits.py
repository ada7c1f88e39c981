"""Time limits, jobs and progress: every estimator has them, and they mean the same."""

import inspect
import warnings

import numpy as np
import pytest
from common.estimators import cases, outputs, sample
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from kernelweave.estimators.shared.progress import LIMIT_CONSTRAINTS
from kernelweave.solvers.deadline import OutOfTimeError
from kernelweave.solvers.result import Status

pytestmark = pytest.mark.filterwarnings("ignore:The labelled rows have equally many")
AT_ONCE, NEVER = 1e-9, 1e6  # seconds: over before anything is done, and after everything


@cases(variants=True)
def test_every_estimator_has_a_time_limit_jobs_and_progress_by_keyword(case):
    parameters = inspect.signature(type(case.estimator)).parameters
    for name, default in (("max_time", None), ("n_jobs", None), ("verbose", 0)):
        assert parameters[name].kind is inspect.Parameter.KEYWORD_ONLY
        assert parameters[name].default == default
        assert case.estimator._constraints[name].words == LIMIT_CONSTRAINTS[name].words


def fit_or_say_why(model, X, y):
    """Why there was no time for a model; nothing if there was."""
    try:
        model.fit(X, y)
    except OutOfTimeError as error:
        return str(error)
    return ""


@cases(variants=True)
def test_a_time_limit_ends_with_a_model_that_says_so_or_with_an_error_that_says_why(case):
    X, y = sample(case, n_classes=case.max_classes)
    model = case.model(max_time=AT_ONCE)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        error = fit_or_say_why(model, X, y)
    if error:
        assert error.startswith(f"max_time={AT_ONCE:g} s was over before ")
        assert error.endswith(": nothing can be predicted yet. Raise max_time.")
        with pytest.raises(NotFittedError):
            check_is_fitted(model)
        return
    assert np.isfinite(outputs(model, X)).all()
    if model.status_ is Status.MAX_TIME:
        assert "max_time" in "".join(str(warning.message) for warning in caught)
    else:  # it took no more than what is always done
        assert model.status_ in (Status.CONVERGED, Status.SEARCH_TIME)


@cases()
def test_a_time_limit_that_does_not_bind_changes_no_bit(case):
    X, y = sample(case)
    models = [case.model(max_time=limit).fit(X, y) for limit in (None, NEVER)]
    np.testing.assert_array_equal(outputs(models[0], X), outputs(models[1], X))
    assert models[0].status_ is models[1].status_

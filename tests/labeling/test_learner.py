import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from checks.partial_tables import fill, table

from kernelweave.labeling.learner import STOPPED_EARLY, describe_learner, fit_learner, make_learner, note_early_stop
from kernelweave.solvers.result import Certificate, Status


def test_each_source_has_a_family_of_kernels():
    frame, cells, empty, _ = table()
    report = fill(frame, cells, empty, sources={"left": ["a", "kind"], "right": ["b"]}).report
    assert {usage["source"] for usage in report["kernels"]} == {"left", "right", "all columns"}  # these are deformed


def test_the_command_speaks_of_its_own_options_and_gives_the_gap():
    frame, cells, empty, _ = table()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the note takes the place of the estimators' warning
        report = fill(frame, cells, empty, time_limit=1e-6).report
    assert report["certificate"]["status"] == "Stopped at --time-limit before the certificate reached the tolerance."
    (note,) = (note for note in report["warnings"] if "--time-limit" in note)
    assert f"gap: {report['certificate']['relative']:.1e}, tolerance: 1.0e-06. Raise --time-limit, or accept" in note
    assert "max_time" not in str(report)


@pytest.mark.parametrize("status", Status)
def test_a_fit_that_stopped_early_has_a_remedy_and_a_converged_one_needs_none(status):
    certificate = Certificate(0.5, 2.0)
    estimator = SimpleNamespace(status_=status, certificate_=certificate, tol=1e-6)
    notes = note_early_stop(estimator)
    assert len(notes) == (status.name in STOPPED_EARLY)
    assert not (notes and status.converged)
    estimator.kernel_usage_, estimator.n_columns_ = [], 0
    estimator.candidates_ = estimator.transduction_ = np.zeros(3)
    sentence = describe_learner(estimator)["certificate"]["status"]
    assert sentence == (notes[0].partition(" Certified")[0] if notes else status.value)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_a_learner_is_fitted_as_a_copy(task):
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = np.where(X[:, 0] > 0, 1.0, 0.0)
    if task == "classification":
        y = y.astype(str).astype(object)
    y[20:] = None
    learner = make_learner(task, None, 0, None)
    fitted = fit_learner(learner, X, y)
    assert not hasattr(learner, "status_")
    assert fitted.status_ is Status.CONVERGED

from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from kernelweave.solvers.result import Certificate, FitState, SolverResult, Status


def test_every_status_is_a_sentence():
    assert all(status.value[0].isupper() and status.value.endswith(".") for status in Status)
    assert [status for status in Status if status.converged] == [Status.CONVERGED, Status.SUPERVISED]


def test_a_certificate_is_relative_to_the_size_of_the_objective():
    assert Certificate(0.5, -10.0).relative == pytest.approx(0.05)
    assert str(Certificate(0.5, 10.0)) == "duality gap 0.5 (0.05 of the objective 10)"


def test_a_certificate_of_nothing_is_zero():
    assert Certificate(0.0, 0.0).relative == 0.0


def test_results_cannot_be_changed():
    result = SolverResult(np.zeros(1), 0.0, Certificate(0.0, 0.0), Status.CONVERGED, 1)
    with pytest.raises(FrozenInstanceError):
        result.objective = 1.0


def test_the_state_of_a_fit_prints_a_line_whatever_its_details_hold():
    state = FitState(
        iteration=3,
        objective=2.0,
        bound=1.5,
        gap=0.5,
        target=1e-6,
        seconds=0.25,
        phase="newton",
        problem=1,
        n_problems=3,
        details={"weights": np.zeros((1000, 1000)), "n_solves": 4},
    )
    assert repr(state) == (
        "<FitState 'newton': iteration 3, problem 2 of 3, objective 2, relative gap 0.25 (target 1e-06), 0.25 s, "
        "details: weights, n_solves>"
    )

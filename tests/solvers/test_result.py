from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from kernelweave.solvers.result import Certificate, SolverResult, Status


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

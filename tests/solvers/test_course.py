from dataclasses import dataclass

import numpy as np
import pytest

from kernelweave.solvers.course import Course
from kernelweave.solvers.result import SolverResult, Status


@dataclass(frozen=True, kw_only=True)
class Result(SolverResult):
    found: str


def course(tol=1e-3, max_iter=100, callback=None, patience=3, min_decrease=0.0):
    return Course[str](tol, max_iter, callback, patience=patience, min_decrease=min_decrease)


def ends(run, objective, gap, point="here", weights=(0.5, 0.5, 0.0)):
    return run.ends(np.array(weights), objective, gap, point, n_looks=len(run.history) + 7)


def test_each_point_is_recorded_and_shown_to_the_callback():
    seen = []
    run = course(callback=seen.append)
    assert not ends(run, 2.0, 1.0)
    run.step = "newton"
    assert not ends(run, 1.0, 0.5)
    keys = ["iteration", "n_looks", "objective", "gap", "relative_gap", "seconds", "n_active", "step"]
    assert [list(record) for record in run.history] == [keys, keys]
    assert [record["step"] for record in run.history] == ["start", "newton"]
    assert [(state.iteration, state.details["n_looks"], state.gap, state.target) for state in seen] == [
        (0, 7, 1.0, 1e-3),
        (1, 8, 0.5, 1e-3),
    ]
    assert [(state.phase, state.bound) for state in seen] == [("start", 1.0), ("newton", 0.5)]
    assert seen[1].relative_gap == 0.5 == run.history[1]["relative_gap"]
    assert run.history[0]["n_active"] == 2


@pytest.mark.parametrize(
    "options, gap, status",
    [
        ({}, 1e-4, Status.CONVERGED),
        ({"callback": lambda state: True}, 1e-4, Status.CONVERGED),
        ({"callback": lambda state: True, "max_iter": 0}, 1.0, Status.CALLBACK),
        ({"max_iter": 0, "patience": 0}, 1.0, Status.MAX_ITER),
        ({"patience": 0}, 1.0, Status.PRECISION),
    ],
)
def test_the_first_reason_that_holds_is_the_status(options, gap, status):
    run = course(**options)
    assert ends(run, 1.0, gap)
    assert run.status is status


def test_steps_without_progress_exhaust_the_patience():
    run = course(patience=2)
    assert not ends(run, 1.0, 0.5)
    assert not ends(run, 1.0, 0.5)
    assert not ends(run, 1.0, 0.4)  # the gap is smaller
    assert not ends(run, 1.0, 0.39)
    assert run.n_stalls == 1
    assert ends(run, 1.0, 0.39)
    assert run.status is Status.PRECISION


@pytest.mark.parametrize("min_decrease, n_stalls", [(0.0, 0), (0.01, 1)])
def test_a_decrease_that_is_small_beside_the_gap_can_be_none(min_decrease, n_stalls):
    run = course(min_decrease=min_decrease)
    ends(run, 1.0, 0.5)
    ends(run, 0.999, 0.5)
    assert run.n_stalls == n_stalls


def test_the_result_is_the_point_with_the_smallest_gap():
    run = course(max_iter=2)
    ends(run, 3.0, 0.9, "first")
    ends(run, 2.0, 0.3, "second", weights=(0.0, 0.0, 1.0))
    assert ends(run, 1.0, 0.4, "third")
    result = run.result(Result, kind="stationarity", found=run.best.point)
    assert result.found == "second"
    assert result.x.tolist() == [0.0, 0.0, 1.0]
    assert (result.objective, result.certificate.gap, result.certificate.kind) == (2.0, 0.3, "stationarity")
    assert (result.status, result.n_iter, len(result.history)) == (Status.MAX_ITER, 2, 3)


def test_a_first_point_without_a_finite_gap_is_kept_until_there_is_a_better_one():
    run = course()
    ends(run, 1.0, np.inf, "first")
    assert run.best.point == "first"
    ends(run, 1.0, 2.0, "second")
    assert run.best.point == "second"

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest

from kernelweave.solvers.machines.dc import descend
from kernelweave.solvers.result import Status


@dataclass(frozen=True)
class Well:
    """A point of the double well ``x^4 - 2 x^2``; what is subtracted, ``2 x^2``, has the slope ``4 x``."""

    x: float

    @property
    def objective(self):
        return self.x**4 - 2 * self.x**2

    @property
    def slopes(self):
        return np.array([4 * self.x])


def well_bound(x):
    """The minimum of ``z^4 - 2 x^2 - 4 x (z - x)`` over z, at the cubic root of x."""
    z = np.cbrt(x)
    return z**4 - 2 * x**2 - 4 * x * (z - x)


def next_well(point, tol=0.0):
    return Well(float(np.cbrt(point.x))), float(well_bound(point.x))


@dataclass(frozen=True)
class Kink:
    """A point of ``x^2 - 2 |x|``, with the slope 2 sign(x) of what is subtracted."""

    x: float

    @property
    def objective(self):
        return self.x**2 - 2 * abs(self.x)

    @property
    def slopes(self):
        return np.array([2 * np.sign(self.x)])


def next_kink(point, tol=0.0):
    sign = float(np.sign(point.x))
    return Kink(sign), -(sign**2)


@pytest.mark.parametrize("start", [0.3, -0.3, 1e-4, 5.0, -5.0])
def test_the_descent_ends_in_the_well_of_its_side(start):
    result = descend(next_well, Well(start), tol=1e-10, max_iter=100)
    assert result.status is Status.CONVERGED
    # P(x) - P(1) is about 4 (x - 1)^2, and the gap 3/2 (x - 1)^2 about a root near 1: the root of the tolerance.
    assert result.point.x == pytest.approx(np.sign(start), abs=1e-4)
    assert result.objective == pytest.approx(-1.0, abs=1e-8)
    np.testing.assert_array_equal(result.x, result.point.slopes)


@pytest.mark.parametrize("start", [0.01, 0.9, -3.0])
def test_the_objective_never_increases(start):
    result = descend(next_well, Well(start), tol=1e-12, max_iter=100)
    course = np.array([Well(start).objective, *(record["objective"] for record in result.history)])
    assert np.all(np.diff(course) <= 0)
    assert [record["iteration"] for record in result.history] == list(range(1, result.n_iter + 1))
    assert result.history[-1]["objective"] == result.objective


@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-8])
def test_the_certificate_is_how_far_the_point_is_above_the_minimum_of_its_convex_problem(tol):
    result = descend(next_well, Well(0.2), tol=tol, max_iter=100)
    point = result.point
    # to rounding: at a gap of 1e-8 eight digits cancel
    assert result.certificate.gap == pytest.approx(point.objective - well_bound(point.x), abs=1e-15)
    assert 0 <= result.certificate.relative <= tol
    assert result.certificate.kind == "stationarity"
    assert result.certificate.objective == result.objective == point.objective


def test_a_looser_tolerance_needs_fewer_problems():
    counts = [descend(next_well, Well(0.2), tol=tol, max_iter=100).n_iter for tol in (1e-1, 1e-3, 1e-6, 1e-12)]
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]


@pytest.mark.parametrize("start", [0.3, -7.0])
def test_a_point_with_the_same_slopes_minimises_its_own_problem(start):
    result = descend(next_kink, Kink(start), tol=1e-12, max_iter=100)
    assert (result.status, result.n_iter, result.certificate.gap) == (Status.CONVERGED, 1, 0.0)
    assert result.point.x == np.sign(start)
    assert result.history[0]["n_changed"] == 0


def test_the_top_between_the_wells_is_stationary():
    # It is no minimum: the certificate says nothing about other points, and the descent stays.
    result = descend(next_well, Well(0.0), tol=1e-12, max_iter=100)
    assert (result.status, result.objective) == (Status.CONVERGED, 0.0)


@pytest.mark.parametrize("max_iter", [1, 3])
def test_the_limit_is_a_status_and_its_certificate_that_of_the_point_before(max_iter):
    result = descend(next_well, Well(0.01), tol=1e-12, max_iter=max_iter)
    assert result.status is Status.MAX_ITER
    assert result.n_iter == len(result.history) == max_iter
    assert result.point.x == pytest.approx(0.01 ** (3.0**-max_iter))
    before = 0.01 ** (3.0 ** (1 - max_iter))
    assert result.certificate.gap == pytest.approx(Well(before).objective - well_bound(before), rel=1e-9)


def test_the_callback_sees_each_record_and_may_stop():
    seen = []

    def callback(record):
        seen.append(record)
        return record["iteration"] == 2

    result = descend(next_well, Well(0.01), tol=1e-12, max_iter=100, on_step=callback)
    assert result.status is Status.CALLBACK
    assert result.n_iter == 2
    assert list(result.history) == seen
    assert set(seen[0]) >= {"iteration", "objective", "gap", "n_changed"}


def test_a_callback_at_the_last_step_does_not_hide_that_it_converged():
    result = descend(next_kink, Kink(0.5), tol=1e-12, max_iter=100, on_step=lambda record: True)
    assert result.status is Status.CONVERGED


@dataclass(frozen=True)
class Rough:
    """A point that inaccurate problems lead to."""

    objective: float
    slopes: np.ndarray


@pytest.mark.parametrize("worse", [0.0, 0.5])
def test_problems_too_inaccurate_to_descend_are_a_status_and_the_point_stays(worse):
    start = Rough(1.0, np.array([0.0]))
    result = descend(lambda point, tol: (Rough(1.0 + worse, np.array([1.0])), 0.9), start, tol=1e-3, max_iter=100)
    assert result.status is Status.PRECISION
    assert result.n_iter == 1
    assert result.point is start
    assert result.certificate.gap == pytest.approx(0.1)


def test_a_bound_above_the_objective_by_rounding_is_no_gap():
    start = Rough(1.0, np.array([0.0]))
    result = descend(lambda point, tol: (Rough(1.0, np.array([1.0])), 1.0 + 1e-15), start, tol=1e-3, max_iter=100)
    assert (result.status, result.certificate.gap) == (Status.CONVERGED, 0.0)


def test_a_start_without_an_objective_is_left():
    # As after stretching: the slopes of the start are not those of a point whose objective is known.
    start = Rough(np.inf, np.array([0.0]))
    result = descend(lambda point, tol: (Rough(2.0, np.array([1.0])), 1.999999), start, tol=1e-3, max_iter=100)
    assert (result.objective, result.status) == (2.0, Status.CONVERGED)


def test_the_same_slopes_do_not_prove_what_an_inaccurate_problem_cannot():
    start = Rough(1.0, np.array([0.0]))
    result = descend(lambda point, tol: (Rough(0.9, np.array([0.0])), 0.5), start, tol=1e-3, max_iter=100)
    assert result.certificate.relative > 1e-3
    assert not result.status.converged


@pytest.mark.parametrize("worse", [1e-3, 1.0, 1e6])
@pytest.mark.parametrize("moves", [False, True])  # a point that stays has the same slopes
def test_inaccurate_problems_of_no_use_are_solved_more_accurately_and_not_again_and_again(worse, moves):
    asked = []

    def solve_badly(point, accuracy):
        asked.append(accuracy)
        return Well(point.x + worse * moves), point.objective - worse

    result = descend(solve_badly, Well(1.0), tol=1e-6, max_iter=1000, exact=False)
    assert (result.status, result.point.x) == (Status.PRECISION, 1.0)
    assert asked[0] is None
    assert all(after <= before for before, after in pairwise(asked[1:]))
    assert asked[-1] <= 1e-6
    assert len(asked) <= 12  # a tenth each time, from 1 at most

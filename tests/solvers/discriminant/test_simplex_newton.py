from itertools import pairwise

import numpy as np
import pytest

from kernelweave.solvers import simplex
from kernelweave.solvers.discriminant.simplex_newton import Derivatives, first_weights, minimise_on_simplex
from kernelweave.solvers.result import Status


class Shares:
    """sum a_i / w_i, whose best weights are as the roots of the a_i; infinite at zero weights with a_i > 0."""

    def __init__(self, a, noise=0.0):
        self.a, self.noise = np.asarray(a, dtype=float), noise
        self.n_weights, self.n_cholesky = len(self.a), 0

    def value(self, weights):
        self.n_cholesky += 1
        self.weights = weights
        if np.any((weights <= 0.0) & (self.a > 0.0)):
            return np.inf
        return float(self._shares(1).sum())

    def derivatives(self):
        return Derivatives(
            self._shares(1).sum(), self._shares(2), np.diag(2 * self._shares(3)), self.noise, self.weights
        )

    def _shares(self, power):
        return self.a / np.where(self.a > 0.0, self.weights, 1.0) ** power

    @property
    def best(self):
        return np.sqrt(self.a) / np.sqrt(self.a).sum()


class Linear:
    """A linear function, the best weights of which are a vertex."""

    def __init__(self, c):
        self.c, self.n_weights, self.n_cholesky = np.asarray(c, dtype=float), len(c), 0

    def value(self, weights):
        self.weights = weights
        return float(self.c @ weights)

    def derivatives(self):
        zeros = np.zeros((len(self.c), len(self.c)))
        return Derivatives(float(self.c @ self.weights), -self.c, zeros, 0.0, self.weights)


@pytest.mark.parametrize("a", [[1.0, 4.0, 9.0], [1.0, 1e-4, 1e4], [1.0, 0.0, 2.0], [5.0]])
def test_it_finds_the_minimum(a):
    function = Shares(a)
    found = minimise_on_simplex(function, tol=1e-10)
    assert found.status is Status.CONVERGED
    np.testing.assert_allclose(found.x, function.best, atol=1e-6)
    assert found.objective == pytest.approx(np.sqrt(function.a).sum() ** 2, rel=1e-11)
    assert found.n_cholesky == function.n_cholesky <= 40


def test_it_finds_a_vertex_without_curvature():
    found = minimise_on_simplex(Linear([3.0, 1.0, 2.0]))
    assert found.x == pytest.approx([0.0, 1.0, 0.0])
    assert (found.status, found.n_iter) == (Status.CONVERGED, 1)


def test_the_certificate_bounds_the_error_at_every_step():
    function = Shares([1.0, 4.0, 100.0])
    optimum = 13.0**2
    found = minimise_on_simplex(function, tol=1e-10)
    for record in found.history:
        assert 0.0 <= record["objective"] - optimum + 1e-9 <= record["gap"] + 2e-9
    objectives = [record["objective"] for record in found.history]
    # near the optimum a step may raise the last digits
    assert all(b <= a * (1 + 1e-12) for a, b in pairwise(objectives))
    counts = [record["n_cholesky"] for record in found.history]
    assert counts == sorted(counts)
    assert {"iteration", "relative_gap", "seconds", "n_active", "step"} <= set(found.history[0])


def test_near_the_optimum_the_gap_falls_faster_than_by_a_factor():
    gaps = [record["relative_gap"] for record in minimise_on_simplex(Shares([1.0, 2.0, 3.0]), tol=1e-10).history]
    assert gaps[-1] < 1e-4 * gaps[-2]


def test_the_gradient_takes_over_where_newton_does_not_descend(monkeypatch):
    function = Shares([1.0, 2.0, 3.0])
    monkeypatch.setattr(simplex, "minimise_quadratic", lambda H, c: np.eye(3)[0])
    found = minimise_on_simplex(function, tol=1e-6, max_iter=500)
    assert found.status is Status.CONVERGED
    assert "projected gradient" in {record["step"] for record in found.history}
    np.testing.assert_allclose(found.x, function.best, atol=1e-3)


def test_it_ends_where_rounding_rules(monkeypatch):
    function = Shares([1.0, 2.0, 3.0])
    value = function.value
    start = function.best + 0.01 * np.array([1.0, -1.0, 0.0])
    lowest = []

    def stuck(weights):  # nothing is better than the start
        lowest.append(value(weights))
        return lowest[0] if len(lowest) == 1 else lowest[0] * (1 + 1e-9)

    monkeypatch.setattr(function, "value", stuck)
    found = minimise_on_simplex(function, tol=1e-12, start=start)
    assert found.status is Status.PRECISION
    assert found.certificate.relative > 1e-12
    np.testing.assert_allclose(found.x, start)


def test_noise_lets_steps_pass_but_not_for_ever():
    class Noisy(Shares):
        def derivatives(self):  # a gradient that no point can make flat
            exact = super().derivatives()
            return Derivatives(
                exact.objective, exact.forms + np.array([1e-3, 0, 0]), exact.hessian, 1e-2, exact.solution
            )

    found = minimise_on_simplex(Noisy([1.0, 1.0, 1.0]), tol=1e-30)
    assert found.status in (Status.PRECISION, Status.CONVERGED)
    assert found.n_iter < 30


def test_it_stops_at_max_iter():
    found = minimise_on_simplex(Shares([1.0, 1e6]), max_iter=1)
    assert (found.status, found.n_iter, len(found.history)) == (Status.MAX_ITER, 1, 2)
    assert minimise_on_simplex(Shares([1.0, 1e6]), max_iter=0).x == pytest.approx([0.5, 0.5])


def test_the_callback_sees_each_step_and_may_stop_it():
    states = []
    found = minimise_on_simplex(Shares([1.0, 1e6]), callback=lambda state: states.append(state) or state.iteration == 2)
    assert (found.status, len(states)) == (Status.CALLBACK, 3)
    assert states[-1].details["weights"] is found.x
    assert states[-1].target == 1e-6
    assert states[0].relative_gap == found.history[0]["relative_gap"]


def test_a_start_at_the_optimum_is_the_end():
    function = Shares([1.0, 4.0])
    found = minimise_on_simplex(function, start=7.0 * function.best)
    assert (found.n_iter, found.status) == (0, Status.CONVERGED)


def test_equal_weights_are_mixed_into_a_start_of_infinite_value():
    found = minimise_on_simplex(Shares([1.0, 4.0]), start=np.array([1.0, 0.0]), max_iter=0)
    assert found.x == pytest.approx([0.75, 0.25])


@pytest.mark.parametrize("start", [[1.0], [1.0, -1.0], [0.0, 0.0], [1.0, np.nan]])
def test_a_start_off_the_simplex_is_refused(start):
    with pytest.raises(ValueError, match="a weight >= 0 for each of the 2 terms"):
        first_weights(np.array(start), 2)

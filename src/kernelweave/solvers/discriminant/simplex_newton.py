r"""Newton's method for smooth convex functions of weights that sum to one.

.. math:: \min_w\; F(w) \quad \text{s.t.} \quad w \ge 0,\; \sum_p w_p = 1 .

Each step minimises the quadratic model of :math:`F` over the whole simplex, and is shortened until :math:`F` falls.
What costs is a value of :math:`F` (a Cholesky factorisation), so there should be few. With :math:`h = -\nabla F` every
point bounds the optimum from below, as :math:`F` is convex:

.. math:: F(w) - F^* \le \max_p h_p - \sum_p w_p h_p .
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from .. import simplex
from ..course import Course
from ..deadline import NO_DEADLINE, Deadline
from ..result import FitState, NotFiniteError, SolverResult, Status

ARMIJO_SHARE = 1e-4  # share of the decrease that the slope promises (Armijo)
BOUNDARY_SHARE = 0.99  # share of a step to the boundary that is taken where F is infinite on it
MAX_SHORTENINGS = 8  # times that a step of Newton is shortened before the gradient takes over
MAX_GRADIENT_SHORTENINGS = 40  # times that a step along the gradient is shortened
MIN_DECREASE = 1e-13  # of F: a smaller change is none
MAX_VALUE = 1e150  # value of F whose derivatives do not overflow
MAX_STALLS = 3  # steps in a row that lower neither F nor the gap, after which rounding is to blame


@dataclass(frozen=True)
class Derivatives:
    """What a function knows at some weights.

    Attributes
    ----------
    objective : float
    forms : ndarray of shape (n_weights,)
        Minus the gradient.
    hessian : ndarray of shape (n_weights, n_weights)
    noise : float
        By how much rounding may falsify the values that are compared.
    solution : ndarray
        What the function solved for, from which the dual follows.
    """

    objective: float
    forms: np.ndarray
    hessian: np.ndarray
    noise: float
    solution: np.ndarray


class Smooth(Protocol):
    """A convex function of weights that is twice differentiable where it is finite."""

    n_weights: int
    n_cholesky: int

    def value(self, weights: np.ndarray) -> float:
        """Return F, or infinity."""

    def derivatives(self) -> Derivatives:
        """Return the derivatives at the weights of the last value, which was finite."""


@dataclass(frozen=True, kw_only=True)
class DiscriminantResult(SolverResult):
    """Weights of kernels on the unit simplex.

    Attributes
    ----------
    dual : ndarray
        The coefficients that belong to the weights.
    forms : ndarray of shape (n_weights,)
        Minus the gradient.
    n_cholesky : int
        Factorisations.
    """

    dual: np.ndarray
    forms: np.ndarray
    n_cholesky: int


Callback = Callable[[FitState], object]


def minimise_on_simplex(
    function: Smooth,
    *,
    start: np.ndarray | None = None,
    tol: float = 1e-6,
    max_iter: int = 100,
    callback: Callback | None = None,
    deadline: Deadline = NO_DEADLINE,
) -> DiscriminantResult:
    """Minimise a function of weights on the unit simplex.

    Parameters
    ----------
    function : Smooth
    start : ndarray of shape (n_weights,), optional
        Weights to start from, brought to sum 1; equal by default. Where F is infinite, equal ones are mixed in.
    tol : float
        Stop when the duality gap is at most ``tol`` times the absolute objective.
    max_iter : int
        Largest number of steps.
    callback : callable, optional
        Called with a `FitState` after each step; a true answer stops.
    deadline : Deadline
        When it is over, the best point so far is returned.

    Returns
    -------
    DiscriminantResult
        ``x`` holds the weights, ``dual`` what the function solved for there. ``history`` has a record a step, with the
        name of the step taken.
    """
    course = Course[Derivatives](tol, max_iter, callback, patience=MAX_STALLS, deadline=deadline)
    weights = first_weights(start, function.n_weights)
    if not np.isfinite(function.value(weights)):
        weights = 0.5 * (weights + np.full(len(weights), 1.0 / len(weights)))
        require_finite_value(function.value(weights))
    at = function.derivatives()
    while not course.ends(
        weights, at.objective, _measure_gap(weights, at.forms), at, n_cholesky=(n_cholesky := function.n_cholesky)
    ):
        moved = _newton_step(function, weights, at)
        course.step = "newton"
        if moved is None:
            moved = _gradient_step(function, weights, at)
            course.step = "projected gradient"
        if moved is None:
            course.status = Status.PRECISION
            break
        weights, at = moved, function.derivatives()
    best = course.best.point
    return course.result(DiscriminantResult, dual=best.solution, forms=best.forms, n_cholesky=n_cholesky)


def first_weights(start: np.ndarray | None, n_weights: int) -> np.ndarray:
    """Return weights to start from, on the unit simplex."""
    if start is None:
        return np.full(n_weights, 1.0 / n_weights)
    if np.shape(start) != (n_weights,) or not np.all(np.isfinite(start) & (start >= 0)) or not np.any(start):
        raise ValueError(f"start must hold a weight >= 0 for each of the {n_weights} terms, not all 0; got {start}.")
    return np.asarray(start, dtype=float) / np.sum(start)


def require_finite_value(value: float) -> float:
    """Return the first value of a function, or say why there is none."""
    if not np.isfinite(value):
        raise NotFiniteError(
            "The first matrix is not positive definite in double precision: the kernels are singular and the ridge is "
            "too small beside them, or they hold NaN. Pass a larger ridge, or check the kernels."
        )
    return value


def _measure_gap(weights: np.ndarray, forms: np.ndarray) -> float:
    return float(max(0.0, forms.max() - weights @ forms))


def _newton_step(function: Smooth, weights: np.ndarray, at: Derivatives) -> np.ndarray | None:
    """Return lower weights on the way to the minimum of the quadratic model, where the function was evaluated last."""
    target = simplex.minimise_quadratic(at.hessian, -at.forms - at.hessian @ weights)
    return _search(function, weights, target - weights, at, MAX_SHORTENINGS)


def _gradient_step(function: Smooth, weights: np.ndarray, at: Derivatives) -> np.ndarray | None:
    """Return lower weights along the projected gradient; its length is that of the curvature along it."""
    size = max(float(np.abs(at.forms).max()), np.finfo(float).tiny)
    step = simplex.project(weights + at.forms / size) - weights
    curvature, slope = float(step @ at.hessian @ step), -float(at.forms @ step)
    if slope < 0.0 < curvature:
        step = step * min(1.0, -slope / curvature)
    return _search(function, weights, step, at, MAX_GRADIENT_SHORTENINGS)


def _search(
    function: Smooth, weights: np.ndarray, step: np.ndarray, at: Derivatives, n_shorter: int
) -> np.ndarray | None:
    """Shorten a step until the function falls enough; None if it does not."""
    slope, length = -float((at.forms - weights @ at.forms) @ step), 1.0  # the steps sum to zero but for rounding
    if slope >= 0.0:
        return None
    # near the optimum F, unlike its gradient, has no digits left to tell a step by
    most = at.objective + max(at.noise, MIN_DECREASE * abs(at.objective))
    for _ in range(n_shorter):
        trial = np.maximum(0.0, weights + length * step)
        trial /= trial.sum()
        value = function.value(trial)
        if value <= most + ARMIJO_SHARE * length * slope:
            return trial
        if np.isfinite(value):  # the minimum of a parabola
            length *= float(np.clip(-0.5 * slope * length / (value - at.objective - slope * length), 0.1, 0.5))
        else:
            length *= BOUNDARY_SHARE if length == 1.0 else 0.5
    return None

r"""First-order methods on the weights of kernels: projected gradient, reduced gradient, group-lasso updates.

Each is an object that is called with a value of :math:`J` and returns the next, with the name of its step. They reach
the optimum of Newton's method (:mod:`.weights_newton`) with more machines: the projected gradient is what it falls back
on, the other two are the methods of the literature.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from .. import simplex
from .weighted_svm import Value, WeightedSVM

EPS, TINY = float(np.finfo(float).eps), float(np.finfo(float).tiny)
ARMIJO_SHARE = 1e-4  # share of the decrease that the slope promises (Armijo)
MAX_SHORTENINGS = 12  # times that a step is shortened
MEMORY = 5  # values back that a projected-gradient step may rise to
STEP_RANGE = (1e-12, 1e12)  # of the projected gradient, times the size of the gradient
GOLDEN = (5.0**0.5 - 1.0) / 2.0
SECTION_TOL, MIN_SECTION = 0.1, 1e-6  # of a piece: where golden section ends, and where it does without a lower value
MIN_WEIGHT = 1e-12  # weights below are zero to the reduced gradient


def normalise(weights: np.ndarray, norm: float) -> np.ndarray:
    """Return the weights with norm 1, without the negative ones that rounding makes."""
    weights = np.maximum(0.0, weights)
    return np.asarray(weights / np.linalg.norm(weights, norm))


def shorten(change: float, slope: float) -> float:
    """Return what part of a step to take that changed J thus: the minimum of a parabola, from a tenth to a half."""
    return float(np.clip(-0.5 * slope / max(change - slope, TINY), 0.1, 0.5))


class ProjectedGradientStep:
    r"""Spectral projected gradient: :math:`w + \lambda (\Pi(w - \alpha \nabla J) - w)`, not always downhill.

    The step :math:`\alpha` is that of Barzilai and Borwein; :math:`\lambda` falls from 1 until :math:`J` is below the
    largest of the last values.

    References
    ----------
    E. G. Birgin, J. M. Martinez, M. Raydan: Nonmonotone spectral projected gradient methods on convex sets. SIAM J.
    Optimization 10, 2000.
    """

    def __init__(self, machines: WeightedSVM, accuracy: Callable[[Value], float]):
        self.machines, self.accuracy = machines, accuracy
        self.recent: deque[float] = deque(maxlen=MEMORY)
        self.last: Value | None = None

    def __call__(self, value: Value) -> tuple[Value, str]:
        """Return the next value, and how it was reached."""
        weights, gradient, norm = value.weights, value.gradient, self.machines.norm
        self.recent.append(value.objective)
        step = self._project(weights - self._step_size(value) * gradient) - weights
        slope, length, trial = float(gradient @ step), 1.0, value
        for _ in range(MAX_SHORTENINGS):
            trial = self.machines.solve(
                normalise(weights + length * step, norm), self.accuracy(value), start=trial.duals
            )
            if trial.dual <= max(self.recent) + ARMIJO_SHARE * length * slope:
                break
            length *= shorten(trial.dual - value.dual, slope * length)
        self.last = value
        return trial, "projected gradient"

    def _step_size(self, value: Value) -> float:
        gradient = value.gradient
        least = EPS * float(np.abs(gradient).max())  # equal slopes differ by rounding
        usual = 1.0 / max(float(np.abs(gradient - gradient.mean()).max()), least, TINY)
        if self.last is None:
            return usual
        moved, change = value.weights - self.last.weights, gradient - self.last.gradient
        curvature = float(moved @ change)
        if curvature <= 0.0:
            return usual
        return float(np.clip(moved @ moved / curvature, STEP_RANGE[0] * usual, STEP_RANGE[1] * usual))

    def _project(self, point: np.ndarray) -> np.ndarray:
        norm = self.machines.norm
        return simplex.project(point) if norm == 1.0 else simplex.project_on_ball(point, norm)


class ReducedGradientStep:
    """The reduced gradient of SimpleMKL, on weights that sum to 1.

    The largest weight takes up what the others lose or gain. As long as J falls, the direction is followed to where a
    weight becomes zero, which then leaves it; the last piece is searched as in the program of its authors, by golden
    section down to a tenth of the piece, and further only while no point is lower than its beginning.

    References
    ----------
    A. Rakotomamonjy, F. R. Bach, S. Canu, Y. Grandvalet: SimpleMKL. JMLR 9, 2008, Algorithm 1.
    """

    def __init__(self, machines: WeightedSVM, accuracy: Callable[[Value], float]):
        if machines.norm != 1.0:
            raise ValueError(
                f"The reduced gradient is for weights that sum to 1 (norm 1); got norm {machines.norm:g}. Use another "
                "method."
            )
        self.machines, self.accuracy = machines, accuracy

    def __call__(self, value: Value) -> tuple[Value, str]:
        """Return the next value, and how it was reached."""
        tol, largest = self.accuracy(value), int(np.argmax(value.weights))
        direction = _reduced_gradient(value, largest)
        piece = value  # where the piece of the path begins
        while (falling := direction < 0.0).any():
            ratios = np.where(falling, -piece.weights / np.where(falling, direction, -1.0), np.inf)
            blocker = int(np.argmin(ratios))
            longest = float(ratios[blocker])
            weights = np.maximum(0.0, piece.weights + longest * direction)
            weights[blocker] = 0.0
            trial = self.machines.solve(weights / weights.sum(), tol, start=piece.duals)
            if trial.dual >= piece.dual:
                return self._search(piece, trial, longest * direction, tol), "reduced gradient"
            piece, direction = trial, direction.copy()
            if blocker == largest:  # nothing is left to take up what the others lose or gain
                break
            direction[[blocker, largest]] = 0.0
            direction[largest] = -direction.sum()
        return piece, "reduced gradient"

    def _search(self, value: Value, end: Value, step: np.ndarray, tol: float) -> Value:
        """Return the lowest value that golden section finds along a step, at whose end J has risen."""

        def at(share: float) -> tuple[float, Value]:
            weights = np.maximum(0.0, value.weights + share * step)
            return share, self.machines.solve(weights / weights.sum(), tol, start=value.duals)

        points = [(0.0, value), at(1.0 - GOLDEN), at(GOLDEN), (1.0, end)]
        while True:
            best = min(range(4), key=lambda i: points[i][1].dual)
            (low, high), lowest = (points[max(0, best - 1)], points[min(3, best + 1)]), points[best][1]
            if points[3][0] - points[0][0] <= (MIN_SECTION if lowest is value else SECTION_TOL):
                return lowest
            length = high[0] - low[0]
            left = points[2] if best == 2 else at(high[0] - GOLDEN * length)
            right = points[1] if best == 1 else at(low[0] + GOLDEN * length)
            points = [low, left, right, high]


def _reduced_gradient(value: Value, largest: int) -> np.ndarray:
    """Return the direction of descent that keeps the sum of the weights and leaves zero weights that would fall."""
    reduced = value.gradient - value.gradient[largest]
    direction = np.where((value.weights <= MIN_WEIGHT) & (reduced > 0.0), 0.0, -reduced)
    direction[largest] = 0.0
    direction[largest] = -direction.sum()
    return direction


class GroupLassoStep:
    r"""The closed-form update :math:`w_k \propto (w_k^2 q_k)^{1/(p+1)}`, for any norm p from 1 on.

    It minimises over the weights a bound on :math:`J`, with the functions :math:`w_k K_k x` of the last machine. A
    weight that is zero stays so.
    """

    def __init__(self, machines: WeightedSVM, accuracy: Callable[[Value], float]):
        self.machines, self.accuracy = machines, accuracy

    def __call__(self, value: Value) -> tuple[Value, str]:
        """Return the next value, and how it was reached."""
        norm = self.machines.norm
        sizes = (value.weights**2 * value.forms) ** (1.0 / (norm + 1.0))
        weights = normalise(sizes, norm) if sizes.any() else value.weights  # a function of zero prefers none
        return self.machines.solve(weights, self.accuracy(value), start=value.duals), "group lasso"

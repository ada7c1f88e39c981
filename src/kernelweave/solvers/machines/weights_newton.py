r"""Newton's method on the weights of kernels.

With the set :math:`F` of free support vectors fixed, the duals that maximise :math:`J` at the weights :math:`w` solve a
linear system, so :math:`J` has second derivatives:

.. math:: \nabla^2 J = V^\top P V, \quad V_{\cdot k} = (K_k x)_F / s_k, \quad
    P = K_{FF}^{-1} - \frac{K_{FF}^{-1} 1 1^\top K_{FF}^{-1}}{1^\top K_{FF}^{-1} 1},

where the second term of :math:`P` belongs to the equality. Products :math:`K_k x` give the gradient as well, so that a
step reads the stack of kernels once to price it and once to combine it. The quadratic model is minimised over all
admissible weights; as support vectors come and go its step may be too long, and is shortened until :math:`J` falls.
The model also predicts the duals at the new weights, where the next machine starts.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtrs

from .. import simplex
from ..margin import DualProblem
from .weighted_svm import Value, WeightedSVM
from .weights_gradient import ARMIJO_SHARE, ProjectedGradientStep, normalise, shorten

RIDGE = 1e-8  # of the mean diagonal of the kernel, for duplicated points and kernels of low rank
MAX_SHORTENINGS = 6  # times that a step is shortened before the gradient takes over


class NewtonStep:
    """Steps of Newton's method, or of the projected gradient where Newton's does not descend.

    Parameters
    ----------
    machines : WeightedSVM
    accuracy : callable
        The relative accuracy of the next machines, given the last value.
    """

    def __init__(self, machines: WeightedSVM, accuracy: Callable[[Value], float]):
        self.machines, self.accuracy = machines, accuracy

    def __call__(self, value: Value) -> tuple[Value, str]:
        """Return the next value, and how it was reached."""
        with np.errstate(over="ignore", invalid="ignore"):
            model = _Model(self.machines, value)
        if not np.isfinite(model.hessian).all():  # squares of forms overflow long before forms do
            return ProjectedGradientStep(self.machines, self.accuracy)(value)
        step = model.target(self.machines.norm) - value.weights
        slope, length = float(value.gradient @ step), 1.0
        for _ in range(MAX_SHORTENINGS if slope < 0.0 else 0):
            weights = normalise(value.weights + length * step, self.machines.norm)
            trial = self.machines.solve(weights, self.accuracy(value), model.duals(weights))
            if trial.dual <= value.objective + ARMIJO_SHARE * length * slope:
                return trial, "newton"
            length *= shorten(trial.dual - value.dual, slope * length)
        return ProjectedGradientStep(self.machines, self.accuracy)(value)  # a new one, which only descends


class _Model:
    """The quadratic model of J at some weights, and of the duals."""

    def __init__(self, machines: WeightedSVM, value: Value):
        self.value, self.problems = value, machines.problems
        self.parts = [
            _derivatives(machines, value.weights, problem, x, value.products[:, :, c])
            for c, (problem, x) in enumerate(zip(machines.problems, value.duals, strict=True))
        ]
        self.hessian = sum((D.T @ D for _, _, D in self.parts), np.zeros((len(value.weights),) * 2))

    def target(self, norm: float) -> np.ndarray:
        """Return the weights that minimise the model."""
        linear = self.value.gradient - self.hessian @ self.value.weights
        if norm == 1.0:
            return simplex.minimise_quadratic(self.hessian, linear)
        if np.isinf(norm):
            return np.ones(len(linear))
        return normalise(simplex.minimise_quadratic_in_ball(self.hessian, linear, norm), norm)

    def duals(self, weights: np.ndarray) -> list[np.ndarray]:
        """Return the duals that the model predicts at other weights; outside the box where it ends."""
        predicted = []
        for x, (free, L, D) in zip(self.value.duals, self.parts, strict=True):
            x = x.copy()
            if len(free):
                x[free] -= dtrtrs(L, D @ (weights - self.value.weights), lower=1, trans=1)[0]
            predicted.append(x)
        return predicted


def _derivatives(
    machines: WeightedSVM, weights: np.ndarray, problem: DualProblem, x: np.ndarray, products: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""Return the free variables F, L with :math:`L L^\top = K_{FF}`, and D with :math:`V^\top P V = D^\top D`."""
    free = np.flatnonzero(problem.free(x))
    rows = problem.rows[free]
    if not len(free):
        return free, np.zeros((0, 0)), np.zeros((0, len(products)))
    ridge, failed = RIDGE, 1
    while failed:
        K_FF = machines.block(weights, rows)
        K_FF.flat[:: len(free) + 1] += ridge * max(float(K_FF.diagonal().mean()), np.finfo(float).tiny)
        factor, failed = dpotrf(K_FF.T, lower=1, clean=0, overwrite_a=1)
        ridge *= 100.0
    right = np.vstack([products[:, rows], np.ones(len(free))])
    solved = dtrtrs(factor, right.T, lower=1)[0]
    D, e = solved[:, :-1], solved[:, -1]
    if problem.total is not None:
        D -= np.outer(e, (e @ D) / (e @ e))  # the moves that keep the sum
    return free, factor, D

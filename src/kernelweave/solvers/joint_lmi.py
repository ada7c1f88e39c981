r"""Kernel weights of discriminant analysis under one matrix inequality for all classes, the paper's approximation (37).

.. math::
    \min_{w, t}\; 1^\top t \quad \text{s.t.} \quad \operatorname{Diag}(t) \succeq S(w) = H^\top M(w)^{-1} H, \quad
    w \ge 0,\; \sum_i w_i = 1,

with :math:`M` of :mod:`.matrix_fractional`: by a Schur complement this is (37) divided by :math:`\lambda`, and its form
with a learned ridge. The inequality is stricter than the exact one, whose optimum is :math:`\operatorname{tr} S`; the
optimum differs and is larger. Given :math:`w`, the dual is :math:`\max \operatorname{tr} X S, X_{jj} = 1, X \succeq 0`.

A barrier method follows, for :math:`\mu \to 0`, the minima of

.. math:: 1^\top t - \mu \log\det N - \mu \sum_i \log w_i, \qquad N = \operatorname{Diag}(t) - S(w) .

Only :math:`w` costs factorisations of M: at each, the best :math:`t` is found by itself, and the step in :math:`w` is
Newton's for the function that is left. The curvature :math:`\mu / w_i^2` of its last term is replaced by
:math:`s_i / w_i`, with multipliers :math:`s_i` of :math:`w \ge 0` whose products :math:`s_i w_i` tend to :math:`\mu`:
so a weight may fall far in one step, and half as many steps are needed. With
:math:`W = N^{-1}, Q_i = Z^\top B_i Z, V_i = L^{-1} B_i Z` the second derivatives of the rest are
:math:`\mu [\operatorname{tr} W Q_i W Q_l + 2 \operatorname{tr} W V_i^\top V_l]` in :math:`w`,
:math:`\mu (W Q_i W)_{jj}` between :math:`w_i` and :math:`t_j`, and :math:`\mu W \circ W` in :math:`t`.

For any X with unit diagonal, here :math:`W` scaled to it,
:math:`\operatorname{tr} X S` is a lower bound that is convex in :math:`w`, with the gradient
:math:`g_i = -\operatorname{tr} X Q_i`; so

.. math:: 1^\top t - (\operatorname{tr} X S + \min_i g_i - g^\top w)

bounds the distance from the optimum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dposv

from .kernel_stack import KernelStack, Member
from .matrix_fractional import RidgedStack
from .result import SolverResult, Status
from .simplex_newton import Callback, Course, finite, first_weights

__all__ = ["solve_joint"]

SPREAD = 0.1  # share of equal weights in the start, which must not be zero anywhere
FACTOR = 0.1  # of the barrier from one centre to the next
CENTERED = 0.5  # squared Newton decrement below which the barrier may fall
FAR = 1e8  # from mu that the product of a weight and its multiplier may be, as a factor
INSIDE = 0.99  # share of the way to the boundary that a step may take
SUFFICIENT = 1e-4  # share of the decrease that the slope promises (Armijo)
N_SHORTER = 20
N_INNER = 100  # Newton steps in t; ten are usual
EXACT = 1e-14  # squared decrement at which t is the best
QUADRATIC = 0.1  # squared decrement below which whole steps are taken
NOISE = 10.0  # times the difference that refining S makes: what rounding may do to it
ROUNDING = 1e-13  # of S, at least
PATIENCE = 12  # stalls in a row: where S bends, X takes a few steps to follow while t has no digits left to gain
LITTLE = 0.01  # of the gap: objectives that fall by less a step will not close it
ENOUGH = 0.2  # of the tolerance, which the barrier takes at its lowest


def solve_joint(
    kernels: KernelStack | Sequence[Member],
    H: np.ndarray,
    *,
    ridge: float | None,
    start: np.ndarray | None = None,
    tol: float = 1e-6,
    max_iter: int = 100,
    callback: Callback | None = None,
) -> SolverResult:
    r"""Minimise :math:`1^\top t` over weights on the unit simplex, with :math:`\operatorname{Diag}(t) \succeq S(w)`.

    Parameters
    ----------
    kernels, H, ridge, start, tol, max_iter, callback
        As for :func:`.matrix_fractional.solve`. Equal weights are mixed into ``start``.

    Returns
    -------
    SolverResult
        As that of :func:`.matrix_fractional.solve`; no weight is exactly zero. The objective is :math:`1^\top t`;
        ``extra`` has also "bounds", the :math:`t`, and "exact", the :math:`\operatorname{tr} S` at these weights.
    """
    stack = RidgedStack(kernels, H, ridge)
    n_weights, course = stack.n_weights, Course(tol, max_iter, callback, PATIENCE, LITTLE)
    weights = (1.0 - SPREAD) * first_weights(start, n_weights) + SPREAD / n_weights
    at = _Point(stack, weights, finite(stack.value(weights)))
    mu = at.exact / (n_weights + H.shape[1])
    multipliers = mu / weights
    centre = at.centre(mu)
    while True:
        gap, bounds = at.gap(centre), centre.t
        lowest = ENOUGH * tol * at.exact / (n_weights + H.shape[1])
        while mu > lowest and at.newton_step(centre, mu / at.weights)[1] <= CENTERED:  # needs no factorisation
            mu = max(lowest, FACTOR * mu)
            centre = at.centre(mu, centre.t)
            gap, bounds = min((gap, bounds), (at.gap(centre), centre.t), key=lambda pair: pair[0])
        extra = {"solved": at.Z, "forms": at.forms, "bounds": bounds, "exact": at.exact}
        if course.ends(at.weights, float(bounds.sum()), gap, stack.n_cholesky, extra):
            break
        step, decrement = at.newton_step(centre, multipliers)
        moved = _search(stack, at, centre, step, decrement)
        if moved is None:
            course.status = Status.PRECISION
            break
        multipliers = _next_multipliers(multipliers, at.weights, step, moved.weights, mu)
        at, centre, course.step = moved, moved.centre(mu, centre.t), "newton"
    return stack.finished(course.result())


def _next_multipliers(
    multipliers: np.ndarray, weights: np.ndarray, step: np.ndarray, moved: np.ndarray, mu: float
) -> np.ndarray:
    """Return the multipliers of w >= 0 after a step, whose products with the weights should be mu."""
    change = mu / weights - multipliers - multipliers / weights * step
    falling = change < 0.0
    reach = float(np.min(-multipliers[falling] / change[falling])) if falling.any() else np.inf
    multipliers = multipliers + min(1.0, INSIDE * reach) * change
    return np.asarray(np.clip(multipliers, mu / moved / FAR, FAR * mu / moved))


@dataclass(frozen=True)
class _Centre:
    """The best t for a barrier, W, and the value of the barrier function without the weights' part."""

    mu: float
    t: np.ndarray
    W: np.ndarray
    value: float


class _Point:
    """What does not depend on the barrier, at some weights."""

    def __init__(self, stack: RidgedStack, weights: np.ndarray, exact: float):
        self.weights, self.mixing, self.exact = weights, stack.mixing, exact
        self.Z, products, solved = stack.products()
        Q = products @ self.Z
        self.Q = 0.5 * (Q + Q.transpose(0, 2, 1))
        self.S = self._refined(stack)
        self.noise = NOISE * float(np.abs(self.S - _scatter(stack)).max()) + ROUNDING * exact
        self.forms = np.trace(self.Q, axis1=1, axis2=2)
        rows = solved.reshape(-1, solved.shape[2])
        self.gram = (rows @ rows.T).reshape(solved.shape[:2] * 2)  # of the columns of all V_i

    def _refined(self, stack: RidgedStack) -> np.ndarray:
        """Return S, exact up to the square of the residual H - MZ."""
        HZ = stack.columns.T @ self.Z
        S = HZ + HZ.T - stack.ridge * (self.Z.T @ self.Z) - np.tensordot(self.weights, self.Q, axes=1)
        return np.asarray(self.mixing.T @ S @ self.mixing)

    def centre(self, mu: float, t: np.ndarray | None = None) -> _Centre:
        return _centre(self.S, mu, t)

    def derivatives(self, centre: _Centre) -> tuple[np.ndarray, np.ndarray]:
        """Return gradient and Hessian in w, with t at its best, divided by mu and without the weights' own part."""
        E = self.mixing @ centre.W
        A = E @ self.mixing.T
        AQ = A @ self.Q
        hessian = np.einsum("icd,ldc->il", AQ, AQ) + 2.0 * np.einsum("cd,icld->il", A, self.gram)
        mixed = (E * (self.Q @ E)).sum(axis=1)  # (W Q_i W)_jj
        return -np.trace(AQ, axis1=1, axis2=2), hessian - mixed @ _solve_definite(centre.W**2, mixed.T)

    def newton_step(self, centre: _Centre, multipliers: np.ndarray) -> tuple[np.ndarray, float]:
        """Return Newton's step in w and the squared decrement."""
        w = self.weights
        gradient, hessian = self.derivatives(centre)
        gradient = gradient - 1.0 / w
        scaled = w[:, None] * hessian * w + np.diag(multipliers * w / centre.mu)  # in step / w
        solutions = _solve_definite(scaled, np.array([-w * gradient, w]).T)
        step = w * (solutions[:, 0] - solutions[:, 1] * (w @ solutions[:, 0]) / (w @ solutions[:, 1]))
        return step, -float(gradient @ step)

    def gap(self, centre: _Centre) -> float:
        """Return the distance from the lower bound of X."""
        scale = 1.0 / np.sqrt(centre.W.diagonal())
        X = scale[:, None] * centre.W * scale
        forms = np.einsum("cd,icd->i", self.mixing @ X @ self.mixing.T, self.Q)
        bound = float(np.vdot(X, self.S)) - forms.max() + self.weights @ forms
        return float(max(0.0, centre.t.sum() - bound))


def _scatter(stack: RidgedStack) -> np.ndarray:
    """Return S at the weights of the last value."""
    half = stack.half @ stack.mixing
    return half.T @ half


def _search(stack: RidgedStack, at: _Point, centre: _Centre, step: np.ndarray, decrement: float) -> _Point | None:
    """Shorten a step in the weights until the barrier function falls enough; None if it does not."""
    mu, shrinking = centre.mu, step < 0.0
    reach = float(np.min(-at.weights[shrinking] / step[shrinking])) if shrinking.any() else np.inf
    length = min(1.0, INSIDE * reach)
    before = centre.value / mu - np.log(at.weights).sum()
    noise = at.noise / mu
    for _ in range(N_SHORTER):
        trial = at.weights + length * step
        trial /= trial.sum()
        exact = stack.value(trial)
        if np.isfinite(exact):
            value = _centre(_scatter(stack), mu, centre.t).value / mu - np.log(trial).sum()
            if value <= before - SUFFICIENT * length * decrement + noise:
                return _Point(stack, trial, exact)
        length *= 0.5
    return None


def _centre(S: np.ndarray, mu: float, t: np.ndarray | None = None) -> _Centre:
    r"""Minimise :math:`1^\top t - \mu \log\det(\operatorname{Diag}(t) - S)` from a near t, or any."""
    level, t = mu, np.zeros(len(S)) if t is None else t
    if _inverse(t, S) is None:  # as far outside as the barrier must reach, from where it falls again
        outside = float(np.linalg.eigvalsh(S - np.diag(t))[-1])
        level, t = max(mu, outside), t + 2.0 * outside + mu
    while True:
        centre = _newton_centre(S, level, t)
        if level == mu:
            return centre
        level, t = max(mu, FACTOR * level), centre.t


def _newton_centre(S: np.ndarray, mu: float, t: np.ndarray) -> _Centre:
    found, last = _inverse(t, S), np.inf
    if found is None:
        raise np.linalg.LinAlgError("Diag(t) - S is not positive definite where the barrier should begin.")
    for _ in range(N_INNER):
        W = found[0]
        gradient = 1.0 / mu - W.diagonal()
        step = -_solve_definite(W * W, gradient)
        decrement = -float(gradient @ step)
        # the barrier is self-concordant: so long a step stays inside, and descends
        near = decrement <= QUADRATIC
        trial = t + step if near else t + step / (1.0 + np.sqrt(decrement))
        ended = decrement <= EXACT or (near and decrement > 0.5 * last)  # near, it is squared but for rounding
        further = None if ended else _inverse(trial, S)
        if further is None:  # rounding is all that is left
            break
        t, found, last = trial, further, decrement
    W, log_det = found
    return _Centre(mu, t, W, float(t.sum()) - mu * log_det)


def _inverse(t: np.ndarray, S: np.ndarray) -> tuple[np.ndarray, float] | None:
    """Return the inverse of N = Diag(t) - S, and the logarithm of its determinant; None if N is not definite."""
    N = -S
    N.flat[:: len(S) + 1] += t
    factor, W, failed = dposv(N, np.eye(len(S)), lower=1)
    return None if failed else (0.5 * (W + W.T), 2.0 * float(np.log(factor.diagonal()).sum()))


def _solve_definite(A: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solve with a matrix that is positive definite but for rounding."""
    scale = 1.0 / np.sqrt(A.diagonal())
    A, ridge = scale[:, None] * A * scale, 0.0
    right = (scale * right.T).T
    while ridge < 1.0:
        _, solution, failed = dposv(A + ridge * np.eye(len(A)) if ridge else A, right)
        if not failed:
            return np.asarray((scale * solution.T).T)
        ridge = max(100.0 * ridge, 1e-15)
    raise np.linalg.LinAlgError("A matrix that should be positive definite is far from it, or holds NaN.")

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

from ...loops.compiling import compiled
from ..compiled_loops import Array, solve_factored
from ..course import Course
from ..deadline import NO_DEADLINE, Deadline
from ..machines.kernel_stack import KernelStack, Member
from ..result import Status
from ..simplex import solve_definite
from .matrix_fractional import RidgedStack
from .simplex_newton import Callback, DiscriminantResult, first_weights, require_finite_value

__all__ = ["JointResult", "solve_joint_lmi"]

SPREAD = 0.1  # share of equal weights in the start, which must not be zero anywhere
BARRIER_FACTOR = 0.1  # of the barrier from one centre to the next
CENTERED_DECREMENT = 0.5  # squared Newton decrement below which the barrier may fall
MAX_PRODUCT_RATIO = 1e8  # from mu that the product of a weight and its multiplier may be, as a factor
BOUNDARY_SHARE = 0.99  # share of the way to the boundary that a step may take
ARMIJO_SHARE = 1e-4  # share of the decrease that the slope promises (Armijo)
MAX_SHORTENINGS = 20
MAX_INNER_STEPS = 100  # Newton steps in t; ten are usual
EXACT_DECREMENT = 1e-14  # squared decrement at which t is the best
WHOLE_STEP_DECREMENT = 0.1  # squared decrement below which whole steps are taken
NOISE = 10.0  # times the difference that refining S makes: what rounding may do to it
ROUNDING = 1e-13  # of S, at least
MAX_STALLS = 12  # stalls in a row: where S bends, X takes a few steps to follow while t has no digits left to gain
MIN_DECREASE_SHARE = 0.01  # of the gap: objectives that fall by less a step will not close it
MIN_RIDGE = 1e-15  # of a matrix with a unit diagonal that rounding made indefinite
MIN_BARRIER_SHARE = 0.2  # of the tolerance, which the barrier takes at its lowest


@dataclass(frozen=True, kw_only=True)
class JointResult(DiscriminantResult):
    r"""Weights of kernels on the unit simplex under one matrix inequality.

    Attributes
    ----------
    bounds : ndarray of shape (n_columns,)
        The :math:`t`.
    exact : float
        :math:`\operatorname{tr} S` at these weights.
    """

    bounds: np.ndarray
    exact: float


def solve_joint_lmi(
    kernels: KernelStack | Sequence[Member],
    H: np.ndarray,
    *,
    ridge: float | None,
    start: np.ndarray | None = None,
    tol: float = 1e-6,
    max_iter: int = 100,
    callback: Callback | None = None,
    deadline: Deadline = NO_DEADLINE,
) -> JointResult:
    r"""Minimise :math:`1^\top t` over weights on the unit simplex, with :math:`\operatorname{Diag}(t) \succeq S(w)`.

    Parameters
    ----------
    kernels, H, ridge, start, tol, max_iter, callback, deadline
        As for :func:`.solve_matrix_fractional`. Equal weights are mixed into ``start``.

    Returns
    -------
    JointResult
        As that of :func:`.solve_matrix_fractional`; no weight is exactly zero. The objective is :math:`1^\top t`.
    """
    stack = RidgedStack(kernels, H, ridge)
    n_weights = stack.n_weights
    course = Course[tuple[_Point, np.ndarray]](
        tol, max_iter, callback, patience=MAX_STALLS, min_decrease=MIN_DECREASE_SHARE, deadline=deadline
    )
    weights = (1.0 - SPREAD) * first_weights(start, n_weights) + SPREAD / n_weights
    at = _Point(stack, weights, require_finite_value(stack.value(weights)))
    mu = at.exact / (n_weights + H.shape[1])
    multipliers = mu / weights
    centre = at.centre(mu)
    while True:
        gap, bounds = at.gap(centre), centre.t
        lowest = MIN_BARRIER_SHARE * tol * at.exact / (n_weights + H.shape[1])
        # needs no factorisation
        while mu > lowest and at.newton_step(centre, mu / at.weights)[1] <= CENTERED_DECREMENT:
            mu = max(lowest, BARRIER_FACTOR * mu)
            centre = at.centre(mu, centre.t)
            gap, bounds = min((gap, bounds), (at.gap(centre), centre.t), key=lambda pair: pair[0])
        n_cholesky = stack.n_cholesky
        if course.ends(at.weights, float(bounds.sum()), gap, (at, bounds), n_cholesky=n_cholesky):
            break
        step, decrement = at.newton_step(centre, multipliers)
        moved = _search(stack, at, centre, step, decrement)
        if moved is None:
            course.status = Status.PRECISION
            break
        multipliers = _move_multipliers(multipliers, at.weights, step, moved.weights, mu)
        at, centre, course.step = moved, moved.centre(mu, centre.t), "newton"
    best, bounds = course.best.point
    dual = stack.dual(best.Z)
    return course.result(
        JointResult, dual=dual, forms=best.forms, n_cholesky=n_cholesky, bounds=bounds, exact=best.exact
    )


def _move_multipliers(
    multipliers: np.ndarray, weights: np.ndarray, step: np.ndarray, moved: np.ndarray, mu: float
) -> np.ndarray:
    """Return the multipliers of w >= 0 after a step, whose products with the weights should be mu."""
    change = mu / weights - multipliers - multipliers / weights * step
    falling = change < 0.0
    reach = float(np.min(-multipliers[falling] / change[falling])) if falling.any() else np.inf
    multipliers = multipliers + min(1.0, BOUNDARY_SHARE * reach) * change
    return np.asarray(np.clip(multipliers, mu / moved / MAX_PRODUCT_RATIO, MAX_PRODUCT_RATIO * mu / moved))


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
        self.S = self._refine(stack)
        self.noise = NOISE * float(np.abs(self.S - _compute_scatter(stack)).max()) + ROUNDING * exact
        self.forms = np.trace(self.Q, axis1=1, axis2=2)
        rows = solved.reshape(-1, solved.shape[2])
        self.gram = (rows @ rows.T).reshape(solved.shape[:2] * 2)  # of the columns of all V_i

    def _refine(self, stack: RidgedStack) -> np.ndarray:
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
        return -np.trace(AQ, axis1=1, axis2=2), hessian - mixed @ _solve_scaled(centre.W**2, mixed.T)

    def newton_step(self, centre: _Centre, multipliers: np.ndarray) -> tuple[np.ndarray, float]:
        """Return Newton's step in w and the squared decrement."""
        w = self.weights
        gradient, hessian = self.derivatives(centre)
        gradient = gradient - 1.0 / w
        scaled = w[:, None] * hessian * w + np.diag(multipliers * w / centre.mu)  # in step / w
        solutions = _solve_scaled(scaled, np.array([-w * gradient, w]).T)
        step = w * (solutions[:, 0] - solutions[:, 1] * (w @ solutions[:, 0]) / (w @ solutions[:, 1]))
        return step, -float(gradient @ step)

    def gap(self, centre: _Centre) -> float:
        """Return the distance from the lower bound of X."""
        scale = 1.0 / np.sqrt(centre.W.diagonal())
        X = scale[:, None] * centre.W * scale
        forms = np.einsum("cd,icd->i", self.mixing @ X @ self.mixing.T, self.Q)
        bound = float(np.vdot(X, self.S)) - forms.max() + self.weights @ forms
        return float(max(0.0, centre.t.sum() - bound))


def _compute_scatter(stack: RidgedStack) -> np.ndarray:
    """Return S at the weights of the last value."""
    half = stack.half @ stack.mixing
    return half.T @ half


def _search(stack: RidgedStack, at: _Point, centre: _Centre, step: np.ndarray, decrement: float) -> _Point | None:
    """Shorten a step in the weights until the barrier function falls enough; None if it does not."""
    mu, shrinking = centre.mu, step < 0.0
    reach = float(np.min(-at.weights[shrinking] / step[shrinking])) if shrinking.any() else np.inf
    length = min(1.0, BOUNDARY_SHARE * reach)
    before = centre.value / mu - np.log(at.weights).sum()
    noise = at.noise / mu
    for _ in range(MAX_SHORTENINGS):
        trial = at.weights + length * step
        trial /= trial.sum()
        exact = stack.value(trial)
        if np.isfinite(exact):
            value = _centre(_compute_scatter(stack), mu, centre.t).value / mu - np.log(trial).sum()
            if value <= before - ARMIJO_SHARE * length * decrement + noise:
                return _Point(stack, trial, exact)
        length *= 0.5
    return None


def _centre(S: np.ndarray, mu: float, t: np.ndarray | None = None) -> _Centre:
    r"""Minimise :math:`1^\top t - \mu \log\det(\operatorname{Diag}(t) - S)` from a near t, or any."""
    level, W = mu, np.empty(S.shape)
    t = np.zeros(len(S)) if t is None else t.copy()
    if np.isnan(_invert(t, S, W)):  # as far outside as the barrier must reach, from where it falls again
        outside = float(np.linalg.eigvalsh(S - np.diag(t))[-1])
        level, t = max(mu, outside), t + 2.0 * outside + mu
    while True:
        log_det, _ = _descend(S, level, t, W)
        if level == mu:
            return _Centre(mu, t, W, float(t.sum()) - mu * log_det)
        level = max(mu, BARRIER_FACTOR * level)


def _solve_scaled(A: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solve with a matrix whose diagonal is brought to 1 first."""
    scale = 1.0 / np.sqrt(A.diagonal())
    solution = solve_definite(scale[:, None] * A * scale, (scale * right.T).T, least=MIN_RIDGE)
    return np.asarray((scale * solution.T).T)


# The classes are few, and the steps in t many: compiled, they cost next to nothing beside a factorisation of M.


@compiled
def _descend(S: Array, mu: float, t: Array, W: Array) -> tuple[float, int]:
    """Move ``t`` to the centre of a barrier and set ``W``; return the logarithm of det N, and the number of steps."""
    n, last, n_steps = len(t), np.inf, 0
    log_det = _invert(t, S, W)
    step, trial, further = np.empty(n), np.empty(n), np.empty((n, n))
    while n_steps < MAX_INNER_STEPS:
        for j in range(n):
            step[j] = W[j, j] - 1.0 / mu
        _solve_squares(W, step)
        decrement = 0.0
        for j in range(n):
            decrement += (W[j, j] - 1.0 / mu) * step[j]
        # the barrier is self-concordant: so long a step stays inside, and descends
        near = decrement <= WHOLE_STEP_DECREMENT
        length = 1.0 if near else 1.0 / (1.0 + np.sqrt(decrement))
        if decrement <= EXACT_DECREMENT or (near and decrement > 0.5 * last):  # near, it is squared but for rounding
            break
        for j in range(n):
            trial[j] = t[j] + length * step[j]
        value = _invert(trial, S, further)
        if np.isnan(value):  # rounding is all that is left
            break
        t[:] = trial
        W[:] = further
        log_det, last, n_steps = value, decrement, n_steps + 1
    return log_det, n_steps


@compiled
def _invert(t: Array, S: Array, W: Array) -> float:
    """Set ``W`` to the inverse of N = Diag(t) - S; return the logarithm of det N, NaN if N is not definite."""
    n, L, log_det = len(t), -S, 0.0
    for j in range(n):
        L[j, j] += t[j]
    if not _factorise(L):
        return np.nan
    for j in range(n):
        log_det += 2.0 * np.log(L[j, j])
        for i in range(n):
            W[j, i] = 1.0 if i == j else 0.0
        solve_factored(L, W[j])
    for j in range(n):
        for i in range(j):
            W[i, j] = W[j, i] = 0.5 * (W[i, j] + W[j, i])
    return log_det


@compiled
def _solve_squares(W: Array, right: Array) -> None:
    """Solve in place with the squares of the entries of ``W``, which are positive definite but for rounding."""
    n, ridge = len(W), 0.0
    while ridge < 1.0:
        A = np.empty((n, n))
        for i in range(n):
            for j in range(n):
                A[i, j] = W[i, j] * W[i, j] / (W[i, i] * W[j, j])
            A[i, i] += ridge
        if _factorise(A):
            break
        ridge = max(100.0 * ridge, MIN_RIDGE)
    for i in range(n):
        right[i] /= W[i, i]
    solve_factored(A, right)
    for i in range(n):
        right[i] /= W[i, i]


@compiled
def _factorise(A: Array) -> bool:
    """Put the Cholesky factor of ``A`` below its diagonal, its transpose above; say whether there is one."""
    for j in range(len(A)):
        for i in range(j, len(A)):
            value = A[i, j]
            for k in range(j):
                value -= A[i, k] * A[j, k]
            if i > j:
                A[i, j] = A[j, i] = value / A[j, j]
            elif value > 0.0:
                A[j, j] = np.sqrt(value)
            else:
                return False
    return True

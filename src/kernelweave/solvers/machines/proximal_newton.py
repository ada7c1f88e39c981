r"""Quadratic programs over a box with an equality, whose kernel is a product of few features of many rows.

.. math:: \min_x\; f(x) = \tfrac12 \|Z^\top x\|^2 + p^\top x \quad \text{s.t.} \quad l \le x \le u, \;
    \textstyle\sum_i x_i = t .

Steps of the proximal method of multipliers (R. T. Rockafellar, Math. Oper. Res. 1, 1976): near the last point
:math:`\bar x`, with steps :math:`\sigma_i > 0`, the dual in the features is

.. math:: \min_{v, b}\; \Psi(v, b) = \tfrac12 \|v\|^2 + t\, b - \sum_i \min_{l_i \le x_i \le u_i}
    \Big\{ a_i x_i + \tfrac{1}{2 \sigma_i} (x_i - \bar x_i)^2 \Big\}, \qquad a = Z v + p + b ,

with one variable for each feature. Its inner minimisers :math:`x(a) = \mathrm{clip}(\bar x - \sigma a, l, u)` are the
next point where :math:`v = Z^\top x` and :math:`\sum_i x_i = t`. :math:`\Psi` is convex with a piecewise linear
gradient; Newton's method has the matrix :math:`I + \sum_i \sigma_i z_i z_i^\top` over the rows that are not clipped
(X. Li, D. Sun, K.-C. Toh: A highly efficient semismooth Newton augmented Lagrangian method for solving lasso problems.
SIAM J. Optim. 28, 2018), and its line search is exact. A machine of n rows and m features costs a few products with
:math:`Z` and a few matrices of m x m. The certificate is the duality gap
between the point :math:`x` of the box and that of the dual, at the multiplier :math:`b` that proves most,

.. math:: f(x) - f^* \le \tfrac12 \|v - Z^\top x\|^2 + \sum_i \max\{a_i (x_i - l_i),\; a_i (x_i - u_i)\} .

It takes any :math:`v`: at :math:`Z^\top x` itself it would be larger until both points agree.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.blas import dsyrk

from ..result import Certificate, Status
from .smo import MachineResult

MAX_ROUNDS = 200  # proximal steps
MAX_NEWTON = 40  # Newton steps in each of them
# At a vertex of the optimal points no more variables than there are features, and one, are inside the box; who needs
# the kernel at these wants few. They cost few products with Z, as steps are large by now.
MAX_MORE_ROUNDS = 3  # after the gap is reached, while more than two for each feature are inside
FIRST_STEP = 2.0  # box widths that a variable moves if its gradient is of the size of the linear terms
FEW_STEPS, STEP_GROWTH = 12, 4.0  # Newton steps, up to which proximal steps grow; with MAX_NEWTON they shrink
INNER_SHARE = 0.1  # of the gap asked for, or of a tenth of the gap left: half the square of what v and Z'x differ by
MAX_SEARCH = 40  # evaluations of a line search
MAX_STALLS = 20  # rounds in a row without progress, after which rounding is to blame
BLOCK_ROWS = 4096  # that are gathered at a time
TINY = float(np.finfo(float).tiny)


def solve_proximal_newton(
    Z: np.ndarray,
    linear: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    *,
    total: float = 0.0,
    index: np.ndarray | None = None,
    start: np.ndarray | None = None,
    tol: float = 1e-3,
    max_rounds: int = MAX_ROUNDS,
) -> MachineResult:
    """Minimise ``1/2 |Z'x|^2 + linear'x`` over a finite box and ``sum(x) = total``.

    Parameters
    ----------
    Z : ndarray of shape (n_rows, n_features)
        Float64 or float32, in which products are computed.
    linear, lower, upper : ndarray of shape (n_variables,)
    total : float
        Between the sums of the bounds.
    index : ndarray of shape (n_variables,), optional
        The row of ``Z`` of each variable; variables may share a row. By default, variables are rows.
    start : ndarray of shape (n_variables,), optional
        Where to start; clipped to the box.
    tol : float
        Stop when the duality gap is at most ``tol`` times the absolute objective.
    max_rounds : int
        Largest number of proximal steps.

    Returns
    -------
    MachineResult
        As that of :func:`.smo.solve`; ``n_iter`` counts proximal steps, ``n_newton`` Newton steps. The gradient is that
        at the point of the dual, ``Z v + linear``.

    Examples
    --------
    >>> points = np.array([[-1.0], [1.0], [3.0]])
    >>> result = solve_proximal_newton(
    ...     points, np.array([1.0, -1.0, -1.0]), np.array([-9.0, 0.0, 0.0]), np.array([0.0, 9.0, 9.0]), tol=1e-9
    ... )
    >>> round(result.objective, 6), result.status.name
    (-0.5, 'CONVERGED')
    """
    rows = None if index is None else np.asarray(index)
    width, size = upper - lower, float(np.einsum("ij,ij->", Z, Z, dtype=np.float64)) / len(Z)
    x = np.clip(np.zeros(len(linear)) if start is None else start, lower, upper).astype(float)
    x = _balance(x, lower, upper, total)
    features = v = _pull(Z, x, rows)  # Z'x, and the point of the dual, which is that at the optimum
    unit, step, n_newton, n_stalls, n_round, n_more = 1.0, FIRST_STEP, 0, 0, 0, MAX_MORE_ROUNDS
    best, status = np.inf, Status.MAX_ITER
    while True:
        gradient = _push(Z, v, rows) + linear
        objective = 0.5 * float(features @ features) + float(linear @ x)
        offset, gap = best_offset(gradient, x, lower, upper)
        gap += 0.5 * float(np.square(v - features).sum())
        asked = tol * max(abs(objective), TINY)
        if gap <= asked:
            status, n_more = Status.CONVERGED, n_more - 1
            if n_more < 0 or np.count_nonzero((x > lower) & (x < upper)) <= 2 * Z.shape[1]:
                break
        n_stalls = n_stalls + 1 if gap >= best else 0
        best = min(best, gap)
        if n_stalls == MAX_STALLS:
            status = Status.PRECISION
            break
        if n_round == max_rounds:
            break
        if n_round == 0:
            unit = float(np.abs(gradient + offset) @ width) / max(float(width.sum()), TINY)
        sigma = step * width / max(unit, TINY)
        allowed = INNER_SHARE * max(asked, 0.1 * gap)
        x, v, n_steps = _proximal_step(Z, lower, upper, total, rows, x, v, offset, gradient, sigma, size, allowed)
        x = _balance(x, lower, upper, total)
        features = _pull(Z, x, rows)
        step *= STEP_GROWTH if n_steps <= FEW_STEPS else 1.0 if n_steps < MAX_NEWTON else 1.0 / STEP_GROWTH
        n_newton, n_round = n_newton + n_steps, n_round + 1
    certificate = Certificate(gap, objective)
    return MachineResult(
        x, objective, certificate, status, n_round, multiplier=-offset, gradient=gradient, n_newton=n_newton
    )


def best_offset(gradient: np.ndarray, x: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> tuple[float, float]:
    """Return the offset at which the duality gap is smallest, and the gap there.

    As a function of the offset the gap is convex, with a kink of the width of its box at minus each gradient.
    """
    order = np.argsort(-gradient, kind="stable")
    slopes = float((x - upper).sum()) + np.cumsum((upper - lower)[order])
    reached = min(int(np.searchsorted(slopes, 0.0)), len(order) - 1)
    offset = -float(gradient[order[reached]])
    a = gradient + offset
    return offset, float(np.maximum(a * (x - lower), a * (x - upper)).sum())


def _proximal_step(
    Z: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    total: float,
    rows: np.ndarray | None,
    center: np.ndarray,
    v: np.ndarray,
    offset: float,
    gradient: np.ndarray,
    sigma: np.ndarray,
    size: float,
    allowed: float,
) -> tuple[np.ndarray, np.ndarray, int]:
    """Return the next point, its features in the dual, and the number of Newton steps."""
    a, n_steps = gradient + offset, 0
    x = np.clip(center - sigma * a, lower, upper)
    while n_steps < MAX_NEWTON:
        n_steps += 1
        inside = np.flatnonzero((x > lower) & (x < upper) & (sigma > 0.0))
        slope_v, slope_b = v - _pull(Z, x, rows), total - float(x.sum())
        if 0.5 * (float(slope_v @ slope_v) + size * slope_b**2) <= allowed:
            break
        move_v, move_b = _newton_direction(Z, rows, inside, sigma, slope_v, slope_b)
        change = _push(Z, move_v, rows) + move_b
        length = _search_line(a, change, center, sigma, lower, upper, v, move_v, total * move_b)
        v, offset, a = v + length * move_v, offset + length * move_b, a + length * change
        x = np.clip(center - sigma * a, lower, upper)
    return x, v, n_steps


def _newton_direction(
    Z: np.ndarray, rows: np.ndarray | None, inside: np.ndarray, sigma: np.ndarray, slope_v: np.ndarray, slope_b: float
) -> tuple[np.ndarray, float]:
    """Return Newton's move of the features' coefficients and of the offset."""
    n_features = len(slope_v)
    weight = sigma[inside]
    H = np.eye(n_features, order="F")
    for start in range(0, len(inside), BLOCK_ROWS):
        part = slice(start, start + BLOCK_ROWS)
        here = inside[part] if rows is None else rows[inside[part]]
        scaled = Z[here].astype(np.float64) * np.sqrt(weight[part])[:, None]
        H = dsyrk(1.0, scaled.T, beta=1.0, c=H, lower=1, overwrite_c=1)
    across = _pull(Z, np.bincount(inside, weights=weight, minlength=len(sigma)), rows)
    factor = cho_factor(H, lower=True, overwrite_a=True, check_finite=False)
    solved_v, solved_c = cho_solve(factor, slope_v, check_finite=False), cho_solve(factor, across, check_finite=False)
    # without a row inside nothing says how far the offset is off: one step of all rows
    corner = float(weight.sum() - across @ solved_c) if len(inside) else 0.0
    corner = max(corner, 1e-10 * float(sigma.sum()), TINY)
    move_b = -(slope_b - float(across @ solved_v)) / corner
    return -solved_v - move_b * solved_c, move_b


def _search_line(
    a: np.ndarray,
    change: np.ndarray,
    center: np.ndarray,
    sigma: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    v: np.ndarray,
    move_v: np.ndarray,
    linear: float,
) -> float:
    """Return the length of a step at which the slope along it vanishes; the slope increases with the length."""
    first, curvature = float(v @ move_v) + linear, float(move_v @ move_v)

    def slope(length: float) -> float:
        x = np.clip(center - sigma * (a + length * change), lower, upper)
        return first + length * curvature - float(x @ change)

    left, right, at_left = 0.0, 1.0, slope(0.0)
    if at_left >= 0.0:
        return 1.0  # rounding
    accuracy = 0.1 * abs(at_left)
    at_right = slope(right)
    for _ in range(MAX_SEARCH):
        if at_right >= -accuracy:
            break
        left, at_left, right = right, at_right, 2.0 * right
        at_right = slope(right)
    for _ in range(MAX_SEARCH):
        if abs(at_right) <= accuracy:
            return right
        middle = right - at_right * (right - left) / (at_right - at_left)
        middle = min(max(middle, left + 0.1 * (right - left)), right - 0.1 * (right - left))
        at_middle = slope(middle)
        if abs(at_middle) <= accuracy:
            return middle
        if at_middle < 0.0:
            left, at_left = middle, at_middle
        else:
            right, at_right = middle, at_middle
    return right


def _balance(x: np.ndarray, lower: np.ndarray, upper: np.ndarray, total: float) -> np.ndarray:
    """Return a point of the box with this sum: what is missing is spread over the room that variables have.

    Variables inside the box move first, since those at a bound belong there.
    """
    missing = total - float(x.sum())
    room = upper - x if missing > 0.0 else x - lower
    inside = np.where((x > lower) & (x < upper), room, 0.0)
    if float(inside.sum()) >= abs(missing):
        room = inside
    available = float(room.sum())
    return np.clip(x + room * (missing / available), lower, upper) if available > 0.0 else x


def _pull(Z: np.ndarray, x: np.ndarray, rows: np.ndarray | None) -> np.ndarray:
    """Return ``Z'x``; ``rows`` are those of the variables."""
    by_row = x if rows is None else np.bincount(rows, weights=x, minlength=len(Z))
    return (by_row.astype(Z.dtype) @ Z).astype(np.float64)


def _push(Z: np.ndarray, v: np.ndarray, rows: np.ndarray | None) -> np.ndarray:
    """Return ``Z v`` at the rows of the variables."""
    values = (Z @ v.astype(Z.dtype)).astype(np.float64)
    return values if rows is None else values[rows]

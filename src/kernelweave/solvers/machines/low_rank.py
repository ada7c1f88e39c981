r"""Quadratic programs over a box whose kernel is a product of few features: the kernel itself is never formed.

.. math:: \min_x\; f(x) = \tfrac12 \|Z^\top x\|^2 + p^\top x \quad \text{s.t.} \quad l \le x \le u .

With :math:`v = Z^\top x` the gradient :math:`Z v + p` costs as much as :math:`Z` has entries, and a step in one
variable as much as a row of it has. Sweeps over the variables (Hsieh et al.: A dual coordinate descent method for
large-scale linear SVM. ICML 2008) find out which ones are at a bound; the few that are not, or should not be, make a
small problem with a kernel matrix, which :mod:`.smo` solves. The certificate is the duality gap over all variables,

.. math:: f(x) - f^* \le \sum_i \max\{g_i (x_i - l_i),\; g_i (x_i - u_i)\}, \qquad g = Z v + p .
"""

from __future__ import annotations

import numpy as np

from ..compiled_loops import Array
from ..compiling import compiled
from ..result import Certificate, Status
from . import smo
from .smo import MachineResult

MAX_DENSE_VARIABLES = 3000  # variables: up to so many, a kernel matrix is formed
N_SWEEPS = 5  # in a row, before the gradient of all variables is looked at again
MAX_ROUNDS = 10_000
INNER_TOL_SHARE = 0.1  # of the gap that is left: the accuracy of the small problem
MAX_STALLS = 10  # rounds in a row without progress, after which rounding is to blame ...
NOISE = 1e-10  # ... if the gap is within this of the sizes of what it is made of
TINY = float(np.finfo(float).tiny)


def solve_low_rank(
    Z: np.ndarray,
    linear: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    *,
    index: np.ndarray | None = None,
    start: np.ndarray | None = None,
    tol: float = 1e-3,
    max_rounds: int = MAX_ROUNDS,
) -> MachineResult:
    """Minimise ``1/2 |Z'x|^2 + linear'x`` over a finite box.

    Parameters
    ----------
    Z : ndarray of shape (n_rows, n_features)
    linear, lower, upper : ndarray of shape (n_variables,)
    index : ndarray of shape (n_variables,), optional
        The row of ``Z`` of each variable; variables may share a row. By default, variables are rows.
    start : ndarray of shape (n_variables,), optional
        Where to start; clipped to the box.
    tol : float
        Stop when the duality gap is at most ``tol`` times the absolute objective.
    max_rounds : int
        Largest number of looks at all variables.

    Returns
    -------
    MachineResult
        As that of :func:`.smo.solve` without equality; ``n_iter`` counts rounds.

    Examples
    --------
    >>> points = np.array([[-1.0], [1.0]])
    >>> result = solve_low_rank(points, np.array([1.0, -1.0]), np.array([-9.0, 0.0]), np.array([0.0, 9.0]), tol=1e-9)
    >>> round(result.objective, 6), result.status.name
    (-0.5, 'CONVERGED')
    """
    rows = np.arange(len(Z)) if index is None else index
    Z = np.ascontiguousarray(Z, dtype=float)
    squares = np.einsum("ij,ij->i", Z, Z)[rows]
    x = np.clip(np.zeros(len(linear)) if start is None else start, lower, upper).astype(float)
    by_row = np.argsort(rows, kind="stable")  # variables of a row follow each other: it is read once
    best, n_stalls, status, n_round = np.inf, 0, Status.MAX_ITER, 0
    for n_round in range(max_rounds + 1):
        v = np.bincount(rows, weights=x, minlength=len(Z)) @ Z
        gradient = (Z @ v)[rows] + linear
        objective = 0.5 * float(v @ v) + float(linear @ x)
        gap = float(np.maximum(gradient * (x - lower), gradient * (x - upper)).sum())
        if gap <= tol * max(abs(objective), TINY):
            status = Status.CONVERGED
            break
        n_stalls = n_stalls + 1 if gap >= best else 0
        best = min(best, gap)
        if n_stalls == MAX_STALLS and gap <= NOISE * (float(v @ v) + float(np.abs(linear) @ np.abs(x))):
            status = Status.PRECISION
            break
        if n_round == max_rounds:
            break
        violation = np.maximum(np.where(x > lower, gradient, -np.inf), np.where(x < upper, -gradient, -np.inf))
        active = by_row[(violation > -max(0.0, float(violation.max())))[by_row] & (lower < upper)[by_row]]
        if len(active) > MAX_DENSE_VARIABLES and n_round % 2 == 0:
            _sweep(Z, linear, lower, upper, rows, squares, x, v, active, N_SWEEPS)
            continue
        if len(active) > MAX_DENSE_VARIABLES:
            # those that violate most: sweeps crawl where features are ill-conditioned
            active = active[np.argpartition(violation[active], -MAX_DENSE_VARIABLES)[-MAX_DENSE_VARIABLES:]]
        _solve_small(Z, lower, upper, rows, x, gradient, active, INNER_TOL_SHARE * gap)
    certificate = Certificate(gap, objective)
    return MachineResult(x, objective, certificate, status, n_round, multiplier=0.0, gradient=gradient)


def _solve_small(
    Z: Array,
    lower: Array,
    upper: Array,
    rows: Array,
    x: Array,
    gradient: Array,
    active: Array,
    gap: float,
) -> None:
    """Minimise over the active variables, the others fixed; update ``x`` in place."""
    here, places = np.unique(rows[active], return_inverse=True)
    K = Z[here] @ Z[here].T
    fixed = gradient[active] - (K @ np.bincount(places, weights=x[active], minlength=len(here)))[places]
    value = 0.5 * float(x[active] @ (gradient[active] + fixed))
    result = smo.solve(
        K,
        fixed,
        lower[active],
        upper[active],
        total=None,
        index=places,
        start=x[active],
        tol=min(0.1, gap / max(abs(value), TINY)),
    )
    x[active] = result.x


@compiled
def _sweep(
    Z: Array,
    linear: Array,
    lower: Array,
    upper: Array,
    rows: Array,
    squares: Array,
    x: Array,
    v: Array,
    order: Array,
    n_sweeps: int,
) -> None:
    """Minimise over one variable after the other; update ``x`` and ``v`` in place."""
    n_features = len(v)
    for _ in range(n_sweeps):
        for i in order:
            row = Z[rows[i]]
            slope = linear[i]
            for k in range(n_features):
                slope += row[k] * v[k]
            if squares[i] > 0.0:
                moved = min(max(x[i] - slope / squares[i], lower[i]), upper[i])
            else:
                moved = lower[i] if slope > 0.0 else upper[i] if slope < 0.0 else x[i]
            step = moved - x[i]
            if step != 0.0:
                x[i] = moved
                for k in range(n_features):
                    v[k] += step * row[k]

"""Slow, obvious, trusted: the whole problem at once, by another road than the solvers of this library.

For tests, papers and benchmarks only; nothing else may import it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from .margin import MarginRows


@dataclass(frozen=True)
class ReferenceSolution:
    """Optimum of a full problem."""

    objective: float
    coef: np.ndarray
    intercept: float


def full_lp(K: np.ndarray, rows: MarginRows, time_limit: float | None = None) -> ReferenceSolution:
    r"""Solve the 1-norm problem (SSMK (9)) with all columns, in the variables :math:`u, v, b, \xi` as printed.

    Parameters
    ----------
    K : ndarray of shape (n_points, n_columns)
    rows : MarginRows
    time_limit : float, optional
        Seconds, after which it gives up with a ``TimeoutError``.
    """
    n_columns, n_rows = K.shape[1], len(rows.sign)
    signed = rows.sign[:, None] * K[rows.point]
    A = np.hstack([-signed, signed, -rows.sign[:, None], -np.eye(n_rows)])
    cost = np.concatenate([np.ones(2 * n_columns), [0.0], rows.cost])
    bounds = [(0, None)] * (2 * n_columns) + [(None, None)] + [(0, None)] * n_rows
    options = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    if time_limit is not None:
        options["time_limit"] = time_limit
    result = linprog(cost, A_ub=A, b_ub=-rows.target, bounds=bounds, method="highs", options=options)
    if result.status == 1:
        raise TimeoutError(f"The reference solver took longer than {time_limit} s.")
    if result.status != 0:
        raise RuntimeError(f"The reference solver stopped: {result.message}")
    coef = result.x[:n_columns] - result.x[n_columns : 2 * n_columns]
    return ReferenceSolution(float(result.fun), coef, float(result.x[2 * n_columns]))

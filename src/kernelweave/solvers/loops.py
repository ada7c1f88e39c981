r"""Compiled loops that solvers share: vectors added in place, and a Newton step that bends at the bounds it meets.

The step minimises :math:`g^\top d + \tfrac12 d^\top H d` over moves :math:`d` with :math:`E d = 0` that stay in a box;
a variable that meets its bound stays there.
"""

from __future__ import annotations

import numpy as np
from numba import njit

# Division by zero gives infinity, as in numpy: testing for it would keep the loops from using vector instructions.
compiled = njit(cache=True, nogil=True, error_model="numpy")
Array = np.ndarray


@compiled
def add(values: Array, row: Array, step: float) -> None:
    """Add ``step`` times a row to ``values``."""
    for v in range(len(values)):
        values[v] += step * row[v]


@compiled
def walk(L: Array, U: Array, E: Array, gradient: Array, x: Array, lower: Array, upper: Array, n_stages: int) -> None:
    r"""Move ``x`` towards the minimum of its Newton model, with ``Ex`` constant.

    The direction is :math:`-u = -P g`, where :math:`P` inverts :math:`H = LU, U = L^\top` on the moves that keep the
    constraints. One more constraint :math:`e` takes :math:`w w^\top` off :math:`P`, where
    :math:`w = P e / \sqrt{e^\top P e}`. Each variable that meets its bound becomes a constraint.
    """
    n, n_sums = len(x), len(E)
    W = np.zeros((n_sums + n_stages, n))
    u, inside = gradient.copy(), np.ones(n)
    solve_factored(L, U, u)
    for k in range(n_sums + n_stages):
        e = np.zeros(n)
        if k < n_sums:
            e += E[k]
        else:
            direction = -u * inside
            for m in range(n_sums):  # rounding must not add up in the sums
                add(direction, E[m] * inside, -np.dot(direction, E[m]) / max(np.dot(inside, E[m]), 1.0))
            share, blocker = 1.0, -1
            for v in range(n):
                room = upper[v] - x[v] if direction[v] > 0.0 else x[v] - lower[v]
                if room < share * abs(direction[v]):
                    share, blocker = room / abs(direction[v]), v
            for v in range(n):
                x[v] = min(max(x[v] + share * direction[v], lower[v]), upper[v])
            if blocker < 0:
                return
            add(u, direction, share)  # the gradient moves by H d, and P H is the identity on d
            x[blocker] = upper[blocker] if direction[blocker] > 0.0 else lower[blocker]
            inside[blocker], e[blocker] = 0.0, 1.0
        p = e.copy()
        solve_factored(L, U, p)
        for m in range(k):
            add(p, W[m], -np.dot(W[m], e))
        length = np.dot(p, e)
        if length <= 0.0:  # nothing is left to move
            return
        add(W[k], p, 1.0 / np.sqrt(length))
        add(u, p, -np.dot(u, e) / length)


@compiled
def solve_factored(L: Array, U: Array, b: Array) -> None:
    """Solve with ``LU`` in place; row by row of either, for the sake of vector instructions."""
    for k in range(len(b)):
        if b[k] != 0.0:
            b[k] /= U[k, k]
            add(b[k + 1 :], U[k, k + 1 :], -b[k])
    for k in range(len(b) - 1, -1, -1):
        b[k] /= L[k, k]
        add(b[:k], L[k, :k], -b[k])

r"""Compiled loops that solvers share: rows of matrices, and a Newton step that bends at the bounds it meets.

The step minimises :math:`g^\top d + \tfrac12 d^\top H d` over moves :math:`d` with :math:`E d = 0` that stay in a box;
a variable that meets its bound stays there.
"""

from __future__ import annotations

import numpy as np

from .compiling import compiled, summing

Array = np.ndarray


@compiled
def add(values: Array, row: Array, step: float) -> None:
    """Add ``step`` times a row to ``values``."""
    for v in range(len(values)):
        values[v] += step * row[v]


@compiled
def add_rows(K: Array, rows: Array, values: Array, out: Array) -> None:
    """Add to each row of ``out`` the rows of ``K`` times its row of ``values``, four at a time."""
    n, n_rows = out.shape[1], len(rows)
    for t in range(0, n_rows - 3, 4):
        row_a, row_b, row_c, row_d = K[rows[t]], K[rows[t + 1]], K[rows[t + 2]], K[rows[t + 3]]
        for k in range(len(out)):
            sums, a, b, c, d = out[k], values[k, t], values[k, t + 1], values[k, t + 2], values[k, t + 3]
            for v in range(n):
                sums[v] += a * row_a[v] + b * row_b[v] + c * row_c[v] + d * row_d[v]
    for t in range(n_rows - n_rows % 4, n_rows):
        for k in range(len(out)):
            add(out[k], K[rows[t]], values[k, t])


@summing
def add_symmetric_rows(K: Array, rows: Array, X: Array, out: Array) -> None:
    """Add ``KX'`` to the columns ``rows`` of ``out``, of a symmetric ``K`` and of an ``X`` that is zero elsewhere.

    What is below the diagonal of these rows, which have to be sorted, is read once, and stands for what is above.
    """
    n_rows = len(rows)
    for t in range(0, n_rows - 3, 4):
        i, j, k, m = rows[t], rows[t + 1], rows[t + 2], rows[t + 3]
        row_i, row_j, row_k, row_m = K[i], K[j], K[k], K[m]
        for vector in range(len(out)):
            x, sums = X[vector], out[vector]
            x_i, x_j, x_k, x_m = x[i], x[j], x[k], x[m]
            sum_i, sum_j, sum_k, sum_m = 0.0, 0.0, 0.0, 0.0
            for v in range(i):
                sums[v] += x_i * row_i[v] + x_j * row_j[v] + x_k * row_k[v] + x_m * row_m[v]
                sum_i += row_i[v] * x[v]
                sum_j += row_j[v] * x[v]
                sum_k += row_k[v] * x[v]
                sum_m += row_m[v] * x[v]
            sums[i] += sum_i + row_i[i] * x_i + row_j[i] * x_j + row_k[i] * x_k + row_m[i] * x_m
            sums[j] += sum_j + row_j[i] * x_i + row_j[j] * x_j + row_k[j] * x_k + row_m[j] * x_m
            sums[k] += sum_k + row_k[i] * x_i + row_k[j] * x_j + row_k[k] * x_k + row_m[k] * x_m
            sums[m] += sum_m + row_m[i] * x_i + row_m[j] * x_j + row_m[k] * x_k + row_m[m] * x_m
    for t in range(n_rows - n_rows % 4, n_rows):
        i, row_i = rows[t], K[rows[t]]
        for vector in range(len(out)):
            x, sums, sum_i = X[vector], out[vector], 0.0
            for v in range(i):
                sums[v] += x[i] * row_i[v]
                sum_i += row_i[v] * x[v]
            sums[i] += sum_i + row_i[i] * x[i]


@compiled
def gather(K: Array, rows: Array, out: Array) -> None:
    """Set ``out``, on and above its diagonal, to the rows and columns ``rows`` of ``K``."""
    for i in range(len(rows)):
        row, entries = K[rows[i]], out[i]
        for j in range(i, len(rows)):
            entries[j] = row[rows[j]]


@compiled
def mirror(A: Array) -> None:
    """Copy what is above the diagonal below it, by tiles that stay in the cache."""
    n, tile = len(A), 32
    for first in range(0, n, tile):
        for second in range(0, first + 1, tile):
            for i in range(first, min(first + tile, n)):
                for j in range(second, min(second + tile, i)):
                    A[i, j] = A[j, i]


@compiled
def walk(factor: Array, E: Array, gradient: Array, x: Array, lower: Array, upper: Array, n_stages: int) -> None:
    r"""Move ``x`` towards the minimum of its Newton model, with ``Ex`` constant.

    The direction is :math:`-u = -P g`, where :math:`P` inverts :math:`H` on the moves that keep the constraints. One
    more constraint :math:`e` takes :math:`w w^\top` off :math:`P`, where :math:`w = P e / \sqrt{e^\top P e}`. Each
    variable that meets its bound becomes a constraint.
    """
    n, n_sums = len(x), len(E)
    W = np.zeros((n_sums + n_stages, n))
    u, inside = gradient.copy(), np.ones(n)
    solve_factored(factor, u)
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
        solve_factored(factor, p)
        for m in range(k):
            add(p, W[m], -np.dot(W[m], e))
        length = np.dot(p, e)
        if length <= 0.0:  # nothing is left to move
            return
        add(W[k], p, 1.0 / np.sqrt(length))
        add(u, p, -np.dot(u, e) / length)


@compiled
def solve_factored(factor: Array, b: Array) -> None:
    """Solve in place with a symmetric matrix whose Cholesky factor is below, and its transpose above the diagonal.

    Both, as they are read row by row, for the sake of vector instructions.
    """
    for k in range(len(b)):
        if b[k] != 0.0:
            b[k] /= factor[k, k]
            add(b[k + 1 :], factor[k, k + 1 :], -b[k])
    for k in range(len(b) - 1, -1, -1):
        b[k] /= factor[k, k]
        add(b[:k], factor[k, :k], -b[k])

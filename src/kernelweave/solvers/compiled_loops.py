"""Compiled loops that solvers share: rows of matrices."""

from __future__ import annotations

import numpy as np

from ..loops.compiling import compiled_later, summing

Array = np.ndarray


@compiled_later
def add(values: Array, row: Array, step: float) -> None:
    """Add ``step`` times a row to ``values``."""
    for v in range(len(values)):
        values[v] += step * row[v]


@add.in_numpy
def _add_arrays(values: Array, row: Array, step: float) -> None:
    values += step * row


@compiled_later
def dot(values: Array, others: Array) -> float:
    """Return the inner product, added up from the first entry to the last."""
    total = 0.0
    for v in range(len(values)):
        total += values[v] * others[v]
    return total


@dot.in_numpy
def _dot_arrays(values: Array, others: Array) -> float:
    return add_up(values * others)


def add_up(values: Array) -> float:
    """Return the sum, added up from the first entry to the last, as compiled loops do; numpy adds up by pairs."""
    return float(np.add.accumulate(values)[-1]) if len(values) else 0.0


@compiled_later
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


@add_rows.in_numpy
def _add_fours(K: Array, rows: Array, values: Array, out: Array) -> None:
    n_fours = len(rows) - len(rows) % 4
    for t in range(0, n_fours, 4):
        for k in range(len(out)):
            a, b, c, d = values[k, t : t + 4, None] * K[rows[t : t + 4]]
            out[k] += a + b + c + d
    for t in range(n_fours, len(rows)):
        for k in range(len(out)):
            out[k] += values[k, t] * K[rows[t]]


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


@compiled_later
def gather(K: Array, rows: Array, out: Array) -> None:
    """Set ``out``, on and above its diagonal at least, to the rows and columns ``rows`` of ``K``."""
    for i in range(len(rows)):
        row, entries = K[rows[i]], out[i]
        for j in range(i, len(rows)):
            entries[j] = row[rows[j]]


@gather.in_numpy
def _gather_arrays(K: Array, rows: Array, out: Array) -> None:
    out[...] = K[np.ix_(rows, rows)]


@compiled_later
def mirror(A: Array) -> None:
    """Copy what is above the diagonal below it, by tiles that stay in the cache."""
    n, tile = len(A), 32
    for first in range(0, n, tile):
        for second in range(0, first + 1, tile):
            for i in range(first, min(first + tile, n)):
                for j in range(second, min(second + tile, i)):
                    A[i, j] = A[j, i]


@mirror.in_numpy
def _mirror_array(A: Array) -> None:
    np.copyto(A, A.T.copy(), where=np.tri(len(A), k=-1, dtype=bool))


@compiled_later
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

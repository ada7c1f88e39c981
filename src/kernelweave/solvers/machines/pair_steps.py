r"""Descent by pairs: one variable of a quadratic program rises as another falls.

Pairs are chosen by second-order information (Fan, Chen, Lin: Working set selection using second order information for
training SVM. JMLR, 2005): of the variables that can rise, the one with the least gradient; of those that can fall, the
one that gains most together with it, were there no box.

The loops work on arrays one after the other, in passes as simple as can be, because these compile to vector
instructions. One pass that updates the gradient and tracks the best variables took twice as long.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...loops.compiling import compiled_later
from ..compiled_loops import Array

MAX_GAIN = float(np.finfo(float).max)  # an infinite gain could not be told from one that is barred
SAFE_CURVATURE = 1e-100  # from which on no gain is infinite, whatever the gradient


class Problem(NamedTuple):
    """The problem of :mod:`.smo` with its variables sorted by group: group k is offsets[k] to offsets[k + 1]."""

    K: np.ndarray
    diagonal: np.ndarray  # of K, for each variable
    linear: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    rows: np.ndarray  # of K, for each variable
    runs: np.ndarray  # from runs[k] to runs[k + 1] the rows are consecutive; empty if they are rarely
    offsets: np.ndarray
    plain: bool  # variables are rows of K
    slack: bool  # no equality
    flat: float  # curvature below this is none
    rounding: float  # negative curvature within this share of the diagonal may be rounding of K


def pair_steps(problem: Problem, x: Array, gradient: Array, threshold: float, n_steps: int) -> tuple[int, bool, bool]:
    """Take pair steps until that of the best pair is at the threshold; update ``x`` and ``gradient`` in place.

    Returns how many, and whether curvature and step lengths were those of a convex problem that has a minimum.
    """
    barred = np.where(x < problem.upper, 0.0, np.inf), np.where(x > problem.lower, 0.0, np.inf)
    numbers, rows = np.empty((2, len(x))), np.empty((2, len(x)), problem.K.dtype)
    return _take_steps(problem, x, gradient, *barred, *numbers, *rows, threshold, n_steps)


@compiled_later
def _take_steps(
    problem: Problem,
    x: Array,
    gradient: Array,
    cannot_rise: Array,
    cannot_fall: Array,
    gains: Array,
    scratch: Array,
    row_i: Array,
    row_j: Array,
    threshold: float,
    n_steps: int,
) -> tuple[int, bool, bool]:
    K, diagonal, rows, lower, upper = problem.K, problem.diagonal, problem.rows, problem.lower, problem.upper
    convex = True
    for n_taken in range(n_steps):
        i, j, excess = _choose(problem, gradient, cannot_rise, cannot_fall, gains, row_i, scratch)
        if excess <= threshold:
            return n_taken, convex, True
        d_i, room_i = (float(diagonal[i]), float(upper[i] - x[i])) if i >= 0 else (0.0, np.inf)
        d_j, room_j = (float(diagonal[j]), float(x[j] - lower[j])) if j >= 0 else (0.0, np.inf)
        curvature = d_i + d_j - (2.0 * float(K[rows[i], rows[j]]) if i >= 0 and j >= 0 else 0.0)
        convex = convex and curvature >= -problem.rounding * (abs(d_i) + abs(d_j))
        room = min(room_i, room_j)
        if curvature <= problem.flat and room == np.inf:
            return n_taken, convex, False
        step = min(excess / max(curvature, problem.flat), room)
        for v, bound, signed, at_bound in ((i, upper, step, step == room_i), (j, lower, -step, step == room_j)):
            if v >= 0:
                low, high = lower[v], upper[v]
                x[v] = place = bound[v] if at_bound else min(max(x[v] + signed, low), high)
                cannot_rise[v], cannot_fall[v] = 0.0 if place < high else np.inf, 0.0 if place > low else np.inf
        # With one group, the choice has left the row of i in the buffer.
        row = row_i if len(problem.offsets) == 2 and not problem.plain else _row(problem, i, row_i)
        _add_difference(gradient, row, _row(problem, j, row_j), step)
    return n_steps, convex, True


@compiled_later
def _choose(
    problem: Problem,
    gradient: Array,
    cannot_rise: Array,
    cannot_fall: Array,
    gains: Array,
    buffer: Array,
    scratch: Array,
) -> tuple[int, int, float]:
    """Return which variable should rise and which should fall (-1: the slack), and by how much their g differ."""
    diagonal, flat = problem.diagonal, problem.flat
    best, i, j, excess = 0.0, -1, -1, 0.0
    for k in range(len(problem.offsets) - 1):
        start, stop = int(problem.offsets[k]), int(problem.offsets[k + 1])
        g, gain_of = gradient[start:stop], gains[start:stop]
        up = _argmax(g, -1.0, cannot_rise[start:stop], scratch)
        up = -1 if up < 0 or (problem.slack and g[up] > 0.0) else start + up
        if up < 0 and not problem.slack:
            continue
        g_up, d_up = (float(gradient[up]), float(diagonal[up])) if up >= 0 else (0.0, 0.0)
        _gains(g, _row(problem, up, buffer)[start:stop], diagonal[start:stop], g_up, d_up, flat, gain_of)
        down = _argmax(gain_of, 1.0, cannot_fall[start:stop], scratch)
        down, gain, g_down = (start + down, float(gain_of[down]), float(g[down])) if down >= 0 else (-1, 0.0, 0.0)
        if problem.slack and up >= 0 and g_up * g_up / max(d_up, flat) > gain:
            down, gain, g_down = -1, g_up * g_up / max(d_up, flat), 0.0
        if gain > best:
            best, i, j, excess = gain, up, down, g_down - g_up
    return i, j, excess


@compiled_later
def _row(problem: Problem, v: int, buffer: Array) -> Array:
    """Return the kernel row of a variable, with an entry for each variable; zeros for the slack."""
    row, rows, runs = problem.K[problem.rows[v]], problem.rows, problem.runs
    if v < 0:
        for k in range(len(buffer)):
            buffer[k] = 0.0
    elif problem.plain:
        return row
    elif len(runs) > 0:
        for run in range(len(runs) - 1):
            shift = rows[runs[run]] - runs[run]
            for k in range(runs[run], runs[run + 1]):
                buffer[k] = row[k + shift]
    else:
        for k in range(len(buffer)):
            buffer[k] = row[rows[k]]
    return buffer


@_row.in_numpy
def _take_row(problem: Problem, v: int, buffer: Array) -> Array:
    if v < 0:
        buffer.fill(0.0)
    elif problem.plain:
        return problem.K[v]
    else:
        np.take(problem.K[problem.rows[v]], problem.rows, out=buffer, mode="clip")  # other modes copy once more
    return buffer


@compiled_later
def _gains(gradient: Array, row: Array, diagonal: Array, g_up: float, d_up: float, flat: float, gains: Array) -> None:
    """Set ``gains`` to twice what it gains to lower a variable as another rises, were there no box."""
    for v in range(len(gains)):
        excess = max(gradient[v] - g_up, 0.0)
        gains[v] = min(excess * excess / max(d_up + diagonal[v] - 2.0 * row[v], flat), MAX_GAIN)


@_gains.in_numpy
def _compute_gains(
    gradient: Array, row: Array, diagonal: Array, g_up: float, d_up: float, flat: float, gains: Array
) -> None:
    curvature = diagonal + d_up
    curvature -= row + row
    np.maximum(curvature, flat, out=curvature)
    np.subtract(gradient, g_up, out=gains)
    np.maximum(gains, 0.0, out=gains)
    np.multiply(gains, gains, out=gains)
    np.divide(gains, curvature, out=gains)
    if flat < SAFE_CURVATURE:
        np.minimum(gains, MAX_GAIN, out=gains)


@compiled_later
def _add_difference(values: Array, row: Array, other: Array, step: float) -> None:
    """Add ``step`` times the difference of two rows to ``values``."""
    for v in range(len(values)):
        values[v] += step * (np.float64(row[v]) - np.float64(other[v]))  # rows may be in single precision


@_add_difference.in_numpy
def _subtract_rows(values: Array, row: Array, other: Array, step: float) -> None:
    change = np.subtract(row, other, dtype=float)
    change *= step
    values += change


@compiled_later
def _argmax(values: Array, sign: float, barred: Array, scratch: Array) -> int:
    """Return the first place of the largest entry of ``sign * values - barred``, -1 if none is above minus infinity."""
    lane = len(values) // 8  # eight lanes are folded into one first
    for v in range(lane):
        a = max(sign * values[v] - barred[v], sign * values[v + lane] - barred[v + lane])
        w = v + 2 * lane
        b = max(sign * values[w] - barred[w], sign * values[w + lane] - barred[w + lane])
        w = v + 4 * lane
        c = max(sign * values[w] - barred[w], sign * values[w + lane] - barred[w + lane])
        w = v + 6 * lane
        d = max(sign * values[w] - barred[w], sign * values[w + lane] - barred[w + lane])
        scratch[v] = max(max(a, b), max(c, d))
    best, n_best, place = -np.inf, 0, -1
    for v in range(lane):
        if scratch[v] > best:
            best, n_best, place = scratch[v], 0, v
        if scratch[v] == best:
            n_best += 1
    while place >= 0 and sign * values[place] - barred[place] != best:
        place += lane
    if n_best > 1 and place >= lane:  # the first place may be that of another maximum of the lanes
        for v in range(place):
            if sign * values[v] - barred[v] == best:
                place = v
                break
    for v in range(8 * lane, len(values)):
        if sign * values[v] - barred[v] > best:
            best, place = sign * values[v] - barred[v], v
    return place


@_argmax.in_numpy
def _find_largest(values: Array, sign: float, barred: Array, scratch: Array) -> int:
    if not len(values):
        return -1
    scores = values - barred if sign > 0.0 else values + barred
    place = int(scores.argmax() if sign > 0.0 else scores.argmin())
    return place if barred[place] == 0.0 else -1

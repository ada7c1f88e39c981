r"""A Newton step that bends at the bounds it meets.

It minimises :math:`g^\top d + \tfrac12 d^\top H d` over moves :math:`d` with :math:`E d = 0` that stay in a box; a
variable that meets its bound stays there.
"""

from __future__ import annotations

import numpy as np

from ...loops.compiling import compiled_later
from ..compiled_loops import Array, add, dot, solve_factored


def walk(factor: Array, E: Array, gradient: Array, x: Array, lower: Array, upper: Array, n_stages: int) -> None:
    r"""Move ``x`` towards the minimum of its Newton model, with ``Ex`` constant.

    The direction is :math:`-u = -P g`, where :math:`P` inverts :math:`H` on the moves that keep the constraints. One
    more constraint :math:`e` takes :math:`w w^\top` off :math:`P`, where :math:`w = P e / \sqrt{e^\top P e}`. Each
    variable that meets its bound becomes a constraint. ``factor`` is what :func:`.solve_factored` takes.
    """
    W = np.zeros((len(E) + n_stages, len(x)))
    _take_stages(factor, E, x, lower, upper, W, gradient.copy(), np.ones(len(x)), *np.empty((2, len(x))))


@compiled_later
def _take_stages(
    factor: Array,
    E: Array,
    x: Array,
    lower: Array,
    upper: Array,
    W: Array,
    u: Array,
    inside: Array,
    direction: Array,
    p: Array,
) -> None:
    n_sums, blocker = len(E), -1
    solve_factored(factor, u)
    for k in range(len(W)):
        if k >= n_sums:
            share, blocker = _move(E, u, inside, x, lower, upper, direction)
            if blocker < 0:
                return
            add(u, direction, share)  # the gradient moves by H d, and P H is the identity on d
            inside[blocker] = 0.0
        p[:] = 0.0
        if k < n_sums:
            add(p, E[k], 1.0)
        else:
            p[blocker] = 1.0
        solve_factored(factor, p)
        for m in range(k):
            add(p, W[m], -(dot(W[m], E[k]) if k < n_sums else W[m, blocker]))
        length, slope = (dot(p, E[k]), dot(u, E[k])) if k < n_sums else (p[blocker], u[blocker])
        if length <= 0.0:  # nothing is left to move
            return
        add(W[k], p, 1.0 / np.sqrt(length))
        add(u, p, -slope / length)


@compiled_later
def _move(
    E: Array, u: Array, inside: Array, x: Array, lower: Array, upper: Array, direction: Array
) -> tuple[float, int]:
    """Move ``x`` along ``-u`` as far as the box allows; return which share of the way, and what it met: -1 if nothing.

    Sets ``direction``, in which variables that have met a bound stay where they are.
    """
    for v in range(len(x)):
        direction[v] = -u[v] * inside[v]
    for m in range(len(E)):  # rounding must not add up in the sums
        excess = -dot(direction, E[m]) / max(dot(inside, E[m]), 1.0)
        for v in range(len(x)):
            direction[v] += excess * (E[m, v] * inside[v])
    share, blocker = 1.0, -1
    for v in range(len(x)):
        length, room = abs(direction[v]), upper[v] - x[v] if direction[v] > 0.0 else x[v] - lower[v]
        if room < length and room / length < share:
            share, blocker = room / length, v
    for v in range(len(x)):
        x[v] = min(max(x[v] + share * direction[v], lower[v]), upper[v])
    if blocker >= 0:
        x[blocker] = upper[blocker] if direction[blocker] > 0.0 else lower[blocker]
    return share, blocker


@_move.in_numpy
def _move_arrays(
    E: Array, u: Array, inside: Array, x: Array, lower: Array, upper: Array, direction: Array
) -> tuple[float, int]:
    np.multiply(-u, inside, out=direction)
    for row in E:
        direction += (-dot(direction, row) / max(dot(inside, row), 1.0)) * (row * inside)
    lengths, room = np.abs(direction), np.where(direction > 0.0, upper - x, x - lower)
    shares = np.where(room < lengths, room / lengths, 1.0)
    blocker = int(shares.argmin())
    share = float(shares[blocker])
    np.minimum(np.maximum(x + share * direction, lower), upper, out=x)
    if share >= 1.0:
        return 1.0, -1
    x[blocker] = upper[blocker] if direction[blocker] > 0.0 else lower[blocker]
    return share, blocker

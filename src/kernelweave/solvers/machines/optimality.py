r"""How far a point is from the optimum of the problem of :mod:`.smo`: its violation, multipliers and duality gap."""

from __future__ import annotations

import numpy as np

from ...loops.compiling import compiled_later
from ..compiled_loops import Array, add_up
from .pair_steps import Problem

SUM_ROUNDING = 1e-12  # a total that the box misses by less than this share is met up to rounding


@compiled_later
def survey(
    problem: Problem, x: Array, gradient: Array, nearly: Array, least: Array, most: Array
) -> tuple[float, float, float]:
    """Return the objective, what its rounding errors are relative to, and the largest gradient.

    Lowers ``least`` to the least gradient of the variables of each group that can rise, and raises ``most`` likewise.
    """
    value = sizes = squares = largest = 0.0
    for k in range(len(least)):
        for v in range(problem.offsets[k], problem.offsets[k + 1]):
            g = gradient[v]
            value += 0.5 * x[v] * (g + problem.linear[v])
            sizes += np.sqrt(abs(problem.diagonal[v])) * abs(x[v])
            squares += abs(problem.diagonal[v]) * x[v] * x[v]
            largest = max(largest, abs(g))
            if x[v] < problem.upper[v] - nearly[v]:
                least[k] = min(least[k], g)
            if x[v] > problem.lower[v] + nearly[v]:
                most[k] = max(most[k], g)
    return value, sizes * np.sqrt(squares), largest


@survey.in_numpy
def _survey_arrays(
    problem: Problem, x: Array, gradient: Array, nearly: Array, least: Array, most: Array
) -> tuple[float, float, float]:
    curvature = np.abs(problem.diagonal)
    value = add_up(0.5 * x * (gradient + problem.linear))
    size = add_up(np.sqrt(curvature) * np.abs(x)) * np.sqrt(add_up(curvature * x * x))
    risers = np.where(x < problem.upper - nearly, gradient, np.inf)
    fallers = np.where(x > problem.lower + nearly, gradient, -np.inf)
    for k, group in enumerate(map(slice, problem.offsets[:-1], problem.offsets[1:])):
        least[k] = risers[group].min(initial=least[k])
        most[k] = fallers[group].max(initial=most[k])
    return value, float(size), float(np.abs(gradient).max(initial=0.0))


@compiled_later
def find_best_multiplier(gradient: Array, x: Array, lower: Array, upper: Array, least: float, most: float) -> float:
    """Return the multiplier at which the gap of a group is least: in the middle, where there are many.

    The slope in b is the width of the box of all variables with g_i < b, less the sum of x - l: zero at a quantile.
    All with a gradient below ``least`` or above ``most`` are at the bound where they should be.
    """
    values, weights = np.empty(len(x)), np.empty(len(x))
    n, wanted, sure = 0, 0.0, 0.0
    for v in range(len(x)):
        wanted += x[v] - lower[v]
        if gradient[v] < least:
            sure += upper[v] - lower[v]
        elif gradient[v] <= most:
            values[n], weights[n] = gradient[v], upper[v] - lower[v]
            n += 1
    low = _quantile(values[:n], weights[:n], (1.0 - SUM_ROUNDING) * wanted - sure)
    return 0.5 * (low + _quantile(values[:n], weights[:n], (1.0 + SUM_ROUNDING) * wanted - sure))


@find_best_multiplier.in_numpy
def _find_multiplier_of_arrays(
    gradient: Array, x: Array, lower: Array, upper: Array, least: float, most: float
) -> float:
    wanted, width, below = add_up(x - lower), upper - lower, gradient < least
    between = ~below & (gradient <= most)
    values, weights, sure = gradient[between], width[between], add_up(width[below])
    low = _quantile(values, weights, (1.0 - SUM_ROUNDING) * wanted - sure)
    return 0.5 * (low + _quantile(values, weights, (1.0 + SUM_ROUNDING) * wanted - sure))


@compiled_later
def _quantile(values: Array, weights: Array, wanted: float) -> float:
    """Return the least value such that the values up to it have the wanted weight; the largest if there is none."""
    values, weights = values.copy(), weights.copy()
    n, pivot = len(values), 0.0
    while n > 0:
        a, b, c = values[0], values[n // 2], values[n - 1]
        pivot = max(min(a, b), min(max(a, b), c))
        below = equal = 0.0
        for v in range(n):
            below += weights[v] if values[v] < pivot else 0.0
            equal += weights[v] if values[v] == pivot else 0.0
        if below < wanted <= below + equal:
            break
        n_kept = 0
        for v in range(n):
            if values[v] < pivot if wanted <= below else values[v] > pivot:
                values[n_kept], weights[n_kept] = values[v], weights[v]
                n_kept += 1
        wanted -= 0.0 if wanted <= below else below + equal
        n = n_kept
    return pivot


@_quantile.in_numpy
def _sort_quantile(values: Array, weights: Array, wanted: float) -> float:
    order = np.argsort(values, kind="stable")
    place = int(np.searchsorted(np.add.accumulate(weights[order]), wanted))
    return float(values[order[min(place, len(order) - 1)]]) if len(order) else 0.0


@compiled_later
def measure_gap(gradient: Array, x: Array, lower: Array, upper: Array, multiplier: float) -> float:
    """Return the duality gap of a group at a multiplier."""
    gap = 0.0
    for v in range(len(x)):
        excess = gradient[v] - multiplier
        gap += max(excess * (x[v] - lower[v]), excess * (x[v] - upper[v]))
    return gap


@measure_gap.in_numpy
def _measure_gap_of_arrays(gradient: Array, x: Array, lower: Array, upper: Array, multiplier: float) -> float:
    excess = gradient - multiplier
    return add_up(np.maximum(excess * (x - lower), excess * (x - upper)))

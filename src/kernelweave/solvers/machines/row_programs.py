r"""Support vector machines whose kernel matrix does not fit into the memory: rows of it by need.

The quadratic program is that of :mod:`.smo` with one equality,

.. math::

    \min_x\; f(x) = \tfrac12 x^\top K x + p^\top x \quad \text{s.t.} \quad l \le x \le u, \quad \sum_i x_i = t .

Each round takes the variables that are inside the box or should leave their bound, and has :mod:`.smo` solve the small
problem of these (chunking: Boser, Guyon, Vapnik: A training algorithm for optimal margin classifiers. COLT 1992). Then
the gradient :math:`g = Kx + p` of all variables is updated by the rows of those that moved, and with it the certificate
of all, the duality gap. The first round solves the problem of some variables alone, spread over all.

Most of the kernel is never computed. Rows are in single precision, and sums of them in double precision. Rows of
variables inside the box, which move again, are kept as long as there is room.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..compiled_loops import Array, add_rows, mirror
from ..result import Certificate, Status
from . import smo
from .optimality import find_best_multiplier, measure_gap
from .smo import MachineResult, move_to_total

MAX_ENTRIES = 2**27  # kernel entries at a time in single precision: 0.5 GB, of them half for the small problem
BLOCK_ENTRIES = 2**22  # kernel entries that are computed at a time
# Measured on rows of five generators, 4000 to 12,000 of them.
FIRST_SHARE = 0.25  # of the variables are solved for in the first round ...
MIN_FIRST = 2000  # ... at least so many
INNER_TOL_SHARE = 0.1  # of the gap that is left: the accuracy of the small problem; less after rounds without progress
MAX_INNER_TOL = 0.02
MAX_ROUNDS = 1000
MAX_STALLS = 10  # rounds in a row without progress, after which rounding is to blame
EPS, TINY = float(np.finfo(float).eps), float(np.finfo(float).tiny)

Block = Callable[[np.ndarray, np.ndarray], np.ndarray]


def solve_rows(
    block: Block,
    linear: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    *,
    total: float = 0.0,
    tol: float = 1e-3,
    max_entries: int = MAX_ENTRIES,
    max_rounds: int = MAX_ROUNDS,
) -> MachineResult:
    """Minimise ``1/2 x'Kx + linear'x`` over a finite box with the sum of the variables fixed.

    Parameters
    ----------
    block : callable
        ``block(rows, columns)`` gives these entries of K, positive semi-definite, as float32.
    linear, lower, upper : ndarray of shape (n_variables,)
    total : float
        The sum of all variables.
    tol : float
        Stop when the duality gap is at most ``tol`` times the absolute objective.
    max_entries : int
        Largest number of kernel entries that are held at a time: half of them rows, half of them the small problem, of
        which :mod:`.smo` may copy half, and those of variables inside the box in double precision.
    max_rounds : int

    Returns
    -------
    MachineResult
        ``n_iter`` counts rounds.

    Examples
    --------
    >>> points = np.array([-1.0, 1.0], dtype=np.float32)
    >>> block = lambda rows, columns: np.outer(points[rows], points[columns])
    >>> result = solve_rows(block, -points, np.array([-9.0, 0.0]), np.array([0.0, 9.0]))
    >>> result.x, result.objective
    (array([-0.5,  0.5]), -0.5)
    """
    search = _Search(block, linear, lower, upper, total, max_entries)
    status, best, n_stalls, n_rounds = None, np.inf, 0, 0
    while status is None:
        if search.measure <= tol * search.scale:
            status = Status.CONVERGED
        elif n_stalls == MAX_STALLS:
            status = Status.PRECISION
        elif n_rounds == max_rounds:
            status = Status.MAX_ITER
        else:
            before = search.objective
            active = search.first() if n_rounds == 0 else search.active()
            search.step(active, INNER_TOL_SHARE * 0.1**n_stalls, tol)
            search.judge()
            stalled = search.measure >= best and before - search.objective <= search.noise
            n_rounds, n_stalls, best = n_rounds + 1, n_stalls + 1 if stalled else 0, min(best, search.measure)
    kind = "duality gap" if search.convex else "stationarity"
    return MachineResult(
        x=search.x,
        objective=search.objective,
        certificate=Certificate(search.measure, search.objective, kind),
        status=status,
        n_iter=n_rounds,
        multiplier=search.multiplier,
        gradient=search.gradient,
        n_newton=search.n_newton,
    )


class _Search:
    """A point, its gradient and the measure of its quality."""

    def __init__(self, block: Block, linear: Array, lower: Array, upper: Array, total: float, max_entries: int):
        self.linear, self.lower, self.upper = (np.asarray(a, dtype=float) for a in (linear, lower, upper))
        n = len(linear)
        self.block, self.total, self.n_newton, self.convex = block, total, 0, True
        self.max_active = max(3, int(np.sqrt(max_entries // 2)))
        self.rows = _Rows(block, n, max_entries // 2)
        self.x = np.clip(np.zeros(n), self.lower, self.upper)
        move_to_total(total, self.x, self.linear, self.lower, self.upper)
        self.gradient, support = self.linear.copy(), np.flatnonzero(self.x)
        self.rows.add(support, self.x[support], np.zeros(len(support), dtype=bool), self.gradient)
        self.judge()

    def judge(self) -> None:
        """Update the objective, the multiplier, and the measure of quality with what it is relative to."""
        x, gradient, lower, upper = self.x, self.gradient, self.lower, self.upper
        least = float(gradient[x < upper].min(initial=np.inf))
        most = float(gradient[x > lower].max(initial=-np.inf))
        self.violation = max(0.0, most - least)
        ends = [end for end in (most, least) if np.isfinite(end)]
        self.multiplier = sum(ends) / max(1, len(ends))
        if most > least:
            self.multiplier = find_best_multiplier(gradient, x, lower, upper, least, most)
        self.objective = 0.5 * float(x @ (gradient + self.linear))
        self.noise = EPS * float(np.abs(x) @ (np.abs(gradient) + np.abs(self.linear)))
        gap = measure_gap(gradient, x, lower, upper, self.multiplier)
        self.measure = gap if self.convex else self.violation
        self.scale = max(abs(self.objective) if self.convex else float(np.abs(gradient).max(initial=0.0)), TINY)

    def first(self) -> np.ndarray:
        """Return which variables take part in the first round: as many of each linear term as there are."""
        movable = np.flatnonzero(self.lower < self.upper)
        n_first = min(self.max_active, max(MIN_FIRST, int(FIRST_SHARE * len(movable))))
        if len(movable) <= n_first:
            return movable
        order = np.argsort(self.linear[movable], kind="stable")
        return np.sort(movable[order[np.linspace(0, len(movable) - 1, n_first).astype(int)]])

    def active(self) -> np.ndarray:
        """Return which variables take part: those with the largest violations, where they are too many."""
        excess = self.gradient - self.multiplier
        rise = np.where(self.x < self.upper, -excess, -np.inf)
        fall = np.where(self.x > self.lower, excess, -np.inf)
        violation = np.maximum(rise, fall)
        near = np.flatnonzero((violation > 0.0) & (self.lower < self.upper))
        if len(near) > self.max_active:
            pair = int(rise.argmax()), int(fall.argmax())  # a small problem without them may have nothing to move
            near = np.union1d(near[np.argpartition(violation[near], -self.max_active)[2 - self.max_active :]], pair)
        return near

    def step(self, active: np.ndarray, share: float, tol: float) -> None:
        """Minimise over the active variables, the others fixed, up to a share of the gap that is left."""
        K, x = np.empty((len(active), len(active)), np.float32), self.x[active]
        height = max(1, BLOCK_ENTRIES // max(1, len(active)))
        for begin in range(0, len(active), height):
            K[begin : begin + height, begin:] = self.block(active[begin : begin + height], active[begin:])
        mirror(K)
        linear, support = self.gradient[active], np.flatnonzero(x)
        add_rows(K, support, -x[support][None], linear[None])
        value = 0.5 * float(x @ (linear + self.gradient[active]))  # of the small problem
        wanted = self.measure / max(abs(value), TINY) if self.convex else tol
        result = smo.solve(
            K,
            linear,
            self.lower[active],
            self.upper[active],
            total=self.total - float(np.delete(self.x, active).sum()),
            start=x,
            tol=min(MAX_INNER_TOL, share * wanted),
        )
        self.convex = self.convex and result.certificate.kind == "duality gap"
        self.n_newton += result.n_newton
        moved = np.flatnonzero(result.x != x)
        inside = (result.x > self.lower[active]) & (result.x < self.upper[active])
        self.x[active] = result.x
        self.rows.add(active[moved], result.x[moved] - x[moved], inside[moved], self.gradient)


class _Rows:
    """Rows of the kernel, some of which are kept."""

    def __init__(self, block: Block, n: int, max_entries: int):
        self.block, self.n, self.all = block, n, np.arange(n)
        self.kept = np.empty((min(n, max_entries // max(1, n)), n), np.float32)  # memory is taken as it is filled
        self.place = np.full(n, -1)
        self.n_kept = 0

    def add(self, variables: np.ndarray, values: np.ndarray, keep: np.ndarray, out: np.ndarray) -> None:
        """Add to ``out`` the rows of some variables times values; keep those of some, where there is room."""
        known = self.place[variables] >= 0
        add_rows(self.kept, self.place[variables[known]], values[known][None], out[None])
        height = max(1, BLOCK_ENTRIES // max(1, self.n))
        unknown = np.flatnonzero(~known)
        for begin in range(0, len(unknown), height):
            here = unknown[begin : begin + height]
            rows = self.block(variables[here], self.all)
            add_rows(rows, np.arange(len(here)), values[here][None], out[None])
            kept = np.flatnonzero(keep[here])[: len(self.kept) - self.n_kept]
            places = np.arange(self.n_kept, self.n_kept + len(kept))
            self.kept[places], self.place[variables[here[kept]]] = rows[kept], places
            self.n_kept += len(kept)

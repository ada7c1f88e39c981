r"""The linear program of a restricted problem, solved roughly at first and exactly in the end.

A program that grows by rows is wanted for its duals, which choose the next rows. As long as these are far from the
last ones, exact solutions are a waste: those of an interior-point method (:mod:`.interior_lp`) take a fraction of the
time, and choose better, being in the middle of all optima. In the end such a solution tells which vertex is optimal;
where it does not, the simplex method (:mod:`.highs`) starts from its guess, which is a few pivots off. Where new rows
cost nothing beside a step of the interior-point method, one course of steps, which goes on as rows come and go, serves
all rounds: 40 to 90 steps in place of 10 to 25 a round. Programs with few variables are left to the simplex method from
the first round on.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from ..margin import MarginRows
from . import interior_lp
from .highs import GrowingLP, LPSolution, OutOfTimeError, SolverFailedError
from .interior_lp import DenseLP, InteriorPoint

# Variables, from which on rough solutions are faster; where the simplex method needs few pivots, as fast.
MIN_ROUGH_VARIABLES = 300
ROUGH_GAP_SHARE = 0.05  # of the violation is the relative gap of rough solutions, within these limits
MIN_ROUGH_GAP, MAX_ROUGH_GAP = 1e-5, 0.3
VERTEX_GAP = 1e-7  # relative gap at which a vertex is looked for
# The same, between steps. Measured on five generated samples and digits: it is first found at 7e-7 to 2e-4, and to look
# takes a quarter of a step.
EARLY_VERTEX_GAP = 3e-4
GUESS_GAP = 1e-3  # with which the simplex method is told where to look
MAX_BOX = 1e7  # upper end of the box; in wider ones the interior-point method loses too many digits
CENTRAL_GAP = 0.3  # relative gap down to which a point is a good start in a wider box
UNIT_TOL = 1e-9  # relative difference of bounds that are the same
MAX_START_VIOLATION = 10.0  # violation from which on the last solution is no good start for the next
NO_TIME = "There was not the time to solve the linear program."


class RestrictedLP:
    """Minimise ``cost'x`` in a box, with bounds on sums over points.

    Parameters
    ----------
    cost : ndarray of shape (n_variables,)
    rows : MarginRows
        The variables are the duals of these; the entries of one are the sign times those of the point.
    may_be_rough : bool
    by_steps : bool
        Whether a rough solution is one step further than the last one, however rough: for new rows cost nothing beside
        a step. Else it is as good as the violation of new rows asks for.

    Attributes
    ----------
    is_rough : bool
        Whether the last solution was rough, and the next one may be.
    """

    def __init__(self, cost: np.ndarray, rows: MarginRows, may_be_rough: bool = True, by_steps: bool = False):
        self.cost, self.ceiling, self.sign, self.point = cost, rows.cost, rows.sign, rows.point
        self.K, self.lower, self.upper = np.empty((0, rows.n_points)), np.empty(0), np.empty(0)
        self.is_rough = self._begins_rough = may_be_rough and len(cost) >= MIN_ROUGH_VARIABLES
        self.by_steps = by_steps
        self._inside: InteriorPoint | None = None
        self._last_start: np.ndarray | None = None  # the variables that the last step began with
        self._central: InteriorPoint | None = None  # the last one far from all bounds: where other boxes begin
        self._vertex: LPSolution | None = None  # if the last solution was exact
        self._found_early = False  # whether that was between steps, which go on when rows come
        self._gap, self._asked = np.inf, MAX_ROUGH_GAP  # relative gaps of that point, and of the next one at most
        self._simplex = None if self.is_rough else GrowingLP(cost, self.ceiling)

    def add_rows(self, K: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> None:
        """Add rows, given by their entries at the points, with their bounds."""
        self.K = np.concatenate([self.K, K])
        self.lower, self.upper = np.append(self.lower, lower), np.append(self.upper, upper)
        if self._simplex is not None:
            self._simplex.add_rows(K[:, self.point] * self.sign, lower, upper)
        if self._inside is not None and len(K):
            self._inside, self._gap = self._inside.with_rows(len(K)), np.inf
        if self._central is not None:
            self._central = self._central.with_rows(len(K))
        self._vertex = None
        self.is_rough, self._found_early = self.is_rough or self._found_early, False

    def delete_rows(self, rows: np.ndarray) -> None:
        """Delete slack rows by number; the others keep their order."""
        self.K = np.delete(self.K, rows, axis=0)
        self.lower, self.upper = np.delete(self.lower, rows), np.delete(self.upper, rows)
        if self._simplex is not None:
            self._simplex.delete_rows(rows)
        if self._inside is not None:
            self._inside = self._inside.without_rows(rows)
        if self._central is not None:
            self._central = self._central.without_rows(rows)
        if self._vertex is not None:
            self._vertex = replace(self._vertex, row_dual=np.delete(self._vertex.row_dual, rows))

    def set_bounds(self, ceiling: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> None:
        """Move the upper end of the box, and the bounds of all rows."""
        old, self.ceiling, self.lower, self.upper = self._program(), ceiling, lower, upper
        self._inside, self._gap, self._last_start = None, np.inf, None
        self.is_rough, self._found_early = self._begins_rough and float(ceiling.max()) <= MAX_BOX, False
        if self.goes_by_steps:
            self._begin_in_wider_box(old)
        else:
            self._central = self._vertex = None
        if self._begins_rough and float(ceiling.max()) <= MAX_BOX:
            self._simplex = None
        elif self._simplex is None:
            self._simplex = self._exact(None)
        else:
            self._simplex.set_upper(ceiling)
            self._simplex.set_row_bounds(lower, upper)

    def _begin_in_wider_box(self, old: DenseLP) -> None:
        """Begin where the steps of another box of variables were still far from all bounds, if that is inside this one.

        Where no variable was at the upper end of that box, its optimum is the new one, too.
        """
        bounds = np.isfinite(old.upper) & (old.upper > 0.0)
        unit = float((self.upper[bounds] / old.upper[bounds]).max(initial=0.0)) or 1.0
        is_scaled = np.allclose(self.upper[bounds], unit * old.upper[bounds], rtol=UNIT_TOL, atol=0.0)
        if not is_scaled or np.any(self.ceiling < (1.0 - UNIT_TOL) * unit * old.ceiling):
            self._central = self._vertex = None
            return
        if self._central is not None:
            self._central = replace(self._central, x=unit * self._central.x)
            self._inside = self._central
        if self._vertex is not None and np.all(self._vertex.x < (1.0 - UNIT_TOL) * old.ceiling):
            self._vertex = replace(self._vertex, x=unit * self._vertex.x)
            self.is_rough = False
        else:
            self._vertex = None

    @property
    def begins_by_steps(self) -> bool:
        """Whether solutions are steps until they are good enough for exact ones."""
        return self._begins_rough and self.by_steps

    @property
    def goes_by_steps(self) -> bool:
        """Whether the next solution is one step further than the last one."""
        return self.is_rough and self.by_steps

    def settle(self) -> bool:
        """Have the next solution as good as rough ones are, or exact if the last one was; False if it was exact."""
        was_rough, self._asked = self.is_rough, MIN_ROUGH_GAP
        self.is_rough = was_rough and self._gap > MIN_ROUGH_GAP
        return was_rough

    def solve(self, violation: float = np.inf, seconds: float = np.inf) -> LPSolution:
        """Solve from the last solution.

        Parameters
        ----------
        violation : float
            How much the worst of the new rows violates its bound at the last solution, relative to the bound.
        seconds : float
            After which an `OutOfTimeError` is raised.
        """
        end = time.perf_counter() + seconds
        if self._vertex is not None:
            return self._vertex
        if self.goes_by_steps and self._step():
            if time.perf_counter() >= end:
                raise OutOfTimeError(NO_TIME)
            assert self._inside is not None
            return self._vertex or LPSolution(self._inside.x, self._inside.row_dual, 1)
        if self._simplex is None:
            gap = (
                float(np.clip(ROUGH_GAP_SHARE * violation, MIN_ROUGH_GAP, self._asked)) if self.is_rough else VERTEX_GAP
            )
            if self._inside is None or self._gap > gap:
                self._inside, self._gap = self._approach(gap, violation < MAX_START_VIOLATION, end), gap
                self._last_start = None
            self._asked = MAX_ROUGH_GAP
            if self.is_rough and self._inside.error <= gap:
                return LPSolution(self._inside.x, self._inside.row_dual, self._inside.n_iter)
            self.is_rough = False
            vertex = interior_lp.vertex(self._program(), self._inside)
            if vertex is not None:
                self._vertex = LPSolution(*vertex, self._inside.n_iter)
                return self._vertex
            if time.perf_counter() >= end:  # HiGHS would look at the time only after it has mended the guess
                raise OutOfTimeError(NO_TIME)
            self._simplex = self._exact(self._inside)
        try:
            return self._simplex.solve(end - time.perf_counter())
        except OutOfTimeError:
            raise
        except SolverFailedError:
            if self._inside is None:
                raise
            self._inside, self._gap = self._approach(VERTEX_GAP, True, end), VERTEX_GAP
            if self._inside.error > GUESS_GAP:
                raise
            self._simplex = None
            return LPSolution(self._inside.x, self._inside.row_dual, self._inside.n_iter)

    def _step(self) -> bool:
        """Take a step, the first one to a point inside all bounds; False if rounding forbids it."""
        program = self._program()
        if self._inside is None:
            self._inside = interior_lp.feasible_start(program)
            return True
        start = self._find_start(program)
        moved = interior_lp.step_inside(program, start)
        if moved is None:
            self.is_rough, self._inside = False, start
            return False
        self._last_start, self._inside, self._gap = start.x, moved, moved.error
        if moved.error > CENTRAL_GAP or self._central is None:
            self._central = moved
        elif moved.error <= EARLY_VERTEX_GAP and (found := interior_lp.vertex(program, moved)) is not None:
            self._vertex = LPSolution(*found, 1)
            self.is_rough, self._found_early = False, True
        return True

    def _find_start(self, program: DenseLP) -> InteriorPoint:
        """Return the last point, moved back to where it is inside the bounds of new rows."""
        assert self._inside is not None
        if self._last_start is None:
            return self._inside
        return interior_lp.move_inside(program, self._last_start, self._inside)

    def _program(self) -> DenseLP:
        return DenseLP(self.K, self.sign, self.point, self.cost, self.ceiling, self.lower, self.upper)

    def _approach(self, gap: float, warm: bool, end: float) -> InteriorPoint:
        """Return a solution up to a relative gap, or as good as can be."""
        program = self._program()
        for start in [self._find_start(program), None] if warm and self._inside is not None else [None]:
            solution = interior_lp.solve_interior_lp(program, gap, start, end - time.perf_counter())
            if solution.error <= max(gap, MIN_ROUGH_GAP):
                break
            if time.perf_counter() >= end:
                raise OutOfTimeError(NO_TIME)
        return solution

    def _exact(self, point: InteriorPoint | None) -> GrowingLP:
        """Return the program for the simplex method, to start at the vertex nearest to a point that is any good."""
        simplex = GrowingLP(self.cost, self.ceiling)
        simplex.add_rows(self.K[:, self.point] * self.sign, self.lower, self.upper)
        if point is not None and point.error <= GUESS_GAP:
            at_upper = np.append(point.x > 0.5 * self.ceiling, point.row_dual < 0.0)
            simplex.guess_basis(point.free, at_upper)
        return simplex

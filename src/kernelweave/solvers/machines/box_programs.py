r"""Quadratic programs over boxes that share a kernel: all of them together.

.. math:: \min_{x_c}\; f_c(x_c) = \tfrac12 x_c^\top K x_c + p_c^\top x_c \quad \text{s.t.} \quad l_c \le x_c \le u_c,
    \qquad c = 1, \dots, k .

They are the machines without equality of several classes, or one of them. What costs most of a machine alone is to
read the kernel, again and again for few numbers. So the gradients :math:`g_c = K x_c + p_c` of all problems are one
product of matrices in each round; it gives the certificate of each, the duality gap over all variables,

.. math:: f_c(x_c) - f_c^* \le \sum_i \max\{g_i (x_i - l_i),\; g_i (x_i - u_i)\} .

Between two rounds, each problem that is not solved takes a step on its own: the variables that are inside the box,
should leave their bound, or are close to that make a small problem with a small kernel matrix, which :mod:`.smo`
solves. Where a kernel is given by features, :math:`K = Z Z^\top`, and these variables are too many for a matrix, sweeps
over them take turns with small problems of those that violate most (Hsieh et al.: A dual coordinate descent method for
large-scale linear SVM. ICML 2008).
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from ...loops.compiling import compiled
from ..compiled_loops import Array
from ..deadline import NO_DEADLINE, Deadline
from ..margin import DualProblem
from ..result import Certificate, Status
from . import smo
from .smo import MachineResult

MAX_DENSE_VARIABLES = 3000  # variables: up to so many, a kernel matrix is formed
MAX_KEPT_ENTRIES = 2**26  # of a kernel matrix that is formed of features for good: 8192 points, 0.5 GB
N_SWEEPS = 5  # in a row, before the gradient of all variables is looked at again
MAX_ROUNDS = 10_000
INNER_TOL_SHARE = 0.1  # of the gap that is left: the accuracy of the small problem
# Of the largest violation: variables that are as close to one take part in the small problem. On 26 classes of 2000
# rows 0.03 takes two thirds of the time of 1, with more rounds of fewer variables.
MARGIN = 0.03
MAX_STALLS = 10  # rounds in a row without progress, after which rounding is to blame ...
NOISE = 1e-10  # ... if the gap is within this of the sizes of what it is made of ...
PATIENCE = 10  # ... or the stalls are so many times as many
STILL_ROUNDS = (
    4  # rounds, two of either kind, in which the objective falls by less than NOISE of the gap: it never closes
)
TINY = float(np.finfo(float).tiny)


class DenseKernel:
    """A kernel that is given by its matrix of shape (n_points, n_points)."""

    def __init__(self, K: np.ndarray):
        self.K = K

    def products(self, X: np.ndarray) -> np.ndarray:
        """Return the products with the columns of ``X``, shape (n_points, n_vectors)."""
        return self.K @ X

    def gram(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return a kernel matrix of some sorted rows at least, and where they are in it; nothing is copied."""
        return self.K, rows

    def note(self, n_entries: int) -> None:
        """Take note of how many entries a round has asked for; they are all there."""


class FeatureKernel:
    """A kernel that is given by features of shape (n_points, n_features).

    The matrix of all points is formed once as many entries were asked for as it has, if it is small enough: so entries
    cost at most twice what they would, had it been known from the start how many would be needed.
    """

    def __init__(self, Z: np.ndarray):
        self.Z = np.ascontiguousarray(Z, dtype=float)
        self.squares = np.einsum("ij,ij->i", self.Z, self.Z)
        self.K: np.ndarray | None = None
        self.n_computed = 0

    def products(self, X: np.ndarray) -> np.ndarray:
        """Return the products with the columns of ``X``, shape (n_points, n_vectors)."""
        return self.Z @ (self.Z.T @ X)

    def gram(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return a kernel matrix of some sorted rows at least, and where they are in it."""
        if self.K is not None:
            return self.K, rows
        Z = self.Z[rows]  # one array, so that half of the products is computed
        return Z @ Z.T, np.arange(len(rows))

    def note(self, n_entries: int) -> None:
        """Take note of how many entries a round has asked for, and form the matrix where that pays.

        Between rounds, so that results do not depend on which problem of a round is first.
        """
        self.n_computed += n_entries
        if self.K is None and len(self.Z) ** 2 <= min(self.n_computed, MAX_KEPT_ENTRIES):
            self.K = self.Z @ self.Z.T


Kernel = DenseKernel | FeatureKernel


def solve_boxes(
    kernel: Kernel,
    problems: Sequence[DualProblem],
    *,
    starts: Sequence[np.ndarray | None] | None = None,
    products: np.ndarray | None = None,
    tol: float = 1e-3,
    max_rounds: int = MAX_ROUNDS,
    deadline: Deadline = NO_DEADLINE,
    n_threads: int = 1,
) -> list[MachineResult]:
    """Minimise ``1/2 x'Kx + linear'x`` over a finite box, for several boxes and linear terms.

    Parameters
    ----------
    kernel : DenseKernel or FeatureKernel
        Positive semi-definite; a matrix that is found not to be so is left to :func:`.smo.solve`.
    problems : sequence of DualProblem
        Without equality; ``index`` maps variables to rows of the kernel, which they may share.
    starts : sequence of ndarray or None, optional
        Where to start; clipped to the boxes.
    products : ndarray of shape (n_points, n_problems), optional
        The products of the kernel with the starts, summed by rows, where they are known.
    tol : float
        Stop when each duality gap is at most ``tol`` times the absolute objective.
    max_rounds : int
        Largest number of looks at all variables.
    deadline : Deadline
        When it is over, an `OutOfTimeError` ends all but the first step of the first problem.
    n_threads : int
        Problems that take their steps at the same time; without influence on the result.

    Returns
    -------
    list of MachineResult
        As those of :func:`.smo.solve` without equality; ``n_iter`` counts rounds.

    Examples
    --------
    >>> points = np.array([[-1.0], [1.0]])
    >>> problem = DualProblem(np.array([1.0, -1.0]), np.array([-9.0, 0.0]), np.array([0.0, 9.0]), None)
    >>> result = solve_boxes(FeatureKernel(points), [problem], tol=1e-9)[0]
    >>> round(result.objective, 6), result.status.name
    (-0.5, 'CONVERGED')
    """
    starts = [None] * len(problems) if starts is None else starts
    searches = [_Search(kernel, problem, start) for problem, start in zip(problems, starts, strict=True)]
    n_points = _count_points(kernel)
    known = np.zeros((n_points, len(problems)))
    stale = []
    for c, search in enumerate(searches):
        if products is not None and not search.is_clipped:
            known[:, c] = products[:, c]
        elif search.x.any():
            stale.append(c)
    with ThreadPoolExecutor(min(n_threads, len(problems))) as threads:
        run: Any = threads.map if n_threads > 1 else map
        for n_round in range(max_rounds + 1):
            if stale:
                by_rows = np.column_stack([searches[c].by_rows(n_points) for c in stale])
                known[:, stale] = kernel.products(by_rows)
            for c in range(len(problems)) if n_round == 0 else stale:
                searches[c].judge(known[:, c], tol)
            stale = [c for c, search in enumerate(searches) if search.status is None]
            if not stale or n_round == max_rounds:
                break

            def step(c: int, n_round: int = n_round, first: int = stale[0]) -> None:
                if n_round > 0 or c != first:
                    deadline.check(f"all of {len(problems)} machines were trained")
                searches[c].step(n_round, tol)

            list(run(step, stale))
            kernel.note(sum(searches[c].n_entries for c in stale))
    return [search.result() for search in searches]


def _count_points(kernel: Kernel) -> int:
    return len(kernel.K if isinstance(kernel, DenseKernel) else kernel.Z)


class _Search:
    """A problem and how far it is."""

    def __init__(self, kernel: Kernel, problem: DualProblem, start: np.ndarray | None):
        self.kernel, self.problem, self.rows = kernel, problem, problem.rows
        given = np.zeros(len(problem.linear)) if start is None else start
        self.x = np.clip(given, problem.lower, problem.upper).astype(float)
        self.is_clipped = start is None or not np.array_equal(self.x, given)
        self.by_row = np.argsort(self.rows, kind="stable")  # variables of a row follow each other: it is read once
        self.best, self.n_stalls, self.n_rounds = np.inf, 0, -1  # the first look is at the start
        self.highest = np.inf
        self.n_entries = 0  # of the kernel, that the last step asked for
        self.status: Status | None = None
        self.indefinite: MachineResult | None = None

    def by_rows(self, n_points: int) -> np.ndarray:
        """Return the sum of the variables of each row."""
        return np.bincount(self.rows, weights=self.x, minlength=n_points)

    def judge(self, product: np.ndarray, tol: float) -> None:
        """Take note of the product of the kernel with the point: gradient, objective, gap, and whether it is solved."""
        if self.indefinite is not None:
            self.status = self.indefinite.status
            return
        x, problem = self.x, self.problem
        fitted = product[self.rows]
        self.gradient = fitted + problem.linear
        square, slope = float(fitted @ x), float(problem.linear @ x)
        self.objective = 0.5 * square + slope
        self.gap = float(np.maximum(self.gradient * (x - problem.lower), self.gradient * (x - problem.upper)).sum())
        self.n_rounds += 1
        self.n_stalls = self.n_stalls + 1 if self.gap >= self.best else 0
        self.highest = self.objective if self.n_stalls == 0 else self.highest  # when the gap last fell
        self.best = min(self.best, self.gap)
        if self.gap <= tol * max(abs(self.objective), TINY):
            self.status = Status.CONVERGED
        elif self.n_stalls >= STILL_ROUNDS and self.highest - self.objective <= NOISE * self.gap:
            self.status = Status.PRECISION
        elif self.n_stalls >= MAX_STALLS:
            noise = NOISE * (square + float(np.abs(problem.linear) @ np.abs(x)))
            if self.gap <= noise or self.n_stalls >= PATIENCE * MAX_STALLS:
                self.status = Status.PRECISION

    def step(self, n_round: int, tol: float) -> None:
        """Move the variables that can gain."""
        problem, x, gradient = self.problem, self.x, self.gradient
        violation = np.maximum(
            np.where(x > problem.lower, gradient, -np.inf), np.where(x < problem.upper, -gradient, -np.inf)
        )
        near = violation > -MARGIN * max(0.0, float(violation.max()))
        active = self.by_row[(near & (problem.lower < problem.upper))[self.by_row]]
        self.n_entries = 0
        if self.kernel.K is None and len(active) > MAX_DENSE_VARIABLES:
            if n_round % 2 == 0:
                Z, squares = self.kernel.Z, self.kernel.squares[self.rows]
                v = self.by_rows(len(Z)) @ Z
                _sweep(Z, problem.linear, problem.lower, problem.upper, self.rows, squares, x, v, active, N_SWEEPS)
                return
            # those that violate most: sweeps crawl where features are ill-conditioned
            active = active[np.argpartition(violation[active], -MAX_DENSE_VARIABLES)[-MAX_DENSE_VARIABLES:]]
        self._solve_small(active, tol)

    def _solve_small(self, active: np.ndarray, tol: float) -> None:
        """Minimise over the active variables, the others fixed; update ``x`` in place."""
        here, places = np.unique(self.rows[active], return_inverse=True)
        K, index = self.kernel.gram(here)
        self.n_entries = len(here) ** 2
        x, lower, upper = self.x[active], self.problem.lower[active], self.problem.upper[active]
        # In terms of moves from here the gradient is the linear term: no product with the kernel is needed.
        result = smo.solve(
            K,
            self.gradient[active],
            lower - x,
            upper - x,
            total=None,
            index=index[places],
            constant=self.objective,
            tol=min(0.1, INNER_TOL_SHARE * self.gap / max(abs(self.objective), TINY)),
        )
        moved = np.clip(x + result.x, lower, upper)
        moved = np.where(result.x == lower - x, lower, np.where(result.x == upper - x, upper, moved))
        self.x[active] = moved
        if result.certificate.kind != "duality gap" and isinstance(self.kernel, DenseKernel):
            problem = self.problem
            self.indefinite = smo.solve(
                self.kernel.K, problem.linear, problem.lower, problem.upper, total=None, index=self.rows, tol=tol
            )

    def result(self) -> MachineResult:
        """Return the point with its certificate."""
        if self.indefinite is not None:
            return self.indefinite
        status = Status.MAX_ITER if self.status is None else self.status
        certificate = Certificate(self.gap, self.objective)
        return MachineResult(
            self.x, self.objective, certificate, status, self.n_rounds, multiplier=0.0, gradient=self.gradient
        )


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

"""The course of a method that moves weights of kernels: what it recorded, its best point, and why it ended."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from .deadline import NO_DEADLINE, Deadline
from .result import Certificate, FitState, SolverResult, Status

MIN_DECREASE = 1e-13  # of the objective: a smaller decrease is none
STALLED_GAP_RATIO = 0.9  # of the smallest gap: a gap above is no progress


P = TypeVar("P")
R = TypeVar("R", bound=SolverResult)


@dataclass(frozen=True)
class Best(Generic[P]):
    """The point with the smallest gap: weights, objective, gap, and what else the method knows there."""

    weights: np.ndarray
    objective: float
    gap: float
    point: P


class Course(Generic[P]):
    """The best point so far, the history, and why it ended.

    Parameters
    ----------
    tol : float
        Stop when the duality gap is at most ``tol`` times the absolute objective.
    max_iter : int
        Largest number of steps.
    callback : callable, optional
        Called with a state after each step; a true answer stops.
    patience : int
        Steps in a row that lower neither the objective nor the gap, after which rounding is to blame.
    min_decrease : float
        Share of the smallest gap that is no progress of the objective, however exact that is.
    deadline : Deadline

    Attributes
    ----------
    step : str
        The name of the step that led to the next point.
    n_stalls : int
        Steps in a row without progress.
    """

    def __init__(
        self,
        tol: float,
        max_iter: int,
        callback: Callable[[FitState], object] | None,
        *,
        patience: int,
        min_decrease: float = 0.0,
        deadline: Deadline = NO_DEADLINE,
    ):
        self.tol, self.max_iter, self.callback = tol, max_iter, callback
        self.patience, self.min_decrease, self.deadline = patience, min_decrease, deadline
        self.history: list[dict[str, Any]] = []
        self.started, self.step, self.n_stalls = time.perf_counter(), "start", 0
        self.lowest = self.smallest = np.inf  # objective and gap
        self._best: Best[P] | None = None
        self.status = Status.CONVERGED

    def ends(self, weights: np.ndarray, objective: float, gap: float, point: P, **count: int) -> bool:
        """Record a point, and what the method counted up to it; say whether it is the last."""
        least = max(MIN_DECREASE * abs(self.lowest), self.min_decrease * self.smallest)
        stalled = (
            len(self.history) > 0 and objective >= self.lowest - least and gap >= STALLED_GAP_RATIO * self.smallest
        )
        self.n_stalls = self.n_stalls + 1 if stalled else 0
        if self._best is None or gap < self.smallest:
            self._best = Best(weights, objective, gap, point)
        self.lowest, self.smallest = min(self.lowest, objective), min(self.smallest, gap)
        iteration, relative_gap = len(self.history), Certificate(gap, objective).relative
        seconds = time.perf_counter() - self.started
        record: dict[str, Any] = {"iteration": iteration, **count, "objective": objective, "gap": gap}
        record |= {"relative_gap": relative_gap, "seconds": seconds}
        self.history.append({**record, "n_active": int(np.count_nonzero(weights)), "step": self.step})
        state = FitState(
            iteration=iteration,
            objective=objective,
            bound=objective - gap,
            gap=gap,
            target=self.tol,
            seconds=seconds,
            phase=self.step,
            max_steps=self.max_iter + 1,  # the start is one
            details={"weights": weights, **count},
        )
        asked = self.callback is not None and self.callback(state)
        if relative_gap <= self.tol:
            self.status = Status.CONVERGED
        elif asked:
            self.status = Status.CALLBACK
        elif self.deadline.is_over:
            self.status = Status.MAX_TIME
        elif iteration >= self.max_iter:
            self.status = Status.MAX_ITER
        elif self.n_stalls >= self.patience:
            self.status = Status.PRECISION
        else:
            return False
        return True

    @property
    def best(self) -> Best[P]:
        """The point with the smallest gap."""
        assert self._best is not None  # a method ends no earlier than at its first point
        return self._best

    def result(self, result: type[R], *, kind: str = "duality gap", **details: Any) -> R:
        """Return the best point as a result of this type, with what else was found there."""
        best = self.best
        return result(
            x=best.weights,
            objective=best.objective,
            certificate=Certificate(best.gap, best.objective, kind),
            status=self.status,
            n_iter=len(self.history) - 1,
            history=tuple(self.history),
            **details,
        )

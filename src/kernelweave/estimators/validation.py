"""Early stopping: the score on held-out rows after each round, and the best model so far (CG-Boost, Figure 1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..kernels.bound_library import BoundLibrary
from ..solvers.columns.masters import MasterSolution


class ValidationCurve:
    """Follows the score on validation rows through the rounds of a fit.

    Parameters
    ----------
    bound : BoundLibrary
    X : array or CSR of shape (n_validation, n_features)
    score : callable
        ``score(values)`` of the outputs at ``X``, shape (n_validation, n_outputs); larger is better.
    offsets, scale : ndarray of shape (n_columns,), callable
        ``offsets(columns)`` and ``scale[columns]`` turn the kernels' values into the problem's.
    patience : int
        Rounds without a better score after which to stop.

    Attributes
    ----------
    scores : list of float
    stopped : bool
        Whether it has asked the fit to stop.
    best : tuple of (ndarray, MasterSolution)
        Working set and solution of each output in the best round.
    """

    def __init__(
        self,
        bound: BoundLibrary,
        X: Any,
        score: Callable[[np.ndarray], float],
        offsets: Callable[[np.ndarray], np.ndarray],
        scale: np.ndarray,
        patience: int,
    ):
        self.scores: list[float] = []
        self.stopped = False
        self.best: tuple[tuple[np.ndarray, MasterSolution], ...] = ()
        self._bound, self._X, self._score = bound, X, score
        self._offsets, self._scale, self._patience = offsets, scale, patience
        self._known = np.empty(0, dtype=np.intp)  # columns computed so far, sorted
        self._values = np.empty((X.shape[0], 0))
        self._best_round = 0

    def __call__(self, state: Any) -> bool:
        """Score the models of a round; true when it is time to stop."""
        self.scores.append(self._scored(state.solutions))
        if self.scores[-1] > self.scores[self._best_round] or not self.best:
            self._best_round, self.best = len(self.scores) - 1, state.solutions
        self.stopped = len(self.scores) - 1 - self._best_round >= self._patience
        return self.stopped

    def keep(self, solutions: Sequence[MasterSolution]) -> None:
        """Put exact solutions in the place of the best round's, with the score that they have."""
        if all(new is old for new, (_, old) in zip(solutions, self.best, strict=True)):
            return
        self.best = tuple((columns, new) for new, (columns, _) in zip(solutions, self.best, strict=True))
        self.scores[self._best_round] = self._scored(self.best)

    def _scored(self, solutions: Sequence[tuple[np.ndarray, MasterSolution]]) -> float:
        outputs = [self._columns(columns) @ solution.coef + solution.intercept for columns, solution in solutions]
        return self._score(np.column_stack(outputs))

    def _columns(self, columns: np.ndarray) -> np.ndarray:
        """Return the problem's columns at the validation rows; each is computed once."""
        new = np.setdiff1d(columns, self._known)
        if len(new):
            kernel, center = self._bound.split(new)
            values = np.empty((self._X.shape[0], len(new)))
            for p in np.unique(kernel):
                here = kernel == p
                values[:, here] = self._bound.kernels[p].against(self._X, center[here])
            values = (values - self._offsets(new)) / self._scale[new]
            known = np.concatenate([self._known, new])
            order = np.argsort(known)
            self._known, self._values = known[order], np.hstack([self._values, values])[:, order]
        return self._values[:, np.searchsorted(self._known, columns)]

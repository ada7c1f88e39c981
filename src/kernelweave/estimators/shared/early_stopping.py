"""Early stopping: the score on held-out rows after each round, and the best model so far (CG-Boost, Figure 1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import train_test_split

from ...kernels.bound_library import BoundLibrary
from ...labels import Partition, labeled_values
from ...solvers.columns.masters import ColumnResult, MasterSolution
from ...solvers.result import Certificate, FitState, Status
from .fold_choice import number_by_appearance
from .outputs import choose_classes, refuse_unlabeled
from .sample import Sample


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Rows that take no part in a fit, and their labels.

    Attributes
    ----------
    X : array or CSR of shape (n_held, n_features)
    labels : ndarray of shape (n_held,)
    """

    X: Any
    labels: np.ndarray

    def __post_init__(self) -> None:
        n_rows, n_labels = self.X.shape[0], len(self.labels)
        if n_rows != n_labels:
            raise ValueError(f"X_val has {n_rows} rows but y_val has {n_labels}; they must be equally long.")


@dataclass(frozen=True, eq=False)
class Validation:
    """Rows on which the model of each round is scored.

    Attributes
    ----------
    X : array or CSR of shape (n_validation, n_features)
    score : callable
        ``score(values)`` of the outputs at ``X``, shape (n_validation, n_outputs); larger is better.
    patience : int
        Rounds without a better score after which to stop.
    """

    X: Any
    score: Callable[[np.ndarray], float]
    patience: int


class ValidationCurve:
    """Follows the score on validation rows through the rounds of a fit.

    Parameters
    ----------
    bound : BoundLibrary
    validation : Validation
    offsets, scale : callable, ndarray of shape (n_columns,)
        ``offsets(columns)`` and ``scale[columns]`` turn the kernels' values into the problem's.
    callback : callable, optional
        The user's, called after the score is known; a true answer stops the fit too.

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
        validation: Validation,
        offsets: Callable[[np.ndarray], np.ndarray],
        scale: np.ndarray,
        callback: Callable[[FitState], object] | None = None,
    ):
        self.scores: list[float] = []
        self.stopped = False
        self.best: tuple[tuple[np.ndarray, MasterSolution], ...] = ()
        self._bound, self._validation, self._callback = bound, validation, callback
        self._offsets, self._scale = offsets, scale
        self._known = np.empty(0, dtype=np.intp)  # columns computed so far, sorted
        self._values = np.empty((validation.X.shape[0], 0))
        self._best_round = 0

    def __call__(self, state: FitState) -> bool:
        """Score the models of a round; true when it is time to stop."""
        self.scores.append(self._score(state.details["solutions"]))
        if self.scores[-1] > self.scores[self._best_round] or not self.best:
            self._best_round, self.best = len(self.scores) - 1, state.details["solutions"]
        self.stopped = len(self.scores) - 1 - self._best_round >= self._validation.patience
        stopped_by_user = self._callback is not None and bool(self._callback(state))
        return stopped_by_user or self.stopped

    def replace_best(self, solutions: Sequence[MasterSolution]) -> None:
        """Put exact solutions in the place of the best round's, with the score that they have."""
        if all(new is old for new, (_, old) in zip(solutions, self.best, strict=True)):
            return
        self.best = tuple((columns, new) for new, (columns, _) in zip(solutions, self.best, strict=True))
        self.scores[self._best_round] = self._score(self.best)

    def best_results(self, results: Sequence[ColumnResult]) -> list[ColumnResult]:
        """Return the results with the models of the best round; bounds proven later hold for them too."""
        out = []
        for result, (columns, solution) in zip(results, self.best, strict=True):
            bound = result.objective - result.certificate.gap
            certificate = Certificate(max(0.0, solution.objective - bound), solution.objective, result.certificate.kind)
            earlier = solution.objective != result.objective
            stopped = self.stopped and result.status is Status.CALLBACK
            status = Status.VALIDATION if stopped or (earlier and result.status.converged) else result.status
            scored = [{**record, "validation_score": self.scores[record["iteration"] - 1]} for record in result.history]
            out.append(
                replace(
                    result,
                    x=solution.coef,
                    objective=solution.objective,
                    certificate=certificate,
                    status=status,
                    history=tuple(scored),
                    columns=columns,
                    intercept=solution.intercept,
                    signed_dual=solution.signed_dual,
                    rho=solution.rho,
                )
            )
        return out

    def _score(self, solutions: Sequence[tuple[np.ndarray, MasterSolution]]) -> float:
        outputs = [
            self._compute_columns(columns) @ solution.coef + solution.intercept for columns, solution in solutions
        ]
        return self._validation.score(np.column_stack(outputs))

    def _compute_columns(self, columns: np.ndarray) -> np.ndarray:
        """Return the problem's columns at the validation rows; each is computed once."""
        new = np.setdiff1d(columns, self._known)
        if len(new):
            kernel, center = self._bound.split(new)
            values = np.empty((self._validation.X.shape[0], len(new)))
            for p in np.unique(kernel):
                here = kernel == p
                values[:, here] = self._bound.kernels[p].against(self._validation.X, center[here])
            values = (values - self._offsets(new)) / self._scale[new]
            known = np.concatenate([self._known, new])
            order = np.argsort(known)
            self._known, self._values = known[order], np.hstack([self._values, values])[:, order]
        return self._values[:, np.searchsorted(self._known, columns)]


def require_validation(owner: str, X_val: Any, y_val: Any, fraction: float | None = None) -> None:
    """Refuse validation rows without labels, labels without rows, and rows beside a share that is held out."""
    if (X_val is None) != (y_val is None):
        raise ValueError(f"{owner} needs X_val and y_val together; one of them is missing.")
    if X_val is not None and fraction is not None:
        raise ValueError(f"{owner} got both validation_fraction and X_val; give one of them.")


def hold_out(
    sample: Sample, fraction: float | None, rng: np.random.Generator, given: HeldOut | None = None
) -> tuple[Sample, HeldOut | None]:
    """Hold out a share of the rows, by class where there are classes; without a share, return what is given."""
    if fraction is None:
        return sample, given
    rows = np.arange(sample.n_rows)
    _, held = train_test_split(
        rows,
        test_size=float(fraction),
        stratify=number_by_appearance(sample.partition.codes) if isinstance(sample.partition, Partition) else None,
        random_state=int(rng.integers(2**31)),
    )
    keep = ~np.isin(rows, held)
    return sample.restrict(keep), HeldOut(sample.X[~keep], sample.partition.labels[~keep])


def read_validation_classes(y_val: Any, partition: Partition, owner: str) -> np.ndarray:
    """Return the classes of validation rows, which must be among those of the training rows."""
    labels = labeled_values(refuse_unlabeled(y_val, owner, "SSMKClassifier"), unlabeled=None, name="y_val")[1]
    known = partition.classes.tolist()
    unknown = [label for label in dict.fromkeys(labels.tolist()) if label not in known]
    if unknown:
        raise ValueError(
            f"y_val holds {_list_classes(unknown)}, which no training row has; the classes of y are "
            f"{_list_classes(known)}. Write y_val as y is written, and leave rows of other classes out of X_val and "
            "y_val."
        )
    return labels


def watch_accuracy(held: HeldOut | None, classes: np.ndarray, patience: int) -> Validation | None:
    """Score classes by the accuracy."""
    if held is None:
        return None
    return Validation(
        held.X, lambda values: float(accuracy_score(held.labels, classes[choose_classes(values)])), patience
    )


def watch_r2(held: HeldOut | None, patience: int) -> Validation | None:
    """Score numbers by the coefficient of determination."""
    if held is None:
        return None
    return Validation(held.X, lambda values: float(r2_score(held.labels, values[:, 0])), patience)


def _list_classes(classes: list[Any]) -> str:
    """Return a few classes in words."""
    return ", ".join(map(repr, classes[:5])) + (f", ... ({len(classes)} in all)" if len(classes) > 5 else "")

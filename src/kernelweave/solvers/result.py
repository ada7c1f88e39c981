"""What every solver returns: a solution, why it stopped, and a certificate of how good it is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np


class Status(Enum):
    """Why a solver stopped; the value is a sentence for people."""

    CONVERGED = "The certificate is within the tolerance."
    MAX_COLUMNS = "Stopped at max_columns before the certificate reached the tolerance."
    MAX_TIME = "Stopped at max_time before the certificate reached the tolerance."
    MAX_ITER = "Stopped at max_iter before the certificate reached the tolerance."
    VALIDATION = (
        "Stopped since the score on the validation rows no longer improved; this is the best model of the path."
    )
    SUPERVISED = (
        "The certificate is within the tolerance. On the labelled folds the unlabelled rows hurt, so the model was "
        "learned from the labelled rows alone."
    )
    CALLBACK = "Stopped by the callback before the certificate reached the tolerance."
    PRECISION = "Nothing improves the model any more, but rounding keeps the certificate above the tolerance."
    SOLVER_FAILED = "The LP solver gave up; this is the last solution it found, with its certificate."

    @property
    def converged(self) -> bool:
        """Whether the certificate reached the tolerance."""
        return self in (Status.CONVERGED, Status.SUPERVISED)


@dataclass(frozen=True)
class Certificate:
    """A proof of how far a solution can be from the best.

    Attributes
    ----------
    gap : float
        Upper bound on ``objective - optimum`` (for ``kind="duality gap"``).
    objective : float
        The objective value the gap belongs to.
    kind : str
        What the number is: ``"duality gap"``, ``"stationarity"`` or ``"KKT residual"``.
    scope : str
        What the proof covers, in words; empty where it is the whole problem.
    """

    gap: float
    objective: float
    kind: str = "duality gap"
    scope: str = ""

    @property
    def relative(self) -> float:
        """The gap relative to the absolute objective."""
        return float(self.gap) / max(abs(float(self.objective)), float(np.finfo(float).tiny))

    def __str__(self) -> str:
        scope = f" over {self.scope}" if self.scope else ""
        return f"{self.kind} {self.gap:.3g} ({self.relative:.2g} of the objective {self.objective:.6g}){scope}"


@dataclass(frozen=True)
class SolverResult:
    """A solution with its certificate; solvers that find more return a subclass that names it.

    Attributes
    ----------
    x : ndarray
        The solution; its meaning is the solver's.
    objective : float
    certificate : Certificate
    status : Status
    n_iter : int
    history : tuple of dict
        One record an iteration.
    """

    x: np.ndarray
    objective: float
    certificate: Certificate
    status: Status
    n_iter: int
    history: tuple[dict[str, Any], ...] = ()

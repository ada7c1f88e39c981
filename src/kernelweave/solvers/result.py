"""What every solver tells a callback, and what it returns: a solution, why it stopped, and how good it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np


class NotFiniteError(ValueError):
    """A problem has no finite value where its solver begins."""


class Status(Enum):
    """Why a solver stopped; the value is a sentence for people."""

    CONVERGED = "The certificate is within the tolerance."
    MAX_COLUMNS = "Stopped at max_columns before the certificate reached the tolerance."
    MAX_TIME = "Stopped at max_time before the certificate reached the tolerance."
    MAX_ITER = "Stopped at max_iter before the certificate reached the tolerance."
    VALIDATION = (
        "Stopped because the score on the validation rows no longer improved; this is the best model of the path."
    )
    SUPERVISED = (
        "The certificate is within the tolerance. Unlabelled rows did not help in cross-validation, so the "
        "model was fitted to the labelled rows only."
    )
    CALLBACK = "Stopped by the callback before the certificate reached the tolerance."
    PRECISION = "No further progress: rounding keeps the certificate above the tolerance."
    SEARCH_TIME = "Candidates or folds were left out for want of time; raise max_time to try them."
    SEARCH_STOPPED = "Stopped by an interrupt or the callback; the model is made of what was tried so far."
    SOLVER_FAILED = "The LP solver failed; this is its last solution, with its certificate."

    @property
    def converged(self) -> bool:
        """Whether the certificate reached the tolerance."""
        return self in (Status.CONVERGED, Status.SUPERVISED)


@dataclass(frozen=True)
class Certificate:
    """A proven bound on how far a solution is from the optimum.

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
        The solution, as the solver defines it.
    objective : float
    certificate : Certificate
    status : Status
    n_iter : int
    history : tuple of dict
        One record per iteration.
    """

    x: np.ndarray
    objective: float
    certificate: Certificate
    status: Status
    n_iter: int
    history: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, kw_only=True, repr=False)
class FitState:
    """State passed to every callback after each step of a fit; a true return value stops the fit.

    Callbacks of scikit-learn (``set_callbacks``, from version 1.9 on) find it as ``metadata["state"]`` at the end of a
    task ``"step"``.

    Parameters
    ----------
    iteration : int
        Steps so far: rounds of column generation, steps over the weights of kernels, convex machines of a stage of a
        transductive fit. Methods that report where they start report it as step 0.
    objective : float
        Value reached, summed over problems that are solved together.
    bound, gap : float
        Proven bound on the optimum, and how far the objective can be from it. A transductive fit has no global bound:
        they are those of the convex problem that touches the objective at the current point.
    target : float
        The relative gap at which the fit stops.
    seconds : float
        Time since the solver started.
    phase : str
        What led to this point, in words: ``"newton"``, ``"columns added"``, ``"annealing at 0.25"``.
    problem : int, default=0
        Which of the problems that are solved one after the other it is, from 0; such as one for each class, or for
        each cost along a path.
    n_problems : int, default=1
        How many such problems there are.
    max_steps : int or None, default=None
        The largest number of states of this problem; None where there is no limit.
    details : mapping, default={}
        Further values, by method:

        - mixtures: ``n_columns`` in the working sets, ``tau`` (the largest score of a column), ``n_open`` (problems not
          yet solved) and ``solutions`` (working set and solution of each problem);
        - learned weights of kernels: ``weights`` and ``n_solves`` (machines trained), or ``n_cholesky``
          (factorisations);
        - transductive machines: ``stage`` (of the cost of unlabelled rows), ``n_changed`` (slopes), ``n_solves`` and
          ``stretched`` (outputs, at the start of a stage).

    See Also
    --------
    CertificateDisplay : Draws the course of a finished fit.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from kernelweave import MKLClassifier
    >>> X, y = make_moons(100, noise=0.2, random_state=0)
    >>> seen = []
    >>> model = MKLClassifier(weighting="learned", callback=seen.append).fit(X, y)
    >>> seen[0].phase, seen[0].iteration, len(seen[0].details["weights"]) == len(model.weights_)
    ('start', 0, True)
    """

    iteration: int
    objective: float
    bound: float
    gap: float
    target: float
    seconds: float
    phase: str
    problem: int = 0
    n_problems: int = 1
    max_steps: int | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def relative_gap(self) -> float:
        """The gap relative to the absolute objective."""
        return Certificate(self.gap, self.objective).relative

    def __repr__(self) -> str:
        """Return a line: numbers with few digits, and the names of the details instead of their values."""
        which = f", problem {self.problem + 1} of {self.n_problems}" if self.n_problems > 1 else ""
        details = f", details: {', '.join(self.details)}" if self.details else ""
        return (
            f"<FitState {self.phase!r}: iteration {self.iteration}{which}, objective {self.objective:.6g}, relative "
            f"gap {self.relative_gap:.2g} (target {self.target:.2g}), {self.seconds:.3g} s{details}>"
        )

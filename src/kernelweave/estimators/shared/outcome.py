"""How a fit went: what its solvers reached, in one record for all outputs, and the warning where it is not enough."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ...solvers.result import Certificate, SolverResult, Status
from ...warn import warn_caller
from .records import Records

TIME_REMEDY = "Raise max_time or tol, or accept the certified gap."


@dataclass(frozen=True)
class Outcome:
    """What the solvers of a fit reached.

    Attributes
    ----------
    objective : float or ndarray of shape (n_problems,)
    certificate : Certificate
        Of the sum of the problems.
    status : Status
        Of the problem that is furthest from its tolerance.
    n_iter : int
    history : Records
        One record an iteration (and problem).
    """

    objective: float | np.ndarray
    certificate: Certificate
    status: Status
    n_iter: int
    history: Records


def summarize(results: Sequence[SolverResult], labels: Sequence[Mapping[str, Any]] | None = None) -> Outcome:
    """Return what the solvers of one problem, or of one problem a class, reached.

    ``labels`` hold what is written into every record of each problem's history.
    """
    labels = [{}] * len(results) if labels is None else labels
    objectives = np.array([result.objective for result in results])
    first = results[0].certificate
    gap = sum(result.certificate.gap for result in results)
    return Outcome(
        objective=float(objectives[0]) if len(results) == 1 else objectives,
        certificate=Certificate(gap, float(objectives.sum()), first.kind, scope=first.scope),
        status=worst(results).status,
        n_iter=max(1, max(result.n_iter for result in results)),
        history=Records(
            {**label, **record} for label, result in zip(labels, results, strict=True) for record in result.history
        ),
    )


def worst(results: Sequence[SolverResult]) -> SolverResult:
    """Return the result that is furthest from its tolerance."""
    return max(results, key=lambda result: (not result.status.converged, result.certificate.relative))


def warn_unless_converged(results: Sequence[SolverResult], tol: float, remedies: Mapping[Status, str]) -> None:
    """Warn once, with the number and a remedy, where a solver stopped for a reason that has one."""
    result = worst(results)
    if result.status in remedies:
        proven = result.certificate.kind == "duality gap"
        measure = "Certified relative gap" if proven else "Relative distance from stationarity"
        warn_caller(
            f"{result.status.value} {measure}: {result.certificate.relative:.2e}, tolerance: {tol:.2e}. "
            f"{remedies[result.status]}",
            ConvergenceWarning,
        )

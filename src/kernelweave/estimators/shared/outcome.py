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

TIME_REMEDY = "Raise max_time"
MAX_ACCEPTED_GAP = 0.1  # relative to the objective, above which nobody would accept a gap, nor ask for it as tol
MAX_BOUND = 1e3  # relative to the objective, above which a gap bounds nothing


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
    """Warn once, with the number and a remedy, where a solver stopped for a reason that has one.

    Remedies are sentences without their end: a larger tolerance is one more where the gap is small.
    """
    result = worst(results)
    if result.status in remedies:
        warn_caller(
            f"{result.status.value} {_describe_gap(result.certificate, tol)} {remedies[result.status]}"
            f"{_other_remedies(result.certificate)}.",
            ConvergenceWarning,
        )


def _describe_gap(certificate: Certificate, tol: float) -> str:
    if certificate.kind != "duality gap":
        return f"Relative distance from stationarity: {certificate.relative:.2e}, tolerance: {tol:.2e}."
    if not certificate.relative <= MAX_BOUND:
        return f"No useful bound on the gap is known yet, tolerance: {tol:.2e}."
    return f"Certified relative gap: {certificate.relative:.2e}, tolerance: {tol:.2e}."


def _other_remedies(certificate: Certificate) -> str:
    if not certificate.relative <= MAX_ACCEPTED_GAP:
        return ""
    return ", raise tol, or accept the certified gap" if certificate.kind == "duality gap" else " or tol"

"""The learner of a task, and what is reported of it: to use another estimator, change this file and no other."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline

from ..estimators.ssmk import SSMKClassifier, SSMKRegressor
from ..kernels.defaults import deformed_kernels
from ..kernels.groups import one_kernel_per_group
from ..kernels.library import KernelLibrary
from ..kernels.pointwise import Linear, rbf_family
from ..kernels.tables import table_library
from .columns import ColumnPlan
from .encoder import source_positions

EPSILON = 0.05  # errors that cost nothing in regression, in standard deviations of the target
REGRESSION_COST = 0.1  # C on the standardised target; measured on five problems, 1 and more overfit noise
# Why a fit stopped before its certificate reached the tolerance, and what the user of the command can do.
STOPPED_EARLY = {
    "MAX_TIME": (
        "Stopped at --time-limit before the certificate reached the tolerance.",
        "Raise --time-limit, or accept this gap.",
    ),
    "PRECISION": (
        "Rounding errors keep the certificate above the tolerance.",
        "Try another --scale, or accept this gap.",
    ),
    "SOLVER_FAILED": (
        "The LP solver failed; this is the last solution that it found.",
        "Try another --scale, or accept this gap.",
    ),
}


def make_learner(task: str, library: KernelLibrary | None, seed: int, max_time: float | None) -> Any:
    """Return the estimator, not yet fitted, for ``"classification"`` or ``"regression"`` of the standardised target.

    A classifier takes y with None where the label is missing and has ``decision_function`` or ``predict_proba``; a
    regressor takes y with NaN there.
    """
    options: dict[str, Any] = {"kernels": library, "max_time": max_time, "random_state": seed}
    if task == "classification":
        return SSMKClassifier(**options, unlabeled=None)
    return SSMKRegressor(**options, C=REGRESSION_COST, epsilon=EPSILON)


def make_library(encoder: Pipeline, plan: ColumnPlan, X: np.ndarray) -> KernelLibrary | None:
    """Return the views of each source, and kernels deformed along all columns; None: the default library.

    The encoder has scaled the columns. Where all of them are in blocks of one unit, there is only one view.
    """
    sources = {source or "other columns": positions for source, positions in source_positions(encoder, plan).items()}
    has_one_unit = all(column.block for column in plan.used)
    if not has_one_unit:
        views = table_library(X, sources=sources if len(sources) > 1 else None, scaled=True)
        return KernelLibrary([views, deformed_kernels(X, scaled=True)])
    if len(sources) == 1:
        return None
    return KernelLibrary([one_kernel_per_group(sources, [Linear(), *rbf_family()]), deformed_kernels(X)])


def fit_learner(learner: Any, X: np.ndarray, y: np.ndarray) -> Any:
    """Return a fitted copy of the learner; `note_early_stop` says what its warning on convergence would."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return clone(learner).fit(X, y)


def describe_learner(estimator: Any) -> dict[str, Any]:
    """Return the report on a fitted learner: its kernels, its size and its certificate."""
    certificate, status = estimator.certificate_, estimator.status_
    return {
        "kernels": estimator.kernel_usage_,
        "basis_functions": estimator.n_columns_,
        "certificate": {
            "kind": certificate.kind,
            "gap": certificate.gap,
            "relative": certificate.relative,
            "objective": certificate.objective,
            "status": STOPPED_EARLY.get(status.name, (status.value,))[0],
            "candidates": len(estimator.candidates_),
            "rows": len(estimator.transduction_),
        },
    }


def note_early_stop(estimator: Any) -> list[str]:
    """Return a sentence with the gap and a remedy if the fit stopped before its certificate reached the tolerance."""
    if estimator.status_.name not in STOPPED_EARLY:
        return []
    sentence, remedy = STOPPED_EARLY[estimator.status_.name]
    gap = estimator.certificate_.relative
    return [f"{sentence} Certified relative gap: {gap:.1e}, tolerance: {estimator.tol:.1e}. {remedy}"]

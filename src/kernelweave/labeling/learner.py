"""Between a table and the estimator: which learners are tried, with which kernels, and what is reported of the fit.

Errors, weights, probabilities and intervals are those of :class:`~kernelweave.AutoKernelClassifier` and
:class:`~kernelweave.AutoKernelRegressor`, for one learner as for many.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from ..errors import ErrorCode, KernelweaveError
from ..estimators.auto.candidates import list_candidates
from ..estimators.auto.classifier import AutoKernelClassifier
from ..estimators.auto.regressor import AutoKernelRegressor
from ..kernels.groups import one_kernel_per_group
from ..kernels.library import KernelLibrary
from ..kernels.pointwise import Linear, rbf_family
from ..kernels.tables import table_library
from ..short_text import suggest_names
from .columns import ColumnPlan
from .encoder import source_positions

AUTO = "auto"
# Classifiers that ``auto`` tries: together 15 s for 2000 rows, 50 columns and 100 labels on one core, not idle.
# Those that are left out can be named; TSVM-MKL and SSMK would double that.
FAST_CLASSIFIERS = (
    "MKL",
    "LapSVM",
    "LearnedKernel",
    "TSVM",
    "harmonic",
    "RKDA",
    "SVM",
    "LapSVM, one view",
    "logistic regression",
    "random forest",
)
MIN_SECONDS = 1e-3  # for learning when the time is over: the cheapest learner is fitted
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

OnStage = Callable[[str, float], None]


@dataclass(frozen=True)
class Clock:
    """Seconds since the start, of those that the user allows."""

    limit: float | None
    started: float = field(default_factory=time.perf_counter)

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self.started

    @property
    def left(self) -> float | None:
        """Seconds that are left; None where there is no limit."""
        return None if self.limit is None else max(MIN_SECONDS, self.limit - self.elapsed)


@dataclass(frozen=True, eq=False)
class Setup:
    """What classes and numbers are learned with.

    ``on_stage(text, share)`` shows what comes next and the share that is done.
    """

    X: np.ndarray
    groups: np.ndarray | None
    library: KernelLibrary | None
    learner: str
    seed: int
    clock: Clock
    on_stage: OnStage


def find_learners(name: str, task: str, X: np.ndarray, n_labeled: int) -> list[str]:
    """Return the names of the candidates that ``--learner`` means; case does not matter.

    Parameters
    ----------
    name : str
    task : {"classification", "regression"}
    X : ndarray of shape (n_rows, n_columns)
    n_labeled : int
    """
    kind = "classes" if task == "classification" else "numbers"
    known = [each.name for each in list_candidates(X, n_labeled, kind)]
    if name.casefold() == AUTO:
        return list(FAST_CLASSIFIERS) if kind == "classes" else known
    named = [each for each in known if each.casefold() == name.casefold()]
    if not named:
        raise KernelweaveError(
            f"--learner {name!r} is not a learner for {task}; choose one of {', '.join(map(repr, [AUTO, *known]))}."
            f"{suggest_names([name], known)}",
            ErrorCode.BAD_OPTION,
        )
    return named


def fit_learner(task: str, y: np.ndarray, setup: Setup) -> Any:
    """Return the estimator, fitted to all rows; Ctrl-C ends the command, and nothing is made of half a search.

    Parameters
    ----------
    task : {"classification", "regression"}
    y : ndarray of shape (n_rows,)
        Classes as str and None, or standardised numbers and NaN.
    setup : Setup
    """
    n_labeled = sum(value is not None and value == value for value in y)
    names = find_learners(setup.learner, task, setup.X, n_labeled)
    n_steps = 2 * len(names)  # each is fitted, and then cross-validated
    options: dict[str, Any] = {
        "candidates": names,
        "combine": "stack" if len(names) > 1 else "best",
        "kernels": setup.library,
        "n_repeats": 1,
        "max_time": setup.clock.left,
        "callback": lambda state: setup.on_stage(state.phase, 0.05 + 0.9 * min(1.0, state.iteration / n_steps)),
        "random_state": setup.seed,
    }
    learner: Any = AutoKernelRegressor(**options)
    if task == "classification":
        learner = AutoKernelClassifier(**options, unlabeled=None)
    try:
        learner.fit(setup.X, y, groups=setup.groups)
    except ValueError as error:
        raise KernelweaveError(f"{error} Try another --learner, or label more rows.", ErrorCode.BAD_TARGET) from None
    if learner.status_.name == "SEARCH_STOPPED":  # the estimator would be content with what was tried so far
        raise KeyboardInterrupt
    return learner.set_params(callback=None)  # a saved model holds no functions


def make_library(encoder: Pipeline, plan: ColumnPlan, X: np.ndarray) -> KernelLibrary | None:
    """Return kernels of each source, for the learners that take several kernels; None: the defaults of each learner.

    The encoder has scaled the columns. There are no kernels along the graph of all rows among them: whether unlabelled
    rows helped is told from the learners that use such rows of their own accord.
    """
    sources = {source or "other columns": positions for source, positions in source_positions(encoder, plan).items()}
    if len(sources) == 1:
        return None
    if all(column.block for column in plan.used):
        return one_kernel_per_group(sources, [Linear(), *rbf_family()])
    return table_library(X, sources=sources, scaled=True)


def describe_learner(learner: Any, X: np.ndarray) -> dict[str, Any]:
    """Return the report on a learner, fitted to ``X``, as plain data: candidates, members, the best certified one."""
    best, helped = learner.best_estimator_, learner.unlabeled_helped_
    members = sorted(learner.members_, key=lambda member: -member.weight)
    certified = None
    if best is not None:
        name = _find_best_certified(learner, X)
        certified = {"candidate": name, "kernels": list_kernels(best), "certificate": describe_certificate(best)}
    return {
        "leaderboard": [dict(record) for record in learner.leaderboard_],
        "members": [
            {"candidate": each.name, "weight": each.weight, "certificate": describe_certificate(each.model)}
            for each in members
        ],
        "best_certified": certified,
        "unlabeled_helped": None
        if helped is None
        else {
            "verdict": helped.verdict,
            "difference": helped.difference,
            "interval": [helped.low, helped.high],
        },
        "rows_tested": len(learner.oof_rows_),
    }


def _find_best_certified(learner: Any, X: np.ndarray) -> str:
    """Return the name of the candidate that ``best_estimator_`` is."""
    kind = "classes" if isinstance(learner, AutoKernelClassifier) else "numbers"
    certified = [each.name for each in list_candidates(X, len(X), kind) if each.is_certified]
    fitted = {"tested", "not tested", "out of the race"}
    tried = [each for each in learner.leaderboard_ if each["candidate"] in certified and each["status"] in fitted]
    return str(min(tried, key=lambda record: np.nan_to_num(record["log_loss"], nan=np.inf))["candidate"])


def list_kernels(model: Any) -> list[dict[str, Any]]:
    """Return name, source and share of each kernel of a model, the largest share first; none where it has no list."""
    if hasattr(model, "kernel_usage_"):
        records = [dict(record) for record in model.kernel_usage_]
    else:
        weights = getattr(model, "kernel_weights_", [])
        total = sum(float(record["weight"]) for record in weights) or 1.0
        records = [
            {"name": record["name"], "source": record["source"], "share": float(record["weight"]) / total}
            for record in weights
        ]
    return sorted(records, key=lambda record: -record["share"])


def describe_certificate(model: Any) -> dict[str, Any] | None:
    """Return the certificate of a model and why it stopped; None where it has none."""
    if not hasattr(model, "certificate_"):
        return None
    certificate, status = model.certificate_, model.status_
    return {
        "kind": certificate.kind,
        "gap": certificate.gap,
        "relative": certificate.relative,
        "objective": certificate.objective,
        "converged": status.converged,
        "status": STOPPED_EARLY.get(status.name, (status.value,))[0],
    }


def note_limits(learner: Any, n_labeled: int) -> list[str]:
    """Return sentences on what time, rounding or too few labels kept from being done.

    Parameters
    ----------
    learner : AutoKernelClassifier or AutoKernelRegressor
    n_labeled : int
    """
    notes = []
    skipped = [record["candidate"] for record in learner.leaderboard_ if record["status"] == "no time"]
    n_tested = len(learner.oof_rows_)
    if skipped:
        notes.append(f"There was no time for {_list_some(skipped)}. Raise --time-limit to try them.")
    if n_tested == 0:
        remedy = "label more rows" if learner.max_time is None else "raise --time-limit, or label more rows"
        notes.append(f"Too few labelled rows were held out to know the error: {remedy}.")
    elif n_tested < n_labeled and learner.max_time is not None:
        notes.append(f"Only {n_tested} of {n_labeled} labelled rows were held out. Raise --time-limit to test more.")
    without = [record for record in learner.leaderboard_ if record["status"].startswith("left out: ")]
    if without:
        names, why = [record["candidate"] for record in without], without[0]["status"].partition(": ")[2]
        notes.append(
            f"{_list_some(names)} {'was' if len(names) == 1 else 'were'} left out: {why}. --learner names one."
        )
    notes += [f"{name} could not be fitted: {why}" for name, why in _failures(learner.leaderboard_)]
    for member in learner.members_:
        status = getattr(getattr(member.model, "status_", None), "name", "")
        if status in STOPPED_EARLY:
            sentence, remedy = STOPPED_EARLY[status]
            gap, tol = member.model.certificate_.relative, member.model.tol
            tolerance = "" if tol is None else f", tolerance: {tol:.1e}"
            notes.append(f"{member.name}: {sentence} Certified relative gap: {gap:.1e}{tolerance}. {remedy}")
    return notes


def _failures(leaderboard: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    found = [(record["candidate"], record["status"].partition("failed: ")[2]) for record in leaderboard]
    return [(name, why) for name, why in found if why]


def _list_some(names: Sequence[str], limit: int = 4) -> str:
    shown = ", ".join(map(repr, names[:limit]))
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} others"

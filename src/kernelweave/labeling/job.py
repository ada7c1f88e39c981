"""The main job: fill in the missing labels of a table, and say how good they are.

Features are encoded without labels, on all rows. Labelled rows are then cross-validated: every one is predicted by a
model that has not seen its label, which gives the error, its interval and the calibration of probabilities; where time
is short, some of them. At last the model is fitted on everything and the empty cells are filled.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC, SVR

from ..errors import ErrorCode, KernelweaveError
from ..estimators.ssmk import SSMKClassifier, SSMKRegressor
from ..kernels.defaults import deformed_kernels
from ..kernels.library import KernelLibrary
from ..kernels.pointwise import Linear, rbf_family
from ..kernels.wrappers import OnColumns
from ..model_selection import SemiSupervisedCalibration, SemiSupervisedSplit
from . import statistics
from .columns import ColumnPlan, plan_columns
from .encoder import LARGEST, make_encoder, source_positions
from .models import ClassModel, NumberModel
from .numbers import as_numbers, find_decimal_mark, find_number_format
from .target import (
    MIN_LABELS,
    check_spelling,
    count_classes,
    doubts,
    guess_task,
    require_empty,
    stripped,
)

Stage = Callable[[str, float], None]

N_FOLDS = 5
INSENSITIVE = 0.05  # epsilon of the regression, in standard deviations of the target
COST = 0.1  # C of the regression on the standardised target; measured on five problems, 1 and more overfit noise
LARGEST_FEATURE = 1e70  # whose inner products can be squared
SHORTEST = 1e-3  # seconds for a fit when the time is over: it does one round
# What the estimators' parameters are called in the command; the longer words first.
OPTIONS = {
    "max_time or tol": "--time-limit",
    "max_time": "--time-limit",
    "Scale the features or lower C": "Try another --scale",
}


@dataclass(frozen=True)
class LabelingOptions:
    """What a user may choose; the defaults need no thought."""

    target: str
    task: str = "auto"
    id_columns: Sequence[str] = ()
    ignore: Sequence[str] = ()
    group: str | None = None
    sources: Mapping[str, Sequence[str]] = field(default_factory=dict)
    scale: str = "auto"
    seed: int = 0
    time_limit: float | None = None


@dataclass(frozen=True)
class Labeling:
    """Filled labels and the report about them.

    Attributes
    ----------
    values : ndarray of shape (n_rows,)
        For each row of the table the text of an empty target cell, None where the cell was given.
    extra : dict of ndarray
        Texts of the appended columns, by name; "" where the cell was given.
    report : dict
        Plain data: rows, errors, kernels, certificate, columns.
    model : Pipeline
        From a raw frame to predictions.
    """

    values: np.ndarray
    extra: dict[str, np.ndarray]
    report: dict[str, Any]
    model: Pipeline


def fill_labels(frame: Any, cells: np.ndarray, empty: np.ndarray, options: LabelingOptions, stage: Stage) -> Labeling:
    """Learn from all rows of a table and fill in the empty cells of its target column.

    Parameters
    ----------
    frame : pandas.DataFrame
    cells : ndarray of str, shape (n_rows,)
        The target column as text; blanks around a text do not count.
    empty : ndarray of bool, shape (n_rows,)
        Which of the cells are empty.
    options : LabelingOptions
    stage : callable
        ``stage(what, share)`` is told what happens next and which share of the whole is done.
    """
    clock = _Clock(options.time_limit)
    require_empty(cells, empty, options.target)
    if empty.all():
        raise KernelweaveError(f"The column {options.target!r} is empty: label some rows first.", ErrorCode.BAD_TARGET)
    cells = stripped(cells)
    check_spelling(cells[~empty], options.task, options.target)
    task = guess_task(cells[~empty]) if options.task == "auto" else options.task
    stage("looking at the columns", 0.0)
    plan = plan_columns(
        frame,
        target=options.target,
        id_columns=options.id_columns,
        ignore=options.ignore,
        group=options.group,
        sources=dict(options.sources) or None,
        scale=options.scale,
    )
    if not plan.used:
        why = "; ".join(f"{column.name} ({column.reason})" for column in plan.left_out[:5])
        raise KernelweaveError(f"No column is left to learn from: {why}.", ErrorCode.NO_FEATURES)
    notes = _check_sources(plan, options)
    encoder = make_encoder(plan)
    X = encode(encoder, frame, fit=True)
    groups = None if options.group is None else stripped(frame[options.group])
    job = _Classes if task == "classification" else _Numbers
    if groups is None:
        groups = duplicate_groups(X, ~empty)
    work = job(X, cells, empty, groups, _library(encoder, plan, X), options, clock)
    work.fit(stage)
    stage("filling in the labels", 0.95)
    filled, beside = work.model.cells(X[empty], options.target)
    values = np.full(len(cells), None, dtype=object)
    values[empty] = filled
    extra = {name: np.full(len(cells), "", dtype=object) for name in beside}
    for name, texts in beside.items():
        extra[name][empty] = texts
    model = Pipeline([("encode", encoder), ("model", work.model)])
    report = {
        "task": task,
        "task_was": "guessed" if options.task == "auto" else "given",
        "rows": len(cells),
        "rows_labeled": int((~empty).sum()),
        "rows_filled": int(empty.sum()),
        "columns": {
            "used": {column.name: column.kind for column in plan.used},
            "left_out": {column.name: column.reason for column in plan.left_out if column.name != options.target},
        },
        **work.report(),
        "warnings": notes + work.warnings(),
        "seconds": round(clock.elapsed, 2),
    }
    return Labeling(values, extra, report, model)


def encode(encoder: Any, frame: Any, fit: bool = False) -> np.ndarray:
    """Return the features of a table as a matrix; refuse cells that cannot be read, or are too large for kernels."""
    X = np.asarray((encoder.fit(frame) if fit else encoder).transform(frame), dtype=np.float64)
    wrong = np.flatnonzero(~(np.abs(X).max(axis=0) <= LARGEST_FEATURE))
    if len(wrong):
        name = str(encoder.get_feature_names_out()[wrong[0]]).partition("__")[2]
        raise KernelweaveError(
            f"The column {name!r} has values too large for kernels, scaled as it is. Correct or empty those cells, or "
            "learn without the column.",
            ErrorCode.BAD_FEATURES,
        )
    return X


def in_options(text: str) -> str:
    """Return a sentence of the estimators with the command's options in place of their parameters."""
    for parameter, option in OPTIONS.items():
        text = text.replace(parameter, option)
    return text


def _check_sources(plan: ColumnPlan, options: LabelingOptions) -> list[str]:
    """Refuse a source with the target in it, or with nothing left; return a sentence on each column left out of one."""
    notes = []
    for source, names in options.sources.items():
        if options.target in names:
            raise KernelweaveError(
                f"Source {source!r} names the target {options.target!r}, which is filled in and never learned from. "
                "Take it out of the source.",
                ErrorCode.BAD_SOURCE,
            )
        left_out = {column.name: column.reason for column in plan.left_out if column.source == source}
        if all(column.source != source for column in plan.used):
            why = "; ".join(f"{name} ({reason})" for name, reason in list(left_out.items())[:5])
            raise KernelweaveError(
                f"No column of source {source!r} is left to learn from: {why}. Name others.", ErrorCode.BAD_SOURCE
            )
        lost = [name for name in names if name in left_out]
        notes += [f"Source {source!r} does without {name!r}, left out as {left_out[name]}." for name in lost]
    return notes


def duplicate_groups(X: np.ndarray, labeled: np.ndarray) -> np.ndarray | None:
    """Return groups that keep equal labelled rows together; None if there are hardly any, or little else."""
    _, inverse = np.unique(X[labeled], axis=0, return_inverse=True)
    if inverse.max() + 1 > 0.95 * labeled.sum() or inverse.max() < 4 * N_FOLDS:
        return None
    groups = np.full(len(X), -1)
    groups[labeled] = inverse.ravel()
    return groups


class _Clock:
    """Seconds since the start, and what a fit may take of those that are left."""

    def __init__(self, limit: float | None):
        self.limit = limit
        self.started = time.perf_counter()

    @property
    def elapsed(self) -> float:
        return time.perf_counter() - self.started

    def share(self, n_fits: int) -> float | None:
        """Return the seconds that each of ``n_fits`` fits may take; half of the rest is for all else."""
        return None if self.limit is None else max(SHORTEST, 0.5 * (self.limit - self.elapsed) / n_fits)

    def allows(self, seconds: float) -> bool:
        return self.limit is None or self.elapsed + seconds <= self.limit


class _Folds:
    """Parts of a cross-validation, handed out one by one while there is time for another and for the last fit.

    A fit has a first round that no limit shortens. The longest so far is what the next one is expected to take. The
    first part is always handed out, and so are others until each class has been tested.
    """

    def __init__(self, parts: Sequence[tuple[np.ndarray, np.ndarray]], y: np.ndarray, clock: _Clock):
        self.parts, self.clock = parts, clock
        self.done: list[tuple[np.ndarray, np.ndarray]] = []
        self.is_over = False
        self._y, self._untested = y, {label for label in y if isinstance(label, str)}

    def split(self, X: Any = None, y: Any = None, groups: Any = None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        longest = 0.0
        for train, test in self.parts:
            if self.done and not self._untested and not self.clock.allows(2 * longest):
                break
            started = self.clock.elapsed
            self.done.append((train, test))
            self._untested -= set(self._y[test])
            yield train, test
            longest = max(longest, self.clock.elapsed - started)
        self.is_over = True

    def tested(self, labeled: np.ndarray) -> np.ndarray:
        """Return those of the rows that were in a test part."""
        return labeled[np.isin(labeled, np.concatenate([test for _, test in self.done]))]


class _Work(ABC):
    """What both tasks share: the folds, the mixture's parameters and the report about it."""

    target_kind = ""

    def __init__(
        self,
        X: np.ndarray,
        cells: np.ndarray,
        empty: np.ndarray,
        groups: np.ndarray | None,
        library: KernelLibrary | None,
        options: LabelingOptions,
        clock: _Clock,
    ):
        self.X, self.empty, self.groups = X, empty, groups
        self.labeled = np.flatnonzero(~empty)
        self.library, self.options, self.clock = library, options, clock
        self.n_folds = N_FOLDS
        self.y = self.read(cells)
        self.folds = self._folds()
        self.model: Any = None
        self.mixture: Any = None
        self.errors: dict[str, Any] = {}
        self.chance = 1.0  # p-value of the other method's smaller error

    @abstractmethod
    def read(self, cells: np.ndarray) -> np.ndarray:
        """Return y from the target's cells; may lower ``n_folds``."""

    def _folds(self) -> _Folds:
        n_splits = self.n_folds
        if self.groups is not None:
            n_splits = min(n_splits, len(np.unique(self.groups[self.labeled])))
            if n_splits < 2:
                raise KernelweaveError(
                    "Cross-validation holds out whole groups, and all labelled rows are in the group "
                    f"'{self.groups[self.labeled[0]]}'. Label rows of at least two groups, or leave out --group.",
                    ErrorCode.BAD_GROUPS,
                )
        split = SemiSupervisedSplit(n_splits, target=self.target_kind, random_state=self.options.seed)
        try:
            return _Folds(list(split.split(self.X, self.y, self.groups)), self.y, self.clock)
        except ValueError as error:
            raise KernelweaveError(str(error), ErrorCode.BAD_TARGET) from None

    def parameters(self, stage: Stage) -> dict[str, Any]:
        """Return what the mixture is made with: a share of the time for each fold and two for the last fit."""
        n_fits = len(self.folds.parts) + 1

        def told(state: Any) -> None:
            if state.iteration == 1:
                part = len(self.folds.done)
                what = f"cross-validating, part {part} of {n_fits - 1}"
                if self.folds.is_over:
                    part, what = n_fits, "fitting on all rows"
                stage(what, 0.1 + 0.8 * (part - 1) / n_fits)

        return {
            "kernels": self.library,
            "centers": "auto",
            "max_time": self.clock.share(n_fits + 1),
            "random_state": self.options.seed,
            "callback": told,
        }

    def warnings(self) -> list[str]:
        """Return what the errors say against using the labels."""
        measure = "error" if self.target_kind == "classes" else "mean_absolute_error"
        (_, ours), (trivial, simplest), (other, peer) = ((k, v[measure]) for k, v in self.errors.items())
        found = []
        if ours >= simplest:
            found.append(f"The labels are no better than those of the {trivial}: do not use them without a check.")
        if peer < ours and self.chance < statistics.SIGNIFICANT:
            found.append(f"{other} has a clearly smaller error on these data (paired test, p = {self.chance:.2g}).")
        return found

    def about_mixture(self) -> dict[str, Any]:
        certificate = self.mixture.certificate_
        return {
            "rows_tested": len(self.folds.tested(self.labeled)),
            "kernels": self.mixture.kernel_usage_,
            "basis_functions": self.mixture.n_columns_,
            "certificate": {
                "kind": certificate.kind,
                "gap": certificate.gap,
                "relative": certificate.relative,
                "objective": certificate.objective,
                "status": in_options(self.mixture.status_.value),
                "candidates": len(self.mixture.candidates_),
                "rows": len(self.X),
            },
        }


class _Classes(_Work):
    """Classification: errors beside those of the majority and of SVC, probabilities by out-of-fold sigmoids."""

    target_kind = "classes"

    def read(self, cells: np.ndarray) -> np.ndarray:
        self.counts = count_classes(cells[~self.empty], self.options.target)
        self.n_folds = min(N_FOLDS, *self.counts.values())
        y = cells.astype(object)
        y[self.empty] = None
        return y

    def fit(self, stage: Stage) -> None:
        mixture = SSMKClassifier(**self.parameters(stage), unlabeled=None)
        model = SemiSupervisedCalibration(mixture, cv=self.folds, min_labels=2, unlabeled=None)
        model.fit(self.X, self.y)
        self.mixture = model.estimator_
        self.mixture.callback = mixture.callback = None  # what is saved does not talk
        model.cv = None
        tested = np.unique(self.y[model.oof_rows_].astype(str), return_counts=True)[1]
        self.calibrated = int(tested.min()) >= MIN_LABELS
        self.model = ClassModel(model, self.calibrated)
        self.errors, self.chance = self._errors(model)

    def _errors(self, model: SemiSupervisedCalibration) -> tuple[dict[str, Any], float]:
        given = self.y[model.oof_rows_].astype(str)
        decision = model.oof_decision_
        if self.calibrated:
            decision = decision * model.slope_ + model.offset_
        codes = (decision > 0).astype(int) if decision.ndim == 1 else decision.argmax(axis=1)
        svc, majority = (np.full(len(self.X), "", dtype=object) for _ in range(2))
        for train, test in self.folds.done:
            known = np.intersect1d(train, self.labeled)
            labels = self.y[known].astype(str)
            svc[test] = SVC(C=10.0).fit(self.X[known], labels).predict(self.X[test])
            values, counts = np.unique(labels, return_counts=True)
            majority[test] = values[counts.argmax()]
        predictions = {
            "kernelweave": model.classes_[codes].astype(str),
            "majority class": majority[model.oof_rows_].astype(str),
            "SVC": svc[model.oof_rows_].astype(str),
        }
        errors = {name: statistics.class_error(given, predicted) for name, predicted in predictions.items()}
        return errors, statistics.mcnemar(predictions["kernelweave"] != given, predictions["SVC"] != given)

    def warnings(self) -> list[str]:
        return doubts(list(self.counts)) + super().warnings()

    def report(self) -> dict[str, Any]:
        probabilities = "calibrated out of fold"
        if not self.calibrated:
            probabilities = f"not given: a class has fewer than {MIN_LABELS} labelled rows that were tested"
        return {
            "classes": self.counts,
            "errors": self.errors,
            "probabilities": probabilities,
            **self.about_mixture(),
        }


class _Numbers(_Work):
    """Regression on the standardised target: errors beside those of the mean and of SVR, intervals from residuals."""

    target_kind = "numbers"

    def read(self, cells: np.ndarray) -> np.ndarray:
        numbers = as_numbers(cells[~self.empty])
        if numbers is None:
            other = next((repr(text) for text in cells[~self.empty] if as_numbers([text]) is None), "dots and commas")
            raise KernelweaveError(
                f"Regression needs numbers, and {self.options.target!r} holds {other} too.", ErrorCode.BAD_TARGET
            )
        if len(numbers) < 2:
            raise KernelweaveError(
                f"Only one row of {self.options.target!r} has a number; label more rows.", ErrorCode.BAD_TARGET
            )
        if np.abs(numbers).max() > LARGEST:
            raise KernelweaveError(
                f"The column {self.options.target!r} holds {numbers[np.abs(numbers).argmax()]:g}; numbers beyond "
                f"{LARGEST:g} cannot be squared. Correct that cell, or give the column another unit.",
                ErrorCode.BAD_TARGET,
            )
        self.center, self.unit = float(numbers.mean()), float(numbers.std()) or 1.0
        self.form = (find_number_format(cells[~self.empty]), find_decimal_mark(cells[~self.empty]))
        self.n_folds = min(N_FOLDS, len(numbers))
        y = np.full(len(cells), np.nan)
        y[~self.empty] = (numbers - self.center) / self.unit
        return y

    def fit(self, stage: Stage) -> None:
        mixture = SSMKRegressor(**self.parameters(stage), C=COST, epsilon=INSENSITIVE)
        predicted = {name: np.empty(len(self.X)) for name in ("kernelweave", "mean", "SVR")}
        for train, test in self.folds.split():
            known = np.intersect1d(train, self.labeled)
            predicted["kernelweave"][test] = clone(mixture).fit(self.X[train], self.y[train]).predict(self.X[test])
            svr = SVR(C=10.0, epsilon=INSENSITIVE).fit(self.X[known], self.y[known])
            predicted["SVR"][test] = svr.predict(self.X[test])
            predicted["mean"][test] = self.y[known].mean()
        rows = self.folds.tested(self.labeled)
        residuals = {name: self.unit * (values[rows] - self.y[rows]) for name, values in predicted.items()}
        self.errors = {
            name: {"mean_absolute_error": float(np.abs(r).mean()), "rmse": float(np.sqrt((r**2).mean()))}
            for name, r in residuals.items()
        }
        self.chance = statistics.signed_rank(np.abs(residuals["kernelweave"]), np.abs(residuals["SVR"]))
        self.mixture = mixture.fit(self.X, self.y)
        self.mixture.callback = None
        self.radius = statistics.covering_radius(residuals["kernelweave"])
        self.model = NumberModel(self.mixture, self.center, self.unit, self.radius, *self.form)

    def report(self) -> dict[str, Any]:
        radius = self.radius if math.isfinite(self.radius) else None
        return {"errors": self.errors, "interval_radius": radius, **self.about_mixture()}


def _library(encoder: Any, plan: ColumnPlan, X: np.ndarray) -> KernelLibrary | None:
    """Return one family of kernels for each source, and what follows all of them; None: the default library."""
    sources = source_positions(encoder, plan)
    if len(sources) < 2:
        return None
    families = [
        (f"{name}: {kernel!r}", OnColumns(kernel, list(positions), source=name))
        for name, positions in ((source or "other columns", where) for source, where in sources.items())
        for kernel in (Linear(), *rbf_family())
    ]
    return KernelLibrary([*families, *deformed_kernels(X)])

"""Estimators that are a mixture of kernels: a sparse expansion found by column generation.

The walk of every such fit: check, partition, bind, state the problem of each output, solve them together, keep.
"""

from __future__ import annotations

import numbers
import warnings
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from ..kernels.learned import KernelExpansion
from ..kernels.library import BoundLibrary, as_library
from ..solvers.column_generation import generate_columns
from ..solvers.margin import MarginRows
from ..solvers.masters import LPMaster
from ..solvers.result import Certificate, SolverResult, Status
from .base import KernelEstimator, Sample, is_count, is_positive, require
from .progress import progress

LEAST_DEVIATION = 0.1  # of the kernel's rms deviation; measured: no loss on 14 data sets
SCALE_ADVICE = "Scale the features or lower C, or accept the certified gap."
REMEDIES = {
    Status.MAX_COLUMNS: "Raise max_columns or tol, or accept the certified gap.",
    Status.MAX_TIME: "Raise max_time or tol, or accept the certified gap.",
    Status.PRECISION: SCALE_ADVICE,
    Status.SOLVER_FAILED: SCALE_ADVICE,
}


class MixtureEstimator(KernelEstimator):
    """What mixtures for classes and for numbers share; subclasses say how y is read and which rows it makes."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the mixture from labelled and unlabelled rows.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels or numbers; NaN, None and NA mark unlabelled rows.
        sample_weight : array-like of shape (n_samples,), optional
            Rows of weight zero are ignored altogether.

        Returns
        -------
        self
        """
        self._check_params()
        library = as_library(self.kernels)
        rng = self._rng()
        sample = self._draw_candidates(self._check_fit(X, y, sample_weight, library), rng)
        bound = self._bind(library, sample, rng)
        scale = self._scale(bound, sample)
        problems = self._problems(sample)
        results = self._solve(problems, bound, scale, sample)
        self._keep_labels(sample)
        penalties = self._keep_model(results, bound, scale, sample)
        self._keep_course(self._judge(results, problems, penalties, sample))
        self.library_ = library
        self.transduction_ = self.predict(X)
        self.transduction_[sample.given.labeled] = sample.given.labels
        return self

    @property
    def status_(self) -> Status:
        """Why the solver stopped (kept by name, since safe files hold no enumerations)."""
        check_is_fitted(self)
        return Status[self._status_name]

    @abstractmethod
    def _problems(self, sample: Sample) -> list[MarginRows]:
        """Return the margin rows of each output."""

    @abstractmethod
    def _keep_labels(self, sample: Sample) -> None:
        """Keep what the labels are."""

    @abstractmethod
    def predict(self, X: Any) -> np.ndarray:
        """Return the prediction for each row."""

    def _outputs(self, X: Any, split: bool) -> np.ndarray:
        """Return the expansion at the rows of ``X``: (n_samples, n_outputs), or one axis more with ``split``."""
        check_is_fitted(self)
        X = self._check_rows(X, self.library_, reset=False)
        return self.expansion_.split(X) if split else self.expansion_(X)

    def _check_params(self) -> None:
        owner = type(self).__name__
        require(owner, "C", self.C, is_positive(self.C), "a positive finite number")
        require(owner, "tol", self.tol, is_positive(self.tol), "a positive number")
        scale = self.column_scale
        named = scale is None or (isinstance(scale, str) and scale in ("std", "norm"))
        require(owner, "column_scale", scale, named, 'one of "std", "norm" and None')
        jobs = self.n_jobs is None or (isinstance(self.n_jobs, numbers.Integral) and self.n_jobs != 0)
        require(owner, "n_jobs", self.n_jobs, jobs, "None or a whole number, -1 for all cores")
        require(owner, "verbose", self.verbose, isinstance(self.verbose, numbers.Integral), "0, 1 or 2")
        for name in ("max_columns", "max_candidates"):
            value = getattr(self, name)
            require(owner, name, value, value is None or is_count(value), "None or a whole number >= 1")
        seconds, size = self.max_time, self.cache_size
        require(owner, "max_time", seconds, seconds is None or is_positive(seconds), "None or a positive number")
        require(owner, "cache_size", size, size == 0 or is_positive(size), "a number of megabytes, 0 or more")
        callable_ = self.callback is None or callable(self.callback)
        require(owner, "callback", self.callback, callable_, "None or a function of the round's state")

    def _draw_candidates(self, sample: Sample, rng: np.random.Generator) -> Sample:
        """Keep the labelled rows and, beyond ``max_candidates``, only a random part of the others."""
        found = sample.partition
        if self.max_candidates is None or len(sample.kept) <= self.max_candidates:
            return sample
        keep = np.zeros(len(sample.kept), dtype=bool)
        keep[found.labeled] = True
        room = max(0, self.max_candidates - found.n_labeled)
        keep[rng.choice(found.unlabeled, min(room, found.n_unlabeled), replace=False)] = True
        return sample.restrict(keep)

    def _solve(
        self, problems: Sequence[MarginRows], bound: BoundLibrary, scale: np.ndarray, sample: Sample
    ) -> list[SolverResult]:
        """Solve the problem of each output on centred and scaled columns, all together."""
        labeled = sample.partition.labeled

        def price(V: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
            for columns, scores in bound.scores(V, labeled, centered=True):
                yield columns, scores / scale[columns, None]

        def fetch(columns: np.ndarray) -> np.ndarray:
            K = bound.columns(columns, labeled)
            return (K - K.mean(axis=0)) / scale[columns]

        with progress(self.verbose, type(self).__name__, self.callback) as hook:
            return generate_columns(
                [LPMaster(rows) for rows in problems],
                price,
                fetch,
                tol=self.tol,
                max_columns=self.max_columns,
                max_time=self.max_time,
                n_threads=effective_n_jobs(self.n_jobs),
                callback=hook,
            )

    def _scale(self, bound: BoundLibrary, sample: Sample) -> np.ndarray:
        """Return the scale of every column; infinite for one that says nothing about the labelled rows."""
        if self.column_scale is None:
            return np.ones(bound.n_columns)
        labeled = sample.partition.labeled
        weight = sample.weight[labeled]
        if self.column_scale == "norm":
            scale = bound.column_norms(weight, labeled)
        else:
            deviations = bound.column_deviations(weight, labeled).reshape(len(bound.kernels), bound.n_rows)
            usual = np.sqrt(np.average(deviations**2, axis=1, weights=sample.weight))
            least = np.maximum(deviations, LEAST_DEVIATION * usual[:, None])
            scale = np.where(deviations > 0, least, 0.0).ravel()
        return np.where(scale > 0, scale, np.inf)

    def _keep_model(
        self, results: Sequence[SolverResult], bound: BoundLibrary, scale: np.ndarray, sample: Sample
    ) -> np.ndarray:
        """Turn the problems' coefficients into one expansion over the union of their columns.

        Returns the penalised 1-norm of each problem.
        """
        active = []
        for result in results:
            used = result.x != 0
            active.append((result.extra["columns"][used], result.x[used]))
        columns = np.unique(np.concatenate([chosen for chosen, _ in active]))
        penalized = np.zeros((len(columns), len(results)))
        for k, (chosen, values) in enumerate(active):
            penalized[np.searchsorted(columns, chosen), k] = values
        coef = penalized / scale[columns, None]
        means = bound.columns(columns, sample.partition.labeled).mean(axis=0)  # the problems' columns are centred
        self.intercept_ = np.array([result.extra["intercept"] for result in results]) - means @ coef
        self.expansion_ = KernelExpansion.from_columns(bound, columns, coef, self.intercept_, sample.kept)
        penalties = np.bincount(
            bound.split(columns)[0], weights=np.abs(penalized).sum(axis=1), minlength=len(bound.kernels)
        )
        self.kernel_usage_ = kernel_usage(self.expansion_, bound, penalties)
        self.n_columns_ = len(columns)
        self.n_evaluations_ = self.expansion_.n_evaluations
        self.candidates_ = sample.kept
        self.dual_ = np.zeros((sample.n_given, len(results)))
        duals = [result.extra["signed_dual"] for result in results]
        self.dual_[sample.kept[sample.partition.labeled]] = np.column_stack(duals)
        return np.abs(penalized).sum(axis=0)

    def _judge(
        self, results: Sequence[SolverResult], problems: Sequence[MarginRows], penalties: np.ndarray, sample: Sample
    ) -> list[SolverResult]:
        """Return the results with objective and certificate of the model as it predicts, rounding included."""
        f = self.expansion_(sample.X[sample.partition.labeled])
        judged = []
        for k, (result, rows) in enumerate(zip(results, problems, strict=True)):
            objective = float(penalties[k]) + rows.loss(f[:, k])
            bound = result.objective - result.certificate.gap
            certificate = Certificate(max(0.0, objective - bound), objective, result.certificate.kind)
            status = result.status
            if status.converged and certificate.relative > self.tol:
                status = Status.PRECISION
            judged.append(replace(result, objective=objective, certificate=certificate, status=status))
        return judged

    def _keep_course(self, results: Sequence[SolverResult]) -> None:
        """Keep what the solver said of one problem, or of one problem a class; warn once if it is not enough."""
        self.n_iter_ = max(result.n_iter for result in results)
        objectives = np.array([result.objective for result in results])
        self.objective_ = float(objectives[0]) if len(results) == 1 else objectives
        self.certificate_ = Certificate(
            sum(result.certificate.gap for result in results), float(objectives.sum()), results[0].certificate.kind
        )
        worst = max(results, key=lambda result: (not result.status.converged, result.certificate.relative))
        self._status_name = worst.status.name
        if len(results) == 1:
            self.history_ = [dict(record) for record in results[0].history]
        else:
            self.history_ = [
                {"class": label} | record
                for label, result in zip(self.classes_.tolist(), results, strict=True)
                for record in result.history
            ]
        if worst.status in REMEDIES:
            warnings.warn(
                f"{worst.status.value} Certified relative gap: {worst.certificate.relative:.2e}, asked for: "
                f"{self.tol:.2e}. {REMEDIES[worst.status]}",
                ConvergenceWarning,
                stacklevel=3,
            )


def kernel_usage(expansion: KernelExpansion, library: BoundLibrary, penalties: np.ndarray) -> list[dict[str, Any]]:
    """Return one record a kernel: name, source, columns in use and share of the penalised 1-norm.

    Parameters
    ----------
    penalties : ndarray of shape (n_kernels,)
        The part of the 1-norm that each kernel's coefficients make up.
    """
    n_columns = np.zeros(len(library.kernels), dtype=int)
    for group in expansion.groups:
        n_columns[group.kernel] = len(group.centers)
    total = penalties.sum()
    return [
        {
            "name": entry.name,
            "source": entry.source,
            "columns": int(n_columns[p]),
            "share": float(penalties[p] / total) if total > 0 else 0.0,
        }
        for p, entry in enumerate(library.entries)
    ]

"""Estimators that are a mixture of kernels: a sparse expansion found by column generation.

The walk of every such fit: check, partition, bind, state the problem of each output, solve them together, keep.
"""

from __future__ import annotations

import numbers
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.exceptions import ConvergenceWarning

from ..kernels.bound_library import BoundLibrary
from ..kernels.expansion import KernelExpansion
from ..kernels.library import KernelLibrary
from ..solvers.columns.loop import SETTLING, exact_solution, generate_columns
from ..solvers.columns.masters import ColumnResult, Master
from ..solvers.columns.rkhs_master import NotPSDError
from ..solvers.margin import MarginRows
from ..solvers.result import Certificate, Status
from .base import KernelEstimator, Sample, is_count, is_positive, require
from .centers import candidates
from .formulation import TOLERANCES, Formulation, diagonals
from .progress import announce, progress
from .validation import ValidationCurve

SCALE_ADVICE = "Scale the features or lower C, or accept the certified gap."
REMEDIES = {
    Status.MAX_COLUMNS: "Raise max_columns or tol, or accept the certified gap.",
    Status.MAX_TIME: "Raise max_time or tol, or accept the certified gap.",
    Status.PRECISION: SCALE_ADVICE,
    Status.SOLVER_FAILED: SCALE_ADVICE,
}


@dataclass
class Task:
    """A fit that is stated but not solved.

    Attributes
    ----------
    library : KernelLibrary
    formulation : Formulation
    sample : Sample
        Labelled rows, and the rows that may be centres.
    is_center : ndarray of shape (n_rows,)
        Which rows of the sample may be centres.
    bound : BoundLibrary
        Tied to the rows of the sample.
    scale : ndarray of shape (n_columns,)
        Of every column; infinite where it is no candidate.
    problems : list of MarginRows
        One for each output.
    masters : list of Master
        Their restricted problems, which keep what they learned from one solve to the next.
    tol : float
    scope : str
        The columns that a certificate covers, in words.
    curve : ValidationCurve, optional
    """

    library: KernelLibrary
    formulation: Formulation
    sample: Sample
    is_center: np.ndarray
    bound: BoundLibrary
    scale: np.ndarray
    problems: list[MarginRows]
    masters: list[Master]
    tol: float
    scope: str
    curve: ValidationCurve | None = None

    @property
    def labeled(self) -> np.ndarray:
        """Row numbers of the labelled rows in the sample."""
        return self.sample.partition.labeled

    def means(self, columns: np.ndarray) -> np.ndarray:
        """Return what the problems subtract from these columns."""
        if not self.formulation.centered:
            return np.zeros(len(columns))
        return self.bound.columns(columns, self.labeled).mean(axis=0)


class MixtureEstimator(KernelEstimator):
    """What mixtures for classes, for numbers and for novelty share.

    Subclasses say how y is read, which rows it makes and which problem is solved.
    """

    def _prepare(self, X: Any, y: Any, sample_weight: Any, validation: tuple[Any, Any] | None = None) -> Task:
        """Check the data, tie the kernels to them, and state the problem of each output.

        ``validation`` is a pair of rows and labels that early stopping looks at.
        """
        self._check_params()
        formulation = self._formulation()
        rng = self._rng()
        library = self._library()
        checked = self._check_fit(X, y, sample_weight, library)
        if validation is not None:
            validation = self._check_validation(*validation, library, checked.partition)
        else:
            checked, validation = self._hold_out(checked, rng)
        rkhs = formulation.penalty == "rkhs"  # its centres are the labelled rows
        everywhere = rkhs and isinstance(self.centers, str) and self.centers == "auto"
        sample, is_center, scope = candidates("all" if everywhere else self.centers, checked, rng)
        library = self._library_for(sample)
        bound = self._bind(library, sample, rng)
        labeled = sample.partition.labeled
        if rkhs and not (is_center.all() and len(labeled) == len(is_center)):
            raise ValueError('penalty="rkhs" needs a centre at every labelled row and none elsewhere: centers="all".')
        scope = f"{len(bound.kernels)} kernel{'s' * (len(bound.kernels) > 1)} x {scope}{self._left_out(sample)}"
        if self.verbose:
            announce(
                f"{type(self).__name__}: {scope}; to look at all columns once takes about "
                f"{bound.scan_seconds(labeled):.2g} s, and a fit looks 10 to 40 times"
            )
        scale = formulation.scales(bound, labeled, sample.weight, self.column_scale)
        scale = np.where(np.tile(is_center, len(bound.kernels)), scale, np.inf)
        problems = self._problems(sample)
        tol = self._tolerance()
        task = Task(library, formulation, sample, is_center, bound, scale, problems, [], tol, scope)
        task.masters = self._masters(task)
        if validation is not None:
            rows, labels = validation
            score = self._validation_score(sample, labels)
            task.curve = ValidationCurve(bound, rows, score, task.means, scale, self.n_iter_no_change)
        return task

    def _check_validation(self, X: Any, y: Any, library: KernelLibrary, found: Any) -> tuple[Any, np.ndarray]:
        """Return validation rows and their labels, which must be such as the partition of the training rows has."""
        rows, labels = self._check_rows(X, library, reset=False), self._read_labels(y, found)
        if rows.shape[0] != len(labels):
            raise ValueError(f"X_val has {rows.shape[0]} rows but y_val has {len(labels)}; they must be equally long.")
        return rows, labels

    def _masters(self, task: Task) -> list[Master]:
        """Return the restricted problems of a task, without columns."""
        shown = np.empty(0)
        if task.formulation.penalty == "rkhs":
            shown = diagonals(task.bound, task.labeled) / task.scale[:: task.bound.n_rows, None]
        return [task.formulation.master(rows, task.tol, shown) for rows in task.problems]

    def _learn(self, task: Task) -> None:
        """Solve the stated problems and keep the model and its certificate."""
        results = self._solve(task)
        self._keep_labels(task.sample)
        objectives = self._keep_model(results, task)
        self._keep_course(self._judged(results, objectives, task), task)
        self.library_ = task.library

    def _left_out(self, sample: Sample) -> str:
        """Say which kernels a default library does not have for such data."""
        return ""

    @abstractmethod
    def _formulation(self) -> Formulation:
        """Return the problem to solve."""

    @abstractmethod
    def _problems(self, sample: Sample) -> list[MarginRows]:
        """Return the margin rows of each output."""

    @abstractmethod
    def _keep_labels(self, sample: Sample) -> None:
        """Keep what the labels are."""

    def _hold_out(self, sample: Sample, rng: np.random.Generator) -> tuple[Sample, tuple[Any, Any] | None]:
        """Return the sample to fit, and the rows and labels that early stopping looks at, if any."""
        return sample, None

    def _tolerance(self) -> float:
        return TOLERANCES[self._formulation().penalty] if self.tol is None else float(self.tol)

    def _check_params(self) -> None:
        owner = type(self).__name__
        if hasattr(self, "C"):
            require(owner, "C", self.C, is_positive(self.C), "a positive finite number")
        require(owner, "tol", self.tol, self.tol is None or is_positive(self.tol), "None or a positive number")
        scale = self.column_scale
        named = scale is None or (isinstance(scale, str) and scale in ("std", "norm"))
        require(owner, "column_scale", scale, named, 'one of "std", "norm" and None')
        require_jobs(owner, self.n_jobs)
        require(owner, "verbose", self.verbose, isinstance(self.verbose, numbers.Integral), "0, 1 or 2")
        columns, seconds, size = self.max_columns, self.max_time, self.cache_size
        require(owner, "max_columns", columns, columns is None or is_count(columns), "None or a whole number >= 1")
        require(owner, "max_time", seconds, seconds is None or is_positive(seconds), "None or a positive number")
        require(owner, "cache_size", size, size == 0 or is_positive(size), "a number of megabytes, 0 or more")
        callable_ = self.callback is None or callable(self.callback)
        require(owner, "callback", self.callback, callable_, "None or a function of the round's state")

    def _solve(self, task: Task) -> list[ColumnResult]:
        """Solve the problem of each output on scaled columns, all together."""
        bound, scale, labeled, centered = task.bound, task.scale, task.labeled, task.formulation.centered

        def price(V: np.ndarray, stratum: Any) -> Iterator[tuple[slice | np.ndarray, np.ndarray]]:
            order, centers = (None, None) if stratum is None else stratum
            for columns, scores in bound.scores(V, labeled, order, centers=centers, centered=centered):
                yield columns, scores / scale[columns, None]

        def fetch(columns: np.ndarray) -> np.ndarray:
            K = bound.columns(columns, labeled)
            return (K - K.mean(axis=0) if centered else K) / scale[columns]

        with progress(self.verbose, type(self).__name__, self._hook(task)) as hook:
            try:
                results = generate_columns(
                    task.masters,
                    price,
                    fetch,
                    strata=self._strata(task),
                    pool_size=bound.pool_size(len(labeled)),
                    tol=task.tol,
                    max_columns=self.max_columns,
                    max_time=self.max_time,
                    n_threads=effective_n_jobs(self.n_jobs),
                    callback=hook,
                )
            except NotPSDError as error:
                raise ValueError(
                    f"The kernel {bound.entries[error.kernel].name} is not symmetric and positive semi-definite, as "
                    'penalty="rkhs" requires. Use penalty="l1" or "l2", or leave the kernel out.'
                ) from error
        if task.curve is None:
            return results
        seconds = np.inf if self.max_time is None else SETTLING * self.max_time
        task.curve.keep([exact_solution(*chosen, fetch, seconds) for chosen in task.curve.best])
        return _best_round(results, task.curve)

    def _strata(self, task: Task) -> Callable[[np.ndarray], Sequence[Any]] | None:
        """Return the strata of pricing: columns at error points first, cheap kernels first."""
        if getattr(self, "pricing", "full") == "full":
            return None

        def strata(errors: np.ndarray) -> list[tuple[list[int], np.ndarray]]:
            at_errors = np.zeros(task.bound.n_rows, dtype=bool)
            at_errors[task.labeled[errors]] = True
            parts = [np.flatnonzero(at_errors), np.flatnonzero(~at_errors)]
            return [([p], centers) for centers in parts if len(centers) for p in task.bound.order]

        return strata

    def _hook(self, task: Task) -> Callable[[Any], object] | None:
        """Return the user's callback, and the validation curve's before it where there is one."""
        curve, callback = task.curve, self.callback
        if curve is None:
            return callback

        def hook(state: Any) -> bool:
            stop = curve(state)
            return bool(callback(state)) or stop if callback is not None else stop

        return hook

    def _keep_model(self, results: Sequence[ColumnResult], task: Task) -> list[float]:
        """Turn the problems' coefficients into one expansion over the union of their columns.

        Returns the value of each problem at the model as it predicts, rounding included.
        """
        active = []
        for result in results:
            used = result.x != 0
            active.append((result.columns[used], result.x[used]))
        columns = np.unique(np.concatenate([chosen for chosen, _ in active]))
        penalized = np.zeros((len(columns), len(results)))
        for k, (chosen, values) in enumerate(active):
            penalized[np.searchsorted(columns, chosen), k] = values
        bound, sample = task.bound, task.sample
        coef = penalized / task.scale[columns, None]
        self.intercept_ = np.array([result.intercept for result in results]) - task.means(columns) @ coef
        self.expansion_ = KernelExpansion.from_columns(bound, columns, coef, self.intercept_, sample.kept)
        penalties = task.formulation.penalties(bound, columns, penalized, task.scale[columns])
        self.kernel_usage_ = kernel_usage(self.expansion_, bound, penalties.sum(axis=1))
        self.n_columns_ = len(columns)
        self.n_evaluations_ = self.expansion_.n_evaluations
        self.candidates_ = sample.kept[task.is_center]
        self.dual_ = np.zeros((sample.n_given, len(results)))
        duals = [result.signed_dual for result in results]
        self.dual_[sample.kept[task.labeled]] = np.column_stack(duals)
        f = self.expansion_(sample.X[task.labeled])
        objectives = []
        self._rho = np.zeros(len(results))
        for k, rows in enumerate(task.problems):
            value, self._rho[k] = task.formulation.objective(
                float(penalties[:, k].sum()), float(self.intercept_[k]), rows, f[:, k]
            )
            objectives.append(value)
        return objectives

    def _judged(self, results: Sequence[ColumnResult], objectives: Sequence[float], task: Task) -> list[ColumnResult]:
        """Return the results with objective and certificate of the model as it predicts."""
        judged = []
        for result, objective in zip(results, objectives, strict=True):
            bound = result.objective - result.certificate.gap
            certificate = Certificate(max(0.0, objective - bound), objective, result.certificate.kind, scope=task.scope)
            status = result.status
            small = max(task.tol * abs(objective), result.rounding)
            if status.converged and certificate.gap > small:
                status = Status.PRECISION
            judged.append(replace(result, objective=objective, certificate=certificate, status=status))
        return judged

    def _keep_course(self, results: Sequence[ColumnResult], task: Task) -> None:
        """Keep what the solver said of one problem, or of one problem a class; warn once if it is not enough."""
        self.n_iter_ = max(result.n_iter for result in results)
        objectives = np.array([result.objective for result in results])
        self.objective_ = float(objectives[0]) if len(results) == 1 else objectives
        self.certificate_ = Certificate(
            sum(result.certificate.gap for result in results),
            float(objectives.sum()),
            results[0].certificate.kind,
            scope=task.scope,
        )
        worst = max(results, key=lambda result: (not result.status.converged, result.certificate.relative))
        self._status_name = worst.status.name
        self.history_ = []
        labels = [{}] if len(results) == 1 else [{"class": label} for label in self.classes_.tolist()]
        scores = [] if task.curve is None else task.curve.scores
        for label, result in zip(labels, results, strict=True):
            for record in result.history:
                score = {"validation_score": scores[record["iteration"] - 1]} if scores else {}
                self.history_.append(label | record | score)
        if worst.status in REMEDIES:
            warnings.warn(
                f"{worst.status.value} Certified relative gap: {worst.certificate.relative:.2e}, asked for: "
                f"{task.tol:.2e}. {REMEDIES[worst.status]}",
                ConvergenceWarning,
                stacklevel=4,
            )


def require_jobs(owner: str, n_jobs: Any) -> None:
    """Refuse what is no number of jobs with one sentence."""
    jobs = n_jobs is None or (isinstance(n_jobs, numbers.Integral) and n_jobs != 0)
    require(owner, "n_jobs", n_jobs, jobs, "None or a whole number, -1 for all cores")


def _best_round(results: Sequence[ColumnResult], curve: ValidationCurve) -> list[ColumnResult]:
    """Return the results with the models of the best round; bounds proven later hold for them too."""
    out = []
    for result, (columns, solution) in zip(results, curve.best, strict=True):
        bound = result.objective - result.certificate.gap
        certificate = Certificate(max(0.0, solution.objective - bound), solution.objective, result.certificate.kind)
        earlier = solution.objective != result.objective
        stopped = curve.stopped and result.status is Status.CALLBACK
        status = Status.VALIDATION if stopped or (earlier and result.status.converged) else result.status
        out.append(
            replace(
                result,
                x=solution.coef,
                objective=solution.objective,
                certificate=certificate,
                status=status,
                columns=columns,
                intercept=solution.intercept,
                signed_dual=solution.signed_dual,
                rho=solution.rho,
            )
        )
    return out


def kernel_usage(expansion: KernelExpansion, library: BoundLibrary, penalties: np.ndarray) -> list[dict[str, Any]]:
    """Return one record a kernel: name, source, columns in use and share of the norm.

    Parameters
    ----------
    penalties : ndarray of shape (n_kernels,)
        The part of the norm that each kernel's coefficients make up.
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

"""Fits of mixtures of kernels: sparse expansions found by column generation.

Column :math:`j` is a kernel of a bound library at a row that may be a centre. The columns are scaled, the problem of
each output is solved over all of them, and the coefficients of all outputs become one expansion. Fits that differ in
their costs only share the binding, the scales and the columns that the last one ended with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from ...kernels.bound_library import BoundLibrary
from ...kernels.expansion import KernelExpansion
from ...kernels.library import KernelLibrary
from ...kernels.partitioned import PartitionedLibrary
from ...parameters import (
    CALLBACK,
    COUNT,
    JOBS,
    NONE,
    POSITIVE,
    READ_LATER,
    VERBOSE,
    Constraint,
    is_nonnegative,
    one_of,
    read_options,
)
from ...solvers.columns.loop import SETTLING_SHARE, exact_solution, generate_columns
from ...solvers.columns.masters import ColumnResult, Master
from ...solvers.columns.rkhs_master import NotPSDError
from ...solvers.deadline import NO_DEADLINE, Deadline, OutOfTimeError
from ...solvers.margin import MarginRows
from ...solvers.result import Certificate, FitState, Status
from .centers import Centers
from .early_stopping import Validation, ValidationCurve
from .formulation import TOLERANCES, Formulation
from .outcome import TIME_REMEDY, summarize, warn_unless_converged
from .partitioned import PartitionedSample
from .partitioned_columns import PartitionedColumns
from .progress import announce, follow_fit, number_problem
from .records import Records
from .scaled_columns import ScaledColumns

SCALE_ADVICE = "Scale the features or lower C"
REMEDIES = {
    Status.MAX_COLUMNS: "Raise max_columns",
    Status.MAX_TIME: TIME_REMEDY,
    Status.PRECISION: SCALE_ADVICE,
    Status.SOLVER_FAILED: SCALE_ADVICE,
}
MEGABYTES = Constraint(is_nonnegative, ("a number of megabytes, 0 or more",))
MIXTURE_CONSTRAINTS = {
    "kernels": READ_LATER,
    "column_scale": one_of("std", "norm", None),
    "max_columns": NONE | COUNT,
    "centers": READ_LATER,
    "max_time": NONE | POSITIVE,
    "tol": NONE | POSITIVE,
    "cache_size": MEGABYTES,
    "n_jobs": JOBS,
    "callback": CALLBACK,
    "verbose": VERBOSE,
    "random_state": READ_LATER,
}


TINY = float(np.finfo(float).tiny)
MIN_PASSES = 2  # over all columns, for their sizes and for scores
FEWER_CENTERS = 2000  # that a sentence names


@dataclass(frozen=True)
class MixtureOptions:
    """How a mixture is fitted: the problem of each output, and what the parameters of the estimators say."""

    owner: str
    tol: float
    formulation: Formulation = field(default_factory=Formulation)
    column_scale: str | None = "std"
    pricing: str = "full"
    max_columns: int | None = None
    max_time: float | None = None
    n_jobs: int | None = None
    cache_size: float = 0.0
    verbose: int = 0
    callback: Callable[[FitState], object] | None = None
    deadline: Deadline = NO_DEADLINE

    @property
    def rest(self) -> MixtureOptions:
        """The options with what is left of the time."""
        if self.max_time is None:
            return self
        return replace(self, max_time=max(min(self.max_time, self.deadline.left), TINY))


@dataclass(frozen=True, eq=False)
class BoundColumns:
    """The columns that compete in a fit: kernels of a library, tied to rows, at those that may be centres.

    ``partitions`` are the rows they are drawn from, where these are partitioned.
    """

    library: KernelLibrary
    bound: BoundLibrary | PartitionedLibrary
    centers: Centers
    partitions: PartitionedSample | None = None


@dataclass(frozen=True, eq=False)
class MixtureFit:
    """A mixture and what is proven of it; fields as the attributes of the estimators.

    ``rho`` holds the margin that each problem chose, zero where it is given; ``results`` what the solver returned, with
    objective and certificate of the model as it predicts.
    """

    expansion: KernelExpansion
    intercept: np.ndarray
    kernel_usage: Records
    n_columns: int
    n_evaluations: int
    candidates: np.ndarray
    dual_coef: np.ndarray
    objective: float | np.ndarray
    certificate: Certificate
    status: Status
    history: Records
    n_iter: int
    rho: np.ndarray = field(metadata={"kept": False})
    results: tuple[ColumnResult, ...] = field(metadata={"kept": False})


def mixture_options(
    owner: str, params: Mapping[str, Any], formulation: Formulation, pricing: str = "full"
) -> MixtureOptions:
    """Return the options among the parameters of an estimator."""
    tol = TOLERANCES[formulation.penalty] if params["tol"] is None else float(params["tol"])
    deadline = Deadline(params["max_time"])
    return read_options(
        MixtureOptions, params, owner=owner, tol=tol, formulation=formulation, pricing=pricing, deadline=deadline
    )


def fit_mixture(
    bound: BoundLibrary | PartitionedLibrary,
    centers: Centers,
    problems: Sequence[MarginRows],
    options: MixtureOptions,
    validation: Validation | None = None,
) -> MixtureFit:
    """Fit a mixture; warn where it is not proven to be within the tolerance.

    Parameters
    ----------
    bound : BoundLibrary or PartitionedLibrary
        Tied to the rows of ``centers.sample``.
    centers : Centers
    problems : sequence of MarginRows
        The margins of the labelled rows, for each output.
    options : MixtureOptions
    validation : Validation, optional
        Rows that say when to stop early.
    """
    fit = MixturePath(bound, centers, options, validation).solve(problems)
    warn_unless_converged(fit.results, options.tol, REMEDIES)
    return fit


class MixturePath:
    """Fits on the same columns, of problems that differ in their costs: each starts from the columns of the last.

    Parameters
    ----------
    bound, centers, options, validation
        As for :func:`fit_mixture`.

    Attributes
    ----------
    masters : list of Master
        The restricted problems of the last fit, from which the next one starts; none: it starts without columns.
    place : (int, int)
        Which fit is the next one, and of how many; callbacks are told.
    """

    def __init__(
        self,
        bound: BoundLibrary | PartitionedLibrary,
        centers: Centers,
        options: MixtureOptions,
        validation: Validation | None = None,
    ):
        self.bound, self.centers, self.options, self.validation = bound, centers, options, validation
        n_kernels, sample = len(bound.kernels), centers.sample
        self.labeled = sample.partition.labeled
        self.scope = f"{n_kernels} kernel{'s' * (n_kernels > 1)} x {centers.scope}"
        self._measure_pass()
        make: Any = PartitionedColumns if isinstance(bound, PartitionedLibrary) else ScaledColumns
        self.columns = make(bound, centers, options.formulation, options.column_scale)
        # Early steps are no good models to stop at, nor to choose a few columns by.
        fits_in_memory = bound.pool_size(len(self.labeled)) == 0
        self.scans_are_cheap = fits_in_memory and validation is None and options.max_columns is None
        self.masters: list[Master] = []
        self.place = (0, 1)

    def _measure_pass(self) -> None:
        """Say how long one pass over all columns takes; refuse a fit that has no time for the first ones.

        A pass cannot be interrupted. It is short where all columns are kept in memory.
        """
        options, bound = self.options, self.bound
        is_long = isinstance(bound, BoundLibrary) and bound.pool_size(len(self.labeled)) > 0
        is_limited = options.max_time is not None and is_long
        if not (options.verbose or is_limited):
            return
        seconds = bound.scan_seconds(self.labeled)
        one_pass = f"one pass over all columns takes about {_describe_seconds(seconds)} s"
        if options.verbose:
            announce(f"{options.owner}: {self.scope}; {one_pass}; a fit makes 10 to 40 passes")
        if is_limited and MIN_PASSES * seconds > min(options.deadline.left, options.max_time or 0.0):
            raise OutOfTimeError(
                f"max_time={options.deadline.seconds or options.max_time:g} s would be over before {options.owner} has "
                f"a first model: {one_pass} ({self.scope}). Raise max_time, or pass fewer centers, such as "
                f"centers={FEWER_CENTERS}."
            )

    def solve(self, problems: Sequence[MarginRows]) -> MixtureFit:
        """Fit the mixture for the margins of each output; the caller warns if need be."""
        return self._assemble(self.solve_columns(problems), problems)

    def values(self, results: Sequence[ColumnResult]) -> np.ndarray:
        """Return the outputs that coefficients of columns have at all labelled rows, shape (n_labeled, n_outputs)."""
        out = np.tile([result.intercept for result in results], (len(self.labeled), 1))
        for k, result in enumerate(results):
            used = result.x != 0
            out[:, k] += self.columns.fetch(result.columns[used]) @ result.x[used]
        return out

    def solve_columns(self, problems: Sequence[MarginRows]) -> list[ColumnResult]:
        """Return the columns of each output, and their coefficients, for its margins."""
        self._set_problems(problems)
        options, curve = self.options, None
        callback: Any = number_problem(options.callback, *self.place)
        if self.validation is not None:
            columns: Any = self.columns
            callback = curve = ValidationCurve(columns.bound, self.validation, columns.means, columns.scale, callback)
        with follow_fit(options.verbose, options.owner, callback, _describe_round, max_time=options.max_time) as hook:
            try:
                results = generate_columns(
                    self.masters,
                    self.columns.price,
                    self.columns.fetch,
                    strata=None if options.pricing == "full" else self.columns.strata,
                    pool_size=self.bound.pool_size(len(self.labeled)),
                    tol=options.tol,
                    max_columns=options.max_columns,
                    max_time=options.max_time,
                    n_threads=effective_n_jobs(options.n_jobs),
                    callback=hook,
                )
            except NotPSDError as error:
                raise ValueError(
                    f"The kernel {self.bound.entries[error.kernel].name} is not symmetric and positive semi-definite, "
                    'as penalty="rkhs" requires. Use penalty="l1" or "l2", or leave the kernel out.'
                ) from error
        if curve is not None:
            seconds = np.inf if options.max_time is None else SETTLING_SHARE * options.max_time
            curve.replace_best([exact_solution(*best, self.columns.fetch, seconds) for best in curve.best])
            results = curve.best_results(results)
        return results

    def _set_problems(self, problems: Sequence[MarginRows]) -> None:
        """Give the masters new costs; begin without columns where a full working set would never change again."""
        if self.masters and self.options.max_columns is None:
            for master, rows in zip(self.masters, problems, strict=True):
                master.set_cost(rows.cost)
            return
        formulation, scaled_diagonals = self.options.formulation, np.empty(0)
        if formulation.penalty == "rkhs":
            scaled_diagonals = self.columns.scaled_diagonals
        self.masters = [
            formulation.master(rows, self.options.tol, scaled_diagonals, scans_are_cheap=self.scans_are_cheap)
            for rows in problems
        ]

    def _assemble(self, results: Sequence[ColumnResult], problems: Sequence[MarginRows]) -> MixtureFit:
        """Turn the problems' coefficients into one expansion over the union of their columns."""
        bound, sample = self.bound, self.centers.sample
        columns = np.unique(np.concatenate([result.columns[result.x != 0] for result in results]))
        penalized = np.zeros((len(columns), len(results)))
        for k, result in enumerate(results):
            used = result.x != 0
            penalized[np.searchsorted(columns, result.columns[used]), k] = result.x[used]
        coef = penalized / self.columns.scales(columns)[:, None]
        intercept = np.array([result.intercept for result in results]) - self.columns.means(columns) @ coef
        expansion = self.columns.expand(columns, coef, intercept)
        penalties = self.columns.penalties(columns, penalized)
        dual = np.zeros((sample.n_rows, len(results)))
        dual[self.labeled] = np.column_stack([result.signed_dual for result in results])
        f = expansion(sample.X[self.labeled])
        certified, rho = [], np.zeros(len(results))
        for k, (result, rows) in enumerate(zip(results, problems, strict=True)):
            objective, rho[k] = self.options.formulation.objective(
                float(penalties[:, k].sum()), float(intercept[k]), rows, f[:, k]
            )
            certified.append(self._certify(result, objective))
        classes = sample.partition.classes.tolist() if len(results) > 1 else []
        outcome = summarize(certified, [{"class": label} for label in classes] or None)
        return MixtureFit(
            expansion=expansion,
            intercept=intercept,
            kernel_usage=kernel_usage(expansion, bound, penalties.sum(axis=1)),
            n_columns=len(columns),
            n_evaluations=expansion.n_evaluations,
            candidates=self.columns.candidates,
            dual_coef=sample.spread(dual),
            objective=outcome.objective,
            certificate=outcome.certificate,
            status=outcome.status,
            history=outcome.history,
            n_iter=outcome.n_iter,
            rho=rho,
            results=tuple(certified),
        )

    def _certify(self, result: ColumnResult, objective: float) -> ColumnResult:
        """Return a result with objective and certificate of the model as it predicts, rounding included."""
        gap = max(0.0, objective - (result.objective - result.certificate.gap))
        status = result.status
        if status.converged and gap > max(self.options.tol * abs(objective), result.rounding):
            status = Status.PRECISION
        certificate = Certificate(gap, objective, result.certificate.kind, scope=self.scope)
        return replace(result, objective=objective, certificate=certificate, status=status)


def _describe_seconds(seconds: float) -> str:
    """Return two digits, or whole seconds, never with an exponent."""
    rounded = float(f"{seconds:.2g}")
    return f"{rounded:.0f}" if rounded >= 10 else f"{rounded:g}"


def _describe_round(state: FitState) -> str:
    return (
        f"round {state.iteration}, {state.details['n_columns']} columns, objective {state.objective:.6g}, relative gap "
        f"{state.relative_gap:.2e}"
    )


def kernel_usage(
    expansion: KernelExpansion, library: BoundLibrary | PartitionedLibrary, penalties: np.ndarray
) -> Records:
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
    return Records(
        {
            "name": entry.name,
            "source": entry.source,
            "columns": int(n_columns[p]),
            "share": float(penalties[p] / total) if total > 0 else 0.0,
        }
        for p, entry in enumerate(library.entries)
    )

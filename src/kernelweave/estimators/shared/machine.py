r"""Support vector machines whose kernel is a weighted sum of kernels: from bound kernels and margins to a model.

.. math::
    \min_{w, f, b, \xi} \; \tfrac12 \|f\|_{K(w)}^2 + \sum_r c_r\, \ell(\xi_r) \quad \text{s.t.} \quad
    s_r (f(x_{i_r}) + b) + \xi_r \ge t_r, \; \xi_r \ge 0, \qquad K(w) = \sum_k w_k K_k / s_k ,

with weights of norm 1, learned or equal, shared by the machines of all outputs or one set for each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from ...kernels.base import ALL
from ...kernels.bound_library import BoundLibrary
from ...kernels.defaults import given_library, landmark_library
from ...kernels.expansion import KernelExpansion
from ...kernels.library import KernelLibrary
from ...parameters import AT_LEAST_ONE, CALLBACK, COUNT, POSITIVE, READ_LATER, one_of
from ...short_text import count_of
from ...solvers.deadline import NO_DEADLINE, Deadline
from ...solvers.machines.kernel_stack import MAX_DENSE_POINTS, Diagonal, KernelStack
from ...solvers.machines.kernel_weights import METHODS, WeightsResult, solve_kernel_weights
from ...solvers.machines.weighted_svm import WeightedSVM
from ...solvers.margin import DualProblem, MarginRows
from ...solvers.result import Certificate, FitState, Status
from .composite import composite_expansion, duals_by_row, require_definite, weights_by_kernel
from .memory import (
    fewer_kernels,
    fits_machine,
    fits_now,
    mixture_bytes,
    recipe_rank,
    require_machine_memory,
    require_stack_memory,
    stack_bytes,
)
from .outcome import TIME_REMEDY, Outcome, summarize, warn_unless_converged
from .problems import ClassProblem, NumberProblem
from .progress import LIMIT_CONSTRAINTS, Hook, announce, follow_fit, number_problem
from .records import NamedNumbers, Records
from .sample import Sample, bind
from .stacked_kernels import StackedKernels, stack_kernels

PRECISION = ("float64",)  # in which kernels are computed; the parameter dtype says how they are kept
MACHINE_CONSTRAINTS = {
    "scale": one_of("trace", "variance", None),
    "tol": POSITIVE,
    "max_iter": COUNT,
    "dtype": one_of("float64", "float32"),
    "random_state": READ_LATER,
}
WEIGHTS_CONSTRAINTS = {
    "kernels": READ_LATER,
    "norm": AT_LEAST_ONE,
    "weighting": one_of("learned", "uniform"),
    "solver": one_of(*METHODS),
}
PROGRESS_CONSTRAINTS = {"callback": CALLBACK} | LIMIT_CONSTRAINTS
FEW_COLUMNS = {"max_columns": 100, "cache_size": 0}  # of the mixtures that are advised where memory is short
MAX_DIRECT_ROWS = 20_000  # labelled rows, up to which kernels are taken as they are
REMEDIES = {
    Status.MAX_TIME: TIME_REMEDY,
    Status.MAX_ITER: "Raise max_iter",
    Status.PRECISION: "Lower C",
}
OTHER_SOLVER = 'Use solver="newton"'  # where another was asked for
TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True)
class MachineOptions:
    """How machines and the weights of their kernels are learned, as the parameters of the estimators say.

    ``owner`` is the estimator, for messages; ``memory_advice`` what to use where kernels do not fit into the memory;
    ``scope`` what certificates are about, where that is not the kernels themselves.
    """

    owner: str
    scale: str | None
    dtype: str
    tol: float
    max_iter: int
    norm: float = 1.0
    weighting: str = "learned"
    share_weights: bool = True
    solver: str = "newton"
    callback: Callable[[FitState], object] | None = None
    verbose: int = 0
    max_time: float | None = None
    n_jobs: int | None = None
    deadline: Deadline = NO_DEADLINE
    memory_advice: str = "CGBoostClassifier or CGBoostRegressor with max_columns=100 and cache_size=0"
    scope: str = ""

    def __post_init__(self) -> None:
        if self.solver == "reduced_gradient" and self.norm != 1:
            raise ValueError(
                f'{self.owner} got solver="reduced_gradient" with norm={self.norm:g}; it is for norm=1 only.'
            )

    @property
    def has_own_weights(self) -> bool:
        """Whether the machine of each output learns weights for itself."""
        return self.weighting == "learned" and not self.share_weights

    @property
    def remedies(self) -> dict[Status, str]:
        """What to do where the accuracy was not reached."""
        if self.solver == "newton":
            return REMEDIES
        return dict.fromkeys(REMEDIES, OTHER_SOLVER) | {Status.MAX_TIME: TIME_REMEDY}

    @property
    def n_threads(self) -> int:
        """How many machines are trained at the same time."""
        return effective_n_jobs(self.n_jobs)

    def part(self, share: float) -> MachineOptions:
        """Return the options of what may take a share of the time and shows nothing."""
        return replace(self, deadline=self.deadline.part(share), callback=None, verbose=0)


@dataclass(frozen=True, eq=False, kw_only=True)
class MachineFit:
    """A machine, and how it was reached; fields as the attributes of the estimators."""

    expansion: KernelExpansion
    intercept: np.ndarray
    n_evaluations: int
    weights: np.ndarray
    kernel_weights: Records
    source_weights: NamedNumbers
    dual_coef: np.ndarray
    support: np.ndarray
    objective: float | np.ndarray
    certificate: Certificate
    status: Status
    n_iter: int
    history: Records
    n_solves: int
    C: float | np.ndarray


def bind_machine(
    kernels: Any,
    n_landmarks: Any,
    sample: Sample,
    options: MachineOptions,
    rng: np.random.Generator,
    *,
    by_features: bool,
) -> tuple[BoundLibrary, KernelLibrary, MachineOptions]:
    """Tie the kernels that parameters name to all rows, or their landmark features, if there is memory for a machine.

    Returns
    -------
    everywhere : BoundLibrary
    library : KernelLibrary
        Whose kernels these are.
    options : MachineOptions
        As features want them.
    """
    given = given_library(kernels, sample.X)
    library, options = _machine_library(given, n_landmarks, sample, options)
    if options.verbose:
        announce(f"{options.owner}: {count_of(len(library.entries), 'kernel')} on {sample.n_rows:,} rows")
    n_labeled = sample.partition.n_labeled
    require_machine_memory(
        options.owner,
        library,
        sample,
        n_labeled,
        options.dtype,
        options.memory_advice if fits_now(mixture_bytes(given, sample, FEW_COLUMNS)) else "",
        by_features=by_features,
        smaller=[*fewer_kernels(library), ("n_landmarks=200", landmark_library(given, 200))],
    )
    return bind(library, sample, rng), library, options


def _machine_library(
    library: KernelLibrary, n_landmarks: int | str | None, sample: Sample, options: MachineOptions
) -> tuple[KernelLibrary, MachineOptions]:
    """Return the kernels of a machine, or their features of landmarks where these are asked for or needed.

    ``"auto"``: kernels as they are at up to 20,000 labelled rows, if they fit into the memory of the machine. The
    options say what certificates then are about.
    """
    if n_landmarks is None or (isinstance(n_landmarks, str) and _fit_as_they_are(library, sample, options)):
        return library, options
    featured = landmark_library(library, None if isinstance(n_landmarks, str) else int(n_landmarks))
    n_each = featured.entries[0].kernel.get_params(deep=False)["n_landmarks"]
    return featured, replace(options, scope=f"the features of {n_each:,} landmarks of each kernel")


def _fit_as_they_are(library: KernelLibrary, sample: Sample, options: MachineOptions) -> bool:
    n_labeled, n_features = sample.partition.n_labeled, sample.X.shape[1]
    ranks = [recipe_rank(entry.kernel, n_labeled, n_features) for entry in library.entries]
    if n_labeled <= MAX_DENSE_POINTS or None not in ranks:
        return True  # features would be no smaller, or are there already
    n_bytes = stack_bytes(n_labeled, ranks, options.dtype, by_features=False)
    return n_labeled <= MAX_DIRECT_ROWS and fits_machine(n_bytes)


def announce_folds(options: MachineOptions, C: Any, n_kernels: int, n_labeled: int, ratio: Any = None) -> None:
    """Print what folds will compare before a machine is trained, if anything and if progress is shown."""
    weighting = "the weighting of the kernels" if options.weighting == "auto" and n_kernels > 1 else ""
    choices = [name for name, value in (("C", C), ("ratio", ratio)) if isinstance(value, str) and value == "cv"]
    choices += [weighting] if weighting else []
    if options.verbose and choices:
        announce(f"{options.owner}: folds of {n_labeled:,} labelled rows choose {' and '.join(choices)}")


def stack_labeled(
    bound: BoundLibrary, sample: Sample, options: MachineOptions, *, by_features: bool = True
) -> StackedKernels:
    """Compute the kernels at the labelled rows, and their scales over all.

    ``by_features``: whether machines need no matrix of all rows where kernels are given by features.
    """
    rows = sample.partition.labeled
    require_stack_memory(options.owner, bound, len(rows), options.dtype, options.memory_advice, by_features=by_features)
    return stack_kernels(
        bound,
        sample.share,
        owner=options.owner,
        scale=options.scale,
        dtype=options.dtype,
        rows=None if len(rows) == sample.n_rows else rows,
    )


def fit_machine(
    bound: BoundLibrary,
    sample: Sample,
    stacked: StackedKernels,
    problem: ClassProblem | NumberProblem,
    options: MachineOptions,
    C: float | None,
    *,
    squared: bool = False,
) -> MachineFit:
    """Learn weights and machines from kernels at labelled rows; warn where their accuracy was not reached.

    Parameters
    ----------
    bound : BoundLibrary
    sample : Sample
    stacked : StackedKernels
        The kernels at the labelled rows of the sample.
    problem : ClassProblem or NumberProblem
    options : MachineOptions
    C : float or None
        The cost of a margin of weight 1; None: learned.
    squared : bool
        Whether violations cost half their squares.
    """
    n_kernels, rows = len(bound.kernels), sample.partition.labeled
    margins = problem.margins(1.0 if C is None else C, ALL)
    ridge = inverse_costs(margins[0]) if squared else np.zeros(len(rows))
    if C is None:  # the diagonal joins the kernels; its weight w_0 gives C = (1 - w_0) / w_0
        stack = KernelStack([*stacked.members, Diagonal(ridge)], [*stacked.scales, 1.0])
        ridge = np.zeros(len(rows))
    else:
        stack = KernelStack(stacked.members, stacked.scales)
    constant = None if C is None else problem.constant(ALL)
    duals = [each.dual(squared=squared, at=constant) for each in margins]
    parts = [[dual] for dual in duals] if options.has_own_weights else [duals]
    with follow_fit(
        options.verbose, options.owner, options.callback, _describe_step, max_time=options.max_time
    ) as hook:
        hooks = [number_problem(hook, k, len(parts)) for k in range(len(parts))]
        results = [learn_weights(stack, part, ridge, options, hooks[k]) for k, part in enumerate(parts)]
    proven = all(result.certificate.kind == "duality gap" for result in results)
    require_definite(options.owner, np.array([r.x for r in results]), stack, bound, stacked.rounding, proven)
    x = np.zeros((sample.n_rows, len(duals)))
    for c, dual in enumerate(dual for result in results for dual in result.duals):
        x[rows, c] = np.bincount(margins[c].point, weights=dual, minlength=len(rows))
    weights = np.array([result.x[:n_kernels] for result in results])
    intercept = -np.array([b for result in results for b in result.multipliers], dtype=float)
    expansion = composite_expansion(weights / stacked.scales, x, intercept, bound, sample.kept)
    used: float | np.ndarray
    if C is not None:
        used = C
    else:
        diagonal = np.array([result.x[-1] for result in results])
        costs = (1.0 - diagonal) / np.maximum(diagonal, TINY)
        used = float(costs[0]) if len(results) == 1 else costs
        weights = weights / np.maximum(1.0 - diagonal, TINY)[:, None]
    warn_unless_converged(results, options.tol, options.remedies)
    n_solves = sum(result.n_solves for result in results)
    outcome = summarize(results)
    outcome = replace(outcome, certificate=replace(outcome.certificate, scope=options.scope))
    return assemble_machine(expansion, weights, x, outcome, n_solves, used, bound, sample)


def inverse_costs(margins: MarginRows) -> np.ndarray:
    """Return what squared losses add to the diagonal of the kernel, at each point."""
    ridge = np.empty(margins.n_points)
    ridge[margins.point] = 1.0 / margins.cost
    return ridge


def learn_weights(
    stack: KernelStack,
    problems: Sequence[DualProblem],
    ridge: np.ndarray,
    options: MachineOptions,
    callback: Hook | None,
) -> WeightsResult:
    """Solve machines that share the weights of their kernels."""
    limits: dict[str, Any] = {"deadline": options.deadline, "n_threads": options.n_threads}
    if options.weighting == "uniform":
        return train_with_equal_weights(stack, problems, ridge, options.norm, options.tol, **limits)
    return solve_kernel_weights(
        stack,
        problems,
        ridge=ridge,
        norm=options.norm,
        method=options.solver,
        tol=options.tol,
        max_iter=options.max_iter,
        callback=callback,
        **limits,
    )


def _describe_step(state: FitState) -> str:
    return (
        f"step {state.iteration}, {np.count_nonzero(state.details['weights'])} kernels, objective "
        f"{state.objective:.6g}, relative gap {state.relative_gap:.2e}"
    )


def train_with_equal_weights(
    stack: KernelStack,
    problems: Sequence[DualProblem],
    ridge: float | np.ndarray,
    norm: float,
    tol: float,
    start: Sequence[np.ndarray] | None = None,
    start_products: np.ndarray | None = None,
    *,
    deadline: Deadline = NO_DEADLINE,
    n_threads: int = 1,
) -> WeightsResult:
    """Solve machines whose kernels all have the same weight, such that the norm of the weights is 1."""
    weights = np.full(len(stack), len(stack) ** (-1.0 / norm))
    value = WeightedSVM(stack, problems, ridge, norm, deadline, n_threads).solve(
        weights, 0.5 * tol, start, start_products
    )
    objective = value.dual + value.inner_gap
    certificate = Certificate(value.inner_gap, objective, "duality gap" if value.proven else "stationarity")
    status = Status.CONVERGED if certificate.relative <= tol else Status.PRECISION
    return WeightsResult(
        weights,
        objective,
        certificate,
        status,
        1,
        duals=value.duals,
        multipliers=value.multipliers,
        n_solves=1,
        products=value.fitted,
    )


def assemble_machine(
    expansion: KernelExpansion,
    weights: np.ndarray,
    x: np.ndarray,
    outcome: Outcome,
    n_solves: int,
    C: float | np.ndarray,
    bound: BoundLibrary,
    sample: Sample,
) -> MachineFit:
    """Return all that is known of machines.

    Parameters
    ----------
    expansion : KernelExpansion
    weights : ndarray of shape (n_sets, n_kernels)
    x : ndarray of shape (n_rows, n_outputs)
        Signed duals of the rows of the sample.
    outcome : Outcome
    n_solves : int
    C : float or ndarray of shape (n_sets,)
    bound : BoundLibrary
    sample : Sample
    """
    by_kernel, by_row = weights_by_kernel(weights, bound.entries), duals_by_row(x, sample)
    return MachineFit(
        expansion=expansion,
        intercept=expansion.intercept,
        n_evaluations=expansion.n_evaluations,
        weights=by_kernel.weights,
        kernel_weights=by_kernel.kernel_weights,
        source_weights=by_kernel.source_weights,
        dual_coef=by_row.dual_coef,
        support=by_row.support,
        objective=outcome.objective,
        certificate=outcome.certificate,
        status=outcome.status,
        n_iter=outcome.n_iter,
        history=outcome.history,
        n_solves=n_solves,
        C=C,
    )

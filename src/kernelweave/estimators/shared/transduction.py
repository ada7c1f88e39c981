"""Transductive machines on bound kernels: the balance of the classes, choices by labelled folds, and the best descent.

The kernels are computed once. Every machine of a fit, those of cross-validation included, moves their origin to the
mean of its own unlabelled rows, where the balance of the classes needs no constraint.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from ...kernels.bound_library import BoundLibrary
from ...kernels.expansion import KernelExpansion
from ...labels import Partition
from ...parameters import BOOLEAN, NON_NEGATIVE, NONE, POSITIVE, READ_LATER, WHOLE, Constraint, is_nonnegative, one_of
from ...solvers.deadline import OutOfTimeError
from ...solvers.machines.kernel_stack import KernelStack
from ...solvers.machines.kernel_weights import WeightsResult, solve_kernel_weights
from ...solvers.machines.transduction import TransductionResult, TransductiveMachine, solve_transduction
from ...solvers.margin import DualProblem
from ...solvers.result import FitState, Status
from ...warn import warn_caller
from .composite import composite_expansion, require_definite
from .fold_choice import (
    N_FOLDS,
    TIME_SHARE,
    Folds,
    choose_candidate,
    clearly_better,
    split_labeled,
    tabulate_losses,
    warn_not_compared,
)
from .in_sample import outputs_at_given, outputs_at_rows
from .machine import (
    MACHINE_CONSTRAINTS,
    PROGRESS_CONSTRAINTS,
    MachineFit,
    MachineOptions,
    assemble_machine,
    train_with_equal_weights,
)
from .memory import require_stack_memory
from .outcome import summarize, warn_unless_converged
from .outputs import choose_classes, transduce_classes
from .progress import Hook, follow_fit
from .sample import Sample, class_weights
from .share_estimate import ShareEstimate, estimate_shares
from .stacked_kernels import StackedKernels, multiply_mean, stack_kernels

STAGES = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)  # of the cost of unlabelled rows, where it is annealed
DEFAULT_C, DEFAULT_RAMP = 10.0, 0.4
GRID_C, GRID_RAMP = (1.0, 10.0, 100.0), (0.2, 0.4)  # what cross-validation chooses from
MIN_GAIN = 0.5  # standard errors by which unlabelled rows must lower the errors in folds where safe=True keeps them
SHARES_FROM_DATA = ("estimated", "labeled")  # what ``class_prior`` may be in words
INNER_TOL_SHARE = 0.5  # of the tolerance: the accuracy of the convex machines
MAX_SHARE_ROWS = 1000  # labelled rows that tell the shares of unlabelled ones
MAX_SHARE_DIFFERENCE = 0.1  # between the shares of a class in both parts, above which there is a warning
MAX_SHOWN_CLASSES = 5
MEMORY_ADVICE = "one of HarmonicClassifier, RKDAClassifier and SSMKClassifier"
RAMP_END = Constraint(lambda s: is_nonnegative(s) and float(s) < 1, ("a number from 0 to less than 1",))
TRANSDUCTION_CONSTRAINTS = (
    MACHINE_CONSTRAINTS
    | PROGRESS_CONSTRAINTS
    | {
        "C": POSITIVE | one_of("cv"),
        "ramp": RAMP_END | one_of("cv"),
        "C_unlabeled": NONE | NON_NEGATIVE,
        "annealing": BOOLEAN,
        "n_restarts": WHOLE,
        "safe": BOOLEAN,
        "class_prior": READ_LATER,
        "class_weight": READ_LATER,
        "unlabeled": READ_LATER,
    }
)


@dataclass(frozen=True, eq=False)
class TransductionOptions:
    """What transductive machines cost, and how they are chosen and descended to, as the parameters say.

    ``machine`` is how the convex machines are trained; ``shares`` are those of the classes, where they are given.
    """

    machine: MachineOptions
    C: float | str
    ramp: float | str
    C_unlabeled: float | None
    class_prior: Any
    shares: np.ndarray | None
    class_weight: Any
    annealing: bool
    safe: bool
    n_restarts: int


Train = Callable[..., list[TransductionResult]]  # train_machines on given kernels with given options


@dataclass(frozen=True)
class Setting:
    """What errors cost, and where ramps end."""

    C: float
    C_unlabeled: float
    ramp: float


@dataclass(frozen=True, eq=False)
class TransductionFit:
    """A transductive machine, and how it was chosen; fields as the attributes of the estimators.

    Attributes
    ----------
    machine : MachineFit
        Its own fields are attributes.
    transduction : ndarray of shape (n_given,)
        The given label on labelled rows, the predicted one on the others.
    C_unlabeled, ramp : float
    cv_results : dict
        What cross-validation compared, as in scikit-learn.
    objective_path : list of ndarray
        Objectives after each step, one array for each stage of the annealing.
    class_prior : ndarray of shape (n_classes,) or None
        The shares of the classes that unlabelled rows were given.
    """

    machine: MachineFit = field(metadata={"kept": False})
    transduction: np.ndarray
    C_unlabeled: float
    ramp: float
    cv_results: dict[str, Any]
    objective_path: list[np.ndarray]
    class_prior: np.ndarray | None


def fit_transduction(
    bound: BoundLibrary, sample: Sample, options: TransductionOptions, rng: np.random.Generator
) -> TransductionFit:
    """Choose a setting, train machines with it, and warn of what seems wrong."""
    machine, known = options.machine, sample.partition
    by_features = options.class_prior is not None
    require_stack_memory(machine.owner, bound, sample.n_rows, machine.dtype, MEMORY_ADVICE, by_features=by_features)
    require_time(machine, known)
    stacked = stack_kernels(bound, sample.share, owner=machine.owner, scale=machine.scale, dtype=machine.dtype)
    require_time(machine, known)
    train = partial(train_machines, stacked, sample.weight, options)
    folds = partial(class_folds, known, int(rng.integers(2**31)))
    warn_without_folds(known, options)
    compare = partial(train_machines, stacked, sample.weight, replace(options, machine=machine.part(TIME_SHARE)))
    setting, cv_results, not_compared = choose_setting(compare, known, folds, options)
    is_tested = options.safe and known.n_unlabeled > 0
    helps = unlabeled_rows_help(compare, known, folds(), setting) if is_tested else True
    supervised = not helps
    if is_balanced(known, options) and options.shares is None:
        warn_of_other_shares(estimate_unlabeled_shares(stacked, sample.weight, known, setting), known, options)
    starts = rng.exponential(size=(options.n_restarts, known.n_labeled))
    with follow_fit(
        machine.verbose,
        machine.owner,
        machine.callback,
        _describe_step,
        measure=_stages_done,
        max_time=machine.max_time,
    ) as hook:
        results = train(known, setting, supervised=supervised, starts=starts, on_step=hook)
    weights = np.array([result.x for result in results])
    stack = KernelStack(stacked.members, stacked.scales)
    require_definite(machine.owner, weights, stack, bound, stacked.rounding)
    warn_unless_converged(results, machine.tol, machine.remedies)
    if not_compared or helps is None:
        warn_not_compared(not_compared, without_unlabeled=helps is None)
    outcome = summarize(results)
    if supervised and outcome.status.converged:
        outcome = replace(outcome, status=Status.SUPERVISED)
    balanced = not supervised and is_balanced(known, options)
    expansion = transductive_expansion(results, stacked, balanced, bound, sample)
    x = np.column_stack([result.point.by_rows for result in results])
    n_solves = sum(result.n_solves for result in results)
    return TransductionFit(
        machine=assemble_machine(expansion, weights, x, outcome, n_solves, setting.C, bound, sample),
        transduction=transduce_classes(outputs_at_given(expansion, bound, sample), sample),
        C_unlabeled=setting.C_unlabeled,
        ramp=setting.ramp,
        cv_results=cv_results,
        objective_path=[path for result in results for path in objectives_by_stage(result)],
        class_prior=find_shares(stacked, sample.weight, options, known, setting) if balanced else None,
    )


def require_time(machine: MachineOptions, known: Partition) -> None:
    """Refuse at once what would be refused later: there is time for the first machine in any case, not for all."""
    if known.n_classes > 2 and not machine.has_own_weights:
        machine.deadline.check(f"all of {known.n_classes} machines were trained")


def choose_setting(
    train: Train, known: Partition, folds: Callable[[], Folds], options: TransductionOptions
) -> tuple[Setting, dict[str, Any], dict[str, float]]:
    """Return the setting, as given or by cross-validation; what was compared; what was taken for want of time."""
    costs = GRID_C if isinstance(options.C, str) else (float(options.C),)
    ends = GRID_RAMP if isinstance(options.ramp, str) else (float(options.ramp),)
    fixed = options.C_unlabeled
    candidates = [Setting(C, C if fixed is None else float(fixed), ramp) for C in costs for ramp in ends]
    if len(candidates) == 1:
        return candidates[0], {}, {}
    C, ramp = DEFAULT_C if len(costs) > 1 else costs[0], DEFAULT_RAMP if len(ends) > 1 else ends[0]
    default = next(k for k, candidate in enumerate(candidates) if (candidate.C, candidate.ramp) == (C, ramp))
    pairs = folds()
    if not pairs:
        return candidates[default], {}, {}
    try:
        wrong = np.array([held_out_errors(train, known, pairs, candidate) for candidate in candidates], dtype=float)
    except OutOfTimeError:
        taken = {name: value for name, value, all_ in (("C", C, costs), ("ramp", ramp, ends)) if len(all_) > 1}
        return candidates[default], {}, taken
    losses = np.hstack([wrong[:, held] for _, held in pairs])
    compared = tabulate_losses([asdict(c) for c in candidates], losses, np.ones(known.n_labeled), pairs, 1.0)
    return candidates[choose_candidate(losses, default)], compared, {}


def unlabeled_rows_help(train: Train, known: Partition, folds: Folds, setting: Setting) -> bool | None:
    """Return whether the transductive machine is better on the labelled folds; None if there was no time for them."""
    if not folds:
        return False
    try:
        supervised = held_out_errors(train, known, folds, setting, supervised=True)
        return clearly_better(held_out_errors(train, known, folds, setting), supervised, MIN_GAIN)
    except OutOfTimeError:
        return None


def class_folds(known: Partition, seed: int) -> Folds:
    """Return folds of the labelled rows; none where a class has one row only."""
    n_folds = min(N_FOLDS, int(np.bincount(known.codes).min()))
    if n_folds < 2:
        return []
    rng = np.random.RandomState(seed)
    return split_labeled(known.codes, known.n_labeled, rng, n_folds=n_folds, max_rows=known.n_labeled)


def warn_without_folds(known: Partition, options: TransductionOptions) -> None:
    """Warn where folds are asked for and a class has one labelled row only; that would be lost in one of them."""
    counts = np.bincount(known.codes)
    lost = {
        'C="cv"': (isinstance(options.C, str), f"C is {DEFAULT_C:g}"),
        'ramp="cv"': (isinstance(options.ramp, str), f"ramp is {DEFAULT_RAMP:g}"),
        "safe=True": (options.safe and known.n_unlabeled > 0, "unlabelled rows are left out"),
    }
    asked = {name: instead for name, (is_asked, instead) in lost.items() if is_asked}
    if asked and counts.min() < 2:
        warn_caller(
            f"{options.machine.owner} got {' and '.join(asked)}, which needs folds of the labelled rows, but the class "
            f"{known.classes.tolist()[int(counts.argmin())]!r} has only one labelled row: {', '.join(asked.values())}. "
            "Label more rows of it."
        )


def held_out_errors(
    train: Train, known: Partition, folds: Folds, setting: Setting, supervised: bool = False
) -> np.ndarray:
    """Return which labelled rows are predicted wrongly by machines to which they are unlabelled."""
    wrong = np.zeros(known.n_labeled, dtype=bool)
    rows = np.arange(known.n_labeled + known.n_unlabeled)
    for kept, held in folds:
        labeled = known.labeled[kept]
        fold = Partition(labeled, np.setdiff1d(rows, labeled), known.classes, known.codes[kept])
        results = train(fold, setting, supervised=supervised)
        if any(result.status is Status.MAX_TIME for result in results):
            raise OutOfTimeError("The time was over before settings were compared.")
        values = np.column_stack([result.point.values for result in results])
        wrong[held] = choose_classes(values[known.labeled[held]]) != known.codes[held]
    return wrong


def find_shares(
    stacked: StackedKernels, weight: np.ndarray, options: TransductionOptions, known: Partition, setting: Setting
) -> np.ndarray:
    """Return the shares that unlabelled rows are given: as given, those of labelled rows, or estimated ones."""
    if options.shares is not None:
        return options.shares
    if options.class_prior == "labeled":
        totals = np.bincount(known.codes, weights=weight[known.labeled], minlength=known.n_classes)
        return np.asarray(totals / totals.sum())
    return estimate_unlabeled_shares(stacked, weight, known, setting).shares


def estimate_unlabeled_shares(
    stacked: StackedKernels, weight: np.ndarray, known: Partition, setting: Setting
) -> ShareEstimate:
    """Estimate the shares of the classes among unlabelled rows by a regression on labelled ones.

    The kernel is the mean of all; the ridge corresponds to the cost of errors.
    """
    chosen = np.linspace(0, known.n_labeled - 1, min(known.n_labeled, MAX_SHARE_ROWS)).round().astype(np.intp)
    rows = known.labeled[chosen]
    return estimate_shares(
        multiply_mean(stacked, rows, rows, np.eye(len(rows))),
        partial(multiply_mean, stacked, known.unlabeled, rows),
        known.indicator()[chosen],
        weight[rows],
        weight[known.unlabeled],
        1.0 / setting.C,
    )


def warn_of_other_shares(estimate: ShareEstimate, known: Partition, options: TransductionOptions) -> None:
    """Warn if labels seem to be drawn class by class, so that their shares are not those of unlabelled rows."""
    differences = np.abs(estimate.shares - estimate.labeled)
    if not estimate.shifted or differences.max() <= MAX_SHARE_DIFFERENCE:
        return
    owner, classes = options.machine.owner, known.classes.tolist()
    worst = np.sort(np.argsort(-differences, kind="stable")[:MAX_SHOWN_CLASSES])
    labeled, shares = (
        "{" + ", ".join(f"{classes[k]!r}: {values[k]:.2f}" for k in worst) + "}"
        for values in (estimate.labeled, estimate.shares)
    )
    used = (
        f'{owner} uses the latter for unlabelled rows (class_prior="estimated")'
        if options.class_prior == "estimated"
        else f'{owner} uses the former for unlabelled rows (class_prior="labeled"); pass "estimated" for the latter'
    )
    warn_caller(
        f"The class shares are {labeled} in the labelled rows and about {shares} in the unlabelled rows: "
        f"labels were probably not drawn at random. {used}. Pass the true shares as class_prior if you know them."
    )


def train_machines(
    stacked: StackedKernels,
    weight: np.ndarray,
    options: TransductionOptions,
    known: Partition,
    setting: Setting,
    *,
    supervised: bool = False,
    starts: np.ndarray | tuple[()] = (),
    on_step: Hook | None = None,
) -> list[TransductionResult]:
    """Train the machines; without unlabelled rows and balance if supervised.

    Parameters
    ----------
    stacked : StackedKernels
        At all rows; where the machines are balanced, their origin is moved.
    weight : ndarray of shape (n_rows,)
    options : TransductionOptions
    known : Partition
        Which rows are labelled for these machines, and with what.
    setting : Setting
    supervised : bool
    starts : ndarray of shape (n_starts, n_labeled)
        Factors on the costs of labelled rows with which further descents begin.
    on_step : callable, optional
        Called with the state after each step; a true answer stops.
    """
    labeled_weight = weight[known.labeled]
    means: Sequence[float | None] = [None] * known.n_classes
    if not supervised and is_balanced(known, options):
        means = mean_outputs(find_shares(stacked, weight, options, known, setting))
        share = weight.copy()
        share[known.labeled] = 0.0
        stacked.center(share / share.sum())
    stack = KernelStack(stacked.members, stacked.scales)
    cost = setting.C * labeled_weight * class_weights(options.class_weight, known, labeled_weight)
    cost_unlabeled = (0.0 if supervised else setting.C_unlabeled) * weight[known.unlabeled]
    machines = [
        TransductiveMachine(known.labeled, known.unlabeled, signs, cost, cost_unlabeled, means[c], setting.ramp)
        for c, signs in enumerate(known.one_vs_rest())
    ]
    parts = [[machine] for machine in machines] if options.machine.has_own_weights else [machines]
    results = []
    for k, part in enumerate(parts):
        report = None if on_step is None else partial(report_problem, on_step, k, len(parts), 1 + len(starts))
        results.append(best_descent(stack, part, options, starts, report))
    return results


def is_balanced(known: Partition, options: TransductionOptions) -> bool:
    """Return whether the mean output on unlabelled rows is fixed."""
    return options.class_prior is not None and known.n_unlabeled > 0


def mean_outputs(shares: np.ndarray) -> list[float]:
    """Return the mean output on unlabelled rows of each machine."""
    return np.asarray(2.0 * (shares[1:] if len(shares) == 2 else shares) - 1.0).tolist()


def best_descent(
    stack: KernelStack,
    machines: list[TransductiveMachine],
    options: TransductionOptions,
    starts: np.ndarray | tuple[()],
    on_step: Hook | None,
) -> TransductionResult:
    """Return the best of several descents of machines that share their weights."""
    machine = options.machine
    limits: dict[str, Any] = {"deadline": machine.deadline, "n_threads": machine.n_threads}

    def train(
        problems: Sequence[DualProblem],
        weights: np.ndarray | None,
        duals: list[np.ndarray] | None,
        products: np.ndarray | None,
        tol: float,
    ) -> WeightsResult:
        tol *= INNER_TOL_SHARE
        if machine.weighting == "uniform" or len(stack) == 1:
            return train_with_equal_weights(stack, problems, 0.0, machine.norm, tol, duals, products, **limits)
        return solve_kernel_weights(
            stack,
            problems,
            norm=machine.norm,
            method=machine.solver,
            start=weights,
            start_duals=duals,
            start_products=products,
            tol=tol,
            **limits,
        )

    results: list[TransductionResult] = []
    for factors in (None, *starts):
        if results and (results[-1].status is Status.CALLBACK or machine.deadline.is_over):
            break
        results.append(
            solve_transduction(
                stack,
                machines,
                train,
                stages=STAGES if options.annealing else STAGES[-1:],
                start=None if factors is None else [m.cost * factors for m in machines],
                tol=machine.tol,
                max_iter=machine.max_iter,
                callback=on_step,
                deadline=machine.deadline,
            )
        )
    best = min(results, key=lambda result: result.objective)
    return replace(best, n_solves=sum(result.n_solves for result in results))


def report_problem(on_step: Hook, problem: int, n_problems: int, n_descents: int, state: FitState) -> object:
    """Pass a state on, with the number of the problem that it belongs to; its descents share a limit of steps."""
    max_steps = None if state.max_steps is None else n_descents * state.max_steps
    return on_step(replace(state, problem=problem, n_problems=n_problems, max_steps=max_steps))


def _describe_step(state: FitState) -> str:
    return (
        f"{state.phase}, step {state.iteration}, objective {state.objective:.6g}, {state.details['n_changed']} slopes "
        "changed"
    )


def _stages_done(state: FitState) -> float:
    """Return the share of the stages that are done before that of a state."""
    return STAGES.index(state.details["stage"]) / len(STAGES)


def transductive_expansion(
    results: Sequence[TransductionResult],
    stacked: StackedKernels,
    balanced: bool,
    bound: BoundLibrary,
    sample: Sample,
) -> KernelExpansion:
    """Return the model that predicts; where the origin of the kernels was moved, it is moved back."""
    x = np.column_stack([result.point.by_rows for result in results])
    used = np.array([result.x for result in results]) / stacked.scales
    offsets = np.array([offset for result in results for offset in result.point.offsets], dtype=float)
    origin = stacked.origin
    if origin is None:
        return composite_expansion(used, x, offsets, bound, sample.kept)
    coef = x - np.outer(origin, x.sum(axis=0)) if balanced else x  # without balance the sums are zero
    expansion = composite_expansion(used, coef, np.zeros(len(offsets)), bound, sample.kept)
    intercept = offsets - origin @ outputs_at_rows(expansion, bound, sample)
    return KernelExpansion(expansion.groups, intercept, expansion.n_kernels)


def objectives_by_stage(result: TransductionResult) -> list[np.ndarray]:
    """Return the objectives after each step, one array for each stage of a descent."""
    paths: dict[float, list[float]] = {}
    for record in result.history:
        paths.setdefault(record["stage"], []).append(record["objective"])
    return [np.array(path) for path in paths.values()]

r"""Support vector machines on learned kernels; the learner and the cost are chosen by folds of the labelled rows.

.. math:: \min_{f, b}\; \tfrac12 \|f\|_{\tilde k}^2 + \sum_r c_r \xi_r \quad \text{s.t.} \quad
    s_r (f(x_{i_r}) + b) + \xi_r \ge t_r, \; \xi_r \ge 0 ,

with :math:`\tilde k` a learned kernel whose centred mean diagonal is 1. Base kernels are bound once to all rows; in
each fold the kernel is learned anew without the held-out labels, since one that has seen a label predicts it too well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from ...kernels.base import ALL, batches
from ...kernels.expansion import KernelExpansion
from ...kernels.features import BoundFeatures
from ...kernels.manifold import count_landmarks
from ...short_text import count_of
from ...solvers.alignment import RankOnes
from ...solvers.deadline import NO_DEADLINE, Deadline, OutOfTimeError
from ...solvers.machines.kernel_stack import Factor, KernelStack, Member
from ...solvers.machines.kernel_weights import WeightsResult
from ...solvers.margin import MarginRows
from ...solvers.result import Certificate, Status
from .base import random_generator
from .base_kernels import BaseKernels, KernelDesign, bind_base_kernels, bind_to_partitions
from .composite import composite_expansion, duals_by_row
from .fold_choice import N_FOLDS, TIME_SHARE, Folds, clearly_better, split_labeled, tabulate_losses, warn_not_compared
from .kernel_alignment import KernelFit, LearnedKernel, learn_kernel, mean_diagonals, summarize_kernel
from .machine import REMEDIES, train_with_equal_weights
from .outcome import summarize, warn_unless_converged
from .partitioned import PartitionedSample
from .problems import ClassProblem, NumberProblem
from .progress import announce
from .records import Records
from .sample import Sample
from .stacked_kernels import MIN_VARIATION
from .target import Target

GRID_C = (10.0, 1.0, 100.0, 0.1)  # what folds choose from; of equals the first
MIN_LABELS_A_CLASS = 3  # labelled rows of a class, below which nothing is held out
EPS = float(np.finfo(float).eps)


@dataclass(frozen=True)
class LearnedMachineOptions:
    """What is asked for: the estimator (for messages), the cost or ``"cv"``, the relative gap; limits and progress."""

    owner: str
    C: float | str
    tol: float
    n_jobs: int | None = None
    verbose: int = 0
    deadline: Deadline = NO_DEADLINE


@dataclass(frozen=True, eq=False)
class Machine:
    """A support vector machine on a learned kernel.

    Attributes
    ----------
    learned : LearnedKernel
    used : ndarray of shape (n_members,)
        What multiplies each member of the learned kernel.
    coef : ndarray of shape (n_labeled, n_outputs)
    intercept : ndarray of shape (n_outputs,)
    result : WeightsResult
    """

    learned: LearnedKernel
    used: np.ndarray
    coef: np.ndarray
    intercept: np.ndarray
    result: WeightsResult

    def at(self, rows: np.ndarray | slice) -> np.ndarray:
        """Return the outputs at some rows of the sample, shape (n_rows, n_outputs)."""
        learned = self.learned
        numbers = np.arange(learned.members[0].n_rows)[rows]
        out = np.tile(self.intercept, (len(numbers), 1))
        for member, factor in zip(learned.members, self.used, strict=True):
            if isinstance(member, BoundFeatures):
                folded = member.weights[:, None] * (member.Z[learned.rows].T @ self.coef)
                out += factor * (member.Z[numbers] @ folded)
            elif factor:
                for part in batches(len(numbers), 2 * len(learned.rows)):
                    out[part] += factor * (member.block(numbers[part], learned.rows) @ self.coef)
        return out


@dataclass(frozen=True, eq=False)
class Choice:
    """A learner, by its place among the candidates, and a cost; what folds say of all of them.

    ``not_compared`` is what was taken where there was no time for that.
    """

    place: int
    C: Any
    cv_results: dict[str, Any]
    not_compared: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False, kw_only=True)
class LearnedMachineFit:
    """A machine on a learned kernel, and how it was reached; fields as the attributes of the estimators.

    Attributes
    ----------
    expansion, intercept, n_evaluations, dual_coef, support, objective, certificate, status, n_iter, history, n_solves
        As in :class:`~kernelweave.estimators.shared.machine.MachineFit`.
    weights : ndarray of shape (n_base_kernels,)
        Of the learned kernel.
    C, cv_results
        As in `Choice`.
    place : int
        Of the chosen learner.
    machine : Machine
    kernel : KernelFit
        Its kernel is tied to the labelled rows, where the machine has coefficients.
    """

    expansion: KernelExpansion
    intercept: np.ndarray
    n_evaluations: int
    dual_coef: np.ndarray
    support: np.ndarray
    objective: float | np.ndarray
    certificate: Certificate
    status: Status
    n_iter: int
    history: Records
    n_solves: int
    weights: np.ndarray
    C: Any
    cv_results: dict[str, Any]
    place: int = field(metadata={"kept": False})
    machine: Machine = field(metadata={"kept": False})
    kernel: KernelFit = field(metadata={"kept": False})

    def outputs(self, sample: Sample) -> np.ndarray:
        """Return the outputs at all rows given, shape (n_given, n_outputs)."""
        if sample.n_rows < sample.n_given:
            return self.expansion(sample.rows.X)
        return np.asarray(sample.spread(self.machine.at(ALL)))


def fit_learned_machine(
    designs: Sequence[KernelDesign],
    sample: Sample,
    target: Target,
    problem: ClassProblem | NumberProblem,
    options: LearnedMachineOptions,
    rng: np.random.Generator,
    partitions: PartitionedSample | None = None,
) -> LearnedMachineFit:
    """Choose a learner and a cost, learn the kernel from all labels, and train the machine on it.

    Where there are ``partitions``, the sample holds the labelled rows.
    """
    bound = bind_candidates(designs, sample, int(rng.integers(2**31)), options, partitions)
    choice = choose(designs, bound, target, problem, options, int(rng.integers(2**31)))
    options.deadline.check("the base kernels were computed")
    design, base_kernels = designs[choice.place], bound[choice.place]
    learned = learn_kernel(design, base_kernels, target)
    machine = train(learned, kernel_stack(learned), problem.margins(choice.C, ALL), options)
    if options.verbose:
        announce(f"{options.owner}: learner {choice.place + 1} of {len(designs)}, C={np.mean(choice.C):g}")
    row_numbers = sample.kept[target.rows]
    expansion = composite_expansion(
        machine.used[None], machine.coef, machine.intercept, learned.at_labeled(), row_numbers
    )
    x = np.zeros((sample.n_rows, machine.coef.shape[1]))
    x[target.rows] = machine.coef
    duals, outcome = duals_by_row(x, sample), summarize([machine.result])
    warn_unless_converged([machine.result], options.tol, REMEDIES)
    if choice.not_compared:
        warn_not_compared(choice.not_compared)
    return LearnedMachineFit(
        expansion=expansion,
        intercept=machine.intercept,
        n_evaluations=expansion.n_evaluations,
        dual_coef=duals.dual_coef,
        support=duals.support,
        objective=outcome.objective,
        certificate=outcome.certificate,
        status=outcome.status,
        n_iter=outcome.n_iter,
        history=outcome.history,
        n_solves=machine.result.n_solves,
        weights=learned.result.x,
        C=choice.C,
        cv_results=choice.cv_results,
        place=choice.place,
        machine=machine,
        kernel=replace(
            summarize_kernel(design, base_kernels, target, learned),
            kernel=learned.kernel.compact(learned.rows),
            is_known=False,
        ),
    )


def bind_candidates(
    designs: Sequence[KernelDesign],
    sample: Sample,
    seed: int,
    options: LearnedMachineOptions,
    partitions: PartitionedSample | None = None,
) -> list[BaseKernels]:
    """Bind the base kernels of each design; what designs share is found once."""
    bound: list[BaseKernels] = []
    known: dict[Any, Any] = {}
    n_rows = sample.n_rows if partitions is None else partitions.n_rows
    for k, design in enumerate(designs):
        if options.verbose:
            n_landmarks = count_landmarks(design.n_landmarks, n_rows) if design.n_eigenvectors else 0
            landmarks = f", eigenvectors of {n_landmarks:,} landmarks" if n_landmarks else ""
            n_kernels = count_of(len(design.library.entries), "base kernel")
            announce(f"{options.owner}: learner {k + 1} of {len(designs)}, {n_kernels} on {n_rows:,} rows{landmarks}")
        rng, shared = np.random.default_rng(seed), known
        if design.random_state is not None:  # draws for itself, so that nothing is shared
            rng, shared = random_generator(design.random_state), {}
        if partitions is None:
            bound.append(bind_base_kernels(design, sample, rng, shared))
        else:
            bound.append(bind_to_partitions(design, sample, partitions, rng, shared))
    return bound


def choose(
    designs: Sequence[KernelDesign],
    bound: Sequence[BaseKernels],
    target: Target,
    problem: ClassProblem | NumberProblem,
    options: LearnedMachineOptions,
    seed: int,
) -> Choice:
    """Return the learner, and the cost, with which rows are predicted well that were held out.

    Of the costs the best; of the learners the first, unless another is better by more than a standard error.
    """
    costs = [C * problem.cost_unit for C in GRID_C] if isinstance(options.C, str) else [float(options.C)]
    folds = kernel_folds(target, seed) if len(costs) * len(designs) > 1 else []
    if not folds:
        return Choice(0, costs[0], {})
    if options.verbose:
        n_learners, n_costs = count_of(len(designs), "learner"), count_of(len(costs), "cost")
        announce(f"{options.owner}: {len(folds)} folds compare {n_learners} and {n_costs}")
    try:
        return _choose_by_folds(designs, bound, target, problem, options, costs, folds)
    except OutOfTimeError:
        taken = {"C": costs[0]} if len(costs) > 1 else {}
        return Choice(0, costs[0], {}, taken | ({"learner": "the first learner"} if len(designs) > 1 else {}))


def _choose_by_folds(
    designs: Sequence[KernelDesign],
    bound: Sequence[BaseKernels],
    target: Target,
    problem: ClassProblem | NumberProblem,
    options: LearnedMachineOptions,
    costs: Sequence[Any],
    folds: Folds,
) -> Choice:
    """Return the best learner and cost; an `OutOfTimeError` where there is not time enough to compare all."""
    options = replace(options, deadline=options.deadline.part(TIME_SHARE))
    alone = replace(target, rows=np.arange(len(target.rows)))
    chosen, by_learner = (0, 0), []
    candidates = [{"learner": k, "C": C} for k in range(len(designs)) for C in costs]
    for k, (design, base_kernels) in enumerate(zip(designs, bound, strict=True)):
        parts, labeled = [], base_kernels.restrict(target.rows)
        for k_fold, (kept, held) in enumerate(folds):
            options.deadline.check("learners were compared")
            if options.verbose:
                announce(f"{options.owner}: learner {k + 1} of {len(designs)}, fold {k_fold + 1} of {len(folds)}")
            learned = learn_kernel(design, labeled, alone.restrict(kept))
            stack = kernel_stack(learned)
            machines = [train(learned, stack, problem.margins(C, kept), options) for C in costs]
            parts.append([target.weight[held] * problem.losses(machine.at(held), held) for machine in machines])
        losses = np.concatenate(parts, axis=1)
        best = int(losses.sum(axis=1).argmin())
        by_learner.append(losses)
        if k == 0 or clearly_better(losses[best], by_learner[chosen[0]][chosen[1]]):
            chosen = (k, best)
    table = tabulate_losses(candidates, np.vstack(by_learner), target.weight, folds, problem.perfect_score)
    return Choice(chosen[0], costs[chosen[1]], table)


def kernel_folds(target: Target, seed: int) -> Folds:
    """Return labelled rows to learn kernels from and to hold out; none where a class has too few."""
    if target.fewest < MIN_LABELS_A_CLASS:
        return []
    codes, n_folds = target.values.argmax(axis=1) if target.is_classes else None, min(N_FOLDS, target.fewest)
    folds = split_labeled(codes, len(target.rows), np.random.RandomState(seed), n_folds=n_folds)
    # from rows of one and the same number nothing is learned
    return [(kept, held) for kept, held in folds if np.ptp(target.values[kept], axis=0).any()]


def kernel_stack(learned: LearnedKernel) -> KernelStack:
    """Return a learned kernel at its labelled rows, of mean diagonal 1; by features where these are fewer than rows."""
    rows, weight = learned.rows, learned.weight
    factors = [member.restrict(rows).factor() for member in learned.members if isinstance(member, BoundFeatures)]
    member: Member
    if len(factors) == len(learned.members) and all(Z is not None for Z in factors):
        member = Factor(np.ascontiguousarray(np.hstack([Z for Z in factors if Z is not None]), dtype=np.float64))
        size, diagonal = float(mean_diagonals(RankOnes(member.Z), weight).sum()), np.square(member.Z).sum(axis=1)
        if member.Z.shape[1] >= len(rows):
            member = member.Z @ member.Z.T
    else:
        K = np.ascontiguousarray(learned.kernel.block(rows, rows), dtype=np.float64)
        if learned.rounding > EPS:  # that of single precision leaves negative eigenvalues
            values, vectors = np.linalg.eigh(K)
            K = (vectors * np.maximum(values, 0.0)) @ vectors.T
        member, size, diagonal = K, float(mean_diagonals(K, weight)[0]), K.diagonal()
    return KernelStack([member], [size if size > MIN_VARIATION * diagonal.mean() else 1.0])


def train(
    learned: LearnedKernel, stack: KernelStack, margins: Sequence[MarginRows], options: LearnedMachineOptions
) -> Machine:
    """Train the machines of all outputs."""
    result = train_with_equal_weights(
        stack,
        [m.dual() for m in margins],
        np.zeros(stack.n_points),
        1.0,
        options.tol,
        deadline=options.deadline,
        n_threads=effective_n_jobs(options.n_jobs),
    )
    if result.certificate.kind != "duality gap":
        raise ValueError(
            f"The learned kernel is not positive semi-definite, as {options.owner} requires. "
            "KernelLibrary(...).diagnose(X) shows which of the extra kernels is not; leave it out."
        )
    coef = np.zeros((stack.n_points, len(margins)))
    for c, x in enumerate(result.duals):
        coef[:, c] = np.bincount(margins[c].point, weights=x, minlength=len(coef))
    intercept = -np.array(result.multipliers, dtype=float)
    return Machine(learned, learned.factors / stack.scales[0], coef, intercept, result)

"""The cost of a mixture's errors, chosen by folds of the labelled rows.

The kernels are bound once, and held-out rows stay: their columns compete as those of unlabelled rows do, and columns
are scaled by all labelled rows, without their labels. A fold only says which rows have margins. In each fold the costs
are followed upwards, each fit beginning with the columns of the last.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...kernels.base import ALL
from ...kernels.bound_library import BoundLibrary
from ...kernels.partitioned import PartitionedLibrary
from ...parameters import POSITIVE, one_of
from ...solvers.columns.masters import Master
from .fold_choice import (
    TIME_SHARE,
    Folds,
    choose_candidate,
    clearly_better,
    split_labeled,
    tabulate_losses,
    warn_not_compared,
)
from .formulation import Penalty
from .mixture import BoundColumns, MixtureOptions, MixturePath
from .problems import ClassProblem, NumberProblem
from .progress import announce

# What folds choose from, in the unit of `cost_unit`, and what is taken unless another is clearly better. Measured on 14
# sets of 30 and 100 labels, and on 9 sets of numbers: the defaults are the best single costs.
SPARSE_COSTS, SMOOTH_COSTS = (0.1, 0.3, 1.0, 3.0, 10.0, 100.0), (0.1, 1.0, 10.0, 100.0)
DEFAULT_SPARSE_COST, DEFAULT_SPARSE_NUMBERS_COST, DEFAULT_SMOOTH_COST = 10.0, 1.0, 10.0
COST = POSITIVE | one_of("cv")
MIN_CHOICE_ROWS = 40  # labelled rows, below which folds were no better than the default cost
SEED = 0
FOLD_TOL = 1e-3  # relative gap of the mixtures that are compared
MAX_CHOICE_CENTERS = 2000  # rows, the labelled ones among them, whose columns compete in a choice


@dataclass(frozen=True, eq=False)
class CostChoice:
    """The cost of a fit, and what was compared for it; kept as ``C_`` and ``cv_results_``."""

    C: float | None
    cv_results: dict[str, Any]


def choose_cost(
    C: float | str,
    columns: BoundColumns,
    problem: ClassProblem | NumberProblem,
    options: MixtureOptions,
) -> CostChoice:
    """Return the cost as given, or the one with which held-out labelled rows are predicted best.

    Folds, and rows where there are many, are drawn by a seed of their own: the same fit gives the same cost.

    Parameters
    ----------
    C : float or "cv"
    columns : BoundColumns
    problem : ClassProblem or NumberProblem
        Of the labelled rows.
    options : MixtureOptions
    """
    if not isinstance(C, str):
        return CostChoice(float(C), {})
    penalty, n_labeled = options.formulation.penalty, len(problem.weight)
    grid, default = cost_grid(penalty, problem)
    costs = cost_unit(penalty, problem) * np.array(grid)
    folds = split_labeled(problem.codes, n_labeled, np.random.default_rng(SEED))
    if n_labeled < MIN_CHOICE_ROWS or not folds:
        return CostChoice(float(costs[default]), {})
    rows = np.union1d(*folds[0])
    if len(rows) < n_labeled:
        problem = problem.restrict(rows)
        folds = [(np.searchsorted(rows, kept), np.searchsorted(rows, held)) for kept, held in folds]
    columns = _draw_columns(columns, rows, options.cache_size)
    losses = _held_out_losses(columns, problem, cost_unit(penalty, problem) * np.array(grid), default, folds, options)
    if len(losses) <= default:  # the time was over
        warn_not_compared({"C": costs[default]})
        return CostChoice(float(costs[default]), {})
    chosen = choose_candidate(losses, default)
    if options.verbose:
        announce(f"{options.owner}: C={costs[chosen]:.3g} by {len(folds)} folds of {len(rows):,} labelled rows")
    candidates = [{"C": float(cost)} for cost in costs[: len(losses)]]
    table = tabulate_losses(candidates, losses, problem.weight, folds, problem.perfect_score)
    return CostChoice(float(costs[chosen]), table)


def cost_unit(penalty: Penalty, problem: ClassProblem | NumberProblem) -> float:
    r"""Return what costs of the grids are multiples of.

    With the 1-norm, that of columns of unit deviation, noise lets a column's score grow as :math:`\sqrt n` with the
    number :math:`n` of labelled rows (their weight), so a cost that keeps noise out falls as :math:`1 / \sqrt n`. The
    squared norms are those of a support vector machine whose kernel has a unit diagonal; costs have the target's unit.
    """
    return float(problem.cost_unit) if penalty != "l1" else float(1.0 / np.sqrt(problem.weight.sum()))


def cost_grid(penalty: Penalty, problem: ClassProblem | NumberProblem) -> tuple[tuple[float, ...], int]:
    """Return the costs to choose from, ascending, and which of them is taken unless another one is clearly better."""
    if penalty != "l1":
        return SMOOTH_COSTS, SMOOTH_COSTS.index(DEFAULT_SMOOTH_COST)
    default = DEFAULT_SPARSE_COST if isinstance(problem, ClassProblem) else DEFAULT_SPARSE_NUMBERS_COST
    return SPARSE_COSTS, SPARSE_COSTS.index(default)


def _draw_columns(columns: BoundColumns, rows: np.ndarray, cache_size: float) -> BoundColumns:
    """Leave out labelled rows that take no part, by their places, and most centres where there are many."""
    bound, centers = columns.bound, columns.centers
    n_others, rng = max(0, MAX_CHOICE_CENTERS - len(rows)), np.random.default_rng(SEED)
    if isinstance(bound, PartitionedLibrary) and columns.partitions is not None:
        drawn = columns.partitions.gather(columns.partitions.draw_unlabeled(n_others, rng))
        part = bound.at(drawn.X, cache_size)
        everywhere = replace(centers, sample=drawn, is_center=np.ones(drawn.n_rows, dtype=bool))
        return _draw_columns(BoundColumns(columns.library, part, everywhere), rows, cache_size)
    labels = centers.sample.partition
    keep = np.zeros(centers.sample.n_rows, dtype=bool)
    keep[labels.unlabeled] = True
    if len(labels.unlabeled) > n_others:
        keep[labels.unlabeled] = False
        keep[labels.unlabeled[rng.choice(len(labels.unlabeled), n_others, replace=False)]] = True
    keep[labels.labeled[rows]] = True
    if keep.all():
        return columns
    kernels, kept = [kernel.restrict(np.flatnonzero(keep)) for kernel in bound.kernels], centers.sample.restrict(keep)
    n_features = centers.sample.X.shape[1]
    part = BoundLibrary(kernels, bound.entries, bound.order, n_features=n_features, cache_size=cache_size)
    return replace(columns, bound=part, centers=replace(centers, sample=kept, is_center=centers.is_center[keep]))


def _held_out_losses(
    columns: BoundColumns,
    problem: ClassProblem | NumberProblem,
    costs: np.ndarray,
    default: int,
    folds: Folds,
    options: MixtureOptions,
) -> np.ndarray:
    """Return the weighted losses of each cost at the held-out rows, fold after fold.

    Above the default cost, costs are compared only until one is clearly worse than the best: the larger a cost, the
    longer the fit, and where rows are noisy the more so. When their share of the time is over, costs that were not
    compared on all folds are left out.
    """
    deadline = options.deadline.part(TIME_SHARE)
    seconds = None if options.max_time is None else TIME_SHARE * options.max_time / (len(costs) * len(folds))
    quiet = replace(options, tol=max(FOLD_TOL, options.tol), max_time=seconds, verbose=0, callback=None)
    path = MixturePath(columns.bound, columns.centers, quiet)
    masters: list[list[Master]] = [[] for _ in folds]
    losses: list[np.ndarray] = []
    for i, cost in enumerate(costs):
        margins, parts = problem.margins(cost, ALL), []
        for k, (kept, held) in enumerate(folds):
            if deadline.is_over:
                return np.array(losses)
            path.masters = masters[k]
            values = path.values(path.solve_columns([rows.at(kept) for rows in margins]))
            masters[k] = path.masters
            parts.append(problem.weight[held] * problem.losses(values[held], held))
        losses.append(np.concatenate(parts))
        best = min(losses, key=lambda each: float(each.sum()))
        if i > default and clearly_better(best, losses[-1]):
            break
    return np.array(losses)

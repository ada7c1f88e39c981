r"""The cost of a machine, and whether the weights of its kernels are learned, chosen by folds of the labelled rows.

Learned weights minimise the margin's objective, which flexible kernels lower on any rows; with few labels equal weights
often predict better. So ``"auto"`` compares both, as it compares costs: on held-out labelled rows. The kernels are
computed once, a fold restricts them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...kernels.bound_library import BoundLibrary
from ...solvers.deadline import OutOfTimeError
from ...solvers.machines.kernel_stack import KernelStack
from .fold_choice import TIME_SHARE, Folds, choose_candidate, split_labeled, tabulate_losses, warn_not_compared
from .machine import MachineFit, MachineOptions, fit_machine, inverse_costs, learn_weights, stack_labeled
from .problems import ClassProblem, NumberProblem
from .sample import Sample
from .stacked_kernels import StackedKernels

GRID_C = (10.0, 1.0, 100.0, 0.1)  # the first is the default
N_REPEATS = 3  # of the folds: one pass is noisy, and choosing by three was better on 24 tables of 20 to 100 labels
FOLD_TOL = 1e-2  # relative gap of the machines that are compared


@dataclass(frozen=True)
class MachineSetting:
    """A cost, and the way to weights."""

    C: float
    weighting: str


@dataclass(frozen=True, eq=False)
class ChosenMachine:
    """A machine, and how it was chosen; fields as the attributes of the estimators."""

    machine: MachineFit = field(metadata={"kept": False})
    weighting: str
    cv_results: dict[str, Any]


def fit_chosen_machine(
    bound: BoundLibrary,
    sample: Sample,
    problem: ClassProblem | NumberProblem,
    options: MachineOptions,
    C: float | str,
    rng: np.random.Generator,
    *,
    squared: bool = False,
) -> ChosenMachine:
    """Choose what is left open by folds, and train the machine on all labelled rows.

    Parameters
    ----------
    bound : BoundLibrary
    sample : Sample
    problem : ClassProblem or NumberProblem
    options : MachineOptions
        ``weighting`` may be ``"auto"``.
    C : float, "cv" or "learned"
    rng : numpy.random.Generator
    squared : bool
        Whether violations cost half their squares.
    """
    stacked = stack_labeled(bound, sample, options, by_features=not squared)
    if C == "learned":
        fixed = replace(options, weighting="learned")
        return ChosenMachine(fit_machine(bound, sample, stacked, problem, fixed, None, squared=squared), "learned", {})
    settings, cv_results = list_settings(C, problem.cost_unit, options.weighting, len(bound.kernels)), {}
    folds = split_labeled(problem.codes, len(problem.weight), rng, N_REPEATS) if len(settings) > 1 else []
    setting = settings[0]
    losses = compare_in_time(held_out_losses, stacked, problem, settings, options, folds, squared=squared)
    if losses is not None:
        setting = settings[choose_candidate(losses)]
        named = [{"C": each.C, "weighting": each.weighting} for each in settings]
        cv_results = tabulate_losses(named, losses, problem.weight, folds, problem.perfect_score)
    fixed, cost = replace(options, weighting=setting.weighting), setting.C
    machine = fit_machine(bound, sample, stacked, problem, fixed, cost, squared=squared)
    if folds and losses is None:
        warn_not_compared(_find_open(settings))
    return ChosenMachine(machine, setting.weighting, cv_results)


def _find_open(settings: Sequence[MachineSetting]) -> dict[str, Any]:
    """Return what the first setting has for each parameter in which settings differ."""
    first = settings[0]
    taken: dict[str, Any] = {}
    if any(each.C != first.C for each in settings):
        taken["C"] = first.C
    if any(each.weighting != first.weighting for each in settings):
        taken["weighting"] = f"weighting={first.weighting}"
    return taken


@dataclass(frozen=True, eq=False)
class ChosenKernel:
    """A machine on one of several kernels, and how it was chosen."""

    machine: MachineFit = field(metadata={"kept": False})
    place: int = field(metadata={"kept": False})
    cv_results: dict[str, Any]


def fit_one_kernel(
    bound: BoundLibrary,
    sample: Sample,
    problem: ClassProblem | NumberProblem,
    options: MachineOptions,
    C: float | str,
    named: Sequence[Mapping[str, Any]],
    rng: np.random.Generator,
) -> ChosenKernel:
    """Choose one of the kernels of a library, and the cost, by folds, and train the machine on all labelled rows.

    Parameters
    ----------
    bound : BoundLibrary
        The first kernel is taken where folds do not tell better.
    sample : Sample
    problem : ClassProblem or NumberProblem
    options : MachineOptions
    C : float or "cv"
    named : sequence of mappings
        What tells each kernel from the others, for ``cv_results_``.
    rng : numpy.random.Generator
    """
    stacked, settings = stack_labeled(bound, sample, options), list_settings(C, problem.cost_unit, "uniform", 1)
    single = [replace(stacked, members=[K], scales=stacked.scales[[k]]) for k, K in enumerate(stacked.members)]
    n_candidates = len(single) * len(settings)
    folds = split_labeled(problem.codes, len(problem.weight), rng, N_REPEATS) if n_candidates > 1 else []
    place, setting, cv_results = 0, settings[0], {}
    by_kernel = [compare_in_time(held_out_losses, each, problem, settings, options, folds) for each in single]
    if all(each is not None for each in by_kernel):
        losses = np.vstack([each for each in by_kernel if each is not None])
        place, which = divmod(choose_candidate(losses), len(settings))
        setting = settings[which]
        candidates = [{**name, "C": each.C} for name in named for each in settings]
        cv_results = tabulate_losses(candidates, losses, problem.weight, folds, problem.perfect_score)
    machine = fit_machine(bound.select([place]), sample, single[place], problem, options, setting.C)
    if folds and not cv_results:
        taken = dict(named[0]) if len(named) > 1 else {}
        warn_not_compared(taken | _find_open(settings))
    return ChosenKernel(machine, place, cv_results)


def list_settings(C: float | str, unit: float | np.ndarray, weighting: str, n_kernels: int) -> list[MachineSetting]:
    """Return the settings that parameters leave open; the first is taken where folds do not tell better."""
    costs = [float(each * unit) for each in GRID_C] if isinstance(C, str) else [float(C)]
    ways = ["uniform", "learned"] if weighting == "auto" else [weighting]
    return [MachineSetting(c, way) for way in (ways if n_kernels > 1 else ways[:1]) for c in costs]


def compare_in_time(compare: Callable[..., np.ndarray], *given: Any, **options: Any) -> np.ndarray | None:
    """Return losses in folds, the last argument; None where there are no folds, or no time for all of them."""
    if not given[-1]:
        return None
    try:
        return compare(*given, **options)
    except OutOfTimeError:
        return None


def held_out_losses(
    stacked: StackedKernels,
    problem: ClassProblem | NumberProblem,
    settings: Sequence[MachineSetting],
    options: MachineOptions,
    folds: Folds,
    *,
    squared: bool = False,
) -> np.ndarray:
    """Return the weighted losses of each setting at the held-out rows, fold after fold.

    Parameters
    ----------
    stacked : StackedKernels
        At the labelled rows.
    problem : ClassProblem or NumberProblem
    settings : sequence of MachineSetting
    options : MachineOptions
    folds : list of pairs of ndarray
        Labelled rows to learn from, and to hold out.
    squared : bool
        Whether violations cost half their squares.
    """
    stack = KernelStack(stacked.members, stacked.scales)
    quiet = replace(options.part(TIME_SHARE), tol=max(FOLD_TOL, options.tol))
    losses = []
    for kept, held in folds:
        quiet.deadline.check("settings were compared")
        rows, weight = np.union1d(kept, held), problem.weight[held]
        few, part, places = stack.at(rows), stack.at(kept), (np.searchsorted(rows, kept), np.searchsorted(rows, held))
        values = [_held_out_values(few, part, kept, places, problem, each, quiet, squared) for each in settings]
        losses.append(np.array([weight * problem.losses(v, held) for v in values]))
    return np.hstack(losses)


def _held_out_values(
    stack: KernelStack,
    part: KernelStack,
    kept: np.ndarray,
    places: tuple[np.ndarray, np.ndarray],
    problem: ClassProblem | NumberProblem,
    setting: MachineSetting,
    options: MachineOptions,
    squared: bool,
) -> np.ndarray:
    """Return the outputs at held-out rows of machines that are trained without them.

    ``stack`` is over both, whose ``places`` in it are those of the rows to learn from and of the others; ``part`` is
    over the former.
    """
    trained, held = places
    margins = problem.margins(setting.C, kept)
    ridge = inverse_costs(margins[0]) if squared else np.zeros(len(kept))
    duals = [each.dual(squared=squared, at=problem.constant(kept)) for each in margins]
    parts = [[dual] for dual in duals] if options.has_own_weights and setting.weighting == "learned" else [duals]
    values, c = np.empty((len(held), len(duals))), 0
    for group in parts:
        result = learn_weights(part, group, ridge, replace(options, weighting=setting.weighting), lambda state: False)
        x = np.zeros((stack.n_points, len(group)))
        for k, dual in enumerate(result.duals):
            x[trained, k] = np.bincount(margins[c + k].point, weights=dual, minlength=len(kept))
        values[:, c : c + len(group)] = stack.combined_product(result.x, x)[held] - np.array(result.multipliers)
        c += len(group)
    return values

"""What the fits of CG-Boost share: constraints of parameters, bound columns, fits along a path of costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...kernels.base import ALL
from ...kernels.defaults import given_library
from ...parameters import BOOLEAN, COUNT, NONE, SHARE, Constraint, is_positive, one_of
from ...solvers.deadline import Deadline
from ...solvers.margin import MarginRows, classification_rows
from ...solvers.result import Status
from .base import FLOATS
from .centers import choose_centers
from .early_stopping import Validation
from .formulation import Formulation
from .memory import require_mixture_memory
from .mixture import (
    MIXTURE_CONSTRAINTS,
    REMEDIES,
    BoundColumns,
    MixtureFit,
    MixtureOptions,
    MixturePath,
    mixture_options,
)
from .outcome import warn_unless_converged
from .problems import ClassProblem
from .sample import Sample, bind

NU = Constraint(lambda value: is_positive(value) and float(value) <= 1, ("a number above 0 and at most 1",))
CG_BOOST_CONSTRAINTS = MIXTURE_CONSTRAINTS | {
    "penalty": one_of("l1", "l2", "rkhs"),
    "positive": BOOLEAN,
    "intercept": one_of("free", "penalized", None),
    "pricing": one_of("stratified", "full"),
}
EARLY_STOPPING_CONSTRAINTS = {"validation_fraction": NONE | SHARE, "n_iter_no_change": COUNT}


def bind_columns(owner: str, params: Mapping[str, Any], sample: Sample, rng: np.random.Generator) -> BoundColumns:
    """Bind the kernels that the parameters of an estimator of this family name, if there is memory for a fit."""
    centers = choose_centers(params["centers"], sample, rng, every_row=params["penalty"] == "rkhs")
    library = given_library(params["kernels"], sample.X)
    require_mixture_memory(owner, library, centers.sample, params)
    return BoundColumns(library, bind(library, centers.sample, rng, params["cache_size"]), centers)


def fit_columns(
    columns: BoundColumns,
    problems: Sequence[Sequence[MarginRows]],
    options: MixtureOptions,
    validation: Validation | None = None,
) -> list[MixtureFit]:
    """Fit mixtures to problems that differ in their costs, each from the solution of the last, and warn of each.

    Parameters
    ----------
    columns : BoundColumns
    problems : sequence of sequences of MarginRows
        For each fit the margins of each output.
    options : MixtureOptions
    validation : Validation, optional
    """
    path, fits = MixturePath(columns.bound, columns.centers, options, validation), []
    for k, stated in enumerate(problems):
        path.place = (k, len(problems))
        fits.append(path.solve(stated))
        warn_unless_converged(fits[-1].results, options.tol, REMEDIES)
    return fits


def follow_path(
    columns: BoundColumns,
    problem: ClassProblem,
    Cs: np.ndarray,
    options: MixtureOptions,
    *,
    needs_last: bool = False,
) -> dict[int, MixtureFit]:
    """Fit mixtures for ascending costs, each from the solution of the last, as far as there is time; by their places.

    Without ``needs_last`` the path ends where its time does. With it, the last cost is fitted in any case, and the
    others have half of the time that is left.
    """
    path, fits = MixturePath(columns.bound, columns.centers, options), {}
    is_limited = options.max_time is not None
    early = Deadline(options.deadline.left / 2) if needs_last and is_limited else options.deadline
    for k, C in enumerate(Cs):
        is_needed = needs_last and k == len(Cs) - 1
        limit = options.deadline if is_needed else early
        if limit.is_over and not is_needed:
            continue
        path.options, path.place = replace(options, deadline=limit).rest, (k, len(Cs))
        fit = path.solve(problem.margins(C, ALL))
        if is_needed or fit.status is not Status.MAX_TIME:
            fits[k] = fit
        elif not needs_last:
            break
    return fits


def cg_boost_options(owner: str, params: Mapping[str, Any], *, chooses_margin: bool = False) -> MixtureOptions:
    """Return the options of a fit; refuse parameters that do not go together."""
    if params["positive"] and params["penalty"] == "rkhs":
        raise ValueError(
            f'{owner} got penalty="rkhs" with positive=True; that norm is not one of single coefficients. Set '
            'positive=False, or use "l1" or "l2".'
        )
    formulation = Formulation(params["penalty"], params["positive"], params["intercept"], chooses_margin)
    return mixture_options(owner, params, formulation, params["pricing"])


def precisions(penalty: str) -> tuple[str, ...]:
    """Return the types of numbers that are taken as they come.

    Cholesky factors of a kernel rounded to single precision would be those of another kernel.
    """
    return ("float64",) if penalty == "rkhs" else FLOATS


def require_path(nu: float | None, validation_fraction: float | None) -> None:
    """Refuse parameters that have no path over C."""
    if nu is not None or validation_fraction is not None:
        raise ValueError("A path over C needs an estimator with nu=None and validation_fraction=None.")


def nu_problems(problem: ClassProblem, nu: float, intercept: str | None) -> list[MarginRows]:
    """Return the margins of each output where a margin is chosen, with a share ``nu`` of errors."""
    weight = problem.weight * problem.factor
    cost = np.minimum(1.0, weight / (nu * weight.sum()))  # the duals sum to one: more than that costs no more
    problems = [replace(classification_rows(signs, cost), target=np.zeros(len(cost))) for signs in problem.signs]
    if intercept == "free":
        shares = [min(rows.cost[rows.sign > 0].sum(), rows.cost[rows.sign < 0].sum()) for rows in problems]
        if min(shares) < 0.5 * (1 - 1e-9):
            raise ValueError(
                f"nu={nu} is too large for these classes: with a free offset it can be at most "
                f"{2 * nu * min(shares):.4g}, twice the weight of the smaller side. Lower nu, or set "
                'intercept to "penalized" or None, or class_weight to "balanced".'
            )
    return problems

"""What the fits of CG-Boost share: constraints of parameters, margins of classes, fits along a path of costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...kernels.defaults import given_library
from ...kernels.library import KernelLibrary
from ...labels import Partition
from ...parameters import BOOLEAN, COUNT, NONE, SHARE, Constraint, is_positive, one_of
from ...solvers.margin import MarginRows, classification_rows
from .base import FLOATS
from .centers import choose_centers
from .early_stopping import Validation
from .formulation import Formulation
from .mixture import MIXTURE_CONSTRAINTS, REMEDIES, MixtureFit, MixtureOptions, MixturePath, mixture_options
from .outcome import warn_unless_converged
from .sample import Sample, bind, class_weights

NU = Constraint(lambda value: is_positive(value) and float(value) <= 1, ("a number above 0 and at most 1",))
CG_BOOST_CONSTRAINTS = MIXTURE_CONSTRAINTS | {
    "penalty": one_of("l1", "l2", "rkhs"),
    "positive": BOOLEAN,
    "intercept": one_of("free", "penalized", None),
    "pricing": one_of("stratified", "full"),
}
EARLY_STOPPING_CONSTRAINTS = {"validation_fraction": NONE | SHARE, "n_iter_no_change": COUNT}


def fit_cg_boost(
    owner: str,
    params: Mapping[str, Any],
    sample: Sample,
    problems: Iterable[Sequence[MarginRows]],
    rng: np.random.Generator,
    validation: Validation | None = None,
    *,
    chooses_margin: bool = False,
    quiet: bool = False,
) -> tuple[KernelLibrary, list[MixtureFit]]:
    """Bind the kernels and fit mixtures to problems that differ in their costs, each from the solution of the last.

    Parameters
    ----------
    owner : str
        Whose fit it is.
    params : mapping
        Parameters of an estimator of this family.
    sample : Sample
    problems : iterable of sequences of MarginRows
        For each fit the margins of each output.
    rng : numpy.random.Generator
    validation : Validation, optional
    chooses_margin : bool, default=False
        Whether the margin is a variable (the nu-forms) rather than one.
    quiet : bool, default=False
        Whether not to warn of fits that are not within the tolerance.

    Returns
    -------
    library : KernelLibrary
    fits : list of MixtureFit
    """
    options = cg_boost_options(owner, params, chooses_margin=chooses_margin)
    centers = choose_centers(params["centers"], sample, rng, every_row=params["penalty"] == "rkhs")
    library = given_library(params["kernels"], sample.X)
    bound = bind(library, centers.sample, rng, params["cache_size"])
    path, fits = MixturePath(bound, centers, options, validation), []
    for stated in problems:
        fits.append(path.solve(stated))
        if not quiet:
            warn_unless_converged(fits[-1].results, options.tol, REMEDIES)
    return library, fits


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


def class_problems(
    sample: Sample, C: float, nu: float | None, class_weight: Any, intercept: str | None
) -> list[MarginRows]:
    """Return the margins of each one-vs-rest problem, or of the only one where there are two classes."""
    partition: Partition = sample.partition
    weight = sample.weight * class_weights(class_weight, partition, sample.weight)
    if nu is None:
        return [classification_rows(signs, C * weight) for signs in partition.one_vs_rest()]
    cost = np.minimum(1.0, weight / (nu * weight.sum()))  # the duals sum to one: more than that costs no more
    problems = [
        replace(classification_rows(signs, cost), target=np.zeros(len(cost))) for signs in partition.one_vs_rest()
    ]
    if intercept == "free":
        shares = [min(rows.cost[rows.sign > 0].sum(), rows.cost[rows.sign < 0].sum()) for rows in problems]
        if min(shares) < 0.5 * (1 - 1e-9):
            raise ValueError(
                f"nu={nu} is too large for these classes: with a free offset it can be at most "
                f"{2 * nu * min(shares):.4g}, twice the weight of the smaller side. Lower nu, or set "
                'intercept to "penalized" or None, or class_weight to "balanced".'
            )
    return problems

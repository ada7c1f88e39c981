r"""Discriminant analysis with learned kernel weights and ridge, on kernels that are bound.

With centred kernels of unit trace :math:`B_i`, class indicators :math:`H` and
:math:`M(w) = \lambda I + \sum_i w_i B_i`, the weights minimise :math:`\operatorname{tr} H^\top M(w)^{-1} H`, (34) and
(41) of the RKDA paper. The directions are :math:`M^{-1} H U` with :math:`U` the eigenvectors of
:math:`H^\top (I - \lambda M^{-1}) H`, and a row belongs to the class whose centroid is nearest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from ...kernels.bound_library import BoundLibrary
from ...kernels.expansion import KernelExpansion
from ...labels import Partition
from ...solvers.deadline import NO_DEADLINE, Deadline
from ...solvers.discriminant.joint_lmi import solve_joint_lmi
from ...solvers.discriminant.matrix_fractional import MIN_RIDGE, solve_matrix_fractional
from ...solvers.discriminant.simplex_newton import DiscriminantResult
from ...solvers.discriminant.within_scatter import solve_within_scatter
from ...solvers.machines.kernel_stack import KernelStack
from ...solvers.result import FitState, Status
from ...warn import warn_caller
from .composite import KernelWeights, composite_expansion, require_definite, weights_by_kernel
from .in_sample import outputs_at_rows
from .memory import require_stack_memory
from .outcome import TIME_REMEDY, Outcome, summarize, warn_unless_converged
from .progress import Hook, announce, follow_fit, number_problem
from .sample import Sample
from .scatter import Scatter, pool_kernels
from .stacked_kernels import stack_kernels

MEMORY_ADVICE = "SSMKClassifier, which reads kernels by blocks"
MIN_RIDGE_WEIGHT = 1e-3  # a weight of the identity below this is as good as none
MIN_SPREAD = 1e-6  # of the variance of all rows: classes are not taken for narrower
MIN_CENTROID_SCALE = 1e-3  # smallest shrinkage factor when held-out projections vanish
MAX_TIE = 1e-9  # of the largest eigenvalue: eigenvalues that differ by less are equal
MIN_EIGENVALUE = 1e-12  # of the largest eigenvalue: directions below are rounding
REMEDIES = {
    Status.MAX_TIME: TIME_REMEDY,
    Status.MAX_ITER: "Raise max_iter",
    Status.PRECISION: "Raise the ridge",
}


@dataclass(frozen=True)
class DiscriminantOptions:
    """What a discriminant is asked for, as the parameters of the estimator say.

    Attributes
    ----------
    owner : str
        Who asks, for messages.
    ridge : float or None
        None: learned.
    class_prior : ndarray of shape (n_classes,)
        Shares of the classes.
    shrinks : bool
        Whether centroids are where rows get that are projected by the others.
    calibrated : bool
        Whether the threshold between two classes is where such rows make the fewest errors.
    unlabeled_scatter : bool
        Whether unlabelled rows take part in the centre and the scatter of the rows.
    """

    owner: str
    ridge: float | None
    weighting: str
    formulation: str
    scatter: str
    class_prior: np.ndarray
    shrinks: bool
    calibrated: bool
    unlabeled_scatter: bool
    tol: float
    max_iter: int
    dtype: str
    callback: Callable[[FitState], object] | None
    verbose: int
    max_time: float | None = None
    deadline: Deadline = NO_DEADLINE


@dataclass(frozen=True, eq=False)
class NearestCentroid:
    """Classes as normal distributions of equal variance about centroids; fields as the estimator's attributes.

    Attributes
    ----------
    centroids : ndarray of shape (n_classes, n_components)
    class_prior : ndarray of shape (n_classes,)
    threshold : float
        What the log ratio of two classes is compared with.
    spread : float
        The variance.
    """

    centroids: np.ndarray
    class_prior: np.ndarray
    threshold: float
    spread: float = field(metadata={"kept": False})

    def log_ratios(self, projected: np.ndarray) -> np.ndarray:
        """Return how likely classes are at projections, in logarithms; for two, that of the second to the first."""
        squares = cdist(projected, self.centroids, "sqeuclidean")  # without all differences: 37 GB of 1000 classes
        if len(self.class_prior) == 2:  # equal shares add nothing, not even rounding
            squares, shares = squares[:, 1:] - squares[:, :1], self.class_prior[1:] / self.class_prior[0]
        else:
            shares = self.class_prior / self.class_prior.max()
        return np.asarray(-0.5 * squares / self.spread + np.log(shares))

    def decide(self, projected: np.ndarray) -> np.ndarray:
        """Return decision values: of shape (n_rows, 1) for two classes, else (n_rows, n_classes)."""
        values = self.log_ratios(projected)
        return values - self.threshold if len(self.class_prior) == 2 else values


@dataclass(frozen=True, eq=False)
class DiscriminantFit:
    """A discriminant; fields as the attributes of the estimator, ``expansion`` being its projections."""

    expansion: KernelExpansion
    intercept: np.ndarray
    n_evaluations: int
    scalings: np.ndarray
    ridge: float
    n_solves: int
    by_kernel: KernelWeights = field(metadata={"kept": False})
    centers: NearestCentroid = field(metadata={"kept": False})
    outcome: Outcome = field(metadata={"kept": False})


def fit_discriminant(bound: BoundLibrary, sample: Sample, options: DiscriminantOptions) -> DiscriminantFit:
    """Learn weights, ridge, directions and centroids from kernels that are tied to the rows of a sample.

    What kernels take from rows, such as widths, they have taken from all; what is learned is learned from the rows of
    the scatter.
    """
    owner = options.owner
    rows = np.arange(sample.n_rows) if options.unlabeled_scatter else sample.partition.labeled
    learned = sample.restrict(np.isin(np.arange(sample.n_rows), rows))
    require_stack_memory(owner, bound, learned.n_rows, options.dtype, MEMORY_ADVICE, by_features=True)
    among = None if learned.n_rows == sample.n_rows else rows
    stacked = stack_kernels(bound, learned.share, owner=owner, scale="trace", dtype=options.dtype, among=among)
    scatter = Scatter(stacked, learned)
    require_definite(owner, np.eye(len(bound.kernels)), scatter.stack, bound, stacked.rounding)
    result, is_uniform = _solve(scatter, options)
    weights, ridge, coef = _find_directions(result, scatter, options)
    scalings = np.zeros((sample.n_rows, coef.shape[1]))
    scalings[rows] = coef
    used = (weights / scatter.scales)[None]
    expansion = composite_expansion(used, scalings, np.zeros(coef.shape[1]), bound, sample.kept)
    values = outputs_at_rows(expansion, bound, sample, rows)
    means = learned.share @ values
    expansion.intercept -= means
    left_out = scatter.left_out if options.scatter == "total" else scatter.left_out_within
    by_kernel = weights_by_kernel(weights[None], bound.entries)
    warn_unless_converged([result], options.tol, REMEDIES)
    if options.ridge is None:
        _warn_of_extreme_ridge(result.x, by_kernel, learned, is_uniform)
    return DiscriminantFit(
        expansion=expansion,
        intercept=expansion.intercept,
        n_evaluations=expansion.n_evaluations,
        scalings=sample.spread(scalings),
        ridge=ridge,
        n_solves=result.n_cholesky,
        by_kernel=by_kernel,
        centers=_place_centroids(values - means, left_out(values - means, coef, weights, ridge), learned, options),
        outcome=summarize([result]),
    )


def _solve(scatter: Scatter, options: DiscriminantOptions) -> tuple[DiscriminantResult, bool]:
    """Return the solution with learned weights or that with equal ones, and whether it is the latter."""
    stack = scatter.plain_stack if options.scatter == "within" else scatter.stack
    with follow_fit(
        options.verbose, options.owner, options.callback, _describe_step, max_time=options.max_time
    ) as hook:
        if options.weighting == "uniform":
            return _solve_uniform(stack, scatter, options, hook), True
        if options.weighting == "learned":
            return _solve_on(stack, scatter, options, hook), False
        learned = _solve_on(stack, scatter, options, number_problem(hook, 0, 2))
        if learned.status in (Status.CALLBACK, Status.MAX_TIME):
            return learned, False
        uniform = _solve_uniform(stack, scatter, options, number_problem(hook, 1, 2))
    by_learned, by_uniform = (
        scatter.left_out_errors(*_read_regression(result, scatter, options)) for result in (learned, uniform)
    )
    rows = scatter.sample.labeled_weight
    better = by_learned - by_uniform
    total = float(rows @ better)
    deviation = float(np.sqrt(rows @ np.square(better - total / rows.sum())))  # of the total
    is_uniform = total > deviation
    if options.verbose:
        announce(
            f"{options.owner}: {'equal' if is_uniform else 'learned'} weights; squared error at held-out rows: "
            f"{rows @ by_uniform:.4g} with equal, {rows @ by_learned:.4g} with learned weights"
        )
    chosen = uniform if is_uniform else learned
    return replace(chosen, n_cholesky=learned.n_cholesky + uniform.n_cholesky), is_uniform


def _solve_uniform(
    stack: KernelStack, scatter: Scatter, options: DiscriminantOptions, hook: Hook | None
) -> DiscriminantResult:
    """Return the solution with equal weights, as if they had been learned.

    The weight beside which a ridge is learned is that of each kernel: a small ridge, for kernels of which all are of
    use. Rows without a class are regressed on zero, and so small a ridge would put each of them there; with them it is
    learned beside the weight of all kernels together, as where weights are learned.
    """
    n_kernels, n_unlabeled = len(stack), scatter.sample.partition.n_unlabeled
    n_pooled = n_kernels if options.ridge is not None or n_unlabeled else 1
    result = _solve_on(pool_kernels(stack, n_pooled), scatter, options, hook)
    return replace(result, x=np.append(result.x[:-1], np.repeat(result.x[-1] / n_pooled, n_kernels)))


def _solve_on(
    stack: KernelStack, scatter: Scatter, options: DiscriminantOptions, hook: Hook | None
) -> DiscriminantResult:
    limits: dict[str, Any] = {"tol": options.tol, "max_iter": options.max_iter, "callback": hook}
    limits["deadline"] = options.deadline
    if options.scatter == "within":
        assert options.ridge is not None
        return solve_within_scatter(stack, scatter.signs(), ridge=options.ridge, **limits)
    solve = solve_matrix_fractional if options.formulation == "exact" else solve_joint_lmi
    return solve(stack, scatter.H, ridge=None if options.ridge is None else scatter.stretch * options.ridge, **limits)


def _describe_step(state: FitState) -> str:
    return f"step {state.iteration}, objective {state.objective:.6g}, relative gap {state.relative_gap:.2e}"


def _find_directions(
    result: DiscriminantResult, scatter: Scatter, options: DiscriminantOptions
) -> tuple[np.ndarray, float, np.ndarray]:
    """Return the kernels' weights, the ridge, and coefficients of the directions for each row."""
    if options.scatter == "within":
        assert options.ridge is not None
        coef = result.dual.reshape(-1, 1)
        says_something = scatter.stack.combined_product(result.x, coef).any()
        return result.x, options.ridge, coef if says_something else np.zeros_like(coef)
    Z, weights, ridge = _read_regression(result, scatter, options)
    between = scatter.H.T @ scatter.stack.combined_product(weights, Z)  # H'(I - ridge M^-1)H without cancellation
    values, U = _find_axes(0.5 * (between + between.T) / scatter.stretch)
    positive = values > MIN_EIGENVALUE * max(float(values[0]), np.finfo(float).tiny)
    scaled = np.where(positive, U / np.sqrt(np.where(positive, values, 1.0)), 0.0)
    return weights, ridge, scatter.rows_of(Z @ scaled)


def _read_regression(
    result: DiscriminantResult, scatter: Scatter, options: DiscriminantOptions
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return Z, the inverse of ridge I + sum of weights B, times H; weights that sum to one; and the ridge."""
    if options.ridge is not None:
        return result.dual, result.x, options.ridge
    own, weights = float(result.x[0]), result.x[1:]
    kept = max(float(weights.sum()), np.finfo(float).eps)  # kernels of no use leave all to the identity
    ridge = (own / scatter.total + MIN_RIDGE / scatter.stretch) / kept
    weights = weights / kept if weights.any() else np.full(len(weights), 1.0 / len(weights))
    return kept * result.dual, weights, float(ridge)


def _place_centroids(
    projected: np.ndarray, left_out: np.ndarray, sample: Sample, options: DiscriminantOptions
) -> NearestCentroid:
    """Return what classification needs: the centroids, the variance about them, and the threshold.

    A flexible kernel puts the rows it has learned from where they should be; how far new rows get, and scatter, is seen
    at rows that are projected by the others. That shortens the way from the mean of all to a centroid; it does not turn
    it round, as the mean of the others, which lack a row of the class, would for kernels of no use. Where unlabelled
    rows are in the scatter, all ways are shortened by one factor: labelled rows are drawn to their class, the others to
    the mean of all, where the shortest way would have most of them.
    """
    partition: Partition = sample.partition
    weight = sample.labeled_weight
    inside, outside = projected[partition.labeled], left_out[partition.labeled]
    totals = np.bincount(partition.codes, weights=weight, minlength=partition.n_classes)
    means = (partition.indicator().T * weight) / totals[:, None]
    centroids = means @ inside
    if options.shrinks or partition.n_unlabeled:
        reached = np.einsum("kc,kc->k", centroids, means @ outside)
        squares = np.square(centroids).sum(axis=1)
        if not options.shrinks:
            reached, squares = totals @ reached[:, None], totals @ squares[:, None]
        scale = reached / np.maximum(squares, np.finfo(float).tiny)
        centroids = centroids * np.maximum(scale, MIN_CENTROID_SCALE)[:, None]
    within = weight @ np.square(outside - centroids[partition.codes]).mean(axis=1) / weight.sum()
    size = weight @ np.square(inside).mean(axis=1) / weight.sum()
    spread = max(float(within), MIN_SPREAD * float(size), float(np.finfo(float).tiny) ** 0.5)
    centers = NearestCentroid(centroids, options.class_prior, 0.0, spread)
    if not (options.calibrated and partition.n_classes == 2):
        return centers
    return replace(centers, threshold=_find_cut(centers.log_ratios(outside)[:, 0], partition.codes, weight))


def _warn_of_extreme_ridge(x: np.ndarray, by_kernel: KernelWeights, sample: Sample, is_uniform: bool) -> None:
    """Warn where the identity has none of the weight, or all of it."""
    if float(x[1:].sum()) < MIN_RIDGE_WEIGHT:
        warn_caller(
            f"The learned ridge outweighs the kernels (their weights sum to {x[1:].sum():.1e}): they do not "
            "separate the classes, or the sample weights, which act as numbers of rows, are too small: "
            f"they sum to {sample.weight.sum():.3g}. Scale them to a mean of 1, or set the ridge to a number."
        )
    elif float(x[0]) < MIN_RIDGE_WEIGHT and not is_uniform:
        heaviest = max(by_kernel.kernel_weights, key=lambda record: float(record["weight"]))
        warn_caller(
            f"The learned ridge is almost zero (its weight is {x[0]:.1e}): narrow kernels act as the ridge, mostly "
            f"{heaviest['name']} with weight {heaviest['weight']:.2f}. Remove kernels narrower than half the "
            "median distance if you chose them, or set the ridge to a number."
        )


def _find_axes(between: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return all but the smallest eigenvalue, falling, and eigenvectors that rounding and LAPACK have no part in.

    Where a kernel interpolates, eigenvalues are equal and any rotation of their eigenvectors would do as well: they are
    turned to the axes of the order of the classes in their space.
    """
    values, U = np.linalg.eigh(between)
    values, U = values[:0:-1], U[:, :0:-1]
    ends = np.flatnonzero(-np.diff(values) > MAX_TIE * abs(values[0])) + 1
    turned = [V @ np.linalg.eigh(V.T @ (np.arange(len(U))[:, None] * V))[1] for V in np.split(U, ends, axis=1)]
    U = np.hstack(turned)
    largest = np.abs(U) >= (1.0 - MAX_TIE) * np.abs(U).max(axis=0)
    last = len(U) - 1 - largest[::-1].argmax(axis=0)  # of equal entries, which are usual with two classes
    return values, U * np.sign(U[last, np.arange(U.shape[1])])


def _find_cut(values: np.ndarray, codes: np.ndarray, weight: np.ndarray) -> float:
    """Return a value above which rows of class 1, and below which rows of class 0, are told apart best."""
    order = np.argsort(values)
    ranked, classes, weight = values[order], codes[order], weight[order]
    cuts = np.array([ranked[0] - 1.0, *(0.5 * (ranked[1:] + ranked[:-1])), ranked[-1] + 1.0])
    missed = np.concatenate([[0.0], np.cumsum(np.where(classes == 1, weight, 0.0))])
    mistaken = weight[classes == 0].sum() - np.concatenate([[0.0], np.cumsum(np.where(classes == 0, weight, 0.0))])
    apart = np.concatenate([[True], ranked[1:] > ranked[:-1], [True]])  # nothing lies between equal values
    cuts, errors = cuts[apart], (missed + mistaken)[apart]
    cuts = cuts[errors <= errors.min() + MIN_EIGENVALUE * weight.sum()]
    return float(cuts[np.argmin(np.abs(cuts))])

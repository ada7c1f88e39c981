"""Harmonic functions of labels on a graph of rows: the graph, the values, and the classes made of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ...kernels.base import ALL, BoundKernel, require_kernel
from ...kernels.checks import is_symmetric, require_finite
from ...kernels.defaults import neighbor_metric
from ...kernels.graph import neighbor_graph
from ...kernels.library import KernelLibrary
from ...kernels.pointwise import RBF
from ...kernels.sharing import once
from ...kernels.tables import is_table
from ...labels import Partition
from ...solvers.deadline import Deadline
from ...solvers.harmonic import solve_harmonic
from ...solvers.result import Certificate, Status
from ...warn import warn_caller
from ..graph_means import KernelMeans, NeighborMeans
from .memory import count_values, require_graph_memory
from .progress import announce
from .sample import Sample, bind

REMEDIES = {
    Status.MAX_TIME: "Raise max_time or tol, or accept the error.",
    Status.MAX_ITER: "Raise max_iter or tol, or accept the error.",
    Status.PRECISION: (
        "Some rows are almost disconnected from the labelled rows: label one of them, raise n_neighbors, or take "
        'edge_weights="self_tuning" or "binary".'
    ),
}


@dataclass(frozen=True, eq=False)
class Graph:
    """The weights of the edges between rows, and what extends a function on the graph to new rows."""

    W: Any
    extension: NeighborMeans | KernelMeans


@dataclass(frozen=True, eq=False)
class HarmonicFit:
    """The harmonic function at all rows, and how well it is known; fields as the attributes of the estimators."""

    harmonic: np.ndarray
    unreached: np.ndarray
    error_bound: float
    objective: float
    certificate: Certificate
    status: Status
    n_iter: int


@dataclass(frozen=True, eq=False)
class ClassFit:
    """Classes made of a harmonic function; fields as the attributes of the classifier."""

    classes: np.ndarray
    harmonic: np.ndarray
    class_factors: np.ndarray
    label_distributions: np.ndarray
    transduction: np.ndarray


def graph_library(owner: str, kernel: Any) -> KernelLibrary:
    """Return the kernel where there is one; the nearest neighbours take such rows as any RBF."""
    if kernel is not None:
        require_kernel(owner, kernel)
    return KernelLibrary([RBF() if kernel is None else kernel])


def join_rows(
    owner: str,
    sample: Sample,
    rng: np.random.Generator,
    *,
    kernel: Any,
    n_neighbors: int,
    metric: str,
    edge_weights: str,
) -> Graph:
    """Join all pairs of rows by a kernel, or each with its nearest neighbours where there is none."""
    require_graph_memory(owner, sample.n_rows, count_values(sample.X), None if kernel is not None else int(n_neighbors))
    if kernel is not None:
        bound = bind(KernelLibrary([kernel]), sample, rng).kernels[0]
        return Graph(_read_similarities(owner, bound, str(kernel)), KernelMeans(bound))
    if metric == "auto" and is_table(sample.X):
        metric = "power"
    metric = neighbor_metric(metric, None, sample.X)
    what = ("harmonic graph", int(n_neighbors), metric, edge_weights)
    return once(what, sample.X, partial(_join_neighbors, sample.X, n_neighbors, metric, edge_weights), rng)


def _join_neighbors(X: Any, n_neighbors: int, metric: str, edge_weights: str, rng: np.random.Generator) -> Graph:
    means = NeighborMeans(X, n_neighbors, metric, edge_weights)
    W = neighbor_graph(means.points, n_neighbors, edge_weights=edge_weights, rng=rng)
    means.learn_lengths(W)
    return Graph(W, means)


@dataclass(frozen=True)
class SpreadingOptions:
    """How accurately values are spread, and how long that may take, as the parameters of the estimators say."""

    owner: str
    tol: float
    max_iter: int
    verbose: int
    deadline: Deadline


def spread_values(graph: Graph, labeled: np.ndarray, values: np.ndarray, options: SpreadingOptions) -> HarmonicFit:
    """Return the harmonic function with these values at the labelled rows; warn where it is not accurate enough."""
    options.deadline.check("the graph of the rows was made")
    result = solve_harmonic(
        graph.W,
        labeled,
        values,
        fallback=values.mean(axis=0),
        tol=options.tol,
        max_iter=options.max_iter,
        deadline=options.deadline,
    )
    if not np.isfinite(result.objective):
        raise ValueError(
            f"{options.owner}: the energy, edge weights up to {abs(graph.W).max():.3g} times squares of differences up "
            f"to {np.ptp(values, axis=0).max():.3g}, is too large to compute with. Divide y or the kernel by a power "
            "of ten."
        )
    if options.verbose:
        announce(f"{options.owner}: {result.n_iter} steps of conjugate gradients, largest error {result.error:.1e}")
    if result.status in REMEDIES:
        warn_caller(
            f"{result.status.value} Bound on the errors of the harmonic function, relative to its range: "
            f"{result.error:.1e}, tolerance: {options.tol:.1e}. {REMEDIES[result.status]}",
            ConvergenceWarning,
        )
    return HarmonicFit(
        harmonic=result.x,
        unreached=result.unreached,
        error_bound=float(result.error),
        objective=result.objective,
        certificate=result.certificate,
        status=result.status,
        n_iter=max(1, result.n_iter),
    )


def weigh_classes(fit: HarmonicFit, known: Partition, shares: np.ndarray | None, *, balanced: bool) -> ClassFit:
    """Weigh the classes such that their masses on unlabelled rows are their shares, by default those of the labels.

    Rows that no path of edges joins to a labelled one get the shares themselves.
    """
    if shares is None:
        shares = np.bincount(known.codes) / known.n_labeled
    values = fit.harmonic.copy()
    mass = values[np.setdiff1d(known.unlabeled, fit.unreached)].sum(axis=0)
    factors = np.ones(known.n_classes)
    if balanced and mass.any():
        factors = np.divide(shares, mass, out=np.zeros(len(mass)), where=mass > 0.0)
        factors[mass == 0.0] = factors.max()  # the class has labelled rows only
        factors = factors / factors.max()
    values[fit.unreached] = shares / factors / np.sum(shares / factors)
    probabilities = distributions(values, factors)
    probabilities[known.labeled] = known.indicator()
    classes = known.classes.copy()
    return ClassFit(classes, values, factors, probabilities, classes[probabilities.argmax(axis=1)])


def distributions(values: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """Weigh the classes for their masses, and bring rows to sum 1."""
    weighted = np.maximum(values, 0.0) * factors
    return weighted / weighted.sum(axis=1, keepdims=True)


def _read_similarities(owner: str, kernel: BoundKernel, name: str) -> np.ndarray:
    """Return the kernel at all rows as weights of edges; refuse one that is none."""
    K = kernel.block(ALL, ALL)
    W = K.astype(np.float64, copy=False)
    np.fill_diagonal(W, 0.0)
    lowest, largest = float(W.min()), float(W.max())
    require_finite(np.array([lowest, largest]), name)
    if lowest < 0.0:
        raise ValueError(
            f"The kernel {name} has negative values, down to {lowest:.3g}; {owner} uses kernel values as edge weights. "
            "Pass a non-negative kernel, such as RBF(), or kernel=None for the graph of nearest neighbours."
        )
    if not is_symmetric(W, float(np.finfo(K.dtype).eps)):
        raise ValueError(f"The kernel {name} is not symmetric; {owner} uses its values as edge weights.")
    return W

"""Labels that spread along a graph of all rows until each unlabelled row has the mean of its neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags

from ..kernels.base import ALL, BoundKernel, require_kernel
from ..kernels.checks import is_symmetric, require_finite
from ..kernels.defaults import neighbor_metric
from ..kernels.graph import EDGE_WEIGHTS, METRICS, neighbor_graph
from ..kernels.library import KernelLibrary
from ..kernels.pointwise import RBF
from ..kernels.sharing import once
from ..kernels.tables import is_table
from ..labels import Partition, partition, partition_targets
from ..parameters import COUNT, POSITIVE, READ_LATER, one_of
from ..solvers.harmonic import solve_harmonic
from ..solvers.result import Certificate, Status
from ..warn import warn_caller
from .graph_means import KernelMeans, NeighborMeans
from .shared.base import KernelEstimator
from .shared.memory import require_memory
from .shared.outputs import KernelClassifier, KernelRegressor
from .shared.sample import Sample, bind, class_shares, read_sample

REMEDIES = {
    Status.MAX_ITER: "Raise max_iter or tol, or accept the error.",
    Status.PRECISION: (
        "Some rows are almost disconnected from the labelled rows: label one of them, raise n_neighbors, or take "
        'edge_weights="self_tuning" or "binary".'
    ),
}
N_MATRICES = 4  # of all rows by all rows, that an elimination has in memory
GRAPH_CONSTRAINTS = {
    "n_neighbors": COUNT,
    "kernel": READ_LATER,
    "metric": one_of("auto", *METRICS, "power"),
    "edge_weights": one_of(*EDGE_WEIGHTS),
    "tol": POSITIVE,
    "max_iter": COUNT,
    "random_state": READ_LATER,
}


class HarmonicClassifier(ClassifierMixin, KernelEstimator):
    r"""Classify by the harmonic function on a graph of labelled and unlabelled rows.

    .. math::
        \min_f\; \tfrac12 \sum_{ij} W_{ij} \|f_i - f_j\|^2 \quad \text{s.t.} \quad
        f_i = e_{y_i} \text{ on the labelled rows},

    where :math:`W_{ij}` says how similar rows i and j are, and :math:`e_k` is the indicator of class k. So each
    unlabelled row has the weighted mean of its neighbours: the probability that a random walk from it reaches a
    labelled row of class k first. Classes are then weighted so that their masses are the expected shares (class-mass
    normalisation): :math:`p_{ik} \propto q_k f_{ik} / \sum_{j \text{ unlabelled}} f_{jk}`.

    Parameters
    ----------
    n_neighbors : int, default=5
        Neighbours in the graph, and of a new row.
    kernel : Kernel, optional
        The similarity of all pairs of rows, :math:`W = K` without its diagonal; non-negative, such as RBF. Needs memory
        for four ``n_samples x n_samples`` matrices. None: the sparse graph of nearest neighbours.
    metric : {"auto", "euclidean", "cosine", "power"}, default="auto"
        Distance between rows. ``"power"``: Euclidean between standardised columns, skewed ones after a power that makes
        them symmetric. ``"auto"``: cosine where ``X`` is sparse, ``"power"`` where it is a table, else Euclidean.
    edge_weights : {"gaussian", "binary", "self_tuning"}, default="gaussian"
        Of the edges of the nearest-neighbour graph: :math:`\exp(-d^2 / 2 t^2)` with t the mean length of edges; 1; or
        :math:`\exp(-d_{ij}^2 / t_i t_j)` with :math:`t_i` the distance of row i from its last neighbour.
    class_prior : "labeled", None, float or dict, default="labeled"
        The shares q of the classes: those of the labelled rows, the share of ``classes_[1]`` of two classes, or {class:
        share}. None: no normalisation, the classes of the harmonic function itself.
    tol : float, default=1e-6
        Largest error of a value.
    max_iter : int, default=10000
        Largest number of steps of conjugate gradients, which solve sparse graphs of more than 1,000 unlabelled rows.
    unlabeled : "auto", None or marker, default="auto"
        What marks an unlabelled row in ``y``, as in :class:`SSMKClassifier`.
    random_state : int, RandomState or None, default=None
        Seed of the kernels' random draws, and of approximate neighbours.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    label_distributions_ : ndarray of shape (n_samples, n_classes)
        Probabilities of the classes of each row; the given class has 1 on labelled rows.
    transduction_ : ndarray of shape (n_samples,)
        The given label on labelled rows, the most probable one on the others.
    harmonic_ : ndarray of shape (n_samples, n_classes)
        The harmonic function.
    class_factors_ : ndarray of shape (n_classes,)
        Factors of class-mass normalisation, applied before rows are scaled to sum to 1.
    unreached_ : ndarray of shape (n_unreached,)
        Rows that are disconnected from every labelled row; they get the class shares.
    error_bound_ : float
        Upper bound on the errors of ``harmonic_``, relative to the range of the given values; ``status_`` follows it.
    objective_, certificate_, status_, n_iter_
        The energy; how far a value is from the mean of its neighbours; why the solver stopped; its steps.
    library_, n_features_in_, feature_names_in_
        Holds ``kernel``, or an RBF that is not used; the number of columns of ``X``, and their names if it had any.

    See Also
    --------
    HarmonicRegressor : The same for numbers.
    LapSVMClassifier : A support vector machine on such a graph, for noisy labels.

    Notes
    -----
    A new row has the mean of the harmonic function at its nearest neighbours (with ``kernel``, at all rows), weighted
    like edges; to ``predict``, training rows are new. Given labels never change: there are no sample weights.

    It is meant for rows along a manifold: images, spectra, signals. Not for tables with noisy columns, where neighbours
    say little: on eight tables with 20, 50 and 100 labels its error was 20.0, 13.7 and 11.7 % on average, that of a
    tuned ``SVC`` on the labelled rows 16.6, 12.1 and 9.5 %; on eleven other sets 34.3, 26.1 and 20.2 % against 36.9,
    25.2 and 17.5 % (``benchmarks/defaults``).

    References
    ----------
    X. Zhu, Z. Ghahramani, J. Lafferty. Semi-supervised learning using Gaussian fields and harmonic functions. ICML
    2003.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> from kernelweave import HarmonicClassifier
    >>> X, truth = make_moons(200, noise=0.1, random_state=0)
    >>> y = np.where(np.arange(200) < 10, truth, -1)  # 10 labels, 190 unlabelled rows
    >>> model = HarmonicClassifier().fit(X, y)
    >>> bool(np.mean(model.transduction_ == truth) > 0.95)
    True
    """

    _constraints = GRAPH_CONSTRAINTS | {"class_prior": READ_LATER, "unlabeled": READ_LATER}
    score = KernelClassifier.score

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        kernel: Any = None,
        metric: str = "auto",
        edge_weights: str = "gaussian",
        class_prior: Any = "labeled",
        tol: float = 1e-6,
        max_iter: int = 10_000,
        unlabeled: Any = "auto",
        random_state: Any = None,
    ):
        self.n_neighbors = n_neighbors
        self.kernel = kernel
        self.metric = metric
        self.edge_weights = edge_weights
        self.class_prior = class_prior
        self.tol = tol
        self.max_iter = max_iter
        self.unlabeled = unlabeled
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Spread the labels to all rows.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            Labelled and unlabelled rows.
        y : array-like of shape (n_samples,)
            Labels; NaN, None and NA mark unlabelled rows, as does what ``unlabeled`` says.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._check_parameters()
        owner, library = type(self).__name__, graph_library(type(self).__name__, self.kernel)
        sample = read_sample(self._read_rows(X), partition(y, unlabeled=self.unlabeled))
        shares = class_shares(owner, self.class_prior, sample.partition)
        graph = join_rows(
            owner,
            sample,
            self._rng(),
            kernel=self.kernel,
            n_neighbors=self.n_neighbors,
            metric=self.metric,
            edge_weights=self.edge_weights,
        )
        fit = spread_values(graph, sample.partition.labeled, sample.partition.indicator(), self.tol, self.max_iter)
        classes = weigh_classes(fit, sample.partition, shares, balanced=self.class_prior is not None)
        return self._keep(sample, library, fit, classes, _extension=graph.extension)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities of the classes of each row.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Rows sum to 1.
        """
        X = self._read_new_rows(X)
        return distributions(self._extension.means(X, self.harmonic_), self.class_factors_)

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted class of each row.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        ndarray of shape (n_samples,)
            The most probable of ``classes_``.
        """
        probabilities = self.predict_proba(X)
        return self.classes_[probabilities.argmax(axis=1)]


class HarmonicRegressor(RegressorMixin, KernelEstimator):
    r"""Predict numbers by the harmonic function on a graph of labelled and unlabelled rows.

    .. math::
        \min_f\; \tfrac12 \sum_{ij} W_{ij} \|f_i - f_j\|^2 \quad \text{s.t.} \quad
        f_i = y_i \text{ on the labelled rows},

    as in :class:`HarmonicClassifier`. Predictions stay within the range of the given numbers.

    Parameters
    ----------
    n_neighbors : int, default=10
        Neighbours in the graph, and of a new row; more than for classes, to average noisy numbers.
    kernel : Kernel, optional
        The similarity of all pairs of rows; this and what follows as in :class:`HarmonicClassifier`.
    metric : {"auto", "euclidean", "cosine", "power"}, default="auto"
        Distance between rows.
    edge_weights : {"gaussian", "binary", "self_tuning"}, default="gaussian"
        Weights of the edges of the nearest-neighbour graph.
    tol : float, default=1e-6
        Largest error of a value, relative to the range of those given.
    max_iter : int, default=10000
        Largest number of steps of conjugate gradients.
    random_state : int, RandomState or None, default=None
        Seed of the kernels' random draws, and of approximate neighbours.

    Attributes
    ----------
    transduction_ : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        The given number on labelled rows, the harmonic function on the others.
    harmonic_ : ndarray of shape (n_samples, n_outputs)
        The harmonic function.
    unreached_ : ndarray of shape (n_unreached,)
        Rows that are disconnected from every labelled row; they get the mean of the given numbers.
    error_bound_, objective_, certificate_, status_, n_iter_, library_, n_features_in_, feature_names_in_
        As in :class:`HarmonicClassifier`.

    See Also
    --------
    HarmonicClassifier : The same for classes.

    References
    ----------
    X. Zhu, Z. Ghahramani, J. Lafferty. Semi-supervised learning using Gaussian fields and harmonic functions. ICML
    2003.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import HarmonicRegressor
    >>> X = np.linspace(0, 6, 200)[:, None]
    >>> y = np.where(np.arange(200) % 10 == 0, np.sin(X[:, 0]), np.nan)  # 20 numbers are known
    >>> model = HarmonicRegressor(n_neighbors=2).fit(X, y)
    >>> bool(np.abs(model.transduction_ - np.sin(X[:, 0])).max() < 0.3)
    True
    """

    _constraints = GRAPH_CONSTRAINTS
    score = KernelRegressor.score

    def __init__(
        self,
        n_neighbors: int = 10,
        *,
        kernel: Any = None,
        metric: str = "auto",
        edge_weights: str = "gaussian",
        tol: float = 1e-6,
        max_iter: int = 10_000,
        random_state: Any = None,
    ):
        self.n_neighbors = n_neighbors
        self.kernel = kernel
        self.metric = metric
        self.edge_weights = edge_weights
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Spread the numbers to all rows.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            Labelled and unlabelled rows.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Numbers; NaN, None and NA mark unlabelled rows, and -1 is a number. A row has all of its numbers or none.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._check_parameters()
        owner, library = type(self).__name__, graph_library(type(self).__name__, self.kernel)
        sample = read_sample(self._read_rows(X), partition_targets(y, several=True))
        graph = join_rows(
            owner,
            sample,
            self._rng(),
            kernel=self.kernel,
            n_neighbors=self.n_neighbors,
            metric=self.metric,
            edge_weights=self.edge_weights,
        )
        targets = sample.partition.targets
        fit = spread_values(graph, sample.partition.labeled, targets.reshape(len(targets), -1), self.tol, self.max_iter)
        transduction = fit.harmonic.copy() if targets.ndim == 2 else fit.harmonic[:, 0].copy()
        return self._keep(sample, library, fit, _extension=graph.extension, transduction_=transduction)

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted number of each row.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            The numbers, in as many columns as ``y`` had.
        """
        X = self._read_new_rows(X)
        values = self._extension.means(X, self.harmonic_)
        return values[:, 0] if self.transduction_.ndim == 1 else values

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


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
    if kernel is not None:
        require_memory(
            8 * N_MATRICES * sample.n_rows**2,
            f"{owner} joins all pairs of {sample.n_rows:,} rows where a kernel is given",
            "Pass kernel=None for the graph of nearest neighbours, or fewer rows.",
        )
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


def spread_values(graph: Graph, labeled: np.ndarray, values: np.ndarray, tol: float, max_iter: int) -> HarmonicFit:
    """Return the harmonic function with these values at the labelled rows; warn where it is not accurate enough."""
    result = solve_harmonic(graph.W, labeled, values, fallback=values.mean(axis=0), tol=tol, max_iter=max_iter)
    if result.status in REMEDIES:
        warn_caller(
            f"{result.status.value} Bound on the errors of the harmonic function, relative to its range: "
            f"{result.error:.1e}, tolerance: {tol:.1e}. {REMEDIES[result.status]}",
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

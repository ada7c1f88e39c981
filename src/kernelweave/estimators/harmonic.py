"""Labels that spread along a graph of all rows until each unlabelled row has the mean of its neighbours."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from ..kernels.base import ALL, BoundKernel, require_kernel
from ..kernels.graph import EDGE_WEIGHTS, METRICS, neighbor_graph
from ..kernels.library import KernelLibrary
from ..kernels.pointwise import RBF
from ..labels import Partition, TargetPartition
from ..solvers.harmonic import solve_harmonic
from ..solvers.result import Status
from .base import KernelEstimator, Sample, class_shares, is_count, is_positive, require
from .graph_means import KernelMeans, NeighborMeans
from .outputs import SemiSupervisedLabels, SemiSupervisedNumbers
from .stacking import require_room

REMEDIES = {
    Status.MAX_ITER: "Raise max_iter or tol, or accept the error.",
    Status.PRECISION: (
        "Some rows hang on the labelled ones by next to nothing: label one of them, raise n_neighbors, or take "
        'weights="self_tuning" or "binary".'
    ),
}
MATRICES = 4  # of all rows by all rows, that an elimination has in memory
ASYMMETRY = 1e-6  # of a kernel, relative to its largest value: rounding of float32


class HarmonicModel(KernelEstimator):
    """What classifier and regressor share: the graph, the harmonic function, and its mean at new rows."""

    def fit(self, X: Any, y: Any) -> Self:
        """Spread the labels to all rows.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            Labelled and unlabelled rows.
        y : array-like of shape (n_samples,), or (n_samples, n_outputs) for a regressor

        Returns
        -------
        self
        """
        self._check_params()
        sample = self._check_fit(X, y, None, self._library())
        values = self._values(sample.partition)
        W, extension = self._graph(sample)
        found = solve_harmonic(
            W, sample.partition.labeled, values, fallback=values.mean(axis=0), tol=self.tol, max_iter=self.max_iter
        )
        self._extension = extension
        self.harmonic_ = found.x
        self.unreached_ = found.unreached
        self.objective_ = found.objective
        self.certificate_ = found.certificate
        self.error_bound_ = float(found.error)
        self.n_iter_ = max(1, found.n_iter)
        self._status_name = found.status.name
        self._keep(sample)
        if found.status in REMEDIES:
            warnings.warn(
                f"{found.status.value} Bound on the errors of the harmonic function, relative to its range: "
                f"{found.error:.1e}, asked for: {self.tol:.1e}. {REMEDIES[found.status]}",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    @abstractmethod
    def _values(self, found: Any) -> np.ndarray:
        """Return the values at the labelled rows, shape (n_labeled, n_columns)."""

    @abstractmethod
    def _keep(self, sample: Sample) -> None:
        """Make labels of the harmonic function."""

    def _means(self, X: Any) -> np.ndarray:
        """Return the mean of the harmonic function around each new row, shape (n_new, n_columns)."""
        check_is_fitted(self)
        X = self._check_rows(X, self._library(), reset=False)
        return self._extension.means(X, self.harmonic_)

    def _library(self) -> KernelLibrary:
        """Return the kernel where there is one; the nearest neighbours take such rows as any RBF."""
        if self.kernel is not None:
            require_kernel(type(self).__name__, self.kernel)
        return KernelLibrary([RBF() if self.kernel is None else self.kernel])

    def _check_params(self) -> None:
        super()._check_params()
        owner = type(self).__name__
        require(owner, "n_neighbors", self.n_neighbors, is_count(self.n_neighbors), "a whole number, 1 or more")
        for name, known in (("metric", ("auto", *METRICS)), ("weights", EDGE_WEIGHTS)):
            value = getattr(self, name)
            holds = isinstance(value, str) and value in known
            require(owner, name, value, holds, "one of " + ", ".join(map(repr, known)))
        require(owner, "tol", self.tol, is_positive(self.tol), "a positive number")
        require(owner, "max_iter", self.max_iter, is_count(self.max_iter), "a whole number, 1 or more")

    def _graph(self, sample: Sample) -> tuple[Any, NeighborMeans | KernelMeans]:
        """Return the weights of the edges, and what extends a function on the graph to new rows."""
        if self.kernel is not None:
            n_rows = len(sample.kept)
            require_room(
                8 * MATRICES * n_rows**2,
                f"{type(self).__name__} joins all pairs of {n_rows:,} rows where a kernel is given",
                "Pass kernel=None for the graph of nearest neighbours, or fewer rows.",
            )
            kernel = self._bind(self._library(), sample, self._rng()).kernels[0]
            return _similarities(type(self).__name__, kernel, repr(self.kernel)), KernelMeans(kernel)
        metric = self.metric if self.metric != "auto" else "cosine" if sparse.issparse(sample.X) else "euclidean"
        means = NeighborMeans(sample.X, self.n_neighbors, metric, self.weights)
        W = neighbor_graph(means.points, self.n_neighbors, weights=self.weights, rng=self._rng())
        means.learn_lengths(W)
        return W, means


class HarmonicClassifier(SemiSupervisedLabels, HarmonicModel):
    r"""Classify by the harmonic function on a graph of labelled and unlabelled rows.

    .. math::
        \min_f\; \tfrac12 \sum_{ij} W_{ij} \|f_i - f_j\|^2 \quad \text{s.t.} \quad
        f_i = e_{y_i} \text{ on the labelled rows},

    where :math:`W_{ij}` says how similar rows i and j are, and :math:`e_k` is the indicator of class k. So each
    unlabelled row has the weighted mean of its neighbours: the chance that a random walk from it meets a labelled row
    of class k first. Classes are then weighted such that their masses are the shares that are expected (class-mass
    normalisation): :math:`p_{ik} \propto q_k f_{ik} / \sum_{j \text{ unlabelled}} f_{jk}`.

    Parameters
    ----------
    n_neighbors : int, default=10
        Neighbours in the graph, and of a new row.
    kernel : Kernel, optional
        The similarity of all pairs of rows, :math:`W = K` without its diagonal; not negative, as RBF. Takes memory for
        four matrices of all rows by all rows. None: the sparse graph of nearest neighbours.
    metric : {"auto", "euclidean", "cosine"}, default="auto"
        Between neighbours. ``"auto"``: cosine where ``X`` is sparse, else Euclidean.
    weights : {"gaussian", "binary", "self_tuning"}, default="gaussian"
        Of the edges of the nearest-neighbour graph: :math:`\exp(-d^2 / 2 t^2)` with t the mean length of edges; 1; or
        :math:`\exp(-d_{ij}^2 / t_i t_j)` with :math:`t_i` the distance of row i from its last neighbour.
    class_prior : "labeled", None, float or dict, default="labeled"
        The shares q of the classes: those of the labelled rows, the share of ``classes_[1]`` of two classes, or {class:
        share}. None: no normalisation, the classes of the harmonic function itself.
    tol : float, default=1e-6
        Largest error of a value.
    max_iter : int, default=10000
        Largest number of steps of conjugate gradients, which solve sparse graphs of more than 1,000 unlabelled rows.
    unlabeled : "auto" or marker, default="auto"
        What marks an unlabelled row in ``y``. ``"auto"``: NaN, None, NA, or -1 beside at least two other classes.
    random_state : int, RandomState or None, default=None
        Seed of what kernels draw at random, and of approximate neighbours.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    label_distributions_ : ndarray of shape (n_samples, n_classes)
        Probabilities of the classes of each row; the given class has 1 on labelled rows.
    transduction_ : ndarray of shape (n_samples,)
        The given label on labelled rows, the most probable one on the others.
    harmonic_ : ndarray of shape (n_samples, n_classes)
        The harmonic function.
    class_factors_ : ndarray of shape (n_classes,)
        What it is multiplied by for the masses of the classes, before rows are brought to sum 1.
    unreached_ : ndarray
        Numbers of the rows that no path of edges joins to a labelled one; they have the shares of the classes.
    error_bound_ : float
        Upper bound on the errors of ``harmonic_``, relative to the range of the given values; ``status_`` follows it.
    objective_, certificate_, status_, n_iter_
        The energy; how far a value is from the mean of its neighbours; why the solver stopped; its steps.
    n_features_in_, feature_names_in_

    Notes
    -----
    A new row has the mean of the harmonic function at its nearest neighbours (with ``kernel``, at all rows), weighted
    as their edges would be; training rows are new rows to ``predict``. Labels are taken as they are given, hence there
    are no sample weights: leave out rows that should not count.

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

    def __init__(
        self,
        n_neighbors: int = 10,
        *,
        kernel: Any = None,
        metric: str = "auto",
        weights: str = "gaussian",
        class_prior: Any = "labeled",
        tol: float = 1e-6,
        max_iter: int = 10_000,
        unlabeled: Any = "auto",
        random_state: Any = None,
    ):
        self.n_neighbors = n_neighbors
        self.kernel = kernel
        self.metric = metric
        self.weights = weights
        self.class_prior = class_prior
        self.tol = tol
        self.max_iter = max_iter
        self.unlabeled = unlabeled
        self.random_state = random_state

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities of the classes of each row, shape (n_samples, n_classes); rows sum to 1."""
        return self._distributions(self._means(X))

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted class of each row."""
        probabilities = self.predict_proba(X)
        return self.classes_[probabilities.argmax(axis=1)]

    def _values(self, found: Partition) -> np.ndarray:
        class_shares(type(self).__name__, self.class_prior, found)  # refuses wrong ones before anything is computed
        return found.indicator()

    def _keep(self, sample: Sample) -> None:
        found: Partition = sample.partition
        self.classes_ = found.classes.copy()
        frequencies = np.bincount(found.codes) / found.n_labeled
        given = class_shares(type(self).__name__, self.class_prior, found)
        shares = frequencies if given is None else given
        spread = np.setdiff1d(found.unlabeled, self.unreached_)
        mass = self.harmonic_[spread].sum(axis=0)
        self.class_factors_ = np.ones(found.n_classes)
        if self.class_prior is not None and mass.any():
            factors = np.divide(shares, mass, out=np.zeros(len(mass)), where=mass > 0.0)
            factors[mass == 0.0] = factors.max()  # the class has labelled rows only
            self.class_factors_ = factors / factors.max()
        self.harmonic_[self.unreached_] = shares / self.class_factors_ / np.sum(shares / self.class_factors_)
        self.label_distributions_ = self._distributions(self.harmonic_)
        self.label_distributions_[found.labeled] = found.indicator()
        self.transduction_ = self.classes_[self.label_distributions_.argmax(axis=1)]

    def _distributions(self, values: np.ndarray) -> np.ndarray:
        """Weigh the classes for their masses, and bring rows to sum 1."""
        weighted = np.maximum(values, 0.0) * self.class_factors_
        return weighted / weighted.sum(axis=1, keepdims=True)


class HarmonicRegressor(SemiSupervisedNumbers, HarmonicModel):
    r"""Predict numbers by the harmonic function on a graph of labelled and unlabelled rows.

    .. math::
        \min_f\; \tfrac12 \sum_{ij} W_{ij} \|f_i - f_j\|^2 \quad \text{s.t.} \quad
        f_i = y_i \text{ on the labelled rows},

    as in :class:`HarmonicClassifier`. No predicted number leaves the range of those given.

    Parameters
    ----------
    n_neighbors, kernel, metric, weights, max_iter, random_state
        As in :class:`HarmonicClassifier`.
    tol : float, default=1e-6
        Largest error of a value, relative to the range of those given.

    Attributes
    ----------
    transduction_ : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        The given number on labelled rows, the harmonic function on the others.
    harmonic_ : ndarray of shape (n_samples, n_outputs)
        The harmonic function.
    unreached_ : ndarray
        Numbers of the rows that no path of edges joins to a labelled one; they have the mean of the given numbers.
    error_bound_, objective_, certificate_, status_, n_iter_, n_features_in_, feature_names_in_
        As in :class:`HarmonicClassifier`.

    Notes
    -----
    NaN, None and NA mark rows whose number is not known; -1 is a number. A row with several numbers has all of them or
    none.

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

    _takes_several = True

    def __init__(
        self,
        n_neighbors: int = 10,
        *,
        kernel: Any = None,
        metric: str = "auto",
        weights: str = "gaussian",
        tol: float = 1e-6,
        max_iter: int = 10_000,
        random_state: Any = None,
    ):
        self.n_neighbors = n_neighbors
        self.kernel = kernel
        self.metric = metric
        self.weights = weights
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted number of each row, or its numbers where ``y`` had several columns."""
        values = self._means(X)
        return values[:, 0] if self.transduction_.ndim == 1 else values

    def _values(self, found: TargetPartition) -> np.ndarray:
        return found.targets.reshape(found.n_labeled, -1)

    def _keep(self, sample: Sample) -> None:
        several = sample.partition.targets.ndim == 2
        self.transduction_ = self.harmonic_.copy() if several else self.harmonic_[:, 0].copy()


def _similarities(owner: str, kernel: BoundKernel, name: str) -> np.ndarray:
    """Return the kernel at all rows as weights of edges; refuse one that is none."""
    W = kernel.block(ALL, ALL).astype(np.float64, copy=False)
    np.fill_diagonal(W, 0.0)
    lowest, largest = float(W.min()), float(W.max())
    if not np.isfinite([lowest, largest]).all():
        raise ValueError(
            f"The kernel {name} gave values that are not finite (NaN or inf). Check it, or scale features."
        )
    if lowest < 0.0:
        raise ValueError(
            f"The kernel {name} has negative values, {lowest:.3g} the lowest; {owner} takes them for weights of edges. "
            "Pass one that has none, such as RBF(), or kernel=None for the graph of nearest neighbours."
        )
    if not np.allclose(W, W.T, rtol=0.0, atol=ASYMMETRY * largest):
        raise ValueError(f"The kernel {name} is not symmetric; {owner} takes its values for weights of edges.")
    return W

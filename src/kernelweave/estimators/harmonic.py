"""Labels that spread along a graph of all rows until each unlabelled row has the mean of its neighbours."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import Tags

from ..kernels.graph import EDGE_WEIGHTS, METRICS
from ..labels import partition, partition_targets
from ..parameters import COUNT, POSITIVE, READ_LATER, one_of, read_options
from ..solvers.deadline import Deadline
from .shared.base import KernelEstimator
from .shared.harmonic import SpreadingOptions, distributions, graph_library, join_rows, spread_values, weigh_classes
from .shared.outputs import KernelClassifier, KernelRegressor
from .shared.progress import LIMIT_CONSTRAINTS
from .shared.sample import class_shares, read_as_given

GRAPH_CONSTRAINTS = {
    "n_neighbors": COUNT,
    "kernel": READ_LATER,
    "metric": one_of("auto", *METRICS, "power"),
    "edge_weights": one_of(*EDGE_WEIGHTS),
    "tol": POSITIVE,
    "max_iter": COUNT,
    "random_state": READ_LATER,
} | LIMIT_CONSTRAINTS


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
    max_time : float, optional
        Seconds that the fit may take. The best of what was reached by then is kept, with a warning; where nothing can
        be predicted yet, that is an error. Kernels at the rows are computed in any case.
    n_jobs : int, optional
        Has no influence: there is one problem.
    verbose : int, default=0
        1 and 2 print a line about what was found.
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
        max_time: float | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
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
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.verbose = verbose
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
        options = read_options(SpreadingOptions, self._parameters(), owner=owner, deadline=Deadline(self.max_time))
        sample = read_as_given(self._read_rows(X), partition(y, unlabeled=self.unlabeled))
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
        fit = spread_values(graph, sample.partition.labeled, sample.partition.indicator(), options)
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
    max_time : float, optional
        Seconds that the fit may take. The best of what was reached by then is kept, with a warning; where nothing can
        be predicted yet, that is an error. Kernels at the rows are computed in any case.
    n_jobs : int, optional
        Has no influence: there is one problem.
    verbose : int, default=0
        1 and 2 print a line about what was found.
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
        max_time: float | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ):
        self.n_neighbors = n_neighbors
        self.kernel = kernel
        self.metric = metric
        self.edge_weights = edge_weights
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.verbose = verbose
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
        options = read_options(SpreadingOptions, self._parameters(), owner=owner, deadline=Deadline(self.max_time))
        sample = read_as_given(self._read_rows(X), partition_targets(y, several=True))
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
        fit = spread_values(graph, sample.partition.labeled, targets.reshape(len(targets), -1), options)
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

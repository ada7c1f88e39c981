r"""Semi-supervised mixture of kernels: a sparse sum of kernel functions at labelled and unlabelled rows.

The problem is (9) of the SSMK paper; the walk is check, partition, bind, state the problem, solve, keep.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs

from ..kernels.learned import KernelExpansion
from ..kernels.library import BoundLibrary, as_library
from ..solvers.column_generation import RoundState, generate_columns
from ..solvers.margin import classification_rows
from ..solvers.masters import LPMaster
from ..solvers.result import SolverResult
from .base import MixtureClassifier, Sample, is_count, is_positive, kernel_usage, require
from .progress import progress

LEAST_DEVIATION = 0.1  # of the kernel's rms deviation; measured: no loss on 14 data sets
ZERO = 1e-12  # coefficients this far below the largest are rounding


class SSMKClassifier(MixtureClassifier):
    r"""Classify with a sparse mixture of kernels, certified optimal, that may use unlabelled rows as centres.

    The model is :math:`f(x) = \sum_p \sum_j \alpha_j^p K_p(x, x_j) + b`, where :math:`j` runs over labelled *and*
    unlabelled rows and :math:`p` over a library of kernels, which may be indefinite. With all columns
    :math:`K = [K_1 \dots K_P]` lined up, the coefficients solve the linear program (9) of the paper,

    .. math::
        \min_{\alpha, b, \xi} \quad & \sum_j s_j |\alpha_j| + \sum_{i \in L} C_i \xi_i \\
        \text{s.t.} \quad & y_i \Big(\sum_j K_{ij} \alpha_j + b\Big) + \xi_i \ge 1, \quad
        \xi_i \ge 0, \quad i \in L,

    with :math:`L` the labelled rows, :math:`C_i` = ``C`` times sample and class weight, and column scales
    :math:`s_j` (1 as printed). It is solved by column generation: the duals of the problem on a few columns price all
    others, the worst violators join, and the fit stops when the duality gap over *all* columns is within ``tol``.

    Parameters
    ----------
    kernels : None, Kernel, list of Kernel or KernelLibrary, default=None
        The library. ``None``: linear, quadratic, and a family of RBF kernels around the mean squared distance.
    C : float, default=10.0
        Cost of a margin violation, relative to a 1-norm of 1.
    column_scale : {"std", "norm"} or None, default="std"
        :math:`s_j`. ``"std"``: the weighted standard deviation of column :math:`j` over the labelled rows, so that
        kernels of different magnitude compete on equal terms (the free offset absorbs a column's mean); at least a
        tenth of what is usual for its kernel, so that a centre far from every label is not blown up. ``"norm"``: the
        weighted rms. ``None``: 1, the problem as printed.
    max_columns : int, optional
        Largest number of columns in the working set (of each one-vs-rest problem), hence of basis functions.
    max_time : float, optional
        Seconds after which no further round starts.
    tol : float, default=1e-6
        Relative duality gap to reach.
    class_weight : None, "balanced" or dict, default=None
        Factors on ``C`` by class.
    unlabeled : "auto" or marker, default="auto"
        What marks an unlabelled row in ``y``. ``"auto"``: NaN, None, NA, or -1 beside at least two other classes.
    cache_size : float, default=500
        Megabytes of kernel values kept between rounds. Has no influence on the result.
    n_jobs : int, optional
        One-vs-rest problems solved at the same time. Has no influence on the result.
    callback : callable, optional
        ``callback(state)`` after each round; a true answer stops the fit.
    verbose : int, default=0
        1 shows a progress bar on a terminal and a few lines elsewhere, 2 a line for each round.
    random_state : int, RandomState or None, default=None
        Seed of what kernels draw at random (subsamples for bandwidths above a few thousand rows).

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    expansion_ : KernelExpansion
        The model: active kernels, their centres (row numbers of ``X``) and coefficients.
    intercept_ : ndarray of shape (n_outputs,)
    kernel_usage_ : list of dict
        For each kernel its name, source, number of columns and share of the penalised 1-norm.
    n_columns_ : int
        Basis functions in the model.
    n_evaluations_ : int
        Kernel values that the prediction of one row costs.
    objective_ : float or ndarray of shape (n_classes,)
        Value of the problem; one for each class where there are more than two (one-vs-rest).
    certificate_ : Certificate
        Proven duality gap (``gap``, ``relative``), summed over the problems.
    status_ : Status
        Why the solver stopped.
    history_ : list of dict
        One record a round (and class).
    n_iter_ : int
        Number of rounds.
    dual_ : ndarray of shape (n_samples, n_outputs)
        Signed multiplier of each row's margin; zero for rows that do not bind the model, unlabelled ones among them.
    transduction_ : ndarray of shape (n_samples,)
        The given label on labelled rows, the predicted one on the others.
    library_ : KernelLibrary
        The library used.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only if ``X`` had names.

    Notes
    -----
    The paper's problem depends on the magnitude of each column: a kernel with large values is cheap. That is why
    columns are scaled by default; ``column_scale=None`` gives the printed problem. Coefficients always multiply the raw
    kernel. For more than two classes each class is separated from the rest; the problems share every kernel block.

    References
    ----------
    J. Bi, G. Fung, M. Dundar, R. B. Rao. Semi-supervised mixture of kernels via LPBoost methods. ICDM 2005.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> from kernelweave import SSMKClassifier
    >>> X, truth = make_moons(200, noise=0.1, random_state=0)
    >>> y = np.where(np.arange(200) < 20, truth, -1)  # 20 labels, 180 unlabelled rows
    >>> model = SSMKClassifier().fit(X, y)
    >>> model.status_.name, bool(model.certificate_.relative <= 1e-6)
    ('CONVERGED', True)
    >>> bool(np.mean(model.transduction_ == truth) > 0.9)
    True
    """

    def __init__(
        self,
        kernels: Any = None,
        *,
        C: float = 10.0,
        column_scale: str | None = "std",
        max_columns: int | None = None,
        max_time: float | None = None,
        tol: float = 1e-6,
        class_weight: Any = None,
        unlabeled: Any = "auto",
        cache_size: float = 500.0,
        n_jobs: int | None = None,
        callback: Callable[[RoundState], object] | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ):
        self.kernels = kernels
        self.C = C
        self.column_scale = column_scale
        self.max_columns = max_columns
        self.max_time = max_time
        self.tol = tol
        self.class_weight = class_weight
        self.unlabeled = unlabeled
        self.cache_size = cache_size
        self.n_jobs = n_jobs
        self.callback = callback
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the mixture from labelled and unlabelled rows.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels; unlabelled rows are marked as ``unlabeled`` says.
        sample_weight : array-like of shape (n_samples,), optional
            Rows of weight zero are ignored altogether.

        Returns
        -------
        self
        """
        self._check_params()
        library = as_library(self.kernels)
        sample = self._check_fit(X, y, sample_weight, library)
        bound = self._bind(library, sample)
        results, scale = self._solve(bound, sample)
        self._keep_model(results, bound, scale, sample)
        self.dual_ = np.zeros((sample.n_given, len(results)))
        duals = [result.extra["signed_dual"] for result in results]
        self.dual_[sample.kept[sample.partition.labeled]] = np.column_stack(duals)
        self.library_ = library
        self._keep(results, sample.partition)
        self.transduction_ = self._transduce(X, y)
        return self

    def _check_params(self) -> None:
        owner = type(self).__name__
        require(owner, "C", self.C, is_positive(self.C), "a positive finite number")
        require(owner, "tol", self.tol, is_positive(self.tol), "a positive number")
        scales = ("std", "norm", None)
        require(owner, "column_scale", self.column_scale, self.column_scale in scales, f"one of {scales}")
        columns, seconds, size = self.max_columns, self.max_time, self.cache_size
        require(owner, "max_columns", columns, columns is None or is_count(columns), "None or a whole number >= 1")
        require(owner, "max_time", seconds, seconds is None or is_positive(seconds), "None or a positive number")
        require(owner, "cache_size", size, size == 0 or is_positive(size), "a number of megabytes, 0 or more")
        callable_ = self.callback is None or callable(self.callback)
        require(owner, "callback", self.callback, callable_, "None or a function of the round's state")

    def _solve(self, bound: BoundLibrary, sample: Sample) -> tuple[list[SolverResult], np.ndarray]:
        """State the problem of each class on scaled columns and solve them together."""
        found, cost = sample.partition, self._costs(sample)
        scale = self._scale(bound, sample)

        def price(V: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
            for columns, scores in bound.scores(V, found.labeled):
                yield columns, scores / scale[columns, None]

        def fetch(columns: np.ndarray) -> np.ndarray:
            return bound.columns(columns, found.labeled) / scale[columns]

        positive = [1] if found.n_classes == 2 else range(found.n_classes)
        masters = [LPMaster(classification_rows(found.signs(k), cost)) for k in positive]
        with progress(self.verbose, type(self).__name__, self.callback) as hook:
            results = generate_columns(
                masters,
                price,
                fetch,
                tol=self.tol,
                max_columns=self.max_columns,
                max_time=self.max_time,
                n_threads=effective_n_jobs(self.n_jobs),
                callback=hook,
            )
        return results, scale

    def _scale(self, bound: BoundLibrary, sample: Sample) -> np.ndarray:
        """Return the scale of every column; 1 for a column that is zero on all labelled rows."""
        if self.column_scale is None:
            return np.ones(bound.n_columns)
        labeled = sample.partition.labeled
        weight = sample.weight[labeled]
        if self.column_scale == "norm":
            scale = bound.column_norms(weight, labeled)
        else:
            deviations = bound.column_deviations(weight, labeled).reshape(len(bound.kernels), bound.n_rows)
            usual = np.sqrt(np.average(deviations**2, axis=1, weights=sample.weight))
            scale = np.maximum(deviations, LEAST_DEVIATION * usual[:, None]).ravel()
        return np.where(scale > 0, scale, 1.0)

    def _keep_model(self, results: list[SolverResult], bound: BoundLibrary, scale: np.ndarray, sample: Sample) -> None:
        """Turn the problems' coefficients into one expansion over the union of their columns."""
        active = []
        for result in results:
            large = np.abs(result.x) > ZERO * np.abs(result.x).max(initial=0.0)
            active.append((result.extra["columns"][large], result.x[large]))
        columns = np.unique(np.concatenate([numbers for numbers, _ in active]))
        penalized = np.zeros((len(columns), len(results)))
        for k, (numbers, values) in enumerate(active):
            penalized[np.searchsorted(columns, numbers), k] = values
        self.classes_ = sample.partition.classes.copy()
        self.intercept_ = np.array([result.extra["intercept"] for result in results])
        coef = penalized / scale[columns, None]
        self.expansion_ = KernelExpansion.from_columns(bound, columns, coef, self.intercept_, sample.kept)
        penalties = np.bincount(
            bound.split(columns)[0], weights=np.abs(penalized).sum(axis=1), minlength=len(bound.kernels)
        )
        self.kernel_usage_ = kernel_usage(self.expansion_, bound, penalties)
        self.n_columns_ = len(columns)
        self.n_evaluations_ = self.expansion_.n_evaluations

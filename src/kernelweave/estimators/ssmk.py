r"""Semi-supervised mixture of kernels: a sparse sum of kernel functions at labelled and unlabelled rows.

The problem is (9) of the SSMK paper; the walk is check, partition, bind, state the problem, solve, keep.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np

from ..kernels.base import ALL
from ..kernels.defaults import MAX_MANIFOLD_ROWS, as_library, mixture_library, plain_library
from ..kernels.partitioned import PartitionedLibrary, bind_partitioned, draw_rows
from ..labels import partition, partition_targets
from ..parameters import READ_LATER
from ..solvers.result import FitState
from .shared.centers import Centers, choose_centers, gather_centers
from .shared.formulation import Formulation
from .shared.in_sample import outputs_at_given, transduce
from .shared.memory import require_mixture_memory
from .shared.mixture import MIXTURE_CONSTRAINTS, BoundColumns, fit_mixture, mixture_options
from .shared.mixture_choice import COST, choose_cost
from .shared.outputs import KernelClassifier, KernelRegressor
from .shared.partitioned import LabelRule, PartitionedSample
from .shared.problems import EPSILON, class_problem, number_problem
from .shared.sample import Sample, bind

MIN_KNOWN = 40  # numbers, below which columns of all rows fit some of them by chance


class SSMKClassifier(KernelClassifier):
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
        The library. ``None``: the views of :func:`table_library` where columns look like those of a table, each with
        a unit of its own; else linear, quadratic, and a family of RBF kernels around the mean squared distance. Where
        there are unlabelled rows, up to 10,000 in all, also four kernels deformed along the graph of nearest neighbours
        (:class:`ManifoldKernel`), whose basis functions cost a new row as many kernel values as there are rows, 1000 at
        most above 2000 rows.
    C : float or "cv", default="cv"
        Cost of a margin violation, relative to a 1-norm of 1. ``"cv"``: :math:`10 / \sqrt n` with the number (the
        weight) :math:`n` of labelled rows, or 0.1, 0.3, 1, 3 or 100 in place of 10 if with it held-out labelled rows
        (five folds, of 500 such rows at most) are predicted better by more than a standard error of the difference.
        They stay as unlabelled rows, and folds are the same in every fit. With fewer than 40 labels nothing is held
        out.
    column_scale : {"std", "norm"} or None, default="std"
        :math:`s_j`. ``"std"``: the weighted standard deviation of column :math:`j` over the labelled rows, so that
        kernels of different magnitude compete on equal terms (the free offset absorbs a column's mean); at least a
        tenth of what is usual for its kernel, so that a centre far from every label is not blown up. ``"norm"``: the
        weighted rms. ``None``: 1, the problem as printed.
    max_columns : int, optional
        Largest number of columns in the working set (of each one-vs-rest problem), hence of basis functions.
    centers : {"auto", "all", "labeled"}, int or array-like, default="auto"
        Which rows may be centres. ``"all"``: every row. ``"labeled"``: labelled rows only (IMK, the paper's baseline).
        A number: the labelled rows, and others drawn at random up to that many in all. ``"auto"``: every row up to
        20,000 of them, else that number. An array: row numbers, or a mask over the rows. The certificate covers, and
        names, the columns at these rows.
    max_time : float, optional
        Seconds after which no further round starts, and a linear program ends. The last solution is then made sparse,
        if that takes about half as long again or less. To choose ``C`` may take half as long before.
    tol : float, default=1e-6
        Relative duality gap to reach.
    class_weight : None, "balanced" or dict, default=None
        Factors on ``C`` by class.
    unlabeled : "auto", None or marker, default="auto"
        What marks an unlabelled row in ``y`` beside NaN, None and NA, which always do. ``"auto"``: -1, if none of these
        occurs and at least two other classes remain. ``None``: nothing else, so that -1 is a class. Any other value:
        that value.
    cache_size : float, default=500
        Megabytes of kernel values kept between rounds. Has no influence on the result.
    n_jobs : int, optional
        One-vs-rest problems solved at the same time. Has no influence on the result.
    callback : callable, optional
        ``callback(state)`` after each round, with a :class:`FitState`; a true answer stops the fit.
    verbose : int, default=0
        1 shows a progress bar on a terminal and a few lines elsewhere, 2 a line for each round.
    random_state : int, RandomState or None, default=None
        Seed of what kernels draw at random (subsamples for bandwidths above a few thousand rows).

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    expansion_ : KernelExpansion
        The model: active kernels, their centres (row numbers of ``X``) and coefficients.
    intercept_ : ndarray of shape (n_outputs,)
        The offset of each output: one for two classes, else one for each class.
    kernel_usage_ : list of dict, with a method ``to_frame``
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
    history_ : list of dict, with a method ``to_frame``
        One record a round (and class).
    n_iter_ : int
        Number of rounds.
    dual_coef_ : ndarray of shape (n_samples, n_outputs)
        Signed multiplier of each row's margin; zero for rows that do not bind the model, unlabelled ones among them.
    transduction_ : ndarray of shape (n_samples,)
        The given label on labelled rows, the predicted one on the others.
    C_ : float
        The cost used.
    cv_results_ : dict
        Accuracy in the folds for each cost, as in scikit-learn's ``GridSearchCV``; folds count by their held-out rows.
        Larger costs are left out once one above the default is clearly worse. Empty where nothing was chosen.
    candidates_ : ndarray of shape (n_candidates,)
        Rows that could be centres.
    library_ : KernelLibrary
        The library used.
    n_features_in_ : int
        Number of columns of ``X``.
    feature_names_in_ : ndarray of shape (n_features,)
        Only if ``X`` had names.

    See Also
    --------
    SSMKRegressor : The same for numbers.
    CGBoostClassifier : Other norms, where all rows are labelled.
    TSVMClassifier : Boundaries that avoid unlabelled rows.
    LapSVMClassifier : A support vector machine on a graph of all rows.
    AutoKernelClassifier : Combines many learners.

    Notes
    -----
    The paper's problem depends on the magnitude of each column: a kernel with large values is cheap. That is why
    columns are scaled by default; ``column_scale=None`` gives the printed problem. Coefficients always multiply the raw
    kernel. For more than two classes each class is separated from the rest; the problems share every kernel block.

    ``SemiSupervisedCalibration(SSMKClassifier())`` has ``predict_proba``, calibrated on held-out rows.

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

    _constraints = MIXTURE_CONSTRAINTS | {"C": COST, "class_weight": READ_LATER, "unlabeled": READ_LATER}

    def __init__(
        self,
        kernels: Any = None,
        *,
        C: float | str = "cv",
        column_scale: str | None = "std",
        max_columns: int | None = None,
        centers: Any = "auto",
        max_time: float | None = None,
        tol: float = 1e-6,
        class_weight: Any = None,
        unlabeled: Any = "auto",
        cache_size: float = 500.0,
        n_jobs: int | None = None,
        callback: Callable[[FitState], object] | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ):
        self.kernels = kernels
        self.C = C
        self.column_scale = column_scale
        self.max_columns = max_columns
        self.centers = centers
        self.max_time = max_time
        self.tol = tol
        self.class_weight = class_weight
        self.unlabeled = unlabeled
        self.cache_size = cache_size
        self.n_jobs = n_jobs
        self.callback = callback
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, X_unlabeled: Any = None) -> Self:
        """Learn the mixture from labelled and unlabelled rows.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            Labelled and unlabelled rows; also a Dask array or frame, whose rows stay where they are.
        y : array-like of shape (n_samples,)
            Labels; NaN, None and NA mark unlabelled rows, as does what ``unlabeled`` says. For a Dask collection an
            aligned Dask array or series.
        sample_weight : array-like of shape (n_samples,), optional
            Rows of weight zero are ignored altogether. Not with Dask collections.
        X_unlabeled : array, sparse matrix, frame or Dask collection, optional
            More rows, without labels; in the results they follow those of ``X``.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._check_parameters()
        options = mixture_options(type(self).__name__, self._parameters(), Formulation())
        rng = self._rng()
        read, rule = partial(partition, unlabeled=self.unlabeled), LabelRule("classes", self.unlabeled)
        given = self._read_sample(X, y, sample_weight, X_unlabeled, read, rule)
        columns, sample = bind_columns(options.owner, self._parameters(), given, rng)
        problem = class_problem(sample, self.class_weight)
        choice = choose_cost(self.C, columns, problem, options)
        fit = fit_mixture(columns.bound, columns.centers, problem.margins(choice.C, ALL), options.rest)
        return self._keep(
            sample,
            columns.library,
            fit,
            choice,
            classes_=sample.partition.classes.copy(),
            transduction_=transduce(
                fit.expansion, sample, lambda: outputs_at_given(fit.expansion, columns.bound, sample)
            ),
        )


class SSMKRegressor(KernelRegressor):
    r"""Predict numbers with a sparse mixture of kernels, certified optimal, that may use unlabelled rows as centres.

    The regression form of :class:`SSMKClassifier`, with the epsilon-insensitive loss of CG-Boost (13):

    .. math::
        \min_{\alpha, b, \xi, \eta} \quad & \sum_j s_j |\alpha_j| + \sum_{i \in L} C_i (\xi_i + \eta_i) \\
        \text{s.t.} \quad & \textstyle\sum_j K_{ij} \alpha_j + b + \xi_i \ge y_i - \varepsilon, \\
        & \textstyle-\sum_j K_{ij} \alpha_j - b + \eta_i \ge -y_i - \varepsilon, \quad \xi, \eta \ge 0 .

    Parameters
    ----------
    kernels : None, Kernel, list of Kernel or KernelLibrary, default=None
        The library, as in :class:`SSMKClassifier`.
    C : float or "cv", default="cv"
        Cost of an error beyond ``epsilon``, relative to a 1-norm of 1. ``"cv"``: as in :class:`SSMKClassifier`, but
        :math:`1 / \sqrt n` unless another is better. The problem is homogeneous, so a good cost does not depend on the
        unit of ``y``.
    epsilon : float or "auto", default="auto"
        Errors up to this, in units of ``y``, cost nothing. ``"auto"``: a tenth of the (weighted) standard deviation of
        the known numbers.
    column_scale : {"std", "norm"} or None, default="std"
        What each column is divided by; this and what follows as in :class:`SSMKClassifier`.
    max_columns : int, optional
        Largest number of columns in the working set.
    centers : {"auto", "all", "labeled"}, int or array-like, default="auto"
        Which rows may be centres. Below 40 known numbers ``"auto"`` means ``"labeled"``: among the columns of all rows
        some fit so few numbers by chance (rmse of 0.85 against 0.76 standard deviations with 20 numbers, on average
        over six sets; with 50 there is no difference).
    max_time : float, optional
        Seconds after which no further round starts.
    tol : float, default=1e-6
        Relative duality gap to reach.
    cache_size : float, default=500
        Megabytes of kernel values kept between rounds.
    n_jobs : int, optional
        Has no influence: there is one problem.
    callback : callable, optional
        ``callback(state)`` after each round, with a :class:`FitState`; a true answer stops the fit.
    verbose : int, default=0
        1 shows progress, 2 prints a line for each round.
    random_state : int, RandomState or None, default=None
        Seed of drawn centres and of what kernels draw at random.

    Attributes
    ----------
    expansion_, intercept_, kernel_usage_, n_columns_, n_evaluations_, objective_, certificate_, status_, history_
        As in :class:`SSMKClassifier`.
    n_iter_, dual_coef_, transduction_, candidates_, library_, n_features_in_, feature_names_in_
        As in :class:`SSMKClassifier`.
    C_, cv_results_
        As in :class:`SSMKClassifier`; scores are negative squared errors, in units of the variance of ``y``.

    See Also
    --------
    SSMKClassifier : The same for classes.
    CGBoostRegressor : Other norms, where all rows have a number.
    AutoKernelRegressor : Combines many learners.

    Notes
    -----
    NaN, None and NA mark rows whose number is not known; -1 is a number.

    References
    ----------
    J. Bi, G. Fung, M. Dundar, R. B. Rao. Semi-supervised mixture of kernels via LPBoost methods. ICDM 2005.

    J. Bi, T. Zhang, K. P. Bennett. Column-generation boosting methods for mixture of kernels. KDD 2004.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import SSMKRegressor
    >>> X = np.linspace(0, 6, 200)[:, None]
    >>> y = np.where(np.arange(200) % 4 == 0, np.sin(X[:, 0]), np.nan)  # 50 numbers are known
    >>> model = SSMKRegressor(random_state=0).fit(X, y)
    >>> model.score(X, np.sin(X[:, 0])) > 0.95
    True
    """

    _constraints = MIXTURE_CONSTRAINTS | {"C": COST, "epsilon": EPSILON}

    def __init__(
        self,
        kernels: Any = None,
        *,
        C: float | str = "cv",
        epsilon: float | str = "auto",
        column_scale: str | None = "std",
        max_columns: int | None = None,
        centers: Any = "auto",
        max_time: float | None = None,
        tol: float = 1e-6,
        cache_size: float = 500.0,
        n_jobs: int | None = None,
        callback: Callable[[FitState], object] | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ):
        self.kernels = kernels
        self.C = C
        self.epsilon = epsilon
        self.column_scale = column_scale
        self.max_columns = max_columns
        self.centers = centers
        self.max_time = max_time
        self.tol = tol
        self.cache_size = cache_size
        self.n_jobs = n_jobs
        self.callback = callback
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, X_unlabeled: Any = None) -> Self:
        """Learn the mixture from labelled and unlabelled rows.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            Labelled and unlabelled rows; also a Dask array or frame.
        y : array-like of shape (n_samples,)
            Numbers; NaN, None and NA mark unlabelled rows. For a Dask collection an aligned Dask array or series.
        sample_weight : array-like of shape (n_samples,), optional
            Rows of weight zero are ignored altogether.
        X_unlabeled : array, sparse matrix, frame or Dask collection, optional
            More rows, without numbers.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._check_parameters()
        options = mixture_options(type(self).__name__, self._parameters(), Formulation())
        rng = self._rng()
        given = self._read_sample(X, y, sample_weight, X_unlabeled, partition_targets, LabelRule("numbers"))
        centers = number_centers(self.centers, given.partition.n_labeled)
        columns, sample = bind_columns(options.owner, self._parameters() | {"centers": centers}, given, rng)
        problem = number_problem(sample, self.epsilon)
        choice = choose_cost(self.C, columns, problem, options)
        fit = fit_mixture(columns.bound, columns.centers, problem.margins(choice.C, ALL), options.rest)
        transduction = transduce(fit.expansion, sample, lambda: outputs_at_given(fit.expansion, columns.bound, sample))
        return self._keep(sample, columns.library, fit, choice, transduction_=transduction)


def number_centers(centers: Any, n_known: int) -> Any:
    """Return which rows may be centres where so many numbers are known."""
    is_open = isinstance(centers, str) and centers == "auto"
    return "labeled" if is_open and n_known < MIN_KNOWN else centers


def bind_columns(
    owner: str, params: Mapping[str, Any], given: Sample | PartitionedSample, rng: np.random.Generator
) -> tuple[BoundColumns, Sample]:
    """Bind the kernels that parameters name; the scope of the centres tells of default kernels that are left out.

    Returns
    -------
    columns : BoundColumns
    sample : Sample
        That was given; of partitioned rows those that came to memory.
    """
    if isinstance(given, Sample):
        centers, sample = choose_centers(params["centers"], given, rng), given
    else:
        gathered = gather_centers(params["centers"], given, rng)
        if gathered is None:
            return bind_everywhere(params, given, rng)
        centers, sample = gathered, gathered.sample
    kept = centers.sample
    if params["kernels"] is None and kept.partition.n_unlabeled and kept.n_rows > MAX_MANIFOLD_ROWS:
        centers = replace(centers, scope=centers.scope + _note_deformed())
    default = mixture_library(kept.X, kept.partition.n_unlabeled) if params["kernels"] is None else None
    library = as_library(params["kernels"], default)
    require_mixture_memory(owner, library, kept, params)
    return BoundColumns(library, bind(library, kept, rng, params["cache_size"]), centers), sample


def bind_everywhere(
    params: Mapping[str, Any], given: PartitionedSample, rng: np.random.Generator
) -> tuple[BoundColumns, Sample]:
    """Bind kernels at partitioned rows, each of which may be a centre; labelled rows come to memory."""
    rows, sample = given.rows, given.gather(given.labeled)
    default = plain_library(draw_rows(rows.X)) if params["kernels"] is None else None
    library = as_library(params["kernels"], default)
    names = None if rows.feature_names is None else rows.feature_names.tolist()
    kernels = [kernel.tied_to(sample.X) for kernel in bind_partitioned(library, rows.X, rng, names)]
    bound = PartitionedLibrary(kernels, library.entries, library.order, rows.X)
    scope = f"{given.n_rows:,} centres" + (_note_deformed() if default is not None else "")
    centers = Centers(sample, np.ones(sample.n_rows, dtype=bool), scope)
    return BoundColumns(library, bound, centers, given), sample


def _note_deformed() -> str:
    return f"; no deformed kernels, since there are more than {MAX_MANIFOLD_ROWS:,} rows"

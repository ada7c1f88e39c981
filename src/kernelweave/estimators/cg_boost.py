r"""CG-Boost: mixtures of kernels by column generation, for classes; numbers are in :mod:`.cg_boost_regressor`.

One family of problems: the 1-norm, the 2-norm or the RKHS norm of the coefficients, their signs free or not, an offset
that is free, penalised or absent, a margin of one or a chosen one. What differs is written down in each class.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any, Self

from sklearn.base import ClassifierMixin

from ..kernels.base import ALL
from ..kernels.library import KernelLibrary
from ..parameters import NONE, READ_LATER
from ..solvers.result import FitState
from .shared.cg_boost import (
    CG_BOOST_CONSTRAINTS,
    EARLY_STOPPING_CONSTRAINTS,
    NU,
    bind_columns,
    cg_boost_options,
    fit_columns,
    nu_problems,
    precisions,
    require_path,
)
from .shared.early_stopping import (
    HeldOut,
    hold_out,
    read_validation_classes,
    require_validation,
    watch_accuracy,
)
from .shared.mixture import MixtureFit
from .shared.mixture_choice import COST, CostChoice, choose_cost
from .shared.outputs import KernelClassifier, read_all_labels
from .shared.problems import class_problem
from .shared.sample import Sample, read_sample


class CGBoostClassifier(KernelClassifier):
    r"""Classify with a mixture of kernels found by column generation, with a certificate.

    The model is :math:`f(x) = \sum_p \sum_j \alpha_j^p K_p(x, x_j) + b` over the training rows :math:`x_j` and a
    library of kernels, which may be indefinite. With all columns lined up and divided by their scales :math:`s_j`
    (:math:`a_j = s_j \alpha_j`), the problems are (4), (7) and (11) of the paper,

    .. math::
        \min_{\alpha, b, \xi} \quad & R(\alpha) + \sum_i C_i \xi_i \\
        \text{s.t.} \quad & y_i f(x_i) + \xi_i \ge 1, \quad \xi_i \ge 0,

    with :math:`C_i` = ``C`` times sample and class weight, and the norm

    - ``penalty="l1"``: :math:`R = \sum_j |a_j|`, a linear program; few columns are used;
    - ``penalty="l2"``: :math:`R = \tfrac12 \sum_j a_j^2`, a quadratic program; an SVM with the kernel
      :math:`\sum_p K_p K_p^\top`. All columns are used at the optimum, so the fit stops at a relative gap of 0.1;
    - ``penalty="rkhs"``: :math:`R = \tfrac12 \sum_p \alpha_p^\top K_p \alpha_p`, for positive semi-definite kernels: an
      SVM with the kernel :math:`\sum_p K_p`, approached through the columns that matter most.

    The offset :math:`b` is free, or penalised as the coefficient of a column of ones (it adds :math:`|b|` or
    :math:`\tfrac12 b^2`), or absent. With ``nu`` the margin is chosen (LPBoost's form):

    .. math::
        \max_{\alpha, b, \rho, \xi} \quad & \rho - \tfrac{1}{\nu l} \sum_i \xi_i
        \;[\, - R(\alpha) \text{ for l2, rkhs}]\\
        \text{s.t.} \quad & y_i f(x_i) \ge \rho - \xi_i, \quad \xi_i \ge 0, \quad \sum_j |a_j| \le 1 \text{ for l1} .

    Its Lagrangian is linear in :math:`\rho`, whence the duals sum to one: the dual is to minimise the largest score
    (l1) or half the sum of squared scores (l2) over :math:`0 \le u_i \le 1 / (\nu l)`, :math:`\sum_i u_i = 1`. At most
    a share ``nu`` of the rows has a margin below :math:`\rho`, at least that share has one up to it.

    Column generation: the duals on a few columns give every other column a score, the worst join, until the duality gap
    over *all* columns is within ``tol``. With free coefficients and the 2-norm the gap is
    :math:`\tfrac12 \sum_{j \notin W} \text{score}_j^2` (Proposition 4.1).

    Parameters
    ----------
    kernels : None, Kernel, list of Kernel or KernelLibrary, default=None
        The library. ``None``: the views of :func:`table_library` where columns look like those of a table, each with
        a unit of its own; else linear, quadratic, and a family of RBF kernels around the mean squared distance. A sum
        of kernels is a kernel, so composite kernels need nothing else: ``[Linear() + Polynomial()]``.
    C : float or "cv", default="cv"
        Cost of a margin violation; not used with ``nu``. ``"cv"``: chosen by cross-validation of the rows, as in
        :class:`SSMKClassifier`; with l2 and rkhs from 0.1, 1, 10 and 100, by default 10.
    nu : float, optional
        Share of margin errors, above 0 and at most 1.
    penalty : {"l1", "l2", "rkhs"}, default="l1"
        The norm :math:`R` above.
    positive : bool, default=False
        Whether the coefficients of the kernels must not be negative; the offset may be. Not with ``penalty="rkhs"``.
    intercept : {"free", "penalized"} or None, default="free"
        Whether the offset is free, penalised or absent.
    pricing : {"stratified", "full"}, default="stratified"
        Which columns a round looks at. ``"stratified"``: first those at rows that miss their margin, first those of
        kernels that are cheap or have priority in the library; it looks further only when it finds too little. All are
        looked at before optimality is claimed. ``"full"``: all, always, as with the 1-norm and 300 rows or more where
        they fit in memory.
    column_scale : {"std", "norm"} or None, default="std"
        :math:`s_j`. ``"std"``: the weighted standard deviation of column :math:`j` over the rows (its rms where the
        offset is not free), at least a tenth of what is usual for its kernel; with ``penalty="l2"`` times the square
        root of the number of columns, so that a good C does not depend on it. ``"norm"``: the rms. ``None``: 1, the
        problem as printed. With ``penalty="rkhs"`` each kernel is divided by the mean square of its features, about
        their mean for ``"std"`` with a free offset.
    centers : {"auto", "all"}, int or array-like, default="auto"
        Which rows may be centres; ``"auto"`` draws 20,000 where there are more. An array: row numbers, or a mask.
    max_columns : int, optional
        Largest number of columns in the working set, hence of basis functions (for each class where there are more than
        two).
    max_time : float, optional
        Seconds after which no further round starts, and a linear program ends. With the 1-norm the last solution is
        then made sparse if that takes about half as long again or less.
    tol : float, optional
        Relative duality gap to reach; by default 1e-6 with l1, 0.1 with l2 and 0.01 with rkhs.
    validation_fraction : float, optional
        Share of the rows that is held out, by class, to stop when the score on it no longer improves. Rows may also be
        given to ``fit`` as ``X_val``, ``y_val``.
    n_iter_no_change : int, default=10
        Rounds without a better validation score after which to stop.
    class_weight : None, "balanced" or dict, default=None
        Factors on ``C`` by class.
    cache_size : float, default=500
        Megabytes of kernel values kept between rounds. Has no influence on the result.
    n_jobs : int, optional
        One-vs-rest problems solved at the same time. Has no influence on the result.
    callback : callable, optional
        ``callback(state)`` after each round, with a :class:`FitState`; a true answer stops the fit.
    verbose : int, default=0
        1 shows a progress bar on a terminal and a few lines elsewhere, 2 a line for each round.
    random_state : int, RandomState or None, default=None
        Seed of the validation rows, of drawn centres and of what kernels draw at random.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    expansion_ : KernelExpansion
        The model: active kernels, their centres (row numbers of ``X``) and coefficients.
    intercept_ : ndarray of shape (n_outputs,)
        The offset of each output: one for two classes, else one for each class.
    kernel_usage_ : list of dict, with a method ``to_frame``
        For each kernel its name, source, number of columns and share of the norm.
    n_columns_ : int
        Basis functions in the model.
    n_evaluations_ : int
        Kernel values that the prediction of one row costs.
    objective_ : float or ndarray of shape (n_classes,)
        Value of the problem, to be minimised; one for each class where there are more than two (one-vs-rest).
    certificate_ : Certificate
        Proven duality gap (``gap``, ``relative``), summed over the problems; ``scope`` names the columns it covers.
    status_ : Status
        Why the solver stopped.
    history_ : list of dict, with a method ``to_frame``
        One record a round (and class): objective, bound, gap, ``tau`` (largest score), columns in the working set,
        added and evaluated, seconds, ``validation_score`` where there are validation rows (in the round that is kept,
        that of the model as it is kept).
    n_iter_ : int
        Number of rounds.
    dual_coef_ : ndarray of shape (n_samples, n_outputs)
        Signed multiplier of each row's margin.
    C_ : float or None
        The cost used; None with ``nu``.
    cv_results_ : dict
        Accuracy in the folds for each cost, as in :class:`SSMKClassifier`; empty where nothing was chosen.
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
    CGBoostClassifierCV : Chooses C by cross-validation along a path, with any score.
    CGBoostRegressor : The same for numbers.
    CGBoostOneClass : The same for novelty detection.
    SSMKClassifier : The linear program with unlabelled rows as further centres.
    cg_boost_path : Models for a range of C.

    Notes
    -----
    The paper prices one column a round; here the working set grows by fifty (l1) or by a tenth (l2, rkhs). The measured
    cost of a kernel is a constant of its class, not a clock, so that the same seed gives the same model. Over 12 sets
    ``column_scale="std"`` had the lowest mean error with each norm (``benchmarks/column_scale``). For more than
    two classes each class is separated from the rest; the problems share every kernel block.

    ``SemiSupervisedCalibration(CGBoostClassifier())`` has ``predict_proba``, calibrated on held-out rows.

    References
    ----------
    J. Bi, T. Zhang, K. P. Bennett. Column-generation boosting methods for mixture of kernels. KDD 2004.

    A. Demiriz, K. P. Bennett, J. Shawe-Taylor. Linear programming boosting via column generation. Machine Learning
    46, 2002.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from kernelweave import CGBoostClassifier
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> sparse = CGBoostClassifier().fit(X, y)
    >>> sparse.status_.name, sparse.score(X, y) > 0.95, sparse.n_columns_ < 50
    ('CONVERGED', True, True)
    >>> smooth = CGBoostClassifier(penalty="rkhs", max_columns=30, tol=0.2).fit(X, y)
    >>> smooth.score(X, y) > 0.95
    True
    """

    _takes_unlabeled = False
    _gathers_partitions = True
    _constraints = (
        CG_BOOST_CONSTRAINTS | EARLY_STOPPING_CONSTRAINTS | {"C": COST, "nu": NONE | NU, "class_weight": READ_LATER}
    )
    score = ClassifierMixin.score  # every row has a label

    def __init__(
        self,
        kernels: Any = None,
        *,
        C: float | str = "cv",
        nu: float | None = None,
        penalty: str = "l1",
        positive: bool = False,
        intercept: str | None = "free",
        pricing: str = "stratified",
        column_scale: str | None = "std",
        centers: Any = "auto",
        max_columns: int | None = None,
        max_time: float | None = None,
        tol: float | None = None,
        validation_fraction: float | None = None,
        n_iter_no_change: int = 10,
        class_weight: Any = None,
        cache_size: float = 500.0,
        n_jobs: int | None = None,
        callback: Callable[[FitState], object] | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ):
        self.kernels = kernels
        self.C = C
        self.nu = nu
        self.penalty = penalty
        self.positive = positive
        self.intercept = intercept
        self.pricing = pricing
        self.column_scale = column_scale
        self.centers = centers
        self.max_columns = max_columns
        self.max_time = max_time
        self.tol = tol
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.class_weight = class_weight
        self.cache_size = cache_size
        self.n_jobs = n_jobs
        self.callback = callback
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, X_val: Any = None, y_val: Any = None) -> Self:
        """Learn the mixture.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            The training rows.
        y : array-like of shape (n_samples,)
            Labels; every row must have one, and -1 is a class like any other.
        sample_weight : array-like of shape (n_samples,), optional
            Rows of weight zero are ignored altogether.
        X_val, y_val : as X and y, optional
            Rows on which the model is scored after each round. The fit stops after ``n_iter_no_change`` rounds without
            a better score, and keeps the best model.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._check_parameters()
        owner, rng = type(self).__name__, self._rng()
        require_validation(owner, X_val, y_val, self.validation_fraction)
        sample = read_sample(self._read_rows(X, precisions(self.penalty)), read_all_labels(y, owner), sample_weight)
        held = self._read_held_out(X_val, y_val, sample)
        sample, held = hold_out(sample, self.validation_fraction, rng, held)
        validation = watch_accuracy(held, sample.partition.classes, self.n_iter_no_change)
        problem, params = class_problem(sample, self.class_weight), self._parameters()
        options = cg_boost_options(owner, params, chooses_margin=self.nu is not None)
        if self.nu is not None:
            margins, choice = nu_problems(problem, self.nu, self.intercept), CostChoice(None, {})
        columns = bind_columns(owner, params, sample, rng)
        if self.nu is None:
            choice = choose_cost(self.C, columns, problem, options)
            margins = problem.margins(choice.C, ALL)
        (fit,) = fit_columns(columns, [margins], options.rest, validation)
        return self.keep_fit(sample, columns.library, fit, choice)

    def fit_path(
        self, X: Any, y: Any, Cs: Iterable[float], sample_weight: Any = None, *, X_val: Any = None, y_val: Any = None
    ) -> list[Self]:
        """Return fitted copies of the estimator, one for each cost in the order given.

        The kernels are bound once, and each fit starts from the solution of the last; :func:`cg_boost_path` tabulates.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            The training rows.
        y : array-like of shape (n_samples,)
            Labels, as for :meth:`fit`.
        Cs : iterable of float
            Values of ``C``.
        sample_weight : array-like of shape (n_samples,), optional
            As for :meth:`fit`.
        X_val, y_val : as X and y, optional
            Rows on which the copies are to be scored; they are checked before the first fit, and not used.

        Returns
        -------
        list of CGBoostClassifier
            One for each cost; the estimator itself is not fitted.
        """
        self._check_parameters()
        require_path(self.nu, self.validation_fraction)
        owner, rng, Cs = type(self).__name__, self._rng(), [float(C) for C in Cs]
        options = cg_boost_options(owner, self._parameters())
        require_validation(owner, X_val, y_val)
        sample = read_sample(self._read_rows(X, precisions(self.penalty)), read_all_labels(y, owner), sample_weight)
        self._read_held_out(X_val, y_val, sample)
        problem = class_problem(sample, self.class_weight)
        columns = bind_columns(owner, self._parameters(), sample, rng)
        fits = fit_columns(columns, [problem.margins(C, ALL) for C in Cs], options)
        copies = [copy.copy(self).set_params(C=C) for C in Cs]
        return [
            model.keep_fit(sample, columns.library, fit, CostChoice(C, {}))
            for model, fit, C in zip(copies, fits, Cs, strict=True)
        ]

    def keep_fit(self, sample: Sample, library: KernelLibrary, fit: MixtureFit, choice: CostChoice) -> Self:
        """Take over the model of a fit, such as one along a path of costs.

        Parameters
        ----------
        sample : Sample
            The rows and labels that were fitted.
        library : KernelLibrary
            The kernels that were offered.
        fit : MixtureFit
            The mixture, with its certificate.
        choice : CostChoice
            The cost, and what was compared for it.

        Returns
        -------
        self
            The fitted estimator.
        """
        return self._keep(sample, library, fit, choice, classes_=sample.partition.classes.copy())

    def _read_held_out(self, X_val: Any, y_val: Any, sample: Sample) -> HeldOut | None:
        """Check validation rows against those of a fit; None where there are none."""
        if X_val is None:
            return None
        X_val = self._read_rows(X_val, sample.rows.dtypes, like=sample.rows).X
        return HeldOut(X_val, read_validation_classes(y_val, sample.partition, type(self).__name__))

r"""CG-Boost for numbers: the epsilon-insensitive form of the family of :mod:`.cg_boost`."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any, Self

from sklearn.base import RegressorMixin

from ..kernels.base import ALL
from ..kernels.library import KernelLibrary
from ..solvers.result import FitState
from .shared.cg_boost import (
    CG_BOOST_CONSTRAINTS,
    EARLY_STOPPING_CONSTRAINTS,
    bind_columns,
    cg_boost_options,
    fit_columns,
    precisions,
    require_path,
)
from .shared.early_stopping import HeldOut, hold_out, require_validation, watch_r2
from .shared.mixture import MixtureFit
from .shared.mixture_choice import COST, CostChoice, choose_cost
from .shared.outputs import KernelRegressor, read_all_numbers
from .shared.problems import EPSILON, number_problem
from .shared.sample import Sample, read_sample


class CGBoostRegressor(KernelRegressor):
    r"""Predict numbers with a mixture of kernels found by column generation, with a certificate.

    The epsilon-insensitive form of :class:`CGBoostClassifier`, (13) of the paper with the norm :math:`R` of that class:

    .. math::
        \min_{\alpha, b, \xi, \eta} \quad & R(\alpha) + \sum_i C_i (\xi_i + \eta_i) \\
        \text{s.t.} \quad & f(x_i) + \xi_i \ge y_i - \varepsilon, \quad -f(x_i) + \eta_i \ge -y_i - \varepsilon, \quad
        \xi, \eta \ge 0 .

    Parameters
    ----------
    kernels : None, Kernel, list of Kernel or KernelLibrary, default=None
        The library, as in :class:`CGBoostClassifier`.
    C : float or "cv", default="cv"
        Cost of an error beyond ``epsilon``. ``"cv"``: chosen by cross-validation of the rows, as in
        :class:`SSMKRegressor`; with l2 and rkhs from 0.1, 1, 10 and 100 standard deviations of ``y``, by default 10.
    epsilon : float or "auto", default="auto"
        Errors up to this, in units of ``y``, cost nothing. ``"auto"``: a tenth of the standard deviation of ``y``.
    penalty : {"l1", "l2", "rkhs"}, default="l1"
        Norm of the coefficients; this and what follows as in :class:`CGBoostClassifier`.
    positive : bool, default=False
        Whether the coefficients of the kernels must not be negative.
    intercept : {"free", "penalized"} or None, default="free"
        Whether the offset is free, penalised or absent.
    pricing : {"stratified", "full"}, default="stratified"
        Which columns a round looks at.
    column_scale : {"std", "norm"} or None, default="std"
        What each column is divided by.
    centers : {"auto", "all"}, int or array-like, default="auto"
        Which rows may be centres.
    max_columns : int, optional
        Largest number of columns in the working set.
    max_time : float, optional
        Seconds after which no further round starts.
    tol : float, optional
        Relative duality gap to reach; by default 1e-6 with l1, 0.1 with l2 and 0.01 with rkhs.
    validation_fraction : float, optional
        Share of the rows that is held out to stop early, by the coefficient of determination.
    n_iter_no_change : int, default=10
        Rounds without a better validation score after which to stop.
    cache_size : float, default=500
        Megabytes of kernel values kept between rounds.
    n_jobs : int, optional
        Has no influence: there is one problem.
    callback : callable, optional
        ``callback(state)`` after each round, with a :class:`FitState`; a true answer stops the fit.
    verbose : int, default=0
        1 shows progress, 2 prints a line for each round.
    random_state : int, RandomState or None, default=None
        Seed of the validation rows, of drawn centres and of what kernels draw at random.

    Attributes
    ----------
    expansion_, intercept_, kernel_usage_, n_columns_, n_evaluations_, objective_, certificate_, status_, history_
        As in :class:`CGBoostClassifier`.
    n_iter_, dual_coef_, candidates_, library_, n_features_in_, feature_names_in_
        As in :class:`CGBoostClassifier`.
    C_, cv_results_
        As in :class:`SSMKRegressor`.

    See Also
    --------
    CGBoostClassifier : The same for classes.
    SSMKRegressor : The linear program with rows whose number is not known as further centres.
    cg_boost_path : Models for a range of C.

    References
    ----------
    J. Bi, T. Zhang, K. P. Bennett. Column-generation boosting methods for mixture of kernels. KDD 2004.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import CGBoostRegressor
    >>> X = np.linspace(0, 6, 100)[:, None]
    >>> model = CGBoostRegressor(epsilon=0.01).fit(X, np.sin(X[:, 0]))
    >>> bool(np.abs(model.predict(X) - np.sin(X[:, 0])).max() < 0.05)
    True
    """

    _takes_unlabeled = False
    _gathers_partitions = True
    _constraints = CG_BOOST_CONSTRAINTS | EARLY_STOPPING_CONSTRAINTS | {"C": COST, "epsilon": EPSILON}
    score = RegressorMixin.score  # every row has a label

    def __init__(
        self,
        kernels: Any = None,
        *,
        C: float | str = "cv",
        epsilon: float | str = "auto",
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
        cache_size: float = 500.0,
        n_jobs: int | None = None,
        callback: Callable[[FitState], object] | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ):
        self.kernels = kernels
        self.C = C
        self.epsilon = epsilon
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
            Numbers; every row must have one.
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
        sample = read_sample(self._read_rows(X, precisions(self.penalty)), read_all_numbers(y, owner), sample_weight)
        held = self._read_held_out(X_val, y_val, sample)
        sample, held = hold_out(sample, self.validation_fraction, rng, held)
        validation = watch_r2(held, self.n_iter_no_change)
        problem, params = number_problem(sample, self.epsilon), self._parameters()
        options, columns = cg_boost_options(owner, params), bind_columns(owner, params, sample, rng)
        choice = choose_cost(self.C, columns, problem, options)
        (fit,) = fit_columns(columns, [problem.margins(choice.C, ALL)], options.rest, validation)
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
            Numbers, as for :meth:`fit`.
        Cs : iterable of float
            Values of ``C``.
        sample_weight : array-like of shape (n_samples,), optional
            As for :meth:`fit`.
        X_val, y_val : as X and y, optional
            Rows on which the copies are to be scored; they are checked before the first fit, and not used.

        Returns
        -------
        list of CGBoostRegressor
            One for each cost; the estimator itself is not fitted.
        """
        self._check_parameters()
        require_path(None, self.validation_fraction)
        owner, rng, Cs = type(self).__name__, self._rng(), [float(C) for C in Cs]
        options = cg_boost_options(owner, self._parameters())
        require_validation(owner, X_val, y_val)
        sample = read_sample(self._read_rows(X, precisions(self.penalty)), read_all_numbers(y, owner), sample_weight)
        self._read_held_out(X_val, y_val, sample)
        problem, columns = number_problem(sample, self.epsilon), bind_columns(owner, self._parameters(), sample, rng)
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
        return self._keep(sample, library, fit, choice)

    def _read_held_out(self, X_val: Any, y_val: Any, sample: Sample) -> HeldOut | None:
        """Check validation rows against those of a fit; None where there are none."""
        if X_val is None:
            return None
        X_val = self._read_rows(X_val, sample.rows.dtypes, like=sample.rows).X
        return HeldOut(X_val, read_all_numbers(y_val, type(self).__name__).targets)

"""Novelty detection by a mixture of kernels: the nu-form of CG-Boost with every label one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.base import OutlierMixin

from ..kernels.defaults import as_library, novelty_library
from ..labels import partition_targets
from ..solvers.margin import one_class_rows
from ..solvers.result import FitState
from .shared.base import KernelEstimator
from .shared.cg_boost import CG_BOOST_CONSTRAINTS, NU, bind_columns, cg_boost_options, fit_columns, precisions
from .shared.sample import read_sample

BORDER_ROUNDING = 1e-9  # of the largest value: rows on the border are inside, whatever rounding says


class CGBoostOneClass(OutlierMixin, KernelEstimator):
    r"""Detect rows that are unlike the training rows, with a mixture of kernels and a certificate.

    A function :math:`f(x) = \sum_p \sum_j \alpha_j^p K_p(x, x_j)` is to be large on most training rows,

    .. math::
        \min_{\alpha, \rho, \xi} \quad & -\rho + \tfrac{1}{\nu n} \sum_i \xi_i
        \;[\, + R(\alpha) \text{ for l2, rkhs}] \\
        \text{s.t.} \quad & f(x_i) \ge \rho - \xi_i, \quad \xi_i \ge 0, \quad \sum_j |a_j| \le 1 \text{ for l1},

    which is the nu-form of :class:`CGBoostClassifier` with every label one. Its Lagrangian is linear in :math:`\rho`,
    so the duals :math:`u` sum to one, and :math:`0 \le u_i \le 1/(\nu n)`; the dual is to minimise the largest score
    :math:`\sum_i u_i K_{ij}` (l1) or half the sum of squared scores (l2). With ``penalty="rkhs"`` and one kernel it is
    the one-class SVM. There is no offset other than :math:`\rho`: with one, the problem would be unbounded.

    Parameters
    ----------
    kernels : None, Kernel, list of Kernel or KernelLibrary, default=None
        The library. ``None``: a family of RBF kernels around the mean squared distance, of standardised columns where
        ``X`` looks like a table; kernels that grow with distance, such as linear and polynomial ones, would rate
        distant rows as the most typical.
    nu : float, default=0.1
        At most this share of the training rows lies outside, at least this share outside or on the border.
    penalty : {"l1", "l2", "rkhs"}, default="l1"
        Norm of the coefficients, as in :class:`CGBoostClassifier`.
    positive : bool, default=True
        Whether coefficients must not be negative; must be False with ``penalty="rkhs"``.
    intercept : None, default=None
        There is none; the parameter exists for consistency with the other mixtures.
    pricing : {"stratified", "full"}, default="stratified"
        Which columns a round looks at; this and what follows as in :class:`CGBoostClassifier`.
    column_scale : {"std", "norm"} or None, default=None
        What each column is divided by. By default nothing: a division by its size would favour centres at the edge of
        the data.
    centers : {"auto", "all"}, int or array-like, default="auto"
        Which rows may be centres.
    max_columns : int, optional
        Largest number of columns in the working set.
    max_time : float, optional
        Seconds after which no further round starts.
    tol : float, optional
        Relative duality gap to reach; by default 1e-6 with l1, 0.1 with l2 and 0.01 with rkhs.
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
    offset_ : float
        The margin :math:`\rho`, minus a rounding tolerance; ``decision_function`` is ``score_samples`` minus it.
    expansion_, intercept_, kernel_usage_, n_columns_, n_evaluations_, objective_, certificate_, status_, history_
        As in :class:`CGBoostClassifier`.
    n_iter_, dual_coef_, candidates_, library_, n_features_in_, feature_names_in_
        As in :class:`CGBoostClassifier`.

    See Also
    --------
    CGBoostClassifier : The same for classes.
    sklearn.svm.OneClassSVM : The one-class SVM with one kernel.

    References
    ----------
    J. Bi, T. Zhang, K. P. Bennett. Column-generation boosting methods for mixture of kernels. KDD 2004.

    B. Schölkopf, J. Platt, J. Shawe-Taylor, A. Smola, R. Williamson. Estimating the support of a high-dimensional
    distribution. Neural Computation 13, 2001.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import RBF, CGBoostOneClass
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> model = CGBoostOneClass([RBF()], nu=0.1).fit(X)
    >>> model.predict([[0.0, 0.0], [6.0, 6.0]]).tolist()
    [1, -1]
    >>> bool(np.mean(model.predict(X) == -1) <= 0.1)
    True
    """

    _takes_unlabeled = False
    _gathers_partitions = True
    _constraints = CG_BOOST_CONSTRAINTS | {"nu": NU}

    def __init__(
        self,
        kernels: Any = None,
        *,
        nu: float = 0.1,
        penalty: str = "l1",
        positive: bool = True,
        intercept: str | None = None,
        pricing: str = "stratified",
        column_scale: str | None = None,
        centers: Any = "auto",
        max_columns: int | None = None,
        max_time: float | None = None,
        tol: float | None = None,
        cache_size: float = 500.0,
        n_jobs: int | None = None,
        callback: Callable[[FitState], object] | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ):
        self.kernels = kernels
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
        self.cache_size = cache_size
        self.n_jobs = n_jobs
        self.callback = callback
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn what most rows have in common.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            The training rows.
        y : object, default=None
            Ignored; part of the interface of scikit-learn.
        sample_weight : array-like of shape (n_samples,), optional
            Rows of weight zero are ignored altogether.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._check_parameters()
        if self.intercept is not None:
            raise ValueError(
                f"CGBoostOneClass got intercept={self.intercept!r}; the margin rho is its only offset, and "
                "with another one the problem is unbounded. Leave intercept=None."
            )
        owner, rng = type(self).__name__, self._rng()
        rows = self._read_rows(X, precisions(self.penalty))
        sample = read_sample(rows, partition_targets(np.zeros(rows.X.shape[0])), sample_weight)
        cost = np.minimum(1.0, sample.weight / (self.nu * sample.weight.sum()))  # the duals sum to one
        problems = [one_class_rows(len(cost), cost)]
        params = self._parameters() | {"kernels": as_library(self.kernels, novelty_library(sample.X))}
        options = cg_boost_options(owner, params, chooses_margin=True)
        columns = bind_columns(owner, params, sample, rng)
        (fit,) = fit_columns(columns, [problems], options)
        offset = float(fit.rho[0] - BORDER_ROUNDING * np.abs(fit.expansion(sample.X)).max())
        return self._keep(sample, columns.library, fit, offset_=offset)

    def score_samples(self, X: Any) -> np.ndarray:
        """Return the value of the mixture at the rows of ``X``; large where they are like the training rows.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        ndarray of shape (n_samples,)
            The values :math:`f(x)`.
        """
        return self._outputs(X)[:, 0]

    def decision_function(self, X: Any) -> np.ndarray:
        """Return ``score_samples(X) - offset_``; negative for outliers.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        ndarray of shape (n_samples,)
            Distances from the border in units of the mixture.
        """
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> np.ndarray:
        """Return 1 for rows like the training rows and -1 for outliers.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        ndarray of shape (n_samples,)
            1 or -1; rows on the border have 1.
        """
        return np.where(self.decision_function(X) >= 0, 1, -1)

r"""CG-Boost: mixtures of kernels by column generation, for classes and numbers.

One family of problems: the 1-norm, the 2-norm or the RKHS norm of the coefficients, their signs free or not, an offset
that is free, penalised or absent, a margin of one or a chosen one. What differs is written down in each class.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import train_test_split

from ..labels import Partition, TargetPartition, labeled_values
from ..solvers.columns.loop import RoundState
from ..solvers.margin import MarginRows, classification_rows, regression_rows
from .base import Sample, class_weights, is_count, is_positive, require
from .formulation import Formulation
from .mixture import MixtureEstimator
from .outputs import SupervisedClasses, SupervisedNumbers, refuse_unlabeled, winners


class CGBoostEstimator(MixtureEstimator):
    """What the three estimators share: the choice of the problem, and early stopping."""

    def _formulation(self) -> Formulation:
        return Formulation(self.penalty, self.positive, self.intercept, getattr(self, "nu", None) is not None)

    def _precisions(self) -> list[Any]:
        # Cholesky factors of a kernel rounded to single precision would be those of another kernel.
        return [np.float64] if self.penalty == "rkhs" else super()._precisions()

    def _check_params(self) -> None:
        super()._check_params()
        owner = type(self).__name__
        known = isinstance(self.penalty, str) and self.penalty in ("l1", "l2", "rkhs")
        require(owner, "penalty", self.penalty, known, 'one of "l1", "l2" and "rkhs"')
        known = isinstance(self.pricing, str) and self.pricing in ("stratified", "full")
        require(owner, "pricing", self.pricing, known, '"stratified" or "full"')
        require(owner, "positive", self.positive, isinstance(self.positive, bool | np.bool_), "True or False")
        known = self.intercept is None or (isinstance(self.intercept, str) and self.intercept in ("free", "penalized"))
        require(owner, "intercept", self.intercept, known, 'one of "free", "penalized" and None')
        if self.positive and self.penalty == "rkhs":
            raise ValueError(
                f'{owner} got penalty="rkhs" with positive=True; that norm is not one of single coefficients. Set '
                'positive=False, or use "l1" or "l2".'
            )


class _EarlyStopping(CGBoostEstimator):
    """Fits that may stop when the score on validation rows no longer improves."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, X_val: Any = None, y_val: Any = None) -> Self:
        """Learn the mixture.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            Rows of weight zero are ignored altogether.
        X_val, y_val : as X and y, optional
            Rows on which the model is scored after each round; the fit stops when ``n_iter_no_change`` rounds bring
            nothing, and keeps the best model.

        Returns
        -------
        self
        """
        if (X_val is None) != (y_val is None):
            raise ValueError(f"{type(self).__name__} needs X_val and y_val together; one of them is missing.")
        if X_val is not None and self.validation_fraction is not None:
            raise ValueError(f"{type(self).__name__} got both validation_fraction and X_val; give one of them.")
        self._learn(self._prepare(X, y, sample_weight, None if X_val is None else (X_val, y_val)))
        return self

    def _check_params(self) -> None:
        super()._check_params()
        owner, fraction, patience = type(self).__name__, self.validation_fraction, self.n_iter_no_change
        share = fraction is None or (isinstance(fraction, numbers.Real) and 0 < float(fraction) < 1)
        require(owner, "validation_fraction", fraction, share, "None or a number between 0 and 1")
        require(owner, "n_iter_no_change", patience, is_count(patience), "a whole number >= 1")

    def _hold_out(self, sample: Sample, rng: np.random.Generator) -> tuple[Sample, tuple[Any, Any] | None]:
        if self.validation_fraction is None:
            return sample, None
        rows = np.arange(len(sample.kept))
        _, held = train_test_split(
            rows,
            test_size=float(self.validation_fraction),
            stratify=sample.partition.labels if isinstance(sample.partition, Partition) else None,
            random_state=int(rng.integers(2**31)),
        )
        keep = ~np.isin(rows, held)
        return sample.restrict(keep), (sample.X[~keep], sample.partition.labels[~keep])


class CGBoostClassifier(ClassifierMixin, SupervisedClasses, _EarlyStopping):
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
        The library. ``None``: linear, quadratic, and a family of RBF kernels around the mean squared distance. A sum of
        kernels is a kernel, so composite kernels need nothing else: ``[Linear() + Polynomial()]``.
    C : float, default=10.0
        Cost of a margin violation; not used with ``nu``.
    nu : float, optional
        Share of margin errors, above 0 and at most 1.
    penalty : {"l1", "l2", "rkhs"}, default="l1"
    positive : bool, default=False
        Whether the coefficients of the kernels must not be negative; the offset may be. Not with ``penalty="rkhs"``.
    intercept : {"free", "penalized"} or None, default="free"
    pricing : {"stratified", "full"}, default="stratified"
        Which columns a round looks at. ``"stratified"``: first those at rows that miss their margin, first those of
        kernels that are cheap or have priority in the library; it looks further only when it finds too little. All are
        looked at before optimality is claimed. ``"full"``: all, always.
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
        ``callback(state)`` after each round; a true answer stops the fit.
    verbose : int, default=0
        1 shows a progress bar on a terminal and a few lines elsewhere, 2 a line for each round.
    random_state : int, RandomState or None, default=None
        Seed of the validation rows, of drawn centres and of what kernels draw at random.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    expansion_ : KernelExpansion
        The model: active kernels, their centres (row numbers of ``X``) and coefficients.
    intercept_ : ndarray of shape (n_outputs,)
    kernel_usage_ : list of dict
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
    history_ : list of dict
        One record a round (and class): objective, bound, gap, ``tau`` (largest score), columns in the working set,
        added and evaluated, seconds, ``validation_score`` where there are validation rows (in the round that is kept,
        that of the model as it is kept).
    n_iter_ : int
        Number of rounds.
    dual_ : ndarray of shape (n_samples, n_outputs)
        Signed multiplier of each row's margin.
    candidates_ : ndarray of shape (n_candidates,)
        Rows that could be centres.
    library_ : KernelLibrary
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only if ``X`` had names.

    Notes
    -----
    The paper prices one column a round; here the working set grows by fifty (l1) or by a tenth (l2, rkhs). The measured
    cost of a kernel is a constant of its class, not a clock, so that the same seed gives the same model. Over 12 sets
    ``column_scale="std"`` had the lowest mean error with each norm (``benchmarks/column_scale``). For more than
    two classes each class is separated from the rest; the problems share every kernel block.

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

    def __init__(
        self,
        kernels: Any = None,
        *,
        C: float = 10.0,
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
        callback: Callable[[RoundState], object] | None = None,
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

    def _check_params(self) -> None:
        super()._check_params()
        share = self.nu is None or (is_positive(self.nu) and float(self.nu) <= 1)
        require(type(self).__name__, "nu", self.nu, share, "None or a number above 0 and at most 1")

    def _read_labels(self, y: Any, found: Partition) -> np.ndarray:
        y = refuse_unlabeled(y, type(self).__name__, "SSMKClassifier")
        labels = labeled_values(y, unlabeled=None, name="y_val")[1]
        known = found.classes.tolist()
        unknown = [label for label in dict.fromkeys(labels.tolist()) if label not in known]
        if unknown:
            raise ValueError(
                f"y_val holds {_shown(unknown)}, which no training row has; the classes of y are {_shown(known)}. "
                "Write y_val as y is written, and leave rows of other classes out of X_val and y_val."
            )
        return labels

    def _validation_score(self, sample: Sample, labels: np.ndarray) -> Callable[[np.ndarray], float]:
        classes = sample.partition.classes
        return lambda values: float(accuracy_score(labels, classes[winners(values)]))

    def _problems(self, sample: Sample) -> list[MarginRows]:
        found: Partition = sample.partition
        weight = sample.weight * class_weights(self.class_weight, found, sample.weight)
        positive = [1] if found.n_classes == 2 else range(found.n_classes)
        if self.nu is None:
            return [classification_rows(found.signs(k), self.C * weight) for k in positive]
        cost = np.minimum(1.0, weight / (self.nu * weight.sum()))  # the duals sum to one: more than that costs no more
        problems = [replace(classification_rows(found.signs(k), cost), target=np.zeros(len(cost))) for k in positive]
        if self.intercept == "free":
            shares = [min(rows.cost[rows.sign > 0].sum(), rows.cost[rows.sign < 0].sum()) for rows in problems]
            if min(shares) < 0.5 * (1 - 1e-9):
                raise ValueError(
                    f"nu={self.nu} is too large for these classes: with a free offset it can be at most "
                    f"{2 * self.nu * min(shares):.4g}, twice the weight of the smaller side. Lower nu, or set "
                    'intercept to "penalized" or None, or class_weight to "balanced".'
                )
        return problems


class CGBoostRegressor(RegressorMixin, SupervisedNumbers, _EarlyStopping):
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
    C : float, default=10.0
        Cost of an error beyond ``epsilon``.
    epsilon : float, default=0.1
        Errors up to this, in units of ``y``, cost nothing.
    penalty, positive, intercept, pricing, column_scale, centers, max_columns, max_time, tol
        As in :class:`CGBoostClassifier`.
    validation_fraction, n_iter_no_change, cache_size, n_jobs, callback, verbose, random_state
        As in :class:`CGBoostClassifier`; the validation score is the coefficient of determination.

    Attributes
    ----------
    expansion_, intercept_, kernel_usage_, n_columns_, n_evaluations_, objective_, certificate_, status_, history_
        As in :class:`CGBoostClassifier`.
    n_iter_, dual_, candidates_, library_, n_features_in_, feature_names_in_
        As in :class:`CGBoostClassifier`.

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

    def __init__(
        self,
        kernels: Any = None,
        *,
        C: float = 10.0,
        epsilon: float = 0.1,
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
        callback: Callable[[RoundState], object] | None = None,
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

    def _read_labels(self, y: Any, found: TargetPartition) -> np.ndarray:
        return self._partition(y).targets

    def _validation_score(self, sample: Sample, labels: np.ndarray) -> Callable[[np.ndarray], float]:
        return lambda values: float(r2_score(labels, values[:, 0]))

    def _problems(self, sample: Sample) -> list[MarginRows]:
        return [regression_rows(sample.partition.targets, self.epsilon, self.C * sample.weight)]


def _shown(classes: list[Any]) -> str:
    """Return a few classes in words."""
    return ", ".join(map(repr, classes[:5])) + (f", ... ({len(classes)} in all)" if len(classes) > 5 else "")

r"""Transductive support vector machines with one kernel, and with several that choose and mix themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from ..kernels.base import require_kernel
from ..kernels.defaults import as_library, landmark_kernel, transductive_library
from ..kernels.library import KernelLibrary
from ..labels import partition
from ..parameters import BOOLEAN, READ_LATER, read_options
from ..solvers.deadline import Deadline
from ..solvers.result import FitState
from .shared.machine import PRECISION, WEIGHTS_CONSTRAINTS, MachineOptions
from .shared.memory import fewer_kernels, landmark_remedies, require_machine_memory
from .shared.outputs import KernelClassifier
from .shared.sample import bind, class_shares, read_sample
from .shared.transduction import (
    MEMORY_ADVICE,
    SHARES_FROM_DATA,
    TRANSDUCTION_CONSTRAINTS,
    TransductionOptions,
    fit_transduction,
)


class TSVMClassifier(KernelClassifier):
    r"""Classify with a transductive support vector machine: boundaries avoid unlabelled rows, too.

    .. math::
        \min_{f, b}\; \tfrac12 \|f\|^2 + C \sum_{i \in L} H_1(y_i g(x_i))
        + C^* \sum_{i \in U} \big(R_s(g(x_i)) + R_s(-g(x_i))\big)
        \quad \text{s.t.} \quad \tfrac1u \textstyle\sum_{i \in U} g(x_i) = r ,

    with :math:`g = f + b`, the hinge :math:`H_s(z) = \max(0, s - z)` and the ramp :math:`R_s = H_1 - H_s`. It is not
    convex. The concave-convex procedure replaces the concave part by its tangents and solves machines in which each
    unlabelled row occurs with both signs, until a point minimises its own convex problem.

    Parameters
    ----------
    kernel : Kernel, optional
        Positive semi-definite. None: RBF, or linear where ``X`` is sparse; above 4000 rows its approximation by 1000
        landmarks. A :class:`ManifoldKernel` adds the manifold assumption.
    C : float or "cv", default=10.0
        Cost of a margin violation, for a kernel of unit spread (``scale``). ``"cv"``: 1, 10 or 100 by cross-validation
        on the labelled rows, with all unlabelled rows in training; 10 unless another makes fewer errors by more than a
        standard error.
    C_unlabeled : float, optional
        Cost :math:`C^*` of unlabelled rows; None: ``C``.
    ramp : float or "cv", default=0.4
        Where the ramp ends, s above; ``0 <= ramp < 1``. ``"cv"``: 0.2 or 0.4, as with ``C``.
    class_prior : "estimated", "labeled", None, float or dict, default="estimated"
        Shares of the classes among unlabelled rows, which fix their mean output, r = 2 share - 1. ``"estimated"``: from
        the labels and a regression's predictions for unlabelled rows, shrunk towards equal shares where classes have
        few labels; see the notes. ``"labeled"``: those of the labelled rows, which is *wrong, and ruins the result,* if
        labels were drawn class by class. None: no constraint. A number: the share of ``classes_[1]``. A dict: shares by
        class.
    scale : {"trace", "variance"} or None, default="trace"
        What the kernel is divided by, as in :class:`MKLClassifier`.
    annealing : bool, default=True
        Whether the cost of unlabelled rows starts at a sixteenth of ``C_unlabeled`` and doubles at each stage.
    n_restarts : int, default=0
        Further fits, started from machines with random weights of labelled rows; the best objective is kept.
    safe : bool, default=False
        Whether to ignore unlabelled rows (``status_`` then says so) unless they reduce the error on held-out labelled
        rows by more than half a standard error. It guarantees no more than that: folds of few labels detect large
        differences only, and have the class shares of the labels. Where a class has one labelled row there are no
        folds, and unlabelled rows are ignored, with a warning.
    tol : float, default=1e-4
        Relative accuracy of the convex machines, and distance from stationarity.
    max_iter : int, default=100
        Largest number of convex machines for each stage of the annealing.
    class_weight : None, "balanced" or dict, default=None
        Factors on ``C`` by class.
    unlabeled : "auto", None or marker, default="auto"
        What marks an unlabelled row in ``y``, as in :class:`SSMKClassifier`.
    dtype : {"float64", "float32"}, default="float64"
        Precision in which the kernel matrix is kept.
    callback : callable, optional
        ``callback(state)`` after each step, with a :class:`FitState`; a true return value stops the fit.
    max_time : float, optional
        Seconds that the fit may take. The best of what was reached by then is kept, with a warning; where nothing can
        be predicted yet, that is an error. Kernels at the rows are computed in any case.
    n_jobs : int, optional
        Machines of classes that are trained at the same time; -1: as many as there are cores. Has no influence on the
        result.
    verbose : int, default=0
        1 shows a progress bar on a terminal and a few lines elsewhere, 2 a line for each step.
    random_state : int, RandomState or None, default=None
        Seed of restarts, folds and the kernels' random draws.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    transduction_ : ndarray of shape (n_samples,)
        The given label on labelled rows, the predicted one on the others.
    objective_ : float
        Value of the problem, summed over the classes where there are more than two (each against the rest).
    objective_path_ : list of ndarray
        Objectives after each step, one array for each stage of the annealing: within a stage they never increase by
        more than the accuracy of the machines.
    certificate_ : Certificate
        Of stationarity: how far the point can be from the minimum of its own convex problem. It says nothing about
        other local minima.
    C_, C_unlabeled_, ramp_ : float
        The costs and the end of the ramp that were used.
    class_prior_ : ndarray of shape (n_classes,) or None
        The class shares used for unlabelled rows; None without constraint.
    cv_results_ : dict
        Accuracy in the folds for each ``C``, ``C_unlabeled`` and ``ramp`` that cross-validation compared, as in
        scikit-learn's ``GridSearchCV``; folds are weighted by their held-out rows. Empty if nothing was chosen.
    expansion_, intercept_, support_, dual_coef_, n_evaluations_, status_, history_, n_iter_, n_solves_, weights_
        As in :class:`MKLClassifier`.
    kernel_weights_, source_weights_, library_, n_features_in_, feature_names_in_
        As in :class:`MKLClassifier`.

    See Also
    --------
    TSVMMKLClassifier : Several kernels, whose weights are learned.
    LapSVMClassifier : The manifold assumption instead, in a convex problem.
    SSMKClassifier : A sparse mixture of kernels, certified optimal.

    Notes
    -----
    Where all outputs are within s at the start of a stage, the ramps are flat and the descent could not move; outputs
    are then taken relative to their median (``history_`` has ``stretched``). The balance is eliminated by centring
    kernels at the unlabelled rows, so that it holds to rounding.

    Class shares matter more than any other setting: with 50 labels of the ten digits of USPS, drawn at random, the
    error is 25 % with those of the labelled rows, and 19 % with the true ones. The estimate compares the mean outputs
    of kernel ridge regression on the labels at both parts (each labelled row without its own). Where these differ no
    more than random draws do, the difference corrects the shares of the labelled rows, and their remaining variance
    shrinks them towards equal ones. Where they differ by more, labels were not drawn at random, and the shares are
    those that explain the difference; a warning says so where they are far from those of the labels.

    ``SemiSupervisedCalibration(TSVMClassifier())`` has ``predict_proba``, calibrated on held-out rows.

    References
    ----------
    R. Collobert, F. Sinz, J. Weston, L. Bottou. Large scale transductive SVMs. JMLR 7, 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_blobs
    >>> from kernelweave import RBF, TSVMClassifier
    >>> X, truth = make_blobs(200, centers=[(-2, 0), (2, 0)], random_state=0)
    >>> y = np.where(np.arange(200) < 10, truth, -1)  # 10 labels, 190 unlabelled rows
    >>> model = TSVMClassifier(RBF()).fit(X, y)
    >>> bool(np.mean(model.transduction_ == truth) > 0.9), model.certificate_.kind
    (True, 'stationarity')
    """

    _constraints = TRANSDUCTION_CONSTRAINTS | {"kernel": READ_LATER}

    def __init__(
        self,
        kernel: Any = None,
        *,
        C: float | str = 10.0,
        C_unlabeled: float | None = None,
        ramp: float | str = 0.4,
        class_prior: Any = "estimated",
        scale: str | None = "trace",
        annealing: bool = True,
        n_restarts: int = 0,
        safe: bool = False,
        tol: float = 1e-4,
        max_iter: int = 100,
        class_weight: Any = None,
        unlabeled: Any = "auto",
        dtype: str = "float64",
        callback: Callable[[FitState], object] | None = None,
        max_time: float | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ):
        self.kernel = kernel
        self.C = C
        self.C_unlabeled = C_unlabeled
        self.ramp = ramp
        self.class_prior = class_prior
        self.scale = scale
        self.annealing = annealing
        self.n_restarts = n_restarts
        self.safe = safe
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.unlabeled = unlabeled
        self.dtype = dtype
        self.callback = callback
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from labelled and unlabelled rows.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            Labelled and unlabelled rows.
        y : array-like of shape (n_samples,)
            Labels; NaN, None and NA mark unlabelled rows, as does what ``unlabeled`` says.
        sample_weight : array-like of shape (n_samples,), optional
            Rows of weight zero are ignored altogether; neighbour graphs do not know other weights.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._check_parameters()
        owner = type(self).__name__
        if self.kernel is not None:
            require_kernel(owner, self.kernel)
        params = self._parameters()
        machine = read_options(MachineOptions, params, owner=owner, deadline=Deadline(self.max_time))
        sample = read_sample(self._read_rows(X, PRECISION), partition(y, unlabeled=self.unlabeled), sample_weight)
        shares = class_shares(owner, self.class_prior, sample.partition, SHARES_FROM_DATA)
        options = read_options(TransductionOptions, params, machine=machine, shares=shares)
        library = KernelLibrary([landmark_kernel(sample.X) if self.kernel is None else self.kernel])
        rng = self._rng()
        by_features = self.class_prior is not None
        require_machine_memory(
            owner,
            library,
            sample,
            sample.n_rows,
            self.dtype,
            MEMORY_ADVICE,
            by_features=by_features,
            smaller=[*fewer_kernels(library), *landmark_remedies(library)],
        )
        fit = fit_transduction(bind(library, sample, rng), sample, options, rng)
        return self._keep(sample, library, fit.machine, fit, classes_=sample.partition.classes.copy())


class TSVMMKLClassifier(KernelClassifier):
    r"""Classify with a transductive support vector machine whose kernel is a learned sum of kernels.

    .. math::
        \min_{f, b, w}\; \tfrac12 \sum_k \frac{a_k}{w_k} \|f_k\|^2 + C \sum_{i \in L} H_1(y_i g(x_i))
        + C^* \sum_{i \in U} \big(R_s(g(x_i)) + R_s(-g(x_i))\big)
        \quad \text{s.t.} \quad \|w\|_p \le 1, \; w \ge 0, \;
        \tfrac1u \textstyle\sum_{i \in U} g(x_i) = r ,

    with :math:`g = \sum_k f_k + b`: problem (2) of the paper, where p is 1, solved by its Algorithm 1. Kernels that
    follow the manifold of the rows join plain ones, which combines the cluster and manifold assumptions in one model
    that predicts new rows. Each convex problem starts from the last weights.

    Parameters
    ----------
    kernels : None, Kernel, list of Kernel or KernelLibrary, default=None
        The library, of positive semi-definite kernels. None: an RBF kernel and four mild deformations of it (20 and 50
        neighbours, degrees 2 and 5, ratio 1); where ``X`` is sparse a linear one, with cosine neighbours. Above 4000
        rows all use landmarks as :class:`ManifoldKernel` does, and no matrix of all rows is formed; above 200,000 rows
        there are no deformed ones, whose graphs would take gigabytes.
    norm : float, default=1.5
        The p of :math:`\|w\|_p \le 1`. Above 1 no weight is zero. 1, as in the paper: they sum to one, and one kernel
        tends to get all the weight, the most deformed rather than the most accurate one.
    C : float or "cv", default=10.0
        Cost of a margin violation; this and what follows as in :class:`TSVMClassifier`.
    C_unlabeled : float, optional
        Cost of unlabelled rows; None: ``C``.
    ramp : float or "cv", default=0.4
        Where the ramp ends.
    class_prior : "estimated", "labeled", None, float or dict, default="estimated"
        Shares of the classes among unlabelled rows.
    scale : {"trace", "variance"} or None, default="trace"
        What each kernel is divided by.
    weighting : {"learned", "uniform"}, default="learned"
        ``"uniform"``: equal weights, nothing learned.
    share_weights : bool, default=True
        For more than two classes, each against the rest: whether all machines share one set of learned weights, or each
        has its own.
    solver : {"newton", "projected_gradient", "reduced_gradient", "group_lasso"}, default="newton"
        How weights are learned, as in :class:`MKLClassifier`.
    annealing : bool, default=True
        Whether the cost of unlabelled rows starts low and doubles at each stage; this and what follows as in
        :class:`TSVMClassifier`.
    n_restarts : int, default=0
        Further fits from random starts; the best objective is kept.
    safe : bool, default=False
        Whether to ignore unlabelled rows unless they reduce the error on held-out labelled rows.
    tol : float, default=1e-4
        Relative accuracy of the convex machines, and distance from stationarity.
    max_iter : int, default=100
        Largest number of convex machines for each stage of the annealing.
    class_weight : None, "balanced" or dict, default=None
        Factors on ``C`` by class.
    unlabeled : "auto", None or marker, default="auto"
        What marks an unlabelled row in ``y``.
    dtype : {"float64", "float32"}, default="float64"
        Precision in which the kernel matrices are kept.
    callback : callable, optional
        ``callback(state)`` after each step, with a :class:`FitState`; a true return value stops the fit.
    max_time : float, optional
        Seconds that the fit may take. The best of what was reached by then is kept, with a warning; where nothing can
        be predicted yet, that is an error. Kernels at the rows are computed in any case.
    n_jobs : int, optional
        Machines of classes that are trained at the same time; -1: as many as there are cores. Has no influence on the
        result.
    verbose : int, default=0
        1 prints a line for each step.
    random_state : int, RandomState or None, default=None
        Seed of restarts, folds and the kernels' random draws.

    Attributes
    ----------
    weights_ : ndarray of shape (n_kernels,) or (n_classes, n_kernels)
        In library order; their norm is 1.
    kernel_weights_, source_weights_
        As in :class:`MKLClassifier`.
    objective_ : float or ndarray of shape (n_classes,)
        Value of the problem; one for each class where each has its own weights.
    classes_, transduction_, objective_path_, certificate_, C_, C_unlabeled_, ramp_, class_prior_, cv_results_
        As in :class:`TSVMClassifier`.
    expansion_, intercept_, support_, dual_coef_, n_evaluations_, status_, history_, n_iter_, n_solves_, library_
        As in :class:`TSVMClassifier`.
    n_features_in_, feature_names_in_
        As in :class:`TSVMClassifier`.

    See Also
    --------
    TSVMClassifier : One kernel.
    MKLClassifier : Learned sums of kernels without the loss of unlabelled rows.
    manifold_family : Kernels that follow the rows.

    Notes
    -----
    The paper's normaliser :math:`a_k` is the trace; with ``scale="trace"`` it is the trace of the centred kernel over
    the number of rows, so that ``C`` here is the paper's divided by that number. Use few kernels with mild
    deformations: the margin, which determines the weights, favours strong ones.

    ``SemiSupervisedCalibration(TSVMMKLClassifier())`` has ``predict_proba``, calibrated on held-out rows.

    References
    ----------
    X. Tian, G. Gasso, S. Canu. A multi-kernel framework for inductive semi-supervised learning. ESANN 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> from kernelweave import RBF, TSVMMKLClassifier, manifold_family
    >>> X, truth = make_moons(200, noise=0.1, random_state=0)
    >>> y = np.where(np.arange(200) < 20, truth, -1)  # 20 labels, 180 unlabelled rows
    >>> base = RBF(multiple=4.0)  # narrower than the default, which suits data of more than two columns
    >>> model = TSVMMKLClassifier([base, *manifold_family(base)]).fit(X, y)
    >>> bool(np.mean(model.transduction_ == truth) > 0.9), round(float(np.linalg.norm(model.weights_, 1.5)), 6)
    (True, 1.0)
    """

    _constraints = TRANSDUCTION_CONSTRAINTS | WEIGHTS_CONSTRAINTS | {"share_weights": BOOLEAN}

    def __init__(
        self,
        kernels: Any = None,
        *,
        norm: float = 1.5,
        C: float | str = 10.0,
        C_unlabeled: float | None = None,
        ramp: float | str = 0.4,
        class_prior: Any = "estimated",
        scale: str | None = "trace",
        weighting: str = "learned",
        share_weights: bool = True,
        solver: str = "newton",
        annealing: bool = True,
        n_restarts: int = 0,
        safe: bool = False,
        tol: float = 1e-4,
        max_iter: int = 100,
        class_weight: Any = None,
        unlabeled: Any = "auto",
        dtype: str = "float64",
        callback: Callable[[FitState], object] | None = None,
        max_time: float | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ):
        self.kernels = kernels
        self.norm = norm
        self.C = C
        self.C_unlabeled = C_unlabeled
        self.ramp = ramp
        self.class_prior = class_prior
        self.scale = scale
        self.weighting = weighting
        self.share_weights = share_weights
        self.solver = solver
        self.annealing = annealing
        self.n_restarts = n_restarts
        self.safe = safe
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.unlabeled = unlabeled
        self.dtype = dtype
        self.callback = callback
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from labelled and unlabelled rows.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            Labelled and unlabelled rows.
        y : array-like of shape (n_samples,)
            Labels; NaN, None and NA mark unlabelled rows, as does what ``unlabeled`` says.
        sample_weight : array-like of shape (n_samples,), optional
            Rows of weight zero are ignored altogether; neighbour graphs do not know other weights.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._check_parameters()
        owner = type(self).__name__
        params = self._parameters()
        machine = read_options(
            MachineOptions, params, owner=owner, norm=float(self.norm), deadline=Deadline(self.max_time)
        )
        sample = read_sample(self._read_rows(X, PRECISION), partition(y, unlabeled=self.unlabeled), sample_weight)
        shares = class_shares(owner, self.class_prior, sample.partition, SHARES_FROM_DATA)
        options = read_options(TransductionOptions, params, machine=machine, shares=shares)
        library = transductive_library(sample.X) if self.kernels is None else as_library(self.kernels)
        rng = self._rng()
        by_features = self.class_prior is not None
        require_machine_memory(
            owner,
            library,
            sample,
            sample.n_rows,
            self.dtype,
            MEMORY_ADVICE,
            by_features=by_features,
            smaller=[*fewer_kernels(library), *landmark_remedies(library)],
        )
        fit = fit_transduction(bind(library, sample, rng), sample, options, rng)
        return self._keep(sample, library, fit.machine, fit, classes_=sample.partition.classes.copy())

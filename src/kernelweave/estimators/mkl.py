r"""Multiple kernel learning: a support vector machine whose kernel is a learned sum of kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from ..labels import partition_targets
from ..parameters import BOOLEAN, LANDMARKS, POSITIVE, READ_LATER, one_of, read_options
from ..solvers.deadline import Deadline
from ..solvers.result import FitState
from .shared.in_sample import outputs_at_given
from .shared.machine import (
    MACHINE_CONSTRAINTS,
    PRECISION,
    PROGRESS_CONSTRAINTS,
    WEIGHTS_CONSTRAINTS,
    MachineOptions,
    announce_folds,
    bind_machine,
)
from .shared.machine_choice import fit_chosen_machine
from .shared.outputs import (
    KernelClassifier,
    KernelRegressor,
    labeled_accuracy,
    read_some_labels,
    transduce_classes,
    transduce_numbers,
)
from .shared.problems import EPSILON, class_problem, naming_large_numbers, number_problem
from .shared.sample import keep_labeled, read_sample

MKL_CONSTRAINTS = (
    MACHINE_CONSTRAINTS
    | WEIGHTS_CONSTRAINTS
    | PROGRESS_CONSTRAINTS
    | {"weighting": one_of("auto", "learned", "uniform"), "n_landmarks": LANDMARKS}
)


class MKLClassifier(KernelClassifier):
    r"""Classify with a support vector machine whose kernel is a learned sum of kernels, with a certificate.

    The kernel is :math:`K(w) = \sum_k w_k K_k / s_k` with weights :math:`w \ge 0` that sum to one, and

    .. math::
        J(w) = \min_{f, b, \xi} \; \tfrac12 \|f\|_{K(w)}^2 + \sum_i C_i\, \ell(\xi_i)
        \quad \text{s.t.} \quad y_i (f(x_i) + b) \ge 1 - \xi_i, \; \xi_i \ge 0

    is minimised over the weights; :math:`\ell(\xi)` is :math:`\xi` (``loss="hinge"``) or :math:`\tfrac12 \xi^2`
    (``"squared_hinge"``), and :math:`C_i` is ``C`` times sample and class weight. In the dual,

    .. math:: J(w) = \max_x \; y^\top x - \tfrac12 x^\top \Big(K(w) + R\Big) x, \quad
        \textstyle\sum_i x_i = 0, \quad x_i \text{ between } 0 \text{ and } y_i C_i ,

    with :math:`R = 0` for the hinge; for the squared hinge :math:`R = \mathrm{diag}(1/C_i)` and the box is open. With
    :math:`q_k = x^\top K_k x / s_k` the duality gap is at most :math:`\tfrac12 (\max_k q_k - w^\top q)` plus that of
    the machine.

    Parameters
    ----------
    kernels : None, Kernel, list of Kernel or KernelLibrary, default=None
        The library, of positive semi-definite kernels. ``None``: the views of :func:`table_library` where ``X`` looks
        like a table, with a different unit in each column; else linear, quadratic, and a family of RBF kernels around
        the mean squared distance. :func:`one_kernel_per_group` makes one for several sources.
    C : float, "cv" or "learned", default="cv"
        Cost of a margin violation. ``"cv"``: 10, unless 0.1, 1 or 100 predicts held-out labelled rows better by more
        than a standard error (5-fold cross-validation, repeated three times; 10 where there are too few rows).
        ``"learned"``, with the squared hinge and learned weights: the identity is added to the kernels, and its weight
        :math:`w_0` gives :math:`C = (1 - w_0) / w_0`.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        The loss :math:`\ell` above.
    norm : float, default=1
        1: the weights sum to one, and most are zero. ``p > 1``: :math:`\|w\|_p \le 1`, and none is zero.
    scale : {"trace", "variance"} or None, default="trace"
        :math:`s_k`. ``"trace"``: the mean diagonal of the centred kernel, so that all kernels have the same spread in
        their feature spaces. ``"variance"``: the rms entry of the centred kernel. ``None``: 1.
    weighting : {"auto", "learned", "uniform"}, default="auto"
        ``"learned"``: the weights that minimise J. ``"uniform"``: equal ones. ``"auto"``: equal ones, unless held-out
        labelled rows are predicted better with learned ones by more than a standard error. Learned weights favour
        flexible kernels, and find the sources that matter; equal ones are better where labels are few.
    n_landmarks : "auto", int or None, default="auto"
        Rows whose kernel values are the features of each kernel, drawn at random: each kernel is replaced by its
        Nystroem approximation, ``ManifoldKernel(kernel, ratio=0, n_landmarks=n_landmarks)``. None: kernels as they are,
        in matrices of all labelled rows. ``"auto"``: as they are at up to 20,000 labelled rows, if they fit into the
        memory of the machine, else 2000 landmarks, divided among the kernels.
    share_weights : bool, default=True
        For more than two classes, each against the rest: whether all machines share one set of learned weights, or each
        has its own.
    solver : {"newton", "projected_gradient", "reduced_gradient", "group_lasso"}, default="newton"
        Newton's method trains only a few machines. The others have the same optimum and serve as comparison: they train
        many, and may stall at a relative gap of 1e-3 ("group_lasso") or 1e-7 ("reduced_gradient").
    tol : float, default=1e-3
        Relative duality gap to reach.
    max_iter : int, default=1000
        Largest number of steps over the weights.
    class_weight : None, "balanced" or dict, default=None
        Factors on ``C`` by class.
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
        1 shows a progress bar on a terminal and a few lines elsewhere, 2 a line for each step.
    random_state : int, RandomState or None, default=None
        Seed of the kernels' random draws.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    weights_ : ndarray of shape (n_kernels,) or (n_classes, n_kernels)
        In library order; they sum to one where ``norm`` is 1.
    kernel_weights_ : list of dict, with a method ``to_frame``
        Name, source and weight of each kernel (the mean over classes where each has its own).
    source_weights_ : dict, with a method ``to_frame``
        Sum of the weights by source. Among nearly identical kernels the weight of each is arbitrary; that of their
        source is not.
    weighting_ : {"learned", "uniform"}
        How the weights were found.
    C_ : float or ndarray of shape (n_classes,)
        The cost used, or learned.
    cv_results_ : dict
        Results of the cross-validation, as in scikit-learn's ``GridSearchCV``; empty if nothing was chosen.
    transduction_ : ndarray of shape (n_samples,)
        The given label on labelled rows, the predicted one on the others.
    expansion_ : KernelExpansion
        The model that predicts.
    intercept_ : ndarray of shape (n_outputs,)
        The offset of each output: one for two classes, else one for each class.
    support_ : ndarray of shape (n_support,)
        Rows that are support vectors.
    dual_coef_ : ndarray of shape (n_samples, n_outputs)
        Signed duals.
    n_evaluations_ : int
        Kernel evaluations needed to predict one row.
    objective_ : float or ndarray of shape (n_classes,)
        J at the weights, summed over classes that share them.
    certificate_ : Certificate
        Proven duality gap (``gap``, ``relative``).
    status_ : Status
        Why the solver stopped.
    history_ : list of dict, with a method ``to_frame``
        One record per step.
    n_iter_, n_solves_ : int
        Steps over the weights, and machines trained.
    library_ : KernelLibrary
        The library used.
    n_features_in_ : int
        Number of columns of ``X``.
    feature_names_in_ : ndarray of shape (n_features,)
        Only if ``X`` had names.

    See Also
    --------
    MKLRegressor : The same for numbers.
    TSVMMKLClassifier : Learned sums of kernels with boundaries that avoid unlabelled rows.
    RKDAClassifier : Learned sums of kernels for discriminant analysis.
    KernelWeightsDisplay : Draws the weights.

    Notes
    -----
    The hinge is SM1, the squared hinge SM2, and ``C="learned"`` SM2_C of the RKDA paper's Table 1.

    All kernels are kept in memory; a fit that would exceed it raises MemoryError before any is computed. With landmarks
    these are features :math:`Z_k` of the labelled rows, the problem is the one above with :math:`K_k = Z_k Z_k^\top`,
    and ``objective_`` and ``certificate_`` are those of that problem, as ``certificate_.scope`` says.
    The hinge then needs no matrix of all rows; the squared hinge does.

    ``SemiSupervisedCalibration(MKLClassifier())`` has ``predict_proba``, calibrated on held-out rows; where all rows
    are labelled, so has scikit-learn's ``CalibratedClassifierCV``.

    References
    ----------
    A. Rakotomamonjy, F. R. Bach, S. Canu, Y. Grandvalet. SimpleMKL. JMLR 9, 2008.

    M. Kloft, U. Brefeld, S. Sonnenburg, A. Zien. lp-norm multiple kernel learning. JMLR 12, 2011.

    Examples
    --------
    >>> from sklearn.calibration import CalibratedClassifierCV
    >>> from sklearn.datasets import make_moons
    >>> from kernelweave import MKLClassifier
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> model = MKLClassifier().fit(X, y)
    >>> bool(model.certificate_.relative <= 1e-3), model.score(X, y) > 0.9, round(float(model.weights_.sum()), 6)
    (True, True, 1.0)
    >>> CalibratedClassifierCV(MKLClassifier(), ensemble=False).fit(X, y).predict_proba(X[:2]).shape
    (2, 2)
    """

    _constraints = MKL_CONSTRAINTS | {
        "C": POSITIVE | one_of("cv", "learned"),
        "loss": one_of("hinge", "squared_hinge"),
        "share_weights": BOOLEAN,
        "class_weight": READ_LATER,
    }

    def __init__(
        self,
        kernels: Any = None,
        *,
        C: float | str = "cv",
        loss: str = "hinge",
        norm: float = 1,
        scale: str | None = "trace",
        weighting: str = "auto",
        n_landmarks: int | str | None = "auto",
        share_weights: bool = True,
        solver: str = "newton",
        tol: float = 1e-3,
        max_iter: int = 1000,
        class_weight: Any = None,
        dtype: str = "float64",
        callback: Callable[[FitState], object] | None = None,
        max_time: float | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ):
        self.kernels = kernels
        self.C = C
        self.loss = loss
        self.norm = norm
        self.scale = scale
        self.weighting = weighting
        self.n_landmarks = n_landmarks
        self.share_weights = share_weights
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.dtype = dtype
        self.callback = callback
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the weights of the kernels and the machine.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            Labelled and unlabelled rows.
        y : array-like of shape (n_samples,)
            Labels; NaN, None and NA mark unlabelled rows, from which kernels learn widths, powers, trees and graphs. -1
            is a class like any other.
        sample_weight : array-like of shape (n_samples,), optional
            Rows of weight zero are ignored altogether.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._check_parameters()
        options = read_options(
            MachineOptions,
            self._parameters(),
            owner=type(self).__name__,
            norm=float(self.norm),
            deadline=Deadline(self.max_time),
        )
        squared = self.loss == "squared_hinge"
        if self.C == "learned" and (not squared or options.norm != 1 or self.weighting == "uniform"):
            raise ValueError(
                'MKLClassifier learns C with loss="squared_hinge", norm=1 and learned weights only; got '
                f"loss={self.loss!r}, norm={self.norm!r}, weighting={self.weighting!r}."
            )
        sample = read_sample(self._read_rows(X, PRECISION), read_some_labels(y, options.owner), sample_weight)
        rng = self._rng()
        everywhere, library, options = bind_machine(
            self.kernels, self.n_landmarks, sample, options, rng, by_features=not squared
        )
        bound, known = keep_labeled(everywhere, sample)
        problem = class_problem(known, self.class_weight)
        announce_folds(options, self.C, len(bound.kernels), known.n_rows)
        with naming_large_numbers(options.owner, sample):
            fit = fit_chosen_machine(bound, known, problem, options, self.C, rng, squared=squared)
        return self._keep(
            sample,
            library,
            fit,
            fit.machine,
            classes_=sample.partition.classes.copy(),
            transduction_=transduce_classes(outputs_at_given(fit.machine.expansion, everywhere, sample), sample),
        )

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy on the labelled rows of ``X``; -1 is a class like any other.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            Rows to predict.
        y : array-like of shape (n_samples,)
            Labels, NaN, None and NA mark unlabelled rows. At least one must be given.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows; all equal by default.

        Returns
        -------
        float
            The share of labelled rows whose class is predicted.
        """
        return labeled_accuracy(self.predict(X), y, sample_weight, None, self.classes_)


class MKLRegressor(KernelRegressor):
    r"""Predict numbers with a support vector machine whose kernel is a learned sum of kernels, with a certificate.

    The epsilon-insensitive form of :class:`MKLClassifier`: over the weights,

    .. math::
        J(w) = \min_{f, b, \xi, \eta} \; \tfrac12 \|f\|_{K(w)}^2 + \sum_i C_i (\ell(\xi_i) + \ell(\eta_i))
        \quad \text{s.t.} \quad -\varepsilon - \eta_i \le y_i - f(x_i) - b \le \varepsilon + \xi_i

    is minimised, where :math:`\ell(\xi)` is :math:`\xi` (``loss="epsilon_insensitive"``) or :math:`\tfrac12 \xi^2`.

    Parameters
    ----------
    kernels : None, Kernel, list of Kernel or KernelLibrary, default=None
        The library, as in :class:`MKLClassifier`.
    C : float or "cv", default="cv"
        Cost of an error beyond ``epsilon``. ``"cv"``: ten times the standard deviation of ``y``, unless held-out rows
        are predicted better with 0.1, 1 or 100 times that.
    epsilon : float or "auto", default="auto"
        Errors up to this, in units of ``y``, cost nothing. ``"auto"``: a tenth of the (weighted) standard deviation of
        ``y``.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}, default="epsilon_insensitive"
        The loss :math:`\ell` above.
    norm : float, default=1
        Norm of the weights; this and what follows as in :class:`MKLClassifier`.
    scale : {"trace", "variance"} or None, default="trace"
        What each kernel is divided by.
    weighting : {"auto", "learned", "uniform"}, default="auto"
        Whether weights are learned or equal, or whichever predicts held-out rows better.
    n_landmarks : "auto", int or None, default="auto"
        Rows whose kernel values are the features of each kernel.
    solver : {"newton", "projected_gradient", "reduced_gradient", "group_lasso"}, default="newton"
        How weights are learned.
    tol : float, default=1e-3
        Relative duality gap to reach.
    max_iter : int, default=1000
        Largest number of steps over the weights.
    dtype : {"float64", "float32"}, default="float64"
        Precision in which the kernel matrices are kept.
    callback : callable, optional
        ``callback(state)`` after each step, with a :class:`FitState`; a true return value stops the fit.
    max_time : float, optional
        Seconds that the fit may take. The best of what was reached by then is kept, with a warning; where nothing can
        be predicted yet, that is an error. Kernels at the rows are computed in any case.
    n_jobs : int, optional
        Has no influence: there is one problem.
    verbose : int, default=0
        1 prints a line for each step.
    random_state : int, RandomState or None, default=None
        Seed of the kernels' random draws.

    Attributes
    ----------
    weights_, kernel_weights_, source_weights_, weighting_, C_, cv_results_, transduction_, expansion_, intercept_
        As in :class:`MKLClassifier`.
    support_, dual_coef_, n_evaluations_
        As in :class:`MKLClassifier`.
    objective_, certificate_, status_, history_, n_iter_, n_solves_, library_, n_features_in_, feature_names_in_
        As in :class:`MKLClassifier`.

    See Also
    --------
    MKLClassifier : The same for classes.
    LearnedKernelRegressor : A kernel learned by its alignment with the numbers.
    AutoKernelRegressor : Combines many learners.

    References
    ----------
    A. Rakotomamonjy, F. R. Bach, S. Canu, Y. Grandvalet. SimpleMKL. JMLR 9, 2008.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import MKLRegressor
    >>> X = np.linspace(0, 6, 100)[:, None]
    >>> model = MKLRegressor(epsilon=0.01).fit(X, np.sin(X[:, 0]))
    >>> bool(np.abs(model.predict(X) - np.sin(X[:, 0])).max() < 0.1)
    True
    """

    _constraints = MKL_CONSTRAINTS | {
        "C": POSITIVE | one_of("cv"),
        "epsilon": EPSILON,
        "loss": one_of("epsilon_insensitive", "squared_epsilon_insensitive"),
    }

    def __init__(
        self,
        kernels: Any = None,
        *,
        C: float | str = "cv",
        epsilon: float | str = "auto",
        loss: str = "epsilon_insensitive",
        norm: float = 1,
        scale: str | None = "trace",
        weighting: str = "auto",
        n_landmarks: int | str | None = "auto",
        solver: str = "newton",
        tol: float = 1e-3,
        max_iter: int = 1000,
        dtype: str = "float64",
        callback: Callable[[FitState], object] | None = None,
        max_time: float | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ):
        self.kernels = kernels
        self.C = C
        self.epsilon = epsilon
        self.loss = loss
        self.norm = norm
        self.scale = scale
        self.weighting = weighting
        self.n_landmarks = n_landmarks
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.dtype = dtype
        self.callback = callback
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the weights of the kernels and the machine.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            Labelled and unlabelled rows.
        y : array-like of shape (n_samples,)
            Numbers; NaN, None and NA mark unlabelled rows, from which kernels learn widths, powers, trees and graphs.
        sample_weight : array-like of shape (n_samples,), optional
            Rows of weight zero are ignored altogether.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._check_parameters()
        options = read_options(
            MachineOptions,
            self._parameters(),
            owner=type(self).__name__,
            norm=float(self.norm),
            deadline=Deadline(self.max_time),
        )
        squared = self.loss == "squared_epsilon_insensitive"
        sample = read_sample(self._read_rows(X, PRECISION), partition_targets(y), sample_weight)
        rng = self._rng()
        everywhere, library, options = bind_machine(
            self.kernels, self.n_landmarks, sample, options, rng, by_features=not squared
        )
        bound, known = keep_labeled(everywhere, sample)
        problem = number_problem(known, self.epsilon)
        if squared:
            problem.require_squares(options.owner)
        announce_folds(options, self.C, len(bound.kernels), known.n_rows)
        with naming_large_numbers(options.owner, sample):
            fit = fit_chosen_machine(bound, known, problem, options, self.C, rng, squared=squared)
        transduction = transduce_numbers(outputs_at_given(fit.machine.expansion, everywhere, sample), sample)
        return self._keep(sample, library, fit, fit.machine, transduction_=transduction)

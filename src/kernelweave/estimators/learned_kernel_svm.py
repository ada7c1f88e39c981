"""Support vector machines on learned kernels; what is not given is chosen by labelled folds."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

from sklearn.base import clone
from sklearn.utils import Tags

from ..kernels.defaults import deformed_kernels, design_kernels
from ..kernels.manifold import MAX_EXACT_ROWS
from ..kernels.partitioned import draw_rows
from ..labels import partition, partition_targets
from ..parameters import POSITIVE, READ_LATER, one_of, read_options, require
from ..solvers.deadline import Deadline
from .kernel_learners import AlignedKernelLearner, LabelAwareKernelLearner, Learner
from .shared.in_sample import transduce
from .shared.learned_kernel_svm import LearnedMachineOptions, fit_learned_machine
from .shared.outputs import KernelClassifier, KernelRegressor
from .shared.partitioned import LabelRule, bring_to_memory
from .shared.problems import EPSILON, class_problem, naming_large_numbers, number_problem
from .shared.progress import LIMIT_CONSTRAINTS
from .shared.target import Target, read_target

MAX_VECTORS, N_LANDMARKS = 150, 300  # of the default learner with eigenvectors; landmarks above 2000 rows
LEARNED_CONSTRAINTS = {
    "learner": READ_LATER,
    "C": POSITIVE | one_of("cv"),
    "tol": POSITIVE,
    "random_state": READ_LATER,
} | LIMIT_CONSTRAINTS


class LearnedKernelClassifier(KernelClassifier):
    r"""Classify with a support vector machine on a kernel that is learned from labelled and unlabelled rows.

    .. math:: \min_{f, b}\; \tfrac12 \|f\|_{\tilde k}^2 + \sum_{i \in L} C_i \max(0, 1 - y_i (f(x_i) + b)) ,

    with :math:`\tilde k` from a kernel learner, such as :class:`LabelAwareKernelLearner`. What is left open is chosen
    by cross-validation of the labelled rows. The kernel is learned anew in each fold, since one that has seen a label
    predicts it too well; held-out rows take part without their labels.

    Parameters
    ----------
    learner : kernel learner, list of kernel learners or None, default=None
        What learns the kernel. Of a list, the first, unless with another one held-out rows are predicted better by more
        than a standard error of the difference. None: one of three. Label-aware vectors without own labels (with them
        where a class has one labelled row) beside linear, Gaussian and (up to 10,000 rows) deformed kernels, each
        weighed by its own alignment; the linear and a wide Gaussian kernel; or label-aware vectors beside eigenvectors,
        weighed together. What a learner itself says about ``y`` (``target``, ``unlabeled``) is not looked at.
    C : float or "cv", default="cv"
        Cost of a margin violation, for a learned kernel whose mean diagonal is 1; ``"cv"``: one of 0.1, 1, 10 and 100,
        and 10 where a class has fewer than three labelled rows.
    tol : float, default=1e-3
        Relative duality gap to reach.
    class_weight : None, "balanced" or dict, default=None
        Factors on ``C`` by class.
    unlabeled : "auto", None or marker, default="auto"
        What marks an unlabelled row in ``y``, as in :class:`SSMKClassifier`.
    max_time : float, optional
        Seconds that the fit may take. The best of what was reached by then is kept, with a warning; where nothing can
        be predicted yet, that is an error. Kernels at the rows are computed in any case.
    n_jobs : int, optional
        Machines of classes that are trained at the same time; -1: as many as there are cores. Has no influence on the
        result.
    verbose : int, default=0
        1 and 2 print a line for each learner and fold.
    random_state : int, RandomState or None, default=None
        Seed of folds, and of what kernels draw at random for learners without a seed of their own.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    learner_ : kernel learner
        Fitted; of a list, the chosen one. Its ``kernel_`` is tied to the labelled rows alone.
    C_ : float
        The cost used.
    cv_results_ : dict
        Accuracy in the folds for each learner (by its place in the list) and ``C``, as in scikit-learn's
        ``GridSearchCV``; folds count by their held-out rows. Empty where nothing was to choose.
    weights_ : ndarray of shape (n_base_kernels,)
        Those of the learner.
    transduction_ : ndarray of shape (n_samples,)
        The given label on labelled rows, the predicted one on the others.
    expansion_, intercept_, support_, dual_coef_, n_evaluations_, objective_, certificate_, status_, history_, n_iter_
        As in :class:`MKLClassifier`; the certificate is that of the machine, ``learner_.certificate_`` the kernel's.
    n_solves_, library_, n_features_in_, feature_names_in_
        As in :class:`MKLClassifier`.

    See Also
    --------
    LearnedKernelRegressor : The same for numbers.
    LabelAwareKernelLearner : Learns the kernel from votes of labelled rows and from eigenvectors.
    MKLClassifier : Learns kernel weights and machine together.

    Notes
    -----
    More than two classes: each against the rest, on one kernel. ``decision_function(X, split=True)`` splits the value
    into what label-aware vectors, eigenvectors and each whole kernel add.

    ``SemiSupervisedCalibration(LearnedKernelClassifier())`` has ``predict_proba``, calibrated on held-out rows.

    References
    ----------
    Q. Wang, K. Zhang, G. Jiang, I. Marsic. Improving semi-supervised target alignment via label-aware base kernels.
    AAAI 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from kernelweave import LearnedKernelClassifier
    >>> X, digits = load_digits(n_class=4, return_X_y=True)
    >>> y = np.where(np.arange(len(X)) % 18 == 0, digits, -1)  # 40 labels, 680 unlabelled rows
    >>> model = LearnedKernelClassifier(random_state=0).fit(X, y)
    >>> bool(np.mean(model.transduction_ == digits) > 0.98)
    True
    """

    _constraints = LEARNED_CONSTRAINTS | {"class_weight": READ_LATER, "unlabeled": READ_LATER}

    def __init__(
        self,
        learner: Any = None,
        *,
        C: float | str = "cv",
        tol: float = 1e-3,
        class_weight: Any = None,
        unlabeled: Any = "auto",
        max_time: float | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ):
        self.learner = learner
        self.C = C
        self.tol = tol
        self.class_weight = class_weight
        self.unlabeled = unlabeled
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, X_unlabeled: Any = None) -> Self:
        """Learn the kernel and the machine.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            Labelled and unlabelled rows; also a Dask array or frame.
        y : array-like of shape (n_samples,)
            Labels; NaN, None and NA mark unlabelled rows, as does what ``unlabeled`` says.
        sample_weight : array-like of shape (n_samples,), optional
            Rows of weight zero are ignored altogether; eigenvectors do not know other weights.
        X_unlabeled : array, sparse matrix, frame or Dask collection, optional
            More rows, without labels.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._check_parameters()
        options = read_options(
            LearnedMachineOptions,
            self._parameters(),
            owner=type(self).__name__,
            deadline=Deadline(self.max_time),
        )
        read, rule = partial(partition, unlabeled=self.unlabeled), LabelRule("classes", self.unlabeled)
        sample, partitions = bring_to_memory(self._read_sample(X, y, sample_weight, X_unlabeled, read, rule))
        target = read_target(sample)
        seen = sample.X if partitions is None else draw_rows(partitions.rows.X)
        learners = copy_learners(options.owner, self.learner, seen, target)
        problem = class_problem(sample, self.class_weight)
        designs = [learner.design() for learner in learners]
        with naming_large_numbers(options.owner, sample):
            fit = fit_learned_machine(designs, sample, target, problem, options, self._rng(), partitions)
        return self._keep(
            sample,
            fit.kernel.library,
            fit,
            learner_=learners[fit.place].keep_kernel(sample, fit.kernel),
            classes_=sample.partition.classes.copy(),
            transduction_=transduce(fit.expansion, sample, partial(fit.outputs, sample)),
        )

    def _allows_missing(self) -> bool:
        return allow_missing(type(self).__name__, self.learner)


class LearnedKernelRegressor(KernelRegressor):
    r"""Predict numbers with support vector regression on a kernel that is learned from labelled and unlabelled rows.

    .. math:: \min_{f, b}\; \tfrac12 \|f\|_{\tilde k}^2 + \sum_{i \in L} C_i \max(0, |y_i - f(x_i) - b| - \epsilon)

    for each output, on one learned kernel. Label-aware vectors are here estimates of the targets themselves.

    Parameters
    ----------
    learner : kernel learner, list of kernel learners or None, default=None
        What learns the kernel, as in :class:`LearnedKernelClassifier`; None has narrow kernels, too.
    C : float or "cv", default="cv"
        Cost of an error; ``"cv"``: 0.1, 1, 10 or 100 times the standard deviation of each target.
    epsilon : float or "auto", default="auto"
        Errors up to it cost nothing; in units of the targets. ``"auto"``: a tenth of the (weighted) standard deviation
        of each target.
    tol : float, default=1e-3
        Relative duality gap to reach.
    max_time : float, optional
        Seconds that the fit may take. The best of what was reached by then is kept, with a warning; where nothing can
        be predicted yet, that is an error. Kernels at the rows are computed in any case.
    n_jobs : int, optional
        Machines of outputs that are trained at the same time. Has no influence on the result.
    verbose : int, default=0
        1 and 2 print a line for each learner and fold.
    random_state : int, RandomState or None, default=None
        Seed of folds, and of what kernels draw at random for learners without a seed of their own.

    Attributes
    ----------
    learner_, C_, cv_results_, weights_, transduction_, expansion_, intercept_, support_, dual_coef_, n_evaluations_
        As in :class:`LearnedKernelClassifier`; ``C_`` holds one cost for each target where it was chosen, and
        ``cv_results_`` negative mean squared errors in units of the variance of each target.
    objective_, certificate_, status_, history_, n_iter_, n_solves_, library_, n_features_in_, feature_names_in_
        As in :class:`LearnedKernelClassifier`.

    See Also
    --------
    LearnedKernelClassifier : The same for classes.
    MKLRegressor : Learns kernel weights and machine together.

    References
    ----------
    Q. Wang, K. Zhang, G. Jiang, I. Marsic. Improving semi-supervised target alignment via label-aware base kernels.
    AAAI 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import LearnedKernelRegressor
    >>> X = np.linspace(0, 6, 200)[:, None]
    >>> truth = np.column_stack([np.sin(X[:, 0]), np.cos(X[:, 0])])
    >>> y = np.where(np.arange(200)[:, None] % 10 == 0, truth, np.nan)  # 20 labels
    >>> model = LearnedKernelRegressor(epsilon=0.01, random_state=0).fit(X, y)
    >>> bool(np.abs(model.predict(X) - truth).max() < 0.1)
    True
    """

    _constraints = LEARNED_CONSTRAINTS | {"epsilon": EPSILON}

    def __init__(
        self,
        learner: Any = None,
        *,
        C: float | str = "cv",
        epsilon: float | str = "auto",
        tol: float = 1e-3,
        max_time: float | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ):
        self.learner = learner
        self.C = C
        self.epsilon = epsilon
        self.tol = tol
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, X_unlabeled: Any = None) -> Self:
        """Learn the kernel and the machine.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            Labelled and unlabelled rows; also a Dask array or frame.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Numbers; NaN, None and NA mark unlabelled rows.
        sample_weight : array-like of shape (n_samples,), optional
            Rows of weight zero are ignored altogether; eigenvectors do not know other weights.
        X_unlabeled : array, sparse matrix, frame or Dask collection, optional
            More rows, without labels.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._check_parameters()
        options = read_options(
            LearnedMachineOptions,
            self._parameters(),
            owner=type(self).__name__,
            deadline=Deadline(self.max_time),
        )
        read, rule = partial(partition_targets, several=True), LabelRule("numbers", several=True)
        sample, partitions = bring_to_memory(self._read_sample(X, y, sample_weight, X_unlabeled, read, rule))
        target = read_target(sample)
        seen = sample.X if partitions is None else draw_rows(partitions.rows.X)
        learners = copy_learners(options.owner, self.learner, seen, target)
        problem = number_problem(sample, self.epsilon)
        designs = [learner.design() for learner in learners]
        with naming_large_numbers(options.owner, sample):
            fit = fit_learned_machine(designs, sample, target, problem, options, self._rng(), partitions)
        return self._keep(
            sample,
            fit.kernel.library,
            fit,
            learner_=learners[fit.place].keep_kernel(sample, fit.kernel),
            transduction_=transduce(fit.expansion, sample, partial(fit.outputs, sample)),
        )

    def _allows_missing(self) -> bool:
        return allow_missing(type(self).__name__, self.learner)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def copy_learners(owner: str, learner: Any, X: Any, target: Target) -> list[Learner]:
    """Return copies of the learners to choose from; None means those of the default for such data."""
    return default_learners(X, target) if learner is None else [clone(each) for each in given_learners(owner, learner)]


def given_learners(owner: str, learner: Any) -> list[Learner]:
    """Return the learners that a user gave; refuse what is none."""
    given = list(learner) if isinstance(learner, list | tuple) else [learner]
    for each in given:
        if not isinstance(each, Learner):
            raise TypeError(
                f"{owner} takes a kernel learner such as LabelAwareKernelLearner(), or a list of them to choose from; "
                f"got {each!r} of type {type(each).__name__}."
            )
    require(owner, "learner", learner, bool(given), "at least one kernel learner")
    return given


def allow_missing(owner: str, learner: Any) -> bool:
    """Return whether all learners say what a missing value means; those of the default do not."""
    if learner is None:
        return False
    return all(each.design().library.allows_missing for each in given_learners(owner, learner))


def default_learners(X: Any, target: Target) -> list[Learner]:
    """Return the learners that ``learner=None`` means for such data.

    What helps differs so much between data that folds decide: many kernels, deformed ones among them; wide ones only,
    where rows are noisy; or eigenvectors. For numbers also narrow ones, since these may follow rows closely.
    """
    n_rows, leave_one_out = X.shape[0], target.fewest > 1
    family = design_kernels(X)
    many = LabelAwareKernelLearner(
        family.single,
        n_eigenvectors=0,
        leave_one_out=leave_one_out,
        weighting="align",
        extra_kernels=[*family.plain, *deformed_kernels(X)],
    )
    wide = AlignedKernelLearner(family.wide, weighting="align")
    spectral = LabelAwareKernelLearner(
        family.single,
        n_eigenvectors=min(MAX_VECTORS, -(-n_rows // 10)),
        leave_one_out=leave_one_out,
        ridge=0.1,
        n_landmarks=None if n_rows <= MAX_EXACT_ROWS else N_LANDMARKS,
    )
    if target.is_classes:
        return [many, wide, spectral]
    narrow = LabelAwareKernelLearner(
        family.narrow[-1],
        n_eigenvectors=0,
        leave_one_out=leave_one_out,
        weighting="align",
        extra_kernels=family.narrow,
    )
    return [many, wide, spectral, narrow]

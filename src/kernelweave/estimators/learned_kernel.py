"""Support vector machines on learned kernels; what is not given is chosen by labelled folds."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from ..kernels.base import ALL, batches
from ..kernels.defaults import deformed_kernels
from ..kernels.features import BoundFeatures
from ..kernels.library import KernelLibrary
from ..kernels.manifold import EXACT_ROWS
from ..kernels.pointwise import RBF, Linear, rbf_family
from ..model_selection import SemiSupervisedSplit
from ..solvers.alignment import RankOnes
from ..solvers.machines.kernel_stack import Factor, KernelStack, Member
from ..solvers.machines.kernel_weights import WeightsResult
from ..solvers.margin import DualProblem
from .base import Sample, class_weights, is_positive, require
from .composite import CompositeModel, regression_dual, train_uniform
from .kernel_design import AlignedKernelLearner, LabelAwareKernelLearner
from .kernel_learner import KernelLearner, Learned, Prepared, Target, mean_diagonals
from .outputs import NumberOutputs, SemiSupervisedClasses, SemiSupervisedNumbers, winners
from .shared.stacks import CONSTANT

GRID_C = (10.0, 1.0, 100.0, 0.1)  # what folds choose from; of equals the first
N_FOLDS = 5
MOST_VECTORS, N_LANDMARKS = 150, 300  # of the default learner with eigenvectors; landmarks above 2000 rows
NARROW = 20.0  # times the usual gamma: narrow kernels of the default for numbers
EPS = float(np.finfo(float).eps)
FEWEST = 3  # labelled rows of a class, below which nothing is held out


@dataclass(frozen=True, eq=False)
class Machine:
    """A support vector machine on a learned kernel.

    Attributes
    ----------
    learned : Learned
    used : ndarray of shape (n_members,)
        What multiplies each member of the learned kernel.
    coef : ndarray of shape (n_labeled, n_outputs)
    intercept : ndarray of shape (n_outputs,)
    result : WeightsResult
    """

    learned: Learned
    used: np.ndarray
    coef: np.ndarray
    intercept: np.ndarray
    result: WeightsResult

    def at(self, rows: np.ndarray | slice) -> np.ndarray:
        """Return the outputs at some rows of the sample, shape (n_rows, n_outputs)."""
        learned = self.learned
        numbers = np.arange(learned.members[0].n_rows)[rows]
        out = np.tile(self.intercept, (len(numbers), 1))
        for member, factor in zip(learned.members, self.used, strict=True):
            if isinstance(member, BoundFeatures):
                folded = member.weights[:, None] * (member.Z[learned.rows].T @ self.coef)
                out += factor * (member.Z[numbers] @ folded)
            elif factor:
                for part in batches(len(numbers), 2 * len(learned.rows)):
                    out[part] += factor * (member.block(numbers[part], learned.rows) @ self.coef)
        return out


class LearnedKernelEstimator(CompositeModel):
    """What classifiers and regressors on learned kernels share."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the kernel and the machine.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), or (n_samples, n_outputs) for numbers
            Labels; NaN, None and NA mark unlabelled rows.
        sample_weight : array-like of shape (n_samples,), optional
            Rows of weight zero are ignored altogether; eigenvectors do not know other weights.

        Returns
        -------
        self
        """
        self._check_params()
        sample = self._check_fit(X, y, sample_weight, self._library())
        target, rng = Target.of(sample), self._rng()
        candidates = self._candidates(sample, rng)
        place, C = self._chosen(candidates, sample, target, int(rng.integers(2**31)))
        learner, prepared = candidates[place]
        learned = learner._learn(prepared, target)
        machine = self._train(learned, kernel_stack(learned), sample, C)
        labeled = sample.restrict(np.isin(np.arange(len(sample.kept)), target.rows))
        self._keep_labels(sample)
        self._keep_expansion(machine.used[None], machine.coef, machine.intercept, learned.at_labeled(), labeled)
        self._keep_duals(machine.coef, labeled)
        self._keep_course([machine.result], machine.result.n_solves)
        learner._keep(learned)
        self.learner_, self.C_, self.weights_ = learner, C, learner.weights_
        self.library_ = learner._library()
        self._keep_outputs(machine.at(ALL), X, sample)
        return self

    def _candidates(self, sample: Sample, rng: np.random.Generator) -> list[tuple[KernelLearner, Prepared]]:
        """Return the learners to choose from, with what they know without labels; what they share is found once."""
        candidates: list[tuple[KernelLearner, Prepared]] = []
        known: dict[Any, Any] = {}
        seed = int(rng.integers(2**31))
        for learner in self._learners(sample.X, Target.of(sample)):
            learner.n_features_in_ = self.n_features_in_
            if hasattr(self, "feature_names_in_"):
                learner.feature_names_in_ = self.feature_names_in_
            if learner.random_state is None:
                candidates.append((learner, learner._prepare(sample, np.random.default_rng(seed), known)))
            else:  # draws for itself, so that nothing is shared
                candidates.append((learner, learner._prepare(sample, learner._rng(), {})))
        return candidates

    def _learners(self, X: Any = None, target: Target | None = None) -> list[KernelLearner]:
        """Return copies of the learners to choose from."""
        given = default_learners(X, target) if self.learner is None else self.learner
        given = list(given) if isinstance(given, list | tuple) else [given]
        for each in given:
            if not isinstance(each, KernelLearner):
                raise TypeError(
                    f"{type(self).__name__} takes a kernel learner such as LabelAwareKernelLearner(), or a list of "
                    f"them to choose from; got {each!r} of type {type(each).__name__}."
                )
        require(type(self).__name__, "learner", self.learner, bool(given), "at least one kernel learner")
        copies = [clone(each) for each in given]
        for each in copies:
            each._check_params()
        return copies

    def _chosen(
        self, candidates: list[tuple[KernelLearner, Prepared]], sample: Sample, target: Target, seed: int
    ) -> tuple[int, Any]:
        """Return the learner, and the cost, with which rows are predicted well that were held out.

        Of the costs the best; of the learners the first, unless another is better by more than a standard error.
        """
        costs = [C * self._cost_unit(sample) for C in GRID_C] if _is_cv(self.C) else [float(self.C)]
        self.cv_results_: list[dict[str, Any]] = []
        folds = self._folds(target, seed) if len(costs) * len(candidates) > 1 else []
        if not folds:
            return 0, costs[0]
        total = sum(float(target.weight[held].sum()) for _, held in folds)
        alone = replace(target, rows=np.arange(len(target.rows)))
        chosen, lowest = (0, 0), np.full(len(target.rows), np.inf)
        for k, (learner, prepared) in enumerate(candidates):
            losses, labeled = np.zeros((len(costs), len(target.rows))), prepared.restrict(target.rows)
            for kept, held in folds:
                learned = learner._learn(labeled, alone.restrict(kept))
                stack = kernel_stack(learned)
                for i, C in enumerate(costs):
                    machine = self._train(learned, stack, sample, C, kept)
                    losses[i, held] = target.weight[held] * self._losses(machine.at(held), sample, held)
            for C, loss in zip(costs, losses.sum(axis=1) / total, strict=True):
                self.cv_results_.append({"learner": k, "C": C, "loss": float(loss)})
            best = int(losses.sum(axis=1).argmin())
            gains = lowest - losses[best]
            if k == 0 or gains.sum() > np.sqrt(np.square(gains).sum()):
                chosen, lowest = (k, best), losses[best]
        return chosen[0], costs[chosen[1]]

    def _train(
        self, learned: Learned, stack: KernelStack, sample: Sample, C: Any, kept: np.ndarray | slice = ALL
    ) -> Machine:
        """Train the machines of all outputs; ``kept`` are the labelled rows that the kernel was learned from."""
        problems = self._problems(sample, C, kept)
        result = train_uniform(stack, problems, np.zeros(stack.n_points), 1.0, self.tol)
        if result.certificate.kind != "duality gap":
            raise ValueError(
                f"The learned kernel is not positive semi-definite, as {type(self).__name__} requires. "
                "KernelLibrary(...).diagnose(X) shows which of the extra kernels is not; leave it out."
            )
        coef = np.zeros((stack.n_points, len(problems)))
        for c, (problem, x) in enumerate(zip(problems, result.duals, strict=True)):
            coef[:, c] = np.bincount(problem.rows, weights=x, minlength=len(coef))
        intercept = -np.array(result.multipliers, dtype=float)
        return Machine(learned, learned.factors / stack.scales[0], coef, intercept, result)

    def _cost_unit(self, sample: Sample) -> Any:
        """Return what costs are multiples of."""
        return 1.0

    def _folds(self, target: Target, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return labelled rows to learn from and to hold out; none where a class has too few."""
        if target.fewest < FEWEST:
            return []
        codes = target.values.argmax(axis=1) if target.is_classes else np.arange(len(target.rows))
        kind = "classes" if target.is_classes else "numbers"
        split = SemiSupervisedSplit(min(N_FOLDS, target.fewest), target=kind, unlabeled=None, random_state=seed)
        # from rows of one and the same number nothing is learned
        return [(kept, held) for kept, held in split.split(codes, codes) if np.ptp(target.values[kept], axis=0).any()]

    def _check_params(self) -> None:
        super(CompositeModel, self)._check_params()  # not what a weighted sum of kernels leaves open
        require(type(self).__name__, "tol", self.tol, is_positive(self.tol), "a positive number")
        holds = _is_cv(self.C) or is_positive(self.C)
        require(type(self).__name__, "C", self.C, holds, 'a positive finite number or "cv"')

    def _library(self) -> KernelLibrary:
        libraries = [learner._library() for learner in self._learners()]
        return min(libraries, key=lambda library: library.allows_missing)  # values may be missing if all allow it

    def _precisions(self) -> list[Any]:
        return [np.float64, np.float32]

    @abstractmethod
    def _problems(self, sample: Sample, C: Any, kept: np.ndarray | slice) -> list[DualProblem]:
        """State the dual of each output, for some of the labelled rows."""

    @abstractmethod
    def _losses(self, values: np.ndarray, sample: Sample, held: np.ndarray) -> np.ndarray:
        """Return the loss of outputs at each of some held-out labelled rows."""

    @abstractmethod
    def _keep_outputs(self, values: np.ndarray, X: Any, sample: Sample) -> None:
        """Keep what is predicted for the rows of the fit."""


class LearnedKernelClassifier(SemiSupervisedClasses, LearnedKernelEstimator):
    r"""Classify with a support vector machine on a kernel that is learned from labelled and unlabelled rows.

    .. math:: \min_{f, b}\; \tfrac12 \|f\|_{\tilde k}^2 + \sum_{i \in L} C_i \max(0, 1 - y_i (f(x_i) + b)) ,

    with :math:`\tilde k` from a kernel learner, such as :class:`LabelAwareKernelLearner`. What is left open is chosen
    by cross-validation of the labelled rows. The kernel is learned anew in each fold, since one that has seen a label
    predicts it too well; held-out rows take part without their labels.

    Parameters
    ----------
    learner : kernel learner, list of kernel learners or None, default=None
        Of a list, the first, unless with another one held-out rows are predicted better by more than a standard error
        of the difference. None: one of three. Label-aware vectors without own labels (with them where a class has one
        labelled row) beside linear, Gaussian and (up to 10,000 rows) deformed kernels, each weighed by its own
        alignment; the linear and a wide Gaussian kernel; or label-aware vectors beside eigenvectors, weighed together.
        What a learner itself says about ``y`` (``target``, ``unlabeled``) is not looked at.
    C : float or "cv", default="cv"
        Cost of a margin violation, for a learned kernel whose mean diagonal is 1; ``"cv"``: one of 0.1, 1, 10 and 100,
        and 10 where a class has fewer than three labelled rows.
    tol : float, default=1e-3
        Relative duality gap to reach.
    class_weight : None, "balanced" or dict, default=None
        Factors on ``C`` by class.
    unlabeled : "auto" or marker, default="auto"
        What marks an unlabelled row in ``y``. ``"auto"``: NaN, None, NA, or -1 beside at least two other classes.
    random_state : int, RandomState or None, default=None
        Seed of folds, and of what kernels draw at random for learners without a seed of their own.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    learner_ : kernel learner
        Fitted; of a list, the chosen one.
    C_ : float
    cv_results_ : list of dict
        Share of errors in the folds for each learner and ``C``; empty where nothing was to choose.
    weights_ : ndarray of shape (n_base_kernels,)
        Of the learner.
    transduction_ : ndarray of shape (n_samples,)
        The given label on labelled rows, the predicted one on the others.
    expansion_, intercept_, support_, dual_, n_evaluations_, objective_, certificate_, status_, history_, n_iter_
        As in :class:`MKLClassifier`; the certificate is that of the machine, ``learner_.certificate_`` the kernel's.
    library_, n_features_in_, feature_names_in_
        As in :class:`MKLClassifier`.

    Notes
    -----
    More than two classes: each against the rest, on one kernel. ``decision_function(X, split=True)`` splits the value
    into what label-aware vectors, eigenvectors and each whole kernel add.

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

    def __init__(
        self,
        learner: Any = None,
        *,
        C: float | str = "cv",
        tol: float = 1e-3,
        class_weight: Any = None,
        unlabeled: Any = "auto",
        random_state: Any = None,
    ):
        self.learner = learner
        self.C = C
        self.tol = tol
        self.class_weight = class_weight
        self.unlabeled = unlabeled
        self.random_state = random_state

    def _problems(self, sample: Sample, C: Any, kept: np.ndarray | slice) -> list[DualProblem]:
        found = sample.partition
        weight = sample.weight[found.labeled]
        cost = (C * weight * class_weights(self.class_weight, found, weight))[kept]
        signs = [found.signs(k)[kept] for k in ([1] if found.n_classes == 2 else range(found.n_classes))]
        return [DualProblem(-y, np.minimum(0.0, y * cost), np.maximum(0.0, y * cost)) for y in signs]

    def _losses(self, values: np.ndarray, sample: Sample, held: np.ndarray) -> np.ndarray:
        return (winners(values) != sample.partition.codes[held]).astype(float)

    def _keep_outputs(self, values: np.ndarray, X: Any, sample: Sample) -> None:
        if len(sample.kept) < sample.n_given:
            self._keep_transduction(X, sample)
            return
        self.transduction_ = self.classes_[winners(values)]
        self.transduction_[sample.given.labeled] = sample.given.labels


class LearnedKernelRegressor(SemiSupervisedNumbers, NumberOutputs, LearnedKernelEstimator):
    r"""Predict numbers with support vector regression on a kernel that is learned from labelled and unlabelled rows.

    .. math:: \min_{f, b}\; \tfrac12 \|f\|_{\tilde k}^2 + \sum_{i \in L} C_i \max(0, |y_i - f(x_i) - b| - \epsilon)

    for each output, on one learned kernel. Label-aware vectors are here estimates of the targets themselves.

    Parameters
    ----------
    learner : kernel learner, list of kernel learners or None, default=None
        As in :class:`LearnedKernelClassifier`; None has narrow kernels, too.
    C : float or "cv", default="cv"
        Cost of an error; ``"cv"``: 0.1, 1, 10 or 100 times the standard deviation of each target.
    epsilon : float, default=0.1
        Errors up to it cost nothing; in units of the targets.
    tol, random_state
        As in :class:`LearnedKernelClassifier`.

    Attributes
    ----------
    learner_, C_, cv_results_, weights_, transduction_, expansion_, intercept_, support_, dual_, n_evaluations_
        As in :class:`LearnedKernelClassifier`; ``C_`` holds one cost for each target where it was chosen, and
        ``cv_results_`` mean squared errors in units of the variance of each target.
    objective_, certificate_, status_, history_, n_iter_, library_, n_features_in_, feature_names_in_
        As in :class:`LearnedKernelClassifier`.

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

    _takes_several = True

    def __init__(
        self,
        learner: Any = None,
        *,
        C: float | str = "cv",
        epsilon: float = 0.1,
        tol: float = 1e-3,
        random_state: Any = None,
    ):
        self.learner = learner
        self.C = C
        self.epsilon = epsilon
        self.tol = tol
        self.random_state = random_state

    def predict(self, X: Any, split: bool = False) -> np.ndarray:
        """Return the predicted numbers of each row; with ``split`` what each part of the kernel adds, on axis 1."""
        values = self._outputs(X, split)
        return values if self._several else values[..., 0]

    def _cost_unit(self, sample: Sample) -> Any:
        found = sample.partition
        return Target.of(sample).deviation if found.targets.ndim == 2 else float(Target.of(sample).deviation[0])

    def _problems(self, sample: Sample, C: Any, kept: np.ndarray | slice) -> list[DualProblem]:
        found = sample.partition
        targets = found.targets.reshape(found.n_labeled, -1)[kept]
        costs = sample.weight[found.labeled][kept, None] * np.broadcast_to(C, targets.shape[1])
        return [regression_dual(targets[:, k], costs[:, k], float(self.epsilon)) for k in range(targets.shape[1])]

    def _losses(self, values: np.ndarray, sample: Sample, held: np.ndarray) -> np.ndarray:
        found = sample.partition
        errors = (values - found.targets.reshape(found.n_labeled, -1)[held]) / Target.of(sample).deviation
        return np.square(errors).mean(axis=1)

    def _keep_labels(self, sample: Sample) -> None:
        self._several = sample.partition.targets.ndim == 2

    def _keep_outputs(self, values: np.ndarray, X: Any, sample: Sample) -> None:
        whole = len(sample.kept) == sample.n_given
        predicted = values if self._several else values[:, 0]
        self.transduction_ = predicted if whole else self.predict(X)
        self.transduction_[sample.given.labeled] = sample.given.targets


def default_learners(X: Any = None, target: Target | None = None) -> list[KernelLearner]:
    """Return the learners that ``learner=None`` means for such data; None: before they are known.

    What helps differs so much between data that folds decide: many kernels, deformed ones among them; wide ones only,
    where rows are noisy; or eigenvectors. For numbers also narrow ones, since these may follow rows closely.
    """
    n_rows = 0 if X is None else X.shape[0]
    deformed = [] if X is None else deformed_kernels(X)
    leave_one_out = target is None or target.fewest > 1
    many = LabelAwareKernelLearner(
        n_eigenvectors=0,
        leave_one_out=leave_one_out,
        weighting="align",
        extra_kernels=[Linear(), *rbf_family((0.1, 1.0, 5.0)), *deformed],
    )
    wide = AlignedKernelLearner([Linear(), RBF(multiple=0.1)], weighting="align")
    spectral = LabelAwareKernelLearner(
        n_eigenvectors=min(MOST_VECTORS, -(-n_rows // 10)),
        leave_one_out=leave_one_out,
        ridge=0.1,
        n_landmarks=None if n_rows <= EXACT_ROWS else N_LANDMARKS,
    )
    if target is None or target.is_classes:
        return [many, wide, spectral]
    narrow = LabelAwareKernelLearner(
        RBF(multiple=NARROW),
        n_eigenvectors=0,
        leave_one_out=leave_one_out,
        weighting="align",
        extra_kernels=rbf_family((5.0, NARROW)),
    )
    return [many, wide, spectral, narrow]


def kernel_stack(learned: Learned) -> KernelStack:
    """Return a learned kernel at its labelled rows, of mean diagonal 1; by features where these are fewer than rows."""
    rows, weight = learned.rows, learned.weight
    factors = [member.restrict(rows).factor() for member in learned.members if isinstance(member, BoundFeatures)]
    member: Member
    if len(factors) == len(learned.members) and all(Z is not None for Z in factors):
        member = Factor(np.ascontiguousarray(np.hstack([Z for Z in factors if Z is not None]), dtype=np.float64))
        size, diagonal = float(mean_diagonals(RankOnes(member.Z), weight).sum()), np.square(member.Z).sum(axis=1)
        if member.Z.shape[1] >= len(rows):
            member = member.Z @ member.Z.T
    else:
        K = np.ascontiguousarray(learned.kernel.block(rows, rows), dtype=np.float64)
        if learned.rounding > EPS:  # that of single precision leaves negative eigenvalues
            values, vectors = np.linalg.eigh(K)
            K = (vectors * np.maximum(values, 0.0)) @ vectors.T
        member, size, diagonal = K, float(mean_diagonals(K, weight)[0]), K.diagonal()
    return KernelStack([member], [size if size > CONSTANT * diagonal.mean() else 1.0])


def _is_cv(value: Any) -> bool:
    return isinstance(value, str) and value == "cv"

r"""What learners of kernels share: base kernels prepared without labels, then weighed with them.

A learned kernel is :math:`\tilde k = \sum_p w_p k_p / \tau_p` with :math:`w \ge 0`, :math:`\sum_p w_p = 1`, and
:math:`\tau_p` the mean diagonal of the centred base kernel at the labelled rows, so that weights are shares. Base
kernels are vectors, :math:`k_p(x, z) = b_p(x) b_p(z)` with functions :math:`b_p` of a row, or whole kernels. A fit has
two stages: :meth:`KernelLearner._prepare` sees no labels, and :meth:`KernelLearner._learn` repeats in every fold of a
cross-validation for the price of the labelled rows.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from ..kernels.base import ALL, BoundKernel, batches
from ..kernels.bound_library import BoundLibrary
from ..kernels.checks import ASYMMETRY, NEGATIVE, ROUNDINGS
from ..kernels.expansion import CombinedKernel
from ..kernels.features import BoundFeatures, FeatureMap
from ..kernels.library import Entry, KernelLibrary
from ..kernels.manifold import count_landmarks
from ..kernels.spectral import EigenBasis
from ..labels import Partition, labeled_values, partition, partition_targets
from ..solvers import alignment
from ..solvers.alignment import AlignmentResult, RankOnes
from ..solvers.result import Certificate
from .base import KernelEstimator, Sample, is_count, is_nonnegative, require
from .shared.memory import require_memory

WEIGHTINGS = ("alignf", "align", "uniform")
COPIES = 3  # of kernels that a fit has in memory: themselves, what is computed with them, and room
MOST_ROWS = 5000  # labelled rows, of which the alignment of the base kernel is told


@dataclass(frozen=True, eq=False)
class Target:
    """What the labelled rows say.

    Attributes
    ----------
    rows : ndarray of shape (n_labeled,)
        Numbers of rows of the sample.
    values : ndarray of shape (n_labeled, n_columns)
        Indicators of the classes, or numbers in units of their deviation.
    weight : ndarray of shape (n_labeled,)
    deviation : ndarray of shape (n_columns,)
        The unit of numbers; ones for classes.
    names : tuple of str
        Of the columns.
    is_classes : bool
    """

    rows: np.ndarray
    values: np.ndarray
    weight: np.ndarray
    deviation: np.ndarray
    names: tuple[str, ...]
    is_classes: bool

    @classmethod
    def of(cls, sample: Sample) -> Target:
        """Return the target of a sample."""
        found, weight = sample.partition, sample.weight[sample.partition.labeled]
        if isinstance(found, Partition):
            names = tuple(str(label) for label in found.classes.tolist())
            return cls(found.labeled, found.indicator(), weight, np.ones(found.n_classes), names, True)
        numbers = found.targets.reshape(found.n_labeled, -1)
        varies = numbers.min(axis=0) < numbers.max(axis=0)
        if not varies.any():
            raise ValueError(
                "All labelled rows have the same target, with which no kernel can be aligned "
                f"(n_samples={found.n_labeled}). Label rows with another one."
            )
        names = tuple(f"output {k}" for k in range(numbers.shape[1]))
        return cls(found.labeled, numbers, weight, np.ones(numbers.shape[1]), names, False)._standardized()

    @property
    def fewest(self) -> int:
        """Labelled rows of the smallest class; of numbers, all labelled rows."""
        return int(np.count_nonzero(self.values, axis=0).min()) if self.is_classes else len(self.rows)

    def restrict(self, kept: np.ndarray) -> Target:
        """Return the target of some of the labelled rows, as if the others were not known; all columns stay."""
        part = replace(self, rows=self.rows[kept], values=self.values[kept], weight=self.weight[kept])
        return part if self.is_classes else part._standardized()

    def _standardized(self) -> Target:
        """Centre numbers and bring them to their deviation; columns of one and the same number become zero."""
        varies = self.values.min(axis=0) < self.values.max(axis=0)
        centered = np.where(varies, self.values - np.average(self.values, axis=0, weights=self.weight), 0.0)
        unit = np.where(varies, np.abs(centered).max(axis=0), 1.0)  # squares neither under- nor overflow
        size = unit * np.sqrt(np.average(np.square(centered / unit), axis=0, weights=self.weight))
        size = np.where(varies, size, 1.0)
        return replace(self, values=centered / size, deviation=self.deviation * size)


@dataclass(frozen=True, eq=False)
class Vectors:
    """Base kernels of rank one: functions of a row, and their values at all rows of the sample."""

    entry: Entry
    features: FeatureMap
    Z: np.ndarray
    names: Sequence[str]


@dataclass(frozen=True, eq=False)
class Whole:
    """A base kernel as it is."""

    entry: Entry
    kernel: BoundKernel

    def restrict(self, rows: np.ndarray) -> Whole:
        """Return the kernel at some of the rows."""
        return Whole(self.entry, self.kernel.restrict(rows))


@dataclass(frozen=True, eq=False)
class Prepared:
    """What a learner knows of the rows before it sees labels.

    Attributes
    ----------
    X : array or CSR of shape (n_rows, n_features)
    base : Whole
        Whose alignment the learned kernel improves on.
    vectors : list of Vectors
    wholes : list of Whole
    """

    X: Any
    base: Whole
    vectors: list[Vectors]
    wholes: list[Whole]

    def restrict(self, rows: np.ndarray) -> Prepared:
        """Return what is known of some of the rows, learned from all."""
        vectors = [replace(part, Z=part.Z[rows]) for part in self.vectors]
        return Prepared(self.X[rows], self.base.restrict(rows), vectors, [part.restrict(rows) for part in self.wholes])


@dataclass(frozen=True, eq=False)
class Learned:
    """A learned kernel.

    Attributes
    ----------
    members : list of BoundKernel
        The vectors of each kind together, then the whole kernels.
    entries : list of Entry
        Their names.
    factors : ndarray of shape (n_members,)
        What multiplies them: 1 for those given by features, which carry their weights themselves, 0 where all are 0.
    weights : ndarray of shape (n_base_kernels,)
        Shares of the base kernels, each vector one; they sum to one.
    names : list of str
        Of the base kernels.
    alignment : dict
        With the target, at the labelled rows: of the base kernel, and of the learned one.
    result : AlignmentResult
    rows : ndarray of shape (n_labeled,)
    weight : ndarray of shape (n_labeled,)
    """

    members: list[BoundKernel]
    entries: list[Entry]
    factors: np.ndarray
    weights: np.ndarray
    names: list[str]
    alignment: dict[str, float]
    result: AlignmentResult
    rows: np.ndarray
    weight: np.ndarray

    @property
    def kernel(self) -> BoundKernel:
        """The learned kernel, bound to all rows."""
        return CombinedKernel(self.members, self.factors)

    @property
    def rounding(self) -> float:
        """The precision in which the members are computed."""
        used, row = np.flatnonzero(self.factors), self.rows[:1]
        return max(float(np.finfo(self.members[k].block(row, row).dtype).eps) for k in used)

    def at_labeled(self) -> BoundLibrary:
        """Return the members at the labelled rows only."""
        kernels = [member.restrict(self.rows) for member in self.members]
        return BoundLibrary(kernels, self.entries, list(range(len(kernels))))


class KernelLearner(TransformerMixin, KernelEstimator):
    """An estimator that learns a kernel; subclasses say from which base kernels, and how they are weighed."""

    _by_size = True  # whether base kernels are brought to one size before they are weighed

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the weights of the base kernels.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Labels or numbers; NaN, None and NA mark unlabelled rows, and of classes what ``unlabeled`` says.
        sample_weight : array-like of shape (n_samples,), optional
            Rows of weight zero are ignored altogether; eigenvectors do not know other weights.

        Returns
        -------
        self
        """
        self._check_params()
        sample = self._check_fit(X, y, sample_weight, self._library())
        learned = self._learn(self._prepare(sample, self._rng(), {}), Target.of(sample))
        self._keep(learned)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return features whose inner products are the learned kernel, shape (n_samples, n_features_out).

        Vectors without weight are left out. Whole kernels have at most as many features as labelled rows: their inner
        products are exact where one of the two rows is labelled, and a Nystroem approximation elsewhere.
        """
        check_is_fitted(self)
        X = self._check_rows(X, self._library(), reset=False)
        out = np.empty((X.shape[0], self.n_features_out_), dtype=X.dtype)
        for rows in batches(X.shape[0], 2 * max(part[0].n_evaluations for part in self._explicit) + X.shape[1]):
            out[rows] = np.hstack([features.of(X[rows])[:, kept] * scale for features, kept, scale in self._explicit])
        if not np.isfinite(out).all():
            raise ValueError(
                f"The base kernels of {type(self).__name__} gave values that are not finite (NaN or inf) on new rows. "
                "Check their functions or matrices, or scale the features as those of the fit."
            )
        return out

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the features."""
        check_is_fitted(self)
        prefix = type(self).__name__.lower()
        return np.array([f"{prefix}{k}" for k in range(self.n_features_out_)], dtype=object)

    @abstractmethod
    def _prepare(self, sample: Sample, rng: np.random.Generator, known: dict[Any, Any]) -> Prepared:
        """Bind kernels and find eigenvectors: all that needs no labels.

        ``known`` holds what learners have already found for the same rows, and takes up what is new.
        """

    def _bound(
        self, library: KernelLibrary, sample: Sample, rng: np.random.Generator, known: dict[Any, Any]
    ) -> list[BoundKernel]:
        """Return the kernels of a library, bound; those that are known already are not bound again."""
        missing = [entry.kernel for entry in library.entries if entry.kernel not in known]
        if missing:
            bound = self._bind(KernelLibrary(missing), sample, rng).kernels
            known.update(zip(missing, bound, strict=True))
        return [known[entry.kernel] for entry in library.entries]

    def _learn(self, prepared: Prepared, target: Target) -> Learned:
        """Weigh the base kernels by their alignment with the target."""
        require_labeled_memory(type(self).__name__, len(prepared.wholes), len(target.rows))
        vectors = [*self._label_aware(prepared, target), *prepared.vectors]
        rows, wholes = target.rows, prepared.wholes
        blocks: list[Any] = [
            RankOnes(_checked(part.Z, prepared.base.entry)[rows].astype(np.float64)) for part in vectors
        ]
        blocks += [_definite(part.kernel.block(rows, rows), part.entry) for part in wholes]
        sizes = [mean_diagonals(block, target.weight) for block in blocks]
        if not sum(map(len, sizes)):
            raise ValueError(f"The kernel {prepared.base.entry.name} has no eigenvectors: it is zero at all rows.")
        if self._by_size:
            blocks = [_divided(block, size) for block, size in zip(blocks, sizes, strict=True)]
        M, a, t = alignment.gram(blocks, target.values, target.weight)
        result = self._weigh(M, a, t)
        # what is constant at these rows adds nothing, whatever its size
        unit = np.where(self._by_size & (np.diag(M) > 0), np.concatenate(sizes), 1.0)
        factors = np.split(result.x / unit, np.cumsum([part.Z.shape[1] for part in vectors]))
        kernels = [BoundFeatures(part.features, part.Z, np.ones(part.Z.shape[1])) for part in vectors]
        weighed = [_weighed(kernel, factor) for kernel, factor in zip(kernels, factors[:-1], strict=True)]
        weighed += [_weighed(part.kernel, factor) for part, factor in zip(wholes, factors[-1], strict=True)]
        return Learned(
            [member for member, _ in weighed],
            [part.entry for part in vectors] + [part.entry for part in wholes],
            np.array([factor for _, factor in weighed]),
            result.x,
            [name for part in vectors for name in part.names] + [part.entry.name for part in wholes],
            {"before": _alone(prepared.base, target), "after": result.objective},
            result,
            rows,
            target.weight,
        )

    def _label_aware(self, prepared: Prepared, target: Target) -> list[Vectors]:
        """Return vectors that are made of labels."""
        return []

    @abstractmethod
    def _weigh(self, M: np.ndarray, a: np.ndarray, t: float) -> AlignmentResult:
        """Return the weights of base kernels of unit size from their Gram matrix."""

    def _keep(self, learned: Learned) -> None:
        """Keep the kernel and what is known of it."""
        self.kernel_ = learned.kernel
        self.weights_ = learned.weights
        self.base_kernels_ = [
            {"name": name, "weight": float(weight)} for name, weight in zip(learned.names, learned.weights, strict=True)
        ]
        self.alignment_ = learned.alignment
        self.objective_ = learned.result.objective
        self.certificate_: Certificate = learned.result.certificate
        self.n_iter_ = max(1, learned.result.n_iter)
        self._status_name = learned.result.status.name
        self._explicit: list[tuple[FeatureMap, np.ndarray, np.ndarray]] = []
        for member in learned.members:
            if isinstance(member, BoundFeatures) and member.weights.any():
                kept = np.flatnonzero(member.weights)
                self._explicit.append((member.features, kept, np.sqrt(member.weights[kept])))
        whole = whole_features(learned)
        if whole is not None:
            self._explicit.append((whole, np.arange(whole.n_features), np.ones(whole.n_features)))
        self.n_features_out_ = sum(len(kept) for _, kept, _ in self._explicit)
        if not learned.result.aligned:
            warnings.warn(
                "No base kernel is aligned with the labels: all weigh alike. Use other kernels, or more labels.",
                UserWarning,
                stacklevel=3,
            )
        if not learned.result.status.converged:
            warnings.warn(
                f"{learned.result.status.value} Residual {self.certificate_.relative:.2e}.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _partition(self, y: Any) -> Any:
        if self._learns_numbers(y):
            return partition_targets(y, several=True)
        return partition(y, unlabeled=self.unlabeled)

    def _learns_numbers(self, y: Any) -> bool:
        if self.target != "auto":
            return self.target == "numbers"
        shape = y.shape if hasattr(y, "shape") else np.asarray(y, dtype=object).shape
        if len(shape) == 2 and shape[1] > 1:
            return True
        values = labeled_values(y, unlabeled=self.unlabeled, regression=True)[1]
        return values.dtype.kind == "f" and type_of_target(values) == "continuous"

    def _check_params(self) -> None:
        super()._check_params()
        owner = type(self).__name__
        known = isinstance(self.target, str) and self.target in ("auto", "classes", "numbers")
        require(owner, "target", self.target, known, '"auto", "classes" or "numbers"')

    def _require_choice(self, name: str, *choices: Any) -> None:
        value = getattr(self, name)
        known = any(value is choice or (isinstance(value, str) and value == choice) for choice in choices)
        require(type(self).__name__, name, value, known, " or ".join(map(repr, choices)))

    def _require_basis(self) -> None:
        """Check the parameters of eigenvectors and landmarks."""
        owner, n = type(self).__name__, self.n_eigenvectors
        share = isinstance(n, float) and 0.0 < n <= 1.0
        holds = share or (is_nonnegative(n) and float(n).is_integer() and not isinstance(n, float))
        require(owner, "n_eigenvectors", n, holds, "a whole number, 0 or more, or a share of the rows, 0 < share <= 1")
        auto = isinstance(self.n_landmarks, str) and self.n_landmarks == "auto"
        landmarks = self.n_landmarks is None or auto or is_count(self.n_landmarks)
        require(owner, "n_landmarks", self.n_landmarks, landmarks, 'None, "auto" or a whole number >= 1')
        self._require_choice("landmarks", "kmeans", "uniform")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        assert tags.transformer_tags is not None
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def n_landmarks_for(n_landmarks: int | str | None, n_rows: int) -> int | None:
    """Return how many landmarks are asked for; None for all rows."""
    wanted = count_landmarks(n_landmarks, n_rows)
    return None if wanted == n_rows else wanted


def require_exact_memory(owner: str, n_rows: int) -> None:
    """Refuse eigenvectors of a matrix of all rows that would not fit into the memory."""
    what = f"{owner} with n_landmarks=None keeps the kernel of all {n_rows:,} rows"
    require_memory(COPIES * 8 * n_rows**2, what, 'Pass n_landmarks="auto", or a number.')


def require_labeled_memory(owner: str, n_kernels: int, n_labeled: int) -> None:
    """Refuse kernels at the labelled rows that would not fit into the memory."""
    what = f"{owner} keeps {n_kernels} kernels of {n_labeled:,} labelled rows"
    require_memory(COPIES * 8 * n_kernels * n_labeled**2, what, "Use fewer kernels, or labels.")


def whole_kernels(library: KernelLibrary, bound: Sequence[BoundKernel]) -> list[Whole]:
    """Return the kernels of a library as base kernels."""
    return [Whole(entry, kernel) for entry, kernel in zip(library.entries, bound, strict=True)]


def whole_features(learned: Learned) -> EigenBasis | None:
    """Return features of the whole kernels, spanned by the labelled rows; None where none has a weight."""
    pairs = [(member, factor) for member, factor in zip(learned.members, learned.factors, strict=True)]
    pairs = [(member, factor) for member, factor in pairs if factor and not isinstance(member, BoundFeatures)]
    if not pairs:
        return None
    factors = np.array([factor for _, factor in pairs])
    kernel = CombinedKernel([member.restrict(learned.rows) for member, _ in pairs], factors)
    K = kernel.block(ALL, ALL).astype(np.float64, copy=False)
    values, vectors = np.linalg.eigh(K)
    kept = (
        values > ROUNDINGS * learned.rounding * np.sqrt(len(K)) * np.abs(K).max()
    )  # more than the norm of its rounding
    return EigenBasis(kernel, vectors[:, kept] / np.sqrt(values[kept]), None, values[kept])


def _weighed(kernel: BoundKernel, factor: Any) -> tuple[BoundKernel, float]:
    """Return a kernel and what multiplies it; one given by features takes the factor, or that of each, into them."""
    if not isinstance(kernel, BoundFeatures):
        return kernel, float(factor)
    weights = factor * kernel.weights
    return BoundFeatures(kernel.features, kernel.Z, weights), float(weights.any())


def _alone(base: Whole, target: Target) -> float:
    """Return the alignment of a kernel by itself; of many labelled rows, with a part of them."""
    drawn = np.random.default_rng(0).permutation(len(target.rows))[:MOST_ROWS]
    ends = [target.values.argmin(axis=0), target.values.argmax(axis=0)]  # no class is lost, and numbers differ
    part = target.restrict(np.unique(np.concatenate([drawn, *ends])))
    K = _checked(base.kernel.block(part.rows, part.rows), base.entry).astype(np.float64)
    known = alignment.gram([_divided(K, mean_diagonals(K, part.weight))], part.values, part.weight)
    return alignment.alignment_value(np.ones(1), *known)


def _checked(values: np.ndarray, entry: Entry) -> np.ndarray:
    if not np.isfinite(values).all():
        raise ValueError(
            f"The kernel {entry.name} gave values that are not finite (NaN or inf). Check the function or matrix it is "
            "made from, or scale the features."
        )
    return values


def _definite(K: np.ndarray, entry: Entry) -> np.ndarray:
    """Refuse a kernel that is not symmetric positive semi-definite at the labelled rows."""
    rounding = float(np.finfo(K.dtype).eps)
    K = _checked(K, entry).astype(np.float64, copy=False)
    if entry.kernel.is_psd:
        return K
    largest = np.abs(K).max()
    negative = max(NEGATIVE, ROUNDINGS * rounding) * len(K) * largest
    if np.abs(K - K.T).max() > ASYMMETRY * largest or np.linalg.eigvalsh(K)[0] < -negative:
        raise ValueError(
            f"The kernel {entry.name} is not symmetric positive semi-definite at the labelled rows, so that a mixture "
            "with it may be no kernel. Leave it out; SSMKClassifier and CGBoostClassifier take any kernel."
        )
    return K


def mean_diagonals(block: RankOnes | np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the mean diagonal of each centred kernel of a block."""
    share = weight / weight.sum()
    if isinstance(block, RankOnes):
        return share @ np.square(block.B - share @ block.B)
    return np.array([share @ block.diagonal() - share @ block @ share])


def _divided(block: RankOnes | np.ndarray, sizes: np.ndarray) -> RankOnes | np.ndarray:
    """Bring the kernels of a block to size 1, in place, so that their inner products neither under- nor overflow."""
    if isinstance(block, RankOnes):
        block.B[:] /= np.sqrt(np.where(sizes > 0, sizes, 1.0))
    else:
        block /= sizes if sizes[0] > 0 else 1.0
    return block

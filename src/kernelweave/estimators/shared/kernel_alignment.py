r"""Learning a kernel: base kernels weighed by their alignment with the labels.

A learned kernel is :math:`\tilde k = \sum_p w_p k_p / \tau_p` with :math:`w \ge 0`, :math:`\sum_p w_p = 1`, and
:math:`\tau_p` the mean diagonal of the centred base kernel at the labelled rows, so that weights are shares. A fit has
two stages: :func:`~kernelweave.estimators.shared.base_kernels.bind_base_kernels` sees no labels, and
:func:`learn_kernel` repeats in every fold of a cross-validation for the price of the labelled rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from typing import Any, Self

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ...kernels.base import ALL, BoundKernel, batches
from ...kernels.bound_library import BoundLibrary
from ...kernels.checks import ROUNDINGS, require_finite, require_semidefinite
from ...kernels.expansion import CombinedKernel
from ...kernels.features import BoundFeatures, FeatureMap
from ...kernels.library import Entry, KernelLibrary
from ...kernels.spectral import EigenBasis
from ...kernels.votes import VoteFeatures
from ...solvers import alignment
from ...solvers.alignment import AlignmentResult, RankOnes
from ...solvers.deadline import NO_DEADLINE, Deadline
from ...solvers.result import Certificate, NotFiniteError, Status
from ...warn import warn_caller
from .base import KernelEstimator, lazy_transformer
from .base_kernels import BaseKernels, KernelDesign, Vectors, bind_base_kernels, bind_to_partitions
from .memory import require_labeled_memory
from .partitioned import LabelRule, PartitionedSample, bring_to_memory
from .progress import announce
from .records import Records
from .sample import Sample, warn_of_different_scales
from .target import Target, read_labels, read_target

MAX_ALIGNMENT_ROWS = 5000  # labelled rows from which the alignment of the base kernel is computed


@dataclass(frozen=True, eq=False)
class LearnedKernel:
    """A learned kernel.

    Attributes
    ----------
    members : list of BoundKernel
        The vectors of each kind together, then the whole kernels.
    entries : list of Entry
        Their names.
    factors : ndarray of shape (n_members,)
        What multiplies them: 1 for those given by features, which carry their weights themselves, 0 where all are 0.
    names : list of str
        Of the base kernels, each vector one.
    result : AlignmentResult
        Its ``x`` are the shares of the base kernels; they sum to one.
    rows : ndarray of shape (n_labeled,)
    weight : ndarray of shape (n_labeled,)
    """

    members: list[BoundKernel]
    entries: list[Entry]
    factors: np.ndarray
    names: list[str]
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


@dataclass(frozen=True, eq=False)
class KernelFit:
    """A learned kernel, and how it was reached; fields as the attributes of the learners.

    Attributes
    ----------
    kernel, weights, base_kernels, alignment, n_features_out, objective, certificate, status, n_iter
        As the attributes.
    features : list of (FeatureMap, ndarray, ndarray)
        Functions of a row, which of them have a weight, and the square roots of these weights.
    library : KernelLibrary
        The kernels that were bound.
    is_known : bool
        Whether the features of the rows that the kernel is bound to are known: not those of whole kernels, which are
        spanned anew, nor those that leave labels out.
    """

    kernel: BoundKernel
    weights: np.ndarray
    base_kernels: Records
    alignment: dict[str, float]
    n_features_out: int
    objective: float
    certificate: Certificate
    status: Status
    n_iter: int
    features: list[tuple[FeatureMap, np.ndarray, np.ndarray]] = field(metadata={"kept": False})
    library: KernelLibrary
    is_known: bool = field(metadata={"kept": False})


@lazy_transformer
class KernelTransformer(TransformerMixin, KernelEstimator):
    """A transformer whose features have the learned kernel as inner products."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None, X_unlabeled: Any = None) -> Self:
        """Learn the weights of the base kernels.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            Labelled and unlabelled rows; also a Dask array or frame.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Labels or numbers; NaN, None and NA mark unlabelled rows, and of classes what ``unlabeled`` says.
        sample_weight : array-like of shape (n_samples,), optional
            Rows of weight zero are ignored altogether; eigenvectors do not know other weights.
        X_unlabeled : array, sparse matrix, frame or Dask collection, optional
            More rows, without labels.

        Returns
        -------
        self
            The fitted estimator.
        """
        deadline, design = Deadline(self.max_time), self.design()
        read = partial(read_labels, target=self.target, unlabeled=self.unlabeled)
        rule = LabelRule(self.target, self.unlabeled, several=True)
        sample, partitions = bring_to_memory(self._read_sample(X, y, sample_weight, X_unlabeled, read, rule))
        if is_default(self):
            warn_of_different_scales(sample.X)
        fit = fit_kernel(design, sample, self._rng(), partitions, deadline)
        if self.verbose:
            announce(
                f"{design.owner}: {np.count_nonzero(fit.weights)} of {len(fit.weights)} base kernels have a weight, "
                f"alignment {fit.objective:.4g}"
            )
        return self.keep_kernel(sample, fit)

    def transform(self, X: Any) -> np.ndarray:
        """Return features whose inner products are the learned kernel.

        Vectors without weight are left out. Whole kernels have at most as many features as labelled rows: their inner
        products are exact where one of the two rows is labelled, and a Nystroem approximation elsewhere.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            Rows to transform; training rows are treated as new ones.

        Returns
        -------
        ndarray of shape (n_samples, n_features_out)
            The features, in the precision of ``X``.
        """
        X = self._read_new_rows(X)
        if self._rows_digest is not None and X.shape[0] == self.kernel_.n_rows and digest_rows(X) == self._rows_digest:
            known = [term.Z for term in self.kernel_.terms]  # the same rows again, as in fit(X, y).transform(X)
            parts = [Z[:, kept] * scale for Z, (_, kept, scale) in zip(known, self._features, strict=True)]
            return np.hstack(parts).astype(X.dtype, copy=False)
        out = np.empty((X.shape[0], self.n_features_out_), dtype=X.dtype)
        for rows in batches(X.shape[0], 2 * max(part[0].n_evaluations for part in self._features) + X.shape[1]):
            out[rows] = np.hstack([features.of(X[rows])[:, kept] * scale for features, kept, scale in self._features])
        if not np.isfinite(out).all():
            raise ValueError(
                f"The base kernels of {type(self).__name__} gave values that are not finite (NaN or inf) on new rows. "
                "Check their functions or matrices, or scale the features as those of the fit."
            )
        return out

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the features: the name of the class in lower case, and a number.

        Parameters
        ----------
        input_features : array-like of str, optional
            Not used; part of the interface of scikit-learn.

        Returns
        -------
        ndarray of str
            One name for each column of :meth:`transform`.
        """
        check_is_fitted(self)
        prefix = type(self).__name__.lower()
        return np.array([f"{prefix}{k}" for k in range(self.n_features_out_)], dtype=object)

    def keep_kernel(self, sample: Sample, fit: KernelFit) -> Self:
        """Keep a kernel that was learned from a sample by the design of this learner; all that ``fit`` keeps.

        Parameters
        ----------
        sample : Sample
            The rows and labels that it was learned from.
        fit : KernelFit
            The kernel, its weights and how they were found.

        Returns
        -------
        self
            The fitted learner.
        """
        is_whole = fit.kernel.n_rows == sample.n_rows  # else it is tied to the labelled rows
        order = np.argsort(sample.kept if is_whole else sample.kept[sample.partition.labeled])  # as they were given
        fit = replace(fit, kernel=fit.kernel.restrict(order))
        given = sample.rows.X if sample.n_rows == sample.n_given else sample.X[order]
        digest = digest_rows(given) if fit.is_known else None
        return self._keep(sample, fit.library, fit, _features=fit.features, _rows_digest=digest)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        assert tags.transformer_tags is not None
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def is_default(learner: Any) -> bool:
    """Return whether a learner was given no kernel."""
    params = learner.get_params(deep=False)
    return all(params[name] is None for name in ("kernel", "kernels") if name in params)


def fit_kernel(
    design: KernelDesign,
    sample: Sample,
    rng: np.random.Generator,
    partitions: PartitionedSample | None = None,
    deadline: Deadline = NO_DEADLINE,
) -> KernelFit:
    """Learn a kernel from a sample; of partitioned rows it holds the labelled ones."""
    target = read_target(sample)
    if partitions is None:
        base_kernels = bind_base_kernels(design, sample, rng, {})
    else:
        base_kernels = bind_to_partitions(design, sample, partitions, rng, {})
    deadline.check("the base kernels were computed")
    return summarize_kernel(design, base_kernels, target, learn_kernel(design, base_kernels, target))


def learn_kernel(design: KernelDesign, given: BaseKernels, target: Target) -> LearnedKernel:
    """Weigh base kernels by their alignment with the target."""
    rows, weight = target.rows, target.weight
    require_labeled_memory(design.owner, len(given.wholes), len(rows))
    vectors = [spread_labels(design, given, target), *given.vectors] if design.label_aware else given.vectors
    blocks: list[RankOnes | np.ndarray] = []
    for part in vectors:
        require_finite(part.Z, design.base.name)
        blocks.append(RankOnes(part.Z[rows].astype(np.float64)))
    for entry, kernel in zip(design.wholes, given.wholes, strict=True):
        K = kernel.block(rows, rows)
        require_finite(K, entry.name)
        if not entry.kernel.is_psd:
            require_semidefinite(K, entry.name, design.owner, float(np.finfo(K.dtype).eps))
        blocks.append(K.astype(np.float64, copy=False))
    sizes = [mean_diagonals(block, weight) for block in blocks]
    if not sum(map(len, sizes)):
        raise ValueError(f"The kernel {design.base.name} has no eigenvectors: it is zero at all rows.")
    if design.unit_size:
        blocks = [divide(block, size) for block, size in zip(blocks, sizes, strict=True)]
    M, a, t = alignment.gram(blocks, target.values, weight)
    result = weigh(design, M, a, t)
    if not np.isfinite(result.x).all():
        raise NotFiniteError(
            "Inner products of kernels and labels are too large for floating point. Scale the weights."
        )
    # what is constant at these rows adds nothing, whatever its size
    unit = np.where(design.unit_size & (np.diag(M) > 0), np.concatenate(sizes), 1.0)
    *by_vector, by_kernel = np.split(result.x / unit, np.cumsum([part.Z.shape[1] for part in vectors]))
    members: list[BoundKernel] = []
    factors: list[float] = []
    for part, factor in zip(vectors, by_vector, strict=True):
        members.append(BoundFeatures(part.features, part.Z, factor))
        factors.append(float(factor.any()))
    for kernel, share in zip(given.wholes, by_kernel.tolist(), strict=True):
        if isinstance(kernel, BoundFeatures):  # takes the factor into its own weights
            weights = share * kernel.weights
            members.append(BoundFeatures(kernel.features, kernel.Z, weights))
            factors.append(float(weights.any()))
        else:
            members.append(kernel)
            factors.append(share)
    entries = [*(part.entry for part in vectors), *design.wholes]
    names = [*(name for part in vectors for name in part.names), *(entry.name for entry in design.wholes)]
    return LearnedKernel(members, entries, np.array(factors), names, result, rows, weight)


def spread_labels(design: KernelDesign, given: BaseKernels, target: Target) -> Vectors:
    """Return vectors that are made of labels: the values of the labelled rows, spread to all rows by the base kernel.

    With ``leave_one_out`` the values at labelled rows are without their own labels.
    """
    Y, weight, divided = target.values, target.weight, design.normalization == "degree"
    by_class = target.is_classes and (design.leave_one_out or not divided)
    # Of class means each class has one total; otherwise all rows share it.
    totals = weight @ Y if by_class else np.full(Y.shape[1], weight.sum())
    values = weight[:, None] * Y / totals
    shares = values.sum(axis=1) if by_class else weight / weight.sum()
    features = VoteFeatures(given.base.restrict(target.rows), values, shares if divided else None)
    Z = features.of(given.X)
    if design.leave_one_out:
        if target.fewest < 2:
            single = target.names[int(np.count_nonzero(Y, axis=0).argmin())]
            raise ValueError(
                f"leave_one_out=True needs two labelled rows of each class at least, but class {single} has one. Label "
                "more rows of it, or pass leave_one_out=False."
            )
        left = totals - weight[:, None] * (Y if by_class else np.ones_like(Y))
        K = features.shares(given.X[target.rows], without_own=True)
        own = K @ (weight[:, None] * Y) / left
        if divided:
            counts = own.sum(axis=1) if by_class else K @ weight / left[:, 0]
            with np.errstate(divide="ignore", invalid="ignore"):
                means = own / counts[:, None]
            own = np.where(counts[:, None] == 0, values.sum(axis=0) / shares.sum(), means)
        Z[target.rows] = own
    names = [f"label-aware: {name}" for name in target.names]
    return Vectors(Entry("label-aware", design.base.kernel), features, Z, names)


def weigh(design: KernelDesign, M: np.ndarray, a: np.ndarray, t: float) -> AlignmentResult:
    """Return the weights of base kernels from their Gram matrix, by the rule of a design."""
    if design.weighting == "ordered":
        return alignment.ordered(M, a, t)
    if design.weighting == "align":
        return alignment.align(M, a, t)
    if design.weighting == "uniform":
        return alignment.uniform(M, a, t)
    squares = np.ones(len(a)) if design.unit_size else M.diagonal()  # where sizes differ, the ridge is added as it is
    ridge = np.divide(design.ridge, squares, out=np.zeros(len(a)), where=squares > 0.0)
    return alignment.alignf(M, a, t, ridge=ridge)


def mean_diagonals(block: RankOnes | np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the mean diagonal of each centred kernel of a block."""
    share = weight / weight.sum()
    with np.errstate(over="ignore"):  # refused
        if isinstance(block, RankOnes):
            sizes = share @ np.square(block.B - share @ block.B)
        else:
            sizes = np.array([share @ block.diagonal() - share @ block @ share])
    if not np.isfinite(sizes).all():
        raise ValueError(
            "The squares of a learned kernel's features are beyond double precision. Scale the features of X, or use a "
            "kernel of bounded values such as RBF()."
        )
    return sizes


def divide(block: RankOnes | np.ndarray, sizes: np.ndarray) -> RankOnes | np.ndarray:
    """Bring the kernels of a block to size 1, in place, so that their inner products neither under- nor overflow."""
    if isinstance(block, RankOnes):
        block.B[:] /= np.sqrt(np.where(sizes > 0, sizes, 1.0))
    else:
        block /= sizes if sizes[0] > 0 else 1.0
    return block


def summarize_kernel(design: KernelDesign, given: BaseKernels, target: Target, learned: LearnedKernel) -> KernelFit:
    """Return all that is known of a learned kernel; warn where it is of little use or accuracy."""
    result, features = learned.result, explicit_features(learned)
    active = [member for member, factor in zip(learned.members, learned.factors, strict=True) if factor]
    is_known = all(isinstance(member, BoundFeatures) for member in active) and not design.leave_one_out
    fit = KernelFit(
        kernel=learned.kernel,
        weights=result.x,
        base_kernels=Records(
            {"name": name, "weight": float(weight)} for name, weight in zip(learned.names, result.x, strict=True)
        ),
        alignment={"before": base_alignment(design, given, target), "after": result.objective},
        n_features_out=sum(len(kept) for _, kept, _ in features),
        objective=result.objective,
        certificate=result.certificate,
        status=result.status,
        n_iter=max(1, result.n_iter),
        features=features,
        library=design.library,
        is_known=is_known,
    )
    if not result.aligned:
        warn_caller("No base kernel is aligned with the labels: all weigh alike. Use other kernels, or more labels.")
    if not result.status.converged:
        warn_caller(f"{result.status.value} Residual {result.certificate.relative:.2e}.", ConvergenceWarning)
    return fit


def digest_rows(X: Any) -> str | None:
    """Return a digest of rows that tells them from all others; None where they are sparse."""
    if not isinstance(X, np.ndarray):
        return None
    digest = sha256(f"{X.dtype.str} {X.shape}".encode())
    digest.update(np.ascontiguousarray(X).view(np.uint8).data)
    return digest.hexdigest()


def base_alignment(design: KernelDesign, given: BaseKernels, target: Target) -> float:
    """Return the alignment of the base kernel by itself; of many labelled rows, with a part of them."""
    drawn = np.random.default_rng(0).permutation(len(target.rows))[:MAX_ALIGNMENT_ROWS]
    ends = [target.values.argmin(axis=0), target.values.argmax(axis=0)]  # no class is lost, and numbers differ
    part = target.restrict(np.unique(np.concatenate([drawn, *ends])))
    K = given.base.block(part.rows, part.rows).astype(np.float64)
    require_finite(K, design.base.name)
    known = alignment.gram([divide(K, mean_diagonals(K, part.weight))], part.values, part.weight)
    return alignment.alignment_value(np.ones(1), *known)


def explicit_features(learned: LearnedKernel) -> list[tuple[FeatureMap, np.ndarray, np.ndarray]]:
    """Return functions of a row whose inner products are the learned kernel; whole kernels by the labelled rows."""
    features: list[tuple[FeatureMap, np.ndarray, np.ndarray]] = []
    wholes, factors = [], []
    for member, factor in zip(learned.members, learned.factors, strict=True):
        if factor and isinstance(member, BoundFeatures):
            kept = np.flatnonzero(member.weights)
            features.append((member.features, kept, np.sqrt(member.weights[kept])))
        elif factor:
            wholes.append(member)
            factors.append(factor)
    if wholes:
        kernel = CombinedKernel(wholes, np.array(factors)).compact(learned.rows)
        K = kernel.block(ALL, ALL).astype(np.float64, copy=False)
        values, vectors = np.linalg.eigh(K)
        # more than the norm of its rounding
        kept = values > ROUNDINGS * learned.rounding * np.sqrt(len(K)) * np.abs(K).max()
        basis = EigenBasis(kernel, vectors[:, kept] / np.sqrt(values[kept]), None, values[kept])
        features.append((basis, np.arange(basis.n_features), np.ones(basis.n_features)))
    return features

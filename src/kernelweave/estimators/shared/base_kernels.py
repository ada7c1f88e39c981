r"""The base kernels that a learner weighs, tied to rows before any label is seen.

Base kernels are vectors, :math:`k_p(x, z) = b_p(x) b_p(z)` with functions :math:`b_p` of a row, or whole kernels.
Vectors are eigenvectors of one kernel or of its graph; those made of labels come later, with the labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ...kernels.base import BoundKernel, Kernel
from ...kernels.features import FeatureMap
from ...kernels.library import Entry, KernelLibrary
from ...kernels.manifold import count_landmarks
from ...kernels.partitioned import bind_partitioned
from ...kernels.sharing import once
from ...kernels.spectral import count_vectors, eigenbasis, partitioned_eigenbasis
from .memory import require_square_memory, require_vector_memory
from .partitioned import PartitionedSample
from .sample import Sample, bind


@dataclass(frozen=True, kw_only=True)
class KernelDesign:
    """What a kernel is learned from, and how: the plain options of a kernel learner.

    Attributes
    ----------
    owner : str
        The learner, for messages.
    library : KernelLibrary
        All kernels that are bound.
    base : Entry
        The kernel whose eigenvectors and votes are taken, and whose alignment the learned kernel improves on.
    wholes : tuple of Entry
        Kernels that join as they are.
    basis : {"kernel", "laplacian"}
        Whether eigenvectors are those of the base or of its graph.
    n_eigenvectors, n_landmarks, landmarks
        As the parameters of the learners; 0 where no eigenvectors join.
    label_aware : bool
        Whether vectors join that are made of labels.
    leave_one_out, normalization
        Of these, as the parameters of :class:`~kernelweave.LabelAwareKernelLearner`.
    weighting : {"alignf", "align", "uniform", "ordered"}
    ridge : float
        Of ``"alignf"``; relative to the squared sizes of the base kernels where these have unit size.
    unit_size : bool
        Whether base kernels are brought to one size before they are weighed.
    random_state : int, RandomState or None
        The seed that the learner itself has.
    """

    owner: str
    library: KernelLibrary
    base: Entry
    wholes: tuple[Entry, ...] = ()
    basis: str = "kernel"
    n_eigenvectors: float = 0
    n_landmarks: int | str | None = None
    landmarks: str = "kmeans"
    label_aware: bool = False
    leave_one_out: bool = False
    normalization: str = "degree"
    weighting: str = "alignf"
    ridge: float = 0.0
    unit_size: bool = True
    random_state: Any = None


@dataclass(frozen=True, eq=False)
class Vectors:
    """Base kernels of rank one: functions of a row, and their values at all rows of the sample."""

    entry: Entry
    features: FeatureMap
    Z: np.ndarray
    names: Sequence[str]


@dataclass(frozen=True, eq=False)
class BaseKernels:
    """What a learner knows of rows before it sees labels.

    Attributes
    ----------
    X : array or CSR of shape (n_rows, n_features)
    base : BoundKernel
    vectors : list of Vectors
    wholes : list of BoundKernel
    """

    X: Any
    base: BoundKernel
    vectors: list[Vectors]
    wholes: list[BoundKernel]

    def restrict(self, rows: np.ndarray) -> BaseKernels:
        """Return what is known of some of the rows, learned from all."""
        vectors = [replace(part, Z=part.Z[rows]) for part in self.vectors]
        return BaseKernels(self.X[rows], self.base.restrict(rows), vectors, [K.restrict(rows) for K in self.wholes])


def bind_base_kernels(
    design: KernelDesign, sample: Sample, rng: np.random.Generator, known: dict[Any, Any]
) -> BaseKernels:
    """Bind kernels and find eigenvectors: all that needs no labels.

    ``known`` holds what other designs have already found for the same rows, and takes up what is new.
    """
    n_rows = sample.n_rows
    n_landmarks = count_landmarks(design.n_landmarks, n_rows)
    n_vectors = count_vectors(design.n_eigenvectors, n_landmarks)
    if n_vectors and n_landmarks == n_rows:
        require_square_memory(design.owner, n_rows)
    if n_vectors == 0 or n_landmarks == n_rows:
        n_landmarks = 0
    missing = list(dict.fromkeys(entry.kernel for entry in design.library.entries if entry.kernel not in known))
    if missing:
        require_vector_memory(design.owner, missing, sample, n_vectors, n_landmarks)
        known.update(zip(missing, bind(KernelLibrary(missing), sample, rng).kernels, strict=True))
    wholes = [known[entry.kernel] for entry in design.wholes]
    return BaseKernels(sample.X, known[design.base.kernel], find_eigenvectors(design, sample, rng, known), wholes)


def bind_to_partitions(
    design: KernelDesign,
    sample: Sample,
    partitions: PartitionedSample,
    rng: np.random.Generator,
    known: dict[Any, Any],
) -> BaseKernels:
    """Do the same for partitioned rows: kernels and eigenfunctions learn from all, and are tied to the labelled ones.

    Parameters
    ----------
    design, rng, known
        As for :func:`bind_base_kernels`.
    sample : Sample
        The labelled rows.
    partitions : PartitionedSample
        All rows.
    """
    rows = partitions.rows
    missing = list(dict.fromkeys(entry.kernel for entry in design.library.entries if entry.kernel not in known))
    if missing:
        names = None if rows.feature_names is None else rows.feature_names.tolist()
        known.update(zip(missing, bind_partitioned(KernelLibrary(missing), rows.X, rng, names), strict=True))
    base, vectors = known[design.base.kernel], []
    n_landmarks = count_landmarks(design.n_landmarks, partitions.n_rows)
    n_vectors = count_vectors(design.n_eigenvectors, n_landmarks)
    if n_vectors:
        if design.n_landmarks is None:
            raise ValueError(
                f"{design.owner} with n_landmarks=None keeps the kernel of all {partitions.n_rows:,} rows, which are "
                'partitioned. Pass n_landmarks="auto", or a number.'
            )
        key = (design.base.kernel, design.basis, n_vectors, n_landmarks, design.landmarks)
        if key not in known:
            known[key] = partitioned_eigenbasis(
                base,
                rows.X,
                n_vectors,
                kind=design.basis,
                n_landmarks=n_landmarks,
                landmarks=design.landmarks,
                rng=rng,
                name=design.base.name,
            )
        vectors = [_name_vectors(design.base.kernel, known[key], known[key].of(sample.X))]
    wholes = [known[entry.kernel].tied_to(sample.X) for entry in design.wholes]
    return BaseKernels(sample.X, base.tied_to(sample.X), vectors, wholes)


def find_eigenvectors(
    design: KernelDesign, sample: Sample, rng: np.random.Generator, known: dict[Any, Any]
) -> list[Vectors]:
    """Return the eigenvectors of the base kernel, or of its graph, as one set of vectors; none where none are asked."""
    n_rows, recipe = sample.n_rows, design.base.kernel
    wanted = count_landmarks(design.n_landmarks, n_rows)
    n_landmarks = None if wanted == n_rows else wanted
    n_vectors = count_vectors(design.n_eigenvectors, wanted)
    if n_vectors == 0:
        return []
    key = (recipe, design.basis, n_vectors, n_landmarks, design.landmarks)
    if key not in known:
        find = partial(
            eigenbasis,
            known[recipe],
            sample.X,
            n_vectors,
            kind=design.basis,
            n_landmarks=n_landmarks,
            landmarks=design.landmarks,
            recipe=recipe,
        )
        known[key] = once(("eigenvectors", *key), known[recipe], lambda stream: find(rng=stream), rng)
    return [_name_vectors(recipe, *known[key])]


def _name_vectors(recipe: Kernel, basis: FeatureMap, V: np.ndarray) -> Vectors:
    return Vectors(Entry("eigenvectors", recipe), basis, V, [f"eigenvector {k}" for k in range(V.shape[1])])

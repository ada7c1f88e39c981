"""Every default library, and what decides between them: the one place where ``kernels=None`` gets its meaning.

None of them looks at labels; what decides is whether rows are sparse, how many there are, and whether some of them are
unlabelled.
"""

from __future__ import annotations

from typing import Any

from scipy.sparse import issparse

from .base import Kernel, require_kernel
from .library import KernelLibrary
from .manifold import ManifoldKernel, is_precomputed, manifold_family
from .pointwise import RBF, Linear, Polynomial, rbf_family

MAX_MANIFOLD_ROWS = 10_000  # above so many rows the default library has no deformed kernels: for 20,000, four take 16 s
MAX_TRANSDUCTIVE_ROWS = 4000  # above so many rows transductive machines rest on landmarks
MAX_DIRECT_ROWS = 5000  # up to here discriminants take kernels as they are
N_FEATURES = 2000  # of all kernels of a discriminant together, where there are landmarks


def as_library(kernels: Any, default: KernelLibrary | None = None) -> KernelLibrary:
    """Return a library from what a user may pass as ``kernels``; None is ``default``, by default the plain one."""
    if kernels is None:
        return plain_library() if default is None else default
    if isinstance(kernels, KernelLibrary):
        return kernels
    return KernelLibrary([kernels] if isinstance(kernels, Kernel) else kernels)


def allows_missing(*recipes: Any) -> bool:
    """Return whether some of the recipes that a user gave say what a missing value means; defaults never do."""
    return any(as_library(given).allows_missing for given in recipes if given is not None)


def plain_library() -> KernelLibrary:
    """Return the library of supervised learners: linear, quadratic, and RBF kernels around the mean distance."""
    return KernelLibrary([Linear(), Polynomial(), *rbf_family()])


def novelty_library() -> KernelLibrary:
    """Return the library of novelty detection: kernels that grow with distance would call far rows the most usual."""
    return KernelLibrary(rbf_family())


def mixture_library(X: Any, n_unlabeled: int) -> KernelLibrary:
    """Return the library of semi-supervised mixtures: with unlabelled rows, deformed kernels join the plain ones."""
    plain = plain_library()
    return plain if n_unlabeled == 0 else KernelLibrary([plain, deformed_kernels(X)])


def deformed_kernels(X: Any) -> list[ManifoldKernel]:
    """Return the deformed kernels that join plain ones where some rows of ``X`` are unlabelled.

    Seven neighbours, degrees 1 and 2, ratios 10 and 100: on digits and on the six benchmarks of 100 labels that were
    tried, they lowered the error of the 1-norm mixture in all cases (7.3 to 3.0 % on digits). None above 10,000 rows.
    """
    if X.shape[0] > MAX_MANIFOLD_ROWS:
        return []
    return manifold_family(ratios=(10.0, 100.0), n_neighbors=(7,), degrees=(1, 2))


def transductive_library(X: Any) -> KernelLibrary:
    """Return the library of transductive machines: one kernel and mild deformations of it."""
    deformed = manifold_family(single_kernel(X), metric=neighbor_metric("auto", None, X))
    return KernelLibrary([landmark_kernel(X), *deformed])


def landmark_kernel(X: Any) -> Kernel:
    """Return the one kernel of a transductive machine: for many rows its approximation by landmarks."""
    base = single_kernel(X)
    return ManifoldKernel(base, ratio=0.0) if X.shape[0] > MAX_TRANSDUCTIVE_ROWS else base


def single_kernel(X: Any) -> Kernel:
    """Return the kernel of a machine that has one."""
    return Linear() if issparse(X) else RBF()


def given_kernel(owner: str, kernel: Any, X: Any) -> Kernel:
    """Return the kernel that was given to a machine that has one, or the default one for such rows."""
    if kernel is None:
        return single_kernel(X)
    require_kernel(owner, kernel)
    return kernel


def neighbor_metric(metric: str, kernel: Any, X: Any) -> str:
    """Return the metric that ``"auto"`` means between rows: that of a precomputed kernel, else by sparsity."""
    if metric != "auto":
        return metric
    if kernel is not None and is_precomputed(kernel):
        return "kernel"
    return "cosine" if issparse(X) else "euclidean"


def discriminant_library(library: KernelLibrary, n_landmarks: int | str | None, n_rows: int) -> KernelLibrary:
    """Return the library of a discriminant for so many rows: above 5000, kernels are replaced by landmark features.

    Parameters
    ----------
    library : KernelLibrary
    n_landmarks : "auto", int or None
        Of each kernel; None: all rows.
    n_rows : int
    """
    if n_landmarks is None or (isinstance(n_landmarks, str) and n_rows <= MAX_DIRECT_ROWS):
        return library
    n = max(1, N_FEATURES // len(library)) if isinstance(n_landmarks, str) else int(n_landmarks)
    return KernelLibrary(
        [(entry.name, ManifoldKernel(entry.kernel, ratio=0.0, n_landmarks=n)) for entry in library.entries]
    )

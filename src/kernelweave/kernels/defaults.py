"""Every default library, and what decides between them: the one place where ``kernels=None`` gets its meaning.

None of them looks at labels. What decides is whether rows are sparse, whether their columns look like those of a table,
each in a unit of its own (`tables.is_table`), how many rows there are, and whether some of them are unlabelled. Kernels
of tables scale the columns themselves; those of other data take the rows as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from scipy.sparse import issparse

from .base import Kernel, require_kernel
from .forest import ForestKernel
from .library import KernelLibrary
from .manifold import ManifoldKernel, is_precomputed, manifold_family
from .pointwise import RBF, Linear, Polynomial, rbf_family
from .scaling import ColumnScaler
from .tables import is_table, table_kernel, table_library
from .wrappers import Preprocessed

MAX_MANIFOLD_ROWS = 10_000  # above so many rows the default library has no deformed kernels: for 20,000, four take 16 s
MAX_TRANSDUCTIVE_ROWS = 4000  # above so many rows transductive machines rest on landmarks
MAX_DEFORMED_TRANSDUCTIVE_ROWS = 200_000  # above, graphs of 50 neighbours and features of five kernels are too large
MAX_DIRECT_ROWS = 5000  # up to here discriminants take kernels as they are
NARROW_MULTIPLE = 20.0  # times the usual gamma: narrow kernels of the default for numbers
N_FEATURES = 2000  # of all kernels of a fit together, where there are landmarks


def as_library(kernels: Any, default: KernelLibrary | None = None) -> KernelLibrary:
    """Return a library from what a user may pass as ``kernels``; None is ``default``, by default that of any rows."""
    if kernels is None:
        return homogeneous_library() if default is None else default
    if isinstance(kernels, KernelLibrary):
        return kernels
    return KernelLibrary([kernels] if isinstance(kernels, Kernel) else kernels)


def allows_missing(*recipes: Any) -> bool:
    """Return whether some of the recipes that a user gave say what a missing value means; defaults never do."""
    return any(as_library(given).allows_missing for given in recipes if given is not None)


def given_library(kernels: Any, X: Any) -> KernelLibrary:
    """Return the library that was given to a supervised learner, or the default one for such rows."""
    return plain_library(X) if kernels is None else as_library(kernels)


def plain_library(X: Any) -> KernelLibrary:
    """Return the library of supervised learners: views of a table; linear, quadratic and RBF kernels of other rows."""
    return table_library(X) if is_table(X) else homogeneous_library()


def homogeneous_library() -> KernelLibrary:
    """Return the library of rows that are no table: linear, quadratic, and RBF kernels around the mean distance."""
    return KernelLibrary([Linear(), Polynomial(), *rbf_family()])


def novelty_library(X: Any) -> KernelLibrary:
    """Return the library of novelty detection: kernels that grow with distance would call far rows the most usual."""
    family = rbf_family()
    return KernelLibrary([Preprocessed(ColumnScaler(), kernel) for kernel in family] if is_table(X) else family)


def mixture_library(X: Any, n_unlabeled: int) -> KernelLibrary:
    """Return the library of semi-supervised mixtures: with unlabelled rows, deformed kernels join the plain ones."""
    plain = plain_library(X)
    return plain if n_unlabeled == 0 else KernelLibrary([plain, deformed_kernels(X)])


def deformed_kernels(X: Any, *, scaled: bool = False) -> list[ManifoldKernel]:
    """Return the deformed kernels that join plain ones where some rows of ``X`` are unlabelled.

    ``scaled``: they are a table whose columns are to be taken as they are.

    Seven neighbours, degrees 1 and 2, ratios 10 and 100: on digits and on the six benchmarks of 100 labels that were
    tried, they lowered the error of the 1-norm mixture in all cases (7.3 to 3.0 % on digits). None above 10,000 rows.
    """
    if X.shape[0] > MAX_MANIFOLD_ROWS:
        return []
    base, metric = (table_kernel(X, scaled), "kernel") if scaled or is_table(X) else (RBF(), "euclidean")
    return manifold_family(base, ratios=(10.0, 100.0), n_neighbors=(7,), degrees=(1, 2), metric=metric)


class DesignKernels(NamedTuple):
    """Kernels that a kernel is designed from: one for vectors, some of usual width, wide ones, narrow ones."""

    single: Kernel
    plain: Sequence[Kernel]
    wide: Sequence[Kernel]
    narrow: Sequence[Kernel]


def design_kernels(X: Any) -> DesignKernels:
    """Return the kernels from which one is designed for such rows."""
    widths = {"plain": (0.1, 1.0, 5.0), "wide": (0.1,), "narrow": (5.0, NARROW_MULTIPLE)}
    families = {name: [*([] if name == "narrow" else [Linear()]), *rbf_family(each)] for name, each in widths.items()}
    if not is_table(X):
        return DesignKernels(RBF(), **families)
    others = {entry.name: entry.kernel for entry in table_library(X).entries if entry.name not in ("linear", "RBF")}
    scaled = {name: [Preprocessed(ColumnScaler(), each) for each in family] for name, family in families.items()}
    linear = [kernel for name, kernel in others.items() if name == "power linear"]
    plain, wide = [*scaled["plain"], *others.values()], [*scaled["wide"], *linear]
    return DesignKernels(table_kernel(X), plain, wide, scaled["narrow"])


def transductive_library(X: Any) -> KernelLibrary:
    """Return the library of transductive machines: one kernel and, up to 200,000 rows, mild deformations of it."""
    if X.shape[0] > MAX_DEFORMED_TRANSDUCTIVE_ROWS:
        return KernelLibrary([landmark_kernel(X)])
    deformed = manifold_family(single_kernel(X), metric=neighbor_metric("auto", None, X))
    return KernelLibrary([landmark_kernel(X), *deformed])


def landmark_kernel(X: Any) -> Kernel:
    """Return the one kernel of a transductive machine: for many rows its approximation by landmarks."""
    base = single_kernel(X)
    return ManifoldKernel(base, ratio=0.0) if X.shape[0] > MAX_TRANSDUCTIVE_ROWS else base


def single_kernel(X: Any) -> Kernel:
    """Return the kernel of a machine that has one: linear for sparse rows, the sum of the views of a table, or RBF."""
    if issparse(X):
        return Linear()
    return table_kernel(X) if is_table(X) else RBF()


def given_kernel(owner: str, kernel: Any, X: Any) -> Kernel:
    """Return the kernel that was given to a machine that has one, or the default one for such rows."""
    if kernel is None:
        return single_kernel(X)
    require_kernel(owner, kernel)
    return kernel


def neighbor_metric(metric: str, kernel: Any, X: Any) -> str:
    """Return the metric that ``"auto"`` means between rows: that of a precomputed kernel or of the views of a table."""
    if metric != "auto":
        return metric
    if kernel is not None and is_precomputed(kernel):
        return "kernel"
    if issparse(X):
        return "cosine"
    return "kernel" if kernel is None and is_table(X) else "euclidean"


def smooth_library(X: Any) -> KernelLibrary:
    """Return the library of a discriminant: that of supervised learners without kernels that stand in for a ridge.

    The forest kernel is nearly the identity among few rows. Without it the error of ``RKDAClassifier`` was 19.7 % on
    average over ten tables of 30 and 80 labels, with it 20.1 %.
    """
    return KernelLibrary(
        [(entry.name, entry.kernel) for entry in plain_library(X).entries if not isinstance(entry.kernel, ForestKernel)]
    )


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
    return landmark_library(library, None if isinstance(n_landmarks, str) else int(n_landmarks))


def landmark_library(library: KernelLibrary, n_landmarks: int | None = None) -> KernelLibrary:
    """Return the library with each kernel replaced by its features of so many landmarks, by default 2000 in all."""
    n = max(1, N_FEATURES // len(library)) if n_landmarks is None else n_landmarks
    return KernelLibrary(
        [(entry.name, ManifoldKernel(entry.kernel, ratio=0.0, n_landmarks=n)) for entry in library.entries]
    )

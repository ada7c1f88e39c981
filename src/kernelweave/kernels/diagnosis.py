"""Is this kernel what you think it is: symmetric, positive semi-definite, on a sane scale, not a copy of another?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

PSD_TOLERANCE = 1e-8  # relative to the largest eigenvalue: rounding of a PSD matrix stays above minus this


@dataclass(frozen=True)
class KernelDiagnosis:
    """What a sample says about one kernel.

    Attributes
    ----------
    name, source : str
    is_symmetric : bool
    smallest_eigenvalue, largest_eigenvalue : float
        Lanczos estimates; of the symmetric part where the kernel is not symmetric.
    mean_diagonal : float
    redundancy : float
        Largest absolute alignment (cosine between matrices) with another kernel of the library; 1 means a copy.
    most_like : str
        The kernel it is most aligned with.
    """

    name: str
    source: str
    is_symmetric: bool
    smallest_eigenvalue: float
    largest_eigenvalue: float
    mean_diagonal: float
    redundancy: float
    most_like: str

    @property
    def is_psd(self) -> bool:
        """Whether the kernel is positive semi-definite on this sample, up to rounding."""
        largest = max(abs(self.largest_eigenvalue), abs(self.smallest_eigenvalue))
        return self.is_symmetric and self.smallest_eigenvalue >= -PSD_TOLERANCE * largest


def diagnose(library: Any, rng: np.random.Generator) -> list[KernelDiagnosis]:
    """Examine every kernel of a :class:`BoundLibrary` on its own rows."""
    rows = np.arange(library.n_rows)
    inner = library.frobenius(rows)
    norms = np.sqrt(np.maximum(np.diag(inner), np.finfo(float).tiny))
    alignment = np.abs(inner) / np.outer(norms, norms)
    np.fill_diagonal(alignment, 0.0)
    reports = []
    for p, (kernel, entry) in enumerate(zip(library.kernels, library.entries, strict=True)):
        K = kernel.block(rows, rows).astype(np.float64)
        if not np.isfinite(K).all():
            raise ValueError(f"The kernel {entry.name} has values that are not finite (NaN or inf).")
        smallest, largest = _extreme_eigenvalues(0.5 * (K + K.T), rng)
        other = int(alignment[p].argmax())
        reports.append(
            KernelDiagnosis(
                name=entry.name,
                source=entry.source,
                is_symmetric=bool(np.allclose(K, K.T, rtol=1e-7, atol=1e-9 * np.abs(K).max())),
                smallest_eigenvalue=smallest,
                largest_eigenvalue=largest,
                mean_diagonal=float(np.trace(K) / len(K)),
                redundancy=float(alignment[p, other]),
                most_like=library.entries[other].name if len(library.entries) > 1 else "",
            )
        )
    return reports


def _extreme_eigenvalues(K: np.ndarray, rng: np.random.Generator) -> tuple[float, float]:
    """Return the smallest and the largest eigenvalue by Lanczos.

    The smallest is the largest of ``bound * I - K``: for kernels of low rank, whose spectrum piles up at zero, the
    accuracy is then relative to the whole matrix, which is what matters, and Lanczos converges.
    """
    if len(K) < 20:
        values = np.linalg.eigvalsh(K)
        return float(values[0]), float(values[-1])
    start = rng.standard_normal(len(K))
    bound = float(np.abs(K).sum(axis=1).max())
    flipped = LinearOperator(K.shape, matvec=lambda v: bound * np.ravel(v) - K @ np.ravel(v), dtype=np.float64)
    try:
        largest = eigsh(K, 1, which="LA", v0=start, return_eigenvectors=False, tol=1e-10)[0]
        smallest = bound - eigsh(flipped, 1, which="LA", v0=start, return_eigenvectors=False, tol=1e-12)[0]
    except ArpackNoConvergence:
        values = np.linalg.eigvalsh(K)
        smallest, largest = values[0], values[-1]
    return float(smallest), float(largest)

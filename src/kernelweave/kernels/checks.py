"""Checks of kernel matrices: finite, symmetric, positive semi-definite; one tolerance and one sentence each."""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dpotrf

# Of the largest entry, or ten times the precision of the values: differences up to this are rounding.
MAX_ASYMMETRY = 1e-8
MAX_NEGATIVE, ROUNDINGS = 1e-9, 10.0  # of the trace, and times the precision: eigenvalues above minus this are rounding
EPS = float(np.finfo(float).eps)
STRIP_ROWS = 64  # rows


def require_finite(values: np.ndarray | float, name: str, where: str = "") -> None:
    """Refuse kernel values that are NaN or infinite; ``where`` says at which rows, if not at those of the fit."""
    if not np.isfinite(values).all():
        raise ValueError(
            f"The kernel {name} gave values that are not finite (NaN or inf){where}. Check the function or matrix it "
            "is made from, or scale the features: large values overflow in polynomials."
        )


def require_symmetric(K: np.ndarray, name: str, owner: str, rounding: float | None = None) -> None:
    """Refuse a matrix that is not symmetric up to the relative rounding of its values."""
    if not is_symmetric(K, rounding):
        raise ValueError(
            f"The kernel {name} is not symmetric, and {owner} needs symmetric, positive semi-definite kernels. "
            f"{remedy(owner)}"
        )


def require_semidefinite(K: np.ndarray, name: str, owner: str, rounding: float = EPS) -> None:
    """Refuse a matrix that is not symmetric and positive semi-definite up to rounding."""
    require_symmetric(K, name, owner, rounding)
    if not is_semidefinite(K, rounding):
        raise ValueError(f"The kernel {name} is not positive semi-definite, as {owner} requires. {remedy(owner)}")


def is_symmetric(K: np.ndarray, rounding: float | None = None) -> bool:
    """Return whether a matrix is symmetric up to the relative rounding of its values, by default that of its type."""
    rounding = float(np.finfo(K.dtype).eps) if rounding is None else rounding
    differs = largest = 0.0
    for start in range(0, len(K), STRIP_ROWS):  # strips stay in the processor's cache
        rows = K[start : start + STRIP_ROWS, : start + STRIP_ROWS]
        differs = max(differs, float(np.abs(rows - K[: start + STRIP_ROWS, start : start + STRIP_ROWS].T).max()))
        largest = max(largest, float(np.abs(rows).max()))
    return differs <= max(MAX_ASYMMETRY, ROUNDINGS * rounding) * largest


def is_semidefinite(K: np.ndarray, rounding: float = EPS) -> bool:
    """Return whether a symmetric matrix is positive semi-definite, up to the relative rounding of its values."""
    shifted = np.array(K, dtype=np.float64)
    trace = max(float(np.trace(shifted)), np.finfo(float).tiny)
    shifted.flat[:: len(K) + 1] += max(MAX_NEGATIVE, ROUNDINGS * rounding) * trace
    return int(dpotrf(shifted, lower=1, overwrite_a=1)[1]) == 0


def is_semidefinite_about_its_center(K: np.ndarray, rounding: float = EPS) -> bool:
    """Return whether a kernel is positive semi-definite for coefficients that sum to zero, up to rounding."""
    means = K.mean(axis=0)
    return is_semidefinite(K - means - means[:, None] + means.mean(), rounding)


def remedy(owner: str) -> str:
    """Return what to do with a kernel that the owner does not take."""
    kind = "Regressor" if owner.endswith("Regressor") else "Classifier"
    return f"Leave it out, or use CGBoost{kind} or SSMK{kind}, which take any kernel."

"""Checks of rows and kernel matrices: finite, symmetric, positive semi-definite; one tolerance, one sentence each.

And of objects read from a file: whether their arrays fit together.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg.lapack import dpotrf

# Of the largest entry, or ten times the precision of the values: differences up to this are rounding.
MAX_ASYMMETRY = 1e-8
MAX_NEGATIVE, ROUNDINGS = 1e-9, 10.0  # of the trace, and times the precision: eigenvalues above minus this are rounding
EPS = float(np.finfo(float).eps)
STRIP_ROWS = 64  # rows


def as_floats(X: Any, kernel: Any) -> Any:
    """Return the rows as an array or CSR of floats, itself where it is one; missing values are refused."""
    X = X.tocsr() if sparse.issparse(X) else np.asarray(X)
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    values = X.data if sparse.issparse(X) else X
    with np.errstate(over="ignore", invalid="ignore"):
        total = values.sum()
    if not np.isfinite(total) and np.isnan(values).any():
        raise ValueError(
            f"{kernel} found missing values (NaN) in X. Impute them first, or wrap the kernel as "
            'OnColumns(kernel, columns, missing="center") if some rows lack a whole source.'
        )
    return X


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


def require_consistent(item: Any, is_right: bool, what: str) -> None:
    """Refuse an object of a model file; ``what`` says what is wrong with it, after the name of its type."""
    if not is_right:
        raise ValueError(f"its {type(item).__name__} {what}")


def is_plain_array(values: Any) -> bool:
    """Return whether this is an array that hides no values: the least value of a masked one is not that of its data."""
    return isinstance(values, np.ndarray) and not isinstance(values, np.ma.MaskedArray)


def is_index(values: Any, stop: int, n_dimensions: int = 1) -> bool:
    """Return whether this is an array of whole numbers from 0 to ``stop - 1``."""
    if not is_plain_array(values) or values.dtype.kind not in "iu" or values.ndim != n_dimensions:
        return False
    return not values.size or bool(values.min() >= 0 and values.max() < stop)


def are_floats(values: Any, *shape: int, is_finite: bool = True) -> bool:
    """Return whether this is an array of floating point numbers, of this shape, all finite if asked for."""
    if not is_plain_array(values) or values.dtype.kind != "f" or values.shape != shape:
        return False
    return not is_finite or bool(np.isfinite(values).all())

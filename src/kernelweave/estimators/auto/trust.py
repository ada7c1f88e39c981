"""What held-out rows say of labels, given and filled: which given ones are doubtful, which rows to label next."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.impute import SimpleImputer

from ...kernels.scaling import PowerScaler
from ...kernels.tables import is_table
from ...model_selection.suspects import Suspects
from ...parameters import is_nonnegative, require

MAX_COORDINATES = 20  # of a row among others: enough to tell near rows from far ones


def map_rows(X: Any, seed: int) -> np.ndarray:
    """Return a few coordinates of each row, in which distances are nearly those of the rows; single precision.

    Columns of a table are scaled after powers; other rows are taken as they are. Missing values become the mean of
    their column.

    Parameters
    ----------
    X : array or CSR of shape (n_rows, n_features)
    seed : int
        Of what is drawn where there are many columns.
    """
    if np.isnan(X.data if issparse(X) else X).any():
        X = SimpleImputer(keep_empty_features=True).fit_transform(X)
    if issparse(X):
        n_kept = min(MAX_COORDINATES, X.shape[1] - 1, X.shape[0] - 1)
        dense = X.toarray() if n_kept < 1 else TruncatedSVD(n_kept, random_state=seed).fit_transform(X)
        return dense.astype(np.float32)
    points = PowerScaler().fit_transform(X) if is_table(X) else X
    if points.shape[1] > MAX_COORDINATES and len(points) > MAX_COORDINATES:
        points = PCA(MAX_COORDINATES, random_state=seed).fit_transform(points)
    return (points - points.mean(axis=0)).astype(np.float32)


def list_suspects(
    suspects: Suspects, rows: np.ndarray, given: np.ndarray, suggested: np.ndarray, n: int | None
) -> list[dict[str, Any]]:
    """Return records of the most doubtful labels.

    Parameters
    ----------
    suspects : Suspects
    rows, given, suggested : ndarray of shape (n_tested,)
        Numbers of the rows, their labels, and what predictions say instead.
    n : int or None
        How many; None: all.
    """
    holds = n is None or is_nonnegative(n, numbers.Integral)
    require("suspect_labels", "n", n, holds, "None, or a whole number, 0 or more")
    order = suspects.order[:n]
    return [
        {
            "row": int(rows[i]),
            "given": given[i : i + 1].tolist()[0],
            "suggested": suggested[i : i + 1].tolist()[0],
            "score": float(suspects.scores[i]),
        }
        for i in order
    ]

"""What cross-validation found, in the shape of scikit-learn's ``GridSearchCV.cv_results_``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import rankdata


def tabulate_scores(
    candidates: Sequence[Mapping[str, Any]], scores: np.ndarray, fold_weight: np.ndarray | None = None
) -> dict[str, Any]:
    """Return the scores of all candidates as a dict of arrays, from which a frame can be made.

    Parameters
    ----------
    candidates : sequence of mappings
        What each candidate sets; all set the same parameters.
    scores : ndarray of shape (n_candidates, n_folds)
        Larger is better.
    fold_weight : ndarray of shape (n_folds,), optional
        How much folds count in means and deviations, such as the number of their held-out rows. None: equally.

    Returns
    -------
    dict
        ``params``, ``param_<name>``, ``split<k>_test_score``, ``mean_test_score``, ``std_test_score`` and
        ``rank_test_score``.

    Examples
    --------
    >>> table = tabulate_scores([{"C": 1.0}, {"C": 10.0}], np.array([[0.5, 1.0], [1.0, 1.0]]))
    >>> table["mean_test_score"].tolist(), table["rank_test_score"].tolist(), table["params"][1]
    ([0.75, 1.0], [2, 1], {'C': 10.0})
    """
    means = np.average(scores, axis=1, weights=fold_weight)
    distances = scores - means[:, None]
    unit = np.maximum(np.abs(distances).max(axis=1), np.finfo(float).tiny)  # squares of losses may be none
    deviations = unit * np.sqrt(np.average(np.square(distances / unit[:, None]), axis=1, weights=fold_weight))
    table: dict[str, Any] = {f"param_{name}": _column([given[name] for given in candidates]) for name in candidates[0]}
    table["params"] = [dict(given) for given in candidates]
    table |= {f"split{k}_test_score": scores[:, k].copy() for k in range(scores.shape[1])}
    ranks = rankdata(-means, method="min").astype(np.int32)
    return table | {"mean_test_score": means, "std_test_score": deviations, "rank_test_score": ranks}


def _column(values: list[Any]) -> np.ndarray:
    """Return one entry for each candidate, even where a value is an array."""
    if not any(np.ndim(value) for value in values):
        return np.array(values)
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column

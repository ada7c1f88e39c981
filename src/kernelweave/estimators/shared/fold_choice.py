r"""Choices by folds of the labelled rows: which rows to hold out, and which candidate to take.

One candidate is the default. Another one takes its place if its losses :math:`\ell` at held-out rows are smaller by
more than a standard error of the difference, :math:`\sum_r d_r > \sqrt{\sum_r d_r^2}` with
:math:`d_r = \ell^{\mathrm{default}}_r - \ell_r`, where :math:`r` runs over the rows of all folds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ...warn import warn_caller
from .cv_results import tabulate_scores

N_FOLDS = 5
MAX_CHOICE_ROWS = 500  # labelled rows that take part in a choice; more would cost time and hardly change it
TIME_SHARE = 0.5  # of max_time, after which nothing more is compared, and the default is taken

Folds = list[tuple[np.ndarray, np.ndarray]]


def split_labeled(
    codes: np.ndarray | None,
    n_labeled: int,
    rng: np.random.Generator | np.random.RandomState,
    n_repeats: int = 1,
    *,
    n_folds: int = N_FOLDS,
    max_rows: int | None = None,
) -> Folds:
    """Return labelled rows to learn from and to hold out, by parts; none where rows are too few.

    Rows of a class are dealt to the parts in turn, so that a class of two rows or more always keeps one to learn from;
    the row of a class that has no other is never held out.

    Parameters
    ----------
    codes : ndarray of shape (n_labeled,) or None
        Classes, if there are any.
    n_labeled : int
    rng : numpy.random.Generator or RandomState
    n_repeats : int
        How often rows are dealt anew.
    n_folds : int
        Parts of each repeat.
    max_rows : int, optional
        Where there are more labelled rows, so many are drawn, two of each class at least; the others take no part. By
        default `MAX_CHOICE_ROWS`.
    """
    max_rows = MAX_CHOICE_ROWS if max_rows is None else max_rows
    classes = np.zeros(n_labeled, dtype=np.intp) if codes is None else codes
    folds: Folds = []
    for _ in range(n_repeats):
        drawn = rng.permutation(n_labeled)
        if n_labeled > max_rows:
            is_first = _is_among_first(classes[drawn])
            drawn = np.concatenate([drawn[is_first], drawn[~is_first]])
        drawn = drawn[:max_rows]
        drawn = drawn[np.argsort(number_by_appearance(classes[drawn]), kind="stable")]
        own, counts = np.unique(classes[drawn], return_counts=True)
        several = np.isin(classes[drawn], own[counts > 1])
        part = np.full(len(drawn), -1)
        part[several] = np.arange(np.count_nonzero(several)) % n_folds
        for k in range(n_folds):
            held = drawn[part == k]
            kept = drawn[part != k]
            if len(held) and (codes is None or len(np.unique(classes[kept])) == len(own)):
                folds.append((np.sort(kept), np.sort(held)))
    return folds


def choose_candidate(losses: np.ndarray, default: int = 0) -> int:
    """Return the number of the candidate to take.

    Parameters
    ----------
    losses : ndarray of shape (n_candidates, n_held_out)
        Weighted losses at the held-out rows, fold after fold.
    default : int
    """
    best = int(losses.sum(axis=1).argmin())
    return best if clearly_better(losses[best], losses[default]) else default


def clearly_better(losses: np.ndarray, others: np.ndarray, n_deviations: float = 1.0) -> bool:
    """Return whether losses on the same rows are smaller, by more than so many standard errors of the difference."""
    gains = np.subtract(others, losses, dtype=float)
    with np.errstate(invalid="ignore"):  # infinite ones are not clear
        gains /= float(np.abs(gains).max(initial=0.0)) or 1.0  # squares of numbers up to 1 do not overflow
    return bool(gains.sum() > n_deviations * np.sqrt(np.square(gains).sum()))


def tabulate_losses(
    candidates: Sequence[Mapping[str, Any]],
    losses: np.ndarray,
    weight: np.ndarray,
    folds: Folds,
    perfect_score: float = 0.0,
) -> dict[str, Any]:
    """Return losses at held-out rows in the shape of scikit-learn's ``cv_results_``; scores are means over folds.

    Parameters
    ----------
    candidates : sequence of mappings
        What each candidate sets.
    losses : ndarray of shape (n_candidates, n_held_out)
        Weighted losses at the held-out rows, fold after fold.
    weight : ndarray of shape (n_labeled,)
    folds : list of pairs of ndarray
    perfect_score : float
        The score where nothing is lost.
    """
    ends = np.cumsum([len(held) for _, held in folds])
    weights = np.array([weight[held].sum() for _, held in folds])
    totals = np.column_stack([part.sum(axis=1) for part in np.split(losses, ends[:-1], axis=1)])
    return tabulate_scores(candidates, perfect_score - totals / weights, weights)


def number_by_appearance(codes: np.ndarray) -> np.ndarray:
    """Return class numbers in the order of the first rows of the classes, so that their names decide nothing.

    Examples
    --------
    >>> number_by_appearance(np.array([2, 0, 2, 1])).tolist()
    [0, 1, 0, 2]
    """
    _, first, own = np.unique(codes, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[own])


def _is_among_first(classes: np.ndarray, n_rows: int = 2) -> np.ndarray:
    """Return which rows are among the first of their class."""
    order = np.argsort(classes, kind="stable")
    counts = np.unique(classes, return_counts=True)[1]
    places = np.arange(len(classes)) - np.repeat(np.cumsum(counts) - counts, counts)
    is_first = np.empty(len(classes), dtype=bool)
    is_first[order] = places < n_rows
    return is_first


def warn_not_compared(taken: Mapping[str, Any], *, without_unlabeled: bool = False) -> None:
    """Warn that the time for choices was over before settings were compared.

    Parameters
    ----------
    taken : mapping
        What was taken for each parameter that was left open: a number, several, or words.
    without_unlabeled : bool
        Whether unlabelled rows were left out, since nothing says that they help.
    """
    compared, outcomes, remedies = list(taken), [], ["Raise max_time"]
    if taken:
        was = "was" if len(taken) == 1 else "were"
        outcomes.append(f"{' and '.join(_write_setting(*each) for each in taken.items())} {was} taken")
        remedies.append(f"give {' and '.join(taken)}")
    if without_unlabeled:
        compared.append("the use of unlabelled rows")
        outcomes.append("unlabelled rows were left out")
        remedies.append("set safe=False")
    warn_caller(
        f"Half of max_time was over before {' and '.join(compared)} {'was' if len(compared) == 1 else 'were'} compared "
        f"on held-out rows: {', '.join(outcomes)}. {', or '.join(remedies)}.",
        ConvergenceWarning,
    )


def _write_setting(name: str, value: Any) -> str:
    """Return a parameter and its value, or what is said of it in words."""
    if isinstance(value, str):
        return value
    numbers = [f"{each:.3g}" for each in np.ravel(value)]  # one for each output
    return f"{name}={numbers[0] if len(set(numbers)) == 1 else '[' + ', '.join(numbers) + ']'}"

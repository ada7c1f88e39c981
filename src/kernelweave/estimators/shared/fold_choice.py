r"""Choices by folds of the labelled rows: which rows to hold out, and which candidate to take.

The first candidate is the default. Another one takes its place if its losses :math:`\ell` at held-out rows are smaller
by more than a standard error of the difference, :math:`\sum_r d_r > \sqrt{\sum_r d_r^2}` with
:math:`d_r = \ell^{\mathrm{default}}_r - \ell_r`, where :math:`r` runs over the rows of all folds.
"""

from __future__ import annotations

import numpy as np

N_FOLDS = 5
MAX_CHOICE_ROWS = 500  # labelled rows that take part in a choice; more would cost time and hardly change it

Folds = list[tuple[np.ndarray, np.ndarray]]


def split_labeled(codes: np.ndarray | None, n_labeled: int, rng: np.random.Generator, n_repeats: int = 1) -> Folds:
    """Return labelled rows to learn from and to hold out, five parts for each repeat; none where rows are too few.

    Rows of a class are dealt to the parts in turn, so that a class of two rows or more always keeps one to learn from;
    the row of a class that has no other is never held out.

    Parameters
    ----------
    codes : ndarray of shape (n_labeled,) or None
        Classes, if there are any.
    n_labeled : int
    rng : numpy.random.Generator
    n_repeats : int
    """
    classes = np.zeros(n_labeled, dtype=np.intp) if codes is None else codes
    folds: Folds = []
    for _ in range(n_repeats):
        drawn = rng.permutation(n_labeled)[:MAX_CHOICE_ROWS]
        drawn = drawn[np.argsort(classes[drawn], kind="stable")]
        own, counts = np.unique(classes[drawn], return_counts=True)
        several = np.isin(classes[drawn], own[counts > 1])
        part = np.full(len(drawn), -1)
        part[several] = np.arange(np.count_nonzero(several)) % N_FOLDS
        for k in range(N_FOLDS):
            held = drawn[part == k]
            kept = drawn[part != k]
            if len(held) and (codes is None or len(np.unique(classes[kept])) == len(own)):
                folds.append((np.sort(kept), np.sort(held)))
    return folds


def choose_candidate(losses: np.ndarray) -> int:
    """Return the number of the candidate to take, the first being the default.

    Parameters
    ----------
    losses : ndarray of shape (n_candidates, n_held_out)
        Weighted losses at the held-out rows, fold after fold.
    """
    best = int(losses.sum(axis=1).argmin())
    gains = losses[0] - losses[best]
    return best if gains.sum() > np.sqrt(np.square(gains).sum()) else 0

"""Cross-validation that splits the labelled rows only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import utils
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils.multiclass import type_of_target

from ..labels import factorize, labeled_values
from ..parameters import COUNT, READ_LATER, Constraint, check_parameters, is_count, one_of

Rows = NDArray[np.intp]

MAX_WHOLE_CLASSES = 10  # more whole numbers than this, or than half of the rows, may well be counts and not classes
CONSTRAINTS = {
    "n_splits": Constraint(lambda value: is_count(value) and value >= 2, ("a whole number, 2 or more",)),
    "n_repeats": COUNT,
    "stratify": READ_LATER,
    "target": one_of("auto", "classes", "numbers"),
    "unlabeled": READ_LATER,
    "group_unlabeled": one_of("keep", "drop"),
    "random_state": READ_LATER,
}


class SemiSupervisedSplit(BaseCrossValidator):
    """K-fold cross-validation of the labelled rows that keeps unlabelled ones in every training part.

    Each labelled row is in one test part a repeat, an unlabelled row in none. Without groups, sizes of test
    parts differ by one row at most, and so do the numbers of rows of a class in them. A training part that
    lost a class is refused.

    Parameters
    ----------
    n_splits, n_repeats : int, default=5 and 1
        Number of test parts, and of repeats with another shuffle.
    stratify : bool, default=True
        Whether to spread classes evenly. Without effect on numbers (regression).
    target : {"auto", "classes", "numbers"}, default="auto"
        What y holds. "auto": numbers if the labelled y is continuous in scikit-learn's sense, otherwise
        classes. Say "numbers" if a regression target holds whole numbers only: -1 is then one of them.
    unlabeled : "auto", None or a scalar, default="auto"
        What marks an unlabelled row, as in :func:`kernelweave.labels.partition`.
    group_unlabeled : {"keep", "drop"}, default="keep"
        Whether unlabelled rows of held-out groups stay in the training part. "keep" estimates the error on
        groups whose rows were there without labels, "drop" that on groups never seen.
    random_state : int, RandomState instance or None, default=None
        Seeds the shuffle; an int gives the same splits in every call.

    Notes
    -----
    ``StratifiedKFold`` refuses few labels that are enough: a class may have fewer rows than `n_splits`.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.model_selection import SemiSupervisedSplit
    >>> y = np.array([0, 1, 0, 1, -1, -1])
    >>> for train, test in SemiSupervisedSplit(2, random_state=0).split(y, y):
    ...     print(y[test], np.sort(y[train]))
    [0 1] [-1 -1  0  1]
    [0 1] [-1 -1  0  1]
    """

    __metadata_request__split = {"groups": True}  # as in GroupKFold: routed groups arrive unasked

    def __init__(
        self, n_splits: int = 5, *, n_repeats: int = 1, stratify: bool = True, target: str = "auto",
        unlabeled: Any = "auto", group_unlabeled: str = "keep", random_state: Any = None
    ) -> None:  # fmt: skip
        self.n_splits = n_splits
        self.n_repeats = n_repeats
        self.stratify = stratify
        self.target = target
        self.unlabeled = unlabeled
        self.group_unlabeled = group_unlabeled
        self.random_state = random_state
        # checked here, as in scikit-learn's splitters, which have no fit
        check_parameters("SemiSupervisedSplit", vars(self), CONSTRAINTS)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Number of (train, test) pairs; the arguments are not looked at."""
        return self.n_splits * self.n_repeats

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Rows, Rows]]:
        """Row numbers of the training and the test part of each split; of X only the length matters.

        No group is in both parts, but for the unlabelled rows that ``group_unlabeled="keep"`` keeps.
        """
        labeled, classes, codes = self._read(y)
        utils.check_consistent_length(X, y, groups)
        strata = codes if self.stratify else np.zeros_like(codes)
        group_of = None if groups is None else _group_numbers(groups)
        rng = utils.check_random_state(self.random_state)
        for _ in range(self.n_repeats):
            if group_of is None:
                fold_of = _deal_rows(strata, self.n_splits, rng)
            else:
                fold_of = _deal_groups(strata, group_of[labeled], self.n_splits, rng)
            for fold in range(self.n_splits):
                tested = fold_of == fold
                _refuse_lost_class(classes, codes, tested, self.target)
                kept = np.ones(len(y), dtype=bool)
                kept[labeled[tested]] = False
                if group_of is not None and self.group_unlabeled == "drop":
                    kept &= ~np.isin(group_of, group_of[labeled[tested]])
                yield np.flatnonzero(kept), labeled[tested]

    def _read(self, y: Any) -> tuple[Rows, NDArray[Any], Rows]:
        """The labelled rows, the classes (none where y holds numbers), and the class number of each row."""
        labeled, values = labeled_values(y, unlabeled=self.unlabeled, regression=self.target == "numbers")
        if len(labeled) < self.n_splits:
            raise ValueError(
                f"n_splits={self.n_splits} test parts need as many labelled rows, but y has {len(labeled)} "
                f"labelled rows of {len(y)}. Label more rows or use fewer n_splits."
            )
        continuous = values.dtype.kind == "f" and type_of_target(values) == "continuous"
        if self.target == "numbers" or (self.target == "auto" and continuous):
            return labeled, values[:0], np.zeros(len(labeled), dtype=np.intp)
        return labeled, *factorize(values)


def _deal_rows(strata: Rows, n_splits: int, rng: np.random.RandomState) -> Rows:
    """A fold for each row: the shuffled rows, sorted by stratum, are dealt like cards."""
    order = rng.permutation(len(strata))
    fold_of = np.empty(len(strata), dtype=np.intp)
    fold_of[order[np.argsort(strata[order], kind="stable")]] = np.arange(len(strata)) % n_splits
    return fold_of


def _deal_groups(strata: Rows, groups: Rows, n_splits: int, rng: np.random.RandomState) -> Rows:
    """A fold for each row, one for all rows of a group: large groups first, each where it overlaps least.

    A group with class shares g goes to the fold with the smallest s.g, s being the class shares it holds: this
    adds least to the sum of all squared shares. Ties go to the smallest fold, so none stays empty.
    """
    _, group_of, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    if len(sizes) < n_splits:
        raise ValueError(
            f"n_splits={n_splits} test parts need as many groups with labelled rows, but there are "
            f"{len(sizes)}. Use fewer n_splits or finer groups."
        )
    share = np.zeros((len(sizes), strata.max() + 1))
    np.add.at(share, (group_of, strata), 1.0)
    share /= share.sum(axis=0)
    held, n_rows = np.zeros((n_splits, share.shape[1])), np.zeros(n_splits)
    fold_of_group = np.empty(len(sizes), dtype=np.intp)
    order = rng.permutation(len(sizes))
    for group in order[np.argsort(-sizes[order], kind="stable")]:
        fold = np.lexsort((n_rows, held @ share[group]))[0]
        fold_of_group[group] = fold
        held[fold] += share[group]
        n_rows[fold] += sizes[group]
    return fold_of_group[group_of]


def _group_numbers(groups: Any) -> Rows:
    rows, values = labeled_values(groups, unlabeled=None, name="groups")
    if len(rows) < len(groups):
        raise ValueError(
            f"groups has no value in {len(groups) - len(rows)} of {len(groups)} rows. Give each row a group; a "
            "row on its own is a group of one."
        )
    return factorize(values, name="groups")[1]


def _refuse_lost_class(classes: NDArray[Any], codes: Rows, tested: NDArray[np.bool_], target: str) -> None:
    lost = np.setdiff1d(codes[tested], codes[~tested])
    if len(classes) and len(lost):
        many = len(classes) > min(MAX_WHOLE_CLASSES, len(codes) / 2)
        way = ""
        if target == "auto" and classes.dtype.kind in "iuf" and many:
            way = f' If y holds numbers to be predicted, and not {len(classes)} classes, pass target="numbers".'
        raise ValueError(
            f"A training part lost class {classes[lost].tolist()[0]!r}: one test part holds all its labelled "
            f"rows ({np.sum(codes == lost[0])}). Label more rows of it, in other groups if there are groups, "
            f"or leave the class out.{way}"
        )

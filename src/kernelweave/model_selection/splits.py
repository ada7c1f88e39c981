"""Cross-validation that splits the labelled rows only."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn import utils
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils.multiclass import type_of_target

from ..labels import column, factorize, labeled_values
from ..parameters import COUNT, READ_LATER, Constraint, check_parameters, is_count, one_of
from ..warn import warn_caller

Rows = NDArray[np.intp]
Mask = NDArray[np.bool_]

MAX_WHOLE_CLASSES = 10  # more whole numbers than this, or than half of the rows, may well be counts and not classes
NEVER = -1  # the test part of a labelled row that is always trained on
MAX_NAMED = 5  # classes in a warning
SKLEARN = os.path.join(os.path.dirname(sklearn.__file__), "")  # its searches call `split` for the user
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
    parts differ by one row at most, and so do the numbers of rows of a class in them. Every training part holds
    every class: rows without which it would not are never tested, and a warning names them (see Notes).

    Parameters
    ----------
    n_splits : int, default=5
        Number of test parts.
    n_repeats : int, default=1
        How often all labelled rows are dealt to test parts, each time with another shuffle.
    stratify : bool, default=True
        Whether to spread classes evenly. Without effect on numbers (regression).
    target : {"auto", "classes", "numbers"}, default="auto"
        What y holds. "auto": numbers if the labelled y is continuous in scikit-learn's sense, otherwise
        classes. Say "numbers" if a regression target holds whole numbers only: -1 is then one of them.
    unlabeled : "auto", None or marker, default="auto"
        What marks an unlabelled row, as in :class:`~kernelweave.SSMKClassifier`.
    group_unlabeled : {"keep", "drop"}, default="keep"
        Whether unlabelled rows of held-out groups stay in the training part. "keep" estimates the error on
        groups whose rows were there without labels, "drop" that on groups never seen.
    random_state : int, RandomState instance or None, default=None
        Seeds the shuffle; an int gives the same splits in every call.

    See Also
    --------
    labeled_scorer : A scorer for partly labelled rows.
    sklearn.model_selection.StratifiedKFold : Where all rows are labelled.

    Notes
    -----
    A class may have fewer labelled rows than `n_splits`: so many test parts hold one, and the others none. A class
    with a single labelled row, or with groups a class whose labelled rows are all in one group, stays in every
    training part and is never tested: the score is then that on rows of the other classes, in which this class
    occurs only as a wrong answer. Where chance, or the groups, would put all labelled rows of a class into one test
    part, one of them (the smallest of its groups) stays in training, and the class is tested by the others. The
    number of test parts remains `n_splits`.

    A splitter gives row numbers and cannot hide labels: if the rows of a test part stayed in the training part of
    `split`, an estimator would learn from their labels. To keep them there as unlabelled rows, use :meth:`hide_labels`,
    or :func:`kernelweave.model_selection.out_of_fold`, in place of scikit-learn's searches.

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
        """Return the number of pairs of training and test part.

        Parameters
        ----------
        X, y, groups : object, optional
            Not used; part of the interface of scikit-learn.

        Returns
        -------
        int
            ``n_splits * n_repeats``.
        """
        return self.n_splits * self.n_repeats

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Rows, Rows]]:
        """Row numbers of the training and the test part of each split.

        No group is in both parts, but for the unlabelled rows that ``group_unlabeled="keep"`` keeps.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows; only their number is used.
        y : array-like of shape (n_samples,), default=None
            Labels, some of them missing, as ``unlabeled`` says. They must be given.
        groups : array-like of shape (n_samples,), optional
            Rows of one group are held out together.

        Yields
        ------
        train : ndarray of shape (n_trained,)
            Row numbers, ascending: all rows but those of the test part, and with ``group_unlabeled="drop"`` all of
            other groups.
        test : ndarray of shape (n_tested,)
            Numbers of labelled rows.
        """
        labeled, classes, codes = self._read(y)
        utils.check_consistent_length(X, y, groups)
        group_of = None if groups is None else _group_numbers(groups)
        rng = utils.check_random_state(self.random_state)
        units = np.arange(len(labeled)) if group_of is None else group_of[labeled]
        can_be_tested = np.ones(len(labeled), dtype=bool)
        if len(classes):
            can_be_tested = ~_holds_whole_class(codes, units)
        self._refuse_few(classes, codes, units, can_be_tested, "labelled rows" if group_of is None else "groups")
        strata = codes[can_be_tested] if self.stratify else np.zeros(can_be_tested.sum(), dtype=np.intp)
        dealt = []
        for _ in range(self.n_repeats):
            fold_of = np.full(len(labeled), NEVER)
            if group_of is None:
                fold_of[can_be_tested] = _deal_rows(strata, self.n_splits, rng)
            else:
                fold_of[can_be_tested] = _deal_groups(strata, units[can_be_tested], self.n_splits, rng)
            dealt.append(_keep_classes(fold_of, codes, units) if len(classes) else fold_of)
        _warn_of_untested(classes, codes, np.array(dealt) == NEVER, self.target)
        for fold_of in dealt:
            for fold in range(self.n_splits):
                tested = fold_of == fold
                kept = np.ones(len(y), dtype=bool)
                kept[labeled[tested]] = False
                if group_of is not None and self.group_unlabeled == "drop":
                    kept &= ~np.isin(group_of, group_of[labeled[tested]])
                yield np.flatnonzero(kept), labeled[tested]

    def hide_labels(self, y: Any, groups: Any = None) -> Iterator[tuple[NDArray[Any], Rows]]:
        """For each split, all labels but those of the test part, and the rows of the test part.

        For estimators that learn from unlabelled rows: all rows are trained on, and the score of a model fitted on
        ``(X, y_hidden)`` at ``(X[test], y[test])`` is an estimate of that on the unlabelled rows.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Labels, some of them missing.
        groups : array-like of shape (n_samples,), default=None
            Rows of one group are hidden together.

        Yields
        ------
        y_hidden : ndarray of shape (n_samples,)
            A copy of y in which the rows of the test part are marked as y marks its unlabelled rows. Where y has none,
            the mark is None in an object array of classes, or NaN among numbers, so that -1 means what it meant.
        test : ndarray of shape (n_tested,)
            Numbers of the rows whose labels are hidden.

        Examples
        --------
        >>> from kernelweave.model_selection import SemiSupervisedSplit
        >>> for y_hidden, test in SemiSupervisedSplit(2, random_state=0).hide_labels(["a", "b", "a", "b", None]):
        ...     print(y_hidden, test)
        ['a' 'b' None None None] [2 3]
        [None None 'a' 'b' None] [0 1]
        """
        if groups is not None and self.group_unlabeled == "drop":
            raise ValueError(
                'hide_labels keeps all rows in training, but group_unlabeled="drop" leaves out those of held-out '
                'groups. Use split, or group_unlabeled="keep".'
            )
        given = values = column(y)
        labeled, classes, _ = self._read(given)
        unlabeled = np.setdiff1d(np.arange(len(values)), labeled)
        if len(unlabeled):
            marker = values[unlabeled[0]]
        else:
            marker, dtype = (None, object) if len(classes) else (np.nan, np.float64)
            values = values.astype(dtype)
        for _, test in self.split(given, given, groups):
            hidden = values.copy()
            hidden[test] = marker
            yield hidden, test

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

    def _refuse_few(self, classes: NDArray[Any], codes: Rows, units: Rows, can_be_tested: Mask, what: str) -> None:
        """Refuse fewer rows, or groups, that can be held out than there are test parts."""
        n_units = len(np.unique(units[can_be_tested]))
        if n_units >= self.n_splits:
            return
        way = ". Use fewer n_splits or finer groups."
        if not can_be_tested.all():
            rare = np.array([k for k in range(len(classes)) if len(np.unique(units[codes == k])) == 1])
            way = (
                f": the others hold all labels of a class, and are trained on. Label more rows of "
                f"{_name_classes(classes, rare)}, in other groups if there are groups, or leave such classes out."
                f"{_advise_numbers(classes, codes, self.target)}"
            )
        raise ValueError(
            f"n_splits={self.n_splits} test parts need as many {what} that can be tested, but there are {n_units}{way}"
        )


def _holds_whole_class(codes: Rows, units: Rows) -> Mask:
    """Which labelled rows are in a unit (a row, or a group) that holds all labelled rows of a class."""
    pairs = np.unique(np.column_stack([codes, units]), axis=0)
    alone = np.bincount(pairs[:, 0])[pairs[:, 0]] == 1
    return np.isin(units, pairs[alone, 1])


def _deal_rows(strata: Rows, n_splits: int, rng: np.random.RandomState) -> Rows:
    """A fold for each row: the shuffled rows, sorted by stratum, are dealt like cards.

    Strata follow one another by their first rows: names of classes do not matter.
    """
    order = rng.permutation(len(strata))
    fold_of = np.empty(len(strata), dtype=np.intp)
    _, first, own = np.unique(strata[order], return_index=True, return_inverse=True)
    fold_of[order[np.argsort(first[own], kind="stable")]] = np.arange(len(strata)) % n_splits
    return fold_of


def _deal_groups(strata: Rows, groups: Rows, n_splits: int, rng: np.random.RandomState) -> Rows:
    """A fold for each row, one for all rows of a group: large groups first, each where it overlaps least.

    A group with class shares g goes to the fold with the smallest s.g, s being the class shares it holds: this
    adds least to the sum of all squared shares. Ties go to the smallest fold, so none stays empty.
    """
    _, group_of, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    strata = np.unique(strata, return_inverse=True)[1]  # a class that is never tested has no share
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


def _keep_classes(fold_of: Rows, codes: Rows, units: Rows) -> Rows:
    """Take the smallest unit of a class from the test part that holds all units of it.

    There are two or more of them, so no test part becomes empty; and what is taken is in every training part, so
    no other class is lost.
    """
    fold_of = fold_of.copy()
    for k in np.unique(codes):
        folds = fold_of[codes == k]
        if folds[0] != NEVER and (folds == folds[0]).all():
            held, sizes = np.unique(units[np.isin(units, units[codes == k])], return_counts=True)
            fold_of[units == held[sizes.argmin()]] = NEVER
    return fold_of


def _warn_of_untested(classes: NDArray[Any], codes: Rows, untested: NDArray[np.bool_], target: str) -> None:
    """Warn of labelled rows that stay in training; `untested` has a row for each repeat."""
    if not untested.any():
        return
    never = np.setdiff1d(codes, codes[~untested.all(axis=0)])
    some = np.setdiff1d(codes[untested.any(axis=0)], never)
    parts = [f"those of {_name_classes(classes, never)}, of which the score says nothing"] if len(never) else []
    parts += [f"some of {_name_classes(classes, some)}"] if len(some) else []
    warn_caller(
        f"{untested.any(axis=0).sum()} labelled rows are trained on and not tested, as a training part without them "
        f"would lack a class: {', and '.join(parts)}. Label more rows of such classes, in other groups if there are "
        f"groups, or leave the classes out.{_advise_numbers(classes, codes, target)}",
        through=(SKLEARN,),
    )


def _name_classes(classes: NDArray[Any], codes: Rows) -> str:
    more = f" and {len(codes) - MAX_NAMED} others" if len(codes) > MAX_NAMED else ""
    return f"the classes {classes[codes[:MAX_NAMED]].tolist()}{more}"


def _advise_numbers(classes: NDArray[Any], codes: Rows, target: str) -> str:
    """The way out if the classes may well be numbers to be predicted."""
    many = len(classes) > min(MAX_WHOLE_CLASSES, len(codes) / 2)
    if target == "auto" and classes.dtype.kind in "iuf" and many:
        return f' If y holds numbers to be predicted, and not {len(classes)} classes, pass target="numbers".'
    return ""


def _group_numbers(groups: Any) -> Rows:
    rows, values = labeled_values(groups, unlabeled=None, name="groups")
    if len(rows) < len(groups):
        raise ValueError(
            f"groups has no value in {len(groups) - len(rows)} of {len(groups)} rows. Give each row a group; a "
            "row on its own is a group of one."
        )
    return factorize(values, name="groups")[1]

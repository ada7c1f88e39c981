r"""Which rows are labelled, unlabelled, for validation and for the test: drawn once, by a seed.

A draw depends on the seed and on y, on nothing else: not on the number of jobs, not on the order of calls. Give each
trial a seed of its own, ``random_state=[seed, trial]``.

:func:`split` orders all rows at random and deals them out: test first, then validation, labelled, unlabelled. Hence the
test rows do not depend on the other sizes, and fewer labels are a part of more labels: learning curves compare like
with like. A stratified order is the one by

.. math:: \frac{r_i + 1/2}{n_{c(i)}}, \qquad r_i = 0, \dots, n_{c(i)} - 1 \text{ the random rank of row } i
          \text{ in its class } c(i),

so that any run of it has each class in nearly its share: of the first m rows, class c has :math:`m n_c / n` up to
less than the number of classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Bunch

__all__ = ["draw_labels", "split"]

Rows = NDArray[np.intp]
Seed = Any  # whatever numpy.random.default_rng takes


def draw_labels(
    y: ArrayLike,
    n_labeled: int | None = None,
    *,
    per_class: int | Mapping[Any, int] | None = None,
    random_state: Seed = None,
) -> tuple[Rows, Rows]:
    """Rows that keep their labels, and the others.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        The class of each row; all known.
    n_labeled : int, default=None
        Number of labels. One row of each class is drawn first, and the rest from all other rows.
    per_class : int or mapping from class to int, default=None
        Number of labels in each class, instead of `n_labeled`. A mapping names every class.
    random_state : int, sequence of int, numpy Generator or None, default=None
        The seed. None draws differently each time.

    Returns
    -------
    labeled : ndarray of shape (n_labeled,)
        Row numbers, ascending.
    unlabeled : ndarray of shape (n_rows - n_labeled,)
        The other row numbers, ascending.

    See Also
    --------
    split : Also draws rows for validation and test.

    Examples
    --------
    >>> y = [-1, -1, -1, -1, 1, 1]
    >>> labeled, unlabeled = draw_labels(y, per_class={-1: 2, 1: 1}, random_state=0)
    >>> [y[row] for row in labeled], len(unlabeled)
    ([-1, -1, 1], 3)
    """
    if (n_labeled is None) == (per_class is None):
        raise ValueError(
            f"draw_labels needs n_labeled or per_class, and not both, got n_labeled={n_labeled!r} and "
            f"per_class={per_class!r}. n_labeled draws from all rows, per_class from each class."
        )
    codes, classes = _encode(y)
    members = [np.flatnonzero(codes == code) for code in range(len(classes))]
    rng = np.random.default_rng(random_state)
    if n_labeled is None:
        counts = _count_rows(per_class, classes, members)
        drawn = np.concatenate(
            [rng.choice(rows, count, replace=False) for rows, count in zip(members, counts, strict=True)]
        )
    else:
        _refuse_count("n_labeled", n_labeled, len(classes), len(codes), "one a class at least, one a row at most")
        first = np.array([rng.choice(rows) for rows in members])
        others = np.setdiff1d(np.arange(len(codes)), first)
        drawn = np.concatenate([first, rng.choice(others, n_labeled - len(first), replace=False)])
    labeled = np.sort(drawn)
    return labeled, np.setdiff1d(np.arange(len(codes)), labeled)


def split(
    y: ArrayLike,
    *,
    n_labeled: int,
    n_unlabeled: int | None = None,
    n_validation: int = 0,
    n_test: int = 0,
    stratify: bool = False,
    random_state: Seed = None,
) -> Bunch:
    """Disjoint rows for each purpose.

    Parameters
    ----------
    y : array-like of shape (n_rows,) or (n_rows, n_targets)
        Classes or targets; only `stratify` looks at more than their number.
    n_labeled : int
        Number of labelled rows.
    n_unlabeled : int or None, default=None
        Number of unlabelled rows; None means all that are left.
    n_validation : int, default=0
        Number of rows for validation.
    n_test : int, default=0
        Number of rows for the test.
    stratify : bool, default=False
        Whether each part has the classes in their shares.
    random_state : int, sequence of int, numpy Generator or None, default=None
        The seed. None draws differently each time.

    Returns
    -------
    Bunch
        With ``labeled``, ``unlabeled``, ``validation`` and ``test``: row numbers, ascending.

    See Also
    --------
    draw_labels : Draws labelled rows by class.

    Examples
    --------
    >>> parts = split([0, 1] * 50, n_labeled=10, n_test=40, stratify=True, random_state=0)
    >>> {name: len(rows) for name, rows in parts.items()}
    {'labeled': 10, 'unlabeled': 50, 'validation': 0, 'test': 40}
    """
    n_rows = len(np.asarray(y))
    sizes = {"test": n_test, "validation": n_validation, "labeled": n_labeled}
    if n_unlabeled is not None:
        sizes["unlabeled"] = n_unlabeled
    for name, size in sizes.items():
        _refuse_count(f"n_{name}", size, 0, n_rows, "a part of the rows")
    if sum(sizes.values()) > n_rows:
        wanted = ", ".join(f"n_{name}={size}" for name, size in sizes.items())
        raise ValueError(
            f"The parts need {sum(sizes.values())} rows ({wanted}), and y has {n_rows}. Ask for fewer; "
            "n_unlabeled=None takes what is left."
        )
    order = _order_rows(y, n_rows, stratify, np.random.default_rng(random_state))
    sizes.setdefault("unlabeled", n_rows - sum(sizes.values()))
    parts, begin = {}, 0
    for name in ("test", "validation", "labeled", "unlabeled"):
        parts[name] = np.sort(order[begin : begin + sizes[name]])
        begin += sizes[name]
    return Bunch(**{name: parts[name] for name in ("labeled", "unlabeled", "validation", "test")})


def _order_rows(y: ArrayLike, n_rows: int, stratify: bool, rng: np.random.Generator) -> Rows:
    """A random order of all rows, of which any run is stratified if that is asked for."""
    order = rng.permutation(n_rows)
    if not stratify:
        return order
    codes, _ = _encode(y)
    shuffled = codes[order]
    place = np.empty(n_rows)
    for code, size in enumerate(np.bincount(codes)):
        place[shuffled == code] = (np.arange(size) + 0.5) / size
    return order[np.argsort(place, kind="stable")]  # ties stay in random order


def _encode(y: ArrayLike) -> tuple[Rows, NDArray[Any]]:
    values = np.asarray(y)
    if values.ndim != 1 or values.dtype.kind not in "biuUS":
        raise ValueError(
            f"y must hold one class a row, integers or strings and none missing, to draw by class; got shape "
            f"{values.shape} and dtype {values.dtype}. For targets of regression use split with stratify=False."
        )
    classes, codes = np.unique(values, return_inverse=True)
    return codes, classes


def _count_rows(per_class: int | Mapping[Any, int] | None, classes: NDArray[Any], members: list[Rows]) -> list[int]:
    """How many rows of each class, in the order of `classes`."""
    names = classes.tolist()
    wanted: dict[Any, Any] = dict(per_class) if isinstance(per_class, Mapping) else dict.fromkeys(names, per_class)
    if set(wanted) != set(names):
        raise ValueError(
            f"per_class names the classes {sorted(wanted, key=str)}, and y has {names}. Give a number, 0 allowed, for "
            "each class of y and for no other."
        )
    for name, rows in zip(names, members, strict=True):
        _refuse_count(f"per_class for {name!r}", wanted[name], 0, len(rows), "the rows of that class")
    return [int(wanted[name]) for name in names]


def _refuse_count(name: str, count: Any, least: int, most: int, why: str) -> None:
    if not isinstance(count, int | np.integer) or isinstance(count, bool) or not least <= count <= most:
        raise ValueError(f"{name} must be an integer from {least} to {most} ({why}), got {count!r}.")

"""Labels of doubtful meaning: texts that usually stand for a missing label, and -1 where it looks like a class.

Both are read by the rule, and a warning says how, with the ways to say what is meant.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..warn import warn_caller

MISSING = ("", "na", "n/a", "nan", "<na>", "nat", "null", "none", "?", "-", "inf", "+inf", "-inf")  # in lower case
NO_LABEL = (*MISSING, "unknown", "unlabeled", "unlabelled")


def find_text_markers(labels: Iterable[Any]) -> list[str]:
    """Those of the labels, in their order, that are texts which usually stand for a missing label.

    Blanks and case do not count. A minus beside a plus is a class.

    Examples
    --------
    >>> find_text_markers(["cat", "NaN", "dog", " ? ", 3])
    ['NaN', ' ? ']
    >>> find_text_markers(["+", "-"])
    []
    """
    texts = list(dict.fromkeys(label for label in labels if isinstance(label, str)))
    is_sign = {"+", "-"} <= {text.strip() for text in texts}
    return [text for text in texts if text.strip().lower() in NO_LABEL and not (is_sign and text.strip() == "-")]


def warn_of_text_markers(classes: NDArray[Any]) -> None:
    """Warn of classes that are texts which usually stand for a missing label."""
    markers = find_text_markers(classes.tolist())
    if not markers:
        return
    one = f"say so with unlabeled={markers[0]!r}, or " if len(markers) == 1 else ""
    warn_caller(
        f"y has {describe_markers(markers)}. If unlabelled rows are meant, {one}write None there; if classes are "
        "meant, say so with unlabeled=None."
    )


def describe_markers(markers: list[str]) -> str:
    """Words for classes that are such texts."""
    if len(markers) == 1:
        return f"the class {markers[0]!r}, a text that usually stands for a missing label"
    return f"the classes {', '.join(map(repr, markers))}, texts that usually stand for a missing label"


def warn_of_lost_class(classes: NDArray[Any], counts: NDArray[np.intp], n_marked: int) -> None:
    """Warn where -1 is read as "unlabelled" but looks like a class.

    It does where it completes the other classes, 0 and 1, or other negative numbers are classes, and no more rows
    are -1 than are of the largest class: where labels are few, most rows are unlabelled.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
    counts : ndarray of shape (n_classes,)
        Rows of each class.
    n_marked : int
        Rows that are -1.
    """
    if classes.dtype.kind not in "iuf" or not 0 < n_marked <= counts.max():
        return
    if classes.tolist() == [0, 1] or classes.min() < 0:
        warn_caller(
            f"y holds -1 beside classes such as {classes[0]} and {classes[1]}, and not in most rows: it is read as "
            "unlabelled. If -1 is a class, say so with unlabeled=None; if it marks unlabelled rows, say so with "
            "unlabeled=-1, or write NaN or None there."
        )

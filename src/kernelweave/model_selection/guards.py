"""Uses of partly labelled y in scikit-learn that give wrong results in silence, noticed when an estimator is fitted.

scikit-learn takes the marker of unlabelled rows for a class where it reads y itself:

- ``CalibratedClassifierCV`` calibrates probabilities with unlabelled rows as a class of its own. This is refused.
- ``cross_val_predict`` with another method than ``"predict"`` numbers the values of y, the marker among them, and the
  estimator learns it as a class. This is refused.
- ``cross_val_score``, ``GridSearchCV`` and the like, with a splitter that puts unlabelled rows into test parts and a
  scorer that does not leave them out, count them as errors. This is warned of. `score` of this package's estimators and
  :func:`labeled_scorer` leave them out.

scikit-learn tells an estimator nothing of who fits it; the frames of the call stack do. Another version may name things
otherwise: then nothing is noticed, and nothing breaks.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing as take  # in scikit-learn's public reference, in spite of its name

from ..labels import is_unlabeled
from ..warn import warn_caller
from .scorers import is_labeled_scorer
from .semi_supervised import innermost, named_markers, takes_unlabeled
from .splits import SKLEARN

CALIBRATION = os.path.join(SKLEARN, "calibration.py")
VALIDATION = os.path.join(SKLEARN, "model_selection", "_validation.py")
ITS_OWN_SCORES = (ClassifierMixin.score, RegressorMixin.score)


def check_callers(n_unlabeled: int, classes: Any) -> None:
    """Refuse, or warn of, the uses at the top of this module; to be called by a fit.

    Parameters
    ----------
    n_unlabeled : int
        How many unlabelled rows the fit was given. It may be none where a test part holds them all.
    classes : ndarray of shape (n_classes,) or None
        The classes of the others; None for numbers.
    """
    predicting: Mapping[str, Any] = {}
    for frame in _frames():
        file = frame.f_code.co_filename
        if file == VALIDATION and frame.f_code.co_name == "cross_val_predict":
            predicting = frame.f_locals
        is_calibration = file == CALIBRATION
        if is_calibration or (file == VALIDATION and frame.f_code.co_name == "_fit_and_score"):
            caller = frame.f_locals
            if n_unlabeled or takes_unlabeled(caller.get("estimator")):  # else -1 may be a class of y
                (_refuse_calibration if is_calibration else _warn_of_scores)(caller, classes)
    _refuse_numbered(predicting)  # at last: calibration predicts, too, and has the better advice


def _frames() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _refuse_calibration(caller: Mapping[str, Any], classes: Any) -> None:
    if _holds_unlabeled(caller.get("y"), caller.get("estimator"), classes):
        raise ValueError(
            "CalibratedClassifierCV takes the unlabelled rows of y for a class, so its probabilities would be wrong. "
            "Use kernelweave.SemiSupervisedCalibration in its place, which fits on all rows and calibrates on labelled "
            "ones; or pass the labelled rows only."
        )


def _refuse_numbered(caller: Mapping[str, Any]) -> None:
    numbering, estimator = caller.get("le"), caller.get("estimator")
    if numbering is None or not takes_unlabeled(estimator):
        return
    unlabeled = getattr(innermost(estimator), "unlabeled", None)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit says what is to be said of y
            wrong = is_unlabeled(numbering.inverse_transform(caller["y"]), unlabeled=unlabeled).any()
    except (TypeError, ValueError):
        return
    if wrong:
        raise ValueError(
            f"cross_val_predict takes the unlabelled rows of y for a class where method={caller.get('method')!r}, so "
            "its answers would be wrong. Use kernelweave.model_selection.out_of_fold in its place; or pass the "
            "labelled rows only."
        )


def _warn_of_scores(caller: Mapping[str, Any], classes: Any) -> None:
    estimator, scorer = caller.get("estimator"), caller.get("scorer")
    y, test = caller.get("y"), caller.get("test")
    if scorer is None or y is None or test is None or leaves_out_unlabeled(scorer, estimator):
        return
    if _holds_unlabeled(take(y, test), estimator, classes):
        warn_caller(
            "Test parts of this cross-validation hold unlabelled rows, and its scorer is not known to leave them out: "
            "they count as errors, and the scores are wrong. Pass cv=SemiSupervisedSplit(), which tests labelled rows "
            "only, or scoring=labeled_scorer(...), which leaves the others out; both are in kernelweave.",
            through=(SKLEARN,),
        )


def leaves_out_unlabeled(scorer: Any, estimator: Any) -> bool:
    """Whether a scorer is known to leave out unlabelled rows; one of several that does not is enough for a no."""
    several = scorer if isinstance(scorer, Mapping) else getattr(scorer, "_scorers", None)
    if isinstance(several, Mapping):
        return all(leaves_out_unlabeled(each, estimator) for each in several.values())
    if type(scorer).__name__ == "_PassthroughScorer":  # scoring=None: the estimator's own score
        return _own_score_is_labeled(estimator)
    return is_labeled_scorer(scorer)


def _own_score_is_labeled(estimator: Any) -> bool:
    """Whether ``estimator.score`` is another than scikit-learn's, which knows nothing of unlabelled rows."""
    if isinstance(estimator, Pipeline):
        return _own_score_is_labeled(estimator.steps[-1][1])
    if isinstance(estimator, BaseSearchCV):
        inner, scoring = estimator.estimator, estimator.scoring
        return _own_score_is_labeled(inner) if scoring is None else leaves_out_unlabeled(scoring, inner)
    return getattr(type(estimator), "score", None) not in ITS_OWN_SCORES


def _holds_unlabeled(y: Any, estimator: Any, classes: Any) -> bool:
    """Whether y, of the caller, has rows that the fit takes for unlabelled."""
    shape = np.shape(y)
    if len(shape) != 1 and shape[1:] != (1,):  # several numbers a row, or no y at all
        return False
    markers = named_markers(estimator)
    unlabeled = None if classes is None else next(iter(markers), "auto")
    try:
        return bool(is_unlabeled(np.ravel(y) if len(shape) == 2 else y, unlabeled=unlabeled, classes=classes).any())
    except (TypeError, ValueError):  # the y of a caller further out need not be one that we can read
        return False

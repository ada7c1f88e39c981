r"""Sets of classes and intervals of numbers that hold the truth with a chosen probability.

Scores :math:`s_1, \dots, s_n` say how badly known labels fit predictions made without them
(:func:`kernelweave.model_selection.out_of_fold`). If the score of a new row is exchangeable with them, its rank among
all n + 1 is uniform, and with coverage c

.. math:: P(s_{n+1} \le s_{(r)}) \ge c, \qquad r = \lceil c\,(n + 1) \rceil,

whatever the model; at most :math:`c + 1/(n+1)` if no scores are equal (Vovk et al. 2005, Lei et al. 2018). The
prediction is all labels whose score is at most :math:`s_{(r)}`. Where :math:`r > n` the rows are too few for the
coverage, and every label is in it.

- Classes: :math:`s = 1 - p_y`. Among all sets of that coverage, those by true probabilities have the fewest classes in
  the mean (Sadinle et al. 2019). A set that would be empty holds the most probable class, which only adds coverage.
- Classes in other shares than those of the known rows: a known row of class k counts :math:`r_k` times, with r the
  ratio of the shares, and so does the new row where k is tried for it. k is in the set if its score is at most the
  smallest :math:`\tau` with :math:`\sum_{i:\, s_i \le \tau} r_{y_i} \ge c\,(\sum_i r_{y_i} + r_k)` (Podkopaev and
  Ramdas 2021; Tibshirani et al. 2019).
- Numbers: :math:`s = |y - \hat y|`, hence :math:`\hat y \pm s_{(r)}`.

Out-of-fold scores are those of several models, each fitted with fewer labels than the one that predicts new rows; the
bound is then not exact, but errs on the safe side if a model with more labels is no worse (*cross-conformal*; see
Barber et al. 2021). A row whose label was hidden, but which was in training as an unlabelled row, is exchangeable with
the unlabelled rows of that fit, and not with rows never seen; and where rows were not labelled at random
(:mod:`kernelweave.model_selection.label_next`), with none of them.

Adaptive sets (Romano et al. 2020, without randomisation), which add classes until their probabilities sum up, were
measured, too, on the unlabelled rows of digits, wine and breast cancer of scikit-learn; coverage and mean size:

===========================================  ==========  ================  ================
data                                         asked for   1 - p             adaptive
===========================================  ==========  ================  ================
digits, 40 labels, HarmonicClassifier        90 %        91.5 %, 1.14      99.8 %, 4.30
digits, 40 labels, HarmonicClassifier        95 %        96.3 %, 1.83      99.8 %, 5.39
digits, 60 labels, LapSVMClassifier          95 %        97.6 %, 1.14      99.8 %, 7.25
breast cancer, 40 labels, LapSVMClassifier   95 %        96.8 %, 1.12      99.0 %, 1.80
wine, 40 labels, HarmonicClassifier          95 %        96.4 %, 1.02      96.5 %, 1.21
===========================================  ==========  ================  ================

References
----------
V. Vovk, A. Gammerman, G. Shafer, Algorithmic learning in a random world, Springer, 2005.
J. Lei, M. G'Sell, A. Rinaldo, R. Tibshirani, L. Wasserman, Distribution-free predictive inference for regression,
JASA 113, 2018.
M. Sadinle, J. Lei, L. Wasserman, Least ambiguous set-valued classifiers with bounded error levels, JASA 114, 2019.
Y. Romano, M. Sesia, E. Candès, Classification with valid and adaptive coverage, NeurIPS, 2020.
R. Tibshirani, R. Barber, E. Candès, A. Ramdas, Conformal prediction under covariate shift, NeurIPS, 2019.
A. Podkopaev, A. Ramdas, Distribution-free uncertainty quantification for classification under label shift, UAI, 2021.
R. Barber, E. Candès, A. Ramdas, R. Tibshirani, Predictive inference with the jackknife+, Annals of Statistics 49, 2021.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..parameters import is_positive, require

Rows = NDArray[np.intp]
Floats = NDArray[np.float64]

ROUNDING = 1e-9  # 0.07 * 100 is a little more than 7, but the rank is 7


def conformal_threshold(scores: Floats, coverage: float) -> float:
    """The score that a new row exceeds with probability ``1 - coverage`` at most; infinite if rows are too few.

    Parameters
    ----------
    scores : ndarray of shape (n_rows,)
        Of rows whose labels the models had not seen; larger is worse.
    coverage : float
        Between 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> conformal_threshold(np.arange(1.0, 10.0), 0.9), conformal_threshold(np.arange(1.0, 9.0), 0.9)
    (9.0, inf)
    """
    holds = is_positive(coverage) and coverage < 1
    require("conformal_threshold", "coverage", coverage, holds, "a number above 0 and below 1")
    rank = max(1, math.ceil(coverage * (len(scores) + 1) - ROUNDING))
    return float(np.partition(scores, rank - 1)[rank - 1]) if rank <= len(scores) else math.inf


def weighted_threshold(scores: Floats, counts: Floats, own: float, coverage: float) -> float:
    """The same where a known score counts ``counts`` times, and that of the new row ``own`` times.

    Examples
    --------
    >>> import numpy as np
    >>> weighted_threshold(np.array([1.0, 2.0, 3.0]), np.array([6.0, 2.0, 1.0]), 1.0, 0.8)
    2.0
    """
    order = np.argsort(scores, kind="stable")
    reached = np.cumsum(counts[order])
    needed = coverage * (float(counts.sum()) + own) * (1.0 - ROUNDING)
    place = int(np.searchsorted(reached, needed))
    return float(scores[order[place]]) if place < len(scores) else math.inf


def class_sets(
    probabilities: Floats, known: Floats, codes: Rows, coverage: float = 0.9, ratios: Floats | None = None
) -> NDArray[np.bool_]:
    """Sets of classes, one for each row, that hold the true class with probability `coverage` or more.

    Parameters
    ----------
    probabilities : ndarray of shape (n_rows, n_classes)
        Of the rows that are to get a set.
    known : ndarray of shape (n_known, n_classes)
        Probabilities of rows whose class is known, by models that had not seen it.
    codes : ndarray of shape (n_known,)
        Their class numbers.
    coverage : float, default=0.9
    ratios : ndarray of shape (n_classes,), optional
        Share of each class among the rows that are to get a set, over that among the known rows.

    Returns
    -------
    ndarray of bool, shape (n_rows, n_classes)
        Which classes are in the set of a row: the most probable one always, all if there are too few known rows.

    Examples
    --------
    >>> import numpy as np
    >>> known = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.3, 0.7]])
    >>> class_sets(np.array([[0.95, 0.05], [0.55, 0.45]]), known, np.array([0, 1, 1, 1]), coverage=0.8)
    array([[ True, False],
           [ True,  True]])
    """
    scores = 1.0 - known[np.arange(len(codes)), codes]
    threshold: Any = conformal_threshold(scores, coverage)
    if ratios is not None and np.ptp(ratios):
        threshold = np.array([weighted_threshold(scores, ratios[codes], own, coverage) for own in ratios])
    sets = 1.0 - probabilities <= threshold
    sets[np.arange(len(sets)), probabilities.argmax(axis=1)] = True
    return sets


def number_intervals(predictions: Floats, residuals: Floats, coverage: float = 0.9) -> Floats:
    """Intervals around predictions that hold the true number with probability `coverage` or more.

    Parameters
    ----------
    predictions : ndarray of shape (n_rows,)
        Of the rows that are to get an interval.
    residuals : ndarray of shape (n_known,)
        Of rows whose number is known, by models that had not seen it.
    coverage : float, default=0.9

    Returns
    -------
    ndarray of shape (n_rows, 2)
        Lower and upper ends; infinite if there are too few known rows.

    Examples
    --------
    >>> import numpy as np
    >>> number_intervals(np.array([5.0]), np.array([-1.0, 0.5, 2.0, -0.2]), coverage=0.8)
    array([[3., 7.]])
    """
    radius = conformal_threshold(np.abs(residuals), coverage)
    return np.column_stack([predictions - radius, predictions + radius])

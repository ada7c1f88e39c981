r"""Labels that predictions contradict, the most suspicious first.

Given are probabilities :math:`p_{ik}` of rows i and classes k by models that have not seen the label
:math:`\tilde y_i` (:func:`kernelweave.model_selection.out_of_fold`). The *self-confidence* of a label is
:math:`p_{i \tilde y_i}`, the chance of its class by all that the other labels say, and rows are ranked by

.. math:: s_i = w_i\, (1 - p_{i \tilde y_i}),

the weight of a wrong label times the chance that it is one. Of labels with the same score, first those whose best other
class is more probable.

Self-confidence was chosen by measurement: scikit-learn's digits with 100 labels, 20 of them changed to another class at
random, six seeds, out-of-fold probabilities of LapSVMClassifier and LearnedKernelClassifier, by softmax or calibrated.
Changed labels among the first 25, of 20, in the mean:

===================================================================  =========  ==============
score                                                                LapSVM     LearnedKernel
===================================================================  =========  ==============
self-confidence                                                      19.3       19.1
log-odds of the best other class                                     19.2       18.2
margin to the best other class                                       18.8       18.0
self-confidence divided by its mean in the class                     19.0       17.9
self-confidence less its mean in the class (confident learning)      17.9       15.8
===================================================================  =========  ==============

The mean of a class is that of few labels, some of them wrong, and adds more noise than it removes.

For numbers, rows are ranked by the size of the residual in units of its spread.

References
----------
C. Northcutt, L. Jiang, I. Chuang, Confident learning: estimating uncertainty in dataset labels, JAIR 70, 2021.
J. Kuan, J. Mueller, Model-agnostic label quality scoring to detect real-world label errors, ICML DataPerf, 2022.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.intp]
Floats = NDArray[np.float64]

# The median of |z| of a normal sample is this share of its deviation.
NORMAL_MEDIAN = 0.6744897501960817


@dataclass(frozen=True, eq=False)
class Suspects:
    """Labels by how much the predictions contradict them.

    Attributes
    ----------
    order : ndarray of shape (n_rows,)
        Positions of the rows, the most suspicious first.
    scores : ndarray of shape (n_rows,)
        Of each row, in the order of the rows: larger is more suspicious.
    suggestions : ndarray of shape (n_rows,)
        What may be right: the most probable other class of each row, as a code, or the predicted number.
    """

    order: Rows
    scores: Floats
    suggestions: NDArray[np.generic]


def rank_suspects(probabilities: Floats, codes: Rows, weights: Floats | None = None) -> Suspects:
    """Rank the labels of classes by how improbable they are.

    Parameters
    ----------
    probabilities : ndarray of shape (n_rows, n_classes)
        By models that have not seen the labels of the rows. Rows sum to one.
    codes : ndarray of shape (n_rows,)
        The class number that each row was given.
    weights : ndarray of shape (n_rows,), default=None
        What a wrong label costs in each row; ones if None.

    Examples
    --------
    >>> import numpy as np
    >>> found = rank_suspects(np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]]), np.array([0, 0, 0]))
    >>> found.order, found.scores, found.suggestions
    (array([1, 2, 0]), array([0.1, 0.8, 0.4]), array([1, 1, 1]))
    """
    rows = np.arange(len(codes))
    given = probabilities[rows, codes]
    others = probabilities.copy()
    others[rows, codes] = -np.inf
    suggestions = others.argmax(axis=1)
    scores = (1.0 - given) * (1.0 if weights is None else weights)
    # lexsort: the last key decides, and equal rows stay in their order
    order = np.lexsort((-others[rows, suggestions], -scores))
    return Suspects(order, scores, suggestions)


def rank_suspect_numbers(predictions: Floats, targets: Floats, spread: Floats | float | None = None) -> Suspects:
    r"""Rank numbers by their distance from predictions, :math:`|y_i - \hat y_i| / \sigma_i`.

    Parameters
    ----------
    predictions : ndarray of shape (n_rows,)
        By models that have not seen the numbers of the rows.
    targets : ndarray of shape (n_rows,)
        The numbers that were given.
    spread : ndarray of shape (n_rows,), float or None, default=None
        The deviation :math:`\sigma_i` to be expected of a right number. None: one for all rows, the median size of the
        residuals over that of a standard normal one, which a few wrong numbers hardly change. Zero where most
        predictions are exact: any other residual is then infinitely suspicious.

    Examples
    --------
    >>> import numpy as np
    >>> rank_suspect_numbers(np.zeros(4), np.array([0.1, -5.0, 0.2, 1.0]), spread=np.array([0.1, 2.0, 0.1, 1.0])).order
    array([1, 2, 0, 3])
    """
    sizes = np.abs(targets - predictions)
    unit = np.median(sizes) / NORMAL_MEDIAN if spread is None else spread
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = np.where(sizes == 0, 0.0, sizes / unit)
    return Suspects(np.argsort(-scores, kind="stable"), scores, predictions)

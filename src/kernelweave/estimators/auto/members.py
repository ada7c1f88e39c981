r"""Members of a combination: models whose decision values become probabilities, mixed by weights.

.. math:: P(k \mid x) \propto \rho_k \sum_m w_m \, \mathrm{softmax}_k\big(z_m(x)\big) ,

with the scalings :math:`z_m` of ``model_selection.scaling``, fitted to rows that the member has not seen, and
:math:`\rho_k = q_k / \pi_k` the share of class k that the user gave over that of the labelled rows (1 where none was
given).

**A share counts once.** Of a row with density :math:`p(x \mid k)` in class k, labelled rows say :math:`P_\pi(k \mid x)
\propto \pi_k\, p(x \mid k)`, and the answer sought is :math:`P_q(k \mid x) \propto q_k\, p(x \mid k) \propto \rho_k
P_\pi(k \mid x)`: hence the factors of the mixture. A member that was told q itself (the balance of a transductive
machine, the priors of a discriminant) has its threshold where :math:`P_q` is even. Its scaling brings it back to
:math:`P_\pi \propto P_q / \rho` first, by the shift :math:`-\log \rho_k` of its logits, as far as held-out rows do not
say where its thresholds are; alone, it then predicts what it would predict without all this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...model_selection.scaling import (
    Choice,
    Scaling,
    choose_scaling,
    fit_temperature_scaling,
    log_probabilities,
    most_probable,
)
from .frames import Columns
from .trials import outputs

UNTESTED_SLOPE = 2.0  # of a member that no row was held out for: the upper quartile has probability 0.73
MIN_TESTED = 8  # held-out rows, below which scalings and weights are not fitted
MIN_TESTED_CLASSES = 2


@dataclass(frozen=True, eq=False)
class Member:
    """A model in a combination.

    Attributes
    ----------
    name : str
    model : estimator
    weight : float
    scaling : Scaling or None
        From decision values to log odds; None for numbers.
    columns : Columns or None
        The frame that the model was fitted to; None: an array.
    """

    name: str
    model: Any
    weight: float
    scaling: Scaling | None = None
    columns: Columns | None = None

    def outputs(self, X: Any) -> np.ndarray:
        """Return decision values or predictions of the model at the rows of an array."""
        return outputs(self.model, X, self.columns)


def mix_probabilities(members: Sequence[Member], factors: np.ndarray, X: Any) -> np.ndarray:
    """Return the probabilities of the classes, shape (n_rows, n_classes).

    Parameters
    ----------
    members : sequence of Member
    factors : ndarray of shape (n_classes,)
        What the probability of each class is multiplied by, before rows are brought to sum 1.
    X : array or CSR of shape (n_rows, n_features)
    """
    total = np.zeros((X.shape[0], len(factors)))
    for member in members:
        if member.scaling is not None:
            total += member.weight * np.exp(log_probabilities(member.scaling(member.outputs(X))))
    return multiply_classes(total, factors)


def multiply_classes(probabilities: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """Return the probabilities of the classes times a factor of each; rows sum to 1."""
    total = probabilities * factors
    return np.asarray(total / total.sum(axis=1, keepdims=True))


def mix_numbers(members: Sequence[Member], X: Any) -> np.ndarray:
    """Return the weighted mean of the members' predictions."""
    return np.sum([member.weight * member.outputs(X) for member in members], axis=0)


def is_testable(codes: np.ndarray) -> bool:
    """Return whether held-out rows are enough to fit scalings and weights."""
    return len(codes) >= MIN_TESTED and len(np.unique(codes)) >= MIN_TESTED_CLASSES


def scale_out_of_fold(
    decision: np.ndarray,
    codes: np.ndarray,
    weight: np.ndarray,
    parts: np.ndarray,
    shift: np.ndarray | None = None,
) -> tuple[Choice, np.ndarray]:
    """Return the scaling, and log probabilities of rows by scalings that were chosen and fitted without their part.

    The kind of scaling is chosen anew without each part: one that was chosen by the rows themselves looks too good.

    Parameters
    ----------
    decision : ndarray of shape (n_rows,) for two classes, otherwise (n_rows, n_classes)
        Of held-out rows.
    codes, weight, parts : ndarray of shape (n_rows,)
        Classes, weights, and which rows were held out together.
    shift : ndarray of shape (n_columns,), optional
        Of the logits of a member that was told of other shares of the classes, from `shift_logits`.
    """
    n_classes = 2 if decision.ndim == 1 else decision.shape[1]
    choice = _choose_scaling(decision, codes, weight, parts, n_classes, shift)
    logs = np.empty((len(codes), n_classes))
    for part in np.unique(parts):
        test = parts == part
        scaling = choice.scaling
        if len(np.unique(codes[~test])) > 1:
            others = decision[~test], codes[~test], weight[~test], parts[~test]
            scaling = _choose_scaling(*others, n_classes, shift).scaling
        logs[test] = log_probabilities(scaling(decision[test]))
    return choice, logs


def _choose_scaling(
    decision: np.ndarray,
    codes: np.ndarray,
    weight: np.ndarray,
    parts: np.ndarray,
    n_classes: int,
    shift: np.ndarray | None,
) -> Choice:
    """Return the scaling; one that keeps the classes where one of them was never held out, or all rows together."""
    if len(np.unique(codes)) == n_classes and len(np.unique(parts)) > 1:
        return choose_scaling(decision, codes, weight, parts, shift)
    scaling = fit_temperature_scaling(decision, codes, weight, shift)
    return Choice(scaling, shift is None, most_probable(scaling(decision)))


def shift_logits(factors: np.ndarray) -> np.ndarray:
    """Return the shift of the logits of a member that was told of the shares; of two classes that of the second."""
    shift = -np.log(factors)
    return shift[1:] - shift[:1] if len(shift) == 2 else shift


def guess_scaling(decision: np.ndarray, shift: np.ndarray | None = None) -> Scaling:
    """Return a scaling for a member that no row was held out for: thresholds stay, spreads become equal.

    ``shift`` is added to the logits.
    """
    n_columns = 1 if decision.ndim == 1 else decision.shape[1]
    middle = 0.0 if decision.ndim == 1 else float(np.median(decision))
    spread = float(np.median(np.abs(decision - middle))) or float(np.abs(decision - middle).max()) or 1.0
    ones = np.ones(n_columns)
    return Scaling(middle * ones, 2.0 * spread * ones, UNTESTED_SLOPE * ones, 0.0 * ones if shift is None else shift)

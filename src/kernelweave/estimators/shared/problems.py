"""What machines are asked for, at any labelled rows and for any cost: margins to learn from, losses to judge by."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ...kernels.base import ALL
from ...parameters import NON_NEGATIVE, one_of
from ...solvers.margin import MarginRows, classification_rows, regression_rows
from ...solvers.result import NotFiniteError
from .outputs import choose_classes
from .sample import Sample, class_weights
from .target import weighted_deviation

EPSILON = NON_NEGATIVE | one_of("auto")
MAX_SQUARED = 1e70  # numbers whose squares can be multiplied by the square of a cost that is a multiple of them
LARGE_NUMBER, LARGE_WEIGHT = 1e70, 1e12  # sizes below which y and weights are no reason for infinite values
EPSILON_SHARE = 0.1  # of the deviation of the targets: errors that cost nothing, by default


@dataclass(frozen=True, eq=False)
class ClassProblem:
    """Classes to be told apart.

    Attributes
    ----------
    signs : list of ndarray of shape (n_labeled,)
        Of each output.
    codes : ndarray of shape (n_labeled,)
    weight, factor : ndarray of shape (n_labeled,)
        What costs are multiplied by: the weight of each row, and that of its class.
    cost_unit : float
        What costs are multiples of.
    perfect_score : float
        Where nothing is lost: scores are shares of rows that are right.
    """

    perfect_score: ClassVar[float] = 1.0

    signs: list[np.ndarray]
    codes: np.ndarray
    weight: np.ndarray
    factor: np.ndarray
    cost_unit: float = 1.0

    def margins(self, C: Any, kept: np.ndarray | slice) -> list[MarginRows]:
        """Return the margins of each output at some of the labelled rows."""
        cost = (C * self.weight * self.factor)[kept]
        return [classification_rows(signs[kept], cost) for signs in self.signs]

    def constant(self, kept: np.ndarray | slice) -> float:
        """Return a constant function with a finite loss, which bounds the duals where losses are squared."""
        return 0.0

    def losses(self, values: np.ndarray, held: np.ndarray) -> np.ndarray:
        """Return which of some labelled rows are predicted wrongly by the values of the outputs there."""
        return (choose_classes(values) != self.codes[held]).astype(float)

    def restrict(self, rows: np.ndarray) -> ClassProblem:
        """Return the problem of some of the labelled rows; all outputs stay."""
        signs = [signs[rows] for signs in self.signs]
        return replace(self, signs=signs, codes=self.codes[rows], weight=self.weight[rows], factor=self.factor[rows])


@dataclass(frozen=True, eq=False)
class NumberProblem:
    """Numbers to be predicted.

    Attributes
    ----------
    targets : ndarray of shape (n_labeled, n_outputs)
    weight : ndarray of shape (n_labeled,)
    epsilon : ndarray of shape (n_outputs,)
        Errors up to it cost nothing.
    cost_unit : float or ndarray of shape (n_outputs,)
        What costs are multiples of: the deviation of each output.
    perfect_score : float
        Where nothing is lost: scores are negative errors.
    """

    perfect_score: ClassVar[float] = 0.0
    codes: ClassVar[None] = None

    targets: np.ndarray
    weight: np.ndarray
    epsilon: np.ndarray
    cost_unit: float | np.ndarray

    def margins(self, C: Any, kept: np.ndarray | slice) -> list[MarginRows]:
        """Return the margins of each output at some of the labelled rows."""
        costs = self.weight[kept, None] * np.broadcast_to(C, self.targets.shape[1])
        columns = zip(self.targets[kept].T, self.epsilon, costs.T, strict=True)
        return [regression_rows(targets, float(epsilon), cost) for targets, epsilon, cost in columns]

    def constant(self, kept: np.ndarray | slice) -> float:
        """Return a constant function with a finite loss, which bounds the duals where losses are squared."""
        return float(np.median(self.targets[kept]))

    def require_squares(self, owner: str) -> None:
        """Refuse numbers whose squares are too large to be added up and multiplied by costs."""
        largest = float(np.abs(self.targets - self.constant(ALL)).max())
        if largest > MAX_SQUARED:
            raise ValueError(
                f"{owner} squares errors, and y holds numbers that differ by {largest:.3g}, whose squares are too "
                "large to compute with. Divide y by a power of ten."
            )

    def losses(self, values: np.ndarray, held: np.ndarray) -> np.ndarray:
        """Return the mean squared errors at some labelled rows, in units of the variance of each output."""
        return np.square((values - self.targets[held]) / self.cost_unit).mean(axis=1)

    def restrict(self, rows: np.ndarray) -> NumberProblem:
        """Return the problem of some of the labelled rows."""
        return replace(self, targets=self.targets[rows], weight=self.weight[rows])


def class_problem(sample: Sample, class_weight: Any) -> ClassProblem:
    """Return the problem of the labelled rows of a sample: two classes, or each of more against the rest."""
    labels, weight = sample.partition, sample.labeled_weight
    return ClassProblem(labels.one_vs_rest(), labels.codes, weight, class_weights(class_weight, labels, weight))


def number_problem(sample: Sample, epsilon: float | str) -> NumberProblem:
    """Return the problem of the labelled rows of a sample; costs are multiples of the deviation of the numbers.

    Parameters
    ----------
    sample : Sample
    epsilon : float or "auto"
        In units of the targets; ``"auto"``: a share of the deviation of each output.
    """
    targets, weight = sample.partition.targets, sample.labeled_weight
    columns = targets.reshape(len(targets), -1)
    spread = weighted_deviation(columns, weight)
    zone = EPSILON_SHARE * spread if isinstance(epsilon, str) else np.full(len(spread), float(epsilon))
    unit: Any = np.where(spread > 0, spread, 1.0)
    return NumberProblem(columns, weight, zone, unit if targets.ndim == 2 else float(unit[0]))


@contextmanager
def naming_large_numbers(owner: str, sample: Sample) -> Iterator[None]:
    """Say that y or the weights are too large, where a solver finds no finite value because of them."""
    try:
        yield
    except (NotFiniteError, ArithmeticError) as error:
        reasons = []
        targets = getattr(sample.partition, "targets", None)
        if targets is not None and (size := np.abs(targets).max()) > LARGE_NUMBER:
            reasons.append(f"y holds numbers up to {size:.3g} in size. Divide y by a power of ten.")
        if (size := sample.weight.max()) > LARGE_WEIGHT:
            reasons.append(f"sample_weight goes up to {size:.3g}. Divide the weights by their mean.")
        if not reasons:
            raise
        raise ValueError(f"{owner}: the objective is too large to compute with. {' '.join(reasons)}") from error

r"""From decision values to class probabilities: one slope for all classes, or a slope and an offset for each.

Given are decision values :math:`f_{ik}` of rows with known class :math:`y_i` and weight :math:`w_i` that the model has
not seen, one column a class; two classes have a single column, that of the second. A few of them may be wild: 605
beside a median of 1. Sought are logits :math:`z_{ik}`, increasing in :math:`f_{ik}`, whose softmax :math:`p_{ik}` (for
two classes that of 0 and :math:`z_i`) has a small log loss on other rows.

**Bounded.** A value is measured from the middle c of the lower and the upper quartile and in units s of their
distance, the class and the rest weighing the same in them. What is further than 1.5 units from the middle is
compressed, and no value gets further than 2:

.. math::
    u = g\Big(\frac{f - c}{s}\Big), \qquad g(v) = \mathrm{sign}(v) \cdot \begin{cases} |v| & |v| \le 1.5 \\
    1.5 + \frac{(|v| - 1.5) / 2}{|v| - 1} & |v| > 1.5 \end{cases}

g is increasing and has a continuous derivative. A normal sample is changed beyond two deviations; a wild value pulls
no harder than one at 2 units.

**Temperature scaling** has one c, s and slope for all columns and no offset, so that the largest logit is that of the
largest decision value, and for two classes :math:`z > 0` where :math:`f > 0`:

.. math::
    \min_{a > 0} \; \sum_i w_i \Big[ \log \sum_k e^{z_{ik}} - \sum_k t_{ik} z_{ik} \Big], \quad z_{ik} = a\, u_{ik}
    \quad (\text{two classes: } z_i = a\, (u_i - g(-c/s))).

**Vector scaling** has a c and s for each column, and its solution is therefore the same for :math:`\alpha_k f_{ik} +
\beta_k` with any :math:`\alpha_k > 0`:

.. math::
    \min_{a \ge 0,\, b} \; \sum_i w_i \Big[ \log \sum_k e^{z_{ik}} - \sum_k t_{ik} z_{ik} \Big] + \frac12 \sum_k
    (a_k - \bar a)^2 + \frac12 \sum_k (b_k - \beta_k)^2, \quad z_{ik} = a_k u_{ik} + b_k.

The slopes are drawn to their mean, the offsets to those that the shares of the classes give, :math:`\beta_k =
\log(N_k + 1)` less its mean (two classes: :math:`\log \frac{N_1 + 1}{N_0 + 1}`), with the strength of a few rows:
a class with few rows has about the slope of the others. Both problems are convex. The targets :math:`t_{ik}` are
:math:`1 - 1/(N + 2)` for the given class and share the rest among the others, as if one more row were wrong: rows
without an error do not give probabilities of 0 and 1.

**The choice.** Temperature scaling keeps the classes of the estimator, vector scaling moves its thresholds. The
second is used only where, on rows that were left out when it was fitted, neither its log loss nor its errors are
larger and one of them is clearly smaller: by more than a standard error of the paired difference.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax

Rows = NDArray[np.intp]
Floats = NDArray[np.float64]

# Mean log loss of 17 tables, 30 to 120 labels and four estimators is within 1 % for (1, 1), (1.5, 0.5) and (2, 1), and
# with 3 % of wild values within 3 %; the wider the range, the less a normal sample is changed.
UNCHANGED = 1.5
TAIL = 0.5
# Keeps the order of decision values that say nothing about the class. Far below any slope that says something.
MIN_SLOPE = 1e-3


@dataclass(frozen=True, eq=False)
class Scaling:
    """Logits from decision values; each array has one entry for a column.

    Attributes
    ----------
    center, unit : ndarray of shape (n_columns,)
        What decision values are measured from and in.
    slope, offset : ndarray of shape (n_columns,)
    """

    center: Floats
    unit: Floats
    slope: Floats
    offset: Floats

    def __call__(self, decision: Floats) -> Floats:
        """Logits, of the shape of `decision`: (n_samples,) for two classes, otherwise (n_samples, n_classes)."""
        return bound_values((decision - self.center) / self.unit) * self.slope + self.offset


@dataclass(frozen=True, eq=False)
class Choice:
    """The scaling to use.

    Attributes
    ----------
    scaling : Scaling
    keeps_classes : bool
        Whether the largest logit is that of the largest decision value.
    held_out : ndarray of shape (n_samples,)
        The class number that each row gets from a scaling of that kind fitted without its part.
    """

    scaling: Scaling
    keeps_classes: bool
    held_out: Rows

    @property
    def is_flat(self) -> NDArray[np.bool_]:
        """Which columns have a probability that does not, or hardly, depend on the decision value."""
        return self.scaling.slope <= (MIN_SLOPE if self.keeps_classes else 0.0)


def choose_scaling(decision: Floats, codes: Rows, weights: Floats, parts: Rows, shift: Floats | None = None) -> Choice:
    """Vector scaling where it is no worse and clearly better on rows left out of its fit, else temperature scaling.

    Parameters
    ----------
    decision : ndarray of shape (n_samples,) for two classes, otherwise (n_samples, n_classes)
    codes : ndarray of shape (n_samples,)
        Class numbers; each class has a row.
    weights : ndarray of shape (n_samples,)
    parts : ndarray of shape (n_samples,)
        Which rows are left out together. Where one part holds all rows of a class, nothing can be compared, and
        the classes are kept.
    shift : ndarray of shape (n_columns,), optional
        What is added to logits whose threshold would be that of the estimator, see `fit_temperature_scaling`.
    """
    scaling = fit_temperature_scaling(decision, codes, weights, shift)
    own = most_probable(decision if shift is None else scaling(decision))
    kept = Choice(scaling, shift is None, own)
    losses, moved = np.empty((2, len(codes))), np.empty(len(codes), dtype=np.intp)
    for part in np.unique(parts):
        test = parts == part
        if len(np.setdiff1d(codes[test], codes[~test])):
            return kept
        train = decision[~test], codes[~test], weights[~test]
        for loss, fitted in zip(
            losses, (fit_temperature_scaling(*train, shift), fit_vector_scaling(*train)), strict=True
        ):
            logits = fitted(decision[test])
            loss[test] = -log_probabilities(logits)[np.arange(test.sum()), codes[test]]
        moved[test] = most_probable(logits)
    gains = np.array([losses[0] - losses[1], (moved == codes).astype(np.float64) - (own == codes)])
    sums, standard_errors = gains @ weights, np.sqrt(gains**2 @ weights)
    if (sums >= 0).all() and (sums > standard_errors).any():
        return Choice(fit_vector_scaling(decision, codes, weights), False, moved)
    return kept


def scale_held_out(choice: Choice, decision: Floats, codes: Rows, weights: Floats, parts: Rows) -> Floats:
    """Probabilities of rows, shape (n_samples, n_classes), by scalings of the chosen kind fitted without their parts.

    Where the other parts lack a class, they are those of the scaling that was fitted to all rows.
    """
    fit = fit_temperature_scaling if choice.keeps_classes else fit_vector_scaling
    found = np.exp(log_probabilities(choice.scaling(decision)))
    for part in np.unique(parts):
        test = parts == part
        if len(np.setdiff1d(codes, codes[~test])) == 0:
            scaling = fit(decision[~test], codes[~test], weights[~test])
            found[test] = np.exp(log_probabilities(scaling(decision[test])))
    return found


def fit_temperature_scaling(decision: Floats, codes: Rows, weights: Floats, shift: Floats | None = None) -> Scaling:
    """One slope for all columns: the classes remain those of the largest decision values.

    With ``shift``, of shape (n_columns,), they are those of the largest values of other log odds: an estimator that
    was told of other shares of the classes than those of these rows has its threshold elsewhere, by the logarithm of
    their ratio.
    """
    columns = decision.reshape(len(codes), -1)
    n_columns = columns.shape[1]
    members = _find_members(codes, n_columns)
    each = np.repeat(weights, n_columns)
    center, unit = _find_quartiles(columns.ravel(), members.ravel(), each)
    origin = bound_values(np.array(-center / unit)) if n_columns == 1 else 0.0  # two classes: zero is the threshold
    values = bound_values((columns - center) / unit) - origin

    log_loss = _make_log_loss(values, codes, weights)
    shifted = np.zeros(n_columns) if shift is None else shift

    def objective(slope: Floats) -> tuple[float, Floats]:
        loss, by_slope, _ = log_loss(np.repeat(slope, n_columns), shifted)
        return loss, np.array([by_slope.sum()])

    slope = np.repeat(_minimize(objective, np.array([MIN_SLOPE]), [MIN_SLOPE]), n_columns)
    return Scaling(np.full(n_columns, center), np.full(n_columns, unit), slope, shifted - slope * origin)


def fit_vector_scaling(decision: Floats, codes: Rows, weights: Floats) -> Scaling:
    """A slope and an offset for each column."""
    columns = decision.reshape(len(codes), -1)
    n_columns = columns.shape[1]
    members = _find_members(codes, n_columns)
    center, unit = np.transpose([_find_quartiles(*pair, weights) for pair in zip(columns.T, members.T, strict=True)])
    values = bound_values((columns - center) / unit)
    in_class = np.log(weights @ members + 1)
    shares = in_class - (np.log(weights @ ~members + 1) if n_columns == 1 else in_class.mean())

    log_loss, total = _make_log_loss(values, codes, weights), weights.sum()

    def objective(theta: Floats) -> tuple[float, Floats]:
        slope, offset = np.split(theta, 2)
        loss, *gradient = log_loss(slope, offset)
        apart = np.append(slope - slope.mean(), offset - shares)
        return loss + apart @ apart / (2 * total), np.append(*gradient) + apart / total

    start = np.append(np.zeros(n_columns), shares)
    slope, offset = np.split(_minimize(objective, start, [0.0] * n_columns + [None] * n_columns), 2)
    return Scaling(center, unit, slope, offset)


def bound_values(values: Floats) -> Floats:
    """g of the module's docstring; every operation is monotone in floating point, too."""
    size = np.abs(values)
    excess = np.maximum(size - UNCHANGED, 0.0)
    return np.sign(values) * (np.minimum(size, UNCHANGED) + TAIL * (1 - TAIL / (TAIL + excess)))


def log_probabilities(logits: Floats) -> Floats:
    """Logarithms of probabilities, shape (n_samples, n_classes)."""
    both = np.column_stack([np.zeros(len(logits)), logits]) if logits.ndim == 1 else logits
    return log_softmax(both, axis=1)


def most_probable(values: Floats) -> Rows:
    """Number of the most probable class of each row, from decision values or logits."""
    return (values > 0).astype(np.intp) if values.ndim == 1 else values.argmax(axis=1)


def _find_members(codes: Rows, n_columns: int) -> NDArray[np.bool_]:
    """Whether a row is of the class of a column, shape (n_samples, n_columns)."""
    return codes[:, None] == (np.array([1]) if n_columns == 1 else np.arange(n_columns))


def _find_quartiles(values: Floats, members: NDArray[np.bool_], weights: Floats) -> tuple[float, float]:
    """Middle and distance of the quartiles of a sample in which members and the others weigh the same."""
    balanced = weights * np.where(members, weights[~members].sum(), weights[members].sum())

    def lower_quartile(values: Floats) -> float:
        order = np.argsort(values, kind="stable")
        reached = np.cumsum(balanced[order])
        return float(values[order[np.searchsorted(reached, reached[-1] / 4)]])

    lower, upper = lower_quartile(values), -lower_quartile(-values)
    center = (lower + upper) / 2
    # more than half of the sample may be one and the same value
    return center, upper - lower or float(np.sqrt(np.average((values - center) ** 2, weights=balanced))) or 1.0


def _make_log_loss(
    values: Floats, codes: Rows, weights: Floats
) -> Callable[[Floats, Floats], tuple[float, Floats, Floats]]:
    """The mean log loss to soft targets as a function of slopes and offsets, with its gradients by both."""
    total, n_columns = weights.sum(), values.shape[1]
    n_classes = max(2, n_columns)
    wrong = 1 / (total + 2)
    target = np.full((len(codes), n_classes), wrong / (n_classes - 1))
    target[np.arange(len(codes)), codes] = 1 - wrong

    def log_loss(slope: Floats, offset: Floats) -> tuple[float, Floats, Floats]:
        logits = slope * values + offset
        log_p = log_probabilities(logits[:, 0] if n_columns == 1 else logits)
        residual = weights[:, None] * (np.exp(log_p) - target)[:, -n_columns:] / total
        loss = -np.sum(weights @ (target * log_p)) / total
        return loss, np.sum(residual * values, axis=0), residual.sum(axis=0)

    return log_loss


def _minimize(objective: Callable[[Floats], tuple[float, Floats]], start: Floats, lowest: list[float | None]) -> Floats:
    """The minimum of a convex function that comes with its gradient, above the lowest values."""
    options = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 1000}
    bounds = [(low, None) for low in lowest]
    return minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x

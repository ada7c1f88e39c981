r"""Weights of members from what each of them says about rows that it has not seen.

Given are probabilities :math:`p_{mi}` that member m gives the true class of row i without having seen it, and weights
:math:`v_i` of the rows. The combination is a mixture, :math:`P(x) = \sum_m w_m p_m(x)` with :math:`w \ge 0` and
:math:`\sum_m w_m = 1`. *Stacking* takes the most probable weights under a Dirichlet prior that is worth
:math:`\alpha` rows:

.. math:: \max_w \; \sum_i v_i \log \sum_m w_m p_{mi} + \alpha \sum_m \pi_m \log w_m .

The problem is concave. Steps of the EM algorithm climb to its maximum: :math:`w_m` becomes proportional to
:math:`\sum_i v_i r_{mi} + \alpha \pi_m`, with the responsibilities :math:`r_{mi} = w_m p_{mi} / \sum_k w_k p_{ki}`.
With the gradient :math:`g`, :math:`\max_m g_m - \sum_m w_m g_m` bounds the distance from the maximum.

Numbers :math:`f_{mi}` are combined likewise by least squares over the same simplex, with a ridge that draws the weights
together:

.. math:: \min_w \; \sum_i v_i \Big(y_i - \sum_m w_m f_{mi}\Big)^2 + \rho \, s^2 \sum_m (w_m - \pi_m)^2 ,

with :math:`s^2` the smallest mean squared error of a member, so that the ridge is worth :math:`\rho` rows.
"""

from __future__ import annotations

import numpy as np

from ...solvers.result import Certificate, SolverResult, Status
from ...solvers.simplex import minimise_quadratic

PRIOR_ROWS = 2.0  # what the prior is worth; 1 to 8 are alike on tables, more than 2 cost on images (benchmarks/auto)
STACK_TOL = 1e-6  # relative duality gap
MAX_STEPS = 20_000
SCOPE = "the weights of the members"


def stack_classes(
    likelihood: np.ndarray, weight: np.ndarray, prior: np.ndarray, prior_rows: float = PRIOR_ROWS
) -> SolverResult:
    """Find the weights of members that make the given classes most probable; ``x`` are the weights.

    Parameters
    ----------
    likelihood : ndarray of shape (n_members, n_rows)
        The probability that each member gives the class of each row.
    weight : ndarray of shape (n_rows,)
    prior : ndarray of shape (n_members,)
        Weights without any row: positive, of sum 1.
    prior_rows : float
        How many rows the prior is worth.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.estimators.auto.combine import stack_classes
    >>> likelihood = np.array([[0.9, 0.9, 0.6], [0.5, 0.5, 0.5]])
    >>> stack_classes(likelihood, np.ones(3), np.full(2, 0.5), prior_rows=0.01).x.round(2)
    array([1., 0.])
    """
    total = float(weight.sum()) + prior_rows
    w = prior.copy()
    for n_steps in range(1, MAX_STEPS + 1):
        mixed = w @ likelihood
        gradient = likelihood @ (weight / mixed) + prior_rows * prior / w  # of what is maximised; w . gradient = total
        gap = float(gradient.max()) - total
        objective = -float(weight @ np.log(mixed) + prior_rows * (prior @ np.log(w)))
        is_close = gap <= STACK_TOL * max(abs(objective), 1.0)
        if is_close or n_steps == MAX_STEPS:
            break
        w = w * gradient / total
        w /= w.sum()
    certificate = Certificate(max(gap, 0.0), objective, "duality gap", scope=SCOPE)
    return SolverResult(w, objective, certificate, Status.CONVERGED if is_close else Status.MAX_ITER, n_steps)


def stack_numbers(
    predictions: np.ndarray, targets: np.ndarray, weight: np.ndarray, prior: np.ndarray, prior_rows: float = PRIOR_ROWS
) -> SolverResult:
    """Find the weights of members whose mean has the smallest squared error; ``x`` are the weights.

    Parameters
    ----------
    predictions : ndarray of shape (n_members, n_rows)
    targets, weight : ndarray of shape (n_rows,)
    prior : ndarray of shape (n_members,)
    prior_rows : float

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.estimators.auto.combine import stack_numbers
    >>> targets = np.array([0.0, 1.0, 2.0, 3.0])
    >>> predictions = np.array([targets + 0.1, targets - 0.1, -targets])
    >>> stack_numbers(predictions, targets, np.ones(4), np.full(3, 1 / 3)).x.round(1)
    array([0.5, 0.5, 0. ])
    """
    if not weight.any():
        return keep_prior(prior)
    errors = predictions - targets  # the weights sum to 1
    H = (errors * weight) @ errors.T
    ridge = prior_rows * float(H.diagonal().min()) / float(weight.sum())
    H.flat[:: len(H) + 1] += ridge
    c = -ridge * prior
    w = minimise_quadratic(2.0 * H, 2.0 * c)
    gradient = 2.0 * (H @ w + c)
    objective = float(w @ H @ w + 2.0 * c @ w + ridge * prior @ prior)
    gap = max(0.0, float(gradient @ w - gradient.min()))
    return SolverResult(w, objective, Certificate(gap, objective, "duality gap", scope=SCOPE), Status.CONVERGED, 1)


def take_best(losses: np.ndarray, weight: np.ndarray) -> SolverResult:
    """Give all weight to the member of the smallest weighted loss; of equals to the first."""
    sums = losses @ weight
    best = int(sums.argmin())
    objective = float(sums[best])
    certificate = Certificate(0.0, objective, "duality gap", scope="the choice of one member")
    return SolverResult(np.eye(len(sums))[best], objective, certificate, Status.CONVERGED, 1)


def keep_prior(prior: np.ndarray) -> SolverResult:
    """Keep the weights that members have without any held-out row."""
    certificate = Certificate(0.0, 0.0, "duality gap", scope="nothing, since no rows were held out")
    return SolverResult(prior, 0.0, certificate, Status.CONVERGED, 1)


def drop_small(weights: np.ndarray, least: float) -> np.ndarray:
    """Return weights of which those below ``least`` are zero, and which sum to 1."""
    kept = np.where(weights >= min(least, float(weights.max())), weights, 0.0)
    return kept / kept.sum()

r"""Difference of convex functions: descend by convex problems that touch the objective from above.

.. math:: \min_\theta\; P(\theta) = J_1(\theta) - J_2(\theta), \qquad J_1, J_2 \text{ convex}.

At a point :math:`\theta_t` with a subgradient :math:`v_t` of :math:`J_2` there, the convex function

.. math:: M_t(\theta) = J_1(\theta) - J_2(\theta_t) - \langle v_t, \theta - \theta_t \rangle \ge P(\theta)

touches :math:`P` at :math:`\theta_t`; its minimiser is the next point, so :math:`P` never increases. The point is
stationary if it minimises its own :math:`M_t`, and :math:`P(\theta_t) - \min M_t` measures how far it is from that.
Nothing is said about other valleys of :math:`P`.

References
----------
A. L. Yuille, A. Rangarajan: The concave-convex procedure. Neural Computation 15, 2003.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from ..result import Certificate, SolverResult, Status


class Point(Protocol):
    """Where the descent is.

    Attributes
    ----------
    objective : float
        P, up to the accuracy of what solved the last convex problem.
    slopes : ndarray
        A subgradient of the part that is subtracted.
    """

    @property
    def objective(self) -> float: ...

    @property
    def slopes(self) -> np.ndarray: ...


P = TypeVar("P", bound=Point)


@dataclass(frozen=True, kw_only=True)
class DescentResult(SolverResult, Generic[P]):
    """Where the descent ended.

    Attributes
    ----------
    point : Point
    """

    point: P


def descend(
    inner: Callable[[P], tuple[P, float]],
    start: P,
    *,
    tol: float,
    max_iter: int,
    on_step: Callable[[dict[str, Any]], object] | None = None,
) -> DescentResult[P]:
    """Descend until a point minimises the convex problem that touches the objective there.

    Parameters
    ----------
    inner : callable
        Returns, for a point, the minimiser of its convex problem and a lower bound on the minimum.
    start : Point
        Its objective may be infinite; the first step is then taken whatever it brings.
    tol : float
        Stop when the point is within ``tol`` times its objective of the minimum of its convex problem.
    max_iter : int
        Largest number of convex problems.
    on_step : callable, optional
        Called with each record of the history, to which it may add; a true answer stops.

    Returns
    -------
    DescentResult
        ``x`` holds the slopes. The certificate is of stationarity; where the limit or
        ``on_step`` ended the descent, it is that of the point before. The status is PRECISION where the convex
        problems are not solved accurately enough for the objective to go on falling.
    """
    point, history, status = start, [], Status.MAX_ITER
    gap = np.inf
    for n_iter in range(1, max_iter + 1):
        trial, bound = inner(point)
        gap = max(0.0, point.objective - bound)
        n_changed = int(np.count_nonzero(trial.slopes != point.slopes))
        if n_changed == 0:  # the new point has the same convex problem, which it minimises
            point, gap = trial, max(0.0, trial.objective - bound)
            status = Status.CONVERGED if gap <= tol * abs(point.objective) else Status.PRECISION
        elif np.isfinite(gap) and gap <= tol * abs(point.objective):
            status = Status.CONVERGED
        elif trial.objective >= point.objective:
            status = Status.PRECISION
        else:
            point = trial
        record = {"iteration": n_iter, "objective": point.objective, "gap": gap, "n_changed": n_changed}
        history.append(record)
        if on_step is not None and on_step(record) and status is Status.MAX_ITER:
            status = Status.CALLBACK
        if status is not Status.MAX_ITER:
            break
    certificate = Certificate(gap, point.objective, "stationarity")
    return DescentResult(point.slopes, point.objective, certificate, status, n_iter, tuple(history), point=point)

r"""Difference of convex functions: descend by convex problems that touch the objective from above.

.. math:: \min_\theta\; P(\theta) = J_1(\theta) - J_2(\theta), \qquad J_1, J_2 \text{ convex}.

At a point :math:`\theta_t` with a subgradient :math:`v_t` of :math:`J_2` there, the convex function

.. math:: M_t(\theta) = J_1(\theta) - J_2(\theta_t) - \langle v_t, \theta - \theta_t \rangle \ge P(\theta)

touches :math:`P` at :math:`\theta_t`; its minimiser is the next point, so :math:`P` never increases. The point is
stationary if it minimises its own :math:`M_t`, and :math:`P(\theta_t) - \min M_t` measures how far it is from that.
Nothing is said about other valleys of :math:`P`.

The next point need not be the minimiser of :math:`M_t`: any point with a smaller :math:`M_t` has a smaller :math:`P`,
and any lower bound on :math:`\min M_t` makes a certificate. So a convex problem is solved as accurately as is of use:
up to a share of the gap that the last one left, and to the tolerance at the end.

References
----------
A. L. Yuille, A. Rangarajan: The concave-convex procedure. Neural Computation 15, 2003.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from ..deadline import OutOfTimeError
from ..result import Certificate, SolverResult, Status

TINY = float(np.finfo(float).tiny)
GAP_SHARE = 0.1  # of the gap that is left: the accuracy of the next convex problem
# A step was of no use that lowered the objective by less than the first share of the gap that is left, and left more
# than the second share of the gap before it.
MIN_DECREASE, STALLED_GAP_RATIO = 0.01, 0.9


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
    inner: Callable[[P, float | None], tuple[P, float]],
    start: P,
    *,
    tol: float,
    max_iter: int,
    exact: bool = True,
    on_step: Callable[[dict[str, Any]], object] | None = None,
) -> DescentResult[P]:
    """Descend until a point minimises the convex problem that touches the objective there.

    Parameters
    ----------
    inner : callable
        Returns, for a point and a relative accuracy, a point that minimises its convex problem as accurately, and a
        lower bound on the minimum; it may raise an `OutOfTimeError`.
    start : Point
        Its objective may be infinite; the first step is then taken whatever it brings.
    tol : float
        Stop when the point is within ``tol`` times its objective of the minimum of its convex problem.
    max_iter : int
        Largest number of convex problems.
    exact : bool
        Whether all convex problems are solved to ``tol``. If not, the first one is asked for with the accuracy None,
        the others with the share `GAP_SHARE` of the gap before, of the accuracy before where the last step was of no
        use, or ``tol`` where that is more.
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
    gap, accuracy, asked = np.inf, tol if exact else None, np.inf
    for n_iter in range(1, max_iter + 1):
        try:
            trial, bound = inner(point, accuracy)
        except OutOfTimeError:
            n_iter, status = n_iter - 1, Status.MAX_TIME
            break
        lowest, before, gap = point.objective, gap, max(0.0, point.objective - bound)
        is_exact = accuracy is not None and accuracy <= tol
        n_changed = int(np.count_nonzero(trial.slopes != point.slopes))
        if n_changed == 0 and (is_exact or trial.objective <= point.objective):
            point, gap = trial, max(0.0, trial.objective - bound)  # the new point has the same convex problem
            if gap <= tol * abs(point.objective):
                status = Status.CONVERGED
            elif is_exact:
                status = Status.PRECISION
        elif np.isfinite(gap) and gap <= tol * abs(point.objective):
            status = Status.CONVERGED
        elif trial.objective < point.objective:
            point = trial
        elif is_exact:
            status = Status.PRECISION
        if lowest - trial.objective <= MIN_DECREASE * gap and gap > STALLED_GAP_RATIO * before:
            asked = GAP_SHARE * (1.0 if accuracy is None else min(1.0, accuracy))  # else the same problem comes again
        if np.isfinite(gap) and not is_exact:
            accuracy = max(tol, min(asked, GAP_SHARE * gap / max(abs(point.objective), TINY)))
        record = {"iteration": n_iter, "objective": point.objective, "gap": gap, "n_changed": n_changed}
        history.append(record)
        if on_step is not None and on_step(record) and status is Status.MAX_ITER:
            status = Status.CALLBACK
        if status is not Status.MAX_ITER:
            break
    certificate = Certificate(gap, point.objective, "stationarity")
    return DescentResult(point.slopes, point.objective, certificate, status, n_iter, tuple(history), point=point)

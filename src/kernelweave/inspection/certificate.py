"""How a fit approached its optimum: objective, proven bound and gap, step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Self

import numpy as np

from ..estimators.shared.formulation import TOLERANCES
from .displays import as_frame, find_model, needs_matplotlib, search_model, title_of

GAP_LABELS = {
    "duality gap": "relative gap",
    "stationarity": "distance from stationarity",
    "KKT residual": "KKT residual (relative)",
}


class CertificateDisplay:
    """Objective, proven bound and relative gap along a fit, with the tolerance.

    Where several problems are solved (one for each class), objectives and bounds are summed, a solved problem
    counting with its last values, and every problem has its own line of gaps. A transductive fit has no bound, and
    dotted lines where a new stage of its annealing begins. Make it with :meth:`from_estimator`.

    Parameters
    ----------
    objectives, gaps : array-like of shape (n_records,)
        Values of the problem, and how far each can be from the optimum.
    problems : sequence of length n_records, optional
        Which problem each record belongs to; records of one problem are in the order of its steps. None: one.
    bounds : array-like of shape (n_records,), optional
        Proven bounds on the optimum.
    stages : sequence of length n_records, optional
        What changes where a new stage begins.
    tol : float, optional
        The relative gap at which the fit stops.
    kind : {"duality gap", "stationarity", "KKT residual"}, default="duality gap"
        What the gap is.
    title : str, default=""
        Title of the figure.

    Attributes
    ----------
    steps, relative_gaps : ndarray of shape (n_records,)
        Number of each record among those of its problem, from 0; gap over the absolute objective, infinite (and not
        drawn) where the objective is zero.
    data_ : pandas.DataFrame
        One line a record.
    figure_ : matplotlib.figure.Figure
        What was drawn.
    ax_ : matplotlib.axes.Axes
        With objective and bound.
    axes_ : ndarray of matplotlib.axes.Axes, shape (2,)
        Objective and bound; gap.

    See Also
    --------
    FitState : What a callback sees while the fit runs.
    PathDisplay : Scores and gaps against the cost C.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from kernelweave import RBF, CertificateDisplay, Linear, SSMKClassifier
    >>> X, y = make_moons(60, noise=0.2, random_state=0)
    >>> display = CertificateDisplay.from_estimator(SSMKClassifier([RBF(), Linear()], C=10.0).fit(X, y))
    >>> bool(display.relative_gaps[-1] <= display.tol)
    True
    """

    def __init__(
        self,
        objectives: Any,
        gaps: Any,
        *,
        problems: Sequence[Any] | None = None,
        bounds: Any = None,
        stages: Sequence[Any] | None = None,
        tol: float | None = None,
        kind: str = "duality gap",
        title: str = "",
    ):
        self.objectives, self.gaps = np.asarray(objectives, dtype=float), np.asarray(gaps, dtype=float)
        self.problems = [""] * len(self.objectives) if problems is None else list(problems)
        self.bounds = None if bounds is None else np.asarray(bounds, dtype=float)
        self.stages = None if stages is None else list(stages)
        self.tol, self.kind, self.title = tol, kind, title
        if len(self.objectives) == 0 or not len(self.objectives) == len(self.gaps) == len(self.problems):
            raise ValueError(
                f"CertificateDisplay got {len(self.objectives)} objectives, {len(self.gaps)} gaps and "
                f"{len(self.problems)} problems; expected the same number of each, at least one."
            )
        counts: dict[Any, int] = {}
        steps = []
        for problem in self.problems:
            steps.append(counts.get(problem, 0))
            counts[problem] = steps[-1] + 1
        self.steps = np.array(steps)
        zero = self.objectives == 0
        self.relative_gaps = self.gaps / np.where(zero, 1.0, np.abs(self.objectives))
        self.relative_gaps[zero & (self.gaps > 0)] = np.inf

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draw the course of a fit.

        Parameters
        ----------
        estimator : fitted estimator
            Any of this package; of a combination, a search or a pipeline the model inside it. Without ``history_`` the
            certificate is the only point.
        ax : Axes or sequence of two Axes, optional
            Where to draw; None: a new figure.

        Returns
        -------
        CertificateDisplay
            The display, drawn.
        """
        model = search_model(estimator, ("history_",)) or find_model(estimator, ("certificate_",), cls.__name__)
        return cls(**_read_history(model), title=title_of(estimator, model)).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw objective and bound, and below the gap on a logarithmic axis; a gap of zero is drawn at 1e-16.

        Parameters
        ----------
        ax : Axes or sequence of two Axes, optional
            Where to draw; None: a new figure.

        Returns
        -------
        self
            The display, with ``figure_`` and ``axes_``.
        """
        owner = type(self).__name__
        with needs_matplotlib(owner):
            from ..report.curves import draw_certificate
        problems = []
        for problem in dict.fromkeys(self.problems):
            mine = np.flatnonzero([other == problem for other in self.problems])
            bounds = None if self.bounds is None else self.bounds[mine]
            problems.append((problem, self.steps[mine], self.objectives[mine], bounds, self.relative_gaps[mine]))
        stages = self.stages or []
        self.figure_, self.axes_ = draw_certificate(
            ax,
            problems,
            stages=[step for step in range(1, len(stages)) if stages[step] != stages[step - 1]],
            tol=self.tol,
            gap_label=GAP_LABELS.get(self.kind, self.kind),
            title=self.title,
            owner=owner,
        )
        self.ax_ = self.axes_[0]
        return self

    @property
    def data_(self) -> Any:
        """The numbers, as a pandas frame: problem, step, objective, bound, gap and relative gap."""
        columns = {
            "problem": self.problems,
            "step": self.steps,
            "objective": self.objectives,
            "bound": self.bounds,
            "gap": self.gaps,
            "relative_gap": self.relative_gaps,
            "stage": self.stages,
        }
        return as_frame(type(self).__name__, columns)


def _read_history(model: Any) -> dict[str, Any]:
    """Return the records of a fit, as the parameters of the Display."""
    certificate = model.certificate_
    records: Sequence[Mapping[str, Any]] = getattr(model, "history_", None) or [
        {"objective": certificate.objective, "gap": certificate.gap}
    ]
    objectives = np.array([record["objective"] for record in records], dtype=float)
    gaps = np.array([record["gap"] for record in records], dtype=float)
    read: dict[str, Any] = {"objectives": objectives, "gaps": gaps, "kind": certificate.kind, "tol": find_tol(model)}
    if "stage" in records[0]:
        read["stages"] = [record["stage"] for record in records]
    else:
        read["problems"] = _name_problems(records, getattr(model, "classes_", ()))
    if certificate.kind == "duality gap":
        # the ratio of the scatter within classes is maximised: its bound is above
        sign = 1.0 if getattr(model, "scatter", None) == "within" else -1.0
        read["bounds"] = [record.get("bound", record["objective"] + sign * record["gap"]) for record in records]
    return read


def find_tol(model: Any) -> float | None:
    """Return the tolerance of a model; where it was left open, that of its penalty."""
    tol, penalty = getattr(model, "tol", None), getattr(model, "penalty", None)
    return float(tol) if tol is not None else TOLERANCES.get(penalty) if penalty is not None else None


def _name_problems(records: Sequence[Mapping[str, Any]], classes: Sequence[Any]) -> list[Any]:
    """Return the class of each record's problem; where records do not say it, a problem begins with its first step."""
    if "class" in records[0]:
        return [record["class"] for record in records]
    number, numbers = 0, [0]
    for before, record in pairwise(records):
        number += record.get("iteration", 1) <= before.get("iteration", 0)
        numbers.append(number)
    if number == 0:
        return [""] * len(records)
    names = list(classes) if len(classes) == number + 1 else [f"problem {k + 1}" for k in range(number + 1)]
    return [names[k] for k in numbers]

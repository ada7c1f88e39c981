"""Score, size and gap of models along a path over the cost C."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from ..estimators.cg_boost_path import CGBoostPath
from .certificate import find_tol
from .displays import as_frame, find_model, needs_matplotlib, title_of


class PathDisplay:
    """Score with its standard error, number of basis functions and certified gap, against the cost C.

    Make it with :meth:`from_estimator`, or with :meth:`from_path` from the result of :func:`cg_boost_path`.

    Parameters
    ----------
    Cs : array-like of shape (n_Cs,)
        The costs, in any order.
    scores, standard_errors, n_columns, relative_gaps : array-like of shape (n_Cs,), optional
        NaN where a model has none; what is not given has no panel.
    chosen : float, optional
        The C that was chosen, which is marked.
    tol : float, optional
        The relative gap at which fits stop.
    title : str, default=""
        Title of the figure.

    Attributes
    ----------
    data_ : pandas.DataFrame
        One line a C, ascending.
    figure_ : matplotlib.figure.Figure
        What was drawn.
    ax_ : matplotlib.axes.Axes
        The first panel.
    axes_ : ndarray of matplotlib.axes.Axes
        One for each of score, basis functions and gap that is given.

    See Also
    --------
    cg_boost_path : Computes a path.
    CGBoostClassifierCV : Chooses C along a path.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from kernelweave import RBF, CGBoostClassifierCV, PathDisplay
    >>> model = CGBoostClassifierCV(RBF(), Cs=[0.1, 1.0], cv=2).fit(*make_moons(60, noise=0.2, random_state=0))
    >>> display = PathDisplay.from_estimator(model)
    >>> display.Cs.tolist(), display.chosen in display.Cs, len(display.axes_)
    ([0.1, 1.0], True, 3)
    """

    def __init__(
        self,
        Cs: Any,
        *,
        scores: Any = None,
        standard_errors: Any = None,
        n_columns: Any = None,
        relative_gaps: Any = None,
        chosen: float | None = None,
        tol: float | None = None,
        title: str = "",
    ):
        self.Cs = np.asarray(Cs, dtype=float)
        order = np.argsort(self.Cs, kind="stable")

        def read(name: str, values: Any) -> np.ndarray | None:
            if values is None:
                return None
            values = np.asarray(values, dtype=float)
            if values.shape != self.Cs.shape:
                raise ValueError(
                    f"PathDisplay got {name} of shape {values.shape}; expected one for each of {len(order)} Cs."
                )
            return values[order]

        self.scores, self.standard_errors = read("scores", scores), read("standard_errors", standard_errors)
        self.n_columns, self.relative_gaps = read("n_columns", n_columns), read("relative_gaps", relative_gaps)
        self.Cs, self.chosen, self.tol, self.title = self.Cs[order], chosen, tol, title
        if self.scores is None and self.n_columns is None and self.relative_gaps is None:
            raise ValueError("PathDisplay got nothing to draw; pass scores, n_columns or relative_gaps.")

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draw the costs that a fit compared.

        Parameters
        ----------
        estimator : fitted estimator
            :class:`CGBoostClassifierCV`, or any whose ``cv_results_`` compare costs; where these were compared with
            other settings, each C has the best of its scores. Also scikit-learn's searches over C.
        ax : Axes or sequence of Axes, optional
            Where to draw; None: a new figure.

        Returns
        -------
        PathDisplay
            The display, drawn.
        """
        model = find_model(estimator, ("path_", "cv_results_"), cls.__name__)
        results = model.cv_results_
        if "param_C" not in results:
            raise ValueError(
                f"PathDisplay.from_estimator got {type(model).__name__}, whose cv_results_ compare no costs C. Fit it "
                "with the cost left open, or draw a path with PathDisplay.from_path(cg_boost_path(...))."
            )
        read = _read_scores(results)
        if hasattr(model, "path_"):
            read |= _spread_path(read["Cs"], model.path_)
        chosen = model.C_ if hasattr(model, "C_") else model.best_params_["C"]
        return cls(**read, chosen=float(chosen), tol=find_tol(model), title=title_of(estimator, model)).plot(ax)

    @classmethod
    def from_path(cls, path: CGBoostPath, *, ax: Any = None) -> Self:
        """Draw the result of :func:`cg_boost_path`; the best validation score is marked, if there are any.

        Parameters
        ----------
        path : CGBoostPath
            Fitted models with their costs, sizes, gaps and, if there are any, validation scores.
        ax : Axes or sequence of Axes, optional
            Where to draw; None: a new figure.

        Returns
        -------
        PathDisplay
            The display, drawn.
        """
        scores = path.validation_scores
        chosen = None if scores is None else float(path.Cs[int(np.argmax(scores))])
        known = {"scores": scores, "n_columns": path.n_columns, "relative_gaps": path.relative_gaps}
        title = f"path of {type(path.models[0]).__name__}"
        return cls(path.Cs, **known, chosen=chosen, tol=find_tol(path.models[0]), title=title).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw a panel for each of score, basis functions and gap that is known.

        Parameters
        ----------
        ax : Axes or sequence of Axes, optional
            Where to draw; None: a new figure.

        Returns
        -------
        self
            The display, with ``figure_`` and ``axes_``.
        """
        owner = type(self).__name__
        with needs_matplotlib(owner):
            from ..report.curves import draw_path
        panels = [
            ("score", self.scores, self.standard_errors, False),
            ("basis functions", self.n_columns, None, False),
            ("relative gap", self.relative_gaps, None, True),
        ]
        shown = [(label, values, errors, is_log) for label, values, errors, is_log in panels if values is not None]
        self.figure_, self.axes_ = draw_path(
            ax, self.Cs, shown, chosen=self.chosen, tol=self.tol, title=self.title, owner=owner
        )
        self.ax_ = self.axes_[0]
        return self

    @property
    def data_(self) -> Any:
        """The numbers, as a pandas frame."""
        columns = {
            "C": self.Cs,
            "score": self.scores,
            "standard_error": self.standard_errors,
            "n_columns": self.n_columns,
            "relative_gap": self.relative_gaps,
        }
        return as_frame(type(self).__name__, columns)


def _read_scores(results: dict[str, Any]) -> dict[str, Any]:
    """Return the costs of a cross-validation with the mean of their best scores, and its standard error."""
    n_folds = sum(name.startswith("split") for name in results)
    costs, means = np.asarray(results["param_C"], dtype=float), np.asarray(results["mean_test_score"])
    Cs = np.unique(costs)
    best = [np.flatnonzero(costs == C)[np.argmax(means[costs == C])] for C in Cs]
    errors = np.asarray(results["std_test_score"])[best] / np.sqrt(max(1, n_folds - 1))
    return {"Cs": Cs, "scores": means[best], "standard_errors": errors}


def _spread_path(Cs: np.ndarray, path: CGBoostPath) -> dict[str, Any]:
    """Return sizes and gaps of a path at the costs that were compared; NaN above the chosen one, where it ends."""
    at = np.searchsorted(Cs, path.Cs)
    n_columns, gaps = np.full((2, len(Cs)), np.nan)
    n_columns[at], gaps[at] = path.n_columns, path.relative_gaps
    return {"n_columns": n_columns, "relative_gaps": gaps}

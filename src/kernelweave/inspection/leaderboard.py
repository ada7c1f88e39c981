"""How the candidates of a search compare: errors with intervals, and weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from ..parameters import is_count, require
from .displays import HALF_WIDTH, as_frame, find_model, needs_matplotlib, title_of, wilson_interval


class LeaderboardDisplay:
    """Errors of the candidates of a search on held-out rows with 95 % intervals, their weights, and the mixture.

    Intervals of candidates treat held-out rows as independent; that of the mixture is wider, since it allows for the
    folds and for the number of rows that are to be predicted. Make it with :meth:`from_estimator`.

    Parameters
    ----------
    candidates : sequence of str, length n_candidates
        Their names.
    errors, standard_errors, weights : array-like of shape (n_candidates,)
        NaN where a candidate has no error.
    statuses : sequence of str, optional
        Written in the place of an error that is not known.
    n_rows : int, optional
        Given for errors that are shares of this number of rows: their intervals are Wilson's, by the standard errors
        or, where these are zero, by this number. None: 1.96 standard errors in both directions.
    mixture : (float, float, float), optional
        Error of all candidates together, and the ends of its interval.
    measure : str, default="error"
        What the errors are.
    title : str, default=""
        Title of the figure.

    Attributes
    ----------
    data_ : pandas.DataFrame
        One line a candidate, in the order given.
    figure_ : matplotlib.figure.Figure
        What was drawn.
    ax_ : matplotlib.axes.Axes
        With the errors.
    axes_ : ndarray of matplotlib.axes.Axes, shape (2,)
        Errors; weights.

    See Also
    --------
    AutoKernelClassifier : Searches candidates for classes.
    AutoKernelRegressor : Searches candidates for numbers.
    compare_learners : Compares learners without combining them.

    Examples
    --------
    >>> from kernelweave import LeaderboardDisplay
    >>> display = LeaderboardDisplay(
    ...     ["MKL", "RKDA"], [0.1, 0.2], [0.02, 0.03], [0.8, 0.2], mixture=(0.09, 0.05, 0.15), measure="share wrong"
    ... ).plot()
    >>> display.ax_.get_xlabel()
    'share wrong'
    """

    def __init__(
        self,
        candidates: Sequence[str],
        errors: Any,
        standard_errors: Any,
        weights: Any,
        *,
        statuses: Sequence[str] | None = None,
        n_rows: int | None = None,
        mixture: tuple[float, float, float] | None = None,
        measure: str = "error",
        title: str = "",
    ):
        self.candidates = [str(name) for name in candidates]
        self.errors, self.standard_errors, self.weights = (
            np.asarray(values, dtype=float) for values in (errors, standard_errors, weights)
        )
        self.statuses = [""] * len(self.candidates) if statuses is None else [str(status) for status in statuses]
        self.n_rows, self.mixture, self.measure, self.title = n_rows, mixture, measure, title
        lengths = [len(values) for values in (self.errors, self.standard_errors, self.weights, self.statuses)]
        if not self.candidates or any(length != len(self.candidates) for length in lengths):
            raise ValueError(
                f"LeaderboardDisplay got {len(self.candidates)} candidates and {lengths} errors, standard errors, "
                "weights and statuses; expected one of each for every candidate, and at least one candidate."
            )

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, n_candidates: int = 20) -> Self:
        """Draw the candidates of a fitted search.

        Parameters
        ----------
        estimator : AutoKernelClassifier or AutoKernelRegressor
            Fitted; or a pipeline that ends with one.
        ax : Axes or sequence of two Axes, optional
            Where to draw; None: a new figure.
        n_candidates : int, default=20
            Candidates that are drawn, the first of them.

        Returns
        -------
        LeaderboardDisplay
            The display, drawn.
        """
        model = find_model(estimator, ("leaderboard_",), cls.__name__)
        error, records = model.error_, model.leaderboard_
        columns = {name: [record[name] for record in records] for name in ("error", "standard_error", "weight")}
        return cls(
            [record["candidate"] for record in records],
            columns["error"],
            columns["standard_error"],
            columns["weight"],
            statuses=[record["status"] for record in records],
            n_rows=len(model.oof_rows_) if hasattr(model, "classes_") else None,
            mixture=None if error is None else (error.value, error.low, error.high),
            measure="share of wrong classes" if hasattr(model, "classes_") else "root mean squared error",
            title=title_of(estimator, model),
        ).plot(ax, n_candidates=n_candidates)

    def plot(self, ax: Any = None, *, n_candidates: int = 20) -> Self:
        """Draw errors and weights.

        Parameters
        ----------
        ax : Axes or sequence of two Axes, optional
            Where to draw; None: a new figure.
        n_candidates : int, default=20
            Candidates that are drawn, the first of them.

        Returns
        -------
        self
            The display, with ``figure_`` and ``axes_``.
        """
        owner = type(self).__name__
        require(f"{owner}.plot", "n_candidates", n_candidates, is_count(n_candidates), "a whole number, 1 or more")
        with needs_matplotlib(owner):
            from ..report.bars import draw_leaderboard
        low, high = self._intervals()
        self.figure_, self.axes_ = draw_leaderboard(
            ax,
            self.candidates,
            self.errors,
            low,
            high,
            self.weights,
            notes=self.statuses,
            mixture=self.mixture,
            x_label=self.measure,
            n_candidates=n_candidates,
            title=self.title,
            owner=owner,
        )
        self.ax_ = self.axes_[0]
        return self

    @property
    def data_(self) -> Any:
        """The numbers, as a pandas frame: candidate, error, ends of its interval, weight and status."""
        low, high = self._intervals()
        columns = {"candidate": self.candidates, "error": self.errors, "standard_error": self.standard_errors}
        columns |= {"low": low, "high": high, "weight": self.weights, "status": self.statuses}
        return as_frame(type(self).__name__, columns)

    def _intervals(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the ends of the intervals; no error is below zero."""
        if self.n_rows is not None:
            with np.errstate(divide="ignore", invalid="ignore"):
                effective = 1.0 + self.errors * (1.0 - self.errors) / np.square(self.standard_errors)
            return wilson_interval(self.errors, np.where(self.standard_errors > 0, effective, float(self.n_rows)))
        half = HALF_WIDTH * self.standard_errors
        return np.maximum(0.0, self.errors - half), self.errors + half

"""Whether probabilities hold what they promise: observed shares against predicted probabilities."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted

from ..labels import factorize, labeled_values
from ..parameters import is_count, one_of, require
from .displays import as_frame, needs_matplotlib, wilson_interval

PREDICTED = "the predicted class"
STRATEGIES = one_of("uniform", "quantile")


class ReliabilityDisplay:
    """Observed shares against predicted probabilities, with the number of rows and a 95 % interval for each bin.

    Of two classes it is the probability of the second one; of more the probability of the predicted class, against the
    share of rows for which it is right; with ``pos_label`` that of one class against all others. Intervals are
    Wilson's. Make it with :meth:`from_estimator` or :meth:`from_predictions`.

    Parameters
    ----------
    prob_pred, prob_true : array-like of shape (n_bins,)
        Mean probability and observed share; NaN for bins without a row.
    counts : array-like of shape (n_bins,)
        Numbers of rows.
    edges : array-like of shape (n_bins + 1,)
        Ends of the bins, ascending.
    event : str, default=""
        What the probabilities are of, in words.
    title : str, default=""
        Title of the figure.

    Attributes
    ----------
    low, high : ndarray of shape (n_bins,)
        Ends of the intervals.
    data_ : pandas.DataFrame
        One line a bin.
    figure_ : matplotlib.figure.Figure
        What was drawn.
    ax_ : matplotlib.axes.Axes
        With the curve.
    axes_ : ndarray of matplotlib.axes.Axes, shape (2,)
        Curve; counts.

    See Also
    --------
    SemiSupervisedCalibration : Makes probabilities of decision values.
    sklearn.calibration.CalibrationDisplay : The curve alone.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import ReliabilityDisplay
    >>> y, p = np.array([0, 0, 1, 1]), np.array([0.1, 0.4, 0.6, 0.9])
    >>> display = ReliabilityDisplay.from_predictions(y, p, n_bins=2)
    >>> display.prob_pred, display.prob_true, display.counts
    (array([0.25, 0.75]), array([0., 1.]), array([2, 2]))
    """

    def __init__(self, prob_pred: Any, prob_true: Any, counts: Any, edges: Any, *, event: str = "", title: str = ""):
        self.prob_pred, self.prob_true = np.asarray(prob_pred, dtype=float), np.asarray(prob_true, dtype=float)
        self.counts, self.edges = np.asarray(counts, dtype=int), np.asarray(edges, dtype=float)
        self.event, self.title = event, title
        n_bins = len(self.edges) - 1
        shapes = [values.shape for values in (self.prob_pred, self.prob_true, self.counts)]
        if n_bins < 1 or any(shape != (n_bins,) for shape in shapes):
            raise ValueError(
                f"ReliabilityDisplay got {len(self.edges)} edges and values of the shapes {shapes}; expected one value "
                "less than edges."
            )
        self.low, self.high = wilson_interval(self.prob_true, self.counts)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        n_bins: int = 10,
        strategy: str = "uniform",
        pos_label: Any = None,
        ax: Any = None,
    ) -> Self:
        """Draw the reliability of a classifier's probabilities.

        Parameters
        ----------
        estimator : fitted classifier
            With ``predict_proba``.
        X : array, sparse matrix or frame of shape (n_samples, n_features), optional
            Rows that the classifier has not seen. None: the held-out rows of an :class:`AutoKernelClassifier`, which
            it keeps; :class:`SemiSupervisedCalibration` was fitted to its own, and needs others.
        y : array-like of shape (n_samples,), optional
            Their classes; unlabelled rows are left out.
        n_bins : int, default=10
            Number of bins.
        strategy : {"uniform", "quantile"}, default="uniform"
            Bins of one width, or with about the same number of rows.
        pos_label : class, optional
            The class whose probability it is. None: the second of two; of more the predicted one.
        ax : Axes or sequence of two Axes, optional
            Where to draw; None: a new figure.

        Returns
        -------
        ReliabilityDisplay
            The display, drawn.
        """
        check_is_fitted(estimator)
        name = type(estimator).__name__
        if not hasattr(estimator, "predict_proba"):
            raise TypeError(
                f"ReliabilityDisplay.from_estimator got {name}, which has no predict_proba. Put it into "
                "SemiSupervisedCalibration, or use AutoKernelClassifier."
            )
        if (X is None) != (y is None):
            raise ValueError("ReliabilityDisplay.from_estimator got one of X and y; pass both, or none of them.")
        if X is not None:
            probabilities, title = estimator.predict_proba(X), f"{name}, rows given"
        elif hasattr(estimator, "oof_probabilities_"):
            probabilities, y = estimator.oof_probabilities_, estimator.transduction_[estimator.oof_rows_]
            title = f"{name}, {len(y)} held-out rows"
        else:
            raise ValueError(
                f"ReliabilityDisplay.from_estimator got {name}, which keeps no probabilities of held-out rows. Pass X "
                "and y of rows that it has not seen."
            )
        options: dict[str, Any] = {"classes": estimator.classes_, "n_bins": n_bins, "strategy": strategy}
        return cls.from_predictions(y, probabilities, **options, pos_label=pos_label, title=title, ax=ax)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any,
        *,
        classes: Any = None,
        n_bins: int = 10,
        strategy: str = "uniform",
        pos_label: Any = None,
        title: str = "",
        ax: Any = None,
    ) -> Self:
        """Draw the reliability of given probabilities.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Classes; unlabelled rows are left out.
        y_prob : array-like of shape (n_samples,) or (n_samples, n_classes)
            Probabilities of the second class, or of each.
        classes : array-like of shape (n_classes,), optional
            In the order of the columns. None: those of ``y_true``, sorted.
        n_bins : int, default=10
            Number of bins; with ``"quantile"`` at most.
        strategy : {"uniform", "quantile"}, default="uniform"
            Bins of one width, or with about the same number of rows.
        pos_label : class, optional
            The class whose probability it is. None: the second of two; of more the predicted one.
        title : str, default=""
            Title of the figure.
        ax : Axes or sequence of two Axes, optional
            Where to draw; None: a new figure.

        Returns
        -------
        ReliabilityDisplay
            The display, drawn.
        """
        owner = "ReliabilityDisplay"
        require(owner, "n_bins", n_bins, is_count(n_bins), "a whole number, 1 or more")
        require(owner, "strategy", strategy, STRATEGIES.holds(strategy), STRATEGIES.expected)
        probabilities = np.asarray(y_prob, dtype=float)
        check_consistent_length(y_true, probabilities)
        rows, labels = labeled_values(y_true, classes=classes)
        if not len(rows):
            raise ValueError("ReliabilityDisplay got no row with a known class; pass rows whose classes are known.")
        known = factorize(labels)[0] if classes is None else np.asarray(classes)
        p, happened, event = _find_event(probabilities[rows], labels, known, pos_label)
        if not np.all((p >= -1e-9) & (p <= 1 + 1e-9)):
            raise ValueError(
                f"ReliabilityDisplay got probabilities from {np.min(p):.3g} to {np.max(p):.3g}; expected numbers from "
                "0 to 1. Decision values become probabilities with SemiSupervisedCalibration."
            )
        return cls(*_bin(np.clip(p, 0.0, 1.0), happened, n_bins, strategy), event=event, title=title).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the curve, and below the number of rows of each bin.

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
            from ..report.curves import draw_reliability
        of = f" of {self.event}" if self.event else ""
        self.figure_, self.axes_ = draw_reliability(
            ax,
            self.prob_pred,
            self.prob_true,
            self.low,
            self.high,
            self.counts,
            self.edges,
            x_label=f"predicted probability{of}",
            y_label="share of right predictions" if self.event == PREDICTED else f"observed share{of}",
            title=self.title,
            owner=owner,
        )
        self.ax_ = self.axes_[0]
        return self

    @property
    def data_(self) -> Any:
        """The numbers, as a pandas frame: one line a bin, with the ends of its interval."""
        columns = {
            "from": self.edges[:-1],
            "to": self.edges[1:],
            "rows": self.counts,
            "predicted": self.prob_pred,
            "observed": self.prob_true,
            "low": self.low,
            "high": self.high,
        }
        return as_frame(type(self).__name__, columns)


def _find_event(
    probabilities: np.ndarray, labels: np.ndarray, classes: np.ndarray, pos_label: Any
) -> tuple[np.ndarray, np.ndarray, str]:
    """Return the probability of an event for each row, whether it happened, and what it is called."""
    n_columns = 2 if probabilities.ndim == 1 else probabilities.shape[1]
    if len(classes) != n_columns or probabilities.ndim > 2:
        raise ValueError(
            f"ReliabilityDisplay got probabilities of shape {probabilities.shape} for {len(classes)} classes; expected "
            "one column a class, or one number a row for two classes. Name them with classes=."
        )
    if probabilities.ndim == 1:
        probabilities = np.column_stack([1.0 - probabilities, probabilities])
    if pos_label is None and n_columns > 2:
        predicted = probabilities.argmax(axis=1)
        return probabilities.max(axis=1), classes[predicted] == labels, PREDICTED
    wanted = classes[1] if pos_label is None else pos_label
    place = np.flatnonzero(classes == wanted)
    if len(place) != 1:
        raise ValueError(f"ReliabilityDisplay got pos_label={pos_label!r}; expected one of {classes.tolist()}.")
    return probabilities[:, place[0]], labels == wanted, f"class {wanted}"


def _bin(
    p: np.ndarray, happened: np.ndarray, n_bins: int, strategy: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return mean probability, share of events and number of rows of each bin, and the ends of the bins."""
    edges = np.linspace(0.0, 1.0, n_bins + 1)
    if strategy == "quantile":
        edges = np.unique(np.quantile(p, edges))
        edges = edges if len(edges) > 1 else np.array([0.0, 1.0])
    place = np.clip(np.searchsorted(edges, p, side="right") - 1, 0, len(edges) - 2)
    counts = np.bincount(place, minlength=len(edges) - 1)
    with np.errstate(invalid="ignore"):
        means, shares = (np.bincount(place, weights=v, minlength=len(counts)) / counts for v in (p, happened))
    return means, shares, counts, edges

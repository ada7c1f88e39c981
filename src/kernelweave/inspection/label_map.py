"""A map of the rows by the learned kernel: given and filled-in labels, the least certain rows, centres."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import is_outlier_detector
from sklearn.utils import _safe_indexing as take  # in scikit-learn's public reference, in spite of its name
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted

from ..labels import labeled_values
from ..parameters import Constraint, is_count, is_nonnegative, require
from .displays import as_frame, inner_models, needs_matplotlib, title_of
from .learned_map import map_rows

LEARNED = ("expansion_", "learner_")  # attributes of models with a kernel of their own
OUTLIER_CLASSES = np.array([-1, 1])  # what scikit-learn's outlier detectors predict
SHARE = Constraint(lambda value: is_nonnegative(value) and value <= 1, ("a number from 0 to 1",))


class LabelMapDisplay:
    """Rows in the plane by the kernel that a model has learned, with given and filled-in labels.

    Near rows are similar to the model. Labelled rows are large, with a dark edge; filled-in ones are small; the least
    certain of these are hollow; crosses mark the rows that the model is made of (centres, support vectors). Make it
    with :meth:`from_estimator`; ``kernelweave.inspection.learned_map`` has the mathematics.

    Parameters
    ----------
    points : array-like of shape (n_rows, 2)
        Coordinates of the rows.
    labels : array-like of shape (n_rows,)
        Class or number of each row, given or filled in.
    is_labeled : array-like of bool, shape (n_rows,)
        Whether it was given.
    is_doubtful, is_center : array-like of bool, shape (n_rows,), optional
        Whether the label is among the least certain ones; whether the model is made of the row.
    rows : array-like of shape (n_rows,), optional
        What the rows are called in ``data_``; 0, 1, ... by default.
    certainty : array-like of shape (n_rows,), optional
        How certain each label is, for ``data_``.
    classes : sequence, optional
        The classes, in the order of their colours; None: labels are numbers.
    doubtful_label : str, default="least certain"
        What the legend calls rows with ``is_doubtful``.
    center_label : str, default="centre"
        What the legend calls rows with ``is_center``.
    axis_labels : (str, str), default=("", "")
        Names of the two axes.
    title : str, default=""
        Title of the figure.

    Attributes
    ----------
    data_ : pandas.DataFrame
        One line a row that is drawn.
    figure_ : matplotlib.figure.Figure
        What was drawn.
    ax_ : matplotlib.axes.Axes
        With the map.
    axes_ : ndarray of matplotlib.axes.Axes, shape (1,)
        The same.

    See Also
    --------
    AutoKernelClassifier.label_next : Chooses rows that are worth labelling.
    RKDAClassifier : Projects rows so that classes are apart.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave import LabelMapDisplay, RKDAClassifier
    >>> X, species = load_iris(return_X_y=True)
    >>> y = np.where(np.arange(150) % 5 == 0, species, -1)
    >>> display = LabelMapDisplay.from_estimator(RKDAClassifier().fit(X, y), X, y)
    >>> display.points.shape, int(display.is_labeled.sum()), int(display.is_doubtful.sum())
    ((150, 2), 30, 12)
    """

    def __init__(
        self,
        points: Any,
        labels: Any,
        is_labeled: Any,
        *,
        is_doubtful: Any = None,
        is_center: Any = None,
        rows: Any = None,
        certainty: Any = None,
        classes: Sequence[Any] | None = None,
        doubtful_label: str = "least certain",
        center_label: str = "centre",
        axis_labels: tuple[str, str] = ("", ""),
        title: str = "",
    ):
        self.points, self.labels = np.asarray(points, dtype=float), np.asarray(labels)
        n_rows = len(self.labels)
        if self.points.shape != (n_rows, 2) or self.labels.shape != (n_rows,) or n_rows == 0:
            raise ValueError(
                f"LabelMapDisplay got points of shape {self.points.shape} and labels of shape {self.labels.shape}; "
                "expected two coordinates for each label, and at least one. Of several outputs, draw one at a time."
            )
        masks = (is_labeled, is_doubtful, is_center)
        self.is_labeled, self.is_doubtful, self.is_center = (
            np.zeros(n_rows, dtype=bool) if mask is None else np.asarray(mask, dtype=bool) for mask in masks
        )
        self.rows = np.arange(n_rows) if rows is None else np.asarray(rows)
        self.certainty = None if certainty is None else np.asarray(certainty, dtype=float)
        self.classes = None if classes is None else list(classes)
        self.doubtful_label, self.center_label = doubtful_label, center_label
        self.axis_labels, self.title = axis_labels, title

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        doubtful: float = 0.1,
        max_rows: int = 3000,
        random_state: int = 0,
        ax: Any = None,
    ) -> Self:
        """Draw the rows of a fit.

        The time grows linearly with the rows, apart from binding kernels to them as the fit did.

        Parameters
        ----------
        estimator : fitted estimator
            Of a combination or a search, the map is that of the best model inside it that has learned a kernel, the
            labels are its own. Where none has, the default kernel for such rows makes the map.
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            The rows of the fit, in their order.
        y : array-like of shape (n_samples,), optional
            The labels of the fit. None: no row counts as labelled.
        doubtful : float, default=0.1
            The share of the unlabelled rows that is marked as least certain: by the difference of the two largest
            probabilities, or else decision values.
        max_rows : int, default=3000
            Rows that are drawn; of more, labelled rows and centres come first, up to half of them.
        random_state : int, default=0
            Seed of the choice.
        ax : Axes, optional
            Where to draw; None: a new figure.

        Returns
        -------
        LabelMapDisplay
            The display, drawn.
        """
        owner = cls.__name__
        check_is_fitted(estimator)
        require(owner, "doubtful", doubtful, SHARE.holds(doubtful), SHARE.expected)
        require(owner, "max_rows", max_rows, is_count(max_rows) and max_rows >= 2, "a whole number, 2 or more")
        if not hasattr(estimator, "predict"):
            raise TypeError(
                f"{owner}.from_estimator got {type(estimator).__name__}, which predicts no labels. Pass a classifier "
                "or regressor; for a kernel learner, LearnedKernelClassifier(learner)."
            )
        model, inner_X = _find_learned(estimator, X) or (estimator, X)
        n_rows = _count_rows(owner, model, X, y)
        classes = OUTLIER_CLASSES if is_outlier_detector(estimator) else getattr(estimator, "classes_", None)
        labeled, given = _read_given(estimator, y, classes)
        centers, center_label = _find_centers(model, n_rows)
        rows = choose_rows(n_rows, np.union1d(labeled, centers), max_rows, random_state)
        placed = map_rows(model, inner_X, rows)
        labels = _fill_in(estimator, X, rows, n_rows)
        shown = np.isin(labeled, rows)
        labels[np.searchsorted(rows, labeled[shown])] = given[shown]
        is_labeled = np.isin(rows, labeled)
        count = "" if len(rows) == n_rows else f"{len(rows):,} of {n_rows:,} "
        certainty = None if classes is None else _certainty(estimator, X, rows, n_rows)
        return cls(
            placed.points,
            labels,
            is_labeled,
            is_doubtful=None if certainty is None else _least(certainty, ~is_labeled, doubtful),
            is_center=np.isin(rows, centers),
            rows=rows,
            certainty=certainty,
            classes=None if classes is None else classes.tolist(),
            doubtful_label=f"least certain {doubtful:.0%}",
            center_label=center_label,
            axis_labels=(_name_axis("first", placed.explained[0]), _name_axis("second", placed.explained[1])),
            title=f"{title_of(estimator, model)}: {count}rows by {placed.kernel}",
        ).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the map.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; None: a new figure.

        Returns
        -------
        self
            The display, with ``figure_`` and ``axes_``.
        """
        owner = type(self).__name__
        with needs_matplotlib(owner):
            from ..report.maps import draw_map
        self.figure_, self.axes_ = draw_map(
            ax,
            self.points,
            self.labels.astype(float) if self.classes is None else _codes(owner, self.labels, self.classes),
            self.is_labeled,
            classes=self.classes,
            is_doubtful=self.is_doubtful,
            is_center=self.is_center,
            doubtful_label=self.doubtful_label,
            center_label=self.center_label,
            x_label=self.axis_labels[0],
            y_label=self.axis_labels[1],
            title=self.title,
            owner=owner,
        )
        self.ax_ = self.axes_[0]
        return self

    @property
    def data_(self) -> Any:
        """The numbers, as a pandas frame: row, coordinates, label, and what each row is."""
        columns = {
            "row": self.rows,
            "x": self.points[:, 0],
            "y": self.points[:, 1],
            "label": self.labels,
            "given": self.is_labeled,
            "certainty": self.certainty,
            "doubtful": self.is_doubtful,
            "center": self.is_center,
        }
        return as_frame(type(self).__name__, columns)


def choose_rows(n_rows: int, first: np.ndarray, max_rows: int, seed: int) -> np.ndarray:
    """Return the numbers of rows that are drawn, ascending: all, or at most half of them from ``first``."""
    if n_rows <= max_rows:
        return np.arange(n_rows)
    rng = np.random.default_rng(seed)
    if len(first) > max_rows // 2:
        first = rng.choice(first, max_rows // 2, replace=False)
    others = np.setdiff1d(np.arange(n_rows), first)
    return np.sort(np.concatenate([first, rng.choice(others, max_rows - len(first), replace=False)]))


def _find_learned(estimator: Any, X: Any) -> tuple[Any, Any] | None:
    """Return the first model inside that has learned a kernel, and the rows as it sees them; None if there is none."""
    if any(hasattr(estimator, name) for name in LEARNED):
        return estimator, X
    if len(getattr(estimator, "steps", ())) > 1:
        X = estimator[:-1].transform(X)
    found = (_find_learned(inner, X) for inner in inner_models(estimator))
    return next((pair for pair in found if pair is not None), None)


def _count_rows(owner: str, model: Any, X: Any, y: Any) -> int:
    """Return the number of rows, which must be that of the fit where it is known."""
    check_consistent_length(X, y)
    n_rows = int(X.shape[0]) if hasattr(X, "shape") else len(X)
    for name in ("transduction_", "dual_coef_"):
        if hasattr(model, name) and len(getattr(model, name)) != n_rows:
            raise ValueError(
                f"{owner}.from_estimator got {n_rows} rows, but {type(model).__name__} was fitted to "
                f"{len(getattr(model, name))}. Pass the rows of the fit, in their order."
            )
    return n_rows


def _read_given(estimator: Any, y: Any, classes: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of the labelled rows, and their labels."""
    if y is None:
        return np.empty(0, dtype=np.intp), np.empty(0, dtype=object if classes is None else classes.dtype)
    unlabeled = getattr(estimator, "unlabeled", None)
    return labeled_values(y, unlabeled=unlabeled, classes=classes, regression=classes is None)


def _find_centers(model: Any, n_rows: int) -> tuple[np.ndarray, str]:
    """Return the rows that a model is made of, and what they are called; none where these are all rows."""
    groups = getattr(getattr(model, "expansion_", None), "groups", ())
    centers = np.unique(np.concatenate([np.empty(0, dtype=np.intp), *(group.centers for group in groups)]))
    if len(centers) == n_rows:
        centers = centers[:0]
    return centers, "support vector" if hasattr(model, "support_") else "centre"


def _fill_in(estimator: Any, X: Any, rows: np.ndarray, n_rows: int) -> np.ndarray:
    """Return the label of each row: that of the transduction, or else the predicted one."""
    known = getattr(estimator, "transduction_", None)
    if known is None or len(known) != n_rows:
        known, rows = estimator.predict(take(X, rows)), np.arange(len(rows))
    return np.array(known)[rows]


def _certainty(estimator: Any, X: Any, rows: np.ndarray, n_rows: int) -> np.ndarray | None:
    """Return how far the first class is before the second, in probability or else in decision values."""
    values = getattr(estimator, "label_distributions_", None)
    if values is not None and len(values) == n_rows:
        values = values[rows]
    elif hasattr(estimator, "predict_proba"):
        values = estimator.predict_proba(take(X, rows))
    elif hasattr(estimator, "decision_function"):
        values = np.asarray(estimator.decision_function(take(X, rows)))
        if values.ndim == 1:
            return np.abs(values)
    else:
        return None
    ordered = np.sort(values, axis=1)
    return ordered[:, -1] - ordered[:, -2]


def _name_axis(which: str, share: float) -> str:
    return f"{which} principal component ({share:.0%} of the variance)"


def _least(certainty: np.ndarray, among: np.ndarray, share: float) -> np.ndarray:
    """Return which rows are the least certain share of some."""
    places = np.flatnonzero(among)
    places = places[np.argsort(certainty[places], kind="stable")[: int(share * len(places))]]
    return np.isin(np.arange(len(certainty)), places)


def _codes(owner: str, labels: np.ndarray, classes: Sequence[Any]) -> np.ndarray:
    """Return the number of each row's class."""
    number = {name: k for k, name in enumerate(classes)}
    unknown = [label for label in labels.tolist() if label not in number]
    if unknown:
        raise ValueError(f"{owner} got the label {unknown[0]!r}, which is none of the classes {list(classes)}.")
    return np.array([number[label] for label in labels.tolist()], dtype=np.intp)

"""Which training rows a prediction rests on, as a drawing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.utils import _safe_indexing as take  # in scikit-learn's public reference, in spite of its name
from sklearn.utils.validation import _num_samples

from ..estimators.shared.records import make_frame
from ..kernels.short_text import cut_text
from .displays import needs_matplotlib
from .explain import explain
from .explanation import INTERCEPT, OTHERS, CombinedExplanation, Explanation, read_row

N_SHOWN = 10  # training rows
MAX_NAME = 28  # characters of a class


class InfluenceDisplay:
    """The training rows that a prediction rests on, and what each source adds at them.

    Use :meth:`from_estimator` or :meth:`from_explanation` to make one.

    Parameters
    ----------
    training_rows : ndarray of shape (n_shown,)
        Numbers of training rows, those that add most first.
    contributions : ndarray of shape (n_shown, n_sources)
        What they add to the decision value.
    sources : sequence of str
        Names of the sources.
    rest : float
        What all other training rows add.
    intercept : float
        What is added for every row.
    output : str
        The class or the number that is explained.
    quantity : {"decision value", "probability", "prediction"}, default="decision value"
        What the contributions sum to.
    title : str, default=""
        Title of the figure.

    Attributes
    ----------
    data_ : pandas.DataFrame
        One line for each bar: ``training_row``, ``contribution`` and, where there are several, the sources.
    figure_ : matplotlib.figure.Figure
        What was drawn.
    ax_ : matplotlib.axes.Axes
        With the bars.

    See Also
    --------
    explain : The numbers of all rows, kernels and sources.
    KernelWeightsDisplay : What kernels and sources weigh in the model as a whole.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import InfluenceDisplay, SSMKClassifier
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> model = SSMKClassifier().fit(X, X[:, 0] > 0)
    >>> display = InfluenceDisplay.from_estimator(model, X, row=3)
    >>> bool(np.isclose(display.data_["contribution"].sum(), model.decision_function(X[3:4])[0]))
    True
    """

    def __init__(
        self,
        training_rows: np.ndarray,
        contributions: np.ndarray,
        sources: Sequence[str],
        rest: float,
        intercept: float,
        *,
        output: str,
        quantity: str = "decision value",
        title: str = "",
    ):
        self.training_rows = training_rows
        self.contributions = contributions
        self.sources = tuple(sources)
        self.rest = rest
        self.intercept = intercept
        self.output = output
        self.quantity = quantity
        self.title = title

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        row: int = 0,
        *,
        output: Any = None,
        n: int = N_SHOWN,
        ax: Any = None,
        names: Any = None,
    ) -> Self:
        """Explain the prediction of one row, and draw it.

        Parameters
        ----------
        model : estimator
            As :func:`explain` takes it. Of ``AutoKernel*`` the member is shown that has the largest share in the
            prediction and can be explained.
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            Rows to predict.
        row : int, default=0
            Which row of ``X``.
        output : class or name, optional
            The class, or the number, whose decision value is shown; by default the one of the largest value.
        n : int, default=10
            Training rows that have a bar of their own.
        ax : Axes, optional
            Where to draw; None: a new figure.
        names : sequence of str, optional
            Names of all training rows; by default their numbers.

        Returns
        -------
        InfluenceDisplay
            The display, drawn.
        """
        row = read_row(row, _num_samples(X))
        found = explain(model, take(X, [row]), n_training_rows=n)
        return cls._from(found, 0, f"Row {row}", output, n).plot(ax=ax, names=names)

    @classmethod
    def from_explanation(
        cls,
        explanation: Explanation | CombinedExplanation,
        row: int = 0,
        *,
        output: Any = None,
        n: int = N_SHOWN,
        ax: Any = None,
        names: Any = None,
    ) -> Self:
        """Draw one row of what :func:`explain` returned.

        Parameters
        ----------
        explanation : Explanation or CombinedExplanation
            The parts of some predictions.
        row : int, default=0
            Which of the rows that were explained.
        output : class or name, optional
            The class, or the number, whose decision value is shown; by default the one of the largest value.
        n : int, default=10
            Training rows that have a bar of their own; not more than were kept.
        ax : Axes, optional
            Where to draw; None: a new figure.
        names : sequence of str, optional
            Names of all training rows; by default their numbers.

        Returns
        -------
        InfluenceDisplay
            The display, drawn.
        """
        row = read_row(row, len(explanation.decision))
        return cls._from(explanation, row, f"Row {row}", output, n).plot(ax=ax, names=names)

    @classmethod
    def _from(cls, found: Explanation | CombinedExplanation, i: int, title: str, output: Any, n: int) -> Self:
        if isinstance(found, CombinedExplanation):
            member = found.heaviest(i)
            share = found.shares[i, found.members.index(member)]
            found, title = found.explanations[member], f"{title}, {member} ({share:.0%} of the prediction)"
        k = found.output_place(i, output)
        rows, parts = found.training_rows[i, :n, k], found.by_training_row[i, :n, :, k]
        used = parts.any(axis=1)
        rest = float(found.rest[i, :, k].sum() + found.by_training_row[i, n:, :, k].sum())
        return cls(
            rows[used],
            parts[used],
            found.sources,
            rest,
            float(found.intercept[k]),
            output=str(found.outputs[k]),
            quantity=found.quantity,
            title=f"{title}: {found.quantity} {found.decision[i, k]:.3g}",
        )

    @property
    def data_(self) -> Any:
        """The numbers of the bars, as a pandas frame."""
        bars = [
            {"training_row": int(row), "contribution": float(parts.sum()), **self._by_source(parts)}
            for row, parts in zip(self.training_rows, self.contributions, strict=True)
        ]
        return make_frame([*bars, *({"training_row": name, "contribution": value} for name, value in self._others())])

    def plot(self, ax: Any = None, *, names: Any = None) -> Self:
        """Draw the bars.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; None: a new figure.
        names : sequence of str, optional
            Names of all training rows; by default their numbers.

        Returns
        -------
        self
            The display, with ``figure_`` and ``ax_``.
        """
        owner = type(self).__name__
        with needs_matplotlib(owner):
            from ..report.influence import draw_influence
        rows = [f"row {row}" if names is None else str(names[row]) for row in self.training_rows]
        self.figure_, self.ax_ = draw_influence(
            ax,
            rows,
            self.contributions.tolist(),
            self.sources,
            self._others(),
            label=self._label(),
            title=self.title,
            owner=owner,
        )
        return self

    def _label(self) -> str:
        name = cut_text(self.output, MAX_NAME)
        if self.quantity == "probability":
            return f"contribution to the probability of {name}"
        if self.quantity == "prediction":
            return "contribution to the prediction" + (f" of output {name}" if name != "prediction" else "")
        return f"contribution to the decision value; positive speaks for {name}"

    def _others(self) -> list[tuple[str, float]]:
        return [(OTHERS, self.rest), (INTERCEPT, self.intercept)]

    def _by_source(self, parts: np.ndarray) -> dict[str, float]:
        named = zip(self.sources, parts, strict=True)
        return {f"from {name}": float(part) for name, part in named} if len(self.sources) > 1 else {}

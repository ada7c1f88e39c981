"""Which kernels and sources a model uses, as bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from ..parameters import is_count, require
from .displays import as_frame, find_model, needs_matplotlib, title_of

ATTRIBUTES = ("kernel_usage_", "kernel_weights_", "base_kernels_", "learner_")


class KernelWeightsDisplay:
    """Shares of kernels and of their sources in a model, as bars.

    Of a mixture, a share is the part of the penalised norm that the kernel's coefficients make up (``kernel_usage_``);
    of a learned sum of kernels it is the weight divided by the sum of all weights (``kernel_weights_``); of a learned
    kernel likewise (``base_kernels_``). Make it with :meth:`from_estimator`.

    Parameters
    ----------
    names : sequence of str, length n_kernels
        Names of the kernels.
    shares : array-like of shape (n_kernels,)
        Their shares, which sum to 1.
    sources : sequence of str, optional
        Which part of the data each kernel looks at.
    weights, columns : array-like of shape (n_kernels,), optional
        The weight of each kernel as the model has it, or the number of its basis functions; for ``data_``.
    class_shares : array-like of shape (n_classes, n_kernels), optional
        Where each class has weights of its own; ``shares`` are then their means.
    class_names : sequence, optional
        The classes, in the order of ``class_shares``; 0, 1, ... by default.
    title : str, default=""
        Title of the figure.

    Attributes
    ----------
    data_ : pandas.DataFrame
        One line a kernel, in the order given.
    figure_ : matplotlib.figure.Figure
        What was drawn.
    ax_ : matplotlib.axes.Axes
        With the kernels.
    axes_ : ndarray of matplotlib.axes.Axes
        Kernels and, where there are several, sources.

    See Also
    --------
    MKLClassifier : Learns the weights of kernels.
    InfluenceDisplay : What each source adds to one prediction.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave import RBF, KernelWeightsDisplay, Linear, RKDAClassifier
    >>> model = RKDAClassifier([Linear(), RBF()]).fit(*load_iris(return_X_y=True))
    >>> display = KernelWeightsDisplay.from_estimator(model)
    >>> display.names, round(float(sum(display.shares)), 6)
    (['Linear()', 'RBF()'], 1.0)
    """

    def __init__(
        self,
        names: Sequence[str],
        shares: Any,
        *,
        sources: Sequence[str] | None = None,
        weights: Any = None,
        columns: Any = None,
        class_shares: Any = None,
        class_names: Sequence[Any] | None = None,
        title: str = "",
    ):
        self.names = [str(name) for name in names]
        self.shares = np.asarray(shares, dtype=float)
        self.sources = ["all columns"] * len(self.names) if sources is None else [str(source) for source in sources]
        self.weights, self.columns = weights, columns
        self.class_shares = None if class_shares is None else np.asarray(class_shares, dtype=float)
        n_classes = 0 if self.class_shares is None else len(self.class_shares)
        self.class_names = list(range(n_classes)) if class_names is None else list(class_names)
        self.title = title
        if not self.names or self.shares.shape != (len(self.names),) or len(self.sources) != len(self.names):
            raise ValueError(
                f"KernelWeightsDisplay got {len(self.names)} names, shares of shape {self.shares.shape} and "
                f"{len(self.sources)} sources; expected one share and one source for each of at least one name."
            )

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, n_kernels: int = 15) -> Self:
        """Draw the kernels of a fitted estimator.

        Parameters
        ----------
        estimator : fitted estimator
            Any of this package that has kernels; of a combination, a search or a pipeline the model inside it.
        ax : Axes or sequence of Axes, optional
            Where to draw; None: a new figure.
        n_kernels : int, default=15
            Kernels with a bar of their own, the largest; the others are summed into one more.

        Returns
        -------
        KernelWeightsDisplay
            The display, drawn.
        """
        model = find_model(estimator, ATTRIBUTES, cls.__name__)
        return cls(**_read_shares(model), title=title_of(estimator, model)).plot(ax, n_kernels=n_kernels)

    def plot(self, ax: Any = None, *, n_kernels: int = 15) -> Self:
        """Draw the bars.

        Parameters
        ----------
        ax : Axes or sequence of Axes, optional
            Where to draw; None: a new figure.
        n_kernels : int, default=15
            Kernels with a bar of their own, the largest; the others are summed into one more.

        Returns
        -------
        self
            The display, with ``figure_`` and ``axes_``.
        """
        owner = type(self).__name__
        require(f"{owner}.plot", "n_kernels", n_kernels, is_count(n_kernels), "a whole number, 1 or more")
        with needs_matplotlib(owner):
            from ..report.bars import draw_kernel_weights
        self.figure_, self.axes_ = draw_kernel_weights(
            ax,
            self.names,
            self.shares,
            self.sources,
            class_shares=self.class_shares,
            class_names=self.class_names,
            n_kernels=n_kernels,
            title=self.title,
            owner=owner,
        )
        self.ax_ = self.axes_[0]
        return self

    @property
    def data_(self) -> Any:
        """The numbers, as a pandas frame: kernel, source, share, and what else is known."""
        columns = {"kernel": self.names, "source": self.sources, "share": self.shares}
        columns |= {"weight": self.weights, "columns": self.columns}
        if self.class_shares is not None:
            columns |= {f"share: {name}": row for name, row in zip(self.class_names, self.class_shares, strict=True)}
        return as_frame(type(self).__name__, columns)


def _read_shares(model: Any) -> dict[str, Any]:
    """Return names, sources and shares of a model, as the parameters of the Display."""
    if hasattr(model, "learner_"):
        model = model.learner_
    if hasattr(model, "kernel_usage_"):
        records, key = model.kernel_usage_, "share"
    else:
        records, key = (model.kernel_weights_ if hasattr(model, "kernel_weights_") else model.base_kernels_), "weight"
    values = np.array([record[key] for record in records], dtype=float)
    read: dict[str, Any] = {
        "names": [record["name"] for record in records],
        "sources": [record.get("source", "all columns") for record in records],
        "shares": _normalize(values),
    }
    if key == "share":
        return read | {"columns": [record["columns"] for record in records]}
    if np.ndim(model.weights_) == 2:
        names = getattr(model, "classes_", None)
        read |= {"class_shares": np.array([_normalize(row) for row in model.weights_]), "class_names": names}
    return read | {"weights": values}


def _normalize(values: np.ndarray) -> np.ndarray:
    """Return values divided by their sum, where there is one."""
    total = values.sum()
    return values / total if total > 0 else values

r"""Predictions taken apart: what each kernel, each source and each training row adds.

A model whose decision value is a kernel expansion is a sum already,

.. math:: f(x) = \sum_p \sum_{j} \alpha_j^p K_p(x, x_j) + b,

so that nothing is estimated: the terms are summed over training rows :math:`j` for kernels and sources, and over
kernels :math:`p` for training rows. A discriminant compares distances of such sums from centroids, which is linear in
the sums but for a term that all classes share; a harmonic function is a mean over neighbours, hence a sum over them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ..estimators.auto.classifier import AutoKernelClassifier
from ..estimators.auto.frames import name_rows
from ..estimators.auto.members import mix_numbers, mix_probabilities
from ..estimators.auto.regressor import AutoKernelRegressor
from ..estimators.graph_means import KernelMeans
from ..estimators.harmonic import HarmonicClassifier, HarmonicRegressor
from ..estimators.one_class import CGBoostOneClass
from ..estimators.rkda import RKDAClassifier
from ..estimators.shared.base import KernelEstimator
from ..kernels.base import batches
from ..kernels.expansion import KernelExpansion
from ..model_selection.semi_supervised import takes_unlabeled
from ..parameters import COUNT, NONE, check_parameters
from .explanation import CombinedExplanation, Explanation


def explain(model: Any, X: Any, *, n_training_rows: int | None = 20) -> Explanation | CombinedExplanation:
    """Take the predictions of a model apart: what each kernel, source and training row adds to the decision values.

    The parts are exact: they sum to ``decision_function``, or to ``predict`` where numbers are predicted.

    Parameters
    ----------
    model : estimator
        Fitted; a model of kernelweave, a search over one, or a pipeline that ends in one.
    X : array, sparse matrix or frame of shape (n_rows, n_features)
        Rows whose predictions are explained.
    n_training_rows : int or None, default=20
        How many training rows are kept for each row and output, those that add most by absolute value. None: all.

    Returns
    -------
    Explanation or CombinedExplanation
        The parts, as arrays and as frames; the second for ``AutoKernelClassifier`` and ``AutoKernelRegressor``.

    Raises
    ------
    NotASumError
        If the predictions of the model are no sum over kernels and training rows.

    See Also
    --------
    InfluenceDisplay : Draws the parts of one prediction.
    column_importance : How much a model needs each column, measured on held-out rows.

    Notes
    -----
    What is attributed to what:

    - *Mixtures and support vector machines* (``SSMK*``, ``CGBoost*``, ``MKL*``, ``LapSVM*``, ``TSVM*``,
      ``LearnedKernel*``): a training row adds its coefficients times the kernels' values. It is a centre, labelled or
      not. The intercept belongs to no kernel.
    - *Kernels that have seen other rows*: a deformed or spectral kernel is attributed as the whole that it is, to its
      centres; the rows of the graph along which it was deformed, or the base it was made of, get nothing. In a
      ``LearnedKernel*`` model the label-aware functions are made of the labels of all labelled rows: these
      get what their coefficients add, not what their labels did to the functions. Where what the centres of such
      kernels add would take more than 4 megabytes, the model does not keep it: it is in ``rest``, and ``undivided``
      names the kernels.
    - ``RKDAClassifier``: for two classes the decision value. For more, the decision value of a class plus half the
      squared length of the projection, in units of the spread, which is the same for all classes and changes neither
      their order nor their differences.
    - ``HarmonicClassifier`` and ``HarmonicRegressor``: the probabilities, or the number; they are means over neighbours
      in the graph, labelled or not, whose own values have come along the graph from labelled rows.
    - ``AutoKernel*``: the members' parts in probabilities, or in the number; and each member that is one of the above.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import KernelLibrary, Linear, OnColumns, RBF, MKLClassifier, explain
    >>> X = np.random.default_rng(0).normal(size=(60, 4))
    >>> library = KernelLibrary([OnColumns(RBF(), [0, 1], source="left"), OnColumns(Linear(), [2, 3], source="right")])
    >>> model = MKLClassifier(library).fit(X, X[:, 0] > 0)
    >>> found = explain(model, X[:2], n_training_rows=5)
    >>> found
    <Explanation of 2 rows and 1 output: 2 kernels, 2 sources, 5 training rows for each>
    >>> bool(np.allclose(found.by_source.sum(axis=1)[:, 0] + found.intercept, model.decision_function(X[:2])))
    True
    >>> list(found.rows(0, n=1)[0])
    ['row', 'contribution', 'from left', 'from right']
    """
    check_parameters("explain", {"n_training_rows": n_training_rows}, {"n_training_rows": NONE | COUNT})
    if isinstance(model, Pipeline):
        check_is_fitted(model)
        rows = model[:-1].transform(X) if len(model) > 1 else X
        return explain(model[-1], rows, n_training_rows=n_training_rows)
    if not isinstance(model, KernelEstimator):
        if hasattr(model, "best_estimator_"):
            return explain(model.best_estimator_, X, n_training_rows=n_training_rows)
        raise NotASumError(_refusal(model))
    if isinstance(model, AutoKernelClassifier | AutoKernelRegressor):
        return _explain_combination(model, model._read_new_rows(X), n_training_rows)
    if isinstance(model, HarmonicClassifier | HarmonicRegressor):
        return _explain_means(model, model._read_new_rows(X), n_training_rows)
    check_is_fitted(model)
    if not hasattr(model, "expansion_"):
        raise NotASumError(_refusal(model))
    return _explain_expansion(model, model._read_new_rows(X), n_training_rows)


class NotASumError(TypeError):
    """A model whose prediction is not a sum over training rows."""


def _refusal(model: Any) -> str:
    return (
        f"explain cannot take {type(model).__name__} apart: its prediction is not a sum over training rows. It takes "
        "fitted mixtures and support vector machines of kernelweave, RKDAClassifier, Harmonic* and AutoKernel*, "
        "alone, in a search, or last in a Pipeline. For other models use sklearn.inspection.permutation_importance."
    )


def _explain_expansion(model: Any, X: Any, n_kept: int | None) -> Explanation:
    expansion: KernelExpansion = model.expansion_
    mix, offset = _read_outputs(model, expansion)
    groups, n_rows, n_outputs = expansion.groups, X.shape[0], mix.shape[1]
    sources = tuple(dict.fromkeys(group.source for group in groups))
    number = {id(group): k for k, group in enumerate(groups)}
    source = np.array([sources.index(group.source) for group in groups], dtype=np.intp)
    centers = np.unique(np.concatenate([np.empty(0, dtype=np.intp), *(group.centers for group in groups)]))
    place = [np.searchsorted(centers, group.centers) for group in groups]
    by_kernel = np.zeros((n_rows, len(groups), n_outputs))

    def divide(rows: slice) -> tuple[np.ndarray, np.ndarray]:
        parts = np.zeros((rows.stop - rows.start, len(centers), len(sources), n_outputs))
        for block, group, values in expansion.walk(X[rows]):
            k = number[id(group)]
            by_kernel[rows][block, k] = values @ (group.bound_coef @ mix)
            if group.knows_centers:
                parts[block, place[k], source[k]] += group.at_centers(values)[:, :, None] * (group.coef @ mix)
        return np.broadcast_to(centers, (len(parts), len(centers))), parts

    widths = [group.bound.n_rows for group in groups]
    kept = _keep_largest(divide, n_rows, len(centers) * len(sources) * n_outputs + sum(widths), n_kept, len(centers))
    by_source = np.zeros((n_rows, len(sources), n_outputs))
    for s in range(len(sources)):
        by_source[:, s] = by_kernel[:, source == s].sum(axis=1)
    return Explanation(
        outputs=_name_outputs(model, n_outputs),
        decision=by_kernel.sum(axis=1) + offset,
        intercept=offset,
        kernels=tuple(group.name for group in groups),
        kernel_sources=tuple(group.source for group in groups),
        by_kernel=by_kernel,
        sources=sources,
        by_source=by_source,
        training_rows=kept[0],
        by_training_row=kept[1],
        rest=by_source - kept[1].sum(axis=1),
        undivided=tuple(group.name for group in groups if not group.knows_centers),
        quantity="prediction" if is_regressor(model) else "decision value",
    )


def _read_outputs(model: Any, expansion: KernelExpansion) -> tuple[np.ndarray, np.ndarray]:
    """Return the matrix and the offset that turn the outputs of an expansion, without intercept, into decisions."""
    mix, offset = np.eye(len(expansion.intercept)), np.zeros(len(expansion.intercept))
    if isinstance(model, RKDAClassifier):  # -|p - c|^2 / 2s without the |p|^2 that classes share
        centroids = model.centroids_
        mix = centroids.T / model._spread
        shares = model.class_prior_ / model.class_prior_.max()
        offset = np.log(shares) - 0.5 * np.square(centroids).sum(axis=1) / model._spread
        if len(model.classes_) == 2:
            mix, offset = mix[:, 1:] - mix[:, :1], offset[1:] - offset[:1] - model.threshold_
    elif isinstance(model, CGBoostOneClass):
        offset = -np.atleast_1d(np.asarray(model.offset_, dtype=np.float64))
    return mix, expansion.intercept @ mix + offset


def _explain_means(model: Any, X: Any, n_kept: int | None) -> Explanation:
    values, classes = model.harmonic_, getattr(model, "class_factors_", None)
    means = model._extension
    n_neighbors = means.kernel.n_rows if isinstance(means, KernelMeans) else means.n_neighbors
    decision = np.zeros((X.shape[0], values.shape[1]))

    def divide(rows: slice) -> tuple[np.ndarray, np.ndarray]:
        neighbors, weights = means.shares(X[rows])
        parts = weights[:, :, None] * values[neighbors]
        if classes is not None:  # class-mass normalisation, and rows that sum to 1
            parts *= classes
            parts /= parts.sum(axis=(1, 2))[:, None, None]
        decision[rows] = parts.sum(axis=1)
        return neighbors, parts[:, :, None]

    kept = _keep_largest(divide, X.shape[0], 2 * n_neighbors * values.shape[1], n_kept, n_neighbors)
    name, source = "nearest neighbours", "all columns"
    if isinstance(means, KernelMeans):
        name, source = model.library_.names[0], model.library_.entries[0].source
    return Explanation(
        outputs=model.classes_.copy() if classes is not None else _name_outputs(model, values.shape[1]),
        decision=decision,
        intercept=np.zeros(values.shape[1]),
        kernels=(name,),
        kernel_sources=(source,),
        by_kernel=decision[:, None],
        sources=(source,),
        by_source=decision[:, None],
        training_rows=kept[0],
        by_training_row=kept[1],
        rest=decision[:, None] - kept[1].sum(axis=1),
        quantity="prediction" if classes is None else "probability",
    )


def _keep_largest(
    divide: Callable[[slice], tuple[np.ndarray, np.ndarray]], n_rows: int, width: int, n_kept: int | None, n_parts: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the training rows that add most to each row and output, and what they add for each source.

    Parameters
    ----------
    divide : callable
        From some rows to the numbers of training rows, (n_some, n_parts), and to what these add, (n_some, n_parts,
        n_sources, n_outputs).
    n_rows : int
    width : int
        Numbers that one row takes while it is divided.
    n_kept : int or None
    n_parts : int
    """
    n_kept = n_parts if n_kept is None else min(int(n_kept), n_parts)
    chosen, largest = [], []
    for rows in batches(n_rows, 3 * width):  # the parts, their sums and the order of these
        numbers, parts = divide(rows)
        order = np.argsort(-np.abs(parts.sum(axis=2)), axis=1, kind="stable")[:, :n_kept]
        chosen.append(np.take_along_axis(numbers[:, :, None], order, axis=1))
        largest.append(np.take_along_axis(parts, order[:, :, None], axis=1))
    return np.concatenate(chosen), np.concatenate(largest)


def _name_outputs(model: Any, n_outputs: int) -> np.ndarray:
    if is_classifier(model):
        return model.classes_[1:].copy() if n_outputs == 1 else model.classes_.copy()
    if not is_regressor(model):
        return np.array(["inlier"], dtype=object)
    return np.array(["prediction"] if n_outputs == 1 else range(n_outputs), dtype=object)


def _explain_combination(model: Any, X: Any, n_kept: int | None) -> CombinedExplanation:
    members = model.members_
    weights = np.array([member.weight for member in members])
    if isinstance(model, AutoKernelClassifier):
        equal = np.ones(len(model.classes_))
        own = [mix_probabilities([replace(member, weight=1.0)], equal, X) for member in members]
        parts = weights[:, None] * np.stack(own, axis=1) * model.class_factors_
        parts /= parts.sum(axis=(1, 2))[:, None, None]
        decision = parts.sum(axis=1)
        predicted = decision.argmax(axis=1)[:, None, None]
        shares = np.take_along_axis(parts, predicted, axis=2)[:, :, 0] / decision.max(axis=1)[:, None]
        names = model.classes_.copy()
    else:
        parts = np.stack([mix_numbers([member], X) for member in members], axis=1)[:, :, None]
        decision, shares = parts.sum(axis=1), np.broadcast_to(weights, parts.shape[:2])
        names = _name_outputs(model, 1)
    explained, refused = {}, {}
    for member in members:
        try:
            found = explain(member.model, name_rows(X, member.columns), n_training_rows=n_kept)
        except NotASumError as error:
            refused[member.name] = str(error)
            continue
        assert isinstance(found, Explanation)  # members are single models
        rows = model._sample_rows if takes_unlabeled(member.model) else model._labeled_rows
        explained[member.name] = replace(found, training_rows=rows[found.training_rows])
    return CombinedExplanation(
        outputs=names,
        decision=decision,
        members=tuple(member.name for member in members),
        weights=weights,
        by_member=parts,
        shares=shares,
        explanations=explained,
        refused=refused,
    )

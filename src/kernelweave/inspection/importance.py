r"""Which columns decide: how much the error on held-out rows rises when a column says nothing.

A column says nothing where its cells are those of other rows, drawn at random. For a model that has not seen the label
of row i, with loss :math:`\ell_i`, and with loss :math:`\ell_{ir}` once the cells of the column (or of all columns of a
source, drawn together) are those of a random row, the importance is the mean over rows of
:math:`\frac1R \sum_r \ell_{ir} - \ell_i`: points of error for classes; for numbers the rise of the root mean squared
error. Rows without a label are donors of cells, and train models that take them; they are never scored.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.base import is_classifier
from sklearn.utils import _safe_indexing as take  # in scikit-learn's public reference, in spite of its name
from sklearn.utils import check_random_state

from ..estimators.auto.leaderboard import ErrorEstimate, class_error, number_error, widen_for_folds
from ..kernels.sharing import shared_bindings
from ..labels import partition, partition_targets
from ..model_selection.out_of_fold import FoldModel, fold_models
from ..parameters import COUNT, require
from ..short_text import suggest_names
from .intervals import difference_of_roots, difference_of_shares

PREFIT = "prefit"


@dataclass(frozen=True, eq=False)
class ColumnImportance:
    """How much columns and sources matter to a model.

    Attributes
    ----------
    records : list of dict
        Sources first, then columns, the most important first: ``name``, ``kind`` ("source" or "column"), ``importance``
        with ``low`` and ``high`` (95 %), ``columns`` (how many are exchanged together).
    error : ErrorEstimate
        Of the model on the same rows with all columns as they are.
    task : {"classes", "numbers"}
        What is predicted.
    not_tried : list of str
        Names for which there was no time.
    """

    records: list[dict[str, Any]]
    error: ErrorEstimate
    task: str
    not_tried: list[str]

    def to_frame(self) -> Any:
        """Return the records as a pandas frame.

        Returns
        -------
        pandas.DataFrame
            One line for each record.
        """
        import pandas as pd

        return pd.DataFrame(self.records)


def column_importance(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    columns: Mapping[str, Sequence[Any]] | None = None,
    sources: Mapping[str, Sequence[Any]] | None = None,
    n_repeats: int = 5,
    cv: Any = None,
    transductive: bool = True,
    groups: Any = None,
    unlabeled: Any = "auto",
    max_time: float | None = None,
    callback: Callable[[str, float], object] | None = None,
    random_state: Any = None,
) -> ColumnImportance:
    """Measure on held-out labelled rows how much a model needs each column, and each source of columns.

    Parameters
    ----------
    estimator : classifier or regressor
        Cloned and fitted in folds of the labelled rows; with ``cv="prefit"`` a fitted model.
    X : array, sparse matrix or frame of shape (n_samples, n_features)
        With ``cv="prefit"``, rows that the model was not fitted to.
    y : array-like of shape (n_samples,)
        Labels, some of them missing. Unlabelled rows are not scored.
    columns : mapping of str to sequence of int or str, optional
        What counts as a column: positions, or names in a frame, of those that are exchanged together, such as the
        levels of a category. None: each column by itself.
    sources : mapping of str to sequence of int or str, optional
        Groups of columns that are exchanged together, beside the columns themselves.
    n_repeats : int, default=5
        How often the cells of a row are replaced.
    cv : int, splitter, iterable, None or "prefit", default=None
        As in :func:`kernelweave.model_selection.out_of_fold`.
    transductive : bool, default=True
        Whether held-out rows stay in training as unlabelled ones, as in ``out_of_fold``.
    groups : array-like of shape (n_samples,), optional
        Rows of one group are held out together.
    unlabeled : "auto", None or marker, default="auto"
        What marks an unlabelled row among classes, as in :class:`SSMKClassifier`.
    max_time : float, optional
        Seconds after which no further column is tried; models are fitted and sources tried in any case.
    callback : callable, optional
        ``callback(text, share)`` after each fit and before each column, with the share of the work that is done.
    random_state : int, RandomState or None, default=None
        Of folds and of the rows that cells are taken from.

    Returns
    -------
    ColumnImportance
        By how much the error grows where cells of a column come from other rows (``records``, ``to_frame``).

    See Also
    --------
    explain : Takes single predictions apart.
    sklearn.inspection.permutation_importance : The same idea without folds.

    Notes
    -----
    Of two columns that say the same, each alone may seem of no importance: exchange them together, as a source.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import HarmonicClassifier, column_importance
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 3))
    >>> y = np.where(np.arange(80) < 40, X[:, 1] > 0, np.nan)  # column 1 decides
    >>> found = column_importance(HarmonicClassifier(), X, y, random_state=0)
    >>> found.records[0]["name"], found.records[0]["low"] > 0
    ('x1', True)
    """
    require("column_importance", "n_repeats", n_repeats, COUNT.holds(n_repeats), COUNT.expected)
    started = time.perf_counter()
    X = X.to_pandas() if hasattr(X, "to_pandas") else X  # frames of polars
    rng = check_random_state(random_state)
    names = _name_columns(X)
    wanted = [(name, "source", _find(given, names)) for name, given in (sources or {}).items()]
    each = {str(name): [j] for j, name in enumerate(names)} if columns is None else columns
    wanted += [(name, "column", _find(given, names)) for name, given in each.items()]
    tell = callback or (lambda name, share: None)
    task = "classes" if is_classifier(estimator) else "numbers"
    folds = _fit(estimator, X, y, cv, transductive, groups, unlabeled, rng, tell)
    donors = [rng.randint(X.shape[0], size=n_repeats * len(fold.rows)) for fold in folds]
    tests = [take(X, fold.rows) for fold in folds]
    losses = np.concatenate([_lose(fold, test, task, 1)[0] for fold, test in zip(folds, tests, strict=True)])
    records: list[dict[str, Any]] = []
    not_tried = []
    for k, (name, kind, positions) in enumerate(wanted):
        is_late = max_time is not None and time.perf_counter() - started > max_time
        if is_late and kind == "column":
            not_tried.append(name)
            continue
        tell(name, 0.5 + 0.5 * k / len(wanted))
        permuted = np.concatenate(
            [
                _lose(fold, _exchange(test, take(X, rows), positions, n_repeats), task, n_repeats).mean(axis=0)
                for fold, test, rows in zip(folds, tests, donors, strict=True)
            ]
        )
        rise = (difference_of_shares if task == "classes" else difference_of_roots)(permuted, losses)
        records.append(
            {
                "name": str(name),
                "kind": kind,
                "importance": rise.value,
                "low": rise.low,
                "high": rise.high,
                "columns": len(positions),
            }
        )
    records.sort(key=lambda record: (record["kind"] == "column", -record["importance"]))
    ones, widening = np.ones(len(losses)), widen_for_folds(len(losses), X.shape[0] - len(losses))
    error = (
        class_error(losses > 0, ones, widening) if task == "classes" else number_error(np.sqrt(losses), ones, widening)
    )
    return ColumnImportance(records, error, task, not_tried)


def _name_columns(X: Any) -> list[Any]:
    """Return the names of the columns; x0, x1, ... where there are none."""
    if not hasattr(X, "shape") or len(X.shape) != 2:
        raise ValueError(
            f"column_importance needs X of two dimensions: an array, sparse matrix or frame; got {type(X)}."
        )
    return list(X.columns) if hasattr(X, "columns") else [f"x{j}" for j in range(X.shape[1])]


def _find(given: Sequence[Any], names: list[Any]) -> list[int]:
    """Return the positions of columns that are given by position or by name."""
    found = []
    for each in given:
        is_position = isinstance(each, int | np.integer) and not isinstance(each, bool)
        if each not in names and not (is_position and 0 <= each < len(names)):
            shown = ", ".join(repr(name) for name in names[:8])
            raise ValueError(
                f"column_importance got the column {each!r}, which X does not have; it has {shown}"
                f"{f', ... ({len(names)} in all)' if len(names) > 8 else ''}. Name columns of X, or give positions."
                f"{suggest_names([each], names)}"
            )
        found.append(names.index(each) if each in names else int(each))
    if not found:
        raise ValueError("column_importance got a group without columns; name at least one column of X.")
    return found


def _fit(
    estimator: Any,
    X: Any,
    y: Any,
    cv: Any,
    transductive: bool,
    groups: Any,
    unlabeled: Any,
    rng: np.random.RandomState,
    tell: Callable[[str, float], object],
) -> list[FoldModel]:
    """Return the models and the labelled rows that they have not seen."""
    if isinstance(cv, str) and cv == PREFIT:
        if is_classifier(estimator):
            part: Any = partition(y, unlabeled=unlabeled)
            return [FoldModel(estimator, part.labeled, part.labels)]
        part = partition_targets(y)
        return [FoldModel(estimator, part.labeled, part.targets)]
    options = {"cv": cv, "transductive": transductive, "groups": groups, "unlabeled": unlabeled}
    found = []
    with shared_bindings(int(rng.randint(2**31))):
        for fold in fold_models(estimator, X, y, random_state=rng, **options):
            found.append(fold)
            tell(f"fold {len(found)} is fitted", min(0.5, 0.1 * len(found)))
    return found


def _lose(fold: FoldModel, X: Any, task: str, n_repeats: int) -> np.ndarray:
    """Return the losses of rows that are stacked ``n_repeats`` times, shape (n_repeats, n_rows)."""
    predicted = np.asarray(fold.model.predict(X)).reshape(n_repeats, len(fold.rows))
    if task == "classes":
        return (predicted != fold.y).astype(np.float64)
    return np.square(predicted - np.asarray(fold.y, dtype=np.float64))


def _exchange(test: Any, donors: Any, positions: list[int], n_repeats: int) -> Any:
    """Return ``n_repeats`` copies of the rows with some columns of the donors."""
    if hasattr(test, "iloc"):
        import pandas as pd

        mixed = pd.concat([test] * n_repeats, ignore_index=True)
        for j in positions:
            mixed.isetitem(j, donors.iloc[:, j].to_numpy())
        return mixed
    dense = test.toarray() if issparse(test) else np.asarray(test)
    mixed = np.tile(dense, (n_repeats, 1))
    given = donors.tocsc()[:, positions].toarray() if issparse(donors) else np.asarray(donors)[:, positions]
    mixed[:, positions] = given
    return csr_array(mixed) if issparse(test) else mixed

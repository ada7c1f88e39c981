"""All learners on one table under the same folds: errors, paired differences to the best, time, size, and advice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse
from threadpoolctl import threadpool_limits

from ..estimators.auto.candidates import read_candidates
from ..estimators.auto.classifier import AutoKernelClassifier
from ..estimators.auto.leaderboard import PairedDifference, class_error, number_error, widen_for_folds
from ..estimators.auto.regressor import AutoKernelRegressor
from ..labels import partition, partition_targets
from ..parameters import one_of, require
from ..short_text import format_number
from .intervals import Difference, difference_of_roots, difference_of_shares
from .peers import list_learners

TASKS = one_of("classes", "numbers")
COMBINED = "all, combined"
SIMPLEST = {"classes": "majority class", "numbers": "mean"}


@dataclass(frozen=True, eq=False)
class Comparison:
    """Learners by their errors on the same held-out rows.

    Attributes
    ----------
    records : list of dict
        The smallest error first, and last those that were tested on fewer rows or on none: ``learner``, ``package``,
        ``uses_unlabeled``, ``error`` (share of wrong classes, or root mean squared error) with ``low`` and ``high``,
        ``difference`` to the best with ``difference_low`` and ``difference_high``, ``rows`` on which it was tested,
        ``seconds``, ``size``, ``status``. Intervals are of 95 %.
    task : {"classes", "numbers"}
        What was learned.
    best : str
        The learner of the smallest error among those tested on most rows.
    unlabeled_helped : PairedDifference or None
        Error (root mean squared error) of learners that use labelled rows only, combined, less that of all.
    n_labeled, n_unlabeled : int
        Numbers of labelled and unlabelled rows.
    is_complete : bool
        Whether all learners that could be fitted were tested on all rows; False where time was too short.
    status : Status
        Why the search over learners ended.
    """

    records: list[dict[str, Any]]
    task: str
    best: str
    unlabeled_helped: PairedDifference | None
    n_labeled: int
    n_unlabeled: int
    is_complete: bool
    status: Any

    @property
    def advice(self) -> str:
        """One sentence: which learner to take, and whether unlabelled rows helped."""
        return f"{_choose(self)}; did the unlabelled rows help? {_judge_unlabeled(self)}."

    def to_frame(self) -> Any:
        """Return the records as a pandas frame.

        Returns
        -------
        pandas.DataFrame
            One line for each record.
        """
        import pandas as pd

        return pd.DataFrame(self.records)


def compare_learners(
    X: Any,
    y: Any,
    *,
    task: str = "classes",
    learners: Any = None,
    kernels: Any = None,
    groups: Any = None,
    unlabeled: Any = "auto",
    max_time: float | None = None,
    callback: Callable[..., object] | None = None,
    random_state: Any = None,
) -> Comparison:
    """Compare all learners on the labelled rows of a table, each held out in turn.

    The folds are the same for all, a held-out row stays in training as an unlabelled one, and no learner is given up
    early, unless ``max_time`` is too short for all.

    Parameters
    ----------
    X : array, sparse matrix or frame of shape (n_samples, n_features)
        Labelled and unlabelled rows.
    y : array-like of shape (n_samples,)
        Classes or numbers; NaN, None and NA mark unlabelled rows.
    task : {"classes", "numbers"}, default="classes"
        What ``y`` holds.
    learners : list, optional
        Names of candidates of :class:`AutoKernelClassifier` (:class:`AutoKernelRegressor`), estimators, or pairs of a
        name and an estimator. None: all learners of kernelweave, and of scikit-learn support vector machines, linear
        models, random forests and boosted trees; for classes also label spreading and self-training.
    kernels : None, Kernel, list of Kernel or KernelLibrary, default=None
        The library of the learners that take several kernels. None: their defaults.
    groups : array-like of shape (n_samples,), optional
        Rows of one group are held out together.
    unlabeled : "auto", None or marker, default="auto"
        What marks an unlabelled row among classes, as in :class:`SSMKClassifier`.
    max_time : float, optional
        Seconds. Cheap learners come first, and those that would take too long are left out.
    callback : callable, optional
        As in :class:`AutoKernelClassifier`; a true return value ends the comparison.
    random_state : int, RandomState or None, default=None
        Seed of folds, and of whatever learners draw at random.

    Returns
    -------
    Comparison
        One record for each learner, the smallest error first (``records``, ``to_frame``), and a sentence of ``advice``.

    See Also
    --------
    AutoKernelClassifier : Combines the learners for classes.
    AutoKernelRegressor : Combines the learners for numbers.

    Notes
    -----
    The smallest of many errors is a little too small: it was chosen for being so. Numbers are standardised before they
    are learned; errors are in their own unit.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave import compare_learners
    >>> X, species = load_iris(return_X_y=True)
    >>> y = np.where(np.arange(150) % 4 == 0, species, np.nan)
    >>> found = compare_learners(X, y, learners=["SVM", "harmonic", "logistic regression"], random_state=0)
    >>> [sorted(record)[:3] for record in found.records[:1]]
    [['difference', 'difference_high', 'difference_low']]
    >>> found.records[-1]["learner"], found.is_complete
    ('majority class', True)
    """
    require("compare_learners", "task", task, TASKS.holds(task), TASKS.expected)
    options = {"kernels": kernels, "race": False, "max_time": max_time, "callback": callback}
    options["random_state"] = random_state
    model: Any
    plain = X if issparse(X) else np.asarray(X)  # which learners there are does not depend on names
    if task == "classes":
        part: Any = partition(y, unlabeled=unlabeled)
        chosen = list_learners(plain, part.n_labeled, task) if learners is None else learners
        model = AutoKernelClassifier(chosen, unlabeled=unlabeled, **options)
        unit, target = 1.0, y
    else:
        part = partition_targets(y)
        chosen = list_learners(plain, part.n_labeled, task) if learners is None else learners
        model = AutoKernelRegressor(chosen, **options)
        unit = float(part.targets.std()) or 1.0
        target = np.full(part.n_labeled + part.n_unlabeled, np.nan)
        target[part.labeled] = (part.targets - part.targets.mean()) / unit
    with threadpool_limits(1, user_api="openmp"):  # trees on few rows: threads would wait for one another
        model.fit(X, target, groups=groups)
    candidates = read_candidates(chosen, plain, part.n_labeled, task, "compare_learners")
    certified = [each.name for each in candidates if each.is_certified]
    return _summarize(model, part, target, task, unit, certified)


def _summarize(model: Any, part: Any, target: Any, task: str, unit: float, certified: Sequence[str]) -> Comparison:
    """Return the records of all learners, of all combined and of the simplest prediction."""
    truth = dict(zip(part.labeled.tolist(), part.labels if task == "classes" else target[part.labeled], strict=True))
    losses = {
        name: _lose(rows, predicted, truth, task) for name, (rows, predicted) in model.candidate_predictions_.items()
    }
    records = {record["candidate"]: _describe(record, certified) for record in model.leaderboard_}
    if len(model.oof_rows_) and len(model.members_) > 1:
        combined = model.oof_predictions_ if task == "numbers" else _most_probable(model)
        losses[COMBINED] = _lose(model.oof_rows_, combined, truth, task)
        records[COMBINED] = _describe_combined(model, records)
    tested = [name for name in losses if name != COMBINED]
    most = max((len(losses[name]) for name in tested), default=0)
    full = [name for name in tested if len(losses[name]) == most]
    best = min(full, key=lambda name: float(np.mean(list(losses[name].values()))), default="")
    rows = np.array(sorted(truth))
    simplest = _predict_simplest(part, task)
    losses[SIMPLEST[task]] = {
        row: loss for row, loss in _lose(rows, simplest, truth, task).items() if not best or row in losses[best]
    }
    nothing = {"package": "", "uses_unlabeled": False, "seconds": 0.0, "size": 0, "status": "tested"}
    records[SIMPLEST[task]] = {"learner": SIMPLEST[task], **nothing}
    for name, record in records.items():
        record |= _measure(losses.get(name), losses.get(best), task, unit, part.n_unlabeled)
    ordered = sorted(
        records.values(),
        key=lambda record: (most - record["rows"], _rank_error(record["error"]), record["learner"] != best),
    )
    helped = model.unlabeled_helped_
    if helped is not None and task == "numbers":
        helped = helped.times(unit)
    untested = [r for r in records.values() if r["rows"] < most and not r["status"].startswith("failed")]
    is_complete = bool(best) and not untested
    return Comparison(ordered, task, best, helped, part.n_labeled, part.n_unlabeled, is_complete, model.status_)


def _lose(rows: Any, predicted: Any, truth: dict[int, Any], task: str) -> dict[int, float]:
    """Return the loss at each row."""
    pairs = [(int(row), value, truth[int(row)]) for row, value in zip(rows, predicted, strict=True)]
    if task == "classes":
        return {row: float(value != given) for row, value, given in pairs}
    return {row: float(value - given) ** 2 for row, value, given in pairs}


def _most_probable(model: Any) -> np.ndarray:
    return model.classes_[model.oof_probabilities_.argmax(axis=1)]


def _predict_simplest(part: Any, task: str) -> np.ndarray:
    """Return the class that is given most often, or the mean of the standardised numbers, for each labelled row."""
    if task == "numbers":
        return np.zeros(part.n_labeled)
    return np.repeat(part.classes[[np.bincount(part.codes).argmax()]], part.n_labeled)


def _describe(record: dict[str, Any], certified: Sequence[str]) -> dict[str, Any]:
    """Return what the leaderboard says of a learner, in the words of a comparison."""
    kept = ("uses_unlabeled", "seconds", "size", "status")
    package = "kernelweave" if record["candidate"] in certified else "scikit-learn"
    return {"learner": record["candidate"], "package": package, **{key: record[key] for key in kept}}


def _describe_combined(model: Any, records: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the same of the mixture: its members together."""
    members = [records[member.name] for member in model.members_]
    return {
        "learner": COMBINED,
        "package": "kernelweave",
        "uses_unlabeled": any(member["uses_unlabeled"] for member in members),
        "seconds": round(sum(member["seconds"] for member in members), 3),
        "size": sum(member["size"] for member in members),
        "status": "tested",
    }


def _measure(
    losses: dict[int, float] | None, of_best: dict[int, float] | None, task: str, unit: float, n_unlabeled: int
) -> dict[str, Any]:
    """Return the error and its difference to the best, each with an interval; NaN where there are no held-out rows."""
    keys = ("error", "low", "high", "difference", "difference_low", "difference_high")
    if not losses or not of_best:
        return {**dict.fromkeys(keys, float("nan")), "rows": 0}
    values = np.array(list(losses.values()))
    widening = widen_for_folds(len(values), n_unlabeled)
    both = [row for row in losses if row in of_best]
    pair = np.array([[losses[row], of_best[row]] for row in both]).T
    if task == "classes":
        error = class_error(values.astype(bool), np.ones(len(values)), widening)
        difference = difference_of_shares(*pair)
    else:
        error = number_error(np.sqrt(values), np.ones(len(values)), widening)
        difference = difference_of_roots(*pair)
    if losses is of_best:
        difference = Difference(0.0, 0.0, 0.0)
    found = (error.value, error.low, error.high, *difference)
    return {**dict(zip(keys, (unit * value for value in found), strict=True)), "rows": len(values)}


def _rank_error(error: float) -> float:
    """Return an error to sort by: NaN comes last, and errors that differ by rounding only are equal."""
    return float("inf") if np.isnan(error) else float(f"{error:.11e}")


# Advice


def _choose(found: Comparison) -> str:
    """Say which learner to take."""
    by_name = {record["learner"]: record for record in found.records}
    simplest = SIMPLEST[found.task]
    if not found.best:
        return "label more rows, or allow more time: no learner could be tested"
    error = _write(by_name[found.best]["error"], found.task)
    if by_name[simplest]["difference_low"] <= 0:
        return f"label more rows: no learner is clearly better than the {simplest}"
    combined = by_name.get(COMBINED)
    if combined is not None and combined["difference_high"] < 0:
        error = _write(combined["error"], found.task)
        return f"combine them, as `kernelweave label` does (error {error}): that is clearly better than any one of them"
    others = [
        record
        for name, record in by_name.items()
        if name not in (found.best, simplest, COMBINED) and record["difference_low"] <= 0  # NaN is not
    ]
    if not others:
        return f"take {found.best} (error {error}), which is clearly better than all others"
    fastest = min(others, key=lambda record: record["seconds"])
    as_good = f"{fastest['learner']} is not clearly worse"
    if len(others) > 1:
        is_faster = fastest["seconds"] < by_name[found.best]["seconds"]
        speed = f"{fastest['learner']} the fastest of them" if is_faster else "and none of them is faster"
        as_good = f"{len(others)} others are not clearly worse, {speed}"
    return f"take {found.best} (error {error}); {as_good}"


def _judge_unlabeled(found: Comparison) -> str:
    """Say whether unlabelled rows helped."""
    if not found.n_unlabeled:
        return "there are none in this table"
    if found.unlabeled_helped is None:
        return "that was not tested"
    helped, task = found.unlabeled_helped, found.task
    answer = {"unlabelled rows helped": "yes", "unlabelled rows hurt": "no, they hurt"}.get(helped.verdict, "not clear")
    if task == "classes":
        difference, low, high = (f"{100 * v:+.1f}" for v in (helped.difference, helped.low, helped.high))
        return f"{answer} (without them the error changes by {difference} points, 95 % interval {low} to {high})"
    values = (helped.difference, helped.low, helped.high)
    difference, low, high = (format_number(value, 3, sign=True) for value in values)
    what = "root mean squared error"
    return f"{answer} (without them the {what} changes by {difference}, 95 % interval {low} to {high})"


def _write(error: float, task: str) -> str:
    return f"{error:.1%}" if task == "classes" else format_number(error)

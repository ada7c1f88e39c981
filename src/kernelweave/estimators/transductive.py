"""What transductive machines share: the walk of a fit, the balance of the classes, and choices by labelled folds.

The kernels are computed once. Every machine of a fit, those of cross-validation included, moves their origin to the
mean of its own unlabelled rows, where the balance of the classes needs no constraint.
"""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np

from ..labels import Partition
from ..model_selection import SemiSupervisedSplit
from ..solvers.machines.kernel_stack import KernelStack
from ..solvers.machines.kernel_weights import WeightsResult, solve_kernel_weights
from ..solvers.machines.transduction import (
    TransductionResult,
    TransductiveMachine,
    TransductivePoint,
    solve_transduction,
)
from ..solvers.margin import DualProblem
from ..solvers.result import Status
from .base import Sample, class_shares, class_weights, is_nonnegative, is_positive, require
from .composite import CompositeModel, train_uniform
from .outputs import SemiSupervisedClasses, winners
from .shared.memory import require_stack_memory
from .shared.progress import announce
from .shared.stacks import StackedKernels

STAGES = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)  # of the cost of unlabelled rows, where it is annealed
DEFAULT_C, DEFAULT_S = 1.0, 0.4
GRID_C, GRID_S = (0.1, 1.0, 10.0), (0.2, 0.4)  # what cross-validation chooses from
N_FOLDS = 5
INNER = 0.5  # of the tolerance: the accuracy of the convex machines
SUSPICIOUS_LABELS = 20  # so many, equally many of each class, are hardly drawn at random ...
SUSPICIOUS_SHARE = 0.1  # ... if the share of a class among unlabelled rows seems to differ by more than this


@dataclass(frozen=True)
class Setting:
    """What errors cost, and where ramps end."""

    C: float
    C_unlabeled: float
    s: float


@dataclass(frozen=True)
class Labels:
    """Labelled rows of a machine: numbers of rows and of their classes; all other rows are unlabelled."""

    rows: np.ndarray
    codes: np.ndarray


class Transductive(SemiSupervisedClasses, CompositeModel):
    """What machines with one and with several kernels share."""

    _memory_advice = (
        "ManifoldKernel(kernel, ratio=0, n_landmarks=1000), or SSMKClassifier, which reads kernels by blocks"
    )

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from labelled and unlabelled rows.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels; NaN, None and NA mark unlabelled rows.
        sample_weight : array-like of shape (n_samples,), optional
            Rows of weight zero are ignored altogether; neighbour graphs do not know other weights.

        Returns
        -------
        self
        """
        self._check_params()
        sample = self._check_fit(X, y, sample_weight, self._library())
        shares = class_shares(type(self).__name__, self.class_prior, sample.partition)
        library = self._library_for(sample)
        rng = self._rng()
        bound = self._bind(library, sample, rng)
        n_rows, balanced = len(sample.kept), self.class_prior is not None
        require_stack_memory(type(self).__name__, bound, n_rows, self.dtype, self._memory_advice, by_features=balanced)
        work = Workbench(self, self._stacked(bound, sample), sample, shares)
        labels = Labels(sample.partition.labeled, sample.partition.codes)
        seed = int(rng.integers(2**31))
        setting = self._chosen(work, labels, seed)
        supervised = bool(self.safe) and self._hurts(work, labels, setting, seed)
        self._warn_of_equal_shares(work, labels, setting)
        starts = rng.exponential(size=(self.n_restarts, len(labels.rows)))
        results = work.train(labels, setting, supervised=supervised, starts=starts, callback=self._told)
        weights = np.array([result.x for result in results])
        self._require_definite(weights, work.stack, bound, work.stacked.rounding, proven=True)
        self._keep_labels(sample)
        self._keep_points([result.point for result in results], work, bound, sample)
        self._keep_weights(weights, bound)
        self._keep_course(results, sum(result.n_solves for result in results))
        if supervised and self.status_.converged:
            self._status_name = Status.SUPERVISED.name
        self.C_, self.C_unlabeled_, self.s_ = setting.C, setting.C_unlabeled, setting.s
        self.objective_path_ = [path for result in results for path in _paths(result)]
        self.library_ = library
        self._keep_transduction(X, sample)
        return self

    def _check_params(self) -> None:
        super()._check_params()
        owner = type(self).__name__
        for name, holds, expected in (
            ("C", _is_cv(self.C) or is_positive(self.C), 'a positive finite number or "cv"'),
            ("s", _is_cv(self.s) or (is_nonnegative(self.s) and float(self.s) < 1), '0 <= s < 1 or "cv"'),
            (
                "C_unlabeled",
                self.C_unlabeled is None or is_nonnegative(self.C_unlabeled),
                "None or a number, 0 or more",
            ),
            ("n_restarts", is_nonnegative(self.n_restarts, numbers.Integral), "a whole number, 0 or more"),
            ("annealing", isinstance(self.annealing, bool | np.bool_), "True or False"),
            ("safe", isinstance(self.safe, bool | np.bool_), "True or False"),
        ):
            require(owner, name, getattr(self, name), bool(holds), expected)

    def _chosen(self, work: Workbench, labels: Labels, seed: int) -> Setting:
        """Return the setting: as given, or by cross-validation of labelled rows."""
        cost = GRID_C if _is_cv(self.C) else (float(self.C),)
        ends = GRID_S if _is_cv(self.s) else (float(self.s),)

        def setting(C: float, s: float) -> Setting:
            return Setting(C, C if self.C_unlabeled is None else float(self.C_unlabeled), s)

        default = setting(DEFAULT_C if _is_cv(self.C) else cost[0], DEFAULT_S if _is_cv(self.s) else ends[0])
        candidates = [setting(C, s) for C in cost for s in ends]
        self.cv_results_: list[dict[str, Any]] = []
        folds = _folds(work, labels, seed)
        if len(candidates) == 1 or not folds:
            return default
        wrong = {candidate: work.errors(labels, candidate, folds) for candidate in candidates}
        self.cv_results_ = [{**vars(c), "error": float(wrong[c].mean())} for c in candidates]
        best = max(candidates, key=lambda c: (int(wrong[default].sum()) - int(wrong[c].sum()), c == default))
        return best if clearly_better(wrong[best], wrong[default]) else default

    def _hurts(self, work: Workbench, labels: Labels, setting: Setting, seed: int) -> bool:
        """Return whether the supervised model is clearly better on the labelled folds."""
        folds = _folds(work, labels, seed)
        if not folds:
            return False
        alone = work.errors(labels, setting, folds, supervised=True)
        return clearly_better(alone, work.errors(labels, setting, folds))

    def _warn_of_equal_shares(self, work: Workbench, labels: Labels, setting: Setting) -> None:
        """Warn if the labels look as if drawn by class, so that their shares are not those of all rows."""
        counts = np.bincount(labels.codes)
        trusted = isinstance(self.class_prior, str) and len(labels.rows) < len(work.sample.kept)
        if not trusted or len(labels.rows) < SUSPICIOUS_LABELS or counts.max() > counts.min():
            return
        points = [result.point for result in work.train(labels, setting, supervised=True)]
        unlabeled = np.setdiff1d(np.arange(len(work.sample.kept)), labels.rows)
        codes = winners(np.column_stack([point.values for point in points])[unlabeled])
        shares = np.bincount(codes, minlength=len(counts)) / len(codes)
        if np.abs(shares - 1.0 / len(counts)).max() > SUSPICIOUS_SHARE:
            classes = work.sample.partition.classes.tolist()
            shown = ", ".join(f"{label!r}: {share:.2f}" for label, share in zip(classes, shares, strict=True))
            warnings.warn(
                f"The labelled rows have equally many of each class, {counts[0]}, and {type(self).__name__} gives the "
                f'unlabelled rows the same shares (class_prior="labeled"). A model without them predicts {{{shown}}}. '
                "If labels were drawn class by class, pass the true shares as class_prior, or class_prior=None.",
                UserWarning,
                stacklevel=3,
            )

    def _keep_points(self, points: list[TransductivePoint], work: Workbench, bound: Any, sample: Sample) -> None:
        """Keep the model; where the origin of the kernels was moved, it is moved back."""
        x = np.column_stack([point.by_rows for point in points])
        used = np.array([point.weights for point in points]) / work.stacked.scales
        offsets = np.array([offset for point in points for offset in point.offsets], dtype=float)
        self._keep_duals(x, sample)
        share = work.center
        if share is None:
            self._keep_expansion(used, x, offsets, bound, sample)
            return
        coef = x - np.outer(share, x.sum(axis=0)) if work.balanced else x  # without balance the sums are zero
        self._keep_expansion(used, coef, np.zeros(len(offsets)), bound, sample)
        here = np.flatnonzero(share)
        self.intercept_ += offsets - share[here] @ self.expansion_(sample.X[here])

    def _told(self, record: dict[str, Any]) -> bool:
        """Tell about a step of the descents whose best is kept; those of folds are not heard of."""
        if self.verbose:
            announce(
                f"{type(self).__name__}: unlabelled rows cost {record['stage']:.3g} of theirs, step "
                f"{record['iteration']}, objective {record['objective']:.6g}, {record['n_changed']} slopes changed, "
                f"{record['seconds']:.1f} s"
            )
        return bool(self.callback(record)) if self.callback is not None else False


class Workbench:
    """Kernels, and machines trained on them with some rows labelled.

    Parameters
    ----------
    model : Transductive
        Whose parameters count.
    stacked : StackedKernels
    sample : Sample
    shares : ndarray of shape (n_classes,) or None
        Given shares of the classes.
    """

    def __init__(self, model: Any, stacked: StackedKernels, sample: Sample, shares: np.ndarray | None):
        self.model, self.stacked, self.sample, self.shares = model, stacked, sample, shares
        self.stack = KernelStack(stacked.members, stacked.scales)
        self.center: np.ndarray | None = None  # the mean of the rows where the origin of the kernels is now
        self.balanced = False  # whether the last machines were

    def unlabeled_share(self, labels: Labels) -> np.ndarray:
        """Return the weight of each row in the mean of the unlabelled rows."""
        share = self.sample.weight.copy()
        share[labels.rows] = 0.0
        return share / (share.sum() or 1.0)

    def means(self, labels: Labels) -> np.ndarray | None:
        """Return the mean output that each machine has on the unlabelled rows; None: whatever it may be."""
        if self.model.class_prior is None or len(labels.rows) == len(self.sample.kept):
            return None
        shares = self.shares
        if shares is None:
            n_classes = self.sample.partition.n_classes
            shares = np.bincount(labels.codes, weights=self.sample.weight[labels.rows], minlength=n_classes)
            shares = shares / shares.sum()
        return 2.0 * (shares[1:] if len(shares) == 2 else shares) - 1.0

    def train(
        self,
        labels: Labels,
        setting: Setting,
        *,
        supervised: bool = False,
        starts: np.ndarray | tuple[()] = (),
        callback: Callable[[dict[str, Any]], bool] | None = None,
    ) -> list[TransductionResult]:
        """Train the machines; without unlabelled rows and balance if supervised.

        Each of ``starts`` holds factors on the costs of labelled rows with which another descent begins.
        """
        found: Partition = self.sample.partition
        means = None if supervised else self.means(labels)
        self.balanced = means is not None
        if self.balanced:
            self.center = self.unlabeled_share(labels)
            self.stacked.center(self.center)
            self.stack = KernelStack(self.stacked.members, self.stacked.scales)
        weight = self.sample.weight[labels.rows]
        chosen = Partition(labels.rows, np.empty(0, dtype=np.intp), found.classes, labels.codes)
        cost = setting.C * weight * class_weights(self.model.class_weight, chosen, weight)
        unlabeled = np.setdiff1d(np.arange(len(self.sample.kept)), labels.rows)
        cost_unlabeled = (0.0 if supervised else setting.C_unlabeled) * self.sample.weight[unlabeled]
        outputs = [1] if found.n_classes == 2 else range(found.n_classes)
        machines = [
            TransductiveMachine(
                labels.rows,
                unlabeled,
                chosen.signs(k),
                cost,
                cost_unlabeled,
                None if means is None else float(means[c]),
                setting.s,
            )
            for c, k in enumerate(outputs)
        ]
        parts = [[machine] for machine in machines] if self.model.weights == "per_class" else [machines]
        return [self._best(part, starts, callback) for part in parts]

    def _best(
        self,
        machines: list[TransductiveMachine],
        starts: np.ndarray | tuple[()],
        callback: Callable[[dict[str, Any]], bool] | None,
    ) -> TransductionResult:
        """Return the best of several descents."""
        model = self.model
        solve = partial(
            solve_transduction,
            self.stack,
            machines,
            self._train,
            stages=STAGES if model.annealing else STAGES[-1:],
            tol=model.tol,
            max_iter=model.max_iter,
            callback=callback,
        )
        results = [solve()]
        for factors in starts:
            if results[-1].status is Status.CALLBACK:
                break
            results.append(solve(start=[machine.cost * factors for machine in machines]))
        best = min(results, key=lambda result: result.objective)
        return replace(best, n_solves=sum(result.n_solves for result in results))

    def _train(
        self, problems: Sequence[DualProblem], weights: np.ndarray | None, duals: list[np.ndarray] | None
    ) -> WeightsResult:
        """Solve convex machines: those of one descent step."""
        model = self.model
        if model.weights == "uniform" or len(self.stack) == 1:
            return train_uniform(self.stack, problems, 0.0, float(model.norm), INNER * model.tol, duals)
        return solve_kernel_weights(
            self.stack,
            problems,
            norm=float(model.norm),
            method=model.solver,
            start=weights,
            start_duals=duals,
            tol=INNER * model.tol,
        )

    def errors(
        self, labels: Labels, setting: Setting, folds: list[tuple[np.ndarray, np.ndarray]], supervised: bool = False
    ) -> np.ndarray:
        """Return which labelled rows are predicted wrongly by machines to which they are unlabelled."""
        wrong = np.zeros(len(labels.rows), dtype=bool)
        for kept, held in folds:
            results = self.train(Labels(labels.rows[kept], labels.codes[kept]), setting, supervised=supervised)
            values = np.column_stack([result.point.values for result in results])
            wrong[held] = winners(values[labels.rows[held]]) != labels.codes[held]
        return wrong


def clearly_better(wrong: np.ndarray, other: np.ndarray) -> bool:
    """Return whether the first makes fewer errors on the same rows, by more than a standard error of the difference."""
    fewer, more = int(np.sum(other & ~wrong)), int(np.sum(wrong & ~other))
    return fewer - more > np.sqrt(fewer + more)


def _folds(work: Workbench, labels: Labels, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return folds of the labelled rows in which no class is lost; none where a class has one row only."""
    n_folds = min(N_FOLDS, int(np.bincount(labels.codes).min()))
    if n_folds < 2:
        return []
    split = SemiSupervisedSplit(n_folds, unlabeled=None, random_state=seed)
    return list(split.split(labels.codes, labels.codes))


def _is_cv(value: Any) -> bool:
    return isinstance(value, str) and value == "cv"


def _paths(result: TransductionResult) -> list[np.ndarray]:
    """Return the objectives of each stage of a descent."""
    stages = dict.fromkeys(record["stage"] for record in result.history)
    return [np.array([r["objective"] for r in result.history if r["stage"] == stage]) for stage in stages]

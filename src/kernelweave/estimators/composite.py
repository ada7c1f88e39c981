"""Estimators whose kernel is a weighted sum of kernels: what multiple kernel learning for classes and numbers shares.

The walk of a fit: check, partition, bind, stack the kernels, state the duals, solve for the weights, keep.
"""

from __future__ import annotations

import numbers
import warnings
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..kernels.bound_library import BoundLibrary
from ..kernels.checks import is_semidefinite_about_its_center, remedy
from ..kernels.expansion import KernelExpansion
from ..solvers.machines.kernel_stack import KernelStack, Member
from ..solvers.machines.kernel_weights import METHODS, MKLState, WeightsResult, solve_kernel_weights
from ..solvers.machines.weighted_svm import WeightedSVM
from ..solvers.margin import DualProblem
from ..solvers.result import Certificate, SolverResult, Status
from .base import KernelEstimator, Sample, is_count, is_positive, require
from .shared.memory import require_stack_memory
from .shared.progress import announce
from .shared.stacks import StackedKernels, stack_kernels

REMEDIES = {
    Status.MAX_ITER: "Raise max_iter or tol, or accept the certified gap.",
    Status.PRECISION: "Lower C or raise tol, or accept the certified gap.",
}


@dataclass(frozen=True)
class Duals:
    """The machines of a fit: one for each output, with what they share."""

    problems: list[DualProblem]
    ridge: np.ndarray
    members: list[Member]  # beside the kernels: the identity where C is learned


class CompositeModel(KernelEstimator):
    """What is checked before, and kept after, any fit of a weighted sum of kernels."""

    _remedies = REMEDIES
    _weightings: tuple[str, ...] = ("shared", "per_class", "uniform")
    solver: Any = "newton"  # where a subclass leaves no choice

    def _check_params(self) -> None:
        super()._check_params()
        owner = type(self).__name__
        require(owner, "tol", self.tol, is_positive(self.tol), "a positive number")
        norm = isinstance(self.norm, numbers.Real) and float(self.norm) >= 1
        require(owner, "norm", self.norm, norm, "a number, 1 or more")
        for name, known in (
            ("scale", ("trace", "variance", None)),
            ("solver", METHODS),
            ("weights", self._weightings),
            ("dtype", ("float64", "float32")),
        ):
            value = getattr(self, name)
            holds = any(value is option or (isinstance(value, str) and value == option) for option in known)
            require(owner, name, value, holds, "one of " + ", ".join(map(repr, known)))
        require(owner, "max_iter", self.max_iter, is_count(self.max_iter), "a whole number >= 1")
        require(owner, "verbose", self.verbose, isinstance(self.verbose, numbers.Integral), "0 or 1")
        callable_ = self.callback is None or callable(self.callback)
        require(owner, "callback", self.callback, callable_, "None or a function of the step's state")
        if self.solver == "reduced_gradient" and float(self.norm) != 1:
            raise ValueError(f'{owner} got solver="reduced_gradient" with norm={self.norm!r}; it is for norm=1 only.')

    def _precisions(self) -> list[Any]:
        return [np.float64]  # kernels are computed in double precision; dtype says how they are kept

    def _stacked(self, bound: BoundLibrary, sample: Sample, rows: np.ndarray | None = None) -> StackedKernels:
        """Return the kernels at some rows of the sample, all by default, and their scales."""
        share = sample.weight / sample.weight.sum()
        owner = type(self).__name__
        return stack_kernels(bound, share, owner=owner, scale=self.scale, dtype=self.dtype, rows=rows)

    def _require_definite(
        self, weights: np.ndarray, stack: KernelStack, bound: BoundLibrary, rounding: float, proven: bool
    ) -> None:
        """Refuse what is not positive semi-definite: the machines need not have met it."""
        doubtful = [p for p, entry in enumerate(bound.entries) if not entry.kernel.is_psd]
        if not (
            proven
            and all(
                not w[doubtful].any() or is_semidefinite_about_its_center(stack.combine(w), rounding) for w in weights
            )
        ):
            owner = type(self).__name__
            raise ValueError(
                f"The combined kernel is not positive semi-definite, as {owner} requires. "
                f"KernelLibrary(...).diagnose(X) shows which kernel is not. {remedy(owner)}"
            )

    def _keep_expansion(
        self, used: np.ndarray, coef: np.ndarray, intercept: np.ndarray, bound: BoundLibrary, sample: Sample
    ) -> None:
        """Keep the model that predicts.

        Parameters
        ----------
        used : ndarray of shape (1 or n_outputs, n_kernels)
            What multiplies each kernel.
        coef : ndarray of shape (n_rows, n_outputs)
            What multiplies its columns.
        intercept : ndarray of shape (n_outputs,)
        """
        n_rows, n_outputs = coef.shape
        by_output = np.broadcast_to(used, (n_outputs, used.shape[1]))
        support = np.flatnonzero(coef.any(axis=1))
        active = np.flatnonzero(used.any(axis=0))
        columns = np.concatenate([np.empty(0, dtype=np.intp), *(p * n_rows + support for p in active)])
        values = np.concatenate([np.zeros((0, n_outputs)), *(coef[support] * by_output[:, p] for p in active)])
        self.intercept_ = intercept
        self.expansion_ = KernelExpansion.from_columns(bound, columns, values, intercept, sample.kept)
        self.n_evaluations_ = self.expansion_.n_evaluations

    def _keep_duals(self, x: np.ndarray, sample: Sample) -> None:
        """Keep the signed duals of each row."""
        self.support_ = sample.kept[np.flatnonzero(x.any(axis=1))]
        self.dual_ = np.zeros((sample.n_given, x.shape[1]))
        self.dual_[sample.kept] = x

    def _keep_weights(self, weights: np.ndarray, bound: BoundLibrary) -> None:
        """Keep the weights, of shape (n_sets, n_kernels), by kernel and by source."""
        self.weights_ = weights[0] if len(weights) == 1 else weights
        self.kernel_weights_ = [
            {"name": entry.name, "source": entry.source, "weight": float(weight)}
            for entry, weight in zip(bound.entries, weights.mean(axis=0), strict=True)
        ]
        self.source_weights_: dict[str, float] = {}
        for record in self.kernel_weights_:
            source = str(record["source"])
            self.source_weights_[source] = self.source_weights_.get(source, 0.0) + float(record["weight"])

    def _keep_course(self, results: Sequence[SolverResult], n_solves: int) -> None:
        """Keep objective, certificate and history; warn once."""
        objectives = np.array([result.objective for result in results])
        self.objective_ = float(objectives[0]) if len(results) == 1 else objectives
        gap, kind = sum(result.certificate.gap for result in results), results[0].certificate.kind
        self.certificate_ = Certificate(gap, float(objectives.sum()), kind)
        self.n_iter_ = max(1, max(result.n_iter for result in results))
        self.n_solves_ = n_solves
        self.history_ = [dict(record) for result in results for record in result.history]
        worst = max(results, key=lambda result: (not result.status.converged, result.certificate.relative))
        self._status_name = worst.status.name
        if worst.status in self._remedies:
            other = 'Use solver="newton", raise tol, or accept the certified gap.'
            measure = "Certified relative gap" if kind == "duality gap" else "Relative distance from stationarity"
            warnings.warn(
                f"{worst.status.value} {measure}: {worst.certificate.relative:.2e}, asked for: {self.tol:.2e}. "
                f"{self._remedies[worst.status] if self.solver == 'newton' else other}",
                ConvergenceWarning,
                stacklevel=3,
            )


class CompositeEstimator(CompositeModel):
    """What classifiers and regressors with a convex problem share; subclasses state the duals."""

    _can_learn_cost = False
    _memory_advice = "CGBoostClassifier and CGBoostRegressor, which read kernels by blocks"

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the weights of the kernels and the machine.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            Rows of weight zero are ignored altogether.

        Returns
        -------
        self
        """
        self._check_params()
        sample = self._check_fit(X, y, sample_weight, self._library())
        library = self._library_for(sample)
        rows = self._rows(sample)
        bound = self._bind(library, sample, self._rng())
        require_stack_memory(type(self).__name__, bound, len(rows), self.dtype, self._memory_advice)
        stacked = self._stacked(bound, sample, None if len(rows) == len(sample.kept) else rows)
        duals = self._duals(sample)
        stack = KernelStack([*stacked.members, *duals.members], [*stacked.scales, *np.ones(len(duals.members))])
        shared = self.weights != "per_class"
        parts = [duals.problems] if shared else [[problem] for problem in duals.problems]
        results = [self._solve(stack, problems, duals.ridge) for problems in parts]
        proven = all(result.certificate.kind == "duality gap" for result in results)
        self._require_definite(np.array([result.x for result in results]), stack, bound, stacked.rounding, proven)
        self._keep_labels(sample)
        self._keep_model(results, bound, stacked.scales, duals, sample)
        self._keep_course(results, sum(result.n_solves for result in results))
        self.library_ = library
        self._finish(X, sample)
        return self

    @abstractmethod
    def _duals(self, sample: Sample) -> Duals:
        """State the dual of each output."""

    @abstractmethod
    def _keep_labels(self, sample: Sample) -> None:
        """Keep what the labels are."""

    def _rows(self, sample: Sample) -> np.ndarray:
        """Return the rows that have duals."""
        return np.arange(len(sample.kept))

    def _finish(self, X: Any, sample: Sample) -> None:
        """Do what a fitted model can do best itself."""

    def _check_params(self) -> None:
        super()._check_params()
        cost = self._learns_cost or is_positive(self.C)
        expected = "a positive finite number" + ' or "learn"' * self._can_learn_cost
        require(type(self).__name__, "C", self.C, cost, expected)

    @property
    def _learns_cost(self) -> bool:
        return self._can_learn_cost and isinstance(self.C, str) and self.C == "learn"

    def _solve(self, stack: KernelStack, problems: Sequence[DualProblem], ridge: np.ndarray) -> WeightsResult:
        if self.weights == "uniform":
            return train_uniform(stack, problems, ridge, float(self.norm), self.tol)

        def hook(state: MKLState) -> bool:
            if self.verbose:
                announce(
                    f"{type(self).__name__}: step {state.iteration}, {np.count_nonzero(state.weights)} kernels, "
                    f"objective {state.objective:.6g}, relative gap {state.relative_gap:.2e}, {state.seconds:.1f} s"
                )
            return bool(self.callback(state)) if self.callback is not None else False

        return solve_kernel_weights(
            stack,
            problems,
            ridge=ridge,
            norm=float(self.norm),
            method=self.solver,
            tol=self.tol,
            max_iter=self.max_iter,
            callback=hook,
        )

    def _keep_model(
        self, results: list[WeightsResult], bound: BoundLibrary, scales: np.ndarray, duals: Duals, sample: Sample
    ) -> None:
        """Keep weights, duals and the expansion that they make together."""
        n_kernels, rows = len(bound.kernels), self._rows(sample)
        found = [x for result in results for x in result.duals]
        x = np.zeros((len(sample.kept), len(found)))
        for c, problem in enumerate(duals.problems):
            x[rows, c] = np.bincount(problem.rows, weights=found[c], minlength=len(rows))
        weights = np.array([result.x[:n_kernels] for result in results])
        intercept = -np.array([b for result in results for b in result.multipliers], dtype=float)
        self._keep_expansion(weights / scales, x, intercept, bound, sample)
        self._keep_duals(x, sample)
        self.C_ = self.C
        if self._learns_cost:
            identity = np.array([result.x[-1] for result in results])
            self.C_ = (1.0 - identity) / np.maximum(identity, np.finfo(float).tiny)
            self.C_ = float(self.C_[0]) if len(results) == 1 else self.C_
            weights = weights / np.maximum(1.0 - identity, np.finfo(float).tiny)[:, None]
        self._keep_weights(weights, bound)


def regression_dual(y: np.ndarray, box: np.ndarray, epsilon: float) -> DualProblem:
    """Return the dual of support vector regression: two variables a row, for errors upwards and downwards."""
    zero = np.zeros(len(y))
    return DualProblem(
        linear=np.concatenate([epsilon - y, -epsilon - y]),
        lower=np.concatenate([zero, -box]),
        upper=np.concatenate([box, zero]),
        index=np.tile(np.arange(len(y)), 2),
    )


def train_uniform(
    stack: KernelStack,
    problems: Sequence[DualProblem],
    ridge: float | np.ndarray,
    norm: float,
    tol: float,
    start: Sequence[np.ndarray] | None = None,
) -> WeightsResult:
    """Solve the machines with equal weights."""
    weights = np.full(len(stack), len(stack) ** (-1.0 / norm))
    value = WeightedSVM(stack, problems, ridge, norm).solve(weights, 0.5 * tol, start)
    objective = value.dual + value.inner_gap
    kind = "duality gap" if value.proven else "stationarity"
    certificate = Certificate(value.inner_gap, objective, kind)
    status = Status.CONVERGED if certificate.relative <= tol else Status.PRECISION
    return WeightsResult(
        weights, objective, certificate, status, 1, duals=value.duals, multipliers=value.multipliers, n_solves=1
    )

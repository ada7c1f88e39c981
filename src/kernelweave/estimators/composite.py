"""What discriminants and machines on learned kernels still share with models of a weighted sum of kernels."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..kernels.bound_library import BoundLibrary
from ..kernels.checks import is_semidefinite_about_its_center, remedy
from ..kernels.expansion import KernelExpansion
from ..solvers.machines.kernel_stack import KernelStack
from ..solvers.machines.weighted_svm import DualProblem
from ..solvers.margin import regression_rows
from ..solvers.result import Certificate, SolverResult
from .base import KernelEstimator, Sample, is_count, is_positive, require
from .shared.machine import REMEDIES, SOLVERS, margin_dual
from .shared.machine import train_with_equal_weights as train_uniform
from .shared.stacks import StackedKernels, stack_kernels

__all__ = ["CompositeModel", "regression_dual", "train_uniform"]


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
            ("solver", SOLVERS),
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


def regression_dual(y: np.ndarray, box: np.ndarray, epsilon: float) -> DualProblem:
    """Return the dual of support vector regression: two variables a row, for errors upwards and downwards."""
    margins = regression_rows(y, epsilon, box)
    return margin_dual(margins, margins.cost)

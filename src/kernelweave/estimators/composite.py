"""Estimators whose kernel is a weighted sum of kernels: what multiple kernel learning for classes and numbers shares.

The walk of a fit: check, partition, bind, stack the kernels, state the duals, solve for the weights, keep.
"""

from __future__ import annotations

import numbers
import os
import warnings
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.linalg.lapack import dpotrf
from sklearn.exceptions import ConvergenceWarning

from ..kernels.bound_library import BoundLibrary
from ..kernels.learned import KernelExpansion
from ..solvers import mkl
from ..solvers.kernel_stack import Factor, KernelStack, Member
from ..solvers.result import Certificate, SolverResult, Status
from ..solvers.weighted_svm import DualProblem, WeightedSVM
from .base import KernelEstimator, Sample, is_count, is_positive, require
from .progress import announce

SOLVERS = ("newton", "projected_gradient", "reduced_gradient", "group_lasso")
CONSTANT = 1e-12  # of the mean diagonal: a kernel that varies by less says nothing
ASYMMETRY = 1e-8  # of the largest entry
NEGATIVE = 1e-9  # of the trace: eigenvalues above minus this may be rounding
MEMORY_SHARE = 0.8  # of the machine's memory that a stack may take
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


class CompositeEstimator(KernelEstimator):
    """What classifiers and regressors share; subclasses state the duals."""

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
        library = self._library()
        sample = self._check_fit(X, y, sample_weight, library)
        self._require_memory(len(sample.kept), len(library))
        bound = self._bind(library, sample, self._rng())
        members, scales = self._stacked(bound, sample)
        duals = self._duals(sample)
        stack = KernelStack([*members, *duals.members], [*scales, *np.ones(len(duals.members))])
        shared = self.weights != "per_class"
        parts = [duals.problems] if shared else [[problem] for problem in duals.problems]
        results = [self._solve(stack, problems, duals.ridge) for problems in parts]
        self._require_definite(results, stack, bound)
        self._keep_labels(sample)
        self._keep_model(results, bound, scales, duals, sample)
        self._keep_course(results)
        self.library_ = library
        return self

    @abstractmethod
    def _duals(self, sample: Sample) -> Duals:
        """State the dual of each output."""

    @abstractmethod
    def _keep_labels(self, sample: Sample) -> None:
        """Keep what the labels are."""

    def _check_params(self) -> None:
        super()._check_params()
        owner = type(self).__name__
        cost = self._learns_cost or is_positive(self.C)
        require(owner, "C", self.C, cost, "a positive finite number" + ' or "learn"' * hasattr(self, "class_weight"))
        require(owner, "tol", self.tol, is_positive(self.tol), "a positive number")
        norm = isinstance(self.norm, numbers.Real) and float(self.norm) >= 1
        require(owner, "norm", self.norm, norm, "a number, 1 or more")
        for name, known in (
            ("scale", ("trace", "variance", None)),
            ("solver", SOLVERS),
            ("weights", ("shared", "per_class", "uniform")),
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

    @property
    def _learns_cost(self) -> bool:
        return isinstance(self.C, str) and self.C == "learn" and hasattr(self, "class_weight")

    def _precisions(self) -> list[Any]:
        return [np.float64]  # kernels are computed in double precision; dtype says how they are kept

    def _require_memory(self, n_rows: int, n_kernels: int) -> None:
        """Refuse a fit whose kernels would not fit into the machine's memory."""
        n_bytes = n_rows**2 * (n_kernels * np.dtype(self.dtype).itemsize + 24)
        try:
            memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        except (AttributeError, ValueError, OSError):  # not known on this system
            return
        if n_bytes > MEMORY_SHARE * memory:
            raise MemoryError(
                f"{type(self).__name__} keeps {n_kernels} kernels of {n_rows:,} rows in memory, about "
                f"{n_bytes / 2**30:.1f} GB of the {memory / 2**30:.1f} GB here. Use fewer kernels or rows, "
                'dtype="float32", or CGBoostClassifier and CGBoostRegressor, which read kernels by blocks.'
            )

    def _stacked(self, bound: BoundLibrary, sample: Sample) -> tuple[list[Member], np.ndarray]:
        """Return the kernels at the sample's rows, and their scales."""
        share = sample.weight / sample.weight.sum()
        members: list[Member] = []
        scales = np.ones(len(bound.kernels))
        everything = slice(None)
        for p, kernel in enumerate(bound.kernels):
            Z = kernel.factor()
            if Z is not None:
                members.append(Factor(np.ascontiguousarray(Z, dtype=self.dtype)))
                diagonal = np.einsum("ij,ij->i", Z, Z)
                self._check_finite(diagonal, bound.entries[p].name)
                means = Z @ (share @ Z)
            else:
                K = kernel.block(everything, everything)
                self._check_kernel(K, bound.entries[p].name)
                diagonal, means = K.diagonal(), K @ share
                members.append(np.ascontiguousarray(K, dtype=self.dtype))
            spread = float(share @ diagonal - share @ means)
            if self.scale == "variance":
                block = kernel.block(everything, everything) - means - means[:, None] + share @ means
                scales[p] = np.sqrt(share @ np.square(block) @ share)
            elif self.scale == "trace":
                scales[p] = spread
            if spread <= CONSTANT * abs(float(share @ diagonal)):
                scales[p] = 1.0  # the offset absorbs a constant kernel, whatever its scale
        return members, scales

    def _check_finite(self, values: np.ndarray, name: str) -> None:
        if not np.isfinite(values).all():
            raise ValueError(
                f"The kernel {name} gave values that are not finite (NaN or inf). Check the function or matrix it is "
                "made from, or scale the features: large values overflow in polynomials."
            )

    def _check_kernel(self, K: np.ndarray, name: str) -> None:
        self._check_finite(K, name)
        if np.abs(K - K.T).max() > ASYMMETRY * np.abs(K).max():
            raise ValueError(
                f"The kernel {name} is not symmetric, and {type(self).__name__} needs symmetric, positive semi-"
                "definite kernels. Use CGBoostClassifier or SSMKClassifier, which take any kernel, or leave it out."
            )

    def _solve(self, stack: KernelStack, problems: Sequence[DualProblem], ridge: np.ndarray) -> SolverResult:
        if self.weights == "uniform":
            return _uniform(stack, problems, ridge, float(self.norm), self.tol)

        def hook(state: mkl.MKLState) -> bool:
            if self.verbose:
                announce(
                    f"{type(self).__name__}: step {state.iteration}, {np.count_nonzero(state.weights)} kernels, "
                    f"objective {state.objective:.6g}, relative gap {state.relative_gap:.2e}, {state.seconds:.1f} s"
                )
            return bool(self.callback(state)) if self.callback is not None else False

        return mkl.solve(
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
        self, results: list[SolverResult], bound: BoundLibrary, scales: np.ndarray, duals: Duals, sample: Sample
    ) -> None:
        """Keep weights, duals and the expansion that they make together."""
        n_rows, n_kernels = len(sample.kept), len(bound.kernels)
        found = np.array([result.x[:n_kernels] for result in results])
        signed = [
            np.bincount(problem.rows, weights=x, minlength=n_rows)
            for problem, x in zip(duals.problems, (x for r in results for x in r.extra["duals"]), strict=True)
        ]
        x = np.column_stack(signed)
        used = found / scales  # what multiplies each kernel, for each set of weights
        by_output = np.repeat(used, x.shape[1], axis=0) if len(results) == 1 else used
        support = np.flatnonzero(x.any(axis=1))
        active = np.flatnonzero(used.any(axis=0))
        columns = np.concatenate([p * n_rows + support for p in active]) if len(active) else np.empty(0, dtype=np.intp)
        coef = (
            np.concatenate([x[support] * by_output[:, p] for p in active]) if len(active) else np.zeros((0, x.shape[1]))
        )
        self.intercept_ = -np.array([b for result in results for b in result.extra["multipliers"]], dtype=float)
        self.expansion_ = KernelExpansion.from_columns(bound, columns, coef, self.intercept_, sample.kept)
        self.support_ = sample.kept[support]
        self.dual_ = np.zeros((sample.n_given, x.shape[1]))
        self.dual_[sample.kept] = x
        self.n_evaluations_ = self.expansion_.n_evaluations
        if self._learns_cost:
            identity = np.array([result.x[-1] for result in results])
            self.C_ = (1.0 - identity) / np.maximum(identity, np.finfo(float).tiny)
            self.C_ = float(self.C_[0]) if len(results) == 1 else self.C_
            found = found / np.maximum(1.0 - identity, np.finfo(float).tiny)[:, None]
        else:
            self.C_ = self.C
        self.weights_ = found[0] if len(results) == 1 else found
        mean = found.mean(axis=0)
        self.kernel_weights_ = [
            {"name": entry.name, "source": entry.source, "weight": float(weight)}
            for entry, weight in zip(bound.entries, mean, strict=True)
        ]
        self.source_weights_: dict[str, float] = {}
        for record in self.kernel_weights_:
            source = str(record["source"])
            self.source_weights_[source] = self.source_weights_.get(source, 0.0) + float(record["weight"])

    def _require_definite(self, results: list[SolverResult], stack: KernelStack, bound: BoundLibrary) -> None:
        """Refuse what is not positive semi-definite: the machines need not have met it."""
        doubtful = [p for p, entry in enumerate(bound.entries) if not entry.kernel.is_psd]
        definite = all(
            result.certificate.kind == "duality gap"
            and (not result.x[doubtful].any() or is_definite(stack.combine(result.x)))
            for result in results
        )
        if not definite:
            raise ValueError(
                f"The combined kernel is not positive semi-definite, as {type(self).__name__} requires. "
                "KernelLibrary(...).diagnose(X) shows which kernel is not; leave it out, or use CGBoostClassifier or "
                "SSMKClassifier, which take any kernel."
            )

    def _keep_course(self, results: list[SolverResult]) -> None:
        """Keep objective, certificate and history; warn once."""
        objectives = np.array([result.objective for result in results])
        self.objective_ = float(objectives[0]) if len(results) == 1 else objectives
        self.certificate_ = Certificate(sum(result.certificate.gap for result in results), float(objectives.sum()))
        self.n_iter_ = max(1, max(result.n_iter for result in results))
        self.n_solves_ = sum(int(result.extra["n_solves"]) for result in results)
        self.history_ = [dict(record) for result in results for record in result.history]
        worst = max(results, key=lambda result: (not result.status.converged, result.certificate.relative))
        self._status_name = worst.status.name
        if worst.status in REMEDIES:
            warnings.warn(
                f"{worst.status.value} Certified relative gap: {worst.certificate.relative:.2e}, asked for: "
                f"{self.tol:.2e}. {REMEDIES[worst.status]}",
                ConvergenceWarning,
                stacklevel=3,
            )


def is_definite(K: np.ndarray) -> bool:
    """Return whether a kernel is positive semi-definite about its centre, up to rounding."""
    means = K.mean(axis=0)
    centered = K - means - means[:, None] + means.mean()
    centered.flat[:: len(K) + 1] += NEGATIVE * max(float(np.trace(centered)), np.finfo(float).tiny)
    return int(dpotrf(centered, lower=1, overwrite_a=1)[1]) == 0


def _uniform(
    stack: KernelStack, problems: Sequence[DualProblem], ridge: np.ndarray, norm: float, tol: float
) -> SolverResult:
    """Solve the machines with equal weights."""
    weights = np.full(len(stack), len(stack) ** (-1.0 / norm))
    value = WeightedSVM(stack, problems, ridge, norm).solve(weights, 0.5 * tol)
    objective = value.dual + value.inner_gap
    kind = "duality gap" if value.proven else "stationarity"
    certificate = Certificate(value.inner_gap, objective, kind)
    status = Status.CONVERGED if certificate.relative <= tol else Status.PRECISION
    extra = {"duals": value.duals, "multipliers": value.multipliers, "n_solves": 1}
    return SolverResult(weights, objective, certificate, status, n_iter=1, extra=extra)

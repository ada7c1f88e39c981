r"""The problems a mixture may solve: which norm, which signs, which offset, a fixed margin or a chosen one.

A :class:`Formulation` turns margin rows into the master of :func:`.generate_columns`, says how columns are scaled for
it, and recomputes the value of the problem from a model's coefficients and predictions alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ...kernels.bound_library import BoundLibrary
from ...solvers.columns.lp_masters import LPMaster, NuLPMaster
from ...solvers.columns.masters import Intercept, Master
from ...solvers.columns.qp_masters import NuQPMaster, QPMaster
from ...solvers.columns.rkhs_master import RKHSMaster
from ...solvers.margin import MarginRows, margin_loss

Penalty = Literal["l1", "l2", "rkhs"]

MIN_DEVIATION = 0.1  # of the kernel's rms deviation; measured: no loss on 14 data sets
TOLERANCES: dict[Penalty, float] = {"l1": 1e-6, "l2": 0.1, "rkhs": 0.01}  # relative gaps; the 2-norm optimum is dense
INNER_TOL_SHARE = 0.1  # share of the tolerance to which restricted quadratic programs are solved
MAX_INNER_TOL = 1e-3  # and at most this


@dataclass(frozen=True)
class Formulation:
    """One problem of the family.

    Attributes
    ----------
    penalty : {"l1", "l2", "rkhs"}
    positive : bool
        Whether the coefficients of the kernels must not be negative.
    intercept : {"free", "penalized"} or None
    chooses_margin : bool
        Whether the margin is a variable (the nu-forms) rather than one.
    """

    penalty: Penalty = "l1"
    positive: bool = False
    intercept: Intercept = "free"
    chooses_margin: bool = False

    @property
    def centered(self) -> bool:
        """Whether columns are centred: a free offset makes that a matter of rounding only."""
        return self.intercept == "free" and self.penalty != "rkhs"

    def master(self, rows: MarginRows, tol: float, diagonals: np.ndarray, *, scans_are_cheap: bool = False) -> Master:
        """Return the restricted problem of one output, without columns.

        Parameters
        ----------
        rows : MarginRows
        tol : float
            Relative gap asked for over all columns.
        diagonals : ndarray of shape (n_kernels, n_points)
            Of the scaled kernels; what the RKHS norm needs to know.
        scans_are_cheap : bool
            Whether a scan of all columns takes no longer than a step of a solver.
        """
        if self.penalty == "l1":
            if self.chooses_margin:
                return NuLPMaster(rows, positive=self.positive, intercept=self.intercept)
            return LPMaster(rows, positive=self.positive, intercept=self.intercept, scans_are_cheap=scans_are_cheap)
        qp = NuQPMaster if self.chooses_margin else QPMaster
        master = qp(
            rows, positive=self.positive, intercept=self.intercept, tol=min(MAX_INNER_TOL, INNER_TOL_SHARE * tol)
        )
        return master if self.penalty == "l2" else RKHSMaster(master, diagonals)

    def scales(self, bound: BoundLibrary, rows: np.ndarray, weight: np.ndarray, column_scale: str | None) -> np.ndarray:
        """Return the scale of every column; infinite for one that says nothing about ``rows``.

        Parameters
        ----------
        bound : BoundLibrary
        rows : ndarray of shape (n_labeled,)
        weight : ndarray of shape (n_rows,)
            Of all rows.
        column_scale : {"std", "norm"} or None
        """
        if column_scale is None:
            return np.ones(bound.n_columns)
        if self.penalty == "rkhs":
            scale = np.repeat(self._kernel_scales(bound, rows, weight[rows], column_scale), bound.n_rows)
        elif column_scale == "norm":
            scale = bound.column_norms(weight[rows], rows)
        else:
            size = bound.column_deviations if self.centered else bound.column_norms
            sizes = size(weight[rows], rows).reshape(len(bound.kernels), bound.n_rows)
            unit = np.ldexp(1.0, np.frexp(sizes.max(axis=1, keepdims=True))[1])  # squares up to 1 do not overflow
            usual = unit[:, 0] * np.sqrt(np.average((sizes / unit) ** 2, axis=1, weights=weight))
            scale = np.where(sizes > 0, np.maximum(sizes, MIN_DEVIATION * usual[:, None]), 0.0).ravel()
            if self.penalty == "l2":
                # All columns together have about unit size at a row, as an SVM's kernel has; a row of weight two counts
                # as two columns.
                share = np.tile(weight, len(bound.kernels))
                scale *= np.sqrt(share[scale > 0].sum() / share)
        return np.where(scale > 0, scale, np.inf)

    def penalties(self, bound: BoundLibrary, columns: np.ndarray, coef: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """Return what each kernel's coefficients add to the norm, shape (n_kernels, n_outputs).

        Parameters
        ----------
        bound : BoundLibrary
        columns : ndarray of shape (n_active,)
        coef : ndarray of shape (n_active, n_outputs)
            Coefficients of the scaled columns.
        scale : ndarray of shape (n_active,)
        """
        kernel, center = bound.split(columns)
        out = np.zeros((len(bound.kernels), coef.shape[1]))
        for p in np.unique(kernel):
            here = kernel == p
            if self.penalty == "l1":
                out[p] = np.abs(coef[here]).sum(axis=0)
            elif self.penalty == "l2":
                out[p] = 0.5 * np.square(coef[here]).sum(axis=0)
            else:
                gram = bound.kernels[p].block(center[here], center[here]) / scale[here]
                out[p] = 0.5 * np.einsum("ik,ij,jk->k", coef[here], gram, coef[here], optimize=True)
        return out

    def objective(self, penalty: float, intercept: float, rows: MarginRows, f: np.ndarray) -> tuple[float, float]:
        """Return the value of the problem for function values ``f``, and the margin it chooses (0 if it does not)."""
        if self.intercept == "penalized":
            penalty += abs(intercept) if self.penalty == "l1" else 0.5 * intercept**2
        if not self.chooses_margin:
            return penalty + rows.loss(f), 0.0
        loss, rho = margin_loss(rows, f)
        return loss + (0.0 if self.penalty == "l1" else penalty), rho  # the 1-norm is a constraint there

    def _kernel_scales(
        self, bound: BoundLibrary, rows: np.ndarray, weight: np.ndarray, column_scale: str
    ) -> np.ndarray:
        """Return the mean square of each kernel's features, about their mean if the offset absorbs that."""
        share = weight / weight.sum()
        squares = diagonals(bound, rows) @ share
        if column_scale == "std" and self.intercept == "free":
            squares = squares - bound.quadratic_forms(share[:, None], rows)
        return squares


def diagonals(bound: BoundLibrary, rows: np.ndarray) -> np.ndarray:
    """Return the diagonals of the kernels at ``rows``, shape (n_kernels, n_selected)."""
    return np.array([np.asarray(kernel.diag(), dtype=float)[rows] for kernel in bound.kernels])

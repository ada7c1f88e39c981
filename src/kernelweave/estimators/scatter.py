r"""The scatter of weighted rows in the feature spaces of kernels, as solvers of discriminant analysis want it."""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri

from ..labels import Partition
from ..solvers.kernel_stack import Factor, KernelStack, Member
from .base import Sample
from .stacking import StackedKernels

ALMOST = 1e-12  # added to the diagonal of what should not be singular


class Scatter:
    r"""The kernels and class indicators of a fit: centred, weighted, of unit trace.

    Rows count by their weights :math:`\omega_i`: features are :math:`\sqrt{\omega_i}(\phi(x_i) - \mu)`, and
    the indicators :math:`\sqrt{\omega_i\, W / W_j}\, (1_{y_i = j} - W_j / W)` on labelled rows, else zero. Both are
    orthogonal to :math:`\sqrt\omega`; a reflection turns that into the constant vector, as solvers want it.
    """

    def __init__(self, stacked: StackedKernels, sample: Sample):
        found: Partition = sample.partition
        n_rows = len(sample.kept)
        self.sample = sample
        self.total = float(sample.weight.sum())
        self.root = np.sqrt(sample.weight)
        direction = self.root / np.sqrt(self.total) - 1.0 / np.sqrt(n_rows)
        size = float(direction @ direction)
        self.mirror = direction * np.sqrt(2.0 / size) if size > np.finfo(float).eps else None
        stacked.center(sample.weight / sample.weight.sum())
        members = [self._turned(member) for member in stacked.members]
        # Solvers think of n rows and divide the identity by n; a row of weight 2 is two. With kernels times total/n,
        # and indicators times its root, weights, ridge and objective are those of repeated rows.
        self.stretch = self.total / n_rows
        self.scales = stacked.scales * self.total
        self.stack = KernelStack(members, self.scales / self.stretch)
        weight = np.square(self.root[found.labeled])
        shares = np.bincount(found.codes, weights=weight, minlength=found.n_classes) / weight.sum()
        H = np.zeros((n_rows, found.n_classes))
        H[found.labeled] = (found.indicator() - shares) / np.sqrt(shares) * self.root[found.labeled][:, None]
        self.H = np.sqrt(self.stretch) * self._reflected(H)

    @property
    def plain_stack(self) -> KernelStack:
        """The kernels of unit trace as they are, for rows of equal weight."""
        return KernelStack(self.stack.members, self.scales * self.root[0] ** 2)

    def signs(self) -> np.ndarray:
        """Return the class of each row as 1, -1, and 0 where there is none."""
        found: Partition = self.sample.partition
        if found.n_classes != 2 or self.mirror is not None:
            raise ValueError(
                f'scatter="within" is for two classes and rows of equal weight; got {found.n_classes} classes'
                + (" and different sample weights." if self.mirror is not None else ".")
            )
        signs = np.zeros(len(self.sample.kept))
        signs[found.labeled] = found.signs(1)
        return signs

    def rows_of(self, Z: np.ndarray) -> np.ndarray:
        """Return coefficients of the raw kernel at each row from the duals of weighted, reflected rows."""
        return np.sqrt(self.stretch) * self._reflected(Z) * self.root[:, None]

    def regression(self, weights: np.ndarray, ridge: float) -> tuple[np.ndarray, np.ndarray]:
        r"""Return the values of regressing the second class on the kernels, at each row and at each by the others.

        With an offset the fit is :math:`S y`, where :math:`S = I - \lambda M_c^{-1}` and :math:`M_c` is :math:`M` off
        the constant direction :math:`u`; a row left out is at :math:`y_i - (y_i - (S y)_i) / (1 - S_{ii})`.
        """
        found: Partition = self.sample.partition
        n_rows, ridge = len(self.root), self.stretch * ridge
        M = self.stack.combine(weights) + 1.0 / n_rows**2
        M.flat[:: n_rows + 1] += ridge
        factor, failed = dpotrf(M, lower=1)
        if failed:  # rows repeat, and there is next to no ridge
            factor = dpotrf(M + ALMOST * np.eye(n_rows), lower=1)[0]
        inverse = dpotri(factor, lower=1)[0]
        inverse = np.tril(inverse) + np.tril(inverse, -1).T
        inverse = self._reflected(self._reflected(inverse).T)
        u = self.root / np.sqrt(self.total)
        inverse -= np.outer(u, u) / (ridge + 1.0 / n_rows)
        weight = np.square(self.root[found.labeled])
        target = np.zeros(n_rows)
        target[found.labeled] = (found.codes == 1) - weight @ (found.codes == 1) / weight.sum()
        misfit = (inverse @ (self.root * target)) / self.root
        return target - ridge * misfit, target - misfit / np.maximum(inverse.diagonal(), np.finfo(float).tiny)

    def _turned(self, member: Member) -> Member:
        """Return a centred kernel with its rows weighted and reflected."""
        if np.all(self.root == 1.0):
            return member
        if isinstance(member, Factor):
            return Factor(self._reflected(member.Z * self.root[:, None]))
        assert isinstance(member, np.ndarray)
        return self._reflected(self._reflected(member * self.root * self.root[:, None]).T)

    def _reflected(self, X: np.ndarray) -> np.ndarray:
        return X if self.mirror is None else X - np.outer(self.mirror, self.mirror @ X)

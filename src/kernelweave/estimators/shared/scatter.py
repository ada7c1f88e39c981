r"""The scatter of weighted rows in the feature spaces of kernels, as solvers of discriminant analysis want it."""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtri, dtrtrs

from ...labels import Partition
from ...solvers.machines.kernel_stack import Factor, KernelStack, Member
from .sample import Sample
from .stacked_kernels import StackedKernels

MIN_DIAGONAL = 1e-12  # of the trace, added to the diagonal of what should not be singular
EPS = float(np.finfo(float).eps)
BLOCK = 1024  # rows at a time


class Scatter:
    r"""The kernels and class indicators of a fit: centred, weighted, of unit trace.

    Rows count by their weights :math:`\omega_i`: features are :math:`\sqrt{\omega_i}(\phi(x_i) - \mu)`, and
    the indicators :math:`\sqrt{\omega_i\, W / W_j}\, (1_{y_i = j} - W_j / W)` on labelled rows, else zero. Both are
    orthogonal to :math:`\sqrt\omega`; a reflection turns that into the constant vector, as solvers want it.
    """

    def __init__(self, stacked: StackedKernels, sample: Sample):
        labels: Partition = sample.partition
        n_rows = sample.n_rows
        self.sample = sample
        self.total = float(sample.weight.sum())
        self.root = np.sqrt(sample.weight)
        direction = self.root / np.sqrt(self.total) - 1.0 / np.sqrt(n_rows)
        size = float(direction @ direction)
        self.mirror = direction * np.sqrt(2.0 / size) if size > np.finfo(float).eps else None
        stacked.center(sample.share)
        members = [self._turn_member(member) for member in stacked.members]
        # Solvers think of n rows and divide the identity by n; a row of weight 2 is two. With kernels times total/n,
        # and indicators times its root, weights, ridge and objective are those of repeated rows.
        self.stretch = self.total / n_rows
        self.scales = stacked.scales * self.total
        self.stack = KernelStack(members, self.scales / self.stretch)
        weight = np.square(self.root[labels.labeled])
        shares = np.bincount(labels.codes, weights=weight, minlength=labels.n_classes) / weight.sum()
        self.targets = (labels.indicator() - shares) / np.sqrt(shares)  # of the labelled rows
        H = np.zeros((n_rows, labels.n_classes))
        H[labels.labeled] = self.targets * self.root[labels.labeled][:, None]
        self.H = np.sqrt(self.stretch) * self._reflect(H)
        self._known: dict[tuple[bytes, float], np.ndarray] = {}  # what regressions on all rows leave unexplained

    @property
    def plain_stack(self) -> KernelStack:
        """The kernels of unit trace as they are, for rows of equal weight."""
        return KernelStack(self.stack.members, self.scales * self.root[0] ** 2)

    def signs(self) -> np.ndarray:
        """Return the class of each row as 1, -1, and 0 where there is none."""
        labels: Partition = self.sample.partition
        if labels.n_classes != 2 or self.mirror is not None:
            raise ValueError(
                f'scatter="within" is for two classes and rows of equal weight; got {labels.n_classes} classes'
                + (" and different sample weights." if self.mirror is not None else ".")
            )
        signs = np.zeros(self.sample.n_rows)
        signs[labels.labeled] = labels.signs(1)
        return signs

    def rows_of(self, Z: np.ndarray) -> np.ndarray:
        """Return coefficients of the raw kernel at each row from the duals of weighted, reflected rows."""
        return np.sqrt(self.stretch) * self._reflect(Z) * self.root[:, None]

    def left_out(self, projected: np.ndarray, coef: np.ndarray, weights: np.ndarray, ridge: float) -> np.ndarray:
        r"""Return the projection of each row by the others, with the kernel and the targets of all.

        Projections are ridge regression with an offset, a linear smoother :math:`f = S t`. At a row of the weight
        :math:`\omega_i`, with the coefficient :math:`a_i`, the target is :math:`t_i = f_i + \lambda a_i / \omega_i`.
        A weight is a number of rows; without one of them, the share :math:`\delta_i = \min(1, 1/\omega_i)`,

        .. math:: t_i - f_i^{(-i)} = \frac{t_i - f_i}{1 - \delta_i S_{ii}}, \qquad S = I - \lambda M_c^{-1},

        where :math:`M_c` is :math:`M` off the constant direction.

        Parameters
        ----------
        projected, coef : ndarray of shape (n_rows, n_components)
            Projections of the rows, and the coefficients of the rows in them.
        weights : ndarray of shape (n_kernels,)
        ridge : float
        """
        return (
            projected
            + self._find_misfit(coef, ridge)
            - self._predict_misfit(coef, self._find_unexplained(weights, ridge), ridge)
        )

    def left_out_errors(self, Z: np.ndarray, weights: np.ndarray, ridge: float) -> np.ndarray:
        """Return the squared errors at labelled rows, when their indicators are predicted by the others.

        Where rows without a class take part, which are regressed on zero, all predictions are too small, and the
        smallest would seem the best: they are first multiplied by the factor that suits them best. Only their ratios
        matter to the nearest centroid.

        Parameters
        ----------
        Z : ndarray of shape (n_rows, n_classes)
            ``ridge I`` and the weighted kernels, inverted, times ``H``.
        weights : ndarray of shape (n_kernels,)
        ridge : float

        Returns
        -------
        ndarray of shape (n_labeled,)
        """
        missed = self._predict_misfit(self.rows_of(Z), self._find_unexplained(weights, ridge), ridge)
        missed = missed[self.sample.partition.labeled]
        if self.sample.partition.n_unlabeled:
            weight, predicted = self.sample.labeled_weight[:, None], self.targets - missed
            size = max(float(np.sum(weight * np.square(predicted))), np.finfo(float).tiny)
            factor = max(0.0, float(np.sum(weight * predicted * self.targets)) / size)
            missed = self.targets - factor * predicted
        return np.asarray(np.square(missed).sum(axis=1))

    def left_out_within(self, projected: np.ndarray, coef: np.ndarray, weights: np.ndarray, ridge: float) -> np.ndarray:
        r"""Return the same for the scatter within two classes; rows without a class stay where they are.

        The total scatter of labelled rows of the weight m is m times that within the classes, and a multiple of
        :math:`d d^\top` for the difference d of their means. So the direction :math:`(S + \lambda I)^{-1} d` is, up to
        a factor, that of regression on these rows with the ridge :math:`m \lambda`.
        """
        rows = self.sample.partition.labeled
        ridge = float(self.sample.weight[rows].sum()) * ridge
        unexplained = np.ones(len(self.root))
        unexplained[rows] = self._compute_unexplained(weights, ridge, rows)
        return projected + self._find_misfit(coef, ridge) - self._predict_misfit(coef, unexplained, ridge)

    def _find_misfit(self, coef: np.ndarray, ridge: float) -> np.ndarray:
        """Return the targets less the values of a regression, by its coefficients."""
        return np.asarray(ridge * coef / self.sample.weight[:, None])

    def _predict_misfit(self, coef: np.ndarray, unexplained: np.ndarray, ridge: float) -> np.ndarray:
        """Return the targets less the values that the others predict."""
        share = 1.0 / np.maximum(1.0, self.sample.weight)
        return self._find_misfit(coef, ridge) / (1.0 - share + share * unexplained)[:, None]

    def _find_unexplained(self, weights: np.ndarray, ridge: float) -> np.ndarray:
        """Return :math:`1 - S_{ii}` of the regression on all rows; what was asked before is not computed again."""
        key = weights.tobytes(), ridge
        if key not in self._known:
            self._known[key] = self._compute_unexplained(weights, ridge)
        return self._known[key]

    def _compute_unexplained(self, weights: np.ndarray, ridge: float, rows: np.ndarray | None = None) -> np.ndarray:
        """Return :math:`1 - S_{ii}` of the regression on all rows, or on some that have one weight."""
        root = self.root if rows is None else self.root[rows]
        ridge, constant = self.stretch * ridge, root / np.linalg.norm(root)
        if self.stack.is_low_rank:
            F = self._reflect(self.stack.features(weights))
            F = F if rows is None else F[rows] - F[rows].mean(axis=0)
            factor, explained = _factor(F.T @ F, ridge), constant**2
            for start in range(0, len(F), BLOCK):
                half = dtrtrs(factor, F[start : start + BLOCK].T, lower=1)[0]
                explained[start : start + BLOCK] += np.square(half).sum(axis=0)
            return np.maximum(1.0 - explained, EPS)
        K = self.stack.combine(weights)
        if rows is not None:
            K = K[np.ix_(rows, rows)]
            K = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
        # the constant direction, which kernels do not have, is made one with a known eigenvalue, and taken out again
        half = self._reflect(dtrtri(_factor(K + 1.0 / len(K) ** 2, ridge), lower=1, overwrite_c=1)[0].T)
        inverse = np.einsum("ij,ij->i", half, half) - constant**2 / (ridge + 1.0 / len(K))
        return np.maximum(ridge * inverse, np.finfo(float).tiny)

    def _turn_member(self, member: Member) -> Member:
        """Return a centred kernel with its rows weighted and reflected."""
        if np.all(self.root == 1.0):
            return member
        if isinstance(member, Factor):
            return Factor(self._reflect(member.Z * self.root[:, None]))
        assert isinstance(member, np.ndarray)
        return self._reflect(self._reflect(member * self.root * self.root[:, None]).T)

    def _reflect(self, X: np.ndarray) -> np.ndarray:
        return X if self.mirror is None else X - np.outer(self.mirror, self.mirror @ X)


def pool_kernels(stack: KernelStack, scale: float) -> KernelStack:
    """Return the sum of scaled kernels, divided by ``scale``, as the only kernel of a stack."""
    equal = np.ones(len(stack))
    if all(isinstance(member, Factor) for member in stack.members):
        return KernelStack([Factor(stack.features(equal))], [scale])
    return KernelStack([stack.combine(equal).copy()], [scale])


def _factor(A: np.ndarray, ridge: float) -> np.ndarray:
    """Return the lower Cholesky factor of a matrix plus a ridge, which is raised if that is singular in rounding."""
    A.flat[:: len(A) + 1] += ridge
    factor, failed = dpotrf(A.T, lower=1)
    if failed:  # rows repeat, and there is next to no ridge
        A.flat[:: len(A) + 1] += MIN_DIAGONAL * float(np.trace(A))
        factor = dpotrf(A.T, lower=1)[0]
    return np.asarray(factor)

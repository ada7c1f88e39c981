r"""What is left of kernels after learning: weighted sums, and expansions that predict.

A composite method learns weights and gives a :class:`CombinedKernel` :math:`\sum_p w_p K_p`. A mixture method learns
one coefficient for each column and gives a :class:`KernelExpansion`

.. math:: f(x) = \sum_p \sum_{j \in W_p} \alpha_j^p K_p(x, x_j) + b,

which holds only the active kernels and their active centres. A composite model is the special case
:math:`\alpha_j^p = w_p \alpha_j`.

A deformed kernel is dense in its base, :math:`\tilde k(x, x_j) = \sum_a c_{ja} k(x, a)`: what is evaluated is then the
base at its anchors :math:`a` with *folded* coefficients, once for all the kernels that share it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..short_text import cut_text
from .algebra import BoundSum
from .base import BoundKernel, batches
from .checks import are_floats, require_consistent, require_finite

MAX_FOLD_VALUES = 500_000  # 4 megabytes a model; of more, what centres of folded kernels add is not kept


class CombinedKernel(BoundSum):
    r"""The kernel :math:`\sum_p w_p K_p` with learned weights; kernels of weight zero are left out.

    Parameters
    ----------
    kernels : sequence of BoundKernel
    weights : ndarray of shape (n_kernels,)
        Non-negative: a negative weight could make the combination lose positive semi-definiteness.
    """

    def __init__(self, kernels: Sequence[BoundKernel], weights: np.ndarray):
        weights = np.asarray(weights, dtype=np.float64)
        if weights.shape != (len(kernels),) or not np.all(np.isfinite(weights) & (weights >= 0)):
            raise ValueError(f"Kernel weights must be {len(kernels)} non-negative numbers; got {weights}.")
        kept = np.flatnonzero(weights) if weights.any() else np.arange(1)
        super().__init__([kernels[int(p)] for p in kept], weights[kept])


@dataclass(frozen=True, repr=False)
class ExpansionGroup:
    """One active kernel of an expansion.

    Attributes
    ----------
    kernel : int
        Number of the kernel in the library.
    name, source : str
    centers : ndarray of shape (n_centers,)
        Row numbers of the training sample.
    coef : ndarray of shape (n_centers, n_outputs)
    bound : BoundKernel
        What is evaluated: the kernel, which keeps only the centres, or the one it folds into.
    bound_coef : ndarray of shape (bound.n_rows, n_outputs)
        Its coefficients; ``coef`` where nothing was folded.
    fold : ndarray of shape (bound.n_rows, n_centers), optional
        What was folded, ``bound_coef = fold @ coef``, where it is small: it says what each centre adds.
    """

    kernel: int
    name: str
    source: str
    centers: np.ndarray
    coef: np.ndarray
    bound: BoundKernel
    bound_coef: np.ndarray
    fold: np.ndarray | None = None

    @property
    def knows_centers(self) -> bool:
        """Whether what each centre adds can be told."""
        return self.fold is not None or np.array_equal(self.bound_coef, self.coef)

    def at_centers(self, values: np.ndarray) -> np.ndarray:
        """Return the kernel at the centres, shape (n_rows, n_centers), from the values of ``bound``."""
        return values if self.fold is None else values @ self.fold

    def __repr__(self) -> str:
        name, source = cut_text(self.name), cut_text(self.source)
        return f"<ExpansionGroup {name!r}: {len(self.centers)} centre{'s' * (len(self.centers) != 1)} of {source!r}>"


class KernelExpansion:
    """A sum of kernel functions at a few centres plus an intercept, for one or several outputs.

    Attributes
    ----------
    groups : tuple of ExpansionGroup
        One for each active kernel: its ``name``, ``source``, ``centers`` and ``coef``.
    intercept : ndarray of shape (n_outputs,)
        What is added to every row.
    n_kernels : int
        Size of the library the groups come from.
    n_evaluations : int
        Kernel values that one new row costs; those that kernels share are counted once.
    """

    def __init__(self, groups: Sequence[ExpansionGroup], intercept: np.ndarray, n_kernels: int):
        self.groups = tuple(groups)
        self.intercept = intercept
        self.n_kernels = n_kernels

    def check_loaded(self) -> None:
        """Refuse coefficients of a file that are not those of its kernels."""
        are_kernels = type(self.groups) is tuple and all(
            type(group) is ExpansionGroup and isinstance(group.bound, BoundKernel) for group in self.groups
        )
        require_consistent(self, are_kernels, "has groups without a kernel")
        n_outputs = len(self.intercept)
        is_right = are_floats(self.intercept, n_outputs) and all(
            are_floats(group.bound_coef, group.bound.n_rows, n_outputs) for group in self.groups
        )
        require_consistent(self, is_right, "has other coefficients than kernels")

    @classmethod
    def from_columns(
        cls, library: Any, columns: np.ndarray, coef: np.ndarray, intercept: np.ndarray, row_numbers: np.ndarray
    ) -> KernelExpansion:
        """Collect the columns of a :class:`BoundLibrary` with their coefficients.

        Parameters
        ----------
        library : BoundLibrary
            The kernels, at all rows.
        columns : ndarray of shape (n_active,)
            Distinct flat column numbers.
        coef : ndarray of shape (n_active, n_outputs)
            Coefficients of these columns.
        intercept : ndarray of shape (n_outputs,)
            What is added to every row.
        row_numbers : ndarray of shape (n_rows,)
            What the user calls the library's rows.

        Returns
        -------
        KernelExpansion
            It keeps the rows that are centres, and no others.
        """
        kernel, center = library.split(columns)
        groups, n_values = [], 0
        for p in np.unique(kernel):
            here = np.flatnonzero(kernel == p)
            here = here[np.argsort(center[here])]
            entry, bound = library.entries[p], library.kernels[p].restrict(center[here])
            own, folded = coef[here], bound.fold(coef[here])
            about = (int(p), entry.name, entry.source, row_numbers[center[here]], own)
            if folded is None:
                groups.append(ExpansionGroup(*about, bound, own))
                continue
            n_values += folded[0].n_rows * len(here)
            of_each = bound.fold(np.eye(len(here))) if n_values <= MAX_FOLD_VALUES else None
            groups.append(ExpansionGroup(*about, folded[0], folded[1], None if of_each is None else of_each[1]))
        return cls(groups, np.asarray(intercept, dtype=np.float64), len(library.kernels))

    @property
    def n_evaluations(self) -> int:
        """Kernel values that one new row costs."""
        return sum(groups[0].bound.n_evaluations for groups in self._group_by_kernel())

    def __call__(self, X: Any) -> np.ndarray:
        """Return the outputs at the rows of ``X``, shape ``(n_rows, n_outputs)``."""
        out = np.tile(self.intercept, (X.shape[0], 1))
        for groups in self._group_by_kernel():
            coef = np.sum([group.bound_coef for group in groups], axis=0)
            products = groups[0].bound.products_against(X, coef)
            require_finite(products, groups[0].name, " on new rows")
            out += products
        return out

    def split(self, X: Any) -> np.ndarray:
        """Return what each kernel of the library adds.

        The intercept belongs to no kernel; it is shared equally among the active ones, so that the parts sum to
        the whole.

        Parameters
        ----------
        X : array or CSR of shape (n_rows, n_features)
            New rows.

        Returns
        -------
        ndarray of shape (n_rows, n_kernels, n_outputs)
            In library order; zero for kernels that are not active.
        """
        out = np.zeros((X.shape[0], self.n_kernels, len(self.intercept)))
        active = [group.kernel for group in self.groups] or list(range(self.n_kernels))
        out[:, active] += self.intercept / len(active)
        for rows, group, values in self.walk(X):
            out[rows, group.kernel] += values @ group.bound_coef
        return out

    def walk(self, X: Any) -> Iterator[tuple[slice, ExpansionGroup, np.ndarray]]:
        """Give rows of ``X``, a group, and the values of its ``bound`` there, block by block.

        Parameters
        ----------
        X : array or CSR of shape (n_rows, n_features)
            New rows.

        Yields
        ------
        rows : slice
            Of ``X``.
        group : ExpansionGroup
            Those that evaluate the same kernel follow one another.
        values : ndarray of shape (n_rows_of_block, n_bound)
            The values of ``group.bound`` at these rows.
        """
        for groups in self._group_by_kernel():
            bound = groups[0].bound
            width = max(bound.n_rows, bound.n_evaluations) + X.shape[1]  # the block, and the rows it is computed from
            for rows in batches(X.shape[0], width):
                values = bound.against(X[rows])
                require_finite(values, groups[0].name, " on new rows")
                for group in groups:
                    yield rows, group, values

    def __repr__(self) -> str:
        n_centers = len({int(row) for group in self.groups for row in group.centers})
        parts = (
            f"{len(self.groups)} of {self.n_kernels} kernels",
            f"{n_centers} centre{'s' * (n_centers != 1)}",
            f"{len(self.intercept)} output{'s' * (len(self.intercept) != 1)}",
            f"{self.n_evaluations} kernel values a row",
        )
        return f"<KernelExpansion: {', '.join(parts)}>"

    def _group_by_kernel(self) -> list[list[ExpansionGroup]]:
        """Return the groups, those together that evaluate the same kernel."""
        by_kernel: dict[int, list[ExpansionGroup]] = {}
        for group in self.groups:
            by_kernel.setdefault(id(group.bound), []).append(group)
        return list(by_kernel.values())

r"""Kernels deformed along the data: functions that vary between neighbours become expensive.

The norm of a kernel's space is enlarged by how much a function varies over a graph of nearest neighbours,

.. math:: \lVert f \rVert_{\sim}^2 = \lVert f \rVert^2 + r \, f_X^\top M f_X, \qquad M = L^p,

with :math:`f_X` the values of :math:`f` at the :math:`n` bound rows and :math:`L` the Laplacian of the graph. That is
again the space of a kernel [1]_,

.. math:: \tilde k(x, z) = k(x, z) - k_x^\top r M (I + r K M)^{-1} k_z, \qquad k_x = (k(x, x_1), \dots, k(x, x_n)),

which is :math:`(I + r K M)^{-1} K` on the bound rows and defined everywhere: no graph is built to predict.

Numbers. With the features :math:`z(x) = R^{-1} k(A, x)` of anchors :math:`A` that span all bound rows, or of landmarks
where there are too many (``nystroem.py``), their matrix :math:`Z` at the bound rows and
:math:`C C^\top = I + r Z^\top M Z`

.. math:: \tilde k(x, z) = \bigl(C^{-1} z(x)\bigr)^\top C^{-1} z(z) + \bigl(k(x, z) - z(x)^\top z(z)\bigr).

The bracket vanishes where one of the two is a bound row. This form is positive semi-definite whatever the rounding, no
:math:`n \times n` system is solved, and of kernels that share a base only :math:`C` differs. With landmarks the base is
the Nystroem kernel :math:`z(x)^\top z(z)` itself and there is no bracket.

References
----------
.. [1] V. Sindhwani, P. Niyogi and M. Belkin, "Beyond the point cloud: from transductive to semi-supervised learning",
   ICML 2005.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import linalg
from sklearn import get_config

from ..parameters import COUNT, LANDMARKS, NON_NEGATIVE, check_parameters, one_of
from .base import ALL, BoundKernel, Kernel, Rows, batches, require_kernel
from .checks import as_floats
from .graph import EDGE_WEIGHTS, METRICS, feature_neighbor_graph, kernel_neighbor_graph, neighbor_graph, power_form
from .graph import laplacian as graph_laplacian
from .nystroem import AnchorFeatures, anchored, solve_lower
from .pointwise import RBF, Precomputed
from .sharing import bind_once, keep_part, kept_array, once

MAX_EXACT_ROWS = 2000  # "auto": up to here all rows may be anchors; a family of four then binds in about 3 s
N_LANDMARKS = 1000  # "auto": above, so many rows are drawn ...
LANDMARK_SHARE = 0.75  # ... or as many as keep the features of all rows within this share of the working memory ...
MAX_PAIRED_ROWS = 20_000  # above, distances in the kernel's feature space are those of the landmarks' features
MIN_LANDMARKS = 50  # ... but no fewer
DEFORMED = "deformed features"
MANIFOLD_CONSTRAINTS = {
    "n_neighbors": COUNT,
    "degree": COUNT,
    "ratio": NON_NEGATIVE,
    "metric": one_of(*METRICS, "kernel"),
    "edge_weights": one_of(*EDGE_WEIGHTS),
    "laplacian": one_of("normalized", "unnormalized"),
    "n_landmarks": LANDMARKS,
}


@dataclass(frozen=True, eq=False, repr=False)
class ManifoldKernel(Kernel):
    r"""A kernel deformed so that its functions vary slowly between neighbouring rows, labelled or not.

    .. math:: \tilde k(x, z) = k(x, z) - k_x^\top r M (I + r K M)^{-1} k_z, \qquad M = L^p,

    with :math:`k` the base kernel, :math:`K` its matrix at the rows it is bound to, :math:`k_x` its values between
    :math:`x` and these rows, and :math:`L` the Laplacian of the graph of their nearest neighbours.

    Parameters
    ----------
    base : Kernel
        The kernel to deform; positive semi-definite.
    n_neighbors : int, default=10
        Neighbours of each row in the graph, which is symmetrised by OR; at most the number of other rows.
    degree : int, default=2
        The power :math:`p` of the Laplacian.
    ratio : float, default=1.0
        How much variation along the graph costs, relative to the base's own norm:
        :math:`r = \mathrm{ratio} / \mathrm{mean}_i k(x_i, x_i)`. Scaling features or kernel therefore changes nothing,
        and for kernels with :math:`k(x, x) = 1` it is :math:`r` as in the literature. 0 is the base itself, or its
        Nystroem approximation where there are landmarks.
    metric : {"euclidean", "cosine", "kernel"}, default="euclidean"
        Distance between rows: Euclidean, Euclidean after scaling rows to length one, or that in the feature space of
        ``base``. The last evaluates all pairs of rows; use it for :class:`Precomputed` bases. With landmarks and more
        than 20,000 rows it finds near rows, not always the nearest, by the features of the landmarks.
    edge_weights : {"gaussian", "binary", "self_tuning"}, default="gaussian"
        Weights of the edges: ``exp(-d^2 / (2 t^2))`` with ``t`` the mean length of an edge, 1, or
        ``exp(-d^2 / (t_i t_j))`` with ``t_i`` the distance of row ``i`` to its last neighbour.
    laplacian : {"normalized", "unnormalized"}, default="normalized"
        :math:`I - D^{-1/2} W D^{-1/2}` or :math:`D - W`.
    n_landmarks : "auto", int or None, default="auto"
        Rows that the base's functions are spanned by, drawn without replacement. None: all rows, which is exact and
        takes memory for an ``n_rows x n_rows`` matrix. Fewer: the base is replaced by its Nystroem approximation;
        memory is ``n_rows x n_landmarks``, and a prediction costs ``n_landmarks`` values of the base kernel.
        ``"auto"``: all of up to 2000 rows, else 1000; above 100,000 rows as many as keep the features of all rows in
        three quarters of scikit-learn's ``working_memory``: 100 of a million rows.

    See Also
    --------
    manifold_family : Deformed kernels for several bases, graphs and ratios.
    ClusterKernel : Uses the eigenvectors of the base instead of a graph.
    LapSVMClassifier : A support vector machine with one deformed kernel.

    Notes
    -----
    The graph is learned from the rows the kernel is bound to, so give the estimator the unlabelled rows as well. Sample
    weights affect the base and the mean of its diagonal; the graph treats all rows equally. Kernels of one library that
    share base, landmarks or graph compute them once, and a model evaluates a shared base once.

    References
    ----------
    V. Sindhwani, P. Niyogi and M. Belkin, "Beyond the point cloud: from transductive to semi-supervised learning",
    ICML 2005.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> from kernelweave import RBF, ManifoldKernel, SSMKClassifier
    >>> X, classes = make_moons(200, noise=0.05, random_state=0)
    >>> y = np.full(200, -1)
    >>> y[:6] = classes[:6]
    >>> for kernel in (RBF(multiple=10.0), ManifoldKernel(RBF(multiple=10.0), ratio=100.0)):
    ...     print(float(np.mean(SSMKClassifier(kernel).fit(X, y).predict(X) == classes)))
    0.68
    1.0
    """

    own_cost = 50.0  # with a thousand anchors
    keeps_psd = True

    base: Kernel
    n_neighbors: int = 10
    degree: int = 2
    ratio: float = 1.0
    metric: str = "euclidean"
    edge_weights: str = "gaussian"
    laplacian: str = "normalized"
    n_landmarks: int | str | None = "auto"

    def __post_init__(self) -> None:
        require_kernel("ManifoldKernel", self.base)
        check_parameters("ManifoldKernel", vars(self), MANIFOLD_CONSTRAINTS)
        if self.ratio > 0 and self.metric != "kernel" and is_precomputed(self.base):
            raise ValueError(
                f"ManifoldKernel got metric={self.metric!r} for a precomputed base, whose X holds row "
                'numbers: distances between them mean nothing. Pass metric="kernel" for distances in feature space.'
            )

    @property
    def allows_missing(self) -> bool:
        """Whether missing values have a meaning: only where no distances between rows of ``X`` are asked for."""
        return (self.metric == "kernel" or self.ratio == 0) and self.base.allows_missing

    def bind(self, X: Any, rng: np.random.Generator, sample_weight: np.ndarray | None = None) -> BoundKernel:
        return self.bind_together([self], X, [rng], sample_weight)[0]

    @classmethod
    def bind_together(
        cls,
        kernels: Sequence[ManifoldKernel],
        X: Any,
        rngs: Sequence[np.random.Generator],
        sample_weight: np.ndarray | None = None,
    ) -> list[BoundKernel]:
        # Each base, graph and quadratic form is computed once; what is shared draws from the first one's generator.
        bound: dict[int, BoundKernel] = {}
        families: dict[tuple[Kernel, int], list[int]] = {}
        for p, kernel in enumerate(kernels):
            if kernel.ratio == 0 and kernel.count_anchors(X.shape[0]) == X.shape[0]:
                bound[p] = bind_once(kernel.base, X, rngs[p], sample_weight)
            else:
                families.setdefault((kernel.base, kernel.count_anchors(X.shape[0])), []).append(p)
        if families and X.dtype == np.float32:
            X = once(
                "double precision", X, lambda _: X.astype(np.float64)
            )  # the triangular solves would blow single precision's rounding up
        graphs: dict[Any, Any] = {}
        for (recipe, n_candidates), places in families.items():
            rng = rngs[places[0]]
            base = bind_once(recipe, X, rng, sample_weight)
            features, Z = once(
                ("anchors", recipe, n_candidates), base, partial(anchored, base, recipe, n_candidates), rng
            )
            size = float(np.average(base.diag().astype(np.float64), weights=sample_weight)) or 1.0
            forms: dict[Any, np.ndarray] = {}
            for p in places:
                kernel = kernels[p]
                if kernel.ratio == 0:
                    bound[p] = BoundManifold(features, Z, None)
                    continue
                graph = kernel.graph_key(n_candidates)
                form = (graph, kernel.laplacian, kernel.degree)
                if graph not in graphs:
                    of = base if kernel.metric == "kernel" else X
                    graphs[graph] = once(("graph", graph), of, partial(kernel._graph, X, base, Z), rng)
                if form not in forms:
                    L = graph_laplacian(graphs[graph], kernel.laplacian == "normalized")
                    forms[form] = power_form(L, Z, kernel.degree) / size
                bound[p] = BoundManifold(features, Z, _factor_deformation(forms[form], kernel))
        return [bound[p] for p in range(len(kernels))]

    def count_anchors(self, n_rows: int) -> int:
        """Return how many rows span the functions of the base.

        Parameters
        ----------
        n_rows : int
            That the kernel is tied to.

        Returns
        -------
        int
            At most ``n_rows``.
        """
        n_landmarks = count_landmarks(self.n_landmarks, n_rows)
        if self.n_landmarks != "auto" or n_rows <= MAX_EXACT_ROWS:
            return n_landmarks
        room = int(LANDMARK_SHARE * get_config()["working_memory"] * 2**20 / (8 * n_rows))
        return min(n_landmarks, max(MIN_LANDMARKS, room))

    def graph_key(self, n_candidates: int) -> tuple[Any, ...]:
        """Return what kernels whose graph of neighbours is the same one have in common.

        Parameters
        ----------
        n_candidates : int
            Rows that span the functions of the base.

        Returns
        -------
        tuple
            Equal for equal graphs of the same rows.
        """
        key = (self.metric, self.edge_weights, int(self.n_neighbors))
        return (*key, self.base, n_candidates) if self.metric == "kernel" else key  # then it is that of one bound base

    def _graph(self, X: Any, base: BoundKernel, Z: np.ndarray, rng: np.random.Generator) -> Any:
        if self.metric == "kernel" and len(Z) > MAX_PAIRED_ROWS and self.count_anchors(len(Z)) < len(Z):
            return feature_neighbor_graph(Z, self.n_neighbors, self.edge_weights, rng)
        if self.metric == "kernel":
            return kernel_neighbor_graph(base, self.n_neighbors, self.edge_weights)
        return neighbor_graph(as_floats(X, self), self.n_neighbors, self.metric, self.edge_weights, rng)


def manifold_family(
    base: Kernel | Sequence[Kernel] | None = None,
    ratios: float | Sequence[float] = (1.0,),
    n_neighbors: int | Sequence[int] = (20, 50),
    degrees: int | Sequence[int] = (2, 5),
    metric: str = "euclidean",
    edge_weights: str = "gaussian",
    laplacian: str = "normalized",
    n_landmarks: int | str | None = "auto",
) -> list[ManifoldKernel]:
    """Return deformed kernels for every base, number of neighbours, degree and ratio; ``base`` is ``RBF()`` by default.

    In a library they share bound bases, graphs and quadratic forms: a further ratio costs one Cholesky factorisation.

    Parameters
    ----------
    base : Kernel or sequence of Kernel, optional
        The kernels to deform.
    ratios : float or sequence of float, default=(1.0,)
        Costs of variation along the graph.
    n_neighbors : int or sequence of int, default=(20, 50)
        Numbers of neighbours in the graph.
    degrees : int or sequence of int, default=(2, 5)
        Powers of the Laplacian.
    metric : {"euclidean", "cosine", "kernel"}, default="euclidean"
        Distance between rows; this and what follows as in :class:`ManifoldKernel`.
    edge_weights : {"gaussian", "binary", "self_tuning"}, default="gaussian"
        Weights of the edges.
    laplacian : {"normalized", "unnormalized"}, default="normalized"
        Laplacian of the graph.
    n_landmarks : "auto", int or None, default="auto"
        Rows that the functions of each base are spanned by.

    Returns
    -------
    list of ManifoldKernel
        Bases vary slowest, ratios fastest.

    See Also
    --------
    ManifoldKernel : One of them.
    rbf_family : Bases of several widths.

    Examples
    --------
    >>> from kernelweave import RBF, manifold_family
    >>> manifold_family(RBF(multiple=4.0), n_neighbors=10, degrees=(1, 2))
    [ManifoldKernel(RBF(multiple=4.0), degree=1), ManifoldKernel(RBF(multiple=4.0))]
    """
    bases = [RBF()] if base is None else [base] if isinstance(base, Kernel) else list(base)
    return [
        ManifoldKernel(kernel, n, degree, ratio, metric, edge_weights, laplacian, n_landmarks)
        for kernel in bases
        for n in _list_values(n_neighbors)
        for degree in _list_values(degrees)
        for ratio in _list_values(ratios)
    ]


def _list_values(given: Any) -> list[Any]:
    """Return one value, or several, as a list."""
    return [given] if np.ndim(given) == 0 else list(given)


class BoundManifold(BoundKernel):
    r"""A deformed kernel, held as the features ``Z`` of its rows and the triangular factor of the deformation.

    Parameters
    ----------
    features : AnchorFeatures
        Shared by all kernels that deform the same base.
    Z : ndarray of shape (n_rows, n_anchors)
        The features of the bound rows; shared likewise.
    root : ndarray of shape (n_anchors, n_anchors) or None
        Lower triangular :math:`C` with :math:`C C^\top = I + r Z^\top M Z`; None where nothing is deformed.
    """

    def __init__(self, features: AnchorFeatures, Z: np.ndarray, root: np.ndarray | None):
        self.features = features
        self.Z = Z
        self.root = root
        self.n_rows = len(Z)

    def block(self, rows: Rows, cols: Rows) -> np.ndarray:
        """Return inner products of deformed features; exactly symmetric where rows and columns are the same."""
        kept, numbers = self._deformed(), np.arange(self.n_rows)
        if rows is cols or np.array_equal(numbers[rows], numbers[cols]):
            half = self._deform(self.Z[rows]) if kept is None else kept[rows]
            return half @ half.T
        return self._inner(self.Z[rows], self.Z[cols]) if kept is None else kept[rows] @ kept[cols].T

    def _deformed(self) -> np.ndarray | None:
        """Return the deformed features of all rows, shape (n_rows, n_anchors), where fits share them."""
        if self.root is None:
            return self.Z
        return kept_array(DEFORMED, self, self.Z.size, lambda: self._deform(self.Z))

    def _deform(self, Z: np.ndarray) -> np.ndarray:
        return Z if self.root is None else solve_lower(self.root, Z.T).T

    def against(self, X_new: Any, cols: Rows = ALL) -> np.ndarray:
        """Return inner products of the deformed features of new rows and of bound rows."""
        return self._inner(self.features.of(X_new), self.Z[cols])

    def products(self, V: np.ndarray, rows: Rows = ALL) -> np.ndarray:
        """Multiply by the features one after the other: no pair of rows is evaluated."""
        kept = self._deformed()
        if kept is not None:
            return kept[rows] @ (kept.T @ V)
        return self.Z[rows] @ self._smooth(self.Z.T @ V)

    def diag(self) -> np.ndarray:
        """Return the squared lengths of the deformed features."""
        kept = self._deformed()
        if kept is not None:
            return np.einsum("ij,ij->i", kept, kept)
        parts = [self._squared_lengths(self.Z[rows]) for rows in batches(self.n_rows, 2 * self.Z.shape[1])]
        return np.concatenate(parts) if parts else np.empty(0)

    def diag_against(self, X_new: Any) -> np.ndarray:
        """Return the deformed kernel of each new row with itself."""
        Z_new = self.features.of(X_new)
        return self._squared_lengths(Z_new) + self.features.outside(X_new, Z_new)

    @property
    def rank(self) -> int | None:
        """The number of features where they are at most half as many as the rows."""
        return self.Z.shape[1] if 2 * self.Z.shape[1] <= self.n_rows else None

    def factor(self) -> np.ndarray | None:
        """Return the deformed features where they are at most half as many as the rows."""
        if self.rank is None or self.root is None:
            return None if self.rank is None else self.Z
        kept = self._deformed()
        return self._deform(self.Z) if kept is None else kept.copy()

    def fold(self, coef: np.ndarray) -> tuple[BoundKernel, np.ndarray]:
        """Return the base at the anchors, and the coefficients there that give the same function."""
        kept = self._deformed()
        smooth = self._smooth(self.Z.T @ coef) if kept is None else self._turn_back(kept.T @ coef)
        return self.features.base, solve_lower(self.features.root, smooth, transposed=True)

    def restrict(self, rows: np.ndarray) -> BoundKernel:
        """Keep the features of some rows."""
        part = BoundManifold(self.features, self.Z[rows], self.root)
        keep_part(DEFORMED, self, part, lambda kept: kept[rows])
        return part

    def compact(self, rows: np.ndarray) -> BoundKernel:
        """Return the columns at some rows as combinations of columns of the base, where they are few."""
        if 2 * len(rows) > self.n_rows:
            return self.restrict(rows)
        part = BoundManifold(self.features, self.Z[rows], self.root)
        base, coef = part.fold(np.eye(len(rows)))
        return BoundColumns(base, coef, self.block(rows, rows))

    def _inner(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        if len(left) <= len(right):  # two triangular solves for the few are cheaper than one for each
            return self._smooth(left.T).T @ right.T
        return left @ self._smooth(right.T)

    def _smooth(self, B: np.ndarray) -> np.ndarray:
        return B if self.root is None else self._turn_back(solve_lower(self.root, B))

    def _turn_back(self, B: np.ndarray) -> np.ndarray:
        return B if self.root is None else solve_lower(self.root, B, transposed=True)

    def _squared_lengths(self, Z: np.ndarray) -> np.ndarray:
        half = self._deform(Z)
        return np.einsum("ij,ij->i", half, half)


class BoundColumns(BoundKernel):
    r"""Some columns of a deformed kernel, :math:`\tilde k(x, x_j) = \sum_a c_{aj} k(x, a)` with the base :math:`k`.

    Parameters
    ----------
    base : BoundKernel
        Bound to the anchors.
    coef : ndarray of shape (n_anchors, n_rows)
    K : ndarray of shape (n_rows, n_rows)
        The deformed kernel at the bound rows.
    """

    def __init__(self, base: BoundKernel, coef: np.ndarray, K: np.ndarray):
        self.base = base
        self.coef = coef
        self.K = K
        self.n_rows = len(K)

    def block(self, rows: Rows, cols: Rows) -> np.ndarray:
        """Return values at bound rows."""
        return self.K[rows][:, cols].copy()

    def against(self, X_new: Any, cols: Rows = ALL) -> np.ndarray:
        """Return combinations of the base between new rows and the anchors."""
        return self.base.against(X_new) @ self.coef[:, cols]

    def diag(self) -> np.ndarray:
        """Return the values of the bound rows with themselves."""
        return self.K.diagonal().copy()

    def diag_against(self, X_new: Any) -> np.ndarray:
        """Refuse: only columns at bound rows are kept."""
        raise NotImplementedError("Of this kernel the columns at some rows are kept, not its values at new rows.")

    def fold(self, coef: np.ndarray) -> tuple[BoundKernel, np.ndarray]:
        """Return the base at the anchors, and the coefficients there that give the same function."""
        return self.base, self.coef @ coef

    @property
    def n_evaluations(self) -> int:
        """The number of anchors."""
        return self.base.n_evaluations

    def restrict(self, rows: np.ndarray) -> BoundKernel:
        """Keep the columns at some rows."""
        return BoundColumns(self.base, self.coef[:, rows], self.K[rows][:, rows])


def _factor_deformation(form: np.ndarray, kernel: ManifoldKernel) -> np.ndarray:
    """Return the lower triangular root of ``I + ratio * form``."""
    with np.errstate(over="ignore"):
        enlarged = kernel.ratio * form
    enlarged[np.diag_indices_from(enlarged)] += 1.0
    if not enlarged.size:
        return enlarged
    try:
        return linalg.cholesky(enlarged.T, lower=True, overwrite_a=True)  # in place: LAPACK's order of columns
    except (linalg.LinAlgError, ValueError):
        raise ValueError(
            f"The deformation of {kernel} is too strong for double precision (I + r Z'MZ is not positive definite "
            'after rounding). Use a smaller ratio or degree, or laplacian="normalized".'
        ) from None


def count_landmarks(n_landmarks: int | str | None, n_rows: int) -> int:
    """Return how many rows a parameter ``n_landmarks`` means."""
    if n_landmarks == "auto":
        return n_rows if n_rows <= MAX_EXACT_ROWS else N_LANDMARKS
    return n_rows if n_landmarks is None else min(n_rows, int(n_landmarks))


def is_precomputed(kernel: Kernel) -> bool:
    """Return whether a recipe rests on a matrix, so that its rows are numbers of rows."""
    children = [child for child in kernel._children().values() if isinstance(child, Kernel)]
    return isinstance(kernel, Precomputed) or any(map(is_precomputed, children))

r"""Harmonic functions on a graph: given values at some rows, at each other row the mean of its neighbours.

.. math:: \min_f\; E(f) = \tfrac12 \sum_{ij} W_{ij} \|f_i - f_j\|^2 \quad \text{s.t.} \quad f_L = Y
    \qquad \Longleftrightarrow \qquad (D_{UU} - W_{UU}) f_U = W_{UL} Y ,

with :math:`W` symmetric and non-negative, :math:`D` its row sums, L the labelled and U the other rows. A row from
which no path leads to a label takes no part. :math:`f_i` is what a random walk from row i finds at the first labelled
row that it meets, so that :math:`f_U = P Y` where the rows of :math:`P \ge 0` sum to 1, and no value leaves the range
of those given (the maximum principle). Two ways lead there:

* *Elimination*, for dense or small graphs: rows are taken out one after another, and the walks through them become
  edges between those that remain. In blocks these are products of matrices. Nothing is ever subtracted, hence
  :math:`P` has relative errors of a few roundings in each entry, also behind edges of weight :math:`10^{-30}`, where
  a Cholesky factor would have no digit left.
* *Conjugate gradients* with the degrees as preconditioner, for large sparse graphs, all columns side by side. A small
  residual :math:`r = W_{UL} Y - (D_{UU} - W_{UU}) f_U` says little where labels are far away. But for an M-matrix
  :math:`A`, and any :math:`s` with :math:`A s \ge \theta d > 0`,

  .. math:: |f - f^*|_i \le \frac{s_i}{\theta} \max_j \frac{|r_j|}{d_j} ,

  and such an :math:`s`, the time that a walk takes to a label, is one more column of the same system. The iteration
  stops when this bound is within the tolerance. Islands, small groups of rows that hang on the others by edges too weak
  for it, are eliminated first.

The certificate is the residual :math:`\max_i |r_i| / d_i`, how far a row is from the mean of its neighbours; it is
compared with the range of Y, not with the energy, which may be zero.

References
----------
X. Zhu, Z. Ghahramani, J. Lafferty: Semi-supervised learning using Gaussian fields and harmonic functions. ICML 2003.
W. K. Grassmann, M. I. Taksar, D. P. Heyman: Regenerative analysis and steady state distributions for Markov chains.
Operations Research, 1985.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from .deadline import NO_DEADLINE, Deadline
from .result import Certificate, SolverResult, Status

MAX_DENSE_ROWS = 1000  # rows without label: up to so many, a sparse graph is made dense
MAX_ISLAND_ROWS = 1000  # rows: up to so many that hang on the others by weak edges are eliminated from a sparse graph
MAX_WEAK_EDGE = 1e-5  # of the degrees at both ends of an edge
STEPS_PER_CHECK = 10  # of conjugate gradients, between two looks at the bound
EPS = float(np.finfo(float).eps)
MIN_RESIDUAL = 0.1 * EPS  # a residual, relative to the range of the values, that only the recurrence has


@dataclass(frozen=True, kw_only=True)
class HarmonicResult(SolverResult):
    """Values at all rows of a graph.

    Attributes
    ----------
    unreached : ndarray of shape (n_unreached,)
        Numbers of the rows that have the fallback, among them those whose way to a label has weights too small for a
        number.
    error : float
        Bound on the error, relative to the range of the given values.
    """

    unreached: np.ndarray
    error: float


def solve_harmonic(
    W: Any,
    labeled: np.ndarray,
    Y: np.ndarray,
    *,
    fallback: np.ndarray,
    tol: float = 1e-6,
    max_iter: int = 10_000,
    deadline: Deadline = NO_DEADLINE,
) -> HarmonicResult:
    """Extend values at the labelled rows of a graph harmonically to all rows.

    Parameters
    ----------
    W : ndarray or sparse matrix of shape (n_rows, n_rows)
        Symmetric and non-negative; the diagonal is ignored.
    labeled : ndarray of shape (n_labeled,)
        Numbers of the rows with given values.
    Y : ndarray of shape (n_labeled, n_columns)
    fallback : ndarray of shape (n_columns,)
        The values of rows that no path joins to a labelled one.
    tol : float
        The largest error of a value, relative to the range of ``Y``.
    max_iter : int
        Largest number of steps of the conjugate gradients.
    deadline : Deadline
        When it is over, conjugate gradients return the values that they have.

    Returns
    -------
    HarmonicResult
        ``x`` of shape (n_rows, n_columns), with ``Y`` at the labelled rows; the objective is the energy. ``n_iter`` is
        0 after an elimination.

    Examples
    --------
    >>> path = np.diag(np.ones(3), 1) + np.diag(np.ones(3), -1)
    >>> result = solve_harmonic(path, np.array([0, 3]), np.array([[0.0], [1.0]]), fallback=np.zeros(1))
    >>> result.x[:, 0].round(6).tolist()
    [0.0, 0.333333, 0.666667, 1.0]
    """
    if sparse.issparse(W):
        W = sparse.csr_array(W, dtype=float, copy=True)
        W.sum_duplicates()  # setdiag of SciPy 1.13 trusts that entries are sorted
        W.setdiag(0.0)
        W.eliminate_zeros()
    reached = _find_reached(W, labeled)
    free = reached.copy()
    free[labeled] = False
    rows = np.flatnonzero(free)
    middle, size = 0.5 * (Y.max(axis=0) + Y.min(axis=0)), np.ptp(Y, axis=0)
    given = (Y - middle) / np.where(size > 0.0, size, 1.0)  # from -1/2 to 1/2
    inner, outer = _cut_edges(W, rows, labeled)
    degree = np.asarray(inner.sum(axis=1) + outer.sum(axis=1)).ravel()
    if isinstance(inner, np.ndarray):
        values, lost = _eliminate(inner, outer, given)
        reached[rows[lost]] = False
        n_iter, error, status = 0, len(rows) * EPS, Status.CONVERGED
    else:
        values, error, n_iter, status = _iterate(inner, outer, given, degree, tol, max_iter, deadline)
    distance = np.abs(values - (inner @ values + outer @ given) / degree[:, None])[reached[rows]]
    certificate = Certificate(float(distance.max(initial=0.0) * size.max()), float(size.max()), "KKT residual")
    x = np.zeros((W.shape[0], len(size)))
    x[labeled], x[rows] = given, values
    with np.errstate(over="ignore"):  # infinite where numbers and weights are huge
        energy = max(0.0, float(size**2 @ np.einsum("ic,ic->c", x, _laplacian_product(W, x))))
    x = middle + size * x
    x[labeled], x[~reached] = Y, fallback
    return HarmonicResult(x, energy, certificate, status, n_iter, unreached=np.flatnonzero(~reached), error=error)


def _find_reached(W: Any, labeled: np.ndarray) -> np.ndarray:
    """Which rows a path of edges joins to a labelled one."""
    if sparse.issparse(W):
        _, component = connected_components(W, directed=False)
        return np.isin(component, component[labeled])
    reached, frontier = np.zeros(len(W), dtype=bool), np.asarray(labeled)
    while len(frontier):
        reached[frontier] = True
        frontier = np.flatnonzero((W[frontier] > 0.0).any(axis=0) & ~reached)
    return reached


def _cut_edges(W: Any, rows: np.ndarray, labeled: np.ndarray) -> tuple[Any, Any]:
    """Edges among the free rows, and from them to labelled ones; dense where there are few."""
    if sparse.issparse(W):
        W = W[rows]
        inner, outer = W[:, rows], W[:, labeled]
        return (inner, outer) if len(rows) > MAX_DENSE_ROWS else (inner.toarray(), outer.toarray())
    inner, outer = W[np.ix_(rows, rows)].astype(float), W[np.ix_(rows, labeled)].astype(float)
    np.fill_diagonal(inner, 0.0)
    return inner, outer


def _laplacian_product(W: Any, x: np.ndarray) -> np.ndarray:
    degree = np.asarray(W.sum(axis=1), dtype=float).reshape(-1, 1)
    return degree * x - W @ x  # the diagonal of W is in both


def _eliminate(inner: np.ndarray, outer: np.ndarray, given: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Harmonic values, and which rows lost their way to a label since the weights on it are too small for a number."""
    shares = _absorb_walks(inner, outer) if len(inner) else outer
    total = shares.sum(axis=1, keepdims=True)
    lost = total[:, 0] < 0.5
    return np.clip(shares / np.where(lost[:, None], 1.0, total) @ given, -0.5, 0.5), lost


def _absorb_walks(inner: np.ndarray, outer: np.ndarray) -> np.ndarray:
    """Return for each row the shares of walks along ``inner`` edges that leave by each of the ``outer`` ones.

    The first half of the rows is eliminated: walks from it end in the other half or outside. With the detours through
    the first half among its edges, the other half is solved; the first follows.
    """
    n_rows = len(inner)
    if n_rows == 1:
        total = float(outer.sum())  # the way back to the row itself, where detours led, does not count
        return outer / total if total > 0.0 else np.zeros_like(outer)
    half = n_rows // 2
    left = _absorb_walks(inner[:half, :half], np.hstack([inner[:half, half:], outer[:half]]))
    crossed, gone = left[:, : n_rows - half], left[:, n_rows - half :]
    back = inner[half:, :half]
    others = _absorb_walks(inner[half:, half:] + back @ crossed, outer[half:] + back @ gone)
    return np.vstack([crossed @ others + gone, others])


def _iterate(
    inner: Any, outer: Any, given: np.ndarray, degree: np.ndarray, tol: float, max_iter: int, deadline: Deadline
) -> tuple[np.ndarray, float, int, Status]:
    """Eliminate the islands, iterate on the rows that are left, and return to the islands."""
    island = _find_islands(inner, outer, degree)
    if not len(island):
        return _conjugate_gradients(inner, outer @ given, degree, tol, max_iter, deadline)
    rest = np.setdiff1d(np.arange(len(degree)), island)
    away = inner[island][:, rest]
    coast, harbors = np.unique(away.indices), np.unique(outer[island].indices)  # rows and labels next to islands
    shares = _absorb_walks(
        inner[island][:, island].toarray(), np.hstack([away[:, coast].toarray(), outer[island][:, harbors].toarray()])
    )
    through = away[:, coast].toarray().T @ shares  # walks from the coast by an island to the coast or a label
    detours = through[:, : len(coast)]
    np.fill_diagonal(detours, 0.0)  # the way back to a row itself does not count
    kept = inner[rest][:, rest]
    place = np.repeat(coast, len(coast)), np.tile(coast, len(coast))
    kept = sparse.csr_array(kept + sparse.coo_array((detours.ravel(), place), shape=kept.shape))
    landed, total = outer[rest] @ given, np.asarray(outer[rest].sum(axis=1)).ravel()
    landed[coast] += through[:, len(coast) :] @ given[harbors]
    total[coast] += through[:, len(coast) :].sum(axis=1)
    inner_values, error, n_iter, status = _conjugate_gradients(
        kept, landed, total + np.asarray(kept.sum(axis=1)).ravel(), tol, max_iter, deadline
    )
    values = np.empty((len(degree), given.shape[1]))
    values[rest] = inner_values
    values[island] = shares @ np.vstack([inner_values[coast], given[harbors]])
    if (shares.sum(axis=1) < 0.5).any():  # edges too weak for a number: the values there may be any
        return values, 1.0, n_iter, Status.PRECISION
    return values, error + len(island) * EPS, n_iter, status


def _find_islands(inner: Any, outer: Any, degree: np.ndarray) -> np.ndarray:
    """Rows in small groups that hang on the others, and on labels, by weak edges only."""
    edges = inner.tocoo()
    strong = edges.data >= MAX_WEAK_EDGE * np.minimum(degree[edges.row], degree[edges.col])
    bridges = sparse.coo_array((edges.data[strong], (edges.row[strong], edges.col[strong])), shape=inner.shape)
    n_groups, group = connected_components(bridges, directed=False)
    size = np.bincount(group, minlength=n_groups)
    size[group[outer.max(axis=1).toarray().ravel() >= MAX_WEAK_EDGE * degree]] = 0  # on the mainland
    order = np.argsort(size, kind="stable")
    small = order[(size[order] > 0) & (np.cumsum(size[order]) <= MAX_ISLAND_ROWS)]
    return np.flatnonzero(np.isin(group, small))


def _conjugate_gradients(
    inner: Any, b: np.ndarray, degree: np.ndarray, tol: float, max_iter: int, deadline: Deadline
) -> tuple[np.ndarray, float, int, Status]:
    """Values with ``degree * f - inner @ f = b``, the bound on their errors, the number of steps, why it stopped."""
    d, B = degree[:, None], np.column_stack([b, degree])  # the last column: times to a label
    X, best, n_iter = np.zeros(B.shape), np.inf, 0
    rounding = EPS * (2 + int(np.diff(inner.indptr).max()))
    while True:
        R = B - (d * X - inner @ X)  # as the recurrence drifts away from it
        error = _bound_error(X, R / d, rounding)
        if error <= tol:
            status = Status.CONVERGED
        elif n_iter >= max_iter:
            status = Status.MAX_ITER
        elif n_iter > 0 and deadline.is_over:
            status = Status.MAX_TIME
        elif n_iter > 0 and (error > 0.5 * best or rounding * X[:, -1].max() > tol or error == np.inf):
            status = Status.PRECISION
        else:
            best = error
            n_iter = _descend(inner, X, R, d, rounding, tol, n_iter, max_iter, deadline)
            continue
        return np.clip(X[:, :-1], -0.5, 0.5), error, n_iter, status


def _bound_error(X: np.ndarray, Z: np.ndarray, rounding: float) -> float:
    """Bound the errors of all but the last column, by the last; infinite as long as that is too rough.

    ``Z`` are the residuals divided by the degrees, and ``rounding`` bounds what these may be off, relative to the
    values. Without it, times as long as its inverse would look right where a group of rows hangs on nothing.
    """
    longest = float(X[:, -1].max())
    certain = 1.0 - float(Z[:, -1].max()) - 2.0 * rounding * longest
    if not certain > 0.0:
        return np.inf
    return (float(np.abs(Z[:, :-1]).max()) + rounding) * longest / certain


def _descend(
    inner: Any,
    X: np.ndarray,
    R: np.ndarray,
    d: np.ndarray,
    rounding: float,
    tol: float,
    n_iter: int,
    max_iter: int,
    deadline: Deadline,
) -> int:
    """Update ``X`` and its residuals in place until the bound is within the tolerance; return the steps so far."""
    Z = R / d
    P, slope = Z.copy(), np.einsum("ic,ic->c", R, Z)
    while n_iter < max_iter:
        AP = d * P - inner @ P
        curvature = np.einsum("ic,ic->c", P, AP)
        step = np.divide(slope, curvature, out=np.zeros_like(slope), where=curvature > 0.0)
        X += step * P
        R -= step * AP
        n_iter += 1
        np.divide(R, d, out=Z)
        look = n_iter % STEPS_PER_CHECK == 0
        if look and (_bound_error(X, Z, rounding) <= tol or np.abs(Z[:, :-1]).max() <= MIN_RESIDUAL):
            break
        if look and deadline.is_over:
            break
        before, slope = slope, np.einsum("ic,ic->c", R, Z)
        P *= np.divide(slope, before, out=np.zeros_like(slope), where=before > 0.0)
        P += Z
    return n_iter

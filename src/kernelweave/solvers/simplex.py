r"""Small convex problems over the weights of kernels: projections and quadratic programs.

The weights lie on a simplex, :math:`\{w \ge 0,\; r^\top w = 1\}`, or in the positive part of a ball,
:math:`\{w \ge 0,\; \|w\|_p \le 1\}`, :math:`p > 1`. All functions are exact up to rounding, or to the accuracy named,
and deterministic.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dposv

EPS = float(np.finfo(float).eps)
MAX_ENTRY = EPS**-0.5  # entries of a point that leave half of the digits to its place on the simplex
MIN_RIDGE = 100 * EPS  # of the diagonal, where rounding made a matrix indefinite
RIDGE = 1e-12  # of the mean diagonal: makes equal kernels share their weight, and moves an optimum by no more
BARRIER_FACTOR = 0.1  # of the barrier from one round of Newton steps to the next
MAX_NEWTON_STEPS = 50  # of the barrier method in one round; five are usual


def project(point: np.ndarray, coefficients: np.ndarray | None = None) -> np.ndarray:
    r"""Return the nearest point of :math:`\{w \ge 0,\; r^\top w = 1\}`, r being ones or the positive ``coefficients``.

    It is :math:`\max(0, z - \lambda r)`, and :math:`\lambda` follows from sorting :math:`z_k / r_k`. It is the same
    for a point plus a multiple of r, so that one so far away that the 1 is lost in rounding is first brought near.
    """
    r = np.ones(len(point)) if coefficients is None else coefficients
    if np.abs(point).max() > MAX_ENTRY:
        point = point - (point / r).max() * r
    order = np.argsort(-point / r, kind="stable")
    z, r_sorted = point[order], r[order]
    shifts = (np.cumsum(r_sorted * z) - 1.0) / np.cumsum(r_sorted**2)
    n_positive = max(1, int(np.count_nonzero(z > shifts * r_sorted)))
    w = np.maximum(0.0, point - shifts[n_positive - 1] * r)
    return np.asarray(w / (r @ w))


def project_on_ball(point: np.ndarray, p: float) -> np.ndarray:
    r"""Return the nearest point of :math:`\{w \ge 0,\; \|w\|_p \le 1\}`, :math:`p > 1`.

    Outside the ball, :math:`w_k + \lambda w_k^{p-1} = z_k` for positive :math:`z_k`, with :math:`\lambda` such that the
    norm is 1; both are found by bisection.
    """
    z = np.maximum(point, 0.0)
    if np.isinf(p):
        return np.minimum(z, 1.0)
    if np.linalg.norm(z, p) <= 1.0:
        return z
    low, high = 0.0, 1.0
    while np.linalg.norm(_shrink(z, high, p), p) > 1.0:
        low, high = high, 4.0 * high
    while high - low > 4 * EPS * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if np.linalg.norm(_shrink(z, middle, p), p) > 1.0 else (low, middle)
    w = _shrink(z, high, p)
    return np.asarray(w / np.linalg.norm(w, p))


def _shrink(z: np.ndarray, multiplier: float, p: float) -> np.ndarray:
    """Solve ``w + multiplier w^(p-1) = z`` for each entry."""
    low, high = np.zeros(len(z)), z.copy()
    for _ in range(60):
        middle = 0.5 * (low + high)
        above = middle + multiplier * middle ** (p - 1.0) > z
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return 0.5 * (low + high)


def minimise_quadratic(H: np.ndarray, c: np.ndarray) -> np.ndarray:
    r"""Minimise :math:`\tfrac12 w^\top H w + c^\top w` over :math:`w \ge 0,\; \sum w = 1`.

    A primal active-set method that begins at the best vertex. Each round lets one more weight become positive, the one
    whose gradient promises most, and walks to the minimum of the positive ones; weights that meet zero on the way leave
    again. A tiny ridge makes :math:`H` definite, so that every round descends and none comes twice.

    Parameters
    ----------
    H : ndarray of shape (n_weights, n_weights)
        Symmetric and positive semi-definite.
    c : ndarray of shape (n_weights,)

    Returns
    -------
    ndarray of shape (n_weights,)
    """
    scale = max(float(H.trace()) / len(c), float(np.abs(c).max()), np.finfo(float).tiny)
    H, c = H / scale, c / scale
    H.flat[:: len(c) + 1] += RIDGE
    w = np.zeros(len(c))
    w[(0.5 * H.diagonal() + c).argmin()] = 1.0
    tolerance = 100 * EPS * max(1.0, float(np.abs(H).max()))
    for _ in range(20 * len(c) + 20):
        gradient, positive = H @ w + c, w > 0.0
        excess = gradient - gradient @ w
        excess[positive] = np.inf
        entering = int(excess.argmin())
        if excess[entering] >= -tolerance:
            break
        before = 0.5 * w @ (gradient + c)
        positive[entering] = True
        w_next = _minimum_on_face(H, c, w, positive.nonzero()[0])
        if 0.5 * w_next @ (H @ w_next + 2.0 * c) >= before:  # rounding is all that is left
            break
        w = w_next
    return w


def _minimum_on_face(H: np.ndarray, c: np.ndarray, w: np.ndarray, face: np.ndarray) -> np.ndarray:
    """Walk to the minimum over the weights of a face; those that meet zero on the way leave it."""
    w = w.copy()
    while True:
        free, unit = solve_definite(H[face[:, None], face], np.array([-c[face], np.ones(len(face))]).T).T
        target = free + unit * ((1.0 - free.sum()) / unit.sum())
        if target.min() > 0.0:
            w[face] = target / target.sum()
            return w
        leaving, step = target <= 0.0, target - w[face]
        shares = w[face][leaving] / np.maximum(-step[leaving], np.finfo(float).tiny)
        w[face] = np.maximum(0.0, w[face] + min(1.0, float(shares.min())) * step)
        w[face[leaving][shares <= shares.min()]] = 0.0
        w /= w.sum()
        face = np.flatnonzero(w > 0.0)
        if len(face) <= 1:
            return w


def minimise_quadratic_in_ball(H: np.ndarray, c: np.ndarray, p: float, accuracy: float = 1e-9) -> np.ndarray:
    r"""Minimise :math:`\phi(w) = \tfrac12 w^\top H w + c^\top w` over :math:`w \ge 0,\; \|w\|_p \le 1, p > 1`.

    A barrier method: Newton steps on :math:`\phi(w) - \mu \log(1 - \sum w^p) - \mu \sum \log w`, whose minimum misses
    that of :math:`\phi` by at most :math:`\mu` times one more than the number of weights.

    Parameters
    ----------
    H : ndarray of shape (n_weights, n_weights)
        Symmetric and positive semi-definite.
    c : ndarray of shape (n_weights,)
    p : float
    accuracy : float
        By which the minimum may be missed, relative to the size of the terms.

    Returns
    -------
    ndarray of shape (n_weights,)
    """
    scale = max(float(np.trace(H)) / len(c), float(np.abs(c).max()), np.finfo(float).tiny)
    H, c, n = H / scale, c / scale, len(c)

    def barrier(w: np.ndarray, strength: float) -> float:
        room = 1.0 - float((w**p).sum()) if w.min() > 0.0 else 0.0
        if room <= 0.0:
            return np.inf
        return float(0.5 * w @ H @ w + c @ w - strength * (np.log(room) + np.log(w).sum()))

    w, strength = np.full(n, 0.9 * n ** (-1.0 / p)), 1.0
    while strength * (n + 1) > accuracy:
        strength *= BARRIER_FACTOR
        for _ in range(MAX_NEWTON_STEPS):
            room = 1.0 - float((w**p).sum())
            slope = p * w ** (p - 1.0) / room
            gradient = H @ w + c + strength * (slope - 1.0 / w)
            curvature = p * (p - 1.0) * w ** (p - 2.0) / room + 1.0 / w**2
            step = -solve_definite(H + strength * (np.diag(curvature) + np.outer(slope, slope)), gradient)
            decrement = -float(gradient @ step)
            if decrement <= 0.1 * strength:
                break
            length, before = 1.0, barrier(w, strength)
            while barrier(w + length * step, strength) > before - 0.1 * length * decrement and length > EPS:
                length *= 0.5
            w = w + length * step
    return w


def solve_definite(
    A: np.ndarray, right: np.ndarray, *, ridge: float = 0.0, least: float = MIN_RIDGE, factor: float = 100.0
) -> np.ndarray:
    """Solve with a matrix that is positive definite but for rounding.

    Parameters
    ----------
    A : ndarray of shape (n, n)
    right : ndarray of shape (n,) or (n, n_columns)
    ridge : float
        Added to the diagonal from the start.
    least, factor : float
        While the matrix is not definite, the ridge grows by ``factor``, and is ``least`` times the largest entry of the
        diagonal at first. One as large as that entry is not rounding: a ``LinAlgError``.

    Returns
    -------
    ndarray of the shape of ``right``
    """
    while True:
        _, solution, failed = dposv(A + ridge * np.eye(len(A)) if ridge else A, right)
        if not failed:
            return np.asarray(solution)
        largest = float(A.diagonal().max())
        ridge = max(factor * ridge, least * largest)
        if not ridge < largest:  # nor if it is NaN
            raise np.linalg.LinAlgError("A matrix that should be positive definite is far from it, or holds NaN.")

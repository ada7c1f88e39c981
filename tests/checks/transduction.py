"""The problems of transductive machines as the papers print them, by a generic solver of cone programs."""

import cvxpy as cp
import numpy as np

TOLERANCES = (1e-10, 1e-8, 1e-7)  # the tightest that Clarabel reaches; the last for norms other than 1 and 2 only


def hinge(z, s=1.0):
    """The hinge that ends at s."""
    return np.maximum(0.0, s - z)


def ramp(z, s):
    """The ramp, as the difference of two hinges."""
    return hinge(z) - hinge(z, s)


def convex_problem(kernels, y, cost, cost_unlabeled, slopes, s, mean, norm=1.0):
    """Solve (4) of TSVM-MKL in primal variables; return its value and the outputs at all rows.

    Labelled rows come first. ``slopes`` of shape (2, n_unlabeled) belong to the copies with sign +1 and -1. One kernel,
    or several whose weights, of a norm at most 1, are learned; the tangents of the subtracted hinges are there in full,
    so that the value is that of the function that touches the problem (2) from above.
    """
    n_labeled = len(y)
    features = [factor(K) for K in kernels]
    v = [cp.Variable(F.shape[1]) for F in features]
    b = cp.Variable()
    g = sum(F @ part for F, part in zip(features, v, strict=True)) + b
    # With weights of p-norm at most 1, min_w sum |f_k|^2 / w_k is the squared 2p/(p+1)-norm of all |f_k|.
    norms = cp.hstack([cp.norm(part) for part in v])
    size = cp.square(cp.norm(norms, 2 * norm / (norm + 1))) if len(v) > 1 else cp.sum_squares(v[0])
    value = 0.5 * size + cost @ cp.pos(1 - cp.multiply(y, g[:n_labeled]))
    for sign, slope in zip((1.0, -1.0), slopes, strict=True):
        z = sign * g[n_labeled:]
        tangent = cp.multiply(slope, z) + s * (slope < 0)
        value += cost_unlabeled @ (cp.pos(1 - z) - tangent)
    constraints = [] if mean is None else [cost_unlabeled @ g[n_labeled:] == mean * cost_unlabeled.sum()]
    return minimum(value, constraints), g.value


def virtual_sample_dual(K, y, cost, cost_unlabeled, slopes, s, mean):
    """Solve the dual of (4) with explicit copies and the virtual sample x_0 of Collobert et al.; return its value."""
    n_labeled, n_unlabeled = len(y), len(cost_unlabeled)
    share = np.r_[np.zeros(n_labeled), cost_unlabeled / cost_unlabeled.sum()]
    virtual = np.r_[[share], np.eye(n_labeled + n_unlabeled)]  # x_0, then the rows, as mixtures of rows
    rows = np.r_[0, 1 : n_labeled + n_unlabeled + 1, n_labeled + 1 : n_labeled + n_unlabeled + 1]
    labels = np.r_[mean, y, np.ones(n_unlabeled), -np.ones(n_unlabeled)]
    alpha = cp.Variable(len(rows))
    box = np.r_[cost, cost_unlabeled, cost_unlabeled]
    moved = np.r_[0.0, np.zeros(n_labeled), cost_unlabeled * slopes[0], -cost_unlabeled * slopes[1]]
    signs = np.r_[1.0, labels[1:]]
    x = cp.multiply(signs, alpha) + moved
    F = factor(virtual @ K @ virtual.T)[rows]
    # The copies pay H_1 but for the tangent: of the dual's linear term, alpha counts 1 (r for x_0) and nu Y g nothing.
    linear = np.r_[mean, np.ones(len(rows) - 1)]
    value = 0.5 * cp.sum_squares(F.T @ x) - linear @ alpha
    constraints = [alpha[1:] >= 0, alpha[1:] <= box, cp.sum(x) == 0]
    constant = -s * float(((slopes < 0) @ cost_unlabeled).sum())
    return -minimum(value, constraints) + constant


def factor(K):
    """A matrix F with F F' = K, of the rank of K."""
    values, vectors = np.linalg.eigh(K)
    kept = values > len(K) * np.finfo(float).eps * values[-1]
    return np.sqrt(values[kept]) * vectors[:, kept]


def minimum(value, constraints):
    """Minimise with Clarabel as accurately as it can."""
    problem = cp.Problem(cp.Minimize(value), constraints)
    for tol in TOLERANCES:
        problem.solve(solver="CLARABEL", tol_gap_abs=tol, tol_gap_rel=tol, tol_feas=tol)
        if problem.status == "optimal":
            return float(problem.value)
    raise RuntimeError(f"The reference solver stopped: {problem.status}")

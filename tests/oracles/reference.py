"""Slow, obvious, trusted: the whole problem at once, by another road than the solvers of this library.

Every function takes the problem as it is printed, in primal variables with all columns. The offset is free (not
penalised), ``"penalized"`` like a coefficient, or absent (None); ``positive`` binds the coefficients, never the offset.
For tests and benchmarks only.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linprog

from kernelweave.solvers.columns.masters import Intercept
from kernelweave.solvers.margin import MarginRows

CONIC_TOLERANCES = (1e-11, 1e-10, 1e-9, 1e-8)  # the tightest that Clarabel reaches


@dataclass(frozen=True)
class ReferenceSolution:
    """Optimum of a full problem."""

    objective: float
    coef: np.ndarray
    intercept: float
    rho: float = 0.0


@dataclass(frozen=True)
class KernelWeights:
    r"""Optimum of a problem over weights of kernels.

    Attributes
    ----------
    objective : float
    weights : ndarray of shape (n_kernels,)
        The :math:`\theta` of the paper; first the one of the identity where the ridge is learned.
    """

    objective: float
    weights: np.ndarray


def full_lp(
    K: np.ndarray,
    rows: MarginRows,
    *,
    positive: bool = False,
    intercept: Intercept = "free",
    time_limit: float | None = None,
) -> ReferenceSolution:
    r"""Solve the 1-norm problem (SSMK (9), CG-Boost (4)) in the variables :math:`u, v, b, \xi` as printed.

    .. math:: \min\; \sum_j |\alpha_j| \;(+\, |b|) + \sum_r c_r \xi_r \quad \text{s.t.} \quad
        s_r f(x_{i_r}) + \xi_r \ge t_r,\; \xi \ge 0, \qquad f = K \alpha + b,\; \alpha = u - v .

    Parameters
    ----------
    K : ndarray of shape (n_points, n_columns)
    rows : MarginRows
    positive : bool
    intercept : {"free", "penalized"} or None
    time_limit : float, optional
        Seconds, after which it gives up with a ``TimeoutError``.
    """
    A, price, lower = _linear_variables(K, rows, positive, intercept)
    n_rows = len(rows.sign)
    x, value = _linear_program(
        cost=np.concatenate([price, rows.cost]),
        A=np.hstack([-A, -np.eye(n_rows)]),
        upper=-rows.target,
        lower=np.concatenate([lower, np.zeros(n_rows)]),
        time_limit=time_limit,
    )
    return ReferenceSolution(value, *_split(x, K.shape[1], positive, intercept))


def full_nu_lp(
    K: np.ndarray, rows: MarginRows, *, positive: bool = False, intercept: Intercept = "free"
) -> ReferenceSolution:
    r"""Solve the 1-norm problem that chooses its margin (LPBoost), targets being ignored.

    .. math:: \min\; -\rho + \sum_r c_r \xi_r \quad \text{s.t.} \quad
        s_r f(x_{i_r}) \ge \rho - \xi_r,\; \xi \ge 0,\; \sum_j |\alpha_j| \;(+\, |b|) \le 1 .

    Parameters
    ----------
    K : ndarray of shape (n_points, n_columns)
    rows : MarginRows
    positive : bool
    intercept : {"free", "penalized"} or None
    """
    A, price, lower = _linear_variables(K, rows, positive, intercept)
    n_rows = len(rows.sign)
    margins = np.hstack([-A, np.ones((n_rows, 1)), -np.eye(n_rows)])
    ball = np.concatenate([price, np.zeros(1 + n_rows)])
    x, value = _linear_program(
        cost=np.concatenate([np.zeros(len(price)), [-1.0], rows.cost]),
        A=np.vstack([margins, ball]),
        upper=np.append(np.zeros(n_rows), 1.0),
        lower=np.concatenate([lower, [-np.inf], np.zeros(n_rows)]),
    )
    return ReferenceSolution(value, *_split(x, K.shape[1], positive, intercept), rho=float(x[len(price)]))


def full_qp(
    K: np.ndarray, rows: MarginRows, *, positive: bool = False, intercept: Intercept = "free"
) -> ReferenceSolution:
    r"""Solve the 2-norm problem (CG-Boost (7), (11), (13)) with all columns.

    .. math:: \min\; \tfrac12 \|\alpha\|^2 \;(+\, \tfrac12 b^2) + \sum_r c_r \xi_r \quad \text{s.t.} \quad
        s_r f(x_{i_r}) + \xi_r \ge t_r,\; \xi \ge 0 .

    Parameters
    ----------
    K : ndarray of shape (n_points, n_columns)
    rows : MarginRows
    positive : bool
    intercept : {"free", "penalized"} or None
    """
    cp = _cvxpy()
    coef, b, offset_penalty = _conic_variables(K.shape[1], positive, intercept)
    xi = cp.Variable(len(rows.sign), nonneg=True)
    margins = cp.multiply(rows.sign, K[rows.point] @ coef + b)
    objective = 0.5 * cp.sum_squares(coef) + offset_penalty + rows.cost @ xi
    value = _conic_program(objective, [margins + xi >= rows.target])
    return ReferenceSolution(value, np.array(coef.value), _number(b))


def full_nu_qp(
    K: np.ndarray, rows: MarginRows, *, positive: bool = False, intercept: Intercept = "free"
) -> ReferenceSolution:
    r"""Solve the 2-norm problem that chooses its margin, targets being ignored.

    .. math:: \min\; \tfrac12 \|\alpha\|^2 \;(+\, \tfrac12 b^2) - \rho + \sum_r c_r \xi_r \quad \text{s.t.} \quad
        s_r f(x_{i_r}) \ge \rho - \xi_r,\; \xi \ge 0 .

    Parameters
    ----------
    K : ndarray of shape (n_points, n_columns)
    rows : MarginRows
    positive : bool
    intercept : {"free", "penalized"} or None
    """
    cp = _cvxpy()
    coef, b, offset_penalty = _conic_variables(K.shape[1], positive, intercept)
    xi, rho = cp.Variable(len(rows.sign), nonneg=True), cp.Variable()
    margins = cp.multiply(rows.sign, K[rows.point] @ coef + b)
    objective = 0.5 * cp.sum_squares(coef) + offset_penalty - rho + rows.cost @ xi
    value = _conic_program(objective, [margins >= rho - xi])
    return ReferenceSolution(value, np.array(coef.value), _number(b), _number(rho))


def full_rkhs(
    grams: Sequence[np.ndarray], K: Sequence[np.ndarray], rows: MarginRows, *, intercept: Intercept = "free"
) -> ReferenceSolution:
    r"""Solve the problem with the norm of each kernel's own space.

    .. math:: \min\; \tfrac12 \sum_p \alpha_p^\top G_p \alpha_p \;(+\, \tfrac12 b^2) + \sum_r c_r \xi_r
        \quad \text{s.t.} \quad s_r f(x_{i_r}) + \xi_r \ge t_r,\; \xi \ge 0, \qquad f = \sum_p K_p \alpha_p + b .

    Parameters
    ----------
    grams : sequence of ndarray of shape (n_centers, n_centers)
        Positive semi-definite.
    K : sequence of ndarray of shape (n_points, n_centers)
    rows : MarginRows
    intercept : {"free", "penalized"} or None

    Returns
    -------
    ReferenceSolution
        ``coef`` holds the kernels' coefficients one after another.
    """
    cp = _cvxpy()
    coefs = [cp.Variable(len(G)) for G in grams]
    b, offset_penalty = _conic_offset(intercept)
    xi = cp.Variable(len(rows.sign), nonneg=True)
    f = sum(K_p[rows.point] @ coef for K_p, coef in zip(K, coefs, strict=True)) + b
    norms = sum(cp.sum_squares(_factor(G) @ coef) for G, coef in zip(grams, coefs, strict=True))
    objective = 0.5 * norms + offset_penalty + rows.cost @ xi
    value = _conic_program(objective, [cp.multiply(rows.sign, f) + xi >= rows.target])
    return ReferenceSolution(value, np.concatenate([coef.value for coef in coefs]), _number(b))


def discriminant_sdp(
    kernels: Sequence[np.ndarray], H: np.ndarray, ridge: float | None, *, divided: bool = False
) -> KernelWeights:
    r"""Solve the kernel learning of discriminant analysis: RKDA (16) and (34), or (40) and (41).

    .. math:: \min\; \sum_j t_j \quad \text{s.t.} \quad
        \begin{pmatrix} I + \frac1\lambda \sum_i \theta_i \tilde G_i & h_j \\ h_j^\top & t_j \end{pmatrix} \succeq 0
        \text{ for all } j, \quad \theta \ge 0,\; \sum_i \theta_i \operatorname{tr} \tilde G_i = 1,

    where for a learned ridge the identity is one of the kernels and there is no :math:`I`.

    Parameters
    ----------
    kernels : sequence of ndarray of shape (n_points, n_points)
        Centred.
    H : ndarray of shape (n_points, n_columns)
        The vector a of (8) as its one column, for (16) and (40); the class indicators for (34) and (41).
    ridge : float or None
        None: it is learned.
    divided : bool
        The first block multiplied by the ridge, and so the optimum divided by it: for small ones.
    """
    M, variables, constraints = _ridged_sum(kernels, ridge, divided)
    cp = _cvxpy()
    t = cp.Variable(H.shape[1])
    constraints += [_bordered(M, H[:, [j]], cp.reshape(t[j], (1, 1), order="C")) for j in range(H.shape[1])]
    return KernelWeights(_conic_program(cp.sum(t), constraints), np.array(variables.value))


def joint_discriminant_sdp(
    kernels: Sequence[np.ndarray], H: np.ndarray, ridge: float | None, *, divided: bool = False
) -> KernelWeights:
    r"""Solve the approximate kernel learning of discriminant analysis, RKDA (37), or its form with a learned ridge.

    As :func:`discriminant_sdp`, with one matrix that has all :math:`h_j` beside the kernels and
    :math:`\operatorname{Diag}(t)` in the corner.

    Parameters
    ----------
    kernels : sequence of ndarray of shape (n_points, n_points)
    H : ndarray of shape (n_points, n_columns)
    ridge : float or None
    divided : bool
    """
    M, variables, constraints = _ridged_sum(kernels, ridge, divided)
    cp = _cvxpy()
    t = cp.Variable(H.shape[1])
    constraints.append(_bordered(M, H, cp.diag(t)))
    return KernelWeights(_conic_program(cp.sum(t), constraints), np.array(variables.value))


def within_discriminant_sdp(kernels: Sequence[np.ndarray], a: np.ndarray, J: np.ndarray, ridge: float) -> KernelWeights:
    r"""Solve the kernel learning of Kim et al., the maximum of RKDA (9) over (10).

    .. math:: \max\; \frac1\lambda (a^\top G a - s) \quad \text{s.t.} \quad
        \begin{pmatrix} \lambda I + J G J & J G a \\ a^\top G J & s \end{pmatrix} \succeq 0, \quad
        G = \sum_i \theta_i G_i,\; \theta \ge 0,\; \sum_i \theta_i = 1 .

    Parameters
    ----------
    kernels : sequence of ndarray of shape (n_points, n_points)
    a : ndarray of shape (n_points,)
    J : ndarray of shape (n_points, n_points)
        As printed, or with other shares of the classes.
    ridge : float
    """
    cp = _cvxpy()
    theta, s = cp.Variable(len(kernels), nonneg=True), cp.Variable()
    M = ridge * np.eye(len(a)) + sum(theta[i] * (J @ G @ J) for i, G in enumerate(kernels))
    border = sum(theta[i] * (J @ G @ a)[:, None] for i, G in enumerate(kernels))
    constraints = [cp.sum(theta) == 1, _bordered(M, border, cp.reshape(s, (1, 1), order="C"))]
    value = _conic_program((s - np.array([a @ G @ a for G in kernels]) @ theta) / ridge, constraints)
    return KernelWeights(-value, np.array(theta.value))


def _linear_variables(
    K: np.ndarray, rows: MarginRows, positive: bool, intercept: Intercept
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Margins of the rows in the variables u, v, b; what each variable costs; its lower bound."""
    signed = rows.sign[:, None] * K[rows.point]
    sign = rows.sign[:, None]
    parts = [signed] if positive else [signed, -signed]
    n_coefs = len(parts) * K.shape[1]
    offset = {"free": [sign], "penalized": [sign, -sign], None: []}[intercept]
    price = np.concatenate([np.ones(n_coefs), {"free": [0.0], "penalized": [1.0, 1.0], None: []}[intercept]])
    lower = np.concatenate([np.zeros(n_coefs), {"free": [-np.inf], "penalized": [0.0, 0.0], None: []}[intercept]])
    return np.hstack(parts + offset), price, lower


def _linear_program(
    cost: np.ndarray, A: np.ndarray, upper: np.ndarray, lower: np.ndarray, time_limit: float | None = None
) -> tuple[np.ndarray, float]:
    """Minimise ``cost @ x`` subject to ``A x <= upper`` and ``x >= lower``."""
    options = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    if time_limit is not None:
        options["time_limit"] = time_limit
    bounds = np.column_stack([lower, np.full(len(lower), np.inf)])
    result = linprog(cost, A_ub=A, b_ub=upper, bounds=bounds, method="highs", options=options)
    if result.status == 1:
        raise TimeoutError(f"The reference solver took longer than {time_limit} s.")
    if result.status != 0:
        raise RuntimeError(f"The reference solver stopped: {result.message}")
    return result.x, float(result.fun)


def _split(x: np.ndarray, n_columns: int, positive: bool, intercept: Intercept) -> tuple[np.ndarray, float]:
    """Coefficients and offset from the variables of a linear program."""
    coef, rest = x[:n_columns], x[n_columns:]
    if not positive:
        coef, rest = coef - rest[:n_columns], rest[n_columns:]
    if intercept == "penalized":
        return coef, float(rest[0] - rest[1])
    return coef, float(rest[0]) if intercept == "free" else 0.0


def _cvxpy() -> Any:
    try:
        import cvxpy
    except ImportError as error:
        raise ImportError(
            "The conic reference problems need cvxpy and clarabel; install them with: pip install 'kernelweave[test]'"
        ) from error
    return cvxpy


def _conic_variables(n_columns: int, positive: bool, intercept: Intercept) -> tuple[Any, Any, Any]:
    """Coefficients, the offset and its penalty."""
    return _cvxpy().Variable(n_columns, nonneg=positive), *_conic_offset(intercept)


def _conic_offset(intercept: Intercept) -> tuple[Any, Any]:
    b = 0.0 if intercept is None else _cvxpy().Variable()
    return b, 0.5 * b**2 if intercept == "penalized" else 0.0


def _ridged_sum(kernels: Sequence[np.ndarray], ridge: float | None, divided: bool) -> tuple[Any, Any, list[Any]]:
    """The first block of the matrix inequalities, the weights in it, and their constraints."""
    cp = _cvxpy()
    identity = np.eye(len(kernels[0]))
    terms = [identity, *kernels] if ridge is None else list(kernels)
    theta = cp.Variable(len(terms), nonneg=True)
    M = sum(theta[i] * G for i, G in enumerate(terms))
    if ridge is not None:
        M = ridge * identity + M if divided else identity + M / ridge
    return M, theta, [np.array([np.trace(G) for G in terms]) @ theta == 1]


def _bordered(M: Any, border: Any, corner: Any) -> Any:
    cp = _cvxpy()
    block = cp.bmat([[M, border], [border.T, corner]])
    return 0.5 * (block + block.T) >> 0


def _conic_program(objective: Any, constraints: list[Any]) -> float:
    """Minimise with Clarabel as accurately as it can."""
    cp = _cvxpy()
    problem = cp.Problem(cp.Minimize(objective), constraints)
    for tol in CONIC_TOLERANCES:
        with warnings.catch_warnings():  # of an inaccurate solution, which the status tells
            warnings.simplefilter("ignore", UserWarning)
            problem.solve(solver="CLARABEL", tol_gap_abs=tol, tol_gap_rel=tol, tol_feas=tol)
        if problem.status == "optimal":
            return float(problem.value)
        if problem.status != "optimal_inaccurate":
            break
    raise RuntimeError(f"The reference solver stopped: {problem.status}")


def _number(variable: Any) -> float:
    return float(getattr(variable, "value", variable))


def _factor(G: np.ndarray) -> np.ndarray:
    """A matrix F with F'F = G, of the rank of G."""
    values, vectors = np.linalg.eigh(G)
    kept = values > len(G) * np.finfo(float).eps * values[-1]
    return np.sqrt(values[kept])[:, None] * vectors[:, kept].T

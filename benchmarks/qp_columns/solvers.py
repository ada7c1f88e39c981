"""The peers, each at the loosest tolerance that reaches the gap asked for."""

import time

import numpy as np
import piqp
from sklearn.svm import SVC, LinearSVC

TOO_LONG = 10.0  # seconds for one solve


def timed(solve, tolerances, gap, wanted, repeats):
    """Return (time, gap) at the first tolerance that reaches the gap; None if none does in time."""
    for tol in tolerances:
        start = time.perf_counter()
        x, b = solve(tol)
        seconds = time.perf_counter() - start
        reached = gap(x, b)
        if reached <= wanted:
            times = [seconds]
            for _ in range(repeats - 1):
                start = time.perf_counter()
                solve(tol)
                times.append(time.perf_counter() - start)
            return float(np.median(times)), reached
        if seconds > TOO_LONG:
            break
    return None


def libsvm(Z, rows, form, gap, wanted, repeats):
    """C-SVC on the Gram matrix: a free offset only."""
    if form["intercept"] != "free" or form["positive"]:
        return None
    Q = Z @ Z.T

    def solve(tol):
        model = SVC(C=rows.cost[0], kernel="precomputed", tol=tol, cache_size=1000).fit(Q, rows.sign)
        x = np.zeros(len(Q))
        x[model.support_] = model.dual_coef_[0]
        return x, float(model.intercept_[0])

    return timed(solve, np.geomspace(1.0, 1e-6, 13), gap, wanted, repeats)


def liblinear(Z, rows, form, gap, wanted, repeats):
    """Dual coordinate descent on the columns: a penalised offset or none. Its duals come from its coefficients."""
    if form["intercept"] == "free" or form["positive"]:
        return None
    columns = np.hstack([Z, np.ones((len(Z), 1))]) if form["intercept"] == "penalized" else Z

    def solve(tol):
        model = LinearSVC(C=rows.cost[0], loss="hinge", fit_intercept=False, tol=tol, max_iter=20_000, random_state=0)
        return model.fit(columns, rows.sign).coef_[0], 0.0

    def primal_gap(a, _):
        # LIBLINEAR gives no duals: its primal value is compared with the optimum, known to a thousandth of the gap.
        primal = 0.5 * a @ a + rows.loss(columns @ a)
        return (primal - best) / primal

    best = optimum(Z, rows, form)
    return timed(solve, np.geomspace(1.0, 1e-6, 13), primal_gap, wanted, repeats)


def optimum(Z, rows, form):
    from kernelweave.solvers.columns.qp_masters import QPMaster

    master = QPMaster(rows, tol=1e-6, **form)
    master.add_columns(np.arange(Z.shape[1]), Z)
    return master.solve().dual_value


def interior_point(Z, rows, form, gap, wanted, repeats):
    """The dual in the signed duals (and the multipliers of ``coefficients >= 0``) by a dense interior point method."""
    n, m = Z.shape
    P = Z @ Z.T + (1.0 if form["intercept"] == "penalized" else 0.0)
    ends = rows.sign * rows.cost
    lower, upper, c = np.minimum(0.0, ends), np.maximum(0.0, ends), -rows.sign
    if form["positive"]:
        P = np.block([[P, Z], [Z.T, np.eye(m)]])
        lower, upper = np.append(lower, np.zeros(m)), np.append(upper, np.full(m, np.inf))
        c = np.append(c, np.zeros(m))
    A = np.append(np.ones(n), np.zeros(len(c) - n))[None, :] if form["intercept"] == "free" else None

    def solve(tol):
        solver = piqp.DenseSolver()
        solver.settings.eps_abs = solver.settings.eps_rel = tol
        equality = {} if A is None else {"A": np.asfortranarray(A), "b": np.zeros(1)}
        solver.setup(P=np.asfortranarray(P), c=c, x_l=lower, x_u=upper, **equality)
        solver.solve()
        return np.asarray(solver.result.x)[:n], 0.0 if A is None else float(solver.result.y[0])

    return timed(solve, (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8), gap, wanted, min(repeats, 2))


SOLVERS = {"LIBSVM": libsvm, "LIBLINEAR": liblinear, "piqp": interior_point}

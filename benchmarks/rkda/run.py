"""Kernel weights of discriminant analysis: our Newton method against semidefinite programs, and its cost as m grows.

    KERNELWEAVE_DATA=... python benchmarks/rkda/run.py [--repeats 3] [--limit 120] [--no-save]

Waveform, three classes; the paper's ten Gaussian kernels (widths from 0.1 to 100), centred and of trace 1. Exact: (34)
divided by the ridge, and (41) where the ridge is learned; joint: (37) and its form with a learned ridge. CVXOPT is
given the matrix inequalities themselves (through cvxpy it fails on them); the semidefinite programs of the others go
through cvxpy. All have their own tolerances; of their time only the solver's counts, not the translation. Objectives
are computed here, from the weights that each returns. A solver that is not installed is a dash. One that takes longer
than the limit is stopped; the ratio is then a bound, and its process counts as a whole, of which imports and
translation are 3 s (m = 100) to 7 s (m = 300).
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
from datetime import date
from pathlib import Path

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np
from scipy.linalg.lapack import dpotrf
from sklearn.metrics import euclidean_distances

from kernelweave.loops.compiling import compile_at_once
from kernelweave.solvers.discriminant.joint_lmi import solve_joint_lmi
from kernelweave.solvers.discriminant.matrix_fractional import class_indicator, solve_matrix_fractional

HERE = Path(__file__).parent
PEERS, PEER_SIZES, SIZES = ("CLARABEL", "CVXOPT", "SCS"), (100, 300), (1000, 2000, 5000)
WIDTHS = np.geomspace(0.1, 100.0, 10)
RIDGES = (None, 1e-4)
SOLVERS = {"exact": solve_matrix_fractional, "joint": solve_joint_lmi}
TOLERANCE = 1e-6


def problem(m):
    """Return unit-trace centred kernels and class indicators."""
    data = np.load(Path(os.environ["KERNELWEAVE_DATA"]) / "waveform.npz")
    rows = np.random.default_rng(0).permutation(len(data["X"]))[:m]
    X, y = data["X"][rows].astype(float), data["y"][rows].astype(int)
    return [rbf(X, width) for width in WIDTHS], class_indicator(y, 3)


def rbf(X, width):
    K = euclidean_distances(X, squared=True)
    K /= -(width**2)
    np.exp(K, out=K)
    means = K.mean(axis=0)
    K -= means
    K -= (means - means.mean())[:, None]
    K /= np.trace(K)
    return K


def scatter(kernels, H, ridge, weights):
    m = len(H)
    M = np.full((m, m), 1.0 / m**2)
    M.flat[:: m + 1] += weights[0] / m if ridge is None else ridge
    for w, K in zip(weights[ridge is None :], kernels, strict=True):
        M += w * K
    return H.T @ np.linalg.solve(M, H)


def objective(form, kernels, H, ridge, weights):
    """Return the value of a formulation at some weights, these brought to the simplex."""
    weights = np.maximum(weights, 0.0)
    S = scatter(kernels, H, ridge, weights / weights.sum())
    if form == "exact":
        return float(np.trace(S))
    return max_cut(S)


def max_cut(S):
    """Return min 1't with Diag(t) >= S, by the central path of its dual."""
    t = 2.0 * np.abs(S).sum(axis=1)
    mu = t.sum()
    while mu * len(S) > 1e-9 * t.sum():
        mu *= 0.5
        for _ in range(30):
            W = np.linalg.inv(np.diag(t) - S)
            gradient = 1.0 / mu - W.diagonal()
            step = -np.linalg.solve(W**2, gradient)
            decrement = np.sqrt(max(0.0, -gradient @ step))
            t = t + step / (1.0 + decrement)
            if decrement < 1e-6:
                break
    return float(t.sum())


def by_cvxopt(form, m, ridge):
    """Return weights on the simplex and the solver's seconds, with the matrix inequalities as CVXOPT wants them."""
    from cvxopt import matrix, solvers, spmatrix

    kernels, H = problem(m)
    terms = [np.eye(m) / m, *kernels] if ridge is None else kernels
    n_weights, n_classes = len(terms), H.shape[1]
    blocks = [[j] for j in range(n_classes)] if form == "exact" else [list(range(n_classes))]
    Gs, hs = [], []
    for block in blocks:
        size = m + len(block)
        G, h = np.zeros((n_weights + n_classes, size, size)), np.zeros((size, size))
        G[:n_weights, :m, :m] = np.negative(terms)
        G[[n_weights + j for j in block], range(m, size), range(m, size)] = -1.0
        h[:m, :m] = 0.0 if ridge is None else ridge * np.eye(m)
        h[:m, m:] = H[:, block]
        h[m:, :m] = H[:, block].T
        Gs.append(matrix(G.reshape(len(G), -1).T))
        hs.append(matrix(h))
    c = matrix(np.repeat([0.0, 1.0], [n_weights, n_classes]))
    Gl = spmatrix(-1.0, range(n_weights), range(n_weights), (n_weights, n_weights + n_classes))
    A = matrix(np.repeat([1.0, 0.0], [n_weights, n_classes])[None])
    solvers.options["show_progress"] = False
    begin = time.perf_counter()
    found = solvers.sdp(c, Gl, matrix(0.0, (n_weights, 1)), Gs, hs, A, matrix(1.0))
    seconds = time.perf_counter() - begin
    if found["status"] != "optimal":
        raise RuntimeError(f"CVXOPT: {found['status']}, relative gap {found['relative gap']}")
    return np.array(found["x"]).ravel()[:n_weights], seconds


def by_cvxpy(solver, form, m, ridge):
    """Return weights on the simplex and the solver's seconds."""
    import cvxpy as cp

    kernels, H = problem(m)
    terms = [np.eye(m) / m, *kernels] if ridge is None else kernels
    w, t = cp.Variable(len(terms), nonneg=True), cp.Variable(H.shape[1])
    M = sum(w[i] * K for i, K in enumerate(terms)) + (0.0 if ridge is None else ridge * np.eye(m))
    if form == "exact":
        borders = [(H[:, [j]], cp.reshape(t[j], (1, 1), order="C")) for j in range(H.shape[1])]
    else:
        borders = [(H, cp.diag(t))]
    blocks = [cp.bmat([[M, h], [h.T, corner]]) for h, corner in borders]
    constraints = [cp.sum(w) == 1] + [0.5 * (block + block.T) >> 0 for block in blocks]
    program = cp.Problem(cp.Minimize(cp.sum(t)), constraints)
    program.solve(solver=solver)
    return np.asarray(w.value), float(program.solver_stats.solve_time)


def peer(solver, form, m, ridge, limit):
    """Run a peer in its own process, so that it can be stopped."""
    command = [sys.executable, __file__, "--peer", solver, form, str(m), "none" if ridge is None else str(ridge)]
    begin = time.perf_counter()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return {"seconds": time.perf_counter() - begin, "stopped": True}
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"ended with {done.returncode}"]  # killed for want of memory, say
        return {"failed": said[-1][:200]}
    return json.loads(done.stdout.splitlines()[-1])


def cholesky_seconds(m):
    A = np.asfortranarray(np.eye(m) + 1.0 / m)
    times = []
    for _ in range(5):
        copy = A.copy(order="F")
        begin = time.perf_counter()
        dpotrf(copy, lower=1, clean=0, overwrite_a=1)
        times.append(time.perf_counter() - begin)
    return min(times)


def ours(form, kernels, H, ridge, repeats):
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        found = SOLVERS[form](kernels, H, ridge=ridge, tol=TOLERANCE)
        times.append(time.perf_counter() - begin)
    record = {"rows": len(H), "form": form, "ridge": ridge, "seconds": min(times), "status": found.status.name}
    record |= {"relative gap": found.certificate.relative, "factorisations": found.n_cholesky}
    if ridge is None:
        record["ridge weight"] = float(found.x[0])
    return record | {"objective": objective(form, kernels, H, ridge, found.x)}


def against_peers(m, repeats, limit):
    from cvxpy import installed_solvers

    kernels, H = problem(m)
    for form in SOLVERS:
        for ridge in RIDGES:
            record = ours(form, kernels, H, ridge, repeats)
            for name in [name for name in PEERS if name in installed_solvers()]:
                found = peer(name, form, m, ridge, limit)
                if "weights" in found:
                    value = objective(form, kernels, H, ridge, np.array(found.pop("weights")))
                    found["excess"] = value / record["objective"] - 1.0
                if "seconds" in found:
                    found["ratio"] = found["seconds"] / record["seconds"]
                record[name] = found
            print(record, file=sys.stderr, flush=True)
            yield record


def as_size_grows(m, repeats):
    kernels, H = problem(m)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    unit = cholesky_seconds(m)
    for form in SOLVERS:
        for ridge in RIDGES:
            record = ours(form, kernels, H, ridge, repeats if m < 5000 else 1)
            record |= {"Cholesky seconds": unit, "Choleskys": record["seconds"] / unit}
            record["kernels MB"] = sum(K.nbytes for K in kernels) / 2**20
            record["peak MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
            record["peak MB before"] = before / 2**10
            print(record, file=sys.stderr, flush=True)
            yield record


def table(compared, grown):
    lines = ["| rows | form | ridge | ours | factorisations | " + " | ".join(PEERS) + " |", "|---" * 8 + "|"]
    for r in compared:
        cells = [cell(r.get(name)) for name in PEERS]
        lines.append(f"| {head(r)} | {1e3 * r['seconds']:.1f} ms | {r['factorisations']} | {' | '.join(cells)} |")
    lines += ["", "| rows | form | ridge | seconds | factorisations | in times of one | relative gap | peak memory |"]
    lines += ["|---" * 8 + "|"]
    for r in grown:
        lines.append(
            f"| {head(r)} | {r['seconds']:.2f} | {r['factorisations']} | {r['Choleskys']:.1f} | "
            f"{r['relative gap']:.0e} | {r['peak MB']:.0f} MB, kernels {r['kernels MB']:.0f} |"
        )
    return "\n".join(lines)


def head(r):
    return f"{r['rows']} | {r['form']} | {'learned' if r['ridge'] is None else format(r['ridge'], 'g')}"


def cell(found):
    if found is None:
        return "-"
    if "failed" in found:
        return "failed"
    if found.get("stopped"):
        return f"> {found['ratio']:.0f}x"
    return f"{found['ratio']:.0f}x, excess {found['excess']:.0e}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for a peer")
    parser.add_argument("--peer", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument("--no-save", action="store_true")
    options = parser.parse_args()
    if options.peer:
        solver, form, m, ridge = options.peer
        case = form, int(m), None if ridge == "none" else float(ridge)
        weights, seconds = by_cvxopt(*case) if solver == "CVXOPT" else by_cvxpy(solver, *case)
        print(json.dumps({"weights": weights.tolist(), "seconds": seconds}))
        return
    compile_at_once()
    solve_joint_lmi(*problem(30), ridge=None)  # compiles
    grown = [record for m in SIZES for record in as_size_grows(m, options.repeats)]
    compared = [record for m in PEER_SIZES for record in against_peers(m, options.repeats, options.limit)]
    text = table(compared, grown)
    print(text)
    if not options.no_save:
        about = {
            "date": str(date.today()),
            "cores": os.cpu_count(),
            "load": " ".join(f"{load:.1f}" for load in os.getloadavg()),
            "python": platform.python_version(),
            "numpy": np.__version__,
            "repeats": options.repeats,
            "limit": f"{options.limit:g} s",
        }
        records = {"about": about, "compared": compared, "grown": grown}
        (HERE / "results.json").write_text(json.dumps(records, indent=1) + "\n")
        words = ", ".join(f"{key} {value}" for key, value in about.items())
        top = "# Kernel weights of discriminant analysis\n\nTimes of semidefinite solvers as ratios to ours, best of"
        rest = "the repeats; excess: of the objective at their weights over that at ours. Cholesky times: best of five."
        (HERE / "results.md").write_text(f"{top} {rest}\n\n{text}\n\n{words}.\n")


if __name__ == "__main__":
    main()

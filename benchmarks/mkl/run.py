"""Multiple kernel learning: Newton on the weights against the first-order methods of the literature.

    KERNELWEAVE_DATA=... python benchmarks/mkl/run.py [--repeats 15] [--seconds 60] [--no-save]

MNIST odd/even, kernels of mean variance 1 in feature space (linear, cosine, two polynomials, RBF of many widths), hinge
loss, C = 10. Every method runs until the relative duality gap, computed here from its weights and duals, is at most
0.001, or until it has used up its seconds or 500 machines. All of them share the machine, the warm starts and the
stack of kernels. SimpleMKL is the reduced gradient with the line search of its authors' program, golden section;
"SimpleMKL, parabolas" is a faster search of ours in its place.
"""

import argparse
import json
import os
import platform
import sys
import time
from datetime import date
from pathlib import Path

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np
import sklearn
from sklearn.metrics import euclidean_distances

from kernelweave.loops.compiling import compile_at_once
from kernelweave.solvers.machines import kernel_weights
from kernelweave.solvers.machines.kernel_stack import KernelStack
from kernelweave.solvers.machines.kernel_weights import solve_kernel_weights
from kernelweave.solvers.machines.weights_gradient import ReducedGradientStep, shorten
from kernelweave.solvers.margin import DualProblem

HERE = Path(__file__).parent
SIZES, COUNTS, C, TOL, MAX_SOLVES = (500, 1000, 2000), (10, 20, 60), 10.0, 1e-3, 500
METHODS = {
    "Newton": "newton",
    "projected gradient": "projected_gradient",
    "SimpleMKL": "reduced_gradient",
    "SimpleMKL, parabolas": "parabolas",
    "group lasso": "group_lasso",
}


class ParabolaStep(ReducedGradientStep):
    """The reduced gradient with steps that parabolas choose, which ends with the first that descends enough."""

    def _search(self, value, end, step, tol):
        slope, length, trial = float(value.gradient @ step), 1.0, end
        for _ in range(12 if slope < 0.0 else 0):
            length *= shorten(trial.dual - value.dual, slope * length)
            weights = np.maximum(0.0, value.weights + length * step)
            trial = self.machines.solve(weights / weights.sum(), tol, start=trial.duals)
            if trial.dual <= value.dual + 1e-4 * length * slope:
                return trial
        return value


kernel_weights.STEPS["parabolas"] = ParabolaStep


def problem(n, n_kernels):
    """Return the kernels, their mean variances in feature space, and the labels."""
    data = np.load(Path(os.environ["KERNELWEAVE_DATA"]) / "mnist14k.npz")
    rows = np.random.default_rng(0).permutation(len(data["X"]))[:n]
    X, y = data["X"][rows] / 255.0, 2.0 * (data["y"][rows] % 2) - 1.0
    D, G = euclidean_distances(X, squared=True), X @ X.T
    size = G.diagonal()
    members = [G, G / np.sqrt(np.outer(size, size)), (1 + G / size.mean()) ** 2, (1 + G / size.mean()) ** 3]
    members += [np.exp(-multiple * D / D.mean()) for multiple in np.geomspace(1 / 16, 16, n_kernels - 4)]
    return members, np.array([K.diagonal().mean() - K.mean() for K in members]), y


def gap(members, scales, y, weights, x, offset):
    """Return the relative gap between the primal at the weights and the best dual bound of the duals."""
    products = np.array([K @ x for K in members]) / scales[:, None]
    f = weights @ products
    primal = 0.5 * x @ f + C * np.maximum(0.0, 1.0 - y * (f + offset)).sum()
    assert abs(x.sum()) <= 1e-9 * np.abs(x).sum()
    assert np.all((x * y >= 0) & (x * y <= C))
    assert weights.min() >= 0
    assert abs(weights.sum() - 1) <= 1e-9
    return float((primal - (y @ x - 0.5 * (products @ x).max())) / primal)


def run(stack, y, method, seconds):
    """Return time, machines trained, and the solution."""
    duals = [DualProblem(-y, np.minimum(0.0, C * y), np.maximum(0.0, C * y))]
    begin = time.perf_counter()

    def late(state):
        return time.perf_counter() - begin > seconds or state.details["n_solves"] > MAX_SOLVES

    found = solve_kernel_weights(stack, duals, method=method, tol=TOL, max_iter=10**6, callback=late)
    return time.perf_counter() - begin, found


def compare(n, n_kernels, repeats, seconds):
    members, scales, y = problem(n, n_kernels)
    stack = KernelStack(members, scales)
    record, runs = {"rows": n, "kernels": n_kernels}, {name: [] for name in METHODS}
    for _ in range(repeats):  # in turns, so that what else the machine does hits all alike
        for name, method in METHODS.items():
            if sum(time for time, _ in runs[name]) < 0.2 * seconds:
                runs[name].append(run(stack, y, method, seconds))
    for name in METHODS:
        found = runs[name][0][1]
        reached = gap(members, scales, y, found.x, found.duals[0], -found.multipliers[0])
        record[name] = {
            "seconds": min(time for time, _ in runs[name]),
            "solves": found.n_solves,
            "gap": reached,
            "reached": bool(reached <= 1.001 * TOL),
            "active": int(np.count_nonzero(found.x)),
        }
        record[name]["ratio"] = record[name]["seconds"] / record["Newton"]["seconds"]
    print(record, file=sys.stderr, flush=True)
    return record


def table(records):
    lines = ["| rows | kernels | " + " | ".join(METHODS) + " |", "|---" * (2 + len(METHODS)) + "|"]
    for r in records:
        cells = [f"{1e3 * r['Newton']['seconds']:.0f} ms, {r['Newton']['solves']}"]
        for name in list(METHODS)[1:]:
            late = "" if r[name]["reached"] else "> "
            rest = "" if r[name]["reached"] else f", gap {r[name]['gap']:.1g}"
            cells.append(f"{late}{r[name]['ratio']:.1f}x, {r[name]['solves']}{rest}")
        lines.append(f"| {r['rows']} | {r['kernels']} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--no-save", action="store_true")
    options = parser.parse_args()
    compile_at_once()
    compare(60, 10, 1, 1.0)  # compiles
    records = [compare(n, n_kernels, options.repeats, options.seconds) for n in SIZES for n_kernels in COUNTS]
    text = table(records)
    print(text)
    if not options.no_save:
        about = {
            "date": str(date.today()),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scikit-learn": sklearn.__version__,
            "repeats": options.repeats,
            "relative gap": TOL,
            "C": C,
            "limit in seconds": options.seconds,
        }
        (HERE / "results.json").write_text(json.dumps({"about": about, "records": records}, indent=1) + "\n")
        words = ", ".join(f"{key} {value}" for key, value in about.items())
        head = (
            "# Multiple kernel learning\n\nTime to the gap (the others: as ratio to Newton, best of the repeats), and "
            "machines trained on all rows (Newton's start is learned from a fifth of them). '>': the limit came first, "
            "with the gap reached."
        )
        (HERE / "results.md").write_text(f"{head}\n\n{text}\n\n{words}.\n")


if __name__ == "__main__":
    main()

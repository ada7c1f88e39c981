"""The 2-norm problem on a working set: our master against LIBSVM, LIBLINEAR and piqp.

    KERNELWEAVE_DATA=... python benchmarks/qp_columns/run.py [--repeats 5] [--no-save]

The working sets are those that column generation grows on MNIST odd/even (1000 rows, RBF columns of unit deviation).
Every solver gets the matrix it works on ready: the Gram matrix of the columns (ours, LIBSVM, piqp) or the columns
(LIBLINEAR). Each peer runs at the loosest of its tolerances whose primal-dual gap, computed here, is at most 0.001 or
ours. "warm" is our time from the solution for a working set that is a tenth smaller, as column generation has it.
"""

import argparse
import json
import os
import platform
import sys
import time
import warnings
from datetime import date
from pathlib import Path

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np
import sklearn
from sklearn.metrics import euclidean_distances
from solvers import SOLVERS

from kernelweave.loops.compiling import compile_at_once
from kernelweave.solvers.columns.loop import generate_columns
from kernelweave.solvers.columns.qp_masters import QPMaster
from kernelweave.solvers.margin import classification_rows

HERE = Path(__file__).parent
N_ROWS, SIZES, COSTS = 1000, (50, 200, 800), (0.1, 10.0, 1000.0)
TOL = 1e-3
FORMS = {
    "free offset": {"intercept": "free", "positive": False},
    "penalised offset": {"intercept": "penalized", "positive": False},
    "no offset": {"intercept": None, "positive": False},
    "free offset, coefficients >= 0": {"intercept": "free", "positive": True},
    "no offset, coefficients >= 0": {"intercept": None, "positive": True},
}


def columns():
    """Return the columns, scaled so that all together have unit size at a row, and the labels."""
    data = np.load(Path(os.environ["KERNELWEAVE_DATA"]) / "mnist14k.npz")
    X, y = data["X"][:N_ROWS] / 255.0, 2.0 * (data["y"][:N_ROWS] % 2) - 1.0
    D = euclidean_distances(X, squared=True)
    K = np.hstack([np.exp(-multiple * D / D.mean()) for multiple in (1.0, 2.0, 4.0)])
    return (K - K.mean(axis=0)) / (K.std(axis=0) * np.sqrt(K.shape[1])), y


def grown(K, rows, form):
    """Return a working set of the largest size, in the order column generation finds its columns."""
    master = QPMaster(rows, **form)
    generate_columns(
        [master],
        lambda V, stratum: [(slice(0, K.shape[1]), K.T @ V)],
        lambda J: K[:, J],
        tol=1e-9,
        max_columns=max(SIZES),
    )
    return master.columns


def gap(Z, rows, form, x, b):
    """Return the gap between primal and dual for signed duals ``x``, relative to the primal; made feasible first."""
    ends = rows.sign * rows.cost
    x = np.clip(x, np.minimum(0, ends), np.maximum(0, ends))
    if form["intercept"] == "free":
        heavier = max(x[x > 0].sum(), -x[x < 0].sum())
        lighter = min(x[x > 0].sum(), -x[x < 0].sum())
        side = x > 0 if x.sum() > 0 else x < 0
        x = np.where(side, x * lighter / max(heavier, 1e-300), x)
    a = Z.T @ x
    a = np.maximum(a, 0) if form["positive"] else a
    b = x.sum() if form["intercept"] == "penalized" else b * (form["intercept"] == "free")
    squares = a @ a + (b**2 if form["intercept"] == "penalized" else 0.0)
    primal = 0.5 * squares + rows.loss(Z @ a + b)
    return (primal - (rows.sign @ x - 0.5 * squares)) / primal


def ours(Z, rows, form, start=None):
    """Return time, signed duals and offset of our master on the columns ``Z``; ``start``: columns solved before."""
    master = QPMaster(rows, tol=TOL, **form)
    first = 0 if start is None else start
    if first:
        master.add_columns(np.arange(first), Z[:, :first])
        master.solve()
    master.add_columns(np.arange(first, Z.shape[1]), Z[:, first:])
    begin = time.perf_counter()
    solution = master.solve()
    return time.perf_counter() - begin, solution.signed_dual, solution.intercept


def compare(K, y, name, form, C, repeats):
    rows = classification_rows(y, np.full(len(y), C))
    order = grown(K, rows, form)
    records = []
    for size in SIZES:
        Z = np.ascontiguousarray(K[:, order[:size]])
        runs = [ours(Z, rows, form) for _ in range(repeats)]
        seconds = float(np.median([run[0] for run in runs]))
        reached = gap(Z, rows, form, *runs[0][1:])
        warm = float(np.median([ours(Z, rows, form, start=int(0.9 * size))[0] for _ in range(repeats)]))
        record = {
            "form": name,
            "C": C,
            "columns": size,
            "seconds": seconds,
            "gap": float(reached),
            "warm_seconds": warm,
        }
        for peer, solve in SOLVERS.items():
            found = solve(
                Z, rows, form, lambda x, b, Z=Z, rows=rows: gap(Z, rows, form, x, b), max(reached, TOL), repeats
            )
            record[peer] = None if found is None else {"ratio": found[0] / seconds, "gap": float(found[1])}
        records.append(record)
        print(record, file=sys.stderr, flush=True)
    return records


def table(records):
    peers = list(SOLVERS)
    lines = [
        "| problem | C | columns | ours | ours, warm | " + " | ".join(peers) + " |",
        "|---" * (5 + len(peers)) + "|",
    ]
    for r in records:
        cells = [f"{r[peer]['ratio']:.1f}x" if r[peer] else "-" for peer in peers]
        lines.append(
            f"| {r['form']} | {r['C']:g} | {r['columns']} | {1e3 * r['seconds']:.1f} ms | "
            + " | ".join([f"{1e3 * r['warm_seconds']:.1f} ms", *cells])
            + " |"
        )
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--no-save", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    K, y = columns()
    compile_at_once()
    ours(K[:, :20], classification_rows(y, np.ones(N_ROWS)), FORMS["free offset"])  # compiles
    records = [
        record
        for name, form in FORMS.items()
        for C in COSTS
        for record in compare(K, y, name, form, C, options.repeats)
    ]
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
        }
        (HERE / "results.json").write_text(json.dumps({"about": about, "records": records}, indent=1) + "\n")
        words = ", ".join(f"{key} {value}" for key, value in about.items())
        head = "# The 2-norm problem on a working set\n\nTimes of the peers as ratios to ours (cold) in one run; a dash"
        tail = "where a solver cannot state the problem or does not reach the gap in time."
        (HERE / "results.md").write_text(f"{head} {tail}\n\n{text}\n\n{words}.\n")


if __name__ == "__main__":
    main()

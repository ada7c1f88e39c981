"""One support vector machine: our SMO against LIBSVM and scikit-learn-intelex, at equal duality gap.

    KERNELWEAVE_DATA=... python benchmarks/svm/run.py [--parts easy noisy rows] [--repeats 3] [--no-save]

easy: MNIST odd/even; an RBF kernel, and the sum of a linear and an RBF kernel, both with mean variance 1 in feature
space. noisy: generated rows of 20 columns in overlapping clusters of two classes, of whose labels a share is flipped,
with an RBF kernel as wide as the rows are apart. In both all solvers get the matrix ready. rows: the same noisy rows,
of which each solver computes what it needs of the kernel; ours keeps at most 0.5 GB of it, peers 1 GB.

A peer (scikit-learn's SVC, and that of scikit-learn-intelex where it is installed) runs at the loosest of its
tolerances whose relative duality gap, computed here from its duals, is at most the one asked for; ours stops on its own
certificate, which is checked likewise. scikit-learn-intelex takes part where there are rows alone: it hands a ready
matrix to scikit-learn. One thread each, and processor time; parts that are not run are kept of the last run.
"""

import argparse
import json
import os
import platform
import sys
import time
from datetime import date
from functools import cache
from importlib.metadata import version
from pathlib import Path

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np
import sklearn
from sklearn.metrics import euclidean_distances
from sklearn.svm import SVC

from kernelweave.loops.compiling import compile_at_once
from kernelweave.solvers.machines import smo
from kernelweave.solvers.machines.row_programs import solve_rows

try:
    import daal4py
    from sklearnex import svm as intel

    daal4py.daalinit(1)  # threads
except ImportError:
    intel = None

HERE = Path(__file__).parent
PARTS = ("easy", "noisy", "rows")
SIZES, COSTS, GAPS = (500, 2000, 5000), (1.0, 100.0), (1e-3, 1e-6)
NOISY = ((2000, 0.05, 100.0), (5000, 0.05, 100.0), (5000, 0.2, 10.0), (8000, 0.05, 10.0), (8000, 0.2, 10.0))
NOISY_GAPS = (1e-3, 1e-4)
FROM_ROWS = (
    (5000, 0.05, 100.0),
    (5000, 0.2, 10.0),
    (10_000, 0.05, 10.0),
    (10_000, 0.2, 10.0),
    (20_000, 0.05, 10.0),
)
N_COLUMNS, N_CLUSTERS = 20, 20
TOLERANCES = np.geomspace(1.0, 1e-9, 19)  # of peers, loosest first
PEERS = {"LIBSVM": SVC} | ({} if intel is None else {"intelex": intel.SVC})
CACHE = 1000  # megabytes, of peers
BLOCK_ROWS = 2000  # of a matrix that is made or read block by block


def kernels(n):
    """Yield (name, K, labels)."""
    data = np.load(Path(os.environ["KERNELWEAVE_DATA"]) / "mnist14k.npz")
    rows = np.random.default_rng(0).permutation(len(data["X"]))[:n]
    X, y = data["X"][rows] / 255.0, 2.0 * (data["y"][rows] % 2) - 1.0
    D = euclidean_distances(X, squared=True)
    rbf = np.exp(-2.0 * D / D.mean())
    for name, parts in (("RBF", [rbf]), ("linear + RBF", [X @ X.T, rbf])):
        yield name, sum(K / (K.diagonal().mean() - K.mean()) for K in parts) / len(parts), y


def noisy_rows(n, flipped):
    """Return rows, labels of which a share is wrong, and the gamma of a kernel."""
    rng = np.random.default_rng([n, round(100 * flipped)])
    cluster = rng.integers(N_CLUSTERS, size=n)
    X = rng.normal(size=(N_CLUSTERS, N_COLUMNS))[cluster] + rng.normal(size=(n, N_COLUMNS))
    y = np.where(cluster % 2 == 0, 1.0, -1.0) * np.where(rng.random(n) < flipped, -1.0, 1.0)
    return X, y, 1.0 / float(2.0 * N_COLUMNS * X.var())


def kernel_matrix(X, gamma, dtype):
    """Return the matrix of an RBF kernel, made block by block."""
    K = np.empty((len(X), len(X)), dtype)
    for first in range(0, len(X), BLOCK_ROWS):
        block = slice(first, first + BLOCK_ROWS)
        K[block] = np.exp(-gamma * euclidean_distances(X[block], X, squared=True))
    return K


def rbf_block(X, gamma):
    """Return a function that computes entries of an RBF kernel in single precision."""
    X = (X - X.mean(axis=0)).astype(np.float32)
    squares, gamma = np.einsum("ij,ij->i", X, X), np.float32(gamma)

    def block(rows, columns):
        K = X[rows] @ X[columns].T
        K *= 2.0
        K -= squares[rows, None]
        K -= squares[columns]
        np.minimum(K, 0.0, out=K)
        K *= gamma
        return np.exp(K, out=K)

    return block


def gap(K, y, C, x):
    """Return the relative gap between primal and dual; the offset is the best for the primal."""
    lower, upper = np.minimum(0.0, C * y), np.maximum(0.0, C * y)
    x = np.clip(x, lower, upper)
    f = np.concatenate([K[first : first + BLOCK_ROWS] @ x for first in range(0, len(K), BLOCK_ROWS)])
    kinks = np.sort(y - f)  # the hinge loss is piecewise linear in the offset, with kinks here, and convex
    low, high = 0, len(kinks) - 1
    loss = lambda b: C * np.maximum(0.0, 1.0 - y * (f + b)).sum()  # noqa: E731
    while high - low > 2:
        a, b = low + (high - low) // 3, high - (high - low) // 3
        low, high = (low, b) if loss(kinks[a]) <= loss(kinks[b]) else (a, high)
    primal = 0.5 * x @ f + min(loss(b) for b in kinks[low : high + 1])
    return float((primal - (y @ x - 0.5 * x @ f)) / primal)


def ours(K, y, C, wanted):
    found = smo.solve(K, -y, np.minimum(0.0, C * y), np.maximum(0.0, C * y), tol=wanted)
    return found.x


def ours_of_rows(X, y, C, gamma, wanted):
    return solve_rows(rbf_block(X, gamma), -y, np.minimum(0.0, C * y), np.maximum(0.0, C * y), tol=wanted).x


def peer(SVM, X, y, C, tol, gamma=None):
    """Return the signed duals of another solver, from a matrix or from rows."""
    options = {"kernel": "precomputed"} if gamma is None else {"kernel": "rbf", "gamma": gamma}
    model = SVM(C=C, tol=tol, cache_size=CACHE, **options).fit(X, y)
    x = np.zeros(len(y))
    x[model.support_] = model.dual_coef_[0]
    return x


def tried_once(SVM, X, K, y, C, gamma=None):
    """Return a function that gives the gap that a peer reaches with a tolerance, and its time; it remembers them."""

    @cache
    def run(tol):
        seconds, x = timed(lambda: peer(SVM, X, y, C, tol, gamma), 1)
        return gap(K, y, C, x), seconds

    return run


def timed(solve, repeats):
    times = []
    for _ in range(repeats):
        begin = time.process_time()
        x = solve()
        times.append(time.process_time() - begin)
    return min(times), x


def compare(record, solve, peers, K, y, repeats):
    """Return the record with the times of our solver and, at the same gap, of the others."""
    C, wanted = record["C"], record["wanted"]
    seconds, x = timed(solve, repeats)
    record |= {"seconds": seconds, "gap": gap(K, y, C, x), "support": int(np.count_nonzero(x))}
    allowed = max(wanted, record["gap"])
    for name, run in peers.items():
        tried = {}
        for tol in TOLERANCES:
            tried[run(tol)[0]] = tol
            if min(tried) <= allowed:
                break
        tol = tried[min(tried)]
        seconds = min([run(tol)[1]] + [run.__wrapped__(tol)[1] for _ in range(repeats - 1)])
        found = {"ratio": seconds / record["seconds"], "gap": min(tried), "tol": float(tol)}
        record[name] = found | {"reached": min(tried) <= allowed}
    print(record, file=sys.stderr, flush=True)
    return record


def from_matrix(about, K, y, gaps, repeats):
    """Return the records of one matrix, for each gap."""
    C = about["C"]
    peers = {"LIBSVM": tried_once(SVC, K, K, y, C)}
    return [compare(about | {"wanted": g}, lambda g=g: ours(K, y, C, g), peers, K, y, repeats) for g in gaps]


def measure(part, repeats):
    """Return the records of a part."""
    records = []
    if part == "easy":
        for n in SIZES:
            for name, K, y in kernels(n):
                for C in COSTS:
                    records += from_matrix({"rows": n, "kernel": name, "C": C}, K, y, GAPS, repeats)
    elif part == "noisy":
        for n, flipped, C in NOISY:
            X, y, gamma = noisy_rows(n, flipped)
            about = {"rows": n, "kernel": f"RBF, {flipped:.0%} of labels flipped", "C": C}
            records += from_matrix(about, kernel_matrix(X, gamma, np.float64), y, NOISY_GAPS, repeats)
    else:
        for n, flipped, C in FROM_ROWS:
            X, y, gamma = noisy_rows(n, flipped)
            about = {"rows": n, "kernel": f"RBF of rows, {flipped:.0%} of labels flipped", "C": C, "wanted": GAPS[0]}
            K = kernel_matrix(X, gamma, np.float32)
            peers = {name: tried_once(SVM, X, K, y, C, gamma) for name, SVM in PEERS.items()}
            solve = lambda X=X, y=y, C=C, gamma=gamma: ours_of_rows(X, y, C, gamma, GAPS[0])  # noqa: E731
            records.append(compare(about, solve, peers, K, y, repeats))
    return [record | {"part": part} for record in records]


def table(records):
    lines = ["| rows | kernel | C | relative gap | support vectors | ours | LIBSVM | intelex |", "|---" * 8 + "|"]
    for r in records:
        cells = [str(r["rows"]), r["kernel"], f"{r['C']:g}", f"{r['wanted']:g}", str(r["support"])]
        cells.append(f"{1e3 * r['seconds']:.1f} ms")
        for name in ("LIBSVM", "intelex"):
            found = r.get(name)
            missed = "" if found is None or found["reached"] else f", gap {found['gap']:.0e}"
            cells.append("" if found is None else f"{found['ratio']:.1f}x{missed}")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--no-save", action="store_true")
    parser.add_argument("--note", default="", help="a sentence at the end of the page, as on how busy the machine was")
    options = parser.parse_args()
    compile_at_once()
    ours(np.eye(20), np.repeat([1.0, -1.0], 10), 1.0, 1e-9)  # compiles
    for n, dtype in ((2000, np.float64), (3000, np.float32)):  # so do these, what only Newton steps of many need
        X, y, gamma = noisy_rows(n, 0.2)
        ours(kernel_matrix(X, gamma, dtype), y, 100.0, 1e-6)
        ours_of_rows(X, y, 10.0, gamma, 1e-6)
    last = json.loads((HERE / "results.json").read_text())["records"] if (HERE / "results.json").exists() else []
    records = []
    for part in PARTS:
        kept = [record for record in last if record.get("part", "easy") == part]
        records += measure(part, options.repeats) if part in options.parts else kept
    text = table(records)
    print(text)
    if not options.no_save:
        about = {
            "date": str(date.today()),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scikit-learn": sklearn.__version__,
            "scikit-learn-intelex": None if intel is None else version("scikit-learn-intelex"),
            "repeats": options.repeats,
        }
        (HERE / "results.json").write_text(json.dumps({"about": about, "records": records}, indent=1) + "\n")
        words = ", ".join(f"{key} {value}" for key, value in about.items())
        head = "# One support vector machine\n\nProcessor times of peers as ratios to ours, best of the repeats."
        tail = "Where a gap is named, it gets no further at any tolerance (it keeps the kernel in single precision)."
        (HERE / "results.md").write_text(
            f"{head} {tail}\n\n{text}\n\n{words}.\n{options.note and options.note + chr(10)}"
        )


if __name__ == "__main__":
    main()

"""Transductive machines: time against one fit of LIBSVM, and memory where rows are many.

    KERNELWEAVE_DATA=... python benchmarks/tsvm/run.py [--repeats 3] [--no-save]

text_macwin, 1946 rows, 50 labels (first original split), RBF kernel. LIBSVM (scikit-learn's SVC) is fitted once on the
labelled rows and both copies of the unlabelled ones, l + 2u rows, as a transductive machine sees them: from the rows,
and from a kernel matrix that is computed within the time as well. Ours is the whole fit with its annealing, kernels
included, and without annealing. TSVM-MKL has ten kernels: two plain ones and eight deformed ones. Memory: 20,000 rows
of 20 columns, two overlapping clusters, 200 labels, each estimator in a process of its own.
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
import sklearn
from scipy import sparse
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

import kernelweave
from kernelweave import RBF, TSVMClassifier, TSVMMKLClassifier, manifold_family
from kernelweave.loops.compiling import compile_at_once

HERE = Path(__file__).parent
N_LARGE, LARGE = 20_000, ("LapSVMClassifier", "TSVMClassifier", "TSVMMKLClassifier")


def text():
    """Return rows, labels, and the numbers of the labelled rows."""
    data = np.load(Path(os.environ["KERNELWEAVE_DATA"]) / "text_macwin.npz", allow_pickle=False)
    parts = (data["X_data"].astype(float), data["X_indices"], data["X_indptr"])
    return sparse.csr_array(parts, shape=tuple(data["X_shape"])), data["y"], data["idxLabs"][0]


def times(repeats):
    """Return the best time of each fit."""
    X, y, labeled = text()
    unlabeled = np.setdiff1d(np.arange(len(y)), labeled)
    given = np.full(len(y), None, dtype=object)
    given[labeled] = y[labeled]
    rows = np.concatenate([labeled, unlabeled, unlabeled])
    signs = np.concatenate([y[labeled], np.ones(len(unlabeled)), -np.ones(len(unlabeled))])
    doubled = X[rows]
    gamma = 1.0 / 2.0  # unit rows: one over about the mean squared distance
    pool = [RBF(), RBF(multiple=2.0), *manifold_family(ratios=(1.0, 10.0), metric="cosine")]
    plainly = {"C": 1.0, "class_prior": "labeled"}
    fits = {
        "LIBSVM, from rows": lambda: SVC(C=1.0, gamma=gamma).fit(doubled, signs),
        "LIBSVM, from a kernel matrix": lambda: SVC(C=1.0, kernel="precomputed").fit(
            rbf_kernel(doubled, gamma=gamma), signs
        ),
        "TSVM": lambda: TSVMClassifier(RBF(), **plainly).fit(X, given),
        "TSVM, not annealed": lambda: TSVMClassifier(RBF(), annealing=False, **plainly).fit(X, given),
        "TSVM-MKL, 10 kernels": lambda: TSVMMKLClassifier(pool, **plainly).fit(X, given),
    }
    compile_at_once()
    fits["TSVM"](), fits["TSVM-MKL, 10 kernels"]()  # compiles the loops
    out = dict.fromkeys(fits, np.inf)
    for _ in range(repeats):
        for name, fit in fits.items():
            started = time.perf_counter()
            fit()
            out[name] = min(out[name], time.perf_counter() - started)
    return out


def large(name):
    """Fit one estimator on many rows; return time, peak memory above that before, and error."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, N_LARGE)
    X = rng.normal(size=(N_LARGE, 20))
    X[:, 0] += np.where(truth, 1.8, -1.8)
    y = np.where(np.arange(N_LARGE) < 200, truth, -1)
    started = time.perf_counter()
    model = getattr(kernelweave, name)(random_state=0).fit(X, y)
    return {
        "seconds": time.perf_counter() - started,
        "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "error": 100.0 * float(np.mean(model.transduction_[200:] != truth[200:])),
        "status": model.status_.name,
    }


def table(results):
    seconds = results["times"]
    lines = ["# Transductive machines", "", "text_macwin, l + 2u = 3842 rows for LIBSVM; best of the repeats.", ""]
    lines += ["| fit | seconds | to LIBSVM, from rows | to LIBSVM, from a matrix | to TSVM |", "|---|---|---|---|---|"]
    against = ("LIBSVM, from rows", "LIBSVM, from a kernel matrix", "TSVM")
    for name, value in seconds.items():
        lines.append(f"| {name} | {value:.2f} | " + " | ".join(f"{value / seconds[a]:.2f}x" for a in against) + " |")
    lines += ["", f"{N_LARGE:,} rows (peak of the whole process; the best error possible is 3.6 %):", ""]
    lines += ["| estimator | seconds | peak memory | error | status |", "|---|---|---|---|---|"]
    for name, found in results["large"].items():
        cells = (f"{found['seconds']:.0f}", f"{found['peak_gb']:.2f} GB", f"{found['error']:.1f} %", found["status"])
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    about = ", ".join(f"{key} {value}" for key, value in results["about"].items())
    return "\n".join([*lines, "", about + ".", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--no-save", action="store_true")
    parser.add_argument("--large", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.large:
        print(json.dumps(large(args.large)))
        return
    results = {"times": times(args.repeats), "large": {}}
    for name in LARGE:
        command = [sys.executable, __file__, "--large", name]
        results["large"][name] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    results["about"] = {
        "date": date.today().isoformat(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
        "repeats": args.repeats,
    }
    text = table(results)
    print(text)
    if not args.no_save:
        (HERE / "results.json").write_text(json.dumps(results, indent=1) + "\n")
        (HERE / "results.md").write_text(text)


if __name__ == "__main__":
    main()

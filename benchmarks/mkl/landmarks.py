"""MKL on 50,000 labelled rows of six sources, by landmarks, against one kernel of all columns.

    python benchmarks/mkl/landmarks.py [--repeats 3] [--no-save]

Six sources of eight columns; two of them have clusters, which sum to the class with noise, the others are noise. Ours:
one RBF kernel a source, 100 landmarks each, learned weights, float32. The peer: scikit-learn's Nystroem of an RBF
kernel of all columns, with as many landmarks in total, and LinearSVC. The width of every kernel is one over the mean
squared distance, C is 1. Times are processor times of fits, in turns, the best of the repeats. A process of each
method alone measures its peak of memory.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from datetime import date
from pathlib import Path

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np
import sklearn
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from kernelweave import RBF, MKLClassifier, OnColumns
from kernelweave.loops.compiling import compile_at_once

HERE = Path(__file__).parent
N_ROWS, N_TEST, N_SOURCES, N_COLUMNS, N_CLUSTERS, N_LANDMARKS, C = 50_000, 20_000, 6, 8, 10, 100, 1.0
INFORMATIVE = (0, 3)
SEEDS = (0, 1, 2)


def sample(seed):
    """Return rows of all sources and their classes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N_ROWS + N_TEST, N_SOURCES * N_COLUMNS))
    total = 0.2 * rng.normal(size=len(X))
    for share, source in zip((1.0, 0.8), INFORMATIVE, strict=True):
        centers, cluster = rng.normal(scale=1.2, size=(N_CLUSTERS, N_COLUMNS)), rng.integers(N_CLUSTERS, size=len(X))
        here = slice(source * N_COLUMNS, (source + 1) * N_COLUMNS)
        X[:, here] = centers[cluster] + 0.6 * X[:, here]
        total += share * np.where(cluster % 2 == 0, 1.0, -1.0)
    return X.astype(np.float32), (total > 0).astype(int)


def ours(X, y):
    kernels = [
        (f"source {s}", OnColumns(RBF(), list(range(s * N_COLUMNS, (s + 1) * N_COLUMNS)))) for s in range(N_SOURCES)
    ]
    return MKLClassifier(
        kernels, C=C, weighting="learned", n_landmarks=N_LANDMARKS, dtype="float32", random_state=0
    ).fit(X, y)


def peer(X, y):
    width = 1.0 / (2.0 * X.var(axis=0).sum())
    features = Nystroem(gamma=width, n_components=N_SOURCES * N_LANDMARKS, random_state=0)
    return make_pipeline(features, LinearSVC(C=C)).fit(X, y)


METHODS = {"MKLClassifier": ours, "Nystroem + LinearSVC": peer}


def peak_mb(name):
    """Return the growth of the memory of a process that fits one method."""
    done = subprocess.run([sys.executable, __file__, "--memory", name], capture_output=True, text=True, check=True)
    return float(done.stdout)


def measure_memory(name):
    X, y = sample(0)
    METHODS[name](X[:2000], y[:2000])
    with open("/proc/self/status") as status:
        sizes = {line.split(":")[0]: int(line.split()[1]) for line in status if line.startswith(("VmHWM", "VmRSS"))}
    METHODS[name](X[:N_ROWS], y[:N_ROWS])
    with open("/proc/self/status") as status:
        peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    print((peak - sizes["VmRSS"]) / 1024)


def compare(seed, repeats):
    X, y = sample(seed)
    train, test = slice(0, N_ROWS), slice(N_ROWS, None)
    times = {name: [] for name in METHODS}
    record = {"seed": seed}
    for _ in range(repeats):
        for name, fit in METHODS.items():
            started = time.process_time()
            model = fit(X[train], y[train])
            times[name].append(time.process_time() - started)
            record[name] = {
                "seconds": min(times[name]),
                "error": 100.0 * float(np.mean(model.predict(X[test]) != y[test])),
            }
            if name == "MKLClassifier":
                record[name] |= {"gap": model.certificate_.relative, "weights": model.weights_.round(3).tolist()}
    record["ratio"] = record["MKLClassifier"]["seconds"] / record["Nystroem + LinearSVC"]["seconds"]
    print(record, file=sys.stderr, flush=True)
    return record


def table(records):
    lines = [
        "| draw | MKL: error | seconds | gap | weights | Nystroem + LinearSVC: error | seconds | time, ratio |",
        "|---" * 8 + "|",
    ]
    for r in records:
        mine, other = (r[name] for name in METHODS)
        weights = " ".join(f"{w:.2f}" for w in mine["weights"])
        lines.append(
            f"| {r['seed']} | {mine['error']:.2f} % | {mine['seconds']:.1f} | {mine['gap']:.1e} | {weights} "
            f"| {other['error']:.2f} % | {other['seconds']:.1f} | {r['ratio']:.2f} |"
        )
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--no-save", action="store_true")
    parser.add_argument("--memory")
    options = parser.parse_args()
    compile_at_once()
    if options.memory:
        measure_memory(options.memory)
        return
    X, y = sample(0)
    ours(X[:6000], y[:6000])  # compiles
    records = [compare(seed, options.repeats) for seed in SEEDS]
    memory = {name: peak_mb(name) for name in METHODS}
    text = (
        table(records)
        + "\n\nPeak of memory above the rows: "
        + ", ".join(f"{n} {m:.0f} MB" for n, m in memory.items())
        + "."
    )
    print(text)
    if not options.no_save:
        about = {
            "date": str(date.today()),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scikit-learn": sklearn.__version__,
            "repeats": options.repeats,
            "rows": N_ROWS,
            "rows of the test": N_TEST,
            "landmarks in all": N_SOURCES * N_LANDMARKS,
            "C": C,
        }
        found = {"about": about, "records": records, "peak in MB": memory}
        (HERE / "landmarks.json").write_text(json.dumps(found, indent=1) + "\n")
        words = ", ".join(f"{key} {value}" for key, value in about.items())
        head = (
            "# Multiple kernel learning by landmarks\n\n50,000 rows of six sources, of which the first and the fourth "
            "are not noise: an RBF kernel for each, against one of all columns with as many landmarks in all. "
            "Processor seconds of a fit; the gap is relative, of the problem on the features."
        )
        (HERE / "landmarks.md").write_text(f"{head}\n\n{text}\n\n{words}.\n")


if __name__ == "__main__":
    main()

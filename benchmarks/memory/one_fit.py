"""Peak memory of one fit above what is there before: ``python one_fit.py LapSVMClassifier 200000``."""

import json
import os
import resource
import sys
import time
import warnings

import numpy as np

import kernelweave
from kernelweave.estimators.shared import memory

N_LABELED, N_COLUMNS, N_CLUSTERS = 500, 10, 20


def sample(n_rows):
    """Return rows in clusters of two classes, and the classes."""
    rng = np.random.default_rng(0)
    centers = rng.normal(scale=2.0, size=(N_CLUSTERS, N_COLUMNS))
    cluster = rng.integers(N_CLUSTERS, size=n_rows)
    X = rng.normal(size=(n_rows, N_COLUMNS))
    for rows in np.array_split(np.arange(n_rows), 50):
        X[rows] += centers[cluster[rows]]
    return X, cluster % 2


def problem(name, n_rows):
    """Return the rows and the labels as an estimator takes them."""
    X, classes = sample(n_rows)
    if name == "CGBoostOneClass":
        return X, None
    if name.startswith("CGBoost"):  # all rows are labelled
        return X, classes + 0.1 * X[:, 0] if name.endswith("Regressor") else classes
    if name.endswith("Regressor"):
        y = np.full(n_rows, np.nan)
        y[:N_LABELED] = classes[:N_LABELED] + 0.1 * X[:N_LABELED, 0]
        return X, y
    if name.startswith("MKL"):  # to whom -1 is a class
        y = np.full(n_rows, None)
        y[:N_LABELED] = classes[:N_LABELED]
        return X, y
    y = np.full(n_rows, -1)
    y[:N_LABELED] = classes[:N_LABELED]
    return X, y


def peak_bytes():
    """Return the peak of this program; getrusage would count the process that started it too."""
    with open("/proc/self/status") as status:
        return 1024 * next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))


def resident_bytes():
    """Return what this program has in memory now."""
    with open("/proc/self/statm") as sizes:
        return int(sizes.read().split()[1]) * resource.getpagesize()


def main():
    name, n_rows = sys.argv[1], int(sys.argv[2])
    estimator = getattr(kernelweave, name)()
    warnings.simplefilter("ignore")
    type(estimator)().fit(*problem(name, 600))  # loads what imports leave to the first use
    X, y = problem(name, n_rows)
    baseline, estimates = resident_bytes(), []
    compare = memory.require_memory

    def record(n_bytes, *others):
        estimates.append(n_bytes)
        return compare(n_bytes, *others)

    memory.require_memory = record
    outcome, started, used = "fitted", time.perf_counter(), time.process_time()
    try:
        estimator.fit(X, y)
    except MemoryError as error:
        outcome = "refused" if str(error).endswith(".") else "out of memory"
        print(error, file=sys.stderr)
    seconds, processor = time.perf_counter() - started, time.process_time() - used
    growth = max(0, peak_bytes() - baseline)
    result = {"estimator": name, "rows": n_rows, "outcome": outcome, "seconds": round(seconds, 2)}
    result |= {"processor_seconds": round(processor, 2), "growth": growth, "estimate": max(estimates, default=None)}
    print(json.dumps(result))


if __name__ == "__main__":
    if os.environ.get("OPENBLAS_NUM_THREADS") is None:
        raise SystemExit("Set OPENBLAS_NUM_THREADS: each thread has buffers of its own.")
    main()

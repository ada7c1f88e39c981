"""SSMK with many unlabelled candidates: time and peak memory for 10 k, 100 k and 1 M rows.

    python benchmarks/ssmk_scale/run.py [--sizes 10000 100000 1000000] [--no-save]

500 labels, 50 float32 features in a memory-mapped file, 5 kernels, every row a candidate. Each size runs in a process
of its own, with one thread; memory is the process's peak above what it held before the data were read.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np

from kernelweave import Linear, SSMKClassifier, rbf_family

HERE = Path(__file__).parent
N_LABELED, N_FEATURES, N_CLUSTERS = 500, 50, 40
ROWS_AT_A_TIME = 100_000


def make_file(path, n_rows):
    """Write rows around cluster centres, each cluster of one class; return the classes."""
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(N_CLUSTERS, N_FEATURES))
    X = np.memmap(path, dtype=np.float32, mode="w+", shape=(n_rows, N_FEATURES))
    truth = np.empty(n_rows, dtype=np.int8)
    for start in range(0, n_rows, ROWS_AT_A_TIME):
        stop = min(start + ROWS_AT_A_TIME, n_rows)
        cluster = rng.integers(N_CLUSTERS, size=stop - start)
        X[start:stop] = centers[cluster] + 1.2 * rng.normal(size=(stop - start, N_FEATURES))
        truth[start:stop] = cluster % 2
    X.flush()
    np.save(path.with_suffix(".npy"), truth)


def memory_mb(field):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(field)) / 1024


def fit_one(path, n_rows):
    """Fit in this process and print what it took."""
    truth = np.load(path.with_suffix(".npy"))
    kernels = [Linear(), *rbf_family()]
    warm = np.random.default_rng(0).normal(size=(40, 3))
    SSMKClassifier(kernels).fit(warm, warm[:, 0] > 0)  # loads what imports leave to the first use
    baseline = memory_mb("VmHWM")
    X = np.memmap(path, dtype=np.float32, mode="r", shape=(n_rows, N_FEATURES))
    y = np.full(n_rows, -1, dtype=np.int8)
    labeled = np.random.default_rng(1).choice(n_rows, N_LABELED, replace=False)
    y[labeled] = truth[labeled]
    start = time.perf_counter()
    model = SSMKClassifier(kernels, centers="all", unlabeled=-1, random_state=0).fit(X, y)
    seconds = time.perf_counter() - start
    unlabeled = y == -1
    print(
        json.dumps(
            {
                "rows": n_rows,
                "seconds": seconds,
                "rounds": model.n_iter_,
                "seconds_a_round": seconds / model.n_iter_,
                "peak_mb": memory_mb("VmHWM") - baseline,
                "data_mb": n_rows * N_FEATURES * 4 / 2**20,
                "status": model.status_.name,
                "relative_gap": model.certificate_.relative,
                "scope": model.certificate_.scope,
                "basis_functions": model.n_columns_,
                "unlabeled_centers": int(sum(unlabeled[group.centers].sum() for group in model.expansion_.groups)),
                "error": float(np.mean(model.transduction_[unlabeled] != truth[unlabeled])),
            }
        )
    )


def table(records):
    lines = [
        "| rows | time | rounds | time a round and 100 k rows | peak memory above data | data | gap | error |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for r in records:
        unit = r["seconds_a_round"] / r["rows"] * 1e5
        lines.append(
            f"| {r['rows']:,} | {r['seconds']:.1f} s | {r['rounds']} | {unit:.2f} s | "
            f"{r['peak_mb'] - r['data_mb']:.0f} MB | {r['data_mb']:.0f} MB | {r['relative_gap']:.1e} | "
            f"{100 * r['error']:.1f} % |"
        )
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--no-save", action="store_true")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        fit_one(Path(options.one[0]), int(options.one[1]))
        return
    records = []
    with tempfile.TemporaryDirectory() as folder:
        for n_rows in options.sizes:
            path = Path(folder) / f"{n_rows}.dat"
            make_file(path, n_rows)
            command = [sys.executable, str(HERE / "run.py"), "--one", str(path), str(n_rows)]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            records.append(json.loads(done.stdout))
            print(records[-1], file=sys.stderr, flush=True)
    print(table(records))
    if not options.no_save:
        about = {
            "date": str(date.today()),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
            "numpy": np.__version__,
        }
        (HERE / "results.json").write_text(json.dumps({"about": about, "records": records}, indent=1) + "\n")
        words = ", ".join(f"{key} {value}" for key, value in about.items())
        text = f"# SSMK with many candidates\n\n{table(records)}\n\n500 labels, 5 kernels, one thread. {words}.\n"
        (HERE / "results.md").write_text(text)


if __name__ == "__main__":
    main()

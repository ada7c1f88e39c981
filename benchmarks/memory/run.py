"""Memory known in advance: the estimate of each fit beside its peak.

    python benchmarks/memory/run.py [--rows 20000 200000 1000000] [--estimators NAME ...] [--limit 6000000] [--add]
        [--no-save]

Rows of ten columns in clusters, 500 of them labelled (all of them for `CGBoost*`), every estimator with nothing set.
Each fit runs in a process of its own (`one_fit.py`) below a limit on the address space (kilobytes, as ``ulimit -v``),
with one thread. The growth is the peak of resident memory less what is resident before the fit; "refused" is a
MemoryError that says what to pass instead, before anything is computed. The estimate of `AutoKernel*` is the largest of
its candidates'. ``--add`` keeps the cells of the last run that are not measured again.
"""

import argparse
import json
import os
import platform
import resource
import signal
import subprocess
import sys
from datetime import date
from pathlib import Path

import numpy as np
import sklearn

HERE = Path(__file__).parent
NAMES = (
    "LapSVMClassifier",
    "TSVMClassifier",
    "TSVMMKLClassifier",
    "RKDAClassifier",
    "MKLClassifier",
    "MKLRegressor",
    "HarmonicClassifier",
    "HarmonicRegressor",
    "SSMKClassifier",
    "SSMKRegressor",
    "CGBoostClassifier",
    "CGBoostRegressor",
    "CGBoostOneClass",
    "LearnedKernelClassifier",
    "LearnedKernelRegressor",
    "AutoKernelClassifier",
    "AutoKernelRegressor",
)
SECONDS = 600  # of the processor that a fit may take: 5 minutes of two cores
LARGE = 200 * 2**20  # bytes above which the bound holds
MAX_RATIO = 1.2  # of the peak to the estimate


def measure(name, n_rows, limit):
    """Return what the process of one fit prints."""
    environment = os.environ | dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    command = [sys.executable, str(HERE / "one_fit.py"), name, str(n_rows)]

    def bound():
        resource.setrlimit(resource.RLIMIT_AS, (1024 * limit, 1024 * limit))
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 10))

    done = subprocess.run(command, env=environment, capture_output=True, text=True, preexec_fn=bound)
    if done.returncode:
        words = done.stderr.strip() or f"ended by signal {-done.returncode}"
        outcome = f"more than {SECONDS} s" if done.returncode == -signal.SIGXCPU else words.splitlines()[-1][:60]
        return {"estimator": name, "rows": n_rows, "outcome": outcome}
    return json.loads(done.stdout)


def table(records):
    lines = ["| estimator | rows | outcome | seconds | of processor | estimate | peak | ratio |", "|---" * 8 + "|"]
    for r in records:
        cells = [r["estimator"], f"{r['rows']:,}", r["outcome"]]
        if "growth" in r:
            cells += [f"{r['seconds']:.1f}", f"{r['processor_seconds']:.1f}"]
            known = r["estimate"] is not None
            cells += [f"{r['estimate'] / 2**20:.0f} MB" if known else "", f"{r['growth'] / 2**20:.0f} MB"]
            cells.append(f"{r['growth'] / r['estimate']:.2f}" if known and r["outcome"] == "fitted" else "")
        lines.append("| " + " | ".join(cells + [""] * (8 - len(cells))) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[20_000, 200_000, 1_000_000])
    parser.add_argument("--estimators", nargs="+", default=list(NAMES))
    parser.add_argument("--limit", type=int, default=6_000_000)
    parser.add_argument("--add", action="store_true")
    parser.add_argument("--no-save", action="store_true")
    options = parser.parse_args()
    found = {}
    for n_rows in options.rows:
        for name in options.estimators:
            found[name, n_rows] = measure(name, n_rows, options.limit)
            print(found[name, n_rows], file=sys.stderr, flush=True)
    if options.add and (HERE / "results.json").exists():
        last = json.loads((HERE / "results.json").read_text())["records"]
        found = {(r["estimator"], r["rows"]): r for r in last} | found
    records = [found[key] for key in sorted(found, key=lambda key: (NAMES.index(key[0]), key[1]))]
    text = table(records)
    fitted = [r for r in records if r["outcome"] == "fitted" and r["growth"] > LARGE]
    largest = max((r["growth"] / r["estimate"] for r in fitted if r["estimate"]), default=0.0)
    words = f"Largest ratio of a fit that grew by more than 200 MB: {largest:.2f}; the bound is {MAX_RATIO}."
    print(f"{text}\n\n{words}")
    if options.no_save:
        return
    about = {
        "date": str(date.today()),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
        "limit in kilobytes": options.limit,
    }
    (HERE / "results.json").write_text(json.dumps({"about": about, "records": records}, indent=1) + "\n")
    head = "# Memory known in advance\n\nThe estimate made before a fit, and its peak above what was there before."
    tail = ", ".join(f"{key} {value}" for key, value in about.items())
    (HERE / "results.md").write_text(f"{head}\n\n{text}\n\n{words}\n\n{tail}.\n")


if __name__ == "__main__":
    main()

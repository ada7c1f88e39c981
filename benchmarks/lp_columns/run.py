"""The 1-norm mixture by column generation: ours, one column a round (the papers), and the full LP.

Ours adds 50 columns a round or more, drops idle ones, and solves its linear programs roughly at first; the papers' loop
adds one column, drops none, and solves exactly, by the simplex method from the last basis.

    python benchmarks/lp_columns/run.py [--repeats 3] [--no-save]

Kernel values are ready before the clock starts. Times are medians over interleaved repeats in one process with one
thread; the objective is computed here, not by the solvers. A second part fits with lazy kernels in a fresh process and
compares its peak memory with the size of the active columns.
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

sys.path.append(str(Path(__file__).parents[2] / "tests"))

import highspy
import numpy as np
from oracles.reference import full_lp
from problem import kernel_values, objective, sample

from kernelweave.solvers.columns.loop import generate_columns
from kernelweave.solvers.columns.lp_masters import LPMaster
from kernelweave.solvers.margin import classification_rows

HERE = Path(__file__).parent
CASES = [(500, 500, 3), (1000, 1000, 5), (1000, 5000, 10)]
C, TOL, SEED = 1.0, 1e-6, 0
FULL_LP_SECONDS = 300
MEMORY_RUNS = 3
REPEATED_BELOW = 60  # seconds; what takes longer runs once


def by_columns(K, y, batch):
    """Solve by column generation, ``batch`` columns a round; return time, columns, coefficients, offset, rounds."""
    rows = classification_rows(y, np.full(len(y), C))
    start = time.perf_counter()
    (result,) = generate_columns(
        [LPMaster(rows, idle_rounds=None) if batch == 1 else LPMaster(rows)],
        lambda V, stratum: [(slice(0, K.shape[1]), K.T @ V)],
        lambda J: K[:, J],
        tol=TOL,
        batch=batch,
    )
    seconds = time.perf_counter() - start
    return seconds, result.columns, result.x, result.intercept, result.n_iter


def whole(K, y):
    """Solve the full LP in a process that can be stopped after FULL_LP_SECONDS."""
    command = [sys.executable, str(HERE / "run.py"), "--full-lp", json.dumps([len(y), *CASE_OF[K.shape]])]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=FULL_LP_SECONDS + 60, check=True)
    except subprocess.TimeoutExpired:
        return None
    return json.loads(done.stdout)


CASE_OF = {}


def full_lp_alone(n_labeled, n_unlabeled, n_kernels):
    X, y = sample(n_labeled, n_unlabeled, SEED)
    K = kernel_values(X, n_labeled, n_kernels, SEED)
    start = time.perf_counter()
    try:
        solution = full_lp(K, classification_rows(y, np.full(len(y), C)), time_limit=FULL_LP_SECONDS)
    except TimeoutError:
        return None
    seconds = time.perf_counter() - start
    value = objective(K, y, C, np.arange(K.shape[1]), solution.coef, solution.intercept)
    return {"seconds": seconds, "objective": value}


def compare(n_labeled, n_unlabeled, n_kernels, repeats):
    X, y = sample(n_labeled, n_unlabeled, SEED)
    K = kernel_values(X, n_labeled, n_kernels, SEED)
    CASE_OF[K.shape] = (n_unlabeled, n_kernels)
    times = {None: [], 1: []}
    found = {}
    for repeat in range(repeats):
        for batch in times:
            if repeat and times[batch][0] > REPEATED_BELOW:
                continue
            seconds, columns, coef, intercept, rounds = by_columns(K, y, batch)
            times[batch].append(seconds)
            found[batch] = (objective(K, y, C, columns, coef, intercept), len(columns), rounds)
    ours = float(np.median(times[None]))
    record = {
        "case": [n_labeled, n_unlabeled, n_kernels],
        "seconds": ours,
        "rounds": found[None][2],
        "working_set": found[None][1],
        "objective": found[None][0],
        "one_a_round": {
            "ratio": float(np.median(times[1])) / ours,
            "rounds": found[1][2],
            "objective_difference": found[1][0] / found[None][0] - 1,
        },
    }
    full = whole(K, y)
    if full is not None:
        difference = full["objective"] / found[None][0] - 1
        record["full_lp"] = {"ratio": full["seconds"] / ours, "objective_difference": difference}
    return record


def memory(n_labeled, n_unlabeled, n_kernels):
    """Fit lazily in fresh processes; return the largest peak memory above the baseline (it varies by 10 %)."""
    case = json.dumps([n_labeled, n_unlabeled, n_kernels])
    command = [sys.executable, str(HERE / "memory.py"), case]
    runs = [subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(MEMORY_RUNS)]
    return max(map(json.loads, runs), key=lambda record: record["peak_mb"])


def table(records):
    lines = [
        "| labelled, unlabelled, kernels | ours | one column a round | full LP | peak memory, worst of 3 | allowed |",
        "|---|---|---|---|---|---|",
    ]
    for record in records:
        full = f"{record['full_lp']['ratio']:.1f}x" if "full_lp" in record else f"over {FULL_LP_SECONDS} s"
        peak = record["memory"]
        lines.append(
            f"| {', '.join(map(str, record['case']))} | {record['seconds']:.2f} s, {record['rounds']} rounds | "
            f"{record['one_a_round']['ratio']:.1f}x, {record['one_a_round']['rounds']} rounds | {full} | "
            f"{peak['peak_mb']:.0f} MB | {peak['allowed_mb']:.0f} MB |"
        )
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--no-save", action="store_true")
    parser.add_argument("--full-lp", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.full_lp:
        print(json.dumps(full_lp_alone(*options.full_lp)))
        return
    records = []
    for case in CASES:
        print(f"{case} ...", file=sys.stderr, flush=True)
        records.append(compare(*case, options.repeats) | {"memory": memory(*case)})
    print(table(records))
    worst = max(
        abs(part["objective_difference"]) for r in records for part in (r["one_a_round"], r.get("full_lp")) if part
    )
    print(f"\nlargest relative difference between the optima found: {worst:.1e}")
    if not options.no_save:
        about = {
            "date": str(date.today()),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
            "numpy": np.__version__,
            "highspy": highspy.Highs().version(),
            "C": C,
            "tol": TOL,
            "repeats": options.repeats,
        }
        (HERE / "results.json").write_text(json.dumps({"about": about, "records": records}, indent=1) + "\n")
        words = ", ".join(f"{key} {value}" for key, value in about.items())
        text = f"# LP by columns\n\n{table(records)}\n\nTimes are ratios to ours in one run. {words}.\n"
        (HERE / "results.md").write_text(text)


if __name__ == "__main__":
    main()

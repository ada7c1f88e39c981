"""One restricted linear program of a fit: our interior-point method beside those of HiGHS, at the same accuracy.

    python benchmarks/lp_columns/restricted.py

The program is the dual of the 1-norm problem on the columns that a fit ends with and half as many others. Ours is asked
for a relative gap of 1e-5, as rough solutions are at most; HiGHS's methods for tolerances of 1e-5, without crossover,
and its dual simplex method for a vertex. Gaps are computed here: duals are clipped into their box and divided by the
largest score, coefficients charged with their hinge losses. One thread, processor time, the better of two runs where
the first takes less than 5 s; a method stops after a minute of the clock.
"""

import json
import os
import sys
import time
from datetime import date
from pathlib import Path

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import highspy
import numpy as np
from problem import kernel_values, sample
from run import CASES, SEED, C, by_columns

from kernelweave.solvers.columns.interior_lp import DenseLP, solve_interior_lp

HERE = Path(__file__).parent
TOL, SECONDS, REPEATED_BELOW = 1e-5, 60.0, 5.0
METHODS = {"interior point": "ipm", "HiPO": "hipo", "PDLP": "pdlp", "dual simplex": "simplex"}


def restricted(n_labeled, n_unlabeled, n_kernels):
    """Return a program as ours holds it: rows are centred columns of kernels, the first row balances the duals."""
    X, y = sample(n_labeled, n_unlabeled, SEED)
    K = kernel_values(X, n_labeled, n_kernels, SEED)
    _, columns, *_ = by_columns(K, y, None)
    others = np.setdiff1d(np.arange(K.shape[1]), columns)
    more = np.random.default_rng(SEED).choice(others, min(len(others), len(columns) // 2), replace=False)
    A = K[:, np.append(columns, more)]
    A = np.vstack([np.ones(n_labeled), (A - A.mean(axis=0)).T])
    bound = np.append(0.0, np.ones(len(A) - 1))
    return DenseLP(A, y.astype(float), np.arange(n_labeled), -np.ones(n_labeled), np.full(n_labeled, C), -bound, bound)


def relative_gap(lp, x, row_dual):
    """Return the gap of clipped duals and of the coefficients that belong to them, relative to the objective."""
    x = np.clip(x, 0.0, lp.ceiling)
    sides = [x[lp.sign > 0].sum(), x[lp.sign < 0].sum()]
    x = x * np.where(lp.sign > 0, min(1.0, sides[1] / sides[0]), min(1.0, sides[0] / sides[1]))
    bound = x.sum() / max(1.0, float(np.abs(lp.rows(x)[1:]).max()))
    values = -row_dual @ lp.K
    objective = np.abs(row_dual[1:]).sum() + lp.ceiling @ np.maximum(0.0, 1.0 - lp.sign * values)
    return float((objective - bound) / objective)


def by_highs(lp, method):
    """Return seconds, variables and multipliers of the rows; None where the time is over."""
    highs = highspy.Highs()
    options = {
        "output_flag": False, "threads": 1, "solver": METHODS[method], "run_crossover": "off", "time_limit": SECONDS,
        "ipm_optimality_tolerance": TOL, "pdlp_optimality_tolerance": TOL,
    }  # fmt: skip
    for name, value in options.items():
        if highs.setOptionValue(name, value) != highspy.HighsStatus.kOk:
            return None
    A = lp.K[:, lp.point] * lp.sign
    n_rows, n_columns = A.shape
    indices = np.arange(n_columns, dtype=np.int32)
    highs.addVars(n_columns, np.zeros(n_columns), lp.ceiling)
    highs.changeColsCost(n_columns, indices, lp.cost)
    starts = n_columns * np.arange(n_rows, dtype=np.int32)
    highs.addRows(n_rows, lp.lower, lp.upper, A.size, starts, np.tile(indices, n_rows), A.ravel())
    started, began = time.process_time(), time.perf_counter()
    highs.run()
    seconds = time.process_time() - started
    if time.perf_counter() - began >= SECONDS or not highs.getSolution().value_valid:
        return None
    solution = highs.getSolution()
    return seconds, np.array(solution.col_value), np.array(solution.row_dual)


def by_ours(lp):
    started = time.process_time()
    point = solve_interior_lp(lp, TOL)
    return time.process_time() - started, point.x, point.row_dual


def measure(lp, solve):
    runs = [solve(lp)]
    if runs[0] is None:
        return None
    if runs[0][0] < REPEATED_BELOW:
        runs.append(solve(lp) or runs[0])
    seconds, x, row_dual = min(runs, key=lambda run: run[0])
    return {"seconds": seconds, "gap": relative_gap(lp, x, row_dual)}


def main():
    records = []
    for case in CASES:
        lp = restricted(*case)
        found = {"ours": measure(lp, by_ours)}
        for method in METHODS:
            found[method] = measure(lp, lambda lp, method=method: by_highs(lp, method))
            print(case, method, found["ours"], found[method], file=sys.stderr, flush=True)
        records.append({"case": list(case), "rows": len(lp.K), "methods": found})
        write(records)


def write(records):
    about = {
        "date": str(date.today()), "cores": os.cpu_count(), "numpy": np.__version__,
        "highspy": highspy.Highs().version(), "C": C, "tol": TOL,
    }  # fmt: skip
    lines = ["| labelled, unlabelled, kernels | rows | ours | " + " | ".join(f"HiGHS: {m}" for m in METHODS) + " |"]
    lines.append("|" + "---|" * (3 + len(METHODS)))
    for record in records:
        ours = record["methods"]["ours"]
        cells = [f"{ours['seconds']:.3f} s ({ours['gap']:.0e})"]
        for method in METHODS:
            peer = record["methods"][method]
            ratio = "-" if peer is None else f"{peer['seconds'] / ours['seconds']:.1f}x"
            cells.append(ratio if peer is None else f"{ratio} ({peer['gap']:.0e})")
        lines.append(f"| {', '.join(map(str, record['case']))} | {record['rows']} | {' | '.join(cells)} |")
    text = " ".join(" ".join(__doc__.split("\n\n")[2:]).split())
    words = ", ".join(f"{key} {value}" for key, value in about.items())
    (HERE / "restricted.json").write_text(json.dumps({"about": about, "records": records}, indent=1) + "\n")
    title = "# One restricted linear program\n\n"
    note = "In brackets the gap reached; - is a method that this HiGHS has not, or that did not end."
    table = "\n".join(lines)
    (HERE / "restricted.md").write_text(f"{title}{text} {note}\n\n{table}\n\n{words}.\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()

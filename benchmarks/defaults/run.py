"""Every learner with nothing set, beside scikit-learn's, on partly labelled sets: errors, ranks, before and after.

    KERNELWEAVE_DATA=... python benchmarks/defaults/run.py [--phase after] [--task classes] [--sets ...] [--methods ...]
        [--labels 20 50 100] [--draws 10] [--jobs 2]

Errors in % on the unlabelled rows, rmse relative to the standard deviation for numbers; a draw has at most 1000 rows.
Labels are drawn at random, one for every class at least. Tables are given with standardised columns. Learners that take
unlabelled rows get all rows, the others the labelled ones (before, MKL too). SVC and SVR are tuned by folds over 16
settings. Cells that were computed are kept: a run that was stopped goes on, `--again` computes the chosen ones anew.
`--phase` names the state of the code that is measured; the tables compare the phases.
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
from joblib import Parallel, delayed

sys.path.insert(0, str(Path(__file__).parent))
from data import OTHERS, REGRESSIONS, TABLES, draw
from methods import classifiers, regressors
from tables import write_tables

HERE = Path(__file__).parent


def cell(task, name, method, n_labels, seed):
    """Return the error of one method on one draw, and its seconds."""
    rows = draw(name, n_labels, seed)
    predict = (classifiers() if task == "classes" else regressors())[method]
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            predicted = predict(rows)
        except ValueError as error:
            print(f"{method} on {name}, {n_labels} labels, draw {seed}: {error}", file=sys.stderr, flush=True)
            return None, 0.0
    seconds = time.perf_counter() - started
    truth = rows.y[rows.unlabeled]
    if task == "classes":
        return round(100.0 * float(np.mean(predicted != truth)), 3), round(seconds, 2)
    return round(float(np.sqrt(np.mean((predicted - truth) ** 2)) / truth.std()), 4), round(seconds, 2)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--phase", default="after")
    parser.add_argument("--task", choices=("classes", "numbers"), default="classes")
    parser.add_argument("--sets", nargs="+")
    parser.add_argument("--methods", nargs="+")
    parser.add_argument("--labels", nargs="+", type=int, default=[20, 50, 100])
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--output", type=Path, default=HERE / "results.json")
    args = parser.parse_args()
    sets = args.sets or ([*TABLES, *OTHERS] if args.task == "classes" else REGRESSIONS)
    methods = args.methods or list(classifiers() if args.task == "classes" else regressors())
    results = json.loads(args.output.read_text()) if args.output.exists() else {}
    for name in sets:
        done = results.setdefault(args.phase, {}).setdefault(args.task, {}).setdefault(name, {})
        wanted = [
            (method, n, seed)
            for method in methods
            for n in args.labels
            for seed in range(args.draws)
            if args.again or str(seed) not in done.get(method, {}).get(str(n), {})
        ]
        if not wanted:
            continue
        errors = Parallel(args.jobs)(delayed(cell)(args.task, name, *one) for one in wanted)
        for (method, n, seed), measured in zip(wanted, errors, strict=True):
            done.setdefault(method, {}).setdefault(str(n), {})[str(seed)] = measured
        results[args.phase].setdefault("about", {})[args.task] = {
            "date": date.today().isoformat(), "cores": os.cpu_count(), "python": platform.python_version(),
            "numpy": np.__version__, "scikit-learn": sklearn.__version__,
        }  # fmt: skip
        args.output.write_text(json.dumps(results, separators=(",", ":")) + "\n")
        print(f"{name} done", file=sys.stderr, flush=True)
    write_tables(results, args.output.with_suffix(".md"), " ".join(__doc__.split("\n\n")[2].split()))


if __name__ == "__main__":
    main()

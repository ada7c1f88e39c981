"""How long the whole search takes beside one default fit of each candidate, on 2000 x 50 rows with 100 labels.

    python benchmarks/auto/timing.py

One BLAS thread, one process; compiled code is loaded first. The search fits every candidate of kernelweave to all
labels and to five folds. Rows are the same in all of these fits, so kernels are bound once.
"""

import json
import os
import platform
import time
import warnings
from datetime import date
from pathlib import Path

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np
from sklearn.datasets import make_classification

from kernelweave import AutoKernelClassifier
from kernelweave.estimators.auto.candidates import configure, read_candidates
from kernelweave.loops.compiling import compile_at_once
from kernelweave.model_selection.semi_supervised import takes_unlabeled

HERE = Path(__file__).parent
N_ROWS, N_COLUMNS, N_LABELS = 2000, 50, 100


def table():
    """Return rows, classes with NaN for unlabelled rows, and the labelled rows."""
    X, truth = make_classification(N_ROWS, N_COLUMNS, n_informative=10, n_redundant=10, random_state=0)
    rng = np.random.default_rng(0)
    X = X * np.exp(2 * rng.normal(size=N_COLUMNS))
    labeled = np.sort(rng.choice(N_ROWS, N_LABELS, replace=False))
    y = np.full(N_ROWS, np.nan)
    y[labeled] = truth[labeled]
    return X, y, labeled


def measure(X, y, labeled):
    """Return the seconds of one default fit of each candidate, and of the search."""
    alone = {}
    for candidate in read_candidates("kernels", X, N_LABELS, "classes", "timing"):
        estimator = configure(candidate.estimator, random_state=0)
        started = time.perf_counter()
        if takes_unlabeled(estimator):
            estimator.fit(X, y)
        else:
            estimator.fit(X[labeled], y[labeled])
        alone[candidate.name] = time.perf_counter() - started
    started = time.perf_counter()
    model = AutoKernelClassifier("kernels", n_repeats=1, random_state=0).fit(X, y)
    return alone, time.perf_counter() - started, model.leaderboard_


def main():
    warnings.simplefilter("ignore")
    X, y, labeled = table()
    few = np.r_[labeled, np.arange(200)]
    compile_at_once()
    AutoKernelClassifier("kernels", n_repeats=1, random_state=0).fit(X[few], y[few])
    alone, whole, leaderboard = measure(X, y, labeled)
    total = sum(alone.values())
    inside = {record["candidate"]: record["seconds"] for record in leaderboard}
    lines = ["# Time of a search", "", " ".join(__doc__.split("\n\n")[2].split()), ""]
    lines += ["| candidate | one default fit, s | all its fits in the search, s |", "|---|---|---|"]
    lines += [f"| {name} | {seconds:.2f} | {inside.get(name, 0):.2f} |" for name, seconds in alone.items()]
    lines += [f"| all | {total:.2f} | {whole:.2f} |", "", f"The search takes {whole / total:.2f} times as long.", ""]
    about = {"date": date.today().isoformat(), "cores": os.cpu_count(), "python": platform.python_version()}
    lines += [", ".join(f"{key} {value}" for key, value in about.items()) + f", numpy {np.__version__}.", ""]
    (HERE / "timing.md").write_text("\n".join(lines))
    (HERE / "timing.json").write_text(json.dumps({"alone": alone, "search": whole, "about": about}) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()

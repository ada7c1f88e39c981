"""Label-aware kernels: time and memory against the number of rows, and against scikit-learn.

    python benchmarks/label_aware/run.py [--largest 1000000] [--repeats 3] [--only-transform] [--no-save]

Rows of 50 columns, single precision: two Gaussian clouds, 100 labels. Ours: a label-aware kernel with 30 eigenvectors
from 200 landmarks and a support vector machine on it, from raw rows to a label for every row. Growth: one process for
each number of rows, memory above that after the data are made; the exponent is that of a straight line through
logarithms. Peers, in double precision and one process, from rows to labels for all as well: Nystroem features of 200
landmarks (uniform ones, and k-means is not offered) with LinearSVC, the same kernel and cost; LabelSpreading with the
same Gaussian kernel, which keeps a matrix of all rows.

As a user calls it: ``LabelAwareKernelLearner(RBF(), n_eigenvectors=30, n_landmarks=200).fit(X, y).transform(X)`` on
rows of 48 columns beside ``Nystroem(n_components=200).fit(X).transform(X)``, single precision, in turns in one process:
processor time, best of the repeats; the same with other rows to transform, and ``transform`` of these alone.
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
import warnings
from datetime import date
from pathlib import Path

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np
import sklearn
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.semi_supervised import LabelSpreading
from sklearn.svm import LinearSVC

from kernelweave import RBF, LabelAwareKernelLearner, LearnedKernelClassifier
from kernelweave.loops.compiling import compile_at_once

HERE = Path(__file__).parent
SIZES = (2_000, 20_000, 200_000, 1_000_000)
N_COLUMNS, N_LABELED, N_LANDMARKS, N_EIGENVECTORS = 50, 100, 200, 30
GAMMA = 1.0 / (2.0 * N_COLUMNS)  # one over the mean squared distance


def clouds(n_rows, dtype):
    """Return rows, true classes, and labels that are -1 but for the first rows."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, N_COLUMNS), dtype=np.float32).astype(dtype, copy=False)
    truth = rng.integers(0, 2, n_rows)
    X[:, 0] += np.where(truth, 1.8, -1.8)
    return X, truth, np.where(np.arange(n_rows) < N_LABELED, truth, -1)


def ours(landmarks, C):
    learner = LabelAwareKernelLearner(
        RBF(GAMMA), n_eigenvectors=N_EIGENVECTORS, n_landmarks=N_LANDMARKS, landmarks=landmarks
    )
    return LearnedKernelClassifier(learner, C=C, random_state=0)


def growth(n_rows):
    """Return time, memory and error of one fit."""
    X, truth, y = clouds(n_rows, np.float32)
    compile_at_once()
    ours("kmeans", "cv").fit(X[:2000], y[:2000])  # compiles the loops
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.perf_counter()
    model = ours("kmeans", "cv").fit(X, y)
    return {
        "seconds": time.perf_counter() - started,
        "megabytes": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**10,
        "error": 100.0 * float(np.mean(model.transduction_[N_LABELED:] != truth[N_LABELED:])),
    }


def nystroem(X, y):
    """Return labels for all rows: features are fitted to rows of all kinds, the machine to the labelled ones."""
    features = Nystroem(gamma=GAMMA, n_components=N_LANDMARKS, random_state=0).fit(X)
    labeled = np.flatnonzero(y >= 0)
    machine = LinearSVC(C=10.0, random_state=0).fit(features.transform(X[labeled]), y[labeled])
    return machine.predict(features.transform(X))


def spreading(X, y):
    return LabelSpreading(kernel="rbf", gamma=GAMMA).fit(X, y).transduction_


def peers(n_rows, candidates, repeats):
    """Return the best time, and the error, of each candidate."""
    X, truth, y = clouds(n_rows, np.float64)
    found = {name: {"seconds": np.inf} for name in candidates}
    for _ in range(repeats):
        for name, label in candidates.items():
            started = time.perf_counter()
            predicted = label(X, y)
            found[name]["seconds"] = min(found[name]["seconds"], time.perf_counter() - started)
            found[name]["error"] = 100.0 * float(np.mean(predicted[N_LABELED:] != truth[N_LABELED:]))
    return found


def as_called(n_rows, repeats):
    """Return the processor times of fit and transform, ours and scikit-learn's, of the same rows and of other ones."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 2 * n_rows)
    X = rng.standard_normal((2 * n_rows, 48), dtype=np.float32)
    X[:, 0] += np.where(truth, 1.8, -1.8)
    X, others = X[:n_rows].copy(), X[n_rows:].copy()
    y = np.where(np.arange(n_rows) < N_LABELED, truth[:n_rows], -1)

    def learner():
        return LabelAwareKernelLearner(
            RBF(), n_eigenvectors=N_EIGENVECTORS, n_landmarks=N_LANDMARKS, random_state=0
        ).fit(X, y)

    def nystroem():
        return Nystroem(gamma=1.0 / 100.0, n_components=N_LANDMARKS, random_state=0).fit(X)

    ours, theirs = learner(), nystroem()
    calls = {
        "ours alone": lambda: ours.transform(others),
        "Nystroem alone": lambda: theirs.transform(others),
        "ours": lambda: learner().transform(X),
        "Nystroem": lambda: nystroem().transform(X),
        "ours, other rows": lambda: learner().transform(others),
        "Nystroem, other rows": lambda: nystroem().transform(others),
    }
    best = dict.fromkeys(calls, np.inf)
    for _ in range(repeats):
        for name, call in calls.items():
            started = time.process_time()
            call()
            best[name] = min(best[name], time.process_time() - started)
    return best


def describe_calls(results):
    """Return a line for each number of rows."""
    lines = []
    for n_rows, best in results.items():
        same, other, alone = (best[f"ours{what}"] / best[f"Nystroem{what}"] for what in ("", ", other rows", " alone"))
        lines.append(
            f"{int(n_rows):,} x 48: ours takes {same:.2f} times the processor time of Nystroem "
            f"({1e3 * best['ours']:.0f} and {1e3 * best['Nystroem']:.0f} ms), {other:.2f} times where other rows are "
            f"transformed, {alone:.2f} times for this ``transform`` without the fit."
        )
    return "\n\n".join(lines)


def table(results):
    lines = ["# Label-aware kernels", "", "| rows | seconds | memory above the data | error |", "|---|---|---|---|"]
    for n_rows, found in results["growth"].items():
        lines.append(
            f"| {int(n_rows):,} | {found['seconds']:.2f} | {found['megabytes']:.0f} MB | {found['error']:.1f} % |"
        )
    lines += ["", f"Time grows as the rows to the power of {results['exponent']:.2f}.", ""]
    if "called" in results:
        lines += ["Fit and transform as a user calls them:", "", describe_calls(results["called"]), ""]
    for title, found in results["peers"].items():
        mine = next(iter(found.values()))["seconds"]
        lines += [f"{title}:", "", "| | seconds | to the first | error |", "|---|---|---|---|"]
        for name, one in found.items():
            ratio = one["seconds"] / mine
            lines.append(f"| {name} | {one['seconds']:.3f} | {ratio:.2f}x | {one['error']:.1f} % |")
        lines.append("")
    about = ", ".join(f"{key} {value}" for key, value in results["about"].items())
    return "\n".join([*lines, about + ".", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--largest", type=int, default=SIZES[-1])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only-transform", action="store_true", help="keep the other results")
    parser.add_argument("--no-save", action="store_true")
    parser.add_argument("--growth", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)  # LinearSVC's and LabelSpreading's limits are theirs
    if args.growth:
        print(json.dumps(growth(args.growth)))
        return
    called = {str(n_rows): as_called(n_rows, args.repeats) for n_rows in (20_000, 80_000)}
    if args.only_transform:
        results = json.loads((HERE / "results.json").read_text())
        earlier = results["about"].get("other tables of", results["about"]["date"])
        save(results | {"called": called}, args, earlier)
        return
    results = {"growth": {}, "peers": {}, "called": called}
    for n_rows in (size for size in SIZES if size <= args.largest):
        command = [sys.executable, __file__, "--growth", str(n_rows)]
        results["growth"][str(n_rows)] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    sizes = np.log([int(n_rows) for n_rows in results["growth"]])
    seconds = np.log([found["seconds"] for found in results["growth"].values()])
    results["exponent"] = float(np.polyfit(sizes, seconds, 1)[0])
    fits = {
        "label-aware, uniform landmarks, C=10": lambda X, y: ours("uniform", 10.0).fit(X, y).transduction_,
        "label-aware, k-means landmarks, C=10": lambda X, y: ours("kmeans", 10.0).fit(X, y).transduction_,
        "label-aware, k-means landmarks, C by folds": lambda X, y: ours("kmeans", "cv").fit(X, y).transduction_,
    }
    results["peers"]["20,000 rows"] = peers(20_000, {**fits, "Nystroem + LinearSVC": nystroem}, args.repeats)
    spread = {**fits, "LabelSpreading (rbf)": spreading}
    results["peers"]["10,000 rows"] = peers(10_000, spread, min(2, args.repeats))
    save(results, args)


def save(results, args, earlier=None):
    """Print the results, and write them with date and versions, and the date of what was kept."""
    results["about"] = {
        "date": date.today().isoformat(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
        "repeats": args.repeats,
    }
    if earlier is not None:
        results["about"]["other tables of"] = earlier
    text = table(results)
    print(text)
    if not args.no_save:
        (HERE / "results.json").write_text(json.dumps(results, indent=1) + "\n")
        (HERE / "results.md").write_text(text)


if __name__ == "__main__":
    main()

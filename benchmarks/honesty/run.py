"""Is the error that AutoKernel* states the error it has? Bias, coverage and calibration on generated tables.

    python benchmarks/honesty/run.py [--tables 200] [--jobs 2] [--candidates all]

Each table has 400 rows, 30, 60 or 100 of them labelled at random, two to four classes (or numbers), clusters, noise
columns, skewed columns and flipped labels, all drawn. Beside what the model states are: the error on the unlabelled
rows, the share of 95 % intervals that hold it, the share of unlabelled rows whose class is in a 90 % set (whose number
is in a 90 % interval), and the mean probability of the predicted class beside the share that is right. A run that was
stopped goes on.
"""

import argparse
import json
import os
import platform
import sys
import warnings
from datetime import date
from pathlib import Path

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np
import sklearn
from joblib import Parallel, delayed

HERE = Path(__file__).parent
N_ROWS, LABELS = 400, (30, 60, 100)
FAST = ["MKL", "LapSVM", "LearnedKernel", "TSVM", "harmonic", "RKDA", "SVM", "logistic regression", "random forest"]


def generate(seed, task):
    """Return rows, classes or numbers, and which rows are labelled."""
    rng = np.random.default_rng([seed, task == "classes"])
    n_informative, n_noise, n_classes = rng.integers(2, 8), rng.integers(0, 12), rng.integers(2, 5)
    n_clusters = n_classes * rng.integers(1, 4)
    centers = rng.normal(size=(n_clusters, n_informative)) * rng.uniform(0.8, 2.5)
    cluster = rng.integers(0, n_clusters, N_ROWS)
    X = centers[cluster] + rng.normal(size=(N_ROWS, n_informative))
    if task == "classes":
        y = cluster % n_classes
        flipped = rng.random(N_ROWS) < rng.uniform(0, 0.2)
        y[flipped] = rng.integers(0, n_classes, flipped.sum())
    else:
        y = np.sin(X[:, 0]) + 0.3 * X[:, 1] ** 2 + centers[cluster, 0] + rng.uniform(0.1, 1.0) * rng.normal(size=N_ROWS)
    X = np.hstack([X, rng.normal(size=(N_ROWS, n_noise))])
    skewed = rng.random(X.shape[1]) < 0.4
    X[:, skewed] = np.exp(X[:, skewed])
    X = X * np.exp(rng.normal(size=X.shape[1]))
    while True:
        labeled = rng.choice(N_ROWS, LABELS[seed % len(LABELS)], replace=False)
        if task == "numbers" or np.unique(y[labeled], return_counts=True)[1].min() >= 2:
            return X, y, labeled


def cell(seed, task, candidates):
    """Return what one model states, and what is true."""
    from kernelweave import AutoKernelClassifier, AutoKernelRegressor

    X, truth, labeled = generate(seed, task)
    y = np.full(N_ROWS, np.nan)
    y[labeled] = truth[labeled]
    rest = np.setdiff1d(np.arange(N_ROWS), labeled)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if task == "classes":
            model = AutoKernelClassifier(candidates, random_state=0, n_repeats=1).fit(X, y)
            guessed, proba = model.transduction_[rest], model.label_distributions_[rest]
            sets = model.predict_set(X[rest])
            return {
                "labels": len(labeled),
                "stated": [model.error_.value, model.error_.low, model.error_.high],
                "true": float(np.mean(guessed != truth[rest])),
                "covered": float(np.mean(sets[np.arange(len(rest)), truth[rest]])),
                "size": float(sets.sum(axis=1).mean()),
                "confidence": float(proba.max(axis=1).mean()),
            }
        model = AutoKernelRegressor("all", random_state=0, n_repeats=1).fit(X, y)
        low, high = model.predict_interval(X[rest]).T
        unit = float(np.std(truth))
        return {
            "labels": len(labeled),
            "stated": [value / unit for value in (model.error_.value, model.error_.low, model.error_.high)],
            "true": float(np.sqrt(np.mean((model.transduction_[rest] - truth[rest]) ** 2))) / unit,
            "covered": float(np.mean((truth[rest] >= low) & (truth[rest] <= high))),
            "size": float(np.mean(high - low)) / unit,
        }


def summarize(cells):
    """Return rows of a table: all tables, and those with each number of labels."""
    groups = {"all": cells} | {n: [one for one in cells if one["labels"] == n] for n in LABELS}
    lines = [
        "| labels | tables | stated | true | bias (standard error) | 95 % intervals that hold it | "
        "90 % sets or intervals | their size | confidence | right |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, group in groups.items():
        stated, true = np.array([one["stated"] for one in group]), np.array([one["true"] for one in group])
        bias = stated[:, 0] - true
        held = np.mean((stated[:, 1] <= true) & (true <= stated[:, 2]))
        sure = [one["confidence"] for one in group if "confidence" in one]
        covered, size = (np.mean([one[key] for one in group]) for key in ("covered", "size"))
        lines.append(
            f"| {name} | {len(group)} | {stated[:, 0].mean():.4f} | {true.mean():.4f} | {bias.mean():+.4f} "
            f"({bias.std(ddof=1) / np.sqrt(len(bias)):.4f}) | {held:.1%} | {covered:.1%} | {size:.2f} | "
            + (f"{np.mean(sure):.3f} | {1 - true.mean():.3f} |" if sure else "| |")
        )
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--candidates", default="fast", help='"fast" (nine of them), "all" or "kernels"')
    parser.add_argument("--tasks", nargs="+", default=["classes", "numbers"])
    parser.add_argument("--output", type=Path, default=HERE / "results.json")
    args = parser.parse_args()
    results = json.loads(args.output.read_text()) if args.output.exists() else {}
    candidates = FAST if args.candidates == "fast" else args.candidates
    for task in args.tasks:
        done = results.setdefault(task, {})
        wanted = [seed for seed in range(args.tables) if str(seed) not in done]
        for chunk in (wanted[i : i + 20] for i in range(0, len(wanted), 20)):
            found = Parallel(args.jobs)(delayed(cell)(seed, task, candidates) for seed in chunk)
            done.update({str(seed): one for seed, one in zip(chunk, found, strict=True)})
            results["about"] = {
                "date": date.today().isoformat(), "cores": os.cpu_count(), "python": platform.python_version(),
                "numpy": np.__version__, "scikit-learn": sklearn.__version__, "candidates": args.candidates,
            }  # fmt: skip
            args.output.write_text(json.dumps(results, separators=(",", ":")) + "\n")
            print(f"{task}: {len(done)} tables", file=sys.stderr, flush=True)
    lines = ["# Honesty", "", " ".join(__doc__.split("\n\n")[2].split()), ""]
    for task in ("classes", "numbers"):
        if results.get(task):
            unit = "share of wrong classes" if task == "classes" else "rmse / standard deviation"
            lines += [f"## {task.capitalize()}: {unit}", "", *summarize(list(results[task].values())), ""]
    lines += [", ".join(f"{key} {value}" for key, value in results["about"].items()) + ".", ""]
    args.output.with_suffix(".md").write_text("\n".join(lines))


if __name__ == "__main__":
    main()

"""Which column scale for which norm: test error with C chosen on validation rows.

    KERNELWEAVE_DATA=... python benchmarks/column_scale/run.py [--trials 5] [--jobs 2] [--no-save]

The default library on standardised features; 150 training, 150 validation and up to 1000 test rows of each set.
"""

import argparse
import json
import os
import platform
import warnings
from datetime import date
from pathlib import Path

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np
from joblib import Parallel, delayed
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from kernelweave import CGBoostClassifier, cg_boost_path

HERE = Path(__file__).parent
N_TRAIN, N_VALIDATION, N_TEST = 150, 150, 1000
SCALES = ("std", "norm", None)
COSTS = {"l1": np.geomspace(1e-2, 1e3, 6), "l2": np.geomspace(1e-5, 1e3, 9), "rkhs": np.geomspace(1e-2, 1e3, 6)}


def sets():
    """Give (name, X, y) with two classes."""
    X, y = load_digits(return_X_y=True)
    yield "digits odd/even", X, y % 2
    X, y = load_breast_cancer(return_X_y=True)
    yield "breast cancer", X, y
    X, y = load_wine(return_X_y=True)
    yield "wine 1/rest", X, y == 1
    folder = Path(os.environ["KERNELWEAVE_DATA"])
    for name in ("g241c", "digit1", "usps_ssl", "bci", "g50c", "ionosphere", "sonar", "heart_statlog"):
        path = folder / f"{name}.npz"
        if path.exists():
            data = np.load(path)
            yield name, data["X"].astype(float), data["y"]
    data = np.load(folder / "mnist14k.npz")
    yield "mnist odd/even", data["X"][:4000] / 255.0, data["y"][:4000] % 2


def trial(name, X, y, seed):
    """Return the test error for each norm and scale."""
    order = np.random.default_rng(seed).permutation(len(X))
    n_train = min(N_TRAIN, len(X) // 3)
    n_validation = min(N_VALIDATION, len(X) // 3)
    train, validation, test = np.split(order[: n_train + n_validation + N_TEST], [n_train, n_train + n_validation])
    if name != "mnist odd/even":
        X = StandardScaler().fit(X[train]).transform(X)
    out = {}
    for penalty, Cs in COSTS.items():
        for scale in SCALES:
            estimator = CGBoostClassifier(penalty=penalty, column_scale=scale, tol=1e-3 if penalty == "l1" else None)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                path = cg_boost_path(
                    X[train], y[train], Cs=Cs, estimator=estimator, X_val=X[validation], y_val=y[validation]
                )
            out[f"{penalty}, {scale}"] = 100 * (1 - path.best.score(X[test], y[test]))
            if scale == "std":
                (usual,) = (model for model in path.models if np.isclose(model.C, 10.0))
                out[f"{penalty}, {scale}, C=10"] = 100 * (1 - usual.score(X[test], y[test]))
    return out


def table(results):
    methods = list(next(iter(results.values()))[0])
    lines = ["| set | " + " | ".join(methods) + " |", "|---" * (len(methods) + 1) + "|"]
    means = []
    for name, trials in results.items():
        row = [np.mean([found[method] for found in trials]) for method in methods]
        means.append(row)
        lines.append(f"| {name} | " + " | ".join(f"{value:.1f}" for value in row) + " |")
    lines.append("| mean | " + " | ".join(f"{value:.2f}" for value in np.mean(means, axis=0)) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--no-save", action="store_true")
    options = parser.parse_args()
    results = {}
    for name, X, y in sets():
        seeds = range(options.trials)
        results[name] = Parallel(n_jobs=options.jobs)(delayed(trial)(name, X, y, seed) for seed in seeds)
        print(
            name,
            {key: round(float(np.mean([f[key] for f in results[name]])), 1) for key in results[name][0]},
            flush=True,
        )
    print(table(results))
    if not options.no_save:
        about = {"date": str(date.today()), "python": platform.python_version(), "numpy": np.__version__}
        about["trials"] = options.trials
        (HERE / "results.json").write_text(json.dumps({"about": about, "results": results}, indent=1) + "\n")
        words = ", ".join(f"{key} {value}" for key, value in about.items())
        (HERE / "results.md").write_text(
            f"# Column scales\n\nTest error in %, C chosen on validation rows.\n\n{table(results)}\n\n{words}.\n"
        )


if __name__ == "__main__":
    main()

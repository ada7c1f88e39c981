"""Prediction: rows a second and bytes of the saved model, for every classifier, beside scikit-learn's SVC.

    python benchmarks/predict/run.py [--only NAME ...] [--before FILE] [--no-save]

Two sets with few labels: the digits of scikit-learn (1797 x 64, ten classes, 100 labels) and a generated table (2000 x
20 columns of other units and skewness, three classes, 150 labels). Every classifier is fitted with nothing set;
supervised ones see the labelled rows only. Errors are those on the unlabelled rows. Beside them two of SVC, cost and
width by folds of the labelled rows: one that sees the same labels ("SVC"), and one that sees as many as it needs for
the error of the classifier ("equal error", at most all rows but those of the test half).

Rows a second: 20,000 rows, the least processor time of five, taken in turns with SVC, one thread. Bytes: of
`kernelweave.save`, and of pickle. The ratio of rows to SVC is that of the processor times; above 1 ours is faster.
"""

import argparse
import json
import os
import pickle
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
from sklearn.datasets import load_digits, make_classification
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import kernelweave
from kernelweave.persistence import pack

HERE = Path(__file__).parent
SUPERVISED = ("CGBoostClassifier", "CGBoostClassifierCV", "MKLClassifier")
SEMI_SUPERVISED = (
    *("SSMKClassifier", "LapSVMClassifier", "TSVMClassifier", "TSVMMKLClassifier", "RKDAClassifier"),
    *("LearnedKernelClassifier", "HarmonicClassifier", "AutoKernelClassifier"),
)
NAMES = (*SUPERVISED, *SEMI_SUPERVISED)
N_NEW, REPEATS = 20_000, 5
GRID = {"svc__C": [0.1, 1.0, 10.0, 100.0], "svc__gamma": [0.1, 0.3, 1.0, 3.0]}  # of gamma times the columns' number
LABELS = (100, 150, 200, 300, 400, 600, 900)  # that SVC may need for an error


def digits():
    X, y = load_digits(return_X_y=True)
    return X, y, 100


def table():
    X, y = make_classification(
        2000, 20, n_informative=8, n_redundant=4, n_classes=3, n_clusters_per_class=1, class_sep=1.2, random_state=0
    )
    rng = np.random.default_rng(0)
    X[:, ::3] = np.exp(0.5 * X[:, ::3])  # skewed, and in other units
    return X * 10.0 ** rng.uniform(-2, 3, X.shape[1]), y, 150


SETS = {"digits": digits, "table": table}


def tuned_svc(X, y, labeled):
    """Return SVC fitted to some rows, cost and width by folds."""
    widths = [width / X.shape[1] for width in GRID["svc__gamma"]]
    search = GridSearchCV(make_pipeline(StandardScaler(), SVC()), GRID | {"svc__gamma": widths}, cv=3)
    return search.fit(X[labeled], y[labeled]).best_estimator_


def svc_of_error(machines, error):
    """Return the name of the SVC with fewest labels whose error is no larger; None where there is none."""
    return next((name for name, one in machines.items() if one["error"] <= error), None)


def seconds_in_turns(models, X):
    """Return the least processor time in which each model predicts the rows."""
    best = dict.fromkeys(models, np.inf)
    for _ in range(REPEATS):
        for name, model in models.items():
            started = time.process_time()
            model.predict(X)
            best[name] = min(best[name], time.process_time() - started)
    return best


def measure(title, names):
    """Return what is measured on one set: the machines of SVC, and each classifier beside them."""
    X, y, n_labeled = SETS[title]()
    rng = np.random.default_rng(0)
    order = rng.permutation(len(X))
    test, others = order[: len(X) // 2], order[len(X) // 2 :]
    labeled = others[:n_labeled]
    given = np.full(len(X), -1)
    given[labeled] = y[labeled]
    new = X[rng.integers(0, len(X), N_NEW)]
    new = new + 0.01 * X.std(axis=0) * rng.standard_normal(new.shape)

    def error(model):
        return 100.0 * float(np.mean(model.predict(X[test]) != y[test]))

    fitted, machines = {}, {}
    for n in sorted({n_labeled, *(n for n in LABELS if n_labeled < n <= len(others))}):
        name = "SVC" if n == n_labeled else f"SVC, {n} labels"
        fitted[name] = tuned_svc(X, y, others[:n])
        machines[name] = {"error": error(fitted[name]), "pickled": len(pickle.dumps(fitted[name]))}
    records = {}
    for name in names:
        started = time.process_time()
        model = getattr(kernelweave, name)(**({"random_state": 0} if name != "HarmonicClassifier" else {}))
        model.fit(*((X[labeled], y[labeled]) if name in SUPERVISED else (X, given)))
        record = {"fit": time.process_time() - started, "error": error(model)}
        equal = svc_of_error(machines, record["error"])
        compared = {"ours": model, "SVC": fitted["SVC"]} | ({} if equal is None else {"equal": fitted[equal]})
        times = seconds_in_turns(compared, new)
        record |= {"rows": N_NEW / times["ours"], "to SVC": times["SVC"] / times["ours"], "equal": equal}
        if equal is not None:
            record["to equal"] = times["equal"] / times["ours"]
        record |= {"saved": len(pack(model)), "pickled": len(pickle.dumps(model))}
        records[name] = record
        print(title, name, record, file=sys.stderr, flush=True)
    return {"bytes": X.nbytes, "machines": machines, "classifiers": records}


def show(results, before):
    lines = ["# Prediction and size", "", " ".join(__doc__.split("\n\n")[2].split()), ""]
    lines += [" ".join(__doc__.split("\n\n")[3].split()), ""]
    for title, found in results["sets"].items():
        svc = found["machines"]["SVC"]
        lines += [
            f"## {title}: {found['bytes'] / 2**20:.2f} MB of data",
            "",
            f"SVC with the same labels: error {svc['error']:.1f} %, {svc['pickled'] / 1e3:.0f} kB.",
            "",
            "| classifier | error | rows a second | to SVC | to SVC of equal error | saved | before | pickled |",
            "|---" * 8 + "|",
        ]
        for name, one in found["classifiers"].items():
            equal = "none reaches it" if one["equal"] is None else f"{one['to equal']:.2f}x ({one['equal']})"
            known = before.get(title, {}).get("classifiers", {}).get(name)
            earlier = "" if known is None else f"{known['saved'] / 1e6:.2f} MB, {known['rows'] / 1e3:,.0f} k rows"
            lines.append(
                f"| {name} | {one['error']:.1f} % | {one['rows']:,.0f} | {one['to SVC']:.2f}x | {equal} | "
                f"{one['saved'] / 1e6:.2f} MB | {earlier} | {one['pickled'] / 1e6:.2f} MB |"
            )
        lines.append("")
    about = ", ".join(f"{key} {value}" for key, value in results["about"].items())
    return "\n".join([*lines, about + ".", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument("--before", action="store_true", help="keep what is measured as the columns before")
    parser.add_argument("--no-save", action="store_true")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    file = HERE / "results.json"
    results = json.loads(file.read_text()) if file.exists() else {}
    found = {title: measure(title, args.only) for title in SETS}
    if args.before:
        results["before"] = found
    known = results.get("sets", {}) if len(args.only) < len(NAMES) else {}
    for title, one in found.items():  # those that are not measured again keep their results
        one["classifiers"] = known.get(title, {}).get("classifiers", {}) | one["classifiers"]
    results |= {"sets": found}
    results["about"] = {
        "date": date.today().isoformat(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
        "repeats": REPEATS,
    }
    text = show(results, results.get("before", {}))
    print(text)
    if not args.no_save:
        file.write_text(json.dumps(results, indent=1) + "\n")
        (HERE / "results.md").write_text(text)


if __name__ == "__main__":
    main()

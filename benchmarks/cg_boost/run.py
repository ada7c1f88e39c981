"""MNIST odd/even: test error against the number of basis functions, ours and the peers, all tuned alike.

    KERNELWEAVE_DATA=... python benchmarks/cg_boost/run.py [--seeds 3] [--no-save]

1000 training rows, 2000 validation rows, 10000 test rows. Every method chooses its kernels and its C by the validation
error, for each budget of basis functions anew; only the chosen model sees the test rows.
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
from peers import nystroem_candidates, svc_candidates
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import Normalizer

from kernelweave import (
    RBF,
    CGBoostClassifier,
    Linear,
    Normalized,
    Polynomial,
    Preprocessed,
    cg_boost_path,
)

HERE = Path(__file__).parent
BUDGETS = (50, 60, 100, 200, 400)
L, Q, R = Linear(), Polynomial(), RBF()
COS5 = Normalized(Polynomial(5, coef0=0.0))
UNIT_RBF = [Preprocessed(Normalizer(), RBF(multiple=multiple)) for multiple in (2.0, 4.0)]
LIBRARIES = {
    "L,Q,R": [L, Q, R],
    "default": None,
    "R2": [RBF(multiple=2.0)],
    "cos5": [COS5],
    "cos5, R2, R4 on unit rows": [COS5, *UNIT_RBF],
}
COMPOSITES = {"L+Q": [L + Q], "L+R": [L + R], "L+Q+R": [L + Q + R]}
PATHS = {"std": [*np.geomspace(0.01, 0.1, 9), 0.3, 1.0, 10.0], None: [*np.geomspace(0.1, 1.0, 9), 3.0, 10.0, 100.0]}
COSTS = {"l2": (3.0, 30.0, 300.0), "rkhs": (3.0, 10.0, 30.0, 100.0)}


def split(seed):
    data = np.load(Path(os.environ["KERNELWEAVE_DATA"]) / "mnist14k.npz")
    X, y = data["X"] / 255.0, data["y"] % 2
    order = np.random.default_rng(seed).permutation(len(X))
    return [(X[rows], y[rows]) for rows in np.split(order[:13000], [1000, 3000])]


def error(model, X, y):
    return 100.0 * float(np.mean(model.predict(X) != y))


def ours_l1(train, libraries):
    """Give (name, model) along paths over C; each model counts for every budget it keeps."""
    for name, kernels in libraries.items():
        for scale, Cs in PATHS.items():
            estimator = CGBoostClassifier(kernels, penalty="l1", column_scale=scale, tol=1e-4)
            path = cg_boost_path(*train, Cs=Cs, estimator=estimator)
            for C, model in zip(path.Cs, path.models, strict=True):
                yield f"{name}, column_scale={scale}, C={C:g}", model, model.n_columns_


def ours_grown(train, penalty, budget):
    """Give (name, model) grown up to a budget of columns (None: to the default certificate)."""
    for name, kernels in LIBRARIES.items():
        for C in COSTS[penalty]:
            model = CGBoostClassifier(kernels, C=C, penalty=penalty, pricing="full", max_columns=budget)
            model.fit(*train)
            yield f"{name}, C={C:g}", model, model.n_columns_


def chosen(candidates, validation, budget=None):
    """Return the candidate with the least validation error that keeps the budget."""
    best = None
    for name, model, size in candidates:
        if budget is None or size <= budget:
            found = error(model, *validation)
            if best is None or found < best[0]:
                best = (found, name, model, size)
    return best


def record(best, test):
    if best is None:
        return None
    validation_error, name, model, size = best
    start = time.perf_counter()
    test_error = error(model, *test)
    seconds = time.perf_counter() - start
    return {
        "choice": name,
        "basis_functions": int(size),
        "validation_error": validation_error,
        "test_error": test_error,
        "predict_seconds": seconds,
    }


def one_seed(seed):
    train, validation, test = split(seed)
    out = {}
    along = {"ours, l1": list(ours_l1(train, LIBRARIES)), "composite, l1": list(ours_l1(train, COMPOSITES))}
    for method, candidates in along.items():
        for budget in (*BUDGETS, None):
            out[f"{method}|{budget}"] = record(chosen(candidates, validation, budget), test)
    for budget in (*BUDGETS, None):
        for penalty in COSTS:
            found = chosen(ours_grown(train, penalty, budget), validation)
            out[f"ours, {penalty}|{budget}"] = record(found, test)
        if budget is not None:
            for landmarks in ("k-means", "random"):
                candidates = nystroem_candidates(train, landmarks, budget, seed)
                out[f"Nystroem {landmarks}|{budget}"] = record(chosen(candidates, validation), test)
        print(f"seed {seed}, budget {budget} done", file=sys.stderr, flush=True)
    for kernel in ("rbf", "cos5"):
        out[f"SVC {kernel}|None"] = record(chosen(svc_candidates(train, kernel), validation), test)
    same = CGBoostClassifier([COS5], C=10.0, penalty="rkhs", column_scale=None).fit(*train)
    out["rkhs cos5, C=10|None"] = record((0.0, "fixed", same, same.n_columns_), test)
    (_, peer, size), *_ = (c for c in svc_candidates(train, "cos5") if c[0].endswith("C=10"))
    out["SVC cos5, C=10|None"] = record((0.0, "fixed", peer, size), test)
    return out


def table(seeds):
    names = list(dict.fromkeys(key.split("|")[0] for key in seeds[0]))
    lines = ["| method | " + " | ".join(f"at most {b}" for b in BUDGETS) + " | no limit |", "|---" * 7 + "|"]
    for name in names:
        cells = []
        for budget in (*BUDGETS, None):
            found = [seed.get(f"{name}|{budget}") for seed in seeds]
            if any(cell is None for cell in found):
                cells.append("-")
                continue
            errors = [cell["test_error"] for cell in found]
            size = np.mean([cell["basis_functions"] for cell in found])
            cells.append(f"{np.mean(errors):.2f} ({np.std(errors):.2f}), {size:.0f}")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def speed(seeds):
    """Compare prediction times: our smallest model that is at least as good as the tuned RBF SVC, and that SVC."""
    lines = []
    for number, seed in enumerate(seeds):
        svc = seed["SVC rbf|None"]
        equal = [
            (cell["predict_seconds"], key)
            for key, cell in seed.items()
            if key.startswith("ours") and cell and cell["test_error"] <= svc["test_error"]
        ]
        if equal:
            seconds, key = min(equal)
            lines.append(
                f"- seed {number}: {key.replace('|', ', at most ')} predicts {svc['predict_seconds'] / seconds:.1f}x "
                f"faster than SVC (error {seed[key]['test_error']:.2f} against {svc['test_error']:.2f} %)"
            )
        else:
            lines.append(f"- seed {number}: none of ours reaches SVC's {svc['test_error']:.2f} %")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--no-save", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)  # budgets are meant to bind
    seeds = [one_seed(seed) for seed in range(options.seeds)]
    text = f"{table(seeds)}\n\nPrediction of 10000 rows:\n{speed(seeds)}"
    print(text)
    if not options.no_save:
        about = {
            "date": str(date.today()),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scikit-learn": sklearn.__version__,
            "seeds": options.seeds,
        }
        (HERE / "results.json").write_text(json.dumps({"about": about, "seeds": seeds}, indent=1) + "\n")
        words = ", ".join(f"{key} {value}" for key, value in about.items())
        head = (
            "# CG-Boost on MNIST odd/even\n\nTest error in %, mean (sd) over seeds, and mean number of basis functions."
        )
        (HERE / "results.md").write_text(f"{head}\n\n{text}\n\n{words}.\n")


if __name__ == "__main__":
    main()

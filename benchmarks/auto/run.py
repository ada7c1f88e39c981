"""AutoKernelClassifier beside every single learner and scikit-learn's, on partly labelled sets; and rules of combining.

    KERNELWEAVE_DATA=... python benchmarks/auto/run.py [--sets ...] [--labels 10 20 50] [--draws 12] [--no-peers]

Errors in % on the unlabelled rows: sets of the semi-supervised learning book with their 12 splits of 100 labels, three
with 10 splits of 50 labels, nine with 50 labels drawn at random, one for every class at least ("wine @ 20": with 20).
Single learners are the candidates of one search, fitted to all labels with nothing set. Rules: weights of members from
out-of-fold probabilities, by stacking with a prior worth so many rows, exp(-n log loss / t), equal ones, or all to the
best. A run that was stopped goes on.
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
from peers import peers
from rules import POOLS, RULES, rule_errors
from splits import N_LABELS, SETS, draw, n_draws, with_labels
from summary import write_tables

from kernelweave import AutoKernelClassifier

HERE = Path(__file__).parent


def auto_cell(name, seed, n_repeats):
    """Return errors and seconds of the combination and of all its candidates, and errors by rules and pools."""
    from kernelweave.estimators.auto.classifier import search_classifiers, summarize_classes
    from kernelweave.estimators.auto.run import AutoOptions
    from kernelweave.estimators.auto.trials import outputs
    from kernelweave.estimators.shared.sample import Rows, read_sample
    from kernelweave.labels import partition

    one = draw(name, seed)
    y = np.full(len(one.y), None, dtype=object)
    y[one.labeled] = one.y[one.labeled]
    sample, truth = read_sample(Rows(one.X), partition(y)), one.y[one.unlabeled]
    options = AutoOptions("benchmark", "classes", "all", "stack", n_repeats, None, None, None, 0, {})
    started = time.perf_counter()
    found, combination = search_classifiers(
        sample, None, options, np.ones(len(one.labeled)), np.random.default_rng(seed), False
    )
    fit = summarize_classes(found, combination, sample, "stack")
    seconds = time.perf_counter() - started
    classes = fit.classes
    rows = {"Auto": (percent(fit.transduction[one.unlabeled] != truth), round(seconds, 2))}
    values = {}
    for k, trial in enumerate(found.trials):
        values[k] = outputs(trial.fitted.model, one.X[one.unlabeled])
        guessed = (values[k] > 0).astype(int) if values[k].ndim == 1 else values[k].argmax(axis=1)
        rows[trial.candidate.name] = (percent(classes[guessed] != truth), round(trial.fitted.seconds, 2))
    codes = np.searchsorted(classes, truth)
    stated = (
        None
        if fit.error is None
        else [round(100 * value, 2) for value in (fit.error.value, fit.error.low, fit.error.high)]
    )
    rules = rule_errors(found.trials, combination, values, sample, codes, n_repeats)
    return rows, {"stated": stated, "rules": rules}


def peer_cell(name, method, seed):
    one = draw(name, seed)
    started = time.perf_counter()
    try:
        predicted = peers()[method](one)
    except ValueError as error:
        print(f"{method} on {name}, draw {seed}: {error}", file=sys.stderr, flush=True)
        return None, 0.0
    return percent(predicted != one.y[one.unlabeled]), round(time.perf_counter() - started, 2)


def cell(name, method, seed, n_repeats):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return auto_cell(name, seed, n_repeats) if method == "Auto" else peer_cell(name, method, seed)


def percent(wrong):
    return round(100.0 * float(np.mean(wrong)), 3)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--labels", nargs="+", type=int, default=[N_LABELS], help="of sets without stored splits")
    parser.add_argument("--repeats", type=int, default=AutoKernelClassifier().n_repeats, help="of the folds")
    parser.add_argument("--draws", type=int, default=12)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--output", type=Path, default=HERE / "results.json")
    args = parser.parse_args()
    results = json.loads(args.output.read_text()) if args.output.exists() else {"errors": {}, "auto": {}}
    sets = with_labels(args.sets, args.labels)
    methods = ["Auto", *([] if args.no_peers else peers())]
    for seed in range(args.draws):
        wanted = [
            (name, method, seed)
            for name in sets
            for method in methods
            if seed < n_draws(name) and str(seed) not in results["errors"].get(name, {}).get(method, {})
        ]
        for chunk in (wanted[i : i + 4 * len(methods)] for i in range(0, len(wanted), 4 * len(methods))):
            found = Parallel(args.jobs)(delayed(cell)(*one, args.repeats) for one in chunk)
            for (name, method, _), measured in zip(chunk, found, strict=True):
                errors = results["errors"].setdefault(name, {})
                if method == "Auto":
                    rows, details = measured
                    results["auto"].setdefault(name, {})[str(seed)] = details
                else:
                    rows = {method: measured}
                for learner, value in rows.items():
                    errors.setdefault(learner, {})[str(seed)] = value
            results["about"] = {
                "date": date.today().isoformat(), "cores": os.cpu_count(), "repeats": args.repeats,
                "python": platform.python_version(), "numpy": np.__version__, "scikit-learn": sklearn.__version__,
            }  # fmt: skip
            args.output.write_text(json.dumps(results, separators=(",", ":")) + "\n")
            print(f"draw {seed}: {', '.join(dict.fromkeys(one[0] for one in chunk))}", file=sys.stderr, flush=True)
    write_tables(results, args.output.with_suffix(".md"), " ".join(__doc__.split("\n\n")[2].split()), RULES, POOLS)


if __name__ == "__main__":
    main()

"""Many classes: processor time of every classifier with 2, 10, 26 and 100 classes on the same rows.

    python benchmarks/many_classes/run.py [--estimators ...] [--classes 2 26] [--rows 2000] [--repeats 1]
        [--before FOLDER] [--limits] [--no-save]

Generated rows of 16 columns: 26 overlapping clusters on a curved surface of four dimensions, 100 for 100 classes. With
2 and 10 classes the rows are the same, and a class is several clusters. 300 labels are drawn at random, two for every
class at least; supervised estimators get the labelled rows only. Everything is as it is by default. A fit that takes
longer than a limit is stopped and recorded so. Each fit runs in a process of its own with one thread, after a fit to
few rows that compiles the loops. Processor seconds are those of the fit alone, and the ratio is to the same estimator
with 2 classes; the error is that at the unlabelled rows, in %.

``--before FOLDER`` measures the sources in another folder ("src" of a checkout) and keeps them as the column "before".
``--limits`` measures in place of all this how fits with 100 classes keep ``max_time``. Cells that were measured are
kept; ``--again`` measures the chosen ones anew.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from datetime import date
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).parent
ESTIMATORS = (
    *("TSVM", "TSVMMKL", "LapSVM", "MKL", "SSMK", "CGBoost", "RKDA", "LearnedKernel", "Harmonic"),
)  # fmt: skip
SUPERVISED = ("MKL", "CGBoost")
CLASSES, ROWS = (2, 10, 26, 100), (2000, 6000)
N_COLUMNS, N_LATENT, N_CLUSTERS, N_LABELS = 16, 4, 26, 300
LIMIT = 900  # seconds of a process, after which it is stopped
TIME_LIMITS = (2.0, 10.0)  # max_time of the fits that --limits measures
ALLOWED_SHARE, ALLOWED_SECONDS = 0.2, 1.0  # by which a fit may take longer than max_time


def draw(n_rows, n_classes, seed=0):
    """Return rows, classes, and which rows are labelled."""
    import numpy as np

    n_clusters = max(n_classes, N_CLUSTERS)
    rng = np.random.default_rng([seed, n_rows, n_clusters])
    means = rng.uniform(-1.0, 1.0, size=(n_clusters, N_LATENT))
    cluster = rng.permutation(np.arange(n_rows) % n_clusters)
    classes = cluster % n_classes
    spread = 0.45 * n_clusters ** (-1.0 / N_LATENT)  # clusters overlap about as much, however many there are
    latent = means[cluster] + spread * rng.normal(size=(n_rows, N_LATENT))
    into = rng.normal(size=(N_LATENT, N_COLUMNS))
    bent = rng.normal(size=(N_LATENT, N_COLUMNS))
    X = (
        np.sin(2.0 * latent @ into / np.sqrt(N_LATENT))
        + 0.5 * latent @ bent
        + 0.1 * rng.normal(size=(n_rows, N_COLUMNS))
    )
    first = np.concatenate([np.flatnonzero(classes == k)[:2] for k in range(n_classes)])
    rest = rng.permutation(np.setdiff1d(np.arange(n_rows), first))
    return X, classes, np.sort(np.concatenate([first, rest[: N_LABELS - len(first)]]))


def fit_here(name, n_rows, n_classes, max_time):
    """Fit in this process; print what is recorded."""
    import warnings

    import numpy as np

    import kernelweave
    from kernelweave.loops.compiling import compile_at_once

    warnings.simplefilter("ignore")
    compile_at_once()
    Estimator = getattr(kernelweave, f"{name}Classifier")
    few, codes, _ = draw(200, 3)
    known = Estimator().set_params(random_state=0)
    known.fit(few, codes if name in SUPERVISED else np.where(np.arange(200) < 60, codes, -1))
    X, classes, labeled = draw(n_rows, n_classes)
    unlabeled = np.setdiff1d(np.arange(n_rows), labeled)
    y = np.where(np.isin(np.arange(n_rows), labeled), classes, -1)
    model = Estimator().set_params(random_state=0)
    if max_time is not None:
        model.set_params(max_time=max_time)
    given = (X[labeled], y[labeled]) if name in SUPERVISED else (X, y)
    begin, started = time.process_time(), time.perf_counter()
    try:
        model.fit(*given)
    except ValueError as error:
        print(json.dumps({"wall": time.perf_counter() - started, "status": "refused", "message": str(error)}))
        return
    record = {"seconds": time.process_time() - begin, "wall": time.perf_counter() - started}
    predicted = model.predict(X[unlabeled])
    record["error"] = round(100.0 * float(np.mean(predicted != classes[unlabeled])), 2)
    record["status"] = model.status_.name
    record["objective"] = float(np.sum(model.objective_))
    print(json.dumps(record))


def measure(sources, name, n_rows, n_classes, repeats=1, max_time=None):
    """Return the record of the fastest of several fits in new processes; that of a stopped one is its limit."""
    variables = os.environ | {"PYTHONPATH": sources}
    variables |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    command = [sys.executable, __file__, "--fit", name, str(n_rows), str(n_classes), str(max_time)]
    records = []
    for _ in range(repeats):
        try:
            done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=LIMIT)
        except subprocess.TimeoutExpired:
            return {"seconds": float(LIMIT), "error": None, "status": "stopped"}
        if done.returncode:
            print(done.stderr, file=sys.stderr)
            return {"seconds": None, "error": None, "status": "failed"}
        records.append(json.loads(done.stdout))
    return min(records, key=lambda record: record.get("seconds", record["wall"]))


def table(results):
    """Return one table for each number of rows."""
    lines = []
    for n_rows, by_name in results["cells"].items():
        lines += ["", f"## {int(n_rows):,} rows", ""]
        lines += [
            "| estimator | classes | before | to 2 classes | error | after | to 2 classes | error |",
            "|---" * 8 + "|",
        ]
        for name, by_classes in by_name.items():
            for n_classes, phases in by_classes.items():
                cells = []
                for phase in ("before", "after"):
                    record, base = phases.get(phase), by_classes.get("2", {}).get(phase)
                    cells += describe(record, base)
                lines.append(f"| {name} | {n_classes} | " + " | ".join(cells) + " |")
    if "limits" in results:
        lines += ["", "## max_time", "", "100 classes, seconds of the clock; kept: 20 % + 1 s more are allowed.", ""]
        lines += ["| estimator | rows | max_time | seconds | kept | status | error |", "|---" * 7 + "|"]
        for record in results["limits"]:
            kept = record["wall"] <= (1.0 + ALLOWED_SHARE) * record["max_time"] + ALLOWED_SECONDS
            error = "" if record.get("error") is None else f"{record['error']:.1f} %"
            lines.append(
                f"| {record['name']} | {record['rows']} | {record['max_time']:g} s | {record['wall']:.1f} s | "
                f"{'yes' if kept else 'no'} | {record['status']} | {error} |"
            )
    return "\n".join(lines[1:])


def describe(record, base):
    """Return the cells of a record: seconds, ratio and error."""
    if record is None:
        return ["", "", ""]
    if record["status"] in ("stopped", "failed"):
        return [f"> {LIMIT} s" if record["status"] == "stopped" else "failed", "", ""]
    ratio = ""
    if base is not None and base["status"] not in ("stopped", "failed"):
        ratio = f"{record['seconds'] / base['seconds']:.1f}x"
    return [f"{record['seconds']:.2f} s", ratio, f"{record['error']:.1f} %"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--estimators", nargs="+", default=ESTIMATORS)
    parser.add_argument("--classes", nargs="+", type=int, default=CLASSES)
    parser.add_argument("--rows", nargs="+", type=int, default=ROWS)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--before", help="folder with other sources, measured as the column before")
    parser.add_argument("--limits", action="store_true", help="measure how max_time is kept")
    parser.add_argument("--again", action="store_true", help="measure anew what is known")
    parser.add_argument("--fit", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument("--no-save", action="store_true")
    options = parser.parse_args()
    if options.fit:
        name, n_rows, n_classes, max_time = options.fit
        fit_here(name, int(n_rows), int(n_classes), None if max_time == "None" else float(max_time))
        return
    file = HERE / "results.json"
    results = json.loads(file.read_text()) if file.exists() else {"cells": {}}
    phase, sources = ("before", options.before) if options.before else ("after", str(HERE.parents[1] / "src"))
    if options.limits:
        results["limits"] = [
            {"name": name, "rows": n_rows, "max_time": limit, **measure(sources, name, n_rows, 100, max_time=limit)}
            for n_rows in options.rows
            for name in options.estimators
            for limit in TIME_LIMITS
        ]
    for n_rows in () if options.limits else options.rows:
        for name in options.estimators:
            for n_classes in options.classes:
                cell = results["cells"].setdefault(str(n_rows), {}).setdefault(name, {}).setdefault(str(n_classes), {})
                if phase in cell and not options.again:
                    continue
                cell[phase] = measure(sources, name, n_rows, n_classes, options.repeats)
                print(name, n_rows, n_classes, phase, cell[phase], file=sys.stderr, flush=True)
                if not options.no_save:
                    file.write_text(json.dumps(results, indent=1) + "\n")
    about = {"date": str(date.today()), "cores": os.cpu_count(), "python": platform.python_version()}
    about |= {package: version(package) for package in ("numpy", "scipy", "scikit-learn", "numba")}
    results["about"] = about | {"repeats": options.repeats}
    head = "# Many classes\n\n" + " ".join(__doc__.split("\n\n")[2].split())
    text = f"{head}\n\n{table(results)}\n\n{', '.join(f'{key} {value}' for key, value in results['about'].items())}.\n"
    print(text)
    if not options.no_save:
        file.write_text(json.dumps(results, indent=1) + "\n")
        (HERE / "results.md").write_text(text)


if __name__ == "__main__":
    main()

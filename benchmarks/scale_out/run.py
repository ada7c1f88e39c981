"""Mixtures and label-aware kernels on rows that no process ever holds: Dask workers, generated partitions.

    python benchmarks/scale_out/run.py [--rows 10_000_000] [--partitions 100] [--workers 2] [--labels 500]
        [--parts fits passes paths]

Rows of float32 columns are made where they are used. SSMK prices every row as a centre of four kernels (40 million
columns for 10 million rows); the label-aware learner takes sums over all rows at 200 landmarks. Beside them
scikit-learn's Nystroem(200) and SGDClassifier, which learn from the labelled rows. Errors are of 100,000 other rows.
Bytes are those that workers send one another and that come back to the caller; memory is the largest resident size of a
worker. How much faster two workers are than one is that of a pass over 1 million rows that they keep, the best of six.
The last table is of the same fit of 1 million rows in memory and by one thread of Dask, in processor time.
"""

import argparse
import json
import os
import pickle
import platform
import resource
import time
from datetime import date
from pathlib import Path

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import dask
import numpy as np
import sklearn
from dask import array as da
from distributed import Client, LocalCluster, wait
from sklearn.base import clone
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline

from kernelweave import RBF, LabelAwareKernelLearner, LearnedKernelClassifier, Linear, SSMKClassifier, rbf_family
from kernelweave.distributed import rows as rows_module

HERE = Path(__file__).parent
N_COLUMNS = 20
MEMORY = "1.5GB"
N_PASSES = 6
PARTS = ("fits", "passes", "paths")


def make_block(number, n_rows):
    """Return the rows of a block and their classes: two interleaved clusters a class, six informative columns."""
    rng = np.random.default_rng(number)
    centers = np.random.default_rng(0).normal(size=(8, N_COLUMNS)) * (np.arange(N_COLUMNS) < 6)
    cluster = rng.integers(8, size=n_rows)
    X = centers[cluster] * 1.2 + rng.normal(size=(n_rows, N_COLUMNS))
    return X.astype(np.float32), cluster % 2


def rows_of_block(number, n_rows):
    return make_block(number, n_rows)[0]


def labels_of_block(number, n_rows, n_labeled):
    """Return the classes of the first rows of a block, -1 elsewhere; rows are independent draws."""
    labels = np.full(n_rows, -1, dtype=np.int8)
    labels[:n_labeled] = make_block(number, n_rows)[1][:n_labeled]
    return labels


def collections(n_rows, n_partitions, n_labels):
    height, each = n_rows // n_partitions, n_labels // n_partitions
    X = [
        da.from_delayed(dask.delayed(rows_of_block)(k, height), (height, N_COLUMNS), dtype=np.float32)
        for k in range(1, n_partitions + 1)
    ]
    y = [
        da.from_delayed(dask.delayed(labels_of_block)(k, height, each), (height,), dtype=np.int8)
        for k in range(1, n_partitions + 1)
    ]
    return da.concatenate(X), da.concatenate(y)


def learners():
    return {
        "SSMK": SSMKClassifier([Linear(), *rbf_family((0.5, 1.0, 2.0))], centers="all", random_state=0),
        "label-aware": LearnedKernelClassifier(
            LabelAwareKernelLearner(RBF(), n_eigenvectors=30, n_landmarks=200), C=1.0, random_state=0
        ),
    }


class Counter:
    """Counts the bytes that come back to the caller."""

    def __init__(self):
        self.n_bytes, self.compute = 0, rows_module.compute
        rows_module.compute = self

    def __call__(self, parts):
        values = self.compute(parts)
        self.n_bytes += len(pickle.dumps(values))
        return values

    def close(self):
        rows_module.compute = self.compute


def peak_megabytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def sent_bytes(dask_worker):
    return dask_worker.transfer_outgoing_bytes_total


def fit_on_workers(args, n_workers):
    """Return what fits took on so many workers, and the seconds of one pass of pricing."""
    records = {}
    options = {"threads_per_worker": 1, "memory_limit": MEMORY, "dashboard_address": None, "silence_logs": 50}
    X_test, y_test = make_block(0, 100_000)
    for name, model in learners().items():
        with LocalCluster(n_workers=n_workers, **options) as cluster, Client(cluster) as client:
            X, y = collections(args.rows, args.partitions, args.labels)
            counter = Counter()
            started = time.perf_counter()
            model.fit(X, y)
            seconds = time.perf_counter() - started
            counter.close()
            records[name] = {
                "seconds": round(seconds, 1),
                "worker_megabytes": round(max(client.run(peak_megabytes).values())),
                "sent_megabytes": round(sum(client.run(sent_bytes).values()) / 2**20, 1),
                "returned_megabytes": round(counter.n_bytes / 2**20, 1),
                "certificate": str(model.certificate_),
                "status": model.status_.name,
                "n_iter": int(model.n_iter_),
                "error": float(np.mean(model.predict(X_test) != y_test)),
            }
            print(n_workers, name, records, flush=True)
    return records


def time_passes(n_rows, n_labels):
    """Return the seconds of a pass over all columns by one and by two workers; the best of ``N_PASSES``."""
    options = {"threads_per_worker": 1, "memory_limit": MEMORY, "dashboard_address": None, "silence_logs": 50}
    seconds = {}
    for n_workers in (1, 2):
        with LocalCluster(n_workers=n_workers, **options) as cluster, Client(cluster):
            X, y = collections(n_rows, 20, n_labels)
            X, y = X.persist(), y.persist()  # rows stay with one worker
            wait([X, y])
            seconds[str(n_workers)] = round(price_once(X, y), 2)
            print(f"a pass by {n_workers}: {seconds[str(n_workers)]} s", flush=True)
    return seconds


def price_once(X, y):
    """Return the seconds of one pass over all columns, scales of columns being known; the best of ``N_PASSES``."""
    from kernelweave.estimators.shared.formulation import Formulation
    from kernelweave.estimators.shared.partitioned import LabelRule, read_partitioned
    from kernelweave.estimators.shared.partitioned_columns import PartitionedColumns
    from kernelweave.estimators.ssmk import bind_everywhere

    given = read_partitioned("benchmark", X, y, None, None, LabelRule(), ("float64", "float32"))
    columns, _ = bind_everywhere({"kernels": learners()["SSMK"].kernels}, given, np.random.default_rng(0))
    scaled = PartitionedColumns(columns.bound, columns.centers, Formulation(), "std")
    V = np.random.default_rng(1).normal(size=(len(given.labeled), 1))
    seconds = []
    for _ in range(N_PASSES):
        started = time.perf_counter()
        list(scaled.price(V - V.mean(axis=0), None))
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def fit_peer(args):
    """Return errors and seconds of Nystroem and SGDClassifier: the labelled rows are learned, all rows predicted."""
    height, each = args.rows // args.partitions, args.labels // args.partitions
    parts = []
    for k in range(1, args.partitions + 1):  # as a block is read
        X, y = make_block(k, height)
        parts.append((X[:each], y[:each]))
    drawn = X[:20_000]
    started = time.perf_counter()
    X, y = np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])
    features = Nystroem(gamma=1.0 / (2 * drawn.var(axis=0).sum()), n_components=200, random_state=0).fit(drawn)
    model = make_pipeline(features, SGDClassifier(random_state=0))
    model[-1].fit(features.transform(X), y)
    seconds = time.perf_counter() - started
    X_test, y_test = make_block(0, 100_000)
    return {"seconds": round(seconds, 1), "error": float(np.mean(model.predict(X_test) != y_test))}


def compare_paths(n_rows=1_000_000):
    """Return the processor seconds of the same fit of rows in memory, by the plain path and by a thread of Dask."""
    X, classes = make_block(1, n_rows)
    y = np.full(n_rows, -1)
    y[:500] = classes[:500]
    found = {}
    for name, model in learners().items():
        other = clone(model)
        started = time.process_time()
        model.fit(X, y)
        found[name] = {"plain": round(time.process_time() - started, 1)}
        started = time.process_time()
        with dask.config.set(scheduler="threads", num_workers=1):
            other.fit(da.from_array(X, chunks=(50_000, -1)), da.from_array(y, chunks=50_000))
        found[name]["threads_one"] = round(time.process_time() - started, 1)
        found[name]["objective_difference"] = float(np.max(np.abs(np.divide(other.objective_, model.objective_) - 1)))
        print(name, found[name], flush=True)
    return found


def write_markdown(results, path):
    lines = ["# Beyond one machine", "", " ".join(__doc__.split("\n\n")[2].split()), ""]
    about = results["about"]
    lines += [", ".join(f"{key} {value}" for key, value in about.items()), ""]
    lines += [
        "| workers | learner | seconds | error | memory of a worker | sent | came back | certificate |",
        "|" + "---|" * 8,
    ]
    for workers, records in results["workers"].items():
        for name in ("SSMK", "label-aware"):
            r = records[name]
            sizes = " | ".join(f"{r[key]} MB" for key in ("worker_megabytes", "sent_megabytes", "returned_megabytes"))
            lines.append(
                f"| {workers} | {name} | {r['seconds']} | {100 * r['error']:.2f} % | {sizes} | {r['certificate']} |"
            )
    peer = results["peer"]
    lines.append(f"| - | Nystroem, SGDClassifier | {peer['seconds']} | {100 * peer['error']:.2f} % | | | | none |")
    passes = results["passes"]
    ratio = passes["1"] / passes["2"]
    lines += [
        "",
        f"One pass over all columns of 1 million rows: {passes['1']} s by one worker, {passes['2']} s by two,",
    ]
    lines[-1] += f" which are {ratio:.2f} times as fast."
    if results.get("paths"):
        lines += [
            "",
            "| 1 million rows, one process | in memory, s | Dask, one thread, s | ratio | objectives, relative |",
            "|---|---|---|---|---|",
        ]
        for name, r in results["paths"].items():
            ratio = r["threads_one"] / r["plain"]
            difference = r["objective_difference"]
            lines.append(f"| {name} | {r['plain']} | {r['threads_one']} | {ratio:.2f} | {difference:.0e} |")
    path.write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--partitions", type=int, default=100)
    parser.add_argument("--labels", type=int, default=500)
    parser.add_argument("--workers", type=int, nargs="+", default=[2])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="the others are kept")
    parser.add_argument("--output", type=Path, default=HERE / "results.json")
    args = parser.parse_args()
    results = json.loads(args.output.read_text()) if len(args.parts) < len(PARTS) else {"workers": {}}
    about = {
        "date": date.today().isoformat(), "cores": os.cpu_count(), "rows": args.rows, "partitions": args.partitions,
        "labels": args.labels, "columns": N_COLUMNS, "python": platform.python_version(), "numpy": np.__version__,
        "scikit-learn": sklearn.__version__, "dask": dask.__version__,
    }  # fmt: skip
    if "fits" in args.parts:
        for n_workers in args.workers:
            results["workers"][str(n_workers)] = fit_on_workers(args, n_workers)
        results["peer"], results["about"] = fit_peer(args), about
    if "passes" in args.parts:
        results["passes"] = time_passes(1_000_000, args.labels)
    if "paths" in args.parts:
        results["paths"] = compare_paths()
    args.output.write_text(json.dumps(results, indent=1) + "\n")
    write_markdown(results, args.output.with_suffix(".md"))
    print(args.output.with_suffix(".md").read_text())


if __name__ == "__main__":
    main()

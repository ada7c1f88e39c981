"""Where the time of ``kernelweave label`` goes, on small and large tables.

    python benchmarks/label/run.py [--only CASE ...] [--folder FOLDER] [--before FOLDER] [--no-save]

Tables are made once: 2000 x 50 with 100 labels, 200,000 x 20 with 500, and 2 million x 3 with 500; two classes, columns
of several units, one of eight skewed, one of categories, some gaps; as CSV and as Parquet. Each is labelled by the
command in a process of its own with one thread. Seconds are those of its processor, stage by stage; memory is the
largest resident size; the error is that on the rows whose label was hidden.

``--before FOLDER`` measures the sources in another folder ("src" of a checkout) and keeps them as the column before.
"""

import argparse
import itertools
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path

HERE = Path(__file__).parent
SHAPES = {"small": (2_000, 50, 100), "wide": (200_000, 20, 500), "long": (2_000_000, 3, 500)}
CASES = {f"{shape}.{kind}": shape for shape in SHAPES for kind in ("csv", "parquet")}
READING, WRITING = "reading the table", "writing"
GROUPS = {  # what the stages of the command are called here, by how their titles begin
    "imports": "imports",
    READING: "reading the file",
    "reading the columns": "typing and encoding cells",
    "trying": "fits to all labels",
    "cross-validating": "folds",
    "filling": "filling in",
    WRITING: "writing",
}


def make_table(shape, path):
    """Write a table of some shape, and beside it the classes of all rows."""
    import numpy as np
    import pandas as pd

    n_rows, n_columns, n_labels = SHAPES[shape]
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, n_rows)
    X = rng.standard_normal((n_rows, n_columns))
    X[:, 0] += np.where(truth, 1.5, -1.5)
    X[:, 1] = X[:, 1] * np.where(truth, 1.6, 0.6)
    X[:, -1] += 0.5 * X[:, 0] * X[:, 1]
    X[:, ::8] = np.exp(0.4 * X[:, ::8])
    X *= 10.0 ** rng.uniform(-1, 3, n_columns)
    frame = pd.DataFrame({f"measure {name}": np.round(X[:, k], 4) for k, name in enumerate(_name_columns(n_columns))})
    if n_columns > 3:
        frame[frame.columns[3]] = np.array(["north", "south", "east", "west"])[(rng.integers(0, 3, n_rows) + truth) % 4]
        frame.iloc[rng.random(n_rows) < 0.02, 4] = np.nan
    labels = np.where(truth, "ill", "well").astype(object)
    labels[n_labels:] = None
    order = rng.permutation(n_rows)
    frame["outcome"] = labels
    frame, truth = frame.iloc[order].reset_index(drop=True), truth[order]
    frame.to_parquet(path) if path.suffix == ".parquet" else frame.to_csv(path, index=False)
    np.save(path.with_name(f"{shape}.truth.npy"), np.where(truth, "ill", "well"))


def _name_columns(n_columns):
    return ["".join(chr(97 + int(digit)) for digit in str(k)) for k in range(n_columns)]


def stages_here(arguments):
    """Run the command in this process; print the processor time of each stage."""
    marks = []
    from kernelweave.cli import label as command
    from kernelweave.cli.main import main

    show = command.show_stages

    def show_and_note(**options):
        return _Noting(show(**options), marks)

    command.show_stages = show_and_note
    marks.append(("imports", 0.0))
    sys.argv = ["kernelweave", *arguments]
    try:
        main()
    except SystemExit as stop:
        if stop.code:
            raise
    marks.append(("", time.process_time()))
    seconds = {}
    for (title, begin), (_, end) in itertools.pairwise(marks):
        seconds[title] = seconds.get(title, 0.0) + end - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    sys.stderr.write(json.dumps({"stages": seconds, "seconds": marks[-1][1], "megabytes": peak}) + "\n")


class _Noting:
    """The context that shows stages, with the processor time at which each begins."""

    def __init__(self, shown, marks):
        self.shown, self.marks = shown, marks

    def __enter__(self):
        self.stages = self.shown.__enter__()
        return self

    def __exit__(self, *error):
        return self.shown.__exit__(*error)

    def __call__(self, title, *more, **others):
        self.marks.append((title, time.process_time()))
        self.stages(title, *more, **others)

    def __getattr__(self, name):
        return getattr(self.stages, name)


def measure(case, folder, sources):
    """Label one table in a process of its own."""
    import numpy as np

    shape, table = CASES[case], folder / case
    if not table.exists():
        make_table(shape, table)
    with tempfile.TemporaryDirectory() as out:
        copy = Path(out) / case
        variables = os.environ | {"PYTHONPATH": sources}
        variables |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        command = [sys.executable, __file__, "--stages", "label", str(table), "--target", "outcome", "-o", str(copy)]
        done = subprocess.run([*command, "--quiet"], env=variables, capture_output=True, text=True)
        if done.returncode:
            return {"failed": done.stderr.strip().splitlines()[-1][:300]}
        record = json.loads(done.stderr.strip().splitlines()[-1])
        report = json.loads(copy.with_name(copy.name + ".json").read_text())
        filled = _read_target(copy)
    truth = np.load(folder / f"{shape}.truth.npy")
    hidden = _read_target(table) == ""
    record["error"] = 100.0 * float(np.mean(filled[hidden] != truth[hidden]))
    record["stated"] = 100.0 * report["errors"]["kernelweave"]["error"]
    return record


def _read_target(path):
    import numpy as np
    import pandas as pd

    read = pd.read_parquet if path.suffix == ".parquet" else pd.read_csv
    options = {} if path.suffix == ".parquet" else {"keep_default_na": False, "dtype": str}
    return np.asarray(read(path, **options)["outcome"].fillna(""), dtype=str)


def by_group(stages):
    """Return the seconds of the groups of stages."""
    seconds = dict.fromkeys(GROUPS.values(), 0.0)
    for title, each in stages.items():
        name = next((name for begin, name in GROUPS.items() if title.startswith(begin)), "others")
        seconds[name] = seconds.get(name, 0.0) + each
    return seconds


def show(results):
    lines = ["# The command label", "", " ".join(__doc__.split("\n\n")[2].split()), ""]
    groups = [*GROUPS.values()]
    lines += [
        f"| table | version | {' | '.join(groups)} | all | memory | error | stated |",
        "|---" * (len(groups) + 6) + "|",
    ]
    for case in CASES:
        for version in ("before", "after"):
            record = results.get(version, {}).get(case)
            if record is None:
                continue
            if "failed" in record:
                lines.append(f"| {case} | {version} | failed: {record['failed']} |")
                continue
            seconds = by_group(record["stages"])
            cells = " | ".join(f"{seconds[name]:.1f}" for name in groups)
            lines.append(
                f"| {case} | {version} | {cells} | {record['seconds']:.1f} | {record['megabytes']:.0f} MB | "
                f"{record['error']:.2f} % | {record['stated']:.1f} % |"
            )
    words = ", ".join(f"{key} {value}" for key, value in results["about"].items())
    return "\n".join([*lines, "", words + ".", ""])


def describe():
    from importlib.metadata import version

    about = {"date": str(date.today()), "cores": os.cpu_count(), "python": platform.python_version()}
    return about | {package: version(package) for package in ("numpy", "pandas", "pyarrow", "scikit-learn")}


def main():
    if sys.argv[1:2] == ["--stages"]:
        stages_here(sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--folder", type=Path, help="where the tables are kept; a temporary folder by default")
    parser.add_argument("--before", help="folder with other sources, measured as the column before")
    parser.add_argument("--no-save", action="store_true")
    args = parser.parse_args()
    file = HERE / "results.json"
    results = json.loads(file.read_text()) if file.exists() else {}
    version, sources = ("before", args.before) if args.before else ("after", str(HERE.parents[1] / "src"))
    with tempfile.TemporaryDirectory() as scratch:
        for case in args.only:
            record = measure(case, args.folder or Path(scratch), sources)
            results.setdefault(version, {})[case] = record
            print(case, version, json.dumps(record, indent=1), file=sys.stderr, flush=True)
    results["about"] = describe()
    print(show(results))
    if not args.no_save:
        file.write_text(json.dumps(results, indent=1) + "\n")
        (HERE / "results.md").write_text(show(results))


if __name__ == "__main__":
    main()

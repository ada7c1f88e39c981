"""Make benchmarks/README.md, one table of all benchmarks, from the results in their folders.

    python benchmarks/table.py

A new benchmark joins by an entry: its folder, what it compares, how its result is read off ``results.md`` or
``results.json``, and options of its command that are not the usual ones. Date and versions are those in ``results.md``.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
PACKAGES = ("python", "numpy", "scipy", "scikit-learn", "highspy", "numba", "dask", "pandas")
HEAD = """# Benchmarks

One folder per problem. The command of the last column measures anew and writes `results.json` and `results.md`, which
ends with date, versions and the size of the machine. `KERNELWEAVE_DATA` names the folder of the data where a benchmark
needs them. Where fits are timed again and again, loops are compiled first (`compile_at_once`). This page is made by
`python benchmarks/table.py`. "LIBSVM 2x": it takes twice the time of ours.

"""


FIRST_ROW = r": .*after\n\n.*\n.*\n[|] ([^|]+) [|]"  # of a table in the page of the defaults


@dataclass(frozen=True)
class Results:
    """The page and the records of one benchmark."""

    page: str
    records: dict

    def find(self, pattern: str) -> str:
        """Return what the group of a pattern matches first in the page."""
        found = re.search(pattern, self.page, re.MULTILINE)
        if found is None:
            raise ValueError(f"{pattern!r} is not in the page.")
        return found[1]

    def range(self, pattern: str) -> str:
        """Return the least and the largest number that a pattern matches."""
        numbers = [float(text) for text in re.findall(pattern, self.page, re.MULTILINE)]
        return f"{min(numbers):g}x to {max(numbers):g}x"


@dataclass(frozen=True)
class Entry:
    """One line of the table."""

    folder: str
    compared: str
    result: Callable[[Results], str]
    options: str = ""


def first_fit(found: Results) -> str:
    ratios = [float(text) for text in re.findall(r"\| ([\d.]+) \| [\d.]+ s \|$", found.page, re.MULTILINE)]
    return (
        f"{sum(ratio <= 1 for ratio in ratios[1:])} of {len(ratios) - 1} within SVC's time + 2 s; worst {max(ratios)}"
    )


def column_scale(found: Results) -> str:
    names = found.find(r"^\| set \| (.*) \|$").split(" | ")
    means = list(map(float, found.find(r"^\| mean \| (.*) \|$").split(" | ")))
    best = min(range(len(means)), key=means.__getitem__)
    return f"least mean error {means[best]} % ({names[best]}), most {max(means)} %"


def label(found: Results) -> str:
    ratios = []
    for case, record in found.records["after"].items():
        before = found.records.get("before", {}).get(case, {})
        if "seconds" in before and "seconds" in record:
            ratios.append(f"{case} {before['seconds'] / record['seconds']:.1f}x less time than before")
        elif "failed" in before and "seconds" in record:
            ratios.append(f"{case} {record['seconds']:.0f} s, before not to its end")
        elif "seconds" in record:
            ratios.append(f"{case} {record['seconds']:.0f} s")
    return "; ".join(ratios)


def predict(found: Results) -> str:
    rows = {
        f"{name}, {title}": one["saved"] / found.records["sets"][title]["bytes"]
        for title, each in found.records["sets"].items()
        for name, one in each["classifiers"].items()
    }
    worst = max(rows, key=rows.__getitem__)
    return f"saved models up to {rows[worst]:.1f} times the data ({worst})"


ENTRIES = (
    Entry(
        "auto",
        "`AutoKernelClassifier` beside every single learner and scikit-learn's, on partly labelled sets",
        lambda found: (
            f"mean error {found.find(r'^. Auto . ([0-9.]+)')} % against {found.find(r'^. SVC, tuned . ([0-9.]+)')} % "
            "of SVC, tuned"
        ),
    ),
    Entry(
        "cg_boost",
        "MNIST odd/even: test error against the number of basis functions, ours and the peers",
        lambda found: f"predicts {found.range(r'predicts ([0-9.]+)x faster')} faster than SVC",
    ),
    Entry("column_scale", "which column scale for which norm", column_scale),
    Entry(
        "defaults",
        "every learner with nothing set, beside scikit-learn's, on partly labelled sets",
        lambda found: f"classes, least mean rank: {found.find('^## Classes' + FIRST_ROW)}",
    ),
    Entry("first_fit", "the first fit in a new process with an empty cache, beside SVC", first_fit),
    Entry(
        "honesty",
        "whether the error that `AutoKernel*` states is the error it has",
        lambda found: (
            f"classes: stated {found.find(r'^. all . [0-9]+ . ([0-9.]+)')}, true "
            f"{found.find(r'^. all . [0-9]+ . [0-9.]+ . ([0-9.]+)')}"
        ),
    ),
    Entry("label", "where the time of `kernelweave label` goes on small and large tables", label),
    Entry(
        "label_aware",
        "label-aware kernels: time and memory against the number of rows, and against scikit-learn",
        lambda found: f"{found.find(r'^20,000 x 48: ours takes ([0-9.]+) times')} of the time of Nystroem",
    ),
    Entry(
        "lp_columns",
        "the 1-norm mixture by column generation, one column a round, and the full LP",
        lambda found: f"one column a round, full LP {found.range(r'rounds [|] ([0-9.]+)x')}",
    ),
    Entry(
        "many_classes",
        "processor time with 2 and 26 classes, before and after",
        lambda found: (
            "26 classes cost "
            + ", ".join(
                f"{name} {found.find(rf'^[|] {name} [|] 26 [|].*[|] ([0-9.]+)x [|]')}" for name in ("TSVM", "TSVMMKL")
            )
            + " times what 2 do"
        ),
    ),
    Entry(
        "memory",
        "the estimate of memory before a fit and its peak",
        lambda found: f"largest peak {re.findall(r'200 MB: ([0-9.]+);', found.page)[0]} of the estimate",
    ),
    Entry(
        "mkl",
        "multiple kernel learning: Newton on the weights against first-order methods",
        lambda found: f"projected gradient {found.range(r'ms, [0-9]+ [|] ([0-9.]+)x')}",
    ),
    Entry("predict", "rows a second and bytes of saved models, for every classifier, beside SVC", predict),
    Entry(
        "qp_columns",
        "the 2-norm problem on a working set against LIBSVM, LIBLINEAR and piqp",
        lambda found: f"piqp {found.range(r'([0-9.]+)x [|]$')}",
    ),
    Entry(
        "rkda",
        "kernel weights of discriminant analysis against semidefinite programs",
        lambda found: f"CVXOPT {found.range(r'[|] ([0-9]+)x, excess')}",
    ),
    Entry(
        "scale_out",
        "learning from Dask collections",
        lambda found: f"two workers {found.find(r'which are ([0-9.]+) times')} times as fast as one",
    ),
    Entry(
        "ssmk_scale",
        "SSMK with 10 k, 100 k and 1 M unlabelled rows: time and peak memory",
        lambda found: f"1 M rows in {found.find(r'^[|] 1,000,000 [|] ([0-9.]+) s')} s",
    ),
    Entry(
        "stability",
        "how many labels change with another seed, other names of classes, shuffled rows or columns",
        lambda found: f"another seed changes {found.find(r'^[|] rows by content [|].*?([0-9.]+)%')} % of labels",
    ),
    Entry(
        "svm",
        "one support vector machine on a kernel matrix against LIBSVM, at equal duality gap",
        lambda found: f"LIBSVM {found.range(r'ms [|] ([0-9.]+)x')}",
    ),
    Entry(
        "tsvm",
        "transductive machines: time against one fit of LIBSVM, and memory",
        lambda found: f"TSVM takes {found.find(r'^[|] TSVM [|] [0-9.]+ [|] [0-9.]+x [|] ([0-9.]+)x')} times LIBSVM's",
    ),
    Entry(
        "tsvm_mkl",
        "SVM, LapSVM, TSVM and TSVM-MKL on the five sets of the TSVM-MKL paper",
        lambda found: f"TSVM-MKL mean error {found.find(r'^[|] TSVM-MKL [|].*[|] ([0-9.]+) [|]$')} %",
    ),
)


def list_folders() -> list[str]:
    """Return the folders that hold a benchmark."""
    return sorted(path.parent.name for path in HERE.glob("*/run.py"))


def make_line(entry: Entry) -> str:
    """Return one line of the table."""
    folder = HERE / entry.folder
    link, result, about = f"{entry.folder}/run.py", "not measured yet", ""
    if (folder / "results.md").exists():
        found = Results((folder / "results.md").read_text(), json.loads((folder / "results.json").read_text()))
        words = re.findall(r"date \d{4}-\d\d-\d\d.*", found.page)[-1]
        versions = [f"{name} {known[1]}" for name in PACKAGES if (known := re.search(rf"\b{name} ([\d.]*\d)", words))]
        link, result = f"{entry.folder}/results.md", entry.result(found)
        about = ", ".join([words[5:15], *versions])
    command = f"`python benchmarks/{entry.folder}/run.py{entry.options}`"
    return f"| [{entry.folder}]({link}) | {entry.compared} | {result} | {about} | {command} |"


def make_page() -> str:
    """Return the text of README.md."""
    lines = ["| folder | what is compared | result | date, versions | command |", "|---" * 5 + "|"]
    return HEAD + "\n".join([*lines, *map(make_line, ENTRIES)]) + "\n"


if __name__ == "__main__":
    (HERE / "README.md").write_text(make_page())

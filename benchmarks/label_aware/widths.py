"""Choose gamma, cost, delta and epsilon for LabelAware's Table 1 by the lowest mean error of all trials.

    KERNELWEAVE_DATA=... python benchmarks/label_aware/widths.py [--trials 30] [--sets Digit1 ...] [--methods ...]

The errors are those on unlabelled rows, so that what is chosen is optimistic; the paper takes the gamma "that gives the
best performance" and does not say on which rows. Writes src/kernelweave/papers/label_aware_widths.py, from which
`kernelweave papers run label-aware` takes them. Whatever needs no labels (kernels, eigenvectors) is computed once for
all trials of a set.
"""

import argparse
import os
from pathlib import Path

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np

from kernelweave.estimators.shared.base_kernels import bind_base_kernels
from kernelweave.estimators.shared.kernel_alignment import learn_kernel
from kernelweave.estimators.shared.sample import Rows, read_sample
from kernelweave.estimators.shared.target import read_target
from kernelweave.labels import partition
from kernelweave.papers.label_aware import COSTS, DELTAS, EPSILONS, METHODS, MULTIPLES, SETS, draw, learner, libsvm

FILE = Path(__file__).parents[2] / "src" / "kernelweave" / "papers" / "label_aware_widths.py"
HEAD = """\"\"\"Settings of LabelAware's Table 1: (multiple of gamma, C, delta or epsilon) with the lowest mean error.

Made by benchmarks/label_aware/widths.py.
\"\"\"

"""


def errors(row, trials, methods):
    """Return {(method, multiple, delta): array of shape (n_trials, n_costs)}."""
    found, known = {}, {}
    for method in methods:
        for multiple in MULTIPLES:
            for delta in {"Diffusion kernel": DELTAS, "Label-aware kernel": EPSILONS}.get(method, (1.0,)):
                design = learner(method, multiple, delta).design()
                base_kernels, out = None, np.empty((trials, len(COSTS)))
                for trial in range(trials):
                    rows, labeled = draw(row, trial, False)
                    sample = read_sample(Rows(rows.X), partition(np.where(labeled, rows.y, -1)))
                    if base_kernels is None:
                        base_kernels = bind_base_kernels(design, sample, np.random.default_rng(0), known)
                    kernel = learn_kernel(design, base_kernels, read_target(sample)).kernel
                    for i, C in enumerate(COSTS):
                        predicted = libsvm(kernel, rows.y, labeled, C)
                        out[trial, i] = 100.0 * np.mean(predicted != rows.y[~labeled])
                found[method, multiple, delta] = out
            known.clear()
    return found


def best(found):
    """Return {method: (multiple, C, delta)} and the mean errors there."""
    chosen, means = {}, {}
    for method in {name for name, _, _ in found}:
        candidates = [
            (float(out[:, i].mean()), (multiple, C, delta))
            for (name, multiple, delta), out in found.items()
            if name == method
            for i, C in enumerate(COSTS)
        ]
        means[method], chosen[method] = min(candidates)
    return chosen, means


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=30)
    parser.add_argument("--sets", nargs="*", default=list(SETS))
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    args = parser.parse_args()
    from kernelweave.papers.label_aware_widths import WIDTHS

    widths = dict(WIDTHS)
    for row in args.sets:
        chosen, means = best(errors(row, args.trials, args.methods))
        widths[row] = {method: chosen.get(method, widths.get(row, {}).get(method)) for method in METHODS}
        print(row, {method: (round(mean, 2), chosen[method]) for method, mean in means.items()}, flush=True)
        lines = ["WIDTHS: dict[str, dict[str, tuple[float, float, float]]] = {"]
        for name in (name for name in SETS if name in widths):
            lines.append(f'    "{name}": {{')
            lines += [f'        "{method}": {setting!r},' for method, setting in widths[name].items()]
            lines.append("    },")
        FILE.write_text(HEAD + "\n".join([*lines, "}", ""]))


if __name__ == "__main__":
    main()

"""Peak memory of one lazy fit above the imported baseline: ``python memory.py [500, 500, 3]``."""

import json
import os
import sys

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np
import sklearn
from problem import library, sample

from kernelweave import SSMKClassifier

WORKING_MEMORY = 64


def peak_mb():
    """Return the peak of this program; getrusage would count the process that started it too."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024


def main():
    n_labeled, n_unlabeled, n_kernels = json.loads(sys.argv[1])
    SSMKClassifier().fit(np.arange(20.0)[:, None], np.arange(20) % 3)  # loads what imports leave to the first use
    baseline = peak_mb()
    X, signs = sample(n_labeled, n_unlabeled, 0)
    y = np.full(len(X), np.nan)
    y[:n_labeled] = signs
    with sklearn.config_context(working_memory=WORKING_MEMORY):
        model = SSMKClassifier(library(n_kernels), C=1.0, cache_size=0).fit(X, y)
    working_set = model.history_[-1]["n_columns"]
    active_mb = working_set * n_labeled * 8 / 2**20
    allowed = 6 * active_mb + 2 * WORKING_MEMORY
    record = {"peak_mb": peak_mb() - baseline, "allowed_mb": allowed, "active_mb": active_mb, "n_columns": working_set}
    print(json.dumps(record))


if __name__ == "__main__":
    main()

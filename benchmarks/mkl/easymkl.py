"""EasyMKL of the package MKLpy on the kernels of run.py: time and accuracy, by hand, in an environment of its own.

    python -m venv /tmp/peer && /tmp/peer/bin/pip install MKLpy   # some gigabytes
    KERNELWEAVE_DATA=... /tmp/peer/bin/python benchmarks/mkl/easymkl.py > easymkl.json
    KERNELWEAVE_DATA=... python benchmarks/mkl/easymkl.py --ours > ours.json

Its problem is another one (the margin between averages), so gaps cannot be compared: each line has the time to train
on the kernel matrices, and the error on 2000 other rows. Kernels have mean variance 1 in feature space, as in run.py.
"""

import argparse
import json
import os
import time
from pathlib import Path

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np
from sklearn.metrics import euclidean_distances

SIZES, COUNTS, N_TEST, C = (500, 1000, 2000), (10, 20, 60), 2000, 10.0


def kernels(n, n_kernels):
    """Return kernels among n rows and between 2000 others and these, both scaled, and the labels of both."""
    data = np.load(Path(os.environ["KERNELWEAVE_DATA"]) / "mnist14k.npz")
    rows = np.random.default_rng(0).permutation(len(data["X"]))[: n + N_TEST]
    X, y = data["X"][rows] / 255.0, 2.0 * (data["y"][rows] % 2) - 1.0
    D, G, size = euclidean_distances(X, X[:n], squared=True), X @ X[:n].T, (X**2).sum(axis=1)
    mean, unit = size[:n].mean(), D[:n].mean()
    parts = [G, G / np.sqrt(np.outer(size, size[:n])), (1 + G / mean) ** 2, (1 + G / mean) ** 3]
    parts += [np.exp(-multiple * D / unit) for multiple in np.geomspace(1 / 16, 16, n_kernels - 4)]
    scaled = [K / (K[:n].diagonal().mean() - K[:n].mean()) for K in parts]
    return [K[:n] for K in scaled], [K[n:] for K in scaled], y[:n], y[n:]


def easymkl(train, test, y):
    import torch
    from MKLpy.algorithms import EasyMKL

    torch.set_num_threads(1)
    train, test = ([torch.from_numpy(K) for K in stack] for stack in (train, test))
    started = time.perf_counter()
    model = EasyMKL(lam=0.1).fit(train, y)
    return time.perf_counter() - started, model.predict(test)


def ours(train, test, y):
    from kernelweave import MKLClassifier, Precomputed

    library = [Precomputed(np.vstack([K, T])[:, : len(y)]) for K, T in zip(train, test, strict=True)]
    model = MKLClassifier(library, C=C, weighting="learned")
    started = time.perf_counter()
    model.fit(np.arange(len(y))[:, None], y)
    seconds = time.perf_counter() - started
    return seconds, model.predict(np.arange(len(y), len(y) + N_TEST)[:, None])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", action="store_true")
    fit = ours if parser.parse_args().ours else easymkl
    for n in SIZES:
        for n_kernels in COUNTS:
            train, test, y, truth = kernels(n, n_kernels)
            seconds, predicted = min((fit(train, test, y) for _ in range(2)), key=lambda run: run[0])
            error = 100.0 * float(np.mean(np.asarray(predicted) != truth))
            print(
                json.dumps({"rows": n, "kernels": n_kernels, "seconds": round(seconds, 3), "error": error}), flush=True
            )


if __name__ == "__main__":
    main()

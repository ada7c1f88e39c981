"""The five sets of the paper, their labelled rows, and their kernels."""

import os
from pathlib import Path

import numpy as np
from scipy import sparse

from kernelweave import RBF, KernelLibrary, Linear, ManifoldKernel, Precomputed, manifold_family

SETS = ("g50c", "text_macwin", "webkb_link", "webkb_page", "webkb_pagelink")
WIDTHS = {"g50c": 17.5, "text_macwin": 2.7}  # sigma of the paper's Gaussian kernels; linear ones elsewhere
N_POSITIVE, N_NEGATIVE = 3, 9  # labels of the WebKB sets, whose original draws are not at hand


def load(name):
    """Return rows and labels, +1 and -1."""
    data = np.load(Path(os.environ["KERNELWEAVE_DATA"]) / f"{name}.npz", allow_pickle=False)
    if "X_data" not in data:
        return data["X"].astype(float), data["y"]
    parts = (data["X_data"].astype(float), data["X_indices"], data["X_indptr"])
    return sparse.csr_array(parts, shape=tuple(data["X_shape"])), data["y"]


def labeled_rows(name, y, n_splits):
    """Return the labelled rows of each split: the original ones, or drawn class by class."""
    data = np.load(Path(os.environ["KERNELWEAVE_DATA"]) / f"{name}.npz", allow_pickle=False)
    if "idxLabs" in data:
        return list(data["idxLabs"][:n_splits])
    drawn = []
    for split in range(n_splits):
        rng = np.random.default_rng(split)
        parts = ((1, N_POSITIVE), (-1, N_NEGATIVE))
        drawn.append(np.concatenate([rng.choice(np.flatnonzero(y == sign), n, replace=False) for sign, n in parts]))
    return drawn


def hidden(y, labeled):
    """Return y with all but the labelled rows unlabelled."""
    out = np.full(len(y), None, dtype=object)
    out[labeled] = y[labeled]
    return out


def base(name):
    """Return the paper's base kernel."""
    return RBF(gamma=0.5 / WIDTHS[name] ** 2) if name in WIDTHS else Linear()


def metric(name):
    """Return the paper's distance between neighbours."""
    return "euclidean" if name in WIDTHS else "cosine"


def deformed(name, ratio):
    """Return the deformed kernel that LapSVM rests on, with one of several ratios."""
    return ManifoldKernel(base(name), n_neighbors=50, degree=5, ratio=ratio, metric=metric(name))


def pool(name):
    """Return the paper's kind of pool: a base kernel, and mild deformations of it."""
    return [base(name), *manifold_family(base(name), metric=metric(name))]


def matrices(kernels, X):
    """Return kernels that are computed once, for all splits."""
    bound = KernelLibrary(kernels).bind(X, np.random.default_rng(0)).kernels
    everything = slice(None)
    return [Precomputed(kernel.block(everything, everything)) for kernel in bound]

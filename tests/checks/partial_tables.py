"""Small tables whose target column is partly empty, and a call that fills them."""

import numpy as np
import pandas as pd

from kernelweave.labeling.job import LabelingOptions, fill_labels


def silent(what, share):
    pass


def table(n=90, n_labeled=45, seed=0):
    """A frame of text cells, its target column and which of its cells are empty."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=n), rng.normal(size=n)
    kind = rng.choice(["red", "blue"], n)
    truth = np.where(a + (kind == "red") > 0.5, "yes", "no").astype(object)
    empty = np.arange(n) >= n_labeled
    cells = np.where(empty, "", truth).astype(object)
    frame = pd.DataFrame({"a": a.astype(str), "b": b.astype(str), "kind": kind, "y": cells}, dtype=object)
    return frame, cells, empty, truth


def numeric(write, n=80, n_labeled=60, seed=0):
    """A frame with one feature, and a target that is a linear function of it, written by ``write``."""
    x = np.random.default_rng(seed).normal(size=n)
    empty = np.arange(n) >= n_labeled
    truth = 3 * x + 10
    cells = np.where(empty, "", [write(value) for value in truth]).astype(object)
    return pd.DataFrame({"x": x.astype(str), "y": cells}, dtype=object), cells, empty, truth


def fill(frame, cells, empty, on_stage=silent, **options):
    """Fill by a learner that is quick and takes classes and numbers, unless another is named."""
    return fill_labels(frame, cells, empty, LabelingOptions(**({"target": "y", "learner": "SVM"} | options)), on_stage)

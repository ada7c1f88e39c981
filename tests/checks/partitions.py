"""Rows in Dask collections of many shapes, beside the same rows in memory."""

from itertools import pairwise

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask import delayed


def problem(n_rows=1500, n_labeled=50, n_columns=4, *, n_classes=2, seed=0):
    """Rows, partly labelled classes (-1: none), and numbers (NaN: none)."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns))
    truth = (X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n_rows) > 0).astype(int)
    if n_classes == 3:
        truth += X[:, 2] > 1
    labeled = np.sort(rng.choice(n_rows, n_labeled, replace=False))
    y, numbers = np.full(n_rows, -1), np.full(n_rows, np.nan)
    y[labeled] = truth[labeled]
    numbers[labeled] = X[labeled, 0] ** 2 + X[labeled, 1]
    return X, y, numbers


def lengths(n_rows, n_partitions):
    """Rows of partitions of different sizes: an empty one and one of a single row among them, where there are more."""
    if n_partitions == 1:
        return [n_rows]
    sizes = np.full(n_partitions, n_rows // n_partitions)
    sizes[0], sizes[-1] = 0, 1
    sizes[1] += n_rows - sizes.sum()
    return sizes.tolist()


def as_array(values, n_partitions, *, known=True):
    """A Dask array in such partitions; of unknown sizes where ``known`` is False."""
    sizes, shape = lengths(len(values), n_partitions), (np.nan, *values.shape[1:])
    parts = [
        da.from_delayed(delayed(values[start:stop]), shape, dtype=values.dtype)
        for start, stop in pairwise(np.cumsum([0, *sizes]))
    ]
    array = da.concatenate(parts, allow_unknown_chunksizes=True)
    if known:
        array._chunks = (tuple(sizes), *array.chunks[1:])
    return array


def as_frame(X, y, n_partitions):
    """A Dask frame with the columns x0, x1, ... and y."""
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(X.shape[1])]).assign(y=y)
    ends = np.cumsum([0, *lengths(len(X), n_partitions)])
    parts = [delayed(frame.iloc[start:stop]) for start, stop in pairwise(ends)]
    return dd.from_delayed(parts, meta=frame.iloc[:0])

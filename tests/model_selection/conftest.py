"""One small sample, with unlabelled rows in every coding."""

import numpy as np
import pandas as pd
import polars as pl
import pytest


@pytest.fixture
def data():
    """60 rows of two overlapping classes, 24 of them labelled."""
    rng = np.random.default_rng(3)
    truth = np.arange(60) % 2
    X = rng.normal(size=(60, 2)) + 1.2 * truth[:, None]
    y = np.where(np.arange(60) < 24, truth, -1)
    return X, y, truth


CODINGS = {
    "-1": lambda y: y,
    "NaN": lambda y: np.where(y == -1, np.nan, y),
    "None": lambda y: np.array([None if v == -1 else "ab"[v] for v in y], dtype=object),
    "list": lambda y: [None if v == -1 else bool(v) for v in y],
    "pandas": lambda y: pd.Series(y, dtype="Int64").mask(y == -1),
    "polars": lambda y: pl.Series([None if v == -1 else "ab"[v] for v in y]),
}


@pytest.fixture(params=CODINGS.values(), ids=CODINGS)
def coded(request, data):
    X, y, _ = data
    return X, request.param(y)

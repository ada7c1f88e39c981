"""Drawings without a screen, closed after each test; models that are fitted once."""

import matplotlib as mpl
import numpy as np
import pytest
from sklearn.datasets import load_iris

mpl.use("Agg")

import matplotlib.pyplot as plt

from kernelweave import RBF, AutoKernelClassifier, MKLClassifier, RKDAClassifier


@pytest.fixture(autouse=True)
def closed_figures():
    before = dict(mpl.rcParams)
    yield
    assert dict(mpl.rcParams) == before  # nothing is changed for good
    plt.close("all")


@pytest.fixture(scope="session")
def flowers():
    """Rows, classes by name, and the same with every third label only; read-only."""
    X, species = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[species]
    y = np.where(np.arange(len(X)) % 3 == 0, names, None)
    for array in (X, names, y):
        array.setflags(write=False)
    return X, names, y


@pytest.fixture(scope="session")
def auto(flowers):
    X, _, y = flowers
    candidates = ["harmonic", ("one_$ of $", RKDAClassifier(RBF())), MKLClassifier(RBF(), C=1.0)]
    return AutoKernelClassifier(candidates, random_state=0).fit(X, y)

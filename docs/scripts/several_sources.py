"""Learn from several sources of features, of which some rows lack a whole one."""

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer

from kernelweave import KernelLibrary, MKLClassifier, OnColumns, rbf_family

SOURCES = ("mean", "error", "worst")


def frame_of_sources() -> tuple[pd.DataFrame, np.ndarray]:
    """Return ten columns of each source; every seventh row lacks the source "error"."""
    cells, benign = load_breast_cancer(return_X_y=True)
    names = [f"{source}_{i}" for source in SOURCES for i in range(10)]
    frame = pd.DataFrame(cells / cells.std(axis=0), columns=names)
    frame.loc[::7, [name for name in names if name.startswith("error")]] = np.nan
    return frame, benign


def main() -> None:
    X, y = frame_of_sources()
    train = np.arange(len(X)) % 3 > 0
    library = KernelLibrary(
        [
            (f"{source}, {i}", OnColumns(kernel, f"{source}_*", missing="center"))
            for source in SOURCES
            for i, kernel in enumerate(rbf_family((0.5, 1.0, 2.0)))
        ]
    )
    model = MKLClassifier(library, weighting="learned", C=10.0).fit(X[train], y[train])
    for name, weight in zip(model.library_.names, model.weights_, strict=True):
        print(f"{name:10}  {weight:.3f}")
    print(f"{1.0 - model.score(X[~train], y[~train]):.1%} wrong on new rows; {model.certificate_}")


if __name__ == "__main__":
    main()

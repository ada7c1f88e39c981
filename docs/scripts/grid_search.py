"""Choose parameters with few labels: a grid search over a frame of which most rows have no label."""

import numpy as np
import pandas as pd
from sklearn.datasets import load_wine
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelweave import RBF, KernelLibrary, Linear, SemiSupervisedSplit, SSMKClassifier


def partly_labeled() -> tuple[pd.DataFrame, pd.Series, pd.Series]:
    """Return the measurements, the labels with blanks, and the truth."""
    wine, cultivar = load_wine(return_X_y=True, as_frame=True)
    truth = cultivar.map({0: "Barolo", 1: "Grignolino", 2: "Barbera"})
    known = np.random.default_rng(0).random(len(wine)) < 0.2
    return wine, truth.where(known), truth


def main() -> None:
    X, y, truth = partly_labeled()
    kernels = KernelLibrary({"linear": Linear(), "narrow": RBF(multiple=4.0), "wide": RBF()})
    search = GridSearchCV(
        make_pipeline(StandardScaler(), SSMKClassifier(kernels, random_state=0)),
        {"ssmkclassifier__C": [1.0, 10.0], "ssmkclassifier__kernels__narrow__multiple": [2.0, 4.0]},
        cv=SemiSupervisedSplit(3, random_state=0),  # holds out labelled rows only
    ).fit(X, y)
    model: SSMKClassifier = search.best_estimator_[-1]
    blank = y.isna().to_numpy()
    right = float(np.mean(model.transduction_[blank] == truth[blank].to_numpy()))
    print(f"{search.best_params_}: {search.best_score_:.1%} on held-out labels, {right:.1%} on {blank.sum()} blanks")
    print(f"{model.n_columns_} basis functions; {model.certificate_}")


if __name__ == "__main__":
    main()

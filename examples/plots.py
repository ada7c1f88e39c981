"""Draw what fitted models know: every Display of kernelweave, on scikit-learn's wine with 40 labels.

Each picture is written to a folder as a PNG file; what it shows is in the docstring of its class.
"""

import sys
import tempfile
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")  # files, no windows

import numpy as np
from sklearn.datasets import load_wine

import kernelweave as kw

N_LABELS = 40


def main():
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
    wine, cultivar = load_wine(return_X_y=True, as_frame=True)
    labeled = np.random.default_rng(0).choice(len(wine), N_LABELS, replace=False)
    y = np.full(len(wine), np.nan)
    y[labeled] = cultivar[labeled]

    sources = {"acids": ["alcohol", "malic_acid", "ash"], "colour": ["color_intensity", "hue"]}
    sources["others"] = [name for name in wine.columns if not any(name in group for group in sources.values())]
    mixture = kw.SSMKClassifier(kw.table_library(wine, sources=sources), random_state=0).fit(wine, y)
    path = kw.CGBoostClassifierCV(kw.RBF(), Cs=8, cv=4).fit(wine / wine.std(), cultivar)
    auto = kw.AutoKernelClassifier(["MKL", "RKDA", "harmonic", "logistic regression"], random_state=0).fit(wine, y)

    plots = [
        kw.KernelWeightsDisplay.from_estimator(mixture),
        kw.CertificateDisplay.from_estimator(mixture),
        kw.PathDisplay.from_estimator(path),
        kw.LeaderboardDisplay.from_estimator(auto),
        kw.ReliabilityDisplay.from_estimator(auto, n_bins=5),
        kw.LabelMapDisplay.from_estimator(auto, wine, y),
    ]
    for plot in plots:
        file = folder / f"{type(plot).__name__}.png"
        plot.figure_.savefig(file, dpi=150)
        print(f"{file}  {len(plot.data_)} lines of data_")


if __name__ == "__main__":
    main()

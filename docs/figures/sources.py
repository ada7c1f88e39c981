"""Learned weights of an RBF family for each of three sources."""

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.datasets import load_breast_cancer

from kernelweave import KernelWeightsDisplay, MKLClassifier, one_kernel_per_group, rbf_family

cells, benign = load_breast_cancer(return_X_y=True)
names = [f"{part}_{i}" for part in ("mean", "error", "worst") for i in range(10)]
frame = pd.DataFrame(cells / cells.std(axis=0), columns=names)
model = MKLClassifier(one_kernel_per_group(frame, rbf_family()), weighting="learned", norm=1.5, C=10.0)
fig, ax = plt.subplots(figsize=(7.2, 4.2))
KernelWeightsDisplay.from_estimator(model.fit(frame, benign), ax=ax)

"""The wines in the coordinates that a discriminant finds from 30 labels."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine

from kernelweave import RKDAClassifier

COLORS = ("#1f5f8b", "#c2571a", "#4a8f4a")

wine, cultivar = load_wine(return_X_y=True)
labeled = np.arange(len(wine)) % 6 == 0
model = RKDAClassifier().fit(wine, np.where(labeled, cultivar, -1))
places = model.transform(wine)
fig, ax = plt.subplots(figsize=(7.2, 3.6))
for k, color in enumerate(COLORS):
    ax.scatter(*places[~labeled & (cultivar == k)].T[:2], s=14, c=color, alpha=0.5, linewidths=0)
    ax.scatter(*places[labeled & (cultivar == k)].T[:2], s=34, c=color, edgecolors="black", label=f"cultivar {k}")
wrong = model.transduction_ != cultivar
ax.scatter(
    *places[wrong].T[:2], s=90, facecolors="none", edgecolors="black", label=f"wrong: {wrong.sum()} of {len(wine)}"
)
ax.set(xlabel="first coordinate", ylabel="second coordinate")
ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0), title="framed: labelled")

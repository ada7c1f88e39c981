"""Similarity of every row to one row, by three kernels."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from kernelweave import RBF, ForestKernel, ManifoldKernel, Normalized

X, _ = make_moons(500, noise=0.06, random_state=0)
center = int(np.argmin(np.hypot(*(X - [-1.0, 0.1]).T)))
kernels = {
    "RBF()": RBF(),
    "ForestKernel()": ForestKernel(n_trees=200),
    "ManifoldKernel(RBF())": Normalized(ManifoldKernel(RBF(), ratio=100.0)),
}
fig, axes = plt.subplots(1, 3, figsize=(7.2, 2.4))
for ax, (name, kernel) in zip(axes, kernels.items(), strict=True):
    points = ax.scatter(*X.T, c=np.asarray(kernel(X))[center], cmap="viridis", s=8, vmin=0, vmax=1)
    ax.scatter(*X[center], s=80, facecolors="none", edgecolors="black")
    ax.set(xticks=[], yticks=[])
    ax.set_title(name, fontsize=9)
    ax.spines[:].set_visible(False)
fig.colorbar(points, ax=axes, label="similarity", shrink=0.9)

"""An RBF kernel and the kernel learned from 40 labels, of 200 digits in the order of their classes."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from kernelweave import RBF, LabelAwareKernelLearner

X, digit = load_digits(n_class=5, return_X_y=True)
X, digit = X[:200] / 16, digit[:200]
order = np.argsort(digit, kind="stable")
X, digit = X[order], digit[order]
y = np.where(np.arange(200) % 5 == 0, digit, -1)
features = LabelAwareKernelLearner(RBF(), n_eigenvectors=20).fit(X, y).transform(X)
fig, axes = plt.subplots(1, 2, figsize=(7.2, 3.2))
for ax, K, title in zip(axes, (RBF()(X), features @ features.T), ("RBF kernel", "learned from 40 labels"), strict=True):
    K = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()  # similar more than rows are on average
    scale = np.sqrt(np.diag(K))
    image = ax.imshow(K / np.outer(scale, scale), vmin=-1, vmax=1, cmap="RdBu", interpolation="nearest")
    middles = [np.mean(np.flatnonzero(digit == k)) for k in range(5)]
    ax.set(title=title, xticks=middles, yticks=middles, xticklabels=range(5), yticklabels=range(5))
    ax.spines[:].set_visible(False)
fig.colorbar(image, ax=axes, label="similarity, centred", shrink=0.8)

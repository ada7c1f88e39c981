"""
Classes in the plane: the projection of RKDA
============================================

A discriminant looks for directions in which classes are far apart and each class is narrow. With kernels, the
directions are curved, and :class:`~kernelweave.RKDAClassifier` learns the kernel and the ridge together, without
cross-validation. It classifies, and it is a transformer: rows become a few numbers that show the classes.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import train_test_split

from kernelweave import RKDAClassifier, rbf_family

COLORS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7"]  # can be told apart by colour-blind readers

# %%
# Images of the digits 3, 5, 8 and 9, which are easily confused; they come with scikit-learn. 25 images of each are for
# training, and the pictures show the others only: a projection that separates its own training rows proves nothing.

X, digit = load_digits(return_X_y=True)
chosen = np.isin(digit, [3, 5, 8, 9])
X_train, X_test, y_train, y_test = train_test_split(
    X[chosen] / 16, digit[chosen], train_size=100, stratify=digit[chosen], random_state=0
)

# %%
# Beside it scikit-learn's linear discriminants, with their covariance shrunk by the formula of Ledoit and Wolf: without
# that, 64 columns are too many for 100 rows. The kernels are Gaussians of four widths, none of them very narrow: a
# narrow one would be nearly the identity and take the place of the ridge (there is a warning in this case).

rkda = RKDAClassifier(rbf_family((0.25, 0.5, 1.0, 2.0))).fit(X_train, y_train)
lda = LinearDiscriminantAnalysis(solver="eigen", shrinkage="auto").fit(X_train, y_train)
print("kernel weights:", dict(zip(rkda.library_.names, rkda.weights_.round(3).tolist(), strict=True)))
print(f"ridge: {rkda.ridge_:.2g}; certificate: {rkda.certificate_}")

figure, axes = plt.subplots(2, figsize=(6.4, 7.6), layout="constrained")
for ax, model in zip(axes, (lda, rkda), strict=True):
    points = model.transform(X_test)[:, :2]
    for k, color, marker in zip(model.classes_, COLORS, "os^D", strict=True):
        ax.scatter(*points[y_test == k].T, s=14, color=color, marker=marker, alpha=0.7, linewidths=0)
        middle = np.median(points[y_test == k], axis=0)
        ax.annotate(str(k), middle, fontsize=18, weight="bold", ha="center", va="center", color="black")
    error = np.mean(model.predict(X_test) != y_test)
    ax.set_title(f"{type(model).__name__}: {error:.1%} of new rows wrong", loc="left", fontsize=11)
    ax.set(ylabel="second direction")
    ax.spines[["top", "right"]].set_visible(False)
axes[1].set_xlabel("first direction")
plt.show()

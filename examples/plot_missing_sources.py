"""
Three sources, and rows that lack some of them
==============================================

Patients have laboratory values, genes and an image, but not every patient has all three. With one kernel for each
source, a row without a source says nothing there and still counts in the others: no value is invented, no row is
dropped.
"""

# sphinx_gallery_thumbnail_number = 2
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from kernelweave import RBF, KernelWeightsDisplay, Linear, MKLClassifier, RKDAClassifier, one_kernel_per_group

BLUE, GREY = "#0072B2", "#8c8c8c"  # can be told apart by colour-blind readers


# %%
# The data are generated: 400 patients, whose outcome shifts some laboratory values and the variance of some image
# features. The genes say nothing. Each source is missing, as a whole, in 35 % of the patients (at least one is left).


def make_patients(n, rng):
    sick = rng.random(n) < 0.5
    lab = rng.normal(size=(n, 8)) + 0.8 * np.outer(sick, [1, -1, 1, 0, 0, 0, 0, 0])
    genes = rng.normal(size=(n, 60))
    image = rng.normal(size=(n, 12)) * np.where(sick, 1.7, 1.0)[:, None]
    parts = {"lab": lab, "gene": genes, "image": image}
    present = rng.random((n, 3)) > 0.35
    present[np.arange(n), rng.integers(3, size=n)] = True
    for part, mask in zip(parts.values(), present.T, strict=True):
        part[~mask] = np.nan
    names = [f"{name}_{i}" for name, part in parts.items() for i in range(part.shape[1])]
    return pd.DataFrame(np.hstack(list(parts.values())), columns=names), np.where(sick, "sick", "well"), present


X, outcome, present = make_patients(400, np.random.default_rng(0))
train, test = np.arange(400) < 200, np.arange(400) >= 200
print(f"{present.all(axis=1).mean():.0%} of the patients have all three sources")

# %%
# :func:`~kernelweave.one_kernel_per_group` reads the sources from the column names and gives each a linear kernel, and
# a Gaussian one of its own width. ``missing="center"`` puts a row without a source at the mean of that kernel's feature
# space, where it speaks for no class. :class:`~kernelweave.RKDAClassifier` then learns the weights of the kernels.

kernels = one_kernel_per_group(X, [Linear(), RBF()], missing="center")
rkda = RKDAClassifier(kernels).fit(X[train], outcome[train])
print(rkda.source_weights_)
print("certificate:", rkda.certificate_)

# %%
# The weights say which sources matter. The genes get none, which is right here. Such weights are not always so clear: a
# support vector machine with learned weights (``MKLClassifier(kernels, weighting="learned")``) gives the genes a fifth.

KernelWeightsDisplay.from_estimator(rkda)
plt.show()

# %%
# Beside it: a support vector machine on the same kernels, and three ways without them. Means can be filled in for what
# is missing; only complete rows can be used for training (the means are still needed to predict the others); and
# gradient boosting takes missing values as they are.

everywhere = present.all(axis=1)
filled = make_pipeline(SimpleImputer(), StandardScaler(), SVC())
models = {
    "RKDA, kernels by source": rkda,
    "MKL, kernels by source": MKLClassifier(kernels, random_state=0).fit(X[train], outcome[train]),
    "gradient boosting": HistGradientBoostingClassifier(random_state=0).fit(X[train], outcome[train]),
    "means filled in, SVC": clone(filled).fit(X[train], outcome[train]),
    "complete rows only, SVC": clone(filled).fit(X[train & everywhere], outcome[train & everywhere]),
}
errors = {name: np.mean(model.predict(X[test]) != outcome[test]) for name, model in models.items()}

figure, (top, bottom) = plt.subplots(2, figsize=(6.4, 4.8), layout="constrained", height_ratios=[1, 1.6])
top.imshow(present[np.lexsort(present.T)].T, aspect="auto", cmap="Blues", vmin=-0.3, vmax=1.4, interpolation="nearest")
top.set(yticks=range(3), yticklabels=["lab", "gene", "image"], xlabel="patients, sorted")
top.set_title("What the patients have (dark) and lack (light)", loc="left", fontsize=11)
bars = bottom.barh(list(errors), list(errors.values()), color=[BLUE, BLUE, GREY, GREY, GREY])
bottom.bar_label(bars, fmt="{:.1%}", padding=3)
bottom.set(xlim=(0, 0.5), xlabel="share of wrong outcomes (guessing: 50 %)")
bottom.set_title("200 new patients (grey: scikit-learn)", loc="left", fontsize=11)
bottom.xaxis.set_major_formatter("{x:.0%}")
bottom.invert_yaxis()
bottom.spines[["top", "right"]].set_visible(False)
plt.show()

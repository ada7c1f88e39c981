"""
2,000 genes, few of which matter
================================

A table as in genomics: many more columns than rows. Genes belong to known sets (pathways), and only two sets have
anything to do with the disease. With one kernel for each set, the learned weights point to these two.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from kernelweave import Linear, MKLClassifier, one_kernel_per_group

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#8c8c8c"  # can be told apart by colour-blind readers


# %%
# The data are generated: 40 sets of 50 genes. Genes of a set rise and fall together, as in a cell. In the sets 3 and 17
# twelve genes each are shifted a little in patients with the disease; all the other 1,976 genes say nothing.


def make_expression(n, rng, n_sets=40, set_size=50):
    sick = rng.random(n) < 0.5
    X = rng.normal(size=(n, n_sets, set_size)) + 0.7 * rng.normal(size=(n, n_sets, 1))
    for relevant in (3, 17):
        X[:, relevant, :12] += 0.55 * sick[:, None] * rng.choice([-1, 1], 12)
    names = [f"set{s:02}_{g}" for s in range(n_sets) for g in range(set_size)]
    return pd.DataFrame(X.reshape(n, -1), columns=names), np.where(sick, "sick", "well")


X, outcome = make_expression(1000, np.random.default_rng(0))
train, test = np.arange(1000) < 100, np.arange(1000) >= 100

# %%
# One linear kernel for each set, found by the names of the columns. The cost C is chosen by cross-validation. So could
# be the choice between equal and learned weights (``weighting="auto"``, the default); here the weights are what we want
# to see.

sets = one_kernel_per_group(X, Linear())
mkl = MKLClassifier(sets, weighting="learned", random_state=0).fit(X[train], outcome[train])
weights = mkl.kernel_weights_.to_frame().set_index("name")["weight"]
print(weights.nlargest(5).round(2).to_string())

figure, ax = plt.subplots(figsize=(6.4, 2.6), layout="constrained")
ax.bar(range(40), weights, color=[ORANGE if s in (3, 17) else GREY for s in range(40)])
ax.set(xticks=[3, 10, 17, 24, 31, 38], xlabel="gene set", ylabel="weight of its kernel")
ax.set_title("The two sets that matter (orange) get most of the weight", loc="left", fontsize=11)
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Competitors that do not know the sets: a support vector machine on all genes, and a linear one with a 1-norm, which
# picks single genes. The last bar is a machine that was told the 24 genes: nobody has it, but it shows what is
# possible.

informative = [f"set{s:02}_{g}" for s in (3, 17) for g in range(12)]
sparse = GridSearchCV(LinearSVC(penalty="l1", dual=False, tol=1e-2, random_state=0), {"C": [0.03, 0.1, 0.3, 1.0]})
models = {
    "MKL, learned weights": mkl,
    "MKL, equal weights": MKLClassifier(sets, weighting="uniform", random_state=0).fit(X[train], outcome[train]),
    "SVC, all genes": make_pipeline(StandardScaler(), SVC(kernel="linear")).fit(X[train], outcome[train]),
    "linear SVC, 1-norm": make_pipeline(StandardScaler(), sparse).fit(X[train], outcome[train]),
}
errors = {name: np.mean(model.predict(X[test]) != outcome[test]) for name, model in models.items()}
oracle = SVC(kernel="linear", C=0.1).fit(X.loc[train, informative], outcome[train])
errors["told the 24 genes, SVC"] = np.mean(oracle.predict(X.loc[test, informative]) != outcome[test])

figure, ax = plt.subplots(figsize=(6.4, 3.0), layout="constrained")
bars = ax.barh(list(errors), list(errors.values()), color=[BLUE, BLUE, GREY, GREY, "white"], edgecolor=GREY)
ax.bar_label(bars, fmt="{:.1%}", padding=3)
ax.set(xlim=(0, 0.5), xlabel="share of wrong outcomes (guessing: 50 %)")
ax.set_title("900 new patients after 100 for training (grey: scikit-learn)", loc="left", fontsize=11)
ax.xaxis.set_major_formatter("{x:.0%}")
ax.invert_yaxis()
ax.spines[["top", "right"]].set_visible(False)
plt.show()

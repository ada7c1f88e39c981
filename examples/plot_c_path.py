"""
How many basis functions are enough: a path over C
==================================================

The cost C of an error decides how many basis functions a mixture of kernels has. Along a path from small to large C,
each fit starts from the last one, so that the whole path costs little more than its last model. Cross-validation picks
a C, and the picture shows what a smaller model would cost.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from kernelweave import CGBoostClassifier, CGBoostClassifierCV, PathDisplay, cg_boost_path, rbf_family

BLUE, GREY = "#0072B2", "#8c8c8c"  # can be told apart by colour-blind readers

# %%
# Real data that come with scikit-learn: 569 samples of breast tissue, 30 measures of cell nuclei, benign or malignant.
# 200 rows are for training.

X, benign = load_breast_cancer(return_X_y=True)
X, X_test, y, y_test = train_test_split(X, benign, train_size=200, random_state=0)
scaler = StandardScaler().fit(X)
X, X_test = scaler.transform(X), scaler.transform(X_test)

# %%
# :class:`~kernelweave.CGBoostClassifierCV` tries ten values of C with five folds. :class:`~kernelweave.PathDisplay`
# draws the score in the folds with its standard error, the number of basis functions, and the certified gap, which is
# below the tolerance for every C: these are optima, not places where a solver gave up. The path of models ends at the
# chosen C, the scores do not.

model = CGBoostClassifierCV(rbf_family(), Cs=10, cv=5).fit(X, y)
print(f"C = {model.C_:.3g}: {model.n_columns_} basis functions, {model.certificate_}")
PathDisplay.from_estimator(model)
plt.show()

# %%
# A finer path around this C (:func:`~kernelweave.cg_boost_path` has no folds), tested on the other 369 rows, against
# scikit-learn's :class:`~sklearn.svm.SVC` with as many values of C. With few basis functions each of them counts; a
# support vector machine of about the same accuracy keeps more rows, and a new row must be compared with all of them.

path = cg_boost_path(X, y, Cs=np.geomspace(0.02, 0.5, 9), estimator=CGBoostClassifier(rbf_family()))
machines = [SVC(C=C).fit(X, y) for C in np.geomspace(0.1, 1000, 9)]
figure, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
for models, sizes, color, style, name in (
    (path.models, path.n_columns, BLUE, "o-", "CG-Boost: basis functions"),
    (machines, [machine.n_support_.sum() for machine in machines], GREY, "s--", "SVC: support vectors"),
):
    ax.plot(sizes, [np.mean(m.predict(X_test) != y_test) for m in models], style, color=color, label=name)
ax.set(xlabel="size of the model", ylabel="share of wrong diagnoses", xlim=(0, None), ylim=(0, None))
ax.yaxis.set_major_formatter("{x:.0%}")
ax.set_title("Error on 369 new rows against size, one point for each C", loc="left", fontsize=11)
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()

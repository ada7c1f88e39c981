"""
Suspects: given labels that are probably wrong
==============================================

People who label make mistakes. A label that a model contradicts, although it was trained on all the others, deserves a
second look. The search does it anyway: each label is held out once, so the list of suspects costs nothing more.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from kernelweave import AutoKernelClassifier

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#8c8c8c"  # can be told apart by colour-blind readers

# %%
# Images of digits that come with scikit-learn. 100 of 1,797 are labelled, and we give 20 of these a wrong class.

images, digit = load_digits(return_X_y=True)
X = images / 16
rng = np.random.default_rng(0)
labeled = rng.choice(len(X), 100, replace=False)
wrong = labeled[:20]
y = np.full(len(X), -1)
y[labeled] = digit[labeled]
y[wrong] = (digit[wrong] + rng.integers(1, 10, size=20)) % 10

# %%
# ``suspect_labels`` ranks the held-out labels by their probability under the models that have not seen them. The
# candidates are named here to keep the example quick.

model = AutoKernelClassifier(["LapSVM", "LearnedKernel", "harmonic"], random_state=0).fit(X, y)
suspects = model.suspect_labels()
for suspect in suspects[:3]:
    print(suspect)

# %%
# The first twelve. Where the frame is orange, the label was changed by us.

figure, axes = plt.subplots(3, 4, figsize=(6.4, 5.8), layout="constrained")
for ax, suspect in zip(axes.flat, suspects, strict=False):
    ax.imshow(images[suspect["row"]].reshape(8, 8), cmap="gray_r")
    ax.set_title(f"given {suspect['given']}, rather {suspect['suggested']}", fontsize=10)
    ax.set(xticks=[], yticks=[])
    changed = suspect["row"] in wrong
    ax.spines[:].set(color=ORANGE if changed else GREY, linewidth=4 if changed else 1)
figure.suptitle("Twelve labels to look at first (orange: really wrong)", fontsize=11)
plt.show()

# %%
# How many labels must be looked at to find the 20? Beside it, the same score from scikit-learn: the held-out
# probability of the given class by logistic regression, which sees the labelled rows only.

given = y[labeled]
held_out = cross_val_predict(LogisticRegression(max_iter=1000), X[labeled], given, cv=4, method="predict_proba")
by_regression = labeled[np.argsort(held_out[np.arange(100), given])]
by_model = np.array([suspect["row"] for suspect in suspects])

figure, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
for order, color, style, name in (
    (by_model, BLUE, "-", "kernelweave"),
    (by_regression, ORANGE, "--", "logistic regression"),
):
    found = np.cumsum(np.isin(order, wrong))
    print(f"{name:20} {found[19]} of 20 among the first 20, {found[39]} among the first 40")
    ax.plot(np.arange(1, len(order) + 1), found, style, color=color, linewidth=2, label=name)
ax.plot([0, 20, 60], [0, 20, 20], color="black", linewidth=0.8, label="perfect")
ax.plot([0, 60], [0, 12], color=GREY, linestyle=":", label="at random")
ax.set(
    xlim=(0, 60), ylim=(0, 21), yticks=range(0, 21, 5), xlabel="labels looked at", ylabel="wrong labels found, of 20"
)
ax.set_title("Wrong labels come first", loc="left", fontsize=11)
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()

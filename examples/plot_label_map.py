"""
A map of all rows by the learned kernel
=======================================

A learned kernel says how similar two rows are to the model. Drawn as a map, it shows where the labels are, which rows
were filled in from them, and where the model is least certain.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.neighbors import NearestNeighbors

from kernelweave import LabelMapDisplay, LearnedKernelClassifier

# %%
# Images of the digits 0 to 5, which come with scikit-learn: 1,083 rows, 60 of them labelled.

images, digit = load_digits(n_class=6, return_X_y=True)
X = images / 16
labeled = np.random.default_rng(0).choice(len(X), 60, replace=False)
y = np.full(len(X), -1)
y[labeled] = digit[labeled]

# %%
# :class:`~kernelweave.LearnedKernelClassifier` learns a kernel from the labels and the shape of all rows. Large points
# with a dark edge are the labelled rows, small ones are filled in, and hollow ones are the tenth of them that the model
# is least certain of. Crosses mark the rows that the model is made of.

model = LearnedKernelClassifier(random_state=0).fit(X, y)
display = LabelMapDisplay.from_estimator(model, X, y)

# %%
# The numbers behind the picture are a frame. Here the truth is known, so the marks can be checked: the hollow rows hold
# most of the errors.

rows = display.data_
filled = rows[~rows["given"]]
wrong = filled["label"] != digit[filled["row"]]
print(rows.head(3).to_string())
print(f"wrong among the least certain: {wrong[filled['doubtful']].mean():.1%}")
print(f"wrong among the others:        {wrong[~filled['doubtful']].mean():.1%}")

# %%
# The usual map has no use for labels: principal components of the pixels. How good a map is can be counted, as the
# share of rows whose nearest neighbour on the map is the same digit. The learned map has seen 60 labels; this is what
# they are good for.


def agreement(points):
    nearest = NearestNeighbors(n_neighbors=1).fit(points).kneighbors(return_distance=False)[:, 0]
    return np.mean(digit[nearest] == digit)


plain = PCA(2).fit_transform(X)
maps = {"principal components": plain, "learned kernel": display.points}
for name, points in maps.items():
    print(f"{name}: {agreement(points):.1%} of the rows are next to a row of the same digit")

LabelMapDisplay(
    plain,
    rows["label"],
    rows["given"],
    classes=range(6),
    axis_labels=("first principal component", "second principal component"),
    title="The same labels on principal components",
).plot()
plt.show()

# %%
# The twelve least certain images: no wonder.

least = filled.nsmallest(12, "certainty")
figure, axes = plt.subplots(2, 6, figsize=(6.4, 2.9), layout="constrained")
for ax, row, label in zip(axes.flat, least["row"], least["label"], strict=True):
    ax.imshow(images[row].reshape(8, 8), cmap="gray_r")
    ax.set_title(f"{label}" if label == digit[row] else f"{label}, not {digit[row]}", fontsize=10)
    ax.set(xticks=[], yticks=[])
figure.suptitle("Filled-in labels that the model is least certain of", fontsize=11)
plt.show()

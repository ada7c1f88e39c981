"""
Which rows to label next
========================

Labels cost work, so the next ones should tell the model something new. A fitted model names rows of which it is unsure
and that differ from one another. How much that saves is measured here against labelling at random.
"""

# sphinx_gallery_thumbnail_number = 2
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from kernelweave import AutoKernelClassifier, LapSVMClassifier

BLUE, GREY = "#0072B2", "#8c8c8c"

# %%
# 700 images of digits that come with scikit-learn, all ten classes. We start with 20 labels and buy 10 more at a time.
# One candidate keeps this example quick; by default the search tries all of its learners.

images, digit = (values[:700] for values in load_digits(return_X_y=True))
X = images / 16


def fit(labeled):
    y = np.full(len(X), -1)
    y[labeled] = digit[labeled]
    return AutoKernelClassifier([LapSVMClassifier(ratio=100.0)], random_state=0).fit(X, y)


def first_labels(rng):
    one_each = [rng.choice(np.flatnonzero(digit == k)) for k in range(10)]
    return np.concatenate([one_each, rng.choice(np.setdiff1d(np.arange(len(X)), one_each), 10, replace=False)])


def share_wrong(model, labeled):
    hidden = np.setdiff1d(np.arange(len(X)), labeled)
    return np.mean(model.transduction_[hidden] != digit[hidden])


# %%
# :meth:`~kernelweave.AutoKernelClassifier.label_next` takes the rows with the smallest difference between the two most
# probable classes, puts them into as many clusters as labels are wanted, and returns the middle of each cluster. These
# are the first ten that it asks for: hard ones, and not ten times the same.

start = first_labels(np.random.default_rng(0))
model = fit(start)
asked = model.label_next(10)
figure, axes = plt.subplots(2, 5, figsize=(6.4, 3.2), layout="constrained")
for ax, row in zip(axes.flat, asked, strict=True):
    ax.imshow(images[row].reshape(8, 8), cmap="gray_r")
    likely = np.argsort(-model.label_distributions_[row])[:2]
    ax.set_title(f"{likely[0]} or {likely[1]}?", fontsize=11)
    ax.set(xticks=[], yticks=[])
figure.suptitle("The first ten rows that the model asks for", fontsize=11)
plt.show()

# %%
# Four rounds, three starts; the thin lines are single runs and the thick ones their means.

ROUNDS = 4


def run(seed, ask):
    rng = np.random.default_rng(seed)
    labeled, errors = first_labels(rng), []
    for _ in range(ROUNDS + 1):
        model = fit(labeled)
        errors.append(share_wrong(model, labeled))
        others = np.setdiff1d(np.arange(len(X)), labeled)
        labeled = np.concatenate([labeled, model.label_next(10) if ask else rng.choice(others, 10, replace=False)])
    return errors


sizes = 20 + 10 * np.arange(ROUNDS + 1)
figure, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
for ask, color, style, name in (
    (True, BLUE, "o-", "rows that the model asks for"),
    (False, GREY, "s--", "random rows"),
):
    errors = np.array([run(seed, ask) for seed in range(3)])
    print(f"{name:30}", "  ".join(f"{error:.1%}" for error in errors.mean(axis=0)))
    ax.plot(sizes, errors.T, color=color, linewidth=0.7, alpha=0.6)
    ax.plot(sizes, errors.mean(axis=0), style, color=color, linewidth=2.2, label=name)
ax.set(xlabel="labels", ylabel="share of the other rows that are wrong", xticks=sizes, ylim=(0, None))
ax.yaxis.set_major_formatter("{x:.1%}")
ax.set_title("Labels that were asked for are worth more", loc="left", fontsize=11)
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# The advantage is largest at the beginning. With 60 labels of 700 images, labels at random have nearly caught up; when
# this was run on 900 images, they had not (1.0 % wrong against 7.3 %). How much is saved depends on the rows.

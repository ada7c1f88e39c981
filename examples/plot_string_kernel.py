"""
Sequences with an indefinite similarity
=======================================

How similar two sequences are is best said by the score of their alignment, as biologists do. But such a similarity is
not a kernel in the strict sense: its matrix has negative eigenvalues, and a support vector machine has then no unique
solution. A mixture of kernels takes columns of the matrix as they are, and its certificate holds nevertheless.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from kernelweave import CGBoostClassifier, Precomputed, SSMKClassifier

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#8c8c8c"  # can be told apart by colour-blind readers


# %%
# The sequences are generated. Each of three families has an ancestor of 60 letters out of 20, like a short protein. Its
# members are copies in which a third of the letters were changed. Two in three members are known as a fragment of 20
# letters only, as sequencing often gives them: the fragments of a family need not overlap.


def make_sequences(n, rng, length=60, fragment=20):
    ancestors = rng.integers(20, size=(3, length))
    family = rng.integers(3, size=n)
    changed = rng.random((n, length)) < 0.33
    sequences = np.where(changed, rng.integers(20, size=(n, length)), ancestors[family])
    for row in np.flatnonzero(rng.random(n) < 0.67):
        start = rng.integers(length - fragment)
        sequences[row, :fragment] = sequences[row, start : start + fragment]
        sequences[row, fragment:] = -1  # nothing
    return sequences, family


sequences, family = make_sequences(240, np.random.default_rng(0))
for row in (0, 1, 2):
    print("".join("ACDEFGHIKLMNPQRSTVWY"[letter] for letter in sequences[row] if letter >= 0), "family", family[row])

# %%
# The score of the best local alignment (Smith and Waterman): 2 for an equal letter, -1 for another one, -1.5 for a gap.
# It is found cell by cell, for all pairs together. Divided by the score of the shorter sequence with itself, it says
# how much of the shorter one is found in the other.


def align(A, B, equal=2.0, other=-1.0, gap=-1.5):
    previous = np.zeros((len(A), B.shape[1] + 1), dtype=np.float32)
    best = np.zeros(len(A), dtype=np.float32)
    for i in range(A.shape[1]):
        current = np.zeros_like(previous)
        match = np.where((A[:, i, None] == B) & (B >= 0), equal, other) + previous[:, :-1]
        match = np.maximum(np.maximum(match, previous[:, 1:] + gap), 0.0)
        for j in range(B.shape[1]):
            current[:, j + 1] = np.maximum(match[:, j], current[:, j] + gap)
        best = np.maximum(best, current.max(axis=1))
        previous = current
    return best


first, second = np.triu_indices(len(sequences))
K = np.zeros((len(sequences), len(sequences)))
K[first, second] = align(sequences[first], sequences[second])
K = np.maximum(K, K.T)
K /= np.minimum.outer(K.diagonal(), K.diagonal())
eigenvalues = np.linalg.eigvalsh(K)
print(f"{np.sum(eigenvalues < -1e-9)} of {len(K)} eigenvalues are negative, the lowest is {eigenvalues[0]:.3f}")

# %%
# :class:`~kernelweave.Precomputed` takes the matrix, and ``X`` is a column of row numbers: cross-validation then slices
# numbers, never the matrix. 30 sequences are labelled; the others stay in as unlabelled rows, which may be centres,
# too.

rows = np.arange(240)[:, None]


def hide_labels(seed):
    labeled = np.random.default_rng(seed).choice(240, 30, replace=False)
    y = np.full(240, -1)
    y[labeled] = family[labeled]
    return y


ssmk = SSMKClassifier(Precomputed(K)).fit(rows, hide_labels(0))
print(ssmk.certificate_)

# %%
# Beside it: the same without unlabelled rows, nearest neighbours by the same similarity, and scikit-learn's
# :class:`~sklearn.svm.SVC`, which takes the matrix without a word about its eigenvalues; or takes it after the negative
# ones were set to zero ("clipped"). Ten draws of labels.

values, vectors = np.linalg.eigh(K)
clipped = (vectors * np.maximum(values, 0)) @ vectors.T


def predict_hidden(y):
    labeled, hidden = np.flatnonzero(y >= 0), np.flatnonzero(y < 0)
    inside, across, given = np.ix_(labeled, labeled), np.ix_(hidden, labeled), y[labeled]
    machine, neighbors = SVC(C=10, kernel="precomputed"), KNeighborsClassifier(3, metric="precomputed")
    return {
        "SSMK, all rows": SSMKClassifier(Precomputed(K)).fit(rows, y).transduction_[hidden],
        "CG-Boost, labels only": CGBoostClassifier(Precomputed(K)).fit(rows[labeled], given).predict(rows[hidden]),
        "SVC, as it is": machine.fit(K[inside], given).predict(K[across]),
        "SVC, clipped": machine.fit(clipped[inside], given).predict(clipped[across]),
        "3 neighbours": neighbors.fit(1 - K[inside], given).predict(1 - K[across]),
    }


draws = [hide_labels(seed) for seed in range(10)]
errors = [{name: np.mean(p != family[y < 0]) for name, p in predict_hidden(y).items()} for y in draws]
means = {name: np.mean([draw[name] for draw in errors]) for name in errors[0]}

figure, (top, bottom) = plt.subplots(2, figsize=(6.4, 5.0), layout="constrained")
for sign, color, name in ((1, BLUE, "positive"), (-1, ORANGE, "negative")):
    chosen = np.flatnonzero(sign * eigenvalues > 0)
    top.bar(chosen, eigenvalues[chosen], width=1.0, color=color, label=f"{len(chosen)} {name}")
top.axhline(0, color="black", linewidth=0.8)
top.set(xlabel="eigenvalues of the similarity, in order", ylabel="eigenvalue")
top.set_yscale("symlog", linthresh=1)
top.set_title("The similarity is indefinite", loc="left", fontsize=11)
top.legend(frameon=False)
bars = bottom.barh(list(means), list(means.values()), color=[BLUE, BLUE, GREY, GREY, GREY])
bottom.bar_label(bars, fmt="{:.1%}", padding=3)
bottom.set(xlabel="share of 210 sequences in the wrong family (guessing: 67 %)")
bottom.set_title("30 labels, mean of ten draws (grey: scikit-learn)", loc="left", fontsize=11)
bottom.margins(x=0.12)
bottom.xaxis.set_major_formatter("{x:.0%}")
bottom.invert_yaxis()
for ax in (top, bottom):
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Unlabelled sequences help as centres: a whole sequence is similar to all fragments of its family, with a label or
# without. Nearest neighbours are nearly as good here, and need no kernel at all.

"""
Text: a few labelled documents among many
=========================================

Documents of the same topic share words, but two short documents may have none in common. Documents without a label
connect them: words that occur together anywhere belong together. How much that helps depends on how few labels there
are.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.naive_bayes import MultinomialNB
from sklearn.svm import LinearSVC

from kernelweave import HarmonicClassifier, LapSVMClassifier

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#8c8c8c"  # can be told apart by colour-blind readers


# %%
# scikit-learn brings no texts along, so this corpus is **generated**: four topics, each with a vocabulary of its own in
# which a few words are frequent and most are rare, and a common vocabulary that all share. A document has 40 words, a
# quarter of them from its topic, and now and then one from another topic.


def make_corpus(n_documents, rng, topics=("sports", "health", "money", "travel")):
    def frequencies(n_words):
        return (weights := 1 / (np.arange(n_words) + 5.0)) / weights.sum()

    documents, names = [], []
    for _ in range(n_documents):
        name = topics[rng.integers(4)]
        kinds = rng.choice(["common", name, *topics], size=40, p=[0.69, 0.23, 0.02, 0.02, 0.02, 0.02])
        sizes = {kind: 2000 if kind == "common" else 400 for kind in kinds}
        words = [f"{kind}{rng.choice(sizes[kind], p=frequencies(sizes[kind]))}" for kind in kinds]
        documents.append(" ".join(words))
        names.append(name)
    return documents, np.array(names)


documents, topic = make_corpus(1200, np.random.default_rng(0))
print(documents[0][:76], "...")
print("is about", topic[0])

# %%
# Words become a sparse matrix of weights, one column a word. All learners take it as it is.

X = TfidfVectorizer(sublinear_tf=True, min_df=2).fit_transform(documents)
print(f"{X.shape[0]} documents, {X.shape[1]} words, {X.nnz / X.shape[0]:.0f} of them in a document")

# %%
# For sparse rows, :class:`~kernelweave.LapSVMClassifier` and :class:`~kernelweave.HarmonicClassifier` join the
# documents of the smallest angle. The learners of scikit-learn see the labelled documents only. Each point is the mean
# over three draws of labelled documents.

models = {
    "LapSVMClassifier": (LapSVMClassifier(random_state=0), BLUE, "o-"),
    "HarmonicClassifier": (HarmonicClassifier(n_neighbors=10), GREEN, "^-"),
    "LinearSVC": (LinearSVC(), ORANGE, "s--"),
    "naive Bayes": (MultinomialNB(alpha=0.1), GREY, "D--"),
}


def share_wrong(model, n_labels, seed):
    order = np.random.default_rng(seed).permutation(len(topic))
    labeled = np.sort(np.concatenate([order[topic[order] == name][: n_labels // 4] for name in np.unique(topic)]))
    hidden = np.setdiff1d(order, labeled)
    if type(model).__module__.startswith("kernelweave"):
        y = np.full(len(topic), None, dtype=object)  # None: not labelled
        y[labeled] = topic[labeled]
        return np.mean(model.fit(X, y).transduction_[hidden] != topic[hidden])
    return np.mean(model.fit(X[labeled], topic[labeled]).predict(X[hidden]) != topic[hidden])


sizes = [8, 16, 32, 64, 128, 256]
figure, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
for name, (model, color, style) in models.items():
    errors = [np.mean([share_wrong(model, size, seed) for seed in range(3)]) for size in sizes]
    print(f"{name:20}", "  ".join(f"{error:5.1%}" for error in errors))
    ax.plot(sizes, errors, style, color=color, label=name)
ax.set(xscale="log", xticks=sizes, xticklabels=sizes, xlabel="labelled documents, of 1,200 (generated)")
ax.set(ylabel="share of wrong topics", ylim=(0, None))
ax.minorticks_off()
ax.yaxis.set_major_formatter("{x:.0%}")
ax.set_title("Four topics: unlabelled documents help where labels are few", loc="left", fontsize=11)
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Read the picture from the left. With two labelled documents a topic, the words of the others are what matters. With
# dozens a topic, the labelled ones suffice, and the plain learners, which are also faster, are as good.

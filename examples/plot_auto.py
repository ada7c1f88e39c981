"""
What the automatic search knows
===============================

:class:`~kernelweave.AutoKernelClassifier` tries many learners and combines those that predict held-out labels best. It
keeps what it has seen on the way: how good each candidate is, how often the mixture will be wrong, whether its
probabilities can be believed, and which training rows a prediction rests on.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from kernelweave import AutoKernelClassifier, InfluenceDisplay, LeaderboardDisplay, ReliabilityDisplay

# %%
# Real data that come with scikit-learn: 442 diabetes patients, ten measures, and how far the disease had moved on a
# year later; here whether it was more than in half of the patients. 150 patients are labelled. This is not an easy
# table.

X, progression = load_diabetes(return_X_y=True, as_frame=True)
truth = np.where(progression > progression.median(), "fast", "slow")
labeled = np.random.default_rng(0).choice(len(X), 150, replace=False)
y = np.full(len(X), None, dtype=object)
y[labeled] = truth[labeled]
hidden = np.setdiff1d(np.arange(len(X)), labeled)

# %%
# Five candidates are named here to keep the example quick. Dots are errors on held-out patients with 95 % intervals,
# and the bars are weights. The intervals overlap: that is why candidates are mixed instead of the best being picked.

candidates = ["MKL", "LapSVM", "RKDA", "harmonic", "logistic regression"]
model = AutoKernelClassifier(candidates, random_state=0).fit(X, y)
LeaderboardDisplay.from_estimator(model)
plt.show()

# %%
# The error that the search expects, and the one that it has, since the truth is known here; beside it two learners of
# scikit-learn on the labelled patients.

expected = model.error_
print(f"expected error: {expected.value:.1%}, between {expected.low:.1%} and {expected.high:.1%}")
print(f"true error:     {np.mean(model.transduction_[hidden] != truth[hidden]):.1%}")
for peer in (SVC(), LogisticRegression(C=100)):
    error = np.mean(peer.fit(X.iloc[labeled], truth[labeled]).predict(X.iloc[hidden]) != truth[hidden])
    print(f"{type(peer).__name__}: {error:.1%}")

# %%
# Probabilities can be believed if of the patients with a probability of 80 % eight in ten are indeed "slow". Dots below
# the diagonal mean that the model promises too much. The patients here were held out.

ReliabilityDisplay.from_estimator(model, n_bins=5)
plt.show()

# %%
# Why was this patient given this class? The bars are training patients, with what each adds to the decision value of
# the member that decides most and can be explained so. Here they nearly cancel: this patient is a doubtful case.

InfluenceDisplay.from_estimator(model, X, row=int(hidden[0]))
plt.show()

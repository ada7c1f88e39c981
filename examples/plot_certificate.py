"""
What a stopped fit is worth: its certificate
============================================

Training is often stopped early, and then nobody knows how good the model could have been. Here every step of a fit
knows a lower bound on the best possible objective. A fit that is stopped says how far from the optimum it can be, at
most, and that is a proof and not an estimate.
"""

# sphinx_gallery_thumbnail_number = 2
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from kernelweave import CertificateDisplay, SSMKClassifier

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#8c8c8c"  # can be told apart by colour-blind readers

# %%
# Digits that come with scikit-learn: odd or even, 150 labels, 1,647 rows without. The problem has a column for each of
# ten kernels at each of 1,797 rows; column generation looks at all of them, but keeps those that matter.

X, digit = load_digits(return_X_y=True)
X = X / 16
labeled = np.random.default_rng(0).choice(len(X), 150, replace=False)
y = np.full(len(X), np.nan)
y[labeled] = digit[labeled] % 2

# %%
# A callback sees the state after each round, and a true answer stops the fit: here once the gap is below 30 % of the
# objective. (The parameters ``max_columns`` and ``max_time`` stop a fit as well, with a warning that states the gap.)

stopped = SSMKClassifier(C=1.0, callback=lambda state: state.relative_gap < 0.3, random_state=0).fit(X, y)
print("status:", stopped.status_.value)
print("certificate:", stopped.certificate_)

# %%
# Objective and proven bound approach each other; what lies between them is what is not known yet.

CertificateDisplay.from_estimator(stopped)
plt.show()

# %%
# Now the whole fit, to check the promise: the optimum lies within the band that the stopped fit had promised, and the
# labels that both fill in can be compared.

full = SSMKClassifier(C=1.0, random_state=0).fit(X, y)
low, high = stopped.objective_ - stopped.certificate_.gap, stopped.objective_
print(f"promised: between {low:.4f} and {high:.4f}; the optimum is {full.objective_:.4f}")
hidden = np.isnan(y)
for name, model in (("stopped", stopped), ("optimal", full)):
    error = np.mean((model.transduction_ != digit % 2)[hidden])
    print(f"{name}: {model.n_iter_:3} rounds, {model.n_columns_:3} basis functions, {error:.1%} of the labels wrong")

course = full.history_.to_frame()
figure, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
rounds = np.arange(len(course))
bound = np.maximum.accumulate(course["objective"] - course["gap"])
ax.fill_between(rounds, bound, course["objective"], color=BLUE, alpha=0.2, label="where the optimum can be")
ax.plot(rounds, course["objective"], color=BLUE, label="objective reached")
ax.plot(rounds, bound, color=BLUE, linestyle="--", label="proven bound")
ax.axhline(full.objective_, color="black", linewidth=0.8, label="optimum")
ax.errorbar(
    stopped.n_iter_ - 1, (low + high) / 2, (high - low) / 2, color=ORANGE, capsize=5, linewidth=2, label="stopped here"
)
ax.set(xlabel="round", ylabel="objective", xticks=range(0, len(course), 3))
ax.set(ylim=(0.5 * full.objective_, 1.6 * full.objective_))
ax.set_title("The promise of the stopped fit holds the optimum", loc="left", fontsize=11)
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()

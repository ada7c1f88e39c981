"""
Positions from Wi-Fi signals, few of them known
===============================================

A phone in a building hears several access points, and their strengths say where it is. Walking around collects hundreds
of measurements; to note the exact position of each is tedious, so only few are known. The other measurements still show
which signals occur together, and a kernel learned from all of them places them better.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.multioutput import MultiOutputRegressor
from sklearn.neighbors import KNeighborsRegressor
from sklearn.svm import SVR

from kernelweave import HarmonicRegressor, LearnedKernelRegressor

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#8c8c8c"  # can be told apart by colour-blind readers


# %%
# The measurements are generated: a floor of 40 by 16 metres with five rooms in a row, ten access points, and a signal
# that weakens with the logarithm of the distance and by 4 dB for each wall between. Every measurement has 3 dB of
# noise.

WALLS = [8.0, 16.0, 24.0, 32.0]  # metres from the left


def make_measurements(n, rng):
    position = rng.uniform([0, 0], [40, 16], size=(n, 2))
    points = np.column_stack([np.tile([4, 12, 20, 28, 36], 2), np.repeat([3, 13], 5)]) + rng.normal(0, 1, (10, 2))
    distance = np.linalg.norm(position[:, None] - points, axis=2)
    side = position[:, :1, None] > WALLS
    crossed = (side != (points[None, :, :1] > WALLS)).sum(axis=2)
    signal = -35 - 30 * np.log10(np.maximum(distance, 1)) - 4 * crossed + rng.normal(0, 3, (n, 10))
    return np.maximum(signal, -95), position, points


X, position, points = make_measurements(600, np.random.default_rng(0))
known = np.random.default_rng(1).choice(600, 25, replace=False)
hidden = np.setdiff1d(np.arange(600), known)
y = np.full((600, 2), np.nan)
y[known] = position[known]

# %%
# :class:`~kernelweave.LearnedKernelRegressor` learns a kernel from the known numbers and the shape of all rows; here
# one for each coordinate. :class:`~kernelweave.HarmonicRegressor` gives each measurement the mean position of its
# neighbours by signal, for both coordinates at once. NaN marks what is not known. scikit-learn's nearest neighbours and
# support vector machine use the 25 known positions only.


def place(y):
    known, hidden = ~np.isnan(y[:, 0]), np.isnan(y[:, 0])
    learned = [LearnedKernelRegressor(random_state=0).fit(X, column).predict(X[hidden]) for column in y.T]
    machine, neighbors = MultiOutputRegressor(SVR(C=100)), KNeighborsRegressor(3, weights="distance")
    return {
        "LearnedKernelRegressor": np.column_stack(learned),
        "HarmonicRegressor": HarmonicRegressor(5, metric="euclidean").fit(X, y).transduction_[hidden],
        "SVR": machine.fit(X[known], y[known]).predict(X[hidden]),
        "3 nearest neighbours": neighbors.fit(X[known], y[known]).predict(X[hidden]),
    }


places = place(y)["LearnedKernelRegressor"]
figure, ax = plt.subplots(figsize=(6.4, 3.9), layout="constrained")
ax.vlines(WALLS, 0, 16, color="black", linewidth=1)
shown = np.arange(0, len(hidden), 6)
truth, guess = position[hidden][shown], places[shown]
ax.quiver(*truth.T, *(guess - truth).T, angles="xy", scale_units="xy", scale=1, width=0.003, color=BLUE)
ax.scatter(*position[known].T, s=60, color=ORANGE, edgecolors="black", label="position known", zorder=3)
ax.scatter(*points.T, s=80, color="black", marker="^", label="access point", zorder=3)
ax.set(xlabel="metres", ylabel="metres", aspect="equal", xlim=(-1, 41), ylim=(-1, 17))
ax.set_title("From the true to the predicted position, every sixth row", loc="left", fontsize=11)
figure.legend(frameon=False, ncols=2, loc="outside lower center")
plt.show()

# %%
# Five draws of 25 known positions: what share of the others is placed within so many metres.

draws = []
for seed in range(5):
    y = np.full((600, 2), np.nan)
    known = np.random.default_rng(seed).choice(600, 25, replace=False)
    y[known] = position[known]
    hidden = np.isnan(y[:, 0])
    draws.append({name: np.linalg.norm(p - position[hidden], axis=1) for name, p in place(y).items()})

figure, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
looks = {"LearnedKernelRegressor": (BLUE, "-"), "HarmonicRegressor": (BLUE, ":"), "SVR": (ORANGE, "--")}
for name in draws[0]:
    errors = np.concatenate([draw[name] for draw in draws])
    print(f"{name:24} half within {np.median(errors):.1f} m, nine in ten within {np.quantile(errors, 0.9):.1f} m")
    color, style = looks.get(name, (GREY, "-."))
    ax.ecdf(errors, color=color, linestyle=style, linewidth=2, label=name)
ax.set(xlim=(0, 10), xlabel="error in metres", ylabel="share of measurements")
ax.yaxis.set_major_formatter("{x:.0%}")
ax.set_title("Errors of the positions that were not known", loc="left", fontsize=11)
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Neighbours by signal alone (harmonic) do not help here: with 3 dB of noise, the nearest signals are not the nearest
# places. A smooth function of the signals averages the noise out.

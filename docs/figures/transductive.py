"""A boundary that follows the rows, and where each assumption holds: errors of benchmarks/defaults."""

import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from kernelweave import RBF, LapSVMClassifier

SETS = ("digits", "digit1", "coil2", "text_ssl", "g50c", "g241c", "g241n", "bci")
METHODS = {
    "SVC, tuned": ("#8a8f94", "|"),
    "LapSVM": ("#1f5f8b", "o"),
    "Harmonic": ("#4a8f4a", "s"),
    "TSVM": ("#c2571a", "^"),
}


def draw_boundaries(ax):
    X, truth = make_moons(240, noise=0.07, random_state=1)
    labeled = [int(np.argmin(np.hypot(*(X - place).T))) for place in ([-0.4, 0.9], [0.9, 0.4], [0.1, 0.1], [1.4, -0.4])]
    y = np.full(len(X), -1)
    y[labeled] = truth[labeled]
    xx, yy = np.meshgrid(np.linspace(-1.4, 2.4, 150), np.linspace(-0.9, 1.4, 150))
    grid = np.c_[xx.ravel(), yy.ravel()]
    ax.scatter(*X.T, s=8, c="#c3c8cc", linewidths=0)
    for name, color, style, ratio in (("labels only", "#8a8f94", ":", 0.0), ("LapSVM", "#1f5f8b", "-", 100.0)):
        model = LapSVMClassifier(RBF(), ratio=ratio).fit(X, y)
        error = np.mean((model.transduction_ != truth)[y < 0])
        ax.contour(xx, yy, model.decision_function(grid).reshape(xx.shape), [0.0], colors=color, linestyles=style)
        ax.plot([], [], color=color, linestyle=style, label=f"{name}: {error:.0%} wrong")
    for k, marker in ((0, "o"), (1, "^")):
        ax.scatter(*X[[i for i in labeled if truth[i] == k]].T, s=50, c="black", marker=marker, zorder=3)
    ax.set(xticks=[], yticks=[], title="four labels on two moons")
    ax.spines[:].set_visible(False)
    ax.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, 0.02))


def draw_errors(ax):
    file = Path(__file__).parents[2] / "benchmarks" / "defaults" / "results.json"
    after = json.loads(file.read_text(encoding="utf-8"))["after"]["classes"]
    for method, (color, marker) in METHODS.items():
        means = [np.mean([cell[0] for n in after[name][method].values() for cell in n.values()]) for name in SETS]
        ax.plot(means, SETS, marker, color=color, label=method, markersize=12 if marker == "|" else 6, mew=2)
    ax.invert_yaxis()
    ax.set(title="20, 50 and 100 labels", xlabel="mean error on the unlabelled rows in %", xlim=(0, 52))
    ax.grid(axis="y", lw=0.4)
    ax.legend(frameon=False, fontsize=8, loc="lower left")


fig, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.8), width_ratios=(1, 1.2))
draw_boundaries(left)
draw_errors(right)

"""Test error against the number of basis functions, from benchmarks/cg_boost."""

import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

LIMITS = ("50", "60", "100", "200", "400")
STYLES = {
    "ours, rkhs": ("CG-Boost, rkhs", "#1f5f8b", "o-"),
    "ours, l2": ("CG-Boost, 2-norm", "#5a9bc5", "s-"),
    "ours, l1": ("CG-Boost, 1-norm", "#9dc3dd", "^-"),
    "Nystroem k-means": ("Nystroem, k-means", "#c2571a", "o--"),
    "Nystroem random": ("Nystroem, random", "#e3a47e", "s--"),
}

file = Path(__file__).parents[2] / "benchmarks" / "cg_boost" / "results.json"
seeds = json.loads(file.read_text(encoding="utf-8"))["seeds"]
fig, ax = plt.subplots()
for method, (label, color, style) in STYLES.items():
    cells = [[seed[f"{method}|{limit}"] for seed in seeds] for limit in LIMITS]
    sizes = [np.mean([cell["basis_functions"] for cell in group]) for group in cells]
    errors = [np.mean([cell["test_error"] for cell in group]) for group in cells]
    ax.plot(sizes, errors, style, color=color, label=label, markersize=4)
ax.axhline(
    np.mean([seed["SVC cos5|None"]["test_error"] for seed in seeds]), color="#8a8f94", lw=1, ls=":", label="SVC, all"
)
ax.set(xscale="log", xlabel="basis functions", ylabel="test error in %", ylim=(0, None))
ax.set_xticks([50, 100, 200, 400], ["50", "100", "200", "400"])
ax.minorticks_off()
ax.legend(frameon=False, ncol=2, fontsize=8)

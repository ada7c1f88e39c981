"""Stated against true error of 200 drawn tables, from benchmarks/honesty."""

import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

COLORS = {30: "#9dc3dd", 60: "#3f86b5", 100: "#143f5c"}

file = Path(__file__).parents[2] / "benchmarks" / "honesty" / "results.json"
tables = list(json.loads(file.read_text(encoding="utf-8"))["classes"].values())
fig, ax = plt.subplots(figsize=(7.2, 3.8))
for n_labels, color in COLORS.items():
    group = [table for table in tables if table["labels"] == n_labels]
    stated, low, high = np.array([table["stated"] for table in group]).T
    true = np.array([table["true"] for table in group])
    ax.errorbar(true, stated, [stated - low, high - stated], fmt="none", ecolor=color, elinewidth=0.6, alpha=0.35)
    ax.scatter(true, stated, s=14, c=color, label=f"{n_labels} labels", zorder=3)
ax.plot([0, 0.8], [0, 0.8], color="black", lw=0.8)
ax.set(xlabel="true error on the unlabelled rows", ylabel="stated error, 95 % interval", xlim=(0, 0.8), ylim=(0, 1))
ax.legend(frameon=False)

"""Time of prediction against error, from benchmarks/cg_boost."""

import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

file = Path(__file__).parents[2] / "benchmarks" / "cg_boost" / "results.json"
seeds = json.loads(file.read_text(encoding="utf-8"))["seeds"]
fig, ax = plt.subplots()
for method, label, color in (
    ("ours, rkhs", "CG-Boost, rkhs", "#1f5f8b"),
    ("SVC rbf", "SVC, RBF", "#c2571a"),
):
    for name in (key for key in seeds[0] if key.startswith(f"{method}|")):
        cells = [seed[name] for seed in seeds]
        place = [1000 * np.mean([cell["predict_seconds"] for cell in cells]), np.mean([c["test_error"] for c in cells])]
        ax.scatter(*place, c=color, s=30, label=label)
        size = np.mean([cell["basis_functions"] for cell in cells])
        ax.annotate(f"{size:.0f} centres", place, textcoords="offset points", xytext=(5, 5), fontsize=8)
        label = None
ax.set(xlabel="milliseconds for 10,000 rows of MNIST", ylabel="test error in %", ylim=(3, 8), xlim=(0, None))
ax.legend(frameon=False)

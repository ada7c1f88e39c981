"""Mean error of every method of benchmarks/auto over the sets that all of them were fitted to."""

import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

file = Path(__file__).parents[2] / "benchmarks" / "auto" / "results.json"
errors = json.loads(file.read_text(encoding="utf-8"))["errors"]
methods = set.intersection(*(set(by_method) for by_method in errors.values()))
means = {
    method: np.mean([np.mean([cell[0] for cell in by_method[method].values()]) for by_method in errors.values()])
    for method in methods
}
names = sorted(means, key=means.get)
SCIKIT_LEARN = ("SVC", "logistic", "Logistic", "stacking", "Label", "random", "gradient", "Hist", "SelfTraining")
colors = ["#1f5f8b" if not name.startswith(SCIKIT_LEARN) else "#b0b7bd" for name in names]

fig, ax = plt.subplots(figsize=(7.2, 4.6))
bars = ax.barh(names, [means[name] for name in names], color=colors)
ax.bar_label(bars, fmt="%.1f", padding=3)
ax.invert_yaxis()
ax.set_xlabel(f"mean error on the unlabelled rows of {len(errors)} sets, in % (blue: kernelweave, grey: scikit-learn)")

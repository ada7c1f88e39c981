"""Minutes of a mixture against rows, by the cost of a pass in benchmarks/scale_out; and what a fit there took."""

import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

results = json.loads(
    (Path(__file__).parents[2] / "benchmarks" / "scale_out" / "results.json").read_text(encoding="utf-8")
)
seconds = results["passes"]["1"] / 1e6  # of a pass, for each row and worker
rows = np.logspace(6, 9, 50)
fig, ax = plt.subplots()
for n_workers, color in ((2, "#1f5f8b"), (10, "#5b8c5a"), (100, "#c2571a")):
    ax.loglog(rows, 12 * seconds * rows / n_workers / 60, color=color, label=f"{n_workers} workers, twelve passes")
measured = results["workers"]["2"]["SSMK"]["seconds"] / 60
ax.plot(results["about"]["rows"], measured, "o", color="#1f5f8b", label="measured, 2 workers")
ax.annotate(f"{measured:.0f} min", (results["about"]["rows"], measured), textcoords="offset points", xytext=(-4, 8))
ax.set(xlabel="rows (500 labels, four kernels)", ylabel="minutes")
ax.legend(frameon=False, loc="upper left")

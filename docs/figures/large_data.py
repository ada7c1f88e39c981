"""Seconds against rows, from benchmarks/ssmk_scale and benchmarks/label_aware."""

import json
from pathlib import Path

import matplotlib.pyplot as plt

FOLDER = Path(__file__).parents[2] / "benchmarks"


def results(name):
    return json.loads((FOLDER / name / "results.json").read_text(encoding="utf-8"))


mixture = [(record["rows"], record["seconds"]) for record in results("ssmk_scale")["records"]]
aware = [(int(rows), record["seconds"]) for rows, record in results("label_aware")["growth"].items()]
fig, ax = plt.subplots()
for label, points, color in (
    ("SSMK, certified over all rows and five kernels", mixture, "#1f5f8b"),
    ("label-aware kernel with landmarks", aware, "#c2571a"),
):
    rows, seconds = zip(*points, strict=True)
    ax.loglog(rows, seconds, "o-", color=color, label=label)
    for place in points:
        ax.annotate(f"{place[1]:.3g} s", place, textcoords="offset points", xytext=(0, 6), ha="center", fontsize=8)
ax.set(xlabel="rows", ylabel="seconds, one thread", ylim=(0.04, 3000))
ax.legend(frameon=False, loc="upper left")

"""How a table in many files is labelled: which rows meet where."""

import matplotlib.pyplot as plt

BLUE, ORANGE, GREY = "#1f5f8b", "#c2571a", "#666666"

fig, ax = plt.subplots()
ax.set(xlim=(0, 10), ylim=(0, 4.5))
ax.axis("off")


def box(x, y, text, color, width=1.7, height=0.7):
    ax.add_patch(plt.Rectangle((x, y), width, height, fill=False, edgecolor=color, linewidth=1.4))
    ax.text(x + width / 2, y + height / 2, text, ha="center", va="center", fontsize=8)


def arrow(start, end, color=GREY):
    ax.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": color, "linewidth": 1.2})


for k, name in enumerate(("part-0.parquet", "part-1.parquet", "…", "part-99.parquet")):
    y = 3.1 - k
    box(0.1, y, name, BLUE)
    arrow((1.8, y + 0.35), (2.6, 2.05), ORANGE)
    arrow((7.5, y + 0.35), (8.2, y + 0.35), BLUE)
    box(8.2, y, "…" if name == "…" else f"out/{name}", BLUE)
    box(6.1, y, "…" if name == "…" else f"worker {k + 1 if k < 2 else 8}", GREY, width=1.4)
    arrow((5.5, 2.05), (6.1, y + 0.35), ORANGE)
box(2.6, 1.7, "labelled rows,\na sample of others", ORANGE, width=1.6)
arrow((4.2, 2.05), (4.5, 2.05), ORANGE)
box(4.5, 1.7, "model", ORANGE, width=1.0)
ax.text(3.45, 0.25, "at most 10,000 rows\ncross the network", ha="center", fontsize=8, color=ORANGE)
ax.text(6.8, 4.15, "each reads a file,\nfills it, writes it", ha="center", va="center", fontsize=8, color=GREY)
